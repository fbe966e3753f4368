# Sets of classes at a price: c(q) = min over s of 1 + c_s - (sum of the s largest q), the prices c_s not falling in s, c_1 = 0.
#
# Where the prices are convex, with steps d_s = c_s - c_(s-1), a class whose score exceeds a level t is covered with probability a_j = clip(f_j - t, 0, 1), and the
# sets have the two whole sizes next to N = sum a: S = min over t >= max f - 1 of t + 1 + price(N(t)) - f_y. The adversary has q_j = theta where 0 < a_j < 1, at most
# theta where a_j = 0, at least where a_j = 1, and theta between the steps on both sides of N. Block: the same with g = f + w q0 and w q + mu for f, so that w q_j is
# x = g_j - mu up to w theta, stays there up to x = w theta + 1 and is x - 1 beyond. Other prices: the oracle is the game of sizes and prefixes (k x k) by the simplex
# method of adv_general; the block is its active-set method over the sets that matter, found one after the other. The readable version is advcli/losses/label_sets.py.

from libc.math cimport INFINITY, ceil, fabs
from libc.string cimport memcpy, memmove, memset

from adv_simd cimport dot, maximum, threshold, zeros
from adv_family cimport Family, FIXED, TIED, FREE
from adv_abstain cimport capped_threshold
from adv_convex cimport distribution, ends_at_vertex
from adv_general cimport block_extra, general_extra, simplex_extra, solve_block, solve_game
from adv_zero_one cimport normalise, shift

# s.extra: the game of sizes and prefixes and the simplex's scratch, unless prices are convex (s.l = 1); kp numbers each of d, prices, ordered values, their places; rows


cdef inline double *steps_of(Family *s) noexcept nogil:
    """d; d[s] is the step from s classes to s + 1."""
    return s.extra if s.l == 1 else s.extra + <Py_ssize_t>s.k * s.kp + general_extra(s.k, s.k)


cdef inline int ordered(Family *s, const double *a, double least) noexcept nogil:
    """Write the numbers of a above ``least``, falling, and their places; return how many there are."""
    cdef double *value = steps_of(s) + 2 * s.kp
    cdef double *place = value + s.kp
    cdef int j, i, count = 0
    for j in range(s.k):
        if a[j] > least:
            i = count
            while i > 0 and value[i - 1] < a[j]:
                value[i], place[i] = value[i - 1], place[i - 1]
                i -= 1
            value[i], place[i] = a[j], j
            count += 1
    return count


cdef inline double least_row(Family *s, const double *q) noexcept nogil:
    """c(q), and the order of its positive entries."""
    cdef double *price = steps_of(s) + s.kp
    cdef double *value = price + s.kp
    cdef int size, count = ordered(s, q, 0.0)
    cdef double rest = 1.0, least = INFINITY
    for size in range(count):
        rest = rest - value[size] if size + 1 < count else 0.0  # exactly 0 where the set has all of the mass
        least = min(least, rest + price[size])
    return least


cdef inline double label_sets_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    distribution(s, r, y, s.work)
    return least_row(s, s.work)


cdef inline int stretch(Family *s, int size) noexcept nogil:
    """The largest size up to which prices rise as they do after ``size``."""
    cdef double *d = steps_of(s)
    cdef int end = size + 1
    while end < s.k and d[end] == d[size]:
        end += 1
    return end


cdef inline void worst_prefixes(Family *s, const double *b, double *q) noexcept nogil:
    """The adversary's q for prices that are not convex: u_m, the uniform distribution on the m best classes, with the share of the prefix m in the game."""
    cdef double *value = steps_of(s) + 2 * s.kp
    cdef double *place = value + s.kp
    cdef double *mean = s.work + s.kp
    cdef double *share = s.work + 2 * s.kp
    cdef double total = 0.0
    cdef int m
    ordered(s, b, -INFINITY)
    for m in range(s.k):
        total += max(value[m], -4.0 * s.unit * s.k)  # further below no class is in the adversary's support
        mean[m] = total / (m + 1)
    solve_game(s, mean, share, NULL)
    total = 0.0
    for m in range(s.k - 1, -1, -1):
        total += share[m] / (m + 1)
        q[<int>place[m]] = total


cdef inline void worst_level(Family *s, const double *b, double *q) noexcept nogil:
    """The adversary's q for convex prices and scores b whose largest is 0."""
    cdef double *d = steps_of(s)
    cdef double *value = d + 2 * s.kp
    cdef double *place = value + s.kp
    cdef double level, theta, low, rest = 1.0, mass
    cdef int j = 0, rank, size = 1, end, count = ordered(s, b, -INFINITY)
    if count < s.k:  # not a number
        return
    while True:
        level = max(threshold(b, s.kp, -1.0, size), -1.0)
        theta = d[size] if size < s.k else 1.0
        j = 0
        while j < s.k and value[j] > level:
            j += 1
        if j * theta >= 1.0:
            theta = 1.0 / j
            break
        end = stretch(s, size)
        low = -1.0 if end >= s.k else max(threshold(b, s.kp, -1.0, end), -1.0)
        rank = <int>ceil(1.0 / theta) if theta * s.k >= 1.0 else s.k + 1
        level = value[rank - 1] if rank <= s.k and value[rank - 1] >= low else low
        if level > low or low == -1.0 or value[rank - 1 if rank <= s.k else 0] == low:
            break
        size = end
    # theta above the level, what is left at it, the rest to the best class
    j = 0
    while j < s.k and value[j] >= level:
        mass = min(theta, rest)
        q[<int>place[j]] = mass
        rest -= mass
        j += 1
    q[<int>place[0]] += rest


cdef inline double label_sets_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef double *b = s.work
    cdef double value
    cdef int j
    shift(s, f, b, s.kp)
    memset(r, 0, s.kp * sizeof(double))
    if s.l > 1:
        worst_prefixes(s, b, r)
    else:
        worst_level(s, b, r)
    normalise(r, s.kp)
    c[0] = least_row(s, r)
    value = c[0] - b[y]
    for j in range(s.k):
        if r[j] != 0.0:
            value += r[j] * b[j]
    r[y] -= 1.0
    return value


cdef inline double flat_level(const double *g, int k, double w, double flat, double top) noexcept nogil:
    """mu such that the sum over j of x up to ``flat``, ``flat`` up to x = flat + 1, x - 1 beyond is w, for x = g_j - mu: it falls in mu; Newton inside a bracket."""
    cdef double low = top - w - 1.0, high = top, mu = 0.5 * (low + high), total, x, trial
    cdef int j, iteration, moving
    for iteration in range(200):
        total = -w
        moving = 0
        for j in range(k):
            x = g[j] - mu
            if x > 0.0:
                total += x if x < flat else max(flat, x - 1.0)
                moving += x < flat or x > flat + 1.0
        if total > 0.0:
            low = mu
        else:
            high = mu
        trial = mu + total / moving if moving else 0.5 * (low + high)
        if trial == mu or total == 0.0:
            break
        if not low < trial < high:
            trial = 0.5 * (low + high)
            if trial == low or trial == high:
                break
        mu = trial
    return mu


cdef inline void step_by_level(Family *s, const double *g, double w, double *out, signed char *state) noexcept nogil:
    """The block step for convex prices."""
    cdef double *d = steps_of(s)
    cdef double *h = s.work + 2 * s.kp
    cdef double v = 0.0, mu = 0.0, flat = 0.0, covered, x, top = maximum(g, s.kp)
    cdef int j, size = 1, end
    cdef bint whole
    while True:
        # N = size: v = mu + w theta
        v = capped_threshold(g, s.kp, top - 1.0, 1.0, size) if size < s.k else -INFINITY
        for j in range(s.kp):
            h[j] = max(min(g[j], v), g[j] - 1.0)
        mu = threshold(h, s.kp, maximum(h, s.kp) - w, w)
        flat, whole = max(v - mu, 0.0), True
        if size == s.k or flat <= w * d[size]:
            break
        end = stretch(s, size)
        flat, whole = w * d[size], False
        mu = flat_level(g, s.k, w, flat, top)
        if end == s.k:
            break
        covered = 0.0
        for j in range(s.k):
            covered += min(max(g[j] - mu - flat, 0.0), 1.0)
        if covered <= end:
            break
        size = end
    for j in range(s.k):
        x = g[j] - mu
        out[j] = (x if x < flat else max(flat, x - 1.0)) / w if x > 0.0 else 0.0
        if state != NULL:
            state[j] = FIXED if x <= 0.0 else FREE if x < flat or x > flat + 1.0 else TIED if whole and flat > 0.0 else FIXED
    normalise(out, s.kp)


cdef inline void step_by_sets(Family *s, const double *f, const double *g, const double *q0, double w, double *out, signed char *state) noexcept nogil:
    """The block step for any prices: that over the sets which are listed, until no other one costs less at its answer."""
    cdef Family t = s[0]
    cdef int k = s.k, kp = s.kp, most = 3 * s.k, size, i, iteration, before
    cdef double *price = steps_of(s) + kp
    cdef double *value = price + kp
    cdef double *place = value + kp
    cdef double least = INFINITY, rest
    t.extra = place + kp
    t.matrix = t.extra
    t.tight = NULL
    t.l = 0
    memcpy(out, g, kp * sizeof(double))  # the answer's entries are ordered as those of g
    for iteration in range(20 * k + 20):
        ordered(s, out, -INFINITY)
        rest, before = 1.0, t.l
        for size in range(k):
            rest -= value[size] if iteration else 0.0
            if size + 1 < k and price[size + 1] == price[size]:
                continue
            if rest + price[size] < least - 1e-10 * s.unit and t.l < most:
                row = t.extra + <Py_ssize_t>t.l * kp
                for i in range(k):
                    row[i] = 1.0 + price[size]
                for i in range(k, kp):
                    row[i] = 0.0
                for i in range(size + 1):
                    row[<int>place[i]] -= 1.0
                t.l += 1
        if t.l == before:
            break
        solve_block(&t, f, q0, w, out)
        least = INFINITY
        for i in range(t.l):
            least = min(least, dot(t.extra + <Py_ssize_t>i * kp, out, kp))
        if t.l > 2 * k:  # sets that cost more are not needed, as the value falls with every list
            size = 0
            for i in range(t.l):
                row = t.extra + <Py_ssize_t>i * kp
                if dot(row, out, kp) <= least + 1e-9 * s.unit:
                    memmove(t.extra + <Py_ssize_t>size * kp, row, kp * sizeof(double))
                    size += 1
            t.l = size
    if state != NULL:
        for i in range(k):
            state[i] = FREE if out[i] > 0.0 else FIXED


cdef inline double label_sets_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    cdef int j
    cdef double gap
    b, g = s.work, s.work + s.kp
    q0 = s.work + 4 * s.kp
    if ends_at_vertex(s, f, r, y, w, 1e-10, skip, out, state, &gap):
        return gap
    shift(s, f, b, s.kp)
    distribution(s, r, y, q0)
    for j in range(s.kp):
        g[j] = b[j] + w * q0[j]
        out[j] = 0.0
    if s.l > 1:
        step_by_sets(s, f, g, q0, w, out, state)
    else:
        step_by_level(s, g, w, out, state)
    out[y] -= 1.0
    return gap


cdef inline int bind_label_sets(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """The prices of 1 to k classes."""
    cdef int k = s.k, kp = s.kp, size, m
    cdef bint convex = True
    cdef Py_ssize_t game = <Py_ssize_t>k * kp + general_extra(k, k)
    cdef double rounding
    if n_parameters != k:
        return -3
    rounding = 1e-15 * parameters[k - 1]
    for size in range(2, k):
        convex = convex and parameters[size] - 2.0 * parameters[size - 1] + parameters[size - 2] >= -rounding
    game = 0 if convex else game + <Py_ssize_t>3 * k * kp + simplex_extra(3 * k, k) + block_extra(3 * k, k)
    s.extra = zeros(game + 4 * kp)
    if s.extra == NULL:
        return -1
    s.l = 1 if convex else k
    s.unit = 1.0 + parameters[k - 1]
    d = steps_of(s)
    for size in range(k):
        d[kp + size] = parameters[size]
        if 0 < size:
            d[size] = parameters[size] - parameters[size - 1]
            if 1 < size and fabs(d[size] - d[size - 1]) <= rounding:
                d[size] = d[size - 1]
        if not convex:
            for m in range(k):
                s.extra[<Py_ssize_t>size * kp + m] = 1.0 + parameters[size] - (size + 1.0 if size < m else m + 1.0) / (m + 1)
    s.matrix = s.extra
    s.oracle, s.offset, s.step = label_sets_oracle, label_sets_offset, label_sets_step
    return 0
