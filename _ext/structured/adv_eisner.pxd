# Projective dependency trees by Eisner's algorithm (1996): the best tree, and the best one at every number of wrong heads.
#
# A sentence of n words has scores (n + 1, n + 1) of arcs: row the head, 0 the root, column the word; the diagonal and column 0 are not read.
# Charts hold the best score of a span i..j of words in four shapes: headed by its left or by its right end, and complete, or ending in an arc
# between its two ends whose dependent may still take words outside. Filling them takes O(n^3) sums of two charts' numbers. A chart that is read
# by columns is kept transposed, so that all sums run along memory. No split is stored: those of the best tree's spans are computed again.
# Ties go to the first split, and to the first word below the root.

from libc.math cimport INFINITY

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


cdef inline void fill(const double *scores, Py_ssize_t n, double *charts) noexcept nogil:
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


cdef inline double trace(const double *scores, Py_ssize_t n, const double *charts, int *spans, int *heads) noexcept nogil:
    """Return the largest score of a tree and fill its heads, 0 the root; ``spans`` has room for 4 (3 n + 3) numbers."""
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
    waiting = push(spans, push(spans, 0, LEFT, 0, top, 0), RIGHT, top, n - 1, 0)
    while waiting > 0:
        waiting -= 1
        shape, a, b = spans[4 * waiting], spans[4 * waiting + 1], spans[4 * waiting + 2]
        if shape == RIGHT:
            c = a + 1 + first_best(open_right + a * n + a + 1, right_to + b * n + a + 1, b - a)
            waiting = push(spans, push(spans, waiting, RIGHT, c, b, 0), OPEN_RIGHT, a, c, 0)
        elif shape == LEFT:
            c = a + first_best(left + a * n + a, open_left_to + b * n + a, b - a)
            waiting = push(spans, push(spans, waiting, LEFT, a, c, 0), OPEN_LEFT, c, b, 0)
        else:
            if shape == OPEN_RIGHT:
                heads[b] = <int>a + 1
            else:
                heads[a] = <int>b + 1
            c = a + first_best(right + a * n + a, left_to + b * n + a + 1, b - a)
            waiting = push(spans, push(spans, waiting, RIGHT, a, c, 0), LEFT, c + 1, b, 0)
    return best


cdef inline Py_ssize_t push(int *spans, Py_ssize_t waiting, int shape, Py_ssize_t a, Py_ssize_t b, Py_ssize_t g) noexcept nogil:
    """Put a span of several words, with g wrong heads where these count, on the stack; return how many wait there."""
    if a == b:
        return waiting
    spans[4 * waiting], spans[4 * waiting + 1], spans[4 * waiting + 2], spans[4 * waiting + 3] = shape, <int>a, <int>b, <int>g
    return waiting + 1


# ---- the best tree at every number of wrong heads ----------------------------------------------------------------------
# The same charts with a row of numbers a span: entry g is the best score with g wrong heads among the words of the span that have one there.
cdef inline Py_ssize_t level_numbers(Py_ssize_t n) noexcept nogil:
    """Numbers that `fill_levels` needs room for."""
    return 4 * n * n * (n + 1)


cdef inline void convolve(const double *a, Py_ssize_t p, const double *b, Py_ssize_t q, Py_ssize_t most, double *out) noexcept nogil:
    """out_{g + e} = the larger of itself and a_g + b_e, for g up to p and e up to q, g + e up to ``most``."""
    cdef Py_ssize_t g, e
    cdef double x, y
    cdef double *to
    for g in range((p if p < most else most) + 1):
        x = a[g]
        if x == -INFINITY:
            continue
        to = out + g
        for e in range((q if q < most - g else most - g) + 1):
            y = x + b[e]
            to[e] = y if y > to[e] else to[e]


cdef inline double *span_of(double *charts, Py_ssize_t n, int shape, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Return the numbers of a span in a shape."""
    return charts + ((shape * n + i) * n + j) * (n + 1)


cdef inline void fill_levels(const double *scores, const int *truth, Py_ssize_t n, Py_ssize_t most, double *charts, double *level) noexcept nogil:
    """level (n + 1,) = the largest score of a tree at every number, up to ``most``, of heads that differ from the truth; -infinity without one."""
    cdef Py_ssize_t i, j, s, g, width
    cdef double x
    cdef double *both
    cdef double *right
    cdef double *left
    for i in range(4 * n * n):
        for g in range(most + 1):
            charts[i * (n + 1) + g] = -INFINITY
    for i in range(n):
        span_of(charts, n, RIGHT, i, i)[0] = 0.0
        span_of(charts, n, LEFT, i, i)[0] = 0.0
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            right = span_of(charts, n, OPEN_RIGHT, i, j)
            left = span_of(charts, n, OPEN_LEFT, i, j)
            both = level  # scratch of n + 1 numbers
            for g in range((width if width < most else most) + 1):
                both[g] = -INFINITY
            for s in range(i, j):
                convolve(span_of(charts, n, RIGHT, i, s), s - i, span_of(charts, n, LEFT, s + 1, j), j - s - 1, most, both)
            x = scores[(i + 1) * (n + 1) + j + 1]
            s = truth[j] != i + 1
            for g in range(width if width < most + 1 - s else most + 1 - s):
                right[g + s] = both[g] + x
            x = scores[(j + 1) * (n + 1) + i + 1]
            s = truth[i] != j + 1
            for g in range(width if width < most + 1 - s else most + 1 - s):
                left[g + s] = both[g] + x
            for s in range(i + 1, j + 1):
                convolve(span_of(charts, n, OPEN_RIGHT, i, s), s - i, span_of(charts, n, RIGHT, s, j), j - s, most, span_of(charts, n, RIGHT, i, j))
            for s in range(i, j):
                convolve(span_of(charts, n, LEFT, i, s), s - i, span_of(charts, n, OPEN_LEFT, s, j), j - s, most, span_of(charts, n, LEFT, i, j))
    for g in range(n + 1):
        level[g] = -INFINITY
    for i in range(n):
        right, left = span_of(charts, n, RIGHT, i, n - 1), span_of(charts, n, LEFT, 0, i)
        for s in range((i if i < most else most) + 1):
            x = left[s] + scores[i + 1]
            for g in range(n - i if n - i < most + 1 - s - (truth[i] != 0) else most + 1 - s - (truth[i] != 0)):
                if x + right[g] > level[s + g + (truth[i] != 0)]:
                    level[s + g + (truth[i] != 0)] = x + right[g]


cdef inline Py_ssize_t split_level(
    double *charts, Py_ssize_t n, int one, int other, Py_ssize_t a, Py_ssize_t b, int by_open, double value, Py_ssize_t g, Py_ssize_t *left
) noexcept nogil:
    """Return the first split of a span whose two parts have this value with g wrong heads, and set the number in the first part."""
    cdef Py_ssize_t s, e, first = a + 1 if by_open == OPEN_RIGHT else a, last = b + 1 if by_open == OPEN_RIGHT else b
    cdef Py_ssize_t begin
    cdef double *p
    cdef double *q
    for s in range(first, last):
        begin = s + 1 if by_open == RIGHT else s
        p, q = span_of(charts, n, one, a, s), span_of(charts, n, other, begin, b)
        for e in range((g if g < s - a else s - a) + 1):
            if g - e <= b - begin and p[e] + q[g - e] == value:
                left[0] = e
                return s
    left[0] = 0
    return first  # numbers that are none


cdef inline void trace_levels(
    const double *scores, const int *truth, Py_ssize_t n, double *charts, double value, Py_ssize_t g, int *spans, int *heads
) noexcept nogil:
    """Fill the heads of the tree of this value with g wrong heads; ``spans`` has room for 4 (3 n + 3) numbers."""
    cdef Py_ssize_t a, b, c, e, s = 0, waiting = 0, top = 0
    cdef int shape, wrong
    cdef double best
    cdef double *right
    cdef double *left
    cdef bint found = False
    for c in range(n):
        heads[c] = 0
    for c in range(n):
        wrong = truth[c] != 0
        right, left = span_of(charts, n, RIGHT, c, n - 1), span_of(charts, n, LEFT, 0, c)
        for e in range(c + 1):
            if 0 <= g - wrong - e <= n - 1 - c and left[e] + scores[c + 1] + right[g - wrong - e] == value:
                top, s, found = c, e, True
                break
        if found:
            break
    heads[top] = 0
    waiting = push(spans, push(spans, 0, LEFT, 0, top, s), RIGHT, top, n - 1, g - (truth[top] != 0) - s)
    while waiting > 0:
        waiting -= 1
        shape, a, b, g = spans[4 * waiting], spans[4 * waiting + 1], spans[4 * waiting + 2], spans[4 * waiting + 3]
        if g < 0 or g > b - a:  # numbers that are none
            g = 0
        best = span_of(charts, n, shape, a, b)[g]
        if shape == RIGHT:
            c = split_level(charts, n, OPEN_RIGHT, RIGHT, a, b, OPEN_RIGHT, best, g, &e)
            waiting = push(spans, push(spans, waiting, RIGHT, c, b, g - e), OPEN_RIGHT, a, c, e)
        elif shape == LEFT:
            c = split_level(charts, n, LEFT, OPEN_LEFT, a, b, LEFT, best, g, &e)
            waiting = push(spans, push(spans, waiting, LEFT, a, c, e), OPEN_LEFT, c, b, g - e)
        else:
            if shape == OPEN_RIGHT:
                heads[b] = <int>a + 1
                g -= truth[b] != a + 1
            else:
                heads[a] = <int>b + 1
                g -= truth[a] != b + 1
            best = -INFINITY
            for c in range(a, b):  # the sums before the arc's score was added, whose rounding cannot be undone
                right, left = span_of(charts, n, RIGHT, a, c), span_of(charts, n, LEFT, c + 1, b)
                for e in range((g if g < c - a else c - a) + 1):
                    if g - e <= b - c - 1 and right[e] + left[g - e] > best:
                        best, s, top = right[e] + left[g - e], e, c
            if best == -INFINITY:
                top, s = a, 0
            waiting = push(spans, push(spans, waiting, RIGHT, a, top, s), LEFT, top + 1, b, g - s)


cdef inline Py_ssize_t numbers_of(const long long[::1] start, int root, Py_ssize_t *place) noexcept nogil:
    """Return how many numbers all sentences have of (n + root) (n + 1) each: the scores of their arcs, or without ``root`` the costs of their
    heads; write where each sentence's begin, unless ``place`` is NULL."""
    cdef Py_ssize_t s, n, filled = 0
    for s in range(start.shape[0] - 1):
        n = start[s + 1] - start[s]
        if place != NULL:
            place[s] = filled
        filled += (n + root) * (n + 1)
    return filled
