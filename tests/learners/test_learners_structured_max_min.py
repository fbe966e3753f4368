"""The max-min margin of sets: its closed form, the general game over all sets, its bounds, consistency, and its fits."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from advcli.core.compiled import kernels
from advcli.core.errors import ConfigError, IncompatibleError
from advcli.learners.structured import MultilabelClassifier
from advcli.learners.structured.spaces.max_min import free_game


def sets_of(m):
    return np.array(list(itertools.product((0, 1), repeat=m)), dtype=np.int8)


def wrong(A, B):
    """Return the numbers of labels in which sets differ, (len(A), len(B))."""
    return (A[:, None] != B[None]).sum(axis=2).astype(float)


def searched(U, shared, Y, pairs):
    """Return the cuts of rows with scores U of the labels and true sets Y."""
    model = MultilabelClassifier(surrogate="maxmin", pairs=pairs, tol=1e-9, fit_intercept=False)
    model.classes_, model.of_sets_ = np.arange(Y.shape[1]), True
    structure = model.problem(U, sparse.csr_array(Y), np.full(len(Y), 1 / len(Y)), model.psi())
    return structure.search(U, shared, np.arange(len(Y))), structure


@given(seed=st.integers(0, 10**6), m=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_without_pairs_it_is_a_sum_of_closed_forms(seed, m):
    random = np.random.default_rng(seed)
    U, Y = 1.5 * random.normal(size=(5, m)), random.integers(0, 2, size=(5, m)).astype(np.int8)
    ahead = (1.0 - 2.0 * Y) * U  # the other state's score less the true one's
    expected = np.maximum(np.maximum(0.0, (1.0 + ahead) / 2.0), ahead).sum(axis=1)
    cuts, _ = searched(U, np.zeros(0), Y, "none")
    np.testing.assert_allclose(cuts.value, expected, atol=1e-13)
    np.testing.assert_allclose(cuts.upper, expected, atol=1e-13)
    # the columns come to the same with weights of pairs that are 0
    np.testing.assert_allclose(searched(U, np.zeros(m * (m - 1) // 2), Y, "one")[0].upper, expected, atol=1e-8)


@given(seed=st.integers(0, 10**6), m=st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_with_pairs_it_is_the_general_game_over_all_sets(seed, m):
    random = np.random.default_rng(seed)
    U, Y = random.normal(size=(4, m)), random.integers(0, 2, size=(4, m)).astype(np.int8)
    shared, every = random.normal(size=m * (m - 1) // 2), sets_of(m)
    j, k = np.triu_indices(m, 1)
    F = U @ every.T + shared @ (every[:, j] * every[:, k]).T
    truth = Y @ (1 << np.arange(m)[::-1])
    matrix = wrong(every, every)
    general = kernels.value(("general", len(every), np.concatenate([[float(len(every))], matrix.ravel()])), F, truth)
    cuts, structure = searched(U, shared, Y, "one")
    np.testing.assert_allclose(cuts.value, general, atol=1e-8)
    np.testing.assert_allclose(cuts.upper, general, atol=1e-8)
    margins = F - F[np.arange(4), truth][:, None]
    assert (margins.max(axis=1) <= general + 1e-9).all()
    assert (cuts.value <= (margins + matrix[:, truth].T).max(axis=1) + 1e-9).all()
    # its plane is a mixture of sets with its loss: it touches, and lies below elsewhere
    parts = cuts.parts.toarray()
    G = structure.G
    at = cuts.constant + parts[:, :G] @ shared + (parts[:, G:] * U).sum(axis=1)
    np.testing.assert_allclose(at, cuts.value, atol=1e-8)
    V, other = random.normal(size=U.shape), random.normal(size=G)
    below = cuts.constant + parts[:, :G] @ other + (parts[:, G:] * V).sum(axis=1)
    assert (below <= searched(V, other, Y, "one")[0].upper + 1e-8).all()


@pytest.mark.parametrize("seed", range(5))
def test_it_is_consistent_where_margin_rescaling_is_not_bound_to_be(seed):
    # any scores of all sets of 2 labels are scores of labels and of their pair: the best expected surrogate is the Bayes risk
    random = np.random.default_rng(seed)
    every = sets_of(2)
    law = random.dirichlet(np.ones(4))
    bayes = (wrong(every, every) @ law).min()
    # planes of all mixtures: S(f, y) = max over q of [loss(q) + f(q)] - f(y), by the values of `searched` in a linear program of cuts
    A, b, f = [], [], np.zeros(3)
    for _ in range(60):
        cuts, _ = searched(np.tile(f[:2], (4, 1)), f[2:], every, "one")
        parts = cuts.parts.toarray()
        A.append(np.concatenate([law @ parts[:, 1:], law @ parts[:, :1], [-1.0]]))
        b.append(-law @ cuts.constant)
        found = linprog([0, 0, 0, 1.0], A_ub=np.array(A), b_ub=b, bounds=[(-4, 4)] * 3 + [(None, None)])
        f = found.x[:3]
        value = law @ searched(np.tile(f[:2], (4, 1)), f[2:], every, "one")[0].upper
        if value - found.fun < 1e-8:
            break
    assert value == pytest.approx(bayes, abs=1e-7)


@pytest.mark.parametrize("pairs", ["one", "four", "none"])
def test_fits_are_certified_and_below_margin_rescaling(pairs):
    random = np.random.default_rng(1)
    X = random.normal(size=(15, 2))
    Y = (X @ random.normal(size=(2, 3)) + 0.5 * random.normal(size=(15, 3)) > 0).astype(int)
    model = MultilabelClassifier(surrogate="maxmin", pairs=pairs, tol=1e-4).fit(X, Y)
    assert model.certificate_.converged
    assert 0.0 <= model.oracle_gap_ <= 1e-4
    assert model.certificate_.primal <= MultilabelClassifier(pairs=pairs, tol=1e-4).fit(X, Y).certificate_.primal
    chosen = model.predict(X).toarray()
    model.rule = "predictor"
    assert (model.predict(X).toarray() != Y).mean() <= (chosen != Y).mean() + 0.2
    if pairs == "none":
        np.testing.assert_array_equal(model.predict(X).toarray(), chosen)


def test_targets_of_free_labels_are_shares():
    U = np.array([[-2.0, -0.5, 0.0, 0.5, 2.0]])
    np.testing.assert_array_equal(free_game(U).targets, [[0.0, 0.25, 0.5, 0.75, 1.0]])


def test_what_it_has_not_is_said():
    X, Y = np.eye(3), np.eye(3, dtype=int)
    for options, error, words in [
        ({"surrogate": "maxmin", "search": "hull"}, IncompatibleError, "is a game"),
        ({"rule": "predictor"}, ConfigError, "loss.rule=predictor is for loss.surrogate=maxmin"),
        ({"surrogate": "prob_raw"}, IncompatibleError, "needs loss.training=sgd, as it is not convex; choose prob"),
    ]:
        with pytest.raises(error, match=words):
            MultilabelClassifier(**options).fit(X, Y)
