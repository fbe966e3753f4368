"""Arrays that are costly to compute, shared by the processes of a sweep: files of a folder, mapped into memory."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ..core.typing import Array

_FREE_BYTES = 4 * 2**30  # left free on the disk
_folder: Path | None = None


@contextlib.contextmanager
def kept_in(folder: Path | None) -> Iterator[None]:
    """Share bases and components with all processes that name the same folder; None shares nothing. The caller removes the folder."""
    global _folder
    before, _folder = _folder, folder
    try:
        yield
    finally:
        _folder = before


def kept(name: str, compute: Callable[[], Array]) -> Array:
    """Return the array of this name from the shared folder, mapped into memory, or compute and keep it there."""
    if _folder is None:
        return compute()
    path = _folder / f"{name}.npy"
    with contextlib.suppress(OSError, ValueError):
        return np.asarray(np.load(path, mmap_mode="r"))
    array = compute()
    with contextlib.suppress(OSError):  # a full disk costs time, not the result
        if shutil.disk_usage(_folder).free > _FREE_BYTES + array.nbytes:
            part = path.with_suffix(f".{os.getpid()}.part")
            with part.open("wb") as file:
                np.save(file, array)
            part.replace(path)
    return array
