"""The critical-difference diagram."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...metrics import title
from ..drawing import draw, look
from ..formats.document import Figure, metric_word
from ..summary import in_order
from .base import Material, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@register("ranks", section="across", needs=("dataset", "method", "value"))
def ranks(material: Material) -> Iterator[Figure]:
    """Draw the critical-difference diagram (Demsar 2006, figure 1), unless there is too little data for it."""
    across, alpha = material.across, material.alpha
    if across.friedman is None:
        return
    import scikit_posthocs

    order = np.argsort(across.mean_ranks, kind="stable")
    names = [across.methods[at] for at in order]
    places = pd.Series(across.mean_ranks[order], index=names)
    known = in_order(material.runs["method"])  # colours as in other figures
    significance = pd.DataFrame(across.nemenyi[np.ix_(order, order)], index=names, columns=names)

    def paint(axes: Axes) -> None:
        scikit_posthocs.critical_difference_diagram(
            places,
            significance,
            alpha=alpha,
            ax=axes,
            label_fmt_left="{label} ({rank:.2f}) ",
            label_fmt_right=" ({rank:.2f}) {label}",
            color_palette={name: str(look(known.index(name))["color"]) for name in names},
            crossbar_props={"color": "black", "linewidth": 2.5},
            marker_props={"zorder": 3},
            text_h_margin=0.03,
        )
        axes.spines["top"].set_visible(True)
        axes.set_xticks(range(1, len(names) + 1))
        axes.set_xlim(0.9, len(names) + 0.1)
        # own bar for the critical difference: the library's lies on the labels of the ticks
        left, right, height = 1.0, 1.0 + across.critical_difference, 2.0
        axes.plot([left, left, left, right, right, right], height + np.array([0.2, -0.2, 0, 0, -0.2, 0.2]), color="black", linewidth=1)
        axes.text((left + right) / 2, height + 0.3, f"critical difference {across.critical_difference:.2f}", ha="center", va="bottom")
        axes.set_ylim(top=height + 1)

    caption = (
        f"Critical-difference diagram, {title(across.metric)}: mean ranks over {len(across.datasets)} data sets (1 is the best). "
        "A bar joins methods that the Nemenyi test does not tell apart: critical difference "
        f"{across.critical_difference:.2f}, alpha = {alpha:g}."
    )
    name = f"ranks-{metric_word(across.metric)}"
    yield draw(name, caption, (7.0, 1.1 + 0.24 * len(names)), paint)
