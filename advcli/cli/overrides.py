"""The words ``KEY=VALUE``: what they set, and the nearest key when nothing has that name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .. import config as configuration
from .. import hyper
from ..errors import ConfigError, nearest
from ..paths import conf_dir

# Hydra 1.4 drops the parameter that asks 1.3 for the behaviour that both have
BASE: dict[str, Any] = {"version_base": "1.3"} if hydra.__version__.startswith("1.3.") else {}


def own(config: DictConfig) -> DictConfig:
    """Return a composed config without Hydra's node."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def words_of(node: Any) -> list[str]:
    """Return the overrides of a job as they were written: OmegaConf would take an interpolation in one for its own."""
    return list(OmegaConf.to_container(node.overrides.task, resolve=False))  # type: ignore[arg-type]


def refuse_paths(overrides: Sequence[str]) -> None:
    """Refuse ``GROUP=../FILE``: Hydra would look for a file there, and the choice would have another name in the rows."""
    for word in overrides:
        key, _, values = word.lstrip("+").partition("=")
        group = key.partition("@")[0]
        for value in values.split(","):
            if "/" in value and {"", ".", ".."} & set(value.strip().split("/")) and (conf_dir() / group).is_dir():
                names = [file.stem for file in (conf_dir() / group).glob("*.yaml")]
                raise ConfigError(f"unknown {group} {value.strip()!r}; {nearest(value.rpartition('/')[2], names)}")


def with_own_hyper(words: Sequence[str]) -> list[str]:
    """Return overrides with ++ before the hyper-parameters that users' feature maps and learners have added: no YAML file declares them."""
    return [f"++{word}" if _own_hyper(word.partition("=")[0]) else word for word in words]


def _own_hyper(key: str) -> bool:
    """Tell whether a key is the value or the grid of a hyper-parameter in the table of `advcli.hyper`, from users' files."""
    found = re.fullmatch(r"(?:hyper|protocol\.stage[12])\.(\w+)", key)
    return found is not None and found[1] not in hyper.OURS and found[1] in hyper.known()


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
    declared = OmegaConf.to_container(own(loader.load_configuration(node.job.config_name, words, run_mode=RunMode.RUN)))
    known = configuration.keys(declared)
    for override in suspects:
        key = override.key_or_group
        # a YAML file that declares an empty mapping leaves its keys to the user
        parents = [key[:at] for at, letter in enumerate(key) if letter == "."]
        if (
            key not in known
            and not _own_hyper(key)
            and not any(OmegaConf.select(OmegaConf.create(declared), parent) == {} for parent in parents)
        ):
            raise ConfigError(f"unknown key {key!r}; {nearest_key(key, known)}")


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
    return ConfigError(f"unknown key {key!r}; {nearest_key(key, _known_keys(overrides))}")


def nearest_key(key: str, known: Sequence[str]) -> str:
    """Return the clause that names the nearest keys: of the same group, or the same key of any group."""
    parent, _, last = key.rpartition(".")
    if parent in known:
        return nearest(key, [name for name in known if name.rpartition(".")[0] == parent and name != parent])
    same = [name for name in known if name.rpartition(".")[2] == last]
    same = [name for name in same if name.partition(".")[0] in configuration.GROUPS] or same
    text = nearest(key, same or [name for name in known if "." not in name])
    return text.replace("choose one of", "did you mean") + "?" if same and "?" not in text else text


def _known_keys(overrides: Sequence[str]) -> list[str]:
    """Return the keys of the config with the chosen group options alone, and the groups that can be added."""
    groups = sorted(folder.name for folder in conf_dir().iterdir() if folder.is_dir() and folder.name not in {"hydra", "__pycache__"})
    chosen = [word for word in overrides if word.partition("=")[0] in configuration.GROUPS and "," not in word]
    for attempt in (chosen, []):
        try:
            with hydra.initialize_config_dir(str(conf_dir()), **BASE):
                return sorted({*configuration.keys(OmegaConf.to_container(hydra.compose("config", attempt))), *groups})
        except (HydraException, OmegaConfBaseException):
            continue
    return groups
