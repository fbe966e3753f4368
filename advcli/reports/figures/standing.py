"""Figure of mean ranks and improvability with bootstrap intervals over data sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...metrics import title
from ..drawing import WIDTH_INCHES, Axes, draw, look, name_rows
from ..formats.document import Figure, metric_word
from ..standing import LEVEL, standings
from ..summary import in_order
from .base import Material, register


@register("standing", section="across", needs=("dataset", "method", "value"))
def standing(material: Material) -> Iterator[Figure]:
    """Draw mean ranks, and improvability where it is known, with their intervals, unless there are too few data sets."""
    found = standings(material.across, material.alpha)
    if not found:
        return
    methods = in_order(material.runs["method"])  # colours as in other figures
    drawn = [("mean rank", 1.0, [one.rank for one in found])]
    gaps = [one.improvability for one in found if one.improvability is not None]
    if gaps:
        drawn.append(("improvability in percent", 100.0, gaps))

    def paint(panels: list[Axes]) -> None:
        for axes, (label, factor, intervals) in zip(panels, drawn, strict=True):
            for place, (one, parts) in enumerate(zip(found, intervals, strict=True)):
                middle, low, high = factor * np.array(parts)
                style = {"markersize": 5, "linewidth": 1.4, "capsize": 2.5, **look(methods.index(one.method))}
                axes.errorbar(middle, place, xerr=[[middle - low], [high - middle]], **style)
            name_rows(axes, [one.method for one in found])
            axes.set_xlabel(label)
        for axes in panels[1:]:
            axes.set_yticklabels([])

    caption = (
        f"Over {len(material.across.datasets)} data sets, {title(material.metric)}: {' and '.join(label for label, *_ in drawn)} of every "
        f"method with {100 * LEVEL:g} % bootstrap intervals; further left is better."
    )
    size = (WIDTH_INCHES, 0.9 + 0.27 * len(found))
    yield draw(f"standing-{metric_word(material.metric)}", caption, size, paint, (1, len(drawn)))
