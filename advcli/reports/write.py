"""Report files of a results folder."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import pandas as pd

from ..records import ResultsFolder, atomic_file, format_value, plain, write_text
from .summary import SUMMARY_COLUMNS, summarise
from .table import comparison_table


def write_reports(
    folder: ResultsFolder,
    test: str = "corrected_ttest",
    alpha: float = 0.05,
    metric: str | None = None,
    notes: Sequence[str] = (),
) -> pd.DataFrame:
    """Merge the folder's cells and write summary.csv (all metrics) and table.md (one metric) from the rows alone.

    Works on a finished or a partial sweep.

    Parameters
    ----------
    folder : ResultsFolder
    test, alpha
        Test (a name in `advcli.statistics.TESTS`) and its level.
    metric : str, optional
        Metric of the table; default the one that the searches used.
    notes : sequence of str
        Lines below the table.

    Returns
    -------
    DataFrame
        The summary; give it to `comparison_table` for the terminal.

    Raises
    ------
    ResultsError
        If there are no rows or the files cannot be written.
    ConfigError
        For an unknown test or metric.
    """
    folder.merge()
    runs = folder.runs()
    if metric is not None:
        summarise(runs, test, alpha, metric)  # refuses a metric that no row has, before anything is written
    summary = summarise(runs, test, alpha)
    if metric is not None:
        summary.attrs["primary"] = metric
    with atomic_file(folder.path / "summary.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SUMMARY_COLUMNS)
        for row in summary.itertuples(index=False):
            # An undefined number is an empty field, as in runs.csv.
            writer.writerow(["" if value != value else format_value(value) for value in map(plain, row)])
    write_text(folder.path / "table.md", comparison_table(summary, test=test, alpha=alpha, style="markdown", notes=notes))
    return summary
