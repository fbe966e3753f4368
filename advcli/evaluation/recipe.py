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
from ..config.protocol import check_tolerances
from ..core.errors import ConfigError, DataError, IncompatibleError
from ..core.label_graph import LabelGraph
from ..core.notes import noted
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
from ..results.split_table import GivenSplit
from .cell import Cell
from .part import Part
from .selection import PROBABILITIES, RELATIONS, SCORES, HyperSearch, Selection, certificate_columns, find_axes, stage_columns
from .splits import Split, SplitSeeds
from .splitters import splitter_of
from .splitters.base import FoldsOf
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
        self.splitter = splitter_of(cell.protocol, cell.seed)
        dataset = load_once(cell.dataset, data_dir, cell.protocol.splits == "author")
        self.dataset: Any = self.splitter.attached(dataset)
        dataset = self.dataset
        folded = self.axes.names and cell.protocol.holdout is None
        # without folds classes of any size will do
        check_trainable(dataset, cell.protocol.folds if folded else 1)
        self.lonely = lonely_classes(dataset)
        _refuse_noise(cell, dataset)
        _refuse_rows(method, dataset)
        if dataset.has_trees and cell.protocol.standardise != "none":
            raise ConfigError(f"words and tags of {dataset.name} are codes, which have no mean: give protocol.standardise=none")
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
        other.splitter = copy.copy(self.splitter)
        other.splitter.protocol = other.protocol
        other.request, other.cell = (replace(cell, protocol=other.protocol) for cell in (self.request, self.cell))
        return other

    def check_facts(self) -> None:
        """Refuse metrics that need a fact which neither the method nor the data have; else only the first fit would tell.

        The facts that a loss brings are asked of a fit to two rows of every class.
        """
        needed = {
            fact: name
            for name in self.protocol.scores
            for fact in metrics.meaning(name).needs
            if fact not in (PROBABILITIES, SCORES, "labels")
        }
        dataset, cell = self.dataset, self.cell
        for name in self.protocol.scores:
            if (guesses := metrics.meaning(name).guesses) >= self.n_classes:
                raise ConfigError(f"the metric {name} needs more than {guesses} classes; {dataset.name} has {self.n_classes}")
        if not needed or dataset.costs is not None:
            return
        facts = {"label_graph": self.graph, "sequences": dataset.groups, RELATIONS: dataset.relations}
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
        drawn, grows = self.splitter.drawn_from(self.dataset), self.splitter.grows
        rule = ({"drawn": drawn} if drawn else {}) | ({} if grows else {"n_splits": self.protocol.n_splits})
        return self.request.key(self.dataset, rule)

    @property
    def notes(self) -> list[str]:
        """What was done to the data, to be said to the user."""
        sparse = hasattr(self.dataset.X, "indptr") and self.protocol.standardise != "none"
        return [*self.dataset.notes, *([noted("ADV112", self.lonely)] if self.lonely else []), *([SPARSE_NOTE] if sparse else [])]

    def part(self, rows: Any = slice(None)) -> Part:
        """Return rows of the data set with their labels and weights."""
        data = self.dataset
        encoding = None if data.cells is None else data.encoding
        X, numbers = data.X if encoding is None else data.cells, np.arange(data.X.shape[0])
        of_rows = data.example_weight, data.costs, data.groups, encoding, data.group, data.time, numbers, data.soft, data.relations
        return Part(X, data.y, *of_rows)[rows]

    # ---- splits -----------------------------------------------------------------------------------------------------
    def splits(self) -> tuple[list[Split], list[str]]:
        """Return the splits and notes on them."""
        splits, notes = self.splitter.splits(self.dataset)
        unread = [key for key in ("group", "time") if getattr(self.dataset, key) is not None and key not in self.splitter.reads]
        rules = {"group": "grouped keeps groups whole", "time": "forward goes by times"}
        notes += [f"protocol.splits={self.protocol.splits} does not read dataset.{key}; {rules[key]}" for key in unread]
        return splits, [noted("ADV113", note) for note in notes]

    def folds(self, part: Part, number: int | str, stage: int, seed: int | None = None) -> list[Split]:
        """Return the folds of a search on the training part of split ``number``, positions in it."""
        seed = self._search_seed(number) if seed is None else seed
        return self.splitter.folds(part, FoldsOf(self.dataset.name, number, stage, seed))

    def _search_seed(self, number: int | str) -> int:
        # a protocol that searches on the first split alone has the same folds there
        return self.cell.seed if number in (1, ALL) else self.seeds(number).of("search of split")

    def searched(self, splits: list[Split]) -> Iterator[tuple[int, Split]]:
        """Yield the number of each split that has a search, and its rows."""
        count = 0 if not self.axes.names else len(splits) if self.protocol.search == "every_split" else 1
        yield from enumerate(splits[:count], start=1)

    def given(self, splits: list[Split]) -> list[GivenSplit]:
        """Return splits with the folds of their searches, as rows of the data set, for a table of splits."""
        folds: dict[int, dict[int, list[Split]]] = {}
        # a method that learns from a sample of the training rows has folds of that sample
        for number, (train, _) in self.searched(splits) if self.method.learner.view != "sample" else ():
            part = self.part(train)
            stages = {stage: [(train[fit], train[held]) for fit, held in self.folds(part, number, stage)] for stage in (1, 2)}
            alike = all(np.array_equal(a, b) for pairs in zip(stages[1], stages[2], strict=True) for a, b in zip(*pairs, strict=True))
            folds[number] = {1: stages[1]} if alike else stages
        return [GivenSplit(*split, folds.get(number, {})) for number, split in enumerate(splits, start=1)]

    def check_splits(self) -> None:
        """Refuse splits and folds that cannot be made of the data, and, where rules can bring it about, a class in no training part."""
        splits, _ = self.splits()
        dataset, rule = self.dataset, self.protocol.splits
        if not self.splitter.told:
            return
        if not dataset.multilabel:
            codes: Any = dataset.y
            trained = np.unique(np.concatenate([np.unique(codes[train]) for train, _ in splits]))
            lacking = [label for code, label in enumerate(dataset.classes) if code not in trained and dataset.costs is None]
            if lacking:
                where = f"in no training part of protocol.splits={rule}"
                raise DataError(f"data set {dataset.name!r}: class {lacking[0]} is {where}; remove its rows, or split otherwise")
        for number, (train, _) in self.searched(splits):
            self.folds(self.part(train), number, 1)

    # ---- labels, search, fit ------------------------------------------------------------------------------------------
    def labels(self, part: Part, number: int | str) -> TrainingLabels:
        """Return the labels that methods may see: of the training part of split ``number``, or of all rows if all labels are known."""
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

        head = make, self.judge, self.protocol, self.axes
        return HyperSearch(*head, self._search_seed(number), self.dataset.name, self.splitter.folds, number).select(part)

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
        extra |= {} if part.relations is None else {"relations": part.relations}
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
        predicted = self._predicted(learner, view, learner.predict_codes(view), [metric])
        return metric, self.values([metric], held, predicted)[metric]

    def _predicted(self, learner: Learner, X: Any, codes: Any, names: Iterable[str], distributions: bool = False) -> PredictedRows:
        """Return predictions of rows X as the metrics take them; those beyond the classes, such as abstentions, have codes from k on."""
        reads = {fact for name in names for fact in metrics.meaning(name).needs}
        matrix = learner.cost_matrix_
        if not learner.predicts_classes_ and matrix is not None:
            codes, matrix = codes + self.n_classes, np.vstack([np.full((self.n_classes, matrix.shape[1]), np.nan), matrix])
        shares = learner.probabilities(X) if distributions or PROBABILITIES in reads else None
        scores = learner.potentials(X) if SCORES in reads else None
        relations = None if self.dataset.relations is None else learner.relations_at(X, codes)
        return PredictedRows(codes, shares, matrix, learner.abstention_cost_, scores, relations)

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
        predicted = self._predicted(learner, X, codes, names, distributions and self.method.has_probabilities)
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
        facts |= {} if predicted.scores is None else {SCORES: predicted.scores}
        facts |= {} if predicted.relations is None else {RELATIONS: predicted.relations == test.relations}
        return {name: self._value(name, test, predicted.codes, facts) for name in names}


def _refuse_noise(cell: Cell, dataset: Any) -> None:
    """Refuse noise for labels that it cannot change."""
    rough = cell.protocol.rough_per_class
    if dataset.multilabel and (cell.noise or rough is not None):
        raise ConfigError(f"noisy labels are for rows with one label, {dataset.name} has several; use noise=none and another protocol")
    if rough is not None and rough > (most := max(dataset.class_sizes().values())):
        raise ConfigError(f"protocol.rough_per_class={rough} is more rows than any class has; the largest of {dataset.name} has {most}")
    if dataset.has_trees and (cell.noise or rough is not None):
        raise ConfigError(f"noisy labels are for classes, {dataset.name} has heads of words; use noise=none and another protocol")
    if dataset.costs is not None and cell.noise:
        raise ConfigError(f"noisy labels are for rows that are learned from labels, {dataset.name} has costs of its rows; use noise=none")


def _refuse_rows(method: Method, dataset: Any) -> None:
    """Refuse rows that a method cannot learn from."""
    learner, named = method.learner, f"loss={method.loss['name']}"
    if dataset.has_trees != learner.of_trees:
        if learner.of_trees:
            raise IncompatibleError(named, "words with heads", f"{dataset.name} has none: give dataset.head=COLUMN, or another loss")
        raise IncompatibleError(named, "rows with a class each", f"{dataset.name} has heads of words: choose loss=dependency_trees")
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
