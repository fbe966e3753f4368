"""What a check lets pass by tolerances of metrics, and a baseline that only rises."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pandas as pd

from ...core.errors import UnknownNameError, nearest
from ...metrics import meaning

NOISE = 1e-9  # relative differences up to this are rounding, on other processors for example


@dataclass(frozen=True)
class Gate:
    """By how much a mean may differ from its baseline, by metric, and whether better means pass.

    ``tolerance`` is in the unit of the metric, ``relative`` a share of the baseline's mean; of a metric with both their sum counts. With
    ``floor`` only a worse mean fails.
    """

    tolerance: Mapping[str, float] = field(default_factory=dict)
    relative: Mapping[str, float] = field(default_factory=dict)
    floor: bool = False

    def refuse_unknown(self, metrics: Collection[str]) -> None:
        """Raise `ConfigError` for a tolerance of a metric that neither the baseline nor the results have."""
        for key, amounts in (("tolerance", self.tolerance), ("relative_tolerance", self.relative)):
            for metric in amounts:
                if metric not in metrics:
                    raise UnknownNameError(f"{key}.{metric}: no entry has the metric {metric!r}; {nearest(metric, metrics)}")

    def concerns(self, metric: str) -> bool:
        """Tell whether the means of a metric are compared by this gate."""
        return self.floor or self.has(metric)

    def has(self, metric: str) -> bool:
        """Tell whether a metric has a tolerance here."""
        return metric in self.tolerance or metric in self.relative

    def allowed(self, metric: str, old: float) -> float:
        """Return by how much a mean may differ from its baseline."""
        return self.tolerance.get(metric, 0.0) + self.relative.get(metric, 0.0) * abs(old)

    def status(self, metric: str, old: float, new: float, allowed: float) -> str:
        """Return what became of a mean: unchanged, better (with a floor) or moved."""
        difference = new - old
        # rounding must not turn a difference of exactly the tolerance into a larger one
        if abs(difference) <= allowed + NOISE * max(abs(old), abs(new)):
            return "unchanged"
        return "better" if self.floor and (difference > 0) == meaning(metric).higher_is_better else "moved"


def raised(baseline: pd.DataFrame, previous: pd.DataFrame | None) -> pd.DataFrame:
    """Return a new baseline in which no entry is worse than in the one before: of both means the better one stays, and no entry is lost."""
    if previous is None:
        return baseline
    key = ["dataset", "method", "metric"]
    entries = {tuple(row[name] for name in key): row for row in previous.to_dict("records")}
    for row in baseline.to_dict("records"):
        name = tuple(row[part] for part in key)
        old, higher = entries.get(name, {}).get("mean", math.nan), meaning(str(row["metric"])).higher_is_better
        if math.isnan(old) or (row["mean"] > old if higher else row["mean"] < old):
            entries[name] = row
    kept = pd.DataFrame([entries[name] for name in sorted(entries)], columns=list(baseline.columns))
    kept.attrs = dict(baseline.attrs)
    return kept
