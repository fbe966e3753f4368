"""The table and the figures of `advcli bench`: how far each solver is from the optimum, against its time and against its passes.

Distances are to the best dual value of the run, a lower bound of the optimum that some solver has proved: a curve ends at the accuracy of
that proof, never below zero.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..core.files import write_bytes, write_text
from .drawing import look, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROBLEM = ["dataset", "loss", "features"]


def write_convergence(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], folder: Path) -> list[Path]:
    """Write convergence.csv and one figure per problem as PNG and SVG; return the files.

    Parameters
    ----------
    rows : sequence of mapping
        From `advcli.evaluation.traces.trace`.
    columns : sequence of str
        Their columns, in order; ``suboptimality``, (primal - best dual of the problem) / best primal, is added.
    folder : Path
        Where to; made if it is not there.
    """
    frame = with_suboptimality(pd.DataFrame(list(rows), columns=list(columns)))
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "convergence.csv"]
    write_text(files[0], frame.to_csv(index=False))
    for names, part in frame.groupby(PROBLEM, sort=False):
        stem = "convergence_" + "_".join(str(name) for name in names)
        for suffix, content in draw_convergence(part).items():
            path = folder / f"{stem}.{suffix}"
            if isinstance(content, str):
                write_text(path, content)
            else:
                write_bytes(path, content)
            files.append(path)
    return files


def with_suboptimality(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the column ``suboptimality``, each against the best values of its problem."""
    best = frame.groupby(PROBLEM, sort=False)
    bound, scale = best["dual"].transform("max"), best["primal"].transform("min").abs()
    distance = (frame["primal"] - bound) / scale.where(scale > 0, 1.0)
    return frame.assign(suboptimality=distance.clip(lower=0.0))


def draw_convergence(part: pd.DataFrame) -> dict[str, Any]:
    """Return the figure of one problem as PNG bytes and SVG text: suboptimality against time and passes, both axes logarithmic."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        panels: list[Axes] = list(figure.subplots(1, 2, sharey=True))
        solvers = list(dict.fromkeys(part["solver"]))
        # what is exact to the bound's last digit still needs a place on a logarithmic axis
        floor = max(float(part["suboptimality"][part["suboptimality"] > 0].min()) if (part["suboptimality"] > 0).any() else 1e-12, 1e-12)
        for axes, column, label in zip(panels, ("time", "passes"), ("seconds", "passes over the rows"), strict=True):
            for at, solver in enumerate(solvers):
                rows = part[part["solver"] == solver]
                axes.plot(
                    np.maximum(rows[column], 1e-6),
                    np.maximum(rows["suboptimality"], floor),
                    markersize=3.5,
                    linewidth=1.3,
                    label=solver,
                    **look(at),
                )
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel(label)
            axes.xaxis.set_major_formatter("{x:g}")
            axes.grid(True)
        panels[0].yaxis.set_major_formatter("{x:g}")
        panels[0].set_ylabel("(primal - best dual of the run) / best primal")
        head = part.iloc[0]
        figure.suptitle(
            f"{head['dataset']}, {head['loss']}, {head['features']}, lambda = {head['lambda']:.3g}, n = {head['n']}", fontsize=10
        )
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=min(6, len(solvers)))
        png, svg = io.BytesIO(), io.StringIO()
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return {"png": png.getvalue(), "svg": svg.getvalue()}
