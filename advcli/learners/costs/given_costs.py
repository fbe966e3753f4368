"""Costs as learners from costs take them: a matrix by name, by numbers or from a file, or every row's own costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ...core.errors import ConfigError, DataError
from ...core.stored_arrays import Entries
from ...core.typing import Array, Labels, Options
from ...losses import matrices
from ..base import Learner, Rows, State
from ..options import one_of

NAMED = {"zero_one": ("error", matrices.zero_one), "absolute": ("mae", matrices.absolute), "squared": ("mse", matrices.squared)}
"""Costs by name: the metric that counts them, and their matrix."""


@dataclass(kw_only=True, eq=False, repr=False)
class LearnsFromCosts(Learner):
    """A learner from the cost of predicting each class: by a matrix of predictions and true classes, ``cost``, or on every row."""

    has_costs: ClassVar[bool] = True
    paths: ClassVar[tuple[str, ...]] = ("file",)
    default_cost: ClassVar[str] = "zero_one"
    without_order: ClassVar[str] = "give it with dataset.order=[lowest,...,highest] or choose loss.cost=zero_one"

    cost: Any = None

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the costs, by name, as a matrix, or from a file."""
        return ("cost", "file")

    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the order of the labels for costs that count steps between them."""
        return frozenset({"order"}) if loss.get("cost") in ("absolute", "squared") else frozenset()

    @classmethod
    def filled(cls, loss: Options, facts: Options) -> dict[str, Any]:
        """Return the options with a cost: from the file, else absolute for labels with an order and the learner's default for others."""
        return with_cost(loss, facts, cls.default_cost)

    def check_parameters(self) -> None:
        """Refuse what the learner refuses without costs, and invalid costs."""
        super().check_parameters()
        check_costs(self.cost, self.n_classes)

    @property
    def counts_steps(self) -> bool:
        """Whether costs count steps between classes."""
        return "order" in self.needs({"cost": self._cost if isinstance(self._cost, str) else None})

    @property
    def _cost(self) -> Any:
        return self.default_cost if self.cost is None else self.cost

    def cost_matrix(self) -> Array:
        """Return the cost matrix (k, k)."""
        return matrix_of(self._cost, len(self.classes_), self.order_)

    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None, start: Any = None, costs: Any = None) -> Any:
        """Fit to rows X (n, d) and labels y (n,), whose costs the matrix ``cost`` tells, or to every row's own costs.

        Parameters
        ----------
        X, sample_weight : array or sparse matrix (n, d), array (n,)
            Rows, and how often each occurs.
        y : array (n,), optional
            Labels. Beside ``costs`` they only name the classes, in sorted order, and may be left out: the classes are then 0..k-1.
        start : Learner, optional
            Fitted to the same rows at another strength, from whose solution the fit may begin.
        costs : array or frame (n, k), optional
            What predicting class j on row i costs, at least 0: each row has its own costs, and its label is its first cheapest class.
            Columns with names are found by the classes of y.

        Raises
        ------
        DataError, ConfigError
            Costs of the wrong shape, negative ones, or no finite numbers; columns whose names are not the classes.
        """
        self._fitting(Rows(X, sample_weight, costs), y, start)
        return self

    def bind(self: Any, rows: Rows, y: Any) -> Any:
        """Return rows and labels as fits take them, with the costs of the rows or the costs of their labels in the cost matrix.

        ``_bound`` of the learner takes checked rows, their labels, their costs (n, k), and weights.
        """
        return super().bind(rows, y) if rows.costs is None else self._bound(*self._checked_costs(rows, y))  # type: ignore[safe-super]

    def _checked_costs(self, rows: Rows, y: Any) -> tuple[Any, Labels, Array, Array | None]:
        """Return validated rows, their first cheapest classes, their costs by `order_`, and weights."""
        table = check_cost_rows(rows.costs)
        if y is None:
            X, weights = self._validated(rows.X), None
            if rows.weight is not None:
                weights = _check_sample_weight(rows.weight, X, dtype=np.float64, ensure_non_negative=True)
            self.name_classes(np.arange(table.shape[1]))
        else:
            X, _, weights = self._checked(rows.X, y, rows.weight)
        places = matrices.columns_of(rows.costs, self.order_.tolist(), "costs") if matrices.is_frame(rows.costs) else None
        if places is not None:
            table = np.ascontiguousarray(table[:, places])
        if table.shape != (X.shape[0], len(self.classes_)):
            remedy = f"give one row for each of the {X.shape[0]} rows and one column for each of the {len(self.classes_)} classes"
            raise DataError(f"costs have the shape {table.shape[0]} x {table.shape[1]}; {remedy}")
        return X, table.argmin(axis=1).astype(np.intp), table, weights

    @property
    def metric_(self) -> str:
        """The metric that counts the costs: error, mae, mse, or cost for a matrix."""
        return metric_of(self._cost)

    @property
    def cost_matrix_(self) -> Array | None:
        """The cost matrix (k, k)."""
        return self.cost_matrix()

    def saved(self) -> State:
        """Return what a saved model holds, the cost matrix as numbers."""
        parameters, attributes, rows = super().saved()  # type: ignore[safe-super]
        return {**parameters, "cost": plain_cost(self.cost, self.order_)}, attributes, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; refuse a cost that is none."""
        super().restore(attributes)  # type: ignore[safe-super]
        self.cost_matrix()


def with_cost(loss: Options, facts: Options, default: str) -> dict[str, Any]:
    """Return the group ``loss`` with a cost instead of null: the file's, else absolute for ordered labels, else ``default``."""
    if loss.get("file") is not None:
        if loss.get("cost") is not None:
            raise ConfigError(f"loss={loss['name']} needs its costs once: give loss.cost or loss.file")
        where = f"the loss matrix in {loss['file']}"
        matrix = matrices.read_csv(loss["file"]).align(facts.get("classes"), where)
        matrix.refuse_other_rows(where)
        return {**loss, "cost": matrix.values.tolist()}
    if loss.get("cost") is None:
        return {**loss, "cost": "absolute" if facts.get("ordered") else default}
    return dict(loss)


def in_class_order(cost: Any, classes: Any) -> Any:
    """Return a cost with rows and columns in the order of the classes: a frame as a matrix of numbers, any other cost as it is."""
    if not matrices.is_frame(cost):
        return cost
    matrix = matrices.from_frame(cost, list(classes), "cost")
    matrix.refuse_other_rows("cost")
    return matrix.values


def matrix_of(cost: Any, n_classes: int, classes: Any = None) -> Array:
    """Return the matrix (k, k) of a cost by name, by numbers, or by a frame, which the labels of the ``classes`` put into their order."""
    cost = in_class_order(cost, range(n_classes) if classes is None else classes)
    check_costs(cost, n_classes)
    return NAMED[cost][1](n_classes) if isinstance(cost, str) else matrices.check_matrix(cost, n_classes, "cost")


def metric_of(cost: Any) -> str:
    """Return the metric that counts a cost: error, mae, mse, or cost for a matrix."""
    return NAMED[cost][0] if isinstance(cost, str) else "cost"


def plain_cost(cost: Any, classes: Any) -> Any:
    """Return a cost as a saved model holds it, a matrix as numbers in the order of the classes."""
    cost = in_class_order(cost, classes)
    return cost if cost is None or isinstance(cost, str) else np.asarray(cost, dtype=np.float64).tolist()


def check_costs(cost: Any, n_classes: int | None) -> None:
    """Refuse a cost matrix that is none, by one line; ``n_classes`` is None while the classes are unknown."""
    if cost is None or matrices.is_frame(cost):  # a frame is checked with the classes
        return
    if isinstance(cost, str):
        one_of("cost", cost, NAMED)
        return
    matrix = matrices.check_matrix(cost, n_classes, "cost")
    if matrix.shape[0] != matrix.shape[1]:
        raise ConfigError(
            f"cost has {matrix.shape[0]} rows and {matrix.shape[1]} columns; these methods predict classes: give a square matrix"
        )
    if (matrix < 0.0).any():
        i, j = np.argwhere(matrix < 0.0)[0]
        raise ConfigError(f"cost, row {i}, column {j}, is {matrix[i, j]:g}; costs must be at least 0: add a constant to the column")


def check_cost_rows(costs: Any) -> Array:
    """Return costs of rows (n, k), checked."""
    try:
        table = np.ascontiguousarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("costs must be numbers, one row for each row of X and one column for each class") from None
    if table.ndim != 2 or table.shape[1] < 2:
        raise DataError(f"costs must be a table of one row for each row of X and one column for each class, got the shape {table.shape}")
    wrong = np.argwhere(~np.isfinite(table) | (table < 0.0))
    if len(wrong):
        i, j = wrong[0]
        raise DataError(f"costs, row {i + 1}, column {j + 1}, is {table[i, j]:g}; costs must be finite numbers of at least 0")
    return table
