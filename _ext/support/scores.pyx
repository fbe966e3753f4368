"""Scores F = X Theta and sums X'R of sparse rows with many classes, by tiles of classes, and standardised rows: all without the GIL.

SciPy's product reads a row of Theta, k numbers, for each value of X, from memory where Theta is large. Here TILE classes of the features that
occur are copied together and serve all rows before the next tile, so that Theta is read once. Products are rounded before they are added
(meson.build turns contraction off) and added in the order of the row's values: the bits are those of the loop

    f_j = 0;  f_j += x_e theta[column_e, j]  for every value e of the row,

at any instruction set, and do not depend on how rows or classes are divided among calls.
"""

from libc.stdlib cimport calloc, malloc, free
from libc.string cimport memcpy, memset

from adv_check cimport check_list, check_rows, check_starts, demand
from adv_linear cimport sparse_scores
from adv_simd cimport LANES, zeros
from adv_stored cimport Stored, standardise, take_rows

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


def adjoint(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, int d, const double[::1] numbers,
            const int[::1] labels, const long long[::1] begin, Py_ssize_t k, Py_ssize_t together, double[:, ::1] total, Py_ssize_t first,
            Py_ssize_t last):
    """Add X'R to the columns first..last - 1 of ``total`` (d, k) for CSR rows X (n, d) and R (n, k), the latter by ``begin``, labels, numbers.

    The products of ``together`` rows are added in the order of the rows, to 0; these sums are added to ``total`` in the order of their rows.
    """
    cdef Py_ssize_t tiles, i, e, at, t, c, part, entries = 0, used
    cdef Py_ssize_t *place = NULL          # (tiles + 1) where a tile's entries of R begin
    cdef Py_ssize_t *whose = NULL          # (entries) their rows, ascending within a tile
    cdef int *which = NULL                 # (entries) their classes
    cdef double *sizes = NULL              # (entries)
    cdef double *sums = NULL               # (d, TILE) of some rows
    cdef int *features = NULL              # (d) those whose sums are not 0
    cdef signed char *seen = NULL          # (d)
    cdef double x
    check_rows(values, columns, start, n, d)
    demand(start.shape[0] == n + 1, "rows must be sparse")
    demand(total.shape[0] == d and total.shape[1] == k, f"the sums must be ({d}, {k})")
    demand(0 <= first <= last <= k, f"classes must be a part of {k}")
    demand(labels.shape[0] == numbers.shape[0] and together >= 1, "every label needs a number, and a sum a row")
    check_starts(begin, n, labels.shape[0], "the beginnings of the rows of R")
    check_list(labels, k, "labels")
    if first == last or labels.shape[0] == 0:
        return
    tiles = (last - first + TILE - 1) // TILE
    for e in range(labels.shape[0]):
        entries += first <= labels[e] < last
    try:
        place = <Py_ssize_t *>calloc(tiles + 2, sizeof(Py_ssize_t))
        whose = <Py_ssize_t *>malloc((entries + 1) * sizeof(Py_ssize_t))
        which = <int *>malloc((entries + 1) * sizeof(int))
        sizes = <double *>malloc((entries + 1) * sizeof(double))
        features = <int *>malloc((d + 1) * sizeof(int))
        seen = <signed char *>calloc(d + 1, sizeof(signed char))
        sums = zeros(<Py_ssize_t>(d + 1) * TILE)
        if place == NULL or whose == NULL or which == NULL or sizes == NULL or features == NULL or seen == NULL or sums == NULL:
            raise MemoryError("no memory for the sums of a tile of classes")
        with nogil:
            for e in range(labels.shape[0]):
                if first <= labels[e] < last:
                    place[(labels[e] - first) // TILE + 2] += 1
            for t in range(tiles):
                place[t + 2] += place[t + 1]
            for i in range(n):
                for e in range(begin[i], begin[i + 1]):
                    if first <= labels[e] < last:
                        t = (labels[e] - first) // TILE
                        at = place[t + 1]
                        place[t + 1] += 1
                        whose[at], which[at], sizes[at] = i, labels[e], numbers[e]
            for t in range(tiles):
                at = place[t]
                while at < place[t + 1]:
                    part = whose[at] // together
                    used = 0
                    while at < place[t + 1] and whose[at] // together == part:
                        c = which[at] - first - t * TILE
                        for e in range(start[whose[at]], start[whose[at] + 1]):
                            if not seen[columns[e]]:
                                seen[columns[e]] = 1
                                features[used] = columns[e]
                                used += 1
                            x = values[e] * sizes[at]
                            sums[<Py_ssize_t>columns[e] * TILE + c] += x
                        at += 1
                    for e in range(used):
                        seen[features[e]] = 0
                        for c in range(min(<Py_ssize_t>TILE, last - first - t * TILE)):
                            total[features[e], first + t * TILE + c] += sums[<Py_ssize_t>features[e] * TILE + c]
                        memset(sums + <Py_ssize_t>features[e] * TILE, 0, TILE * sizeof(double))
    finally:
        free(place)
        free(whose)
        free(which)
        free(sizes)
        free(features)
        free(seen)
        free(sums)


def standardised(const float[::1] single, const double[::1] whole, const long long[::1] at, Py_ssize_t n, int own, bint constant,
                 const double[::1] mean, const double[::1] inverse, const double[::1] shift, double[:, ::1] X):
    """Write n stored rows to X (n, d), the numbers x of column j as (x - mean_j) inverse_j + shift_j; arguments as in `ascent_row_blocks.solve`.

    The bits are those of NumPy, which takes one operation after the other.
    """
    cdef Stored stored
    cdef Py_ssize_t i
    take_rows(&stored, single, whole, at, n, own, constant, mean, inverse, shift)
    demand(X.shape[0] == n and X.shape[1] == stored.d, f"X must be {n} x {stored.d}")
    with nogil:
        for i in range(n):
            standardise(&stored, i, &X[i, 0])
