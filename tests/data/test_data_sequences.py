"""Rows that form sequences: groups, attributes of tokens, bad input, splits and folds that keep them whole, fit and predict from files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli.core.errors import ConfigError, DataError
from advcli.core.groups import group_starts, rows_of
from advcli.data import load
from advcli.data.tables.encoding import attribute_columns, attribute_rows, token_attributes
from advcli.evaluation.splits import keeping_groups, make_folds, make_holdout, random_splits

ROWS = [("1", "Ann", "B-per"), ("1", "Lee", "I-per"), ("1", "ran", "O"), ("2", "IBM", "B-org"), ("2", "!", "O"), ("2", "42", "O")]
ROWS += [("3", "ann", "O"), ("4", "in", "O"), ("4", "Rome", "B-org"), ("5", "Ann", "B-per"), ("6", "a", "O"), ("6", "b", "I-per")]


def write(folder: Path, rows: list[tuple[str, ...]], heading: tuple[str, ...] = ("sentence", "token", "tag")) -> Path:
    path = folder / "words.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heading, *rows])
    return path


def options(path: Path, **more: Any) -> dict[str, Any]:
    dataset = {"name": "words", "source": "csv", "path": str(path), "target": "tag", "sequence": "sentence", "tokens": "token"}
    return {**dataset, "allow_small_classes": True, **more}


def test_a_sequence_column_becomes_groups_and_tokens_attributes(tmp_path: Path) -> None:
    data = load(options(write(tmp_path, ROWS)), tmp_path)
    assert data.groups is not None
    assert data.groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 5]
    assert data.X.shape == (12, len(data.feature_names))
    names = np.array(data.feature_names)
    row = {str(name) for name in names[data.X[[1]].toarray()[0] > 0]}
    assert row == {
        *("word=lee", "shape=Xx", "prefix=l", "prefix=le", "suffix=e", "suffix=ee", "title"),
        *("before=ann", "shape before=Xx", "after=ran", "shape after=x"),
    }
    assert "6 sequences of 2.0 rows, the longest of 3 [ADV104]" in data.notes
    assert data.sha256 != load(options(write(tmp_path, [("1", *row[1:]) for row in ROWS])), tmp_path).sha256


def test_attributes_end_where_a_sequence_does() -> None:
    tokens, groups = ["A", "b", "c"], np.array([0, 0, 1])
    attributes = [set(each) for each in token_attributes(tokens, groups)]
    assert "nothing before" in attributes[0]
    assert {"before=a", "nothing after"} <= attributes[1]
    assert {"nothing before", "nothing after"} <= attributes[2]
    columns = attribute_columns(tokens, groups, np.array([True, False, False]))
    assert set(columns) == attributes[0]
    X = attribute_rows(tokens, groups, {name: i for i, name in enumerate(columns)})
    assert X.toarray()[1].sum() == len(attributes[0] & attributes[1])


def test_numbers_and_attributes_stand_side_by_side(tmp_path: Path) -> None:
    rows = [(*row, str(i)) for i, row in enumerate(ROWS)]
    data = load(options(write(tmp_path, rows, ("sentence", "token", "tag", "size"))), tmp_path)
    assert data.X[:, [data.feature_names.index("size")]].toarray().ravel().tolist() == list(range(12))
    plain = load(options(tmp_path / "words.csv", tokens=None, features=["size"]), tmp_path)
    assert plain.X.shape == (12, 1)
    assert plain.groups is not None


def test_bad_sequences_are_refused_by_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sequence '1' of column 'sentence' goes on in row 13 \(line 14\) after another has begun"):
        load(options(write(tmp_path, [*ROWS, ("1", "x", "O")])), tmp_path)
    with pytest.raises(DataError, match=r"column 'sentence' names no sequence in row 13 \(line 14\)"):
        load(options(write(tmp_path, [*ROWS, ("", "x", "O")])), tmp_path)
    path = write(tmp_path, ROWS)
    with pytest.raises(DataError, match=r"has no column 'sentnce', which dataset.sequence names; did you mean sentence"):
        load(options(path, sequence="sentnce"), tmp_path)
    with pytest.raises(DataError, match=r"has no column 'word', which dataset.tokens names"):
        load(options(path, tokens="word"), tmp_path)
    with pytest.raises(ConfigError, match=r"dataset\.features names 'sentence', which is the target, the sequence"):
        load(options(path, features=["sentence", "token"]), tmp_path)
    with pytest.raises(ConfigError, match=r"dataset\.sequence needs named columns"):
        load(options(path, format="svmlight"), tmp_path)


@pytest.mark.parametrize("seed", range(20))
def test_splits_and_folds_keep_sequences_whole(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(12), random.integers(1, 6, size=12))
    n = len(groups)
    for splits in (
        keeping_groups(groups, n, lambda units: random_splits(units, 3, 0.7, seed, "a")),
        keeping_groups(groups, n, lambda units: make_folds(units, 4, seed, "a", 1)),
        keeping_groups(groups, n, lambda units: [make_holdout(units, 0.25, seed, "a")]),
    ):
        for one, other in splits:
            assert np.array_equal(np.sort(np.concatenate([one, other])), np.arange(n))
            assert not set(groups[one]) & set(groups[other])
            for part in (one, other):
                group_starts(groups[part], len(part))  # refuses a sequence that is cut
                assert all((np.diff(part[groups[part] == group]) == 1).all() for group in set(groups[part]))
    alone = keeping_groups(None, n, lambda units: random_splits(units, 3, 0.7, seed, "a"))
    assert all(
        np.array_equal(a, b)
        for one, other in zip(alone, random_splits(n, 3, 0.7, seed, "a"), strict=True)
        for a, b in zip(one, other, strict=True)
    )


def test_rows_of_groups_are_theirs_in_the_order_asked_for() -> None:
    start = np.array([0, 2, 3, 7])
    assert rows_of(start, np.array([2, 0])).tolist() == [3, 4, 5, 6, 0, 1]
    assert rows_of(start, np.array([], dtype=np.intp)).tolist() == []


def test_a_model_of_sequences_is_fitted_saved_and_predicts_a_new_file(tmp_path: Path) -> None:
    from advcli.config.protocol import Protocol
    from advcli.evaluation import Cell
    from advcli.models import fit, predict_file, save
    from advcli.models import read as read_model

    path = write(tmp_path, ROWS * 1)
    protocol = {"name": "p", "standardise": "none"}
    assert Protocol.from_mapping(protocol).standardise == "none"
    solver = {"name": "auto", "tol": 1e-4}
    cell = Cell(options(path), {"name": "chain"}, {"name": "linear"}, solver, protocol, {"C": 10.0})
    save(fit(cell, tmp_path), tmp_path / "model")
    model = read_model(tmp_path / "model")
    assert model.encoding is not None
    assert model.encoding.sequence == "sentence"
    new = tmp_path / "new.csv"
    new.write_text("token,sentence\nAnn,x\nLee,x\nunheard,y\n")
    # no sequence is cut, however few rows are read at a time
    done = predict_file(model, new, tmp_path / "out.csv", rows=1)
    assert done.rows == 3
    assert pd.read_csv(tmp_path / "out.csv")["label"].tolist()[:2] == ["B-per", "I-per"]
    (tmp_path / "bad.csv").write_text("token,sentence\nAnn,x\nLee,y\nran,x\n")
    with pytest.raises(DataError, match="sequence 'x' of column 'sentence' goes on in row 3"):
        predict_file(model, tmp_path / "bad.csv", tmp_path / "out.csv")
    (tmp_path / "other.csv").write_text("token\nAnn\n")
    with pytest.raises(DataError, match="missing: sentence"):
        predict_file(model, tmp_path / "other.csv", tmp_path / "out.csv")


@pytest.mark.data("wnut17_ner")
def test_the_shared_tasks_parts_are_the_official_ones(shared: Path) -> None:
    data = load({"name": "wnut17_ner", "source": "sequences", "allow_small_classes": True}, shared)
    assert data.official is not None
    train, test = data.official
    assert (len(train), len(test)) == (62730, 23394)
    assert data.groups is not None
    assert (len(np.unique(data.groups[train])), len(np.unique(data.groups[test]))) == (3394, 1287)
    assert len(data.classes) == 13
