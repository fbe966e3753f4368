"""The dataclasses behind the configuration groups, and the check that turns a composed config into plain, valid values.

The YAML files in ``conf/`` hold the values and say what each option means; the dataclasses here hold types and ranges. The
groups ``dataset``, ``loss``, ``features`` and ``solver`` may bring options of their own (one YAML file and one Python file add
a choice): those are known by their YAML file and checked by the part that reads them.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import omegaconf
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from ..core import paths, plugins
from ..core.checks import ANY, FRACTION, NAME, POSITIVE, SEED, at_least, choice, rule
from ..core.errors import ConfigError, nearest
from ..core.hyper import SCALES, STRENGTH
from ..core.hyper import known as known_hyper
from .protocol import CORRECTIONS, TESTS, Protocol, check_grid

STARTED = "ADVCLI_STARTED"
"""Environment variable that carries the default name of the results folder from the parent to its workers."""

FOLDER_NAME = rule("the name of one folder, without /", lambda value: "/" not in value and value.strip(". ") != "")
TEST = choice(*TESTS)


@dataclass
class DatasetGroup:
    """Group ``dataset``: a data set and where it comes from; further options belong to its source."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)
    source: str = field(metadata=NAME)


@dataclass
class LossGroup:
    """Group ``loss``: a surrogate loss; further options belong to that loss."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)


@dataclass
class FeaturesGroup:
    """Group ``features``: a feature map; further options belong to that map."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)


@dataclass
class SolverGroup:
    """Group ``solver``: an algorithm and when it stops; further options belong to that algorithm."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)
    tol: float = field(metadata=POSITIVE)
    search_tol: float = field(metadata=POSITIVE)
    max_passes: int = field(metadata=at_least(1))
    max_seconds: float | None = field(metadata=POSITIVE)


@dataclass
class NoiseGroup:
    """Group ``noise``: what happens to training labels; further options belong to that kind of noise."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)


@dataclass
class ReportGroup:
    """Group ``report``: how rows become tables; null takes the value that the results were made with."""

    open: ClassVar[bool] = False
    metric: str | None = field(metadata=NAME)
    test: str | None = field(metadata=TEST)
    alpha: float | None = field(metadata=FRACTION)
    correction: str | None = field(metadata=choice(*CORRECTIONS))
    methods: list[str] | None = field(metadata=NAME)
    datasets: list[str] | None = field(metadata=NAME)
    names: dict[str, str] | None = field(metadata=NAME)
    page: bool = field(metadata=ANY)


@dataclass
class LimitsGroup:
    """Group ``limits``: what one cell may take before it is ended and counted as failed."""

    open: ClassVar[bool] = False
    seconds: float | None = field(metadata=POSITIVE)
    memory_mb: float | None = field(metadata=POSITIVE)


@dataclass
class TopGroup:
    """The top-level keys beside the groups."""

    open: ClassVar[bool] = False
    name: str = field(metadata=FOLDER_NAME)
    seed: int = field(metadata=SEED)
    results_dir: str = field(metadata=NAME)
    data_dir: str | None = field(metadata=NAME)
    workers: int | None = field(metadata=at_least(1))
    cells_per_job: int | None = field(metadata=at_least(1))
    quiet: bool = field(metadata=ANY)
    verbose: bool = field(metadata=ANY)
    dry_run: bool = field(metadata=ANY)
    results: list[str] | None = field(metadata=NAME)
    calibrate: str | None = field(metadata=NAME)
    published: str | None = field(metadata=NAME)
    figure: str | None = field(metadata=NAME)
    plugins: list[str] | None = field(metadata=NAME)
    baseline: str | None = field(metadata=NAME)
    update: bool = field(metadata=ANY)
    junit: str | None = field(metadata=NAME)
    out: str | None = field(metadata=NAME)
    model: str | None = field(metadata=NAME)
    input: str | None = field(metadata=NAME)
    trust: bool = field(metadata=ANY)
    spreadsheets: bool = field(metadata=ANY)
    chunk_rows: int = field(metadata=at_least(1))


@dataclass
class BenchGroup:
    """The key ``bench``: when `advcli bench` ends the trace of a solver."""

    open: ClassVar[bool] = False
    tol: float = field(metadata=POSITIVE)
    seconds: float = field(metadata=POSITIVE)


@dataclass
class DrawGroup:
    """The key ``draw``: what `advcli report figure=NAME` shows."""

    open: ClassVar[bool] = False
    losses: list[str] | None = field(metadata=NAME)
    C: list[float] = field(metadata=POSITIVE)
    columns: list[str] | None = field(metadata=NAME)
    classes: int = field(metadata=at_least(2))
    rows: int = field(metadata=at_least(1))
    epsilon: float = field(metadata=POSITIVE)


@dataclass
class PredictGroup:
    """The key ``predict``: what `advcli predict` does with rows and columns that the model was not fitted on."""

    open: ClassVar[bool] = False
    unseen: str = field(metadata=choice("refuse", "ignore"))
    gaps: str = field(metadata=choice("refuse", "ignore"))
    extra: str = field(metadata=choice("refuse", "ignore"))
    rejected: str | None = field(metadata=NAME)
    tau: float | None = field(metadata=rule("a number", lambda value: value == value))


@dataclass
class CoverageGroup:
    """The key ``coverage``: which thresholds `advcli coverage` looks for."""

    open: ClassVar[bool] = False
    epsilons: list[float] = field(metadata=FRACTION)
    confidence: float = field(metadata=FRACTION)


@dataclass
class RecordGroup:
    """The key ``record``: what a sweep keeps beside its rows."""

    open: ClassVar[bool] = False
    proofs: bool = field(metadata=ANY)
    distributions: bool = field(metadata=ANY)


GROUPS: dict[str, type] = {
    "dataset": DatasetGroup,
    "loss": LossGroup,
    "features": FeaturesGroup,
    "solver": SolverGroup,
    "protocol": Protocol,
    "noise": NoiseGroup,
    "report": ReportGroup,
}
NODES: dict[str, type] = {
    "limits": LimitsGroup,
    "bench": BenchGroup,
    "draw": DrawGroup,
    "record": RecordGroup,
    "predict": PredictGroup,
    "coverage": CoverageGroup,
}
"""Keys of config.yaml itself that hold several options."""


@dataclass(frozen=True)
class Settings:
    """A composed and checked config as plain values: groups as dictionaries, folders as absolute paths.

    Attributes
    ----------
    limits : dict
        ``seconds`` and ``memory_mb`` of one cell, None without a limit.
    hyper : dict of str to float
        The hyper-parameters that are fixed (``C`` or ``lambda``, ``gamma``, ``tolerance``); all others are searched.
    results : tuple of Path
        The finished or partial results folders that the verb ``report`` reads, several for one table.
    published : str or None
        The published numbers that the report sets beside these results.
    figure : str or None
        The figure that the verb ``report`` draws instead of tables.
    plugins : tuple of Path
        Folders of a user's own items, beside that of ``--config-dir``.
    baseline, junit : Path or None
        The files that the verb ``check`` compares with and writes.
    update : bool
        Whether ``check`` writes a new baseline.
    out, model, input : Path or None
        The file that ``fit`` or ``predict`` writes, and those that ``predict`` reads.
    trust : bool
        Whether ``predict`` reads a model that is a pickle.
    spreadsheets : bool
        Whether CSV files for people have an apostrophe before texts that look like formulas.
    chunk_rows : int
        Rows that ``predict`` holds in memory.
    bench : dict of str to float
        Relative gap and seconds at which the verb ``bench`` ends a trace.
    draw : dict
        ``losses``, values of ``C``, ``columns`` and number of ``classes`` of a picture.
    record : dict of str to bool
        ``proofs``: whether the proofs of reported fits are kept; ``distributions``: whether distributions that no metric reads are.
    predict : dict
        ``unseen``, ``gaps`` and ``extra``: ``refuse`` or ``ignore``; ``rejected``: the file of rows that are refused.
    """

    name: str
    seed: int
    results_dir: Path
    data_dir: Path
    workers: int | None
    cells_per_job: int | None
    quiet: bool
    verbose: bool
    dry_run: bool
    results: tuple[Path, ...]
    published: str | None
    figure: str | None
    plugins: tuple[Path, ...]
    baseline: Path | None
    update: bool
    junit: Path | None
    out: Path | None
    model: Path | None
    input: Path | None
    trust: bool
    spreadsheets: bool
    chunk_rows: int
    dataset: dict[str, Any]
    loss: dict[str, Any]
    features: dict[str, Any]
    solver: dict[str, Any]
    protocol: dict[str, Any]
    noise: dict[str, Any]
    report: dict[str, Any]
    limits: dict[str, float | None]
    bench: dict[str, float]
    draw: dict[str, Any]
    record: dict[str, bool]
    predict: dict[str, Any]
    coverage: dict[str, Any]
    hyper: dict[str, float]

    @property
    def folder(self) -> Path:
        """The results folder of this config."""
        return self.results_dir / self.name

    @property
    def label(self) -> str:
        """The cell as people name it: data set, loss, features."""
        return f"{self.dataset['name']} {self.loss['name']} {self.features['name']}"


def validate(config: DictConfig) -> Settings:
    """Check types, ranges and names of a composed config (without Hydra's own node) and return plain values.

    Raises
    ------
    ConfigError
        At the first key that is unknown, missing, of the wrong type or out of range; one line that names the key.
    """
    return check(plain(config))


def check(values: Mapping[str, Any]) -> Settings:
    """Do what `validate` does for a config that `plain` has made plain, and add the folders of ``plugins`` to this process.

    Cells of a sweep share most of their groups; a group that was checked once is not checked again.
    """
    known = [*(entry.name for entry in fields(TopGroup)), *GROUPS, *NODES, "hyper"]
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown key {key!r}; {nearest(key, known)}")
    for key in known:
        if key not in values:
            raise ConfigError(f"key {key!r} is missing; do not delete it")
    top = _check(TopGroup, {entry.name: values[entry.name] for entry in fields(TopGroup)}, "")
    groups = {group: _check(schema, values[group], group) for group, schema in {**GROUPS, **NODES}.items()}
    calibrate = top.pop("calibrate")
    if calibrate is not None:  # a part of the method
        groups["loss"] = {**groups["loss"], "calibrate": calibrate}
    files = {key: _path(top[key]) for key in ("baseline", "junit", "out", "model", "input")}
    folders: dict[str, Any] = {"results_dir": paths.results_dir(top["results_dir"]), "data_dir": paths.data_dir(top["data_dir"])}
    folders["plugins"] = tuple(map(plugins.add_named, top["plugins"] or ()))
    folders["results"] = tuple(paths.expanded(text).absolute() for text in top["results"] or ())
    return Settings(**{**top, **groups, **files, **folders, "hyper": _hyper(values["hyper"])})


def _path(text: str | None) -> Path | None:
    return None if text is None else paths.expanded(text).absolute()


def keys(config: Any, prefix: str = "") -> list[str]:
    """Return the dotted names of all keys of a composed config, for messages about unknown keys."""
    names: list[str] = []
    if isinstance(config, Mapping):
        for key, value in config.items():
            names += [f"{prefix}{key}", *keys(value, f"{prefix}{key}.")]
    return names


def plain(config: DictConfig) -> dict[str, Any]:
    """Return a composed config as nested dictionaries and lists, interpolations resolved."""
    try:
        values = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(f"key {error.full_key!r} has no value: {first_line(error)}") from error
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def _check(schema: type, values: Any, where: str) -> dict[str, Any]:
    """Return ``values`` converted to the types of ``schema`` and checked against its ranges, each different group once."""
    text = repr(values)
    if (schema, text) not in _checked:
        if len(_checked) >= 1000:
            _checked.clear()
        _checked[schema, text] = _convert(schema, values, where)
    return copy.deepcopy(_checked[schema, text])


_checked: dict[tuple[type, str], dict[str, Any]] = {}


def _convert(schema: type, values: Any, where: str) -> dict[str, Any]:
    dot = f"{where}." if where else ""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}={values} is not a group of options; choose one with {where}=NAME")
    known = {entry.name: entry for entry in fields(schema)}
    for name in values:
        if name not in known and not schema.open:  # type: ignore[attr-defined]
            raise ConfigError(f"unknown key '{dot}{name}'; {nearest(f'{dot}{name}', [f'{dot}{other}' for other in known])}")
    for name in known:
        if name not in values:
            raise ConfigError(f"key '{dot}{name}' is missing; do not delete it")
    result: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            result[name] = value
            continue
        entry = known[name]
        kind = str(schema.__annotations__[name])
        if kind.startswith("list") and isinstance(value, str):  # one element
            value = [value]
        if not entry.metadata:
            result[name] = check_grid(f"{dot}{name}", value)
            continue
        wanted, valid = entry.metadata["wanted"], entry.metadata["valid"]
        try:
            if kind.partition(" | ")[0] == type(value).__name__ or (value is None and kind.endswith("None")):
                typed = value  # merging would convert nothing and takes milliseconds
            else:
                typed = OmegaConf.merge(OmegaConf.structured(schema), {name: value})[name]
        except (OmegaConfBaseException, ConfigKeyError) as error:
            raise ConfigError(f"{dot}{name}={_shown(value)} is not valid; give {_wanted(wanted, schema, name)}") from error
        if OmegaConf.is_dict(typed):
            pairs: dict[str, Any] = dict(typed)
            typed, elements = pairs, [*pairs, *pairs.values()]
            complaint = f"{dot}{name}={_shown(value)} is not valid; every name and text must be {wanted}"
        elif OmegaConf.is_config(typed):
            typed = list(typed)
            elements, complaint = typed, f"{dot}{name}={_shown(value)} is not valid; every element must be {wanted}"
            if not typed and name != "metrics":
                raise ConfigError(f"{dot}{name}=[] is empty; give at least one value")
        else:
            elements, complaint = [typed], f"{dot}{name}={_shown(value)} is not valid; give {wanted}"
        for element in elements:
            if element is not None and not valid(element):
                if entry.metadata["choices"]:
                    hint = nearest(str(element), entry.metadata["choices"])
                    raise ConfigError(f"{dot}{name}={_shown(value)} is not valid; {hint}")
                raise ConfigError(complaint)
        result[name] = typed
    return result


def _wanted(wanted: str, schema: type, name: str) -> str:
    kind = str(schema.__annotations__[name])
    text = f"a list, each element {wanted}" if kind.startswith("list") else "{NAME: TEXT}" if kind.startswith("dict") else wanted
    return f"{text}, or null" if kind.endswith("None") else text


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)


def _hyper(values: Any) -> dict[str, float]:
    """Return the fixed hyper-parameters; null means that the search chooses."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"hyper={values} is not a group of options; fix a hyper-parameter with hyper.C=VALUE")
    fixed: dict[str, float] = {}
    for name, value in values.items():
        if name not in known_hyper():
            raise ConfigError(f"unknown key 'hyper.{name}'; {nearest(name, known_hyper())}")
        if value is None:
            continue
        if isinstance(value, list | tuple):
            axis = f"stage1.{STRENGTH if name in SCALES else name}"
            raise ConfigError(f"hyper.{name}={value} is not one number; for a search among several give protocol.{axis}={value}")
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if isinstance(value, bool) or not POSITIVE["valid"](number):
            raise ConfigError(f"hyper.{name}={value} is not valid; give {POSITIVE['wanted']}, or null to search it")
        fixed[str(name)] = float(number)
    if all(scale in fixed for scale in SCALES):
        raise ConfigError("hyper.C and hyper.lambda are two scales of one regularisation (lambda = 1/(n C)); fix only one")
    return fixed


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, without its final full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def _workers(value: Any) -> int:
    """Resolve ``${advcli_workers:...}``: joblib writes "all cores" as -1, the config as null."""
    return -1 if value is None else int(value)


def _folder(results_dir: str, name: str) -> str:
    """Resolve ``${advcli_folder:...}``: the results folder as `Settings.folder` spells it."""
    return os.path.join(paths.results_dir(results_dir), str(name))


# OmegaConf 2.4 renames the function; the old one's name means something else in 2.3.
register_resolver: Callable[..., None] = getattr(
    OmegaConf, "register_new_resolver" if omegaconf.__version__.startswith("2.3.") else "register_resolver"
)
register_resolver("advcli_workers", _workers, replace=True)
register_resolver("advcli_folder", _folder, replace=True)
