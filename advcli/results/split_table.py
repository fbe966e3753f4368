"""The table of splits: which rows of a data set are in which part, as a file that any language reads and writes.

``splits.csv`` has the columns ``dataset``, ``sha256`` (checksum of the data set, as `advcli data show` prints it), ``split`` (from 1),
``part`` and ``rows``: row numbers of the data set, counted from 0, separated by spaces; ``a-b`` are the rows from a to b. A part is
``train``, ``test`` or ``fold K``, the rows that fold K of the search holds out; it is fitted to ``fold K train``, or, without such a line,
to all other training rows. ``stage 2 fold K`` is a fold of the second stage, which has those of the first where it has none. The order of
rows counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.files import csv_text, reason

COLUMNS = ("dataset", "sha256", "split", "part", "rows")
"""Columns of a table of splits."""

Rows = NDArray[np.intp]
Pair = tuple[Rows, Rows]

_FOLD = re.compile(r"(?:stage ([12]) )?fold ([1-9]\d{0,8})( train)?")
_ROWS = re.compile(r"\d{1,18}(?:-\d{1,18})?(?: \d{1,18}(?:-\d{1,18})?)*")


@dataclass(frozen=True, eq=False)
class GivenSplit:
    """One split of a table: rows to train on, rows to test on, and pairs (rows to fit to, rows held out) of the stages that have folds."""

    train: Rows
    test: Rows
    folds: Mapping[int, list[Pair]] = field(default_factory=dict)

    def parts(self) -> Iterator[tuple[str, Rows]]:
        """Yield every part by its name; the rows that a fold is fitted to where they are not all others in their order."""
        yield "train", self.train
        yield "test", self.test
        for stage, pairs in sorted(self.folds.items()):
            for number, (fit, held) in enumerate(pairs, start=1):
                name = f"fold {number}" if stage == 1 else f"stage {stage} fold {number}"
                yield name, held
                if not np.array_equal(fit, self.train[~np.isin(self.train, held)]):
                    yield f"{name} train", fit


def rows_text(rows: Any) -> str:
    """Return row numbers as text, three or more that follow each other as a range.

    Examples
    --------
    >>> from advcli.results.split_table import rows_text
    >>> rows_text([7, 0, 1, 2, 3, 9, 8])
    '7 0-3 9 8'
    """
    rows = np.asarray(rows, dtype=np.int64)
    if not len(rows):
        return ""
    first = np.flatnonzero(np.append(True, np.diff(rows) != 1))
    last = np.append(first[1:], len(rows)) - 1
    texts: list[str] = []
    for begin, end in zip(rows[first].tolist(), rows[last].tolist(), strict=True):
        texts += [f"{begin}-{end}"] if end - begin > 1 else map(str, range(begin, end + 1))
    return " ".join(texts)


def lines_of(dataset: str, sha256: str, splits: Sequence[GivenSplit]) -> list[tuple[str, ...]]:
    """Return the lines of the splits of a data set, in the order of `COLUMNS`."""
    return [
        (dataset, sha256, str(number), part, rows_text(rows))
        for number, split in enumerate(splits, start=1)
        for part, rows in split.parts()
    ]


def table_text(lines: Iterable[Sequence[str]]) -> str:
    """Return the text of a table with these lines."""
    return csv_text([COLUMNS, *lines])


def digest_of(splits: Iterable[GivenSplit]) -> str:
    """Return a checksum of splits and their folds."""
    return hashlib.sha256(table_text(lines_of("", "", list(splits))).encode()).hexdigest()


def read_lines(path: Path) -> list[tuple[str, ...]]:
    """Return the lines of a table of splits, each as many texts as `COLUMNS`; `DataError` for a file that is none."""
    try:
        about = path.stat()
    except OSError as error:
        raise DataError(f"protocol.splits={path}: {reason(error)}; give a rule, or the file of a table of splits") from None
    return _read_lines(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4)
def _read_lines(path: Path, *_: int) -> list[tuple[str, ...]]:
    import pandas as pd

    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    except (OSError, ValueError) as error:
        raise DataError(f"protocol.splits={path} cannot be read as a table of splits: {' '.join(str(error).split())}") from None
    if missing := [name for name in COLUMNS if name not in frame]:
        raise DataError(f"{path} is no table of splits: it lacks the column {missing[0]}; the columns are {','.join(COLUMNS)}")
    return [tuple(str(cell).strip() for cell in row) for row in frame[list(COLUMNS)].itertuples(index=False)]


def read_splits(path: Path, dataset: str, sha256: str, n: int) -> list[GivenSplit]:
    """Return the splits that a table has of a data set of ``n`` rows with a checksum.

    Raises
    ------
    DataError
        A file that is no table of splits, another data set's checksum, row numbers that are none or out of range, a row twice or in both
        parts of a split, a split or a part that is missing; the line names the file and its line.
    """
    lines = read_lines(path)
    mine = [(number, line) for number, line in enumerate(lines, start=2) if line[1] == sha256]
    if not mine:
        raise DataError(_no_splits(path, lines, dataset, sha256))
    parts: dict[int, dict[str, tuple[int, Rows]]] = {}
    for number, (_, _, split, part, text) in mine:
        where = f"{path}, line {number}"
        if not re.fullmatch(r"[1-9]\d{0,8}", split):
            raise DataError(f"{where}: the split {split!r} is no number from 1 on")
        if part not in ("train", "test") and not _FOLD.fullmatch(part):
            raise DataError(f"{where}: the part {part!r} is none; give train, test, fold K or fold K train")
        held = parts.setdefault(int(split), {})
        if part in held:
            raise DataError(f"{where}: {part} of split {split} stands in line {held[part][0]} already")
        held[part] = number, _rows(text, n, where)
    missing = next(number for number in range(1, len(parts) + 2) if number not in parts)
    if missing <= len(parts):
        raise DataError(f"{path} has no split {missing} of {dataset}, but {max(parts)}; splits are numbered from 1 without a gap")
    return [_split(path, number, parts[number]) for number in range(1, len(parts) + 1)]


def _no_splits(path: Path, lines: Sequence[Sequence[str]], dataset: str, sha256: str) -> str:
    """Return why a table has no splits of a data set."""
    namesakes = [line[1] for line in lines if line[0] == dataset]
    if namesakes:
        others = f"its checksum there is {namesakes[0][:12] or 'empty'}, here it is {sha256[:12]}"
        return f"{path} has splits of other rows of {dataset}: {others}; make splits of these rows (advcli data show has the checksum)"
    there = ", ".join(list(dict.fromkeys(line[0] for line in lines))[:5]) or "none"
    return f"{path} has no splits of the data set {dataset} (checksum {sha256[:12]}); it has those of {there}"


def _rows(text: str, n: int, where: str) -> Rows:
    """Return the rows that a text lists."""
    if not text:
        raise DataError(f"{where}: no rows")
    if not _ROWS.fullmatch(text):
        wrong = next((word for word in text.split() if not _ROWS.fullmatch(word)), text)
        raise DataError(f"{where}: {wrong!r} is no row number; write numbers from 0 on with spaces between them, or ranges a-b")
    pieces = [word.partition("-") for word in text.split(" ")]
    first = np.array([begin for begin, _, _ in pieces], dtype=np.int64)
    last = np.array([end or begin for begin, _, end in pieces], dtype=np.int64)
    if (last < first).any():
        at = int(np.argmax(last < first))
        raise DataError(f"{where}: the range {first[at]}-{last[at]} falls; write the smaller number first")
    if last.max() >= n:
        raise DataError(f"{where}: the row {last.max()} is out of range; the data set has the rows 0 to {n - 1}")
    sizes = last - first + 1
    if sizes.sum() > n:
        raise DataError(f"{where}: {sizes.sum()} rows of a data set of {n}; a row stands once in a part")
    before = np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.repeat(first, sizes) + np.arange(int(sizes.sum())) - before
    _refuse_twice(rows, n, where)
    return rows.astype(np.intp)


def _refuse_twice(rows: Rows, n: int, where: str) -> None:
    counts = np.bincount(rows, minlength=n)
    if counts.max() > 1:
        raise DataError(f"{where}: the row {int(np.argmax(counts > 1))} stands there twice")


def _split(path: Path, number: int, parts: Mapping[str, tuple[int, Rows]]) -> GivenSplit:
    """Return a split whose parts, each with its line, do not overlap and whose folds are of training rows."""
    for part in ("train", "test"):
        if part not in parts:
            raise DataError(f"{path}: split {number} has no part {part}")
    (_, train), (line, test) = parts["train"], parts["test"]
    if len(both := np.intersect1d(train, test)):
        raise DataError(f"{path}, line {line}: the row {both[0]} is in both parts of split {number}; a test row is no training row")
    folds: dict[int, dict[int, Pair]] = {}
    for part, (line, held) in parts.items():
        match = _FOLD.fullmatch(part)
        if match is None:
            continue
        where = f"{path}, line {line}: {part} of split {number}"
        if len(beyond := np.setdiff1d(held, train)):
            raise DataError(f"{where} has the row {beyond[0]}, which is no training row")
        if match[3]:
            if part.removesuffix(" train") not in parts:
                raise DataError(f"{where} has no rows to hold out; add the line {part.removesuffix(' train')}")
            continue
        fit = parts[f"{part} train"][1] if f"{part} train" in parts else train[~np.isin(train, held)]
        if not len(fit) or len(both := np.intersect1d(fit, held)):
            raise DataError(f"{where}: " + (f"the row {both[0]} is held out and fitted to" if len(fit) else "no rows are left to fit to"))
        folds.setdefault(int(match[1] or 1), {})[int(match[2])] = fit, held
    for stage, pairs in folds.items():
        if sorted(pairs) != list(range(1, len(pairs) + 1)):
            remedy = "number them from 1 without a gap"
            raise DataError(f"{path}: the folds of split {number} are {', '.join(map(str, sorted(pairs)))}; {remedy}")
        if stage == 2 and 1 not in folds:
            raise DataError(f"{path}: split {number} has folds of stage 2 and none of stage 1")
    return GivenSplit(train, test, {stage: [pairs[k] for k in sorted(pairs)] for stage, pairs in folds.items()})
