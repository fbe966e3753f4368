"""Files as they come: packed, in other encodings, with a line that names the separator, and pipes that can be read once."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.core.errors import AdvcliError, ConfigError, DataError
from advcli.data import load
from advcli.data.tables.checking import check_file
from advcli.data.tables.table import read_parts

ROWS = "größe,farbe,kind\n" + "".join(f"{i},{'rot' if i % 3 else 'grün'},{'pq'[i > 12]}\n" for i in range(1, 25))


def zipped(content: bytes, *names: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("table.csv", "__MACOSX/table.csv"):
            archive.writestr(name, content)
    return packed.getvalue()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zip": zipped,
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")


def options(path: Path, **more: Any) -> dict[str, Any]:
    return {"name": "mine", "source": "csv", "path": str(path), "target": "kind", "categorical": "auto", **more}


def same_everywhere(path: Path, wanted: Any, **more: Any) -> None:
    """Hold the readers to each other: all at once, some rows at a time, and `advcli data check`."""
    data = load(options(path, **more), path.parent)
    assert data.sha256 == wanted.sha256
    assert data.feature_names == wanted.feature_names
    checked = check_file(path, "kind", **({"separator": ";"} if more.get("separator") else {}))
    assert load(options(path, **{**more, **{key: value for key, value in checked.options.items() if key != "path"}}), path.parent).X.shape
    assert not [remark for remark in checked.remarks if "look whether" in remark] or more.get("encoding") == "cp1252"
    parts = list(read_parts(path, 7, separator=more.get("separator", ","), encoding=more.get("encoding")))
    assert [len(part.frame) for part in parts] == [7, 7, 7, 3]
    assert pd.concat([part.frame for part in parts])["farbe"].tolist() == [line.split(",")[1] for line in ROWS.splitlines()[1:]]
    assert parts[-1].place(0).startswith("row 22 (line 2")


@pytest.fixture
def wanted(tmp_path: Path) -> Any:
    path = tmp_path / "plain.csv"
    path.write_text(ROWS, encoding="utf-8")
    return load(options(path), tmp_path)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("ending", PACKINGS)
def test_packings_and_encodings_with_a_mark(tmp_path: Path, wanted: Any, ending: str, encoding: str) -> None:
    path = tmp_path / f"table.csv{ending}"
    path.write_bytes(PACKINGS[ending](ROWS.encode(encoding)))
    same_everywhere(path, wanted)
    bare = path.rename(tmp_path / "table.dat")  # the content of a file tells its format, not its name
    same_everywhere(bare, wanted)


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;", "sep=;;;"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_that_names_the_separator(tmp_path: Path, wanted: Any, line: str, end: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(f"{line}\n{ROWS.replace(',', ';')}".replace("\n", end).encode())
    same_everywhere(path, wanted)
    path.write_bytes(f"{line}\n{ROWS.replace(',', ';')}1;2\n".replace("\n", end).encode())
    with pytest.raises(DataError, match=r"row 25 \(line 27\) has 2 fields"):
        load(options(path), tmp_path)


def test_unicode_text_of_excel_has_tabs(tmp_path: Path, wanted: Any) -> None:
    path = tmp_path / "table.txt"
    path.write_bytes(ROWS.replace(",", "\t").encode("utf-16"))
    same_everywhere(path, wanted)


def test_other_encodings_are_named_found_and_kept(tmp_path: Path, wanted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "table.csv"
    path.write_bytes(ROWS.encode("cp1252"))
    same_everywhere(path, wanted, encoding="cp1252")
    checked = check_file(path, "kind")
    assert checked.options["encoding"] == "cp1252"
    assert any("not UTF-8" in remark for remark in checked.remarks)
    with pytest.raises(DataError, match=r"not UTF-8 text.*dataset\.encoding=cp1252"):
        load(options(path), tmp_path)
    with pytest.raises(ConfigError, match=r"dataset\.encoding=cp1253x is not an encoding"):
        load(options(path, encoding="cp1253x"), tmp_path)
    for name in ("hex", "zip", "rot13"):
        with pytest.raises(ConfigError, match="not an encoding of text"):
            load(options(path, encoding=name), tmp_path)
    words = ["dataset=csv", "dataset.path=table.csv", "dataset.target=kind", "dataset.categorical=auto", "dataset.encoding=cp1252"]
    assert main(["fit", *words, "hyper.C=1", "out=m.model"]) == 0
    assert main(["predict", "model=m.model", "input=table.csv", "out=p.csv"]) == 0  # the model knows
    assert len(pd.read_csv("p.csv")) == 24


OTHERS = {
    "parquet": b"PAR1" + bytes(20),
    "feather": b"ARROW1" + bytes(20),
    "Excel": b"\xd0\xcf\x11\xe0" + bytes(20),
    "zstd": b"\x28\xb5\x2f\xfd" + bytes(20),
    "7z": b"7z\xbc\xaf\x27\x1c" + bytes(20),
    "PDF": b"%PDF-1.7\n",
    "SQLite": b"SQLite format 3\0",
    "2 files": zipped(b"a,kind\n1,p\n", "a.csv", "b.csv"),
    "0 files": zipped(b"", "a/"),
    "dataset.format=excel": zipped(b"", "[Content_Types].xml", "xl/workbook.xml"),
    "zero bytes": b"a,kind\n1,p\0\n",
    "empty": b"",
}


@pytest.mark.parametrize("said", OTHERS)
def test_what_is_no_text_is_named(tmp_path: Path, said: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(OTHERS[said])
    for read in (lambda: load(options(path), tmp_path), lambda: check_file(path, "kind"), lambda: list(read_parts(path, 7))):
        with pytest.raises(DataError, match=said) as caught:
            read()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", list(PACKINGS)[1:])
def test_damage_is_named(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table.csv{ending}"
    packed = zipped(ROWS.encode() * 50, "a.csv") if ending == ".zip" else PACKINGS[ending](ROWS.encode() * 50)
    damaged = [
        packed[: len(packed) // 2],
        packed[: len(packed) // 2] + bytes(8) + packed[len(packed) // 2 + 8 :],
        packed[:9],
        ROWS.encode(),
    ]
    for content in damaged:
        path.write_bytes(content)
        for read in (lambda: load(options(path), tmp_path), lambda: check_file(path, "kind"), lambda: list(read_parts(path, 7))):
            with pytest.raises(DataError, match=r"damaged|get it again"):
                read()


def test_sparse_files_are_packed_and_encoded_like_the_others(tmp_path: Path) -> None:
    rows = "".join(f"{i % 3} {1 + i % 4}:{i + 1}\n" for i in range(24)).encode()
    for ending, pack in PACKINGS.items():
        path = tmp_path / f"rows.svm{ending}"
        path.write_bytes(pack(rows))
        data = load({"name": "mine", "source": "csv", "path": str(path), "format": "svmlight"}, tmp_path)
        assert data.X.nnz == 24


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_that_nobody_writes_into_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "a.csv").write_text(ROWS, encoding="utf-8")
    sparse = {"name": "mine", "source": "csv", "path": str(pipe), "format": "svmlight"}
    for read, said in (
        (lambda: check_file(pipe, "kind"), "empty"),
        (lambda: list(read_parts(pipe, 7)), "empty"),
        (lambda: load(options(pipe), tmp_path), "read once only"),
        (lambda: load(options(pipe, format="parquet"), tmp_path), "read once only"),
        (lambda: load(sparse, tmp_path), "read once only"),
        (lambda: load(options(tmp_path / "a.csv", hierarchy=str(pipe)), tmp_path), "read once only"),
    ):
        with pytest.raises(AdvcliError, match=said):
            read()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
@pytest.mark.parametrize("ending", PACKINGS)
def test_a_pipe_is_read_once(tmp_path: Path, ending: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, PACKINGS[ending](ROWS.encode()))
    os.close(writing)
    try:
        parts = list(read_parts(Path(f"/dev/fd/{reading}"), 7))
        assert [len(part.frame) for part in parts] == [7, 7, 7, 3]
    finally:
        os.close(reading)
    reading, writing = os.pipe()
    os.write(writing, PACKINGS[ending](ROWS.encode()))
    os.close(writing)
    try:
        assert check_file(Path(f"/dev/fd/{reading}"), "kind").head.endswith("24 rows, 3 columns")
    finally:
        os.close(reading)


def test_the_separator_is_found_beside_quoted_names(tmp_path: Path) -> None:
    """The heading is parted as the reader parts it, not by counting characters."""
    rng = np.random.default_rng(0)
    marks = [",", ";", "\t", "|"]
    for separator in marks:
        for _ in range(5):
            names = [f"a{''.join(rng.choice(marks, 3))} {i}" for i in range(3)]
            quoted = [f'"{name}"' for name in names]
            path = tmp_path / "table.csv"
            lines = [
                separator.join([*quoted, "kind"]),
                *(separator.join([*map(str, rng.integers(0, 9, 3)), "pq"[i % 2]]) for i in range(24)),
            ]
            path.write_text("\n".join(lines))
            checked = check_file(path, "kind")
            assert checked.options.get("separator", ",") == separator
            assert load({"name": "mine", "source": "csv", **checked.options}, tmp_path).X.shape[0] == 24
