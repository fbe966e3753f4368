"""Products with few columns and weighted Gram matrices, which scores, gradients and Hessians of few classes need, against NumPy's."""

import numpy as np
from measure import Row, interleaved, repeated

from advcli.core.compiled import kernels
from advcli.core.linalg import product, transposed_product


def products(options):
    """Rows: shapes of tables, one of a kernel matrix, and Hessians over a third of the rows."""
    rows = []
    # OpenBLAS has loops of its own for less than a million products with AVX-512: no target there
    for n, d, k, must, aim in (
        (20_000, 51, 5, 1.0, 2.0),
        (50_000, 21, 10, 1.0, 2.0),
        (10_000, 101, 3, 1.0, 2.0),
        (4435, 37, 6, None, None),
        (3000, 3000, 6, 1.0, 2.0),
    ):
        random, n = np.random.default_rng(d), options.size(n, 100)
        X, A, R = random.normal(size=(n, d)), random.normal(size=(d, k)), random.normal(size=(n, k))
        shape = f"{n} x {d}, {k} columns"
        rows.append(compared(f"X A, {shape}", product, np.matmul, (X, A), options, must, aim))
        rows.append(compared(f"X'R, {shape}", transposed_product, lambda X, R: X.T @ R, (X, R), options, must, aim))
    for n, d in ((20_000, 51), (10_000, 101), (3000, 201)):
        random, n = np.random.default_rng(d), options.size(n, 100)
        listed = np.sort(random.permutation(n)[: n // 3])
        given = random.normal(size=(n, d)), listed, random.normal(size=len(listed))
        what = f"upper triangle of X'WX, {len(listed)} of {n} rows x {d}"
        rows.append(compared(what, upper, written_out, given, options, 1.0, 1.5))
    return rows


def compared(what, ours, numpy, given, options, must, aim):
    """Return the row of two functions that return the same numbers, but for the triangle below the diagonal of a Gram matrix."""
    same = np.triu if ours is upper else np.asarray
    assert np.allclose(same(ours(*given)), same(numpy(*given)), rtol=1e-9, atol=1e-9)
    seconds = interleaved(
        {"ours": lambda: repeated(lambda: ours(*given)), "NumPy": lambda: repeated(lambda: numpy(*given))}, options.repeats
    )
    detail = ", ".join(f"{name} {1e3 * value:.3g} ms" for name, value in seconds.items())
    return Row(f"NumPy / ours, {what}", seconds["NumPy"] / seconds["ours"], must, aim, detail=detail)


def upper(X, listed, weight):
    """Return the upper triangle of the sum of weighted outer products of the listed rows."""
    sums = np.zeros((X.shape[1], X.shape[1]))
    kernels.grams.upper(X, listed, weight, sums)
    return sums


def written_out(X, listed, weight):
    """Return the same sum, whole."""
    some = X[listed]
    return some.T @ (some * weight[:, None])
