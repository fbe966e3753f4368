"""A saved model on labelled rows that it has not seen: risk over coverage, what it confuses, and which thresholds are safe.

An abstaining classifier has its own margin of a prediction; the margin of any other is the lead of the largest decision value on the
second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..core.errors import ConfigError, DataError, nearest
from ..core.files import write_bytes, write_text
from ..core.spreadsheets import frame_as_text
from ..data.tables.table import read_parts
from ..data.tables.target import match_labels
from ..statistics.risk_coverage import Guarantee, RiskCoverage, guarantee, risk_coverage
from .model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2)
CONFIDENCE = 0.9


@dataclass(frozen=True, eq=False)
class CoverageReport:
    """What a model does on labelled rows."""

    rows: int
    curve: RiskCoverage
    confusion: pd.DataFrame  # rows with each true class (index) and each predicted label (columns, to abstain last where the model may)
    guarantees: tuple[Guarantee, ...]  # for the errors that were asked for, each with its confidence by itself; none of too few rows


def coverage_of(model: Model, X: Any, y: Any, epsilons: Iterable[float] = EPSILONS, confidence: float = CONFIDENCE) -> CoverageReport:
    """Return what a model does on rows X (n, d) of codes y (n,), and its threshold for each error that accepted rows may have."""
    margin, chosen, codes = model.judged(X)
    wrong = chosen != y
    counts = np.zeros((len(model.classes), len(model.labels)), dtype=np.int64)
    np.add.at(counts, (y, codes), 1)
    confusion = pd.DataFrame(counts, index=pd.Index(model.classes, name="class"), columns=list(model.labels))
    delta = round(1.0 - confidence, 12)
    try:
        guarantees = tuple(guarantee(margin, wrong, epsilon, delta) for epsilon in sorted(set(epsilons)))
    except DataError:
        guarantees = ()
    return CoverageReport(len(y), risk_coverage(margin, wrong), confusion, guarantees)


def coverage_file(
    model: Model,
    source: Path,
    out: Path,
    draw: Callable[..., Any],
    epsilons: Iterable[float] = EPSILONS,
    confidence: float = CONFIDENCE,
    spreadsheets: bool = False,
) -> CoverageReport:
    """Read labelled rows of a CSV file and write what the model does on them (`write`).

    ``draw`` makes the figure, as `advcli.reports.drawing.draw` does. With ``spreadsheets`` labels that look like formulas get an apostrophe
    there (`advcli.core.spreadsheets`). Raises `ConfigError` for a model of sets of labels, for a model that does not predict classes or was
    not fitted to a table. Raises `DataError` for a missing column of labels, an unknown label, or rows that the model cannot take.
    """
    if model.encoding is None or model.of_sets:
        raise ConfigError("risk over coverage is for models that advcli fit made from rows with one label")
    model.check_threshold()
    target = str(model.about.get("cell", {}).get("dataset", {}).get("target"))
    form, text = model.encoding, model.encoding.text
    wanted = None if text is None else [*text, target]
    (table,) = read_parts(source, 2**31, separator=form.separator, text=wanted, encoding=form.charset)
    if target not in table.names:
        raise DataError(f"{source} has no column {target} of labels; {nearest(target, table.names)}")
    names = [str(label) for label in model.classes]
    labels = table.text(target).tolist()
    codes = [-1 if code is None else code for code in match_labels(labels, model.classes)]
    if -1 in codes:
        row = codes.index(-1)
        raise DataError(f"{source}: {labels[row]!r} of row {row + 1} is not a label of the model; {nearest(labels[row], names)}")
    model.encoding.check_columns(source, table.names)
    report = coverage_of(model, model.encoding.encode(table), np.array(codes, dtype=np.intp), epsilons, confidence)
    write(replace(report, confusion=frame_as_text(report.confusion)) if spreadsheets else report, out, draw)
    return report


def write(report: CoverageReport, out: Path, draw: Callable[..., Any]) -> None:
    """Write curve.csv, .svg, .pdf and .png, confusion.csv and guarantees.csv into a folder, which is made where it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"out={out}: {error.strerror}; choose another folder") from error
    curve = report.curve
    table = pd.DataFrame({"threshold": curve.threshold, "coverage": curve.coverage, "risk": curve.risk, "accuracy": curve.accuracy})
    columns = ("epsilon", "delta", "tau", "rows", "accepted", "wrong")
    rows = [{name: getattr(safe, name) for name in columns} for safe in report.guarantees]
    for name, content, index in (("curve", table, False), ("confusion", report.confusion, True), ("guarantees", pd.DataFrame(rows), False)):
        write_text(out / f"{name}.csv", content.to_csv(index=index, lineterminator="\n"))

    def paint(axes: Axes) -> None:
        axes.step(curve.coverage, curve.risk, where="post", color="C0")
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, None))
        axes.set(xlabel="coverage: share of rows that are accepted", ylabel="risk: share of these that are wrong")

    figure = draw("curve", f"Risk over coverage on {report.rows} rows; AURC {curve.aurc:.4f}.", (5.0, 3.5), paint)
    write_text(out / "curve.svg", figure.svg)
    write_bytes(out / "curve.pdf", figure.pdf)
    write_bytes(out / "curve.png", figure.png)
