"""Dual block ascent for a surrogate under label noise: Theta(q) = -1/(lambda n) sum_i x_i (M q_i - t_i)' instead of sum_i x_i (q_i - e_y)'.

maximise  1/n sum_i s_i G(q_i) - lambda/2 tr(Theta M^-1 Theta');  M = I is backward, M = C'C forward correction (advcli/learners/correction.py).
One visit takes the surrogate's exact block step at curvature ``largest`` >= the largest eigenvalue of M, so no visit lowers the objective.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from cpython.exc cimport PyErr_CheckSignals

from adv_simd cimport vec, load, store, splat, LANES
from adv_family cimport Family
from adv_bind cimport family_new, family_free
from adv_linear cimport dense_scores, dense_update, sparse_scores, sparse_update
from adv_loop cimport shuffle


def sweep(int kind, int k, const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d,
          const Py_ssize_t[::1] y, const double[::1] square, const double[::1] sample, const double[:, ::1] M, double[:, ::1] R,
          double[:, ::1] theta, double scale, double largest, double skip, Py_ssize_t passes, unsigned long long seed):
    """Run passes over all rows, in a fresh order each, in place on R (n, kp) = q - e_y and theta (d, kp), both padded with zeros.

    ``M`` (k, kp) has padded rows; ``scale`` = 1/(lambda sum s); blocks whose gap is at most ``skip`` are read, not moved.
    """
    cdef Family s
    cdef int code = family_new(&s, kind, k, NULL, 0), j, v, kp
    cdef Py_ssize_t i, at, done
    cdef uint64_t state = seed
    cdef double weight, gap
    cdef double *f
    cdef double *new
    cdef double *moved
    cdef double *r
    cdef vec a
    cdef Py_ssize_t *order = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    cdef int *touched = NULL
    try:
        if code != 0 or order == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        kp = s.kp
        if R.shape[1] != kp or theta.shape[1] != kp or M.shape[1] != kp:
            raise ValueError("R, theta and M must be padded")
        touched = <int *>malloc(kp * sizeof(int))
        if touched == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        f = s.work + 8 * kp
        new = s.work + 9 * kp
        moved = s.work + 10 * kp
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
                    if columns.shape[0] == 0:
                        dense_scores(&values[i * d], <int>d, &theta[0, 0], kp, f)
                    else:
                        sparse_scores(&values[0] + start[i], &columns[0] + start[i], start[i + 1] - start[i], &theta[0, 0], kp, f)
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
                    if columns.shape[0] == 0:
                        dense_update(&values[i * d], <int>d, &theta[0, 0], kp, moved, -weight * scale)
                    else:
                        sparse_update(&values[0] + start[i], &columns[0] + start[i], start[i + 1] - start[i], &theta[0, 0], kp, moved,
                                      -weight * scale, touched)
    finally:
        free(touched)
        free(order)
        family_free(&s)


