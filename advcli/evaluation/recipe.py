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
from ..config.protocol import Protocol
from ..core.errors import ConfigError, DataError, IncompatibleError
from ..core.groups import group_starts
from ..core.label_graph import LabelGraph
from ..core.row_blocks import BlockRows
from ..data import check_trainable, lonely_classes
from ..data import load as load_data
from ..data.labels.closures import LabelClosures
from ..data.tables.encoding import Encoding
from ..features.cache import kept_in
from ..learners import (
    candidates,
    check_compatible,
    filled,
    learner_class,
    learner_names,
    learner_of,
    make_learner,
    reach,
    searched,
)
from ..learners.base import IN_BLOCKS, Learner, View
from ..results.predictions import PredictedRows
from .axes import Axes, check_fixed, find_axes
from .cell import Cell
from .part import Part
from .seeds import derive_seed
from .selection import Selection, certificate_columns, select, stage_columns
from .splits import Split, keeping_groups, random_splits, share_of
from .standardise import SPARSE_NOTE, Standardiser
from .training_labels import TrainingLabels, training_labels

ALL = "all rows"
"""In the place of a split's number: the part is the whole data set."""

PROBABILITIES = "probabilities"
"""The fact of metrics that depends on the rows: a learner's `Learner.probabilities`."""

_last: list[tuple[Any, Any]] | None = None
"""Inside `shared_data`: the last data set and what it was loaded by."""


def load_once(options: Mapping[str, Any], data_dir: Path, author_splits: bool) -> Any:
    """Load a data set, inside `shared_data` only if it is not the last one that was asked for."""
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


def _check_solver(solver: Mapping[str, Any]) -> None:
    for group in ("tol", "search_tol"):
        value = solver.get(group)
        if not (isinstance(value, (int, float)) and value > 0) and not (group == "search_tol" and value is None):
            raise ConfigError(f"solver.{group} must be a positive relative gap, got {value!r}")
    passes = solver.get("search_passes")
    if passes is not None and (not isinstance(passes, int) or isinstance(passes, bool) or passes < 1):
        raise ConfigError(f"solver.search_passes must be a whole number of at least 1, got {passes!r}")


@dataclass(frozen=True)
class Fitted:
    """A fit with what stands between it and raw rows.

    Attributes
    ----------
    learner : Learner
    standardiser : Standardiser or None
        Applied to features first; None where they are taken as they are.
    codes : ndarray
        The labels that were learned from.
    weight : ndarray or None
        The rows' weights.
    n_train : int
        Rows that were learned from.
    seconds : float
        Of the fit, by the solver's own clock where it has one: that leaves out what only reports need.
    facts : mapping
        Columns of the rows that describe the training labels.
    notes : tuple of str
        What is to be said about them.
    encoding : Encoding or None
        What makes features of cells, as the training rows did; None where rows are features.
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

    def rows(self, X: Any) -> Any:
        """Return rows X (n, d) of a `Part` as the learner takes them."""
        X = X if self.encoding is None else self.encoding.features(X)
        return X if self.standardiser is None else self.standardiser.transform(X)


def uncalibrated(loss: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group ``loss`` whose fits estimate no probabilities."""
    return {key: value for key, value in loss.items() if key != "calibrate"}


def check_metrics(protocol: Protocol, loss: Mapping[str, Any]) -> None:
    """Refuse metrics of probabilities for a method that has none, before any work."""
    for name in dict.fromkeys([*([protocol.metric] if protocol.metric else []), *protocol.metrics]):
        if PROBABILITIES in metrics.meaning(name).needs and not learner_of(loss).has_probabilities(loss):
            raise ConfigError(f"the metric {name} needs {metrics.FACTS[PROBABILITIES]}; loss={loss['name']} has none")


class Recipe:
    """One method on one data set, checked before any fit.

    Parameters
    ----------
    cell : Cell
        Data set and method.
    data_dir : Path
        Where data sets lie.
    search : bool
        Whether hyper-parameters that the cell does not fix are searched; else the fit takes ``C = 1`` and the defaults.

    Attributes
    ----------
    cell : Cell
        With what its method needs to know of the data filled in.
    protocol : Protocol
    axes : Axes
        What is searched and what is fixed.
    dataset : advcli.data.Dataset
    """

    def __init__(self, cell: Cell, data_dir: Path, search: bool = True) -> None:
        self.protocol = protocol = Protocol.from_mapping(cell.protocol)
        _check_solver(cell.solver)
        names = searched(cell.loss, cell.features)
        own = candidates(cell.loss)
        self.axes = (
            find_axes(protocol, names, cell.hyper, own, reach(cell.loss)) if search else Axes(None, (), check_fixed(names, cell.hyper))
        )
        self.dataset = dataset = load_once(cell.dataset, data_dir, protocol.splits == "author")
        folded = self.axes.names and protocol.holdout is None
        # without folds classes of any size will do
        check_trainable(dataset, protocol.folds if folded else 1)
        self.lonely = lonely_classes(dataset)
        if dataset.multilabel and (cell.noise or protocol.rough_per_class is not None):
            raise ConfigError(f"noisy labels are for rows with one label, {dataset.name} has several; use noise=none and another protocol")
        if (rough := protocol.rough_per_class) is not None and rough > (most := max(dataset.class_sizes().values())):
            raise ConfigError(f"protocol.rough_per_class={rough} is more rows than any class has; the largest of {dataset.name} has {most}")
        check_metrics(protocol, cell.loss)
        if dataset.example_weight is not None and not learner_of(cell.loss).takes_weights(cell.loss):
            raise IncompatibleError(
                f"loss={cell.loss['name']}", "rows that count the same", f"{dataset.name} has example weights, which it does not take"
            )
        if isinstance(dataset.X, BlockRows) and not learner_of(cell.loss).takes_blocks:
            raise IncompatibleError(f"loss={cell.loss['name']}", "rows in memory", IN_BLOCKS)
        if dataset.costs is not None and cell.noise:
            raise ConfigError(
                f"noisy labels are for rows that are learned from labels, {dataset.name} has costs of its rows; use noise=none"
            )
        if dataset.multilabel and not learner_of(cell.loss).sets:
            takers = ", ".join(name for name in learner_names() if learner_class(name).sets)
            raise IncompatibleError(f"loss={cell.loss['name']}", "one label a row", f"{dataset.name} has several: choose one of {takers}")
        if dataset.multilabel and not learner_of(cell.loss).empty_sets and (empty := int((np.diff(dataset.y.indptr) == 0).sum())):
            raise IncompatibleError(
                f"loss={cell.loss['name']}", "a label in every row", f"{empty} rows of {dataset.name} have none: choose loss=sets"
            )
        edges = dataset.hierarchy
        hierarchy = None if edges is None else {"edges": [list(edge) for edge in edges], "classes": list(dataset.classes)}
        self.given = cell
        known = {"classes": [str(label) for label in dataset.classes], "hierarchy": hierarchy, "ordered": bool(dataset.ordered)}
        self.cell = replace(cell, loss=filled(cell.loss, known))
        check_compatible(self.cell.loss, cell.features, cell.solver, bool(dataset.ordered), len(dataset.classes))

    def asking(self, n_splits: int, names: Iterable[str]) -> Recipe:
        """Return the recipe with another number of splits and other further metrics, which are no part of its key."""
        other, more = copy.copy(self), {"n_splits": n_splits, "metrics": list(names)}
        other.protocol = replace(self.protocol, **more)  # type: ignore[arg-type]
        other.given, other.cell = (replace(cell, protocol={**cell.protocol, **more}) for cell in (self.given, self.cell))
        return other

    def check_facts(self) -> None:
        """Refuse metrics that need a fact which neither the method nor the data have; else only the first fit would tell.

        The facts that a loss brings are asked of a fit to two rows of every class.

        Raises
        ------
        ConfigError
        """
        named = [*([self.protocol.metric] if self.protocol.metric else []), *self.protocol.metrics]
        needed = {fact: name for name in named for fact in metrics.meaning(name).needs if fact not in (PROBABILITIES, "labels")}
        dataset, cell = self.dataset, self.cell
        if not needed or dataset.costs is not None:
            return
        found = {"label_graph": self.graph, "sequences": dataset.groups}
        if needed.keys() - found.keys():
            if dataset.multilabel or dataset.groups is not None:
                return
            rows = np.concatenate([np.flatnonzero(dataset.y == code)[:2] for code in range(self.n_classes)])
            learner = make_learner(cell.loss, cell.features, cell.solver, self.axes.fixed, self.n_classes, 0, 1.0)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found |= self.facts(learner.fit(dataset.X[rows], dataset.y[rows]))
            except Exception:  # too few rows for this method: its own fits tell
                return
        for fact, name in needed.items():
            if found.get(fact) is None:
                raise ConfigError(f"the metric {name} needs {metrics.FACTS[fact]}; loss={cell.loss['name']} on {dataset.name} has none")

    @property
    def n_classes(self) -> int:
        """Classes of the whole data set."""
        return len(self.dataset.classes)

    @cached_property
    def graph(self) -> Any:
        """The ancestor sets of labels (`advcli.data.labels.closures`), for metrics; None without a hierarchy."""
        dataset = self.dataset
        if dataset.hierarchy is None:
            return None
        return LabelClosures.of(LabelGraph.from_edges(dataset.hierarchy, several_tops=True), dataset.classes, dataset.stubs)

    @cached_property
    def key(self) -> str:
        """The key of the cell's rows."""
        return self.given.key(self.dataset)

    @property
    def notes(self) -> list[str]:
        """What was done to the data, to be said to the user."""
        sparse = hasattr(self.dataset.X, "indptr") and self.protocol.standardise != "none"
        return [*self.dataset.notes, *([self.lonely] if self.lonely else []), *([SPARSE_NOTE] if sparse else [])]

    def part(self, rows: Any = slice(None)) -> Part:
        """Return rows of the data set with their labels and weights."""
        data = self.dataset
        encoding = None if data.cells is None else data.encoding
        return Part(data.X if encoding is None else data.cells, data.y, data.example_weight, data.costs, data.groups, encoding)[rows]

    # ---- splits -----------------------------------------------------------------------------------------------------
    def splits(self) -> tuple[list[Split], list[str]]:
        """Return the splits and what is to be said about them."""
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
        """Return what methods may know of the labels of a training part: that of split ``number``, or all rows, whose labels are known."""
        if isinstance(number, str):
            return TrainingLabels(part.y, part.y, sample=np.arange(part.X.shape[0]))
        return training_labels(
            self.cell.noise,
            self.protocol,
            self.cell.features,
            part.X,
            part.y,
            classes=self.dataset.classes,
            seed=self.cell.seed,
            dataset=self.dataset.name,
            split=number,
        )

    def facts(self, learner: Learner) -> dict[str, Any]:
        """Return what metrics may ask for: the options of the loss and of a wrapped loss, the cost matrix, the graph over the labels."""
        return self._facts(learner.abstention_cost_, self._told(learner, 0)[1])

    def _told(self, learner: Learner, codes: Any) -> tuple[Any, Any]:
        """Return predictions and the loss matrix as metrics take them: predictions that are no class have codes from k on."""
        matrix = learner.cost_matrix_
        if learner.predicts_classes_ or matrix is None:
            return codes, matrix
        return codes + self.n_classes, np.vstack([np.full((self.n_classes, matrix.shape[1]), np.nan), matrix])

    def _facts(self, abstention_cost: float | None, cost_matrix: Any) -> dict[str, Any]:
        loss = self.cell.loss
        given = {**(loss.get("options") or {}), **loss}
        if given.get("alpha") is None:
            given["alpha"] = abstention_cost  # the default of the loss, or of the one that it weighs
        return {**given, "cost_matrix": cost_matrix, "label_graph": self.graph, "labels": self.dataset.classes}

    def search(self, part: Part, number: int | str = 1) -> Selection:
        """Choose hyper-parameters on a training part, that of split ``number``, by the labels that the method learns from."""
        loss = self.cell.loss
        if PROBABILITIES not in metrics.meaning(self.protocol.metric or "error").needs:  # then its fits need no estimates of them
            loss = uncalibrated(loss)
        if self.axes.names:
            loss, codes, known = self.labels(part.encoded()[0], number).view(loss)
            part = replace(part, y=codes)
            part = part if known is None else part[known]
        solver = _search_solver(self.cell.solver)
        tol = float(solver.get("search_tol") or solver["tol"])

        def make(hyper: Mapping[str, float], seed: int) -> Learner:
            return make_learner(loss, self.cell.features, solver, hyper, self.n_classes, seed, tol)

        # the first split's folds are those of a protocol that searches there alone
        seed = self.cell.seed if number in (1, ALL) else derive_seed(self.cell.seed, "search of split", self.dataset.name, number)
        return select(part, make, self.judge, self.protocol, self.axes, seed, self.dataset.name)

    def fit(self, part: Part, hyper: Mapping[str, Any], number: int | str, seed: int | None = None, **limits: Any) -> Fitted:
        """Fit to a training part, that of split ``number``, which determines the seed of the fit where none is given.

        ``limits`` replace those of ``tol``, ``max_passes`` and ``max_seconds`` that the learner has.
        """
        encoding = None if part.encoding is None else part.encoding.fit(part.X)
        X, standardiser = part.X if encoding is None else encoding.features(part.X), None
        if self.protocol.standardise != "none":
            standardiser = Standardiser().fit(X)
            X = standardiser.transform(X)
        labels = self.labels(Part(X, part.y), number)
        loss, codes, known = labels.view(self.cell.loss)
        weight, n_train = part.weight, X.shape[0]
        if known is not None:
            # rows of weight 0 still shape features that are fitted to rows, as the published kernel PCA does
            weight = known.astype(np.float64) if weight is None else weight * known
            n_train = int(known.sum())
        cell, seed = self.cell, derive_seed(self.cell.seed, "fit", self.dataset.name, number) if seed is None else seed
        learner = make_learner(loss, cell.features, cell.solver, hyper, self.n_classes, seed, float(cell.solver["tol"]))
        learner.limit(**limits)
        clock = time.perf_counter()
        own: dict[str, Any] = {"costs": part.costs} if part.costs is not None and learner.has_costs else {}
        own |= {"groups": part.groups} if part.groups is not None and learner.has_groups else {}
        learner.fit(X, codes, sample_weight=weight, start=None, **own)
        seconds = time.perf_counter() - clock
        if learner.certificate_ is not None:
            seconds = float(learner.certificate_.seconds)
        return Fitted(learner, standardiser, codes, weight, n_train, seconds, labels.facts, labels.notes, encoding)

    def judge(self, learner: Learner, held: View, y: Any) -> tuple[str, float]:
        """Return the metric that selects and its value on held-out rows of labels y, or of costs (`Part.truth`)."""
        metric = self.metric(learner)
        facts = self.facts(learner) | self._probabilities([metric], learner, held) | {"sequences": held.groups}
        return metric, self._value(metric, y, self._told(learner, learner.predict_codes(held))[0], facts)

    @staticmethod
    def _probabilities(names: Iterable[str], learner: Learner, X: Any) -> dict[str, Any]:
        """Return the fact ``probabilities`` of rows X where one of these metrics reads it."""
        return {PROBABILITIES: learner.probabilities(X)} if any(PROBABILITIES in metrics.meaning(name).needs for name in names) else {}

    def _value(self, metric: str, truth: Any, predicted: Any, facts: dict[str, Any]) -> float:
        """Return a metric of predictions by their truth (`Part.truth`); with costs of rows each row is a truth of its own to ``cost``."""
        if self.dataset.costs is None:
            return metrics.compute(metric, truth, predicted, self.n_classes, facts)
        if metric != "cost":
            return metrics.compute(metric, truth.argmin(axis=1), predicted, self.n_classes, facts)
        if predicted.max(initial=0) >= truth.shape[1]:
            raise IncompatibleError(f"loss={self.cell.loss['name']}", "a cost of every prediction", "choose a loss that predicts classes")
        return metrics.compute(metric, np.arange(len(truth)), predicted, self.n_classes, {**facts, "cost_matrix": truth.T})

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
            own = learner.has_costs and train.costs is not None
            columns["train_expected_loss"] = learner.mean_cost(fitted.rows(train.X), train.costs if own else fitted.codes, fitted.weight)
            columns["test_expected_loss"] = learner.mean_cost(X, test.costs if own else test.y, test.weight)
        names = dict.fromkeys([self.metric(learner), *self.protocol.metrics])
        found = self._probabilities(names, learner, X)
        if distributions and not found and learner_of(self.cell.loss).has_probabilities(self.cell.loss):
            found = {PROBABILITIES: learner.probabilities(X)}
        codes, matrix = self._told(learner, codes)
        predicted = PredictedRows(codes, found.get(PROBABILITIES), matrix, learner.abstention_cost_)
        return columns, self.values(names, test, predicted) | learner.counts_, predicted

    def values(self, names: Iterable[str], test: Part, predicted: PredictedRows) -> dict[str, float]:
        """Return metrics of predictions for the rows of a test part, which need no fit."""
        facts = self._facts(predicted.abstention_cost, predicted.cost_matrix) | {"sequences": test.groups}
        facts |= {} if predicted.probabilities is None else {PROBABILITIES: predicted.probabilities}
        return {name: self._value(name, test.truth, predicted.codes, facts) for name in names}


def _search_solver(solver: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the solver of the search's fits: another one where ``solver.search_solver`` names it, fewer passes with ``search_passes``."""
    name, passes = solver.get("search_solver"), solver.get("search_passes")
    if name is not None:
        solver = {"name": name, **{key: solver.get(key) for key in ("tol", "search_tol", "max_passes", "max_seconds")}}
    return solver if passes is None else {**solver, "max_passes": min(passes, solver.get("max_passes") or passes)}
