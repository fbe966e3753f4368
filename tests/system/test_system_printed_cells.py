"""Every number that a paper prints for a method was computed, or the page says why not; the page is current."""

from __future__ import annotations

import csv
import fnmatch
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import printed_cells  # noqa: E402

PUBLISHED = Path(os.environ.get("ADVCLI_DATA", "none")).parent / "published"
# tables of sizes; metrics that are sizes, or counts of bold cells
SIZES = {"choi2018_fig6_2_datasets", "choi2018_table5_2", "fathony2018_table1_datasets", "fathony2018_table3_datasets"}
COUNTS = {"n_classes", "n_features", "n_train", "n_test", "n_bold"}


def test_the_page_is_what_the_script_writes() -> None:
    assert printed_cells.PAGE.read_text(encoding="utf-8") == printed_cells.page()


def test_every_line_has_a_number_of_ours_or_a_reason() -> None:
    for line in printed_cells.rules():
        assert line["standing"] in printed_cells.STANDINGS
        assert bool(line["ours"]) == (line["standing"] in ("same", "other"))
        assert bool(line["reason"]) == (line["standing"] != "same")
        for name in line["ours"].split():
            where = ROOT / "docs/results" / name if name.endswith(".md") else ROOT / "results/published" / f"{name}.csv"
            assert where.is_file(), where


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the printed tables are not beside the data folder")
def test_the_lines_cover_every_printed_number_once() -> None:
    lines = printed_cells.rules()
    covered = dict.fromkeys(range(len(lines)), 0)
    for path in sorted(PUBLISHED.glob("*.csv")):
        if path.stem in SIZES:
            continue
        with path.open(newline="", encoding="utf-8") as file:
            cells = [
                cell for cell in csv.DictReader(file) if cell["mean"].strip() and cell["dataset"] != "ALL" and cell["metric"] not in COUNTS
            ]
        for cell in cells:
            matching = (
                place
                for place, line in enumerate(lines)
                if line["table"] == path.stem and all(fnmatch.fnmatchcase(cell[key], line[key]) for key in ("dataset", "method", "metric"))
            )
            place = next(matching, None)
            assert place is not None, (path.stem, cell)
            covered[place] += 1
    assert covered == {place: int(line["cells"]) for place, line in enumerate(lines)}
