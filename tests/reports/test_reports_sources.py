"""Several results folders in one table: each cell once, tests only where splits agree, differences said."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from advcli.core.errors import ConfigError
from advcli.reports import comparison_table, summarise, write_reports
from advcli.reports.choice import Choice
from advcli.reports.drawing import svg_only
from advcli.reports.sources import Sources

BEST, WORSE = [1, 2, 3, 2, 1, 2, 3, 1], [9, 8, 9, 9, 8, 9, 8, 9]


@pytest.fixture
def first(planted, tmp_path):
    return planted.folder(tmp_path / "a", planted.rows("iris", "ww linear", BEST), planted.rows("wine", "ww linear", WORSE))


def test_methods_of_two_folders_are_tested_on_their_common_splits(planted, tmp_path, first):
    second = planted.folder(tmp_path / "b", planted.rows("iris", "cs linear", WORSE[:6]))
    summary = summarise(Sources([first, second]).runs).set_index(["dataset", "method"])
    assert summary.loc[("iris", "ww linear"), "best"]
    assert not summary.loc[("iris", "cs linear"), "bold"]
    assert summary.loc[("iris", "cs linear"), "n_splits"] == 6
    before = {path: path.read_bytes() for place in (first, second) for path in place.path.rglob("*.csv")}
    with svg_only():
        shown = write_reports([first, second], full=True, out=tmp_path / "both")
    assert {path: path.read_bytes() for path in before} == before
    assert (tmp_path / "both" / "report.html").exists()
    assert shown.attrs["remarks"] == []


@pytest.mark.parametrize("seed", [1])
def test_nothing_is_tested_where_splits_differ(planted, tmp_path, first, seed):
    other = planted.folder(tmp_path / "b", planted.rows("iris", "cs linear", WORSE, seed=seed), planted.rows("era", "cs linear", WORSE))
    with svg_only():
        shown = write_reports([first, other], full=True, out=tmp_path / "both", choice=Choice(names={"iris": "Iris"}))
    on = shown[shown["dataset"] == "Iris"]
    assert on["mean"].notna().all()
    assert not on["best"].any()
    assert not on["bold"].any()
    assert on["p_value"].isna().all()
    assert shown.loc[shown["dataset"] == "era", "best"].all()
    said = "splits differ on Iris, so that nothing is tested there; report.methods=[...] chooses methods with the same splits"
    assert said in comparison_table(shown)
    assert said in (tmp_path / "both" / "table.md").read_text()
    assert said in (tmp_path / "both" / "report.html").read_text()
    assert said in (tmp_path / "both" / "report.md").read_text()


def test_other_content_under_one_name_is_not_tested(planted, tmp_path, first):
    other = planted.folder(tmp_path / "b", planted.rows("iris", "cs linear", WORSE), about={"dataset_sha256": "another"})
    assert summarise(Sources([first, other]).runs).attrs["unpaired"] == ["iris"]


def shares(planted, loss, share, **more):
    """Return rows of a method whose training part is a share of the data, and what its cell says of it."""
    rows = planted.rows("iris", f"{loss} linear", BEST, n_test=150 - int(150 * share), cell=f"{loss}-{share}", **more)
    protocol = {"splits": "random", "train_size": share, "n_splits": 8, "metrics": [loss]}
    return rows, {"cell": {"dataset": {"name": "iris", "description": loss}, "seed": 0, "protocol": protocol, "solver": {"tol": share}}}


def test_columns_are_named_by_what_tells_them_apart(planted, tmp_path):
    folder = planted.folder(tmp_path / "a")
    for loss in ("ww", "cs"):
        for share in (0.2, 0.5):
            rows, about = shares(planted, loss, share)
            folder.write_cell(rows[0]["cell"], rows, about=about)
    runs = Sources([folder]).runs
    summary = summarise(runs)
    wanted = {f"{loss} linear [protocol.train_size={share}, solver.tol={share}]" for loss in ("ww", "cs") for share in (0.2, 0.5)}
    assert set(summary["method"]) == wanted
    assert summary.attrs["unpaired"] == ["iris"]
    assert not summary["bold"].any()
    alike = [name for name in wanted if "size=0.2" in name]
    shown = write_reports(folder, choice=Choice(methods=alike))
    assert shown.attrs["unpaired"] == []
    assert shown["best"].all()


def test_other_data_under_one_configuration_are_named(planted, tmp_path):
    folder = planted.folder(tmp_path / "a")
    for at, content in enumerate(("first one", "second one")):
        rows, about = shares(planted, "ww", 0.5)
        for row in rows:
            row["cell"] = f"cell{at}"
        folder.write_cell(f"cell{at}", rows, about=about | {"dataset_sha256": content})
    summary = summarise(Sources([folder]).runs)
    assert set(summary["method"]) == {"ww linear [data=first on]", "ww linear [data=second o]"}
    assert summary.attrs["unpaired"] == ["iris"]


def test_a_cell_of_two_folders_stands_once(planted, tmp_path, first):
    again = planted.folder(
        tmp_path / "b", planted.rows("iris", "ww linear", BEST, fit_seconds=7.0), planted.rows("iris", "cs linear", WORSE)
    )
    both = Sources([first, again])
    assert both.remarks == ["1 cell stands in both a and b; the rows of a are shown"]
    pd.testing.assert_frame_equal(both.runs[both.runs["results"] == "a"][list(first.runs().columns)], first.runs())
    assert both.runs["cell"].nunique() == 3
    other = planted.folder(tmp_path / "c", planted.rows("iris", "ww linear", WORSE))
    assert Sources([first, other]).remarks == ["1 cell stands in both a and c; their rows differ, and those of a are shown"]


def test_one_method_of_two_configurations_goes_by_its_folder(planted, tmp_path, first):
    identity = {"protocol": {"train_size": 0.5}}
    other = planted.folder(tmp_path / "b", planted.rows("iris", "ww linear", WORSE, cell="other"))
    for folder in (first, other):
        wanted = identity if folder is other else {"protocol": {"train_size": 0.7}}
        (folder.path / "identity.json").write_text(json.dumps(wanted))
        for file in folder.cells_path.glob("*.json"):  # of folders that have rows alone nothing else can be known
            file.unlink()
    both = Sources([first, other])
    assert both.remarks == ["b was made by another configuration than a: protocol.train_size: 0.7 -> 0.5"]
    assert set(summarise(both.runs)["method"]) == {"ww linear [results=a]", "ww linear [results=b]"}


def test_a_failure_gives_way_to_what_succeeded_elsewhere(planted, tmp_path, first):
    other = planted.folder(
        tmp_path / "b", planted.rows("iris", "ww linear", [None] * 8, cell="request"), planted.rows("iris", "cs linear", BEST)
    )
    summary = summarise(Sources([first, other]).runs)
    assert set(summary["method"]) == {"ww linear", "cs linear"}
    assert not summary["failed"].any()


def test_metrics_that_no_other_folder_has_are_said(planted, tmp_path, first):
    other = planted.folder(tmp_path / "b", planted.rows("iris", "cs linear", BEST, metrics=("accuracy",)))
    assert Sources([first, other]).remarks == ["no metric is in all of these folders: a has error; b has accuracy"]


def test_folders_of_one_name_are_told_apart(planted, tmp_path):
    folders = [
        planted.folder(tmp_path / place / "x", planted.rows("iris", f"{loss} linear", BEST)) for place, loss in (("a", "ww"), ("b", "cs"))
    ]
    assert list(Sources(folders).folders) == ["a/x", "b/x"]


def test_several_folders_need_a_place(planted, first, tmp_path):
    with pytest.raises(ConfigError, match="need out=FOLDER"):
        write_reports([first, planted.folder(tmp_path / "b", planted.rows("iris", "cs linear", BEST))], full=True)
