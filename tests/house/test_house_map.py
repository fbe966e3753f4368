"""docs/project/architecture.md is true: its picture is that of the code, its paths exist, and it leads ten changes to their places."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.module_files import module_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "project" / "architecture.md").read_text(encoding="utf-8")
CHANGES = {
    "a metric": ("advcli/metrics.py", "register"),
    "a loss with a compiled twin": ("_ext/families/adv_hinge.pxd", "bind_"),
    "another stopping rule": ("advcli/solvers/base.py", "class Limits"),
    "a column of runs.csv": ("advcli/results/tables.py", "RUN_COLUMNS"),
    "a figure of a report": ("advcli/reports/figures/curves.py", "@register"),
    "a data source": ("advcli/data/sources/csv_file.py", "SOURCE"),
    "a status of a fit": ("advcli/problems/certificate.py", "status"),
    "an action of the command line": ("advcli/cli/actions/verify.py", "Task"),
    "a check of a config value": ("advcli/config/schema.py", "def check"),
    "a new certificate": ("advcli/problems/certificate.py", "def certify"),
}
"""Changes that a newcomer makes: a file at the place that the page names, and what stands there already."""


def rows() -> dict[str, list[str]]:
    """Return, for every change of the page's table, the paths behind it."""
    table = PAGE.split("## Which room for which change")[1].split("##")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")]
    return {change: re.findall(r"`([\w./]+)`", " ".join(rest)) for change, *rest in cells[1:]}


def test_the_picture_is_the_code() -> None:
    """A change of the imports is drawn again by `python docs/draw_architecture.py`."""
    drawn = module_of(ROOT / "docs" / "draw_architecture.py", "draw_architecture")
    for name in drawn.COLOURS:
        assert (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8") == drawn.drawing(name)


def test_every_room_has_its_row() -> None:
    rooms = {path.parent.name for path in (ROOT / "advcli").glob("*/__init__.py")}
    table = PAGE.split("## The rooms")[1].split("##")[0]
    assert {name.rstrip("/") for name in re.findall(r"^\| `([\w.]+/?)`", table, re.MULTILINE)} == rooms | {"metrics.py"}


def test_every_path_of_the_page_is_there() -> None:
    named = {path for paths in rows().values() for path in paths}
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_a_long_file_says_why() -> None:
    """A file of more than 600 lines has its reason at the end of its docstring."""
    texts = {
        path: path.read_text(encoding="utf-8")
        for room in ("advcli", "_ext")
        for path in (ROOT / room).rglob("*.p[yx]*")
        if path.suffix != ".pyc"
    }
    long = {path: text for path, text in texts.items() if text.count("\n") > 600}
    assert long
    assert [path for path, text in long.items() if "\nOne file: " not in text.split('"""')[1]] == []


@pytest.mark.parametrize("change", CHANGES)
def test_the_page_leads_to_the_place(change: str) -> None:
    file, there = CHANGES[change]
    assert any(file.startswith(path) for path in rows()[change])
    assert there in (ROOT / file).read_text(encoding="utf-8")
