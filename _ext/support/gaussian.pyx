"""The Gaussian kernel matrix K_ij = exp(-gamma |x_i - x_j|^2) + constant of dense rows with few columns.

Distances are summed from differences, so that equal rows have distance 0. With many columns a matrix product is faster (advcli/features/kernels/gaussian.py).
"""

from libc.stdlib cimport free

from adv_check cimport demand
from adv_simd cimport vec, load, store, splat, zeros, LANES

cdef extern from *:
    """
    #if ADV_LANES == 1
      static inline adv_vec adv_exp(adv_vec x) { return exp(x); }
    #else
      /* exp of numbers up to 0, to 2 units in the last place: x = n log 2 + r, and the series in r, |r| <= log(2)/2, whose next term is below 1e-17.
         Adding 1.5 2^52 rounds n to the last bits of a number, from where it is shifted into the exponent. Below -708 lie subnormal numbers: 0. */
      #define ADV_TERM(a) p = p * r + adv_set(a);
      static inline adv_vec adv_exp(adv_vec x) {
        const adv_vec least = adv_set(-708.0), shift = adv_set(6755399441055744.0);
        adv_vec held = adv_max(x, least), moved = held * adv_set(1.4426950408889634074) + shift, n = moved - shift, r, p;
        r = held - n * adv_set(6.93147180369123816490e-01);
        r = r - n * adv_set(1.90821492927058770002e-10);
        p = adv_set(1.0 / 6227020800.0);
        ADV_TERM(1.0 / 479001600.0) ADV_TERM(1.0 / 39916800.0) ADV_TERM(1.0 / 3628800.0) ADV_TERM(1.0 / 362880.0) ADV_TERM(1.0 /
        40320.0) ADV_TERM(1.0 / 5040.0) ADV_TERM(1.0 / 720.0) ADV_TERM(1.0 / 120.0) ADV_TERM(1.0 / 24.0) ADV_TERM(1.0 / 6.0)
        ADV_TERM(0.5) ADV_TERM(1.0) ADV_TERM(1.0)
        p = (adv_vec)((adv_mask)p + ((adv_mask)moved << 52));
        return adv_if_gt(least, x, adv_set(0.0), p);
      }
    #endif
    """
    vec exponential "adv_exp"(vec x) noexcept nogil

cdef enum:
    TILE = 64         # rows and columns of K that are computed together: 36 KiB, read across while in the cache
    STRIDE = TILE + 8  # of a tile's rows: numbers that are read together must not fall on the same part of the cache
    GROUP = 4         # rows whose distances are summed together, two vectors each: sums that do not wait for each other


cdef void fill(const double *X, const double *across, Py_ssize_t n, Py_ssize_t d, double gamma, double constant, double *tile, double *K) noexcept nogil:
    """Write K (n, n) for X (n, d) and its transposed tiles ``across``, tile by tile at and above the diagonal, each with its mirror image."""
    cdef Py_ssize_t p, q, first, begin, rows, columns, i, j, c, r
    cdef const double *x[GROUP]
    cdef const double *column
    cdef vec[GROUP] s, t
    cdef vec u, v, a, b, low = splat(-gamma), added = splat(constant)
    for p in range((n + TILE - 1) // TILE):
        first = p * TILE
        rows = n - first if n - first < TILE else TILE
        for q in range(p, (n + TILE - 1) // TILE):
            begin = q * TILE
            columns = n - begin if n - begin < TILE else TILE
            for i from 0 <= i < rows by GROUP:
                for r in range(GROUP):  # where rows end within a group, the last stands for what is missing
                    x[r] = X + min(first + i + r, n - 1) * d
                for j from 0 <= j < TILE // LANES by 2:
                    if j * LANES >= columns:
                        break
                    for r in range(GROUP):
                        s[r] = t[r] = splat(0.0)
                    column = across + begin * d
                    for c in range(d):
                        a, b = load(column, <int>j), load(column, <int>j + 1)
                        for r in range(GROUP):
                            u, v = splat(x[r][c]) - a, splat(x[r][c]) - b
                            s[r], t[r] = s[r] + u * u, t[r] + v * v
                        column += TILE
                    for r in range(GROUP):
                        store(tile + (i + r) * STRIDE, <int>j, exponential(low * s[r]) + added)
                        store(tile + (i + r) * STRIDE, <int>j + 1, exponential(low * t[r]) + added)
            for i in range(rows):
                for j in range(columns):
                    K[(first + i) * n + begin + j] = tile[i * STRIDE + j]
            if begin > first:
                for j in range(columns):
                    for i in range(rows):
                        K[(begin + j) * n + first + i] = tile[i * STRIDE + j]


def matrix(const double[:, ::1] X, double gamma, double constant, double[:, ::1] K):
    """Write the kernel between all rows of X (n, d) into K (n, n), which becomes exactly symmetric with 1 + constant on its diagonal."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, c
    cdef double *block
    demand(K.shape[0] == n and K.shape[1] == n, "the kernel matrix must be (n, n)")
    demand(gamma >= 0.0, "gamma must be at least 0")
    if n == 0:
        return
    block = zeros(STRIDE * TILE + (n + TILE - 1) // TILE * TILE * d)
    if block == NULL:
        raise MemoryError("no memory for the columns of the kernel matrix")
    for i in range(n):
        for c in range(d):
            block[STRIDE * TILE + (i // TILE * d + c) * TILE + i % TILE] = X[i, c]
    with nogil:
        fill(&X[0, 0] if d else NULL, block + STRIDE * TILE, n, d, gamma, constant, block, &K[0, 0])
    free(block)
