import errno
import itertools
import json
import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from support.sealing import sealed

from advcli.core import files
from advcli.core.errors import ResultsError
from advcli.results import folder as records
from advcli.results import provenance
from advcli.results.folder import ResultsFolder
from advcli.results.tables import RUN_COLUMNS, SEARCH_COLUMNS, canonical_json, complete_rows, format_value, plain


def row(dataset="iris", method="ww linear", split=1, value=0.1, **more):
    return {"dataset": dataset, "method": method, "split": split, "metric": "error", "value": value, "status": "ok", **more}


def fill(folder, keys, **more):
    for key in keys:
        rows = [row(dataset=f"d{key}", split=split, value=0.1 * split, cell=key, **more) for split in (1, 2)]
        folder.write_cell(key, rows, [{"cell": key, "dataset": f"d{key}", "metric": "error", "stage": 1}], request=f"r{key}")


def read(folder):
    return [(folder.path / name).read_bytes() for name in ("runs.csv", "search.csv")]


def test_schema_is_the_contract():
    assert RUN_COLUMNS[:8] == ("dataset", "loss", "features", "solver", "method", "split", "metric", "value")
    promised = {"n_train", "n_test", "n_features", "n_classes", "objective", "dual_objective", "relative_gap", "passes"}
    assert promised | {"converged", "fit_seconds", "predict_seconds", "seed", "status", "error"} <= set(RUN_COLUMNS)
    assert {"cell", "stage", "fold", "metric", "value", "relative_gap", "seconds"} <= set(SEARCH_COLUMNS)


def test_merge_does_not_depend_on_the_order(tmp_path):
    seen = set()
    for number, order in enumerate(itertools.permutations("abc")):
        folder = ResultsFolder(tmp_path / str(number))
        folder.prepare({})
        fill(folder, order)
        assert folder.merge() == 3
        seen.add(tuple(read(folder)))
        folder.merge()
        seen.add(tuple(read(folder)))
    assert len(seen) == 1


def test_rows_are_in_one_order(folder):
    """Data set, method, seed as a number, key of the cell; within a cell the order in which its rows were given."""
    cells = {"k1": ("b", "ww", 0), "k2": ("a", "ww", 10), "k3": ("a", "ww", 9), "k0": ("a", "ww", 9), "k4": ("a", "cs", 11)}
    inner = [(1, "error"), (1, "accuracy"), (2, "error"), (2, "accuracy"), (10, "error"), (10, "accuracy")]
    for key, (dataset, method, seed) in cells.items():
        rows = [row(dataset, method, split, seed=seed, cell=key) | {"metric": metric} for split, metric in inner]
        folder.write_cell(key, rows, request=f"r{key}")
    folder.merge()
    runs = folder.runs()
    assert list(dict.fromkeys(runs["cell"])) == ["k4", "k0", "k3", "k2", "k1"]
    assert list(zip(runs["split"], runs["metric"], strict=True)) == inner * 5


def test_floats_round_trip_and_types_are_stable(folder):
    values = [0.1, 1 / 3, 1e-300, 5e-324, 123456789.123456789, float("inf"), -0.0]
    rows = [row(split=i, value=value, seed=2**60, passes=None, converged=True) for i, value in enumerate(values)]
    folder.write_cell("k", [*rows, row(dataset="null", split=99, value=math.nan, error="NA", converged=None)])
    folder.merge()
    runs = folder.runs()
    makers = runs.loc[runs["split"] < 99, "value"].tolist()
    assert [value.hex() for value in makers] == [value.hex() for value in values]
    assert runs["seed"].dtype == "Int64"
    assert runs["seed"].iloc[0] == 2**60
    assert runs["converged"].dtype == "boolean"
    assert runs["passes"].isna().all()
    last = runs[runs["split"] == 99].iloc[0]
    assert (last["dataset"], last["error"]) == ("null", "NA")
    assert math.isnan(last["value"])


def test_numpy_values_are_plain():
    assert plain({"a": np.float64(0.1), "b": (np.int64(3), np.bool_(True)), "c": np.arange(2)}) == {
        "a": 0.1,
        "b": [3, True],
        "c": [0, 1],
    }
    assert [format_value(value) for value in (None, True, 3, 0.1, "x")] == ["", "True", "3", "0.1", "x"]
    assert canonical_json({"b": 1.0, "a": [2]}) == canonical_json({"a": [2.0], "b": 1}) == '{"a":[2],"b":1}'


def test_one_text_for_equal_values():
    assert canonical_json({"b": [1.0, 0.5, np.int64(3)], "a": {"y": None, "x": True}}) == '{"a":{"x":true,"y":null},"b":[1,0.5,3]}'
    assert canonical_json({"a": 1, "b": 2.0}) == canonical_json({"b": 2, "a": 1.0})
    assert canonical_json(1e16) == canonical_json(10**16)


def test_further_hyper_parameters_get_columns(folder):
    folder.write_cell("a", [row(C=1.0)])
    folder.write_cell("b", [row(method="x", landmarks=5)])
    folder.merge()
    header = (folder.path / "runs.csv").read_text().splitlines()[0].split(",")
    assert header[header.index("gamma") + 1] == "landmarks"
    assert folder.runs()["landmarks"].tolist()[1] == 5


def test_texts_with_commas_and_quotes(folder):
    folder.write_cell("a", [row(error='needs "x", y', status="failed")])
    folder.merge()
    assert folder.runs()["error"].tolist() == ['needs "x", y']


def test_has_and_damaged_cells(folder):
    fill(folder, "ab")
    assert folder.read_cell("a")
    assert not folder.read_cell("c")
    file = folder.cells_path / "a.json"
    file.write_text(file.read_text()[:-40])
    assert not folder.read_cell("a")
    assert folder.merge() == 1
    (remark,) = folder.remarks
    assert "a.json is damaged (not JSON to its end) and left out" in remark
    assert folder.runs()["dataset"].unique().tolist() == ["db"]


def test_cells_of_another_schema_are_not_there(folder):
    folder.write_cell("k", [row()])
    file = folder.cells_path / "k.json"
    for schema in (records.SCHEMA_VERSION + 1, None):
        file.write_text(sealed(json.loads(file.read_text()) | {"schema": schema}))
        assert not folder.read_cell("k")
        assert folder.read_cell("k") is None


def test_failure_is_kept_until_it_succeeds(folder):
    folder.write_cell("req", [row(status="failed", value=None, error="no")], request="req", traceback="Traceback ...")
    assert not folder.read_cell("req")
    assert (folder.path / "failures" / "req.txt").read_text() == "Traceback ..."
    folder.merge()
    assert folder.runs()["status"].tolist() == ["failed"]
    folder.write_cell("key", [row()], request="req")
    folder.merge()
    assert folder.runs()["status"].tolist() == ["ok"]
    assert not (folder.path / "failures").exists()
    # another process that failed later does not take the success back
    folder.write_cell("req", [row(status="failed", value=None)], request="req", traceback="x")
    folder.merge()
    assert folder.runs()["status"].tolist() == ["ok"]


def test_merge_keeps_tables_of_a_folder_without_cells(tmp_path):
    rows = [{"dataset": "x", "metric": "error", "split": 1}]
    pd.DataFrame(complete_rows(rows)).to_csv(tmp_path / "runs.csv", index=False)
    assert ResultsFolder(tmp_path).merge() == 0
    assert len(ResultsFolder(tmp_path).runs()) == 1


def test_identity(folder):
    folder.prepare({"seed": 1, "solver": {"tol": 1e-3}})  # nothing computed yet: a corrected config takes the folder
    fill(folder, "a")
    folder.prepare({"solver": {"tol": 0.001}, "seed": 1})
    with pytest.raises(ResultsError, match="made by another config") as caught:
        folder.prepare({"seed": 2, "solver": {"tol": 1e-3}, "new": [1]})
    message = str(caught.value)
    assert "seed: 1 -> 2" in message
    assert "new: (absent) -> [1]" in message
    assert "tol" not in message
    assert "name=" in message
    assert "\n" not in message


def test_unwritable_places(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ResultsError, match="cannot create") as caught:
            ResultsFolder(place).prepare({})
        assert "\n" not in str(caught.value)


def test_disk_full_leaves_nothing_behind(folder, monkeypatch):
    folder.flush_seconds = 0.0  # every cell waits for the disk
    fill(folder, "a")
    folder.merge()
    before = {path.name: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ResultsError, match="No space left on device") as caught:
        fill(folder, "b")
    assert "\n" not in str(caught.value)
    with pytest.raises(ResultsError):
        folder.merge()
    assert {path.name: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before


def test_leftovers_of_dead_processes_are_removed(folder):
    script = """
import os, pathlib, sys
from advcli.core.files import atomic_file
with atomic_file(pathlib.Path(sys.argv[1])) as file:
    file.write("half")
    file.flush()
    os._exit(9)
"""
    subprocess.run([sys.executable, "-c", script, str(folder.path / "runs.csv")], check=False)
    subprocess.run([sys.executable, "-c", script, str(folder.cells_path / "a.json")], check=False)
    leftover = folder.path / f".x.csv.{files.socket.gethostname()}.{os.getpid()}.0.tmp"
    leftover.write_text("in use")
    assert len([*folder.path.rglob("*.tmp")]) == 3
    assert not (folder.path / "runs.csv").exists()
    folder.prepare({"seed": 0})
    assert [*folder.path.rglob("*.tmp")] == [leftover]


def test_merges_are_rare_during_a_sweep(folder, monkeypatch):
    fill(folder, "a")
    assert folder.merge_if_due()
    clock = (folder.path / "runs.csv").stat().st_mtime  # stands still
    monkeypatch.setattr(records.time, "time", lambda: clock)
    fill(folder, "b")
    assert not folder.merge_if_due()
    os.utime(folder.path / "runs.csv", (0, 0))
    assert not folder.merge_if_due()  # the next moment is settled: a worker does not count the cells after each of them
    assert ResultsFolder(folder.path).merge_if_due()
    # the pause grows with the number of cells, so that merging stays a bounded share of a long sweep
    monkeypatch.setattr(records, "cell_files", lambda path: [path] * 10_000)
    monkeypatch.setattr(records.time, "time", lambda: clock + 60)
    assert not folder.merge_if_due()


def test_reading_what_is_not_there(tmp_path):
    with pytest.raises(ResultsError, match=r"no runs.csv"):
        ResultsFolder(tmp_path).runs()
    (tmp_path / "runs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ResultsError, match="not a table"):
        ResultsFolder(tmp_path).runs()
    (tmp_path / "runs.csv").write_text("dataset,metric,value\nx,error,many\n")
    with pytest.raises(ResultsError, match="cannot read"):
        ResultsFolder(tmp_path).runs()


def made(sklearn, level="avx2"):
    """Return who made a cell, with another version of scikit-learn."""
    here = provenance.maker(level)
    return here | {"versions": here["versions"] | {"scikit-learn": sklearn}}


def test_provenance(folder):
    folder.write_cell("a", [row()], about={"dataset": "iris", "dataset_sha256": "abc", "made_by": [made("1.9.1")]})
    folder.write_provenance({"seed": 0, "dataset": {"name": "iris"}}, started=100.0, ended=130.0)
    document = json.loads((folder.path / "provenance.json").read_text())
    assert {"python", "numpy", "advcli"} <= document["versions"].keys()
    assert document["cpu"]["logical_cores"] == os.cpu_count()
    assert "git" in document
    folder.write_cell("b", [row()], about={"dataset": "iris", "dataset_sha256": "abc", "made_by": [made("1.9.1", "scalar")]})
    folder.write_provenance({"seed": 0}, started=1000.0, ended=1005.0, extra={"workers": 2})
    document = json.loads((folder.path / "provenance.json").read_text())
    assert document["wall_seconds"] == 35.0
    assert (document["start"], document["end"]) == ("1970-01-01T00:01:40+00:00", "1970-01-01T00:16:45+00:00")
    assert document["data"] == {"iris": "abc"}
    assert document["workers"] == 2
    assert [(each["instruction_set"], each["cells"]) for each in document["made_by"]] == [("avx2", ["a"]), ("scalar", ["b"])]
    assert document["versions"]["scikit-learn"] == "1.9.1", "what all cells share stands above"
    assert "instruction_set" not in document
    assert document["peak_memory_bytes"] > 1e6


def test_a_run_that_computed_nothing_changes_no_versions(folder):
    folder.write_cell("a", [row()], about={"made_by": [made("1.9.1")]})
    folder.write_cell("b", [row()], about={"made_by": [made("1.7.2")]})
    folder.write_cell("c", [row()], about={"made_by": [made("1.7.2"), made("1.9.1")]})
    folder.write_provenance({}, started=0.0, ended=1.0)
    document = json.loads((folder.path / "provenance.json").read_text())
    values = [(each["versions"]["scikit-learn"], each["cells"]) for each in document["made_by"]]
    assert values == [("1.9.1", ["a", "c"]), ("1.7.2", ["b", "c"])]
    assert "versions" not in document
    folder.merge()
    assert folder.makers.mixture() == (
        "the cells were not made by one set of versions and processors: scikit-learn 1.9.1 (2 cells); scikit-learn 1.7.2 (2 cells)"
    )


def test_contents_that_are_mixed_are_said(folder):
    for key, content in (("a", "1" * 64), ("b", "2" * 64), ("c", "2" * 64)):
        folder.write_cell(key, [row()], about={"dataset": "mine", "dataset_sha256": content})
    folder.merge()
    assert folder.makers.mixtures() == ["the cells of mine were not made from one content: 11111111 (1 cell), 22222222 (2 cells)"]


def test_two_processes_merge_at_once(folder):
    fill(folder, "abcdef")
    folder.merge()
    expected = read(folder)
    script = "import sys; from advcli.results.folder import ResultsFolder\nfor _ in range(15): ResultsFolder(sys.argv[1]).merge()"
    workers = [subprocess.Popen([sys.executable, "-W", "error", "-c", script, str(folder.path)]) for _ in range(2)]
    while any(worker.poll() is None for worker in workers):
        assert read(folder) == expected  # never half a file
    assert [worker.returncode for worker in workers] == [0, 0]


def test_no_warning_for_a_sound_folder(folder):
    fill(folder, "ab")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder.merge()
