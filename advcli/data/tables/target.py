"""The target column: labels to codes, their order, and the cut of a continuous one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ConfigError, DataError, nearest
from ..source import cut_of
from .cells import PLAIN, Notation, cell_text
from .columns import SUSPECT, code_labels, label_numbers, match_labels, written_alike
from .cut import CUTS, cut_target
from .suspects import likely_order, order_words
from .table import Table

ORDERED = "the labels look ordered"
"""What a note says of labels that have no order by the options."""

# Above this many different fractional values a target is taken for a continuous one.
_MOST_FRACTIONAL_CLASSES = 20


def target_codes(table: Table, target: str, options: Mapping[str, Any], notes: list[str]) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Return codes, labels and whether they are ordered; the cut or the order of the options is applied and noted."""
    text, notation = cell_text(table.frame[target]), Notation.of(options)
    empty = np.flatnonzero(text == "")
    if empty.size:
        raise DataError(
            f"{table.path}: the target column {target!r} has no value in {table.place(int(empty[0]))}"
            f"{f' (and {empty.size - 1} more)' if empty.size > 1 else ''}; fill it or remove the row"
        )
    cut = cut_of(options)
    check_cut(cut, options)
    if cut != "none":
        values = notation.numbers(text)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(
                f"{table.path}: the target column {target!r} holds {text.iloc[bad[0]]!r} in {table.place(int(bad[0]))}, "
                f"no finite number; dataset.cut={cut} needs numbers (use dataset.cut=none for classes)"
            )
        codes, levels, said = cut_target(values, cut, options.get("n_classes"), options.get("edges"))
        notes += said
        return codes, list(levels), True
    codes, labels = code_labels(text, notation)
    notes += [
        f"column {target!r} holds what {SUSPECT} one label in several writings, each a class of its own: {', '.join(map(repr, group))}"
        for group in written_alike(labels)
    ]
    likely = likely_order(labels) if isinstance(labels[0], str) else None
    if likely is not None and options.get("order") is None and not options["ordered"]:
        notes.append(f"{ORDERED}; dataset.order={order_words(likely)} makes them so, for losses and metrics of ordered classes")
    return order_labels(codes, labels, options, f"{table.path}: column {target!r}", notes, notation)


def check_cut(cut: str, options: Mapping[str, Any]) -> None:
    """Refuse options of the cut that contradict each other."""
    if cut not in CUTS:
        raise ConfigError(f"dataset.cut={cut} is not a way to cut a target; {nearest(cut, CUTS)}")
    if options.get("n_classes") is not None and cut not in ("equal_width", "equal_frequency"):
        raise ConfigError(
            f"dataset.n_classes={options['n_classes']} needs dataset.cut=equal_width or equal_frequency (is {cut}); else set it to null"
        )
    if options.get("edges") is not None and cut != "edges":
        raise ConfigError(f"dataset.edges needs dataset.cut=edges (is {cut}); else set it to null")
    if options.get("order") is not None and cut != "none":
        raise ConfigError(f"dataset.order lists labels; it has no meaning with dataset.cut={cut}")


def order_labels(
    codes: NDArray[np.intp], labels: list[Any], options: Mapping[str, Any], where: str, notes: list[str], notation: Notation = PLAIN
) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Put the labels into the order that the options give, or check that they look like labels at all."""
    order = options.get("order")
    if order is None:
        fractional = [number for number in label_numbers(labels, notation) or () if not number.is_integer()]
        if fractional and len(labels) > _MOST_FRACTIONAL_CLASSES:
            raise DataError(
                f"{where} holds {len(labels)} different numbers ({fractional[0]:g}, ...), not classes; "
                "cut it with dataset.cut=equal_width dataset.n_classes=5"
            )
        return codes, labels, bool(options["ordered"])
    if not isinstance(order, (list, tuple)):
        raise ConfigError(f"dataset.order={order} must be the list of the labels, lowest first")
    wanted = match_labels(order, labels)
    kept = [at for at in wanted if at is not None]
    if len(set(kept)) < len(kept) or len(set(map(str, order))) < len(order):
        raise ConfigError(f"dataset.order={list(order)} names a label twice")
    missing = [str(label) for at, label in enumerate(labels) if at not in set(kept)]
    if missing:
        raise DataError(f"{where} has the label {missing[0]!r}, which dataset.order={list(map(str, order))} misses; add it in its place")
    unused = [str(label) for at, label in zip(wanted, order, strict=True) if at is None]
    if unused:
        notes.append(f"labels of dataset.order without rows dropped: {', '.join(unused)}")
    rank = np.empty(len(labels), dtype=np.intp)
    rank[kept] = np.arange(len(kept))
    return rank[codes], [labels[index] for index in kept], True
