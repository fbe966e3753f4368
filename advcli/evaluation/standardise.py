"""Standardisation with the statistics of the rows that a fit sees, and of no others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.notes import noted
from ..core.row_blocks import BlockRows

SPARSE_NOTE = noted("ADV109", "sparse features are divided by their standard deviation but not centred, so that they stay sparse")


class Standardiser:
    """Centre every column and divide by the standard deviation (n - 1 in the denominator).

    A column of one value on the fitted rows stays as given where the value lies in [0, 1), and becomes 1 elsewhere (the authors' rule):
    ``set_to_one_``. Sparse matrices are scaled and not centred, so that a column of one value outside [0, 1) is divided by the value.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.evaluation.standardise import Standardiser
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]])
    >>> Standardiser().fit(X).transform(X)
    array([[-1.,  1.],
           [ 0.,  1.],
           [ 1.,  1.]])
    """

    mean_: NDArray[np.float64]
    scale_: NDArray[np.float64]
    set_to_one_: NDArray[np.bool_]

    def fit(self, X: Any) -> Standardiser:
        """Learn means and standard deviations of training rows (n, d), dense, sparse or in blocks."""
        n, d = X.shape
        self.mean_ = np.zeros(d)
        self.set_to_one_ = np.zeros(d, dtype=bool)
        if sparse.issparse(X):
            from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

            low, high = min_max_axis(X, axis=0)
            variance = mean_variance_axis(X, axis=0)[1] * (n / (n - 1) if n > 1 else 1.0)
            deviation = np.sqrt(variance)
        elif isinstance(X, BlockRows):
            low, high, self.mean_, deviation = X.statistics()
        else:
            low, high = X.min(axis=0), X.max(axis=0)
            deviation = X.std(axis=0, ddof=1) if n > 1 else np.zeros(d)
            self.mean_ = X.mean(axis=0)
        # Equality of extremes, not a zero deviation: the sum of n equal numbers divided by n need not be that number. A spread
        # too small for a double to square counts as constant too.
        constant = (low == high) | (deviation == 0.0)
        keep = constant & (low >= 0.0) & (low < 1.0)
        replace = constant & ~keep
        self.mean_[constant] = 0.0
        self.scale_ = np.where(constant, 1.0, deviation)
        if sparse.issparse(X):
            self.scale_[replace] = low[replace]
        else:
            self.set_to_one_ = replace
        return self

    def transform(self, X: Any) -> Any:
        """Return the standardised rows as new float64 data, C-contiguous or CSR; rows in blocks as rows that are standardised when read."""
        if sparse.issparse(X):
            scaled = sparse.csr_array(X.astype(np.float64, copy=True))  # type: ignore[attr-defined]
            scaled.data /= self.scale_[scaled.indices]
            return scaled
        if isinstance(X, BlockRows):
            return X.standardised(self.mean_, self.scale_, self.set_to_one_)
        standardised = np.ascontiguousarray((X - self.mean_) / self.scale_)
        standardised[:, self.set_to_one_] = 1.0
        return standardised

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learned as a model file holds it."""
        return {"mean": self.mean_, "scale": self.scale_, "set_to_one": self.set_to_one_}
