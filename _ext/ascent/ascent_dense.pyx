"""Dual block-coordinate ascent for every compiled surrogate on linear scores, dense or CSR, without the GIL.

maximise over r_i in conv R(y_i):  D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 |Theta(r)|^2,  Theta(r) = -1/(lambda n) sum_i s_i x_i r_i'

with sample weights s, n = sum_i s_i, and cost weights w (S_w(f) = w S(f/w)). One visit maximises one block exactly.
What makes it fast, each measured (docs/notes/kernels.md, section 2): a fresh permutation every pass; shrinking - after a full pass up to
ten passes over the examples with a large gap; Theta stored d x kp; no work for examples whose gap is negligible; dense examples in groups
that share products with Theta.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, malloc, free
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset
from cpython.exc cimport PyErr_CheckSignals

from adv_simd cimport zeros
from adv_bind cimport family_free
from adv_check cimport check_labels, check_rows, check_weights, demand
from adv_linear cimport rows_of
from adv_loop cimport bind, checked_width, gap_scale, seconds, shuffle
from adv_rounds cimport MOST_THREADS, Member, Rounds, ascend_together, copies_free, copies_new, enter, work_together
from adv_team cimport leave
from adv_visit cimport ACTIVE_PASSES, Run, Term, judge_rows, term_of, terms_new, values_of, visit_each


cdef void certify(Run *run, double lam, double *primal, double *dual) noexcept nogil:
    """Primal and dual value at the present Theta and r: one pass that moves nothing, and refreshes the gaps."""
    cdef double loss = 0.0, offsets = 0.0
    judge_rows(run, 0, run.rows.n, &loss, &offsets)
    values_of(run, lam, loss, offsets, primal, dual)


cdef class Progress:
    """Where an ascent that pauses stands between two calls of `solve`.

    ``pause`` are the passes after which a call returns, after one round at least; ``visits`` the examples visited so far. The caller sets
    the one, and adds to the other what it reads of the rows itself; what it makes of R and theta has to keep theta = Theta(R). ``gap`` is the sum of the block gaps of
    the last round, each from its row's last visit, relative to the primal value that they make of the last dual value.
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

    def __dealloc__(self):
        free(self.terms)


cdef int ascend(Run *run, double lam, double tol, double max_passes, double turn, double max_seconds, Progress at) except -1 nogil:
    """Return 0 when the relative gap reached ``tol``, 1 at a limit of passes, 2 at the limit of seconds, 3 at a pause.

    No visit is made that leaves no room in ``max_passes`` for the values after it; a round under way may exceed ``turn``.
    """
    cdef Py_ssize_t n = run.rows.n, i, m, visits = at.visits
    cdef Py_ssize_t *order = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    cdef double gap, total, active_total, goal, level, skip, next_check, started = seconds(), signals = started, now, most = max_passes * n
    cdef double primal = at.primal, dual = at.dual, passes = <double>visits / n
    cdef int inner, code = 1, rounds = 0
    cdef bint check
    if order == NULL:
        with gil:
            raise MemoryError("no memory for the order of the examples")
    next_check = at.next_check
    if visits == 0:
        certify(run, lam, &primal, &dual)
        passes = 1.0
        visits = n
        next_check = 2.0
    try:
        while True:
            if primal - dual <= tol * gap_scale(primal, dual):
                code = 0
                break
            if not passes < turn or visits + 2.0 * n > most:
                code = 1
                break
            now = seconds()
            if not now - started <= max_seconds:
                code = 2
                break
            if passes >= at.pause and rounds > 0:
                code = 3
                break
            rounds += 1
            # examples whose gap is far below what the stopping rule can see are read, not moved
            skip = 1e-3 * tol * gap_scale(primal, dual)
            for i in range(n):
                order[i] = i
            total = sweep(run, order, n, skip, &at.state)
            visits += n
            # shrinking: the examples that carry the gap, until they have lost most of it
            level = 0.02 * total / n
            m = 0
            active_total = 0.0
            for i in range(n):
                gap = term_of(run, i).gap
                if gap > level:
                    order[m] = i
                    m += 1
                    active_total += gap
            goal = 0.3 * active_total
            if m < 0.9 * n:
                for inner in range(ACTIVE_PASSES):
                    if <double>visits + m + n > most:
                        break
                    total -= active_total
                    active_total = sweep(run, order, m, skip, &at.state)
                    total += active_total
                    visits += m
                    if active_total <= goal:
                        break
            passes = <double>visits / n
            at.gap = total / run.mass / gap_scale(dual + total / run.mass, dual)
            now = seconds()
            check = total / run.mass <= 1.2 * tol * gap_scale(primal, dual) or passes >= next_check or passes >= turn or visits + 2.0 * n > most or now - started > max_seconds
            if check:
                certify(run, lam, &primal, &dual)
                visits += n
                passes = <double>visits / n
                next_check = 1.5 * passes + 2.0
            if now - signals > 0.2:
                signals = now
                with gil:
                    PyErr_CheckSignals()
    finally:
        free(order)
    at.visits, at.primal, at.dual, at.next_check = visits, primal, dual, next_check
    return code


cdef double sweep(Run *run, Py_ssize_t *rows, Py_ssize_t count, double skip, uint64_t *state) noexcept nogil:
    """Visit the listed examples in random order and return the sum of their gaps."""
    cdef double total = 0.0
    shuffle(rows, count, state)
    visit_each(run, rows, count, count, skip, NULL, &total)
    return total


cdef class Team:
    """The threads of one ascent; `work` is one thread's part."""
    cdef Rounds rounds
    cdef Run *runs
    cdef Member *members
    cdef double lam, tol, max_passes, turn, max_seconds
    cdef double *answers      # (K, 3) passes, primal and dual value

    def work(self, int t):
        """Take part as thread t to the end; return its code."""
        demand(self.members != NULL and 0 <= t < self.rounds.size, "a team has threads of its own")
        cdef int code
        cdef double *answer = self.answers + 3 * t
        try:
            with nogil:
                code = ascend_together(self.members + t, self.lam, self.tol, self.max_passes, self.turn, self.max_seconds, answer, answer + 1,
                                       answer + 2)
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


cdef Team gather(Run *run, int kind, int k, const double[::1] parameters, double lam, uint64_t seed, int threads, int together):
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


cdef int ascend_in_threads(Run *run, int kind, int k, const double[::1] parameters, double lam, double tol, double max_passes, double turn,
                           double max_seconds, uint64_t seed, int threads, int together, double *passes, double *primal, double *dual) except -1:
    """Return what `ascend` returns; the same bits for the same seed, number of threads and visits of a round."""
    cdef Team team = gather(run, kind, k, parameters, lam, seed, threads, together)
    team.lam, team.tol, team.max_passes, team.turn, team.max_seconds = lam, tol, max_passes, turn, max_seconds
    cdef int code = work_together(team.work, threads, &team.rounds.barrier)
    memcpy(run.theta, team.rounds.theta, <size_t>run.rows.d * run.family.kp * sizeof(double))
    passes[0], primal[0], dual[0] = team.answers[0], team.answers[1], team.answers[2]
    return code


def solve(int kind, int k, const double[::1] parameters, const double[::1] values, const int[::1] columns, const long long[::1] start,
          Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square, const double[::1] sample_weight, const double[::1] cost_weight,
          double[:, ::1] R, double[:, ::1] theta, double lam, double mass, double tol, double max_passes, double max_seconds,
          unsigned long long seed, int threads=1, int together=256, double turn=INFINITY, Progress progress=None):
    """Run the ascent in place on R (n, kp) and theta (d, kp); both padded with zeros to kp, theta = Theta(R) on entry.

    ``columns`` is empty for dense rows. Weights may be empty (all 1). Returns (code, passes, primal, dual); code 0 = converged,
    1 = limit of passes, which are at most ``max_passes`` (at least 1), or ``turn`` and what a round adds, 2 = limit of seconds. Several ``threads`` add up what they changed after every ``together`` visits of each; rows
    must be dense then. One thread can pause, with ``progress``: code 3, and the next call with it goes on, to the same bits as without the pause.
    """
    cdef Run run
    cdef double passes = 0.0, primal = 0.0, dual = 0.0
    cdef int code, kp = checked_width(k), apart = 2 if threads > 1 else 1
    cdef Py_ssize_t i
    check_rows(values, columns, start, n, d)
    check_labels(y, n, k)
    check_weights(sample_weight, n)
    check_weights(cost_weight, n)
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
    run.mass = mass
    run.scale = 1.0 / (lam * mass)
    run.moved = <int *>malloc(run.family.kp * sizeof(int))
    run.apart = apart
    run.term = progress.terms
    for i in range(n):
        term_of(&run, i).label, term_of(&run, i).square = y[i], square[i]
    try:
        if run.moved == NULL:
            raise MemoryError("no memory for the surrogate's scratch vectors")
        if threads > 1:
            code = ascend_in_threads(&run, kind, k, parameters, lam, tol, max_passes, turn, max_seconds, seed, threads, together,
                                     &passes, &primal, &dual)
            return code, passes, primal, dual
        with nogil:
            code = ascend(&run, lam, tol, max_passes, turn, max_seconds, progress)
    finally:
        free(run.moved)
        family_free(&run.family)
    return code, <double>progress.visits / n, progress.primal, progress.dual


def width(int k):
    """Return kp: the number of columns that R and theta have at this instruction set."""
    return checked_width(k)
