"""Projective dependency trees: the best tree of every sentence, by Eisner's algorithm (1996).

A sentence of n words has scores (n + 1, n + 1) of arcs: row the head, 0 the root, column the word; the diagonal and column 0 are not read.
Charts hold the best score of a span i..j of words in four shapes: headed by its left or by its right end, and complete, or ending in an arc
between its two ends whose dependent may still take words outside. Filling them takes O(n^3) sums of two charts' numbers. A chart that is read
by columns is kept transposed, so that all sums run along memory. No split is stored: those of the best tree's spans are computed again.
Ties go to the first split, and to the first word below the root.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

from adv_check cimport check_starts, demand

cdef enum:
    OPEN_RIGHT = 0
    OPEN_LEFT = 1
    RIGHT = 2
    LEFT = 3
    CHARTS = 6


cdef inline double best_sum(const double *a, const double *b, Py_ssize_t m) noexcept nogil:
    """Return the largest a_s + b_s; four maxima hide the latency of one."""
    cdef double m0 = -INFINITY, m1 = -INFINITY, m2 = -INFINITY, m3 = -INFINITY, x0, x1, x2, x3
    cdef Py_ssize_t s = 0
    while s + 4 <= m:
        x0, x1, x2, x3 = a[s] + b[s], a[s + 1] + b[s + 1], a[s + 2] + b[s + 2], a[s + 3] + b[s + 3]
        m0 = x0 if x0 > m0 else m0
        m1 = x1 if x1 > m1 else m1
        m2 = x2 if x2 > m2 else m2
        m3 = x3 if x3 > m3 else m3
        s += 4
    while s < m:
        x0 = a[s] + b[s]
        m0 = x0 if x0 > m0 else m0
        s += 1
    m0 = m0 if m0 > m1 else m1
    m2 = m2 if m2 > m3 else m3
    return m0 if m0 > m2 else m2


cdef inline Py_ssize_t first_best(const double *a, const double *b, Py_ssize_t m) noexcept nogil:
    """Return the first s whose a_s + b_s is the largest."""
    cdef double best = best_sum(a, b, m)
    cdef Py_ssize_t s
    for s in range(m):
        if a[s] + b[s] == best:
            return s
    return 0  # numbers that are none


cdef void fill(const double *scores, Py_ssize_t n, double *charts) noexcept nogil:
    """Fill the charts of one sentence."""
    cdef double *right = charts
    cdef double *right_to = charts + n * n
    cdef double *left = charts + 2 * n * n
    cdef double *left_to = charts + 3 * n * n
    cdef double *open_right = charts + 4 * n * n
    cdef double *open_left_to = charts + 5 * n * n
    cdef Py_ssize_t i, j, width
    cdef double both
    for i in range(n):
        right[i * n + i] = right_to[i * n + i] = left[i * n + i] = left_to[i * n + i] = 0.0
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            both = best_sum(right + i * n + i, left_to + j * n + i + 1, width)
            open_right[i * n + j] = both + scores[(i + 1) * (n + 1) + j + 1]
            open_left_to[j * n + i] = both + scores[(j + 1) * (n + 1) + i + 1]
            right[i * n + j] = right_to[j * n + i] = best_sum(open_right + i * n + i + 1, right_to + j * n + i + 1, width)
            left[i * n + j] = left_to[j * n + i] = best_sum(left + i * n + i, open_left_to + j * n + i, width)


cdef double trace(const double *scores, Py_ssize_t n, const double *charts, int *spans, int *heads) noexcept nogil:
    """Return the largest score of a tree and fill its heads, 0 the root; ``spans`` has room for 3 (3 n + 3) numbers."""
    cdef const double *right = charts
    cdef const double *right_to = charts + n * n
    cdef const double *left = charts + 2 * n * n
    cdef const double *left_to = charts + 3 * n * n
    cdef const double *open_right = charts + 4 * n * n
    cdef const double *open_left_to = charts + 5 * n * n
    cdef Py_ssize_t a, b, c, top = 0, waiting = 0
    cdef int shape
    cdef double best = -INFINITY, whole
    for c in range(n):
        whole = scores[c + 1] + left[c] + right_to[(n - 1) * n + c]
        if whole > best:
            best, top = whole, c
    heads[top] = 0
    waiting = push(spans, push(spans, 0, LEFT, 0, top), RIGHT, top, n - 1)
    while waiting > 0:
        waiting -= 1
        shape, a, b = spans[3 * waiting], spans[3 * waiting + 1], spans[3 * waiting + 2]
        if shape == RIGHT:
            c = a + 1 + first_best(open_right + a * n + a + 1, right_to + b * n + a + 1, b - a)
            waiting = push(spans, push(spans, waiting, RIGHT, c, b), OPEN_RIGHT, a, c)
        elif shape == LEFT:
            c = a + first_best(left + a * n + a, open_left_to + b * n + a, b - a)
            waiting = push(spans, push(spans, waiting, LEFT, a, c), OPEN_LEFT, c, b)
        else:
            if shape == OPEN_RIGHT:
                heads[b] = <int>a + 1
            else:
                heads[a] = <int>b + 1
            c = a + first_best(right + a * n + a, left_to + b * n + a + 1, b - a)
            waiting = push(spans, push(spans, waiting, RIGHT, a, c), LEFT, c + 1, b)
    return best


cdef inline Py_ssize_t push(int *spans, Py_ssize_t waiting, int shape, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """Put a span of several words on the stack; return how many wait there."""
    if a == b:
        return waiting
    spans[3 * waiting], spans[3 * waiting + 1], spans[3 * waiting + 2] = shape, <int>a, <int>b
    return waiting + 1


def best(const double[::1] scores, const long long[::1] start, double[::1] value, int[::1] heads):
    """Fill the largest score of a tree of every sentence, value (S,), and the heads of its words (N,).

    Sentence s has the words start[s] to start[s + 1], and its n words (n + 1)^2 scores, row by row, behind those of the sentences before it.
    The value is -infinity where every tree has an arc of that score; its heads then mean nothing.
    """
    cdef Py_ssize_t s, n, S = value.shape[0], longest = 0, filled = 0, at = 0
    cdef double *charts
    cdef int *spans
    check_starts(start, S, heads.shape[0], "starts of sentences")
    for s in range(S):
        n = start[s + 1] - start[s]
        demand(n > 0, "a sentence has no words")
        longest = n if n > longest else longest
        filled += (n + 1) * (n + 1)
    demand(scores.shape[0] == filled, f"these sentences have {filled} scores")
    charts = <double *>malloc(CHARTS * longest * longest * sizeof(double) + 1)
    spans = <int *>malloc(9 * (longest + 1) * sizeof(int))
    try:
        if charts == NULL or spans == NULL:
            raise MemoryError
        with nogil:
            for s in range(S):
                n = start[s + 1] - start[s]
                fill(&scores[at], n, charts)
                value[s] = trace(&scores[at], n, charts, spans, &heads[start[s]])
                at += (n + 1) * (n + 1)
    finally:
        free(charts)
        free(spans)
