"""Dual block ascent for a surrogate under label noise: Theta(q) = -1/(lambda n) sum_i x_i (M q_i - t_i)' instead of sum_i x_i (q_i - e_y)'.

maximise  1/n sum_i s_i G(q_i) - lambda/2 tr(Theta M^-1 Theta');  M = I is backward, M = C'C forward correction (advcli/learners/correction.py).
One visit takes the surrogate's exact block step at curvature ``largest`` >= the largest eigenvalue of M, so no visit lowers the objective.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from cpython.exc cimport PyErr_CheckSignals

from adv_simd cimport vec, load, store, splat, LANES
from adv_family cimport Family
from adv_bind cimport family_free
from adv_check cimport check_labels, check_rows, demand
from adv_linear cimport Rows, rows_of, row_scores, row_update
from adv_loop cimport bind, checked_width, shuffle
include "width.pxi"


def sweep(int kind, int k, const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d,
          const Py_ssize_t[::1] y, const double[::1] square, const double[::1] sample, const double[:, ::1] M, double[:, ::1] R,
          double[:, ::1] theta, double scale, double largest, double skip, Py_ssize_t passes, unsigned long long seed):
    """Run passes over all rows, in a fresh order each, in place on R (n, kp) = q - e_y and theta (d, kp), both padded with zeros.

    ``M`` (k, kp) has padded rows; ``scale`` = 1/(lambda sum s); blocks whose gap is at most ``skip`` are read, not moved.
    """
    cdef Family s
    cdef Rows x
    cdef int j, v, kp = checked_width(k)
    cdef Py_ssize_t i, at, done
    cdef uint64_t state = seed
    cdef double weight, gap
    cdef vec a
    check_rows(values, columns, start, n, d)
    check_labels(y, n, k)
    demand(square.shape[0] == n and sample.shape[0] == n, "every row needs a squared length and a weight")
    demand(R.shape[0] == n and R.shape[1] == kp and theta.shape[0] == d and theta.shape[1] == kp and M.shape[0] == k and M.shape[1] == kp,
           "R must be (n, kp), theta (d, kp) and M (k, kp), padded")
    x = rows_of(values, columns, start, n, <int>d)
    bind(&s, kind, k, values[:0])  # families without parameters
    order = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    touched = <int *>malloc(kp * sizeof(int))
    try:
        if order == NULL or touched == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        f, new, moved = s.work + 8 * kp, s.work + 9 * kp, s.work + 10 * kp
        with nogil:
            for i in range(n):
                order[i] = i
            for done in range(passes):
                with gil:
                    PyErr_CheckSignals()
                shuffle(order, n, &state)
                for at in range(n):
                    i = order[at]
                    weight = sample[i]
                    row_scores(&x, i, &theta[0, 0], kp, f)
                    r = &R[i, 0]
                    gap = s.step(&s, f, r, y[i], weight * square[i] * scale * largest, skip, new, NULL, NULL)
                    if not gap > skip:
                        continue
                    for v in range(kp // LANES):
                        store(moved, v, splat(0.0))
                    for j in range(k):
                        if new[j] != r[j]:
                            a = splat(new[j] - r[j])
                            for v in range(kp // LANES):
                                store(moved, v, load(moved, v) + a * load(&M[j, 0], v))
                            r[j] = new[j]
                    row_update(&x, i, &theta[0, 0], kp, moved, -weight * scale, touched)
    finally:
        free(touched)
        free(order)
        family_free(&s)
