"""Loss matrices as heat maps (the matrices of sections 3.1-3.5 of Fathony et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.errors import IncompatibleError
from ...evaluation.recipe import Recipe
from ...learners import Method
from ...learners.options import OF_THE_FIT, own_options
from ...losses import AdversarialLoss, loss_class, make_loss, registry
from .base import Picture, Request, register

_MOST_WRITTEN = 12  # rows or columns up to which the costs stand in their cells


@register("loss_matrix")
def matrix_picture(request: Request) -> Iterator[Picture]:
    """Yield the matrix of the chosen adversarial loss: a row for each prediction, a column for each true class."""
    import pandas as pd

    options, k = request.cell.loss, request.classes
    names = [str(at + 1) for at in range(k)]
    if options["name"] not in registry or not issubclass(loss_class(options["name"]), AdversarialLoss):
        raise IncompatibleError("figure=loss_matrix", "an adversarial loss", f"loss={options['name']} is no game over a matrix")
    given = (own_options(options, OF_THE_FIT).get("matrix") or [[]])[0]
    if Method.of(request.cell).learner.needs(options) & {"classes", "hierarchy"}:
        recipe = Recipe(request.cell, request.data_dir, search=False)
        options, names = recipe.cell.loss, [str(name) for name in recipe.dataset.classes]
    elif len(given):
        names = [str(at + 1) for at in range(len(given))]
    loss: Any = make_loss(options["name"], len(names), **own_options(options, OF_THE_FIT))
    matrix = np.asarray(loss.matrix, dtype=np.float64)
    extra = [f"+ {at + 1}" for at in range(len(matrix) - len(names))]
    rows = list(loss.row_names or [*names, *(["abstain"] if len(extra) == 1 else extra)])[: len(matrix)]

    def paint(canvas: Any) -> None:
        axes = canvas.add_subplot()
        image = axes.imshow(matrix, cmap="YlGnBu", vmin=min(0.0, float(matrix.min())), aspect="equal")
        middle = 0.5 * (image.norm.vmin + image.norm.vmax)
        if max(matrix.shape) <= _MOST_WRITTEN:
            for (row, column), cost in np.ndenumerate(matrix):
                axes.text(column, row, f"{cost:.3g}", ha="center", va="center", fontsize=12, color="white" if cost > middle else "black")
        axes.set_xticks(
            range(len(names)), names, rotation=0 if max(map(len, names)) < 4 else 30, ha="center" if max(map(len, names)) < 4 else "right"
        )
        axes.set_yticks(range(len(rows)), rows)
        # of many classes some are named
        every = -(-len(rows) // (2 * _MOST_WRITTEN))
        if every > 1:
            axes.set_xticks(range(0, len(names), every), names[::every], rotation=90)
            axes.set_yticks(range(0, len(rows), every), rows[::every])
        axes.set_xlabel("true class", fontsize=12)
        axes.set_ylabel("prediction", fontsize=12)
        axes.tick_params(labelsize=11, length=0)
        axes.spines[:].set_visible(False)
        if max(matrix.shape) > _MOST_WRITTEN:
            canvas.colorbar(image, ax=axes, label="cost")

    table = pd.DataFrame([(rows[i], names[j], cost) for (i, j), cost in np.ndenumerate(matrix)], columns=["prediction", "truth", "cost"])
    size = (5.2, 0.7 + 4.2 * len(rows) / len(names))
    yield Picture(f"loss_matrix_{loss.name}", f"{len(rows)} predictions, {len(names)} classes", table, (size[0], min(size[1], 7.0)), paint)
