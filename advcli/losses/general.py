"""Adversarial losses of any l x k matrix, by an exact small simplex method or by HiGHS.

The game of one example is the linear program (Fathony et al. 2018, eq. 11)

    maximise f.q + v   subject to   v <= (Lq)_i for every prediction i,  q a distribution.

Its feasible set does not depend on f, and every (e_j, min_i L_ij) is a vertex of it. So the simplex method starts at the best single label
and needs no first phase. The duals of the l constraints are the predictor's p, and the equality of both players' values certifies the
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..core.compiled import kernels
from ..core.errors import UnknownNameError, nearest
from ..core.highs import pass_program, quiet_solver
from ..core.typing import Array, Labels
from . import matrices
from .base import AdversarialLoss, Answer, Loss, make_loss, named_matrix, register

BACKENDS = ("simplex", "highs")
CERTIFICATE = 1e-9  # largest gap between the two players' values, in units of the spread of the matrix


# ---- games by linear programming ------------------------------------------------------------------------------------
def _normalised(matrix: Array, F: Array) -> tuple[Array, Array, float]:
    """Return matrix and scores in units of the spread of the matrix, both least/most at 0, and that unit.

    A label whose score is more than the spread below the best is never in the adversary's support: scores are cut at
    twice the spread, which changes neither player's optimum and keeps scores of any size inside the arithmetic.
    """
    unit = float(matrix.max() - matrix.min()) or 1.0
    scores = F - F.max(axis=1, keepdims=True)
    return (matrix - matrix.min()) / unit, np.maximum(scores / unit, -2.0), unit


class Highs:
    """The game in HiGHS: the model is built once, an example only changes its objective and starts from the last basis."""

    def __init__(self, matrix: Array) -> None:
        import highspy

        self.matrix = matrix
        L, _, _ = _normalised(matrix, np.zeros((1, matrix.shape[1])))
        l, k = L.shape
        rows = np.r_[np.c_[-L, np.ones(l)], np.r_[np.ones(k), 0.0][None]]
        ends = np.r_[np.full(l, -np.inf), 1.0], np.r_[np.zeros(l), 1.0]
        self._solver = quiet_solver(1e-10)
        pass_program(self._solver, np.r_[np.zeros(k), 1.0], (0.0, np.inf), ends, rows, maximise=True)
        self._optimal = highspy.HighsModelStatus.kOptimal

    def solve(self, F: Array) -> tuple[Array, Array]:
        """Return Q (n, k) and P (n, l) for scores F (n, k)."""
        l, k = self.matrix.shape
        _, scores, _ = _normalised(self.matrix, F)
        Q, P = np.empty((len(F), k)), np.empty((len(F), l))
        columns = np.arange(k, dtype=np.int32)
        self._solver.clearSolver()  # no basis of an earlier call: the same rows give the same bits
        for i, row in enumerate(scores):
            self._solver.changeColsCost(k, columns, row)
            self._solver.run()
            if self._solver.getModelStatus() != self._optimal:
                raise ArithmeticError(f"HiGHS stopped with {self._solver.getModelStatus()} on the scores {F[i].tolist()}")
            solution = self._solver.getSolution()
            Q[i] = np.maximum(solution.col_value[:k], 0.0)
            P[i] = np.abs(solution.row_dual[:l])
        return Q / Q.sum(axis=1, keepdims=True), P / P.sum(axis=1, keepdims=True)


def game_gap(matrix: Array, F: Array, Q: Array, P: Array) -> Array:
    """Return max_j ((p'L)_j + f_j) - min_i (Lq)_i - f.q for every row, shape (n,): zero exactly at a saddle point."""
    # in units of the matrix: beside scores of 1e300 its entries would be rounded away
    L, scores, unit = _normalised(matrix, F)
    return unit * ((P @ L + scores).max(axis=1) - (Q @ L.T).min(axis=1) - np.einsum("ij,ij->i", scores, Q))


def solve_games(matrix: Array, F: Array, backend: str = "simplex", highs: Highs | None = None) -> tuple[Array, Array]:
    """Solve the game of every row of scores: Q (n, k), P (n, l). Simplex answers that fail their own certificate go to HiGHS."""
    F = np.asarray(F, dtype=float)
    if backend == "highs":
        return (highs or Highs(matrix)).solve(F)
    Q, P, _ = kernels.games(matrix, F)
    failed = game_gap(matrix, F, Q, P) > CERTIFICATE * (float(matrix.max() - matrix.min()) or 1.0)
    if failed.any():
        Q[failed], P[failed] = (highs or Highs(matrix)).solve(F[failed])
    return Q, P


# ---- recognised matrices --------------------------------------------------------------------------------------------
def closed_form(matrix: Any) -> tuple[AdversarialLoss, float, str] | None:
    """Return (loss, scale, words) with S_matrix(f, y) = scale * S_loss(f / scale, y) (Corollary 9), or None for a general matrix."""
    values = matrices.check_matrix(matrix)
    described, k = matrices.describe(values), values.shape[1]
    name, scale = described.structure, described.scale
    options: dict[str, Any] = {}
    if name == "general":
        return None
    words = "a matrix with columns convex in the prediction" if name == "convex" else f"the {name.replace('_', '-')} matrix"
    if name == "abstain":
        options = {"alpha": described.alpha}
        words += f" (alpha = {described.alpha:g})"
    words += "" if scale == 1.0 else f" times {scale:g}"
    if name == "convex" or (name in ("absolute", "squared") and scale != 1.0):
        name, scale, options = "convex", 1.0, {"matrix": values}
    loss = make_loss(name, k, **options)
    assert isinstance(loss, AdversarialLoss)
    return loss, scale, words


@register("general")
class GeneralLoss(AdversarialLoss):
    """The adversarial loss of any l x k matrix: ``matrix``, rows of numbers, or ``file``, a CSV (`advcli.losses.matrices.read_csv`).

    Rows whose names are not the classes are predictions of their own, chosen by the predictor's distribution, also where there are k of
    them; rows without names are the classes, and after them others; ``predictions`` are names for the rows of ``matrix``, such as ``["ant
    or bee", "cat"]``. ``classes`` are the labels in the order of their codes, in which named columns and rows are put. A matrix of a known
    structure is answered by its closed form, unless ``structure`` is false; ``note`` tells it. Negative entries and a diagonal that is
    not zero are allowed; ``note`` says which guarantees are lost. Other games are solved by the ``backend`` simplex, or highs, also in
    `value` and `oracle`.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.losses.general import GeneralLoss
    >>> loss = GeneralLoss(2, matrix=[[0, 4], [1, 0]])
    >>> loss.predictor(np.zeros((1, 2))).round(3)
    array([[0.2, 0.8]])
    """

    metric = "cost"

    def __init__(
        self,
        n_classes: int,
        matrix: Any = None,
        file: str | Path | None = None,
        backend: str = "simplex",
        structure: bool = True,
        classes: Sequence[Any] | None = None,
        predictions: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(n_classes)
        if backend not in BACKENDS:
            raise UnknownNameError(f"loss=general has no backend {backend!r}: {nearest(backend, BACKENDS)}")
        source = matrices.matrix_from(matrix, file, n_classes, "general", classes=classes, predictions=predictions)
        self.matrix, self.row_names, self.column_names = source
        self.backend = backend
        recognised = closed_form(self.matrix) if structure and backend == "simplex" else None
        self._closed: AdversarialLoss | None
        self._closed, self._scale, words = recognised or (None, 1.0, "")
        notes = matrices.describe(self.matrix, self.predicts_classes).notes
        self.note = "; ".join([*([f"the matrix is {words}: its closed form is used"] if words else []), *notes])

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """Return the classes' labels where the names of a file or of predictions must find theirs."""
        return frozenset({"classes"} if named_matrix(options) else ())

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return square, tall, wide, negative and recognised matrices, and the HiGHS backend."""
        random = np.random.default_rng(n_classes)
        few = min(n_classes, 7)
        # a dense game of hundreds of rows takes seconds: many classes get few predictions
        predictions = n_classes if n_classes <= 50 else few
        square = random.uniform(0.2, 2.0, (predictions, n_classes)) * (1.0 - np.eye(predictions, n_classes))
        return [
            {"matrix": square.tolist()},
            {"matrix": square.tolist(), "backend": "highs"},
            {"matrix": random.uniform(0.0, 1.0, (few + 2, n_classes)).tolist()},
            {"matrix": random.uniform(0.0, 1.0, (max(1, few // 2), n_classes)).tolist()},
            {"matrix": random.normal(size=(few, n_classes)).tolist()},
            {"matrix": (3.0 * matrices.zero_one(n_classes)).tolist()},
            {"matrix": matrices.zero_one(n_classes)[:predictions].tolist(), "structure": False},
        ]

    kernel = "general"

    @property
    def parameters(self) -> Array:
        """The number of predictions l, then the loss matrix row by row, shape (1 + l k,)."""
        return np.r_[float(len(self.matrix)), self.matrix.ravel()]

    @property
    def family(self) -> tuple[str, int, Array]:
        """What compiled functions take: the parameters of the closed form where it fits the matrix without a scale."""
        if self._closed is not None and self._scale == 1.0:
            return self._closed.family
        return self.kernel, self.n_classes, self.parameters

    @property
    def core(self) -> Loss:
        """The closed form when there is one (a scale is in `cost_weights`), else this loss."""
        return self if self._closed is None else self._closed

    def cost_weights(self, y: Labels, example: Array | None) -> Array | None:
        """Return the factors (n,) on the matrices of the examples in units of `core`: the scale of a recognised matrix."""
        if self._scale == 1.0:
            return example
        return np.full(len(y), self._scale) if example is None else self._scale * example

    @cached_property
    def _highs(self) -> Highs:
        return Highs(self.matrix)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_highs"}

    def _solve(self, F: Array) -> tuple[Array, Array]:
        return solve_games(self.matrix, F, self.backend, self._highs if self.backend == "highs" else None)

    def _in_units(self, F: Array) -> Array:
        # the common level goes first: it would be rounded in other units
        F = np.asarray(F, dtype=float)
        return F if self._scale == 1.0 else (F - F.max(axis=1, keepdims=True)) / self._scale

    def adversary(self, F: Array) -> Array:
        """Return q, shape (n, k)."""
        return self._solve(F)[0] if self._closed is None else self._closed.adversary(self._in_units(F))

    def predictor(self, F: Array) -> Array:
        """Return p, shape (n, l)."""
        return self._solve(F)[1] if self._closed is None else self._closed.predictor(self._in_units(F))

    @property
    def compiled(self) -> bool:
        """Whether no game goes to HiGHS."""
        return self.backend != "highs"

    def value(self, F: Array, y: Labels) -> Array:
        """Return S(f_i, y_i), shape (n,)."""
        return self.oracle_reference(np.asarray(F, dtype=float), y).value if self.backend == "highs" else super().value(F, y)

    def oracle(self, F: Array, y: Labels) -> Answer:
        """Return the maximising (r_i, c_i) and the value for every row."""
        return self.oracle_reference(np.asarray(F, dtype=float), y) if self.backend == "highs" else super().oracle(F, y)
