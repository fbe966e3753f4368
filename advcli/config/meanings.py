"""Choices and keys with their meaning and default, read from the comments of the YAML files in conf/ and in users' folders.

The comment at the top of a file describes the choice, the comment above a key describes the key. A line ``Other names: a, b.`` in the
first of them lists words that people use for the choice elsewhere: an error about an unknown choice suggests it for them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from ..core import plugins
from ..core.paths import conf_dir
from .schema import GROUPS, leaves

_HIDDEN = {"hydra", "base", "__pycache__"}  # Hydra's own groups, and files that others inherit from
_NAMES = re.compile(r"\s*Other names: ([^.]*)\.")
_SENTENCE = re.compile(r"(?<! al)(?<!Fig)(?<! [A-Z])\.(?= [A-Z])")
_KEY = re.compile(r"( *)([A-Za-z_]\w*):(?: |$)")


@dataclass(frozen=True)
class Key:
    """A key of the configuration: its name with dots, its default as people type it, and the comment above it."""

    name: str
    default: str
    meaning: str


def groups() -> list[str]:
    """Return the names of all groups: the groups of the default configuration first, then the groups that ``+GROUP=NAME`` adds."""
    folders = {entry.name for folder in _folders() if folder.is_dir() for entry in folder.iterdir() if any(entry.glob("*.yaml"))}
    return [*GROUPS, *sorted(folders - _HIDDEN - set(GROUPS))]


def choices(group: str) -> dict[str, Path]:
    """Return the files of a group by the name of the choice, in alphabetical order; a user's file replaces one of ours."""
    files = {file.stem: file for folder in _folders() for file in (folder / group).glob("*.yaml")}
    return dict(sorted(files.items()))


def _folders() -> list[Path]:
    return [conf_dir(), *map(Path, plugins.folders())]


def defaults() -> dict[str, str]:
    """Return the choice of each group in the default configuration."""
    entries = read_yaml(conf_dir() / "config.yaml")["defaults"]
    return {group: name for entry in entries if isinstance(entry, dict) for group, name in entry.items() if group in GROUPS}


def described(file: Path) -> str:
    """Return the comment at the top of a file without its other names."""
    return _NAMES.sub("", _top(file)).strip()


def first_sentence(text: str) -> str:
    """Return the first sentence of a description; none ends after al., Fig. or an initial."""
    ends = _SENTENCE.search(text)
    return text if ends is None else text[: ends.end()]


def elsewhere(group: str, word: str) -> list[str]:
    """Return the choices of a group that a word means: it is one of their other names, or their name in another spelling."""
    wanted, found = _spelt(word), []
    for name, file in choices(group).items():
        names = _NAMES.search(_top(file))
        if wanted in map(_spelt, [name, *(names[1].split(",") if names else [])]):
            found.append(name)
    return found


def _spelt(word: str) -> str:
    return re.sub(r"[\W_]+", "", word.lower())


def named_keys(asked: Iterable[str] | None = None) -> list[Key]:
    """Return the keys of the default configuration; with ``asked`` only keys of these names and below them, in this order."""
    known = _keys(conf_dir() / "config.yaml", "")
    for group, name in defaults().items():
        known |= _keys(choices(group)[name], group)
    if asked is None:
        return list(known.values())
    return [key for name in asked for key in known.values() if key.name == name or key.name.startswith(f"{name}.")]


def changed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a composed configuration that differ from the defaults, by their dotted keys."""
    known = {key.name: key.default for key in named_keys()}
    values = {".".join(path): value for path, value in leaves(config).items()}
    return {key: value for key, value in values.items() if key in known and _typed(value) != known[key]}


def keys_of(group: str, name: str) -> list[Key]:
    """Return the keys that a choice of a group brings, its ``name`` aside."""
    return [key for key in _keys(choices(group)[name], group).values() if key.name != f"{group}.name"]


def _top(file: Path) -> str:
    """Return the comment at the top of a file as one line."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines += [] if line.startswith("# @package") else [line.lstrip("# ").strip()]
    return " ".join(lines)


def read_yaml(file: Path) -> Any:
    """Return the content of a file, interpolations as they are written."""
    return OmegaConf.to_container(OmegaConf.load(file), resolve=False)


def _keys(file: Path, prefix: str) -> dict[str, Key]:
    """Return the keys of a file and of its bases, by name; a key without a comment has the comment of the base."""
    known: dict[str, Key] = {}
    content = read_yaml(file) or {}
    for entry in content.pop("defaults", ()):
        base = entry.partition("@")[0] if isinstance(entry, str) else "_self_"
        if base != "_self_":
            folder = conf_dir() if base.startswith("/") else file.parent
            inherited = folder / f"{base.lstrip('/')}.yaml"
            known |= _keys(inherited, prefix or entry.rpartition("@")[2]) if inherited.is_file() else {}  # else one of Hydra's own
    if file.read_text(encoding="utf-8").startswith("# @package _global_"):
        prefix = ""
    for key in _own(file, content, prefix):
        known[key.name] = replace(key, meaning=key.meaning or (known[key.name].meaning if key.name in known else ""))
    return known


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _own(file: Path, content: Any, prefix: str) -> Iterator[Key]:
    """Yield the keys that a file itself sets; the comment at its top is about the file and no key."""
    comment: list[str] = []
    path: list[tuple[int, str]] = []
    for line in itertools.dropwhile(lambda line: line.startswith("#"), file.read_text(encoding="utf-8").splitlines()):
        if line.lstrip().startswith("#"):
            comment.append(line.lstrip("# ").strip())
            continue
        if match := _KEY.match(line):
            path = [*(part for part in path if part[0] < len(match[1])), (len(match[1]), match[2])]
            names = [name for _, name in path]
            value = content
            for name in names:
                value = value.get(name, ...) if isinstance(value, dict) else ...
            top = not prefix and names[0] in {"hydra", "defaults"}
            if value is not ... and not top and (not isinstance(value, dict) or comment):
                text = "" if isinstance(value, dict) and value else _typed(value)
                yield Key(".".join([prefix, *names] if prefix else names), text, " ".join(comment))
        comment = []
