"""What a picture is asked for, what it is, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.files import atomic_bytes, atomic_file
from ...core.registry import Registry
from ...core.spreadsheets import frame_as_text
from ...evaluation.cell import Cell
from ..drawing import style

if TYPE_CHECKING:
    import pandas as pd

_REMEDY = "free space or choose another results_dir"
_WIDTH = 1200  # pixels of a PNG


@dataclass(frozen=True)
class Request:
    """What a picture may draw.

    Attributes
    ----------
    cell : Cell
        Data set and method, as a run takes them.
    data_dir : Path
        Where data sets lie.
    losses : tuple of mapping
        Groups ``loss``: that of the cell first, then those that stand beside it.
    C : tuple of float
        Values of C, one panel each.
    columns : tuple of str or None
        Names of the two features; None leaves the choice to the picture.
    classes : int
        Classes of a loss that needs no data.
    rows : int
        Rows of a training that searches are compared along.
    epsilon : float
        Violation of a margin above which its label is new to that training.
    """

    cell: Cell
    data_dir: Path
    losses: tuple[Mapping[str, Any], ...]
    C: tuple[float, ...] = (10.0, 100.0, 1000.0, 10_000.0)
    columns: tuple[str, ...] | None = None
    classes: int = 4
    rows: int = 80
    epsilon: float = 0.3


@dataclass(frozen=True)
class Picture:
    """A picture before it is written.

    Attributes
    ----------
    name : str
        Name of its files without the ending.
    said : str
        What it shows, in one line.
    table : DataFrame
        The numbers that are drawn.
    size : (float, float)
        Width and height in inches.
    paint : callable
        Draws on the matplotlib figure that it is given.
    """

    name: str
    said: str
    table: pd.DataFrame
    size: tuple[float, float]
    paint: Callable[[Any], None]


@dataclass(frozen=True)
class Drawing:
    """A picture by name: what makes it of a request, and the losses that stand beside the chosen one where none are named."""

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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{picture.name}.{ending}" for ending in ("csv", "svg", "png")]
    with atomic_file(paths[0], _REMEDY) as text:
        table = frame_as_text(picture.table) if spreadsheets else picture.table
        table.to_csv(text, index=False, lineterminator="\n", float_format="%.10g")
    with style():
        canvas = Canvas(figsize=picture.size, layout="constrained")
        FigureCanvasAgg(canvas)
        picture.paint(canvas)
        for path in paths[1:]:
            own: dict[str, Any] = (
                {"metadata": {"Date": None, "Creator": None}} if path.suffix == ".svg" else {"dpi": _WIDTH / picture.size[0]}
            )
            with atomic_bytes(path, _REMEDY) as file:
                canvas.savefig(file, format=path.suffix[1:], facecolor="white", **own)
    return paths
