"""Published numbers beside ours, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import pandas as pd

from ..results.folder import ResultsFolder
from .choice import Choice
from .published_numbers import compare_with_published
from .sections.facts import read_facts
from .sections.published import ours_beside, published_lines
from .sources import Sources
from .summary import summarise

MOST = 60
"""Lines that a terminal is given; of more those with the largest z-scores."""


def published_table(folder: ResultsFolder, key: str, choice: Choice | None = None, cells: Collection[str] | None = None) -> str:
    """Return ours beside the published numbers as text.

    Parameters
    ----------
    folder : ResultsFolder
    key : str
        One of `advcli.reports.published_numbers.published_keys`.
    choice : Choice, optional
        Methods and data sets that are shown, their order and names.
    cells : collection of str, optional
        Keys of the cells that are shown; default all of the folder.

    Returns
    -------
    str
        One line for each number that both have: means and deviations as printed and as computed, and z, the difference of the means in
        units of its standard error (`advcli.reports.published_numbers.z_score`). Empty if no row is shown.

    Raises
    ------
    ConfigError
        There are no published numbers of that name, or nothing has a name that was chosen.
    """
    from tabulate import tabulate

    sources = Sources([folder], merge=False)
    runs, names = (choice or Choice()).rows(sources.runs)
    if cells is not None:
        runs = runs[runs["cell"].isin(list(cells))]
    if runs.empty:
        return ""
    compared = names.shown(compare_with_published(summarise(runs), runs, key, read_facts(sources, runs["cell"]).cuts))
    source, *more = published_lines(compared, key)
    lines = ["", source, ""]
    if len(compared):
        head, rows = _rows(compared)
        body = tabulate(rows, head, tablefmt="simple", disable_numparse=True, colalign=["left"] * (len(head) - 4) + ["right"] * 4)
        lines += [body, ""]
    if len(compared) > MOST:
        more.append(f"shown are the {MOST} with the largest |z|; report.html has all {len(compared)}")
    if compared["z"].notna().any():
        more.append("z: difference of the means in units of its standard error; about one |z| in 20 lies above 2 by chance")
    return "\n".join([*lines, *more, ""]) + "\n"


def _rows(compared: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    several = compared["metric"].nunique() > 1
    if len(compared) > MOST:
        compared = compared.sort_values("z", key=lambda z: z.abs(), ascending=False, kind="stable").head(MOST)

    def line(row: dict[Any, Any]) -> list[str]:
        metric = [str(row["metric"]).replace("_", " ")] if several else []
        ours, difference = ours_beside(row)
        z = "-" if math.isnan(row["z"]) else f"{row['z']:+.2f}"
        return [str(row["dataset"]), str(row["method"]), *metric, str(row["published_method"]), str(row["printed"]), ours, difference, z]

    head = ["dataset", "method", *(["metric"] if several else []), "published as", "published", "ours", "difference", "z"]
    return head, [line(row) for row in compared.to_dict("records")]
