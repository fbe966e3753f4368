"""Dual block-coordinate ascent for every compiled surrogate on linear scores, dense or CSR, without the GIL.

maximise over r_i in conv R(y_i):  D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 |Theta(r)|^2,  Theta(r) = -1/(lambda n) sum_i s_i x_i r_i'

with sample weights s, n = sum_i s_i, and cost weights w (S_w(f) = w S(f/w)). One visit maximises one block exactly.
What makes it fast, each measured (docs/notes/kernels.md, section 2): a fresh permutation every pass; shrinking - after a full pass up to
ten passes over the examples with a large gap; Theta stored d x kp; no work for examples whose gap is negligible, and no visits for a while;
dense examples in groups that share products with Theta.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, malloc, free
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from adv_simd cimport zeros
from adv_bind cimport family_free
from adv_check cimport check_examples, check_rows, demand
from adv_linear cimport rows_of
from adv_loop cimport bind, checked_width, shuffle
from adv_rounds cimport MOST_THREADS, Member, Rounds, ascend_together, copies_free, copies_new, enter, leave, work_together
from adv_schedule cimport Schedule, ascend_rows, schedule_new, shuffled, swept
from adv_visit cimport Run, Term, judge_rows, rows_awake, term_of, terms_new, values_of, visit_each, wake
include "width.pxi"


cdef class Progress:
    """Where an ascent that pauses stands between two calls of `solve`.

    ``pause`` are the passes after which a call returns, after one round at least; ``visits`` the examples visited so far. The caller sets
    the one, and adds to the other what it reads of the rows itself. It may move R and theta, which has to stay theta(R), and calls `moved` then.
    ``gap`` is the sum of the block gaps of the last round, each from its row's last visit, relative to the primal value that they make of the
    last dual value.
    """
    cdef public double pause
    cdef public Py_ssize_t visits
    cdef readonly double gap
    cdef double primal, dual, next_check
    cdef uint64_t state
    cdef Py_ssize_t count
    cdef Term *terms        # (count)

    def __cinit__(self, Py_ssize_t count, unsigned long long seed, double pause=INFINITY):
        demand(0 <= count < 1 << 40, "an ascent has fewer than 2^40 rows")
        self.pause, self.state, self.count = pause, seed, count
        self.terms = terms_new(count)
        if self.terms == NULL:
            raise MemoryError("no memory for what visits read of their rows")

    def moved(self):
        """End the rest of all rows: the caller has moved R and theta."""
        cdef Py_ssize_t i
        for i in range(self.count):
            self.terms[i].rests = self.terms[i].rested = 0

    def __dealloc__(self):
        free(self.terms)


cdef int evaluate(void *ascent, Schedule *s) except -1 nogil:
    """Primal and dual value at the present Theta and r: one pass that moves nothing, and refreshes the gaps."""
    cdef Run *run = <Run *>ascent
    cdef double loss = 0.0, offsets = 0.0
    judge_rows(run, 0, run.rows.n, &loss, &offsets)
    wake(run, s.skip)
    values_of(run, loss, offsets, &s.primal, &s.dual)
    return 0


cdef int sweep(void *ascent, Schedule *s, bint active) except -1 nogil:
    cdef Run *run = <Run *>ascent
    cdef double total = 0.0
    cdef Py_ssize_t count
    if active:
        count = shuffled(s, True)
    else:
        count = rows_awake(run, s.order)
        shuffle(s.order, count, &s.state)
        s.visits -= <double>(run.rows.n - count)  # `swept` counts all rows
    visit_each(run, s.order, count, count, s.skip, NULL, &total)
    return swept(s, active, total)


cdef int ascend(Run *run, double tol, double max_passes, double turn, double max_seconds, Progress at) except -1 nogil:
    """Return why the ascent ends, or pauses."""
    cdef Schedule s
    cdef double answer[3]
    cdef int code
    schedule_new(&s, evaluate, sweep, run.rows.n, run.mass, tol, max_passes, turn, max_seconds)
    s.pause, s.state = at.pause, at.state
    s.gaps, s.stride = &run.term.gap, run.apart * sizeof(Term) // sizeof(double)
    s.begun = at.visits != 0
    if s.begun:
        s.visits, s.primal, s.dual = <double>at.visits, at.primal, at.dual
        s.next_check = at.next_check
    code = ascend_rows(run, &s, answer)
    at.visits, at.primal, at.dual, at.next_check, at.gap, at.state = <Py_ssize_t>s.visits, s.primal, s.dual, s.next_check, s.gap, s.state
    return code


cdef class Team:
    """The threads of one ascent; `work` is one thread's part."""
    cdef Rounds rounds
    cdef Run *runs
    cdef Member *members
    cdef double tol, max_passes, turn, max_seconds
    cdef double *answers      # (K, 3) passes, primal and dual value

    def work(self, int t):
        """Take part as thread t to the end; return its code."""
        demand(self.members != NULL and 0 <= t < self.rounds.size, "a team has threads of its own")
        cdef int code
        cdef double *answer = self.answers + 3 * t
        try:
            with nogil:
                code = ascend_together(self.members + t, self.tol, self.max_passes, self.turn, self.max_seconds, answer)
        except BaseException:
            leave(&self.rounds.barrier)
            raise
        return code

    def __dealloc__(self):
        cdef int t
        if self.runs != NULL:
            for t in range(self.rounds.size):
                family_free(&self.runs[t].family)
                free(self.runs[t].moved)
        free(self.runs)
        free(self.members)
        free(self.answers)
        free(self.rounds.rows)
        free(self.rounds.active)
        free(self.rounds.gaps)
        copies_free(&self.rounds)


cdef Team gather(Run *run, int kind, int k, const double[::1] parameters, uint64_t seed, int threads, int together):
    """Return a team whose threads share the rows and r of ``run``; its Theta is copied."""
    cdef Team team = Team.__new__(Team)
    cdef Rounds *rounds = &team.rounds
    cdef Py_ssize_t n = run.rows.n
    cdef size_t size = <size_t>run.rows.d * run.family.kp
    cdef int t
    cdef int failed = copies_new(rounds, threads, together, size)
    rounds.rows = <Py_ssize_t *>malloc(2 * n * sizeof(Py_ssize_t))
    rounds.active = <Py_ssize_t *>malloc(2 * n * sizeof(Py_ssize_t))
    rounds.gaps = zeros(n)
    team.runs = <Run *>calloc(threads, sizeof(Run))
    team.members = <Member *>calloc(threads, sizeof(Member))
    team.answers = <double *>calloc(3 * threads, sizeof(double))
    if (failed or rounds.rows == NULL or rounds.active == NULL or rounds.gaps == NULL or team.runs == NULL or team.members == NULL or team.answers == NULL):
        raise MemoryError("no memory for the threads' copies of theta")
    for t in range(threads):
        team.runs[t] = run[0]
        team.runs[t].moved = NULL
        memset(&team.runs[t].family, 0, sizeof(team.runs[t].family))
    for t in range(threads):
        bind(&team.runs[t].family, kind, k, parameters)
        team.runs[t].moved = <int *>malloc(run.family.kp * sizeof(int))
        if team.runs[t].moved == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        enter(team.members + t, rounds, team.runs + t, t, run.theta, size, &seed)
    return team


def solve(int kind, int k, const double[::1] parameters, const double[::1] values, const int[::1] columns, const long long[::1] start,
          Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square, const double[::1] sample_weight, const double[::1] cost_weight,
          double[:, ::1] R, double[:, ::1] theta, double lam, double mass, double tol, double max_passes, double max_seconds,
          unsigned long long seed, int threads=1, int together=256, double turn=INFINITY, Progress progress=None):
    """Run the ascent in place on R (n, kp) and theta (d, kp); both padded with zeros to kp, theta = Theta(R) on entry.

    ``columns`` is empty for dense rows. Weights may be empty (all 1). Returns (code, passes, primal, dual); code 0 = converged,
    1 = limit of passes, which are at most ``max_passes`` (at least 1), or ``turn`` and what a round adds, 2 = limit of seconds. Several
    ``threads`` add up what they changed after every ``together`` visits of each; rows must be dense then. One thread can pause, with ``progress``: code 3, and the next call with it goes on, to the same bits as without the pause.
    """
    cdef Run run
    cdef Team team
    cdef int code, kp = checked_width(k), apart = 2 if threads > 1 else 1
    cdef Py_ssize_t i
    check_rows(values, columns, start, n, d)
    check_examples(y, n, k, sample_weight, cost_weight)
    demand(R.shape[0] == n and R.shape[1] == kp and theta.shape[0] == d and theta.shape[1] == kp, "R must be (n, kp) and theta (d, kp), padded")
    demand(square.shape[0] == n, "every row needs a squared length")
    demand(1 <= threads <= MOST_THREADS and together >= 1, f"an ascent has 1 to {MOST_THREADS} threads and at least one visit a round")
    demand(threads == 1 or (start.shape[0] == 0 and threads <= n), "several threads need dense rows, one at least for each")
    demand(progress is None or threads == 1, "one thread alone can pause")
    if progress is None:
        progress = Progress(n * apart, seed)
    demand(progress.count == n * apart and progress.visits >= 0, "an ascent's progress is that of its rows")
    bind(&run.family, kind, k, parameters)
    run.rows = rows_of(values, columns, start, n, d)
    run.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    run.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    run.r = &R[0, 0]
    run.theta = &theta[0, 0]
    run.mass, run.lam = mass, lam
    run.scale = 1.0 / (lam * mass)
    run.moved = <int *>malloc(run.family.kp * sizeof(int))
    run.apart = apart
    run.term = progress.terms
    for i in range(n):
        term_of(&run, i).label, term_of(&run, i).square = <int>y[i], square[i]
    try:
        if run.moved == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        if threads > 1:
            team = gather(&run, kind, k, parameters, seed, threads, together)
            team.tol, team.max_passes, team.turn, team.max_seconds = tol, max_passes, turn, max_seconds
            code = work_together(team.work, threads, &team.rounds.barrier)
            memcpy(run.theta, team.rounds.theta, <size_t>d * kp * sizeof(double))
            return code, team.answers[0], team.answers[1], team.answers[2]
        with nogil:
            code = ascend(&run, tol, max_passes, turn, max_seconds, progress)
    finally:
        free(run.moved)
        family_free(&run.family)
    return code, <double>progress.visits / n, progress.primal, progress.dual
