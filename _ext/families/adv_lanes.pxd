# Zero-one values and block steps of many rows at once, one row a lane: no branch depends on the data.
#
# tau = max over m of (sum of the m largest scores - 1)/m needs no support, so for few classes sort the lanes by an insertion network and take the
# maximum (docs/notes/oracles.md, section 9); for many classes climb from max - 1 by Newton in lanes, as in `threshold`. The two thresholds of a
# block step (docs/notes/oracles.md, section 2) come from one sorted list.

from libc.math cimport INFINITY
from libc.stdlib cimport malloc, free
from libc.string cimport memcpy, memset

from adv_family cimport Family, FIXED, TIED, FREE
from adv_simd cimport vec, load, load_first, store, splat, vmax, vmin, vsum, if_greater, count_greater, zeros, LANES

cdef enum:
    NETWORK = 22     # classes up to which the network wins
    BLOCKS = 40      # the same for block steps
    GROUPS = 2       # vectors in flight


cdef inline void gather(const double *F, Py_ssize_t n, Py_ssize_t i, int k, double *buffer) noexcept nogil:
    """buffer[j, lane] = F[i + lane, j]; lanes beyond the last row repeat it."""
    cdef int lane, j, width = GROUPS * LANES
    for lane in range(width):
        row = F + (i + lane if i + lane < n else n - 1) * k
        for j in range(k):
            buffer[j * width + lane] = row[j]


cdef inline vec below(double bound, int count) noexcept nogil:
    """Return a vector whose first ``count`` lanes are ``bound``; nothing lies below the others."""
    cdef double[8] lanes
    cdef int lane
    for lane in range(LANES):
        lanes[lane] = bound if lane < count else -INFINITY
    return load(lanes, 0)


cdef inline bint label_leads(const double *f, const double *d, double t, const double *r, double w, Py_ssize_t y, int k, vec bound,
                             vec tail) noexcept nogil:
    """Whether the block step from r at scores f + t d ends at r = 0: where f + t d + w r is more than 1 larger at y than elsewhere.

    Then the thresholds of oracles.md, section 2, are those of the label alone: f_y + w (r_y + 1) - 1 and, w below it, the upper bound of the
    others. Numbers that are none are left to the step. ``bound`` and ``tail`` are `below` -1 in all lanes and in the last k % LANES.
    """
    cdef int j, found = 0
    cdef vec by = splat(t), scale = splat(w), own = splat(f[y] + t * d[y]), mine = splat(r[y]), x
    for j in range(k // LANES):
        x = (load(f, j) + by * load(d, j) - own) + scale * (load(r, j) - mine)
        found += count_greater(bound, x)
    j = k % LANES
    if j:
        f, d, r = f + k - j, d + k - j, r + k - j
        x = (load_first(f, j) + by * load_first(d, j) - own) + scale * (load_first(r, j) - mine)
        found += count_greater(tail, x)
    return found == k - 1


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


cdef inline void thresholds(double *buffer, int k, double *tau) noexcept nogil:
    if k <= NETWORK:
        network_thresholds(buffer, k, tau)
    else:
        newton_thresholds(buffer, k, tau)


cdef inline int zero_one_values(const double *F, const Py_ssize_t *y, Py_ssize_t n, int k, double *value) noexcept nogil:
    """Write 1 + tau(f) - f_y for every row of F (n, k), without copies beyond a few vectors; -1 when memory is short."""
    cdef int lane, width = GROUPS * LANES
    cdef double *buffer = zeros((k + 1) * width)
    cdef Py_ssize_t i = 0
    if buffer == NULL:
        return -1
    tau = buffer + k * width
    while i < n:
        gather(F, n, i, k, buffer)
        thresholds(buffer, k, tau)
        for lane in range(width):
            if i + lane < n:
                value[i + lane] = 1.0 + tau[lane] + (buffer[lane] - F[(i + lane) * k + y[i + lane]])
        i += width
    free(buffer)
    return 0


cdef inline void steps_in_lanes(double *g, double *q, double *ordered, double *face, const double *weight, double *total, int k) noexcept nogil:
    """Write block steps from q = r + e_y at scores g (k, lanes) to q, their label states to ``face`` and their sums before the division to ``total``.

    A lane is right where its total is its weight, but for rounding; the scores are lost.
    """
    cdef int j, group
    cdef Py_ssize_t v
    cdef vec a, b, upper, lower, one_less, less, peak, scale, inverse, zero = splat(0.0)
    cdef vec fixed = splat(FIXED), tied = splat(TIED), loose = splat(FREE)
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


cdef inline int zero_one_blocks(Family *s, const double *F, const double *R, const Py_ssize_t *y, const double *w, Py_ssize_t n, double *out,
                                signed char *state) noexcept nogil:
    """Write the block steps and label states of rows F, R (n, k); -1 when memory is short.

    A row whose w is so small that the quadratic term drowns is left to the family's own step.
    """
    cdef int j, lane, k = s.k, width = GROUPS * LANES, waiting = 0
    cdef double *g = zeros((4 * k + 2) * width)
    q, ordered, face, weight = g + k * width, g + 2 * k * width, g + 3 * k * width, g + 4 * k * width
    cdef double *total = weight + width
    cdef Py_ssize_t *rows = <Py_ssize_t *>malloc(width * sizeof(Py_ssize_t))
    cdef vec bound = splat(-1.0), tail = below(-1.0, k % LANES)
    cdef Py_ssize_t i, at
    if g == NULL or rows == NULL:
        free(g)
        free(rows)
        return -1
    memset(out, 0, n * k * sizeof(double))
    memset(state, FIXED, n * k)
    for i in range(n):
        if label_leads(F + i * k, F + i * k, 0.0, R + i * k, w[i], y[i], k, bound, tail):
            state[i * k + y[i]] = TIED
        else:
            for j in range(k):
                g[j * width + waiting], q[j * width + waiting] = F[i * k + j], R[i * k + j]
            q[y[i] * width + waiting] += 1.0
            weight[waiting], rows[waiting] = w[i], i
            waiting += 1
        if waiting < width and (i < n - 1 or waiting == 0):
            continue
        steps_in_lanes(g, q, ordered, face, weight, total, k)
        for lane in range(waiting):
            at = rows[lane]
            row = out + at * k
            if 0.999 * weight[lane] < total[lane] < 1.001 * weight[lane]:
                for j in range(k):
                    row[j] = q[j * width + lane]
                    state[at * k + j] = <signed char>face[j * width + lane]
                row[y[at]] -= 1.0
            else:
                alone(s, F + at * k, R + at * k, y[at], w[at], row, state + at * k)
        waiting = 0
    free(g)
    free(rows)
    return 0


cdef inline void alone(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double *out, signed char *state) noexcept nogil:
    """Write one row's block step by the family's own function, which wants padded vectors."""
    scores, old, new = s.work + 8 * s.kp, s.work + 9 * s.kp, s.work + 10 * s.kp
    memcpy(scores, f, s.k * sizeof(double))
    memcpy(old, r, s.k * sizeof(double))
    s.step(s, scores, old, y, w, -1e300, new, state, s.work + 11 * s.kp)
    memcpy(out, new, s.k * sizeof(double))


ctypedef struct Tiles:
    int k
    Py_ssize_t count         # rows
    Py_ssize_t tiles         # of GROUPS * LANES rows each, class by class
    double *block            # owned
    double *f                # scores at the beginning of the line
    double *d                # and their change along it
    double *q                # r + e_y of the center
    double *moved            # where the last steps ended, in q
    double *face             # and their label states
    double *share            # weight of every row's part of the slope, 0 beyond the last
    double *own              # change of the label's score
    double *scratch          # two tiles, their weights and their totals


cdef inline int tiles_new(Tiles *t, Py_ssize_t count, int k) noexcept nogil:
    """Make tiles for as many rows; 0, or -1 when memory is short."""
    cdef int width = GROUPS * LANES
    cdef Py_ssize_t tiles = (count + width - 1) // width, size = tiles * k * width
    t.k = k
    # nothing is read before it is written; vectors begin at multiples of 64 bytes
    t.block = <double *>malloc((5 * size + 2 * tiles * width + (2 * k + 2) * width + 8) * sizeof(double))
    if t.block == NULL:
        return -1
    t.f = t.block + (-(<size_t>t.block) % 64) // sizeof(double)
    t.d, t.q, t.moved, t.face, t.share = t.f + size, t.f + 2 * size, t.f + 3 * size, t.f + 4 * size, t.f + 5 * size
    t.own = t.share + tiles * width
    t.scratch = t.own + tiles * width
    return 0


cdef inline void tiles_fill(Tiles *t, const double *F, const double *dF, const double *R, const Py_ssize_t *y, const double *sample,
                            const Py_ssize_t *rows, Py_ssize_t count) noexcept nogil:
    """Take some of the rows, at most as many as the tiles are for."""
    cdef int lane, j, k = t.k, width = GROUPS * LANES
    cdef Py_ssize_t tile, at, i
    t.count = count
    t.tiles = (count + width - 1) // width
    for tile in range(t.tiles):
        for lane in range(width):
            at = tile * width + lane
            i = rows[at if at < count else count - 1]
            f, d, q = t.f + tile * k * width + lane, t.d + tile * k * width + lane, t.q + tile * k * width + lane
            a, b, c = F + i * k, dF + i * k, R + i * k
            for j in range(k):
                f[j * width] = a[j]
                d[j * width] = b[j]
                q[j * width] = c[j]
            q[y[i] * width] += 1.0
            t.own[at] = b[y[i]]
            t.share[at] = 0.0 if at >= count else sample[i] if sample != NULL else 1.0


cdef inline bint all_settled(const double *total, const double *weight) noexcept nogil:
    """Whether the sums of steps are their weights but for rounding, in every lane."""
    cdef int group
    cdef vec a, w, one = splat(1.0), zero = splat(0.0), found = splat(0.0)
    for group in range(GROUPS):
        a, w = load(total, group), load(weight, group)
        found = found + if_greater(a, splat(0.999) * w, if_greater(splat(1.001) * w, a, one, zero), zero)
    return vsum(found) == GROUPS * LANES


cdef inline double tiles_step(Family *s, Tiles *t, double step, double w, const Py_ssize_t *y, const Py_ssize_t *rows) noexcept nogil:
    """Take block steps at scores f + step d and return the sum of share_i r_i.d_i over the rows."""
    cdef int j, lane, group, k = t.k, width = GROUPS * LANES
    cdef double *g = t.scratch
    cdef double *ordered = g + k * width
    cdef double *weight = ordered + k * width
    cdef double *total = weight + width
    cdef Py_ssize_t tile, at
    cdef vec by = splat(step), a, kept = splat(0.0), other = splat(0.0)
    for group in range(GROUPS):
        store(weight, group, splat(w))
    for tile in range(t.tiles):
        q, d, face = t.moved + tile * k * width, t.d + tile * k * width, t.face + tile * k * width
        for j in range(GROUPS * k):
            store(g, j, load(t.f + tile * k * width, j) + by * load(d, j))
        memcpy(q, t.q + tile * k * width, k * width * sizeof(double))
        steps_in_lanes(g, q, ordered, face, weight, total, k)
        if not all_settled(total, weight):
            for lane in range(width):
                at = tile * width + lane
                if not (0.999 * w < total[lane] < 1.001 * w):  # beyond the last row too, whose parts must be numbers
                    lane_alone(s, t, tile, lane, step, w, y[rows[at if at < t.count else t.count - 1]])
        for group in range(GROUPS):
            a = splat(0.0) - load(t.own + tile * width, group)
            for j in range(k):
                a = a + load(q, GROUPS * j + group) * load(d, GROUPS * j + group)
            if group == 0:
                kept = kept + load(t.share + tile * width, group) * a
            else:
                other = other + load(t.share + tile * width, group) * a
    return vsum(kept + other)


cdef inline void lane_alone(Family *s, Tiles *t, Py_ssize_t tile, int lane, double step, double w, Py_ssize_t y) noexcept nogil:
    """Take one row's block step by the family's own function."""
    cdef int j, k = t.k, width = GROUPS * LANES
    scores, old, new = s.work + 8 * s.kp, s.work + 9 * s.kp, s.work + 10 * s.kp
    cdef Py_ssize_t at
    cdef signed char *state = <signed char *>(s.work + 12 * s.kp)
    for j in range(k):
        at = (tile * k + j) * width + lane
        scores[j], old[j] = t.f[at] + step * t.d[at], t.q[at]
    old[y] -= 1.0
    s.step(s, scores, old, y, w, -1e300, new, state, s.work + 11 * s.kp)
    new[y] += 1.0
    for j in range(k):
        at = (tile * k + j) * width + lane
        t.moved[at], t.face[at] = new[j], state[j]


cdef inline void tiles_write(const Tiles *t, const Py_ssize_t *y, const Py_ssize_t *rows, double *R, signed char *state) noexcept nogil:
    """Write where the last steps ended to their rows of R and state (n, k)."""
    cdef int j, lane, k = t.k, width = GROUPS * LANES
    cdef Py_ssize_t at, i
    for at in range(t.count):
        i, lane = rows[at], <int>(at % width)
        q, face = t.moved + (at - lane) * k + lane, t.face + (at - lane) * k + lane
        r, label = R + i * k, state + i * k
        for j in range(k):
            r[j] = q[j * width]
            label[j] = <signed char>face[j * width]
        r[y[i]] -= 1.0


cdef inline bint is_zero(const double *r, int k, vec bound, vec tail) noexcept nogil:
    """Whether the squares of all numbers lie below the bound of `below`."""
    cdef int j, found = 0
    cdef vec x
    for j in range(k // LANES):
        found += count_greater(bound, load(r, j) * load(r, j))
    j = k % LANES
    if j:
        x = load_first(r + k - j, j)
        found += count_greater(tail, x * x)
    return found == k


cdef inline int zero_one_judged(const double *F, const double *R, const Py_ssize_t *y, const double *weight, Py_ssize_t n, int k,
                                double *sums) noexcept nogil:
    """Write the weighted sums of the values, of c(r) and of the block gaps of the rows; -1 when memory is short.

    All are 0 where r is and the label's score is 1 above the others; near the optimum of separable data few rows go in lanes.
    """
    cdef int j, lane, group, width = GROUPS * LANES, waiting = 0
    cdef double *f = zeros((2 * k + 5) * width)
    cdef double *q = f + k * width
    cdef double *tau = q + k * width
    cdef double *share = tau + width
    cdef double *own = share + width
    cdef double *top = own + width
    cdef double *gap = top + width
    cdef vec a, b, c, level, value = splat(0.0), offset = splat(0.0), gaps = splat(0.0), one = splat(1.0)
    cdef vec bound = splat(-1.0), tail = below(-1.0, k % LANES), tiny = splat(1e-300), tiny_tail = below(1e-300, k % LANES)
    cdef Py_ssize_t i
    if f == NULL:
        return -1
    for i in range(n):
        if not (is_zero(R + i * k, k, tiny, tiny_tail) and label_leads(F + i * k, F + i * k, 0.0, R + i * k, 0.0, y[i], k, bound, tail)):
            lane = waiting
            for j in range(k):
                f[j * width + lane], q[j * width + lane] = F[i * k + j], R[i * k + j]
            q[y[i] * width + lane] += 1.0
            own[lane], share[lane] = F[i * k + y[i]], weight[i]
            waiting += 1
        if waiting < width and (i < n - 1 or waiting == 0):
            continue
        for lane in range(waiting, width):
            share[lane] = 0.0  # what is left of earlier rows
        waiting = 0
        for group in range(GROUPS):
            level = load(f, group)
            for j in range(1, k):
                level = vmax(level, load(f, GROUPS * j + group))
            store(top, group, level)
            # relative to the largest, against cancellation
            a = splat(0.0)
            b = load(q, group)
            for j in range(k):
                c = load(q, GROUPS * j + group)
                a = a + c * (load(f, GROUPS * j + group) - level)
                b = vmax(b, c)
            store(gap, group, b - a)
            offset = offset + load(share, group) * (one - b)
        thresholds(f, k, tau)
        for group in range(GROUPS):
            a = load(share, group)
            b = load(tau, group)
            value = value + a * (one + b + (load(top, group) - load(own, group)))
            gaps = gaps + a * (b + load(gap, group))
    sums[0], sums[1], sums[2] = vsum(value), vsum(offset), vsum(gaps)
    free(f)
    return 0
