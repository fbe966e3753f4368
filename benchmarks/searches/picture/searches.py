"""Searches side by side along one training by cutting planes: calls, success, misses and time (choi2018, tables 4.1 and 5.1)."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from advcli.core.errors import ConfigError, IncompatibleError
from advcli.core.highs import pass_program, quiet_solver
from advcli.core.typing import Array
from advcli.evaluation.recipe import Recipe
from advcli.evaluation.standardise import Standardiser
from advcli.learners.structured import MultilabelClassifier
from advcli.learners.structured.label_sets import PairWeights, SearchedSets
from advcli.learners.structured.spaces.enumerated_sets import MOST_LABELS
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.spaces.relaxation import Marginals, PairField, RelaxedSets
from advcli.learners.structured.spaces.searches import SEARCHES, SearchResult
from advcli.learners.structured.spaces.space import LabelPoint, LabelSpace
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


class FieldProgram:
    """(1) as a linear program in HiGHS, with H and g as variables of their own, so that an angle changes two coefficients.

    Variables are the marginals of the labels and of the pairs, H and g. A new example changes the two rows that define H and g; a call
    changes the costs 1 and l of these two and starts from the last basis.
    """

    def __init__(self, field: PairField) -> None:
        import highspy

        self.field, self._kinds = field, highspy
        m, p = field.m, len(field.pairs)
        self._H, self._g = m + p, m + p + 1
        each = np.arange(p)
        columns = m + each
        ones, infinite = np.ones(p), highspy.kHighsInf
        # mu_jk <= mu_j, mu_jk <= mu_k, mu_j + mu_k - mu_jk <= 1; then H = ..., g = ..., g <= a H, g >= b H
        data = np.concatenate([ones, -ones, ones, -ones, ones, ones, -ones])
        rows = np.concatenate([each, each, p + each, p + each, 2 * p + each, 2 * p + each, 2 * p + each])
        where = np.concatenate([columns, field.first, columns, field.second, field.first, field.second, columns])
        self._rows = 3 * p + np.arange(4)
        define, slope = np.arange(m), np.full(2, self._H)
        # every coefficient of these rows has a place from the start, whatever its value
        extra_rows = np.concatenate(
            [np.full(m, 3 * p), np.full(p, 3 * p), [3 * p], np.full(m, 3 * p + 1), [3 * p + 1], self._rows[2:], self._rows[2:]]
        )
        extra_columns = np.concatenate([define, columns, [self._H], define, [self._g], slope, [self._g, self._g]])
        extra = np.concatenate([np.full(m, -1.0), -field.pairs, [1.0], np.full(m, -1.0), [1.0], [-1.0, -1.0], [1.0, 1.0]])
        matrix = sparse.csr_array(
            (np.concatenate([data, extra]), (np.concatenate([rows, extra_rows]), np.concatenate([where, extra_columns]))),
            shape=(3 * p + 4, m + p + 2),
        )
        ends = np.concatenate([np.zeros(m + p), np.full(2, -infinite)]), np.concatenate([np.ones(m + p), np.full(2, infinite)])
        least = np.concatenate([np.full(3 * p, -infinite), np.zeros(2), np.full(2, -infinite)])
        most = np.concatenate([np.zeros(2 * p), np.ones(p), np.zeros(2), np.full(2, infinite)])
        self._solver = quiet_solver(1e-9, presolve=False)
        pass_program(self._solver, np.zeros(m + p + 2), ends, (least, most), matrix, maximise=True)
        self._seen: tuple[Array, Array] | None = None

    def solve(self, space: RelaxedSets, l: float, angle: tuple[float, float] | None = None) -> Marginals | None:
        """Return a maximiser of H + l g over (1), inside an angle (a, b) if one is given; None if it is empty."""
        solver, m, infinite = self._solver, self.field.m, self._kinds.kHighsInf
        if self._seen is None or self._seen[0] is not space.u_h or self._seen[1] is not space.u_g:
            for j in range(m):
                solver.changeCoeff(int(self._rows[0]), j, -float(space.u_h[j]))
                solver.changeCoeff(int(self._rows[1]), j, -float(space.u_g[j]))
            solver.changeRowBounds(int(self._rows[0]), space.h0 + 1.0, space.h0 + 1.0)
            solver.changeRowBounds(int(self._rows[1]), space.g0, space.g0)
            self._seen = (space.u_h, space.u_g)
        solver.changeColBounds(self._H, -infinite if angle is None else 0.0, infinite)
        for row, side, bounds in zip(self._rows[2:], angle or (1.0, 1.0), ((-infinite, 0.0), (0.0, infinite)), strict=True):
            solver.changeCoeff(int(row), self._H, -float(side))
            solver.changeRowBounds(int(row), *((-infinite, infinite) if angle is None else bounds))
        solver.changeColCost(self._H, 1.0)
        solver.changeColCost(self._g, float(l))
        solver.run()
        status = solver.getModelStatus()
        if status == self._kinds.HighsModelStatus.kInfeasible and angle is not None:
            return None
        if status != self._kinds.HighsModelStatus.kOptimal:
            raise ArithmeticError(f"HiGHS stopped with {status} on a set of {m} labels at l={l}")
        value = np.array(solver.getSolution().col_value)
        return Marginals(np.clip(value[:m], 0.0, 1.0), np.clip(value[m : self._H], 0.0, 1.0))


class AngledSets(RelaxedSets):
    """The relaxation with the oracle ``cone``; ``lam`` is a flow as there, or ``by_program`` by the linear program."""

    offers = frozenset({"lam", "cone"})

    def __init__(self, program: FieldProgram, u: Any, y: Any, axes: str = "margin", by_program: bool = False) -> None:
        super().__init__(program.field, u, y, axes)
        self.program, self.by_program = program, by_program

    def lam(self, l: float, ban: Sequence[Hashable] = ()) -> LabelPoint:
        """Return the vertex of the largest h + l g; of several, any."""
        if not self.by_program or np.isinf(l):
            return super().lam(l, ban)
        best = self.program.solve(self, l)
        assert best is not None
        mu = best.labels
        halves = np.rint(2.0 * mu) / 2.0
        return self._point(self.field.marginals(halves if np.abs(halves - mu).max(initial=0.0) <= 1e-6 else mu))

    def cone(self, l: float, a: float, b: float, strict: int, ban: Sequence[Hashable] = ()) -> LabelPoint | None:
        """Return the point of the largest H + l g in the angle b H <= g <= a H; strictness has no meaning among mixtures."""
        best = self.program.solve(self, l, (a, b))
        return None if best is None else self._point(best)


class SearchedSetsWithAngles(SearchedSets):
    """Rows whose searches have angles over the relaxation, too."""

    def spaces(self, U: Array, shared: Array, examples: Any) -> Iterator[LabelSpace]:
        """Yield the sets of these examples as searches see them."""
        if not self.relaxed:
            yield from super().spaces(U, shared, examples)
            return
        linear, pairs = self.weights.potentials(shared)
        program = FieldProgram(PairField(pairs, self.K))
        yield from (AngledSets(program, u, self.Y[i], self.psi.axes) for u, i in zip(U + linear, examples, strict=True))


# ---- trials
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
        # rcv1subset1 has the place of RCV1
        facts = facts[[dataset.startswith(name.lower().split()[0]) for name in facts["dataset"]]]
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
    names = [name for name in SEARCHED if not problem.relaxed or set(SEARCHES.get(name).needs) <= AngledSets.offers]
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
        lines += _measured(SearchedSetsWithAngles(X, Y, share, psi, weights, relaxed=relaxed), lam, request.epsilon, cell.seed)
    printed = published(recipe.dataset.name)
    for number in PUBLISHED:
        rows = {name: [printed.get((number, name, column)) for column in SHOWN] for name in SEARCHED}
        lines += [(f"table {number}", name, None, *values) for name, values in rows.items() if any(value is not None for value in values)]
    table = pd.DataFrame(lines, columns=["source", "search", "searches", *SHOWN]).astype({"searches": "Int64"})
    ours = table[table["searches"].notna()]
    said = "; ".join(f"{row.source} {row.search} {row.calls:.1f} calls, {row.not_best:.0f} % not the best" for row in ours.itertuples())
    yield Picture(f"searches_{recipe.dataset.name}_{len(X)}", said, table, (10.4, 7.2), lambda canvas: _paint(canvas, table))
