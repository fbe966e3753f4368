"""Surrogates of two classes along the margin (section 3 of Fathony et al. 2018; their hinges in Bartlett and Wegkamp 2008)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...learners.options import OF_THE_FIT, own_options
from ...losses import loss_names, make_loss
from ..drawing import COLOURS
from .base import Picture, Request, register

_EXTENT, _STEP = 3.0, 0.01
_DASHES = ("-", (0, (5, 2)), "-.", (0, (1, 1.2)), (0, (8, 2, 2, 2)), (0, (3, 1)))
_ALPHAS = (0.2, 0.5)


def margin_curves(losses: Any) -> Any:
    """Return the values of surrogates of two classes along the margin f_y - f_other: columns loss, margin, value; logistic beside them.

    ``losses`` are pairs of a label and a `Loss` made for two classes; the true class is the first.
    """
    import pandas as pd

    margin = np.round(np.arange(-_EXTENT, _EXTENT + _STEP / 2, _STEP), 9)
    F, y = np.column_stack([0.5 * margin, -0.5 * margin]), np.zeros(len(margin), dtype=np.intp)
    parts = [pd.DataFrame({"loss": label, "margin": margin, "value": loss.value(F, y)}) for label, loss in losses]
    parts.append(pd.DataFrame({"loss": "logistic", "margin": margin, "value": np.logaddexp(0.0, -margin)}))
    parts.append(pd.DataFrame({"loss": "error", "margin": margin, "value": (margin < 0) + 0.0}))
    return pd.concat(parts, ignore_index=True)


@register("loss_curves", beside=("zero_one", "cs", "abstain"))
def curves_picture(request: Request) -> Iterator[Picture]:
    """Yield the surrogates of two classes over the margin, with the logistic loss and the error."""
    losses = []
    for options in request.losses:
        name, own = str(options["name"]), own_options(options, OF_THE_FIT)
        if name not in loss_names():
            continue
        if "alpha" in own:
            both = dict.fromkeys([*_ALPHAS, own["alpha"]])
            losses += [(f"{name}, alpha = {alpha:g}", make_loss(name, 2, **{**own, "alpha": alpha})) for alpha in both]
        else:
            losses.append((name, make_loss(name, 2, **own)))
    table = margin_curves(losses)

    def paint(canvas: Any) -> None:
        axes = canvas.add_subplot()
        for at, (label, part) in enumerate(table.groupby("loss", sort=False)):
            if label == "error":
                axes.plot(part["margin"], part["value"], color="#777777", linewidth=1.2, label=label, zorder=1, drawstyle="steps-post")
            else:
                axes.plot(
                    part["margin"],
                    part["value"],
                    color=COLOURS[at % len(COLOURS)],
                    linestyle=_DASHES[at % len(_DASHES)],
                    linewidth=2.2,
                    label=label,
                )
        axes.set_xlabel("margin: score of the true class less that of the other", fontsize=12)
        axes.set_ylabel("loss", fontsize=12)
        axes.tick_params(labelsize=11)
        axes.set_xlim(-2.5, 2.5)
        axes.set_ylim(0.0, 3.0)
        axes.grid()
        axes.legend(fontsize=11, loc="upper right", handlelength=3.4)

    yield Picture("loss_curves", f"{table['loss'].nunique()} curves of two classes", table, (6.0, 4.2), paint)
