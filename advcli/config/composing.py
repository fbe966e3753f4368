"""Settings of cells from plain words, composed by Hydra without an application around it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
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
from .products import compose_all
from .schema import plain
from .words import BASE, expand, own, refuse_added_keys, refuse_paths, scalar_override, with_own_keys, word, words_for


def compose_cells(
    cells: Sequence[str | Sequence[str] | Mapping[str, Any]], common: Mapping[str, Any]
) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Compose cells as ``advcli -m`` does, users' folders (`advcli.core.plugins`) included.

    Parameters
    ----------
    cells : sequence of str, sequence of str or mapping
        Each a cell, or with ``value1,value2`` or a preset several (`advcli.config.words.words_for`).
    common : mapping
        Keys that are the same for all cells and no part of any.

    Returns
    -------
    words : list of list of str
        The words of every cell, without the common ones.
    configs : list of dict
        The plain config of every cell.

    Raises
    ------
    ConfigError
        For words that cannot be read or composed, and for keys of ``common`` or of Hydra among them.
    """
    given = [with_own_keys(words_for(cell)) for cell in cells]
    for text in (text for words in given for text in words):
        key = text.lstrip("+~").partition("=")[0]
        if key in common or key.partition(".")[0].partition("/")[0] == "hydra":
            raise ConfigError(f"{text} is no part of a cell: the arguments of the call say where and how cells are computed")
        if "=" not in text and not text.startswith("~"):
            raise ConfigError(f"cannot read {text!r}: settings are written KEY=VALUE")
    for words in given:
        refuse_paths(words)
    folders = [f"file://{folder}" for folder in plugins.folders() if Path(folder).is_dir()]
    place = [word("hydra.searchpath", folders)] if folders else []
    composing: Sequence[str] = [text for words in given for text in words]
    others, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None  # those of whoever calls from a Hydra application
    try:
        with hydra.initialize_config_dir(str(conf_dir()), **BASE):
            loader: Any = GlobalHydra.instance().config_loader()

            @functools.cache
            def swept(added: tuple[str, ...]) -> Mapping[str, str] | None:
                """Return what presets sweep over."""
                master = loader.load_configuration("config", [*place, *added], run_mode=RunMode.MULTIRUN)
                params: Mapping[str, str] | None = master.hydra.sweeper.get("params")
                return params

            def compose(words: Sequence[str]) -> DictConfig:
                nonlocal composing
                composing = words
                everything = [*words, *(word(key, value) for key, value in common.items())]
                config: DictConfig = loader.load_configuration("config", [*place, *everything], run_mode=RunMode.RUN)
                return config

            def values(words: Sequence[str]) -> dict[str, Any]:
                return plain(own(compose(words)))

            found: list[list[str]] = []
            for words in given:
                added = tuple(text for text in words if text.startswith("+") and not text.startswith("++"))
                several = expand(loader, swept(added) if added else None, words)
                refuse_added_keys(compose(several[0]).hydra)
                found += several
            same = len({tuple(text.partition("=")[0] for text in words) for words in found}) == 1
            return found, compose_all(found, values, scalar_override) if same else [values(words) for words in found]
    except Exception as error:
        explained = explain(error, composing)
        if explained is None:
            raise
        raise explained from error
    finally:
        GlobalHydra.instance().hydra = others
