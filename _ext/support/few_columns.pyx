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

# X A or R (n, k), in any layout.
cdef struct Rows:
    double *at
    Py_ssize_t down   # from a row to the next
    Py_ssize_t along  # from a column to the next
    int k

# What a loop takes: the first row of X, the numbers from a row to the next, n, d; A or X'R (d, kp); X A or R; kp.
ctypedef void (*Loop)(const double *, Py_ssize_t, Py_ssize_t, Py_ssize_t, double *, const Rows *, int) noexcept nogil


cdef inline bint has_room(const Rows *rows, Py_ssize_t i, Py_ssize_t n, int kp) noexcept nogil:
    """Whether rows lie one behind the other, and whole vectors of the rows up to i end within the n rows."""
    return rows.along == 1 and rows.down == rows.k and i * rows.k + kp - rows.k <= n * rows.k


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


cdef inline inlined write_scores(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, const double *a, const Rows *F, int kp, int vectors,
                                 int rows) noexcept nogil:
    """Write X A by tiles in the order of the rows, so that each overwrites what the one before wrote behind its rows."""
    cdef Py_ssize_t i = 0, apart
    cdef int some, c, q
    cdef double f[SUMS * 8]
    cdef double *to
    while i < n:
        some = rows if i + rows <= n else 1
        to, apart = f, kp
        if has_room(F, i + some, n, kp):
            to, apart = F.at + i * F.down, F.down
        if some == rows:
            tile_scores(x + i * step, step, d, a, kp, vectors, rows, to, apart)
        else:
            tile_scores(x + i * step, step, d, a, kp, vectors, 1, to, apart)
        if to == f:
            for c in range(F.k):
                for q in range(some):
                    F.at[(i + q) * F.down + c * F.along] = f[q * kp + c]
        i += some


cdef inline inlined add_sums(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *total, const Rows *R, int kp, int vectors,
                             int rows) noexcept nogil:
    """Add X'R by tiles."""
    cdef Py_ssize_t i = 0, apart
    cdef int some, c, q
    cdef double r[SUMS * 8]
    cdef const double *beside
    while i < n:
        some = rows if i + rows <= n else 1
        beside, apart = r, kp
        if has_room(R, i + some, n, kp):
            beside, apart = R.at + i * R.down, R.down
        else:
            for c in range(kp):
                for q in range(some):
                    r[q * kp + c] = R.at[(i + q) * R.down + c * R.along] if c < R.k else 0.0
        if some == rows:
            tile_sums(x + i * step, step, d, total, kp, vectors, rows, beside, apart)
        else:
            tile_sums(x + i * step, step, d, total, kp, vectors, 1, beside, apart)
        i += some


# The numbers of vectors and rows as constants keep the sums of a tile in registers; in one function the loops would have too few of these.
cdef separate scores_1(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *a, const Rows *F, int kp) noexcept nogil:
    write_scores(x, step, n, d, a, F, kp, 1, 8)


cdef separate scores_2(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *a, const Rows *F, int kp) noexcept nogil:
    write_scores(x, step, n, d, a, F, kp, 2, 5)


cdef separate scores_3(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *a, const Rows *F, int kp) noexcept nogil:
    write_scores(x, step, n, d, a, F, kp, 3, 4)


cdef separate scores_4(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *a, const Rows *F, int kp) noexcept nogil:
    write_scores(x, step, n, d, a, F, kp, 4, 2)


cdef separate sums_1(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *total, const Rows *R, int kp) noexcept nogil:
    add_sums(x, step, n, d, total, R, kp, 1, 8)


cdef separate sums_2(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *total, const Rows *R, int kp) noexcept nogil:
    add_sums(x, step, n, d, total, R, kp, 2, 5)


cdef separate sums_3(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *total, const Rows *R, int kp) noexcept nogil:
    add_sums(x, step, n, d, total, R, kp, 3, 4)


cdef separate sums_4(const double *x, Py_ssize_t step, Py_ssize_t n, Py_ssize_t d, double *total, const Rows *R, int kp) noexcept nogil:
    add_sums(x, step, n, d, total, R, kp, 4, 2)


cdef Loop[WIDEST] of_scores = [scores_1, scores_2, scores_3, scores_4]
cdef Loop[WIDEST] of_sums = [sums_1, sums_2, sums_3, sums_4]


cdef int check_product(const double[:, :] X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t k, const double[:, :] rows) except -1:
    """The factor and the product have n and d rows, and k columns; those of n rows are ``rows``."""
    cdef Py_ssize_t number = sizeof(double)
    demand(X.strides[1] == number or X.shape[1] < 2, "rows of X must be contiguous")
    demand(X.strides[0] % number == 0 and rows.strides[0] % number == 0 and rows.strides[1] % number == 0, "strides must be whole numbers")
    demand(X.shape[0] == n and X.shape[1] == d and k == rows.shape[1], "the factor and the product must fit X")
    demand(1 <= k <= WIDEST * LANES, f"a product has 1 to {WIDEST * LANES} columns")
    return 0


cdef inline Rows rows_at(const double[:, :] rows):
    cdef Rows made
    made.at, made.k = <double *>&rows[0, 0], <int>rows.shape[1]
    made.down, made.along = rows.strides[0] // <Py_ssize_t>sizeof(double), rows.strides[1] // <Py_ssize_t>sizeof(double)
    return made


cdef double *new_rows(Py_ssize_t d, Py_ssize_t kp) except NULL:
    """Return d rows of kp zeros; release with `free`."""
    cdef double *rows = zeros(d * kp)
    if rows == NULL:
        raise MemoryError("no memory for padded rows")
    return rows


def scores(const double[:, :] X, const double[:, ::1] A, double[:, :] F):
    """Write X A to F (n, k), in any layout, for X (n, d), rows contiguous, and A (d, k)."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], j, step = X.strides[0] // <Py_ssize_t>sizeof(double)
    cdef int kp
    cdef double *padded
    cdef Rows rows
    check_product(X, F.shape[0], A.shape[0], A.shape[1], F)
    if n == 0 or d == 0:
        F[:] = 0.0
        return
    rows = rows_at(F)
    kp = (rows.k + LANES - 1) // LANES * LANES
    padded = new_rows(d, kp)
    with nogil:
        for j in range(d):
            memcpy(padded + j * kp, &A[j, 0], rows.k * sizeof(double))
        of_scores[kp // LANES - 1](&X[0, 0], step, n, d, padded, &rows, kp)
    free(padded)


def sums(const double[:, :] X, const double[:, :] R, double[:, ::1] total):
    """Write X'R to ``total`` (d, k) for X (n, d), rows contiguous, and R (n, k), in any layout."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], j, step = X.strides[0] // <Py_ssize_t>sizeof(double)
    cdef int kp
    cdef double *padded
    cdef Rows rows
    check_product(X, R.shape[0], total.shape[0], total.shape[1], R)
    if n == 0 or d == 0:
        total[:] = 0.0
        return
    rows = rows_at(R)
    kp = (rows.k + LANES - 1) // LANES * LANES
    padded = new_rows(d, kp)
    with nogil:
        of_sums[kp // LANES - 1](&X[0, 0], step, n, d, padded, &rows, kp)
        for j in range(d):
            memcpy(&total[j, 0], padded + j * kp, rows.k * sizeof(double))
    free(padded)
