"""A cell file that is not what was written is never believed: it is set aside, told in one line, and its cell is computed again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advcli.core.errors import ResultsError
from advcli.evaluation import run_cell
from advcli.results.cell_file import DamagedError, read_cell_file
from advcli.results.folder import ResultsFolder

DATA = Path("/nowhere")
Content = dict[str, Any]


def _rows(change: Callable[[list[list[Any]], list[str]], object]) -> Callable[[Content], Content]:
    def edited(content: Content) -> Content:
        change(content["runs"]["values"], content["runs"]["columns"])
        return content

    return edited


def _put(column: str, value: Any) -> Callable[[Content], Content]:
    return _rows(lambda rows, columns: rows[0].__setitem__(columns.index(column), value))


def _drop_column(content: Content) -> Content:
    place = content["runs"]["columns"].index("value")
    content["runs"]["columns"].pop(place)
    for row in content["runs"]["values"]:
        row.pop(place)
    return content


# What becomes of a cell's content.
CONTENTS: dict[str, Callable[[Content], Any]] = {
    "changed value": _put("value", 0.4242),
    "changed search": lambda content: content | {"search": {"columns": [], "values": []}},
    "changed facts": lambda content: content | {"about": {**content["about"], "dataset": "another"}},
    "last row removed": _rows(lambda rows, columns: rows.pop()),
    "first row removed": _rows(lambda rows, columns: rows.pop(0)),
    "all rows removed": _rows(lambda rows, columns: rows.clear()),
    "column removed": _drop_column,
    "column without its values": lambda content: content | {"runs": {**content["runs"], "columns": content["runs"]["columns"][1:]}},
    "doubled rows": _rows(lambda rows, columns: rows.extend([*rows])),
    "a list": lambda content: [content],
    "null": lambda content: None,
    "no table": lambda content: content | {"runs": None},
    "rows of nothing": lambda content: content | {"runs": {**content["runs"], "values": [None]}},
    "another key": lambda content: content | {"key": "0" * 32},
    "no schema": lambda content: content | {"schema": None},
    "text for a number": _put("value", "many"),
    "number for a text": _put("dataset", 3),
    "text for a truth value": _put("converged", "yes"),
    "NaN for a whole number": _put("n_train", float("nan")),
    "NaN for a value": _put("value", float("nan")),
    "an unknown status": _put("status", "fine"),
    "rows of another cell": _put("cell", "0" * 32),
}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def _to(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replaced(path: Path) -> None:
        path.unlink()
        make(path)

    return replaced


FILES: dict[str, Callable[[Path], object]] = {
    "cut off": _cut,
    "one bit": _flip,
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(b"\0" * path.stat().st_size),
    "no JSON": lambda path: path.write_text("rows\n"),
    "no UTF-8": lambda path: path.write_bytes(b"\xff" + path.read_bytes()),
    "twice": lambda path: path.write_bytes(path.read_bytes() * 2),
    "nested deeply": lambda path: path.write_text("[" * 100_000),
    "a folder": _to(Path.mkdir),
    "a pipe": _to(os.mkfifo),
    "a device": _to(lambda path: path.symlink_to("/dev/zero")),
    "checksum removed": lambda path: path.write_text(
        json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != "sha256"})
    ),
}


def damage(kind: str, path: Path) -> None:
    if kind in FILES:
        FILES[kind](path)
        return
    content = json.loads(path.read_text())
    seal = content.pop("sha256")
    changed = CONTENTS[kind](content)
    text = json.dumps(changed, separators=(",", ":"))
    # the old checksum stays where a program that only changes content would leave it
    path.write_text(f'{text[:-1]},"sha256":"{seal}"}}\n' if isinstance(changed, dict) else text)


@pytest.fixture
def two(fakes: Any, folder: ResultsFolder) -> tuple[ResultsFolder, list[Any], bytes]:
    """A folder with two cells, the cells, and their table without times."""
    asked = [fakes.cell(name) for name in ("a", "bb")]
    for cell in asked:
        run_cell(cell, folder, DATA)
    folder.merge()
    return folder, asked, values(folder)


def values(folder: ResultsFolder) -> bytes:
    return folder.runs().drop(columns=["fit_seconds", "predict_seconds"]).to_csv().encode()


def snapshot(folder: ResultsFolder) -> dict[str, Any]:
    return {path.name: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in folder.cells_path.iterdir()}


@pytest.mark.assault("cell files: damaged")
@pytest.mark.parametrize("kind", [*CONTENTS, *FILES])
def test_a_damaged_file_is_told_set_aside_and_computed_again(kind: str, two: tuple[ResultsFolder, list[Any], bytes], tally: Any) -> None:
    folder, asked, expected = two
    outcome = run_cell(asked[0], folder, DATA)
    assert outcome.skipped
    path = folder.cells_path / f"{outcome.key}.json"
    damage(kind, path)

    # what only reads says it and leaves it out
    reader = ResultsFolder(folder.path)
    before = snapshot(reader)
    assert not reader.read_cell(outcome.key)
    assert reader.read_cell(outcome.key) is None
    assert set(reader.of_cells()["method"]) == {asked[1].method}
    assert reader.disagreement()
    (remark,) = reader.remarks
    assert remark.startswith(f"{path} is damaged (")
    assert "\n" not in remark
    assert snapshot(reader) == before
    reader.merge()
    assert set(reader.runs()["method"]) == {asked[1].method}

    # the next run keeps it under another name, and no run reads it
    again = ResultsFolder(folder.path)
    again.prepare({"seed": 0})
    aside = folder.cells_path / f"{outcome.key}.damaged-1.json"
    assert os.path.lexists(aside)
    assert not os.path.lexists(path)
    (remark,) = again.remarks
    assert f"kept as {aside.name}" in remark
    assert [run_cell(cell, again, DATA).skipped for cell in asked] == [False, True]
    again.merge()
    assert values(again) == expected
    sound = ResultsFolder(folder.path)
    sound.prepare({"seed": 0})
    assert not sound.remarks
    assert sorted(sound.finished_keys()) == sorted(
        json.loads(file.read_text())["key"] for file in folder.cells_path.glob("*.json") if "damaged" not in file.name
    )
    tally.count(kind)


def test_damage_while_a_sweep_runs_is_told_with_its_cell(two: tuple[ResultsFolder, list[Any], bytes]) -> None:
    folder, asked, expected = two
    for number in (1, 2):
        damage("one bit", folder.cells_path / f"{run_cell(asked[0], folder, DATA).key}.json")
        outcome = run_cell(asked[0], folder, DATA)
        assert f"kept as {outcome.key}.damaged-{number}.json" in outcome.remark
        assert not outcome.skipped
    assert run_cell(asked[0], folder, DATA).remark == ""
    folder.merge()
    assert values(folder) == expected


def test_a_file_under_the_key_of_another_cell_is_not_that_cell(two: tuple[ResultsFolder, list[Any], bytes]) -> None:
    folder, asked, expected = two
    first, second = (folder.cells_path / f"{run_cell(cell, folder, DATA).key}.json" for cell in asked)
    shutil.copy(first, second)
    assert not folder.read_cell(second.stem)
    again = ResultsFolder(folder.path)
    again.prepare({"seed": 0})
    assert "it holds the cell" in next(iter(again.remarks))
    assert [run_cell(cell, again, DATA).skipped for cell in asked] == [True, False]
    again.merge()
    assert values(again) == expected


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_other_byte_is_seen(data: st.DataObject, tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    if not folder.cells_path.exists():
        folder.prepare({"seed": 0})
        folder.write_cell("k", [{"dataset": "iris", "method": "ww", "split": 1, "metric": "error", "value": 0.1, "cell": "k"}])
        (tmp_path / "kept").write_bytes((folder.cells_path / "k.json").read_bytes())
    raw = bytearray((tmp_path / "kept").read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != raw[place]))
    path = folder.cells_path / "k.json"
    path.write_bytes(raw)
    with pytest.raises(DamagedError):
        read_cell_file(path)


def test_a_table_of_damaged_cells_alone_has_no_rows(two: tuple[ResultsFolder, list[Any], bytes]) -> None:
    folder, asked, _ = two
    for path in folder.cells_path.glob("*.json"):
        damage("one bit", path)
    assert len(folder.of_cells()) == 0
    folder.merge()
    assert len(folder.runs()) == 0
    folder.prepare({"seed": 0})
    assert [run_cell(cell, folder, DATA).skipped for cell in asked] == [False, False]


def test_what_cannot_be_set_aside_stops_the_run(two: tuple[ResultsFolder, list[Any], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, asked, _ = two
    damage("one bit", folder.cells_path / f"{run_cell(asked[0], folder, DATA).key}.json")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("advcli.results.folder.os.rename", refused)
    with pytest.raises(ResultsError, match=r"cannot set aside .*Permission denied") as caught:
        folder.prepare({"seed": 0})
    assert "\n" not in str(caught.value)
