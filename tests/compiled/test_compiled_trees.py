"""Compiled trees of sentences against plain NumPy, bit for bit, ties and forbidden arcs among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.python_trees import best_tree

from advcli.core.compiled import kernels


def best(sentences):
    """Return value and heads of every sentence, all by one call."""
    start = np.cumsum([0, *(len(scores) - 1 for scores in sentences)])
    value, heads = np.empty(len(sentences)), np.empty(start[-1], np.int32)
    kernels.trees.best(np.concatenate([scores.ravel() for scores in sentences]), start, value, heads)
    return [(v, tuple(heads[a:b].tolist())) for v, a, b in zip(value, start[:-1], start[1:], strict=True)]


@given(
    st.lists(st.tuples(st.integers(1, 14), st.integers(0, 2**32), st.sampled_from(["real", "ties", "forbidden"])), min_size=1, max_size=6)
)
def test_every_sentence_has_the_tree_of_plain_numpy(drawn):
    sentences = []
    for n, seed, kind in drawn:
        random = np.random.default_rng(seed)
        scores = random.normal(size=(n + 1, n + 1))
        if kind != "real":
            scores = np.round(scores)
        if kind == "forbidden":
            scores[random.random((n + 1, n + 1)) < 0.4] = -np.inf
        sentences.append(scores)
    for found, scores in zip(best(sentences), sentences, strict=True):
        expected = best_tree(scores)
        assert (found if found[0] > -np.inf else None) == expected


def test_a_long_sentence_has_the_tree_of_plain_numpy():
    scores = np.random.default_rng(0).normal(size=(121, 121))
    assert best([scores]) == [best_tree(scores)]


def test_what_is_not_read_changes_nothing():
    scores = np.random.default_rng(1).normal(size=(9, 9))
    other = scores.copy()
    np.fill_diagonal(other, np.nan)
    other[:, 0] = np.nan
    assert best([scores]) == best([other])


def test_numbers_that_are_none_end_in_some_heads():
    (_, heads), *_ = best([np.full((13, 13), np.nan)])
    assert all(0 <= head <= 12 for head in heads)


@pytest.mark.parametrize(
    ("scores", "start", "value", "heads", "why"),
    [
        (9, [0, 2], 1, 3, "starts"),
        (8, [0, 2], 1, 2, "have 9 scores"),
        (9, [0, 2], 2, 2, "value"),
        (10, [0, 2, 2], 2, 2, "sentence is empty"),
        (9, [0, 3, 2], 2, 2, "fall"),
        (9, [1, 2], 1, 2, "starts"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(scores, start, value, heads, why):
    with pytest.raises(ValueError, match=why):
        kernels.trees.best(np.zeros(scores), np.array(start), np.zeros(value), np.zeros(heads, np.int32))
