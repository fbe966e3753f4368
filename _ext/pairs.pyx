"""Ascent by pairs for threshold models over a kernel matrix: dual variables move two at a time and keep their equality constraints.

The steps are those of programs for support vector machines (Keerthi et al. 2001, "Improvements to Platt's SMO algorithm"); the partner is the one
whose move gains most (Fan, Chen & Lin 2005). The dual is that of advcli/learners/threshold_problem.py, one variable alpha_ij in [0, U_ij] a row i
and threshold j. With b_ij = s_ij alpha_ij and slopes h_ij = s_ij - (g_i + o_i) + theta_j, theta_j = -total_j where thresholds are penalised and
else 0, moving d from b_ql to b_pj changes the dual value at the rate h_pj - h_ql.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_labels, demand
from adv_simd cimport vec, load, store, splat, vmax, if_greater, zeros, LANES

cdef enum:
    LINE = 8          # numbers of a cache line
    EACH = 0          # every threshold has a constraint of its own
    ORDERED = 1       # a total may grow at the cost of a lower threshold's, and back as far as the order's multipliers reach
    SUM = 2           # one constraint, thresholds penalised

cdef double TINY = 1e-12   # least curvature of a move
cdef double LEAST = 1e-13  # difference of slopes that is rounding

cdef struct Ends:
    double high, least   # the largest slope of those that can grow, the least of those that can fall
    Py_ssize_t up, down  # their rows, -1 for none

cdef struct Pairs:
    Py_ssize_t n, m, width
    int coupling
    const double *K
    double *diagonal
    double *f            # g + o
    double *top          # s where b can grow, else -inf, (m, width)
    double *low          # s where b can fall, else inf, (m, width)
    double *theta        # (m,)
    double *mu           # multipliers of the order, (m,)
    double *eta          # (m,)
    double *roof         # largest best thresholds, (m,)
    Ends *ends           # of every threshold, as they were when last looked at


cdef void ends_of(const Pairs *p, Py_ssize_t j, Ends *found) noexcept nogil:
    """Find the ends of threshold j; of equal ones the first."""
    cdef Py_ssize_t i, whole = p.width // LANES
    cdef int lane
    cdef const double *top = p.top + j * p.width
    cdef const double *low = p.low + j * p.width
    cdef vec f, h, high = splat(-INFINITY), least = splat(-INFINITY), at_high = splat(-1.0), at_least = at_high, here
    cdef double[8] values
    cdef double[8] places
    cdef Py_ssize_t place
    for i in range(whole):
        f = load(p.f, <int>i)
        here = splat(<double>i)
        h = load(top, <int>i) - f
        at_high = if_greater(h, high, here, at_high)
        high = vmax(high, h)
        h = f - load(low, <int>i)
        at_least = if_greater(h, least, here, at_least)
        least = vmax(least, h)
    found.up = found.down = -1
    found.high = found.least = -INFINITY
    store(values, 0, high)
    store(places, 0, at_high)
    for lane in range(LANES):
        place = <Py_ssize_t>places[lane] * LANES + lane
        if places[lane] >= 0.0 and (values[lane] > found.high or (values[lane] == found.high and place < found.up)):
            found.high, found.up = values[lane], place
    store(values, 0, least)
    store(places, 0, at_least)
    for lane in range(LANES):
        place = <Py_ssize_t>places[lane] * LANES + lane
        if places[lane] >= 0.0 and (values[lane] > found.least or (values[lane] == found.least and place < found.down)):
            found.least, found.down = values[lane], place
    found.high = found.high + p.theta[j]
    found.least = p.theta[j] - found.least


cdef inline void recall(Pairs *p, Py_ssize_t j) noexcept nogil:
    """Bring the slopes of the ends of threshold j up to date, their rows being those that were found last."""
    cdef Ends *found = &p.ends[j]
    found.high = p.top[j * p.width + found.up] - p.f[found.up] + p.theta[j] if found.up >= 0 else -INFINITY
    found.least = p.low[j * p.width + found.down] - p.f[found.down] + p.theta[j] if found.down >= 0 else INFINITY


cdef inline double reach(const Pairs *p, Py_ssize_t up, Py_ssize_t down) noexcept nogil:
    """How far b of threshold ``up`` may grow while that of ``down`` falls."""
    cdef Py_ssize_t j
    cdef double most = INFINITY
    if up == down or p.coupling == SUM:
        return most
    if p.coupling == EACH:
        return 0.0
    for j in range(up, down):
        most = p.mu[j] if p.mu[j] < most else most
    return most


cdef Py_ssize_t partner(const Pairs *p, Py_ssize_t up, double high, Py_ssize_t j, double cross, double *best_gain) noexcept nogil:
    """The row of threshold j that gains most by falling while row ``up`` of slope ``high`` grows, without ends; the first of equals; -1 for none."""
    cdef Py_ssize_t i, best = -1, place, whole = p.n // LANES
    cdef int lane
    cdef const double *row = p.K + up * p.n
    cdef const double *low = p.low + j * p.width
    cdef vec two = splat(2.0), tiny = splat(TINY), constant = splat(row[up] + cross), level = splat(high - p.theta[j])
    cdef vec ahead, bend, gain, largest = splat(0.0), at = splat(-1.0), nothing = splat(0.0)
    cdef double[8] values
    cdef double[8] places
    cdef double most = 0.0, bent, moved
    for i in range(whole):
        ahead = vmax(level - load(low, <int>i) + load(p.f, <int>i), nothing)
        bend = vmax(constant + load(p.diagonal, <int>i) - two * load(row, <int>i), tiny)
        gain = ahead * ahead / bend
        at = if_greater(gain, largest, splat(<double>i), at)
        largest = vmax(largest, gain)
    store(values, 0, largest)
    store(places, 0, at)
    for lane in range(LANES):
        place = <Py_ssize_t>places[lane] * LANES + lane
        if places[lane] >= 0.0 and (values[lane] > most or (values[lane] == most and place < best)):
            most, best = values[lane], place
    for i in range(whole * LANES, p.n):
        moved = high - p.theta[j] - low[i] + p.f[i]
        bent = row[up] + cross + p.diagonal[i] - 2.0 * row[i]
        if moved > 0.0 and moved * moved / (bent if bent > TINY else TINY) > most:
            most, best = moved * moved / (bent if bent > TINY else TINY), i
    best_gain[0] = most
    return best


cdef inline double bend_of(const Pairs *p, Py_ssize_t up, Py_ssize_t down, double cross) noexcept nogil:
    """Curvature of the dual along a pair."""
    cdef double bend = p.K[up * p.n + up] + p.K[down * p.n + down] - 2.0 * p.K[up * p.n + down] + cross
    return bend if bend > TINY else TINY


cdef inline double headroom(double s, double a, double most) noexcept nogil:
    """How far s a can grow while a stays in [0, most]."""
    return most - a if s > 0.0 else a


cdef inline double grown(double s, double a, double most, double d) noexcept nogil:
    """The a whose s a is larger by d; exact at an end, so that variables at an end are told apart from those inside."""
    if d == headroom(s, a, most):
        return most if s > 0.0 else 0.0
    return a + s * d


cdef inline void mark(Pairs *p, Py_ssize_t j, Py_ssize_t i, double s, double a, double most) noexcept nogil:
    """Write whether b_ij = s a can grow and fall."""
    p.top[j * p.width + i] = s if headroom(s, a, most) > 0.0 else -INFINITY
    p.low[j * p.width + i] = s if headroom(-s, a, most) > 0.0 else INFINITY


cdef void transfer(Pairs *p, double d, Py_ssize_t up, Py_ssize_t down) noexcept nogil:
    """f += d (K_up - K_down)."""
    cdef Py_ssize_t i, whole = p.n // LANES
    cdef const double *a = p.K + up * p.n
    cdef const double *b = p.K + down * p.n
    cdef vec by = splat(d)
    for i in range(whole):
        store(p.f, <int>i, load(p.f, <int>i) + by * (load(a, <int>i) - load(b, <int>i)))
    for i in range(whole * LANES, p.n):
        p.f[i] += d * (a[i] - b[i])


cdef inline double between(double floor, double roof) noexcept nogil:
    """The middle of an interval, its finite end, or 0."""
    if floor > -INFINITY:
        return 0.5 * (floor + roof) if roof < INFINITY else floor
    return roof if roof < INFINITY else 0.0


cdef void thresholds(Pairs *p) noexcept nogil:
    """Write eta: where no pair gains, a best one; in order where the coupling says so."""
    cdef Py_ssize_t j
    cdef double floor = -INFINITY, roof = INFINITY
    for j in range(p.m):
        ends_of(p, j, &p.ends[j])
        p.eta[j] = -p.ends[j].least if p.ends[j].down >= 0 else -INFINITY
        p.roof[j] = -p.ends[j].high if p.ends[j].up >= 0 else INFINITY
    if p.coupling == EACH:
        for j in range(p.m):
            p.eta[j] = between(p.eta[j], p.roof[j])
    elif p.coupling == SUM:
        for j in range(p.m):
            floor = p.eta[j] if p.eta[j] > floor else floor
            roof = p.roof[j] if p.roof[j] < roof else roof
        for j in range(p.m):
            p.eta[j] = between(floor, roof) + p.theta[j]
    else:
        # the ends of those below and above hold too, and thresholds between which a total has passed are one
        for j in range(1, p.m):
            p.eta[j] = p.eta[j] if p.eta[j] > p.eta[j - 1] else p.eta[j - 1]
            p.roof[p.m - 1 - j] = p.roof[p.m - j] if p.roof[p.m - j] < p.roof[p.m - 1 - j] else p.roof[p.m - 1 - j]
        for j in range(1, p.m):
            p.roof[j] = p.roof[j - 1] if p.mu[j - 1] > 0.0 else p.roof[j]
            p.eta[p.m - 1 - j] = p.eta[p.m - j] if p.mu[p.m - 1 - j] > 0.0 else p.eta[p.m - 1 - j]
        for j in range(p.m):
            floor = between(p.eta[j], p.roof[j])
            p.eta[j] = floor if j == 0 or floor > p.eta[j - 1] else p.eta[j - 1]


cdef double gap_of(Pairs *p, const Py_ssize_t[::1] y, const double[:, ::1] U, const double[::1] offset, const double[:, ::1] alpha) noexcept nogil:
    """Return primal - dual over primal, at the thresholds that the slopes tell."""
    cdef Py_ssize_t i, j
    cdef double s, z, a, beta, square = 0.0, linear = 0.0, loss = 0.0, penalty = 0.0, primal
    cdef const double *eta = p.eta
    thresholds(p)
    for j in range(p.m):
        penalty += p.theta[j] * p.theta[j]
    for i in range(p.n):
        beta = 0.0
        for j in range(p.m):
            s = 1.0 if y[i] > j else -1.0
            a = alpha[j, i]
            z = 1.0 - s * (p.f[i] - eta[j])
            loss += U[j, i] * z if z > 0.0 else 0.0
            beta += s * a
            linear += a
        a = offset[i] if offset.shape[0] else 0.0
        square += beta * (p.f[i] - a)
        linear -= beta * a
    primal = 0.5 * (square + penalty) + loss
    return (primal - linear + 0.5 * (square + penalty)) / primal if primal > 0.0 else 0.0


cdef int climb(Pairs *p, const Py_ssize_t[::1] y, const double[:, ::1] U, const double[::1] offset, double[:, ::1] alpha, double tol,
               Py_ssize_t most_steps, Py_ssize_t *steps, double *gap) except -1 nogil:
    """Visit the thresholds in turn, one pair each, until the gap is at most ``tol``, the steps are used up or no pair gains."""
    cdef Py_ssize_t j = 0, q, up, down, idle = 0, l, since = 0, patience = p.n // 2 + 8 * p.m
    cdef double eps = 0.5, high, least, s, d, bend, room, cross, other, most
    cdef Py_ssize_t of_up, of_down, at
    cdef Ends *ends = p.ends
    gap[0] = gap_of(p, y, U, offset, alpha)
    while gap[0] > tol and steps[0] < most_steps and eps >= LEAST:
        ends_of(p, j, &ends[j])
        of_up = of_down = at = j
        if p.coupling != EACH:
            for q in range(p.m):
                if q != j:
                    recall(p, q)
        if p.coupling == SUM:
            for q in range(p.m):
                of_up = q if ends[q].high > ends[of_up].high else of_up
                of_down = q if ends[q].least < ends[of_down].least else of_down
        elif p.coupling == ORDERED:
            most = ends[j].high - ends[j].least
            for q in range(p.m):
                if ends[q].high - ends[j].least > most and reach(p, q, j) > 0.0:
                    of_up, of_down, most = q, j, ends[q].high - ends[j].least
                if ends[j].high - ends[q].least > most and reach(p, j, q) > 0.0:
                    of_up, of_down, most = j, q, ends[j].high - ends[q].least
        up, down, high, least = ends[of_up].up, ends[of_down].down, ends[of_up].high, ends[of_down].least
        j = j + 1 if j + 1 < p.m else 0
        if up < 0 or down < 0 or not high - least > eps:
            idle += 1
            if idle < p.m:
                continue
            idle = 0
            if eps <= 0.125:
                gap[0] = gap_of(p, y, U, offset, alpha)
            eps *= 0.5
            continue
        idle = 0
        cross = 2.0 if p.coupling == SUM and of_up != of_down else 0.0
        bend = bend_of(p, up, down, cross)
        if p.coupling == SUM or of_down == at:
            # of threshold j, whose ends are new
            other = 2.0 if p.coupling == SUM and of_up != at else 0.0
            l = partner(p, up, high, at, other, &s)
            if l >= 0 and s > (high - least) * (high - least) / bend:
                of_down, down, cross = at, l, other
                least = p.low[at * p.width + l] - p.f[l] + p.theta[at]
                bend = bend_of(p, up, l, other)
        d = (high - least) / bend
        room = reach(p, of_up, of_down)
        d = d if d < room else room
        s = 1.0 if y[up] > of_up else -1.0
        other = 1.0 if y[down] > of_down else -1.0
        room = headroom(s, alpha[of_up, up], U[of_up, up])
        d = d if d < room else room
        room = headroom(-other, alpha[of_down, down], U[of_down, down])
        d = d if d < room else room
        alpha[of_up, up] = grown(s, alpha[of_up, up], U[of_up, up], d)
        alpha[of_down, down] = grown(-other, alpha[of_down, down], U[of_down, down], d)
        mark(p, of_up, up, s, alpha[of_up, up], U[of_up, up])
        mark(p, of_down, down, other, alpha[of_down, down], U[of_down, down])
        if p.coupling == SUM:
            p.theta[of_up] -= d
            p.theta[of_down] += d
        elif of_up < of_down:
            for q in range(of_up, of_down):
                p.mu[q] = p.mu[q] - d if p.mu[q] > d else 0.0
        else:
            for q in range(of_down, of_up):
                p.mu[q] += d
        transfer(p, d, up, down)
        steps[0] += 1
        since += 1
        if since >= patience:
            since = 0
            with gil:
                PyErr_CheckSignals()
            gap[0] = gap_of(p, y, U, offset, alpha)
    if since:
        gap[0] = gap_of(p, y, U, offset, alpha)
    return 0


def ascend(const Py_ssize_t[::1] y, const double[:, ::1] U, const double[:, ::1] K, const double[::1] offset, int coupling, double[:, ::1] alpha,
           double[::1] g, double tol, Py_ssize_t most_steps):
    """Ascend the dual over the kernel matrix K (n, n), in place on alpha (m, n), feasible, and its scores g = K beta (n,).

    ``coupling`` is 0 (a constraint for each threshold), 1 (thresholds in order) or 2 (one constraint, thresholds penalised); ``offset`` (n,) is what
    hinges see beside g, or empty. Return the pairs moved, and the relative gap; the ascent ends where that is at most ``tol``, after ``most_steps``,
    or where no pair gains.
    """
    cdef Pairs p
    cdef Py_ssize_t i, j, m = U.shape[0], n = U.shape[1], width = (n + LINE - 1) // LINE * LINE, steps = 0
    cdef double s, sums = 0.0, gap = 0.0
    cdef double *block
    demand(m > 0 and n > 0, "there must be a row and a threshold")
    check_labels(y, n, m + 1)
    demand(K.shape[0] == n and K.shape[1] == n, "the kernel matrix must be (n, n)")
    demand(g.shape[0] == n and alpha.shape[0] == m and alpha.shape[1] == n, "scores must be (n,), dual variables (m, n)")
    demand(offset.shape[0] == 0 or offset.shape[0] == n, "offsets must be (n,) or none")
    demand(0 <= coupling <= 2, "the coupling must be 0, 1 or 2")
    # ends of a threshold are no more than eight numbers
    block = zeros(2 * width + 2 * m * width + 8 * m)
    if block == NULL:
        raise MemoryError("no memory for the ascent by pairs")
    p.n, p.m, p.width, p.coupling, p.K = n, m, width, coupling, &K[0, 0]
    p.f, p.diagonal = block, block + width
    p.top, p.low = block + 2 * width, block + (2 + m) * width
    p.theta = block + (2 + 2 * m) * width
    p.mu, p.eta, p.roof, p.ends = p.theta + m, p.theta + 2 * m, p.theta + 3 * m, <Ends *>(p.theta + 4 * m)
    try:
        for i in range(n):
            p.f[i] = g[i] + (offset[i] if offset.shape[0] else 0.0)
            p.diagonal[i] = K[i, i]
        for j in range(m):
            for i in range(width):
                p.top[j * width + i], p.low[j * width + i] = -INFINITY, INFINITY
            s = 0.0
            for i in range(n):
                mark(&p, j, i, 1.0 if y[i] > j else -1.0, alpha[j, i], U[j, i])
                s += alpha[j, i] if y[i] > j else -alpha[j, i]
            sums += s
            p.theta[j] = -s if coupling == SUM else 0.0
            p.mu[j] = -sums if coupling == ORDERED and j + 1 < m and sums < 0.0 else 0.0
        with nogil:
            climb(&p, y, U, offset, alpha, tol, most_steps, &steps, &gap)
        for i in range(n):
            g[i] = p.f[i] - (offset[i] if offset.shape[0] else 0.0)
    finally:
        free(block)
    return steps, gap
