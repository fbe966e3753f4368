"""Tables of chosen methods, of several folders, and beside published numbers, on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from advcli.cli import main
from advcli.reports.published_numbers import load_published

QUICK = ["hyper.C=1", "protocol.n_splits=3", "workers=1", "hydra/launcher=basic", "report=false"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of results: a and b."""
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["-m", "dataset=iris", "loss=zero_one,cs", *QUICK, "quiet=true", "name=a"]) == 0
        assert main(["dataset=iris", "loss=ww", *QUICK, "quiet=true", "name=b"]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def said(capfd: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    capfd.readouterr()
    assert main(list(words)) == code
    out, err = capfd.readouterr()
    if code == 2:
        assert len(err.splitlines()) == 1
    return out + err


def test_one_table_of_two_folders(capfd: pytest.CaptureFixture[str]) -> None:
    text = said(capfd, "report", "results=results/a,results/b", "out=both", "report.methods=[ww,cs]", "report.names={cs: Hinge}", code=0)
    assert re.split(r"\s{2,}", text.splitlines()[0]) == ["dataset", "ww linear", "Hinge"]
    assert "report: both/report.html" in text
    assert not Path("both/runs.csv").exists()
    said(capfd, "export", "csv", "results=[results/a,results/b]", "out=rows.csv", "report.methods=[ww,cs]", code=0)
    rows = pd.read_csv("rows.csv")
    assert set(zip(rows["loss"], rows["results"], strict=True)) == {("ww", "b"), ("cs", "a")}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["report", "results=results/a", "report.methods=[zero_on]"], "did you mean zero_one"),
        (["export", "csv", "results=results/a", "out=none.csv", "report.datasets=[irsi]"], "did you mean iris"),
        (["report", "results=results/a,results/b"], "needs out=FOLDER"),
        (["report", "results=results/a", "out=results/b"], "is a results folder with tables of its own"),
        (["report", "figure=loss_matrix", "out=x"], "a figure goes to results_dir"),
        (["report", "results=results/a,results/bb", "out=both"], "no results folder results/bb"),
        (["check", "results=[results/a,results/b]", "baseline=x.csv"], "is for advcli report and advcli export"),
        (["report", "results=results/a", "report.names=cs"], "give {NAME: TEXT}, or null"),
        (["-m", "dataset=iris", "loss=zero_one,cs", "report.methods=[zero_on]", *QUICK, "name=c"], "did you mean zero_one"),
        (["dataset=iris", "report.names={irsi: Iris}", *QUICK, "name=c"], "did you mean iris"),
    ],
)
def test_what_cannot_be_shown_is_one_line_before_the_work(words: list[str], line: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert line in said(capfd, *words)
    assert not Path("results/c").exists()
    assert not Path("none.csv").exists()


def test_a_run_ends_with_ours_beside_the_published(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["dataset=iris", "published=fathony2018_table2_linear", *QUICK, "name=p"]
    text = said(capfd, "-m", *words, "loss=zero_one,ww", "report.names={ww: WW}", code=0)
    assert "Published numbers beside ours: fathony2018, Table 2." in text
    lines = [re.split(r"\s{2,}", line) for line in text.splitlines() if line.startswith("iris ")]
    beside = {line[1]: line for line in lines if len(line) == 7}
    assert set(beside) == {"zero_one linear", "WW"}
    runs = pd.read_csv("results/p/runs.csv")
    for method, loss in (("zero_one linear", "zero_one"), ("WW", "ww")):
        rows = runs[(runs["loss"] == loss) & (runs["metric"] == "accuracy")]
        values = rows["value"] if len(rows) else 1 - runs.loc[(runs["loss"] == loss) & (runs["metric"] == "error"), "value"]
        _, _, _, published, ours, difference, z = beside[method]
        mean, std = (float(number) for number in re.fullmatch(r"(.+) \((.+)\)", published).groups())  # type: ignore[union-attr]
        assert ours == f"{100 * values.mean():.2f} ({100 * values.std():.2f})"
        assert float(difference) == pytest.approx(100 * values.mean() - mean, abs=0.006)
        wanted = (100 * values.mean() - mean) / ((100 * values.std()) ** 2 / 3 + std**2 / 20) ** 0.5
        assert float(z) == pytest.approx(wanted, abs=0.006)
    one = said(capfd, *words, "loss=cs", code=0)
    assert [line.split("  ")[0] for line in one.splitlines() if re.match(r"iris {2,}", line) and "(" in line].count("iris") == 2
    table = len(load_published("fathony2018_table2_linear"))
    assert f"1 number compared (1 of {table} published)" in one
    assert f"2 numbers compared (2 of {table} published)" in text


def test_fits_and_a_rough_time_of_a_preset(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from advcli.evaluation.sweeps import effort

    monkeypatch.setattr(effort, "_trial", lambda settings, trial: 0.01)
    text = " ".join(said(capfd, "experiment", "show", "ci_check", code=0).split())
    dry = said(capfd, "+experiment=ci_check", "dry_run=true", "quiet=true", code=0)
    fits = int(re.search(r"in all (\d+) fits", dry)[1])  # type: ignore[index]
    assert f"{fits}: {fits - 80} of searches, before a grid grows, and 80 reported ones" in text
    assert "very roughly" in text
    assert "between a fifth of it and five times as long" in text


def test_a_metric_of_kept_predictions_is_one_command_away(capfd: pytest.CaptureFixture[str]) -> None:
    """The refusal names the option, and the sweep's own command with it adds the metric without a fit."""
    line = said(capfd, "report", "results=results/b", "report.metric=balanced_accuracy")
    wanted = re.search(r"protocol\.metrics=\[\S+\]", line)
    assert wanted is not None
    assert "adds it without a fit" in line
    assert "did you mean error" in said(capfd, "report", "results=results/b", "report.metric=eror")
    before = set(pd.read_csv("results/b/runs.csv")["fit_seconds"])
    assert main(["dataset=iris", "loss=ww", *QUICK, "name=b", wanted.group()]) == 0
    assert set(pd.read_csv("results/b/runs.csv")["fit_seconds"]) == before
    assert "balanced accuracy" in said(capfd, "report", "results=results/b", "report.metric=balanced_accuracy", code=0)
