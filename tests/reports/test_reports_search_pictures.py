"""The picture of searches: the labels and calls of its table are those of the space and of the searches, and its files are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.learners.structured.spaces.chain import ChainSpace
from advcli.learners.structured.spaces.label_sets import EnumeratedSets, pair_table
from advcli.learners.structured.spaces.psi import make_psi
from advcli.reports.pictures.base import write_picture
from advcli.reports.pictures.search import plane_picture, searches_of
from advcli.reports.pictures.searches import published

pytest.importorskip("matplotlib", reason="drawing is optional: matplotlib is not installed")


def sets(seed: int) -> EnumeratedSets:
    """Return all sets of six labels at random scores."""
    random = np.random.default_rng(seed)
    return EnumeratedSets(random.normal(0.0, 1.0, 6), pair_table(random.normal(0.0, 0.5, 15), 6), int(random.integers(64)))


def test_the_table_has_every_label_and_every_call(tmp_path: Path) -> None:
    space, psi = sets(0), make_psi("slack")
    found = searches_of(space, psi)
    assert list(found) == ["hull", "angular", "bisecting", "binary"]
    paths = write_picture(plane_picture("search_sets", space, psi, found), tmp_path)
    assert [path.name for path in paths] == ["search_sets.csv", "search_sets.svg", "search_sets.png"]
    table = pd.read_csv(paths[0])
    labels, calls = table[table["kind"] == "label"], table[table["kind"] == "call"]
    assert len(labels) == 64
    np.testing.assert_allclose(labels["psi"], (labels["h"] + 1.0) * labels["g"], atol=1e-8)
    assert calls.groupby("search").size().to_dict() == {name: each.calls for name, each in found.items()}
    best = calls.groupby("search")["psi"].max()
    for name, each in found.items():
        assert best[name] == pytest.approx(each.value)
    # a call of `lam` proves that no label lies beyond its line
    for call in calls[(calls["oracle"] == "lam") & np.isfinite(calls["l"])].itertuples():
        assert (labels["h"] + call.l * labels["g"]).max() <= call.h + call.l * call.g + 1e-8


def test_other_surrogates_and_spaces_have_the_searches_they_allow() -> None:
    random = np.random.default_rng(1)
    chain = ChainSpace(random.normal(0.0, 1.0, (5, 3)), random.normal(0.0, 1.0, (3, 3)), random.integers(0, 3, 5))
    assert list(searches_of(chain, make_psi("slack"))) == ["hull", "bisecting", "binary"]
    assert list(searches_of(chain, make_psi("log"))) == ["hull", "exact"]
    assert list(searches_of(sets(2), make_psi("slack"), "angular")) == ["angular"]
    found = searches_of(chain, make_psi("log"))
    table = plane_picture("search_chain", chain, make_psi("log"), found).table
    assert table.loc[table["kind"] == "label", "g"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_labels_without_a_structure_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "figure=search", "dataset=iris", "loss=zero_one"]) == 2
    assert "figure=search needs labels with a structure; loss=zero_one has none: choose loss=sets" in capsys.readouterr().err


@pytest.fixture
def label_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Rows with sets of four labels in a file, and the words that learn them by slack rescaling."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(3)
    X = random.normal(size=(30, 3))
    Y = (X @ random.normal(size=(3, 4)) + 0.5 * random.normal(size=(30, 4)) > 0.0).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    table = pd.DataFrame(np.hstack([X, Y]), columns=["a", "b", "c", "label_w", "label_x", "label_y", "label_z"])
    table.astype({name: int for name in table.columns if name.startswith("label")}).to_csv("sets.csv", index=False)
    return ["dataset=csv", "dataset.path=sets.csv", "dataset.target=label_*", "dataset.name=four", "loss=sets", "loss.surrogate=slack"]


def test_a_row_of_a_fit_is_searched_and_the_files_are_the_same_again(label_sets: list[str]) -> None:
    kept = []
    for _ in range(2):
        assert main(["report", "figure=search", *label_sets, "hyper.C=0.1", "loss.search=angular"]) == 0
        kept.append({path.name: path.read_bytes() for path in Path("results").iterdir()})
    assert kept[0] == kept[1]
    table = pd.read_csv("results/search_four_sets_slack.csv")
    assert (table["kind"] == "label").sum() == 16
    assert set(table["search"].dropna()) == {"angular"}


def test_searches_are_compared_along_a_training(label_sets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "figure=searches", *label_sets, "hyper.C=0.5", "draw.rows=6"]) == 0
    assert "all sets, here hull" in capsys.readouterr().out
    table = pd.read_csv("results/searches_four_6.csv").set_index(["source", "search"])
    assert (table.loc[("all sets, here", "angular"), ["not_best"]] == 0.0).all()
    assert ("relaxation, here", "sarawagi") not in table.index
    assert (table["calls"] >= 1.0).all()
    assert main(["report", "figure=searches", *label_sets[:-1], "loss.surrogate=margin"]) == 2
    assert "figure=searches needs slack rescaling of sets; loss=sets loss.surrogate=margin is another" in capsys.readouterr().err


def test_published_numbers_are_read_in_the_units_of_the_columns() -> None:
    found = published("yeast")
    assert found["4.1", "sarawagi", "calls"] == 43.2
    assert found["5.1", "hull", "calls"] == 3.1
    assert found["5.1", "hull", "not_best"] == pytest.approx(7.0)
    assert published("emotions") == {}
