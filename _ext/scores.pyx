"""Scores F = X Theta of sparse rows with many classes, by tiles of classes and without the GIL.

SciPy's product reads a row of Theta, k numbers, for each value of X, from memory where Theta is large. Here TILE classes of the features that
occur are copied together and serve all rows before the next tile, so that Theta is read once. Products are rounded before they are added
(meson.build turns contraction off) and added in the order of the row's values: the bits are those of the loop

    f_j = 0;  f_j += x_e theta[column_e, j]  for every value e of the row,

at any instruction set, and do not depend on how rows or classes are divided among calls.
"""

from libc.stdlib cimport calloc, malloc, free
from libc.string cimport memcpy, memset

from adv_check cimport check_rows, demand
from adv_linear cimport sparse_scores
from adv_simd cimport LANES, zeros

cdef enum:
    TILE = 64            # classes whose weights lie together


def sparse(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, int d, const double[:, ::1] theta,
           double[:, ::1] F, Py_ssize_t first, Py_ssize_t last):
    """Write the scores of the classes first..last - 1 for CSR rows X (n, d) and Theta (d, k) into their columns of F (n, k)."""
    cdef Py_ssize_t k = F.shape[1], i, e, c, used = 0, begin, width, padded
    cdef int *place                        # (d) a feature's row of the tile, from 1
    cdef int *features                     # (used) features that occur
    cdef int *own                          # (values) rows of the tile
    cdef double *tile = NULL
    cdef double f[TILE]
    check_rows(values, columns, start, n, d)
    demand(start.shape[0] == n + 1, "rows must be sparse")
    demand(theta.shape[0] == d and theta.shape[1] == k and F.shape[0] == n, "theta must be (d, k) and the scores (n, k)")
    demand(0 <= first <= last <= k, f"classes must be a part of {k}")
    if first == last:
        return
    place = <int *>calloc(d + 1, sizeof(int))
    features = <int *>malloc((min(<Py_ssize_t>d, values.shape[0]) + 1) * sizeof(int))
    own = <int *>malloc((values.shape[0] + 1) * sizeof(int))
    try:
        if place == NULL or features == NULL or own == NULL:
            raise MemoryError("no memory for the features that occur")
        for e in range(values.shape[0]):
            if place[columns[e]] == 0:
                features[used] = columns[e]
                used += 1
                place[columns[e]] = <int>used
            own[e] = place[columns[e]] - 1
        tile = zeros(max(used, <Py_ssize_t>1) * TILE)
        if tile == NULL:
            raise MemoryError("no memory for a tile of theta")
        with nogil:
            begin = first
            while begin < last:
                width = min(<Py_ssize_t>TILE, last - begin)
                padded = (width + LANES - 1) // LANES * LANES
                for c in range(used):
                    memcpy(tile + c * padded, &theta[features[c], begin], width * sizeof(double))
                    if padded > width:
                        memset(tile + c * padded + width, 0, (padded - width) * sizeof(double))
                for i in range(n):
                    e = start[i]
                    sparse_scores(&values[0] + e, own + e, start[i + 1] - e, tile, <int>padded, f)
                    memcpy(&F[i, begin], f, width * sizeof(double))
                begin += width
    finally:
        free(place)
        free(features)
        free(own)
        free(tile)
