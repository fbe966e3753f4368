"""What cells keep for figures: confusion counts, and fits to shares of the training rows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advcli.core.errors import ConfigError
from advcli.evaluation import sweep
from advcli.evaluation.learning import ConfusionCounts, _shares
from advcli.reports import write_reports
from advcli.reports.drawing import svg_only
from advcli.results.folder import ResultsFolder

WORDS = "dataset=iris hyper.C=1 protocol.n_splits=2"


def about(path: Path) -> dict[str, Any]:
    folder = ResultsFolder(path)
    (key,) = folder.finished_keys()
    cell = folder.read_cell(key)
    assert cell is not None
    facts: dict[str, Any] = cell["about"]
    return facts


@given(st.integers(1, 5), st.data())
def test_counts_are_those_of_the_pairs(classes: int, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, classes - 1), st.integers(0, classes + 2)), max_size=30))
    counts = ConfusionCounts(tuple("abcdefgh"[:classes]))
    for part in (pairs[::2], pairs[1::2]):
        if part:
            y, predicted = map(np.array, zip(*part, strict=True))
            counts.add(y, predicted)
    for row in range(classes):
        for column in range(classes):
            assert counts.counts[row, column] == pairs.count((row, column))
        assert counts.counts[row, classes] == sum(y == row and code >= classes for y, code in pairs)


@pytest.mark.parametrize("loss", ["zero_one", "abstain"])
def test_the_file_of_a_cell_has_its_confusion(loss: str, tmp_path: Path) -> None:
    runs = sweep(f"{WORDS} loss={loss}", tmp_path / "x", workers=1, quiet=True)
    facts = about(tmp_path / "x")["confusion"]
    counts = np.array(facts["counts"])
    assert facts["labels"] == ["setosa", "versicolor", "virginica"]
    assert counts.sum() == runs.drop_duplicates("split")["n_test"].sum()
    wrong = runs[runs["metric"] == "error"]
    assert counts.sum() - np.trace(counts) == round(float((wrong["value"] * wrong["n_test"]).sum()))
    assert (counts[:, -1].sum() > 0) == (loss == "abstain")


@given(st.integers(0, 10**6), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4))
def test_a_share_of_the_rows_is_that_share_of_every_class(seed: int, sizes: list[int], shares: list[float]) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    recipe = SimpleNamespace(
        protocol=SimpleNamespace(learning_curve=shares),
        cell=SimpleNamespace(seed=seed),
        dataset=SimpleNamespace(name="d", multilabel=False),
    )
    train = SimpleNamespace(X=np.zeros((len(y), 1)), y=y, groups=None)
    before: set[int] = set()
    for share, rows in _shares(recipe, 1, train):  # type: ignore[arg-type]
        # every class has its first row in the smallest share, and a row more wherever the share passes a multiple of 1/m
        wanted = [sum(place / size < share for place in range(size)) for size in sizes]
        assert np.bincount(y[rows], minlength=len(sizes)).tolist() == wanted
        assert before <= set(rows.tolist())
        before = set(rows.tolist())


@pytest.mark.usefixtures("drawn_figures")
def test_a_learning_curve_changes_no_row_and_stands_in_the_report(tmp_path: Path) -> None:
    plain = sweep(WORDS, tmp_path / "plain", workers=1, quiet=True)
    runs = sweep(f"{WORDS} protocol.learning_curve=[0.5,0.1]", tmp_path / "curve", workers=1, quiet=True)
    same = [column for column in runs if column not in ("cell", "fit_seconds", "predict_seconds")]
    assert runs[same].equals(plain[same])
    points = about(tmp_path / "curve")["learning"]
    assert [(point["split"], point["share"]) for point in points] == [(1, 0.1), (1, 0.5), (2, 0.1), (2, 0.5)]
    for point in points:
        assert abs(point["n_train"] - point["share"] * 105) < 3
        assert point["relative_gap"] <= 1e-3
        assert set(point["values"]) == {"error", "accuracy"}
    summary = write_reports(ResultsFolder(tmp_path / "curve"), full=True)
    assert {"learning.csv", "plots/learning-accuracy-iris.png", "plots/confusion-iris.svg"} <= set(summary.attrs["files"])
    with svg_only():
        files = write_reports(ResultsFolder(tmp_path / "plain"), full=True).attrs["files"]
    assert "plots/learning-accuracy-iris.svg" not in files
    assert "learning" not in about(tmp_path / "plain")


@pytest.mark.parametrize("share", ["0", "1", "1.5", "x"])
def test_a_share_is_between_0_and_1(share: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"learning_curve"):
        sweep(f"{WORDS} protocol.learning_curve=[{share}]", tmp_path / "x", workers=1)
    assert not (tmp_path / "x").exists()
