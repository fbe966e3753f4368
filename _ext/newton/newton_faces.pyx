"""Faces of the block step for semismooth Newton: orthonormal bases of the directions in which an example's r can move.

At an exact block step every coordinate of r is fixed, free, or tied to the others of one group, and r sums to zero
(docs/notes/large-c.md, section 3).
The tangent space of that face is {d: d fixed = 0, d equal on the tied, sum d = 0, d.normal = 0}; dr/df = M / w with M the projector on it.

One file: bases, sums and Hessians all walk over the same faces.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport fabs, sqrt
from libc.stdlib cimport malloc, free
from libc.string cimport memchr, memcmp, memcpy, memset

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from adv_check cimport INT_MAX, check_labels, check_positions, check_rows, demand
from adv_factors cimport classes_moved
from adv_linear cimport Rows, rows_of

cdef enum:
    FIXED = 0
    TIED = 1
    FREE = 2
    MOST = 1 << 24    # classes, so that no count of scratch numbers leaves an int
    WRITTEN = 256     # products that are written out before they are added up
    LARGEST = 1 << 15 # parameters of a system, so that its numbers can be counted in an int

CLASSES = "there must be 1 to 16,777,215 classes"

ctypedef void (*Syrk)(char *, char *, int *, int *, double *, const double *, int *, double *, double *, int *) noexcept nogil
ctypedef void (*Potrf)(char *, int *, double *, int *, int *) noexcept nogil
ctypedef void (*Potrs)(char *, int *, int *, const double *, int *, double *, int *, int *) noexcept nogil


cdef void *of_scipy(object module, str name, str kinds) except NULL:
    """Return a function of SciPy's BLAS or LAPACK whose arguments are characters (c), whole numbers (i) and doubles (d).

    Asked for when the module is loaded, so that building needs no SciPy.
    """
    cdef object capsule = module.__pyx_capi__[name]
    cdef const char *signature = PyCapsule_GetName(capsule)
    found = "".join(
        "c" if each == "char *" else "i" if each == "int *" else "d" if each.endswith("_d *") else "?"
        for each in (<bytes>signature).decode().partition("(")[2].rstrip(")").split(", ")
    )
    if found != kinds:
        raise ImportError(f"SciPy's {name} has the arguments {found}, not {kinds}: this SciPy has other whole numbers than advcli knows")
    return PyCapsule_GetPointer(capsule, signature)


cdef Syrk dsyrk
cdef Potrf dpotrf
cdef Potrs dpotrs


def _take(others=None):
    """Take the functions of `arithmetic._blas` for SciPy's, or SciPy's again."""
    global dsyrk, dpotrf, dpotrs
    if others is None:
        dsyrk = <Syrk>of_scipy(cython_blas, "dsyrk", "cciiddiddi")
        dpotrf = <Potrf>of_scipy(cython_lapack, "dpotrf", "cidii")
        dpotrs = <Potrs>of_scipy(cython_lapack, "dpotrs", "ciididii")
    else:
        dsyrk = <Syrk>PyCapsule_GetPointer(others[0], "dsyrk")
        dpotrf = <Potrf>PyCapsule_GetPointer(others[1], "dpotrf")
        dpotrs = <Potrs>PyCapsule_GetPointer(others[2], "dpotrs")


_take()


cdef inline Py_ssize_t next_loose(const signed char[:, ::1] state, Py_ssize_t i) noexcept nogil:
    """Return the first row from i on with a free label, without which a face is a point, or n; near the optimum few rows have one."""
    cdef Py_ssize_t n = state.shape[0], k = state.shape[1]
    cdef const signed char *found = NULL
    if i < n:
        found = <const signed char *>memchr(&state[i, 0], FREE, (n - i) * k)
    return n if found == NULL else (found - &state[0, 0]) // k


cdef Py_ssize_t ranks(const signed char[:, ::1] state, const double[:, ::1] normal, const signed char[::1] skip, int *rank) noexcept nogil:
    """Write the dimension of every example's face, 0 for those in ``skip``, and return their sum; there is an example and a label."""
    cdef Py_ssize_t i, n = state.shape[0], total = 0
    cdef int j, k = state.shape[1], size, tied, r
    cdef double mean, group, largest
    cdef bint bent
    memset(rank, 0, n * sizeof(int))
    i = next_loose(state, 0)
    while i < n:
        if skip[i]:
            i = next_loose(state, i + 1)
            continue
        size = tied = 0
        mean = group = largest = 0.0
        for j in range(k):
            if state[i, j] == FIXED:
                continue
            if state[i, j] == FREE:
                size += 1
            else:
                tied += 1
                group += normal[i, j]
            mean += normal[i, j]
            largest = max(largest, fabs(normal[i, j]))
        # a normal takes a dimension away when it sees a move of the free labels and the group that keeps their sum
        bent = False
        if largest > 0.0:
            mean /= size + tied
            if tied and fabs(group / tied - mean) > 1e-12 * largest:
                bent = True
            for j in range(k):
                if state[i, j] == FREE and fabs(normal[i, j] - mean) > 1e-12 * largest:
                    bent = True
        r = size + (1 if tied else 0) - 1 - (1 if bent else 0)
        rank[i] = r if r > 0 else 0
        total += rank[i]
        i = next_loose(state, i + 1)
    return total


def tangents(const signed char[:, ::1] state, const double[:, ::1] normal, const signed char[::1] skip):
    """Return orthonormal bases of the faces (m, k), one direction a row, and the examples (m,) that own them; none of those in ``skip`` (n,).

    In coordinates (free..., tied group / sqrt(size)) the sum is the unit vector w; a Householder reflection that takes w to the last axis
    leaves the other axes as a basis of its complement. A normal is reflected along and removed the same way.
    """
    cdef Py_ssize_t i, n = state.shape[0], row = 0, total = 0
    cdef int j, c, e, k = state.shape[1], a, b, m
    cdef double scale, beta, length, t, tied
    cdef int *rank
    cdef int *index
    cdef int *bound
    cdef double *w
    cdef double *v
    cdef double *u
    cdef double *v2
    cdef double *z
    cdef double[:, ::1] B
    cdef Py_ssize_t[::1] owner
    demand(0 < k < MOST, CLASSES)
    demand(normal.shape[0] == n and normal.shape[1] == k and skip.shape[0] == n, "normals must be (n, k) and skip (n,)")
    w = <double *>malloc(5 * k * sizeof(double) + (n + 2 * k) * sizeof(int))
    if w == NULL:
        raise MemoryError("no memory for the bases of the faces")
    v, u, v2, z = w + k, w + 2 * k, w + 3 * k, w + 4 * k
    index = <int *>(w + 5 * k)
    bound, rank = index + k, index + 2 * k
    if n:
        with nogil:
            total = ranks(state, normal, skip, rank)
    try:
        bases, owners = np.empty((total, k)), np.empty(total, dtype=np.intp)
    except MemoryError:
        free(w)
        raise
    B, owner = bases, owners
    with nogil:
        for i in range(n):
            if rank[i] == 0:
                continue
            a = b = 0
            for j in range(k):
                if state[i, j] == FREE:
                    index[a] = j
                    a += 1
                elif state[i, j] == TIED:
                    bound[b] = j
                    b += 1
            m = a + (1 if b else 0)        # coordinates; the last is the tied group when there is one
            scale = 1.0 / sqrt(<double>(a + b))
            for c in range(a):
                w[c] = scale
            if b:
                w[a] = scale * sqrt(<double>b)
            # reflection I - beta v v' with v = w + e_last takes w to -e_last; w_last > 0, so no cancellation
            for c in range(m):
                v[c] = w[c]
            v[m - 1] += 1.0
            beta = 1.0 / (1.0 + w[m - 1])
            if rank[i] < m - 1:
                for c in range(a):
                    u[c] = normal[i, index[c]]
                if b:
                    t = 0.0
                    for c in range(b):
                        t += normal[i, bound[c]]
                    u[a] = t / sqrt(<double>b)
                move(u, v, m, beta * inner(v, u, m))
                length = sqrt(inner(u, u, m - 1))   # in the reduced m - 1 coordinates
            t = 0.0
            if rank[i] < m - 1 and length > 0.0:
                for c in range(m - 1):
                    v2[c] = u[c] / length
                t = 1.0 if v2[m - 2] >= 0.0 else -1.0
                v2[m - 2] += t
                t = 1.0 / (1.0 + (v2[m - 2] - t) * t)
            for e in range(rank[i]):
                # column e of the second reflection, then column of the first
                memset(z, 0, m * sizeof(double))
                z[e] = 1.0
                length = v[e]
                if t != 0.0:
                    move(z, v2, m - 1, v2[e] * t)
                    length = inner(v, z, m)
                move(z, v, m, beta * length)
                memset(&B[row, 0], 0, k * sizeof(double))
                for c in range(a):
                    B[row, index[c]] = z[c]
                if b:
                    tied = z[a] / sqrt(<double>b)
                    for c in range(b):
                        B[row, bound[c]] = tied
                owner[row] = i
                row += 1
    free(w)
    return bases, owners


cdef inline double inner(const double *a, const double *b, int size) noexcept nogil:
    cdef int c
    cdef double total = 0.0
    for c in range(size):
        total += a[c] * b[c]
    return total


cdef inline void move(double *a, const double *b, int size, double step) noexcept nogil:
    """a -= step b."""
    cdef int c
    for c in range(size):
        a[c] -= step * b[c]


cdef inline double leave_span(double *v, const double *Q, int size, int spanned) noexcept nogil:
    """Take the orthonormal rows of Q out of v, twice, which is enough, and return |v|^2."""
    cdef int c, twice
    for twice in range(2):
        for c in range(spanned):
            move(v, Q + c * size, size, inner(Q + c * size, v, size))
    return inner(v, v, size)


cdef inline void span(double *Q, const double *v, int size, int spanned, double square, double *left) noexcept nogil:
    """Append v / sqrt(square) to the rows of Q, and take its part of every unit vector out of ``left``."""
    cdef int a
    cdef double length = 1.0 / sqrt(square)
    Q += spanned * size
    for a in range(size):
        Q[a] = v[a] * length
        left[a] -= Q[a] * Q[a]


def matrix_bases(const double[:, ::1] matrix, const signed char[:, ::1] state, const signed char[:, ::1] tight, const int[::1] most,
                 double[:, ::1] B, Py_ssize_t[::1] owner):
    """Write orthonormal bases of the faces of a general loss matrix and return their number of rows, at most sum(most).

    A face is {d: d = 0 off the labels in use, sum d = 0, L_i.d the same for all tight rows i}. Gram-Schmidt on its normals, then on the
    unit vectors, the one that is furthest from what is spanned first.
    """
    cdef Py_ssize_t i, n = state.shape[0], row = 0
    cdef int k = state.shape[1], l = matrix.shape[0], size, spanned, a, t, base, best, wanted
    cdef double length, first, furthest
    cdef int *index
    cdef double *Q
    cdef double *v
    cdef double *left                      # |unit vector - its projection|^2
    demand(0 < k < MOST, CLASSES)
    demand(matrix.shape[1] == k and tight.shape[0] == n and tight.shape[1] == l and most.shape[0] == n, "flags must be (n, l) and ranks (n,)")
    for i in range(n):
        demand(most[i] >= 0, "ranks must be at least 0")
        row += most[i]
    demand(B.shape[1] == k and B.shape[0] == owner.shape[0] and B.shape[0] >= row, "the bases must be (rows, k), a row and an owner for every rank")
    row = 0
    index = <int *>malloc(k * sizeof(int))
    Q = <double *>malloc((<Py_ssize_t>k * k + 2 * k) * sizeof(double))
    v = Q + <Py_ssize_t>k * k
    left = v + k
    if index == NULL or Q == NULL:
        free(index)
        free(Q)
        raise MemoryError("no memory for the bases of the faces")
    with nogil:
        for i in range(n):
            if most[i] == 0:
                continue
            size = 0
            for a in range(k):
                if state[i, a] == FREE:
                    index[size] = a
                    size += 1
            base = -1
            spanned = 1
            for a in range(size):
                Q[a] = 1.0 / sqrt(<double>size)
                left[a] = 1.0 - 1.0 / size
            for t in range(l):
                if tight[i, t] == 0:
                    continue
                if base < 0:
                    base = t
                    continue
                if spanned == size:
                    break
                for a in range(size):
                    v[a] = matrix[t, index[a]] - matrix[base, index[a]]
                first = inner(v, v, size)
                length = leave_span(v, Q, size, spanned)
                if length > 1e-20 * first:
                    span(Q, v, size, spanned, length, left)
                    spanned += 1
            wanted = min(size - spanned, most[i])
            while wanted > 0:
                best = 0
                furthest = -1.0
                for a in range(size):
                    if left[a] > furthest:
                        furthest = left[a]
                        best = a
                memset(v, 0, size * sizeof(double))
                v[best] = 1.0
                length = leave_span(v, Q, size, spanned)
                if not length > 0.0:
                    break
                span(Q, v, size, spanned, length, left)
                memset(&B[row, 0], 0, k * sizeof(double))
                for a in range(size):
                    B[row, index[a]] = Q[spanned * size + a]
                owner[row] = i
                row += 1
                spanned += 1
                wanted -= 1
    free(index)
    free(Q)
    return row


def projectors(const double[:, ::1] B, const Py_ssize_t[::1] slot, double[:, :, ::1] M):
    """Add the outer products of the rows of B into the projectors M of their examples: M[slot] += b b'."""
    cdef Py_ssize_t row, m = B.shape[0]
    cdef int a, b, k = B.shape[1]
    demand(slot.shape[0] == m and M.shape[1] == k and M.shape[2] == k, "slots must be (rows,) and the projectors (any, k, k)")
    check_positions(slot, M.shape[0], "slots")
    with nogil:
        for row in range(m):
            for a in range(k):
                if B[row, a] != 0.0:
                    for b in range(k):
                        M[slot[row], a, b] += B[row, a] * B[row, b]


cdef Py_ssize_t deal_pairs(const double *B, const Py_ssize_t *slot, Py_ssize_t m, int k, const double *weight, int *classes, long long *place,
                           int *at, double *value) noexcept nogil:
    """Write the examples of every pair of classes and their products from ``place`` on, and return how many there are.

    ``place`` moves on with each; where ``at`` is NULL that is all that happens.
    """
    cdef Py_ssize_t row = 0, last, t, pair, total = 0
    cdef int c, e, size
    cdef double product
    while row < m:
        last = row
        while last < m and slot[last] == slot[row]:
            last += 1
        size = classes_moved(B, k, row, last, classes)
        for c in range(size):
            for e in range(c + 1):
                pair = <Py_ssize_t>classes[c] * (classes[c] + 1) // 2 + classes[e]
                if at != NULL:
                    product = 0.0
                    for t in range(row, last):
                        product += B[t * k + classes[c]] * B[t * k + classes[e]]
                    at[place[pair]], value[place[pair]] = <int>slot[row], weight[slot[row]] * product
                place[pair] += 1
        total += <Py_ssize_t>size * (size + 1) // 2
        row = last
    return total


def pairs(const double[:, ::1] B, const Py_ssize_t[::1] slot, const double[::1] weight):
    """Return, for every pair of classes a >= b, the examples that move both and (weight B'B)_ab of each: starts, examples and numbers.

    Row t of B (m, k) belongs to example slot[t]; slots ascend and count those of ``weight``. Pair (a, b) is number a (a + 1)/2 + b.
    """
    cdef Py_ssize_t m = B.shape[0], t, count, total = 0, size
    cdef int k = <int>B.shape[1]
    cdef bint falls = False
    cdef int *classes
    cdef long long[::1] start
    cdef int[::1] at
    cdef double[::1] value
    demand(0 < m and 0 < B.shape[1] < MOST and slot.shape[0] == m, "bases must be (m, k), and slots (m,)")
    demand(weight.shape[0] < INT_MAX, "too many examples")
    check_positions(slot, weight.shape[0], "slots")
    for t in range(1, m):
        falls |= slot[t] < slot[t - 1]
    demand(not falls, "slots must not fall")
    count = <Py_ssize_t>k * (k + 1) // 2
    starts = np.zeros(count + 1, dtype=np.int64)
    start = starts
    classes = <int *>malloc(k * sizeof(int))
    if classes == NULL:
        raise MemoryError("no memory for the pairs of classes")
    with nogil:
        size = deal_pairs(&B[0, 0], &slot[0], m, k, &weight[0], classes, &start[0], NULL, NULL)
    try:
        examples, products = np.empty(size, dtype=np.int32), np.empty(size)
    except MemoryError:
        free(classes)
        raise
    at, value = examples, products
    with nogil:
        for t in range(count + 1):  # counts become starts, and the writing makes them those of the next pair
            size, start[t] = start[t], total
            total += size
        deal_pairs(&B[0, 0], &slot[0], m, k, &weight[0], classes, &start[0], &at[0], &value[0])
        for t in range(count, 0, -1):
            start[t] = start[t - 1]
        start[0] = 0
    free(classes)
    return starts, examples, products


cdef void differing(const Py_ssize_t *owner, const double *B, Py_ssize_t m, const Py_ssize_t *other_owner, const double *other, Py_ssize_t size,
                    Py_ssize_t k, Py_ssize_t *left, Py_ssize_t *entered, Py_ssize_t *counts) noexcept nogil:
    """Write which rows of two lists of bases, owners ascending, belong to examples whose rows are not the same in both, and how many of each."""
    cdef Py_ssize_t a = 0, b = 0, first, second, i, row
    cdef bint differ
    counts[0] = counts[1] = 0
    while a < m or b < size:
        i = owner[a] if a < m and (b >= size or owner[a] <= other_owner[b]) else other_owner[b]
        first, second = a, b
        while a < m and owner[a] == i:
            a += 1
        while b < size and other_owner[b] == i:
            b += 1
        differ = a - first != b - second
        if not differ:
            differ = memcmp(B + first * k, other + second * k, (a - first) * k * sizeof(double)) != 0
        if differ:
            for row in range(first, a):
                left[counts[0]] = row
                counts[0] += 1
            for row in range(second, b):
                entered[counts[1]] = row
                counts[1] += 1


cdef struct Sum:
    Rows rows
    const double *weight        # of the rows
    double *total               # (p, p), its upper triangle
    int p
    double *Z                   # room for WRITTEN products


cdef void add(const Sum *s, const Py_ssize_t *owner, const double *B, Py_ssize_t width, const Py_ssize_t *rows, Py_ssize_t m,
              double sign) noexcept nogil:
    """Add sign Z'Z, of rows sqrt(weight) x (x) b for some rows b of B (any, width), of which as many classes count as p has."""
    cdef const Rows *x = &s.rows
    cdef Py_ssize_t at = 0, last, i, a, e, k = s.p // x.d
    cdef int j, count, p = s.p
    cdef double scale, one = 1.0
    cdef const double *b
    cdef double *z
    while at < m:
        last = min(m, at + WRITTEN)
        count, z = <int>(last - at), s.Z
        for at in range(at, last):
            i, b = owner[rows[at]], B + rows[at] * width
            scale = sqrt(s.weight[i])
            if x.start == NULL:
                for a in range(x.d):
                    for j in range(k):
                        z[a * k + j] = x.values[i * x.d + a] * scale * b[j]
            else:
                memset(z, 0, p * sizeof(double))
                for e in range(x.start[i], x.start[i + 1]):
                    a = x.columns[e]
                    for j in range(k):
                        z[a * k + j] += x.values[e] * scale * b[j]
            z += p
        # column by column, as BLAS has it, the upper triangle is the lower one
        dsyrk(b"L", b"N", &p, &count, &sign, s.Z, &p, &one, s.total, &p)
        at = last


def follow(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d, const double[::1] weight,
           const Py_ssize_t[::1] example, const double[:, ::1] B, const Py_ssize_t[::1] new_example, const double[:, ::1] new, double[:, ::1] total,
           Py_ssize_t most):
    """Turn the sum over the rows of one list of bases into that over another's; return whether at most ``most`` rows of them differ, else leave it.

    ``total`` (d k, d k) has Z'Z in its upper triangle: Z has a row sqrt(weight_i) x_i (x) b for every row b of B, whose first k classes
    count and whose example is i, examples ascending. Only rows of examples whose bases are not the same in both lists are written out.
    """
    cdef Py_ssize_t m = B.shape[0], size = new.shape[0], width = B.shape[1]
    cdef Py_ssize_t[2] counts
    cdef Py_ssize_t *left
    cdef Sum s
    cdef bint pays
    check_rows(values, columns, start, n, d)
    demand(weight.shape[0] == n, "every row of X needs a weight")
    demand(example.shape[0] == m and new_example.shape[0] == size and new.shape[1] == width, "every row of both bases (any, k) needs an example")
    check_positions(example, n, "examples")
    check_positions(new_example, n, "examples")
    demand(total.shape[0] == total.shape[1] and 0 < total.shape[0] < LARGEST, "sums must be square, for 1 to 32,767 parameters")
    demand(d > 0 and total.shape[0] % d == 0 and total.shape[0] // d <= width, "sums must be (d k, d k), k at most the classes of the bases")
    s.rows = rows_of(values, columns, start, n, <int>d)
    s.weight, s.total, s.p = &weight[0], &total[0, 0], <int>total.shape[0]
    left = <Py_ssize_t *>malloc((m + size + 1) * sizeof(Py_ssize_t))
    s.Z = <double *>malloc(<Py_ssize_t>WRITTEN * s.p * sizeof(double))
    if left == NULL or s.Z == NULL:
        free(left)
        free(s.Z)
        raise MemoryError("no memory for the products of a Hessian")
    with nogil:
        differing(&example[0], &B[0, 0], m, &new_example[0], &new[0, 0], size, width, left, left + m, counts)
        pays = counts[0] + counts[1] <= most
        if pays:
            add(&s, &example[0], &B[0, 0], width, left, counts[0], -1.0)
            add(&s, &new_example[0], &new[0, 0], width, left + m, counts[1], 1.0)
    free(left)
    free(s.Z)
    return pays


cdef bint factorised(const double *H, double *L, int p) noexcept nogil:
    """Write the lower Cholesky factor of H (p, p), column by column, or of H plus a tiny ridge where rounding has made H indefinite.

    Neither has an upper triangle. False where both fail.
    """
    cdef int attempt, j, failed
    cdef double largest
    for attempt in range(2):
        for j in range(p):
            memcpy(L + <Py_ssize_t>j * (p + 1), H + <Py_ssize_t>j * (p + 1), (p - j) * sizeof(double))
        if attempt:
            largest = H[0]
            for j in range(1, p):
                largest = max(largest, H[<Py_ssize_t>j * (p + 1)])
            for j in range(p):
                L[<Py_ssize_t>j * (p + 1)] += 1e-13 * largest
        dpotrf(b"L", &p, L, &p, &failed)
        if failed == 0:
            return True
    return False


def cholesky(const double[:, ::1] H, double[:, ::1] factor):
    """Write the Cholesky factor U of the upper triangle of H (p, p), H = U'U, to that of ``factor``; return whether there is one.

    It is that of H plus a tiny ridge where rounding has made H indefinite.
    """
    cdef Py_ssize_t p = H.shape[0]
    cdef bint found
    demand(H.shape[1] == p and factor.shape[0] == p and factor.shape[1] == p and 0 < p < LARGEST, "H and its factor must be (p, p), 0 < p < 32,768")
    with nogil:
        found = factorised(&H[0, 0], &factor[0, 0], <int>p)
    return found


def direction(const double[:, ::1] moments, double factor, const double[:, ::1] gradient, double[:, ::1] D):
    """Write D (d, k) with (I + factor Z'WZ) D = -gradient; return whether the system could be factorised.

    ``moments`` (d (k - 1), d (k - 1)) has Z'WZ without the last class in its upper triangle: rows of Z sum to zero over the classes. On
    parameters E of k - 1 classes and a class of zeros, less their means over the classes, the system is factor Z'WZ + I (x) (I - 11'/k);
    no row of Z sees what the classes have in common, where it is the identity (docs/notes/large-c.md, section 4).
    """
    cdef Py_ssize_t d = gradient.shape[0], k = gradient.shape[1], a
    cdef int p = 0, i, j, last, failed = 0, one = 1
    cdef double each, common, mean
    cdef bint found
    cdef const double *g
    cdef double *H
    cdef double *L
    cdef double *right
    demand(k > 1 and d > 0 and d < LARGEST and k < LARGEST and d * (k - 1) < LARGEST, "there must be 1 to 32,767 parameters, of 2 classes or more")
    demand(D.shape[0] == d and D.shape[1] == k and moments.shape[0] == d * (k - 1) and moments.shape[1] == moments.shape[0],
           "gradient and D must be (d, k), moments (d (k - 1), d (k - 1))")
    p = <int>(d * (k - 1))
    H = <double *>malloc((2 * <Py_ssize_t>p + 1) * p * sizeof(double))
    if H == NULL:
        raise MemoryError("no memory for the Newton system")
    L = H + <Py_ssize_t>p * p
    right = L + <Py_ssize_t>p * p
    each = 1.0 / k
    with nogil:
        for j in range(p):
            for i in range(j, p):
                H[<Py_ssize_t>j * p + i] = factor * moments[j, i]
            last = j - j % <int>(k - 1) + <int>k - 1
            for i in range(j, last):
                H[<Py_ssize_t>j * p + i] -= each
            H[<Py_ssize_t>j * p + j] += 1.0
        found = factorised(H, L, p)
        if found:
            for a in range(d):
                g, common = &gradient[a, 0], 0.0
                for j in range(k):
                    common += g[j]
                common *= each
                for j in range(k - 1):
                    right[a * (k - 1) + j] = common - g[j]
            dpotrs(b"L", &p, &one, L, &p, right, &p, &failed)
            for a in range(d):
                common, mean = 0.0, 0.0
                for j in range(k):
                    common += gradient[a, j]
                for j in range(k - 1):
                    mean += right[a * (k - 1) + j]
                mean = (mean + common) * each
                for j in range(k - 1):
                    D[a, j] = right[a * (k - 1) + j] - mean
                D[a, k - 1] = -mean
    free(H)
    return found


def separate_face(const double[:, ::1] F, const double[:, ::1] center, const Py_ssize_t[::1] y, double c, double[:, ::1] R,
                  double[:, ::1] inside):
    """Write where the proximal step of r = a - mean a ends whose a_j move alone in [0, 1], and a before it is held there.

    a_j maximises a_j (1 + f_j - mean f) - c/2 (a_j - t_j)^2, where t = center - center_y; a_y = 0.
    """
    cdef Py_ssize_t i, n = F.shape[0]
    cdef int j, k = F.shape[1]
    cdef double inverse = 1.0 / c, shift, mean, a
    cdef const double *f
    cdef const double *t
    cdef double *free
    cdef double *r
    check_labels(y, n, k)
    demand(center.shape[0] == n and center.shape[1] == k and R.shape[0] == n and R.shape[1] == k and inside.shape[0] == n
           and inside.shape[1] == k, "center, R and inside must be (n, k)")
    with nogil:
        for i in range(n):
            f, t, free, r = &F[i, 0], &center[i, 0], &inside[i, 0], &R[i, 0]
            mean = 0.0
            for j in range(k):
                mean += f[j]
            shift = (1.0 - mean / k) * inverse - t[y[i]]
            # no branches and no sums in here, so that it runs on vectors
            for j in range(k):
                a = f[j] * inverse + (shift + t[j])
                free[j] = a
                a = a if a > 0.0 else 0.0
                r[j] = a if a < 1.0 else 1.0
            free[y[i]] = 0.0
            r[y[i]] = 0.0
            mean = 0.0
            for j in range(k):
                mean += r[j]
            mean /= k
            for j in range(k):
                r[j] -= mean


def l1_quadratic(const double[:, ::1] H, double[::1] gradient, const double[::1] weight, double[::1] x, double tol, int max_sweeps):
    """Minimise 1/2 (z - x)'H(z - x) + gradient.(z - x) + sum_j weight_j |z_j| over z by coordinate descent; z goes to x.

    ``gradient`` is kept at the smooth part's gradient at the running point. Stops when no move of a sweep exceeds ``tol`` in the norm
    sqrt(H_jj) |move|; returns the sweeps.
    """
    cdef Py_ssize_t j, i, p = x.shape[0]
    cdef int sweep = 0
    cdef double largest, target, size, move
    demand(H.shape[0] == p and H.shape[1] == p and gradient.shape[0] == p and weight.shape[0] == p, "H must be (p, p), gradient and weights (p,)")
    with nogil:
        while sweep < max_sweeps:
            sweep += 1
            largest = 0.0
            for j in range(p):
                size = H[j, j]
                target = size * x[j] - gradient[j]
                if target > weight[j]:
                    target = (target - weight[j]) / size
                elif target < -weight[j]:
                    target = (target + weight[j]) / size
                else:
                    target = 0.0
                move = target - x[j]
                if move != 0.0:
                    x[j] = target
                    for i in range(p):
                        gradient[i] += H[j, i] * move
                    move = sqrt(size) * (move if move > 0.0 else -move)
                    if move > largest:
                        largest = move
            if largest <= tol:
                break
    return sweep
