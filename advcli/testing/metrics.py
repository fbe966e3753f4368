"""The check of a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..metrics import Metric, compute
from ..metrics import check_metric as metric_of
from .losses import require


def check_metric(metric: str | Callable[..., float] | Metric, **facts: Any) -> None:
    """Check a metric, by its name or as a function ``(y_true, y_predicted, n_classes, facts)``, on codes of three classes.

    The value is one number, does not depend on the order of the rows, and is nowhere better than for the truth itself, said surely; with
    ``is_count`` the value times the rows is a whole number.

    Parameters
    ----------
    metric : str, callable or Metric
    **facts
        What the metric needs (`advcli.metrics.FACTS`).

    Raises
    ------
    AssertionError
    """
    about = metric if isinstance(metric, Metric) else metric_of(metric) if isinstance(metric, str) else None
    what = f"metric {about.name}" if about is not None else f"metric {getattr(metric, '__name__', metric)}"

    def value(y: Any, predicted: Any, doubt: float = 0.3) -> float:
        given: Mapping[str, Any] = {"probabilities": (1.0 - doubt) * np.eye(3)[predicted] + doubt / 3.0, **facts}
        if isinstance(metric, str):
            return compute(metric, y, predicted, 3, given)
        function = metric.function if isinstance(metric, Metric) else metric
        assert function is not None
        return float(function(y, predicted, 3, given))

    random = np.random.default_rng(0)
    y = np.r_[[0, 1, 2], random.integers(3, size=27)].astype(np.intp)
    best = value(y, y, doubt=0.0)  # without doubt: a measure of calibration finds fault with one that is not needed
    require(np.isfinite(best), f"{what}: the value of the truth itself is {best}")
    for at in range(20):
        predicted = np.where(random.uniform(size=30) < at / 20, random.integers(3, size=30), y).astype(np.intp)
        found, order = value(y, predicted), random.permutation(30)
        require(np.isclose(value(y[order], predicted[order]), found, rtol=1e-12, atol=1e-15), f"{what}: the order of the rows changes it")
        if about is not None:
            better = found > best + 1e-12 if about.higher_is_better else found < best - 1e-12
            require(not better, f"{what}: a prediction with errors is better ({found:g}) than the truth itself ({best:g})")
            if about.is_count:
                require(abs(30 * found - round(30 * found)) <= 1e-9, f"{what}: is_count, but {found:g} times 30 rows is no whole number")
