"""Fetching, against a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from advcli.core.errors import ConfigError, DataError
from advcli.data import fetch, list_datasets, load
from advcli.data import fetching as module
from advcli.data.catalogue import CATALOGUE, Known, Upstream
from advcli.data.fetching import convert
from advcli.data.tables.table import read_table, table_sha256

TEXT = "a,b,target\n" + "".join(f"{i},{i * i / 4},{'xy'[i % 2]}\n" for i in range(20))
PACKED = gzip.compress(TEXT.encode(), mtime=0)
COLUMNS = "name,file,rows,features,classes,task,sha256"


class Server:
    """A web folder in memory that counts what it is asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/mirror"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def put(self, name: str, packed: bytes, sha256: str | None = None) -> None:
        sha256 = sha256 or hashlib.sha256(packed).hexdigest()
        manifest = self.files.get("/mirror/MANIFEST.csv", f"{COLUMNS}\n".encode())
        self.files["/mirror/MANIFEST.csv"] = manifest + f"{name},{name}.csv.gz,20,2,2,multiclass,{sha256}\n".encode()
        self.files[f"/mirror/{name}.csv.gz"] = packed

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", module.URL_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Known:
    """A small set in the catalogue, with its true checksum."""
    path = tmp_path / "for_checksum.csv"
    path.write_text(TEXT)
    upstream = Upstream("somebody/data", "0" * 40, ("toy.csv",), "csv", ["a", "b"])
    content = table_sha256(read_table(path))
    facts = Known("toy", "folder", 20, 2, 2, "multiclass", content=content, citation="Somebody (2020)", upstream=upstream)
    monkeypatch.setitem(CATALOGUE["folder"], "toy", facts)
    return facts


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def refused(message: str, *args: Any, error: type[Exception] = DataError, **kwargs: Any) -> str:
    with pytest.raises(error, match=message) as caught:
        fetch(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_fetch_then_cached_without_the_server(server: Server, toy: Known, tmp_path: Path) -> None:
    server.put("toy", PACKED)
    folder = tmp_path / "new" / "data"
    done = fetch("toy", folder, server.url)
    assert done.downloaded
    assert done.paths == (folder / "toy.csv.gz",)
    assert done.message.startswith("toy: fetched")
    assert files(folder) == ["MANIFEST.csv", "toy.csv.gz"]
    assert load({"name": "toy", "source": "folder"}, folder).X.shape == (20, 2)
    server.stop()
    again = fetch("toy", folder, server.url)
    assert not again.downloaded
    assert "already here" in again.message
    assert next(entry for entry in list_datasets(folder) if entry.name == "toy").here


def test_address_from_the_environment(server: Server, toy: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put("toy", PACKED)
    monkeypatch.setenv("ADVCLI_DATA_URL", server.url + "/")
    assert fetch("toy", tmp_path / "data").downloaded
    assert server.asked == ["/mirror/MANIFEST.csv", "/mirror/toy.csv.gz"]


def test_a_set_that_only_the_mirror_knows(server: Server, tmp_path: Path) -> None:
    server.put("special", PACKED)
    assert fetch("special", tmp_path, server.url).downloaded
    assert load({"name": "special", "source": "folder"}, tmp_path).y.size == 20
    assert not fetch("special", tmp_path).downloaded


def test_corrupted_cache_is_fetched_again(server: Server, toy: Known, tmp_path: Path) -> None:
    server.put("toy", PACKED)
    folder = tmp_path / "data"
    fetch("toy", folder, server.url)
    (folder / "toy.csv.gz").write_bytes(PACKED[:50])
    with pytest.raises(DataError, match="advcli data fetch toy"):
        load({"name": "toy", "source": "folder"}, folder)
    assert fetch("toy", folder, server.url).downloaded
    assert (folder / "toy.csv.gz").read_bytes() == PACKED
    (folder / "toy.csv.gz").write_bytes(PACKED[:50])
    server.stop()
    refused("no connection", "toy", folder, server.url)


def test_changed_mirror_file(server: Server, toy: Known, tmp_path: Path) -> None:
    server.put("toy", PACKED)
    server.files["/mirror/toy.csv.gz"] = gzip.compress(TEXT.replace("19,", "18,").encode())
    folder = tmp_path / "data"
    refused("not the expected checksum.*nothing was written", "toy", folder, server.url)
    assert files(folder) == []


def test_a_mirror_that_vouches_for_other_content(server: Server, toy: Known, tmp_path: Path) -> None:
    server.put("toy", gzip.compress(TEXT.replace("19,", "18,").encode()))
    folder = tmp_path / "data"
    message = refused("is not data set 'toy': its checksum differs", "toy", folder, server.url)
    assert "nothing was written" in message
    assert files(folder) == []


def test_an_old_copy_survives_a_failed_fetch(server: Server, toy: Known, tmp_path: Path) -> None:
    server.put("toy", PACKED)
    folder = tmp_path / "data"
    fetch("toy", folder, server.url)
    manifest = (folder / "MANIFEST.csv").read_bytes()
    (folder / "toy.csv.gz").write_bytes(b"old")
    server.files["/mirror/toy.csv.gz"] = b"rubbish"
    refused("checksum", "toy", folder, server.url)
    assert (folder / "toy.csv.gz").read_bytes() == b"old"
    assert (folder / "MANIFEST.csv").read_bytes() == manifest
    assert files(folder) == ["MANIFEST.csv", "toy.csv.gz"]


def test_somebodys_own_file_is_not_overwritten(server: Server, toy: Known, tmp_path: Path) -> None:
    server.put("toy", PACKED)
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(b"a,target\n1,x\n2,y\n"))
    refused("move it away", "toy", tmp_path, server.url)
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(TEXT.replace("\n", "\r\n").encode()))
    assert not fetch("toy", tmp_path, server.url).downloaded
    assert server.asked == []


def test_other_lines_of_the_manifest_stay(server: Server, toy: Known, tmp_path: Path) -> None:
    (tmp_path / "MANIFEST.csv").write_text(f'{COLUMNS},notes\nmine,mine.csv,1,1,2,multiclass,,"kept, as it is"\n')
    server.put("toy", PACKED)
    fetch("toy", tmp_path, server.url)
    assert '"kept, as it is"' in (tmp_path / "MANIFEST.csv").read_text()
    assert (tmp_path / "MANIFEST.csv").read_text().count("\n") == 3


def test_wrong_addresses_and_names(server: Server, toy: Known, tmp_path: Path) -> None:
    server.put("toy", PACKED)
    refused("must start with http", "toy", tmp_path, "ftp://somewhere", error=ConfigError)
    refused("404", "toy", tmp_path, server.url + "/elsewhere")
    refused("no data set 'toys'; did you mean toy", "toys", tmp_path, server.url)
    refused("did you mean glass", "glas", tmp_path)
    refused("needs no fetching", "wine", tmp_path)
    refused("needs no fetching", "synthetic_blobs", tmp_path)
    refused("no public address is known for data set 'reuters_r8'; fetch it from a mirror", "reuters_r8", tmp_path)
    refused("'imclef07a' is several files, which nothing fetches", "imclef07a", tmp_path)
    refused("no public address is known.*url=http", "letter", tmp_path)
    server.files["/mirror/MANIFEST.csv"] = f"{COLUMNS}\ntoy,../toy.csv.gz,20,2,2,multiclass,0\n".encode()
    refused("only plain names", "toy", tmp_path, server.url)
    assert files(tmp_path) == ["for_checksum.csv"]


def test_a_folder_that_cannot_be_made(server: Server, toy: Known, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused("cannot make the folder", "toy", tmp_path / "file" / "data", server.url)


def test_public_file_is_converted(server: Server, toy: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Upstream, "urls", lambda self: [f"{server.url}/{path}" for path in self.paths])
    server.files["/mirror/toy.csv"] = TEXT.split("\n", 1)[1].encode()
    folder = tmp_path / "data"
    assert fetch("toy", folder).downloaded
    assert files(folder) == ["MANIFEST.csv", "toy.csv.gz"]
    assert load({"name": "toy", "source": "folder"}, folder).feature_names == ("a", "b")
    assert not fetch("toy", folder).downloaded
    other = tmp_path / "other"
    for content, words in (
        (b"<html>moved</html>", "is not csv as expected"),
        (TEXT.encode()[:-5], "is not"),
        (b"1,2,x\n3,4,y\n", "2 rows"),
    ):
        server.files["/mirror/toy.csv"] = content
        refused(words, "toy", other)
        assert files(other) == []


@pytest.mark.parametrize("format", ["csv", "csv with heading", "whitespace", "arff"])
def test_converters_agree(format: str, tmp_path: Path) -> None:
    rows = ["1,2.50,x", "-3,.5,y", "5,1e3,x"]
    content = {
        "csv": "\n".join(rows),
        "csv with heading": "First,2,Class\r\n" + "\r\n".join(rows) + "\r\n",
        "whitespace": "\n".join(row.replace(",", " ") for row in rows) + "\n",
        "arff": "% said\n@relation 'r'\n@attribute 'a one' real\n@attribute b INTEGER\n@attribute class { x, y}\n@data\n"
        + "\n".join([*rows[:1], "7,?,x", "7,8,?", *rows[1:]]),
    }[format]
    upstream = Upstream("o/r", "0", ("f",), format.split()[0], ["a", "b"])
    path = tmp_path / "converted.csv"
    path.write_bytes(convert(upstream, [content.encode()], "toy"))
    expected = tmp_path / "expected.csv"
    expected.write_text("a,b,target\n1,2.5,x\n-3,0.5,y\n5,1000,x\n")
    assert list(read_table(path).frame.columns) == ["a", "b", "target"]
    assert table_sha256(read_table(path)) == table_sha256(read_table(expected))


def test_two_public_files_become_the_official_split() -> None:
    upstream = Upstream("o/r", "0", ("train", "test"), "csv", ["a"])
    assert convert(upstream, [b"1,x\n", b"2,y\n"], "toy").decode() == "a,split,target\n1,train,x\n2,test,y\n"


def upstream_file(frame: pd.DataFrame, facts: Known, part: str | None) -> bytes:
    """Write a table the way its public file is written."""
    frame = (frame if part is None else frame[frame["split"] == part]).drop(columns="split", errors="ignore")
    assert facts.upstream is not None
    if facts.upstream.format == "arff":
        head = ["@relation r"]
        for column in frame.columns:
            text = (column == "target" and facts.classes is not None) or column in facts.options.get("categorical", ())
            head.append(f"@attribute '{column}' " + ("{" + ",".join(sorted(frame[column].unique())) + "}" if text else "real"))
        return "\n".join([*head, "@data", *(",".join(row) for row in frame.to_numpy())]).encode()
    separator = " " if facts.upstream.format == "whitespace" else ","
    return "".join(separator.join(row) + "\n" for row in frame.to_numpy()).encode()


@pytest.mark.parametrize("name", [name for name, facts in CATALOGUE["folder"].items() if facts.upstream is not None])
def test_real_sets_come_through_their_converters(
    server: Server, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    facts = CATALOGUE["folder"][name]
    assert facts.upstream is not None
    frame = pd.read_csv(shared / f"{name}.csv.gz", dtype=str)
    parts = ("train", "test") if len(facts.upstream.paths) == 2 else (None,)
    for path, part in zip(facts.upstream.paths, parts, strict=True):
        server.files[f"/mirror/{path}"] = upstream_file(frame, facts, part)
    monkeypatch.setattr(Upstream, "urls", lambda self: [f"{server.url}/{path}" for path in self.paths])
    monkeypatch.setattr(module, "_author_files", lambda name, data_dir, url: (False, []))
    assert fetch(name, tmp_path).downloaded
    options = {"name": name, "source": "folder", **facts.options}
    assert load(options, tmp_path).sha256 == load(options, shared).sha256


def test_author_splits_come_along(server: Server, shared: Path, tmp_path: Path) -> None:
    for path in ("MANIFEST.csv", "glass.csv.gz", *(f"author_splits/{file}" for file in CATALOGUE["folder"]["glass"].authors.files)):
        server.files[f"/mirror/{path}"] = (shared / path).read_bytes()
    done = fetch("glass", tmp_path, server.url)
    assert [path.name for path in done.paths] == ["glass.csv.gz", "glass.csv", "glass.train", "glass.test"]
    options = {"name": "glass", "source": "folder"}
    assert load(options, tmp_path, author_splits=True).splits is not None
    (tmp_path / "author_splits" / "glass.test").unlink()
    server.files["/mirror/author_splits/glass.test"] = b"changed"
    refused("not the expected checksum", "glass", tmp_path, server.url)
    assert files(tmp_path / "author_splits") == ["glass.csv", "glass.train"]
