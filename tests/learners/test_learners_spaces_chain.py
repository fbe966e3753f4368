"""Label sequences as an output space: every oracle against all sequences, the max-min game against its definition."""

import itertools

import numpy as np
import pytest

from advcli.learners.structured.spaces.chain import ChainColumns, ChainSpace, best_paths, chain_game
from advcli.learners.structured.spaces.space import ORACLES
from advcli.losses import make_loss

SHAPES = [(1, 2), (1, 4), (2, 3), (4, 3), (3, 5), (6, 2)]


def instances(shape, repeats=5, pairs=True):
    T, K = shape
    for seed in range(repeats):
        random = np.random.default_rng([seed, T, K])
        U, A = random.normal(size=(T, K)), random.normal(size=(K, K)) * pairs
        yield ChainSpace(U, A, random.integers(K, size=T)), list(itertools.product(range(K), repeat=T))


def points(space, every):
    return [space.point(np.array(y)) for y in every]


def test_a_chain_offers_what_it_says():
    space, _ = next(instances((3, 2)))
    assert space.offers < set(ORACLES)
    assert space.truth.key == tuple(space.labels.tolist())
    assert (space.point(space.labels).h, space.point(space.labels).g) == (0.0, 0.0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lam_is_the_best_of_all_sequences_that_are_not_banned(shape):
    for space, every in instances(shape):
        random = np.random.default_rng(0)
        for l in (0.0, 0.3, 2.0, np.inf):
            left, banned = points(space, every), []
            for _ in range(min(4, len(every))):
                found = space.lam(l, [each.key for each in banned])
                if l == np.inf:
                    best = max(left, key=lambda each: (each.g, each.h))
                    assert (found.g, found.h) == (best.g, pytest.approx(best.h, abs=1e-9))
                else:
                    assert found.h + l * found.g == pytest.approx(max(each.h + l * each.g for each in left), abs=1e-9)
                gone = found if random.random() < 0.7 else left[random.integers(len(left))]
                banned.append(gone)
                left = [each for each in left if each.key != gone.key]
        assert space.lam(1.0, [each.key for each in points(space, every)]) is None


def test_at_scores_of_zero_the_farthest_sequence_wins_the_tie():
    space = ChainSpace(np.zeros((4, 3)), np.zeros((3, 3)), np.zeros(4, dtype=int))
    for ban in ((), ((0, 0, 0, 0),)):
        assert space.lam(0.0, ban).g == 4
        assert space.lam(np.inf, ban).g == 4


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_levels_and_the_k_best_are_points_of_the_space(shape):
    for space, every in instances(shape, 3):
        known = points(space, every)
        levels = space.levels()
        assert [each.g for each in levels] == sorted({each.g for each in known})
        for each in levels:
            assert each.h == pytest.approx(max(other.h for other in known if other.g == each.g), abs=1e-12)
        best = space.kbest(len(every) + 3)
        np.testing.assert_allclose([each.h for each in best], sorted((each.h for each in known), reverse=True), atol=1e-12)
        assert len({each.key for each in best}) == len(every)
        assert space.argmax().h == pytest.approx(best[0].h)


def hamming(every):
    Y = np.array(every)
    return (Y[:, None] != Y[None]).sum(axis=2).astype(float)


@pytest.mark.parametrize("shape", [(1, 2), (1, 4), (2, 3), (4, 3), (3, 4), (6, 2)], ids=str)
def test_the_game_is_the_adversarial_loss_of_the_matrix_over_all_sequences(shape):
    """S of the max-min margin is the general-matrix surrogate over K^T classes with L = Hamming and scores f(y)."""
    for space, every in instances(shape):
        f = np.array([space.score(np.array(y)) for y in every])
        loss = make_loss("general", len(every), matrix=hamming(every))
        expected = float(loss.value(f[None], np.array([every.index(space.truth.key)]))[0])
        game = space.game()
        assert game.value == pytest.approx(expected, abs=1e-9)
        assert game.upper == pytest.approx(expected, abs=1e-9)
        columns = ChainColumns().solve(space.U, space.A, space.own)
        assert columns.value == pytest.approx(expected, abs=1e-8)
        assert columns.upper == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("shape", [(1, 4), (5, 3), (20, 5)], ids=str)
def test_without_transitions_the_game_is_a_sum_of_adversarial_zero_one_losses(shape):
    T, K = shape
    zero_one = make_loss("zero_one", K)
    for seed in range(5):
        random = np.random.default_rng([seed, T])
        U, truth = random.normal(size=(T, K)), random.integers(K, size=T)
        space = ChainSpace(U, np.zeros((K, K)), truth)
        assert space.game().value == pytest.approx(float(zero_one.value(U, truth).sum()), abs=1e-9)


def test_the_game_lies_between_the_largest_margin_and_margin_rescaling():
    for shape in SHAPES:
        for space, _ in instances(shape):
            rescaled = best_paths(space.U + space.wrong, space.A, np.array([0, shape[0]]))[1][0] - space.own
            value = space.game().value
            assert space.argmax().h - 1e-9 <= value <= rescaled + 1e-9


@pytest.mark.parametrize("shape", [(2, 3), (5, 4)], ids=str)
def test_any_targets_bound_the_game_from_above_and_any_shares_from_below(shape):
    T, K = shape
    for space, every in instances(shape):
        random, value = np.random.default_rng(0), space.game().value
        for _ in range(10):
            p = random.dirichlet(np.full(K, 0.5), size=T)
            assert best_paths(space.U + 1.0 - p, space.A, np.array([0, T]))[1][0] - space.own >= value - 1e-9
            q = random.dirichlet(np.full(len(every), 0.1))
            mu = np.zeros((T, K))
            for y, share in zip(every, q, strict=True):
                mu[np.arange(T), y] += share
            mean = sum(share * space.score(np.array(y)) for y, share in zip(every, q, strict=True)) - space.own
            assert (1.0 - mu.max(axis=1)).sum() + mean <= value + 1e-9


def test_columns_stay_between_calls_and_give_the_program_of_the_polytope():
    random, columns = np.random.default_rng(1), ChainColumns()
    U, A = random.normal(size=(10, 5)), random.normal(size=(5, 5))
    first = columns.solve(U, A)
    assert first.value == pytest.approx(chain_game(U, A).value, abs=1e-7)
    again = columns.solve(U + 0.01 * random.normal(size=U.shape), A)
    assert again.calls < first.calls
    with pytest.raises(ArithmeticError, match="more than 2 sequences"):
        ChainColumns(most=2).solve(U, A)
