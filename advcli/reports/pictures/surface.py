"""Contours of a surrogate of three classes over two score differences psi_j = f_j - f_y (Figures 2-4 and 7-10 of Fathony et al. 2018).

A surrogate that is unchanged by adding a constant to all scores is a function of these two. The adversarial surrogates are the maximum of
finitely many planes there; `pieces` counts the planes that the oracle meets on the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError
from ...core.typing import Array
from ...learners.options import OF_THE_FIT, own_options
from ...losses import Loss, make_loss
from .base import Picture, Request, register

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Surface(NamedTuple):
    """A surrogate of three classes on a square grid."""

    axis: Array  # (m,): the values of psi for either of the two other labels
    value: Array  # (m, m): S at psi of the lower label = column, of the higher label = row
    piece: NDArray[np.intp]  # (m, m): number of the linear piece at each point, from 0
    labels: tuple[int, int]  # the two other labels, 0-based
    truth: int  # y, 0-based

    @property
    def pieces(self) -> int:
        """Number of linear pieces that the grid meets."""
        return int(self.piece.max()) + 1

    @property
    def differences(self) -> list[str]:
        """What the columns and the rows of the grid stand for."""
        return [f"f_{label + 1} - f_{self.truth + 1}" for label in self.labels]


def loss_surface(loss: Loss, truth: int = 0, extent: float = 3.0, points: int = 241) -> Surface:
    """Evaluate a loss of three classes at scores with f_y = 0 and the other two from -extent to extent."""
    if loss.n_classes != 3:
        raise ConfigError(f"a loss surface needs three classes, loss={loss.name} was made for {loss.n_classes}")
    if not 0 <= truth < 3:
        raise ConfigError(f"the true label of a loss surface is 0, 1 or 2, got {truth}")
    lower, higher = (j for j in range(3) if j != truth)
    axis = np.linspace(-extent, extent, points)
    F = np.zeros((points * points, 3))
    # off the kinks by an irrational hair, so that every grid point lies on one piece
    F[:, lower] = np.tile(axis, points) + 1e-7 * np.sqrt(2.0)
    F[:, higher] = np.repeat(axis, points) + 1e-7 * np.sqrt(3.0)
    answer = loss.oracle(F, np.full(len(F), truth, dtype=np.intp))
    planes = np.round(np.column_stack([answer.R, answer.offset]), 9) + 0.0
    _, piece = np.unique(planes, axis=0, return_inverse=True)
    shape = (points, points)
    return Surface(axis, answer.value.reshape(shape), piece.reshape(shape).astype(np.intp), (lower, higher), truth)


def _paint(axes: Axes, loss: Loss, surface: Surface) -> None:
    """Draw the contour lines over the linear pieces."""
    import matplotlib as mpl

    ends = surface.axis[0], surface.axis[-1]
    # neighbouring pieces in quiet, clearly different tints; the contour lines carry the values
    tint = mpl.colormaps["Pastel1"](np.arange(surface.pieces) % 9)
    axes.imshow(tint[surface.piece], origin="lower", extent=(*ends, *ends), interpolation="nearest", aspect="equal")
    lines = axes.contour(surface.axis, surface.axis, surface.value, levels=14, colors="0.25", linewidths=0.9)
    axes.clabel(lines, fontsize=8, fmt="%.3g")
    axes.set_xlabel(surface.differences[0], fontsize=12)
    axes.set_ylabel(surface.differences[1], fontsize=12)
    axes.tick_params(labelsize=11)
    axes.set_title(f"{loss.name}, three classes, y = {surface.truth + 1}: {surface.pieces} linear pieces", fontsize=11)


@register("loss_surface")
def surface_pictures(request: Request) -> Iterator[Picture]:
    """Yield the contour of the loss over two score differences, for each true label."""
    import pandas as pd

    loss = make_loss(request.cell.loss["name"], 3, **own_options(request.cell.loss, OF_THE_FIT))
    for truth in range(3):
        surface = loss_surface(loss, truth)

        def paint(canvas: Any, surface: Surface = surface) -> None:
            _paint(canvas.add_subplot(), loss, surface)

        first, second = np.meshgrid(surface.axis, surface.axis)
        numbers = [first.ravel(), second.ravel(), surface.value.ravel(), surface.piece.ravel()]
        table = pd.DataFrame(dict(zip([*surface.differences, "value", "piece"], numbers, strict=True)))
        yield Picture(f"loss_surface_{loss.name}_{truth + 1}", f"y = {truth + 1}, {surface.pieces} linear pieces", table, (5.2, 4.4), paint)
