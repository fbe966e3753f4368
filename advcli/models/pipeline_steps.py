"""Pipelines of loaded models, and fitted transformers of scikit-learn before an estimator as plain data: reading them executes nothing.

A transformer is kept where its fitted state is numbers, text and arrays of them, and its class is one of `TRANSFORMERS`: the file names it,
and never says what is imported.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.checks import collected
from ..core.errors import ConfigError, ModelError
from ..data.tables.encoding import Encoding
from ..data.tables.table import frame_table

TRANSFORMERS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(MaxAbsScaler, MinMaxScaler, Normalizer, PCA, PolynomialFeatures, QuantileTransformer, RobustScaler, SimpleImputer),
        *(StandardScaler, TruncatedSVD, VarianceThreshold),
    )
}
"""Transformers that a model file can hold."""

STEPS = "steps"
"""The array of the steps in a model file."""

_ARRAYS = "biuf"
_MARKS = ("array", "tuple", "dtype", "number")


@dataclass(frozen=True, eq=False)
class Steps:
    """Fitted transformers in a row: the steps of a `sklearn.pipeline.Pipeline` without its last one, by name."""

    named: Sequence[tuple[str, Any]]

    def transform(self, X: Any) -> Any:
        """Return rows X (n, d) as the estimator behind the steps takes them."""
        for _, step in self.named:
            X = step.transform(X)
        return X

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the steps as a model file holds them."""
        return {STEPS: packed(self)}


def packed(steps: Steps) -> NDArray[np.uint8]:
    """Return the steps as the bytes of a JSON text; `ConfigError` for a step that is not among `TRANSFORMERS`, or not plain data."""
    stored = []
    for name, step in steps.named:
        kind = type(step)
        if TRANSFORMERS.get(kind.__name__) is not kind:
            remedy = f"it holds {', '.join(TRANSFORMERS)}: transform X before, or keep the pipeline by joblib"
            raise ConfigError(f"cannot save this pipeline: a model file does not hold the step {name!r}, a {kind.__name__}; {remedy}")
        check_is_fitted(step)
        parameters = step.get_params(deep=False)
        state = {key: value for key, value in vars(step).items() if key not in parameters}
        what = f"cannot save this pipeline: the step {name!r} has a"
        stored.append(
            {
                "name": name,
                "type": kind.__name__,
                "parameters": {key: _plain(value, f"{what} parameter {key}") for key, value in parameters.items()},
                "state": {key: _plain(value, f"{what}n attribute {key}") for key, value in state.items()},
            }
        )
    return np.frombuffer(json.dumps(stored, allow_nan=False).encode(), dtype=np.uint8)


def unpacked(content: NDArray[np.uint8]) -> Steps:
    """Return the steps that `packed` wrote; `ModelError` for anything else."""
    if content.dtype != np.uint8 or content.ndim != 1:
        raise ModelError("its steps are not text")
    steps: list[tuple[str, Any]] = []
    for stored in json.loads(content.tobytes()):
        name, kind = stored["name"], TRANSFORMERS.get(stored["type"])
        if kind is None or not isinstance(name, str) or name in dict(steps):
            raise ModelError(f"its step {str(name)[:40]!r} is not a transformer that a model file can hold")
        parameters, step = {key: _restored(value) for key, value in stored["parameters"].items()}, kind()
        if set(parameters) - set(step.get_params(deep=False)):
            raise ModelError(f"its step {name!r} has parameters that {kind.__name__} of this scikit-learn does not have")
        step.set_params(**parameters)
        for key, value in stored["state"].items():
            if not (key.endswith("_") or key.startswith("_")) or key.startswith("__") or hasattr(kind, key):
                raise ModelError(f"{key[:40]!r} is not an attribute of a fitted {kind.__name__}")
            setattr(step, key, _restored(value))
        steps.append((name, step))
    return Steps(tuple(steps))


def _plain(value: Any, what: str) -> Any:
    """Return a value as JSON holds it; arrays, tuples, types of numbers, and numbers that are not finite under a mark."""
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        return {"array": [], "type": value.dtype.str, "value": _plain(value.item(), what)} if value.dtype.kind in _ARRAYS else value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, (list, tuple)):
        items = [_plain(item, what) for item in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, np.dtype) and value.kind in _ARRAYS:
        return {"dtype": value.str}
    if isinstance(value, np.ndarray) and value.dtype.kind in f"{_ARRAYS}UO":
        values = [_plain(item, what) for item in value.ravel().tolist()]
        kind = value.dtype.str if value.dtype.kind in _ARRAYS else "O"
        # products of matrices have the bits of the order in memory
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return {"array": list(value.shape), "type": kind, "order": order, "value": values}
    raise ConfigError(f"{what} that is not plain data ({type(value).__name__}): transform X before, or keep the pipeline by joblib")


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if not isinstance(value, dict):
        return value
    if not any(mark in value for mark in _MARKS):
        raise ModelError("its steps hold a value of no known form")
    if "number" in value:
        return float(value["number"])
    if "tuple" in value:
        return tuple(_restored(value["tuple"]))
    kind = np.dtype(value["dtype"] if "dtype" in value else value["type"])
    if kind.kind not in f"{_ARRAYS}O":
        raise ModelError("its steps hold values of another type than numbers and text")
    if "dtype" in value:
        return kind
    array = np.array(_restored(value["value"]), dtype=kind)
    return array[()] if array.ndim == 0 else np.array(array.reshape(value["array"]), order="F" if value["order"] == "F" else "C")


def _last_has(name: str) -> Callable[[Pipeline], bool]:
    def check(pipeline: Pipeline) -> bool:
        getattr(pipeline.steps[-1][1], name)  # its own AttributeError
        return True

    return check


class ModelPipeline(Pipeline):
    """A `sklearn.pipeline.Pipeline` for rows and labels as in the training file, with the methods of an abstaining last step."""

    def _before(self, X: Any) -> Any:
        return self[:-1].transform(X)

    def margins(self, X: Any) -> Any:
        """Return how sure the predictions of rows X are, shape (n,) (`Learner.margins`)."""
        return self[-1].margins(self._before(X))

    @available_if(_last_has("risk_coverage"))
    def risk_coverage(self, X: Any, y: Any) -> Any:
        """Return risk over coverage on rows X with labels y (n,) (`AbstainingClassifier.risk_coverage`)."""
        return self[-1].risk_coverage(self._before(X), y)

    @available_if(_last_has("calibrate"))
    def calibrate(self, X: Any, y: Any, **options: Any) -> Any:
        """Set the threshold of the last step by held-out rows X with labels y (n,), and return it (`AbstainingClassifier.calibrate`)."""
        return self[-1].calibrate(self._before(X), y, **options)


class EncodedColumns(TransformerMixin, BaseEstimator):
    """Frames to features by an `Encoding` that was fitted before; arrays of features stay as they are."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Return the transformer: what it applies was learned before."""
        return self

    def transform(self, X: Any) -> Any:
        """Return the features (n, d) of rows: a frame of pandas or polars, or the features themselves.

        The columns that were learned from may have any order; the target and columns that were left out may be present.
        """
        X = collected(X)
        if not hasattr(X, "columns"):
            return X
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame({str(name): X[name].to_list() for name in X.columns})
        self.encoding.check_columns(Path("X"), [str(name).strip() for name in frame.columns], remedy="leave them out of X")
        return self.encoding.encode(frame_table(frame, "X"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features, shape (d,)."""
        return np.asarray(self.encoding.feature_names, dtype=object)
