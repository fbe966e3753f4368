"""Reliability diagrams: how often the likeliest class is right, over the probability that it is given (Guo et al. 2017, figure 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ... import metrics
from ...core.errors import IncompatibleError
from ...evaluation.recipe import Recipe
from ...learners import Method
from ..drawing import look
from .base import Picture, Request, register


@register("reliability")
def reliability_picture(request: Request) -> Iterator[Picture]:
    """Yield accuracy over confidence of every method with probabilities, on the test rows of all splits together."""
    import pandas as pd

    rows, said = [], []
    for cell in (replace(request.cell, loss=loss).in_sweep for loss in request.losses):
        loss = cell.loss
        name = str(loss["name"]) + (f", {loss['calibrate']}" if loss.get("calibrate") is not None else "")
        if not Method.of(cell).has_probabilities:
            raise IncompatibleError(
                f"loss={loss['name']}",
                "a distribution over the classes",
                "choose loss=zero_one, or give calibrate=vector",
            )
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
        rows += [(name, *each) for each in zip(count, confidence, accuracy, strict=True)]
        error, surprise = (metrics.compute(metric, y, y, P.shape[1], {"probabilities": P}) for metric in ("ece", "log_loss"))
        said.append(f"{name} ECE {error:.3f}, log-loss {surprise:.3f}")
    table = pd.DataFrame(rows, columns=["method", "rows", "confidence", "accuracy"])

    def paint(canvas: Any) -> None:
        axes = canvas.subplots()
        axes.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.8, linestyle=":")
        for at, (_, part) in enumerate(table.groupby("method", sort=False)):
            axes.plot(part["confidence"], part["accuracy"], label=said[at], linewidth=1.2, markersize=4.5, **look(at))
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("confidence: mean probability of the likeliest class")
        axes.set_ylabel("accuracy: share of rows of that class")
        axes.legend(loc="upper left")

    yield Picture(f"reliability_{request.cell.dataset['name']}", "; ".join(said), table, (5.0, 4.6), paint)
