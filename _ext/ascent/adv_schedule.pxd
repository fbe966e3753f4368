# The schedule of every dual coordinate ascent: when it evaluates, shrinks, unshrinks, stops, and hears signals.
#
# A round is a pass over all rows and passes over the active ones, whose gap is large, until these have lost most of it. The gaps that visits find
# add up to an estimate; primal and dual value, which take a pass, are evaluated where that is near the tolerance, or after half as many passes again.
#
# Two ascents have no passes and no schedule: that of `ascent_pairs.pyx` and `climb` of `ascent_binary.pyx` keep the gradient of every row, and move
# the rows that gain most.

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from cpython.exc cimport PyErr_CheckSignals

from adv_loop cimport gap_scale, seconds, shuffle

cdef extern from *:
    """
    #ifndef ADV_SCHEDULE_H
    #define ADV_SCHEDULE_H
    /* Behind each: passes to a relative gap of 1e-3 at half of it, and at double, for zero_one on iris at C = 64 and letter at C = 1, and for
       absolute on calhousing at C = 0.01, which take 500, 94 and 7.8 as it is. */
    static const double adv_active = 0.02;  /* share of the mean gap above which a row is active: 520, 92, 7.9; 520, 90, 7.6 */
    static const double adv_whole = 0.9;    /* share of the rows from which on passes over the active ones save nothing: 556, 101, 8.0; 500, 94, 8.6 */
    static const double adv_done = 0.3;     /* share of the active rows' gap that their passes leave: 434, 91, 8.3; 618, 91, 7.3 */
    static const int adv_passes = 10;       /* passes over the active rows in a round, at most: 795, 106, 7.8; 421, 89, 7.8 */
    static const double adv_near = 1.2;     /* estimates of the gap below this multiple of the tolerance ask for an evaluation: 503, 91, 7.8; 494, 99, 7.8 */
    static const double adv_growth = 1.5;   /* passes between evaluations grow by this factor: 713, 107, 8.8; 495, 89, 7.8 */
    static const double adv_first = 2.0;    /* and by this many more passes: 500, 94, 7.8; 499, 94, 6.8 */
    static const double adv_still = 1e-3;   /* share of the gap that the tolerance allows below which a row is read, not moved: 532, 94, 7.8; 540, 91, 7.8 */
    static const double adv_hear = 0.2;     /* seconds between two looks for signals, which move no row */
    #endif
    """
    double ACTIVE "adv_active"
    double WHOLE "adv_whole"
    double DONE "adv_done"
    int ACTIVE_PASSES "adv_passes"
    double NEAR "adv_near"
    double GROWTH "adv_growth"
    double FIRST "adv_first"
    double STILL "adv_still"
    double HEAR "adv_hear"

cdef enum:
    GO_ON = -1
    CONVERGED = 0
    AT_PASSES = 1
    AT_SECONDS = 2
    PAUSED = 3           # or another thread has left

cdef struct Schedule

# What an ascent does once a round or a pass; 0, or not 0 where another thread has left. Theirs are `primal` and `dual` of the schedule, the sums
# `total` and `active` of the gaps that visits found, `count` of the active rows, and `visits`.
ctypedef int (*Step)(void *ascent, Schedule *s) except -1 nogil
ctypedef int (*Sweep)(void *ascent, Schedule *s, bint active) except -1 nogil

cdef struct Schedule:
    Step evaluate
    Sweep sweep              # visits all rows, or the active ones, in random order
    Step choose              # finds the rows whose gap exceeds `level`
    Step look                # reads the clock and hears signals
    double n                 # rows
    double mass              # what gaps are divided by: values are means
    double tol
    double most              # visits
    double turn              # passes after which no round begins
    double until             # seconds
    double pause             # passes after which an ascent that goes on later returns, after one round at least
    # policies
    double still
    double enough            # sum of gaps from which on a round goes on no longer; -infinity where values decide
    double spread            # what the gap that the tolerance allows is divided by for one row: 1, or the rows where values are sums
    double whole
    double done
    bint every               # evaluates after every round
    bint shared              # one thread alone reads the clock, in `look`
    # progress
    double visits, primal, dual, next_check
    double gap               # relative, by the last round's estimate
    double total, active, count
    double skip              # rows whose gap is at most this do not move
    double level
    double heard             # when signals were last looked for
    bint late
    bint begun               # whether primal and dual value are known
    # lists of rows, of ascents that visit one by one
    const double *gaps       # that of row i at i stride
    Py_ssize_t *order        # (n), made by `ascend_rows` where there are gaps
    Py_ssize_t stride
    uint64_t state


cdef inline int hear(double *heard) except -1 nogil:
    """Let Python see its signals, now and then."""
    cdef double now = seconds()
    if now - heard[0] > HEAR:
        heard[0] = now
        with gil:
            PyErr_CheckSignals()
    return 0


cdef inline int look_now(void *ascent, Schedule *s) except -1 nogil:
    if not seconds() <= s.until:
        s.late = True
    return hear(&s.heard)


cdef inline Py_ssize_t active_rows(const double *gaps, Py_ssize_t stride, Py_ssize_t n, double level, Py_ssize_t *rows, double *sum) noexcept nogil:
    """List the rows whose gap exceeds ``level``, add up their gaps and return their number."""
    cdef Py_ssize_t i, count = 0
    cdef double gap
    sum[0] = 0.0
    for i in range(n):
        gap = gaps[i * stride]
        if gap > level:
            rows[count] = i
            count += 1
            sum[0] += gap
    return count


cdef inline int choose_rows(void *ascent, Schedule *s) except -1 nogil:
    s.count = <double>active_rows(s.gaps, s.stride, <Py_ssize_t>s.n, s.level, s.order, &s.active)
    return 0


cdef inline Py_ssize_t shuffled(Schedule *s, bint active) noexcept nogil:
    """Put all rows, or the active ones, into random order and return their number."""
    cdef Py_ssize_t i, count = <Py_ssize_t>(s.count if active else s.n)
    if not active:
        for i in range(count):
            s.order[i] = i
    shuffle(s.order, count, &s.state)
    return count


cdef inline int swept(Schedule *s, bint active, double total) noexcept nogil:
    """Take the sum of the gaps that a pass found."""
    if active:
        s.total -= s.active
        s.active = total
        s.total += total
        s.visits += s.count
    else:
        s.total = total
        s.visits += s.n
    return 0


cdef inline void schedule_new(Schedule *s, Step evaluate, Sweep sweep, Py_ssize_t n, double mass, double tol, double max_passes, double turn,
                              double max_seconds) noexcept nogil:
    """Begin a schedule with the policies of most ascents; lists of rows, where there are any, are yet to be given."""
    s.evaluate, s.sweep, s.choose, s.look = evaluate, sweep, choose_rows, look_now
    s.n, s.mass, s.tol, s.most, s.turn, s.pause = <double>n, mass, tol, max_passes * n, turn, INFINITY
    s.heard = seconds()
    s.until = s.heard + max_seconds
    s.still, s.enough, s.spread, s.whole, s.done = STILL, -INFINITY, 1.0, WHOLE, DONE
    s.every = s.shared = s.late = s.begun = False
    s.visits, s.primal, s.dual, s.next_check, s.gap, s.skip = 0.0, 0.0, 0.0, FIRST, 0.0, 0.0
    s.order, s.gaps, s.stride = NULL, NULL, 1


cdef inline double passes_of(const Schedule *s) noexcept nogil:
    return s.visits / s.n


cdef inline int verdict(const Schedule *s) noexcept nogil:
    """Return why no round begins, or GO_ON. No visit is made that leaves no room for the evaluation after it; a round under way may exceed ``turn``."""
    if s.primal - s.dual <= s.tol * gap_scale(s.primal, s.dual):
        return CONVERGED
    if not passes_of(s) < s.turn or s.visits + 2.0 * s.n > s.most:
        return AT_PASSES
    if s.late or not (s.shared or seconds() <= s.until):
        return AT_SECONDS
    return GO_ON


cdef inline int ascend_round(void *ascent, Schedule *s) except -1 nogil:
    """Visit all rows, then the active ones until they have lost most of their gap; 1 where another thread has left."""
    cdef int passes
    cdef double goal
    if s.sweep(ascent, s, False):
        return 1
    s.level = ACTIVE * s.total / s.n
    if s.choose(ascent, s):
        return 1
    goal = s.done * s.active
    if s.count < s.whole * s.n and not s.total <= s.enough:
        for passes in range(ACTIVE_PASSES):
            if s.late or s.visits + s.count + s.n > s.most:
                break
            if s.sweep(ascent, s, True):
                return 1
            if s.active <= goal or s.total <= s.enough:
                break
    return 0


cdef inline int follow(void *ascent, Schedule *s) except -1 nogil:
    """Evaluate where the ascent begins, ascend, and return why the ascent ends."""
    cdef int code
    cdef double estimate
    cdef bint begun = False
    if not s.begun:
        s.visits = s.n
        if s.evaluate(ascent, s):
            return PAUSED
    while True:
        code = verdict(s)
        if code != GO_ON:
            return code
        if begun and passes_of(s) >= s.pause:
            return PAUSED
        begun = True
        s.skip = s.still * s.tol * gap_scale(s.primal, s.dual) / s.spread
        if ascend_round(ascent, s) or s.look(ascent, s):
            return PAUSED
        estimate = s.total / s.mass
        s.gap = estimate / gap_scale(s.dual + estimate, s.dual)
        if (s.every or s.late or estimate <= NEAR * s.tol * gap_scale(s.primal, s.dual) or passes_of(s) >= s.next_check or passes_of(s) >= s.turn
                or s.visits + 2.0 * s.n > s.most):
            if s.evaluate(ascent, s):
                return PAUSED
            s.visits += s.n
            s.next_check = GROWTH * passes_of(s) + FIRST


cdef inline int ascend_rows(void *ascent, Schedule *s, double *answer) except -1 nogil:
    """Do `follow`; ``answer`` receives passes, primal and dual value."""
    cdef int code
    if s.gaps != NULL:
        s.order = <Py_ssize_t *>malloc((<Py_ssize_t>s.n + 1) * sizeof(Py_ssize_t))
        if s.order == NULL:
            with gil:
                raise MemoryError("no memory for the order of the examples")
    try:
        code = follow(ascent, s)
    finally:
        free(s.order)
    answer[0], answer[1], answer[2] = passes_of(s), s.primal, s.dual
    return code
