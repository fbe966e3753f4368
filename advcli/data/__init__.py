"""Data sets: where they come from, how they are checked, and what the rest of advcli sees of them.

A new kind of source is one file in ``advcli/data/sources`` and one YAML file in ``conf/dataset``.
"""

from __future__ import annotations

from .dataset import Dataset, check_trainable
from .fetching import Fetched, fetch
from .listing import Entry, default_options, list_datasets, show
from .registry import load, source_options

__all__ = [
    "Dataset",
    "Entry",
    "Fetched",
    "check_trainable",
    "default_options",
    "fetch",
    "list_datasets",
    "load",
    "show",
    "source_options",
]
