"""Files of named arrays beside the cells of a results folder: NumPy's format, compressed, without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ResultsError
from .files import atomic_bytes, reason


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by name.

    Raises
    ------
    ResultsError
        If there is no such file, or it is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ResultsError(f"{path.parent.name}/{path.name} is missing") from None
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds
        raise ResultsError(f"{path.parent.name}/{path.name} is damaged ({type(error).__name__})") from None


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], flushed: bool = True) -> None:
    """Write arrays atomically, into a folder that is made if it is not there; for ``flushed`` see `advcli.files.write_text`.

    Raises
    ------
    ResultsError
        If they cannot be written.
    """
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot create {path.parent}: {reason(error)}; choose another results_dir") from error
    with atomic_bytes(path, flushed=flushed) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
