"""Dual block-coordinate ascent for every compiled surrogate on linear scores, dense or CSR, without the GIL.

maximise over r_i in conv R(y_i):  D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 |Theta(r)|^2,  Theta(r) = -1/(lambda n) sum_i s_i x_i r_i'

with sample weights s, n = sum_i s_i, and cost weights w (S_w(f) = w S(f/w)). One visit maximises one block exactly.
What makes it fast, each measured (docs/notes/kernels.md, section 2): a fresh permutation every pass; shrinking - after a full pass up to
ten passes over the examples with a large gap; Theta stored d x kp; no work for examples whose gap is negligible.
"""

from libc.stdlib cimport malloc, free
from libc.stdint cimport uint64_t
from libc.string cimport memset
from cpython.exc cimport PyErr_CheckSignals

from adv_simd cimport vec, load, store, vsum, splat, LANES, prefetch
from adv_family cimport Family
from adv_bind cimport family_free
from adv_check cimport check_labels, check_rows, check_weights, demand
from adv_loop cimport bind, checked_width, gap_scale, seconds, shuffle
from adv_linear cimport Rows, rows_of, row_scores, row_update, prefetch_rows

cdef enum:
    ACTIVE_PASSES = 10   # passes over the active set between two full passes
    BLOCK_ROWS = 16      # rows that stay together when X exceeds the cache

cdef struct Run:
    Rows rows
    Family family
    const Py_ssize_t *y
    const double *square      # |x_i|^2
    const double *sample      # s_i or NULL
    const double *cost        # w_i or NULL
    double *r                 # (n, kp)
    double *theta             # (d, kp)
    double *gap               # (n,) block gaps at the last visit, times s_i w_i
    double mass               # n of the objective: the sum of the sample weights
    double scale              # 1/(lambda mass)
    int *moved
    double *hint              # (n,) see Family.hint


cdef inline double visit(Run *run, Py_ssize_t i, double skip) noexcept nogil:
    """Maximise block i and return its gap before the step, times s_i w_i."""
    cdef Family *s = &run.family
    cdef int v, kp = s.kp
    cdef double *f = s.work + 8 * kp
    cdef double *new = s.work + 9 * kp
    cdef double *r = run.r + i * kp
    cdef double weight = 1.0, cost = 1.0, gap, w
    cdef vec inverse
    if run.sample != NULL:
        weight = run.sample[i]
        if weight == 0.0:
            return 0.0
    row_scores(&run.rows, i, run.theta, kp, f)
    if run.cost != NULL:
        cost = run.cost[i]
        inverse = splat(1.0 / cost)
        for v in range(kp // LANES):
            store(f, v, load(f, v) * inverse)
    w = weight * run.square[i] * run.scale
    s.hint = run.hint + i
    gap = s.step(s, f, r, run.y[i], w / cost, skip, new, NULL, NULL)
    if gap > skip:
        for v in range(kp // LANES):
            inverse = load(new, v)
            store(new, v, inverse - load(r, v))
            store(r, v, inverse)
        row_update(&run.rows, i, run.theta, kp, new, -weight * run.scale, run.moved)
    return weight * cost * gap


cdef void certify(Run *run, double lam, double *primal, double *dual) noexcept nogil:
    """Primal and dual value at the present Theta and r: one pass that moves nothing, and refreshes the gaps."""
    cdef Family *s = &run.family
    cdef int v, kp = s.kp
    cdef Py_ssize_t i, n = run.rows.n
    cdef double *f = s.work + 8 * kp
    cdef double *vertex = s.work + 9 * kp
    cdef double value, c, best, weight, cost, loss = 0.0, offsets = 0.0, square = 0.0, inner
    cdef vec a
    for i in range(n):
        weight = 1.0 if run.sample == NULL else run.sample[i]
        cost = 1.0 if run.cost == NULL else run.cost[i]
        row_scores(&run.rows, i, run.theta, kp, f)
        for v in range(kp // LANES):
            store(f, v, load(f, v) * splat(1.0 / cost))
        value = s.oracle(s, f, run.y[i], vertex, &c)
        best = s.offset(s, run.r + i * kp, run.y[i])
        a = splat(0.0)
        for v in range(kp // LANES):
            a = a + load(f, v) * load(run.r + i * kp, v)
        inner = vsum(a)
        run.gap[i] = weight * cost * (value - best - inner)
        loss += weight * cost * value
        offsets += weight * cost * best
    for i in range(<Py_ssize_t>run.rows.d * kp):
        square += run.theta[i] * run.theta[i]
    primal[0] = 0.5 * lam * square + loss / run.mass
    dual[0] = offsets / run.mass - 0.5 * lam * square


cdef int ascend(Run *run, double lam, double tol, double max_passes, double max_seconds, uint64_t seed, bint blocks,
                double *passes, double *primal, double *dual) except -1 nogil:
    """Return 0 when the relative gap reached ``tol``, 1 at the limit of passes, 2 at the limit of seconds."""
    cdef Py_ssize_t n = run.rows.n, i, j, m, b, visits = 0, n_blocks = (n + BLOCK_ROWS - 1) // BLOCK_ROWS, stop
    cdef Py_ssize_t *order = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    cdef double total, active_total, goal, level, skip, next_check, started = seconds(), signals = started, now
    cdef int inner, code = 1, kp = run.family.kp
    cdef uint64_t state = seed
    cdef bint check
    if order == NULL:
        with gil:
            raise MemoryError("no memory for the order of the examples")
    certify(run, lam, primal, dual)
    passes[0] = 1.0
    visits = n
    next_check = 2.0
    try:
        while True:
            if primal[0] - dual[0] <= tol * gap_scale(primal[0], dual[0]):
                code = 0
                break
            if not passes[0] < max_passes:
                code = 1
                break
            now = seconds()
            if not now - started <= max_seconds:
                code = 2
                break
            # examples whose gap is far below what the stopping rule can see are read, not moved
            skip = 1e-3 * tol * gap_scale(primal[0], dual[0])
            total = 0.0
            if blocks:
                for i in range(n_blocks):
                    order[i] = i
                shuffle(order, n_blocks, &state)
                for b in range(n_blocks):
                    i = order[b] * BLOCK_ROWS
                    stop = min(i + BLOCK_ROWS, n)
                    while i < stop:
                        run.gap[i] = visit(run, i, skip)
                        total += run.gap[i]
                        i += 1
            else:
                for i in range(n):
                    order[i] = i
                shuffle(order, n, &state)
                total = sweep(run, order, n, skip)
            visits += n
            # shrinking: the examples that carry the gap, until they have lost most of it
            level = 0.02 * total / n
            m = 0
            active_total = 0.0
            for i in range(n):
                if run.gap[i] > level:
                    order[m] = i
                    m += 1
                    active_total += run.gap[i]
            goal = 0.3 * active_total
            if m < 0.9 * n:
                for inner in range(ACTIVE_PASSES):
                    shuffle(order, m, &state)
                    total -= active_total
                    active_total = sweep(run, order, m, skip)
                    total += active_total
                    visits += m
                    if active_total <= goal:
                        break
            passes[0] = <double>visits / n
            now = seconds()
            check = total / run.mass <= 1.2 * tol * gap_scale(primal[0], dual[0]) or passes[0] >= next_check or passes[0] >= max_passes or now - started > max_seconds
            if check:
                certify(run, lam, primal, dual)
                visits += n
                passes[0] = <double>visits / n
                next_check = 1.5 * passes[0] + 2.0
            if now - signals > 0.2:
                signals = now
                with gil:
                    PyErr_CheckSignals()
    finally:
        free(order)
    return code


cdef double sweep(Run *run, const Py_ssize_t *order, Py_ssize_t count, double skip) noexcept nogil:
    """Visit the listed examples in order and return the sum of their gaps; asks for the next rows while it works on one."""
    cdef Py_ssize_t b, i, j
    cdef double total = 0.0
    cdef Rows *x = &run.rows
    cdef int line
    for b in range(count):
        i = order[b]
        if b + 1 < count:
            j = order[b + 1]
            if x.start == NULL:
                for line in range(0, min(x.d, 128), 8):
                    prefetch(x.values + j * x.d + line)
                prefetch(run.r + j * run.family.kp)
            else:
                prefetch_rows(run.theta, run.family.kp, x.columns + x.start[j], x.start[j + 1] - x.start[j])
        run.gap[i] = visit(run, i, skip)
        total += run.gap[i]
    return total


def solve(int kind, int k, const double[::1] parameters, const double[::1] values, const int[::1] columns, const long long[::1] start,
          Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square, const double[::1] sample_weight, const double[::1] cost_weight,
          double[:, ::1] R, double[:, ::1] theta, double[::1] gap, double lam, double mass, double tol, double max_passes, double max_seconds,
          unsigned long long seed, bint blocks):
    """Run the ascent in place on R (n, kp) and theta (d, kp); both padded with zeros to kp, theta = Theta(R) on entry.

    ``columns`` is empty for dense rows. Weights may be empty (all 1). Returns (code, passes, primal, dual); code 0 = converged,
    1 = limit of passes, 2 = limit of seconds.
    """
    cdef Run run
    cdef double passes = 0.0, primal = 0.0, dual = 0.0
    cdef Py_ssize_t i
    cdef int code, kp = checked_width(k)
    check_rows(values, columns, start, n, d)
    check_labels(y, n, k)
    check_weights(sample_weight, n)
    check_weights(cost_weight, n)
    demand(R.shape[0] == n and R.shape[1] == kp and theta.shape[0] == d and theta.shape[1] == kp, "R must be (n, kp) and theta (d, kp), padded")
    demand(square.shape[0] == n and gap.shape[0] == n, "every row needs a squared length and a gap")
    bind(&run.family, kind, k, parameters)
    run.rows = rows_of(values, columns, start, n, d)
    run.y = &y[0]
    run.square = &square[0]
    run.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    run.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    run.r = &R[0, 0]
    run.theta = &theta[0, 0]
    run.gap = &gap[0]
    run.mass = mass
    run.scale = 1.0 / (lam * mass)
    run.moved = <int *>malloc(run.family.kp * sizeof(int))
    run.hint = <double *>malloc((n + 1) * sizeof(double))
    try:
        if run.moved == NULL or run.hint == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        with nogil:
            for i in range(n):
                run.hint[i] = -1.0
            code = ascend(&run, lam, tol, max_passes, max_seconds, seed, blocks, &passes, &primal, &dual)
    finally:
        free(run.moved)
        free(run.hint)
        family_free(&run.family)
    return code, passes, primal, dual


def width(int k):
    """Return kp: the number of columns that R and theta have at this instruction set."""
    return checked_width(k)
