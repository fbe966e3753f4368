"""Bad input, as a user makes it: one clear line on stderr, exit code 2, nothing half-written."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import hydra
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig, OmegaConf

from advcli.cli import main
from advcli.config import validate
from advcli.core.errors import ConfigError
from advcli.core.paths import conf_dir
from advcli.evaluation import runner
from advcli.reports.regression.baseline import BASELINE_COLUMNS
from advcli.results.folder import ResultsFolder

CUT = ["dataset.target=b", "dataset.drop=[label]", "dataset.cut=equal_width"]
GOOD = "a,b,label\n" + "".join(f"{i % 7},{i * i % 11},{'xyz'[i % 3]}\n" for i in range(60))


pytestmark = pytest.mark.usefixtures("elsewhere")


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
        (["dataset.path=a.csv"], "unknown key 'dataset.path': for a file of your own add dataset=csv"),
        (["+seeed=1"], "unknown key 'seeed'; did you mean seed?"),
        (["+dataset.pth=a.csv", "dataset=csv"], "unknown key 'dataset.pth'; did you mean dataset.path"),
        (["protocol.metric=eror"], "unknown metric 'eror': did you mean error?"),
        (["rnu"], "unknown action 'rnu'; did you mean run"),
        (["data", "lst"], "unknown action 'data lst'; did you mean list?"),
        (["data"], "data needs list, show, fetch or check"),
        (["data", "show"], "data show needs the name of a data set"),
        (["data", "show", "irsi"], "did you mean iris"),
        # values: some the whole way, the others below
        (["hyper.C=0"], "hyper.C=0 is not valid"),
        (["hyper.gamma=1"], "hyper.gamma is no hyper-parameter of this method"),
        (["solver.tol=small"], "solver.tol=small is not valid"),
        (["name="], "name= is not valid"),
        (["hyper=3"], "hyper=3 is not a group of options"),
        (["loss=null"], "a config group takes the name of one of its choices"),
        (["~protocol.folds"], "key 'protocol.folds' is missing"),
        (["results=results/a"], "advcli run does not read the key results"),
        (["seed=${oc.env:NOPE}"], "key 'seed' has no value"),
        (["name=${name}"], "key 'name' has no value: Recursive interpolation"),
        (["solver=sag", "solver.batch=x"], "solver.batch=x is not valid; give a whole number of at least 1, or null"),
        (["solver=adam", "solver.batch=nan"], "solver.batch=nan is not valid"),
        (["solver=constraint_generation", "solver.batch=0"], "solver.batch=0 is not valid"),
        (["solver=lbfgs", "solver.pairs=x"], "solver.pairs=x is not valid; give a whole number of at least 1"),
        (["solver.max_passes=-1"], "solver.max_passes=-1 is not valid"),
        (["solver.max_passes=nan"], "solver.max_passes=nan is not valid"),
        (["solver.search_passes=0"], "solver.search_passes=0 is not valid; give a whole number of at least 1"),
        (["features=poly", "features.degree=nan"], "features.degree=nan is not valid"),
        (["features=poly", "features.degree=300", "hyper.C=1"], "features.degree=300 makes kernel values up to"),
        (["report.metric=zz"], "unknown metric 'zz': choose one of"),
        (["report.metric=mae", "protocol.metric=error"], "report.metric=mae is not recorded; add it to protocol.metrics"),
        (["published=nosuch"], "no published numbers 'nosuch'"),
        (["published=fathony2018_tabel2"], "did you mean fathony2018_table2"),
        (["loss=../loss/cs"], "unknown loss '../loss/cs'; did you mean cs"),
        (["dataset=./iris"], "unknown dataset './iris'; did you mean iris"),
        (["dataset=mine.csv"], "for a file write dataset=csv dataset.path=mine.csv dataset.target=COLUMN"),
        (["dataset=data/mine.parquet"], "for a file write dataset=csv dataset.path=data/mine.parquet dataset.target=COLUMN"),
        (["dataset=my data.csv"], "for a file write dataset=csv dataset.path='my data.csv' dataset.target=COLUMN"),
        (["dataset=mine.svm"], "for a file write dataset=csv dataset.path=mine.svm dataset.format=svmlight"),
        (["dataset=../X.npy"], "for a file write dataset=mapped dataset.features=../X.npy dataset.labels=FILE"),
        (["+experiment=../experiment/quickstart"], "unknown experiment '../experiment/quickstart'; did you mean quickstart"),
        (["hydra.run.dir=/dev/null/x"], "/dev/null/x: Not a directory; a part of this path is a file; choose another folder"),
        (["dataset=synthetic_blobs", "dataset.rows=1000000000"], "dataset.rows=1000000000 times dataset.features=4 is more than"),
        (["dataset=synthetic_blobs", "dataset.classes=1000000000"], "dataset.rows=300 is too small for dataset.classes=1000000000"),
        (["dataset=synthetic_hierarchy", "dataset.features=2000000000"], "dataset.features=2000000000 is more than"),
        (["dataset=louche_toy", "dataset.classes=1000000000"], "dataset.classes=1000000000 is more than"),
        (["dataset=choi2018_balanced", "dataset.leaves=1073741824"], "dataset.leaves=1073741824 is more than"),
        (["bench", "loss=uma"], "advcli bench needs fits with a certificate; loss=uma has none"),
        (["bench", "loss=nhsvm"], "give hyper.rho=VALUE"),
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
        (["-m", "seed=range(5,1)"], "'seed=range(5,1)' gives no value; a sweep needs at least one"),
        (["-m", "loss=glob(zz*)"], "'loss=glob(zz*)' gives no value"),
        (["-m", "loss=ww,../loss/cs"], "unknown loss '../loss/cs'; did you mean cs"),
        (["-m", "seed=1,${oc.env:NOPE}"], "key 'seed' has no value"),
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


@pytest.fixture(scope="module")
def defaults() -> DictConfig:
    with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return hydra.compose("config", ["name=x"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hyper.C=-1"], "hyper.C=-1 is not valid"),
        (["hyper.C=nan"], "hyper.C=nan is not valid"),
        (["hyper.C=inf"], "hyper.C=inf is not valid"),
        (["hyper.C=large"], "hyper.C=large is not valid"),
        (["hyper.lambda=0"], "hyper.lambda=0 is not valid"),
        (["hyper.C=1", "hyper.lambda=1"], "fix only one"),
        (["solver.tol=0"], "solver.tol=0 is not valid; give a finite number above 0"),
        (["solver.tol=-1e-3"], "solver.tol=-0.001 is not valid"),
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
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_values_that_the_check_refuses(words: list[str], said: str, defaults: DictConfig) -> None:
    """What `main` says of a refusal is tested above; which values are refused is the check's own, and composing takes most of the time."""
    config = copy.deepcopy(defaults)
    OmegaConf.set_struct(config, False)
    for override in OverridesParser.create().parse_overrides(words):
        OmegaConf.update(config, override.key_or_group, override.value())
    with pytest.raises(ConfigError) as caught:
        validate(config)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_defaults_of_the_cases_above_are_accepted(defaults: DictConfig) -> None:
    assert validate(defaults).name == "x"


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dataset.drop=[label]"], "dataset.drop names 'label', which is the target"),
        (["dataset.drop=[a,label]", "dataset.features=[b]"], "dataset.drop names 'label', which is the target"),
        (["dataset.weight=a"], "the weights in column 'a' add up to more than a number can hold"),
        (["dataset.n_classes=3.5"], "dataset.n_classes=3.5 needs dataset.cut"),
        (
            ["dataset.target=b", "dataset.drop=[label]", "dataset.cut=equal_width", "dataset.n_classes=3.5"],
            "dataset.n_classes=3.5 is not valid; give a whole number from 2 to 10000",
        ),
        (
            ["dataset.target=b", "dataset.drop=[label]", "dataset.cut=equal_width", "dataset.n_classes=1000000000"],
            "give a whole number from 2 to 10000",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_use_of_columns_is_one_line(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("my.csv").write_text("a,b,label\n" + "".join(f"1e308,{i * i % 11},{'xyz'[i % 3]}\n" for i in range(60)), encoding="utf-8")
    assert said in refused(["dataset=csv", "dataset.path=my.csv", "dataset.target=label", "name=made", *words], capfd)


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


@pytest.mark.parametrize("words", [["report"], ["check", "baseline=b.csv"]], ids=["report", "check"])
def test_rows_without_a_column(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("results/short").mkdir(parents=True)
    Path("results/short/runs.csv").write_text("dataset,metric\niris,error\n", encoding="utf-8")
    Path("b.csv").write_text(",".join(BASELINE_COLUMNS) + "\n", encoding="utf-8")
    assert "results/short/runs.csv has no column 'loss'" in refused([*words, "results=results/short"], capfd)


QUICK = ["dataset=iris", "hyper.C=1", "protocol.n_splits=2", "solver.tol=0.01", "name=run"]


@pytest.mark.parametrize("words", [[], ["-m", "hydra/launcher=basic", "loss=zero_one,cs"]], ids=["run", "sweep"])
def test_results_folder_that_is_removed_during_a_run(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def run_and_remove(cell: runner.Cell, folder: ResultsFolder, *rest: Any, **options: Any) -> runner.CellOutcome:
        outcome = run_cell(cell, folder, *rest, **options)
        shutil.rmtree(folder.path.parent)
        return outcome

    run_cell = runner.run_cell
    monkeypatch.setattr("advcli.evaluation.sweeps.jobs.run_cell", run_and_remove)
    assert main([*words, *QUICK, "quiet=true"]) == 2
    err = capfd.readouterr().err
    assert err == "advcli: the results folder results/run was removed while its cells ran; start the command again [ADV020]\n"


def test_no_more_workers_than_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joblib starts all processes that it is told to; here nothing is started."""
    asked: list[int] = []

    def parallel(n_jobs: int, **options: Any) -> Callable[[Iterable[Any]], list[JobReturn]]:
        asked.append(n_jobs)
        return lambda jobs: [JobReturn(_return_value=[], status=JobStatus.COMPLETED)]

    monkeypatch.setattr(import_module("hydra_plugins.hydra_joblib_launcher._core"), "Parallel", parallel)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    for workers in ("1000000000", "null", "1"):
        main(["-m", "loss=zero_one,cs", f"workers={workers}", *QUICK])
    assert asked == [2, 2, 1]


def test_a_sweep_with_a_file_that_is_not_there_does_no_work(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["-m", "dataset=csv", "dataset.path=nowhere.csv", "dataset.target=label", "loss=ww,cs", "name=made", "workers=1"]
    assert "there is no file nowhere.csv" in refused(words, capfd)
    assert not Path("results/made").exists()


def test_all_problems_of_a_file_are_said_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"c{at:03},2024-01-{at % 28 + 1:02},{'' if at % 9 == 0 else at},{'' if at == 7 else 'ab'[at % 2]}\n" for at in range(40))
    Path("my.csv").write_text(f"who,day,size,label\n{rows}")
    assert main(["dataset=csv", "dataset.path=my.csv", "dataset.target=label", "name=made"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "advcli: my.csv has 4 problems [ADV012]:"
    for line, column, remedy in zip(
        lines[1:], ("who", "day", "size", "label"), ("drop=[who]", "drop=[day]", "missing=median", "remove"), strict=True
    ):
        assert f"column '{column}'" in line
        assert remedy in line


def test_identifiers_and_dates_are_left_out_and_said_before_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"c{at:03},2024-01-{at % 28 + 1:02},{at % 5},{'rgb'[at % 3]},{('low', 'mid', 'high')[at % 3]}\n" for at in range(60))
    Path("my.csv").write_text(f"who,day,size,colour,label\n{rows}".replace("mid", "medium"))
    words = ["dataset=csv", "dataset.path=my.csv", "dataset.target=label", "dataset.categorical=auto", "hyper.C=1", "protocol.n_splits=2"]
    assert main([*words, "name=made"]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert "'who' left out" in lines[0]
    assert "dataset.keep=[who]" in lines[0]
    assert "'day' left out" in lines[1]
    assert "dataset.order=[low,medium,high]" in lines[2]
    assert len(lines) == len(set(lines))
    assert main([*words, "name=kept", "dataset.keep=[who,day]"]) == 0
    assert "left out" not in capfd.readouterr().err


def test_without_a_target_the_columns_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    Path("my.csv").write_text("size,kind\n1,a\n2,b\n")
    line = refused(["dataset=csv", "dataset.path=my.csv"], capfd)
    assert "say which column holds the labels with dataset.target=COLUMN; it has size, kind" in line
