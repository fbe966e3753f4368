"""A baseline: the fingerprints and the values that rows are compared with."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import ConfigError, ResultsError
from ...core.files import write_text
from ...metrics import meaning
from ...results.folder import ResultsFolder
from ...results.tables import canonical_json, format_value
from ..makers import MADE_COLUMNS, made_texts
from ..summary import blocks, with_unique_methods

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


_DIGITS = {"mean": 6, "std": 6, "passes": 4, "fit_seconds": 3, "predict_seconds": 3}  # significant ones of a baseline's numbers


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
class CheckedEntry:
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
        """The data set, the method and the metric."""
        return self.dataset, self.method, self.metric

    @property
    def seconds(self) -> float:
        """Seconds of all fits and predictions, as many times the medians."""
        return self.n * sum(value for value in (self.fit_seconds, self.predict_seconds) if not math.isnan(value))

    def first(self, n: int) -> CheckedEntry:
        """Return the entry on its first n splits, of which it has as many or more."""
        values = self.values[:n]
        mean = float(values.mean()) if n else math.nan
        return replace(self, values=values, sizes=self.sizes[:n], n=n, mean=mean, std=float(values.std(ddof=1)) if n > 1 else math.nan)


def read_entries(runs: pd.DataFrame, splits: Mapping[str, str] | None, made: Made | None = None) -> list[CheckedEntry]:
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
                    CheckedEntry(
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
        The baseline before it (`read_baseline`), whose tolerances are kept.
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
    entries = read_entries(runs, splits, made)
    whole = [entry for entry in entries if entry.n and not entry.failed]
    if not whole:
        raise ResultsError("no complete cell to make a baseline from; run the experiment again")
    lines = []
    for entry in whole:
        usual = tolerance if tolerance is not None else default_tolerance(entry.metric, entry.mean, entry.std, entry.n, entry.n_test)
        texts = [value_text(value, size) for value, size in zip(entry.values.tolist(), entry.sizes, strict=True)]
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


def value_text(value: float, n_test: int) -> str:
    """Return the shortest text that gives the value back exactly: a fraction of the test rows where it is one."""
    count = round(value * n_test, 6)
    short = f"{count:g}/{n_test}"
    return short if n_test and float(f"{count:g}") / n_test == value else format_value(float(value))


def value_of(text: str) -> float:
    """Return the number that a text of a baseline stands for, a quotient among them."""
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
    missing = [column for column in BASELINE_COLUMNS if column not in frame]
    if missing:
        raise ResultsError(f"{path} is no baseline: it has no column {missing[0]!r}; write one with --update")
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
            values = [value_of(text) for text in row["values"].split()]
        except (ValueError, ZeroDivisionError):
            raise ResultsError(f"{path}, line {at + 2}: the values of the splits are not numbers") from None
        if values and (len(values) != row["n"] or not math.isclose(float(np.mean(values)), row["mean"], rel_tol=1e-4, abs_tol=1e-9)):
            raise ResultsError(f"{path}, line {at + 2}: the values of the splits do not fit n and mean; empty them or write a new baseline")
    twice = frame.duplicated(["dataset", "method", "metric"])
    if twice.any():
        raise ResultsError(f"{path}, line {int(np.flatnonzero(twice.to_numpy())[0]) + 2}: the entry stands there twice")
    return frame


def folder_baseline(folder: ResultsFolder, *, tolerance: float | None = None, previous: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the baseline of the cells of a results folder (see `make_baseline`); the folder is read only."""
    runs = folder.runs_of_cells()
    cells = runs["cell"].tolist()
    facts: dict[str, Any] = {"splits": split_fingerprints(folder, cells), "made": made_texts(folder, cells)}
    return make_baseline(runs, **facts, tolerance=tolerance, previous=previous)
