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


def kept(file: str) -> str:
    return (DOCS / "pictures" / file).read_text(encoding="utf-8")


def test_the_pictures_of_the_game_are_drawn_by_their_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change: `python docs/draw_game.py`."""
    monkeypatch.syspath_prepend(DOCS)
    game = module_of(DOCS / "draw_game.py", "draw_game")
    for name, draw in game.DRAWN.items():
        for file, text in game.written(name, draw()).items():
            assert kept(file) == text


def test_every_picture_is_there_for_light_and_for_dark_ground() -> None:
    """The dark one is the light one in other colours; no page shows a picture that a dark page cannot replace."""
    themes = module_of(DOCS / "themes.py", "themes")
    names = {path.stem.removesuffix(themes.DARK) for path in (DOCS / "pictures").iterdir()}
    assert {path.name for path in (DOCS / "pictures").iterdir()} == {f"{name}{end}.svg" for name in names for end in ("", themes.DARK)}
    for name in names - {"architecture"}:  # whose test compares both with the code
        light = kept(f"{name}.svg")
        assert light.count(themes.GROUND) == 1
        assert kept(f"{name}{themes.DARK}.svg") == themes.in_light_ink(light.replace(themes.GROUND, ""))


@pytest.mark.slow
def test_the_pictures_of_the_pages_say_what_advcli_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change: `python docs/draw_pictures.py`; words and numbers are compared, shapes differ with the version of matplotlib."""
    monkeypatch.syspath_prepend(DOCS)
    script = module_of(DOCS / "draw_pictures.py", "draw_pictures")
    drawn = dict(script.draw(name for name in script.DRAWN if "yeast" not in name))  # whose data are fetched
    assert len(drawn) == 12
    texts = re.compile(r"<text[^>]*>([^<]*)</text>")
    for file, svg in drawn.items():
        assert texts.findall(kept(file)) == texts.findall(svg), file


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
