"""Rows and tables of a results folder in the formats of other programs; the folder itself is only read."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from ..core.errors import ConfigError
from ..core.files import write_bytes, write_text
from ..results.folder import ResultsFolder
from ..results.tables import hyper_columns
from .choice import Choice, Names
from .formats.latex import latex
from .sections.content import contents
from .sources import Sources
from .summary import DRAWN, RELATION, TOLD, imported, summarise

KEPT = "own method"
"""Column of the methods' names as they stand in the folders."""

_PARAMETERS = ("dataset", "method", "loss", "features", "solver", "seed", "cell")
"""Columns that become parameters of a cell's MLflow run, with its hyper-parameters, where they have one value in the cell."""


def _plain(runs: pd.DataFrame) -> pd.DataFrame:
    """Return chosen rows with the names that they have in their folders, as texts; of imported rows alone the columns with a value."""
    own = runs.assign(method=runs[KEPT], dataset=runs["dataset"].astype(str)).drop(columns=[KEPT, DRAWN, TOLD, RELATION], errors="ignore")
    return own.loc[:, (own.notna() & (own != "")).any()] if imported(own).all() else own


def _csv(name: str, runs: pd.DataFrame, names: Names, out: Path) -> str:
    write_text(out, _plain(runs).to_csv(index=False, lineterminator="\n"))
    return f"{len(runs)} rows"


def _parquet(name: str, runs: pd.DataFrame, names: Names, out: Path) -> str:
    content = io.BytesIO()
    try:
        _plain(runs).to_parquet(content, index=False, engine="pyarrow")
    except ImportError as error:
        raise ConfigError("parquet needs pyarrow: pip install 'advcli[export]'") from error
    write_bytes(out, content.getvalue())
    return f"{len(runs)} rows"


def _latex(name: str, runs: pd.DataFrame, names: Names, out: Path) -> str:
    runs = runs.drop(columns=[KEPT])
    document = contents(name, runs, summarise(runs), names=names).document
    write_text(out, latex(document))
    return f"{sum(not table.is_long for table in document.tables)} tables"


def _mlflow(name: str, runs: pd.DataFrame, names: Names, out: Path) -> str:
    """Write one MLflow run for each cell: its parameters, and each metric with the split as its step; those already there are left.

    A cell that has got more splits or metrics since gets them in its run.
    """
    # newer releases report their use to their makers unless this asks them not to
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise ConfigError("mlflow needs the package: pip install 'advcli[export]'") from error
    # newer releases keep files without developing them, and want to be asked for them; its database would take a server's libraries
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    client = MlflowClient(tracking_uri=out.absolute().as_uri())
    made_before = client.get_experiment_by_name(name)
    experiment = client.create_experiment(name) if made_before is None else made_before.experiment_id
    runs_by_cell = {run.data.tags.get("advcli.cell"): run for run in client.search_runs([experiment], max_results=50_000)}
    new = grown = 0
    for cell, rows in _plain(runs).groupby("cell", sort=False):
        stored = runs_by_cell.get(str(cell))
        if stored is not None and stored.data.tags.get("advcli.rows") == str(len(rows)):
            continue
        there: set[tuple[str, int]] = set()
        if stored is None:
            title = f"{rows['dataset'].iloc[0]} {rows['method'].iloc[0]}"
            stored = client.create_run(experiment, tags={"advcli.cell": str(cell)}, run_name=title)
            for column in (*_PARAMETERS, *(name for name in hyper_columns(map(str, rows)) if name != RELATION)):
                if column in rows and rows[column].nunique(dropna=True) == 1:
                    client.log_param(stored.info.run_id, column, rows[column].dropna().iloc[0])
            new += 1
        else:
            there = {(name, value.step) for name in stored.data.metrics for value in client.get_metric_history(stored.info.run_id, name)}
            grown += 1
        for metric, split, value in zip(rows["metric"], rows["split"], rows["value"], strict=True):
            if isinstance(metric, str) and not math.isnan(value) and (metric, int(split)) not in there:
                client.log_metric(stored.info.run_id, metric, float(value), step=int(split))
        client.set_tag(stored.info.run_id, "advcli.rows", str(len(rows)))
        failed = (rows["status"] == "failed").any()
        client.set_terminated(stored.info.run_id, status="FAILED" if failed else "FINISHED")
    return f"{new} runs, {len(runs_by_cell)} already there" + (f", {grown} of them with more rows" if grown else "")


FORMATS: dict[str, Callable[[str, pd.DataFrame, Names, Path], str]] = {"csv": _csv, "latex": _latex, "mlflow": _mlflow, "parquet": _parquet}


def export(folders: Sequence[ResultsFolder], to: str, out: Path, choice: Choice | None = None) -> tuple[str, list[str]]:
    """Write the rows of the folders' cells, or their tables for ``latex``, in a format of `FORMATS`; return what was written, and remarks.

    ``out`` is a file; for ``mlflow`` the folder of its runs. Rows of several folders have their folder in a column ``results``; the names
    of a choice are shown in tables, rows keep their own.
    """
    sources = Sources(folders, merge=False)
    runs, names = (choice or Choice()).rows(sources.runs.assign(**{KEPT: sources.runs["method"]}))
    return FORMATS[to](sources.name, runs, names, out), sources.remarks
