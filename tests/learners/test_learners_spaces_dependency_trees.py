"""Projective dependency trees against enumeration, and a grammar that is recovered from the trees that it planted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from support.projective_trees import is_projective_tree, trees

from advcli.core.errors import DataError
from advcli.learners.structured.spaces.dependency_trees import Heads, TreeSpace, best_tree, best_trees
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.spaces.searches import SEARCHES, search_of

Array = NDArray[np.float64]


def value(scores: Array, heads: Heads) -> float:
    """Return the score of a tree."""
    return sum(float(scores[head, word + 1]) for word, head in enumerate(heads))


def sentences(count: int, seed: int, longest: int = 5) -> Iterator[tuple[Array, Heads]]:
    """Yield scores of arcs and a true tree; some scores are whole numbers, full of ties."""
    random = np.random.default_rng(seed)
    for at in range(count):
        n = int(random.integers(1, longest + 1))
        scores = random.normal(0.0, 1.0, (n + 1, n + 1)) if at % 3 else random.integers(-2, 3, (n + 1, n + 1)).astype(float)
        yield scores, trees(n)[random.integers(len(trees(n)))]


def test_the_number_of_trees_is_that_of_the_literature() -> None:
    # projective trees whose root has one dependent: binomial(3 n - 2, n - 1) / n, in words n
    assert [len(trees(n)) for n in (1, 2, 3, 4, 5)] == [1, 2, 7, 30, 143]


def test_the_best_tree_is_that_of_enumeration() -> None:
    for scores, _ in sentences(600, 1):
        found = best_tree(scores)
        assert found is not None
        assert is_projective_tree(found[1])
        assert found[0] == pytest.approx(value(scores, found[1]), abs=1e-12)
        assert found[0] == pytest.approx(max(value(scores, each) for each in trees(len(scores) - 1)), abs=1e-12)


def test_forbidden_arcs_are_left_out() -> None:
    random = np.random.default_rng(2)
    none = 0
    for scores, _ in sentences(300, 3, longest=4):
        scores[random.random(scores.shape) < 0.4] = -np.inf
        best = max(value(scores, each) for each in trees(len(scores) - 1))
        found = best_tree(scores)
        assert (found is None) == (best == -np.inf)
        none += found is None
        if found is not None:
            assert found[0] == pytest.approx(best, abs=1e-12)
    assert 20 < none < 280


def test_the_best_trees_come_in_order_and_none_is_left_out() -> None:
    for scores, _ in sentences(25, 4, longest=4):
        everything = sorted((value(scores, each) for each in trees(len(scores) - 1)), reverse=True)
        for k in (1, 3, 100):
            found = best_trees(scores, k)
            assert [each for each, _ in found] == pytest.approx(everything[:k], abs=1e-12)
            assert len({heads for _, heads in found}) == len(found)


@pytest.mark.parametrize("name", ["slack", "margin", "log", "prob"])
def test_searches_find_the_maximum_over_all_trees(name: str) -> None:
    psi = make_psi(name)
    for scores, heads in sentences(30, 5, longest=4):
        space = TreeSpace(scores, heads)
        every = [space._point(each) for each in trees(len(heads))]
        best = max(float(psi.value(each.h, each.g)) for each in every)
        hull = search_of("auto", space)(space, psi)
        assert hull.value <= best + 1e-9
        assert best <= hull.upper + 1e-9
        assert SEARCHES.get("exact")(space, psi).value == pytest.approx(best, abs=1e-9)
        widest = space.lam(np.inf)
        assert widest is not None
        assert (widest.g, widest.h) == (max(each.g for each in every), pytest.approx(max(each.h for each in every if each.g == widest.g)))
        assert space.lam(0.5, [each.key for each in every]) is None


@pytest.mark.parametrize("heads", [(2, 1), (0, 0), (0,), (0, 3), (3, 4, 0, 3), (2, 0, 2, 1)])
def test_heads_that_make_no_projective_tree_are_refused(heads: Heads) -> None:
    n = 2 if len(heads) < 3 else len(heads)
    if heads == (3, 4, 0, 3):  # arcs 3-1 and 4-2 cross
        assert not is_projective_tree(heads)
    with pytest.raises(DataError, match="heads"):
        TreeSpace(np.zeros((n + 1, n + 1)), heads)


def test_scores_that_are_none_are_refused() -> None:
    for scores in (np.zeros((1, 1)), np.zeros((2, 3)), np.full((3, 3), np.nan), np.zeros(3)):
        with pytest.raises(DataError, match="finite scores"):
            TreeSpace(scores, (0, 1))


# ---- a planted grammar ------------------------------------------------------------------------------------------------
def arcs_of(tags: NDArray[np.intp], heads: Heads, K: int) -> Array:
    """Return how often a tree has each pair of the tags of a head, K for the root, and of its word, to the left and to the right."""
    counts = np.zeros((2, K + 1, K))
    for word, head in enumerate(heads):
        counts[int(head > word), K if head == 0 else tags[head - 1], tags[word]] += 1.0
    return counts


def scores_of(weights: Array, tags: NDArray[np.intp]) -> Array:
    """Return the scores of all arcs of a sentence of tags."""
    n, K = len(tags), weights.shape[2]
    heads, words = np.append(K, tags), np.append(0, tags)
    to_left = np.arange(n + 1)[:, None] > np.arange(n + 1)
    return np.asarray(weights[to_left.astype(int), heads[:, None], words])


@pytest.mark.parametrize("name", ["slack", "margin"])
def test_a_planted_grammar_is_recovered_from_its_trees(name: str) -> None:
    random, psi, K = np.random.default_rng(6), make_psi(name), 4
    planted = random.normal(0.0, 1.0, (2, K + 1, K))
    corpus = [random.integers(0, K, random.integers(2, 8)) for _ in range(80)]
    gold = [(tags, best_tree(scores_of(planted, tags))[1]) for tags in corpus]  # type: ignore[index]
    train, test = gold[:60], gold[60:]

    def found_again(weights: Array, part: list[tuple[NDArray[np.intp], Heads]]) -> float:
        """Return the share of sentences whose tree has the largest planted score, which several trees may share."""
        trees_ = [TreeSpace(scores_of(weights, tags), heads).argmax().label for tags, heads in part]
        planted_ = [(scores_of(planted, tags), heads) for tags, heads in part]
        return float(np.mean([value(S, tree) >= value(S, heads) - 1e-9 for tree, (S, heads) in zip(trees_, planted_, strict=True)]))

    weights = np.zeros((2, K + 1, K))
    before = found_again(weights, test)
    for turn in range(1, 11):
        for tags, heads in train:
            space = TreeSpace(scores_of(weights, tags), heads)
            found = search_of("auto", space)(space, psi)
            if found.value > 0.0:
                slope = float(psi.slopes(found.point.h, found.point.g)[0])
                weights -= 0.2 / np.sqrt(turn) * slope * (arcs_of(tags, found.label, K) - arcs_of(tags, heads, K))
    assert before < 0.5
    assert found_again(weights, train) >= 0.95
    assert found_again(weights, test) >= 0.9
