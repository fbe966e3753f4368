"""Bad input, as a user makes it: one clear line on stderr, exit code 2, nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from advcli.cli import main

GOOD = "a,b,label\n" + "".join(f"{i % 7},{i * i % 11},{'xyz'[i % 3]}\n" for i in range(60))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADVCLI_DATA", raising=False)


def refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """Run, check what every refusal has in common, and return its line."""
    before = sorted(Path.cwd().rglob("*"))
    code = main(words)
    out, err = capfd.readouterr()
    assert code == 2, (out, err)
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("advcli: ")
    assert "Traceback" not in err
    assert sorted(Path.cwd().rglob("*")) == before, "something was written"
    return lines[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # unknown names, with the nearest ones
        (["dataset=irsi"], "unknown dataset 'irsi'; did you mean iris"),
        (["loss=zeroone"], "unknown loss 'zeroone'; did you mean zero_one"),
        (["features=linaer"], "unknown features 'linaer'; did you mean linear?"),
        (["solver=aut"], "unknown solver 'aut'; did you mean auto?"),
        (["protocol=standrad"], "unknown protocol 'standrad'; did you mean standard?"),
        (["+experiment=quick"], "unknown experiment 'quick'; did you mean quickstart?"),
        (["losss=ww"], "unknown key 'losss'; did you mean loss?"),
        (["solver.tl=1"], "unknown key 'solver.tl'; did you mean solver.tol"),
        (["hyper.c=1"], "unknown key 'hyper.c'; did you mean hyper.C"),
        (["tol=1"], "unknown key 'tol'; did you mean solver.tol?"),
        (["+seeed=1"], "unknown key 'seeed'; did you mean seed?"),
        (["+dataset.pth=a.csv", "dataset=csv"], "unknown key 'dataset.pth'; did you mean dataset.path"),
        (["protocol.metric=eror"], "no metric 'eror'; did you mean error?"),
        (["rnu"], "unknown action 'rnu'; did you mean run?"),
        (["data", "lst"], "unknown action 'data lst'; did you mean list?"),
        (["data"], "data needs list, show or fetch"),
        (["data", "show"], "data show needs the name of a data set"),
        (["data", "show", "irsi"], "did you mean iris"),
        # values
        (["hyper.C=0"], "hyper.C=0 is not valid"),
        (["hyper.C=-1"], "hyper.C=-1 is not valid"),
        (["hyper.C=nan"], "hyper.C=nan is not valid"),
        (["hyper.C=inf"], "hyper.C=inf is not valid"),
        (["hyper.C=large"], "hyper.C=large is not valid"),
        (["hyper.lambda=0"], "hyper.lambda=0 is not valid"),
        (["hyper.C=1", "hyper.lambda=1"], "fix only one"),
        (["hyper.gamma=1"], "hyper.gamma is no hyper-parameter of this method"),
        (["solver.tol=0"], "solver.tol=0 is not valid; give a finite number above 0"),
        (["solver.tol=-1e-3"], "solver.tol=-0.001 is not valid"),
        (["solver.tol=small"], "solver.tol=small is not valid"),
        (["solver.search_tol=0"], "solver.search_tol=0 is not valid"),
        (["solver.max_passes=0"], "solver.max_passes=0 is not valid; give a whole number of at least 1"),
        (["protocol.folds=1"], "protocol.folds=1 is not valid; give a whole number of at least 2"),
        (["protocol.n_splits=0"], "protocol.n_splits=0 is not valid"),
        (["protocol.n_splits=2.5"], "protocol.n_splits=2.5 is not valid"),
        (["protocol.alpha=1"], "protocol.alpha=1 is not valid; give a number between 0 and 1"),
        (["protocol.train_size=1.2"], "protocol.train_size=1.2 is not valid"),
        (["protocol.test=wilcox"], "protocol.test=wilcox is not valid; did you mean wilcoxon?"),
        (["protocol.stage1.regularisation=[]"], "protocol.stage1.regularisation=[] is empty"),
        (["protocol.stage1.regularisation=[1,0]"], "every element must be a finite number above 0"),
        (["protocol.stage1.regularisation=[a]"], "protocol.stage1.regularisation=['a'] is not valid"),
        (["seed=-1"], "seed=-1 is not valid"),
        (["workers=0"], "workers=0 is not valid"),
        (["name=../elsewhere"], "name=../elsewhere is not valid"),
        (["name="], "name= is not valid"),
        (["hyper=3"], "hyper=3 is not a group of options"),
        (["loss=null"], "a config group takes the name of one of its choices"),
        (["~protocol.folds"], "key 'protocol.folds' is missing"),
        (["results=results/a"], "the key results is for advcli report"),
        # the command line itself
        (["dataset=iris", "wine"], "cannot read 'wine'"),
        (['dataset="iris'], "cannot read 'dataset=\"iris'"),
        (["dataset=iris", "report"], "an action stands first: advcli report ..."),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["--cfg", "everything"], "invalid choice: 'everything'"),
        (["--config-dir", "nowhere"], "nowhere' not found"),
        (["experiment=quickstart"], "add it with +experiment=NAME"),
        (["dataset=iris,wine"], "'dataset=iris,wine' gives several values: add -m"),
        (["report", "-m"], "leave out -m"),
        (["report", "results=results/nowhere"], "no results folder results/nowhere"),
        # sweeps: refused before the first cell starts
        (["-m", "loss=zero_one,zerone"], "unknown loss 'zerone'; did you mean zero_one"),
        (["-m", "dataset=iris,wien"], "unknown dataset 'wien'; did you mean wine"),
        (["-m", "hyper.C=1,0"], "hyper.C=0 is not valid"),
        (["-m", "solver.tol=1e-3,0"], "solver.tol=0 is not valid"),
        (["-m", "loss=ww,cs", "protocol.fold=3"], "unknown key 'protocol.fold'; did you mean protocol.folds"),
        (["-m", "loss=ww,cs", "hyper.gamma=1"], "hyper.gamma is no hyper-parameter of this method"),
        (["-m", "name=a,b"], "name must be the same for all cells of a sweep"),
        (["-m", "dataset=csv", "dataset.path=a.csv,b.csv"], "dataset.path varies under one name"),
        (["+experiment=quickstart", "loss=zerone"], "unknown loss 'zerone'"),
        # data
        (["dataset=csv"], "dataset.path"),
        (["dataset=csv", "dataset.path=nowhere.csv", "dataset.target=label"], "nowhere.csv"),
        (["dataset=glass"], "advcli data fetch glass"),
        (["protocol=author_splits"], "the authors published no splits"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert said in refused(words, capfd)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        (GOOD.replace("label", "lable", 1), "did you mean lable?"),
        (GOOD.replace("a,b,label", "a,a,label", 1), "my.csv"),
        (GOOD.replace("\n3,9,x", "\nthree,9,x", 1), "dataset.categorical"),
        (GOOD.replace("\n3,9,x", "\n,9,x", 1), "my.csv"),
        (GOOD.replace("\n3,9,x", "\ninf,9,x", 1), "my.csv"),
        (GOOD.replace("y", "x").replace("z", "x"), "single class 'x'"),
        (GOOD + "1,2,rare\n1,3,rare\n", "rare"),
    ],
    ids=["empty", "target", "duplicate", "text", "missing", "infinite", "one class", "small class"],
)
def test_bad_table_is_one_line(content: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert content != GOOD
    Path("my.csv").write_text(content, encoding="utf-8")
    line = refused(["dataset=csv", "dataset.path=my.csv", "dataset.target=label", "name=made"], capfd)
    assert said in line


def test_good_table_of_the_tests_above_is_accepted(capfd: pytest.CaptureFixture[str]) -> None:
    """The cases above must be refused for their fault, not for something else."""
    Path("my.csv").write_text(GOOD, encoding="utf-8")
    words = ["dataset=csv", "dataset.path=my.csv", "dataset.target=label", "hyper.C=1", "protocol.n_splits=2", "solver.tol=0.01"]
    assert main(words) == 0


@pytest.mark.parametrize("words", [[], ["-m", "loss=zero_one,cs"]], ids=["run", "sweep"])
def test_results_folder_that_cannot_be_made(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("taken").write_text("a file, not a folder", encoding="utf-8")
    assert "taken" in refused([*words, "results_dir=taken", "name=run"], capfd)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc, which nobody may write to")
def test_results_folder_where_nobody_may_write(capfd: pytest.CaptureFixture[str]) -> None:
    assert "/proc/advcli" in refused(["results_dir=/proc/advcli", "name=run"], capfd)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="the superuser may write everywhere")
def test_results_folder_without_permission(capfd: pytest.CaptureFixture[str]) -> None:
    Path("locked").mkdir(mode=0o555)
    assert "permission" in refused(["results_dir=locked", "name=run"], capfd).lower()


def test_verb_with_a_broken_results_folder(capfd: pytest.CaptureFixture[str]) -> None:
    Path("results/empty").mkdir(parents=True)
    assert "results/empty" in refused(["report", "results=results/empty"], capfd)
