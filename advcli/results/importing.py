"""Anybody's table of scores as a results folder: which columns say what, what is refused, and the cells that are made of its rows."""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from ..core.checks import collected
from ..core.errors import ConfigError, DataError, ResultsError, UnknownNameError, nearest
from ..core.paths import expanded
from ..metrics import direction as known_direction
from ..metrics import is_share, meaning
from ..metrics import names as metric_names
from .folder import ResultsFolder
from .foreign_columns import Layout, blank, layout, metric_name, text_of
from .identity import Owner
from .tables import SCHEMA_VERSION, canonical_json

INCOMPLETE = ("drop_datasets", "drop_methods", "mark")
"""What may become of a table in which a method lacks a data set, a split or an item; without a choice it is refused."""

GAP = "not in the imported table"
"""Error of a row that stands for a missing one (``incomplete="mark"``)."""

_MISSING = ("nan", "na", "n/a", "-", "none", "null", "<na>")
_TRUTHS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Score:
    """A value of an imported table: what it is of, and in which row it stands."""

    dataset: str
    method: str
    unit: str  # name of the split or item
    metric: str
    value: float
    n_train: int | None
    n_test: int | None
    row: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What no other score has."""
        return self.dataset, self.method, self.unit, self.metric


@dataclass(frozen=True)
class Imported:
    """The scores of a table after all checks; `write` makes the results folder."""

    scores: Sequence[Score]
    kind: str  # "item", "split", or "" in a table with neither
    higher: Mapping[str, bool]  # direction of every metric
    said: Sequence[str]  # which columns were taken for what, and what was left out
    marked: bool = False
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Names of the methods in the order of the table."""
        return list(dict.fromkeys(score.method for score in self.scores))

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets in the order of the table."""
        return list(dict.fromkeys(score.dataset for score in self.scores))

    def write(self, path: str | os.PathLike[str], command: Sequence[str] = ()) -> ResultsFolder:
        """Write the cells into a new folder, or into the folder that the same table made before, and merge them."""
        started = time.time()
        folder = ResultsFolder(path)
        content = [[*score.key, score.value, score.n_train, score.n_test] for score in self.scores]
        digest = hashlib.sha256(canonical_json([content, self.kind, dict(self.higher), self.marked]).encode()).hexdigest()
        identity = {"imported": digest}
        if folder.path.exists() and any(folder.path.iterdir()) and not Owner(folder.path).is_of(identity):
            raise ResultsError(f"{folder.path} holds other results; remove it, or choose another out=")
        folder.prepare(identity)
        for dataset in self.datasets:
            self._write_dataset(folder, dataset, [score for score in self.scores if score.dataset == dataset])
        folder.merge()
        about = {"imported": {**self.source, "columns": list(self.said)}, "datasets": self.datasets, "methods": self.methods}
        folder.write_provenance({}, started, extra=about | ({"command": [*command]} if command else {}))
        return folder

    def _write_dataset(self, folder: ResultsFolder, dataset: str, scores: Sequence[Score]) -> None:
        units = sorted({score.unit for score in scores}, key=_natural)
        number = {unit: at for at, unit in enumerate(units, start=1)}
        drawn = hashlib.sha256(canonical_json([dataset, self.kind, units]).encode()).hexdigest()
        sizes = {score.unit: score for score in scores}
        of_metrics = {metric: {score.unit for score in scores if score.metric == metric} for metric in self.higher}
        for method in dict.fromkeys(score.method for score in scores):
            mine = {(score.unit, score.metric): score for score in scores if score.method == method}
            wanted = [(unit, metric) for unit in units for metric in self.higher if (unit, metric) in mine or unit in of_metrics[metric]]
            rows = [
                self._row(mine.get(place), sizes[place[0]], method, number[place[0]], place)
                for place in wanted
                if self.marked or place in mine
            ]
            key = hashlib.sha256(canonical_json([SCHEMA_VERSION, "imported", dataset, method, rows]).encode()).hexdigest()[:16]
            about = {"dataset": dataset, "method": method, "imported": dict(self.source), "drawn": drawn}
            folder.write_cell(key, [{**row, "cell": key} for row in rows], about=about)

    def _row(self, score: Score | None, like: Score, method: str, number: int, place: tuple[str, str]) -> dict[str, Any]:
        """Return a row of runs.csv; without a score it has no value."""
        unit, metric = place
        return {
            "dataset": like.dataset,
            "loss": method,
            "features": "",
            "solver": "",
            "method": method,
            "split": number,
            "metric": metric,
            "value": None if score is None else score.value,
            "n_train": (score or like).n_train,
            "n_test": 1 if self.kind == "item" else (score or like).n_test,
            "status": "failed" if score is None else "ok",
            "error": GAP if score is None else "",
            "options": "",
            "higher_is_better": self.higher[metric],
            **({self.kind if self.kind == "item" else "split_name": unit} if self.kind else {}),
        }


def from_frame(
    frame: Any,
    out: str | os.PathLike[str],
    *,
    dataset: str | Sequence[str] | None = None,
    method: str | Sequence[str] | None = None,
    split: str | Sequence[str] | None = None,
    item: str | Sequence[str] | None = None,
    metric: str | Sequence[str] | None = None,
    value: str | Sequence[str] | None = None,
    n_train: str | int | None = None,
    n_test: str | int | None = None,
    direction: str | None = None,
    percent: bool = False,
    incomplete: str | None = None,
    name: str = "table",
) -> ResultsFolder:
    """Make a results folder of a table of scores: anybody's methods on data sets, by split or by item.

    The folder is like a sweep's to `advcli.reports.write_reports`, ``advcli check`` and ``advcli export``. Its cells have no
    settings and no certificates, and numbers are stored with their exact bits.

    Parameters
    ----------
    frame : DataFrame
        Of pandas or polars: tidy (one score a row) or wide (a column of scores for each method, metric or data set).
    out : path
        The results folder; new, or made from the same table before.
    dataset, method, metric : str or sequence of str, optional
        The column that names them; of a wide table the columns of scores, whose names they are. ``metric`` may also be the name of the
        one metric. None: a column with a usual name; without one the data set is called ``name``.
    split, item : str or sequence of str, optional
        The column that numbers or names splits (folds, seeds), several together, or items such as questions; a table has one of the two.
    value : str or sequence of str, optional
        The column of scores; several are metrics. Truth values count as 1 and 0, and ``87.3%`` as 0.873.
    n_train, n_test : str or int, optional
        Rows in the training and the test part of a split, which the corrected resampled t-test needs: a column, or one number for all.
    direction : {"higher", "lower"}, optional
        What is better, for metrics of which this is not known by their name.
    percent : bool
        Whether the scores of metrics that are shares, such as accuracy, are percentages, which are divided by 100.
    incomplete : {"drop_datasets", "drop_methods", "mark"}, optional
        What becomes of a table in which a method lacks a data set, a split or an item: data sets or methods with gaps are left out, or
        gaps are marked and such a method is not compared on that data set. None: such a table is refused.
    name : str
        Name of the data set where no column has one.

    Returns
    -------
    ResultsFolder
        ``runs()`` gives its rows.

    Raises
    ------
    ConfigError, DataError
        Before anything is written: a column that is missing or may mean two things, two rows of one key, a value that is no finite
        number, a metric of unknown direction, splits and items at once, a table with gaps.
    ResultsError
        If ``out`` holds other results.

    Examples
    --------
    >>> import pandas as pd
    >>> from advcli.results import from_frame
    >>> table = pd.DataFrame({"dataset": ["iris", "wine"], "forest": [0.95, 0.97], "tree": [0.93, 0.91]})
    >>> folder = from_frame(table, "results/theirs", metric="accuracy")
    >>> folder.runs()[["dataset", "method", "metric", "value"]].values.tolist()[:2]
    [['iris', 'forest', 'accuracy', 0.95], ['iris', 'tree', 'accuracy', 0.93]]
    """
    keys: dict[str, Any] = {"dataset": dataset, "method": method, "split": split, "item": item, "metric": metric, "value": value}
    keys |= {"n_train": n_train, "n_test": n_test}
    table = columns_of(frame)
    return read_scores(table, keys, direction=direction, percent=percent, incomplete=incomplete, name=name).write(expanded(out))


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a frame by their names as plain values; `ConfigError` for what has no columns, or two of one name."""
    frame = collected(frame)
    if not hasattr(frame, "columns"):
        raise ConfigError(f"{type(frame).__name__} has no columns; give a DataFrame")
    names = [str(name).strip() for name in frame.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"the table has {names.count(twice)} columns {twice!r}; rename them")
    parts = [frame[column] for column in frame.columns]
    return {name: part.tolist() if hasattr(part, "tolist") else part.to_list() for name, part in zip(names, parts, strict=True)}


def read_scores(
    table: Mapping[str, Sequence[Any]],
    keys: Mapping[str, Any],
    *,
    direction: str | None = None,
    percent: bool = False,
    incomplete: str | None = None,
    name: str = "table",
    places: Sequence[str] | None = None,
    source: Mapping[str, Any] | None = None,
) -> Imported:
    """Return the scores of a table of columns after all checks; keys as of `from_frame`, ``places`` are words for its rows."""
    for key, chosen, known in (("direction", direction, ("higher", "lower")), ("incomplete", incomplete, INCOMPLETE)):
        if chosen is not None and chosen not in known:
            raise UnknownNameError(f"{key}={chosen} is not valid; {nearest(chosen, known)}")
    n_rows = max((len(column) for column in table.values()), default=0)
    if not n_rows:
        raise DataError("the table has no rows with scores")
    found = layout(table, {**keys, "direction": direction}, name)
    where = places or [f"row {number}" for number in range(1, n_rows + 1)]
    scores = _scores(table, found, where, percent)
    if not scores:
        raise DataError("the table has no rows with scores")
    _refuse_twice(scores, where)
    higher = _directions(list(dict.fromkeys(score.metric for score in scores)), direction)
    _refuse_beyond(scores, where)
    scores, left_out = _complete(scores, incomplete, found.kind)
    words = ", ".join(f"{metric} ({'higher' if better else 'lower'} is better)" for metric, better in higher.items())
    said = [*found.said, f"metric {words}", *left_out]
    return Imported(scores, found.kind, higher, said, incomplete == "mark", source or {})


def _scores(table: Mapping[str, Sequence[Any]], found: Layout, where: Sequence[str], percent: bool) -> list[Score]:
    """Return all scores; a row without any entry is passed over, and so is an empty cell of a wide table."""
    scores = []
    for row, place in enumerate(where):
        if all(blank(column[row]) for column in table.values()):
            continue
        names = {role: _name(table[column][row], column, place) for role, column in found.named.items()}
        units = [_name(table[column][row], column, place) for column in found.unit]
        sizes = {size: _size(table, of, row, place) for size, of in found.sizes.items()}
        for column, role, own in found.values:
            raw = table[column][row]
            if role and (blank(raw) or text_of(raw).lower() in _MISSING):
                continue
            called = {**names, **found.fixed, **({role: own} if role else {})}
            if called["dataset"].lower() in ("average", "avg"):
                raise DataError(f"{place}: {called['dataset']!r} is not a data set; leave out the row")
            called["metric"] = metric_name(called["metric"])
            number = _number(raw, column, place, percent and is_share(called["metric"]))
            scores.append(Score(called["dataset"], called["method"], "/".join(units), called["metric"], number, row=row, **sizes))
    return scores


def _name(raw: Any, column: str, place: str) -> str:
    if blank(raw):
        raise DataError(f"{place}: {column} is empty; fill it, or leave out the row")
    return text_of(raw)


def _size(table: Mapping[str, Sequence[Any]], of: str | int | None, row: int, place: str) -> int | None:
    """Return the rows of a part of a split, from its column or as one number for all."""
    if of is None or isinstance(of, int):
        return of
    number = _number(table[of][row], of, place, percent=False)
    if number < 1 or not number.is_integer():
        raise DataError(f"{place}: {of} = {text_of(table[of][row])} is not a number of rows; give whole numbers from 1")
    return int(number)


def _number(raw: Any, column: str, place: str, percent: bool) -> float:
    """Return a value as a number with the bits that its text means."""
    text = text_of(raw)
    if blank(raw) or text.lower() in _MISSING:
        raise DataError(f"{place}: {column} has no value ({text or 'empty'}); leave out the row, and choose incomplete= for the gap")
    if text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    try:
        if "_" in text:
            raise ValueError
        number = float(raw) if isinstance(raw, int | float) else float(text.removesuffix("%").rstrip())
        if math.isfinite(number) and (percent or text.endswith("%")):
            number = float(Decimal(text.removesuffix("%").rstrip()) / 100)
    except (ValueError, InvalidOperation, OverflowError):
        comma = ", with a decimal point" if re.fullmatch(r"-?\d*,\d+%?", text) else ""
        raise DataError(f"{place}: {column} = {text!r} is not a number; write numbers alone{comma}") from None
    if not math.isfinite(number):
        raise DataError(f"{place}: {column} = {text} is not finite; leave out the row, and choose incomplete= for the gap")
    return number


def _refuse_twice(scores: Sequence[Score], where: Sequence[str]) -> None:
    first: dict[tuple[str, str, str, str], Score] = {}
    for score in scores:
        other = first.setdefault(score.key, score)
        if other is not score:
            unit = f", {score.unit}" if score.unit else ""
            what = f"{score.dataset}, {score.method}{unit}, {score.metric}"
            remedy = "remove one, or name the column that tells them apart (split= or item=)"
            raise DataError(f"{where[other.row]} and {where[score.row]} are both of {what}; {remedy}")


def _directions(metrics: Sequence[str], given: str | None) -> dict[str, bool]:
    """Return whether higher values are better, of metrics that are not ours first as the key says."""
    known = {metric: known_direction(metric) for metric in metrics}
    unknown = [metric for metric, higher in known.items() if higher is None]
    if unknown and given is None:
        raise ConfigError(f"it is not known whether higher values of {unknown[0]} are better; give direction=higher or direction=lower")
    ours = [metric for metric in metrics if metric in metric_names()]
    against = [metric for metric in ours if given is not None and known[metric] != (given == "higher")]
    if against and not unknown:
        raise ConfigError(f"direction={given}: of {against[0]} the other is better; leave direction out")
    return {
        metric: bool(higher) if given is None or metric in ours or (unknown and higher is not None) else given == "higher"
        for metric, higher in known.items()
    }


def _refuse_beyond(scores: Sequence[Score], where: Sequence[str]) -> None:
    """Refuse a share that is none: of a metric of ours that tables show in percent."""
    for score in scores:
        if meaning(score.metric).percent and not 0.0 <= score.value <= 1.0:
            remedy = "percent=true divides percentages by 100" if 1.0 < score.value <= 100.0 else "give shares"
            raise DataError(f"{where[score.row]}: {score.metric} = {score.value:g} is not a share between 0 and 1; {remedy}")


def _complete(scores: Sequence[Score], incomplete: str | None, kind: str) -> tuple[list[Score], list[str]]:
    """Return the scores of a table without gaps, or as ``incomplete`` says, and what was left out in words."""
    gaps = _gaps(scores, kind)
    if not gaps or incomplete == "mark":
        return [*scores], [f"gaps are marked ({len(gaps)}): {gaps[0][2]}"] if gaps else []
    if incomplete is None:
        others = len(gaps) - 1
        more = f" (and {others} more gap{'' if others == 1 else 's'})" if others else ""
        raise DataError(f"the table is incomplete: {gaps[0][2]}{more}; choose incomplete=drop_datasets, drop_methods or mark")
    at, what = (0, "dataset") if incomplete == "drop_datasets" else (1, "method")
    dropped = list(dict.fromkeys(gap[at] for gap in gaps))
    kept = [score for score in scores if getattr(score, what) not in dropped]
    if not kept:
        raise DataError(f"incomplete={incomplete} leaves nothing: every {what} has a gap, such as: {gaps[0][2]}; choose another one")
    return kept, [f"left out as incomplete: {', '.join(dropped)}"]


def _gaps(scores: Iterable[Score], kind: str) -> list[tuple[str, str, str]]:
    """Return (data set, method, words) for every method that lacks something which another method has of a metric on a data set."""
    units: dict[tuple[str, str], dict[str, set[str]]] = {}
    methods: dict[str, None] = {}
    for score in scores:
        methods[score.method] = None
        units.setdefault((score.dataset, score.metric), {}).setdefault(score.method, set()).add(score.unit)
    gaps = []
    for (dataset, metric), present in units.items():
        wanted = set().union(*present.values())
        for method in methods:
            lacking = sorted(wanted - present.get(method, set()), key=_natural)
            if lacking:
                more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
                of = f", {kind} {lacking[0]}{more}" if method in present else ""
                gaps.append((dataset, method, f"{method} has no {metric} on {dataset}{of}"))
    return gaps


def _natural(text: str) -> list[tuple[int, float, str]]:
    """Return what sorts texts with numbers in them as people do."""
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in re.split(r"(\d+)", text) if part]
