"""The target column: labels to codes, their order, and the cut of a continuous one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import ConfigError, DataError, nearest
from .columns import code_labels
from .cut import CUTS, cut_target
from .source import cut_of
from .suspects import likely_order, order_words
from .table import Table

ORDERED = "the labels look ordered"
"""What a note says of labels that have no order by the options."""

# Above this many different fractional values a target is taken for a continuous one.
_MOST_FRACTIONAL_CLASSES = 20


def target_codes(table: Table, target: str, options: Mapping[str, Any], notes: list[str]) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Return codes, labels and whether they are ordered; the cut or the order of the options is applied and noted."""
    text = table.frame[target].astype(str).str.strip()
    empty = np.flatnonzero(text == "")
    if empty.size:
        raise DataError(
            f"{table.path}: the target column {target!r} has no value in {table.place(int(empty[0]))}"
            f"{f' (and {empty.size - 1} more)' if empty.size > 1 else ''}; fill it or remove the row"
        )
    cut = cut_of(options)
    check_cut(cut, options)
    if cut != "none":
        values = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise DataError(
                f"{table.path}: the target column {target!r} holds {text.iloc[bad[0]]!r} in {table.place(int(bad[0]))}, "
                f"no finite number; dataset.cut={cut} needs numbers (use dataset.cut=none for classes)"
            )
        codes, levels, said = cut_target(values, cut, options.get("n_classes"), options.get("edges"))
        notes += said
        return codes, list(levels), True
    codes, labels = code_labels(text)
    likely = likely_order(labels) if isinstance(labels[0], str) else None
    if likely is not None and options.get("order") is None and not options["ordered"]:
        notes.append(f"{ORDERED}; dataset.order={order_words(likely)} makes them so, for losses and metrics of ordered classes")
    return order_labels(codes, labels, options, f"{table.path}: column {target!r}", notes)


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
    codes: NDArray[np.intp], labels: list[Any], options: Mapping[str, Any], where: str, notes: list[str]
) -> tuple[NDArray[np.intp], list[Any], bool]:
    """Put the labels into the order that the options give, or check that they look like labels at all."""
    order = options.get("order")
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
