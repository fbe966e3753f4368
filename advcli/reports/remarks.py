"""Lines below a comparison table that stand on more than its rows: what selected, and which classes a method never finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ..metrics import Missed, missed_words, shown_as
from .formats.document import listed
from .summary import in_order


def selected_by(runs: pd.DataFrame, selected: Mapping[str, str]) -> dict[str, list[str]]:
    """Return for each metric that selected hyper-parameters the methods that it did this for, in the order of tables.

    ``selected`` is the metric of the search of each cell that has one; ``runs`` have the names of methods that are shown.
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
    """Return a line for every method that finds no row of some class, of ``missed`` by cell (`advcli.metrics.missed_classes`)."""
    cells = runs.drop_duplicates("cell")
    lines = []
    for method in in_order(cells["method"]):
        part = cells[cells["method"] == method]
        found = [(dataset, missed[str(cell)]) for dataset, cell in zip(part["dataset"], part["cell"], strict=True) if missed.get(str(cell))]
        if found:
            lines.append(f"{method}: {listed([f'on {dataset} it {missed_words(classes)}' for dataset, classes in found], '; ')}")
    return lines
