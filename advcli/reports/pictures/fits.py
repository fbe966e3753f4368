"""Pictures of fits: reliability diagrams (Guo et al. 2017, figure 1), and thresholds on a line (Fathony et al. 2018, eq. 71)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import metrics
from ...core.errors import IncompatibleError
from ...evaluation.recipe import Recipe
from ...learners import Method
from ..drawing import COLOURS, look
from .base import Picture, Request, fit_to_all, register

_BINS = 40


@register("reliability")
def reliability_picture(request: Request) -> Iterator[Picture]:
    """Yield accuracy over confidence of every method with probabilities, on the test rows of all splits together."""
    import pandas as pd

    rows, words = [], []
    for cell in (replace(request.cell, loss=loss).in_sweep for loss in request.losses):
        loss = cell.loss
        name = str(loss["name"]) + (f", {loss['calibrate']}" if loss.get("calibrate") is not None else "")
        if not Method.of(cell).has_probabilities:
            remedy = "choose loss=zero_one, or give calibrate=vector"
            raise IncompatibleError(f"loss={loss['name']}", "a distribution over the classes", remedy)
        recipe = Recipe(cell, request.data_dir)
        if recipe.dataset.multilabel:
            raise IncompatibleError("figure=reliability", "one label a row", f"{recipe.dataset.name} has several")
        truth, estimates = [], []
        splits, _ = recipe.splits()
        for number, (learned, held_out) in enumerate(splits):
            train, test = recipe.part(learned), recipe.part(held_out)
            fitted = recipe.fit(train, recipe.search(train, number).hyper, number)
            truth.append(test.y)
            estimates.append(np.asarray(fitted.learner.probabilities(fitted.rows(test.X)), dtype=np.float64))
        y, P = np.concatenate(truth), np.concatenate(estimates)
        count, confidence, accuracy = metrics.reliability(y, P)
        rows += [(name, *bin_) for bin_ in zip(count, confidence, accuracy, strict=True)]
        error, surprise = (metrics.compute(metric, y, y, P.shape[1], {"probabilities": P}) for metric in ("ece", "log_loss"))
        words.append(f"{name} ECE {error:.3f}, log-loss {surprise:.3f}")
    table = pd.DataFrame(rows, columns=["method", "rows", "confidence", "accuracy"])

    def paint(canvas: Any) -> None:
        axes = canvas.subplots()
        axes.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.8, linestyle=":")
        for at, (_, part) in enumerate(table.groupby("method", sort=False)):
            axes.plot(part["confidence"], part["accuracy"], label=words[at], linewidth=1.2, markersize=4.5, **look(at))
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
        axes.set(xlabel="confidence: mean probability of the likeliest class", ylabel="accuracy: share of rows of that class")
        axes.legend(loc="upper left")

    yield Picture(f"reliability_{request.cell.dataset['name']}", "; ".join(words), table, (5.0, 4.6), paint)


def _line_of(learner: Any, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
    method = Method.of(cell)
    if not (method.map_class.needs_order or hasattr(method.learner, "latent")):
        raise IncompatibleError("figure=thresholds", "one direction and thresholds", "choose features=threshold")
    recipe = Recipe(cell, request.data_dir)
    rows, fitted = fit_to_all(recipe)
    place, eta = _line_of(fitted.learner, fitted.rows(rows.X))
    classes = [str(name) for name in recipe.dataset.classes]
    edges = np.linspace(min(place.min(), eta.min()), max(place.max(), eta.max()), _BINS + 1)
    counts = np.array([np.histogram(place[recipe.dataset.y == at], edges)[0] for at in range(len(classes))])
    bins = [("rows", classes[at], edges[bin_], edges[bin_ + 1], int(count)) for (at, bin_), count in np.ndenumerate(counts)]
    cuts = [("threshold", f"{classes[at]} | {classes[at + 1]}", value, value, None) for at, value in enumerate(eta)]
    table = pd.DataFrame([*bins, *cuts], columns=["kind", "class", "from", "to", "rows"]).astype({"rows": "Int64"})

    def paint(canvas: Any) -> None:
        grids = canvas.subplots(len(classes), 1, squeeze=False, sharex=True)[:, 0]
        for at, axes in enumerate(grids):
            axes.stairs(counts[at], edges, fill=True, color=COLOURS[at % len(COLOURS)])
            for other, value in enumerate(eta):
                near = other in (at - 1, at)  # between its neighbours a row is predicted right, where they are in order
                axes.axvline(value, color="black", linewidth=1.8 if near else 0.8, linestyle="-" if near else ":")
            axes.set_ylabel(classes[at], rotation=0, ha="right", va="center", fontsize=12)
            axes.set_yticks([])
            axes.tick_params(labelsize=11)
            axes.spines["left"].set_visible(False)
        grids[-1].set_xlabel("w.x, with the thresholds", fontsize=12)

    name = f"thresholds_{recipe.dataset.name}_{cell.loss['name']}"
    words = f"thresholds {', '.join(f'{value:.3g}' for value in eta)}"
    yield Picture(name, words, table, (6.0, 1.2 + 0.75 * len(classes)), paint)
