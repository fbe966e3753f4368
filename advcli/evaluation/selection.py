"""Two-stage cross-validated selection of hyper-parameters.

Fathony et al. 2018, section 7.1 (and 7.2 for lambda): five folds of the training part of one split; stage 1 over a coarse grid, stage 2
over multipliers of its winner; ties go to the strongest regularisation. Beyond the papers the grid of stage 1 may go on past an end that
wins (``protocol.extend``), and near-ties may count as ties (``protocol.standard_errors``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from .. import metrics
from ..config.protocol import Protocol
from ..core.errors import ConfigError
from ..core.hyper import SCALES, STRENGTH, hyper
from ..learners import Method
from ..learners.base import Learner, View
from ..problems.certificate import Certificate
from ..results.tables import hyper_value
from .part import Part
from .splits import Split, derive_seed
from .splitters.base import FoldsOf, Splitter
from .standardise import Standardiser

PROBABILITIES, SCORES, RELATIONS = "probabilities", "scores", "relations"
"""The facts of metrics that depend on the rows: a learner's `Learner.probabilities`, its `Learner.potentials`, and right relations."""


@dataclass(frozen=True)
class Axes:
    """What is searched and what is fixed.

    ``strength`` is C or lambda if the regularisation is searched, ``others`` are further hyper-parameters. ``lists`` has the
    hyper-parameters of the method alone, with the values that are tried (`Method.candidates`), which the protocol does not set. ``reach``
    is how far these lists may grow.
    """

    strength: str | None
    others: tuple[str, ...]
    fixed: Mapping[str, float]
    lists: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    reach: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All that is searched, the regularisation by its place in the grids."""
        return (*([STRENGTH] if self.strength else []), *self.others, *self.lists)

    def hyper(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return hyper-parameters, the fixed ones among them, from the values of axes."""
        return dict(self.fixed) | {(self.strength or name) if name == STRENGTH else name: value for name, value in values.items()}


def find_axes(protocol: Protocol, method: Method, search: bool = True) -> Axes:
    """Separate the searched from the fixed hyper-parameters of a method; without ``search`` the fixed ones are all.

    Raises
    ------
    ConfigError
        As `Method.fixed`, for a searched hyper-parameter without a grid, and for a metric that does not exist or that needs probabilities
        of a method without.
    """
    for name in protocol.scores:
        if PROBABILITIES in metrics.check_metric(name).needs and not method.has_probabilities:
            raise ConfigError(f"the metric {name} needs {metrics.FACTS[PROBABILITIES]}; loss={method.loss['name']} has none")
    fixed = method.fixed()
    if not search:
        return Axes(None, (), fixed)
    searched = [name for name in method.searched if name not in fixed and not (name == STRENGTH and fixed.keys() & {*SCALES})]
    for name in searched:
        if name not in protocol.stage1:
            view = protocol.regularisation if name == STRENGTH else name
            raise ConfigError(f"the search over {name} has no grid; set protocol.stage1.{name} or fix hyper.{view}")
    return Axes(
        strength=protocol.regularisation if STRENGTH in searched else None,
        others=tuple(name for name in searched if name != STRENGTH),
        fixed=fixed,
        lists=method.candidates,
        reach=method.reach if protocol.extend else {},
    )


@dataclass(frozen=True)
class Selection:
    """Chosen and fixed hyper-parameters, one row of search.csv per fit, and a sentence per chosen value at an end of all tried."""

    hyper: Mapping[str, Any]
    rows: list[dict[str, Any]]
    edges: tuple[str, ...]


def certificate_columns(learner: Learner) -> dict[str, Any]:
    """Return objective, dual, gap, passes and convergence of a fit; empty without a certificate."""
    return {} if learner.certificate_ is None else _columns(learner.certificate_)


def _columns(certificate: Certificate) -> dict[str, Any]:
    return {
        "objective": _number(certificate.primal),
        "dual_objective": _number(certificate.dual),
        "relative_gap": _number(certificate.relative_gap),
        "gap_scale": _number(certificate.scale),
        "passes": int(certificate.passes),
        "converged": bool(certificate.converged),
    }


def stage_columns(learner: Learner) -> dict[str, Any]:
    """Return objective, dual, gap and convergence of a fit's further problems, by columns that begin with the name of the stage."""
    stored = ("objective", "dual_objective", "relative_gap", "converged")
    columns = {stage: _columns(certificate) for stage, certificate in learner.stages_.items()}
    return {f"{stage}_{name}": values[name] for stage, values in columns.items() for name in stored}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _score(values: Sequence[float], counts: Sequence[int], metric: str) -> float:
    """Return the metric pooled over folds, lower is better, in a form in which ties are exact; nan counts as worst."""
    about = metrics.meaning(metric)
    total = math.fsum(value * count for value, count in zip(values, counts, strict=True))
    if math.isnan(total):
        return math.inf
    pooled = float(round(total)) if about.is_count else round(total / sum(counts), 12)
    return -pooled if about.higher_is_better else pooled


def _spread(values: Sequence[float], counts: Sequence[int], metric: str) -> float:
    """Return the standard error of `_score` by the deviation between folds; 0 where that is not known."""
    if len(values) < 2 or not np.isfinite(values).all():
        return 0.0
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return error * sum(counts) if metrics.meaning(metric).is_count else error


Point = tuple[Any, ...]
"""A value for each of `Axes.names`; for hyper-parameters of the method alone the position in the list, which may hold anything."""


class _Stage:
    """One stage of a search: the values that it has tried and how they did.

    ``values`` by axis, strong regularisation first, and what is the method's own as it is given; ``vain`` are values beyond an end that
    were not better; ``rows`` are the rows of search.csv.
    """

    def __init__(self, axes: Axes, values: Mapping[str, Sequence[Any]]) -> None:
        self.axes = axes
        self.lists = {name: list(values[name]) for name in axes.lists}
        self.values = {name: numbers if name in self.lists else self._strong_first(name, numbers) for name, numbers in values.items()}
        self.vain: dict[str, list[float]] = {name: [] for name in values}
        self.rows: list[dict[str, Any]] = []
        self._new: Mapping[str, float] = {}
        self._scores: dict[Point, list[float]] = {}
        self._counts: list[int] = []

    def _strong_first(self, name: str, numbers: Sequence[float]) -> list[float]:
        return sorted(numbers, reverse=hyper(str(self.axes.strength) if name == STRENGTH else name).strong == "large")

    def paths(self, new: Mapping[str, float] | None = None) -> list[list[Point]]:
        """Return all combinations of values that the stage tries: a path of strengths, strong to weak, for each combination of the others.

        With ``new`` only those with this value of this axis.
        """
        self._new = new or {}
        for name, value in self._new.items():
            if name in self.lists:
                self.lists[name].append(value)
        values = {name: [self._new[name]] if name in self._new else list(tried) for name, tried in self.values.items()}
        places = {name: range(len(self.lists[name]))[-1 if name in self._new else 0 :] for name in self.axes.lists}
        others = product(*(values[name] for name in self.axes.others), *(places[name] for name in self.axes.lists))
        return [[(strength, *rest) for strength in values[STRENGTH]] if self.axes.strength else [rest] for rest in others]

    def named(self, point: Point) -> dict[str, Any]:
        """Return the values of a point by axis."""
        return {name: self.lists[name][place] if name in self.lists else place for name, place in zip(self.axes.names, point, strict=True)}

    def add(self, point: Point, row: dict[str, Any]) -> None:
        """Take the fit of a candidate in the next fold of its round."""
        scores = self._scores.setdefault(point, [])
        scores.append(row["value"])
        if len(scores) > len(self._counts):
            self._counts.append(row["n_test"])
        self.rows.append(row)

    def best(self, standard_errors: float) -> dict[str, Any]:
        """Return the strongest regularisation among the candidates within so many standard errors of the best value.

        A new value counts among these only if it is better than all values before.
        """
        metric = self.rows[-1]["metric"]
        scores = {point: _score(values, self._counts, metric) for point, values in self._scores.items()}
        for name, value in self._new.items():
            place = len(self.lists[name]) - 1 if name in self.lists else value
            added = {point for point in scores if point[self.axes.names.index(name)] == place}
            if min(scores[point] for point in added) < min(scores[point] for point in scores if point not in added):
                values = [*self.values[name], value]
                self.values[name] = values if name in self.lists else self._strong_first(name, values)
            else:  # not better than the values of the list: on a plateau ties would go on for ever
                self.vain[name].append(value)
                if name in self.lists:
                    self.lists[name].pop()
                for point in added:
                    del scores[point], self._scores[point]
        least = min(scores.values())
        # exact ties share the widest deviation, so that it does not matter which came first
        spread = max(_spread(self._scores[point], self._counts, metric) for point, score in scores.items() if score == least)
        bound = least + standard_errors * spread if standard_errors else least

        def order(point: Point) -> list[int]:
            places = zip(self.axes.names, point, strict=True)
            return [place if name in self.lists else self.values[name].index(place) for name, place in places]

        return self.named(min((point for point in scores if scores[point] <= bound), key=order))

    def next_value(self, best: Mapping[str, Any], extend: Mapping[str, Sequence[float]]) -> dict[str, float]:
        """Return the axis whose end is the best value and that value's neighbour outside, within the limits; empty if there is none."""
        for name, (smallest, largest) in extend.items():
            tried = sorted(set(self.values.get(name, ())))
            if name not in best or len(tried) < 2:
                continue
            outside = {tried[0]: tried[0] * tried[0] / tried[1], tried[-1]: tried[-1] * tried[-1] / tried[-2]}
            value = outside.get(best[name])
            if value is not None and all(isinstance(number, int) for number in tried):
                value = round(value)  # whole numbers stay whole
            if value is not None and smallest <= value <= largest and value not in (*tried, *self.vain[name]):
                return {name: value}
        return {}


@dataclass(frozen=True)
class HyperSearch:
    """The search of one method on one data set.

    ``make`` returns an unfitted learner of hyper-parameters and a seed; ``judge`` returns the name and the value of the metric that selects
    for a fitted learner, its view of held-out rows, and these rows. ``draw`` returns the folds of a training part; None: shuffled ones.
    """

    make: Callable[[Mapping[str, float], int], Learner]
    judge: Callable[[Learner, View, Part], tuple[str, float]]
    protocol: Protocol
    axes: Axes
    seed: int
    dataset: str
    draw: Callable[[Part, FoldsOf], list[Split]] | None = None
    number: int | str = 1

    def select(self, part: Part) -> Selection:
        """Choose hyper-parameters by two-stage cross-validation on one training part; seed, data set and stage determine the folds.

        Within a fold and for each value of the other hyper-parameters, the path runs from strong to weak regularisation and every fit
        starts from the one before. While the best value of an axis lies at an end of what stage 1 has tried, the next value outside is
        tried with all values of the other axes; such fits start anew. ``protocol.extend`` bounds these values, ``loss.extend`` for the
        method's own hyper-parameters. A value counts if it is better than all before; else the search stops at that end.
        """
        protocol, axes = self.protocol, self.axes
        if not axes.names:
            return Selection(dict(axes.fixed), [], ())
        if protocol.standardise == "train":
            (part,) = part.encoded()
            part = replace(part, X=Standardiser().fit(part.X).transform(part.X))
        rows: list[dict[str, Any]] = []
        tried: dict[str, list[Any]] = {name: [] for name in axes.names}
        best: dict[str, Any] = {}
        for number in (1, 2):
            values = _values(protocol, number, axes, best)
            if not values:
                continue
            stage = _Stage(axes, values)
            paths = stage.paths()
            while paths:
                self._add_round(part, number, stage, paths)
                best = stage.best(protocol.standard_errors)
                outside = stage.next_value(best, {**protocol.extend, **axes.reach}) if number == 1 else {}
                paths = stage.paths(outside) if outside else []
            rows += stage.rows
            for name, numbers in stage.values.items():
                tried[name] += [*numbers, *stage.vain[name]]
        return Selection(axes.hyper(best), rows, tuple(_edges(protocol, axes, tried, best)))

    def _add_round(self, part: Part, number: int, stage: _Stage, paths: list[list[Point]]) -> None:
        """Give a stage the fits of paths in every fold."""
        for fold, (fit, held) in enumerate(self._folds(part, number), start=1):
            seed = derive_seed(self.seed, "search", self.dataset, number, fold)
            for path in paths:
                for point, row in self._fits(fit, held, stage, path, seed):
                    stage.add(point, {"stage": number, "fold": fold, **row})

    def _folds(self, part: Part, stage: int) -> Iterator[tuple[Part, Part]]:
        """Yield the rows to fit and the rows to judge by, standardised by the former where the protocol asks for it."""
        protocol = self.protocol
        draw = Splitter(protocol, self.seed).folds if self.draw is None else self.draw
        for fit_rows, held_rows in draw(part, FoldsOf(self.dataset, self.number, stage, self.seed)):
            fit, held = part[fit_rows].encoded(part[held_rows])
            if protocol.standardise == "fold":
                standardiser = Standardiser().fit(fit.X)
                fit, held = (replace(rows, X=standardiser.transform(rows.X)) for rows in (fit, held))
            yield fit, held

    def _fits(self, fit: Part, held: Part, stage: _Stage, path: list[Point], seed: int) -> Iterator[tuple[Point, dict[str, Any]]]:
        """Yield every point of a path in one fold and its row of search.csv."""
        previous = bound = view = None
        for point in path:
            chosen = self.axes.hyper(stage.named(point))
            learner = self.make(chosen, seed)
            if learner.calibrates:
                learner.fit(fit.X, fit.labels(learner), fit.weight, previous)
            else:
                bound = learner.bind(*fit.examples(learner)) if bound is None else bound
                learner.fit_bound(bound, previous)
            view = learner.look(held.rows) if view is None else view
            previous = learner
            metric, value = self.judge(learner, view, held)
            row = {name: hyper_value(number) for name, number in chosen.items()} | {"metric": metric, "value": value}
            row |= {"n_train": fit.X.shape[0], "n_test": held.X.shape[0], **certificate_columns(learner)}
            yield point, row | {"seconds": None if learner.certificate_ is None else _number(learner.certificate_.seconds)}


def _values(protocol: Protocol, stage: int, axes: Axes, best: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Return the values that a stage tries of every hyper-parameter, given the winner of the stage before; empty for a stage left out."""
    if stage == 1:
        return {name: axes.lists[name] if name in axes.lists else tuple(dict.fromkeys(protocol.stage1[name])) for name in axes.names}
    if not any(name in protocol.stage2 for name in axes.names):
        return {}
    # hyper-parameters of the method alone stay at the winner's
    refined = {name: protocol.stage2.get(name, (1.0,)) for name in axes.names if name not in axes.lists}
    refined_values = {name: tuple(dict.fromkeys(factor * best[name] for factor in factors)) for name, factors in refined.items()}
    return refined_values | {name: (best[name],) for name in axes.lists}


def searched_points(protocol: Protocol, axes: Axes) -> int:
    """Return how many candidates a search has in both stages, before a grid grows."""
    stages = [_values(protocol, 1, axes, {})]
    stages.append(_values(protocol, 2, axes, {name: values[0] for name, values in stages[0].items()}))
    return sum(math.prod(map(len, values.values())) for values in stages if values)


_LIST = 3
"""Values of a learner's own hyper-parameter from which on they are a range: of two, each is an end."""


def _edges(protocol: Protocol, axes: Axes, tried: Mapping[str, Sequence[Any]], best: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for every chosen value that lies at an end of all values tried; values other than numbers have none."""
    for name, values in tried.items():
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            continue
        if name in axes.lists and len(set(values)) < _LIST:
            continue
        low, high = min(values), max(values)
        if low < high and best[name] in (low, high) and (name == STRENGTH or name in axes.lists or not hyper(name).choice):
            label, side = axes.strength if name == STRENGTH else name, "smallest" if best[name] == low else "largest"
            if name in axes.lists:
                grid = f"loss.{'extend' if name in axes.reach else 'grid'}.{name.rpartition('.')[2]}"
            else:
                grid = f"protocol.{'extend' if name in protocol.extend else 'stage1'}.{name}"
            yield f"{label}={best[name]:g} is the {side} value tried ({low:g} to {high:g}); widen {grid}"


def pooled_score(selection: Selection) -> float | None:
    """Return the cross-validated metric of the chosen values, pooled over the folds of the last stage; None if nothing was searched."""
    if not selection.rows:
        return None
    last = selection.rows[-1]["stage"]
    chosen = {name: hyper_value(value) for name, value in selection.hyper.items()}
    rows = [row for row in selection.rows if row["stage"] == last and all(row[name] == value for name, value in chosen.items())]
    return math.fsum(row["value"] * row["n_test"] for row in rows) / sum(row["n_test"] for row in rows)
