"""`advcli import`: files of scores become folders that report, check and export take; bad files are answered in one line."""

from __future__ import annotations

import json
import random
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

from advcli.cli import main
from advcli.reports.regression.baseline import read_baseline
from advcli.results import ResultsFolder

pytestmark = pytest.mark.usefixtures("elsewhere")


def run(*words: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capfd.readouterr()
    code = main(list(words))
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    return code, out, err


def write(name: str, *lines: str, encoding: str = "utf-8") -> str:
    Path(name).write_bytes("\r\n".join([*lines, ""]).encode(encoding))
    return name


@pytest.fixture
def sheet(elsewhere: None) -> str:
    """What a spreadsheet saves: a byte-order mark, semicolons, percent signs, an empty row, notes and empty columns."""
    rows = ["\ufeffData set;Model name;Fold;Accuracy;Notes;;"]
    rows += [
        f"{dataset};{model};{fold};{base + 3 * at + fold % 2}.5 %;{'rerun' if fold == 2 else ''};;"
        for dataset, base in (("Iris", 80), ("Wine", 70))
        for at, model in enumerate(("Forest", "Boosting, deep"))
        for fold in (1, 2, 3)
    ]
    return write("sheet.csv", *rows[:5], ";;;;;;", *rows[5:])


@pytest.fixture
def answers(elsewhere: None) -> str:
    """Two systems on 60 questions, b right where a is and on some more."""
    random.seed(0)
    lines = []
    for question in range(60):
        a = random.random() < 0.6
        b = a or random.random() < 0.4
        lines += [
            json.dumps({"question_id": f"q{question}", "model": m, "correct": right, "tokens": [1]}) for m, right in (("a", a), ("b", b))
        ]
    Path("answers.jsonl").write_text("\n".join(lines) + "\n")
    return "answers.jsonl"


def test_a_messy_sheet_is_read(sheet: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("import", sheet, "out=results/theirs", capfd=capfd)
    assert (code, err) == (0, "")
    said, made = out.splitlines()
    columns = "dataset = 'Data set'; method = 'Model name'; split = 'Fold'; value = 'Accuracy'; ignored: Notes"
    assert said == f"{columns}; metric accuracy (higher is better)"
    assert made.startswith("results/theirs: 2 methods, 2 data sets, 12 scores; advcli report results=results/theirs")
    rows = ResultsFolder("results/theirs").runs()
    assert rows.loc[rows["dataset"] == "Iris", "value"].tolist() == [0.845, 0.835, 0.845, 0.815, 0.805, 0.815]
    assert set(rows["method"]) == {"Forest", "Boosting, deep"}
    code, out, err = run("report", "results=results/theirs", capfd=capfd)
    assert code == 0
    assert (
        "sizes of training and test parts are not known, which the corrected resampled t-test needs: Wilcoxon signed-rank test there" in out
    )
    page = Path("results/theirs/report.html").read_text()
    assert "4 cells imported: numbers of another program, without certificates" in page
    assert "imported from sheet.csv (sha256 " in page
    assert "no certificate" not in page
    assert "largest certified" not in page


def test_actions_take_a_folder_that_has_only_columns_with_a_value(answers: str, sheet: str, capfd: pytest.CaptureFixture[str]) -> None:
    few = "dataset,loss,method,split,metric,value,status,cell,higher_is_better"
    for file, heading in ((sheet, f"{few},split_name"), (answers, f"{few},item".replace("value,", "value,n_test,"))):
        assert run("import", file, "out=results/x", capfd=capfd)[0] == 0
        assert sorted(path.name for path in Path("results/x").glob("*.csv")) == ["runs.csv"]
        assert Path("results/x/runs.csv").read_text().splitlines()[0] == heading
        code, out, err = run("report", "results=results/x", capfd=capfd)
        assert (code, "search.csv" in out, "runs.csv" in out, err) == (0, False, True, "")
        assert run("check", "results=results/x", "baseline=b.csv", "--update", capfd=capfd)[0] == 0
        assert "0 moved, 0 missing, 0 new" in run("check", "results=results/x", "baseline=b.csv", capfd=capfd)[1]
        assert run("export", "csv", "results=results/x", "out=x.csv", capfd=capfd)[0] == 0
        assert Path("x.csv").read_text() == Path("results/x/runs.csv").read_text()
        Path("results/x").rename("results/y")
        assert run("import", file, "out=results/x", capfd=capfd)[0] == 0
        code, out, err = run("diff", "results/x", "results/y", capfd=capfd)
        assert (code, err) == (0, "")
        assert "no setting differs" in out
        assert "0 differ" in out
        code, out, err = run("report", "results=[results/x,results/y]", "out=both", capfd=capfd)
        assert (code, "search.csv" in out) == (0, False)
        for made in ("results/x", "results/y", "both"):
            shutil.rmtree(made)
        Path("b.csv").unlink()


def test_sizes_of_parts_bring_the_corrected_test(sheet: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("import", sheet, "out=results/sized", "n_train=100", "n_test=50", capfd=capfd)[0] == 0
    rows = ResultsFolder("results/sized").runs()
    assert rows[["n_train", "n_test"]].drop_duplicates().values.tolist() == [[100, 50]]
    out = run("report", "results=results/sized", capfd=capfd)[1]
    assert "corrected resampled t-test (Nadeau and Bengio 2003)" in out
    assert "are not known" not in out


def test_answers_to_questions_get_the_tests_of_items(answers: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("import", answers, "out=results/quiz", capfd=capfd)
    assert code == 0
    assert out.startswith("method = 'model'; data set = answers; item = 'question_id'; value = 'correct'; metric accuracy")
    out = run("report", "results=results/quiz", capfd=capfd)[1]
    assert "accuracy in percent: mean (standard error) over 60 items" in out
    assert "exact McNemar test, two-sided, on these items" in out
    text = Path("results/quiz/report.md").read_text()
    assert "Items: accuracy in percent" in text
    assert "Wilson's 95 % interval" in text
    assert "paired bootstrap" in text
    assert not list(Path("results/quiz/plots").glob("splits*"))  # boxes of zeros and ones show nothing


def test_what_is_exported_comes_back(answers: str, sheet: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("import", answers, "out=results/quiz", capfd=capfd)[0] == 0
    assert run("export", "csv", "results=results/quiz", "out=quiz.csv", capfd=capfd)[0] == 0
    assert run("import", "quiz.csv", "out=results/again", "item=item", capfd=capfd)[0] == 0
    columns = ["dataset", "method", "split", "metric", "value", "item", "n_test"]
    one, other = (ResultsFolder(f"results/{name}").runs()[columns] for name in ("quiz", "again"))
    pd.testing.assert_frame_equal(one, other)


def test_parquet_is_read_where_pyarrow_is(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"dataset": ["x", "y"] * 2, "method": list("aabb"), "rmse": [0.1 + 0.2, 1.5, 2.0, 1e-300]})
    frame.to_parquet("scores.parquet")
    assert run("import", "scores.parquet", "out=results/p", capfd=capfd)[0] == 0
    assert sorted(ResultsFolder("results/p").runs()["value"]) == sorted(frame["rmse"])

    def absent(path: Path) -> None:
        raise ImportError

    monkeypatch.setattr(pd, "read_parquet", absent)
    code, out, err = run("import", "scores.parquet", "out=results/q", capfd=capfd)
    assert (code, out) == (2, "")
    assert (
        err
        == (
            f'advcli: {Path("scores.parquet").absolute()}: reading parquet files takes the package pyarrow; pip install "advcli[tables]", '
            "or save as CSV\n"
        )
        or 'takes the package pyarrow; pip install "advcli[tables]", or save as CSV' in err
    )


@pytest.mark.parametrize(
    ("lines", "words", "said"),
    [
        (["dataset,method,accuracy", "x,a,0.5", "x,a,0.6"], [], "t.csv: line 2 and line 3 are both of x, a, accuracy; remove one"),
        (["dataset,method,accuracy", "", "x,a,0.5", "x,b,"], [], "t.csv: line 4: accuracy has no value (empty); leave out the row"),
        (["dataset,method,accuracy", 'x,"a', 'b",0.5', "x,c,oops"], ["value=accuracy"], "t.csv: line 4: accuracy = 'oops' is not a number"),
        (["dataset,method,accuracy", "x,a,0.5"], ["method=algo"], "method=algo: the table has no such column"),
        (["dataset,method,accuracy", "x,a,0.5,7"], [], "line 2: 4 fields, the heading has 3"),
        (["dataset,method,accuracy,accuracy", "x,a,0.5,7"], [], "more than one column named 'accuracy'"),
        (["dataset,method,,accuracy", "x,a,7,0.5"], [], "column 3 has no name in the heading"),
        (["dataset,method,points", "x,a,7"], ["value=points"], "give direction=higher or direction=lower"),
        (["dataset,method,points", "x,a,7"], ["value=points", "direction=up"], "imported.direction=up is not valid"),
        (["dataset,method,accuracy", "x,a,0.5"], ["incomplete=drop"], "imported.incomplete=drop is not valid"),
        (["dataset,method,accuracy", "x,a,0.5"], ["colour=blue"], "unknown key 'colour'"),
        (
            ["dataset,method,accuracy", "x,a,0.5", "x,b,0.5", "y,a,0.5"],
            [],
            "the table is incomplete: b has no accuracy on y; choose incomplete=",
        ),
        (["dataset,method,accuracy"], [], "the table has no rows with scores"),
        ([""], [], "is empty"),
    ],
)
def test_bad_tables_are_answered_in_one_line(lines: list[str], words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    write("t.csv", *lines)
    code, out, err = run("import", "t.csv", "out=results/theirs", *words, capfd=capfd)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert not Path("results").exists()


def test_bad_lines_of_json_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    for text, said in (('{"model": "a"', "line 1: no JSON"), ("[1]", "line 1: no JSON object"), ('{"model": "a"}', "no column of scores")):
        Path("t.jsonl").write_text(text + "\n")
        code, out, err = run("import", "t.jsonl", "out=results/theirs", capfd=capfd)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert said in err


def test_what_import_needs_is_said(sheet: str, capfd: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        ([], "advcli import needs a FILE first"),
        (["out=results/x"], "advcli import needs a FILE first"),
        ([sheet], "advcli import needs out=results/NAME"),
        (["none.csv", "out=results/x"], "there is no file none.csv"),
        ([sheet, f"out={sheet}"], "is a file; give the name of a folder"),
    ):
        code, out, err = run("import", *words, capfd=capfd)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert said in err
    assert run("import", sheet, "out=results/x", capfd=capfd)[0] == 0
    write(sheet, "dataset,method,accuracy", "x,a,0.5")
    code, out, err = run("import", sheet, "out=results/x", capfd=capfd)
    assert (code, out) == (2, "")
    assert "results/x holds other results; remove it, or choose another out=" in err
    assert "there is nothing to verify" in run("verify", "results=results/x", capfd=capfd)[2]


# ---- the gate -----------------------------------------------------------------------------------------------------------
HEAD = "dataset,method,accuracy,seconds"


@pytest.fixture
def gated(elsewhere: None, capfd: pytest.CaptureFixture[str]) -> None:
    """A baseline, and a folder in which one accuracy fell by 0.5 points, one rose by 2, and one time grew by a tenth."""
    write("old.csv", HEAD, "x,a,0.8,10", "x,b,0.7,20")
    write("new.csv", HEAD, "x,a,0.795,11", "x,b,0.72,20")
    for name in ("old", "new"):
        assert run("import", f"{name}.csv", f"out=results/{name}", capfd=capfd)[0] == 0
    assert run("check", "results=results/old", "baseline=line.csv", "--update", capfd=capfd)[0] == 0


@pytest.mark.usefixtures("gated")
@pytest.mark.parametrize(
    ("words", "code", "counts"),
    [
        ([], 1, "4 entries: 1 unchanged, 3 moved, 0 missing, 0 new"),
        (["tolerance.accuracy=0.03"], 1, "4 entries: 3 unchanged, 1 moved, 0 missing, 0 new"),
        (["tolerance.accuracy=0.03", "relative_tolerance.seconds=0.1"], 0, "4 entries: 4 unchanged, 0 moved, 0 missing, 0 new"),
        (["tolerance.accuracy=0.03", "tolerance.seconds=0.99"], 1, "4 entries: 3 unchanged, 1 moved, 0 missing, 0 new"),
        (["tolerance.accuracy=0.03", "tolerance.seconds=0.5", "relative_tolerance.seconds=0.05"], 0, "4 entries: 4 unchanged"),
        (["floor=true"], 1, "4 entries: 1 unchanged, 2 moved, 0 missing, 0 new, 1 better"),
        (
            ["floor=true", "tolerance.accuracy=0.01", "tolerance.seconds=1"],
            0,
            "4 entries: 3 unchanged, 0 moved, 0 missing, 0 new, 1 better",
        ),
    ],
)
def test_tolerances_and_the_floor_decide(words: list[str], code: int, counts: str, capfd: pytest.CaptureFixture[str]) -> None:
    found, out, _ = run("check", "results=results/new", "baseline=line.csv", *words, "junit=out.xml", capfd=capfd)
    assert found == code
    assert out.splitlines()[-1].startswith(counts)
    moved = counts.partition(" unchanged, ")[2].partition(" moved")[0] or "0"
    assert ET.parse("out.xml").getroot().get("failures") == moved


@pytest.mark.usefixtures("gated")
def test_the_floor_only_rises(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("check", "results=results/new", "baseline=line.csv", "floor=true", "--update", capfd=capfd)[0] == 0
    means = read_baseline(Path("line.csv")).set_index(["method", "metric"])["mean"]
    assert means.to_dict() == {("a", "accuracy"): 0.8, ("b", "accuracy"): 0.72, ("a", "seconds"): 10.0, ("b", "seconds"): 20.0}
    write("less.csv", HEAD, "x,a,0.9,5")  # b is gone
    assert run("import", "less.csv", "out=results/less", capfd=capfd)[0] == 0
    assert run("check", "results=results/less", "baseline=line.csv", "floor=true", "--update", capfd=capfd)[0] == 0
    means = read_baseline(Path("line.csv")).set_index(["method", "metric"])["mean"]
    assert means.to_dict() == {("a", "accuracy"): 0.9, ("b", "accuracy"): 0.72, ("a", "seconds"): 5.0, ("b", "seconds"): 20.0}
    assert run("check", "results=results/new", "baseline=line.csv", "floor=true", capfd=capfd)[0] == 1


@pytest.mark.usefixtures("gated")
def test_a_summary_is_written_for_a_pull_request(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["check", "results=results/new", "baseline=line.csv"]
    assert run(*words, "summary=s.md", capfd=capfd)[0] == 1
    text = Path("s.md").read_text()
    assert text.startswith("### advcli check line.csv: failed\n")
    assert "| **moved** | x | a | accuracy | 80.00 (-) % | 79.50 (-) % |" in text
    assert run(*words, "summary=s.md", "tolerance.accuracy=1", "tolerance.seconds=9", capfd=capfd)[0] == 0
    assert Path("s.md").read_text() == "### advcli check line.csv: passed\n\n4 entries: 4 unchanged\n"
    Path("README.md").write_text("mine\n")
    code, out, err = run(*words, "summary=README.md", capfd=capfd)
    assert (code, out) == (2, "")
    assert "is there already and no summary of a check" in err
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(Path("README.md").absolute()))
    assert run(*words, "summary=README.md", capfd=capfd)[0] == 1
    assert Path("README.md").read_text().startswith("mine\n### advcli check line.csv: failed\n")


@pytest.mark.usefixtures("gated")
def test_a_tolerance_that_cannot_be_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for word, said in (
        ("tolerance.acuracy=0.1", "tolerance.acuracy: no entry has the metric 'acuracy'; did you mean accuracy?"),
        ("tolerance.accuracy=-1", "every value must be a finite number of at least 0"),
        ("tolerance.accuracy=much", "give {NAME: a finite number of at least 0}"),
        ("relative_tolerance=0.1", "give {NAME: a finite number of at least 0}"),
        ("floor=high", "floor=high is not valid"),
    ):
        code, out, err = run("check", "results=results/new", "baseline=line.csv", word, capfd=capfd)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert said in err
    assert "does not read the key tolerance" in run("report", "results=results/new", "tolerance.accuracy=1", capfd=capfd)[2]
