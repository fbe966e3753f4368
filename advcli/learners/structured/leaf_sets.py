"""Sets of leaves over a hierarchy: rows with several labels, scored by the nodes above them, learned by a structured surrogate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.errors import IncompatibleError
from ...core.stored_arrays import Entries
from ...core.typing import Array
from ...data.labels.best_sets import LabelSets, restricted
from ...solvers.cutting_planes import Cuts, CuttingPlaneProblem, CuttingPlanes, Positions
from ..base import register
from ..hierarchical.label_graph import OverLabelGraph
from ..options import describes
from .label_sets import SetLearner, unmerged
from .learner import GAMES, StructuredLearner
from .spaces.enumerated_sets import MOST_LABELS
from .spaces.hierarchical_sets import HierarchicalSets, TreeLevels
from .spaces.psi import Psi
from .spaces.searches import is_slack, search_of
from .spaces.space import LabelSpace

_CHUNK = 2**22  # numbers in the tables of rows whose levels are sought together


class LeafSets(CuttingPlaneProblem):
    """Rows with sets of leaves Y (n, L), columns in the order of the leaves; scores belong to the graph's nodes."""

    G = 0

    def __init__(self, X: Any, Y: sparse.csr_array, share: Array, psi: Psi, sets: LabelSets) -> None:
        self.X, self.share, self.psi, self.sets = X, share, psi, sets
        self.start = np.arange(Y.shape[0] + 1)
        self.K = sets.graph.size
        self.true = sets.closed(Y)

    def cuts(self, sets: NDArray[np.integer], U: Array, examples: Positions, calls: int, upper: Array | None = None) -> Cuts:
        """Return the planes of sets, nodes as 0 and 1 (m, M), at scores U (m, M); ``upper`` where they may not be the worst."""
        true, leaf = self.true[examples].toarray(), self.sets.leaves
        moved = sets.astype(np.float64) - true
        wrong = np.abs(moved[:, leaf]).sum(axis=1)
        h, g = (moved * U).sum(axis=1), wrong
        if self.psi.axes == "f1":
            h, g = h + wrong, -(sets[:, leaf].sum(axis=1, dtype=np.float64) + true[:, leaf].sum(axis=1))
        value, slope, constant = self.psi.tangents(h, g, wrong)
        parts = sparse.csr_array(moved[:, self.sets.first :] * slope[:, None])
        return Cuts(parts, constant, value, value if upper is None else np.maximum(upper, value), calls)


class LevelledLeafSets(LeafSets):
    """Rows over a tree, whose worst set comes from the levels of all sets, with ``row_size`` numbers in memory for each row."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        L = len(self.sets.leaves)
        self.row_size = L * (L + self.sets.size)

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return the worst set of each row from its levels."""
        scores = self.sets.scores(U)
        sets = np.zeros(scores.shape, dtype=np.uint8)
        step = max(1, _CHUNK // self.row_size)
        for first in range(0, len(scores), step):
            part = slice(first, first + step)
            sets[part] = self.worst(scores[part], self.true[examples[part]].toarray())
        return self.cuts(sets, scores, examples, len(examples))

    def worst(self, scores: Array, true: Array) -> NDArray[np.uint8]:
        """Return the sets of the largest psi at scores (m, M), nodes as 0 and 1 (m, M), where these sets are true."""
        leaf = self.sets.leaves
        centre, level = true[:, leaf], np.arange(len(leaf) + 1.0)
        own = (scores * true).sum(axis=1)
        if self.psi.axes == "f1":
            turned = scores.copy()
            turned[:, leaf] += 1.0 - 2.0 * centre
            levels = TreeLevels(self.sets, turned, np.zeros(centre.shape, dtype=np.intp))
            h, g = levels.best + (centre.sum(axis=1) - own)[:, None], -(level + centre.sum(axis=1)[:, None])
        else:
            levels = TreeLevels(self.sets, scores, centre.astype(np.intp))
            h, g = levels.best - own[:, None], np.broadcast_to(level, levels.best.shape)
        reached = np.isfinite(h)
        values = np.where(reached, self.psi.value(np.where(reached, h, 0.0), g), -np.inf)
        return levels.nodes(np.argmax(values, axis=1))


class ListedLeafSets(LevelledLeafSets):
    """Rows over any graph of few leaves, whose worst set is sought among all sets, which are listed."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        L = len(self.sets.leaves)
        every = np.arange(1, 2**L)[:, None] >> np.arange(L) & 1
        self.every = self.sets.closed(sparse.csr_array(every)).toarray().astype(np.float64)
        self.row_size = len(self.every)

    def worst(self, scores: Array, true: Array) -> NDArray[np.uint8]:
        """Return the sets of the largest psi at scores (m, M), nodes as 0 and 1 (m, M), where these sets are true."""
        listed, centre = self.every[:, self.sets.leaves], true[:, self.sets.leaves].astype(np.float64)
        sizes, own = listed.sum(axis=1) + centre.sum(axis=1)[:, None], (scores * true).sum(axis=1)[:, None]
        h, wrong = scores @ self.every.T - own, sizes - 2.0 * centre @ listed.T
        values = self.psi.value(h + wrong, -sizes) if self.psi.axes == "f1" else self.psi.value(h, wrong)
        return self.every[np.argmax(values, axis=1)].astype(np.uint8)


class SearchedLeafSets(LeafSets):
    """Rows whose worst set a search finds, one at a time: over trees and over graphs whose nodes have several parents."""

    def __init__(self, *given: Any, search: str) -> None:
        super().__init__(*given)
        # the search by angles is exact for slack rescaling, which leaves most between the labels of a hull
        self.by = "angular" if search == "auto" and is_slack(self.psi) else search

    def spaces(self, scores: Array, examples: Positions) -> Iterator[LabelSpace]:
        """Yield the sets of these examples, with scores (m, M) of the nodes, as searches see them."""
        true = self.true[examples].toarray()
        yield from (HierarchicalSets(self.sets, f, nodes, self.psi.axes) for f, nodes in zip(scores, true, strict=True))

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return what the search finds for each row."""
        scores = self.sets.scores(U)
        results = [search_of(self.by, space)(space, self.psi) for space in self.spaces(scores, examples)]
        upper, calls = np.array([result.upper for result in results]), sum(result.calls for result in results)
        return self.cuts(np.array([result.label for result in results]), scores, examples, calls, upper)


@register("hierarchical_sets")
@describes(StructuredLearner)
@dataclass(kw_only=True, eq=False, repr=False)
class HierarchicalSetClassifier(OverLabelGraph, SetLearner):
    """Sets of leaves over a hierarchy, from a surrogate of the number of wrong leaves (Choi 2018, chapter 4 and section 6.7.1).

    f(z) = sum of w_n.x over the leaves of z and all nodes above them, each once, predicts the set of the largest score, which has at least
    one leaf. The fit minimises lambda/2 |W|^2 + mean over rows of max over z of psi(f(z) - f(y_i), number of leaves that differ),
    lambda = 1/(n C). With ``surrogate="margin"`` this is `HierarchicalSVM` over sets with ``margin_power=1``.

    Parameters
    ----------
    hierarchy : LabelGraph, list of (parent, child), mapping or None
        The label graph, as in `HierarchicalSVM`.
    surrogate : {"margin", "slack", "scaling", "log", "prob", "prob_raw", "f1"}
        psi (`advcli.learners.structured.spaces.psi`). ``prob_raw``, not convex, is for ``training="sgd"``.
    training : {"planes", "bcfw", "sgd"}
        How P is minimised: by stored planes of every row, by block-coordinate Frank-Wolfe, or by stochastic subgradients.
    search : {"auto", "levels", "hull", "exact", "angular"} or a plug-in's
        How the worst set of a row is found (`advcli.learners.structured.spaces.searches`). ``auto``: on a tree the best set at every number
        of wrong leaves; else all sets of at most 16 leaves; else ``angular`` for slack rescaling and ``hull`` for others, whose calls are
        integer programs. All are exact but ``hull``, which is exact for ``margin`` and ``f1``.

    Attributes
    ----------
    coef_ : ndarray (M, d)
        W: weights of the scores of the nodes above the classes, by the numbers of ``sets_.graph``.
    certificate_, oracle_gap_, oracle_calls_
        As in `StructuredLearner`.
    sets_, positions_
        As in `OverLabelGraph`.

    Notes
    -----
    y is (n, k) of 0 and 1 with a 1 in every row, or labels (n,): sets of one leaf, of which the best is predicted.

    References
    ----------
    Choi (2018), "Efficient structured surrogate loss and regularization in structured prediction", doctoral thesis, Toyota Technological
    Institute at Chicago: chapter 4 and section 6.7.1.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import HierarchicalSetClassifier
    >>> edges = [("top", "a"), ("top", "b"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")]
    >>> Y = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]] * 10)  # leaves a1, a2, b1, b2
    >>> X = np.tile(np.eye(3), (10, 1))
    >>> model = HierarchicalSetClassifier(hierarchy=edges, C=100.0).fit(X, Y)
    >>> model.predict(X[:3]).toarray()
    array([[1, 1, 0, 0],
           [0, 0, 1, 0],
           [0, 1, 0, 1]], dtype=int8)
    """

    hierarchy: Any = field(default=None, kw_only=False)

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        if self.surrogate in GAMES:
            instead = f"loss={self.name} has surrogates of margin and loss: choose loss=sets"
            raise IncompatibleError(f"loss.surrogate={self.surrogate}", "sets of labels without a hierarchy", instead)
        super().check_parameters()

    def problem(self, X: Any, y: Any, share: Array, psi: Psi) -> LeafSets:
        """Return the rows and their sets of leaves."""
        self.take_sets(*restricted(*self.labels()))
        self.remarks_ = self.remark_if_not_convex()
        levelled = self.search in ("auto", "levels")
        if not self.sets_.is_tree and (self.search == "levels" or not psi.convex):
            what = "loss.search=levels" if self.search == "levels" else f"loss.surrogate={self.surrogate}"
            raise IncompatibleError(what, "a tree", "a node of the label graph has several parents: choose loss.search=auto and prob")
        rows = X, self._leaves_of(y), share, psi, self.sets_
        if not levelled or not (self.sets_.is_tree or len(self.sets_.leaves) <= MOST_LABELS):
            return SearchedLeafSets(*rows, search=self.search)
        return LevelledLeafSets(*rows) if self.sets_.is_tree else ListedLeafSets(*rows)

    def _leaves_of(self, y: Any) -> sparse.csr_array:
        """Return sets of leaves (n, L): of rows with one label, sets of one leaf."""
        if not self.of_sets_:
            y = sparse.csr_array((np.ones(len(y), dtype=np.int8), (np.arange(len(y)), y)), shape=(len(y), len(self.classes_)))
        return self.by_leaves(y)

    def stored_planes(self) -> Array | None:
        """Return a row (example, alpha, h of the tangent, 0 or 1 for each class) for every plane with a weight; none for mixtures."""
        planes: CuttingPlanes = self.dual_
        problem: Any = planes.problem
        if self.training != "planes":
            return None
        used, leaves = np.flatnonzero(planes.alpha > 0.0), self.sets_.leaves[self.positions_]
        used, turned, h = self._contacts(used, planes.parts[used].toarray()[:, leaves - self.sets_.first])
        owner = planes.owner[used]
        sets = np.abs(problem.true[owner].toarray()[:, leaves] - turned)
        return unmerged(owner, np.column_stack([planes.alpha[used], h, sets]), self.became_)

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the weights, of the nodes in the order of their names, and the stored planes; none for graphs other than trees."""
        arrays = super().proof(X, codes, weight) if self.sets_.is_tree else {}
        order = np.argsort(np.array(self.sets_.graph.names))
        return arrays and arrays | {"theta": np.ravel(self.coef_[order].T)}

    def spaces(self, X: Any, y: Any) -> Iterator[LabelSpace]:
        """Yield the sets of rows X (n, d), whose true ones are y, as searches see them at the learned weights."""
        Y = self._leaves_of(y)
        n = Y.shape[0]
        seen = SearchedLeafSets(X, Y, np.full(n, 1.0 / n), self.psi(), self.sets_, search=self.search)
        return seen.spaces(self.sets_.scores(self.scores_of_nodes(X)), np.arange(n))

    # ---- prediction -----------------------------------------------------------------------------------------------
    def scores_of_nodes(self, X: Any) -> Array:
        """Return the scores of the nodes at rows X (n, d), shape (n, M)."""
        return super().potentials(X)

    def potentials(self, X: Any) -> Array:
        """Return the scores of the nodes (n, M), or of rows with one label f of the sets of one leaf (n, k)."""
        U = self.scores_of_nodes(X)
        return U if self.of_sets_ else np.asarray(U @ self.sets_.graph.membership[self.positions_].T)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        self.restore_sets(attributes)
        self.shared_ = attributes.array("shared_", (0,))
        super().restore(attributes)

    @property
    def _n_scores(self) -> int:
        return int(self.sets_.graph.size)
