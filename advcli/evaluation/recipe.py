"""The recipe: one method on one data set, from options to scored fits. Runs, `advcli fit` and `advcli bench` all follow it."""

from __future__ import annotations

import contextlib
import copy
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import metrics
from ..config.protocol import Protocol, check_tolerances
from ..core.errors import ConfigError, DataError, IncompatibleError
from ..core.groups import group_starts
from ..core.label_graph import LabelGraph
from ..core.row_blocks import BlockRows
from ..data import check_trainable, lonely_classes
from ..data import load as load_data
from ..data.labels.sets import LabelClosures
from ..data.labels.soft import by_label
from ..data.tables.encoding import Encoding
from ..features.cache import kept_in
from ..learners import Method, learner_class, learner_names
from ..learners.base import IN_BLOCKS, Learner, View
from ..results.predictions import PredictedRows
from .cell import Cell
from .part import Part
from .selection import PROBABILITIES, HyperSearch, Selection, certificate_columns, find_axes, stage_columns
from .splits import Split, SplitSeeds, keeping_groups, random_splits, share_of
from .standardise import SPARSE_NOTE, Standardiser
from .training_labels import TrainingLabels, training_labels

ALL = "all rows"
"""The part is the whole data set; used where else the number of a split is."""

_last: list[tuple[Any, Any]] | None = None
"""Inside `shared_data`: the last data set and what it was loaded by."""


def load_once(options: Mapping[str, Any], data_dir: Path, author_splits: bool) -> Any:
    """Load a data set; inside `shared_data` consecutive calls with the same request load it once."""
    request = (dict(options), data_dir, author_splits)
    if _last and _last[0][0] == request:
        return _last[0][1]
    if _last is not None:
        _last.clear()  # never two in memory
    dataset = load_data(options, data_dir, author_splits=author_splits)
    if _last is not None:
        _last.append((request, dataset))
    return dataset


@contextlib.contextmanager
def shared_data(folder: Path | None = None) -> Iterator[None]:
    """Load a data set once for consecutive cells: reading and hashing it takes longer than a small cell.

    With a folder, costly features are computed once for all processes that share it.
    """
    global _last
    before, _last = _last, []
    try:
        if folder is None:
            yield
        else:
            with kept_in(folder):
                yield
    finally:
        _last = before


@dataclass(frozen=True)
class Fitted:
    """A fit with what stands between it and raw rows.

    ``codes`` and ``weight`` are the labels and weights of the rows that it learned from, ``n_train`` the number of rows. ``seconds`` are by
    the solver's clock where it has one, which leaves out work that only reports need. ``facts`` are columns that describe the training
    labels, ``notes`` remarks on them. ``encoding`` makes features of cells, ``standardiser`` is applied to these; None where there is
    nothing to do.
    """

    learner: Learner
    standardiser: Standardiser | None
    codes: Any
    weight: NDArray[np.float64] | None
    n_train: int
    seconds: float
    facts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    encoding: Encoding | None = None
    places: Any = None  # of rows with distributions, the place of each row with one label that stands for one of them

    def examples(self, X: Any) -> Any:
        """Return the training rows X (n, d) of a `Part` as the learner was fitted to them, one for each of ``codes``."""
        X = self.rows(X)
        return X if self.places is None else X[self.places]

    def rows(self, X: Any) -> Any:
        """Return rows X (n, d) of a `Part` as the learner takes them."""
        X = X if self.encoding is None else self.encoding.features(X)
        return X if self.standardiser is None else self.standardiser.transform(X)


class Recipe:
    """One method on one data set, checked before any fit.

    ``request`` is the cell as it was asked for; ``cell`` and ``method`` have what the method needs to know of the data filled in. ``axes``:
    what is searched and what is fixed. Without ``search`` the fit takes ``C = 1`` and the defaults where the cell fixes nothing.
    """

    def __init__(self, cell: Cell, data_dir: Path, search: bool = True) -> None:
        self.request, self.protocol, method = cell, cell.protocol, Method.of(cell)
        check_tolerances(cell.solver)
        self.axes = find_axes(cell.protocol, method, search)
        self.dataset = dataset = load_once(cell.dataset, data_dir, cell.protocol.splits == "author")
        folded = self.axes.names and cell.protocol.holdout is None
        # without folds classes of any size will do
        check_trainable(dataset, cell.protocol.folds if folded else 1)
        self.lonely = lonely_classes(dataset)
        _refuse_noise(cell, dataset)
        _refuse_rows(method, dataset)
        edges = dataset.hierarchy
        hierarchy = None if edges is None else {"edges": [list(edge) for edge in edges], "classes": list(dataset.classes)}
        facts = {"classes": [str(label) for label in dataset.classes], "hierarchy": hierarchy, "ordered": bool(dataset.ordered)}
        self.method = method.filled(facts)
        self.cell = replace(cell, loss=self.method.loss)
        self.method.check(bool(dataset.ordered), len(dataset.classes))

    def asking(self, n_splits: int, names: Iterable[str]) -> Recipe:
        """Return the recipe with another number of splits and other further metrics; its key depends on neither."""
        other = copy.copy(self)
        other.protocol = replace(self.protocol, n_splits=n_splits, metrics=list(names))
        other.request, other.cell = (replace(cell, protocol=other.protocol) for cell in (self.request, self.cell))
        return other

    def check_facts(self) -> None:
        """Refuse metrics that need a fact which neither the method nor the data have; else only the first fit would tell.

        The facts that a loss brings are asked of a fit to two rows of every class.
        """
        needed = {
            fact: name for name in self.protocol.scores for fact in metrics.meaning(name).needs if fact not in (PROBABILITIES, "labels")
        }
        dataset, cell = self.dataset, self.cell
        if not needed or dataset.costs is not None:
            return
        facts = {"label_graph": self.graph, "sequences": dataset.groups}
        if needed.keys() - facts.keys():
            if dataset.multilabel or dataset.groups is not None:
                return
            rows = np.concatenate([np.flatnonzero(dataset.y == code)[:2] for code in range(self.n_classes)])
            learner = self.method.at(self.axes.fixed).make(self.n_classes, 0, 1.0)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    learner.fit(dataset.X[rows], dataset.y[rows])
                    facts |= self._facts(learner.abstention_cost_, learner.cost_matrix_)
            except Exception:  # too few rows for this method: its own fits tell
                return
        for fact, name in needed.items():
            if facts.get(fact) is None:
                raise ConfigError(f"the metric {name} needs {metrics.FACTS[fact]}; loss={cell.loss['name']} on {dataset.name} has none")

    @property
    def n_classes(self) -> int:
        """Classes of the whole data set."""
        return len(self.dataset.classes)

    @cached_property
    def graph(self) -> Any:
        """The ancestor sets of labels (`advcli.data.labels.sets`), for metrics; None without a hierarchy."""
        dataset = self.dataset
        if dataset.hierarchy is None:
            return None
        return LabelClosures.of(LabelGraph.from_edges(dataset.hierarchy, several_tops=True), dataset.classes, dataset.stubs)

    @cached_property
    def key(self) -> str:
        """The key of the cell's rows."""
        return self.request.key(self.dataset)

    @property
    def notes(self) -> list[str]:
        """What was done to the data, to be said to the user."""
        sparse = hasattr(self.dataset.X, "indptr") and self.protocol.standardise != "none"
        return [*self.dataset.notes, *([self.lonely] if self.lonely else []), *([SPARSE_NOTE] if sparse else [])]

    def part(self, rows: Any = slice(None)) -> Part:
        """Return rows of the data set with their labels and weights."""
        data = self.dataset
        encoding = None if data.cells is None else data.encoding
        X = data.X if encoding is None else data.cells
        return Part(X, data.y, data.example_weight, data.costs, data.groups, encoding, data.soft)[rows]

    # ---- splits -----------------------------------------------------------------------------------------------------
    def splits(self) -> tuple[list[Split], list[str]]:
        """Return the splits and notes on them."""
        dataset, protocol = self.dataset, self.protocol
        if protocol.splits == "author":
            if not dataset.splits:
                raise DataError(f"{dataset.name} has no published splits; use protocol.splits=random")
            splits = list(dataset.splits)[: protocol.n_splits]
            few = len(splits) < protocol.n_splits
            notes = [f"{len(splits)} published splits exist, {protocol.n_splits} were asked for"] if few else []
            return splits, [*notes, *self._unread_share("the published splits")]
        if protocol.splits == "official":
            if dataset.official is None:
                raise DataError(f"{dataset.name} has no official training and test rows; use protocol.splits=random")
            notes = ["all runs have the official training and test rows"]
            return [dataset.official] * protocol.n_splits, [*notes, *self._unread_share("the official parts")]
        notes = []
        units = dataset.X.shape[0] if dataset.groups is None else len(group_starts(dataset.groups, dataset.X.shape[0])) - 1
        share = share_of(units, protocol.train_size)
        if dataset.sizes is not None and (share, units - share) != tuple(dataset.sizes):
            notes.append(
                f"the published sizes {dataset.sizes[0]}/{dataset.sizes[1]} win over protocol.train_size={protocol.train_size:g}; "
                "dataset.sizes=null frees them"
            )
        if dataset.groups is not None:
            notes.append("random splits and folds keep sequences whole; their sizes count sequences")

        def draw(units: int) -> list[Split]:
            return random_splits(units, protocol.n_splits, protocol.train_size, self.cell.seed, dataset.name, dataset.sizes)

        return keeping_groups(dataset.groups, dataset.X.shape[0], draw), notes

    def _unread_share(self, what: str) -> list[str]:
        """Return the line about a share of training rows that was asked for and that parts of known rows leave without a meaning."""
        share = self.protocol.train_size
        return [] if share == Protocol.train_size else [f"{what} win over protocol.train_size={share:g}; protocol.splits=random reads it"]

    # ---- labels, search, fit ------------------------------------------------------------------------------------------
    def labels(self, part: Part, number: int | str) -> TrainingLabels:
        """Return what methods may know of the labels of the training part of split ``number``, or of all rows, whose labels are known."""
        if isinstance(number, str):
            return TrainingLabels(part.y, part.y, sample=np.arange(part.X.shape[0]))
        return training_labels(self.cell, part.X, part.y, self.dataset.classes, self.seeds(number))

    def seeds(self, number: int | str) -> SplitSeeds:
        """Return the seeds of a split."""
        return SplitSeeds(self.cell.seed, self.dataset.name, number)

    def _facts(self, abstention_cost: float | None, cost_matrix: Any) -> dict[str, Any]:
        """Return what metrics may ask for: options of the loss and of a wrapped loss, the cost matrix, the graph over the labels."""
        loss = self.cell.loss
        facts = {**(loss.get("options") or {}), **loss}
        if facts.get("alpha") is None:
            facts["alpha"] = abstention_cost  # the default of the loss, or of the loss that it weighs
        return {**facts, "cost_matrix": cost_matrix, "label_graph": self.graph, "labels": self.dataset.classes}

    def search(self, part: Part, number: int | str = 1) -> Selection:
        """Choose hyper-parameters on the training part of split ``number``, by the labels that the method learns from."""
        method = self.method.in_search
        if PROBABILITIES not in metrics.meaning(self.protocol.metric or "error").needs:  # then its fits need no estimates of them
            method = method.uncalibrated
        if self.axes.names:
            method, codes, rows = self.labels(part.encoded()[0], number).view(method)
            part = replace(part, y=codes)
            part = part if rows is None else part[rows]

        def make(hyper: Mapping[str, float], seed: int) -> Learner:
            return method.at(hyper).make(self.n_classes, seed)

        # a protocol that searches on the first split alone has the same folds there
        seed = self.cell.seed if number in (1, ALL) else self.seeds(number).of("search of split")
        return HyperSearch(make, self.judge, self.protocol, self.axes, seed, self.dataset.name).select(part)

    def fit(self, part: Part, hyper: Mapping[str, Any], number: int | str, seed: int | None = None, **limits: Any) -> Fitted:
        """Fit to the training part of split ``number``, which determines the seed of the fit where none is given.

        ``limits`` are new values of ``tol``, ``max_passes`` and ``max_seconds``; a limit that the learner does not have is ignored.
        """
        encoding = None if part.encoding is None else part.encoding.fit(part.X)
        X, standardiser = part.X if encoding is None else encoding.features(part.X), None
        if self.protocol.standardise != "none":
            standardiser = Standardiser().fit(X)
            X = standardiser.transform(X)
        labels = self.labels(Part(X, part.y), number)
        method, codes, rows = labels.view(self.method)
        weight, n_train = part.weight, X.shape[0]
        if rows is not None:
            # rows of weight 0 still shape features that are fitted to rows, as the published kernel PCA does
            weight = rows.astype(np.float64) if weight is None else weight * rows
            n_train = int(rows.sum())
        seed = self.seeds(number).of("fit") if seed is None else seed
        learner = method.at(hyper).make(self.n_classes, seed)
        if limits:
            has = learner.get_params(deep=False)
            learner.set_params(**{name: value for name, value in limits.items() if name in has})
        clock = time.perf_counter()
        extra: dict[str, Any] = {"costs": part.costs} if part.costs is not None and learner.has_costs else {}
        extra |= {"groups": part.groups} if part.groups is not None and learner.has_groups else {}
        given = codes if part.soft is None else part.labels(learner)
        learner.fit(X, given, sample_weight=weight, start=None, **extra)
        seconds = time.perf_counter() - clock
        if learner.certificate_ is not None:
            seconds = float(learner.certificate_.seconds)
        places = None
        if given is part.soft and part.soft is not None:  # the rows that it stands for to the learner
            places, codes, weight = by_label(part.soft, weight)
        return Fitted(learner, standardiser, codes, weight, n_train, seconds, labels.facts, labels.notes, encoding, places)

    def judge(self, learner: Learner, view: View, held: Part) -> tuple[str, float]:
        """Return the metric that selects and its value on held-out rows, which ``view`` has as the learner sees them."""
        metric = self.metric(learner)
        predicted = self._predicted(learner, view, learner.predict_codes(view), self._reads_probabilities([metric]))
        return metric, self.values([metric], held, predicted)[metric]

    @staticmethod
    def _reads_probabilities(names: Iterable[str]) -> bool:
        return any(PROBABILITIES in metrics.meaning(name).needs for name in names)

    def _predicted(self, learner: Learner, X: Any, codes: Any, distributions: bool) -> PredictedRows:
        """Return predictions of rows X as metrics take them; predictions beyond the classes, such as abstentions, have codes from k on."""
        matrix = learner.cost_matrix_
        if not learner.predicts_classes_ and matrix is not None:
            codes, matrix = codes + self.n_classes, np.vstack([np.full((self.n_classes, matrix.shape[1]), np.nan), matrix])
        return PredictedRows(codes, learner.probabilities(X) if distributions else None, matrix, learner.abstention_cost_)

    def _value(self, metric: str, test: Part, predicted: Any, facts: dict[str, Any]) -> float:
        """Return a metric of predictions for the rows of a part; with costs each row is a separate truth for metrics of these."""
        costs = test.costs
        if costs is None or "cost_matrix" not in metrics.meaning(metric).needs:
            return metrics.compute(metric, test.y, predicted, self.n_classes, facts)
        if predicted.max(initial=0) >= costs.shape[1]:
            raise IncompatibleError(f"loss={self.cell.loss['name']}", "a cost of every prediction", "choose a loss that predicts classes")
        return metrics.compute(metric, np.arange(len(costs)), predicted, self.n_classes, {**facts, "cost_matrix": costs.T})

    # ---- scores -----------------------------------------------------------------------------------------------------
    def metric(self, learner: Learner) -> str:
        """Return what the search minimises and tables show."""
        return self.protocol.metric or ("cost" if self.dataset.costs is not None else learner.metric_)

    def score(
        self, fitted: Fitted, train: Part, test: Part, distributions: bool = False
    ) -> tuple[dict[str, Any], dict[str, float], PredictedRows]:
        """Return columns of a fit's rows, the values of its metrics by name, the primary one first, and the predictions of the test rows.

        These have distributions if a metric reads them, or ``distributions`` asks for them and the method has some.
        """
        learner = fitted.learner
        test = replace(test, X=fitted.rows(test.X))
        clock = time.perf_counter()
        # what a kernel is at these rows is computed once for all that is asked of them
        X = test.X if isinstance(test.X, BlockRows) else learner.look(test.rows)
        codes = learner.predict_codes(X)
        columns: dict[str, Any] = {"predict_seconds": time.perf_counter() - clock} | certificate_columns(learner) | stage_columns(learner)
        certificate = learner.certificate_
        if certificate is not None and not np.isnan(certificate.game_value):
            # the worst case that the fit guarantees, beside what it costs on training and test rows
            columns["game_value"] = float(certificate.game_value)
            columns |= self._expected_losses(fitted, train, test, X)
        names = dict.fromkeys([self.metric(learner), *self.protocol.metrics])
        distributions = self._reads_probabilities(names) or (distributions and self.method.has_probabilities)
        predicted = self._predicted(learner, X, codes, distributions)
        return columns, self.values(names, test, predicted) | learner.counts_, predicted

    @staticmethod
    def _expected_losses(fitted: Fitted, train: Part, test: Part, X: Any) -> dict[str, float | None]:
        """Return what the predictor's distribution costs in expectation on training rows and on test rows, which the learner has as X."""
        learner, truth, weight = fitted.learner, test.y, test.weight
        costly = learner.has_costs and train.costs is not None
        if fitted.places is not None and test.soft is not None:
            places, truth, weight = by_label(test.soft, weight)
            X = test.X[places]
        of_train = train.costs if costly else fitted.codes
        return {
            "train_expected_loss": learner.mean_cost(fitted.examples(train.X), of_train, fitted.weight),
            "test_expected_loss": learner.mean_cost(X, test.costs if costly else truth, weight),
        }

    def values(self, names: Iterable[str], test: Part, predicted: PredictedRows) -> dict[str, float]:
        """Return metrics of predictions for the rows of a test part, which need no fit."""
        facts = self._facts(predicted.abstention_cost, predicted.cost_matrix) | {"sequences": test.groups}
        facts |= {} if predicted.probabilities is None else {PROBABILITIES: predicted.probabilities}
        return {name: self._value(name, test, predicted.codes, facts) for name in names}


def _refuse_noise(cell: Cell, dataset: Any) -> None:
    """Refuse noise for labels that it cannot change."""
    rough = cell.protocol.rough_per_class
    if dataset.multilabel and (cell.noise or rough is not None):
        raise ConfigError(f"noisy labels are for rows with one label, {dataset.name} has several; use noise=none and another protocol")
    if rough is not None and rough > (most := max(dataset.class_sizes().values())):
        raise ConfigError(f"protocol.rough_per_class={rough} is more rows than any class has; the largest of {dataset.name} has {most}")
    if dataset.costs is not None and cell.noise:
        raise ConfigError(f"noisy labels are for rows that are learned from labels, {dataset.name} has costs of its rows; use noise=none")


def _refuse_rows(method: Method, dataset: Any) -> None:
    """Refuse rows that a method cannot learn from."""
    learner, named = method.learner, f"loss={method.loss['name']}"
    weighs = {"example weights": dataset.example_weight is not None, "distributions over the classes": dataset.soft is not None}
    for what in (what for what, there in weighs.items() if there and not method.sample.takes_weights):
        raise IncompatibleError(named, "rows that count the same", f"{dataset.name} has {what}, which it does not take")
    if isinstance(dataset.X, BlockRows) and not learner.takes_blocks:
        raise IncompatibleError(named, "rows in memory", IN_BLOCKS)
    if dataset.multilabel and not learner.sets:
        takers = ", ".join(name for name in learner_names() if learner_class(name).sets)
        raise IncompatibleError(named, "one label a row", f"{dataset.name} has several: choose one of {takers}")
    if dataset.multilabel and not learner.empty_sets and (empty := int((np.diff(dataset.y.indptr) == 0).sum())):
        raise IncompatibleError(named, "a label in every row", f"{empty} rows of {dataset.name} have none: choose loss=sets")
