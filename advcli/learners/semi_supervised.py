"""The semi-supervised SVM that Louche & Ralaivola 2015, section 4.2, compares with UMA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from ..core.arrays import dense, is_sparse
from ..core.checks import POSITIVE, refuse_parameter
from ..core.errors import ConfigError
from ..core.linalg import cho_factor, cho_solve, inner
from ..core.typing import Array, Labels
from .base import register
from .linear import LinearLearner


@register("s3vm")
@dataclass(kw_only=True, eq=False, repr=False)
class SemiSupervisedSVM(LinearLearner):
    """Multiclass semi-supervised SVM after Bennett & Demiriz (1998), with squared errors.

    minimise  sum_labelled |f_i - c_{y_i}|^2 + ratio sum_unlabelled min_y |f_i - c_y|^2 + ridge |W|^2,  f_i = W'x_i, c_y = e_y - 1/k

    Bennett and Demiriz have a two-class mixed-integer program: every unlabelled row costs the smaller of its errors under the two labels.
    Here there are k labels, and the minimum runs over all of them. Errors are squared: W is exact for given labels, and the labels (argmax
    f) are exact for given W. The two alternate to a local minimum, from the fit on the labelled rows, while ``ratio`` grows to its value in
    ``stages`` steps (a start that trusts no guess). The hinge and integer programming are not reproduced: they do not reach 3,823 rows and
    10 classes.

    Parameters
    ----------
    ratio : float
        Weight of an unlabelled row against a labelled one.
    ridge : float
        Weight of |W|^2 against the summed squared errors, in units of the mean squared row norm.
    stages : int
        Steps of ``ratio``, each ten times the one before.
    max_rounds : int
        Limit of alternations in each stage.
    features, features_options, n_classes, random_state
        As in `UMAClassifier`. Unlabelled rows have code -1 with ``n_classes``; else all rows are labelled.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        W'.
    objective_ : float
        The objective at the end.
    """

    view = "partial"

    ratio: float = 0.1
    ridge: float = 0.1
    stages: int = 4
    max_rounds: int = 100

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Alternate weights and labels."""
        for name in ("ratio", "ridge", "stages", "max_rounds"):
            refuse_parameter(name, getattr(self, name), POSITIVE)
        k, unlabelled = len(self.classes_), y < 0
        if unlabelled.all():
            raise ConfigError("loss=s3vm needs labelled rows")
        base = np.ones(len(y)) if weights is None else weights
        squares = row_norms(X, squared=True)
        penalty = float(self.ridge) * max(float(base @ squares / base.sum()), 1e-300)
        codes = np.eye(k) - 1.0 / k
        labelled = np.flatnonzero(~unlabelled)
        W = _Ridge(X[labelled], base[labelled], unlabelled[labelled], penalty).at(1.0)(
            codes[y[labelled]], np.zeros((X.shape[1], k)), _EXACT
        )
        labels, rounds, settled = np.where(unlabelled, 0, y), 0, True
        ridge = _Ridge(X, base, unlabelled, penalty)
        for stage in range(int(self.stages) if unlabelled.any() else 0):
            solve = ridge.at(float(self.ratio) * 10.0 ** (stage - int(self.stages) + 1))
            last, enough = stage + 1 == int(self.stages), _ROUGH
            for done in range(int(self.max_rounds)):
                before, labels = labels, np.where(unlabelled, np.argmax(X @ W, axis=1), y)
                settled = done > 0 and bool((labels == before).all())  # W belongs to these labels at this ratio
                if settled and (enough == _EXACT or not last):
                    break
                enough = _EXACT if settled else enough
                rounds += int(not settled)
                W = solve(codes[labels], W, enough)
        labels = np.where(unlabelled, np.argmax(X @ W, axis=1), y)
        errors = ((X @ W - codes[labels]) ** 2).sum(axis=1)
        self.objective_ = float((base * np.where(unlabelled, self.ratio, 1.0)) @ errors + penalty * inner(W, W))
        self.n_iter_ = max(1, rounds)
        self.remarks_ = ("weights and labels agree" if settled else "max_rounds was reached",)
        return np.ascontiguousarray(W.T)


_DIRECT = 2000  # rows or columns up to which a Gram matrix of sparse rows is factored; beyond, its cube costs more than iterating
_ROUGH, _EXACT = 1e-5, 1e-10  # relative residuals at which the iteration ends, while labels still move and at the end
_ITERATIONS = 10_000


class _Ridge:
    """Ridge regression: W (d, k) minimises sum_i w_i |W'x_i - T_i|^2 + penalty |W|^2, w_i = s_i on labelled rows, else trust s_i.

    The smaller of the two Gram matrices is formed once for every trust. Where X is sparse and both are large, conjugate gradients do.
    """

    def __init__(self, X: Any, sample: Array, unlabelled: NDArray[np.bool_], penalty: float) -> None:
        self.X, self.sample, self.unlabelled, self.penalty = X, sample, unlabelled, penalty
        n, d = X.shape
        self.sparse = is_sparse(X)
        self.primal, self.iterates = d <= n, self.sparse and min(n, d) > _DIRECT
        if self.iterates:
            self.transposed = X.T.tocsr()
            self.squares = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1, 1)
        elif self.primal:
            self.grams = [self._gram(rows) for rows in (np.flatnonzero(~unlabelled), np.flatnonzero(unlabelled))]
        else:
            self.grams = [dense(X @ X.T)]

    def _gram(self, rows: Labels) -> Array:
        X, root = self.X[rows], np.sqrt(self.sample[rows])[:, None]
        X = X.multiply(root).tocsr() if self.sparse else X * root
        return dense(X.T @ X)

    def at(self, trust: float) -> Callable[[Array, Array, float], Array]:
        """Return (T (n, k), W near the least, relative residual that will do) -> the least W; only an iteration looks at the last two."""
        weights = self.sample * np.where(self.unlabelled, trust, 1.0)
        root = np.sqrt(weights)[:, None]
        if self.iterates:
            return lambda T, W, enough: self._iterate(root, T, W, enough)
        if self.primal:
            factor = self._factor(self.grams[0] + trust * self.grams[1])
            return lambda T, *_: cho_solve(factor, self.X.T @ (weights[:, None] * T), check_finite=False)
        factor = self._factor(root * self.grams[0] * root.T)
        return lambda T, *_: np.asarray(self.X.T @ (root * cho_solve(factor, root * T, check_finite=False)))

    def _factor(self, gram: Array) -> Any:
        gram[np.diag_indices_from(gram)] += self.penalty
        return cho_factor(gram, overwrite_a=True, check_finite=False)

    def _iterate(self, root: Array, T: Array, W: Array, enough: float) -> Array:
        """Conjugate gradients, scaled by the diagonal, for (S X X'S + penalty I) B = S T, S = diag(root); then W = X'S B."""
        scale = 1.0 / (root**2 * self.squares + self.penalty)

        def product(V: Array) -> Array:
            return root * (self.X @ (self.transposed @ (root * V))) + self.penalty * V

        target = root * T
        bound = enough * np.maximum(np.linalg.norm(target, axis=0), 1e-300)
        B = (target - root * (self.X @ W)) / self.penalty  # what the least W and its B fulfil
        R = target - product(B)
        Z = scale * R
        V, slope = Z.copy(), np.einsum("ij,ij->j", R, Z)
        for _ in range(_ITERATIONS):
            active = np.sqrt(np.einsum("ij,ij->j", R, R)) > bound
            if not active.any():
                break
            AV = product(V)
            step = np.where(active, slope / np.where(active, np.einsum("ij,ij->j", V, AV), 1.0), 0.0)
            B += step * V
            R -= step * AV
            Z = scale * R
            before, slope = slope, np.einsum("ij,ij->j", R, Z)
            V *= np.where(active, slope / np.where(active, before, 1.0), 0.0)
            V += Z
        return np.asarray(self.transposed @ (root * B))
