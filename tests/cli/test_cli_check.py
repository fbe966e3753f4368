"""`advcli check`: exit code 0 while numbers stay, 1 when one moved; baselines that are written, shown and kept."""

from __future__ import annotations

import csv
import itertools
import xml.etree.ElementTree as ET
from pathlib import Path

import hydra
import pytest
import yaml

from advcli.cli import main
from advcli.paths import conf_dir
from advcli.reports.check import read_baseline

ROOT = Path(__file__).resolve().parents[2]
RUN = ["loss=zero_one", "protocol.n_splits=6", "protocol.metrics=[]", "solver.tol=1e-4"]
GOOD, BAD = ["hyper.C=1"], ["hyper.C=1e-7"]  # the second one is regularised to nothing


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADVCLI_DATA", raising=False)


def run(name: str, *words: str) -> str:
    assert main(["dataset=iris", f"name={name}", *RUN, *words]) == 0
    return f"results=results/{name}"


def check(*words: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    capfd.readouterr()
    code = main(["check", *words])
    out, err = capfd.readouterr()
    return code, out.splitlines(), err


def test_unmoved_numbers_pass_and_moved_or_missing_ones_fail(capfd: pytest.CaptureFixture[str]) -> None:
    old = run("old", *GOOD)
    run("old", *GOOD, "loss=ww")
    code, lines, err = check(old, "baseline=base/line.csv", "--update", capfd=capfd)
    assert (code, err) == (0, "")
    assert lines == ["base/line.csv: 2 cells, kept for later checks"]

    # the same again from nothing: another folder, same splits
    again = run("again", *GOOD)
    run("again", *GOOD, "loss=ww")
    unmoved = (0, ["2 cells: 2 unchanged, 0 moved, 0 missing, 0 new"], "")
    assert check(again, "baseline=base/line.csv", capfd=capfd) == unmoved

    broken = run("broken", *BAD)
    run("broken", *BAD, "loss=cs")
    code, lines, _ = check(broken, "baseline=base/line.csv", "junit=made/out.xml", capfd=capfd)
    assert code == 1
    assert [line.split(",")[0] for line in lines] == ["new: iris", "missing: iris", "moved: iris", "3 cells: 0 unchanged"]
    assert lines[1].endswith("-> nothing (not in the results)")
    mean = 100 * read_baseline(Path("base/line.csv")).set_index("method").loc["zero_one linear", "mean"]
    assert lines[2].startswith(f"moved: iris, zero_one linear, error: {mean:.2f} (")
    assert "(worse), p = " in lines[2]
    assert "margin " in lines[2]
    suite = ET.parse("made/out.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("advcli check line.csv", "3", "2", "1")


def test_other_splits_are_compared_within_the_margin(capfd: pytest.CaptureFixture[str]) -> None:
    assert check(run("old", *GOOD), "baseline=line.csv", "update=true", capfd=capfd)[0] == 0
    code, lines, _ = check(run("fresh", *GOOD, "seed=1"), "baseline=line.csv", capfd=capfd)
    assert (code, lines) == (0, ["1 cell: 1 unchanged, 0 moved, 0 missing, 0 new"])
    code, lines, _ = check(run("bad", *BAD, "seed=1"), "baseline=line.csv", capfd=capfd)
    assert code == 1
    assert "(equivalence), margin" in lines[0]


def test_an_update_shows_the_difference_and_keeps_tolerances(capfd: pytest.CaptureFixture[str]) -> None:
    check(run("old", *GOOD), "baseline=line.csv", "--update", capfd=capfd)
    with Path("line.csv").open() as file:
        head, row = csv.reader(file)
    row[head.index("tolerance")] = "0.0123"
    Path("line.csv").write_text("\n".join([",".join(head), ",".join(row)]) + "\n")
    broken = run("broken", *BAD)
    code, lines, _ = check(broken, "baseline=line.csv", "--update", capfd=capfd)
    assert code == 0
    assert lines[0].startswith("moved: iris, zero_one linear, error: ")
    assert lines[-1] == "line.csv: 1 cell, kept for later checks"
    assert read_baseline(Path("line.csv"))["tolerance"].tolist() == [0.0123]
    assert check(broken, "baseline=line.csv", capfd=capfd)[0] == 0


def test_what_cannot_be_checked_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    old = run("old", *GOOD)
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
    assert sorted(Path.cwd().rglob("*")) == before


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
