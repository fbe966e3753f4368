import csv
import hashlib
import json
import math
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.sealing import sealed

from advcli.core.errors import ConfigError, ResultsError
from advcli.reports.regression.baseline import (
    BASELINE_COLUMNS,
    COST_COLUMNS,
    default_tolerance,
    folder_baseline,
    make_baseline,
    read_baseline,
    split_fingerprints,
    write_baseline,
)
from advcli.reports.regression.check import changes_text, check_folder, compare, cost_warnings
from advcli.reports.regression.junit import junit_error, junit_xml
from advcli.results import provenance
from advcli.statistics.tests import paired_test

OWN = read_baseline(Path(__file__).resolve().parents[2] / "results" / "baselines" / "ci_check.csv")
"""The project's own baseline: what the check must catch is planted into every cell of it."""

CELLS = [f"{row['dataset']}-{row['method']}-{row['metric']}".replace(" ", "-") for row in OWN.to_dict("records")]

ERRORS = [2, 1, 3, 2, 4, 2, 1, 3, 2, 2, 1, 4, 3, 2, 1, 2, 3, 2, 1, 2]


def one(changes):
    assert len(changes) == 1
    return changes[0]


def baseline_file(planted, tmp_path, *cells, **more):
    path = tmp_path / "base" / "line.csv"
    write_baseline(path, folder_baseline(planted.folder(tmp_path / "old", *cells), **more))
    return path


def test_identical_rows_are_unchanged(planted, tmp_path):
    cells = [planted.rows("iris", "a", ERRORS, metrics=("error", "accuracy")), planted.rows("wine", "b", ERRORS[::-1])]
    path = baseline_file(planted, tmp_path, *cells)
    changes = check_folder(planted.folder(tmp_path / "new", *cells), path)
    assert [(change.dataset, change.metric, change.status, change.test) for change in changes] == [
        ("iris", "accuracy", "unchanged", "identical"),
        ("iris", "error", "unchanged", "identical"),
        ("wine", "error", "unchanged", "identical"),
    ]
    assert not any(change.failed for change in changes)
    assert changes_text(changes) == "3 entries: 3 unchanged, 0 moved, 0 missing, 0 new\n"


def test_the_file_gives_the_values_back_exactly(planted, tmp_path):
    cells = [
        planted.rows("iris", "a", ERRORS, metrics=("error", "accuracy")),
        planted.rows("wine", "a", [0.5, 1.5, 2], metrics=("abstention_loss",)),
        planted.rows("moon", "a", [1 / 3, math.pi, 1e-7], metrics=("confusion_rate",)),
    ]
    folder = planted.folder(tmp_path / "old", *cells)
    path = tmp_path / "b.csv"
    baseline = folder_baseline(folder)
    write_baseline(path, baseline)
    assert path.read_text().splitlines()[0] == ",".join(BASELINE_COLUMNS)
    assert " 1/45 " in path.read_text()
    assert " 1.5/45 " in path.read_text()
    again = read_baseline(path)
    assert again["values"].tolist() == baseline["values"].tolist()
    runs = folder.runs()
    # without the noise allowance: every stored value has the bits of its row
    for row in again.to_dict("records"):
        mine = runs[(runs["dataset"] == row["dataset"]) & (runs["metric"] == row["metric"])].sort_values("split")["value"]
        parts = [text.split("/") for text in row["values"].split()]
        stored = [float(part[0]) / float(part[1]) if len(part) == 2 else float(part[0]) for part in parts]
        assert stored == mine.tolist()


def test_a_planted_shift_on_the_same_splits_has_moved(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    shifted = [count + 1 + at % 2 for at, count in enumerate(ERRORS)]
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", shifted)), path))
    assert (change.status, change.test, change.failed) == ("moved", "paired", True)
    assert change.p_value == paired_test("corrected_ttest", shifted, ERRORS, 105, 45).p_value < 0.01
    assert change.reason == "20 of 20 splits differ, split 2 the most: from 1/45 to 3/45"
    assert change.new - change.old == pytest.approx(1.5 / 45)
    assert change.better is False
    head = "moved: iris, a, error: rose by 3.33 percentage points, from 4.78 (2.07) % to 8.11 (2.42) % (worse); 20 of 20 splits differ, "
    assert change.line().startswith(head)
    assert change.line().endswith(f"; p = {change.p_value:.2g} by the paired test")


def test_one_row_of_one_split_has_moved_although_no_test_sees_it(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", [*ERRORS[:6], 2, *ERRORS[7:]])), path))
    assert (change.status, change.test) == ("moved", "paired")
    assert change.p_value > 0.01
    assert change.reason == "1 of 20 splits differ, split 7 the most: from 1/45 to 2/45"
    assert "margin" not in change.line()


def test_moves_that_cancel_in_the_mean_have_moved(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS[::-1])), path))
    assert change.new == pytest.approx(change.old)
    assert (change.status, change.reason.partition(",")[0]) == ("moved", "14 of 20 splits differ")
    assert "error: mean unchanged, from 4.78 (2.07) % to 4.78 (2.07) %; 14 of" in change.line()


def test_a_lost_split_has_moved(planted, tmp_path):
    """The same configuration, so the same splits: fewer of them are no other experiment."""
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", [2] * 20))
    folder = planted.folder(tmp_path / "new", planted.rows("iris", "a", [2] * 20))
    shard = json.loads((folder.cells_path / "iris-a-0.json").read_text())
    shard["runs"]["values"].pop()
    (folder.cells_path / "iris-a-0.json").write_text(sealed(shard))
    change = one(check_folder(folder, path))
    assert (change.status, change.reason) == ("moved", "19 splits, 20 in the baseline")


def test_an_improvement_has_moved_too(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", [count + 5 for count in ERRORS]))
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS)), path))
    assert (change.status, change.better) == ("moved", True)
    assert ": fell by 11.11 percentage points, from 15.89 (2.07) % to 4.78 (2.07) % (better); " in change.line()


def test_rounding_is_no_change(planted, tmp_path):
    cells = planted.rows("x", "a", ERRORS, metrics=("confusion_rate",))
    path = baseline_file(planted, tmp_path, cells)
    noisy = [row | {"value": row["value"] * (1 + 1e-13)} for row in cells]
    change = one(check_folder(planted.folder(tmp_path / "new", noisy), path))
    assert (change.status, change.test) == ("unchanged", "rounding")
    assert change.line().endswith(", the same on every split but for rounding")
    assert "percent" not in change.line()
    for row in noisy:
        row["value"] *= 1 + 1e-8
    change = one(check_folder(planted.folder(tmp_path / "more", noisy), path))
    assert (change.status, change.test) == ("moved", "paired")


@pytest.mark.parametrize(("old", "new"), [(10, 20), (20, 10)])
def test_more_or_fewer_splits_are_compared_on_those_that_both_have(planted, tmp_path, old, new):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS[:old]))
    change = one(check_folder(planted.folder(tmp_path / "same", planted.rows("iris", "a", ERRORS[:new])), path))
    where = f"the first 10 splits ({new} in the results, {old} in the baseline)"
    assert (change.status, change.test, change.reason) == ("unchanged", "identical", where)
    assert change.line().endswith(f", the same on every split of {where}")
    later = [*ERRORS[:10], *(count + 5 for count in ERRORS[10:])]
    for counts, status in (([*ERRORS[:3], ERRORS[3] + 1, *ERRORS[4:]], "moved"), (later, "unchanged")):
        change = one(check_folder(planted.folder(tmp_path / status, planted.rows("iris", "a", counts[:new])), path))
        assert change.status == status
        assert change.reason.endswith(where)


def test_more_splits_of_another_rule_are_other_splits(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS[:10]))
    other = {"cell": {"dataset": {"name": "iris"}, "seed": 0, "protocol": {"splits": "random", "train_size": 0.6, "n_splits": 20}}}
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS), about=other), path))
    assert change.test == "equivalence"


def test_other_splits_use_the_margin(planted, tmp_path):
    rng = np.random.default_rng(0)
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", rng.binomial(45, 0.1, 20).tolist()))
    fresh = rng.binomial(45, 0.1, 20).tolist()
    same = one(check_folder(planted.folder(tmp_path / "1", planted.rows("iris", "a", fresh, seed=1)), path))
    assert (same.status, same.test) == ("unchanged", "equivalence")
    worse = one(check_folder(planted.folder(tmp_path / "2", planted.rows("iris", "a", [count + 9 for count in fresh], seed=1)), path))
    assert (worse.status, worse.test, worse.reason) == ("moved", "equivalence", "beyond the margin")
    assert worse.p_value > 0.5
    assert re.search(r"; p = [\d.]+ by the equivalence test; margin [\d.]+ percentage points$", worse.line())
    assert changes_text([same]).splitlines() == [
        "differs from the baseline: seed 0 -> 1",
        "1 entry: 1 unchanged, 0 moved, 0 missing, 0 new",
        "1 entry without the baseline's splits: means compared within the margin",
    ]


def test_default_tolerances_seldom_give_a_false_alarm(planted, tmp_path):
    """Fresh splits of an unchanged method: the margin is made for a false alarm in 0.3 % of the cells."""
    rng = np.random.default_rng(1)
    cells = [planted.rows(f"set{at}", "a", rng.binomial(450, 0.1, 20).tolist(), n_test=450) for at in range(100)]
    path = baseline_file(planted, tmp_path, *cells)
    fresh = [planted.rows(f"set{at}", "a", rng.binomial(450, 0.1, 20).tolist(), n_test=450, seed=1) for at in range(100)]
    changes = check_folder(planted.folder(tmp_path / "new", *fresh), path)
    assert {change.test for change in changes} == {"equivalence"}
    assert sum(change.failed for change in changes) <= 4


def test_a_margin_too_small_to_be_shown_is_said(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS), tolerance=0.001)
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS[::-1], seed=1)), path))
    assert change.status == "moved"
    assert "not shown" in change.reason


def test_other_data_are_other_splits(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    other = planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS), about={"dataset_sha256": "something else"})
    assert one(check_folder(other, path)).test == "equivalence"


def test_rows_alone_are_enough(planted, tmp_path):
    runs = planted.folder(tmp_path / "old", planted.rows("iris", "a", ERRORS)).runs()
    baseline = make_baseline(runs)
    assert one(compare(runs, baseline)).test == "identical"
    other_seed = planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS, seed=3)).runs()
    assert one(compare(other_seed, baseline)).test == "equivalence"


def test_missing_failed_and_new_cells(planted, tmp_path):
    cells = [planted.rows("iris", name, ERRORS) for name in ("gone", "lost", "half")]
    path = baseline_file(planted, tmp_path, *cells)
    lost = planted.rows("iris", "lost", [None])
    lost[0] |= {"metric": "", "split": None, "error": "out of memory"}
    half = planted.rows("iris", "half", [None, *ERRORS[1:]])
    extra = planted.rows("iris", "extra", ERRORS)
    changes = {change.method: change for change in check_folder(planted.folder(tmp_path / "new", lost, half, extra), path)}
    assert {name: change.status for name, change in changes.items()} == {
        "gone": "missing",
        "lost": "missing",
        "half": "moved",
        "extra": "new",
    }
    assert changes["gone"].reason == "not in the results"
    assert changes["lost"].reason == "failed: out of memory"
    assert changes["half"].reason == "1 of 20 splits failed: solver broke"
    assert not changes["extra"].failed
    text = changes_text(list(changes.values()))
    assert len(text.splitlines()) == 5
    assert "missing: iris, gone, error: was 4.78 (2.07) %, now there is nothing: not in the results" in text
    assert text.endswith("4 entries: 0 unchanged, 1 moved, 2 missing, 1 new\n")


def test_single_splits_compare_means(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", [2]))
    near = one(check_folder(planted.folder(tmp_path / "1", planted.rows("iris", "a", [3], seed=1)), path))
    assert (near.status, near.test) == ("unchanged", "margin")  # one row of the test part
    assert math.isnan(near.p_value)
    far = one(check_folder(planted.folder(tmp_path / "2", planted.rows("iris", "a", [4], seed=1)), path))
    assert far.status == "moved"


def test_an_update_keeps_tolerances(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS), tolerance=0.123)
    new = planted.folder(tmp_path / "new", planted.rows("iris", "a", [9] * 20), planted.rows("wine", "a", ERRORS))
    updated = folder_baseline(new, previous=read_baseline(path)).set_index("dataset")
    assert updated.loc["iris", "tolerance"] == 0.123
    assert updated.loc["iris", "mean"] == pytest.approx(0.2)
    assert updated.loc["wine", "tolerance"] != 0.123


def test_failed_cells_do_not_enter_a_baseline(planted, tmp_path):
    folder = planted.folder(tmp_path / "old", planted.rows("iris", "a", ERRORS), planted.rows("iris", "b", [None, 1]))
    baseline = folder_baseline(folder)
    assert baseline["method"].tolist() == ["a"]
    assert baseline.attrs["left_out"] == ["iris, b, error"]
    with pytest.raises(ResultsError, match="no complete cell"):
        folder_baseline(planted.folder(tmp_path / "bad", planted.rows("iris", "b", [None, 1])))


def test_people_may_edit_a_baseline(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    head, line = path.read_text().splitlines()
    fields = line.split(",")
    fields[BASELINE_COLUMNS.index("tolerance")], fields[-1] = "0.2", ""  # a wide tolerance, no values
    path.write_text(f"{head}\n{','.join(fields)}\n")
    moved_a_little = planted.folder(tmp_path / "new", planted.rows("iris", "a", [count + 2 for count in ERRORS]))
    change = one(check_folder(moved_a_little, path))
    assert (change.status, change.test, change.margin) == ("unchanged", "equivalence", 0.2)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("tolerance", "-1", "line 2: tolerance = '-1'"),
        ("tolerance", "", "line 2: tolerance = ''"),
        ("mean", "many", "line 2: mean = 'many'"),
        ("n", "2.5", "line 2: n = '2.5'"),
        ("mean", "0.5", "do not fit"),
        ("n", "19", "do not fit"),
        ("values", "1 x 2", "not numbers"),
        ("values", "1/0", "not numbers"),
        ("passes", "-1", "line 2: passes = '-1'"),
        ("passes", "few", "line 2: passes = 'few'"),
        ("fit_seconds", "inf", "line 2: fit_seconds = 'inf'"),
    ],
)
def test_damaged_baselines_are_refused(planted, tmp_path, column, value, message):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    head, line = path.read_text().splitlines()
    fields = line.split(",")
    fields[BASELINE_COLUMNS.index(column)] = value
    path.write_text(f"{head}\n{','.join(fields)}\n")
    with pytest.raises(ResultsError, match=message):
        read_baseline(path)


def test_no_baseline(planted, tmp_path):
    with pytest.raises(ResultsError, match="--update"):
        read_baseline(tmp_path / "nothing.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ResultsError, match="no column 'dataset'"):
        read_baseline(tmp_path / "other.csv")
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    with pytest.raises(ResultsError, match="line 3: the entry stands there twice"):
        read_baseline(path)


def test_bad_arguments(planted, tmp_path):
    runs = planted.folder(tmp_path / "old", planted.rows("iris", "a", ERRORS)).runs()
    with pytest.raises(ConfigError, match="did you mean ttest"):
        compare(runs, make_baseline(runs), test="ttst")
    with pytest.raises(ConfigError, match="between 0 and 1"):
        compare(runs, make_baseline(runs), alpha=0)
    with pytest.raises(ConfigError, match="at least 0"):
        make_baseline(runs, tolerance=-1)


def test_fingerprints_tell_seeds_data_and_rules_apart(planted, tmp_path):
    def word(name, seed=0, **about):
        folder = planted.folder(tmp_path / name, planted.rows("iris", "a", [1, 2], seed=seed), about=about)
        return split_fingerprints(folder, folder.runs()["cell"])[f"iris-a-{seed}"]

    usual = {"dataset": {"name": "iris"}, "seed": 0, "protocol": {"splits": "random", "train_size": 0.7, "n_splits": 2}}
    rules = [
        usual | {"protocol": usual["protocol"] | {"splits": "author"}},
        usual | {"protocol": usual["protocol"] | {"train_size": 0.8}},
        usual | {"protocol": usual["protocol"] | {"n_splits": 3}},
        usual | {"dataset": {"name": "iris", "sizes": [100, 50]}},
        usual | {"dataset": {"name": "iris", "sizes": [50, 100]}},
        usual | {"noise": {"name": "uniform", "rate": 0.1}},
        usual | {"noise": {"name": "uniform", "rate": 0.2}},
    ]
    words = [word("1"), word("2", seed=1), word("3", dataset_sha256="other")]
    words += [word(f"rule {at}", cell=rule) for at, rule in enumerate(rules)]
    assert len(set(words)) == 10
    assert word("5") == words[0]
    assert word("7", cell=usual | {"solver": {"tol": 1e-6}, "loss": {"name": "ww"}}) == words[0], "a method does not choose its splits"
    assert split_fingerprints(planted.folder(tmp_path / "6", planted.rows("x", "a", [1])), ["nowhere"]) == {}


def test_default_tolerance_by_hand():
    from scipy.stats import t

    assert default_tolerance("error", 0.1, 0.02, 20, 45) == pytest.approx((t.ppf(0.99, 38) + 3) * 0.02 * math.sqrt(0.1))
    assert default_tolerance("error", 0.0, 0.0, 20, 45) == pytest.approx(1 / 45)
    assert default_tolerance("confusion_rate", 2.0, math.nan, 1, 45) == pytest.approx(0.02)


def test_junit_is_well_formed_and_counts(planted, tmp_path):
    hostile = 'a<b>&"c" \x07'
    cells = [planted.rows("iris", hostile, ERRORS), planted.rows("iris", "gone", ERRORS), planted.rows("iris", "same", ERRORS)]
    runs = planted.folder(tmp_path / "old", *cells).runs()
    new = planted.folder(tmp_path / "new", planted.rows("iris", hostile, [30] * 20), cells[2], planted.rows("iris", "extra", ERRORS)).runs()
    changes = compare(new, make_baseline(runs))
    root = ET.fromstring(junit_xml(changes, "check <1>"))
    suite = root.find("testsuite")
    assert suite.get("name") == "check <1>"
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "1")
    cases = {case.get("name"): case for case in suite}
    assert cases['a<b>&"c" ?'].find("failure").get("type") == "moved"
    assert cases["gone"].find("failure").get("type") == "missing"
    assert cases["extra"].find("skipped") is not None
    assert len(cases["same"]) == 0
    assert cases["gone"].get("classname") == "iris.error"
    assert suite.get("errors") == "0"
    assert suite.find("system-err") is None
    # 20 fits of 0.01 s each of the three that are there
    assert [float(case.get("time")) for case in suite] == pytest.approx([0.2 if name != "gone" else 0.0 for name in cases])
    assert float(suite.get("time")) == pytest.approx(0.6)


def test_junit_of_findings_warnings_and_errors(planted, tmp_path):
    rows = planted.rows("iris", "a", ERRORS)
    runs = planted.folder(tmp_path / "old", rows).runs()
    late = planted.folder(tmp_path / "new", [row | {"passes": 50} for row in rows]).runs()
    suite = ET.fromstring(junit_xml(compare(late, make_baseline(runs)), finding="runs.csv, line 2: \x00")).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert suite.find("testcase[@name='runs.csv']/failure").get("message") == "runs.csv, line 2: ?"
    assert suite.find("system-err").text == "iris, a: 50 passes per fit, 7 in the baseline"
    root = ET.fromstring(junit_error("no <folder>"))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "0", "1")
    assert root.find("testsuite/testcase/error").get("message") == "no <folder>"


# ------------------------------------------------------------------------------------- what the check must catch, in every own cell


def own_runs(change=lambda cell, split, count: count, only=None):
    """Return rows that the project's own baseline would be made of, and their fingerprints; counts of one cell may be changed."""
    rows, splits = [], {}
    for name, cell in zip(CELLS, OWN.to_dict("records"), strict=True):
        splits[name] = cell["splits"]
        for split, text in enumerate(cell["values"].split()):
            count, size = text.split("/")
            count = float(count)
            if only is None or name == only:
                count = change(name, split, count)
            rows.append(
                {
                    "dataset": cell["dataset"],
                    "method": cell["method"],
                    "metric": cell["metric"],
                    "split": split + 1,
                    "value": count / int(size),
                    "n_train": int(cell["n_train"]),
                    "n_test": int(cell["n_test"]),
                    "seed": cell["seed"],
                    "status": "ok",
                    "error": "",
                    "options": "",
                    "cell": name,
                }
            )
    runs = pd.DataFrame(rows)
    # one cell of a method has all its metrics
    runs["cell"] = [f"{dataset}-{method}" for dataset, method in zip(runs["dataset"], runs["method"], strict=True)]
    words = {f"{row['dataset']}-{row['method']}": row["splits"] for row in OWN.to_dict("records")}
    return runs, words


def own_check(*arguments, **more):
    runs, splits = own_runs(*arguments, **more)
    changes = compare(runs, OWN, splits=splits)
    names = [f"{change.dataset}-{change.method}-{change.metric}".replace(" ", "-") for change in changes]
    assert sorted(names) == sorted(CELLS)
    assert all(change.status == "moved" for change in changes if change.failed)
    return {name for name, change in zip(names, changes, strict=True) if change.failed}, changes


def test_own_cells_give_no_false_alarm():
    failed, changes = own_check()
    assert not failed
    assert {change.test for change in changes} == {"identical"}


PLANTED = {
    "one error more in every split": lambda cell, split, count: count + 1,
    "two errors more in half of the splits": lambda cell, split, count: count + 2 * (split % 2),
    "a doubled error": lambda cell, split, count: 2 * count,
    "one error less in every split that has one": lambda cell, split, count: max(count - 1, 0),
    "one error more in one split": lambda cell, split, count: count + (split == 9),
    "an error that wanders to the next split": lambda cell, split, count: count + (split == 3) - (split == 4),
}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("planted_change", PLANTED.values(), ids=PLANTED)
def test_what_is_planted_into_one_own_cell_is_found_there_and_nowhere_else(cell, planted_change):
    failed, changes = own_check(planted_change, only=cell)
    assert failed == {cell}
    assert next(change for change in changes if change.failed).reason


def test_any_moved_counts_are_found_where_they_are():
    rng = np.random.default_rng(0)
    for _ in range(25):
        moved = {cell: rng.integers(-1, 2, size=10) * rng.integers(0, 2, size=10) for cell in CELLS}
        moved = {cell: shift * rng.integers(0, 2) for cell, shift in moved.items()}
        failed, _ = own_check(lambda cell, split, count, moved=moved: count + moved[cell][split])
        assert failed == {cell for cell, shift in moved.items() if shift.any()}


# --------------------------------------------------------------------------------------------------------------------- what fits cost


def with_costs(planted, factors, base=(20, 0.02, 0.04)):
    """Return the rows of one cell whose passes and seconds are the base's times a factor for each split."""
    rows = planted.rows("iris", "a", [1] * len(factors), metrics=("error", "accuracy"))
    for row in rows:
        factor = factors[row["split"] - 1]
        row |= {name: type(value)(factor * value) for name, value in zip(COST_COLUMNS, base, strict=True)}
    return rows


def test_what_costs_three_times_as_much_is_a_warning_and_no_failure(planted, tmp_path):
    path = baseline_file(planted, tmp_path, with_costs(planted, [1] * 10))
    baseline = read_baseline(path)
    assert baseline[list(COST_COLUMNS)].to_numpy().tolist() == [[20, 0.02, 0.04]] * 2

    def said(name, factors, base=(20, 0.02, 0.04)):
        changes = check_folder(planted.folder(tmp_path / name, with_costs(planted, factors, base)), path)
        assert not any(change.failed for change in changes)
        return cost_warnings(changes)

    assert said("same", [1] * 10) == []
    assert said("three times", [3] * 10) == []
    assert said("more", [3.25] * 10) == [
        "iris, a: 65 passes per fit, 20 in the baseline",
        "iris, a: 0.065 s to fit, 0.02 s in the baseline (medians over the splits)",
        "iris, a: 0.13 s to predict, 0.04 s in the baseline (medians over the splits)",
    ]
    # one slow split is the machine's, one with many passes is the solver's
    assert said("once", [1] * 9 + [40]) == ["iris, a: 98 passes per fit, 20 in the baseline"]
    assert said("faster", [0.1] * 10) == []


def test_short_times_are_no_warning(planted, tmp_path):
    path = baseline_file(planted, tmp_path, with_costs(planted, [1] * 5, (7, 0.001, 0.0001)))
    late = planted.folder(tmp_path / "new", with_costs(planted, [1] * 5, (7, 0.0199, 0.0199)))
    assert cost_warnings(check_folder(late, path)) == []


def test_rows_without_costs_are_compared_all_the_same(planted, tmp_path):
    rows = [row | dict.fromkeys(COST_COLUMNS) for row in planted.rows("iris", "a", ERRORS)]
    path = baseline_file(planted, tmp_path, rows)
    assert read_baseline(path)[list(COST_COLUMNS)].isna().all(axis=None)
    assert cost_warnings(check_folder(planted.folder(tmp_path / "new", with_costs(planted, [1] * 20)), path)) == []


# ------------------------------------------------------------------------------------------------------------ who made the numbers


def made_by(**versions):
    here = provenance.maker("avx2")
    return {"made_by": [here | {"versions": here["versions"] | versions}]}


def config(C):
    return {"cell": {"protocol": {"splits": "random", "train_size": 0.7, "n_splits": 20}, "hyper": {"C": C}, "seed": 0}}


def test_what_differs_is_said_first(planted, tmp_path, monkeypatch):
    rows = [planted.rows("iris", "a", ERRORS), planted.rows("wine", "a", ERRORS)]
    path = tmp_path / "line.csv"
    write_baseline(path, folder_baseline(planted.folder(tmp_path / "old", *rows, about=made_by(numpy="2.3.0") | config(1.0))))
    libraries = provenance.versions()
    monkeypatch.setattr(provenance, "_libraries", lambda: libraries | {"numpy": "2.4.0"})
    changes = check_folder(planted.folder(tmp_path / "new", *rows, about=made_by() | config(2.0)), path)
    first, *others = changes_text(changes).splitlines()
    assert first == "differs from the baseline: hyper.C 1 -> 2; numpy 2.3.0 -> 2.4.0"
    assert others == ["2 entries: 2 unchanged, 0 moved, 0 missing, 0 new"]
    mixed = planted.folder(tmp_path / "mixed", rows[0], about=made_by(numpy="2.3.0") | config(1.0))
    mixed.write_cell("b", [row | {"cell": "b"} for row in rows[1]], about=made_by() | config(1.0) | {"dataset": "wine"})
    (first, *_) = changes_text(check_folder(mixed, path)).splitlines()
    assert first == "differs from the baseline: numpy 2.3.0 -> 2.4.0 (1 of 2 entries)"


def test_what_other_versions_made_is_not_unchanged(planted, tmp_path):
    rows = planted.rows("iris", "a", ERRORS)
    path = baseline_file(planted, tmp_path, rows)
    here = provenance.versions()["scikit-learn"]
    old = planted.folder(tmp_path / "new", rows, about=made_by(**{"scikit-learn": "0.1"}))
    change = one(check_folder(old, path))
    assert (change.status, change.failed) == ("stale", True)
    said = changes_text([change]).splitlines()
    assert said[-1] == "1 entry: 0 unchanged, 0 moved, 0 missing, 0 new, 1 stale"
    assert f"1 entry was made by scikit-learn 0.1, installed {here}: nothing is known of the installed versions" in said[-2]
    (suite,) = ET.fromstring(junit_xml([change]))
    assert suite.attrib["failures"] == "1"
    both = {"made_by": [*made_by(**{"scikit-learn": "0.1"})["made_by"], *made_by()["made_by"]]}
    assert one(check_folder(planted.folder(tmp_path / "both", rows, about=both), path)).status == "unchanged"
    moved = planted.folder(tmp_path / "moved", planted.rows("iris", "a", ERRORS[::-1]), about=made_by(numpy="0.1"))
    assert one(check_folder(moved, path)).status == "moved"


def test_a_baseline_keeps_who_made_it(planted, tmp_path):
    facts = (
        made_by(numpy="2.3.0") | config(1.0) | {"files": {"loss.file": {"path": "/x/C.csv", "sha256": "f" * 64}}, "paths": ["dataset.path"]}
    )
    facts["cell"] |= {"loss": {"name": "general", "file": "C.csv"}, "dataset": {"path": "/somewhere/a.csv"}}
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    folder = planted.folder(tmp_path / "made", planted.rows("iris", "a", ERRORS), about=facts)
    write_baseline(path, folder_baseline(folder))
    (row,) = read_baseline(path).to_dict("records")
    assert "numpy=2.3.0" in row["made_by"].split("; ")
    assert {"hyper.C=1", "loss.file=ffffffff"} <= set(row["config"].split("; "))
    assert "dataset.path" not in row["config"], "where data lie is no part of it"
    assert one(check_folder(folder, path)).differs == ()


# ------------------------------------------------------------------------------------------------------------ what the check looks at


def content(path):
    return {file.relative_to(path): hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(path.rglob("*")) if file.is_file()}


def test_the_folder_is_read_only(planted, tmp_path):
    rows = planted.rows("iris", "a", ERRORS)
    path = baseline_file(planted, tmp_path, rows)
    folder = planted.folder(tmp_path / "new", rows)
    for name in ("runs.csv", "search.csv", "cells/.lock"):
        (folder.path / name).unlink()  # what a merge would write
        before = content(folder.path)
        assert one(check_folder(folder, path)).test == "identical"
        assert folder.disagreement() == ""
        assert folder_baseline(folder)["method"].tolist() == ["a"]
        assert content(folder.path) == before


def test_rows_without_cell_files_are_those_of_runs_csv(planted, tmp_path):
    rows = planted.rows("iris", "a", ERRORS)
    folder = planted.folder(tmp_path / "new", rows)
    runs = folder.runs()
    pd.testing.assert_frame_equal(folder.of_cells(), runs)
    shutil.rmtree(folder.cells_path)
    pd.testing.assert_frame_equal(folder.of_cells(), runs)
    assert folder.disagreement() == ""


def edit(path, change):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(change(lines)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [*lines[:3], lines[3].replace("0.0666", "0.0444"), *lines[4:]], 'runs.csv, line 4: value is "0.04446666666666667"'),
        (lambda lines: lines[:-1], "runs.csv ends before line 21; its cell files make 20 rows"),
        (lambda lines: [*lines, lines[-1]], "runs.csv goes on at line 22; its cell files make 20 rows"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 'runs.csv, line 2: split is "2", its cell file has "1"'),
        (lambda lines: [lines[0], lines[1].replace(",ok,", ",failed,"), *lines[2:]], 'line 2: status is "failed", its cell file has "ok"'),
        (lambda lines: [lines[0], "iris,a\n", *lines[2:]], "runs.csv, line 2: 2 fields, "),
        (lambda lines: [], "runs.csv ends before line 2; its cell files make 20 rows"),
        (lambda lines: [line.rstrip("\n") + (",note\n" if at == 0 else ",mine\n") for at, line in enumerate(lines)], "line 2: note is "),
        (lambda lines: [line.partition(",")[2] for line in lines], 'line 2: dataset is "", its cell file has "iris"'),
    ],
)
def test_a_runs_csv_that_its_cells_do_not_make_is_found(planted, tmp_path, change, said):
    folder = planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS))
    assert folder.disagreement() == ""
    edit(folder.path / "runs.csv", change)
    finding = folder.disagreement()
    assert said in finding
    assert len(finding.splitlines()) == 1


def test_a_tampered_cell_file_is_found(planted, tmp_path):
    folder = planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS))
    file = folder.cells_path / "iris-a-0.json"
    tampered = file.read_text().replace(str(1 / 45), "0.0")
    file.write_text(tampered)
    assert folder.disagreement() == "runs.csv goes on at line 2; its cell files make 0 rows"
    assert ["checksum" in remark for remark in folder.remarks] == [True]
    file.write_text(sealed(json.loads(tampered)))
    assert folder.disagreement() == f'runs.csv, line 3: value is "{1 / 45}", its cell file has "0.0"'
    file.unlink()
    assert folder.disagreement() == "", "rows alone are no contradiction"


def test_what_is_no_value_of_its_column_is_refused(planted, tmp_path):
    folder = planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS))
    file = folder.cells_path / "iris-a-0.json"
    file.write_text(sealed(json.loads(file.read_text().replace(str(1 / 45), '"many"'))))
    with pytest.raises(ResultsError, match=r"cannot read the rows of .*cells: could not convert string to float: 'many'") as refused:
        folder.of_cells()
    assert len(str(refused.value).splitlines()) == 1


def test_the_order_of_columns_and_ends_of_lines_are_no_disagreement(planted, tmp_path):
    folder = planted.folder(tmp_path / "new", planted.rows("iris", "a, b", ERRORS), planted.rows("iris", "c", [None, 1]))
    with (folder.path / "runs.csv").open(newline="") as file:
        lines = [line[::-1] for line in csv.reader(file)]
    with (folder.path / "runs.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\r\n").writerows(lines)
    assert folder.disagreement() == ""


def test_counts_are_those_of_each_split_s_own_size(planted, tmp_path):
    """Test parts of 20 to 115 rows: one error more in each is the same count everywhere, but no share is."""

    def rows(counts):
        cell = planted.rows("iris", "a", counts)
        for row in cell:
            size = 20 + 5 * row["split"]
            row |= {"n_test": size, "value": row["value"] * 45 / size}
        return cell

    more = [count + 1 + (at == 3) for at, count in enumerate(ERRORS)]
    path = baseline_file(planted, tmp_path, rows(ERRORS))
    change = one(check_folder(planted.folder(tmp_path / "new", rows(more)), path))
    assert change.p_value == paired_test("corrected_ttest", more, ERRORS, 105, 72.5).p_value
    assert change.reason == "20 of 20 splits differ, split 4 the most: from 2/40 to 4/40"
