"""Published numbers compared with ours.

The folder ``published/`` holds the tables that this project compares with: one CSV file per printed table, with the numbers of the papers.
Its columns are paper, table, dataset, method, feature_map, metric, mean, std, extra, unit; ``columns.csv`` names our loss and our features
for each printed column. A new table is one file there and its lines in ``columns.csv``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from ..core.errors import UnknownNameError, nearest
from ..metrics import shown_as
from ..results.folder import ResultsFolder
from .choice import Choice, Names
from .formats.document import Section, TableField, counted
from .sections.columns import MISSING, ReportColumn, itself, lay_out, words
from .sections.facts import read_facts
from .sources import Sources
from .summary import as_ordered, summarise

FOLDER = Path(__file__).parent / "published"

FAR = 3.0
"""A z-score beyond this is named as a disagreement."""
MOST = 60
"""Lines that a terminal is given; of more those with the largest z-scores."""

PUBLISHED_MEANINGS = {
    "dataset": "name of the data set",
    "method": "our method",
    "metric": "name of the metric",
    "published_method": "the method as the paper calls it",
    "printed": "mean and deviation as the paper prints them",
    "published_mean": "printed mean, in the published unit (percent where the paper prints percent)",
    "published_std": "printed deviation",
    "published_n": "number of runs behind the printed numbers",
    "mean": "our mean in the published unit",
    "std": "our deviation",
    "n_splits": "our splits",
    "difference": "`mean` - `published_mean`",
    "z": "the difference in units of its standard error",
    "far": "whether abs(z) is above the limit of the report",
    "source": "table and page of the paper",
    "note": "what differs from the paper's experiment",
}
"""Columns of published.csv with their meanings: one row per published number that has a cell of ours."""

PUBLISHED_COLUMNS = tuple(PUBLISHED_MEANINGS)


def _columns() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "columns.csv", dtype={"n_splits": int})


def published_keys() -> tuple[str, ...]:
    """Return the names of published numbers: files (``fathony2018_table2``), and their halves with linear or Gaussian features
    (``fathony2018_table2_linear``).
    """
    columns = _columns()
    halves = columns["file"] + "_" + columns["feature_map"].str.partition("-")[0]
    return tuple(sorted({*columns["file"], *halves}))


def check_published(key: str) -> None:
    """Raise ConfigError unless there are published numbers of that name."""
    if key not in published_keys():
        raise UnknownNameError(f"no published numbers {key!r}; {nearest(key, published_keys())}")


def load_published(key: str) -> pd.DataFrame:
    """Return published numbers with our loss and our features for each printed column.

    The columns are the columns of the file (see the module), ``printed`` (mean and deviation as in the paper), ``loss``, ``features``
    and ``n_splits``; rows of single data sets only.
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
    """Return the difference of two means in units of its standard error, sqrt(std_a^2 / n_a + std_b^2 / n_b).

    It is 0 if the means are equal and neither spreads, infinite if they differ without any spread; nan where a deviation is not known.
    """
    error = math.sqrt(std_a**2 / n_a + std_b**2 / n_b) if min(n_a, n_b) > 0 else math.nan
    difference = mean_a - mean_b
    if error == 0:
        return math.copysign(math.inf, difference) if difference else 0.0
    return difference / error


def compare_with_published(summary: pd.DataFrame, runs: pd.DataFrame, key: str, notes: dict[str, str] | None = None) -> pd.DataFrame:
    """Set published numbers beside ours: columns `PUBLISHED_COLUMNS`, a row for each published number that has a counterpart of ours.

    ``summary`` is made from ``runs``, which tell loss and features of a method; ``notes`` by data set say for example how its target was
    cut. ``attrs["published"]`` counts the published numbers, ``attrs["without_ours"]`` those without one of ours,
    ``attrs["without_published"]`` are data sets and methods of ours without one.
    """
    facts = load_published(key)
    cells = runs[["dataset", "method", "loss", "features"]].drop_duplicates()
    ours: dict[tuple[str, str], dict[str, Any]] = {}
    for line in summary.to_dict("records"):
        ours.setdefault((line["dataset"], line["method"]), {})[line["metric"]] = line
    lines: list[dict[str, Any]] = []
    without, published = 0, set()
    for fact in facts.to_dict("records"):
        same = cells[(cells["dataset"] == fact["dataset"]) & (cells["loss"] == fact["loss"]) & (cells["features"] == fact["features"])]
        pairs = [(fact["dataset"], method) for method in sorted(same["method"])]
        published |= set(pairs)
        rows = [row for pair in pairs if (row := _row_of(ours.get(pair, {}), fact["metric"])) is not None and row["n_splits"]]
        lines += [_beside(fact, row, (notes or {}).get(fact["dataset"], "")) for row in rows]
        without += not rows
    frame = as_ordered(pd.DataFrame(lines, columns=list(PUBLISHED_COLUMNS)), runs)
    if isinstance(frame["dataset"].dtype, pd.CategoricalDtype):
        frame = frame.sort_values(["dataset", "method"], kind="stable", ignore_index=True)
    frame.attrs["published"], frame.attrs["without_ours"] = len(facts), without
    frame.attrs["without_published"] = sorted({(row["dataset"], row["method"]) for row in cells.to_dict("records")} - published)
    return frame


def _row_of(rows: Mapping[str, dict[str, Any]], metric: str) -> dict[str, Any] | None:
    """Return the row of a metric, else of the metric for which tables show it: the error for the accuracy."""
    return rows.get(metric) or next((row for name, row in rows.items() if shown_as(name).name == metric), None)


def _beside(fact: Mapping[Any, Any], row: Mapping[str, Any], note: str) -> dict[str, Any]:
    """Return a published number beside a row of the summary, in the published unit."""
    factor = 100.0 if fact["unit"] == "percent" else 1.0
    mean = factor * (row["mean"] if row["metric"] == fact["metric"] else 1.0 - row["mean"])
    std, n_splits = factor * row["std"], int(row["n_splits"])
    z = z_score(mean, std, n_splits, fact["mean"], fact["std"], fact["n_splits"])
    theirs = {"published_mean": fact["mean"], "published_std": fact["std"], "published_n": fact["n_splits"]}
    theirs |= {"published_method": f"{fact['method']} {fact['feature_map']}", "source": f"{fact['paper']}, {fact['table']}"}
    ours = {"method": row["method"], "mean": mean, "std": std, "n_splits": n_splits}
    difference = {"difference": mean - fact["mean"], "z": z, "far": abs(z) > FAR, "note": note}
    return {name: fact[name] for name in ("dataset", "metric", "printed")} | theirs | ours | difference


# ---- as tables ---------------------------------------------------------------------------------------------------------
def _digits(metric: str) -> int:
    """Return how many digits papers print after the point."""
    return 3 if metric in ("mae", "mse", "abstention_loss") else 1


def far_line(row: Mapping[Any, Any]) -> str:
    """Return a line on a number that is far from the published one."""
    digits = _digits(row["metric"])
    return (
        f"{row['dataset']}, {row['method']}, {row['metric'].replace('_', ' ')}: ours {row['mean']:.{digits}f} ({row['std']:.{digits}f}), "
        f"published {row['printed']}, z = {row['z']:+.1f}" + (f"; {row['note']}" if row["note"] else "")
    )


def printed(row: Mapping[Any, Any]) -> TableField:
    """Return the published mean and deviation as they are printed."""
    return TableField(str(row["printed"]), row["published_mean"])


def z_field(row: Mapping[Any, Any]) -> TableField:
    """Return a z-score; a page sorts by its size."""
    return MISSING if math.isnan(row["z"]) else TableField(f"{row['z']:+.2f}", abs(row["z"]), state="far" if row["far"] else "")


def _ours(row: Mapping[Any, Any]) -> TableField:
    """Return our mean and deviation with one digit more than the paper prints of shares."""
    digits = max(2, _digits(row["metric"]))
    return TableField(f"{row['mean']:.{digits}f}" + ("" if math.isnan(row["std"]) else f" ({row['std']:.{digits}f})"), row["mean"])


def _columns_beside(metric: bool, note: bool) -> list[ReportColumn]:
    """Return the columns of ours beside published numbers."""
    return [
        ReportColumn("dataset"),
        ReportColumn("method"),
        ReportColumn("metric", words, lambda row: str(row["metric"]).replace("_", " "), metric),
        ReportColumn("published as", words, "published_method"),
        ReportColumn("published", printed, itself),
        ReportColumn("ours", _ours, itself),
        ReportColumn(
            "difference", lambda row: TableField(f"{row['difference']:+.{max(2, _digits(row['metric']))}f}", row["difference"]), itself
        ),
        ReportColumn("z", lambda row: replace(z_field(row), strong=bool(row["far"])), itself),
        ReportColumn("note", shown=note),
    ]


def _lines(compared: pd.DataFrame, key: str) -> list[str]:
    """Return the source of published numbers, and how many agree with ours."""
    comparable = compared["z"].notna()
    lines = [f"Published numbers beside ours: {next(iter(compared['source']), key)}."]
    if comparable.any():
        far = int(compared["far"].sum())
        cells = len(compared[comparable].drop_duplicates(["dataset", "published_method", "metric"]))
        lines.append(
            f"{counted(int(comparable.sum()), 'number')} compared ({cells} of {compared.attrs['published']} published), "
            f"{far or 'none'} with |z| > {FAR:g}; "
            f"largest |z| {compared['z'].abs().max():.1f}, root mean square {math.sqrt(float((compared['z'] ** 2).mean())):.2f}"
        )
    elif compared.empty:
        lines.append("no published number has a counterpart in these results")
    return lines


def published_section(compared: pd.DataFrame, key: str, far: Sequence[str], names: Names) -> Section:
    """Return the section of a report that compares published numbers with ours, the ``far`` ones first."""
    caption, *lines = _lines(compared, key)
    lines += [f"disagrees: {line}" for line in far]
    if compared.attrs.get("without_ours"):
        lines.append(f"{counted(compared.attrs['without_ours'], 'published number')} without a counterpart in these results")
    alone = compared.attrs.get("without_published", [])
    lonely = [f"{names.datasets.get(dataset, dataset)}, {names.methods.get(method, method)}" for dataset, method in alone]
    if lonely:
        more = f" and {len(lonely) - 8} more" if len(lonely) > 8 else ""
        lines.append(f"not published: {'; '.join(lonely[:8])}{more}")
    notes = (
        "z: difference of the means in units of its standard error, sqrt(std1^2/n1 + std2^2/n2), n = number of splits of each; "
        "the page sorts by its size",
        "splits, the folds of the search and roundings differ between the two: about one |z| in 20 lies above 2 by chance",
    )
    table = lay_out("published", caption, _columns_beside(True, bool(compared["note"].any())), compared.to_dict("records"), notes)
    return Section("published-numbers", "Published numbers", tuple(lines), (table,) if table.rows else ())


def published_table(folder: ResultsFolder, key: str, choice: Choice | None = None, cells: Collection[str] | None = None) -> str:
    """Return ours beside the published numbers of that name as text, for the terminal; empty if no row is shown.

    A line for each number that both have: means and deviations as printed and as computed, and z, the difference of the means in units of
    its standard error (`z_score`); of more than `MOST` lines the ones with the largest z-scores. ``cells`` are the keys of the shown
    cells, default all of the folder.
    """
    from tabulate import tabulate

    sources = Sources([folder], merge=False)
    runs, names = (choice or Choice()).rows(sources.runs)
    if cells is not None:
        runs = runs[runs["cell"].isin(list(cells))]
    if runs.empty:
        return ""
    compared = names.shown(compare_with_published(summarise(runs), runs, key, read_facts(sources, runs["cell"]).cuts))
    source, *more = _lines(compared, key)
    lines = ["", source, ""]
    if len(compared):
        largest = compared.sort_values("z", key=lambda z: z.abs(), ascending=False, kind="stable").head(MOST)
        shown = (largest if len(compared) > MOST else compared).to_dict("records")
        table = lay_out("published", source, _columns_beside(compared["metric"].nunique() > 1, False), shown)
        body = [[field.text for field in row] for row in table.rows]
        sides = ["left"] * (len(table.columns) - 4) + ["right"] * 4
        lines += [tabulate(body, table.columns, tablefmt="simple", disable_numparse=True, colalign=sides), ""]
    if len(compared) > MOST:
        more.append(f"shown are the {MOST} with the largest |z|; report.html has all {len(compared)}")
    if compared["z"].notna().any():
        more.append("z: difference of the means in units of its standard error; about one |z| in 20 lies above 2 by chance")
    return "\n".join([*lines, *more, ""]) + "\n"
