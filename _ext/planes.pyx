"""Pairwise steps over stored planes of structured surrogates, without the GIL (advcli/learners/structured/planes.py says what a plane is).

A visit to an example scores its rows, evaluates its planes and moves weight from the lowest plane that has weight to the highest, the plane 0
included. Products of planes are computed when a step asks for them. W is stored by feature, d x Kp.
"""

from libc.math cimport fabs
from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_list, check_rows, check_starts, demand
from adv_loop cimport checked_width, shuffle
from adv_linear cimport Rows, rows_of, row_scores, row_update
from adv_simd cimport zeros

cdef double ROUNDING = 1e-12  # weight of the plane 0 that a sum of weights near 1 leaves by rounding

cdef struct Stored:
    const long long *first      # (n + 1,) planes of example i
    const long long *begin      # (p + 1,) parts of a plane
    const int *part             # columns: G shared weights, then K scores of each row of the example
    const double *coefficient
    const double *constant      # (p,)
    double *alpha               # (p,)

cdef struct Scratch:
    double *scores              # (rows, Kp) of an example, later what its rows gain
    double *spread              # (G + rows K,) a plane, multiplied by the products of the rows
    double *total               # (G + rows K,) the sum of what has moved
    double *value               # (planes + 1,)
    double *weight              # (planes + 1,)
    double *before              # (planes + 1,)
    double *products            # (planes + 1, planes + 1)
    char *known                 # (planes + 1,)
    int *moved                  # (Kp,)


cdef void product_row(const Stored *at, long long begin, int p, int a, int G, int K, int T, const double *gram, Scratch *s) noexcept nogil:
    """Fill row a of the products of an example's p planes; that of the plane 0 is zero."""
    cdef int b, t, r, column
    cdef long long e
    cdef double sum, x
    s.known[a] = 1
    for b in range(p + 1):
        s.products[a * (p + 1) + b] = 0.0
    if a == p:
        return
    for e in range(at.begin[begin + a], at.begin[begin + a + 1]):
        column, x = at.part[e], at.coefficient[e]
        if column < G:
            s.spread[column] += x
            continue
        t = (column - G) // K
        for r in range(T):
            s.spread[column + (r - t) * K] += gram[t * T + r] * x
    for b in range(p):
        sum = 0.0
        for e in range(at.begin[begin + b], at.begin[begin + b + 1]):
            sum += at.coefficient[e] * s.spread[at.part[e]]
        s.products[a * (p + 1) + b] = sum
    for e in range(at.begin[begin + a], at.begin[begin + a + 1]):
        column = at.part[e]
        if column < G:
            s.spread[column] = 0.0
            continue
        t = (column - G) // K
        for r in range(T):
            s.spread[column + (r - t) * K] = 0.0


cdef double visit(const Stored *at, const Rows *x, long long i, const long long *example, const double *gram, double share, double lam, int K,
                  int Kp, int G, int steps, double *W, double *shared, Scratch *s) noexcept nogil:
    """Make pairwise steps on example i and return its gap before them."""
    cdef long long begin = at.first[i], e
    cdef int p = <int>(at.first[i + 1] - begin), T = <int>(example[i + 1] - example[i]), a, t, j, column, high, low, round
    cdef double sum, most, ahead, bend, whole, step, left = 1.0
    if p == 0:
        return 0.0
    for t in range(T):
        row_scores(x, example[i] + t, W, Kp, s.scores + t * Kp)
    for a in range(p):
        sum = at.constant[begin + a]
        for e in range(at.begin[begin + a], at.begin[begin + a + 1]):
            column = at.part[e]
            if column < G:
                sum += at.coefficient[e] * shared[column]
            else:
                column -= G
                sum += at.coefficient[e] * s.scores[(column // K) * Kp + column % K]
        s.value[a] = sum
        s.weight[a] = s.before[a] = at.alpha[begin + a]
        left -= at.alpha[begin + a]
        s.known[a] = 0
    s.value[p], s.known[p] = 0.0, 0
    s.weight[p] = s.before[p] = left if left > ROUNDING else 0.0
    cdef double gap = 0.0
    for round in range(steps):
        high, low = p, -1
        for a in range(p + 1):
            if s.value[a] > s.value[high]:
                high = a
            if s.weight[a] > 0.0 and (low < 0 or s.value[a] < s.value[low]):
                low = a
        if round == 0:
            sum = 0.0
            for a in range(p + 1):
                sum += s.weight[a] * s.value[a]
            gap = share * (s.value[high] - sum)
        if low < 0:
            break
        ahead = s.value[high] - s.value[low]
        most = fabs(s.value[high])
        if not ahead > 1e-15 * (most if most > 1.0 else 1.0):
            break
        if not s.known[high]:
            product_row(at, begin, p, high, G, K, T, gram, s)
        if not s.known[low]:
            product_row(at, begin, p, low, G, K, T, gram, s)
        bend = s.products[high * (p + 1) + high] - 2.0 * s.products[high * (p + 1) + low] + s.products[low * (p + 1) + low]
        whole = s.weight[low]
        step = whole if bend * share * whole <= ahead * lam else ahead * lam / (share * bend)
        s.weight[high] += step
        s.weight[low] = 0.0 if step == whole else whole - step
        for a in range(p + 1):
            s.value[a] -= step * share / lam * (s.products[high * (p + 1) + a] - s.products[low * (p + 1) + a])
    # the sum of what has moved, then W and the shared weights
    cdef bint any_moved = False
    for a in range(p):
        step = (s.before[a] - s.weight[a]) * share / lam
        if step == 0.0:
            continue
        any_moved = True
        at.alpha[begin + a] = s.weight[a]
        for e in range(at.begin[begin + a], at.begin[begin + a + 1]):
            s.total[at.part[e]] += step * at.coefficient[e]
    if not any_moved:
        return gap
    for a in range(p):
        if s.before[a] == s.weight[a]:
            continue
        for e in range(at.begin[begin + a], at.begin[begin + a + 1]):
            if at.part[e] < G:
                shared[at.part[e]] += s.total[at.part[e]]
                s.total[at.part[e]] = 0.0
    for t in range(T):
        any_moved = False
        for j in range(Kp):
            s.scores[j] = 0.0
        for j in range(K):
            s.scores[j] = s.total[G + t * K + j]
            any_moved |= s.scores[j] != 0.0
            s.total[G + t * K + j] = 0.0
        if any_moved:
            row_update(x, example[i] + t, W, Kp, s.scores, 1.0, s.moved)
    return gap


def visits(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d,
           const long long[::1] example, const double[::1] share, const double[::1] gram, const long long[::1] gram_start,
           const long long[::1] first, const long long[::1] begin, const int[::1] part, const double[::1] coefficient,
           const double[::1] constant, double[::1] alpha, double[:, ::1] W, double[::1] shared,
           Py_ssize_t K, double lam, Py_ssize_t steps, Py_ssize_t passes, double enough, unsigned long long seed):
    """Visit all examples in passes of random order until the gap of the stored planes, summed on the way, is at most ``enough``.

    Rows are (n, d) as `compiled_rows` has them, ``start`` their starts. Example i of m has rows example[i]:example[i + 1], the products of its T rows
    at gram_start[i] and T T numbers on, and planes first[i]:first[i + 1]; plane a has the parts begin[a]:begin[a + 1]. alpha (p,), W (d, Kp) and
    shared (G,) change. Returns the gap of the last pass and the number of passes.
    """
    cdef Py_ssize_t m = share.shape[0], p = constant.shape[0], i, longest = 0, most = 0, T, count
    cdef int Kp = checked_width(<int>K) if 1 <= K <= 1 << 20 else 0
    cdef long long a
    demand(Kp > 0, f"rows have 1 to {1 << 20} scores, not {K}")
    check_rows(values, columns, start, n, d)
    demand(m >= 1, "no examples")
    check_starts(example, m, n, "starts of examples")
    check_starts(gram_start, m, gram.shape[0], "starts of products")
    check_starts(first, m, p, "starts of planes")
    check_starts(begin, p, part.shape[0], "starts of parts")
    demand(coefficient.shape[0] == part.shape[0], f"parts have {part.shape[0]} positions and {coefficient.shape[0]} coefficients")
    demand(alpha.shape[0] == p, f"weights must be {p} numbers, not {alpha.shape[0]}")
    demand(W.shape[0] == d and W.shape[1] == Kp, f"W must be {d} x {Kp} numbers")
    demand(shared.shape[0] < 1 << 30, "too many shared weights")
    demand(1 <= steps <= 1000, f"a visit makes 1 to 1000 steps, not {steps}")
    cdef int G = <int>shared.shape[0]
    for i in range(m):
        T = example[i + 1] - example[i]
        demand(T < 1 << 20 and gram_start[i + 1] - gram_start[i] == T * T, "an example of T rows has T x T products")
        demand(G + T * K < 1 << 30, "an example has too many parts")
        longest = T if T > longest else longest
        most = first[i + 1] - first[i] if first[i + 1] - first[i] > most else most
        for a in range(begin[first[i]], begin[first[i + 1]]):
            if part[a] < 0 or part[a] >= G + T * K:
                raise ValueError(f"parts of example {i} must lie in [0, {G + T * K})")
    demand(most < 1 << 12, "an example has at most 4095 planes")
    cdef Rows x = rows_of(values, columns, start, n, <int>d)
    cdef Stored at
    cdef Scratch s
    cdef uint64_t state = seed
    cdef double gap = 0.0, none = 0.0
    cdef int noted = 0
    at.first, at.begin = &first[0], &begin[0]
    at.part = &part[0] if part.shape[0] else &noted
    at.coefficient = &coefficient[0] if part.shape[0] else &none
    at.constant = &constant[0] if p else &none
    at.alpha = &alpha[0] if p else &none
    cdef Py_ssize_t width = G + longest * K + 1, planes = most + 1
    cdef double *block = zeros(longest * Kp + Kp + 2 * width + planes * (planes + 3))
    cdef Py_ssize_t *order = <Py_ssize_t *>malloc(m * sizeof(Py_ssize_t))
    s.known = <char *>malloc(planes)
    s.moved = <int *>malloc(Kp * sizeof(int))
    if block == NULL or order == NULL or s.known == NULL or s.moved == NULL:
        free(block)
        free(order)
        free(s.known)
        free(s.moved)
        raise MemoryError("no memory for the products of planes")
    s.scores = block
    s.spread = s.scores + longest * Kp + Kp
    s.total = s.spread + width
    s.value = s.total + width
    s.weight = s.value + planes
    s.before = s.weight + planes
    s.products = s.before + planes
    cdef const double *products = &gram[0] if gram.shape[0] else &none
    cdef double *theta = &W[0, 0] if d else &none
    cdef double *common = &shared[0] if G else &none
    for i in range(m):
        order[i] = i
    try:
        with nogil:
            for count in range(passes):
                gap = 0.0
                shuffle(order, m, &state)
                for i in range(m):
                    gap += visit(&at, &x, order[i], &example[0], products + gram_start[order[i]], share[order[i]], lam, <int>K, Kp, G, <int>steps, theta,
                                 common, &s)
                    if i % 4096 == 4095:
                        with gil:
                            PyErr_CheckSignals()
                if gap <= enough:
                    passes = count + 1
                    break
                with gil:
                    PyErr_CheckSignals()
    finally:
        free(block)
        free(order)
        free(s.known)
        free(s.moved)
    return gap, passes


def width(int K):
    """Return Kp, the number of columns of W."""
    return checked_width(K)
