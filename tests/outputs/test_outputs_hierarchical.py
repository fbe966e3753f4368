"""Sets of leaves over trees and DAGs against enumeration, and the searches over them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse

from advcli.errors import DataError, IncompatibleError
from advcli.hierarchy import LabelGraph
from advcli.hierarchy.multilabel import LabelSets
from advcli.outputs.base import LabelPoint
from advcli.outputs.hierarchical import HierarchicalSets
from advcli.outputs.psi import make_psi
from advcli.outputs.searches import SEARCHES, search_of


def spaces(count: int, seed: int, most_parents: int) -> Iterator[tuple[HierarchicalSets, list[LabelPoint]]]:
    """Yield spaces over random graphs, with all their sets."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        M = int(random.integers(3, 9))
        edges = []
        for child in range(1, M):
            for parent in random.choice(child, size=min(child, int(random.integers(1, most_parents + 1))), replace=False):
                edges.append((f"n{parent}", f"n{child}"))
        sets = LabelSets(LabelGraph.from_edges(edges))
        L = len(sets.leaves)
        subsets = (np.arange(1, 2**L)[:, None] >> np.arange(L)) & 1
        every = sets.closed(sparse.csr_array(subsets)).toarray()
        space = HierarchicalSets(sets, random.normal(0.0, 1.0, sets.size), every[random.integers(len(every))])
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


def test_what_is_no_set_is_refused() -> None:
    sets = LabelSets(LabelGraph.from_edges([("r", "a"), ("r", "b")]))
    with pytest.raises(DataError, match="no set of leaves"):
        HierarchicalSets(sets, np.zeros(3), [1, 0, 0])
    with pytest.raises(DataError, match="3 nodes"):
        HierarchicalSets(sets, np.zeros(2), [1, 1])
    with pytest.raises(IncompatibleError, match="needs the oracle cone"):
        SEARCHES["angular"](HierarchicalSets(sets, np.zeros(3), [1, 1, 0]), make_psi("slack"))
