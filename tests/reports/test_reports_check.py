import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from advcli.errors import ConfigError, ResultsError
from advcli.reports.check import (
    BASELINE_COLUMNS,
    changes_text,
    check_folder,
    compare,
    default_tolerance,
    folder_baseline,
    junit_xml,
    make_baseline,
    read_baseline,
    split_fingerprints,
    write_baseline,
)

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
    assert changes_text(changes) == "3 cells: 3 unchanged, 0 moved, 0 missing, 0 new\n"


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
    assert change.p_value < 0.01
    assert change.new - change.old == pytest.approx(1.5 / 45)
    assert change.better is False
    assert change.line().startswith("moved: iris, a, error: 4.78 (2.07) -> 8.11 ")
    assert "(worse), p = " in change.line()
    assert "margin" in change.line()


def test_a_few_flips_on_the_same_splits_are_unchanged(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    flipped = [ERRORS[0] + 1, ERRORS[1] - 1, *ERRORS[2:5], ERRORS[5] + 1, *ERRORS[6:]]
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", flipped)), path))
    assert (change.status, change.test) == ("unchanged", "paired")
    assert 0.01 < change.p_value < 1


def test_one_broken_fit_has_moved_although_no_test_sees_it(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", ERRORS))
    broken = [*ERRORS[:-1], 45]
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", broken)), path))
    assert change.p_value > 0.01
    assert (change.status, change.reason) == ("moved", "beyond the margin")


def test_an_improvement_has_moved_too(planted, tmp_path):
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", [count + 5 for count in ERRORS]))
    change = one(check_folder(planted.folder(tmp_path / "new", planted.rows("iris", "a", ERRORS)), path))
    assert (change.status, change.better) == ("moved", True)


def test_rounding_is_no_change(planted, tmp_path):
    cells = planted.rows("x", "a", ERRORS, metrics=("confusion_rate",))
    path = baseline_file(planted, tmp_path, cells)
    noisy = [row | {"value": row["value"] * (1 + 1e-13)} for row in cells]
    assert one(check_folder(planted.folder(tmp_path / "new", noisy), path)).test == "identical"


def test_other_splits_use_the_margin(planted, tmp_path):
    rng = np.random.default_rng(0)
    path = baseline_file(planted, tmp_path, planted.rows("iris", "a", rng.binomial(45, 0.1, 20).tolist()))
    fresh = rng.binomial(45, 0.1, 20).tolist()
    same = one(check_folder(planted.folder(tmp_path / "1", planted.rows("iris", "a", fresh, seed=1)), path))
    assert (same.status, same.test) == ("unchanged", "equivalence")
    worse = one(check_folder(planted.folder(tmp_path / "2", planted.rows("iris", "a", [count + 9 for count in fresh], seed=1)), path))
    assert (worse.status, worse.test, worse.reason) == ("moved", "equivalence", "beyond the margin")
    assert worse.p_value > 0.5


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
    assert "missing: iris, gone, error: 4.78 (2.07) -> nothing (not in the results)" in text
    assert text.endswith("4 cells: 0 unchanged, 1 moved, 2 missing, 1 new\n")


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
    fields[6], fields[-1] = "0.2", ""  # a wide tolerance, no values
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
    with pytest.raises(ResultsError, match="line 3: the cell stands there twice"):
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

    rule = {"dataset": {"name": "iris"}, "seed": 0, "protocol": {"splits": "author", "train_size": 0.7, "n_splits": 2}}
    words = [word("1"), word("2", seed=1), word("3", dataset_sha256="other"), word("4", cell=rule)]
    assert len(set(words)) == 4
    assert word("5") == words[0]
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
