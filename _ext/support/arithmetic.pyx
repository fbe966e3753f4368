"""Products, factors and elementary functions that have the same bits on every processor: what a portable run takes for BLAS, LAPACK and NumPy's loops.

An entry of a product A B is the sum of a_ip b_pj in the order of p, each rounded before it is added (meson.build turns contraction off), however the
work is divided; only products of a matrix, rows contiguous, and one vector are sums over sixteen lanes. Factors are made of such products.
Sources: Golub & Van Loan 2013 (Matrix Computations, 4th edition), sections 4.2 (Cholesky), 3.4 (LU), 8.3 (tridiagonal QL).

One file: factors, eigenvalues and NumPy's loops are made of the same products.
"""

from cython cimport view
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.math cimport fabs, sqrt
from libc.stdlib cimport free, malloc, realloc

from adv_check cimport demand
from adv_simd cimport LANES, inlined, load, load_first, splat, store, vec, vsum
cimport adv_elementary

cdef enum:
    DEEP = 192   # terms of a sum whose factors lie packed together
    BLOCK = 48   # columns of a product whose factors lie packed together, and of a factor that are eliminated together
    PANEL = 8    # and of these before the next are
    TALL = 4     # rows of a product that are summed together
    MOST = 16    # numbers of two vectors, at most; BLOCK is a multiple of it
    PACKED = DEEP * (BLOCK + TALL) + 8  # numbers that lie packed together, from the beginning of a cache line on
    STRIP = 16   # rows or columns of eigenvectors that are turned together
    GROUP = 8    # rows of a symmetric matrix that are multiplied together
    PIECE = 128  # columns of these rows, which stay near
    KEPT = 32    # turns of all rows that wait for it


cdef struct Matrix:
    double *at
    Py_ssize_t down   # from a row to the next
    Py_ssize_t along  # from a column to the next


cdef struct Turns:
    double *at         # (i, s, c) of each turn
    Py_ssize_t count
    Py_ssize_t most    # there is room for


cdef inline Matrix part(Matrix A, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Return A from row i and column j on."""
    A.at += i * A.down + j * A.along
    return A


cdef inline Matrix turned(Matrix A) noexcept nogil:
    A.down, A.along = A.along, A.down
    return A


cdef inline inlined sums(vec *c, const double **a, Py_ssize_t along, Py_ssize_t depth, const double *b, Py_ssize_t step, int vectors, int last,
                         bint minus) noexcept nogil:
    """Add A B to TALL rows of ``vectors`` vectors, or subtract it: a[i][p along] by the row b + p step, of whose last vector ``last`` numbers are read."""
    cdef vec u, v, s
    cdef Py_ssize_t p
    cdef int i
    v = splat(0.0)
    for p in range(depth):
        u = load_first(b, last) if vectors == 1 and last < LANES else load(b, 0)
        if vectors == 2:
            v = load_first(b + LANES, last) if last < LANES else load(b, 1)
        for i in range(TALL):
            s = splat(a[i][p * along])
            c[i] = c[i] - s * u if minus else c[i] + s * u
            if vectors == 2:
                c[TALL + i] = c[TALL + i] - s * v if minus else c[TALL + i] + s * v
        b += step


cdef inline void tile(const double **a, Py_ssize_t along, int rows, Py_ssize_t depth, const double *b, Py_ssize_t step, int width, bint minus,
                      Matrix C) noexcept nogil:
    """Add A B to at most TALL rows and ``width`` columns of C, 2 vectors at most, or subtract it; ``along`` is 1 or TALL."""
    cdef vec c[2 * TALL]
    cdef double line[MOST]
    cdef int i, j, vectors = 2 if width > LANES else 1, last = width - (vectors - 1) * LANES
    cdef bint whole = last == LANES, written = C.along == 1 and whole
    for i in range(TALL):
        if i >= rows:
            c[i] = c[TALL + i] = splat(0.0)
        elif written:
            c[i] = load(C.at + i * C.down, 0)
            c[TALL + i] = load(C.at + i * C.down, 1) if vectors == 2 else splat(0.0)
        else:
            for j in range(2 * LANES):
                line[j] = C.at[i * C.down + j * C.along] if j < width else 0.0
            c[i] = load(line, 0)
            c[TALL + i] = load(line, 1)
    if vectors == 1:
        sums(c, a, along, depth, b, step, 1, last, minus)
    elif not whole:
        sums(c, a, along, depth, b, step, 2, last, minus)
    elif along == 1:
        sums(c, a, 1, depth, b, step, 2, LANES, minus)
    else:
        sums(c, a, TALL, depth, b, step, 2, LANES, minus)
    for i in range(rows):
        if written:
            store(C.at + i * C.down, 0, c[i])
            if vectors == 2:
                store(C.at + i * C.down, 1, c[TALL + i])
        else:
            store(line, 0, c[i])
            store(line, 1, c[TALL + i])
            for j in range(width):
                C.at[i * C.down + j * C.along] = line[j]


cdef inline void pack(Matrix A, Py_ssize_t m, int width, int group, double *to) noexcept nogil:
    """Write A, m rows of ``width`` columns, one row after the other, each filled up with zeros to ``group`` numbers."""
    cdef Py_ssize_t p
    cdef int q
    for p in range(m):
        for q in range(width):
            to[q] = A.at[p * A.down + q * A.along]
        for q in range(width, group):
            to[q] = 0.0
        to += group


cdef void rows_by(Matrix A, Py_ssize_t m, Py_ssize_t depth, const double *x, double sign, Matrix C) noexcept nogil:
    """Add sign A x to the column C for rows A of contiguous numbers, over sixteen lanes."""
    cdef vec s, t, u, v
    cdef Py_ssize_t i, j, whole = depth // (4 * LANES)
    cdef const double *a
    cdef double rest
    for i in range(m):
        a = A.at + i * A.down
        s = t = u = v = splat(0.0)
        for j in range(whole):
            s = s + load(a, 4 * j) * load(x, 4 * j)
            t = t + load(a, 4 * j + 1) * load(x, 4 * j + 1)
            u = u + load(a, 4 * j + 2) * load(x, 4 * j + 2)
            v = v + load(a, 4 * j + 3) * load(x, 4 * j + 3)
        rest = 0.0
        for j in range(4 * LANES * whole, depth):
            rest = rest + a[j] * x[j]
        C.at[i * C.down] = C.at[i * C.down] + sign * (vsum((s + t) + (u + v)) + rest)


cdef void in_order(Py_ssize_t m, Py_ssize_t n, Py_ssize_t depth, Matrix A, Matrix B, double sign, Matrix C, double *packed) noexcept nogil:
    """Add sign A B to C (m, n), the ``depth`` terms of an entry in their order; ``packed`` has room for PACKED numbers."""
    cdef Py_ssize_t first, left, i, j, terms, wide
    cdef double *rows
    cdef const double *b
    cdef const double *a[TALL]
    cdef bint in_place = B.along == 1 and m <= 2 * TALL  # a copy would be read too seldom
    cdef int some, q, pair = 2 * LANES
    packed = <double *>((<size_t>packed + 63) // 64 * 64)
    rows = packed + DEEP * BLOCK
    for first from 0 <= first < depth by DEEP:
        terms = min(<Py_ssize_t>DEEP, depth - first)
        for left from 0 <= left < n by BLOCK:
            wide = min(<Py_ssize_t>BLOCK, n - left)
            if not in_place:
                for j from 0 <= j < wide by pair:
                    pack(part(B, first, left + j), terms, <int>min(<Py_ssize_t>pair, wide - j), pair, packed + j * terms)
            for i from 0 <= i < m by TALL:
                some = <int>min(<Py_ssize_t>TALL, m - i)
                for q in range(TALL):
                    a[q] = rows + q if A.along != 1 else part(A, i + min(q, some - 1), first).at
                if A.along != 1:
                    pack(turned(part(A, i, first)), terms, some, TALL, rows)
                for j from 0 <= j < wide by pair:
                    b = part(B, first, left + j).at if in_place else packed + j * terms
                    tile(a, 1 if A.along == 1 else TALL, some, terms, b, B.down if in_place else pair, <int>min(<Py_ssize_t>pair, wide - j),
                         sign < 0.0, part(C, i, left + j))


cdef void add_product(Py_ssize_t m, Py_ssize_t n, Py_ssize_t depth, Matrix A, Matrix B, double sign, Matrix C, double *packed) noexcept nogil:
    """Add sign A B to C (m, n): in order, or over lanes where rows of A are contiguous and B is one vector."""
    if n == 1 and A.along == 1 and B.down == 1:
        rows_by(A, m, depth, B.at, sign, C)
    elif n == 1 or (n <= 2 * TALL and A.down == 1 and A.along != 1):  # few rows times a matrix: the same sums, without packing it
        in_order(n, m, depth, turned(B), turned(A), sign, turned(C), packed)
    else:
        in_order(m, n, depth, A, B, sign, C, packed)


cdef void add_square(Py_ssize_t n, Py_ssize_t depth, Matrix A, double sign, Matrix C, double *packed) noexcept nogil:
    """Add sign A A' to the upper triangle of C (n, n), in order."""
    cdef Py_ssize_t begin
    for begin from 0 <= begin < n by BLOCK:
        in_order(min(<Py_ssize_t>BLOCK, n - begin), n - begin, depth, part(A, begin, 0), turned(part(A, begin, 0)), sign, part(C, begin, begin),
                 packed)


cdef inline Matrix of(double[:, :] A) noexcept nogil:
    cdef Matrix made
    made.at = &A[0, 0] if A.shape[0] and A.shape[1] else NULL
    made.down, made.along = A.strides[0] // <Py_ssize_t>sizeof(double), A.strides[1] // <Py_ssize_t>sizeof(double)
    return made


cdef inline Matrix by_columns(double *at, int step) noexcept nogil:
    """Return the matrix whose columns lie ``step`` numbers apart."""
    cdef Matrix made
    made.at, made.down, made.along = at, 1, step
    return made


# ---- factors ------------------------------------------------------------------------------------------------------------


cdef inline void divide_rows(Matrix A, Py_ssize_t first, Py_ssize_t left, Py_ssize_t right) noexcept nogil:
    """Finish columns ``left`` to ``right`` of LANES rows below their pivots, from row ``first`` on."""
    cdef vec x[PANEL]
    cdef vec y
    cdef double line[MOST]
    cdef Py_ssize_t j, p
    cdef int q
    cdef double *column
    cdef const double *other
    for j in range(left, right):
        column, other = A.at + first * A.down + j * A.along, A.at + j * A.down
        if A.down != 1:
            for q in range(LANES):
                line[q] = column[q * A.down]
        y = load(column if A.down == 1 else line, 0)
        for p in range(left, j):
            y = y - x[p - left] * splat(other[p * A.along])
        y = y / splat(other[j * A.along])
        x[j - left] = y
        store(column if A.down == 1 else line, 0, y)
        if A.down != 1:
            for q in range(LANES):
                column[q * A.down] = line[q]


cdef Py_ssize_t factor(Matrix A, Py_ssize_t n, double *packed) noexcept nogil:
    """Replace the lower triangle of A (n, n) by its factor; return 0, or the place from 1 of the first pivot that is not positive.

    Every entry loses its products in the order of the columns, in whichever block they are.
    """
    cdef Py_ssize_t begin, end, left, right, i, j, p, whole
    cdef double x
    cdef double *row
    cdef const double *other
    for begin from 0 <= begin < n by BLOCK:
        end = min(begin + BLOCK, n)
        if begin:
            in_order(n - begin, end - begin, begin, part(A, begin, 0), turned(part(A, begin, 0)), -1.0, part(A, begin, begin), packed)
        for left from begin <= left < end by PANEL:
            right = min(left + PANEL, end)
            if left > begin:
                in_order(n - left, right - left, left - begin, part(A, left, begin), turned(part(A, left, begin)), -1.0, part(A, left, left),
                         packed)
            whole = right + (n - right) % LANES
            for i in range(left, whole):
                row = A.at + i * A.down
                for j in range(left, min(right, i + 1)):
                    other, x = A.at + j * A.down, row[j * A.along]
                    for p in range(left, j):
                        x = x - row[p * A.along] * other[p * A.along]
                    if i > j:
                        row[j * A.along] = x / other[j * A.along]
                    elif x > 0.0:
                        row[j * A.along] = sqrt(x)
                    else:
                        return j + 1
            for i from whole <= i < n by LANES:
                divide_rows(A, i, left, right)
    return 0


cdef void substitute(Matrix L, Py_ssize_t n, Matrix B, Py_ssize_t r, bint transposed, double *packed) noexcept nogil:
    """Replace B (n, r) by L^-1 B, or by L'^-1 B, of the lower triangle of L (n, n)."""
    cdef Py_ssize_t begin, end, i, j, p
    cdef double size
    cdef double *row
    cdef double *other
    if not transposed:
        for begin from 0 <= begin < n by BLOCK:
            end = min(begin + BLOCK, n)
            if begin:
                add_product(end - begin, r, begin, part(L, begin, 0), B, -1.0, part(B, begin, 0), packed)
            for i in range(begin, end):
                row = B.at + i * B.down
                for p in range(begin, i):
                    other, size = B.at + p * B.down, L.at[i * L.down + p * L.along]
                    for j in range(r):
                        row[j * B.along] = row[j * B.along] - size * other[j * B.along]
                size = L.at[i * (L.down + L.along)]
                for j in range(r):
                    row[j * B.along] = row[j * B.along] / size
        return
    begin = (n - 1) // BLOCK * BLOCK
    while begin >= 0:
        end = min(begin + BLOCK, n)
        if end < n:
            add_product(end - begin, r, n - end, turned(part(L, end, begin)), part(B, end, 0), -1.0, part(B, begin, 0), packed)
        for i in range(end - 1, begin - 1, -1):
            row, size = B.at + i * B.down, L.at[i * (L.down + L.along)]
            for j in range(r):
                row[j * B.along] = row[j * B.along] / size
            for p in range(begin, i):
                other, size = B.at + p * B.down, L.at[i * L.down + p * L.along]
                for j in range(r):
                    other[j * B.along] = other[j * B.along] - size * row[j * B.along]
        begin = begin - BLOCK


def cholesky(double[:, ::1] A):
    """Replace the lower triangle of A (n, n) by its factor L, A = L L'; return 0, or the place from 1 of the first pivot that is not positive."""
    cdef double packed[PACKED]
    cdef Py_ssize_t failed
    demand(A.shape[1] == A.shape[0], "a factor needs a square matrix")
    with nogil:
        failed = factor(of(A), A.shape[0], packed)
    return failed


def solve_lower(double[:, ::1] L, double[:, ::1] B, bint transposed):
    """Replace B (n, r) by L^-1 B, or by L'^-1 B, of the lower triangle of L (n, n)."""
    cdef double packed[PACKED]
    demand(L.shape[1] == L.shape[0] and B.shape[0] == L.shape[0], "a square triangle and its right sides need equally many rows")
    if L.shape[0] and B.shape[1]:
        with nogil:
            substitute(of(L), L.shape[0], of(B), B.shape[1], transposed, packed)


def eliminate(double[:, ::1] A, Py_ssize_t[::1] pivots):
    """Replace A (n, n) by its factors L (below the diagonal, of ones) and U, rows exchanged as ``pivots`` (n,) say; return 0, or the place from
    1 of a column without a pivot.
    """
    cdef Py_ssize_t n = A.shape[0], i, j, p, best
    cdef double size
    demand(A.shape[1] == n and pivots.shape[0] == n, "a factor needs a square matrix and as many pivots")
    with nogil:
        for p in range(n):
            best = p
            for i in range(p + 1, n):
                if fabs(A[i, p]) > fabs(A[best, p]):
                    best = i
            pivots[p] = best
            if A[best, p] == 0.0:
                with gil:
                    return p + 1
            if best != p:
                for j in range(n):
                    A[p, j], A[best, j] = A[best, j], A[p, j]
            for i in range(p + 1, n):
                size = A[i, p] / A[p, p]
                A[i, p] = size
                for j in range(p + 1, n):
                    A[i, j] = A[i, j] - size * A[p, j]
    return 0


def solve_eliminated(double[:, ::1] A, Py_ssize_t[::1] pivots, double[:, ::1] B):
    """Replace B (n, r) by the solution of the system whose factors `eliminate` left in A (n, n)."""
    cdef Py_ssize_t n = A.shape[0], r = B.shape[1], i, j, p
    cdef double size
    demand(A.shape[1] == n and pivots.shape[0] == n and B.shape[0] == n, "a system and its right sides need equally many rows")
    for p in range(n):
        demand(p <= pivots[p] < n, "pivots must be rows below their own")
    with nogil:
        for p in range(n):
            i = pivots[p]
            if i != p:
                for j in range(r):
                    B[p, j], B[i, j] = B[i, j], B[p, j]
        for i in range(n):
            for p in range(i):
                size = A[i, p]
                for j in range(r):
                    B[i, j] = B[i, j] - size * B[p, j]
        for i in range(n - 1, -1, -1):
            for p in range(i + 1, n):
                size = A[i, p]
                for j in range(r):
                    B[i, j] = B[i, j] - size * B[p, j]
            size = A[i, i]
            for j in range(r):
                B[i, j] = B[i, j] / size


cdef void syrk(char *triangle, char *kind, int *n, int *depth, double *sign, const double *A, int *step, double *one, double *C,
               int *apart) noexcept nogil:
    """Add sign A A' to the lower triangle of C (n, n), both column by column: what BLAS does for the letters L and N."""
    cdef double packed[PACKED]
    add_square(n[0], depth[0], by_columns(<double *>A, step[0]), sign[0], turned(by_columns(C, apart[0])), packed)


cdef void potrf(char *triangle, int *n, double *A, int *step, int *failed) noexcept nogil:
    """Replace the lower triangle of A, column by column, by its factor: what LAPACK does for the letter L."""
    cdef double packed[PACKED]
    failed[0] = <int>factor(by_columns(A, step[0]), n[0], packed)


cdef void potrs(char *triangle, int *n, int *r, const double *A, int *step, double *B, int *apart, int *failed) noexcept nogil:
    """Replace B (n, r), column by column, by the solution of the system whose factor is A: what LAPACK does for the letter L."""
    cdef double packed[PACKED]
    cdef Matrix L = by_columns(<double *>A, step[0]), right = by_columns(B, apart[0])
    substitute(L, n[0], right, r[0], False, packed)
    substitute(L, n[0], right, r[0], True, packed)
    failed[0] = 0


def _blas():
    """Return what other compiled modules take for BLAS's dsyrk and LAPACK's dpotrf and dpotrs."""
    return PyCapsule_New(<void *>syrk, "dsyrk", NULL), PyCapsule_New(<void *>potrf, "dpotrf", NULL), PyCapsule_New(<void *>potrs, "dpotrs", NULL)


cdef void reflect(double *A, Py_ssize_t n, const double *betas, double *strip, Py_ssize_t last) noexcept nogil:
    """Multiply STRIP vectors, the columns of ``strip`` (n, STRIP), by the reflections from the ``last`` to the first.

    The vector of a reflection lies in its row of A right of the diagonal.
    """
    cdef Py_ssize_t j, l
    cdef vec size[STRIP]
    cdef vec a
    cdef int v
    for l in range(last, -1, -1):
        if betas[l] == 0.0:
            continue
        for v in range(STRIP // LANES):
            size[v] = splat(0.0)
        for j in range(l + 1, n):
            a = splat(A[l * n + j])
            for v in range(STRIP // LANES):
                size[v] = size[v] + load(strip + j * STRIP, v) * a
        for v in range(STRIP // LANES):
            size[v] = size[v] * splat(betas[l])
        for j in range(l + 1, n):
            a = splat(A[l * n + j])
            for v in range(STRIP // LANES):
                store(strip + j * STRIP, v, load(strip + j * STRIP, v) - size[v] * a)


cdef void reflected(double *A, Py_ssize_t n, const double *betas, double *vectors, double *strip) noexcept nogil:
    """Write the product of all reflections; its rows have nothing to do with each other: STRIP of them are lanes of one pass over A."""
    cdef Py_ssize_t i, j, first, count
    for first from 0 <= first < n by STRIP:
        count = min(<Py_ssize_t>STRIP, n - first)
        for j in range(n * STRIP):
            strip[j] = 0.0
        for i in range(count):
            strip[(first + i) * STRIP + i] = 1.0
        reflect(A, n, betas, strip, min(n - 3, first + count - 2))
        for i in range(count):
            for j in range(n):
                vectors[(first + i) * n + j] = strip[j * STRIP + i]


cdef void turn_back(double *strip, const Turns *turns) noexcept nogil:
    """Multiply STRIP vectors, the columns of ``strip``, by the transposes of all turns, the last first."""
    cdef Py_ssize_t t
    cdef vec s, c, x, y
    cdef double *row
    cdef int v
    for t in range(turns.count - 1, -1, -1):
        row = strip + <Py_ssize_t>turns.at[3 * t] * STRIP
        s = splat(turns.at[3 * t + 1])
        c = splat(turns.at[3 * t + 2])
        for v in range(STRIP // LANES):
            x, y = load(row, v), load(row + STRIP, v)
            store(row, v, c * x + s * y)
            store(row + STRIP, v, c * y - s * x)


cdef void rotate(double *vectors, Py_ssize_t n, Turns *turns, double *strip) noexcept nogil:
    """Turn neighbouring rows of ``vectors`` (n, n) and forget the turns: (i, s, c) makes s x_i + c x_i+1 of row i + 1 and c x_i - s x_i+1 of row i.

    Columns have nothing to do with each other: STRIP of them take all turns while they are near.
    """
    cdef Py_ssize_t i, j, t, block, first, width, low
    cdef vec below[STRIP]
    cdef vec x, s, c
    cdef int v
    for block in range((n + STRIP - 1) // STRIP):
        first = block * STRIP
        width = min(STRIP, n - first)
        for i in range(n):
            for j in range(width):
                strip[i * STRIP + j] = vectors[i * n + first + j]
        low = -1  # the row that ``below`` holds
        for t in range(turns.count):
            i = <Py_ssize_t>turns.at[3 * t]
            s = splat(turns.at[3 * t + 1])
            c = splat(turns.at[3 * t + 2])
            if i + 1 != low:
                for v in range(STRIP // LANES):
                    if low >= 0:
                        store(strip + low * STRIP, v, below[v])
                    below[v] = load(strip + (i + 1) * STRIP, v)
            low = i
            for v in range(STRIP // LANES):
                x = load(strip + i * STRIP, v)
                store(strip + (i + 1) * STRIP, v, s * x + c * below[v])
                below[v] = c * x - s * below[v]
        if low >= 0:
            for v in range(STRIP // LANES):
                store(strip + low * STRIP, v, below[v])
        for i in range(n):
            for j in range(width):
                vectors[i * n + first + j] = strip[i * STRIP + j]
    turns.count = 0


cdef inline inlined multiply(double *A, Py_ssize_t n, Py_ssize_t first, const double *last, const double *before, const double *size, double *w,
                             bint changed) noexcept nogil:
    """Add A size to w for rows and columns from ``first`` on, if ``changed`` after subtracting last before' + before last' from A.

    A is symmetric, and only its upper triangle is read. Every w[j] takes its terms in the order of the rows: those above the diagonal from
    GROUP rows at a time, those below it from its own row, GROUP sums side by side.
    """
    cdef Py_ssize_t i, j, p, q, end, left, right, whole
    cdef double x[GROUP]
    cdef vec s, t, a, b, c, d, u, v
    cdef double *row
    for i from first <= i < n by GROUP:
        end = min(i + GROUP, n)
        if changed:
            for p in range(i, end):
                for j in range(p, end):
                    A[p * n + j] = A[p * n + j] - (last[p] * before[j] + before[p] * last[j])
        for p in range(i, end):
            for j in range(i, end):
                w[j] = w[j] + size[p] * A[min(p, j) * n + max(p, j)]
        if end == n:
            return
        for q in range(GROUP):
            x[q] = w[i + q]
        for left from end <= left < n by PIECE:
            right = min(left + PIECE, n)
            whole = left + (right - left) // (2 * LANES) * (2 * LANES)
            for j from left <= j < whole by 2 * LANES:
                b, d, c, v = load(before + j, 0), load(before + j, 1), load(last + j, 0), load(last + j, 1)
                s, t = load(w + j, 0), load(w + j, 1)
                for q in range(GROUP):
                    row = A + (i + q) * n + j
                    a, u = load(row, 0), load(row, 1)
                    if changed:
                        a = a - (splat(last[i + q]) * b + splat(before[i + q]) * c)
                        u = u - (splat(last[i + q]) * d + splat(before[i + q]) * v)
                        store(row, 0, a)
                        store(row, 1, u)
                    s, t = s + splat(size[i + q]) * a, t + splat(size[i + q]) * u
                store(w + j, 0, s)
                store(w + j, 1, t)
            for j in range(whole, right):
                for q in range(GROUP):
                    if changed:
                        A[(i + q) * n + j] = A[(i + q) * n + j] - (last[i + q] * before[j] + before[i + q] * last[j])
                    w[j] = w[j] + size[i + q] * A[(i + q) * n + j]
            for j in range(left, right):
                for q in range(GROUP):
                    x[q] = x[q] + size[j] * A[(i + q) * n + j]
        for q in range(GROUP):
            w[i + q] = x[q]


cdef void tridiagonal(double *A, Py_ssize_t n, double *values, double *e, double *betas, double *room) noexcept nogil:
    """Make A (n, n) tridiagonal by reflections, its diagonal in ``values`` and what lies beside it in ``e``; ``room`` for 3 n + 2 numbers."""
    cdef Py_ssize_t j, l
    cdef double alpha, beta, size, scale, r, s
    cdef double *w = room
    cdef double *before = w + n + 1
    cdef double *sizes = before + n + 1
    cdef double *row
    cdef double *last
    for j in range(n + 1):
        e[j] = betas[j] = w[j] = 0.0
    # Householder reflections: the vector of step l stays in row l of A, right of the diagonal. A row takes what step l - 1 subtracts from it
    # when step l comes to it, so that each step reads the matrix once.
    for l in range(n):
        row = A + l * n
        last = row - n
        if l and betas[l - 1] != 0.0:
            r, s = last[l], w[l]
            for j in range(l, n):
                row[j] = row[j] - (r * w[j] + s * last[j])
        values[l] = row[l]
        if l == n - 1:
            break
        if l == n - 2:
            e[l] = row[l + 1]
        scale = 0.0
        for j in range(l + 1, n):
            scale = scale + row[j] * row[j]
        scale = sqrt(scale)
        before, w = w, before
        if l < n - 2:
            e[l] = 0.0
            if scale != 0.0:
                alpha = -scale if row[l + 1] > 0.0 else scale
                e[l] = alpha
                row[l + 1] = row[l + 1] - alpha
                size = 0.0
                for j in range(l + 1, n):
                    size = size + row[j] * row[j]
                betas[l] = 2.0 / size
        beta = betas[l]
        for j in range(l + 1, n):
            w[j] = 0.0
            sizes[j] = beta * row[j]
        if l and betas[l - 1] != 0.0:
            multiply(A, n, l + 1, last, before, sizes, w, True)
        elif beta != 0.0:
            multiply(A, n, l + 1, last, before, sizes, w, False)
        size = 0.0
        for j in range(l + 1, n):
            size = size + w[j] * row[j]
        size = 0.5 * beta * size
        for j in range(l + 1, n):
            w[j] = w[j] - size * row[j]


cdef bint turned_down(double *values, double *e, Py_ssize_t n, double *vectors, double *strip, Turns *turns) noexcept nogil:
    """Replace the diagonal of a tridiagonal matrix by its eigenvalues, by implicit QL; return whether 120 turns each were enough, and memory.

    Numbers beside the diagonal count as 0 where the two next to them cannot tell; after 60 turns also where the largest number cannot, which
    is all that rounding leaves of the null space of a large matrix. Rows of ``vectors`` (n, n) take the turns; where it is NULL all turns are kept.
    """
    cdef Py_ssize_t i, l, m
    cdef int turn
    cdef double size, scale, g, r, s, c, p, f, b, least = 0.0
    cdef double *at
    for l in range(n):
        turn = 0
        while True:
            m = l
            while m < n - 1:
                size = fabs(values[m]) + fabs(values[m + 1])
                if fabs(e[m]) <= max(2.220446049250313e-16 * size, least):
                    break
                m = m + 1
            if m == l:
                break
            turn = turn + 1
            if turn > 60:
                if least > 0.0:
                    return False
                turn = 0
                for i in range(n):
                    least = max(least, 2.220446049250313e-16 * (fabs(values[i]) + fabs(e[i])))
                if not 0.0 < least < 1e300:  # what is not finite never ends
                    return False
            if turns.count + m - l > turns.most:
                if vectors != NULL:
                    rotate(vectors, n, turns, strip)
                else:
                    at = <double *>realloc(turns.at, 6 * turns.most * sizeof(double))
                    if at == NULL:
                        return False
                    turns.at, turns.most = at, 2 * turns.most
            g = (values[l + 1] - values[l]) / (2.0 * e[l])
            r = sqrt(g * g + 1.0)
            g = values[m] - values[l] + e[l] / (g + (r if g >= 0.0 else -r))
            s = c = 1.0
            p = 0.0
            i = m - 1
            while i >= l:
                f, b = s * e[i], c * e[i]
                scale = max(fabs(f), fabs(g))
                r = scale * sqrt((f / scale) * (f / scale) + (g / scale) * (g / scale)) if scale > 0.0 else 0.0
                e[i + 1] = r
                if r == 0.0:
                    values[i + 1] = values[i + 1] - p
                    e[m] = 0.0
                    break
                s, c = f / r, g / r
                g = values[i + 1] - p
                r = (values[i] - g) * s + 2.0 * c * b
                p = s * r
                values[i + 1] = g + p
                g = c * r - b
                at = turns.at + 3 * turns.count
                at[0], at[1], at[2] = i, s, c
                turns.count = turns.count + 1
                i = i - 1
            if r == 0.0 and i >= l:
                continue
            values[l] = values[l] - p
            e[l] = g
            e[m] = 0.0
    if vectors != NULL:
        rotate(vectors, n, turns, strip)
    return True


def eigen(double[:, :, ::1] A, double[:, ::1] values, double[:, :, ::1] vectors):
    """Write the eigenvalues of symmetric matrices A (m, n, n), which are lost, and their eigenvectors as rows of ``vectors`` (m, n, n), in no order.

    Return whether 120 turns of QL were enough for each value.
    """
    cdef Py_ssize_t m = A.shape[0], n = A.shape[1], item
    cdef double[::1] room
    cdef double *e
    cdef double *strip
    cdef Turns turns
    cdef bint found = True
    demand(A.shape[2] == n and values.shape[0] == m and values.shape[1] == n, "matrices must be square, with a row of values each")
    demand(vectors.shape[0] == m and vectors.shape[1] == n and vectors.shape[2] == n, "every matrix needs a square of vectors")
    if m == 0 or n == 0:
        return True
    room = view.array(((5 + STRIP + 3 * KEPT) * n + 4,), sizeof(double), "d")
    e = &room[0]
    strip = e + 5 * n + 4
    turns.at, turns.count, turns.most = strip + n * STRIP, 0, KEPT * n
    with nogil:
        for item in range(m):
            tridiagonal(&A[item, 0, 0], n, &values[item, 0], e, e + n + 1, e + 2 * n + 2)
            reflected(&A[item, 0, 0], n, e + n + 1, &vectors[item, 0, 0], strip)
            found = turned_down(&values[item, 0], e, n, &vectors[item, 0, 0], strip, &turns) and found
    return found


def eigen_some(double[:, ::1] A, double[::1] values, double[:, ::1] vectors, Py_ssize_t first):
    """Write the eigenvalues of a symmetric matrix A (n, n), which is lost, ascending, and the eigenvectors of those from ``first`` on as rows of
    ``vectors`` (n - first, n).

    Turns are taken back by these vectors alone, from the last turn to the first. Return whether 120 turns of QL were enough for each value.
    """
    cdef Py_ssize_t n = A.shape[0], count = vectors.shape[0], i, j, block, some
    cdef double[::1] room
    cdef Py_ssize_t[::1] order
    cdef double *e
    cdef double *strip
    cdef Turns turns
    cdef bint found
    demand(A.shape[1] == n and values.shape[0] == n, "a matrix must be square, with a value for each row")
    demand(vectors.shape[1] == n and 0 <= first <= n and count == n - first, "vectors must be rows of n numbers, one for each value from the first on")
    if n == 0:
        return True
    import numpy as np

    room = view.array(((5 + STRIP) * n + 4,), sizeof(double), "d")
    e = &room[0]
    strip = e + 5 * n + 4
    turns.count, turns.most = 0, KEPT * n
    turns.at = <double *>malloc(3 * turns.most * sizeof(double))
    if turns.at == NULL:
        raise MemoryError("no memory for the turns of eigenvectors")
    try:
        with nogil:
            tridiagonal(&A[0, 0], n, &values[0], e, e + n + 1, e + 2 * n + 2)
            found = turned_down(&values[0], e, n, NULL, strip, &turns)
        order = np.argsort(values, kind="stable")
        with nogil:
            for block from 0 <= block < count by STRIP:
                some = min(<Py_ssize_t>STRIP, count - block)
                for i in range(n * STRIP):
                    strip[i] = 0.0
                for i in range(some):
                    strip[order[first + block + i] * STRIP + i] = 1.0
                turn_back(strip, &turns)
                reflect(&A[0, 0], n, e + n + 1, strip, n - 3)
                for i in range(some):
                    for j in range(n):
                        vectors[block + i, j] = strip[j * STRIP + i]
    finally:
        free(turns.at)
    np.asarray(values).sort(kind="stable")
    return found


# ---- sums of products that libraries compile with fused multiply-adds where every processor has them, as those of arm64 do -------


def add_row_products(const double[:, :] A, const double[:, :] B, double[::1] out, bint lanes):
    """Add to out (m) the sums of the products of the rows of A and B (m, n): in order, or over two lanes and of eight terms the last first.

    So does NumPy's einsum with vectors of two numbers, where the rows are contiguous.
    """
    cdef Py_ssize_t m = A.shape[0], n = A.shape[1], i, j, p, whole = n // 8 * 8 if lanes else 0
    cdef double even, odd
    demand(B.shape[0] == m and B.shape[1] == n and out.shape[0] == m, "matrices of one shape are needed, and a sum for each row")
    if m == 0 or n == 0:
        return
    with nogil:
        for i in range(m):
            even = odd = 0.0
            for j from 0 <= j < whole by 8:
                for p from 6 >= p >= 0 by 2:
                    even = even + A[i, j + p] * B[i, j + p]
                    odd = odd + A[i, j + p + 1] * B[i, j + p + 1]
            for j in range(whole, n):
                if lanes and j % 2:
                    odd = odd + A[i, j] * B[i, j]
                else:
                    even = even + A[i, j] * B[i, j]
            out[i] = out[i] + (even + odd)


ctypedef fused Place:
    int
    long long


cdef int check_sparse(const Place[::1] start, const Place[::1] at, const double[::1] values, Py_ssize_t n, Py_ssize_t limit) except -1:
    """Starts of n rows, and their places below ``limit``."""
    cdef Py_ssize_t i, filled = at.shape[0]
    cdef bint wrong = n < 0 or start.shape[0] != n + 1 or values.shape[0] != filled
    if not wrong:
        wrong = start[0] != 0 or start[n] != filled
        for i in range(n):
            wrong |= start[i + 1] < start[i]
        for i in range(filled):
            wrong |= not 0 <= at[i] < limit
    return demand(not wrong, f"sparse rows must be {n}, with places below {limit}")


def add_sparse_product(const Place[::1] start, const Place[::1] at, const double[::1] values, const double[:, ::1] X, double[:, ::1] Y,
                       bint transposed):
    """Add A X, or A' X, to Y for sparse rows A, each sum in the order of the entries, as SciPy does."""
    cdef Py_ssize_t n = X.shape[0] if transposed else Y.shape[0], r = X.shape[1], i, e, j, to, of
    demand(Y.shape[1] == r, "the product and the factor need equally many columns")
    check_sparse[Place](start, at, values, n, Y.shape[0] if transposed else X.shape[0])
    with nogil:
        for i in range(n):
            for e in range(start[i], start[i + 1]):
                if transposed:
                    to, of = at[e], i
                else:
                    to, of = i, at[e]
                for j in range(r):
                    Y[to, j] = Y[to, j] + values[e] * X[of, j]


def sparse_by_sparse(const Place[::1] start, const Place[::1] at, const double[::1] values, const Place[::1] other_start, const Place[::1] other_at,
                     const double[::1] other_values, const Place[::1] made_start, const Place[::1] made_at, double[::1] made_values,
                     double[::1] row):
    """Write the entries of A B of sparse rows, at the given places, each sum in the order of the entries of A; ``row`` holds zeros, one a column."""
    cdef Py_ssize_t m = start.shape[0] - 1, n = other_start.shape[0] - 1, i, j, e, f
    check_sparse[Place](start, at, values, m, n)
    check_sparse[Place](other_start, other_at, other_values, n, row.shape[0])
    check_sparse[Place](made_start, made_at, made_values, m, row.shape[0])
    with nogil:
        for i in range(m):
            for e in range(start[i], start[i + 1]):
                j = at[e]
                for f in range(other_start[j], other_start[j + 1]):
                    row[other_at[f]] = row[other_at[f]] + values[e] * other_values[f]
            for e in range(made_start[i], made_start[i + 1]):
                made_values[e] = row[made_at[e]]
            for e in range(start[i], start[i + 1]):
                j = at[e]
                for f in range(other_start[j], other_start[j + 1]):
                    row[other_at[f]] = 0.0


def normal(const double[::1] z, double[::1] out):
    """Write the normal distribution function of every number."""
    cdef Py_ssize_t i
    demand(z.shape[0] == out.shape[0], "numbers and their values must be equally many")
    with nogil:
        for i in range(z.shape[0]):
            out[i] = adv_elementary.normal(z[i])


# ---- NumPy's loops ------------------------------------------------------------------------------------------------------

ctypedef void (*Loop)(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil
ctypedef int (*Replace)(object ufunc, Loop new, const int *signature, Loop *old) except -1


cdef void matmul_loop(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil:
    cdef Py_ssize_t item, i, j, m = dimensions[1], depth = dimensions[2], n = dimensions[3]
    cdef Matrix A, B, C
    cdef double packed[PACKED]
    A.down, A.along, B.down, B.along, C.down, C.along = steps[3] // 8, steps[4] // 8, steps[5] // 8, steps[6] // 8, steps[7] // 8, steps[8] // 8
    for item in range(dimensions[0]):
        A.at, B.at, C.at = <double *>(args[0] + item * steps[0]), <double *>(args[1] + item * steps[1]), <double *>(args[2] + item * steps[2])
        for i in range(m):
            for j in range(n):
                C.at[i * C.down + j * C.along] = 0.0
        if A.at == B.at and A.down == B.along and A.along == B.down and m == n and n > 1:  # a matrix times its transpose
            add_square(n, depth, A, 1.0, C, packed)
            for i in range(n):
                for j in range(i):
                    C.at[i * C.down + j * C.along] = C.at[j * C.down + i * C.along]
        elif m and n and depth:
            add_product(m, n, depth, A, B, 1.0, C, packed)


ctypedef double (*Function)(double) noexcept nogil
ctypedef double (*Function2)(double, double) noexcept nogil


cdef inline void over(char **args, Py_ssize_t n, Py_ssize_t *steps, Function function) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<double *>(args[1] + i * steps[1]))[0] = function((<double *>(args[0] + i * steps[0]))[0])


cdef inline void over_pairs(char **args, Py_ssize_t n, Py_ssize_t *steps, Function2 function) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        (<double *>(args[2] + i * steps[2]))[0] = function((<double *>(args[0] + i * steps[0]))[0], (<double *>(args[1] + i * steps[1]))[0])


cdef void exp_loop(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil:
    cdef Py_ssize_t i, whole = 0
    cdef char *rest[2]
    if steps[0] == steps[1] == sizeof(double):
        whole = dimensions[0] // LANES
        for i in range(whole):
            store(<double *>args[1], <int>i, adv_elementary.exps(load(<double *>args[0], <int>i)))
    rest[0], rest[1] = args[0] + whole * LANES * steps[0], args[1] + whole * LANES * steps[1]
    over(rest, dimensions[0] - whole * LANES, steps, adv_elementary.exp)


cdef void expm1_loop(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil:
    over(args, dimensions[0], steps, adv_elementary.expm1)


cdef void log_loop(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil:
    over(args, dimensions[0], steps, adv_elementary.log)


cdef void log1p_loop(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil:
    over(args, dimensions[0], steps, adv_elementary.log1p)


cdef void power_loop(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil:
    over_pairs(args, dimensions[0], steps, adv_elementary.pow)


cdef double log_of_sum(double x, double y) noexcept nogil:
    """Return log(e^x + e^y)."""
    if x == y:  # infinities, too
        return x + adv_elementary.log(2.0)
    return (x if x > y else y) + adv_elementary.log1p(adv_elementary.exp(-fabs(x - y)))


cdef void logaddexp_loop(char **args, Py_ssize_t *dimensions, Py_ssize_t *steps, void *data) noexcept nogil:
    over_pairs(args, dimensions[0], steps, log_of_sum)


cdef enum:
    REPLACE = 30  # place of PyUFunc_ReplaceLoopBySignature in NumPy's table, part of its binary interface
    DOUBLE = 12   # NPY_DOUBLE

LOOPS = ("matmul", "exp", "expm1", "log", "log1p", "power", "logaddexp")
"""Functions of NumPy whose loops over doubles `exchange` replaces."""

cdef Loop *own = [matmul_loop, exp_loop, expm1_loop, log_loop, log1p_loop, power_loop, logaddexp_loop]
cdef Loop kept[7]
cdef bint exchanged = False


def lanes():
    """Return how many numbers a vector has: one where the compiler had no vectors."""
    return LANES


def exchange(bint portable):
    """Give NumPy's functions `LOOPS` the loops of this module, or their own back, in the whole process; return whether they had these before."""
    global exchanged
    import numpy as np

    cdef int doubles[3]
    cdef int i
    cdef Loop before
    cdef void **table
    cdef bint had = exchanged
    if portable == had:
        return had
    doubles[0] = doubles[1] = doubles[2] = DOUBLE
    table = <void **>PyCapsule_GetPointer(np._core._multiarray_umath._UFUNC_API, NULL)
    for i, name in enumerate(LOOPS):
        before = NULL
        (<Replace>table[REPLACE])(getattr(np, name), own[i] if portable else kept[i], doubles, &before)
        demand(before != NULL, f"numpy.{name} has no loop over doubles")
        if portable:
            kept[i] = before
    exchanged = portable
    return had
