"""Two configurations never share a folder: it is claimed before the first cell, and every cell file says to which it belongs."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import shutil
from multiprocessing import connection
from pathlib import Path
from typing import Any

import pytest
from support.sealing import change

from advcli.core.errors import ResultsError
from advcli.core.files import create_text
from advcli.results.folder import ResultsFolder

ONE: dict[str, Any] = {"seed": 0, "hyper": {"C": 1.0}}
OTHER: dict[str, Any] = {"seed": 1, "hyper": {"C": 2.0}}


def fill(folder: ResultsFolder, *keys: str) -> None:
    for key in keys:
        row = {"dataset": "iris", "method": f"m{key}", "split": 1, "metric": "error", "value": 0.1, "status": "ok", "cell": key}
        folder.write_cell(key, [row | {"n_train": 2, "n_test": 1, "seed": 0}], request=f"r{key}")


def claimed(path: Path, identity: dict[str, Any], *keys: str) -> ResultsFolder:
    folder = ResultsFolder(path)
    folder.prepare(identity)
    fill(folder, *keys)
    return folder


def refused(path: Path, identity: dict[str, Any], match: str) -> None:
    files = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    with pytest.raises(ResultsError, match=match) as caught:
        ResultsFolder(path).prepare(identity)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == files


def test_every_cell_file_says_to_which_configuration_it_belongs(tmp_path: Path) -> None:
    folder = claimed(tmp_path, ONE, "a")
    fill(ResultsFolder(tmp_path), "b")  # a worker of another kind, which has no identity
    folder.write_cell("c", [{"status": "failed"}], request="c", traceback="no")
    assert [json.loads(file.read_text())["identity"] for file in folder.cells_path.glob("*.json")] == [ONE] * 3


@pytest.mark.parametrize("state", ["missing", "{", "[]", "null", ""])
def test_a_lost_identity_is_that_of_the_cells(state: str, tmp_path: Path) -> None:
    claimed(tmp_path, ONE, "a", "b")
    file = tmp_path / "identity.json"
    whole = file.read_text()
    file.unlink() if state == "missing" else file.write_text(state)
    refused(tmp_path, OTHER, r"made by another config \(hyper\.C: 1\.0 -> 2\.0, seed: 0 -> 1\)")
    folder = claimed(tmp_path, ONE)
    assert file.read_text() == whole
    (remark,) = folder.remarks
    assert "written again from the cell files" in remark


@pytest.mark.parametrize("state", ["missing", "{"])
def test_a_folder_that_nothing_tells_of_is_refused(state: str, tmp_path: Path) -> None:
    for name, identity in (("cells", ONE), ("rows", ONE)):
        folder = claimed(tmp_path / name, identity, "a")
        path = folder.cells_path / "a.json"
        change(path, lambda content: content.update(identity=None))
        folder.merge()
        if name == "rows":
            path.unlink()
        file = folder.path / "identity.json"
        file.unlink() if state == "missing" else file.write_text(state)
        for asked in (ONE, OTHER):
            refused(folder.path, asked, "no cell file says which config made it")


def test_cells_of_two_configurations_make_no_table(tmp_path: Path) -> None:
    one, other = claimed(tmp_path / "one", ONE, "a"), claimed(tmp_path / "other", OTHER, "b")
    one.merge()
    before = (one.path / "runs.csv").read_bytes()
    shutil.copy(other.cells_path / "b.json", one.cells_path)
    for state in ("there", "lost"):
        if state == "lost":
            (one.path / "identity.json").unlink()
        for work in (one.merge, one.of_cells, one.disagreement):
            with pytest.raises(ResultsError, match=r"b\.json was made by another config .*hyper\.C") as caught:
                work()
            assert "\n" not in str(caught.value)
        for asked in (ONE, OTHER):
            refused(one.path, asked, "one table cannot hold both")
    assert (one.path / "runs.csv").read_bytes() == before


def test_cells_of_another_schema_say_nothing(tmp_path: Path) -> None:
    folder = claimed(tmp_path, ONE, "a", "b")
    change(folder.cells_path / "b.json", lambda content: content.update(schema=0, identity=OTHER))
    again = claimed(tmp_path, ONE)
    assert again.merge() == 1
    assert ["b.json is of another version" in remark for remark in again.remarks] == [True]


def test_a_corrected_configuration_takes_a_folder_that_nobody_uses(tmp_path: Path) -> None:
    claimed(tmp_path, ONE)
    claimed(tmp_path, OTHER)
    first = claimed(tmp_path, ONE)
    with first.session():
        claimed(tmp_path, OTHER)  # of the same process: in a notebook the session before was left
    with pytest.raises(ResultsError, match="another config has just claimed"), first.session():
        raise AssertionError("two configurations run in one folder")
    assert not [*tmp_path.glob(".session.*")]


def test_a_run_under_way_keeps_its_folder_before_its_first_cell(tmp_path: Path) -> None:
    claimed(tmp_path, ONE)
    (tmp_path / ".session.another.1").mkdir()
    refused(tmp_path, OTHER, "made by another config")
    folder = claimed(tmp_path, ONE)
    assert not folder.abandon()
    (tmp_path / ".session.another.1").rmdir()
    assert folder.abandon()
    assert not tmp_path.exists()


def test_one_name_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert create_text(tmp_path / "a", "one")
    assert not create_text(tmp_path / "a", "other")

    def unable(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("advcli.core.files.os.link", unable)
    assert not create_text(tmp_path / "a", "other")
    assert create_text(tmp_path / "b", "one")
    assert [(tmp_path / name).read_text() for name in "ab"] == ["one", "one"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def _claim(path: Path, identity: dict[str, Any], start: Any, answer: connection.Connection) -> None:
    folder = ResultsFolder(path)
    start.wait()
    try:
        folder.prepare(identity)
        with folder.session():
            answer.send("mine")
            start.wait()  # a sweep that has no cell yet
            fill(folder, f"k{identity['seed']}")
    except ResultsError as error:
        answer.send(str(error))
        start.wait()


@pytest.mark.parametrize("rounds", [5, pytest.param(200, marks=pytest.mark.slow)])
def test_of_several_claims_at_one_moment_one_holds(rounds: int, tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for number in range(rounds):
        start = context.Barrier(3)
        ends = [context.Pipe(duplex=False) for _ in range(3)]
        workers = [
            context.Process(target=_claim, args=(tmp_path / str(number), {"seed": seed}, start, sender))
            for seed, (_, sender) in zip(itertools.count(), ends, strict=False)
        ]
        for worker in workers:
            worker.start()
        said = [receiver.recv() for receiver, _ in ends]
        for worker in workers:
            worker.join()
        assert said.count("mine") == 1, said
        assert sum("another config" in line for line in said) == 2
        folder = ResultsFolder(tmp_path / str(number))
        assert folder.merge() == 1
        assert json.loads((folder.path / "identity.json").read_text()) == {"seed": said.index("mine")}
