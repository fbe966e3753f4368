"""Linear classifiers of scikit-learn as numbers: what a model file keeps of them, by a name that is listed here, and how it is put back."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ConfigError, ModelError
from ..core.stored_arrays import Entries

LINEAR = (
    "sklearn.linear_model.LogisticRegression",
    "sklearn.linear_model.Perceptron",
    "sklearn.linear_model.SGDClassifier",
    "sklearn.svm.LinearSVC",
)
"""Classifiers that predict by ``coef_`` and ``intercept_`` alone. A file may name these and no other."""

_OF_A_FIT = ("class_weight", "n_jobs", "random_state", "verbose", "warm_start")  # parameters that no prediction depends on


def _class_of(name: str) -> Any:
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(module), own)


def listed_name(model: Any) -> str | None:
    """Return the name in `LINEAR` of a classifier, which must be of that very class; None for any other."""
    if not type(model).__module__.startswith("sklearn."):
        return None
    return next((name for name in LINEAR if type(model) is _class_of(name)), None)


def packed(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a fitted classifier of `LINEAR` that are no defaults, and its arrays by name."""
    defaults = {name: each.default for name, each in inspect.signature(type(model)).parameters.items()}
    options = {name: value for name, value in model.get_params(deep=False).items() if name not in _OF_A_FIT}
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.atleast_2d(model.coef_)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(coef),))
    return (
        {name: value for name, value in options.items() if name in defaults and value is not defaults[name] and value != defaults[name]},
        {"coef": np.array(coef, dtype=np.float64), "intercept": np.array(intercept), "known": np.asarray(model.classes_, dtype=np.intp)},
    )


def refuse_unlisted(name: Any, options: Any) -> None:
    """Refuse with `ModelError`, before anything is imported, what a file names that is not in `LINEAR`, and options that are no mapping."""
    if name not in LINEAR:
        raise ModelError(f"a model file holds no estimator {str(name)[:60]!r}; it may name {', '.join(LINEAR)}")
    if not isinstance(options, Mapping | None):
        raise ModelError("options of its estimator are no group of options")


def unpacked(model: Any, arrays: Entries, n_columns: int, k: int) -> Any:
    """Return an unfitted classifier of `LINEAR` with the numbers of its fit to ``n_columns`` columns and codes below ``k``."""
    if listed_name(model) is None:
        raise ConfigError(f"a {type(model).__name__} is kept by pickle alone")
    known = arrays.array("known", (None,), "i", 0, k - 1).astype(np.intp)
    if len(known) < 2 or (np.diff(known) <= 0).any():
        raise ModelError("'known' are no codes of two classes or more in their order")
    rows = 1 if len(known) == 2 else len(known)
    model.coef_, model.intercept_ = arrays.array("coef", (rows, n_columns)), arrays.array("intercept", (rows,))
    model.n_features_in_, model.classes_ = n_columns, known
    return model
