# Linear scores and their rank-one updates; Theta is stored d x kp (measured: sparse scores 4 times faster than k x d).

from adv_simd cimport vec, load, store, splat, LANES, prefetch


cdef inline void dense_scores(const double *x, int d, const double *theta, int kp, double *f) noexcept nogil:
    """f = Theta' x. Eight accumulators in flight hide the latency of a multiply-add, whatever kp is."""
    cdef int j, v = 0, nv = kp // LANES
    cdef const double *t
    cdef vec a0, a1, a2, a3, b0, b1, b2, b3, x0, x1, x2, x3
    while v + 4 <= nv:
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
        t = theta
        for j in range(d // 2):
            x0 = splat(x[2 * j])
            x1 = splat(x[2 * j + 1])
            a0 = a0 + x0 * load(t, v)
            a1 = a1 + x0 * load(t, v + 1)
            a2 = a2 + x0 * load(t, v + 2)
            a3 = a3 + x0 * load(t, v + 3)
            b0 = b0 + x1 * load(t + kp, v)
            b1 = b1 + x1 * load(t + kp, v + 1)
            b2 = b2 + x1 * load(t + kp, v + 2)
            b3 = b3 + x1 * load(t + kp, v + 3)
            t += 2 * kp
        if d % 2:
            x0 = splat(x[d - 1])
            a0 = a0 + x0 * load(t, v)
            a1 = a1 + x0 * load(t, v + 1)
            a2 = a2 + x0 * load(t, v + 2)
            a3 = a3 + x0 * load(t, v + 3)
        store(f, v, a0 + b0)
        store(f, v + 1, a1 + b1)
        store(f, v + 2, a2 + b2)
        store(f, v + 3, a3 + b3)
        v += 4
    if nv - v == 3:
        a0 = a1 = a2 = b0 = b1 = b2 = splat(0.0)
        t = theta
        for j in range(d // 2):
            x0 = splat(x[2 * j])
            x1 = splat(x[2 * j + 1])
            a0 = a0 + x0 * load(t, v)
            a1 = a1 + x0 * load(t, v + 1)
            a2 = a2 + x0 * load(t, v + 2)
            b0 = b0 + x1 * load(t + kp, v)
            b1 = b1 + x1 * load(t + kp, v + 1)
            b2 = b2 + x1 * load(t + kp, v + 2)
            t += 2 * kp
        if d % 2:
            x0 = splat(x[d - 1])
            a0 = a0 + x0 * load(t, v)
            a1 = a1 + x0 * load(t, v + 1)
            a2 = a2 + x0 * load(t, v + 2)
        store(f, v, a0 + b0)
        store(f, v + 1, a1 + b1)
        store(f, v + 2, a2 + b2)
        v += 3
    while v + 2 <= nv:
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
        t = theta
        for j in range(d // 4):
            x0 = splat(x[4 * j])
            x1 = splat(x[4 * j + 1])
            x2 = splat(x[4 * j + 2])
            x3 = splat(x[4 * j + 3])
            a0 = a0 + x0 * load(t, v)
            b0 = b0 + x0 * load(t, v + 1)
            a1 = a1 + x1 * load(t + kp, v)
            b1 = b1 + x1 * load(t + kp, v + 1)
            a2 = a2 + x2 * load(t + 2 * kp, v)
            b2 = b2 + x2 * load(t + 2 * kp, v + 1)
            a3 = a3 + x3 * load(t + 3 * kp, v)
            b3 = b3 + x3 * load(t + 3 * kp, v + 1)
            t += 4 * kp
        j = d - d % 4
        if d & 2:
            x0 = splat(x[j])
            x1 = splat(x[j + 1])
            a0 = a0 + x0 * load(t, v)
            b0 = b0 + x0 * load(t, v + 1)
            a1 = a1 + x1 * load(t + kp, v)
            b1 = b1 + x1 * load(t + kp, v + 1)
            t += 2 * kp
            j += 2
        if d & 1:
            x2 = splat(x[j])
            a2 = a2 + x2 * load(t, v)
            b2 = b2 + x2 * load(t, v + 1)
        store(f, v, (a0 + a1) + (a2 + a3))
        store(f, v + 1, (b0 + b1) + (b2 + b3))
        v += 2
    if v < nv:
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
        t = theta
        for j in range(d // 8):
            a0 = a0 + splat(x[8 * j]) * load(t, v)
            a1 = a1 + splat(x[8 * j + 1]) * load(t + kp, v)
            a2 = a2 + splat(x[8 * j + 2]) * load(t + 2 * kp, v)
            a3 = a3 + splat(x[8 * j + 3]) * load(t + 3 * kp, v)
            b0 = b0 + splat(x[8 * j + 4]) * load(t + 4 * kp, v)
            b1 = b1 + splat(x[8 * j + 5]) * load(t + 5 * kp, v)
            b2 = b2 + splat(x[8 * j + 6]) * load(t + 6 * kp, v)
            b3 = b3 + splat(x[8 * j + 7]) * load(t + 7 * kp, v)
            t += 8 * kp
        j = d - d % 8
        # the rest without a chain of additions, which would take as long as all rows of eight before
        if d & 4:
            a0 = a0 + splat(x[j]) * load(t, v)
            a1 = a1 + splat(x[j + 1]) * load(t + kp, v)
            a2 = a2 + splat(x[j + 2]) * load(t + 2 * kp, v)
            a3 = a3 + splat(x[j + 3]) * load(t + 3 * kp, v)
            t += 4 * kp
            j += 4
        if d & 2:
            b0 = b0 + splat(x[j]) * load(t, v)
            b1 = b1 + splat(x[j + 1]) * load(t + kp, v)
            t += 2 * kp
            j += 2
        if d & 1:
            b2 = b2 + splat(x[j]) * load(t, v)
        store(f, v, ((a0 + a1) + (a2 + a3)) + ((b0 + b1) + (b2 + b3)))


cdef inline void dense_update(const double *x, int d, double *theta, int kp, const double *dr, double scale) noexcept nogil:
    """Theta += scale x dr'."""
    cdef int j, v = 0, nv = kp // LANES
    cdef double *t
    cdef vec d0, d1, d2, d3, xj, step = splat(scale)
    while v + 4 <= nv:
        d0, d1, d2, d3 = load(dr, v) * step, load(dr, v + 1) * step, load(dr, v + 2) * step, load(dr, v + 3) * step
        t = theta
        for j in range(d):
            xj = splat(x[j])
            store(t, v, load(t, v) + xj * d0)
            store(t, v + 1, load(t, v + 1) + xj * d1)
            store(t, v + 2, load(t, v + 2) + xj * d2)
            store(t, v + 3, load(t, v + 3) + xj * d3)
            t += kp
        v += 4
    if nv - v == 3:
        d0, d1, d2 = load(dr, v) * step, load(dr, v + 1) * step, load(dr, v + 2) * step
        t = theta
        for j in range(d):
            xj = splat(x[j])
            store(t, v, load(t, v) + xj * d0)
            store(t, v + 1, load(t, v + 1) + xj * d1)
            store(t, v + 2, load(t, v + 2) + xj * d2)
            t += kp
        v += 3
    while v + 2 <= nv:
        d0, d1 = load(dr, v) * step, load(dr, v + 1) * step
        t = theta
        for j in range(d):
            xj = splat(x[j])
            store(t, v, load(t, v) + xj * d0)
            store(t, v + 1, load(t, v + 1) + xj * d1)
            t += kp
        v += 2
    while v < nv:
        d0 = load(dr, v) * step
        t = theta
        for j in range(d):
            store(t, v, load(t, v) + splat(x[j]) * d0)
            t += kp
        v += 1


cdef inline vec stepped(double *t, int v, vec x, vec d) noexcept nogil:
    """t_v += x d; return it."""
    cdef vec moved = load(t, v) + x * d
    store(t, v, moved)
    return moved


cdef inline void dense_update_scores(const double *x, int d, double *theta, int kp, const double *dr, double scale, const double *z, double *f) noexcept nogil:
    """Theta += scale x dr', then f = Theta' z, to the bits of `dense_update` and `dense_scores`: Theta is read once, while it waits for its stores."""
    cdef int j, v = 0, nv = kp // LANES
    cdef double *t
    cdef vec a0, a1, a2, a3, b0, b1, b2, b3, d0, d1, d2, d3, x0, z0, step = splat(scale)
    while v + 4 <= nv:
        d0, d1, d2, d3 = load(dr, v) * step, load(dr, v + 1) * step, load(dr, v + 2) * step, load(dr, v + 3) * step
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
        t = theta
        for j in range(d // 2):
            x0, z0 = splat(x[2 * j]), splat(z[2 * j])
            a0 = a0 + z0 * stepped(t, v, x0, d0)
            a1 = a1 + z0 * stepped(t, v + 1, x0, d1)
            a2 = a2 + z0 * stepped(t, v + 2, x0, d2)
            a3 = a3 + z0 * stepped(t, v + 3, x0, d3)
            x0, z0 = splat(x[2 * j + 1]), splat(z[2 * j + 1])
            b0 = b0 + z0 * stepped(t + kp, v, x0, d0)
            b1 = b1 + z0 * stepped(t + kp, v + 1, x0, d1)
            b2 = b2 + z0 * stepped(t + kp, v + 2, x0, d2)
            b3 = b3 + z0 * stepped(t + kp, v + 3, x0, d3)
            t += 2 * kp
        if d % 2:
            x0, z0 = splat(x[d - 1]), splat(z[d - 1])
            a0 = a0 + z0 * stepped(t, v, x0, d0)
            a1 = a1 + z0 * stepped(t, v + 1, x0, d1)
            a2 = a2 + z0 * stepped(t, v + 2, x0, d2)
            a3 = a3 + z0 * stepped(t, v + 3, x0, d3)
        store(f, v, a0 + b0)
        store(f, v + 1, a1 + b1)
        store(f, v + 2, a2 + b2)
        store(f, v + 3, a3 + b3)
        v += 4
    if nv - v == 3:
        d0, d1, d2 = load(dr, v) * step, load(dr, v + 1) * step, load(dr, v + 2) * step
        a0 = a1 = a2 = b0 = b1 = b2 = splat(0.0)
        t = theta
        for j in range(d // 2):
            x0, z0 = splat(x[2 * j]), splat(z[2 * j])
            a0 = a0 + z0 * stepped(t, v, x0, d0)
            a1 = a1 + z0 * stepped(t, v + 1, x0, d1)
            a2 = a2 + z0 * stepped(t, v + 2, x0, d2)
            x0, z0 = splat(x[2 * j + 1]), splat(z[2 * j + 1])
            b0 = b0 + z0 * stepped(t + kp, v, x0, d0)
            b1 = b1 + z0 * stepped(t + kp, v + 1, x0, d1)
            b2 = b2 + z0 * stepped(t + kp, v + 2, x0, d2)
            t += 2 * kp
        if d % 2:
            x0, z0 = splat(x[d - 1]), splat(z[d - 1])
            a0 = a0 + z0 * stepped(t, v, x0, d0)
            a1 = a1 + z0 * stepped(t, v + 1, x0, d1)
            a2 = a2 + z0 * stepped(t, v + 2, x0, d2)
        store(f, v, a0 + b0)
        store(f, v + 1, a1 + b1)
        store(f, v + 2, a2 + b2)
        v += 3
    while v + 2 <= nv:
        d0, d1 = load(dr, v) * step, load(dr, v + 1) * step
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
        t = theta
        for j in range(d // 4):
            x0, z0 = splat(x[4 * j]), splat(z[4 * j])
            a0 = a0 + z0 * stepped(t, v, x0, d0)
            b0 = b0 + z0 * stepped(t, v + 1, x0, d1)
            x0, z0 = splat(x[4 * j + 1]), splat(z[4 * j + 1])
            a1 = a1 + z0 * stepped(t + kp, v, x0, d0)
            b1 = b1 + z0 * stepped(t + kp, v + 1, x0, d1)
            x0, z0 = splat(x[4 * j + 2]), splat(z[4 * j + 2])
            a2 = a2 + z0 * stepped(t + 2 * kp, v, x0, d0)
            b2 = b2 + z0 * stepped(t + 2 * kp, v + 1, x0, d1)
            x0, z0 = splat(x[4 * j + 3]), splat(z[4 * j + 3])
            a3 = a3 + z0 * stepped(t + 3 * kp, v, x0, d0)
            b3 = b3 + z0 * stepped(t + 3 * kp, v + 1, x0, d1)
            t += 4 * kp
        j = d - d % 4
        if d & 2:
            x0, z0 = splat(x[j]), splat(z[j])
            a0 = a0 + z0 * stepped(t, v, x0, d0)
            b0 = b0 + z0 * stepped(t, v + 1, x0, d1)
            x0, z0 = splat(x[j + 1]), splat(z[j + 1])
            a1 = a1 + z0 * stepped(t + kp, v, x0, d0)
            b1 = b1 + z0 * stepped(t + kp, v + 1, x0, d1)
            t += 2 * kp
            j += 2
        if d & 1:
            x0, z0 = splat(x[j]), splat(z[j])
            a2 = a2 + z0 * stepped(t, v, x0, d0)
            b2 = b2 + z0 * stepped(t, v + 1, x0, d1)
        store(f, v, (a0 + a1) + (a2 + a3))
        store(f, v + 1, (b0 + b1) + (b2 + b3))
        v += 2
    if v < nv:
        d0 = load(dr, v) * step
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
        t = theta
        for j in range(d // 8):
            a0 = a0 + splat(z[8 * j]) * stepped(t, v, splat(x[8 * j]), d0)
            a1 = a1 + splat(z[8 * j + 1]) * stepped(t + kp, v, splat(x[8 * j + 1]), d0)
            a2 = a2 + splat(z[8 * j + 2]) * stepped(t + 2 * kp, v, splat(x[8 * j + 2]), d0)
            a3 = a3 + splat(z[8 * j + 3]) * stepped(t + 3 * kp, v, splat(x[8 * j + 3]), d0)
            b0 = b0 + splat(z[8 * j + 4]) * stepped(t + 4 * kp, v, splat(x[8 * j + 4]), d0)
            b1 = b1 + splat(z[8 * j + 5]) * stepped(t + 5 * kp, v, splat(x[8 * j + 5]), d0)
            b2 = b2 + splat(z[8 * j + 6]) * stepped(t + 6 * kp, v, splat(x[8 * j + 6]), d0)
            b3 = b3 + splat(z[8 * j + 7]) * stepped(t + 7 * kp, v, splat(x[8 * j + 7]), d0)
            t += 8 * kp
        j = d - d % 8
        if d & 4:
            a0 = a0 + splat(z[j]) * stepped(t, v, splat(x[j]), d0)
            a1 = a1 + splat(z[j + 1]) * stepped(t + kp, v, splat(x[j + 1]), d0)
            a2 = a2 + splat(z[j + 2]) * stepped(t + 2 * kp, v, splat(x[j + 2]), d0)
            a3 = a3 + splat(z[j + 3]) * stepped(t + 3 * kp, v, splat(x[j + 3]), d0)
            t += 4 * kp
            j += 4
        if d & 2:
            b0 = b0 + splat(z[j]) * stepped(t, v, splat(x[j]), d0)
            b1 = b1 + splat(z[j + 1]) * stepped(t + kp, v, splat(x[j + 1]), d0)
            t += 2 * kp
            j += 2
        if d & 1:
            b2 = b2 + splat(z[j]) * stepped(t, v, splat(x[j]), d0)
        store(f, v, ((a0 + a1) + (a2 + a3)) + ((b0 + b1) + (b2 + b3)))


cdef inline void sparse_scores(const double *x, const int *columns, Py_ssize_t count, const double *theta, int kp, double *f) noexcept nogil:
    """f = Theta' x for a sparse row."""
    cdef int v = 0, nv = kp // LANES
    cdef Py_ssize_t e
    cdef const double *t
    cdef vec a0, a1, a2, a3, xe
    while v + 4 <= nv:
        a0 = a1 = a2 = a3 = splat(0.0)
        for e in range(count):
            t = theta + <Py_ssize_t>columns[e] * kp
            xe = splat(x[e])
            a0 = a0 + xe * load(t, v)
            a1 = a1 + xe * load(t, v + 1)
            a2 = a2 + xe * load(t, v + 2)
            a3 = a3 + xe * load(t, v + 3)
        store(f, v, a0)
        store(f, v + 1, a1)
        store(f, v + 2, a2)
        store(f, v + 3, a3)
        v += 4
    while v < nv:
        a0 = splat(0.0)
        for e in range(count):
            a0 = a0 + splat(x[e]) * load(theta + <Py_ssize_t>columns[e] * kp, v)
        store(f, v, a0)
        v += 1


cdef inline void sparse_update(const double *x, const int *columns, Py_ssize_t count, double *theta, int kp, const double *dr, double scale,
                               int *moved) noexcept nogil:
    """Theta += scale x dr' for a sparse row; where few coordinates of dr moved, only those are touched. ``moved`` is scratch of length kp."""
    cdef int v, j, m = 0, nv = kp // LANES
    cdef Py_ssize_t e
    cdef double *t
    cdef double xe
    cdef vec xv
    for j in range(kp):
        if dr[j] != 0.0:
            moved[m] = j
            m += 1
    if 4 * m < kp:
        for e in range(count):
            t = theta + <Py_ssize_t>columns[e] * kp
            xe = scale * x[e]
            for v in range(m):
                t[moved[v]] += xe * dr[moved[v]]
    else:
        for e in range(count):
            t = theta + <Py_ssize_t>columns[e] * kp
            xv = splat(scale * x[e])
            for v in range(nv):
                store(t, v, load(t, v) + xv * load(dr, v))


cdef inline void prefetch_rows(const double *theta, int kp, const int *columns, Py_ssize_t count) noexcept nogil:
    """Prefetch the rows of Theta that a sparse example will read."""
    cdef Py_ssize_t e
    cdef int j
    for e in range(count):
        for j in range(0, kp, 8):
            prefetch(theta + <Py_ssize_t>columns[e] * kp + j)


cdef struct Rows:
    Py_ssize_t n
    int d
    const double *values      # dense: (n, d) row-major; CSR: the non-zeros
    const int *columns        # CSR only
    const long long *start    # CSR only, NULL when dense


cdef inline Rows rows_of(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, int d) noexcept nogil:
    """Rows of X from what Python hands over and `check_rows` has let pass; ``columns`` and ``start`` are empty for dense rows."""
    cdef Rows rows
    rows.n, rows.d = n, d
    rows.values = &values[0] if values.shape[0] else NULL
    rows.columns = &columns[0] if columns.shape[0] else NULL
    rows.start = &start[0] if start.shape[0] else NULL
    return rows


cdef inline void row_scores(const Rows *x, Py_ssize_t i, const double *theta, int kp, double *f) noexcept nogil:
    """f = Theta' x_i."""
    if x.start == NULL:
        dense_scores(x.values + i * x.d, x.d, theta, kp, f)
    else:
        sparse_scores(x.values + x.start[i], x.columns + x.start[i], x.start[i + 1] - x.start[i], theta, kp, f)


cdef inline void row_update(const Rows *x, Py_ssize_t i, double *theta, int kp, const double *dr, double scale, int *moved) noexcept nogil:
    """Theta += scale x_i dr'; ``moved`` is scratch of length kp."""
    if x.start == NULL:
        dense_update(x.values + i * x.d, x.d, theta, kp, dr, scale)
    else:
        sparse_update(x.values + x.start[i], x.columns + x.start[i], x.start[i + 1] - x.start[i], theta, kp, dr, scale, moved)
