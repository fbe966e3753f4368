"""The schemas of the configuration groups, and the check that turns a composed config into plain, valid values.

The YAML files in ``conf/`` hold the values and say what each option means; the schemas here hold types and ranges. The
groups ``dataset``, ``loss``, ``features`` and ``solver`` may bring options of their own (one YAML file and one Python file add
a choice): those are known by their YAML file and checked by the part that reads them.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Any

import omegaconf
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from ..core import paths, plugins
from ..core.arithmetic import ARITHMETICS
from ..core.checks import ANY, FRACTION, NAME, NOT_NEGATIVE, POSITIVE, SEED, at_least, choice, rule
from ..core.errors import ConfigError, InvalidValueError, UnknownNameError, nearest
from ..core.hyper import SCALES, STRENGTH, refuse_two_scales
from ..core.hyper import known as known_hyper
from ..core.notes import NOTES
from .protocol import CORRECTIONS, TESTS, TOLERANCES, Protocol, check_grid

STARTED = "ADVCLI_STARTED"
"""Environment variable that carries the default name of the results folder from the parent to its workers."""

FOLDER_NAME = rule("the name of one folder, without /", lambda value: "/" not in value and value.strip(". ") != "")


def _group(open: bool = False, /, **keys: tuple[Any, Mapping[str, Any]]) -> type:
    """Return the schema of a group: type and rule of each key; an open one takes keys of the choice's own, which its YAML file declares."""
    columns = [(name, kind, field(metadata=about)) for name, (kind, about) in keys.items()]
    return make_dataclass("Group", columns, namespace={"open": open})


_NAME, _TEXT, _TEXTS, _FLAG = (str, NAME), (str | None, NAME), (list[str] | None, NAME), (bool, ANY)
_POSITIVE, _LIMIT, _WHOLE, _SOME = (float, POSITIVE), (float | None, POSITIVE), (int, at_least(1)), (int | None, at_least(1))
_AMOUNTS = (dict[str, float], rule("a finite number of at least 0", lambda value: isinstance(value, str) or NOT_NEGATIVE["valid"](value)))
_IGNORED = (str, choice("refuse", "ignore"))
_CHOICE = _group(True, name=_NAME)
TOP = _group(
    name=(str, FOLDER_NAME),
    seed=(int, SEED),
    arithmetic=(str, choice(*ARITHMETICS)),
    results_dir=_NAME,
    data_dir=_TEXT,
    workers=_SOME,
    cells_per_job=_SOME,
    **dict.fromkeys(("quiet", "verbose", "dry_run", "update", "floor", "trust", "spreadsheets"), _FLAG),
    **dict.fromkeys(("tolerance", "relative_tolerance"), _AMOUNTS),
    confirm=_SOME,
    **dict.fromkeys(("results", "plugins"), _TEXTS),
    quiet_notes=(list[str] | None, choice(*NOTES)),
    **dict.fromkeys(("calibrate", "published", "figure", "baseline", "junit", "summary", "out", "model", "input"), _TEXT),
    chunk_rows=_WHOLE,
)
"""The schema of the top-level keys beside the groups."""

GROUPS: dict[str, type] = {
    "dataset": _group(True, name=_NAME, source=_NAME),
    "loss": _CHOICE,
    "features": _CHOICE,
    "solver": _group(
        True,
        name=_NAME,
        tol=(float, TOLERANCES["tol"]),
        search_tol=(float, TOLERANCES["search_tol"]),
        max_passes=_WHOLE,
        max_seconds=_LIMIT,
    ),
    "protocol": Protocol,
    "noise": _CHOICE,
    "report": _group(
        metric=_TEXT,
        test=(str | None, choice(*TESTS)),
        alpha=(float | None, FRACTION),
        correction=(str | None, choice(*CORRECTIONS)),
        methods=_TEXTS,
        datasets=_TEXTS,
        names=(dict[str, str] | None, NAME),
        page=_FLAG,
    ),
}
NODES: dict[str, type] = {
    "limits": _group(seconds=_LIMIT, memory_mb=_LIMIT, total_seconds=_LIMIT),
    "bench": _group(tol=_POSITIVE, seconds=_POSITIVE),
    "draw": _group(losses=_TEXTS, C=(list[float], POSITIVE), columns=_TEXTS, classes=(int, at_least(2)), rows=_WHOLE, epsilon=_POSITIVE),
    "record": _group(proofs=_FLAG, distributions=_FLAG, splits=_FLAG),
    "predict": _group(
        unseen=_IGNORED,
        gaps=_IGNORED,
        extra=_IGNORED,
        rejected=_TEXT,
        tau=(float | None, rule("a number", lambda value: value == value)),
    ),
    "coverage": _group(epsilons=(list[float], FRACTION), confidence=(float, FRACTION)),
    "imported": _group(
        **dict.fromkeys(("dataset", "method", "metric", "split", "item", "value"), _TEXTS),
        **dict.fromkeys(("n_train", "n_test"), _TEXT),
        direction=(str | None, choice("higher", "lower")),
        percent=_FLAG,
        incomplete=(str | None, choice("drop_datasets", "drop_methods", "mark")),
    ),
}
"""Keys of config.yaml itself that hold several options."""


@dataclass(frozen=True)
class Settings:
    """A composed and checked config as plain values: the keys of conf/config.yaml, which says what each means.

    Groups are dictionaries, the protocol is a `Protocol`; folders and files are absolute paths. ``hyper`` has the hyper-parameters that
    are fixed, ``results`` the folders that ``advcli report`` makes one table of.
    """

    name: str
    seed: int
    arithmetic: str
    results_dir: Path
    data_dir: Path
    workers: int | None
    cells_per_job: int | None
    confirm: int | None
    quiet: bool
    quiet_notes: tuple[str, ...]
    verbose: bool
    dry_run: bool
    results: tuple[Path, ...]
    published: str | None
    figure: str | None
    plugins: tuple[Path, ...]
    baseline: Path | None
    update: bool
    junit: Path | None
    summary: Path | None
    tolerance: dict[str, float]
    relative_tolerance: dict[str, float]
    floor: bool
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
    protocol: Protocol
    noise: dict[str, Any]
    report: dict[str, Any]
    limits: dict[str, float | None]
    bench: dict[str, float]
    draw: dict[str, Any]
    record: dict[str, bool]
    predict: dict[str, Any]
    coverage: dict[str, Any]
    imported: dict[str, Any]
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
    """Check a composed config without Hydra's own node; a `ConfigError` names the first key that is unknown, missing or out of range."""
    return check(plain(config))


def check(values: Mapping[str, Any]) -> Settings:
    """Do what `validate` does for a config that `plain` has made plain, and add the folders of ``plugins`` to this process.

    Cells of a sweep share most of their groups; a group that was checked once is not checked again.
    """
    known = [*(entry.name for entry in fields(TOP)), *GROUPS, *NODES, "hyper"]
    for key in values:
        if key not in known:
            raise UnknownNameError(f"unknown key {key!r}; {nearest(key, known)}")
    for key in known:
        if key not in values:
            raise ConfigError(f"key {key!r} is missing; do not delete it")
    # false, as people switch a question off, is no number
    top = _check(TOP, {entry.name: values[entry.name] for entry in fields(TOP)} | _question(values["confirm"]), "")
    groups: dict[str, Any] = {group: _check(schema, values[group], group) for group, schema in {**GROUPS, **NODES}.items()}
    groups["protocol"] = Protocol(**groups["protocol"])
    calibrate = top.pop("calibrate")
    if calibrate is not None:  # a part of the method
        groups["loss"] = {**groups["loss"], "calibrate": calibrate}
    files = {key: _path(top[key]) for key in ("baseline", "junit", "summary", "out", "model", "input")}
    folders: dict[str, Any] = {"results_dir": paths.results_dir(top["results_dir"]), "data_dir": paths.data_dir(top["data_dir"])}
    top["quiet_notes"] = tuple(top["quiet_notes"] or ())
    folders["plugins"] = tuple(map(plugins.add_named, top["plugins"] or ()))
    folders["results"] = tuple(paths.expanded(text).absolute() for text in top["results"] or ())
    return Settings(**{**top, **groups, **files, **folders, "hyper": _hyper(values["hyper"])})


def _question(confirm: Any) -> dict[str, Any]:
    """Return the key ``confirm`` as the number of fits or None."""
    if confirm is True:
        raise ConfigError("confirm=true is not valid; give the number of fits from which to ask, or false")
    return {"confirm": None if confirm is False else confirm}


def _path(text: str | None) -> Path | None:
    return None if text is None else paths.expanded(text).absolute()


def keys(config: Any, prefix: str = "") -> list[str]:
    """Return the dotted names of all keys of a composed config, for messages about unknown keys."""
    names: list[str] = []
    if isinstance(config, Mapping):
        for key, value in config.items():
            names += [f"{prefix}{key}", *keys(value, f"{prefix}{key}.")]
    return names


def leaves(values: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return path and value of every leaf: anything but a mapping with content."""
    entries: dict[tuple[str, ...], Any] = {}
    for key, value in values.items():
        path = (*prefix, str(key))
        entries |= leaves(value, path) if isinstance(value, Mapping) and value else {path: value}
    return entries


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
            raise UnknownNameError(f"unknown key '{dot}{name}'; {nearest(f'{dot}{name}', [f'{dot}{other}' for other in known])}")
    for name in known:
        if name not in values:
            raise ConfigError(f"key '{dot}{name}' is missing; do not delete it")
    result: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            result[name] = value
        elif not known[name].metadata:
            result[name] = check_grid(f"{dot}{name}", value)
        else:
            result[name] = _checked_value(schema, name, f"{dot}{name}", value, known[name].metadata)
    return result


def _checked_value(schema: type, name: str, key: str, value: Any, about: Mapping[str, Any]) -> Any:
    """Return the value of one key, converted to its type in the schema and checked by its rule."""
    annotation = schema.__annotations__[name]  # of the protocol a text
    kind = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if kind.startswith("list") and isinstance(value, str):  # one element
        value = [value]
    wanted, invalid = about["wanted"], f"{key}={'null' if value is None else value} is not valid;"
    try:
        if kind.partition(" | ")[0] == type(value).__name__ or (value is None and kind.endswith("None")):
            typed: Any = value  # merging would convert nothing and takes milliseconds
        else:
            merged: Any = OmegaConf.merge(OmegaConf.structured(schema), {name: value})
            typed = merged[name]
    except (OmegaConfBaseException, ConfigKeyError) as error:
        of = "TEXT" if wanted == NAME["wanted"] else wanted
        text = f"a list, each element {wanted}" if kind.startswith("list") else f"{{NAME: {of}}}" if kind.startswith("dict") else wanted
        raise InvalidValueError(f"{invalid} give {text}{', or null' if kind.endswith('None') else ''}") from error
    elements, hint = [typed], f"give {wanted}"
    if OmegaConf.is_dict(typed):
        typed = dict(typed)
        elements, hint = [*typed, *typed.values()], f"every {'name and text' if wanted == NAME['wanted'] else 'value'} must be {wanted}"
    elif OmegaConf.is_config(typed):
        typed = elements = list(typed)
        hint = f"every element must be {wanted}"
        if not typed and name != "metrics":
            raise ConfigError(f"{key}=[] is empty; give at least one value")
    for element in elements:
        if element is not None and not about["valid"](element):
            raise InvalidValueError(f"{invalid} {nearest(str(element), about['choices']) if about['choices'] else hint}")
    return typed


def _hyper(values: Any) -> dict[str, float]:
    """Return the fixed hyper-parameters; null means that the search chooses."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"hyper={values} is not a group of options; fix a hyper-parameter with hyper.C=VALUE")
    fixed: dict[str, float] = {}
    for name, value in values.items():
        if name not in known_hyper():
            raise UnknownNameError(f"unknown key 'hyper.{name}'; {nearest(name, known_hyper())}")
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
    refuse_two_scales(fixed)
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
