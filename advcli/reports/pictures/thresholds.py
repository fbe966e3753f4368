"""The geometry of threshold features: rows on the line w.x, and the thresholds that cut it into classes (Fathony et al. 2018, eq. 71)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import IncompatibleError
from ...evaluation.recipe import ALL, Recipe
from ...features import feature_class
from ...learners import Method
from ..drawing import COLOURS
from .base import Picture, Request, register

_BINS = 40


def line_of(learner: Any, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the places of rows X (n, d), as the learner takes them, on its line, w.x or its kernel form, and the thresholds eta (k - 1,).

    They are what a learner calls ``latent`` and ``thresholds_``, or follow from the parameters of threshold features.
    """
    if hasattr(learner, "latent"):
        return np.asarray(learner.latent(X)), np.asarray(learner.thresholds_)
    F = learner.potentials(X)
    # f_{j+1} - f_j = w.x - eta_j
    eta = np.asarray(learner.theta_)[-(F.shape[1] - 1) :]
    return F[:, 1] - F[:, 0] + eta[0], eta


@register("thresholds")
def thresholds_picture(request: Request) -> Iterator[Picture]:
    """Yield histograms of w.x for every class, and the thresholds, of a fit to all rows."""
    import pandas as pd

    cell = request.cell
    if not (feature_class(cell.features["name"]).needs_order or hasattr(Method.of(cell).learner, "latent")):
        raise IncompatibleError("figure=thresholds", "one direction and thresholds", "choose features=threshold")
    recipe = Recipe(cell, request.data_dir)
    everything = recipe.part()
    chosen = recipe.search(everything, ALL).hyper
    fitted = recipe.fit(everything, chosen, ALL)
    place, eta = line_of(fitted.learner, fitted.rows(everything.X))
    classes = [str(name) for name in recipe.dataset.classes]
    edges = np.linspace(min(place.min(), eta.min()), max(place.max(), eta.max()), _BINS + 1)
    counts = np.array([np.histogram(place[recipe.dataset.y == at], edges)[0] for at in range(len(classes))])
    bins = [
        ("rows", classes[at], edges[bin_], edges[bin_ + 1], int(counts[at, bin_])) for at in range(len(classes)) for bin_ in range(_BINS)
    ]
    cuts = [("threshold", f"{classes[at]} | {classes[at + 1]}", value, value, None) for at, value in enumerate(eta)]
    table = pd.DataFrame([*bins, *cuts], columns=["kind", "class", "from", "to", "rows"]).astype({"rows": "Int64"})

    def paint(canvas: Any) -> None:
        grids = canvas.subplots(len(classes), 1, squeeze=False, sharex=True)[:, 0]
        for at, axes in enumerate(grids):
            axes.stairs(counts[at], edges, fill=True, color=COLOURS[at % len(COLOURS)])
            for other, value in enumerate(eta):
                own = other in (at - 1, at)  # between its neighbours a row is predicted right, where they are in order
                axes.axvline(value, color="black", linewidth=1.8 if own else 0.8, linestyle="-" if own else ":")
            axes.set_ylabel(classes[at], rotation=0, ha="right", va="center", fontsize=12)
            axes.set_yticks([])
            axes.tick_params(labelsize=11)
            axes.spines["left"].set_visible(False)
        grids[-1].set_xlabel("w.x, with the thresholds", fontsize=12)

    name = f"thresholds_{recipe.dataset.name}_{cell.loss['name']}"
    said = f"thresholds {', '.join(f'{value:.3g}' for value in eta)}"
    yield Picture(name, said, table, (6.0, 1.2 + 0.75 * len(classes)), paint)
