# Linear scores and their rank-one updates; Theta is stored d x kp (measured: sparse scores 4 times faster than k x d).

from adv_simd cimport vec, load, load_first, store, splat, vsum, LANES, prefetch


cdef enum:
    GROUP = 4    # dense rows that are visited between two products with Theta


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


cdef inline void dense_moves_scores(const double **x, int moves, int d, double *theta, int kp, const double *dr, const double **z, double *F) noexcept nogil:
    """Theta += sum_q x_q dr_q', q = 0 .. ``moves`` - 1, then F = Z Theta for GROUP rows z; dr, F (GROUP, kp). Theta is read and stored once."""
    cdef int j, v = 0, nv = kp // LANES
    cdef double *t
    cdef const double *x0 = x[0]
    cdef const double *x1 = x[1]
    cdef const double *x2 = x[2]
    cdef const double *x3 = x[3]
    cdef const double *z0 = z[0]
    cdef const double *z1 = z[1]
    cdef const double *z2 = z[2]
    cdef const double *z3 = z[3]
    cdef const double *dr1 = dr + kp
    cdef const double *dr2 = dr + 2 * kp
    cdef const double *dr3 = dr + 3 * kp
    cdef vec a0, a1, a2, a3, b0, b1, b2, b3, d0, d1, d2, d3, e0, e1, e2, e3, s, u, w
    while v + 2 <= nv:
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(0.0)
        d0, d1, d2, d3 = load(dr, v), load(dr1, v), load(dr2, v), load(dr3, v)
        e0, e1, e2, e3 = load(dr, v + 1), load(dr1, v + 1), load(dr2, v + 1), load(dr3, v + 1)
        t = theta
        for j in range(d):
            u = load(t, v)
            w = load(t, v + 1)
            if moves > 0:
                s = splat(x0[j])
                u = u + s * d0
                w = w + s * e0
                if moves > 1:
                    s = splat(x1[j])
                    u = u + s * d1
                    w = w + s * e1
                if moves > 2:
                    s = splat(x2[j])
                    u = u + s * d2
                    w = w + s * e2
                if moves > 3:
                    s = splat(x3[j])
                    u = u + s * d3
                    w = w + s * e3
                store(t, v, u)
                store(t, v + 1, w)
            s = splat(z0[j])
            a0 = a0 + s * u
            b0 = b0 + s * w
            s = splat(z1[j])
            a1 = a1 + s * u
            b1 = b1 + s * w
            s = splat(z2[j])
            a2 = a2 + s * u
            b2 = b2 + s * w
            s = splat(z3[j])
            a3 = a3 + s * u
            b3 = b3 + s * w
            t += kp
        store(F, v, a0)
        store(F, v + 1, b0)
        store(F + kp, v, a1)
        store(F + kp, v + 1, b1)
        store(F + 2 * kp, v, a2)
        store(F + 2 * kp, v + 1, b2)
        store(F + 3 * kp, v, a3)
        store(F + 3 * kp, v + 1, b3)
        v += 2
    if v < nv:
        a0 = a1 = a2 = a3 = splat(0.0)
        d0, d1, d2, d3 = load(dr, v), load(dr1, v), load(dr2, v), load(dr3, v)
        t = theta
        for j in range(d):
            u = load(t, v)
            if moves > 0:
                u = u + splat(x0[j]) * d0
                if moves > 1:
                    u = u + splat(x1[j]) * d1
                if moves > 2:
                    u = u + splat(x2[j]) * d2
                if moves > 3:
                    u = u + splat(x3[j]) * d3
                store(t, v, u)
            a0 = a0 + splat(z0[j]) * u
            a1 = a1 + splat(z1[j]) * u
            a2 = a2 + splat(z2[j]) * u
            a3 = a3 + splat(z3[j]) * u
            t += kp
        store(F, v, a0)
        store(F + kp, v, a1)
        store(F + 2 * kp, v, a2)
        store(F + 3 * kp, v, a3)


cdef inline void dense_group(const double **x, int moves, int d, double *theta, int kp, const double *dr, const double **z, double *F) noexcept nogil:
    """Do `dense_moves_scores`; the number of moves as a constant takes its branches out of the loops."""
    if moves == 0:
        dense_moves_scores(x, 0, d, theta, kp, dr, z, F)
    elif moves == 1:
        dense_moves_scores(x, 1, d, theta, kp, dr, z, F)
    elif moves == 2:
        dense_moves_scores(x, 2, d, theta, kp, dr, z, F)
    elif moves == 3:
        dense_moves_scores(x, 3, d, theta, kp, dr, z, F)
    else:
        dense_moves_scores(x, 4, d, theta, kp, dr, z, F)


cdef inline void dense_products_of(const double *x, const double **z, int count, int d, double *g) noexcept nogil:
    """g_q = x.z_q for 1 to GROUP - 1 rows z."""
    cdef int j, rest = d % LANES
    cdef vec a, b0, b1, b2
    b0 = b1 = b2 = splat(0.0)
    for j in range(d // LANES):
        a = load(x, j)
        b0 = b0 + a * load(z[0], j)
        if count > 1:
            b1 = b1 + a * load(z[1], j)
        if count > 2:
            b2 = b2 + a * load(z[2], j)
    if rest:
        j = d - rest
        a = load_first(x + j, rest)
        b0 = b0 + a * load_first(z[0] + j, rest)
        if count > 1:
            b1 = b1 + a * load_first(z[1] + j, rest)
        if count > 2:
            b2 = b2 + a * load_first(z[2] + j, rest)
    g[0] = vsum(b0)
    if count > 1:
        g[1] = vsum(b1)
    if count > 2:
        g[2] = vsum(b2)


cdef inline void dense_products(const double *x, const double **z, int count, int d, double *g) noexcept nogil:
    """Do `dense_products_of`, by a loop of its own for every number of rows up to GROUP - 1."""
    if count == 3:
        dense_products_of(x, z, 3, d, g)
    elif count == 2:
        dense_products_of(x, z, 2, d, g)
    elif count == 1:
        dense_products_of(x, z, 1, d, g)


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


cdef struct Rows:
    Py_ssize_t n
    int d
    const double *values      # dense: (n, d) row-major; CSR: the non-zeros
    const int *columns        # CSR only
    const long long *start    # CSR only, NULL when dense


cdef inline void prefetch_row(const Rows *x, Py_ssize_t i) noexcept nogil:
    """Prefetch the first numbers of row i; the processor itself goes on where a row is longer.

    Rows of Theta are left out: those of one sparse row do not wait for each other, and to ask for those of the next takes longer than it saves.
    """
    cdef Py_ssize_t e = 0, last = min(x.d, 256)
    if x.start == NULL:
        while e < last:
            prefetch(x.values + i * x.d + e)
            e += 8
        prefetch(x.values + i * x.d + last - 1)
    else:
        e = x.start[i]
        last = min(x.start[i + 1], e + 128)
        while e < last:
            prefetch(x.columns + e)
            prefetch(x.values + e)
            prefetch(x.values + e + 8)
            e += 16


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
