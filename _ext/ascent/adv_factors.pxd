# A symmetric matrix by its factors: G_ml = (b_m'b_l)(x_i'x_j) for rows i, j that own the coordinates m, l, and |x_i| = 1.
#
# A product with G is two with the rows: Theta = sum_m a_m b_m x_i', then b_m'Theta x_i. It takes 4 d multiply-adds for each class on which a row's
# directions have an entry, where G itself, of m^2 numbers, has to be made and lies in no cache.
#
# Most rows have one direction, in two classes. Up to GROUP dense rows with the same one, side by side, form a group: a loop over a group reads and
# stores the parameters of the two classes once, and the sums of its rows do not wait for each other. Dense rows are copied for it, to whole vectors
# that begin at a cache line.

from libc.math cimport fabs
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from adv_linear cimport GROUP, Rows, dense_dot, row_add, row_products
from adv_simd cimport LANES, inlined, load, splat, store, vec, vsum, zeros

cdef extern from *:
    """
    static const double adv_same_entry = 1e-14; /* difference of two entries of unit vectors that is rounding */
    """
    double SAME_ENTRY "adv_same_entry"

cdef struct Group:
    Py_ssize_t begin, end     # its rows: GROUP at most
    bint pair                 # whether they are dense and have one direction, in two classes; any other row is a group by itself
    Py_ssize_t one, two       # where the parameters of these classes begin
    double[2] b               # the entries of their direction

cdef struct Factors:
    Rows rows                 # x_i; dense ones padded to whole vectors, and -x_i where the direction of a pair is -b
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
    Group *group              # (groups)
    Py_ssize_t groups
    double *copy              # (n, d): dense rows
    double *cross             # (n, GROUP): the products of a row with those of its group before it


cdef inline inlined scores_of(const Factors *f, const Group *g, int count, const double *theta, double *out) noexcept nogil:
    """Do `group_scores` for ``count`` rows."""
    cdef Py_ssize_t v, d = f.d
    cdef const double *x = f.copy + g.begin * d
    cdef const double *one = theta + g.one
    cdef const double *two = theta + g.two
    cdef vec direction, b0 = splat(g.b[0]), b1 = splat(g.b[1]), s0, s1, s2, s3
    s0 = s1 = s2 = s3 = splat(0.0)
    for v in range(d // LANES):
        direction = b0 * load(one, v) + b1 * load(two, v)
        s0 = s0 + load(x, v) * direction
        if count > 1:
            s1 = s1 + load(x + d, v) * direction
        if count > 2:
            s2 = s2 + load(x + 2 * d, v) * direction
        if count > 3:
            s3 = s3 + load(x + 3 * d, v) * direction
    out[0] = vsum(s0)
    if count > 1:
        out[1] = vsum(s1)
    if count > 2:
        out[2] = vsum(s2)
    if count > 3:
        out[3] = vsum(s3)


cdef inline void group_scores(const Factors *f, const Group *g, const double *theta, double *out) noexcept nogil:
    """out_r = x_r'(b_0 theta_one + b_1 theta_two) for the rows of a group of pairs; each number of rows up to GROUP has a loop of its own."""
    cdef Py_ssize_t count = g.end - g.begin
    if count == 4:
        scores_of(f, g, 4, theta, out)
    elif count == 3:
        scores_of(f, g, 3, theta, out)
    elif count == 2:
        scores_of(f, g, 2, theta, out)
    else:
        scores_of(f, g, 1, theta, out)


cdef inline inlined moves_of(const Factors *f, const Group *g, int count, const double *a, double *theta) noexcept nogil:
    """Do `group_moves` for ``count`` rows."""
    cdef Py_ssize_t v, d = f.d
    cdef const double *x = f.copy + g.begin * d
    cdef double *one = theta + g.one
    cdef double *two = theta + g.two
    cdef vec sum, b0 = splat(g.b[0]), b1 = splat(g.b[1]), a0 = splat(a[0]), a1, a2, a3
    a1 = splat(a[1]) if count > 1 else a0
    a2 = splat(a[2]) if count > 2 else a0
    a3 = splat(a[3]) if count > 3 else a0
    for v in range(d // LANES):
        sum = a0 * load(x, v)
        if count > 1:
            sum = sum + a1 * load(x + d, v)
        if count > 2:
            sum = sum + a2 * load(x + 2 * d, v)
        if count > 3:
            sum = sum + a3 * load(x + 3 * d, v)
        store(one, v, load(one, v) + b0 * sum)
        store(two, v, load(two, v) + b1 * sum)


cdef inline void group_moves(const Factors *f, const Group *g, const double *a, double *theta) noexcept nogil:
    """theta_one += b_0 sum_r a_r x_r, theta_two += b_1 sum_r a_r x_r for the rows of a group of pairs; loops as in `group_scores`."""
    cdef Py_ssize_t count = g.end - g.begin
    if count == 4:
        moves_of(f, g, 4, a, theta)
    elif count == 3:
        moves_of(f, g, 3, a, theta)
    elif count == 2:
        moves_of(f, g, 2, a, theta)
    else:
        moves_of(f, g, 1, a, theta)


cdef inline double *theta_of(const Factors *f, Py_ssize_t i, int place, double *theta) noexcept nogil:
    """Return the parameters of a class of row i."""
    return theta + f.classes[f.list[i] + place] * f.d


cdef inline int row_scores(const Factors *f, Py_ssize_t i, double *theta) noexcept nogil:
    """Write the scores of row i for its classes and return their number."""
    cdef const double *columns[GROUP]
    cdef int c = 0, q, count, size = <int>(f.list[i + 1] - f.list[i])
    while c < size:
        count = min(size - c, GROUP - 1)
        for q in range(count):
            columns[q] = theta_of(f, i, c + q, theta)
        row_products(&f.rows, i, columns, count, f.score + c)
        c += count
    return size


cdef inline void row_slopes(const Factors *f, Py_ssize_t i, double *theta, double *out) noexcept nogil:
    """out_t = b_t'theta x_i for the coordinates of row i."""
    cdef Py_ssize_t t
    cdef int size = row_scores(f, i, theta)
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


cdef inline bint all_held(const Group *g, const char *held) noexcept nogil:
    """Whether all rows of a group are ``held``."""
    cdef Py_ssize_t i
    for i in range(g.begin, g.end):
        if not held[i]:
            return False
    return True


cdef inline void slopes(const Factors *f, double *theta, const char *held, double *out) noexcept nogil:
    """out_t = b_t'theta x_i for the coordinates of all groups but those whose rows are all ``held``."""
    cdef Py_ssize_t j
    cdef const Group *g
    for j in range(f.groups):
        g = &f.group[j]
        if all_held(g, held):
            continue
        if g.pair:
            group_scores(f, g, theta, out + f.first[g.begin])
        else:
            row_slopes(f, g.begin, theta, out)


cdef inline void moves(const Factors *f, const double *a, const char *held, double *theta) noexcept nogil:
    """theta += a_t b_t x_i' for all coordinates; a is 0 for those of ``held`` rows."""
    cdef Py_ssize_t j
    cdef const Group *g
    for j in range(f.groups):
        g = &f.group[j]
        if all_held(g, held):
            continue
        if g.pair:
            group_moves(f, g, a + f.first[g.begin], theta)
        else:
            row_moves(f, g.begin, a, theta)


cdef inline void multiply_factors(const Factors *f, const double *a, const char *held, double *out) noexcept nogil:
    """out = G a for the coordinates of the rows that are not ``held``, where a is 0 but for these. Held rows of a group get a number, too."""
    memset(f.along, 0, f.k * f.d * sizeof(double))
    moves(f, a, held, f.along)
    slopes(f, f.along, held, out)


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


cdef inline bint is_pair(const Factors *f, Py_ssize_t i) noexcept nogil:
    """Whether row i moves along one direction, in two classes."""
    return f.first[i + 1] - f.first[i] == 1 and f.list[i + 1] - f.list[i] == 2


cdef inline double sign_in(const Factors *f, Py_ssize_t i, const Group *g) noexcept nogil:
    """Return the sign that the direction of row i has in a group, 0 where it is no pair or has another direction."""
    cdef const double *b = f.entries + f.block[i]
    cdef const int *classes = f.classes + f.list[i]
    cdef double sign
    if not g.pair or not is_pair(f, i) or classes[0] * f.d != g.one or classes[1] * f.d != g.two:
        return 0.0
    sign = 1.0 if b[0] * g.b[0] > 0.0 else -1.0
    return sign if fabs(b[0] - sign * g.b[0]) < SAME_ENTRY and fabs(b[1] - sign * g.b[1]) < SAME_ENTRY else 0.0


cdef inline void begin_group(Factors *f, Py_ssize_t i) noexcept nogil:
    """Begin a group with row i."""
    cdef Group *g = &f.group[f.groups]
    f.groups += 1
    g.begin, g.end, g.pair = i, i + 1, f.copy != NULL and is_pair(f, i)
    if g.pair:
        g.one, g.two = f.classes[f.list[i]] * f.d, f.classes[f.list[i] + 1] * f.d
        g.b[0], g.b[1] = f.entries[f.block[i]], f.entries[f.block[i] + 1]


cdef inline void group_rows(Factors *f, Rows rows) noexcept nogil:
    """Group rows whose directions are known; copy dense ones, and multiply those of a group with each other."""
    cdef Py_ssize_t i, j
    cdef double sign
    cdef Group *g = NULL
    for i in range(rows.n):
        sign = 0.0 if g == NULL or g.end - g.begin == GROUP else sign_in(f, i, g)
        if sign == 0.0:
            g = &f.group[f.groups]
            begin_group(f, i)
            sign = 1.0
        g.end = i + 1
        if f.copy != NULL:
            for j in range(rows.d):
                f.copy[i * f.d + j] = sign * rows.values[i * rows.d + j]
            for j in range(g.begin, i):
                f.cross[i * GROUP + j - g.begin] = dense_dot(f.copy + i * f.d, f.copy + j * f.d, <int>f.d)
    if f.copy != NULL:
        f.rows.values, f.rows.d = f.copy, <int>f.d


cdef inline void factors_free(Factors *f) noexcept nogil:
    free(f.total)
    free(f.entries)
    free(f.first)
    free(f.classes)
    free(f.copy)
    free(f.group)


cdef inline bint factors_new(Factors *f, Rows rows, int k, const double *B, const Py_ssize_t *owner, Py_ssize_t m) noexcept nogil:
    """Begin at z = 0 for directions B (m, k) of rows that ``owner`` (m), which does not fall, names; return whether memory was short."""
    cdef Py_ssize_t i, t, last, block
    cdef Py_ssize_t n = rows.n, d = (rows.d + LANES - 1) // LANES * LANES
    cdef int c, size
    f.rows, f.d, f.k, f.groups = rows, d, k, 0
    f.total = zeros(2 * k * d + k)
    f.copy = zeros(n * (d + GROUP)) if rows.start == NULL else NULL
    f.first = <Py_ssize_t *>malloc(3 * (n + 1) * sizeof(Py_ssize_t))
    f.group = <Group *>malloc(n * sizeof(Group))
    f.classes = <int *>malloc(m * k * sizeof(int))
    f.entries = <double *>malloc(m * k * sizeof(double))
    if f.total == NULL or f.first == NULL or f.group == NULL or f.classes == NULL or f.entries == NULL or (f.copy == NULL and rows.start == NULL):
        return True
    f.cross = f.copy + n * d if f.copy != NULL else NULL
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
    group_rows(f, rows)
    return False
