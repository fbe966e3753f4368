"""What a written file replaces: the end of its symlinks; a stream is written to in one piece, and nothing of it becomes a file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from advcli.core.errors import ResultsError
from advcli.core.files import atomic_file, destination, write_bytes, write_text

pytestmark = pytest.mark.usefixtures("elsewhere")


def link(name: str, target: str) -> Path:
    Path(name).symlink_to(target)
    return Path(name)


def reading(fifo: Path) -> tuple[threading.Thread, list[bytes]]:
    os.mkfifo(fifo)
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(fifo.read_bytes()), daemon=True)
    thread.start()
    return thread, found


@pytest.mark.parametrize("there", [True, False], ids=["file", "dangling"])
def test_a_symlink_stays_and_its_target_is_replaced(there: bool) -> None:
    Path("place").mkdir()
    target = Path("place/file")
    if there:
        target.write_text("old")
    for name in (
        link("direct", "place/file"),
        link("absolute", str(target.absolute())),
        link("place/up", "../direct"),
        link("far", "place/up"),
    ):
        write_text(name, f"by {name}")
        assert target.read_text() == f"by {name}"
        assert target.is_file()
        assert not target.is_symlink()
        assert name.is_symlink()
    assert sorted(path.name for path in Path("place").iterdir()) == ["file", "up"]


def test_what_leads_nowhere_or_is_no_file_is_refused() -> None:
    Path("folder").mkdir()
    link("one", "other")
    names = [link("other", "one"), link("self", "self"), link("to_folder", "folder"), Path("folder"), link("lost", "none/file")]
    before = sorted(Path.cwd().rglob("*"))
    for name in names:
        for streams in (True, False):
            with pytest.raises(ResultsError, match=f"cannot write {name}: ") as caught:
                write_text(name, "text", streams=streams)
            assert "\n" not in str(caught.value)
    assert sorted(Path.cwd().rglob("*")) == before


def test_a_stream_is_written_to_only_where_that_was_asked_for() -> None:
    fifo = Path("fifo")
    thread, found = reading(fifo)
    for name in (fifo, link("link", "fifo"), Path("/dev/null")):
        with pytest.raises(ResultsError, match="no regular file"):
            write_text(name, "text")
    assert thread.is_alive()
    content = bytes(range(256)) * 1000
    write_bytes(Path("link"), content, streams=True)
    thread.join()
    assert found == [content]
    assert fifo.is_fifo()
    null = link("null", "/dev/null")
    for name in (null, Path("/dev/null")):
        write_text(name, "text", streams=True)
        assert name.is_char_device()
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["fifo", "link", "null"]


def test_a_stream_gets_nothing_of_what_failed_and_says_when_it_is_full() -> None:
    thread, found = reading(Path("fifo"))

    def broken() -> None:
        with atomic_file(Path("fifo"), streams=True) as file:
            file.write("half")
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert thread.is_alive()
    write_text(Path("fifo"), "whole", streams=True)
    thread.join()
    assert found == [b"whole"]
    if Path("/dev/full").is_char_device():
        with pytest.raises(ResultsError, match="No space left on device"):
            write_text(Path("/dev/full"), "text", streams=True)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="a descriptor is a file below /proc on Linux only")
def test_standard_output_keeps_its_position_and_its_file(name: str) -> None:
    script = f"""
from pathlib import Path
from advcli.core.files import write_text
print("before")
write_text(Path({name!r}), "text\\n", streams=True)
print("after")
"""
    with Path("out").open("w") as file:
        file.write("first\n")
        file.flush()
        subprocess.run([sys.executable, "-c", script], stdout=file, check=True)
    assert Path("out").read_text() == "first\nbefore\ntext\nafter\n"
    piped = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    assert piped.stdout == b"before\ntext\nafter\n"


def test_a_socket_is_no_output() -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as there:
        there.bind("socket")
        with pytest.raises(OSError, match="not supported"):
            destination(Path("socket"))
