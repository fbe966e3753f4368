"""From the public files of a data set to its files in the folder of data sets; one module a format, found by the name of the format.

A module has a function ``tables(parts, upstream)``: ``parts`` has the text of every public file, in the order of `Upstream.paths`, and what
it returns maps the end of a file's name, before ``.csv.gz``, to a `TextTable`: ``""`` is the table of rows, ``.tree`` a tree of its labels.
"""

from __future__ import annotations

import gzip
import importlib
import zlib
from collections.abc import Sequence

from ...core.errors import DataError
from ...core.files import csv_text
from ..catalogue import Upstream
from .rows import TextTable

_GZIP = 31  # the largest window, in a gzip header without a time


def convert(upstream: Upstream, contents: Sequence[bytes], name: str) -> dict[str, bytes]:
    """Return the files of a data set as plain CSV by their packed names; `DataError` where a public file does not have its format."""
    module = importlib.import_module(f"{__name__}.{upstream.format}")
    try:
        plain = [gzip.decompress(raw) if path.endswith(".gz") else raw for path, raw in zip(upstream.paths, contents, strict=True)]
        tables: dict[str, TextTable] = module.tables([raw.decode() for raw in plain], upstream)
    except Exception as error:  # whatever a changed file makes a reader raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"the public file of data set {name!r} is not {upstream.format} as expected: {reason}") from None
    return {f"{name}{end}.csv.gz": csv_text([table.columns, *table.rows]).encode() for end, table in tables.items()}


def pack(plain: bytes) -> bytes:
    """Return content as gzip: the bytes of the files in ``data/`` by zlib 1.2.13; other versions may give others with the same content."""
    packer = zlib.compressobj(level=9, wbits=_GZIP, memLevel=9)
    return packer.compress(plain) + packer.flush()
