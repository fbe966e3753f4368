"""Files that appear whole or not at all, and locks: the one place that writes.

A file is written to a temporary name in its folder, flushed to the disk and renamed. A process that is killed at any moment loses what it
was writing and nothing else. Symlinks are followed; what cannot be replaced is written to where the caller asks for that, never made a
file.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import itertools
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from .errors import ResultsError

_REMEDY = "free space or choose another results_dir, then start again: finished cells are kept"
_TEMPORARY = ".tmp"
_LINKS = 40  # symlinks that are followed, as by Linux

_counter = itertools.count()


def reason(error: OSError) -> str:
    """Return why the system refused, without the path and the number."""
    return error.strerror or type(error).__name__


class UnpackedError(ValueError):
    """An archive holds more than may be read of it; the text says how much."""


def most_unpacked(size: int) -> int:
    """Return how many bytes the entries of an archive of so many bytes may hold in all."""
    return max(2**28, 32 * size)


def check_unpacked(archive: zipfile.ZipFile, size: int) -> list[zipfile.ZipInfo]:
    """Return the entries of an archive by its directory, before any is read; `UnpackedError` for more than `most_unpacked`."""
    entries = archive.infolist()
    held = sum(entry.file_size for entry in entries)
    if held > most_unpacked(size):
        raise UnpackedError(f"{size} bytes that unpack to {held}, of which {most_unpacked(size)} are read at most")
    return entries


_REMEDIES = {
    "free space or choose another folder with results_dir=": (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    "give yourself the permission or choose another place (results_dir= for results)": (errno.EACCES, errno.EPERM, errno.EROFS),
    "raise the limit (ulimit) or give a smaller workers=": (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM),
    "choose a shorter name (name= and results_dir= for results)": (errno.ENAMETOOLONG,),
    "a part of this path is a file; choose another folder (results_dir= and name= for results)": (errno.ENOTDIR, errno.EEXIST),
    "give the name of a file": (errno.EISDIR,),
}


def explained(error: OSError) -> str:
    """Return what the system refused in one line: the path, the reason and what to do."""
    paths = [str(path) for path in (error.filename, error.filename2) if path is not None]
    remedy = next((text for text, numbers in _REMEDIES.items() if error.errno in numbers), "")
    parts = [": ".join(part for part in (" and ".join(paths), reason(error) if error.strerror else str(error)) if part), remedy]
    return "; ".join(part for part in parts if part) or type(error).__name__


def destination(path: Path) -> tuple[Path, bool]:
    """Return the file that a write to ``path`` replaces, after all symlinks, and whether it is a stream, which nothing can replace."""
    for _ in range(_LINKS):
        if _descriptor(path) is not None:
            return path, True
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return path, False
    if stat.S_ISREG(mode):
        return path, False
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return path, True
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.ELOOP if stat.S_ISLNK(mode) else errno.EOPNOTSUPP
    raise OSError(number, os.strerror(number), str(path))


def _descriptor(path: Path) -> int | None:
    """Return the number of the open descriptor of this process that a path means."""
    if path.name.isdecimal() and os.path.realpath(path.parent) == f"/proc/{os.getpid()}/fd":
        return int(path.name)
    return None


@contextlib.contextmanager
def atomic_file(
    path: Path,
    remedy: str = _REMEDY,
    mode: str = "w",
    *,
    streams: bool = False,
    place: Callable[[Path, Path], None] = os.replace,
    flushed: bool = True,
) -> Iterator[IO[Any]]:
    """Open a file that appears under its name only when it is complete and on the disk; what a symlink leads to is replaced.

    ``remedy`` ends the `ResultsError` of a file that cannot be written, whose temporary file is removed. With ``streams`` a path that
    cannot be replaced (`destination`) is written to, in one piece at the end, which is a BrokenPipeError where its reader has left; else it
    is refused. What is not ``flushed`` is safe from the end of any process, but a power cut in the next seconds may cost it: for files
    with a seal.
    """
    kind: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    temporary = None
    try:
        target, stream = destination(path)
        if stream and not streams:
            raise OSError(errno.EINVAL, "no regular file", str(path))
        if stream:
            with tempfile.TemporaryFile(f"{mode}+", **kind) as file:
                yield file
                file.flush()
                _pour(getattr(file, "buffer", file), target)
            return
        # The name carries host and process, so that a later run recognises what a killed process left behind.
        temporary = target.with_name(f".{target.name}.{socket.gethostname()}.{os.getpid()}.{next(_counter)}{_TEMPORARY}")
        with temporary.open(mode, **kind) as file:
            yield file
            file.flush()
            if flushed:
                os.fsync(file.fileno())
        place(temporary, target)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise ResultsError(f"cannot write {path}: {reason(error)}; {remedy}") from error
        raise
    if flushed:
        _keep_names(target.parent)


def _pour(content: IO[bytes], stream: Path) -> None:
    """Copy a whole file into a stream."""
    number = _descriptor(stream)
    # a descriptor opened anew would have another position, and what is printed later would stand above
    with stream.open("wb") if number is None else os.fdopen(os.dup(number), "wb") as out:
        sys.stdout.flush()
        content.seek(0)
        shutil.copyfileobj(content, out)


def _keep_names(folder: Path) -> None:
    """Flush the names in a folder to the disk: without it a rename may be lost in a power cut; where that is refused it does no harm."""
    with contextlib.suppress(OSError):
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def atomic_bytes(
    path: Path, remedy: str = _REMEDY, *, streams: bool = False, flushed: bool = True
) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open a binary file that appears like `atomic_file`."""
    return atomic_file(path, remedy, "wb", streams=streams, flushed=flushed)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_text(path: Path, text: str, remedy: str = _REMEDY, *, streams: bool = False, flushed: bool = True) -> None:
    """Write a whole text file like `atomic_file`."""
    with atomic_file(path, remedy, streams=streams, flushed=flushed) as file:
        file.write(text)


def write_bytes(path: Path, content: bytes | memoryview, remedy: str = _REMEDY, *, streams: bool = False) -> None:
    """Write a whole binary file like `atomic_file`."""
    with atomic_bytes(path, remedy, streams=streams) as file:
        file.write(content)


def create_text(path: Path, text: str) -> bool:
    """Write a whole text file under a name that is free; return whether it was: of several calls at one moment, one gets it."""

    def link(temporary: Path, path: Path) -> None:
        try:
            os.link(temporary, path)
        except OSError:  # the name is taken, or the file system has no hard links
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            os.replace(temporary, path)
        else:
            temporary.unlink()

    try:
        with atomic_file(path, place=link) as file:
            file.write(text)
    except ResultsError as error:
        if isinstance(error.__cause__, FileExistsError):
            return False
        raise
    return True


UNDELAYED = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""How a file is opened that may be a pipe, which would wait for a writer; not all systems have all of these."""


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file, never waiting for a writer or reading a device: `OSError` for one that is no regular file."""
    handle = os.open(path, UNDELAYED)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def file_sha256(path: Path) -> str | None:
    """Return the SHA-256 of the bytes of a file; None if it cannot be read or is no regular file."""
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except OSError:
        return None


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; None if it cannot be read or is none."""
    try:
        return json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError):
        return None


@contextlib.contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a file; others wait. Yields whether it is held: not without ``wait``, nor on systems that have no locks."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        held = True
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = False
        except (OSError, ImportError):
            pass
        yield held
    finally:
        os.close(handle)


def own_name(stem: str) -> str:
    """Return ``STEM.HOST.PROCESS``, the name of a file that lives as long as this process (see `remove_of_the_dead`)."""
    return f"{stem}.{socket.gethostname()}.{os.getpid()}"


def remove_of_the_dead(folders: Iterable[Path], named: str) -> None:
    """Remove what processes of this machine left that no longer live: temporary files, and files and folders of `own_name` (``named``)."""
    paths = [path for folder in folders for pattern in (f"{named}.*", f".*{_TEMPORARY}") for path in folder.glob(pattern)]
    for path in filter(_is_of_the_dead, paths):
        shutil.rmtree(path, ignore_errors=True)  # which leaves a file
        with contextlib.suppress(OSError):
            path.unlink()


def _is_of_the_dead(path: Path) -> bool:
    whose = path.name.removesuffix(_TEMPORARY)
    host, _, process = (whose if whose == path.name else whose.rpartition(".")[0]).rpartition(".")
    return process.isdigit() and host.endswith(f".{socket.gethostname()}") and not _lives(int(process))


def _lives(process: int) -> bool:
    if os.name == "nt":  # the signal 0 is Ctrl-C there
        import psutil

        return bool(psutil.pid_exists(process))
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
