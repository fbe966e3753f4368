"""Pictures of losses, as Fathony et al. 2018 have them.

Surrogates of two classes along the margin (section 3; their hinges in Bartlett and Wegkamp 2008), loss matrices as heat maps (sections
3.1-3.5); and contours of a surrogate of three classes over two score differences psi_j = f_j - f_y (Figures 2-4 and 7-10). A surrogate that
is unchanged by adding a constant to all scores is a function of these two. The adversarial surrogates are the maximum of finitely many
planes there; `Surface.pieces` counts the planes that the oracle meets on the grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError, IncompatibleError
from ...core.typing import Array
from ...evaluation.recipe import Recipe
from ...learners import Method
from ...learners.options import OF_THE_FIT, own_options
from ...losses import AdversarialLoss, Loss, loss_class, loss_names, make_loss, registry
from ...losses.matrices import ABSTAIN
from ..drawing import COLOURS, Axes, label_axes
from .base import Picture, Request, register

_EXTENT, _STEP = 3.0, 0.01  # of the margin
_DASHES = ("-", (0, (5, 2)), "-.", (0, (1, 1.2)), (0, (8, 2, 2, 2)), (0, (3, 1)))
_ALPHAS = (0.2, 0.5)
_MOST_WRITTEN = 12  # rows or columns of a matrix up to which the costs are printed in their cells


def _margin_curves(losses: Iterable[tuple[str, Any]]) -> Any:
    """Return the values of labelled losses of two classes along the margin f_y - f_other, with the logistic loss and the error."""
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
        name, arguments = str(options["name"]), own_options(options, OF_THE_FIT)
        if name not in loss_names():
            continue
        if "alpha" in arguments:
            alphas = dict.fromkeys([*_ALPHAS, arguments["alpha"]])
            losses += [(f"{name}, alpha = {alpha:g}", make_loss(name, 2, **arguments | {"alpha": alpha})) for alpha in alphas]
        else:
            losses.append((name, make_loss(name, 2, **arguments)))
    table = _margin_curves(losses)

    def paint(canvas: Any) -> None:
        axes = canvas.add_subplot()
        for at, (label, part) in enumerate(table.groupby("loss", sort=False)):
            if label == "error":
                axes.plot(part["margin"], part["value"], color="#777777", linewidth=1.2, label=label, zorder=1, drawstyle="steps-post")
            else:
                kind = {"color": COLOURS[at % len(COLOURS)], "linestyle": _DASHES[at % len(_DASHES)], "linewidth": 2.2}
                axes.plot(part["margin"], part["value"], label=label, **kind)
        label_axes(axes, "margin: score of the true class less that of the other", "loss")
        axes.set(xlim=(-2.5, 2.5), ylim=(0.0, 3.0))
        axes.grid()
        axes.legend(fontsize=11, loc="upper right", handlelength=3.4)

    yield Picture("loss_curves", f"{table['loss'].nunique()} curves of two classes", table, (6.0, 4.2), paint)


@register("loss_matrix")
def matrix_picture(request: Request) -> Iterator[Picture]:
    """Yield the matrix of the chosen adversarial loss: a row for each prediction, a column for each true class."""
    import pandas as pd

    options, k = request.cell.loss, request.classes
    names = [str(at + 1) for at in range(k)]
    if options["name"] not in registry or not issubclass(loss_class(options["name"]), AdversarialLoss):
        raise IncompatibleError("figure=loss_matrix", "an adversarial loss", f"loss={options['name']} is no game over a matrix")
    costs = (own_options(options, OF_THE_FIT).get("matrix") or [[]])[0]
    if Method.of(request.cell).learner.needs(options) & {"classes", "hierarchy"}:
        recipe = Recipe(request.cell, request.data_dir, search=False)
        options, names = recipe.cell.loss, [str(name) for name in recipe.dataset.classes]
    elif len(costs):
        names = [str(at + 1) for at in range(len(costs))]
    loss: Any = make_loss(options["name"], len(names), **own_options(options, OF_THE_FIT))
    matrix = np.asarray(loss.matrix, dtype=np.float64)
    extra = [f"+ {at + 1}" for at in range(len(matrix) - len(names))]
    rows = list(loss.row_names or [*names, *([ABSTAIN] if len(extra) == 1 else extra)])[: len(matrix)]

    table = pd.DataFrame([(rows[i], names[j], cost) for (i, j), cost in np.ndenumerate(matrix)], columns=["prediction", "truth", "cost"])
    size = (5.2, min(0.7 + 4.2 * len(rows) / len(names), 7.0))
    words = f"{len(rows)} predictions, {len(names)} classes"
    yield Picture(f"loss_matrix_{loss.name}", words, table, size, lambda canvas: _paint_matrix(canvas, matrix, rows, names))


def _paint_matrix(canvas: Any, matrix: Any, rows: list[str], names: list[str]) -> None:
    axes = canvas.add_subplot()
    image = axes.imshow(matrix, cmap="YlGnBu", vmin=min(0.0, float(matrix.min())), aspect="equal")
    middle = 0.5 * (image.norm.vmin + image.norm.vmax)
    if max(matrix.shape) <= _MOST_WRITTEN:
        for (row, column), cost in np.ndenumerate(matrix):
            axes.text(column, row, f"{cost:.3g}", ha="center", va="center", fontsize=12, color="white" if cost > middle else "black")
    else:
        canvas.colorbar(image, ax=axes, label="cost")
    # of many classes some are named
    every = max(1, -(-len(rows) // (2 * _MOST_WRITTEN)))
    short = max(map(len, names)) < 4
    turned = {"rotation": 90 if every > 1 else 0 if short else 30, "ha": "center" if short else "right"}
    axes.set_xticks(range(0, len(names), every), names[::every], **turned)
    axes.set_yticks(range(0, len(rows), every), rows[::every])
    label_axes(axes, "true class", "prediction")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


# ---- contours over two score differences --------------------------------------------------------------------------------
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
        """What the columns and the rows of the grid are."""
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


def _paint_surface(axes: Axes, loss: Loss, surface: Surface) -> None:
    """Draw the contour lines over the linear pieces."""
    from matplotlib.colors import to_rgba

    ends = surface.axis[0], surface.axis[-1]
    # neighbouring pieces in quiet, clearly different tints, on light ground and on dark; the contour lines carry the values
    tint = np.array([to_rgba(COLOURS[at % len(COLOURS)], 0.4) for at in range(surface.pieces)])
    axes.imshow(tint[surface.piece], origin="lower", extent=(*ends, *ends), interpolation="nearest", aspect="equal")
    lines = axes.contour(surface.axis, surface.axis, surface.value, levels=14, colors="black", linewidths=0.9)
    axes.clabel(lines, fontsize=8, fmt="%.3g")
    label_axes(axes, *surface.differences)
    axes.set_title(f"{loss.name}, three classes, y = {surface.truth + 1}: {surface.pieces} linear pieces", fontsize=11)


@register("loss_surface")
def surface_pictures(request: Request) -> Iterator[Picture]:
    """Yield the contour of the loss over two score differences, for each true label."""
    import pandas as pd

    loss = make_loss(request.cell.loss["name"], 3, **own_options(request.cell.loss, OF_THE_FIT))
    for truth in range(3):
        surface = loss_surface(loss, truth)

        def paint(canvas: Any, surface: Surface = surface) -> None:
            _paint_surface(canvas.add_subplot(), loss, surface)

        first, second = np.meshgrid(surface.axis, surface.axis)
        numbers = [first.ravel(), second.ravel(), surface.value.ravel(), surface.piece.ravel()]
        table = pd.DataFrame(dict(zip([*surface.differences, "value", "piece"], numbers, strict=True)))
        yield Picture(f"loss_surface_{loss.name}_{truth + 1}", f"y = {truth + 1}, {surface.pieces} linear pieces", table, (5.2, 4.4), paint)
