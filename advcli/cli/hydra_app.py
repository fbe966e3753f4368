"""The Hydra application: it composes the config, calls the task, and its errors become one line."""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
import warnings
from pathlib import Path
from types import ModuleType

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from ..config import first_line, register_resolver
from ..errors import AdvcliError, ConfigError, nearest
from ..paths import conf_dir
from . import actions
from .launching import CellSweeper, RayLauncher
from .overrides import BASE, unknown_key
from .task import Task

_NO_CHOICES = {"hydra", "base"}  # Hydra's own groups, and files that others inherit from


def groups() -> str:
    """Return what ``advcli --help`` says about the groups, those of users' folders among them."""
    application = GlobalHydra.instance().hydra
    assert application is not None
    found = application.format_config_groups(lambda group: group.split("/")[0] not in _NO_CHOICES)
    return "\n  ".join(found.splitlines())  # as deep as the line in conf/hydra/help


register_resolver("advcli_actions", actions.usage, replace=True)  # conf/hydra/help
register_resolver("advcli_groups", groups, replace=True)


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
        with warnings.catch_warnings():
            # -m on top of a preset that sweeps by itself needs no remark
            warnings.filterwarnings("ignore", category=UserWarning, module="hydra")
            application()
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else 0
    except Exception as error:
        if not isinstance(error, HydraException | OmegaConfBaseException) and not _raised_in_hydra(error):
            raise
        raise _explain(error, flags) from error
    finally:
        sys.argv = arguments
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]
        GlobalHydra.instance().clear()
    return 0 if flags.cfg or flags.info or flags.shell_completion else None


def _raised_in_hydra(error: Exception) -> bool:
    """Return whether Hydra or OmegaConf made the error, themselves or through a call of the standard library."""
    theirs = {Path(hydra.__file__).parent, Path(str(sys.modules["omegaconf"].__file__)).parent, _joblib_launcher()}
    ours = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        above = Path(frame.filename).parents
        if theirs & set(above) or ours in above:
            return not isinstance(error, AdvcliError) and ours not in above
    return False


def _joblib_launcher() -> Path | None:
    module = sys.modules.get("hydra_plugins.hydra_joblib_launcher")
    return None if module is None else Path(str(module.__file__)).parent


def _explain(error: Exception, flags: argparse.Namespace) -> ConfigError:
    """Return one line for an error of Hydra: what is wrong and the nearest valid names."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if group == "hydra/launcher" and name.startswith("submitit"):
            return ConfigError(f'hydra/launcher={name} needs submitit; install it with: pip install "advcli[scale]"')
        return ConfigError(f"unknown {group} {name!r}; {nearest(name, error.options)}")
    if isinstance(error, OverrideParseException):
        if error.override in actions.names():
            return ConfigError(f"an action stands first: advcli {error.override} ...")
        return ConfigError(f"cannot read {error.override!r}: settings are written KEY=VALUE, texts with special characters KEY='\"VALUE\"'")
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return ConfigError(f"{where}{error.strerror or error}; choose the folder with results_dir= and name=, leave out hydra.run.dir")
    text = str(error).strip()
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match[1]
        if "No match in the defaults list" in text and "@" not in key:
            return ConfigError(f"{key} is not part of the default config; add it with +{key}=NAME")
        return unknown_key(key, flags.overrides)
    if match := re.search(r"looks like a config group override, but config group '([^']+)' does not exist", text):
        return unknown_key(match[1], flags.overrides)
    if match := re.search(r"Could not append to config. An item is already at '([^']+)'", text):
        return ConfigError(f"key {match[1]!r} exists; write it without +")
    if match := re.search(r"Ambiguous value for argument '(.*)'\n|Sweep parameters '(.*)' requires", text):
        return ConfigError(f"'{match[1] or match[2]}' gives several values: add -m for a sweep, or write one value")
    if "Config group override must be a string" in text:
        return ConfigError("a config group takes the name of one of its choices (loss=zero_one), not null or a number")
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else None
    parts = [first_line(part) for part in (error, cause) if part is not None and str(part).strip()]
    return ConfigError(": ".join(dict.fromkeys(parts)) or f"the configuration cannot be composed ({type(error).__name__})")


def _register_plugins() -> None:
    """Give Hydra our plugins under their names in conf/hydra.

    Hydra takes plugins from the package ``hydra_plugins`` only. A file of ours in that shared package would hide those of other
    projects in an editable install, so the module is made here.
    """
    module = ModuleType("hydra_plugins.advcli")
    sys.modules[module.__name__] = module
    for plugin in (CellSweeper, RayLauncher):
        setattr(module, plugin.__name__, plugin)
        plugin.__module__ = module.__name__
        Plugins.instance().register(plugin)
