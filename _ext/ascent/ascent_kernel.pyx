"""Dual block-coordinate ascent on a kernel matrix, for every compiled surrogate, without the GIL.

maximise over r_i in conv R(y_i):  D(r) = 1/n sum_i s_i w_i c(r_i) - lambda/2 <A, K A>,  A = -1/(lambda n) s r,  F = K A

with sample weights s, n = sum_i s_i, and cost weights w (S_w(f) = w S(f/w)). The scores of m rows are kept class by class, (k, m). A survey takes
the gaps of all rows; those that carry most of it are visited in random order, a chunk at a time: exact steps in turn, each of which moves the
scores of the chunk alone, then one product with the chunk's rows of K for the scores of all. K may be in single precision; scores, dual variables
and steps are not (docs/notes/kernels.md, section 3). The sets conv R(y_i) are a surrogate's own, with its exact block step, or hulls of listed points
(`solve_listed`), the constraints of a row in constraint generation.

What reads all of K stands here too: `examine` checks it, `extend` copies a block, `accumulate` brings the scores of all rows up to date.

One file: surveys, visits and products read K in the same tiles.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport malloc, free

from adv_simd cimport vec, load, store, vmax, vsum, hmax, splat, zeros, LANES, prefetch
from adv_family cimport Family
from adv_lanes cimport GROUPS
from adv_bind cimport family_free
from adv_check cimport check_examples, check_positions, demand
from adv_loop cimport bind, checked_width
from adv_schedule cimport AT_PASSES, AT_SECONDS, CONVERGED, Schedule, ascend_round, choose_rows, look_now, schedule_new, shuffled, swept
include "width.pxi"

cdef extern from *:
    """
    /* Vectors of floats, twice as many as doubles. */
    #if ADV_LANES == 1
      typedef float adv_half;
      static inline adv_half adv_half_load(const float *p, int j) { return p[j]; }
      static inline adv_half adv_half_set(float a) { return a; }
      static inline void adv_half_store(float *p, int j, adv_half a) { p[j] = a; }
      #define ADV_HALVES 1
    #else
      typedef float adv_half __attribute__((vector_size(8 * ADV_LANES)));
      typedef float adv_half_u __attribute__((vector_size(8 * ADV_LANES), aligned(4), may_alias));
      static inline adv_half adv_half_load(const float *p, int j) { return *(const adv_half_u *)(p + 2 * ADV_LANES * j); }
      static inline void adv_half_store(float *p, int j, adv_half a) { *(adv_half_u *)(p + 2 * ADV_LANES * j) = a; }
      static inline adv_half adv_half_set(float a) { return a - (adv_half){0}; }
      #define ADV_HALVES (2 * ADV_LANES)
    #endif
    static const float adv_no_scores[8 * ADV_HALVES] = {0};
    /* sums = f + sum over the members a of factor_a rows[a], eight vectors of them from column `start` on: enough in flight to hide the latency of
       a multiply-add. */
    #define ADV_SUM(name, real, pack, load, set, store) \\
      static inline void name(const real **rows, const int *member, const double *factor, int members, Py_ssize_t start, const real *f, real *sums) { \\
        pack v0 = load(f, 0), v1 = load(f, 1), v2 = load(f, 2), v3 = load(f, 3), v4 = load(f, 4), v5 = load(f, 5), v6 = load(f, 6), v7 = load(f, 7); \\
        for (int a = 0; a < members; a++) { \\
          const real *row = rows[member[a]] + start; \\
          pack t = set((real)factor[a]); \\
          v0 += t * load(row, 0); v1 += t * load(row, 1); v2 += t * load(row, 2); v3 += t * load(row, 3); \\
          v4 += t * load(row, 4); v5 += t * load(row, 5); v6 += t * load(row, 6); v7 += t * load(row, 7); \\
        } \\
        store(sums, 0, v0); store(sums, 1, v1); store(sums, 2, v2); store(sums, 3, v3); \\
        store(sums, 4, v4); store(sums, 5, v5); store(sums, 6, v6); store(sums, 7, v7); \\
      }
    ADV_SUM(adv_sum_rows, double, adv_vec, adv_load, adv_set, adv_store)
    ADV_SUM(adv_sum_singles, float, adv_half, adv_half_load, adv_half_set, adv_half_store)
    """
    int HALVES "ADV_HALVES"
    const float *no_scores "adv_no_scores"
    void sum_rows "adv_sum_rows"(const double **rows, const int *member, const double *factor, int members, Py_ssize_t start, const double *f,
                                 double *sums) noexcept nogil
    void sum_singles "adv_sum_singles"(const float **rows, const int *member, const double *factor, int members, Py_ssize_t start, const float *f,
                                       float *sums) noexcept nogil

ctypedef fused value:
    double
    float

cdef enum:
    FEW_PASSES = 3       # passes over the examples with a large gap between two surveys that take them one by one
    PAIRS = 30           # moves of weight between listed points in a visit
    GROUP = 8            # rows of K that `accumulate` reads side by side
    CACHED = 16384       # bytes of K that a tile has: half of a small first cache
    VECTORS = 8          # of scores that are summed in registers
    CHUNK = 32           # rows that are visited before the scores of all others follow
    SWEEPS = 2           # visits of each
    MOST = 1024          # rows of a chunk that a caller may ask for
    TURNED = 16          # rows of a block whose mirror image is written together

cdef double SURVEYED = 1.0 / 64.0  # visits that the gap of an example in a survey counts for: surveys and visits have the same limit
cdef double SURVEYED_EACH = 0.25    # the same where a survey takes them one by one
cdef double WORTH = 0.5             # examples are visited whose gap is above this share of the mean
cdef double WORTH_EACH = 0.3        # the same where a survey takes them one by one

cdef struct Listed:
    # sets conv R(y_i) that are given by some of their points: those of example i are first_i to first_(i+1)
    const Py_ssize_t *first
    const double *r           # (points, k)
    const double *offset      # c of each
    double *weight            # beta, of each; sums to one over an example's
    double *value             # scratch, (points of the example that has most)
    double *scores            # scratch, (k)

cdef struct Sum:
    # what rows of K are added to the scores: factors of each class, for the rows that have one
    int k
    int room          # rows at most
    int *count        # (k,)
    int *member       # (k, room)
    double *factor    # (k, room)

cdef struct Chunk:
    # rows that are visited in turn before the scores of all others follow
    int room          # most rows
    int sweeps
    double *scores    # (room, kp): before the first visit
    double *change    # (room, kp): of the coefficients A
    double *block     # (room, room): K among the rows
    double *step      # (2 kp): the change of a visit, and the scores before it
    const double **rows
    const float **singles
    Sum sum

cdef struct Run:
    Family family
    Py_ssize_t m
    const double *kernel      # (m, stride), or
    const float *single       # the same in single precision
    Py_ssize_t stride
    double *f                 # (k, f_stride): scores, class by class
    Py_ssize_t f_stride
    double *r                 # (m, kp)
    const Py_ssize_t *y
    const double *sample      # s_i or NULL
    const double *cost        # w_i or NULL
    double *gap               # (m,) block gaps at the last visit or survey, times s_i w_i
    double scale              # 1/(lambda n)
    double *hint              # (m,) see Family.hint
    double *lanes             # scratch of a survey, or NULL where the family has none
    const Listed *listed      # NULL: the family's sets
    Chunk chunk


cdef inline void add_class(const value **rows, const int *member, const double *factor, int members, Py_ssize_t start, Py_ssize_t stop, double *f) noexcept nogil:
    """f += sum over the members a of factor_a rows[a] over the columns start..stop - 1; f and the rows are those from column 0 on."""
    cdef Py_ssize_t j = start, begin, i
    cdef int a
    cdef value s
    cdef double wide[VECTORS * 8]
    cdef float narrow[VECTORS * 16]
    while j < stop:
        if value is float:
            begin = min(j, stop - VECTORS * HALVES)
        else:
            begin = min(j, stop - VECTORS * LANES)
        if begin < 0:
            break
        # the last columns are summed beside some before them, which is as fast as a whole block
        if value is float:
            sum_singles(rows, member, factor, members, begin, no_scores, narrow)
            for i in range(j - begin, VECTORS * HALVES):
                f[begin + i] += narrow[i]
            j = begin + VECTORS * HALVES
        else:
            if begin == j:
                sum_rows(rows, member, factor, members, begin, f + begin, f + begin)
            else:
                sum_rows(rows, member, factor, members, begin, f + begin, wide)
                for i in range(j - begin, VECTORS * LANES):
                    f[begin + i] = wide[i]
            j = begin + VECTORS * LANES
    for j in range(j, stop):
        if value is float:
            s = 0.0
            for a in range(members):
                s += <float>factor[a] * rows[member[a]][j]
            f[j] += s
        else:
            for a in range(members):
                f[j] += factor[a] * rows[member[a]][j]


cdef inline void add_rows(const value **rows, const Sum *sum, Py_ssize_t count, double *f, Py_ssize_t stride) noexcept nogil:
    """f[c] += sum_a factor_ca rows[a] over ``count`` columns, by tiles that serve every class while they are in the first cache."""
    cdef Py_ssize_t start = 0, least = VECTORS * 16, tile = max(least, CACHED // (sum.room * <Py_ssize_t>sizeof(value)) // least * least)
    cdef int c
    while start < count:
        for c in range(sum.k):
            if sum.count[c]:
                add_class(rows, sum.member + c * sum.room, sum.factor + c * sum.room, sum.count[c], start, min(start + tile, count), f + c * stride)
        start += tile


cdef inline double visit(Run *run, Py_ssize_t i, const double *scores, double diagonal, double skip, double *step, int *moved) noexcept nogil:
    """Maximise block i at its scores and return its gap before, times s_i w_i; where it moves, write the change of its coefficients to ``step``."""
    cdef Family *s = &run.family
    cdef int c, v, kp = s.kp
    cdef double *f = s.work + 8 * kp
    cdef double *new = s.work + 9 * kp
    cdef double *r = run.r + i * kp
    cdef double weight = 1.0, cost = 1.0, gap
    cdef vec factor
    moved[0] = False
    if run.sample != NULL:
        weight = run.sample[i]
        if weight == 0.0:
            return 0.0
    if run.cost != NULL:
        cost = run.cost[i]
        for c in range(kp):
            f[c] = scores[c] / cost
        scores = f
    s.hint = run.hint + i
    gap = s.step(s, scores, r, run.y[i], weight * diagonal * run.scale / cost, skip, new, NULL, NULL)
    if gap > skip:
        moved[0] = True
        factor = splat(-weight * run.scale)
        for v in range(kp // LANES):
            store(step, v, factor * (load(new, v) - load(r, v)))
            store(r, v, load(new, v))
    return weight * cost * gap


cdef inline double open_gap(const Listed *listed, const double *f, int k, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t *best, Py_ssize_t *worst) noexcept nogil:
    """Return the largest c + r.f of an example's points less their mean, the point that has it, and the point with weight that has the smallest."""
    cdef Py_ssize_t j
    cdef int c
    cdef double value, mean = 0.0
    best[0] = worst[0] = start
    for j in range(start, stop):
        value = listed.offset[j]
        for c in range(k):
            value += listed.r[j * k + c] * f[c]
        listed.value[j - start] = value
        if value > listed.value[best[0] - start]:
            best[0] = j
        if listed.weight[j] > 0.0:
            mean += listed.weight[j] * value
            if not listed.weight[worst[0]] > 0.0 or value < listed.value[worst[0] - start]:
                worst[0] = j
    return listed.value[best[0] - start] - mean


cdef inline double visit_listed(Run *run, Py_ssize_t i, const double *scores, double diagonal, double skip, double *change, int *moved) noexcept nogil:
    """The same among listed points, by moving weight from one to another until most of the gap is gone."""
    cdef const Listed *listed = run.listed
    cdef int c, k = run.family.k, move
    cdef Py_ssize_t best, worst, start = listed.first[i], stop = listed.first[i + 1]
    cdef double *f = listed.scores
    cdef double weight = run.sample[i], cost = run.cost[i], curvature = weight * diagonal * run.scale / cost, gap, t, apart, square, climb
    moved[0] = False
    if weight == 0.0:
        return 0.0
    for c in range(k):
        f[c] = scores[c] / cost
    gap = open_gap(listed, f, k, start, stop, &best, &worst)
    if not gap > skip:
        return weight * cost * gap
    moved[0] = True
    for c in range(k):
        change[c] = 0.0
    for move in range(PAIRS):
        square = 0.0
        for c in range(k):
            apart = listed.r[best * k + c] - listed.r[worst * k + c]
            square += apart * apart
        climb = listed.value[best - start] - listed.value[worst - start]
        t = listed.weight[worst]
        if curvature * square * t > climb:
            t = climb / (curvature * square)
        listed.weight[best] += t
        listed.weight[worst] -= t
        for c in range(k):
            apart = t * (listed.r[best * k + c] - listed.r[worst * k + c])
            change[c] -= weight * run.scale * apart
            f[c] -= curvature * apart
        if open_gap(listed, f, k, start, stop, &best, &worst) <= 0.05 * gap:
            break
    return weight * cost * gap


cdef inline void own_scores(const double *base, const double *block, const double *change, const int *moved, int count, int kp, double *scores) noexcept nogil:
    """scores = base + sum over the rows b that moved of block_b change_b; in two sums, each of which waits for itself alone."""
    cdef int v, b
    cdef vec s, other
    for v in range(kp // LANES):
        s, other = load(base, v), splat(0.0)
        b = 0
        while b + 1 < count:
            s = s + splat(block[moved[b]]) * load(change + moved[b] * kp, v)
            other = other + splat(block[moved[b + 1]]) * load(change + moved[b + 1] * kp, v)
            b += 2
        if b < count:
            s = s + splat(block[moved[b]]) * load(change + moved[b] * kp, v)
        store(scores, v, s + other)


cdef double visit_chunk(Run *run, const Py_ssize_t *rows, int count, double skip) noexcept nogil:
    """Visit the listed examples in turn, each at scores that know of the steps before; then the scores of all examples follow. Returns the sum of the gaps at the first visits."""
    cdef Chunk *chunk = &run.chunk
    cdef Sum *sum = &chunk.sum
    cdef int a, b, c, v, sweep, moved, any_moved, members, ever = 0, k = run.family.k, kp = run.family.kp, vectors = kp // LANES
    cdef int order[MOST]     # rows that have moved, as they did
    cdef char known[MOST]    # whether a row has
    cdef Py_ssize_t i, stride = run.f_stride
    cdef double gap, total = 0.0
    cdef double *f = run.f
    cdef double *scores = chunk.scores
    cdef double *change = chunk.change
    cdef double *block = chunk.block
    cdef double *step = chunk.step
    cdef double *now = chunk.step + kp
    for a in range(count):
        i = rows[a]
        for c in range(k):
            scores[a * kp + c] = f[c * stride + i]
        if run.single != NULL:
            chunk.singles[a] = run.single + i * run.stride
            for b in range(a, count):
                block[a * count + b] = block[b * count + a] = chunk.singles[a][rows[b]]
        else:
            chunk.rows[a] = run.kernel + i * run.stride
            for b in range(a, count):
                block[a * count + b] = block[b * count + a] = chunk.rows[a][rows[b]]
        known[a] = 0
    for sweep in range(chunk.sweeps):
        any_moved = False
        for a in range(count):
            i = rows[a]
            own_scores(scores + a * kp, block + a * count, change, order, ever, kp, now)
            if run.listed == NULL:
                gap = visit(run, i, now, block[a * count + a], skip, step, &moved)
            else:
                gap = visit_listed(run, i, now, block[a * count + a], skip, step, &moved)
            if sweep == 0:
                run.gap[i] = gap
                total += gap
            if moved:
                any_moved = True
                if known[a]:
                    for v in range(vectors):
                        store(change + a * kp, v, load(change + a * kp, v) + load(step, v))
                else:
                    known[a] = 1
                    order[ever] = a
                    ever += 1
                    for v in range(vectors):
                        store(change + a * kp, v, load(step, v))
        if not any_moved:
            break
    for c in range(k):
        sum.count[c] = 0
    for b in range(ever):
        a = order[b]
        for c in range(k):
            # without a branch, which would be mispredicted half of the time
            members = sum.count[c]
            sum.member[c * sum.room + members] = a
            sum.factor[c * sum.room + members] = change[a * kp + c]
            sum.count[c] = members + (change[a * kp + c] != 0.0)
    if run.single != NULL:
        add_rows(chunk.singles, sum, run.m, f, stride)
    else:
        add_rows(chunk.rows, sum, run.m, f, stride)
    return total


cdef int sweep(void *ascent, Schedule *s, bint active) except -1 nogil:
    """Visit all examples, or the active ones, in random order, chunk by chunk."""
    cdef Run *run = <Run *>ascent
    cdef Py_ssize_t start = 0, count = shuffled(s, active)
    cdef double total = 0.0
    while start < count:
        total += visit_chunk(run, s.order + start, <int>min(<Py_ssize_t>run.chunk.room, count - start), s.skip)
        start += run.chunk.room
    return swept(s, active, total)


cdef double survey_lanes(Run *run) noexcept nogil:
    """Write the gap of every example at the present scores, several side by side, and return their sum."""
    cdef Family *s = &run.family
    cdef int width = GROUPS * LANES, lane, c, k = s.k
    cdef Py_ssize_t i = 0, at, m = run.m
    cdef double total = 0.0, weight, cost
    cdef double *f = run.lanes
    cdef double *r = f + k * width
    cdef double *gap = r + k * width
    cdef Py_ssize_t *y = <Py_ssize_t *>(gap + width)
    while i < m:
        if run.cost == NULL and i + width <= m:
            for c in range(k):
                for lane in range(GROUPS):
                    store(f, GROUPS * c + lane, load(run.f + c * run.f_stride + i, lane))
        else:
            for lane in range(width):
                at = min(i + lane, m - 1)
                for c in range(k):
                    f[c * width + lane] = run.f[c * run.f_stride + at] / (run.cost[at] if run.cost != NULL else 1.0)
        for lane in range(width):
            at = min(i + lane, m - 1)
            y[lane] = run.y[at]
            for c in range(k):
                r[c * width + lane] = run.r[at * s.kp + c]
        s.gaps(s, f, r, y, gap)
        for lane in range(min(<Py_ssize_t>width, m - i)):
            at = i + lane
            weight = run.sample[at] if run.sample != NULL else 1.0
            cost = run.cost[at] if run.cost != NULL else 1.0
            run.gap[at] = weight * cost * gap[lane]
            total += run.gap[at]
        i += width
    return total


cdef inline double row_gap(Family *s, const double *F, Py_ssize_t stride, const double *r, Py_ssize_t y, double cost, double *value, double *offset, double *inner) noexcept nogil:
    """Return S - c - r.f/w of a row whose scores lie ``stride`` apart, and write S, c and r.f/w."""
    cdef int c, v, kp = s.kp
    cdef double *f = s.work + 8 * kp
    cdef double answer
    cdef vec sum = splat(0.0)
    for c in range(s.k):
        f[c] = F[c * stride] / cost
    for c in range(s.k, kp):
        f[c] = 0.0
    value[0] = s.oracle(s, f, y, s.work + 9 * kp, &answer)
    offset[0] = s.offset(s, r, y)
    for v in range(kp // LANES):
        sum = sum + load(f, v) * load(r, v)
    inner[0] = vsum(sum)
    return value[0] - offset[0] - inner[0]


cdef double survey_each(Run *run) noexcept nogil:
    """The same, one example after the other, for surrogates without such a loop."""
    cdef Py_ssize_t i
    cdef double total = 0.0, weight, cost, gap, value, offset, inner
    for i in range(run.m):
        weight = run.sample[i] if run.sample != NULL else 1.0
        cost = run.cost[i] if run.cost != NULL else 1.0
        gap = row_gap(&run.family, run.f + i, run.f_stride, run.r + i * run.family.kp, run.y[i], cost, &value, &offset, &inner)
        run.gap[i] = weight * cost * gap
        total += run.gap[i]
    return total


cdef int ascend(Run *run, Schedule *s) except -1 nogil:
    """Return 0 when all gaps sum to at most ``s.enough``, 1 at a limit of visits, 2 at the limit of seconds."""
    cdef bint lanes = run.lanes != NULL
    cdef double looked = 0.0, goal
    cdef int passes
    while s.visits + s.n <= s.most and looked <= s.most:
        s.total = survey_lanes(run) if lanes else survey_each(run)
        looked += s.n * (SURVEYED if lanes else SURVEYED_EACH)
        if s.total <= s.enough:
            return CONVERGED
        s.level = (WORTH if lanes else WORTH_EACH) * s.total / s.n
        choose_rows(run, s)
        goal = s.done * s.active
        for passes in range(1 if lanes else FEW_PASSES):
            sweep(run, s, True)
            if s.active <= goal or s.visits + s.count > s.most:
                break
        if not s.visits < s.turn:
            break
        look_now(run, s)
        if s.late:
            return AT_SECONDS
    return AT_PASSES


cdef int ascend_listed(Run *run, Schedule *s) except -1 nogil:
    """The same over listed points, in rounds whose gaps are those before the visits.

    A master of constraint generation is solved beyond what it asks in this way, which is why few constraints are added.
    """
    s.most += s.n  # a round leaves room for an evaluation, which is not made here
    while s.visits + 2.0 * s.n <= s.most:
        ascend_round(run, s)
        if s.total <= s.enough:
            return CONVERGED
        if not s.visits < s.turn:
            break
        look_now(run, s)
        if s.late:
            return AT_SECONDS
    return AT_PASSES


cdef int chunk_new(Chunk *chunk, int room, int sweeps, int k, int kp) noexcept nogil:
    """Make room for chunks; -1 when memory is short."""
    chunk.room, chunk.sweeps = room, sweeps
    chunk.sum.k, chunk.sum.room = k, room
    chunk.scores = zeros(2 * (room + 1) * kp + room * room + k * room)
    chunk.rows = <const double **>malloc(room * sizeof(double *))
    chunk.singles = <const float **>malloc(room * sizeof(float *))
    chunk.sum.count = <int *>malloc((k + k * room) * sizeof(int))
    if chunk.scores == NULL or chunk.rows == NULL or chunk.singles == NULL or chunk.sum.count == NULL:
        return -1
    chunk.change = chunk.scores + room * kp
    chunk.step = chunk.change + room * kp
    chunk.block = chunk.step + 2 * kp
    chunk.sum.factor = chunk.block + room * room
    chunk.sum.member = chunk.sum.count + k
    return 0


cdef class Ascent:
    """One ascent and its memory."""
    cdef Run run
    cdef Schedule s

    def __dealloc__(self):
        free(self.run.gap)
        free(self.s.order)
        free(self.run.lanes)
        free(self.run.chunk.scores)
        free(self.run.chunk.rows)
        free(self.run.chunk.singles)
        free(self.run.chunk.sum.count)
        family_free(&self.run.family)

    cdef int take_block(self, K, Py_ssize_t m, int k) except -1:
        """Read K, (at least m, at least m) in double or single precision, for m rows and k classes."""
        cdef Run *run = &self.run
        cdef const double[:, ::1] kernel
        cdef const float[:, ::1] single
        demand(K is not None, "K must be a matrix")
        if getattr(K, "itemsize", 8) == 4:
            single = K
            demand(single.shape[0] >= m and single.shape[1] >= m, "K must be (m, m) or larger")
            run.single, run.stride = &single[0, 0], single.shape[1]
        else:
            kernel = K
            demand(kernel.shape[0] >= m and kernel.shape[1] >= m, "K must be (m, m) or larger")
            run.kernel, run.stride = &kernel[0, 0], kernel.shape[1]
        run.m = run.f_stride = m
        run.family.k, run.family.kp = k, checked_width(k)
        return 0

    cdef int prepare(self, int chunk, int sweeps, Py_ssize_t more, double turn, double max_seconds) except -1:
        """Begin the schedule, and allocate chunks, lists, and ``more`` numbers behind the gaps."""
        cdef Run *run = &self.run
        schedule_new(&self.s, NULL, sweep, run.m, 1.0, 0.0, INFINITY, turn, max_seconds)
        run.gap = <double *>malloc((run.m + more) * sizeof(double))
        self.s.order = <Py_ssize_t *>malloc(run.m * sizeof(Py_ssize_t))
        if run.gap == NULL or self.s.order == NULL or chunk_new(&run.chunk, chunk, sweeps, run.family.k, run.family.kp):
            raise MemoryError("no memory for the scratch vectors")
        self.s.gaps = run.gap
        return 0


def solve(int kind, int k, const double[::1] parameters, K, const Py_ssize_t[::1] y, const double[::1] sample_weight,
          const double[::1] cost_weight, double[:, ::1] F, double[:, ::1] R, double scale, double goal, double skip, double max_visits,
          double max_seconds, unsigned long long seed, double turn=INFINITY, int chunk=CHUNK, int sweeps=SWEEPS):
    """Run the ascent in place on F (k, m), class by class, and R (m, kp), padded with zeros, over a symmetric block K (m, m).

    F may hold a part that other rows add to K A. Weights may be empty (all 1); ``scale`` is 1/(lambda n). Stops when the gaps of one pass sum to
    at most ``goal``; blocks with a gap of at most ``skip`` do not move. Returns (code, visits); code 0 = goal reached, 1 = limit of visits, which
    are at most ``max_visits``, or ``turn`` and what a round adds, 2 = limit of seconds.
    """
    cdef Ascent a = Ascent()
    cdef Run *run = &a.run
    cdef Py_ssize_t i, m = F.shape[1]
    cdef int code
    demand(m > 0 and F.shape[0] == k and R.shape[0] == m and R.shape[1] == checked_width(k), "K must be (m, m), F (k, m) and R (m, kp), padded")
    demand(1 <= chunk <= MOST and 1 <= sweeps <= MOST, "a chunk has at least one row and one sweep, and not too many")
    check_examples(y, m, k, sample_weight, cost_weight)
    a.take_block(K, m, k)
    bind(&run.family, kind, k, parameters)
    a.prepare(<int>min(<Py_ssize_t>chunk, m), sweeps, m, turn, max_seconds)
    a.s.enough, a.s.skip, a.s.most, a.s.state = goal, skip, max_visits, seed
    run.f, run.r, run.y, run.scale = &F[0, 0], &R[0, 0], &y[0], scale
    run.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    run.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    run.hint = run.gap + m
    if run.family.gaps != NULL:
        run.lanes = zeros((2 * k + 2) * GROUPS * LANES)
        if run.lanes == NULL:
            raise MemoryError("no memory for a survey")
    with nogil:
        for i in range(m):
            run.hint[i] = -1.0
        code = ascend(run, &a.s)
    return code, a.s.visits


def solve_listed(const double[:, ::1] K, const Py_ssize_t[::1] first, const double[:, ::1] r, const double[::1] offset, double[::1] weight,
                 const double[::1] sample_weight, const double[::1] cost_weight, double[:, ::1] F, double scale, double goal, double skip,
                 double max_visits, double max_seconds, unsigned long long seed, double turn=INFINITY):
    """The same where the sets are given by listed points: r (points, k) with their offsets, those of row i from first_i to first_(i+1).

    Works in place on F (k, m) and on the points' weights, which must sum to one over each row's; ``first`` has m + 1 numbers.
    """
    cdef Ascent a = Ascent()
    cdef Run *run = &a.run
    cdef Listed listed
    cdef Py_ssize_t i, most = 0, m = F.shape[1], points = r.shape[0]
    cdef int code, k = <int>r.shape[1]
    demand(m > 0 and K.shape[0] == m and K.shape[1] == m and first.shape[0] == m + 1 and F.shape[0] == k and first[0] == 0 and first[m] == points,
           "K must be (m, m), first (m + 1,) from 0 to the number of points, and F (k, m)")
    demand(offset.shape[0] == points and weight.shape[0] == points and sample_weight.shape[0] == m and cost_weight.shape[0] == m,
           "every point needs an offset and a weight, every row a sample weight and a cost weight")
    for i in range(m):
        demand(first[i + 1] > first[i], "every row needs a point")
        most = max(most, first[i + 1] - first[i])
    a.take_block(K, m, k)
    a.prepare(1, 1, most + k, turn, max_seconds)
    a.s.enough, a.s.skip, a.s.most, a.s.state = goal, skip, max_visits, seed
    run.f, run.sample, run.cost, run.scale = &F[0, 0], &sample_weight[0], &cost_weight[0], scale
    listed.first, listed.r, listed.offset, listed.weight = &first[0], &r[0, 0], &offset[0], &weight[0]
    listed.value = run.gap + m
    listed.scores = listed.value + most
    run.listed = &listed
    with nogil:
        code = ascend_listed(run, &a.s)
    return code, a.s.visits


def survey(int kind, int k, const double[::1] parameters, const double[:, ::1] F, const Py_ssize_t[::1] y, const double[::1] sample_weight,
           const double[::1] cost_weight, const double[:, ::1] R, double[::1] gap):
    """Write every row's gap s_i w_i (S - c - r.f/w), shape (n,), and return the sums of s_i w_i S, of s_i w_i c and of s_i r.f.

    F (k, n) class by class, R (n, kp) padded with zeros. The last sum is -lambda n |theta|^2 when F = K A(R).
    """
    cdef Family family
    cdef Py_ssize_t i, n = y.shape[0], stride = F.shape[1]
    cdef double own, value, offset, inner, weight, cost, losses = 0.0, offsets = 0.0, inners = 0.0
    demand(F.shape[0] == k and stride == n and R.shape[0] == n and R.shape[1] == checked_width(k) and gap.shape[0] == n,
           "F must be (k, n), R (n, kp), padded, and gap (n,)")
    check_examples(y, n, k, sample_weight, cost_weight)
    bind(&family, kind, k, parameters)
    with nogil:
        for i in range(n):
            weight = sample_weight[i] if sample_weight.shape[0] else 1.0
            cost = cost_weight[i] if cost_weight.shape[0] else 1.0
            own = row_gap(&family, &F[0, i], stride, &R[i, 0], y[i], cost, &value, &offset, &inner)
            gap[i] = weight * cost * own
            losses += weight * cost * value
            offsets += weight * cost * offset
            inners += weight * cost * inner
    family_free(&family)
    return losses, offsets, inners


def gather(const double[:, ::1] K, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns, double[:, ::1] out):
    """Copy out[a, b] = K[rows[a], columns[b]]."""
    cdef Py_ssize_t a, b, count = columns.shape[0]
    cdef const double *source
    cdef double *target
    demand(out.shape[0] == rows.shape[0] and out.shape[1] == count, "out must be (rows, columns)")
    check_positions(rows, K.shape[0], "rows")
    check_positions(columns, K.shape[1], "columns")
    with nogil:
        for a in range(rows.shape[0]):
            source = &K[rows[a], 0]
            target = &out[a, 0]
            for b in range(count):
                target[b] = source[columns[b]]


cdef void fill_block(const double *K, Py_ssize_t n, const Py_ssize_t *rows, Py_ssize_t count, Py_ssize_t held, value *out, Py_ssize_t stride) noexcept nogil:
    cdef Py_ssize_t a, b, e, last, first = held
    cdef const double *source
    cdef const double *ahead
    cdef value *target
    while first < count:
        last = min(first + <Py_ssize_t>TURNED, count)
        for a in range(first, last):
            source = K + rows[a] * n
            ahead = K + rows[min(a + 1, count - 1)] * n
            target = out + a * stride
            for b in range(count):
                prefetch(ahead + rows[b])
                target[b] = <value>source[rows[b]]
        # some rows at a time, so that the mirror image is written by whole cache lines
        for b in range(held):
            target = out + b * stride
            for e in range(first, last):
                target[e] = out[e * stride + b]
        first = last


def extend(const double[:, ::1] K, const Py_ssize_t[::1] rows, Py_ssize_t held, out):
    """Copy out[a, b] = K[rows[a], rows[b]] where a or b is at least ``held``; K (n, n) must be symmetric, and only its rows from ``held`` on are read.

    ``out`` has room for all rows, (any, any), in double or single precision.
    """
    cdef double[:, ::1] wide
    cdef float[:, ::1] single
    cdef bint narrow = getattr(out, "itemsize", 8) == 4
    cdef Py_ssize_t count = rows.shape[0], room
    demand(out is not None, "out must be a matrix")
    if narrow:
        single = out
        room = min(single.shape[0], single.shape[1])
    else:
        wide = out
        room = min(wide.shape[0], wide.shape[1])
    demand(K.shape[0] == K.shape[1] and 0 <= held <= count <= room, "out must have room for K among all rows")
    check_positions(rows, K.shape[0], "rows")
    if count == 0:
        return
    with nogil:
        if narrow:
            fill_block(&K[0, 0], K.shape[1], &rows[0], count, held, &single[0, 0], single.shape[1])
        else:
            fill_block(&K[0, 0], K.shape[1], &rows[0], count, held, &wide[0, 0], wide.shape[1])


def accumulate(const double[:, ::1] K, const Py_ssize_t[::1] rows, const double[:, ::1] A, double[:, ::1] F):
    """Add sum_a A[a, c] K[rows[a], :] to F[c, :] for every class c; A (rows, k), F (k, n), K (any, n)."""
    cdef Py_ssize_t a, start = 0, n = F.shape[1]
    cdef int c, members, count, k = <int>F.shape[0]
    cdef const double *group[GROUP]
    cdef Sum sum
    demand(K.shape[1] == n and A.shape[0] == rows.shape[0] and A.shape[1] == k, "K must be (any, n), A (rows, k) and F (k, n)")
    check_positions(rows, K.shape[0], "rows")
    if n == 0 or k == 0:
        return
    sum.k, sum.room = k, GROUP
    sum.count = <int *>malloc((k + k * GROUP) * sizeof(int))
    sum.factor = <double *>malloc(k * GROUP * sizeof(double))
    try:
        if sum.count == NULL or sum.factor == NULL:
            raise MemoryError("no memory for the list of classes")
        sum.member = sum.count + k
        with nogil:
            while start < rows.shape[0]:
                count = <int>min(<Py_ssize_t>GROUP, rows.shape[0] - start)
                for a in range(count):
                    group[a] = &K[rows[start + a], 0]
                for c in range(k):
                    members = 0
                    for a in range(count):
                        if A[start + a, c] != 0.0:
                            sum.member[c * GROUP + members] = <int>a
                            sum.factor[c * GROUP + members] = A[start + a, c]
                            members += 1
                    sum.count[c] = members
                add_rows(group, &sum, n, &F[0, 0], n)
                start += GROUP
    finally:
        free(sum.count)
        free(sum.factor)


cdef enum:
    BESIDE = 4   # rows that `examine` reads side by side


cdef double examine_rows(const double *K, Py_ssize_t n, Py_ssize_t first, int count, const double *v, const double *root, double *u, double *w) noexcept nogil:
    """Add to u = K v and w = K'v what some rows have in them; return the largest |K_ij| - sqrt(K_ii K_jj) among them."""
    cdef Py_ssize_t j, whole = n // LANES
    cdef int a
    cdef const double *row[BESIDE]
    cdef vec s[BESIDE]
    cdef double excess, rest
    cdef vec most = splat(-1.7976931348623157e308), zero = splat(0.0), x, at, beside, sum
    for a in range(BESIDE):
        row[a] = K + (first + (a if a < count else 0)) * n
        s[a] = zero
    if count == BESIDE:
        for j in range(whole):
            at, beside, sum = load(v, <int>j), load(root, <int>j), load(w, <int>j)
            for a in range(BESIDE):
                x = load(row[a], <int>j)
                s[a] = s[a] + x * at
                sum = sum + x * splat(v[first + a])
                most = vmax(most, vmax(x, zero - x) - beside * splat(root[first + a]))
            store(w, <int>j, sum)
    else:
        for a in range(count):
            for j in range(whole):
                x = load(row[a], <int>j)
                s[a] = s[a] + x * load(v, <int>j)
                store(w, <int>j, load(w, <int>j) + x * splat(v[first + a]))
                most = vmax(most, vmax(x, zero - x) - load(root, <int>j) * splat(root[first + a]))
    excess = hmax(most)
    for a in range(count):
        u[first + a] = vsum(s[a])
        for j in range(whole * LANES, n):
            rest = row[a][j]
            u[first + a] += rest * v[j]
            w[j] += rest * v[first + a]
            rest = (rest if rest > 0.0 else -rest) - root[j] * root[first + a]
            excess = rest if rest > excess else excess
    return excess


def examine(const double[:, ::1] K, const double[::1] v, const double[::1] root, double[::1] u, double[::1] w):
    """Write u = K v and w = K'v from one read of K (n, n) and return the largest |K_ij| - root_i root_j, all but NaN."""
    cdef Py_ssize_t n = K.shape[0], first = 0
    cdef double excess = -INFINITY, found
    cdef int count
    demand(n > 0 and K.shape[1] == n and v.shape[0] == n and root.shape[0] == n and u.shape[0] == n and w.shape[0] == n,
           "K must be (n, n), the vectors (n,)")
    with nogil:
        for first in range(n):
            w[first] = 0.0
        first = 0
        while first < n:
            count = <int>min(<Py_ssize_t>BESIDE, n - first)
            found = examine_rows(&K[0, 0], n, first, count, &v[0], &root[0], &u[0], &w[0])
            excess = found if found > excess else excess
            first += BESIDE
    return excess
