"""Metrics of predicted codes against true codes.

A metric is a function ``(y_true, y_predicted, n_classes, options) -> float`` registered here under a name whose meaning
(direction, whether it is a count, percent) stands in `advcli.records.METRICS`, so that reports can read rows without this
module. ``options`` are those of the loss (for example ``alpha`` of an abstention). Codes from ``n_classes`` on are predictions
that are no class: abstentions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, nearest

Codes = NDArray[np.intp]
Metric = Callable[[Codes, Codes, int, Mapping[str, Any]], float]

_REGISTRY: dict[str, Metric] = {}


def register(name: str) -> Callable[[Metric], Metric]:
    """Register a metric under a name."""

    def keep(function: Metric) -> Metric:
        _REGISTRY[name] = function
        return function

    return keep


def names() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return tuple(sorted(_REGISTRY))


def check_metric(name: str) -> None:
    """Raise ConfigError if there is no metric of that name."""
    if name not in _REGISTRY:
        raise ConfigError(f"no metric {name!r}; {nearest(name, _REGISTRY)}")


def compute(name: str, y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Return the value of a metric.

    Parameters
    ----------
    name : str
        Name in the registry.
    y_true, y_predicted : ndarray of intp, shape (n,)
        0-based codes; predicted codes >= ``n_classes`` are abstentions.
    n_classes : int
        Number of classes of the data set.
    options : mapping
        Options of the loss.

    Raises
    ------
    ConfigError
        If there is no metric of that name or an option that it needs is missing.
    """
    check_metric(name)
    return float(_REGISTRY[name](np.asarray(y_true), np.asarray(y_predicted), n_classes, options))


@register("error")
def error(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Share of predictions that are not the true class; an abstention counts as an error."""
    return int(np.count_nonzero(y_true != y_predicted)) / len(y_true)


@register("accuracy")
def accuracy(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Share of predictions that are the true class."""
    return int(np.count_nonzero(y_true == y_predicted)) / len(y_true)


@register("mae")
def mae(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Mean absolute difference of codes; nan if there are abstentions, which have no place in the order."""
    if (y_predicted >= n_classes).any():
        return float("nan")
    return int(np.abs(y_true - y_predicted).sum()) / len(y_true)


@register("mse")
def mse(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Mean squared difference of codes; nan if there are abstentions."""
    if (y_predicted >= n_classes).any():
        return float("nan")
    return int(((y_true - y_predicted) ** 2).sum()) / len(y_true)


@register("abstention_loss")
def abstention_loss(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Mean of alpha for an abstention, 1 for a wrong class, 0 else (fathony2018 section 5; their table 6 has alpha = 1/2)."""
    if options.get("alpha") is None:
        raise ConfigError("the metric abstention_loss needs the cost of an abstention; use a loss with the option alpha")
    abstained = int(np.count_nonzero(y_predicted >= n_classes))
    wrong = int(np.count_nonzero(y_true != y_predicted)) - abstained
    return (float(options["alpha"]) * abstained + wrong) / len(y_true)


@register("cost")
def cost(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Mean entry of the loss matrix, row = prediction, column = truth; the option ``cost_matrix`` holds it."""
    if options.get("cost_matrix") is None:
        raise ConfigError("the metric cost needs a loss with a matrix; choose loss=general or metric error")
    return float(np.mean(np.asarray(options["cost_matrix"])[y_predicted, y_true]))


@register("abstain_rate")
def abstain_rate(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Share of abstentions."""
    return int(np.count_nonzero(y_predicted >= n_classes)) / len(y_true)


@register("confusion_rate")
def confusion_rate(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Frobenius norm of the confusion matrix with zero diagonal, each column (true class) a distribution over predictions.

    louche2015 section 4, on the scale of their figures, which do not divide by sqrt(Q). Classes without rows have a zero column.
    """
    counts = np.zeros((max(n_classes, int(y_predicted.max(initial=0)) + 1), n_classes))
    np.add.at(counts, (y_predicted, y_true), 1.0)
    confusion = counts / np.maximum(counts.sum(axis=0), 1.0)
    np.fill_diagonal(confusion, 0.0)
    return float(np.linalg.norm(confusion))


@register("confusion_rate_scaled")
def confusion_rate_scaled(y_true: Codes, y_predicted: Codes, n_classes: int, options: Mapping[str, Any]) -> float:
    """Return the confusion rate divided by sqrt(Q), as louche2015 section 4 defines it: within [0, 1] without abstentions."""
    return confusion_rate(y_true, y_predicted, n_classes, options) / n_classes**0.5
