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

from adv_simd cimport zeros
from adv_bind cimport family_free
from adv_blocks cimport MOST_LABELS, Label, Supports, deflate, first_row, inflate, rows_in
from adv_check cimport check_list, check_weights, demand
from adv_loop cimport bind, checked_width, seconds, shuffle
from adv_rounds cimport CELLS, MOST_THREADS, Member, Rounds, add_up, combine, copies_free, copies_new, cut, enter, leave, wait_for_all, work_together
from adv_schedule cimport Schedule, ascend_rows, hear, look_now, schedule_new
from adv_stored cimport Stored, load_row, take_rows
from adv_visit cimport Run, Term, judge_rows, terms_new, values_of, visit_each
include "width.pxi"

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

    cdef Py_ssize_t _blocks(self, Py_ssize_t block, const int[::1] y, Py_ssize_t rows, Py_ssize_t k) except -1:
        """Return of how many whole blocks ``rows`` rows are, from ``block`` on."""
        cdef Py_ssize_t first, last
        demand(0 <= block < self.n_blocks, "no such block")
        first = first_row(&self.supports, block)
        demand(1 <= rows <= self.supports.n - first, "rows must be there")
        last = first + rows
        demand(rows % self.supports.rows == 0 or last == self.supports.n, "rows must be those of whole blocks")
        demand(y.shape[0] == self.supports.n and k == self.supports.k, "labels must be those of all rows, and numbers (rows, k)")
        check_list(y[first:last], self.supports.k, "labels")
        return (rows - 1) // self.supports.rows + 1

    def read(self, Py_ssize_t block, const int[::1] y, double[:, ::1] out):
        """Write the dual numbers of whole blocks, from ``block`` on, to ``out`` (their rows, k); y (n) are the labels of all rows."""
        cdef Py_ssize_t b, blocks = self._blocks(block, y, out.shape[0], out.shape[1])
        with nogil:
            for b in range(blocks):
                inflate(&self.supports, block + b, &y[0], &out[first_row(&self.supports, b), 0], self.supports.k)

    def write(self, Py_ssize_t block, const int[::1] y, const double[:, ::1] r):
        """Keep the dual numbers (rows, k) of whole blocks, from ``block`` on; their rows sum to zero."""
        cdef Py_ssize_t b, blocks = self._blocks(block, y, r.shape[0], r.shape[1])
        for b in range(blocks):
            if deflate(&self.supports, block + b, &y[0], &r[first_row(&self.supports, b), 0], self.supports.k):
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


cdef int keep(Batch *b, int kp, bint moved) except -1 nogil:
    """Keep the gaps of the batch's rows and, where they ``moved``, their dual numbers."""
    cdef Py_ssize_t s, i, first, base = 0
    cdef bint short_of_memory = False
    for s in range(b.count):
        first = first_row(b.supports, b.blocks[s])
        for i in range(rows_in(b.supports, b.blocks[s])):
            b.gap[first + i] = <float>b.terms[base + i].gap
        if moved and deflate(b.supports, b.blocks[s], b.y, b.r + base * kp, kp):
            short_of_memory = True
        base += rows_in(b.supports, b.blocks[s])
    if short_of_memory:
        with gil:
            raise MemoryError("no memory for the dual point")
    return 0


cdef struct Ascent:
    Run run
    Batch batch
    Py_ssize_t n_blocks
    Py_ssize_t *order     # (n_blocks) blocks as a pass takes them, the same for all threads
    uint64_t state        # random bits that shuffle them, the same for all threads
    bint empty            # whether Theta is 0, whose scores need no X: until the first evaluation
    Py_ssize_t next       # blocks of `order` that are the thread's and not yet read
    Py_ssize_t last
    # of one of several threads
    Member member
    bint *late            # (2) whether the time is up, for the rounds in turn: no thread writes what another has yet to read


cdef int judge_blocks(Ascent *a, Py_ssize_t block, Py_ssize_t last, double *heard, double *sums) except -1 nogil:
    """Write the sums of S and c over blocks block..last - 1, and refresh their gaps; without ``heard``, signals are left alone."""
    cdef Batch *b = &a.batch
    sums[0] = sums[1] = 0.0
    while block < last:
        b.count = 0
        while b.count < b.most and block < last:
            b.blocks[b.count] = block
            b.count += 1
            block += 1
        fill(b, a.run.rows.d, a.run.family.kp, -1.0, not a.empty)
        judge_rows(&a.run, 0, b.size, &sums[0], &sums[1])
        keep(b, a.run.family.kp, False)
        if heard != NULL:
            hear(heard)
    a.empty = False
    return 0


cdef int evaluate(void *ascent, Schedule *s) except -1 nogil:
    """Primal and dual value at the present Theta and r: one pass that moves nothing, and refreshes the gaps."""
    cdef Ascent *a = <Ascent *>ascent
    cdef double sums[2]
    judge_blocks(a, 0, a.n_blocks, &s.heard, sums)
    values_of(&a.run, sums[0], sums[1], &s.primal, &s.dual)
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


cdef void refill(Ascent *a, double level, uint64_t *state) noexcept nogil:
    """Read the next batch with rows to visit, and list them; none where no blocks are left."""
    cdef Batch *b = &a.batch
    b.listed = 0
    while b.listed == 0 and a.next < a.last:
        b.count = 0
        while b.count < b.most and a.next < a.last:
            if level < 0.0 or has_active(b, a.order[a.next], level):
                b.blocks[b.count] = a.order[a.next]
                b.count += 1
            a.next += 1
        fill(b, a.run.rows.d, a.run.family.kp, level, True)
    shuffle(b.order, b.listed, state)


cdef double sum_above(const float *gap, Py_ssize_t first, Py_ssize_t last, double level, double *count) noexcept nogil:
    """Return the sum of the gaps of rows first..last - 1 that exceed ``level``, all at -infinity, and write how many they are."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    count[0] = 0.0
    for i in range(first, last):
        if level == -INFINITY or gap[i] > level:
            count[0] += 1.0
            total += gap[i]
    return total


cdef int changed(Schedule *s, bint active, double visits, double change) noexcept nogil:
    """Take by how much the gaps that a pass found exceed those of the visits before."""
    s.visits += visits
    if active:
        s.total += change
        s.active += change
    return 0


cdef int sweep(void *ascent, Schedule *s, bint active) except -1 nogil:
    """Visit all rows, or those whose gap exceeds ``level``, batch by batch; at the limit of seconds a pass ends between two batches."""
    cdef Ascent *a = <Ascent *>ascent
    cdef Batch *b = &a.batch
    cdef double level = s.level if active else -1.0, visits = 0.0, change = 0.0, rows
    shuffle(a.order, a.n_blocks, &a.state)
    a.next, a.last = 0, a.n_blocks
    while not s.late:
        refill(a, level, &a.state)
        if b.listed == 0:
            break
        visit_some(&a.run, b, 0, b.listed, s.skip, &change)
        visits += <double>b.listed
        keep(b, a.run.family.kp, True)
        look_now(a, s)
    if not active:
        s.total = sum_above(b.gap, 0, a.run.rows.n, -INFINITY, &rows)
    return changed(s, active, visits, change)


cdef int choose(void *ascent, Schedule *s) except -1 nogil:
    cdef Ascent *a = <Ascent *>ascent
    s.active = sum_above(a.batch.gap, 0, a.run.rows.n, s.level, &s.count)
    return 0


cdef int ascend(Ascent *a, double tol, double max_passes, double turn, double max_seconds, double *answer) except -1 nogil:
    """Return why the ascent ends; ``answer`` receives passes, primal and dual value."""
    cdef Schedule s
    schedule_new(&s, evaluate, sweep, a.run.rows.n, a.run.mass, tol, max_passes, turn, max_seconds)
    s.choose = choose
    return ascend_rows(a, &s, answer)


cdef inline void rows_of_thread(const Ascent *a, Py_ssize_t *first, Py_ssize_t *last) noexcept nogil:
    cdef Py_ssize_t rows = a.batch.supports.rows
    first[0] = cut(a.n_blocks, a.member.team.size, a.member.t) * rows
    last[0] = min(cut(a.n_blocks, a.member.team.size, a.member.t + 1) * rows, a.run.rows.n)


cdef int sweep_together(void *ascent, Schedule *s, bint active) except -1 nogil:
    """Do what `sweep` does, in rounds. All threads read a batch at the same time, which may take longer than the rounds of its visits."""
    cdef Ascent *a = <Ascent *>ascent
    cdef Member *m = &a.member
    cdef Rounds *team = m.team
    cdef Batch *b = &a.batch
    cdef double level = s.level if active else -1.0, rows
    cdef double sums[2]
    cdef Py_ssize_t longest, first, last
    cdef int u, turn
    shuffle(a.order, a.n_blocks, &a.state)
    a.next, a.last = cut(a.n_blocks, team.size, m.t), cut(a.n_blocks, team.size, m.t + 1)
    sums[0] = sums[1] = 0.0
    while not s.late:
        refill(a, level, &a.member.state)
        rows = <double>b.listed
        if add_up(m, &rows, 1):
            return 1
        if rows == 0.0:
            break
        longest = first = 0
        for u in range(team.size):
            longest = max(longest, <Py_ssize_t>team.cells[((m.cell ^ 1) * team.size + u) * CELLS])
        while first < longest and not s.late:
            a.run.theta = team.moved + (m.turn * team.size + m.t) * team.length
            memcpy(a.run.theta, team.theta + m.t * team.length, team.length * sizeof(double))
            a.run.scale = m.sigma * m.scale
            visit_some(&a.run, b, min(first, b.listed), min(first + team.together, b.listed), s.skip, sums + 1)
            turn = m.turn
            if m.t == 0:
                a.late[turn] = not seconds() <= s.until
                hear(&s.heard)
            if wait_for_all(&team.barrier, team.size):
                return 1
            combine(m)
            s.late = a.late[turn]
            first += team.together
        sums[0] += <double>min(first, b.listed)
        if b.listed:
            keep(b, a.run.family.kp, True)
    if add_up(m, sums, 2):
        return 1
    if not active:
        rows_of_thread(a, &first, &last)
        s.total = sum_above(b.gap, first, last, -INFINITY, &rows)
        if add_up(m, &s.total, 1):
            return 1
    return changed(s, active, sums[0], sums[1])


cdef int choose_together(void *ascent, Schedule *s) except -1 nogil:
    cdef Ascent *a = <Ascent *>ascent
    cdef Py_ssize_t first, last
    cdef double sums[2]
    rows_of_thread(a, &first, &last)
    sums[1] = sum_above(a.batch.gap, first, last, s.level, &sums[0])
    if add_up(&a.member, sums, 2):
        return 1
    s.count, s.active = sums[0], sums[1]
    return 0


cdef int evaluate_together(void *ascent, Schedule *s) except -1 nogil:
    """Primal and dual value: every thread judges its part of the rows, and the first reads the clock for all."""
    cdef Ascent *a = <Ascent *>ascent
    cdef Member *m = &a.member
    cdef double sums[3]
    a.run.theta = m.team.theta + m.t * m.team.length
    judge_blocks(a, cut(a.n_blocks, m.team.size, m.t), cut(a.n_blocks, m.team.size, m.t + 1), &s.heard if m.t == 0 else NULL, sums)
    sums[2] = 1.0 if m.t == 0 and not seconds() <= s.until else 0.0
    if add_up(m, sums, 3):
        return 1
    values_of(&a.run, sums[0], sums[1], &s.primal, &s.dual)
    s.late = sums[2] > 0.0
    return 0


cdef int look_together(void *ascent, Schedule *s) except -1 nogil:
    """The clock is read in sweeps and evaluations."""
    return 0


cdef int ascend_together(Ascent *a, double tol, double max_passes, double turn, double max_seconds, double *answer) except -1 nogil:
    """Return what `ascend` returns, on every thread; 3 where another thread has left."""
    cdef Schedule s
    schedule_new(&s, evaluate_together, sweep_together, a.run.rows.n, a.run.mass, tol, max_passes, turn, max_seconds if max_seconds >= 0.0 else -INFINITY)
    s.choose, s.look, s.shared = choose_together, look_together, True
    return ascend_rows(a, &s, answer)


cdef class Team:
    """The threads of one ascent; `work` is one thread's part."""
    cdef Rounds rounds
    cdef Ascent *parts
    cdef bint late[2]
    cdef bint short_of_memory
    cdef double tol, max_passes, turn, max_seconds
    cdef double *answers      # (K, 3) passes, primal and dual value

    def work(self, int t):
        """Take part as thread t to the end; return its code."""
        demand(self.parts != NULL and 0 <= t < self.rounds.size, "a team has threads of its own")
        cdef int code = -1
        try:
            with nogil:
                code = ascend_together(self.parts + t, self.tol, self.max_passes, self.turn, self.max_seconds, self.answers + 3 * t)
        except MemoryError:
            self.short_of_memory = True
            leave(&self.rounds.barrier)
        except BaseException:
            leave(&self.rounds.barrier)
            raise
        return code

    def __dealloc__(self):
        cdef int t
        if self.parts != NULL:
            for t in range(self.rounds.size):
                family_free(&self.parts[t].run.family)
                batch_free(&self.parts[t].batch, &self.parts[t].run)
                free(self.parts[t].order)
        free(self.parts)
        free(self.answers)
        copies_free(&self.rounds)


cdef int ascent_new(Ascent *a, const Ascent *given, int kind, int k, const double[::1] parameters, Py_ssize_t most, int kp, uint64_t seed) except -1:
    """Make an ascent on the rows of another, with a batch of at most ``most`` rows."""
    cdef Py_ssize_t i
    bind(&a.run.family, kind, k, parameters)
    a.run.theta, a.run.mass, a.run.lam, a.run.scale = given.run.theta, given.run.mass, given.run.lam, given.run.scale
    a.batch.stored, a.batch.supports, a.batch.y = given.batch.stored, given.batch.supports, given.batch.y
    a.batch.sample, a.batch.cost, a.batch.gap, a.batch.most = given.batch.sample, given.batch.cost, given.batch.gap, given.batch.most
    a.n_blocks, a.empty, a.state = given.n_blocks, given.empty, seed
    a.order = <Py_ssize_t *>malloc(a.n_blocks * sizeof(Py_ssize_t))
    if batch_new(&a.batch, &a.run, most, kp) or a.order == NULL:
        raise MemoryError("no memory for a batch of rows")
    for i in range(a.n_blocks):
        a.order[i] = i
    return 0


cdef Team gather(const Ascent *given, int kind, int k, const double[::1] parameters, uint64_t seed, Py_ssize_t most, int kp, int threads, int together):
    """Return a team whose threads share the rows of an ascent and begin at its Theta, one thread at no copy; each has a batch of at most ``most`` rows."""
    cdef Team team = Team.__new__(Team)
    cdef size_t size = <size_t>given.batch.stored.d * kp
    cdef uint64_t common = seed
    cdef int t, failed = copies_new(&team.rounds, threads, together, size) if threads > 1 else 0
    team.rounds.size = threads
    team.parts = <Ascent *>calloc(threads, sizeof(Ascent))
    team.answers = <double *>calloc(3 * threads, sizeof(double))
    if failed or team.parts == NULL or team.answers == NULL:
        raise MemoryError("no memory for the threads' copies of theta")
    for t in range(threads):
        ascent_new(team.parts + t, given, kind, k, parameters, most, kp, common)
        team.parts[t].late = team.late
        if threads > 1:
            enter(&team.parts[t].member, &team.rounds, &team.parts[t].run, t, given.run.theta, size, &seed)
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
    cdef Ascent given
    cdef Batch *batch = &given.batch
    cdef Stored stored
    cdef Py_ssize_t i, j, most
    cdef int code, kp = checked_width(k)
    cdef Team team
    take_rows(&stored, single, whole, at, n, own, constant, mean, inverse, shift)
    demand(y.shape[0] == n and store.supports.n == n and store.supports.k == k, "labels and the dual point are of all rows")
    check_list(y, k, "labels")
    check_weights(sample_weight, n)
    check_weights(cost_weight, n)
    demand(theta.shape[0] == stored.d and theta.shape[1] == kp and gap.shape[0] == n, "theta must be (d, kp), padded, and gap (n)")
    demand(together >= 1, "a batch has a row at least")
    demand(1 <= threads <= min(<Py_ssize_t>MOST_THREADS, store.n_blocks) and visits >= 1,
           f"an ascent has 1 to {MOST_THREADS} threads, no more than blocks, and at least one visit a round")
    batch.stored, batch.supports = &stored, &store.supports
    batch.y = &y[0]
    batch.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    batch.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    batch.gap = &gap[0]
    batch.most = max(1, min(together // store.supports.rows, store.n_blocks))
    most = min(batch.most * store.supports.rows, n)
    given.n_blocks, given.empty = (n - 1) // store.supports.rows + 1, True
    for i in range(theta.shape[0]):
        for j in range(kp):
            given.empty = given.empty and theta[i, j] == 0.0
    given.run.theta, given.run.mass, given.run.lam, given.run.scale = &theta[0, 0], mass, lam, 1.0 / (lam * mass)
    team = gather(&given, kind, k, parameters, seed, most, kp, threads, visits)
    if threads > 1:
        team.tol, team.max_passes, team.turn, team.max_seconds = tol, max_passes, turn, max_seconds
        code = work_together(team.work, threads, &team.rounds.barrier)
        if team.short_of_memory:
            raise MemoryError("no memory for the dual point")
        memcpy(given.run.theta, team.rounds.theta, <size_t>stored.d * kp * sizeof(double))
    else:
        with nogil:
            code = ascend(team.parts, tol, max_passes, turn, max_seconds, team.answers)
    return code, team.answers[0], team.answers[1], team.answers[2]
