"""Texts in CSV files for people that a spreadsheet would compute: an apostrophe stands before them, and nothing else changes."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advcli.cli import main
from advcli.core.spreadsheets import as_text, frame_as_text

FORMULA = "=1+2"


@given(st.one_of(st.text(), st.from_regex(r"[=+\-@].*", fullmatch=True), st.floats().map(str), st.integers().map("{:+d}".format)))
def test_what_looks_like_a_formula_is_text_and_numbers_stay(text):
    """Nothing that begins as a formula is left but numbers and single signs, and taking the apostrophe away gives the text back."""
    shown = as_text(text)
    assert shown in (text, f"'{text}")
    if shown == text and len(text) > 1 and text[0] in "=+-@":
        float(text)
    if shown != text:
        with pytest.raises(ValueError, match="convert"):
            float(text)


@pytest.mark.parametrize("value", [-1, 1.5, None, True, "-1", "+1e-3", "-inf", "+", "-", "", "a=b", "'=1"])
def test_what_is_no_formula_stays(value):
    assert as_text(value) is value


def test_frames_with_equal_headings_keep_their_numbers():
    frame = pd.DataFrame([[1, "=a", -2.5], [-3, "b", 0.5]], columns=["x", "=y", "x"], index=pd.Index(["@i", "-4"], name="class"))
    shown = frame_as_text(frame)
    assert shown.to_numpy().tolist() == [[1, "'=a", -2.5], [-3, "b", 0.5]]
    assert (list(shown.columns), list(shown.index), shown.index.name) == (["x", "'=y", "x"], ["'@i", "-4"], "class")
    assert frame.iloc[0, 1] == "=a", "the table itself stays"


def cells(path: Path) -> set[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return {cell for row in csv.reader(file) for cell in row}


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("on", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_files_for_people_and_files_that_are_read_again(on):
    """A class, a column and a data set called as formulas are, in every file that the program writes."""
    table = pd.DataFrame({"@x": range(40), "label": [FORMULA, "+", "-1", FORMULA] * 10})
    table.to_csv("train.csv", index=False)
    pd.concat([table, pd.DataFrame({"@x": ["=bad()"], "label": [FORMULA]})]).to_csv("new.csv", index=False)
    common = ["dataset=csv", "dataset.path=train.csv", "dataset.target=label", f'dataset.name="{FORMULA}"', "hyper.C=1"]
    option = [] if on else ["spreadsheets=false"]
    assert main(["fit", *common, "out=m.model"]) == 0
    assert main(["predict", "model=m.model", "input=new.csv", "out=p.csv", "predict.rejected=r.csv", *option]) == 0
    assert main(["coverage", "model=m.model", "input=train.csv", "out=c", *option]) == 0
    assert main(["-m", *common, "loss=zero_one,cs", "protocol.n_splits=2", "record.proofs=true", "name=s", *option]) == 0
    assert main(["report", "results=results/s", *option]) == 0
    assert main(["verify", "results=results/s", *option]) == 0
    people = ["summary.csv", "table.csv", "pairs.csv", "verify.csv"]
    for path in [Path("p.csv"), Path("r.csv"), Path("c/confusion.csv"), *(Path("results/s") / name for name in people)]:
        found = cells(path)
        formulas = {cell for cell in found if len(cell) > 1 and cell[0] in "=+@"}
        assert not formulas if on else path.name == "pairs.csv" or formulas, path
    assert {"-1", "+"} <= cells(Path("c/confusion.csv"))
    assert FORMULA in cells(Path("results/s/runs.csv"))
    assert main(["export", "csv", "results=results/s", "out=e.csv"]) == 0
    assert FORMULA in cells(Path("e.csv"))
