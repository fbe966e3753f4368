"""What ``advcli data list`` and ``advcli data show`` say, as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import DataError, nearest
from .author_splits import published
from .catalogue import known_set
from .registry import entries, load, source_options, sources
from .source import Entry


def list_datasets(data_dir: Path) -> list[Entry]:
    """Return all data sets that the sources know by name, source by source."""
    order = {"sklearn": 0, "folder": 1}
    ordered = sorted(sources().values(), key=lambda source: (order.get(source.name, 2), source.name))
    return [entry for source in ordered for entry in entries(source, data_dir)]


def default_options(name: str, data_dir: Path | None = None) -> dict[str, Any]:
    """Return the options by which a data set is loaded when only its name is given, as in its YAML file; `DataError` for other names."""
    every = list_datasets(Path(data_dir) if data_dir is not None else Path("data"))
    entry = next((item for item in every if item.name == name), None)
    if entry is None:
        raise DataError(f"no data set is named {name!r}; {nearest(name, [item.name for item in every])} (see `advcli data list`)")
    return {**source_options(entry.source), "name": name, "source": entry.source, **entry.options}


def show(dataset: str | Mapping[str, Any], data_dir: Path) -> dict[str, str]:
    """Return what is known about one data set, as labelled lines of text.

    ``dataset`` is a name, or the ``dataset`` options of a configuration; a `DataError` says that no data set has that name.
    """
    options = default_options(dataset, data_dir) if isinstance(dataset, str) else dict(dataset)
    name, source = str(options.get("name")), str(options.get("source"))
    entry = next((item for item in list_datasets(data_dir) if (item.name, item.source) == (name, source)), None)
    lines = {"name": name, "source": source}
    if entry is not None:
        lines["task"] = entry.task
        if entry.citation:
            lines["from"] = entry.citation
        if entry.command == "not loadable yet":
            lines["here"] = "yes, but not loadable yet" if entry.here else "no"
            return lines
        if not entry.here:
            lines["here"] = f"no; get it with `{entry.command}`"
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
    known = known_set(name, source)
    if known is not None and known.tables:
        lines["used in"] = known.tables
    for number, note in enumerate(data.notes, start=1):
        lines[f"note {number}"] = note
    lines["sha256"] = data.sha256
    return lines


def _some(items: Any, count: int = 10) -> str:
    items = list(map(str, items))
    return ", ".join(items) if len(items) <= count else f"{', '.join(items[: count - 1])}, ..., {items[-1]}"
