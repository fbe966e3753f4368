"""Steps of the dual over all rows at once, on the faces that block ascent has found: they end the long tail of passes at small lambda.

Around an exact block step c is linear on a face of conv R(y_i). So over all rows D(r + B a) is a quadratic function of the coordinates a
along the tangents b_m of these faces, as long as no row leaves the linear piece of c that it is on. In units of e_m = s_i |x_i| /
sqrt(lambda n), i the row of b_m, a step maximises

    (e o h)'z - 1/2 z'G z,  a = z / e,  G_ml = (x_i'x_j)(b_m'b_l) / (|x_i||x_j|),  h_m = (r_i' - r_i)'b_m                  (1)

while `Loss.slacks` stay at least 0, with r' the block steps at the present scores, whose own optimality makes e o e o h the gradient.
`_ext/ascent/ascent_faces.pyx` ascends (1) for a few rounds. The step is cut until D rises, which takes no cut where the slacks are known.

Passes find the faces, which steps cannot, and run on between them; a step moves all rows together, which passes do in hundreds
(docs/notes/kernels.md, section 2).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.arithmetic import log
from ...core.arrays import is_sparse
from ...core.compiled import compiled_rows, kernels
from ...core.linalg import inner
from ...core.typing import Array, Labels
from ...problems.risk import Problem
from ..base import Limits

_CALLS = 1.5e6  # multiply-adds of a visit that take as long as the calls of a step
_ASCENT = 160.0  # likewise as the ascent of (1), for each direction and feature
_SHORT = 150.0  # features that take as long as what the ascent does for each direction whatever their number
_FIRST = 8.0  # passes before the first step, at least
_LATER = 1.3  # times the passes made, after which a step that does not pay is looked at again
_SERIES = 4.0  # steps that take most fits to their end
_BEGIN, _GO_ON = 1.5, 0.5  # prices of a step that the passes left take at least, before the first one and before a further one
_SHARE = 0.3  # of a step's price that goes to passes before the next
_STEPS = (1.0, 0.5, 0.25, 0.1, 0.03)
_MOST = 2.0  # directions of a step for each parameter: with more of them the faces are not found yet
_AT_ONCE = (
    4.0  # times as many fractions of r, less one a row, tell it without a look at the faces, where labels that tie have one direction
)
_ROUNDING = 1e-12  # rates of a slack below it are none


class _Faces(NamedTuple):
    """The faces of the block steps of some rows."""

    rows: Labels  # (n,)
    before: Array  # (n, k): r
    after: Array  # (n, k): the block steps
    B: Array  # (m, k): tangents
    owner: Labels  # (m,): the place in ``rows`` of each tangent's row; every row owns one, and no place is below the one before


class FaceSteps:
    """Steps on the faces of one ascent within ``limits``, and when they pay."""

    def __init__(self, problem: Problem, squares: Array, limits: Limits) -> None:
        self.loss, self.C, self.limits, self.X = problem.loss, problem.C, limits, problem.features.X
        self.y, self.squares = np.ascontiguousarray(problem.y, dtype=np.intp), squares
        n, d = self.X.shape
        self.sample = np.ones(n) if problem.sample_weight is None else problem.sample_weight
        self.cost = np.ones(n) if problem.cost_weight is None else problem.cost_weight
        self.length = self.X.nnz / max(n, 1) if is_sparse(self.X) else float(d)
        width = kernels.ascent_dense_for(self.loss.n_classes, d).width(self.loss.n_classes)
        self.one_pass = max(2.0 * n * self.length * width, 1.0)  # rows may hold nothing but zeros
        self.most = _MOST * d * max(self.loss.n_classes - 1, 1)
        self.patience, self.last = 1.0, 0.0

    def first(self) -> float:
        """Return the passes before which no step pays."""
        return max(_FIRST, _CALLS / self.one_pass)

    def price(self, directions: int) -> float:
        """Return the cost of a step over so many directions, in passes."""
        return (_CALLS + _ASCENT * directions * (self.length + _SHORT)) / self.one_pass

    def passes_left(self, passes: float, gap: float) -> float:
        """Return the passes that are left if the logarithm of the relative gap, now ``gap``, goes on falling as it has on average."""
        tol = self.limits.tol
        if not tol < gap < 1.0:
            return 0.0 if gap <= tol else math.inf
        return passes * log(gap / tol) / -log(gap)

    def due(self, price: float, passes: float, gap: float) -> float:
        """Return the passes after which a step of this price may pay: at most ``passes``, those made, if it does now.

        A step pays where the passes left take some times its price, and a share of the price has gone to passes since the last step. None
        pays where another solver, whose turn comes after the passes that it costs, ends sooner.
        """
        if _SERIES * price > self.limits.turn:
            return math.inf
        if self.passes_left(passes, gap) < (_GO_ON if self.last else _BEGIN) * price:
            return _LATER * passes
        return self.last + _SHARE * price * self.patience

    def take(self, R: Array, theta: Array, passes: float, gap: float) -> tuple[float, float]:
        """Make a step in place on r (n, kp) and theta (d, kp) = theta(r) if it pays; return when the next may pay, and the passes read.

        No step is made that reads more than the limits leave.
        """
        moved, fractions = self.off_corners(R)
        few = len(moved) > 0 and fractions - len(moved) <= _AT_ONCE * self.most
        due = self.due(self.price(len(moved)), passes, gap) if few else math.inf
        if due <= passes and passes + self.reads(len(moved), len(_STEPS)) <= self.limits.max_passes - 2.0:
            faces = self.faces(R, theta, moved)
            few = 0 < len(faces.owner) <= self.most
            due = self.due(self.price(len(faces.owner)), passes, gap) if few else math.inf  # a row may have many directions
            if due <= passes:
                cuts = self.step(R, theta, faces)
                self.patience = 2.0 * self.patience if cuts > len(_STEPS) else 1.0
                read = self.reads(len(faces.rows), min(cuts, len(_STEPS)))
                self.last = passes + read
                return self.last, read
        return max(min(due, _LATER * passes), passes + 1.0), 0.0

    def off_corners(self, R: Array) -> tuple[Labels, int]:
        """Return the rows whose r is no corner of its set, as far as whole numbers are its corners, and the number of their fractions.

        Other rows have no face to move on.
        """
        rows = np.empty(len(R), dtype=np.intp)
        count, fractions = kernels.ascent_faces.off_corners(R, rows)
        return rows[:count], fractions

    def reads(self, rows: int, trials: int) -> float:
        """Return the passes that a step reads its rows for: their scores, their products, the moments of each trial."""
        return (2.0 + trials) * rows / len(self.y)

    def faces(self, R: Array, theta: Array, rows: Labels) -> _Faces:
        """Return the faces of some rows, those side by side whose r are 0 in the same classes: most of them move in the same two."""
        k = self.loss.n_classes
        bits = 1 << np.arange(k, dtype=np.int64) % 62  # whole numbers: their sums are exact in any order, and for any number of classes
        rows = rows[np.argsort((R[rows, :k] != 0.0) @ bits, kind="stable")]
        before, sample, cost = np.ascontiguousarray(R[rows, :k]), self.sample[rows], self.cost[rows]
        scores = self.X[rows] @ theta[:, :k] / cost[:, None]
        after, face = kernels.face(self.loss.family, scores, before, self.y[rows], self.C * sample * self.squares[rows] / cost)
        B, owner = kernels.tangents(self.loss.family, face, (sample == 0.0) | (self.squares[rows] == 0.0))
        held = np.flatnonzero(np.bincount(owner, minlength=len(rows)))
        return _Faces(rows[held], before[held], after[held], B, np.searchsorted(held, owner))

    def step(self, R: Array, theta: Array, faces: _Faces) -> int:
        """Make a step in place on faces of some rows; return how many cuts were tried, one more than there are where none raised D."""
        k, C, rows, before = self.loss.n_classes, self.C, faces.rows, faces.before
        X, y, sample, cost = self.X[rows], self.y[rows], self.sample[rows], self.cost[rows]
        change = self.change(X, y, np.sqrt(self.squares[rows]), sample, faces)
        base = self.loss.offset(before, y)
        for tried, t in enumerate(_STEPS, 1):
            trial = self.loss.inside(before + t * change, y)
            moments = X.T @ ((trial - before) * sample[:, None])
            # D(trial) - D(before) in C form
            gain = C * float((sample * cost) @ (self.loss.offset(trial, y) - base)) + C * inner(moments, theta[:, :k])
            if gain > 0.5 * C * C * inner(moments, moments):
                R[rows, :k] = trial
                theta[:, :k] -= C * moments
                return tried
        return len(_STEPS) + 1

    def change(self, X: Any, y: Labels, length: Array, sample: Array, faces: _Faces) -> Array:
        """Return the change of r (n, k) where an ascent of (1) ends."""
        B, owner = faces.B, faces.owner
        e = np.sqrt(self.C) * (sample * length)[owner]
        h = np.einsum("mk,mk->m", (faces.after - faces.before)[owner], B)
        slack, rate = _padded(*self.loss.slacks(faces.before, faces.after, y, B, owner))
        z = np.zeros(len(owner))
        kernels.ascent_faces.ascend(*compiled_rows(_unit(X, length)), B, owner, e * h, slack, rate / e[:, None], z)
        return np.asarray(np.add.reduceat((z / e)[:, None] * B, np.searchsorted(owner, np.arange(len(y)))))


def _unit(X: Any, length: Array) -> Any:
    """Return the rows of X divided by their lengths; of sparse ones, the columns that hold nothing but zeros are left out."""
    if not is_sparse(X):
        return X / length[:, None]
    unit = X.multiply(1.0 / length[:, None]).tocsr()
    held, unit.indices = np.unique(unit.indices, return_inverse=True)
    unit.resize((X.shape[0], len(held)))
    return unit


def _padded(slack: Array, rate: Array) -> tuple[Array, Array]:
    """Return slacks (n, s), none below 0, and their rates (m, s), without those that are rounding; s is padded to whole vectors."""
    s = slack.shape[1]
    width = -(-s // 8) * 8
    slacks, rates = np.zeros((len(slack), width)), np.zeros((len(rate), width))
    np.maximum(slack, 0.0, out=slacks[:, :s])
    rates[:, :s] = np.where(np.abs(rate) > _ROUNDING, rate, 0.0)
    return slacks, rates
