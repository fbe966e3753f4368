# Dual ascent by several threads: rounds of visits on private copies of Theta, exact sums in a fixed order, a measured step
# (docs/notes/kernels.md, section 10). All threads run the same control flow on the same numbers; only the clock is read by one thread for all.

from libc.math cimport fmax, fmin
from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from adv_simd cimport vec, load, store, vsum, splat, zeros, LANES
from adv_loop cimport random_bits, seconds, shuffle
from adv_schedule cimport Schedule, ascend_rows, hear, schedule_new, swept
from adv_visit cimport Run, judge_rows, values_of, visit_each

cdef extern from *:
    """
    #ifndef ADV_TEAM_H
    #define ADV_TEAM_H
    #if defined(_WIN32)
      #include <windows.h>
      #define adv_yield() SwitchToThread()
      #define adv_nap() Sleep(1)
    #else
      #include <sched.h>
      #include <time.h>
      #define adv_yield() sched_yield()
      static inline void adv_nap(void) { struct timespec pause = {0, 20000}; nanosleep(&pause, NULL); }
    #endif
    #if defined(__x86_64__) || defined(__i386__)
      #define adv_pause() __builtin_ia32_pause()
    #else
      #define adv_pause() ((void)0)
    #endif
    #if defined(_MSC_VER) && !defined(__clang__)
      #include <intrin.h>
      #define adv_read(p) ((int)_InterlockedOr((volatile long *)(p), 0))
      #define adv_write(p, value) ((void)_InterlockedExchange((volatile long *)(p), (value)))
      #define adv_count(p) ((int)_InterlockedIncrement((volatile long *)(p)))
    #else
      #define adv_read(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
      #define adv_write(p, value) __atomic_store_n((p), (value), __ATOMIC_RELEASE)
      #define adv_count(p) __atomic_add_fetch((p), 1, __ATOMIC_ACQ_REL)
    #endif
    enum { ADV_PAUSES = 4000, ADV_YIELDS = 64 };
    /* The counts lie on cache lines of their own: all threads read one while they write the other. */
    typedef struct { char before[64]; int arrived; char between[64]; int turn; char after[64]; int left; char last[64]; } adv_barrier;
    /* Return 0 when all `size` threads have come, 1 when one of them has given up. A thread that waits for long yields the core, and sleeps in
       the end: the thread that all wait for may need the core. */
    static inline int adv_wait(adv_barrier *b, int size) {
      int turn = adv_read(&b->turn), pauses = 0;
      if (adv_count(&b->arrived) == size) {
        adv_write(&b->arrived, 0);
        adv_write(&b->turn, turn + 1);
        return adv_read(&b->left);
      }
      while (adv_read(&b->turn) == turn) {
        if (adv_read(&b->left)) return 1;
        if (++pauses < ADV_PAUSES) adv_pause();
        else if (pauses < ADV_PAUSES + ADV_YIELDS) adv_yield();
        else adv_nap();
      }
      return adv_read(&b->left);
    }
    static inline void adv_leave(adv_barrier *b) { adv_write(&b->left, 1); }
    #endif
    """
    ctypedef struct Barrier "adv_barrier":
        pass
    int wait_for_all "adv_wait"(Barrier *b, int size) noexcept nogil
    void leave "adv_leave"(Barrier *b) noexcept nogil

cdef enum:
    MOST_THREADS = 256
    CELLS = 8            # numbers of a cache line

cdef struct Rounds:
    int size             # K
    int together         # B, visits of a thread between two sums
    Py_ssize_t length    # of a copy of Theta
    double *theta        # (K, length) Theta, the same bits in every copy
    double *moved        # (2, K, length) Theta + sigma times what the thread's visits add; two, so that one barrier a round is enough
    Py_ssize_t *rows     # (2, n) rows by owner: the list that is visited, and the one that the next is dealt from
    Py_ssize_t *active   # (2, n) the same for those whose gap is large
    double *gaps         # (n) by position in the list, so that neighbours belong to one thread
    double *cells        # (2, K, CELLS) what the threads add up
    bint late            # whether the time is up
    Barrier barrier

cdef struct Member:
    Rounds *team
    Run *run
    int t
    int turn             # which half of `moved` is written next
    int cell             # which half of `cells`
    int side             # which half of `rows`
    int active_side
    double sigma
    double mean          # of the measured least valid sigma
    double scale         # 1/(lambda mass)
    uint64_t state
    Py_ssize_t counts[MOST_THREADS]     # rows of each owner's list
    Py_ssize_t actives[MOST_THREADS]


cdef inline int copies_new(Rounds *rounds, int threads, int together, size_t size) noexcept nogil:
    """Make room for every thread's copies of a Theta of ``size`` numbers; -1 when memory is short. Release with `copies_free`, in either case."""
    memset(rounds, 0, sizeof(Rounds))
    rounds.size, rounds.together = threads, together
    rounds.length = (size + CELLS - 1) // CELLS * CELLS
    rounds.theta = zeros(threads * rounds.length)
    rounds.moved = zeros(2 * threads * rounds.length)
    rounds.cells = zeros(2 * threads * CELLS)
    return -1 if rounds.theta == NULL or rounds.moved == NULL or rounds.cells == NULL else 0


cdef inline void copies_free(Rounds *rounds) noexcept nogil:
    free(rounds.theta)
    free(rounds.moved)
    free(rounds.cells)


cdef inline void enter(Member *m, Rounds *team, Run *run, int t, const double *theta, size_t size, uint64_t *seed) noexcept nogil:
    """Let thread t begin at ``theta`` with its own stream of random bits; ``run`` is its own, with the scale of one thread."""
    m.team, m.run, m.t = team, run, t
    m.sigma = m.mean = 1.0
    m.scale = run.scale
    m.state = random_bits(seed)
    memcpy(team.theta + t * team.length, theta, size * sizeof(double))


cdef inline int work_together(work, int threads, Barrier *barrier) except? -2:
    """Call ``work(t)`` for every thread t at once, and return what it gives for thread 0; errors are raised when all threads have ended."""
    import threading
    cdef int code = 0
    others, raised = [], None
    try:
        for t in range(1, threads):
            thread = threading.Thread(target=work, args=(t,), daemon=True)
            thread.start()
            others.append(thread)
        code = work(0)
    except BaseException as error:
        leave(barrier)
        raised = error
    for thread in others:
        while thread.is_alive():  # they write to memory that is freed after this
            try:
                thread.join()
            except BaseException as error:
                leave(barrier)
                raised = error
    if raised is not None:
        raise raised
    return code


cdef inline Py_ssize_t cut(Py_ssize_t n, int size, int t) noexcept nogil:
    """Where part t of ``size`` nearly equal parts of n begins."""
    return n // size * t + (n % size) * t // size


cdef inline Py_ssize_t start_of(const Py_ssize_t *counts, int t) noexcept nogil:
    cdef Py_ssize_t start = 0
    cdef int u
    for u in range(t):
        start += counts[u]
    return start


cdef inline int add_up(Member *m, double *values, int count) noexcept nogil:
    """Replace ``values`` by their sums over the threads, added in the order of the threads; 1 if one has left."""
    cdef Rounds *team = m.team
    cdef double *cells = team.cells + m.cell * team.size * CELLS
    cdef int u, j
    for j in range(count):
        cells[m.t * CELLS + j] = values[j]
    if wait_for_all(&team.barrier, team.size):
        return 1
    for j in range(count):
        values[j] = 0.0
        for u in range(team.size):
            values[j] += cells[u * CELLS + j]
    m.cell ^= 1
    return 0


cdef inline int deal(Member *m, Py_ssize_t *lists, int *turn, Py_ssize_t *counts) noexcept nogil:
    """Shuffle the thread's part of a list and deal the owners anew: thread t takes the t-th slice of every part."""
    cdef Rounds *team = m.team
    cdef Py_ssize_t *old = lists + turn[0] * m.run.rows.n
    cdef Py_ssize_t *new = lists + (1 - turn[0]) * m.run.rows.n
    cdef Py_ssize_t before[MOST_THREADS]
    cdef Py_ssize_t first, taken, start = 0
    cdef int u, t
    shuffle(old + start_of(counts, m.t), counts[m.t], &m.state)
    if wait_for_all(&team.barrier, team.size):
        return 1
    for u in range(team.size):
        before[u] = counts[u]
    for t in range(team.size):
        counts[t] = 0
        for u in range(team.size):
            counts[t] += cut(before[u], team.size, t + 1) - cut(before[u], team.size, t)
    new += start_of(counts, m.t)
    for u in range(team.size):
        first = cut(before[u], team.size, m.t)
        taken = cut(before[u], team.size, m.t + 1) - first
        memcpy(new, old + start + first, taken * sizeof(Py_ssize_t))
        new += taken
        start += before[u]
    turn[0] = 1 - turn[0]
    return 0


cdef inline void combine(Member *m) noexcept nogil:
    """Theta += sum_t (v_t - Theta)/sigma, in the order of t, and the next sigma.

    The private models are valid when sigma is at least |sum_t delta_t|^2 / sum_t |delta_t|^2: 1 where the threads move at right angles, K
    where they move alike.
    """
    cdef Rounds *team = m.team
    cdef double *theta = team.theta + m.t * team.length
    cdef const double *moved = team.moved + m.turn * team.size * team.length
    cdef vec old, change, together, squares = splat(0.0), apart = splat(0.0), inverse = splat(1.0 / m.sigma)
    cdef int u
    cdef Py_ssize_t v
    cdef double least, sum_apart
    for v in range(team.length // LANES):
        old = load(theta + v * LANES, 0)
        together = splat(0.0)
        for u in range(team.size):
            change = load(moved + u * team.length + v * LANES, 0) - old
            together = together + change
            apart = apart + change * change
        squares = squares + together * together
        store(theta + v * LANES, 0, old + together * inverse)
    sum_apart = vsum(apart)
    if sum_apart > 0.0:
        least = vsum(squares) / sum_apart
        m.mean += (0.5 if least > m.mean else 0.1) * (least - m.mean)
        m.sigma = fmin(<double>team.size, fmax(1.0, m.mean))
    m.turn ^= 1


cdef inline int visit_list(Member *m, const Py_ssize_t *list, const Py_ssize_t *counts, double skip, double *total) noexcept nogil:
    """Visit the thread's part of a list in rounds; ``total`` receives the sum of its gaps."""
    cdef Rounds *team = m.team
    cdef Py_ssize_t start = start_of(counts, m.t), count = counts[m.t], longest = 0, first
    cdef double *gaps = team.gaps + start
    cdef int u
    list += start
    for u in range(team.size):
        longest = max(longest, counts[u])
    total[0] = 0.0
    first = 0
    while first < longest:
        m.run.theta = team.moved + (m.turn * team.size + m.t) * team.length
        memcpy(m.run.theta, team.theta + m.t * team.length, team.length * sizeof(double))
        m.run.scale = m.sigma * m.scale
        visit_each(m.run, list + first, min(team.together, count - first), count - first, skip, gaps + first, total)
        if wait_for_all(&team.barrier, team.size):
            return 1
        combine(m)
        first += team.together
    return 0


cdef inline int evaluate_together(void *ascent, Schedule *s) except -1 nogil:
    """Primal and dual value: every thread judges its part of the rows."""
    cdef Member *m = <Member *>ascent
    cdef Py_ssize_t n = m.run.rows.n
    cdef double sums[2]
    sums[0] = sums[1] = 0.0
    m.run.theta = m.team.theta + m.t * m.team.length
    judge_rows(m.run, cut(n, m.team.size, m.t), cut(n, m.team.size, m.t + 1), &sums[0], &sums[1])
    if add_up(m, sums, 2):
        return 1
    values_of(m.run, sums[0], sums[1], &s.primal, &s.dual)
    return 0


cdef inline int sweep_together(void *ascent, Schedule *s, bint active) except -1 nogil:
    cdef Member *m = <Member *>ascent
    cdef Py_ssize_t *lists = m.team.active if active else m.team.rows
    cdef Py_ssize_t *counts = &m.actives[0] if active else &m.counts[0]
    cdef int *side = &m.active_side if active else &m.side
    cdef double total
    if deal(m, lists, side, counts) or visit_list(m, lists + side[0] * m.run.rows.n, counts, s.skip, &total) or add_up(m, &total, 1):
        return 1
    return swept(s, active, total)


cdef inline int choose_together(void *ascent, Schedule *s) except -1 nogil:
    """Find the active rows: each thread those of its own."""
    cdef Member *m = <Member *>ascent
    cdef Rounds *team = m.team
    cdef Py_ssize_t n = m.run.rows.n, first = start_of(m.counts, m.t), i, count = 0
    cdef const Py_ssize_t *list = team.rows + m.side * n
    cdef Py_ssize_t *chosen = team.active + first
    cdef double sums[2]
    cdef int u
    sums[1] = 0.0
    for i in range(first, first + m.counts[m.t]):
        if team.gaps[i] > s.level:
            chosen[count] = list[i]
            count += 1
            sums[1] += team.gaps[i]
    sums[0] = <double>count
    if add_up(m, sums, 2):
        return 1
    for u in range(team.size):
        m.actives[u] = <Py_ssize_t>team.cells[((m.cell ^ 1) * team.size + u) * CELLS]
    memcpy(team.active + n + start_of(m.actives, m.t), chosen, m.actives[m.t] * sizeof(Py_ssize_t))
    m.active_side = 1
    s.count, s.active = sums[0], sums[1]
    return 0


cdef inline int look_together(void *ascent, Schedule *s) except -1 nogil:
    """Let the first thread read the clock for all."""
    cdef Member *m = <Member *>ascent
    if m.t == 0:
        m.team.late = not seconds() <= s.until
        hear(&s.heard)
    if wait_for_all(&m.team.barrier, m.team.size):
        return 1
    s.late = m.team.late
    return 0


cdef inline int ascend_together(Member *m, double tol, double max_passes, double turn, double max_seconds, double *answer) except -1 nogil:
    """Return why the ascent ends, on every thread; ``answer`` receives passes, primal and dual value."""
    cdef Rounds *team = m.team
    cdef Py_ssize_t n = m.run.rows.n, i
    cdef Schedule s
    cdef int u
    for u in range(team.size):
        m.counts[u] = cut(n, team.size, u + 1) - cut(n, team.size, u)
    for i in range(cut(n, team.size, m.t), cut(n, team.size, m.t + 1)):
        team.rows[i] = i
    m.side = 0
    schedule_new(&s, evaluate_together, sweep_together, n, m.run.mass, tol, max_passes, turn, max_seconds)
    s.choose, s.look, s.shared, s.late = choose_together, look_together, True, not max_seconds >= 0.0
    return ascend_rows(m, &s, answer)
