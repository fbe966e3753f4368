"""Sets of equal rows against NumPy's order of rows as strings of bytes."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from advcli.core.compiled import kernels
from advcli.features.merging import equal_rows


def by_bytes(X, tail):
    """Return a row of every set and every row's set, by NumPy's sort of whole rows."""
    keyed = np.ascontiguousarray(np.column_stack([X + 0.0, tail + 0.0]))
    keys = keyed.view(np.dtype((np.void, keyed.itemsize * keyed.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse


@given(
    n=st.integers(1, 200),
    d=st.integers(0, 5),
    m=st.integers(1, 2),
    values=st.sampled_from([1, 2, 3, 10, 10**6]),
    seed=st.integers(0, 10**6),
)
@example(n=3000, d=4, m=1, values=6, seed=0)
@example(n=2000, d=1, m=1, values=1, seed=0)
@settings(max_examples=200, deadline=None)
def test_sets_are_those_of_the_bytes(n, d, m, values, seed):
    random = np.random.default_rng(seed)
    levels = np.concatenate([random.normal(size=values) * 10.0 ** random.integers(-3, 4), [0.0, -0.0]])
    X, tail = random.choice(levels, size=(n, d)), random.choice(levels, size=(n, m))
    if random.random() < 0.5:
        X[:, : d // 2] = levels[0]  # columns that tell no rows apart
    expected = by_bytes(X, tail)
    for order in ("C", "F"):
        found = equal_rows(np.array(X, order=order), tail)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("n", [1, 2, 1000, 100_000])
@pytest.mark.parametrize("order", ["rising", "falling", "organ", "equal"])
def test_sorted_rows_take_no_stack_and_no_square_of_time(n, order):
    number = np.arange(n, dtype=np.float64)
    column = {"rising": number, "falling": -number, "organ": np.minimum(number, n - number), "equal": 0.0 * number}[order]
    column = column.astype(">f8").view(np.float64)  # so that the bytes have this order too
    X, tail = column[:, None], np.zeros((n, 1))
    for found, expected in zip(equal_rows(X, tail), by_bytes(X, tail), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_shapes_that_do_not_fit_are_refused():
    X, tail, rows = np.zeros((3, 2)), np.zeros((3, 1)), np.empty(3, dtype=np.intp)
    assert kernels.equal_rows.sets(X, tail, rows, rows.copy()) == 1
    for wrong in ((X[:2], tail, rows, rows), (X, tail[:2], rows, rows), (X, tail, rows[:2], rows), (X, tail, rows, rows[:2])):
        with pytest.raises(ValueError, match=r"3 rows|2 rows"):
            kernels.equal_rows.sets(*wrong)
    with pytest.raises(ValueError, match="no columns"):
        kernels.equal_rows.sets(X[:, :0].copy(), tail[:, :0].copy(), rows, rows.copy())
