"""Products of a dense matrix with a matrix of few columns, as scores and their gradients are where classes are few: X A and X'R.

BLAS copies X into another layout first, which takes longer than such a product. Here a tile of rows is multiplied where it lies.
An entry is the sum of its products in the order of the columns of X, or of its rows for X'R, each product rounded before it is added
(meson.build turns contraction off): the bits are those of `arithmetic.matmul_loop`, at any instruction set.
"""

from libc.stdlib cimport free
from libc.string cimport memcpy

from adv_check cimport demand
from adv_simd cimport LANES, inlined, load, prefetch, splat, store, vec, zeros

cdef extern from *:
    """
    #if defined(__GNUC__)
      #define ADV_SEPARATE __attribute__((noinline))
    #else
      #define ADV_SEPARATE
    #endif
    """
    ctypedef void separate "ADV_SEPARATE void"   # of a function that is not inlined

cdef enum:
    WIDEST = 4      # vectors of columns
    TALLEST = 8     # rows of a tile
    LINE = 8        # numbers of a cache line
    SUMS = 12       # vectors of a tile, which stay in registers

MOST_COLUMNS = WIDEST * LANES
"""Columns that a product may have."""

cdef struct Product:
    const double *x         # X (n, d)
    Py_ssize_t step         # from a row of X to the next
    Py_ssize_t n, d
    double *by_column       # A or X'R (d, kp), its rows filled up to whole vectors
    double *by_row          # X A or R (n, k), in any layout
    Py_ssize_t down, along  # from a row of it to the next, and from a column
    int k, kp
    bint transposed         # whether X'R is wanted

ctypedef void (*Loop)(const Product *) noexcept nogil


cdef inline bint has_room(const Product *p, Py_ssize_t i) noexcept nogil:
    """Whether the numbers of `by_row` lie one behind the other, and whole vectors of the rows up to i end within the n rows."""
    return p.along == 1 and p.down == p.k and i * p.k + p.kp - p.k <= p.n * p.k


cdef inline inlined tile_scores(const double *x, Py_ssize_t step, Py_ssize_t d, const double *a, int kp, int vectors, int rows, double *f,
                                Py_ssize_t apart) noexcept nogil:
    """Write X A of a tile to rows f, as many numbers ``apart`` and ``vectors`` vectors long: what follows them is overwritten."""
    cdef vec sums[SUMS]
    cdef vec of_a[WIDEST]
    cdef vec number
    cdef const double *row[TALLEST]
    cdef Py_ssize_t p
    cdef int i, v
    for i in range(rows):
        row[i] = x + i * step
        for v in range(vectors):
            sums[i * vectors + v] = splat(0.0)
    for p in range(d):
        if p % LINE == 0:  # the next tile: its rows are too short for the processor to see where they lie
            for i in range(rows):
                prefetch(row[i] + p + rows * step)
        for v in range(vectors):
            of_a[v] = load(a, v)
        for i in range(rows):
            number = splat(row[i][p])
            for v in range(vectors):
                sums[i * vectors + v] = sums[i * vectors + v] + number * of_a[v]
        a += kp
    for i in range(rows):
        for v in range(vectors):
            store(f + i * apart, v, sums[i * vectors + v])


cdef inline inlined tile_sums(const double *x, Py_ssize_t step, Py_ssize_t d, double *total, int kp, int vectors, int rows,
                              const double *r, Py_ssize_t apart) noexcept nogil:
    """Add X'R of a tile to ``total``; rows of R lie as many numbers ``apart``, and what follows them is read."""
    cdef vec of_r[SUMS]
    cdef vec sums[WIDEST]
    cdef vec number
    cdef const double *row[TALLEST]
    cdef Py_ssize_t p
    cdef int i, v
    for i in range(rows):
        row[i] = x + i * step
        for v in range(vectors):
            of_r[i * vectors + v] = load(r + i * apart, v)
    for p in range(d):
        if p % LINE == 0:
            for i in range(rows):
                prefetch(row[i] + p + rows * step)
        for v in range(vectors):
            sums[v] = load(total, v)
        for i in range(rows):
            number = splat(row[i][p])
            for v in range(vectors):
                sums[v] = sums[v] + number * of_r[i * vectors + v]
        for v in range(vectors):
            store(total, v, sums[v])
        total += kp


cdef inline inlined write_scores(const Product *p, int vectors, int rows) noexcept nogil:
    """Write X A by tiles in the order of the rows, so that each overwrites what the one before wrote behind its rows."""
    cdef Py_ssize_t i = 0, apart
    cdef int some, c, q, kp = p.kp
    cdef double f[SUMS * 8]
    cdef const double *x
    cdef double *to
    while i < p.n:
        some = rows if i + rows <= p.n else 1
        x, to, apart = p.x + i * p.step, f, kp
        if has_room(p, i + some):
            to, apart = p.by_row + i * p.down, p.down
        if some == rows:
            tile_scores(x, p.step, p.d, p.by_column, kp, vectors, rows, to, apart)
        else:
            tile_scores(x, p.step, p.d, p.by_column, kp, vectors, 1, to, apart)
        if to == f:
            for c in range(p.k):
                for q in range(some):
                    p.by_row[(i + q) * p.down + c * p.along] = f[q * kp + c]
        i += some


cdef inline inlined add_sums(const Product *p, int vectors, int rows) noexcept nogil:
    """Add X'R by tiles."""
    cdef Py_ssize_t i = 0, apart
    cdef int some, c, q, kp = p.kp
    cdef double r[SUMS * 8]
    cdef const double *x
    cdef const double *beside
    while i < p.n:
        some = rows if i + rows <= p.n else 1
        x, beside, apart = p.x + i * p.step, r, kp
        if has_room(p, i + some):
            beside, apart = p.by_row + i * p.down, p.down
        else:
            for c in range(kp):
                for q in range(some):
                    r[q * kp + c] = p.by_row[(i + q) * p.down + c * p.along] if c < p.k else 0.0
        if some == rows:
            tile_sums(x, p.step, p.d, p.by_column, kp, vectors, rows, beside, apart)
        else:
            tile_sums(x, p.step, p.d, p.by_column, kp, vectors, 1, beside, apart)
        i += some


cdef inline inlined multiply(const Product *p, int vectors, int rows) noexcept nogil:
    """Write X A, or add X'R."""
    if p.transposed:
        add_sums(p, vectors, rows)
    else:
        write_scores(p, vectors, rows)


# Constant numbers of vectors and rows keep the sums of a tile in registers; all loops in one function would have too few of these.
cdef separate multiply_1(const Product *p) noexcept nogil:
    multiply(p, 1, 8)


cdef separate multiply_2(const Product *p) noexcept nogil:
    multiply(p, 2, 5)


cdef separate multiply_3(const Product *p) noexcept nogil:
    multiply(p, 3, 4)


cdef separate multiply_4(const Product *p) noexcept nogil:
    multiply(p, 4, 2)


cdef Loop[WIDEST] loops = [multiply_1, multiply_2, multiply_3, multiply_4]


cdef int carry_out(const double[:, :] X, double *by_column, Py_ssize_t d, Py_ssize_t k, const double[:, :] by_row, bint transposed) except -1:
    """Write X A to ``by_row`` (n, k) where A is ``by_column`` (d, k), or X'R to these where R are those."""
    cdef Py_ssize_t number = sizeof(double), j
    cdef Product p
    demand(X.strides[1] == number or X.shape[1] < 2, "rows of X must be contiguous")
    demand(X.strides[0] % number == 0 and by_row.strides[0] % number == 0 and by_row.strides[1] % number == 0, "strides must be whole numbers")
    demand(X.shape[0] == by_row.shape[0] and X.shape[1] == d and k == by_row.shape[1], "the factor and the product must fit X")
    demand(1 <= k <= WIDEST * LANES, f"a product has 1 to {WIDEST * LANES} columns")
    p.n, p.d, p.k, p.kp, p.transposed = by_row.shape[0], d, <int>k, <int>((k + LANES - 1) // LANES * LANES), transposed
    if p.n == 0 or p.d == 0:
        return 0
    p.x, p.step = &X[0, 0], X.strides[0] // number
    p.by_row, p.down, p.along = <double *>&by_row[0, 0], by_row.strides[0] // number, by_row.strides[1] // number
    p.by_column = zeros(p.d * p.kp)
    if p.by_column == NULL:
        raise MemoryError("no memory for padded rows")
    with nogil:
        if not transposed:
            for j in range(d):
                memcpy(p.by_column + j * p.kp, by_column + j * k, k * sizeof(double))
        loops[p.kp // LANES - 1](&p)
        if transposed:
            for j in range(d):
                memcpy(by_column + j * k, p.by_column + j * p.kp, k * sizeof(double))
    free(p.by_column)
    return 0


def scores(const double[:, :] X, const double[:, ::1] A, double[:, :] F):
    """Write X A to F (n, k), in any layout, for X (n, d), rows contiguous, and A (d, k)."""
    carry_out(X, <double *>&A[0, 0] if A.shape[0] and A.shape[1] else NULL, A.shape[0], A.shape[1], F, False)
    if X.shape[1] == 0:
        F[:] = 0.0


def sums(const double[:, :] X, const double[:, :] R, double[:, ::1] total):
    """Write X'R to ``total`` (d, k) for X (n, d), rows contiguous, and R (n, k), in any layout."""
    carry_out(X, &total[0, 0] if total.shape[0] and total.shape[1] else NULL, total.shape[0], total.shape[1], R, True)
    if X.shape[0] == 0:
        total[:] = 0.0
