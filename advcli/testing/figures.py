"""The check of a figure of reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from ..reports.figures import Material, ReportFigure, registry
from ..reports.formats.document import Figure
from ..reports.summary import summarise
from ..results.tables import RUN_COLUMNS
from .losses import named, require


def check_figure(figure: str | ReportFigure) -> None:
    """Check a figure of reports, or the registered figure of a name, on rows that are made up; AssertionError names what is broken.

    It is drawn from many rows and not refused from few: one data set, one split, one method, a failed cell, no certificate. Its name begins
    the names of its files, and its caption is a sentence. The SVG and the PDF can be read. The same rows give the same bytes and stay as
    they were.

    Examples
    --------
    >>> from advcli.testing import check_figure
    >>> check_figure("gaps")
    """
    about = registry.get(figure) if isinstance(figure, str) else figure
    with named(f"figure {about.name}"):
        _check(about)


def _check(about: ReportFigure) -> None:
    many = _material(datasets=7, methods=3, splits=4)
    for column in about.needs:
        require(column in many.runs, f"it needs the column {column}, which no rows have; there are {', '.join(RUN_COLUMNS)}")
    before = (many.runs.copy(deep=True), many.summary.copy(deep=True))
    first = list(about.draw(many))
    require(bool(first), "nothing is drawn from rows of 7 data sets, 3 methods and 4 splits")
    require(many.runs.equals(before[0]) and many.summary.equals(before[1]), "changes the rows or the summary that it is given")
    again = next(iter(about.draw(many)), None)
    require(again is not None and (again.svg, again.pdf) == (first[0].svg, first[0].pdf), "the same rows give other bytes")
    _check_drawn(first, about.name)
    few = {
        "one data set, method and split": _material(datasets=1, methods=1, splits=1),
        "a method without a result": _material(datasets=2, methods=2, splits=2, failed=True),
        "no certificates": _material(datasets=2, methods=2, splits=2, certified=False),
    }
    for kind, material in few.items():
        try:
            _check_drawn(list(about.draw(material)), about.name)
        except Exception as error:
            raise AssertionError(f"rows with {kind} end in {type(error).__name__}: {error}") from error


def _check_drawn(figures: Sequence[Figure], stem: str) -> None:
    names = [figure.name for figure in figures]
    require(len(set(names)) == len(names), "two drawings have one name")
    for figure in figures:
        ours = figure.name == stem or figure.name.startswith(f"{stem}-")
        require(ours and "/" not in figure.name, f"the file {figure.name} must be named {stem} or {stem}-WORDS")
        require(figure.caption.strip().endswith("."), f"its caption is no sentence: {figure.caption!r}")
        root = ElementTree.fromstring(figure.svg[figure.svg.index("<svg") :])
        require(root.tag.endswith("svg") and len(root) > 0, "its SVG is empty")
        require(figure.pdf.startswith(b"%PDF"), "its PDF is none")


def _material(*, datasets: int, methods: int, splits: int, failed: bool = False, certified: bool = True) -> Material:
    """Return rows of made-up cells, three strengths of label noise for each method, and what reports make of them."""
    random = np.random.default_rng(datasets)
    rows: list[dict[str, Any]] = []
    for i in range(datasets):
        for which in range(methods):
            for step in range(3 if splits > 1 else 1):
                head = {"dataset": f"set_{i} $x$ <&>", "loss": f"loss_{which}", "features": "linear", "solver": "dual", "seed": 0}
                head |= {"method": f"loss_{which} linear [step={step}]", "cell": f"{i}.{which}.{step}", "options": f"noise.step={step}"}
                head |= {"C": 2.0, "n_train": 70, "n_test": 30, "n_features": 4, "n_classes": 3, "error": "", "confusion_norm": 0.1 * step}
                for split in range(1, splits + 1):
                    broken = failed and which == 0
                    fit: dict[str, Any] = {"split": split, "metric": "error", "status": "failed" if broken else "ok"}
                    fit["value"] = np.nan if broken else (3 + 4 * which + step + int(random.integers(0, 3))) / 30
                    fit["relative_gap"] = 1e-4 * split if certified and not broken else np.nan
                    fit |= {"primal": 0.5, "dual": 0.5, "objective": 0.5, "game_value": 0.5, "passes": 7.0, "converged": not broken}
                    fit |= {"fit_seconds": 0.01 * (1 + which), "predict_seconds": 0.001}
                    rows.append(head | fit)
                    abstained = np.nan if broken else 0.1 * step
                    rows.append(head | fit | {"metric": "abstain_rate", "value": abstained})
                    rows.append(head | fit | {"metric": "accuracy_accepted", "value": 0.8 + 0.5 * abstained})
    runs = pd.DataFrame(rows)
    runs = runs.assign(**{column: np.nan for column in RUN_COLUMNS if column not in runs})
    summary = summarise(runs)
    shown = summary[summary["metric"] == "error"].reset_index(drop=True)
    compared = shown[["dataset", "method", "metric"]].assign(z=np.linspace(-3.0, 3.0, len(shown)) if len(shown) > 1 else np.nan)
    further: dict[str, Any] = {"search": None, "confusion": {}, "learning": None}
    if splits > 1:
        first = runs["dataset"].isin(sorted(set(runs["dataset"]))[:2]) & runs["options"].str.endswith("=0")  # few: each is a drawing
        cells = runs[first].drop_duplicates("cell")[["cell", "dataset", "method"]]
        fits = pd.DataFrame([(stage, 2.0**power, fold) for stage in (1, 2) for power in (-2, 0, 2) for fold in (1, 2)])
        search = cells.merge(fits.set_axis(["stage", "C", "fold"], axis=1), how="cross")
        search = search.assign(metric="error", value=random.uniform(0.1, 0.3, len(search)))
        further["search"] = search.assign(relative_gap=1e-2 * search["value"] if certified else np.nan)
        counts = [[20, 3, 1], [2, 22, 0]]
        further["confusion"] = {str(cell): {"labels": ["a", "b <&>"], "counts": counts} for cell in cells["cell"]}
        some = cells.merge(pd.DataFrame([(s, share) for s in (1, 2) for share in (0.2, 0.5)], columns=["split", "share"]), how="cross")
        further["learning"] = some.assign(n_train=70 * some["share"], relative_gap=1e-4, metric="error", value=0.4 - 0.2 * some["share"])
    return Material(runs, summary, ("error",), "error", 0.05, (1e-3,), compared, **further)
