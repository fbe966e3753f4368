# One row's block of the dual: its exact step, its part of the certificate.

from adv_simd cimport vec, load, store, vsum, splat, zeros, LANES, prefetch
from adv_family cimport Family
from adv_linear cimport GROUP, Rows, dense_group, dense_products, dense_scores, dense_update, dense_update_scores, prefetch_row, row_scores, row_update

cdef enum:
    AHEAD = 2            # visits, of rows one by one, between a prefetch and what it is for
    MOST_RESTS = 7       # passes over all rows that leave a row out between two of its visits

# What a visit reads of a row beside x_i and r_i: it lies together, since the caches hold no other row of a large X when one is visited.
cdef struct Term:
    double hint          # see Family.hint
    double gap           # of the block at its last visit, times s_i w_i
    double square        # |x_i|^2
    int label
    short rests          # passes over all rows that will still leave the row out
    short rested         # how many they were when its last visit ended

cdef struct Run:
    Rows rows
    Family family
    Term *term                # of row i at i apart
    int apart                 # 2 where threads write those of neighbouring rows, which then lie in cache lines of their own; else 1
    const double *sample      # s_i or NULL
    const double *cost        # w_i or NULL
    double *r                 # (n, kp)
    double *theta             # (d, kp)
    double mass               # n of the objective: the sum of the sample weights
    double lam
    double scale              # 1/(lambda mass)
    int *moved


cdef inline void divide(double *f, int kp, double cost) noexcept nogil:
    """Divide the scores of a row by its cost weight."""
    cdef int v
    cdef vec inverse = splat(1.0 / cost)
    for v in range(kp // LANES):
        store(f, v, load(f, v) * inverse)


cdef inline Term *terms_new(Py_ssize_t n) noexcept nogil:
    """Return n terms of rows that have not been visited, none of them across two cache lines; NULL when memory is short. Release with `free`."""
    cdef Term *terms = <Term *>zeros(n * sizeof(Term) // sizeof(double))
    cdef Py_ssize_t i
    if terms != NULL:
        for i in range(n):
            terms[i].hint = -1.0
    return terms


cdef inline Term *term_of(const Run *run, Py_ssize_t i) noexcept nogil:
    return run.term + i * run.apart


cdef inline void prefetch_visit(const Run *run, Py_ssize_t i) noexcept nogil:
    """Prefetch what the visit of row i will read beside Theta."""
    cdef int v
    prefetch_row(&run.rows, i)
    for v in range(0, run.family.kp, 8):
        prefetch(run.r + i * run.family.kp + v)
    prefetch(term_of(run, i))


cdef inline double *stepped(const Run *run) noexcept nogil:
    """Return where a block step leaves the new r."""
    return run.family.work + 9 * run.family.kp


cdef inline double step_of(Run *run, Py_ssize_t i, double *f, double skip) noexcept nogil:
    """Return the gap of block i at its scores ``f``, without the factor s_i w_i; where it exceeds ``skip``, `stepped` maximises the block."""
    cdef Family *s = &run.family
    cdef Term *term = term_of(run, i)
    cdef double weight = 1.0 if run.sample == NULL else run.sample[i], cost = 1.0
    if run.cost != NULL:
        cost = run.cost[i]
        divide(f, s.kp, cost)
    s.hint = &term.hint
    return s.step(s, f, run.r + i * s.kp, term.label, weight * term.square * run.scale / cost, skip, stepped(run), NULL, NULL)


cdef inline void take_step(Run *run, Py_ssize_t i, double factor, double *moved, int later, const double *products, double *scores) noexcept nogil:
    """Set r_i to `stepped`, write ``factor`` times its change to ``moved``, and add products[p] times that to row p of ``scores``, p < later."""
    cdef int v, p, kp = run.family.kp
    cdef const double *new = stepped(run)
    cdef double *r = run.r + i * kp
    cdef vec change
    for v in range(kp // LANES):
        change = (load(new, v) - load(r, v)) * splat(factor)
        store(r, v, load(new, v))
        store(moved, v, change)
        # from a register: what was just stored would be waited for
        for p in range(later):
            store(scores + p * kp, v, load(scores + p * kp, v) + splat(products[p]) * change)


cdef inline double weighed(const Run *run, Py_ssize_t i, double gap) noexcept nogil:
    """Return a block gap times s_i w_i."""
    return (1.0 if run.sample == NULL else run.sample[i]) * (1.0 if run.cost == NULL else run.cost[i]) * gap


cdef inline double visit(Run *run, Py_ssize_t i, double skip) noexcept nogil:
    """Maximise block i and return its gap before the step, times s_i w_i."""
    cdef int kp = run.family.kp
    cdef double *f = run.family.work + 8 * kp
    cdef double *moved = run.family.work + 10 * kp
    cdef double weight = 1.0 if run.sample == NULL else run.sample[i], gap
    if weight == 0.0:
        return 0.0
    row_scores(&run.rows, i, run.theta, kp, f)
    gap = step_of(run, i, f, skip)
    if gap > skip:
        take_step(run, i, 1.0, moved, 0, NULL, NULL)
        row_update(&run.rows, i, run.theta, kp, moved, -weight * run.scale, run.moved)
    return weighed(run, i, gap)


cdef inline void rest(Term *term, bint small) noexcept nogil:
    """Leave a row whose visits find a ``small`` gap out of 1, 3, 7, 7 ... passes over all rows."""
    term.rests = <short>min(2 * term.rested + 1, <int>MOST_RESTS) if small else 0
    term.rested = term.rests


cdef inline void wake(Run *run, double skip) noexcept nogil:
    """End the rest of rows whose gap exceeds ``skip``."""
    cdef Py_ssize_t i
    cdef Term *term
    for i in range(run.rows.n):
        term = term_of(run, i)
        if term.gap > skip:
            term.rests = term.rested = 0


cdef inline Py_ssize_t rows_awake(Run *run, Py_ssize_t *list) noexcept nogil:
    """List the rows that a pass over all rows visits, note that it leaves out the others, and return their number."""
    cdef Py_ssize_t i, count = 0
    cdef Term *term
    for i in range(run.rows.n):
        term = term_of(run, i)
        if term.rests > 0:
            term.rests -= 1
        else:
            list[count] = i
            count += 1
    return count


cdef inline void note_gap(Run *run, Py_ssize_t i, double gap, double skip, double *gaps, Py_ssize_t place, double *total) noexcept nogil:
    """Write the gap of a visit of row i to its place in ``gaps``, or where that is NULL to the row's term, and add it to ``total``."""
    if gaps != NULL:
        gaps[place] = gap
    else:
        term_of(run, i).gap = gap
        rest(term_of(run, i), gap <= skip)
    total[0] += gap


cdef inline void visit_singly(Run *run, const Py_ssize_t *list, Py_ssize_t count, Py_ssize_t known, double skip, double *gaps, double *total) noexcept nogil:
    """Do what `visit_each` does with dense rows one by one: a row's change of Theta and the scores of the next row take one loop."""
    cdef Py_ssize_t b, i, next
    cdef int d = run.rows.d, kp = run.family.kp
    cdef double *f = run.family.work + 8 * kp
    cdef double *moved = run.family.work + 10 * kp
    cdef const double *values = run.rows.values
    cdef double weight, gap
    if count > 0:
        dense_scores(values + list[0] * d, d, run.theta, kp, f)
    for b in range(count):
        i = list[b]
        next = list[b + 1] if b + 1 < count else i
        if b + AHEAD < known:
            prefetch_visit(run, list[b + AHEAD])
        weight = 1.0 if run.sample == NULL else run.sample[i]
        gap = step_of(run, i, f, skip) if weight != 0.0 else 0.0
        if weight != 0.0 and gap > skip:
            take_step(run, i, 1.0, moved, 0, NULL, NULL)
            dense_update_scores(values + i * d, d, run.theta, kp, moved, -weight * run.scale, values + next * d, f)
        else:
            dense_scores(values + next * d, d, run.theta, kp, f)
        note_gap(run, i, weighed(run, i, gap), skip, gaps, b, total)


cdef inline void visit_groups(Run *run, const Py_ssize_t *list, Py_ssize_t count, Py_ssize_t known, double skip, double *gaps, double *total) noexcept nogil:
    """Do what `visit_each` does with dense rows, GROUP of them between two products with Theta.

    A row i that moves by dr changes the scores of a later row j of its group by -s_i/(lambda n) (x_i.x_j) dr. Theta follows after the group, in
    one loop with the scores of the next one.
    """
    cdef Py_ssize_t first = 0, i
    cdef int d = run.rows.d, kp = run.family.kp, size, later, q, moves = 0
    cdef double *F = run.family.work + 12 * kp
    cdef double *D = run.family.work + (12 + GROUP) * kp
    cdef double *f
    cdef const double *x[GROUP]
    cdef const double *moved[GROUP]
    cdef double products[GROUP]
    cdef double weight, gap
    for q in range(GROUP):
        moved[q] = run.rows.values
    while first < count:
        size = <int>min(<Py_ssize_t>GROUP, count - first)
        for q in range(GROUP):
            x[q] = run.rows.values + list[first + min(q, size - 1)] * d
        dense_group(moved, moves, d, run.theta, kp, D, x, F)
        moves = 0
        for q in range(size):
            if first + 2 * GROUP + q < known:
                prefetch_visit(run, list[first + 2 * GROUP + q])
            i = list[first + q]
            weight = 1.0 if run.sample == NULL else run.sample[i]
            gap = 0.0
            if weight != 0.0:
                f = F + q * kp
                gap = step_of(run, i, f, skip)
                if gap > skip:
                    later = size - q - 1
                    dense_products(x[q], x + q + 1, later, d, products)
                    take_step(run, i, -weight * run.scale, D + moves * kp, later, products, f + kp)
                    moved[moves] = x[q]
                    moves += 1
            note_gap(run, i, weighed(run, i, gap), skip, gaps, first + q, total)
        first += GROUP
    for q in range(moves):
        dense_update(moved[q], d, run.theta, kp, D + q * kp, 1.0)


cdef inline bint in_groups(const Run *run) noexcept nogil:
    """Whether dense rows are visited in groups: the products of a group's rows must take less than the loads and stores of Theta that it saves.

    They do not without vectors, nor for long rows where a row of Theta is one short vector.
    """
    return LANES > 1 and (run.family.kp > 4 or run.rows.d <= 128)


cdef inline void visit_each(Run *run, const Py_ssize_t *list, Py_ssize_t count, Py_ssize_t known, double skip, double *gaps,
                            double *total) noexcept nogil:
    """Visit ``count`` listed examples in order, and prefetch what the next ones of the ``known`` will read; their gaps are added to ``total`` one by one.

    Each gap goes to its place in the list in ``gaps``, or where that is NULL to its example's term.
    """
    cdef Py_ssize_t b, i
    if run.rows.start == NULL:
        if in_groups(run):
            visit_groups(run, list, count, known, skip, gaps, total)
        else:
            visit_singly(run, list, count, known, skip, gaps, total)
        return
    for b in range(count):
        i = list[b]
        if b + 2 * AHEAD < known:
            prefetch(run.rows.start + list[b + 2 * AHEAD])
        if b + AHEAD < known:
            prefetch_visit(run, list[b + AHEAD])
        note_gap(run, i, visit(run, i, skip), skip, gaps, b, total)


cdef inline void judge_rows(Run *run, Py_ssize_t first, Py_ssize_t last, double *loss, double *offsets) noexcept nogil:
    """Add weighted losses and offsets of rows first..last - 1 at the present Theta and r; moves nothing, and refreshes their gaps."""
    cdef Family *s = &run.family
    cdef int q, v, kp = s.kp, d = run.rows.d, size
    cdef Py_ssize_t i = first
    cdef double *F = s.work + 12 * kp
    cdef double *f
    cdef Term *term
    cdef const double *x[GROUP]
    cdef double value, c, best, weight, cost, inner
    cdef vec a
    while i < last:
        size = 1
        if run.rows.start == NULL:
            size = <int>min(<Py_ssize_t>GROUP, last - i)
            for q in range(GROUP):
                x[q] = run.rows.values + (i + min(q, size - 1)) * d
            dense_group(x, 0, d, run.theta, kp, F, x, F)
        else:
            row_scores(&run.rows, i, run.theta, kp, F)
        for q in range(size):
            f = F + q * kp
            term = term_of(run, i)
            weight = 1.0 if run.sample == NULL else run.sample[i]
            cost = 1.0 if run.cost == NULL else run.cost[i]
            if run.cost != NULL:
                divide(f, kp, cost)
            if s.value != NULL:
                s.hint = &term.hint
                value = s.value(s, f, term.label)
            else:
                value = s.oracle(s, f, term.label, s.work + 9 * kp, &c)
            best = s.offset(s, run.r + i * kp, term.label)
            a = splat(0.0)
            for v in range(kp // LANES):
                a = a + load(f, v) * load(run.r + i * kp, v)
            inner = vsum(a)
            term.gap = weight * cost * (value - best - inner)
            loss[0] += weight * cost * value
            offsets[0] += weight * cost * best
            i += 1


cdef inline void values_of(Run *run, double loss, double offsets, double *primal, double *dual) noexcept nogil:
    """Primal and dual value from the sums over all rows."""
    cdef double square = 0.0
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>run.rows.d * run.family.kp):
        square += run.theta[i] * run.theta[i]
    primal[0] = 0.5 * run.lam * square + loss / run.mass
    dual[0] = offsets / run.mass - 0.5 * run.lam * square
