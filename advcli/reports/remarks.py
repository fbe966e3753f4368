"""Lines below a comparison table that stand on more than its rows: what selected, and which classes a method never finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ..metrics import Missed, missed_words, shown_as
from .summary import in_order

_MOST = 6
"""Names in a line; of more the number is said."""


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Return names in a line, the first of many."""
    return between.join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")


def selected_by(runs: pd.DataFrame, selected: Mapping[str, str]) -> dict[str, list[str]]:
    """Return for each metric that selected hyper-parameters the methods that it did this for, in the order of tables.

    Parameters
    ----------
    runs : DataFrame
        Rows, with the names of methods that are shown.
    selected : mapping of cell to str
        The metric of its search; a cell without a search has no entry.
    """
    cells = runs.drop_duplicates("cell")
    found: dict[str, list[str]] = {}
    for method in in_order(cells["method"]):
        for cell in cells.loc[cells["method"] == method, "cell"]:
            methods = found.setdefault(selected[str(cell)], []) if str(cell) in selected else None
            if methods is not None and method not in methods:
                methods.append(method)
    return found


def selection_lines(summary: pd.DataFrame, metric: str) -> list[str]:
    """Return the line of what selected hyper-parameters; empty where that is the metric of the table for every method."""
    found = {name: methods for name, methods in summary.attrs.get("selected", {}).items() if methods}
    if {shown_as(name).name for name in found} <= {shown_as(metric).name}:
        return []
    words = {name: shown_as(name).name.replace("_", " ") for name in found}
    if len(set(words.values())) == 1:
        return [f"hyper-parameters are selected by {next(iter(words.values()))}"]
    return ["hyper-parameters are selected by " + "; by ".join(f"{words[name]}: {listed(methods)}" for name, methods in found.items())]


def missed_lines(runs: pd.DataFrame, missed: Mapping[str, Sequence[Missed]]) -> list[str]:
    """Return a line for every method that finds no row of some class.

    Parameters
    ----------
    runs : DataFrame
        Rows, with the names of methods and data sets that are shown.
    missed : mapping of cell to sequence of Missed
        From `advcli.metrics.missed_classes`.
    """
    cells = runs.drop_duplicates("cell")
    lines = []
    for method in in_order(cells["method"]):
        part = cells[cells["method"] == method]
        found = [(dataset, missed[str(cell)]) for dataset, cell in zip(part["dataset"], part["cell"], strict=True) if missed.get(str(cell))]
        if found:
            lines.append(f"{method}: {listed([f'on {dataset} it {missed_words(classes)}' for dataset, classes in found], '; ')}")
    return lines
