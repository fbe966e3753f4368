"""The section of certificates and of failures."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from ...results.tables import hyper_columns, hyper_text, over_splits
from ..figures import Material, drawn
from ..formats.document import ReportTable, Section, TableField, counted
from ..summary import DRAWN, RESULTS, TOLD
from .cells import number_text, whole_text
from .facts import Facts, Row


def certificate_section(material: Material, facts: Facts) -> Section:
    """Return the section on the gaps of all fits."""
    fits = material.runs.drop_duplicates(["cell", "split"])
    fits = fits[fits["status"] != "failed"]
    hyper = [name for name in hyper_columns(map(str, fits.columns)) if name not in (RESULTS, DRAWN, TOLD)]
    rows: list[Row] = []
    worst: list[float] = []
    for (dataset, method), part in fits.groupby(["dataset", "method"], sort=True, observed=True):
        gaps = part["relative_gap"].to_numpy(dtype=float, na_value=np.nan) if "relative_gap" in part else np.array([np.nan])
        gap = math.nan if np.isnan(gaps).all() else float(np.nanmax(gaps))
        late = int((part["status"] == "not_converged").sum())
        passes = part["passes"].astype("Float64").to_numpy(dtype=float, na_value=np.nan) if "passes" in part else np.array([np.nan])
        seconds = part["fit_seconds"].mean() if "fit_seconds" in part else math.nan
        chosen = ", ".join(
            f"{name} = {hyper_text(over_splits(values))}"
            for name in hyper
            if (values := [value for value in part[name] if pd.notna(value) and value != ""])
        )
        edges = facts.edges.get(str(part["cell"].iloc[0]), [])
        solvers = sorted({str(name) for name in part["solver"]}) if "solver" in part else []
        worst.append(gap)
        rows.append(
            (
                TableField(str(dataset)),
                TableField(str(method)),
                TableField("/".join(solvers)),
                TableField(chosen),
                whole_text(len(part)),
                TableField(str(late), float(late), state="failed" if late else ""),
                TableField("no certificate", math.nan, state="missing") if math.isnan(gap) else TableField(f"{gap:.1e}", gap),
                number_text(np.nanmean(passes) if np.isfinite(passes).any() else math.nan),
                whole_text(np.nanmax(passes) if np.isfinite(passes).any() else math.nan),
                number_text(seconds),
                TableField("; ".join(edges)),
            )
        )
    lines = []
    certified = [gap for gap in worst if not math.isnan(gap)]
    if certified:
        asked = f" (asked for: {', '.join(f'{tolerance:g}' for tolerance in facts.tolerances)})" if facts.tolerances else ""
        lines.append(f"largest certified relative duality gap: {max(certified):.1e}{asked}")
    n_late = int((fits["status"] == "not_converged").sum())
    without = int(fits["relative_gap"].isna().sum()) if "relative_gap" in fits else len(fits)
    told = len(fits) - without
    if told or not without:
        lines.append(f"{n_late} of {counted(told, 'fit')} did not converge" if n_late else f"all of {counted(told, 'fit')} converged")
    if without:
        lines.append(f"{counted(without, 'fit has', 'fits have')} no certificate: how far they are from an optimum is not known")
    table = ReportTable(
        "certificates",
        "Certificates, chosen hyper-parameters and effort of every cell.",
        (
            "dataset",
            "method",
            "solver",
            "hyper-parameters",
            "fits",
            "not converged",
            "worst gap",
            "mean passes",
            "most passes",
            "seconds per fit",
            "edge of the search",
        ),
        tuple(rows),
        n_text_columns=4,
        is_long=True,
    )
    tables = (table,) if rows else ()
    return Section("certificates-and-effort", "Certificates", tuple(lines), tables, drawn("certificates", material))


def failure_section(runs: pd.DataFrame) -> Section | None:
    """Return the section on failed splits; None where no split failed."""
    failed = runs[runs["status"] == "failed"]
    if failed.empty:
        return None
    rows: list[Row] = []
    for (dataset, method, cell), part in failed.groupby(["dataset", "method", "cell"], sort=True, observed=True):
        splits = sorted({int(split) for split in part["split"].dropna()})
        errors = [str(error) for error in dict.fromkeys(part["error"]) if error]
        where = ", ".join(map(str, splits)) or "before the first"
        place = f"{part[RESULTS].iloc[0]}/" if RESULTS in part else ""
        rows.append(
            (
                TableField(str(dataset)),
                TableField(str(method)),
                TableField(where),
                TableField("; ".join(errors)),
                TableField(f"{place}failures/{cell}.txt"),
            )
        )
    table = ReportTable(
        "failures",
        "Fits that did not happen.",
        ("dataset", "method", "splits", "error", "traceback"),
        tuple(rows),
        notes=("a method with a failed split is not compared on that data set; the next run tries such cells again",),
        n_text_columns=5,
    )
    return Section("failed-fits", "Failures", (), (table,))
