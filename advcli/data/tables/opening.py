"""The bytes and the text of a file, whatever packs it and encodes it, read once from its beginning to its end."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ...core.errors import DataError, MissingDataError, UnknownNameError, nearest
from ...core.paths import read_once, refuse_pipe

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip"}
_ENDINGS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zip": "zip"}
_UNPACK: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile)

# Files of other formats than text: their first bytes, and what to do with them.
_OTHERS = {
    b"PAR1": "a parquet file; let its name end in .parquet, or use dataset.format=parquet",
    b"ARROW1": "a feather file; let its name end in .feather, or use dataset.format=feather",
    b"\xd0\xcf\x11\xe0": "an Excel file of the old kind; save it as .xlsx or CSV",
    b"\x28\xb5\x2f\xfd": "packed by zstd, which is not read here; unpack it",
    b"7z\xbc\xaf\x27\x1c": "packed by 7z, which is not read here; unpack it",
    b"%PDF": "a PDF; export the table as CSV",
    b"SQLite": "an SQLite database; export the table as CSV",
}
_HEAD = 8  # bytes that tell all of these

# Marks at the beginning of a text overrule any option. UTF-32 comes first: its marks begin with the marks of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SEPARATOR_LINE = re.compile(r'"?sep=(?P<separator>[^"\r\n])"?[,;\t]*(?=\r?\n|\r)', re.IGNORECASE)

ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16", "cp1250", "cp1251", "cp437", "shift_jis", "gb18030", "mac_roman")
"""Encodings that messages name; ``dataset.encoding`` takes any that Python has."""

WINDOWS = "cp1252"  # what text is mostly encoded in that is not UTF-8


class NotTextError(DataError):
    """Bytes that the encoding by which they were read cannot decode."""


class _Joined(io.RawIOBase):
    """A file of which the first bytes were read, from its beginning."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.head[: len(buffer)] or self.rest.read(len(buffer))
        self.head = self.head[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def check_encoding(name: Any) -> str | None:
    """Return the encoding that ``dataset.encoding`` names; None: the mark at the beginning of a file, or UTF-8."""
    if name is None:
        return None
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=str(name))  # refuses codecs that make no text too
    except (LookupError, ValueError):
        raise UnknownNameError(f"dataset.encoding={name} is not an encoding of text; {nearest(str(name), ENCODINGS)}") from None
    return str(name)


def open_bytes(path: Path, once: bool = True) -> IO[bytes]:
    """Open a file as it is, or a pipe where its content is asked for ``once``; nobody is waited for who has not begun to write."""
    if not once:
        refuse_pipe(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name the CSV file in it")
    if not read_once(path):
        return path.open("rb")
    # without O_NONBLOCK a pipe that nobody writes into would be waited for; with it such a pipe is empty
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if os.isatty(descriptor):
        os.close(descriptor)
        raise DataError(f"{path} is a terminal; name a file, or a pipe that something is written into")
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


@contextlib.contextmanager
def opened(path: Path, raw: bytes | None = None) -> Iterator[IO[bytes]]:
    """Yield the content of a file, unpacked where it is gzip, bz2, xz or a zip of one file; ``raw`` is its content, when it was read
    already.

    A `DataError` says what is wrong with it; damage may show while the content is read.
    """
    packed = ""
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(open_bytes(path) if raw is None else io.BytesIO(raw))
            head = file.read(_HEAD)
            for start, what in _OTHERS.items():
                if head.startswith(start):
                    raise DataError(f"{path} is {what}")
            packed = next((kind for start, kind in _PACKED.items() if head.startswith(start)), "")
            ending = _ENDINGS.get(path.suffix.lower(), "")
            if head and ending not in ("", packed):
                raise DataError(f"{path} ends in {path.suffix} but is not a {ending} file; get it again or rename it")
            whole = io.BufferedReader(_Joined(head, file))
            if packed == "zip":
                yield stack.enter_context(_member(path, io.BytesIO(whole.read())))
            else:
                yield stack.enter_context(_UNPACK[packed](whole)) if packed else whole
    except FileNotFoundError:
        raise missing_file(path) from None
    except _DAMAGE:
        raise DataError(f"{path} is a damaged {packed} file; get it again") from None
    except OSError as error:
        if packed and error.errno is None:  # bz2 raises a plain OSError
            raise DataError(f"{path} is a damaged {packed} file; get it again") from None
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def missing_file(path: Path) -> MissingDataError:
    """Return the error for a missing file, with the nearest name of a file in its folder."""
    beside = [item.name for item in path.parent.iterdir() if item.is_file()] if path.parent.is_dir() else []
    close = nearest(path.name, beside) if beside else ""
    return MissingDataError(f"there is no file {path}; {close if close.startswith('did you mean') else 'check the path'}")


def _member(path: Path, file: IO[bytes]) -> IO[bytes]:
    """Return the one file of a zip archive."""
    archive = zipfile.ZipFile(file)
    members = [item for item in archive.infolist() if not item.is_dir() and not item.filename.startswith("__MACOSX/")]
    names = [item.filename for item in members]
    if "[Content_Types].xml" in names:
        raise DataError(f"{path} is an Excel file; let its name end in .xlsx, or use dataset.format=excel")
    if len(members) != 1:
        content = f"{len(members)} files ({', '.join(names[:5])})"
        raise DataError(f"{path} is a zip archive of {content}; unpack it and name the one with the table")
    if members[0].flag_bits & 1:
        raise DataError(f"{path} is a zip archive with a password; unpack it")
    try:
        return archive.open(members[0])
    except NotImplementedError:
        raise DataError(f"{path} is a zip archive that is packed in a way that Python does not read; unpack it") from None


def as_text(file: IO[bytes], encoding: str | None) -> io.TextIOWrapper:
    """Return the text of an open file, line ends as they are: by the mark at its beginning, else by ``encoding``, else UTF-8.

    UTF-16 without a mark is recognised by its zero bytes where no encoding is given.
    """
    head = file.read(_HEAD)
    encoding_found = next((name for mark, name in _MARKS if head.startswith(mark)), encoding)
    if encoding_found is None and len(head) == _HEAD:
        zero = [byte == 0 for byte in head]
        encoding_found = {(False, True): "utf-16-le", (True, False): "utf-16-be"}.get((zero[0], zero[1])) if zero[:2] * 4 == zero else None
    return io.TextIOWrapper(io.BufferedReader(_Joined(head, file)), encoding=encoding_found or "utf-8", newline="")


def not_text(path: Path, error: UnicodeError, file: io.TextIOWrapper, whole: bool) -> NotTextError:
    """Return the error for bytes that the encoding cannot decode; ``whole``: all were decoded at once."""
    name = file.encoding.upper().removesuffix("-SIG")
    line = f" (line {error.object.count(10, 0, error.start) + 1})" if whole and isinstance(error, UnicodeDecodeError) else ""
    remedy = f"dataset.encoding={WINDOWS} reads what Windows writes" if name == "UTF-8" else "dataset.encoding says what it is"
    return NotTextError(f"{path} is not {name} text{line}; {remedy}, or save it as CSV with the encoding UTF-8")


def declared_separator(text: str, separator: str, encoding: str) -> tuple[str, str]:
    """Return a text, or its first line, and the separator, which Excel may have written into the file.

    Its ``sep=;`` in the first line becomes a blank line. What it calls Unicode text is UTF-16 with tabs between the fields.
    """
    line = _SEPARATOR_LINE.match(text)
    if line is not None:
        return text[line.end() :], line["separator"]
    heading = text.partition("\n")[0]
    tabs = separator == "," and encoding.startswith("utf-16") and "\t" in heading and "," not in heading
    return text, "\t" if tabs else separator


def read_bytes(path: Path, once: bool = False) -> bytes:
    """Return the content of a file; a pipe is read only with ``once``: the caller does not read the same content again."""
    try:
        with open_bytes(path, once) as file:
            return file.read()
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def unpacked(path: Path) -> bytes:
    """Return the content of a file, unpacked."""
    raw = read_bytes(path)
    with opened(path, raw) as file:
        return file.read()


def decode(path: Path, raw: bytes, separator: str = ",", encoding: str | None = None) -> tuple[str, str]:
    """Return the text of a file, unpacked, and the separator of its fields, which the file may say (`declared_separator`)."""
    with opened(path, raw) as file:
        wrapped = as_text(file, encoding)
        try:
            text = wrapped.read()
        except UnicodeError as error:
            raise not_text(path, error, wrapped, True) from None
    refuse_zero_bytes(path, text)
    if not text.strip():
        raise DataError(f"{path} is empty; it needs a heading line and rows")
    return declared_separator(text, separator, wrapped.encoding)


def refuse_zero_bytes(path: Path, text: str) -> None:
    """Refuse text that is none."""
    if "\0" in text:
        raise DataError(f"{path} is not a text file (it has zero bytes); save it as CSV with the encoding UTF-8")
