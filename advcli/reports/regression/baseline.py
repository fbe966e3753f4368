"""A baseline: the fingerprints and the values that rows are compared with."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.checks import NOT_NEGATIVE, or_null, refuse_parameter
from ...core.errors import ResultsError
from ...core.files import csv_text, write_text
from ...metrics import declare, meaning
from ...results import provenance
from ...results.folder import ResultsFolder
from ...results.tables import canonical_json, format_value, lasting, plain
from ..summary import blocks, flat_options, numbers, with_unique_methods

_COST_MEANINGS = {
    "passes": "mean passes of the fits; may be empty",
    "fit_seconds": "median wall time of the fits; may be empty",
    "predict_seconds": "median wall time of the predictions; may be empty",
}
_MADE_MEANINGS = {
    "made_by": "versions and processor, `name=value; ...`; may be empty",
    "config": "options of the cell, `name=value; ...`; may be empty",
}
COST_COLUMNS, MADE_COLUMNS = tuple(_COST_MEANINGS), tuple(_MADE_MEANINGS)
"""Columns of a baseline that say what a fit cost over the splits, and who made it; they may be empty."""

NUMERIC = ("advcli", "numpy", "scipy", "scikit-learn")
"""Versions that a check is of: an entry that others made says nothing about the installed ones."""

BASELINE_MEANINGS = {
    "dataset": "name of the data set",
    "method": "name of the method",
    "metric": "name of the metric",
    "mean": "mean of the metric over the splits",
    "std": "sample standard deviation over the splits",
    "n": "number of splits",
    "tolerance": "largest change of the mean that passes when other splits are compared; may be edited",
    "seed": "key `seed` of the run; empty for imported rows",
    "n_train": "training rows of a split; may be empty for imported rows",
    "n_test": "test rows of a split; may be empty for imported rows",
    **_COST_MEANINGS,
    **_MADE_MEANINGS,
    "splits": "fingerprint of the splits; equal splits are compared one by one",
    "values": "values of the splits in their order, counts as fractions (2/45); empty: only the tolerance is compared",
}
"""Columns of a baseline with their meanings: one row per (data set, method, metric)."""

BASELINE_COLUMNS = tuple(BASELINE_MEANINGS)


ALPHA = 0.01
"""Default level of the equivalence test: a check tests many entries, and a false alarm costs somebody's time."""


_DIGITS = {"mean": 6, "std": 6, "passes": 4, "fit_seconds": 3, "predict_seconds": 3}  # significant ones of a baseline's numbers


def split_fingerprints(folder: ResultsFolder, cells: Sequence[str], n_splits: int | None = None) -> dict[str, str]:
    """Return for every cell key, in one word, what its splits depend on: seed, data, label noise, and the rule, number and sizes of
    splits.

    With `n_splits` it is the word of a cell of so many splits that is the same otherwise: its splits are the first of any larger number.
    Cells that the folder has no file of (rows alone, failed cells) are left out.
    """
    fingerprints: dict[str, str] = {}
    for key in dict.fromkeys(cells):
        about = (folder.read_cell(key) or {}).get("about", {})
        cell = about.get("cell", {})
        if "drawn" in about:  # of imported rows: the names of their splits or items
            fingerprints[key] = _word(about["drawn"])
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
        splits = about.get("splits", {})
        if str(rule["splits"]).endswith(".csv"):
            content["splits"] = "file"
        if splits.get("drawn"):
            content["drawn"] = splits["drawn"]
        if n_splits is not None and splits.get("grows", True):
            content["n_splits"] = n_splits
        fingerprints[key] = _word(content)
    return fingerprints


def _word(content: Any) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:12]


Made = Mapping[str, tuple[str, str, str]]
"""What `made_texts` returns."""


def made_texts(folder: ResultsFolder, cells: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """Return for every cell key the two `MADE_COLUMNS`, and which of `NUMERIC` are installed in other versions; empty texts where a cell
    does not say it.
    """
    texts = {}
    for key in dict.fromkeys(cells):
        about = (folder.read_cell(key) or {}).get("about", {})
        makers = about.get("made_by", [])
        values: dict[str, set[str]] = {}
        for name, value in (pair for maker in makers for pair in provenance.facts(maker).items()):
            values.setdefault(name, set()).add(value)
        made_by = _text({name: " and ".join(sorted(several)) for name, several in values.items()})
        texts[key] = made_by, _text(_options(about)), _not_installed(makers)
    return texts


def _not_installed(makers: Sequence[Mapping[str, Any]]) -> str:
    """Return in words how the versions of every maker of a cell differ from the installed ones; empty if one of them has those."""
    here, text = provenance.versions(), ""
    for maker in makers:
        there = maker.get("versions", {})
        others = [f"{name} {there[name]}, installed {here[name]}" for name in NUMERIC if name in there and there[name] != here.get(name)]
        if not others:
            return ""
        text = "; ".join(others)
    return text


def _options(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what determines a cell by dotted keys, with the checksum of a file instead of its path."""
    options = flat_options(lasting(about.get("cell", {})))
    files = {key: file["sha256"][:8] for key, file in about.get("files", {}).items()}
    paths = about.get("paths", ())
    return {key: canonical_json(value).strip('"') for key, value in options.items() if value is not None and key not in paths} | files


def _text(facts: Mapping[str, str]) -> str:
    text = "; ".join(f"{name}={value}" for name, value in sorted(facts.items()))
    return text.replace(",", " ").replace('"', "")  # people edit baselines, and fields without quotes are easier to


@dataclass(frozen=True, eq=False)
class CheckedEntry:
    """A metric of a cell as the check sees it."""

    dataset: str
    method: str
    metric: str
    mean: float
    std: float
    n: int
    seed: float
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
        return replace(self, sizes=self.sizes[:n], **of_values(self.values[:n]))


def read_entries(runs: pd.DataFrame, splits: Mapping[str, str] | None, made: Made | None = None) -> list[CheckedEntry]:
    """Return the entries of rows, those without any result included."""
    declare(runs)
    runs = with_unique_methods(runs)
    metrics = list(dict.fromkeys(name for name in runs["metric"] if name)) or [""]
    entries = [
        _entry(dataset, str(method), metric, rows, splits or {}, made)
        for metric in metrics
        for dataset, block in blocks(runs, metric)
        for method, rows in block.groupby("method", sort=True)
    ]
    return sorted(entries, key=lambda entry: entry.name)


def _entry(dataset: str, method: str, metric: str, rows: pd.DataFrame, splits: Mapping[str, str], made: Made | None) -> CheckedEntry:
    good = rows[(rows["status"] != "failed") & rows["value"].notna()].sort_values("split")
    cell, seed = str(rows["cell"].iloc[0]), float(numbers(rows, "seed")[0])
    # imported rows may lack the sizes
    sizes = list(zip(*(good[name].fillna(0).astype(int).tolist() for name in ("split", "n_train", "n_test")), strict=True))
    made_by, config, stale = ("", "", "") if made is None else made[cell]
    # passes are counted and one fit that runs away shows in their mean; the clock has further outliers
    costs: dict[str, Any] = {column: _known(good, column, np.mean) for column in ("n_train", "n_test", "passes")}
    costs |= {column: _known(good, column, np.median) for column in ("fit_seconds", "predict_seconds")}
    return CheckedEntry(
        dataset=dataset,
        method=method,
        metric=metric,
        seed=seed,
        # without the cell's own file: what rows tell of the splits
        splits=splits.get(cell) or _word([dataset, None if math.isnan(seed) else int(seed), sizes]),
        **of_values(good["value"].to_numpy(dtype=float)),
        sizes=tuple(size[2] for size in sizes),
        **costs,
        failed=len(rows) - len(good),
        error=next((str(error) for error in rows["error"] if error), "") if "error" in rows else "",
        cell=cell,
        made_by=made_by,
        config=config,
        stale=stale,
    )


def of_values(values: NDArray[np.float64]) -> dict[str, Any]:
    """Return values of splits with their number, mean and sample standard deviation."""
    mean, std = float(values.mean()) if len(values) else math.nan, float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return {"values": values, "n": len(values), "mean": mean, "std": std}


def _known(rows: pd.DataFrame, column: str, reduce: Callable[[Any], Any]) -> float:
    """Return the mean or median of the values that a column has; nan if it has nothing."""
    values = numbers(rows, column)
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
    """Return the baseline of rows, columns `BASELINE_COLUMNS`; ``attrs["left_out"]`` names entries with a failed split, which have no
    place in it.

    ``splits`` are from `split_fingerprints`, ``made`` from `made_texts`; ``tolerance`` is the tolerance of every entry, default
    `default_tolerance` of each, and ``previous`` the baseline before, whose tolerances stay.
    """
    refuse_parameter("the tolerance of a baseline", tolerance, or_null(NOT_NEGATIVE))
    rows = [] if previous is None else previous.to_dict("records")
    tolerances = {(row["dataset"], row["method"], row["metric"]): row["tolerance"] for row in rows}
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
                "tolerance": tolerances.get(entry.name, _rounded_up(usual)),
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
    """Return the number that a text of a baseline states, which may be a quotient."""
    numerator, bar, denominator = text.partition("/")
    return float(numerator) / float(denominator) if bar else float(numerator)


def write_baseline(path: Path, baseline: pd.DataFrame) -> None:
    """Write a baseline atomically."""
    rows = baseline[list(BASELINE_COLUMNS)].itertuples(index=False)
    lines = (["" if value != value else format_value(plain(value, whole=True)) for value in row] for row in rows)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot create {path.parent}: {error.strerror}; choose another file") from error
    write_text(path, csv_text([BASELINE_COLUMNS, *lines]), "choose another file")


def read_baseline(path: Path) -> pd.DataFrame:
    """Read a baseline; raise `ResultsError`, with the line, if the file is missing or not a baseline."""
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
        column_values = pd.to_numeric(frame[column].replace("", "nan"), errors="coerce").astype(float)
        unreadable = column_values.isna() & ~frame[column].str.lower().isin(("", "nan"))
        bad = unreadable | ~_valid(column, column_values)
        if bad.any():
            i = int(np.flatnonzero(bad.to_numpy())[0])
            raise ResultsError(f"{path}, line {i + 2}: {column} = {frame[column].iloc[i]!r} is not valid")
        frame[column] = column_values.astype(int) if column == "n" else column_values
    for i, row in enumerate(frame.to_dict("records")):
        try:
            values = [value_of(text) for text in row["values"].split()]
        except (ValueError, ZeroDivisionError):
            raise ResultsError(f"{path}, line {i + 2}: the values of the splits are not numbers") from None
        if values and (len(values) != row["n"] or not math.isclose(float(np.mean(values)), row["mean"], rel_tol=1e-4, abs_tol=1e-9)):
            raise ResultsError(f"{path}, line {i + 2}: the values of the splits do not fit n and mean; empty them or write a new baseline")
    twice = frame.duplicated(["dataset", "method", "metric"])
    if twice.any():
        raise ResultsError(f"{path}, line {int(np.flatnonzero(twice.to_numpy())[0]) + 2}: the entry stands there twice")
    return frame


def _valid(column: str, values: pd.Series) -> pd.Series:
    """Return which numbers a column may have; costs (`COST_COLUMNS`), deviations and, of imported rows, seed and sizes may be unknown."""
    if column == "std":
        return pd.Series(True, index=values.index)
    least = {"n": 1.0, **dict.fromkeys(("tolerance", *COST_COLUMNS), 0.0)}.get(column, -math.inf)
    known = np.isfinite(values) & (values >= least) & ((values % 1 == 0) | (column != "n"))
    return known | (values.isna() & (column in ("seed", "n_train", "n_test", *COST_COLUMNS)))


def stored_entry(row: Mapping[Any, Any]) -> CheckedEntry:
    """Return an entry of a baseline from its row."""
    values = np.array([value_of(text) for text in str(row["values"]).split()], dtype=float)
    # the printed mean and deviation are rounded
    exact = of_values(values) if len(values) > 1 else {"values": values} | ({"mean": float(values[0])} if len(values) else {})
    return CheckedEntry(**{column: row[column] for column in BASELINE_COLUMNS} | exact)


def folder_facts(folder: ResultsFolder) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows of the cells of a folder, and the facts about these cells that `make_baseline` and the check need."""
    runs = folder.of_cells()
    cells = runs["cell"].tolist()
    return runs, {"splits": split_fingerprints(folder, cells), "made": made_texts(folder, cells)}


def folder_baseline(folder: ResultsFolder, *, tolerance: float | None = None, previous: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return the baseline of the cells of a results folder (see `make_baseline`); the folder is read only."""
    runs, facts = folder_facts(folder)
    return make_baseline(runs, **facts, tolerance=tolerance, previous=previous)
