"""The choice of combinations that other tests run: no value and no pair of values is left out, and it is small."""

from itertools import combinations, product

import pytest
from support.pairwise import pairwise

FACTORS = (("a", "b", "c", "d"), ("x", "y", "z"), (0, 1, 2), (False, True), ("one",))


@pytest.mark.parametrize("allowed", [lambda row: True, lambda row: row[0] != "a" or (row[1] == "z" and row[2])])
def test_every_pair_that_the_rows_have_is_kept(allowed):
    rows = [row for row in product(*FACTORS) if allowed(row)]
    chosen = pairwise(rows)
    assert chosen == [row for row in rows if row in chosen]
    for one, other in combinations(range(len(FACTORS)), 2):
        assert {(row[one], row[other]) for row in chosen} == {(row[one], row[other]) for row in rows}
    assert len(chosen) <= 15 < len(rows)  # 12 are the least: 4 values with 3
    assert pairwise(iter(rows)) == chosen


def test_equal_values_in_two_places_are_two():
    assert pairwise([(0, 1), (1, 0), (0, 1)]) == [(0, 1), (1, 0)]


def test_one_place_or_none():
    assert pairwise([("b",), ("a",), ("b",)]) == [("b",), ("a",)]
    assert pairwise([]) == []
