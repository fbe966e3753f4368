"""The cheapest predictions for anybody's class probabilities and a cost matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError
from ...data.labels.soft import distributions
from ...losses import matrices
from ...losses.matrices import ABSTAIN, CostMatrix
from .given_costs import NAMED, check_costs


def decide(P: Any, cost: Any, classes: Any = None, return_cost: bool = False) -> Any:
    """Return the prediction of least expected cost for every row of class probabilities, (n,); ties go to the first.

    Parameters
    ----------
    P : array or frame (n, k)
        Class probabilities by any classifier, rows that sum to 1; columns of a frame are named by the classes.
    cost : {"zero_one", "absolute", "squared"}, array or frame (l, k), or path of a CSV file
        What prediction i costs under class j. A frame or file with names is put in the order of the classes. Rows beyond the classes
        are other decisions, such as to reject or to ask.
    classes : sequence (k,), optional
        The classes in the order of the columns of P, such as ``model.classes_``. None: the names of the columns, else 0..k-1.
    return_cost : bool
        Also return the expected costs of the decisions, (n,), in units of the cost matrix.

    Returns
    -------
    ndarray (n,)
        Classes, and of rows beyond them their names; without names ``advcli.ABSTAIN`` for one such row, ``"prediction K"`` for others.

    Raises
    ------
    DataError
        P that are no probabilities (`advcli.data.labels.soft.shares`).
    ConfigError
        A matrix of another shape, or with names that are not the classes.

    References
    ----------
    Elkan (2001), "The foundations of cost-sensitive learning", IJCAI 17: eq. 1 is the rule. Chow (1970), "On optimum recognition error and
    reject tradeoff", IEEE Transactions on Information Theory 16, is the rule with an option to reject.

    Examples
    --------
    >>> import pandas as pd
    >>> from advcli import decide
    >>> cost = pd.DataFrame([[0, 50], [5, 0], [8, 8]], index=["pay", "refuse", "ask"], columns=["pay", "refuse"])
    >>> P = pd.DataFrame([[0.97, 0.03], [0.75, 0.25], [0.2, 0.8]], columns=["pay", "refuse"])
    >>> decide(P, cost).tolist()
    ['pay', 'refuse', 'refuse']
    >>> decide([[0.9, 0.1], [0.6, 0.4]], [[0, 1], [1, 0], [0.3, 0.3]]).tolist()
    [0, 'abstain']
    """
    shares, names = distributions(P)
    names = names if classes is None else np.asarray(classes)
    if names.shape != (shares.shape[1],):
        raise ConfigError(f"classes names {len(names)} classes, and P has {shares.shape[1]} columns")
    matrix = _matrix(cost, names)
    expected = shares @ matrix.values.T
    best = expected.argmin(axis=1)
    labels = _labels(matrix, names)[best]
    return (labels, expected[np.arange(len(best)), best]) if return_cost else labels


def _matrix(cost: Any, names: NDArray[Any]) -> CostMatrix:
    """Return the cost matrix, rows and columns in the order of the classes where they have names."""
    k = len(names)
    if isinstance(cost, str) and cost in NAMED:
        return CostMatrix(NAMED[cost][1](k))
    if isinstance(cost, str | Path):
        if not str(cost).lower().endswith(".csv"):
            check_costs(cost, k)  # names the nearest
        found = matrices.read_csv(cost).align(names.tolist(), f"the cost matrix in {cost}")
        matrices.check_matrix(found.values, k, f"the cost matrix in {cost}")
        return found
    if matrices.is_frame(cost):
        return matrices.from_frame(cost, names.tolist(), "cost")
    return CostMatrix(matrices.check_matrix(cost, k, "cost"))


def _labels(matrix: CostMatrix, names: NDArray[Any]) -> NDArray[Any]:
    """Return the labels of the rows of the matrix, (l,)."""
    k, rows = len(names), len(matrix.values)
    if matrix.rows is not None:
        listed = [*names.tolist(), *matrix.rows[k:]] if matrix.of_classes else list(matrix.rows)
    elif rows < k:
        raise ConfigError(f"cost has {rows} rows without names for {k} classes: give a frame whose index names the predictions")
    else:
        listed = [*names.tolist(), *([ABSTAIN] if rows == k + 1 else [f"prediction {row}" for row in range(k, rows)])]
    if len({type(label) for label in listed}) == 1:
        return np.array(listed)
    labels = np.empty(rows, dtype=object)
    labels[:] = listed
    return labels
