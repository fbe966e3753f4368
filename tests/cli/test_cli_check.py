"""`advcli check`: exit code 0 while numbers stay, 1 when one moved; baselines that are written, shown and kept."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import hydra
import pytest
import yaml
from support.sealing import sealed

from advcli.cli import main
from advcli.core.paths import conf_dir
from advcli.reports.regression import baseline as baselines
from advcli.reports.regression import check as reports_check
from advcli.reports.regression.baseline import read_baseline
from advcli.results.tables import RUN_COLUMNS

ROOT = Path(__file__).resolve().parents[2]
RUN = ["loss=zero_one", "protocol.n_splits=6", "protocol.metrics=[]", "solver.tol=1e-4"]
GOOD, BAD = ["hyper.C=1"], ["hyper.C=1e-7"]  # the second one is regularised to nothing


pytestmark = pytest.mark.usefixtures("elsewhere")


def run(name: str, *words: str) -> str:
    assert main(["dataset=iris", f"name={name}", *RUN, *words]) == 0
    return f"results=results/{name}"


def check(*words: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    capfd.readouterr()
    code = main(["check", *words])
    out, err = capfd.readouterr()
    return code, out.splitlines(), err


def error_of(path: str | Path) -> str:
    """Return the message of the one test case of a JUnit file, which is an error."""
    (suite,) = ET.parse(path).getroot()
    (case,) = suite
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "1")
    error = case.find("error")
    assert error is not None
    return str(error.get("message"))


def content() -> dict[str, str]:
    """Return a checksum of every file of the results folders."""
    files = sorted(path for path in Path("results").rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def rewrite(path: str, column: str, old: str, new: str) -> None:
    """Change one column of runs.csv by hand wherever it has the old text."""
    with Path(path).open(newline="") as file:
        head, *rows = csv.reader(file)
    at = head.index(column)
    for row in rows:
        row[at] = new if row[at] == old else row[at]
    with Path(path).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


@pytest.fixture(autouse=True)
def _no_time_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a busy machine may take long; what a warning about time says is tested with planted times."""
    monkeypatch.setattr("advcli.reports.regression.check.SECONDS_FLOOR", float("inf"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and its baseline, made once; tests get a copy."""
    path = tmp_path_factory.mktemp("made")
    assert main(["dataset=iris", "name=old", f"results_dir={path / 'results'}", *RUN, *GOOD]) == 0
    assert main(["check", f"results={path / 'results' / 'old'}", f"baseline={path / 'line.csv'}", "--update"]) == 0
    return path


@pytest.fixture
def checked(made: Path, elsewhere: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """A run, its baseline, and a green JUnit file of a first check."""
    shutil.copytree(made, Path.cwd(), dirs_exist_ok=True)
    assert check("results=results/old", "baseline=line.csv", "junit=out.xml", capfd=capfd)[0] == 0
    assert 'failures="0" errors="0"' in Path("out.xml").read_text()
    return "results=results/old"


def test_unmoved_numbers_pass_and_moved_or_missing_ones_fail(capfd: pytest.CaptureFixture[str]) -> None:
    old = run("old", *GOOD)
    run("old", *GOOD, "loss=ww")
    code, lines, err = check(old, "baseline=base/line.csv", "--update", capfd=capfd)
    assert (code, err) == (0, "")
    assert lines == ["base/line.csv: 2 entries, kept for later checks"]

    # the same again from nothing: another folder, same splits
    again = run("again", *GOOD)
    run("again", *GOOD, "loss=ww")
    unmoved = (0, ["2 entries: 2 unchanged, 0 moved, 0 missing, 0 new"], "")
    assert check(again, "baseline=base/line.csv", capfd=capfd) == unmoved

    broken = run("broken", *BAD)
    run("broken", *BAD, "loss=cs")
    code, lines, _ = check(broken, "baseline=base/line.csv", "junit=made/out.xml", capfd=capfd)
    assert code == 1
    differs, *lines = lines
    assert differs.startswith("differs from the baseline: hyper.C 1 -> ")
    assert [line.split(",")[0] for line in lines] == ["new: iris", "missing: iris", "moved: iris", "3 entries: 0 unchanged"]
    assert lines[1].endswith(", now there is nothing: not in the results")
    mean = 100 * read_baseline(Path("base/line.csv")).set_index("method").loc["zero_one linear", "mean"]
    assert lines[2].startswith("moved: iris, zero_one linear, error: rose by ")
    assert f" percentage points, from {mean:.2f} (" in lines[2]
    assert " (worse); 6 of 6 splits differ, split " in lines[2]
    assert lines[2].endswith(" by the paired test")
    suite = ET.parse("made/out.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("advcli check line.csv", "3", "2", "1")


@pytest.mark.usefixtures("checked")
def test_other_splits_are_compared_within_the_margin(capfd: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = check(run("fresh", *GOOD, "seed=1"), "baseline=line.csv", capfd=capfd)
    said = "1 entry without the baseline's splits: means compared within the margin"
    differs = "differs from the baseline: seed 0 -> 1"
    assert (code, lines) == (0, [differs, "1 entry: 1 unchanged, 0 moved, 0 missing, 0 new", said])
    code, lines, _ = check(run("bad", *BAD, "seed=1"), "baseline=line.csv", capfd=capfd)
    assert code == 1
    assert " by the equivalence test; margin " in lines[1]


@pytest.mark.usefixtures("checked")
def test_an_update_shows_the_difference_and_keeps_tolerances(capfd: pytest.CaptureFixture[str]) -> None:
    with Path("line.csv").open() as file:
        head, row = csv.reader(file)
    row[head.index("tolerance")] = "0.0123"
    Path("line.csv").write_text("\n".join([",".join(head), ",".join(row)]) + "\n")
    broken = run("broken", *BAD)
    code, lines, _ = check(broken, "baseline=line.csv", "update=true", capfd=capfd)
    assert code == 0
    assert lines[1].startswith("moved: iris, zero_one linear, error: ")
    assert lines[-1] == "line.csv: 1 entry, kept for later checks"
    assert read_baseline(Path("line.csv"))["tolerance"].tolist() == [0.0123]
    assert check(broken, "baseline=line.csv", capfd=capfd)[0] == 0


@pytest.mark.usefixtures("damaged")
def test_an_update_that_leaves_a_cell_out_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "dataset=glass,iris", "data_dir=nothing", "name=partly", "workers=1", *RUN, *GOOD]) == 1
    code, lines, err = check("results=results/partly", "baseline=partly.csv", "update=true", capfd=capfd)
    assert code == 1
    assert lines[-1] == "partly.csv: 1 entry, kept for later checks"
    assert "left out of the baseline" in err
    said = re.search(r"advcli (drop results=\S+ dataset=\w+ 'method=\w+ linear'), then update", err)
    assert said is not None
    assert read_baseline(Path("partly.csv"))["dataset"].tolist() == ["iris"]
    # what it says works
    assert main(shlex.split(said[1])) == 0
    assert check("results=results/partly", "baseline=partly.csv", "update=true", capfd=capfd)[0] == 0


def test_what_cannot_be_checked_is_refused(checked: str, capfd: pytest.CaptureFixture[str]) -> None:
    old = checked
    before = sorted(Path.cwd().rglob("*"))
    for words, said in (
        ([old], "advcli check needs baseline=FILE.csv"),
        ([old, "baseline=none.csv"], "write one with --update"),
        ([old, "baseline=none.csv", "junit=a.xml", "--update"], "junit=... needs a baseline"),
        (["results=results/odl", "baseline=none.csv"], "no results folder results/odl; did you mean old?"),
        ([old, "baseline=results/old/runs.csv"], "is no baseline"),
        ([old, "baseline=none.csv", "update=perhaps"], "update=perhaps is not valid; give true or false"),
    ):
        code, lines, err = check(*words, capfd=capfd)
        assert (code, lines) == (2, []), words
        assert said in err
        assert len(err.splitlines()) == 1
    assert [error_of("a.xml")] == ["junit=... needs a baseline to compare with, and none.csv is not there yet; leave it out"]
    assert sorted(Path.cwd().rglob("*")) == sorted([*before, Path("a.xml").absolute()])


def test_a_hand_edited_runs_csv_is_found_and_left_as_it_is(checked: str, capfd: pytest.CaptureFixture[str]) -> None:
    value = str(2 / 45)
    rewrite("results/old/runs.csv", "value", value, "0.0")
    before = content()
    code, lines, err = check(checked, "baseline=line.csv", "junit=out.xml", capfd=capfd)
    assert (code, err) == (1, "")
    finding, counts = lines
    assert finding.startswith("results/old/runs.csv, line ")
    remedy = "advcli report results=results/old makes it again from the cells"
    assert finding.endswith(f': value is "0.0", its cell file has "{value}"; {remedy}')
    assert counts == "1 entry: 1 unchanged, 0 moved, 0 missing, 0 new"
    suite = ET.parse("out.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    # no baseline from a folder that contradicts itself
    kept = Path("line.csv").read_bytes()
    code, lines, err = check(checked, "baseline=line.csv", "--update", capfd=capfd)
    assert (code, lines[0], err) == (1, finding, "advcli: line.csv stays as it was: whether runs.csv or the cells are right is not known\n")
    assert Path("line.csv").read_bytes() == kept
    assert content() == before
    # the remedy is one
    assert main(["report", "results=results/old"]) == 0
    assert check(checked, "baseline=line.csv", capfd=capfd)[0] == 0


def test_the_check_writes_nothing_into_the_folder(checked: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("results/old/runs.csv").unlink()
    Path("results/old/cells/.lock").unlink()
    before = content()
    assert check(checked, "baseline=line.csv", "junit=out.xml", capfd=capfd)[0] == 0
    assert check(checked, "baseline=line.csv", "--update", capfd=capfd)[0] == 0
    assert check(checked, "baseline=missing.csv", capfd=capfd)[0] == 2
    assert content() == before


def test_a_green_junit_file_does_not_survive_an_error(
    checked: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    green = Path("out.xml").read_bytes()
    Path("broken.csv").write_text("a,b\n1,2\n")
    for words, said in (
        ([checked, "baseline=none.csv"], "no baseline"),
        ([checked, "baseline=broken.csv"], "broken.csv is no baseline"),
        (["results=results/odl", "baseline=line.csv"], "no results folder results/odl; did you mean old?"),
        ([checked], "advcli check needs baseline=FILE.csv"),
        ([checked, "baseline=line.csv", "report.test=ttst"], "ttst"),
        # before anything is composed
        (["resuts=results/old", "baseline=line.csv"], "unknown key 'resuts'"),
        ([checked, "baseline=line.csv", "loss=zero_won"], "unknown loss 'zero_won'"),
        ([checked, "baseline=line.csv", "--updat"], "--updat"),
        ([checked, "baseline=line.csv", "-m"], "one thing at a time"),
    ):
        Path("out.xml").write_bytes(green)
        code, _, err = check(*words, "junit=out.xml", capfd=capfd)
        assert code == 2, words
        assert said in error_of("out.xml")
        assert re.fullmatch(rf"advcli: {re.escape(error_of('out.xml'))} \[ADV\d+\]\n", err)

    def interrupt(*_: object, **__: object) -> None:
        assert error_of("out.xml") == "the check was ended before its result", "what a killed check leaves"
        raise KeyboardInterrupt

    Path("out.xml").write_bytes(green)
    with monkeypatch.context() as patch:
        patch.setattr(reports_check, "check_folder", interrupt)
        assert check(checked, "baseline=line.csv", "junit=out.xml", capfd=capfd)[0] == 130
    assert error_of("out.xml") == "KeyboardInterrupt"
    # a defect of ours too
    Path("out.xml").write_bytes(green)
    with monkeypatch.context() as patch:
        patch.setattr(reports_check, "check_folder", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(["check", checked, "baseline=line.csv", "junit=out.xml"])
    assert error_of("out.xml") == "division by zero"
    assert check(checked, "baseline=line.csv", "junit=out.xml", capfd=capfd)[0] == 0
    assert Path("out.xml").read_bytes() == green


def test_a_pipe_gets_the_result_alone(checked: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The error that stands in a file from the start would end the reading."""
    os.mkfifo("pipe")
    for words, code in ((["baseline=line.csv"], 0), (["baseline=none.csv"], 2)):
        found: list[bytes] = []
        thread = threading.Thread(target=lambda found=found: found.append(Path("pipe").read_bytes()), daemon=True)
        thread.start()
        assert check(checked, *words, "junit=pipe", capfd=capfd)[0] == code
        thread.join()
        assert found[0].count(b"<testsuites") == 1
        assert (b'errors="0"' in found[0]) == (code == 0)
    assert Path("pipe").is_fifo()


def test_no_other_file_is_replaced_by_the_junit_file(checked: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = content() | {"line.csv": Path("line.csv").read_text()}
    for name in ("line.csv", "results/old/runs.csv"):
        code, _, err = check(checked, "baseline=line.csv", f"junit={name}", capfd=capfd)
        assert (code, err) == (2, f"advcli: {name} is there already and no JUnit file; choose another junit=FILE.xml [ADV001]\n")
    assert content() | {"line.csv": Path("line.csv").read_text()} == before
    Path("empty.xml").touch()
    assert check(checked, "baseline=line.csv", "junit=empty.xml", capfd=capfd)[0] == 0


def test_many_passes_are_a_warning(checked: str, capfd: pytest.CaptureFixture[str]) -> None:
    (file,) = Path("results/old/cells").glob("*.json")
    shard = json.loads(file.read_text())
    at = shard["runs"]["columns"].index("passes")
    for row in shard["runs"]["values"]:
        row[at] *= 4
    file.write_text(sealed(shard))
    assert main(["report", checked]) == 0
    code, lines, err = check(checked, "baseline=line.csv", "junit=out.xml", capfd=capfd)
    assert (code, lines) == (0, ["1 entry: 1 unchanged, 0 moved, 0 missing, 0 new"])
    passes = read_baseline(Path("line.csv"))["passes"].iloc[0]
    assert err == f"advcli: warning: iris, zero_one linear: {4 * passes:.4g} passes per fit, {passes:.4g} in the baseline\n"
    assert "passes per fit" in Path("out.xml").read_text()


def test_the_rows_of_a_run_are_in_one_order() -> None:
    """Data set, method, seed, cell; then split; then the metric of the search, then the others as the protocol lists them."""
    words = ["-m", "dataset=wine,iris", "loss=zero_one,cs", "protocol.n_splits=3", "hyper.C=1", "solver.tol=1e-3"]
    assert main([*words, "protocol.metrics=[mae,accuracy]", "workers=1", "name=rows"]) == 0
    with Path("results/rows/runs.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == RUN_COLUMNS
    columns = ("dataset", "method", "split", "metric")
    wanted = itertools.product(("iris", "wine"), ("cs linear", "zero_one linear"), "123", ("error", "mae", "accuracy"))
    assert [tuple(row[head.index(name)] for name in columns) for row in rows] == list(wanted)


def test_the_projects_own_baseline_covers_its_preset() -> None:
    """`make test` runs the preset and compares; here: both name the same cells, and every cell knows its splits."""
    preset = yaml.safe_load((conf_dir() / "experiment" / "ci_check.yaml").read_text(encoding="utf-8"))
    swept = preset["hydra"]["sweeper"]["params"]
    baseline = read_baseline(ROOT / "results" / "baselines" / "ci_check.csv")
    cells = itertools.product(swept["dataset"].split(","), (f"{loss} linear" for loss in swept["loss"].split(",")))
    assert set(zip(baseline["dataset"], baseline["method"], strict=True)) == set(cells)
    with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = hydra.compose("config", ["+experiment=ci_check"])
    assert set(baseline["n"]) == {config.protocol.n_splits}
    assert (baseline["values"] != "").all()
    assert baseline[list(baselines.COST_COLUMNS)].notna().all(axis=None)
    assert {*baseline.columns} == {*baselines.BASELINE_COLUMNS}
