"""Contours of a surrogate of three classes (Figures 2-4 and 7-10 of Fathony et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...learners.options import OF_THE_FIT, own_options
from ...losses import make_loss
from ...losses.surfaces import loss_surface, paint_surface
from .base import Picture, Request, register


@register("loss_surface")
def surface_pictures(request: Request) -> Iterator[Picture]:
    """Yield the contour of the loss over two potential differences, for each true label."""
    import pandas as pd

    loss = make_loss(request.cell.loss["name"], 3, **own_options(request.cell.loss, OF_THE_FIT))
    for truth in range(3):
        surface = loss_surface(loss, truth)

        def paint(canvas: Any, surface: Any = surface) -> None:
            paint_surface(canvas.add_subplot(), loss, surface)

        first, second = np.meshgrid(surface.first, surface.second)
        columns = [f"f_{label + 1} - f_{truth + 1}" for label in surface.labels]
        numbers = [first.ravel(), second.ravel(), surface.value.ravel(), surface.piece.ravel()]
        table = pd.DataFrame(dict(zip([*columns, "value", "piece"], numbers, strict=True)))
        yield Picture(f"loss_surface_{loss.name}_{truth + 1}", f"y = {truth + 1}, {surface.pieces} linear pieces", table, (5.2, 4.4), paint)
