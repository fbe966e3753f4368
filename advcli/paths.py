"""Where configurations, data and results live."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent


def conf_dir() -> Path:
    """Return the absolute folder of the configuration files: the installed copy first, the checkout's second."""
    for folder in (_PACKAGE / "conf", _PACKAGE.parent / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise ConfigError(f"no configuration files beside {_PACKAGE}; reinstall advcli")


def data_dir(configured: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of data sets: the config key ``data_dir``, else ``ADVCLI_DATA``, else ``./data``."""
    return Path(configured or os.environ.get("ADVCLI_DATA") or "data").expanduser().absolute()


def results_dir(configured: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds one folder per experiment: the config key ``results_dir``, else ``./results``."""
    return Path(configured or "results").expanduser().absolute()
