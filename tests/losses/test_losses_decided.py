"""Verdicts on Fisher consistency: those of the literature, and random matrices held to other linear programs."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from advcli.core.errors import ConfigError
from advcli.losses import make_loss
from advcli.losses import matrices as m
from advcli.losses.consistency import Consistency, Piece, Region, decide, decide_matrix, decide_surrogate
from advcli.losses.rejecting import RejectingCrammerSingerLoss

Pieces = list[list[Piece]]


def sums(hinges: list[tuple[np.ndarray, float]]) -> list[Piece]:
    """Return the pieces of sum of [r.f + c]_+."""
    chosen = [np.array(mask, dtype=float) for mask in product((0, 1), repeat=len(hinges))]
    R, c = np.array([r for r, _ in hinges]), np.array([c for _, c in hinges])
    return [(mask @ R, float(mask @ c)) for mask in chosen]


def one_against_all(k: int) -> Pieces:
    """Return [1 - f_y]_+ + sum of [1 + f_j]_+."""
    return [sums([((1.0 - 2.0 * (j == y)) * unit, 1.0) for j, unit in enumerate(np.eye(k))]) for y in range(k)]


def all_thresholds(k: int) -> Pieces:
    """Return the sum over thresholds a of the hinge with f_a > 0 wanted where y <= a."""
    return [sums([((1.0 if y > a else -1.0) * unit, 1.0) for a, unit in enumerate(np.eye(k - 1))]) for y in range(k)]


def by_thresholds(k: int) -> list[Region]:
    return [(y, np.diag([-1.0 if a < y else 1.0 for a in range(k - 1)]), np.zeros(k - 1)) for y in range(k)]


def abstaining(k: int) -> tuple[Pieces, list[Region]]:
    """Return the hinge of Crammer & Singer with a margin of 1/2 below which the rule abstains (Ramaswamy et al. 2018)."""
    loss, unit = make_loss("cs", k), np.eye(k)
    sure = [(j, np.delete(unit[j] - unit, j, axis=0), np.full(k - 1, 0.5)) for j in range(k)]
    lead = [np.r_[np.delete(unit[j] - unit, j, axis=0), [unit[i] - unit[j]]] for j in range(k) for i in range(k) if i != j]
    return [loss.pieces(y) for y in range(k)], sure + [(k, A, np.r_[np.zeros(k - 1), -0.5]) for A in lead]


def of_name(name: str, k: int) -> Consistency:
    return decide(make_loss(name, k))


LITERATURE = {
    "adversarial zero-one (Fathony et al. 2018, Theorem 16)": (lambda: decide_matrix(m.zero_one(5)), True),
    "adversarial absolute (Theorem 15)": (lambda: decide_matrix(m.absolute(5)), True),
    "adversarial squared (Theorem 15)": (lambda: decide_matrix(m.squared(5)), True),
    "adversarial abstain, largest score (section 5.1.2)": (lambda: decide_matrix(m.abstain(4, 0.4)), False),
    "Weston & Watkins (Liu 2007)": (lambda: of_name("ww", 4), False),
    "Crammer & Singer (Liu 2007)": (lambda: of_name("cs", 4), False),
    "Crammer & Singer, two classes": (lambda: of_name("cs", 2), True),
    "Lee, Lin & Wahba (2004)": (lambda: of_name("llw", 5), True),
    "one against all (Liu 2007)": (lambda: decide_surrogate(one_against_all(3), m.zero_one(3)), False),
    "all thresholds, absolute (Pedregosa et al. 2017)": (
        lambda: decide_surrogate(all_thresholds(4), m.absolute(4), by_thresholds(4)),
        True,
    ),
    "all thresholds, zero-one": (lambda: decide_surrogate(all_thresholds(4), m.zero_one(4), by_thresholds(4)), False),
    "Crammer & Singer that abstains at 1/2 (Ramaswamy et al. 2018)": (
        lambda: decide_surrogate(abstaining(3)[0], m.abstain(3, 0.5), abstaining(3)[1]),
        True,
    ),
}


@pytest.mark.parametrize("name", LITERATURE)
def test_the_verdicts_of_the_literature(name: str) -> None:
    judge, consistent = LITERATURE[name]
    verdict = judge()
    assert verdict.consistent is consistent
    for broken in filter(None, verdict.violations):
        assert abs(broken.excess) < 1e-8
        assert broken.costs[0] > broken.costs[1]
        assert broken.distribution.sum() == pytest.approx(1.0)


def game_risk(L: np.ndarray, f: np.ndarray, q: np.ndarray) -> float:
    """Return E_q S(f) - min over predictions of (Lq), zero exactly at a minimiser, by a program in the adversary's distribution."""
    l, k = L.shape
    solved = linprog(
        -np.r_[f, 1.0],
        A_ub=np.c_[-L, np.ones(l)],
        b_ub=np.zeros(l),
        A_eq=np.r_[np.ones(k), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, None)],
    )
    return float(-solved.fun - f @ q - (L @ q).min())


def game_pieces(L: np.ndarray) -> Pieces:
    """Return the vertices of {(q, v): v <= Lq} as pieces, by trying every set of equations."""
    l, k = L.shape
    planes = np.r_[np.c_[L, -np.ones(l)], np.c_[np.eye(k), np.zeros(k)]]
    corners = []
    for chosen in combinations(range(l + k), k):
        system = np.r_[planes[list(chosen)], [np.r_[np.ones(k), 0.0]]]
        if abs(np.linalg.det(system)) > 1e-9:
            corner = np.linalg.solve(system, np.r_[np.zeros(k), 1.0])
            if (planes @ corner > -1e-9).all():
                corners.append(corner)
    return [[(corner[:k] - unit, float(corner[k])) for corner in corners] for unit in np.eye(k)]


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_agree_on_random_games_and_each_violation_is_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    L = random.integers(0, 4, size=(3, 3)).astype(float)
    if seed % 2:
        np.fill_diagonal(L, 0.0)
    by_sets, by_vertices = decide_matrix(L), decide_surrogate(game_pieces(L), L)
    assert [broken is None for broken in by_sets.violations] == [broken is None for broken in by_vertices.violations]
    for broken in filter(None, by_sets.violations + by_vertices.violations):
        assert abs(game_risk(L, broken.scores, broken.distribution)) < 1e-8
        assert broken.scores[broken.prediction] >= broken.scores.max() - 1e-9
        costs = L @ broken.distribution
        assert costs[broken.prediction] > costs[broken.best] + 1e-8
    first = by_sets.violations[0]
    if first is not None:
        costs = L @ first.distribution
        assert (np.delete(costs, first.best) > costs[first.best]).all()
        assert first.distribution.min() > 0.0


def test_random_matrices_are_consistent_exactly_where_each_row_is_least_at_its_class() -> None:
    """With a unique best prediction the scores are minus its row: Theorem 15's condition decides where every prediction can be best."""
    random = np.random.default_rng(1)
    verdicts = []
    for _ in range(30):
        L = random.uniform(size=(4, 4)) + 1.0 - np.eye(4)
        L[2, 3] = random.uniform(-1.0, 2.0)
        reachable = [r for r in range(4) if best_somewhere(L, r)]
        expected = all((np.delete(L[r], r) > L[r, r]).all() for r in reachable)
        assert decide_matrix(L).consistent is expected
        verdicts.append(expected)
    assert 0 < sum(verdicts) < 30


def best_somewhere(L: np.ndarray, r: int) -> bool:
    """Return whether a distribution makes r strictly the best prediction."""
    l, k = L.shape
    rows = np.c_[L[r] - np.delete(L, r, axis=0), np.ones(l - 1)]
    solved = linprog(
        np.r_[np.zeros(k), -1.0],
        A_ub=rows,
        b_ub=np.zeros(l - 1),
        A_eq=np.r_[np.ones(k), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, 1)],
    )
    return bool(-solved.fun > 1e-7)


def test_what_cannot_be_decided_is_refused() -> None:
    for call, words in (
        (lambda: decide_matrix(m.zero_one(7)), "at most 6 classes"),
        (lambda: decide_matrix([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), "2 predictions for 3 classes"),
        (lambda: decide_matrix([[0.0, float("nan")], [1.0, 0.0]]), "row 0, column 1"),
        (lambda: decide(RejectingCrammerSingerLoss(3, 0.3)), "lists no pieces"),
        (lambda: decide(make_loss("ww", 3), m.zero_one(4)), "4 columns but there are 3"),
    ):
        with pytest.raises(ConfigError, match=words):
            call()


@pytest.mark.parametrize(("k", "K"), [(3, 2), (4, 3)])
def test_guesses_are_consistent_under_the_rule_of_the_largest_scores(k: int, K: int) -> None:
    """The rule has a region for each set of K classes, where each of them has a larger score than each of the others."""
    loss, sets, unit = make_loss("top_k", k, K=K), list(combinations(range(k), K)), np.eye(k)
    L = np.array([[float(j not in chosen) for j in range(k)] for chosen in sets])
    regions = [
        (i, np.array([unit[a] - unit[b] for a in chosen for b in range(k) if b not in chosen]), np.zeros(K * (k - K)))
        for i, chosen in enumerate(sets)
    ]
    verdict = decide_surrogate([loss.pieces(y) for y in range(k)], L, regions)
    assert verdict.violations == (None, None, None)
