"""Where configurations, data and results live."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import ConfigError, DataError

_PACKAGE = Path(__file__).resolve().parents[1]


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder for the ``~`` or ``~NAME`` that begins it; without such a home ``~`` is part of the name."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def read_once(path: Path) -> bool:
    """Return whether a path is a pipe or a device: what is read of it is not there again."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):  # nothing, or no path at all
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def refuse_pipe(path: Path) -> None:
    """Raise `DataError` for what can be read once, where a file is read again by every process and every run."""
    if read_once(path):
        raise DataError(f"{path} is a pipe or a device, which can be read once only; save what it holds as a file and name that")


def conf_dir() -> Path:
    """Return the absolute folder of the configuration files: the installed copy first, the checkout's second."""
    for folder in (_PACKAGE / "conf", _PACKAGE.parent / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigError(f"no configuration files beside {_PACKAGE}; reinstall advcli")


def data_dir(configured: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of data sets: the config key ``data_dir``, else ``ADVCLI_DATA``, else ``data`` of the checkout, else ``./data``.

    The checkout is the folder that the code runs from, also with an editable install.
    """
    chosen = configured or os.environ.get("ADVCLI_DATA")
    own = _PACKAGE.parent / "data"
    if not chosen and (own / "MANIFEST.csv").is_file() and (_PACKAGE.parent / "conf" / "config.yaml").is_file():
        return own
    return expanded(chosen or "data").absolute()


def results_dir(configured: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds one folder per experiment: the config key ``results_dir``, else ``./results``."""
    return expanded(configured or "results").absolute()
