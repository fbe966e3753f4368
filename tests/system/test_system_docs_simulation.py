"""The simulation behind the page on statistics gives the figures that stand there, and scripts draw the pictures of the pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.module_files import module_of

DOCS = Path(__file__).resolve().parents[2] / "docs"


def simulated(*words: str) -> list[str]:
    done = subprocess.run([sys.executable, str(DOCS / "simulate.py"), *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_pictures_of_the_game_are_drawn_by_their_script() -> None:
    """After a change: `python docs/draw_game.py`."""
    game = module_of(DOCS / "draw_game.py", "draw_game")
    for name, draw in game.DRAWN.items():
        assert (DOCS / "pictures" / name).read_text(encoding="utf-8") == draw()


def figures(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+) ([\d.]+ %)", line))


def rows_of_page() -> list[list[str]]:
    lines = (DOCS / "explanation" / "statistics.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| nearest")]


def test_the_simulation_runs() -> None:
    lines = simulated("3")
    assert len(lines) == len(rows_of_page()) == 8
    assert all(len(figures(line)) in (2, 3) for line in lines)


@pytest.mark.slow
def test_figures_of_the_page() -> None:
    printed = {line.split(":")[0]: figures(line) for line in simulated()}
    for name, *cells in rows_of_page():
        if len(cells) == 3 and cells[0].isdigit():
            key, wanted = f"{cells[0]} equal methods, {name}", dict(zip(("none", "holm"), cells[1:], strict=True))
        else:
            key, wanted = f"two equal methods, {name}", dict(zip(("ttest", "wilcoxon", "corrected_ttest"), cells, strict=True))
        assert printed[key] == wanted
