"""Items and data sets: exact McNemar, bootstrap, Wilson, Benjamini-Hochberg, improvability and the group of the best."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as of_statsmodels
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from advcli.core.errors import ConfigError, DataError
from advcli.statistics import (
    Significance,
    benjamini_hochberg,
    best_group,
    bootstrap_means,
    improvability,
    mark_best,
    mcnemar,
    paired_bootstrap,
    paired_test,
    wilcoxon,
    wilson,
)

OUTCOMES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60)
SHARES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)


@given(OUTCOMES)
def test_mcnemar_is_that_of_statsmodels(pairs):
    a, b = np.array(pairs).T
    table = [[int(((a == i) & (b == j)).sum()) for j in (1, 0)] for i in (1, 0)]
    found = mcnemar(a, b)
    assert found.p_value == pytest.approx(of_statsmodels(table, exact=True).pvalue)
    assert found.sign == np.sign(table[0][1] - table[1][0])


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=9))
def test_mcnemar_counts_all_signs(pairs):
    """Of the items on which one alone is right each is equally likely either's: all assignments, one by one."""
    a, b = np.array(pairs).T
    difference = (a - b)[a != b]
    all_signs = [sum(signs) for signs in itertools.product([-1, 1], repeat=len(difference))]
    brute = np.mean([abs(total) >= abs(difference.sum()) for total in all_signs])
    assert mcnemar(a, b).p_value == pytest.approx(brute)


def test_mcnemar_of_scores_is_refused():
    with pytest.raises(DataError, match="paired_bootstrap takes any scores"):
        mcnemar([0.5, 1.0], [1.0, 0.0])
    with pytest.raises(DataError, match="one outcome for each"):
        mcnemar([1, 0], [1])


@given(SHARES)
def test_benjamini_hochberg_is_that_of_scipy_and_statsmodels(p_values):
    found = benjamini_hochberg(p_values)
    assert found == pytest.approx(stats.false_discovery_control(p_values, method="bh"))
    assert found == pytest.approx(multipletests(p_values, method="fdr_bh")[1])


def test_benjamini_hochberg_does_not_count_nan():
    assert benjamini_hochberg([0.01, np.nan, 0.04]) == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)
    assert len(benjamini_hochberg([])) == 0


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_wilson_is_that_of_scipy_and_statsmodels(counts, level):
    right, n = counts
    found = wilson(right, n, level)
    theirs = stats.binomtest(right, n).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert (found.low, found.high) == pytest.approx(proportion_confint(right, n, 1 - level, method="wilson"))
    assert 0 <= found.low <= found.estimate <= found.high <= 1


@pytest.mark.parametrize("arguments", [(5, 4), (-1, 4), (1, 0), (1, 2, 1.0), (0.5, 2)])
def test_no_share_has_no_interval(arguments):
    with pytest.raises(ConfigError):
        wilson(*arguments)


def all_resamples(values):
    return np.array([np.mean(drawn) for drawn in itertools.product(values, repeat=len(values))])


@pytest.mark.parametrize("difference", [[1, 0, 0, -1, 1, 1], [0.3, -0.2, 0.7, 0.1, 0.4, 0.25]])
def test_the_paired_bootstrap_has_the_distribution_of_all_resamples(difference):
    """The end of an interval is where the exact distribution of the resampled mean has its tail, up to 4 deviations of the draws."""
    exact, n = all_resamples(difference), 40_000
    found = paired_bootstrap(np.array(difference) + 1.0, np.ones(6), level=0.8, n_resamples=n)
    assert found.estimate == pytest.approx(np.mean(difference))
    room = 4 * np.sqrt(0.1 * 0.9 / n)
    for end, below in ((found.low, 0.1), (found.high, 0.9)):
        assert (exact < end - 1e-9).mean() - room <= below <= (exact <= end + 1e-9).mean() + room


def test_the_paired_bootstrap_agrees_with_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.3, 1, 200), rng.normal(0, 1, 200)
    theirs = stats.bootstrap((a - b,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(0)).confidence_interval
    found = paired_bootstrap(a, b, n_resamples=20_000)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)  # deviations of an end: 0.002
    assert paired_bootstrap(a, b) == paired_bootstrap(a, b)
    assert paired_bootstrap(a, b, seed=1) != paired_bootstrap(a, b)


def test_the_bootstrap_over_data_sets_draws_rows_together():
    table = np.array([[1.0, 2.0], [1.5, 1.5], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0]])
    exact = np.array([table[list(rows)].mean(axis=0) for rows in itertools.product(range(5), repeat=5)])
    n = 40_000
    room = 4 * np.sqrt(0.1 * 0.9 / n)
    for method, found in enumerate(bootstrap_means(table, level=0.8, n_resamples=n)):
        assert found.estimate == pytest.approx(table[:, method].mean())
        for end, below in ((found.low, 0.1), (found.high, 0.9)):
            assert (exact[:, method] < end - 1e-9).mean() - room <= below <= (exact[:, method] <= end + 1e-9).mean() + room


@pytest.mark.parametrize(
    "call",
    [
        lambda: paired_bootstrap([1, 0], [1]),
        lambda: paired_bootstrap([], []),
        lambda: paired_bootstrap([1, np.nan], [1, 0]),
        lambda: paired_bootstrap([1, 0], [1, 0], level=1),
        lambda: paired_bootstrap([1, 0], [1, 0], n_resamples=0),
        lambda: bootstrap_means([1, 2]),
        lambda: bootstrap_means([[1, np.nan]]),
        lambda: improvability([[-0.1, 0.2]]),
        lambda: improvability([0.1, 0.2]),
    ],
)
def test_what_has_no_interval_is_refused(call):
    with pytest.raises((ConfigError, DataError)):
        call()


@given(st.lists(st.lists(st.floats(0, 10), min_size=3, max_size=3), min_size=1, max_size=8))
def test_improvability_is_the_relative_gap_to_the_best(errors):
    found = improvability(errors)
    for row, gaps in zip(errors, found, strict=True):
        for error, gap in zip(row, gaps, strict=True):
            assert gap == pytest.approx((error - min(row)) / error if error > 0 else 0.0)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found.min(axis=1) == 0).all()


@given(st.lists(st.floats(0.0, 0.2), min_size=6, max_size=6), st.integers(0, 3))
def test_the_group_of_the_best_goes_by_holm_over_all_pairs(p_values, best):
    table = np.ones((4, 4))
    table[np.triu_indices(4, 1)] = p_values
    table = np.minimum(table, table.T)
    # Holm's procedure as a closed test: a pair is rejected where Bonferroni's test rejects every set of pairs with it
    sets = [chosen for size in range(1, 7) for chosen in itertools.combinations(range(6), size)]
    of_pair = [max(min(1.0, len(chosen) * min(p_values[at] for at in chosen)) for chosen in sets if pair in chosen) for pair in range(6)]
    adjusted = np.ones((4, 4))
    adjusted[np.triu_indices(4, 1)] = of_pair
    adjusted = np.minimum(adjusted, adjusted.T)
    expected = [other == best or adjusted[best, other] >= 0.05 for other in range(4)]
    assert best_group(table, best).tolist() == expected


def test_a_pair_without_a_test_is_not_separated():
    assert best_group([[1, np.nan], [np.nan, 1]], 0).tolist() == [True, True]


def test_items_choose_their_test_and_unknown_sizes_another():
    wanted = Significance()
    binary, scores = {"a": [1, 0, 1], "b": [0, 0, 1]}, {"a": [0.5, 0.1, 1], "b": [0, 0, 1]}
    nan = float("nan")
    assert wanted.fitting(binary, nan, 1, items=True).test == "mcnemar"
    assert wanted.fitting(scores, nan, 1, items=True).test == "wilcoxon_items"
    assert wanted.fitting(scores, nan, 30).test == "wilcoxon"
    assert wanted.fitting(scores, 70, nan).test == "wilcoxon"
    assert wanted.fitting(scores, 70, 30) == wanted
    assert Significance("ttest").fitting(scores, nan, nan).test == "ttest"


def test_marks_of_items_are_those_of_mcnemar():
    rng = np.random.default_rng(0)
    values = {name: (rng.random(200) < share).astype(float) for name, share in (("a", 0.9), ("b", 0.8), ("c", 0.5))}
    marks = mark_best(values, Significance().fitting(values, float("nan"), 1, items=True), higher_is_better=True)
    raw = {pair: mcnemar(values[pair[0]], values[pair[1]]).p_value for pair in itertools.combinations(values, 2)}
    adjusted = dict(zip(raw, multipletests(list(raw.values()), method="holm")[1], strict=True))
    assert marks["a"].best
    for name in ("b", "c"):
        assert marks[name].p_value == pytest.approx(raw["a", name])
        assert marks[name].p_adjusted == pytest.approx(adjusted["a", name])
        assert marks[name].bold == (adjusted["a", name] >= 0.05)
    assert not marks["c"].bold
    assert paired_test("wilcoxon_items", values["a"], values["c"]) == wilcoxon(values["a"], values["c"])
