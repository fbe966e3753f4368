# A symmetric matrix by its factors: G_ml = (b_m'b_l)(x_i'x_j) for rows i, j that own the coordinates m, l, and |x_i| = 1.
#
# A product with G is two with the rows: Theta = sum_m a_m b_m x_i', then b_m'Theta x_i. It takes 4 d multiply-adds for each class on which a row's
# directions have an entry, where G itself, of m^2 numbers, has to be made and lies in no cache.

from libc.stdlib cimport free, malloc
from libc.string cimport memset

from adv_linear cimport Rows, row_add, row_dot
from adv_simd cimport LANES, load, load_first, splat, vec, vsum, zeros

cdef struct Factors:
    Rows rows                 # x_i
    Py_ssize_t d              # numbers from one row of Theta to the next: whole vectors
    int k
    const double *gradient    # (m): at 0
    double *total             # (k, d): Theta of z
    double *along             # (k, d): Theta of a direction
    double *score             # (k): scratch for the scores of one row
    Py_ssize_t *first         # (n + 1): where the coordinates of each row begin
    Py_ssize_t *list          # (n + 1): where its classes begin in
    int *classes              # those in which one of its directions has an entry
    Py_ssize_t *block         # (n + 1): where its entries begin in
    double *entries           # those of b_m for these classes, one coordinate after the other


cdef inline double pair_score(const Rows *rows, Py_ssize_t i, const double *one, const double *two, const double *b) noexcept nogil:
    """Return x_i'(b_0 one + b_1 two) for two classes."""
    cdef Py_ssize_t j
    cdef int v, vectors = rows.d // LANES, tail = rows.d % LANES
    cdef const double *x
    cdef vec sum = splat(0.0), first, second
    cdef double score = 0.0
    if rows.start != NULL:
        for j in range(rows.start[i], rows.start[i + 1]):
            score += rows.values[j] * (b[0] * one[rows.columns[j]] + b[1] * two[rows.columns[j]])
        return score
    x, first, second = rows.values + i * rows.d, splat(b[0]), splat(b[1])
    for v in range(vectors):
        sum = sum + load(x, v) * (first * load(one, v) + second * load(two, v))
    if tail:  # Theta has zeros there
        sum = sum + load_first(x + vectors * LANES, tail) * (first * load(one, vectors) + second * load(two, vectors))
    return vsum(sum)


cdef inline bint is_pair(const Factors *f, Py_ssize_t i) noexcept nogil:
    """Whether row i moves along one direction of two classes, as most do: their two scores take one sum."""
    return f.first[i + 1] - f.first[i] == 1 and f.list[i + 1] - f.list[i] == 2


cdef inline double *theta_of(const Factors *f, Py_ssize_t i, int place, double *theta) noexcept nogil:
    """Return the parameters of a class of row i."""
    return theta + f.classes[f.list[i] + place] * f.d


cdef inline int row_scores(const Factors *f, Py_ssize_t i, double *theta) noexcept nogil:
    """Write the scores of row i for its classes and return their number."""
    cdef int c, size = <int>(f.list[i + 1] - f.list[i])
    for c in range(size):
        f.score[c] = row_dot(&f.rows, i, theta_of(f, i, c, theta))
    return size


cdef inline void row_slopes(const Factors *f, Py_ssize_t i, double *theta, double *out) noexcept nogil:
    """out_t = b_t'theta x_i for the coordinates of row i."""
    cdef Py_ssize_t t
    cdef int size
    if is_pair(f, i):
        out[f.first[i]] = pair_score(&f.rows, i, theta_of(f, i, 0, theta), theta_of(f, i, 1, theta), f.entries + f.block[i])
        return
    size = row_scores(f, i, theta)
    for t in range(f.first[i], f.first[i + 1]):
        out[t] = entries_dot(f.entries + f.block[i] + (t - f.first[i]) * size, f.score, size)


cdef inline void row_moves(const Factors *f, Py_ssize_t i, const double *a, double *theta) noexcept nogil:
    """theta += a_t b_t x_i' for the coordinates of row i."""
    cdef Py_ssize_t t
    cdef int c, size = <int>(f.list[i + 1] - f.list[i])
    cdef double by
    for c in range(size):
        by = 0.0
        for t in range(f.first[i], f.first[i + 1]):
            by += a[t] * f.entries[f.block[i] + (t - f.first[i]) * size + c]
        if by != 0.0:
            row_add(&f.rows, i, by, theta_of(f, i, c, theta))


cdef inline double entries_dot(const double *b, const double *u, int size) noexcept nogil:
    cdef int c
    cdef double sum = 0.0
    for c in range(size):
        sum += b[c] * u[c]
    return sum


cdef inline void slopes(const Factors *f, double *g) noexcept nogil:
    """Write the gradient (m) at z."""
    cdef Py_ssize_t i, t
    for i in range(f.rows.n):
        row_slopes(f, i, f.total, g)
    for t in range(f.first[f.rows.n]):
        g[t] = f.gradient[t] - g[t]


cdef inline void multiply_factors(const Factors *f, const double *a, const char *held, double *out) noexcept nogil:
    """out = G a for the coordinates of the rows that are not ``held``, where a is 0 but for these."""
    cdef Py_ssize_t i
    memset(f.along, 0, f.k * f.d * sizeof(double))
    for i in range(f.rows.n):
        if not held[i]:
            row_moves(f, i, a, f.along)
    for i in range(f.rows.n):
        if not held[i]:
            row_slopes(f, i, f.along, out)


cdef inline void follow_factors(Factors *f) noexcept nogil:
    """Move z along the direction of the last product."""
    cdef Py_ssize_t j
    for j in range(f.k * f.d):
        f.total[j] += f.along[j]


cdef inline int classes_moved(const double *B, int k, Py_ssize_t first, Py_ssize_t last, int *classes) noexcept nogil:
    """List the classes in which one of the rows first..last - 1 of B (any, k) has an entry, and return their number."""
    cdef Py_ssize_t t
    cdef int c, size = 0
    for c in range(k):
        for t in range(first, last):
            if B[t * k + c] != 0.0:
                classes[size] = c
                size += 1
                break
    return size


cdef inline void factors_free(Factors *f) noexcept nogil:
    free(f.total)
    free(f.entries)
    free(f.first)
    free(f.classes)


cdef inline bint factors_new(Factors *f, Rows rows, int k, const double *B, const Py_ssize_t *owner, Py_ssize_t m) noexcept nogil:
    """Begin at z = 0 for directions B (m, k) of rows that ``owner`` (m), which does not fall, names; return whether memory was short."""
    cdef Py_ssize_t i, t, last, block
    cdef Py_ssize_t n = rows.n, d = (rows.d + LANES - 1) // LANES * LANES
    cdef int c, size
    f.rows, f.d, f.k = rows, d, k
    f.total = zeros(2 * k * d + k)
    f.first = <Py_ssize_t *>malloc(3 * (n + 1) * sizeof(Py_ssize_t))
    f.classes = <int *>malloc(m * k * sizeof(int))
    f.entries = <double *>malloc(m * k * sizeof(double))
    if f.total == NULL or f.first == NULL or f.classes == NULL or f.entries == NULL:
        return True
    f.along = f.total + k * d
    f.score = f.along + k * d
    f.list, f.block = f.first + n + 1, f.first + 2 * (n + 1)
    f.first[0] = f.list[0] = f.block[0] = 0
    for i in range(n):
        last = f.first[i]
        while last < m and owner[last] == i:
            last += 1
        size = classes_moved(B, k, f.first[i], last, f.classes + f.list[i])
        block = f.block[i]
        for t in range(f.first[i], last):
            for c in range(size):
                f.entries[block] = B[t * k + f.classes[f.list[i] + c]]
                block += 1
        f.first[i + 1], f.list[i + 1], f.block[i + 1] = last, f.list[i] + size, block
    return False
