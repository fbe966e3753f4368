# K guesses, 1 <= K < k: the game whose predictions are the sets of K classes and cost 1 where the label is not in the set.
#
# G(q) = 1 - (sum of the K largest q). The predictor names class j with probability p_j in [0, 1], sum p = K, hence
# S(f, y) = 1 + tau - f_y,  tau = max(max f - 1, t),  sum_j (f_j - t)_+ = K.
# Block (docs/notes/oracles.md, section 10): g = f + w q;  u solves sum clip(g - u, 0, 1) = K;  v = max(min(g, u), g - 1);  mu solves
# sum (v - mu)_+ = w;  q' = (v - mu)_+ / w.  `alpha` holds K.

from libc.math cimport INFINITY

from adv_simd cimport vec, load, store, splat, vmax, vmin, vsum, if_greater, count_greater, keep_greater, LANES, maximum, threshold
from adv_family cimport Family, FIXED, TIED, FREE
from adv_zero_one cimport beside_own, normalise, rounded, shift, uniform_on_support
from adv_abstain cimport capped_threshold


cdef inline int gather(const double *a, int kp, double level, double *few) noexcept nogil:
    """Copy the numbers above ``level``, which alone decide a threshold, to ``few`` (kp + LANES), a vector of -inf behind them; return how many."""
    cdef int j, m = 0
    cdef vec low = splat(level)
    for j in range(kp // LANES):
        m += keep_greater(few + m, load(a, j), low)
    store(few + m, 0, splat(-INFINITY))
    return m


cdef inline int whole(int m) noexcept nogil:
    """Round a count up to whole vectors, at least one."""
    return (max(m, 1) + LANES - 1) // LANES * LANES


cdef inline double best_sum(const double *q, int kp, double K, double *few) noexcept nogil:
    """Return the sum of the K largest of numbers that are at least 0: the minimum over t of K t + sum (q - t)_+, which is piecewise linear.

    The lines left and right of it meet at the next t, until that lies on one of them, or the first t, 0, lies right of it.
    """
    cdef int j, iteration, active, m = gather(q, kp, 0.0, few)
    cdef double left = 0.0, right = 0.0, fall = 0.0, rise = K, slope = 0.0, t = 0.0
    cdef vec s = splat(0.0), level, number
    for iteration in range(m + 8):
        s = splat(0.0)
        active = 0
        level = splat(t)
        for j in range(whole(m) // LANES):
            number = load(few, j)
            s = s + if_greater(number, level, number, splat(0.0))
            active += count_greater(number, level)
        slope = K - active
        if slope == fall or slope == rise or slope == 0.0 or (slope > 0.0 and t == 0.0):
            break
        if slope < 0.0:
            left, fall = vsum(s), slope
        else:
            right, rise = vsum(s), slope
        t = (left - right) / (rise - fall)
    return vsum(s) + slope * t


cdef inline double water(const double *b, int kp, double K, double *few) noexcept nogil:
    """Return tau. Up to K scores above the smallest that it can be do not lift it."""
    cdef double low = maximum(b, kp) - 1.0
    cdef int m = gather(b, kp, low, few)
    return low if m <= K else max(low, threshold(few, whole(m), low, K))


cdef inline double top_k_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef double *b = s.work
    cdef double tau
    shift(s, f, b, s.kp)
    tau = water(b, s.kp, s.alpha, s.work + s.kp)
    # where it is the smallest that it can be, the adversary takes the best label, or the at most K that tie with it, which cost nothing
    uniform_on_support(b, tau if tau > -1.0 else -1e-300, s.kp, r)
    c[0] = max(0.0, 1.0 - s.alpha * maximum(r, s.kp))
    r[y] -= 1.0
    return 1.0 + tau - b[y]


cdef inline double top_k_value(Family *s, const double *f, Py_ssize_t y) noexcept nogil:
    beside_own(s, f, y, s.work, s.kp)
    return 1.0 + water(s.work, s.kp, s.alpha, s.work + s.kp)


cdef inline double top_k_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    cdef int j
    for j in range(s.kp // LANES):
        store(s.work, j, load(r, j) + load(s.corner - y, j))
    return 1.0 - best_sum(s.work, s.kp, s.alpha, s.work + s.kp)


cdef inline double top_k_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    cdef int j, m, active = 0, kp = s.kp
    b, g, few = s.work, s.work + kp, s.work + 2 * kp
    cdef double K = s.alpha, tau, gap, c, low, u = 0.0, mu = 0.0, total = 0.0
    cdef vec scale = splat(w), zero = splat(0.0), one = splat(1.0), upper, lower, inner = zero, sum = zero, q, d
    cdef const double *corner = s.corner - y
    beside_own(s, f, y, b, kp)
    tau = water(b, kp, K, few)
    if r[y] == 0.0 and tau == -1.0 and skip >= 0.0:
        return 0.0  # q = e_y, and no K other labels come near
    # beside b q the first Newton step from tau to the threshold mu of g = b + w q: it ends left of it
    lower = splat(tau)
    for j in range(kp // LANES):
        q = load(r, j) + load(corner, j)
        d = load(b, j)
        store(out, j, q)
        inner = inner + q * vmax(d, splat(-1.7976931348623157e308))
        d = d + scale * q
        store(g, j, d)
        sum = sum + vmax(d - lower, zero)
        active += count_greater(d, lower)
    gap = tau + best_sum(out, kp, K, few) - vsum(inner)
    if gap <= skip:
        return gap
    if w > 0.0:
        low = tau + (vsum(sum) - (K + w)) / active if active else maximum(g, kp) - (K + w)
        m = whole(gather(g, kp, low, few))
        mu, u = threshold(few, m, low, K + w), threshold(few, m, low, K)
        if maximum(few, m) - u > 1.0:  # some p_j reach 1
            low = threshold(few, m, mu, w) - 1.0
            if low >= mu:  # fewer than K labels have mass, and each has p_j = 1
                u = mu = low
            else:
                u = capped_threshold(few, m, u, 1.0, K)
        upper, lower, scale, sum = splat(u), splat(mu), splat(1.0 / w), zero
        for j in range(kp // LANES):
            d = load(g, j)
            q = vmax(vmax(vmin(d, upper), d - one) - lower, zero)
            sum = sum + q
            store(out, j, q * scale)
        total = vsum(sum)
    if not rounded(total, w, s.k):
        if 0.999 * w < total < 1.001 * w:
            normalise(out, kp)
        else:  # w so small that the quadratic term has drowned
            s.oracle(s, f, y, out, &c)
            if state != NULL:
                for j in range(s.k):
                    state[j] = TIED if out[j] + (1.0 if j == y else 0.0) > 0.0 else FIXED
            return gap
    if state != NULL:
        for j in range(s.k):
            state[j] = TIED if u < g[j] < u + 1.0 and u > mu else (FREE if out[j] > 0.0 else FIXED)
    for j in range(kp // LANES):
        store(out, j, load(out, j) - load(corner, j))
    return gap


cdef inline int bind_top_k(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    if n_parameters != 1 or not parameters[0] >= 1.0:
        return -3
    s.alpha = parameters[0]
    s.oracle, s.value, s.offset, s.step = top_k_oracle, top_k_value, top_k_offset, top_k_step
    return 0
