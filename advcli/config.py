"""The dataclasses behind the configuration groups, and the check that turns a composed config into plain, valid values.

The YAML files in ``conf/`` hold the values and say what each option means; the dataclasses here hold types and ranges. The
groups ``dataset``, ``loss``, ``features`` and ``solver`` may bring options of their own (one YAML file and one Python file add
a choice): those are known by their YAML file and checked by the part that reads them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import omegaconf
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from . import paths
from .errors import ConfigError, nearest

STARTED = "ADVCLI_STARTED"
"""Environment variable that carries the default name of the results folder from the parent to its workers."""

SCALES = ("C", "lambda")
"""The two scales of the regularisation: ``lambda = 1 / (n C)`` with n the rows of the fit."""


def _rule(wanted: str, valid: Callable[[Any], bool], choices: Sequence[str] = ()) -> dict[str, Any]:
    """Return the metadata of a dataclass field whose value, or every element of it, must satisfy ``valid``."""
    return {"wanted": wanted, "valid": valid, "choices": tuple(choices)}


def _choice(*choices: str) -> dict[str, Any]:
    return _rule(f"one of {', '.join(choices)}", lambda value: value in choices, choices)


def _at_least(minimum: int) -> dict[str, Any]:
    return _rule(f"a whole number of at least {minimum}", lambda value: value >= minimum)


POSITIVE = _rule("a finite number above 0", lambda value: 0 < value < math.inf)
FRACTION = _rule("a number between 0 and 1, both excluded", lambda value: 0 < value < 1)
NAME = _rule("a name", lambda value: bool(value.strip()))
SEED = _rule("a whole number from 0 to 2**32 - 1", lambda value: 0 <= value < 2**32)
FOLDER_NAME = _rule("the name of one folder, without /", lambda value: "/" not in value and value.strip(". ") != "")
TEST = _choice("corrected_ttest", "ttest", "wilcoxon")


@dataclass
class Dataset:
    """Group ``dataset``: a data set and where it comes from; further options belong to its source."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)
    source: str = field(metadata=NAME)


@dataclass
class Loss:
    """Group ``loss``: a surrogate loss; further options belong to that loss."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)


@dataclass
class Features:
    """Group ``features``: a feature map; further options belong to that map."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)


@dataclass
class Solver:
    """Group ``solver``: an algorithm and when it stops; further options belong to that algorithm."""

    open: ClassVar[bool] = True
    name: str = field(metadata=NAME)
    tol: float = field(metadata=POSITIVE)
    search_tol: float = field(metadata=POSITIVE)
    max_passes: int = field(metadata=_at_least(1))
    max_seconds: float | None = field(metadata=POSITIVE)


@dataclass
class Grid:
    """One stage of the search: candidate values (stage 1) or multipliers of the winner of stage 1 (stage 2)."""

    open: ClassVar[bool] = False
    regularisation: list[float] = field(metadata=POSITIVE)
    gamma: list[float] = field(metadata=POSITIVE)
    tolerance: list[float] = field(metadata=POSITIVE)


@dataclass
class Protocol:
    """Group ``protocol``: splits, standardisation, search and significance test."""

    open: ClassVar[bool] = False
    name: str = field(metadata=NAME)
    splits: str = field(metadata=_choice("random", "author"))
    n_splits: int = field(metadata=_at_least(1))
    train_size: float = field(metadata=FRACTION)
    folds: int = field(metadata=_at_least(2))
    standardise: str = field(metadata=_choice("fold", "train", "none"))
    regularisation: str = field(metadata=_choice(*SCALES))
    stage1: Grid = field()
    stage2: Grid = field()
    metric: str | None = field(metadata=NAME)
    metrics: list[str] = field(metadata=NAME)
    test: str = field(metadata=TEST)
    alpha: float = field(metadata=FRACTION)


@dataclass
class Report:
    """Group ``report``: how rows become tables; null takes the value that the results were made with."""

    open: ClassVar[bool] = False
    metric: str | None = field(metadata=NAME)
    test: str | None = field(metadata=TEST)
    alpha: float | None = field(metadata=FRACTION)


@dataclass
class Top:
    """The top-level keys beside the groups."""

    open: ClassVar[bool] = False
    name: str = field(metadata=FOLDER_NAME)
    seed: int = field(metadata=SEED)
    results_dir: str = field(metadata=NAME)
    data_dir: str | None = field(metadata=NAME)
    workers: int | None = field(metadata=_at_least(1))
    results: str | None = field(metadata=NAME)
    published: str | None = field(metadata=NAME)
    figure: str | None = field(metadata=_choice("loss_surface"))


@dataclass
class Bench:
    """The key ``bench``: when `advcli bench` ends the trace of a solver."""

    open: ClassVar[bool] = False
    tol: float = field(metadata=POSITIVE)
    seconds: float = field(metadata=POSITIVE)


GROUPS: dict[str, type] = {
    "dataset": Dataset,
    "loss": Loss,
    "features": Features,
    "solver": Solver,
    "protocol": Protocol,
    "report": Report,
}


@dataclass(frozen=True)
class Settings:
    """A composed and checked config as plain values: groups as dictionaries, folders as absolute paths.

    Attributes
    ----------
    hyper : dict of str to float
        The hyper-parameters that are fixed (``C`` or ``lambda``, ``gamma``, ``tolerance``); all others are searched.
    results : Path or None
        The finished or partial results folder that the verb ``report`` reads.
    published : str or None
        The published numbers that the report sets beside these results.
    figure : str or None
        The figure that the verb ``report`` draws instead of tables.
    bench : dict of str to float
        Relative gap and seconds at which the verb ``bench`` ends a trace.
    """

    name: str
    seed: int
    results_dir: Path
    data_dir: Path
    workers: int | None
    results: Path | None
    published: str | None
    figure: str | None
    dataset: dict[str, Any]
    loss: dict[str, Any]
    features: dict[str, Any]
    solver: dict[str, Any]
    protocol: dict[str, Any]
    report: dict[str, Any]
    bench: dict[str, float]
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
    values = plain(config)
    known = [*(entry.name for entry in fields(Top)), *GROUPS, "bench", "hyper"]
    for key in values:
        if key not in known:
            raise ConfigError(f"unknown key {key!r}; {nearest(key, known)}")
    for key in known:
        if key not in values:
            raise ConfigError(f"key {key!r} is missing; do not delete it")
    top = _check(Top, {entry.name: values[entry.name] for entry in fields(Top)}, "")
    groups = {group: _check(schema, values[group], group) for group, schema in GROUPS.items()}
    return Settings(
        name=top["name"],
        seed=top["seed"],
        results_dir=paths.results_dir(top["results_dir"]),
        data_dir=paths.data_dir(top["data_dir"]),
        workers=top["workers"],
        results=None if top["results"] is None else Path(top["results"]).expanduser().absolute(),
        published=top["published"],
        figure=top["figure"],
        bench=_check(Bench, values["bench"], "bench"),
        hyper=_hyper(values["hyper"]),
        **groups,
    )


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
    """Return ``values`` converted to the types of ``schema`` and checked against its ranges."""
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
        if not entry.metadata:
            result[name] = _check(Grid, value, f"{dot}{name}")
            continue
        wanted, valid = entry.metadata["wanted"], entry.metadata["valid"]
        try:
            typed = OmegaConf.merge(OmegaConf.structured(schema), {name: value})[name]
        except (OmegaConfBaseException, ConfigKeyError) as error:
            raise ConfigError(f"{dot}{name}={_shown(value)} is not valid; give {_wanted(wanted, schema, name)}") from error
        if OmegaConf.is_config(typed):
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
    text = f"a list, each element {wanted}" if kind.startswith("list") else wanted
    return f"{text}, or null" if kind.endswith("None") else text


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)


def _hyper(values: Any) -> dict[str, float]:
    """Return the fixed hyper-parameters; null means that the search chooses."""
    known = (*SCALES, "gamma", "tolerance")
    if not isinstance(values, Mapping):
        raise ConfigError(f"hyper={values} is not a group of options; fix a hyper-parameter with hyper.C=VALUE")
    fixed: dict[str, float] = {}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"unknown key 'hyper.{name}'; {nearest(name, known)}")
        if value is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if isinstance(value, bool) or not 0 < number < math.inf:
            raise ConfigError(f"hyper.{name}={value} is not valid; give a finite number above 0, or null to search it")
        fixed[str(name)] = number
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
_register: Callable[..., None] = getattr(
    OmegaConf, "register_new_resolver" if omegaconf.__version__.startswith("2.3.") else "register_resolver"
)
_register("advcli_workers", _workers, replace=True)
_register("advcli_folder", _folder, replace=True)
