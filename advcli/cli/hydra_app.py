"""The Hydra application: it composes the config, calls the task, and its errors become one line."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType

import hydra
from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import OverrideParseException

from ..config.explaining import explain
from ..config.words import BASE
from ..core.errors import ConfigError
from ..core.paths import conf_dir
from . import actions
from .help_texts import lazy_help_texts
from .launching import CellSweeper, RayLauncher
from .task import Task


def run_hydra(task: Task, words: list[str], flags: argparse.Namespace) -> int | None:
    """Hand the words to Hydra, which calls ``task`` with the composed config.

    Returns
    -------
    int or None
        None when the task ran; an exit code when Hydra only showed something (help, config, completion).
    """
    _register_plugins()
    application = hydra.main(**BASE, config_path=str(conf_dir()), config_name="config")(task)
    arguments, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    # With this variable Hydra raises its errors, otherwise it prints several lines and exits.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [arguments[0], *words]
    try:
        with warnings.catch_warnings(), lazy_help_texts(), _callers_logging(), _composed_once(words, flags):
            # -m on top of a preset that sweeps by itself needs no remark
            warnings.filterwarnings("ignore", category=UserWarning, module="hydra")
            application()
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else 0
    except Exception as error:
        if isinstance(error, OverrideParseException) and error.override in actions.names():
            raise ConfigError(f"an action stands first: advcli {error.override} ...") from error
        explained = explain(error, flags.overrides)
        if explained is None:
            raise
        raise explained from error
    finally:
        sys.argv = arguments
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]
        GlobalHydra.instance().clear()
    return 0 if flags.cfg or flags.info or flags.shell_completion else None


@contextlib.contextmanager
def _composed_once(words: list[str], flags: argparse.Namespace) -> Iterator[None]:
    """Let Hydra compose the config once where the mode is known: to find ``hydra.mode`` it composes the config one more time.

    Among our files presets alone choose a mode, which a word adds (``+experiment=``); a user's files may.
    """
    chosen = any(re.match(r"[+~]|hydra(\.mode)?=", word) for word in flags.overrides)
    unknown = chosen or flags.config_dir or flags.config_path or flags.config_name
    if unknown and not flags.multirun and "hydra.mode=RUN" not in words:
        yield
        return
    looked = Hydra.get_mode
    Hydra.get_mode = lambda *_, **__: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Hydra.get_mode = looked  # type: ignore[method-assign]


@contextlib.contextmanager
def _callers_logging() -> Iterator[None]:
    """Leave logging as the caller has it: ``--info`` adds a handler for this standard output, and lets messages for debugging through."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


def _register_plugins() -> None:
    """Give Hydra our plugins under their names in conf/hydra.

    Hydra takes plugins from the package ``hydra_plugins`` only. A file of ours in that shared package would hide the plugins of other
    projects in an editable install, so the module is made here.
    """
    module = ModuleType("hydra_plugins.advcli")
    sys.modules[module.__name__] = module
    for plugin in (CellSweeper, RayLauncher):
        setattr(module, plugin.__name__, plugin)
        plugin.__module__ = module.__name__
        Plugins.instance().register(plugin)
