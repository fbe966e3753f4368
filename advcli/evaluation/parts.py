"""The parts of the package that evaluation drives, behind one seam.

Imported on first use: reading records or making splits needs neither the compiled kernels nor the data readers. Tests replace
these functions by fakes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def load(options: Mapping[str, Any], data_dir: Path, author_splits: bool) -> Any:
    """Return the data set (`advcli.data.load`)."""
    from .. import data

    return data.load(options, data_dir, author_splits=author_splits)


def check_trainable(dataset: Any, folds: int) -> None:
    """Refuse a data set that cannot be searched with so many folds (`advcli.data.check_trainable`)."""
    from .. import data

    data.check_trainable(dataset, folds)


def check_compatible(
    loss: Mapping[str, Any], features: Mapping[str, Any], solver: Mapping[str, Any], ordered: bool, n_classes: int | None
) -> None:
    """Refuse a combination without meaning before any work (`advcli.estimators.check_compatible`)."""
    from .. import estimators

    estimators.check_compatible(loss, features, solver, ordered, n_classes)


def hyper_names(features: Mapping[str, Any], loss: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the hyper-parameters that a search covers (`advcli.estimators.hyper_names`)."""
    from .. import estimators

    return tuple(estimators.hyper_names(features, loss))


def make_estimator(
    loss: Mapping[str, Any],
    features: Mapping[str, Any],
    solver: Mapping[str, Any],
    hyper: Mapping[str, float],
    n_classes: int,
    seed: int,
    tol: float,
) -> Any:
    """Return an unfitted estimator (`advcli.estimators.make_estimator`)."""
    from .. import estimators

    return estimators.make_estimator(loss, features, solver, hyper, n_classes, seed, tol)


def metric_options(loss: Mapping[str, Any], estimator: Any) -> dict[str, Any]:
    """Return what metrics may ask of a loss: its options, those of a loss that it wraps, and its matrix."""
    fitted = getattr(estimator, "loss_", None)
    return {**(loss.get("options") or {}), **loss, "cost_matrix": getattr(fitted, "matrix", None)}


def solver_choice(estimator: Any) -> str:
    """Return what ``solver=auto`` took for a fit and why; empty for other solvers."""
    return str(getattr(estimator, "solver_choice_", ""))


def fit_counts(estimator: Any) -> dict[str, float]:
    """Return the counts that a solver reports of its fit, as metrics: ``n_...`` of `Solution.memory`; empty for most solvers."""
    solution = getattr(estimator, "solution_", None)
    memory = {} if solution is None else solution.memory
    return {name: float(value) for name, value in memory.items() if name.startswith("n_")}


def guarantee(estimator: Any, X_train: Any, y_train: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    """Return the worst case that a fit guarantees beside what it costs on training and test rows; empty for losses without a game."""
    if not hasattr(estimator, "expected_loss"):
        return {}
    value = float(estimator.certificate_.game_value)
    if math.isnan(value):
        return {}

    def mean(X: Any, y: Any) -> float:
        losses = estimator.expected_loss(X)
        return float(losses[range(len(y)), y].mean())

    return {"game_value": value, "train_expected_loss": mean(X_train, y_train), "test_expected_loss": mean(X_test, y_test)}
