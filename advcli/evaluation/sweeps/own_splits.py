"""A splitter of scikit-learn as the rule of a sweep: its splits, and folds of searches by the same splitter, become a table of splits."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import AdvcliError, ConfigError
from ...core.files import write_bytes
from ...results.split_table import GivenSplit, lines_of, table_text
from ..cell import Cell
from ..part import Part
from ..recipe import Recipe, shared_data
from ..splits import Split

if TYPE_CHECKING:
    from ...config import Settings


@contextlib.contextmanager
def written(cv: Any, cells: Sequence[Settings], file: Path) -> Iterator[dict[str, Any]]:
    """Write the splits of every data set of cells into a file, and yield the keys that name it; a call that is refused leaves none new.

    ``cv`` is a splitter of scikit-learn, a number of folds, or pairs of (training, test) row numbers.
    """
    lines: list[tuple[str, ...]] = []
    most = 0
    of_set: dict[str, list[Cell]] = {}
    for settings in cells:
        of_set.setdefault(str(settings.dataset["name"]), []).append(Cell.of(settings).in_sweep)
    with shared_data():
        for some in of_set.values():
            # the method whose hyper-parameters are searched, if there is one, has folds
            drawn = [replace(cell, protocol=replace(cell.protocol, splits="random")) for cell in some]
            recipe = max((Recipe(cell, cells[0].data_dir) for cell in drawn), key=lambda one: len(one.axes.names))
            splits = _splits(cv, recipe)
            lines += lines_of(recipe.dataset.name, recipe.dataset.sha256, splits)
            most = max(most, len(splits))
    before = file.read_bytes() if file.is_file() else None
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, table_text(lines).encode(), "choose another folder")
    try:
        yield {"protocol.splits": str(file), "protocol.n_splits": most}
    except AdvcliError:
        if before is None:
            file.unlink()
        else:
            write_bytes(file, before, "choose another folder")
        raise


def _splits(cv: Any, recipe: Recipe) -> list[GivenSplit]:
    """Return the splits of a data set by a splitter, and the folds of those that have a search."""
    from sklearn.model_selection import PredefinedSplit, check_cv

    everything = recipe.part()
    codes = everything.y if isinstance(everything.y, np.ndarray) else None
    if isinstance(cv, str) or (isinstance(cv, int) and cv < 2):
        raise ConfigError(f"cv={cv!r} is no splitter; give one of scikit-learn, a number of folds from 2 on, or pairs of row numbers")
    try:
        splitter = check_cv(cv, codes, classifier=True)
    except ValueError as error:
        raise ConfigError(f"cv={_name(cv)}: {str(error).splitlines()[0]}") from None
    splits = _pairs(splitter, everything, _name(cv))
    if not splits:
        raise ConfigError(f"cv={_name(cv)} gives no splits")
    inner: Any = None if not hasattr(cv, "split") and not isinstance(cv, int) else copy.copy(splitter)
    if isinstance(inner, PredefinedSplit):  # says where rows of the whole data set are
        inner = None
    if hasattr(inner, "n_splits"):
        inner.n_splits = recipe.protocol.folds
    folds: dict[int, dict[int, list[Split]]] = {}
    for number, (train, _) in recipe.searched(splits) if inner is not None else ():
        found = _pairs(inner, recipe.part(train), f"{_name(cv)}, folds of split {number}")
        folds[number] = {1: [(train[fit], train[held]) for fit, held in found]}
    return [GivenSplit(*split, folds.get(number, {})) for number, split in enumerate(splits, start=1)]


def _pairs(splitter: Any, part: Part, what: str) -> list[Split]:
    """Return what a splitter makes of the rows of a part, positions in it; it sees them in the order of their times, if they have such."""
    n = part.X.shape[0]
    order = np.arange(n) if part.time is None else np.argsort(part.time, kind="stable")
    y = part.y[order] if isinstance(part.y, np.ndarray) else None
    try:
        found = [*splitter.split(np.zeros((n, 1)), y, None if part.group is None else part.group[order])]
    except (ValueError, TypeError, IndexError) as error:
        remedy = "; groups= names the column" if part.group is None and "groups" in str(error) else ""
        raise ConfigError(f"cv={what}: {str(error).splitlines()[0].rstrip('.')}{remedy}") from None
    return [(_rows(train, n, order, what), _rows(test, n, order, what)) for train, test in found]


def _rows(chosen: Any, n: int, order: Any, what: str) -> Any:
    rows = np.asarray(chosen)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
        raise ConfigError(f"cv={what}: a part must hold row numbers from 0 to {n - 1}, at least one")
    return order[rows].astype(np.intp)


def _name(cv: Any) -> str:
    return type(cv).__name__ if not isinstance(cv, int) else str(cv)
