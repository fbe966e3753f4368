"""Stochastic subgradient passes for every compiled surrogate, without the GIL: SGD and PEGASOS, AdaGrad and Adam, and averaged gradients.

minimise  lambda/2 |theta|^2 + 1/n sum_i s_i w_i S(f_i / w_i, y_i),  f_i = J_i theta,  n = sum_i s_i

Three kinds of parameters behind the same two operations, scores f_i = J_i theta and theta += a J_i' r:

    linear      theta (d, kp), f = theta' x                                  rows dense or CSR
    threshold   theta = (w, eta) of length d + k - 1, f_j = j w.x + sum over l >= j of eta_l, eta without penalty
    kernel      theta (n, kp) coefficients, f = K_i theta                    rows are those of K

The linear and threshold passes also take an L1 penalty sum_j tolerance_j |theta_j| (moments in a box): every step then ends with its proximal
map, the soft threshold.

A row drawn uniformly stands for all rows: its subgradient is multiplied by s_i (rows)/n. Every pass also averages the oracle's answers r_i of
each example: the averages lie in conv R(y_i), so they are a dual point, and its certificate judges the fit.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport malloc, free

from adv_simd cimport load, store, splat, LANES
from adv_family cimport Family
from adv_bind cimport family_free
from adv_check cimport INT_MAX, check_labels, check_positions, check_rows, check_weights, demand
from adv_linear cimport Rows, rows_of, row_add, row_scores, row_update
from adv_loop cimport bind, checked_width
include "width.pxi"

cdef enum:
    LINEAR = 0
    THRESHOLD = 1
    KERNEL = 2

cdef enum:      # what `Sgd.state` holds
    SCALE = 0   # theta = scale u over the penalised parameters
    NORM = 1    # |u|^2 over them
    STEPS = 2   # steps made
    WEIGHT = 3  # sum of the averaging weights times scale
    TOTAL = 4   # sum of the averaging weights

UNFIT = "arrays of the pass do not fit theta and the rows"

cdef struct Model:
    int kind
    Rows rows
    Family family
    Py_ssize_t size           # numbers in theta
    Py_ssize_t penalised      # the first so many of them carry lambda
    const Py_ssize_t *y
    const double *square      # |x_i|^2, or K_ii
    const double *sample      # s_i or NULL
    const double *cost        # w_i or NULL
    double mass               # n of the objective
    const double *tolerance   # weights of the L1 penalty over all of theta, which then carries lambda throughout, or NULL
    const Py_ssize_t *order   # (count,) rows of the pass
    Py_ssize_t count
    Py_ssize_t batch
    int *moved


cdef inline double weight_of(const Model *m, Py_ssize_t i) noexcept nogil:
    """The factor on the subgradient of a row that was drawn uniformly."""
    return (1.0 if m.sample == NULL else m.sample[i]) * m.rows.n / m.mass


cdef inline void scores(Model *m, Py_ssize_t i, const double *theta, double scale, double *f) noexcept nogil:
    """f = scores of row i in units of its cost weight, where the penalised parameters are scale times those given."""
    cdef int j, k = m.family.k, kp = m.family.kp
    cdef Py_ssize_t e
    cdef double inner = 0.0, tail = 0.0, unit = 1.0 if m.cost == NULL else 1.0 / m.cost[i]
    if m.kind == THRESHOLD:
        if m.rows.start == NULL:
            x = m.rows.values + i * m.rows.d
            for j in range(m.rows.d):
                inner += x[j] * theta[j]
        else:
            for e in range(m.rows.start[i], m.rows.start[i + 1]):
                inner += m.rows.values[e] * theta[m.rows.columns[e]]
        inner *= scale
        for j in range(k - 1, -1, -1):
            if j < k - 1:
                tail += theta[m.rows.d + j]
            f[j] = unit * ((j + 1) * inner + tail)
        for j in range(k, kp):
            f[j] = 0.0
        return
    row_scores(&m.rows, i, theta, kp, f)
    for j in range(kp // LANES):
        store(f, j, load(f, j) * splat(scale * unit))


cdef inline void add_penalised(Model *m, Py_ssize_t i, const double *r, double a, double *theta) noexcept nogil:
    """theta += a J_i' r over the penalised parameters."""
    cdef int j, v, kp = m.family.kp
    cdef double slope = 0.0
    if m.kind == LINEAR:
        row_update(&m.rows, i, theta, kp, r, a, m.moved)
    elif m.kind == KERNEL:
        row = theta + i * kp
        for v in range(kp // LANES):
            store(row, v, load(row, v) + splat(a) * load(r, v))
    else:
        for j in range(m.family.k):
            slope += (j + 1) * r[j]
        row_add(&m.rows, i, slope * a, theta)


cdef inline void add(Model *m, Py_ssize_t i, const double *r, double a, double *theta) noexcept nogil:
    """theta += a J_i' r."""
    cdef int j
    cdef double total = 0.0
    add_penalised(m, i, r, a, theta)
    if m.kind == THRESHOLD:
        for j in range(m.family.k - 1):
            total += r[j]
            theta[m.rows.d + j] += a * total


cdef inline void remember(Model *m, Py_ssize_t i, const double *r, double *R, int *counts, double late) noexcept nogil:
    """Average the answers of row i: all alike (late = 0), or the t-th with weight t (late = 1)."""
    cdef int v, kp = m.family.kp
    cdef double share
    cdef double *mean = R + i * kp
    if counts[i] < INT_MAX:
        counts[i] += 1
    share = (1.0 + late) / (counts[i] + late)
    for v in range(kp // LANES):
        store(mean, v, load(mean, v) + splat(share) * (load(r, v) - load(mean, v)))


cdef void rebase(Model *m, double *u, double *average, double *state) noexcept nogil:
    """Take the scale into u, so that no sum over many steps loses its digits."""
    cdef Py_ssize_t e
    for e in range(m.penalised):
        average[e] -= state[WEIGHT] * u[e]
        u[e] *= state[SCALE]
    state[NORM] *= state[SCALE] * state[SCALE]
    state[SCALE] = 1.0
    state[WEIGHT] = 0.0


cdef void sgd_pass(Model *m, double *u, double *average, double *squares, double *R, int *counts, double *state, double lam, double radius,
                   double unit, int late) noexcept nogil:
    cdef Family *s = &m.family
    f, r = s.work + 8 * s.kp, s.work + 9 * s.kp
    cdef Py_ssize_t b, i, e
    cdef int j, k = s.k
    cdef double c, t, a, weight, inner, square, total, norm, w
    for b in range(m.count):
        i = m.order[b]
        weight = weight_of(m, i)
        if state[SCALE] < 1e-3:
            rebase(m, u, average, state)
        scores(m, i, u, state[SCALE], f)
        s.oracle(s, f, m.y[i], r, &c)
        remember(m, i, r, R, counts, 0.0)
        state[STEPS] += 1.0
        t = state[STEPS]
        inner = 0.0
        if radius > 0.0 and t > 1.0:  # <u, J_i' r>, before u shrinks
            for j in range(k):
                inner += f[j] * r[j]
            inner *= (1.0 if m.cost == NULL else m.cost[i]) / state[SCALE]
        if t == 1.0:  # the factor 1 - 1/t of the first step forgets the start
            for e in range(m.penalised):
                u[e] = 0.0
            state[SCALE] = 1.0
            state[NORM] = 0.0
        else:
            state[SCALE] *= 1.0 - 1.0 / t
        a = -weight / (lam * t * state[SCALE])
        if a != 0.0:
            add_penalised(m, i, r, a, u)
            if late >= 0:
                add_penalised(m, i, r, a * state[WEIGHT], average)
        if radius > 0.0:
            square = 0.0
            for j in range(k):
                square += r[j] * r[j]
            state[NORM] += 2.0 * a * inner + a * a * square * m.square[i]
            norm = state[SCALE] * sqrt(state[NORM] if state[NORM] > 0.0 else 0.0)
            if norm > radius:
                state[SCALE] *= radius / norm
        if m.kind == THRESHOLD:  # thresholds have no lambda: AdaGrad's steps, the first of one unit of the loss
            total = 0.0
            for j in range(k - 1):
                total += weight * r[j]
                if total != 0.0:
                    squares[j] += total * total
                    u[m.rows.d + j] -= unit * total / sqrt(squares[j])
        if late >= 0:
            w = t if late else 1.0
            state[WEIGHT] += w * state[SCALE]
            state[TOTAL] += w
            if m.kind == THRESHOLD:
                for j in range(k - 1):
                    average[m.rows.d + j] += w * u[m.rows.d + j]


cdef inline double soft(double value, double width) noexcept nogil:
    """The proximal map of width |.|."""
    return (value - width if value > width else 0.0) + (value + width if value < -width else 0.0)


cdef inline void shrink(const Model *m, double *theta, double step) noexcept nogil:
    """theta_j to the minimum of step tolerance_j |.| plus half the squared distance."""
    cdef Py_ssize_t j
    if m.tolerance != NULL:
        for j in range(m.size):
            theta[j] = soft(theta[j], step * m.tolerance[j])


cdef void averaging_pass(Model *m, double *theta, double *total, double *average, double *R, int *counts, double *state, double lam,
                         double strength, int late) noexcept nogil:
    """Regularised dual averaging: after t rows theta = -soft(total/t, tolerance) / (lambda + strength/sqrt(t)), total = sum J_i' r_i."""
    cdef Family *s = &m.family
    f, r = s.work + 8 * s.kp, s.work + 9 * s.kp
    cdef Py_ssize_t b = 0, i, j, stop
    cdef double c, w, share, slope
    while b < m.count:
        stop = min(b + m.batch, m.count)
        while b < stop:
            i = m.order[b]
            scores(m, i, theta, 1.0, f)
            s.oracle(s, f, m.y[i], r, &c)
            remember(m, i, r, R, counts, 0.0)
            add(m, i, r, weight_of(m, i), total)
            state[STEPS] += 1.0
            b += 1
        share = 1.0 / state[STEPS]
        slope = -1.0 / (lam + strength * sqrt(share))
        for j in range(m.size):
            theta[j] = slope * soft(share * total[j], m.tolerance[j])
        if late >= 0:
            w = state[STEPS] if late else 1.0
            state[TOTAL] += w
            w /= state[TOTAL]
            for j in range(m.size):
                average[j] += w * (theta[j] - average[j])


cdef double adaptive_pass(Model *m, double *theta, double *gradient, double *first, double *second, double *R, int *counts, double steps,
                          double lam, double step, double beta1, double beta2) noexcept nogil:
    """AdaGrad (beta1 = beta2 = 0) or Adam in mini-batches; return the steps made in all."""
    cdef Family *s = &m.family
    f, r = s.work + 8 * s.kp, s.work + 9 * s.kp
    cdef Py_ssize_t b = 0, i, j, stop
    cdef double c, g, scale, mean, spread, size
    while b < m.count:
        stop = min(b + m.batch, m.count)
        for j in range(m.size):
            gradient[j] = lam * theta[j] if j < m.penalised else 0.0
        scale = 1.0 / (stop - b)
        while b < stop:
            i = m.order[b]
            scores(m, i, theta, 1.0, f)
            s.oracle(s, f, m.y[i], r, &c)
            remember(m, i, r, R, counts, 1.0)
            add(m, i, r, scale * weight_of(m, i), gradient)
            b += 1
        steps += 1.0
        if beta2 == 0.0:
            for j in range(m.size):
                g = gradient[j]
                second[j] += g * g
                if m.tolerance != NULL and second[j] > 0.0:
                    size = step / sqrt(second[j])
                    theta[j] = soft(theta[j] - size * g, size * m.tolerance[j])
                elif second[j] > 0.0:  # 0 where g is, or where its square is below the smallest number
                    theta[j] -= step * g / sqrt(second[j])
        else:
            mean = 1.0 / (1.0 - beta1 ** steps)
            spread = 1.0 / (1.0 - beta2 ** steps)
            for j in range(m.size):
                g = gradient[j]
                first[j] += (1.0 - beta1) * (g - first[j])
                second[j] += (1.0 - beta2) * (g * g - second[j])
                size = step / (sqrt(spread * second[j]) + 1e-8)
                theta[j] -= size * mean * first[j]
                if m.tolerance != NULL:
                    theta[j] = soft(theta[j], size * m.tolerance[j])
    return steps


cdef void gradient_pass(Model *m, double *theta, double *total, double *R, const double *centre, double lam, double smoothing,
                        double step) noexcept nogil:
    """SAG on the smoothed surrogate: the sum of the examples' last gradients, of which each step renews those of a batch."""
    cdef Family *s = &m.family
    cdef int v, kp = s.kp
    f, new = s.work + 8 * kp, s.work + 9 * kp
    cdef Py_ssize_t b = 0, i, j, stop
    cdef double weight
    while b < m.count:
        stop = min(b + m.batch, m.count)
        while b < stop:
            i = m.order[b]
            b += 1
            weight = 1.0 if m.sample == NULL else m.sample[i]
            if weight == 0.0:
                continue
            scores(m, i, theta, 1.0, f)
            s.step(s, f, centre + i * kp, m.y[i], smoothing, -INFINITY, new, NULL, NULL)
            r = R + i * kp
            for v in range(kp // LANES):
                store(f, v, load(new, v) - load(r, v))
                store(r, v, load(new, v))
            add(m, i, f, weight, total)
        for j in range(m.size):
            theta[j] -= step * (total[j] / m.mass + (lam * theta[j] if j < m.penalised else 0.0))
        shrink(m, theta, step)


cdef int model_new(Model *m, int kind, int k, const double[::1] parameters, int shape, const double[::1] values, const int[::1] columns,
                   const long long[::1] start, Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square,
                   const double[::1] sample_weight, const double[::1] cost_weight, double mass, const Py_ssize_t[::1] order,
                   Py_ssize_t batch, const double[:, ::1] R, Py_ssize_t size, const double[::1] tolerance) except -1:
    """Bind a pass to its arrays; what all passes have in common is checked here. ``tolerance`` is empty without an L1 penalty."""
    cdef Py_ssize_t expected
    cdef int kp = checked_width(k)
    check_rows(values, columns, start, n, d)
    check_labels(y, n, k)
    check_positions(order, n, "the order of the rows")
    check_weights(sample_weight, n)
    check_weights(cost_weight, n)
    demand(square.shape[0] == n, "every row needs a squared length")
    demand(R.shape[0] == n and R.shape[1] == kp, "dual points must be (n, kp), padded")
    demand(LINEAR <= shape <= KERNEL, "there is no such kind of parameters")
    demand(shape != KERNEL or d == n, "a kernel matrix must be square")
    expected = <Py_ssize_t>d + k - 1 if shape == THRESHOLD else <Py_ssize_t>d * kp
    if size != expected:
        raise ValueError(f"theta must hold {expected} numbers, padded, not {size}")
    demand(tolerance.shape[0] == 0 or tolerance.shape[0] == size, "the weights of the penalty do not fit theta")
    demand(batch > 0, "a batch must hold a row")
    bind(&m.family, kind, k, parameters)
    m.kind = shape
    m.rows = rows_of(values, columns, start, n, d)
    m.size = size
    m.penalised = d if shape == THRESHOLD and tolerance.shape[0] == 0 else size
    m.y = &y[0]
    m.square = &square[0]
    m.sample = &sample_weight[0] if sample_weight.shape[0] else NULL
    m.cost = &cost_weight[0] if cost_weight.shape[0] else NULL
    m.mass = mass
    m.tolerance = &tolerance[0] if tolerance.shape[0] else NULL
    m.order, m.count = &order[0], order.shape[0]
    m.batch = min(batch, m.count + 1)  # so that no sum of positions leaves its range
    m.moved = <int *>malloc(m.family.kp * sizeof(int))
    if m.moved == NULL:
        family_free(&m.family)
        raise MemoryError("no memory for the surrogate's scratch vectors")
    return 0


cdef void model_free(Model *m) noexcept:
    free(m.moved)
    family_free(&m.family)


def sgd(int kind, int k, const double[::1] parameters, int shape, const double[::1] values, const int[::1] columns, const long long[::1] start,
        Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square, const double[::1] sample_weight, const double[::1] cost_weight,
        double mass, const Py_ssize_t[::1] order, double[::1] u, double[::1] average, double[::1] squares, double[:, ::1] R, int[::1] counts,
        double[::1] state, double lam, double radius, double unit, int late):
    """Make one step of size 1/(lambda t) for every row listed in ``order``, in place.

    theta = state[0] u over the penalised parameters and u itself over the free ones. The average of the iterates after each step is
    (state[3] u - average)/state[4] over the former and average/state[4] over the latter; its weights are 1 (``late`` 0) or t (1), and
    -1 leaves it out. ``squares`` (k,) are AdaGrad's sums for the free parameters; ``radius`` > 0 projects onto that ball after each step
    (no free parameters then).
    R (n, kp) and ``counts`` (n,) hold the mean of each row's answers.
    """
    cdef Model m
    model_new(&m, kind, k, parameters, shape, values, columns, start, n, d, y, square, sample_weight, cost_weight, mass, order, 1, R, u.shape[0],
              parameters[:0])
    try:
        demand(average.shape[0] == m.size and counts.shape[0] == n and squares.shape[0] >= k and state.shape[0] >= 5, UNFIT)
        with nogil:
            sgd_pass(&m, &u[0], &average[0], &squares[0], &R[0, 0], &counts[0], &state[0], lam, radius, unit, late)
    finally:
        model_free(&m)


def adaptive(int kind, int k, const double[::1] parameters, int shape, const double[::1] values, const int[::1] columns,
             const long long[::1] start, Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square,
             const double[::1] sample_weight, const double[::1] cost_weight, double mass, const Py_ssize_t[::1] order, Py_ssize_t batch,
             double[::1] theta, double[::1] gradient, double[::1] first, double[::1] second, double[:, ::1] R, int[::1] counts, double steps,
             double lam, double step, double beta1, double beta2, const double[::1] tolerance):
    """Make AdaGrad's (beta2 = 0) or Adam's steps over the rows of ``order`` in batches, in place; return the steps made in all.

    ``tolerance`` holds the weights of an L1 penalty or is empty. ``gradient`` is scratch, ``first`` and ``second`` the moments; R (n, kp) and ``counts`` the mean of each row's answers, later ones heavier.
    """
    cdef Model m
    model_new(&m, kind, k, parameters, shape, values, columns, start, n, d, y, square, sample_weight, cost_weight, mass, order, batch, R,
              theta.shape[0], tolerance)
    try:
        demand(steps >= 0.0 and 0.0 <= beta1 < 1.0 and 0.0 <= beta2 < 1.0, "beta1 and beta2 must lie in [0, 1), steps must be counted from 0")
        demand(gradient.shape[0] == m.size and first.shape[0] == m.size and second.shape[0] == m.size and counts.shape[0] == n, UNFIT)
        with nogil:
            steps = adaptive_pass(&m, &theta[0], &gradient[0], &first[0], &second[0], &R[0, 0], &counts[0], steps, lam, step,
                                  beta1, beta2)
    finally:
        model_free(&m)
    return steps


def dual_averaging(int kind, int k, const double[::1] parameters, int shape, const double[::1] values, const int[::1] columns,
                   const long long[::1] start, Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square,
                   const double[::1] sample_weight, const double[::1] cost_weight, double mass, const Py_ssize_t[::1] order, Py_ssize_t batch,
                   double[::1] theta, double[::1] total, double[::1] average, double[:, ::1] R, int[::1] counts, double[::1] state, double lam,
                   double strength, int late, const double[::1] tolerance):
    """Make the steps of regularised dual averaging over the rows of ``order`` in batches, in place (Xiao 2010).

    ``total`` is the sum of the subgradients of all rows seen, state[2] their number; ``average`` that of the iterates with weights 1
    (``late`` 0) or t (1), or left alone (-1); state[4] the sum of its weights. ``tolerance`` holds the weights of the L1 penalty. R (n, kp) and
    ``counts`` (n,) hold the mean of each row's answers.
    """
    cdef Model m
    model_new(&m, kind, k, parameters, shape, values, columns, start, n, d, y, square, sample_weight, cost_weight, mass, order, batch, R,
              theta.shape[0], tolerance)
    try:
        demand(tolerance.shape[0] == m.size and total.shape[0] == m.size and average.shape[0] == m.size and counts.shape[0] == n
               and state.shape[0] >= 5, UNFIT)
        with nogil:
            averaging_pass(&m, &theta[0], &total[0], &average[0], &R[0, 0], &counts[0], &state[0], lam, strength, late)
    finally:
        model_free(&m)


def averaged_gradient(int kind, int k, const double[::1] parameters, int shape, const double[::1] values, const int[::1] columns,
                      const long long[::1] start, Py_ssize_t n, int d, const Py_ssize_t[::1] y, const double[::1] square,
                      const double[::1] sample_weight, const double[::1] cost_weight, double mass, const Py_ssize_t[::1] order, Py_ssize_t batch,
                      double[::1] theta, double[::1] total, double[:, ::1] R, const double[:, ::1] centre, double lam, double smoothing,
                      double step, const double[::1] tolerance):
    """Make SAG's steps over the rows of ``order`` in batches, in place: theta -= step (total/n + lambda theta), total = sum_i s_i J_i' R_i.

    R_i is renewed as argmax over r of c(r) + f_i.r/w_i - smoothing/2 |r - centre_i|^2. ``tolerance`` holds the weights of an L1 penalty or is
    empty.
    """
    cdef Model m
    model_new(&m, kind, k, parameters, shape, values, columns, start, n, d, y, square, sample_weight, cost_weight, mass, order, batch, R,
              theta.shape[0], tolerance)
    try:
        demand(total.shape[0] == m.size and centre.shape[0] == n and centre.shape[1] == m.family.kp, UNFIT)
        with nogil:
            gradient_pass(&m, &theta[0], &total[0], &R[0, 0], &centre[0, 0], lam, smoothing, step)
    finally:
        model_free(&m)
