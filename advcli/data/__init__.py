"""From bytes to a Dataset; knows no learner.

A new kind of source is one file in ``advcli/data/sources`` and one YAML file in ``conf/dataset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .catalogue import Known, is_stored
from .dataset import Dataset, check_trainable, lonely_classes, make_dataset
from .fetching import Fetched, fetch
from .manifest import missing_line
from .registry import default_options, foresee, is_ordered, list_datasets, load, missing_files, path_names, show, size_text, source_options
from .source import LABEL_OPTIONS, TABLE_OPTIONS, Entry, Source

if TYPE_CHECKING:
    from .tables.tabular import from_table

__all__ = [
    "LABEL_OPTIONS",
    "TABLE_OPTIONS",
    "Dataset",
    "Entry",
    "Fetched",
    "Known",
    "Source",
    "check_trainable",
    "default_options",
    "fetch",
    "foresee",
    "from_table",
    "is_ordered",
    "is_stored",
    "list_datasets",
    "load",
    "lonely_classes",
    "make_dataset",
    "missing_files",
    "missing_line",
    "path_names",
    "show",
    "size_text",
    "source_options",
]


def __getattr__(name: str) -> Any:
    if name == "from_table":  # brings pandas, for which completion on every <TAB> does not wait
        from .tables.tabular import from_table

        return from_table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
