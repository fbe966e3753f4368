"""What a report says first: the verdict agrees with the summary, settings that varied, the order of the sweep, readable strengths."""

from __future__ import annotations

import math
from fractions import Fraction

import pandas as pd
import pytest

from advcli.reports.across import across_datasets
from advcli.reports.choice import in_given_order
from advcli.reports.sections.certificates import chosen_text, power_text
from advcli.reports.sections.facts import Facts, made_lines, settings_section
from advcli.reports.sections.verdict import verdict_section
from advcli.reports.summary import in_order, summarise

METHODS = ("zero_one linear", "ww linear", "llw linear")


def verdict(runs: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    summary = summarise(runs)
    (section,) = verdict_section(summary, "error", across_datasets(summary, "error"), 0.05)
    return summary, section.lines


def rows_of(cells) -> pd.DataFrame:
    return pd.DataFrame([row for cell in cells for row in cell])


@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_agrees_with_the_summary(seed, planted):
    summary, lines = verdict(rows_of(planted.sweep(3, METHODS, seed)))
    best = next(line for line in lines if line.startswith("highest mean accuracy: "))
    for method in METHODS:
        part = summary[summary["method"] == method]
        winner = in_order(part.loc[part["best"], "dataset"])
        assert (f"{method} on {', '.join(winner)}" in best) == bool(winner)
        worse = in_order(part.loc[~part["bold"], "dataset"])
        said = f"{method}: significantly worse than the best on {', '.join(worse)} ({len(worse)} of 3 data sets)"
        assert (said in lines) == bool(worse)
        equal = next((line for line in lines if line.startswith(("not significantly", "no method is"))), "")
        assert worse or method in equal or equal.startswith("no method")


def test_the_verdict_names_what_failed_and_what_did_not_converge(planted):
    cells = planted.sweep(2, METHODS)
    cells[0] = planted.rows("set_0", METHODS[0], [None, *[3] * 19])
    cells[1][0] |= {"status": "not_converged"}
    _, lines = verdict(rows_of(cells))
    assert f"failed: {METHODS[0]} on set_0 (1 split)" in lines
    assert f"not converged: {cells[1][0]['method']} on {cells[1][0]['dataset']} (1 split)" in lines


def test_a_single_method_has_no_verdict(planted):
    summary = summarise(rows_of(planted.sweep(2, METHODS[:1])))
    assert verdict_section(summary, "error", across_datasets(summary, "error"), 0.05) == []


def test_equal_methods_are_not_told_apart(planted):
    cells = [planted.rows("iris", method, [2, 1] * 10) for method in METHODS]
    _, lines = verdict(rows_of(cells))
    assert lines[1:] == ("no method is significantly worse than the best: chance may explain the differences",)


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_strengths_are_read_back(factor):
    for exponent in range(-40, 41):
        value = factor * 2.0**exponent
        text = power_text(value)
        if text.startswith("2^"):
            assert Fraction(2) ** int(text[2:]) == Fraction(value), value
            assert not 0.1 <= value <= 1000, value
        else:
            assert math.isclose(float(text), value, rel_tol=1e-5), value
            assert factor != 1 or 0.1 <= value <= 1000, value


def test_strengths_of_splits_are_median_and_range():
    fits = pd.DataFrame({"C": [2.0**-11, 2.0**-9, 64.0], "rho": [1.0, 1.0, 1.0], "kind": ["a", "a", "b"]})
    assert chosen_text(fits, ["C", "rho", "kind"]) == "C = 2^-9 (2^-11 to 64), rho = 1, kind = a (2 splits) or b (1 splits)"


def test_methods_have_the_order_of_the_sweep():
    frame = pd.DataFrame({"dataset": list("abab"), "method": ["m [tau=1]", "m [tau=2]", "k", "z"]})
    ordered = in_given_order(frame, {"dataset": ["b", "a"], "method": ["z", "m"]})
    assert in_order(ordered["dataset"]) == ["b", "a"]
    assert in_order(ordered["method"]) == ["z", "m [tau=1]", "m [tau=2]", "k"]
    pd.testing.assert_frame_equal(in_given_order(frame, {"dataset": [], "method": []}), frame)
    again = in_given_order(ordered, {"method": ["k"], "dataset": ["a"]})  # a choice of the user's stays
    assert in_order(again["method"]) == in_order(ordered["method"])


def test_options_of_a_method_ascend_by_number() -> None:
    names = ["b [C=0.1, k=2]", "b [C=1, k=2]", "b [C=1e+01, k=2]", "b [C=10, k=11]", "b [C=100]", "a [C=3]"]
    frame = pd.DataFrame({"dataset": "d", "method": sorted(names)})
    assert in_given_order(frame, {"method": ["b", "a"]})["method"].tolist() == names


def test_settings_are_varied_changed_or_common():
    cells = {
        f"{dataset}-{loss}": {"dataset.name": dataset, "dataset.sizes": size, "loss.name": loss, "seed": 0, **more}
        for dataset, size in (("iris", [105, 45]), ("wine", None))
        for loss, more in (("abstain", {"loss.alpha": 0.5}), ("cs", {}))
    }
    made = {
        "changed": {"protocol.n_splits": 3, "loss.name": "cs"},
        "start": "2026-01-01T23:00:00+00:00",
        "end": "2026-01-02T01:30:00+00:00",
    }
    facts = Facts(provenance={"x": made | {"command": ["advcli", "-m", "a b"]}}, settings=cells)
    (section,) = settings_section(facts)
    assert section.lines == (
        "varied: dataset.name = iris, wine",
        "varied: loss.name = abstain, cs",
        "common, not the default: protocol.n_splits = 3",
    )
    assert section.details == (("seed", "0"),)
    assert made_lines(facts) == ["made 2026-01-01 23:00 to 2026-01-02 01:30 UTC", "command: advcli -m 'a b'"]
    assert settings_section(Facts()) == []
