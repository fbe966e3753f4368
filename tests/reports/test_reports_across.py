import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from advcli.reports import summarise
from advcli.reports.across import across_datasets
from advcli.reports.summary import wins_ties_losses
from advcli.statistics.across import critical_difference, friedman, nemenyi, row_ranks
from advcli.statistics.tests import equivalence, holm, rank_biserial, wilcoxon


def summary_of(planted, tmp_path, cells, **more):
    return summarise(planted.folder(tmp_path / "results", *cells).runs(), **more)


def test_everything_across_data_sets(planted, tmp_path):
    summary = summary_of(planted, tmp_path, planted.sweep(8))
    across = across_datasets(summary, "error")
    table = summary.pivot(index="dataset", columns="method", values="mean")
    assert across.methods == ("llw linear", "ww linear", "zero_one linear")
    np.testing.assert_allclose(across.mean_ranks, [3.0, 2.0, 1.0])
    assert across.friedman.p_value == friedman(table.to_numpy()).p_value < 0.001
    pairs = across.pairs.set_index(["method", "other"])
    raw = [wilcoxon(table[a], table[b]).p_value for a, b in itertools.combinations(table.columns, 2)]
    np.testing.assert_allclose(across.pairs["p_wilcoxon"], raw)
    np.testing.assert_allclose(across.pairs["p_holm"], holm(raw))
    worst = pairs.loc["llw linear", "zero_one linear"]
    assert (worst["wins"], worst["ties"], worst["losses"]) == (0, 0, 8)
    assert worst["effect_size"] == -1.0
    assert worst["median_difference"] == pytest.approx((table["llw linear"] - table["zero_one linear"]).median())
    assert across.remarks == ()


def test_accuracy_and_error_agree(planted, tmp_path):
    summary = summary_of(planted, tmp_path, planted.sweep(6, metrics=("error", "accuracy")))
    error, accuracy = (across_datasets(summary, metric) for metric in ("error", "accuracy"))
    np.testing.assert_array_equal(error.mean_ranks, accuracy.mean_ranks)
    np.testing.assert_array_equal(error.pairs["effect_size"], accuracy.pairs["effect_size"])
    np.testing.assert_allclose(error.pairs["median_difference"], -accuracy.pairs["median_difference"])


def test_too_few_data_sets_are_said_and_not_tested(planted, tmp_path):
    across = across_datasets(summary_of(planted, tmp_path, planted.sweep(4)), "error")
    assert across.friedman is None
    assert across.pairs.empty
    assert math.isnan(across.critical_difference)
    np.testing.assert_allclose(across.mean_ranks, [3.0, 2.0, 1.0])  # ranks describe, they test nothing
    assert "4 data sets and 3 methods" in " ".join(across.remarks)


def test_two_methods_get_the_pair_only(planted, tmp_path):
    across = across_datasets(summary_of(planted, tmp_path, planted.sweep(6, methods=("a", "b"))), "error")
    assert across.friedman is None
    assert len(across.pairs) == 1
    assert math.isnan(across.pairs["p_nemenyi"].iloc[0])
    assert "two methods only" in " ".join(across.remarks)


def test_a_p_value_that_cannot_be_small_is_said(planted, tmp_path):
    across = across_datasets(summary_of(planted, tmp_path, planted.sweep(5)), "error")
    assert across.friedman is not None
    assert across.pairs["p_holm"].min() == pytest.approx(3 * 2 / 2**5)
    assert "smallest p-value possible after Holm's correction is 0.19" in " ".join(across.remarks)


def test_a_p_value_that_can_only_reach_the_level_is_said_too(planted, tmp_path):
    summary = summary_of(planted, tmp_path, planted.sweep(5, methods=("a", "b")))
    for alpha, said in ((2**-4 * 0.99, True), (2**-4, True), (2**-4 * 1.01, False)):  # one pair of 5 data sets: 2 / 2^5 at least
        assert ("smallest p-value possible" in " ".join(across_datasets(summary, "error", alpha).remarks)) == said


def test_incomplete_results_are_left_out_and_named(planted, tmp_path):
    cells = planted.sweep(7)
    cells[0] = planted.rows("set_0", "zero_one linear", [None, *[3] * 19])
    rare = planted.rows("set_1", "rare", [1] * 20)
    across = across_datasets(summary_of(planted, tmp_path, [*cells, rare]), "error")
    assert "rare" not in across.methods
    assert "set_0" not in across.datasets
    assert len(across.datasets) == 6
    assert any("rare" in remark for remark in across.remarks)
    assert any("set_0" in remark for remark in across.remarks)


def test_wins_ties_losses(planted, tmp_path):
    same = [3, 5, 2, 4, 6, 3, 5, 4]
    noise = [4, 4, 2, 4, 6, 3, 5, 4]
    worse = [count + 9 for count in noise]
    cells = [planted.rows(dataset, method, errors) for dataset in "xy" for method, errors in (("a", same), ("b", noise), ("c", worse))]
    cells[-1] = planted.rows("y", "c", [None, *worse[1:]])
    wins = wins_ties_losses(planted.folder(tmp_path / "results", *cells).runs(), "error")
    counts = {(row["method"], row["other"]): (row["wins"], row["ties"], row["losses"]) for row in wins.to_dict("records")}
    assert counts["a", "b"] == counts["b", "a"] == (0, 2, 0)
    assert counts["a", "c"] == (1, 0, 0)  # y is not counted: c failed there
    assert counts["c", "a"] == (0, 0, 1)


def test_wins_respect_the_direction(planted, tmp_path):
    cells = [
        planted.rows("x", method, errors, metrics=("error", "accuracy")) for method, errors in (("a", [1, 2] * 4), ("c", [20, 22] * 4))
    ]
    runs = planted.folder(tmp_path / "results", *cells).runs()
    for metric in ("error", "accuracy"):
        wins = wins_ties_losses(runs, metric).set_index(["method", "other"])
        assert wins.loc[("a", "c"), "wins"] == 1


def test_summary_has_median_rank_and_effect_size(planted, tmp_path):
    a, b, c = [3, 5, 2, 4, 6, 3, 5, 4], [4, 6, 3, 5, 7, 4, 6, 5], [3, 5, 2, 4, 6, 3, 5, 4]
    summary = summary_of(planted, tmp_path, [planted.rows("x", name, errors) for name, errors in zip("abc", (a, b, c), strict=True)])
    lines = summary.set_index("method")
    assert lines["rank"].tolist() == [1.5, 3.0, 1.5]
    assert lines.loc["b", "effect_size"] == 1.0  # worse on every split
    assert math.isnan(lines.loc["a", "effect_size"])
    assert lines.loc["b", "median"] == pytest.approx(np.median(b) / 45)


# ---- the statistics themselves


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
def test_rank_biserial_by_hand(d):
    from scipy.stats import rankdata

    nonzero = np.array([value for value in d if value])
    expected = float((np.sign(nonzero) * rankdata(np.abs(nonzero))).sum() / rankdata(np.abs(nonzero)).sum()) if len(nonzero) else 0.0
    assert rank_biserial(d, np.zeros(len(d))) == pytest.approx(expected)
    assert rank_biserial(np.zeros(len(d)), d) == pytest.approx(-expected)


def test_rank_biserial_without_pairs():
    assert math.isnan(rank_biserial([], []))
    assert math.isnan(rank_biserial([1.0, math.nan], [0.0, 0.0]))


@given(arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=st.sampled_from([-0.5, -0.0, 0.0, 0.25, 1.0, 3.0])))
def test_row_ranks_are_those_of_scipy(scores):
    np.testing.assert_array_equal(row_ranks(scores), rankdata(scores, axis=1))
    np.testing.assert_array_equal(row_ranks(scores, higher_is_better=True), rankdata(-scores, axis=1))


def test_row_ranks():
    np.testing.assert_array_equal(row_ranks([[0.1, 0.3, 0.1 + 1e-17], [3, 2, 1]]), [[1.5, 3, 1.5], [3, 2, 1]])
    np.testing.assert_array_equal(row_ranks([[0.1, 0.3, 0.2]], higher_is_better=True), [[3, 1, 2]])
    np.testing.assert_array_equal(row_ranks([[0.0, 0.0]]), [[1.5, 1.5]])


def test_critical_difference_is_the_published_one():
    # Demsar (2006), section 3.2.2 and table 5a: q_0.05 = 2.569 for 4 methods; CD = 1.25 for 14 data sets
    assert critical_difference(4, 14) == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.01)


def test_nemenyi_agrees_with_scikit_posthocs():
    library = pytest.importorskip("scikit_posthocs", reason="the extra advcli[report] is not installed")
    scores = np.random.default_rng(0).normal(size=(9, 5)) + np.arange(5) / 2
    ours = nemenyi(row_ranks(scores).mean(axis=0), 9)
    np.testing.assert_allclose(ours, library.posthoc_nemenyi_friedman(scores).to_numpy(), atol=1e-9)
    np.testing.assert_allclose(np.diag(ours), 1.0)


def test_equivalence_agrees_with_two_one_sided_welch_tests():
    from scipy import stats

    rng = np.random.default_rng(0)
    a, b, margin = rng.normal(size=20), rng.normal(0.2, 2, size=15), 1.5
    lower = stats.ttest_ind(a + margin, b, equal_var=False, alternative="greater").pvalue
    upper = stats.ttest_ind(a - margin, b, equal_var=False, alternative="less").pvalue
    result = equivalence(a.mean(), a.std(ddof=1), 20, b.mean(), b.std(ddof=1), 15, margin)
    assert result.p_value == pytest.approx(max(lower, upper))


def test_equivalence_at_its_edges():
    assert equivalence(1.0, 0.0, 5, 1.0, 0.0, 5, 0.1).p_value == 0.0
    assert equivalence(1.2, 0.0, 5, 1.0, 0.0, 5, 0.1).p_value == 1.0
    assert equivalence(1.1, 0.1, 5, 1.0, 0.1, 5, 0.1).p_value == pytest.approx(0.5)
    assert math.isnan(equivalence(1.0, math.nan, 1, 1.0, 0.1, 5, 0.1).p_value)
