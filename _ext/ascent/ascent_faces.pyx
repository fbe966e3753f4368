"""Ascent of the quadratic function that the dual is on its faces, within the linear pieces of c (advcli/solvers/coordinate/face_steps.py)."""

from libc.stdlib cimport free

from adv_check cimport check_positions, check_rows, demand
from adv_factors cimport Factors, factors_free, factors_new
from adv_linear cimport rows_of
from adv_quadratic cimport PADDED, PRODUCTS, ROUNDS, SETTLED, SWEEPS, Quadratic, ascend_quadratic, scratch
from adv_simd cimport LANES, count_greater, load, load_first, splat, vec, zeros

cdef enum:
    MOST = 1 << 24

cdef extern from *:
    """
    static const double adv_whole_number = 6755399441055744.0; /* 1.5 2^52: numbers below 2^51 that are added to it are rounded to whole ones */
    static const double adv_apart = 1e-18;                     /* squared distance from the nearest whole number above which a number is a fraction */
    """
    double WHOLE_NUMBER "adv_whole_number"
    double APART "adv_apart"


def off_corners(const double[:, ::1] R, Py_ssize_t[::1] found):
    """Write the rows of R (n, k) that hold a fraction to ``found`` (n,), in order; return their number, and that of the fractions."""
    cdef Py_ssize_t i, count = 0, total = 0, k = R.shape[1]
    cdef int v, fractions, vectors = <int>(k // LANES), tail = <int>(k % LANES)
    cdef const double *r
    cdef vec value, whole = splat(WHOLE_NUMBER), apart = splat(APART)
    demand(0 < k < MOST and found.shape[0] == R.shape[0], "R must be (n, k), found (n,)")
    with nogil:
        for i in range(R.shape[0]):
            r, fractions = &R[i, 0], 0
            for v in range(vectors + (tail > 0)):
                value = load(r, v) if v < vectors else load_first(r + v * LANES, tail)
                value = value - ((value + whole) - whole)
                fractions += count_greater(value * value, apart)
            if fractions:
                found[count] = i
                count += 1
                total += fractions
    return count, total


def ascend(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, int d, const double[:, ::1] B,
           const Py_ssize_t[::1] owner, const double[::1] gradient, double[:, ::1] slack, const double[:, ::1] rate, double[::1] z,
           int rounds=ROUNDS, int sweeps=SWEEPS, int products=PRODUCTS, double tol=SETTLED):
    """Ascend (1) of `adv_quadratic.pxd` from 0 in place on z (m,) and ``slack`` (n, c) >= 0; return the rounds made.

    G_ml = (b_m'b_l)(x_i'x_j), with directions B (m, k) and rows x_i of length 1, dense where ``start`` is empty. Row ``owner[m]`` owns coordinate
    m; owners do not fall. ``gradient`` (m,) is g at 0, ``rate`` is (m, c), c a multiple of 8. A round makes so many ``sweeps`` and a step of
    ``products`` with G, twice as many as the last where that was cut nowhere. No round follows a sweep whose squared moves are ``tol`` of the first's.
    """
    cdef Quadratic s
    cdef Factors f
    cdef Py_ssize_t m = B.shape[0], i
    cdef int k = <int>B.shape[1], made
    cdef double *work = NULL
    cdef double *g = NULL
    cdef bint falls = False, short
    check_rows(values, columns, start, n, d)
    demand(0 < m < MOST and 0 < B.shape[1] < MOST and gradient.shape[0] == m and z.shape[0] == m, "directions must be (m, k), gradient and z (m,)")
    demand(rate.shape[0] == m and owner.shape[0] == m and slack.shape[1] == rate.shape[1], "rates must be (m, c), owners (m,), slacks (n, c)")
    demand(n < MOST and slack.shape[0] == n and slack.shape[1] < MOST and slack.shape[1] % PADDED == 0, f"rows have slacks in multiples of {PADDED}")
    demand(1 <= sweeps and 0 <= products, "a round makes a sweep at least")
    check_positions(owner, n, "owners of coordinates")
    for i in range(1, m):
        falls |= owner[i] < owner[i - 1]
    demand(not falls, "owners of coordinates must not fall")
    f.gradient = &gradient[0]
    with nogil:
        short = factors_new(&f, rows_of(values, columns, start, n, d), k, &B[0, 0], &owner[0], m)
        g = zeros(m)
        work = scratch(&s, m, n, <int>slack.shape[1])
        short |= work == NULL or g == NULL
        if not short:
            s.G, s.factors, s.owner, s.g, s.z = NULL, &f, &owner[0], g, &z[0]
            s.slack = &slack[0, 0] if slack.shape[1] else NULL
            s.rate = &rate[0, 0] if slack.shape[1] else NULL
            made = ascend_quadratic(&s, rounds, sweeps, products, tol)
        free(work)
        free(g)
        factors_free(&f)
    if short:
        raise MemoryError("no memory for an ascent on faces")
    return made
