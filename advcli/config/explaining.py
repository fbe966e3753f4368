"""Errors of Hydra and OmegaConf as one line: what is wrong and the nearest valid names."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from ..core.errors import AdvcliError, ConfigError
from ..core.files import explained
from .schema import first_line
from .words import unknown_choice, unknown_key


def explain(error: Exception, words: Sequence[str]) -> ConfigError | None:
    """Return one line for an error of Hydra or OmegaConf about composed overrides, None for any other."""
    if isinstance(error, BrokenPipeError) or not (isinstance(error, HydraException | OmegaConfBaseException) or _raised_in_hydra(error)):
        return None
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if group == "hydra/launcher" and name.startswith("submitit"):
            return ConfigError(f'hydra/launcher={name} needs submitit; install it with: pip install "advcli[scale]"')
        if error.missing_cfg_file.startswith("dataset/"):  # a file in a folder
            group, name = "dataset", error.missing_cfg_file.removeprefix("dataset/")
        return unknown_choice(group, name, error.options)
    if isinstance(error, OverrideParseException):
        return ConfigError(f"cannot read {error.override!r}: settings are written KEY=VALUE, texts with special characters KEY='\"VALUE\"'")
    if isinstance(error, OSError):
        chosen = [word for word in words if word.startswith(("hydra.run.dir=", "hydra.sweep."))]
        return ConfigError("; ".join([explained(error), *(f"leave out {word}" for word in chosen)]))
    text = str(error).strip()
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match[1]
        if "No match in the defaults list" in text and "@" not in key:
            return ConfigError(f"{key} is not part of the default config; add it with +{key}=NAME")
        return unknown_key(key, words)
    if match := re.search(r"looks like a config group override, but config group '([^']+)' does not exist", text):
        return unknown_key(match[1], words)
    if match := re.search(r"Could not append to config. An item is already at '([^']+)'", text):
        return ConfigError(f"key {match[1]!r} exists; write it without +")
    if match := re.search(r"Ambiguous value for argument '(.*)'\n|Sweep parameters '(.*)' requires", text):
        return ConfigError(f"'{match[1] or match[2]}' gives several values: add -m for a sweep, or write one value")
    if "Config group override must be a string" in text:
        return ConfigError("a config group takes the name of one of its choices (loss=zero_one), not null or a number")
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else None
    parts = [first_line(part) for part in (error, cause) if part is not None and str(part).strip()]
    return ConfigError(": ".join(dict.fromkeys(parts)) or f"the configuration cannot be composed ({type(error).__name__})")


def _raised_in_hydra(error: Exception) -> bool:
    """Return whether Hydra or OmegaConf made the error, themselves or through a call of the standard library."""
    names = ("hydra", "omegaconf", "hydra_plugins.hydra_joblib_launcher")
    theirs = {Path(str(module.__file__)).parent for name in names if (module := sys.modules.get(name)) is not None}
    ours = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        above = Path(frame.filename).parents
        if theirs & set(above) or ours in above:
            return not isinstance(error, AdvcliError) and ours not in above
    return False
