"""The options of a table: read once, and refused where they contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from advcli.core.errors import ConfigError
from advcli.data import LABEL_OPTIONS, TABLE_OPTIONS
from advcli.data.source import SEQUENCE_OPTIONS
from advcli.data.tables.options import TableOptions


def test_defaults_of_sources_are_those_of_the_object() -> None:
    assert TableOptions.read({**TABLE_OPTIONS, **LABEL_OPTIONS, **SEQUENCE_OPTIONS}) == TableOptions(max_categories=50)


def test_lists_and_single_names_become_tuples() -> None:
    options = TableOptions.read({"target": 3, "drop": "id", "keep": [1, "b"], "categorical": "auto", "order": ["low", "high"], "weight": 7})
    assert (options.target, options.drop, options.keep, options.weight) == ("3", ("id",), ("1", "b"), "7")
    assert options.categorical is None
    assert options.order == ("low", "high")


def test_columns_that_stay_text() -> None:
    assert TableOptions.read({"categorical": ["zip"], "sequence": "who", "tokens": "word"}).text == ("zip", "who", "word")
    assert TableOptions.read({"categorical": ["zip"], "decimal": "comma"}).text is None


def test_a_target_with_a_star_means_columns_of_labels() -> None:
    options = TableOptions.read({"target": "label_*"})
    assert options.has_label_sets(["label_a", "label_b"])
    assert not options.has_label_sets(["label_*", "x"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drop": {"a": 1}}, "dataset.drop"),
        ({"missing": "zero"}, "dataset.missing=zero is not valid; choose one of indicator, mean"),
        ({"max_categories": 1}, "a whole number of at least 2"),
        ({"separator": ";;"}, "give one character"),
        ({"cut": "equal"}, "dataset.cut=equal is not valid; did you mean"),
        ({"n_classes": 5}, "needs dataset.cut"),
        ({"cut": "edges", "edges": [1], "order": ["a"]}, "order lists labels"),
        ({"order": "low"}, "give the list of the labels"),
        ({"costs": ["a"]}, "at least two columns"),
        ({"costs": ["a", "b"], "cut": "edges"}, "dataset.cut is about labels"),
        ({"stub_leaves": "yes"}, "give true or false"),
        ({"label_separator": ""}, "the text between the labels"),
        ({"encoding": "no such"}, "dataset.encoding"),
        ({"thousands": "tab"}, "dataset.thousands"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TableOptions.read(options)
