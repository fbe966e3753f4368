"""Binary problems in one column: dual coordinate ascent for hinges with a label, a bound and a margin a row, many problems over the same rows.

In C form, for each problem on its own

    primal  1/2 |v|^2 + sum_i c_i [m_i - s_i v.x_i]_+
    dual    maximise over a_i in [0, c_i]   sum_i a_i m_i - 1/2 |v(a)|^2,   v(a) = sum_i a_i s_i x_i

with labels s_i = +-1, bounds c_i >= 0 (0: the row is absent) and margins m_i. A visit is exact: a' = clip(a + (m - s v.x)/|x|^2, 0, c).
`linear` visits rows in a fresh permutation every pass and shrinks as `ascent_dense` does; `kernel` takes the row whose step gains most.

One file: both ascents have the same problem, checks and results.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc
from libc.stdint cimport uint64_t

from adv_simd cimport vec, load, store, splat, vmax, vmin, if_greater, zeros, LANES, prefetch
from adv_check cimport check_rows, demand
from adv_linear cimport Rows, prefetch_row, row_add, row_dot, rows_of
from adv_loop cimport seconds, shuffle
from adv_quadratic cimport PADDED, PRODUCTS, ROUNDS, SETTLED, SWEEPS, Quadratic, ascend_quadratic, scratch
from adv_schedule cimport Schedule, ascend_rows, hear, schedule_new, shuffled, swept

cdef enum:
    BLOCK_ROWS = 16      # rows that stay together when X exceeds the cache
    LINE = 8             # numbers of a cache line
    TOGETHER = 4         # moved rows of a kernel that slopes follow at a time
    AHEAD = 4            # visits between the prefetch of a row and its own
    SAMPLED = 8          # of so many rows of a kernel one is in the first working set
    FEW_ROWS = 64        # below, all are
    MOST_TOGETHER = 4096 # rows that move together: the matrix of an ascent over them takes 134 MB then

cdef double JOINING = 0.1   # share of the mean gap above which a row joins the working set
cdef double LEFT = 0.05     # share of its gap that steps leave
cdef double COPIED = 0.6    # share of all rows up to which rows of K are copied: the room that features leave for it
cdef double WORK = 8.0      # of such an ascent for each number of its matrix, in steps that change one slope
cdef double TRIED = 0.5     # share of that work that goes to steps of one row before
cdef double ALLOWED = 0.9   # or of the gap that the tolerance allows

# What a visit reads of a row beside x_i: one cache line.
cdef struct Term:
    double a, c, margin, label, square, inverse, gap
    Py_ssize_t row

cdef struct Problem:
    Rows rows
    Term *term           # of the m rows that are present
    Py_ssize_t m
    double *v            # (d,)
    bint blocks          # whether a pass over all rows keeps neighbours together

cdef struct Limits:
    double tol, max_passes, turn, deadline


cdef int check_problems(Py_ssize_t n, const signed char[:, ::1] label, const double[:, ::1] bound, const double[:, ::1] margin,
                        const double[:, ::1] A, const double[:, ::1] found) except -1:
    cdef Py_ssize_t count = label.shape[0]
    demand(label.shape[1] == n and bound.shape[0] == count and bound.shape[1] == n and A.shape[0] == count and A.shape[1] == n,
           "labels, bounds and dual numbers must be (problems, rows)")
    demand(margin.shape[0] == 0 or (margin.shape[0] == count and margin.shape[1] == n), "margins must be (problems, rows), or none")
    return demand(found.shape[0] == count and found.shape[1] == 4, "there are four results a problem")


cdef inline double clipped(double a, double low, double high) noexcept nogil:
    return low if a < low else (high if a > high else a)


cdef inline double stepped(double a, double g, double inverse, double c) noexcept nogil:
    """The best a in [0, c] where the slope at a is g and falls by 1/inverse; inverse 0: by nothing."""
    if inverse > 0.0:
        return clipped(a + g * inverse, 0.0, c)
    return c if g > 0.0 else (0.0 if g < 0.0 else a)


cdef inline double visit(Problem *p, Term *t, double skip) noexcept nogil:
    """Take the exact step of one row and return the gap that the row had."""
    cdef double g = t.margin - t.label * row_dot(&p.rows, t.row, p.v), gap, new
    gap = (t.c * g if g > 0.0 else 0.0) - t.a * g
    t.gap = gap
    if gap > skip:
        new = stepped(t.a, g, t.inverse, t.c)
        if new != t.a:
            row_add(&p.rows, t.row, t.label * (new - t.a), p.v)
            t.a = new
    return gap


cdef int sweep(void *ascent, Schedule *s, bint active) except -1 nogil:
    cdef Problem *p = <Problem *>ascent
    cdef Py_ssize_t at, b, count
    cdef double total = 0.0
    if p.blocks and not active:
        count = (p.m + BLOCK_ROWS - 1) // BLOCK_ROWS
        for b in range(count):
            s.order[b] = b
        shuffle(s.order, count, &s.state)
        for b in range(count):
            for at in range(s.order[b] * BLOCK_ROWS, min((s.order[b] + 1) * BLOCK_ROWS, p.m)):
                total += visit(p, p.term + at, s.skip)
        return swept(s, active, total)
    count = shuffled(s, active)
    for at in range(count):
        if at + 2 * AHEAD < count:
            prefetch(p.term + s.order[at + 2 * AHEAD])
        if at + AHEAD < count:
            prefetch_row(&p.rows, p.term[s.order[at + AHEAD]].row)
        total += visit(p, p.term + s.order[at], s.skip)
    return swept(s, active, total)


cdef int evaluate(void *ascent, Schedule *s) except -1 nogil:
    """Primal and dual value at the present v and a."""
    cdef Problem *p = <Problem *>ascent
    cdef Py_ssize_t at
    cdef int j
    cdef Term *t
    cdef double g, loss = 0.0, linear = 0.0, square = 0.0
    for j in range(p.rows.d):
        square += p.v[j] * p.v[j]
    for at in range(p.m):
        t = p.term + at
        g = t.margin
        if square != 0.0:  # at the start X need not be read
            g -= t.label * row_dot(&p.rows, t.row, p.v)
        loss += t.c * g if g > 0.0 else 0.0
        linear += t.a * t.margin
    s.primal = 0.5 * square + loss
    s.dual = linear - 0.5 * square
    return 0


cdef int ascend(Problem *p, const Limits *limits, uint64_t *state, double *answer) except -1 nogil:
    """Return why the ascent ends; ``answer`` receives passes, primal and dual value, which are sums over the rows."""
    cdef Schedule s
    cdef int code
    schedule_new(&s, evaluate, sweep, p.m, 1.0, limits.tol, limits.max_passes, limits.turn, INFINITY)
    s.until, s.spread, s.state = limits.deadline, <double>p.m, state[0]
    s.gaps, s.stride = &p.term.gap, LINE
    code = ascend_rows(p, &s, answer)
    state[0] = s.state
    return code


def linear(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, int d, const double[::1] square,
           const signed char[:, ::1] label, const double[:, ::1] bound, const double[:, ::1] margin, double[:, ::1] A, double[:, ::1] V,
           double tol, double max_passes, double max_seconds, unsigned long long seed, bint blocks, double[:, ::1] found,
           double turn=INFINITY):
    """Ascend every problem, one after the other, in place on A (m, n) and V (m, d); V = V(A) on entry.

    ``found`` (m, 4) receives the code (0 converged, 1 limit of passes, 2 limit of seconds), the passes, the primal and the dual value of
    each: at most ``max_passes``, at least 1, or ``turn`` and what a round adds. Rows are dense where ``columns`` is empty; ``square`` are their
    squared lengths; ``margin`` has no rows where all are 1.
    """
    cdef Problem p
    cdef Limits limits
    cdef Py_ssize_t q, i, count = label.shape[0]
    cdef Term *t
    cdef double answer[3]
    cdef uint64_t state = seed
    cdef int code
    check_rows(values, columns, start, n, d)
    demand(square.shape[0] == n, "every row needs a squared length")
    check_problems(n, label, bound, margin, A, found)
    demand(V.shape[0] == count and V.shape[1] == d, "parameters must be (problems, columns)")
    if d == 0 or count == 0:
        raise ValueError("no columns or no problems")
    p.rows = rows_of(values, columns, start, n, d)
    p.term = <Term *>zeros(n * LINE)
    if p.term == NULL:
        raise MemoryError("no memory for the rows of a problem")
    limits.tol, limits.max_passes, limits.turn, p.blocks = tol, max_passes, turn, blocks
    limits.deadline = seconds() + max_seconds
    try:
        for q in range(count):
            p.v = &V[q, 0]
            p.m = 0
            for i in range(n):
                if bound[q, i] > 0.0:
                    t = p.term + p.m
                    t.a, t.c, t.row, t.square, t.gap = A[q, i], bound[q, i], i, square[i], 0.0
                    t.margin = margin[q, i] if margin.shape[0] else 1.0
                    t.label = 1.0 if label[q, i] > 0 else -1.0
                    t.inverse = 1.0 / square[i] if square[i] > 0.0 else 0.0
                    p.m += 1
            if p.m == 0:
                found[q, 0] = found[q, 1] = found[q, 2] = found[q, 3] = 0.0
                continue
            with nogil:
                code = ascend(&p, &limits, &state, answer)
            for i in range(p.m):
                A[q, p.term[i].row] = p.term[i].a
            found[q, 0], found[q, 1], found[q, 2], found[q, 3] = code, answer[0], answer[1], answer[2]
    finally:
        free(p.term)


# ---- kernel -----------------------------------------------------------------------------------------------------------
# In signed numbers b_i = s_i a_i the labels drop out: the slope of the dual in b_i is f_i = s_i m_i - u_i, and b_i moves in an interval, kept as
# the room that b_i has left: low <= 0 to the lower end, high >= 0 to the upper. A step reads one row of K and three numbers a row.
#
# Steps are taken among a working set of rows; its rows of K are copied when they first move, and the slopes of all other rows follow after the
# steps. Most rows never join.


cdef struct Column:
    # a problem, or its working set: its rows in K, and numbers of each
    Py_ssize_t n, best   # rows, and the one whose step gains most
    Py_ssize_t *row
    double *f
    double *low          # to the least b_i, at most 0
    double *high         # to the largest b_i, at least 0
    double *diagonal
    double *inverse
    double *target       # s m
    double *bound        # s c
    bint uniform         # one value on the diagonal

cdef struct Board:
    # a problem over a kernel, its working set, and what is known of both
    const double *K      # (size, size)
    Py_ssize_t size
    double shift
    Column whole, part
    Py_ssize_t *place    # of the working set's rows in the whole
    Py_ssize_t *rest     # places of the others, and
    Py_ssize_t *beyond   # their rows in K
    Py_ssize_t *loose    # of the working set, rows whose moves can raise the dual
    Py_ssize_t *each     # 0, 1, ...
    double *moved        # how far rows of the working set have moved
    double *block        # K among the working set, of the rows that have moved
    bint *there          # which these are
    Py_ssize_t room      # numbers that it holds


cdef inline double gain_of(double f, double diagonal, double inverse, double low, double high) noexcept nogil:
    """What the exact step of a row adds to the dual value."""
    cdef double move = clipped(f * inverse, low, high)
    return move * (f - 0.5 * diagonal * move)


cdef inline double refresh(Column *p, const double *row, double shift, double step) noexcept nogil:
    """f -= step (row + shift); find the row whose exact step gains most, and return its gain."""
    cdef Py_ssize_t whole = p.n // LANES
    cdef Py_ssize_t j
    cdef int lane
    cdef bint uniform = p.uniform
    cdef double gain, best = 0.0
    cdef double[8] gains
    cdef double[8] places
    cdef double *slope = p.f  # the compiler reads pointers anew after a store, but for local ones
    cdef const double *low = p.low
    cdef const double *high = p.high
    cdef const double *diagonals = p.diagonal
    cdef const double *inverses = p.inverse
    cdef vec half = splat(0.5), more = splat(shift), by = splat(-step), f, move, found, largest = splat(0.0), where = largest
    cdef vec one = splat(1.0), at = largest, diagonal = splat(p.diagonal[0]), inverse = splat(p.inverse[0])
    for j in range(whole):
        f = load(slope, <int>j) + by * (load(row, <int>j) + more)
        store(slope, <int>j, f)
        if not uniform:
            diagonal = load(diagonals, <int>j)
            inverse = load(inverses, <int>j)
        move = vmin(vmax(f * inverse, load(low, <int>j)), load(high, <int>j))
        found = move * (f - half * diagonal * move)
        where = if_greater(found, largest, at, where)
        largest = vmax(largest, found)
        at = at + one
    store(gains, 0, largest)
    store(places, 0, where)
    p.best = 0
    for lane in range(LANES):
        if gains[lane] > best:
            best = gains[lane]
            p.best = <Py_ssize_t>places[lane] * LANES + lane
    for j in range(whole * LANES, p.n):
        p.f[j] -= step * (row[j] + shift)
        gain = gain_of(p.f[j], p.diagonal[j], p.inverse[j], p.low[j], p.high[j])
        if gain > best:
            best = gain
            p.best = j
    return best


cdef inline double gap_of(const Column *p, Py_ssize_t j) noexcept nogil:
    """What row j has of the gap: the slope times the way to the end that it points to."""
    return p.f[j] * (p.high[j] if p.f[j] > 0.0 else p.low[j])


cdef double gap_among(const Column *p) noexcept nogil:
    """Return the sum of the gaps of all rows."""
    cdef Py_ssize_t j
    cdef double total = 0.0
    for j in range(p.n):
        total += gap_of(p, j)
    return total


cdef void column_values(const Column *p, double *primal, double *dual) noexcept nogil:
    """Primal and dual value."""
    cdef Py_ssize_t j
    cdef double loss = 0.0, linear = 0.0, square = 0.0, b, f
    for j in range(p.n):
        # b is 0 at one end of its interval: minus the room to that end is b
        f = p.f[j] if p.bound[j] > 0.0 else -p.f[j]
        b = -p.low[j] if p.bound[j] > 0.0 else -p.high[j]
        loss += fabs(p.bound[j]) * f if f > 0.0 else 0.0
        linear += b * p.target[j]
        square += b * (p.target[j] - p.f[j])
    primal[0] = 0.5 * square + loss
    dual[0] = linear - 0.5 * square


cdef void follow(Board *p, const Column *moving, const double *by, Py_ssize_t count) noexcept nogil:
    """Bring the slopes of ``rest``, so many rows of the problem, up to date after moves of other rows."""
    cdef Py_ssize_t i, j, e = 0
    cdef double f
    cdef double step[TOGETHER]
    cdef const double *K[TOGETHER]
    for i in range(moving.n + TOGETHER - 1):  # beyond the last row stand rows that do not move
        if i < moving.n and by[i] == 0.0:
            continue
        if i >= moving.n and e == 0:
            break
        K[e], step[e] = p.K + moving.row[min(i, moving.n - 1)] * p.size, by[i] if i < moving.n else 0.0
        e += 1
        if e == TOGETHER:
            e = 0
            for j in range(count):
                f = step[0] * (K[0][p.beyond[j]] + p.shift) + step[1] * (K[1][p.beyond[j]] + p.shift)
                f += step[2] * (K[2][p.beyond[j]] + p.shift) + step[3] * (K[3][p.beyond[j]] + p.shift)
                p.whole.f[p.rest[j]] -= f


cdef void choose(Board *p, double level, Py_ssize_t stride) noexcept nogil:
    """Take as working set every ``stride``-th row, or the rows inside their intervals and those with a gap above ``level``."""
    cdef Py_ssize_t j, others = 0
    cdef Column *all = &p.whole
    p.part.n = 0
    for j in range(all.n):
        if j % stride == 0 if stride > 1 else gap_of(all, j) > level or all.low[j] < 0.0 < all.high[j]:
            p.place[p.part.n] = j
            p.part.n += 1
        else:
            p.rest[others], p.beyond[others] = j, all.row[j]
            others += 1
    if p.part.n > COPIED * p.size:
        p.part.n = all.n
        for j in range(all.n):
            p.place[j] = j


cdef int take(Board *p) except -1 nogil:
    """Copy what steps among the working set need."""
    cdef Py_ssize_t i, j, m = p.part.n
    cdef Column *part = &p.part
    if m < p.size and m * m > p.room:
        free(p.block)
        p.room = m * m
        p.block = <double *>malloc(p.room * sizeof(double))
        if p.block == NULL:
            p.room = 0
            with gil:
                raise MemoryError("no memory for the kernel matrix of a working set")
    for i in range(m):
        j = p.place[i]
        part.row[i], part.f[i], part.low[i], part.high[i] = p.whole.row[j], p.whole.f[j], p.whole.low[j], p.whole.high[j]
        part.diagonal[i], part.inverse[i], p.moved[i] = p.whole.diagonal[j], p.whole.inverse[j], 0.0
        p.there[i] = False
    part.uniform = p.whole.uniform
    return 0


cdef inline const double *block_row(Board *p, Py_ssize_t i) noexcept nogil:
    """Return K between row i of the working set and all of it."""
    cdef Py_ssize_t j
    cdef const double *K = p.K + p.part.row[i] * p.size
    cdef double *out = p.block + i * p.part.n
    if p.part.n == p.size:
        return K
    if not p.there[i]:
        p.there[i] = True
        for j in range(p.part.n):
            out[j] = K[p.part.row[j]]
    return out


cdef inline void move_row(Board *p, Py_ssize_t i, double by) noexcept nogil:
    """Move row i of the working set, without the slopes."""
    cdef Column *part = &p.part
    # exactly 0 at an end, so that rows at an end are told apart from rows inside
    part.low[i] = 0.0 if by == part.low[i] else part.low[i] - by
    part.high[i] = 0.0 if by == part.high[i] else part.high[i] - by
    p.moved[i] += by


cdef Py_ssize_t find_loose(Board *p) noexcept nogil:
    """List the rows of the working set whose moves can raise the dual, those inside their intervals or with a gap; return how many there are."""
    cdef Py_ssize_t i, count = 0
    for i in range(p.part.n):
        if p.part.low[i] < 0.0 < p.part.high[i] or gap_of(&p.part, i) > 0.0:
            p.loose[count] = i
            count += 1
    return count


cdef void move_together(Board *p, Py_ssize_t count) noexcept nogil:
    """Move all ``loose`` rows where an ascent of the dual over them, each within its interval, ends after a few rounds."""
    cdef Column *part = &p.part
    cdef Quadratic s
    cdef Py_ssize_t a, b, i
    cdef double by
    cdef double *work = scratch(&s, count, count, PADDED)
    cdef double *own = zeros(count * (count + 2 + 2 * PADDED))
    cdef double *rate
    cdef double *G
    cdef const double *row
    if work == NULL or own == NULL:  # steps of one row do without
        free(work)
        free(own)
        return
    rate, G = own + count * (2 + PADDED), own + count * (2 + 2 * PADDED)
    s.g, s.z, s.slack, s.rate, s.G, s.owner = own, own + count, own + 2 * count, rate, G, p.each
    for a in range(count):
        i, row = p.loose[a], block_row(p, p.loose[a])
        s.g[a], s.slack[a * PADDED], s.slack[a * PADDED + 1] = part.f[i], -part.low[i], part.high[i]
        rate[a * PADDED], rate[a * PADDED + 1] = 1.0, -1.0
        for b in range(count):
            G[a * count + b] = row[p.loose[b]] + p.shift
    ascend_quadratic(&s, ROUNDS, SWEEPS, PRODUCTS, SETTLED)
    for a in range(count):
        if s.z[a] == 0.0:
            continue
        i, row = p.loose[a], block_row(p, p.loose[a])
        if s.slack[a * PADDED] == 0.0:
            by = part.low[i]
        elif s.slack[a * PADDED + 1] == 0.0:
            by = part.high[i]
        else:
            by = clipped(s.z[a], part.low[i], part.high[i])
        move_row(p, i, by)
        for b in range(part.n):
            part.f[b] -= by * (row[b] + p.shift)
    free(work)
    free(own)


cdef int climb(Board *p, Limits *limits, double *passes, double *primal, double *dual) except -1 nogil:
    """Greedy steps; as `ascend`. A pass is n steps among all n rows; one among a part counts as that share of it."""
    cdef Column *all = &p.whole
    cdef Column *part = &p.part
    cdef Py_ssize_t i, j, loose, since, stride = SAMPLED if all.n >= FEW_ROWS else 1
    cdef double best, move, gap, goal, cost, price, spent, most = limits.max_passes, heard = seconds()
    for j in range(all.n):
        if all.low[j] < 0.0 if all.bound[j] > 0.0 else all.high[j] > 0.0:
            stride = 1
    while True:
        column_values(all, primal, dual)
        gap = primal[0] - dual[0]
        if gap <= limits.tol * primal[0]:
            return 0
        if not passes[0] < limits.turn:
            return 1
        choose(p, JOINING * gap_among(all) / all.n, stride)
        stride = 1
        take(p)
        best = refresh(part, part.f, 0.0, 0.0) if part.n else 0.0
        cost, spent = <double>part.n / all.n / all.n, 0.0
        if not best > 0.0 or not passes[0] + cost <= most:
            return 1
        goal = max(LEFT * gap_among(part), ALLOWED * limits.tol * primal[0])
        while True:
            since = 0
            while since < part.n // 8 + 8 and passes[0] + cost <= most and best > 0.0:
                i = part.best
                move = clipped(part.f[i] * part.inverse[i], part.low[i], part.high[i])
                move_row(p, i, move)
                best = refresh(part, block_row(p, i), p.shift, move)
                since += 1
                passes[0] += cost
            spent += <double>since * part.n
            hear(&heard)
            if not best > 0.0 or gap_among(part) <= goal or not passes[0] < limits.turn or not passes[0] + cost <= most:
                break
            if not seconds() <= limits.deadline:
                break
            loose = find_loose(p)
            price = <double>loose * part.n + WORK * loose * loose
            if loose <= MOST_TOGETHER and spent >= TRIED * price and passes[0] + price / all.n / all.n <= most:
                passes[0] += price / all.n / all.n
                spent = 0.0
                move_together(p, loose)
                best = refresh(part, part.f, 0.0, 0.0)
        for i in range(part.n):
            j = p.place[i]
            all.f[j], all.low[j], all.high[j] = part.f[i], part.low[i], part.high[i]
        follow(p, part, p.moved, all.n - part.n)
        if not seconds() <= limits.deadline:
            column_values(all, primal, dual)
            return 0 if primal[0] - dual[0] <= limits.tol * primal[0] else 2


cdef void columns_at(Column *p, double *block, Py_ssize_t *rows, Py_ssize_t n) noexcept nogil:
    """Give a problem its share of a block."""
    p.row, p.f, p.low, p.high, p.diagonal = rows, block, block + n, block + 2 * n, block + 3 * n
    p.inverse, p.target, p.bound = block + 4 * n, block + 5 * n, block + 6 * n


def kernel(const double[:, ::1] K, double shift, const signed char[:, ::1] label, const double[:, ::1] bound, const double[:, ::1] margin,
           double[:, ::1] A, double tol, double max_passes, double max_seconds, double[:, ::1] found, double turn=INFINITY):
    """Ascend every problem over the kernel K + shift (n, n), which must be symmetric, in place on A (m, n).

    ``found`` and ``margin`` are as in `linear`. A row whose kernel value with itself is 0 has a score of 0.
    """
    cdef Board p
    cdef Column *all = &p.whole
    cdef Limits limits
    cdef Py_ssize_t q, i, j, count = label.shape[0], n = K.shape[0]
    cdef double passes, primal = 0.0, dual = 0.0, s, a, width
    cdef double *block
    cdef Py_ssize_t *places
    cdef bint *flags
    cdef int code
    demand(n > 0 and K.shape[1] == n, "the kernel matrix must be square, with a row at least")
    check_problems(n, label, bound, margin, A, found)
    p.K, p.size, p.shift, p.block, p.room = &K[0, 0], n, shift, NULL, 0
    block, places = zeros(15 * n), <Py_ssize_t *>malloc(7 * n * sizeof(Py_ssize_t))
    flags = <bint *>malloc(n * sizeof(bint))
    limits.tol, limits.max_passes, limits.turn = tol, max_passes, turn
    limits.deadline = seconds() + max_seconds
    try:
        if block == NULL or places == NULL or flags == NULL:
            raise MemoryError("no memory for the rows of a problem")
        columns_at(all, block, places, n)
        columns_at(&p.part, block + 7 * n, places + n, n)
        p.place, p.rest, p.beyond = places + 2 * n, places + 3 * n, places + 4 * n
        p.loose, p.each, p.moved, p.there = places + 5 * n, places + 6 * n, block + 14 * n, flags
        for j in range(n):
            p.each[j] = j
        for q in range(count):
            all.n, all.uniform = 0, True
            for i in range(n):
                width = bound[q, i]
                if not width > 0.0:
                    continue
                j = all.n
                s = 1.0 if label[q, i] > 0 else -1.0
                all.row[j], all.diagonal[j], all.bound[j] = i, K[i, i] + shift, s * width
                all.target[j] = s * (margin[q, i] if margin.shape[0] else 1.0)
                all.inverse[j] = 1.0 / all.diagonal[j] if all.diagonal[j] > 0.0 else 0.0
                a = A[q, i]
                if not all.diagonal[j] > 0.0 and s * all.target[j] > 0.0:  # the score of such a row is always 0
                    a = width
                all.uniform &= all.diagonal[j] == all.diagonal[0]
                all.f[j] = all.target[j]
                all.low[j], all.high[j] = (-a, width - a) if s > 0.0 else (a - width, a)
                p.moved[j], p.rest[j], p.beyond[j] = s * a, j, i
                all.n += 1
            passes = 0.0
            found[q, 0] = found[q, 1] = found[q, 2] = found[q, 3] = 0.0
            if all.n == 0:
                continue
            with nogil:
                follow(&p, all, p.moved, all.n)
                code = climb(&p, &limits, &passes, &primal, &dual)
            for j in range(all.n):
                # exactly at the bound where no room is left: the room to the other end is a rounded difference
                i = all.row[j]
                a = -all.low[j] if label[q, i] > 0 else all.high[j]
                if (all.high[j] if label[q, i] > 0 else all.low[j]) == 0.0:
                    a = bound[q, i]
                A[q, i] = clipped(a, 0.0, bound[q, i])
            found[q, 0], found[q, 1], found[q, 2], found[q, 3] = code, passes, primal, dual
    finally:
        free(block)
        free(places)
        free(flags)
        free(p.block)
