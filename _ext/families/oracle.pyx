"""The compiled surrogates in batches: value, oracle, offset and exact block step for n examples at once, without the GIL.

Every function takes (kind, k, parameters) first; see advcli/core/compiled.py for the names and advcli/losses/base.py for the meaning.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport malloc, free
from libc.string cimport memchr, memcpy, memset

from adv_family cimport Family, FIXED, TIED
from adv_families cimport family_names, GENERAL, ZERO_ONE
from adv_bind cimport family_free
from adv_check cimport check_labels, check_weights, demand
from adv_general cimport solve_game
from adv_loop cimport bind, checked_width
from adv_simd cimport LANES, splat, vec
from adv_lanes cimport GROUPS, below, label_leads, Tiles, tiles_new, tiles_fill, tiles_step, tiles_write, zero_one_blocks, zero_one_judged, zero_one_values, BLOCKS

cdef enum:
    MOST_TRIALS = 10_000


def families():
    """Return the names of the surrogates, each at the place of its kind."""
    return family_names()


def evaluate(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const Py_ssize_t[::1] y,
             double[::1] value, double[:, ::1] R, double[::1] c):
    """Write the oracle's value, r and c for every row; R may have 0 rows when only values are wanted (c is then left alone for zero-one)."""
    cdef Family s
    cdef Py_ssize_t i, n = F.shape[0]
    cdef bint keep = R.shape[0] == n and n > 0
    checked_width(k)
    check_labels(y, n, k)
    demand(F.shape[1] == k and value.shape[0] == n and c.shape[0] == n and (R.shape[0] == 0 or (R.shape[0] == n and R.shape[1] == k)),
           "scores and r must be (n, k), value and c (n,)")
    if kind == ZERO_ONE and not keep and n > 0:
        with nogil:
            i = zero_one_values(&F[0, 0], &y[0], n, k, &value[0])
        if i != 0:
            raise MemoryError("no memory for the lanes")
        return
    bind(&s, kind, k, parameters)
    with nogil:
        f, r = s.work + 8 * s.kp, s.work + 9 * s.kp
        for i in range(n):
            memcpy(f, &F[i, 0], k * sizeof(double))
            value[i] = s.oracle(&s, f, y[i], r, &c[i])
            if keep:
                memcpy(&R[i, 0], r, k * sizeof(double))
        family_free(&s)


def offset(int kind, int k, const double[::1] parameters, const double[:, ::1] R, const Py_ssize_t[::1] y, double[::1] c):
    """Write, for every row, the largest c for which (r, c) lies in the convex hull of R(y)."""
    cdef Family s
    cdef Py_ssize_t i, n = R.shape[0]
    check_labels(y, n, k)
    demand(R.shape[1] == k and c.shape[0] == n, "r must be (n, k) and c (n,)")
    bind(&s, kind, k, parameters)
    with nogil:
        r = s.work + 9 * s.kp
        for i in range(n):
            memcpy(r, &R[i, 0], k * sizeof(double))
            c[i] = s.offset(&s, r, y[i])
        family_free(&s)


def block(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const double[:, ::1] R, const Py_ssize_t[::1] y,
          const double[::1] curvature, double[:, ::1] out, signed char[:, ::1] state, double[:, ::1] normal, signed char[:, ::1] tight,
          double[::1] gap):
    """Write the block step from R at scores F, the label states of its face, one more normal of the face and the block gap.

    ``tight`` (n, l) flags the tight rows of a general matrix, whose differences are further normals; it has 0 rows for other families.
    ``gap`` may have 0 rows when it is not wanted.
    """
    cdef Family s
    cdef Py_ssize_t i, n = F.shape[0]
    cdef bint listed = tight.shape[0] == n, gaps = gap.shape[0] == n
    cdef double found
    cdef int code
    check_labels(y, n, k)
    demand(F.shape[1] == k and R.shape[0] == n and R.shape[1] == k and out.shape[0] == n and out.shape[1] == k and curvature.shape[0] == n,
           "scores, r and the answer must be (n, k), curvatures (n,)")
    demand(state.shape[0] == n and state.shape[1] == k and normal.shape[0] == n and normal.shape[1] == k, "states and normals must be (n, k)")
    demand(gap.shape[0] == 0 or gaps, "gaps must be (n,) or none")
    if n == 0:
        return
    bind(&s, kind, k, parameters)
    if tight.shape[0] and not (listed and tight.shape[1] == s.l):
        family_free(&s)
        raise ValueError("flags of tight rows must be (n, l) or none")
    if kind == ZERO_ONE and not gaps and k <= BLOCKS:
        with nogil:
            memset(&normal[0, 0], 0, n * k * sizeof(double))
            code = zero_one_blocks(&s, &F[0, 0], &R[0, 0], &y[0], &curvature[0], n, &out[0, 0], &state[0, 0])
            family_free(&s)
        if code != 0:
            raise MemoryError("no memory for the lanes")
        return
    with nogil:
        f, r, new, direction = s.work + 8 * s.kp, s.work + 9 * s.kp, s.work + 10 * s.kp, s.work + 11 * s.kp
        for i in range(n):
            memcpy(f, &F[i, 0], k * sizeof(double))
            memcpy(r, &R[i, 0], k * sizeof(double))
            memset(direction, 0, s.kp * sizeof(double))
            if listed:
                s.tight = &tight[i, 0]
            found = s.step(&s, f, r, y[i], curvature[i], -1e300 if gaps else -INFINITY, new, &state[i, 0], direction)
            if gaps:
                gap[i] = found
            memcpy(&out[i, 0], new, k * sizeof(double))
            memcpy(&normal[i, 0], direction, k * sizeof(double))
        family_free(&s)


cdef struct Line:
    Family *s
    const double *F          # scores (n, k) at the beginning of the line
    const double *dF         # and their change along it
    const double *center     # (n, k)
    const Py_ssize_t *y
    const double *cost       # (n), or NULL
    const double *sample     # (n), or NULL
    double curvature
    double *R                # (n, k) where the last steps ended, with their faces as `block` has them
    signed char *state
    double *normal
    signed char *tight       # (n, l), or NULL
    Py_ssize_t n
    Py_ssize_t *rows         # the rows that still move
    Py_ssize_t count
    bint held                # whether others do not
    bint lanes
    Tiles tiles              # of the rows that still move, where they go in lanes; of a few before others are held


cdef inline double along_row(const Line *a, Py_ssize_t i, const double *r) noexcept nogil:
    """Return s_i r.dF_i."""
    cdef int j, k = a.s.k
    cdef double product = 0.0
    for j in range(k):
        product += r[j] * a.dF[i * k + j]
    return product if a.sample == NULL else a.sample[i] * product


cdef void led_by_others(Line *a, double t) noexcept nogil:
    """List the rows whose label does not lead at scores F + t dF, of which lanes are made; write r = 0 and its face for the others."""
    cdef int k = a.s.k
    cdef Py_ssize_t i
    cdef vec bound = splat(-1.0), tail = below(-1.0, k % LANES)
    memset(a.R, 0, a.n * k * sizeof(double))
    memset(a.state, FIXED, a.n * k)
    a.count = 0
    for i in range(a.n):
        if label_leads(a.F + i * k, a.dF + i * k, t, a.center + i * k, a.curvature, a.y[i], k, bound, tail):
            a.state[i * k + a.y[i]] = TIED
        else:
            a.rows[a.count] = i
            a.count += 1


cdef double along_line(Line *a, double t) noexcept nogil:
    """Take the block steps of the rows that still move at scores F + t dF; return sum_i s_i r_i.dF_i over them."""
    cdef Family *s = a.s
    cdef int j, k = s.k
    cdef Py_ssize_t at, i
    cdef double top, total = 0.0
    f, r, new, direction = s.work + 8 * s.kp, s.work + 9 * s.kp, s.work + 10 * s.kp, s.work + 11 * s.kp
    if a.lanes and a.held:
        return tiles_step(s, &a.tiles, t, a.curvature, a.y, a.rows)
    if a.lanes:
        led_by_others(a, t)
        # a tile at a time: those of all rows would not stay in the cache
        at = 0
        while at < a.count:
            tiles_fill(&a.tiles, a.F, a.dF, a.center, a.y, a.sample, a.rows + at, min(a.count - at, <Py_ssize_t>(GROUPS * LANES)))
            total += tiles_step(s, &a.tiles, t, a.curvature, a.y, a.rows + at)
            tiles_write(&a.tiles, a.y, a.rows + at, a.R, a.state)
            at += a.tiles.count
        return total
    for at in range(a.count):
        i = a.rows[at]
        for j in range(k):
            f[j] = a.F[i * k + j] + t * a.dF[i * k + j]
        if a.cost != NULL:
            top = f[0]
            for j in range(1, k):
                top = max(top, f[j])
            for j in range(k):
                f[j] = (f[j] - top) / a.cost[i]
        memcpy(r, a.center + i * k, k * sizeof(double))
        memset(direction, 0, s.kp * sizeof(double))
        if a.tight != NULL:
            s.tight = a.tight + i * s.l
            memset(s.tight, 0, s.l)
        s.step(s, f, r, a.y[i], a.curvature, -INFINITY, new, a.state + i * k, direction)
        memcpy(a.R + i * k, new, k * sizeof(double))
        memcpy(a.normal + i * k, direction, k * sizeof(double))
        total += along_row(a, i, new)
    return total


cdef int hold(Line *a, const double *low, const signed char *low_state, double total, double *held) noexcept nogil:
    """Leave out the rows that end at the same r, with the same label states, at both ends of the bracket; write their part of the sum ``total``.

    The scores at which a row's block step ends at r form a convex set: these rows stay where they are in between. -1 when memory is short.
    """
    cdef Py_ssize_t i, j, n = a.n, k = a.s.k, kept = 0
    cdef signed char *moved = <signed char *>malloc(n * k)
    if moved == NULL:
        return -1
    for j in range(n * k):
        moved[j] = (not fabs(a.R[j] - low[j]) <= 1e-14) | (a.state[j] != low_state[j])
    at = <const signed char *>memchr(moved, 1, n * k)
    while at != NULL:
        i = (at - moved) // k
        total -= along_row(a, i, a.R + i * k)
        a.rows[kept] = i
        kept += 1
        at = <const signed char *>memchr(moved + (i + 1) * k, 1, (n - i - 1) * k)
    free(moved)
    held[0] = total
    a.count, a.held = kept, True
    if not a.lanes:
        return 0
    free(a.tiles.block)
    if tiles_new(&a.tiles, kept, a.s.k) != 0:
        return -1
    tiles_fill(&a.tiles, a.F, a.dF, a.center, a.y, a.sample, a.rows, kept)
    return 0


def search(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const double[:, ::1] dF, const double[:, ::1] center,
           const Py_ssize_t[::1] y, const double[::1] cost_weight, const double[::1] sample_weight, double curvature, double factor, double slope0,
           double base, double square, int most, const double[:, ::1] before, const signed char[:, ::1] before_state,
           double[:, ::1] scores, double[:, ::1] R, signed char[:, ::1] state, double[:, ::1] normal, signed char[:, ::1] tight):
    """Search t > 0 along scores F + t dF for a slope base + t square + factor sum_i s_i r_i.dF_i of at most |slope0|/2; return t and the trials.

    r_i are the block steps from ``center``, ``before`` those at t = 0 with their states. The slope rises: t = 1 first, doubled while it is negative,
    then regula falsi; the last of ``most`` trials is taken where none will do. Writes the scores at t, and the steps and their faces as `block`
    does, but leaves the normals of zero-one alone, which has none. Weights are (n,) or empty.
    """
    cdef Family s
    cdef Line a
    cdef Py_ssize_t i, n = F.shape[0]
    cdef int trials = 0, code = 0
    cdef double low = 0.0, slope_low = slope0, high = 0.0, slope_high = 0.0, t = 1.0, last = 1.0, held = 0.0, total, now, share
    cdef const signed char *low_state
    cdef double *own_R = NULL
    cdef signed char *own_state = NULL
    check_labels(y, n, k)
    demand(F.shape[1] == k and dF.shape[0] == n and dF.shape[1] == k and center.shape[0] == n and center.shape[1] == k,
           "scores and center must be (n, k)")
    demand(before.shape[0] == n and before.shape[1] == k and R.shape[0] == n and R.shape[1] == k, "r must be (n, k)")
    demand(scores.shape[0] == n and scores.shape[1] == k, "scores must be (n, k)")
    demand(state.shape[0] == n and state.shape[1] == k and before_state.shape[0] == n and before_state.shape[1] == k and normal.shape[0] == n
           and normal.shape[1] == k, "states and normals must be (n, k)")
    check_weights(cost_weight, n)
    check_weights(sample_weight, n)
    demand(n > 0 and 0 < most <= MOST_TRIALS, "a line search needs a row and 1 to 10,000 trials")
    bind(&s, kind, k, parameters)
    if tight.shape[0] and not (tight.shape[0] == n and tight.shape[1] == s.l):
        family_free(&s)
        raise ValueError("flags of tight rows must be (n, l) or none")
    memset(&a, 0, sizeof(Line))
    a.s, a.F, a.dF, a.center, a.y, a.curvature = &s, &F[0, 0], &dF[0, 0], &center[0, 0], &y[0], curvature
    a.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    a.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    a.R, a.state, a.normal = &R[0, 0], &state[0, 0], &normal[0, 0]
    a.tight = &tight[0, 0] if tight.shape[0] else NULL
    a.lanes = kind == ZERO_ONE and k <= BLOCKS and a.cost == NULL
    low_R, low_state = &before[0, 0], &before_state[0, 0]
    with nogil:
        a.n = a.count = n
        a.rows = <Py_ssize_t *>malloc(n * sizeof(Py_ssize_t))
        if a.rows == NULL:
            code = -1
        else:
            for i in range(n):
                a.rows[i] = i
            if a.lanes:
                code = tiles_new(&a.tiles, GROUPS * LANES, k)
        while code == 0 and trials < most:
            last = t
            total = held + along_line(&a, t)
            now = base + t * square + factor * total
            trials += 1
            if fabs(now) <= 0.5 * fabs(slope0):
                break
            if now < 0.0:
                low, slope_low = t, now
                if not a.held:
                    t *= 2.0
                    if own_R == NULL:
                        own_R = <double *>malloc(n * k * sizeof(double))
                        own_state = <signed char *>malloc(n * k)
                    if own_R == NULL or own_state == NULL:
                        code = -1
                        break
                    memcpy(own_R, a.R, n * k * sizeof(double))
                    memcpy(own_state, a.state, n * k)
                    low_R, low_state = own_R, own_state
                    continue
            else:
                high, slope_high = t, now
                if not a.held and trials < most:
                    code = hold(&a, low_R, low_state, total, &held)
            share = slope_low / (slope_low - slope_high)
            # not a number: its lowest
            t = low + (0.1 if not share > 0.1 else min(share, 0.9)) * (high - low)
        if code == 0 and a.lanes and a.held:
            tiles_write(&a.tiles, a.y, a.rows, a.R, a.state)
        at = &scores[0, 0]
        for i in range(n * k):
            at[i] = a.F[i] + last * a.dF[i]
        free(a.tiles.block)
        free(a.rows)
        free(own_R)
        free(own_state)
        family_free(&s)
    if code != 0:
        raise MemoryError("no memory for the rows of a line search")
    return last, trials


def judge(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const double[:, ::1] R, const Py_ssize_t[::1] y,
          const double[::1] weight):
    """Return the weighted sums over the rows of the surrogates S, of c(r) and of the block gaps S - c(r) - f.r."""
    cdef Family s
    cdef Py_ssize_t i, n = F.shape[0]
    cdef int j, code = 0
    cdef double value, offset, product
    cdef double[3] sums
    check_labels(y, n, k)
    demand(F.shape[1] == k and R.shape[0] == n and R.shape[1] == k and weight.shape[0] == n, "scores and r must be (n, k), weights (n,)")
    bind(&s, kind, k, parameters)
    memset(sums, 0, sizeof(sums))
    with nogil:
        if n and kind == ZERO_ONE:
            code = zero_one_judged(&F[0, 0], &R[0, 0], &y[0], &weight[0], n, k, sums)
        elif n:
            f, r, q = s.work + 8 * s.kp, s.work + 9 * s.kp, s.work + 10 * s.kp
            for i in range(n):
                memcpy(f, &F[i, 0], k * sizeof(double))
                memcpy(r, &R[i, 0], k * sizeof(double))
                value = s.oracle(&s, f, y[i], q, &product)
                offset = s.offset(&s, r, y[i])
                product = 0.0
                for j in range(k):
                    product += f[j] * r[j]
                sums[0] += weight[i] * value
                sums[1] += weight[i] * offset
                sums[2] += weight[i] * (value - offset - product)
        family_free(&s)
    if code != 0:
        raise MemoryError("no memory for the lanes")
    return sums[0], sums[1], sums[2]


def games(int k, const double[::1] parameters, const double[:, ::1] F, double[:, ::1] Q, double[:, ::1] P, Py_ssize_t[::1] pivots):
    """Solve the game of a general matrix at every row of scores: the adversary's q, the predictor's p and the pivots (-1: stalled)."""
    cdef Family s
    cdef Py_ssize_t i, n = F.shape[0]
    demand(F.shape[1] == k and Q.shape[0] == n and Q.shape[1] == k and P.shape[0] == n and pivots.shape[0] == n, "scores and q must be (n, k), p (n, l)")
    bind(&s, GENERAL, k, parameters)
    if P.shape[1] != s.l:
        family_free(&s)
        raise ValueError(f"p must be (n, {s.l})")
    with nogil:
        f, q = s.work + 8 * s.kp, s.work + 9 * s.kp
        for i in range(n):
            memcpy(f, &F[i, 0], k * sizeof(double))
            pivots[i] = solve_game(&s, f, q, &P[i, 0])
            memcpy(&Q[i, 0], q, k * sizeof(double))
        family_free(&s)
