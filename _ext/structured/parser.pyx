"""Dependency trees with linear scores of arcs: the best and the worst tree of every sentence, and training over stored trees.

A sentence of n words has a score for every arc, a sum of weights at the positions of its features (adv_arcs.pxd), and f(y) is the sum over
the arcs of a projective tree y, a head for every word, 0 the root. Sentences stand one behind the other: sentence s has the words start[s] to
start[s + 1].

Training maximises the dual of lambda/2 |w|^2 + sum_s share_s max_y psi(h(y), g(y)) over mixtures alpha of stored trees of every sentence, with
h = f(y) - f(y_s) and g the number of wrong heads. A plane is its tree, a scale psi_h and an offset psi - psi_h h,

    D = sum_s share_s sum_p alpha_sp c_sp - lambda/2 |w|^2,  w = -1/lambda sum_s share_s sum_p alpha_sp a_sp,  a_sp = scale_sp (phi(y_sp) - phi(y_s)).

A visit scores the arcs of one sentence, adds the most violated tree, and moves mass between pairs of stored ones; the Gram matrix of the
differences of a sentence's stored trees from the true one tells how their values move, so that w is read and written once a visit.

The max-min margin (Nowak-Vila, Bach & Rudi 2020) has targets p over the heads of every word: a tree costs sum_m (1 - p_m(head of m)), and
the last sum of D becomes sum_m (1 - max_h mu_m(h)), mu the shares of the heads in the mixture. p moves as in chain.pyx. Costs 1 - p and shares
have n (n + 1) numbers a sentence, word by word.

One file: training and prediction search the same trees.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
from cpython.exc cimport PyErr_CheckSignals

from adv_arcs cimport KEYS, LEAST_BITS, MOST_BITS, ROLES, SLOT, check_heads, parts_of, positions_of, score_arcs
from adv_check cimport check_groups, check_positions, demand
from adv_eisner cimport CHARTS, fill, fill_levels, level_numbers, numbers_of, trace, trace_levels
from adv_loop cimport shuffle
from adv_psi cimport MARGIN, MAXMIN, PROB, surrogate
from adv_stored cimport is_new, room_for, violated_pair
from adv_targets cimport target

cdef enum:
    MOST_WORDS = 1000
    MOST_LEVELS = 160   # words of a sentence that the search by levels has memory for, 130 MB
    MOST_CALLS = 64     # of the oracle in one search of the hull


cdef struct Work:       # of one sentence of up to `most` words
    uint64_t *parts     # (most + 1, ROLES)
    uint64_t *kinds     # (most + 1,) different tags
    uint64_t *between   # (most + 1,)
    int *kind           # (most + 1,)
    int *at             # positions of an arc's features
    int *spans
    int *found          # (most,) the tree that is looked for, and the last one of the oracle
    int *met
    char *seen          # (most + 1,)
    double *U           # (most + 1, most + 1) scores of arcs; V is changed by each call of the oracle
    double *V
    double *coef        # (most + 1, most + 1) coefficients of arcs
    double *charts
    double *level       # (most + 1,) the largest h met or there is at a number of wrong heads
    double *value       # (P,)
    double line[MOST_CALLS]  # l and K(l) = max h + l g of every call
    double above[MOST_CALLS]
    double *levels      # charts by level, for sentences of up to `room` words; made when they are needed
    Py_ssize_t room
    int count           # of different tags
    double *centre      # (most, most + 1) where targets stood before a visit, and scratch (most + 1,)
    double *sorted_
    double *margin      # (P,) f of a stored tree less f of the true one


cdef int work_new(Work *work, Py_ssize_t most, Py_ssize_t P) except -1:
    cdef Py_ssize_t square = (most + 1) * (most + 1)
    memset(work, 0, sizeof(Work))
    work.parts = <uint64_t *>malloc((most + 1) * (ROLES + 2) * sizeof(uint64_t))
    work.kind = <int *>malloc((2 * KEYS + 3 + 4 * most + 4 * (3 * most + 3)) * sizeof(int))
    work.seen = <char *>malloc(most + 1)
    work.U = <double *>calloc(4 * square + CHARTS * most * most + 2 * (most + 1) + 2 * P, sizeof(double))
    if work.parts == NULL or work.kind == NULL or work.seen == NULL or work.U == NULL:
        work_free(work)
        raise MemoryError("no memory for the scores of a sentence")
    work.kinds = work.parts + (most + 1) * ROLES
    work.between = work.kinds + most + 1
    work.found = work.kind + most + 1
    work.met = work.found + most
    work.at = work.met + most
    work.spans = work.at + 2 * KEYS + most + 2
    work.V = work.U + square
    work.coef = work.V + square
    work.charts = work.coef + square
    work.level = work.charts + CHARTS * most * most
    work.value = work.level + most + 1
    work.margin = work.value + P
    work.sorted_ = work.margin + P
    work.centre = work.sorted_ + most + 1
    return 0


cdef void work_free(Work *work) noexcept nogil:
    free(work.parts)
    free(work.kind)
    free(work.seen)
    free(work.U)
    free(work.levels)
    memset(work, 0, sizeof(Work))


cdef inline void see(Work *work, const long long *words, const long long *tags, Py_ssize_t n) noexcept nogil:
    parts_of(words, tags, n, work.parts, work.kind, work.kinds, &work.count)


cdef inline void score(
    Work *work, const long long *words, const long long *tags, Py_ssize_t n, const double *theta, int shift
) noexcept nogil:
    see(work, words, tags, n)
    score_arcs(theta, shift, work.parts, work.kind, work.count, n, work.seen, work.between, work.U)


ctypedef fused head:
    short
    int


cdef inline double tree_score(const double *scores, const head *heads, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t m
    for m in range(n):
        total += scores[heads[m] * (n + 1) + m + 1]
    return total


# ---- the worst tree ---------------------------------------------------------------------------------------------------
cdef inline double costliest(Work *work, Py_ssize_t n, const double *cost, int *heads) noexcept nogil:
    """Return the largest f(y) + sum_m cost[m, head of m] and fill its heads."""
    cdef Py_ssize_t i, m
    for i in range(n + 1):
        for m in range(1, n + 1):
            work.V[i * (n + 1) + m] = work.U[i * (n + 1) + m] + cost[(m - 1) * (n + 1) + i]
    fill(work.V, n, work.charts)
    return trace(work.V, n, work.charts, work.spans, heads)


cdef inline double oracle(Work *work, const int *truth, Py_ssize_t n, double l, int *heads) noexcept nogil:
    """Return the largest f(y) + l g(y) and fill its heads."""
    cdef Py_ssize_t i, m
    memcpy(work.V, work.U, (n + 1) * (n + 1) * sizeof(double))
    for i in range(n + 1):
        for m in range(1, n + 1):
            if i != truth[m - 1]:
                work.V[i * (n + 1) + m] += l
    fill(work.V, n, work.charts)
    return trace(work.V, n, work.charts, work.spans, heads)


cdef inline int meet(Work *work, int kind, double beta, const int *truth, Py_ssize_t n, double own, double *value, double *slope, double *constant) noexcept nogil:
    """Take the tree that the oracle met for the worst one if it is; return its number of wrong heads."""
    cdef double h = tree_score(work.U, work.met, n) - own, tangent, now
    cdef int g = 0
    cdef Py_ssize_t m
    for m in range(n):
        g += work.met[m] != truth[m]
    if g == 0:
        return 0
    if h > work.level[g]:
        work.level[g] = h
    now = surrogate(kind, beta, h, <double>g, &tangent)
    if now > value[0]:
        value[0], slope[0], constant[0] = now, tangent, now - tangent * h
        memcpy(work.found, work.met, n * sizeof(int))
    return g


cdef inline double psi_at_most(const Work *work, int kind, double beta, Py_ssize_t calls, Py_ssize_t g) noexcept nogil:
    """Return what psi is at most at g wrong heads, by the least of the bounds K(l) - l g of the margin."""
    cdef Py_ssize_t e
    cdef double h = INFINITY, tangent
    for e in range(calls):
        if work.above[e] - work.line[e] * g < h:
            h = work.above[e] - work.line[e] * g
    return surrogate(kind, beta, h, <double>g, &tangent)


cdef int worst(
    Work *work, int kind, double beta, const int *truth, Py_ssize_t n, double own, double tolerance, double enough,
    double *value, double *upper, double *slope, double *constant
) except -1 nogil:
    """Set the largest psi of a tree that was met, in work.found, a bound of all, and scale and offset of its plane; return oracle calls.

    K(l) = max h + l g bounds h by K(l) - l g at every g. l is 0, then so large that g alone counts, then the slope between the two trees that
    were met beside the g of the largest bound; where no tree lies above them and psi of those that were met is not above ``enough``, the best tree
    is computed at every g up to the largest whose bound is of use.
    """
    cdef double h, bound, tangent, l, big = 1.0
    cdef Py_ssize_t m, g, at, a, b, calls = 0, e, most = 0
    cdef bint again
    for m in range(n):
        work.found[m] = truth[m]
    if kind == MARGIN:
        bound = oracle(work, truth, n, 1.0, work.found) - own
        slope[0], constant[0] = 1.0, 0.0
        for m in range(n):
            constant[0] += work.found[m] != truth[m]
        value[0] = upper[0] = bound
        return 1
    value[0] = surrogate(kind, beta, 0.0, 0.0, slope)
    constant[0] = value[0]
    work.level[0] = 0.0
    for g in range(1, n + 1):
        work.level[g] = -INFINITY
    for m in range((n + 1) * (n + 1)):
        if fabs(work.U[m]) > big:
            big = fabs(work.U[m])
    l = 0.0
    while calls < MOST_CALLS:
        work.line[calls] = l
        work.above[calls] = oracle(work, truth, n, l, work.met) - own
        meet(work, kind, beta, truth, n, own, value, slope, constant)
        calls += 1
        upper[0], at = value[0], 0
        for g in range(1, n + 1):
            bound = psi_at_most(work, kind, beta, calls, g)
            if bound > value[0] + tolerance:
                most = g
            if bound > upper[0]:
                upper[0], at = bound, g
        if upper[0] <= value[0] + tolerance:
            return <int>calls
        if calls == 1:
            l = 4.0 * (n + 1) * big
            continue
        a = b = at
        while a > 0 and work.level[a] == -INFINITY:
            a -= 1
        while b <= n and work.level[b] == -INFINITY:
            b += 1
        if a == b or b > n:
            break
        l = (work.level[a] - work.level[b]) / (b - a)
        again = False
        for e in range(calls):
            again |= fabs(work.line[e] - l) <= 1e-12 * (1.0 + fabs(l))
        if again:
            break
    if n > MOST_LEVELS or value[0] > enough:
        return <int>calls
    if n > work.room:
        free(work.levels)
        work.room = n
        work.levels = <double *>malloc(level_numbers(n) * sizeof(double))
        if work.levels == NULL:
            work.room = 0
            with gil:
                raise MemoryError("no memory for the trees of a sentence by number of wrong heads")
    fill_levels(work.U, truth, n, most, work.levels, work.level)
    at = 0
    for g in range(1, most + 1):
        if work.level[g] == -INFINITY:
            continue
        h = work.level[g] - own
        bound = surrogate(kind, beta, h, <double>g, &tangent)
        if bound > value[0]:
            value[0], at, slope[0], constant[0] = bound, g, tangent, bound - tangent * h
    upper[0] = value[0]
    for g in range(most + 1, n + 1):
        bound = psi_at_most(work, kind, beta, calls, g)
        if bound > upper[0]:
            upper[0] = bound
    if at > 0:
        trace_levels(work.U, truth, n, work.levels, work.level[at], at, work.spans, work.found)
    return <int>calls + 1


# ---- features of whole trees ------------------------------------------------------------------------------------------
cdef inline void add_arc(Work *work, int shift, Py_ssize_t head, Py_ssize_t word, double factor, double *to) noexcept nogil:
    cdef Py_ssize_t e, count = positions_of(shift, work.parts, work.kind, work.count, head, word, work.seen, work.at)
    for e in range(count):
        to[work.at[e]] += factor


cdef inline double sum_arc(Work *work, int shift, Py_ssize_t head, Py_ssize_t word, const double *of) noexcept nogil:
    cdef Py_ssize_t e, count = positions_of(shift, work.parts, work.kind, work.count, head, word, work.seen, work.at)
    cdef double total = 0.0
    for e in range(count):
        total += of[work.at[e]]
    return total


cdef inline void clear_arc(Work *work, int shift, Py_ssize_t head, Py_ssize_t word, double *to) noexcept nogil:
    cdef Py_ssize_t e, count = positions_of(shift, work.parts, work.kind, work.count, head, word, work.seen, work.at)
    for e in range(count):
        to[work.at[e]] = 0.0


cdef inline void add_costs(Work *work, const short *held, Py_ssize_t n, int used, const double *cost) noexcept nogil:
    """Fill work.value with the margins of stored trees and the costs of their heads."""
    cdef Py_ssize_t m
    cdef int u
    for u in range(used):
        work.value[u] = work.margin[u]
        for m in range(n):
            work.value[u] += cost[m * (n + 1) + held[u * n + m]]


cdef inline double difference(Work *work, int shift, const int *truth, const short *heads, Py_ssize_t n, const double *of) noexcept nogil:
    """Return <phi(heads) - phi(truth), of>."""
    cdef double total = 0.0
    cdef Py_ssize_t m
    for m in range(n):
        if heads[m] != truth[m]:
            total += sum_arc(work, shift, heads[m], m + 1, of) - sum_arc(work, shift, truth[m], m + 1, of)
    return total


cdef inline void collect(Work *work, const int *truth, const head *heads, Py_ssize_t n, double factor) noexcept nogil:
    """work.coef += factor times the arcs of heads less those of the truth."""
    cdef Py_ssize_t m
    for m in range(n):
        if heads[m] != truth[m]:
            work.coef[heads[m] * (n + 1) + m + 1] += factor
            work.coef[truth[m] * (n + 1) + m + 1] -= factor


cdef inline void deliver(Work *work, int shift, Py_ssize_t n, double factor, double *theta) noexcept nogil:
    """theta += factor times the features of work.coef, which becomes 0."""
    cdef Py_ssize_t i, m
    for i in range(n + 1):
        for m in range(1, n + 1):
            if work.coef[i * (n + 1) + m] != 0.0:
                add_arc(work, shift, i, m, factor * work.coef[i * (n + 1) + m], theta)
                work.coef[i * (n + 1) + m] = 0.0


# ---- checks -----------------------------------------------------------------------------------------------------------
cdef inline int shift_of(Py_ssize_t size) except -1:
    """Return by how much a key is shifted to its slot: weights are a power of two, SLOT for each slot."""
    cdef int bits = LEAST_BITS
    while bits < MOST_BITS and (<Py_ssize_t>1 << bits) < size:
        bits += 1
    demand(size == <Py_ssize_t>1 << bits, f"weights must be 2^{LEAST_BITS} to 2^{MOST_BITS} numbers, a power of two")
    return 64 - bits + 4  # SLOT = 2^4


cdef inline Py_ssize_t check_sentences(const long long[::1] words, const long long[::1] tags, const long long[::1] start) except -1:
    """Return the length of the longest sentence."""
    cdef Py_ssize_t most = check_groups(start, words.shape[0], "sentence")
    demand(tags.shape[0] == words.shape[0], f"there are {words.shape[0]} words")
    demand(most <= MOST_WORDS, f"a sentence has at most {MOST_WORDS} words")
    return most


cdef inline int check_held(const short[::1] held, Py_ssize_t P, const int[::1] used, const long long[::1] start) except -1:
    cdef Py_ssize_t s, p, m, n, S = start.shape[0] - 1
    cdef bint outside = False
    demand(P > 0 and held.shape[0] // P == start[S] and held.shape[0] % P == 0, f"stored heads must be {start[S]} x {P}")
    demand(used.shape[0] == S, f"used must be {S} numbers")
    for s in range(S):
        outside |= used[s] < 1 or used[s] > P
    demand(not outside, f"used must lie in [1, {P}]")
    for s in range(S):
        n = start[s + 1] - start[s]
        for p in range(P):
            for m in range(n):
                outside |= held[start[s] * P + p * n + m] < 0 or held[start[s] * P + p * n + m] > n or held[start[s] * P + p * n + m] == m + 1
    demand(not outside, "stored heads must lie in [0, words of the sentence], and no word is its own")
    return 0


# ---- called from Python -----------------------------------------------------------------------------------------------
def scores(const long long[::1] words, const long long[::1] tags, const long long[::1] start, const double[::1] theta, double[::1] out):
    """Fill the scores of the arcs of every sentence, (n + 1)^2 numbers each, row by row, behind those of the sentences before it."""
    cdef Py_ssize_t most = check_sentences(words, tags, start), s, n, at = 0
    cdef int shift = shift_of(theta.shape[0])
    cdef Work work
    demand(out.shape[0] == numbers_of(start, 1, NULL), f"these sentences have {numbers_of(start, 1, NULL)} scores")
    work_new(&work, most, 1)
    with nogil:
        for s in range(start.shape[0] - 1):
            n = start[s + 1] - start[s]
            score(&work, &words[start[s]], &tags[start[s]], n, &theta[0], shift)
            memcpy(&out[at], work.U, (n + 1) * (n + 1) * sizeof(double))
            at += (n + 1) * (n + 1)
    work_free(&work)


def best(const long long[::1] words, const long long[::1] tags, const long long[::1] start, const double[::1] theta, double[::1] value, int[::1] heads):
    """Fill the largest score of a tree of every sentence (S,), and its heads (N,)."""
    cdef Py_ssize_t most = check_sentences(words, tags, start), s, n, S = start.shape[0] - 1
    cdef int shift = shift_of(theta.shape[0])
    cdef Work work
    demand(value.shape[0] == S, f"value must be {S} numbers")
    demand(heads.shape[0] == words.shape[0], f"heads must be {words.shape[0]} numbers")
    work_new(&work, most, 1)
    with nogil:
        for s in range(S):
            n = start[s + 1] - start[s]
            score(&work, &words[start[s]], &tags[start[s]], n, &theta[0], shift)
            fill(work.U, n, work.charts)
            value[s] = trace(work.U, n, work.charts, work.spans, &heads[start[s]])
    work_free(&work)


def survey(
    int kind, double beta, const long long[::1] words, const long long[::1] tags, const long long[::1] start, const int[::1] truth,
    const double[::1] theta, const double[::1] cost, double tolerance, double[::1] value, double[::1] upper, int[::1] heads, double[::1] slope,
    double[::1] constant
):
    """Fill the largest psi of every sentence, ``value`` of a tree that was found, (S,), its ``heads`` (N,), the scale and the offset of its plane (S,),
    and what no tree exceeds, ``upper`` (S,); return the calls of the oracle. A search ends where both are within ``tolerance``. The max-min margin has
    a ``cost`` of every head; it is empty else."""
    cdef Py_ssize_t most = check_sentences(words, tags, start), s, n, S = start.shape[0] - 1, at = 0, costs = numbers_of(start, 0, NULL)
    cdef long long total = 0
    cdef int shift = shift_of(theta.shape[0]), calls = 0
    cdef Work work
    check_heads(truth, start)
    demand(MARGIN <= kind <= MAXMIN, "no such surrogate of trees")
    demand(cost.shape[0] == (costs if kind == MAXMIN else 0), f"costs must be {costs} numbers for the max-min margin, else none")
    demand(value.shape[0] == S and upper.shape[0] == S, f"there are {S} sentences")
    demand(slope.shape[0] == S and constant.shape[0] == S, f"there are {S} sentences")
    demand(heads.shape[0] == words.shape[0], f"heads must be {words.shape[0]} numbers")
    try:
        work_new(&work, most, 1)
        for s in range(S):
            if s % 256 == 255:
                PyErr_CheckSignals()
            n = start[s + 1] - start[s]
            with nogil:
                score(&work, &words[start[s]], &tags[start[s]], n, &theta[0], shift)
                if kind == MAXMIN:
                    value[s] = upper[s] = costliest(&work, n, &cost[at], work.found) - tree_score(work.U, &truth[start[s]], n)
                    slope[s], constant[s], calls, at = 1.0, 0.0, 1, at + n * (n + 1)
                else:
                    calls = worst(
                        &work, kind, beta, &truth[start[s]], n, tree_score(work.U, &truth[start[s]], n), tolerance, INFINITY,
                        &value[s], &upper[s], &slope[s], &constant[s]
                    )
                memcpy(&heads[start[s]], work.found, n * sizeof(int))
            total += calls
    finally:
        work_free(&work)
    return total


def mixture(
    const long long[::1] words, const long long[::1] tags, const long long[::1] start, const int[::1] truth, const short[::1] held,
    const double[:, ::1] weight, const int[::1] used, double[::1] theta
):
    """theta += sum over sentences and stored trees of weight (S, P) times the tree's features less those of the true one."""
    cdef Py_ssize_t most = check_sentences(words, tags, start), s, n, p, S = start.shape[0] - 1, P = weight.shape[1]
    cdef int shift = shift_of(theta.shape[0])
    cdef Work work
    check_heads(truth, start)
    check_held(held, P, used, start)
    demand(weight.shape[0] == S, f"weights must have {S} rows")
    work_new(&work, most, 1)
    with nogil:
        for s in range(S):
            n = start[s + 1] - start[s]
            see(&work, &words[start[s]], &tags[start[s]], n)
            for p in range(used[s]):
                if weight[s, p] != 0.0:
                    collect(&work, &truth[start[s]], &held[start[s] * P + p * n], n, weight[s, p])
            deliver(&work, shift, n, 1.0, &theta[0])
    work_free(&work)


cdef void products(
    Work *work, int shift, const int *truth, const short *held, Py_ssize_t n, Py_ssize_t p, Py_ssize_t count, double *spread, double *out, Py_ssize_t P
) noexcept nogil:
    """Fill row and column p of the products of the first ``count`` stored trees; ``spread`` is 0 before and after."""
    cdef Py_ssize_t m, q
    own = held + p * n
    for m in range(n):
        if own[m] != truth[m]:
            add_arc(work, shift, own[m], m + 1, 1.0, spread)
            add_arc(work, shift, truth[m], m + 1, -1.0, spread)
    for q in range(count):
        out[p * P + q] = out[q * P + p] = difference(work, shift, truth, held + q * n, n, spread)
    for m in range(n):
        if own[m] != truth[m]:
            clear_arc(work, shift, own[m], m + 1, spread)
            clear_arc(work, shift, truth[m], m + 1, spread)


def sweep(
    int kind, double beta, const long long[::1] words, const long long[::1] tags, const long long[::1] start, const int[::1] truth,
    double[::1] theta, short[::1] held, double[:, ::1] alpha, double[:, ::1] scale, double[:, ::1] offset, int[::1] used,
    double[:, :, ::1] gram, double[::1] cost, double[::1] shares, const double[::1] strength, double delta, double skip, double[::1] gap, int steps,
    double tolerance, long long seed
):
    """Visit every sentence whose ``gap`` is above ``skip`` once, in random order; return how many had no room for a tree, and the calls of the oracle.

    theta is w, kept in step with alpha (S, P), of which slot 0 is the truth; strength (S,) = lambda over the share of each sentence.
    ``steps`` pairs move in a visit. gap (S,) becomes the gap of each sentence as it was met. gram (S, P, P) are the
    products of the differences of stored trees from the true one. Of the max-min margin ``cost`` holds 1 - p of the heads of all words and moves with
    ``shares``, those of the mixture, by proximal steps of 1 / delta; both are empty else.
    """
    cdef Py_ssize_t most = check_sentences(words, tags, start), s, n, S = start.shape[0] - 1, P = alpha.shape[1], full = 0, at, m, i, done, differ
    cdef int shift = shift_of(theta.shape[0]), u, high, low, calls = 0
    cdef bint game = kind == MAXMIN
    cdef long long total = 0
    cdef Py_ssize_t costs = numbers_of(start, 0, NULL)
    cdef uint64_t state = <uint64_t>seed
    cdef Work work
    cdef double own, value, upper, tangent, constant, mean, amount, curvature, ahead, x
    cdef double *spread = NULL
    cdef double *before = NULL
    cdef Py_ssize_t *order = NULL
    cdef Py_ssize_t *place = NULL
    cdef double *mu = NULL
    cdef double *price = NULL
    check_heads(truth, start)
    check_held(held, P, used, start)
    demand(MARGIN <= kind <= MAXMIN, "no such surrogate of trees")
    demand(cost.shape[0] == (costs if game else 0), f"costs must be {costs} numbers for the max-min margin, else none")
    demand(shares.shape[0] == cost.shape[0], f"shares must be {cost.shape[0]} numbers")
    demand(alpha.shape[0] == S, f"alpha must have {S} rows")
    demand(scale.shape[0] == S and scale.shape[1] == P, f"scale must have shape ({S}, {P})")
    demand(offset.shape[0] == S and offset.shape[1] == P, f"offset must have shape ({S}, {P})")
    demand(gram.shape[0] == S and gram.shape[1] == P and gram.shape[2] == P, f"products must have shape ({S}, {P}, {P})")
    demand(strength.shape[0] == S and gap.shape[0] == S, f"there are {S} sentences")
    memset(&work, 0, sizeof(Work))
    try:
        order = <Py_ssize_t *>malloc(S * sizeof(Py_ssize_t))
        spread = <double *>calloc(theta.shape[0], sizeof(double))
        before = <double *>malloc(P * sizeof(double))
        place = <Py_ssize_t *>malloc(S * sizeof(Py_ssize_t))
        work_new(&work, most, P)
        if order == NULL or place == NULL or spread == NULL or before == NULL:
            raise MemoryError("no memory for the scores of a sentence")
        numbers_of(start, 0, place)
        for s in range(S):
            order[s] = s
        shuffle(order, S, &state)
        for at in range(S):
            if at % 256 == 255:
                PyErr_CheckSignals()
            s = order[at]
            if not gap[s] > skip:
                continue
            n = start[s + 1] - start[s]
            right = &truth[start[s]]
            mine = &held[start[s] * P]
            G = &gram[s, 0, 0]
            with nogil:
                score(&work, &words[start[s]], &tags[start[s]], n, &theta[0], shift)
                own, mean = tree_score(work.U, right, n), 0.0
                for u in range(used[s]):
                    work.margin[u] = tree_score(work.U, mine + u * n, n) - own
                    work.value[u] = scale[s, u] * work.margin[u] + offset[s, u]
                    before[u] = alpha[s, u]
                    mean = work.value[u] if u == 0 or work.value[u] > mean else mean
                if game:
                    mu, price = &shares[place[s]], &cost[place[s]]
                    for i in range(n * (n + 1)):
                        work.centre[i] = 1.0 - price[i]
                    for m in range(n):
                        i = m * (n + 1)
                        target(mu + i, work.centre + i, delta, <int>n + 1, price + i, work.sorted_)
                    add_costs(&work, mine, n, used[s], price)
                    value = costliest(&work, n, price, work.found) - own
                    tangent, constant, calls = 1.0, 0.0, 1
                else:
                    calls = worst(&work, kind, beta, right, n, own, tolerance, mean + tolerance, &value, &upper, &tangent, &constant)
                total += calls
                mean = 0.0
                for u in range(used[s]):
                    mean += alpha[s, u] * work.value[u]
                if game:  # <mu, 1 - p> + ... becomes sum (1 - max mu) + ...
                    for m in range(n):
                        x = 0.0
                        for i in range(m * (n + 1), (m + 1) * (n + 1)):
                            mean -= mu[i] * price[i]
                            x = mu[i] if mu[i] > x else x
                        mean += 1.0 - x
                gap[s] = value - mean
                if is_new(work.value, used[s], value):
                    u = room_for(&alpha[s, 0], work.value, &used[s], P)
                    if u < 0:
                        full += 1
                    else:
                        for m in range(n):
                            mine[u * n + m] = <short>work.found[m]
                        alpha[s, u] = before[u] = 0.0
                        scale[s, u], offset[s, u], work.value[u] = tangent, constant, value
                        work.margin[u] = tree_score(work.U, work.found, n) - own
                        products(&work, shift, right, mine, n, u, used[s], spread, G, P)
                for done in range(steps):
                    ahead = violated_pair(&alpha[s, 0], work.value, used[s], &high, &low)
                    if not ahead > 1e-13 * (1.0 + fabs(work.value[high])):
                        break
                    curvature = scale[s, high] * scale[s, high] * G[high * P + high] + scale[s, low] * scale[s, low] * G[low * P + low]
                    curvature -= 2.0 * scale[s, high] * scale[s, low] * G[high * P + low]
                    if game:
                        differ = 0
                        for m in range(n):
                            differ += mine[high * n + m] != mine[low * n + m]
                        curvature += strength[s] * 2.0 * differ / delta
                    amount = alpha[s, low]
                    if curvature > 0.0 and strength[s] * ahead < amount * curvature:
                        amount = strength[s] * ahead / curvature
                    alpha[s, high] += amount
                    alpha[s, low] = alpha[s, low] - amount if amount < alpha[s, low] else 0.0
                    for u in range(used[s]):
                        x = scale[s, high] * G[u * P + high] - scale[s, low] * G[u * P + low]
                        work.value[u] -= amount / strength[s] * scale[s, u] * x
                        work.margin[u] -= amount / strength[s] * x
                    if game:
                        for m in range(n):
                            if mine[high * n + m] != mine[low * n + m]:
                                i = m * (n + 1)
                                mu[i + mine[high * n + m]] += amount
                                mu[i + mine[low * n + m]] -= amount
                                target(mu + i, work.centre + i, delta, <int>n + 1, price + i, work.sorted_)
                        add_costs(&work, mine, n, used[s], price)
                for u in range(used[s]):
                    x = (alpha[s, u] - before[u]) * scale[s, u]
                    if x != 0.0:
                        collect(&work, right, mine + u * n, n, x)
                deliver(&work, shift, n, -1.0 / strength[s], &theta[0])
    finally:
        work_free(&work)
        free(order)
        free(place)
        free(spread)
        free(before)
    return full, total


def mean_sweep(
    int kind, double beta, const long long[::1] words, const long long[::1] tags, const long long[::1] start, const int[::1] truth,
    const Py_ssize_t[::1] order, double[::1] theta, double[::1] parts, double[::1] constant, const double[::1] share, double lam,
    long long made, double[::1] late, double tolerance
):
    """Step at the S sentences in the order of ``order`` (S,), each with one mean plane: parts, (n + 1)^2 coefficients of the arcs of every sentence one
    behind the other, and constant (S,); return the calls of the oracle.

    made < 0: block-coordinate Frank-Wolfe, theta being w. From 0 on: subgradients after that many, parts and constant being sums over the steps,
    theta the sum of planes times S share, w = -1/(lam made) of it, and late a sum of these times the number of the step.
    """
    cdef Py_ssize_t most = check_sentences(words, tags, start), s, n, S = start.shape[0] - 1, at, m, i
    cdef int shift = shift_of(theta.shape[0]), calls = 0
    cdef long long total = 0
    cdef bint gradients = made >= 0
    cdef Work work
    cdef double own, value, upper, tangent, offset, ahead, square, gamma, factor, times
    cdef double *spread = NULL
    cdef Py_ssize_t *place = NULL
    check_heads(truth, start)
    demand(MARGIN <= kind <= PROB, "no such surrogate of trees")
    demand(order.shape[0] == S and constant.shape[0] == S and share.shape[0] == S, f"there are {S} sentences")
    check_positions(order, S, "order")
    demand(parts.shape[0] == numbers_of(start, 1, NULL), f"parts must be {numbers_of(start, 1, NULL)} numbers")
    demand(lam > 0.0, "lambda must be positive")
    demand(made < <long long>1 << 62, "too many steps")
    demand(late.shape[0] == (theta.shape[0] if gradients else 0), "late must have the shape of theta, or be empty")
    memset(&work, 0, sizeof(Work))
    try:
        place = <Py_ssize_t *>malloc(S * sizeof(Py_ssize_t))
        spread = <double *>calloc(theta.shape[0], sizeof(double))
        work_new(&work, most, 1)
        if place == NULL or spread == NULL:
            raise MemoryError("no memory for the scores of a sentence")
        numbers_of(start, 1, place)
        for at in range(S):
            if at % 256 == 255:
                PyErr_CheckSignals()
            s = order[at]
            n = start[s + 1] - start[s]
            right = &truth[start[s]]
            mean = &parts[place[s]]
            with nogil:
                score(&work, &words[start[s]], &tags[start[s]], n, &theta[0], shift)
                if gradients:
                    times = -1.0 / (lam * (made if made > 0 else 1))
                    for i in range((n + 1) * (n + 1)):
                        work.U[i] *= times
                own = tree_score(work.U, right, n)
                calls = worst(&work, kind, beta, right, n, own, tolerance, INFINITY, &value, &upper, &tangent, &offset)
                total += calls
                # the way to the worst plane: from the mean one, or from 0
                if not gradients:
                    for i in range((n + 1) * (n + 1)):
                        work.coef[i] = -mean[i]
                collect(&work, right, work.found, n, tangent)
                gamma = 1.0
                if gradients:
                    made += 1
                    factor = S * share[s]
                    constant[s] += offset
                    for i in range((n + 1) * (n + 1)):
                        mean[i] += work.coef[i]
                        work.V[i] = work.coef[i]
                    deliver(&work, shift, n, factor, &theta[0])
                    memcpy(work.coef, work.V, (n + 1) * (n + 1) * sizeof(double))
                    deliver(&work, shift, n, factor * made, &late[0])
                else:
                    offset -= constant[s]
                    ahead, square = offset, 0.0
                    for i in range(n + 1):
                        for m in range(1, n + 1):
                            if work.coef[i * (n + 1) + m] != 0.0:
                                ahead += work.coef[i * (n + 1) + m] * work.U[i * (n + 1) + m]
                                add_arc(&work, shift, i, m, work.coef[i * (n + 1) + m], spread)
                    for i in range(n + 1):
                        for m in range(1, n + 1):
                            if work.coef[i * (n + 1) + m] != 0.0:
                                square += work.coef[i * (n + 1) + m] * sum_arc(&work, shift, i, m, spread)
                    for i in range(n + 1):
                        for m in range(1, n + 1):
                            if work.coef[i * (n + 1) + m] != 0.0:
                                clear_arc(&work, shift, i, m, spread)
                    if ahead > 0.0:
                        square *= share[s]
                        if square > 0.0 and lam * ahead < square:
                            gamma = lam * ahead / square
                        constant[s] += gamma * offset
                        for i in range((n + 1) * (n + 1)):
                            mean[i] += gamma * work.coef[i]
                        deliver(&work, shift, n, -gamma * share[s] / lam, &theta[0])
                    else:
                        memset(work.coef, 0, (n + 1) * (n + 1) * sizeof(double))
    finally:
        work_free(&work)
        free(place)
        free(spread)
    return total


def arc_mixture(
    const long long[::1] words, const long long[::1] tags, const long long[::1] start, const double[::1] parts, const double[::1] share, double[::1] theta
):
    """theta += sum over sentences of share (S,) times the features of their mean planes (`mean_sweep`)."""
    cdef Py_ssize_t most = check_sentences(words, tags, start), s, n, S = start.shape[0] - 1, at = 0
    cdef int shift = shift_of(theta.shape[0])
    cdef Work work
    demand(parts.shape[0] == numbers_of(start, 1, NULL), f"parts must be {numbers_of(start, 1, NULL)} numbers")
    demand(share.shape[0] == S, f"there are {S} sentences")
    work_new(&work, most, 1)
    with nogil:
        for s in range(S):
            n = start[s + 1] - start[s]
            see(&work, &words[start[s]], &tags[start[s]], n)
            memcpy(work.coef, &parts[at], (n + 1) * (n + 1) * sizeof(double))
            deliver(&work, shift, n, share[s], &theta[0])
            at += (n + 1) * (n + 1)
    work_free(&work)
