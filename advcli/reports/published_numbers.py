"""Published numbers beside ours.

The folder ``published/`` holds the tables that this project compares with, one CSV file per printed table, copied as facts from
the papers with the columns paper, table, dataset, method, feature_map, metric, mean, std, extra, unit; ``columns.csv`` says which
loss and features of ours stand for which printed column. A new table is one file there and its lines in ``columns.csv``.
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from ..core.errors import ConfigError, nearest
from ..metrics import shown_as
from .summary import as_ordered

FOLDER = Path(__file__).parent / "published"

FAR = 3.0
"""A z-score beyond this is named as a disagreement."""

PUBLISHED_COLUMNS = (
    "dataset",
    "method",
    "metric",
    "published_method",
    "printed",
    "published_mean",
    "published_std",
    "published_n",
    "mean",
    "std",
    "n_splits",
    "difference",
    "z",
    "far",
    "source",
    "note",
)
"""Columns of published.csv.

``printed`` is mean and deviation as the paper has them; numbers are in the published unit (percent where the paper prints percent).
"""


def _columns() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "columns.csv", dtype={"n_splits": int})


def published_keys() -> tuple[str, ...]:
    """Return the names under which published numbers can be asked for.

    A whole table is named by its file (``fathony2018_table2``), the half with linear or Gaussian features by a suffix
    (``fathony2018_table2_linear``).
    """
    columns = _columns()
    halves = columns["file"] + "_" + columns["feature_map"].str.partition("-")[0]
    return tuple(sorted({*columns["file"], *halves}))


def check_published(key: str) -> None:
    """Raise ConfigError if there are no published numbers of that name."""
    if key not in published_keys():
        raise ConfigError(f"no published numbers {key!r}; {nearest(key, published_keys())}")


def load_published(key: str) -> pd.DataFrame:
    """Return published numbers with the loss and the features of ours that stand for each printed column.

    Parameters
    ----------
    key : str
        One of `published_keys`.

    Returns
    -------
    DataFrame
        Columns of the file (see the module), ``printed`` (mean and deviation as they stand in the paper), ``loss``, ``features``
        and ``n_splits``; rows of single data sets only.

    Raises
    ------
    ConfigError
        If there is no such key.
    """
    check_published(key)
    columns = _columns()
    file = key if key in set(columns["file"]) else key.rpartition("_")[0]
    columns = columns[columns["file"] == file]
    if key != file:
        columns = columns[columns["feature_map"].str.partition("-")[0] == key.rpartition("_")[2]]
    facts = pd.read_csv(FOLDER / f"{file}.csv", dtype=str, keep_default_na=False)
    facts["printed"] = [f"{mean} ({std})" if std else mean for mean, std in zip(facts["mean"], facts["std"], strict=True)]
    for column in ("mean", "std"):
        facts[column] = pd.to_numeric(facts[column])
    # averages and counts of a printed table follow from its cells
    return facts[facts["dataset"] != "ALL"].merge(columns.drop(columns="file"), on=["method", "feature_map"])


def z_score(mean_a: float, std_a: float, n_a: int, mean_b: float, std_b: float, n_b: int) -> float:
    """Return the difference of two means in units of its standard error.

    z = (mean_a - mean_b) / sqrt(std_a^2 / n_a + std_b^2 / n_b); 0 if the means are equal and neither spreads, infinite if they
    differ without any spread; nan where a deviation is not known.
    """
    error = math.sqrt(std_a**2 / n_a + std_b**2 / n_b) if min(n_a, n_b) > 0 else math.nan
    difference = mean_a - mean_b
    if error == 0:
        return math.copysign(math.inf, difference) if difference else 0.0
    return difference / error


def compare_with_published(summary: pd.DataFrame, runs: pd.DataFrame, key: str, notes: dict[str, str] | None = None) -> pd.DataFrame:
    """Set published numbers beside ours.

    Parameters
    ----------
    summary : DataFrame
        From `advcli.reports.summarise`.
    runs : DataFrame
        The rows it was made from, with its names of methods: they tell loss and features of a method.
    key : str
        One of `published_keys`.
    notes : dict of str to str, optional
        What is to be said beside a data set's numbers, for example how its target was cut.

    Returns
    -------
    DataFrame
        Columns `PUBLISHED_COLUMNS`, one row per published number that has a counterpart of ours; ``far`` marks an absolute
        z-score above `FAR`. ``attrs["published"]`` counts the published numbers, ``attrs["without_ours"]`` those without one of ours,
        ``attrs["without_published"]`` are data sets and methods of ours without one.
    """
    facts = load_published(key)
    found = runs[["dataset", "method", "loss", "features"]].drop_duplicates()
    ours = {(row["dataset"], row["method"], row["metric"]): row for row in summary.to_dict("records")}
    lines, without, known = [], 0, set()
    for fact in facts.to_dict("records"):
        same = found[(found["dataset"] == fact["dataset"]) & (found["loss"] == fact["loss"]) & (found["features"] == fact["features"])]
        matches = 0
        for method in sorted(same["method"]):
            known.add((fact["dataset"], method))
            metric, flipped = fact["metric"], False
            if (fact["dataset"], method, metric) not in ours:
                # the published metric may be what tables show for the one of these rows
                own = [found for name, other, found in ours if (name, other) == (fact["dataset"], method)]
                twin = next((name for name in own if shown_as(name).name == metric), None)
                metric, flipped = (metric, False) if twin is None else (twin, True)
            row = ours.get((fact["dataset"], method, metric))
            if row is None or not row["n_splits"]:
                continue
            matches += 1
            factor = 100.0 if fact["unit"] == "percent" else 1.0
            mean, std = factor * (1.0 - row["mean"] if flipped else row["mean"]), factor * row["std"]
            z = z_score(mean, std, int(row["n_splits"]), fact["mean"], fact["std"], fact["n_splits"])
            lines.append(
                {
                    "dataset": fact["dataset"],
                    "method": method,
                    "metric": fact["metric"],
                    "published_method": f"{fact['method']} {fact['feature_map']}",
                    "printed": fact["printed"],
                    "published_mean": fact["mean"],
                    "published_std": fact["std"],
                    "published_n": fact["n_splits"],
                    "mean": mean,
                    "std": std,
                    "n_splits": int(row["n_splits"]),
                    "difference": mean - fact["mean"],
                    "z": z,
                    "far": abs(z) > FAR,
                    "source": f"{fact['paper']}, {fact['table']}",
                    "note": (notes or {}).get(fact["dataset"], ""),
                }
            )
        without += not matches
    frame = as_ordered(pd.DataFrame(lines, columns=list(PUBLISHED_COLUMNS)), runs)
    if isinstance(frame["dataset"].dtype, pd.CategoricalDtype):
        frame = frame.sort_values(["dataset", "method"], kind="stable", ignore_index=True)
    frame.attrs["published"], frame.attrs["without_ours"] = len(facts), without
    frame.attrs["without_published"] = sorted({(row["dataset"], row["method"]) for row in found.to_dict("records")} - known)
    return frame
