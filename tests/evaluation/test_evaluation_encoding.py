"""Nothing is learned from test rows: gaps are filled and categories encoded by the rows that a fit sees, in splits and in folds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from support.composed import choice

from advcli.evaluation import Cell
from advcli.evaluation.recipe import Recipe
from advcli.evaluation.selection import HyperSearch

WAYS = ("mean", "median", "most_frequent", "indicator")
PROTOCOL: dict[str, Any] = {
    "n_splits": 3,
    "folds": 3,
    "stage1": {"regularisation": [0.1, 10.0]},
    "stage2": {},
    "standardise": "none",
}


def frame(seed: int, gaps: float, n: int = 60) -> pd.DataFrame:
    """Numbers, a few categories and many, with gaps in all of them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": np.round(rng.normal(size=n), 2),
            "count": rng.integers(0, 5, n).astype(float),
            "colour": rng.choice(["red", "green", "blue"], n, p=[0.7, 0.25, 0.05]),
            "town": rng.choice([f"t{i}" for i in range(25)], n, p=np.arange(1, 26) / 325),
            "whole": np.arange(n) % 7,
        }
    ).astype({"colour": object, "town": object})
    for name in ("size", "count", "colour", "town"):
        table.loc[rng.random(n) < gaps, name] = np.nan
    return table.assign(label=np.array(["x", "y", "z"])[np.arange(n) % 3])


def recipe(folder: Path, table: pd.DataFrame, missing: str, loss: dict[str, Any] | None = None, **protocol: Any) -> Recipe:
    table.to_csv(folder / "mine.csv", index=False)
    dataset = {
        "name": "mine",
        "source": "csv",
        "path": str(folder / "mine.csv"),
        "target": "label",
        "missing": missing,
        "categorical": ["colour", "town"],
        "max_categories": 6,
    }
    return Recipe(
        Cell(dataset, loss or {"name": "zero_one"}, {"name": "linear"}, {"name": "auto", "tol": 1e-4}, {**PROTOCOL, **protocol}), folder
    )


def pipeline(missing: str) -> ColumnTransformer:
    """The same by scikit-learn: a transformer for each column of the raw table."""
    numbers = SimpleImputer(strategy="mean" if missing == "indicator" else missing, add_indicator=missing == "indicator")
    if missing == "refuse":
        numbers = "passthrough"
    # ~ comes after all letters, as the category of no value comes last
    text = SimpleImputer(strategy="constant", fill_value="~") if missing == "indicator" else SimpleImputer(strategy="most_frequent")
    hot = OneHotEncoder(max_categories=6, handle_unknown="infrequent_if_exist", sparse_output=False)
    return ColumnTransformer(
        [(name, make_pipeline(text, hot) if name in ("colour", "town") else numbers, [name]) for name in frame(0, 0).columns[:-1]],
        sparse_threshold=0.0,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", ["refuse", *WAYS])
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_every_split_and_fold_is_the_pipeline_of_its_training_rows(tmp_path: Path, missing: str, seed: int) -> None:
    table = frame(seed, 0.0 if missing == "refuse" else 0.15)
    made = recipe(tmp_path, table, missing)
    for number, (train, test) in enumerate(made.splits()[0], start=1):
        peer = pipeline(missing).fit(table.iloc[train])
        fitted = made.fit(made.part(train), {"C": 1.0}, number)
        np.testing.assert_array_equal(fitted.rows(made.part(train).X), peer.transform(table.iloc[train]))
        np.testing.assert_array_equal(fitted.rows(made.part(test).X), peer.transform(table.iloc[test]))
        part = made.part(train)
        part = type(part)(part.X, np.arange(len(train)), encoding=part.encoding)  # the labels are numbers of rows
        for fit, held in HyperSearch(None, None, made.protocol, None, 0, "mine")._folds(part, 1):
            peer = pipeline(missing).fit(table.iloc[train[fit.y]])
            np.testing.assert_array_equal(fit.X, peer.transform(table.iloc[train[fit.y]]))
            np.testing.assert_array_equal(held.X, peer.transform(table.iloc[train[held.y]]))


@pytest.mark.parametrize("missing", WAYS)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_rows_of_results_are_those_of_the_pipeline(tmp_path: Path, missing: str) -> None:
    table = frame(5, 0.15)
    table["size"] += np.arange(60) % 3  # something to learn
    made = recipe(tmp_path, table, missing, choice("loss", "logistic") | {"options": {"max_iter": 1000, "C": 1.0}})
    for number, (train, test) in enumerate(made.splits()[0], start=1):
        score = made.score(made.fit(made.part(train), {}, number), made.part(train), made.part(test))[1]["error"]
        peer = make_pipeline(pipeline(missing), LogisticRegression(max_iter=1000)).fit(table.iloc[train, :-1], table["label"].iloc[train])
        assert score == np.mean(peer.predict(table.iloc[test, :-1]) != table["label"].iloc[test])


def disturbed(table: pd.DataFrame, rows: Any, seed: int) -> pd.DataFrame:
    """Other values in these rows: far numbers, gaps, categories that nobody has, text that sorts between the others."""
    rng = np.random.default_rng(seed)
    table = table.copy()
    table.loc[rows, "size"] = rng.normal(size=len(rows)) * 1e4
    table.loc[rows, "count"] = np.where(rng.random(len(rows)) < 0.5, np.nan, 1e6)
    table.loc[rows, "colour"] = rng.choice(["green", "amber", "12", np.nan, "zebra"], len(rows))
    table.loc[rows, "town"] = rng.choice(["t2", "t15a", "0", "unknown"], len(rows))
    return table


@pytest.mark.parametrize("standardise", ["fold", "train", "none"])
@pytest.mark.parametrize("missing", ["mean", "most_frequent", "indicator"])
def test_other_test_rows_change_nothing_that_is_learned(tmp_path: Path, missing: str, standardise: str) -> None:
    table = frame(2, 0.1)
    before = recipe(tmp_path, table, missing, standardise=standardise)
    train, test = before.splits()[0][0]
    after = recipe(tmp_path, disturbed(table, test, 3), missing, standardise=standardise)
    scores = []
    for made in (before, after):
        part = made.part(train)
        chosen = made.search(part)
        fitted = made.fit(part, chosen.hyper, 1)
        searched = [{key: value for key, value in row.items() if key != "seconds"} for row in chosen.rows]
        scores.append((searched, fitted.encoding.feature_names, fitted.rows(part.X), fitted.learner.theta_))
        assert not np.array_equal(made.dataset.X.sum(axis=0), fitted.rows(part.X).sum(axis=0))
    assert scores[0][:2] == scores[1][:2]
    for one, other in zip(scores[0][2:], scores[1][2:], strict=True):
        np.testing.assert_array_equal(one, other)
