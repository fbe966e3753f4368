"""Splits to which the corrected t-test does not apply have the Wilcoxon test, and the table says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from advcli.reports import comparison_table, summarise
from advcli.reports.summary import wins_ties_losses
from advcli.results.tables import PARTS
from advcli.statistics import Significance, corrected_t, wilcoxon

SPLITS = 12
N_TRAIN, N_TEST = 70, 30


def rows(dataset: str, parts: str | None, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(0.1, 0.3, SPLITS)
    more = {} if parts is None else {PARTS: parts}
    frames = [
        pd.DataFrame(
            {
                "dataset": dataset,
                "method": method,
                "split": np.arange(1, SPLITS + 1),
                "metric": "error",
                "value": np.round((difficulty + shift + rng.normal(0, 0.02, SPLITS)) * N_TEST) / N_TEST,
                "n_train": N_TRAIN,
                "n_test": N_TEST,
                "seed": 0,
                "status": "ok",
                "cell": f"{dataset} {method}",
                **more,
            }
        )
        for method, shift in (("one", 0.0), ("two", 0.03))
    ]
    return pd.concat(frames, ignore_index=True)


def p_values(summary: pd.DataFrame) -> dict[str, float]:
    tested = summary[summary["p_value"].notna()]
    return dict(zip(tested["dataset"], tested["p_value"], strict=True))


def values(frame: pd.DataFrame) -> list[np.ndarray]:
    return [frame.loc[frame["method"] == method, "value"].to_numpy() for method in ("one", "two")]


@pytest.mark.parametrize("parts", ["growing", "same"])
def test_each_data_set_has_the_test_that_applies_to_its_splits(parts: str) -> None:
    random, other = rows("drawn", None, 0), rows("other", parts, 1)
    both = summarise(pd.concat([random, other], ignore_index=True))
    wanted = {
        "drawn": corrected_t(*values(random), n_train=N_TRAIN, n_test=N_TEST).p_value,
        "other": wilcoxon(*values(other)).p_value,
    }
    assert p_values(both) == pytest.approx(wanted)
    assert both.attrs["uncorrected"].keys() == {"other"}
    table = comparison_table(both)
    assert "corrected resampled t-test" in table
    assert "the corrected t-test does not apply to other, whose" in table
    alone = comparison_table(summarise(other))
    assert "corrected resampled" not in alone
    assert "not significantly worse than the best: Wilcoxon signed-rank test" in alone


@pytest.mark.parametrize("test", ["ttest", "wilcoxon"])
def test_a_test_without_a_ratio_is_used_as_it_is(test: str) -> None:
    other = rows("other", "growing", 1)
    summary = summarise(other, Significance(test))
    pd.testing.assert_frame_equal(summary, summarise(other.drop(columns=PARTS), Significance(test)))
    assert summary.attrs["uncorrected"] == {}
    assert "does not apply" not in comparison_table(summary)


def test_random_splits_in_a_table_with_others_are_tested_as_before() -> None:
    random = rows("drawn", None, 0)
    before = p_values(summarise(random))
    assert p_values(summarise(random.assign(**{PARTS: ""}))) == before


def test_wins_are_counted_by_the_test_of_each_data_set() -> None:
    frames = [rows(f"set{seed}", "growing" if seed % 2 else None, seed) for seed in range(6)]
    found = wins_ties_losses(pd.concat(frames, ignore_index=True), "error")
    alone = [wins_ties_losses(frame, "error") for frame in frames]
    counts = ["wins", "ties", "losses"]
    pd.testing.assert_frame_equal(found[counts], sum(frame[counts] for frame in alone))
    assert found["wins"].sum() > 0
