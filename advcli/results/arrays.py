"""Files of named arrays beside the cells of a results folder: NumPy's format, compressed, without pickle.

A file may come from anywhere, and a few bytes may unpack to more than there is memory: what the directory of the archive and the headings
of the arrays say is compared with a limit, and with each other, before any array is read. What is written keeps within the limit.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as heading
from numpy.typing import NDArray

from ..core.errors import ResultsError
from ..core.files import UnpackedError, atomic_bytes, check_unpacked, most_unpacked, reason

_KINDS = "biufU"  # of arrays: true and false, whole numbers, floats, text
_ROOM = 2**16  # bytes of a heading, at most
_HEADINGS = {(1, 0): heading.read_array_header_1_0, (2, 0): heading.read_array_header_2_0}


def read_archive(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file in NumPy's npz format by name.

    zipfile, zlib and NumPy raise a dozen kinds of errors for a damaged archive, an archive that unpacks to too much, or pickled objects.
    """
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        entries = check_unpacked(archive, path.stat().st_size)
        for entry in entries:
            with archive.open(entry) as member:
                version = heading.read_magic(member)
                if version not in _HEADINGS:
                    raise ValueError(f"{entry.filename} has a heading of another version")
                shape, _, dtype = _HEADINGS[version](member)
                begin = member.tell()
            if dtype.kind not in _KINDS:
                raise ValueError(f"{entry.filename} holds neither numbers nor text")
            size = dtype.itemsize  # whole numbers of Python have no largest one
            for length in shape:
                size *= length
            if min(shape, default=0) < 0 or begin + size != entry.file_size or (dtype.itemsize == 0 and shape):
                raise ValueError(f"{entry.filename} is longer or shorter than its heading says")
        arrays = {}
        for entry in entries:
            with archive.open(entry) as member:
                arrays[entry.filename.removesuffix(".npy")] = heading.read_array(member, allow_pickle=False)
        return arrays


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by name; `ResultsError` if the file is missing or damaged."""
    try:
        return read_archive(path)
    except FileNotFoundError:
        raise ResultsError(f"{path.parent.name}/{path.name} is missing") from None
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds
        why = str(error) if isinstance(error, UnpackedError) else type(error).__name__
        raise ResultsError(f"{path.parent.name}/{path.name} is damaged ({why})") from None


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], flushed: bool = True) -> None:
    """Write arrays atomically, into a folder that is made if it is not there; for ``flushed`` see `advcli.core.files.write_text`."""
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot create {path.parent}: {reason(error)}; choose another results_dir") from error
    with atomic_bytes(path, flushed=flushed) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        if sum(array.nbytes for array in arrays.values()) + _ROOM * len(arrays) > most_unpacked(file.tell()):
            file.seek(0)
            file.truncate()
            np.savez(file, **arrays)  # type: ignore[arg-type]
