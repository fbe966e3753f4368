"""Products, factors and elementary functions of portable arithmetic: plain Python, libraries, and the same bits at every level."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import _sparsetools

from advcli.core import linalg, products
from advcli.core.arithmetic import is_portable, log, using
from advcli.core.compiled import Kernels, kernels, usable_levels
from advcli.core.errors import ConfigError

NARROW = [level for level in usable_levels() if level != "avx512"]
ELEMENTARY = {"exp": math.exp, "expm1": math.expm1, "log": math.log, "log1p": math.log1p}
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, -5e-324, 709.0, 710.0, -745.0, -746.0]


def in_order(A, B):
    """Return A B, every entry summed in order from 0, as plain Python does."""
    return [[sum((float(a) * float(b) for a, b in zip(row, column, strict=True)), 0.0) for column in B.T] for row in A]


def over_lanes(a, x):
    """Return a.x over sixteen lanes: what a row of contiguous numbers gives with one vector."""
    whole = len(a) // 16 * 16
    lanes = [0.0] * 16
    for p in range(whole):
        lanes[p % 16] += float(a[p]) * float(x[p])
    four = [(lanes[j] + lanes[4 + j]) + (lanes[8 + j] + lanes[12 + j]) for j in range(4)]
    return ((four[0] + four[2]) + (four[1] + four[3])) + sum((float(a[p]) * float(x[p]) for p in range(whole, len(a))), 0.0)


@given(m=st.integers(1, 13), depth=st.sampled_from([1, 3, 17, 130, 300]), n=st.integers(2, 19), seed=st.integers(0, 99))
def test_products_are_sums_in_order(m, depth, n, seed):
    random = np.random.default_rng(seed)
    A, B = random.normal(size=(m, depth)), random.normal(size=(depth, n))
    with using("portable"):
        made = [A @ B, np.asfortranarray(A) @ B, A @ np.asfortranarray(B), (B.T @ A.T).T, np.repeat(A, 2, axis=0)[::2] @ B]
    for each in made:
        assert each.tolist() == in_order(A, B)


@pytest.mark.parametrize(("m", "depth", "n"), [(3, 5, 150), (8, 200, 70), (9, 200, 63), (10, 3, 129), (49, 193, 65), (97, 4, 49)])
def test_products_of_several_blocks_are_sums_in_order(m, depth, n):
    random = np.random.default_rng(m)
    A, B = random.normal(size=(m, depth)), random.normal(size=(depth, n))
    with using("portable"):
        made = [A @ B, A @ np.asfortranarray(B), np.asfortranarray(A) @ B, (B.T @ A.T).T]
        squares = [A @ A.T, B.T @ B]
    for each in made:
        assert each.tolist() == in_order(A, B)
    assert [each.tolist() for each in squares] == [in_order(A, A.T), in_order(B.T, B)]


@given(depth=st.integers(1, 70), seed=st.integers(0, 99))
def test_products_with_a_vector(depth, seed):
    random = np.random.default_rng(seed)
    A, x = random.normal(size=(5, depth)), random.normal(size=depth)
    with using("portable"):
        by_rows, by_columns = A @ x, np.asfortranarray(A) @ x
    assert by_rows.tolist() == [over_lanes(a, x) for a in A]
    assert by_columns.tolist() == [row[0] for row in in_order(A, x[:, None])]


def test_empty_products():
    with using("portable"):
        assert (np.ones((3, 0)) @ np.ones((0, 2))).tolist() == [[0.0, 0.0]] * 3
        assert (np.ones((0, 4)) @ np.ones((4, 2))).shape == (0, 2)


@pytest.mark.parametrize("name", ELEMENTARY)
@given(x=st.floats(-700.0, 700.0))
def test_elementary_functions_lie_near_the_library(name, x):
    x = abs(x) if name.startswith("log") else x
    if name == "log" and x == 0.0:
        return
    wanted = ELEMENTARY[name](x)
    with using("portable"):
        assert abs(float(getattr(np, name)(x)) - wanted) <= 4.0 * math.ulp(wanted)


@given(x=st.lists(st.one_of(st.floats(-760.0, 720.0), st.floats(), st.sampled_from(SPECIAL)), min_size=1, max_size=40))
def test_exponentials_of_vectors_have_the_bits_of_single_ones(x):
    with using("portable"), np.errstate(all="ignore"):
        together, apart = np.exp(np.array(x)), np.array([np.exp(np.float64(each)) for each in x])
    assert together.tobytes() == apart.tobytes()


def test_exponentials_of_vectors_warn_where_the_library_does():
    silent = np.array([-np.inf, -1e4, np.nan, 0.0, 700.0, np.inf, np.nan, -745.5])
    for x, what in ((silent, ""), (np.full(9, 709.785), "overflow")):
        for arithmetic in ("fast", "portable"):
            with using(arithmetic), warnings.catch_warnings(record=True) as given:
                warnings.simplefilter("always")
                np.exp(x)
            assert [what in str(each.message) for each in given] == [True] * bool(what)


@given(z=st.lists(st.one_of(st.floats(-37.0, 9.0), st.sampled_from([0.0, -0.0, 1e3, -1e3, math.inf, -math.inf])), min_size=1))
def test_the_normal_distribution_function_lies_near_the_library(z):
    made = np.empty(len(z))
    kernels.arithmetic.normal(np.array(z), made)
    for ours, wanted in zip(made, (0.5 * math.erfc(-each * math.sqrt(0.5)) for each in z), strict=True):
        assert abs(ours - wanted) <= 9.0 * math.ulp(wanted)  # seven seen, at -35: two exponentials and five products


@given(x=st.floats(1e-30, 1e30), y=st.floats(-9.0, 9.0))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_powers_lie_near_the_library(x, y):
    wanted = x**y
    with using("portable"):
        assert abs(float(np.power(x, y)) - wanted) <= 9.0 * math.ulp(wanted)  # half a unit for each factor of x^9, and its reciprocal


@given(x=st.floats(-1e4, 1e4), y=st.floats(-1e4, 1e4))
def test_sums_of_exponentials(x, y):
    with using("portable"):
        made = float(np.logaddexp(x, y))
    assert made == pytest.approx(max(x, y) + math.log1p(math.exp(-abs(x - y))), rel=1e-15, abs=1e-15)


def test_powers_of_whole_numbers_are_exact():
    base = np.arange(1.0, 20.0)
    with using("portable"):
        assert [np.power(base, float(n)).tolist() for n in range(9)] == [[float(int(b) ** n) for b in base] for n in range(9)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_numbers_are_those_of_the_library():
    x = np.array(SPECIAL)
    pairs = np.array([(a, b) for a in SPECIAL for b in (*SPECIAL, 2.0, 3.0, -3.0, 0.5)]).T
    wanted = [getattr(np, name)(x) for name in ELEMENTARY] + [np.power(*pairs)]
    with using("portable"):
        made = [getattr(np, name)(x) for name in ELEMENTARY] + [np.power(*pairs)]
    for ours, library in zip(made, wanted, strict=True):
        exact = ~np.isfinite(library) | (library == 0.0)
        np.testing.assert_array_equal(ours[exact], library[exact])
        np.testing.assert_allclose(ours[~exact], library[~exact], rtol=1e-15)


def drawn(n, seed=0):
    """Return a positive definite matrix and right sides."""
    random = np.random.default_rng(seed)
    G = random.normal(size=(n, n + 5))
    return G @ G.T, random.normal(size=(n, 3))


def left(A, x, b):
    """Return |A x - b| in units of rounding: of |A| |x|, times the size of the system."""
    return np.linalg.norm(A @ x - b) / (len(A) * np.finfo(float).eps * np.linalg.norm(A) * np.linalg.norm(x))


def factor_in_order(A):
    """Return the factor of A: every entry loses its products in the order of the columns, as plain Python does."""
    L = [[float(a) for a in row] for row in A]
    for i, row in enumerate(L):
        for j in range(i):
            for p in range(j):
                row[j] -= row[p] * L[j][p]
            row[j] /= L[j][j]
        for p in range(i):
            row[i] -= row[p] * row[p]
        row[i] = math.sqrt(row[i])
    return np.tril(L)


@pytest.mark.parametrize("n", [1, 3, 8, 9, 15, 47, 48, 49, 67, 130, 190])
def test_factors_lose_products_in_order(n):
    G, _ = drawn(n)
    L = G.copy()
    kernels.arithmetic.cholesky(L)
    with using("portable"):
        by_columns = linalg.dpotrf(G, lower=1)[0]
    for each in (L, by_columns):
        np.testing.assert_array_equal(np.tril(each), factor_in_order(G))


@pytest.mark.parametrize("n", [1, 2, 47, 48, 49, 130])
def test_factors_solve_what_they_are_of(n):
    G, b = drawn(n)
    W = G - np.diag(np.linspace(0.0, 2.0 * np.linalg.norm(G), n))  # indefinite
    with using("portable"):
        for lower in (0, 1):
            factor, info = linalg.dpotrf(G, lower=lower)
            L = factor if lower else factor.T
            assert info == 0
            assert np.array_equal(L, np.tril(L))
            assert left(L, L.T, G) < 4.0
            assert left(G, linalg.dpotrs(factor, b, lower=lower)[0], b) < 4.0
            assert left(G, linalg.dposv(G, b[:, 0], lower=lower)[1], b[:, 0]) < 4.0
            assert left(G, linalg.cho_solve(linalg.cho_factor(G, lower=bool(lower)), b), b) < 4.0
            inverse = linalg.dpotri(factor, lower=lower)[0]
            assert (
                left(G, np.tril(inverse) + np.tril(inverse, -1).T if lower else np.triu(inverse) + np.triu(inverse, 1).T, np.eye(n)) < 4.0
            )
        assert left(L, linalg.solve_triangular(L, b, trans="N", lower=True), b) < 4.0
        assert left(L.T, linalg.solve_triangular(L, b, trans="T", lower=True), b) < 4.0
        assert left(W, linalg.solve(W, b), b) < 4.0
        for A, inverse in zip((W, G), linalg.inv(np.stack([W, G])), strict=True):
            assert left(inverse, A, np.eye(n)) < 40.0  # from the left, elimination by rows leaves more


@pytest.mark.parametrize("n", [1, 2, 3, 48, 130])
def test_eigenvectors(n):
    several = np.stack([drawn(n, seed)[0] for seed in range(3)] + [np.eye(n), np.zeros((n, n))])
    with using("portable"):
        values, vectors = linalg.eigh(several)
        one = linalg.eigh(several[1])
        some = linalg.eigh(several[0], subset_by_index=[n // 2, n - 1])
    np.testing.assert_array_equal(one[0], values[1])
    np.testing.assert_array_equal(one[1], vectors[1])
    np.testing.assert_array_equal(some[1], vectors[0][:, n // 2 :])
    for A, found, V in zip(several, values, vectors, strict=True):
        size = n * np.finfo(float).eps * max(np.linalg.norm(A), 1e-300)
        assert np.abs(found - np.linalg.eigvalsh(A)).max() <= 4.0 * size
        assert np.linalg.norm(A @ V - V * found) <= 4.0 * size
        assert np.linalg.norm(V.T @ V - np.eye(n)) <= 4.0 * n * np.finfo(float).eps


@given(n=st.integers(3, 150), rank=st.integers(1, 60), spread=st.floats(0.0, 6.0), seed=st.integers(0, 99))
def test_eigenvectors_of_a_low_rank(n, rank, spread, seed):
    random = np.random.default_rng(seed)
    B = random.normal(size=(n, rank)) * 10.0 ** random.uniform(-spread, spread, rank)
    A, few = B @ B.T, (n - 1) // 2
    A = 0.5 * (A + A.T)
    with using("portable"):
        values, vectors = linalg.eigh(A)
        largest, theirs = linalg.eigh(A, subset_by_index=[n - few, n - 1])
    np.testing.assert_array_equal(largest, values[n - few :])
    for found, V in ((values, vectors), (largest, theirs)):
        assert np.linalg.norm(A @ V - V * found) <= 4.0 * n * np.finfo(float).eps * np.linalg.norm(A)
        # about two sweeps of rotations for each eigenvalue, and a sweep leaves some 6 eps (Givens rotations: Higham 2002, 19.6)
        assert np.linalg.norm(V.T @ V - np.eye(len(found))) <= 12.0 * n * np.finfo(float).eps


def test_pivoted_factors():
    random = np.random.default_rng(0)
    B = random.normal(size=(30, 7))
    with using("portable"):
        packed, order, rank, short = linalg.dpstrf(B @ B.T, tol=1e-9, lower=1)
    L = np.tril(packed)[:, :rank]
    assert (rank, short) == (7, 1)
    np.testing.assert_allclose(L @ L.T, (B @ B.T)[np.ix_(order - 1, order - 1)], atol=1e-10)


def test_factors_of_what_has_none():
    G = np.array([[1.0, 2.0], [2.0, 1.0]])
    with using("portable"):
        assert linalg.dpotrf(G, lower=1)[1] == 2
        assert linalg.dposv(G, np.ones(2))[2] == 2
        assert linalg.dgetrf(np.ones((3, 3)))[2] == 2
        with pytest.raises(linalg.LinAlgError):
            linalg.cho_factor(G)
        with pytest.raises(linalg.LinAlgError):
            linalg.solve(np.ones((3, 3)), np.ones(3))
        with pytest.raises(linalg.LinAlgError):
            linalg.inv(np.stack([np.eye(3), np.ones((3, 3))]))
        with pytest.raises(linalg.LinAlgError):
            linalg.eigh(np.full((4, 4), np.nan))
        for wrong in (np.nan, np.inf):
            with pytest.raises(linalg.LinAlgError):
                linalg.eigh(np.diag([1.0, 2.0, wrong, 3.0, 4.0]) + 0.1, subset_by_index=[3, 4])
        with pytest.raises(ValueError, match="square"):
            kernels.arithmetic.cholesky(np.ones((2, 3)))


@pytest.mark.skipif(len(NARROW) < 2, reason="one level below avx512 can run here")
def test_levels_have_the_same_bits():
    G, b = drawn(130)
    random = np.random.default_rng(1)
    A, x = random.normal(size=(90, 333)), random.normal(size=500)
    made = []
    for level in NARROW:
        module = Kernels(level).arithmetic
        L, solved, U, pivots = G.copy(), b.copy(), G.copy(), np.zeros(len(G), dtype=np.intp)
        values, vectors = np.empty((1, len(G))), np.empty((1, *G.shape))
        module.cholesky(L)
        module.solve_lower(L, solved, False)
        module.solve_lower(L, solved, True)
        module.eliminate(U, pivots)
        module.eigen(G.copy()[None], values, vectors)
        some, largest = values[0].copy(), np.empty((20, len(G)))
        module.eigen_some(G.copy(), some, largest, len(G) - 20)
        module.exchange(True)
        try:
            products = [A @ A.T, A.T @ A[:, :3], A @ A[0], np.exp(x), np.log(np.abs(x)), np.abs(x) ** 1.7, np.logaddexp(x, x[::-1])]
        finally:
            module.exchange(False)
        made.append([L, solved, U, values, vectors, some, largest, *products])
    for first, second in zip(*made, strict=True):
        np.testing.assert_array_equal(first, second)


def test_vectors_of_other_lengths_are_refused(monkeypatch):
    with using("portable"):
        module = kernels.arithmetic
    monkeypatch.setattr(module, "lanes", lambda: 8)
    before = kernels.level
    with pytest.raises(ConfigError, match="vectors of four numbers"), using("portable"):
        pass
    assert kernels.level == before
    assert not is_portable()


def test_the_library_returns_when_the_block_ends():
    x, before = np.linspace(-3.0, 3.0, 1001), kernels.level
    A = np.random.default_rng(0).normal(size=(50, 50))
    wanted = np.exp(x), A @ A
    with suppress(RuntimeError), using("portable"), using("portable"):
        assert kernels.level in NARROW
        raise RuntimeError
    assert kernels.level == before
    np.testing.assert_array_equal(np.exp(x), wanted[0])
    np.testing.assert_array_equal(A @ A, wanted[1])


@given(n=st.integers(1, 9), k=st.integers(1, 20), seed=st.integers(0, 99))
def test_einsum_is_the_librarys_without_fused_products(n, k, seed):
    random = np.random.default_rng(seed)
    A, B, S = random.normal(size=(n, k)), random.normal(size=(n, k)), random.normal(size=(n, 3, k))
    with using("portable"):
        by_row, by_column, outcomes = np.einsum("ij,ij->i", A, B), np.einsum("ij,ij->j", A, B), np.einsum("iab,ib->ia", S, A)
        view, whole = np.einsum("iaa->ia", S[:, :, :3] if k > 2 else np.ones((n, 3, 3))), np.einsum("ij,ij->i", A > 0, B > 0)
    assert by_row.tolist() == [over_two(a, b) for a, b in zip(A, B, strict=True)]
    if k > 1:
        assert by_column.tolist() == [
            sum((x * y for x, y in zip(a, b, strict=True)), 0.0) for a, b in zip(A.T.tolist(), B.T.tolist(), strict=True)
        ]
    assert outcomes.tolist() == [[over_two(row, a) for row in rows] for rows, a in zip(S, A, strict=True)]
    assert view.shape == (n, 3)
    assert whole.dtype == bool


def over_two(a, b):
    """Return a.b as NumPy sums contiguous numbers without fused products: over two lanes, of eight terms the last pair first."""
    products = [float(x) * float(y) for x, y in zip(a, b, strict=True)]
    whole, lanes = len(products) // 8 * 8, [0.0, 0.0]
    for begin in range(0, whole, 8):
        for p in (6, 7, 4, 5, 2, 3, 0, 1):
            lanes[p % 2] += products[begin + p]
    for p in range(whole, len(products)):
        lanes[p % 2] += products[p]
    return lanes[0] + lanes[1]


@pytest.mark.parametrize("places", [np.int32, np.int64])
def test_sparse_products_are_sums_in_order(places):
    random = np.random.default_rng(0)
    made = (
        sparse.random_array((13, 9), density=0.4, rng=random, format="csr"),
        sparse.random_array((9, 11), density=0.4, rng=random, format="csr"),
    )
    for each in made:
        each.indices, each.indptr = each.indices.astype(places), each.indptr.astype(places)
    (A, B), W = made, random.normal(size=(9, 4))
    with using("portable"):
        found = [A @ W, A.tocsc() @ W, (W.T @ A.T).T, (A @ B).toarray(), (A.tocsc() @ B.tocsc()).toarray(), (A @ W[:, 0])[:, None]]
    wanted = in_order(A.toarray(), W), in_order(A.toarray(), B.toarray())
    for each, right in zip(found, (wanted[0],) * 3 + (wanted[1],) * 2 + ([row[:1] for row in wanted[0]],), strict=True):
        assert each.tolist() == right


def test_libraries_take_these_sums_and_get_theirs_back(monkeypatch):
    seen, own = [], (np.einsum, _sparsetools.csr_matvecs)
    A, W = sparse.csr_array(np.eye(3)), np.ones((3, 2))
    with using("portable"):
        taken = kernels.arithmetic

        class Counted:
            def __getattr__(self, name):
                seen.append(name)
                return getattr(taken, name)

        monkeypatch.setattr(products, "kernels", SimpleNamespace(arithmetic=Counted()))
        A @ W, A @ W[:, 0], A.tocsc() @ W, A.tocsc() @ W[:, 0], A @ A, A.tocsc() @ A.tocsc()
        np.einsum("ij,ij->i", W, W)
    assert seen == ["add_sparse_product"] * 4 + ["sparse_by_sparse"] * 2 + ["add_row_products"]
    assert (np.einsum, _sparsetools.csr_matvecs) == own


def test_whole_numbers_stay_whole():
    A = sparse.csr_array(np.eye(3, dtype=np.int64))
    with using("portable"):
        assert (A @ np.arange(3)).dtype == (A @ A).dtype == np.int64
        assert (A @ np.ones(3)).tolist() == [1.0, 1.0, 1.0]


def test_logarithms_of_effort():
    assert log(3.0) == math.log(3.0)
    with using("portable"):
        assert log(3.0) == float(np.log(3.0))
