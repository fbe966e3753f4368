"""Tables of very many columns: the work grows as their number does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.counting import Calls

from advcli.data import load
from advcli.data.tables.encoding import Column, Encoding
from advcli.data.tables.options import TableOptions
from advcli.data.tables.suspects import Inspection
from advcli.data.tables.table import Table, frame_table, read_table
from advcli.data.tables.tabular import feature_columns, learn_encoding

OPTIONS = TableOptions(target="label")


class Name(str):
    """A column's name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def names(d: int) -> list[str]:
    return [Name(f"x{i}") for i in range(d)]


def table(d: int) -> Table:
    frame = pd.DataFrame(np.arange(3.0 * d).reshape(3, d), columns=[*map(str, names(d))]).assign(label=["a", "b", "a"])
    return Table("wide", frame, OPTIONS)


def every_step(d: int) -> None:
    """Do what reading and predicting do with the names of d columns."""
    features = names(d)
    whole = table(d)
    chosen = TableOptions.read({"target": "label", "features": features, "drop": features[:1]})
    columns = feature_columns(replace(whole, options=chosen))
    learn_encoding(Inspection(whole, [Name(name) for name in columns]), [])
    encoding = Encoding(tuple(Column(name) for name in features), tuple(Name(f"other {i}") for i in range(d)))
    encoding.check_columns(Path("wide"), [*names(d), *(Name(f"other {i}") for i in range(d))])
    targets = pd.DataFrame(np.eye(2, d, dtype=int), columns=[f"label_{i}" for i in range(d)])
    targets.columns = [Name(name) for name in targets.columns]
    frame_table(targets, "wide", TableOptions(target="label_*"))


def test_names_are_looked_up_and_not_searched_for() -> None:
    spent = []
    for d in (100, 200, 400):
        before = Name.compared
        every_step(d)
        spent.append(Name.compared - before)
    assert spent[2] < 3 * spent[1] < 9 * max(spent[0], 100)


def test_calls_do_not_grow_with_the_columns(tmp_path: Path) -> None:
    """Columns of numbers are checked, converted and put side by side all at once."""
    spent = []
    for d in (50, 50, 400):  # the first imports
        path = tmp_path / f"{d}.csv"
        table(d).frame.to_csv(path, index=False)
        with Calls() as calls:
            data = load({"name": "mine", "source": "csv", "path": str(path), "target": "label"}, tmp_path)
        spent.append(calls.count)
        np.testing.assert_array_equal(data.X, np.arange(3.0 * d).reshape(3, d))
    assert spent[2] - spent[1] < 11 * 350  # some 8 for every column; 15 and more where each is taken by itself


@pytest.mark.slow
def test_a_hundred_thousand_columns(tmp_path: Path) -> None:
    table(100_000).frame.to_csv(tmp_path / "wide.csv", index=False)
    data = load({"name": "mine", "source": "csv", "path": str(tmp_path / "wide.csv"), "target": "label"}, tmp_path)
    assert data.X.shape == (3, 100_000)
    assert read_table(tmp_path / "wide.csv", OPTIONS).frame.shape == (3, 100_001)
