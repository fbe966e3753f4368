"""The fits of one cell, split by split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..core.notes import noted
from ..results.predictions import PredictedRows, Predictions, entry
from ..results.tables import over_splits, plain
from .learning import ConfusionCounts
from .part import Part
from .recipe import Fitted, Recipe
from .selection import Selection
from .splits import Split


class Searches:
    """The searches of a cell: one on the first training part, at once, or one on the training part of every split.

    A stored cell (``before``) keeps its searches. ``rows`` are the rows of search.csv; ``counted`` says how many searches chose at an end
    of all values tried, by the sentence that says which.
    """

    def __init__(self, recipe: Recipe, splits: list[Split], before: Mapping[str, Any] | None) -> None:
        self._recipe = recipe
        self._one = recipe.protocol.search == "first_split" or not recipe.axes.names
        self.rows: list[dict[str, Any]] = [] if before is None else list(before["search_rows"])
        self._hyper: Mapping[str, Any] = {} if before is None else _as_searched(before["about"]["hyper"], recipe)
        self.counted: Counter[str] = Counter() if before is None else Counter(before["about"]["counted"]["edges"])
        if self._one and before is None:
            self._add(1, recipe.search(recipe.part(splits[0][0])))

    def _add(self, number: int, selection: Selection) -> None:
        self.rows += [{"split": number, **row} for row in selection.rows]
        self._hyper = selection.hyper
        self.counted.update(selection.edges)

    def of(self, number: int, train: Part) -> Mapping[str, Any]:
        """Return the hyper-parameters of a split, chosen on its training part."""
        if not self._one:
            self._add(number, self._recipe.search(train, number))
        return self._hyper

    def hyper(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the hyper-parameters; a text says what they are where splits, whose rows of runs.csv these are, chose differently."""
        splits = {row["split"]: row for row in rows}
        if self._one or len(splits) < 2:
            return dict(self._hyper)
        return {name: over_splits([row.get(name) for row in splits.values()]) for name in self._hyper}

    def edges(self) -> list[str]:
        """Return one sentence for every end of a search at which splits chose, and how many did."""
        n = len({row["split"] for row in self.rows})
        return [edge if self._one else f"{edge} ({count} of {n} splits)" for edge, count in self.counted.items()]


def _as_searched(hyper: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Return hyper-parameters of a cell's file as the search chose them: its candidates may be what JSON does not tell from lists."""
    candidates = recipe.axes.lists
    return {
        name: next((candidate for candidate in candidates.get(name, ()) if plain(candidate) == value), value)
        for name, value in hyper.items()
    }


class Fits:
    """The fits of all n splits, including the fits of a stored cell (``before``).

    ``rows`` are the rows of runs.csv, ``failure`` the first traceback, ``learned`` the points of learning curves. ``counted`` has
    ``choices`` of solver=auto, ``stopped`` (statuses of fits that did not converge), ``remarks`` and ``notes`` on the fits.
    """

    def __init__(self, recipe: Recipe, n: int, predictions: Predictions, before: Mapping[str, Any] | None) -> None:
        self._recipe, self._n, self.predictions = recipe, n, predictions
        about: Mapping[str, Any] = {} if before is None else before["about"]
        counted = about.get("counted", {})
        self.rows: list[dict[str, Any]] = [] if before is None else list(before["rows"])
        self.failure = ""
        self.counted = {name: Counter(counted.get(name, {})) for name in ("choices", "stopped", "remarks", "notes")}
        self.confusion = ConfusionCounts.of(recipe, about.get("confusion"))
        self.learned: list[dict[str, Any]] = list(about.get("learning", ()))

    def judge(self, splits: list[Split]) -> str:
        """Give the rows of a stored cell their missing metrics by its predictions; return in words what a cell gets."""
        by_split: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows:
            by_split.setdefault(row["split"], []).append(row)
        new: dict[str, None] = {}
        self.rows = []
        for number, rows in by_split.items():
            held = {row["metric"]: row for row in rows}
            names = dict.fromkeys([rows[0]["metric"], *self._recipe.protocol.metrics])
            missing = [name for name in names if name not in held]
            new |= dict.fromkeys(missing)
            values: dict[str, float] = {}
            if missing:
                test = self._recipe.part(splits[number - 1][1])
                values = self._values(missing, test, entry(number))
                for point in (point for point in self.learned if point["split"] == number):
                    values_of = self._values(missing, test, entry(number, point["share"])) | point["values"]
                    point["values"] = {name: values_of[name] for name in dict.fromkeys([*names, *values_of])}
            # counts of the algorithm stand behind the metrics
            self.rows += [held.get(name) or rows[0] | {"metric": name, "value": values[name]} for name in dict.fromkeys([*names, *held])]
        more = len(splits) - len(by_split)
        added = [f"{more} split{'s' if more > 1 else ''} added"] if by_split and more else []
        return ", ".join(added + ([f"{', '.join(new)} by kept predictions"] if new else []))

    def count(self, fitted: Fitted) -> dict[str, Any]:
        """Count how a fit went; return the columns that describe it."""
        learner = fitted.learner
        self.counted["notes"].update(fitted.notes)
        columns: dict[str, Any] = {**fitted.facts, "n_train": fitted.n_train, "n_features": int(learner.n_features_in_)}
        if learner.certificate_ is not None:
            columns["solver"] = str(learner.certificate_.solver)
            certificates = (learner.certificate_, *learner.stages_.values())
            self.counted["stopped"].update(str(certificate.status) for certificate in certificates if not certificate.converged)
        if learner.solver_choice_:
            self.counted["choices"][learner.solver_choice_] += 1
        return columns

    def add(self, number: int, test: Part, predicted: PredictedRows) -> None:
        """Keep the predictions of a split's test rows."""
        self.predictions.add(entry(number), predicted)
        if self.confusion is not None:
            self.confusion.add(test.y, predicted.codes)

    def _values(self, names: list[str], test: Part, name: str) -> dict[str, float]:
        return self._recipe.values(names, test, self.predictions.of(name, self._recipe.n_classes))

    def notes(self) -> list[str]:
        """Return notes on the fits."""
        remarks = [f"{remark} ({count} of {self._n} fits)" for remark, count in self.counted["remarks"].items()]
        return [*self.counted["notes"], *(noted("ADV117", f"{self._recipe.cell.method}: {remark}") for remark in remarks)]

    def about(self) -> dict[str, Any]:
        """Return what the cell's file keeps for figures."""
        confusion = {} if self.confusion is None else {"confusion": self.confusion.about()}
        return confusion | ({"learning": self.learned} if self.learned else {})
