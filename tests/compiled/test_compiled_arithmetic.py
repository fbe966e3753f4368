"""Products, factors and elementary functions of portable arithmetic: plain Python, libraries, and the same bits at every level."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from advcli.core import lapack
from advcli.core.arithmetic import using
from advcli.core.compiled import Kernels, kernels, usable_levels

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


@given(x=st.floats(1e-30, 1e30), y=st.floats(-9.0, 9.0))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_powers_lie_near_the_library(x, y):
    wanted = x**y
    with using("portable"):
        assert abs(float(np.power(x, y)) - wanted) <= 20.0 * math.ulp(wanted)


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


@pytest.mark.parametrize("n", [1, 2, 47, 48, 49, 130])
def test_factors_lie_near_the_library(n):
    G, b = drawn(n)
    values = np.linalg.eigvalsh(G)
    with using("portable"):
        for lower in (0, 1):
            factor, info = lapack.dpotrf(G, lower=lower)
            L = factor if lower else factor.T
            assert info == 0
            np.testing.assert_allclose(L @ L.T, G, rtol=0, atol=1e-12 * values[-1])
            np.testing.assert_allclose(G @ lapack.dpotrs(factor, b, lower=lower)[0], b, atol=1e-7)
            np.testing.assert_allclose(lapack.dposv(G, b[:, 0], lower=lower)[1], scipy.linalg.solve(G, b[:, 0]), rtol=1e-6)
            np.testing.assert_allclose(np.tril(lapack.dpotri(factor, lower=lower)[0] @ G), np.eye(n), atol=1e-7)
            np.testing.assert_allclose(lapack.cho_solve(lapack.cho_factor(G, lower=bool(lower)), b), scipy.linalg.solve(G, b), rtol=1e-5)
        for trans in "NT":
            wanted = scipy.linalg.solve_triangular(L, b, trans=trans, lower=True)
            np.testing.assert_allclose(lapack.solve_triangular(L, b, trans=trans, lower=True), wanted, rtol=1e-6)
        W = G - np.diag(np.linspace(0.0, 2.0 * values[-1], n))  # indefinite
        np.testing.assert_allclose(W @ lapack.solve(W, b), b, atol=1e-7)
        np.testing.assert_allclose(lapack.inv(np.stack([W, G]))[0] @ W, np.eye(n), atol=1e-7)
        found, vectors = lapack.eigh(G)
        np.testing.assert_allclose(found, values, rtol=0, atol=1e-13 * n * values[-1])
        np.testing.assert_allclose(G @ vectors, vectors * found, atol=1e-12 * n * values[-1])
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-12 * n)


def test_pivoted_factors():
    random = np.random.default_rng(0)
    B = random.normal(size=(30, 7))
    with using("portable"):
        packed, order, rank, short = lapack.dpstrf(B @ B.T, tol=1e-9, lower=1)
    L = np.tril(packed)[:, :rank]
    assert (rank, short) == (7, 1)
    np.testing.assert_allclose(L @ L.T, (B @ B.T)[np.ix_(order - 1, order - 1)], atol=1e-10)


def test_factors_of_what_has_none():
    G = np.array([[1.0, 2.0], [2.0, 1.0]])
    with using("portable"):
        assert lapack.dpotrf(G, lower=1)[1] == 2
        assert lapack.dposv(G, np.ones(2))[2] == 2
        assert lapack.dgetrf(np.ones((3, 3)))[2] == 2
        with pytest.raises(lapack.LinAlgError):
            lapack.cho_factor(G)
        with pytest.raises(lapack.LinAlgError):
            lapack.solve(np.ones((3, 3)), np.ones(3))
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
        values, vectors = np.empty(len(G)), np.empty(G.shape)
        module.cholesky(L)
        module.solve_lower(L, solved, False)
        module.solve_lower(L, solved, True)
        module.eliminate(U, pivots)
        module.eigen(G.copy(), values, vectors)
        module.exchange(True)
        try:
            products = [A @ A.T, A.T @ A[:, :3], A @ A[0], np.exp(x), np.log(np.abs(x)), np.abs(x) ** 1.7]
        finally:
            module.exchange(False)
        made.append([L, solved, U, values, vectors, *products])
    for first, second in zip(*made, strict=True):
        np.testing.assert_array_equal(first, second)


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
