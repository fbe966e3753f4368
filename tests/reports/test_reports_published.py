import csv
import math
import os
from pathlib import Path

import pandas as pd
import pytest
from support.quick_pages import DRAWN

from advcli.cli import main
from advcli.core.errors import ConfigError
from advcli.reports import summarise
from advcli.reports.published_numbers import FOLDER, compare_with_published, load_published, published_keys, z_score


def compared(planted, tmp_path, cells, key, **more):
    runs = planted.folder(tmp_path / "results", *cells).runs()
    return compare_with_published(summarise(runs), runs, key, **more)


def test_every_key_loads_and_every_line_of_the_mapping_is_used():
    columns = pd.read_csv(FOLDER / "columns.csv")
    for key in published_keys():
        facts = load_published(key)
        assert len(facts)
        assert (facts["dataset"] != "ALL").all()
        assert facts["mean"].notna().all()
    for file, lines in columns.groupby("file"):
        facts = load_published(str(file))
        found = set(zip(facts["method"], facts["feature_map"], strict=True))
        assert found == set(zip(lines["method"], lines["feature_map"], strict=True))
        assert not facts.duplicated(["dataset", "metric", "loss", "features"]).any()


def test_files_hold_the_printed_numbers():
    facts = load_published("fathony2018_table2_linear").set_index(["dataset", "loss"])
    assert set(facts["feature_map"]) == {"linear"}
    assert len(facts) == 48
    assert facts.loc[("glass", "zero_one"), "printed"] == "62.5 (6.0)"
    ordinal = load_published("fathony2018_table4").set_index(["dataset", "loss", "features"])
    assert ordinal.loc[("diabetes", "absolute", "threshold"), "printed"] == "0.696 (0.13)"
    confused = load_published("louche2015_table1").set_index(["dataset", "loss", "features"])["printed"]
    assert len(confused) == 18
    without_pca = [("optdigits", "s3vm", "rbf"), ("letter", "s3vm", "rbf"), ("reuters_r8", "s3vm", "raw")]
    assert [confused[key] for key in without_pca] == ["0.07", "0.18", "0.22"]
    abstaining = load_published("fathony2018_table6_linear").set_index(["dataset", "loss", "metric"])["printed"]
    rates = [abstaining["iris", loss, "abstain_rate"] for loss in ("abstain", "abstain_ova", "abstain_cs")]
    assert rates == ["7", "13", "6"]


def test_table_2_of_2016_is_whole():
    facts = load_published("fathony2016_table2").set_index(["dataset", "loss", "features"])["printed"]
    assert len(facts) == 96
    assert facts["breasttissue", "ww", "linear"] == "59.7 (7.8)"
    assert facts["libras", "cs", "rbf"] == "85.0 (3.9)"
    with (FOLDER / "fathony2016_table2.csv").open(newline="") as handle:
        rows = [row for row in csv.DictReader(handle) if row["metric"] == "n_bold"]
    assert [int(row["mean"]) for row in rows] == [9, 6, 8, 0, 9, 6, 6, 7]
    # the printed averages are those of cells before they were rounded to one digit
    with (FOLDER / "fathony2016_table2.csv").open(newline="") as handle:
        averages = {
            (row["method"], row["feature_map"]): float(row["mean"]) for row in csv.DictReader(handle) if row["metric"] == "accuracy_average"
        }
    cells = load_published("fathony2016_table2").groupby(["method", "feature_map"])["mean"].mean()
    for key, printed in averages.items():
        assert cells[key] == pytest.approx(printed, abs=0.055)


def test_a_preset_of_2016_marks_by_its_own_test_beside_the_printed_numbers(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DRAWN)
    small = ["dataset=iris", "features=linear", "loss=zero_one,llw", "protocol.n_splits=3", "hyper.C=1", "workers=1"]
    assert main(["+experiment=fathony2016_table2", *small]) == 0
    assert main(["report", "results=results/fathony2016_table2"]) == 0
    folder = Path("results/fathony2016_table2")
    assert "paired t-test, two-sided, on these splits, alpha = 0.05, not corrected" in (folder / "table.md").read_text()
    beside = pd.read_csv(folder / "published.csv").set_index("method")
    assert beside["printed"].to_dict() == {"zero_one linear": "96.3 (3.1)", "llw linear": "79.7 (5.5)"}


@pytest.mark.skipif(not os.environ.get("ADVCLI_DATA"), reason="the authors' splits are in the folder ADVCLI_DATA")
def test_the_preset_of_diabetes_has_the_authors_splits_beside_the_printed_numbers(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(DRAWN)
    assert main(["+experiment=fathony2018_table4_diabetes", "hyper.lambda=0.5", "workers=1"]) == 0
    said = capfd.readouterr().err
    assert "absolute threshold: mae 0.696 (0.133)" in said
    assert "the authors' 20 splits" in said
    assert main(["report", "results=results/fathony2018_table4_diabetes"]) == 0
    beside = pd.read_csv("results/fathony2018_table4_diabetes/published.csv").set_index("method")
    assert beside["printed"].to_dict() == {"absolute threshold": "0.696 (0.13)", "absolute linear": "0.692 (0.14)"}
    assert beside["z"].abs().max() < 0.5


def test_files_are_plain_tables_of_facts():
    for file in FOLDER.glob("fathony*.csv"):
        with file.open(newline="") as handle:
            rows = list(csv.DictReader(handle))
        assert {row["paper"] for row in rows} == {file.name.partition("_")[0]}
        assert len({row["table"] for row in rows}) == 1


def test_z_score():
    assert z_score(62.0, 3.0, 20, 60.0, 4.0, 20) == pytest.approx(2 / math.sqrt(25 / 20))
    assert z_score(1.0, 0.0, 20, 1.0, 0.0, 20) == 0.0
    assert z_score(1.0, 0.0, 20, 2.0, 0.0, 20) == -math.inf
    assert math.isnan(z_score(1.0, math.nan, 1, 2.0, 0.1, 20))


def test_units_and_far_cells(planted, tmp_path):
    near, far = [2, 1] * 10, [9, 10] * 10  # iris: 96.67 % is near the printed 96.3 (3.1), 78.9 % is not
    cells = [planted.rows("iris", "zero_one linear", near), planted.rows("iris", "ww linear", far), planted.rows("moon", "ww linear", far)]
    frame = compared(planted, tmp_path, cells, "fathony2018_table2_linear", notes={"iris": "a note"})
    lines = frame.set_index("method")
    good = lines.loc["zero_one linear"]
    assert good["mean"] == pytest.approx(100 * (1 - 1.5 / 45))
    assert good["difference"] == pytest.approx(good["mean"] - 96.3)
    assert good["z"] == pytest.approx(good["difference"] / math.sqrt((good["std"] ** 2 + 3.1**2) / 20))
    assert not good["far"]
    assert lines.loc["ww linear", "far"]
    assert lines.loc["ww linear", "z"] < -3
    assert good["note"] == "a note"
    assert frame.attrs["without_published"] == [("moon", "ww linear")]
    assert frame.attrs["without_ours"] == 46


def test_accuracy_rows_give_the_same_as_error_rows(planted, tmp_path):
    error = compared(planted, tmp_path / "1", [planted.rows("iris", "cs linear", [1, 2, 3])], "fathony2018_table2")
    both = compared(planted, tmp_path / "2", [planted.rows("iris", "cs linear", [1, 2, 3], metrics=("accuracy",))], "fathony2018_table2")
    assert both["z"].tolist() == pytest.approx(error["z"].tolist())


def test_other_features_are_not_compared(planted, tmp_path):
    frame = compared(planted, tmp_path, [planted.rows("iris", "cs linear", [1, 2])], "fathony2018_table2_gaussian")
    assert frame.empty


def test_failed_cells_are_not_compared(planted, tmp_path):
    frame = compared(planted, tmp_path, [planted.rows("iris", "cs linear", [None])], "fathony2018_table2_linear")
    assert frame.empty
    assert frame.attrs["without_ours"] == 48


def test_unknown_key_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean fathony2018_table2_linear"):
        load_published("fathony2018_table2_liner")


def test_presets_name_existing_keys():
    yaml = pytest.importorskip("yaml")
    folder = Path(__file__).resolve().parents[2] / "conf" / "experiment"
    presets = {file.stem: yaml.safe_load(file.read_text()) for file in folder.glob("*.yaml")}
    named = {name: preset["published"] for name, preset in presets.items() if "published" in preset}
    assert {name: key for name, key in named.items() if key not in published_keys()} == {}
