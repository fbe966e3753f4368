"""Objectives for boosted trees and networks of other packages: smoothed surrogates, with gradients and curvatures.

    S_mu(f, y) = max over r in conv R(y) of c(r) + f.r - mu/2 |r - r0|^2                                                   (1)

is differentiable with gradient r_mu, the maximiser, and lies at most mu/2 max |r - r0|^2 below S (Nesterov 2005, "Smooth minimization of
non-smooth functions", Math. Program. 103). For surrogates of distributions r0 + e_y is uniform; r_mu is a block step of the compiled
families. ``mu`` counts in units of the spread of the loss matrix. The Hessian is at most 1/mu; boosters are told one number for its
diagonal, `CURVATURE` in the same units: the diagonal itself is 0 on the faces where r_mu does not move, and leaves divide by it.
`entropy` is smooth already, has no mu, and tells q (1 - q).

Other packages are imported by none of this: an objective is a plain function in the form that the package calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..core.arrays import class_codes, finite_table
from ..core.checks import POSITIVE, at_least, refuse_parameter
from ..core.errors import ConfigError, DataError
from ..core.linalg import plus_own
from ..core.typing import Array, Labels
from ..losses import AdversarialLoss, Loss
from .loss_parameter import made_loss

CURVATURE, LEAST = 2.0, 1e-3
"""Curvature that boosters are told, which scales their steps (1 and 3 were each better on some of nine sets); the least of entropies."""


class SmoothedLoss:
    """A smoothed surrogate of k classes on scores (n, k) and codes 0 to k - 1: values, gradients, curvatures, and the rule of the loss.

    Parameters
    ----------
    loss : str, array (l, k), class or Loss
        As in `SurrogateClassifier`: a name, a cost matrix, ...
    n_classes : int
        Number k of classes, at least 2.
    mu : float
        Smoothing, above 0, in units of the spread of the loss matrix.
    loss_options : dict, optional
        Further options of the loss.
    rule : str, optional
        How predictions of a game follow from scores, as in `SurrogateClassifier`; None: ``"predictor"``, which is consistent with every
        matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import objectives
    >>> smoothed = objectives.SmoothedLoss("zero_one", 3)
    >>> value, gradient = smoothed(np.array([[2.0, 0.0, 0.0]]), np.array([1]))
    >>> value.round(2), gradient.round(2)
    (array([1.67]), array([[ 1., -1.,  0.]]))
    """

    def __init__(
        self, loss: Any, n_classes: int, mu: float = 1.0, loss_options: Mapping[str, Any] | None = None, rule: str | None = None
    ) -> None:
        refuse_parameter("n_classes", n_classes, at_least(2))
        refuse_parameter("mu", mu, POSITIVE)
        self.loss: Loss = made_loss(loss, loss_options, list(range(n_classes)))
        if self.loss.example_weights or self.loss.n_classes != n_classes:
            raise ConfigError(f"loss={self.loss.name} cannot be an objective: it needs weights of rows, or scores of its own")
        matrix = self.loss.matrix
        self.unit = 1.0 if matrix is None else float(matrix.max() - matrix.min()) or 1.0
        self.mu, self.k = float(mu) * self.unit, int(n_classes)
        self.rule = {"rule": rule or "predictor"} if isinstance(self.loss, AdversarialLoss) else {}
        if rule is not None:
            self.loss.predict(np.zeros((1, self.k)), rule)  # type: ignore[call-arg]  # refuses a rule that the loss does not have

    def __call__(self, F: Any, y: Any) -> tuple[Array, Array]:
        """Return the values (n,) of (1) and the gradients (n, k); `DataError` for other shapes, codes or numbers that are not finite."""
        F, y = self._checked(F, y)
        if self.loss.smooth:
            answer = self.loss.oracle(F, y)
            return answer.value, np.ascontiguousarray(answer.R)
        centre = np.zeros(F.shape)
        if self.loss.simplex:
            centre += 1.0 / self.k
            centre[np.arange(len(y)), y] -= 1.0
        R = self.loss.block(F, centre, y, np.full(len(y), self.mu))
        value = self.loss.offset(R, y) + np.einsum("ij,ij->i", R, F) - 0.5 * self.mu * ((R - centre) ** 2).sum(axis=1)
        return value, R

    def curvature(self, R: Array, y: Labels) -> Array:
        """Return the diagonal (n, k) that boosters are told at gradients R (n, k)."""
        if not self.loss.smooth:
            return np.full(R.shape, CURVATURE / self.unit)
        Q = plus_own(R, y)
        return np.maximum(Q * (1.0 - Q), LEAST)

    def start(self, y: Any, weight: Any = None) -> Array:
        """Return the scores (k,) of least mean value for all rows alike, of mean 0: what boosting begins with."""
        _, y = self._checked(np.zeros((len(y), self.k)), y)
        share = np.bincount(y, None if weight is None else np.asarray(weight, dtype=np.float64), self.k)
        share = share / share.sum()
        labels = np.arange(self.k)

        def mean(f: Array) -> tuple[float, Array]:
            value, R = self(np.tile(f, (self.k, 1)), labels)
            return float(share @ value) + 5e-7 * float(f @ f), share @ R + 1e-6 * f

        f = minimize(mean, np.zeros(self.k), jac=True, method="L-BFGS-B").x
        return np.asarray(f - f.mean())

    def predict(self, F: Any) -> Labels:
        """Return the predictions (n,) of the loss at scores (n, k): codes of classes, then of further predictions such as to abstain."""
        return self.loss.predict(self._checked(F, np.zeros(len(F), dtype=np.intp))[0], **self.rule)

    def mean_cost(self, F: Any, y: Any, weight: Any = None) -> float:
        """Return the mean cost of the predictions, by the loss matrix where there is one, else the share of errors."""
        F, y = self._checked(F, y)
        return float(np.average(self.loss.cost(self.loss.predict(F, **self.rule), y), weights=_some(weight)))

    def _checked(self, F: Any, y: Any) -> tuple[Array, Labels]:
        """Return finite scores (n, k) in float64 and codes."""
        scores, codes = finite_table(F, "scores"), np.asarray(y)
        if scores.shape[1] != self.k:
            raise DataError(f"scores must have shape (n, {self.k}), got {scores.shape}")
        whole = codes.dtype.kind == "f" and bool((codes == np.floor(codes)).all())
        return scores, class_codes(codes.astype(np.intp) if whole else codes, len(scores), self.k)


def _some(weight: Any) -> Array | None:
    """Return weights (n,), or None for None and for none at all, which stands for rows that count alike."""
    return None if weight is None or not len(np.atleast_1d(weight)) else np.asarray(weight, dtype=np.float64)


class _Booster(SmoothedLoss):
    """An objective of rows with weights, called by scikit-learn's interface of a booster, or by its own with a data set second."""

    def objective(self, first: Any, second: Any, weight: Any = None) -> tuple[Array, Array]:
        """Return gradients and curvatures (n, k) of (labels, scores) or (scores, data set), times the weights of the rows."""
        F, y, weight = self._rows(first, second, weight)
        _, R = self(F, y)
        scale = np.ones(len(R)) if (some := _some(weight)) is None else some
        return R * scale[:, None], self.curvature(R, np.asarray(y).astype(np.intp)) * scale[:, None]

    def _rows(self, first: Any, second: Any, weight: Any) -> tuple[Any, Any, Any]:
        if hasattr(second, "get_label"):
            return first, second.get_label(), second.get_weight()
        return second, first, weight


class LightGBM(_Booster):
    """An objective for LightGBM: ``.objective`` and ``.metric`` (its ``eval_metric`` or ``feval``), ``.start``, ``.predict``.

    Give ``objective=found.objective`` to ``LGBMModel``, or in ``params`` of ``lightgbm.train`` with ``num_class=k``; ``start(y)`` tiled
    over the rows is the ``init_score``. To stop early by ``.metric``, give ``metric="None"``: LightGBM's own reads scores as probabilities.
    `SmoothedLoss` has the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import objectives
    >>> found = objectives.lightgbm([[0, 1, 2], [1, 0, 1], [2, 1, 0]], 3)
    >>> gradient, curvature = found.objective(np.array([0, 2]), np.zeros((2, 3)))
    >>> gradient.shape, bool((curvature > 0).all())
    ((2, 3), True)
    """

    def metric(self, first: Any, second: Any, weight: Any = None) -> list[tuple[str, float, bool]]:
        """Return the names of the mean surrogate and of the mean cost, their values, and that both are to fall.

        The surrogate comes first, so that ``first_metric_only`` stops by it: of few rows the mean cost falls by leaps.
        """
        F, y, weight = self._rows(first, second, weight)
        value = float(np.average(self(F, y)[0], weights=_some(weight)))
        return [(f"{self.loss.name}_surrogate", value, False), (f"{self.loss.name}_cost", self.mean_cost(F, y, weight), False)]


class XGBoost(_Booster):
    """An objective for XGBoost: ``.objective``, of `xgboost.train` (``obj``) or an estimator, and ``.metric``; else as `LightGBM`.

    XGBoost needs ``num_class=k`` and ``base_score=0``; ``start(y)`` tiled over the rows is the ``base_margin``.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import objectives
    >>> objectives.xgboost("absolute", 4).metric(np.array([0, 3]), 9.0 * np.eye(4)[[0, 1]])
    1.0
    """

    def metric(self, first: Any, second: Any, weight: Any = None) -> Any:
        """Return the mean cost for scikit-learn's interface, its name and the mean cost for ``custom_metric``."""
        F, y, weight = self._rows(first, second, weight)
        cost = self.mean_cost(F, y, weight)
        return (f"{self.loss.name}_cost", cost) if hasattr(second, "get_label") else cost


class CatBoost(_Booster):
    """An objective for CatBoost: ``loss_function=objectives.catboost(...)`` of a classifier, which calls it row by row.

    Examples
    --------
    >>> from advcli import objectives
    >>> first, second = objectives.catboost("zero_one", 3).calc_ders_multi([0.0, 0.0, 0.0], 1.0, 1.0)
    >>> [round(number, 2) for number in first]
    [-0.33, 0.67, -0.33]
    """

    def calc_ders_multi(self, approx: Any, target: float, weight: float) -> tuple[list[float], list[list[float]]]:
        """Return the derivatives of what CatBoost maximises, minus the surrogate, at one row: gradient and Hessian."""
        R, H = self.objective(np.array([int(target)]), np.array([approx]), np.array([weight]))
        return (-R[0]).tolist(), (-np.diag(H[0])).tolist()


lightgbm, xgboost, catboost = LightGBM, XGBoost, CatBoost
"""The objectives by the names of the packages."""


def torch(loss: Any, n_classes: int, mu: float = 1.0, loss_options: Mapping[str, Any] | None = None, reduction: str = "mean") -> Any:
    """Return a ``torch.nn.Module`` of scores (n, k) and labels (n,): the smoothed surrogate with its exact gradient.

    ``reduction`` is "mean", "sum" or "none". Values are computed on the processor in float64 and return to the device and type of the
    scores. `ConfigError` where PyTorch is not installed.

    Examples
    --------
    >>> from advcli import objectives
    >>> loss = objectives.torch("absolute", 4)  # doctest: +SKIP
    >>> loss(network(rows), labels).backward()  # doctest: +SKIP
    """
    try:
        from torch import Tensor, from_numpy, nn
    except ImportError:
        raise ConfigError("objectives.torch needs PyTorch, which is not installed: pip install torch") from None
    if reduction not in ("mean", "sum", "none"):
        raise ConfigError(f"reduction={reduction!r} is not mean, sum or none")
    smoothed = SmoothedLoss(loss, n_classes, mu, loss_options)

    class SurrogateLoss(nn.Module):
        """The smoothed surrogate of scores (n, k) and labels (n,)."""

        def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
            found = smoothed(scores.detach().cpu().numpy(), labels.detach().cpu().numpy())
            value, gradient = (from_numpy(part).to(scores) for part in found)
            values = value + ((scores - scores.detach()) * gradient).sum(dim=1)  # 0, with the surrogate's gradient
            return values if reduction == "none" else values.sum() if reduction == "sum" else values.mean()

    return SurrogateLoss()


def predict(loss: Any, scores: Any, loss_options: Mapping[str, Any] | None = None, rule: str | None = None) -> Labels:
    """Return the predictions (n,) of a loss at anybody's scores (n, k): codes of classes, then of further predictions such as to abstain.

    Examples
    --------
    >>> from advcli import objectives
    >>> objectives.predict("abstain", [[5.0, 0.0, 0.0], [0.1, 0.0, 0.0]])  # code 3: to abstain
    array([0, 3])
    """
    scores = finite_table(scores, "scores")
    return SmoothedLoss(loss, scores.shape[1], loss_options=loss_options, rule=rule).predict(scores)
