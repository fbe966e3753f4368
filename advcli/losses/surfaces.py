"""Loss surfaces: a surrogate over two potential differences, as Figures 2-4 and 7-10 of Fathony et al. 2018 draw them.

With three classes a surrogate that is unchanged by adding a constant to all scores is a function of two differences psi_j = f_j - f_y. The
adversarial surrogates are the maximum of finitely many planes there; `pieces` counts those that the oracle meets on the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ConfigError
from ..core.typing import Array
from . import Loss

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Surface:
    """A surrogate of three classes on a square grid of potential differences.

    Attributes
    ----------
    first, second : ndarray (m,)
        Values of psi for the lower and the higher of the two other labels.
    value : ndarray (m, m)
        S at (psi of the lower label = column, psi of the higher label = row).
    piece : ndarray (m, m)
        Number of the linear piece at each point, from 0.
    labels : (int, int)
        The two other labels, 0-based.
    truth : int
        The true label y, 0-based.
    """

    first: Array
    second: Array
    value: Array
    piece: NDArray[np.intp]
    labels: tuple[int, int]
    truth: int

    @property
    def pieces(self) -> int:
        """Number of linear pieces that the grid meets."""
        return int(self.piece.max()) + 1


def loss_surface(loss: Loss, truth: int = 0, extent: float = 3.0, points: int = 241) -> Surface:
    """Evaluate ``loss`` (three classes) at scores with f_y = 0 and the other two from -extent to extent."""
    if loss.n_classes != 3:
        raise ConfigError(f"a loss surface needs three classes, loss={loss.name} was made for {loss.n_classes}")
    if not 0 <= truth < 3:
        raise ConfigError(f"the true label of a loss surface is 0, 1 or 2, got {truth}")
    others = [j for j in range(3) if j != truth]
    axis = np.linspace(-extent, extent, points)
    F = np.zeros((points * points, 3))
    F[:, others[0]] = np.tile(axis, points)
    F[:, others[1]] = np.repeat(axis, points)
    # off the kinks by an irrational hair, so that every grid point lies on one piece
    F[:, others[0]] += 1e-7 * np.sqrt(2.0)
    F[:, others[1]] += 1e-7 * np.sqrt(3.0)
    answer = loss.oracle(F, np.full(len(F), truth, dtype=np.intp))
    planes = np.round(np.column_stack([answer.R, answer.offset]), 9) + 0.0
    _, piece = np.unique(planes, axis=0, return_inverse=True)
    shape = (points, points)
    return Surface(axis, axis, answer.value.reshape(shape), piece.reshape(shape).astype(np.intp), (others[0], others[1]), truth)


def paint_surface(axes: Axes, loss: Loss, surface: Surface) -> None:
    """Draw the contour lines over the linear pieces."""
    import matplotlib as mpl

    edges = (surface.first[0], surface.first[-1], surface.second[0], surface.second[-1])
    # neighbouring pieces in quiet, clearly different tints; the contour lines carry the values
    tint = mpl.colormaps["Pastel1"](np.arange(surface.pieces) % 9)
    axes.imshow(tint[surface.piece], origin="lower", extent=edges, interpolation="nearest", aspect="equal")
    lines = axes.contour(surface.first, surface.second, surface.value, levels=14, colors="0.25", linewidths=0.9)
    axes.clabel(lines, fontsize=8, fmt="%.3g")
    axes.set_xlabel(f"f_{surface.labels[0] + 1} - f_{surface.truth + 1}", fontsize=12)
    axes.set_ylabel(f"f_{surface.labels[1] + 1} - f_{surface.truth + 1}", fontsize=12)
    axes.tick_params(labelsize=11)
    axes.set_title(f"{loss.name}, three classes, y = {surface.truth + 1}: {surface.pieces} linear pieces", fontsize=11)
