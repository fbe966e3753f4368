"""The waist of the house: every convex surrogate is a support function behind one oracle.

For one example with scores ``f`` in R^k and label ``y`` each surrogate of this project is

    S(f, y) = max over (r, c) in R(y) of  r.f + c                                             (1)

so the maximising pair yields the value, a subgradient in ``f`` (it is ``r``), a cutting plane and the vertex towards which a dual solver
moves. Adversarial losses have r = q - e_y and c = G(q) = min over rows of (Lq)_row (Fathony et al. 2018, eq. 10). All sets satisfy sum_j
r_j = 0, that is S(f + t, y) = S(f, y) for every constant t.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..core import plugins
from ..core.compiled import kernels
from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.linalg import plus_own
from ..core.registry import Registry, refuse_unknown_options
from ..core.typing import Array, Labels

RULES = ("default", "potentials", "predictor", "median", "mean")

ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
"""How far r may lie outside conv R(y) by rounding alone, for each of its k numbers: 3.6e-15."""


@dataclass(frozen=True)
class Answer:
    """The oracle's answer for n examples: ``value[i] = R[i] . F[i] + offset[i]``."""

    value: Array  # (n,) surrogate S(f_i, y_i)
    R: Array  # (n, k) maximising r_i, a subgradient of S(., y_i) at f_i
    offset: Array  # (n,) its c_i


class Loss(ABC):
    """A convex surrogate loss for ``n_classes`` >= 1 true classes, evaluated by the compiled family ``kernel`` with its ``parameters``.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.losses import make_loss
    >>> loss = make_loss("cs", 3)
    >>> loss.value(np.array([[2.0, 0.0, 0.0]]), np.array([0])), loss.predict(np.array([[2.0, 0.0, 0.0]]))
    (array([0.]), array([0]))
    """

    name: ClassVar[str]
    kernel: ClassVar[str]
    needs_order: ClassVar[bool] = False  # labels must have a meaningful order
    paths: ClassVar[tuple[str, ...]] = ("file",)  # options that name files, whose content a fit depends on
    metric: ClassVar[str] = "error"  # what selection minimises by default
    simplex: ClassVar[bool] = False  # whether r + e_y runs over all distributions
    thresholded: ClassVar[bool] = False  # whether S = tau + 1 - f_y with a tau that classes below it do not move
    smooth: bool = False  # whether S is twice differentiable, with `slopes` and `probabilities`, and so has no pieces and no block step
    order: float = np.inf  # alpha of the entropy that a smooth surrogate has
    sets: ClassVar[bool] = False  # whether predictions are sets of classes, a csr_array (n, k) of ones
    separate: ClassVar[bool] = False  # whether r = a - mean a and c = sum a with a_y = 0 and every other a_j in [0, 1] alone

    matrix: Array | None = None  # the loss matrix (l, k), where the surrogate belongs to a game
    row_names: tuple[str, ...] | None = None  # the predictions by name, where the rows of the matrix have names
    example_weights = False  # whether a fit's weights multiply the loss matrix (True) or count how often an example occurs (False)
    alpha: float | None = None  # cost of abstaining, where the last prediction is to abstain
    threshold: float | None = None  # margin up to which the last prediction, to abstain, is made, where a margin decides

    def __init__(self, n_classes: int) -> None:
        if n_classes < 1:
            raise ConfigError(f"loss={self.name} needs at least one class, got {n_classes}")
        self.n_classes = int(n_classes)

    @property
    def parameters(self) -> Array:
        """The compiled family's parameters, shape (any,)."""
        return np.empty(0)

    @property
    def family(self) -> tuple[str, int, Array]:
        """The compiled family of the loss, as compiled functions take it: (its name, k, parameters)."""
        return self.kernel, self.n_classes, self.parameters

    # ---- what a loss asks of the data -----------------------------------------------------------------------------
    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """Return what this loss with these options needs to know of the data.

        ``order``: labels that have one. ``classes``, ``hierarchy``: the option of that name, null in the configuration, holds the labels
        of the classes as text, or the label graph as ``{"edges": [[parent, child], ...], "classes": [...]}``.
        """
        return frozenset({"order"} if cls.needs_order else ())

    @classmethod
    def filled(cls, options: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with the facts that `needs` names filled in for null."""
        complete = dict(options)
        for name in cls.needs(options) & facts.keys():
            if complete.get(name) is None:
                complete[name] = facts[name]
        return complete

    @classmethod
    def reads_file(cls, options: Mapping[str, Any]) -> bool:
        """Return whether a loss with these options is read from a file."""
        return any(options.get(name) is not None for name in cls.paths)

    @classmethod
    def agrees(cls, options: Mapping[str, Any]) -> bool:
        """Return whether the prediction is always the likeliest class of the predictor's distribution."""
        return False

    @classmethod
    def estimates(cls, options: Mapping[str, Any]) -> bool:
        """Return whether a loss with these options is smooth, so that `probabilities` estimates the distribution of the labels."""
        return False

    @classmethod
    def examples(cls, n_classes: int) -> list[dict[str, Any]]:
        """Return option sets that tests of every loss should try with ``n_classes`` classes (read by `examples_of`)."""
        return [{}]

    @property
    def abstention_costs(self) -> Array | None:
        """What abstaining costs on rows of each class (k,), where it is a prediction of the loss matrix."""
        return None

    @property
    def negative_costs(self) -> bool:
        """Whether the loss matrix has a negative entry."""
        return self.matrix is not None and bool((self.matrix < 0.0).any())

    @property
    def compiled(self) -> bool:
        """Whether `value` and `offset` are compiled loops over the rows, which several threads may call at once."""
        return type(self).value is Loss.value and type(self).offset is Loss.offset

    # ---- what a fit solves ------------------------------------------------------------------------------------------
    @property
    def core(self) -> Loss:
        """The loss whose compiled family a fit runs: this loss, or the loss that `cost_weights` weighs."""
        return self

    @property
    def unweighted(self) -> Loss:
        """The loss itself, or the loss inside a weighted one."""
        return self

    def cost_weights(self, y: Labels, example: Array | None) -> Array | None:
        """Return factors (n,) on the loss matrices, in units of `core`, None when all are 1; ``example`` (n,) as in `example_weights`."""
        return example

    @property
    def n_predictions(self) -> int:
        """Number l of possible predictions; k unless the loss has others, such as abstaining."""
        return self.n_classes

    def hinges(self, y: Labels) -> Array | None:
        """Return b (n, m) where S is sum_a |b_a| [1 + sign(b_a) u_a]_+ with u = `paired`(f), the least such f being `unpaired`(u), else
        None.
        """
        return None

    def probabilities(self, F: Array) -> Array:
        """Return the distributions (n, k) that smooth surrogates estimate at scores F (n, k)."""
        raise NotImplementedError(f"loss={self.name} estimates no probabilities")

    def maximum(self, F: Array) -> tuple[Array, Array]:
        """Return S + f_y, shape (n,), and q(f), shape (n, k), for smooth surrogates."""
        raise NotImplementedError(f"loss={self.name} has kinks")

    def slopes(self, F: Array, maximum: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Return q(f) and d, both (n, k), with the Jacobian (I - q 1') diag(d) (I - 1 q') of q(f), for smooth surrogates.

        ``maximum`` is what `maximum` returned at F, where that is there already.
        """
        raise NotImplementedError(f"loss={self.name} has kinks")

    # ---- compiled twins -------------------------------------------------------------------------------------------
    def value(self, F: Array, y: Labels) -> Array:
        """Return S(f_i, y_i), shape (n,), for scores ``F`` (n, k) and 0-based labels ``y`` (n,)."""
        return kernels.value(self.family, F, y)

    def oracle(self, F: Array, y: Labels) -> Answer:
        """Return the maximising (r_i, c_i) of (1) and the value for every row."""
        return Answer(*kernels.oracle(self.family, F, y))

    def offset(self, R: Array, y: Labels) -> Array:
        """Return, shape (n,), the largest c for which (r_i, c) lies in the convex hull of R(y_i)."""
        return kernels.offset(self.family, R, y)

    def block(self, F: Array, R: Array, y: Labels, curvature: Array) -> Array:
        """Return the exact block step: argmax over r of c(r) + f.r - curvature/2 |r - R_i|^2, shape (n, k)."""
        return kernels.block(self.family, F, R, y, curvature)

    # ---- the set of dual points -----------------------------------------------------------------------------------
    @abstractmethod
    def infeasibility(self, R: Array, y: Labels) -> Array:
        """Return how far each r_i lies outside conv R(y_i), shape (n,): its largest broken constraint, >= 0; nan for a row with nan."""

    @abstractmethod
    def inside(self, R: Array, y: Labels) -> Array:
        """Return for each r_i a point of conv R(y_i) near it, shape (n, k): off by no more than a multiple of its infeasibility."""

    def project(self, R: Array, y: Labels) -> Array:
        """Return dual points of conv R(y_i), shape (n, k): R itself, but `inside` in rows that lie outside beyond k times `ROUNDING`."""
        outside = self.infeasibility(R, y) > ROUNDING * self.n_classes
        if not outside.any():
            return R
        projected = R.copy()
        projected[outside] = self.inside(R[outside], y[outside])
        return projected

    def slacks(self, R: Array, near: Array, y: Labels, B: Array, owner: Labels) -> tuple[Array, Array]:
        """Return what keeps r where c is linear as it is at ``near``: slacks (n, s) of R, which have to stay at least 0, and their rates.

        The rates (m, s) are those along directions B (m, k), each of which moves the row that ``owner`` (m,) names. A loss whose linear
        pieces are not known has no slacks, s = 0: steps of the dual are then cut where c falls short of its piece.
        """
        return np.zeros((len(R), 0)), np.zeros((len(B), 0))

    # ---- the readable reference that tests hold the compiled twins to ---------------------------------------------
    @abstractmethod
    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`, in plain NumPy."""

    @abstractmethod
    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Answer like `offset`, in plain NumPy."""

    def pieces(self, y: int) -> list[tuple[Array, float]]:
        """Return the pieces (r, c) of S(., y) at one label, which define a surrogate without a game (`advcli.testing.check_loss`)."""
        raise NotImplementedError(f"loss={self.name} does not list its pieces; `Loss.pieces` says what for")

    # ---- prediction -----------------------------------------------------------------------------------------------
    def class_scores(self, F: Array) -> Array:
        """Return the potentials of the classes from scores (n, n_classes): these, unless the scores belong to something else."""
        return F

    def margin(self, P: Array) -> Array:
        """Return how sure the predictions are, from the potentials of the classes (n, k), shape (n,): by `leads`."""
        return leads(P)

    def predict(self, F: Array) -> Labels:
        """Return the predicted label of each row: argmax of the potentials, ties to the lowest index."""
        return np.argmax(F, axis=1)

    def cost(self, predictions: Any, y: Labels) -> Array:
        """Return what `predict`'s answers cost under labels y (n,), shape (n,): 1 for an error where the loss has no costs of its own."""
        return (predictions != y).astype(np.float64)


def leads(P: Array) -> Array:
    """Return by how much the largest entry of each row (n, k) leads the second, shape (n,); infinite where there is one column."""
    if P.shape[1] < 2:
        return np.full(len(P), np.inf)
    top = np.partition(P, P.shape[1] - 2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])


def named_matrix(options: Mapping[str, Any]) -> bool:
    """Return whether a matrix names its classes, in a file or by its predictions, so that the names must match the data's."""
    return options.get("file") is not None or options.get("predictions") is not None


def by_class(R: Array) -> Array:
    """Return a copy (k, n) of R (n, k): NumPy takes what is asked of every row from it up to five times as fast where rows are short."""
    return np.array(R.T, order="C")


class SimplexLoss(Loss):
    """A surrogate whose r + e_y run over all distributions of the k labels."""

    simplex = True

    def infeasibility(self, R: Array, y: Labels) -> Array:
        """Return max(|sum_j r_j|, -min_j q_j) for q = r + e_y, shape (n,)."""
        Q = by_class(R)
        total = Q.sum(axis=0)
        Q[y, np.arange(len(y))] += 1.0
        return np.maximum(np.abs(total), -Q.min(axis=0))

    def inside(self, R: Array, y: Labels) -> Array:
        """Return q / sum q - e_y for q = max(r + e_y, 0), shape (n, k); where no mass is left r = 0, the label itself."""
        labels = np.arange(len(y)), y
        Q = np.maximum(plus_own(R, y), 0.0)
        mass = Q.sum(axis=1)
        Q[labels] += mass <= 0.0
        Q /= np.where(mass > 0.0, mass, 1.0)[:, None]
        Q[labels] -= 1.0
        return Q

    def slacks(self, R: Array, near: Array, y: Labels, B: Array, owner: Labels) -> tuple[Array, Array]:
        """Return q = r + e_y and its rates B: c is taken to be linear on the whole simplex."""
        return plus_own(R, y), B


class AdversarialLoss(SimplexLoss):
    """A surrogate from the adversarial game over a loss matrix L of shape (l, k), row = prediction, column = truth.

    Prediction rules: ``potentials`` is argmax f (eq. 132), ``predictor`` argmax of the predictor's distribution p (eq. 133), ``median``
    and ``mean`` (nearest label, halves upwards) of p, for losses over an order. The default is potentials when the predictions are
    the classes, else predictor. Ties go to the lowest index.
    """

    matrix: Array
    column_names: tuple[str, ...] | None = None  # the classes by name, likewise
    note: str = ""  # what a user should know about this matrix: its structure and the guarantees it lacks

    @abstractmethod
    def adversary(self, F: Array) -> Array:
        """Return the adversary's distributions q, shape (n, k), maximising min_row (Lq)_row + f.q."""

    @abstractmethod
    def predictor(self, F: Array) -> Array:
        """Return the predictor's distributions p, shape (n, l), minimising max_j (p'L)_j + f_j (eq. 131)."""

    def game_values(self, Q: Array) -> Array:
        """Return L q of each row of Q (n, k), shape (n, l): what each prediction costs on average."""
        return Q @ self.matrix.T

    def slacks(self, R: Array, near: Array, y: Labels, B: Array, owner: Labels) -> tuple[Array, Array]:
        """Return q, and by how much Lq at each prediction exceeds that at the prediction of least cost at ``near``, shape (n, k + l)."""
        Q = plus_own(R, y)
        least = np.argmin(self.game_values(plus_own(near, y)), axis=1)
        costs, rates = self.game_values(Q), self.game_values(B)
        costs -= costs[np.arange(len(Q)), least][:, None]
        rates -= rates[np.arange(len(B)), least[owner]][:, None]
        return np.hstack([Q, costs]), np.hstack([B, rates])

    @property
    def n_predictions(self) -> int:
        """Number l of possible predictions (rows of the loss matrix)."""
        return int(self.matrix.shape[0])

    @property
    def predicts_classes(self) -> bool:
        """Whether prediction j is class j for every class; predictions beyond the classes may follow."""
        if self.row_names is None:
            return self.n_predictions >= self.n_classes
        return self.column_names is not None and self.row_names[: self.n_classes] == self.column_names

    @property
    def default_rule(self) -> str:
        """The rule that ``predict`` follows when it is not told another."""
        return "potentials" if self.predicts_classes and self.n_predictions == self.n_classes else "predictor"

    def predict(self, F: Array, rule: str = "default") -> Labels:
        """Return a prediction code in [0, l) for every row of scores (n, k); `ConfigError` for a rule that the loss does not have."""
        if rule not in RULES:
            raise UnknownNameError(f"unknown prediction rule {rule!r}: {nearest(rule, RULES)}")
        if rule == "default":
            rule = self.default_rule
        if rule == "potentials":
            if not self.predicts_classes:
                raise ConfigError(
                    f"rule=potentials needs a prediction for each of the {self.n_classes} classes, but the {self.n_predictions} "
                    f"predictions of loss={self.name} are others: choose rule=predictor"
                )
            return np.argmax(F, axis=1)
        if rule == "predictor":
            return np.argmax(self.predictor(F), axis=1)
        if not self.needs_order:
            raise ConfigError(f"rule={rule} needs a loss over ordered labels, loss={self.name} has no order: choose rule=predictor")
        P = self.predictor(F)
        if rule == "median":
            # half a mass up to rounding, so that (1/2, 1/2) gives the lower label on every machine
            return np.argmax(np.cumsum(P, axis=1) >= 0.5 - 1e-12, axis=1)
        mean = P @ np.arange(float(self.n_predictions))
        return np.clip(np.floor(mean + 0.5 + 1e-12), 0, self.n_predictions - 1).astype(np.intp)

    def expected_loss(self, F: Array) -> Array:
        """Return the expected loss of the predictor's p under every truth, (p'L)_j, shape (n, k)."""
        return self.predictor(F) @ self.matrix

    def expected_cost(self, F: Array, y: Labels, example: Array | None = None) -> Array:
        """Return (p'L)_y of each row's own game, weighted by ``example`` (n,) as in `cost_weights`, shape (n,): never above `value`."""
        return self.expected_loss(F)[np.arange(len(y)), y]

    def cost(self, predictions: Labels, y: Labels) -> Array:
        """Return the loss L[prediction, truth] of prediction codes (n,) under labels ``y`` (n,), shape (n,)."""
        return self.matrix[predictions, y]

    def worst_cost(self, F: Array, predictions: Labels, y: Labels, example: Array | None = None) -> tuple[Array, Array]:
        """Return max_j L[prediction, j] + f_j - f_y, and L[prediction, y], never above it, for codes (n,) of any rule at scores (n, k)."""
        weight = np.ones(len(y)) if (weights := self.matrix_weights(y, example)) is None else weights
        own_score = F[np.arange(len(y)), y]
        largest = (weight[:, None] * self.unweighted.matrix[predictions] + (F - own_score[:, None])).max(axis=1)  # type: ignore[index]
        return largest, weight * self.unweighted.matrix[predictions, y]  # type: ignore[index]

    def matrix_weights(self, y: Labels, example: Array | None) -> Array | None:
        """Return the factors (n,) on the matrix of `unweighted` at the labels y (n,), None when all are 1."""
        return None

    def oracle_reference(self, F: Array, y: Labels) -> Answer:  # noqa: D102
        Q = self.adversary(F)
        G = (Q @ self.matrix.T).min(axis=1)
        return Answer(G + np.einsum("ij,ij->i", F, Q) - F[np.arange(len(y)), y], plus_own(Q, y, -1.0), G)

    def offset_reference(self, R: Array, y: Labels) -> Array:  # noqa: D102
        return self.game_values(plus_own(R, y)).min(axis=1)


# ---- registry: a loss registers itself in its own file --------------------------------------------------------------
registry: Registry[type[Loss]] = Registry("loss", "loss", __package__)
register = registry.register
loss_class = registry.get


def loss_names() -> list[str]:
    """Return every registered name, aliases included, sorted.

    Examples
    --------
    >>> from advcli.losses import loss_names
    >>> "zero_one" in loss_names()
    True
    """
    return list(registry)


def make_loss(name: str, n_classes: int, **options: Any) -> Loss:
    """Build the loss registered under ``name`` for ``n_classes`` classes; `ConfigError` for an unknown option.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.losses import make_loss
    >>> loss = make_loss("zero_one", 3)
    >>> answer = loss.oracle(np.array([[0.0, 0.0, 0.0]]), np.array([0]))
    >>> answer.value.round(3), answer.R.round(3)
    (array([0.667]), array([[-0.667,  0.333,  0.333]]))
    """
    cls = loss_class(name)
    try:
        loss = cls(n_classes, **options)
    except TypeError as error:
        refuse_unknown_options(f"loss={name}", cls, options, 1)
        raise ConfigError(f"loss={name}: {error}{plugins.defined_at(cls)}") from error
    if "n_classes" not in vars(loss):
        raise ConfigError(f"loss={name}: its __init__ does not call super().__init__(n_classes, ...){plugins.defined_at(cls)}")
    return loss


def examples_of(cls: type[Loss], n_classes: int) -> list[dict[str, Any]]:
    """Return the option sets of a class that tests try: its ``examples``, as far as its constructor takes them, or none."""
    taken = inspect.signature(cls).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken.values()):
        return cls.examples(n_classes)
    return [options for options in cls.examples(n_classes) if options.keys() <= taken.keys()] or [{}]
