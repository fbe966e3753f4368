"""``protocol.splits``: a person's table with patients and days of visits, split by every rule, and splits that are written and read."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import advcli
from advcli.cli import main
from advcli.data import load
from advcli.evaluation import Cell
from advcli.results.split_table import COLUMNS, read_splits
from advcli.results.tables import TIMING_COLUMNS

DATA = ["dataset=csv", "dataset.path=visits.csv", "dataset.target=state", "dataset.name=visits"]
ROLES = ["dataset.group=patient", "dataset.time=visit"]
QUICK = ["protocol.n_splits=3", "protocol.folds=3", "quiet=true", "workers=1", "hydra/launcher=basic", "report=false"]
SEARCH = ["protocol.stage1.regularisation=[0.125,1,8]", "protocol.stage2=null"]
GROUPED = [*DATA, *ROLES, "protocol.splits=grouped", *QUICK]


@pytest.fixture(autouse=True)
def here(elsewhere: None) -> None:
    rng = np.random.default_rng(0)
    patient, day = rng.integers(0, 12, 90), rng.integers(0, 40, 90)
    center = rng.normal(size=(12, 3))
    X = center[patient] + rng.normal(scale=0.5, size=(90, 3))
    table = pd.DataFrame(X.round(3), columns=list("abc"))
    table["patient"] = [f"P{number}" for number in patient]
    table["visit"] = (pd.Timestamp("2024-01-01") + pd.to_timedelta(day, unit="D")).strftime("%Y-%m-%d")
    table["state"] = np.array(["ill", "well"])[(X.sum(axis=1) + rng.normal(size=90) > 0).astype(int)]
    table.to_csv("visits.csv", index=False)


def rows_of(name: str) -> pd.DataFrame:
    runs = pd.read_csv(f"results/{name}/runs.csv", dtype=str, keep_default_na=False)
    return runs.drop(columns=[*{*TIMING_COLUMNS} & {*runs}, "options", "cell", "proof"])


def table_of(name: str, file: str = "splits.csv") -> pd.DataFrame:
    return pd.read_csv(f"results/{name}/{file}", dtype=str)


def given_splits(name: str) -> list:
    table = table_of(name)
    return read_splits(Path(f"results/{name}/splits.csv"), "visits", str(table["sha256"][0]), 90)


@pytest.mark.parametrize("rule", ["random", "stratified", "grouped", "forward"])
def test_a_run_with_the_table_of_another_has_its_rows_bit_for_bit(rule: str) -> None:
    common = [*DATA, *ROLES, *QUICK, *SEARCH, "record.splits=true"]
    assert main([*common, f"protocol.splits={rule}", "name=first"]) == 0
    assert main([*common, "protocol.splits=results/first/splits.csv", "name=second"]) == 0
    assert Path("results/first/splits.csv").read_bytes() == Path("results/second/splits.csv").read_bytes()
    pd.testing.assert_frame_equal(rows_of("first"), rows_of("second"))
    assert list(table_of("first")) == list(COLUMNS)
    searches = [table_of(name, "search.csv").drop(columns=["cell", "seconds"]) for name in ("first", "second")]
    pd.testing.assert_frame_equal(*searches)


def test_groups_stay_whole_and_times_in_order_in_the_table_that_a_run_writes() -> None:
    visits = pd.read_csv("visits.csv")
    patient, visit = visits["patient"].to_numpy(), visits["visit"].to_numpy()
    for rule in ("grouped", "forward"):
        words = [*DATA, *ROLES, *QUICK, *SEARCH, f"protocol.splits={rule}", "record.splits=true", f"name={rule}"]
        assert main(words) == 0
        splits = given_splits(rule)
        assert len(splits) == 3
        for split in splits:
            pairs = [(split.train, split.test), *itertools.chain(*split.folds.values())]
            assert len(pairs) == (7 if rule == "grouped" else 4)  # three folds, of two stages where they differ
            for fit, held in pairs:
                if rule == "grouped":
                    assert not set(patient[fit]) & set(patient[held])
                else:
                    assert max(visit[fit]) < min(visit[held])
    assert set(rows_of("forward")["parts"]) == {"growing"}
    assert "parts" not in rows_of("grouped")


def test_columns_of_groups_and_times_are_no_features_and_keys_without_them_are_what_they_were() -> None:
    options = {"name": "visits", "source": "csv", "path": "visits.csv", "target": "state"}
    dataset = load({**options, "group": "patient", "time": "visit"}, Path())
    assert dataset.feature_names == ("a", "b", "c")
    assert dataset.group.max() == 11
    assert dataset.time.dtype == np.int64
    plain, none = ({**options, "drop": ["patient", "visit"], **more} for more in ({}, {"group": None, "time": None}))
    cells = [Cell(one, {"name": "cs"}, {"name": "linear"}, {"tol": 1e-3, "search_tol": 1e-2}, {}) for one in (plain, none)]
    assert cells[0].request_key() == cells[1].request_key()
    assert load(plain, Path()).sha256 == dataset.sha256
    assert cells[0].as_mapping() == cells[1].as_mapping()


def test_what_a_rule_reads_is_a_part_of_the_key() -> None:
    words = [*DATA, *ROLES, *QUICK, "hyper.C=1"]
    assert main([*words, "protocol.splits=grouped", "name=a"]) == 0
    visits = pd.read_csv("visits.csv")
    visits["patient"] = visits["patient"].to_numpy()[::-1]
    visits.to_csv("visits.csv", index=False)
    assert main([*words, "protocol.splits=grouped", "name=b"]) == 0
    keys = [set(table_of(name, "runs.csv")["cell"]) for name in ("a", "b")]
    assert not keys[0] & keys[1]


def test_more_splits_are_added_where_the_first_ones_stay(capfd: pytest.CaptureFixture[str]) -> None:
    for rule in ("grouped", "stratified"):
        words = [*DATA, *ROLES, *QUICK, "hyper.C=1", f"protocol.splits={rule}", f"name={rule}"]
        assert main(words) == 0
        few = rows_of(rule)
        assert main([*words, "protocol.n_splits=5"]) == 0
        pd.testing.assert_frame_equal(rows_of(rule)[: len(few)], few)
    words = [*DATA, *ROLES, *QUICK, "hyper.C=1", "protocol.splits=forward", "name=f"]
    assert main(words) == 0
    capfd.readouterr()
    assert main([*words, "protocol.n_splits=5"]) == 2
    assert "made by another config (protocol.n_splits: 3 -> 5); choose another name=" in capfd.readouterr().err


def test_every_gap_is_proved_again_by_the_splits_that_the_checker_draws(capfd: pytest.CaptureFixture[str]) -> None:
    words = [*DATA, *ROLES, *QUICK, "hyper.C=1", "record.proofs=true", "record.splits=true"]
    rules = ["grouped", "stratified", "forward", "results/stratified/splits.csv"]
    for rule in rules:
        name = "file" if rule.endswith(".csv") else rule
        assert main([*words, f"protocol.splits={rule}", f"name={name}"]) == 0
        capfd.readouterr()
        assert main(["verify", f"results=results/{name}"]) == 0
        assert "3 proved" in capfd.readouterr().out


def test_the_report_says_where_the_corrected_test_does_not_apply(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", *DATA, *ROLES, *QUICK, "hyper.C=1", "loss=zero_one,cs"]
    assert main([*words, "protocol.splits=forward", "name=f"]) == 0
    assert main([*words, "protocol.splits=grouped", "name=g"]) == 0
    out = capfd.readouterr().out
    forward, grouped = out.split("over 3 splits")[1:]
    assert "the corrected t-test does not apply to visits, whose training parts grow from split to split" in forward
    assert "corrected resampled" not in forward
    assert "Wilcoxon signed-rank test" in forward
    assert "corrected resampled t-test" in grouped
    assert "Wilcoxon" not in grouped


def test_a_splitter_of_scikit_learn_splits_and_folds() -> None:
    from sklearn.model_selection import GroupKFold, TimeSeriesSplit

    visits, few = pd.read_csv("visits.csv"), {"workers": 1, "protocol__folds": 3, "protocol__stage2": None}
    frame = visits.drop(columns="visit")
    found = advcli.compare(frame, "state", ["cs"], cv=GroupKFold(4), groups="patient", folder="results/k", **few)
    assert found.rows["split"].nunique() == 4
    (sha,) = set(pd.read_csv("results/k.splits.csv")["sha256"])
    patient = visits["patient"].to_numpy()
    splits = read_splits(Path("results/k.splits.csv"), "k", sha, 90)
    theirs = [*GroupKFold(4).split(frame, groups=patient)]
    for split, (train, test) in zip(splits, theirs, strict=True):
        assert np.array_equal(split.train, train)
        assert np.array_equal(split.test, test)
        inner = [*GroupKFold(3).split(train, groups=patient[train])]
        assert len(split.folds[1]) == len(inner) == 3
        for mine, (fit, held) in zip(split.folds[1], inner, strict=True):
            assert np.array_equal(mine[0], train[fit])
            assert np.array_equal(mine[1], train[held])
    values = advcli.compare(frame, "state", ["cs"], cv=GroupKFold(4), groups=patient, folder="results/v", hyper__C=1, workers=1)
    assert values.rows["split"].nunique() == 4
    with pytest.raises(advcli.errors.ConfigError, match=r"'groups' parameter should not be None.*groups= names the column"):
        advcli.compare(frame, "state", ["cs"], cv=GroupKFold(4), workers=1, dataset__drop=["patient"])
    times = advcli.compare(
        visits, "state", ["cs", "ww"], cv=TimeSeriesSplit(3), dataset__time="visit", hyper__C=1, workers=1, dataset__drop=["patient"]
    )
    assert set(times.rows["parts"]) == {"growing"}
    assert "Wilcoxon" in times.table
    assert {path.name for path in Path("results").glob("compared-*")} == {
        f"{times.folder.name}{end}" for end in ("", ".csv", ".splits.csv")
    }


BAD = [
    (["protocol.splits=group"], "did you mean grouped"),
    (["protocol.splits=grouped"], "needs a column of groups"),
    (["protocol.splits=forward"], "needs a column of times"),
    (["protocol.splits=official"], "visits has no official training and test rows"),
    (["protocol.splits=grouped", "dataset.group=person"], "has no column 'person', which dataset.group names"),
    (["protocol.splits=grouped", "dataset.group=state"], "dataset.group names 'state', a column of labels"),
    (["protocol.splits=forward", "dataset.time=patient"], "which is no time; write numbers or dates such as 2024-05-31"),
    (["protocol.splits=grouped", "dataset.group=patient", "protocol.folds=10"], "has 8 groups, too few for 10 folds"),
    (["protocol.splits=forward", "dataset.time=visit", "protocol.n_splits=25"], "rows have one time, which stay together"),
    (["protocol.splits=missing.csv"], "missing.csv: No such file"),
    (["protocol.splits=visits.csv"], "is no table of splits: it lacks the column dataset"),
]


@pytest.mark.parametrize(("words", "line"), BAD, ids=range(len(BAD)))
def test_bad_splits_are_one_line_before_any_work(words: list[str], line: str, capfd: pytest.CaptureFixture[str]) -> None:
    for start in ([], ["-m"]):
        named = {word.rpartition("=")[2] for word in words}
        unused = [f"dataset.drop=[{','.join(sorted({'patient', 'visit'} - named))}]"]
        assert main([*start, *DATA, *QUICK, *unused, *words, "name=bad"]) == 2
        out, err = capfd.readouterr()
        assert line in err
        assert len(err.splitlines()) == 1
        assert out == ""
        assert not Path("results/bad").exists()


def test_a_class_that_no_training_part_has_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    visits = pd.read_csv("visits.csv").sort_values("visit")
    visits.loc[visits.index[-8:], "state"] = "cured"
    visits.to_csv("visits.csv", index=False)
    words = [*DATA, *ROLES, *QUICK, "protocol.splits=forward", "protocol.n_splits=1", "hyper.C=1"]
    assert main(words) == 2
    assert "class cured is in no training part of protocol.splits=forward" in capfd.readouterr().err


def test_one_table_is_of_one_protocol_and_one_seed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", *GROUPED, "seed=0,1", "record.splits=true"]) == 2
    assert "record.splits=true keeps one table of splits" in capfd.readouterr().err


def test_a_finished_cell_writes_its_splits_too() -> None:
    assert main([*GROUPED, "hyper.C=1", "name=x"]) == 0
    before = rows_of("x")
    assert main([*GROUPED, "hyper.C=1", "name=x", "record.splits=true"]) == 0
    pd.testing.assert_frame_equal(rows_of("x"), before)
    assert set(table_of("x")["part"]) == {"train", "test"}


def test_official_parts_of_several_runs_are_no_sample(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    visits = pd.read_csv("visits.csv").drop(columns=["patient", "visit"]).rename(columns={"state": "target"})
    Path("data").mkdir()
    visits.assign(split=["train"] * 60 + ["test"] * 30).to_csv("data/mine.csv", index=False)
    words = ["-m", "dataset=folder", "dataset.name=mine", "data_dir=data", "protocol.splits=official", *QUICK, "hyper.C=1"]
    assert main([*words, "loss=zero_one,cs", "noise=uniform", "name=o"]) == 0
    assert "the corrected t-test does not apply to mine, whose runs have the same test rows" in capfd.readouterr().out
    assert "parts" not in table_of("o", "runs.csv")


def test_a_rule_of_somebodys_own(capfd: pytest.CaptureFixture[str]) -> None:
    Path("my/splits").mkdir(parents=True)
    Path("my/splits/halves.py").write_text(
        "import numpy as np\n"
        "from advcli.evaluation.splitters import Splitter, register\n"
        "@register('halves')\n"
        "class Halves(Splitter):\n"
        "    def splits(self, dataset):\n"
        "        rows = np.arange(dataset.X.shape[0])\n"
        "        return [(rows[::2], rows[1::2]), (rows[1::2], rows[::2])], ['halves']\n"
    )
    words = ["--config-dir", "my", *DATA, "dataset.drop=[patient,visit]", *QUICK, *SEARCH, "protocol.splits=halves", "record.splits=true"]
    assert main([*words, "name=h"]) == 0
    first, second = given_splits("h")
    assert np.array_equal(first.train, np.arange(0, 90, 2))
    assert np.array_equal(second.train, first.test)
    assert sorted(itertools.chain(*(held for _, held in first.folds[1]))) == first.train.tolist()
    assert rows_of("h")["n_train"].tolist() == ["45"] * len(rows_of("h"))
