"""Ascent of the quadratic function that the dual is on its faces, within the linear pieces of c (advcli/solvers/coordinate/face_steps.py)."""

from libc.stdlib cimport free, malloc
from libc.string cimport memset

from adv_check cimport check_positions, demand
from adv_quadratic cimport PADDED, PRODUCTS, ROUNDS, SETTLED, SWEEPS, Quadratic, ascend_quadratic, scratch, subtract

cdef enum:
    MOST = 1 << 20


def along_directions(double[:, ::1] G, const double[:, ::1] B):
    """Multiply G_ml (m, m) by b_m'b_l in place, for directions B (m, k), few of whose entries are not 0."""
    cdef Py_ssize_t m = G.shape[0], t, l
    cdef int k = <int>B.shape[1], j
    cdef double *columns      # (k, m)
    cdef double *row          # (m)
    cdef double *out
    demand(0 < m < MOST and G.shape[1] == m and B.shape[0] == m and 0 < B.shape[1] < MOST, "G must be (m, m) and directions (m, k)")
    columns = <double *>malloc((k + 1) * m * sizeof(double))
    if columns == NULL:
        raise MemoryError("no memory for the directions of an ascent on faces")
    row = columns + k * m
    with nogil:
        for t in range(m):
            for j in range(k):
                columns[j * m + t] = B[t, j]
        for t in range(m):
            memset(row, 0, m * sizeof(double))
            for j in range(k):
                if B[t, j] != 0.0:
                    subtract(row, columns + j * m, -B[t, j], m)
            out = &G[t, 0]
            for l in range(m):
                out[l] = out[l] * row[l]
    free(columns)


def ascend(const double[:, ::1] G, double[::1] gradient, double[:, ::1] slack, const double[:, ::1] rate, const Py_ssize_t[::1] owner,
           double[::1] z, int rounds=ROUNDS, int sweeps=SWEEPS, int products=PRODUCTS, double tol=SETTLED):
    """Ascend (1) of `adv_quadratic.pxd` in place on z (m,), ``gradient`` g - G z (m,) and ``slack`` (n, c) >= 0 at z; return the rounds made.

    G (m, m) is symmetric with a positive diagonal, ``rate`` is (m, c), c a multiple of 8, and coordinate t belongs to row ``owner[t]``. A round
    makes so many ``sweeps`` and a step of ``products`` with G, twice as many as the last where that was cut nowhere. No round follows a sweep
    whose squared moves are ``tol`` of the first's.
    """
    cdef Quadratic s
    cdef Py_ssize_t m = G.shape[0], n = slack.shape[0]
    cdef double *work
    cdef int made
    demand(0 < m < MOST and G.shape[1] == m and gradient.shape[0] == m and z.shape[0] == m, "G must be (m, m), its gradient and z (m,)")
    demand(rate.shape[0] == m and owner.shape[0] == m and slack.shape[1] == rate.shape[1], "rates must be (m, c), owners (m,), slacks (n, c)")
    demand(0 < n < MOST and slack.shape[1] < MOST and slack.shape[1] % PADDED == 0, f"rows have slacks in multiples of {PADDED}")
    demand(1 <= sweeps and 0 <= products, "a round makes a sweep at least")
    check_positions(owner, n, "owners of coordinates")
    s.G, s.owner, s.g, s.z = &G[0, 0], &owner[0], &gradient[0], &z[0]
    s.slack = &slack[0, 0] if slack.shape[1] else NULL
    s.rate = &rate[0, 0] if slack.shape[1] else NULL
    work = scratch(&s, m, n, <int>slack.shape[1])
    if work == NULL:
        raise MemoryError("no memory for the directions of an ascent on faces")
    with nogil:
        made = ascend_quadratic(&s, rounds, sweeps, products, tol)
    free(work)
    return made
