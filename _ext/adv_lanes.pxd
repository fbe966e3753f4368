# Zero-one values and block steps of many rows at once, one row a lane: no branch depends on the data.
#
# tau = max over m of (sum of the m largest scores - 1)/m needs no support, so for few classes sort the lanes by an insertion network and take the
# maximum (docs/notes/oracles.md, section 9); for many classes climb from max - 1 by Newton in lanes, as in `threshold`. The two thresholds of a
# block step (docs/notes/oracles.md, section 2) come from one sorted list.

from libc.stdlib cimport free
from libc.string cimport memcpy

from adv_family cimport Family, FIXED, TIED, FREE
from adv_simd cimport vec, load, store, splat, vmax, vmin, vsum, if_greater, zeros, LANES

cdef enum:
    NETWORK = 22     # classes up to which the network wins
    BLOCKS = 40      # the same for block steps
    GROUPS = 2       # vectors in flight


cdef inline void gather(const double *F, Py_ssize_t n, Py_ssize_t i, int k, double *buffer) noexcept nogil:
    """buffer[j, lane] = F[i + lane, j]; lanes beyond the last row repeat it."""
    cdef int lane, j, width = GROUPS * LANES
    cdef const double *row
    for lane in range(width):
        row = F + (i + lane if i + lane < n else n - 1) * k
        for j in range(k):
            buffer[j * width + lane] = row[j]


cdef inline void sort_lanes(double *buffer, int k) noexcept nogil:
    """Sort every lane, the largest first."""
    cdef int i, j
    cdef vec a, b, c, d
    for i in range(1, k):
        # carry the new score up through the sorted ones: the larger stays, the smaller moves on
        a = load(buffer, 2 * i)
        b = load(buffer, 2 * i + 1)
        for j in range(i):
            c = load(buffer, 2 * j)
            d = load(buffer, 2 * j + 1)
            store(buffer, 2 * j, vmax(c, a))
            store(buffer, 2 * j + 1, vmax(d, b))
            a = vmin(c, a)
            b = vmin(d, b)
        store(buffer, 2 * i, a)
        store(buffer, 2 * i + 1, b)


cdef inline void network_thresholds(double *buffer, int k, double *tau) noexcept nogil:
    """Write tau - max of every lane, and leave the maxima in buffer[0]."""
    cdef int j
    cdef vec s, t, best, other, top, peak, inverse
    sort_lanes(buffer, k)
    top = load(buffer, 0)
    peak = load(buffer, 1)
    s = splat(-1.0)
    t = splat(-1.0)
    best = s
    other = t
    for j in range(1, k):
        inverse = splat(1.0 / (j + 1))
        s = s + (load(buffer, 2 * j) - top)
        t = t + (load(buffer, 2 * j + 1) - peak)
        best = vmax(best, s * inverse)
        other = vmax(other, t * inverse)
    store(tau, 0, best)
    store(tau, 1, other)


cdef inline void newton_thresholds(double *buffer, int k, double *tau) noexcept nogil:
    cdef int j, iteration
    cdef vec top, peak, s, t, c, e, x, z, level, other, before, former, zero = splat(0.0), one = splat(1.0)
    top = load(buffer, 0)
    peak = load(buffer, 1)
    for j in range(1, k):
        top = vmax(top, load(buffer, 2 * j))
        peak = vmax(peak, load(buffer, 2 * j + 1))
    level = splat(-1.0)
    other = splat(-1.0)
    before = splat(0.0)
    former = splat(0.0)
    for iteration in range(k + 8):
        s = zero
        t = zero
        c = zero
        e = zero
        for j in range(k):
            x = load(buffer, 2 * j) - top - level
            z = load(buffer, 2 * j + 1) - peak - other
            s = s + vmax(x, zero)
            t = t + vmax(z, zero)
            c = c + if_greater(x, zero, one, zero)
            e = e + if_greater(z, zero, one, zero)
        level = level + (s - one) / c
        other = other + (t - one) / e
        # the active sets only shrink: equal counts are equal sets
        if vsum((c - before) * (c - before) + (e - former) * (e - former)) == 0.0:
            break
        before = c
        former = e
    store(buffer, 0, top)
    store(buffer, 1, peak)
    store(tau, 0, level)
    store(tau, 1, other)


cdef inline int zero_one_values(const double *F, const Py_ssize_t *y, Py_ssize_t n, int k, double *value) noexcept nogil:
    """Write 1 + tau(f) - f_y for every row of F (n, k), without copies beyond a few vectors; -1 when memory is short."""
    cdef int lane, width = GROUPS * LANES
    cdef double *buffer = zeros((k + 1) * width)
    cdef double *tau
    cdef Py_ssize_t i = 0
    if buffer == NULL:
        return -1
    tau = buffer + k * width
    while i < n:
        gather(F, n, i, k, buffer)
        if k <= NETWORK:
            network_thresholds(buffer, k, tau)
        else:
            newton_thresholds(buffer, k, tau)
        for lane in range(width):
            if i + lane < n:
                value[i + lane] = 1.0 + tau[lane] + (buffer[lane] - F[(i + lane) * k + y[i + lane]])
        i += width
    free(buffer)
    return 0


cdef inline int zero_one_blocks(Family *s, const double *F, const double *R, const Py_ssize_t *y, const double *w, Py_ssize_t n, double *out,
                                signed char *state) noexcept nogil:
    """Write the block steps and label states of rows F, R (n, k); -1 when memory is short.

    A row whose w is so small that the quadratic term drowns is left to the family's own step.
    """
    cdef int j, lane, k = s.k, group, width = GROUPS * LANES
    cdef double *g = zeros((4 * k + 2) * width)
    cdef double *q = g + k * width
    cdef double *ordered = g + 2 * k * width
    cdef double *face = g + 3 * k * width
    cdef double *weight = g + 4 * k * width
    cdef double *total = weight + width
    cdef double *row
    cdef Py_ssize_t i = 0, at, v
    cdef vec a, b, upper, lower, one_less, less, peak, scale, inverse, zero = splat(0.0)
    cdef vec fixed = splat(FIXED), tied = splat(TIED), loose = splat(FREE)
    if g == NULL:
        return -1
    while i < n:
        gather(F, n, i, k, g)
        gather(R, n, i, k, q)
        for lane in range(width):
            at = i + lane if i + lane < n else n - 1
            q[y[at] * width + lane] += 1.0
            weight[lane] = w[at]
        for group in range(GROUPS):
            peak = load(g, group)
            for j in range(1, k):
                peak = vmax(peak, load(g, GROUPS * j + group))
            scale = load(weight, group)
            for j in range(k):
                v = GROUPS * j + group
                a = load(g, v) - peak + scale * load(q, v)
                store(g, v, a)
                store(ordered, v, a)
        sort_lanes(ordered, k)
        for group in range(GROUPS):
            # relative to the largest, against cancellation
            peak = load(ordered, group)
            one_less = splat(-1.0)
            less = one_less - load(weight, group)
            upper = one_less
            lower = less
            for j in range(1, k):
                inverse = splat(1.0 / (j + 1))
                a = load(ordered, GROUPS * j + group) - peak
                one_less = one_less + a
                less = less + a
                upper = vmax(upper, one_less * inverse)
                lower = vmax(lower, less * inverse)
            b = zero
            for j in range(k):
                v = GROUPS * j + group
                a = load(g, v) - peak
                store(face, v, if_greater(a, upper, tied, if_greater(a, lower, loose, fixed)))
                a = vmax(vmin(a, upper) - lower, zero)
                store(q, v, a)
                b = b + a
            store(total, group, b)
            scale = splat(1.0) / b
            for j in range(k):
                v = GROUPS * j + group
                store(q, v, load(q, v) * scale)
        for lane in range(min(width, n - i)):
            at = i + lane
            row = out + at * k
            if 0.999 * weight[lane] < total[lane] < 1.001 * weight[lane]:
                for j in range(k):
                    row[j] = q[j * width + lane]
                    state[at * k + j] = <signed char>face[j * width + lane]
                row[y[at]] -= 1.0
            else:
                alone(s, F + at * k, R + at * k, y[at], w[at], row, state + at * k)
        i += width
    free(g)
    return 0


cdef inline void alone(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double *out, signed char *state) noexcept nogil:
    """Write one row's block step by the family's own function, which wants padded vectors."""
    cdef double *scores = s.work + 8 * s.kp
    cdef double *old = s.work + 9 * s.kp
    cdef double *new = s.work + 10 * s.kp
    memcpy(scores, f, s.k * sizeof(double))
    memcpy(old, r, s.k * sizeof(double))
    s.step(s, scores, old, y, w, -1e300, new, state, s.work + 11 * s.kp)
    memcpy(out, new, s.k * sizeof(double))
