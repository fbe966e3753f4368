"""The registry of sources, the data sets that they know by name, and loading one.

Every module in ``advcli/data/sources``, or among a user's own files, that defines ``SOURCE``, or ``SOURCES`` of several, is one.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core import paths, plugins
from ..core.errors import ConfigError, DataError, UnknownNameError, nearest
from ..core.notes import noted
from .author_splits import FOLDER, load_author_splits, published
from .catalogue import CATALOGUE, known_set
from .dataset import Dataset
from .source import Entry, Source


def sources() -> dict[str, Source]:
    """Return all sources by name, a user's own included; imports their modules, which need NumPy and pandas, on the first call."""
    return {**_found(plugins.load("dataset")), **_bundled()}


@cache
def _bundled() -> dict[str, Source]:
    package = f"{__package__}.sources"
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).with_name("sources"))]))
    return _found([importlib.import_module(f"{package}.{name}") for name in names])


def _found(modules: list[ModuleType]) -> dict[str, Source]:
    items = [source for module in modules for source in getattr(module, "SOURCES", None) or [getattr(module, "SOURCE", None)]]
    return {source.name: source for source in items if source is not None}


def _source(name: str) -> Source:
    by_name = sources()
    if name not in by_name:
        file_of_name = next((file for file in plugins.files("dataset") if file.stem == name), None)
        if file_of_name is not None:
            raise ConfigError(f"{file_of_name} defines no SOURCE with the name {name!r}; write SOURCE = Source({name!r}, options, load)")
        raise UnknownNameError(f"dataset.source={name} does not exist; {nearest(name, by_name)}")
    return by_name[name]


def source_options(source: str) -> dict[str, Any]:
    """Return every option of a source with its default; `ConfigError` for an unknown source."""
    return _source(source).defaults


def entries(source: Source, data_dir: Path) -> list[Entry]:
    """Return the data sets that a source knows by name: its list, else its data sets of the catalogue, which need no download."""
    if source.entries is not None:
        return source.entries(data_dir)
    return [
        Entry(k.name, source.name, k.rows, k.features, k.classes, k.task, True, k.override, k.citation, k.options)
        for k in CATALOGUE.get(source.name, {}).values()
    ]


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
    source, complete = _chosen(options)
    if author_splits and not source.own_splits:
        dataset = load_author_splits(complete, data_dir, source.load)
    else:
        dataset = source.load(complete, data_dir)
        if not isinstance(dataset, Dataset):
            fault = f"returned a {type(dataset).__name__}, not a Dataset (advcli.data.make_dataset)"
            raise DataError(f"dataset.source={source.name}: its load {fault}{plugins.defined_at(source.load)}")
    facts = known_set(complete["name"], source.name)
    if facts is None:
        return dataset
    notes, occurring = [noted("ADV111", facts.note)] if facts.note else [], len(dataset.classes)
    if facts.printed_classes not in (None, occurring) and complete.get("cut") in (None, "none"):
        notes.append(noted("ADV111", f"{occurring} classes occur; the papers print {facts.printed_classes}"))
    return replace(dataset, notes=(*dataset.notes, *notes))


def missing_files(options: Mapping[str, Any], data_dir: Path, author_splits: bool = False) -> list[Path]:
    """Return the files of a set of the catalogue that are not in the data folder, none where it needs none; parameters as for `load`."""
    source, complete = _chosen(options)
    if source.files is None or known_set(complete["name"], source.name) is None:
        return []
    files = source.files(complete, data_dir)
    authors = published(complete["name"], source.name) if author_splits and not source.own_splits else None
    if authors is not None:
        theirs = [data_dir / FOLDER / file for file in authors.files]
        files = theirs if authors.own_table else files + theirs
    return [file for file in files if not file.is_file()]


def foresee(options: Mapping[str, Any]) -> Callable[[Dataset], list[str]] | None:
    """Return what tells of a data set that is loaded before any work (`Source.foresee`); None where it is not. Raises as `load`."""
    return _chosen(options)[0].foresee


def path_names(options: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of a data set's options that are paths, as its source declares them; none for a source that there is not."""
    source = sources().get(str(options.get("source")))
    return frozenset() if source is None else frozenset(source.paths)


def is_ordered(options: Mapping[str, Any], author_splits: bool = False) -> bool | None:
    """Return whether the classes of a data set will have an order (`Dataset.ordered`), before it is loaded; parameters as for `load`.

    None where only loading tells: a source of somebody's own that does not say.
    """
    source, complete = _chosen(options)
    if author_splits and not source.own_splits:
        authors = published(complete["name"], source.name)
        if authors is not None and authors.own_table:
            return True
    return source.is_ordered(complete)


def complete_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the source's defaults filled in, after checking names and the common values (`Source.complete`)."""
    return _chosen(options)[1]


def _chosen(options: Mapping[str, Any]) -> tuple[Source, dict[str, Any]]:
    """Return the source of a data set and its complete options."""
    if not options.get("name") or not options.get("source"):
        raise ConfigError("a data set needs dataset.name and dataset.source; the files in conf/dataset show how")
    source = _source(str(options["source"]))
    return source, source.complete(options)


# ---- what `advcli data list` and `advcli data show` say -----------------------------------------------------------------
def list_datasets(data_dir: Path) -> list[Entry]:
    """Return all data sets that the sources know by name, source by source."""
    order = {"sklearn": 0, "folder": 1}
    ordered = sorted(sources().values(), key=lambda source: (order.get(source.name, 2), source.name))
    found = [entry for source in ordered for entry in entries(source, data_dir)]
    return found + [Entry(k.name, k.source, None, None, None, k.task, False, "", note=k.note) for k in CATALOGUE["unavailable"].values()]


def default_options(name: str, data_dir: Path | None = None) -> dict[str, Any]:
    """Return the options by which a data set is loaded when only its name is given, as in its YAML file; `DataError` for other names."""
    every = list_datasets(Path(data_dir) if data_dir is not None else paths.data_dir())
    entry = next((item for item in every if item.name == name), None)
    if entry is None:
        raise DataError(f"no data set is named {name!r}; {nearest(name, [item.name for item in every])} (see `advcli data list`)")
    if entry.source == "unavailable":
        return {"name": name, "source": entry.source}
    return {**source_options(entry.source), "name": name, "source": entry.source, **entry.options}


def show(dataset: str | Mapping[str, Any], data_dir: Path) -> dict[str, str]:
    """Return what is known about one data set, as labelled lines of text.

    ``dataset`` is a name, or the ``dataset`` options of a configuration; a `DataError` says that no data set has that name.
    """
    options = default_options(dataset, data_dir) if isinstance(dataset, str) else dict(dataset)
    name, source = str(options.get("name")), str(options.get("source"))
    entry = next((item for item in list_datasets(data_dir) if (item.name, item.source) == (name, source)), None)
    lines, facts = {"name": name, "source": source}, known_set(name, source)
    if entry is not None:
        lines["task"] = entry.task
        if entry.citation:
            lines["from"] = entry.citation
        if facts is not None and facts.tables:
            lines["used in"] = facts.tables
        if entry.licence:
            lines["licence"] = entry.licence
        if not entry.command:
            return lines | {"here": f"no, and not available: {entry.note}"}
        if entry.command == "not loadable yet":
            return lines | {"here": "yes, but not loadable yet"}
        if not entry.here:
            size = f" ({size_text(entry.size)})" if entry.size else ""
            lines["here"] = f"no; get it with `{entry.command}`{size}"
            return lines | {key: str(getattr(entry, key)) for key in ("rows", "features", "classes")}
    data = load(options, data_dir)
    n, d = data.X.shape
    lines["here"] = "yes"
    lines["rows"] = str(n)
    lines["features"] = f"{d}: {_some(data.feature_names)}"
    lines["classes"] = f"{len(data.classes)}: " + _some([f"{label} ({count})" for label, count in data.class_sizes().items()], 30)
    lines["ordered"] = "yes" if data.ordered else "no"
    if data.sizes is not None:
        lines["split sizes"] = f"{data.sizes[0]} train, {data.sizes[1]} test"
    if published(name, source) is not None:
        lines["authors' splits"] = "protocol=author_splits"
    for number, note in enumerate(data.notes, start=1):
        lines[f"note {number}"] = note
    lines["sha256"] = data.sha256
    return lines


def size_text(size: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{max(size / 1e3, 0.1):.1f} kB"


def _some(items: Any, count: int = 10) -> str:
    items = list(map(str, items))
    return ", ".join(items) if len(items) <= count else f"{', '.join(items[: count - 1])}, ..., {items[-1]}"
