"""Compiled features of the arcs of given trees against plain Python."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.projective_trees import trees
from support.python_parser import relation_features

from advcli.core.compiled import kernels


@given(st.integers(0, 2**32), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(8, 28))
@settings(max_examples=40)
def test_positions_are_those_of_plain_python(seed, sizes, bits):
    random = np.random.default_rng(seed)
    start, n = np.cumsum([0, *sizes]), sum(sizes)
    words, tags = random.integers(2**48, size=n), random.integers(3, size=n)
    heads = np.concatenate([trees(size)[random.integers(len(trees(size)))] for size in sizes]).astype(np.int32)
    found = np.empty((n, 18), dtype=np.int32)
    kernels.relations.positions(words, tags, start, heads, bits, found)
    for first, last in pairwise(start.tolist()):
        for word in range(1, last - first + 1):
            row = first + word - 1
            expected = relation_features(words[first:last], tags[first:last], int(heads[row]), word, bits)
            assert found[row].tolist() == expected
            assert max(expected) < 2**bits


def test_distances_share_a_bucket_beyond_ten():
    """The last feature alone tells the distance, which counts 1 to 5, 6 to 10 and more."""
    n = 14
    words, tags, start = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.array([0, n])
    heads, found = np.concatenate([[0], np.ones(n - 1)]).astype(np.int32), np.empty((n, 18), dtype=np.int32)
    kernels.relations.positions(words, tags, start, heads, 20, found)
    assert len(set(found[1:, -1].tolist())) == 7
    assert len(set(found[11:, -1].tolist())) == 1
