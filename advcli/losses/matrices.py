"""Loss matrices: what each prediction costs under each truth, and what is lost when a matrix is unusual.

A loss matrix has shape (l, k), row = prediction, column = truth (Fathony et al. 2018, section 2.1, figure 1). l = k for
plain classification, l = k + 1 with an abstain option, any l for decisions that are not labels.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import FRACTION, NUMBER, POSITIVE, between, refuse_parameter
from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.paths import expanded, refuse_pipe
from ..core.typing import Array

MOST_CLASSES = 20_000  # classes of a loss matrix at most: it has a number for every two of them, 3.2 GB then
ABSTAIN = "abstain"
"""What `predict` returns where a classifier abstains, whatever the type of the labels: text among numbers, which no class can equal."""


NEGATIVE = (
    "the cost matrix has negative entries: the surrogate and bounds of costs can be negative, "
    "so that a gap relative to them can lose its meaning"
)
"""What is said once of a fit to such a matrix."""


# ---- named matrices -------------------------------------------------------------------------------------------------
def zero_one(n_classes: int) -> Array:
    """Return the zero-one matrix, shape (k, k): 0 on the diagonal, 1 elsewhere. `ConfigError` for more than `MOST_CLASSES`."""
    check_size(n_classes)
    return 1.0 - np.eye(n_classes)


def check_size(n_classes: int) -> None:
    """Refuse more classes than `MOST_CLASSES`, before anything is allocated."""
    if n_classes > MOST_CLASSES:
        raise ConfigError(f"there are {n_classes} classes; a loss matrix is for {MOST_CLASSES} at most: choose loss=cs, ww or llw")


def absolute(n_classes: int) -> Array:
    """Return |prediction - truth| in label codes, shape (k, k)."""
    check_size(n_classes)
    labels = np.arange(float(n_classes))
    return np.abs(labels[:, None] - labels)


def squared(n_classes: int) -> Array:
    """Return (prediction - truth)^2 in label codes, shape (k, k)."""
    return absolute(n_classes) ** 2


def power(n_classes: int, p: float = 1.5) -> Array:
    """Return |prediction - truth|^p, shape (k, k); its columns are convex for p >= 1. `ConfigError` unless p > 0."""
    refuse_parameter("p of the power loss", p, POSITIVE)
    with np.errstate(over="ignore"):
        matrix = absolute(n_classes) ** p
    if not np.isfinite(matrix).all():
        raise ConfigError(f"p of the power loss is too large for {n_classes} classes, got {p:g}")
    return matrix


def huber(n_classes: int, delta: float = 1.0) -> Array:
    """Return Huber's loss, shape (k, k): d^2/2 up to the distance ``delta``, delta (d - delta/2) beyond."""
    refuse_parameter("delta of the Huber loss", delta, POSITIVE)
    distance = absolute(n_classes)
    return np.where(distance <= delta, 0.5 * distance**2, delta * (distance - 0.5 * delta))


def pinball(n_classes: int, quantile: float = 0.5) -> Array:
    """Return the pinball loss, shape (k, k): quantile per unit predicted too low, 1 - quantile per unit too high."""
    refuse_parameter("quantile of the pinball loss", quantile, FRACTION)
    check_size(n_classes)
    labels = np.arange(float(n_classes))
    short = labels - labels[:, None]
    return np.where(short >= 0, quantile * short, (quantile - 1.0) * short)


def abstain(n_classes: int, alpha: float = 0.5) -> Array:
    """Return zero-one with a last row of cost ``alpha`` for abstaining, shape (k + 1, k); 0 <= alpha <= 1."""
    return np.vstack([zero_one(n_classes), np.full(n_classes, check_alpha(alpha))])


# ---- matrices from people -------------------------------------------------------------------------------------------
class CostMatrix(NamedTuple):
    """A loss matrix with the names of its rows (predictions) and columns (truths), None where the source has none."""

    values: Array  # (l, k)
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None

    @property
    def of_classes(self) -> bool:
        """Whether the first k rows predict the classes of the columns, in their order; rows without names do where they are k or more."""
        k = self.values.shape[1]
        return len(self.values) >= k if self.rows is None else self.columns is not None and self.rows[:k] == self.columns

    def align(self, classes: Sequence[object] | None, where: str = "the loss matrix") -> CostMatrix:
        """Return the matrix with columns, and rows of these names before others, in the order of the classes (None: of the columns)."""
        columns = self.columns
        if classes is None:
            classes = columns or ()
        if not classes or (columns is None and self.rows is None):
            return self
        names = tuple(name_of(label) for label in classes)
        _refuse_twice(where, self.rows or (), columns or ())
        columns = names if columns is None else columns
        for name in names:
            if name not in columns:
                raise UnknownNameError(f"{where} has no column for class {name!r}: {nearest(name, columns)}")
        extra = [name for name in columns if name not in names]
        if extra:
            raise ConfigError(f"{where} has a column {extra[0]!r} but the data have no such class: remove it")
        values, rows = self.values[:, [columns.index(name) for name in names]], self.rows
        if rows is None or not set(names) & set(rows):
            return CostMatrix(values, rows, names)
        lacks = [name for name in names if name not in rows]
        if lacks:
            raise ConfigError(
                f"{where} has rows for other classes, but no row for class {lacks[0]!r} ({nearest(lacks[0], rows)}): "
                "a class that is not to be predicted needs a row of high costs"
            )
        order = [rows.index(name) for name in names] + [i for i, row in enumerate(rows) if row not in names]
        return CostMatrix(values[order], tuple(rows[i] for i in order), names)

    def refuse_other_rows(self, where: str) -> None:
        """Raise `ConfigError` where the rows have names that are not the classes, for a method that predicts classes alone."""
        if self.rows is not None and not (self.of_classes and len(self.rows) == len(self.columns or ())):
            other = next((row for row in self.rows if row not in (self.columns or ())), self.rows[0])
            raise ConfigError(f"{where} has a row {other!r}, which is no class, and this method predicts classes: choose loss=general")


def number(value: Any, what: str) -> float:
    """Return ``value`` as a finite float; `ConfigError` naming ``what`` otherwise."""
    refuse_parameter(what, value, NUMBER)
    return float(value)


def check_alpha(alpha: Any) -> float:
    """Return the cost of abstaining as a float; `ConfigError` unless 0 <= alpha <= 1."""
    refuse_parameter("alpha of loss=abstain", alpha, between(0, 1), "a number from 0 to 1 (1 is the cost of a wrong label)")
    return float(alpha)


def check_matrix(matrix: Any, n_classes: int | None = None, where: str = "the loss matrix") -> Array:
    """Return rows of numbers as float64 (l, k); `ConfigError` names the first bad entry of the matrix, called ``where``."""
    shape_help = "give one row per prediction, one number per class in each"
    if isinstance(matrix, np.ndarray):
        clean = matrix.ndim == 2 and matrix.size > 0 and matrix.dtype.kind in "fiu" and bool(np.isfinite(matrix).all())
        if clean and n_classes in (None, matrix.shape[1]):
            return np.array(matrix, dtype=np.float64, order="C")
        matrix = matrix.tolist()  # the slow way, which finds the words for what is wrong
    if isinstance(matrix, str) or not isinstance(matrix, Sequence) or len(matrix) == 0:
        raise ConfigError(f"{where} is not a list of rows: {shape_help}")
    rows: list[list[float]] = []
    for i, row in enumerate(matrix):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) == 0:
            raise ConfigError(f"{where}, row {i}, is not a list of numbers: {shape_help}")
        if rows and len(row) != len(rows[0]):
            raise ConfigError(f"{where}, row {i}, has {len(row)} entries but row 0 has {len(rows[0])}: {shape_help}")
        rows.append([number(entry, f"{where}, row {i}, column {j},") for j, entry in enumerate(row)])
    if n_classes is not None and len(rows[0]) != n_classes:
        raise ConfigError(f"{where} has {len(rows[0])} columns but there are {n_classes} classes: {shape_help}")
    return np.array(rows)


def read_csv(path: str | Path) -> CostMatrix:
    """Read a loss matrix from a CSV file of numbers alone, or with a first line and first cells that name columns (truths) and rows
    (predictions).
    """
    path = expanded(path)
    refuse_pipe(path)
    where = f"the loss matrix in {path}"
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            table = [[cell.strip() for cell in line] for line in csv.reader(handle) if any(cell.strip() for cell in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{where} cannot be read ({reason}): check the path and that it is a CSV text file") from None
    if not table:
        raise ConfigError(f"{where} is empty: give one row per prediction, one number per class in each")
    rows = columns = None
    if not _is_number(table[0][0]):
        columns = tuple(table[0][1:])
        rows = tuple(line[0] for line in table[1:])
        table = [line[1:] for line in table[1:]]
        _refuse_twice(where, rows, columns)
        if table and len(table[0]) != len(columns):
            raise ConfigError(f"{where} names {len(columns)} columns but its first row has {len(table[0])} numbers")
    values = check_matrix([[float(cell) if _is_number(cell) else cell for cell in line] for line in table], None, where)
    return CostMatrix(values, rows, columns)


def _refuse_twice(where: str, rows: tuple[str, ...], columns: tuple[str, ...]) -> None:
    for names, kind in ((rows, "row"), (columns, "column")):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"{where} has two {kind}s named {twice!r}: names must differ")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_frame(matrix: Any) -> bool:
    """Return whether a matrix is a pandas or polars frame."""
    return hasattr(matrix, "columns") and hasattr(matrix, "to_numpy")


def from_frame(frame: Any, classes: Sequence[object], where: str = "the loss matrix") -> CostMatrix:
    """Return the matrix of a pandas or polars frame (l, k) in the order of the k classes; ``where`` names it in a `ConfigError`.

    Columns and rows are named by the classes, rows by the index, or without one (polars) by a first column of text. A frame that has no
    names but 0, 1, 2, ... is in the order of the classes already, unless these are the classes.
    """
    names = [name_of(label) for label in classes]
    columns, values = [name_of(column) for column in frame.columns], [frame[column].to_list() for column in frame.columns]
    if hasattr(frame, "index"):
        rows = [name_of(row) for row in frame.index]
    elif values and all(isinstance(cell, str) for cell in values[0]):
        rows, columns, values = values[0], columns[1:], values[1:]
    else:
        rows = list(map(str, range(len(frame))))
    table = check_matrix([list(row) for row in zip(*values, strict=True)], None, where)
    columns_unnamed, rows_unnamed = _unnamed(columns, names), _unnamed(rows, names)
    if columns_unnamed != rows_unnamed:
        named, unnamed, give = (
            ("rows", "columns", "the classes as its columns") if columns_unnamed else ("columns", "rows", "the predictions as its index")
        )
        raise ConfigError(f"{where} names its {named} and not its {unnamed}: give {give}, {names[0]!r}, ...")
    if columns_unnamed:
        return CostMatrix(check_matrix(table, len(names), where))
    return CostMatrix(table, tuple(rows), tuple(columns)).align(names, where)


def columns_of(frame: Any, classes: Sequence[object], where: str) -> list[int] | None:
    """Return the positions of the columns that the classes name, None where columns have no names; `ConfigError` where they differ."""
    columns, names = [name_of(column) for column in frame.columns], [name_of(label) for label in classes]
    if _unnamed(columns, names):
        return None
    for name in names:
        if name not in columns:
            raise UnknownNameError(f"{where} have no column for class {name!r}: {nearest(name, columns)}")
    if len(columns) > len(names):
        extra = next((name for name in columns if name not in names), "twice")
        raise ConfigError(f"{where} have a column {extra!r} but there is no such class: remove it")
    return [columns.index(name) for name in names]


def _unnamed(numbers: list[str], names: list[str]) -> bool:
    return numbers == list(map(str, range(len(numbers)))) and not set(numbers) & set(names)


def name_of(label: Any) -> str:
    """Return a label as the names of rows and columns are compared: 1.0 is 1."""
    return str(int(label)) if isinstance(label, (float, np.floating)) and float(label).is_integer() else str(label)


def matrix_from(
    matrix: Any = None,
    file: str | Path | None = None,
    n_classes: int | None = None,
    loss: str = "general",
    *,
    classes: Sequence[Any] | None = None,
    predictions: Sequence[Any] | None = None,
) -> CostMatrix:
    """Return the checked matrix of a loss from its options, in the order of the ``classes``, rows named by ``predictions`` where given."""
    if (matrix is None) == (file is None):
        raise ConfigError(f"loss={loss} needs either matrix (a list of rows) or file (a CSV), not {'both' if file else 'neither'}")
    if file is not None:
        source = read_csv(file)
        check_matrix(source.values, n_classes, f"the loss matrix in {file}")
    elif isinstance(matrix, CostMatrix):
        source = CostMatrix(check_matrix(matrix.values, n_classes), matrix.rows, matrix.columns)
    else:
        source = CostMatrix(check_matrix(matrix, n_classes))
    if predictions is not None:
        source = CostMatrix(source.values, _named_rows(source, predictions, loss), source.columns)
    return source.align(classes)


def _named_rows(matrix: CostMatrix, predictions: Any, loss: str) -> tuple[str, ...]:
    """Return the names that the option ``predictions`` gives to the rows of a matrix."""
    if isinstance(predictions, str) or not isinstance(predictions, Sequence) or len(predictions) != len(matrix.values):
        raise ConfigError(f"predictions of loss={loss} must name the {len(matrix.values)} rows of the matrix, got {predictions!r:.60}")
    if matrix.rows is not None:
        raise ConfigError(f"the rows of the matrix of loss={loss} have names already: leave predictions out")
    names = tuple(map(name_of, predictions))
    if len(set(names)) < len(names):
        raise ConfigError(f"predictions of loss={loss} must be different names")
    return names


# ---- structure and guarantees ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Description:
    """What a loss matrix is: ``matrix = scale * the named structure``, and the guarantees that it loses."""

    structure: str  # "zero_one", "absolute", "squared", "abstain", "convex" (columns convex in the prediction) or "general"
    scale: float  # 1 for convex and general
    alpha: float | None  # of an abstain matrix
    notes: tuple[str, ...]  # plain sentences, empty when every guarantee holds


def convex_columns(matrix: Array) -> bool:
    """Return whether every column is convex in the prediction: second differences >= 0, up to rounding."""
    if len(matrix) < 3:
        return True
    return bool(_second_differences(matrix).min() >= -_rounding(matrix))


def first_bend(matrix: Array) -> tuple[int, int] | None:
    """Return (row, column) of the first entry that lies above the line between its neighbours in its column, or None."""
    if convex_columns(matrix):
        return None
    row, column = np.argwhere(_second_differences(matrix) < -_rounding(matrix))[0]
    return int(row) + 1, int(column)


def _second_differences(matrix: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.diff(matrix, axis=0)[1:] - np.diff(matrix, axis=0)[:-1]


def _rounding(matrix: Array) -> float:
    return 4.0 * float(np.finfo(float).eps) * float(np.abs(matrix).max())


def describe(matrix: Array, of_classes: bool = True) -> Description:
    """Recognise the structure of a loss matrix, times a scale > 0, and the guarantees that it lacks (Theorem 15 of Fathony et al. 2018)."""
    structure, scale, alpha = _structure(matrix)
    return Description(structure, scale, alpha, tuple(_lost_guarantees(matrix, structure, of_classes)))


def _structure(matrix: Array) -> tuple[str, float, float | None]:
    l, k = matrix.shape
    if l == k:
        for name, pattern in (("zero_one", zero_one(k)), ("absolute", absolute(k)), ("squared", squared(k))):
            scale = float(matrix[0, 1]) if k > 1 else 1.0
            if scale > 0 and _same(matrix, scale * pattern):
                return name, scale, None
    if l == k + 1 and (matrix[k] == matrix[k, 0]).all():
        scale = float(matrix[0, 1]) if k > 1 else 1.0
        if scale > 0 and _same(matrix[:k], scale * zero_one(k)) and 0 <= matrix[k, 0] <= scale:
            return "abstain", scale, float(matrix[k, 0]) / scale
    return ("convex" if convex_columns(matrix) else "general"), 1.0, None


def _same(matrix: Array, pattern: Array) -> bool:
    return bool((np.abs(matrix - pattern) <= _rounding(matrix)).all())


def _lost_guarantees(matrix: Array, structure: str, of_classes: bool) -> list[str]:
    l, k = matrix.shape
    notes = []
    if l != k or not of_classes:
        if structure != "abstain" or not of_classes:
            notes.append(
                f"{l} predictions{'' if of_classes else ', which are not the classes,'} for {k} classes: "
                "Theorem 15 (argmax of the potentials is the Bayes label) does not apply; "
                "predictions come from the predictor's distribution (eq. 133)"
            )
    else:
        diagonal = np.diagonal(matrix)
        off = matrix + np.diag(np.full(k, np.inf))
        failing = np.flatnonzero(off.min(axis=1) <= diagonal)
        if len(failing):
            row = int(failing[0])
            column = int(np.argmin(off[row]))
            notes.append(
                f"row {row} costs {matrix[row, row]:g} when right and {matrix[row, column]:g} when the truth is {column}: the "
                "row condition of Theorem 15 fails, so argmax of the potentials need not be the Bayes label; use rule=predictor"
            )
        if (diagonal != 0).any():
            row = int(np.flatnonzero(diagonal)[0])
            notes.append(
                f"the diagonal is not zero (class {row} costs {diagonal[row]:g} when right): the surrogate of a perfect fit is not zero"
            )
    if (matrix < 0).any():
        row, column = (int(index) for index in np.argwhere(matrix < 0)[0])
        notes.append(
            f"negative entries (row {row}, column {column} is {matrix[row, column]:g}): the surrogate can be negative, "
            "so a gap relative to the objective can lose its meaning"
        )
    return notes
