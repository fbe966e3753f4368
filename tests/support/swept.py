"""What a sweep leaves, for tests that compare two of them."""

from __future__ import annotations

from pathlib import Path

from advcli.results.tables import TIMING_COLUMNS, read_table


def tables(folder: Path) -> list[str]:
    """Return what a sweep leaves for its reader, times aside, as texts of the exact bits."""
    frames = [read_table(folder / name) for name in ("runs.csv", "search.csv")]
    texts = [frame.drop(columns=[column for column in TIMING_COLUMNS if column in frame]).to_csv() for frame in frames]
    summary = [line.rpartition(",")[0] for line in (folder / "summary.csv").read_text().splitlines()]
    return [*texts, "\n".join(summary), (folder / "table.md").read_text()]
