"""From rows to one line per (data set, method, metric), with the marks of the chosen test."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..core.errors import ConfigError, ResultsError, UnknownNameError, nearest
from ..metrics import check_metric, declare, meaning
from ..results.tables import GROWING, PARTS, canonical_json, option_text
from ..statistics.across import row_ranks
from ..statistics.marks import DEFAULT, UNMARKED, Significance, mark_best
from ..statistics.marks import wins_ties_losses as wins_over_datasets
from ..statistics.tests import rank_biserial
from .across import MOST_PAIRED

SUMMARY_MEANINGS = {
    "dataset": "name of the data set",
    "method": "name of the method",
    "metric": "name of the metric",
    "mean": "mean of the metric over the splits with a value",
    "std": "their sample standard deviation (n - 1 in the denominator); empty for one split",
    "n_splits": "splits with a value",
    "best": "whether the mean is the best of its data set and metric",
    "p_value": "p-value of the test of `report.test` against the best method",
    "p_adjusted": "the same after the correction of `report.correction`",
    "bold": "whether the method is not significantly worse than the best",
    "failed": "splits without a value",
    "not_converged": "fits whose certified gap is above the tolerance",
    "worst_gap": "largest certified relative gap of the fits",
    "median": "median of the metric over the splits",
    "rank": "rank of the mean among the compared methods of the data set, 1 is the best; equal means share their rank",
    "effect_size": "matched-pairs rank-biserial correlation with the best method over the splits: 1 if worse on every split, -1 if better",
    "undefined": "failed splits whose fit exists and whose metric is not defined",
}
"""Columns of summary.csv with their meanings: one row per (data set, method, metric)."""

SUMMARY_COLUMNS = tuple(SUMMARY_MEANINGS)


UNCORRECTED = {"growing": "whose training parts grow from split to split", "same": "whose runs have the same test rows"}
"""Splits (`advcli.results.tables.PARTS`) to which the corrected resampled t-test does not apply, with the reason.

Its ratio of test to training rows stands for the correlation of splits that overlap at random."""

RESULTS, DRAWN, TOLD, RELATION = "results", "drawn", "told", "relation"
"""Columns that rows of results folders have beside their own (`advcli.reports.sources`).

The folder, where they are of several; a text that is equal where splits are; further options that tell cells of one method apart
(`told_apart`); where official parts are among them, what `PARTS` has of other rows.
"""


def in_order(names: pd.Series) -> list[str]:
    """Return the different names in a column: in the order of its categories, if it has such, else in alphabetical order."""
    present = {str(name) for name in names.unique()}
    if isinstance(names.dtype, pd.CategoricalDtype):
        return [str(name) for name in names.cat.categories if str(name) in present]
    return sorted(present)


def as_ordered(frame: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose data sets and methods are categories, in the order of the categories of the rows, if these have any."""
    return frame.astype({name: runs[name].dtype for name in ("dataset", "method") if isinstance(runs[name].dtype, pd.CategoricalDtype)})


def flat_options(value: Any, name: str = "") -> dict[str, Any]:
    """Return the options of nested groups by their dotted names, without the texts that explain them."""
    if not isinstance(value, Mapping):
        return {name: value}
    parts = [flat_options(item, f"{name}.{key}" if name else str(key)) for key, item in value.items() if key != "description"]
    return {key: item for part in parts for key, item in part.items()}


def told_apart(cells: pd.DataFrame, about: Callable[[str], Mapping[str, Any]]) -> dict[str, str]:
    """Return for each cell the options that differ between cells of its method whose rows say the same of them, written as ``options``.

    ``cells`` has a row for each cell, ``about`` gives what is known of a cell by its key. Cells that need none are left out. Where options
    are the same and the data differ, it is the start of their checksum.
    """
    further: dict[str, str] = {}
    head = [name for name in ("dataset", "options", "seed", RESULTS) if name in cells]
    for _, group in cells.groupby("method", sort=False, observed=True):
        alike = group[group.duplicated(head, keep=False)]
        if alike.empty:
            continue
        facts = {str(cell): about(str(cell)) for cell in group["cell"]}
        options = {cell: flat_options(fact.get("cell", {})) for cell, fact in facts.items()}
        keys: set[str] = set()
        for _, block in alike.groupby(head, sort=False, observed=True):
            sets = [options[str(cell)] for cell in block["cell"]]
            keys |= {key for part in sets for key in part if len({canonical_json(other.get(key)) for other in sets}) > 1}
        keys -= {f"protocol.{key}" for key in GROWING}
        for cell, chosen in options.items():
            words = {key: chosen[key] for key in sorted(keys) if key in chosen}
            if not keys and (content := facts[cell].get("dataset_sha256")):
                words = {"data": str(content)[:8]}
            further[cell] = "; ".join(f"{key}={option_text(value)}" for key, value in words.items())
    return further


def _tokens(row: Mapping[Any, Any]) -> list[str]:
    options, further = ([part for part in str(row[name]).split("; ") if part] for name in ("options", TOLD))
    return [*options, f"seed={row['seed']}", f"{RESULTS}={row[RESULTS]}", *further]


def with_unique_methods(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with method names that tell apart several cells of one method on one data set.

    The name gets those options, and the seed, in which the cells of the method differ, and the key's start if nothing else
    tells them apart: ``abstain linear [loss.alpha=0.3]``. Of several results folders the folder is one more of these options; the column
    `TOLD`, where there is one, has more.
    """
    runs = runs.copy()
    for column, default in (("cell", ""), ("options", ""), ("seed", 0)):
        if column not in runs:
            runs[column] = default
    cells = runs[["dataset", "method", "cell", "options", "seed"]].drop_duplicates("cell")
    for column in (RESULTS, TOLD):
        cells[column] = runs.loc[cells.index, column] if column in runs else ""
    renamed: dict[str, str] = {}
    for method, group in cells.groupby("method", sort=False, observed=True):
        if not group.duplicated("dataset").any():
            continue
        tokens = {str(row["cell"]): _tokens(row) for row in group.to_dict("records")}
        common = set.intersection(*(set(part) for part in tokens.values()))
        names = {cell: [token for token in part if token not in common] for cell, part in tokens.items()}
        labels = {cell: f"{method} [{', '.join(part)}]" if part else str(method) for cell, part in names.items()}
        seen = group.assign(label=group["cell"].map(labels))
        for cell in seen.loc[seen.duplicated(["dataset", "label"], keep=False), "cell"]:
            labels[cell] += f" #{cell[:6]}"
        renamed |= labels
    if renamed:
        runs["method"] = [renamed.get(cell, method) for cell, method in zip(runs["cell"], runs["method"], strict=True)]
    return runs


def primary_metric(runs: pd.DataFrame) -> str:
    """Return the metric to show: the first one of a cell, by which its search went, that all cells have, else the first in their lists
    that all have, else the most frequent first one; without any, raise `ResultsError`.
    """
    scored = runs[runs["metric"] != ""]
    if scored.empty:
        raise ResultsError("no cell has a result yet; see the column 'error' of runs.csv")
    key = ["dataset", "method"] + (["cell"] if "cell" in scored else [])
    firsts = scored.groupby(key, sort=False, observed=True)["metric"].first().value_counts()
    ordered = sorted(firsts.index, key=lambda metric: (-firsts[metric], metric))
    shared = set.intersection(*(set(part) for _, part in scored.groupby(key, sort=False, observed=True)["metric"]))
    listed = dict.fromkeys(scored["metric"])  # of each cell: the metric of its search, then as the protocol lists them
    return next((metric for metric in (*ordered, *listed) if metric in shared), ordered[0])


def summarise(runs: pd.DataFrame, significance: Significance = DEFAULT, metric: str | None = None) -> pd.DataFrame:
    """Summarise rows per data set, method and metric, and mark the best and those not significantly worse.

    Parameters
    ----------
    runs : DataFrame
        Rows of runs.csv (`advcli.results.folder.ResultsFolder.runs`).
    significance : Significance
        Test, level and correction of the marks.
    metric : str, optional
        Only this metric; default all.

    Returns
    -------
    DataFrame
        Columns `SUMMARY_COLUMNS`, sorted by metric, data set and method; ``std`` has n - 1 in the denominator; ``p_value`` is
        against the best and empty for the best itself. A method with a failed split is not compared. ``attrs["primary"]`` is
        the metric to show, ``attrs["significance"]`` how its marks were made, ``attrs["unpaired"]`` the data sets without any, since
        splits differ there, ``attrs["items"]`` those whose values are of items, ``attrs["uncorrected"]`` those to whose splits the
        corrected t-test does not apply, and why, and ``attrs["tests"]`` the test of each metric and data set where it is not the one of
        ``significance`` (`Significance.fitting`).

    Raises
    ------
    ConfigError
        For a metric that no row has.
    ResultsError
        If there are no rows.

    Examples
    --------
    >>> from advcli.evaluation import sweep
    >>> from advcli.reports import summarise
    >>> rows = sweep("dataset=iris loss=zero_one,cs hyper.C=1 protocol.n_splits=2", "results/two", workers=1, quiet=True)
    >>> sorted(summarise(rows)["method"].unique())
    ['cs linear', 'zero_one linear']
    """
    if runs.empty:
        raise ResultsError("no rows to summarise; run an experiment first")
    declare(runs)
    runs = with_unique_methods(runs)
    recorded = list(dict.fromkeys(name for name in runs["metric"] if name))
    if metric is not None and metric not in recorded:
        raise UnknownNameError(f"no rows with the metric {metric!r}; {nearest(metric, recorded)}")
    wanted = [metric] if metric is not None else recorded
    lines: list[dict[str, Any]] = []
    apart, exempt = unpaired(runs), uncorrected(runs)
    tests: dict[tuple[str, str], Significance] = {}
    # Cells that failed before their first split have no metric: they appear under every metric.
    for name in wanted or [""]:
        for dataset, block in blocks(runs, name):
            found = _samples(_by_method(block) if dataset not in apart else {}, of_items(block), dataset not in exempt)
            tests[name, dataset] = fitting = found.significance(significance)
            lines += _block(dataset, name, block, fitting, found)
    summary = pd.DataFrame(lines, columns=list(SUMMARY_COLUMNS))
    summary = as_ordered(summary, runs)
    summary = summary.sort_values(["metric", "dataset", "method"], kind="stable", ignore_index=True)
    several = set(tests.values())
    summary.attrs["significance"] = next(iter(several)) if len(several) == 1 else significance
    summary.attrs["tests"] = {key: fitting.test for key, fitting in tests.items() if fitting != significance}
    summary.attrs["unpaired"] = apart
    summary.attrs["items"] = [name for name, block in runs.groupby("dataset", observed=True) if of_items(block)]
    summary.attrs["uncorrected"] = exempt if significance.test == "corrected_ttest" else {}
    summary.attrs["primary"] = metric or (primary_metric(runs) if recorded else "")
    return summary


def unpaired(runs: pd.DataFrame) -> list[str]:
    """Return the data sets on which cells have different splits, or test parts of different size: nothing is tested there."""
    failed = runs.loc[runs["status"] == "failed", "cell"].unique()  # not compared, and their splits need not be known
    fits = runs[~runs["cell"].isin(failed)].drop_duplicates(["cell", "split"])
    # rows alone tell of their splits the seed
    drawn = fits.groupby("dataset", observed=True)[DRAWN if DRAWN in fits else "seed"].nunique()
    sizes = fits.groupby(["dataset", "split"], observed=True)["n_test"].nunique().groupby("dataset", observed=True).max()
    return sorted({str(name) for counts in (drawn, sizes) for name in counts.index[counts > 1]})


def uncorrected(runs: pd.DataFrame) -> dict[str, str]:
    """Return the data sets to whose splits the corrected test does not apply, and why; see `UNCORRECTED`."""
    column = RELATION if RELATION in runs else PARTS
    if column not in runs:
        return {}
    told = runs[runs[column].isin(list(UNCORRECTED))].drop_duplicates("dataset")
    return {str(row["dataset"]): UNCORRECTED[row[column]] for row in told.to_dict("records")}


def untested(summary: pd.DataFrame) -> list[str]:
    """Return the lines about data sets without tests, since splits differ there, and with another test than others; empty without any."""
    listed = ", ".join(summary.attrs.get("unpaired", ()))
    remedy = "report.methods=[...] chooses methods with the same splits"
    lines = [f"splits differ on {listed}, so that nothing is tested there; {remedy}"] if listed else []
    exempt = summary.attrs.get("uncorrected", {})
    for reason in dict.fromkeys(exempt.values()):
        names = ", ".join(name for name in exempt if exempt[name] == reason)
        lines.append(f"the corrected t-test does not apply to {names}, {reason}: the Wilcoxon signed-rank test is used there")
    return lines


def imported(rows: pd.DataFrame) -> pd.Series:
    """Return which rows are imported (`advcli.results.from_frame`): numbers of another program, which has no fits here."""
    column = "higher_is_better"
    return rows[column].notna() if column in rows else pd.Series(False, index=rows.index)


def of_items(rows: pd.DataFrame) -> bool:
    """Tell whether the values of imported rows are of items, of which the column ``split`` has the numbers."""
    return "item" in rows and bool((rows["item"].fillna("") != "").any())


@dataclass(frozen=True)
class Samples:
    """What the methods of one data set reached on the splits that all of them have; methods with a failed split are left out.

    Values are paired over the splits, and means per test row, as counts of parts of different size cannot be paired; ``n_train`` and
    ``n_test`` are mean rows in the parts of a split, nan where they are not known or splits do not overlap at random (`UNCORRECTED`).
    """

    values: dict[str, NDArray[np.float64]]
    n_train: float
    n_test: float
    items: bool = False

    def significance(self, wanted: Significance) -> Significance:
        """Return the significance by the test that these values allow; as it is without values."""
        return wanted.fitting(self.values, self.n_train, self.n_test, self.items) if self.values else wanted


@dataclass(frozen=True)
class _Splits:
    """The splits of one method on one data set that have a value, in order."""

    n_failed: int  # splits without a value
    n_undefined: int  # splits among them whose fit is there
    split: NDArray[np.float64]
    value: NDArray[np.float64]
    n_train: NDArray[np.float64]
    n_test: NDArray[np.float64]
    gap: NDArray[np.float64]
    late: NDArray[np.bool_]


def numbers(frame: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a column as numbers, nan where it or a value of it is missing."""
    if column not in frame:
        return np.full(len(frame), np.nan)
    return np.asarray(frame[column].to_numpy(dtype=float, na_value=np.nan), dtype=float)


def _by_method(block: pd.DataFrame) -> dict[str, _Splits]:
    """Return the splits of every method; arrays, as frames of twenty rows cost milliseconds each and sweeps have many."""

    method, status = block["method"].to_numpy(dtype=str), block["status"].to_numpy(dtype=str)
    columns = [numbers(block, name) for name in ("split", "value", "n_train", "n_test", "relative_gap")]
    # A method without a metric on some split is a failure of that split, whatever the reason.
    good, late = (status != "failed") & ~np.isnan(columns[1]), status == "not_converged"
    split = columns[0]
    order = np.lexsort((split, method))
    names, starts = np.unique(method[order], return_index=True)
    splits = {}
    for name, rows in zip(names.tolist(), np.split(order, starts[1:]), strict=True):
        valued = rows[good[rows]]
        undefined = int((status[rows] != "failed").sum()) - len(valued)
        splits[name] = _Splits(len(rows) - len(valued), undefined, *(values[valued] for values in (*columns, late)))
    return splits


_PAIRED = ("value", "n_train", "n_test")


def samples(runs: pd.DataFrame, metric: str) -> dict[str, Samples]:
    """Return the samples of every data set whose methods have the same splits."""
    apart, exempt = set(unpaired(runs)), uncorrected(runs)
    return {
        dataset: _samples(_by_method(block), of_items(block), dataset not in exempt)
        for dataset, block in blocks(runs, metric)
        if dataset not in apart
    }


def _samples(methods: Mapping[str, _Splits], items: bool = False, overlapping: bool = True) -> Samples:
    """Return the values of the methods without a failed split on their common splits; sizes only of splits that overlap at random."""
    whole = {name: splits for name, splits in methods.items() if not splits.n_failed and len(splits.split)}
    common = functools.reduce(np.intersect1d, [splits.split for splits in whole.values()]) if whole else np.empty(0)
    if not len(common):
        return Samples({}, math.nan, math.nan, items)
    shared = {name: np.isin(splits.split, common) for name, splits in whole.items()}
    values, n_train, n_test = ({name: getattr(splits, part)[shared[name]] for name, splits in whole.items()} for part in _PAIRED)
    train, test = (float(np.mean([*n.values()])) if overlapping else math.nan for n in (n_train, n_test))
    return Samples(values, train, test, items)


def blocks(runs: pd.DataFrame, metric: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each data set with its rows of a metric and the rows of cells that failed before their first split."""
    rows = runs[(runs["metric"] == metric) | (runs["metric"] == "")]
    for dataset, block in rows.groupby("dataset", sort=True, observed=True):
        yield str(dataset), block


def wins_ties_losses(runs: pd.DataFrame, metric: str, significance: Significance = DEFAULT) -> pd.DataFrame:
    """Count the data sets on which one method is significantly better than, not different from, or worse than another, by a metric.

    The columns are ``method``, ``other``, ``wins``, ``ties``, ``losses``, one row for every ordered pair of different methods; tests are
    not corrected for the number of pairs. A test that is undefined (a single split) counts as a tie; a pair without common data sets has
    zeros. No row where there are more than `MOST_PAIRED` methods.
    """
    declare(runs)
    runs = with_unique_methods(runs)
    methods = in_order(runs["method"])
    if len(methods) > MOST_PAIRED:
        return pd.DataFrame(columns=["method", "other", "wins", "ties", "losses"])
    higher, found = meaning(metric).higher_is_better, list(samples(runs, metric).values())
    counts: dict[tuple[str, str], tuple[int, int, int]] = {}
    for a, b in itertools.combinations(methods, 2):
        shared = [part for part in found if a in part.values and b in part.values]
        first, second = ([part.values[name] for part in shared] for name in (a, b))
        rows = {name: [getattr(part, name) for part in shared] for name in ("n_train", "n_test")}
        tests = [part.significance(significance) for part in shared]
        counts[a, b] = wins_over_datasets(first, second, tests, higher_is_better=higher, **rows)
        counts[b, a] = counts[a, b][::-1]
    lines = [(a, b, *counts[a, b]) for a in methods for b in methods if a != b]
    return pd.DataFrame(lines, columns=["method", "other", "wins", "ties", "losses"])


def _block(dataset: str, metric: str, block: pd.DataFrame, significance: Significance, found: Samples) -> list[dict[str, Any]]:
    higher = meaning(metric).higher_is_better
    methods = _by_method(block)
    marks = mark_best(found.values, significance, higher_is_better=higher, n_train=found.n_train, n_test=found.n_test)
    names = list(found.values)
    ranks = row_ranks([[found.values[name].mean() for name in names]], higher)[0].tolist() if names else []
    places = dict(zip(names, ranks, strict=True))
    best = next((name for name in names if marks[name].best), None)
    lines = []
    for method, splits in methods.items():
        values, gaps, mark = splits.value, splits.gap, marks.get(method, UNMARKED)
        compared = method in marks and best is not None and not mark.best
        effect = rank_biserial(found.values[method], found.values[str(best)]) if compared else math.nan
        lines.append(
            {
                "dataset": dataset,
                "method": method,
                "metric": metric,
                "mean": float(values.mean()) if len(values) else math.nan,
                "std": float(values.std(ddof=1)) if len(values) > 1 else math.nan,
                "n_splits": len(values),
                "failed": splits.n_failed,
                "undefined": splits.n_undefined,
                "not_converged": int(splits.late.sum()),
                "worst_gap": math.nan if np.isnan(gaps).all() else float(np.nanmax(gaps)),
                "median": float(np.median(values)) if len(values) else math.nan,
                "best": mark.best,
                "p_value": mark.p_value,
                "p_adjusted": mark.p_adjusted,
                "bold": mark.bold,
                "rank": places.get(method, math.nan),
                "effect_size": -effect if higher else effect,
            }
        )
    return lines


def check_primary(metric: str, protocol: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for a metric of tables that does not exist, or that a run by this protocol does not record."""
    check_metric(metric)
    # without protocol.metric the loss and the labels choose the first one
    if protocol["metric"] is not None and metric not in (recorded := [protocol["metric"], *protocol["metrics"]]):
        raise ConfigError(f"report.metric={metric} is not recorded; add it to protocol.metrics or choose one of {', '.join(recorded)}")
