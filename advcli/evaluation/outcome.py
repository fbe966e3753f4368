"""The outcome of one cell, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..metrics import shown, shown_as
from ..results.tables import complete_rows, hyper_text


@dataclass(frozen=True)
class CellOutcome:
    """The outcome of a cell.

    Parameters
    ----------
    key, dataset, method : str
        Key of the cell (of the configuration alone after a failure), name of the data set, name of the method.
    status : {"ok", "not_converged", "failed"}
        ``not_converged``: at least one reported fit stopped above its tolerance; ``failed``: at least one did not happen.
    skipped : bool
        The rows were there already; nothing was computed.
    error : str
        One line; empty unless failed.
    notes : tuple of str
        What was done to the data, to be said to the user.
    choice : str
        What ``solver=auto`` took and why; empty for other solvers.
    edges : tuple of str
        Chosen hyper-parameters that lie at the end of all values tried.
    warning : str
        One line about fits that did not converge; also given to `warnings`.
    hyper : mapping
        Chosen and fixed hyper-parameters; a text where splits chose differently (`advcli.results.tables.over_splits`).
    metric : str
        The protocol's metric.
    mean, std : float
        Mean and sample standard deviation (n - 1) of it over the splits; nan if there is none.
    worst_gap : float
        Largest certified relative gap of the reported fits; nan if there is none.
    passes : int
        Largest number of passes of the reported fits.
    rows : list of dict
        Rows as in runs.csv.
    seconds : float
        Wall time of the call.
    remark : str
        One line about a damaged file of the cell, which was set aside.
    added : str
        What was added to a cell that was there, in words; empty for any other.
    """

    key: str
    dataset: str
    method: str
    status: str
    skipped: bool = False
    error: str = ""
    notes: tuple[str, ...] = ()
    choice: str = ""
    edges: tuple[str, ...] = ()
    warning: str = ""
    hyper: Mapping[str, Any] = field(default_factory=dict)
    metric: str = ""
    mean: float = float("nan")
    std: float = float("nan")
    worst_gap: float = float("nan")
    passes: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    remark: str = ""
    added: str = ""

    @property
    def result(self) -> str:
        """The result in words: the metric, its mean and, in brackets, its sample standard deviation over the splits."""
        about = shown_as(self.metric)
        return f"{about.name.replace('_', ' ')} {shown(self.metric, self.mean, self.std)}{' %' if about.percent else ''}"

    @property
    def chosen(self) -> list[str]:
        """The chosen and fixed hyper-parameters, one text each."""
        return [f"{name} = {hyper_text(value)}" for name, value in self.hyper.items()]


def outcome_of(rows: list[dict[str, Any]], about: Mapping[str, Any], kept: Sequence[str] = (), **more: Any) -> CellOutcome:
    """Summarise rows and the stored facts of a cell; ``kept`` is what it has beyond what was asked for."""
    rows = complete_rows(rows)
    metric = next((row["metric"] for row in rows if row.get("metric")), "")
    values = [row["value"] for row in rows if row.get("metric") == metric and row.get("value") is not None]
    gaps = [row["relative_gap"] for row in rows if row.get("relative_gap") is not None]
    passes = [row["passes"] for row in rows if row.get("passes") is not None]
    statuses = {row["status"] for row in rows}
    return CellOutcome(
        dataset=about["dataset"],
        method=about["method"],
        status=next((status for status in ("failed", "not_converged") if status in statuses), "ok"),
        error=next((row["error"] for row in rows if row.get("error")), ""),
        notes=(*about.get("notes", ()), *kept),
        choice=str(about.get("choice", "")),
        edges=tuple(about.get("edges", ())),
        warning=about.get("warning", ""),
        hyper=dict(about.get("hyper", {})),
        metric=metric,
        mean=float(np.mean(values)) if values else float("nan"),
        std=float(np.std(values, ddof=1)) if len(values) > 1 else float("nan"),
        worst_gap=max(gaps, default=float("nan")),
        passes=max(passes, default=0),
        rows=rows,
        **more,
    )
