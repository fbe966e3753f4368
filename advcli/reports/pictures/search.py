"""Searches for the worst label of a row: the plane of margin and loss with the steps of each search (choi2018, figures 4.1-4.10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...core.errors import IncompatibleError
from ...evaluation.recipe import ALL, Recipe
from ...learners import Method
from ...learners.structured.spaces.classes import PointSpace
from ...learners.structured.spaces.psi import Psi
from ...learners.structured.spaces.searches import SEARCHES, Found, is_slack, search_of
from ...learners.structured.spaces.space import OutputSpace
from ..drawing import COLOURS
from .base import Picture, Request, register

_ROOM = 0.06  # beyond the points, in parts of their range
_GRID = 241  # points of the contour along each axis
_ROWS = 200  # that are searched for one to show


def searches_of(space: OutputSpace, psi: Psi, wanted: str = "auto") -> dict[str, Found]:
    """Return what searches find, by name: the one that is wanted, else those with steps to show that the space and the surrogate allow."""
    if wanted not in ("auto", "levels"):
        return {wanted: search_of(wanted, space)(space, psi)}
    shown = ("hull", "angular", "bisecting", "binary") if is_slack(psi) else ("hull", "exact")
    return {name: SEARCHES[name](space, psi) for name in shown if set(SEARCHES[name].needs) <= space.offers}


def plane_picture(name: str, space: OutputSpace, psi: Psi, found: Mapping[str, Found]) -> Picture:
    """Return the picture of searches over one space, a panel each.

    Its table has a row for every label that the space can list, else for the best one at every loss, and one for every call of an oracle.
    """
    import pandas as pd

    listed = zip(space.h.tolist(), space.g.tolist(), strict=True) if isinstance(space, PointSpace) else ((p.h, p.g) for p in space.levels())
    rows: list[tuple[Any, ...]] = [("label", None, None, None, None, None, None, h, g, float(psi.value(h, g))) for h, g in listed]
    for search, each in found.items():
        for step, query in enumerate(each.queries, 1):
            at = query.point
            point = (None, None, None) if at is None else (at.h, at.g, float(psi.value(at.h, at.g)))
            rows.append(("call", search, step, query.oracle, query.l, query.a, query.b, *point))
    columns = ["kind", "search", "step", "oracle", "l", "a", "b", "h", "g", "psi"]
    table = pd.DataFrame(rows, columns=columns).astype({"step": "Int64"})
    labels = table[table["kind"] == "label"]
    best = max(each.value for each in found.values())

    def limits(column: str) -> tuple[float, float]:
        # labels far below every level that matters would squeeze the rest
        near = labels[labels["psi"] >= -0.5 * best] if column == "h" else labels
        ends = [*near[column], *table.loc[table["kind"] == "call", column].dropna()]
        room = _ROOM * ((max(ends) - min(ends)) or 1.0)
        return min(ends) - room, max(ends) + room

    horizontal, vertical = limits("h"), limits("g")
    across = 2 if len(found) > 1 else 1
    down = -(-len(found) // across)

    def paint(canvas: Any) -> None:
        grids = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        mesh = np.meshgrid(np.linspace(*horizontal, _GRID), np.linspace(*vertical, _GRID))
        with np.errstate(all="ignore"):
            height = np.asarray(psi.value(*mesh))
        for axes in grids[len(found) :]:
            axes.set_visible(False)
        for axes, (search, each) in zip(grids, found.items(), strict=False):
            axes.plot(labels["h"], labels["g"], ".", color="#b9bec4", markersize=2.5, rasterized=True, zorder=1)
            if best > 0.0:
                axes.contour(*mesh, height, levels=[best], colors=COLOURS[3], linewidths=1.4, zorder=2)
            _paint_calls(axes, each, horizontal, vertical)
            axes.plot(space.truth.h, space.truth.g, "s", color="black", markersize=5, zorder=4)
            axes.plot(
                each.point.h, each.point.g, "*", color=COLOURS[1], markersize=15, markeredgecolor="black", markeredgewidth=0.6, zorder=5
            )
            axes.set_xlim(*horizontal)
            axes.set_ylim(*vertical)
            axes.set_title(f"{search}: {each.value:.3g}, at most {each.upper:.3g}, {each.calls} calls", fontsize=12)
            axes.tick_params(labelsize=11, labelbottom=True)
        for axes in grids[max(0, len(found) - across) : len(found)]:
            axes.set_xlabel("h, the margin over the true label", fontsize=12)
        for axes in grids[::across]:
            axes.set_ylabel("g, the task loss", fontsize=12)

    said = "; ".join(f"{search} {each.value:.4g} in {each.calls} calls" for search, each in found.items())
    return Picture(name, said, table, (5.2 * across, 0.4 + 4.0 * down), paint)


def _paint_calls(axes: Any, found: Found, horizontal: tuple[float, float], vertical: tuple[float, float]) -> None:
    """Draw the line that each call proves, h + l g = K, or the angle that was searched, and number the labels by their calls."""
    numbers: dict[tuple[float, float], list[int]] = {}
    for step, query in enumerate(found.queries, 1):
        at = query.point
        if query.oracle == "cone":
            # rays from (h, g) = (-1, 0)
            for side in (query.a, query.b):
                if 0.0 < side < math.inf:
                    axes.plot([-1.0, horizontal[1]], [0.0, side * (horizontal[1] + 1.0)], color=COLOURS[2], linewidth=0.8, zorder=2)
        elif at is not None:
            level = np.array(vertical)
            ends = (horizontal, (at.g, at.g)) if math.isinf(query.l) else (at.h + query.l * (at.g - level), level)
            axes.plot(*ends, color=COLOURS[0], linewidth=0.8, zorder=2)
        if at is not None:
            numbers.setdefault((at.h, at.g), []).append(step)
    for (h, g), steps in numbers.items():
        axes.plot(h, g, "o", color=COLOURS[0], markersize=6, markeredgecolor="black", markeredgewidth=0.5, zorder=4)
        text = ", ".join(map(str, steps[:3])) + (", ..." if len(steps) > 3 else "")
        # away from the other labels, but inside the panel
        last = h > 0.2 * horizontal[0] + 0.8 * horizontal[1]
        axes.annotate(
            text, (h, g), xytext=(-7 if last else 7, 5), textcoords="offset points", ha="right" if last else "left", fontsize=11, zorder=6
        )


@register("search")
def search_picture(request: Request) -> Iterator[Picture]:
    """Yield the searches at a row of a fit to all rows: of the first of them that whose bound lies farthest above its best label."""
    cell = request.cell
    if not hasattr(Method.of(cell).learner, "spaces"):
        raise IncompatibleError("figure=search", "labels with a structure", f"loss={cell.loss['name']} has none: choose loss=sets")
    recipe = Recipe(cell, request.data_dir)
    everything = recipe.part()
    fitted = recipe.fit(everything, recipe.search(everything, ALL).hyper, ALL)
    learner: Any = fitted.learner
    psi = learner.psi()
    row, widest = 0, -math.inf
    few = everything[: min(_ROWS, everything.X.shape[0])]
    for at, space in enumerate(learner.spaces(fitted.rows(few.X), few.y)):
        gap = SEARCHES["hull"](space, psi).upper - search_of("auto", space)(space, psi).value
        if gap > widest:
            row, widest, chosen = at, gap, space
    name = f"search_{recipe.dataset.name}_{cell.loss['name']}_{psi.name}"
    picture = plane_picture(name, chosen, psi, searches_of(chosen, psi, learner.search))
    yield Picture(picture.name, f"row {row + 1}: {picture.said}", picture.table, picture.size, picture.paint)
