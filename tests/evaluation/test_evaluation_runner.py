import dataclasses
import importlib
import json
import os
import pickle
import random
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from support.nursery import nursery
from support.waiting import until

from advcli.core.errors import ConfigError, DataError, NotConvergedWarning, ResultsError
from advcli.evaluation import cell as cells
from advcli.evaluation import run_cell
from advcli.evaluation.recipe import Recipe
from advcli.results import cell_file
from advcli.results.folder import ResultsFolder
from advcli.results.tables import RUN_COLUMNS, SEARCH_COLUMNS, TIMING_COLUMNS

DATA = Path("unused")


def fresh(path):
    results = ResultsFolder(path)
    results.prepare({"seed": 0})
    return results


def tables(folder):
    folder.merge()
    runs, search = folder.runs(), folder.search()
    return [frame.drop(columns=[column for column in TIMING_COLUMNS if column in frame]) for frame in (runs, search)]


def test_rows_of_one_cell(fakes, folder):
    outcome = run_cell(fakes.cell(), folder, DATA)
    assert (outcome.status, outcome.skipped, outcome.metric, outcome.error) == ("ok", False, "error", "")
    runs, search = tables(folder)
    assert list(folder.runs().columns) == list(RUN_COLUMNS)
    assert list(folder.search().columns) == list(SEARCH_COLUMNS)
    assert len(runs) == 3 * 2
    assert len(search) == 2 * 3 * 3
    assert runs["metric"].tolist() == ["error", "accuracy"] * 3
    np.testing.assert_allclose(runs["value"][0::2].to_numpy() + runs["value"][1::2].to_numpy(), 1)
    assert (runs["n_train"] + runs["n_test"] == 60).all()
    assert runs["C"].nunique() == 1
    assert runs["C"][0] == outcome.hyper["C"]
    assert runs["lambda"].isna().all()
    assert (runs["relative_gap"] == 5e-4).all()  # solver.tol, while the search used search_tol
    assert (search["relative_gap"] == 5e-3).all()
    assert (runs["solver"] == "fake").all()
    assert (runs["method"] == "zero_one linear").all()
    errors = runs.loc[runs["metric"] == "error", "value"]
    assert outcome.mean == pytest.approx(errors.mean())
    assert outcome.std == pytest.approx(errors.std())
    assert outcome.worst_gap == 5e-4
    assert (folder.runs()["fit_seconds"] == 0.01).all()  # the solver's clock


def test_selection_uses_the_first_split_only(fakes, folder):
    run_cell(fakes.cell(protocol={"standardise": "none"}), folder, DATA)
    searched = {tuple(row) for entry in fakes.LOG if entry.tol == 1e-2 for row in entry.X}
    finals = [{tuple(row) for row in entry.X} for entry in fakes.LOG if entry.tol == 1e-3]
    assert searched == finals[0]
    assert searched != finals[1]


def test_same_rows_whatever_the_order(fakes, tmp_path):
    cells = [fakes.cell(dataset, loss) for dataset in ("a", "bb") for loss in ("zero_one", "ww")]
    first, second = fresh(tmp_path / "1"), fresh(tmp_path / "2")
    for cell in cells:
        run_cell(cell, first, DATA)
    for cell in reversed(cells):
        run_cell(cell, second, DATA)
    for one, other in zip(tables(first), tables(second), strict=True):
        assert one.equals(other)
    runs = tables(first)[0]
    assert set(runs["dataset"]) == {"a", "bb"}


def test_every_method_sees_the_same_splits_and_folds(fakes, folder):
    run_cell(fakes.cell(loss="zero_one"), folder, DATA)
    one = [entry.X for entry in fakes.LOG]
    fakes.LOG.clear()
    run_cell(fakes.cell(loss="ww"), folder, DATA)
    assert len(one) == len(fakes.LOG)
    for X, entry in zip(one, fakes.LOG, strict=True):
        np.testing.assert_array_equal(X, entry.X)


def test_resume_computes_only_what_is_missing(fakes, folder):
    first = run_cell(fakes.cell("a"), folder, DATA)
    before = fakes.N_FITS["count"]
    again = run_cell(fakes.cell("a"), folder, DATA)
    assert again.skipped
    assert fakes.N_FITS["count"] == before
    assert dataclasses.replace(again, skipped=False, seconds=0) == dataclasses.replace(first, seconds=0)
    run_cell(fakes.cell("bb"), folder, DATA)
    assert fakes.N_FITS["count"] == 2 * before


def test_key_follows_what_determines_the_rows(fakes):
    base, data = fakes.cell(), fakes.make_dataset(seed=5)
    key = base.key(data)
    halves = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    about = [{"ordered": True}, {"sizes": (30, 20)}, {"sizes": (30, 30)}, {"splits": halves}, {"splits": halves[::-1]}, {"name": "other"}]
    data_keys = {base.key(dataclasses.replace(data, **change)) for change in [{}, *about]} | {base.key(fakes.make_dataset(seed=6))}
    assert len(data_keys) == len(about) + 2
    changes = [{"seed": 1}, {"hyper": {"C": 1.0}}, {"loss": {"name": "ww"}}, {"solver": {"tol": 1e-4}}, {"features": {"name": "rbf"}}]
    changes += [{"noise": {"name": "uniform", "rate": rate}} for rate in (0.1, 0.2)]
    changes += [{"protocol": {"standardise": "train"}}, {"protocol": {"train_size": 0.6}}]
    keys = {key} | {fakes.cell(**change).key(data) for change in changes}
    assert len(keys) == len(changes) + 1
    same = [
        {"protocol": {"n_splits": 4}},
        {"protocol": {"metrics": []}},
        {"protocol": {"test": "wilcoxon"}},
        {"protocol": {"alpha": 0.1}},
        {"dataset": {"path": "elsewhere"}},
        {"hyper": {"C": None}},
    ]
    for change in same:
        options = dict(change)
        dataset = options.pop("dataset", {})
        changed = fakes.cell(**options)
        changed = dataclasses.replace(changed, dataset={**changed.dataset, **dataset})
        assert changed.key(data) == key


def test_key_follows_the_numbers_and_no_release(fakes, monkeypatch):
    """A release that changes documents alone keeps finished cells; a release that may change numbers does not."""
    cell, data = fakes.cell(), fakes.make_dataset()
    key, request = cell.key(data), cell.request_key()
    monkeypatch.setattr("advcli.results.provenance.package_version", lambda: "99.0")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "99.0")
    assert (cell.key(data), cell.request_key()) == (key, request)
    monkeypatch.setattr(cells, "NUMBERS_VERSION", cells.NUMBERS_VERSION + 1)
    assert cell.key(data) != key
    assert cell.request_key() == request, "a failed cell is tried again whatever made it"


def test_a_resumed_sweep_computes_again_what_older_numbers_made(fakes, folder, monkeypatch):
    asked = [fakes.cell(name) for name in ("a", "bb", "ccc")]
    old = [run_cell(cell, folder, DATA) for cell in asked]
    for module in (cells, cell_file):
        monkeypatch.setattr(module, "NUMBERS_VERSION", cell_file.NUMBERS_VERSION + 1)
    new = [run_cell(cell, folder, DATA) for cell in asked[:2]]
    assert not any(outcome.skipped for outcome in new)
    assert run_cell(asked[0], folder, DATA).skipped
    assert folder.merge() == 3
    runs = folder.runs()
    # the third one is not yet computed again: its rows stay until then
    assert set(runs["cell"]) == {new[0].key, new[1].key, old[2].key}
    assert len(runs) == 3 * len(old[0].rows)
    assert folder.disagreement() == ""


def test_other_options_are_no_older_numbers(fakes, folder, monkeypatch):
    """A cell replaces another one only if their configurations agree in all but descriptions."""
    older, other, newer = (
        dataclasses.replace(fakes.cell(), loss={"name": "ww", **more})
        for more in ({"description": "an older text"}, {"factor": 2}, {"description": "a newer text"})
    )
    run_cell(older, folder, DATA)
    run_cell(other, folder, DATA)
    for module in (cells, cell_file):
        monkeypatch.setattr(module, "NUMBERS_VERSION", cell_file.NUMBERS_VERSION + 1)
    assert not run_cell(newer, folder, DATA).skipped
    assert folder.merge() == 2
    assert set(folder.runs()["options"]) == {"protocol.name=tiny", "loss.factor=2; protocol.name=tiny"}


def test_cells_are_plain_data(fakes):
    cell = fakes.cell(hyper={"C": np.float64(2)})
    assert pickle.loads(pickle.dumps(cell)) == cell
    assert json.loads(json.dumps(cell.as_mapping()))["hyper"] == {"C": 2.0}


def test_fixed_hyper_parameters_skip_the_search(fakes, folder):
    outcome = run_cell(fakes.cell(hyper={"lambda": 0.5}), folder, DATA)
    assert fakes.N_FITS["count"] == 3
    runs, search = tables(folder)
    assert len(search) == 0
    assert (runs["lambda"] == 0.5).all()
    assert outcome.hyper == {"lambda": 0.5}


def test_failure_before_the_splits_is_one_row_and_is_tried_again(fakes, folder):
    cell = fakes.cell()
    broken = dataclasses.replace(cell, dataset={**cell.dataset, "missing": True})
    outcome = run_cell(broken, folder, DATA)
    assert (outcome.status, outcome.error) == ("failed", "data set blobs is not here")
    runs = tables(folder)[0]
    assert runs[["dataset", "status", "error"]].to_numpy().tolist() == [["blobs", "failed", "data set blobs is not here"]]
    trace = (folder.path / "failures" / f"{outcome.key}.txt").read_text()
    assert "Traceback" in trace
    assert "DataError" in trace
    assert not run_cell(broken, folder, DATA).skipped


def test_failing_fits_are_rows_and_the_others_go_on(fakes, folder, monkeypatch):
    fit = fakes.FakeLearner.fit
    calls = iter(range(1000))

    def sometimes(self, *arguments, **more):
        if self.tol == 1e-3 and next(calls) == 1:
            raise ValueError("two\nlines")
        return fit(self, *arguments, **more)

    monkeypatch.setattr(fakes.FakeLearner, "fit", sometimes)
    outcome = run_cell(fakes.cell(), folder, DATA)
    assert (outcome.status, outcome.error) == ("failed", "ValueError: two lines")
    runs = tables(folder)[0]
    assert runs["status"].tolist() == ["ok"] * 2 + ["failed"] * 2 + ["ok"] * 2
    assert runs["value"].isna().tolist() == [False] * 2 + [True] * 2 + [False] * 2
    assert "two\nlines" in (folder.path / "failures" / f"{outcome.key}.txt").read_text()
    monkeypatch.setattr(fakes.FakeLearner, "fit", fit)
    assert run_cell(fakes.cell(), folder, DATA).status == "ok"
    assert set(tables(folder)[0]["status"]) == {"ok"}
    assert not (folder.path / "failures").exists()


def test_strict_raises_and_writes_nothing(fakes, folder):
    before = sorted(folder.path.rglob("*"))
    cell = fakes.cell()
    with pytest.raises(DataError, match="not here"):
        run_cell(dataclasses.replace(cell, dataset={**cell.dataset, "missing": True}), folder, DATA, strict=True)
    with pytest.raises(DataError, match="bad input in the fit"):
        run_cell(dataclasses.replace(fakes.cell(), loss={"name": "zero_one", "bad_input": True}), folder, DATA, strict=True)
    with pytest.raises(ConfigError, match="n_splits"):
        run_cell(fakes.cell(protocol={"n_splits": 0}), folder, DATA, strict=True)
    assert sorted(folder.path.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": {"tol": 0}}, "solver.tol"),
        ({"solver": {"search_tol": -1}}, "solver.search_tol"),
        ({"solver": {"search_passes": 0}}, "solver.search_passes"),
        ({"noise": {"name": "uniform"}}, "noise"),
        ({"hyper": {"gamma": 1.0}}, "hyper.gamma"),
        ({"protocol": {"splits": "author"}}, "no published splits"),
    ],
)
def test_bad_input_is_one_failed_row(fakes, folder, change, message):
    outcome = run_cell(fakes.cell(**change), folder, DATA)
    assert outcome.status == "failed"
    assert message in outcome.error
    assert fakes.N_FITS["count"] == 0


def test_unconverged_fits_are_said_once(fakes, folder):
    cell = dataclasses.replace(fakes.cell(), loss={"name": "zero_one", "unconverged": "max_passes"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = run_cell(cell, folder, DATA)
    (warning,) = [entry for entry in caught if issubclass(entry.category, NotConvergedWarning)]
    assert "3 of 3 fits" in str(warning.message)
    assert "18 of 18 fits of the search" in str(warning.message)
    assert outcome.status == "not_converged"
    runs = tables(folder)[0]
    assert set(runs["status"]) == {"not_converged"}
    assert not runs["converged"].any()
    assert run_cell(cell, folder, DATA).skipped  # not converged is a result, not a failure


@pytest.mark.parametrize(
    ("status", "advice", "searched"),
    [
        ("max_passes", "raise solver.max_passes or solver.tol", "raise solver.max_passes or solver.search_tol"),
        ("max_seconds", "raise solver.max_seconds or solver.tol", "raise solver.max_passes or solver.search_tol"),
        ("stalled", "raise solver.tol or choose another solver", "raise solver.max_passes or solver.search_tol"),
        ("infeasible_dual", "which no limit changes: choose another solver", ""),
        ("negative_gap", "which no limit changes: a value, an offset or a feature map is wrong", ""),
        ("exhausted", "the solver says exhausted", "raise solver.max_passes or solver.search_tol"),
    ],
)
def test_advice_is_that_of_the_status(fakes, folder, status, advice, searched):
    cell = dataclasses.replace(fakes.cell(), loss={"name": "zero_one", "unconverged": status})
    with pytest.warns(NotConvergedWarning) as caught:
        outcome = run_cell(cell, folder, DATA)
    text = str(caught[0].message)
    assert text == outcome.warning
    assert text.removesuffix(" [ADV150]").endswith(f"{advice}; {searched}" if searched else advice)
    assert ("raise" in text) == ("raise" in advice + searched)


def test_interrupt_passes_through_and_leaves_nothing(fakes, folder, monkeypatch):
    def interrupt(self, *arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(fakes.FakeLearner, "fit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_cell(fakes.cell(), folder, DATA)
    assert not [*folder.cells_path.glob("*.json")]


def test_unwritable_folder_stops_everything(fakes, folder, monkeypatch):
    def full(*arguments, **more):
        raise ResultsError("disk full")

    monkeypatch.setattr(ResultsFolder, "write_cell", full)
    with pytest.raises(ResultsError):
        run_cell(fakes.cell(), folder, DATA)


def test_one_thread_for_linear_algebra(fakes, folder, monkeypatch):
    seen = set()
    fit = fakes.FakeLearner.fit

    def look(self, *arguments, **more):
        seen.update(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
        return fit(self, *arguments, **more)

    monkeypatch.setattr(fakes.FakeLearner, "fit", look)
    run_cell(fakes.cell(), folder, DATA)
    assert seen == {1}


def test_published_splits_and_weights(fakes, folder, monkeypatch):
    n = 60
    splits = tuple((np.arange(i, i + 40) % n, np.arange(i + 40, i + 60) % n) for i in (0, 7))
    weight = np.linspace(1, 2, n)
    data = fakes.make_dataset(n=n, splits=splits, example_weight=weight)
    monkeypatch.setattr("advcli.evaluation.recipe.load_data", lambda *arguments, **more: data)
    outcome = run_cell(fakes.cell(protocol={"splits": "author", "standardise": "none"}, hyper={"C": 1.0}), folder, DATA)
    assert any("2 published splits exist, 3 were asked for" in note for note in outcome.notes)
    assert not any("win over" in note for note in outcome.notes)
    for kind, words in (("author", "the published splits"), ("official", "the official parts")):
        data.official = splits[0]
        protocol = {"splits": kind, "standardise": "none", "train_size": 0.5}
        notes = Recipe(fakes.cell(protocol=protocol, hyper={"C": 1.0}), DATA).splits()[1]
        assert f"{words} win over protocol.train_size=0.5; protocol.splits=random reads it [ADV113]" in notes
    for entry, (train, _) in zip(fakes.LOG, splits, strict=True):
        np.testing.assert_array_equal(entry.X, data.X[train])
        np.testing.assert_array_equal(entry.weight, weight[train])


def test_printed_sizes_and_notes(fakes, folder, monkeypatch):
    data = fakes.make_dataset(sizes=(30, 20), notes=("2 rows dropped",))
    monkeypatch.setattr("advcli.evaluation.recipe.load_data", lambda *arguments, **more: data)
    outcome = run_cell(fakes.cell(protocol={"train_size": 0.5}), folder, DATA)
    assert {(row["n_train"], row["n_test"]) for row in outcome.rows} == {(30, 20)}
    assert outcome.notes[0] == "2 rows dropped"
    assert any("30/20 win over protocol.train_size=0.5" in note for note in outcome.notes)
    # the share of nobody's asking, too, where it would have made other parts
    assert any("30/20 win over protocol.train_size=0.7" in note for note in run_cell(fakes.cell(), folder, DATA).notes)
    assert not any("sequences" in note for note in outcome.notes)


def test_sizes_of_sequences_count_sequences(fakes, folder, monkeypatch):
    data = fakes.make_dataset(sizes=(20, 10), groups=np.repeat(np.arange(30), 2))
    monkeypatch.setattr("advcli.evaluation.recipe.load_data", lambda *arguments, **more: data)
    outcome = run_cell(fakes.cell(protocol={}), folder, DATA)
    assert {(row["n_train"], row["n_test"]) for row in outcome.rows} == {(40, 20)}
    assert any("keep sequences whole" in note for note in outcome.notes)


def test_sparse_data(fakes, folder, monkeypatch):
    from scipy import sparse

    data = fakes.make_dataset()
    data.X = sparse.csr_array(data.X)
    monkeypatch.setattr("advcli.evaluation.recipe.load_data", lambda *arguments, **more: data)
    outcome = run_cell(fakes.cell(), folder, DATA)
    assert outcome.status == "ok"
    assert any("not centred" in note for note in outcome.notes)


def test_a_class_missing_from_the_training_part_is_fine(fakes, folder, monkeypatch):
    data = fakes.make_dataset()
    data.y[:] = data.y % 2
    data.y[0] = 2  # a class of one row: absent from most training parts
    monkeypatch.setattr("advcli.evaluation.recipe.load_data", lambda *arguments, **more: data)
    outcome = run_cell(fakes.cell(protocol={"n_splits": 8}), folder, DATA)
    assert outcome.status == "ok"
    assert {row["n_classes"] for row in outcome.rows} == {3}


# ---- processes

WORKER = """
import dataclasses, importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("evaluation_fakes", {fakes!r})
fakes = importlib.util.module_from_spec(spec)
sys.modules["evaluation_fakes"] = fakes
spec.loader.exec_module(fakes)
fakes.install()
from advcli.evaluation import run_cell
from advcli.results.folder import ResultsFolder
ResultsFolder.merge_seconds = ResultsFolder.merge_seconds_per_cell = 0.0
folder = ResultsFolder({path!r})
folder.prepare({{"seed": 0}})
print("ready", flush=True)
for dataset in ("a", "bb", "ccc"):
    for loss in ("zero_one", "ww"):
        cell = dataclasses.replace(fakes.cell(dataset), loss={{"name": loss, "sleep": 0.002}})
        print("done", run_cell(cell, folder, Path("unused")).key, flush=True)
folder.merge()
"""


def start(path):
    return nursery().start(WORKER.format(fakes=str(Path(__file__).parents[1] / "support" / "fakes.py"), path=str(path)))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed")
    done = start(path).wait()
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 6
    return tables(ResultsFolder(path))


def test_kill_at_random_moments_loses_the_cell_in_flight_only(undisturbed, tmp_path):
    moments = random.Random(7)
    for number in range(5):
        child = start(tmp_path)
        until(lambda child=child: child.out.is_file() and "ready\n" in child.out.read_text(), pause=0.001)
        time.sleep(moments.uniform(0.0, 0.12))
        os.kill(child.pid, signal.SIGKILL)
        said = [line.split()[1] for line in child.wait().stdout.splitlines() if line.startswith("done")]
        folder = ResultsFolder(tmp_path)
        assert all(folder.read_cell(key) for key in said), number  # what was reported as done is on the disk
        if (tmp_path / "runs.csv").exists():
            runs = folder.runs()  # never half a file
            assert (runs.groupby("cell").size() == 6).all()
        for file in folder.cells_path.glob("*.json"):
            assert folder.read_cell(file.stem)
    done = start(tmp_path).wait()
    assert done.returncode == 0, done.stderr
    for one, other in zip(tables(ResultsFolder(tmp_path)), undisturbed, strict=True):
        assert one.equals(other)
    assert not [*tmp_path.rglob("*.tmp")]


def test_two_processes_in_one_folder(undisturbed, tmp_path):
    for child in [start(tmp_path), start(tmp_path)]:
        done = child.wait()
        assert done.returncode == 0, done.stderr
        assert "damaged" not in done.stderr
    assert len([*(tmp_path / "cells").glob("*.json")]) == 6
    assert len(ResultsFolder(tmp_path).runs()) == 6 * 6
    for one, other in zip(tables(ResultsFolder(tmp_path)), undisturbed, strict=True):
        assert one.equals(other)


# ---- the real parts


@pytest.fixture
def real():
    for module in ("advcli.core.compiled", "advcli.data", "advcli.learners.surrogate"):
        try:
            importlib.import_module(module)
        except ImportError as error:
            pytest.skip(f"needs the compiled package: {error}")


@pytest.mark.parametrize("loss", ["zero_one", "ww", "cs", "llw"])
def test_real_cell_is_certified_and_repeatable(real, tmp_path, loss):
    from advcli.evaluation import Cell

    cell = Cell(
        dataset={"name": "iris", "source": "sklearn"},
        loss={"name": loss},
        features={"name": "linear"},
        solver={"name": "auto", "tol": 1e-3, "search_tol": 1e-2, "max_passes": 10000, "max_seconds": None},
        protocol={"name": "tiny", "n_splits": 2, "folds": 3, "stage1": {"regularisation": [1, 64]}, "stage2": {}},
    )
    frames = []
    for number in range(2):
        folder = fresh(tmp_path / str(number))
        outcome = run_cell(cell, folder, tmp_path)
        assert outcome.status == "ok", outcome.error
        assert 0 <= outcome.worst_gap <= 1e-3
        assert outcome.mean < 0.2
        frames.append(tables(folder))
    for one, other in zip(*frames, strict=True):
        assert one.equals(other)
    runs = frames[0][0]
    assert (runs["dual_objective"] <= runs["objective"]).all()


def test_passes_of_the_search_leave_the_final_fits_alone(real, tmp_path):
    from advcli.evaluation import Cell

    cell = Cell(
        dataset={"name": "iris", "source": "sklearn"},
        loss={"name": "zero_one"},
        features={"name": "rbf"},
        solver={"name": "auto", "tol": 1e-6, "search_tol": 1e-6, "search_passes": 2, "max_passes": 10000, "max_seconds": None},
        protocol={"name": "tiny", "n_splits": 2, "folds": 3, "stage1": {"regularisation": [64], "gamma": [0.01, 0.1]}, "stage2": {}},
    )
    folder = fresh(tmp_path)
    with pytest.warns(NotConvergedWarning, match="6 of 6 fits of the search"):
        assert run_cell(cell, folder, tmp_path).status == "ok"
    runs, search = tables(folder)
    assert (runs["status"] == "ok").all()
    assert (runs["relative_gap"] <= 1e-6).all()
    assert search["passes"].max() < runs["passes"].min()
