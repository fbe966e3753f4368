"""Draw the pictures of the pages that advcli draws itself: writes docs/pictures/NAME.svg for light ground, NAME-dark.svg for dark ground.

    python docs/draw_pictures.py              all of them; the searches need the data set yeast, `advcli data fetch yeast`
    python docs/draw_pictures.py loss_surface_cs_1 report_confusion_iris

`draw_game.py` and `draw_architecture.py` draw the other pictures.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from themes import written

from advcli.cli import main

BOUNDARIES = "report figure=boundaries dataset=iris loss=zero_one draw.losses=[zero_one,llw] draw.C=[100,10000] solver.tol=1e-6"
REPORT = "-m dataset=iris loss=zero_one,cs,abstain protocol.n_splits=10 name=page"
SEARCHES = f"report plugins={Path(__file__).resolve().parents[1] / 'benchmarks' / 'searches'} figure=search"
DRAWN = {
    "boundaries_iris": ((BOUNDARIES,), "boundaries_iris"),
    "loss_surface_zero_one_1": (("report figure=loss_surface loss=zero_one",), "loss_surface_zero_one_1"),
    "loss_surface_cs_1": (("report figure=loss_surface loss=cs",), "loss_surface_cs_1"),
    "loss_surface_absolute_1": (("report figure=loss_surface loss=absolute",), "loss_surface_absolute_1"),
    "report_selection_iris": ((REPORT, "report results=results/page"), "page/plots/selection-accuracy-iris"),
    "report_confusion_iris": ((REPORT, "report results=results/page"), "page/plots/confusion-iris"),
    "search_yeast_sets_slack": (
        (f"{SEARCHES} dataset=yeast loss=sets loss.surrogate=slack hyper.C=0.001",),
        "search_yeast_sets_slack",
    ),
}
"""By name of a picture: the commands that draw it, and its path in the results folder without the ending."""


def draw(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files of the pictures, from commands that run once each in a folder of their own."""
    os.environ.setdefault("ADVCLI_DATA", str(Path.cwd() / "data"))
    done: set[str] = set()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in names:
            commands, stem = DRAWN[name]
            for command in commands:
                if command not in done and main(command.split()) != 0:
                    raise SystemExit(f"advcli {command} failed")
                done.add(command)
            yield from written(name, (Path("results") / f"{stem}.svg").read_text(encoding="utf-8")).items()


if __name__ == "__main__":
    for file, svg in draw(sys.argv[1:] or DRAWN):
        (Path(__file__).resolve().parent / "pictures" / file).write_text(svg, encoding="utf-8")
        print(f"docs/pictures/{file}")
