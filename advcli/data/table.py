"""Tables in comma-separated text, read strictly, and turned into a `Dataset`.

Everything that can be wrong with a person's file is answered by one line that names the file, the column, the row and the remedy.
Rows count from 1 without the heading; lines count from 1 with it, as an editor shows them.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import ConfigError, DataError, nearest
from .cut import CUTS, cut_target
from .dataset import Dataset, Edges, make_dataset

# Options of every source that reads a table, with their defaults.
TABLE_OPTIONS: dict[str, Any] = {
    "target": "target",
    "features": None,
    "drop": [],
    "categorical": [],
    "weight": None,
    "order": None,
    "cut": "none",
    "n_classes": None,
    "edges": None,
}

# Above this many different fractional values a target is taken for a continuous one.
_MOST_FRACTIONAL_CLASSES = 20

# Numbers are read to the last bit; from 3.1 on pandas does so by itself and warns about the option.
_EXACT: dict[str, Any] = {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}

_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}


@dataclass(frozen=True)
class Table:
    """A table of raw columns: numbers where all cells of a column are numbers, text elsewhere.

    Attributes
    ----------
    path : Path
        The file, for messages.
    frame : DataFrame
        The columns; the target column is always text, so that labels such as 01 stay what they are.
    lines : ndarray of int or None
        Line of the file of every row; None if row i is on line i + 1 (after a heading on line 1).
    before : int
        Rows of the file before this part of it.
    """

    path: Path
    frame: pd.DataFrame
    lines: NDArray[Any] | None = field(default=None, repr=False)
    before: int = 0

    def place(self, row: int) -> str:
        """Return words for a 0-based row."""
        line = self.before + row + 2 if self.lines is None else int(self.lines[row])
        return f"row {self.before + row + 1} (line {line})"


@dataclass(frozen=True)
class Column:
    """A column of a table that features are made of.

    Attributes
    ----------
    name : str
        Its name in the heading.
    categories : tuple of str, int or float, or None
        The values that are one-hot encoded, in the order of their features; None for a column of numbers.
    """

    name: str
    categories: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Encoding:
    """How rows of a table become rows of X; learned from one table, applied to others.

    Attributes
    ----------
    columns : tuple of Column
        The columns that are used, in the order of their features.
    others : tuple of str
        Columns that were there and have no features: the target, weights, those left out.
    separator : str
        Character between fields.
    """

    columns: tuple[Column, ...]
    others: tuple[str, ...] = ()
    separator: str = ","

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X: ``size`` for numbers, ``colour=red`` for a category."""
        return tuple(
            name
            for column in self.columns
            for name in ([column.name] if column.categories is None else [f"{column.name}={value}" for value in column.categories])
        )

    @property
    def text(self) -> tuple[str, ...]:
        """Columns that are read as text, so that 01 and 1 stay apart."""
        return tuple(column.name for column in self.columns if column.categories is not None)

    def check_columns(self, path: Path, names: Sequence[str]) -> list[str]:
        """Return the columns of `others` among ``names``, which need not be there.

        Raises
        ------
        DataError
            A column is missing, or one is there that no row was learned from.
        """
        needed = [column.name for column in self.columns]
        missing = [name for name in needed if name not in names]
        unexpected = [name for name in names if name not in needed and name not in self.others]
        if missing or unexpected:
            said = [f"{word}: {_listed(found)}" for word, found in (("missing", missing), ("unexpected", unexpected)) if found]
            raise DataError(f"{path} has other columns than the model was fitted on; {'; '.join(said)}")
        return [name for name in names if name in self.others]

    def encode(self, table: Table, remedies: Callable[[str], tuple[str, str]] | None = None) -> NDArray[np.float64]:
        """Return the features of a table, shape (n, d).

        Parameters
        ----------
        table : Table
        remedies : callable, optional
            For the name of a column of numbers: what to do about text in it, and about a cell without a number.

        Raises
        ------
        DataError
            A cell without a value, text in a column of numbers, or a category that was not there when the encoding was learned.
        """
        blocks = []
        for column in self.columns:
            if column.categories is None:
                remedy = ("correct it or remove the row",) * 2 if remedies is None else remedies(column.name)
                blocks.append(_numbers(table, column.name, "as a feature", *remedy)[:, None])
                continue
            text = _categories(table, column.name, "fill it or remove the row")
            known = pd.Index(column.categories)
            numeric = known.dtype.kind in "if"
            codes = known.get_indexer(pd.Index(pd.to_numeric(text, errors="coerce") if numeric else text))
            bad = np.flatnonzero(codes < 0)
            if bad.size:
                raise DataError(
                    f"{table.path}: column {column.name!r} holds {text.iloc[bad[0]]!r} in {table.place(int(bad[0]))}, a category that was "
                    f"not there to learn from ({_listed(column.categories)}); correct it or remove the row"
                )
            blocks.append((codes[:, None] == np.arange(len(known))).astype(np.float64))
        return np.ascontiguousarray(np.hstack(blocks))


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, whatever its faults as a table may be.

    Raises
    ------
    DataError
        Missing, a folder, or not readable.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file; name the CSV file in it")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def missing_file(path: Path) -> DataError:
    """Return the error for a file that is not there, with the nearest name beside it."""
    beside = [item.name for item in path.parent.iterdir() if item.is_file()] if path.parent.is_dir() else []
    close = nearest(path.name, beside) if beside else ""
    return DataError(f"there is no file {path}; {close if close.startswith('did you mean') else 'check the path'}")


def decode(path: Path, raw: bytes) -> str:
    """Return the text of a file, unpacked if it is gzip.

    Raises
    ------
    DataError
        Damaged gzip, not UTF-8, or empty.
    """
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            raise DataError(f"{path} is a damaged gzip file; get it again") from None
    elif path.suffix == ".gz" and raw:
        raise DataError(f"{path} ends in .gz but is not a gzip file; get it again or rename it")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path} is not UTF-8 text (line {line}); save it as CSV with the encoding UTF-8") from None
    if "\0" in text:
        raise DataError(f"{path} is not a text file (it has zero bytes); save it as CSV with the encoding UTF-8")
    if not text.strip():
        raise DataError(f"{path} is empty; it needs a heading line and rows")
    return text


def read_table(path: Path, target: str, raw: bytes | None = None, separator: str = ",", text: Sequence[str] = ()) -> Table:
    """Read a CSV file (plain or gzip) with a heading line.

    Parameters
    ----------
    path : Path
    target : str
        The column of labels; ``label_*`` stands for all columns whose names begin with ``label_``.
    raw : bytes, optional
        The file's content, when it was read already.
    separator : str
        Character between fields.
    text : sequence of str
        Further columns that stay text as the target does.

    Raises
    ------
    DataError
        Missing, damaged, empty, not UTF-8; duplicate or nameless columns; rows of unequal length; no target column.
    """
    names, lines, content = check_shape(path, decode(path, read_bytes(path) if raw is None else raw), separator)
    targets = target_columns(target, names)
    if not targets:
        raise DataError(f"{path} has no column {target!r} for the target; {_choose(target, names)} (dataset.target=...)")
    frame = parse(path, content, names, [*targets, *(name for name in text if name in names)], separator)
    return Table(path, frame, lines)


def target_columns(target: str, names: Sequence[str]) -> list[str]:
    """Return the columns that a target means: the one of that name, or all that begin as the name does before a final ``*``."""
    if target.endswith("*") and target not in names:
        return [name for name in names if name.startswith(target[:-1])]
    return [target] if target in names else []


def parse(path: Path, text: str, names: list[str], as_text: Sequence[str], separator: str) -> pd.DataFrame:
    """Return the frame of a text with a heading whose shape was checked."""
    try:
        return pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=0,
            names=names,
            index_col=False,
            dtype=dict.fromkeys(as_text, str),
            keep_default_na=False,  # "NA" and "None" may be labels; missing numbers are found below
            **_EXACT,
            skipinitialspace=True,
            low_memory=False,
        )
    except (ValueError, OverflowError) as error:  # what the checks before let through
        raise DataError(f"{path} cannot be read as CSV: {str(error).splitlines()[0]}") from None


def check_shape(
    path: Path, text: str, separator: str, rows_before: int = 0, lines_before: int = 0
) -> tuple[list[str], NDArray[Any] | None, str]:
    """Return the names, the lines of the rows and the text without blank lines; every row has as many fields as the heading.

    Parameters
    ----------
    path : Path
        For messages.
    text : str
        A heading and rows.
    separator : str
        Character between fields.
    rows_before, lines_before : int
        Rows and lines of the file between the heading and these rows, when they are a part of it.
    """
    if '"' in text:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
        counts, lines, heading = [], [], None
        try:
            start = 1
            for fields in reader:
                if fields:
                    if heading is None:
                        heading = fields
                    else:
                        counts.append(len(fields))
                        lines.append(start)
                start = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}, line {lines_before + reader.line_num}: {error}; is a quotation mark not closed?") from None
    else:
        every = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        kept = [number for number, line in enumerate(every) if line.strip()]
        heading = next(csv.reader([every[kept[0]]], delimiter=separator, skipinitialspace=True))
        lines = [number + 1 for number in kept[1:]]
        counts = [every[number].count(separator) + 1 for number in kept[1:]]
        text = "\n".join(every[number] for number in kept)
    names = [name.strip() for name in heading or []]
    if len(names) == 1:
        for other, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if other in names[0] and other != separator:
                raise DataError(f"{path} seems to be separated by {word}, not by {separator!r}; save it with commas")
    for position, name in enumerate(names):
        if not name:
            raise DataError(f"{path}: column {position + 1} has no name in the heading; name it or remove it")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{path} has more than one column named {' and '.join(map(repr, twice))}; rename them")
    if not counts:
        raise DataError(f"{path} has a heading but no rows")
    for row, count in enumerate(counts):
        if count != len(names):
            raise DataError(
                f"{path}: row {rows_before + row + 1} (line {lines_before + lines[row]}) has {count} fields, the heading has {len(names)}; "
                "add or remove fields, or quote text that contains the separator"
            )
    regular = lines[-1] == len(lines) + 1 and lines_before == rows_before
    return names, None if regular else lines_before + np.asarray(lines), text


def make_table_dataset(table: Table, options: Mapping[str, Any], ignore: Sequence[str] = (), notes: Sequence[str] = ()) -> Dataset:
    """Turn a table into a `Dataset` by the options of a table source.

    Parameters
    ----------
    table : Table
        The raw columns.
    options : mapping
        `TABLE_OPTIONS` and the common options, all present.
    ignore : sequence of str
        Columns that are reserved by the format and never features.
    notes : sequence of str
        Notes that come first.
    """
    said = list(notes)
    names = list(map(str, table.frame.columns))
    target, weight = str(options["target"]), options["weight"]
    columns = _feature_columns(table, options, ignore, names)
    missing = str(options.get("missing") or "refuse")
    if missing != "refuse":
        table = _fill(table, columns, missing, said)
    encoding = _learn_encoding(table, columns, options, said)
    X = encoding.encode(table, _remedies)
    hierarchy: Edges | None = None
    stubs: tuple[str, ...] = ()
    if asks_for_label_sets(options):
        from .label_sets import read_label_sets

        found = read_label_sets(table, options, said)
        codes, classes, ordered = found.y, list(found.classes), False
        hierarchy, stubs = found.hierarchy, found.stubs
    else:
        codes, classes, ordered = target_codes(table, target, options, said)
    weights = None
    if weight is not None:
        weights = _numbers(
            table,
            str(weight),
            "as example weights",
            "correct it, or use dataset.weight=null",
            "correct it, remove the row or use dataset.weight=null",
        )
        bad = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
        if bad.size:
            raise DataError(
                f"{table.path}: weight {weights[bad[0]]:g} in column {weight!r}, {table.place(int(bad[0]))}, is not above 0; "
                "correct it or remove the row"
            )
        said.append(f"examples weighted by column {weight!r}")
    return make_dataset(
        name=options["name"],
        X=X,
        y=codes,
        classes=classes,
        feature_names=encoding.feature_names,
        ordered=ordered,
        sizes=options["sizes"],
        example_weight=weights,
        notes=said,
        encoding=encoding,
        allow_small_classes=options["allow_small_classes"],
        hierarchy=hierarchy,
        stubs=stubs,
    )


def asks_for_label_sets(options: Mapping[str, Any]) -> bool:
    """Return whether the target holds nodes of a hierarchy or sets of labels (`advcli.data.label_sets`)."""
    return options.get("hierarchy") is not None or options.get("label_separator") is not None or str(options["target"]).endswith("*")


def _fill(table: Table, columns: Sequence[str], missing: str, notes: list[str]) -> Table:
    """Return the table with the mean or median of its column in every cell without a number; the rows of an official test do not count."""
    if missing not in ("mean", "median"):
        raise ConfigError(f"dataset.missing={missing} must be refuse, mean or median")
    frame, filled = table.frame.copy(), 0
    known = (frame["split"] != "test").to_numpy() if "split" in frame else np.ones(len(frame), dtype=bool)
    for name in columns:
        if _is_number(frame[name]) or not _reads_as_numbers(frame[name]):
            continue
        values = pd.to_numeric(frame[name].astype(str).str.strip(), errors="coerce")
        if values[known].notna().any():
            filled += int(values.isna().sum())
            frame[name] = values.fillna(getattr(values[known], missing)())
    if filled:
        notes.append(
            f"{filled} cells without a value hold the {missing} of their column" + (" over the training rows" if not known.all() else "")
        )
    return replace(table, frame=frame)


def _feature_columns(table: Table, options: Mapping[str, Any], ignore: Sequence[str], names: list[str]) -> list[str]:
    special = {*target_columns(str(options["target"]), names), *([str(options["weight"])] if options["weight"] is not None else [])}
    drop = _names(options["drop"], "drop")
    wanted = None if options["features"] is None else _names(options["features"], "features")
    categorical = [] if options["categorical"] == "auto" else _names(options["categorical"], "categorical")
    asked: dict[str, list[str]] = {"drop": drop, "features": wanted or [], "categorical": categorical}
    if options["weight"] is not None:
        asked["weight"] = [str(options["weight"])]
    for key, listed in asked.items():
        for name in listed:
            if name not in names:
                raise DataError(f"{table.path} has no column {name!r}, which dataset.{key} names; {_choose(name, names)}")
    for key in ("features", "categorical"):
        for name in asked[key]:
            if name in special:
                raise ConfigError(f"dataset.{key} names {name!r}, which is the target or the weight of the examples")
    left_out = special | set(drop) | set(ignore)
    columns = [name for name in names if name not in left_out] if wanted is None else [name for name in wanted if name not in drop]
    if not columns:
        raise DataError(f"{table.path} has no feature columns left; check dataset.features and dataset.drop")
    return columns


def _names(value: Any, key: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, (str, int, float)):
        return [str(value)]
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    raise ConfigError(f"dataset.{key}={value} must be a list of column names")


def _choose(name: str, names: Sequence[str]) -> str:
    """Name the nearest columns, or some of them where nothing is near and there are many."""
    clause = nearest(name, names)
    return clause if len(clause) <= 200 else f"it has {len(names)} columns: {', '.join(names[:5])}, ..., {names[-1]}"


def _learn_encoding(table: Table, columns: list[str], options: Mapping[str, Any], notes: list[str]) -> Encoding:
    frame, categorical = table.frame, options["categorical"]
    if categorical == "auto":
        encoded = {name for name in columns if not _is_number(frame[name]) and not _reads_as_numbers(frame[name])}
    else:
        encoded = set(_names(categorical, "categorical")) & set(columns)
    learned = []
    for name in columns:
        if name not in encoded:
            learned.append(Column(name))
            continue
        labels = _labels(_categories(table, name, f"fill it, remove the row or use dataset.drop=[{name}]"))[1]
        learned.append(Column(name, tuple(labels)))
        notes.append(f"column {name!r} one-hot encoded: {len(labels)} features ({_listed(labels)})")
    others = [name for name in map(str, frame.columns) if name not in columns]
    return Encoding(tuple(learned), tuple(others), str(options.get("separator", ",")))


def _remedies(name: str) -> tuple[str, str]:
    drop = f"use dataset.drop=[{name}]"
    return f"one-hot encode it with dataset.categorical=[{name}], or {drop}", f"correct it, remove the row or {drop}"


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")


def _categories(table: Table, name: str, remedy: str) -> pd.Series:
    """Return a column as stripped text, or say which cell has no value."""
    text = table.frame[name].astype(str).str.strip()
    empty = np.flatnonzero(text.str.lower().isin(_MISSING))
    if empty.size:
        raise DataError(f"{table.path}: column {name!r} has no value in {table.place(int(empty[0]))}; {remedy}")
    return text


def _is_number(column: pd.Series) -> bool:
    return column.dtype.kind in "iufb"


def _reads_as_numbers(column: pd.Series) -> bool:
    # a column of numbers with a few missing cells arrives as text: it has to fail as missing, not to become categories
    text = column.astype(str).str.strip()
    rest = text[~text.str.lower().isin(_MISSING)]
    return not rest.empty and bool(pd.to_numeric(rest, errors="coerce").notna().all())


def _numbers(table: Table, name: str, purpose: str, text_remedy: str, remedy: str) -> NDArray[np.float64]:
    """Return a column as finite numbers or say which cell is none, what it is needed for and what to do."""
    column = table.frame[name]
    if _is_number(column):
        values = column.to_numpy(np.float64)
        text = None
    else:
        text = column.astype(str).str.strip()
        values = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    if text is not None:  # say what text there is before what is missing: it is the column that is wrong then
        for number in bad.tolist():
            cell = text.iloc[number]
            if cell.lower() not in _MISSING and np.isnan(values[number]):
                raise DataError(
                    f"{table.path}: column {name!r} holds text ({cell!r} in {table.place(number)}) "
                    f"and cannot be used {purpose}; {text_remedy}"
                )
    row = int(bad[0])
    what = "an infinite value" if np.isinf(values[row]) else "no value"
    count = f" (and {bad.size - 1} more)" if bad.size > 1 else ""
    raise DataError(f"{table.path}: column {name!r} has {what} in {table.place(row)}{count}; {remedy}")


def _labels(text: pd.Series) -> tuple[NDArray[np.intp], list[Any]]:
    """Return 0-based codes and the sorted labels: whole numbers, numbers or text, whichever all of them are."""
    factor, distinct = pd.factorize(text)
    labels: list[Any] = list(map(str, distinct))
    try:
        numbers = [] if any("_" in label for label in labels) else [float(label) for label in labels]
    except ValueError:
        numbers = []
    if numbers and all(np.isfinite(numbers)) and len(set(numbers)) == len(numbers):
        # 01 and 1 stay two labels: they are equal as numbers, so they are taken as text
        plain = all(number.is_integer() and abs(number) < 2**53 for number in numbers)
        values: list[Any] = [int(number) for number in numbers] if plain else numbers
    else:
        values = labels
    order = sorted(range(len(values)), key=lambda index: values[index])
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = np.arange(len(values))
    return rank[factor], [values[index] for index in order]


def target_codes(table: Table, target: str, options: Mapping[str, Any], notes: list[str]) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Return codes, labels and whether they are ordered; the cut or the order of the options is applied and noted."""
    text = table.frame[target].astype(str).str.strip()
    empty = np.flatnonzero(text == "")
    if empty.size:
        raise DataError(
            f"{table.path}: the target column {target!r} has no value in {table.place(int(empty[0]))}"
            f"{f' (and {empty.size - 1} more)' if empty.size > 1 else ''}; fill it or remove the row"
        )
    cut = str(options["cut"] if options["cut"] is not None else "none")
    check_cut(cut, options)
    if cut != "none":
        values = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(
                f"{table.path}: the target column {target!r} holds {text.iloc[bad[0]]!r} in {table.place(int(bad[0]))}, "
                f"no finite number; dataset.cut={cut} needs numbers (use dataset.cut=none for classes)"
            )
        codes, levels, said = cut_target(values, cut, options["n_classes"], options["edges"])
        notes += said
        return codes, list(levels), True
    codes, labels = _labels(text)
    return order_labels(codes, labels, options, f"{table.path}: column {target!r}", notes)


def check_cut(cut: str, options: Mapping[str, Any]) -> None:
    """Refuse options of the cut that contradict each other."""
    if cut not in CUTS:
        raise ConfigError(f"dataset.cut={cut} is not a way to cut a target; {nearest(cut, CUTS)}")
    if options["n_classes"] is not None and cut not in ("equal_width", "equal_frequency"):
        raise ConfigError(
            f"dataset.n_classes={options['n_classes']} needs dataset.cut=equal_width or equal_frequency (is {cut}); else set it to null"
        )
    if options["edges"] is not None and cut != "edges":
        raise ConfigError(f"dataset.edges needs dataset.cut=edges (is {cut}); else set it to null")
    if options["order"] is not None and cut != "none":
        raise ConfigError(f"dataset.order lists labels; it has no meaning with dataset.cut={cut}")


def order_labels(
    codes: NDArray[np.intp], labels: list[Any], options: Mapping[str, Any], where: str, notes: list[str]
) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Put the labels into the order that the options give, or check that they look like labels at all."""
    order = options["order"]
    if order is None:
        fractional = [label for label in labels if isinstance(label, float) and not label.is_integer()]
        if fractional and len(labels) > _MOST_FRACTIONAL_CLASSES:
            raise DataError(
                f"{where} holds {len(labels)} different numbers ({fractional[0]:g}, ...), not classes; "
                "cut it with dataset.cut=equal_width dataset.n_classes=5"
            )
        return codes, labels, bool(options["ordered"])
    if not isinstance(order, (list, tuple)):
        raise ConfigError(f"dataset.order={order} must be the list of the labels, lowest first")
    wanted = [_label_key(label) for label in order]
    if len(set(wanted)) < len(wanted):
        raise ConfigError(f"dataset.order={list(order)} names a label twice")
    present = {_label_key(label): index for index, label in enumerate(labels)}
    missing = [str(label) for key, label in ((_label_key(label), label) for label in labels) if key not in wanted]
    if missing:
        raise DataError(f"{where} has the label {missing[0]!r}, which dataset.order={list(map(str, order))} misses; add it in its place")
    unused = [str(label) for key, label in zip(wanted, order, strict=True) if key not in present]
    if unused:
        notes.append(f"labels of dataset.order without rows dropped: {', '.join(unused)}")
    kept = [present[key] for key in wanted if key in present]
    rank = np.empty(len(labels), dtype=np.intp)
    rank[kept] = np.arange(len(kept))
    return rank[codes], [labels[index] for index in kept], True


def _label_key(label: Any) -> Any:
    """Return a key by which 1, 1.0 and "1" are one label."""
    try:
        return float(str(label))
    except ValueError:
        return str(label).strip()


def table_sha256(table: Table, target: str = "target", ignore: Sequence[str] = ("split",)) -> str:
    """Return the canonical checksum of a table: shape, then every feature column in order, then the target.

    Names of columns, the way numbers are written, line ends and compression do not matter; the order of rows and columns and
    every value do. It recognises a data set that came another way than as the very file whose checksum is known.
    """
    frame = table.frame
    columns = [name for name in map(str, frame.columns) if name != target and name not in ignore] + [target]
    digest = hashlib.sha256(f"advcli table 1: {len(frame)} rows, {len(columns)} columns".encode())
    for name in columns:
        column = frame[name]
        values = column if _is_number(column) else pd.to_numeric(column.astype(str).str.strip(), errors="coerce")
        numbers = values.to_numpy(np.float64)
        if not np.isnan(numbers).any():
            digest.update(b"number")
            digest.update((numbers + 0.0).astype("<f8").tobytes())  # adding 0.0 turns -0.0 into 0.0
        else:
            digest.update(b"text")
            for cell in column.astype(str).str.strip():
                encoded = cell.encode()
                digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()
