"""What a picture is asked for, what it is, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.files import atomic_file, write_bytes
from ...core.registry import Registry
from ...core.spreadsheets import frame_as_text
from ...evaluation.cell import Cell
from ...evaluation.recipe import ALL, Fitted, Recipe
from ..drawing import WIDTH, canvas, saved

if TYPE_CHECKING:
    import pandas as pd

_REMEDY = "free space or choose another results_dir"


@dataclass(frozen=True)
class Request:
    """What a picture may draw."""

    cell: Cell  # data set and method, as a run takes them
    data_dir: Path  # where data sets lie
    losses: tuple[Mapping[str, Any], ...]  # groups ``loss``: the cell's first, then the losses drawn with it
    C: tuple[float, ...] = (10.0, 100.0, 1000.0, 10_000.0)  # one panel each
    columns: tuple[str, ...] | None = None  # names of two features; None leaves the choice to the picture
    classes: int = 4  # of a loss that needs no data
    rows: int = 80  # of a training that searches are compared along
    epsilon: float = 0.3  # violation of a margin above which its label is new to that training


@dataclass(frozen=True)
class Picture:
    """A picture before it is written."""

    name: str  # of its files without the ending
    said: str  # what it shows, in one line
    table: pd.DataFrame  # the numbers that are drawn
    size: tuple[float, float]  # width and height in inches
    paint: Callable[[Any], None]  # draws on the matplotlib figure that it is given


@dataclass(frozen=True)
class Drawing:
    """A picture by name: what makes it of a request, and the losses that are drawn with the chosen one where none are named."""

    name: str
    make: Callable[[Request], Iterator[Picture]]
    beside: tuple[str, ...] = ()


pictures: Registry[Drawing] = Registry("figure", "picture", __package__)


def register(name: str, beside: tuple[str, ...] = ()) -> Callable[[Callable[[Request], Iterator[Picture]]], Any]:
    """Register a function as a picture."""

    def keep(make: Callable[[Request], Iterator[Picture]]) -> Any:
        pictures.put(name, Drawing(name, make, beside))
        return make

    return keep


def write_picture(picture: Picture, folder: Path, spreadsheets: bool = False) -> list[Path]:
    """Write NAME.csv, NAME.svg and NAME.png, 1,200 pixels wide, into a folder, on white ground; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{picture.name}.{ending}" for ending in ("csv", "svg", "png")]
    with atomic_file(paths[0], _REMEDY) as text:
        table = frame_as_text(picture.table) if spreadsheets else picture.table
        table.to_csv(text, index=False, lineterminator="\n", float_format="%.10g")
    with canvas(picture.size) as figure:
        picture.paint(figure)
        for path, how in zip(paths[1:], ({}, {"dpi": WIDTH / picture.size[0]}), strict=True):
            write_bytes(path, saved(figure, path.suffix[1:], facecolor="white", **how), _REMEDY)
    return paths


def fit_to_all(recipe: Recipe) -> tuple[Any, Fitted]:
    """Return all rows, and the fit to them with the hyper-parameters that their search chooses."""
    rows = recipe.part()
    return rows, recipe.fit(rows, recipe.search(rows, ALL).hyper, ALL)
