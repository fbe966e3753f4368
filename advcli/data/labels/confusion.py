"""Confusion matrices: C[p, q] = P(label p is seen | the true class is q), columns are distributions (Louche & Ralaivola 2015, eq. 4)."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ConfigError
from ...core.paths import refuse_pipe
from ...core.typing import Array

ILL_CONDITIONED = 100.0
"""Condition number above which a warning says that estimates through C^-1 are mostly noise (measured: 2-9 on digits, letter, text)."""

SINGULAR = 1e6
"""Condition number above which C counts as not invertible."""

_ROUNDING = 1e-6  # how far a column's sum may lie from 1: matrices are typed with a few decimals


class IllConditionedWarning(UserWarning):
    """The inverse of a confusion matrix amplifies the noise of all estimates that use it."""


def check_confusion(matrix: Any, n_classes: int, names: Sequence[Any] | None = None, where: str = "confusion") -> tuple[Array, float]:
    """Return a confusion matrix (k, k) as float64, row = label seen, column = true class, and its condition number (spectral norm).

    ``names`` are the classes and ``where`` the matrix in messages. Other shapes, entries below 0 or above 1 and columns that do not sum to
    1 are refused, and so is a matrix close to singular; the error names the classes that it does not tell apart. Above `ILL_CONDITIONED` an
    `IllConditionedWarning` is raised.
    """
    try:
        C = np.ascontiguousarray(np.asarray(matrix, dtype=np.float64))
    except (TypeError, ValueError):
        raise ConfigError(f"{where} must be a matrix of numbers, {n_classes} rows and columns") from None
    if C.shape != (n_classes, n_classes):
        raise ConfigError(f"{where} must have shape ({n_classes}, {n_classes}), a row and a column per class; got {C.shape}")
    labels = list(range(n_classes)) if names is None else list(names)
    if not np.isfinite(C).all() or C.min() < 0.0:
        row, column = (int(positions[0]) for positions in np.nonzero(~np.isfinite(C) | (C < 0.0)))
        raise ConfigError(f"{where} must hold probabilities: row {labels[row]}, column {labels[column]} is {C[row, column]:g}")
    totals = C.sum(axis=0)
    if np.abs(totals - 1.0).max() > _ROUNDING:
        column = int(np.argmax(np.abs(totals - 1.0)))
        hint = "; its rows do: transpose it" if np.abs(C.sum(axis=1) - 1.0).max() <= _ROUNDING else ""
        rule = f"every column is the distribution of the labels seen for one true class and must sum to 1{hint}"
        raise ConfigError(f"{where}: column {labels[column]} sums to {totals[column]:.6g}; {rule}")
    condition, at_fault = conditioning(C)
    fault = ", ".join(str(labels[label]) for label in at_fault)
    if condition > SINGULAR:
        remedy = f"its columns do not tell the classes {fault} apart: merge them or use more clean labels"
        raise ConfigError(f"{where} cannot be inverted: condition number {condition:.1e} (at most {SINGULAR:.0e}); {remedy}")
    if condition > ILL_CONDITIONED:
        warning = f"{where} has condition number {condition:.0f}: estimates for the classes {fault} are mostly noise"
        warnings.warn(warning, IllConditionedWarning, stacklevel=2)
    return C, condition


def conditioning(C: Array) -> tuple[float, list[int]]:
    """Return the condition number of C (inf when singular) and the classes at fault: large entries of the last right singular vector."""
    _, values, vectors = np.linalg.svd(C)
    condition = float(values[0] / values[-1]) if values[-1] > 0.0 else float("inf")
    weight = np.abs(vectors[-1])
    order = np.argsort(-weight, kind="stable")
    return condition, sorted(int(label) for label in order[:5] if weight[label] >= 0.5 * weight.max())


def estimate_confusion(seen: Any, truth: Any, n_classes: int) -> tuple[Array, list[int]]:
    """Return C (k, k) estimated from codes (m,) of a clean sample, and the classes that the sample lacks.

    C = (N + I) / (column sum + 1) with N[p, q] the number of examples of class q labelled p: one example that was labelled right is added
    to every class. A class that the sample lacks gets the column of the identity, and C stays far from singular; adding to all entries
    alike (Laplace) would give two such classes the same column.
    """
    seen, truth = np.asarray(seen, dtype=np.intp), np.asarray(truth, dtype=np.intp)
    if seen.shape != truth.shape or seen.ndim != 1:
        raise ConfigError(f"a confusion matrix is estimated from pairs of labels, got {seen.shape} seen and {truth.shape} true ones")
    N = np.zeros((n_classes, n_classes))
    np.add.at(N, (seen, truth), 1.0)
    smoothed = N + np.eye(n_classes)
    return smoothed / smoothed.sum(axis=0), [int(label) for label in np.flatnonzero(N.sum(axis=0) == 0.0)]


def read_confusion(path: Path) -> Array:
    """Return the matrix of a CSV file without heading, one row per label seen; `ConfigError` for a file without a matrix of numbers."""
    refuse_pipe(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except OSError as error:
        raise ConfigError(f"cannot read the confusion matrix {path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error):
        raise ConfigError(f"the confusion matrix {path} is not CSV in UTF-8") from None
    try:
        matrix = np.array([[float(cell) for cell in row] for row in rows])
    except ValueError:
        raise ConfigError(f"the confusion matrix {path} must hold the same count of numbers in every row, without heading") from None
    if matrix.ndim != 2 or not matrix.size:
        raise ConfigError(f"the confusion matrix {path} is empty")
    return matrix
