# Sums of hinges: Weston-Watkins and Lee-Lin-Wahba (Fathony et al. 2018, section 2.3.1), as support functions of a box.
#
# WW:  r = sum over j != y of a_j (e_j - e_y),  c = sum a_j,  a in [0,1]^(k-1);  margins g_j = 1 + f_j - f_y.
# LLW: r = sum over j != y of a_j (e_j - 1/k), c = sum a_j; margins g_j = 1 + f_j - mean f: the sum-zero constraint on the model is the
#      centring of the scores, since the smallest-norm parameters with given centred scores sum to zero over classes.
# The block in the norm of r couples the a_j only through s = sum of their changes: WW a_j = clip(a0_j + g_j/w - s), LLW
# a_j = clip(a0_j + g_j/w + s/k), so s is the root of a decreasing piecewise linear function of one variable.

from adv_simd cimport vec, load, store, splat, vmax, vmin, vsum, if_greater, count_greater, inverse, LANES
from adv_family cimport Family, FIXED, TIED, FREE
from adv_lanes cimport GROUPS


cdef inline double box_root(const double *z, const double *a, int kp, int k, int relative) noexcept nogil:
    """Return slope s with sum_j (clip(z_j + slope s, 0, 1) - a_j) = s, |s| <= k; the slope is -1 for ww and 1/k for llw.

    Newton on a piecewise linear function, kept inside the bracket that its signs have shown, from s = 0, where a row at rest stays. A shift
    moves all z alike, so that as many beyond 0 and beyond 1 as before are the same ones, and s is exact.
    """
    cdef double low = -k, high = k, s = 0.0, value, trial, slope = -1.0 if relative else 1.0 / k
    cdef int j, iteration, positive, full, above = -1, beyond = -1
    cdef vec total, v, shift, zero = splat(0.0), one = splat(1.0)
    for iteration in range(200):
        total = zero
        positive = full = 0
        shift = splat(slope * s)
        for j in range(kp // LANES):
            v = load(z, j) + shift
            total = total + (vmin(vmax(v, zero), one) - load(a, j))
            positive += count_greater(v, zero)
            full += count_greater(v, one)
        if positive == above and full == beyond:
            break
        above, beyond = positive, full
        value = vsum(total) - s
        if value > 0.0:
            low = s
        else:
            high = s
        # value / (1 - slope (positive - full))
        trial = s + value * (inverse(1 + positive - full) if relative else k * inverse(k - positive + full))
        if not (low < trial < high):
            if trial == s:
                break
            trial = 0.5 * (low + high)
            if trial == low or trial == high:
                break
            above = -1
        s = trial
    return slope * s


cdef inline double hinge_base(Family *s, const double *f, Py_ssize_t y, int relative) noexcept nogil:
    """Return what margins are measured from, relative to f_y: 0 for ww, the mean score for llw; differences keep their digits at any level."""
    cdef int j
    cdef vec sum = splat(0.0), own = splat(f[y]), beyond = splat(-1.0), zero = splat(0.0)
    if relative:
        return 0.0
    for j in range(s.kp // LANES):
        sum = sum + if_greater(load(s.mask, j), beyond, load(f, j) - own, zero)
    return vsum(sum) / s.k


cdef inline void hinge_dual(Family *s, double *r, const double *corner, double total, int kp, int relative) noexcept nogil:
    """Write r in the place of the box variables a, whose sum is ``total``; ``corner`` is e_y."""
    cdef int j
    cdef vec sum = splat(total), mean = splat(total / s.k), beyond = splat(-1.0)
    for j in range(kp // LANES):
        if relative:
            store(r, j, load(r, j) - sum * load(corner, j))
        else:
            store(r, j, load(r, j) - if_greater(load(s.mask, j), beyond, mean, splat(0.0)))


cdef inline double hinge_oracle(Family *s, const double *f, Py_ssize_t y, int relative, double *r, double *c) noexcept nogil:
    cdef int j
    cdef double value = 0.0, base = hinge_base(s, f, y, relative), count = 0.0, margin
    for j in range(s.kp):
        r[j] = 0.0
    for j in range(s.k):
        margin = 1.0 + ((f[j] - f[y]) - base)
        if j != y and margin > 0.0:
            r[j] = 1.0
            count += 1.0
            value += margin
    hinge_dual(s, r, s.corner - y, count, s.kp, relative)
    c[0] = count
    return value


cdef inline double hinge_block(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, int relative, double *out, signed char *state, int kp) noexcept nogil:
    """The block step; out holds the box variables a, a_y = 0, until it ends."""
    cdef int j, k = s.k
    z, corner = s.work, s.corner - y
    cdef double gap, shift = 0.0
    cdef vec own = splat(f[y]), base = splat(hinge_base(s, f, y, relative)), beside, keep, margin, a, total, open, by
    cdef vec zero = splat(0.0), one = splat(1.0), never = splat(-1e300), always = splat(1e300)
    beside = splat(0.0 if relative else r[y])  # a_y = 0, so r_y = -mean a under llw
    open = total = zero
    for j in range(kp // LANES):
        keep = one + load(s.mask, j) - load(corner, j)  # 1 on the labels but y
        margin = if_greater(keep, zero, one + ((load(f, j) - own) - base), zero)
        a = if_greater(keep, zero, vmin(vmax(load(r, j) - beside, zero), one), zero)
        open = open + (vmax(margin, zero) - a * margin)
        store(out, j, a)
        store(z, j, margin)
    gap = vsum(open)
    if gap <= skip:
        return gap
    by = splat(w)
    for j in range(kp // LANES):
        keep = one + load(s.mask, j) - load(corner, j)
        margin = load(z, j)
        if w > 0.0:
            a = load(out, j) + margin / by
        else:
            a = if_greater(margin, zero, always, never)
        store(z, j, if_greater(keep, zero, a, never))  # a lane that must stay 0 is kept out of the sums whatever s is
    if w > 0.0:
        shift = box_root(z, out, kp, k, relative)
    by = splat(shift)
    for j in range(kp // LANES):
        a = vmin(vmax(load(z, j) + by, zero), one)
        total = total + a
        store(out, j, a)
    if state != NULL:
        for j in range(k):
            state[j] = FREE if 0.0 < z[j] + shift < 1.0 else (FIXED if relative else TIED)
        state[y] = FREE if relative else TIED
    hinge_dual(s, out, corner, vsum(total), kp, relative)
    return gap


cdef inline double ww_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    return hinge_oracle(s, f, y, 1, r, c)


cdef inline double ww_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    return -r[y]


cdef inline double ww_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_block(s, f, r, y, w, skip, 1, out, state, s.kp)


cdef inline double ww_step_8(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_block(s, f, r, y, w, skip, 1, out, state, 8)


cdef inline double ww_step_16(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_block(s, f, r, y, w, skip, 1, out, state, 16)


cdef inline double llw_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    return hinge_oracle(s, f, y, 0, r, c)


cdef inline double llw_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    return -r[y] * s.k


cdef inline double llw_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_block(s, f, r, y, w, skip, 0, out, state, s.kp)


cdef inline double llw_step_8(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_block(s, f, r, y, w, skip, 0, out, state, 8)


cdef inline double llw_step_16(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_block(s, f, r, y, w, skip, 0, out, state, 16)


cdef inline void hinge_gaps(const Family *s, double *f, double *r, const Py_ssize_t *y, int relative, double *gap) noexcept nogil:
    """Write sum (g)_+ - sum a g, which are the gaps, with the margins g and box variables a of `hinge_block`."""
    cdef int j, lane, group, k = s.k, width = GROUPS * LANES
    cdef double own[GROUPS * 8]
    cdef double shift[GROUPS * 8]
    cdef vec level, base, beside, a, g, total, zero = splat(0.0), one = splat(1.0)
    for lane in range(width):
        own[lane] = f[y[lane] * width + lane]
        shift[lane] = 0.0 if relative else r[y[lane] * width + lane]
    for group in range(GROUPS):
        level, beside = load(own, group), load(shift, group)
        base = total = zero
        if not relative:
            for j in range(k):
                base = base + (load(f, GROUPS * j + group) - level)
            base = base * splat(1.0 / k)
        for j in range(k):
            store(f, GROUPS * j + group, one + ((load(f, GROUPS * j + group) - level) - base))
        # the label's own margin counts for nothing
        for lane in range(group * LANES, (group + 1) * LANES):
            f[y[lane] * width + lane] = 0.0
        for j in range(k):
            g = load(f, GROUPS * j + group)
            a = vmin(vmax(load(r, GROUPS * j + group) - beside, zero), one)
            total = total + (vmax(g, zero) - a * g)
        store(gap, group, total)


cdef inline void ww_gaps(const Family *s, double *f, double *r, const Py_ssize_t *y, double *gap) noexcept nogil:
    hinge_gaps(s, f, r, y, 1, gap)


cdef inline void llw_gaps(const Family *s, double *f, double *r, const Py_ssize_t *y, double *gap) noexcept nogil:
    hinge_gaps(s, f, r, y, 0, gap)


cdef inline int bind_ww(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.offset, s.step, s.gaps = ww_oracle, ww_offset, ww_step, ww_gaps
    if s.kp == 8:
        s.step = ww_step_8
    elif s.kp == 16:
        s.step = ww_step_16
    return 0


cdef inline int bind_llw(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.offset, s.step, s.gaps = llw_oracle, llw_offset, llw_step, llw_gaps
    if s.kp == 8:
        s.step = llw_step_8
    elif s.kp == 16:
        s.step = llw_step_16
    return 0
