"""Sets of labels with a weight for every pair: rows with several labels, learned by a structured surrogate."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...core.arrays import is_sparse
from ...core.errors import IncompatibleError, ModelError
from ...core.groups import rows_of
from ...core.stored_arrays import Entries
from ...core.typing import Array
from ...features.merging import equal_rows, summed
from ...solvers.cutting_planes import Cuts, CuttingPlaneFit, CuttingPlaneProblem, CuttingPlanes, Positions, Turns
from ..base import register
from ..options import describes, one_of, seed_of
from .frank_wolfe import BY_EXAMPLES, fit_by_examples
from .learner import GAMES, MAXMIN, StructuredLearner
from .spaces.enumerated_sets import (
    MOST_LABELS,
    EnumeratedSets,
    levels_of_free_labels,
    levels_of_sets,
    pair_table,
    pairs_of,
    set_numbers,
    set_rows,
)
from .spaces.f_measure import SizedLabels, best_f_sets, sized_of_free_labels, sized_of_gibbs, sized_of_sets
from .spaces.f_measure_game import by_size_of_table, free_by_size, solve_f_games
from .spaces.max_min import SetGame, free_game, solve_games
from .spaces.psi import Psi, make_psi
from .spaces.relaxation import PairField, RelaxedSets
from .spaces.searches import SEARCHES, SearchResult, is_slack, search_names, search_of
from .spaces.space import LabelSpace

RULES = ("potentials", "predictor", "f1")
RELAXED_BLOCKS = 16  # blocks of the rows of a relaxation, whose searches take far longer than steps
FILLED = 0.2  # most share of a dense X that is not 0 for its rows to be stored without zeros in sweeps by rows
MANY = 200_000  # rows times labels without pairs from which on rows are swept one after the other
F1_ROWS = 256  # rows whose best sets of the F-measure are sought together
PAIRS = {"one": 1, "four": 4, "none": 0}  # weights of a pair of labels: where a set has both, one for each of its four states, or none
_WITH_PAIRS = " where they have pairs"


class PairWeights:
    """How shared weights make the potentials of pairs: f(y) = sum_j y_j (u_j + l_j) + sum over j < k of Q_jk y_j y_k + a constant."""

    def __init__(self, m: int, pairs: str) -> None:
        self.m, self.states = m, PAIRS[pairs]
        self.j, self.k = pairs_of(m)
        self.G = self.states * len(self.j)

    def potentials(self, shared: Array) -> tuple[Array, Array]:
        """Return l (m,) and Q (m (m - 1) / 2,)."""
        if self.states < 4:
            return np.zeros(self.m), shared if self.states else np.zeros(len(self.j))
        off, first, second, both = shared.reshape(-1, 4).T  # neither, j alone, k alone, both
        linear = np.bincount(self.j, first - off, self.m) + np.bincount(self.k, second - off, self.m)
        return np.asarray(linear, dtype=np.float64), both - first - second + off

    def counts(self, labels: Any, pairs: Any = None) -> Array:
        """Return what sets, or mixtures with shares of labels (n, m) and pairs (n, m (m - 1) / 2), have of every weight, (n, G)."""
        labels = np.asarray(labels, dtype=np.float64)
        if not self.states:
            return np.zeros((len(labels), 0))
        first, second = labels[:, self.j], labels[:, self.k]
        both = first * second if pairs is None else pairs
        if self.states == 1:
            return np.asarray(both)
        return np.stack([1.0 - first - second + both, first - both, second - both, both], axis=2).reshape(len(labels), -1)


class PairProblem(CuttingPlaneProblem):
    """Rows with sets of labels Y (n, m)."""

    def __init__(self, X: Any, Y: NDArray[np.int8], share: Array, psi: Psi, weights: PairWeights) -> None:
        self.X, self.Y, self.share, self.psi, self.weights = X, Y, share, psi, weights
        self.start = np.arange(len(Y) + 1)
        self.K, self.G = Y.shape[1], weights.G
        self.sizes = Y.sum(axis=1, dtype=np.int64)


class LevelledSets(PairProblem):
    """Rows whose worst set comes from the levels of all sets: of 2^m sets, or of any number of labels without pairs."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.free = self.G == 0
        if self.free and self.psi.affine and self.psi.axes == "margin" and self.Y.size >= MANY:
            if not is_sparse(self.X) and np.count_nonzero(self.X) <= FILLED * self.X.size:
                self.X = sparse.csr_array(self.X)  # steps then take the time of the entries
            level = np.arange(self.K + 1.0)
            slope = np.ascontiguousarray(self.psi.slopes(np.zeros_like(level), level)[0])
            self.turns = Turns((1 - 2 * self.Y).astype(np.int8), slope, np.ascontiguousarray(self.psi.value(np.zeros_like(level), level)))
        if not self.free:
            self.numbers, self.counts = set_numbers(self.Y), self.weights.counts(self.Y)

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return the worst set of each row from its levels."""
        Y, size, m, rows = self.Y[examples], self.sizes[examples], self.K, np.arange(len(examples))
        f1, level = self.psi.axes == "f1", np.arange(m + 1.0)
        g = -(level + size[:, None]) if f1 else np.broadcast_to(level, (len(rows), m + 1))
        if self.free:
            centre = np.zeros_like(Y) if f1 else Y
            h, label = levels_of_free_labels(U + (1.0 - 2.0 * Y) if f1 else U, centre)
            h = h + (size - (U * Y).sum(axis=1))[:, None] if f1 else h
        else:
            linear, pairs = self.weights.potentials(shared)
            U, table = U + linear, pair_table(pairs, m)
            if f1:
                score = (U * Y).sum(axis=1) + table[self.numbers[examples]]
                h, label = levels_of_sets(U + (1.0 - 2.0 * Y), table, np.zeros(len(rows), dtype=np.intp))
                h = h + (size - score)[:, None]
            else:
                h, label = levels_of_sets(U, table, self.numbers[examples])
                h = h - h[:, :1]
        best = np.argmax(self.psi.value(h, g), axis=1)
        if self.free:
            turned = np.zeros_like(Y)
            np.put_along_axis(turned, label, (np.arange(m) < best[:, None]).astype(np.int8), axis=1)
            sets = centre ^ turned
        else:
            sets = set_rows(label[rows, best], m)
        value, slope, constant = self.psi.tangents(h[rows, best], g[rows, best], (sets != Y).sum(axis=1))
        gained = [] if self.free else [self.weights.counts(sets) - self.counts[examples]]
        parts = np.hstack([*gained, sets - Y.astype(np.float64)]) * slope[:, None]
        return Cuts(sparse.csr_array(parts), constant, value, value, len(rows))


class SearchedSets(PairProblem):
    """Rows whose worst set a search finds, one at a time: among all sets of few labels, over the relaxation of many (`RelaxedSets`).

    ``relaxed`` takes the relaxation for few labels too.
    """

    def __init__(self, *given: Any, search: str = "auto", relaxed: bool = False) -> None:
        super().__init__(*given)
        self.by, self.relaxed = search, relaxed or self.K > MOST_LABELS
        self.blocks = RELAXED_BLOCKS if self.relaxed else 1

    def spaces(self, U: Array, shared: Array, examples: Positions) -> Iterator[LabelSpace]:
        """Yield the sets of these examples as searches see them."""
        linear, pairs = self.weights.potentials(shared)
        if self.relaxed:
            field = PairField(pairs, self.K)
            yield from (RelaxedSets(field, u, self.Y[i], self.psi.axes) for u, i in zip(U + linear, examples, strict=True))
        else:
            table, numbers = pair_table(pairs, self.K), set_numbers(self.Y[examples]).tolist()
            yield from (EnumeratedSets(u, table, y, self.psi.axes) for u, y in zip(U + linear, numbers, strict=True))

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return what the search finds for each row, of a relaxation as a plane of the relaxed surrogate."""
        return self.cuts([search_of(self.by, space)(space, self.psi) for space in self.spaces(U, shared, examples)], examples)

    def cuts(self, results: Sequence[SearchResult], examples: Positions) -> Cuts:
        """Return what searches found for these examples as planes."""
        rows = []
        for result, y in zip(results, self.Y[examples], strict=True):
            if self.relaxed:
                labels, both = result.label.labels[None], result.label.pairs[None]
            else:
                labels, both = set_rows([result.label], self.K).astype(np.float64), None
            gained = self.weights.counts(labels, both) - self.weights.counts(y[None])
            rows.append((sparse.csr_array(np.hstack([gained, labels - y])), (labels + (1.0 - 2.0 * labels) * y).sum()))
        h, g = (np.array([getattr(result.point, name) for result in results]) for name in ("h", "g"))
        value, slope, constant = self.psi.tangents(h, g, np.array([hamming for _, hamming in rows]))
        parts = sparse.csr_array(sparse.dia_array((slope[None], 0), shape=(len(rows),) * 2) @ sparse.vstack([row for row, _ in rows]))
        upper = np.maximum(np.array([result.upper for result in results]), value)
        return Cuts(parts, constant, value, upper, sum(result.calls for result in results))


def best_of(U: Array, table: Array) -> tuple[Array, NDArray[np.int8]]:
    """Return the largest scores of sets at scores U (n, m) with a table of pair sums, shape (n,), and the sets (n, m)."""
    best, label = levels_of_sets(U, table, np.zeros(len(U), dtype=np.intp))
    size, rows = np.argmax(best, axis=1), np.arange(len(U))
    return best[rows, size], set_rows(label[rows, size], U.shape[1])


class PlayedSets(PairProblem):
    """Rows whose surrogate is the max-min margin: the worst mixture of sets in the game of each row, in closed form without pairs."""

    def __init__(self, *given: Any, tolerance: float) -> None:
        super().__init__(*given)
        self.tolerance, self.columns = tolerance, [y[None] for y in self.Y]
        self.counts = self.weights.counts(self.Y)
        self.first, self.second = pairs_of(self.K)

    def play(self, U: Array, pairs: Array, examples: Positions) -> SetGame:
        """Return the games of these examples at scores U (m', m) of their labels."""
        if not self.G:
            return free_game(U)
        table, columns = pair_table(pairs, self.K), [self.columns[i] for i in examples]
        game = solve_games(U, pairs, lambda V: best_of(V, table), columns, self.tolerance)
        for i, sets in zip(examples, columns, strict=True):
            self.columns[i] = sets
        return game

    def search(self, U: Array, shared: Array, examples: Positions) -> Cuts:
        """Return the worst mixture of each row as a plane."""
        Y = self.Y[examples].astype(np.float64)
        linear, pairs = self.weights.potentials(shared)
        U = U + linear
        game = self.play(U, pairs, examples)
        true, score, parts = (U * Y).sum(axis=1), (U * game.labels).sum(axis=1), game.labels - Y
        if self.G:
            true, score = true + (Y[:, self.first] * Y[:, self.second]) @ pairs, score + game.pairs @ pairs
            parts = np.hstack([self.weights.counts(game.labels, game.pairs) - self.counts[examples], parts])
        value = np.maximum(game.loss + score - true, 0.0)
        mixtures = np.full(len(examples), None)
        for row, (i, q) in enumerate(zip(examples, game.shares, strict=False)):  # without pairs no game has shares
            mixtures[row] = q[q > 0.0], self.columns[i][: len(q)][q > 0.0]
        upper = np.maximum(game.upper - true, value)
        return Cuts(sparse.csr_array(parts), game.loss, value, upper, game.calls, self.proving(game), mixtures)

    def proving(self, game: SetGame) -> Array | None:
        """Return what of the predictor proves the upper bounds: p (n, m)."""
        return game.targets

    def proven(self, targets: Array, became: Positions) -> Array:
        """Return `proving` of all rows as the arrays of the given rows, which were merged into them."""
        return targets[became]

    def mixtures(self, planes: CuttingPlanes, used: Positions) -> Iterator[tuple[Array, NDArray[np.int8]]]:
        """Yield the sets (c, m) whose mixture each of these planes is, and their shares (c,)."""
        for plane, mixture, i in zip(planes.parts[used].toarray(), planes.mixtures[used], planes.owner[used].tolist(), strict=True):
            if mixture is None:  # no pairs, and shares of 0, 1/2 and 1: labels in half of the sets are all there or none of them
                labels = np.rint(2.0 * (plane[self.G :] + self.Y[i]))
                yield np.full(2, 0.5), np.array([labels >= least for least in (2.0, 1.0)]).astype(np.int8)
            else:
                yield mixture


class PlayedFSets(PlayedSets):
    """Rows whose surrogate is the max-min margin of the F-measure; the sets found on both sides of each row's game stay."""

    left_open = 0.5

    def __init__(self, *given: Any, tolerance: float) -> None:
        super().__init__(*given, tolerance=tolerance)
        self.answers = list(self.columns)

    def play(self, U: Array, pairs: Array, examples: Positions) -> SetGame:
        """Return the games of these examples at scores U (m', m) of their labels, some of them at a time."""
        games = []
        best = by_size_of_table(pair_table(pairs, self.K)) if self.G else free_by_size
        pairs = pairs if self.G else np.zeros(0)
        for first in range(0, len(examples), F1_ROWS):
            part = examples[first : first + F1_ROWS]
            columns, answers = ([sets[i] for i in part] for sets in (self.columns, self.answers))
            games.append(solve_f_games(U[first : first + F1_ROWS], pairs, best, columns, answers, self.tolerance))
            for i, true, answer in zip(part, columns, answers, strict=True):
                self.columns[i], self.answers[i] = true, answer
        if len(games) == 1:
            return games[0]
        joined: list[Any] = [np.concatenate(arrays) for arrays in zip(*(game[:5] for game in games), strict=True)]
        rest = [tuple(itertools.chain.from_iterable(lists)) for lists in zip(*(game[6:] for game in games), strict=True)]
        return SetGame._make([*joined, sum(game.calls for game in games), *rest])

    def proving(self, game: SetGame) -> Array | None:
        """Return the predictor's mixtures, (row, share, set as a number) for each set (s, 3); None for more labels than numbers are for."""
        if self.K > MOST_LABELS:
            return None
        return np.concatenate([np.column_stack([np.full(len(p), i), p, set_numbers(Z)]) for i, (p, Z) in enumerate(game.predicted)])

    def proven(self, targets: Array, became: Positions) -> Array:
        """Return `proving` of all rows as the arrays of the given rows, which were merged into them."""
        return unmerged(targets[:, 0].astype(np.intp), targets[:, 1:], became)


@dataclass(kw_only=True, eq=False, repr=False)
class SetLearner(StructuredLearner):
    """Base of learners of sets of labels, which differ in what scores a set; rows stand alone, each one example.

    ``became_`` (n,) is the example of each given row: equal rows with equal sets are one of their summed weight.
    """

    sets: ClassVar[bool] = True

    training: str = "planes"

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        super().check_parameters()
        one_of("loss.training", self.training, ("planes", *BY_EXAMPLES))
        chosen = f"loss.search={self.search}"
        if not self.psi().convex:
            instead = "choose prob, its convex continuation, for a certificate"
            if self.training != "sgd":
                raise IncompatibleError(f"loss.surrogate={self.surrogate}", "loss.training=sgd, as it is not convex", instead)
            if self.search not in ("auto", "levels"):
                raise IncompatibleError(chosen, "a convex surrogate", f"loss.surrogate={self.surrogate} has levels")
        if one_of("loss.search", self.search, search_names()) == "auto":
            return
        if self.surrogate in GAMES:
            raise IncompatibleError(chosen, "a surrogate of margin and loss", f"loss.surrogate={self.surrogate} is a game: choose auto")
        if SEARCHES.get(self.search).slack and not is_slack(self.psi()):
            instead = f"loss.surrogate={self.surrogate} has loss.search=levels, hull or exact"
            raise IncompatibleError(chosen, "loss.surrogate=slack", instead)

    def train(self, problem: CuttingPlaneProblem, psi: Psi, start: CuttingPlanes | None) -> CuttingPlaneFit:
        """Minimise P at `lam_` as ``training`` says."""
        if self.training == "planes":
            return super().train(problem, psi, start)
        return fit_by_examples(BY_EXAMPLES[self.training](problem, self.lam_), self.limits, seed_of(self.random_state), psi.convex, start)

    def learn(self, X: Any, y: Any, weights: Array | None) -> Array:
        """Train on distinct rows: equal rows with equal sets are one of their summed weight."""
        sets = y.toarray() if self.of_sets_ else y[:, None]
        distinct = equal_rows(X, sets.astype(np.float64))
        if distinct is None:
            self.became_ = np.arange(X.shape[0])
            return super().learn(X, y, weights)
        first, inverse = distinct
        self.became_ = inverse.ravel()
        return super().learn(X[first], y[first], summed(inverse, weights))

    def remark_if_not_convex(self) -> tuple[str, ...]:
        """Return a remark on a surrogate that is not convex, of others none."""
        if self.psi().convex:
            return ()
        return (f"loss.surrogate={self.surrogate} is not convex: SGD found weights, and no bound says how good they are",)

    def _contacts(self, used: Positions, turned: Array) -> tuple[Positions, NDArray[np.bool_], Array]:
        """Return the planes (p',) of those used that bound something, the labels (p', k) that they turn, and h of their tangents (p',).

        ``turned`` (p, k) holds the slope at every label that the set of a plane turns, with its sign.
        """
        slope, wrong = np.abs(turned).max(axis=1, initial=0.0), np.count_nonzero(turned, axis=1)
        steep = np.flatnonzero(wrong)  # a plane of slope 0 bounds nothing
        return used[steep], turned[steep] != 0.0, self.psi().at_slope(slope[steep], wrong[steep].astype(np.float64))

    @abstractmethod
    def best_sets(self, X: Any) -> Any:
        """Return the set of the largest score at rows X (n, d), as 0 and 1 (n, k), dense or sparse."""

    def predict_codes(self, X: Any) -> Any:
        """Return the best sets as csr_array (n, k) where labels are sets, else the code of the best set of one label."""
        return sparse.csr_array(self.best_sets(X)) if self.of_sets_ else np.argmax(self.potentials(X), axis=1).astype(np.intp)

    @property
    def metric_(self) -> str:
        """The metric of the task loss: Hamming; of surrogates of the F-measure the F-measure of the row."""
        if not self.of_sets_:
            return super().metric_
        return "instance_f1" if self.surrogate in ("f1", "maxmin_f1") else "hamming"


def unmerged(owner: Positions, table: Array, became: Positions) -> Array:
    """Return for every given row, whose number comes first, the rows of a table that distinct rows of the fit own, in their order."""
    first = np.searchsorted(owner, np.arange(int(became.max(initial=-1)) + 2))
    rows = np.repeat(np.arange(len(became)), np.diff(first)[became])
    return np.column_stack([rows, table[rows_of(first, became)]])


@register("sets")
@describes(StructuredLearner)
@dataclass(kw_only=True, eq=False, repr=False)
class MultilabelClassifier(SetLearner):
    """Sets of labels, scored by labels and by pairs of labels, from a surrogate of the number of wrong labels (Choi 2018, chapters 3 to 5).

    f(y) = sum_j y_j w_j.x + sum over j < k of P_jk y_j y_k predicts the set of the largest score. The fit minimises
    lambda/2 (|W|^2 + |P|^2) + mean over rows of max over y of psi(f(y) - f(y_i), number of labels that differ), lambda = 1/(n C).

    Parameters
    ----------
    surrogate : {"margin", "slack", "scaling", "log", "prob", "prob_raw", "f1", "maxmin", "maxmin_f1"}
        psi (`advcli.learners.structured.spaces.psi`), or the max-min margin of the number of wrong labels
        (`advcli.learners.structured.spaces.max_min`) or of the F-measure (`advcli.learners.structured.spaces.f_measure_game`).
        ``prob_raw``, not convex, is for ``training="sgd"``.
    training : {"planes", "bcfw", "sgd"}
        How P is minimised: by stored planes of every row; with one mean plane of each by block-coordinate Frank-Wolfe, or by stochastic
        subgradients. All are certified but ``sgd`` of ``prob_raw``, whose status is ``not_convex``.
    pairs : {"one", "four", "none"}
        Weights of a pair of labels: one where a set has both; one for each of its four states, which is the same functions under another
        ridge; none, which leaves each label to itself.
    rule : {"potentials", "predictor", "f1"}
        What predicts: the set of the largest score; with ``surrogate="maxmin"`` also the labels of p_j > 1/2 in the game at the row, and
        with ``surrogate="maxmin_f1"`` the likeliest set of its predictor; or the
        set of the largest expected F-measure (`advcli.learners.structured.spaces.f_measure`) under the worst mixture of that game, of the
        other surrogates under probabilities in proportion to exp f(y).
    search : {"auto", "levels", "hull", "exact", "angular"} or a plug-in's
        How the worst set of a row is found (`advcli.learners.structured.spaces.searches`). ``auto``: levels of all sets of at most 16
        labels, or of any number without pairs; else the convex hull search over the linear relaxation, whose surrogate is then what is
        minimised and certified.

    Attributes
    ----------
    coef_ : ndarray (m, d)
        W.
    shared_ : ndarray (m (m - 1) / 2,), or four times as many, or none
        P, pairs in the order of ``numpy.triu_indices``; the states of a pair: neither, first, second, both.
    certificate_, oracle_gap_, oracle_calls_
        As in `StructuredLearner`.

    Notes
    -----
    y is (n, m) of 0 and 1; rows may be without a label. Labels of one column are sets of one label.

    References
    ----------
    Choi (2018), "Efficient structured surrogate loss and regularization in structured prediction", doctoral thesis, Toyota Technological
    Institute at Chicago: chapters 3 to 5.

    Tsochantaridis, Joachims, Hofmann and Altun (2005), "Large margin methods for structured and interdependent output variables", JMLR 6:
    slack and margin.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import MultilabelClassifier
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> Y = (X > 0).astype(int)  # each row has some of three labels
    >>> model = MultilabelClassifier(surrogate="margin", C=100.0).fit(X, Y)
    >>> bool(np.mean(model.predict(X) == Y) > 0.9), model.certificate_.converged
    (True, True)
    """

    empty_sets: ClassVar[bool] = True

    pairs: str = "one"
    rule: str = "potentials"

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        super().check_parameters()
        one_of("loss.pairs", self.pairs, PAIRS)
        self.check_rule(self.rule, RULES)

    def psi(self) -> Psi:
        """Return the surrogate of margin and loss; for the max-min margin, a game, margin rescaling, which bounds it."""
        return make_psi("margin" if self.surrogate in GAMES else self.surrogate, self.beta)

    def _sets_of(self, y: Any) -> NDArray[np.int8]:
        """Return the sets of rows as 0 and 1 (n, m)."""
        return (y.toarray() if self.of_sets_ else np.eye(len(self.classes_))[y]).astype(np.int8)

    def _refuse_many(self, what: str, needs: str, choose: str) -> None:
        """Refuse pairs of more labels than sets are enumerated of."""
        m = len(self.classes_)
        if m > MOST_LABELS and PAIRS[self.pairs]:
            raise IncompatibleError(what, f"at most {MOST_LABELS} labels{needs}", f"the data have {m}: choose {choose}")

    def _refuse_many_for_f1(self) -> None:
        self._refuse_many("loss.rule=f1", _WITH_PAIRS, "loss.pairs=none or loss.rule=potentials")

    def problem(self, X: Any, y: Any, share: Array, psi: Psi) -> PairProblem:
        """Return the rows and their sets, and remark on a relaxation of all sets."""
        m, weights = len(self.classes_), PairWeights(len(self.classes_), self.pairs)
        rows = X, self._sets_of(y), share, psi, weights
        self.remarks_ = ()
        if self.rule == "f1":
            if not self.of_sets_:
                raise IncompatibleError("loss.rule=f1", "sets of labels", "the data have one label a row: choose rule=potentials")
            self._refuse_many_for_f1()
        if self.surrogate in GAMES:
            self._refuse_many(f"loss.surrogate={self.surrogate} with pairs", "", "loss.pairs=none")
            return (PlayedSets if self.surrogate == MAXMIN else PlayedFSets)(*rows, tolerance=0.1 * self.tol)
        if self.search in ("auto", "levels") and (m <= MOST_LABELS or not weights.states):
            self.remarks_ = self.remark_if_not_convex()
            return LevelledSets(*rows)
        if not psi.convex:
            self._refuse_many(f"loss.surrogate={self.surrogate}", _WITH_PAIRS, "loss.pairs=none")
        if m > MOST_LABELS:
            remark = "labels are too many for all sets: the relaxation is searched, and the gap is that of the relaxed surrogate"
            self.remarks_ = (f"{m} {remark}",)
        return SearchedSets(*rows, search=self.search)

    def stored_planes(self) -> Array | None:
        """Return a row (example, alpha, set as a number, h of the tangent) for every plane with a weight; equal examples have equal ones.

        A max-min plane has a row for each set of its mixture: alpha times its share, and the plane's number instead of h. None for mixtures
        of the relaxation and of training by rows.
        """
        planes: CuttingPlanes = self.dual_
        problem: Any = planes.problem
        if self.training != "planes" or problem.K > MOST_LABELS:
            return None
        used = np.flatnonzero(planes.alpha > 0.0)
        if self.surrogate in GAMES:
            parts = [
                np.column_stack([planes.alpha[plane] * shares, set_numbers(Y), np.full(len(Y), plane)])
                for plane, (shares, Y) in zip(used.tolist(), problem.mixtures(planes, used), strict=True)
            ]
            owner = np.repeat(planes.owner[used], [len(part) for part in parts])
            return unmerged(owner, np.concatenate([np.zeros((0, 3)), *parts]), self.became_)
        used, turned, h = self._contacts(used, planes.parts[used][:, problem.G :].toarray())
        owner = planes.owner[used]
        return unmerged(owner, np.column_stack([planes.alpha[used], set_numbers(problem.Y[owner] ^ turned), h]), self.became_)

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the weights and the stored planes, and the targets that bound the max-min margin, by rows."""
        arrays = super().proof(X, codes, weight)
        if arrays and self.trained_targets_ is not None:
            problem: Any = self.dual_.problem
            arrays["predictor"] = problem.proven(self.trained_targets_, self.became_)
        return arrays

    def spaces(self, X: Any, y: Any) -> Iterator[LabelSpace]:
        """Yield the sets of rows X (n, d), whose true ones are y (n, m), as searches see them at the learned weights."""
        Y = self._sets_of(y)
        problem = SearchedSets(X, Y, np.full(len(Y), 1.0 / len(Y)), self.psi(), PairWeights(Y.shape[1], self.pairs))
        return problem.spaces(self.potentials(X), self.shared_, np.arange(len(Y)))

    # ---- prediction -----------------------------------------------------------------------------------------------
    def best_sets(self, X: Any) -> NDArray[np.int8]:
        """Return the set of the largest score at rows X (n, d), as 0 and 1 (n, m); of equals the smallest number.

        With more than `MOST_LABELS` labels and pairs it is the maximum of the relaxation, rounded (`PairField.rounded`): the best set where
        no pair has a negative weight.
        """
        U, m = self.potentials(X), len(self.classes_)
        linear, pairs = PairWeights(m, self.pairs).potentials(self.shared_)
        U = U + linear
        if self.rule == "predictor":
            return (self._played(U, pairs)[0].targets > 0.5).astype(np.int8)
        if self.rule == "f1":
            self._refuse_many_for_f1()
            blocks = [best_f_sets(self._sized(U[i : i + F1_ROWS], pairs))[0] for i in range(0, len(U), F1_ROWS)]
            return np.concatenate([np.zeros((0, m), dtype=np.int8), *blocks])
        if not pairs.any():
            return (U > 0.0).astype(np.int8)
        if m > MOST_LABELS:
            field = PairField(pairs, m)
            return np.array([field.rounded(u, field.flow(u)[0]) for u in U])
        return best_of(U, pair_table(pairs, m))[1]

    def _played(self, U: Array, pairs: Array) -> tuple[SetGame, list[NDArray[np.int8]]]:
        """Return the games at scores U (n, m), and the sets of each where it was solved by sets."""
        if self.surrogate != MAXMIN:
            Y, weights = np.zeros(U.shape, dtype=np.int8), PairWeights(U.shape[1], "one" if pairs.any() else "none")
            problem = PlayedFSets(U, Y, np.ones(len(U)), self.psi(), weights, tolerance=1e-9)
            return problem.play(U, pairs, np.arange(len(U))), problem.columns
        if not pairs.any():
            return free_game(U), []
        table = pair_table(pairs, U.shape[1])
        columns = list(best_of(U, table)[1][:, None])
        return solve_games(U, pairs, lambda V: best_of(V, table), columns, 1e-9), columns

    def _sized(self, U: Array, pairs: Array) -> SizedLabels:
        """Return what the expected F-measure needs of the distributions over sets at scores U (n, m)."""
        if self.surrogate in GAMES:
            game, columns = self._played(U, pairs)
            if not columns:  # any mixture of these shares is worst; this one has independent labels
                return sized_of_free_labels(game.labels)
            sized = [sized_of_sets(q[None], Y[: len(q)]) for q, Y in zip(game.shares, columns, strict=True)]
            return SizedLabels(*(np.concatenate(parts) for parts in zip(*sized, strict=True)))
        if not pairs.any():
            from scipy.special import expit  # takes a tenth of a second, and the other rules do without

            return sized_of_free_labels(expit(U))
        return sized_of_gibbs(U, pair_table(pairs, U.shape[1]))

    def potentials(self, X: Any) -> Array:
        """Return the scores of the labels at rows X (n, d), shape (n, m): u, or of rows with one label f of the sets of one label."""
        U = super().potentials(X)
        return U if self.of_sets_ else U + PairWeights(U.shape[1], self.pairs).potentials(self.shared_)[0]

    @property
    def metric_(self) -> str:
        """The metric of the task loss, of ``rule="f1"`` the F-measure of the row."""
        return "instance_f1" if self.of_sets_ and self.rule == "f1" else super().metric_

    # ---- saving ---------------------------------------------------------------------------------------------------
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        if self.pairs not in PAIRS:
            raise ModelError(f"pairs={self.pairs} is none of {', '.join(PAIRS)}")
        self.shared_ = attributes.array("shared_", (PairWeights(len(self.classes_), self.pairs).G,))
        super().restore(attributes)
