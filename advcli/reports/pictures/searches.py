"""Searches side by side along a training: calls, success, misses and time, beside the published ones (choi2018, tables 4.1 and 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.errors import IncompatibleError
from ...evaluation.recipe import Recipe
from ...evaluation.standardise import Standardiser
from ...learners.structured import MultilabelClassifier
from ...learners.structured.label_sets import PairWeights, SearchedSets
from ...learners.structured.spaces.label_sets import MOST_LABELS
from ...learners.structured.spaces.psi import make_psi
from ...learners.structured.spaces.relaxation import RelaxedSets
from ...learners.structured.spaces.searches import SEARCHES
from ...learners.structured.trials import LEADING, try_searches
from ..drawing import COLOURS
from ..published_numbers import FOLDER
from .base import Picture, Request, register

SEARCHED = (LEADING, "bisecting", "sarawagi", "hull")
WORSE = 1e-3
"""A value below the best by more than this share is not the best: the angular search ends there."""

SHOWN = {"calls": "calls a search", "success": "% that find a violation", "not_best": "% not the best of all", "ms": "ms a search"}
PUBLISHED = {
    "4.1": {"queries_per_search": ("calls", 1.0), "success_rate": ("success", 1.0), "average_time": ("ms", 1.0)},
    "5.1": {"n_queries": ("calls", 1.0), "fail_max": ("not_best", 100.0)},
}
"""What of the published tables compares with which column, and the factor to its unit. The unit of the times of 5.1 is not printed."""


def published(dataset: str) -> dict[tuple[str, str, str], float]:
    """Return the published numbers of a data set by table, search and column."""
    import pandas as pd

    found = {}
    for number, metrics in PUBLISHED.items():
        facts = pd.read_csv(FOLDER / f"choi2018_table{number.replace('.', '_')}.csv")
        facts = facts[facts["dataset"].str.lower().str.split().str[0] == dataset]
        for fact in facts[facts["metric"].isin(list(metrics))].to_dict("records"):
            column, factor = metrics[fact["metric"]]
            found[number, fact["method"].replace("convex ", ""), column] = factor * float(fact["mean"])
    return found


@register("searches")
def searches_picture(request: Request) -> Iterator[Picture]:
    """Yield one picture: every search at every row of a training on the first rows, over all sets and over the relaxation."""
    import pandas as pd

    cell, psi = request.cell, make_psi("slack")
    if cell.loss["name"] != MultilabelClassifier.name or cell.loss.get("surrogate") != psi.name:
        chosen = f"loss={cell.loss['name']} loss.surrogate={cell.loss.get('surrogate')}"
        raise IncompatibleError("figure=searches", "slack rescaling of sets", f"{chosen} is another: choose loss=sets loss.surrogate=slack")
    recipe = Recipe(cell, request.data_dir, search=False)
    part = recipe.part(recipe.splits()[0][0][0])
    X = part.X if recipe.protocol.standardise == "none" else Standardiser().fit(part.X).transform(part.X)
    X = X[: request.rows]
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    Y = part.y[: request.rows]
    Y = (Y.toarray() if hasattr(Y, "toarray") else np.eye(recipe.n_classes)[Y]).astype(np.int8)
    if cell.loss.get("fit_intercept", True):
        X = np.hstack([X, np.ones((len(X), 1))])
    lam = cell.hyper.get("lambda") or 1.0 / (len(X) * cell.hyper.get("C", 1.0))
    weights = PairWeights(Y.shape[1], cell.loss.get("pairs", "one"))
    lines = []
    for relaxed in (False, True) if Y.shape[1] <= MOST_LABELS else (True,):
        structure = SearchedSets(X, Y, np.full(len(X), 1.0 / len(X)), psi, weights, relaxed=relaxed)
        names = [name for name in SEARCHED if not relaxed or set(SEARCHES[name].needs) <= RelaxedSets.offers]
        trials = pd.DataFrame(try_searches(structure, lam, request.epsilon, names, seed=cell.seed))
        best = trials.groupby(["round", "row"])["value"].transform("max")
        trials["success"] = 100.0 * (trials["value"] > trials["slack"] + request.epsilon)
        trials["not_best"] = 100.0 * (trials["value"] < (1.0 - WORSE) * best)
        trials["ms"] = 1000.0 * trials["seconds"]
        means = trials.groupby("search")[list(SHOWN)].mean()
        searches = int(len(trials) / len(names))
        of = "relaxation" if relaxed else "all sets"
        lines += [(f"{of}, here", name, searches, *means.loc[name]) for name in names]
    known = published(recipe.dataset.name)
    for number in PUBLISHED:
        rows = {name: [known.get((number, name, column)) for column in SHOWN] for name in SEARCHED}
        lines += [(f"table {number}", name, None, *values) for name, values in rows.items() if any(value is not None for value in values)]
    table = pd.DataFrame(lines, columns=["source", "search", "searches", *SHOWN]).astype({"searches": "Int64"})
    sources = list(dict.fromkeys(table["source"]))

    def paint(canvas: Any) -> None:
        width = 0.8 / len(sources)
        for axes, (column, title) in zip(canvas.subplots(2, 2).ravel(), SHOWN.items(), strict=True):
            for at, source in enumerate(sources):
                here = table[(table["source"] == source) & table[column].notna()]
                places = [SEARCHED.index(name) + (at - 0.5 * (len(sources) - 1)) * width for name in here["search"]]
                colour = COLOURS[at]
                bars = axes.bar(places, here[column].astype(float), width, color=colour, label=source)
                axes.bar_label(bars, fmt=lambda value: f"{value:.0f}" if value >= 10.0 else f"{value:.2g}", fontsize=9, padding=1)
            axes.set_xticks(range(len(SEARCHED)), SEARCHED)
            axes.set_xlim(-0.6, len(SEARCHED) - 0.4)
            axes.set_title(title, fontsize=12)
            axes.tick_params(labelsize=11)
        handles, names = canvas.axes[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside lower center", ncols=len(sources), fontsize=11)

    ours = table[table["searches"].notna()]
    said = "; ".join(f"{row.source} {row.search} {row.calls:.1f} calls, {row.not_best:.0f} % not the best" for row in ours.itertuples())
    yield Picture(f"searches_{recipe.dataset.name}_{len(X)}", said, table, (10.4, 7.2), paint)
