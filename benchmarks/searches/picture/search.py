"""Searches for the worst label of a row: the plane of margin and loss with the steps of each search (choi2018, figures 4.1-4.10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from advcli.core.errors import IncompatibleError
from advcli.evaluation.recipe import ALL, Recipe
from advcli.learners import Method
from advcli.learners.structured.spaces.psi import Psi
from advcli.learners.structured.spaces.searches import SEARCHES, SearchResult, is_slack, search_of
from advcli.learners.structured.spaces.space import LabelSpace, PointSpace
from advcli.reports.drawing import COLOURS
from advcli.reports.pictures import Picture, Request, register

_ROOM = 0.06  # beyond the points, in parts of their range
_GRID = 241  # points of the contour along each axis
_ROWS = 200  # that are searched for one to show
_COLUMNS = ["kind", "search", "step", "oracle", "l", "a", "b", "h", "g", "psi"]


def results_of(space: LabelSpace, psi: Psi, wanted: str = "auto") -> dict[str, SearchResult]:
    """Return results by the names of searches: the one that is wanted, else those with steps to show that space and surrogate allow."""
    if wanted not in ("auto", "levels"):
        return {wanted: search_of(wanted, space)(space, psi)}
    shown = ("hull", "angular", "bisecting", "binary") if is_slack(psi) else ("hull", "exact")
    return {name: SEARCHES.get(name)(space, psi) for name in shown if set(SEARCHES.get(name).needs) <= space.offers}


def table_of(space: LabelSpace, psi: Psi, results: Mapping[str, SearchResult]) -> pd.DataFrame:
    """Return a row for every label that the space can list, else for the best one at every loss, and one for every call of an oracle."""
    listed = zip(space.h.tolist(), space.g.tolist(), strict=True) if isinstance(space, PointSpace) else ((p.h, p.g) for p in space.levels())
    rows: list[tuple[Any, ...]] = [("label", None, None, None, None, None, None, h, g, float(psi.value(h, g))) for h, g in listed]
    for search, result in results.items():
        for step, query in enumerate(result.queries, 1):
            point = query.point
            place = (None, None, None) if point is None else (point.h, point.g, float(psi.value(point.h, point.g)))
            rows.append(("call", search, step, query.oracle, query.l, query.a, query.b, *place))
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"step": "Int64"})


def _limits(table: pd.DataFrame, column: str, best: float) -> tuple[float, float]:
    """Return the ends of an axis."""
    labels = table[table["kind"] == "label"]
    # labels far below every level that matters would squeeze the rest
    near = labels[labels["psi"] >= -0.5 * best] if column == "h" else labels
    ends = [*near[column], *table.loc[table["kind"] == "call", column].dropna()]
    room = _ROOM * ((max(ends) - min(ends)) or 1.0)
    return min(ends) - room, max(ends) + room


def plane_picture(name: str, space: LabelSpace, psi: Psi, results: Mapping[str, SearchResult]) -> Picture:
    """Return the picture of searches over one space, a panel each, with the table of `table_of`."""
    table, best = table_of(space, psi, results), max(result.value for result in results.values())
    labels = table[table["kind"] == "label"]
    horizontal, vertical = _limits(table, "h", best), _limits(table, "g", best)
    across = 2 if len(results) > 1 else 1
    down = -(-len(results) // across)

    def paint(canvas: Any) -> None:
        grids = canvas.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        mesh = np.meshgrid(np.linspace(*horizontal, _GRID), np.linspace(*vertical, _GRID))
        with np.errstate(all="ignore"):
            height = np.asarray(psi.value(*mesh))
        for axes in grids[len(results) :]:
            axes.set_visible(False)
        for axes, (search, result) in zip(grids, results.items(), strict=False):
            axes.plot(labels["h"], labels["g"], ".", color="#b9bec4", markersize=2.5, rasterized=True, zorder=1)
            if best > 0.0:
                axes.contour(*mesh, height, levels=[best], colors=COLOURS[3], linewidths=1.4, zorder=2)
            _paint_calls(axes, result, horizontal, vertical)
            axes.plot(space.truth.h, space.truth.g, "s", color="black", markersize=5, zorder=4)
            star: dict[str, Any] = {"color": COLOURS[1], "markersize": 15, "markeredgecolor": "black", "markeredgewidth": 0.6}
            axes.plot(result.point.h, result.point.g, "*", **star, zorder=5)
            axes.set_xlim(*horizontal)
            axes.set_ylim(*vertical)
            axes.set_title(f"{search}: {result.value:.3g}, at most {result.upper:.3g}, {result.calls} calls", fontsize=12)
            axes.tick_params(labelsize=11, labelbottom=True)
        for axes in grids[max(0, len(results) - across) : len(results)]:
            axes.set_xlabel("h, the margin over the true label", fontsize=12)
        for axes in grids[::across]:
            axes.set_ylabel("g, the task loss", fontsize=12)

    said = "; ".join(f"{search} {result.value:.4g} in {result.calls} calls" for search, result in results.items())
    return Picture(name, said, table, (5.2 * across, 0.4 + 4.0 * down), paint)


def _paint_calls(axes: Any, result: SearchResult, horizontal: tuple[float, float], vertical: tuple[float, float]) -> None:
    """Draw the line that each call proves, h + l g = K, or the angle that was searched, and number the labels by their calls."""
    numbers: dict[tuple[float, float], list[int]] = {}
    for step, query in enumerate(result.queries, 1):
        point = query.point
        if query.oracle == "cone":
            # rays from (h, g) = (-1, 0)
            for side in (query.a, query.b):
                if 0.0 < side < math.inf:
                    axes.plot([-1.0, horizontal[1]], [0.0, side * (horizontal[1] + 1.0)], color=COLOURS[2], linewidth=0.8, zorder=2)
        elif point is not None:
            level = np.array(vertical)
            ends = (horizontal, (point.g, point.g)) if math.isinf(query.l) else (point.h + query.l * (point.g - level), level)
            axes.plot(*ends, color=COLOURS[0], linewidth=0.8, zorder=2)
        if point is not None:
            numbers.setdefault((point.h, point.g), []).append(step)
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
        gap = SEARCHES.get("hull")(space, psi).upper - search_of("auto", space)(space, psi).value
        if gap > widest:
            row, widest, chosen = at, gap, space
    name = f"search_{recipe.dataset.name}_{cell.loss['name']}_{psi.name}"
    picture = plane_picture(name, chosen, psi, results_of(chosen, psi, learner.search))
    yield Picture(picture.name, f"row {row + 1}: {picture.said}", picture.table, picture.size, picture.paint)
