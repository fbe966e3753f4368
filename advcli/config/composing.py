"""Settings of cells from plain words, composed by Hydra without an application around it; a sweep takes few compositions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import DictConfig

from ..core import plugins
from ..core.errors import ConfigError
from ..core.paths import conf_dir
from .explaining import explain
from .schema import leaves, plain
from .words import BASE, expand, refuse_added_keys, refuse_paths, scalar_override, with_own_keys, without_hydra, word, words_for

_ABSENT = object()


def compose_cells(
    cells: Sequence[str | Sequence[str] | Mapping[str, Any]], common: Mapping[str, Any]
) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Compose cells as ``advcli -m`` does, users' folders (`advcli.core.plugins`) included.

    Each of ``cells`` is one, or with ``value1,value2`` or a preset several (`advcli.config.words.words_for`); the keys of ``common`` are
    the same for all and no part of any. Returns the words of every cell, without the common ones, and its plain config. Words that cannot
    be read or composed, and keys of ``common`` or of Hydra among them, are a `ConfigError`.
    """
    words_by_cell = _words_of(cells, common)
    composer = _Composer(common)
    composer.composing = [text for words in words_by_cell for text in words]
    others, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None  # the instance of a caller's Hydra application
    try:
        with hydra.initialize_config_dir(str(conf_dir()), **BASE):
            words = [text for cell in words_by_cell for text in composer.expanded(cell)]
            same = len({tuple(text.partition("=")[0] for text in cell) for cell in words}) == 1
            return words, compose_all(words, composer.values, scalar_override) if same else [composer.values(cell) for cell in words]
    except Exception as error:
        explained = explain(error, composer.composing)
        if explained is None:
            raise
        raise explained from error
    finally:
        GlobalHydra.instance().hydra = others


def _words_of(cells: Sequence[str | Sequence[str] | Mapping[str, Any]], common: Mapping[str, Any]) -> list[list[str]]:
    """Return the words of every cell; refuse words that do not belong to a cell."""
    words_by_cell = [with_own_keys(words_for(cell)) for cell in cells]
    for text in (text for words in words_by_cell for text in words):
        key = text.lstrip("+~").partition("=")[0]
        if key in common or key.partition(".")[0].partition("/")[0] == "hydra":
            raise ConfigError(f"{text} is no part of a cell: the arguments of the call say where and how cells are computed")
        if "=" not in text and not text.startswith("~"):
            raise ConfigError(f"cannot read {text!r}: settings are written KEY=VALUE")
    for words in words_by_cell:
        refuse_paths(words)
    return words_by_cell


class _Composer:
    """Hydra's compositions, with users' folders and the keys that all cells share; ``composing`` are the words of the last one."""

    def __init__(self, common: Mapping[str, Any]) -> None:
        folders = [f"file://{folder}" for folder in plugins.folders() if Path(folder).is_dir()]
        self.place = [word("hydra.searchpath", folders)] if folders else []
        self.common = [word(key, value) for key, value in common.items()]
        self.composing: Sequence[str] = []
        self.swept: dict[tuple[str, ...], Mapping[str, str] | None] = {(): None}

    def compose(self, words: Sequence[str]) -> DictConfig:
        """Return the config of a cell, with Hydra's own node."""
        self.composing = words
        loader: Any = GlobalHydra.instance().config_loader()
        config: DictConfig = loader.load_configuration("config", [*self.place, *words, *self.common], run_mode=RunMode.RUN)
        return config

    def values(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the plain config of a cell."""
        return plain(without_hydra(self.compose(words)))

    def expanded(self, words: Sequence[str]) -> list[list[str]]:
        """Return the words of every cell that words with several values, or a preset, make."""
        loader: Any = GlobalHydra.instance().config_loader()
        added = tuple(text for text in words if text.startswith("+") and not text.startswith("++"))
        if added not in self.swept:  # what presets sweep over
            master = loader.load_configuration("config", [*self.place, *added], run_mode=RunMode.MULTIRUN)
            self.swept[added] = master.hydra.sweeper.get("params")
        several = expand(loader, self.swept[added], words)
        refuse_added_keys(self.compose(several[0]).hydra)
        return several


def compose_all(
    jobs: Sequence[Sequence[str]], compose: Callable[[Sequence[str]], dict[str, Any]], read: Callable[[str], tuple[str, Any] | None]
) -> list[dict[str, Any]]:
    """Return the plain config of every job of a sweep, from few compositions: composing takes longer than a small cell.

    The jobs are all combinations of the values of their positions. Each value is composed once beside the first job's other values,
    which shows the keys that it changes. Where no two positions touch the same keys, a job's config is the first one's with all
    its changes; some jobs are composed in full to confirm it. Otherwise, and for short sweeps, every job is composed. ``read`` returns
    (dotted key, value) of an override that sets one existing key to a scalar, else None.
    """
    values = [len({job[position] for job in jobs}) - 1 for position in range(len(jobs[0]))]
    if 1 + sum(values) + 3 < len(jobs):
        configs = _combine(jobs, compose, read)
        checked = sorted({len(jobs) // 3, len(jobs) // 2, len(jobs) - 1})
        if configs is not None and all(configs[number] == compose(jobs[number]) for number in checked):
            return configs
    return [compose(job) for job in jobs]


def _combine(
    jobs: Sequence[Sequence[str]], compose: Callable[[Sequence[str]], dict[str, Any]], read: Callable[[str], tuple[str, Any] | None]
) -> list[dict[str, Any]] | None:
    first = list(jobs[0])
    base = leaves(compose(first))

    def effect(position: int, text: str) -> dict[tuple[str, ...], Any]:
        changed = leaves(compose([*first[:position], text, *first[position + 1 :]]))
        return {path: changed.get(path, _ABSENT) for path in {**base, **changed} if base.get(path, _ABSENT) != changed.get(path, _ABSENT)}

    effects: list[dict[str, dict[tuple[str, ...], Any]]] = []
    owner: dict[tuple[str, ...], int] = {}
    for position in range(len(first)):
        texts = list(dict.fromkeys(job[position] for job in jobs))
        effects_of: dict[str, dict[tuple[str, ...], Any]] = {first[position]: {}}
        if len(texts) > 4:
            # a long list of scalars for one key: two of them show whether anything else depends on it
            pairs = [read(text) for text in texts]
            plain_values = {text: {tuple(pair[0].split(".")): pair[1]} for text, pair in zip(texts, pairs, strict=True) if pair is not None}
            if len(plain_values) == len(texts) and all(effect(position, text) == plain_values[text] for text in (texts[1], texts[-1])):
                effects_of = plain_values
        effects_of |= {text: effect(position, text) for text in texts if text not in effects_of}
        effects.append(effects_of)
        for path in {path for changes in effects_of.values() for path in changes}:
            if owner.setdefault(path, position) != position:
                return None
    if any(owner.get(path[:depth], position) != position for path, position in owner.items() for depth in range(1, len(path))):
        return None
    configs = []
    for job in jobs:
        values = dict(base)
        for position, text in enumerate(job):
            values |= effects[position][text]
        configs.append(_nested({path: value for path, value in values.items() if value is not _ABSENT}))
    return configs


def _nested(leaves: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path, value in leaves.items():
        node = root
        for key in path[:-1]:
            node = node.setdefault(key, {})
        node[path[-1]] = value
    return root
