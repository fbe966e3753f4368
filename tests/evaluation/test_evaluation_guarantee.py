"""What `runs.csv` says of the guarantee of a fit, beside linear programs: the game value and the expected losses under it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_iris, load_wine
from support import reference

from advcli.evaluation import Cell, run_cell
from advcli.evaluation.recipe import Recipe
from advcli.losses import AdversarialLoss, examples_of, loss_class, loss_names
from advcli.results.folder import ResultsFolder

ADVERSARIAL = [name for name in loss_names() if issubclass(loss_class(name), AdversarialLoss) and loss_class(name).name == name]
"""Every adversarial loss of the registry, by its own name."""

MATRICES = {"general": [[0, 1, 8], [2, 0, 3], [1, 5, 0], [2, 2, 2]], "convex": [[0, 1, 4], [1, 0, 1], [4, 1, 0]]}


def options(name: str) -> dict[str, Any]:
    specific = {"abstain": {"alpha": 0.4}, "pinball": {"quantile": 0.3}} | {matrix: {"matrix": MATRICES[matrix]} for matrix in MATRICES}
    return {"name": name, **specific.get(name, examples_of(loss_class(name), 3)[0])}


def rows_of(dataset: dict[str, Any], loss: dict[str, Any], folder: Path, **more: Any) -> pd.DataFrame:
    solver = {"name": "auto", "tol": more.pop("tol", 1e-3), "max_passes": 10_000}
    cell = Cell(dataset, loss, {"name": "linear"}, solver, {"n_splits": 2, "stage1": {}}, **{"hyper": {"C": 0.2}, **more})
    results = ResultsFolder(folder / "results")
    results.prepare({})
    run_cell(cell, results, folder, strict=True)
    results.merge()
    return results.runs()


@pytest.mark.parametrize("loss", ADVERSARIAL)
@pytest.mark.parametrize("data", ["iris", "wine"])
@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_the_seen_labels_cost_at_most_the_game_value(data: str, loss: str, C: float, tmp_path: Path) -> None:
    """They are one of the label distributions that the guarantee covers: a loose fit, a tight one, any regularisation."""
    for tol in (0.5, 1e-4):
        rows = rows_of({"name": data, "source": "sklearn", "ordered": True}, options(loss), tmp_path / str(tol), hyper={"C": C}, tol=tol)
        assert (rows["train_expected_loss"] <= rows["game_value"] + 1e-12).all()
        assert (rows["train_expected_loss"] >= -1e-12).all()
        # and the value itself lies between the objective and twice it
        assert (rows["objective"] <= rows["game_value"]).all()


def split_rows(name: str, number: int, n: int, train: int, test: int) -> tuple[Any, Any]:
    """Training and test rows of a random split (see test_evaluation_real_cells.py)."""
    text = f'[0,"split","{name}",{number}]'
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % 2**31
    order = np.random.default_rng(seed).permutation(n)
    return order[:train], order[train : train + test]


def costs_of_the_best(matrix: Any, f: Any, label: int) -> tuple[float, float, float]:
    """The value of the game at scores f and the least and largest cost, at a label, of the mixed predictions that are optimal in it."""
    value, _, _ = reference.game_lp(matrix, f)
    l = len(matrix)
    rows = []
    for sign in (1.0, -1.0):
        program = linprog(
            sign * matrix[:, label], A_ub=matrix.T, b_ub=value - f + 1e-9, A_eq=np.ones((1, l)), b_eq=[1.0], bounds=[(0, None)] * l
        )
        assert program.status == 0, program.message
        rows.append(sign * program.fun)
    return value, rows[0], rows[1]


@pytest.mark.parametrize(
    ("loss", "weighted"), [("zero_one", False), ("zero_one", True), ("absolute", False), ("abstain", False), ("general", False)]
)
def test_the_columns_are_those_of_linear_programs(loss: str, weighted: bool, tmp_path: Path) -> None:
    """theta from a quadratic program; one linear program per row for the game; sums in plain loops."""
    X, y = load_wine(return_X_y=True)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 4.0], size=len(y)) if weighted else np.ones(len(y))
    pd.DataFrame(X).assign(w=weight, label=y).to_csv(tmp_path / "wine.csv", index=False)
    data = {"name": "wine", "source": "csv", "path": str(tmp_path / "wine.csv"), "target": "label", "ordered": True, "sizes": [30, 20]}
    data |= {"weight": "w"} if weighted else {"drop": ["w"]}
    dataset = {key: value for key, value in options(loss).items() if key != "name"}
    matrix = reference.loss_matrix(loss, 3, **dataset)
    runs = rows_of(data, options(loss), tmp_path, tol=1e-10)
    for number, row in enumerate(runs.drop_duplicates("split").to_dict("records")):
        train, test = split_rows("wine", number, len(y), 30, 20)
        mean, deviation = X[train].mean(axis=0), X[train].std(axis=0, ddof=1)
        lam, surrogate = 1.0 / (weight[train].sum() * 0.2), 0.0
        A = {name: np.c_[(X[rows] - mean) / deviation, np.ones(len(rows))] for name, rows in (("train", train), ("test", test))}
        theta = reference.solve_problem(loss, A["train"], y[train], lam, 3, weight[train], **dataset)["parameters"]
        for name, rows in (("train", train), ("test", test)):
            least = most = 0.0
            for x, label, share in zip(A[name], y[rows], weight[rows] / weight[rows].sum(), strict=True):
                f = x @ theta
                value, low, high = costs_of_the_best(matrix, f, label)
                least, most = least + share * low, most + share * high
                surrogate += share * (value - f[label]) if name == "train" else 0.0
            assert least - 1e-5 <= row[f"{name}_expected_loss"] <= most + 1e-5
            assert most - least < 1e-6 or loss != "zero_one", "there the best mixed prediction is one"
        square = float((theta**2).sum())
        assert row["objective"] == pytest.approx(surrogate + lam / 2 * square, rel=1e-7)
        assert row["game_value"] == pytest.approx(surrogate + lam * square, rel=1e-5)
        assert abs(row["train_expected_loss"] - row["test_expected_loss"]) > 1e-3


@pytest.mark.parametrize("weights", ["on rows", "on classes", "on losses"])
@pytest.mark.parametrize("small", [False, True])
def test_weights_stand_on_both_sides_of_the_guarantee(weights: str, small: bool, tmp_path: Path) -> None:
    """What is bounded is the mean of s_i w_i p(f_i / w_i)'L: rows count as the objective counts them."""
    X, y = load_iris(return_X_y=True)
    random = np.random.default_rng(0)
    # weights that favour rows which the fit gets wrong on average: half of them carry another class's label
    labels = np.where(random.random(150) < 0.3, (y + 1) % 3, y)
    weight = np.where(labels == y, 0.1, 2.0) if small else random.choice([0.2, 1.0, 5.0], size=150)
    pd.DataFrame(X, columns=list("abcd")).assign(w=weight, label=labels).to_csv(tmp_path / "rows.csv", index=False)
    dataset = {"name": "own", "source": "csv", "path": str(tmp_path / "rows.csv"), "target": "label"}
    loss: dict[str, Any] = {"name": "zero_one"}
    if weights == "on classes":
        dataset |= {"drop": ["w"]}
        loss = {"name": "weighted", "base": "zero_one", "weight": [0.05, 0.1, 0.02] if small else [1.0, 5.0, 0.2]}
    else:
        dataset |= {"weight": "w"}
        loss = loss if weights == "on rows" else {"name": "weighted", "base": "zero_one", "weight": "column"}
    for C in (1e-4, 0.01, 1.0):
        rows = rows_of(dataset, loss, tmp_path / str(C), hyper={"C": C}, tol=1e-8)
        assert (rows["train_expected_loss"] <= rows["game_value"] + 1e-12).all()


def test_the_guarantee_is_of_the_labels_that_were_learned_from(tmp_path: Path) -> None:
    """Where labels are noisy, not of the true ones, which cost another sum."""
    solver = {"name": "auto", "tol": 1e-6, "max_passes": 10_000}
    noise = {"name": "uniform", "rate": 0.3}
    dataset = {"name": "iris", "source": "sklearn"}
    cell = Cell(dataset, {"name": "zero_one"}, {"name": "linear"}, solver, {"n_splits": 1, "stage1": {}}, {"C": 0.2}, noise=noise)
    recipe = Recipe(cell, tmp_path)
    ((train_rows, test_rows),) = recipe.splits()[0]
    train, test = recipe.part(train_rows), recipe.part(test_rows)
    fitted = recipe.fit(train, {"C": 0.2}, 1)
    columns, _, _ = recipe.score(fitted, train, test)
    costs = fitted.learner.expected_loss(fitted.rows(train.X))  # type: ignore[attr-defined]
    seen, true = (float(costs[np.arange(len(labels)), labels].mean()) for labels in (fitted.codes, train.y))
    assert columns["train_expected_loss"] == pytest.approx(seen, rel=1e-12)
    assert abs(seen - true) > 0.01
