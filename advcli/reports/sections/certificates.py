"""The sections of certificates and of failures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...results.tables import hyper_columns, over_splits
from ..formats.document import Section, TableField, counted
from ..summary import DRAWN, RELATION, RESULTS, TOLD, numbers
from .columns import ReportColumn, alarm, lay_out, number, whole
from .facts import Facts


def certificate_section(runs: pd.DataFrame, facts: Facts) -> Section:
    """Return the section on the gaps of all fits."""
    fits = runs.drop_duplicates(["cell", "split"])
    fits = fits[fits["status"] != "failed"]
    hyper = hyper_names(fits)
    cells = fits.groupby(["dataset", "method"], sort=True, observed=True)
    rows = [{"dataset": dataset, "method": method} | _effort(part, hyper, facts) for (dataset, method), part in cells]
    columns = [
        *map(ReportColumn, ("dataset", "method")),
        ReportColumn(
            "worst gap", lambda gap: TableField("no certificate", gap, state="missing") if math.isnan(gap) else number(gap, ".1e")
        ),
        ReportColumn("fits", whole),
        ReportColumn("not converged", alarm),
        ReportColumn("seconds per fit", number),
        ReportColumn("mean passes", number),
        ReportColumn("most passes", whole),
        *map(ReportColumn, ("solver", "hyper-parameters", "edge of the search")),
    ]
    caption = "Certificates, chosen hyper-parameters and effort of every cell."
    table = lay_out("certificates", caption, columns, rows, is_long=True)
    return Section("certificates-and-effort", "Certificates", tuple(_lines(fits, facts)), (table,) if rows else ())


def _effort(part: pd.DataFrame, hyper: Sequence[str], facts: Facts) -> dict[str, Any]:
    """Return what the fits of one cell reached and took."""
    gaps, passes = (values[~np.isnan(values)] for values in (numbers(part, "relative_gap"), numbers(part, "passes")))
    return {
        "solver": "/".join(sorted({str(name) for name in part["solver"]}) if "solver" in part else []),
        "hyper-parameters": chosen_text(part, hyper),
        "fits": len(part),
        "not converged": int((part["status"] == "not_converged").sum()),
        "worst gap": gaps.max() if len(gaps) else math.nan,
        "mean passes": passes.mean() if len(passes) else math.nan,
        "most passes": passes.max() if len(passes) else math.nan,
        "seconds per fit": part["fit_seconds"].mean() if "fit_seconds" in part else math.nan,
        "edge of the search": "; ".join(facts.edges.get(str(part["cell"].iloc[0]), [])),
    }


def hyper_names(fits: pd.DataFrame) -> list[str]:
    """Return the columns of rows that hold hyper-parameters."""
    return [name for name in hyper_columns(map(str, fits.columns)) if name not in (RESULTS, DRAWN, TOLD, RELATION)]


def chosen_text(fits: pd.DataFrame, hyper: Sequence[str]) -> str:
    """Return the hyper-parameters of the fits of one cell: the value, or the median and the range over the splits."""
    texts = []
    for name in hyper:
        values = [value for value in fits[name] if pd.notna(value) and value != ""]
        if values:
            texts.append(f"{name} = {_over_splits(values)}")
    return ", ".join(texts)


def _over_splits(values: list[Any]) -> str:
    if len(set(values)) == 1 or not all(isinstance(value, int | float) for value in values):
        held = over_splits(values)
        return held if isinstance(held, str) else power_text(float(held))
    return f"{power_text(statistics.median_low(values))} ({power_text(min(values))} to {power_text(max(values))})"


def power_text(value: float) -> str:
    """Return a number, a power of two below 1/10 or above 1000 as ``2^-11``."""
    fraction, exponent = math.frexp(value)
    return f"2^{exponent - 1}" if fraction == 0.5 and not 0.1 <= value <= 1000 else f"{value:g}"


def _lines(fits: pd.DataFrame, facts: Facts) -> list[str]:
    """Return the worst gap of all fits, and how many converged or have no certificate."""
    gaps = numbers(fits, "relative_gap")
    certified = gaps[~np.isnan(gaps)]
    late, without = int((fits["status"] == "not_converged").sum()), len(gaps) - len(certified)
    lines = []
    if len(certified):
        asked = f" (asked for: {', '.join(f'{tolerance:.1e}' for tolerance in facts.tolerances)})" if facts.tolerances else ""
        lines.append(f"largest certified relative duality gap: {certified.max():.1e}{asked}")
    if len(certified) or not without:
        of_all = counted(len(certified), "fit")
        converged = f"all {of_all} converged" if len(certified) > 1 else "the fit converged"
        lines.append(f"{late} of {of_all} did not converge" if late else converged)
    if without:
        lines.append(f"{counted(without, 'fit has', 'fits have')} no certificate: how far they are from an optimum is not known")
    return lines


def failure_section(runs: pd.DataFrame) -> list[Section]:
    """Return the section on failed splits; none where no split failed."""
    failed = runs[runs["status"] == "failed"]
    rows = []
    for (dataset, method, cell), part in failed.groupby(["dataset", "method", "cell"], sort=True, observed=True):
        place = f"{part[RESULTS].iloc[0]}/" if RESULTS in part else ""
        rows.append(
            {
                "dataset": dataset,
                "method": method,
                "splits": ", ".join(map(str, sorted({int(split) for split in part["split"].dropna()}))) or "before the first",
                "error": "; ".join(str(error) for error in dict.fromkeys(part["error"]) if error),
                "traceback": f"{place}failures/{cell}.txt",
            }
        )
    note = "a method with a failed split is not compared on that data set; the next run tries such cells again"
    columns = [*map(ReportColumn, ("dataset", "method", "splits", "error", "traceback"))]
    return (
        [Section("failed-fits", "Failures", (), (lay_out("failures", "Fits that did not happen.", columns, rows, [note]),))] if rows else []
    )
