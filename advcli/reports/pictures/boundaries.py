"""Where methods change their prediction, over two features: one row of panels a method, one column a value of C."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import dense
from ...core.errors import ConfigError, UnknownNameError, nearest
from ...core.hyper import STRENGTH
from ...evaluation.cell import Cell
from ...evaluation.recipe import Recipe
from ...learners import Method
from ...losses.matrices import ABSTAIN
from ..drawing import COLOURS, look
from .base import Picture, Request, fit_to_all, register

_POINTS = 161  # of the grid along each feature
_MARGIN = 0.06  # how far the grid goes beyond the rows, in parts of their range
_MOST_DRAWN = 500  # rows drawn as points


def two_columns(X: Any, y: NDArray[np.intp], names: tuple[str, ...], wanted: tuple[str, ...] | None) -> list[int]:
    """Return the positions of two features: the named ones, else the two whose class means differ most (largest F statistic)."""
    if wanted is None:
        if len(names) < 2:
            raise ConfigError(f"figure=boundaries needs two features, the data have {len(names)}")
        from sklearn.feature_selection import f_classif

        with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            warnings.simplefilter("ignore")  # of constant features, which are never the best
            score = np.nan_to_num(f_classif(X, y)[0], nan=-1.0)
        return sorted(np.argsort(-score, kind="stable")[:2].tolist())
    if len(set(wanted)) != 2:
        raise ConfigError(f"draw.columns={list(wanted)} must name two features")
    for name in wanted:
        if name not in names:
            raise UnknownNameError(f"draw.columns: no feature {name!r}; {nearest(name, names)}")
    return [names.index(name) for name in wanted]


def _at(cell: Cell, C: float) -> Cell:
    """Return the cell at a value of C: the package's, or an estimator's own parameter of that name; as it is without one."""
    method = Method.of(cell)
    if STRENGTH in method.searched:
        return dataclasses.replace(cell, hyper={**{name: value for name, value in cell.hyper.items() if name != "lambda"}, "C": C})
    if "loss.options.C" in method.candidates:
        return dataclasses.replace(cell, loss={**cell.loss, "options": {**(cell.loss.get("options") or {}), "C": C}})
    return cell


def _regions(cell: Cell, data_dir: Path, grid: NDArray[np.float64], columns: list[int]) -> NDArray[np.intp]:
    """Return the predicted codes at the points (m, 2) of a grid, of a fit to all rows in two features."""
    recipe = Recipe(cell, data_dir)
    data = recipe.dataset
    names = tuple(data.feature_names[at] for at in columns)
    recipe.dataset = dataclasses.replace(data, X=dense(data.X)[:, columns], feature_names=names, encoding=None, cells=None)
    _, fitted = fit_to_all(recipe)
    return np.asarray(fitted.learner.predict_codes(fitted.rows(grid)))


def _panels(request: Request, grid: NDArray[np.float64], columns: list[int]) -> dict[tuple[str, float | None], NDArray[np.intp]]:
    """Return the predicted codes of every method at every C, or at None where C changes nothing."""
    panels = {}
    for loss in request.losses:
        cell = dataclasses.replace(request.cell, loss=loss)
        cells = {C: _at(cell, C) for C in request.C}
        alone = next((C for C, chosen in cells.items() if chosen is cell), None)
        for C, chosen in cells.items() if alone is None else [(None, cell)]:
            panels[str(loss["name"]), C] = _regions(chosen, request.data_dir, grid, columns)
    return panels


@dataclasses.dataclass(frozen=True)
class _Plane:
    """What all panels show: a grid over two features, some rows with their classes, and the labels, abstention last."""

    lines: list[NDArray[np.float64]]
    points: NDArray[np.float64]
    y: NDArray[np.intp]
    labels: list[str]

    @functools.cached_property
    def colours(self) -> list[str]:
        """A colour for each class: two regions of one colour could not be told apart."""
        k = len(self.labels) - 1
        if k <= len(COLOURS):
            return list(COLOURS[:k])
        import matplotlib as mpl
        from matplotlib.colors import to_hex

        return [to_hex(mpl.colormaps["turbo"](at / (k - 1))) for at in range(k)]

    @functools.cached_property
    def tints(self) -> NDArray[np.float64]:
        """The ground of each label; what lies below shines through, so that it suits light and dark."""
        from matplotlib.colors import to_rgba

        return np.array([to_rgba(colour, 0.42) for colour in (*self.colours, "0.45")])

    def paint(self, axes: Any, codes: NDArray[np.intp]) -> None:
        """Draw the regions of one method, the lines between them and the rows."""
        (left, *_, right), (low, *_, high) = self.lines
        image, k = codes.reshape(_POINTS, _POINTS), len(self.colours)
        ground = {"origin": "lower", "extent": (left, right, low, high), "aspect": "auto", "interpolation": "nearest"}
        axes.imshow(self.tints[np.minimum(image, k)], **ground)
        for code in np.unique(image)[:-1]:
            axes.contour(*self.lines, (image > code).astype(float), levels=[0.5], colors="black", linewidths=0.9)
        kind = {"linestyle": "none", "markersize": 3.4, "markeredgecolor": "black", "markeredgewidth": 0.35}
        for at in range(k):
            axes.plot(*self.points[self.y == at].T, **kind, **self._marks(at))
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(True)

    def _marks(self, at: int) -> dict[str, Any]:
        return {"color": self.colours[at], "marker": look(at)["marker"]}

    def legend(self, canvas: Any, width: float, abstains: bool) -> None:
        """Draw the markers of the classes above the panels, and the ground of abstentions, which has none."""
        from matplotlib.lines import Line2D

        kind: dict[str, Any] = {"linestyle": "none", "markersize": 10, "markeredgewidth": 0.5}
        classes: list[tuple[str, dict[str, Any]]] = [
            (label, self._marks(at) | {"markeredgecolor": "black"}) for at, label in enumerate(self.labels[:-1])
        ]
        keys = [*classes, *([(ABSTAIN, {"marker": "s", "color": self.tints[-1]})] if abstains else [])]
        handles = [Line2D([], [], label=label, **kind, **marks) for label, marks in keys]
        across = max(1, min(5, int(width / (0.6 + 0.14 * max(map(len, self.labels))))))
        how = {"ncols": min(across, len(handles)), "fontsize": 15, "columnspacing": 1.0, "handletextpad": 0.2}
        canvas.legend(handles=handles, loc="outside upper center", **how)


@register("boundaries", beside=("cs", "ww", "llw"))
def boundaries_picture(request: Request) -> Iterator[Picture]:
    """Yield the picture of what each method predicts over two features: a panel for every method and C, with the rows as points."""
    import pandas as pd

    data = Recipe(request.cell, request.data_dir, search=False).dataset
    if data.multilabel:
        raise ConfigError(f"figure=boundaries is for one label a row, {data.name} has several")
    X = dense(data.X)
    columns = two_columns(X, data.y, data.feature_names, request.columns)
    points, names = X[:, columns], [str(data.feature_names[at]) for at in columns]
    lines = []
    for low, high in zip(points.min(axis=0).tolist(), points.max(axis=0).tolist(), strict=True):
        reach = _MARGIN * ((high - low) or 1.0)
        lines.append(np.linspace(low - reach, high + reach, _POINTS))
    grid = np.column_stack([values.ravel() for values in np.meshgrid(*lines)])
    drawn = np.linspace(0, len(points) - 1, min(len(points), _MOST_DRAWN)).astype(int)
    plane = _Plane(lines, points[drawn], data.y[drawn], [*map(str, data.classes), ABSTAIN])
    panels = _panels(request, grid, columns)
    table = pd.DataFrame(dict(zip(names, grid.T, strict=True)))
    for (name, C), codes in panels.items():
        table[name if C is None else f"{name} C={C:g}"] = [plane.labels[code] for code in codes]
    methods = list(dict.fromkeys(name for name, _ in panels))
    panel = max(2.0, 6.0 / len(request.C))
    size = (0.6 + panel * len(request.C), 0.9 + 0.87 * panel * len(methods))

    def paint(canvas: Any) -> None:
        grids = canvas.subplots(len(methods), len(request.C), squeeze=False, sharex=True, sharey=True)
        for axes in grids.ravel():
            axes.set_visible(False)
        for (name, C), codes in panels.items():
            row, column = methods.index(name), 0 if C is None else request.C.index(C)
            axes = grids[row, column]
            axes.set_visible(True)
            plane.paint(axes, codes)
            # the first panel of a row names the method, the first of a column the value
            if column == 0:
                axes.set_ylabel(name, fontsize=15)
            if C is not None and row == next(at for at, method in enumerate(methods) if (method, C) in panels):
                axes.set_title(f"C = {C:g}", fontsize=15)
        canvas.supxlabel(names[0], fontsize=15)
        canvas.supylabel(names[1], fontsize=15)
        plane.legend(canvas, size[0], any((codes >= len(data.classes)).any() for codes in panels.values()))

    yield Picture(f"boundaries_{data.name}", f"{', '.join(methods)} over {names[0]} and {names[1]}", table, size, paint)
