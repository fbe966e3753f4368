"""The check of a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..metrics import Metric, compute
from ..metrics import check_metric as metric_of
from .losses import named, require


def check_metric(metric: str | Callable[..., float] | Metric, **facts: Any) -> None:
    """Check a metric, by its name or as a function ``(y_true, y_predicted, n_classes, facts)``, on codes of three classes.

    The value is one number, does not depend on the order of the rows, and is nowhere better than for the truth itself, said surely; with
    ``is_count`` the value times the rows is a whole number. ``facts`` are what the metric needs (`advcli.metrics.FACTS`). AssertionError
    names what is broken.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.testing import check_metric
    >>> check_metric("mae")
    >>> check_metric(lambda y_true, y_predicted, n_classes, facts: float(np.mean(y_true != y_predicted)))
    """
    about = metric if isinstance(metric, Metric) else metric_of(metric) if isinstance(metric, str) else None
    with named(f"metric {about.name if about is not None else getattr(metric, '__name__', metric)}"):
        _check(metric, about, facts)


def _check(metric: str | Callable[..., float] | Metric, about: Metric | None, facts: Mapping[str, Any]) -> None:
    def value(y: Any, predicted: Any, doubt: float = 0.3) -> float:
        complete: Mapping[str, Any] = {"probabilities": (1.0 - doubt) * np.eye(3)[predicted] + doubt / 3.0, **facts}
        if isinstance(metric, str):
            return compute(metric, y, predicted, 3, complete)
        function = metric.function if isinstance(metric, Metric) else metric
        assert function is not None
        return float(function(y, predicted, 3, complete))

    random = np.random.default_rng(0)
    y = np.r_[[0, 1, 2], random.integers(3, size=27)].astype(np.intp)
    best = value(y, y, doubt=0.0)  # without doubt: a measure of calibration counts needless doubt as a fault
    require(np.isfinite(best), f"the value of the truth itself is {best}")
    for step in range(20):
        predicted = np.where(random.uniform(size=30) < step / 20, random.integers(3, size=30), y).astype(np.intp)
        measured, order = value(y, predicted), random.permutation(30)
        require(np.isclose(value(y[order], predicted[order]), measured, rtol=1e-12, atol=1e-15), "the order of the rows changes it")
        if about is not None:
            better = measured > best + 1e-12 if about.higher_is_better else measured < best - 1e-12
            require(not better, f"a prediction with errors is better ({measured:g}) than the truth itself ({best:g})")
            if about.is_count:
                require(abs(30 * measured - round(30 * measured)) <= 1e-9, f"is_count, but {measured:g} times 30 rows is no whole number")
