"""The registry of sources: every module in ``advcli/data/sources``, or among a user's own files, that defines ``SOURCE`` is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .. import plugins
from ..errors import ConfigError, DataError, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from .dataset import Dataset
    from .listing import Entry

# Options that every source understands.
COMMON: dict[str, Any] = {"name": None, "source": None, "ordered": False, "sizes": None, "allow_small_classes": False}


@dataclass(frozen=True)
class Source:
    """A kind of place that data sets come from.

    Attributes
    ----------
    name : str
        The value of ``dataset.source``.
    options : mapping
        Its own options with their defaults; `COMMON` is added.
    load : callable (options, data_dir) -> Dataset
        Called with all options present and names checked.
    entries : callable (data_dir) -> list of Entry
        The data sets that it knows by name.
    own_splits : bool
        Its data sets bring their splits.
    """

    name: str
    options: Mapping[str, Any]
    load: Callable[[Mapping[str, Any], Path], Dataset]
    entries: Callable[[Path], list[Entry]]
    own_splits: bool = False


def sources() -> dict[str, Source]:
    """Return all sources by name, a user's own included; imports their modules, which need NumPy and pandas, on the first call."""
    return {**_found(plugins.load("dataset")), **_bundled()}


@cache
def _bundled() -> dict[str, Source]:
    import importlib
    import pkgutil

    from . import sources as package

    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return _found([importlib.import_module(f"{package.__name__}.{name}") for name in names])


def _found(modules: list[ModuleType]) -> dict[str, Source]:
    return {module.SOURCE.name: module.SOURCE for module in modules if hasattr(module, "SOURCE")}


def source_options(source: str) -> dict[str, Any]:
    """Return every option of a source with its default.

    Raises
    ------
    ConfigError
        No such source.
    """
    known = sources()
    if source not in known:
        raise ConfigError(f"dataset.source={source} does not exist; {nearest(source, known)}")
    return {**COMMON, **known[source].options}


def load(options: Mapping[str, Any], data_dir: Path, author_splits: bool = False) -> Dataset:
    """Load a data set; never uses the network.

    Parameters
    ----------
    options : mapping
        The ``dataset`` group of the configuration as a plain dict, with at least ``name`` and ``source``.
    data_dir : Path
        Folder of the data sets.
    author_splits : bool
        Take the splits that the authors published, and their own file of the data.

    Raises
    ------
    ConfigError
        An option that the source does not have, or a value that cannot be.
    DataError
        Data that are missing, damaged or not usable; the message names file, column and row, and the remedy.
    """
    complete = complete_options(options)
    if author_splits and not sources()[complete["source"]].own_splits:
        from .author_splits import load_author_splits

        return load_author_splits(complete, data_dir)
    return sources()[complete["source"]].load(complete, data_dir)


def complete_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the source's defaults filled in, after checking names and the common values."""
    if not options.get("name") or not options.get("source"):
        raise ConfigError("a data set needs dataset.name and dataset.source; the files in conf/dataset show how")
    source = str(options["source"])
    defaults = source_options(source)
    for key in options:
        if key not in defaults:
            raise ConfigError(f"dataset.{key} is not an option of dataset.source={source}; {nearest(key, defaults)}")
    complete = {**defaults, **options, "name": str(options["name"]), "source": source}
    for key in ("ordered", "allow_small_classes"):
        if not isinstance(complete[key], bool):
            raise ConfigError(f"dataset.{key}={complete[key]} must be true or false")
    sizes = complete["sizes"]
    if sizes is not None:
        sizes = list(sizes) if isinstance(sizes, (list, tuple)) else [sizes]
        if len(sizes) != 2 or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise ConfigError(f"dataset.sizes={complete['sizes']} must be [train rows, test rows], two positive whole numbers, or null")
    return complete


def require(condition: bool, message: str) -> None:
    """Raise a `DataError` with the message unless the condition holds."""
    if not condition:
        raise DataError(message)
