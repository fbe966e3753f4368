"""Searches side by side along one training by cutting planes: calls, success, misses and time (choi2018, tables 4.1 and 5.1)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from advcli.core.errors import ConfigError, IncompatibleError
from advcli.evaluation.recipe import Recipe
from advcli.evaluation.standardise import Standardiser
from advcli.learners.structured import MultilabelClassifier
from advcli.learners.structured.label_sets import PairWeights, SearchedSets
from advcli.learners.structured.spaces.enumerated_sets import MOST_LABELS
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.spaces.relaxation import RelaxedSets
from advcli.learners.structured.spaces.searches import SEARCHES, SearchResult
from advcli.reports.drawing import COLOURS
from advcli.reports.pictures import Picture, Request, register
from advcli.reports.published_numbers import FOLDER
from advcli.solvers.cutting_planes import CuttingPlanes, Visits

LEADING = "angular"
"""The search whose labels the training takes."""

RATIO = 0.999
"""Share of its upper bound at which the angular search ends, as in the thesis."""

WIDTH = 1e-2
"""Relative width of the range of l at which the bisecting search ends; the thesis states none."""

_MOST_ROUNDS = 200
_INNER_GAP = 1e-4  # of the stored planes between two rounds


class Trial(NamedTuple):
    """One search at one row.

    Attributes
    ----------
    round, row : int
    search : str
    calls : int
        Calls of the oracle.
    seconds : float
        Processor time.
    value, upper : float
        What it found, and its bound.
    slack : float
        The row's slack over the planes known so far.
    """

    round: int
    row: int
    search: str
    calls: int
    seconds: float
    value: float
    upper: float
    slack: float


class Training:
    """A training of slack rescaling by n-slack cutting planes, with labels of the angular search.

    Attributes
    ----------
    slack : ndarray (n,)
        The largest of each row's planes: its slack.
    """

    def __init__(self, problem: SearchedSets, lam: float, epsilon: float, seed: int) -> None:
        self.problem, self.lam, self.epsilon = problem, lam, epsilon
        self.planes, self.visits = CuttingPlanes(problem), Visits(problem, seed)
        self.weights = self.planes.weights(lam)
        self.start = np.full(problem.n, 1.0 / problem.K)
        self.slack = np.zeros(problem.n)

    def round(self, turn: int, names: Sequence[str]) -> tuple[list[Trial], dict[int, SearchResult]]:
        """Return a trial of every search at every row, and the results of the leading one that are new labels."""
        (W, shared), trials, new = self.weights, list[Trial](), dict[int, SearchResult]()
        self.slack = np.zeros(self.problem.n)
        np.maximum.at(self.slack, self.planes.owner, self.planes.values(W, shared))
        spaces = self.problem.spaces(np.asarray(self.problem.X @ W.T), shared, np.arange(self.problem.n))
        for row, space in enumerate(spaces):
            slack = float(self.slack[row])
            options = {LEADING: {"start": self.start[row], "ratio": RATIO}, "bisecting": {"tol": WIDTH}, "sarawagi": {"xi": slack}}
            for name in names:
                clock = time.process_time()
                result = SEARCHES.get(name)(space, self.problem.psi, **options.get(name, {}))
                seconds = time.process_time() - clock
                trials.append(Trial(turn, row, name, result.calls, seconds, result.value, result.upper, slack))
                if name == LEADING and result.value > 0.0:
                    self.start[row] = (result.point.h + 1.0) / result.point.g
                    if result.value > slack + self.epsilon:
                        new[row] = result
        return trials, new

    def learn(self, new: dict[int, SearchResult]) -> None:
        """Store the new labels and ascend the dual."""
        rows = np.array(list(new))
        self.planes.add(self.problem.cuts(list(new.values()), rows), rows)
        self.visits.run(self.planes, self.lam, *self.weights, _INNER_GAP)
        self.planes.feasible()
        self.weights = self.planes.weights(self.lam)


def try_searches(problem: SearchedSets, lam: float, epsilon: float, names: Sequence[str], seed: int = 0) -> list[Trial]:
    """Try every search at each row of each round of a training.

    A round adds the label of every row whose value exceeds the row's slack by more than ``epsilon``; the training ends when there is none.
    Sarawagi and Gupta's search gets that slack, the angular search starts from the slope of the label that it found last at the row.

    Parameters
    ----------
    problem : SearchedSets
    lam : float
        Lambda.
    epsilon : float
        The violation that makes a label new.
    names : sequence of str
        Searches, ``angular`` among them.
    seed : int
        Of the order of the pairwise steps.
    """
    if LEADING not in names:
        raise ConfigError(f"searches {', '.join(names)} must have {LEADING} among them: the training takes its labels")
    training, trials = Training(problem, lam, epsilon, seed), list[Trial]()
    for turn in range(_MOST_ROUNDS):
        more, new = training.round(turn, names)
        trials += more
        if not new:
            break
        training.learn(new)
    return trials


SEARCHED = (LEADING, "bisecting", "sarawagi", "hull")
WORSE = 1e-3
"""A value below the best by more than this share is not the best: the angular search ends there."""

SHOWN = {"calls": "calls a search", "success": "% that find a violation", "not_best": "% not the best of all", "ms": "ms a search"}
PUBLISHED = {
    "4.1": {"queries_per_search": ("calls", 1.0), "success_rate": ("success", 1.0), "average_time": ("ms", 1.0)},
    "5.1": {"n_queries": ("calls", 1.0), "fail_max": ("not_best", 100.0)},
}
"""What of the published tables compares with which column, and the factor to its unit. The unit of the times of 5.1 is not printed."""


def published(dataset: str) -> dict[tuple[str, str, str], float]:
    """Return the published numbers of a data set by table, search and column."""
    found = {}
    for number, metrics in PUBLISHED.items():
        facts = pd.read_csv(FOLDER / f"choi2018_table{number.replace('.', '_')}.csv")
        facts = facts[facts["dataset"].str.lower().str.split().str[0] == dataset]
        for fact in facts[facts["metric"].isin(list(metrics))].to_dict("records"):
            column, factor = metrics[fact["metric"]]
            found[number, fact["method"].replace("convex ", ""), column] = factor * float(fact["mean"])
    return found


def _sample(recipe: Recipe, most: int) -> tuple[Any, Any]:
    """Return the first rows (n, d) of the first training part, standardised as the protocol says, and their sets (n, m)."""
    part = recipe.part(recipe.splits()[0][0][0])
    X = part.X if recipe.protocol.standardise == "none" else Standardiser().fit(part.X).transform(part.X)
    X, Y = X[:most], part.y[:most]
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    Y = (Y.toarray() if hasattr(Y, "toarray") else np.eye(recipe.n_classes)[Y]).astype(np.int8)
    return (np.hstack([X, np.ones((len(X), 1))]) if recipe.cell.loss.get("fit_intercept", True) else X), Y


def _measured(problem: SearchedSets, lam: float, epsilon: float, seed: int) -> list[tuple[Any, ...]]:
    """Return a line of the table for each search that the sets allow."""
    names = [name for name in SEARCHED if not problem.relaxed or set(SEARCHES.get(name).needs) <= RelaxedSets.offers]
    trials = pd.DataFrame(try_searches(problem, lam, epsilon, names, seed=seed))
    best = trials.groupby(["round", "row"])["value"].transform("max")
    trials["success"] = 100.0 * (trials["value"] > trials["slack"] + epsilon)
    trials["not_best"] = 100.0 * (trials["value"] < (1.0 - WORSE) * best)
    trials["ms"] = 1000.0 * trials["seconds"]
    means = trials.groupby("search")[list(SHOWN)].mean()
    source = f"{'relaxation' if problem.relaxed else 'all sets'}, here"
    return [(source, name, len(trials) // len(names), *means.loc[name]) for name in names]


def _paint(canvas: Any, table: pd.DataFrame) -> None:
    """Draw bars of every column, side by side for each source."""
    sources = list(dict.fromkeys(table["source"]))
    width = 0.8 / len(sources)
    for axes, (column, title) in zip(canvas.subplots(2, 2).ravel(), SHOWN.items(), strict=True):
        for i, source in enumerate(sources):
            rows = table[(table["source"] == source) & table[column].notna()]
            places = [SEARCHED.index(name) + (i - 0.5 * (len(sources) - 1)) * width for name in rows["search"]]
            bars = axes.bar(places, rows[column].astype(float), width, color=COLOURS[i], label=source)
            axes.bar_label(bars, fmt=lambda value: f"{value:.0f}" if value >= 10.0 else f"{value:.2g}", fontsize=9, padding=1)
        axes.set_xticks(range(len(SEARCHED)), SEARCHED)
        axes.set_xlim(-0.6, len(SEARCHED) - 0.4)
        axes.set_title(title, fontsize=12)
        axes.tick_params(labelsize=11)
    handles, names = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(handles, names, loc="outside lower center", ncols=len(sources), fontsize=11)


@register("searches")
def searches_picture(request: Request) -> Iterator[Picture]:
    """Yield one picture: every search at every row of a training on the first rows, over all sets and over the relaxation."""
    cell, psi = request.cell, make_psi("slack")
    if cell.loss["name"] != MultilabelClassifier.name or cell.loss.get("surrogate") != psi.name:
        chosen = f"loss={cell.loss['name']} loss.surrogate={cell.loss.get('surrogate')}"
        raise IncompatibleError("figure=searches", "slack rescaling of sets", f"{chosen} is another: choose loss=sets loss.surrogate=slack")
    recipe = Recipe(cell, request.data_dir, search=False)
    X, Y = _sample(recipe, request.rows)
    lam = cell.hyper.get("lambda") or 1.0 / (len(X) * cell.hyper.get("C", 1.0))
    weights, share = PairWeights(Y.shape[1], cell.loss.get("pairs", "one")), np.full(len(X), 1.0 / len(X))
    lines = []
    for relaxed in (False, True) if Y.shape[1] <= MOST_LABELS else (True,):
        lines += _measured(SearchedSets(X, Y, share, psi, weights, relaxed=relaxed), lam, request.epsilon, cell.seed)
    printed = published(recipe.dataset.name)
    for number in PUBLISHED:
        rows = {name: [printed.get((number, name, column)) for column in SHOWN] for name in SEARCHED}
        lines += [(f"table {number}", name, None, *values) for name, values in rows.items() if any(value is not None for value in values)]
    table = pd.DataFrame(lines, columns=["source", "search", "searches", *SHOWN]).astype({"searches": "Int64"})
    ours = table[table["searches"].notna()]
    said = "; ".join(f"{row.source} {row.search} {row.calls:.1f} calls, {row.not_best:.0f} % not the best" for row in ours.itertuples())
    yield Picture(f"searches_{recipe.dataset.name}_{len(X)}", said, table, (10.4, 7.2), lambda canvas: _paint(canvas, table))
