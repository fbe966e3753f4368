# The hinges of learners that may abstain at a cost alpha <= 1/2 (Ramaswamy, Tewari & Agarwal 2018), as support functions.
#
# CS:  g_j = f_j - f_y, j != y;     r = sum_j t_j (e_j - e_y)
# BEP: g_a = b_a(y) u_a;            r = sum_a t_a b_a(y) v_a
# both: S = 2 max(alpha g, (1 - alpha) g, -alpha) + 2 alpha at g = max g_j, so t >= 0, s = sum t <= 2 (1 - alpha), c = min(s, 2 alpha).
# OVA: S = sum_a |b_a(y)| [1 + sign(b_a(y)) u_a]_+; r = sum_a t_a sign(b_a(y)) v_a, 0 <= t_a <= |b_a(y)|, c = sum t.
#
# A number u_a that has a row of parameters to itself stands in a pair of columns, u_a = v_a.f = (f_2a - f_2a+1) / sqrt(2): dual points then
# sum to zero as those of all surrogates do, and |Theta|^2 is that of the u. The b are the family's matrix, one row for each label.
# Block of CS and BEP: t_j = max(t0_j + (g_j - nu)/w, 0), nu = rho w (s - s0) - c'(s), with rho = 1 where r_y moves with s (CS), else 0.

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memset

from adv_simd cimport maximum, threshold, zeros
from adv_family cimport Family, FIXED, FREE


cdef inline double mass_above(const double *z, int count, double level) noexcept nogil:
    cdef int j
    cdef double total = 0.0
    for j in range(count):
        if z[j] > level:
            total += z[j] - level
    return total


cdef inline double climbing_level(const double *z, int count, double top, double rhs) noexcept nogil:
    """Return nu with sum_j max(z_j - nu, 0) - nu = rhs: convex and decreasing, so that Newton climbs from the left; top = max z."""
    cdef double level = 0.5 * (top - rhs), total
    cdef int j, active, previous = -1, iteration
    if not top > -rhs:
        return -rhs
    for iteration in range(count + 8):
        total = 0.0
        active = 0
        for j in range(count):
            if z[j] > level:
                total += z[j] - level
                active += 1
        if active == previous:
            break
        previous = active
        level += (total - level - rhs) / (active + 1)
    return level


cdef inline double coupled_value(double top, double low, double high, double *s) noexcept nogil:
    """Return the surrogate where the largest g is ``top``, and the sum of t that attains it."""
    if top > 0.0:
        s[0] = high
        return low + high * top
    if top > -1.0:
        s[0] = low
        return low * (1.0 + top)
    s[0] = 0.0
    return 0.0


cdef inline double coupled_gap(const double *g, const double *t, int count, int skipped, double alpha, double *top) noexcept nogil:
    """Return S - c(t) - g.t, as a sum of what is not negative, and the largest g."""
    cdef double low = 2.0 * alpha, high = 2.0 - 2.0 * alpha, total = 0.0, gap = 0.0, s
    cdef int j
    top[0] = -1.7976931348623157e308
    for j in range(count):
        if j != skipped:
            total += t[j]
            top[0] = max(top[0], g[j])
    for j in range(count):
        if j != skipped and t[j] > 0.0:
            gap += t[j] * (top[0] - g[j])
    return gap + max(coupled_value(top[0], low, high, &s) - min(total, low) - total * top[0], 0.0)


cdef inline bint coupled_block(const double *g, double *t, double *z, int count, int kp, int skipped, double w, bint rho, double alpha, double top) noexcept nogil:
    """Move t, which holds t0, to the maximum of the block; return whether sum t rests on a corner of c. z is scratch of length kp."""
    cdef double low = 2.0 * alpha, high = 2.0 - 2.0 * alpha, s0 = 0.0, s, nu, largest, target = 0.0
    cdef int j, best = -1
    cdef bint fixed = True, found = False
    for j in range(count):
        if j != skipped:
            s0 += t[j]
            z[j] = w * t[j] + g[j]
    for j in range(count, kp):
        z[j] = -INFINITY
    if skipped >= 0:
        z[skipped] = -INFINITY
    if w > 0.0:
        largest = maximum(z, kp)
        nu = climbing_level(z, count, largest, 1.0 + w * s0) if rho else -1.0
        s = mass_above(z, count, nu) / w
        found = s < low
        target = low
        if found:
            fixed = False
        elif high > low:
            nu = climbing_level(z, count, largest, w * s0) if rho else 0.0
            s = mass_above(z, count, nu) / w
            fixed = not low < s < high
            found = True
            target = low if s <= low else high
        if fixed:
            nu = threshold(z, kp, largest - w * target, w * target)
        s = 0.0
        for j in range(count):
            t[j] = (z[j] - nu) / w if j != skipped and z[j] > nu else 0.0
            s += t[j]
        if fixed:
            found = 0.999 * target < s < 1.001 * target
            if found:
                for j in range(count):
                    t[j] *= target / s
        else:
            found = 0.0 <= s < high  # not where the scores are so large that the quadratic term has drowned
    if not found:
        fixed = True
        coupled_value(top, low, high, &s)
        for j in range(count):
            t[j] = 0.0
            if j != skipped and (best < 0 or g[j] > g[best]):
                best = j
        if best >= 0:
            t[best] = s
    return fixed


# ---- CS -------------------------------------------------------------------------------------------------------------------
cdef inline double rejecting_cs_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef int j, best = -1
    cdef double top, mass = 0.0, value = 0.0
    for j in range(s.kp):
        r[j] = 0.0
    for j in range(s.k):
        if j != y and (best < 0 or f[j] > f[best]):
            best = j
    if best >= 0:
        top = f[best] - f[y]
        value = coupled_value(top, 2.0 * s.alpha, 2.0 - 2.0 * s.alpha, &mass)
        r[best] = mass
        r[y] = -mass
    c[0] = min(mass, 2.0 * s.alpha)
    return value


cdef inline double rejecting_cs_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    return min(-r[y], 2.0 * s.alpha)


cdef inline double rejecting_cs_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    g, t, z = s.work, s.work + s.kp, s.work + 2 * s.kp
    cdef double gap, top, total = 0.0
    cdef int j, k = s.k
    cdef bint fixed
    for j in range(k):
        g[j] = f[j] - f[y]
        t[j] = max(r[j], 0.0)
    t[y] = 0.0
    gap = coupled_gap(g, t, k, <int>y, s.alpha, &top)
    if gap <= skip:
        return gap
    fixed = coupled_block(g, t, z, k, s.kp, <int>y, w, True, s.alpha, top)
    for j in range(s.kp):
        out[j] = 0.0
    for j in range(k):
        if j != y:
            out[j] = t[j]
            total += t[j]
            if state != NULL:
                state[j] = FREE if t[j] > 0.0 else FIXED
    out[y] = -total
    if state != NULL:
        state[y] = FIXED if fixed else FREE
    return gap


# ---- pairs of columns ------------------------------------------------------------------------------------------------------
cdef inline void pair_margins(Family *s, const double *f, const double *r, Py_ssize_t y, double *g, double *t) noexcept nogil:
    """Write g_a = sign(b_a) u_a, and t_a within its bounds where r is given."""
    cdef const double *b = s.matrix + y * s.l
    cdef double half = sqrt(0.5), sign
    cdef int a
    for a in range(s.l):
        sign = half if b[a] > 0.0 else -half
        g[a] = sign * (f[2 * a] - f[2 * a + 1])
        if r != NULL:
            t[a] = max(sign * (r[2 * a] - r[2 * a + 1]), 0.0)


cdef inline void pair_dual(Family *s, const double *t, Py_ssize_t y, double *r) noexcept nogil:
    """Write r from t."""
    cdef const double *b = s.matrix + y * s.l
    cdef double half = sqrt(0.5), part
    cdef int a, j
    for j in range(s.kp):
        r[j] = 0.0
    for a in range(s.l):
        part = (half if b[a] > 0.0 else -half) * t[a]
        r[2 * a] = part
        r[2 * a + 1] = -part


cdef inline double rejecting_bep_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    g, t = s.work, s.work + s.kp
    cdef double mass = 0.0, value
    cdef int a, best = 0
    pair_margins(s, f, NULL, y, g, t)
    for a in range(s.l):
        t[a] = 0.0
        if g[a] > g[best]:
            best = a
    value = coupled_value(g[best], 2.0 * s.alpha, 2.0 - 2.0 * s.alpha, &mass)
    t[best] = mass
    pair_dual(s, t, y, r)
    c[0] = min(mass, 2.0 * s.alpha)
    return value


cdef inline double rejecting_ova_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    g, t = s.work, s.work + s.kp
    cdef double total = 0.0
    cdef int a
    pair_margins(s, r, r, y, g, t)
    for a in range(s.l):
        total += t[a]
    return total


cdef inline double rejecting_bep_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    return min(rejecting_ova_offset(s, r, y), 2.0 * s.alpha)


cdef inline double rejecting_bep_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    g, t, z, b = s.work, s.work + s.kp, s.work + 2 * s.kp, s.matrix + y * s.l
    cdef double gap, top
    cdef int a, j
    cdef bint fixed
    pair_margins(s, f, r, y, g, t)
    gap = coupled_gap(g, t, s.l, -1, s.alpha, &top)
    if gap <= skip:
        return gap
    fixed = coupled_block(g, t, z, s.l, s.kp, -1, w, False, s.alpha, top)
    pair_dual(s, t, y, out)
    if state != NULL:
        for j in range(s.k):
            state[j] = FREE if j < 2 * s.l and t[j // 2] > 0.0 else FIXED
    if normal != NULL and fixed:  # the sum of t cannot move
        for a in range(s.l):
            if t[a] > 0.0:
                normal[2 * a] = 1.0 if b[a] > 0.0 else -1.0
                normal[2 * a + 1] = -normal[2 * a]
    return gap


cdef inline double rejecting_ova_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    g, t, b = s.work, s.work + s.kp, s.matrix + y * s.l
    cdef double value = 0.0, total = 0.0
    cdef int a
    pair_margins(s, f, NULL, y, g, t)
    for a in range(s.l):
        t[a] = 0.0
        if 1.0 + g[a] > 0.0:
            t[a] = fabs(b[a])
            value += t[a] * (1.0 + g[a])
            total += t[a]
    pair_dual(s, t, y, r)
    c[0] = total
    return value


cdef inline double rejecting_ova_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    g, t, b = s.work, s.work + s.kp, s.matrix + y * s.l
    cdef double gap = 0.0, margin, most, moved
    cdef int a
    pair_margins(s, f, r, y, g, t)
    for a in range(s.l):
        margin = 1.0 + g[a]
        most = fabs(b[a])
        t[a] = min(t[a], most)
        gap += (most - t[a]) * margin if margin > 0.0 else -t[a] * margin
    if gap <= skip:
        return gap
    if state != NULL:
        memset(state, FIXED, s.k)
    for a in range(s.l):
        margin = 1.0 + g[a]
        most = fabs(b[a])
        moved = t[a] + margin / w if w > 0.0 else (most if margin > 0.0 else 0.0)
        if state != NULL and 0.0 < moved < most:
            state[2 * a] = FREE
            state[2 * a + 1] = FREE
        t[a] = min(max(moved, 0.0), most)
    pair_dual(s, t, y, out)
    return gap


cdef inline int keep_pairs(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """Store alpha and the signs of the pairs of columns, (k, l), from (alpha, l, signs label by label); return what `family_new` returns."""
    cdef Py_ssize_t i
    if n_parameters < 2 or not 0.0 < parameters[0] <= 0.5 or not (1.0 <= parameters[1] and 2.0 * parameters[1] <= s.k):
        return -3
    s.alpha = parameters[0]
    s.l = <int>parameters[1]
    if s.l != parameters[1] or n_parameters != 2 + <Py_ssize_t>s.l * s.k:
        return -3
    s.extra = zeros(<Py_ssize_t>s.l * s.k)
    if s.extra == NULL:
        return -1
    for i in range(<Py_ssize_t>s.l * s.k):
        s.extra[i] = parameters[2 + i]
    s.matrix = s.extra
    return 0


cdef inline int bind_rejecting_cs(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    if n_parameters != 1 or not 0.0 < parameters[0] <= 0.5:
        return -3
    s.alpha = parameters[0]
    s.oracle, s.offset, s.step = rejecting_cs_oracle, rejecting_cs_offset, rejecting_cs_step
    return 0


cdef inline int bind_rejecting_bep(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """A sign for each pair and label."""
    s.oracle, s.offset, s.step = rejecting_bep_oracle, rejecting_bep_offset, rejecting_bep_step
    return keep_pairs(s, parameters, n_parameters)


cdef inline int bind_rejecting_ova(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """As for the encoding, with the largest t_a times its sign in the place of a sign."""
    s.oracle, s.offset, s.step = rejecting_ova_oracle, rejecting_ova_offset, rejecting_ova_step
    return keep_pairs(s, parameters, n_parameters)
