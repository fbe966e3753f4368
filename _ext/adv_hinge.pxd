# Sums of hinges: Weston-Watkins and Lee-Lin-Wahba (Fathony et al. 2018, section 2.3.1), as support functions of a box.
#
# WW:  r = sum over j != y of a_j (e_j - e_y),  c = sum a_j,  a in [0,1]^(k-1);  margins g_j = 1 + f_j - f_y.
# LLW: r = sum over j != y of a_j (e_j - 1/k), c = sum a_j; margins g_j = 1 + f_j - mean f: the sum-zero constraint on the model is the
#      centring of the scores, since the smallest-norm parameters with given centred scores sum to zero over classes.
# The block in the norm of r couples the a_j only through s = sum of their changes: WW a_j = clip(a0_j + g_j/w - s), LLW
# a_j = clip(a0_j + g_j/w + s/k), so s is the root of a decreasing piecewise linear function of one variable.

from adv_simd cimport vec, load, store, splat, vmax, vmin, vsum, if_greater, LANES
from adv_family cimport Family, FIXED, TIED, FREE
from adv_lanes cimport GROUPS


cdef inline double box_root(const double *z, const double *a, int kp, double slope, double width) noexcept nogil:
    """Return s with sum_j (clip(z_j + slope s, 0, 1) - a_j) = s; ``slope`` in [-1, 1), |s| <= width.

    Newton on a piecewise linear function, kept inside the bracket that its signs have shown.
    """
    cdef double low = -width, high = width, s = 0.0, value, free, step, trial
    cdef int j, iteration
    cdef vec total, count, v, zero = splat(0.0), one = splat(1.0)
    for iteration in range(200):
        total = zero
        count = zero
        for j in range(kp // LANES):
            v = load(z, j) + splat(slope * s)
            total = total + (vmin(vmax(v, zero), one) - load(a, j))
            count = count + if_greater(v, zero, if_greater(one, v, one, zero), zero)
        value = vsum(total) - s
        free = vsum(count)
        if value > 0.0:
            low = s
        else:
            high = s
        trial = s + value / (1.0 - slope * free)
        if trial == s or value == 0.0:
            break
        if not (low < trial < high):
            trial = 0.5 * (low + high)
            if trial == low or trial == high:
                break
        s = trial
    return s


cdef inline double hinge_base(Family *s, const double *f, Py_ssize_t y, int relative) noexcept nogil:
    """Return what margins are measured from, relative to f_y: 0 for ww, the mean score for llw; differences keep their digits at any level."""
    cdef int j
    cdef double base = 0.0
    if not relative:
        for j in range(s.k):
            base += (f[j] - f[y]) / s.k
    return base


cdef inline double hinge_margins(Family *s, const double *f, const double *r, Py_ssize_t y, int relative, double *g, double *a) noexcept nogil:
    """Write margins g (0 at y and on the padding) and the box variables a of r; return sum (g)_+ - sum a g, the block gap."""
    cdef int j, k = s.k
    cdef double base, gap = 0.0, shift = 0.0
    base = hinge_base(s, f, y, relative)
    if not relative:
        shift = r[y]  # a_y = 0, so r_y = -mean a
    for j in range(k):
        g[j] = 1.0 + ((f[j] - f[y]) - base)
        a[j] = min(max(r[j] - shift, 0.0), 1.0)
    for j in range(k, s.kp):
        g[j] = 0.0
        a[j] = 0.0
    g[y] = 0.0
    a[y] = 0.0
    for j in range(k):
        gap += (max(g[j], 0.0) - a[j] * g[j])
    return gap


cdef inline void hinge_dual(Family *s, const double *a, Py_ssize_t y, int relative, double *r) noexcept nogil:
    """Write r from the box variables a (a_y = 0)."""
    cdef int j
    cdef double total = 0.0
    for j in range(s.k):
        total += a[j]
    for j in range(s.kp):
        r[j] = a[j]
    if relative:
        r[y] = -total
    else:
        for j in range(s.k):
            r[j] -= total / s.k


cdef inline double hinge_oracle(Family *s, const double *f, Py_ssize_t y, int relative, double *r, double *c) noexcept nogil:
    cdef double *g = s.work
    cdef double *a = s.work + s.kp
    cdef int j
    cdef double value = 0.0, base = hinge_base(s, f, y, relative), count = 0.0, margin
    for j in range(s.kp):
        a[j] = 0.0
    for j in range(s.k):
        margin = 1.0 + ((f[j] - f[y]) - base)
        if j != y and margin > 0.0:
            a[j] = 1.0
            count += 1.0
            value += margin
    hinge_dual(s, a, y, relative, r)
    c[0] = count
    return value


cdef inline double hinge_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, int relative, double *out, signed char *state) noexcept nogil:
    cdef int j, k = s.k, kp = s.kp
    cdef double *g = s.work
    cdef double *a = s.work + kp
    cdef double *z = s.work + 2 * kp
    cdef double gap = hinge_margins(s, f, r, y, relative, g, a)
    cdef double slope, root, change
    if gap <= skip:
        return gap
    slope = -1.0 if relative else 1.0 / k
    if w > 0.0:
        for j in range(kp):
            z[j] = a[j] + g[j] / w
        # a lane that must stay 0: keep it out of the sums whatever s is
        for j in range(k, kp):
            z[j] = -1e300
        z[y] = -1e300
        root = box_root(z, a, kp, slope, <double>k)
    else:
        root = 0.0
        for j in range(kp):
            z[j] = 1e300 if g[j] > 0.0 else -1e300
    for j in range(k):
        change = z[j] + slope * root
        if state != NULL:
            state[j] = FREE if 0.0 < change < 1.0 else (FIXED if relative else TIED)
        a[j] = min(max(change, 0.0), 1.0)
    for j in range(k, kp):
        a[j] = 0.0
    a[y] = 0.0
    if state != NULL:
        state[y] = FREE if relative else TIED
    hinge_dual(s, a, y, relative, out)
    return gap


cdef inline double ww_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    return hinge_oracle(s, f, y, 1, r, c)


cdef inline double ww_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    return -r[y]


cdef inline double ww_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_step(s, f, r, y, w, skip, 1, out, state)


cdef inline double llw_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    return hinge_oracle(s, f, y, 0, r, c)


cdef inline double llw_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    return -r[y] * s.k


cdef inline double llw_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    return hinge_step(s, f, r, y, w, skip, 0, out, state)


cdef inline void hinge_gaps(const Family *s, double *f, double *r, const Py_ssize_t *y, int relative, double *gap) noexcept nogil:
    """Write sum (g)_+ - sum a g, which are the gaps, with the margins g and box variables a of `hinge_margins`."""
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
    return 0


cdef inline int bind_llw(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.offset, s.step, s.gaps = llw_oracle, llw_offset, llw_step, llw_gaps
    return 0
