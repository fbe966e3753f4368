"""Dual block-coordinate ascent for hierarchical support vector machines on dense or CSR rows, without the GIL.

    minimise lambda |W|^2 + sum_i s_i max_l [ (f_il - f_iy) / c_ly + margin_ly ],  f_i = A W x_i,  margin_yy = 0                    (1)

over the node weights W of k labels, whose attributes are the rows of A: the roots of the weights alpha of their nodes. Dual points beta_i lie
in the simplex; with r_i = sum_l beta_il / c_ly (e_y - e_l), Z = sum_i s_i r_i x_i' (k x d) and K = AA', K_lm = sum of alpha over common nodes,

    W = A'Z / (2 lambda),  f_i = K Z x_i / (2 lambda),  D = sum_i s_i beta_i . margin_y - lambda |W|^2,
    lambda |W|^2 = tr(Z'K Z) / (4 lambda) = 1/2 sum_i s_i r_i . f_i.                                                                 (2)

Z is what is kept, not W: a visit changes the rows of the few labels that beta_i holds instead of all nodes above them, K is applied to the k
numbers Z x_i (one upward and one downward pass over a tree, O(nodes)), and new weights alpha leave Z as it is. Z is stored by feature: as a
dense d x kp table, or, for many labels, as a list of the labels that each feature has met (docs/notes/hierarchical.md, section 2).

One visit: the scores, the most violating label, then pairwise steps with exact line search among that label and those that carry beta_i (all
labels when they are few). Rows without a gap are left out for some passes.

One file: everything here is a part of that visit, or of the bounds around it.
"""

from adv_elementary cimport pow
from libc.math cimport sqrt, INFINITY
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, malloc, realloc, free
from libc.string cimport memset

from adv_check cimport check_labels, check_list, check_rows, check_starts, check_weights, demand
from adv_loop cimport checked_width
from adv_linear cimport Rows, rows_of, row_scores, row_update
from adv_schedule cimport Schedule, ascend_rows, hear, schedule_new, shuffled, swept

cdef enum:
    FEW = 32             # up to so many labels a visit optimises all of them
    MOST = 64            # labels that a visit optimises at most
    STEPS = 4            # pairwise steps per label of a visit
    MOST_NODES = 1 << 28  # so that no count of scratch numbers leaves an int
    STRETCHES = 13       # multiples of W that the primal value is taken at: 1 and 1 + tol 2^j / 20

NO_MEMORY = "no memory for the dual point or the sums of its features"

ctypedef fused real:
    float
    double

cdef double STILL = 1e-2  # `still` of the schedule: visits that only read are cheap here

cdef struct List:        # pairs (label, value)
    int count
    int room
    int *label           # NULL with values: a dense row of k values
    double *value        # of a feature's list in single precision: floats

cdef struct Run:
    Rows rows
    const Py_ssize_t *y
    const double *square      # |x_i|^2
    const double *sample      # s_i or NULL
    double scale              # 1/(2 lambda)
    double mass               # sum of s_i: values are per unit of it
    int k, kp, nodes
    const int *node           # (k,) node of every label
    const int *parent         # (nodes,) -1 at a top; NULL when nodes have several parents
    const long long *up_start # (k + 1,) labels x their nodes, ascending
    const int *up
    const double *alpha       # (nodes,) weights of K
    const double *mu          # (nodes,) weights of the margin
    double power              # margin = (sum of mu over the symmetric difference) ** power; 0: zero-one
    bint normalised           # margin 1, differences divided by the root of that sum
    const double *table       # (k, k) K, or NULL
    const double *margin      # (k, k), or NULL
    const double *divisor     # (k, k) c_ly, or NULL: computed when normalised, else 1
    double *theta             # dense Z (d, kp), or NULL
    List *feature             # sparse Z (d,), or NULL
    bint single               # whether these lists hold floats
    List *beta                # (n,) values off the true label
    double *gap               # (n,) block gaps at the last visit, times s_i
    double *z                 # (kp,) Z x, then scores
    double *g                 # (kp,)
    double *delta             # (kp,) margins of the present label
    double *c                 # (kp,) divisors
    double *held              # (kp,) beta_i, spread
    double *height            # (nodes,)
    double *shared            # (nodes,)
    double *total             # (kp,) sum of mu over the nodes of each label
    int *chosen               # (MOST,)
    int *place                # (kp,) position among the changed labels, -1
    int *moved                # (kp,) scratch
    double *small             # (MOST, MOST) + 3 MOST
    double best, linear, inner  # of the last visit: max g, beta.margin, r.f
    int winner                # the label of max g
    bint failed               # whether memory was short


cdef inline bint grow(List *list, int room, size_t size) noexcept nogil:
    """Make room for values of ``size`` bytes; return whether there was memory."""
    if room <= list.room:
        return True
    if room < 2 * list.room:
        room = 2 * list.room
    label = <int *>realloc(list.label, room * sizeof(int))
    if label == NULL:
        return False
    list.label = label
    value = <double *>realloc(list.value, room * size)
    if value == NULL:
        return False
    list.value = value
    list.room = room
    return True


cdef inline double overlap(Run *run, int l, int m) noexcept nogil:
    """K_lm."""
    cdef Py_ssize_t a, b
    cdef double s = 0.0
    if run.table != NULL:
        return run.table[<Py_ssize_t>l * run.k + m]
    a, b = run.up_start[l], run.up_start[m]
    while a < run.up_start[l + 1] and b < run.up_start[m + 1]:
        if run.up[a] == run.up[b]:
            s += run.alpha[run.up[a]]
            a += 1
            b += 1
        elif run.up[a] < run.up[b]:
            a += 1
        else:
            b += 1
    return s


cdef inline void gather(const List *list, const real *value, double x, double *z) noexcept nogil:
    """z += x values."""
    cdef int j
    if list.label == NULL:
        for j in range(list.count):
            z[j] += x * value[j]
    else:
        for j in range(list.count):
            z[list.label[j]] += x * value[j]


cdef void project(Run *run, Py_ssize_t i) noexcept nogil:
    """z = Z x_i."""
    cdef Py_ssize_t e
    if run.theta != NULL:
        row_scores(&run.rows, i, run.theta, run.kp, run.z)
        return
    memset(run.z, 0, run.k * sizeof(double))
    for e in range(run.rows.start[i], run.rows.start[i + 1]):
        list = run.feature + run.rows.columns[e]
        if run.single:
            gather(list, <const float *>list.value, run.rows.values[e], run.z)
        else:
            gather(list, <const double *>list.value, run.rows.values[e], run.z)


cdef void spread(Run *run) noexcept nogil:
    """z = K z / (2 lambda)."""
    cdef int l, m, v
    cdef Py_ssize_t e
    cdef double s
    if run.table != NULL:
        for l in range(run.k):
            s = 0.0
            for m in range(run.k):
                s += run.table[<Py_ssize_t>l * run.k + m] * run.z[m]
            run.g[l] = run.scale * s
        for l in range(run.k):
            run.z[l] = run.g[l]
        return
    memset(run.height, 0, run.nodes * sizeof(double))
    if run.parent != NULL:
        for l in range(run.k):
            run.height[run.node[l]] = run.scale * run.z[l]
        for v in range(run.nodes - 1, -1, -1):
            if run.parent[v] >= 0:
                run.height[run.parent[v]] += run.height[v]
        for v in range(run.nodes):
            run.height[v] *= run.alpha[v]
            if run.parent[v] >= 0:
                run.height[v] += run.height[run.parent[v]]
        for l in range(run.k):
            run.z[l] = run.height[run.node[l]]
        return
    for l in range(run.k):
        if run.z[l] != 0.0:
            for e in range(run.up_start[l], run.up_start[l + 1]):
                run.height[run.up[e]] += run.scale * run.z[l]
    for v in range(run.nodes):
        run.height[v] *= run.alpha[v]
    for l in range(run.k):
        s = 0.0
        for e in range(run.up_start[l], run.up_start[l + 1]):
            s += run.height[run.up[e]]
        run.z[l] = s


cdef void margins(Run *run, int y) noexcept nogil:
    """Fill delta and c for the true label y."""
    cdef int l, v
    cdef Py_ssize_t e
    cdef double s
    if run.table != NULL:
        for l in range(run.k):
            run.delta[l] = run.margin[<Py_ssize_t>l * run.k + y]
            run.c[l] = run.divisor[<Py_ssize_t>l * run.k + y]
        return
    if run.power == 0.0 and not run.normalised:
        for l in range(run.k):
            run.delta[l] = run.c[l] = 1.0
        run.delta[y] = 0.0
        return
    for e in range(run.up_start[y], run.up_start[y + 1]):
        run.shared[run.up[e]] = run.mu[run.up[e]]
    if run.parent != NULL:
        # downwards: mu summed over the nodes that are on y's path, too
        for v in range(run.nodes):
            if run.parent[v] >= 0:
                run.shared[v] += run.shared[run.parent[v]]
        for l in range(run.k):
            run.delta[l] = run.shared[run.node[l]]
    else:
        for l in range(run.k):
            s = 0.0
            for e in range(run.up_start[l], run.up_start[l + 1]):
                s += run.shared[run.up[e]]
            run.delta[l] = s
    memset(run.shared, 0, run.nodes * sizeof(double))
    for l in range(run.k):
        s = run.total[l] + run.total[y] - 2.0 * run.delta[l]
        s = s if s > 0.0 else 0.0
        if run.normalised:
            run.delta[l] = 1.0
            run.c[l] = sqrt(s)
        else:
            run.c[l] = 1.0
            run.delta[l] = sqrt(s) if run.power == 0.5 else (s if run.power == 1.0 else pow(s, run.power))
    run.delta[y] = 0.0
    run.c[y] = 1.0


cdef double block(Run *run, int m, double t, double goal) noexcept nogil:
    """Pairwise steps on the ``m`` chosen labels until no pair promises more than ``goal``; returns the sum of the moves.

    ``small`` holds their Gram matrix G, then g, beta, and what beta was; the true label holds what is left to 1.
    """
    cdef double *G = run.small
    cdef double *g = G + m * m
    cdef double *b = g + m
    cdef double high, low, q, step, moved = 0.0
    cdef int u, w, s, round
    for round in range(STEPS * m):
        u = -1
        w = -1
        high, low = -INFINITY, INFINITY
        for s in range(m):
            if g[s] > high:
                high = g[s]
                u = s
            if b[s] > 0.0 and g[s] < low:
                low = g[s]
                w = s
        if u < 0 or w < 0 or u == w or not high - low > goal:
            break
        q = t * (G[u * m + u] + G[w * m + w] - 2.0 * G[u * m + w])
        step = b[w]
        if q * step > high - low:
            step = (high - low) / q
        b[u] += step
        b[w] = 0.0 if step == b[w] else b[w] - step
        moved += step
        for s in range(m):
            g[s] -= step * t * (G[s * m + u] - G[s * m + w])
    return moved


cdef bint add(Run *run, List *list, real x, int m, const double *change) noexcept nogil:
    """Add x change to the values of the ``m`` chosen labels in a feature's list, new entries included; return whether there was memory."""
    cdef int j, at, missing = 0
    cdef real *value = <real *>list.value
    if list.label == NULL and value != NULL:
        for j in range(m):
            value[run.chosen[j]] += <real>(x * change[j])
        return True
    for j in range(m):
        run.moved[j] = 0
    for at in range(list.count):
        j = run.place[list.label[at]]
        if j >= 0:
            value[at] += <real>(x * change[j])
            run.moved[j] = 1
    for j in range(m):
        missing += 1 if run.moved[j] == 0 and change[j] != 0.0 else 0
    if missing == 0:
        return True
    if 2 * (list.count + missing) > run.k:  # a dense row is no larger
        row = <real *>malloc(run.k * sizeof(real))
        if row == NULL:
            return False
        memset(row, 0, run.k * sizeof(real))
        for at in range(list.count):
            row[list.label[at]] = value[at]
        for j in range(m):
            if run.moved[j] == 0:
                row[run.chosen[j]] = <real>(x * change[j])
        free(list.label)
        free(list.value)
        list.label = NULL
        list.value = <double *>row
        list.count = run.k
        return True
    if not grow(list, list.count + missing, sizeof(real)):
        return False
    value = <real *>list.value
    for j in range(m):
        if run.moved[j] == 0 and change[j] != 0.0:
            list.label[list.count] = run.chosen[j]
            value[list.count] = <real>(x * change[j])
            list.count += 1
    return True


cdef bint shift(Run *run, Py_ssize_t i, double weight, int m, const double *change) noexcept nogil:
    """Z += weight change x_i' for the ``m`` chosen labels; returns whether there was memory. ``z`` is scratch."""
    cdef int j
    cdef Py_ssize_t e
    cdef double x
    cdef bint fits = True
    if run.theta != NULL:
        memset(run.z, 0, run.kp * sizeof(double))
        for j in range(m):
            run.z[run.chosen[j]] = change[j]
        row_update(&run.rows, i, run.theta, run.kp, run.z, weight, run.moved)
        return True
    for j in range(m):
        run.place[run.chosen[j]] = j
    for e in range(run.rows.start[i], run.rows.start[i + 1]):
        list = run.feature + run.rows.columns[e]
        x = weight * run.rows.values[e]
        fits = add(run, list, <float>x, m, change) if run.single else add(run, list, x, m, change)
        if not fits:
            break
    for j in range(m):
        run.place[run.chosen[j]] = -1
    return fits


cdef double visit(Run *run, Py_ssize_t i, double skip) noexcept nogil:
    """Optimise block i where its gap exceeds ``skip``; returns that gap before the step, times s_i."""
    cdef int k = run.k, y = <int>run.y[i], l, j, h, m, best, y_at
    cdef List *beta = run.beta + i
    cdef double weight = 1.0 if run.sample == NULL else run.sample[i]
    cdef double gap, rest = 1.0, t, own, a
    project(run, i)
    spread(run)
    margins(run, y)
    own = run.z[y]
    best = y
    run.g[y] = 0.0
    for l in range(k):
        run.g[l] = (run.z[l] - own) / run.c[l] + run.delta[l]
        if run.g[l] > run.g[best]:
            best = l
    run.best = run.g[best]
    run.winner = best
    run.linear = 0.0
    run.inner = 0.0
    for j in range(beta.count):
        l = beta.label[j]
        rest -= beta.value[j]
        run.linear += beta.value[j] * run.delta[l]
        run.inner += beta.value[j] * (run.g[l] - run.delta[l])
    gap = run.best - run.linear - run.inner
    run.inner = -run.inner  # r.f
    if not gap > skip or weight == 0.0:
        return weight * gap
    # ---- the labels to optimise
    if k <= FEW:
        m = k
        y_at = y
        for l in range(k):
            run.chosen[l] = l
            run.held[l] = 0.0
        for j in range(beta.count):
            run.held[beta.label[j]] = beta.value[j]
    else:
        run.chosen[0] = y
        y_at = 0
        m = 1
        if best != y:
            run.chosen[1] = best
            m = 2
            run.held[best] = 0.0
        for j in range(beta.count):
            l = beta.label[j]
            run.held[l] = beta.value[j]
            if l != best and m < MOST:
                run.chosen[m] = l
                m += 1
    run.held[y] = rest if rest > 0.0 else 0.0
    G = run.small
    g = G + m * m
    b = g + m
    before = b + m
    own = overlap(run, y, y)
    for j in range(m):
        l = run.chosen[j]
        g[j] = run.g[l]
        b[j] = before[j] = run.held[l]
        # held[l] becomes K_ly for the moment
        run.held[l] = overlap(run, l, y)
    for j in range(m):
        for h in range(j, m):
            a = own - run.held[run.chosen[j]] - run.held[run.chosen[h]] + overlap(run, run.chosen[j], run.chosen[h])
            a /= run.c[run.chosen[j]] * run.c[run.chosen[h]]
            G[j * m + h] = G[h * m + j] = a
    t = weight * run.square[i] * run.scale
    if block(run, m, t, 0.05 * gap) == 0.0:
        return weight * gap
    # ---- beta_i: the chosen labels anew, others (beyond MOST) as they were
    for j in range(m):
        run.place[run.chosen[j]] = j
    h = 0
    for j in range(beta.count):
        if run.place[beta.label[j]] < 0:
            beta.label[h] = beta.label[j]
            beta.value[h] = beta.value[j]
            h += 1
    if not grow(beta, h + m, sizeof(double)):
        run.failed = True
        return weight * gap
    for j in range(m):
        run.place[run.chosen[j]] = -1
        if j != y_at and b[j] > 0.0:
            beta.label[h] = run.chosen[j]
            beta.value[h] = b[j]
            h += 1
    beta.count = h
    # ---- r_i: the true label gains what the others lose
    a = 0.0
    for j in range(m):
        if j != y_at:
            g[j] = -(b[j] - before[j]) / run.c[run.chosen[j]]
            a -= g[j]
    g[y_at] = a
    if not shift(run, i, weight, m, g):
        run.failed = True
    return weight * gap


cdef bint rebuild(Run *run) noexcept nogil:
    """Z from beta."""
    cdef Py_ssize_t i
    cdef int j, at, m, y
    cdef double *change = run.small
    for i in range(run.rows.n):
        beta = run.beta + i
        y = <int>run.y[i]
        if beta.count:
            margins(run, y)
        at = 0
        while at < beta.count:
            m = min(beta.count - at, MOST - 1)
            change[m] = 0.0
            for j in range(m):
                run.chosen[j] = beta.label[at + j]
                change[j] = -beta.value[at + j] / run.c[run.chosen[j]]
                change[m] -= change[j]
            run.chosen[m] = y
            if not shift(run, i, 1.0 if run.sample == NULL else run.sample[i], m + 1, change):
                return False
            at += m
    return True


cdef inline double stretch(double tol, int j) noexcept nogil:
    """The multiples of W that are tried."""
    return 1.0 + 0.05 * tol * (1 << (j - 1)) if j else 1.0


cdef inline double stretched(const Run *run, double t, int l) noexcept nogil:
    """What label l adds to the hinge of the present row at t W."""
    return t * (run.g[l] - run.delta[l]) + run.delta[l]


cdef int check_memory(const Run *run) except -1 nogil:
    if run.failed:
        with gil:
            raise MemoryError(NO_MEMORY)
    return 0


cdef int evaluate(void *ascent, Schedule *s) except -1 nogil:
    """Primal and dual value at the present Z and beta: one pass that moves nothing, and refreshes the gaps.

    The primal value is the least over a few multiples t >= 1 of W. Where the labels separate, W is a little short of its margins: hinges then
    are most of P, and at t they vanish for a small price in |W|^2.
    """
    cdef Run *run = <Run *>ascent
    cdef Py_ssize_t i
    cdef int l, j, last
    cdef double weight, t, value, worst, offsets = 0.0, norm = 0.0, least = INFINITY
    cdef double loss[STRETCHES]
    memset(loss, 0, STRETCHES * sizeof(double))
    for i in range(run.rows.n):
        run.gap[i] = visit(run, i, INFINITY)
        weight = 1.0 if run.sample == NULL else run.sample[i]
        loss[0] += weight * run.best
        # the hinge is convex and piecewise linear in t: a label that attains it at both ends attains it between them
        last = run.winner
        worst = stretched(run, stretch(s.tol, STRETCHES - 1), last)
        for l in range(run.k):
            value = stretched(run, stretch(s.tol, STRETCHES - 1), l)
            if value > worst:
                worst = value
                last = l
        for j in range(1, STRETCHES):
            t = stretch(s.tol, j)
            worst = stretched(run, t, run.winner)
            if last != run.winner:
                for l in range(run.k):
                    value = stretched(run, t, l)
                    worst = value if value > worst else worst
            loss[j] += weight * worst
        offsets += weight * run.linear
        norm += 0.5 * weight * run.inner
    for j in range(STRETCHES):
        t = stretch(s.tol, j)
        value = t * t * norm + loss[j]
        least = value if value < least else least
    s.primal = least / run.mass
    s.dual = (offsets - norm) / run.mass
    return check_memory(run)


cdef int sweep(void *ascent, Schedule *s, bint active) except -1 nogil:
    """Visit rows in random order; one pass over a large set takes long enough to be interrupted."""
    cdef Run *run = <Run *>ascent
    cdef Py_ssize_t j, count = shuffled(s, active)
    cdef double total = 0.0
    for j in range(count):
        run.gap[s.order[j]] = visit(run, s.order[j], s.skip)
        total += run.gap[s.order[j]]
        if j % 64 == 63:
            hear(&s.heard)
    swept(s, active, total)
    return check_memory(run)


cdef int ascend(Run *run, double tol, double max_passes, double max_seconds, uint64_t seed, double *answer) except -1 nogil:
    """Return why the ascent ends; ``answer`` receives passes, primal and dual value."""
    cdef Schedule s
    schedule_new(&s, evaluate, sweep, run.rows.n, run.mass, tol, max_passes, INFINITY, max_seconds)
    s.still, s.gaps, s.state = STILL, run.gap, seed
    return ascend_rows(run, &s, answer)


cdef inline int tabled(const double[:, ::1] a, int k) noexcept nogil:
    """Return 1 for a table (k, k), 0 for none, -1 for anything else."""
    return 0 if a.shape[0] == 0 else (1 if a.shape[0] == k and a.shape[1] == k else -1)


def solve(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, int d, const Py_ssize_t[::1] y,
          const double[::1] square, const double[::1] sample_weight, const int[::1] node, const int[::1] parent, const long long[::1] up_start,
          const int[::1] up, const double[::1] alpha, const double[::1] mu, double power, bint normalised, const double[:, ::1] table,
          const double[:, ::1] margin, const double[:, ::1] divisor, const long long[::1] beta_start, const int[::1] beta_label,
          const double[::1] beta_value, double scale, double mass, double tol, double max_passes, double max_seconds, unsigned long long seed,
          bint lists, bint single):
    """Ascend from beta (n, k), given as CSR arrays off the true labels, until primal - dual <= tol primal.

    ``columns`` is empty for dense rows, ``sample_weight`` when all weights are 1, ``parent`` when nodes have several parents; ``node`` (k,),
    ``up_start`` and ``up`` list the labels' nodes; ``table``, ``margin`` and ``divisor`` (k, k) hold K, the margins and c with the true label as
    column, or are empty and follow from alpha, mu, ``power`` and ``normalised``. ``scale`` is 1/(2 lambda); ``lists`` stores Z sparsely
    (CSR rows only), ``single`` in single precision. Returns (code, passes, primal, dual, beta_start, beta_label, beta_value); code 0 = converged,
    1 = limit of passes, 2 = of seconds; values per unit of ``mass``.
    """
    import numpy

    cdef Run run
    cdef double answer[3]
    cdef Py_ssize_t i, e, filled = 0
    cdef int k = <int>node.shape[0], code = 0, l, room
    cdef long long[::1] out_start
    cdef int[::1] out_label
    cdef double[::1] out_value
    cdef Py_ssize_t nodes = alpha.shape[0]
    if k != node.shape[0]:
        raise ValueError(f"there must be fewer labels than {node.shape[0]}")
    cdef int kp = checked_width(k)
    check_rows(values, columns, start, n, d)
    check_labels(y, n, k)
    check_weights(sample_weight, n)
    demand(square.shape[0] == n, "every row needs a squared length")
    demand(0 < nodes < MOST_NODES and mu.shape[0] == nodes and (parent.shape[0] == 0 or parent.shape[0] == nodes),
           "alpha, mu and parents must have a number for every node")
    for i in range(parent.shape[0]):
        demand(-1 <= parent[i] < i, "parents must stand before their children")
    check_list(node, nodes, "nodes of labels")
    check_starts(up_start, k, up.shape[0], "starts of labels' nodes")
    check_list(up, nodes, "labels' nodes")
    demand(tabled(table, k) == tabled(margin, k) == tabled(divisor, k) >= 0, "K, margins and divisors must be (k, k), or none of them")
    demand(beta_value.shape[0] == beta_label.shape[0], "a dual point needs a value for every label")
    check_starts(beta_start, n, beta_label.shape[0], "starts of the dual point")
    check_list(beta_label, k, "labels of the dual point")
    for i in range(n):
        demand(beta_start[i + 1] - beta_start[i] < k, "a row of the dual point holds labels off the true one, each once")
    if lists and not start.shape[0]:
        raise ValueError("lists need CSR rows")
    memset(&run, 0, sizeof(Run))
    run.rows = rows_of(values, columns, start, n, d)
    run.y = &y[0]
    run.square = &square[0]
    run.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    run.scale, run.mass = scale, mass
    run.k, run.kp, run.nodes = k, kp, <int>nodes
    run.node = &node[0]
    run.parent = &parent[0] if parent.shape[0] else NULL
    run.up_start, run.up = &up_start[0], &up[0]
    run.alpha, run.mu = &alpha[0], &mu[0]
    run.power, run.normalised, run.single = power, normalised, single
    run.table = &table[0, 0] if table.shape[0] else NULL
    run.margin = &margin[0, 0] if margin.shape[0] else NULL
    run.divisor = &divisor[0, 0] if divisor.shape[0] else NULL
    room = 6 * run.kp + 2 * run.nodes + MOST * MOST + 3 * MOST
    block_memory = <double *>calloc(room + n, sizeof(double))
    whole = <int *>malloc((2 * run.kp + MOST) * sizeof(int))
    run.beta = <List *>calloc(n + 1, sizeof(List))
    if lists:
        run.feature = <List *>calloc(<Py_ssize_t>d + 1, sizeof(List))
    else:
        run.theta = <double *>calloc(<Py_ssize_t>d * run.kp + 1, sizeof(double))
    try:
        if block_memory == NULL or whole == NULL or run.beta == NULL or (run.feature == NULL and run.theta == NULL):
            raise MemoryError(f"no memory for {d} features x {k} labels")
        run.z = block_memory
        run.g = run.z + run.kp
        run.delta = run.g + run.kp
        run.c = run.delta + run.kp
        run.held = run.c + run.kp
        run.total = run.held + run.kp
        run.height = run.total + run.kp
        run.shared = run.height + run.nodes
        run.small = run.shared + run.nodes
        run.gap = run.small + MOST * MOST + 3 * MOST
        run.place = whole
        run.moved = run.place + run.kp
        run.chosen = run.moved + run.kp
        for l in range(run.kp):
            run.place[l] = -1
        for l in range(k):
            for e in range(up_start[l], up_start[l + 1]):
                run.total[l] += mu[up[e]]
        with nogil:
            for i in range(n):
                l = <int>(beta_start[i + 1] - beta_start[i])
                if not grow(run.beta + i, l, sizeof(double)):
                    run.failed = True
                    break
                for e in range(l):
                    run.beta[i].label[e] = beta_label[beta_start[i] + e]
                    run.beta[i].value[e] = beta_value[beta_start[i] + e]
                run.beta[i].count = l
            if not run.failed and not rebuild(&run):
                run.failed = True
            check_memory(&run)
            code = ascend(&run, tol, max_passes, max_seconds, seed, answer)
        out_start = numpy.zeros(n + 1, dtype=numpy.int64)
        for i in range(n):
            filled += run.beta[i].count
            out_start[i + 1] = filled
        out_label, out_value = numpy.empty(filled, dtype=numpy.int32), numpy.empty(filled)
        for i in range(n):
            for e in range(run.beta[i].count):
                out_label[out_start[i] + e] = run.beta[i].label[e]
                out_value[out_start[i] + e] = run.beta[i].value[e]
    finally:
        if run.beta != NULL:
            for i in range(n):
                free(run.beta[i].label)
                free(run.beta[i].value)
        if run.feature != NULL:
            for i in range(d):
                free(run.feature[i].label)
                free(run.feature[i].value)
        free(run.beta)
        free(run.feature)
        free(run.theta)
        free(block_memory)
        free(whole)
    return code, answer[0], answer[1], answer[2], out_start.base, out_label.base, out_value.base
