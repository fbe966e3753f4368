"""The set of the largest expected F-measure: against all sets, under any distribution and under independent labels."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from advcli.learners.structured.spaces.enumerated_sets import pair_table, set_rows
from advcli.learners.structured.spaces.f_measure import best_f_sets, gibbs, sized_of_free_labels, sized_of_gibbs, sized_of_sets


def f_measures(m):
    """Return F(z, y) of all sets, by their numbers, (2^m, 2^m)."""
    every = [frozenset(j for j in range(m) if number >> j & 1) for number in range(1 << m)]
    return np.array([[2 * len(z & y) / (len(z) + len(y)) if z or y else 1.0 for y in every] for z in every])


def numbers(Z):
    return Z.astype(int) @ (1 << np.arange(Z.shape[1]))


@given(seed=st.integers(0, 10**6), m=st.integers(1, 6), spread=st.sampled_from([0.02, 0.3, 5.0]))
@settings(max_examples=60, deadline=None)
def test_no_set_has_a_larger_expected_f_measure(seed, m, spread):
    laws = np.random.default_rng(seed).dirichlet(np.full(1 << m, spread), size=8)
    Z, value = best_f_sets(sized_of_sets(laws, set_rows(np.arange(1 << m), m)))
    expected = laws @ f_measures(m).T
    np.testing.assert_allclose(value, expected.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(expected[np.arange(8), numbers(Z)], expected.max(axis=1), rtol=1e-12)


@given(seed=st.integers(0, 10**6), m=st.integers(1, 6), scale=st.sampled_from([0.1, 1.0, 30.0]))
@settings(max_examples=40, deadline=None)
def test_independent_labels_are_the_distribution_of_scores_without_pairs(seed, m, scale):
    random = np.random.default_rng(seed)
    U = scale * random.normal(size=(6, m))
    laws = gibbs(U, np.zeros(1 << m))
    product = np.array([[np.prod([expit(v if number >> j & 1 else -v) for j, v in enumerate(u)]) for number in range(1 << m)] for u in U])
    np.testing.assert_allclose(laws, product, rtol=1e-11, atol=1e-300)
    free, listed = sized_of_free_labels(expit(U)), sized_of_gibbs(U, np.zeros(1 << m))
    np.testing.assert_allclose(free.joint, listed.joint, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(free.empty, listed.empty, rtol=1e-10, atol=1e-15)


@given(seed=st.integers(0, 10**6), m=st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_pairs_count_in_the_distribution_of_scores(seed, m):
    random = np.random.default_rng(seed)
    U, pairs = random.normal(size=(3, m)), random.normal(size=m * (m - 1) // 2)
    laws = gibbs(U, pair_table(pairs, m))
    np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-13)
    which = list(itertools.combinations(range(m), 2))
    for number in range(1 << m):
        y = [j for j in range(m) if number >> j & 1]
        score = U[:, y].sum(axis=1) + sum(pairs[which.index(pair)] for pair in itertools.combinations(y, 2))
        np.testing.assert_allclose(np.log(laws[:, number] / laws[:, 0]), score, atol=1e-10)


def test_the_best_set_need_be_no_best_label_by_label():
    # the laws of Dembczynski et al.'s remark: labels below 1/2 are taken where sets are small
    p = np.array([[0.4, 0.4, 0.4, 0.01]])
    Z, _ = best_f_sets(sized_of_free_labels(p))
    np.testing.assert_array_equal(Z, [[1, 1, 1, 0]])


def test_many_labels_need_no_list_of_sets():
    p = np.random.default_rng(0).random((2, 60))
    sized = sized_of_free_labels(p)
    np.testing.assert_allclose(sized.joint.sum(axis=2), p, rtol=1e-12)  # over all sizes: the probability of the label
    Z, value = best_f_sets(sized)
    order = np.argsort(-p, axis=1)  # the best set of independent labels is a head of them
    for row, z in enumerate(Z):
        assert set(np.flatnonzero(z)) == set(order[row, : z.sum()])
    assert (value <= 1.0).all()


def test_the_empty_set_is_taken_where_it_is_likely():
    Z, value = best_f_sets(sized_of_free_labels(np.full((1, 3), 0.05)))
    np.testing.assert_array_equal(Z, np.zeros((1, 3)))
    np.testing.assert_allclose(value, 0.95**3)
