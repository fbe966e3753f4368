"""The target column: labels to codes, their order, and the cut of a continuous one into ordered classes.

Intervals of a cut are closed on the left and open on the right, the last one is closed. `advcli.data.catalogue` has the cuts of
the papers.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...core.errors import ConfigError, DataError
from ...core.notes import noted
from .cells import PLAIN, TRUTHS, Notation
from .options import TableOptions
from .suspects import SUSPECT, likely_order, order_words
from .table import Table

ORDERED = "the labels look ordered"
"""What a note says of labels that have no order by the options."""

_MOST_FRACTIONAL = 20  # different fractional values above which a target is taken for a continuous one


# ---- labels -----------------------------------------------------------------------------------------------------------
def code_labels(text: pd.Series, notation: Notation = PLAIN) -> tuple[NDArray[np.intp], list[Any]]:
    """Return 0-based codes and the labels, numbers as they rise, else by the alphabet.

    A label is the number that it writes where all labels are whole numbers, or all are numbers, as Python would write them; else all keep
    their writing as text: 01001, 1.50, +1. Numbers of one value (01 and 1) are two labels, in the order of the alphabet.
    """
    codes, distinct = pd.factorize(text)
    labels: list[Any] = list(map(str, distinct))
    numbers = label_numbers(labels, notation)
    places = labels if numbers is None or len(set(numbers)) < len(numbers) else numbers
    order = sorted(range(len(labels)), key=lambda index: places[index])
    written = (list(map(kind, numbers)) for kind in (int, float)) if numbers is not None else ()
    values: list[Any] = next((values for values in written if list(map(str, values)) == labels), labels)
    return np.argsort(order)[codes], [values[index] for index in order]


def label_numbers(labels: Sequence[Any], notation: Notation = PLAIN) -> list[float] | None:
    """Return the finite numbers that labels are, or write; None where one of them is none."""
    numbers = notation.numbers(pd.Series([str(label) for label in labels], dtype=object))
    words = any(str(label).lower() in TRUTHS for label in labels)  # names, not 1 and 0
    return None if words or not np.isfinite(numbers).all() else numbers.tolist()


def match_labels(cells: Sequence[Any], labels: Sequence[Any]) -> list[int | None]:
    """Return the position of each cell's label among ``labels``: by its writing, else by its number where one label alone has it.

    So the cells of the file that a model was fitted on find their labels, and 1 finds 1.0 of another format. 1.00 finds neither label where
    both 01 and 1.0 are there. None: the label is unknown.
    """
    exact = {str(label): place for place, label in enumerate(labels)}
    values = _values(list(exact))
    shared = Counter(values)
    numbers = {value: place for place, value in enumerate(values) if value is not None and shared[value] == 1}
    distinct = list(dict.fromkeys(str(cell).strip() for cell in cells))
    places = {label: exact.get(label, numbers.get(value)) for label, value in zip(distinct, _values(distinct), strict=True)}
    return [places[str(cell).strip()] for cell in cells]


def _values(labels: Sequence[str]) -> list[Any]:
    """Return the finite number that each label writes, or which of true and false it is; None where it is neither."""
    numbers = PLAIN.numbers(pd.Series(list(labels), dtype=object)).tolist()
    return [
        label.lower() if label.lower() in TRUTHS else number if np.isfinite(number) else None
        for label, number in zip(labels, numbers, strict=True)
    ]


def written_alike(labels: Sequence[Any]) -> list[list[str]]:
    """Return the groups of labels that look like one, written in several ways: 1 and 1.0, yes and Yes."""
    groups: dict[Any, list[str]] = {}
    texts = list(map(str, labels))
    for label, value in zip(texts, _values(texts), strict=True):
        key = " ".join(unicodedata.normalize("NFKC", label).casefold().split()) if value is None else value
        groups.setdefault(key, []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def target_codes(table: Table, notes: list[str]) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Return codes, labels and whether they are ordered; the cut or the order of the table's options is applied and noted."""
    options, (target,) = table.options, table.targets
    notation, text = options.notation, table.text(target)
    empty = np.flatnonzero(text == "")
    if empty.size:
        raise DataError(
            f"{table.path}: the target column {target!r} has no value in {table.place(int(empty[0]))}"
            f"{f' (and {empty.size - 1} more)' if empty.size > 1 else ''}; fill it or remove the row"
        )
    if options.cut != "none":
        values = notation.numbers(text)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(
                f"{table.path}: the target column {target!r} holds {text.iloc[bad[0]]!r} in {table.place(int(bad[0]))}, "
                f"no finite number; dataset.cut={options.cut} needs numbers (use dataset.cut=none for classes)"
            )
        codes, levels, cut_notes = cut_target(values, options)
        notes += cut_notes
        return codes, list(levels), True
    codes, labels = code_labels(text, notation)
    alike = f"column {target!r} holds what {SUSPECT} one label in several writings, each a separate class"
    notes += [noted("ADV106", f"{alike}: {', '.join(map(repr, group))}") for group in written_alike(labels)]
    likely = likely_order(labels) if isinstance(labels[0], str) else None
    if likely is not None and options.order is None and not options.ordered:
        makes = f"dataset.order={order_words(likely)} makes them so, for losses and metrics of ordered classes"
        notes.append(noted("ADV106", f"{ORDERED}; {makes}"))
    return order_labels(codes, labels, options, f"{table.path}: column {target!r}", notes)


def order_labels(
    codes: NDArray[np.intp], labels: list[Any], options: TableOptions, where: str, notes: list[str]
) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Put the labels into the order that the options give, or check that they look like labels at all."""
    order = options.order
    if order is None:
        fractional = [number for number in label_numbers(labels, options.notation) or () if not number.is_integer()]
        if fractional and len(labels) > _MOST_FRACTIONAL:
            remedy = "cut it with dataset.cut=equal_width dataset.n_classes=5"
            raise DataError(f"{where} holds {len(labels)} different numbers ({fractional[0]:g}, ...), not classes; {remedy}")
        return codes, labels, options.ordered
    wanted = match_labels(order, labels)
    places = [place for place in wanted if place is not None]
    if len(set(places)) < len(places) or len(set(map(str, order))) < len(order):
        raise ConfigError(f"dataset.order={list(order)} names a label twice")
    missing = [str(label) for place, label in enumerate(labels) if place not in set(places)]
    if missing:
        raise DataError(f"{where} has the label {missing[0]!r}, which dataset.order={list(map(str, order))} misses; add it in its place")
    unused = [str(label) for place, label in zip(wanted, order, strict=True) if place is None]
    if unused:
        notes.append(noted("ADV107", f"labels of dataset.order without rows dropped: {', '.join(unused)}"))
    return np.argsort(places)[codes], [labels[place] for place in places], True


# ---- cuts -------------------------------------------------------------------------------------------------------------
def cut_target(values: NDArray[Any], options: TableOptions) -> tuple[NDArray[np.intp], tuple[int, ...], list[str]]:
    """Cut finite values (n,) into ordered classes as ``dataset.cut`` says, once, on the whole data set.

    Returns 0-based codes (n,) of the classes that occur, the 1-based number of the interval of each of them, and the cut in words. Equal
    values have equal codes, so that ties make the classes of ``equal_frequency`` uneven.
    """
    if options.cut == "edges":
        inner = np.array(options.edges)
    elif values.min() == values.max():
        raise DataError(f"the target has the same value {values.min():g} in every row; it cannot be cut into classes")
    else:
        assert options.n_classes is not None
        shares = np.arange(1, options.n_classes) / options.n_classes
        wide = options.cut == "equal_width"
        inner = np.linspace(values.min(), values.max(), options.n_classes + 1)[1:-1] if wide else np.quantile(values, shares)
    k = len(inner) + 1
    interval = np.searchsorted(inner, values, side="right")
    counts = np.bincount(interval, minlength=k)
    occupied = np.flatnonzero(counts)
    codes = np.searchsorted(occupied, interval).astype(np.intp)
    text = ", ".join(f"{edge:.6g}" for edge in inner)
    way = options.cut.replace("_", " ")
    notes = [noted("ADV107", f"target cut into {k} classes ({way}), inner edges {text}; rows {', '.join(map(str, counts[occupied]))}")]
    if len(occupied) < k:
        empty = ", ".join(str(level + 1) for level in range(k) if not counts[level])
        notes.append(noted("ADV107", f"empty classes dropped: {empty} of 1 to {k}; {len(occupied)} classes remain"))
    return codes, tuple((occupied + 1).tolist()), notes
