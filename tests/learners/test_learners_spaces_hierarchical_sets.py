"""Sets of leaves over trees and DAGs against enumeration, and the searches over them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import support.thesis_searches  # noqa: F401 - registers them
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from advcli.core.errors import DataError, IncompatibleError
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.best_sets import LabelSets
from advcli.learners.structured.spaces.hierarchical_sets import HierarchicalSets, TreeLevels
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.spaces.searches import SEARCHES, search_of
from advcli.learners.structured.spaces.space import LabelPoint


def spaces(
    count: int, seed: int, most_parents: int, axes: str = "margin", most: int = 8
) -> Iterator[tuple[HierarchicalSets, list[LabelPoint]]]:
    """Yield spaces over random graphs of at most some nodes, with all their sets."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        M = int(random.integers(3, most + 1))
        edges = []
        for child in range(1, M):
            for parent in random.choice(child, size=min(child, int(random.integers(1, most_parents + 1))), replace=False):
                edges.append((f"n{parent}", f"n{child}"))
        sets = LabelSets(LabelGraph.from_edges(edges))
        L = len(sets.leaves)
        subsets = (np.arange(1, 2**L)[:, None] >> np.arange(L)) & 1
        every = sets.closed(sparse.csr_array(subsets)).toarray()
        space = HierarchicalSets(sets, random.normal(0.0, 1.0, sets.size), every[random.integers(len(every))], axes)
        yield space, [space._point(each.astype(np.uint8)) for each in every]


@pytest.mark.parametrize("most_parents", [1, 2])
def test_best_sets_are_those_of_enumeration(most_parents: int) -> None:
    for space, every in spaces(25, 1, most_parents):
        for l in (0.0, 0.4, 2.0):
            found = space.lam(l)
            assert found.h + l * found.g == pytest.approx(max(each.h + l * each.g for each in every), abs=1e-9)
        widest = space.lam(np.inf)
        assert (widest.g, widest.h) == pytest.approx(max((each.g, each.h) for each in every))
        assert (space.truth.h, space.truth.g) == (0.0, 0.0)
        truth = space.truth.label
        for each in every:
            assert each.g == (each.label[space.sets.leaves] != truth[space.sets.leaves]).sum()


@pytest.mark.parametrize("name", ["slack", "margin", "prob"])
def test_searches_enclose_the_maximum_over_all_sets(name: str) -> None:
    psi = make_psi(name)
    for space, every in spaces(25, 2, 1):
        best = max(float(psi.value(each.h, each.g)) for each in every)
        found = search_of("auto", space)(space, psi)
        assert found.value <= best + 1e-9
        assert found.upper >= best - 1e-9
        if psi.quasi_linear:
            assert found.value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("axes", ["margin", "f1"])
def test_levels_of_a_tree_are_those_of_enumeration(axes: str) -> None:
    for space, every in spaces(150, 3, 1, axes, most=12):
        largest: dict[float, float] = {}
        for each in every:
            largest[each.g] = max(largest.get(each.g, -np.inf), each.h)
        found = space.levels()
        assert [each.g for each in found] == sorted(largest)
        for each in found:
            assert each.h == pytest.approx(largest[each.g], abs=1e-12)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), tops=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_levels_of_many_rows_and_several_tops_are_reached_by_their_sets(seed: int, n: int, tops: int) -> None:
    random = np.random.default_rng(seed)
    M = int(random.integers(tops + 2, 14))
    edges = [
        (f"n{int(random.integers(min(child, tops)) if child < 2 * tops else random.integers(child))}", f"n{child}")
        for child in range(tops, M)
    ]
    sets = LabelSets(LabelGraph.from_edges(edges, several_tops=True))
    L = len(sets.leaves)
    R, centre = random.normal(size=(n, sets.size)), random.integers(0, 2, (n, L))
    subsets = (np.arange(1, 2**L)[:, None] >> np.arange(L)) & 1
    every = sets.closed(sparse.csr_array(subsets)).toarray()
    distance = (subsets[None] != centre[:, None]).sum(axis=2)
    levels = TreeLevels(sets, R, centre)
    for d in range(L + 1):
        at = distance == d
        largest = np.where(at, R @ every.T, -np.inf).max(axis=1)
        np.testing.assert_allclose(levels.best[:, d], largest, rtol=0, atol=1e-12)
        there = np.isfinite(largest)
        found = levels.nodes(np.where(there, d, np.argmax(levels.best, axis=1)))
        assert (sets.infeasibility(found.astype(float)) == 0.0).all()
        assert ((found[:, sets.leaves] != centre).sum(axis=1) == d)[there].all()
        np.testing.assert_allclose((R * found).sum(axis=1)[there], largest[there], rtol=0, atol=1e-12)


@pytest.mark.parametrize("most_parents", [1, 2])
@pytest.mark.parametrize("name", ["angular", "exact", "bisecting", "binary", "sarawagi"])
def test_searches_of_slack_rescaling_by_programs(name: str, most_parents: int) -> None:
    psi = make_psi("slack")
    for space, every in spaces(12, 4, most_parents):
        best = max(float(psi.value(each.h, each.g)) for each in every)
        found = search_of(name, space)(space, psi)
        assert found.value <= best + 1e-9
        assert found.upper >= best - 1e-9
        if name in ("angular", "exact"):
            assert found.value == pytest.approx(best, abs=1e-9)
        if name == "angular":
            assert found.calls <= 2 * len(every) + 2


def test_banned_sets_and_angles_are_those_of_enumeration() -> None:
    random = np.random.default_rng(5)
    for space, every in spaces(15, 6, 2):
        l = float(random.uniform(0.1, 2.0))
        ranked = sorted(every, key=lambda each: -(each.h + l * each.g))
        for count in {min(1, len(ranked) - 1), min(3, len(ranked) - 1)} - {0}:
            found = space.lam(l, [each.key for each in ranked[:count]])
            assert found is not None
            assert found.h + l * found.g == pytest.approx(ranked[count].h + l * ranked[count].g, abs=1e-9)
        assert space.lam(l, [each.key for each in every]) is None
        b, a = np.sort(random.uniform(0.05, 3.0, size=2))
        inside = [each for each in every if each.h > -1.0 and b * (each.h + 1.0) < each.g <= a * (each.h + 1.0)]
        met = space.cone(l, a, b, 0)
        assert (met is None) == (not inside)
        if met is not None:
            assert met.h + l * met.g == pytest.approx(max(each.h + l * each.g for each in inside), abs=1e-9)


def test_what_is_no_set_is_refused() -> None:
    sets = LabelSets(LabelGraph.from_edges([("r", "a"), ("r", "b")]))
    with pytest.raises(DataError, match="no set of leaves"):
        HierarchicalSets(sets, np.zeros(3), [1, 0, 0])
    with pytest.raises(DataError, match="3 nodes"):
        HierarchicalSets(sets, np.zeros(2), [1, 1])
    several = LabelSets(LabelGraph.from_edges([("r", "a"), ("r", "b"), ("a", "c"), ("b", "c"), ("b", "d")]))
    with pytest.raises(IncompatibleError, match="needs the oracle levels"):
        SEARCHES.get("levels")(HierarchicalSets(several, np.zeros(5), [1, 1, 1, 1, 0]), make_psi("slack"))
