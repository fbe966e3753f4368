"""Linear chains: the best labels, and training over stored label sequences.

A chain of T positions and K states has potentials U (T, K) and A (K, K): f(y) = sum_t U[t, y_t] + sum_t A[y_t, y_{t+1}]. Ties go to the state
of the lowest number, from the end of the chain to its beginning. Chains stand one behind the other: chain s is rows start[s] to start[s + 1].

Training maximises the dual of lambda/2 |w|^2 + 1/S sum_s max_y psi(h(y), g(y)) over mixtures alpha of stored sequences of every chain (spec: a
plane is its sequence, a scale psi_h and an offset psi - psi_h h),

    D = 1/S sum_s sum_p alpha_sp c_sp - lambda/2 |w|^2,   w = -1/(lambda S) sum alpha_sp a_sp,   a_sp = scale_sp (phi(y_sp) - phi(y_s)).

A visit reads the scores of one chain, adds the most violated sequence, and moves mass between pairs of stored ones; the Gram matrix of the
chain's rows tells how the chain's scores move, so that w is read and written once a visit.

With targets p in the simplex at every position the loss of a sequence is sum_t (1 - p_t(y_t)). Margin rescaling has p = the truth; the max-min
margin (Nowak-Vila, Bach & Rudi 2020) minimises over p as well: its D has c = sum_t (1 - max_a mu_t(a)), mu the shares of the states in the
mixture. Its p moves by proximal steps, p <- projection of p + mu / delta, between which D is smooth.

One file: training and prediction search the same sequences.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_groups, check_labels, check_positions, check_rows, demand
from adv_linear cimport Rows, rows_of, row_scores, row_update
from adv_loop cimport checked_width, shuffle
from adv_psi cimport LOG, MARGIN, MAXMIN, PROB, SCALING, surrogate
from adv_stored cimport is_new, room_for, violated_pair
from adv_targets cimport target
from adv_simd cimport vec, load, store, splat, vmax, vsum, zeros, LANES
include "width.pxi"

cdef enum:
    MOST_STATES = 32767


ctypedef fused label:
    short
    Py_ssize_t


# ---- dynamic programmes -----------------------------------------------------------------------------------------------
cdef inline void relax(const double *before, const double *A, int K, int Kp, double *out) noexcept nogil:
    """out_j = max_i before_i + A_ij; two accumulators a vector hide the latency of the maximum."""
    cdef int i, v = 0, nv = Kp // LANES
    cdef vec a0, a1, b0, b1, x
    while v + 2 <= nv:
        x = splat(before[0])
        a0 = b0 = x + load(A, v)
        a1 = b1 = x + load(A, v + 1)
        i = 1
        while i + 2 <= K:
            x = splat(before[i])
            a0 = vmax(a0, x + load(A + i * Kp, v))
            a1 = vmax(a1, x + load(A + i * Kp, v + 1))
            x = splat(before[i + 1])
            b0 = vmax(b0, x + load(A + (i + 1) * Kp, v))
            b1 = vmax(b1, x + load(A + (i + 1) * Kp, v + 1))
            i += 2
        if i < K:
            x = splat(before[i])
            a0 = vmax(a0, x + load(A + i * Kp, v))
            a1 = vmax(a1, x + load(A + i * Kp, v + 1))
        store(out, v, vmax(a0, b0))
        store(out, v + 1, vmax(a1, b1))
        v += 2
    if v < nv:
        a0 = b0 = splat(before[0]) + load(A, v)
        i = 1
        while i + 2 <= K:
            a0 = vmax(a0, splat(before[i]) + load(A + i * Kp, v))
            b0 = vmax(b0, splat(before[i + 1]) + load(A + (i + 1) * Kp, v))
            i += 2
        if i < K:
            a0 = vmax(a0, splat(before[i]) + load(A + i * Kp, v))
        store(out, v, vmax(a0, b0))


cdef inline int best_before(const double *before, const double *column, int K, double best) noexcept nogil:
    """Return the first i with before_i + column_i = best, the largest of them."""
    cdef int i
    for i in range(K):
        if before[i] + column[i] == best:
            return i
    return 0


cdef inline int first_largest(const double *a, int K) noexcept nogil:
    cdef int i, at = 0
    for i in range(1, K):
        if a[i] > a[at]:
            at = i
    return at


cdef double best_path(const double *U, const double *A, const double *At, Py_ssize_t T, int K, int Kp, double *M, short *y) noexcept nogil:
    """Return the largest score and its labels; U (T, Kp), A and its transpose (K, Kp). Scratch M (2 T, Kp): the best before, and up to, a state."""
    cdef Py_ssize_t t
    cdef int v
    cdef double *upto = M + T * Kp
    cdef double value
    memcpy(upto, U, Kp * sizeof(double))
    for t in range(1, T):
        relax(upto + (t - 1) * Kp, A, K, Kp, M + t * Kp)
        for v in range(Kp // LANES):
            store(upto + t * Kp, v, load(M + t * Kp, v) + load(U + t * Kp, v))
    y[T - 1] = <short>first_largest(upto + (T - 1) * Kp, K)
    value = upto[(T - 1) * Kp + y[T - 1]]
    for t in range(T - 1, 0, -1):
        y[t - 1] = <short>best_before(upto + (t - 1) * Kp, At + y[t] * Kp, K, M[t * Kp + y[t]])
    return value


cdef void best_levels(
    const double *U, const double *A, const Py_ssize_t *truth, Py_ssize_t T, int K, int Kp, double *M, double *upto, double *value
) noexcept nogil:
    """value (T + 1,) = the largest score at every Hamming distance from the truth.

    M and upto (T, T + 1, Kp): the best before, and up to, a state at a position, by the distance before and up to it.
    """
    cdef Py_ssize_t t, g, width = (T + 1) * Kp
    cdef int j
    for t in range(T):
        now = upto + t * width
        before = M + t * width
        for g in range((t + 2) * Kp):
            now[g] = -INFINITY
        if t == 0:
            for j in range(K):
                now[(j != truth[0]) * Kp + j] = U[j]
            continue
        for g in range(t + 1):
            relax(upto + (t - 1) * width + g * Kp, A, K, Kp, before + g * Kp)
            for j in range(K):
                now[(g + (j != truth[t])) * Kp + j] = before[g * Kp + j] + U[t * Kp + j]
    for g in range(T + 1):
        now = upto + (T - 1) * width + g * Kp
        value[g] = now[first_largest(now, K)]


cdef void level_path(
    const double *At, const Py_ssize_t *truth, Py_ssize_t T, int K, int Kp, const double *M, const double *upto, Py_ssize_t g, short *y
) noexcept nogil:
    """Fill the labels of the largest score at distance g."""
    cdef Py_ssize_t t, width = (T + 1) * Kp
    y[T - 1] = <short>first_largest(upto + (T - 1) * width + g * Kp, K)
    for t in range(T - 1, 0, -1):
        g -= y[t] != truth[t]
        if g < 0:  # numbers that are none
            g = 0
        if g > t:
            g = t
        y[t - 1] = <short>best_before(upto + (t - 1) * width + g * Kp, At + y[t] * Kp, K, M[t * width + g * Kp + y[t]])


cdef inline void pad(const double[:, ::1] A, int K, int Kp, double *to, double *transposed) noexcept nogil:
    """Copy A and its transpose to (K, Kp), with -infinity in the padding."""
    cdef int i, j
    for i in range(K):
        for j in range(Kp):
            to[i * Kp + j] = A[i, j] if j < K else -INFINITY
            transposed[i * Kp + j] = A[j, i] if j < K else -INFINITY


cdef inline int check_chain(const double[:, ::1] U, const double[:, ::1] A) except -1:
    demand(0 < U.shape[1] <= MOST_STATES, f"a chain has 1 to {MOST_STATES} states")
    demand(A.shape[0] == U.shape[1] and A.shape[1] == U.shape[1], f"A must have shape ({U.shape[1]}, {U.shape[1]})")
    demand(U.shape[0] > 0, "no positions")
    return 0


cdef inline int check_grams(const long long[::1] start, const double[::1] grams, Py_ssize_t *place) except -1:
    """The Gram matrices of the rows of every chain, one behind the other; write where each begins, unless ``place`` is NULL."""
    cdef Py_ssize_t s, size = 0
    for s in range(start.shape[0] - 1):
        if place != NULL:
            place[s] = size
        size += (start[s + 1] - start[s]) * (start[s + 1] - start[s])
    demand(grams.shape[0] == size, f"Gram matrices must be {size} numbers")
    return 0


def viterbi(const double[:, ::1] U, const double[:, ::1] A, const long long[::1] start, short[::1] labels, double[::1] value):
    """Fill the labels of the largest score of every chain (n,), and that score (S,)."""
    check_chain(U, A)
    cdef Py_ssize_t s, t, T, most = check_groups(start, U.shape[0], "chain")
    demand(labels.shape[0] == U.shape[0], f"labels must be {U.shape[0]} numbers")
    demand(value.shape[0] == start.shape[0] - 1, f"value must be {start.shape[0] - 1} numbers")
    cdef int K = <int>U.shape[1], Kp = checked_width(K)
    cdef double *work = zeros((3 * most + 2 * K) * Kp)
    own, to = work, work + most * Kp
    cdef double *transposed = to + K * Kp
    cdef double *M = transposed + K * Kp
    if work == NULL:
        raise MemoryError("no memory for the scores of a chain")
    with nogil:
        pad(A, K, Kp, to, transposed)
        for s in range(start.shape[0] - 1):
            T = start[s + 1] - start[s]
            for t in range(T):
                memcpy(own + t * Kp, &U[start[s] + t, 0], K * sizeof(double))
            value[s] = best_path(own, to, transposed, T, K, Kp, M, &labels[start[s]])
    free(work)


# ---- training ---------------------------------------------------------------------------------------------------------
cdef struct Work:        # of one visit, for chains of up to `most` positions
    double *U            # (most, Kp) scores of the chain's rows
    double *V            # (most, Kp) with the loss added where it is a sum over positions
    double *A            # (K, Kp), padded with -infinity, and its transpose
    double *At
    double *M            # best_path's, or the two tables of best_levels
    double *level        # (most + 1,)
    double *delta        # (most, Kp) direction of a step, and where it takes the scores
    double *reach
    double *count        # (K, Kp) of transitions
    double *total        # (most, Kp) all steps of a visit
    double *centre       # (most, Kp) where targets stood before it
    double *value        # (P,)
    int *touched         # (most,) positions that a step moves
    int *moved           # (Kp,) scratch of row_update
    short *found         # (most,)


cdef inline double path_score(const double *U, const double *A, const label *y, Py_ssize_t T, int Kp) noexcept nogil:
    cdef Py_ssize_t t
    cdef double total = U[y[0]]
    for t in range(1, T):
        total += U[t * Kp + y[t]] + A[y[t - 1] * Kp + y[t]]
    return total


cdef inline double worst(
    int kind, double beta, Work *work, const Py_ssize_t *truth, Py_ssize_t T, int K, int Kp, double own, double *slope, double *constant
) noexcept nogil:
    """Return S and its most violated sequence in work.found, with the scale and the offset of its plane; ``own`` is f(truth)."""
    cdef double value, h, best = -INFINITY, tangent
    cdef Py_ssize_t g, at = 0
    if kind == MARGIN or kind == MAXMIN:
        slope[0] = 1.0
        constant[0] = 0.0
        return best_path(work.V, work.A, work.At, T, K, Kp, work.M, work.found) - own
    upto = work.M + T * (T + 1) * Kp
    best_levels(work.U, work.A, truth, T, K, Kp, work.M, upto, work.level)
    slope[0] = constant[0] = 0.0
    for g in range(T + 1):
        if work.level[g] == -INFINITY:
            continue
        h = work.level[g] - own if g > 0 else 0.0
        value = surrogate(kind, beta, h, <double>g, &tangent)
        if value > best:
            best, at = value, g
            slope[0] = tangent
            constant[0] = value - tangent * h
    level_path(work.At, truth, T, K, Kp, work.M, upto, at, work.found)
    return best


cdef double revalue(
    Work *work, const Py_ssize_t *truth, const short *held, int used, const double *scale, const double *offset, const double *cost,
    Py_ssize_t T, int K, int Kp
) noexcept nogil:
    """Fill work.value for the stored sequences, and work.V with the losses ``cost`` (T, K) unless that is NULL; return f(truth)."""
    cdef Py_ssize_t t
    cdef int j, u
    cdef double own = path_score(work.U, work.A, truth, T, Kp)
    if cost != NULL:
        for t in range(T):
            for j in range(K):
                work.V[t * Kp + j] = work.U[t * Kp + j] + cost[t * K + j]
    for u in range(used):
        if cost != NULL:
            work.value[u] = path_score(work.V, work.A, held + u * T, T, Kp) - own
        else:
            work.value[u] = scale[u] * (path_score(work.U, work.A, held + u * T, T, Kp) - own) + offset[u]
    return own


cdef int work_new(Work *work, Py_ssize_t most, int K, int Kp, Py_ssize_t P, bint by_levels) noexcept nogil:
    cdef Py_ssize_t tables = 2 * most * ((most + 1) * Kp if by_levels else Kp)
    cdef Py_ssize_t size = 6 * most * Kp + 3 * K * Kp + tables + most + 1 + P + Kp
    cdef double *at = zeros(size)
    work.U = at
    work.touched = <int *>malloc(most * sizeof(int))
    work.moved = <int *>malloc(Kp * sizeof(int))
    work.found = <short *>malloc(most * sizeof(short))
    if at == NULL or work.touched == NULL or work.moved == NULL or work.found == NULL:
        return -1
    work.V = at + most * Kp
    work.delta = work.V + most * Kp
    work.reach = work.delta + most * Kp
    work.total = work.reach + most * Kp
    work.centre = work.total + most * Kp
    work.A = work.centre + most * Kp
    work.At = work.A + K * Kp
    work.count = work.At + K * Kp
    work.M = work.count + K * Kp
    work.level = work.M + tables
    work.value = work.level + most + 1
    return 0


cdef void work_free(Work *work) noexcept nogil:
    free(work.U)
    free(work.touched)
    free(work.moved)
    free(work.found)


def gram(const double[::1] values, const int[::1] columns, const long long[::1] begin, Py_ssize_t n, Py_ssize_t d, const long long[::1] start,
         double[::1] out):
    """Fill the Gram matrices x_t . x_u of the rows of every chain, one behind the other, each row by row."""
    check_rows(values, columns, begin, n, d)
    check_groups(start, n, "chain")
    cdef Rows rows = rows_of(values, columns, begin, n, <int>d)
    cdef Py_ssize_t s, t, u, T, size = 0
    cdef long long e, f
    cdef double x
    cdef double *row
    check_grams(start, out, NULL)
    cdef double *spread = zeros(d)
    if spread == NULL:
        raise MemoryError("no memory for a row")
    with nogil:
        for s in range(start.shape[0] - 1):
            T = start[s + 1] - start[s]
            for t in range(T):
                if rows.start == NULL:
                    for u in range(t + 1):
                        x = 0.0
                        for e in range(d):
                            x += rows.values[(start[s] + t) * d + e] * rows.values[(start[s] + u) * d + e]
                        out[size + t * T + u] = out[size + u * T + t] = x
                    continue
                for e in range(rows.start[start[s] + t], rows.start[start[s] + t + 1]):
                    spread[rows.columns[e]] += rows.values[e]
                for u in range(t + 1):
                    x = 0.0
                    for f in range(rows.start[start[s] + u], rows.start[start[s] + u + 1]):
                        x += rows.values[f] * spread[rows.columns[f]]
                    out[size + t * T + u] = out[size + u * T + t] = x
                for e in range(rows.start[start[s] + t], rows.start[start[s] + t + 1]):
                    spread[rows.columns[e]] = 0.0
            size += T * T
    free(spread)


def survey(int kind, double beta, const double[:, ::1] U, const double[:, ::1] A, const Py_ssize_t[::1] y, const long long[::1] start,
           const double[:, ::1] cost, double[::1] value, short[::1] labels, double[::1] slope, double[::1] constant):
    """Fill S of every chain (S,), its worst sequence (n,), and the scale and the offset of that plane (S,).

    kind 0 and 4: ``cost`` (n, K) is what a state costs at each position, and the offset is the loss of the sequence; others: psi of the number
    of positions that differ from y, and ``cost`` is not read.
    """
    check_chain(U, A)
    cdef Py_ssize_t S = start.shape[0] - 1, s, t, T, n = U.shape[0], most = check_groups(start, n, "chain")
    cdef int K = <int>U.shape[1], Kp = checked_width(K)
    cdef bint added = kind == MARGIN or kind == MAXMIN
    check_labels(y, n, K)
    demand(MARGIN <= kind <= MAXMIN, "no such surrogate")
    demand(cost.shape[0] == n and cost.shape[1] == K, f"costs must have shape ({n}, {K})")
    demand(labels.shape[0] == n, f"labels must be {n} numbers")
    demand(value.shape[0] == S and slope.shape[0] == S and constant.shape[0] == S, f"there are {S} chains")
    cdef Work work
    cdef double own
    if work_new(&work, most, K, Kp, 1, not added) != 0:
        work_free(&work)
        raise MemoryError("no memory for the scores of a chain")
    with nogil:
        pad(A, K, Kp, work.A, work.At)
        for s in range(S):
            T = start[s + 1] - start[s]
            for t in range(T):
                memcpy(work.U + t * Kp, &U[start[s] + t, 0], K * sizeof(double))
            own = revalue(&work, &y[start[s]], NULL, 0, NULL, NULL, &cost[start[s], 0] if added else NULL, T, K, Kp)
            value[s] = worst(kind, beta, &work, &y[start[s]], T, K, Kp, own, &slope[s], &constant[s])
            memcpy(&labels[start[s]], work.found, T * sizeof(short))
            if added:
                constant[s] = 0.0
                for t in range(T):
                    constant[s] += cost[start[s] + t, labels[start[s] + t]]
    work_free(&work)


cdef inline int check_store(
    const short[::1] held, const double[:, ::1] alpha, const double[:, ::1] scale, const int[::1] used, Py_ssize_t n, Py_ssize_t S, int K
) except -1:
    """P sequences of every chain: those of chain s are held[start[s] P:], the first ``used`` of them filled."""
    cdef Py_ssize_t i, P = alpha.shape[1]
    cdef bint outside = False
    demand(P > 0 and alpha.shape[0] == S, f"alpha must have {S} rows")
    demand(scale.shape[0] == S and scale.shape[1] == P, f"scale must have shape ({S}, {P})")
    demand(used.shape[0] == S, f"used must be {S} numbers")
    demand(held.shape[0] // P == n and held.shape[0] % P == 0, f"stored labels must be {n} x {P}")
    for i in range(held.shape[0]):
        outside |= held[i] < 0 or held[i] >= K
    demand(not outside, f"stored labels must lie in [0, {K})")
    for i in range(S):
        outside |= used[i] < 1 or used[i] > P
    demand(not outside, f"used must lie in [1, {P}]")
    return 0


def mixture(const long long[::1] start, const Py_ssize_t[::1] y, const short[::1] held, const double[:, ::1] alpha, const double[:, ::1] scale,
            const int[::1] used, double[:, ::1] unary, double[:, ::1] pair):
    """Add sum_p alpha_p scale_p (phi(y_p) - phi(y_s)) over the stored sequences: to unary (n, K) by position, to pair (K, K) over all chains."""
    cdef Py_ssize_t S = start.shape[0] - 1, s, t, T, p, P = alpha.shape[1], n = y.shape[0]
    cdef int K
    cdef double share
    check_groups(start, n, "chain")
    demand(0 < unary.shape[1] <= MOST_STATES, f"a chain has 1 to {MOST_STATES} states")
    K = <int>unary.shape[1]
    check_labels(y, n, K)
    check_store(held, alpha, scale, used, n, S, K)
    demand(unary.shape[0] == n, f"unary must have {n} rows")
    demand(pair.shape[0] == K and pair.shape[1] == K, f"pair must have shape ({K}, {K})")
    with nogil:
        for s in range(S):
            T = start[s + 1] - start[s]
            for p in range(used[s]):
                share = alpha[s, p] * scale[s, p]
                if share == 0.0:
                    continue
                own = &held[start[s] * P + p * T]
                for t in range(T):
                    unary[start[s] + t, own[t]] += share
                    unary[start[s] + t, y[start[s] + t]] -= share
                    if t > 0:
                        pair[own[t - 1], own[t]] += share
                        pair[y[start[s] + t - 1], y[start[s] + t]] -= share


cdef double step_between(
    Work *work, const short *up, double scale_up, const short *down, double scale_down, const Py_ssize_t *truth, const double *G,
    Py_ssize_t T, int K, int Kp, int *count
) noexcept nogil:
    """Set delta = a_up - a_down by position, reach = G delta, the transitions' part; return |a_up - a_down|^2 and the positions that move.

    Counts are those of K x Kp transitions in work.count.
    """
    cdef Py_ssize_t t, e
    cdef int m = 0, v, nv = Kp // LANES
    cdef double rest = scale_up - scale_down, square = 0.0
    cdef vec x
    for t in range(T):
        if up[t] != down[t] or (rest != 0.0 and up[t] != truth[t]):
            row = work.delta + m * Kp
            for v in range(nv):
                store(row, v, splat(0.0))
            row[up[t]] += scale_up
            row[down[t]] -= scale_down
            row[truth[t]] -= rest
            work.touched[m] = <int>t
            m += 1
    for t in range(T):
        row = work.reach + t * Kp
        for v in range(nv):
            x = splat(0.0)
            for e in range(m):
                x = x + splat(G[t * T + work.touched[e]]) * load(work.delta + e * Kp, v)
            store(row, v, x)
    for e in range(m):
        x = splat(0.0)
        for v in range(nv):
            x = x + load(work.delta + e * Kp, v) * load(work.reach + work.touched[e] * Kp, v)
        square += vsum(x)
    memset(work.count, 0, K * Kp * sizeof(double))
    for t in range(1, T):
        work.count[up[t - 1] * Kp + up[t]] += scale_up
        work.count[down[t - 1] * Kp + down[t]] -= scale_down
        work.count[truth[t - 1] * Kp + truth[t]] -= rest
    x = splat(0.0)
    for v in range(K * nv):
        x = x + load(work.count, v) * load(work.count, v)
    count[0] = m
    return square + vsum(x)


def sweep(
    int kind, double beta, const double[::1] values, const int[::1] columns, const long long[::1] begin, Py_ssize_t n, Py_ssize_t d,
    const long long[::1] start, const Py_ssize_t[::1] y, const double[::1] grams, double[:, ::1] theta, double[:, ::1] A,
    short[::1] held, double[:, ::1] alpha, double[:, ::1] scale, double[:, ::1] offset, int[::1] used, double[:, ::1] cost,
    double[:, ::1] shares, const double[::1] strength, double delta, double skip, double[::1] gap, int steps, int passes, long long seed
):
    """Visit every chain whose ``gap`` is above ``skip``, in random order, ``passes`` times; return how many had no room for a sequence.

    theta (d, Kp), Kp = `width`, and A (K, Kp) are w, kept in step with alpha (S, P), of which slot 0 is the truth; strength (S,) =
    lambda over the share of each chain in the mean.
    ``steps`` pairs move in a visit. gap (S,) becomes the gap of each chain as it was met.

    kind 4: ``cost`` (n, K) holds 1 - p and moves with the shares of the states, shares (n, K), by proximal steps of 1 / delta.
    """
    check_rows(values, columns, begin, n, d)
    cdef Py_ssize_t S = start.shape[0] - 1, s, t, T, P = alpha.shape[1], most = check_groups(start, n, "chain"), full = 0, order_at, q
    cdef int K = <int>A.shape[0], Kp = checked_width(K), j, high, low, count, v, left, done, free_slot, u
    cdef bint added = kind == MARGIN or kind == MAXMIN, moves
    check_labels(y, n, K)
    check_store(held, alpha, scale, used, n, S, K)
    demand(MARGIN <= kind <= MAXMIN, "no such surrogate")
    demand(K <= MOST_STATES, f"a chain has 1 to {MOST_STATES} states")
    demand(theta.shape[0] == d and theta.shape[1] == Kp, f"theta must have shape ({d}, {Kp})")
    demand(A.shape[1] == Kp, f"A must have shape ({K}, {Kp})")
    demand(offset.shape[0] == S and offset.shape[1] == P, f"offset must have shape ({S}, {P})")
    demand(cost.shape[0] == n and cost.shape[1] == K, f"costs must have shape ({n}, {K})")
    demand(shares.shape[0] == (n if kind == MAXMIN else 0) and shares.shape[1] == K, "shares must have K columns, and a row a position for the max-min margin")
    demand(strength.shape[0] == S, f"strength must be {S} numbers")
    demand(gap.shape[0] == S, f"gap must be {S} numbers")
    demand(P < 2147483647 and most < 2147483647, "too many positions")
    cdef Rows rows = rows_of(values, columns, begin, n, <int>d)
    cdef uint64_t state = <uint64_t>seed
    order, place = <Py_ssize_t *>malloc(S * sizeof(Py_ssize_t)), <Py_ssize_t *>malloc(S * sizeof(Py_ssize_t))
    cdef Work work
    cdef double own, best, mean, tangent, constant, square, ahead, amount, factor, x, curvature
    cdef double *W = &theta[0, 0] if d > 0 else NULL
    try:
        if work_new(&work, most, K, Kp, P, not added) != 0 or order == NULL or place == NULL:
            raise MemoryError("no memory for the scores of a chain")
        check_grams(start, grams, place)
        sorted_ = work.value + P
        for s in range(S):
            order[s] = s
        for done in range(passes):
            PyErr_CheckSignals()
            shuffle(order, S, &state)
            with nogil:
                pad(A, K, Kp, work.A, work.At)
                for order_at in range(S):
                    s = order[order_at]
                    if not gap[s] > skip:
                        continue
                    T = start[s + 1] - start[s]
                    truth = &y[start[s]]
                    G = &grams[place[s]]
                    mine = &held[start[s] * P]
                    for t in range(T):
                        row_scores(&rows, start[s] + t, W, Kp, work.U + t * Kp)
                        if kind == MAXMIN:
                            for j in range(K):
                                work.centre[t * Kp + j] = 1.0 - cost[start[s] + t, j]
                            target(&shares[start[s] + t, 0], work.centre + t * Kp, delta, K, &cost[start[s] + t, 0], sorted_)
                    own = revalue(&work, truth, mine, used[s], &scale[s, 0], &offset[s, 0], &cost[start[s], 0] if added else NULL, T, K, Kp)
                    best = worst(kind, beta, &work, truth, T, K, Kp, own, &tangent, &constant)
                    mean = 0.0  # the value of the mixture
                    for u in range(used[s]):
                        mean += alpha[s, u] * work.value[u]
                    if kind == MAXMIN:  # <mu, 1 - p> + ... becomes sum (1 - max mu) + ...
                        for t in range(T):
                            x = 0.0
                            for j in range(K):
                                mean -= shares[start[s] + t, j] * cost[start[s] + t, j]
                                if shares[start[s] + t, j] > x:
                                    x = shares[start[s] + t, j]
                            mean += 1.0 - x
                    gap[s] = best - mean
                    # room for the most violated sequence
                    if is_new(work.value, used[s], best):
                        free_slot = room_for(&alpha[s, 0], work.value, &used[s], P)
                        if free_slot < 0:
                            full += 1
                        else:
                            memcpy(mine + free_slot * T, work.found, T * sizeof(short))
                            alpha[s, free_slot] = 0.0
                            scale[s, free_slot] = tangent
                            offset[s, free_slot] = constant
                            work.value[free_slot] = best
                    # pairs of stored sequences
                    moves = False
                    for left in range(steps):
                        ahead = violated_pair(&alpha[s, 0], work.value, used[s], &high, &low)
                        if not ahead > 1e-12 * (1.0 + fabs(best)) or (left > 0 and ahead < 0.02 * gap[s]):
                            break
                        square = step_between(
                            &work, mine + high * T, scale[s, high], mine + low * T, scale[s, low], truth, G, T, K, Kp, &count
                        )
                        curvature = square / strength[s]
                        if kind == MAXMIN:
                            curvature += 2.0 * count / delta
                        amount = alpha[s, low]
                        if ahead < curvature * amount:
                            amount = ahead / curvature
                            alpha[s, low] -= amount
                        else:
                            alpha[s, low] = 0.0
                        alpha[s, high] += amount
                        factor = -amount / strength[s]
                        if not moves:
                            memset(work.total, 0, T * Kp * sizeof(double))
                            moves = True
                        for q in range(count):
                            t = work.touched[q]
                            for v in range(Kp // LANES):
                                store(work.total + t * Kp, v, load(work.total + t * Kp, v) + splat(factor) * load(work.delta + q * Kp, v))
                        for t in range(T):
                            for v in range(Kp // LANES):
                                store(work.U + t * Kp, v, load(work.U + t * Kp, v) + splat(factor) * load(work.reach + t * Kp, v))
                        for j in range(K):
                            for v in range(K):
                                x = factor * work.count[j * Kp + v]
                                if x != 0.0:
                                    work.A[j * Kp + v] += x
                                    work.At[v * Kp + j] += x
                        if kind == MAXMIN:
                            for q in range(count):
                                t = work.touched[q]
                                for j in range(K):
                                    shares[start[s] + t, j] += amount * work.delta[q * Kp + j]
                                target(&shares[start[s] + t, 0], work.centre + t * Kp, delta, K, &cost[start[s] + t, 0], sorted_)
                        revalue(&work, truth, mine, used[s], &scale[s, 0], &offset[s, 0], &cost[start[s], 0] if added else NULL, T, K, Kp)
                    if moves:
                        for t in range(T):
                            for v in range(K):
                                if work.total[t * Kp + v] != 0.0:
                                    row_update(&rows, start[s] + t, W, Kp, work.total + t * Kp, 1.0, work.moved)
                                    break
                for j in range(K):
                    for v in range(K):
                        A[j, v] = work.A[j * Kp + v]
    finally:
        work_free(&work)
        free(order)
        free(place)
    return full


def row_sweep(
    int kind, double beta, const double[::1] values, const int[::1] columns, const long long[::1] begin, Py_ssize_t n, Py_ssize_t d,
    const long long[::1] start, const Py_ssize_t[::1] y, const double[::1] grams, const Py_ssize_t[::1] order, double[:, ::1] theta,
    double[:, ::1] A, double[:, ::1] parts, double[::1] constant, const double[::1] share, double lam, long long made,
    double[:, ::1] late_theta, double[:, ::1] late_A
):
    """Step at the S chains in the order of ``order`` (S,), each with one mean plane: parts (S, K K + K longest), transitions before positions, and constant (S,).

    theta (d, Kp) and A (K, Kp) are changed with them. made < 0: block-coordinate Frank-Wolfe, theta and A being w. From 0 on: subgradients
    after that many, theta and A being sums of planes times n share, w = -1/(lam made) of them, and late_theta and late_A sums of these times
    the number of the step. The max-min margin has no such steps. The reference is advcli/learners/structured/frank_wolfe.py.
    """
    check_rows(values, columns, begin, n, d)
    cdef Py_ssize_t S = start.shape[0] - 1, s, t, u, T, most = check_groups(start, n, "chain"), at
    cdef int K = <int>A.shape[0] if A.shape[0] <= MOST_STATES else 0, Kp = checked_width(K) if K > 0 else 0, j, v
    cdef bint gradients = made >= 0, moves
    demand(K > 0, f"a chain has 1 to {MOST_STATES} states")
    check_labels(y, n, K)
    demand(MARGIN <= kind < MAXMIN, "no such surrogate of steps by rows")
    demand(theta.shape[0] == d and theta.shape[1] == Kp, f"theta must have shape ({d}, {Kp})")
    demand(A.shape[1] == Kp, f"A must have shape ({K}, {Kp})")
    demand(parts.shape[0] == S and parts.shape[1] == K * (K + most), f"parts must have shape ({S}, {K * (K + most)})")
    demand(constant.shape[0] == S and share.shape[0] == S, f"there are {S} chains")
    demand(lam > 0.0, "lambda must be positive")
    demand(made < 1 << 62, "too many steps")
    demand(late_theta.shape[0] == (d if gradients else 0) and late_theta.shape[1] == Kp, "late_theta must have the shape of theta, or no rows")
    demand(late_A.shape[0] == (K if gradients else 0) and late_A.shape[1] == Kp, "late_A must have the shape of A, or no rows")
    demand(order.shape[0] == S, f"order must be {S} numbers")
    check_positions(order, S, "order")
    cdef Rows rows = rows_of(values, columns, begin, n, <int>d)
    cdef Py_ssize_t *place = <Py_ssize_t *>malloc(S * sizeof(Py_ssize_t))
    cdef Work work
    cdef double own, tangent, offset, ahead, square, gamma, factor, scale, x
    W, late = &theta[0, 0] if d > 0 else NULL, &late_theta[0, 0] if gradients and d > 0 else NULL
    try:
        if work_new(&work, most, K, Kp, 1, kind != MARGIN) != 0 or place == NULL:
            raise MemoryError("no memory for the scores of a chain")
        check_grams(start, grams, place)
        with nogil:
            pad(A, K, Kp, work.A, work.At)
            for at in range(order.shape[0]):
                if at % 4096 == 4095:
                    with gil:
                        PyErr_CheckSignals()
                s = order[at]
                T = start[s + 1] - start[s]
                truth = &y[start[s]]
                mean = &parts[s, 0]
                scale = 1.0
                if gradients:
                    scale = -1.0 / (lam * (made if made > 0 else 1))
                    for j in range(K):
                        for v in range(K):
                            work.A[j * Kp + v] = scale * A[j, v]
                            work.At[v * Kp + j] = scale * A[j, v]
                for t in range(T):
                    row = work.U + t * Kp
                    row_scores(&rows, start[s] + t, W, Kp, row)
                    for j in range(K):
                        row[j] *= scale
                        work.V[t * Kp + j] = row[j] + (j != truth[t])
                own = path_score(work.U, work.A, truth, T, Kp)
                worst(kind, beta, &work, truth, T, K, Kp, own, &tangent, &offset)
                if kind == MARGIN:
                    offset = 0.0
                    for t in range(T):
                        offset += work.found[t] != truth[t]
                # the way to the worst plane: from the mean one, or from 0
                memset(work.count, 0, K * Kp * sizeof(double))
                for t in range(T):
                    row = work.delta + t * Kp
                    for j in range(Kp):
                        row[j] = -mean[K * K + t * K + j] if j < K and not gradients else 0.0
                    row[work.found[t]] += tangent
                    row[truth[t]] -= tangent
                    if t > 0:
                        work.count[work.found[t - 1] * Kp + work.found[t]] += tangent
                        work.count[truth[t - 1] * Kp + truth[t]] -= tangent
                gamma = 1.0
                if gradients:
                    made += 1
                    factor = S * share[s]
                else:
                    for j in range(K):
                        for v in range(K):
                            work.count[j * Kp + v] -= mean[j * K + v]
                    offset -= constant[s]
                    ahead, square = offset, 0.0
                    G = &grams[place[s]]
                    for j in range(K):
                        for v in range(K):
                            x = work.count[j * Kp + v]
                            ahead += x * work.A[j * Kp + v]
                            square += x * x
                    for t in range(T):
                        memset(work.reach, 0, Kp * sizeof(double))
                        for u in range(T):
                            x = G[t * T + u]
                            for v in range(Kp // LANES):
                                store(work.reach, v, load(work.reach, v) + splat(x) * load(work.delta + u * Kp, v))
                        for j in range(K):
                            ahead += work.delta[t * Kp + j] * work.U[t * Kp + j]
                            square += work.delta[t * Kp + j] * work.reach[j]
                    if not ahead > 0.0:
                        continue
                    square *= share[s]
                    if square > 0.0 and lam * ahead < square:
                        gamma = lam * ahead / square
                    factor = -gamma * share[s] / lam
                constant[s] += gamma * offset
                for j in range(K):
                    for v in range(K):
                        x = work.count[j * Kp + v]
                        if x == 0.0:
                            continue
                        mean[j * K + v] += gamma * x
                        A[j, v] += factor * x
                        if gradients:
                            late_A[j, v] += factor * made * x
                        else:
                            work.A[j * Kp + v] = work.At[v * Kp + j] = A[j, v]
                for t in range(T):
                    row = work.delta + t * Kp
                    moves = False
                    for j in range(K):
                        mean[K * K + t * K + j] += gamma * row[j]
                        moves |= row[j] != 0.0
                    if moves:
                        row_update(&rows, start[s] + t, W, Kp, row, factor, work.moved)
                        if gradients:
                            row_update(&rows, start[s] + t, late, Kp, row, factor * made, work.moved)
    finally:
        work_free(&work)
        free(place)
