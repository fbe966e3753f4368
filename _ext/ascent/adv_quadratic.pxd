# Ascent of a concave quadratic function within slacks.
#
#   maximise  g'z - 1/2 z'G z  such that  slack_i + sum over m of row i of z_m rate_m >= 0 for every row i                     (1)
#
# A round makes sweeps, which find the slacks that end at 0, and a step of conjugate gradients in the coordinates of the rows that none held back.
# Each row goes along it until its first slack ends (after More & Toraldo 1991, "On the solution of large quadratic programming problems with
# bound constraints", SIAM J. Optimization 1(1), whose projected gradients the sweeps replace). Sweeps alone would take hundreds, a factor of G takes
# as long as fifty products with it.
#
# Sums of products run over the lanes of a vector in a fixed order; all else goes entry by entry.

from libc.stdlib cimport malloc
from libc.string cimport memset

from adv_factors cimport (
    Factors, Group, entries_dot, follow_factors, group_moves, group_scores, multiply_factors, row_moves, row_scores, slopes
)
from adv_linear cimport GROUP, dense_add, dense_dot
from adv_simd cimport LANES, count_greater, load, splat, store, vec, vmax

cdef enum:
    PADDED = 8    # slacks come in multiples of it: whole vectors at every level
    LENGTHS = 3   # of a step that are tried
    ROUNDS = 4    # of an ascent, unless its caller says otherwise; sweeps and products likewise
    SWEEPS = 3
    PRODUCTS = 10
    LONGEST = 100 # products of a step, unless a round begins with more

cdef extern from *:
    """
    static const double adv_shorter = 0.3;    /* length of a step over that of the one tried before */
    static const double adv_enough = 1e-4;    /* share of the squared residual at which conjugate gradients stop */
    static const double adv_stuck = 1e-12;    /* share of a move below which a coordinate rests */
    static const double adv_flat = 1e-12;     /* curvature along a direction of conjugate gradients that is rounding, over that of the first */
    static const double adv_settled = 1e-4;   /* share of the squared moves of the first sweep at which an ascent ends, likewise */
    """
    double SHORTER "adv_shorter"
    double ENOUGH "adv_enough"
    double STUCK "adv_stuck"
    double FLAT "adv_flat"
    double SETTLED "adv_settled"


cdef struct Quadratic:
    Py_ssize_t m, n
    int c                     # slacks of a row
    const double *G           # (m, m), symmetric; NULL where its factors are given
    Factors *factors          # NULL where G is given
    const double *rate        # (m, c)
    const Py_ssize_t *owner   # (m)
    double *g                 # (m): the gradient at z
    double *slack             # (n, c): at z
    double *z                 # (m)
    # scratch
    double *x                 # (m): a step
    double *residual          # (m)
    double *p                 # (m): a direction
    double *q                 # (m): G times one
    double *part              # (n): of a step that a row goes
    double *move              # (n, c): of the slacks
    Py_ssize_t *loose         # (m): coordinates of a step
    char *held                # (n)


cdef inline double room(const double *slack, const double *rate, int c, double length) noexcept nogil:
    """Return ``length``, of either sign, or what of it leaves all slacks at least 0."""
    cdef int v, j, broken = 0
    cdef vec along = splat(length), zero = splat(0.0)
    for v in range(c // LANES):
        broken += count_greater(zero, load(slack, v) + along * load(rate, v))
    if broken:
        for j in range(c):
            if slack[j] + length * rate[j] < 0.0:
                length = -slack[j] / rate[j]
    return length


cdef inline void move_slack(double *slack, const double *rate, int c, double length) noexcept nogil:
    cdef int v
    cdef vec along = splat(length), zero = splat(0.0)
    for v in range(c // LANES):
        store(slack, v, vmax(load(slack, v) + along * load(rate, v), zero))


cdef inline void multiply(const Quadratic *s, const double *a, Py_ssize_t count, double *out) noexcept nogil:
    """out = G a for an a that is 0 but for ``count`` loose coordinates; where factors hold G, for these alone."""
    cdef Py_ssize_t b = 0, j, m = s.m
    cdef const double *one
    cdef const double *two
    cdef const double *three
    cdef const double *four
    cdef double first, second, third, fourth
    memset(out, 0, m * sizeof(double))
    if s.factors != NULL:
        multiply_factors(s.factors, a, s.held, out)
        return
    while b + 4 <= count:
        one, two, three, four = s.G + s.loose[b] * m, s.G + s.loose[b + 1] * m, s.G + s.loose[b + 2] * m, s.G + s.loose[b + 3] * m
        first, second, third, fourth = a[s.loose[b]], a[s.loose[b + 1]], a[s.loose[b + 2]], a[s.loose[b + 3]]
        for j in range(m):
            out[j] = out[j] + first * one[j] + second * two[j] + third * three[j] + fourth * four[j]
        b += 4
    for b in range(b, count):
        dense_add(s.G + s.loose[b] * m, out, m, a[s.loose[b]])


cdef inline double move_one(Quadratic *s, Py_ssize_t t, double wanted) noexcept nogil:
    """Move coordinate t by what its slacks leave of ``wanted``, note its row where that is not all, and return it."""
    cdef Py_ssize_t i = s.owner[t]
    cdef double length = room(s.slack + i * s.c, s.rate + t * s.c, s.c, wanted)
    if length != wanted:
        s.held[i] = 1
        if not length * wanted > STUCK * wanted * wanted:
            return 0.0
    move_slack(s.slack + i * s.c, s.rate + t * s.c, s.c, length)
    s.z[t] += length
    return length


cdef inline double sweep_group(Quadratic *s, const Group *g) noexcept nogil:
    """Do `sweep` for a group of pairs: the moves of its rows change the scores of those after them by their products."""
    cdef Factors *f = s.factors
    cdef Py_ssize_t t, first = f.first[g.begin]
    cdef int r, q
    cdef double square = g.b[0] * g.b[0] + g.b[1] * g.b[1], score, total = 0.0
    group_scores(f, g, f.total, s.q)
    for r in range(g.end - g.begin):
        t, score = first + r, s.q[r]
        for q in range(r):
            score += s.x[first + q] * square * f.cross[(g.begin + r) * GROUP + q]
        s.x[t] = move_one(s, t, (f.gradient[t] - score) / square)
        total += s.x[t] * s.x[t]
    group_moves(f, g, s.x + first, f.total)
    return total


cdef inline double sweep_row(Quadratic *s, Py_ssize_t i) noexcept nogil:
    """Do `sweep` for row i."""
    cdef Factors *f = s.factors
    cdef Py_ssize_t t
    cdef int c, size = row_scores(f, i, f.total)
    cdef double length, total = 0.0
    cdef const double *b
    for t in range(f.first[i], f.first[i + 1]):
        b = f.entries + f.block[i] + (t - f.first[i]) * size
        s.x[t] = length = move_one(s, t, (f.gradient[t] - entries_dot(b, f.score, size)) / entries_dot(b, b, size))
        total += length * length
        for c in range(size):
            f.score[c] += length * b[c]
    row_moves(f, i, s.x, f.total)
    return total


cdef inline double sweep_factors(Quadratic *s) noexcept nogil:
    """Do `sweep` where factors hold G; the gradient is not kept."""
    cdef Py_ssize_t j
    cdef double total = 0.0
    cdef const Group *g
    for j in range(s.factors.groups):
        g = &s.factors.group[j]
        total += sweep_group(s, g) if g.pair else sweep_row(s, g.begin)
    return total


cdef inline double sweep(Quadratic *s) noexcept nogil:
    """Maximise over one coordinate after the other, note the rows that a slack held back, and return the sum of the squared moves."""
    cdef Py_ssize_t t
    cdef double length, total = 0.0
    memset(s.held, 0, s.n)
    if s.factors != NULL:
        return sweep_factors(s)
    for t in range(s.m):
        length = move_one(s, t, s.g[t] / s.G[t * s.m + t])
        if length != 0.0:
            total += length * length
            dense_add(s.G + t * s.m, s.g, s.m, -length)
    return total


cdef inline void conjugate(Quadratic *s, Py_ssize_t count, int products) noexcept nogil:
    """Make x of conjugate gradients from 0 in the loose coordinates."""
    cdef Py_ssize_t b, t
    cdef double square = 0.0, first, curvature, length, last, flat = 0.0
    cdef int turn
    memset(s.x, 0, s.m * sizeof(double))
    memset(s.residual, 0, s.m * sizeof(double))
    for b in range(count):
        s.residual[s.loose[b]] = s.g[s.loose[b]]
    for t in range(s.m):
        s.p[t] = s.residual[t]
    first = square = dense_dot(s.residual, s.residual, s.m)
    for turn in range(products):
        if not square > ENOUGH * first:
            break
        multiply(s, s.p, count, s.q)
        curvature = dense_dot(s.p, s.q, s.m)
        if not curvature > flat * dense_dot(s.p, s.p, s.m):
            break
        if turn == 0:
            flat = FLAT * curvature / square
        length = square / curvature
        for b in range(count):
            t = s.loose[b]
            s.x[t] += length * s.p[t]
            s.residual[t] -= length * s.q[t]
        last = square
        square = dense_dot(s.residual, s.residual, s.m)
        length = square / last
        for b in range(count):
            t = s.loose[b]
            s.p[t] = s.residual[t] + length * s.p[t]


cdef inline Py_ssize_t loosen(Quadratic *s) noexcept nogil:
    """List the coordinates of the rows that no slack held back, and return their number."""
    cdef Py_ssize_t t, count = 0
    for t in range(s.m):
        if not s.held[s.owner[t]]:
            s.loose[count] = t
            count += 1
    return count


cdef inline bint go(Quadratic *s, Py_ssize_t count) noexcept nogil:
    """Move along x, each row until its first slack ends, if that raises the function; else try shorter moves.

    Return whether all rows went all of x.
    """
    cdef Py_ssize_t b, i, t
    cdef double length = 1.0
    cdef int j, tried
    cdef bint whole = True
    memset(s.move, 0, s.n * s.c * sizeof(double))
    for b in range(count):
        t = s.loose[b]
        i = s.owner[t]
        for j in range(s.c):
            s.move[i * s.c + j] += s.x[t] * s.rate[t * s.c + j]
    for tried in range(LENGTHS):
        for i in range(s.n):
            s.part[i] = room(s.slack + i * s.c, s.move + i * s.c, s.c, length)
            whole &= s.part[i] == 1.0
        memset(s.p, 0, s.m * sizeof(double))
        for b in range(count):
            t = s.loose[b]
            s.p[t] = s.part[s.owner[t]] * s.x[t]
        multiply(s, s.p, count, s.q)
        if dense_dot(s.p, s.g, s.m) > 0.5 * dense_dot(s.p, s.q, s.m):
            for i in range(s.n):
                move_slack(s.slack + i * s.c, s.move + i * s.c, s.c, s.part[i])
            for t in range(s.m):
                s.z[t] += s.p[t]
                s.g[t] -= s.q[t]
            if s.factors != NULL:
                follow_factors(s.factors)
            return whole
        length *= SHORTER
    return False


cdef inline void take_gradient(Quadratic *s, Py_ssize_t count) noexcept nogil:
    """Write the gradient at z of the loose coordinates, where factors hold G."""
    cdef Py_ssize_t b, t
    slopes(s.factors, s.factors.total, s.held, s.q)
    for b in range(count):
        t = s.loose[b]
        s.g[t] = s.factors.gradient[t] - s.q[t]


cdef inline double *scratch(Quadratic *s, Py_ssize_t m, Py_ssize_t n, int c) noexcept nogil:
    """Give (1) of these sizes its scratch, to be freed, and return it; NULL where memory is short."""
    cdef double *work = <double *>malloc((4 * m + n + n * c) * sizeof(double) + m * sizeof(Py_ssize_t) + n)
    s.m, s.n, s.c, s.factors = m, n, c, NULL
    if work != NULL:
        s.x, s.residual, s.p, s.q, s.part, s.move = work, work + m, work + 2 * m, work + 3 * m, work + 4 * m, work + 4 * m + n
        s.loose = <Py_ssize_t *>(s.move + n * c)
        s.held = <char *>(s.loose + m)
    return work


cdef inline int ascend_quadratic(Quadratic *s, int rounds, int sweeps, int products, double tol) noexcept nogil:
    """Make ``rounds`` of so many sweeps and a step of ``products``, twice as many as the last where that was cut nowhere; return how many were made.

    No round follows a sweep whose squared moves are ``tol`` of the first's.
    """
    cdef double first = 0.0, total = 0.0
    cdef Py_ssize_t count
    cdef int made = 0, turn, most = products
    while made < rounds:
        for turn in range(sweeps):
            total = sweep(s)
            if made == 0 and turn == 0:
                first = total
            if not total > tol * first:
                break
        made += 1
        if not total > tol * first:
            break
        count = loosen(s)
        if s.factors != NULL:
            take_gradient(s, count)
        conjugate(s, count, most)
        most = min(2 * most, LONGEST) if go(s, count) else products
    return made
