"""Rows and tables of a results folder in the formats of other programs; the folder itself is only read."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from ..errors import ConfigError, ResultsError
from ..files import write_bytes, write_text
from ..records import ResultsFolder
from .content import contents
from .latex import latex
from .summary import summarise, with_unique_methods

_PARAMETERS = ("dataset", "method", "loss", "features", "solver", "seed", "C", "lambda", "gamma", "cell")
"""Columns of rows that are a cell's own, and become parameters of its MLflow run where they have one value in it."""


def _csv(folder: ResultsFolder, runs: pd.DataFrame, out: Path) -> str:
    write_text(out, runs.to_csv(index=False, lineterminator="\n"))
    return f"{len(runs)} rows"


def _parquet(folder: ResultsFolder, runs: pd.DataFrame, out: Path) -> str:
    content = io.BytesIO()
    try:
        runs.to_parquet(content, index=False, engine="pyarrow")
    except ImportError as error:
        raise ConfigError("parquet needs pyarrow: pip install 'advcli[export]'") from error
    write_bytes(out, content.getvalue())
    return f"{len(runs)} rows"


def _latex(folder: ResultsFolder, runs: pd.DataFrame, out: Path) -> str:
    named = with_unique_methods(runs)
    document = contents(folder.path.name, named, summarise(named)).document
    write_text(out, latex(document))
    return f"{sum(not table.is_long for table in document.tables)} tables"


def _mlflow(folder: ResultsFolder, runs: pd.DataFrame, out: Path) -> str:
    """Write one MLflow run for each cell: its parameters, and each metric with the split as its step; those already there are left.

    A cell that has got more splits or metrics since gets them in its run.
    """
    try:
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise ConfigError("mlflow needs the package: pip install 'advcli[export]'") from error
    # newer releases keep files without developing them, and want to be asked for them; its database would take a server's libraries
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    client = MlflowClient(tracking_uri=out.absolute().as_uri())
    name = folder.path.name
    found = client.get_experiment_by_name(name)
    experiment = client.create_experiment(name) if found is None else found.experiment_id
    known = {run.data.tags.get("advcli.cell"): run for run in client.search_runs([experiment], max_results=50_000)}
    new = grown = 0
    for cell, rows in runs.groupby("cell", sort=False):
        made = known.get(str(cell))
        if made is not None and made.data.tags.get("advcli.rows") == str(len(rows)):
            continue
        there: set[tuple[str, int]] = set()
        if made is None:
            title = f"{rows['dataset'].iloc[0]} {rows['method'].iloc[0]}"
            made = client.create_run(experiment, tags={"advcli.cell": str(cell)}, run_name=title)
            for column in _PARAMETERS:
                if column in rows and rows[column].nunique(dropna=True) == 1:
                    client.log_param(made.info.run_id, column, rows[column].dropna().iloc[0])
            new += 1
        else:
            there = {(name, each.step) for name in made.data.metrics for each in client.get_metric_history(made.info.run_id, name)}
            grown += 1
        for metric, split, value in zip(rows["metric"], rows["split"], rows["value"], strict=True):
            if isinstance(metric, str) and not math.isnan(value) and (metric, int(split)) not in there:
                client.log_metric(made.info.run_id, metric, float(value), step=int(split))
        client.set_tag(made.info.run_id, "advcli.rows", str(len(rows)))
        failed = (rows["status"] == "failed").any()
        client.set_terminated(made.info.run_id, status="FAILED" if failed else "FINISHED")
    return f"{new} runs, {len(known)} already there" + (f", {grown} of them with more rows" if grown else "")


FORMATS: dict[str, Callable[[ResultsFolder, pd.DataFrame, Path], str]] = {
    "csv": _csv,
    "latex": _latex,
    "mlflow": _mlflow,
    "parquet": _parquet,
}


def export(folder: ResultsFolder, to: str, out: Path) -> str:
    """Write the rows of a folder's cells, or its tables for ``latex``; return what was written, in words.

    Parameters
    ----------
    folder : ResultsFolder
    to : str
        Name in `FORMATS`.
    out : Path
        A file; for ``mlflow`` the folder of its runs.

    Raises
    ------
    ResultsError
        There are no rows, or the file cannot be written.
    ConfigError
        The library of the format is not installed.
    """
    runs = folder.runs_of_cells()
    if not len(runs):
        raise ResultsError(f"{folder.path} holds no rows yet; run or resume its sweep first")
    return FORMATS[to](folder, runs, out)
