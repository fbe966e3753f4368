"""Sets of labels as Mulan keeps them (https://mulan.sourceforge.net/format.html): ARFF files and an XML file that names the labels."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from ..catalogue import Upstream
from . import arff
from .rows import TextTable, join

RESERVED = {"target", "split", "sentence_id"}
"""Names of columns with a meaning; a feature of that name gets a prefix."""


def tables(parts: Sequence[str], upstream: Upstream) -> dict[str, TextTable]:
    """Return features, the official part and one column of 0 and 1 a label, named ``label_NAME``."""
    *parts, labels = parts
    named = {element.attrib.get("name") for element in ElementTree.fromstring(labels.encode()).iter()}
    found = []
    for part in parts:
        names, _, rows = arff.read(part)
        is_label = [name in named for name in names]
        order = [*(i for i, label in enumerate(is_label) if not label), *(i for i, label in enumerate(is_label) if label)]
        columns = [f"label_{names[i]}" if is_label[i] else f"term_{names[i]}" if names[i] in RESERVED else names[i] for i in order]
        found.append(TextTable(columns, [[row[i] for i in order] for row in rows]))
    return {"": join(found, last=sum(is_label))}
