"""Labels by several annotators: who errs how, and what the true classes are likely to be (Dawid & Skene 1979)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from ...core.checks import POSITIVE, at_least, refuse_parameter
from ...core.errors import ConfigError, DataError
from ...core.typing import Array


@dataclass(frozen=True, eq=False)
class Annotations:
    """What `dawid_skene` learned from n rows, k classes and m annotators.

    Attributes
    ----------
    probabilities : DataFrame (n, k)
        P(class | labels) for every row, columns by class: a ``y`` that every estimator with weights fits to.
    prior : Series (k,)
        Shares of the classes.
    confusion : dict of DataFrame (k, k)
        For every annotator P(label given | true class), true classes in rows, the columns labels; rows without any evidence are even.
    log_likelihood : float
        Of all labels, at the end.
    n_iter : int
        Steps made.
    converged : bool
        Whether the last step raised the log-likelihood by less than the tolerance.
    """

    probabilities: pd.DataFrame
    prior: pd.Series
    confusion: dict[Any, pd.DataFrame]
    log_likelihood: float
    n_iter: int
    converged: bool


def dawid_skene(labels: Any, annotators: Any = None, classes: Any = None, max_iter: int = 1000, tol: float = 1e-10) -> Annotations:
    """Return the distributions of the true classes given the labels of several annotators, by Dawid & Skene's EM algorithm.

    An annotator a gives a row of class c the label l with the probability pi_a[c, l], independently of all others. Beginning with the
    shares of the votes, the algorithm alternates between the likeliest prior and pi given the distributions, and the distributions given
    these. Every step raises the likelihood; the end is a stationary point that depends on the beginning: it is no proved optimum, and
    there is no certificate.

    Parameters
    ----------
    labels : array or frame (n, m)
        The label that annotator j gave row i; None, NaN or an empty text where there is none. Every row needs one.
    annotators : sequence (m,), optional
        Who gave each column: columns of one annotator share a matrix. None: the names of the columns of a frame, else 0..m-1.
    classes : sequence (k,), optional
        The classes in the order of the columns of the result. None: the labels that occur, sorted.
    max_iter, tol : int, float
        Steps at most, and the rise of the log-likelihood, relative to it, that ends the steps.

    Raises
    ------
    DataError
        A row without a label, a label that is no class, fewer than two classes, or a table without two dimensions.
    ConfigError
        Annotators for another number of columns, or limits that are none.

    References
    ----------
    Dawid and Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm", Applied Statistics 28: eq. 2.3
    to 2.5 are the steps.

    Examples
    --------
    >>> import pandas as pd
    >>> from advcli import dawid_skene
    >>> votes = pd.DataFrame({"ann": list("aabbba"), "bob": list("aabbbb"), "cyn": list("abbbaa"), "dan": ["b", None, "a", "a", "a", "b"]})
    >>> crowd = dawid_skene(votes)
    >>> crowd.probabilities.idxmax(axis=1).tolist()
    ['a', 'a', 'b', 'b', 'b', 'a']
    >>> crowd.confusion["dan"].round(2).to_numpy().tolist()  # always wrong, and so as useful as the best
    [[0.0, 1.0], [1.0, 0.0]]
    """
    refuse_parameter("max_iter", max_iter, at_least(1), "a whole number of at least 1")
    refuse_parameter("tol", tol, POSITIVE, "a positive number")
    frame = labels if isinstance(labels, pd.DataFrame) else _frame(labels)
    who = list(frame.columns) if annotators is None else list(annotators)
    if len(who) != frame.shape[1]:
        raise ConfigError(f"annotators names {len(who)} columns, and labels has {frame.shape[1]}")
    codes, names = _coded(frame, classes)
    people = list(dict.fromkeys(who))
    owner = np.array([people.index(name) for name in who])
    given = _counts(codes, owner, len(people), len(names))
    P, prior, confusion, value, steps, converged = _expectation_maximisation(given, max_iter, tol)
    index = pd.Index(names)
    return Annotations(
        pd.DataFrame(P, columns=index, index=frame.index),
        pd.Series(prior, index=index),
        {name: pd.DataFrame(confusion[j], index=index, columns=index) for j, name in enumerate(people)},
        value,
        steps,
        converged,
    )


def _frame(labels: Any) -> pd.DataFrame:
    """Return the labels of an array, or a frame of polars or Arrow, as a frame."""
    columns = getattr(labels, "column_names", getattr(labels, "columns", None))
    if columns is not None:
        cells = [labels[name].to_pylist() if hasattr(labels[name], "to_pylist") else labels[name].to_list() for name in columns]
        return pd.DataFrame(dict(zip(columns, (pd.Series(cell, dtype=object) for cell in cells), strict=True)))
    table = labels if isinstance(labels, np.ndarray) else np.array([list(row) for row in labels], dtype=object)
    if table.ndim != 2:
        raise DataError(f"labels must be a table of one row for each row and one column for each annotator, got the shape {table.shape}")
    return pd.DataFrame(table)


def _coded(frame: pd.DataFrame, classes: Any) -> tuple[NDArray[np.intp], list[Any]]:
    """Return codes (n, m), -1 where there is no label, and the classes (k,)."""
    missing = (frame.isna() | frame.isin([""])).to_numpy(dtype=bool)
    cells = [_plain(cell) for cell in frame.to_numpy(dtype=object).ravel().tolist()]
    present = dict.fromkeys(cell for cell, gap in zip(cells, missing.ravel().tolist(), strict=True) if not gap)
    try:
        names = sorted(present) if classes is None else list(classes)
    except TypeError:
        raise DataError("labels holds text beside numbers: give all labels of one type") from None
    place = {name: code for code, name in enumerate(names)}
    strange = next((label for label in present if label not in place), None)
    if strange is not None:
        raise DataError(f"labels holds {strange!r}, which is not among the classes {', '.join(map(repr, names))}")
    if len(names) < 2:
        raise DataError(f"labels holds {len(names)} class; at least 2 are needed (classes=[...] names those that nobody chose)")
    if len(empty := np.flatnonzero(missing.all(axis=1))):
        raise DataError(f"labels, row {empty[0] + 1}, has no label of any annotator; remove the row")
    codes = [-1 if gap else place[cell] for cell, gap in zip(cells, missing.ravel().tolist(), strict=True)]
    return np.array(codes, dtype=np.intp).reshape(missing.shape), names


def _plain(cell: Any) -> Any:
    """Return a whole number as such: a column of numbers with gaps holds floats."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _counts(codes: NDArray[np.intp], owner: NDArray[np.intp], m: int, k: int) -> Array:
    """Return how often annotator j gave row i the label l, shape (n, m, k)."""
    counts = np.zeros((len(codes), m, k))
    row, column = np.nonzero(codes >= 0)
    np.add.at(counts, (row, owner[column], codes[row, column]), 1.0)
    return counts


def _expectation_maximisation(given: Array, max_iter: int, tol: float) -> tuple[Array, Array, Array, float, int, bool]:
    """Return distributions (n, k), prior (k,), matrices (m, k, k), the log-likelihood, steps, and whether these have converged."""
    votes = given.sum(axis=1)
    P, before = votes / votes.sum(axis=1, keepdims=True), -np.inf
    for step in range(1, max_iter + 1):
        prior = P.mean(axis=0)
        confusion = np.einsum("ic,ijl->jcl", P, given)
        seen = confusion.sum(axis=2, keepdims=True)
        confusion = np.divide(confusion, seen, out=np.full_like(confusion, 1.0 / given.shape[2]), where=seen > 0.0)
        with np.errstate(divide="ignore"):
            log_prior, log_confusion = np.log(prior), np.log(confusion)
        # 0 log 0 is 0: what nobody said counts for nothing
        terms = np.where(given[:, :, None, :] > 0.0, given[:, :, None, :] * np.where(given[:, :, None, :] > 0.0, log_confusion, 0.0), 0.0)
        joint = log_prior + terms.sum(axis=(1, 3))
        of_row = logsumexp(joint, axis=1, keepdims=True)
        P, value = np.exp(joint - of_row), float(of_row.sum())
        if value - before <= tol * abs(value):
            return P, prior, confusion, value, step, True
        before = value
    return P, prior, confusion, value, step, False
