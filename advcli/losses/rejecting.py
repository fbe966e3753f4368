"""The hinges of learners that may abstain at a cost alpha <= 1/2 (Ramaswamy, Tewari & Agarwal 2018), as support functions.

    CS    2 max(alpha g, (1 - alpha) g, -alpha) + 2 alpha,  g = max over j != y of f_j - f_y       r = sum t_j (e_j - e_y)
    BEP   the same with g = max over a of B_a(y) u_a                                               r = sum t_a B_a(y) v_a
    OVA   2 alpha [1 - u_y]_+ + 2 (1 - alpha) sum over j != y of [1 + u_j]_+                       r = sum t_a s_a(y) v_a

CS and BEP have t >= 0, sum t <= 2 (1 - alpha) and c = min(sum t, 2 alpha); OVA has every t_a within its own bounds and c = sum t. At
alpha = 1/2 CS is the hinge of Crammer & Singer. With two classes BEP is twice alpha times the hinge of Bartlett & Wegkamp (2008).

The numbers u_a of BEP and OVA, one row of parameters each, belong to pairs of columns: u_a = v_a.f = (f_2a - f_(2a+1)) / sqrt(2). So every
r sums to zero, as solvers expect, and |Theta|^2 is the squared norm of the rows of u. Columns that belong to no pair stay 0.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ..core.checks import is_number, refuse, rule
from ..core.errors import ConfigError
from ..core.typing import Array, Labels
from .base import Answer, Loss

CODES = ("binary", "gray")
_HALF = np.sqrt(0.5)


class RejectingLoss(Loss):
    """A surrogate that abstains at a cost ``alpha`` in (0, 1/2], a wrong one of ``n_labels`` classes costing 1, over ``n_columns`` of
    scores.

    A prediction's margin exceeds ``threshold`` by default; with any number strictly within ``thresholds`` the rule is consistent.
    """

    metric = "abstention_loss"
    threshold: float
    thresholds: tuple[float, float]

    def __init__(self, n_columns: int, n_labels: int, alpha: float) -> None:
        super().__init__(n_columns)
        self.n_labels, self.alpha = int(n_labels), check_rejecting_alpha(alpha)
        self.low, self.high = 2.0 * self.alpha, 2.0 - 2.0 * self.alpha

    @property
    def n_predictions(self) -> int:
        """The classes and to abstain."""
        return self.n_labels + 1

    def predict(self, F: Array) -> Labels:
        """Return the class of the largest potential where its margin exceeds the default tau, else k, to abstain, shape (n,)."""
        P = self.class_scores(F)
        return np.where(self.margin(P) > self.threshold, np.argmax(P, axis=1), self.n_labels)

    # ---- t, the coefficients of r -------------------------------------------------------------------------------------
    @abstractmethod
    def _t(self, R: Array, y: Labels) -> Array:
        """Return t of r (n, n_columns)."""

    @abstractmethod
    def _r(self, T: Array, y: Labels) -> Array:
        """Return r (n, n_columns) of t."""

    def _margins(self, F: Array, y: Labels) -> Array:
        """Return the numbers u of scores with the signs of the label, whose largest is g."""
        return self._t(F, y)

    def _outside(self, R: Array, y: Labels, T: Array) -> Array:
        """Return how far r is from what t makes of it, and t below 0, shape (n,)."""
        return np.maximum(np.abs(R - self._r(T, y)).max(axis=1), -T.min(axis=1))


COST = rule("a number above 0, at most 0.5 (loss=abstain takes any cost up to 1)", lambda value: is_number(value) and 0.0 < value <= 0.5)


def check_rejecting_alpha(alpha: Any) -> float:
    """Return the cost of abstaining; `ConfigError` outside (0, 1/2], where the surrogates are not consistent or not convex."""
    refuse("loss.alpha", alpha, COST)
    return float(alpha)


class _Coupled(RejectingLoss):
    """CS and BEP: r of t >= 0 with sum t <= 2 (1 - alpha), and c = min(sum t, 2 alpha)."""

    def infeasibility(self, R: Array, y: Labels) -> Array:
        """Return how far r is from an r of such t, shape (n,)."""
        T = self._t(R, y)
        return np.maximum(self._outside(R, y, T), T.sum(axis=1) - self.high)

    def inside(self, R: Array, y: Labels) -> Array:
        """Return the r of t held above 0 and scaled to a sum of at most 2 (1 - alpha), shape (n, n_columns)."""
        T = np.maximum(self._t(R, y), 0.0)
        T *= (self.high / np.maximum(T.sum(axis=1), self.high))[:, None]
        return self._r(T, y)

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`: all of t on the largest g."""
        rows = np.arange(len(y))
        G = self._margins(F, y)
        best = np.argmax(G, axis=1)
        top = G[rows, best]
        mass = np.where(top > 0.0, self.high, np.where(top > -1.0, self.low, 0.0))
        value = np.where(top > 0.0, self.low + self.high * top, self.low * np.maximum(1.0 + top, 0.0))
        T = np.zeros(G.shape)
        T[rows, best] = mass
        return Answer(value, self._r(T, y), np.minimum(mass, self.low))

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Return min(sum t, 2 alpha)."""
        return np.minimum(np.maximum(self._t(R, y), 0.0).sum(axis=1), self.low)


class RejectingCrammerSingerLoss(_Coupled):
    """The surrogate CS for k classes, which predicts the best class where it leads the second by more than tau = 1/2."""

    kernel = "rejecting_cs"
    threshold, thresholds = 0.5, (0.0, 1.0)

    def __init__(self, n_classes: int, alpha: float = 0.5) -> None:
        super().__init__(n_classes, n_classes, alpha)
        if self.alpha == 0.5:  # the hinge of Crammer & Singer, whose r + e_y are all distributions
            self.kernel, self.simplex, self.thresholded = "cs", True, True  # type: ignore[misc]

    @property
    def parameters(self) -> Array:
        """Alpha, shape (1,), unless it is 1/2."""
        return np.empty(0) if self.simplex else np.array([self.alpha])

    def _margins(self, F: Array, y: Labels) -> Array:
        margins = F - F[np.arange(len(y)), y][:, None]
        margins[np.arange(len(y)), y] = -np.inf
        return margins

    def _t(self, R: Array, y: Labels) -> Array:
        T = R.copy()
        T[np.arange(len(y)), y] = 0.0
        return T

    def _r(self, T: Array, y: Labels) -> Array:
        R = T.copy()
        R[np.arange(len(y)), y] = -T.sum(axis=1)
        return R


class _Paired(RejectingLoss):
    """A surrogate of u_a = (f_2a - f_(2a+1)) / sqrt(2); ``signed`` (k, m): signs with which the u_a enter, times bounds of t_a."""

    def __init__(self, signed: Array, alpha: float) -> None:
        k, m = signed.shape
        super().__init__(max(k, 2 * m), k, alpha)
        self.signed = signed

    @property
    def parameters(self) -> Array:
        """Alpha, the number of pairs m, and the signs of every label, one row for each column, as many as there could be labels."""
        rows = np.ones((self.n_classes, self.signed.shape[1]))
        rows[: self.n_labels] = self.signed
        return np.r_[self.alpha, float(self.signed.shape[1]), rows.ravel()]

    def margin(self, P: Array) -> Array:
        """Return the largest potential, shape (n,)."""
        return P.max(axis=1)

    def paired(self, F: Array) -> Array:
        """Return u (n, m) of scores (n, n_columns)."""
        m = self.signed.shape[1]
        return _HALF * (F[:, 0 : 2 * m : 2] - F[:, 1 : 2 * m : 2])

    def unpaired(self, U: Array) -> Array:
        """Return the smallest f (n, n_columns) whose numbers are u (n, m)."""
        F = np.zeros((len(U), self.n_classes))
        m = self.signed.shape[1]
        part = _HALF * U
        F[:, 0 : 2 * m : 2], F[:, 1 : 2 * m : 2] = part, -part
        return F

    def _r(self, T: Array, y: Labels) -> Array:
        return self.unpaired(np.sign(self.signed[y]) * T)

    def _t(self, R: Array, y: Labels) -> Array:
        return np.sign(self.signed[y]) * self.paired(R)


class BinaryEncodedLoss(_Coupled, _Paired):
    """The surrogate BEP of Ramaswamy, Tewari & Agarwal (2018): m numbers u_a, whose signs spell the class.

    The potential of class j is min over a of -B_a(j) u_a: positive for the class whose code the signs spell, and then min |u_a|. So signs
    without a code word abstain, as do those with some |u_a| <= tau = 1/2. B is ``code``: the digits of the class number (``binary``), the
    most significant first, or of its Gray code (``gray``); or rows (k, m) of -1 and 1 that differ.
    """

    kernel = "rejecting_bep"
    threshold, thresholds = 0.5, (0.0, 1.0)

    def __init__(self, n_classes: int, alpha: float = 0.5, code: Any = "binary") -> None:
        super().__init__(code_words(code, n_classes), alpha)

    def class_scores(self, F: Array) -> Array:
        """Return min over a of -B_a(j) u_a, shape (n, k)."""
        U = self.paired(F)
        # one code word at a time: k numbers a row, not k m
        return np.column_stack([(-word * U).min(axis=1) for word in self.signed])


class PairedHingesLoss(_Paired):
    """sum over a of |b_a(y)| [1 + sign(b_a(y)) u_a]_+, with b = ``signed`` (k, m): hinges that have only the examples in common."""

    kernel = "rejecting_ova"
    threshold, thresholds = 0.0, (-1.0, 1.0)

    def __init__(self, signed: Any, alpha: float = 0.5) -> None:
        super().__init__(np.asarray(signed, dtype=np.float64), alpha)

    def hinges(self, y: Labels) -> Array:
        """Return b of every row."""
        return np.asarray(self.signed[y])

    def infeasibility(self, R: Array, y: Labels) -> Array:
        """Return how far r is from a sum of t_a v_a with every t_a within its bounds, shape (n,)."""
        T = self._t(R, y)
        return np.maximum(self._outside(R, y, T), (T - np.abs(self.signed[y])).max(axis=1))

    def inside(self, R: Array, y: Labels) -> Array:
        """Return the r of t held within its bounds, shape (n, n_columns)."""
        return self._r(np.clip(self._t(R, y), 0.0, np.abs(self.signed[y])), y)

    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`: every t_a at its bound where its hinge is positive."""
        margins = 1.0 + self._t(F, y)
        T = np.where(margins > 0.0, np.abs(self.signed[y]), 0.0)
        return Answer((T * margins).sum(axis=1), self._r(T, y), T.sum(axis=1))

    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Return sum t."""
        return np.maximum(self._t(R, y), 0.0).sum(axis=1)


class RejectingOneVersusAllLoss(PairedHingesLoss):
    """The surrogate OVA (k binary hinges), which predicts the class of the largest u_j where that exceeds tau = 0."""

    def __init__(self, n_classes: int, alpha: float = 0.5) -> None:
        cost = check_rejecting_alpha(alpha)
        unit = np.eye(n_classes)
        super().__init__((1.0 - unit) * (2.0 - 2.0 * cost) - unit * (2.0 * cost), cost)

    def class_scores(self, F: Array) -> Array:
        """Return u, shape (n, k)."""
        return self.paired(F)


def code_words(code: Any, n_classes: int) -> Array:
    """Return the code B (k, m) with entries -1 and 1; `ConfigError` for another value."""
    k, m = n_classes, max(1, int(np.ceil(np.log2(max(n_classes, 2)))))
    if isinstance(code, str):
        if code not in CODES:
            raise ConfigError(f"loss.code={code} is unknown; choose {' or '.join(CODES)}, or give a row of -1 and 1 for each class")
        number = np.arange(k)
        number = number ^ (number >> 1) if code == "gray" else number
        return np.where((number[:, None] >> np.arange(m)[::-1]) & 1, 1.0, -1.0)
    try:
        words = np.asarray(code, dtype=np.float64)
    except (TypeError, ValueError):
        words = np.empty(0)
    if words.ndim != 2 or len(words) != k or not words.shape[1] or not (np.abs(words) == 1.0).all():
        raise ConfigError(f"loss.code must be a row of -1 and 1 for each of the {k} classes")
    if len(np.unique(words, axis=0)) < k:
        raise ConfigError("loss.code has the same row for two classes, which no scores could tell apart")
    return words
