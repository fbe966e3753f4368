"""Upper triangles of X' diag(w) X over some rows of X: half the products of a matrix product, and no copy of the rows as long as X.

Weights may have both signs, for which BLAS has no such product. An entry is the sum of x_s (w x_t), s <= t, in the order of the rows, each
product rounded before it is added: the bits of X' (w X) by `arithmetic.matmul_loop`, at any instruction set.
"""

from libc.stdlib cimport free

from adv_check cimport check_positions, demand
from adv_simd cimport LANES, inlined, load, load_first, splat, store, vec, zeros

cdef enum:
    PANEL = 32      # rows that are multiplied by each other's numbers before the next
    TALL = 4        # rows of a tile of sums
    WIDE = 2        # and vectors of its columns


cdef inline void copy_row(const double *x, int d, double weight, double *plain, double *weighted) noexcept nogil:
    """Write x and ``weight`` x, filled up with zeros to whole tiles."""
    cdef int v, whole = d // LANES
    cdef vec number
    for v in range(whole):
        number = load(x, v)
        store(plain, v, number)
        store(weighted, v, number * splat(weight))
    if whole * LANES < d:
        number = load_first(x + whole * LANES, d - whole * LANES)
        store(plain, whole, number)
        store(weighted, whole, number * splat(weight))


cdef inline inlined add_tile(const double *left, const double *right, Py_ssize_t apart, int rows, double *sums) noexcept nogil:
    """Add the products of TALL columns of ``left`` and WIDE vectors of columns of ``right`` to ``sums``; rows lie ``apart`` numbers apart everywhere."""
    cdef vec total[TALL * WIDE]
    cdef vec beside[WIDE]
    cdef vec number
    cdef int q, i, v
    for i in range(TALL):
        for v in range(WIDE):
            total[i * WIDE + v] = load(sums + i * apart, v)
    for q in range(rows):
        for v in range(WIDE):
            beside[v] = load(right, v)
        for i in range(TALL):
            number = splat(left[i])
            for v in range(WIDE):
                total[i * WIDE + v] = total[i * WIDE + v] + number * beside[v]
        left += apart
        right += apart
    for i in range(TALL):
        for v in range(WIDE):
            store(sums + i * apart, v, total[i * WIDE + v])


cdef void add_panel(const double *plain, const double *weighted, Py_ssize_t apart, int rows, double *sums) noexcept nogil:
    """Add the products of a panel to the tiles that lie in the upper triangle, or across the diagonal."""
    cdef Py_ssize_t s, t
    for s from 0 <= s < apart by TALL:
        for t from s // (WIDE * LANES) * (WIDE * LANES) <= t < apart by WIDE * LANES:
            add_tile(plain + s, weighted + t, apart, rows, sums + s * apart + t)


def upper(const double[:, ::1] X, const Py_ssize_t[::1] rows, const double[::1] weight, double[:, ::1] sums):
    """Write the upper triangle of sum_i w_i x_i x_i' over the listed rows of X (n, d) to ``sums`` (d, d)."""
    cdef Py_ssize_t i, count = rows.shape[0], s, t, apart
    cdef int d, q, some
    cdef double *block
    cdef double *plain
    cdef double *weighted
    demand(X.shape[1] < 1 << 30, "a row has fewer than 2^30 numbers")
    d = <int>X.shape[1]
    apart = (d + WIDE * LANES - 1) // (WIDE * LANES) * (WIDE * LANES)
    demand(weight.shape[0] == count, "every listed row needs a weight")
    demand(sums.shape[0] == d and sums.shape[1] == d, f"the sums must be ({d}, {d})")
    check_positions(rows, X.shape[0], "rows")
    if d == 0:
        return
    block = zeros((apart + 2 * PANEL) * apart)
    if block == NULL:
        raise MemoryError("no memory for the sums of a panel")
    plain, weighted = block + apart * apart, block + (apart + PANEL) * apart
    with nogil:
        i = 0
        while i < count:
            some = <int>min(<Py_ssize_t>PANEL, count - i)
            for q in range(some):
                copy_row(&X[rows[i + q], 0], d, weight[i + q], plain + q * apart, weighted + q * apart)
            add_panel(plain, weighted, apart, some, block)
            i += some
        for s in range(d):
            for t in range(s, d):
                sums[s, t] = block[s * apart + t]
    free(block)
