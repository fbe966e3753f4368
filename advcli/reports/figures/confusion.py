"""Confusion matrices: which classes a method takes for which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..drawing import WIDTH_INCHES, Axes, draw
from ..formats.document import Figure, file_word
from .base import Material, register

MAX_CLASSES = 20
"""More classes make no readable matrix."""
MAX_METHODS = 6
MAX_DATASETS = 12
ABSTAIN = "abstains"


@register("confusion", section="predictions", needs=("dataset", "method", "cell"))
def confusion(material: Material) -> Iterator[Figure]:
    """Draw the confusion matrices of every data set, a panel for each method, in percent of the rows of each true class."""
    cells = material.runs.drop_duplicates("cell")
    cells = cells[cells["cell"].isin(list(material.confusion))]
    for at, (dataset, part) in enumerate(cells.groupby("dataset", sort=True, observed=True)):
        counts = {str(row["method"]): material.confusion[str(row["cell"])] for row in part.sort_values("method").to_dict("records")}
        labels = next(iter(counts.values()))["labels"]
        if at < MAX_DATASETS and len(counts) <= MAX_METHODS and len(labels) <= MAX_CLASSES:
            yield _matrices(str(dataset), [str(label) for label in labels], counts)


def _matrices(dataset: str, labels: list[str], confusions: dict[str, Any]) -> Figure:
    counts = {method: np.asarray(confusion["counts"], dtype=float) for method, confusion in confusions.items()}
    short = [label if len(label) <= 14 else f"{label[:13]}…" for label in labels]
    abstains = any(matrix[:, -1].any() for matrix in counts.values())
    most = len(labels) + abstains
    turned = max(map(len, [*short, ABSTAIN * abstains])) * most > 50

    def paint(panels: list[Axes]) -> None:
        for axes, (method, matrix) in zip(panels, counts.items(), strict=True):
            _matrix(axes, matrix, short, turned)
            axes.set_xlim(-0.5, most - 0.5)  # classes of one width in all panels
            axes.set_title(method, fontsize=9)

    rows = int(sum(matrix.sum() for matrix in counts.values()) / len(counts))
    caption = (
        f"{dataset}: percent of the test rows of each true class that are predicted as each class, over all splits ({rows} predictions of "
        f"each method); blue is right{', grey abstains' if abstains else ''}."
    )
    side = max(1.9, 0.36 * len(labels) + 1.0)
    size = (WIDTH_INCHES, len(counts) * min(side, 4.2) + 0.2)
    return draw(f"confusion-{file_word(dataset)}", caption, size, paint, (len(counts), 1))


def _matrix(axes: Axes, matrix: NDArray[np.float64], labels: list[str], turned: bool) -> None:
    """Draw one matrix, a row for each true class, abstentions last where there are any."""
    from matplotlib.patches import Rectangle

    columns = [*labels, *([ABSTAIN] if matrix[:, -1].any() else [])]
    shares = 100.0 * matrix[:, : len(columns)] / np.maximum(matrix.sum(axis=1, keepdims=True), 1.0)
    for (row, column), share in np.ndenumerate(shares):
        # tints that text stands out from on light and on dark ground: blue what is right, orange what is not, grey abstentions
        colour = "#3b82c4" if row == column else "#888888" if column == len(labels) else "#d9822b"
        tint = 0.55 * (share / 100.0) ** 0.5
        axes.add_patch(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=colour, alpha=tint, linewidth=0))
        if share >= 0.05 and len(labels) <= 12:
            axes.text(column, row, f"{share:.1f}" if share < 99.95 else "100", ha="center", va="center", fontsize=7.5)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), columns, rotation=90 if turned else 0)
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(length=0)
    axes.set(xlabel="predicted", ylabel="true class")
    axes.spines[:].set_visible(False)
