# Rows that are read in blocks: single or double numbers where they lie, standardised as they are read.

from adv_check cimport INT_MAX, demand
from adv_simd cimport vec, load, vsum, splat, LANES

cdef struct Stored:
    Py_ssize_t n
    int own                   # columns that are stored
    int d                     # columns of X: with the constant 1, where there is one
    const float *single       # (rows, own) row-major, or NULL
    const double *whole       # the same in double precision, or NULL
    const long long *at       # (n) where each row lies, or NULL: row i is the i-th
    const double *mean        # (own) a number x of column j stands for (x - mean_j) inverse_j + shift_j
    const double *inverse
    const double *shift


cdef inline int take_rows(Stored *x, const float[::1] single, const double[::1] whole, const long long[::1] at, Py_ssize_t n, int own, bint constant,
                          const double[::1] mean, const double[::1] inverse, const double[::1] shift) except -1:
    """Let ``x`` be n rows of stored numbers, of which one array is empty; ``at`` is empty where row i is the i-th."""
    cdef Py_ssize_t i, there = single.shape[0] + whole.shape[0]
    demand(n >= 1 and 1 <= own < INT_MAX, "no rows, or no columns")
    demand((single.shape[0] == 0) != (whole.shape[0] == 0), "rows are single or double numbers")
    demand(there % own == 0 and (at.shape[0] != 0 or there // own == n), f"rows must be {n} x {own} numbers, got {there}")
    demand(at.shape[0] == 0 or at.shape[0] == n, f"rows must be listed one by one, {n} of them")
    for i in range(at.shape[0]):
        demand(0 <= at[i] < there // own, "rows that are listed must be there")
    demand(mean.shape[0] == own and inverse.shape[0] == own and shift.shape[0] == own, "every column has a mean, a factor and a shift")
    x.n, x.own, x.d = n, own, own + constant
    x.single = &single[0] if single.shape[0] else NULL
    x.whole = &whole[0] if whole.shape[0] else NULL
    x.at = &at[0] if at.shape[0] else NULL
    x.mean, x.inverse, x.shift = &mean[0], &inverse[0], &shift[0]
    return 0


cdef inline void standardise(const Stored *x, Py_ssize_t i, double *out) noexcept nogil:
    """Write row i of X to ``out`` (d)."""
    cdef int j, own = x.own
    cdef const double *mean = x.mean
    cdef const double *inverse = x.inverse
    cdef const double *shift = x.shift
    cdef const float *single
    cdef const double *whole
    if x.at != NULL:
        i = x.at[i]
    if x.single != NULL:
        single = x.single + i * own
        for j in range(own):
            out[j] = (<double>single[j] - mean[j]) * inverse[j] + shift[j]
    else:
        whole = x.whole + i * own
        for j in range(own):
            out[j] = (whole[j] - mean[j]) * inverse[j] + shift[j]
    if x.d > own:
        out[own] = 1.0


cdef inline double load_row(const Stored *x, Py_ssize_t i, double *out) noexcept nogil:
    """Write row i of X to ``out`` (d), which lies where vectors begin, and return |x_i|^2."""
    cdef int j
    cdef vec square = splat(0.0)
    cdef double total
    standardise(x, i, out)
    for j in range(x.d // LANES):
        square = square + load(out, j) * load(out, j)
    total = vsum(square)
    for j in range(x.d // LANES * LANES, x.d):
        total += out[j] * out[j]
    return total
