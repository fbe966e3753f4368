"""The plug-in benchmarks/searches: all searches along one training, their pictures, and the presets that name it.

The training ends where no label is violated; tables have the labels and calls of the searches; files are written again alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.module_files import module_of
from support.thesis_searches import FOLDER
from support.thesis_searches import pictures as searches

from advcli.cli import main
from advcli.core import plugins
from advcli.core.errors import ConfigError
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.best_sets import LabelSets
from advcli.learners.structured.label_sets import PairWeights
from advcli.learners.structured.spaces.dependency_trees import TreeSpace
from advcli.learners.structured.spaces.enumerated_sets import EnumeratedSets, pair_table
from advcli.learners.structured.spaces.hierarchical_sets import HierarchicalSets
from advcli.learners.structured.spaces.psi import make_psi
from advcli.reports.pictures import write_picture

search = module_of(FOLDER / "picture" / "search.py", "searches_picture_search")

PLUGIN = f"plugins={FOLDER}"
EDGES = [("r", "a"), ("r", "b"), ("r", "c")]


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the folders that a command adds away again."""
    monkeypatch.setenv(plugins.FOLDERS, "")


def structure(relaxed: bool, n: int = 8, m: int = 4) -> Any:
    """Return rows whose labels depend on their features and on each other."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 3))
    Y = (X @ random.normal(size=(3, m)) + 0.5 * random.normal(size=(n, m)) > 0.0).astype(np.int8)
    return searches.SearchedSetsWithAngles(X, Y, np.full(n, 1.0 / n), make_psi("slack"), PairWeights(m, "one"), relaxed=relaxed)


def by_round(trials: list[Any], name: str) -> list[list[Any]]:
    """Return the trials of one search, round by round."""
    return [[each for each in trials if each.round == turn and each.search == name] for turn in range(trials[-1].round + 1)]


@pytest.mark.parametrize("relaxed", [False, True])
def test_the_training_ends_where_the_leading_search_finds_no_violation(relaxed: bool) -> None:
    epsilon, names = 0.2, ["angular", "hull", *([] if relaxed else ["levels", "sarawagi"])]
    trials = searches.try_searches(structure(relaxed), 0.1, epsilon, names)
    rounds = by_round(trials, "angular")
    assert len(rounds) > 3
    assert all(any(each.value > each.slack + epsilon for each in some) for some in rounds[:-1])
    assert all(each.value <= each.slack + epsilon for each in rounds[-1])
    assert {each.search for each in trials} == set(names)
    assert len(trials) == len(rounds) * 8 * len(names)
    # at w = 0 the largest loss is the worst, whatever the label
    assert all(each.value == pytest.approx(4.0) for each in rounds[0])
    whole = by_round(trials, "hull" if relaxed else "levels")
    for some, best in zip(rounds, whole, strict=True):
        for each, other in zip(some, best, strict=True):
            assert other.value >= each.value * (1.0 - 1e-6)
            assert each.value >= searches.RATIO * other.value - 1e-6
            # the planes that are stored lie below the surrogate
            assert other.slack <= other.upper + 1e-9


def test_the_leading_search_must_be_among_them() -> None:
    with pytest.raises(ConfigError, match="must have angular among them"):
        searches.try_searches(structure(False), 0.1, 0.2, ["hull"])


def sets(seed: int) -> EnumeratedSets:
    """Return all sets of six labels at random scores."""
    random = np.random.default_rng(seed)
    return EnumeratedSets(random.normal(0.0, 1.0, 6), pair_table(random.normal(0.0, 0.5, 15), 6), int(random.integers(64)))


def test_the_table_has_every_label_and_every_call(tmp_path: Path) -> None:
    space, psi = sets(0), make_psi("slack")
    found = search.results_of(space, psi)
    assert list(found) == ["hull", "angular", "bisecting", "binary"]
    paths = write_picture(search.plane_picture("search_sets", space, psi, found), tmp_path)
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
    tree = TreeSpace(random.normal(size=(6, 6)), (2, 0, 2, 5, 3))
    assert list(search.results_of(tree, make_psi("slack"))) == ["hull", "bisecting", "binary"]
    assert list(search.results_of(tree, make_psi("log"))) == ["hull", "exact"]
    assert list(search.results_of(sets(2), make_psi("slack"), "angular")) == ["angular"]
    leaves = HierarchicalSets(LabelSets(LabelGraph.from_edges(EDGES)), random.normal(size=4), [1, 1, 0, 0])
    found = search.results_of(leaves, make_psi("log"))
    table = search.plane_picture("search_leaves", leaves, make_psi("log"), found).table
    assert table.loc[table["kind"] == "label", "g"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_labels_without_a_structure_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", PLUGIN, "figure=search", "dataset=iris", "loss=zero_one"]) == 2
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
        assert main(["report", PLUGIN, "figure=search", *label_sets, "hyper.C=0.1", "loss.search=angular"]) == 0
        kept.append({path.name: path.read_bytes() for path in Path("results").iterdir()})
    assert kept[0] == kept[1]
    table = pd.read_csv("results/search_four_sets_slack.csv")
    assert (table["kind"] == "label").sum() == 16
    assert set(table["search"].dropna()) == {"angular"}


def test_searches_are_compared_along_a_training(label_sets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", PLUGIN, "figure=searches", *label_sets, "hyper.C=0.5", "draw.rows=6"]) == 0
    assert "all sets, here hull" in capsys.readouterr().out
    table = pd.read_csv("results/searches_four_6.csv").set_index(["source", "search"])
    assert (table.loc[("all sets, here", "angular"), ["not_best"]] == 0.0).all()
    assert ("relaxation, here", "sarawagi") not in table.index
    assert (table["calls"] >= 1.0).all()
    assert main(["report", PLUGIN, "figure=searches", *label_sets[:-1], "loss.surrogate=margin"]) == 2
    assert "figure=searches needs slack rescaling of sets; loss=sets loss.surrogate=margin is another" in capsys.readouterr().err


def test_published_numbers_are_read_in_the_units_of_the_columns() -> None:
    found = searches.published("yeast")
    assert found["4.1", "sarawagi", "calls"] == 43.2
    assert found["5.1", "hull", "calls"] == 3.1
    assert found["5.1", "hull", "not_best"] == pytest.approx(7.0)
    assert searches.published("emotions") == {}


# ---- the key plugins ------------------------------------------------------------------------------------------------
def test_a_preset_names_the_plug_in_of_the_checkout(
    label_sets: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*label_sets[:-2], "loss=sets", "protocol.splits=random"]
    assert main(["report", "+experiment=choi2018_table5_1", *words, "draw.rows=4"]) == 0
    assert Path("results/searches_four_4.csv").is_file()
    # from a wheel, whose options lie in the package, there is no such folder
    monkeypatch.setattr(plugins, "conf_dir", lambda: Path("site-packages/advcli/conf"))
    assert main(["report", "+experiment=choi2018_table5_1", *words]) == 2
    assert "plugins=benchmarks/searches: there is no such folder" in capsys.readouterr().err


def test_a_fit_takes_a_search_of_the_plug_in(label_sets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [*label_sets, "hyper.C=0.1", "loss.search=bisecting", "protocol.n_splits=2", "name=fit"]
    assert main([*words, PLUGIN]) == 0
    assert pd.read_csv("results/fit/runs.csv")["split"].nunique() == 2
