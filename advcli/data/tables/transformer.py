"""An encoding of columns as the first step of a scikit-learn pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ...core.checks import collected
from .encoding import Encoding
from .reading import frame_table


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

        The columns that were learned from may stand in any order; the target and columns that were left out may be there.
        """
        X = collected(X)
        if not hasattr(X, "columns"):
            return X
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame({str(name): X[name].to_list() for name in X.columns})
        self.encoding.check_columns(Path("X"), [str(name).strip() for name in frame.columns], remedy="leave them out of X")
        return self.encoding.encode(frame_table(frame, None, "X"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features, shape (d,)."""
        return np.asarray(self.encoding.feature_names, dtype=object)
