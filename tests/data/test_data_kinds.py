"""Columns of every kind in files of every format: `data check`, fit and predict work or say in one line which column is wrong."""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.core.errors import DataError
from advcli.data.tables.cells import present
from advcli.data.tables.checking import check_file
from advcli.data.tables.options import TableOptions
from advcli.data.tables.suspects import SAID, counted, looks_like
from advcli.data.tables.table import frame_table

N = 24
AT = range(N)
DAYS = pd.date_range("2020-01-01", periods=N)

KINDS: dict[str, Any] = {
    "bool": [i % 3 == 0 for i in AT],
    "bool with a gap": [None if i == 3 else i % 2 == 0 for i in AT],
    "nullable bool": pd.array([i % 2 == 0 for i in AT], dtype="boolean"),
    "nullable bool, first missing": pd.array([None, *(i % 2 == 0 for i in AT[1:])], dtype="boolean"),
    "nullable whole, first missing": pd.array([None, *AT[1:]], dtype="Int64"),
    "nullable number, first missing": pd.array([None, *(i / 3 for i in AT[1:])], dtype="Float64"),
    "mixed": [("x", 1, 2.5, True, "y")[i % 5] for i in AT],
    "mixed with a gap": [("x", 1, 2.5, True, None)[i % 5] for i in AT],
    "dates": DAYS,
    "dates with zone": DAYS.tz_localize("Europe/Berlin"),
    "dates, first missing": [pd.NaT, *DAYS[1:]],
    "days of Python": [day.date() for day in DAYS],
    "times": [datetime.time(1, i) for i in AT],
    "durations": pd.to_timedelta(range(N), unit="h"),
    "periods": pd.period_range("2020-01", periods=N, freq="M"),
    "intervals": pd.interval_range(0, N),
    "categories": pd.Categorical(["abc"[i % 3] for i in AT]),
    "categories of numbers": pd.Categorical([i % 3 for i in AT]),
    "categories, first missing": pd.Categorical([None, *("abc"[i % 3] for i in AT[1:])]),
    "no category": pd.Categorical([None] * N, categories=["a"]),
    "complex": [i + 1j for i in AT],
    "huge": [10**30 + i for i in AT],
    "beyond doubles": pd.Series([10**400 + i for i in AT], dtype=object),
    "unsigned": np.arange(N, dtype=np.uint64) + np.uint64(2**63),
    "decimals": [decimal.Decimal("1.10") * i for i in AT],
    "fractions": [fractions.Fraction(i, 3) for i in AT],
    "lists": [[1, i] for i in AT],
    "one list": [[1, 2]] * N,
    "dictionaries": [{"a": i} for i in AT],
    "sets": [{i} for i in AT],
    "arrays": [np.arange(i + 1) for i in AT],
    "tuples": [(1, i) for i in AT],
    "bytes": [b"ab" + bytes([97 + i % 3]) for i in AT],
    "uuids": [uuid.UUID(int=i) for i in AT],
    "nothing": [None] * N,
    "nan": [np.nan] * N,
    "infinite first": [np.inf, *map(float, AT[1:])],
    "half": np.arange(N, dtype=np.float16),
    "sparse": pd.arrays.SparseArray([float(i % 3 == 0) for i in AT]),
    "line breaks": ["a\nb" if i % 2 else 'c,"d' for i in AT],
    "beyond 1e50": [1e300 * (-1) ** i for i in AT],
    "constant": [5] * N,
}


def frame(kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    labels = ["pq"[i > 11] for i in AT]
    return pd.DataFrame({"it": pd.Series(KINDS[kind]).reset_index(drop=True), "z": rng.normal(size=N), "label": labels})


@pytest.fixture(autouse=True)
def pickles_for_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of parquet may not be here, and none writes all of these: a pickle in its place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pd, "read_parquet", lambda file: pd.read_pickle(file, compression=None))


@pytest.mark.parametrize(("form", "target"), [("csv", "label"), ("parquet", "label"), ("parquet", "it")])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column(kind: str, form: str, target: str, capfd: pytest.CaptureFixture[str]) -> None:
    table, path = frame(kind), Path(f"mine.{form}")
    if form == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_pickle(path, compression=None)
    checked = check_file(path, target)
    assert [line["column"] for line in checked.columns] == ["it", "z", "label"]
    facts = (*SAID.values(), "empty", "number", "categories", "label")
    assert all(line["taken as"].removeprefix("no: ") in (*SAID, *facts) for line in checked.columns)
    words = ["dataset=csv", f"dataset.path={path}", f"dataset.target={target}"]
    words += ["dataset.categorical=auto", "dataset.allow_small_classes=true"]
    capfd.readouterr()
    code = main(["fit", *words, "hyper.C=1", "out=m.model", "solver.tol=0.1"])
    err = capfd.readouterr().err
    if code:
        assert code == 2
        assert "'it'" in err or "class" in err, err
        assert "Traceback" not in err
        return
    assert main(["predict", "model=m.model", f"input={path}", "out=p.csv"]) == 0, capfd.readouterr().err
    assert len(pd.read_csv("p.csv")) == N


def test_text_that_no_file_holds_is_refused() -> None:
    for target, name in (("label", "it"), ("it", "it")):
        # as objects: text by Arrow, which pandas takes where it is installed, cannot hold it
        table = frame("constant").assign(it=pd.Series(["a\ud800" if i % 2 else "c" for i in AT], dtype=object))
        table.to_pickle("mine.parquet", compression=None)
        with pytest.raises(DataError, match=rf"column '{name}' holds .* no file can hold"):
            check_file(Path("mine.parquet"), target)


def test_long_arrays_stay_apart() -> None:
    """NumPy leaves out the middle of what it shows."""
    arrays = [np.arange(2000) + (np.arange(2000) == 1000) * i for i in AT]
    table = frame_table(frame("constant").assign(it=arrays), "mine", TableOptions(target="label"))
    assert table.frame["it"].nunique() == N


def test_true_and_false_are_said(tmp_path: Path) -> None:
    pd.DataFrame({"it": [i % 3 == 0 for i in AT], "label": ["pq"[i % 2] for i in AT]}).to_csv("mine.csv", index=False)
    line = check_file(Path("mine.csv"), "label").columns[0]
    assert (line["type"], line["values"], line["taken as"]) == ("true/false", "False, True", "number")


WORDS = ["good", "slow", "friendly", "never", "again", "late", "cheap", "broken"]


def varied() -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    return {
        "text": [" ".join(rng.choice(WORDS, 6)) + f" {i}" for i in range(60)],
        "list": [f"[{i}, 2]" for i in range(60)],
        "complex number": [f"({i}+1j)" for i in range(60)],
        "duration": [f"{i} days 01:00:00" for i in range(60)],
        "identifier": [f"AB {i:03}" for i in range(60)],
        "date": [f"2020-01-{1 + i % 28:02}" for i in range(60)],
    }


@pytest.mark.parametrize("looks", SAID)
def test_what_text_holds_is_named(looks: str, capfd: pytest.CaptureFixture[str]) -> None:
    pd.DataFrame({"it": varied()[looks], "size": range(60), "label": list("pq") * 30}).to_csv("mine.csv", index=False)
    assert main(["data", "check", "path=mine.csv", "target=label"]) == 0
    out = capfd.readouterr().out
    assert f"it looks like {SAID[looks]}" in out
    assert f"no: {looks}" in out
    assert main(["fit", "dataset=csv", "dataset.path=mine.csv", "dataset.target=label", "hyper.C=1", "out=m.model"]) == 2
    assert f"it looks like {SAID[looks]}: use dataset.drop=[it]" in capfd.readouterr().err
    words = ["dataset=csv", "dataset.path=mine.csv", "dataset.target=label", "dataset.categorical=auto"]
    assert main(["fit", *words, "hyper.C=1", "out=m.model"]) == 0
    assert f"left out: it looks like {SAID[looks]}" in capfd.readouterr().err


def test_columns_and_rows_that_tell_nothing_are_said() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"size": rng.normal(size=40), "colour": rng.choice(["red", "blue"], 40), "label": ["pq"[i % 2] for i in range(40)]}
    )
    clean = check_file(write(table), "label").remarks
    assert not [remark for remark in clean if "copy" in remark or "copies" in remark or "same value" in remark]
    table = table.assign(same=7, word="x", again=table["size"], shade=table["colour"], answer=table["label"])
    remarks = check_file(write(table), "label").remarks
    assert "the same value in every row of same, word, which tells nothing: dataset.drop=[same,word] leaves it out" in remarks
    assert "again is a copy of size: dataset.drop=[again] leaves it out" in remarks
    assert "shade is a copy of colour: dataset.drop=[shade] leaves it out" in remarks
    assert "answer is a copy of label, which gives the answer away: dataset.drop=[answer] leaves it out" in remarks
    for count in (1, 3):
        said = check_file(write(pd.concat([table, table.iloc[:count]])), "label").remarks
        assert any(remark.startswith(f"{count} row") and "of" in remark and "earlier one" in remark for remark in said)


def write(table: pd.DataFrame) -> Path:
    table.to_csv("mine.csv", index=False)
    return Path("mine.csv")


@pytest.mark.parametrize("kind", KINDS)
def test_counting_values_is_looking_at_each(kind: str) -> None:
    """Each different value is looked at once: what is found is what a look at every cell finds."""
    column = frame_table(frame(kind), "mine").frame["it"]
    assert counted(column).sort_index().to_dict() == present(column).value_counts().sort_index().to_dict()
    shuffled = column.sample(frac=1.0, random_state=0)
    assert looks_like(shuffled) == looks_like(column)
