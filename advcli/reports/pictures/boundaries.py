"""Where methods change their prediction, over two features: one row of panels a method, one column a value of C."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError, nearest
from ...core.hyper import STRENGTH
from ...evaluation.cell import Cell
from ...evaluation.recipe import ALL, Recipe
from ...learners import Method
from ...losses.matrices import ABSTAIN
from ..drawing import COLOURS, look
from .base import Picture, Request, register

_POINTS = 161  # of the grid along each feature
_MARGIN = 0.06  # how far the grid goes beyond the rows, in parts of their range
_MOST_DRAWN = 500  # rows drawn as points


def two_columns(X: Any, y: NDArray[np.intp], names: tuple[str, ...], wanted: tuple[str, ...] | None) -> list[int]:
    """Return the positions of two features: those that are named, else the two whose class means differ most (largest F statistic)."""
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
            raise ConfigError(f"draw.columns: no feature {name!r}; {nearest(name, names)}")
    return [names.index(name) for name in wanted]


def _at(cell: Cell, C: float) -> Cell:
    """Return the cell at a value of C: the package's, or an estimator's own parameter of that name; as it is without one."""
    method = Method.of(cell)
    if STRENGTH in method.searched:
        return dataclasses.replace(cell, hyper={**{name: value for name, value in cell.hyper.items() if name != "lambda"}, "C": C})
    if "loss.options.C" in method.candidates:
        return dataclasses.replace(cell, loss={**cell.loss, "options": {**(cell.loss.get("options") or {}), "C": C}})
    return cell


def regions(cell: Cell, request: Request, grid: NDArray[np.float64], columns: list[int]) -> NDArray[np.intp]:
    """Return the predicted codes at the points (m, 2) of a grid, of a fit to all rows in two features."""
    recipe = Recipe(cell, request.data_dir)
    data = recipe.dataset
    recipe.dataset = dataclasses.replace(
        data, X=_dense(data.X)[:, columns], feature_names=tuple(data.feature_names[at] for at in columns), encoding=None, cells=None
    )
    everything = recipe.part()
    fitted = recipe.fit(everything, recipe.search(everything, ALL).hyper, ALL)
    return np.asarray(fitted.learner.predict_codes(fitted.rows(grid)))


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


@register("boundaries", beside=("cs", "ww", "llw"))
def boundaries_picture(request: Request) -> Iterator[Picture]:
    """Yield the regions of the predictions of every method at every C over two features, with the rows."""
    import pandas as pd

    recipe = Recipe(request.cell, request.data_dir, search=False)
    data = recipe.dataset
    if data.multilabel:
        raise ConfigError(f"figure=boundaries is for one label a row, {data.name} has several")
    X = _dense(data.X)
    columns = two_columns(X, data.y, data.feature_names, request.columns)
    points, names = X[:, columns], [str(data.feature_names[at]) for at in columns]
    axes_of = []
    for values in points.T:
        low, high = float(values.min()), float(values.max())
        reach = _MARGIN * ((high - low) or 1.0)
        axes_of.append(np.linspace(low - reach, high + reach, _POINTS))
    first, second = np.meshgrid(*axes_of)
    grid = np.column_stack([first.ravel(), second.ravel()])
    labels = [*map(str, data.classes), ABSTAIN]
    panels: dict[tuple[str, float | None], NDArray[np.intp]] = {}
    for loss in request.losses:
        for C in request.C:
            cell = dataclasses.replace(request.cell, loss=loss)
            chosen = _at(cell, C)
            panels[str(loss["name"]), None if chosen is cell else C] = regions(chosen, request, grid, columns)
            if chosen is cell:
                break  # nothing that C could change
    table = pd.DataFrame({names[0]: grid[:, 0], names[1]: grid[:, 1]})
    for (name, at_C), codes in panels.items():
        table[name if at_C is None else f"{name} C={at_C:g}"] = [labels[code] for code in codes]
    methods = list(dict.fromkeys(name for name, _ in panels))
    shown = np.linspace(0, len(points) - 1, min(len(points), _MOST_DRAWN)).astype(int)
    colours = _colours(len(data.classes))
    tints = np.array([*map(_rgb, colours), (0.45, 0.45, 0.45)])
    tints = 1.0 - 0.42 * (1.0 - tints)  # on white

    panel = max(2.0, 6.0 / len(request.C))
    size = (0.6 + panel * len(request.C), 0.9 + 0.87 * panel * len(methods))
    across = max(1, min(5, int(size[0] / (0.6 + 0.14 * max(map(len, labels))))))  # entries of a line of the legend

    def paint(canvas: Any) -> None:
        grids = canvas.subplots(len(methods), len(request.C), squeeze=False, sharex=True, sharey=True)
        extent = (axes_of[0][0], axes_of[0][-1], axes_of[1][0], axes_of[1][-1])
        for axes in grids.ravel():
            axes.set_visible(False)
        for (name, C), codes in panels.items():
            column = 0 if C is None else request.C.index(C)
            axes = grids[methods.index(name), column]
            axes.set_visible(True)
            image = codes.reshape(_POINTS, _POINTS)
            axes.imshow(tints[np.minimum(image, len(data.classes))], origin="lower", extent=extent, aspect="auto", interpolation="nearest")
            for code in np.unique(image)[:-1]:
                axes.contour(axes_of[0], axes_of[1], (image > code).astype(float), levels=[0.5], colors="black", linewidths=0.9)
            for at in range(len(data.classes)):
                of = shown[data.y[shown] == at]
                colour, marker = colours[at], look(at)["marker"]
                axes.plot(
                    *points[of].T,
                    linestyle="none",
                    marker=marker,
                    color=colour,
                    markersize=3.4,
                    markeredgecolor="black",
                    markeredgewidth=0.35,
                )
            # the first panel of a row names the method, the first of a column the value
            if column == 0:
                axes.set_ylabel(name, fontsize=15)
            if methods.index(name) == next(at for at, each in enumerate(methods) if (each, C) in panels) and C is not None:
                axes.set_title(f"C = {C:g}", fontsize=15)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(True)
        canvas.supxlabel(names[0], fontsize=15)
        canvas.supylabel(names[1], fontsize=15)
        keys = [(label, tints[at]) for at, label in enumerate(labels[:-1])]
        if any((codes >= len(data.classes)).any() for codes in panels.values()):
            keys.append((ABSTAIN, tints[-1]))
        handles = [_key(label, tint, (colours[at], at) if at < len(data.classes) else None) for at, (label, tint) in enumerate(keys)]
        canvas.legend(
            handles=handles, loc="outside upper center", ncols=min(across, len(handles)), fontsize=15, columnspacing=1.0, handletextpad=0.2
        )

    yield Picture(f"boundaries_{data.name}", f"{', '.join(methods)} over {names[0]} and {names[1]}", table, size, paint)


def _colours(k: int) -> list[str]:
    """Return a colour for each of k classes: two regions of one colour could not be told apart."""
    if k <= len(COLOURS):
        return list(COLOURS[:k])
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    return [to_hex(mpl.colormaps["turbo"](at / (k - 1))) for at in range(k)]


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _key(label: str, tint: Any, of_class: tuple[str, int] | None) -> Any:
    """Return an entry of the legend: the marker of a class, or the ground of what is none."""
    from matplotlib.lines import Line2D

    shown: Mapping[str, Any] = {"marker": "s", "color": tint}
    if of_class is not None:
        shown = {"marker": look(of_class[1])["marker"], "color": of_class[0], "markeredgecolor": "black"}
    return Line2D([], [], linestyle="none", markersize=10, label=label, markeredgewidth=0.5, **shown)
