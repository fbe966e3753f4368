"""Dense arrays, sparse matrices, and CSR that compiled loops can follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from advcli.core.arrays import checked_csr, dense, is_sparse
from advcli.core.errors import DataError

X = np.array([[0.0, 2.0], [1.0, 0.0]])


@pytest.mark.parametrize("made", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix])
def test_sparse_rows_are_seen_and_filled(made: Any) -> None:
    assert is_sparse(made(X))
    np.testing.assert_array_equal(dense(made(X)), X)
    np.testing.assert_array_equal(checked_csr(made(X)).toarray(), X)


def test_dense_rows_stay() -> None:
    assert not is_sparse(X)
    assert dense(X) is X
    rows = sparse.csr_array(X)
    assert checked_csr(rows) is rows


@pytest.mark.parametrize(("name", "value"), [("indices", [0, 2]), ("indices", [0, -1]), ("indptr", [0, 3, 2]), ("indptr", [1, 1, 2])])
def test_rows_that_would_lead_out_of_memory_are_refused(name: str, value: list[int]) -> None:
    rows = sparse.csr_array(X)
    setattr(rows, name, np.array(value, dtype=np.int32))
    with pytest.raises(DataError, match=r"y is no valid sparse matrix: .*; build it again"):
        checked_csr(rows, "y")
