"""Dual block-coordinate ascent on rows that are read in blocks: the visits of `_ext/dual.pyx`, with nothing of X copied as a whole.

A batch of blocks is read at a time, blocks in random order: rows are standardised into scratch memory that stays in cache, in double
precision, dual numbers are unpacked beside them, and the batch's rows are visited in random order. Blocks keep neighbours together for the
sake of reading; a batch takes its blocks from everywhere, so that rows which are sorted by label do not come label by label.
Shrinking is that of `_ext/dual.pyx`: passes over the rows with a large gap read those alone.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, malloc, free
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from cpython.exc cimport PyErr_CheckSignals

from adv_simd cimport zeros
from adv_bind cimport family_free
from adv_blocks cimport MOST_LABELS, Label, Stored, Supports, deflate, first_row, inflate, load_row, rows_in
from adv_check cimport check_list, check_weights, demand
from adv_loop cimport bind, checked_width, gap_scale, seconds, shuffle
from adv_visit cimport ACTIVE_PASSES, Run, judge_rows, values_of, visit_each

cdef extern from "limits.h":
    int INT_MAX

cdef enum:
    TOGETHER = 64   # visits whose gaps are held until they are added up


cdef class Store:
    """A dual point of n rows and k classes by its supports, in blocks of ``rows`` rows; r = 0 to begin with."""
    cdef Supports supports
    cdef Py_ssize_t n_blocks

    def __cinit__(self, Py_ssize_t n, int k, Py_ssize_t rows):
        demand(n >= 1 and rows >= 1 and 1 <= k <= MOST_LABELS, f"a dual point has rows, and 1 to {MOST_LABELS} classes")
        self.n_blocks = (n - 1) // rows + 1
        self.supports.n, self.supports.k, self.supports.rows = n, k, rows
        self.supports.counts = <Label *>calloc(n, sizeof(Label))
        self.supports.entries = <double **>calloc(self.n_blocks, sizeof(double *))
        self.supports.sizes = <Py_ssize_t *>calloc(self.n_blocks, sizeof(Py_ssize_t))
        if self.supports.counts == NULL or self.supports.entries == NULL or self.supports.sizes == NULL:
            raise MemoryError("no memory for a dual point")

    def __dealloc__(self):
        cdef Py_ssize_t b
        if self.supports.entries != NULL:
            for b in range(self.n_blocks):
                free(self.supports.entries[b])
        free(self.supports.counts)
        free(self.supports.entries)
        free(self.supports.sizes)

    @property
    def nbytes(self):
        """Bytes that the numbers, their labels and the counts take."""
        cdef Py_ssize_t b, entries = 0
        for b in range(self.n_blocks):
            entries += self.supports.sizes[b]
        return (entries * (sizeof(double) + sizeof(Label)) + self.supports.n * sizeof(Label)
                + self.n_blocks * (sizeof(double *) + sizeof(Py_ssize_t)))

    def _check(self, Py_ssize_t block, const int[::1] y, shape):
        demand(0 <= block < self.n_blocks, "no such block")
        demand(y.shape[0] == self.supports.n and shape == (rows_in(&self.supports, block), self.supports.k), "a block is (its rows, k)")
        cdef Py_ssize_t first = first_row(&self.supports, block), last = first + rows_in(&self.supports, block)
        check_list(y[first:last], self.supports.k, "labels")

    def read(self, Py_ssize_t block, const int[::1] y, double[:, ::1] out):
        """Write the dual numbers of a block to ``out`` (its rows, k); y (n) are the labels of all rows."""
        self._check(block, y, (out.shape[0], out.shape[1]))
        inflate(&self.supports, block, &y[0], &out[0, 0], self.supports.k)

    def write(self, Py_ssize_t block, const int[::1] y, const double[:, ::1] r):
        """Keep the dual numbers of a block; their rows sum to zero."""
        self._check(block, y, (r.shape[0], r.shape[1]))
        if deflate(&self.supports, block, &y[0], &r[0, 0], self.supports.k):
            raise MemoryError("no memory for a dual point")


cdef struct Batch:
    Stored *stored
    Supports *supports
    const int *y              # (n) labels of all rows, and their weights and gaps
    const double *sample
    const double *cost
    float *gap
    Py_ssize_t most           # blocks of a batch
    Py_ssize_t *blocks        # (most) those that are read
    Py_ssize_t count          # how many
    Py_ssize_t size           # rows of theirs
    Py_ssize_t listed         # rows of `order`
    double *x                 # (rows, d) scratch, and what else a `Run` takes
    double *r
    double *square
    double *samples
    double *costs
    double *gaps
    double *hints
    Py_ssize_t *labels
    Py_ssize_t *order         # rows of the batch that are to be visited


cdef void fill(Batch *b, int d, int kp, double level, bint read) noexcept nogil:
    """Unpack the batch's blocks, and list and read those of their rows whose gap exceeds ``level``; all rows where that is negative."""
    cdef Py_ssize_t s, i, first, base = 0, count
    b.listed = 0
    for s in range(b.count):
        first = first_row(b.supports, b.blocks[s])
        count = rows_in(b.supports, b.blocks[s])
        inflate(b.supports, b.blocks[s], b.y, b.r + base * kp, kp)
        for i in range(count):
            b.gaps[base + i] = b.gap[first + i]
            if level >= 0.0 and not b.gap[first + i] > level:
                continue
            b.order[b.listed] = base + i
            b.listed += 1
            if read:
                b.square[base + i] = load_row(b.stored, first + i, b.x + (base + i) * d)
            b.labels[base + i] = b.y[first + i]
            if b.sample != NULL:
                b.samples[base + i] = b.sample[first + i]
            if b.cost != NULL:
                b.costs[base + i] = b.cost[first + i]
            b.hints[base + i] = -1.0
        base += count
    b.size = base


cdef int keep(Batch *b, int kp, bint moved) noexcept nogil:
    """Keep the gaps of the batch's rows and, where they ``moved``, their dual numbers; -1 when memory is short."""
    cdef Py_ssize_t s, i, first, base = 0
    cdef int code = 0
    for s in range(b.count):
        first = first_row(b.supports, b.blocks[s])
        for i in range(rows_in(b.supports, b.blocks[s])):
            b.gap[first + i] = <float>b.gaps[base + i]
        if moved and deflate(b.supports, b.blocks[s], b.y, b.r + base * kp, kp):
            code = -1
        base += rows_in(b.supports, b.blocks[s])
    return code


cdef bint stop_now(double *signals, double until) except -1 nogil:
    """Let Python see signals now and then; return whether the time is up."""
    cdef double now = seconds()
    if now - signals[0] > 0.2:
        signals[0] = now
        with gil:
            PyErr_CheckSignals()
    return now > until


cdef int certify(Run *run, Batch *b, Py_ssize_t n_blocks, bint read, double lam, double *signals, double *primal, double *dual) except -1 nogil:
    """Primal and dual value at the present Theta and r: one pass that moves nothing, and refreshes the gaps."""
    cdef double loss = 0.0, offsets = 0.0
    cdef Py_ssize_t block = 0
    while block < n_blocks:
        b.count = 0
        while b.count < b.most and block < n_blocks:
            b.blocks[b.count] = block
            b.count += 1
            block += 1
        fill(b, run.rows.d, run.family.kp, -1.0, read)
        judge_rows(run, 0, b.size, &loss, &offsets)
        keep(b, run.family.kp, False)
        stop_now(signals, INFINITY)
    values_of(run, lam, loss, offsets, primal, dual)
    return 0


cdef bint has_active(const Batch *b, Py_ssize_t block, double level) noexcept nogil:
    cdef Py_ssize_t i, first = first_row(b.supports, block)
    for i in range(first, first + rows_in(b.supports, block)):
        if b.gap[i] > level:
            return True
    return False


cdef int sweep(Run *run, Batch *b, Py_ssize_t *order, Py_ssize_t n_blocks, double level, double skip, uint64_t *state, double *signals,
               double until, Py_ssize_t *visits, double *change) except -2 nogil:
    """Visit the rows whose gap exceeds ``level``, batch by batch; 1 when the time was up before the end, -1 when memory is short.

    ``change`` receives by how much the gaps that were found exceed those of the visits before.
    """
    cdef Py_ssize_t block = 0, e, i, j, count
    cdef double gaps[TOGETHER]
    cdef double total = 0.0
    shuffle(order, n_blocks, state)
    change[0] = 0.0
    while block < n_blocks:
        b.count = 0
        while b.count < b.most and block < n_blocks:
            if level < 0.0 or has_active(b, order[block], level):
                b.blocks[b.count] = order[block]
                b.count += 1
            block += 1
        fill(b, run.rows.d, run.family.kp, level, True)
        shuffle(b.order, b.listed, state)
        e = 0
        while e < b.listed:
            count = min(<Py_ssize_t>TOGETHER, b.listed - e)
            visit_each(run, b.order + e, count, skip, gaps, &total)
            for j in range(count):
                i = b.order[e + j]
                change[0] -= run.gap[i]
                run.gap[i] = gaps[j]
                change[0] += gaps[j]
            e += count
        visits[0] += b.listed
        if keep(b, run.family.kp, True):
            return -1
        if stop_now(signals, until):
            return 1
    return 0


cdef int ascend(Run *run, Batch *b, bint empty, double lam, double tol, double max_passes, double turn, double max_seconds, uint64_t seed,
                double *passes, double *primal, double *dual) except -2 nogil:
    """Return 0 when the relative gap reached ``tol``, 1 at a limit of passes, 2 at the limit of seconds, -1 when memory is short.

    As `ascend` of `_ext/dual.pyx`; at the limit of seconds a pass ends between two batches. ``empty``: Theta = 0, whose scores need no X.
    """
    cdef Py_ssize_t n = run.rows.n, i, m, visits = n
    cdef Py_ssize_t n_blocks = (n - 1) // b.supports.rows + 1
    cdef Py_ssize_t *order = <Py_ssize_t *>malloc(n_blocks * sizeof(Py_ssize_t))
    cdef double total, change, active_total, goal, level, skip, next_check = 2.0, started = seconds(), signals = started, most = max_passes * n
    cdef double until = started + max_seconds
    cdef int inner, code = 1, late = 0
    cdef uint64_t state = seed
    if order == NULL:
        return -1
    try:
        for i in range(n_blocks):
            order[i] = i
        certify(run, b, n_blocks, not empty, lam, &signals, primal, dual)
        passes[0] = 1.0
        while True:
            if primal[0] - dual[0] <= tol * gap_scale(primal[0], dual[0]):
                return 0
            if not passes[0] < turn or visits + 2.0 * n > most:
                return 1
            if late or not seconds() - started <= max_seconds:
                return 2
            skip = 1e-3 * tol * gap_scale(primal[0], dual[0])
            late = sweep(run, b, order, n_blocks, -1.0, skip, &state, &signals, until, &visits, &change)
            if late < 0:
                return -1
            total = 0.0
            for i in range(n):
                total += b.gap[i]
            level = 0.02 * total / n
            m = 0
            active_total = 0.0
            for i in range(n):
                if b.gap[i] > level:
                    m += 1
                    active_total += b.gap[i]
            goal = 0.3 * active_total
            if m < 0.9 * n and not late:
                for inner in range(ACTIVE_PASSES):
                    if <double>visits + m + n > most or late:
                        break
                    late = sweep(run, b, order, n_blocks, level, skip, &state, &signals, until, &visits, &change)
                    if late < 0:
                        return -1
                    total += change
                    active_total += change
                    if active_total <= goal:
                        break
            passes[0] = <double>visits / n
            if (total / run.mass <= 1.2 * tol * gap_scale(primal[0], dual[0]) or passes[0] >= next_check or passes[0] >= turn
                    or visits + 2.0 * n > most or late):
                certify(run, b, n_blocks, True, lam, &signals, primal, dual)
                visits += n
                passes[0] = <double>visits / n
                next_check = 1.5 * passes[0] + 2.0
    finally:
        free(order)
    return code


def solve(int kind, int k, const double[::1] parameters, const float[::1] single, const double[::1] whole, const long long[::1] at,
          Py_ssize_t n, int own, bint constant, const double[::1] mean, const double[::1] inverse, const double[::1] shift, const int[::1] y,
          const double[::1] sample_weight, const double[::1] cost_weight, Store store not None, double[:, ::1] theta, float[::1] gap, double lam,
          double mass, double tol, double max_passes, double max_seconds, unsigned long long seed, Py_ssize_t together, double turn=INFINITY):
    """Run the ascent in place on the dual point of ``store`` and theta (d, kp), which is padded with zeros and Theta(R) on entry.

    The rows are those of ``single`` or ``whole``, of which the other is empty: all of them in their order, or those that ``at`` (n)
    names. A number x of column j stands for (x - mean_j) inverse_j + shift_j; ``constant`` appends a column of ones. Weights may be empty
    (all 1). A batch has ``together`` rows, and one block at least. ``gap`` (n) is scratch. Returns (code, passes, primal, dual) as `solve` of
    `_ext/dual.pyx`.
    """
    cdef Run run
    cdef Batch batch
    cdef Stored stored
    cdef double passes = 0.0, primal = 0.0, dual = 0.0
    cdef Py_ssize_t i, j, most, there
    cdef int code, kp = checked_width(k)
    cdef bint empty = True
    demand(n >= 1 and 1 <= own < INT_MAX, "no rows, or no columns")
    demand((single.shape[0] == 0) != (whole.shape[0] == 0), "rows are single or double numbers")
    there = single.shape[0] + whole.shape[0]
    demand(there % own == 0 and (at.shape[0] != 0 or there // own == n), f"rows must be {n} x {own} numbers, got {there}")
    demand(at.shape[0] == 0 or at.shape[0] == n, f"rows must be listed one by one, {n} of them")
    for i in range(at.shape[0]):
        demand(0 <= at[i] < there // own, "rows that are listed must be there")
    demand(mean.shape[0] == own and inverse.shape[0] == own and shift.shape[0] == own, "every column has a mean, a factor and a shift")
    demand(y.shape[0] == n and store.supports.n == n and store.supports.k == k, "labels and the dual point are of all rows")
    check_list(y, k, "labels")
    check_weights(sample_weight, n)
    check_weights(cost_weight, n)
    stored.d = own + constant
    demand(theta.shape[0] == stored.d and theta.shape[1] == kp and gap.shape[0] == n, "theta must be (d, kp), padded, and gap (n)")
    demand(together >= 1, "a batch has a row at least")
    stored.n, stored.own = n, own
    stored.single = &single[0] if single.shape[0] else NULL
    stored.whole = &whole[0] if whole.shape[0] else NULL
    stored.at = &at[0] if at.shape[0] else NULL
    stored.mean, stored.inverse, stored.shift = &mean[0], &inverse[0], &shift[0]
    batch.stored, batch.supports = &stored, &store.supports
    batch.y = &y[0]
    batch.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    batch.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    batch.gap = &gap[0]
    batch.most = max(1, min(together // store.supports.rows, store.n_blocks))
    most = min(batch.most * store.supports.rows, n)
    for i in range(theta.shape[0]):
        for j in range(kp):
            empty = empty and theta[i, j] == 0.0
    bind(&run.family, kind, k, parameters)
    batch.blocks = <Py_ssize_t *>malloc(batch.most * sizeof(Py_ssize_t))
    batch.order = <Py_ssize_t *>malloc(2 * most * sizeof(Py_ssize_t))
    batch.x = zeros(<size_t>most * stored.d)
    batch.r = zeros(<size_t>most * kp)
    batch.square = zeros(5 * most)
    run.moved = <int *>malloc(kp * sizeof(int))
    try:
        if (batch.blocks == NULL or batch.order == NULL or batch.x == NULL or batch.r == NULL or batch.square == NULL or run.moved == NULL):
            raise MemoryError("no memory for a batch of rows")
        batch.labels = batch.order + most
        batch.samples, batch.costs = batch.square + most, batch.square + 2 * most
        batch.gaps, batch.hints = batch.square + 3 * most, batch.square + 4 * most
        run.rows.n, run.rows.d, run.rows.values, run.rows.columns, run.rows.start = n, stored.d, batch.x, NULL, NULL
        run.y = batch.labels
        run.square = batch.square
        run.sample = batch.samples if batch.sample != NULL else NULL
        run.cost = batch.costs if batch.cost != NULL else NULL
        run.r, run.theta, run.gap = batch.r, &theta[0, 0], batch.gaps
        run.mass, run.scale = mass, 1.0 / (lam * mass)
        run.hint, run.apart = batch.hints, 1
        with nogil:
            code = ascend(&run, &batch, empty, lam, tol, max_passes, turn, max_seconds, seed, &passes, &primal, &dual)
        if code == -1:
            raise MemoryError("no memory for the dual point")
    finally:
        free(batch.blocks)
        free(batch.order)
        free(batch.x)
        free(batch.r)
        free(batch.square)
        free(run.moved)
        family_free(&run.family)
    return code, passes, primal, dual


def width(int k):
    """Return kp: the number of columns that theta has at this instruction set."""
    return checked_width(k)
