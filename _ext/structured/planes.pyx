"""Pairwise steps over stored planes of structured surrogates, without the GIL (advcli/solvers/cutting_planes.py says what a plane is).

A visit to an example scores its rows, evaluates its planes and moves weight from the lowest plane that has weight to the highest, the plane 0
included. Products of planes are computed when a step asks for them. W is stored by feature, d x Kp.

A sweep also looks for the worst label of each example at the scores of the visit, where labels are sets of coordinates that are turned, each of them free:
among the sets of l coordinates the one of the l largest gains is best. A new plane is stored before the steps, so that they and all later visits know it.
"""

from libc.math cimport fabs
from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_list, check_rows, check_starts, demand
from adv_loop cimport checked_width, shuffle
from adv_linear cimport Rows, rows_of, row_scores, row_update
from adv_simd cimport zeros
include "width.pxi"

cdef enum:
    RUN = 8  # coordinates that are sorted by insertion before stretches are merged

cdef double NEW = 1e-12       # part of a row's value by which a new plane has to lie above it
cdef double ROUNDING = 1e-12  # weight of the plane 0 that a sum of weights near 1 leaves by rounding

cdef struct Stored:
    const long long *first      # (n + 1,) planes of example i
    const long long *begin      # (p,) first part of a plane
    long long *stop             # (p,) behind its last part
    int *part                   # columns: G shared weights, then K scores of each row of the example
    double *coefficient
    double *constant            # (p,)
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

cdef struct Turns:
    const signed char *sign     # (m, K) what the turn of a coordinate adds: sign times its score
    const double *slope         # (K + 1,) a set of l coordinates that adds h is worth slope_l h + offset_l
    const double *offset        # (K + 1,)
    double *gain                # (K,)
    int *order                  # (K,) coordinates by falling gain; of equals the first stays first
    int *spare                  # (K,)


cdef bint laid_out(Scratch *s, Py_ssize_t scores, Py_ssize_t width, Py_ssize_t planes, int Kp) noexcept nogil:
    """Make room for so many scores, parts of planes in [0, width) and planes, that of weight 0 among them; False where there is no memory."""
    s.scores = zeros(scores + 2 * width + planes * (planes + 3))
    s.known = <char *>malloc(planes)
    s.moved = <int *>malloc(Kp * sizeof(int))
    if s.scores == NULL or s.known == NULL or s.moved == NULL:
        return False
    s.spread = s.scores + scores
    s.total = s.spread + width
    s.value = s.total + width
    s.weight = s.value + planes
    s.before = s.weight + planes
    s.products = s.before + planes
    return True


cdef void give_back(Scratch *s) noexcept nogil:
    free(s.scores)
    free(s.known)
    free(s.moved)


cdef void by_falling_gain(const Turns *turns, int K) noexcept nogil:
    """Sort ``turns.order`` by merging, from stretches of RUN that are sorted by insertion."""
    source, target = turns.order, turns.spare
    cdef const double *gain = turns.gain
    cdef int first, middle, last, a, b, c, width = RUN
    for a in range(K):
        b = a
        while b % RUN and gain[source[b - 1]] < gain[a]:
            source[b] = source[b - 1]
            b -= 1
        source[b] = a
    while width < K:
        first = 0
        while first < K:
            middle = first + width if first + width < K else K
            last = middle + width if middle + width < K else K
            a, b = first, middle
            for c in range(first, last):
                if a < middle and (b >= last or not gain[source[a]] < gain[source[b]]):
                    target[c] = source[a]
                    a += 1
                else:
                    target[c] = source[b]
                    b += 1
            first = last
        swap = source
        source = target
        target = swap
        width *= 2
    if source != turns.order:
        for a in range(K):
            turns.order[a] = source[a]


cdef int worst(const Turns *turns, const signed char *sign, const double *scores, int K, double *value) noexcept nogil:
    """Return how many coordinates, the first of ``turns.order``, make the worst set at these scores (K,), and its ``value``."""
    cdef int j, best = 0
    cdef double h = 0.0, here
    for j in range(K):
        turns.gain[j] = sign[j] * scores[j]
    by_falling_gain(turns, K)
    value[0] = turns.offset[0]
    for j in range(K):
        h += turns.gain[turns.order[j]]
        here = turns.slope[j + 1] * h + turns.offset[j + 1]
        if here > value[0]:
            value[0] = here
            best = j + 1
    return best


cdef void store_worst(const Stored *at, const Turns *turns, long long i, int K, long long plane, const double *scores, double *values,
                      int p) noexcept nogil:
    """Put the plane of the worst set into the last of p planes of example i, which is empty, if it lies above the others and 0."""
    cdef int a, j, count
    cdef double most = 0.0, value
    cdef const signed char *sign = turns.sign + i * K
    for a in range(p - 1):
        most = values[a] if values[a] > most else most
    count = worst(turns, sign, scores, K, &value)
    if not value > most + NEW * (most if most > 1.0 else 1.0):
        return
    for a in range(count):
        j = turns.order[a]
        at.part[at.begin[plane] + a] = j
        at.coefficient[at.begin[plane] + a] = turns.slope[count] * sign[j]
    at.stop[plane] = at.begin[plane] + count
    at.constant[plane] = turns.offset[count]
    values[p - 1] = value


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
    for e in range(at.begin[begin + a], at.stop[begin + a]):
        column, x = at.part[e], at.coefficient[e]
        if column < G:
            s.spread[column] += x
            continue
        t = (column - G) // K
        for r in range(T):
            s.spread[column + (r - t) * K] += gram[t * T + r] * x
    for b in range(p):
        sum = 0.0
        for e in range(at.begin[begin + b], at.stop[begin + b]):
            sum += at.coefficient[e] * s.spread[at.part[e]]
        s.products[a * (p + 1) + b] = sum
    for e in range(at.begin[begin + a], at.stop[begin + a]):
        column = at.part[e]
        if column < G:
            s.spread[column] = 0.0
            continue
        t = (column - G) // K
        for r in range(T):
            s.spread[column + (r - t) * K] = 0.0


cdef double visit(const Stored *at, const Rows *x, long long i, const long long *example, const double *gram, double share, double lam, int K,
                  int Kp, int G, int steps, const Turns *turns, double *W, double *shared, Scratch *s) noexcept nogil:
    """Make pairwise steps on example i, with ``turns`` after a search of its worst set, and return its gap before them."""
    cdef long long begin = at.first[i], e
    cdef int p = <int>(at.first[i + 1] - begin), T = <int>(example[i + 1] - example[i]), a, t, j, column, high, low, round
    cdef double sum, most, ahead, bend, whole, step, left = 1.0
    if p == 0:
        return 0.0
    for t in range(T):
        row_scores(x, example[i] + t, W, Kp, s.scores + t * Kp)
    for a in range(p):
        sum = at.constant[begin + a]
        for e in range(at.begin[begin + a], at.stop[begin + a]):
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
    if turns != NULL:
        store_worst(at, turns, i, K, begin + p - 1, s.scores, s.value, p)
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
        for e in range(at.begin[begin + a], at.stop[begin + a]):
            s.total[at.part[e]] += step * at.coefficient[e]
    if not any_moved:
        return gap
    for a in range(p):
        if s.before[a] == s.weight[a]:
            continue
        for e in range(at.begin[begin + a], at.stop[begin + a]):
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
    # without turns nothing is stored in what is constant here
    at.first, at.begin, at.stop = &first[0], &begin[0], <long long *>&begin[0] + 1
    at.part = <int *>&part[0] if part.shape[0] else &noted
    at.coefficient = <double *>&coefficient[0] if part.shape[0] else &none
    at.constant = <double *>&constant[0] if p else &none
    at.alpha = &alpha[0] if p else &none
    cdef Py_ssize_t width = G + longest * K + 1, planes = most + 1
    order, products, theta = <Py_ssize_t *>malloc(m * sizeof(Py_ssize_t)), &gram[0] if gram.shape[0] else &none, &W[0, 0] if d else &none
    cdef double *common = &shared[0] if G else &none
    try:
        if not laid_out(&s, longest * Kp + Kp, width, planes, Kp) or order == NULL:
            raise MemoryError("no memory for the products of planes")
        for i in range(m):
            order[i] = i
        with nogil:
            for count in range(passes):
                gap = 0.0
                shuffle(order, m, &state)
                for i in range(m):
                    gap += visit(&at, &x, order[i], &example[0], products + gram_start[order[i]], share[order[i]], lam, <int>K, Kp, G, <int>steps, NULL,
                                 theta, common, &s)
                    if i % 4096 == 4095:
                        with gil:
                            PyErr_CheckSignals()
                if gap <= enough:
                    passes = count + 1
                    break
                with gil:
                    PyErr_CheckSignals()
    finally:
        give_back(&s)
        free(order)
    return gap, passes


def sweep(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d,
          const double[::1] share, const double[::1] gram, const long long[::1] first, const long long[::1] begin, long long[::1] stop,
          int[::1] part, double[::1] coefficient, double[::1] constant, double[::1] alpha, double[:, ::1] W, Py_ssize_t K, double lam,
          const signed char[:, ::1] sign, const double[::1] slope, const double[::1] offset, Py_ssize_t steps, unsigned long long seed):
    """Visit all examples of one row each once, in random order, and store the plane of the worst set of each where it is new.

    Rows are (n, d) as `compiled_rows` has them. Example i has the planes first[i]:first[i + 1], of which the last is a place for a new one; plane a has the
    parts begin[a]:stop[a] in [0, K). The places have no parts yet, and room for K of them at the end of ``part`` and ``coefficient``, in the order of the
    examples. gram (n,) are the squared lengths of the rows. A set of l of the K coordinates that adds h, the sum of sign (n, K) times the scores, is worth
    slope[l] h + offset[l]. stop, part, coefficient, constant, alpha (p,) and W (d, Kp) change. Returns the sum of the examples' gaps, each at the W of its
    visit.
    """
    cdef Py_ssize_t p = constant.shape[0], i, most = 0, room
    cdef int Kp = checked_width(<int>K) if 1 <= K <= 1 << 20 else 0
    cdef long long a, last
    demand(Kp > 0, f"rows have 1 to {1 << 20} scores, not {K}")
    check_rows(values, columns, start, n, d)
    demand(n >= 1, "no examples")
    demand(share.shape[0] == n and gram.shape[0] == n, f"shares and squared lengths must be {n} numbers")
    check_starts(first, n, p, "starts of planes")
    demand(begin.shape[0] == p and stop.shape[0] == p and alpha.shape[0] == p, f"planes must have {p} starts, stops and weights")
    demand(coefficient.shape[0] == part.shape[0], f"parts have {part.shape[0]} positions and {coefficient.shape[0]} coefficients")
    demand(W.shape[0] == d and W.shape[1] == Kp, f"W must be {d} x {Kp} numbers")
    demand(sign.shape[0] == n and sign.shape[1] == K, f"signs must be {n} x {K} numbers")
    demand(slope.shape[0] == K + 1 and offset.shape[0] == K + 1, f"slopes and offsets must be {K + 1} numbers")
    demand(1 <= steps <= 1000, f"a visit makes 1 to 1000 steps, not {steps}")
    room = part.shape[0] - n * K
    demand(room >= 0, f"parts must have room for {K} of a new plane of each example")
    for i in range(n):
        last = first[i + 1] - 1
        most = first[i + 1] - first[i] if first[i + 1] - first[i] > most else most
        demand(last >= first[i] and begin[last] == room + i * K and stop[last] == begin[last], f"example {i} has no place for a new plane")
        for a in range(first[i], last):
            if begin[a] < 0 or stop[a] < begin[a] or stop[a] > room:
                raise ValueError(f"planes of example {i} must have their parts in [0, {room})")
    demand(most < 1 << 12, "an example has at most 4095 planes")
    check_list(part, K, "parts")
    cdef Rows x = rows_of(values, columns, start, n, <int>d)
    cdef Stored at
    cdef Scratch s
    cdef Turns turns
    cdef uint64_t state = seed
    cdef double gap = 0.0, none = 0.0
    at.first, at.begin, at.stop = &first[0], &begin[0], &stop[0]
    at.part, at.coefficient, at.constant, at.alpha = &part[0], &coefficient[0], &constant[0], &alpha[0]
    cdef Py_ssize_t width = K + 1, planes = most + 1
    order, example, theta = <Py_ssize_t *>malloc(n * sizeof(Py_ssize_t)), <long long *>malloc((n + 1) * sizeof(long long)), &W[0, 0] if d else &none
    turns.sign, turns.slope, turns.offset = &sign[0, 0], &slope[0], &offset[0]
    turns.gain, turns.order = <double *>malloc(K * sizeof(double)), <int *>malloc(2 * K * sizeof(int))
    turns.spare = turns.order + K
    try:
        if not laid_out(&s, 2 * Kp, width, planes, Kp) or order == NULL or example == NULL or turns.gain == NULL or turns.order == NULL:
            raise MemoryError("no memory for the products of planes")
        for i in range(n):
            order[i] = example[i] = i
        example[n] = n
        with nogil:
            shuffle(order, n, &state)
            for i in range(n):
                gap += visit(&at, &x, order[i], example, &gram[0] + order[i], share[order[i]], lam, <int>K, Kp, 0, <int>steps, &turns, theta, &none, &s)
                if i % 4096 == 4095:
                    with gil:
                        PyErr_CheckSignals()
    finally:
        give_back(&s)
        free(order)
        free(example)
        free(turns.gain)
        free(turns.order)
    return gap
