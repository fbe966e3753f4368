"""Sets of labels over a tree or DAG: loss-augmented inference, and dual block ascent over the relaxed sets, without the GIL.

A set is z in [0, 1]^M over the nodes, root z_0 = 1, with

    z_c <= z_p (every edge),  z_p <= sum of z_c over the children of p,                                                               (1)

whose integral points are the ancestor-closed sets of leaves (choi2018, 6.22 as corrected) and all vertices on a tree. With weights alpha
and scores f_n = alpha_n Z_n.x / (2 lambda), Z = sum_i s_i (y_i - mu_i) x_i' stored by feature (d x Mp),

    P = lambda |W|^2 + sum_i s_i max_z (r_i.z) - y_i.f_i + |y_i|,   r_in = f_in + [n leaf](1 - 2 y_in),   lambda |W|^2 = sum_n alpha_n |Z_n|^2 / (4 lambda)
    D = sum_i s_i (sum over leaves of (1 - 2 y_in) mu_in + |y_i|) - lambda |W|^2,   mu_i in (1).

One visit maximises D over mu_i: a separable quadratic over (1), by coordinate ascent on the multipliers of (1), which are kept between visits.
Its answer is made feasible, and a line search towards it never lowers D. Multipliers nu >= 0 bound max_z r.z from above without a linear
program: r_0 - t_0 + sum of max(0, r_n - t_n), t = what the rows of (1) add to the nodes.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from cpython.exc cimport PyErr_CheckSignals

from adv_loop cimport shuffle
from adv_linear cimport Rows, rows_of, row_scores, row_update

cdef struct Graph:
    int M
    long long edges
    const long long *start     # (M + 1,) children of node p: child[start[p]:start[p + 1]]
    const int *child


cdef inline double positive(double x) noexcept nogil:
    return x if x > 0.0 else 0.0


cdef double best_set(const Graph *g, const double *r, double *b, unsigned char *z) noexcept nogil:
    """Return max of r.z over the sets of a tree and fill z (M,) unless NULL; ``b`` (M,) is scratch. Parents come before children."""
    cdef int n, c, at
    cdef long long e
    cdef double total, largest
    for n in range(g.M - 1, -1, -1):
        total, largest = 0.0, 0.0
        for e in range(g.start[n], g.start[n + 1]):
            c = g.child[e]
            total += positive(b[c])
            if e == g.start[n] or b[c] > largest:
                largest = b[c]
        b[n] = r[n] + (total if total > 0.0 else largest)
    if z != NULL:
        for n in range(g.M):
            z[n] = n == 0
        for n in range(g.M):
            if not z[n]:
                continue
            at, total = -1, 0.0
            for e in range(g.start[n], g.start[n + 1]):
                c = g.child[e]
                if b[c] > 0.0:
                    z[c] = 1
                    total = 1.0
                if at < 0 or b[c] > b[at]:
                    at = c
            if total == 0.0 and at >= 0:
                z[at] = 1
    return b[0]


cdef void added(const Graph *g, const float *nu, double *t) noexcept nogil:
    """t (M,) = what the rows of (1) with multipliers nu (edges + M,) add to the nodes."""
    cdef int n, c
    cdef long long e
    cdef double cover
    for n in range(g.M):
        t[n] = 0.0
    for n in range(g.M):
        cover = nu[g.edges + n]
        t[n] += cover
        for e in range(g.start[n], g.start[n + 1]):
            c = g.child[e]
            t[c] += nu[e] - cover
            t[n] -= nu[e]


cdef double relaxed_bound(const Graph *g, const double *r, const double *t) noexcept nogil:
    cdef int n
    cdef double value = r[0] - t[0]
    for n in range(1, g.M):
        value += positive(r[n] - t[n])
    return value


cdef inline double edge_step(double uc, double ic, double up, double ip, double nu) noexcept nogil:
    """Return how far a multiplier of z_c <= z_p moves to its optimum; z = max(0, u), and u_c falls by ``ic``, u_p rises by ``ip`` with it."""
    cdef double step
    if uc <= 0.0 and up <= 0.0:
        return 0.0
    step = (uc - up) / (ic + ip)
    if uc - step * ic < 0.0:  # they meet at 0
        step = uc / ic if uc > 0.0 else -up / ip
    return step if step > -nu else -nu


cdef double ascend(const Graph *g, double *u, const double *inverse, float *nu, int sweeps, double tolerance) noexcept nogil:
    """Coordinate ascent on the multipliers of (1) for max of -sum (z - u)^2 / (2 inverse), z >= 0; returns the last largest step of u."""
    cdef int n, c, round, again
    cdef long long e
    cdef double step, total, most = 0.0, slope, residual, before, now, first
    for round in range(sweeps):
        most = 0.0
        for n in range(g.M - 1, -1, -1):
            if g.start[n] == g.start[n + 1]:
                continue
            before = nu[g.edges + n]
            if u[n] > 0.0 or before > 0.0:
                step = 0.0
                for again in range(6):
                    residual, slope = u[n] - step * inverse[n], inverse[n]
                    if residual <= 0.0:
                        residual, slope = 0.0, 0.0
                    for e in range(g.start[n], g.start[n + 1]):
                        c = g.child[e]
                        total = u[c] + step * inverse[c]
                        if total > 0.0:
                            residual -= total
                            slope += inverse[c]
                    if slope == 0.0 and u[n] - step * inverse[n] > 0.0:
                        # the root, and no child above 0 yet: to the first that gets there
                        first = INFINITY
                        for e in range(g.start[n], g.start[n + 1]):
                            first = min(first, -u[g.child[e]] / inverse[g.child[e]])
                        step = first * (1.0 + 1e-12) + 1e-300
                        continue
                    if slope == 0.0:
                        break
                    if residual <= 0.0 and before + step <= 0.0:
                        break
                    step += residual / slope
                    if before + step < 0.0:
                        step = -before
                    if -tolerance < residual < tolerance:
                        break
                now = <float>(before + step)
                step = now - before
                if step != 0.0:
                    nu[g.edges + n] = <float>now
                    u[n] -= step * inverse[n]
                    most = max(most, abs(step) * inverse[n])
                    for e in range(g.start[n], g.start[n + 1]):
                        c = g.child[e]
                        u[c] += step * inverse[c]
                        most = max(most, abs(step) * inverse[c])
            for e in range(g.start[n], g.start[n + 1]):
                c = g.child[e]
                if nu[e] == 0.0 and (u[c] <= 0.0 or u[c] <= u[n]):
                    continue
                before = nu[e]
                now = <float>(before + edge_step(u[c], inverse[c], u[n], inverse[n], before))
                step = now - before
                if step != 0.0:
                    nu[e] = <float>now
                    u[c] -= step * inverse[c]
                    u[n] += step * inverse[n]
                    most = max(most, abs(step) * max(inverse[c], inverse[n]))
        if most <= tolerance:
            break
    return most


cdef bint repair(const Graph *g, double *z) noexcept nogil:
    """Lower z (M,) >= 0 until (1) holds up to scale, then scale its root to 1; false if nothing is left."""
    cdef int n, c
    cdef long long e
    cdef double total, scale
    z[0] = 1.0
    for n in range(g.M):
        for e in range(g.start[n], g.start[n + 1]):
            c = g.child[e]
            if z[c] > z[n]:
                z[c] = z[n]
    for n in range(g.M - 1, -1, -1):
        if g.start[n] == g.start[n + 1]:
            continue
        total = 0.0
        for e in range(g.start[n], g.start[n + 1]):
            total += z[g.child[e]]
        if z[n] > total:
            z[n] = total
    if z[0] < 1e-9:
        return False
    if z[0] < 1.0:
        scale = 1.0 / z[0]
        for n in range(g.M):
            z[n] = min(1.0, z[n] * scale)
    return True


cdef inline void gains(int M, const double *f, const double *factor, const unsigned char *leaf, const long long *start, const int *nodes,
                       Py_ssize_t i, double *r) noexcept nogil:
    """r = scores of the nodes with the loss added; ``f`` = Z'x_i, and nodes[start[i]:start[i + 1]] are those of the true labels."""
    cdef int n
    cdef long long e
    for n in range(M):
        r[n] = factor[n] * f[n] + leaf[n]
    for e in range(start[i], start[i + 1]):
        if leaf[nodes[e]]:
            r[nodes[e]] -= 2.0


def best_sets(const long long[::1] start, const int[::1] child, const double[:, ::1] R, double[::1] value, unsigned char[:, ::1] Z):
    """Fill the largest r.z over the sets of a tree and its z for every row r of R (n, M); Z may have no rows."""
    cdef Graph g
    cdef Py_ssize_t i
    cdef double *b = <double *>malloc(R.shape[1] * sizeof(double))
    if b == NULL:
        raise MemoryError("no memory for inference over label sets")
    g.M, g.edges, g.start, g.child = <int>R.shape[1], child.shape[0], &start[0], &child[0]
    with nogil:
        for i in range(R.shape[0]):
            value[i] = best_set(&g, &R[i, 0], b, &Z[i, 0] if Z.shape[0] else NULL)
    free(b)


def bounds(const long long[::1] start, const int[::1] child, const double[:, ::1] R, const float[:, ::1] nu, double[::1] value):
    """Fill upper bounds of max r.z over (1) by the multipliers nu (n, edges + M) for every row r of R (n, M)."""
    cdef Graph g
    cdef Py_ssize_t i
    cdef double *t = <double *>malloc(R.shape[1] * sizeof(double))
    if t == NULL:
        raise MemoryError("no memory for inference over label sets")
    g.M, g.edges, g.start, g.child = <int>R.shape[1], child.shape[0], &start[0], &child[0]
    with nogil:
        for i in range(R.shape[0]):
            added(&g, &nu[i, 0], t)
            value[i] = relaxed_bound(&g, &R[i, 0], t)
    free(t)


def sweep(const double[::1] values, const int[::1] columns, const long long[::1] begin, Py_ssize_t n, Py_ssize_t d,
          const long long[::1] start, const int[::1] child, bint tree, const unsigned char[::1] leaf, const double[::1] factor,
          const long long[::1] label_start, const int[::1] label_nodes, const double[::1] square, const double[::1] sample,
          double[:, ::1] Z, double[:, ::1] mu, float[:, ::1] nu, int sweeps, double tolerance, double skip, Py_ssize_t passes,
          unsigned long long seed):
    """Run passes over all rows, in a fresh order each, in place on Z (d, Mp), mu (n, M) and nu (n, edges + M).

    Parameters
    ----------
    values, columns, begin, n, d
        The rows of X (`compiled_rows`).
    start, child, tree, leaf
        Children of every node, parents before children, node 0 the root; whether nobody has two parents; ones at leaves.
    factor : (M,)
        alpha / (2 lambda).
    label_start, label_nodes
        Nodes of every row's true labels, ancestors included.
    square, sample : (n,)
        |x_i|^2 and s_i.
    sweeps, tolerance
        Limits of the coordinate ascent of a visit: its sweeps, and the change of z at which it ends.
    skip : float
        Rows whose gap is at most this are left as they are.

    Returns
    -------
    float
        Sum over the rows of the last pass of s_i times their gaps when they were visited: an estimate of P - D.
    """
    cdef Graph g
    cdef Rows rows = rows_of(values, columns, begin, n, <int>d)
    cdef int M = <int>factor.shape[0], Mp = <int>Z.shape[1], v
    cdef Py_ssize_t i, at, done
    cdef uint64_t state = seed
    cdef double total = 0.0, gap, up, down, step, floor = 0.0
    cdef double *m
    cdef Py_ssize_t *order = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    cdef int *moved = <int *>malloc(Mp * sizeof(int))
    cdef double *work = <double *>malloc(6 * Mp * sizeof(double))
    cdef double *f = work
    cdef double *r = work + Mp
    cdef double *t = work + 2 * Mp
    cdef double *u = work + 3 * Mp
    cdef double *inverse = work + 4 * Mp
    cdef double *z = work + 5 * Mp
    if order == NULL or moved == NULL or work == NULL:
        free(order)
        free(moved)
        free(work)
        raise MemoryError("no memory for the fit of label sets")
    g.M, g.edges, g.start, g.child = M, child.shape[0], &start[0], &child[0]
    for v in range(M):
        floor = max(floor, 1e-6 * factor[v])  # nodes without weight have no curvature: the line search knows
    try:
        with nogil:
            for i in range(n):
                order[i] = i
            for done in range(passes):
                with gil:
                    PyErr_CheckSignals()
                total = 0.0
                shuffle(order, n, &state)
                for at in range(n):
                    i = order[at]
                    if square[i] <= 0.0 or sample[i] <= 0.0:
                        continue
                    m = &mu[i, 0]
                    row_scores(&rows, i, &Z[0, 0], Mp, f)
                    gains(M, f, &factor[0], &leaf[0], &label_start[0], &label_nodes[0], i, r)
                    down = 0.0
                    for v in range(M):
                        down += r[v] * m[v]
                    if tree:
                        gap = best_set(&g, r, t, NULL) - down
                        if gap <= skip:
                            total += sample[i] * gap
                            continue
                        total += sample[i] * gap
                    added(&g, &nu[i, 0], t)
                    if not tree:
                        gap = relaxed_bound(&g, r, t) - down
                        if gap <= skip:
                            total += sample[i] * gap
                            continue
                    inverse[0], u[0] = 0.0, 1.0
                    for v in range(1, M):
                        inverse[v] = 1.0 / (max(factor[v], floor) * square[i] * sample[i])
                        u[v] = m[v] + (r[v] - t[v]) * inverse[v]
                    ascend(&g, u, inverse, &nu[i, 0], sweeps, tolerance)
                    if not tree:
                        added(&g, &nu[i, 0], t)
                        gap = relaxed_bound(&g, r, t) - down
                        total += sample[i] * gap
                    for v in range(M):
                        z[v] = positive(u[v])
                    if not repair(&g, z):
                        continue
                    up, down = 0.0, 0.0
                    for v in range(1, M):
                        z[v] -= m[v]
                        if -1e-12 < z[v] < 1e-12:
                            z[v] = 0.0
                        up += r[v] * z[v]
                        down += factor[v] * z[v] * z[v]
                    z[0] = 0.0
                    down *= square[i] * sample[i]
                    if up <= 0.0:
                        continue
                    step = up / down if up < down else 1.0
                    for v in range(1, M):
                        z[v] *= step
                        m[v] = positive(m[v] + z[v])
                    for v in range(M, Mp):
                        z[v] = 0.0
                    row_update(&rows, i, &Z[0, 0], Mp, z, -sample[i], moved)
    finally:
        free(order)
        free(moved)
        free(work)
    return total
