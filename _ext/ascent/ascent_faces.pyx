"""Ascent of the quadratic function that the dual is on its faces, within the linear pieces of c (advcli/solvers/coordinate/face_steps.py).

maximise  g'z - 1/2 z'G z  such that  slack_i + sum over m of row i of z_m rate_m >= 0 for every row i                     (1)

A round makes sweeps, which find the slacks that end at 0, and a step of conjugate gradients in the coordinates of the rows that none held back.
Each row goes along it until its first slack ends (after More & Toraldo 1991, "On the solution of large quadratic programming problems with
bound constraints", SIAM J. Optimization 1(1), whose projected gradients the sweeps replace). Sweeps alone would take hundreds, a factor of G takes
as long as fifty products with it.

Sums of products run over the lanes of a vector in a fixed order; all else goes entry by entry.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memset

from adv_check cimport check_positions, demand
from adv_simd cimport LANES, count_greater, load, load_first, splat, store, vec, vmax, vsum

cdef enum:
    PADDED = 8    # slacks come in multiples of it: whole vectors at every level
    LENGTHS = 3   # of a step that are tried
    LONGEST = 100 # products of a step, unless a round begins with more
    MOST = 1 << 20

cdef double SHORTER = 0.3   # length of a step over that of the one tried before
cdef double ENOUGH = 1e-4   # share of the squared residual at which conjugate gradients stop
cdef double STUCK = 1e-12   # share of a move below which a coordinate rests


cdef struct Quadratic:
    Py_ssize_t m, n
    int c                     # slacks of a row
    const double *G           # (m, m), symmetric
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


cdef inline void subtract(double *a, const double *b, double length, Py_ssize_t m) noexcept nogil:
    """a -= length b."""
    cdef Py_ssize_t j
    for j in range(m):
        a[j] = a[j] - length * b[j]


cdef inline double inner(const double *a, const double *b, Py_ssize_t m) noexcept nogil:
    cdef int v, vectors = <int>(m // LANES)
    cdef Py_ssize_t whole = <Py_ssize_t>vectors * LANES
    cdef vec s = splat(0.0)
    for v in range(vectors):
        s = s + load(a, v) * load(b, v)
    if whole < m:
        s = s + load_first(a + whole, <int>(m - whole)) * load_first(b + whole, <int>(m - whole))
    return vsum(s)


cdef void multiply(const Quadratic *s, const double *a, Py_ssize_t count, double *out) noexcept nogil:
    """out = G a for an a that is 0 but for ``count`` loose coordinates."""
    cdef Py_ssize_t b = 0, j, m = s.m
    cdef const double *one
    cdef const double *two
    cdef const double *three
    cdef const double *four
    cdef double first, second, third, fourth
    memset(out, 0, m * sizeof(double))
    while b + 4 <= count:
        one, two, three, four = s.G + s.loose[b] * m, s.G + s.loose[b + 1] * m, s.G + s.loose[b + 2] * m, s.G + s.loose[b + 3] * m
        first, second, third, fourth = a[s.loose[b]], a[s.loose[b + 1]], a[s.loose[b + 2]], a[s.loose[b + 3]]
        for j in range(m):
            out[j] = out[j] + first * one[j] + second * two[j] + third * three[j] + fourth * four[j]
        b += 4
    for b in range(b, count):
        subtract(out, s.G + s.loose[b] * m, -a[s.loose[b]], m)


cdef double sweep(Quadratic *s) noexcept nogil:
    """Maximise over one coordinate after the other, note the rows that a slack held back, and return the sum of the squared moves."""
    cdef Py_ssize_t t, i
    cdef double wanted, length, total = 0.0
    memset(s.held, 0, s.n)
    for t in range(s.m):
        wanted = s.g[t] / s.G[t * s.m + t]
        i = s.owner[t]
        length = room(s.slack + i * s.c, s.rate + t * s.c, s.c, wanted)
        if length != wanted:
            s.held[i] = 1
            if not length * wanted > STUCK * wanted * wanted:
                continue
        move_slack(s.slack + i * s.c, s.rate + t * s.c, s.c, length)
        s.z[t] += length
        total += length * length
        subtract(s.g, s.G + t * s.m, length, s.m)
    return total


cdef void conjugate(Quadratic *s, Py_ssize_t count, int products) noexcept nogil:
    """Make x of conjugate gradients from 0 in the loose coordinates."""
    cdef Py_ssize_t b, t
    cdef double square = 0.0, first, curvature, length, last
    cdef int turn
    memset(s.x, 0, s.m * sizeof(double))
    memset(s.residual, 0, s.m * sizeof(double))
    for b in range(count):
        s.residual[s.loose[b]] = s.g[s.loose[b]]
    for t in range(s.m):
        s.p[t] = s.residual[t]
    first = square = inner(s.residual, s.residual, s.m)
    for turn in range(products):
        if not square > ENOUGH * first:
            break
        multiply(s, s.p, count, s.q)
        curvature = inner(s.p, s.q, s.m)
        if not curvature > 0.0:
            break
        length = square / curvature
        for b in range(count):
            t = s.loose[b]
            s.x[t] += length * s.p[t]
            s.residual[t] -= length * s.q[t]
        last = square
        square = inner(s.residual, s.residual, s.m)
        length = square / last
        for b in range(count):
            t = s.loose[b]
            s.p[t] = s.residual[t] + length * s.p[t]


cdef Py_ssize_t loosen(Quadratic *s) noexcept nogil:
    """List the coordinates of the rows that no slack held back, and return their number."""
    cdef Py_ssize_t t, count = 0
    for t in range(s.m):
        if not s.held[s.owner[t]]:
            s.loose[count] = t
            count += 1
    return count


cdef bint go(Quadratic *s, Py_ssize_t count) noexcept nogil:
    """Move along x, each row until its first slack ends, if that raises the function; else try shorter moves. Return whether all rows went all of x."""
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
        if inner(s.p, s.g, s.m) > 0.5 * inner(s.p, s.q, s.m):
            for i in range(s.n):
                move_slack(s.slack + i * s.c, s.move + i * s.c, s.c, s.part[i])
            for t in range(s.m):
                s.z[t] += s.p[t]
                s.g[t] -= s.q[t]
            return whole
        length *= SHORTER
    return False


def along_directions(double[:, ::1] G, const double[:, ::1] B):
    """Multiply G_ml (m, m) by b_m'b_l in place, for directions B (m, k), few of whose entries are not 0."""
    cdef Py_ssize_t m = G.shape[0], t, l
    cdef int k = <int>B.shape[1], j
    cdef double *columns      # (k, m)
    cdef double *row          # (m)
    cdef double *out
    demand(0 < m < MOST and G.shape[1] == m and B.shape[0] == m and 0 < B.shape[1] < MOST, "G must be (m, m) and directions (m, k)")
    columns = <double *>malloc((k + 1) * m * sizeof(double))
    if columns == NULL:
        raise MemoryError("no memory for the directions of an ascent on faces")
    row = columns + k * m
    with nogil:
        for t in range(m):
            for j in range(k):
                columns[j * m + t] = B[t, j]
        for t in range(m):
            memset(row, 0, m * sizeof(double))
            for j in range(k):
                if B[t, j] != 0.0:
                    subtract(row, columns + j * m, -B[t, j], m)
            out = &G[t, 0]
            for l in range(m):
                out[l] = out[l] * row[l]
    free(columns)


def ascend(const double[:, ::1] G, double[::1] gradient, double[:, ::1] slack, const double[:, ::1] rate, const Py_ssize_t[::1] owner,
           double[::1] z, int rounds, int sweeps, int products, double tol):
    """Ascend (1) in place on z (m,), ``gradient`` g - G z (m,) and ``slack`` (n, c) >= 0 at z; return how many of the ``rounds`` were made.

    G (m, m) is symmetric with a positive diagonal, ``rate`` is (m, c), c a multiple of 8, and coordinate m belongs to row ``owner[m]``. A round
    makes so many ``sweeps`` and a step of ``products`` with G, twice as many as the last where that was cut nowhere. No round follows a sweep
    whose squared moves are ``tol`` of the first's.
    """
    cdef Quadratic s
    cdef Py_ssize_t m = G.shape[0], n = slack.shape[0], count
    cdef double first = 0.0, total = 0.0
    cdef double *work
    cdef int made = 0, turn, most = products
    demand(0 < m < MOST and G.shape[1] == m and gradient.shape[0] == m and z.shape[0] == m, "G must be (m, m), its gradient and z (m,)")
    demand(rate.shape[0] == m and owner.shape[0] == m and slack.shape[1] == rate.shape[1], "rates must be (m, c), owners (m,), slacks (n, c)")
    demand(0 < n < MOST and slack.shape[1] < MOST and slack.shape[1] % PADDED == 0, f"rows have slacks in multiples of {PADDED}")
    demand(1 <= sweeps and 0 <= products, "a round makes a sweep at least")
    check_positions(owner, n, "owners of coordinates")
    s.m, s.n, s.c = m, n, <int>slack.shape[1]
    s.G, s.owner, s.g, s.z = &G[0, 0], &owner[0], &gradient[0], &z[0]
    s.slack = &slack[0, 0] if s.c else NULL
    s.rate = &rate[0, 0] if s.c else NULL
    work = <double *>malloc((4 * m + n + n * s.c) * sizeof(double) + m * sizeof(Py_ssize_t) + n)
    if work == NULL:
        raise MemoryError("no memory for the directions of an ascent on faces")
    s.x, s.residual, s.p, s.q, s.part, s.move = work, work + m, work + 2 * m, work + 3 * m, work + 4 * m, work + 4 * m + n
    s.loose = <Py_ssize_t *>(s.move + n * s.c)
    s.held = <char *>(s.loose + m)
    with nogil:
        while made < rounds:
            for turn in range(sweeps):
                total = sweep(&s)
                if made == 0 and turn == 0:
                    first = total
                if not total > tol * first:
                    break
            made += 1
            if not total > tol * first:
                break
            count = loosen(&s)
            conjugate(&s, count, most)
            most = min(2 * most, LONGEST) if go(&s, count) else products
    free(work)
    return made
