"""Label sequences of a chain: the best one against all sequences, the max-min game against its definition."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from advcli.learners.structured.spaces.chain_game import best_paths, chain_game
from advcli.losses import make_loss

SHAPES = [(1, 2), (1, 4), (2, 3), (4, 3), (3, 5), (6, 2)]


class Chain(NamedTuple):
    """One chain with its true labels."""

    U: np.ndarray
    A: np.ndarray
    truth: np.ndarray

    def score(self, y):
        return self.U[np.arange(len(y)), y].sum() + self.A[y[:-1], y[1:]].sum()

    @property
    def own(self):
        return self.score(self.truth)

    def game(self):
        return chain_game(self.U, self.A, self.own)

    def best(self, U):
        """Return the best sequence at other scores of its states, and its score."""
        y, value = best_paths(U, self.A, np.array([0, len(U)]))
        return y, value[0]


def instances(shape, repeats=5):
    T, K = shape
    for seed in range(repeats):
        random = np.random.default_rng([seed, T, K])
        U, A = random.normal(size=(T, K)), random.normal(size=(K, K))
        yield Chain(U, A, random.integers(K, size=T)), [np.array(y) for y in itertools.product(range(K), repeat=T)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_best_path_is_the_best_of_all_sequences(shape):
    for chain, every in instances(shape, 3):
        y, value = chain.best(chain.U)
        assert value == pytest.approx(max(map(chain.score, every)), abs=1e-12)
        assert chain.score(y) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("shape", [(1, 2), (1, 4), (2, 3), (4, 3), (3, 4), (6, 2)], ids=str)
def test_the_game_is_the_adversarial_loss_of_the_matrix_over_all_sequences(shape):
    """S of the max-min margin is the general-matrix surrogate over K^T classes with L = Hamming and scores f(y)."""
    for chain, every in instances(shape):
        f, Y = np.array([chain.score(y) for y in every]), np.array(every)
        loss = make_loss("general", len(every), matrix=(Y[:, None] != Y[None]).sum(axis=2).astype(float))
        expected = float(loss.value(f[None], np.flatnonzero((chain.truth == Y).all(axis=1)))[0])
        game = chain.game()
        assert game.value == pytest.approx(expected, abs=1e-9)
        assert game.upper == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shape", [(1, 4), (5, 3), (20, 5)], ids=str)
def test_without_transitions_the_game_is_a_sum_of_adversarial_zero_one_losses(shape):
    T, K = shape
    zero_one = make_loss("zero_one", K)
    for seed in range(5):
        random = np.random.default_rng([seed, T])
        U, truth = random.normal(size=(T, K)), random.integers(K, size=T)
        assert Chain(U, np.zeros((K, K)), truth).game().value == pytest.approx(float(zero_one.value(U, truth).sum()), abs=1e-9)


def test_the_game_lies_between_the_largest_margin_and_margin_rescaling():
    for shape in SHAPES:
        for chain, _ in instances(shape):
            wrong = (np.arange(shape[1]) != chain.truth[:, None]).astype(float)
            value = chain.game().value
            assert chain.best(chain.U)[1] - chain.own - 1e-9 <= value <= chain.best(chain.U + wrong)[1] - chain.own + 1e-9


@pytest.mark.parametrize("shape", [(2, 3), (5, 4)], ids=str)
def test_any_targets_bound_the_game_from_above_and_any_shares_from_below(shape):
    T, K = shape
    for chain, every in instances(shape):
        random, value = np.random.default_rng(0), chain.game().value
        for _ in range(10):
            p = random.dirichlet(np.full(K, 0.5), size=T)
            assert chain.best(chain.U + 1.0 - p)[1] - chain.own >= value - 1e-9
            q = random.dirichlet(np.full(len(every), 0.1))
            mu = np.zeros((T, K))
            for y, share in zip(every, q, strict=True):
                mu[np.arange(T), y] += share
            mean = sum(share * chain.score(y) for y, share in zip(every, q, strict=True)) - chain.own
            assert (1.0 - mu.max(axis=1)).sum() + mean <= value + 1e-9
