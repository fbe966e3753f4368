"""Games over many outcomes: the compiled columns against the readable ones and against the game of the whole matrix."""

import numpy as np
import pytest
from support.instruction_sets import levels
from support.python_outcomes import solve_outcomes

from advcli.core.compiled import Kernels
from advcli.losses.general import solve_games

SHAPES = [(1, 1), (2, 1), (2, 30), (3, 7), (5, 300), (8, 700)]
KINDS = ["normal", "whole", "equal", "far"]


def drawn(l, m, kind, seed):
    """Return outcomes (l, m) and scores (6, l): whole numbers tie, equal outcomes are degenerate, far scores have one answer."""
    random = np.random.default_rng([l, m, seed])
    A, S = random.exponential(size=(l, m)), random.normal(size=(6, l))
    if kind == "whole":
        A, S = np.round(2.0 * A), np.round(S)
    if kind == "equal":
        A[:] = A[:, :1]
    return A, 50.0 * S if kind == "far" else S


def solved(kernels, A, S, columns=None, width=None, tolerance=1e-9):
    n, l = S.shape
    columns = np.full((n, width or 4 * l + 8), -1) if columns is None else columns.copy()
    Q, P, lower, upper = np.full(columns.shape, np.nan), np.empty((n, l)), np.empty(n), np.empty(n)
    kernels.outcomes.games(np.ascontiguousarray(A), S, tolerance, columns, Q, P, lower, upper)
    return columns, Q, P, lower, upper


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("l", "m"), SHAPES)
def test_values_are_those_of_the_whole_game_and_of_the_readable_version(level, kind, l, m):
    kernels = Kernels(level)
    A, S = drawn(l, m, kind, 0)
    columns, Q, P, lower, upper = solved(kernels, A, S)
    assert ((Q >= 0.0) & ((columns >= 0) | (Q == 0.0))).all()
    assert (P >= 0.0).all()
    np.testing.assert_allclose(Q.sum(axis=1), 1.0)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    scale = 1.0 + np.abs(A).max() * (1.0 + np.abs(S).sum(axis=1))
    for i, s in enumerate(S):
        C = A[:, columns[i][columns[i] >= 0]] @ Q[i][columns[i] >= 0]
        assert lower[i] == pytest.approx(C.min() - s @ C, abs=1e-12 * scale[i])
        assert upper[i] == pytest.approx(((P[i] - s) @ A).max(), abs=1e-12 * scale[i])
        assert abs(upper[i] - lower[i]) <= 1e-9 * scale[i]
        _, _, values = solve_outcomes(A, s, 1e-9)
        np.testing.assert_allclose([lower[i], upper[i]], values, atol=2e-9 * scale[i])
    whole, _ = solve_games(A, -S @ A)
    C = whole @ A.T
    np.testing.assert_allclose(lower, C.min(axis=1) - (S * C).sum(axis=1), atol=1e-8 * scale.max())


@pytest.mark.parametrize("level", levels())
def test_columns_to_begin_with_and_their_number_do_not_move_the_values(level):
    kernels = Kernels(level)
    A, S = drawn(4, 500, "normal", 1)
    columns, _, _, lower, upper = solved(kernels, A, S)
    begun = np.full(columns.shape, -1)
    begun[:, :3] = np.random.default_rng(0).integers(500, size=(len(S), 3))
    for given in ({"columns": begun}, {"columns": columns}, {"width": 5}):
        other = solved(kernels, A, S, **given)
        np.testing.assert_allclose(other[3], lower, atol=1e-7)
        np.testing.assert_allclose(other[4], upper, atol=1e-7)
    # from the answer nothing is left to do
    again = solved(kernels, A, S, columns=columns)
    assert np.array_equal(again[0], columns)
    # bounds hold at any tolerance
    rough = solved(kernels, A, S, tolerance=0.3)
    assert (rough[3] <= lower + 1e-9).all()
    assert (rough[4] >= upper - 1e-9).all()
    assert (rough[4] - rough[3] <= 0.3).all()
    assert (rough[4] - rough[3]).max() > 1e-6
