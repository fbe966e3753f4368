# Zero-one with the option to abstain at cost alpha in [0, 1] (Fathony et al. 2018, Theorems 12 and 13; exact for every alpha).
#
# G(q) = min(1 - max q, alpha). Where the zero-one adversary has max q >= 1 - alpha, abstaining does not help and the game is the zero-one game;
# else the adversary fills the best potentials with 1 - alpha each and c = alpha. Block: the zero-one block; where its max q is below 1 - alpha,
# the projection of q0 + f/w on the simplex; where this projection has max q above 1 - alpha, the projection on {q in simplex, q <= 1 - alpha}
# (docs/notes/oracles.md, section 6).

from adv_simd cimport vec, load, store, splat, vmax, vmin, vsum, if_greater, LANES, maximum, threshold
from adv_family cimport Family, FIXED, FREE
from adv_zero_one cimport normalise, shift, uniform_on_support, zero_one_step
from adv_convex cimport distribution, ends_at_vertex, project


cdef inline double abstain_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    cdef double *q = s.work
    cdef int j
    for j in range(s.kp // LANES):
        store(q, j, load(r, j) + load(s.mask, j))
    q[y] += 1.0
    return min(1.0 - maximum(q, s.kp), s.alpha)


cdef inline double abstain_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef double *b = s.work
    cdef double tau, largest, cap = 1.0 - s.alpha, rest = 1.0, value, mass
    cdef int j, best, taken
    shift(s, f, b, s.kp)
    tau = threshold(b, s.kp, -1.0, 1.0)
    uniform_on_support(b, tau, s.kp, r)
    largest = maximum(r, s.kp)
    if largest >= cap:
        c[0] = min(1.0 - largest, s.alpha)
        value = 1.0 + tau - b[y]
        r[y] -= 1.0
        return value
    for j in range(s.kp):
        r[j] = 0.0
    value = s.alpha - b[y]
    for taken in range(s.k):  # at most 1/cap < k of them; cap > 1/k because the zero-one adversary's maximum lies below it
        if not rest > 0.0:
            break
        best = -1
        for j in range(s.k):
            if r[j] == 0.0 and (best < 0 or b[j] > b[best]):
                best = j
        if best < 0:
            break
        mass = min(cap, rest)
        if rest - mass < 1e-15:
            mass = rest
        r[best] = mass
        value += mass * b[best]
        rest -= mass
    c[0] = min(1.0 - maximum(r, s.kp), s.alpha)
    r[y] -= 1.0
    return value


cdef inline double capped_threshold(const double *g, int kp, double start, double cap, double radius) noexcept nogil:
    """Return t with sum_j clip(g_j - t, 0, cap) = radius: a decreasing piecewise linear function, Newton inside a bracket."""
    cdef double t = start, low, high, value, free, trial, top = maximum(g, kp)
    cdef int j, iteration
    cdef vec total, count, d, zero = splat(0.0), one = splat(1.0), ceiling = splat(cap)
    high = top
    low = top - radius
    for iteration in range(60):  # the bracket of the uncapped sum may be too narrow
        total = zero
        for j in range(kp // LANES):
            total = total + vmin(vmax(load(g, j) - splat(low), zero), ceiling)
        if vsum(total) >= radius:
            break
        low = top - 2.0 * (top - low) - radius
    if not (low <= t <= high):
        t = 0.5 * (low + high)
    for iteration in range(200):
        total = zero
        count = zero
        for j in range(kp // LANES):
            d = load(g, j) - splat(t)
            total = total + vmin(vmax(d, zero), ceiling)
            count = count + if_greater(d, zero, if_greater(ceiling, d, one, zero), zero)
        value = vsum(total) - radius
        free = vsum(count)
        if value > 0.0:
            low = t
        else:
            high = t
        trial = t + value / free if free > 0.0 else 0.5 * (low + high)
        if trial == t or value == 0.0:
            break
        if not (low < trial < high):
            trial = 0.5 * (low + high)
            if trial == low or trial == high:
                break
        t = trial
    return t


cdef inline double abstain_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    cdef int j, k = s.k, kp = s.kp
    b, z, q0 = s.work, s.work + kp, s.work + 3 * kp
    cdef double c, gap, cap = 1.0 - s.alpha, largest, total, t
    if ends_at_vertex(s, f, r, y, w, 1e-280, skip, out, state, &gap):
        return gap
    zero_one_step(s, f, r, y, w, -1e300, out, state, normal)
    largest = 0.0
    for j in range(k):
        largest = max(largest, out[j] + (1.0 if j == y else 0.0))
    if largest >= cap:
        return gap
    shift(s, f, b, s.kp)
    distribution(s, r, y, q0)
    for j in range(kp // LANES):
        store(z, j, load(b, j) + splat(w) * load(q0, j))
    total = project(z, kp, w, out)
    if maximum(out, kp) <= cap:
        if state != NULL:
            for j in range(k):
                state[j] = FREE if out[j] > 0.0 else FIXED
    else:
        t = capped_threshold(z, kp, maximum(z, kp) - w, cap * w, w)
        for j in range(k):
            out[j] = min(max((z[j] - t) / w, 0.0), cap)
            if state != NULL:
                state[j] = FREE if 0.0 < out[j] < cap else FIXED
        total = normalise(out, kp)
    if not (0.999 < total < 1.001):
        s.oracle(s, f, y, out, &c)
        return gap
    out[y] -= 1.0
    return gap


cdef inline int bind_abstain(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    if n_parameters != 1:
        return -3
    s.alpha = parameters[0]
    s.oracle, s.offset, s.step = abstain_oracle, abstain_offset, abstain_step
    return 0
