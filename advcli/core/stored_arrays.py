"""What a saved model holds under each name, checked where it is taken: a file may come from anywhere.

Whoever owns a field asks for it with the shape, the kind of numbers and the range that it must have; what the file says is compared with
that before memory is asked for. Entries that no field needs are refused, too.
"""

from __future__ import annotations

import io
import math
import tokenize
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .checks import is_number
from .errors import ModelError

MOST_COLUMNS = 2**27  # columns that rows have at most: products with sparse rows need memory for every one of them, whatever the file holds
_KINDS = {"b": "true and false", "i": "whole numbers", "f": "numbers", "U": "text"}
_BYTES = 8  # of one number, at most
_LONGEST = 60  # characters of a name in a message
_Shape = tuple[int | None, ...]


class Entries(Mapping[str, Any]):
    """Arrays (contents of ``.npy`` files) and plain values by name, each read when it is taken; file names begin with ``prefix``."""

    def __init__(self, arrays: Mapping[str, bytes], plain: Mapping[str, Any] | None = None, prefix: str = "") -> None:
        self._arrays, self._plain, self._prefix = arrays, plain or {}, prefix
        self._taken: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        return iter([*self._plain, *self._arrays])

    def __len__(self) -> int:
        return len(self._plain) + len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._plain or name in self._arrays

    def __getitem__(self, name: str) -> Any:
        """Return an array of any shape, or a plain value; floats of arrays are finite."""
        if name in self._arrays:
            return self._read(name, None, "bifU")
        self._taken.add(name)
        return self._plain[name]

    def array(self, name: str, shape: _Shape, kinds: str = "f", least: float | None = None, most: float | None = None) -> NDArray[Any]:
        """Return an array of this shape (None: any length), kind of ``bifU`` (truth values, whole numbers, floats, text) and range."""
        if name not in self._arrays:
            self._refuse(name, "is missing")
        values = self._read(name, shape, kinds)
        if values.size and (least is not None or most is not None):
            low, high = values.min(), values.max()
            if (least is not None and low < least) or (most is not None and high > most):
                self._refuse(name, f"has values from {low:g} to {high:g}, not {_range(least, most)}")
        return values

    def number(self, name: str, least: float = -math.inf, most: float = math.inf) -> float:
        """Return a plain finite number within a range, as a float."""
        value: Any = self._plain.get(name)
        self._taken.add(name)
        if not is_number(value) or not least <= value <= most:
            self._refuse(name, "is no finite number within its range")
        return float(value)

    def flag(self, name: str) -> bool:
        """Return a plain true or false; false where there is none of that name."""
        value = self._plain.get(name, False)
        self._taken.add(name)
        if not isinstance(value, bool):
            self._refuse(name, "is neither true nor false")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a plain list of texts."""
        texts = self[name]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ModelError(f"{name!r} are no list of text")
        return tuple(texts)

    def csr(self, pattern: str, rows: int | None, columns: int) -> sparse.csr_array:
        """Return the sparse matrix (rows, columns), None for any number of rows, whose parts are named by a pattern such as ``rows_{}``."""
        data, indices, start, shape = (pattern.format(part) for part in ("data", "indices", "indptr", "shape"))
        size = self.array(shape, (2,), "i", 0).tolist()
        if size[1] != columns or rows not in (None, size[0]):
            self._refuse(shape, f"holds {size}, not {['any' if rows is None else rows, columns]}")
        pointers = self.array(start, (size[0] + 1,), "i", 0)
        values = self.array(data, (None,))
        if pointers[0] != 0 or (np.diff(pointers) < 0).any() or pointers[-1] != len(values):
            self._refuse(start, "does not say where the rows of a sparse matrix begin")
        positions = self.array(indices, (len(values),), "i", 0, columns - 1)
        return sparse.csr_array((values, positions, pointers), shape=(size[0], size[1]))

    def left(self) -> list[str]:
        """Return the names that nobody has taken."""
        return [name for name in self if name not in self._taken]

    def check_taken(self) -> None:
        """Refuse what nobody has taken."""
        for name in self.left():
            self._refuse(name, "is no part of such a model")

    def _refuse(self, name: str, why: str) -> NoReturn:
        text = repr(name if len(name) <= _LONGEST else f"{name[:_LONGEST]}...")[1:-1]
        raise ModelError(f"{text} in model.json {why}" if name in self._plain else f"arrays/{self._prefix}{text}.npy {why}")

    def _read(self, name: str, shape: _Shape | None, kinds: str) -> NDArray[Any]:
        """Return an array; shape, type and length are as its heading says, compared before the values are read."""
        self._taken.add(name)
        content = self._arrays[name]
        file = io.BytesIO(content)
        try:
            if np.lib.format.read_magic(file) != (1, 0):
                self._refuse(name, "has a heading of another version")
            lengths, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, OverflowError, tokenize.TokenError):
            self._refuse(name, "has a heading that cannot be read")
        kind = "i" if dtype.kind == "u" else dtype.kind
        if dtype.fields is not None or dtype.subdtype is not None or kind not in _KINDS or (kind != "U" and dtype.itemsize > _BYTES):
            self._refuse(name, "is neither numbers nor text")
        if kind not in kinds:
            self._refuse(name, f"holds {_KINDS[kind]}, not {' or '.join(_KINDS[letter] for letter in kinds)}")
        if shape is not None and (len(lengths) != len(shape) or any(b not in (None, a) for a, b in zip(lengths, shape, strict=True))):
            self._refuse(name, f"has the shape {_said(lengths)}, not {_said(shape)}")
        begin = file.tell()
        if min(lengths, default=0) < 0 or math.prod(lengths) * dtype.itemsize != len(content) - begin or (dtype.itemsize == 0 and lengths):
            self._refuse(name, "is longer or shorter than its heading says")
        values = np.frombuffer(content, dtype, offset=begin).reshape(lengths, order="F" if by_columns else "C").copy(order="C")
        if kind == "b" and (values.view(np.uint8) > 1).any():
            self._refuse(name, "holds other bytes than true and false")
        if kind == "f" and not np.isfinite(values).all():
            self._refuse(name, "holds numbers that are not finite")
        return values.astype(dtype.newbyteorder("="), copy=False)


def _said(shape: _Shape) -> str:
    return " x ".join("any" if length is None else str(length) for length in shape) or "of one number"


def _range(least: float | None, most: float | None) -> str:
    low, high = ("" if end is None else f"{end:g}" for end in (least, most))
    return f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
