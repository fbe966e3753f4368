"""The table and the figures of `advcli bench`: how far each solver is from the optimum, against its time and against its passes.

Distances are to the best dual value of the run, a lower bound of the optimum that some solver has proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.files import write_bytes, write_text
from .drawing import Axes, canvas, look, saved

PROBLEM = ["dataset", "loss", "features"]


def write_convergence(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], folder: Path) -> list[Path]:
    """Write convergence.csv, and a figure for each problem as PNG and SVG, into a folder, made if it is not there; return the files.

    ``rows`` are from `advcli.evaluation.traces.trace`, ``columns`` their columns in order; ``suboptimality``, (primal - best dual of the
    problem) / best primal, is added.
    """
    frame = with_suboptimality(pd.DataFrame(list(rows), columns=list(columns)))
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "convergence.csv"]
    write_text(files[0], frame.to_csv(index=False))
    for names, part in frame.groupby(PROBLEM, sort=False):
        stem = "convergence_" + "_".join(str(name) for name in names)
        with canvas((9.0, 4.2)) as figure:
            _paint(figure, part)
            for path, how in ((folder / f"{stem}.png", {"dpi": 150}), (folder / f"{stem}.svg", {})):
                write_bytes(path, saved(figure, path.suffix[1:], **how))
                files.append(path)
    return files


def with_suboptimality(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the column ``suboptimality``, each against the best values of its problem."""
    best = frame.groupby(PROBLEM, sort=False)
    bound, scale = best["dual"].transform("max"), best["primal"].transform("min").abs()
    distance = (frame["primal"] - bound) / scale.where(scale > 0, 1.0)
    return frame.assign(suboptimality=distance.clip(lower=0.0))


def _paint(figure: Any, part: pd.DataFrame) -> None:
    """Draw suboptimality against time and passes, both axes logarithmic."""
    panels: list[Axes] = list(figure.subplots(1, 2, sharey=True))
    solvers = list(dict.fromkeys(part["solver"]))
    # what is exact to the bound's last digit still needs a place on a logarithmic axis
    floor = max(float(part["suboptimality"][part["suboptimality"] > 0].min()) if (part["suboptimality"] > 0).any() else 1e-12, 1e-12)
    for axes, column, label in zip(panels, ("time", "passes"), ("seconds", "passes over the rows"), strict=True):
        for at, solver in enumerate(solvers):
            rows = part[part["solver"] == solver]
            x, y = np.maximum(rows[column], 1e-6), np.maximum(rows["suboptimality"], floor)
            axes.plot(x, y, markersize=3.5, linewidth=1.3, label=solver, **look(at))
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(True)
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].set_ylabel("(primal - best dual of the run) / best primal")
    head = part.iloc[0]
    words = f"{head['dataset']}, {head['loss']}, {head['features']}, lambda = {head['lambda']:.3g}, n = {head['n']}"
    figure.suptitle(words, fontsize=10)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=min(6, len(solvers)))
