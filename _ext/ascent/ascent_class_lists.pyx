"""Dual block-coordinate ascent on sparse rows with many classes: each row visits a list of its classes, and dual numbers lie on the lists.

A visit of `_ext/ascent/ascent_dense.pyx` reads as many columns of Theta as there are classes. Most classes lie so far below the row's threshold that they
carry nothing. Here a visit maximises row i's block over r that are 0 off a list of classes which holds y_i and all that carry r_i. That is a step
of the same dual ascent whatever the list. What it may miss, an evaluation finds:

    S(f, y) <= max(S(f, y | list), 1 + top - f_y),   top >= f_j of every class off the list                          (1)

with S(f, y | list) the surrogate over the classes of the list alone. It is exact where top is no more than the threshold
tau = S(f, y | list) - 1 + f_y, which no class below carries. Both surrogates here have this form: zero_one with sum_j (f_j - tau)_+ = 1, and cs with
tau = max(f_y - 1, f_j of the others).

An evaluation of all rows takes all scores at one Theta, tile by tile of columns that fit a cache, so that Theta is read once for many rows, and
keeps of each row the largest scores above its last threshold (a partial selection): the values at the ends of the gap by (1), and the row's next list.
Several threads share its rows, each with a tile of its own. What is found of a row does not depend on other rows, and all sums are taken in the
order of the rows afterwards: the bits are those of one thread.

One file: visits and evaluations work on the same lists of classes.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, malloc, free
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from adv_simd cimport LANES, count_greater, load, splat, zeros
from adv_bind cimport family_free, padded
from adv_check cimport check_examples, check_labels, check_list, check_rows, check_starts, demand
from adv_families cimport CS, ZERO_ONE
from adv_family cimport Family
from adv_linear cimport rows_of, sparse_scores
from adv_loop cimport bind, checked_width, random_bits
from adv_rounds cimport MOST_THREADS, Barrier, cut, work_together
from adv_schedule cimport Schedule, ascend_rows, look_now, schedule_new, shuffled, swept
from adv_visit cimport Run, Term, terms_new, values_of
include "width.pxi"

cdef enum:
    MOST = 32            # classes that an evaluation adds to a list that is no longer
    FIRST = 16           # classes of a first list beside the row's own
    TILE = 64            # columns of Theta that lie together in an evaluation
    PADS = 32            # lanes that a list may be filled up with
    TOGETHER = 1 << 15   # rows of an evaluation whose largest scores are kept at a time

cdef double SLACK = 0.02      # how far below the threshold a class may lie and stay on a list
cdef double LEFT = 0.1        # `done` of the schedule: of the gap on the lists, since evaluations are dear


cdef struct Listed:
    int count
    int room
    int own                   # place of the row's label
    double *numbers           # (room) r
    double *scores            # (room) at the last evaluation
    int *labels               # (room) ascending


cdef int settle(Listed *row, int count) noexcept nogil:
    """Give a row a list of ``count`` classes, all of which are to be written; -1 when memory is short, and the list stays then."""
    cdef double *block
    if count > row.room:
        block = <double *>malloc(<size_t>count * (2 * sizeof(double) + sizeof(int)))
        if block == NULL:
            return -1
        free(row.numbers)
        row.numbers, row.scores, row.labels = block, block + count, <int *>(block + 2 * count)
        row.room = count
    row.count = count
    return 0


cdef class Lists:
    """A dual point of n rows and k classes on the rows' lists; r = 0 and lists of nothing to begin with."""
    cdef Listed *rows
    cdef Py_ssize_t n
    cdef int k

    def __cinit__(self, Py_ssize_t n, int k):
        demand(n >= 1, "a dual point has rows")
        checked_width(k)
        self.n, self.k = n, k
        self.rows = <Listed *>calloc(n, sizeof(Listed))
        if self.rows == NULL:
            raise MemoryError("no memory for a dual point")

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.rows != NULL:
            for i in range(self.n):
                free(self.rows[i].numbers)
        free(self.rows)

    @property
    def nbytes(self):
        """Bytes that the lists take."""
        cdef Py_ssize_t i, room = 0
        for i in range(self.n):
            room += self.rows[i].room
        return room * (2 * sizeof(double) + sizeof(int)) + self.n * sizeof(Listed)

    @property
    def entries(self):
        """How many dual numbers are not 0."""
        cdef Py_ssize_t i, found = 0
        cdef int a
        for i in range(self.n):
            for a in range(self.rows[i].count):
                found += self.rows[i].numbers[a] != 0.0
        return found

    def take(self, const Py_ssize_t[::1] y, const long long[::1] start, const int[::1] labels, const double[::1] numbers):
        """Take the dual numbers of a CSR matrix, labels ascending in each row; every row's list holds its own label ``y`` as well."""
        cdef Py_ssize_t i, e
        cdef int at
        cdef bint own
        cdef Listed *row
        check_labels(y, self.n, self.k)
        check_starts(start, self.n, labels.shape[0], "starts of dual numbers")
        demand(numbers.shape[0] == labels.shape[0], "every dual number has a label")
        check_list(labels, self.k, "labels of dual numbers")
        for i in range(self.n):
            own = True
            for e in range(start[i], start[i + 1]):
                demand(e == start[i] or labels[e - 1] < labels[e], "labels of a row's dual numbers must ascend")
                own = own and labels[e] != y[i]
            row = self.rows + i
            if settle(row, <int>(start[i + 1] - start[i]) + own):
                raise MemoryError("no memory for a dual point")
            at = 0
            for e in range(start[i], start[i + 1]):
                if own and labels[e] > y[i]:
                    at = place(row, at, <int>y[i], 0.0)
                    own = False
                at = place(row, at, labels[e], numbers[e])
            if own:
                place(row, at, <int>y[i], 0.0)
            find_own(row, <int>y[i])

    def give(self, long long[::1] start, int[::1] labels, double[::1] numbers):
        """Write the dual numbers that are not 0 as a CSR matrix: starts (n + 1), labels and numbers (`entries`)."""
        cdef Py_ssize_t i, at = 0
        cdef int a
        cdef Listed *row
        demand(start.shape[0] == self.n + 1 and labels.shape[0] == numbers.shape[0] == self.entries, "starts must be (n + 1), the rest (entries)")
        start[0] = 0
        for i in range(self.n):
            row = self.rows + i
            for a in range(row.count):
                if row.numbers[a] != 0.0:
                    labels[at], numbers[at] = row.labels[a], row.numbers[a]
                    at += 1
            start[i + 1] = at


cdef inline int place(Listed *row, int at, int label, double number) noexcept nogil:
    row.labels[at], row.numbers[at] = label, number
    return at + 1


cdef inline void find_own(Listed *row, int y) noexcept nogil:
    row.own = 0
    while row.own < row.count - 1 and row.labels[row.own] < y:
        row.own += 1


cdef struct Ascent:
    Run run              # its `r` is not in use
    Listed *lists
    int k
    int kp               # columns of Theta
    const double *mask   # 0 before and -inf behind this place, so that the k lanes of any list end here
    double *level        # (n) below the scores of classes that an evaluation keeps
    # of an evaluation
    int threads
    double *tile         # (threads, d, TILE)
    Py_ssize_t *begin    # (TOGETHER + 1) where a row's largest scores begin
    int *found           # (TOGETHER) how many they are
    int *cursor          # (TOGETHER) the first class of the list that lies in or behind the tile
    double *top          # scores, and whose
    int *whose
    Py_ssize_t room      # of these two


cdef inline void narrow(Ascent *a, int count) noexcept nogil:
    """Let the surrogate have ``count`` classes, those of a list: over fewer classes both are the same surrogate."""
    cdef Family *s = &a.run.family
    s.k = count
    s.kp = padded(count) if a.kp > PADS else a.kp  # steps of small sizes are compiled for one kp
    s.mask = a.mask - count


cdef inline double listed_visit(Ascent *a, Py_ssize_t i, double skip) noexcept nogil:
    """Maximise block i over its list and return its gap there before the step, times s_i w_i."""
    cdef Run *run = &a.run
    cdef Family *s = &run.family
    cdef Listed *row = a.lists + i
    cdef int v, j, m = 0, count = row.count, kp = a.kp
    cdef int *moved = run.moved
    cdef const int *labels = row.labels
    cdef double *f = s.work + 8 * kp
    cdef double *new = s.work + 9 * kp
    cdef double *r = s.work + 10 * kp
    cdef double *theta
    cdef double weight = 1.0, cost = 1.0, gap, x
    cdef Py_ssize_t e
    if run.sample != NULL:
        weight = run.sample[i]
        if weight == 0.0:
            return 0.0
    narrow(a, count)
    for j in range(s.kp):
        f[j] = r[j] = 0.0
    for e in range(run.rows.start[i], run.rows.start[i + 1]):
        theta = run.theta + <Py_ssize_t>run.rows.columns[e] * kp
        x = run.rows.values[e]
        for j in range(count):
            f[j] += x * theta[labels[j]]
    if run.cost != NULL:
        cost = run.cost[i]
        for j in range(count):
            f[j] /= cost
    memcpy(r, row.numbers, count * sizeof(double))
    s.hint = &run.term[i].hint
    gap = s.step(s, f, r, row.own, weight * run.term[i].square * run.scale / cost, skip, new, NULL, NULL)
    if gap > skip:
        memcpy(row.numbers, new, count * sizeof(double))
        for j in range(count):
            new[m] = new[j] - r[j]
            if new[m] != 0.0:
                moved[m] = labels[j]
                m += 1
        for e in range(run.rows.start[i], run.rows.start[i + 1]):
            theta = run.theta + <Py_ssize_t>run.rows.columns[e] * kp
            x = -weight * run.scale * run.rows.values[e]
            for v in range(m):
                theta[moved[v]] += x * new[v]
    return weight * cost * gap


cdef inline double select(double *score, int *whose, int count, int most) noexcept nogil:
    """Put the ``most`` largest of ``count`` scores first and return the least of these (Hoare's selection); most < count."""
    cdef int low = 0, high = count - 1, i, j, label
    cdef double pivot, value, least
    while low < high:
        pivot = score[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while score[i] > pivot:
                i += 1
            while pivot > score[j]:
                j -= 1
            if i <= j:
                value, label = score[i], whose[i]
                score[i], whose[i] = score[j], whose[j]
                score[j], whose[j] = value, label
                i += 1
                j -= 1
        if most - 1 <= j:
            high = j
        elif most - 1 >= i:
            low = i
        else:
            break
    least = score[0]
    for i in range(1, most):
        least = score[i] if score[i] < least else least
    return least


cdef inline int most_new(const Listed *row) noexcept nogil:
    """How many classes an evaluation may add to a row: a list that is too short at least doubles."""
    return max(<int>MOST, row.count)


cdef void survey(Ascent *a, Py_ssize_t base, Py_ssize_t first, Py_ssize_t last, double *tile) noexcept nogil:
    """Find the scores of the rows' lists and the largest scores off them, of rows first..last - 1; row ``base`` is the first of scratch."""
    cdef Run *run = &a.run
    cdef Py_ssize_t i, e, at
    cdef int d = run.rows.d, t, begin, width, v, j, label, most
    cdef double f[TILE]
    cdef double level, inverse
    cdef Listed *row
    cdef bint high
    for i in range(first - base, last - base):
        a.found[i] = a.cursor[i] = 0
    for t in range((a.kp + TILE - 1) // TILE):
        begin = t * TILE
        width = min(<int>TILE, a.kp - begin)
        for e in range(d):
            memcpy(tile + e * width, run.theta + e * a.kp + begin, width * sizeof(double))
        for i in range(first, last):
            if run.sample != NULL and run.sample[i] == 0.0:
                continue
            row = a.lists + i
            sparse_scores(run.rows.values + run.rows.start[i], run.rows.columns + run.rows.start[i], run.rows.start[i + 1] - run.rows.start[i],
                          tile, width, f)
            if run.cost != NULL:
                inverse = 1.0 / run.cost[i]
                for j in range(width):
                    f[j] *= inverse
            for j in range(a.k - begin, width):
                f[j] = -INFINITY
            v = a.cursor[i - base]
            while v < row.count and row.labels[v] < begin + width:
                label = row.labels[v] - begin
                row.scores[v] = f[label]
                f[label] = -INFINITY
                v += 1
            a.cursor[i - base] = v
            level = a.level[i]
            high = False
            for v in range(width // LANES):
                high |= count_greater(load(f, v), splat(level)) > 0
            if not high:
                continue
            most = most_new(row)
            at = a.begin[i - base]
            for j in range(width):
                if f[j] > level:
                    a.top[at + a.found[i - base]] = f[j]
                    a.whose[at + a.found[i - base]] = begin + j
                    a.found[i - base] += 1
                    if a.found[i - base] == 2 * most:
                        level = select(a.top + at, a.whose + at, 2 * most, most)
                        a.found[i - base] = most
            a.level[i] = level


cdef class Surveyors:
    """The threads of one evaluation; `work` is one thread's part of the rows."""
    cdef Ascent *ascent
    cdef Py_ssize_t first, last

    def work(self, int t):
        """Survey part t."""
        cdef Ascent *a = self.ascent
        demand(a != NULL and 0 <= t < a.threads, "an evaluation has threads of its own")
        cdef Py_ssize_t count = self.last - self.first
        with nogil:
            survey(a, self.first, self.first + cut(count, a.threads, t), self.first + cut(count, a.threads, t + 1),
                   a.tile + <Py_ssize_t>t * a.run.rows.d * TILE)
        return 0


cdef int survey_together(Ascent *a, Py_ssize_t first, Py_ssize_t last) except -1 with gil:
    """`survey` by several threads."""
    cdef Surveyors shared = Surveyors.__new__(Surveyors)
    cdef Barrier nobody   # waits there
    shared.ascent, shared.first, shared.last = a, first, last
    try:
        return work_together(shared.work, a.threads, &nobody)
    finally:
        shared.ascent = NULL


cdef int judge(Ascent *a, Py_ssize_t i, double *top, int *whose, int found, double *loss, double *offsets) noexcept nogil:
    """Add row i's bound (1) and offset, refresh its gap and make its next list; -1 when memory is short."""
    cdef Run *run = &a.run
    cdef Family *s = &run.family
    cdef Listed *row = a.lists + i
    cdef int j, count = row.count, most = most_new(row), kp = a.kp, kept = 0, at
    cdef double *f = s.work + 8 * kp
    cdef double *r = s.work + 10 * kp
    cdef double weight = 1.0 if run.sample == NULL else run.sample[i], cost = 1.0 if run.cost == NULL else run.cost[i]
    cdef double own, value, best, tau, c, level, inner = 0.0
    cdef int *labels
    if weight == 0.0:
        run.term[i].gap = 0.0
        return 0
    if found > most:
        a.level[i] = select(top, whose, found, most)
        found = most
    narrow(a, count)
    for j in range(s.kp):
        r[j] = 0.0
    for j in range(count):
        f[j], r[j] = row.scores[j], row.numbers[j]
        inner += f[j] * r[j]
    best = s.offset(s, r, row.own)
    memcpy(f + count, top, found * sizeof(double))
    narrow(a, count + found)
    for j in range(count + found, s.kp):
        f[j] = 0.0
    own = f[row.own]
    value = s.oracle(s, f, row.own, s.work + 9 * kp, &c)
    tau = value - 1.0 + own
    if a.level[i] > tau:
        value = 1.0 + a.level[i] - own
    run.term[i].gap = weight * cost * (value - best - inner)
    loss[0] += weight * cost * value
    offsets[0] += weight * cost * best
    # the next list, in scratch: what carries r, and what is or may soon be above the threshold
    level = tau - SLACK
    labels = run.moved
    for j in range(count):
        if row.numbers[j] != 0.0 or j == row.own or f[j] > level:
            labels[kept] = row.labels[j]
            r[kept] = row.numbers[j]
            kept += 1
    for j in range(found):
        if top[j] > level:
            at = kept
            while at > 0 and labels[at - 1] > whose[j]:
                labels[at], r[at] = labels[at - 1], r[at - 1]
                at -= 1
            labels[at], r[at] = whose[j], 0.0
            kept += 1
    at = row.labels[row.own]
    if settle(row, kept):
        return -1
    memcpy(row.labels, labels, kept * sizeof(int))
    memcpy(row.numbers, r, kept * sizeof(double))
    find_own(row, at)
    a.level[i] = level
    return 0


cdef int no_memory() except -1 with gil:
    raise MemoryError("no memory for the lists of classes")


cdef int evaluate(void *ascent, Schedule *s) except -1 nogil:
    """A bound on the primal value and the dual value at the present Theta and r, new gaps and new lists."""
    cdef Ascent *a = <Ascent *>ascent
    cdef Run *run = &a.run
    cdef Py_ssize_t part, first, last, i, size
    cdef double loss = 0.0, offsets = 0.0
    for part in range((run.rows.n + TOGETHER - 1) // TOGETHER):
        first = part * TOGETHER
        last = min(first + <Py_ssize_t>TOGETHER, run.rows.n)
        size = 0
        for i in range(first, last):
            a.begin[i - first] = size
            size += 2 * most_new(a.lists + i)
        if size > a.room:
            free(a.top)
            a.room = 0
            a.top = <double *>malloc(size * (sizeof(double) + sizeof(int)))
            if a.top == NULL:
                no_memory()
            a.whose = <int *>(a.top + size)
            a.room = size
        if a.threads > 1:
            survey_together(a, first, last)
        else:
            survey(a, first, first, last, a.tile)
        for i in range(first, last):
            if judge(a, i, a.top + a.begin[i - first], a.whose + a.begin[i - first], a.found[i - first], &loss, &offsets):
                no_memory()
    narrow(a, a.k)
    values_of(run, loss, offsets, &s.primal, &s.dual)
    return 0


cdef int first_lists(Ascent *a, uint64_t *state) noexcept nogil:
    """Give rows without a list one at r = 0: their own class and those of a few other rows; rows of zeros, whose scores never move, all classes.

    Return 1 where no row had a list, -1 when memory is short.
    """
    cdef Py_ssize_t i
    cdef int code = 1
    cdef int j, at, label, kept, count
    cdef int *labels = a.run.moved
    cdef Listed *row
    for i in range(a.run.rows.n):
        row = a.lists + i
        if row.count:
            code = 0
            continue
        kept = 1
        labels[0] = <int>a.run.term[i].label
        if a.run.term[i].square == 0.0:
            kept = a.k
            for j in range(a.k):
                labels[j] = j
        else:
            for j in range(FIRST):
                label = <int>a.run.term[random_bits(state) % <uint64_t>a.run.rows.n].label
                at = kept
                while at > 0 and labels[at - 1] > label:
                    at -= 1
                if at > 0 and labels[at - 1] == label:
                    continue
                for count in range(kept, at, -1):
                    labels[count] = labels[count - 1]
                labels[at] = label
                kept += 1
        if settle(row, kept):
            return -1
        for j in range(kept):
            row.labels[j], row.numbers[j], row.scores[j] = labels[j], 0.0, 0.0
        find_own(row, <int>a.run.term[i].label)
    return code


cdef void rest(Ascent *a, Schedule *s) noexcept nogil:
    """What `evaluate` says at Theta = 0 and r = 0: (1) with scores of 0."""
    cdef Run *run = &a.run
    cdef Py_ssize_t i
    cdef double loss = 0.0
    for i in range(run.rows.n):
        run.term[i].gap = (1.0 if run.sample == NULL else run.sample[i]) * (1.0 if run.cost == NULL else run.cost[i])
        loss += run.term[i].gap
    s.begun, s.primal, s.dual = True, loss / run.mass, 0.0


cdef int sweep(void *ascent, Schedule *s, bint active) except -1 nogil:
    """Visit the active rows. A pass over all has no visits: the evaluation before it has their gaps."""
    cdef Ascent *a = <Ascent *>ascent
    cdef Py_ssize_t b, i, count
    cdef double total = 0.0
    if not active:
        for i in range(a.run.rows.n):
            total += a.run.term[i].gap
        s.total = total
        return 0
    count = shuffled(s, active)
    for b in range(count):
        i = s.order[b]
        a.run.term[i].gap = listed_visit(a, i, s.skip)
        total += a.run.term[i].gap
    swept(s, active, total)
    return look_now(a, s)


cdef int ascend(Ascent *a, double tol, double max_passes, double turn, double max_seconds, uint64_t seed, double *answer) except -1 nogil:
    """Return why the ascent ends; ``answer`` receives passes, primal and dual value.

    Every round ends with an evaluation. Between two of them the rows that carry the gap are visited until most of it is gone from their lists.
    """
    cdef Schedule s
    cdef int code
    schedule_new(&s, evaluate, sweep, a.run.rows.n, a.run.mass, tol, max_passes, turn, max_seconds)
    s.every, s.whole, s.done, s.state = True, INFINITY, LEFT, seed
    s.gaps, s.stride = &a.run.term.gap, sizeof(Term) // sizeof(double)
    code = first_lists(a, &s.state)
    if code == -1:
        no_memory()
    if code == 1:
        rest(a, &s)
    return ascend_rows(a, &s, answer)


def solve(int kind, int k, const double[::1] parameters, const double[::1] values, const int[::1] columns, const long long[::1] start,
          Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square, const double[::1] sample_weight, const double[::1] cost_weight,
          Lists lists, double[:, ::1] theta, double lam, double mass, double tol, double max_passes, double max_seconds,
          unsigned long long seed, double turn=INFINITY, int threads=1):
    """Run the ascent in place on the dual point of ``lists`` and theta (d, kp), padded with zeros to kp, theta = Theta(r) on entry.

    Rows are sparse and the surrogate is zero_one or cs; ``threads`` share evaluations; the rest is that of `solve` of `_ext/ascent/ascent_dense.pyx`.
    """
    cdef Ascent a
    cdef Run *run = &a.run
    cdef double answer[3]
    cdef Py_ssize_t i
    cdef int code, kp = checked_width(k)
    cdef double *mask = NULL
    check_rows(values, columns, start, n, d)
    check_examples(y, n, k, sample_weight, cost_weight)
    demand(kind == ZERO_ONE or kind == CS, "lists of classes are for zero_one and cs")
    demand(start.shape[0] == n + 1, "lists of classes are for sparse rows")
    demand(lists is not None and lists.n == n and lists.k == k, "lists must be those of n rows and k classes")
    demand(theta.shape[0] == d and theta.shape[1] == kp, "theta must be (d, kp), padded")
    demand(square.shape[0] == n, "every row needs a squared length")
    demand(1 <= threads <= min(<Py_ssize_t>MOST_THREADS, n), f"an evaluation has 1 to {MOST_THREADS} threads, and a row for each")
    for i in range(n):
        demand(lists.rows[i].count == 0 or lists.rows[i].labels[lists.rows[i].own] == y[i], "every list must hold its row's label")
    bind(&run.family, kind, k, parameters)
    run.rows = rows_of(values, columns, start, n, d)
    run.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    run.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    run.r, run.term, run.apart = NULL, NULL, 1
    run.theta = &theta[0, 0] if d else NULL
    run.mass, run.lam = mass, lam
    run.scale = 1.0 / (lam * mass)
    a.lists, a.k, a.kp, a.threads = lists.rows, k, kp, threads
    a.top, a.whose, a.room = NULL, NULL, 0
    mask = zeros(k + PADS + n)
    run.moved = <int *>malloc(kp * sizeof(int))
    run.term = terms_new(n)
    a.tile = <double *>malloc((<size_t>threads * d * TILE + 1) * sizeof(double))
    a.begin = <Py_ssize_t *>malloc((TOGETHER + 1) * sizeof(Py_ssize_t))
    a.found = <int *>malloc(2 * TOGETHER * sizeof(int))
    try:
        if mask == NULL or run.moved == NULL or run.term == NULL or a.tile == NULL or a.begin == NULL or a.found == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        for i in range(PADS):
            mask[k + i] = -INFINITY
        a.mask, a.level = mask + k, mask + k + PADS
        a.cursor = a.found + TOGETHER
        for i in range(n):
            a.level[i] = -INFINITY
            run.term[i].label, run.term[i].square = y[i], square[i]
        with nogil:
            code = ascend(&a, tol, max_passes, turn, max_seconds, seed, answer)
    finally:
        free(mask)
        free(run.moved)
        free(run.term)
        free(a.tile)
        free(a.begin)
        free(a.found)
        free(a.top)
        family_free(&run.family)
    return code, answer[0], answer[1], answer[2]
