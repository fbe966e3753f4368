"""From bytes to a Dataset; knows no learner.

A new kind of source is one file in ``advcli/data/sources`` and one YAML file in ``conf/dataset``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dataset import Dataset, check_trainable, lonely_classes, make_dataset
from .fetching import Fetched, fetch, has_address
from .registry import default_options, foresee, is_ordered, list_datasets, load, missing_files, path_names, show, source_options
from .source import LABEL_OPTIONS, TABLE_OPTIONS, Entry, Source

if TYPE_CHECKING:
    from .tables.tabular import from_table

__all__ = ["Dataset", "Fetched", "check_trainable", "fetch", "from_table", "has_address", "lonely_classes", "make_dataset"]
__all__ += ["default_options", "foresee", "is_ordered", "list_datasets", "load", "missing_files", "path_names", "show", "source_options"]
__all__ += ["LABEL_OPTIONS", "TABLE_OPTIONS", "Entry", "Source"]


def __getattr__(name: str) -> Any:
    if name == "from_table":  # brings pandas, for which completion on every <TAB> does not wait
        from .tables.tabular import from_table

        return from_table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
