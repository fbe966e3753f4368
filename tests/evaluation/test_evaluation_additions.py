"""A finished cell gets more splits and metrics: stored fits are kept, and the rows equal the rows of a cell that had all at once."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from support.waiting import until

from advcli.cli import main
from advcli.core.errors import AdvcliError, ConfigError, DataError, ResultsError
from advcli.evaluation import Cell, run_cell, sweep
from advcli.evaluation.additions import Review, distinct, union
from advcli.evaluation.recipe import Recipe
from advcli.results import provenance
from advcli.results.folder import ResultsFolder
from advcli.results.predictions import PredictedRows, Predictions
from advcli.results.tables import NUMBERS_VERSION, TIMING_COLUMNS, lasting, read_table

DATA = Path("unused")
NAMES = ("accuracy", "mae", "mse", "balanced_accuracy")
WORDS = "dataset=iris loss=zero_one hyper.C=1 solver.tol=0.01"
NESTED = "dataset=iris loss=zero_one,cs protocol.folds=2 protocol.stage1.regularisation=[0.1,1] solver.tol=0.01"


def bits(folder: str | Path) -> list[str]:
    """Return the tables of a folder, times aside, as texts of the exact bits."""
    frames = [read_table(Path(folder) / name) for name in ("runs.csv", "search.csv")]
    return [frame.drop(columns=[column for column in TIMING_COLUMNS if column in frame]).to_csv() for frame in frames]


def grown(folder: ResultsFolder) -> list[str]:
    folder.merge()
    return bits(folder.path)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The splits of all reported fits, and the searches."""
    done: list[Any] = []
    fit, search = Recipe.fit, Recipe.search

    def counted(recipe: Recipe, part: Any, hyper: Any, number: Any, **more: Any) -> Any:
        done.append(number)
        return fit(recipe, part, hyper, number, **more)

    def searched(recipe: Recipe, part: Any, number: Any = 1) -> Any:
        done.append(f"search {number}")
        return search(recipe, part, number)

    monkeypatch.setattr(Recipe, "fit", counted)
    monkeypatch.setattr(Recipe, "search", searched)
    return done


# ---- what is asked for, one after the other -------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 5), st.lists(st.sampled_from(NAMES), unique=True)), min_size=1, max_size=4),
    st.sampled_from(["first_split", "every_split"]),
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_way_to_a_cell_ends_at_the_same_rows(fakes: Any, asked: list[tuple[int, list[str]]], search: str) -> None:
    with tempfile.TemporaryDirectory() as path:
        folder, whole = (ResultsFolder(Path(path) / name) for name in ("grown", "whole"))
        for each in (folder, whole):
            each.prepare({})
        there = asked[0]
        for n_splits, names in asked:
            have = there[0] if folder.finished_keys() else 0
            before = fakes.N_FITS["count"]
            outcome = run_cell(fakes.cell(protocol={"n_splits": n_splits, "metrics": names, "search": search}), folder, DATA)
            there = union((n_splits, names), there)
            assert outcome.skipped == (have > 0 and not outcome.added)
            if n_splits <= have:
                assert fakes.N_FITS["count"] == before, "nothing is fitted for what is there"
            elif have and search == "first_split":
                assert fakes.N_FITS["count"] - before == n_splits - have, "the one search is not done again"
        again = run_cell(fakes.cell(protocol={"n_splits": there[0], "metrics": there[1], "search": search}), whole, DATA)
        outcome = run_cell(fakes.cell(protocol={"n_splits": there[0], "metrics": there[1], "search": search}), folder, DATA)
        assert outcome.skipped
        for fact in ("hyper", "edges", "warning", "notes", "choice", "mean", "std"):
            assert getattr(outcome, fact) == pytest.approx(getattr(again, fact), nan_ok=True, abs=0)
        assert grown(folder) == grown(whole)
        (a,), (b,) = (each.finished_keys() for each in (folder, whole))
        cells = [folder.read_cell(a), whole.read_cell(b)]
        assert cells[0] is not None
        assert cells[1] is not None
        assert cells[0]["about"] == cells[1]["about"]


def test_the_order_of_metrics() -> None:
    assert union((3, ["b", "a"]), (5, ["a", "b"])) == (5, ["a", "b"])
    assert union((7, ["c", "a"]), (5, ["a", "b"])) == (7, ["c", "a", "b"])
    assert union((7, []), (5, ["a"])) == (7, ["a"])


# ---- sweeps ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["first_split", pytest.param("every_split", marks=pytest.mark.slow)])
def test_splits_and_metrics_are_added_to_a_sweep(search: str, tmp_path: Path, fits: list[Any]) -> None:
    words = f"{NESTED} protocol.search={search} record.proofs=true"
    sweep(f"{words} protocol.n_splits=2", tmp_path / "grown", workers=1, quiet=True)
    before = read_table(tmp_path / "grown" / "runs.csv")
    fits.clear()
    sweep(f"{words} protocol.n_splits=4", tmp_path / "grown", workers=1, quiet=True)
    assert fits == ([3, 4] if search == "first_split" else ["search 3", 3, "search 4", 4]) * 2
    after = read_table(tmp_path / "grown" / "runs.csv")
    pd.testing.assert_frame_equal(after[after["split"] <= 2].reset_index(drop=True), before)  # times, too
    fits.clear()
    metrics = "protocol.metrics=[error,mae,accuracy]"
    sweep(f"{words} {metrics} protocol.n_splits=4", tmp_path / "grown", workers=1, quiet=True)
    assert fits == []
    sweep(f"{words} {metrics} protocol.n_splits=4", tmp_path / "whole", workers=1, quiet=True)
    assert bits(tmp_path / "grown") == bits(tmp_path / "whole")
    assert main(["verify", f"results={tmp_path / 'grown'}"]) == 0
    verdicts = pd.read_csv(tmp_path / "grown" / "verify.csv")
    assert verdicts["verdict"].tolist() == ["proved"] * 8
    assert verdicts["metrics"].str.contains("mae").all()


def test_proofs_go_on_where_they_were_kept(tmp_path: Path) -> None:
    sweep(f"{WORDS} protocol.n_splits=1 record.proofs=true", tmp_path / "x", workers=1, quiet=True)
    rows = sweep(f"{WORDS} protocol.n_splits=2", tmp_path / "x", workers=1, quiet=True)
    assert rows["proof"].notna().all()
    assert main(["verify", f"results={tmp_path / 'x'}"]) == 0
    # and are made for all splits that are there where they were not
    sweep(f"{WORDS} protocol.n_splits=3", tmp_path / "y", workers=1, quiet=True)
    rows = sweep(f"{WORDS} protocol.n_splits=1 record.proofs=true", tmp_path / "y", workers=1, quiet=True)
    assert sorted(rows["split"].unique()) == [1, 2, 3]
    assert rows["proof"].notna().all()


@pytest.mark.slow
def test_workers_change_nothing(tmp_path: Path) -> None:
    words = f"{NESTED} dataset=iris,wine protocol.search=every_split"
    for workers in (1, 2):
        path = tmp_path / str(workers)
        sweep(f"{words} protocol.n_splits=2", path, workers=workers, quiet=True)
        sweep(f"{words} protocol.n_splits=4 protocol.metrics=[mae,error]", path, workers=workers, quiet=True)
    sweep(f"{words} protocol.n_splits=4 protocol.metrics=[mae,error,accuracy]", tmp_path / "whole", workers=2, quiet=True)
    assert bits(tmp_path / "1") == bits(tmp_path / "2") == bits(tmp_path / "whole")


def test_the_command_line_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*WORDS.split(), "name=x", "report=false"]
    assert main([*words, "protocol.n_splits=1"]) == 0
    assert main([*words, "protocol.n_splits=3"]) == 0
    assert main(["-m", *words, "protocol.n_splits=3", "protocol.metrics=[error,mae,accuracy]", "workers=1"]) == 0
    assert "mae by kept predictions" in capfd.readouterr().err
    sweep(f"{WORDS} protocol.n_splits=3 protocol.metrics=[error,mae,accuracy]", "whole", workers=1, quiet=True)
    assert bits("results/x") == bits("whole")
    # asked for less: all stored splits count, and a remark names them
    assert main([*words, "protocol.n_splits=2"]) == 0
    said = capfd.readouterr()
    assert "note: iris: 3 splits are kept and all of them count, 2 were asked for" in said.out + said.err
    assert "note: iris: metrics that were not asked for are kept: mae" in said.out + said.err
    assert bits("results/x") == bits("whole")
    # one table of methods with more and with fewer splits
    assert main([*words, "loss=cs", "protocol.n_splits=2"]) == 0
    table = pd.read_csv("results/x/summary.csv")
    counted = table[table["metric"] == "error"].set_index("method")["n_splits"]
    assert counted.to_dict() == {"cs linear": 2, "zero_one linear": 3}


def test_a_cell_that_is_asked_for_twice_is_refused(tmp_path: Path) -> None:
    for key, values in (("n_splits", "1,2"), ("metrics", "[mae],[mse]")):
        with pytest.raises(ConfigError, match=f"protocol.{key} varies for iris, zero_one linear"):
            sweep(f"{WORDS} protocol.{key}={values}", tmp_path / "x", workers=1)
    assert not (tmp_path / "x").exists()


SCRIPT = "from advcli.evaluation import sweep\nsweep({words!r}, {folder!r}, workers=2, quiet=True)\n"


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed with some cells grown and others not."""
    words = f"{NESTED} dataset=iris,wine protocol.search=every_split record.proofs=true"
    path = tmp_path / "x"
    sweep(f"{words} protocol.n_splits=2", path, workers=2, quiet=True)
    before = {file.name: file.stat().st_mtime_ns for file in (path / "cells").glob("*.json")}
    more = f"{words} protocol.n_splits=5 protocol.metrics=[mae]"
    child = subprocess.Popen([sys.executable, "-c", SCRIPT.format(words=more, folder=str(path))], start_new_session=True)
    until(lambda: any(file.stat().st_mtime_ns != before[file.name] for file in (path / "cells").glob("[!.]*.json")))
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    sweep(more, path, workers=2, quiet=True)
    sweep(f"{more[:-5]}[mae,error,accuracy]", tmp_path / "whole", workers=1, quiet=True)
    assert bits(path) == bits(tmp_path / "whole")
    assert main(["verify", f"results={path}"]) == 0


# ---- what ends in the middle ------------------------------------------------------------------------------------------------------


# both writers end at every of their calls, which takes more than ten seconds each
@pytest.mark.parametrize("writer", ["write_text", pytest.param("write_arrays", marks=pytest.mark.slow)])
def test_an_end_in_the_middle_loses_nothing(writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: list[Any]) -> None:
    """Predictions and proofs are there before the cell's file names them, or are not."""
    words = f"{WORDS} record.proofs=true"
    sweep(f"{words} protocol.n_splits=2", tmp_path / "x", workers=1, quiet=True)
    before = bits(tmp_path / "x")
    with monkeypatch.context() as patched:

        def killed(path: Path, *arguments: Any) -> None:
            if path.parent.name in ("cells", "proofs"):
                raise KeyboardInterrupt

        patched.setattr(f"advcli.results.{'folder' if writer == 'write_text' else 'proofs'}.{writer}", killed)
        with pytest.raises(KeyboardInterrupt):
            sweep(f"{words} protocol.n_splits=3", tmp_path / "x", workers=1, quiet=True)
    folder = ResultsFolder(tmp_path / "x")
    folder.merge()
    assert bits(tmp_path / "x") == before
    # another metric of the splits that are there needs no fit, though the predictions have one more
    fits.clear()
    sweep(f"{words} protocol.n_splits=2 protocol.metrics=[error,accuracy,mae]", tmp_path / "x", workers=1, quiet=True)
    assert fits == []
    sweep(f"{words} protocol.n_splits=3 protocol.metrics=[error,accuracy,mae]", tmp_path / "x", workers=1, quiet=True)
    sweep(f"{words} protocol.n_splits=3 protocol.metrics=[error,accuracy,mae]", tmp_path / "whole", workers=1, quiet=True)
    assert bits(tmp_path / "x") == bits(tmp_path / "whole")
    assert main(["verify", f"results={tmp_path / 'x'}"]) == 0


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The splits whose fit fails."""
    fit, numbers = Recipe.fit, [4]

    def failing(recipe: Recipe, part: Any, hyper: Any, number: Any, **more: Any) -> Any:
        if number in numbers:
            raise DataError("no")
        return fit(recipe, part, hyper, number, **more)

    monkeypatch.setattr(Recipe, "fit", failing)
    return numbers


def test_a_split_that_fails(fakes: Any, tmp_path: Path, broken: list[int]) -> None:
    """Added or at once it is the same failure; what was there stays, and only what is missing is tried again."""
    folder, whole = (ResultsFolder(tmp_path / name) for name in ("grown", "whole"))
    few, more, other = (fakes.cell(protocol={"n_splits": 3}), fakes.cell(protocol={"n_splits": 5}), fakes.cell(loss="ww"))
    for each in (folder, whole):
        each.prepare({})
        run_cell(other, each, DATA)
    assert run_cell(few, folder, DATA).status == "ok"
    assert run_cell(more, folder, DATA).status == "failed"
    assert run_cell(more, whole, DATA).status == "failed"
    assert grown(folder) == grown(whole)
    assert "no" in set(folder.runs()["error"])
    # a request for the stored splits alone has them without the failure
    assert run_cell(few, folder, DATA).skipped
    assert not (folder.path / "failures").exists()
    folder.merge()
    assert set(folder.runs()["status"]) == {"ok"}
    run_cell(more, folder, DATA)
    broken.clear()
    before = fakes.N_FITS["count"]
    outcome = run_cell(more, folder, DATA)
    assert (outcome.status, outcome.added, fakes.N_FITS["count"] - before) == ("ok", "2 splits added", 2)
    run_cell(more, whole, DATA)
    assert grown(folder) == grown(whole)


def test_what_another_process_adds_meanwhile_stays(fakes: Any, folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, more = Recipe.fit, [fakes.cell(protocol={"n_splits": 4, "metrics": ["mae", "accuracy"]})]

    def overtaken(recipe: Recipe, *arguments: Any, **options: Any) -> Any:
        while more:
            run_cell(more.pop(), folder, DATA)
        return fit(recipe, *arguments, **options)

    monkeypatch.setattr(Recipe, "fit", overtaken)
    outcome = run_cell(fakes.cell(protocol={"n_splits": 2}), folder, DATA)
    assert len(outcome.rows) == 4 * 3
    outcome = run_cell(fakes.cell(protocol={"n_splits": 4, "metrics": ["mae", "mse"]}), folder, DATA)
    assert outcome.added == "mse by kept predictions"


@pytest.mark.parametrize("by", ["request", "key"])
def test_a_cell_that_failed_to_get_more_is_dropped_whole(by: str, fakes: Any, folder: ResultsFolder, broken: list[int]) -> None:
    few, more, other = (fakes.cell(protocol={"n_splits": 3}), fakes.cell(protocol={"n_splits": 5}), fakes.cell(loss="ww"))
    key = run_cell(few, folder, DATA).key
    kept = run_cell(other, folder, DATA).key
    request = run_cell(more, folder, DATA).key
    folder.merge()
    assert set(folder.runs()["cell"]) == {kept, request}
    assert folder.drop([request if by == "request" else key]) == 1
    assert broken
    assert sorted(path.name for path in folder.path.rglob("*.*") if path.stem in (key, request, f"{request}.failed", kept)) == [
        f"{kept}.json",
        f"{kept}.npz",
    ]


def test_a_folder_whose_splits_failed_is_free(fakes: Any, tmp_path: Path, broken: list[int]) -> None:
    """Failures keep nobody out, not those with rows of splits that did not fail."""
    folder, cell = ResultsFolder(tmp_path / "x"), fakes.cell(protocol={"n_splits": 5})
    folder.prepare({"seed": 0})
    assert run_cell(cell, folder, DATA).status == "failed"
    folder.merge()
    assert len(folder.runs()) > 2
    other = ResultsFolder(tmp_path / "x")
    other.prepare({"seed": 1})
    assert not list(other.cells_path.glob("*.json"))
    run_cell(cell, other, DATA)
    broken.clear()
    assert run_cell(cell, other, DATA).status == "ok"
    other.merge()
    assert set(other.runs()["status"]) == {"ok"}
    assert not list(other.cells_path.glob("*failed*"))


# ---- what metrics read ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with sets of labels, costs of rows and sequences."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2)).round(3)
    table = pd.DataFrame(X, columns=["a", "b"])
    chosen = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X.sum(axis=1) > 0.5])
    table.assign(y=["/".join(np.array(["u", "v", "w"])[row]) or "u" for row in chosen]).to_csv("sets.csv", index=False)
    table.assign(stay=(X[:, 0] > 0) * 2.0, left=np.abs(X[:, 0]), right=3.0).to_csv("costs.csv", index=False)
    tags = np.where(X[:, 0] > 0.5, "B-PER", np.where(X[:, 0] > -0.2, "O", "I-PER"))
    table.assign(text=np.repeat(range(20), 3), y=tags).to_csv("tags.csv", index=False)


KINDS = {
    "abstentions": (
        "dataset=iris loss=abstain loss.alpha=0.3",
        ["error"],
        ["abstention_loss", "abstain_rate", "accuracy_accepted"],
    ),
    "a matrix": ("dataset=iris loss=general loss.matrix=[[0,1,4],[1,0,2],[5,1,0]]", ["error"], ["cost", "confusion_rate"]),
    "distributions": ("dataset=iris loss=zero_one", ["brier"], ["log_loss", "ece", "rps"]),
    "distributions for later": ("dataset=iris loss=zero_one record.distributions=true", ["error"], ["log_loss", "brier"]),
    "sets of labels": (
        "dataset=csv dataset.path=sets.csv dataset.target=y dataset.label_separator=/ loss=sets",
        ["error"],
        ["hamming", "macro_f1"],
    ),
    "costs of rows": ("dataset=csv dataset.path=costs.csv dataset.costs=[stay,left,right] loss=csosr", ["cost"], ["error", "mae"]),
    "sequences": (
        "dataset=csv dataset.path=tags.csv dataset.target=y dataset.sequence=text loss=chain",
        ["accuracy"],
        ["entity_f1", "mae"],
    ),
    "learning curves": ("dataset=iris loss=zero_one protocol.learning_curve=[0.3,0.6]", ["error"], ["mae", "balanced_accuracy"]),
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_metric_is_computed_from_what_is_kept(kind: str, fits: list[Any]) -> None:
    words, few, more = KINDS[kind]
    words += " hyper.C=1 solver.tol=0.05 protocol.n_splits=2"
    sweep(f"{words} protocol.metrics=[{','.join(few)}]", "grown", workers=1, quiet=True)
    fits.clear()
    sweep(f"{words} protocol.metrics=[{','.join([*more, *few])}]", "grown", workers=1, quiet=True)
    assert fits == []
    rows = sweep(f"{words} protocol.metrics=[{','.join([*more, *few])}]", "whole", workers=1, quiet=True)
    assert bits("grown") == bits("whole")
    assert {*more, *few} <= set(rows["metric"])
    learned = [
        [folder.read_cell(key)["about"].get("learning") for key in folder.finished_keys()]
        for folder in map(ResultsFolder, ("grown", "whole"))
    ]
    assert learned[0] == learned[1]
    assert (learned[0] != [None]) == (kind == "learning curves")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "its predictions are missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-40]), "is damaged"),
        (lambda path: _edit(path, lambda arrays: {**arrays, "codes_1": arrays["codes_1"][::-1]}), "is not what was written"),
        (lambda path: _edit(path, lambda arrays: {"codes_2": arrays["codes_2"]}), "is not what was written"),
    ],
)
def test_predictions_that_are_not_there_are_not_computed_in_silence(damage: Any, said: str, tmp_path: Path, fits: list[Any]) -> None:
    sweep(f"{WORDS} protocol.n_splits=2", tmp_path / "x", workers=1, quiet=True)
    before = bits(tmp_path / "x")
    (path,) = (tmp_path / "x" / "predictions").iterdir()
    damage(path)
    fits.clear()
    words = [*WORDS.split(), "protocol.n_splits=2", "protocol.metrics=[mae]", f"results_dir={tmp_path}", "name=x", "quiet=true"]
    with pytest.raises(AdvcliError, match=said) as caught:
        _run(words)
    assert "advcli drop" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert fits == []
    assert bits(tmp_path / "x") == before
    # splits can be added all the same
    rows = sweep(f"{WORDS} protocol.n_splits=3", tmp_path / "x", workers=1, quiet=True)
    assert [number for number in fits if number != "search 1"] == [3]
    assert set(rows["split"]) == {1, 2, 3}


def _edit(path: Path, change: Any) -> None:
    with np.load(path) as file:
        arrays = dict(file)
    np.savez_compressed(path, **change(arrays))


def _run(words: list[str]) -> None:
    """Run one cell as the command line does, and raise its error."""
    from advcli.config import check
    from advcli.config.composing import compose_cells
    from advcli.evaluation.sweeps.jobs import prepare, run_one

    arguments, configs = compose_cells([words], {})
    settled = [check(config) for config in configs]
    folder = ResultsFolder(settled[0].folder)
    prepare(folder, settled, arguments, print)
    run_one(settled[0], folder, strict=True)


def planned(**protocol: Any) -> Cell:
    groups = {name: {"name": name} for name in ("dataset", "loss", "features", "solver")}
    return Cell(**groups, protocol={"name": "standard", "n_splits": 1, "metrics": [], **protocol})


@pytest.mark.parametrize("kept", [[True, True], [True, False], [False, True], [False, False]])
@pytest.mark.parametrize("asked", ["mae", "log_loss"])
def test_a_metric_of_distributions_needs_those_of_every_split(kept: list[bool], asked: str, folder: ResultsFolder) -> None:
    cell = planned(metrics=[asked])
    entries = {f"split {i}": {"probabilities": each} for i, each in enumerate(kept)}
    about = {"dataset": "d", "method": "m", "cell": planned().as_mapping(), "predictions": entries}
    folder.predictions_path.mkdir(parents=True)
    (folder.predictions_path / "key.npz").touch()
    review = Review(folder, distinct([cell]))
    review.look({"about": about, "numbers": NUMBERS_VERSION, "key": "key"})
    if asked == "mae" or all(kept):
        review.finish()
        return
    with pytest.raises(ResultsError, match="log_loss cannot be added to d, m: no distributions were kept"):
        review.finish()


@pytest.mark.parametrize("change", [{"numbers": NUMBERS_VERSION - 1}, {"cell": None}])
def test_a_cell_that_is_computed_anew_refuses_nothing(change: dict[str, Any], folder: ResultsFolder) -> None:
    about = {"dataset": "d", "method": "m", "cell": planned().as_mapping(), **{key: change[key] for key in change if key == "cell"}}
    review = Review(folder, distinct([planned(metrics=["mae"])]))
    content = {"about": about, "numbers": NUMBERS_VERSION, "key": "key", **{key: change[key] for key in change if key == "numbers"}}
    review.look({key: value for key, value in content.items() if value is not None})
    review.finish()


def test_distributions_that_were_not_kept_are_named(tmp_path: Path, fits: list[Any]) -> None:
    sweep(f"{WORDS} protocol.n_splits=1", tmp_path / "x", workers=1, quiet=True)
    fits.clear()
    with pytest.raises(ResultsError, match="log_loss, ece cannot be added to iris, zero_one linear: no distributions were kept"):
        sweep(f"{WORDS} protocol.n_splits=1 protocol.metrics=[log_loss,mae,ece]", tmp_path / "x", workers=1, quiet=True)
    assert fits == []


def test_the_bytes_of_a_row(tmp_path: Path) -> None:
    """One byte for a prediction, eight for each probability, as the documentation says; fewer once they are compressed."""
    folder = ResultsFolder(tmp_path)
    random = np.random.default_rng(0)
    predictions = Predictions(folder, "k")
    for name, classes in (("1", 200), ("2", 300)):
        predictions.add(name, PredictedRows(random.integers(0, classes, 10_000), random.random((10_000, 3))))
    predictions.write()
    with np.load(folder.predictions_path / "k.npz") as file:
        sizes = {name: file[name].nbytes / 10_000 for name in file.files}
    assert sizes == {"codes_1": 1.0, "codes_2": 2.0, "probabilities_1": 24.0, "probabilities_2": 24.0}


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_predictions_are_read_as_they_were(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as path:
        folder, kept = ResultsFolder(path), {}
        k, cost = data.draw(st.integers(1, 400)), data.draw(st.none() | st.floats(0, 1))
        matrix = np.arange(k + 1.0).reshape(-1, 1) if data.draw(st.booleans()) else None
        entries: dict[str, Any] = {}
        for name in ("1", "2", "10", "2-0.5"):
            if data.draw(st.booleans()):
                codes: Any = np.array(data.draw(st.lists(st.integers(0, k + 1), max_size=8)), dtype=np.intp)
            else:
                rows = data.draw(st.lists(st.lists(st.booleans(), min_size=k, max_size=k), max_size=4)) if k < 9 else []
                codes = sparse.csr_array(np.array(rows, dtype=bool).reshape(-1, k))
            kept[name] = PredictedRows(codes, None, matrix, cost)
            predictions = Predictions(folder, "k", entries)  # each time anew, as cells grow
            predictions.add(name, kept[name])
            predictions.write()
            entries = json.loads(json.dumps(predictions.about()))["predictions"]
        for name, each in kept.items():
            result = Predictions(folder, "k", entries).of(name, k)
            assert result.abstention_cost == cost
            assert (result.cost_matrix is None) if matrix is None else np.array_equal(result.cost_matrix, matrix)
            pairs = [codes.toarray() if sparse.issparse(codes) else codes for codes in (result.codes, each.codes)]
            assert np.array_equal(*pairs)
            assert pairs[0].shape == pairs[1].shape


def test_what_lasts_of_a_configuration() -> None:
    cell = {"seed": 1, "loss": {"name": "cs", "description": "text"}, "protocol": {"n_splits": 3, "metrics": [], "folds": 5}}
    assert lasting(cell) == {"seed": 1, "loss": {"name": "cs"}, "protocol": {"folds": 5}}
    assert lasting({}) == {}
    changed = [{**cell, "protocol": {**cell["protocol"], **more}} for more in ({"n_splits": 4}, {"metrics": ["mae"]})]  # type: ignore[dict-item]
    assert all(lasting(one) == lasting(other) for one, other in itertools.pairwise([cell, *changed]))


# ---- who made a cell ------------------------------------------------------------------------------------------------------------


def test_a_cell_says_who_made_it_and_a_resumed_folder_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*WORDS.split(), "name=x", "protocol.n_splits=2"]
    libraries = provenance.versions()
    monkeypatch.setattr(provenance, "_libraries", lambda: libraries | {"scikit-learn": "0.1"})
    assert main(words) == 0
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)

    def known() -> list[str]:
        return [each["versions"]["scikit-learn"] for each in json.loads(Path("results/x/provenance.json").read_text())["made_by"]]

    assert known() == ["0.1"]
    assert main(words) == 0
    assert known() == ["0.1"], "a run that computed nothing made nothing"
    assert main([*words, "protocol.n_splits=3"]) == 0
    assert sorted(known()) == sorted(["0.1", libraries["scikit-learn"]])
    capfd.readouterr()
    assert main(["report", "results=results/x"]) == 0
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "versions" in line]
    assert "scikit-learn 0.1 (1 cell)" in line
    assert "scikit-learn 0.1" in Path("results/x/report.md").read_text()
