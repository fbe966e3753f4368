"""Few combinations in the place of all: every value, and every two values that can meet, meet at least once.

A defect of one value, or of two that meet, is seen by these as by all combinations; that of three values only by chance, and all
combinations of loss, features, solver and data take minutes.
"""

import heapq
from collections.abc import Hashable, Iterable
from itertools import combinations
from typing import TypeVar

Row = TypeVar("Row", bound=tuple[Hashable, ...])


def pairs(row: tuple[Hashable, ...]) -> set[tuple[tuple[int, Hashable], ...]]:
    """Return the pairs of (place, value) of a row; of a row with one place that place alone."""
    return set(combinations(enumerate(row), min(2, len(row))))


def pairwise(rows: Iterable[Row]) -> list[Row]:
    """Return some of the rows, in their order, that have every pair of values that all rows have.

    Greedy: the row with the most new pairs is taken next, of equals the first, so that every process chooses the same.
    """
    every = list(rows)
    left = set().union(*map(pairs, every))
    # what a row adds only falls while others are taken: the largest of the old counts that still holds is the largest
    heap = [(-len(pairs(row)), at) for at, row in enumerate(every)]
    heapq.heapify(heap)
    taken = []
    while left:
        count, at = heapq.heappop(heap)
        new = pairs(every[at]) & left
        if len(new) == -count:
            taken.append(at)
            left -= new
        elif new:
            heapq.heappush(heap, (-len(new), at))
    return [every[at] for at in sorted(taken)]
