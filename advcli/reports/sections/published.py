"""The section of published numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from ..choice import Names
from ..figures import Material, drawn
from ..formats.document import ReportTable, Section, TableField, counted
from ..published_numbers import FAR
from .facts import Row


def _digits(metric: str) -> int:
    return 3 if metric in ("mae", "mse", "abstention_loss") else 1


def far_line(row: Mapping[Any, Any]) -> str:
    """Return a line on a number that is far from the published one."""
    digits = _digits(row["metric"])
    return (
        f"{row['dataset']}, {row['method']}, {row['metric'].replace('_', ' ')}: ours {row['mean']:.{digits}f} ({row['std']:.{digits}f}), "
        f"published {row['printed']}, z = {row['z']:+.1f}" + (f"; {row['note']}" if row["note"] else "")
    )


def ours_beside(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return our mean with its deviation, and its difference from the published one, with one digit more than the paper prints."""
    digits = _digits(row["metric"]) + (row["metric"] not in ("mae", "mse", "abstention_loss"))
    spread = "" if math.isnan(row["std"]) else f" ({row['std']:.{digits}f})"
    return f"{row['mean']:.{digits}f}{spread}", f"{row['difference']:+.{digits}f}"


def published_lines(compared: pd.DataFrame, key: str) -> list[str]:
    """Return the source of published numbers, and how many agree with ours."""
    known = compared["z"].notna()
    lines = [f"Published numbers beside ours: {next(iter(compared['source']), key)}."]
    if known.any():
        far = int(compared["far"].sum())
        cells = len(compared[known].drop_duplicates(["dataset", "published_method", "metric"]))
        lines.append(
            f"{counted(int(known.sum()), 'number')} compared ({cells} of {compared.attrs['published']} published), "
            f"{far or 'none'} with |z| > {FAR:g}; "
            f"largest |z| {compared['z'].abs().max():.1f}, root mean square {math.sqrt(float((compared['z'] ** 2).mean())):.2f}"
        )
    elif compared.empty:
        lines.append("no published number has a counterpart in these results")
    return lines


def published_section(compared: pd.DataFrame, key: str, far: tuple[str, ...], material: Material, names: Names) -> Section:
    """Return the section with published numbers beside ours."""
    rows: list[Row] = []
    for row in compared.to_dict("records"):
        ours, difference = ours_beside(row)
        z = TableField("-", math.nan, state="missing") if math.isnan(row["z"]) else TableField(f"{row['z']:+.2f}", abs(row["z"]))
        rows.append(
            (
                TableField(str(row["dataset"])),
                TableField(str(row["method"])),
                TableField(str(row["metric"]).replace("_", " ")),
                TableField(str(row["published_method"])),
                TableField(str(row["printed"]), row["published_mean"]),
                TableField(ours, row["mean"]),
                TableField(difference, row["difference"]),
                TableField(z.text, z.value, strong=bool(row["far"]), state="far" if row["far"] else z.state),
                TableField(str(row["note"])),
            )
        )
    caption, *lines = published_lines(compared, key)
    lines += [f"disagrees: {line}" for line in far]
    if compared.attrs.get("without_ours"):
        lines.append(f"{counted(compared.attrs['without_ours'], 'published number')} without a counterpart in these results")
    alone = compared.attrs.get("without_published", [])
    lonely = [f"{names.datasets.get(dataset, dataset)}, {names.methods.get(method, method)}" for dataset, method in alone]
    if lonely:
        shown = "; ".join(lonely[:8]) + (f" and {len(lonely) - 8} more" if len(lonely) > 8 else "")
        lines.append(f"not published: {shown}")
    table = ReportTable(
        "published",
        caption,
        ("dataset", "method", "metric", "published as", "published", "ours", "difference", "z", "note"),
        tuple(rows),
        notes=(
            "z: difference of the means in units of its standard error, sqrt(std1^2/n1 + std2^2/n2), n = number of splits of each; "
            "the page sorts by its size",
            "splits, the folds of the search and roundings differ between the two: about one |z| in 20 lies above 2 by chance",
        ),
        n_text_columns=4,
    )
    if not compared["note"].any():
        table = replace(table, columns=table.columns[:-1], rows=tuple(row[:-1] for row in rows))
    tables = (table,) if rows else ()
    return Section("published-numbers", "Published numbers", tuple(lines), tables, drawn("published", material))
