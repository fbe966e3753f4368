"""The picture of searches: the labels and calls of its table are those of the space and of the searches, and its files are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.outputs.chain import ChainSpace
from advcli.outputs.psi import make_psi
from advcli.outputs.sets import EnumeratedSets, pair_table
from advcli.pictures.base import write_picture
from advcli.pictures.search import plane_picture, searches_of

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
