"""Games over many outcomes (advcli/learners/costs/games.py): one example at a time by a few columns of its own, without the GIL.

At scores s of the l predictions the game of the outcomes a_1, .., a_m is

    min over p  max over k of (p - s).a_k   =   max over C in conv(a_1, .., a_m) of  min_j C_j - s.C

Its solution needs at most l outcomes. The game over an example's own columns, a matrix of them, is solved by the simplex method of
`adv_general`; at its p all outcomes are looked at, and the one that is best against p joins the columns until none gains.
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy

from adv_bind cimport family_free
from adv_check cimport demand
from adv_families cimport GENERAL
from adv_family cimport Family
from adv_general cimport solve_game
from adv_loop cimport bind
from adv_simd cimport zeros
from cpython.exc cimport PyErr_CheckSignals
from libc.stdlib cimport free

cdef enum:
    TILE = 256
    MOST_ROUNDS = 1000


cdef inline Py_ssize_t best_outcome(const double *A, Py_ssize_t m, int l, const double *p, const double *s, double *sums, double *value) noexcept nogil:
    """Return the outcome of the largest (p - s).a_k, the first of equal ones, A being (l, m); the value goes to *value."""
    cdef Py_ssize_t first, count, t, best = 0
    cdef double most = -INFINITY, u
    cdef int j
    first = 0
    while first < m:
        count = m - first if m - first < TILE else TILE
        for t in range(count):
            sums[t] = 0.0
        for j in range(l):
            u = p[j] - s[j]
            row = A + j * m + first
            for t in range(count):
                sums[t] += u * row[t]
        for t in range(count):
            if sums[t] > most:
                most = sums[t]
                best = first + t
        first += TILE
    value[0] = most
    return best


cdef inline int one_game(Family *f, const double *A, Py_ssize_t m, const double *s, double tolerance, int width, Py_ssize_t *columns, double *q,
                         double *p, double *own, double *sums, double *lower, double *upper) noexcept nogil:
    """Solve one example's game; return its number of columns, of which there is one at least."""
    cdef int l = f.l, count = 0, kept, i, j, round
    cdef Py_ssize_t best
    cdef double value, least, most
    matrix, scores, trial, shares = f.extra, own, own + f.kp, own + f.kp + l
    while count < width and columns[count] >= 0:
        count += 1
    for i in range(l):
        trial[i] = 0.0
    if count == 0:
        columns[0] = best_outcome(A, m, l, trial, s, sums, &value)
        count = 1
    lower[0], upper[0] = -INFINITY, INFINITY
    for round in range(MOST_ROUNDS):
        f.k = count
        for j in range(count):
            value = 0.0
            for i in range(l):
                matrix[<Py_ssize_t>i * f.kp + j] = A[i * m + columns[j]]
                value -= s[i] * A[i * m + columns[j]]
            scores[j] = value
        solve_game(f, scores, shares, trial)
        least, value = INFINITY, 0.0
        for i in range(l):
            most = 0.0
            for j in range(count):
                most += matrix[<Py_ssize_t>i * f.kp + j] * shares[j]
            value -= s[i] * most
            least = most if most < least else least
        lower[0] = least + value
        for j in range(count):
            q[j] = shares[j]
        best = best_outcome(A, m, l, trial, s, sums, &most)
        if most < upper[0] or round == 0:
            upper[0] = most
            memcpy(p, trial, l * sizeof(double))
        if not most - lower[0] > tolerance:
            break
        for j in range(count):
            if columns[j] == best:
                return count  # what is left is rounding of the simplex method
        if count == width:
            kept = 0
            for j in range(count):
                if q[j] > 0.0:
                    columns[kept], q[kept] = columns[j], q[j]
                    kept += 1
            if kept == count:
                return count
            count = kept
        columns[count] = best
        q[count] = 0.0
        count += 1
    return count


def games(const double[:, ::1] outcomes, const double[:, ::1] S, double tolerance, Py_ssize_t[:, ::1] chosen, double[:, ::1] Q, double[:, ::1] P,
          double[::1] lower, double[::1] upper):
    """Solve the games of outcomes (l, m) at scores S (n, l) until the players' values are at most ``tolerance`` apart.

    ``chosen`` (n, w), w above l, holds the outcomes that each example begins with, from the left, -1 behind them; an example without any takes
    those that the one before ended with. They become those of the answer, with their shares Q (n, w). P (n, l) are the predictor's
    distributions, ``lower`` (n,) the values at Q, ``upper`` (n,) those at P.
    """
    import numpy

    cdef Py_ssize_t l = outcomes.shape[0], m = outcomes.shape[1], n = S.shape[0], w = chosen.shape[1], i, j
    cdef double least = INFINITY, most = -INFINITY
    cdef bint outside = False
    cdef int count
    demand(l >= 1 and m >= 1, "no outcomes")
    demand(l < w <= 4096, f"examples have more columns than the {l} predictions and at most 4096, not {w}")
    demand(S.shape[1] == l and chosen.shape[0] == n and Q.shape[0] == n and Q.shape[1] == w and P.shape[0] == n and P.shape[1] == l,
           "scores and p must be (n, l), columns and q (n, w)")
    demand(lower.shape[0] == n and upper.shape[0] == n, "values must be (n,)")
    for i in range(n):
        for j in range(w):
            outside |= not -1 <= chosen[i, j] < m
    demand(not outside, f"columns must lie in [0, {m}), or be -1")
    if n == 0:
        return
    cdef Family f
    cdef double[::1] blank = numpy.zeros(1 + l * w)
    blank[0] = l
    cdef const double *A = &outcomes[0, 0]
    bind(&f, GENERAL, <int>w, blank)
    cdef double *own = zeros(2 * f.kp + l + TILE)
    if own == NULL:
        family_free(&f)
        raise MemoryError("no memory for the columns of an example")
    for i in range(l * m):
        least = A[i] if A[i] < least else least
        most = A[i] if A[i] > most else most
    f.unit = most - least if most > least else 1.0
    try:
        with nogil:
            for i in range(n):
                if chosen[i, 0] < 0 and i > 0:
                    memcpy(&chosen[i, 0], &chosen[i - 1, 0], w * sizeof(Py_ssize_t))
                count = one_game(&f, A, m, &S[i, 0], tolerance, <int>w, &chosen[i, 0], &Q[i, 0], &P[i, 0], own, own + 2 * f.kp + l, &lower[i],
                                 &upper[i])
                for j in range(count, w):
                    chosen[i, j] = -1
                    Q[i, j] = 0.0
                if i % 4096 == 4095:
                    with gil:
                        PyErr_CheckSignals()
    finally:
        free(own)
        family_free(&f)
