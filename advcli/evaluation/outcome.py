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
    """The outcome of a cell: its key (of the configuration alone after a failure), data set and method, and what became of it.

    ``status`` is not_converged where at least one reported fit stopped above its tolerance, failed where at least one did not happen, else
    ok; ``error`` is one line. ``skipped``: the rows were there already, nothing was computed; ``added`` says in words what was added to a
    cell that was there. ``mean`` and ``std`` (n - 1) are of the protocol's ``metric`` over the splits. ``worst_gap`` is the largest
    certified relative gap of the reported fits (nan without any) and ``passes`` their largest number of passes. ``hyper`` has the chosen
    and fixed hyper-parameters, a text where splits chose differently (`advcli.results.tables.over_splits`). ``choice`` says what
    ``solver=auto`` took and why, ``edges`` which choices lie at the end of all values tried. ``warning`` says which fits did not converge,
    ``remark`` whether a damaged file of the cell was set aside; ``notes`` are about the data. ``rows`` are the rows of runs.csv,
    ``seconds`` the wall time of the call.
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


def outcome_of(rows: list[dict[str, Any]], about: Mapping[str, Any], surplus: Sequence[str] = (), **more: Any) -> CellOutcome:
    """Summarise rows and the stored facts of a cell; ``surplus`` is what it has beyond what was asked for."""
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
        notes=(*about.get("notes", ()), *surplus),
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
