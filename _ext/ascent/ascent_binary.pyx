"""Binary problems in one column: dual coordinate ascent for hinges with a label, a bound and a margin a row, many problems over the same rows.

In C form, for each problem on its own

    primal  1/2 |v|^2 + sum_i c_i [m_i - s_i v.x_i]_+
    dual    maximise over a_i in [0, c_i]   sum_i a_i m_i - 1/2 |v(a)|^2,   v(a) = sum_i a_i s_i x_i

with labels s_i = +-1, bounds c_i >= 0 (0: the row is absent) and margins m_i. A visit is exact: a' = clip(a + (m - s v.x)/|x|^2, 0, c).
`linear` visits rows in a fresh permutation every pass and shrinks as `ascent_dense` does; `kernel` takes the row whose step gains most.
"""

from libc.math cimport INFINITY, floor
from libc.stdlib cimport free
from libc.stdint cimport uint64_t

from adv_simd cimport vec, load, store, splat, vmax, vmin, if_greater, zeros, LANES, prefetch
from adv_check cimport check_rows, demand
from adv_linear cimport Rows, prefetch_row, rows_of
from adv_loop cimport seconds, shuffle
from adv_schedule cimport Schedule, ascend_rows, hear, schedule_new, shuffled, swept

cdef extern from *:
    """
    /* One column of parameters. The numbers after whole vectors are read and written under a mask: rows need no padding and no loop over the rest. */
    #if defined(__AVX512F__)
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        _mm512_mask_storeu_pd(p, (__mmask8)((1u << count) - 1u), (__m512d)a);
      }
    #elif defined(__AVX2__)
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        _mm256_maskstore_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3)), (__m256d)a);
      }
    #else
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        double whole[ADV_LANES];
        adv_store(whole, 0, a);
        for (int j = 0; j < count; j++) p[j] = whole[j];
      }
    #endif
    static inline double adv_column_dot(const double *x, const double *v, int d) {
      adv_vec a = adv_set(0.0), b = a, c = a, e = a;
      int j = 0, whole = d / ADV_LANES;
      for (; j + 4 <= whole; j += 4) {
        a += adv_load(x, j) * adv_load(v, j);
        b += adv_load(x, j + 1) * adv_load(v, j + 1);
        c += adv_load(x, j + 2) * adv_load(v, j + 2);
        e += adv_load(x, j + 3) * adv_load(v, j + 3);
      }
      if (j < whole) { a += adv_load(x, j) * adv_load(v, j); j++; }
      if (j < whole) { b += adv_load(x, j) * adv_load(v, j); j++; }
      if (j < whole) { c += adv_load(x, j) * adv_load(v, j); j++; }
      j *= ADV_LANES;
      if (j < d) e += adv_load_first(x + j, d - j) * adv_load_first(v + j, d - j);
      return adv_sum((a + b) + (c + e));
    }
    static inline void adv_column_add(const double *x, double *v, int d, double step) {
      adv_vec s = adv_set(step);
      int j, whole = d / ADV_LANES;
      for (j = 0; j < whole; j++) adv_store(v, j, adv_load(v, j) + s * adv_load(x, j));
      j *= ADV_LANES;
      if (j < d) adv_store_part(v + j, d - j, adv_load_first(v + j, d - j) + s * adv_load_first(x + j, d - j));
    }
    """
    double dense_dot "adv_column_dot"(const double *x, const double *v, int d) noexcept nogil
    void dense_add "adv_column_add"(const double *x, double *v, int d, double step) noexcept nogil

cdef enum:
    BLOCK_ROWS = 16      # rows that stay together when X exceeds the cache
    LINE = 8             # numbers of a cache line
    AHEAD = 4            # visits between the prefetch of a row and its own

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


cdef inline double column_score(const Rows *x, Py_ssize_t i, const double *v) noexcept nogil:
    """Return x_i.v."""
    cdef Py_ssize_t e
    cdef double total = 0.0
    if x.start == NULL:
        return dense_dot(x.values + i * x.d, v, x.d)
    for e in range(x.start[i], x.start[i + 1]):
        total += x.values[e] * v[x.columns[e]]
    return total


cdef inline void column_update(const Rows *x, Py_ssize_t i, double *v, double step) noexcept nogil:
    """v += step x_i."""
    cdef Py_ssize_t e
    if x.start == NULL:
        dense_add(x.values + i * x.d, v, x.d, step)
    else:
        for e in range(x.start[i], x.start[i + 1]):
            v[x.columns[e]] += step * x.values[e]


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
    cdef double g = t.margin - t.label * column_score(&p.rows, t.row, p.v), gap, new
    gap = (t.c * g if g > 0.0 else 0.0) - t.a * g
    t.gap = gap
    if gap > skip:
        new = stepped(t.a, g, t.inverse, t.c)
        if new != t.a:
            column_update(&p.rows, t.row, p.v, t.label * (new - t.a))
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
            g -= t.label * column_score(&p.rows, t.row, p.v)
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


cdef struct Column:
    Py_ssize_t n, best   # rows, and the one whose step gains most
    const double *K
    double shift
    double *f
    double *low          # to the least b_i, at most 0
    double *high         # to the largest b_i, at least 0
    double *diagonal
    double *inverse
    bint uniform         # one value on the diagonal


cdef inline double gain_of(double f, double diagonal, double inverse, double low, double high) noexcept nogil:
    """What the exact step of a row adds to the dual value."""
    cdef double move = clipped(f * inverse, low, high)
    return move * (f - 0.5 * diagonal * move)


cdef inline double refresh(Column *p, const double *row, double step) noexcept nogil:
    """f -= step (row + shift); find the row whose exact step gains most, and return its gain."""
    cdef Py_ssize_t whole = p.n // LANES
    cdef Py_ssize_t j
    cdef int lane
    cdef double gain, best = 0.0
    cdef double[8] gains
    cdef double[8] places
    cdef vec half = splat(0.5), shift = splat(p.shift), by = splat(-step), f, move, found, largest = splat(0.0), where = largest
    cdef vec diagonal = splat(p.diagonal[0]), inverse = splat(p.inverse[0])
    for j in range(whole):
        f = load(p.f, <int>j) + by * (load(row, <int>j) + shift)
        store(p.f, <int>j, f)
        if not p.uniform:
            diagonal = load(p.diagonal, <int>j)
            inverse = load(p.inverse, <int>j)
        move = vmin(vmax(f * inverse, load(p.low, <int>j)), load(p.high, <int>j))
        found = move * (f - half * diagonal * move)
        where = if_greater(found, largest, splat(<double>j), where)
        largest = vmax(largest, found)
    store(gains, 0, largest)
    store(places, 0, where)
    p.best = 0
    for lane in range(LANES):
        if gains[lane] > best:
            best = gains[lane]
            p.best = <Py_ssize_t>places[lane] * LANES + lane
    for j in range(whole * LANES, p.n):
        p.f[j] -= step * (row[j] + p.shift)
        gain = gain_of(p.f[j], p.diagonal[j], p.inverse[j], p.low[j], p.high[j])
        if gain > best:
            best = gain
            p.best = j
    return best


cdef void column_values(Column *p, const double *c, const double *target, double *primal, double *dual) noexcept nogil:
    """Primal and dual value, from bounds c and targets s m."""
    cdef Py_ssize_t j
    cdef double loss = 0.0, linear = 0.0, square = 0.0, b, f
    for j in range(p.n):
        # b is 0 at one end of its interval: minus the room to that end is b
        if c[j] > 0.0:
            f = p.f[j]
            b = -p.low[j]
            loss += c[j] * f if f > 0.0 else 0.0
        elif c[j] < 0.0:
            f = -p.f[j]
            b = -p.high[j]
            loss -= c[j] * f if f > 0.0 else 0.0
        else:
            continue
        linear += b * target[j]
        square += b * (target[j] - p.f[j])
    primal[0] = 0.5 * square + loss
    dual[0] = linear - 0.5 * square


cdef int climb(Column *p, const double *c, const double *target, Limits *limits, double *passes, double *primal, double *dual) except -1 nogil:
    """Greedy steps; as `ascend`. A pass is n steps."""
    cdef Py_ssize_t i, since, steps = 0
    cdef double best, move, heard = seconds(), most = floor(limits.max_passes * p.n)
    column_values(p, c, target, primal, dual)
    best = refresh(p, p.K, 0.0)
    while True:
        if primal[0] - dual[0] <= limits.tol * primal[0]:
            return 0
        if not passes[0] < limits.turn or not steps < most or not best > 0.0:
            return 1
        if not seconds() <= limits.deadline:
            return 2
        hear(&heard)
        since = 0
        while since < p.n // 4 + 16 and steps + since < most and best > 0.0:
            i = p.best
            move = clipped(p.f[i] * p.inverse[i], p.low[i], p.high[i])
            # exactly 0 at an end, so that rows at an end are told apart from rows inside
            p.low[i] = 0.0 if move == p.low[i] else p.low[i] - move
            p.high[i] = 0.0 if move == p.high[i] else p.high[i] - move
            best = refresh(p, p.K + i * p.n, move)
            since += 1
        steps += since
        passes[0] = <double>steps / p.n
        column_values(p, c, target, primal, dual)


def kernel(const double[:, ::1] K, double shift, const signed char[:, ::1] label, const double[:, ::1] bound, const double[:, ::1] margin,
           double[:, ::1] A, double[:, ::1] U, double tol, double max_passes, double max_seconds, double[:, ::1] found, double turn=INFINITY):
    """Ascend every problem over the kernel K + shift (n, n), in place on A (m, n) and the scores U (m, n); U = U(A) on entry.

    ``found`` and ``margin`` are as in `linear`. A row whose kernel value with itself is 0 has a score of 0.
    """
    cdef Column p
    cdef Limits limits
    cdef Py_ssize_t q, i, count = label.shape[0], n = K.shape[0], padded = (n + LINE - 1) // LINE * LINE
    cdef double passes, primal = 0.0, dual = 0.0, diagonal, s, a, width
    cdef double *block
    cdef double *c
    cdef double *target
    cdef int code
    demand(n > 0 and K.shape[1] == n, "the kernel matrix must be square, with a row at least")
    check_problems(n, label, bound, margin, A, found)
    demand(U.shape[0] == count and U.shape[1] == n, "scores must be (problems, rows)")
    p.n, p.K, p.shift = n, &K[0, 0], shift
    block = zeros(7 * padded)
    if block == NULL:
        raise MemoryError("no memory for the rows of a problem")
    p.f, p.low, p.high, p.diagonal, p.inverse = block, block + padded, block + 2 * padded, block + 3 * padded, block + 4 * padded
    c, target = block + 5 * padded, block + 6 * padded
    limits.tol, limits.max_passes, limits.turn = tol, max_passes, turn
    limits.deadline = seconds() + max_seconds
    try:
        for q in range(count):
            p.uniform = True
            for i in range(n):
                diagonal = K[i, i] + shift
                s = 1.0 if label[q, i] > 0 else -1.0
                width = bound[q, i] if bound[q, i] > 0.0 else 0.0
                target[i] = s * (margin[q, i] if margin.shape[0] else 1.0)
                a = A[q, i]
                p.diagonal[i] = diagonal
                p.inverse[i] = 1.0 / diagonal if diagonal > 0.0 else 0.0
                if not diagonal > 0.0 and s * target[i] > 0.0:  # the score of such a row is always 0
                    a = width
                p.uniform &= diagonal == p.diagonal[0]
                c[i] = s * width
                p.f[i] = target[i] - U[q, i]
                p.low[i], p.high[i] = (-a, width - a) if s > 0.0 else (a - width, a)
            passes = 0.0
            with nogil:
                code = climb(&p, c, target, &limits, &passes, &primal, &dual)
            for i in range(n):
                # exactly at the bound where no room is left: the room to the other end is a rounded difference
                a = -p.low[i] if label[q, i] > 0 else p.high[i]
                if (p.high[i] if label[q, i] > 0 else p.low[i]) == 0.0:
                    a = bound[q, i] if bound[q, i] > 0.0 else 0.0
                A[q, i], U[q, i] = clipped(a, 0.0, bound[q, i] if bound[q, i] > 0.0 else 0.0), target[i] - p.f[i]
            found[q, 0], found[q, 1], found[q, 2], found[q, 3] = code, passes, primal, dual
    finally:
        free(block)
