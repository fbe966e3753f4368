# One row's block of the dual: its exact step, its part of the certificate.

from adv_simd cimport vec, load, store, vsum, splat, LANES, prefetch
from adv_family cimport Family
from adv_linear cimport Rows, dense_scores, dense_update_scores, row_scores, row_update, prefetch_rows

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
    double *hint              # (n,) see Family.hint; numbers that two threads write lie apart
    int apart                 # between one row's number and the next


cdef inline void prefetch_row(Run *run, Py_ssize_t i) noexcept nogil:
    """Prefetch what the visit of row i will read."""
    cdef Rows *x = &run.rows
    cdef int line
    if x.start == NULL:
        for line in range(0, min(x.d, 128), 8):
            prefetch(x.values + i * x.d + line)
        prefetch(run.r + i * run.family.kp)
    else:
        prefetch_rows(run.theta, run.family.kp, x.columns + x.start[i], x.start[i + 1] - x.start[i])


cdef inline double step_of(Run *run, Py_ssize_t i, double *f, double skip) noexcept nogil:
    """Maximise block i, whose scores are ``f``, all but Theta, and return its gap before the step, not times s_i w_i.

    Where that exceeds ``skip``, the change of r is left in the family's scratch vector 9.
    """
    cdef Family *s = &run.family
    cdef int v, kp = s.kp
    cdef double *new = s.work + 9 * kp
    cdef double *r = run.r + i * kp
    cdef double weight = 1.0 if run.sample == NULL else run.sample[i], cost = 1.0, gap, w
    cdef vec inverse
    if run.cost != NULL:
        cost = run.cost[i]
        inverse = splat(1.0 / cost)
        for v in range(kp // LANES):
            store(f, v, load(f, v) * inverse)
    w = weight * run.square[i] * run.scale
    s.hint = run.hint + i * run.apart
    gap = s.step(s, f, r, run.y[i], w / cost, skip, new, NULL, NULL)
    if gap > skip:
        for v in range(kp // LANES):
            inverse = load(new, v)
            store(new, v, inverse - load(r, v))
            store(r, v, inverse)
    return gap


cdef inline double visit(Run *run, Py_ssize_t i, double skip) noexcept nogil:
    """Maximise block i and return its gap before the step, times s_i w_i."""
    cdef int kp = run.family.kp
    cdef double *f = run.family.work + 8 * kp
    cdef double weight = 1.0 if run.sample == NULL else run.sample[i], gap
    if weight == 0.0:
        return 0.0
    row_scores(&run.rows, i, run.theta, kp, f)
    gap = step_of(run, i, f, skip)
    if gap > skip:
        row_update(&run.rows, i, run.theta, kp, run.family.work + 9 * kp, -weight * run.scale, run.moved)
    return weight * (1.0 if run.cost == NULL else run.cost[i]) * gap


cdef inline void visit_each(Run *run, const Py_ssize_t *list, Py_ssize_t count, double skip, double *gaps, double *total) noexcept nogil:
    """Visit the listed examples in order, and prefetch what the next ones will read; their gaps are added to ``total`` one by one.

    Each gap goes to its place in the list in ``gaps``, or where that is NULL to its example's in ``run.gap``. A dense row's change of Theta and the
    scores of the next row take one loop, with the bits of two: Theta is stored more slowly than it is read and multiplied.
    """
    cdef Py_ssize_t b, i, next
    cdef int d = run.rows.d, kp = run.family.kp
    cdef double *f = run.family.work + 8 * kp
    cdef const double *values = run.rows.values
    cdef bint dense = run.rows.start == NULL
    cdef double weight, gap
    if dense and count > 0:
        dense_scores(values + list[0] * d, d, run.theta, kp, f)
    for b in range(count):
        i = list[b]
        if not dense:
            if b + 1 < count:
                prefetch_row(run, list[b + 1])
            gap = visit(run, i, skip)
        else:
            next = list[b + 1] if b + 1 < count else i
            if b + 2 < count:
                prefetch_row(run, list[b + 2])
            weight = 1.0 if run.sample == NULL else run.sample[i]
            gap = step_of(run, i, f, skip) if weight != 0.0 else 0.0
            if weight != 0.0 and gap > skip:
                dense_update_scores(values + i * d, d, run.theta, kp, run.family.work + 9 * kp, -weight * run.scale, values + next * d, f)
            else:
                dense_scores(values + next * d, d, run.theta, kp, f)
            gap = weight * (1.0 if run.cost == NULL else run.cost[i]) * gap
        if gaps != NULL:
            gaps[b] = gap
        else:
            run.gap[i] = gap
        total[0] += gap


cdef inline void judge_rows(Run *run, Py_ssize_t first, Py_ssize_t last, double *loss, double *offsets) noexcept nogil:
    """Add weighted losses and offsets of rows first..last - 1 at the present Theta and r; moves nothing, and refreshes their gaps."""
    cdef Family *s = &run.family
    cdef int v, kp = s.kp
    cdef Py_ssize_t i
    cdef double *f = s.work + 8 * kp
    cdef double *vertex = s.work + 9 * kp
    cdef double value, c, best, weight, cost, inner
    cdef vec a
    for i in range(first, last):
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
        loss[0] += weight * cost * value
        offsets[0] += weight * cost * best


cdef inline void values_of(Run *run, double lam, double loss, double offsets, double *primal, double *dual) noexcept nogil:
    """Primal and dual value from the sums over all rows."""
    cdef double square = 0.0
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>run.rows.d * run.family.kp):
        square += run.theta[i] * run.theta[i]
    primal[0] = 0.5 * lam * square + loss / run.mass
    dual[0] = offsets / run.mass - 0.5 * lam * square
