"""The parts of the package that evaluation drives, behind one seam.

Imported on first use: reading records or making splits needs neither the compiled kernels nor the data readers. Tests replace
these functions by fakes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_last: list[tuple[Any, Any]] | None = None
"""Inside `shared_data`: the last data set and what it was loaded by."""


def load(options: Mapping[str, Any], data_dir: Path, author_splits: bool) -> Any:
    """Return the data set (`advcli.data.load`)."""
    from .. import data

    request = (dict(options), data_dir, author_splits)
    if _last and _last[0][0] == request:
        return _last[0][1]
    if _last is not None:
        _last.clear()  # never two in memory
    dataset = data.load(options, data_dir, author_splits=author_splits)
    if _last is not None:
        _last.append((request, dataset))
    return dataset


@contextlib.contextmanager
def shared_data(folder: Path | None = None) -> Iterator[None]:
    """Load a data set once for consecutive cells: reading and hashing it takes longer than a small cell.

    With a folder, costly features are computed once for all processes that share it.
    """
    global _last
    before, _last = _last, []
    try:
        if folder is None:
            yield
        else:
            from .. import estimators

            with estimators.kept_in(folder):
                yield
    finally:
        _last = before


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


def name_classes(loss: Mapping[str, Any], classes: Any) -> dict[str, Any]:
    """Return a loss's configuration with the labels that a matrix with named columns needs (`advcli.losses.name_classes`)."""
    from .. import estimators

    return estimators.name_classes(loss, classes)


def fill_labels(loss: Mapping[str, Any], dataset: Any) -> Mapping[str, Any]:
    """Return a loss's configuration with the data set's hierarchy where the method takes one, after checking that it can learn the labels.

    Raises
    ------
    IncompatibleError
        Rows have several labels and the loss is for one, or the method needs a hierarchy and there is none.
    """
    from .. import methods
    from ..errors import IncompatibleError

    takes, several = False, bool(dataset.multilabel)
    if methods.is_method(loss["name"]):
        chosen = methods.method_class(loss["name"])
        takes, several = chosen.takes_hierarchy, several and not chosen.multilabel
    if several:
        raise IncompatibleError(f"loss={loss['name']}", "one label a row", f"{dataset.name} has several: choose loss=flat, hsvm or nhsvm")
    if takes and loss.get("hierarchy") is None and dataset.hierarchy is not None:
        return {**loss, "hierarchy": {"edges": [list(edge) for edge in dataset.hierarchy], "classes": list(dataset.classes)}}
    return loss


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


def label_view(loss: Mapping[str, Any]) -> tuple[str, bool]:
    """Return which labels a method learns from (`advcli.methods.base.VIEWS`), and whether it takes a confusion matrix."""
    from .. import methods

    if not methods.is_method(loss["name"]):
        return "noisy", False
    chosen = methods.method_class(loss["name"])
    return chosen.view, chosen.takes_confusion


def make_confusion(noise: Mapping[str, Any], n_classes: int, seed: int) -> Any:
    """Return the confusion matrices of the group ``noise`` (`advcli.data.label_noise.make_confusion`)."""
    from ..data import label_noise

    return label_noise.make_confusion(noise, n_classes, seed)


def corrupt(y: Any, confusion: Any, seed: int) -> Any:
    """Return labels drawn from a confusion matrix (`advcli.data.label_noise.corrupt`)."""
    from ..data import label_noise

    return label_noise.corrupt(y, confusion, seed)


def rough_codes(features: Mapping[str, Any], X: Any, rows: Any, codes: Any, n_classes: int, updates: int, seed: int) -> Any:
    """Return the codes that a batch perceptron on the given rows (m,) and their codes (m,) predicts for all rows X."""
    import numpy as np

    from .. import estimators

    # weight 0 for all others: maps that are fitted to rows (kernel PCA) see them all, as those of the methods do
    weight, padded = np.zeros(X.shape[0]), np.zeros(X.shape[0], dtype=np.intp)
    weight[rows], padded[rows] = 1.0, codes
    perceptron = estimators.make_estimator(
        {"name": "uma", "confusion": "identity", "max_updates": updates}, features, {"name": "auto"}, {}, n_classes, seed, 1.0
    )
    return perceptron.fit(X, padded, sample_weight=weight).predict_codes(X)


def metric_of(estimator: Any) -> str:
    """Return the metric that selection and tables use for a fitted estimator unless the protocol names one."""
    return str(getattr(getattr(estimator, "loss_", estimator), "metric", "error"))


def metric_options(loss: Mapping[str, Any], estimator: Any, graph: Any = None) -> dict[str, Any]:
    """Return what metrics may ask for: a loss's options, those of a loss that it wraps, its matrix, and the graph over the labels."""
    fitted = getattr(estimator, "loss_", None)
    return {**(loss.get("options") or {}), **loss, "cost_matrix": getattr(fitted, "matrix", None), "label_graph": graph}


def label_graph(dataset: Any) -> Any:
    """Return the ancestor sets of labels (`advcli.hierarchy.closures`), for metrics; None without a hierarchy."""
    if dataset.hierarchy is None:
        return None
    from ..hierarchy.closures import LabelClosures
    from ..hierarchy.graph import LabelGraph

    return LabelClosures.of(LabelGraph.from_edges(dataset.hierarchy, several_tops=True), dataset.classes, dataset.stubs)


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
