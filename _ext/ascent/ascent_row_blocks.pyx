"""Dual block-coordinate ascent on rows that are read in blocks: the visits of `_ext/ascent/ascent_dense.pyx`, with nothing of X copied as a whole.

A batch of blocks is read at a time, blocks in random order: rows are standardised into scratch memory that stays in cache, in double
precision, dual numbers are unpacked beside them, and the batch's rows are visited in random order. Blocks keep neighbours together for the
sake of reading; a batch takes its blocks from everywhere, so that rows which are sorted by label do not come label by label.
Shrinking is that of `_ext/ascent/ascent_dense.pyx`: passes over the rows with a large gap read those alone.

Several threads each take a part of the blocks, dealt anew in every pass, into a batch of their own, and visit in the rounds of `adv_rounds.pxd`.
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
from adv_rounds cimport CELLS, MOST_THREADS, Member, Rounds, add_up, combine, copies_free, copies_new, cut, enter, work_together
from adv_team cimport leave, wait_for_all
from adv_visit cimport ACTIVE_PASSES, Run, Term, judge_rows, terms_new, values_of, visit_each

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
    Term *terms
    double *samples
    double *costs
    Py_ssize_t *order         # rows of the batch that are to be visited


cdef int batch_new(Batch *b, Run *run, Py_ssize_t most, int kp) noexcept nogil:
    """Make room for a batch of at most ``most`` rows, and let the run visit them; -1 when memory is short. Release with `batch_free`, in either case."""
    b.blocks = <Py_ssize_t *>malloc(b.most * sizeof(Py_ssize_t))
    b.order = <Py_ssize_t *>malloc(most * sizeof(Py_ssize_t))
    b.x = zeros(<size_t>most * b.stored.d)
    b.r = zeros(<size_t>most * kp)
    b.terms = terms_new(most)
    b.samples = zeros(2 * most)
    run.moved = <int *>malloc(kp * sizeof(int))
    if b.blocks == NULL or b.order == NULL or b.x == NULL or b.r == NULL or b.terms == NULL or b.samples == NULL or run.moved == NULL:
        return -1
    b.costs = b.samples + most
    run.rows.n, run.rows.d, run.rows.values, run.rows.columns, run.rows.start = b.stored.n, b.stored.d, b.x, NULL, NULL
    run.sample = b.samples if b.sample != NULL else NULL
    run.cost = b.costs if b.cost != NULL else NULL
    run.r, run.term, run.apart = b.r, b.terms, 1
    return 0


cdef void batch_free(Batch *b, Run *run) noexcept nogil:
    free(b.blocks)
    free(b.order)
    free(b.x)
    free(b.r)
    free(b.terms)
    free(b.samples)
    free(run.moved)


cdef void fill(Batch *b, int d, int kp, double level, bint read) noexcept nogil:
    """Unpack the batch's blocks, and list and read those of their rows whose gap exceeds ``level``; all rows where that is negative."""
    cdef Py_ssize_t s, i, first, base = 0, count
    b.listed = 0
    for s in range(b.count):
        first = first_row(b.supports, b.blocks[s])
        count = rows_in(b.supports, b.blocks[s])
        inflate(b.supports, b.blocks[s], b.y, b.r + base * kp, kp)
        for i in range(count):
            b.terms[base + i].gap = b.gap[first + i]
            if level >= 0.0 and not b.gap[first + i] > level:
                continue
            b.order[b.listed] = base + i
            b.listed += 1
            if read:
                b.terms[base + i].square = load_row(b.stored, first + i, b.x + (base + i) * d)
            b.terms[base + i].label = b.y[first + i]
            if b.sample != NULL:
                b.samples[base + i] = b.sample[first + i]
            if b.cost != NULL:
                b.costs[base + i] = b.cost[first + i]
            b.terms[base + i].hint = -1.0
        base += count
    b.size = base


cdef int keep(Batch *b, int kp, bint moved) noexcept nogil:
    """Keep the gaps of the batch's rows and, where they ``moved``, their dual numbers; -1 when memory is short."""
    cdef Py_ssize_t s, i, first, base = 0
    cdef int code = 0
    for s in range(b.count):
        first = first_row(b.supports, b.blocks[s])
        for i in range(rows_in(b.supports, b.blocks[s])):
            b.gap[first + i] = <float>b.terms[base + i].gap
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


cdef int judge_blocks(Run *run, Batch *b, Py_ssize_t block, Py_ssize_t last, bint read, double *signals, double *loss, double *offsets) except -1 nogil:
    """Add what blocks block..last - 1 have of the sums of S and c, and refresh their gaps; without ``signals``, Python's are left alone."""
    while block < last:
        b.count = 0
        while b.count < b.most and block < last:
            b.blocks[b.count] = block
            b.count += 1
            block += 1
        fill(b, run.rows.d, run.family.kp, -1.0, read)
        judge_rows(run, 0, b.size, loss, offsets)
        keep(b, run.family.kp, False)
        if signals != NULL:
            stop_now(signals, INFINITY)
    return 0


cdef int certify(Run *run, Batch *b, Py_ssize_t n_blocks, bint read, double lam, double *signals, double *primal, double *dual) except -1 nogil:
    """Primal and dual value at the present Theta and r: one pass that moves nothing, and refreshes the gaps."""
    cdef double loss = 0.0, offsets = 0.0
    judge_blocks(run, b, 0, n_blocks, read, signals, &loss, &offsets)
    values_of(run, lam, loss, offsets, primal, dual)
    return 0


cdef bint has_active(const Batch *b, Py_ssize_t block, double level) noexcept nogil:
    cdef Py_ssize_t i, first = first_row(b.supports, block)
    for i in range(first, first + rows_in(b.supports, block)):
        if b.gap[i] > level:
            return True
    return False


cdef void visit_some(Run *run, Batch *b, Py_ssize_t e, Py_ssize_t last, double skip, double *change) noexcept nogil:
    """Visit rows e..last - 1 of the batch's list, and add to ``change`` by how much their gaps exceed those of the visits before."""
    cdef Py_ssize_t i, j, count
    cdef double gaps[TOGETHER]
    cdef double total = 0.0
    while e < last:
        count = min(<Py_ssize_t>TOGETHER, last - e)
        visit_each(run, b.order + e, count, last - e, skip, gaps, &total)
        for j in range(count):
            i = b.order[e + j]
            change[0] -= run.term[i].gap
            run.term[i].gap = gaps[j]
            change[0] += gaps[j]
        e += count


cdef int sweep(Run *run, Batch *b, Py_ssize_t *order, Py_ssize_t n_blocks, double level, double skip, uint64_t *state, double *signals,
               double until, Py_ssize_t *visits, double *change) except -2 nogil:
    """Visit the rows whose gap exceeds ``level``, batch by batch; 1 when the time was up before the end, -1 when memory is short.

    ``change`` receives by how much the gaps that were found exceed those of the visits before.
    """
    cdef Py_ssize_t block = 0
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
        visit_some(run, b, 0, b.listed, skip, change)
        visits[0] += b.listed
        if keep(b, run.family.kp, True):
            return -1
        if stop_now(signals, until):
            return 1
    return 0


cdef int ascend(Run *run, Batch *b, bint empty, double lam, double tol, double max_passes, double turn, double max_seconds, uint64_t seed,
                double *passes, double *primal, double *dual) except -2 nogil:
    """Return 0 when the relative gap reached ``tol``, 1 at a limit of passes, 2 at the limit of seconds, -1 when memory is short.

    As `ascend` of `_ext/ascent/ascent_dense.pyx`; at the limit of seconds a pass ends between two batches. ``empty``: Theta = 0, whose scores need no X.
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


cdef struct Part:
    # one thread's part of an ascent
    Member member
    Run run
    Batch batch
    Py_ssize_t n_blocks
    Py_ssize_t *order     # (n_blocks) blocks as a pass takes them, the same for all threads
    uint64_t common       # random bits that shuffle them, the same for all threads
    bint *late            # (2) whether the time is up, for the rounds in turn: no thread writes what another has yet to read
    Py_ssize_t next       # blocks of `order` that are the thread's and not yet read
    Py_ssize_t last


cdef void refill(Part *p, double level) noexcept nogil:
    """Read the thread's next batch with rows to visit, and list them; none where its blocks have no more."""
    cdef Batch *b = &p.batch
    b.listed = 0
    while b.listed == 0 and p.next < p.last:
        b.count = 0
        while b.count < b.most and p.next < p.last:
            if level < 0.0 or has_active(b, p.order[p.next], level):
                b.blocks[b.count] = p.order[p.next]
                b.count += 1
            p.next += 1
        fill(b, p.run.rows.d, p.run.family.kp, level, True)
    shuffle(b.order, b.listed, &p.member.state)


cdef int sweep_together(Part *p, double level, double skip, double until, double *signals, double *sums) except -2 nogil:
    """Do what `sweep` does, in rounds: 1 when the time was up, 3 where another thread has left, -1 when memory is short.

    All threads read a batch at the same time, which may take longer than the rounds of its visits. sums[0] and sums[1] receive the visits of all threads,
    and by how much the gaps that they found exceed those of the visits before.
    """
    cdef Member *m = &p.member
    cdef Rounds *team = m.team
    cdef Batch *b = &p.batch
    cdef double rows
    cdef Py_ssize_t longest, first
    cdef int u, turn, late = 0
    shuffle(p.order, p.n_blocks, &p.common)
    p.next, p.last = cut(p.n_blocks, team.size, m.t), cut(p.n_blocks, team.size, m.t + 1)
    sums[0] = sums[1] = 0.0
    while not late:
        refill(p, level)
        rows = <double>b.listed
        if add_up(m, &rows, 1):
            return 3
        if rows == 0.0:
            break
        longest = first = 0
        for u in range(team.size):
            longest = max(longest, <Py_ssize_t>team.cells[((m.cell ^ 1) * team.size + u) * CELLS])
        while first < longest and not late:
            p.run.theta = team.moved + (m.turn * team.size + m.t) * team.length
            memcpy(p.run.theta, team.theta + m.t * team.length, team.length * sizeof(double))
            p.run.scale = m.sigma * m.scale
            visit_some(&p.run, b, min(first, b.listed), min(first + team.together, b.listed), skip, sums + 1)
            turn = m.turn
            if m.t == 0:
                p.late[turn] = stop_now(signals, until)
            if wait_for_all(&team.barrier, team.size):
                return 3
            combine(m)
            late = p.late[turn]
            first += team.together
        sums[0] += <double>min(first, b.listed)
        if b.listed and keep(b, p.run.family.kp, True):
            return -1
    return 3 if add_up(m, sums, 2) else late


cdef int judge_together(Part *p, bint read, double lam, double until, double *signals, double *primal, double *dual, int *late) except -2 nogil:
    """Primal and dual value: every thread judges its part of the rows. ``late`` receives whether the time is up."""
    cdef Member *m = &p.member
    cdef double sums[3]
    sums[0] = sums[1] = 0.0
    p.run.theta = m.team.theta + m.t * m.team.length
    judge_blocks(&p.run, &p.batch, cut(p.n_blocks, m.team.size, m.t), cut(p.n_blocks, m.team.size, m.t + 1), read, signals if m.t == 0 else NULL,
                 &sums[0], &sums[1])
    sums[2] = 1.0 if m.t == 0 and not seconds() <= until else 0.0
    if add_up(m, sums, 3):
        return 3
    values_of(&p.run, lam, sums[0], sums[1], primal, dual)
    late[0] = sums[2] > 0.0
    return 0


cdef int ascend_in_parts(Part *p, bint empty, double lam, double tol, double max_passes, double turn, double max_seconds, double *passes,
                         double *primal, double *dual) except -2 nogil:
    """Return what `ascend` returns, on every thread; 3 where another thread has left."""
    cdef Member *m = &p.member
    cdef const float *gap = p.batch.gap
    cdef Py_ssize_t n = p.run.rows.n, rows = p.batch.supports.rows, i
    cdef Py_ssize_t first = cut(p.n_blocks, m.team.size, m.t) * rows, last = min(cut(p.n_blocks, m.team.size, m.t + 1) * rows, n)
    cdef double total, goal, level, skip, next_check = 2.0, started = seconds(), signals = started, most = max_passes * n, visits = <double>n
    cdef double until = started + max_seconds if max_seconds >= 0.0 else -INFINITY
    cdef double sums[2]
    cdef double active[2]
    cdef int inner, code, late = 0
    code = judge_together(p, not empty, lam, until, &signals, primal, dual, &late)
    if code:
        return code
    passes[0] = 1.0
    while True:
        if primal[0] - dual[0] <= tol * gap_scale(primal[0], dual[0]):
            return 0
        if not passes[0] < turn or visits + 2.0 * n > most:
            return 1
        if late:
            return 2
        skip = 1e-3 * tol * gap_scale(primal[0], dual[0])
        late = sweep_together(p, -1.0, skip, until, &signals, sums)
        if late == 3 or late < 0:
            return late
        visits += sums[0]
        total = 0.0
        for i in range(first, last):
            total += gap[i]
        if add_up(m, &total, 1):
            return 3
        # shrinking, as in one thread: rows that carry the gap, until they have lost most of it
        level = 0.02 * total / n
        active[0] = active[1] = 0.0
        for i in range(first, last):
            if gap[i] > level:
                active[0] += 1.0
                active[1] += gap[i]
        if add_up(m, active, 2):
            return 3
        goal = 0.3 * active[1]
        if active[0] < 0.9 * n:
            for inner in range(ACTIVE_PASSES):
                if visits + active[0] + n > most or late:
                    break
                late = sweep_together(p, level, skip, until, &signals, sums)
                if late == 3 or late < 0:
                    return late
                visits += sums[0]
                total += sums[1]
                active[1] += sums[1]
                if active[1] <= goal:
                    break
        passes[0] = visits / n
        if (total / p.run.mass <= 1.2 * tol * gap_scale(primal[0], dual[0]) or passes[0] >= next_check or passes[0] >= turn
                or visits + 2.0 * n > most or late):
            code = judge_together(p, True, lam, until, &signals, primal, dual, &late)
            if code:
                return code
            visits += n
            passes[0] = visits / n
            next_check = 1.5 * passes[0] + 2.0


cdef class Team:
    """The threads of one ascent; `work` is one thread's part."""
    cdef Rounds rounds
    cdef Part *parts
    cdef bint late[2]
    cdef bint empty
    cdef double lam, tol, max_passes, turn, max_seconds
    cdef double *answers      # (K, 3) passes, primal and dual value
    cdef int *codes           # (K)

    def work(self, int t):
        """Take part as thread t to the end; return its code."""
        demand(self.parts != NULL and 0 <= t < self.rounds.size, "a team has threads of its own")
        cdef double *answer = self.answers + 3 * t
        try:
            with nogil:
                self.codes[t] = ascend_in_parts(self.parts + t, self.empty, self.lam, self.tol, self.max_passes, self.turn, self.max_seconds,
                                                answer, answer + 1, answer + 2)
                if self.codes[t] == -1:
                    leave(&self.rounds.barrier)
        except BaseException:
            leave(&self.rounds.barrier)
            raise
        return self.codes[t]

    def __dealloc__(self):
        cdef int t
        if self.parts != NULL:
            for t in range(self.rounds.size):
                family_free(&self.parts[t].run.family)
                batch_free(&self.parts[t].batch, &self.parts[t].run)
                free(self.parts[t].order)
        free(self.parts)
        free(self.answers)
        free(self.codes)
        copies_free(&self.rounds)


cdef Team gather(Run *run, Batch *batch, int kind, int k, const double[::1] parameters, uint64_t seed, Py_ssize_t most, int kp, int threads, int together):
    """Return a team whose threads share the rows of ``batch`` and begin at Theta of ``run``; each has a batch of at most ``most`` rows."""
    cdef Team team = Team.__new__(Team)
    cdef size_t size = <size_t>batch.stored.d * kp
    cdef Py_ssize_t i, n_blocks = (batch.stored.n - 1) // batch.supports.rows + 1
    cdef uint64_t common = seed
    cdef int t, failed = copies_new(&team.rounds, threads, together, size)
    cdef Part *p
    team.parts = <Part *>calloc(threads, sizeof(Part))
    team.answers = <double *>calloc(3 * threads, sizeof(double))
    team.codes = <int *>calloc(threads, sizeof(int))
    if failed or team.parts == NULL or team.answers == NULL or team.codes == NULL:
        raise MemoryError("no memory for the threads' copies of theta")
    for t in range(threads):
        p = team.parts + t
        bind(&p.run.family, kind, k, parameters)
        p.run.mass, p.run.scale = run.mass, run.scale
        p.batch.stored, p.batch.supports, p.batch.y, p.batch.sample, p.batch.cost = batch.stored, batch.supports, batch.y, batch.sample, batch.cost
        p.batch.gap, p.batch.most = batch.gap, batch.most
        p.n_blocks, p.common, p.late = n_blocks, common, team.late
        p.order = <Py_ssize_t *>malloc(n_blocks * sizeof(Py_ssize_t))
        if batch_new(&p.batch, &p.run, most, kp) or p.order == NULL:
            raise MemoryError("no memory for a batch of rows")
        for i in range(n_blocks):
            p.order[i] = i
        enter(&p.member, &team.rounds, &p.run, t, run.theta, size, &seed)
    return team


def solve(int kind, int k, const double[::1] parameters, const float[::1] single, const double[::1] whole, const long long[::1] at,
          Py_ssize_t n, int own, bint constant, const double[::1] mean, const double[::1] inverse, const double[::1] shift, const int[::1] y,
          const double[::1] sample_weight, const double[::1] cost_weight, Store store not None, double[:, ::1] theta, float[::1] gap, double lam,
          double mass, double tol, double max_passes, double max_seconds, unsigned long long seed, Py_ssize_t together, double turn=INFINITY,
          int threads=1, int visits=512):
    """Run the ascent in place on the dual point of ``store`` and theta (d, kp), which is padded with zeros and Theta(R) on entry.

    The rows are those of ``single`` or ``whole``, of which the other is empty: all of them in their order, or those that ``at`` (n)
    names. A number x of column j stands for (x - mean_j) inverse_j + shift_j; ``constant`` appends a column of ones. Weights may be empty
    (all 1). A batch has ``together`` rows, and one block at least. ``gap`` (n) is scratch. Returns (code, passes, primal, dual) as `solve` of
    `_ext/ascent/ascent_dense.pyx`. Several ``threads``, at most one for each block, add up what they changed after every ``visits`` visits of each.
    """
    cdef Run run
    cdef Batch batch
    cdef Stored stored
    cdef double passes = 0.0, primal = 0.0, dual = 0.0
    cdef Py_ssize_t i, j, most, there
    cdef int code, kp = checked_width(k)
    cdef bint empty = True
    cdef Team team
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
    demand(1 <= threads <= min(<Py_ssize_t>MOST_THREADS, store.n_blocks) and visits >= 1,
           f"an ascent has 1 to {MOST_THREADS} threads, no more than blocks, and at least one visit a round")
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
    run.theta, run.mass, run.scale = &theta[0, 0], mass, 1.0 / (lam * mass)
    if threads > 1:
        team = gather(&run, &batch, kind, k, parameters, seed, most, kp, threads, visits)
        team.empty, team.lam, team.tol, team.max_passes, team.turn, team.max_seconds = empty, lam, tol, max_passes, turn, max_seconds
        code = work_together(team.work, threads, &team.rounds.barrier)
        for i in range(threads):
            if team.codes[i] == -1:
                raise MemoryError("no memory for the dual point")
        memcpy(run.theta, team.rounds.theta, <size_t>stored.d * kp * sizeof(double))
        return code, team.answers[0], team.answers[1], team.answers[2]
    bind(&run.family, kind, k, parameters)
    try:
        if batch_new(&batch, &run, most, kp):
            raise MemoryError("no memory for a batch of rows")
        with nogil:
            code = ascend(&run, &batch, empty, lam, tol, max_passes, turn, max_seconds, seed, &passes, &primal, &dual)
        if code == -1:
            raise MemoryError("no memory for the dual point")
    finally:
        batch_free(&batch, &run)
        family_free(&run.family)
    return code, passes, primal, dual


def width(int k):
    """Return kp: the number of columns that theta has at this instruction set."""
    return checked_width(k)
