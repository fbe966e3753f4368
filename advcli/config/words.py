"""The words ``KEY=VALUE``: how they are written, what they set, and the nearest key when nothing has that name."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ..core import hyper, plugins
from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.paths import conf_dir
from . import schema
from .meanings import elsewhere, groups

# Hydra 1.4 drops the parameter that asks 1.3 for the behaviour that both have
BASE: dict[str, Any] = {"version_base": "1.3"} if hydra.__version__.startswith("1.3.") else {}

# How files that hold rows are given, by the ends of their names: the keys of the file and of what else it needs.
_TABLE = ("csv dataset.path", "target=COLUMN")
_FILES = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".gz", ".parquet", ".pq", ".feather", ".xlsx", ".xlsm"), _TABLE),
    **dict.fromkeys((".svm", ".libsvm"), ("csv dataset.path", "format=svmlight")),
    ".npy": ("mapped dataset.features", "labels=FILE"),
}


_MOST_LISTED = 12
"""More names in an error are not read."""


def without_hydra(config: DictConfig) -> DictConfig:
    """Return a composed config without Hydra's node."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def words_of(node: Any) -> list[str]:
    """Return the overrides of a job as they were written: OmegaConf would take an interpolation in one for its own."""
    return list(OmegaConf.to_container(node.overrides.task, resolve=False))  # type: ignore[arg-type]


# what Hydra reads as text without quotes
_PLAIN = re.compile(r"(?!(?i:null|true|false|nan|inf)$)[A-Za-z_./][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")


def typed(key: str, value: Any) -> str:
    """Return an override as people write it, with Hydra's quotes only where they must be."""
    items = value if isinstance(value, list) else [value]
    if all(isinstance(item, str) and _PLAIN.fullmatch(item) for item in items):
        return f"{key}=[{','.join(items)}]" if isinstance(value, list) else f"{key}={value}"
    if all(isinstance(item, str) and not re.search(r"[\"\\\n]|\$\{", item) for item in items):
        inside = ",".join(f'"{item}"' for item in items)
        return f"{key}=[{inside}]" if isinstance(value, list) else f"{key}={inside}"
    return word(key, value)


def command(*words: str, **keys: Any) -> str:
    """Return a command of ours as it can be pasted into a shell: an action, and keys with their values."""
    return shlex.join(["advcli", *words, *(typed(key, value) for key, value in keys.items())])


def word(key: str, value: Any) -> str:
    """Return the override that sets a key to a value of Python, as Hydra reads it; ``${`` in a text stays what it is."""
    return f"{key}={_written(value)}"


def _written(value: Any) -> str:
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{','.join(map(_written, value))}]"
    text = str(value)
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) and text.lower() not in ("null", "true", "false", "nan", "inf"):
        return text  # the name of a choice
    text = re.sub(r"(\\*)\$\{", lambda found: f"{2 * found[1]}\\${{", text)  # text of Python has no interpolations
    # a backslash counts before a quote alone
    escaped = re.sub(r"(\\*)(?='|$)", lambda found: 2 * found[1], text).replace("'", "\\'")
    return f"'{escaped}'"


def words_for(cell: str | Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Return the words of a cell: words as in a shell; words; or keys of the configuration and their values, nested or with dots.

    The value of ``loss`` may be an unfitted classifier of scikit-learn's interface.
    """
    if isinstance(cell, str):
        return shlex.split(cell)
    if isinstance(cell, Mapping):
        words = []
        for group, options in cell.items():
            described = group == "loss" and hasattr(options, "get_params")
            words += ["loss=sklearn"] if described else []
            values = schema.leaves({group: _described(options) if described else options})
            words += [word(".".join(path), value) for path, value in values.items() if not isinstance(value, Mapping)]
        return words
    if isinstance(cell, Sequence) and all(isinstance(text, str) for text in cell):
        return list(cell)
    raise ConfigError(f"{cell!r} is no cell; write 'dataset=iris loss=zero_one' or {{'dataset': 'iris', 'loss': 'zero_one'}}")


def _described(estimator: Any) -> dict[str, Any]:
    """Return the options of ``loss=sklearn`` for an unfitted classifier: its class by name, and the parameters that are not the defaults.

    Other processes must be able to import the class, and parameters must be plain data.
    """
    kind = type(estimator)
    if isinstance(estimator, type):
        raise ConfigError(f"{estimator.__name__} is a class; give an estimator, {estimator.__name__}()")
    if kind.__module__ == "__main__" or "<" in kind.__qualname__ or "." in kind.__qualname__:
        remedy = "put it into a file of its own (docs/howto/use/outside.md)"
        raise ConfigError(f"{kind.__name__} cannot be imported by other processes; {remedy}")
    public = ".".join(part for part in kind.__module__.split(".") if not part.startswith("_"))
    module = public if getattr(sys.modules.get(public), kind.__name__, None) is kind else kind.__module__
    default = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
    options = {name: value for name, value in estimator.get_params(deep=False).items() if repr(value) != repr(default.get(name))}
    for name, value in options.items():
        if not _is_plain(value):
            remedy = "make it in a file (docs/howto/use/outside.md)"
            raise ConfigError(f"{name}={type(value).__name__} of {kind.__name__} is no plain data; {remedy}")
    return {"name": kind.__name__, "estimator": f"{module}.{kind.__name__}", "options": options}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str) or hasattr(value, "tolist")


def options_set(cells: Sequence[Sequence[str]]) -> dict[str, list[Any]]:
    """Return the options of data sets, losses, features and noise that words set, and all the values that they set them to."""
    groups = ("dataset.", "loss.", "features.", "noise.")
    values: dict[str, list[Any]] = {}
    for text in dict.fromkeys(text for cell in cells for text in cell if text.lstrip("+~").startswith(groups)):
        (override,) = OverridesParser.create().parse_overrides([text])
        values.setdefault(override.key_or_group, []).append(override.value())
    return values


def expand(loader: Any, params: Mapping[str, str] | None, words: Sequence[str]) -> list[list[str]]:
    """Return the words of every cell of a sweep over ``words`` and what a preset sweeps over (``params``, key to ``value1,value2``).

    ``loader`` is Hydra's ConfigLoader, which knows the choices of a group, for ``glob``.
    """
    # Hydra's search for plugins loads this module anew: a class imported earlier would be another one
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    presets = [f"{key}={value}" for key, value in (params or {}).items()]
    overrides = OverridesParser.create(config_loader=loader).parse_overrides([*presets, *words])
    for override in overrides:
        if override.is_sweep_override() and not any(True for _ in override.sweep_iterator()):
            raise ConfigError(f"'{override.input_line}' gives no value; a sweep needs at least one")
    return BasicSweeper.split_arguments(overrides, max_batch_size=None)[0]


def refuse_paths(overrides: Sequence[str]) -> None:
    """Refuse ``GROUP=../FILE``: Hydra would look for a file there, and the choice would have another name in the rows."""
    for word in overrides:
        key, _, values = word.lstrip("+").partition("=")
        group = key.partition("@")[0]
        for value in values.split(","):
            if "/" in value and {"", ".", ".."} & set(value.strip().split("/")) and (conf_dir() / group).is_dir():
                raise unknown_choice(group, value.strip(), [file.stem for file in (conf_dir() / group).glob("*.yaml")])


def unknown_choice(group: str, name: str, names: Iterable[str]) -> ConfigError:
    """Return the error about a choice that a group does not have; of a data set that is a file it says how files are given."""
    path = Path(name)
    if group == "dataset" and (path.suffix.lower() in _FILES or path.is_file()):
        shown = name if re.fullmatch(r"[\w./-]+", name) else f"'{name}'"
        kind, last = _FILES.get(path.suffix.lower(), _TABLE)
        return ConfigError(f"dataset={shown} is no name of a data set; for a file write dataset={kind}={shown} dataset.{last}")
    plugin = next((file for file in plugins.files(group) if file.stem == name), None)
    if plugin is not None:
        yaml = plugin.with_suffix(".yaml").name
        return ConfigError(f"{plugin} has no YAML file beside it; write {yaml} with name: {name} and its options")
    meant = elsewhere(group, path.name)
    if meant:
        return UnknownNameError(f"unknown {group} {name!r}; did you mean {' or '.join(meant)}? (advcli help {group}={meant[0]})")
    return UnknownNameError(f"unknown {group} {name!r}; {suggestion(path.name, names, f'advcli help {group}')}")


def suggestion(name: str, names: Iterable[str], page: str) -> str:
    """Return the clause that names the nearest names, or, where none is near and they are many, the command whose page lists them."""
    choices = list(names)
    text = nearest(name, choices)
    return text if text.startswith("did you mean") or len(set(choices)) <= _MOST_LISTED else f"{page} lists them"


def with_own_keys(words: Sequence[str]) -> list[str]:
    """Return overrides with ++ before keys that no YAML file declares, and with ``report=none`` for ``report=false``.

    Hydra reads a path that begins with ``~`` in quotes only. Keys without a declaration are the hyper-parameters
    that users' feature maps and learners have added, and the keys of the groups `_OPEN`.
    """
    words = [re.sub(r"=(~[\w./~-]*)$", r"='\1'", word) for word in words]
    words = ["report=none" if word.lower() == "report=false" else word for word in words]  # Hydra takes names of choices alone
    return [f"++{word}" if _own_hyper(key := word.partition("=")[0]) or _open_group(key) else word for word in words]


def with_options_of_swept_groups(words: Sequence[str]) -> list[str]:
    """Return the words of a sweep in which an option of a group with several choices is a choice of one value.

    Hydra first composes what does not vary, with the default of the group, which may lack the option: ``loss=csosr,csovo
    loss.cost=squared``.
    """
    varying = {word.partition("=")[0] for word in words if word.partition("=")[0] in schema.GROUPS and "," in word}
    options = []
    for text in words:
        key, _, value = text.partition("=")
        alone = key.partition(".")[0] in varying and "." in key and value
        options.append(f"{key}=choice({value})" if alone and not _is_sweep(text) else text)
    return options


def _is_sweep(text: str) -> bool:
    try:
        (override,) = OverridesParser.create().parse_overrides([text])
    except HydraException:  # Hydra's own reading tells what is wrong
        return True
    return bool(override.is_sweep_override())


_OPEN = ("loss.options", "loss.grid", "tolerance", "relative_tolerance")
"""Groups whose keys no YAML file declares: arguments of a class of anybody's, or metrics; what a word leaves out stays as it is."""


def _open_group(key: str) -> str | None:
    """Return the group of `_OPEN` that a key is, or is in."""
    return next((group for group in _OPEN if key == group or key.startswith(f"{group}.")), None)


def _own_hyper(key: str) -> bool:
    """Tell whether a key is the value or the grid of a hyper-parameter in the table of `advcli.core.hyper`, from users' files."""
    match = re.fullmatch(r"(?:hyper|protocol\.stage[12])\.(\w+)", key)
    return match is not None and match[1] not in hyper.OURS and match[1] in hyper.known()


def refuse_added_keys(node: Any) -> None:
    """Refuse ``+key=value`` for a key that no YAML file declares: nobody would read it."""
    words = words_of(node)
    parsed = OverridesParser.create().parse_overrides(words)
    added = [override for override in parsed if override.is_add() or override.is_force_add()]
    suspects = [override for override in added if override.key_or_group not in node.runtime.choices]
    if not suspects:
        return
    loader = GlobalHydra.instance().config_loader()
    words = [word for word, override in zip(words, parsed, strict=True) if override not in suspects]
    words += [str(text) for text in node.overrides.hydra]  # such as where users' folders are
    declared = OmegaConf.to_container(without_hydra(loader.load_configuration(node.job.config_name, words, run_mode=RunMode.RUN)))
    keys = schema.keys(declared)
    for override in suspects:
        key = override.key_or_group
        # a YAML file that declares an empty mapping leaves its keys to the user
        parents = [key[:end] for end, letter in enumerate(key) if letter == "."]
        if (
            key not in keys
            and not _own_hyper(key)
            and _open_group(key) not in keys
            and not any(OmegaConf.select(OmegaConf.create(declared), parent) == {} for parent in parents)
        ):
            raise UnknownNameError(f"unknown key {key!r}; {nearest_key(key, keys)}")


def scalar_override(text: str) -> tuple[str, Any] | None:
    """Return (key, value) of an override that sets a key to a scalar, None for any other."""
    key, _, value = text.partition("=")
    if re.fullmatch(r"[A-Za-z_][\w.]*", key) is None or "$" in value or "?" in value:
        return None
    if re.fullmatch(r"0|[1-9]\d*", value):  # without the parser, which takes a millisecond
        return key, int(value)
    (override,) = OverridesParser.create().parse_overrides([text])
    read = override.value()
    return (key, read) if read is None or isinstance(read, bool | int | float | str) else None


def unknown_key(key: str, overrides: Sequence[str]) -> ConfigError:
    """Return the error about a key that does not exist, with the nearest keys of the config that the overrides choose."""
    known = _known_keys(overrides)
    if key.startswith("dataset.") and key not in known and key in _known_keys(["dataset=csv"]):
        return UnknownNameError(f"unknown key {key!r}: for a file of your own add dataset=csv")
    return UnknownNameError(f"unknown key {key!r}; {nearest_key(key, known)}")


def nearest_key(key: str, known: Sequence[str]) -> str:
    """Return the clause that names the nearest keys: of the same group, or the same key of any group."""
    parent, _, last = key.rpartition(".")
    if parent in known:
        return nearest(key, [name for name in known if name.rpartition(".")[0] == parent and name != parent])
    same = [name for name in known if name.rpartition(".")[2] == last]
    same = [name for name in same if name.partition(".")[0] in schema.GROUPS] or same
    text = suggestion(key, same or [name for name in known if "." not in name], "advcli help run")
    return text.replace("choose one of", "did you mean") + "?" if same and "?" not in text else text


def _known_keys(overrides: Sequence[str]) -> list[str]:
    """Return the keys of the config with the chosen group options alone, and the groups that can be added."""
    chosen = [word for word in overrides if word.partition("=")[0] in schema.GROUPS and "," not in word]
    for attempt in (chosen, []):
        try:
            with hydra.initialize_config_dir(str(conf_dir()), **BASE):
                return sorted({*schema.keys(OmegaConf.to_container(hydra.compose("config", attempt))), *groups()})
        except (HydraException, OmegaConfBaseException):
            continue
    return groups()
