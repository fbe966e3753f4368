"""Regression check of benchmark numbers: rows against a baseline.

A baseline is a CSV file with one line per entry (a metric of a method on a data set): mean, sample standard deviation, number of splits,
tolerance, seed, sizes, passes and seconds of a fit, a fingerprint of the splits and the values of the splits. It is meant to be read,
and its tolerances to be edited, by people.

- The same splits: the values are compared split by split. Every fit is determined by its configuration, so a value that differs by more
  than rounding has moved, whatever a test over the splits says; the paired test's p-value stands beside it.
- More or fewer splits of the same kind: the first ones, which both have, are compared as above.
- Other splits (another seed or protocol, other data): two one-sided tests; an entry counts as unchanged when they show that the
  means differ by less than the tolerance.
- Versions, processor and configuration of the cells stand beside the numbers: what differs is said first. What was made by other
  versions than the installed ones is stale, not unchanged.
- Passes or seconds of more than `COST_FACTOR` times the baseline's are warnings: they depend on the machine.

Nothing is written into the folder that is checked; its rows are those of the cell files.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import ConfigError, ResultsError, nearest
from ..files import write_text
from ..metrics import meaning
from ..records import ResultsFolder
from ..rows import canonical_json, format_value
from ..statistics import TESTS, equivalence, paired_test
from .document import counted
from .makers import MADE_COLUMNS, differences, made_texts, said_first
from .summary import blocks, with_unique_methods

COST_COLUMNS = ("passes", "fit_seconds", "predict_seconds")
"""Columns of a baseline that say what a fit cost over the splits: the mean of the passes, the medians of the seconds. They may be empty."""

BASELINE_COLUMNS = (
    "dataset",
    "method",
    "metric",
    "mean",
    "std",
    "n",
    "tolerance",
    "seed",
    "n_train",
    "n_test",
    *COST_COLUMNS,
    *MADE_COLUMNS,
    "splits",
    "values",
)
"""Columns of a baseline.

``splits`` is a fingerprint of the splits; ``values`` are the values of the splits in their order, counts as fractions (``2/45``).
An empty ``values`` leaves the entry to the tolerance.
"""

ALPHA = 0.01
"""Default level of the equivalence test: a check tests many entries, and a false alarm costs somebody's time."""

TEST = "corrected_ttest"
"""Default paired test, a name in `advcli.statistics.TESTS`."""

COST_FACTOR = 3.0
"""Passes or seconds of more than this multiple of the baseline's are a warning."""

SECONDS_FLOOR = 0.02
"""Medians of seconds up to this one are no warning: they measure what else the machine does."""

STATUSES = ("unchanged", "moved", "missing", "new", "stale")

_DIGITS = {"mean": 6, "std": 6, "passes": 4, "fit_seconds": 3, "predict_seconds": 3}  # significant ones of a baseline's numbers
_NOISE = 1e-9  # relative differences up to this are rounding, on other processors for example


@dataclass(frozen=True)
class Change:
    """What became of one entry.

    Parameters
    ----------
    dataset, method, metric : str
        The entry.
    status : {"unchanged", "moved", "missing", "new", "stale"}
        ``missing``: in the baseline, but not in the rows, or without any result there. ``stale``: unchanged, but other versions than the
        installed ones made it.
    old, new : float
        Means; nan for what is not there.
    old_std, new_std : float
        Sample standard deviations; nan for what is not there.
    p_value : float
        Of the paired test (for information: how unlikely such differences are if nothing but chance made them) or of the equivalence
        test (small: unchanged); nan where no test was possible.
    margin : float
        The tolerance of the entry.
    test : str
        ``identical``, ``rounding`` or ``paired`` (moved) on the same splits; on others ``equivalence``, or ``margin`` where only the
        means can be compared (a single split); empty for missing and new entries.
    reason : str
        Why the entry counts as moved or missing; of an unchanged one, on which splits alone.
    differs : tuple of str
        What of the versions, the processor and the configuration differs from the baseline's.
    stale : str
        How the versions that made it differ from the installed ones; empty where they do not, or are not known.
    costs : tuple of str
        What became more than `COST_FACTOR` times as expensive as in the baseline.
    seconds : float
        Of its fits and predictions, as far as rows tell.
    """

    dataset: str
    method: str
    metric: str
    status: str
    old: float
    new: float
    old_std: float = math.nan
    new_std: float = math.nan
    p_value: float = math.nan
    margin: float = math.nan
    test: str = ""
    reason: str = ""
    costs: tuple[str, ...] = ()
    seconds: float = 0.0
    differs: tuple[str, ...] = ()
    stale: str = ""

    @property
    def failed(self) -> bool:
        """Whether the entry fails the check: moved, missing or stale."""
        return self.status in ("moved", "missing", "stale")

    @property
    def better(self) -> bool | None:
        """Whether the new mean is the better one; None if they are equal or one is not there."""
        difference = self.new - self.old
        return None if not difference or math.isnan(difference) else (difference > 0) == meaning(self.metric).higher_is_better

    def line(self) -> str:
        """Return the change as one line: entry, by how much, from what to what, the reason, p, the margin where it decides."""
        text = f"{self.status}: {self.dataset}, {self.method}, {self.metric}"
        if self.status == "missing":
            return f"{text}: was {_shown(self.metric, self.old, self.old_std)}, now there is nothing: {self.reason}"
        if self.status == "new":
            return f"{text}: {_shown(self.metric, self.new, self.new_std)}, not in the baseline"
        if self.status == "stale":
            return f"{text}: {_shown(self.metric, self.new, self.new_std)}, made by {self.stale}"
        if self.test in _SAME:
            return f"{text}: {_shown(self.metric, self.new, self.new_std)}, {_SAME[self.test]}" + (
                f" of {self.reason}" if self.reason else ""
            )
        was, now = _shown(self.metric, self.old, self.old_std), _shown(self.metric, self.new, self.new_std)
        side = {True: " (better)", False: " (worse)", None: ""}[self.better]
        parts = [f"{text}: {self._moved()}, from {was} to {now}{side}"]
        parts += [self.reason] if self.reason else []
        parts += [f"p = {self.p_value:.2g} by the {self.test} test"] if not math.isnan(self.p_value) else []
        parts += [f"margin {_amount(self.metric, self.margin)}"] if self.test in ("equivalence", "margin") else []
        return "; ".join(parts)

    def _moved(self) -> str:
        difference = self.new - self.old
        if abs(difference) <= _NOISE * max(abs(self.old), abs(self.new)):
            return "mean unchanged"
        return f"{'rose' if difference > 0 else 'fell'} by {_amount(self.metric, abs(difference))}"


_SAME = {"identical": "the same on every split", "rounding": "the same on every split but for rounding"}


def _amount(metric: str, difference: float) -> str:
    """Return a difference of a metric in words."""
    if not meaning(metric).percent:
        return f"{difference:.3g}"
    text = f"{100.0 * difference:.2f}" if 100.0 * difference >= 0.01 else f"{100.0 * difference:.2g}"
    return f"{text} percentage points"


def _shown(metric: str, mean: float, std: float) -> str:
    """Return mean and deviation of the metric itself: the error as an error, for the line names it."""
    percent = meaning(metric).percent
    factor, digits = (100.0, 2) if percent else (1.0, 4)
    spread = "-" if math.isnan(std) else f"{factor * std:.{digits}f}"
    return f"{factor * mean:.{digits}f} ({spread}){' %' if percent else ''}"


# ------------------------------------------------------------------------------------------------------------------ the baseline


def split_fingerprints(folder: ResultsFolder, cells: Sequence[str], n_splits: int | None = None) -> dict[str, str]:
    """Return for every cell key what its splits depend on, in one word.

    That is the seed, the content of the data, what corrupts its labels, and the rule, number and sizes of splits. With `n_splits` it is
    the word of a cell of so many splits that is the same otherwise: its splits are the first of any larger number.

    Cells that the folder has no file of (rows alone, failed cells) are left out.
    """
    found: dict[str, str] = {}
    for key in dict.fromkeys(cells):
        about = (folder.read_cell(key) or {}).get("about", {})
        cell = about.get("cell", {})
        if not about.get("dataset_sha256") or "protocol" not in cell:
            continue
        rule = {name: cell["protocol"].get(name) for name in ("splits", "train_size", "n_splits")}
        content = {
            "dataset": about.get("dataset"),
            "sha256": about["dataset_sha256"],
            "seed": cell.get("seed"),
            "sizes": cell.get("dataset", {}).get("sizes"),
            "noise": cell.get("noise"),
            **rule,
        }
        if n_splits is not None:
            content["n_splits"] = n_splits
        found[key] = _word(content)
    return found


def _word(content: Any) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:12]


Made = Mapping[str, tuple[str, str, str]]
"""What `makers.made_texts` returns."""


@dataclass(frozen=True, eq=False)
class _CheckedEntry:
    """A metric of a cell as the check sees it."""

    dataset: str
    method: str
    metric: str
    mean: float
    std: float
    n: int
    seed: int
    n_train: float
    n_test: float
    splits: str
    values: NDArray[np.float64]
    sizes: tuple[int, ...] = ()
    passes: float = math.nan
    fit_seconds: float = math.nan
    predict_seconds: float = math.nan
    tolerance: float = math.nan
    failed: int = 0
    error: str = ""
    cell: str = ""
    made_by: str = ""
    config: str = ""
    stale: str = ""

    @property
    def name(self) -> tuple[str, str, str]:
        return self.dataset, self.method, self.metric

    @property
    def seconds(self) -> float:
        """Seconds of all fits and predictions, as many times the medians."""
        return self.n * sum(value for value in (self.fit_seconds, self.predict_seconds) if not math.isnan(value))

    def first(self, n: int) -> _CheckedEntry:
        """Return the entry on its first n splits, of which it has as many or more."""
        values = self.values[:n]
        mean = float(values.mean()) if n else math.nan
        return replace(self, values=values, sizes=self.sizes[:n], n=n, mean=mean, std=float(values.std(ddof=1)) if n > 1 else math.nan)


def _entries(runs: pd.DataFrame, splits: Mapping[str, str] | None, made: Made | None = None) -> list[_CheckedEntry]:
    """Return the entries of rows, those without any result included."""
    runs = with_unique_methods(runs)
    metrics = list(dict.fromkeys(name for name in runs["metric"] if name)) or [""]
    found = []
    for metric in metrics:
        for dataset, block in blocks(runs, metric):
            for method, rows in block.groupby("method", sort=True):
                good = rows[(rows["status"] != "failed") & rows["value"].notna()].sort_values("split")
                values = good["value"].to_numpy(dtype=float)
                seed = int(rows["seed"].iloc[0])
                sizes = list(zip(*(good[name].astype(int).tolist() for name in ("split", "n_train", "n_test")), strict=True))
                found.append(
                    _CheckedEntry(
                        dataset=dataset,
                        method=str(method),
                        metric=metric,
                        mean=float(values.mean()) if len(values) else math.nan,
                        std=float(values.std(ddof=1)) if len(values) > 1 else math.nan,
                        n=len(values),
                        seed=seed,
                        n_train=float(good["n_train"].mean()) if len(good) else math.nan,
                        n_test=float(good["n_test"].mean()) if len(good) else math.nan,
                        # without the cell's own file: what rows tell of the splits
                        splits=(splits or {}).get(str(rows["cell"].iloc[0])) or _word([dataset, seed, sizes]),
                        values=values,
                        sizes=tuple(size[2] for size in sizes),
                        # passes are counted and one fit that runs away shows in their mean; the clock has outliers of its own
                        passes=_known(good, "passes", np.mean),
                        fit_seconds=_known(good, "fit_seconds", np.median),
                        predict_seconds=_known(good, "predict_seconds", np.median),
                        failed=len(rows) - len(good),
                        error=next((str(error) for error in rows["error"] if error), "") if "error" in rows else "",
                        cell=str(rows["cell"].iloc[0]),
                    )
                )
    if made is not None:
        found = [replace(each, made_by=texts[0], config=texts[1], stale=texts[2]) for each in found for texts in [made[each.cell]]]
    return sorted(found, key=lambda entry: entry.name)


def _known(rows: pd.DataFrame, column: str, reduce: Callable[[Any], Any]) -> float:
    """Return the mean or median of what a column has; nan if it has nothing."""
    values = rows[column].to_numpy(dtype=float, na_value=np.nan) if column in rows else np.empty(0)
    values = values[~np.isnan(values)]
    return float(reduce(values)) if len(values) else math.nan


def default_tolerance(metric: str, mean: float, std: float, n: int, n_test: float) -> float:
    """Return the margin within which an entry that did not change is shown equivalent on fresh splits with probability 0.997.

    (t + 3) std sqrt(2/n) with t the quantile 1 - `ALPHA` of Student's distribution with 2n - 2 degrees of freedom: the two
    one-sided tests spend t standard errors, the difference of two draws of n splits stays below three. At least one row of a test
    part for counts, one percent of the mean for other metrics.
    """
    from scipy.stats import t as student

    floor = 1.0 / n_test if meaning(metric).is_count and n_test > 0 else 0.01 * abs(mean)
    if n < 2 or math.isnan(std):
        return floor
    return max(floor, (float(student.ppf(1 - ALPHA, 2 * n - 2)) + 3.0) * std * math.sqrt(2.0 / n))


def make_baseline(
    runs: pd.DataFrame,
    *,
    splits: Mapping[str, str] | None = None,
    tolerance: float | None = None,
    previous: pd.DataFrame | None = None,
    made: Made | None = None,
) -> pd.DataFrame:
    """Return the baseline of rows.

    Parameters
    ----------
    runs : DataFrame
        Rows of runs.csv.
    splits : mapping, optional
        From `split_fingerprints`.
    tolerance : float, optional
        For every entry; default: `default_tolerance` of each.
    previous : DataFrame, optional
        An older baseline (`read_baseline`), whose tolerances are kept.
    made : mapping, optional
        Who made the cells (`makers.made_texts`).

    Returns
    -------
    DataFrame
        Columns `BASELINE_COLUMNS`. Entries with a failed split have no place in a baseline; ``attrs["left_out"]`` names them.

    Raises
    ------
    ResultsError
        If no cell is complete.
    ConfigError
        For a negative tolerance.
    """
    if tolerance is not None and not tolerance >= 0:
        raise ConfigError(f"the tolerance of a baseline must be at least 0, got {tolerance}")
    kept: dict[tuple[str, str, str], float] = {}
    if previous is not None:
        kept = {(row["dataset"], row["method"], row["metric"]): row["tolerance"] for row in previous.to_dict("records")}
    entries = _entries(runs, splits, made)
    whole = [entry for entry in entries if entry.n and not entry.failed]
    if not whole:
        raise ResultsError("no complete cell to make a baseline from; run the experiment again")
    lines = []
    for entry in whole:
        usual = tolerance if tolerance is not None else default_tolerance(entry.metric, entry.mean, entry.std, entry.n, entry.n_test)
        texts = [_value_text(value, size) for value, size in zip(entry.values.tolist(), entry.sizes, strict=True)]
        lines.append(
            {
                **{column: getattr(entry, column) for column in BASELINE_COLUMNS},
                **{column: float(f"{getattr(entry, column):.{digits}g}") for column, digits in _DIGITS.items()},
                "tolerance": kept.get(entry.name, _rounded_up(usual)),
                "values": " ".join(texts),
            }
        )
    baseline = pd.DataFrame(lines, columns=list(BASELINE_COLUMNS))
    baseline.attrs["left_out"] = [", ".join(entry.name) for entry in entries if entry not in whole]
    return baseline


def _rounded_up(value: float) -> float:
    """Return three significant digits, not below the value: rounding must not make a margin smaller than it was meant."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    rounded = float(f"{value:.3g}")
    return rounded if rounded >= value else float(f"{rounded + step:.3g}")


def _value_text(value: float, n_test: int) -> str:
    """Return the shortest text that gives the value back exactly: a fraction of the test rows where it is one."""
    count = round(value * n_test, 6)
    short = f"{count:g}/{n_test}"
    return short if n_test and float(f"{count:g}") / n_test == value else format_value(float(value))


def _value_of(text: str) -> float:
    numerator, bar, denominator = text.partition("/")
    return float(numerator) / float(denominator) if bar else float(numerator)


def write_baseline(path: Path, baseline: pd.DataFrame) -> None:
    """Write a baseline atomically.

    Raises
    ------
    ResultsError
        If the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(BASELINE_COLUMNS)
    for row in baseline[list(BASELINE_COLUMNS)].itertuples(index=False):
        fields = [value.item() if hasattr(value, "item") else value for value in row]
        whole = [int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value for value in fields]
        writer.writerow(["" if value != value else format_value(value) for value in whole])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot create {path.parent}: {error.strerror}; choose another file") from error
    write_text(path, text.getvalue(), "choose another file")


def read_baseline(path: Path) -> pd.DataFrame:
    """Read a baseline.

    A baseline of an older version has none of `COST_COLUMNS` or `MADE_COLUMNS`: they are empty then, and ``attrs["without"]`` says in words
    what it lacks.

    Raises
    ------
    ResultsError
        If the file is missing or is no baseline; the line is named.
    """
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise ResultsError(f"no baseline {path}; write one with --update") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"cannot read the baseline {path}: {' '.join(str(error).split())}") from error
    missing = [column for column in BASELINE_COLUMNS if column not in frame and column not in (*COST_COLUMNS, *MADE_COLUMNS)]
    if missing:
        raise ResultsError(f"{path} is no baseline: it has no column {missing[0]!r}; write one with --update")
    lacking = {"passes and seconds": COST_COLUMNS, "versions and configuration": MADE_COLUMNS}
    frame.attrs["without"] = ", ".join(what for what, columns in lacking.items() if not any(column in frame for column in columns))
    for column in (*COST_COLUMNS, *MADE_COLUMNS):
        if column not in frame:
            frame[column] = ""
    for column in ("mean", "std", "tolerance", "n", "seed", "n_train", "n_test", *COST_COLUMNS):
        numbers = pd.to_numeric(frame[column].replace("", "nan"), errors="coerce").astype(float)
        bad = numbers.isna() & ~frame[column].str.lower().isin(("", "nan"))
        if column not in ("std", *COST_COLUMNS):
            bad |= ~np.isfinite(numbers)
        if column in COST_COLUMNS:
            bad |= np.isinf(numbers)
        if column == "tolerance" or column in COST_COLUMNS:
            bad |= numbers < 0
        if column == "n":
            bad |= (numbers < 1) | (numbers % 1 != 0)
        if bad.any():
            at = int(np.flatnonzero(bad.to_numpy())[0])
            raise ResultsError(f"{path}, line {at + 2}: {column} = {frame[column].iloc[at]!r} is not valid")
        frame[column] = numbers.astype(int) if column in ("n", "seed") else numbers
    for at, row in enumerate(frame.to_dict("records")):
        try:
            values = [_value_of(text) for text in row["values"].split()]
        except (ValueError, ZeroDivisionError):
            raise ResultsError(f"{path}, line {at + 2}: the values of the splits are not numbers") from None
        if values and (len(values) != row["n"] or not math.isclose(float(np.mean(values)), row["mean"], rel_tol=1e-4, abs_tol=1e-9)):
            raise ResultsError(f"{path}, line {at + 2}: the values of the splits do not fit n and mean; empty them or write a new baseline")
    twice = frame.duplicated(["dataset", "method", "metric"])
    if twice.any():
        raise ResultsError(f"{path}, line {int(np.flatnonzero(twice.to_numpy())[0]) + 2}: the entry stands there twice")
    return frame


# --------------------------------------------------------------------------------------------------------------------- the check


def compare(
    runs: pd.DataFrame,
    baseline: pd.DataFrame,
    *,
    splits: Mapping[str, str] | None = None,
    shorter: Callable[[str, int], str | None] | None = None,
    test: str = TEST,
    alpha: float = ALPHA,
    made: Made | None = None,
) -> list[Change]:
    """Compare rows with a baseline.

    Parameters
    ----------
    runs : DataFrame
        Rows of runs.csv (`advcli.records.ResultsFolder.runs`).
    baseline : DataFrame
        From `read_baseline` or `make_baseline`.
    splits : mapping, optional
        From `split_fingerprints`. Without it the fingerprint tells seed, sizes and number of the splits only, and baselines made
        with it are compared as if the splits were others.
    shorter : callable, optional
        The fingerprint of a cell key with another number of splits; without it such entries are compared as if the splits were others.
    test : str
        The paired test whose p-value stands beside an entry that moved, a name in `advcli.statistics.TESTS`.
    alpha : float
        Level of the equivalence test.
    made : mapping, optional
        Who made the cells (`makers.made_texts`).

    Returns
    -------
    list of Change
        One per entry of the baseline or the rows, sorted by data set, method and metric. Entries of the rows alone that have no
        result are left out.

    Raises
    ------
    ConfigError
        For an unknown test or a level outside (0, 1).
    """
    if test not in TESTS:
        raise ConfigError(f"no test {test!r}; {nearest(test, TESTS)}")
    if not 0 < alpha < 1:
        raise ConfigError(f"the level of the check must lie between 0 and 1, got {alpha}")
    old_entries = {entry.name: entry for entry in map(_from_baseline, baseline.to_dict("records"))}
    new_entries = {entry.name: entry for entry in _entries(runs, splits, made)}
    changes = []
    for name in sorted({*old_entries, *new_entries}):
        old, new = old_entries.get(name), new_entries.get(name)
        if old is None:
            if new is not None and new.n:
                changes.append(Change(*name, "new", math.nan, new.mean, new_std=new.std, seconds=new.seconds))
        elif new is None or not new.n:
            reason = "not in the results" if new is None else f"failed: {new.error}" if new.error else "failed"
            changes.append(Change(*name, "missing", old.mean, math.nan, old_std=old.std, margin=old.tolerance, reason=reason))
        else:
            changes.append(_with_makers(_judge(old, new, shorter, test, alpha), old, new))
    return changes


def _with_makers(change: Change, old: _CheckedEntry, new: _CheckedEntry) -> Change:
    """Return what became of an entry with who made it: of what other versions made nothing is said to be unchanged."""
    differs = tuple(differences((old.made_by, old.config), (new.made_by, new.config)))
    status = "stale" if change.status == "unchanged" and new.stale else change.status
    return replace(change, status=status, differs=differs, stale=new.stale)


def _from_baseline(row: Mapping[Any, Any]) -> _CheckedEntry:
    values = np.array([_value_of(text) for text in str(row["values"]).split()], dtype=float)
    # the printed mean and deviation are rounded
    mean = float(values.mean()) if len(values) else float(row["mean"])
    std = float(values.std(ddof=1)) if len(values) > 1 else float(row["std"])
    return _CheckedEntry(**{**{column: row[column] for column in BASELINE_COLUMNS}, "mean": mean, "std": std, "values": values})


def _costs(old: _CheckedEntry, new: _CheckedEntry) -> tuple[str, ...]:
    """Return what became much more expensive, one clause each; what one side does not know is not compared."""
    found = []
    if new.passes > COST_FACTOR * old.passes:
        found.append(f"{new.passes:.4g} passes per fit, {old.passes:.4g} in the baseline")
    for what, before, now in (("fit", old.fit_seconds, new.fit_seconds), ("predict", old.predict_seconds, new.predict_seconds)):
        if now > COST_FACTOR * before and now > SECONDS_FLOOR:
            found.append(f"{now:.3g} s to {what}, {before:.3g} s in the baseline (medians over the splits)")
    return tuple(found)


def _judge(old: _CheckedEntry, new: _CheckedEntry, shorter: Callable[[str, int], str | None] | None, test: str, alpha: float) -> Change:
    costs = _costs(old, new)

    def change(status: str, p_value: float, how: str, reason: str = "") -> Change:
        return Change(*old.name, status, old.mean, new.mean, old.std, new.std, p_value, old.tolerance, how, reason, costs, new.seconds)

    if new.failed:
        return change("moved", math.nan, "paired", f"{new.failed} of {new.failed + new.n} splits failed: {new.error}")
    if old.splits == new.splits and len(old.values):
        return change(*_split_by_split(old, new, test))
    if _grown(old, new, shorter):
        common = min(new.n, old.n)
        where = f"the first {common} splits ({new.n} in the results, {old.n} in the baseline)"
        status, p_value, how, reason = _split_by_split(old.first(common), new.first(common), test)
        return change(status, p_value, how, f"{reason}, {where}" if reason else where)
    # rounding must not turn a difference of exactly the margin into a larger one
    beyond = abs(new.mean - old.mean) > old.tolerance + _NOISE * max(abs(old.mean), abs(new.mean))
    p_value = equivalence(new.mean, new.std, new.n, old.mean, old.std, old.n, old.tolerance).p_value
    if math.isnan(p_value):
        return change("moved" if beyond else "unchanged", p_value, "margin", "beyond the margin" if beyond else "")
    if p_value < alpha:
        return change("unchanged", p_value, "equivalence")
    return change("moved", p_value, "equivalence", "beyond the margin" if beyond else "equivalence within the margin is not shown")


def _grown(old: _CheckedEntry, new: _CheckedEntry, shorter: Callable[[str, int], str | None] | None) -> bool:
    """Return whether the entries differ in the number of splits alone, with a value for each of them."""
    if shorter is None or not len(old.values):
        return False
    return shorter(new.cell, old.n) == old.splits and shorter(new.cell, new.n) == new.splits


def _split_by_split(old: _CheckedEntry, new: _CheckedEntry, test: str) -> tuple[str, float, str, str]:
    """Return status, p-value, test and reason of an entry on the splits of its baseline."""
    if new.n != len(old.values):
        return "moved", math.nan, "paired", f"{new.n} splits, {len(old.values)} in the baseline"
    if np.array_equal(new.values, old.values):
        return "unchanged", 1.0, "identical", ""
    moved = ~np.isclose(new.values, old.values, rtol=_NOISE, atol=1e-15)
    if not moved.any():
        return "unchanged", 1.0, "rounding", ""
    first, second = new.values, old.values
    if meaning(old.metric).is_count:
        # each split by its own size; whole numbers, as rates break ties by rounding
        first, second = (np.round(values * np.array(new.sizes), 6) for values in (first, second))
    p_value = paired_test(test, first, second, new.n_train, new.n_test).p_value
    most = int(np.argmax(np.abs(first - second)))
    was, became = (_value_text(float(values[most]), new.sizes[most]) for values in (old.values, new.values))
    return "moved", p_value, "paired", f"{moved.sum()} of {new.n} splits differ, split {most + 1} the most: from {was} to {became}"


def check_folder(folder: ResultsFolder, baseline: Path, *, test: str = TEST, alpha: float = ALPHA) -> list[Change]:
    """Compare the cells of a results folder with a baseline file (see `compare`); the folder is read only.

    The rows are those of the cell files; `ResultsFolder.disagreement` tells whether runs.csv shows the same.
    """
    known = read_baseline(baseline)
    runs = folder.runs_of_cells()

    def shorter(cell: str, n_splits: int) -> str | None:
        return split_fingerprints(folder, [cell], n_splits).get(cell)

    cells = runs["cell"].tolist()
    facts: dict[str, Any] = {"splits": split_fingerprints(folder, cells), "made": made_texts(folder, cells)}
    return compare(runs, known, **facts, shorter=shorter, test=test, alpha=alpha)


def folder_baseline(folder: ResultsFolder, *, tolerance: float | None = None, previous: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the baseline of the cells of a results folder (see `make_baseline`); the folder is read only."""
    runs = folder.runs_of_cells()
    cells = runs["cell"].tolist()
    facts: dict[str, Any] = {"splits": split_fingerprints(folder, cells), "made": made_texts(folder, cells)}
    return make_baseline(runs, **facts, tolerance=tolerance, previous=previous)


def cost_warnings(changes: Sequence[Change]) -> list[str]:
    """Return one line for everything that became more than `COST_FACTOR` times as expensive; metrics of one fit say it once."""
    return list(dict.fromkeys(f"{change.dataset}, {change.method}: {cost}" for change in changes for cost in change.costs))


def changes_text(changes: Sequence[Change]) -> str:
    """Return what differs from the baseline's versions and configuration, one line per entry that is neither unchanged nor stale, one that
    counts all entries, and one that counts those on other splits.
    """
    both = [change for change in changes if change.status not in ("missing", "new")]
    lines = said_first([change.differs for change in both], [change.stale for change in both])
    lines += [change.line() for change in changes if change.status not in ("unchanged", "stale")]
    numbers = {status: sum(change.status == status for change in changes) for status in STATUSES}
    counts = [f"{number} {status}" for status, number in numbers.items() if number or status != "stale"]
    lines.append(f"{counted(len(changes), 'entry', 'entries')}: {', '.join(counts)}")
    others = sum(change.test in ("equivalence", "margin") for change in changes)
    if others:
        lines.append(f"{counted(others, 'entry', 'entries')} without the baseline's splits: means compared within the margin")
    return "\n".join(lines) + "\n"


def junit_xml(changes: Sequence[Change], name: str = "advcli check", *, finding: str = "") -> str:
    """Return the check as JUnit XML: moved and missing entries are failures, new ones are skipped, warnings stand in ``system-err``.

    Parameters
    ----------
    changes : sequence of Change
        From `compare`.
    name : str
        Of the test suite.
    finding : str
        From `ResultsFolder.disagreement`: a failure if it is not empty.
    """
    cases = []
    if finding:
        case = _case("folder", "runs.csv")
        ET.SubElement(case, "failure", {"type": "disagreement", "message": _clean(finding)}).text = _clean(finding)
        cases.append(case)
    # the metrics of a cell share its fits
    alike = Counter((change.dataset, change.method) for change in changes)
    for change in changes:
        seconds = change.seconds / alike[change.dataset, change.method]
        case = _case(f"{change.dataset}.{change.metric}", change.method, seconds)
        line = _clean(change.line())
        if change.failed:
            ET.SubElement(case, "failure", {"type": change.status, "message": line}).text = line
        elif change.status == "new":
            ET.SubElement(case, "skipped", {"message": line})
        cases.append(case)
    return _suite(name, cases, "\n".join(cost_warnings(changes)))


def junit_error(error: str) -> str:
    """Return JUnit XML of a check that came to no verdict, stopped by ``error``: one test case that is an error."""
    case = _case("folder", "check")
    ET.SubElement(case, "error", {"type": "error", "message": _clean(error)}).text = _clean(error)
    return _suite("advcli check", [case])


def _case(where: str, name: str, seconds: float = 0.0) -> ET.Element:
    return ET.Element("testcase", {"classname": _clean(where), "name": _clean(name), "time": f"{seconds:.6f}"})


def _suite(name: str, cases: Sequence[ET.Element], said: str = "") -> str:
    count = {kind: str(sum(case.find(tag) is not None for case in cases)) for kind, tag in _OUTCOMES.items()}
    root = ET.Element("testsuites", {"tests": str(len(cases)), **count})
    spent = f"{sum(float(case.get('time', 0)) for case in cases):.6f}"
    suite = ET.SubElement(root, "testsuite", {"name": _clean(name), "tests": str(len(cases)), "time": spent, **count})
    suite.extend(cases)
    if said:
        ET.SubElement(suite, "system-err").text = _clean(said)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


_OUTCOMES = {"failures": "failure", "errors": "error", "skipped": "skipped"}  # attribute of a suite -> element of a case


def _clean(text: str) -> str:
    """Return text without the characters that XML 1.0 forbids even when escaped."""
    return "".join(
        character
        if character in "\t\n\r" or "\x20" <= character <= "\ud7ff" or "\ue000" <= character <= "\ufffd" or character > "\uffff"
        else "?"
        for character in text
    )
