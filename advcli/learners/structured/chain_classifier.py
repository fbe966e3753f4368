"""Linear chains: rows that follow each other, such as the tokens of a sentence, learned and predicted together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import is_sparse
from ...core.groups import Starts, group_starts, rows_of
from ...core.stored_arrays import Entries
from ...core.typing import Array, Labels
from ...solvers.cutting_planes import Positions
from ..base import Bound, Rows, View, register
from ..options import describes, one_of
from .chain_training import CHAINS_BY_EXAMPLES, ChainProblem, ChainTrainer
from .learner import MAXMIN, SequenceLearner, StructuredLearner, weights_of_sequences
from .spaces.chain_game import best_paths, chain_game
from .spaces.psi import Psi
from .stored_planes import KINDS

RULES = ("potentials", "predictor")


@dataclass(frozen=True)
class GroupedRows:
    """Mapped rows (n, d) of several chains, chain s being rows start[s]:start[s + 1]."""

    X: Any
    start: Starts


def _merged(X: Any, y: Labels, start: Starts, weights: Array) -> tuple[Positions, Starts, Array, Positions]:
    """Return rows (n',) of the sequences that differ, sorted by their content, where each begins, and the weight of all that equal it.

    The last array holds the new number of every sequence, -1 for sequences of weight 0, which are left out.
    """
    chains: dict[bytes, tuple[int, float]] = {}
    keys: list[bytes | None] = [None] * (len(start) - 1)
    for s, (first, last) in enumerate(itertools.pairwise(start.tolist())):
        if weights[s] == 0.0:
            continue
        if is_sparse(X):
            filled, sizes = slice(X.indptr[first], X.indptr[last]), np.diff(X.indptr[first : last + 1])
            content = sizes.tobytes() + X.indices[filled].tobytes() + X.data[filled].tobytes()
        else:
            content = X[first:last].tobytes()
        keys[s] = key = y[first:last].tobytes() + content
        equal, before = chains.get(key, (s, 0.0))
        chains[key] = (equal, before + float(weights[s]))
    order = {key: place for place, key in enumerate(sorted(chains))}
    became = np.array([-1 if key is None else order[key] for key in keys], dtype=np.intp)
    chosen = np.array([chains[key][0] for key in order], dtype=np.intp)
    sizes = np.diff(start)[chosen]
    merged = np.array([chains[key][1] for key in order])
    return rows_of(start, chosen), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), merged, became


@register("chain")
@describes(StructuredLearner)
@dataclass(kw_only=True, eq=False, repr=False)
class ChainClassifier(SequenceLearner):
    """Label sequences, scored by labels of rows and by labels that follow each other, from a surrogate of the number of wrong labels.

    f(y) = sum_t w_{y_t}.x_t + sum_t A[y_t, y_{t+1}] predicts the sequence of the largest score (Choi 2018, chapter 3). The fit minimises
    lambda/2 (|W|^2 + |A|^2) + mean over sequences of max over y of psi(f(y) - f(y_i), number of labels that differ), with lambda = 1/(n C)
    for n sequences. Another choice is the max-min margin (Nowak-Vila, Bach & Rudi 2020), the adversarial zero-one loss of sequences: there
    the loss of a sequence is that under a predictor p_t of every position, and p is the best against all mixtures of sequences.

    Parameters
    ----------
    surrogate : {"margin", "slack", "scaling", "log", "prob", "maxmin"}
        psi (`advcli.learners.structured.spaces.psi`), or the max-min margin.
    rule : {"potentials", "predictor"}
        What is predicted: the sequence of the largest f, or, for the max-min margin, at every row the label of the largest p_t in the game
        at new scores.
    search : {"auto", "levels"}
        How the worst sequence is found: exactly, by Viterbi's algorithm where psi is a sum over rows and else over (distance, state).
    training : {"planes", "bcfw", "sgd"}
        How P is minimised: by stored sequences of every chain; with one mean plane of each by block-coordinate Frank-Wolfe, or by
        stochastic subgradients. All are certified; the max-min margin has ``planes`` alone.

    Attributes
    ----------
    coef_ : ndarray (K, d)
        W.
    shared_ : ndarray (K K,)
        A, row by row: a label and the next.
    certificate_, oracle_gap_, oracle_calls_
        As in `StructuredLearner`; the searches are exact.

    Notes
    -----
    ``fit(X, y, groups=...)`` and ``predict(X, groups=...)`` take the sequence of every row; the rows of a sequence stand together. Without
    groups every row is one sequence.

    References
    ----------
    Choi (2018), "Efficient structured surrogate loss and regularization in structured prediction", doctoral thesis, Toyota Technological
    Institute at Chicago: chapter 3.

    Nowak-Vila, Bach and Rudi (2020), "Consistent structured prediction with max-min margin Markov networks", ICML: the max-min margin.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import ChainClassifier
    >>> words = np.array(["the", "cat", "sat"] * 8)
    >>> X = (np.unique(words)[:, None] == words).T.astype(float)
    >>> y = np.array(["O", "NOUN", "VERB"] * 8)
    >>> model = ChainClassifier(C=10.0).fit(X, y, groups=np.repeat(np.arange(8), 3))
    >>> model.predict(X[:3], groups=[0, 0, 0])
    array(['O', 'NOUN', 'VERB'], dtype='<U4')
    """

    trainer, by_examples = ChainTrainer, CHAINS_BY_EXAMPLES

    rule: str = "potentials"
    training: str = "planes"

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        one_of("loss.search", self.search, ("auto", "levels"))
        self.check_rule(self.rule, RULES)
        self.check_surrogate(KINDS, self.training, self.by_examples)

    def problem(self, X: Any, y: Any, share: Array, psi: Psi) -> ChainProblem:
        """Return every row as one chain; `examples` knows which rows go together."""
        return ChainProblem(X, y, np.arange(X.shape[0] + 1, dtype=np.int64), share, psi, len(self.classes_))

    def examples(self, bound: Bound, share: Array) -> ChainProblem:
        """Return the chains."""
        psi = None if self.surrogate == MAXMIN else self.psi()
        return ChainProblem(bound.own["X"], bound.codes, bound.own["start"], share, psi, len(self.classes_))

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: Any = None, groups: Any = None) -> Self:
        """Fit to rows X (n, d), dense or sparse, labels y (n,) and the sequence of every row, groups (n,); None: each row is one.

        ``sample_weight`` (n,) counts how often sequences occur, the same number for all rows of one. ``start`` is a learner fitted to the
        same rows at another C or lambda, from whose stored sequences the fit begins.
        """
        self._fitting(Rows(X, sample_weight, groups=groups), y, start)
        return self

    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows, labels and sequences as fits take them; `DataError` for a sequence in two parts or of different weights."""
        bound = super().bind(Rows(rows.X), y)
        n = bound.own["X"].shape[0]
        start = group_starts(np.arange(n) if rows.groups is None else rows.groups, n)
        weights = weights_of_sequences(rows.weight, bound.own["X"], start)
        distinct, short, merged, became = _merged(bound.own["X"], bound.codes, start, weights)
        owner = became[np.repeat(np.arange(len(became)), np.diff(start))]
        place = np.where(owner < 0, -1, short[owner] + np.arange(n) - np.repeat(start[:-1], np.diff(start)))  # of each row among those kept
        own = {**bound.own, "X": bound.own["X"][distinct], "start": short, "weights": merged, "became": became, "place": place}
        return replace(bound, codes=np.ascontiguousarray(bound.codes[distinct]), own=own)

    def stored_planes(self) -> Array | None:
        """Return the planes with a weight: sequence, alpha, h of the tangent, and the labels of its rows; none for training by rows."""
        if self.training != "planes":
            return None
        bound = self.trained_on_
        # the max-min margin has no tangents
        planes = self.dual_.planes(bound.own["start"], bound.codes, None if self.surrogate == MAXMIN else self.psi())
        rows = [np.concatenate([[s], plane[1:]]) for s, b in enumerate(bound.own["became"]) if b >= 0 for plane in planes[b]]
        return np.concatenate([np.zeros(0), *rows])

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the weights and the stored planes, and the targets that bound the max-min margin, by rows."""
        arrays = super().proof(X, codes, weight)
        if self.trained_targets_ is not None:
            place = self.trained_on_.own["place"]
            p = np.zeros((len(place), self.trained_targets_.shape[1]))  # of sequences of weight 0 none are kept
            p[place >= 0] = self.trained_targets_[place[place >= 0]]
            arrays["predictor"] = p
        return arrays

    # ---- prediction -----------------------------------------------------------------------------------------------
    @property
    def transitions_(self) -> Array:
        """A (K, K): the score of a label and the next."""
        K = len(self.classes_)
        return np.ascontiguousarray(self.shared_.reshape(K, K))

    def look(self, rows: Any) -> View:
        """Return the view of new rows, `Rows` or X (n, d), for this fit; without sequences each row is one."""
        if isinstance(rows, View):
            return rows
        view = super().look(rows)
        n = view.at.shape[0]
        return replace(view, at=GroupedRows(view.at, group_starts(np.arange(n) if view.groups is None else view.groups, n)))

    def _scores(self, mapped: GroupedRows) -> Array:
        return super()._scores(mapped.X)

    def predict_codes(self, X: Any, groups: Any = None) -> Labels:
        """Return predictions as codes (n,), by the rule."""
        view = self.look(X if groups is None else Rows(X, groups=groups))
        if self.rule == "predictor":
            return np.argmax(self.targets(view), axis=1).astype(np.intp)
        return best_paths(self.potentials(view), self.transitions_, view.at.start)[0]

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """Return the predicted labels of rows X (n, d) with the sequence of each, groups (n,); None: each row is one."""
        return self.predictions_[self.predict_codes(X, groups)]

    def targets(self, X: Any, groups: Any = None) -> Array:
        """Return the predictor's distributions p (n, K) in the max-min margin's game at rows X."""
        view = self.look(X if groups is None else Rows(X, groups=groups))
        U, A = self.potentials(view), self.transitions_
        return np.concatenate([chain_game(U[a:b], A).targets for a, b in itertools.pairwise(view.at.start)])

    # ---- saving ---------------------------------------------------------------------------------------------------
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        self.shared_ = attributes.array("shared_", (len(self.classes_) ** 2,))
        super().restore(attributes)
