"""Lines below a comparison table: what selected hyper-parameters, and classes that a method never finds."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advcli.metrics import missed_classes, missed_words
from advcli.reports import comparison_table, write_reports
from advcli.reports.choice import Choice
from advcli.reports.drawing import svg_only

ERRORS = [1, 2, 3, 2, 1, 2, 3, 1]
CONFUSION = {"labels": ["ant", "bee", "cat"], "counts": [[60, 0, 4, 0], [9, 0, 7, 0], [20, 0, 0, 0]]}


def folder_of(planted, path, selected, confusion=None):
    """Write a cell of each method, with the metric of its search (None: no search) and its counts of confusions."""
    folder = planted.folder(path)
    for method, metric in selected.items():
        rows = planted.rows("iris", method, ERRORS, metrics=("mae", "error"))
        search = [] if metric is None else [{"cell": rows[0]["cell"], "dataset": "iris", "method": method, "metric": metric, "value": 0.1}]
        about = {} if confusion is None else {"confusion": confusion.get(method)}
        folder.write_cell(rows[0]["cell"], rows, search, about=about)
    return folder


@pytest.mark.parametrize(
    ("selected", "metric", "line"),
    [
        ({"a": "mae", "b": "mae", "c": None}, "mae", ""),
        ({"a": "error", "b": "accuracy"}, "error", ""),  # one metric and its complement
        ({"a": "error", "b": "error"}, "mae", "hyper-parameters are selected by accuracy"),
        ({"a": "mae", "b": "error", "c": "mae", "d": None}, "mae", "hyper-parameters are selected by mae: a, c; by accuracy: b"),
    ],
)
def test_what_selected_is_said_where_it_is_not_the_table_s_metric(planted, tmp_path, selected, metric, line):
    folder = folder_of(planted, tmp_path / "a", selected)
    with svg_only():
        shown = write_reports(folder, metric=metric, full=True)
    said = [text for text in comparison_table(shown).splitlines() if "selected by" in text]
    assert said == ([line] if line else [])
    if line:
        for name in ("table.md", "report.md", "report.html", "report.tex"):
            assert line.split(":")[0] in (folder.path / name).read_text(), name


def test_classes_that_are_never_found_are_a_line_a_method(planted, tmp_path):
    folder = folder_of(planted, tmp_path / "a", {"x": "mae", "y": "mae", "z": "mae"}, {"x": CONFUSION, "z": None})
    with svg_only():
        shown = write_reports(folder, full=True, choice=Choice(names={"x": "X", "iris": "Iris"}))
    line = "X: on Iris it never predicts bee (16 % of the rows), finds no row of cat (20 % of the rows)"
    assert [text for text in comparison_table(shown).splitlines() if " it " in text] == [line]
    for name in ("table.md", "report.md", "report.html"):
        assert line in (folder.path / name).read_text(), name
    assert "on Iris it" not in comparison_table(shown, metric="error"), "once, below the table that is shown first"
    assert json.loads(json.dumps(shown.attrs["missed"])) == [line]


TABLES = st.integers(1, 6).flatmap(lambda k: arrays(np.int64, (k, k + 1), elements=st.integers(0, 3)))


@settings(max_examples=60, deadline=None)
@given(TABLES)
def test_missed_classes_are_those_without_a_right_row(counts):
    labels = [f"c{code}" for code in range(len(counts))]
    found = {each.label: each for each in missed_classes(counts, labels)}
    for code, label in enumerate(labels):
        rows = counts[code].sum()
        assert (label in found) == (rows > 0 and counts[code, code] == 0)
        if label in found:
            assert found[label].share == pytest.approx(rows / counts.sum())
            assert found[label].predicted == bool(counts[:, code].any())
            assert label in missed_words(list(found.values()))


def test_a_printed_command_is_one_for_a_shell(planted, tmp_path):
    """What stands under Provenance can be pasted: the shell makes the very words of it."""
    words = ["advcli", "-m", "dataset=csv", "dataset.path=my data/a'b.csv", "loss.matrix=[[0,1],[5,0]]", "name=$HOME;x"]
    folder = planted.folder(tmp_path / "a", planted.rows("iris", "x", ERRORS))
    folder.write_provenance({}, 0.0, 1.0, {"command": words})
    with svg_only():
        write_reports(folder, full=True)
    line = next(line for line in (folder.path / "report.md").read_text().splitlines() if "command: " in line)
    assert shlex.split(line.partition("command: ")[2]) == words
