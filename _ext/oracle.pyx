"""The compiled surrogates in batches: value, oracle, offset and exact block step for n examples at once, without the GIL.

Every function takes (kind, k, parameters) first; see advcli/compiled.py for the names and advcli/losses/base.py for the meaning.
"""

from libc.string cimport memcpy, memset

from adv_family cimport Family
from adv_families cimport family_names, GENERAL, ZERO_ONE
from adv_bind cimport family_free
from adv_check cimport check_labels, demand
from adv_general cimport solve_game
from adv_loop cimport bind, checked_width
from adv_lanes cimport zero_one_blocks, zero_one_values, BLOCKS


def families():
    """Return the names of the surrogates, each at the place of its kind."""
    return family_names()


def evaluate(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const Py_ssize_t[::1] y,
             double[::1] value, double[:, ::1] R, double[::1] c):
    """Write the oracle's value, r and c for every row; R may have 0 rows when only values are wanted (c is then left alone for zero-one)."""
    cdef Family s
    cdef Py_ssize_t i, n = F.shape[0]
    cdef bint keep = R.shape[0] == n and n > 0
    cdef double *f
    cdef double *r
    checked_width(k)
    check_labels(y, n, k)
    demand(F.shape[1] == k and value.shape[0] == n and c.shape[0] == n and (R.shape[0] == 0 or (R.shape[0] == n and R.shape[1] == k)),
           "scores and r must be (n, k), value and c (n,)")
    if kind == ZERO_ONE and not keep and n > 0:
        with nogil:
            i = zero_one_values(&F[0, 0], &y[0], n, k, &value[0])
        if i != 0:
            raise MemoryError("no memory for the lanes")
        return
    bind(&s, kind, k, parameters)
    with nogil:
        f = s.work + 8 * s.kp
        r = s.work + 9 * s.kp
        for i in range(n):
            memcpy(f, &F[i, 0], k * sizeof(double))
            value[i] = s.oracle(&s, f, y[i], r, &c[i])
            if keep:
                memcpy(&R[i, 0], r, k * sizeof(double))
        family_free(&s)


def offset(int kind, int k, const double[::1] parameters, const double[:, ::1] R, const Py_ssize_t[::1] y, double[::1] c):
    """Write, for every row, the largest c for which (r, c) lies in the convex hull of R(y)."""
    cdef Family s
    cdef Py_ssize_t i, n = R.shape[0]
    cdef double *r
    check_labels(y, n, k)
    demand(R.shape[1] == k and c.shape[0] == n, "r must be (n, k) and c (n,)")
    bind(&s, kind, k, parameters)
    with nogil:
        r = s.work + 9 * s.kp
        for i in range(n):
            memcpy(r, &R[i, 0], k * sizeof(double))
            c[i] = s.offset(&s, r, y[i])
        family_free(&s)


def block(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const double[:, ::1] R, const Py_ssize_t[::1] y,
          const double[::1] curvature, double[:, ::1] out, signed char[:, ::1] state, double[:, ::1] normal, signed char[:, ::1] tight,
          double[::1] gap):
    """Write the block step from R at scores F, the label states of its face, one more normal of the face and the block gap.

    ``tight`` (n, l) flags the tight rows of a general matrix, whose differences are further normals; it has 0 rows for other families.
    ``gap`` may have 0 rows when it is not wanted.
    """
    cdef Family s
    cdef Py_ssize_t i, n = F.shape[0]
    cdef bint listed = tight.shape[0] == n, gaps = gap.shape[0] == n
    cdef double *f
    cdef double *r
    cdef double *new
    cdef double *direction
    cdef double found
    cdef int code
    check_labels(y, n, k)
    demand(F.shape[1] == k and R.shape[0] == n and R.shape[1] == k and out.shape[0] == n and out.shape[1] == k and curvature.shape[0] == n,
           "scores, r and the answer must be (n, k), curvatures (n,)")
    demand(state.shape[0] == n and state.shape[1] == k and normal.shape[0] == n and normal.shape[1] == k, "states and normals must be (n, k)")
    demand(gap.shape[0] == 0 or gaps, "gaps must be (n,) or none")
    if n == 0:
        return
    bind(&s, kind, k, parameters)
    if tight.shape[0] and not (listed and tight.shape[1] == s.l):
        family_free(&s)
        raise ValueError("flags of tight rows must be (n, l) or none")
    if kind == ZERO_ONE and not gaps and k <= BLOCKS:
        with nogil:
            memset(&normal[0, 0], 0, n * k * sizeof(double))
            code = zero_one_blocks(&s, &F[0, 0], &R[0, 0], &y[0], &curvature[0], n, &out[0, 0], &state[0, 0])
            family_free(&s)
        if code != 0:
            raise MemoryError("no memory for the lanes")
        return
    with nogil:
        f = s.work + 8 * s.kp
        r = s.work + 9 * s.kp
        new = s.work + 10 * s.kp
        direction = s.work + 11 * s.kp
        for i in range(n):
            memcpy(f, &F[i, 0], k * sizeof(double))
            memcpy(r, &R[i, 0], k * sizeof(double))
            memset(direction, 0, s.kp * sizeof(double))
            if listed:
                s.tight = &tight[i, 0]
            found = s.step(&s, f, r, y[i], curvature[i], -1e300, new, &state[i, 0], direction)
            if gaps:
                gap[i] = found
            memcpy(&out[i, 0], new, k * sizeof(double))
            memcpy(&normal[i, 0], direction, k * sizeof(double))
        family_free(&s)


def games(int k, const double[::1] parameters, const double[:, ::1] F, double[:, ::1] Q, double[:, ::1] P, Py_ssize_t[::1] pivots):
    """Solve the game of a general matrix at every row of scores: the adversary's q, the predictor's p and the pivots (-1: stalled)."""
    cdef Family s
    cdef Py_ssize_t i, n = F.shape[0]
    cdef double *f
    cdef double *q
    demand(F.shape[1] == k and Q.shape[0] == n and Q.shape[1] == k and P.shape[0] == n and pivots.shape[0] == n, "scores and q must be (n, k), p (n, l)")
    bind(&s, GENERAL, k, parameters)
    if P.shape[1] != s.l:
        family_free(&s)
        raise ValueError(f"p must be (n, {s.l})")
    with nogil:
        f = s.work + 8 * s.kp
        q = s.work + 9 * s.kp
        for i in range(n):
            memcpy(f, &F[i, 0], k * sizeof(double))
            pivots[i] = solve_game(&s, f, q, &P[i, 0])
            memcpy(&Q[i, 0], q, k * sizeof(double))
        family_free(&s)
