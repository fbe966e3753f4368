"""Dependency trees: the heads of the words of a sentence, learned and predicted together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import is_sparse
from ...core.checks import is_whole
from ...core.errors import ConfigError, DataError, IncompatibleError
from ...core.groups import Starts, group_starts
from ...core.stored_arrays import Entries
from ...core.text_codes import BELOW, text_codes
from ...core.trees import MOST_WORDS, tree_fault
from ...core.typing import Array, Labels, Options
from ...solvers.cutting_planes import CuttingPlaneFit
from ..base import Bound, Rows, View, register
from ..options import describes, one_of, seed_of
from .arc_relations import ArcRelations, relation_bits, relations_at
from .learner import MAXMIN, SequenceLearner, StructuredLearner, weights_of_sequences
from .spaces.psi import Psi
from .stored_planes import KINDS
from .tree_training import TREES_BY_EXAMPLES, Heads, Sentences, TreeProblem, TreeTrainer, nearest_projective


@register("dependency_trees")
@describes(StructuredLearner)
@dataclass(kw_only=True, eq=False, repr=False)
class DependencyParser(SequenceLearner):
    """Dependency trees of sentences, a head for every word, from a surrogate of the number of wrong heads.

    f(y) is the sum over words m with head h of w.phi(h, m). Eisner's algorithm finds the projective tree of the largest f, with one word
    below the root. phi are the words and tags at both ends of an arc, the tags beside and between them, its direction and its length
    (McDonald, Crammer & Pereira 2005), hashed to 2^``hash_bits`` weights. The fit minimises lambda/2 |w|^2 + mean over sentences of max
    over trees y of psi(f(y) - f(y_i), number of wrong heads), with lambda = 1/(n C) for n sentences (Choi 2018, section 5.3.4).

    Where words have relations to their heads, such as subject, a second problem of the same C learns the relation from the arc: a class of
    each word by the adversarial zero-one loss (`AdversarialClassifier`).

    Parameters
    ----------
    surrogate : {"margin", "slack", "scaling", "log", "prob", "maxmin"}
        psi (`advcli.learners.structured.spaces.psi`), or the max-min margin of the number of wrong heads (Nowak-Vila, Bach & Rudi 2020).
    search : {"auto"}
        How the worst tree is found: by Eisner's algorithm at scores plus l for every wrong head, for several l, which bounds psi of all
        trees; where the bound stays open, by the best tree at every number of wrong heads, of sentences of up to 160 words.
    training : {"planes", "bcfw", "sgd"}
        How P is minimised: by stored trees of every sentence; with one mean plane of each by block-coordinate Frank-Wolfe, or by stochastic
        subgradients. All are certified; the max-min margin has ``planes`` alone.
    hash_bits : int
        Base-2 logarithm of the number of weights, 8 to 28.

    Attributes
    ----------
    coef_ : ndarray (1, 2^hash_bits)
        w.
    crossing_ : int
        Sentences whose true tree has crossing arcs, trained on the projective tree that shares the most arcs with it.
    relations_, relation_theta_ : ndarray (R,), ndarray (2^bits + 1, R)
        The relations, and the parameters that choose among them, with ``bits`` = max(8, ``hash_bits`` - 6) and a last row of constants;
        empty where none were learned.
    certificate_, oracle_gap_, oracle_calls_
        As in `StructuredLearner`, of the trees.
    stages_ : mapping
        The certificate of the relations under ``"relations"``, where some were learned.

    Notes
    -----
    ``fit(X, y, groups=..., relations=...)`` and ``predict(X, groups=...)`` take words and tags X (n, 2), as text or as codes
    (`advcli.core.text_codes`), heads y (n,), 0 for the root or the number of a word in its sentence from 1, the sentence of every row and
    its relation; the rows of a sentence stand together. Without groups all rows are one sentence. `predict_relations` predicts relations.

    References
    ----------
    Choi (2018), "Efficient structured surrogate loss and regularization in structured prediction", doctoral thesis, Toyota Technological
    Institute at Chicago: section 5.3.4.

    McDonald, Crammer and Pereira (2005), "Online large-margin training of dependency parsers", ACL: the features.

    Fathony, Liu, Asif and Ziebart (2016), "Adversarial multiclass classification: a risk minimization perspective", NeurIPS: the relations.

    Nowak-Vila, Bach and Rudi (2020), "Consistent structured prediction with max-min margin Markov networks", ICML.

    Eisner (1996), "Three new probabilistic models for dependency parsing: an exploration", COLING: the algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import DependencyParser
    >>> X = np.array([["the", "DET"], ["cat", "NOUN"], ["sat", "VERB"], ["dogs", "NOUN"], ["bark", "VERB"]])
    >>> parser = DependencyParser(hash_bits=12).fit(X, [2, 3, 0, 2, 0], groups=[0, 0, 0, 1, 1])
    >>> parser.predict([["a", "DET"], ["dog", "NOUN"], ["barked", "VERB"]])
    array([2, 3, 0])
    >>> relations = ["det", "nsubj", "root", "nsubj", "root"]
    >>> parser = parser.fit(X, [2, 3, 0, 2, 0], groups=[0, 0, 0, 1, 1], relations=relations)
    >>> parser.predict_relations([["a", "DET"], ["dog", "NOUN"], ["barked", "VERB"]]).tolist()
    ['det', 'nsubj', 'root']
    """

    of_trees: ClassVar[bool] = True
    alike: ClassVar[tuple[str, ...]] = (*SequenceLearner.alike, "hash_bits")
    trainer, by_examples = TreeTrainer, TREES_BY_EXAMPLES

    fit_intercept: bool = False
    training: str = "planes"
    hash_bits: int = 22

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the options that a configuration may set: words have no constant."""
        return tuple(name for name in super().option_names() if name != "fit_intercept")

    @classmethod
    def check_features(cls, name: str, features: str, options: Options) -> None:
        """Refuse feature maps: arcs have their own."""
        if features != "linear":
            raise IncompatibleError(
                f"loss={name}", "features=linear", f"arcs have features of their own, and features={features} maps rows"
            )
        super().check_features(name, features, options)

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        one_of("loss.search", self.search, ("auto",))
        if not (is_whole(self.hash_bits) and 8 <= self.hash_bits <= 28):
            raise ConfigError(f"loss.hash_bits={self.hash_bits} must be a whole number from 8 to 28, for 2^hash_bits weights")
        if self.fit_intercept:
            raise ConfigError("fit_intercept=True: words have no constant, and a parse ignores what all arcs share")
        self.check_surrogate(KINDS, self.training, self.by_examples)

    def problem(self, X: Any, y: Any, share: Array, psi: Psi) -> TreeProblem:
        """Return all rows as one sentence; `examples` knows which rows go together."""
        return self._problem_of(Sentences(X, sentence_starts(None, X.shape[0])), np.asarray(y, dtype=np.int32), np.ones(1))

    def examples(self, bound: Bound, share: Array) -> TreeProblem:
        """Return the sentences."""
        return self._problem_of(bound.own["sentences"], bound.codes, share)

    def _problem_of(self, sentences: Sentences, heads: Heads, share: Array) -> TreeProblem:
        beta = 0.0 if self.surrogate == MAXMIN else float(getattr(self.psi(), "beta", 0.0))
        return TreeProblem(sentences, heads, share, self.surrogate, beta, int(self.hash_bits), float(self.tol))

    # ---- fitting --------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, start: Any = None, groups: Any = None, relations: Any = None) -> Self:
        """Fit to words and tags X (n, 2), heads y (n,) and the sentence of every row, groups (n,); None: all rows are one.

        ``relations`` (n,) are the names of the words' relations to their heads; None: they are not learned.
        ``sample_weight`` (n,) counts how often sentences occur, the same number for all rows of one. ``start`` is a parser fitted to the
        same rows at another C or lambda, from whose stored trees the fit begins. Raises `DataError` for heads that make no tree.
        """
        self._fitting(Rows(X, sample_weight, groups=groups, relations=relations), y, start)
        return self

    def _validated(self, X: Any, *y: Any, reset: bool = True) -> Any:
        """Return rows with words and tags as codes, by columns that are numbers already or hold text."""
        return super()._validated(codes_of(X), *y, reset=reset)

    def _coded(self, y: Any, own: list[Any] | None, compact: bool) -> Any:
        """Return heads (n,) as they are; `order_` holds the numbers that heads have."""
        heads = np.asarray(y)
        if heads.dtype.kind not in "iu":
            try:
                values = heads.astype(np.float64)
            except (TypeError, ValueError):
                values = np.full(heads.shape, np.nan)
            bad = np.flatnonzero(~((values == np.floor(values)) & (np.abs(values) < 2**31)))
            if len(bad):
                raise DataError(
                    f"row {bad[0] + 1} has the head {heads[bad[0]]!s}: heads are whole numbers, 0 the root or a word of the sentence"
                )
            heads = values.astype(np.intp)
        most = int(heads.max(initial=0)) + 1
        self.order_ = self.classes_ = np.arange(most if self.n_classes is None else self.n_classes)
        return heads.astype(np.intp)

    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return sentences as fits take them; `DataError` for heads that make no tree, a sentence in two parts or of several weights."""
        bound = super().bind(Rows(rows.X), y)
        n = bound.own["X"].shape[0]
        start = sentence_starts(rows.groups, n)
        fault = tree_fault(bound.codes, start)
        if fault is not None:
            raise DataError(f"row {fault[0] + 1}: {fault[1]}")
        weights = weights_of_sequences(rows.weight, bound.own["X"], start)
        heads, kept = nearest_projective(bound.codes.astype(np.int32), start)
        crossing = int(((kept < np.diff(start)) & (weights > 0.0)).sum())
        sentences, relations = Sentences(bound.own["X"], start), None
        if rows.relations is not None:
            relations = ArcRelations(sentences, bound.codes, rows.relations, weights, relation_bits(int(self.hash_bits)))
        own = {**bound.own, "start": start, "weights": weights, "sentences": sentences, "crossing": crossing, "relations": relations}
        own["named_arcs"] = None if relations is None else (bound.codes, np.asarray(rows.relations).astype(str))
        return replace(bound, codes=heads, own=own)

    def sharpened(self, problem: TreeProblem, fit: CuttingPlaneFit) -> CuttingPlaneFit:
        """Return a training with the bound of P that exact searches give where it is better."""
        if self.surrogate == MAXMIN:  # whose searches leave nothing open
            return fit
        primal, oracle_gap = problem.exactly(self.lam_, fit.W)
        return fit._replace(primal=min(fit.primal, primal), oracle_gap=oracle_gap)

    def _fit_checked(self, bound: Bound, start: Any) -> None:
        super()._fit_checked(bound, start)
        self.crossing_, several = bound.own["crossing"], int((bound.own["weights"] > 0.0).sum())
        crossing = f"{self.crossing_} of {several} sentences have crossing arcs and are trained on the nearest projective tree"
        self.remarks_ = (crossing,) if self.crossing_ else ()
        self._learn_relations(bound.own["relations"], start if getattr(start, "trained_on_", None) is bound else None)

    def _learn_relations(self, given: ArcRelations | None, start: Any) -> None:
        """Learn the relations of the true arcs; a fit at another lambda, ``start``, gives the first weights."""
        self.relations_, self.relation_theta_, self.stages_ = np.zeros(0, dtype=str), np.zeros((0, 0)), {}
        self.relation_fit_ = None
        if given is None:
            return
        self.relations_ = given.names
        before, seed = getattr(start, "relation_fit_", None), seed_of(self.random_state)
        self.relation_fit_ = fit = given.fit(self.lam_, float(self.tol), float(self.max_passes), seed, before)
        if fit is not None and fit.certificate_ is not None:
            self.relation_theta_, self.stages_ = fit.theta_, {"relations": fit.certificate_}

    def stored_planes(self) -> Array | None:
        """Return the planes with a weight: sentence, alpha, h of the tangent, and the heads of its words; none for mean planes."""
        if self.training != "planes":
            return None
        psi = None if self.surrogate == MAXMIN else self.psi()
        planes = self.dual_.planes(self.trained_on_.own["start"], self.trained_on_.codes, psi)
        return np.concatenate([np.zeros(0), *(plane for each in planes for plane in each)])

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the arrays that prove the trees and, by names that begin with ``relations_``, the relations; or none."""
        arrays = super().proof(X, codes, weight)
        arrays |= {} if self.trained_targets_ is None else {"predictor": self.trained_targets_}
        if not arrays or self.relation_fit_ is None:
            return arrays
        return arrays | {f"relations_{name}": array for name, array in self.relation_fit_.proof(None, None, None).items()}

    # ---- prediction -----------------------------------------------------------------------------------------------
    def look(self, rows: Any) -> View:
        """Return the view of new rows, `Rows` or X (n, 2), for this fit; without groups all rows are one sentence."""
        if isinstance(rows, View):
            return rows
        view = super().look(rows)
        start = sentence_starts(view.groups, view.at.shape[0])
        if int(np.diff(start).max()) > MOST_WORDS:
            raise DataError(f"a sentence has {np.diff(start).max()} words, more than the {MOST_WORDS} that a parse takes: split it")
        return replace(view, at=Sentences(view.at, start))

    def heads_of(self, X: Any, groups: Any = None) -> tuple[Heads, Array]:
        """Return the heads (n,) of the best tree of every sentence, and its score (s,)."""
        value, heads = self.look(X if groups is None else Rows(X, groups=groups)).at.best(self.coef_[0])
        return heads, value

    def predict_codes(self, X: Any, groups: Any = None) -> Labels:
        """Return the predicted heads (n,)."""
        return self.heads_of(X, groups)[0].astype(np.intp)

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """Return the head of every word, 0 the root, for words and tags X (n, 2) with the sentence of each row; None: all are one."""
        return self.predict_codes(X, groups)

    def predict_relations(self, X: Any, groups: Any = None, heads: Any = None) -> NDArray[Any]:
        """Return the relation of every word (n,) to its head, to those predicted where ``heads`` (n,) are not given.

        Raises `ConfigError` for a parser that was fitted without relations.
        """
        view = self.look(X if groups is None else Rows(X, groups=groups))
        if heads is None:
            heads = view.at.best(self.coef_[0])[1]
        elif (fault := tree_fault(np.asarray(heads), view.at.start)) is not None:
            raise DataError(f"row {fault[0] + 1}: {fault[1]}")
        relations = self.relations_at(view, heads)
        if relations is None:
            raise ConfigError("this parser was fitted without relations: give fit relations=")
        return relations

    def relations_at(self, X: Any, heads: Any) -> NDArray[Any] | None:
        """Return the names of the relations of words X (n, 2) to their heads (n,); None for a fit without relations."""
        return relations_at(self.look(X).at, heads, self.relations_, self.relation_theta_) if len(self.relations_) else None

    def potentials(self, X: Any, groups: Any = None) -> Array:
        """Return the scores of all heads of every word, (n, m + 1) for m words at most, as many as `classes_`; -inf for no head."""
        sentences = self.look(X if groups is None else Rows(X, groups=groups)).at
        every = sentences.scores(self.coef_[0])
        F = np.full((len(sentences.words), max(len(self.classes_), *(len(scores) for scores in every))), -np.inf)
        for first, scores in zip(sentences.start[:-1].tolist(), every, strict=True):
            n = len(scores) - 1
            own = scores[:, 1:].T.copy()
            own[np.arange(n), np.arange(1, n + 1)] = -np.inf
            F[first : first + n, : n + 1] = own
        return F

    # ---- saving ---------------------------------------------------------------------------------------------------
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model."""
        self.shared_ = attributes.array("shared_", (0,))
        self.relations_ = attributes.array("relations_", (None,), "U")
        several = len(self.relations_) > 1
        shape = (2 ** relation_bits(int(self.hash_bits)) + 1, len(self.relations_)) if several else (0, 0)
        self.relation_theta_ = attributes.array("relation_theta_", shape)
        super().restore(attributes)

    @property
    def _n_scores(self) -> int:
        return 1

    @property
    def _n_weights(self) -> int:
        return int(2**self.hash_bits)


def sentence_starts(groups: Any, n: int) -> Starts:
    """Return where every sentence of n rows begins, and n; without groups all rows are one."""
    return group_starts(np.zeros(n, dtype=np.intp) if groups is None else groups, n)


def codes_of(X: Any) -> Any:
    """Return words and tags X (n, 2) as codes, a column that holds text by `text_codes`; `DataError` for what is neither."""
    if is_sparse(X) or len(np.shape(X)) != 2 or np.shape(X)[1] != 2:
        what = "a sparse matrix" if is_sparse(X) else f"the shape {np.shape(X)}"
        raise DataError(f"words and tags need two columns, the word and its tag; X has {what}")
    columns = [X.iloc[:, j].to_numpy() if hasattr(X, "iloc") else np.asarray([row[j] for row in X]) for j in (0, 1)]
    codes = np.empty((len(columns[0]), 2))
    for j, column in enumerate(columns):
        what = ("word", "tag")[j]
        if column.dtype.kind in "OUST":
            gaps = [place for place, cell in enumerate(column.tolist()) if cell is None or cell != cell or cell == ""]
            if gaps:
                raise DataError(f"row {gaps[0] + 1} has no {what}; fill it, or leave its sentence out")
            codes[:, j] = text_codes(column)
            continue
        codes[:, j] = values = np.asarray(column, dtype=np.float64)
        bad = np.flatnonzero(~((values >= 0.0) & (values < BELOW) & (values == np.floor(values))))
        if len(bad):
            found = f"row {bad[0] + 1} has {values[bad[0]]:g} for its {what}"
            raise DataError(f"{found}: give text, or its code as it is (protocol.standardise=none)")
    return codes
