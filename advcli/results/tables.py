"""Rows: the columns of runs.csv and search.csv and what they mean, the texts of their values, reading them again."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import itertools
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ResultsError
from ..core.files import reason

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
"""Raised when the meaning of a row changes; part of every cell key, so that old and new rows never mix."""

NUMBERS_VERSION = 1
"""Raised when a change of the code may change the numbers in rows; part of every cell key, so that a resumed sweep computes them again.

A number that people raise, not a hash of the sources: a new loss, a renamed variable or another compiler would change a hash, and days of
finished cells would be thrown away for the same numbers. `make release-check` lists the sources that make numbers and have changed since
the last release: each change is either harmless or raises this.
"""

_HYPER_MEANINGS = {
    "C": "weight of the summed loss; empty for methods without it and where lambda was given",
    "lambda": "the same regularisation as lambda = 1/(n C), where the protocol or `hyper.lambda` gives it so",
    "gamma": "width of the kernel; empty for features without one",
}

HYPER_COLUMNS = tuple(_HYPER_MEANINGS)
"""Hyper-parameters that always have a column; others are inserted after them in alphabetical order.

A hyper-parameter of one learner alone is named by the key that fixes it, ``loss.options.C``; its values may be texts (`hyper_value`)."""

OWN_HYPER = "loss."
"""How the columns of a learner's own hyper-parameters begin."""

_FIT_MEANINGS = {
    "objective": "certified objective P = lambda/2 |theta|^2 + mean loss of the fit",
    "dual_objective": "certified lower bound D of the optimum; -inf where the dual point was refused, empty where the method has none",
    "relative_gap": "(P - D) / `gap_scale`",
    "gap_scale": "what the gap is relative to: P in most problems (`Certificate.scale`)",
    "passes": "visits of the solver, in passes over the rows",
    "converged": "whether the relative gap reached `solver.tol` (`solver.search_tol` in a search) by a feasible dual point",
}

RUN_MEANINGS = {
    "dataset": "name of the data set",
    "loss": "name of the loss or learner",
    "features": "name of the feature map",
    "solver": "solver that ran; with solver=auto the one that it chose",
    "method": "name of the method in tables: loss, features, and the solver unless it is auto",
    "split": "number of the split, from 1",
    "metric": "name of the metric",
    "value": "value of the metric on the test rows; empty for a failed fit and for a metric that is not defined there",
    **_HYPER_MEANINGS,
    "n_train": "training rows",
    "n_test": "test rows",
    "n_features": "columns of the rows that were fitted, after encoding",
    "n_classes": "classes of the data set",
    **_FIT_MEANINGS,
    "game_value": "P + lambda/2 |theta|^2: the largest expected loss that the moments allow; empty for losses that are no game",
    "train_expected_loss": "mean over the training rows of the expected loss of the predictor's distribution; never above `game_value`",
    "test_expected_loss": "the same mean over the test rows",
    "label_error": "share of the training labels that differ from the true ones, under label noise",
    "confusion_norm": "Frobenius norm of the off-diagonal part of the true confusion matrix of the training labels",
    "condition": "condition number of the confusion matrix that the method was given",
    "fit_seconds": "wall time of the final fit; differs between runs",
    "predict_seconds": "wall time of the predictions on the test rows; differs between runs",
    "seed": "key `seed` of the run",
    "status": "ok, not_converged (the gap is above the tolerance), or failed (no value)",
    "error": "the error of a failed fit in one line",
    "options": "name of the protocol, options of loss, features and noise, and fixed hyper-parameters, `key=value; ...`",
    "arithmetic": "fast, or portable: the same bits on every processor (key `arithmetic`); empty for imported rows",
    "proof": "checksum of the stored proof of the fit (`record.proofs=true`)",
    "cell": "key of the cell, the name of its file in cells/",
}
"""Columns of runs.csv with their meanings: one row per (cell, split, metric)."""

RUN_COLUMNS = tuple(RUN_MEANINGS)

STAGE_COLUMNS = tuple(
    f"{stage}_{column}" for stage in ("rejector", "relations") for column in ("objective", "dual_objective", "relative_gap", "converged")
)
"""The certificate of a fit's second problem, behind ``converged`` in tables with such fits; the columns without a stage are the first's."""

IMPORTED_MEANINGS = {
    "higher_is_better": "whether higher values of the metric are better",
    "split_name": "name of the split in the table that was imported",
    "item": "name of the item, such as a question, in the table that was imported; the column split has its number",
}
IMPORTED_COLUMNS = tuple(IMPORTED_MEANINGS)
"""Columns at the end of tables with imported rows (`advcli import`), which have no fits: no solver, no hyper-parameters, no certificate."""

PARTS = "parts"
"""A column of tables with such splits: ``growing`` where every training part has the rows of the one before, ``same`` where all test parts
have the same rows. Tests over splits that overlap at random are not for these."""
LAST_COLUMNS = (*IMPORTED_COLUMNS, PARTS)
"""Columns at the end of a table, which few tables have."""

NEEDED = ("dataset", "loss", "features", "solver", "method", "split", "metric", "value", "n_train", "n_test", "seed", "status", "cell")

SEARCH_MEANINGS = {
    "cell": "key of the cell, as in runs.csv",
    "dataset": "name of the data set",
    "method": "name of the method in tables",
    "split": "split whose training rows were searched, from 1",
    "stage": "stage of the search: 1 the grid of the protocol, 2 the multiples of its winner",
    "fold": "fold of the cross-validation, from 1",
    **_HYPER_MEANINGS,
    "metric": "metric that selects the hyper-parameters",
    "value": "value of this metric on the rows of the fold that were held out",
    "n_train": "rows that the candidate was fitted to",
    "n_test": "rows that were held out",
    **_FIT_MEANINGS,
    "seconds": "wall time of the fit; differs between runs",
}
"""Columns of search.csv with their meanings: one row per fit of a search."""

SEARCH_COLUMNS = tuple(SEARCH_MEANINGS)

TIMING_COLUMNS = ("fit_seconds", "predict_seconds", "seconds")
"""The only columns that may differ between two runs of the same configuration."""

GROWING = ("n_splits", "metrics")
"""Keys of the protocol that may grow in a finished cell: its key, its proofs and the identity of its folder do not depend on them."""

STRINGS = frozenset(
    {"dataset", "loss", "features", "solver", "method", "metric", "status", "error", "options", "arithmetic", "proof", "cell"}
)
STRINGS |= {PARTS, "split_name", "item"}
INTEGERS = frozenset({"split", "n_train", "n_test", "n_features", "n_classes", "passes", "seed", "stage", "fold"})
BOOLEANS = frozenset({"converged", "higher_is_better", *(column for column in STAGE_COLUMNS if column.endswith("converged"))})


_PLAIN = frozenset({str, int, float, bool, type(None)})


def plain(value: Any, whole: bool = False) -> Any:
    """Return a value made of plain Python types only (NumPy scalars and arrays, paths and tuples converted), fit for JSON.

    ``whole``: floats that are whole numbers become integers.
    """
    if type(value) in _PLAIN:  # nearly every value, and asking a class whether it is a mapping takes longer than all else here
        return int(value) if whole and type(value) is float and value.is_integer() else value
    if isinstance(value, Mapping):
        return {str(key): plain(item, whole) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, whole) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return plain(float(value), whole)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), whole)
    return str(value)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, 1.0 written as 1 (YAML does not tell them apart)."""
    return json.dumps(plain(value, whole=True), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def lasting(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell's configuration without what may grow (`GROWING`) and without the texts that explain it, which determine no row."""

    def unspoken(value: Any) -> Any:
        return {key: unspoken(item) for key, item in value.items() if key != "description"} if isinstance(value, Mapping) else value

    settings = dict(unspoken(cell))
    if "protocol" in settings:
        settings["protocol"] = {key: value for key, value in settings["protocol"].items() if key not in GROWING}
    return settings


def hyper_value(value: Any) -> float | str:
    """Return a hyper-parameter as a row holds it: a number, or the JSON text of anything else, a text without its quotes."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return value if isinstance(value, str) else canonical_json(value)


def hyper_text(value: Any) -> str:
    """Return a hyper-parameter, or its entry of a row, in a few characters for people."""
    held = hyper_value(value)
    return held if isinstance(held, str) else f"{held:g}"


def over_splits(values: Sequence[Any]) -> Any:
    """Return what splits chose of a hyper-parameter: the value if it is one, else a text.

    Of numbers that is the median, which is a chosen value, and the range; of others how often each was chosen. None, where a split has
    none, does not count.
    """
    chosen = [value for value in values if value is not None]
    if len(distinct := list(dict.fromkeys(chosen))) < 2:
        return distinct[0] if distinct else None
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in chosen):
        return f"{statistics.median_low(chosen):g} ({min(chosen):g} to {max(chosen):g})"
    return " or ".join(f"{hyper_text(value)} ({chosen.count(value)} splits)" for value in distinct)


def option_text(value: Any) -> str:
    """Return an option in at most 40 characters: the hash of a longer one, such as a matrix, tells two of them apart as well."""
    text = canonical_json(value).strip('"')
    return text if len(text) <= 40 else hashlib.sha256(text.encode()).hexdigest()[:8]


def format_value(value: Any) -> str:
    """Return the CSV text of a value; floats are written so that reading them gives the same bits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return str(value)


def short_json(value: Any) -> str:
    """Return a value in at most 60 characters, for messages."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def hyper_columns(columns: Iterable[str], base: Sequence[str] = RUN_COLUMNS) -> list[str]:
    """Return the columns that hold hyper-parameters: `HYPER_COLUMNS`, and all that ``base``, what every table has, does not name."""
    return [column for column in columns if column in HYPER_COLUMNS or column not in (*base, *STAGE_COLUMNS, *LAST_COLUMNS)]


def all_columns(base: Sequence[str], present: Iterable[str]) -> list[str]:
    """Return the base columns with further hyper-parameters inserted after the known ones, columns of stages, and `LAST_COLUMNS`."""
    there = set(present)
    extra = sorted(there - {*base, *STAGE_COLUMNS, *LAST_COLUMNS})
    stages, last = ([column for column in columns if column in there] for columns in (STAGE_COLUMNS, LAST_COLUMNS))
    hyper, converged = base.index(HYPER_COLUMNS[-1]) + 1, base.index("converged") + 1
    return [*base[:hyper], *extra, *base[hyper:converged], *stages, *base[converged:], *last]


def pack(rows: Sequence[Mapping[str, Any]], base: Sequence[str]) -> dict[str, Any]:
    """Return rows as one table for JSON: ``columns``, which are ``base`` and what else a row has, and ``values``, a list for each row."""
    columns = all_columns(base, {key for row in rows for key in row})
    return {"columns": columns, "values": [[plain(row.get(column)) for column in columns] for row in rows]}


def unpack(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that `pack` packed."""
    return [dict(zip(table["columns"], values, strict=True)) for values in table["values"]]


def complete_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of runs.csv in plain types with every column, None where a row has nothing."""
    return unpack(pack(rows, RUN_COLUMNS))


def with_types(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of texts with its types: whether pandas' own parser returns the exact bits depends on its version.

    A column of a learner's own hyper-parameter stays text where one of its values is not a number. Imported rows, whose table has the
    columns with a value alone, get the other columns, empty.
    """
    import numpy as np
    import pandas as pd

    if IMPORTED_COLUMNS[0] in frame:
        columns = all_columns(RUN_COLUMNS, frame.columns)
        frame = frame.reindex(columns=columns, fill_value="")
    for column in frame.columns.difference(sorted(STRINGS), sort=False):
        text = frame[column].to_numpy(dtype=object)
        empty = text == ""
        if column in INTEGERS:
            numbers = np.where(empty, "0", text).astype(np.int64)
            frame[column] = pd.arrays.IntegerArray(numbers, empty)
        elif column in BOOLEANS:
            unknown = sorted({*text[~empty]} - {"True", "False"})
            if unknown:
                raise ValueError(f"column {column!r} has the value {unknown[0]!r}")
            frame[column] = pd.arrays.BooleanArray(text == "True", empty)
        else:
            with contextlib.suppress(*([ValueError] if str(column).startswith(OWN_HYPER) else [])):
                frame[column] = np.where(empty, "nan", text).astype(np.float64)
    return frame


def read_table(path: Path) -> pd.DataFrame:
    """Read runs.csv or search.csv with stable column types.

    Strings stay strings (a data set may be called ``null``), whole numbers are ``Int64``, ``converged`` is ``boolean``, all
    else is float64 with the exact bits that were written. Raises `ResultsError` for a file that is missing or no table of this program.
    """
    import pandas as pd

    try:
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
        if "dataset" not in header or "metric" not in header:
            raise ResultsError(f"{path} is not a table written by advcli: its first line has no columns 'dataset' and 'metric'")
        frame = with_types(pd.read_csv(path, dtype=str, keep_default_na=False))
    except FileNotFoundError:
        raise ResultsError(f"no {path.name} in {path.parent}; run an experiment with this results folder first") from None
    except OSError as error:
        raise ResultsError(f"cannot read {path}: {reason(error)}") from error
    except (ValueError, csv.Error) as error:
        raise ResultsError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    return frame


def difference(name: str, merged: Sequence[Sequence[str]], table: Iterable[Sequence[str]]) -> str:
    """Return the first difference between the rows that cells make and the table in the same folder, columns matched by name."""
    if not merged:
        return ""
    (mine, *expected), (header, *lines) = merged, [*table] or [[]]
    columns = [*mine, *(column for column in header if column not in mine)]
    places = [[names.index(column) if column in names else None for column in columns] for names in (mine, header)]
    for number, (wanted, line) in enumerate(itertools.zip_longest(expected, lines), start=2):
        if line is None:
            return f"{name} ends before line {number}; its cell files make {len(expected)} rows"
        if wanted is None:
            return f"{name} goes on at line {number}; its cell files make {len(expected)} rows"
        if len(line) != len(header):
            return f"{name}, line {number}: {len(line)} fields, {len(header)} columns"
        for column, here, there in zip(columns, *places, strict=True):
            cell, text = "" if here is None else wanted[here], "" if there is None else line[there]
            if cell != text:
                return f"{name}, line {number}: {column} is {short_json(text)}, its cell file has {short_json(cell)}"
    return ""
