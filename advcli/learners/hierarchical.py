"""Hierarchical support vector machines for one label per example: flat, HSVM, NHSVM and shared SVM (choi2018, chapter 6).

The label graph has M nodes; a label l is a leaf with all its ancestors, scored by the sum of its nodes' scores,
f_l = sum over n in l of a_n W_n.x. All four minimise

    Lambda/2 |W|^2 + mean of max_l [ (f_l - f_y) / c_ly + margin_ly ],   Lambda = 1/(n C),                                           (1)

which is the source's lambda |W|^2 + sum of hinges at lambda = 1/(2 C), divided by n. They differ in attributes a, margins and divisors c:

    flat    a = 1 on the leaf alone                         margin 1                                             c = 1
    hsvm    a = 1                                           |y ^ l| ** margin_power           (6.2)              c = 1
    nhsvm   a = sqrt(alpha), alpha from the hierarchy       sqrt(sum of alpha over y ^ l)     (6.10)             c = 1, or
            (`advcli.hierarchy.weights`)                    1                                 (6.13)             sqrt(that sum)
    ssvm    a = sqrt(alpha), alpha minimises (1), too       1, or nhsvm's                     (6.17)             c = 1

The true label's term is 0. Every fit has a duality gap (`_ext/hierarchical.pyx`); that of the shared SVM bounds its joint problem.
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms

from ..certificate import judge
from ..compiled import Rows, checked_csr, compiled_rows, kernels
from ..errors import ConfigError, IncompatibleError, NotConvergedWarning, nearest
from ..features.rows import equal_rows, summed
from ..hierarchy import LabelGraph
from ..hierarchy.multilabel import LabelSets, restricted
from ..hierarchy.shared_norm import best_weights, dual_bound
from ..hierarchy.weights import node_weights, parents_of
from ..losses.base import ROUNDING
from .base import Array, Bound, Labels, LinearLearner, register, registry, seed_of
from .multilabel import SetProblem, learn_sets

TABLES = 128
"""Up to so many labels, K, margins and divisors are tables; beyond, they follow from passes over the graph."""

LISTS, CELLS = 4096, 2**27
"""From so many labels, or labels x features, on, the dual sums of sparse rows are kept as lists per feature."""

PRECISIONS = ("double", "single")

OBJECTIVES = ("difference", "normalised")
MARGINS = ("zero_one", "normalised")
_CHUNK = 4_000_000  # scores that the referee holds at once
_STRETCHES = 13  # multiples of the dual point's weights that are tried, as in the compiled solver
_FARTHER = 2.0  # power of an update of alpha by which the next squared lengths are expected to change
_BLEND = 1e-2  # share of positive weights in new weights of the shared SVM, over the tolerance: a weight of 0 would stay 0


@dataclass(frozen=True, eq=False)
class Attributes:
    """Weights of a label graph's nodes, for K and for the margins of k labels.

    Attributes
    ----------
    graph : LabelGraph
    positions : ndarray of intp (k,)
        Position of every label among the graph's leaves.
    alpha, mu : ndarray (M,)
        Squared attributes, and the weights whose sum over the symmetric difference of two labels gives their margin.
    power : float
        Of that sum; 0 makes every margin 1.
    normalised : bool
        The objective (6.13): margins 1, score differences divided by the root of that sum.
    """

    graph: LabelGraph
    positions: NDArray[np.intp]
    alpha: Array
    mu: Array
    power: float
    normalised: bool = False

    @cached_property
    def membership(self) -> sparse.csr_array:
        """Labels x nodes, shape (k, M)."""
        return self.graph.membership[self.positions]

    def common(self, weights: Array, labels: NDArray[Any] | slice = slice(None)) -> Array:
        """Return the sums of weights over the nodes that each pair of labels shares, shape (len(labels), k)."""
        A = self.membership
        return np.asarray(((A[labels] * weights[None, :]) @ A.T).toarray())

    def margins_at(self, true: NDArray[Any], other: NDArray[Any]) -> tuple[Array, Array]:
        """Return margins and divisors of pairs of labels, shape (pairs,)."""
        A = self.membership
        total = np.asarray(A @ self.mu)
        sums = np.maximum(total[true] + total[other] - 2.0 * (A[true].multiply(A[other]) @ self.mu), 0.0)
        return self._of_sums(sums, true == other)

    def margins(self, labels: NDArray[Any] | slice = slice(None)) -> tuple[Array, Array]:
        """Return margins and divisors, shape (len(labels), k): row = true label."""
        total = np.asarray(self.membership @ self.mu)
        sums = np.maximum(total[labels][:, None] + total - 2.0 * self.common(self.mu, labels), 0.0)
        own = np.arange(len(total))[labels]
        return self._of_sums(sums, (np.arange(len(own)), own))

    def _of_sums(self, sums: Array, same: Any) -> tuple[Array, Array]:
        """Return margins and divisors for sums over symmetric differences; ``same`` selects the pairs of equal labels."""
        if self.normalised:
            margins, divisors = np.ones_like(sums), np.sqrt(sums)
        else:
            margins, divisors = sums**self.power, np.ones_like(sums)
        margins[same], divisors[same] = 0.0, 1.0
        return margins, divisors

    def spread(self, Z: Any) -> Any:
        """Return K Z for dual sums Z (k, d)."""
        A = self.membership
        return A @ (self.alpha[:, None] * (A.T @ Z))

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """The labels as arrays for the compiled solver."""
        graph, k = self.graph, len(self.positions)
        A = self.membership
        nothing = np.empty((0, 0))
        table = margins = divisors = nothing
        if k <= TABLES:
            margins, divisors = (np.ascontiguousarray(each.T) for each in self.margins())
            table = np.ascontiguousarray(self.common(self.alpha))
            if not divisors.all():
                raise ConfigError("objective=normalised needs labels that differ, two leaves' own nodes weigh 0; choose difference")
        parent = parents_of(graph) if graph.is_tree else np.empty(0, dtype=np.int32)
        node = np.ascontiguousarray(graph.leaves[self.positions], dtype=np.int32)
        start, up = A.indptr.astype(np.int64), A.indices.astype(np.int32)
        return node, parent, start, up, self.alpha, self.mu, float(self.power), self.normalised, table, margins, divisors


@dataclass(frozen=True, eq=False)
class FactoredWeights:
    """Leaf weights U = scale K Z, never formed: Z is sparse, U is dense because all labels share the weights of nodes near the top.

    Attributes
    ----------
    sums : csr_array (k, d)
        Z.
    membership : csr_array (k, M)
        A, labels x nodes.
    alpha : ndarray (M,)
        Of K = A diag(alpha) A'.
    scale : float
    """

    sums: sparse.csr_array
    membership: sparse.csr_array
    alpha: Array
    scale: float

    @cached_property
    def by_feature(self) -> sparse.csr_array:
        """Z' (d, k): the scores of a row of X need the row's own features alone."""
        return self.sums.T.tocsr()

    def scores(self, X: Any) -> Array:
        """Return X U', shape (n, k), for rows X (n, d)."""
        own = X @ self.by_feature
        below = (own.toarray() if hasattr(own, "toarray") else own) @ self.membership
        below *= self.scale * self.alpha
        return np.asarray(below @ self.membership.T)


class Evaluation(NamedTuple):
    """The weights of a dual point and their values."""

    primal: float
    dual: float
    coef: Any  # (k, d) leaf weights U = sum of a_n W_n, or FactoredWeights
    Z: Any  # (k, d) dual sums, sparse with FactoredWeights
    linear: float  # sum of s_i beta_i . margin
    hinge: float  # sum of s_i hinge_i at coef
    stretch: float  # coef over the weights of the dual point
    beta: sparse.csr_array  # the dual point, moved into its set
    outside: float  # how far it lay outside before


@dataclass(frozen=True, eq=False)
class Task:
    """Rows, codes, weights and C of one fit; values are divided by the sum of the weights, as in (1)."""

    X: Any
    y: Labels
    sample: Array
    C: float
    weighted: bool
    single: bool = False

    @cached_property
    def mass(self) -> float:
        """Sum of the example weights, the n of (1)."""
        return float(self.sample.sum())

    @cached_property
    def rows(self) -> Rows:
        """X as the compiled solver takes it."""
        return compiled_rows(self.X)

    @cached_property
    def squares(self) -> Array:
        """Squared lengths of the rows, shape (n,)."""
        return row_norms(self.X, squared=True)

    def sums(self, attributes: Attributes, beta: sparse.csr_array) -> tuple[Any, sparse.csr_array, float]:
        """Return Z = R'X (k, d), sparse as X is with many labels, R (n, k), and the sum of margins of a dual point beta (n, k)."""
        n, k = beta.shape
        owner = np.repeat(np.arange(n), np.diff(beta.indptr))
        margins, divisors = attributes.margins_at(self.y[owner], beta.indices)
        share = self.sample[owner] * beta.data
        linear = float(share @ margins)
        off = share / divisors
        held = np.bincount(owner, weights=off, minlength=n)
        R = sparse.csr_array(
            (np.concatenate([-off, held]), (np.concatenate([owner, np.arange(n)]), np.concatenate([beta.indices, self.y]))), shape=(n, k)
        )
        Z = R.T @ self.X
        if hasattr(Z, "toarray"):
            Z = sparse.csr_array(Z) if keeps_lists(self.X, k) else Z.toarray()
        return Z, R, linear

    def evaluate(self, attributes: Attributes, beta: sparse.csr_array, tol: float) -> Evaluation:
        """Return the evaluation of a dual point beta (n, k), from scratch; of the feasible point beside beta where beta is infeasible.

        The weights are the best of a few multiples of W(beta). Where the labels separate, W(beta) is a little short of the margins: hinges
        then make up most of P, and vanish for a small price in |W|^2.
        """
        beta, outside = into_shares(beta)
        Z, R, linear = self.sums(attributes, beta)
        coef = None if hasattr(Z, "indptr") else self.C * np.asarray(attributes.spread(Z))
        factored = FactoredWeights(Z, attributes.membership, attributes.alpha, self.C)
        stretches = np.concatenate([[1.0], 1.0 + 0.05 * tol * 2.0 ** np.arange(_STRETCHES - 1)])
        hinges, norm = np.zeros(_STRETCHES), 0.0
        n, k = beta.shape
        size = max(1, _CHUNK // k)
        for first in range(0, n, size):
            part = slice(first, min(first + size, n))
            F = factored.scores(self.X[part]) if coef is None else np.asarray(self.X[part] @ coef.T)
            norm += 0.5 * float(R[part].multiply(F).sum())  # lambda |W|^2 = 1/2 sum of r_i . f_i
            y = self.y[part]
            labels, at = np.unique(y, return_inverse=True)
            margins, divisors = attributes.margins(labels)
            gain = (F - F[np.arange(len(F)), y][:, None]) / divisors[at]
            hinges += self.sample[part] @ _stretched(gain, margins[at], stretches)
        best = int(np.argmin(stretches**2 * norm + hinges))
        t, hinge = float(stretches[best]), float(hinges[best])
        weights = replace(factored, scale=t * self.C) if coef is None else t * coef
        return Evaluation((t * t * norm + hinge) / self.mass, (linear - norm) / self.mass, weights, Z, linear, hinge, t, beta, outside)

    def ascend(
        self, attributes: Attributes, beta: sparse.csr_array, tol: float, max_passes: float, seed: int
    ) -> tuple[sparse.csr_array, float, bool]:
        """Ascend the dual from beta; return the dual point, the passes made, and whether the compiled solver reached the tolerance."""
        rows = self.rows
        code, passes, _, _, start, label, value = kernels.hierarchical.solve(
            *rows,
            self.y,
            np.ascontiguousarray(self.squares, dtype=np.float64),
            self.sample if self.weighted else np.empty(0),
            *attributes.arguments,
            beta.indptr.astype(np.int64),
            beta.indices.astype(np.int32),
            np.ascontiguousarray(beta.data, dtype=np.float64),
            self.C,
            self.mass,
            tol,
            max_passes,
            float("inf"),
            seed & 0xFFFFFFFFFFFFFFFF,
            keeps_lists(self.X, beta.shape[1]),
            self.single,
        )
        return sparse.csr_array((value, label, start), shape=beta.shape), passes, code == 0


def into_shares(beta: sparse.csr_array) -> tuple[sparse.csr_array, float]:
    """Return a dual point near beta (n, k) with beta >= 0 and rows that sum to at most 1, and how far beta lies outside.

    A beta that is outside by rounding alone is returned as is. Else negative entries become 0, and rows of a sum above 1 are divided
    by the sum.
    """
    counts, total = np.diff(beta.indptr), np.asarray(beta.sum(axis=1)).ravel()
    # nan where beta holds one
    outside = float(np.max([0.0, (-beta.data).max(initial=0.0), (total - 1.0).max(initial=0.0)]))
    if not outside > ROUNDING * counts.max(initial=1):
        return beta, outside
    held = sparse.csr_array((np.maximum(beta.data, 0.0), beta.indices, beta.indptr), shape=beta.shape)
    held.data /= np.repeat(np.maximum(np.asarray(held.sum(axis=1)).ravel(), 1.0), counts)
    return held, outside


def _stretched(gain: Array, margins: Array, stretches: Array) -> Array:
    """Return max_l [t gain_l + margins_l] of every row at every t of the ascending stretches, shape (n, stretches).

    The maximum is convex and piecewise linear in t: a label that attains it at both ends attains it between them.
    """
    rows = np.arange(len(gain))
    first, last = (np.argmax(t * gain + margins, axis=1) for t in (stretches[0], stretches[-1]))
    values = stretches * gain[rows, first][:, None] + margins[rows, first][:, None]
    bent = np.flatnonzero(first != last)
    for j, t in enumerate(stretches):
        values[bent, j] = (t * gain[bent] + margins[bent]).max(axis=1)
    return values


def keeps_lists(X: Any, k: int) -> bool:
    """Return whether the dual sums of rows X (n, d) and k labels are kept as lists."""
    return hasattr(X, "tocsr") and (k >= LISTS or k * X.shape[1] > CELLS)


class _HierarchicalSVM(LinearLearner):
    """Base of the four models, which differ in `attributes`, their use of the label graph."""

    certified: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)
    takes: ClassVar[tuple[str, ...]] = ("hierarchy",)
    sets: ClassVar[bool] = True

    hierarchy: Any
    C: float
    lam: float | None
    tol: float
    max_passes: float
    precision: str

    @abstractmethod
    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the model's attributes for labels at these positions among the graph's leaves."""

    def fit_bound(self, bound: Bound, start: Any = None) -> Self:
        """Learn from bound rows; ``start``, fitted to the same rows, is where the dual ascent begins."""
        self._start = start
        try:
            return super().fit_bound(bound)
        finally:
            del self._start

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Ascend the dual until the gap, computed from the dual point alone, is small."""
        lam = 1.0 if self.lam is None else self.lam
        for name, value in (("C", self.C), ("tol", self.tol), ("lam", lam), ("max_passes", self.max_passes)):
            if not (np.isfinite(value) and value > 0):
                raise ConfigError(f"{name} must be a positive number, got {value}")
        began = time.perf_counter()
        self.lam_ = float(self.lam or 1.0 / (self.C * (X.shape[0] if weights is None else float(weights.sum()))))
        if self.of_sets_:
            return self._learn_sets(X, y, np.ones(X.shape[0]) if weights is None else weights, began)
        attributes = self.attributes(*self._labels())
        n, k = X.shape[0], len(self.classes_)
        sample = np.ones(n) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        C = self.C if self.lam is None else 1.0 / (self.lam * float(sample.sum()))
        single = _choice("precision", self.precision, PRECISIONS) == "single"
        task = Task(X, np.ascontiguousarray(y, dtype=np.intp), sample, float(C), weights is not None, single)
        beta = sparse.csr_array((n, k))
        # a shortened dual point of the same rows is feasible at any C
        start = getattr(getattr(self, "_start", None), "dual_", None)
        if start is not None and start.shape == (n, k):
            beta = _shortened(task, attributes, start)
        self._solve(task, attributes, beta, began)
        return self.coef_

    def _solve(self, task: Task, attributes: Attributes, beta: sparse.csr_array, began: float) -> None:
        """Set the solution and its certificate."""
        beta, passes, _ = task.ascend(attributes, beta, self.tol, self.max_passes, seed_of(self.random_state))
        found = task.evaluate(attributes, beta, self.tol)
        self.alpha_ = attributes.alpha
        self._finish(found.beta, found.coef, found.primal, found.dual, found.outside, passes, time.perf_counter() - began)

    def _learn_sets(self, X: Any, Y: Any, sample: Array, began: float) -> Array:
        """Learn sets of labels (`advcli.learners.multilabel`); `coef_` are then weights of the nodes."""
        graph, positions = restricted(*self._labels())
        attributes = self.attributes(graph, positions)
        if attributes.normalised:
            raise IncompatibleError("objective=normalised", "one label a row", "rows have several: choose loss.objective=difference")
        C = self.C if self.lam is None else 1.0 / (self.lam * float(sample.sum()))
        self.sets_, self.positions_ = LabelSets(graph), positions
        order = np.argsort(positions)  # columns of Y in the order of the leaves
        problem = SetProblem(X, sparse.csr_array(Y[:, order]), np.ascontiguousarray(sample, dtype=np.float64), self.sets_, 0.5 / C)
        start = getattr(getattr(self, "_start", None), "dual_", None)
        fit = learn_sets(
            problem, attributes.alpha, self.tol, int(self.max_passes), seed_of(self.random_state), start, **self._shared(graph)
        )
        mass = float(sample.sum())
        self.alpha_ = fit.alpha
        self._finish(fit, fit.coef, fit.primal / mass, fit.dual / mass, fit.outside, fit.passes, time.perf_counter() - began)
        return self.coef_

    def _shared(self, graph: LabelGraph) -> dict[str, Any]:
        """Return the options of `learn_sets` for learning alpha; none here."""
        return {}

    def predict_codes(self, X: Any) -> Any:
        """Return codes (n,), or where labels are sets ones at the labels of the set that scores highest, csr_array (n, k)."""
        if not self.of_sets_:
            return super().predict_codes(X)
        chosen = self.sets_.best(self.sets_.scores(self.potentials(X)))[1][:, self.sets_.leaves]
        return sparse.csr_array(chosen[:, self.positions_].astype(np.int8))

    def predict(self, X: Any) -> Any:
        """Return labels (n,), or sets of labels as `predict_codes` does."""
        return self.predict_codes(X) if self.of_sets_ else super().predict(X)

    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: all but the dual point, and the label graph by its edges."""
        parameters, attributes, rows = super().saved()
        if isinstance(parameters.get("hierarchy"), LabelGraph):
            parameters["hierarchy"] = {"edges": parameters["hierarchy"].edges()}
        for name in ("dual_", "sets_"):
            attributes.pop(name, None)
        if isinstance(self.coef_, FactoredWeights):
            Z = attributes.pop("coef_").sums
            attributes |= {"sums_data_": Z.data, "sums_indices_": Z.indices, "sums_indptr_": Z.indptr}
            # alpha_ of the shared model is an update later than the alpha of the factors
            attributes |= {"sums_shape_": np.array(Z.shape), "sums_alpha_": self.coef_.alpha, "scale_": self.coef_.scale}
        return parameters, attributes, rows

    def restore(self, attributes: Mapping[str, Any]) -> None:
        """Take over the fitted attributes of a saved model."""
        own = dict(attributes)
        if "scale_" in own:
            data, indices, start, shape = (own.pop(f"sums_{part}_") for part in ("data", "indices", "indptr", "shape"))
            graph, positions = self._labels()
            Z = checked_csr(sparse.csr_array((data, indices, start), shape=tuple(shape)), "the model's sums")
            alpha = own.pop("sums_alpha_", own["alpha_"])
            own["coef_"] = FactoredWeights(Z, graph.membership[positions], alpha, float(own.pop("scale_")))
        super().restore(own)
        if self.of_sets_:
            self.sets_ = LabelSets(restricted(*self._labels())[0])

    def _finish(self, beta: Any, coef: Any, primal: float, dual: float, outside: float, passes: float, seconds: float) -> None:
        self.dual_ = beta
        self.coef_ = coef if isinstance(coef, FactoredWeights) else np.ascontiguousarray(coef)
        self.n_iter_ = max(1, int(np.ceil(passes)))
        self.certificate_ = found = judge(
            primal,
            dual,
            self.tol,
            outside=outside,
            passes=float(passes),
            status="max_passes" if passes >= self.max_passes else "converged",
            solver="dual",
            seconds=seconds,
        )
        if not found.converged:
            strength = f"C={self.C:.3g}" if self.lam is None else f"lambda={self.lam:.3g}"
            text = (
                f"loss={self.name}, {strength}: relative gap {found.relative_gap:.2e} after {passes:.0f} passes "
                f"({found.status}), tolerance {self.tol:g}"
            )
            warnings.warn(text, NotConvergedWarning, stacklevel=5)

    def _labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        """Return the label graph and the position of every class among its leaves."""
        given = self.hierarchy
        names: list[str] | None = None if self.of_sets_ else [str(label) for label in self.classes_]
        several = False
        if isinstance(given, Mapping):
            unknown = set(given) - {"edges", "classes"}
            if unknown or "edges" not in given:
                raise ConfigError("hierarchy must be a list of [parent, child] pairs, or have the keys edges and classes")
            if given.get("classes") is not None and (self.of_sets_ or self.n_classes is not None):
                names = [str(label) for label in given["classes"]]
            # a data set has accepted several tops
            given, several = given["edges"], True
        if given is None:
            raise ConfigError(
                f"loss={self.name} needs a label graph: give hierarchy=[[parent,child],...], a data set that has one, or choose loss=flat"
            )
        if not isinstance(given, LabelGraph):
            pairs = [tuple(pair) for pair in given]
            if any(len(pair) != 2 for pair in pairs):
                raise ConfigError("hierarchy must be a list of [parent, child] pairs")
            given = LabelGraph.from_edges(pairs, several_tops=several)
        if names is None:  # columns of labels without names are the leaves
            names = [given.names[leaf] for leaf in given.leaves]
        if len(names) != len(self.classes_):
            raise ConfigError(f"hierarchy names {len(names)} classes, the data have {len(self.classes_)}")
        return given, given.leaf_positions(names)


def _shortened(task: Task, attributes: Attributes, beta: sparse.csr_array) -> sparse.csr_array:
    """Return the multiple t beta of largest dual value that is feasible, without entries on the true labels."""
    owner = np.repeat(np.arange(beta.shape[0]), np.diff(beta.indptr))
    kept = (beta.indices != task.y[owner]) & (beta.data > 0)
    beta = sparse.csr_array((beta.data[kept], (owner[kept], beta.indices[kept])), shape=beta.shape)
    largest = float(beta.sum(axis=1).max(initial=0.0))
    if largest == 0.0:
        return beta
    Z, _, linear = task.sums(attributes, beta)
    curvature = task.C * float(attributes.alpha @ row_norms(attributes.membership.T @ Z, squared=True))
    # rounding must not lift a sum above 1
    t = min(linear / curvature, (1.0 - 1e-12) / largest) if curvature > 0 else 1.0 / largest
    return sparse.csr_array(beta * t)


def _side_by_side(k: int) -> LabelGraph:
    """Return k nodes without edges."""
    nothing, start = np.empty(0, dtype=np.int32), np.zeros(k + 1, dtype=np.int64)
    return LabelGraph(tuple(str(code) for code in range(k)), start, nothing, start, nothing)


def _choice(what: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ConfigError(f"{what}={value} is unknown; {nearest(str(value), known)}")
    return str(value)


@register("flat")
class FlatSVM(_HierarchicalSVM):
    """The multiclass support vector machine of Crammer & Singer (2001) over the leaves; a yardstick that knows no hierarchy.

    Parameters
    ----------
    C : float
        Weight of the summed hinges against |W|^2 / 2; the source's lambda is 1/(2 C).
    lam : float or None
        Lambda of (1) itself; overrides ``C``.
    tol : float
        Relative duality gap at which the fit is accepted.
    max_passes : float
        Limit of passes over the rows; a fit that reaches it keeps its certificate and warns (`NotConvergedWarning`).
    precision : {"double", "single"}
        Of the dual sums of many labels over sparse rows (`LISTS`), which single halves. The certificate is of double precision.
    features, features_options, n_classes, random_state
        As in `UMAClassifier`.

    Attributes
    ----------
    coef_ : ndarray (k, d) or FactoredWeights
        Weights of the leaves' scores; with many labels over sparse rows as factors.
    certificate_ : Certificate
        Primal, dual and gap of (1), computed from the dual point alone.
    dual_ : csr_array (n, k)
        The dual point off the true labels.
    """

    takes = ()

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        tol: float = 1e-3,
        max_passes: float = 5000,
        precision: str = "double",
        features: str = "linear",
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.tol = tol
        self.max_passes = max_passes
        self.precision = precision
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state

    def _labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        k = len(self.classes_)
        return _side_by_side(k), np.arange(k)

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return weights 1 and margins 1."""
        return Attributes(graph, positions, np.ones(graph.size), np.ones(graph.size), 0.0)


@register("hsvm")
class HierarchicalSVM(_HierarchicalSVM):
    """The hierarchical support vector machine of Cai & Hofmann (2004), choi2018 (6.2).

    Parameters
    ----------
    hierarchy : LabelGraph, list of (parent, child), mapping or None
        The label graph, whose leaves' names are the class labels as text. A mapping has ``edges``, and ``classes``: the names of the codes
        0..n_classes-1.
    margin_power : float
        Power of the Hamming distance of two labels' node sets that is their margin: 1, or 0.5 for its square root.
    C, lam, tol, max_passes, precision, features, features_options, n_classes, random_state
        As in `FlatSVM`.

    Attributes
    ----------
    coef_, certificate_, dual_
        As in `FlatSVM`.
    alpha_ : ndarray (M,)
        Squared attributes of the nodes: 1.
    """

    hyper: ClassVar[tuple[str, ...]] = ("regularisation", "margin_power")

    def __init__(
        self,
        hierarchy: Any = None,
        *,
        margin_power: float = 1.0,
        C: float = 1.0,
        lam: float | None = None,
        tol: float = 1e-3,
        max_passes: float = 5000,
        precision: str = "double",
        features: str = "linear",
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.hierarchy = hierarchy
        self.margin_power = margin_power
        self.C = C
        self.lam = lam
        self.tol = tol
        self.max_passes = max_passes
        self.precision = precision
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return weights 1 and powers of the Hamming distance."""
        if not (np.isfinite(self.margin_power) and self.margin_power > 0):
            raise ConfigError(f"margin_power={self.margin_power} must be a positive number (1: Hamming, 0.5: its square root)")
        return Attributes(graph, positions, np.ones(graph.size), np.ones(graph.size), float(self.margin_power))


@register("nhsvm")
class NormalisedHierarchicalSVM(_HierarchicalSVM):
    """The normalised hierarchical support vector machine, choi2018 (6.10) and (6.13).

    Parameters
    ----------
    hierarchy
        As in `HierarchicalSVM`.
    rho : float
        At least 1: how the hierarchy sets the weights (`advcli.hierarchy.weights.node_weights`); 1 is the linear program (6.7).
    directional : bool
        Children never weigh less than their parents with rho > 1 as well.
    largest_sum : float or None
        T: on DAGs the weights along a leaf's ancestor set sum to 1..T. None: 1 on trees, 1.5 on DAGs.
    objective : {"difference", "normalised"}
        (6.10), or (6.13), which divides score differences by the distance of the labels' attributes and has margins 1.
    C, lam, tol, max_passes, precision, features, features_options, n_classes, random_state
        As in `FlatSVM`.

    Attributes
    ----------
    coef_, certificate_, dual_
        As in `FlatSVM`.
    alpha_ : ndarray (M,)
        Weights of the nodes.
    """

    hyper: ClassVar[tuple[str, ...]] = ("regularisation", "rho")

    def __init__(
        self,
        hierarchy: Any = None,
        *,
        rho: float = 2.0,
        directional: bool = False,
        largest_sum: float | None = None,
        objective: str = "difference",
        C: float = 1.0,
        lam: float | None = None,
        tol: float = 1e-3,
        max_passes: float = 5000,
        precision: str = "double",
        features: str = "linear",
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.hierarchy = hierarchy
        self.rho = rho
        self.directional = directional
        self.largest_sum = largest_sum
        self.objective = objective
        self.C = C
        self.lam = lam
        self.tol = tol
        self.max_passes = max_passes
        self.precision = precision
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the weights of the hierarchy, for attributes and margins alike."""
        alpha = node_weights(graph, self.rho, directional=self.directional, largest_sum=self.largest_sum)
        normalised = _choice("objective", self.objective, OBJECTIVES) == "normalised"
        return Attributes(graph, positions, alpha, alpha, 0.5, normalised)


@register("ssvm")
class SharedSVM(_HierarchicalSVM):
    """The shared support vector machine, choi2018 (6.17): the weights alpha of the nodes are learned, too; trees only.

    Dual ascent at fixed alpha and the closed-form alpha of the node weights found alternate until the bound of the joint problem,
    D = mean of beta.margin - v / (2 Lambda) with v from `advcli.hierarchy.shared_norm.dual_bound`, certifies the fit.

    Parameters
    ----------
    hierarchy
        As in `HierarchicalSVM`.
    margin : {"zero_one", "normalised"}
        1, or the margins of `NormalisedHierarchicalSVM` at ``rho``.
    rho : float
        Of the weights that the alternation starts from, and of these margins; at least 1.
    updates : int or None
        Limit of updates of alpha; None: as many as the tolerance needs.
    C, lam, tol, max_passes, precision, features, features_options, n_classes, random_state
        As in `FlatSVM`.

    Attributes
    ----------
    coef_, certificate_, dual_
        As in `FlatSVM`.
    alpha_ : ndarray (M,)
        Learned weights of the nodes.
    n_updates_ : int
        Updates of alpha made.
    """

    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)

    def __init__(
        self,
        hierarchy: Any = None,
        *,
        margin: str = "zero_one",
        rho: float = 2.0,
        updates: int | None = None,
        C: float = 1.0,
        lam: float | None = None,
        tol: float = 1e-3,
        max_passes: float = 5000,
        precision: str = "double",
        features: str = "linear",
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.hierarchy = hierarchy
        self.margin = margin
        self.rho = rho
        self.updates = updates
        self.C = C
        self.lam = lam
        self.tol = tol
        self.max_passes = max_passes
        self.precision = precision
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the weights to start from, and the margins."""
        if self.updates is not None and (isinstance(self.updates, bool) or not isinstance(self.updates, int) or self.updates < 0):
            raise ConfigError(f"updates={self.updates} must be a whole number of at least 0, or null")
        fixed = _choice("margin", self.margin, MARGINS) == "zero_one"
        best_weights(graph, np.ones(graph.size))  # refuses what is no tree
        mu = node_weights(graph, self.rho)
        before = getattr(getattr(self, "_start", None), "alpha_", mu)
        return Attributes(graph, positions, self._away_from_zero(before if before.shape == mu.shape else mu, mu), mu, 0.0 if fixed else 0.5)

    def _away_from_zero(self, alpha: Array, mu: Array) -> Array:
        """Return alpha mixed with a little of the positive weights mu: a weight of 0 would stay 0."""
        blend = _BLEND * self.tol
        return (1.0 - blend) * alpha + blend * mu

    def _shared(self, graph: LabelGraph) -> dict[str, Any]:
        return {"graph": graph, "updates": self.updates}

    def _solve(self, task: Task, attributes: Attributes, beta: sparse.csr_array, began: float) -> None:
        graph, A = attributes.graph, attributes.membership
        passes, spent, done, inner = 0.0, 0.0, 0, 0.1
        while True:
            beta, spent, _ = task.ascend(attributes, beta, inner, self.max_passes - passes, seed_of(self.random_state) + done)
            passes += spent
            found = task.evaluate(attributes, beta, self.tol)
            beta = found.beta
            squares = row_norms(A.T @ found.Z, squared=True)
            lengths = (found.stretch * task.C * attributes.alpha) ** 2 * squares
            fresh, value = best_weights(graph, lengths)
            primal = (value / (2.0 * task.C) + found.hinge) / task.mass
            dual = (found.linear - 0.5 * task.C * dual_bound(graph, squares)) / task.mass
            gap = (primal - dual) / primal if primal > 0 else 0.0
            if gap <= self.tol or passes >= self.max_passes or done == self.updates:
                break
            # an inner gap below that of the joint problem suffices
            inner = max(0.3 * self.tol, 0.1 * gap)
            # twice the step, in logarithms, because updates are small and mostly in one direction
            ratio = np.divide(fresh, attributes.alpha, out=np.ones_like(fresh), where=attributes.alpha > 0)
            farther = best_weights(graph, lengths * ratio**_FARTHER)[0] if done + 1 != self.updates else fresh
            attributes = replace(attributes, alpha=self._away_from_zero(farther, attributes.mu))
            done += 1
        self.alpha_, self.n_updates_ = fresh, done
        self.remarks_ = (f"alpha was updated {done} times" if gap <= self.tol else f"stopped after {done} updates of alpha",)
        self._finish(found.beta, found.coef, primal, dual, found.outside, passes, time.perf_counter() - began)


MODELS = ("flat", "hsvm", "nhsvm", "ssvm")


class HierarchicalClassifier(_HierarchicalSVM):
    """Classification of labels that are leaves of a tree or DAG; each model by its name, with a duality gap.

    Equal rows of one label are one row of their summed weight, and the order of the rows does not matter.

    Parameters
    ----------
    hierarchy : LabelGraph, list of (parent, child) or None
        The label graph; the names of its leaves are the labels in y, as text. None: labels without a hierarchy.
    model : {"nhsvm", "hsvm", "ssvm", "flat"}
        `NormalisedHierarchicalSVM`, `HierarchicalSVM`, `SharedSVM` or `FlatSVM`.
    C : float
        Weight of the summed hinges against |W|^2 / 2; the source's lambda is 1/(2 C).
    rho : float
        How the hierarchy sets the weights of nhsvm, and of ssvm at its start.
    margin : float or str or None
        ``margin_power`` of hsvm, ``margin`` of ssvm; None: theirs.
    objective : {"difference", "normalised"}
        Of nhsvm.
    tol, max_passes, precision, features, features_options, n_classes, random_state
        As in `FlatSVM`.

    Attributes
    ----------
    coef_, certificate_, dual_, alpha_
        As in the models.
    """

    name = "hierarchical"
    hyper: ClassVar[tuple[str, ...]] = ()
    sets: ClassVar[bool] = False

    def __init__(
        self,
        hierarchy: Any = None,
        *,
        model: str = "nhsvm",
        C: float = 1.0,
        rho: float = 2.0,
        margin: Any = None,
        objective: str = "difference",
        tol: float = 1e-3,
        max_passes: float = 5000,
        precision: str = "double",
        features: str = "linear",
        features_options: Mapping[str, Any] | None = None,
        n_classes: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.hierarchy = hierarchy
        self.model = model
        self.C = C
        self.rho = rho
        self.margin = margin
        self.objective = objective
        self.tol = tol
        self.max_passes = max_passes
        self.precision = precision
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state

    def attributes(self, graph: LabelGraph, positions: NDArray[np.intp]) -> Attributes:
        """Return the attributes of the chosen model."""
        return self._model().attributes(graph, positions)

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Fit the model to distinct rows; equal rows share a dual point."""
        fitted = self._model()
        found = equal_rows(X, y[:, None].astype(np.float64))
        if found is None:
            fitted.learn(X, y, weights)
            self.dual_ = fitted.dual_
        else:
            first, inverse = found
            fitted.learn(X[first], y[first], summed(inverse, weights))
            self.dual_ = fitted.dual_[inverse]
        self.certificate_, self.alpha_, self.n_iter_, self.lam_ = fitted.certificate_, fitted.alpha_, fitted.n_iter_, fitted.lam_
        return fitted.coef_

    def _labels(self) -> tuple[LabelGraph, NDArray[np.intp]]:
        return self._model()._labels()

    def _model(self) -> Any:
        """Return the model, to be fitted to the same classes."""
        chosen: Any = registry.get(_choice("model", self.model, MODELS))
        own: dict[str, Any] = {"C": self.C, "tol": self.tol, "max_passes": self.max_passes, "precision": self.precision}
        own["random_state"] = self.random_state
        if self.model != "flat":
            names = [str(label) for label in self.classes_]
            star = LabelGraph.from_edges([("", name) for name in names])
            own["hierarchy"] = star if self.hierarchy is None else self.hierarchy
        if self.model in ("nhsvm", "ssvm"):
            own["rho"] = self.rho
        if self.model == "nhsvm":
            own["objective"] = self.objective
        if self.margin is not None and self.model in ("hsvm", "ssvm"):
            own["margin_power" if self.model == "hsvm" else "margin"] = self.margin
        model = chosen(n_classes=self.n_classes, **own)
        model.classes_ = self.classes_
        return model
