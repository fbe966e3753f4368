"""Faces of the block step for semismooth Newton: orthonormal bases of the directions in which an example's r can move.

At an exact block step every coordinate of r is fixed, free, or tied to the others of one group, and r sums to zero
(docs/notes/large-c.md, section 3).
The tangent space of that face is {d: d fixed = 0, d equal on the tied, sum d = 0, d.normal = 0}; dr/df = M / w with M the projector on it.
"""

from libc.math cimport fabs, sqrt
from libc.stdlib cimport malloc, free
from libc.string cimport memchr, memcmp

from adv_check cimport check_labels, check_positions, demand

cdef enum:
    FIXED = 0
    TIED = 1
    FREE = 2
    MOST = 1 << 24    # classes, so that no count of scratch numbers leaves an int

CLASSES = "there must be 1 to 16,777,215 classes"


cdef inline bint loose(const signed char[:, ::1] state, Py_ssize_t i, int k) noexcept nogil:
    """Whether a label of the row is free, without which its face is a point; near the optimum few rows have one."""
    return memchr(&state[i, 0], FREE, k) != NULL


def ranks(const signed char[:, ::1] state, const double[:, ::1] normal, const signed char[::1] skip, int[::1] rank):
    """Write the dimension of every example's face, 0 for those in ``skip`` (n,), and return their sum."""
    cdef Py_ssize_t i, n = state.shape[0], total = 0
    cdef int j, k = state.shape[1], size, tied, r
    cdef double mean, group, largest
    cdef bint bent
    demand(normal.shape[0] == n and normal.shape[1] == k and rank.shape[0] == n and skip.shape[0] == n, "normals must be (n, k), ranks and skip (n,)")
    with nogil:
        for i in range(n):
            rank[i] = 0
            if skip[i] or not loose(state, i, k):
                continue
            size = 0
            tied = 0
            mean = 0.0
            group = 0.0
            largest = 0.0
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
    return total


cdef Py_ssize_t ranked(const signed char[:, ::1] state, const int[::1] rank, Py_ssize_t n, int k) noexcept nogil:
    """Return the sum of the ranks; -1 where one is no dimension that the face can have."""
    cdef Py_ssize_t i, total = 0
    cdef int j, size, tied
    for i in range(n):
        if rank[i] == 0:
            continue
        size = 0
        tied = 0
        for j in range(k):
            size += state[i, j] == FREE
            tied |= state[i, j] == TIED
        if rank[i] < 0 or (rank[i] > 0 and rank[i] >= size + tied):
            return -1
        total += rank[i]
    return total


def bases(const signed char[:, ::1] state, const double[:, ::1] normal, const int[::1] rank, double[:, ::1] B, Py_ssize_t[::1] owner):
    """Write the orthonormal bases, one direction (k numbers) a row of B, and the example that owns it.

    In coordinates (free..., tied group / sqrt(size)) the sum is the unit vector w; a Householder reflection that takes w to the last axis
    leaves the other axes as a basis of its complement. A normal is reflected along and removed the same way.
    """
    cdef Py_ssize_t i, n = state.shape[0], row = 0
    cdef int j, c, e, k = state.shape[1], a, b, m
    cdef double scale, beta, length, t, tied
    cdef int *index
    cdef int *bound
    cdef double *w
    cdef double *v
    cdef double *u
    cdef double *v2
    cdef double *z
    cdef bint fits
    demand(0 < k < MOST, CLASSES)
    demand(normal.shape[0] == n and normal.shape[1] == k and rank.shape[0] == n, "normals must be (n, k) and ranks (n,)")
    fits = B.shape[1] == k and B.shape[0] == owner.shape[0] and ranked(state, rank, n, k) == B.shape[0]
    demand(fits, "ranks must be those of the faces, and their sum the rows of the bases (rows, k)")
    index = <int *>malloc(2 * k * sizeof(int))
    bound = index + k
    w = <double *>malloc(5 * k * sizeof(double))
    v, u, v2, z = w + k, w + 2 * k, w + 3 * k, w + 4 * k
    if index == NULL or w == NULL:
        free(index)
        free(w)
        raise MemoryError("no memory for the bases of the faces")
    with nogil:
        for i in range(n):
            if rank[i] == 0:
                continue
            a = 0
            b = 0
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
                    for j in range(k):
                        if state[i, j] == TIED:
                            t += normal[i, j]
                    u[a] = t / sqrt(<double>b)
                t = 0.0
                for c in range(m):
                    t += v[c] * u[c]
                for c in range(m):
                    u[c] -= beta * t * v[c]
                length = 0.0                # in the reduced m - 1 coordinates
                for c in range(m - 1):
                    length += u[c] * u[c]
                length = sqrt(length)
            else:
                length = 0.0
            if rank[i] < m - 1 and length > 0.0:
                for c in range(m - 1):
                    v2[c] = u[c] / length
                t = 1.0 if v2[m - 2] >= 0.0 else -1.0
                v2[m - 2] += t
                t = 1.0 / (1.0 + (v2[m - 2] - t) * t)
            else:
                t = 0.0
            for e in range(rank[i]):
                # column e of the second reflection, then column of the first
                for c in range(m):
                    z[c] = 0.0
                z[e] = 1.0
                length = v[e]
                if t != 0.0:
                    length = v2[e] * t
                    for c in range(m - 1):
                        z[c] -= length * v2[c]
                    length = 0.0
                    for c in range(m):
                        length += v[c] * z[c]
                for c in range(m):
                    z[c] -= beta * length * v[c]
                for j in range(k):
                    B[row, j] = 0.0
                for c in range(a):
                    B[row, index[c]] = z[c]
                if b:
                    tied = z[a] / sqrt(<double>b)
                    for c in range(b):
                        B[row, bound[c]] = tied
                owner[row] = i
                row += 1
    free(index)
    free(w)


cdef inline double leave_span(double *v, const double *Q, int size, int spanned) noexcept nogil:
    """Take the orthonormal rows of Q out of v, twice, which is enough, and return |v|^2."""
    cdef int a, c, twice
    cdef double product, square = 0.0
    for twice in range(2):
        for c in range(spanned):
            product = 0.0
            for a in range(size):
                product += Q[c * size + a] * v[a]
            for a in range(size):
                v[a] -= product * Q[c * size + a]
    for a in range(size):
        square += v[a] * v[a]
    return square


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
                first = 0.0
                for a in range(size):
                    v[a] = matrix[t, index[a]] - matrix[base, index[a]]
                    first += v[a] * v[a]
                length = leave_span(v, Q, size, spanned)
                if length > 1e-20 * first:
                    length = 1.0 / sqrt(length)
                    for a in range(size):
                        Q[spanned * size + a] = v[a] * length
                        left[a] -= Q[spanned * size + a] * Q[spanned * size + a]
                    spanned += 1
            wanted = min(size - spanned, most[i])
            while wanted > 0:
                best = 0
                furthest = -1.0
                for a in range(size):
                    if left[a] > furthest:
                        furthest = left[a]
                        best = a
                for a in range(size):
                    v[a] = 0.0
                v[best] = 1.0
                length = leave_span(v, Q, size, spanned)
                if not length > 0.0:
                    break
                length = 1.0 / sqrt(length)
                for a in range(k):
                    B[row, a] = 0.0
                for a in range(size):
                    Q[spanned * size + a] = v[a] * length
                    left[a] -= Q[spanned * size + a] * Q[spanned * size + a]
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


def differing(const Py_ssize_t[::1] owner, const double[:, ::1] B, const Py_ssize_t[::1] other_owner, const double[:, ::1] other,
              Py_ssize_t[::1] left, Py_ssize_t[::1] entered):
    """Write which rows of two lists of bases, owners ascending, belong to examples whose rows are not the same in both; return how many of each."""
    cdef Py_ssize_t a = 0, b = 0, m = B.shape[0], size = other.shape[0], first, second, i, row, k = B.shape[1], gone = 0, come = 0
    cdef bint differ
    demand(owner.shape[0] == m and other_owner.shape[0] == size and other.shape[1] == k and left.shape[0] == m and entered.shape[0] == size,
           "every row of both bases (any, k) needs an owner and a place")
    with nogil:
        while a < m or b < size:
            i = owner[a] if a < m and (b >= size or owner[a] <= other_owner[b]) else other_owner[b]
            first, second = a, b
            while a < m and owner[a] == i:
                a += 1
            while b < size and other_owner[b] == i:
                b += 1
            differ = a - first != b - second
            if not differ:
                differ = memcmp(&B[first, 0], &other[second, 0], (a - first) * k * sizeof(double)) != 0
            if differ:
                for row in range(first, a):
                    left[gone] = row
                    gone += 1
                for row in range(second, b):
                    entered[come] = row
                    come += 1
    return gone, come


def products(const double[:, ::1] X, const Py_ssize_t[::1] owner, const double[:, ::1] B, const double[::1] weight, const Py_ssize_t[::1] rows,
             int k, double[:, ::1] Z):
    """Write sqrt(weight) x (x) b of some rows b of B, x the row of X that owns b, with the first k classes of b."""
    cdef Py_ssize_t at, i, a, m = rows.shape[0], d = X.shape[1]
    cdef int j
    cdef double scale
    cdef const double *b
    cdef double *z
    demand(owner.shape[0] == B.shape[0] and weight.shape[0] == B.shape[0] and Z.shape[0] == m, "every row of the bases needs an owner and a weight")
    demand(0 <= k <= B.shape[1] and Z.shape[1] == d * k, "the products must be (rows, d k), k at most the classes of the bases")
    if Z.shape[1] == 0:
        return
    check_positions(owner, X.shape[0], "owners")
    check_positions(rows, B.shape[0], "rows")
    with nogil:
        for at in range(m):
            i = rows[at]
            b, z = &B[i, 0], &Z[at, 0]
            for a in range(d):
                scale = X[owner[i], a] * sqrt(weight[i])
                for j in range(k):
                    z[a * k + j] = scale * b[j]


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
