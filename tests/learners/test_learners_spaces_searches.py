"""Searches against enumeration: what each finds, its bound, the calls it takes, and every guarantee of choi2018 chapters 4 and 5."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from support.thesis_searches import binary, bisecting, sarawagi

from advcli.core.errors import ConfigError, IncompatibleError
from advcli.learners.structured.spaces.dependency_trees import TreeSpace
from advcli.learners.structured.spaces.enumerated_sets import EnumeratedSets, pair_table
from advcli.learners.structured.spaces.psi import SURROGATES, Psi, make_psi
from advcli.learners.structured.spaces.searches import SEARCHES, angular, exact, hull, levels, search_of
from advcli.learners.structured.spaces.space import LabelPoint, LabelSpace, PointSpace

Array = NDArray[np.float64]

SLACK = make_psi("slack")
MARGIN_AXES = [make_psi(name) for name in SURROGATES if name != "f1"] + [make_psi("scaling", 0.25)]
ROUNDING = 1e-9


def points(*corners: tuple[float, float]) -> PointSpace:
    """Return labels given as (H, g), after the true label (1, 0)."""
    return PointSpace([0.0, *(H - 1.0 for H, _ in corners)], [0.0, *(g for _, g in corners)])


def instances(count: int, seed: int, most: int = 24) -> Iterator[PointSpace]:
    """Yield labels of several kinds: any losses, whole ones, a grid full of ties, three losses, none as good as the truth."""
    random = np.random.default_rng(seed)
    for at in range(count):
        M, kind = int(random.integers(1, most)), at % 5
        h = random.normal(0.0, random.choice([0.1, 1.0, 10.0]), M)
        g = random.gamma(1.0, 2.0, M)
        if kind == 1:
            g = random.integers(0, 6, M).astype(float)
        elif kind == 2:
            h, g = random.integers(-2, 6, M) / 2.0, random.integers(0, 6, M).astype(float)
        elif kind == 3:
            g = random.choice([0.0, 1.0, 2.5], M)
        elif kind == 4:
            h = -np.abs(h) - 0.5
        yield PointSpace(np.append(h, 0.0), np.append(g, 0.0), M)


def largest(space: PointSpace, psi: Psi = SLACK) -> float:
    """Return the maximum of psi over all labels."""
    return float(np.max(psi.value(space.h, space.g)))


def vertices(space: PointSpace) -> set[int]:
    """Return the labels that h + l g has as its only maximum for some l in [0, infinity], ties by the other coordinate at both ends."""
    h, g = space.h, space.g
    with np.errstate(all="ignore"):
        turns = (-(h[:, None] - h) / (g[:, None] - g)).ravel()
    turns = np.unique(turns[np.isfinite(turns) & (turns > 0.0)])
    between = 0.5 * (turns[1:] + turns[:-1])
    weights = np.concatenate([between, turns[:1] / 2.0, turns[-1:] * 2.0])
    return {int(np.argmax(h + l * g)) for l in weights} | {int(np.lexsort((g, h))[-1]), int(np.lexsort((h, g))[-1])}


def fractional(space: PointSpace, psi: Psi = SLACK) -> float:
    """Return the maximum of psi over the segments between any two labels, by ternary search on all of them at once."""
    h, g = space.h, space.g
    a, b = (each.ravel() for each in np.meshgrid(np.arange(len(h)), np.arange(len(h))))

    def value(t: Array) -> Array:
        return np.asarray(psi.value(t * h[a] + (1.0 - t) * h[b], t * g[a] + (1.0 - t) * g[b]))

    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(60):
        left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
        rises = value(left) < value(right)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return float(max(value(low).max(), value(np.zeros(len(a))).max()))


def same(found: float, true: float) -> bool:
    """Whether two values differ by rounding alone."""
    return abs(found - true) <= ROUNDING * max(1.0, abs(true))


# ---- oracles ----------------------------------------------------------------------------------------------------------
def test_oracles_of_listed_labels_do_what_their_definitions_say() -> None:
    random = np.random.default_rng(0)
    for space in instances(400, 1):
        everything = range(len(space.h))
        ban = [int(each) for each in random.permutation(len(space.h))[: random.integers(0, len(space.h) + 1)]]
        left = [each for each in everything if each not in ban]
        for l in (0.0, 0.3, 2.0, math.inf):

            def rank(each: int, l: float = l, space: PointSpace = space) -> tuple[float, float]:
                h, g = space.h[each], space.g[each]
                return (g, h) if l == math.inf else (h + l * g, g)

            found = space.lam(l, ban)
            assert (found is None) == (not left)
            if found is not None:
                assert rank(found.label) == max(map(rank, left))
        a, b, l = 2.0 * random.random(), 0.5 * random.random(), random.random()
        for strict in (0, 1):
            H, g = space.h + 1.0, space.g
            inside = (H > 0.0) & ((b * H <= g) & (g < a * H) if strict else (b * H < g) & (g <= a * H))
            inside[ban] = False
            found = space.cone(l, a, b, strict, ban)
            assert (found is None) == (not inside.any())
            if found is not None:
                assert inside[found.label]
                assert found.h + l * found.g == (space.h + l * space.g)[inside].max()
        assert {each.g: each.h for each in space.levels()} == {g: space.h[space.g == g].max() for g in space.g}
        assert [each.g for each in space.levels()] == sorted(set(space.g))


# ---- what every search owes -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", list(SEARCHES))
def test_value_and_bound_enclose_the_maximum(name: str) -> None:
    search = SEARCHES.get(name)
    random = np.random.default_rng(5)
    for space in instances(400, 2):
        psi = SLACK if search.slack else MARGIN_AXES[int(random.integers(len(MARGIN_AXES)))]
        options = {"xi": float(random.choice([0.0, 0.01, 1.0, 5.0]))} if name == "sarawagi" else {}
        found = search(space, psi, **options)
        best = largest(space, psi)
        assert found.value == psi.value(found.point.h, found.point.g)
        assert (space.h[found.label], space.g[found.label]) == (found.point.h, found.point.g)
        assert found.value <= best + ROUNDING * max(1.0, best)
        assert found.upper >= best - ROUNDING * max(1.0, best), (space.h, space.g)
        assert found.calls == len(found.queries)


@pytest.mark.parametrize("psi", MARGIN_AXES, ids=repr)
def test_levels_and_ban_lists_are_exact_for_every_surrogate(psi: Psi) -> None:
    for space in instances(300, 3):
        best = largest(space, psi)
        assert same(levels(space, psi).value, best)
        assert levels(space, psi).calls == 1
        assert same(exact(space, psi).value, best), (space.h, space.g)


# ---- convex hull search -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("psi", MARGIN_AXES, ids=repr)
def test_hull_finds_the_best_vertex_and_the_fractional_optimum_within_the_calls_of_theorem_6(psi: Psi) -> None:
    for space in instances(200, 4, most=12):
        found, corners = hull(space, psi), vertices(space)
        assert same(found.value, max(0.0, float(psi.value(space.h[list(corners)], space.g[list(corners)]).max())))
        assert same(found.upper, fractional(space, psi)), (space.h, space.g)
        assert found.calls <= len(corners) + 1
        assert found.edge is not None
        first, second, weight = found.edge
        assert same(
            found.upper, float(psi.value(*(weight * np.array(u) + (1.0 - weight) * np.array(v) for u, v in corners_of(first, second))))
        )


def corners_of(first: LabelPoint, second: LabelPoint) -> list[tuple[float, float]]:
    """Return the h and the g of two labels."""
    return [(first.h, second.h), (first.g, second.g)]


@pytest.mark.parametrize("psi", [psi for psi in MARGIN_AXES if psi.quasi_linear], ids=repr)
def test_a_quasi_linear_surrogate_needs_no_mixture(psi: Psi) -> None:
    for space in instances(200, 6):
        found = hull(space, psi)
        assert found.value == found.upper
        assert same(found.value, largest(space, psi))
        assert found.calls <= 2


def test_hull_is_exact_for_the_f_measure_in_few_calls() -> None:
    random, psi, calls = np.random.default_rng(7), make_psi("f1"), []
    for _ in range(300):
        m = int(random.integers(2, 7))
        Y = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
        y = Y[random.integers(len(Y))] if random.random() < 0.8 else Y[0]
        f = Y @ random.normal(0.0, 1.0, m)
        truth = int(y @ (1 << np.arange(m)))
        hamming, sizes = (y != Y).sum(axis=1), Y.sum(axis=1) + y.sum()
        space = PointSpace(hamming + f - f[truth], -sizes.astype(float), truth)
        found = hull(space, psi)
        assert same(found.value, largest(space, psi))
        assert found.upper == found.value
        calls.append(found.calls)
    assert np.mean(calls) < 4.0


def test_hull_over_a_relaxation_returns_the_mixture() -> None:
    class Mixtures(PointSpace):
        integral = False

        def mix(self, first: LabelPoint, second: LabelPoint, weight: float) -> dict[int, float]:
            return {first.label: weight, second.label: 1.0 - weight}

    space = Mixtures([0.0, -0.999, 1.0, 0.0], [0.0, 4.0, 1e-3, 2.0])
    found = hull(space, SLACK)
    assert found.value == pytest.approx(2.0015004, abs=1e-7)
    assert same(found.upper, found.value)
    assert found.label.keys() == {1, 2}
    assert found.value == SLACK.value(found.point.h, found.point.g)


# ---- angular search ---------------------------------------------------------------------------------------------------
def test_angular_is_exact_within_the_calls_of_theorem_2() -> None:
    for at, space in enumerate(instances(1500, 8)):
        found = angular(space, SLACK, start=(0.2, 1.0, 7.0)[at % 3])
        assert same(found.value, largest(space)), (space.h, space.g)
        assert same(found.upper, found.value)
        # the true label, in no angle, is not counted
        assert found.calls <= 2 * (len(space.h) - 1) + 1
        keys = [each.point.key for each in found.queries if each.point is not None]
        assert len(keys) == len(set(keys))


def test_a_ratio_below_1_stops_early_with_a_true_bound() -> None:
    fewer = 0
    for space in instances(300, 9):
        found, all_ = angular(space, SLACK, ratio=0.7), angular(space, SLACK)
        assert 0.7 * found.upper <= found.value + ROUNDING
        assert found.calls <= all_.calls
        fewer += found.calls < all_.calls
    assert fewer > 50


def bound_of_a_slope(v: float) -> float:
    """Return B(v) of choi2018 lemma 10: how far above the label found an angle's best label can be."""
    return 0.25 * (v + 1.0 / v) ** 2


def test_breadth_first_angles_keep_theorem_4_and_the_sharper_bound() -> None:
    checked = 0
    for space in instances(800, 10):
        best, start = largest(space), 1.5
        first = angular(space, SLACK, start=start, most=1).queries[:1]
        if best <= 0.0 or not first or first[0].point is None:
            continue
        slope = first[0].point.g / (first[0].point.h + 1.0)
        v = max(start * slope, 1.0 / (start * slope))
        for t in (1, 3, 7):
            found = angular(space, SLACK, start=start, most=t, breadth=True)
            assert best / found.value <= v ** (4.0 / (t + 1)) * (1.0 + ROUNDING)
            assert best / found.value <= bound_of_a_slope(v ** (2.0 / (t + 1))) * (1.0 + ROUNDING)
            checked += 1
    assert checked > 1000


class Vertices(PointSpace):
    """Listed labels taken for a relaxation, so that strictness is not relied upon to end a search."""

    integral = False


def test_theorem_5_bounds_the_calls_from_a_narrower_first_angle() -> None:
    checked = 0
    for space in instances(1400, 11):
        best = largest(space)
        relaxed = Vertices(space.h, space.g, space.truth.label)
        found = angular(relaxed, SLACK, ratio=1.0 - 1e-9, breadth=True, most=2)
        phi, tallest, widest = found.value, space.h.max() + 1.0, space.extent[1]
        if phi <= 1e-3 * found.upper or found.value >= best:
            continue
        for epsilon in (0.5, 0.1):
            T = math.ceil(4.0 * math.log(widest * tallest / phi) / epsilon)
            T = 2 ** math.ceil(math.log2(T + 1)) - 1
            found = angular(relaxed, SLACK, ratio=1.0 - 1e-9, breadth=True, most=2 + T)
            assert found.value >= (1.0 - epsilon) * best
            assert found.upper >= best * (1.0 - ROUNDING)
            checked += 1
    assert checked > 60


def test_angular_over_a_relaxation_needs_a_ratio() -> None:
    with pytest.raises(IncompatibleError, match="a ratio below 1"):
        angular(Vertices([0.0, 1.0], [0.0, 1.0]), SLACK)


# ---- searches by the weight of the loss -------------------------------------------------------------------------------
def test_bisecting_finds_the_best_vertex() -> None:
    for space in instances(500, 12):
        assert same(bisecting(space, SLACK).value, max(0.0, max(space.g[at] * (space.h[at] + 1.0) for at in vertices(space))))


def test_the_bound_of_binary_search_falls_to_the_fractional_optimum() -> None:
    for space in instances(200, 13):
        top, found = hull(space, SLACK).upper, binary(space, SLACK)
        assert found.upper >= top * (1.0 - ROUNDING)
        if top > 0.26:  # K >= 1 of the true label keeps the bound above 1 / (4 l): it vanishes only far out
            assert found.upper <= top * math.exp(1e-3)


def test_sarawagi_proves_that_no_label_is_above_the_slack_or_finds_one_that_maximises_its_own_objective() -> None:
    proved = 0
    for space in instances(600, 14):
        for xi in (0.05, 1.0):
            found, best = sarawagi(space, SLACK, xi=xi), largest(space)
            if found.upper <= xi:
                assert best <= xi * (1.0 + ROUNDING)
                proved += 1
            others = space.g > 0.0
            if others.any():
                low, high = xi / space.extent[1] ** 2, xi / space.extent[0] ** 2
                weights = np.exp(np.linspace(math.log(low) - 3.0, math.log(high) + 3.0, 400))
                F = np.max(space.h + 1.0 + weights[:, None] * space.g, axis=1, where=others, initial=-np.inf) - 2.0 * np.sqrt(xi * weights)
                inside = (weights >= low) & (weights <= high)
                edges = np.max(space.h + 1.0 + np.array([[low], [high]]) * space.g, axis=1, where=others, initial=-np.inf)
                at_edges = edges - 2.0 * np.sqrt(xi * np.array([low, high]))
                assert min(F[inside].min(initial=np.inf), at_edges.min()) <= F.min() + ROUNDING * (1.0 + abs(F.min()))
    assert proved > 100


def test_sarawagi_bans_the_true_label_which_would_win_at_a_small_slack() -> None:
    space = points((0.5, 4.0), (0.4, 1.0))
    with_truth = space.lam(0.1 / 16.0)
    assert with_truth is not None
    assert with_truth.label == 0
    assert sarawagi(space, SLACK, xi=0.1).value == 2.0


# ---- fixed examples ---------------------------------------------------------------------------------------------------
def test_theorem_1_no_weight_of_the_loss_returns_the_best_label() -> None:
    e = 1e-3
    space = points((e, 4.0), (2.0, e), (1.0, 2.0))
    for l in np.exp(np.linspace(-9.0, 9.0, 500)):
        assert space.lam(l).label != 3  # type: ignore[union-attr]
    found = hull(space, SLACK)
    assert (found.value, found.calls) == (pytest.approx(4.0 * e), 3)
    assert found.upper == pytest.approx(2.0015, abs=1e-5)
    # the algorithm as printed meets the label of slope 1/l in both halves and takes 7
    assert (angular(space, SLACK, start=0.5).value, angular(space, SLACK, start=0.5).calls) == (2.0, 5)
    assert (exact(space, SLACK).value, exact(space, SLACK).calls) == (2.0, 5)


def test_lemma_13_the_tangent_finds_at_the_third_call_what_bisecting_finds_at_its_ninth_to_end() -> None:
    space = points((2.0, 4.0), (4.0, 2.0), (3.01, 3.0))
    found = hull(space, SLACK)
    assert found.value == pytest.approx(9.03)
    assert [each.point.label for each in found.queries if each.point is not None] == [1, 2, 3, 3]
    assert (angular(space, SLACK, start=1.0).value, angular(space, SLACK, start=1.0).calls) == (found.value, 3)
    assert (bisecting(space, SLACK, start=2.0).value, bisecting(space, SLACK, start=2.0).calls) == (found.value, 9)


def test_a_label_on_its_own_tangent_closes_its_angle_alone() -> None:
    found = angular(points((1.0, 16.0), (2.1, 8.4), (11.0, 2.0)), SLACK, start=1.0)
    assert [each.point.g for each in found.queries if each.point is not None][:2] == [16.0, 8.4]
    assert found.value == 22.0


# ---- choosing a search ------------------------------------------------------------------------------------------------
class Weighted(LabelSpace):
    """A space that offers weights of the loss alone."""

    name = "weighted"
    offers = frozenset({"lam"})

    def __init__(self, space: PointSpace) -> None:
        self.space, self.truth, self.extent = space, space.truth, space.extent

    def lam(self, l: float, ban: object = ()) -> LabelPoint | None:
        return self.space.lam(l)


def test_auto_takes_levels_where_they_are_offered_and_the_hull_elsewhere() -> None:
    space = points((2.0, 1.0))
    assert search_of("auto", space).name == "levels"
    assert search_of("auto", Weighted(space)).name == "hull"
    assert search_of("auto", Weighted(space))(Weighted(space), SLACK).value == 2.0


@pytest.mark.parametrize(("name", "oracle"), [("levels", "levels"), ("angular", "cone"), ("sarawagi", "ban"), ("exact", "ban")])
def test_a_search_refuses_a_space_that_lacks_its_oracle(name: str, oracle: str) -> None:
    with pytest.raises(
        IncompatibleError, match=f"^loss.search={name} needs the oracle {oracle}; weighted offers lam: choose loss.search=auto$"
    ):
        SEARCHES.get(name)(Weighted(points((2.0, 1.0))), SLACK)


def test_a_search_of_slack_rescaling_refuses_other_surrogates() -> None:
    for name in ("angular", "bisecting", "binary", "sarawagi"):
        with pytest.raises(IncompatibleError, match=f"^loss.search={name} needs loss.surrogate=slack; loss.surrogate=margin has"):
            SEARCHES.get(name)(points((2.0, 1.0)), make_psi("margin"))
    assert bisecting(points((2.0, 1.0)), make_psi("scaling", 1.0)).value == 2.0


def test_an_unknown_search_is_answered_by_the_nearest_names() -> None:
    with pytest.raises(ConfigError, match=r"^loss\.search=bisect is unknown; did you mean bisecting"):
        search_of("bisect", points((2.0, 1.0)))


def test_labels_that_are_all_free_end_every_search_at_once() -> None:
    space = points((3.0, 0.0), (0.5, 0.0))
    for name in SEARCHES:
        found = SEARCHES.get(name)(space, SLACK)
        assert (found.value, found.upper) == (0.0, 0.0) if name != "bisecting" else found.value == 0.0


# ---- other spaces -----------------------------------------------------------------------------------------------------
def test_sets_have_the_coordinates_of_their_margins_and_losses() -> None:
    random = np.random.default_rng(15)
    for _ in range(30):
        m = int(random.integers(1, 6))
        Y = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
        u, pairs, y = random.normal(0.0, 1.0, m), random.normal(0.0, 1.0, m * (m - 1) // 2), int(random.integers(2**m))
        first, second = np.triu_indices(m, 1)
        f = Y @ u + (Y[:, first] * Y[:, second]) @ pairs
        space, other = (EnumeratedSets(u, pair_table(pairs, m), y, axes) for axes in ("margin", "f1"))
        np.testing.assert_allclose(space.h, f - f[y], atol=1e-12)
        np.testing.assert_array_equal(space.g, np.abs(Y - Y[y]).sum(axis=1))
        np.testing.assert_allclose(other.h, space.h + space.g, atol=1e-12)
        np.testing.assert_array_equal(other.g, -Y.sum(axis=1) - Y[y].sum())
        assert space.truth.key == other.truth.key == y


@pytest.mark.parametrize("name", ["hull", "exact", "bisecting", "binary", "sarawagi"])
def test_searches_over_trees_agree_with_all_trees(name: str) -> None:
    random = np.random.default_rng(16)
    for _ in range(15):
        n = int(random.integers(1, 5))
        scores = random.normal(size=(n + 1, n + 1))
        space = TreeSpace(scores, [0, *range(1, n)])
        every = space.kbest(10_000)
        result, best = SEARCHES.get(name)(space, SLACK), max(float(SLACK.value(each.h, each.g)) for each in every)
        assert result.value <= best + ROUNDING
        assert result.upper >= best - ROUNDING
        if name == "exact":
            assert same(result.value, best)
