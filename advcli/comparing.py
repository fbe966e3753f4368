"""Methods side by side on a frame of one's own: splits, search, tests and table of the command line, from Python."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ConfigError, nearest
from .evaluation import sweep
from .files import write_bytes
from .reports import comparison_table, summarise
from .reports.comparison import comparison

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    rows : DataFrame
        One row for each method and split, as in runs.csv.
    summary : DataFrame
        One row for each method and metric: mean, deviation, tests (`advcli.reports.summarise`).
    folder : Path
        The results folder; ``advcli report results=FOLDER`` writes figures and pages of it.
    """

    rows: pd.DataFrame
    summary: pd.DataFrame
    folder: Path

    @property
    def table(self) -> str:
        """The comparison table as text: mean (deviation) over the splits; * is the best, = not significantly worse."""
        return comparison_table(self.summary)

    def __repr__(self) -> str:
        """Return the table."""
        return self.table

    def _repr_html_(self) -> str:
        found = comparison(self.summary)
        heads = "".join(f"<th>{escape(column)}</th>" for column in found.columns)
        lines = [
            "".join(f"<td>{'<b>' if field.strong else ''}{escape(field.text)}{'</b>' if field.strong else ''}</td>" for field in row)
            for row in (*found.rows, *found.footer)
        ]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        notes = "".join(f"<p>{escape(note)}</p>" for note in found.notes)
        return f"<table><caption>{escape(found.caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{notes}"


def compare(
    frame: Any,
    target: str,
    losses: Sequence[Any] = ("zero_one", "cs"),
    *,
    folder: str | os.PathLike[str] | None = None,
    order: Sequence[Any] | None = None,
    workers: int | None = None,
    quiet: bool = True,
    **keys: Any,
) -> Comparison:
    """Compare methods on a data frame by the protocol of the command line.

    Parameters
    ----------
    frame : DataFrame
        Of pandas or polars, one row per example.
    target : str
        The column of labels; all others are features.
    losses : sequence
        Names of the group ``loss``, mappings with a ``name`` and options of one, or unfitted scikit-learn classifiers.
    folder : path, optional
        Results folder. The same call resumes it. Default: one in ``results`` that is named by the frame's
        contents and the keys.
    order : sequence, optional
        Labels from the lowest to the highest. None: the order of an ordered pandas Categorical or a polars Enum, if the target is one.
    workers : int, optional
        Number of processes; default one for each core.
    quiet : bool
        Print failures only.
    **keys
        Further keys of the configuration with ``__`` for a dot: ``protocol__n_splits=5``, ``hyper__C=1``, ``dataset__missing="median"``.

    Returns
    -------
    Comparison
        Rows, summary and table.

    Raises
    ------
    ConfigError, DataError
        Before any work: no such column, a loss or key that there is not, a frame that cannot be used.
    """
    from .learners.labels import own_order

    columns = [str(column) for column in getattr(frame, "columns", ())]
    if target not in columns:
        raise ConfigError(f"compare: the frame has no column {target!r}; {nearest(target, columns) if columns else 'give a DataFrame'}")
    if isinstance(losses, str) or not len(losses):
        raise ConfigError(f"compare: losses={losses!r} must be a list of at least one loss")
    order = own_order(frame[target]) if order is None else order
    text = _as_csv(frame)
    named = f"compared-{hashlib.sha256(text + repr((target, order, sorted(keys.items()))).encode()).hexdigest()[:12]}"
    place = Path("results", named) if folder is None else Path(folder).expanduser()
    source = place.parent / f"{place.name}.csv"
    place.parent.mkdir(parents=True, exist_ok=True)
    if not source.is_file() or source.read_bytes() != text:
        write_bytes(source, text, "free space or choose another folder")
    common = {"dataset": "csv", "dataset.path": str(source.absolute()), "dataset.target": target, "dataset.name": place.name}
    if order is not None:
        common["dataset.order"] = [str(label) for label in order]  # type: ignore[assignment]
    common |= {name.replace("__", "."): value for name, value in keys.items()}
    rows = sweep([{**common, **_loss_keys(loss)} for loss in losses], place, workers=workers, quiet=quiet)
    return Comparison(rows, summarise(rows), place)


def _loss_keys(loss: Any) -> dict[str, Any]:
    """Return a loss as keys of a cell."""
    if not isinstance(loss, Mapping):
        return {"loss": loss}
    if "name" not in loss:
        raise ConfigError(f"compare: the loss {dict(loss)} has no name")
    return {"loss": loss["name"], **{f"loss.{key}": value for key, value in loss.items() if key != "name"}}


def _as_csv(frame: Any) -> bytes:
    """Return a frame as CSV, numbers to their last bit."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        frame = pd.DataFrame({str(column): frame[column].to_list() for column in frame.columns})
    return str(frame.to_csv(index=False, lineterminator="\n")).encode()
