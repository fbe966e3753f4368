"""K guesses: the game over all sets of K classes, its limits, its predictions and its errors; the contracts hold the rest."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from support import reference

from advcli import AdversarialClassifier
from advcli.core.compiled import kernels
from advcli.core.errors import ConfigError
from advcli.losses import make_loss


@pytest.mark.parametrize(("k", "K"), [(k, K) for k in (3, 4, 5, 6) for K in (1, 2, 3) if k > K])
def test_the_value_is_that_of_the_game_over_all_sets(k: int, K: int) -> None:
    loss, random = make_loss("top_k", k, K=K), np.random.default_rng(k)
    F, y = random.normal(size=(12, k)) * np.repeat([0.2, 1.0, 4.0], 4)[:, None], random.integers(0, k, 12)
    every = np.array([[label not in guessed for label in range(k)] for guessed in combinations(range(k), K)], dtype=float)
    game = np.array([reference.game_lp(every, f)[0] - f[label] for f, label in zip(F, y, strict=True)])
    assert np.abs(loss.value(F, y) - game).max() <= 1e-9
    Q = random.dirichlet(np.full(k, 0.5), size=12)
    offset = loss.offset(Q - np.eye(k)[y], y)
    np.testing.assert_allclose(offset, (Q @ every.T).min(axis=1), atol=1e-14)
    assert (offset >= 0.0).all()


@pytest.mark.parametrize("k", [1, 2, 3, 10, 40, 1000])
def test_one_guess_is_zero_one_bit_for_bit(k: int) -> None:
    random = np.random.default_rng(k)
    F, y, w = random.normal(size=(50, k)), random.integers(0, k, 50), random.uniform(0.01, 10.0, 50)
    one, zero_one = make_loss("top_k", k, K=1), make_loss("zero_one", k)
    R = zero_one.oracle(random.normal(size=(50, k)), y).R
    assert np.array_equal(one.value(F, y), zero_one.value(F, y))
    assert np.array_equal(one.oracle(F, y).R, zero_one.oracle(F, y).R)
    assert np.array_equal(one.offset(R, y), zero_one.offset(R, y))
    assert np.array_equal(one.block(F, R, y, w), zero_one.block(F, R, y, w))
    # and the family of K guesses at K = 1 is the same mathematics
    own = ("top_k", k, np.ones(1))
    np.testing.assert_allclose(kernels.value(own, F, y), zero_one.value(F, y), atol=1e-13)
    np.testing.assert_allclose(kernels.block(own, F, R, y, w), zero_one.block(F, R, y, w), atol=1e-11)


@pytest.mark.parametrize("K", [2, 5, 30, 299])
def test_the_offset_sums_the_largest_of_any_distribution(K: int) -> None:
    """Halves of halves, ties, few labels, one label: what cuts from both sides could miss."""
    k, random = 300, np.random.default_rng(K)
    falling = 0.5 ** np.arange(k)
    kinds = [falling, 0.9 ** np.arange(k), np.ones(k), np.repeat([3.0, 2.0, 1.0], k // 3)]
    kinds += [np.eye(k)[0], np.arange(k) < K, np.arange(k) <= K]
    Q = np.array([random.permutation(kind / kind.sum()) for kind in kinds] + list(random.dirichlet(np.full(k, 0.05), size=20)))
    y = random.integers(0, k, len(Q))
    R = Q - np.eye(k)[y]
    loss = make_loss("top_k", k, K=K)
    np.testing.assert_allclose(loss.offset(R, y), loss.offset_reference(R, y), atol=1e-14)


def test_more_guesses_cost_less() -> None:
    random = np.random.default_rng(0)
    F, y = random.normal(size=(40, 8)), random.integers(0, 8, 40)
    values = np.array([make_loss("top_k", 8, K=K).value(F, y) for K in range(1, 8)])
    assert (np.diff(values, axis=0) <= 1e-15).all()
    assert (values[-1] >= F.max(axis=1) - F[np.arange(40), y]).all()  # what the best label alone is worth


@pytest.mark.parametrize(
    ("K", "words"),
    [
        (3, "K=3 of loss=top_k needs more than 3 classes, there are 3: give a smaller K"),
        (10**30, "needs more than 10+ classes, there are 3"),
        *((K, "K of loss=top_k must be a whole number of at least 1, got") for K in (0, -1, 1.5, "two", None, True, np.nan, [2])),
    ],
)
def test_what_is_no_number_of_guesses_is_refused(K: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_loss("top_k", 3, K=K)
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ConfigError, match=words):
        AdversarialClassifier("top_k", loss_options={"K": K}).fit(X, y)


def test_the_guesses_of_a_fit() -> None:
    X, y = load_digits(return_X_y=True)
    names = np.array([f"d{digit}" for digit in range(10)])
    order = names[[3, 1, 4, 0, 5, 9, 2, 6, 8, 7]].tolist()
    model = AdversarialClassifier("top_k", loss_options={"K": 3}, C=1e-3, order=order).fit(X[:400], names[y[:400]])
    assert model.certificate_.converged
    assert model.certificate_.relative_gap <= 1e-3
    sets, F = model.predict_sets(X[400:500]), model.decision_function(X[400:500])
    assert sets.shape == (100, 10)
    assert (sets.sum(axis=1) == 3).all()
    for guesses, f in zip(sets.toarray() == 1, F, strict=True):
        assert f[guesses].min() >= f[~guesses].max()
    best = np.searchsorted(names, model.predict(X[400:500]))
    assert (model.predict_sets(X[400:500], K=1).toarray().argmax(axis=1) == best).all()
    assert (model.predict_sets(X[400:500], K=10).sum(axis=1) == 10).all()
    for K in (0, 11, 1.5, "two"):
        with pytest.raises(ConfigError, match="K must be a whole number from 1 to 10, got"):
            model.predict_sets(X[:2], K=K)


def test_a_fit_learns_which_two_classes_to_name() -> None:
    """Three classes at each of three places, 50, 40 and 10 of a hundred rows in turn: two guesses leave 10 of 100 out."""
    shares = {0: (50, 40, 10), 1: (10, 50, 40), 2: (40, 10, 50)}
    X = np.repeat(np.eye(3), 100, axis=0)
    y = np.concatenate([np.repeat([0, 1, 2], shares[place]) for place in range(3)])
    model = AdversarialClassifier("top_k", loss_options={"K": 2}, C=100.0, tol=1e-6, fit_intercept=False).fit(X, y)
    assert model.predict_sets(np.eye(3)).toarray().tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    assert model.certificate_.primal == pytest.approx(0.1, abs=0.02)
