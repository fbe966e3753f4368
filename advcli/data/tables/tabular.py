"""From a table and the options of its source to a `Dataset`: the way of every source that reads columns, a plug-in's too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.arrays import is_sparse
from ...core.errors import ConfigError, DataError, ProblemsError, refuse_all
from ...core.groups import group_starts
from ...core.notes import noted
from ...core.trees import tree_fault
from ..dataset import Dataset, make_dataset
from ..labels.sets import read_label_sets
from .cells import TRUTHS, cell_text, gaps_in, reads_as_numbers
from .encoding import Column, Encoding, Fault, attribute_columns, finite_numbers, read_groups, refuse_faults
from .options import ONE_COLUMN, Reading, TableOptions
from .roles import read_roles
from .shares import costs_of_labels, read_annotators, read_shares
from .suspects import SUSPECT, Inspection, looks_like, named_as_ids
from .table import Table, choose_column, frame_table, listed
from .target import code_labels, target_codes


def from_table(table: pd.DataFrame, options: Mapping[str, Any], *, where: str = "the table") -> Dataset:
    """Turn a frame into a `Dataset` by the options of a table source.

    Parameters
    ----------
    table : DataFrame
        The raw columns, of any type (`advcli.data.tables.table.frame_table`).
    options : mapping
        What `Source.load` is called with: the common options and `advcli.data.source.TABLE_OPTIONS`; where they are there too,
        `advcli.data.source.LABEL_OPTIONS` and `advcli.data.source.SEQUENCE_OPTIONS`.
    where : str
        What messages call the frame, such as its file.

    Returns
    -------
    Dataset
        X of shape (n, d) with one feature for a column of numbers, one for each value of a categorical column and one for each attribute
        of tokens.

    Raises
    ------
    DataError
        A missing column, a cell without a value, text in a column of numbers, a target that does not hold classes.
    ConfigError
        Options that contradict each other.

    Examples
    --------
    >>> import pandas as pd
    >>> from advcli.data import TABLE_OPTIONS, from_table
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue", "red", "blue"], "label": ["a", "b", "a", "b"]})
    >>> options = {**TABLE_OPTIONS, "name": "mine", "target": "label", "categorical": ["colour"]}
    >>> dataset = from_table(frame, options)
    >>> dataset.classes, dataset.X.shape
    (('a', 'b'), (4, 3))
    """
    return table_dataset(frame_table(table, where, TableOptions.read(options)))


def table_dataset(table: Table, notes: Sequence[str] = (), ignore: Sequence[str] = ()) -> Dataset:
    """Turn a table into a `Dataset`; ``notes`` come first, the columns ``ignore`` are reserved by the format and never features."""
    all_notes, options = list(notes), table.options
    inspection = Inspection(table, feature_columns(table, ignore))
    encoding = learn_encoding(inspection, all_notes)
    cells, faults = encoding.cells(table, inspection.remedies)
    all_notes += gap_note(encoding, cells)
    problems = _cell_problems(table, encoding, cells, faults)
    fields: dict[str, Any] = {}
    for part in (_classes, _weights):
        try:
            fields |= part(table, all_notes)
        except DataError as error:
            problems += list(error.problems) if isinstance(error, ProblemsError) else [str(error)]
    refuse_all(problems, str(table.path))
    fields |= read_roles(table)
    groups = encoding.groups(table)
    if groups is not None:
        lengths = np.bincount(groups)
        all_notes.append(noted("ADV104", f"{len(lengths)} sequences of {lengths.mean():.1f} rows, the longest of {lengths.max()}"))
    learned = encoding.fit(cells)
    return make_dataset(
        name=options.name,
        X=learned.features(cells),
        feature_names=learned.feature_names,
        sizes=options.sizes,
        notes=all_notes,
        encoding=learned,
        cells=cells if encoding.learns else None,
        # a prediction that is seldom or never the cheapest still has costs to learn from, and a class that is never the likeliest has mass
        allow_small_classes=bool(options.costs or options.several or options.head) or options.allow_small_classes,
        groups=groups,
        **fields,
    )


def _classes(table: Table, notes: list[str]) -> dict[str, Any]:
    """Return the fields of a `Dataset` that say what the labels of the rows are."""
    options = table.options
    if options.costs:
        costs = _costs(table, notes)
        return {"y": costs.argmin(axis=1), "classes": list(options.costs), "ordered": options.ordered, "costs": costs}
    if options.head is not None:
        return _trees(table)
    if options.has_label_sets(table.names):
        return vars(read_label_sets(table, notes))
    if options.top_labels is not None:
        raise ConfigError(f"dataset.top_labels={options.top_labels} is for sets of labels: give dataset.label_separator, or target=PREFIX*")
    if options.several:
        P, classes, ordered = (read_shares if options.shares else read_annotators)(table, notes)
        found: dict[str, Any] = {"y": P.argmax(axis=1), "classes": classes, "ordered": ordered, "soft": P}
    else:
        codes, classes, ordered = target_codes(table, notes)
        found = {"y": codes, "classes": classes, "ordered": ordered}
    return found | costs_of_labels(found, options, notes)


def _trees(table: Table) -> dict[str, Any]:
    """Return heads as labels: 0 for the root, and the numbers of words up to the longest sentence."""
    name = str(table.options.head)
    remedies = "give 0 for the root, else the number of a word", "fill it or remove the sentence"
    heads = finite_numbers(table, name, "as the number of a head", remedies)
    groups = read_groups(table, str(table.options.sequence))
    start = group_starts(groups, len(groups))
    fractional = np.flatnonzero((heads != np.floor(heads)) | (np.abs(heads) > 2**53))
    if len(fractional):
        fault: tuple[int, str] | None = (int(fractional[0]), f"{heads[fractional[0]]:g} is no number of a word")
    else:
        fault = tree_fault(heads.astype(np.intp), start)
    if fault is not None:
        raise DataError(f"{table.path}: column {name!r}, {table.place(fault[0])}: {fault[1]}")
    found = {"y": heads.astype(np.intp), "classes": list(range(int(np.diff(start).max()) + 1)), "ordered": False}
    return found if table.options.relation is None else {**found, "relations": _relations(table, table.options.relation)}


def _relations(table: Table, name: str) -> NDArray[Any]:
    """Return the relation of every word to its head, (n,)."""
    texts = np.asarray(table.text(name), dtype=object)
    table.refuse_where(texts == "", name, "has no relation", "fill it or remove the sentence")
    return texts.astype(str)


# ---- columns of features ----------------------------------------------------------------------------------------------
def feature_columns(table: Table, ignore: Sequence[str] = ()) -> list[str]:
    """Return the columns that features are made of: all, or ``features``, without target, weight, ``drop`` and ``ignore``."""
    names, options = table.names, table.options
    there = set(names)
    roles: dict[str, tuple[str, ...]] = {
        "drop": options.drop,
        "features": options.features or (),
        "categorical": options.categorical or (),
        "costs": options.costs,
        "keep": options.keep,
        **{key: (name,) for key in ONE_COLUMN if (name := getattr(options, key)) is not None},
    }
    for key, wished in roles.items():
        for name in wished:
            if name not in there:
                raise DataError(f"{table.path} has no column {name!r}, which dataset.{key} names; {choose_column(name, names)}")
    labels = {*table.targets, *options.costs}
    for key in ("group", "time"):
        if roles.get(key, ("",))[0] in labels:
            raise ConfigError(f"dataset.{key} names {roles[key][0]!r}, a column of labels; choose another column")
    special = {*labels, options.weight, options.sequence, options.relation, options.group, options.time}
    for key in ("drop", "features", "categorical"):
        for name in roles[key]:
            if name in special:
                others = ", a cost" if options.costs else ""
                others += "".join(f", the {role}" for role in ("sequence", "relation", "group", "time") if role in roles)
                raise ConfigError(f"dataset.{key} names {name!r}, which is the target{others} or the weight of the examples")
    dropped = set(options.drop)
    left_out = special | dropped | set(ignore) if options.features is None else dropped
    columns = [name for name in (names if options.features is None else options.features) if name not in left_out]
    if not columns:
        raise DataError(f"{table.path} has no feature columns left; check dataset.features and dataset.drop")
    return columns if options.head is None else _words_and_tags(table, columns)


def _words_and_tags(table: Table, columns: list[str]) -> list[str]:
    """Return the column of words and the one other column of features, of tags, which trees need."""
    words = str(table.options.tokens)
    tags = [name for name in columns if name != words]
    if len(tags) != 1 or words not in columns:
        there = f"there are {listed(columns)}"
        raise ConfigError(
            f"dataset.head needs the column of words, dataset.tokens={words}, and one of tags; {there}: dataset.features=[{words},TAGS]"
        )
    return [words, *tags]


def learn_encoding(inspection: Inspection, notes: list[str]) -> Encoding:
    """Return the encoding of the columns of an inspection before it learns from rows: numbers, and categories of ``categorical``.

    ``auto`` makes categories of columns of text. It leaves out identifiers, dates and texts (`advcli.data.tables.suspects.looks_like`);
    numbers in another notation than the options give stay columns of numbers with text in them.
    """
    table, columns = inspection.table, list(inspection.columns)
    frame, options = table.frame, table.options
    if options.head is not None:
        return _encoding(table, [Column(name, hashed=True) for name in columns])
    refuses = options.missing == "refuse"
    if options.categorical is None:
        columns, encoded = _automatic(inspection, notes)
    else:
        encoded = set(options.categorical) & set(columns)
        like_ids = [name for name in named_as_ids(columns) if name in table.numbers and name not in encoded and name not in options.keep]
        notes += [
            noted("ADV101", f"column {name!r} {SUSPECT} an identifier and is taken as a number; dataset.drop=[{name}] leaves it out")
            for name in sorted(like_ids)
            if looks_like(frame[name])
        ]
    learned = []
    whole = table.numbers - (set() if refuses else set(map(str, frame.columns[frame.isna().any()])))
    for name in columns:
        is_number = name in table.numbers and name not in encoded and name != options.tokens
        if is_number and name in whole:
            learned.append(Column(name))
            continue
        text = frame[name] if is_number else table.text(name)
        values = text.dropna() if is_number else text[~gaps_in(text)]
        if name == options.tokens:
            learned.append(_token_column(table, list(text), notes))
        elif name in encoded:
            learned.append(_category_column(values, options.max_categories, notes))
        elif not refuses and 0 < len(values) < len(text) and values.nunique() == 1:  # a box that is ticked or empty
            value = code_labels(cell_text(values.iloc[:1]))[1][0]
            learned.append(Column(name, (value,)))
            notes.append(noted("ADV102", f"column {name!r} holds {value} or nothing: nothing counts as a value, and each has a feature"))
        else:
            if not is_number:
                _refuse_mixed_truths(table, values)
            learned.append(Column(name))
    return _encoding(table, learned)


def _encoding(table: Table, learned: list[Column]) -> Encoding:
    """Return the encoding with these columns, read as the table is."""
    options = table.options
    used = {column.name for column in learned} | {options.sequence}
    others = tuple(name for name in table.names if name not in used)
    reading = {option.name: getattr(options, option.name) for option in fields(Reading)}
    return Encoding(tuple(learned), others, options.encoding, **reading)


def _automatic(inspection: Inspection, notes: list[str]) -> tuple[list[str], set[str]]:
    """Return the columns that ``categorical=auto`` takes, and which of them are categories."""
    table, options = inspection.table, inspection.table.options
    written = {*inspection.look.columns, *inspection.nearly_numbers}
    left_out = inspection.suspects([name for name in inspection.columns if name not in written])
    notes += [noted("ADV101", text) for text in left_out.values()]
    columns = [name for name in inspection.columns if name not in left_out]
    if not columns:
        raise DataError(f"{table.path} has no feature columns left; keep one of these: {listed(notes)}")
    taken = {name for name in columns if name not in table.numbers and name not in written and name != options.tokens}
    return columns, {name for name in taken if not reads_as_numbers(table.frame[name], options.notation)}


def _category_column(values: pd.Series, most: int | None, notes: list[str]) -> Column:
    """Return a column of categories, all of those among its values; ``most`` of them have features."""
    name = str(values.name)
    labels = sorted(code_labels(values)[1], key=_place) if len(values) else []
    if most is None or len(labels) <= most:
        notes.append(noted("ADV102", f"column {name!r} one-hot encoded: {len(labels)} features ({listed(labels)})"))
    else:
        text = f"{most} features, of which one is for the rarest of {len(labels)} categories ({listed(labels)})"
        notes.append(noted("ADV102", f"column {name!r} one-hot encoded: {text}; dataset.max_categories is the bound"))
    return Column(name, tuple(labels))


def _refuse_mixed_truths(table: Table, values: pd.Series) -> None:
    """Refuse TRUE or FALSE among numbers, which would count as 1 and 0."""
    truths, name = values.str.lower().isin(TRUTHS), values.name
    if truths.any() and not truths.all():
        (truth, row), (other, other_row) = ((part.iloc[0], int(part.index[0])) for part in (values[truths], values[~truths]))
        raise DataError(
            f"{table.path}: column {name!r} holds {truth!r} in {table.place(row)} beside {other!r} in {table.place(other_row)}; "
            f"correct it, one-hot encode it with dataset.categorical=[{name}], or use dataset.drop=[{name}]"
        )


def _place(label: Any) -> tuple[int, float, str]:
    """Return where a category stands, whatever others there are: numbers first, as they rise, then text."""
    try:
        return 0, float(label), str(label)
    except ValueError:
        return 1, 0.0, str(label)


def gap_note(encoding: Encoding, cells: Any) -> list[str]:
    """Return the note on cells without a value, as a list of at most one line."""
    if encoding.missing == "refuse":
        return []
    count = int(np.isnan(cells.data if is_sparse(cells) else cells).sum())
    if not count:
        return []
    way = encoding.missing.replace("_", " ")
    words = {
        "indicator": "are marked by a feature, their numbers filled by the mean of the training rows",
        "most frequent": "hold the most frequent value of their column over the training rows",
    }
    text = any(column.categories is not None for column in encoding.columns)
    default = f"hold the {way} of their column over the training rows" + (", text its most frequent category" if text else "")
    return [noted("ADV103", f"{count} cells without a value {words.get(way, default)}")]


def _token_column(table: Table, tokens: list[str], notes: list[str]) -> Column:
    """Return the column of tokens with the attributes of its training rows, where the table says which they are, else of all."""
    options = table.options
    groups = np.arange(len(tokens)) if options.sequence is None else read_groups(table, options.sequence)
    train = "split" in table.frame
    rows = (table.frame["split"] == "train").to_numpy() if train else np.ones(len(tokens), dtype=bool)
    attributes = attribute_columns(tokens, groups, rows)
    of_train = ", met in the training rows" if train else ""
    notes.append(noted("ADV104", f"{len(attributes)} attributes of the tokens of column {options.tokens!r}{of_train}"))
    return Column(str(options.tokens), attributes=attributes)


# ---- faults, costs and weights ----------------------------------------------------------------------------------------
def _cell_problems(table: Table, encoding: Encoding, cells: Any, faults: list[Fault]) -> list[str]:
    """Return a line for every fault, and for every column without a value in any row, which has nothing to be filled with."""
    empty = {column.name for column in encoding.columns if column.categories == ()}
    if not is_sparse(cells):
        nothing = np.isnan(cells).all(axis=0).tolist()
        empty |= {column.name for column, every in zip(encoding.columns, nothing, strict=True) if every}
    empty -= {fault.column for fault in faults if fault.kind == "text"}
    gone = [column.name for column in encoding.columns if column.name in empty]
    lines = [f"{table.path}: column {name!r} has no value in any row; use dataset.drop=[{name}]" for name in gone]
    return lines + refuse_faults([fault for fault in faults if fault.column not in empty])


def _costs(table: Table, notes: list[str]) -> NDArray[np.float64]:
    """Return what every prediction costs on every row, (n, k)."""
    names, remedy = table.options.costs, "correct it or remove the row"
    costs = np.column_stack([finite_numbers(table, name, "as a cost", ("choose columns of numbers", remedy)) for name in names])
    bad = np.argwhere(costs < 0.0)
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"{table.path}: the cost {costs[row, column]:g} in column {names[column]!r}, {table.place(int(row))}, is below 0; {remedy}"
        )
    notes.append(noted("ADV105", f"rows have their own costs of {len(names)} predictions; the label of a row is its first cheapest"))
    return costs


def _weights(table: Table, notes: list[str]) -> dict[str, Any]:
    """Return the positive weights of the examples, where there are such, as a field of a `Dataset`."""
    name, remedy = table.options.weight, "or use dataset.weight=null"
    if name is None:
        return {}
    weights = finite_numbers(table, name, "as example weights", (f"correct it, {remedy}", f"correct it, remove the row {remedy}"))
    bad = np.flatnonzero(weights <= 0)
    if bad.size:
        raise DataError(
            f"{table.path}: weight {weights[bad[0]]:g} in column {name!r}, {table.place(int(bad[0]))}, is not above 0; "
            "correct it or remove the row"
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise DataError(f"{table.path}: the weights in column {name!r} add up to more than a number can hold; divide them by their largest")
    notes.append(noted("ADV105", f"examples weighted by column {name!r}"))
    return {"example_weight": weights}
