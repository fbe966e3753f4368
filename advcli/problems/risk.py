"""The regularised risk to be minimised, its dual, and the solution that a solver returns.

    minimise over theta  P(theta) = lambda/2 |theta|^2 + 1/n sum_i s_i w_i S(f_i / w_i, y_i),  F = J theta,  n = sum_i s_i      (1)

The scaling is written here once: the mean loss over n rows, lambda = 1/(n C). Sample weights s count how often an example occurs, so n
is their sum (the number of rows when all are 1); cost weights w multiply an example's loss matrix (Fathony et al. 2018, Corollaries
9-11: S_wL(f) = w S_L(f / w)). The dual of (1) is

    maximise over r_i in conv R(y_i)   D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 |theta(r)|^2,
    theta(r) = -1/(lambda n) J'(s r).                                                                                  (2)

Moments may be held in a box instead of a ball: the adversary then keeps |1/n J'(s r)| <= tolerance in every coordinate. To the learner that
is an L1 penalty (Mazuelas, Romero & Grunwald 2023, "Minimax risk classifiers with 0-1 loss", JMLR 24):

    P(theta) = lambda/2 |theta|^2 + sum_j tolerance_j |theta_j| + mean,    theta(r) = soft(-1/n J'(s r), tolerance) / lambda;      (3)

with lambda = 0 the dual is the mean of c(r) over the r that keep their moments in the box.

llw asks for parameters that sum to zero over the classes. Among all parameters with the same centred scores the ridge penalty is least at
these, the L1 penalty is not; under the L1 penalty the sums are a constraint, Theta 1 = 0, with a multiplier v for each feature,

    theta(r) = soft(v 1' - 1/n J'(s r), tolerance) / lambda with v such that theta(r) 1 = 0;                               (4)

with lambda = 0 the moments of any two classes may differ by the sum of their tolerances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.arrays import is_sparse
from ..core.linalg import inner
from ..core.threads import rows_by, shared
from ..core.typing import Array, Labels
from ..features.base import FeatureMap
from ..losses.base import ROUNDING, AdversarialLoss, Loss

_CHUNK = 2**20  # numbers of a dual point that are judged at once
_SCORES = 2**26  # scores of linear features beyond which they are computed part by part
_EACH = 2**17  # scores whose surrogates a thread finds at a time
_LOST = 1e-3  # share of an objective up to which the rounding of scores is not looked at


@dataclass(frozen=True)
class Problem:
    """A regularised empirical risk: feature map, surrogate, labels, lambda and weights. Solvers and referee see nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.features import make_features
    >>> from advcli.losses import make_loss
    >>> from advcli.problems.risk import Problem
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0, 1, 2])
    >>> problem = Problem(make_features("linear", X, 3), make_loss("zero_one", 3), y, lam=0.1)
    >>> round(problem.primal(np.zeros((2, 3))), 3)
    0.667
    """

    features: FeatureMap  # bound to the n training rows
    loss: Loss  # the surrogate for k classes
    y: Labels  # codes 0..k-1, (n,)
    lam: float  # the ridge coefficient lambda, above 0; 0 is allowed with a tolerance
    sample_weight: Array | None = None  # s >= 0 of (1), (n,); None: 1
    cost_weight: Array | None = None  # w > 0 of (1), (n,); None: 1
    tolerance: Array | None = None  # half-widths >= 0 of the box of moments, weights of the L1 penalty in (3), as theta; None: 0
    threads: int = 1  # that share the evaluations of linear features; no bit of a value depends on their number

    def __post_init__(self) -> None:
        """Refuse labels and weights that do not fit the rows; `ValueError`."""
        n, k, y = self.features.n_rows, self.loss.n_classes, np.asarray(self.y)
        if y.shape != (n,) or y.dtype.kind not in "iu" or (n and not 0 <= y.min() <= y.max() < k):
            raise ValueError(f"y must be {n} codes in [0, {k})")
        for name, weight, least in (("sample_weight", self.sample_weight, 0.0), ("cost_weight", self.cost_weight, 5e-324)):
            if weight is not None and not (weight.shape == (n,) and np.isfinite(weight).all() and (weight >= least).all()):
                raise ValueError(f"{name} must be {n} finite numbers {'above' if least else 'of at least'} 0")

    @cached_property
    def n(self) -> float:
        """The n of (1): the sum of the sample weights, the number of rows when there are none."""
        return float(len(self.y) if self.sample_weight is None else self.sample_weight.sum())

    @property
    def C(self) -> float:
        """Weight of the summed loss against 1/2 |theta|^2; infinite when lambda = 0."""
        return 1.0 / (self.lam * self.n) if self.lam > 0 else float("inf")

    @property
    def counts(self) -> Array:
        """The s_i, shape (n,)."""
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight

    @property
    def costs(self) -> Array:
        """The w_i, shape (n,)."""
        return np.ones(len(self.y)) if self.cost_weight is None else self.cost_weight

    @cached_property
    def weight(self) -> Array:
        """The products s_i w_i, shape (n,)."""
        return self.counts * self.costs

    @cached_property
    def unit(self) -> float:
        """The gap between theta = 0 and r = 0, or 1 where there is none: above 0, and the same when a constant is added to a loss matrix.

        The mean loss at scores of 0, unless a matrix charges for right predictions.
        """
        gap = self.primal(np.zeros(self.features.shape)) - self.dual(self.nothing())
        return gap if gap > 0.0 else 1.0

    def lacks_distributions(self) -> str | None:
        """Return what is missing for `FeatureMap.feasible`, which moves mass between labels where parameters are free, or None."""
        if self.features.regularised is None or self.loss.simplex:
            return None
        return "a loss whose dual variables are distributions when some parameters are free"

    def lacks_parameters(self) -> str | None:
        """Return what is missing for explicit parameters that may move alone, or None."""
        if not self.features.euclidean:
            return "features with explicit parameters"
        if self.centred:
            held = f"loss={self.loss.name} with moments in a box holds their sums over the classes at zero"
            return f"parameters without a constraint ({held})"
        return self.lacks_distributions()

    def nothing(self) -> Any:
        """Return the dual point r = 0."""
        return np.zeros((len(self.y), self.loss.n_classes))

    @property
    def centred(self) -> bool:
        """Whether the parameters are held to sums of zero over the classes, (4)."""
        return self.tolerance is not None and self.loss.separate and self.features.multiclass_linear

    @cached_property
    def least_scale(self) -> float:
        """The least that a gap is relative to: 1e-6 `unit` where a matrix has negative entries, so that games of value 0 have a scale."""
        return 1e-6 * self.unit if self.loss.negative_costs else 0.0

    def gap_scale(self, primal: float, dual: float) -> float:
        """Return what the gap of two values of this problem is relative to."""
        return max(gap_scale(primal, dual), self.least_scale)

    def scaled(self, F: Array) -> Array:
        """Return the scores in units of the cost weights, f_i / w_i up to a constant a row, which no surrogate sees."""
        return F if self.cost_weight is None else scaled_scores(F, self.cost_weight)

    def ridge(self, theta: Array) -> float:
        """Return lambda/2 |theta|^2 over the regularised parameters."""
        return 0.5 * self.lam * self.features.square_norm(theta)

    def penalty(self, theta: Array) -> float:
        """Return lambda/2 |theta|^2 + sum_j tolerance_j |theta_j|, under (4) the penalty of theta less its means over the classes."""
        if self.centred:
            theta = theta - theta.mean(axis=1, keepdims=True)
        box = 0.0 if self.tolerance is None else inner(self.tolerance, np.abs(theta))
        return self.ridge(theta) + box

    def empirical(self, F: Array) -> float:
        """Return the mean weighted surrogate at scores F (n, k)."""
        return self.summed_loss(F) / self.n

    def empirical_at(self, theta: Array) -> float:
        """Return the mean weighted surrogate at parameters theta."""
        k = self.loss.n_classes
        if not self.features.multiclass_linear or len(self.y) * k <= _SCORES:
            return self.empirical(self.features.shared_scores(theta, self.threads))
        total = 0.0
        for rows in self._parts(_SCORES // 4):
            part = self.on_rows(rows, self.features.X[rows], self.y[rows], self.threads)
            total += part.summed_loss(part.features.shared_scores(theta, self.threads))
        return total / self.n

    def _parts(self, numbers: int) -> Iterator[slice]:
        """Yield the rows in their order, by parts of at most so many scores."""
        step = max(1, numbers // self.loss.n_classes)
        for first in range(0, len(self.y), step):
            yield slice(first, min(first + step, len(self.y)))

    def on_rows(self, rows: slice, X: Any, y: Labels, threads: int = 1) -> Problem:
        """Return the problem on some of the rows, their features and labels given; its n is their share of n."""
        sample, cost = (None if weights is None else weights[rows] for weights in (self.sample_weight, self.cost_weight))
        return Problem(self.features.at(X), self.loss, y, self.lam, sample, cost, threads=threads)

    def _shares(self) -> list[slice]:
        """Return the rows in the parts that threads take one by one; all rows where there is one thread, or the loss is not for several."""
        n, k = len(self.y), self.loss.n_classes
        return rows_by(n, _EACH // k) if self.threads > 1 and self.loss.compiled else [slice(0, n)]

    def summed_loss(self, F: Array) -> float:
        """Return the weighted sum of the surrogates at scores F (n, k)."""
        parts = self._shares()
        if len(parts) == 1:
            return float(self.weight @ self.loss.value(self.scaled(F), self.y))

        def values(rows: slice) -> Array:
            scaled = F[rows] if self.cost_weight is None else scaled_scores(F[rows], self.cost_weight[rows])
            return self.loss.value(scaled, self.y[rows])

        return float(self.weight @ np.concatenate(shared(values, parts, self.threads)))

    def summed_offset(self, R: Any) -> float:
        """Return the weighted sum of the c(r_i)."""
        threads = self.threads if self.loss.compiled else 1
        if isinstance(R, np.ndarray):
            offsets = shared(lambda rows: self.loss.offset(R[rows], self.y[rows]), self._shares(), threads)
            return float(self.weight @ (offsets[0] if len(offsets) == 1 else np.concatenate(offsets)))

        def offset(rows: slice) -> float:
            return float(self.weight[rows] @ self.loss.offset(R[rows].toarray(), self.y[rows]))

        return sum(shared(offset, self._parts(_CHUNK), threads))

    def primal(self, theta: Array) -> float:
        """Return P(theta)."""
        return self.penalty(theta) + self.empirical_at(theta)

    def lost_digits(self, theta: Array, primal: float) -> float:
        """Return how much more P(theta) may be than ``primal``, its value by rounded scores; 0 unless that is a share of the loss at 0.

        Rounding shows in P where features of 1e15 meet parameters whose products cancel. S moves |r|_1 times as fast as scores, at most.
        """
        steepness = 2.0 if self.loss.simplex else 2.0 * max(self.loss.n_classes - 1, 1)
        lost = steepness * self.features.score_rounding(theta)
        return lost if lost > _LOST * abs(primal) and lost > _LOST * self.unit else 0.0

    @property
    def is_game(self) -> bool:
        """Whether the loss is adversarial, and so has a loss matrix."""
        return isinstance(self.loss, AdversarialLoss)

    def game_value(self, theta: Array, primal: float | None = None) -> float:
        """Return P(theta) + lambda/2 |theta|^2 for adversarial losses, nan for others.

        No distribution of labels on the training rows whose moments J'q/n lie near the sample's costs the predictor at theta more in
        expectation: Fathony et al. 2018, Theorem 18. Near means within lambda |theta| in the Euclidean norm, the ball of a ridge penalty,
        plus ``tolerance`` in every coordinate.
        """
        if not self.is_game:
            return float("nan")
        return (self.primal(theta) if primal is None else primal) + self.ridge(theta)

    def dual_gradient(self, R: Any) -> Array:
        """Return 1/n J'(s r) in the shape of the parameters: how far the adversary's moments are from the sample's."""
        if self.sample_weight is not None:
            R = R * self.sample_weight[:, None] if isinstance(R, np.ndarray) else R.multiply(self.sample_weight[:, None]).tocsr()
        return self.features.shared_adjoint(R, self.threads) / self.n

    def parameters(self, R: Any) -> Array:
        """Return theta(r) of (2), (3) or (4); needs lambda > 0."""
        theta = self._outside(self.dual_gradient(R)) / -self.lam
        return theta if self.features.regularised is None else theta * self.features.regularised

    def _outside(self, gradient: Array) -> Array:
        """Return the part of the moments' deviation that lies outside the box, signed."""
        if self.tolerance is None:
            return gradient
        if self.centred:
            gradient = gradient - multipliers(gradient, self.tolerance)[:, None]
        outside: Array = np.sign(gradient) * np.maximum(np.abs(gradient) - self.tolerance, 0.0)
        return outside

    def into_box(self, R: Any) -> Any:
        """Return the longest multiple t r, t <= 1, whose moments lie in the box; the sample's own labels, r = 0, always do."""
        t = self._into_box(R)
        # one part in 1e12 inside, so that rounding cannot leave the box again
        return R if t == 1.0 else R * (t * (1.0 - 1e-12))

    def _into_box(self, R: Any) -> float:
        """Return the largest t <= 1 with the moments of t r in the box; nan where a moment is nan."""
        if self.tolerance is None or self.lam > 0:
            return 1.0
        gradient = self.dual_gradient(R)
        deviation, allowed = np.abs(gradient), self.tolerance
        if self.centred:  # for each pair of classes, since v has to serve the boxes of both
            deviation = gradient[:, :, None] - gradient[:, None, :]
            allowed = allowed[:, :, None] + allowed[:, None, :]
        inside = deviation <= allowed
        return 1.0 if inside.all() else float((allowed[~inside] / deviation[~inside]).min())

    def feasible(self, R: Any) -> tuple[Any, float]:
        """Return a feasible dual point near R, R itself where it is one up to rounding, and how far outside R lies.

        Outside is the largest of: a row's distance from conv R(y_i) (`Loss.infeasibility`); by how much the constraint of a free parameter
        is violated, in mass per row (`FeatureMap.broken`); and the share by which r must be shortened to bring its moments into the box.
        nan where R holds a nan.
        """
        point, k = R, self.loss.n_classes
        parts = list(self._parts(_CHUNK))

        def dense(part: slice) -> Any:
            return R[part] if isinstance(R, np.ndarray) else R[part].toarray()

        def outside(part: slice) -> float:
            with np.errstate(invalid="ignore"):  # a nan is found below
                return float(self.loss.infeasibility(dense(part), self.y[part]).max())

        distances = [0.0, *shared(outside, parts, self.threads if self.loss.compiled else 1)]
        for part, far in zip(parts, distances[1:], strict=True):
            if far > ROUNDING * k:
                if point is R:
                    point = R.copy() if isinstance(R, np.ndarray) else R.tolil()
                point[part] = self.loss.project(dense(part), self.y[part])
        if not isinstance(point, np.ndarray):
            point = point.tocsr()
        distances.append(self._broken(point))
        if distances[-1] > self._rounding and self.loss.simplex:
            point = self.features.feasible(point, self.y, self.sample_weight)
        distances.append(1.0 - self._into_box(point))
        return self.into_box(point) if distances[-1] > 0.0 else point, float(np.max(distances))

    @property
    def _rounding(self) -> float:
        """What rounding may add to a mean over n rows: each of n additions to a sum of at most 2 n is wrong by half an ulp at most."""
        return float(np.finfo(np.float64).eps) * len(self.y) + ROUNDING * self.loss.n_classes

    def _broken(self, R: Any) -> float:
        """Return by how much a constraint of a free parameter is broken, in mass per row."""
        return 0.0 if self.features.regularised is None else self.features.broken(self.dual_gradient(R))

    def dual(self, R: Any) -> float:
        """Return D(r), a lower bound of the optimum where each r_i lies in conv R(y_i), which is not checked here (`feasible` does).

        -inf where r breaks, beyond rounding, a constraint that a free parameter or the box puts on the sum over rows.
        """
        if not self._broken(R) <= self._rounding:
            return float("-inf")
        mean = self.summed_offset(R) / self.n
        if self.lam > 0:
            return mean - self.ridge(self.parameters(R))
        return mean if self._into_box(R) == 1.0 else float("-inf")


def scaled_scores(F: Array, cost_weight: Array) -> Array:
    """Return scores F (n, k) in units of the cost weights (n,), up to a constant a row."""
    scaled: Array = (F - F.max(axis=1, keepdims=True)) / cost_weight[:, None]
    return scaled


def multipliers(gradient: Array, tolerance: Array) -> Array:
    """Return v (d,) with sum_j soft(gradient_dj - v_d, tolerance_dj) = 0, for a gradient (d, k).

    The sum falls with v, in pieces that end at gradient_dj -+ tolerance_dj.
    """
    ends = np.sort(np.hstack([gradient - tolerance, gradient + tolerance]), axis=1)
    beyond = gradient[:, None, :] - ends[:, :, None]  # (d, ends, k)
    sums = (np.sign(beyond) * np.maximum(np.abs(beyond) - tolerance[:, None, :], 0.0)).sum(axis=2)
    rows = np.arange(len(ends))
    right = np.argmax(sums <= 0.0, axis=1)
    left = np.maximum(right - 1, 0)
    fall = sums[rows, left] - sums[rows, right]
    share = np.divide(sums[rows, left], fall, out=np.ones(len(ends)), where=fall > 0.0)
    return np.asarray(ends[rows, left] + share * (ends[rows, right] - ends[rows, left]))


def gap_scale(primal: float, dual: float) -> float:
    """Return what a gap is relative to: the primal value, or |dual| >= |primal| where matrices with negative entries make it negative."""
    return primal if primal > 0 else -dual


@dataclass
class Solution:
    """What a solver returns: the iterate, not its quality (`advcli.problems.certificate.certify` judges that)."""

    theta: Array  # parameters
    R: Any  # dual point (n, k): an array, a CSR matrix, or the `SparseDual` of a `BlockProblem`; None when the solver has none
    lam: float
    solver: str
    passes: float  # reads of the data, in units of one pass over all n rows
    seconds: float
    status: str = "converged"  # or "max_passes", "max_seconds", "stalled": what stopped the solver
    memory: dict[str, Any] = field(default_factory=dict)  # what the solver wants back on a warm start

    def at_rest(self) -> Any:
        """Return the dual point r = 0 in the form of R."""
        if isinstance(self.R, np.ndarray):
            return np.zeros(self.R.shape)
        return sp.csr_array(self.R.shape) if is_sparse(self.R) else self.R.empty()
