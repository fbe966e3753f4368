"""Sets of labels over a tree or DAG: loss-augmented inference, and dual block ascent over the relaxed sets, without the GIL.

A set is z in [0, 1]^M over the nodes, root z_0 = 1, with

    z_c <= z_p (every edge),  z_p <= sum of z_c over the children of p,                                                               (1)

whose integral points are the ancestor-closed sets of leaves (choi2018, 6.22 as corrected) and all vertices on a tree. With weights alpha
and scores f_n = alpha_n Z_n.x / (2 lambda), Z = sum_i s_i (y_i - mu_i) x_i' stored by feature (d x Mp),

    P = lambda |W|^2 + sum_i s_i max_z (r_i.z) - y_i.f_i + |y_i|,   r_in = f_in + [n leaf](1 - 2 y_in),   lambda |W|^2 = sum_n alpha_n |Z_n|^2 / (4 lambda)
    D = sum_i s_i (sum over leaves of (1 - 2 y_in) mu_in + |y_i|) - lambda |W|^2,   mu_i in (1).

One visit takes ROWS rows, each in a lane of vectors (docs/notes/hierarchical.md, section 7). A separable quadratic is maximised over (1) for each
row, by coordinate ascent on the multipliers of (1), which are kept between visits. The curvature is that of D in mu_i times a bound of the rows'
correlations, valid when all rows move. The answers are made feasible, and the step of each row towards its answer solves a small quadratic program
over [0, 1]^ROWS, so that D never falls.
ROWS rows at a time take no more passes than one at a time (measured on the Gene Ontology), and share the reading of Z and of the graph.
Multipliers nu >= 0 bound max_z r.z from above without a linear program: r_0 - t_0 + sum of max(0, r_n - t_n), t = what the rows of (1) add to the
nodes.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_graph, check_list, check_rows, check_starts, demand
from adv_loop cimport checked_width, shuffle
from adv_linear cimport Rows, rows_of, row_scores, row_update
from adv_simd cimport vec, load, store, splat, vmax, vmin, vsum, hmax, if_greater, LANES
include "width.pxi"

cdef enum:
    ROWS = 8      # rows that are visited together, each in a lane of vectors
    ROUNDS = 30   # of the search for how far each of them goes

cdef double LIGHT = 1e-2  # share of the largest weight below which a node's own curvature says too little

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


cdef struct Lanes:             # ROWS rows at once: [node][lane] and [multiplier][lane]
    double *u                  # (M, ROWS) unconstrained optima at the present multipliers; u_0 = 1
    double *nu                 # (edges + M, ROWS) multipliers times the inverse curvature of the lane
    const double *inverse      # (M,) inverse curvature of every node but for the lane's factor; 0 at the root
    const double *curvature    # (M,) its inverse; 0 at the root
    const double *joint        # (edges,) 1 / (inverse of the child + inverse of the parent)


cdef inline vec edge_step(vec uc, vec up, double ic, double qc, double qp, double joint, vec nu) noexcept nogil:
    """Return how far multipliers of z_c <= z_p move to their optimum, z = max(0, u): a unit more lowers u_c by ``ic`` and raises u_p by its own inverse."""
    cdef vec zero = splat(0.0), step = (uc - up) * splat(joint), apart
    # where u_c and u_p meet below 0, every step that leaves both there will do: take the shortest
    apart = vmin(vmax(zero, uc * splat(qc)), zero - up * splat(qp))
    return vmax(if_greater(zero, uc - step * splat(ic), apart, step), zero - nu)


cdef inline void cover_excess(const Graph *g, const Lanes *rows, int n, int h, vec step, vec *excess, vec *slope) noexcept nogil:
    """Set the excess of z_n over the sum of its children's z after a move of the constraint's multiplier by ``step``, and how fast the excess falls."""
    cdef vec zero = splat(0.0), at, fall, inverse = splat(rows.inverse[n])
    cdef long long e
    at = load(rows.u + n * ROWS, h) - step * inverse
    excess[0] = vmax(at, zero)
    fall = if_greater(at, zero, inverse, zero)
    for e in range(g.start[n], g.start[n + 1]):
        inverse = splat(rows.inverse[g.child[e]])
        at = load(rows.u + g.child[e] * ROWS, h) + step * inverse
        excess[0] = excess[0] - vmax(at, zero)
        fall = fall + if_greater(at, zero, inverse, zero)
    slope[0] = fall


cdef inline vec cover_step(const Graph *g, const Lanes *rows, int n, int h, vec nu) noexcept nogil:
    """Return how far multipliers of z_n <= sum over its children move: two steps of Newton's, or of the secant after one that goes too far."""
    cdef vec zero = splat(0.0), tiny = splat(1e-300), step = zero, first, excess, slope, other, steeper
    cdef long long e
    cover_excess(g, rows, n, h, step, &excess, &slope)
    if hmax(vmax(excess, nu)) <= 0.0:
        return step
    if n == 0:  # at the root nothing moves before the first child gets to 0
        first = splat(INFINITY)
        for e in range(g.start[n], g.start[n + 1]):
            first = vmin(first, zero - load(rows.u + g.child[e] * ROWS, h) * splat(rows.curvature[g.child[e]]))
        step = vmax(first, zero) * splat(1.0 + 1e-12)
        cover_excess(g, rows, n, h, step, &excess, &slope)
    first = step
    step = vmax(step + if_greater(slope, zero, excess / vmax(slope, tiny), zero), zero - nu)
    cover_excess(g, rows, n, h, step, &other, &steeper)
    slope = if_greater(zero, other * excess, (excess - other) / (step - first + tiny), steeper)
    return vmax(step + if_greater(slope, zero, other / vmax(slope, tiny), zero), zero - nu)


cdef double ascend(const Graph *g, const Lanes *rows, int sweeps, double tolerance) noexcept nogil:
    """Coordinate ascent on the multipliers of (1) for max of -sum (z - u)^2 / (2 inverse), z >= 0; returns the last largest step of u."""
    cdef int n, c, h, round
    cdef long long e
    cdef vec most = splat(0.0), zero = splat(0.0), step, up, uc, nu
    cdef double ip
    for round in range(sweeps):
        most = zero
        for n in range(g.M - 1, -1, -1):
            if g.start[n] == g.start[n + 1]:
                continue
            ip = rows.inverse[n]
            for h in range(ROWS // LANES):
                nu = load(rows.nu + (g.edges + n) * ROWS, h)
                step = cover_step(g, rows, n, h, nu)
                up = load(rows.u + n * ROWS, h)
                if hmax(vmax(step, zero - step)) > 0.0:
                    store(rows.nu + (g.edges + n) * ROWS, h, nu + step)
                    up = up - step * splat(ip)
                    for e in range(g.start[n], g.start[n + 1]):
                        c = g.child[e]
                        uc = step * splat(rows.inverse[c])
                        store(rows.u + c * ROWS, h, load(rows.u + c * ROWS, h) + uc)
                        most = vmax(most, vmax(uc, zero - uc))
                for e in range(g.start[n], g.start[n + 1]):
                    c = g.child[e]
                    uc, nu = load(rows.u + c * ROWS, h), load(rows.nu + e * ROWS, h)
                    step = edge_step(uc, up, rows.inverse[c], rows.curvature[c], rows.curvature[n], rows.joint[e], nu)
                    store(rows.nu + e * ROWS, h, nu + step)
                    up = up + step * splat(ip)
                    step = step * splat(rows.inverse[c])
                    store(rows.u + c * ROWS, h, uc - step)
                    most = vmax(most, vmax(step, zero - step))
                store(rows.u + n * ROWS, h, up)
        if hmax(most) <= tolerance:
            break
    return hmax(most)


cdef void repair(const Graph *g, double *z) noexcept nogil:
    """Lower z (M, ROWS) >= 0 until (1) holds up to scale, then scale its roots to 1; a lane of which nothing is left gets a root of 0."""
    cdef int n, h
    cdef long long e
    cdef vec here, total, zero = splat(0.0), one = splat(1.0)
    for h in range(ROWS // LANES):
        store(z, h, one)
        for n in range(g.M):
            here = load(z + n * ROWS, h)
            for e in range(g.start[n], g.start[n + 1]):
                child = z + g.child[e] * ROWS
                store(child, h, vmin(load(child, h), here))
        for n in range(g.M - 1, -1, -1):
            if g.start[n] == g.start[n + 1]:
                continue
            total = zero
            for e in range(g.start[n], g.start[n + 1]):
                total = total + load(z + g.child[e] * ROWS, h)
            store(z + n * ROWS, h, vmin(load(z + n * ROWS, h), total))
        here = load(z, h)
        total = if_greater(here, splat(1e-9), one / vmax(here, splat(1e-9)), zero)
        for n in range(g.M):
            store(z + n * ROWS, h, vmin(one, load(z + n * ROWS, h) * total))


cdef void scores_together(const Rows *x, const Py_ssize_t *chosen, const double *theta, int kp, double *f) noexcept nogil:
    """f (ROWS, kp) = Theta' x_i for the chosen rows i; for dense ones Theta is in tiles (kp / LANES, d, LANES), read once for all."""
    cdef int v, j, lane
    cdef const double *row[ROWS]
    cdef vec a[ROWS]
    cdef vec at
    if x.start != NULL:
        for lane in range(ROWS):
            row_scores(x, chosen[lane], theta, kp, f + lane * kp)
        return
    for lane in range(ROWS):
        row[lane] = x.values + chosen[lane] * x.d
    for v in range(kp // LANES):
        for lane in range(ROWS):
            a[lane] = splat(0.0)
        for j in range(x.d):
            at = load(theta, j)
            for lane in range(ROWS):
                a[lane] = a[lane] + splat(row[lane][j]) * at
        theta += x.d * LANES
        for lane in range(ROWS):
            store(f + lane * kp, v, a[lane])


cdef void update_together(const Rows *x, const Py_ssize_t *chosen, double *theta, int kp, const double *dr, const double *weight,
                          int *moved) noexcept nogil:
    """Theta += sum over the chosen rows i of weight_i x_i dr_i', dr (ROWS, kp); Theta as in `scores_together`."""
    cdef int v, j, lane
    cdef const double *row[ROWS]
    cdef vec a[ROWS]
    if x.start != NULL:
        for lane in range(ROWS):
            if weight[lane] != 0.0:
                row_update(x, chosen[lane], theta, kp, dr + lane * kp, weight[lane], moved)
        return
    for lane in range(ROWS):
        row[lane] = x.values + chosen[lane] * x.d
    for v in range(kp // LANES):
        for lane in range(ROWS):
            a[lane] = splat(weight[lane]) * load(dr + lane * kp, v)
        for j in range(x.d):
            store(theta, j, load(theta, j) + (((a[0] * splat(row[0][j]) + a[1] * splat(row[1][j])) + (a[2] * splat(row[2][j]) + a[3] * splat(row[3][j])))
                  + ((a[4] * splat(row[4][j]) + a[5] * splat(row[5][j])) + (a[6] * splat(row[6][j]) + a[7] * splat(row[7][j])))))
        theta += x.d * LANES


cdef void tile(double *theta, int d, int kp, double *tiles, bint back) noexcept nogil:
    """Copy Theta (d, kp) to tiles (kp / LANES, d, LANES), or ``back``."""
    cdef int v, j
    for v in range(kp // LANES):
        for j in range(d):
            if back:
                store(theta + <Py_ssize_t>j * kp, v, load(tiles, v * d + j))
            else:
                store(tiles, v * d + j, load(theta + <Py_ssize_t>j * kp, v))


cdef double inner(const Rows *x, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """x_i . x_j."""
    cdef double s = 0.0
    cdef Py_ssize_t a, b
    if x.start == NULL:
        for a in range(x.d):
            s += x.values[i * x.d + a] * x.values[j * x.d + a]
        return s
    a, b = x.start[i], x.start[j]
    while a < x.start[i + 1] and b < x.start[j + 1]:
        if x.columns[a] == x.columns[b]:
            s += x.values[a] * x.values[b]
            a += 1
            b += 1
        elif x.columns[a] < x.columns[b]:
            a += 1
        else:
            b += 1
    return s


cdef double stretch(const double *G, const double *length) noexcept nogil:
    """Return an upper bound of the largest eigenvalue of the correlations of G (ROWS, ROWS): the 8th root of the trace of their 8th power."""
    cdef double A[ROWS * ROWS]
    cdef double B[ROWS * ROWS]
    cdef double s, total = 0.0
    cdef int i, j, l, power
    for i in range(ROWS):
        for j in range(ROWS):
            A[i * ROWS + j] = G[i * ROWS + j] / sqrt(length[i] * length[j])
    for power in range(2):
        for i in range(ROWS):
            for j in range(ROWS):
                s = 0.0
                for l in range(ROWS):
                    s += A[i * ROWS + l] * A[j * ROWS + l]
                B[i * ROWS + j] = s
        for i in range(ROWS * ROWS):
            A[i] = B[i]
    for i in range(ROWS * ROWS):
        total += A[i] * A[i]
    return sqrt(sqrt(sqrt(total)))


cdef void lengths(const double *H, const double *slope, double *t) noexcept nogil:
    """Maximise slope.t - t'Ht / 2 over t in [0, 1]^ROWS by coordinate ascent from t = 0; H (ROWS, ROWS)."""
    cdef int i, j, round
    cdef double left
    for i in range(ROWS):
        t[i] = 0.0
    for round in range(ROUNDS):
        for i in range(ROWS):
            if H[i * ROWS + i] <= 0.0:
                continue
            left = slope[i]
            for j in range(ROWS):
                if j != i:
                    left -= H[i * ROWS + j] * t[j]
            t[i] = min(1.0, positive(left / H[i * ROWS + i]))


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
    check_graph(start, child, R.shape[1])
    demand(value.shape[0] == R.shape[0] and (Z.shape[0] == 0 or (Z.shape[0] == R.shape[0] and Z.shape[1] == R.shape[1])),
           "values must be (n,) and sets (n, M)")
    b = <double *>malloc(R.shape[1] * sizeof(double))
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
    check_graph(start, child, R.shape[1])
    demand(value.shape[0] == R.shape[0] and nu.shape[0] == R.shape[0] and nu.shape[1] == child.shape[0] + R.shape[1],
           "values must be (n,) and multipliers (n, edges + M)")
    t = <double *>malloc(R.shape[1] * sizeof(double))
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
    """Run passes over all rows, in a fresh order each, in place on Z (d, Mp), mu (n, M) and nu (n, edges + M); return an estimate of P - D.

    Rows of X come as `compiled_rows` has them. Node p has the children child[start[p]:start[p + 1]], which stand behind it, and node 0 is the root;
    ``tree``: nobody has two parents; ``leaf`` (M,) is 1 at leaves, ``factor`` (M,) alpha / (2 lambda). ``label_start`` and ``label_nodes`` list the
    nodes of every row's true labels, ancestors included; ``square`` and ``sample`` (n,) are |x_i|^2 and s_i. The coordinate ascent of a visit ends
    after ``sweeps`` of its own, or when z changes by no more than ``tolerance``; rows whose gap is at most ``skip`` are left as they are. The
    estimate is the sum over the rows of the last pass of s_i times their gaps when they were visited.
    """
    cdef Graph g
    cdef Lanes lanes
    cdef Rows rows
    cdef int M = <int>factor.shape[0], Mp = <int>Z.shape[1], v, lane, other
    cdef Py_ssize_t i, at, group, done, count = 0, width = child.shape[0] + M
    cdef long long e
    cdef uint64_t state = seed
    cdef double total = 0.0, down, largest = 0.0, worst, sigma, value
    cdef double gap[ROWS]
    cdef double scale[ROWS]
    cdef double slope[ROWS]
    cdef double step[ROWS]
    cdef double length[ROWS]
    cdef double G[ROWS * ROWS]
    cdef double H[ROWS * ROWS]
    cdef Py_ssize_t chosen[ROWS]
    cdef vec a
    cdef bint moves
    cdef double *f            # (ROWS, Mp) scores, then changes
    cdef double *r            # (ROWS, Mp)
    cdef double *weight       # factor, padded
    check_rows(values, columns, begin, n, d)
    check_graph(start, child, factor.shape[0])
    demand(Mp == checked_width(M) and Z.shape[0] == d, "Z must be (d, Mp), padded")
    demand(leaf.shape[0] == M and mu.shape[0] == n and mu.shape[1] == M and nu.shape[0] == n and nu.shape[1] == width,
           "leaves must be (M,), marginals (n, M) and multipliers (n, edges + M)")
    demand(square.shape[0] == n and sample.shape[0] == n, "every row needs a squared length and a weight")
    check_starts(label_start, n, label_nodes.shape[0], "starts of labels")
    check_list(label_nodes, M, "nodes of labels")
    rows = rows_of(values, columns, begin, n, <int>d)
    order = <Py_ssize_t *>malloc((n + 1) * sizeof(Py_ssize_t))
    moved = <int *>malloc(Mp * sizeof(int))
    work = <double *>malloc(((3 * ROWS + 4) * <Py_ssize_t>Mp + ROWS * width + child.shape[0]) * sizeof(double))
    theta = &Z[0, 0] if rows.start != NULL else <double *>malloc((d * <Py_ssize_t>Mp + 1) * sizeof(double))
    try:
        if order == NULL or moved == NULL or work == NULL or theta == NULL:
            raise MemoryError("no memory for the fit of label sets")
        f, r = work, work + ROWS * Mp
        inverse = r + ROWS * Mp
        curvature, weight, scratch = inverse + Mp, inverse + 2 * Mp, inverse + 3 * Mp
        lanes.u = scratch + Mp
        lanes.nu = lanes.u + ROWS * Mp
        joint = lanes.nu + ROWS * width
        g.M, g.edges, g.start, g.child = M, child.shape[0], &start[0], &child[0]
        lanes.inverse, lanes.curvature, lanes.joint = inverse, curvature, joint
        for v in range(M):
            largest = max(largest, factor[v])
        for v in range(Mp):
            weight[v] = factor[v] if v < M else 0.0
        inverse[0] = curvature[0] = 0.0
        for v in range(1, M):
            # Nodes of little or no weight get the curvature of the heaviest: with its own, a light node would move freely beside heavy children,
            # and the multipliers between them would take thousands of sweeps. How far a row goes is found with the true curvature.
            curvature[v] = factor[v] if factor[v] >= LIGHT * largest else largest
            inverse[v] = 1.0 / curvature[v]
        for v in range(M):
            for e in range(start[v], start[v + 1]):
                joint[e] = 1.0 / (inverse[v] + inverse[child[e]])
        for i in range(n):
            if square[i] > 0.0 and sample[i] > 0.0:
                order[count] = i
                count += 1
        with nogil:
            if rows.start == NULL:
                tile(&Z[0, 0], rows.d, Mp, theta, False)
            for done in range(passes):
                with gil:
                    PyErr_CheckSignals()
                total = 0.0
                shuffle(order, count, &state)
                for group in range((count + ROWS - 1) // ROWS):
                    at = group * ROWS
                    for lane in range(ROWS):
                        chosen[lane] = order[min(at + lane, count - 1)]
                    scores_together(&rows, chosen, theta, Mp, f)
                    worst = 0.0
                    for lane in range(min(<Py_ssize_t>ROWS, count - at)):
                        i = chosen[lane]
                        gains(M, f + lane * Mp, &factor[0], &leaf[0], &label_start[0], &label_nodes[0], i, r + lane * Mp)
                        down = 0.0
                        for v in range(M):
                            down += r[lane * Mp + v] * mu[i, v]
                        if tree:
                            gap[lane] = best_set(&g, r + lane * Mp, scratch, NULL) - down
                        else:
                            added(&g, &nu[i, 0], scratch)
                            gap[lane] = relaxed_bound(&g, r + lane * Mp, scratch) - down
                        worst = max(worst, gap[lane])
                        total += sample[i] * gap[lane]
                    if worst <= skip:
                        continue
                    for lane in range(ROWS):
                        if at + lane >= count:
                            gap[lane] = 0.0
                            for v in range(M):
                                r[lane * Mp + v] = r[v]
                        length[lane] = square[chosen[lane]]
                        G[lane * ROWS + lane] = length[lane]
                        for other in range(lane):
                            # lanes without a row of their own move nothing
                            value = inner(&rows, chosen[lane], chosen[other]) if at + lane < count else 0.0
                            G[lane * ROWS + other] = G[other * ROWS + lane] = value
                    sigma = stretch(G, length)
                    for lane in range(ROWS):
                        i = chosen[lane]
                        scale[lane] = 1.0 / (sigma * square[i] * sample[i])
                        added(&g, &nu[i, 0], scratch)
                        for v in range(M):
                            lanes.u[v * ROWS + lane] = mu[i, v] + (r[lane * Mp + v] - scratch[v]) * inverse[v] * scale[lane]
                        for e in range(width):
                            lanes.nu[e * ROWS + lane] = nu[i, e] * scale[lane]
                    for lane in range(ROWS):
                        lanes.u[lane] = 1.0
                    ascend(&g, &lanes, sweeps, tolerance)
                    for lane in range(min(<Py_ssize_t>ROWS, count - at)):
                        i = chosen[lane]
                        for e in range(width):
                            nu[i, e] = <float>(lanes.nu[e * ROWS + lane] / scale[lane])
                    for e in range(M * ROWS // LANES):
                        store(lanes.u, <int>e, vmax(load(lanes.u, <int>e), splat(0.0)))
                    repair(&g, lanes.u)
                    for lane in range(ROWS):
                        i = chosen[lane]
                        slope[lane] = 0.0
                        f[lane * Mp] = 0.0
                        moves = lanes.u[lane] > 0.0 and at + lane < count  # something is left, and the lane has a row of its own
                        for v in range(1, M):
                            value = lanes.u[v * ROWS + lane] - mu[i, v] if moves else 0.0
                            f[lane * Mp + v] = 0.0 if -1e-12 < value < 1e-12 else value
                            slope[lane] += sample[i] * r[lane * Mp + v] * f[lane * Mp + v]
                        for v in range(M, Mp):
                            f[lane * Mp + v] = 0.0
                    for lane in range(ROWS):
                        for other in range(lane + 1):
                            a = splat(0.0)
                            for v in range(Mp // LANES):
                                a = a + load(f + lane * Mp, v) * load(f + other * Mp, v) * load(weight, v)
                            value = G[lane * ROWS + other] * sample[chosen[lane]] * sample[chosen[other]] * vsum(a)
                            H[lane * ROWS + other] = H[other * ROWS + lane] = value
                    lengths(H, slope, step)
                    for lane in range(min(<Py_ssize_t>ROWS, count - at)):
                        i = chosen[lane]
                        if step[lane] > 0.0:
                            for v in range(1, M):
                                mu[i, v] = positive(mu[i, v] + step[lane] * f[lane * Mp + v])
                    for lane in range(ROWS):
                        step[lane] *= -sample[chosen[lane]]
                    update_together(&rows, chosen, theta, Mp, f, step, moved)
            if rows.start == NULL:
                tile(&Z[0, 0], rows.d, Mp, theta, True)
    finally:
        free(order)
        free(moved)
        free(work)
        if rows.start == NULL:
            free(theta)
    return total
