"""A part of a data set that a search fits to and judges on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.tables.encoding import Encoding
from ..learners.base import Learner, Rows


@dataclass(frozen=True)
class Part:
    """Rows (n, d) that a search or a fit may see, not standardised; cells (n, p) where there is an ``encoding``, which a fit fits.

    ``y`` (n,) are 0-based codes, or ones (n, L) where a row has a label; a part may miss a class. Where rows have ``costs`` (n, k) of their
    own, y is the first cheapest class; where they have distributions over the classes, ``soft`` (n, k), the first likeliest one. ``groups``
    (n,) are the sequences of the rows, which stand together; ``group`` and ``time`` (n,) are what splits keep whole and go by,
    ``numbers`` (n,) the 0-based rows of the data set. ``relations`` (n,) are the names of the words' relations to their heads.
    """

    X: Any
    y: Any
    weight: NDArray[np.float64] | None = None
    costs: NDArray[np.float64] | None = None
    groups: NDArray[np.intp] | None = None
    encoding: Encoding | None = None
    group: NDArray[np.intp] | None = None
    time: NDArray[Any] | None = None
    numbers: NDArray[np.intp] | None = None
    soft: NDArray[np.float64] | None = None
    relations: NDArray[Any] | None = None

    def __getitem__(self, rows: Any) -> Part:
        columns = {name: getattr(self, name) for name in ("weight", "costs", "groups", "group", "time", "numbers", "soft", "relations")}
        chosen = {name: column[rows] for name, column in columns.items() if column is not None}
        return replace(self, X=self.X[rows], y=self.y[rows], **chosen)

    def labels(self, learner: Learner) -> Any:
        """Return what a learner takes for y: distributions where the rows have such, unless it learns from their costs."""
        return self.y if self.soft is None or learner.has_costs else self.soft

    def examples(self, learner: Learner) -> tuple[Rows, Any]:
        """Return rows and labels as `Learner.bind` takes them."""
        return (self.rows, self.y) if self.soft is None else learner.one_label_a_row(self.rows, self.labels(learner))

    def encoded(self, *others: Part) -> tuple[Part, ...]:
        """Return these rows and others with features instead of cells; the encoding is fitted to these rows."""
        if self.encoding is None:
            return (self, *others)
        encoding = self.encoding.fit(self.X)
        return tuple(replace(part, X=encoding.features(part.X), encoding=None) for part in (self, *others))

    @property
    def rows(self) -> Rows:
        """The rows as a learner takes them, with their own costs, their sequences and their relations if it learns from such."""
        return Rows(self.X, self.weight, self.costs, self.groups, self.relations)
