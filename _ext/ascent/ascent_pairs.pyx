"""Ascent by pairs for threshold models over a kernel matrix: dual variables move two at a time and keep their equality constraints.

The steps are those of programs for support vector machines (Keerthi et al. 2001, "Improvements to Platt's SMO algorithm"); the partner is the one
whose move gains most (Fan, Chen & Lin 2005). The dual is that of advcli/problems/threshold.py, one variable alpha_ij in [0, U_ij] a row i
and threshold j. With b_ij = s_ij alpha_ij and slopes h_ij = s_ij - (g_i + o_i) + theta_j, theta_j = -total_j where thresholds are penalised and
else 0, moving d from b_ql to b_pj changes the dual value at the rate h_pj - h_ql.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_labels, demand
from adv_simd cimport vec, load, store, splat, vmax, if_greater, hmax, zeros, LANES

cdef enum:
    LINE = 8          # numbers of a cache line
    EACH = 0          # every threshold has a constraint of its own
    ORDERED = 1       # a total may grow at the cost of a lower threshold's, and back as far as the order's multipliers reach
    SUM = 2           # one constraint, thresholds penalised
    PATIENCE = 8      # pairs moved in a part before all rows are looked at again, in units of its rows
    MOST_PART = 2048  # rows of the largest part: 32 MiB of kernel values
    LEAST_ROWS = 64   # a part of fewer rows saves nothing

cdef double SHARE = 0.25  # of the largest difference of slopes: what a part is brought to before all rows are looked at again
cdef double TINY = 1e-12   # least curvature of a move
cdef double LEAST = 1e-13  # difference of slopes that is rounding

cdef struct Ends:
    double high, least   # the largest slope of those that can grow, the least of those that can fall
    Py_ssize_t up, down  # their rows, negative for none

cdef struct Pairs:
    Py_ssize_t n, m, width
    Py_ssize_t stride    # of the rows of K: n, or ``width`` where they are padded
    Py_ssize_t whole     # vectors of a row of K
    int coupling
    Py_ssize_t next      # the threshold whose turn it is
    double eps           # differences of slopes count above this level
    const Py_ssize_t *y
    const double *U      # (m, n)
    double *alpha        # (m, n)
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


cdef double[8] LANE = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


cdef inline Py_ssize_t first_of(vec values, vec at, double *largest) noexcept nogil:
    """The first place of the largest value, lane by lane the values of vectors ``at``; negative where that is -1."""
    largest[0] = hmax(values)
    return <Py_ssize_t>-hmax(splat(0.0) - if_greater(splat(largest[0]), values, splat(INFINITY), at * splat(<double>LANES) + load(LANE, 0)))


cdef void ends_of(const Pairs *p, Py_ssize_t j, Ends *found) noexcept nogil:
    """Find the ends of threshold j, negative for none; of equal ones the first."""
    cdef Py_ssize_t i, whole = p.width // LANES
    cdef const double *top = p.top + j * p.width
    cdef const double *low = p.low + j * p.width
    cdef vec f, h, high = splat(-INFINITY), least = splat(-INFINITY), at_high = splat(-1.0), at_least = at_high, here
    for i in range(whole):
        f = load(p.f, <int>i)
        here = splat(<double>i)
        h = load(top, <int>i) - f
        at_high = if_greater(h, high, here, at_high)
        high = vmax(high, h)
        h = f - load(low, <int>i)
        at_least = if_greater(h, least, here, at_least)
        least = vmax(least, h)
    found.up = first_of(high, at_high, &found.high)
    found.down = first_of(least, at_least, &found.least)
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


cdef struct Gains:
    vec square, bend, at   # of the largest ahead^2 / bend in each lane, and its vector


cdef inline void compare(const Pairs *p, const double *row, const double *low, Py_ssize_t i, vec level, vec constant, Gains *best) noexcept nogil:
    """Take vector i of a row of gains into the largest: fractions compared by cross products, since a division takes longer than all the rest."""
    cdef vec square = vmax(level - load(low, <int>i) + load(p.f, <int>i), splat(0.0)), bend, here, there
    square = square * square
    bend = vmax(constant + load(p.diagonal, <int>i) - splat(2.0) * load(row, <int>i), splat(TINY))
    here, there = square * best.bend, best.square * bend
    best.at = if_greater(here, there, splat(<double>i), best.at)
    best.square = if_greater(here, there, square, best.square)
    best.bend = if_greater(here, there, bend, best.bend)


cdef Py_ssize_t partner(const Pairs *p, Py_ssize_t up, double high, Py_ssize_t j, double cross, double *best_gain) noexcept nogil:
    """The row of threshold j that gains most by falling while row ``up`` of slope ``high`` grows, without ends; negative for none."""
    cdef Py_ssize_t i, best, whole = p.whole, even = whole // 2 * 2
    cdef const double *row = p.K + up * p.stride
    cdef const double *low = p.low + j * p.width
    cdef vec constant = splat(row[up] + cross), level = splat(high - p.theta[j]), first, second
    cdef Gains a, b        # two chains hide the latency of comparisons
    cdef double most, bent, moved
    a.square = b.square = splat(0.0)
    a.bend = b.bend = splat(1.0)
    a.at = b.at = splat(-1.0)
    for i in range(0, even, 2):
        compare(p, row, low, i, level, constant, &a)
        compare(p, row, low, i + 1, level, constant, &b)
    if even < whole:
        compare(p, row, low, even, level, constant, &a)
    first, second = a.square / a.bend, b.square / b.bend
    best = first_of(vmax(first, second), if_greater(second, first, b.at, a.at), &most)
    for i in range(whole * LANES, p.n):
        moved = high - p.theta[j] - low[i] + p.f[i]
        bent = row[up] + cross + p.diagonal[i] - 2.0 * row[i]
        if moved > 0.0 and moved * moved / (bent if bent > TINY else TINY) > most:
            most, best = moved * moved / (bent if bent > TINY else TINY), i
    best_gain[0] = most
    return best


cdef inline double bend_of(const Pairs *p, Py_ssize_t up, Py_ssize_t down, double cross) noexcept nogil:
    """Curvature of the dual along a pair."""
    cdef double bend = p.diagonal[up] + p.diagonal[down] - 2.0 * p.K[up * p.stride + down] + cross
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
    cdef Py_ssize_t i, whole = p.whole
    cdef const double *a = p.K + up * p.stride
    cdef const double *b = p.K + down * p.stride
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


cdef double gap_of(Pairs *p, const double[::1] offset) noexcept nogil:
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
            s = 1.0 if p.y[i] > j else -1.0
            a = p.alpha[j * p.n + i]
            z = 1.0 - s * (p.f[i] - eta[j])
            loss += p.U[j * p.n + i] * z if z > 0.0 else 0.0
            beta += s * a
            linear += a
        a = offset[i] if offset.shape[0] else 0.0
        square += beta * (p.f[i] - a)
        linear -= beta * a
    primal = 0.5 * (square + penalty) + loss
    return (primal - linear + 0.5 * (square + penalty)) / primal if primal > 0.0 else 0.0


cdef Py_ssize_t visits(Pairs *p, Py_ssize_t most, bint *rests) noexcept nogil:
    """Visit the thresholds in turn, one pair each, until ``most`` pairs have moved or, ``rests``, none of a round counts; return how many moved."""
    cdef Py_ssize_t j = p.next, q, up, down, idle = 0, l, of_up, of_down, at, moved = 0, n = p.n
    cdef double high, least, s, d, bend, room, cross, other, widest
    cdef double *grows
    cdef double *falls
    cdef Ends *ends = p.ends
    rests[0] = False
    if p.coupling != EACH:
        for q in range(p.m):
            ends_of(p, q, &ends[q])
    while moved < most:
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
            widest = ends[j].high - ends[j].least
            for q in range(p.m):
                if ends[q].high - ends[j].least > widest and reach(p, q, j) > 0.0:
                    of_up, of_down, widest = q, j, ends[q].high - ends[j].least
                if ends[j].high - ends[q].least > widest and reach(p, j, q) > 0.0:
                    of_up, of_down, widest = j, q, ends[j].high - ends[q].least
        up, down, high, least = ends[of_up].up, ends[of_down].down, ends[of_up].high, ends[of_down].least
        j = j + 1 if j + 1 < p.m else 0
        if up < 0 or down < 0 or not high - least > p.eps:
            idle += 1
            if idle < p.m:
                continue
            rests[0] = True
            break
        idle = 0
        cross = 2.0 if p.coupling == SUM and of_up != of_down else 0.0
        bend = bend_of(p, up, down, cross)
        if p.coupling == SUM or of_down == at:
            # of threshold j, whose ends are new
            other = 2.0 if p.coupling == SUM and of_up != at else 0.0
            l = partner(p, up, high, at, other, &s)
            if l >= 0 and s > (high - least) * (high - least) / bend:
                widest = p.low[at * p.width + l] - p.f[l] + p.theta[at]
                # a row beside itself, or beside its like, has a curvature of 0, over which rounding of slopes looks like the largest gain
                if high - widest > LEAST and not (l == up and of_up == at):
                    of_down, down, cross, least = at, l, other, widest
                    bend = bend_of(p, up, l, other)
        d = (high - least) / bend
        room = reach(p, of_up, of_down)
        d = d if d < room else room
        s = 1.0 if p.y[up] > of_up else -1.0
        other = 1.0 if p.y[down] > of_down else -1.0
        grows, falls = p.alpha + of_up * n + up, p.alpha + of_down * n + down
        room = headroom(s, grows[0], p.U[of_up * n + up])
        d = d if d < room else room
        room = headroom(-other, falls[0], p.U[of_down * n + down])
        d = d if d < room else room
        grows[0] = grown(s, grows[0], p.U[of_up * n + up], d)
        falls[0] = grown(-other, falls[0], p.U[of_down * n + down], d)
        mark(p, of_up, up, s, grows[0], p.U[of_up * n + up])
        mark(p, of_down, down, other, falls[0], p.U[of_down * n + down])
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
        moved += 1
    p.next = j
    return moved


cdef Py_ssize_t movable(const Pairs *p, Py_ssize_t most, Py_ssize_t *rows, double *widest) noexcept nogil:
    """Find the rows of a variable that gains with one of those at the ends; return how many, or ``most`` + 1 where they are more.

    ``widest`` is the largest difference of two slopes that can move; the ends are those of `thresholds`.
    """
    cdef Py_ssize_t i, j, q, found = 0
    cdef double high, least
    cdef const double *top
    cdef const double *low
    widest[0] = 0.0
    # roof and eta hold, until thresholds are asked for again, what f of a row that gains is below or above
    for j in range(p.m):
        high, least = -INFINITY, INFINITY
        for q in range(p.m):
            if reach(p, q, j) > 0.0 and p.ends[q].high > high:
                high = p.ends[q].high
            if reach(p, j, q) > 0.0 and p.ends[q].least < least:
                least = p.ends[q].least
        widest[0] = p.ends[j].high - least if p.ends[j].high - least > widest[0] else widest[0]
        p.roof[j], p.eta[j] = least - p.theta[j], high - p.theta[j]
    for i in range(p.n):
        for j in range(p.m):
            top, low = p.top + j * p.width, p.low + j * p.width
            if top[i] - p.f[i] > p.roof[j] or low[i] - p.f[i] < p.eta[j]:
                if found == most:
                    return most + 1
                rows[found] = i
                found += 1
                break
    return found


cdef void gather(const Pairs *p, const Py_ssize_t *rows, Py_ssize_t count, Pairs *part, Py_ssize_t *y, double *block) noexcept nogil:
    """Make ``part`` the problem of some rows in the memory of ``block``, the others being held where they are."""
    cdef Py_ssize_t a, b, i, j, width = (count + LINE - 1) // LINE * LINE
    cdef double *K
    cdef double *U
    cdef const double *row
    part[0] = p[0]
    part.n, part.width, part.stride, part.whole = count, width, width, width // LANES
    part.y = y
    part.diagonal, part.f, part.top = block, block + width, block + 2 * width
    part.low = part.top + p.m * width
    part.alpha = part.low + p.m * width
    U = part.alpha + p.m * width
    K = U + p.m * width
    part.U, part.K = U, K
    part.ends = <Ends *>(K + count * width)
    for a in range(width):
        i = rows[a] if a < count else 0
        part.diagonal[a] = p.diagonal[i] if a < count else 0.0
        part.f[a] = p.f[i] if a < count else 0.0
        for j in range(p.m):
            part.top[j * width + a] = p.top[j * p.width + i] if a < count else -INFINITY
            part.low[j * width + a] = p.low[j * p.width + i] if a < count else INFINITY
    for a in range(count):
        i = rows[a]
        y[a] = p.y[i]
        for j in range(p.m):
            part.alpha[j * count + a], U[j * count + a] = p.alpha[j * p.n + i], p.U[j * p.n + i]
        row = p.K + i * p.stride
        for b in range(count):
            K[a * width + b] = row[rows[b]]
        for b in range(count, width):
            K[a * width + b] = 0.0


cdef void scatter(Pairs *p, const Py_ssize_t *rows, const Pairs *part) noexcept nogil:
    """Take over what moved in a part: dual variables, and f of all rows."""
    cdef Py_ssize_t a, b, i, j
    cdef double change
    cdef const double *row
    cdef vec by
    p.next = part.next
    for a in range(part.n):
        i, change = rows[a], 0.0
        for j in range(p.m):
            change += (1.0 if p.y[i] > j else -1.0) * (part.alpha[j * part.n + a] - p.alpha[j * p.n + i])
            p.alpha[j * p.n + i] = part.alpha[j * part.n + a]
            p.top[j * p.width + i], p.low[j * p.width + i] = part.top[j * part.width + a], part.low[j * part.width + a]
        if change != 0.0:
            row, by = p.K + i * p.stride, splat(change)
            for b in range(p.whole):
                store(p.f, <int>b, load(p.f, <int>b) + by * load(row, <int>b))
            for b in range(p.whole * LANES, p.n):
                p.f[b] += change * row[b]


cdef int no_memory() except -1 with gil:
    raise MemoryError("no memory for a part of the rows")


cdef int climb(Pairs *p, const double[::1] offset, double tol, Py_ssize_t most_steps, double *steps, double *gap) except -1 nogil:
    """Move pairs until the gap is at most ``tol``, the steps are used up or no pair gains: among all rows, or the part that can move."""
    cdef Py_ssize_t most = p.n // 2 if p.n // 2 < MOST_PART else MOST_PART, count, moved, left, patience = p.n // 2 + 8 * p.m
    cdef Py_ssize_t wide = 0, padded
    cdef Py_ssize_t *rows = <Py_ssize_t *>malloc((2 * most + 1) * sizeof(Py_ssize_t))
    cdef double *block = NULL
    cdef double widest
    cdef bint rests
    cdef Pairs part
    if rows == NULL:
        no_memory()
    gap[0] = gap_of(p, offset)
    try:
        while gap[0] > tol and most_steps - steps[0] >= 1.0 and p.eps >= LEAST:
            left = <Py_ssize_t>(most_steps - steps[0])
            count = most + 1
            if most >= LEAST_ROWS:
                count = movable(p, most, rows, &widest)
            padded = (count + LINE - 1) // LINE * LINE
            if 0 < count <= most and padded > wide:
                wide = padded + padded // 4 // LINE * LINE
                free(block)
                block = zeros((2 + 4 * p.m + wide) * wide + 8 * p.m)
                if block == NULL:
                    no_memory()
            if 0 < count <= most:
                gather(p, rows, count, &part, rows + most, block)
                part.eps = SHARE * widest
                moved = visits(&part, min(PATIENCE * count, left * p.n // count), &rests)
                scatter(p, rows, &part)
                steps[0] += <double>moved * count / p.n
                if moved == 0:
                    count = most + 1
            if not 0 < count <= most:
                moved = visits(p, min(patience, left), &rests)
                steps[0] += moved
                if rests:
                    p.eps *= 0.5
            gap[0] = gap_of(p, offset)
            with gil:
                PyErr_CheckSignals()
    finally:
        free(rows)
        free(block)
    return 0


def ascend(const Py_ssize_t[::1] y, const double[:, ::1] U, const double[:, ::1] K, const double[::1] offset, int coupling, double[:, ::1] alpha,
           double[::1] g, double tol, Py_ssize_t most_steps):
    """Ascend the dual over the kernel matrix K (n, n), in place on alpha (m, n), feasible, and its scores g = K beta (n,).

    ``coupling`` is 0 (a constraint for each threshold), 1 (thresholds in order) or 2 (one constraint, thresholds penalised); ``offset`` (n,) is what
    hinges see beside g, or empty. Return the pairs moved, one among a part of the rows counting as that share of one, and the relative gap; the ascent
    ends where that is at most ``tol``, after ``most_steps``, or where no pair gains.
    """
    cdef Pairs p
    cdef Py_ssize_t i, j, m = U.shape[0], n = U.shape[1], width = (n + LINE - 1) // LINE * LINE
    cdef double s, sums = 0.0, gap = 0.0, steps = 0.0
    cdef double *block
    demand(m > 0 and n > 0, "there must be a row and a threshold")
    check_labels(y, n, m + 1)
    demand(K.shape[0] == n and K.shape[1] == n, "the kernel matrix must be (n, n)")
    demand(g.shape[0] == n and alpha.shape[0] == m and alpha.shape[1] == n, "scores must be (n,), dual variables (m, n)")
    demand(offset.shape[0] == 0 or offset.shape[0] == n, "offsets must be (n,) or none")
    demand(0 <= coupling <= 2, "the coupling must be 0, 1 or 2")
    block = zeros(2 * width + 2 * m * width + 8 * m)  # ends of a threshold are no more than four numbers
    if block == NULL:
        raise MemoryError("no memory for the ascent by pairs")
    p.n, p.m, p.width, p.stride, p.whole, p.coupling, p.next, p.eps = n, m, width, n, n // LANES, coupling, 0, 0.5
    p.y, p.U, p.alpha, p.K = &y[0], &U[0, 0], &alpha[0, 0], &K[0, 0]
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
            climb(&p, offset, tol, most_steps, &steps, &gap)
        for i in range(n):
            g[i] = p.f[i] - (offset[i] if offset.shape[0] else 0.0)
    finally:
        free(block)
    return <Py_ssize_t>steps, gap
