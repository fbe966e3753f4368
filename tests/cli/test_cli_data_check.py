"""`advcli data check`: what it says of a file, and that the command line that it gives runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.data.tables.checking import check_file
from advcli.data.tables.suspects import likely_order, looks_like, named_as_ids, order_words

pytestmark = pytest.mark.usefixtures("elsewhere")


def messy(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = np.round(rng.normal(size=n), 3)
    table = pd.DataFrame(
        {
            "customer_id": [f"C{at:04}" for at in range(n)],
            "joined on the day of": pd.date_range("2020-01-01", periods=n).strftime("%d.%m.%Y"),
            "size": size,
            "visits": rng.integers(0, 9, n).astype(float),
            "region": rng.choice(["north", "south"], n).astype(object),
            "shop": rng.choice([f"s{at}" for at in range(60)], n),
            "nothing": "",
            "opinion": np.array(["very low", "low", "high", "very high"])[np.digitize(size, [-0.7, 0.0, 0.7])],
        }
    )
    for name in ("size", "visits", "region"):
        table.loc[rng.random(n) < 0.1, name] = np.nan
    return table


def check(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[str, list[str]]:
    """Return what is printed and the words of the command that it ends with."""
    capfd.readouterr()
    assert main(["data", "check", *words]) == 0
    out = capfd.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    return out, shlex.split(out.partition("The command line that fits it:")[2].replace("\\\n", " "))


def runs(words: list[str], name: str) -> pd.DataFrame:
    assert words[0] == "advcli"
    assert main([*words[1:], "hyper.C=1", "protocol.n_splits=2", "solver.tol=0.01", f"name={name}"]) == 0
    return pd.read_csv(f"results/{name}/runs.csv")


def test_the_command_of_a_messy_file_runs(capfd: pytest.CaptureFixture[str]) -> None:
    messy().to_csv("my.csv", index=False)
    out, words = check(capfd, "path=my.csv", "target=opinion")
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert lines["customer_id"].endswith("no: identifier")
    assert lines["joined on the day of"].endswith("no: date")
    assert lines["nothing"].endswith("no: empty")
    assert lines["region"].split()[2] == str(messy()["region"].isna().sum())
    assert "dataset.missing=median" in words
    assert "dataset.categorical=auto" in words
    assert "dataset.drop=[nothing]" in words
    assert "dataset.order=[very low,low,high,very high]" in words
    places = [out.index(f"\n{label} ") for label in ("very low", "low", "high", "very high")]
    assert places == sorted(places)
    assert set(runs(words, "checked")["status"]) == {"ok"}
    with pytest.raises(StopIteration):
        next(iter(check(capfd, "my.csv")[1]))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (messy()[["size", "opinion"]].rename(columns={"opinion": "kind"}), ["dataset.missing=median"]),
        (messy()[["visits", "region"]].dropna().rename(columns={"region": "kind"}), []),
        (messy()[["region", "size"]].dropna().rename(columns={"size": "kind"}), ["dataset.cut=equal_frequency", "dataset.n_classes=5"]),
        (messy()[["visits", "shop"]].dropna().rename(columns={"shop": "kind"}), ["dataset.allow_small_classes=true"]),
        (
            messy()[["visits"]].dropna().assign(order_id=lambda t: np.arange(len(t)) * 3, kind=lambda t: t["visits"] > 4),
            ["dataset.drop=[order_id]"],
        ),
        (messy()[["visits"]].dropna().assign(kind=lambda t: 1 + t["visits"].astype(int) % 3), ["dataset.ordered=true"]),
    ],
    ids=["gaps", "plain", "continuous target", "rare classes", "numbered rows", "counted levels"],
)
@pytest.mark.parametrize("separator", [",", ";"])
def test_the_command_fits_the_file(capfd: pytest.CaptureFixture[str], table: pd.DataFrame, expected: list[str], separator: str) -> None:
    table.to_csv("my.csv", index=False, sep=separator)
    _, words = check(capfd, "path=my.csv", "target=kind")
    assert set(expected) <= set(words)
    assert set(runs(words, "checked")["status"]) == {"ok"}


def test_what_only_a_person_can_mend_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    Path("my.csv").write_text(
        "size,kind\n" + "".join(f"{'inf' if at == 7 else at},{'' if at == 9 else 'ab'[at % 2]}\n" for at in range(30))
    )
    out, _ = check(capfd, "path=my.csv", "target=kind")
    assert "no value in 1 rows" in out
    Path("my.csv").write_text("size,kind\n" + "".join(f"{'inf' if at == 7 else at},{'ab'[at % 2]}\n" for at in range(30)))
    assert "infinite value in row 8" in check(capfd, "path=my.csv", "target=kind")[0]
    for given, said in (
        (["path=none.csv"], "no file none.csv"),
        (["path=my.csv", "target=kinds"], "did you mean kind"),
        (["path=my.csv", "tarjet=kind"], "did you mean target"),
        ([], "needs path=FILE"),
        (["path=my.csv", "-m"], "leave out -m"),
    ):
        assert main(["data", "check", *given]) == 2
        err = capfd.readouterr().err
        assert said in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("names", [("${x}", "class*"), ("a,b", "${oc.env:HOME}"), ("x y", "*"), ("'", "[label]"), ("~", "???x")])
def test_any_text_is_the_name_of_a_column(capfd: pytest.CaptureFixture[str], names: tuple[str, str]) -> None:
    """The printed command, the model and its predictions name columns that look like interpolations, patterns or syntax."""
    feature, target = names
    table = messy()[["visits", "region"]].dropna().assign(nothing="").rename(columns={"nothing": feature, "region": target})
    table.to_csv("my.csv", index=False)
    _, words = check(capfd, "path=my.csv", f"target={target}")
    assert set(runs(words, "checked")["status"]) == {"ok"}
    assert main(["report", "results=results/checked"]) == 0
    assert main(["fit", *words[1:], "hyper.C=1", "out=m.model"]) == 0
    assert main(["predict", "model=m.model", "input=my.csv", "out=p.csv"]) == 0
    assert len(pd.read_csv("p.csv")) == len(table)


DATES = ["2024-01-05", "05.01.2024", "1/5/24", "2024-01-05T10:30:00Z", "5 Jan 2024", "January 5, 2024", "10:30", "2024-01"]
NO_DATES = ["may", "1.2.3.4", "march 5", "2024", "12-13", "a 2024-01-05", "v1.0"]


@pytest.mark.parametrize("cell", [*DATES, *NO_DATES])
def test_what_is_a_date(cell: str) -> None:
    assert (looks_like(pd.Series([cell, cell], name="x")) == "date") == (cell in DATES)


def test_what_is_an_identifier() -> None:
    names = [f"n{at}" for at in range(40)]
    assert looks_like(pd.Series(names, name="x")) == "identifier"
    assert looks_like(pd.Series([*names[:-3], *names[:3]], name="x")) == "identifier"
    assert looks_like(pd.Series([*names[:-5], *names[:5]], name="x")) == ""
    assert looks_like(pd.Series(names[:9], name="x")) == ""
    for column in (pd.Series(range(40)), pd.Series(map(str, range(40)))):
        assert looks_like(column.rename("x")) == ""
        assert looks_like(column.rename("order_id")) == "identifier"
    assert looks_like(pd.Series(np.arange(40) % 39, name="id")) == ""
    assert looks_like(pd.Series(np.arange(40) + 0.5, name="id")) == ""
    assert looks_like(pd.Series([f"{at / 7}" for at in range(39)] + [""], name="x")) == ""  # numbers with a gap
    assert named_as_ids(["id", "ID", "customer_id", "orderId", "x key", "paid", "grid", "monkey", "humid"]) == {
        *("id", "ID", "customer_id", "orderId", "x key")
    }


@pytest.mark.parametrize(
    "order",
    [
        ["very low", "low", "medium", "high", "very high"],
        ["Poor", "Fair", "Good", "Excellent"],
        ["F", "D", "C", "B", "A"],
        ["C", "B-", "B", "A"],
        ["grade c", "grade b", "grade a"],
        ["level 1", "level 2", "level 10"],
        ["strongly_disagree", "disagree", "neutral", "agree", "strongly_agree"],
        [1, 2, 3, 4, 5],
        [0, 1, 2],
    ],
)
def test_labels_that_look_ordered(order: list[object]) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert likely_order([order[at] for at in rng.permutation(len(order))]) == order


@pytest.mark.parametrize(
    "labels",
    [
        *(["a", "b", "c"], ["c", "b", "a"], ["E", "D", "C", "B", "A"], ["A", "B", "C", "D", "E", "F"]),  # an alphabet, either way
        ["low", "high", "setosa"],
        *(["low", "high"], ["x", "y", "z"], [3, 5, 7], [1, 2], ["s1", "s2", "s3"], ["level 1", "stage 2", "x 3"]),
    ],
)
def test_labels_that_do_not(labels: list[object]) -> None:
    assert likely_order(labels) is None


def test_orders_are_words_of_a_shell() -> None:
    assert shlex.split(order_words(["very low", "low"])) == ["[very low,low]"]
    assert order_words(["low", "high"]) == "[low,high]"


def test_ranges_are_of_the_numbers_that_a_run_reads() -> None:
    """A reader of numbers takes 1.100 for one and a bit, until another column says that the comma stands before fractions."""
    rows = "".join(f"{1 + at % 9}.{100 + at};{at},{at % 10}5;{'pq'[at % 2]}\n" for at in range(40))
    Path("mine.csv").write_text(f"price;other;kind\n{rows}")
    found = check_file(Path("mine.csv"), "kind")
    assert (found.options["decimal"], found.options["thousands"]) == ("comma", "point")
    assert [(line["type"], line["values"]) for line in found.columns[:2]] == [("whole", "1100 to 9135"), ("number", "0.05 to 39.95")]


def test_signs_of_minus_make_no_identifier() -> None:
    assert looks_like(pd.Series([f"\u2212{at}" for at in range(1, 40)], name="x")) == ""  # numbers below 0
