"""Methods side by side on a data frame: splits, search, tests and table of the command line, from Python."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..core.checks import collected
from ..core.errors import AdvcliError, ConfigError, UnknownNameError, nearest
from ..core.files import write_bytes
from ..core.paths import expanded
from ..evaluation import sweep
from ..evaluation.sweeps.sweep import processes
from . import comparison_table, summarise
from .comparison import comparison

if TYPE_CHECKING:
    import pandas as pd

_REMEDY = "free space or choose another folder"


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found."""

    rows: pd.DataFrame
    """One row for each method and split, as in runs.csv."""
    summary: pd.DataFrame
    """One row for each method and metric: mean, deviation, tests (`advcli.reports.summarise`)."""
    folder: Path
    """The results folder; ``advcli report results=FOLDER`` writes figures and pages of it."""

    @property
    def table(self) -> str:
        """The comparison table as text: mean (deviation) over the splits; * is the best, = not significantly worse."""
        return comparison_table(self.summary)

    def __repr__(self) -> str:
        """Return the table."""
        return self.table

    def _repr_html_(self) -> str:
        table = comparison(self.summary)
        heads = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
        fields = [
            [f"<b>{escape(field.text)}</b>" if field.strong else escape(field.text) for field in row]
            for row in (*table.rows, *table.footer)
        ]
        body = "".join(f"<tr>{''.join(f'<td>{field}</td>' for field in row)}</tr>" for row in fields)
        notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
        return f"<table><caption>{escape(table.caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{notes}"


def compare(
    frame: Any,
    target: Any,
    losses: Sequence[Any] = ("zero_one", "cs"),
    *,
    folder: str | os.PathLike[str] | None = None,
    order: Sequence[Any] | None = None,
    workers: int | None = None,
    n_jobs: int | None = None,
    quiet: bool = True,
    cv: Any = None,
    groups: Any = None,
    **keys: Any,
) -> Comparison:
    """Compare methods on a data frame by the protocol of the command line.

    Parameters
    ----------
    frame : DataFrame
        Of pandas, polars or Arrow, one row per example. A column of text becomes, unless it holds identifiers, dates or free text,
        categories (``dataset.categorical=auto``) unless the keys say what becomes of text.
    target : str or number
        The name of the column of labels; all others are features.
    losses : sequence
        Names of the group ``loss``, mappings with a ``name`` and options of one, or unfitted scikit-learn classifiers.
    folder : path, optional
        Results folder. The same call resumes it. Default: one in ``results`` that is named by the frame's contents and the keys.
    order : sequence, optional
        Labels from the lowest to the highest. None: the order of an ordered pandas Categorical or a polars Enum, if the target is one.
    workers : int, optional
        Number of processes; default one for each core.
    n_jobs : int, optional
        The same in scikit-learn's words: -1 for one for each core. No number depends on it.
    quiet : bool
        Print failures only.
    cv : splitter, int, iterable or str, optional
        How rows are split: a splitter of scikit-learn such as ``GroupKFold(5)``, a number of folds, pairs of (training, test) row numbers,
        or a value of ``protocol.splits``. The folds of searches are by the same splitter.
    groups : str or array-like, shape (n,), optional
        Which rows belong together: a column of the frame, which is no feature then, or a value for each row.
    **keys
        Further keys of the configuration with ``__`` for a dot: ``protocol__n_splits=5``, ``hyper__C=1``, ``dataset__missing="median"``.

    Returns
    -------
    Comparison
        Rows, summary and table.

    Raises
    ------
    ConfigError, DataError
        Before any work: no such column, loss or key, a frame that cannot be used. Nothing is left of it in the folder.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import compare
    >>> frame = load_iris(as_frame=True).frame
    >>> few = {"protocol__n_splits": 3, "hyper__C": 1}
    >>> found = compare(frame, "target", ["zero_one", "cs"], folder="results/iris", workers=1, quiet=True, **few)
    >>> found.rows.groupby("method")["split"].nunique().to_dict()
    {'cs linear': 3, 'zero_one linear': 3}
    >>> sorted(found.summary["metric"].unique())
    ['accuracy', 'error']
    """
    from ..data.labels.order import own_order

    workers = processes(workers, n_jobs)
    frame, target = _flat(frame), str(target).strip()
    _refuse(frame, target, losses)
    order = own_order(frame[target]) if order is None else order
    frame, groups = _with_groups(frame, groups)
    cv = cv if cv is None or isinstance(cv, str | int) or hasattr(cv, "split") else list(cv)
    text = str(frame.to_csv(index=False, lineterminator="\n")).encode()
    asked = repr((target, order, sorted(keys.items()), *_described(cv, groups)))
    name = f"compared-{hashlib.sha256(text + asked.encode()).hexdigest()[:12]}"
    place = Path("results", name) if folder is None else expanded(folder)
    source = place.parent / f"{place.name}.csv"
    common = {"dataset": "csv", "dataset.path": str(source.absolute()), "dataset.target": target, "dataset.name": place.name}
    if order is not None:
        common["dataset.order"] = [str(label) for label in order]
    if not {"dataset__categorical", "dataset__features"} & set(keys) and _has_text(frame, {target, *_columns_in(keys), groups}):
        common["dataset.categorical"] = "auto"
    common |= {key.replace("__", "."): value for key, value in keys.items()}
    with _beside(source, text, place):
        rows = sweep([{**common, **_loss_keys(loss)} for loss in losses], place, workers=workers, quiet=quiet, cv=cv, groups=groups)
    return Comparison(rows, summarise(rows), place)


def _with_groups(frame: pd.DataFrame, groups: Any) -> tuple[pd.DataFrame, str | None]:
    """Return the frame, with a column more for groups that are given row by row, and the name of the column of groups."""
    if groups is None or isinstance(groups, str):
        return frame, groups
    values = list(groups)
    if len(values) != len(frame):
        raise ConfigError(f"compare: groups has {len(values)} values, the frame has {len(frame)} rows; give one for each")
    name = "group"
    while name in frame.columns:
        name += "_"
    return frame.assign(**{name: values}), name


def _described(cv: Any, groups: str | None) -> list[str]:
    """Return what splits a frame as texts that tell two ways apart, nothing where the protocol does."""
    if cv is None and groups is None:
        return []
    return [repr([[list(part) for part in pair] for pair in cv] if isinstance(cv, list) else cv), str(groups)]


def _refuse(frame: pd.DataFrame, target: str, losses: Any) -> None:
    """Raise `ConfigError` for a target that is not one column, and for no losses."""
    columns = list(frame.columns)
    if target not in columns:
        raise UnknownNameError(f"compare: the frame has no column {target!r}; {nearest(target, columns)}")
    if isinstance(losses, str) or not len(losses):
        raise ConfigError(f"compare: losses={losses!r} must be a list of at least one loss")
    if columns.count(target) > 1:
        raise ConfigError(f"compare: the frame has {columns.count(target)} columns {target!r}; rename them")


@contextlib.contextmanager
def _beside(source: Path, text: bytes, place: Path) -> Iterator[None]:
    """Write a frame beside the results that are made of it; a call that is refused leaves what was there before it.

    Keys of the command line in a message become arguments of `compare`.
    """
    new = next((folder for folder in reversed([source.parent, *source.parent.parents]) if not folder.exists()), None)
    before = source.read_bytes() if source.is_file() else None
    source.parent.mkdir(parents=True, exist_ok=True)
    if before != text:
        write_bytes(source, text, _REMEDY)
    try:
        yield
    except AdvcliError as error:
        if before is not None:
            write_bytes(source, before, _REMEDY)
        elif not place.exists():
            source.unlink()
        if new is not None:
            _remove_empty(source.parent, new)
        raise _in_python(error, source) from error


def _remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those around it up to ``top``, as far as they are empty."""
    with contextlib.suppress(OSError):
        folder.rmdir()
        if folder != top:
            _remove_empty(folder.parent, top)


def _in_python(error: AdvcliError, source: Path) -> AdvcliError:
    """Return an error whose message names arguments of `compare` where it named keys of the command line, and the frame for its file."""

    def argument(match: re.Match[str]) -> str:
        key, value = match["key"].replace(".", "__"), match["value"]
        return key if value is None else f"{key}={_literal(value)}"

    def said(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(said, part))
        text = re.sub(r" \(line \d+\)", "", str(part).replace(str(source.absolute()), "the frame"))
        return _KEY.sub(argument, text)

    kind, parts, *_ = cast(tuple[Any, ...], error.__reduce__())  # what makes it again
    return cast(AdvcliError, kind(*map(said, parts)))


_GROUPS = "dataset|protocol|loss|features|solver|hyper|report|noise"
_KEY = re.compile(rf"\b(?P<key>(?:{_GROUPS})(?:\.\w+)+)(?:=(?P<value>\[[^\]]*\]|[\w.+-]*\w))?")
"""A key of the command line in a message, with its value."""


def _literal(value: str) -> str:
    """Return a value of the command line as Python writes it."""
    if value.startswith("["):
        return repr([part.strip() for part in value[1:-1].split(",")])
    constants = {"null": "None", "true": "True", "false": "False"}
    return constants.get(value) or (value if re.fullmatch(r"[+-]?[\d.]+(?:e[+-]?\d+)?", value) else f'"{value}"')


def _has_text(frame: pd.DataFrame, others: set[str]) -> bool:
    """Return whether a column outside ``others`` holds text, which makes features only as categories."""
    return any(kind.kind not in "iufb" for name, kind in zip(frame.columns, frame.dtypes, strict=True) if name not in others)


def _columns_in(keys: Mapping[str, Any]) -> list[str]:
    """Return the columns that keys of ``dataset`` name, whatever for."""
    values = [value for key, value in keys.items() if key.startswith("dataset__")]
    return [str(name) for value in values for name in ([value] if isinstance(value, str | int) else value or ())]


def _loss_keys(loss: Any) -> dict[str, Any]:
    """Return a loss as keys of a cell."""
    if not isinstance(loss, Mapping):
        return {"loss": loss}
    if "name" not in loss:
        raise ConfigError(f"compare: the loss {dict(loss)} has no name")
    return {"loss": loss["name"], **{f"loss.{key}": value for key, value in loss.items() if key != "name"}}


def _flat(frame: Any) -> pd.DataFrame:
    """Return a frame of pandas whose columns have the names that a file would give them."""
    import pandas as pd

    from ..data.labels.order import own_order

    frame = collected(frame)
    if hasattr(frame, "to_pandas") and hasattr(frame, "column_names"):  # a table of Arrow has arrays as columns
        frame = frame.to_pandas()
    if not hasattr(frame, "columns"):
        raise ConfigError(f"compare: {type(frame).__name__} has no columns; give a DataFrame")
    names = [str(name).strip() for name in frame.columns]
    if not isinstance(frame, pd.DataFrame):
        cells = {name: (frame[name].to_list(), own_order(frame[name])) for name in frame.columns}
        frame = pd.DataFrame(
            {name: pd.Categorical(values, order, ordered=True) if order else values for name, (values, order) in cells.items()}
        )
    return frame.set_axis(names, axis=1)
