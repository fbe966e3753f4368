import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from advcli.config import protocol
from advcli.core.errors import ConfigError
from advcli.statistics.across import friedman
from advcli.statistics.marks import CORRECTIONS, MOST_IN_HOLM, Significance, mark_best, wins_ties_losses
from advcli.statistics.tests import TESTS, bayesian_correlated_t, corrected_t, holm, paired_t, paired_test, wilcoxon


def brute_force_wilcoxon(d):
    d = np.asarray([value for value in d if value != 0], dtype=float)
    ranks = stats.rankdata(np.abs(d))
    observed = min(ranks[d > 0].sum(), ranks[d < 0].sum())
    sums = [sum(rank for rank, on in zip(ranks, signs, strict=True) if on) for signs in itertools.product([0, 1], repeat=len(d))]
    return min(1.0, 2 * np.mean(np.array(sums) <= observed + 1e-9))


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9).filter(any))
def test_wilcoxon_is_exact_with_ties(d):
    assert wilcoxon(d, np.zeros(len(d))).p_value == pytest.approx(brute_force_wilcoxon(d))


def test_wilcoxon_agrees_with_scipy_without_ties():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=20), rng.normal(0.3, size=20)
    assert wilcoxon(a, b).p_value == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)


def test_wilcoxon_many_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=150), rng.normal(0.2, size=150)
    assert wilcoxon(a, b).p_value == pytest.approx(stats.wilcoxon(a, b, method="approx").pvalue)


def test_rates_and_counts_give_the_same_answer():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 12, 20), rng.integers(0, 12, 20)
    assert len(np.unique(np.abs(a / 45 - b / 45))) > len(np.unique(np.abs(a - b)))  # the trap: rates break ties
    assert wilcoxon(a / 45, b / 45).p_value == wilcoxon(a, b).p_value


@pytest.mark.parametrize("test", [wilcoxon, paired_t, lambda a, b: corrected_t(a, b, 70, 30)])
def test_all_zero_differences_are_a_tie(test):
    result = test([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert result.p_value == 1.0
    assert result.sign == 0


@pytest.mark.parametrize("n", range(1, 6))
def test_fewer_than_six_splits_cannot_be_significant(n):
    assert wilcoxon(np.ones(n), np.zeros(n)).p_value >= 0.0625
    assert wilcoxon(np.arange(n) + 5.0, np.zeros(n)).p_value >= 0.0625


def test_six_splits_can():
    assert wilcoxon(np.ones(6), np.zeros(6)).p_value == pytest.approx(2 / 64)


def test_paired_t_agrees_with_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=20), rng.normal(0.3, size=20)
    expected = stats.ttest_rel(a, b)
    result = paired_t(a, b)
    assert result.p_value == pytest.approx(expected.pvalue)
    assert result.statistic == pytest.approx(expected.statistic)
    assert result.sign == np.sign(expected.statistic)


def test_constant_difference_has_no_spread():
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit: the spread must not be that noise
    result = paired_t([0.2, 0.3, 0.4], [0.1, 0.2, 0.3])
    assert result.p_value == 0.25
    assert result.statistic == math.inf


@pytest.mark.parametrize("splits", [2, 3, 6, 20])
def test_constant_difference_is_judged_by_its_signs(splits):
    # one difference on two splits proves nothing; a sign test that keeps zeros has this two-sided p-value
    ones, zeros = np.ones(splits), np.zeros(splits)
    expected = stats.binomtest(splits, splits).pvalue
    assert paired_t(ones, zeros).p_value == pytest.approx(expected)
    assert corrected_t(ones, zeros, 70, 30).p_value == pytest.approx(expected)
    assert wilcoxon(ones, zeros).p_value == pytest.approx(expected)


def test_single_split_is_undefined():
    assert math.isnan(paired_t([1.0], [2.0]).p_value)
    assert math.isnan(corrected_t([1.0], [2.0], 70, 30).p_value)


def test_missing_values_are_undefined():
    for name in ("ttest", "wilcoxon", "corrected_ttest"):
        assert math.isnan(paired_test(name, [1.0, math.nan, 2.0], [0.0, 1.0, 5.0], 70, 30).p_value)


def test_corrected_t_by_hand():
    d = np.array([1.0, 2.0, 4.0, 1.0])
    t = d.mean() / math.sqrt((1 / 4 + 30 / 70) * d.var(ddof=1))
    assert corrected_t(d, np.zeros(4), 70, 30).p_value == pytest.approx(2 * stats.t.sf(t, 3))


def test_type_one_error_over_overlapping_splits():
    """Two equal methods, per-row differences, 20 random 30 % test parts: only the corrected test keeps its level."""
    rng = np.random.default_rng(0)
    runs, n, n_test, splits = 400, 100, 30, 20
    rejected = dict.fromkeys(("ttest", "wilcoxon", "corrected_ttest"), 0)
    for _ in range(runs):
        rows = rng.normal(size=n)
        d = np.array([rows[rng.permutation(n)[:n_test]].mean() for _ in range(splits)])
        for name in rejected:
            rejected[name] += paired_test(name, d, np.zeros(splits), n - n_test, n_test).p_value < 0.05
    rates = {name: count / runs for name, count in rejected.items()}
    assert 0.02 <= rates["corrected_ttest"] <= 0.09
    assert rates["ttest"] > 0.35
    assert rates["wilcoxon"] > 0.35


def test_unknown_test():
    with pytest.raises(ConfigError, match="wilcoxon"):
        paired_test("wilcoxn", [1], [2])


# ---- marks


def marks(values, test="ttest", correction="none", **more):
    return mark_best(values, Significance(test, correction=correction), **more)


def bold(result):
    return {method for method, mark in result.items() if mark.bold}


def best(result):
    return {method for method, mark in result.items() if mark.best}


NOISE = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 1.0, -1.0, 0.0])


def test_clear_order():
    result = marks({"good": NOISE + 10, "near": NOISE[::-1] + 10.2, "bad": NOISE + 90 + NOISE[::-1]})
    assert best(result) == {"good"}
    assert bold(result) == {"good", "near"}
    assert result["bad"].p_value < 0.001
    assert math.isnan(result["good"].p_value)


def test_direction_is_respected():
    values = {"low": NOISE + 10, "high": NOISE[::-1] + 90}
    assert bold(marks(values)) == {"low"}
    assert bold(marks(values, higher_is_better=True)) == {"high"}


def test_several_bests():
    # equal means, but b spreads: c is far from a on every split and within the spread of b
    a, b = np.full(8, 10.0), 10 + 40 * np.array([1, -1, 1, -1, 1, -1, 1, -1.0])
    c = a + 1 + NOISE / 100
    result = marks({"a": a, "b": b, "c": c})
    assert best(result) == {"a", "b"}
    assert paired_t(c, a).p_value < 0.05 < paired_t(c, b).p_value
    assert result["c"].bold
    assert result["c"].p_value == paired_t(c, b).p_value


def test_means_equal_up_to_noise_are_both_best():
    result = marks({"a": np.array([0.1, 0.2, 0.3]), "b": np.array([0.3, 0.2, 0.1]) + 1e-17})
    assert best(result) == {"a", "b"}


def test_identical_methods_are_both_bold():
    assert bold(marks({"a": NOISE, "b": NOISE.copy()}, test="wilcoxon")) == {"a", "b"}


def test_missing_values_take_no_part():
    with_gap = NOISE.copy()
    with_gap[0] = math.nan
    result = marks({"a": with_gap - 50, "b": NOISE, "c": NOISE + 0.01 * NOISE[::-1] + 9})
    assert best(result) == {"b"}
    assert not result["a"].bold
    assert math.isnan(result["a"].p_value)
    assert bold(marks({"a": np.full(3, math.nan)})) == set()


def test_not_worse_is_no_chain():
    # b is not distinguishable from a, c not from b, but c is worse than a: c is not bold
    a = np.zeros(8)
    b = 1 + 3 * NOISE
    c = 2 + NOISE / 4
    assert paired_t(b, a).p_value > 0.05
    assert paired_t(c, b).p_value > 0.05
    assert bold(marks({"a": a, "b": b, "c": c})) == {"a", "b"}


def test_significantly_better_ranks_are_not_worse():
    # c beats a on 19 of 20 splits by a little and loses one by a lot: a has the best mean, c the better ranks
    a = np.zeros(20)
    c = np.full(20, -1.0) - np.arange(20) / 100
    c[0] = 100.0
    result = marks({"a": a, "c": c}, test="wilcoxon")
    assert best(result) == {"a"}
    assert result["c"].p_value < 0.05
    assert result["c"].bold


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("test", TESTS)
def test_single_split_marks_nobody(test, correction):
    assert bold(marks({"a": [1.0], "b": [2.0], "c": [1.0]}, test=test, correction=correction)) == set()


def test_order_of_methods_does_not_matter():
    rng = np.random.default_rng(0)
    values = {name: rng.normal(i / 3, size=10) for i, name in enumerate("abcde")}
    assert str(marks(values)) == str({name: marks(dict(reversed(values.items())))[name] for name in values})
    corrected = marks(dict(reversed(values.items())), correction="holm")
    assert str(marks(values, correction="holm")) == str({name: corrected[name] for name in values})


@given(st.integers(2, 7), st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_corrected_marks_are_holms_over_all_pairs(methods, splits, seed):
    rng = np.random.default_rng(seed)
    values = {f"m{i}": rng.integers(0, 6, splits) + 2.0 * i for i in range(methods)}
    plain, corrected = marks(values), marks(values, correction="holm")
    pairs = list(itertools.combinations(values, 2))
    raw = [paired_t(values[a], values[b]).p_value for a, b in pairs]
    adjusted = dict(zip(pairs, adjusted_by_definition(raw), strict=True))
    assert bold(plain) <= bold(corrected)
    assert best(plain) == best(corrected)
    for method in set(values) - best(plain):
        expected = max(adjusted[tuple(sorted((method, other)))] for other in best(plain))
        assert corrected[method].p_adjusted == pytest.approx(expected)
        assert corrected[method].bold == (expected >= 0.05)
        assert plain[method].p_adjusted == plain[method].p_value == corrected[method].p_value


def adjusted_by_definition(p_values):
    """Holm's adjusted p-values by their definition: the largest of (m - rank) p over the p-values that are not larger."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    for rank, i in enumerate(order):
        adjusted[i] = min(1.0, max((len(p_values) - before) * p_values[order[before]] for before in range(rank + 1)))
    return adjusted


def test_equal_methods_keep_their_marks():
    """Equal methods over overlapping splits: with the correction a row denies the mark to one of them about as often as alpha."""
    rng = np.random.default_rng(0)
    runs, n, n_test, splits, methods = 300, 100, 30, 20, 5
    denied = dict.fromkeys(("none", "holm"), 0)
    for _ in range(runs):
        rows = rng.normal(size=(methods, n))
        tested = [rng.permutation(n)[:n_test] for _ in range(splits)]
        values = {str(i): np.array([row[part].mean() for part in tested]) for i, row in enumerate(rows)}
        for name in denied:
            result = mark_best(values, Significance(correction=name), n_train=n - n_test, n_test=n_test)
            denied[name] += len(bold(result)) < methods
    assert denied["holm"] <= 0.08 * runs
    assert denied["none"] >= 0.15 * runs


def test_the_protocol_knows_the_tests_and_corrections():
    # two lists, because checking a configuration must not import NumPy
    assert set(protocol.TESTS) == set(TESTS)
    assert set(protocol.CORRECTIONS) == set(CORRECTIONS)


def test_unknown_correction():
    with pytest.raises(ConfigError, match="holm"):
        Significance(correction="hollm")


def test_significance_is_what_was_asked_for_first():
    stored = {"test": "wilcoxon", "alpha": 0.01, "name": "x"}
    assert Significance.chosen({"test": None, "alpha": 0.1, "correction": None}, stored) == Significance("wilcoxon", 0.1, "holm")
    assert Significance.chosen({}, {"correction": "none"}) == Significance(correction="none")


# ---- across data sets


def test_friedman_agrees_with_scipy():
    table = np.random.default_rng(0).normal(size=(12, 4)) + np.arange(4)
    assert friedman(table).p_value == pytest.approx(stats.friedmanchisquare(*table.T).pvalue)
    assert friedman(np.ones((5, 3))).p_value == 1.0
    with pytest.raises(ConfigError, match="3 methods"):
        friedman(np.ones((5, 2)))


def test_holm():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.5, math.nan, 0.9]), [1.0, math.nan, 1.0])


# ---- the posterior of a difference ------------------------------------------------------------------------------------
@pytest.mark.parametrize("rope", [0.0, 0.01, 0.05])
@pytest.mark.parametrize(("n_train", "n_test"), [(9, 1), (70, 30)])
def test_posterior_by_its_formula(rope, n_train, n_test):
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.82, 0.05, 10), rng.normal(0.8, 0.05, 10)
    d = a - b
    law = stats.t(9, loc=d.mean(), scale=np.sqrt((1 / 10 + n_test / n_train) * d.var(ddof=1)))
    result = bayesian_correlated_t(a, b, n_train, n_test, rope)
    assert result.smaller == pytest.approx(law.cdf(-rope), abs=1e-9)
    assert result.larger == pytest.approx(law.sf(rope), abs=1e-9)
    assert result.smaller + result.equivalent + result.larger == pytest.approx(1.0)
    turned = bayesian_correlated_t(b, a, n_train, n_test, rope)
    assert (turned.smaller, turned.larger) == pytest.approx((result.larger, result.smaller))


def test_posterior_without_a_region_is_the_one_sided_test():
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, b = rng.normal(0.0, 1.0, 8), rng.normal(0.5, 1.0, 8)
        result = bayesian_correlated_t(a, b, 70, 30)
        assert 2 * min(result.smaller, result.larger) == pytest.approx(corrected_t(a, b, 70, 30).p_value)


def test_posterior_of_baycomp():
    """`CorrelatedTTest.probs(b, a, rope)` of baycomp 1.0.3 at ten folds."""
    rng = np.random.default_rng(0)
    for rope, smaller, larger in (
        (0.0, 0.5765143181127752, 0.4234856818872248),
        (0.01, 0.06255254188778696, 0.7645291364008304),
        (0.05, 0.3147552607502047, 0.01669681275767876),
    ):
        b, a = rng.normal(0.8, 0.05, 10), rng.normal(0.82, 0.05, 10)
        result = bayesian_correlated_t(a, b, 9, 1, rope)
        assert (result.smaller, result.larger) == pytest.approx((smaller, larger), abs=1e-9)


def test_posterior_where_there_is_nothing_to_estimate():
    assert bayesian_correlated_t([0.5] * 4, [0.4] * 4, 9, 1, 0.05).larger == 1.0
    assert bayesian_correlated_t([0.5] * 4, [0.4] * 4, 9, 1, 0.2).equivalent == 1.0
    assert bayesian_correlated_t([0.5] * 4, [0.5] * 4, 9, 1).equivalent == 1.0
    assert np.isnan(bayesian_correlated_t([0.5], [0.4], 9, 1).larger)
    assert np.isnan(bayesian_correlated_t([0.5, np.nan], [0.4, 0.1], 9, 1).larger)
    with pytest.raises(ConfigError, match="rope"):
        bayesian_correlated_t([1.0, 2.0], [2.0, 1.0], 9, 1, rope=-0.1)


def test_wins_ties_losses_count_the_single_tests():
    rng = np.random.default_rng(5)
    base = [rng.normal(size=20) for _ in range(12)]
    other = [values + shift + 0.3 * rng.normal(size=20) for values, shift in zip(base, np.repeat([-2.0, 0.0, 2.0], 4), strict=True)]
    single = [corrected_t(a, b, 70, 30) for a, b in zip(base, other, strict=True)]
    better = sum(each.p_value < 0.05 and each.sign < 0 for each in single)
    worse = sum(each.p_value < 0.05 and each.sign > 0 for each in single)
    assert better == worse == 4
    assert wins_ties_losses(base, other, n_train=70, n_test=30) == (better, 12 - better - worse, worse)
    assert wins_ties_losses(other, base, n_train=[70] * 12, n_test=30) == (worse, 12 - better - worse, better)
    assert wins_ties_losses(base[:5], other[:5], higher_is_better=True, n_train=70, n_test=30) == (4, 1, 0), "the others are 2 smaller"
    assert wins_ties_losses([[1.0]], [[2.0]]) == (0, 1, 0), "a single split proves nothing"
    with pytest.raises(ValueError, match="12 and 11"):
        wins_ties_losses(base, other[:11])


def test_of_hundreds_of_methods_the_marks_are_those_of_bonferroni():
    rng = np.random.default_rng(3)
    base = rng.normal(size=20)
    values = {f"m{i}": base + rng.normal(size=20) * 0.1 + 0.01 * (i // 2) for i in range(MOST_IN_HOLM + 3)}
    values["again"] = values["m0"].copy()
    values["short"] = np.full(20, np.nan)
    marks = mark_best(values, Significance(), n_train=100, n_test=50)
    pairs = (MOST_IN_HOLM + 4) * (MOST_IN_HOLM + 3) // 2
    best = min((name for name in values if name != "short"), key=lambda name: values[name].mean())
    assert marks[best].best
    assert math.isnan(marks["short"].p_value)
    decided = set()
    for name, mark in marks.items():
        if mark.best or name == "short":
            continue
        p = paired_test("corrected_ttest", values[name], values[best], 100, 50).p_value
        assert mark.p_value == p
        assert mark.p_adjusted == min(1.0, p * pairs)
        assert mark.bold == (mark.p_adjusted >= 0.05)
        decided.add(mark.bold)
    assert decided == {True, False}
    few = {name: values[name] for name in list(values)[:MOST_IN_HOLM]}
    holm_of_few = mark_best(few, Significance(), n_train=100, n_test=50)
    assert any(mark.p_adjusted < min(1.0, mark.p_value * MOST_IN_HOLM * (MOST_IN_HOLM - 1) / 2) for mark in holm_of_few.values())
