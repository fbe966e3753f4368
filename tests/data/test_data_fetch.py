"""Fetching, against a server on this machine."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advcli.core.errors import ConfigError, DataError
from advcli.data import downloading, fetch, list_datasets, load
from advcli.data import fetching as module
from advcli.data.catalogue import CATALOGUE, Known, Upstream

TEXT = "a,b,target\n" + "".join(f"{i},{i * i / 4},{'xy'[i % 2]}\n" for i in range(20))
PACKED = gzip.compress(TEXT.encode(), mtime=0)
COLUMNS = "name,file,rows,features,classes,task,sha256"


class Server:
    """A web folder in memory that counts what it is asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.begins: list[int] = []  # where the content asked for begins
        self.breaks: list[int] = []  # how many bytes of an answer come before the connection breaks
        self.answers: list[int] = []
        self.resumes = True
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                begin = int((self.headers["Range"] or "bytes=0-")[6:-1]) if outer.resumes else 0
                outer.begins.append(begin)
                self.send_response(404 if content is None else outer.answers.pop(0) if outer.answers else 206 if begin else 200)
                rest = (content or b"")[begin:]
                self.send_header("Content-Length", str(len(rest)))
                self.end_headers()
                self.wfile.write(rest[: outer.breaks.pop(0)] if outer.breaks else rest)
                self.close_connection = True

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
    upstream = Upstream("somebody/data", "0" * 40, ("toy.csv",), "plain", ["a", "b"])
    sums = {"toy.csv.gz": hashlib.sha256(TEXT.encode()).hexdigest()}
    known = Known("toy", "folder", 20, 2, 2, "multiclass", files=sums, size=300, citation="Somebody (2020)", upstream=upstream)
    monkeypatch.setitem(CATALOGUE["folder"], "toy", known)
    return known


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


@pytest.mark.parametrize("resumes", [True, False])
def test_a_transfer_that_breaks_goes_on_where_it_stopped(
    server: Server, toy: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    """Also from a server that sends everything again."""
    monkeypatch.setattr(downloading, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(downloading, "CHUNK", 10)
    server.put("toy", PACKED)
    server.breaks, server.resumes = [10**9, 30, 20], resumes
    arrived: list[int] = []
    done = fetch("toy", tmp_path, server.url, began=lambda facts: arrived.append)
    assert done.paths[0].read_bytes() == PACKED
    assert server.asked == ["/mirror/MANIFEST.csv", *3 * ["/mirror/toy.csv.gz"]]
    assert server.begins == [0, 0, 30, 50] if resumes else [0, 0, 0, 0]
    assert sum(arrived) == len(PACKED) + (0 if resumes else 50)


def test_a_transfer_that_breaks_every_time_says_so(server: Server, toy: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloading, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(downloading, "CHUNK", 10)
    server.put("toy", PACKED)
    server.breaks = [10**9, 30, 20, 10]
    remedy = f"put toy.csv.gz into {tmp_path}, or use a mirror"
    said = refused("broke off 3 times, at last after 60 bytes; nothing was written", "toy", tmp_path, server.url)
    assert remedy in said
    assert "no connection" not in said
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (b"<html><body>Please log in</body></html>", "MANIFEST.csv is no list of data sets: its first line lacks name, file"),
        (b"name,file\n", "MANIFEST.csv is no list of data sets: its first line lacks rows"),
        (b"", "has no data set 'toy'; its MANIFEST.csv names none"),
    ],
)
def test_an_address_that_is_no_mirror(server: Server, toy: Known, tmp_path: Path, manifest: bytes, words: str) -> None:
    server.files["/mirror/MANIFEST.csv"] = manifest
    refused(words, "toy", tmp_path, server.url)
    assert files(tmp_path) == []


def test_a_busy_server_is_asked_again_and_a_wrong_address_is_not(
    server: Server, toy: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloading, "PAUSES", (0.0, 0.0))
    server.put("toy", PACKED)
    server.answers = [503, 429]
    assert fetch("toy", tmp_path / "one", server.url).downloaded
    assert len(server.asked) == 4
    server.answers = [503, 503, 503]
    refused("the server answers 503", "toy", tmp_path / "two", server.url)
    assert len(server.asked) == 7
    refused("the server answers 404", "toy", tmp_path / "two", server.url + "/elsewhere")
    assert len(server.asked) == 8
    assert files(tmp_path / "two") == []


def test_a_shipped_set_comes_from_the_repository_else_from_its_public_files(
    server: Server, toy: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CATALOGUE["folder"], "toy", dataclasses.replace(toy, shipped=True))
    monkeypatch.setattr(module, "HOME", server.url)
    monkeypatch.setattr(Upstream, "urls", lambda self: [f"{server.url}/{path}" for path in self.paths])
    server.files["/mirror/toy.csv"] = TEXT.split("\n", 1)[1].encode()
    assert fetch("toy", tmp_path / "one").downloaded
    assert server.asked == ["/mirror/MANIFEST.csv", "/mirror/toy.csv"]
    server.put("toy", PACKED)
    assert fetch("toy", tmp_path / "two").paths[0].read_bytes() == PACKED
    assert server.asked[2:] == ["/mirror/MANIFEST.csv", "/mirror/toy.csv.gz"]
    monkeypatch.setitem(CATALOGUE["folder"], "toy", dataclasses.replace(toy, shipped=True, upstream=None))
    server.files.clear()
    refused(r"404.*\(the address is a placeholder until the repository of advcli is public\)", "toy", tmp_path / "three")


def test_a_set_of_several_files_comes_whole(server: Server, toy: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = b"node,parent,depth,is_leaf,n_examples\nx,root,1,1,10\ny,root,1,1,10\n"
    sums = {**toy.files, "toy.tree.csv.gz": hashlib.sha256(tree).hexdigest()}
    monkeypatch.setitem(CATALOGUE["folder"], "toy", dataclasses.replace(toy, files=sums))
    server.put("toy", PACKED)
    refused("404", "toy", tmp_path, server.url)
    assert files(tmp_path) == []
    server.files["/mirror/toy.tree.csv.gz"] = gzip.compress(tree)
    assert fetch("toy", tmp_path, server.url).downloaded
    assert files(tmp_path) == ["MANIFEST.csv", "toy.csv.gz", "toy.tree.csv.gz"]
    (tmp_path / "toy.tree.csv.gz").unlink()
    assert fetch("toy", tmp_path, server.url).downloaded
    assert not fetch("toy", tmp_path, server.url).downloaded


def test_without_a_network_one_line_says_what_to_put_where(server: Server, toy: Known, tmp_path: Path) -> None:
    server.stop()
    refused(f"no connection.*; put toy.csv.gz into {tmp_path}, or use a mirror: url=http", "toy", tmp_path, server.url)


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
    (tmp_path / "toy.csv.gz").write_bytes(gzip.compress(TEXT.encode(), compresslevel=1))
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
    refused("is not available: the paper names neither topics nor documents; use reuters_r8", "reuters_louche", tmp_path)
    server.files["/mirror/MANIFEST.csv"] = f"{COLUMNS}\ntoy,../toy.csv.gz,20,2,2,multiclass,0\n".encode()
    refused("only plain names", "toy", tmp_path, server.url)
    assert files(tmp_path) == []


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
        (b"<html>moved</html>", "is not plain as expected"),
        (TEXT.encode()[:-5], "is not"),
        (b"1,2,x\n3,4,y\n", "the checksum of toy.csv.gz differs; nothing was written"),
    ):
        server.files["/mirror/toy.csv"] = content
        refused(words, "toy", other)
        assert files(other) == []


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
