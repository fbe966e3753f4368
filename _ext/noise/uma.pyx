"""UMA and the ultraconservative online algorithms on linear scores, dense or CSR, without the GIL.

Per noisy label k and predicted class p a run keeps Gamma^p[k] = sum_i s_i x_i 1[y_i = k] 1[x_i in A_p] (s sums to 1) and Z^p = C^-1 Gamma^p
(louche2015, Algorithm 2, steps 4 to 7, for all pairs at once). One update reads X once for the scores X u; after that only examples whose A_p
changed are read again, and only the Z^p of the touched p are formed anew - or, where few sparse rows moved, corrected by those rows.
"""

from libc.math cimport sqrt, INFINITY
from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from libc.string cimport memset
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_labels, check_rows, demand
from adv_simd cimport vec, load, splat, vsum, LANES
from adv_linear cimport Rows, dense_add, row_add, rows_of
from adv_loop cimport random_bits, shuffle

cdef enum:
    ERROR = 0           # rules that choose the pair: largest |z|
    CONFUSION = 1       # largest |z| / pi_q
    RANDOM = 2
    PERCEPTRON = 0      # steps: tau_p = -1
    UNIFORM = 1         # -1 shared by the error set
    WORST = 2           # -1 for the class of largest score in the error set
    PASSIVE = 3         # passive-aggressive against that class
    SMALL = 0           # why learning stopped: no |z| above the threshold
    LIMIT = 1           # the limit of updates
    NO_ERROR = 2        # no remaining z is a mistake of the present W
    UNTOUCHED = 0       # what an update did to A_p: nothing
    FORM = 1            # so much that Z^p is formed anew
    CORRECT = 2         # a few sparse rows moved
    CHUNK = 512         # columns of Gamma that stay in the first-level cache while Z is formed
    MOST = 46340        # classes: pairs of them are numbered by ints


cdef inline double inner(const double *a, const double *b, Py_ssize_t count) noexcept nogil:
    """Four accumulators hide the latency of a multiply-add."""
    cdef Py_ssize_t j = 0
    cdef double rest = 0.0
    cdef vec s0 = splat(0.0), s1 = s0, s2 = s0, s3 = s0
    while j + 4 * LANES <= count:
        s0 = s0 + load(a + j, 0) * load(b + j, 0)
        s1 = s1 + load(a + j, 1) * load(b + j, 1)
        s2 = s2 + load(a + j, 2) * load(b + j, 2)
        s3 = s3 + load(a + j, 3) * load(b + j, 3)
        j += 4 * LANES
    while j < count:
        rest += a[j] * b[j]
        j += 1
    return vsum((s0 + s1) + (s2 + s3)) + rest


cdef inline double row_inner(const Rows *x, Py_ssize_t i, const double *v) noexcept nogil:
    cdef Py_ssize_t e
    cdef double s = 0.0
    if x.start == NULL:
        return inner(x.values + i * x.d, v, x.d)
    for e in range(x.start[i], x.start[i + 1]):
        s += x.values[e] * v[x.columns[e]]
    return s


cdef inline void membership(const double *f, int k, double alpha, unsigned char *member) noexcept nogil:
    """member[p] = whether f_p exceeds every other score by at least alpha; alpha = 0 keeps all classes that tie for the largest."""
    cdef int p, best = 0
    cdef double largest = f[0], second = -INFINITY
    for p in range(1, k):
        if f[p] > largest:
            second = largest
            largest = f[p]
            best = p
        elif f[p] > second:
            second = f[p]
    for p in range(k):
        if alpha == 0.0:
            member[p] = 1 if f[p] == largest else 0
        else:
            member[p] = 1 if p == best and largest - second >= alpha else 0


cdef void form(int p, int k, Py_ssize_t d, const double *inverse, const double *gamma, const long long *count, double *z, double *norm) noexcept nogil:
    """Z^p = C^-1 Gamma^p and the norms of its rows; rows of Gamma without examples are zero and skipped."""
    cdef Py_ssize_t at = 0, width
    cdef int q, label
    cdef double c
    memset(z + <Py_ssize_t>p * k * d, 0, k * d * sizeof(double))
    while at < d:
        width = d - at if d - at < CHUNK else CHUNK
        for q in range(k):
            for label in range(k):
                c = inverse[q * k + label]
                if c != 0.0 and count[p * k + label] != 0:
                    dense_add(gamma + (<Py_ssize_t>p * k + label) * d + at, z + (<Py_ssize_t>p * k + q) * d + at, width, c)
        at += width
    lengths(p, k, d, z, norm)


cdef void gather(const Rows *x, const Py_ssize_t *y, const double *share, const double *F, int k, double alpha, unsigned char *member, double *gamma,
                 long long *count) noexcept nogil:
    """Form Gamma and its counts of examples from nothing; member + i k keeps the classes p of the A_p that example i is in."""
    cdef Py_ssize_t i
    cdef int p
    memset(gamma, 0, <Py_ssize_t>k * k * x.d * sizeof(double))
    memset(count, 0, k * k * sizeof(long long))
    for i in range(x.n):
        membership(F + i * k, k, alpha, member + i * k)
        for p in range(k):
            if member[i * k + p]:
                row_add(x, i, share[i], gamma + (<Py_ssize_t>p * k + y[i]) * x.d)
                count[p * k + y[i]] += 1


cdef void lengths(int p, int k, Py_ssize_t d, const double *z, double *norm) noexcept nogil:
    cdef int q
    for q in range(k):
        norm[p * k + q] = sqrt(inner(z + (<Py_ssize_t>p * k + q) * d, z + (<Py_ssize_t>p * k + q) * d, d))


cdef inline void move(const Rows *x, Py_ssize_t i, int p, Py_ssize_t label, int k, double share, const double *inverse, bint correct, double *gamma,
                      long long *count, double *z, unsigned char *way) noexcept nogil:
    """Add row i to Gamma^p[label], or take the row away when ``share`` is negative; with ``correct``, update the row's part of Z^p too."""
    cdef int q
    row_add(x, i, share, gamma + (p * k + label) * x.d)
    if share > 0.0:
        count[p * k + label] += 1
    else:
        count[p * k + label] -= 1
        if count[p * k + label] == 0:  # exactly zero again, not a residue of sums and differences
            memset(gamma + (p * k + label) * x.d, 0, x.d * sizeof(double))
            way[p] = FORM
    if correct:
        for q in range(k):
            if inverse[q * k + label] != 0.0:
                row_add(x, i, share * inverse[q * k + label], z + (<Py_ssize_t>p * k + q) * x.d)


cdef bint choose(int k, Py_ssize_t d, const double *W, const double *z, const double *norm, const double *prior, double alpha, double tol,
                 int rule, uint64_t *state, unsigned char *refused, int *p_out, int *q_out, bint *above) noexcept nogil:
    """Find the pair that the rule prefers among those with |z| > tol whose z is a mistake of W: p lies in the error set of z.

    Of equal pairs the first in row-major order is taken.
    """
    cdef int p, q, best
    cdef Py_ssize_t remaining, drawn
    cdef double value, largest
    memset(refused, 0, k * k)
    above[0] = False
    while True:
        best = -1
        largest = -INFINITY
        remaining = 0
        for p in range(k):
            for q in range(k):
                if p == q or refused[p * k + q] or not norm[p * k + q] > tol or (rule == CONFUSION and not prior[q] > 0.0):
                    continue
                remaining += 1
                value = norm[p * k + q] / prior[q] if rule == CONFUSION else norm[p * k + q]
                if value > largest:
                    largest = value
                    best = p * k + q
        if best < 0:
            return False
        above[0] = True
        if rule == RANDOM:
            drawn = <Py_ssize_t>(random_bits(state) % <uint64_t>remaining)
            for p in range(k):
                for q in range(k):
                    if p == q or refused[p * k + q] or not norm[p * k + q] > tol:
                        continue
                    if drawn == 0:
                        best = p * k + q
                    drawn -= 1
        p = best // k
        q = best % k
        each = z + <Py_ssize_t>best * d
        if inner(W + p * d, each, d) - inner(W + q * d, each, d) >= alpha:
            p_out[0] = p
            q_out[0] = q
            return True
        refused[best] = 1


cdef double steps(int k, const double *f, int q, int p, double alpha, int step, double square, double *tau) noexcept nogil:
    """Write the step sizes of an update whose point has scores f, class q and squared norm ``square``; return tau_q, 0 when there is no error.

    p is the class that tau = -1 goes to (PERCEPTRON); negative: the class of largest score.
    """
    cdef int r, worst = -1, errors = 0
    cdef double size = 1.0
    for r in range(k):
        tau[r] = 0.0
        if r != q and f[r] - f[q] >= alpha:
            errors += 1
            if worst < 0 or f[r] > f[worst]:
                worst = r
    if errors == 0:
        return 0.0
    if step == UNIFORM:
        for r in range(k):
            if r != q and f[r] - f[q] >= alpha:
                tau[r] = -1.0 / errors
    else:
        if step == PERCEPTRON and p >= 0:
            worst = p
        if step == PASSIVE:
            size = (1.0 + f[worst] - f[q]) / (2.0 * square)
        tau[worst] = -size
    tau[q] = size
    return size


cdef int check(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d,
               const Py_ssize_t[::1] y, Py_ssize_t k) except -1:
    if not 1 <= k <= MOST:
        raise ValueError(f"there must be 1 to {MOST} classes, not {k}")
    check_rows(values, columns, start, n, d)
    return check_labels(y, n, k)


def learn(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d, const Py_ssize_t[::1] y,
          const double[::1] share, const double[:, ::1] inverse, const double[::1] prior, double[:, ::1] W, double[:, ::1] F,
          double alpha, double tol, int rule, int step, bint unit, Py_ssize_t limit, unsigned long long seed):
    """Run Algorithm 2 in place on W (k, d) and the scores F (n, k) = X W'.

    ``columns`` is empty for dense rows; ``share`` are the weights of the rows, of sum 1. Returns (updates, why it stopped: 0 no |z| above ``tol``,
    1 the limit, 2 no mistake left, the largest |z| off the diagonal at the end).
    """
    cdef int k = <int>W.shape[0], p, q, r, code = LIMIT
    cdef Py_ssize_t i, update = 0, flips, size = <Py_ssize_t>k * k
    cdef double filled = <double>values.shape[0] / n if n else 0.0
    cdef Rows x = rows_of(values, columns, start, n, <int>d)
    cdef uint64_t state = seed
    cdef bint above = False
    cdef double scale, s, largest = 0.0
    check(values, columns, start, n, d, y, W.shape[0])
    demand(share.shape[0] == n and inverse.shape[0] == k and inverse.shape[1] == k and prior.shape[0] == k,
           "shares must be (n,), the inverse (k, k) and the prior (k,)")
    demand(W.shape[1] == d and F.shape[0] == n and F.shape[1] == k, "W must be (k, d) and the scores (n, k)")
    block = <double *>malloc((2 * size * d + size + 2 * k) * sizeof(double))
    count = <long long *>malloc((size + k) * sizeof(long long))
    member = <unsigned char *>malloc(2 * n * k + size + k)
    try:
        if block == NULL or count == NULL or member == NULL:
            raise MemoryError(f"no memory for {2 * size} sums of {d} features")
        gamma, z, norm = block, block + size * d, block + 2 * size * d
        tau, f = norm + size, norm + size + k
        fresh, refused, way = member + n * k, member + 2 * n * k, member + 2 * n * k + size
        flipped = count + size
        with nogil:
            gather(&x, &y[0], &share[0], &F[0, 0], k, alpha, member, gamma, count)
            for p in range(k):
                form(p, k, d, &inverse[0, 0], gamma, count, z, norm)
            while update < limit:
                if not choose(k, d, &W[0, 0], z, norm, &prior[0], alpha, tol, rule, &state, refused, &p, &q, &above):
                    code = <int>NO_ERROR if above else <int>SMALL
                    break
                point = z + (<Py_ssize_t>p * k + q) * d
                scale = 1.0 / norm[p * k + q] if unit or step == PASSIVE else 1.0
                for r in range(k):
                    f[r] = scale * inner(&W[r, 0], point, d)
                steps(k, f, q, p, alpha * scale if unit or step == PASSIVE else alpha, step, 1.0, tau)
                for r in range(k):
                    if tau[r] != 0.0:
                        dense_add(point, &W[r, 0], d, tau[r] * scale)
                update += 1
                if update % 16 == 0:
                    with gil:
                        PyErr_CheckSignals()
                # the one read of X; its rank-one change of the scores replaces a product with all of W
                memset(flipped, 0, k * sizeof(long long))
                flips = 0
                for i in range(n):
                    s = scale * row_inner(&x, i, point)
                    for r in range(k):
                        if tau[r] != 0.0:
                            F[i, r] += tau[r] * s
                    membership(&F[i, 0], k, alpha, fresh + i * k)
                    for p in range(k):
                        if fresh[i * k + p] != member[i * k + p]:
                            flips += 1
                            flipped[p] += 1
                for p in range(k):
                    way[p] = UNTOUCHED if flipped[p] == 0 else FORM
                    # a correction touches k filled numbers a row and leaves the lengths to measure, k d; forming takes k^2 d
                    if flipped[p] and 3 * flips <= n and x.start != NULL and 4 * flipped[p] * filled < k * d:
                        way[p] = CORRECT
                if 3 * flips > n:
                    # a grouped sum reads every example once; moving one reads it twice
                    for p in range(k):
                        if way[p]:
                            memset(gamma + <Py_ssize_t>p * k * d, 0, k * d * sizeof(double))
                            memset(count + p * k, 0, k * sizeof(long long))
                    for i in range(n):
                        for p in range(k):
                            if way[p] and fresh[i * k + p]:
                                row_add(&x, i, share[i], gamma + (<Py_ssize_t>p * k + y[i]) * d)
                                count[p * k + y[i]] += 1
                            member[i * k + p] = fresh[i * k + p]
                else:
                    for i in range(n):
                        for p in range(k):
                            if fresh[i * k + p] == member[i * k + p]:
                                continue
                            member[i * k + p] = fresh[i * k + p]
                            move(&x, i, p, y[i], k, share[i] if fresh[i * k + p] else -share[i], &inverse[0, 0], way[p] == CORRECT, gamma, count, z, way)
                for p in range(k):
                    if way[p] == FORM:
                        form(p, k, d, &inverse[0, 0], gamma, count, z, norm)
                    elif way[p] == CORRECT:
                        lengths(p, k, d, z, norm)
            for p in range(k):
                for q in range(k):
                    if p != q and norm[p * k + q] > largest:
                        largest = norm[p * k + q]
    finally:
        free(block)
        free(count)
        free(member)
    return update, code, largest


def online(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d, const Py_ssize_t[::1] y,
           const double[::1] square, double[:, ::1] W, int step, Py_ssize_t epochs, unsigned long long seed):
    """Run an ultraconservative algorithm (louche2015, Algorithm 1) in place on W (k, d), in a fresh order every epoch.

    Returns (epochs run, updates, updates in the last epoch); it stops after an epoch without an update.
    """
    cdef int k = <int>W.shape[0], r
    cdef Py_ssize_t i, j, epoch = 0, updates = 0, before = 0
    cdef Rows x = rows_of(values, columns, start, n, <int>d)
    cdef uint64_t state = seed
    check(values, columns, start, n, d, y, W.shape[0])
    demand(square.shape[0] == n and W.shape[1] == d, "every row needs a squared length, and W must be (k, d)")
    order = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    f = <double *>malloc(2 * k * sizeof(double))
    try:
        if order == NULL or f == NULL:
            raise MemoryError("no memory for the order of the examples")
        tau = f + k
        with nogil:
            for i in range(n):
                order[i] = i
            while epoch < epochs:
                shuffle(order, n, &state)
                before = updates
                for j in range(n):
                    i = order[j]
                    if square[i] == 0.0:
                        continue  # no step can separate the classes of a zero row
                    for r in range(k):
                        f[r] = row_inner(&x, i, &W[r, 0])
                    if steps(k, f, <int>y[i], -1, 0.0, step, square[i], tau) != 0.0:
                        updates += 1
                        for r in range(k):
                            if tau[r] != 0.0:
                                row_add(&x, i, tau[r], &W[r, 0])
                epoch += 1
                if updates == before:
                    break
                with gil:
                    PyErr_CheckSignals()
    finally:
        free(order)
        free(f)
    return epoch, updates, updates - before
