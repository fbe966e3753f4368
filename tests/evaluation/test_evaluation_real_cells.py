"""Whole cells against a script of plain loops: splits, folds, standardisation, two-stage search and errors made anew, other solvers.

Nothing of `advcli.evaluation` is used by the script. Its fits are scikit-learn's LinearSVC (Crammer & Singer) or quadratic programs
(tests/support/reference.py); both sides fit so tightly that predictions agree, so errors are compared as counts and chosen values exactly.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC
from support import reference

from advcli import SurrogateClassifier
from advcli.core.errors import NotConvergedWarning
from advcli.data import load as load_data
from advcli.evaluation import Cell, run_cell
from advcli.learners import learner_class
from advcli.models import fit as fit_model
from advcli.models import read as read_model
from advcli.models import save as save_model
from advcli.results.folder import ResultsFolder

TIGHT = {"name": "auto", "tol": 1e-11, "search_tol": 1e-11, "max_passes": 100_000, "max_seconds": None}
GRID, MULTIPLIERS = [0.01, 0.25, 4.0], [0.5, 1.0, 2.0]
COSTS = [[0, 1, 8], [2, 0, 3], [1, 5, 0]]


# ---- the script


def seed_of(*dimensions: Any) -> int:
    """The seed that belongs to the experiment's seed and named dimensions: the first eight bytes of a hash of their JSON text."""
    text = json.dumps(list(dimensions), separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % 2**31


@dataclass
class Script:
    """One data set x one method, evaluated by plain loops."""

    name: str
    X: Any
    y: Any
    sizes: tuple[int, int]
    learner: Any
    view: str = "C"
    standardise: str = "fold"
    folds: int = 5
    holdout: float | None = None
    stage1: list[float] = field(default_factory=lambda: GRID)
    stage2: list[float] = field(default_factory=lambda: MULTIPLIERS)
    gammas: list[float | None] = field(default_factory=lambda: [None])
    seed: int = 0
    weight: Any = None
    noise: float = 0.0
    splits: Any = None
    n_splits: int = 3
    costs: Any = None
    margin: float = np.inf
    nested: bool = False
    limits: tuple[float, float] | None = None
    standard_errors: float = 0.0

    def parts(self) -> list[tuple[Any, Any]]:
        """Training and test rows of every split."""
        if self.splits is not None:
            return list(self.splits)
        train, test = self.sizes
        fits = []
        for number in range(self.n_splits):
            order = np.random.default_rng(seed_of(self.seed, "split", self.name, number)).permutation(len(self.y))
            fits.append((order[:train], order[train : train + test]))
        return fits

    def seen(self, rows: Any, number: int) -> Any:
        """The labels of training rows: with pairwise noise a share of every class moves to the next, by one uniform number a row."""
        labels = self.y[rows].copy()
        if self.noise:
            draws = np.random.default_rng(seed_of(self.seed, "noisy labels", self.name, number)).random(len(rows))
            k = int(self.y.max()) + 1
            for i, draw in enumerate(draws):
                # the interval of the lower code comes first: of the last class that is the first class, where it moves to
                keeps = draw >= self.noise if labels[i] == k - 1 else draw < 1.0 - self.noise
                labels[i] = labels[i] if keeps else (labels[i] + 1) % k
        return labels

    def held_out(self, n: int, stage: int, number: int = 1) -> list[tuple[Any, Any]]:
        """Rows to fit and rows to judge by, positions within the training part of a split."""
        seed = self.seed if number == 1 else seed_of(self.seed, "search of split", self.name, number)
        if self.holdout is not None:
            order = np.random.default_rng(seed_of(seed, "holdout", self.name)).permutation(n)
            kept = int(Fraction(str(1 - self.holdout)) * n)
            return [(order[:kept], order[kept:])]
        order = np.arange(n)
        np.random.RandomState(seed_of(seed, "folds", self.name, stage)).shuffle(order)
        pairs, begin = [], 0
        for fold in range(self.folds):
            size = n // self.folds + (1 if fold < n % self.folds else 0)
            held = sorted(order[begin : begin + size])
            pairs.append((np.array([row for row in range(n) if row not in set(held)]), np.array(held)))
            begin += size
        return pairs

    def errors(self, X_fit: Any, y_fit: Any, weight: Any, X_held: Any, y_held: Any, strength: float, gamma: float | None) -> tuple:
        """Sum of errors (of costs) on held rows and the objective of the fit."""
        total = len(y_fit) if weight is None else weight.sum()
        lam = strength if self.view == "lambda" else 1.0 / (strength * total)
        if gamma is None:
            A, B = np.hstack([X_fit, np.ones((len(X_fit), 1))]), np.hstack([X_held, np.ones((len(X_held), 1))])
        else:  # the kernel as inner products of finitely many features
            values, vectors = np.linalg.eigh(rbf_kernel(X_fit, X_fit, gamma))
            kept = values > 1e-9
            A = vectors[:, kept] * np.sqrt(values[kept])
            B = rbf_kernel(X_held, X_fit, gamma) @ vectors[:, kept] / np.sqrt(values[kept])
        theta, objective = self.learner(A, y_fit, lam, weight)
        scores = B @ theta
        two = np.sort(scores, axis=1)[:, -2:]
        self.margin = min(self.margin, (two[:, 1] - two[:, 0]).min())
        wrong: float = 0
        for row, label in zip(scores, y_held, strict=True):
            best = int(np.argmax(row))
            wrong += (best != label) if self.costs is None else self.costs[best][label]
        return wrong, objective

    def search(self, rows: Any, number: int = 1) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """The values chosen on the training part of a split, and what every fit of the search gave."""
        X, y = self.X[rows], self.seen(rows, number)
        weight = None if self.weight is None else self.weight[rows]
        if self.standardise == "train":
            X = standardised(X, X)
        fits: list[dict[str, Any]] = []

        def judge(stage: int, round_: int, points: list[tuple[float, Any]]) -> dict[tuple[float, Any], list[tuple[float, int]]]:
            wrongs: dict[tuple[float, Any], list[tuple[float, int]]] = {point: [] for point in points}
            for fold, (fitted, held) in enumerate(self.held_out(len(rows), stage, number), start=1):
                X_fit, X_held = X[fitted], X[held]
                if self.standardise == "fold":
                    X_fit, X_held = standardised(X_fit, X_fit), standardised(X_fit, X_held)
                seed = None if weight is None else weight[fitted]
                for strength, gamma in points:
                    wrong, objective = self.errors(X_fit, y[fitted], seed, X_held, y[held], strength, gamma)
                    wrongs[strength, gamma].append((wrong, len(held)))
                    hyper = {self.view: strength} | ({} if gamma is None else {"gamma": gamma})
                    row = {"split": number, "stage": stage, "fold": fold, **hyper, "value": wrong / len(held), "objective": objective}
                    fits.append(row | {"n_train": len(fitted), "n_test": len(held), "round": round_})
            return wrongs

        def strong_first(points: Any) -> list[tuple[float, Any]]:
            # small C, large lambda; then wide kernels
            return sorted(points, key=lambda point: (point[0] * (-1 if self.view == "lambda" else 1), point[1] or 0))

        def choose(wrongs: dict[tuple[float, Any], list[tuple[float, int]]]) -> tuple[float, Any]:
            sums = {point: sum(wrong for wrong, _ in folds) for point, folds in wrongs.items()}
            least = min(sums.values())
            bound = least
            if self.standard_errors:
                deviations = []
                for point in [point for point in sums if sums[point] == least]:
                    rates = [wrong / held for wrong, held in wrongs[point]]
                    mean = sum(rates) / len(rates)
                    variance = sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1)
                    deviations.append((variance / len(rates)) ** 0.5 * sum(held for _, held in wrongs[point]))
                bound += self.standard_errors * max(deviations)
            return strong_first(point for point in sums if sums[point] <= bound)[0]

        strengths = sorted(self.stage1)
        wrongs = judge(1, 0, strong_first((strength, gamma) for strength in strengths for gamma in self.gammas))
        best = choose(wrongs)
        for round_ in range(1, 100):
            below, above = strengths[0] ** 2 / strengths[1], strengths[-1] ** 2 / strengths[-2]
            new = below if best[0] == strengths[0] else above if best[0] == strengths[-1] else None
            if self.limits is None or new is None or not self.limits[0] <= new <= self.limits[1]:
                break
            more = judge(1, round_, strong_first((new, gamma) for gamma in self.gammas))
            if min(sum(wrong for wrong, _ in folds) for folds in more.values()) >= min(
                sum(wrong for wrong, _ in folds) for folds in wrongs.values()
            ):
                break
            wrongs |= more
            strengths = sorted([*strengths, new])
            best = choose(wrongs)
        if self.stage2:
            best = choose(judge(2, 0, strong_first((factor * best[0], best[1]) for factor in self.stage2)))
        return {self.view: best[0]} | ({} if best[1] is None else {"gamma": best[1]}), fits

    def finals(self, hypers: list[dict[str, float]]) -> list[dict[str, Any]]:
        """What the fit of every split gave."""
        fits = []
        for number, (train, test) in enumerate(self.parts(), start=1):
            X_train, X_test = self.X[train], self.X[test]
            if self.standardise != "none":
                X_train, X_test = standardised(X_train, X_train), standardised(X_train, X_test)
            weight = None if self.weight is None else self.weight[train]
            labels, hyper = self.seen(train, number), hypers[number - 1]
            wrong, objective = self.errors(X_train, labels, weight, X_test, self.y[test], hyper[self.view], hyper.get("gamma"))
            moved = float(np.mean(labels != self.y[train]))
            fits.append({"split": number, "value": wrong / len(test), "objective": objective, "label_error": moved})
        return fits


def standardised(fitted: Any, rows: Any) -> Any:
    """Rows centred and divided by the standard deviation (n - 1) of the fitted rows, column by column."""
    columns = []
    for column in range(fitted.shape[1]):
        values = fitted[:, column].tolist()
        mean = sum(values) / len(values)
        deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
        columns.append([(value - mean) / deviation for value in rows[:, column].tolist()])
    return np.array(columns).T


def crammer_singer(A: Any, y: Any, lam: float, weight: Any) -> tuple[Any, float]:
    """LIBLINEAR's solver on rows that end in their constant; its C weighs the summed loss."""
    weight = np.ones(len(y)) if weight is None else weight
    model = LinearSVC(
        multi_class="crammer_singer", C=1.0 / (lam * weight.sum()), fit_intercept=False, tol=1e-9, max_iter=10_000_000, random_state=0
    )
    theta = np.zeros((A.shape[1], int(y.max()) + 1))
    theta[:, np.unique(y)] = model.fit(A, y, sample_weight=weight).coef_.T
    losses = [max(f[j] + (j != label) for j in range(len(f))) - f[label] for f, label in zip(A @ theta, y, strict=True)]
    return theta, float(lam / 2 * (theta**2).sum() + weight @ losses / weight.sum())


def program(name: str, **options: Any) -> Any:
    """The same for any surrogate, as a quadratic program for an interior-point solver."""

    def solve(A: Any, y: Any, lam: float, weight: Any) -> tuple[Any, float]:
        fits = reference.solve_problem(name, A, y, lam, 3, weight, **options)
        return fits["parameters"], fits["primal"]

    return solve


def costly(name: str) -> Any:
    """The same with the weights on the losses instead of the rows."""

    def solve(A: Any, y: Any, lam: float, weight: Any) -> tuple[Any, float]:
        fits = reference.solve_problem(name, A, y, lam * weight.sum() / len(y), 3, None, weight)
        return fits["parameters"], fits["primal"]

    return solve


# ---- the cells


IRIS, WINE = load_iris(return_X_y=True), load_wine(return_X_y=True)


def bundled(name: str, data: Any, sizes: tuple[int, int], learner: Any, **more: Any) -> tuple[dict[str, Any], Script]:
    return {"name": name, "source": "sklearn", "sizes": list(sizes)}, Script(name, *data, sizes, learner, **more)


def weighted_rows(n: int) -> Any:
    """Every third iris, two features, and weights that differ much."""
    rows = np.arange(0, 150, 150 // n)
    X = IRIS[0][rows]
    return X, IRIS[1][rows], np.random.default_rng(3).choice([0.25, 1.0, 2.0, 16.0], size=len(rows))


def table(folder: Path, learner: Any, **more: Any) -> tuple[dict[str, Any], Script]:
    X, y, weight = weighted_rows(75)
    pd.DataFrame({**dict(zip("abcd", X.T, strict=True)), "w": weight, "label": y}).to_csv(folder / "rows.csv", index=False)
    dataset = {"name": "own", "source": "csv", "path": str(folder / "rows.csv"), "target": "label", "weight": "w", "sizes": [50, 25]}
    return dataset, Script("own", X, y, (50, 25), learner, weight=weight, **more)


def author_splits(folder: Path) -> tuple[dict[str, Any], Script]:
    root = os.environ.get("ADVCLI_DATA")
    if root is None or (not (Path(root) / "glass.csv").exists() and not (Path(root) / "glass.csv.gz").exists()):
        pytest.skip("needs the data set glass with its splits in ADVCLI_DATA")
    dataset = {"name": "glass", "source": "folder", "target": "target"}
    data = load_data(dataset, Path(root), author_splits=True)
    assert data.splits is not None
    return dataset, Script("glass", data.X, data.y, (0, 0), crammer_singer, splits=data.splits[:2], stage1=[0.1, 1.0], folds=3, stage2=[])


CELLS: dict[str, Any] = {
    "two stages": lambda _: ("cs", *bundled("iris", IRIS, (105, 45), crammer_singer)),
    "standardised once, lambda": lambda _: (
        "zero_one",
        *bundled("wine", WINE, (70, 40), program("zero_one"), standardise="train", view="lambda", seed=5),
    ),
    "as it is": lambda _: ("zero_one", *bundled("iris", IRIS, (60, 60), program("zero_one"), standardise="none", folds=3)),
    "held out": lambda _: ("ww", *bundled("wine", WINE, (90, 60), program("ww"), holdout=0.3, seed=2)),
    "weights": lambda folder: ("cs", *table(folder, crammer_singer)),
    "weights on the losses": lambda folder: (
        {"name": "weighted", "base": "zero_one", "weight": "column"},
        *table(folder, costly("zero_one"), folds=3, stage2=[]),
    ),
    "noise": lambda _: ("zero_one", *bundled("iris", IRIS, (105, 45), program("zero_one"), noise=0.3, folds=3)),
    "the authors' splits": lambda folder: ("cs", *author_splits(folder)),
    "a kernel": lambda _: (
        "zero_one",
        *bundled("iris", IRIS, (60, 40), program("zero_one"), folds=3, gammas=[0.02, 0.5], stage2=[0.5, 2.0], n_splits=2, seed=1),
    ),
    "nested": lambda _: ("cs", *bundled("wine", WINE, (100, 60), crammer_singer, nested=True)),
    "nested, grown, near-ties": lambda _: (
        "cs",
        *bundled("wine", WINE, (110, 50), crammer_singer, nested=True, stage1=[0.25, 1.0, 4.0], limits=(2**-12, 2**6), standard_errors=0.5),
    ),
    "nested, noise, held out, lambda": lambda _: (
        "cs",
        *bundled(
            "iris",
            IRIS,
            (90, 60),
            crammer_singer,
            nested=True,
            noise=0.2,
            holdout=0.3,
            view="lambda",
            seed=4,
            stage1=[0.4, 0.08],
            limits=(0.01, 8),
        ),
    ),
    "grown with a kernel": lambda _: (
        "zero_one",
        *bundled(
            "iris",
            IRIS,
            (60, 40),
            program("zero_one"),
            folds=3,
            gammas=[0.02, 0.5],
            stage1=[4.0, 16.0],
            limits=(0.1, 300),
            stage2=[],
            n_splits=1,
            seed=1,
        ),
    ),
    "costs": lambda _: (
        {"name": "general", "matrix": COSTS},
        *bundled("iris", IRIS, (60, 60), program("general", matrix=COSTS), folds=3, stage1=[0.001, 0.01, 0.1], stage2=[], costs=COSTS),
    ),
}


def cell_of(script: Script, dataset: dict[str, Any], loss: Any, solver: Any = TIGHT) -> Cell:
    """The cell that should give the script's numbers."""
    protocol = {
        "name": "script",
        "n_splits": script.n_splits if script.splits is None else len(script.splits),
        "folds": script.folds,
        "holdout": script.holdout,
        "standardise": script.standardise,
        "splits": "random" if script.splits is None else "author",
        "regularisation": script.view,
        "stage1": {"regularisation": script.stage1} | ({} if script.gammas == [None] else {"gamma": script.gammas}),
        "stage2": {"regularisation": script.stage2} if script.stage2 else {},
        "metric": "error" if script.costs is None else "cost",
        "search": "every_split" if script.nested else "first_split",
        "extend": {} if script.limits is None else {"regularisation": list(script.limits)},
        "standard_errors": script.standard_errors,
    }
    return Cell(
        dataset=dataset,
        loss={"name": loss} if isinstance(loss, str) else loss,
        features={"name": "linear" if script.gammas == [None] else "rbf"},
        solver=solver,
        protocol=protocol,
        seed=script.seed,
        noise={"name": "pairwise", "rate": script.noise} if script.noise else None,
    )


def run(cell: Cell, path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of runs.csv (the protocol's metric) and of search.csv."""
    folder = ResultsFolder(path / "results")
    folder.prepare({})
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotConvergedWarning)
        outcome = run_cell(cell, folder, Path(os.environ.get("ADVCLI_DATA", "data")), strict=True)
    folder.merge()
    runs = folder.runs()
    return runs[runs["metric"] == outcome.metric].reset_index(drop=True), folder.search()


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_gives_the_numbers_of_the_script(name: str, tmp_path: Path) -> None:
    loss, dataset, script = CELLS[name](tmp_path)
    runs, search = run(cell_of(script, dataset, loss), tmp_path)
    parts = script.parts()
    searches = [script.search(train, number) for number, (train, _) in enumerate(parts if script.nested else parts[:1], start=1)]
    hypers = [hyper for hyper, _ in searches] * (1 if script.nested else len(parts))
    searched, hyper = [row for _, rows in searches for row in rows], hypers[0]
    finals = script.finals(hypers)
    assert script.margin > 1e-4, "a prediction that rounding decides: the counts below would mean nothing"
    whole = ["split", "stage", "fold", *hyper, "value", "n_train", "n_test"]
    assert search[whole].to_numpy().tolist() == [[row[column] for column in whole] for row in sorted(searched, key=_by_fit)]
    np.testing.assert_allclose(search["objective"], [row["objective"] for row in sorted(searched, key=_by_fit)], rtol=1e-7)
    assert runs[["split", "value"]].to_numpy().tolist() == [[row["split"], row["value"]] for row in finals]
    np.testing.assert_allclose(runs["objective"], [row["objective"] for row in finals], rtol=1e-7)
    for column in hyper:
        assert runs[column].tolist() == [each[column] for each in hypers]
    if script.nested:
        assert any(each != hyper for each in hypers), "every split chose alike: one search would have passed as well"
    assert any(row["round"] for row in searched) == (script.limits is not None)
    if script.noise:
        assert runs["label_error"].tolist() == [row["label_error"] for row in finals]
        assert runs["label_error"].nunique() > 1


def _by_fit(row: dict[str, Any]) -> tuple[Any, ...]:
    """The order of search.csv: within a round and a fold the paths, one for each gamma."""
    strength = row["C"] if "C" in row else -row["lambda"]
    return row["split"], row["stage"], row["round"], row["fold"], row.get("gamma", 0.0), strength


def test_every_fit_has_a_seed_of_its_own(tmp_path: Path) -> None:
    """At a loose tolerance the order of the rows shows in the objective, bit for bit: one seed for each split, stage and fold."""
    solver = {**TIGHT, "name": "dual", "tol": 0.05, "search_tol": 0.2}
    dataset, script = bundled("iris", IRIS, (105, 45), crammer_singer, stage1=[0.1, 10.0], stage2=[0.5], folds=3)
    runs, search = run(cell_of(script, dataset, "zero_one", solver), tmp_path)

    def fitted(rows: Any, C: float, tol: float, seed: int, start: Any = None) -> Any:
        X = script.X[rows]
        X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
        made = SurrogateClassifier("zero_one", C=C, tol=tol, solver="dual", n_classes=3, random_state=seed)
        return made.fit(X, script.y[rows], start=start)

    train, expected, others = script.parts()[0][0], [], []
    for stage in (1, 2):
        for fold, (rows, _) in enumerate(script.held_out(len(train), stage), start=1):
            before = None  # the path from strong to weak: every fit starts from the one before
            for C in search.loc[(search["stage"] == stage) & (search["fold"] == fold), "C"]:
                before = fitted(train[rows], C, 0.2, seed_of(0, "search", "iris", stage, fold), before)
                expected.append(before.certificate_.primal)
            others.append(fitted(train[rows], C, 0.2, seed_of(0, "search", "iris", 1, 1)).certificate_.primal)
    assert search["objective"].tolist() == expected
    assert others[1] != fitted(train[rows], C, 0.2, seed_of(0, "search", "iris", 1, 2)).certificate_.primal
    C = runs["C"][0]
    weights = [fitted(rows, C, 0.05, seed_of(0, "fit", "iris", number)) for number, (rows, _) in enumerate(script.parts(), start=1)]
    first = [fitted(rows, C, 0.05, seed_of(0, "fit", "iris", 1)) for rows, _ in script.parts()]
    assert runs["objective"].tolist() == [each.certificate_.primal for each in weights]
    for one, other in zip(weights[1:], first[1:], strict=True):
        assert one.certificate_.primal != other.certificate_.primal, "the seeds of these splits cannot be told apart"


def test_weights_multiply_the_clean_sample(tmp_path: Path) -> None:
    """Where a method learns from a small clean sample, its rows keep their weights and all others count nothing."""
    dataset, script = table(tmp_path, None, n_splits=6)
    protocol = {
        "name": "louche2015",
        "n_splits": 6,
        "standardise": "none",
        "rough_per_class": 2,
        "labelled_share": 0.5,
        "metric": "error",
        "stage1": {},
    }
    loss, features = {"name": "f_conf", "max_updates": 7}, {"name": "linear"}
    runs, _ = run(Cell(dataset, loss, features, TIGHT, protocol), tmp_path)
    expected, unweighted = [], []
    for number, (train, test) in enumerate(script.parts(), start=1):
        order = np.random.default_rng(seed_of(0, "clean sample", "own", number)).permutation(len(train))
        sample = train[np.sort(order[:25])]
        for weight, fits in ((script.weight[sample], expected), (None, unweighted)):
            model = learner_class("f_conf")(max_updates=7, n_classes=3)
            model.fit(script.X[sample], script.y[sample], sample_weight=weight)
            fits.append(int((model.predict_codes(script.X[test]) != script.y[test]).sum()))
    assert (runs["value"] * 25).round().astype(int).tolist() == expected
    assert expected != unweighted
    assert (runs["n_train"] == 25).all()


def test_the_key_of_a_cell_knows_the_weights(tmp_path: Path) -> None:
    dataset, script = table(tmp_path, None)
    cell = Cell(dataset, {"name": "cs"}, {"name": "linear"}, TIGHT, {})
    data = load_data(dataset, tmp_path)
    keys = {cell.key(data)}
    for weight in (None, np.ones(len(script.y)), script.weight[::-1].copy()):
        # whatever a source of somebody else's writes into the checksum of the content
        keys.add(cell.key(dataclasses.replace(data, example_weight=weight)))
    assert len(keys) == 4
    rows = pd.read_csv(dataset["path"])
    rows.assign(w=rows["w"][::-1].to_numpy()).to_csv(tmp_path / "other.csv", index=False)
    keys.add(cell.key(load_data({**dataset, "path": str(tmp_path / "other.csv")}, tmp_path)))
    assert len(keys) == 5


# ---- advcli fit


@pytest.mark.parametrize("standardise", ["fold", "train", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_model_is_the_scripts_search_and_fit_on_all_rows(weighted: bool, standardise: str, tmp_path: Path) -> None:
    dataset, script = table(tmp_path, crammer_singer, standardise=standardise, stage1=[0.001, 0.02, 0.4], folds=3)
    if not weighted:
        dataset, script.weight = {**dataset, "weight": None, "drop": ["w"]}, None
    model = fit_model(cell_of(script, dataset, "cs"), tmp_path)
    everything = np.arange(len(script.y))
    hyper, searched = script.search(everything)
    assert model.about["hyper"] == hyper
    errors = sum(row["value"] * row["n_test"] for row in searched if row["stage"] == 2 and row["C"] == hyper["C"])
    assert model.about["searched"] == pytest.approx(errors / len(script.y), abs=1e-12)
    X = script.X if standardise == "none" else standardised(script.X, script.X)
    weight = np.ones(len(script.y)) if script.weight is None else script.weight
    theta, objective = crammer_singer(np.hstack([X, np.ones((len(X), 1))]), script.y, 1.0 / (hyper["C"] * weight.sum()), weight)
    assert model.certificate is not None
    assert model.certificate.primal == pytest.approx(objective, rel=1e-7)
    scores = np.hstack([X, np.ones((len(X), 1))]) @ theta
    np.testing.assert_allclose(model.estimator.potentials(model.features(script.X)), scores, atol=1e-4)
    assert (model.standardiser is None) == (standardise == "none")
    assert model.predict(script.X).tolist() == scores.argmax(axis=1).tolist()
    # as a file it gives the same
    save_model(model, tmp_path / "m")
    assert read_model(tmp_path / "m").predict(script.X).tolist() == scores.argmax(axis=1).tolist()
