"""The relaxation of sets of labels: its flow and its program against another solver and enumeration, and the searches over it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from support.thesis_searches import bisecting, pictures

from advcli.core.errors import DataError, IncompatibleError
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.spaces.relaxation import Marginals, PairField, RelaxedSets
from advcli.learners.structured.spaces.searches import SEARCHES, angular, hull

Array = NDArray[np.float64]

SLACK = make_psi("slack")


def fields(count: int, seed: int, most: int = 7, attracting: bool = False) -> Iterator[tuple[PairField, Array, Array]]:
    """Yield weights of pairs, scores and a true set; weak and strong pairs, some of weight 0."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        m = int(random.integers(1, most + 1))
        P = random.normal(0.0, random.choice([0.2, 1.0, 4.0]), m * (m - 1) // 2) * (random.random(m * (m - 1) // 2) < 0.8)
        yield PairField(np.abs(P) if attracting else P, m), random.normal(-0.3, 1.0, m), (random.random(m) < 0.4).astype(float)


def all_sets(m: int) -> Array:
    """Return all sets of m labels as rows."""
    return ((np.arange(2**m)[:, None] >> np.arange(m)) & 1).astype(float)


def scores(field: PairField, u: Array, Y: Array) -> Array:
    """Return f of sets given as rows."""
    return Y @ u + (Y[:, field.first] * Y[:, field.second]) @ field.pairs


def largest_of_program(field: PairField, u: Array, rows: tuple[Array, Array] | None = None) -> float | None:
    """Return the maximum of u.mu + P.mu_pairs over (1), with further rows A z <= b; None if there is none."""
    m, p = field.m, len(field.pairs)
    A, b = np.zeros((3 * p, m + p)), np.zeros(3 * p)
    each = np.arange(p)
    A[each, field.first] = A[p + each, field.second] = -1.0
    A[each, m + each] = A[p + each, m + each] = 1.0
    A[2 * p + each, field.first] = A[2 * p + each, field.second] = 1.0
    A[2 * p + each, m + each] = -1.0
    b[2 * p :] = 1.0
    if rows is not None:
        A, b = np.vstack([A, rows[0]]), np.append(b, rows[1])
    found = linprog(-np.append(u, field.pairs), A_ub=A, b_ub=b, bounds=(0.0, 1.0), method="highs")
    return -float(found.fun) if found.status == 0 else None


def inside(field: PairField, at: Marginals) -> bool:
    """Whether a point belongs to (1)."""
    a, b = at.labels[field.first], at.labels[field.second]
    off = [-at.labels, at.labels - 1.0, -at.pairs, at.pairs - a, at.pairs - b, a + b - 1.0 - at.pairs]
    return max(float(each.max(initial=0.0)) for each in off) <= 1e-9


# ---- maxima of the field ----------------------------------------------------------------------------------------------
def test_the_flow_and_the_program_find_the_maximum_at_half_integral_points() -> None:
    for field, u, y in fields(80, 1):
        best = largest_of_program(field, u)
        assert best is not None
        for by_program in (False, True):
            space = pictures.AngledSets(pictures.FieldProgram(field), u, y, by_program=by_program)
            found = space.lam(0.0)
            assert found.h + field.score(u, field.marginals(y)) == pytest.approx(best, abs=1e-7)
            assert inside(field, found.label)
            assert (2.0 * found.label.labels % 1.0 == 0.0).all()
            assert (2.0 * found.label.pairs % 1.0 == 0.0).all()


def test_the_bound_of_the_flow_holds_and_is_tight() -> None:
    for field, u, _ in fields(150, 2, most=9):
        mu, upper = field.flow(u)
        value = field.score(u, field.marginals(mu))
        size = np.abs(u).sum() + np.abs(field.pairs).sum()
        assert scores(field, u, all_sets(field.m)).max() <= upper + 1e-13 * size
        assert -1e-13 * size <= upper - value <= 1e-7 * size


def test_pairs_that_attract_make_the_relaxation_exact() -> None:
    for field, u, y in fields(150, 3, most=9, attracting=True):
        mu, _ = field.flow(u)
        assert np.isin(mu, (0.0, 1.0)).all()
        assert field.score(u, field.marginals(mu)) == pytest.approx(scores(field, u, all_sets(field.m)).max(), abs=1e-7)
        assert (field.rounded(u, mu) == mu).all()
        assert RelaxedSets(field, u, y).lam(0.0).key is not None


def test_whole_labels_belong_to_a_best_set_and_rounding_keeps_them() -> None:
    halves = 0
    for field, u, _ in fields(450, 4, most=9):
        mu, _ = field.flow(u)
        Y = all_sets(field.m)
        f = scores(field, u, Y)
        agree = (np.where(mu == 0.5, Y, mu) == Y).all(axis=1)
        assert f[agree].max() >= f.max() - 1e-6 * (1.0 + np.abs(f).max())
        y = field.rounded(u, mu)
        assert agree[(y == Y).all(axis=1)].all()
        value = scores(field, u, y[None])[0]
        for j in np.flatnonzero(mu == 0.5):
            flipped = y.copy()
            flipped[j] = 1 - y[j]
            assert scores(field, u, flipped[None])[0] <= value + 1e-9 * (1.0 + np.abs(f).max())
        halves += bool((mu == 0.5).any())
    assert halves > 30  # elsewhere there is nothing to round


# ---- the space --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axes", ["margin", "f1"])
def test_a_set_has_the_coordinates_of_its_margin_and_loss(axes: str) -> None:
    for field, u, y in fields(20, 5, most=4):
        space = RelaxedSets(field, u, y, axes)
        Y = all_sets(field.m)
        margin, hamming = scores(field, u, Y) - scores(field, u, y[None])[0], np.abs(Y - y).sum(axis=1)
        points = [space._point(field.marginals(each)) for each in Y]
        if axes == "margin":
            assert [each.h for each in points] == pytest.approx(margin)
            assert [each.g for each in points] == pytest.approx(hamming)
            assert (space.truth.h, space.truth.g) == (pytest.approx(0.0, abs=1e-12), 0.0)
        else:
            assert [each.h for each in points] == pytest.approx(hamming + margin)
            assert [each.g for each in points] == pytest.approx(-Y.sum(axis=1) - y.sum())
        assert len({each.key for each in points}) == len(Y)


def test_an_angle_is_two_rows_of_the_program() -> None:
    random, empty = np.random.default_rng(6), 0
    for field, u, y in fields(60, 7, most=5):
        space = pictures.AngledSets(pictures.FieldProgram(field), u, y)
        for _ in range(2):
            l, b = float(random.random()), float(2.0 * random.random())
            a = b + float(random.random())
            H, g = np.append(space.u_h, field.pairs), np.append(space.u_g, np.zeros(len(field.pairs)))
            rows = (
                np.array([g - a * H, b * H - g, -H]),
                np.array([a * (space.h0 + 1.0) - space.g0, space.g0 - b * (space.h0 + 1.0), space.h0 + 1.0]),
            )
            best = largest_of_program(field, space.u_h + l * space.u_g, rows)
            found = space.cone(l, a, b, 0)
            assert (found is None) == (best is None)
            if found is None:
                empty += 1
                continue
            assert found.h + l * found.g - space.h0 - l * space.g0 == pytest.approx(best, abs=1e-6)
            assert b * (found.h + 1.0) - 1e-6 <= found.g <= a * (found.h + 1.0) + 1e-6
            assert inside(field, found.label)
    assert empty > 5


def test_mixtures_lie_between_their_points() -> None:
    for field, u, y in fields(20, 8):
        space = RelaxedSets(field, u, y)
        first, second = space.lam(np.inf), space.lam(0.1)
        mixed = space._point(space.mix(first, second, 0.3))
        assert (mixed.h, mixed.g) == pytest.approx((0.3 * first.h + 0.7 * second.h, 0.3 * first.g + 0.7 * second.g))


# ---- searches ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["slack", "margin", "log", "prob", "f1"])
def test_the_hull_search_bounds_every_set_and_finds_the_relaxed_surrogate(name: str) -> None:
    psi = make_psi(name)
    for field, u, y in fields(30, 9):
        space = RelaxedSets(field, u, y, psi.axes)
        found = hull(space, psi)
        points = [space._point(field.marginals(each)) for each in all_sets(field.m)]
        of_sets = max(float(psi.value(each.h, each.g)) for each in points)
        assert found.upper >= of_sets - 1e-12
        assert inside(field, found.label)
        again = space._point(found.label)
        assert float(psi.value(again.h, again.g)) == pytest.approx(found.value, abs=1e-9)
        assert found.value <= found.upper <= found.value + 1e-6


def test_angular_bisecting_and_hull_agree_over_the_relaxation() -> None:
    better = 0
    for field, u, y in fields(30, 10):
        space = pictures.AngledSets(pictures.FieldProgram(field), u, y)
        whole, part = hull(space, SLACK), angular(space, SLACK, ratio=0.999)
        assert part.upper >= whole.value * (1.0 - 1e-6)
        assert part.value <= whole.upper * (1.0 + 1e-6)
        assert part.value >= 0.999 * part.upper - 1e-6
        vertex = bisecting(space, SLACK)
        assert vertex.value <= whole.upper * (1.0 + 1e-6)
        assert vertex.upper >= whole.value * (1.0 - 1e-6)
        better += whole.value > vertex.value * 1.01
    assert better > 5  # a mixture is what the searches for vertices cannot find


def test_a_space_of_mixtures_has_no_levels_and_bans_nothing() -> None:
    space = RelaxedSets(PairField([1.0], 2), [0.5, -0.5], [1, 0])
    for name in ("levels", "exact", "sarawagi"):
        with pytest.raises(IncompatibleError, match="relaxed sets offers lam"):
            SEARCHES.get(name)(space, SLACK)


def test_weights_and_sets_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="3 labels need 3 finite weights of pairs"):
        PairField([1.0, 2.0], 3)
    for u, y in (([0.0], [0, 1]), ([0.0, np.nan], [0, 1]), ([0.0, 1.0], [0, 2])):
        with pytest.raises(DataError, match="a set of 2 labels needs"):
            RelaxedSets(PairField([1.0], 2), u, y)
