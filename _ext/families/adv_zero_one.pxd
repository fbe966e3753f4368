# Zero-one adversarial surrogate, and Crammer-Singer, which is the same game against the fixed prediction y.
#
# AL0-1 (Fathony et al. 2016, eq. 5; 2018, Theorem 5): S(f, y) = max over label sets of (sum of f over the set + size - 1)/size - f_y
#   = 1 + tau(f) - f_y,  tau the threshold of the projection on the simplex: sum_j (f_j - tau)_+ = 1.
# Block (docs/notes/oracles.md, section 2): g = f + w q; u solves sum (g-u)_+ = 1, mu solves sum (g-mu)_+ = 1 + w; q' = (min(g, u) - mu)_+ / w.
# CS: c(r) = 1 - q_y is linear, so the block is the projection of q + (f + 1 - e_y)/w on the simplex.

from libc.math cimport fabs

from adv_simd cimport vec, load, store, splat, vmax, vmin, vsum, hmax, if_greater, count_greater, FEW, FEW_VECTORS, LANES, maximum
from adv_simd cimport counted_threshold, threshold, two_thresholds, unfused
from adv_family cimport Family, FIXED, TIED, FREE
from adv_lanes cimport GROUPS, thresholds


cdef inline double normalise(double *q, int kp) noexcept nogil:
    """Divide q >= 0 by its sum and return that sum (0 leaves q as it is)."""
    cdef int j
    cdef vec s = splat(0.0)
    cdef double total
    for j in range(kp // LANES):
        s = s + load(q, j)
    total = vsum(s)
    if total > 0.0:
        s = splat(1.0 / total)
        for j in range(kp // LANES):
            store(q, j, load(q, j) * s)
    return total


cdef inline bint rounded(double total, double wanted, int k) noexcept nogil:
    """Whether the sum of k numbers is ``wanted`` > 0 but for their rounding. A branch, which is guessed: nothing waits for the sum."""
    return fabs(total - wanted) < 8.9e-16 * k * wanted


cdef inline void uniform_on_support(const double *b, double tau, int kp, double *q) noexcept nogil:
    """Write the adversary's uniform distribution on {j: b_j > tau}."""
    cdef int j
    cdef vec level = splat(tau), zero = splat(0.0), one = splat(1.0)
    for j in range(kp // LANES):
        store(q, j, if_greater(load(b, j), level, one, zero))
    normalise(q, kp)


cdef inline double shift(Family *s, const double *f, double *b, int kp) noexcept nogil:
    """Write b = f - max f, -inf on the padding, and return max f; removes cancellation for large scores."""
    cdef int j
    cdef double top
    cdef vec level
    for j in range(kp // LANES):
        store(b, j, load(f, j) + load(s.mask, j))
    top = maximum(b, kp)
    level = splat(top)
    for j in range(kp // LANES):
        store(b, j, load(b, j) - level)
    return top


cdef inline double zero_one_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef double *b = s.work
    cdef double tau
    cdef double largest
    shift(s, f, b, s.kp)
    tau = threshold(b, s.kp, -1.0, 1.0)
    uniform_on_support(b, tau, s.kp, r)
    largest = maximum(r, s.kp)
    c[0] = 1.0 - largest
    r[y] -= 1.0
    return 1.0 + tau - b[y]


cdef inline void beside_own(Family *s, const double *f, Py_ssize_t y, double *b, int kp) noexcept nogil:
    """Write b = f - f_y, -inf on the padding: as `shift`, without waiting for a largest score."""
    cdef int j
    cdef vec own = splat(f[y])
    for j in range(kp // LANES):
        store(b, j, load(f, j) + load(s.mask, j) - own)


cdef inline double zero_one_value(Family *s, const double *f, Py_ssize_t y) noexcept nogil:
    cdef double *b = s.work
    cdef double tau
    beside_own(s, f, y, b, s.kp)
    tau = threshold(b, s.kp, s.hint[0] if s.hint != NULL else -1.0, 1.0)
    if s.hint != NULL:
        s.hint[0] = tau
    return 1.0 + tau


cdef inline double zero_one_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    cdef double *q = s.work
    cdef int j
    # e_y is added in registers: a vector that holds a number just stored waits for it
    for j in range(s.kp // LANES):
        store(q, j, load(r, j) + load(s.mask, j) + load(s.corner - y, j))
    return 1.0 - maximum(q, s.kp)


cdef inline double zero_one_block(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, int kp) noexcept nogil:
    """The block step. What takes time are sums that wait for each other and branches that the processor guesses wrong. So the thresholds of few labels
    are counted without a branch, those of more begin beside each other, all from the last visit's, and a sum that only confirms is not waited for."""
    cdef int j, v, near
    b, g = s.work, s.work + kp
    cdef double tau, largest, gap, u, mu, total, start
    cdef vec[FEW_VECTORS] of_b, of_g
    cdef vec scale = splat(w), m, inner, q, upper, lower, zero = splat(0.0)
    cdef const double *corner = s.corner - y
    beside_own(s, f, y, b, kp)
    if r[y] == 0.0 and skip >= 0.0:
        # q = e_y: nothing to gain when no other score comes within 1 of the label's, which is most visits late in a fit
        near = 0
        m = splat(-1.0)
        for j in range(kp // LANES):
            near += count_greater(load(b, j), m)
        if near == 1:
            return 0.0
    # q = r + e_y goes to out; sum_j b_j q_j over the k lanes only (b is -inf on the padding)
    m = zero
    inner = zero
    for j in range(kp // LANES):
        q = load(r, j) + load(corner, j)
        store(out, j, q)
        m = vmax(m, q)
        inner = inner + q * vmax(load(b, j), splat(-1.7976931348623157e308))
        store(g, j, load(b, j) + scale * q)
    largest = hmax(m)
    start = s.hint[0] if s.hint != NULL else -1.0
    if kp <= FEW:
        # both lists in one loop, whose sums do not wait for each other; the numbers of label y are at least 0, as `counted_threshold` asks
        for v in range(kp // LANES):
            of_b[v] = of_g[v] = zero
        for j in range(s.k):
            m, q = splat(b[j]), splat(g[j])
            for v in range(kp // LANES):
                of_b[v] = of_b[v] + vmax(m, load(b, v))
                of_g[v] = of_g[v] + vmax(q, load(g, v))
        tau = counted_threshold(b, of_b, s.k, kp, 1.0)
    else:
        tau = threshold(b, kp, start, 1.0)
    if s.hint != NULL:
        s.hint[0] = tau
    gap = tau + largest - vsum(inner)
    if gap <= skip:
        return gap
    if kp <= FEW:
        u, mu = counted_threshold(g, of_g, s.k, kp, 1.0), counted_threshold(g, of_g, s.k, kp, 1.0 + w)
    else:
        u, mu = start + w * largest, start
        two_thresholds(g, kp, 1.0, &u, 1.0 + w, &mu)
    total = 0.0
    if w > 0.0:
        upper = splat(u)
        lower = splat(mu)
        scale = splat(1.0 / w)
        m = zero
        for j in range(kp // LANES):
            q = vmax(vmin(load(g, j), upper) - lower, zero)
            m = m + q
            store(out, j, unfused(q, scale) - load(corner, j))  # rounded, so that r is 0 where q is e_y
        total = vsum(m)  # w, but for rounding
    if not rounded(total, w, s.k):
        if 0.999 * w < total < 1.001 * w:
            for j in range(kp // LANES):
                store(out, j, vmax(vmin(load(g, j), upper) - lower, zero) * scale)
            normalise(out, kp)
        else:  # w so small that the quadratic term has drowned: the oracle's vertex is the answer
            uniform_on_support(b, tau, kp, out)
        for j in range(kp // LANES):
            store(out, j, load(out, j) - load(corner, j))
    if state != NULL:
        for j in range(s.k):
            state[j] = TIED if g[j] > u else (FREE if g[j] > mu else FIXED)
    return gap


# kp as a constant lets the compiler unroll every loop over the labels: the common small sizes have their own copy.
cdef inline double zero_one_step_4(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return zero_one_block(s, f, r, y, w, skip, out, state, 4)


cdef inline double zero_one_step_8(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return zero_one_block(s, f, r, y, w, skip, out, state, 8)


cdef inline double zero_one_step_12(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return zero_one_block(s, f, r, y, w, skip, out, state, 12)


cdef inline double zero_one_step_16(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return zero_one_block(s, f, r, y, w, skip, out, state, 16)


cdef inline double zero_one_step_24(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return zero_one_block(s, f, r, y, w, skip, out, state, 24)


cdef inline double zero_one_step_32(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return zero_one_block(s, f, r, y, w, skip, out, state, 32)


cdef inline double zero_one_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return zero_one_block(s, f, r, y, w, skip, out, state, s.kp)


cdef inline double cs_value(Family *s, const double *f, Py_ssize_t y) noexcept nogil:
    cdef int j
    cdef vec m = splat(0.0), own = splat(f[y]), one = splat(1.0)
    cdef const double *corner = s.corner - y
    for j in range(s.kp // LANES):
        m = vmax(m, (load(f, j) + load(s.mask, j) - own) + (one - load(corner, j)))
    return hmax(m)


cdef inline double cs_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef int j
    cdef double top = cs_value(s, f, y)
    for j in range(s.kp):
        r[j] = 0.0
    c[0] = 0.0
    if top > 0.0:
        j = 0
        while j < s.k - 1 and (j == y or 1.0 + (f[j] - f[y]) != top):
            j += 1
        r[j], r[y], c[0] = 1.0, -1.0, 1.0
    return top


cdef inline double cs_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    return -r[y]


cdef inline double cs_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    cdef int j, best, kp = s.kp
    b, g, corner = s.work, s.work + kp, s.corner - y
    cdef double gap, t, total = 0.0
    cdef vec own = splat(f[y]), scale = splat(w), level, top, inner, q, value, sum, zero = splat(0.0), one = splat(1.0)
    # b = f + 1 - e_y less f_y, -inf on the padding
    top = inner = zero
    for j in range(kp // LANES):
        q = load(r, j) + load(corner, j)
        value = (load(f, j) + load(s.mask, j) - own) + (one - load(corner, j))
        top = vmax(top, value)
        inner = inner + q * vmax(value, splat(-1.7976931348623157e308))
        store(out, j, q)
        store(b, j, value)
        store(g, j, value + scale * q)
    gap = hmax(top) - vsum(inner)
    if gap <= skip:
        return gap
    if w > 0.0:
        if s.hint == NULL:
            t = threshold(g, kp, maximum(g, kp) - w, w)
        else:
            t = threshold(g, kp, s.hint[0], w)
            s.hint[0] = t
        level = splat(t)
        scale = splat(1.0 / w)
        sum = zero
        for j in range(kp // LANES):
            q = vmax(load(g, j) - level, zero) * scale
            sum = sum + q
            store(out, j, q)
        total = vsum(sum)
    if not rounded(total, 1.0, s.k):
        if 0.999 < total < 1.001:
            normalise(out, kp)
        else:
            best = 0
            for j in range(kp):
                out[j] = 0.0
                if j < s.k and b[j] > b[best]:
                    best = j
            out[best] = 1.0
    if state != NULL:
        for j in range(s.k):
            state[j] = FREE if out[j] > 0.0 else FIXED
    for j in range(kp // LANES):
        store(out, j, load(out, j) - load(corner, j))
    return gap


cdef inline void zero_one_gaps(const Family *s, double *f, double *r, const Py_ssize_t *y, double *gap) noexcept nogil:
    """Write tau(f) + max q - q.f, which are the gaps, q = r + e_y."""
    cdef int j, lane, k = s.k, width = GROUPS * LANES
    cdef double tau[GROUPS * 8]
    cdef vec top, peak, a, b, c, d
    for lane in range(width):
        r[y[lane] * width + lane] += 1.0
    top, peak = load(f, 0), load(f, 1)
    for j in range(1, k):
        top, peak = vmax(top, load(f, GROUPS * j)), vmax(peak, load(f, GROUPS * j + 1))
    a = b = splat(0.0)
    c, d = load(r, 0), load(r, 1)
    for j in range(k):
        # relative to the largest, against cancellation
        store(f, GROUPS * j, load(f, GROUPS * j) - top)
        store(f, GROUPS * j + 1, load(f, GROUPS * j + 1) - peak)
        a = a + load(r, GROUPS * j) * load(f, GROUPS * j)
        b = b + load(r, GROUPS * j + 1) * load(f, GROUPS * j + 1)
        c, d = vmax(c, load(r, GROUPS * j)), vmax(d, load(r, GROUPS * j + 1))
    thresholds(f, k, tau)
    store(gap, 0, load(tau, 0) + (c - a))
    store(gap, 1, load(tau, 1) + (d - b))


cdef inline void cs_gaps(const Family *s, double *f, double *r, const Py_ssize_t *y, double *gap) noexcept nogil:
    """Write max b - q.b, which are the gaps, b = f + 1 - e_y and q = r + e_y."""
    cdef int j, lane, k = s.k, width = GROUPS * LANES
    cdef vec top, peak, a, b
    for lane in range(width):
        f[y[lane] * width + lane] -= 1.0
        r[y[lane] * width + lane] += 1.0
    top, peak = load(f, 0), load(f, 1)
    for j in range(1, k):
        top, peak = vmax(top, load(f, GROUPS * j)), vmax(peak, load(f, GROUPS * j + 1))
    a = b = splat(0.0)
    for j in range(k):
        a = a + load(r, GROUPS * j) * (top - load(f, GROUPS * j))
        b = b + load(r, GROUPS * j + 1) * (peak - load(f, GROUPS * j + 1))
    store(gap, 0, a)
    store(gap, 1, b)


cdef inline int bind_zero_one(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.value, s.offset, s.step, s.gaps = zero_one_oracle, zero_one_value, zero_one_offset, zero_one_step, zero_one_gaps
    if s.kp == 4:
        s.step = zero_one_step_4
    elif s.kp == 8:
        s.step = zero_one_step_8
    elif s.kp == 12:
        s.step = zero_one_step_12
    elif s.kp == 16:
        s.step = zero_one_step_16
    elif s.kp == 24:
        s.step = zero_one_step_24
    elif s.kp == 32:
        s.step = zero_one_step_32
    return 0


cdef inline int bind_cs(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.value, s.offset, s.step, s.gaps = cs_oracle, cs_value, cs_offset, cs_step, cs_gaps
    return 0
