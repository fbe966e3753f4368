"""Dual block-coordinate ascent on a kernel matrix, for every compiled surrogate, without the GIL.

maximise over r_i in conv R(y_i):  D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 <A, K A>,  A = -1/(lambda n) s r,  F = K A

with sample weights s, n = sum_i s_i, and cost weights w (S_w(f) = w S(f/w)). The scores of m rows are kept class by class, (k, m): a visit reads k
numbers, an update reads one row of K once and touches only the classes whose r moved. `ascend` works on a dense block of K among chosen rows,
small enough to stay in the cache (docs/notes/kernels.md, section 3); `gather` copies it and `accumulate` brings the other rows' scores up to date in tiles. The sets conv R(y_i)
are a surrogate's own, with its exact block step, or hulls of listed points (`solve_listed`), the constraints of a row in constraint generation.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport malloc, free
from libc.stdint cimport uint64_t
from cpython.exc cimport PyErr_CheckSignals

from adv_simd cimport vec, load, store, vsum, splat, LANES, prefetch
from adv_family cimport Family
from adv_bind cimport family_free
from adv_check cimport check_labels, check_positions, check_weights, demand
from adv_loop cimport bind, checked_width, seconds, shuffle

cdef enum:
    ACTIVE_PASSES = 10   # passes over the examples with a large gap between two passes over all
    PAIRS = 30           # moves of weight between listed points in a visit
    TILE = 512           # columns of K that `accumulate` works on at a time: k score rows of 4 KiB stay in the first cache

cdef struct Listed:
    # sets conv R(y_i) that are given by some of their points: those of example i are first_i to first_(i+1)
    const Py_ssize_t *first
    const double *r           # (points, k)
    const double *offset      # c of each
    double *weight            # beta, of each; sums to one over an example's
    double *value             # scratch, (points of the example that has most)

cdef struct Run:
    Family family
    Py_ssize_t m
    const double *kernel      # (m, stride)
    Py_ssize_t stride
    double *f                 # (k, f_stride): scores, class by class
    Py_ssize_t f_stride
    double *r                 # (m, kp)
    const Py_ssize_t *y
    const double *sample      # s_i or NULL
    const double *cost        # w_i or NULL
    double *gap               # (m,) block gaps at the last visit, times s_i w_i
    double scale              # 1/(lambda n)
    int *classes
    double *step
    double *hint              # (m,) see Family.hint
    const Listed *listed      # NULL: the family's sets


cdef inline void add_row(const double *row, Py_ssize_t count, double *f, Py_ssize_t stride, const int *classes, const double *step, int moved) noexcept nogil:
    """f[c] += step_c row for the listed classes c; up to three classes share one read of the row."""
    cdef int c = 0
    cdef Py_ssize_t j, whole = count // LANES
    cdef double *f0
    cdef double *f1
    cdef double *f2
    cdef double s0, s1, s2
    cdef vec a, v0, v1, v2
    while c < moved:
        f0 = f + classes[c] * stride
        s0 = step[c]
        v0 = splat(s0)
        if c + 3 <= moved:
            f1 = f + classes[c + 1] * stride
            f2 = f + classes[c + 2] * stride
            s1, s2 = step[c + 1], step[c + 2]
            v1, v2 = splat(s1), splat(s2)
            for j in range(whole):
                a = load(row, <int>j)
                store(f0, <int>j, load(f0, <int>j) + a * v0)
                store(f1, <int>j, load(f1, <int>j) + a * v1)
                store(f2, <int>j, load(f2, <int>j) + a * v2)
            for j in range(whole * LANES, count):
                f0[j] += row[j] * s0
                f1[j] += row[j] * s1
                f2[j] += row[j] * s2
            c += 3
        elif c + 2 <= moved:
            f1 = f + classes[c + 1] * stride
            s1 = step[c + 1]
            v1 = splat(s1)
            for j in range(whole):
                a = load(row, <int>j)
                store(f0, <int>j, load(f0, <int>j) + a * v0)
                store(f1, <int>j, load(f1, <int>j) + a * v1)
            for j in range(whole * LANES, count):
                f0[j] += row[j] * s0
                f1[j] += row[j] * s1
            c += 2
        else:
            for j in range(whole):
                store(f0, <int>j, load(f0, <int>j) + load(row, <int>j) * v0)
            for j in range(whole * LANES, count):
                f0[j] += row[j] * s0
            c += 1


cdef inline double visit(Run *run, Py_ssize_t i, double skip) noexcept nogil:
    """Maximise block i and return its gap before the step, times s_i w_i."""
    cdef Family *s = &run.family
    cdef int c, moved = 0, kp = s.kp
    cdef double *f = s.work + 8 * kp
    cdef double *new = s.work + 9 * kp
    cdef double *r = run.r + i * kp
    cdef const double *row = run.kernel + i * run.stride
    cdef double weight = 1.0, cost = 1.0, gap, change
    if run.sample != NULL:
        weight = run.sample[i]
        if weight == 0.0:
            return 0.0
    if run.cost != NULL:
        cost = run.cost[i]
        for c in range(s.k):
            f[c] = run.f[c * run.f_stride + i] / cost
    else:
        for c in range(s.k):
            f[c] = run.f[c * run.f_stride + i]
    for c in range(s.k, kp):
        f[c] = 0.0
    s.hint = run.hint + i
    gap = s.step(s, f, r, run.y[i], weight * row[i] * run.scale / cost, skip, new, NULL, NULL)
    if gap > skip:
        for c in range(s.k):
            change = new[c] - r[c]
            if change != 0.0:
                run.classes[moved] = c
                run.step[moved] = -weight * run.scale * change
                moved += 1
            r[c] = new[c]
        add_row(row, run.m, run.f, run.f_stride, run.classes, run.step, moved)
    return weight * cost * gap


cdef inline double open_gap(const Listed *listed, const double *f, int k, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t *best, Py_ssize_t *worst) noexcept nogil:
    """Return the largest c + r.f of an example's points less their mean, the point that has it, and the point with weight that has the smallest."""
    cdef Py_ssize_t j
    cdef int c
    cdef double value, mean = 0.0
    best[0] = worst[0] = start
    for j in range(start, stop):
        value = listed.offset[j]
        for c in range(k):
            value += listed.r[j * k + c] * f[c]
        listed.value[j - start] = value
        if value > listed.value[best[0] - start]:
            best[0] = j
        if listed.weight[j] > 0.0:
            mean += listed.weight[j] * value
            if not listed.weight[worst[0]] > 0.0 or value < listed.value[worst[0] - start]:
                worst[0] = j
    return listed.value[best[0] - start] - mean


cdef inline double visit_listed(Run *run, Py_ssize_t i, double skip) noexcept nogil:
    """The same among listed points, by moving weight from one to another until most of the gap is gone."""
    cdef const Listed *listed = run.listed
    cdef int c, moved = 0, k = run.family.k, step
    cdef Py_ssize_t best, worst, start = listed.first[i], stop = listed.first[i + 1]
    cdef double *f = run.step + k
    cdef const double *row = run.kernel + i * run.stride
    cdef double weight = run.sample[i], cost = run.cost[i], curvature = weight * row[i] * run.scale / cost, gap, t, apart, square, climb
    if weight == 0.0:
        return 0.0
    for c in range(k):
        f[c] = run.f[c * run.f_stride + i] / cost
    gap = open_gap(listed, f, k, start, stop, &best, &worst)
    if not gap > skip:
        return weight * cost * gap
    for c in range(k):
        run.step[c] = 0.0
    for step in range(PAIRS):
        square = 0.0
        for c in range(k):
            apart = listed.r[best * k + c] - listed.r[worst * k + c]
            square += apart * apart
        climb = listed.value[best - start] - listed.value[worst - start]
        t = listed.weight[worst]
        if curvature * square * t > climb:
            t = climb / (curvature * square)
        listed.weight[best] += t
        listed.weight[worst] -= t
        for c in range(k):
            apart = t * (listed.r[best * k + c] - listed.r[worst * k + c])
            run.step[c] += apart
            f[c] -= curvature * apart
        if open_gap(listed, f, k, start, stop, &best, &worst) <= 0.05 * gap:
            break
    for c in range(k):
        if run.step[c] != 0.0:
            run.classes[moved] = c
            run.step[moved] = -weight * run.scale * run.step[c]
            moved += 1
    add_row(row, run.m, run.f, run.f_stride, run.classes, run.step, moved)
    return weight * cost * gap


cdef double sweep(Run *run, const Py_ssize_t *order, Py_ssize_t count, double skip) noexcept nogil:
    """Visit the listed examples in order and return the sum of their gaps; prefetches the next scores during a visit."""
    cdef Py_ssize_t b, i, j
    cdef double total = 0.0
    cdef int c
    for b in range(count):
        i = order[b]
        if b + 1 < count:
            j = order[b + 1]
            for c in range(run.family.k):
                prefetch(run.f + c * run.f_stride + j)
            if run.listed == NULL:
                prefetch(run.r + j * run.family.kp)
        run.gap[i] = visit(run, i, skip) if run.listed == NULL else visit_listed(run, i, skip)
        total += run.gap[i]
    return total


cdef int ascend(Run *run, double goal, double skip, double max_visits, double turn, double max_seconds, uint64_t *state, double *visits) except -1 nogil:
    """Return 0 when the gaps seen in one pass sum to at most ``goal``, 1 at a limit of visits, 2 at the limit of seconds."""
    cdef Py_ssize_t m = run.m, i, count
    cdef Py_ssize_t *order = <Py_ssize_t *>malloc((m + 1) * sizeof(Py_ssize_t))
    cdef double total, active, aim, level, started = seconds(), signals = started, now
    cdef int inner, code = 1
    if order == NULL:
        with gil:
            raise MemoryError("no memory for the order of the examples")
    try:
        while visits[0] + m <= max_visits:
            for i in range(m):
                order[i] = i
            shuffle(order, m, state)
            total = sweep(run, order, m, skip)
            visits[0] += <double>m
            if total <= goal:
                code = 0
                break
            # shrinking: the examples that carry the gap, until they have lost most of it
            level = 0.02 * total / m
            count = 0
            active = 0.0
            for i in range(m):
                if run.gap[i] > level:
                    order[count] = i
                    count += 1
                    active += run.gap[i]
            aim = 0.3 * active
            if count < 0.9 * m:
                for inner in range(ACTIVE_PASSES):
                    if visits[0] + count > max_visits:
                        break
                    shuffle(order, count, state)
                    total -= active
                    active = sweep(run, order, count, skip)
                    total += active
                    visits[0] += <double>count
                    if active <= aim or total <= goal:
                        break
                if total <= goal:
                    code = 0
                    break
            now = seconds()
            if not visits[0] < turn:
                break
            if not now - started <= max_seconds:
                code = 2
                break
            if now - signals > 0.2:
                signals = now
                with gil:
                    PyErr_CheckSignals()
    finally:
        free(order)
    return code


def solve(int kind, int k, const double[::1] parameters, const double[:, ::1] K, const Py_ssize_t[::1] y, const double[::1] sample_weight,
          const double[::1] cost_weight, double[:, ::1] F, double[:, ::1] R, double scale, double goal, double skip, double max_visits,
          double max_seconds, unsigned long long seed, double turn=INFINITY):
    """Run the ascent in place on F (k, m), class by class, and R (m, kp), padded with zeros, over a symmetric block K (m, m).

    F may hold a part that other rows add to K A. Weights may be empty (all 1); ``scale`` is 1/(lambda n). Stops when the gaps of one pass sum to
    at most ``goal``; blocks with a gap of at most ``skip`` do not move. Returns (code, visits); code 0 = goal reached, 1 = limit of visits, which
    are at most ``max_visits``, or ``turn`` and what a round adds, 2 = limit of seconds.
    """
    cdef Run run
    cdef double visits = 0.0
    cdef Py_ssize_t i, m = K.shape[0]
    cdef int code
    cdef uint64_t state = seed
    demand(m > 0 and K.shape[1] == m and F.shape[0] == k and F.shape[1] == m and R.shape[0] == m and R.shape[1] == checked_width(k),
           "K must be (m, m), F (k, m) and R (m, kp), padded")
    check_labels(y, m, k)
    check_weights(sample_weight, m)
    check_weights(cost_weight, m)
    bind(&run.family, kind, k, parameters)
    run.m = m
    run.kernel = &K[0, 0]
    run.stride = m
    run.f = &F[0, 0]
    run.f_stride = m
    run.r = &R[0, 0]
    run.y = &y[0]
    run.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    run.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    run.scale = scale
    run.listed = NULL
    run.classes = <int *>malloc(k * sizeof(int))
    run.step = <double *>malloc((k + 2 * m) * sizeof(double))
    try:
        if run.classes == NULL or run.step == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        run.hint = run.step + k
        run.gap = run.step + k + m
        with nogil:
            for i in range(m):
                run.hint[i] = -1.0
            code = ascend(&run, goal, skip, max_visits, turn, max_seconds, &state, &visits)
    finally:
        free(run.classes)
        free(run.step)
        family_free(&run.family)
    return code, visits


def solve_listed(const double[:, ::1] K, const Py_ssize_t[::1] first, const double[:, ::1] r, const double[::1] offset, double[::1] weight,
                 const double[::1] sample_weight, const double[::1] cost_weight, double[:, ::1] F, double scale, double goal, double skip,
                 double max_visits, double max_seconds, unsigned long long seed, double turn=INFINITY):
    """The same where the sets are given by listed points: r (points, k) with their offsets, those of row i from first_i to first_(i+1).

    Works in place on F (k, m) and on the points' weights, which must sum to one over each row's; ``first`` has m + 1 numbers.
    """
    cdef Run run
    cdef Listed listed
    cdef double visits = 0.0
    cdef Py_ssize_t i, most = 0, m = K.shape[0], points = r.shape[0]
    cdef int code, k = <int>r.shape[1]
    cdef uint64_t state = seed
    checked_width(k)
    demand(m > 0 and K.shape[1] == m and first.shape[0] == m + 1 and F.shape[0] == k and F.shape[1] == m and first[0] == 0 and first[m] == points,
           "K must be (m, m), first (m + 1,) from 0 to the number of points, and F (k, m)")
    demand(offset.shape[0] == points and weight.shape[0] == points and sample_weight.shape[0] == m and cost_weight.shape[0] == m,
           "every point needs an offset and a weight, every row a sample weight and a cost weight")
    for i in range(m):
        if first[i + 1] <= first[i]:
            raise ValueError("every row needs a point")
        most = max(most, first[i + 1] - first[i])
    run.family.k = k
    run.m = m
    run.kernel = &K[0, 0]
    run.stride = m
    run.f = &F[0, 0]
    run.f_stride = m
    run.sample = &sample_weight[0]
    run.cost = &cost_weight[0]
    run.scale = scale
    listed.first, listed.r, listed.offset, listed.weight = &first[0], &r[0, 0], &offset[0], &weight[0]
    run.listed = &listed
    run.classes = <int *>malloc(k * sizeof(int))
    run.step = <double *>malloc((2 * k + most + m) * sizeof(double))
    try:
        if run.classes == NULL or run.step == NULL:
            raise MemoryError("no memory for the scratch vectors")
        listed.value = run.step + 2 * k
        run.gap = run.step + 2 * k + most
        with nogil:
            code = ascend(&run, goal, skip, max_visits, turn, max_seconds, &state, &visits)
    finally:
        free(run.classes)
        free(run.step)
    return code, visits


def survey(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const Py_ssize_t[::1] y, const double[::1] sample_weight,
           const double[::1] cost_weight, const double[:, ::1] R, double[::1] gap):
    """Write every row's gap s_i w_i (S - c - r.f/w), shape (n,), and return the sums of s_i w_i S, of s_i w_i c and of s_i r.f.

    F (k, n) class by class, R (n, kp) padded with zeros. The last sum is -lambda n |theta|^2 when F = K A(R).
    """
    cdef Family family
    cdef Py_ssize_t i, n = y.shape[0], stride = F.shape[1]
    cdef int c, v
    cdef double value, offset, weight, cost, losses = 0.0, offsets = 0.0, inners = 0.0, answer
    cdef double *f
    cdef double *vertex
    cdef const double *r
    cdef vec inner
    demand(F.shape[0] == k and stride == n and R.shape[0] == n and R.shape[1] == checked_width(k) and gap.shape[0] == n,
           "F must be (k, n), R (n, kp), padded, and gap (n,)")
    check_labels(y, n, k)
    check_weights(sample_weight, n)
    check_weights(cost_weight, n)
    bind(&family, kind, k, parameters)
    with nogil:
        f = family.work + 8 * family.kp
        vertex = family.work + 9 * family.kp
        for i in range(n):
            weight = sample_weight[i] if sample_weight.shape[0] else 1.0
            cost = cost_weight[i] if cost_weight.shape[0] else 1.0
            for c in range(k):
                f[c] = F[c, i] / cost
            for c in range(k, family.kp):
                f[c] = 0.0
            r = &R[i, 0]
            value = family.oracle(&family, f, y[i], vertex, &answer)
            offset = family.offset(&family, r, y[i])
            inner = splat(0.0)
            for v in range(family.kp // LANES):
                inner = inner + load(f, v) * load(r, v)
            gap[i] = weight * cost * (value - offset - vsum(inner))
            losses += weight * cost * value
            offsets += weight * cost * offset
            inners += weight * cost * vsum(inner)
    family_free(&family)
    return losses, offsets, inners


def gather(const double[:, ::1] K, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns, double[:, ::1] out):
    """Copy out[a, b] = K[rows[a], columns[b]]."""
    cdef Py_ssize_t a, b, count = columns.shape[0]
    cdef const double *source
    cdef double *target
    demand(out.shape[0] == rows.shape[0] and out.shape[1] == count, "out must be (rows, columns)")
    check_positions(rows, K.shape[0], "rows")
    check_positions(columns, K.shape[1], "columns")
    with nogil:
        for a in range(rows.shape[0]):
            source = &K[rows[a], 0]
            target = &out[a, 0]
            for b in range(count):
                target[b] = source[columns[b]]


def accumulate(const double[:, ::1] K, const Py_ssize_t[::1] rows, const double[:, ::1] A, double[:, ::1] F):
    """Add sum_a A[a, c] K[rows[a], :] to F[c, :] for every class c; A (rows, k), F (k, n), K (any, n)."""
    cdef Py_ssize_t a, start = 0, count, n = F.shape[1]
    cdef int c, moved, k = <int>F.shape[0]
    cdef int *classes
    cdef double *step
    demand(K.shape[1] == n and A.shape[0] == rows.shape[0] and A.shape[1] == k, "K must be (any, n), A (rows, k) and F (k, n)")
    check_positions(rows, K.shape[0], "rows")
    if n == 0 or k == 0:
        return
    classes = <int *>malloc(k * sizeof(int))
    step = <double *>malloc(k * sizeof(double))
    try:
        if classes == NULL or step == NULL:
            raise MemoryError("no memory for the list of classes")
        with nogil:
            while start < n:
                count = min(<Py_ssize_t>TILE, n - start)
                for a in range(rows.shape[0]):
                    moved = 0
                    for c in range(k):
                        if A[a, c] != 0.0:
                            classes[moved] = c
                            step[moved] = A[a, c]
                            moved += 1
                    if moved:
                        add_row(&K[rows[a], start], count, &F[0, start], n, classes, step, moved)
                start += TILE
    finally:
        free(classes)
        free(step)


def width(int k):
    """Return kp: the number of columns that R has at this instruction set."""
    return checked_width(k)
