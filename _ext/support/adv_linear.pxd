# Linear scores and their rank-one updates; Theta is stored d x kp (measured: sparse scores 4 times faster than k x d).

from adv_simd cimport inlined, vec, load, load_first, store, splat, vsum, LANES, prefetch


cdef extern from *:
    """
    #ifndef ADV_LINEAR_H
    #define ADV_LINEAR_H
    /* One column of parameters. The numbers after whole vectors are read and written under a mask: rows need no padding and no loop over the rest. */
    #if defined(__AVX512F__)
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        _mm512_mask_storeu_pd(p, (__mmask8)((1u << count) - 1u), (__m512d)a);
      }
    #elif defined(__AVX2__)
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        _mm256_maskstore_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3)), (__m256d)a);
      }
    #else
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        double whole[ADV_LANES];
        adv_store(whole, 0, a);
        for (int j = 0; j < count; j++) p[j] = whole[j];
      }
    #endif
    static inline double adv_dense_dot(const double *x, const double *v, int d) {
      adv_vec a = adv_set(0.0), b = a, c = a, e = a;
      int j = 0, whole = d / ADV_LANES;
      for (; j + 4 <= whole; j += 4) {
        a += adv_load(x, j) * adv_load(v, j);
        b += adv_load(x, j + 1) * adv_load(v, j + 1);
        c += adv_load(x, j + 2) * adv_load(v, j + 2);
        e += adv_load(x, j + 3) * adv_load(v, j + 3);
      }
      if (j < whole) { a += adv_load(x, j) * adv_load(v, j); j++; }
      if (j < whole) { b += adv_load(x, j) * adv_load(v, j); j++; }
      if (j < whole) { c += adv_load(x, j) * adv_load(v, j); j++; }
      j *= ADV_LANES;
      if (j < d) e += adv_load_first(x + j, d - j) * adv_load_first(v + j, d - j);
      return adv_sum((a + b) + (c + e));
    }
    static inline void adv_dense_add(const double *x, double *v, int d, double step) {
      adv_vec s = adv_set(step);
      int j, whole = d / ADV_LANES;
      for (j = 0; j < whole; j++) adv_store(v, j, adv_load(v, j) + s * adv_load(x, j));
      j *= ADV_LANES;
      if (j < d) adv_store_part(v + j, d - j, adv_load_first(v + j, d - j) + s * adv_load_first(x + j, d - j));
    }
    #endif
    """
    double dense_dot "adv_dense_dot"(const double *x, const double *v, int d) noexcept nogil
    void dense_add "adv_dense_add"(const double *x, double *v, int d, double step) noexcept nogil


cdef enum:
    GROUP = 4    # dense rows that are visited between two products with Theta


cdef inline inlined dense_chain(double x, double z, double *t, int vectors, bint moving, const vec *change, vec *sums) noexcept nogil:
    """Add z times ``vectors`` vectors of a row t of Theta to their sums; where ``moving``, t moves by x change before."""
    cdef int q
    cdef vec value
    for q in range(vectors):
        value = load(t, q)
        if moving:
            value = value + splat(x) * change[q]
            store(t, q, value)
        sums[q] = sums[q] + splat(z) * value


cdef inline inlined dense_chains(const double *x, const double *z, double *t, int kp, int vectors, int rows, bint moving,
                                 const vec *change, vec *sums) noexcept nogil:
    """Do `dense_chain` for as many ``rows``, each with sums of its own. Written out: sums in a loop of loops would lie in memory."""
    dense_chain(x[0], z[0], t, vectors, moving, change, sums)
    if rows > 1:
        dense_chain(x[1], z[1], t + kp, vectors, moving, change, sums + vectors)
    if rows > 2:
        dense_chain(x[2], z[2], t + 2 * kp, vectors, moving, change, sums + 2 * vectors)
        dense_chain(x[3], z[3], t + 3 * kp, vectors, moving, change, sums + 3 * vectors)
    if rows > 4:
        dense_chain(x[4], z[4], t + 4 * kp, vectors, moving, change, sums + 4 * vectors)
        dense_chain(x[5], z[5], t + 5 * kp, vectors, moving, change, sums + 5 * vectors)
        dense_chain(x[6], z[6], t + 6 * kp, vectors, moving, change, sums + 6 * vectors)
        dense_chain(x[7], z[7], t + 7 * kp, vectors, moving, change, sums + 7 * vectors)


cdef inline inlined dense_columns(const double *x, const double *z, int d, double *theta, int kp, int v, int vectors, int chains, bint moving,
                                  const double *dr, vec step, double *f) noexcept nogil:
    """Do `dense_product` for ``vectors`` vectors of columns; ``chains`` of additions for each hide the latency of a multiply-add."""
    cdef int j, c, q
    cdef double *t = theta + v * LANES
    cdef vec sums[8]
    cdef vec change[4]
    for c in range(8):
        sums[c] = splat(0.0)
    if moving:
        for q in range(vectors):
            change[q] = load(dr, v + q) * step
    for j in range(d // chains):
        dense_chains(x + chains * j, z + chains * j, t, kp, vectors, chains, moving, change, sums)
        t += chains * kp
    j = d - d % chains
    # the rest in chains of its own: one after the other would take as long as all rows of a round before
    if chains > 4 and d & 4:
        dense_chains(x + j, z + j, t, kp, vectors, 4, moving, change, sums)
        t += 4 * kp
        j += 4
    if chains > 2 and d & 2:
        dense_chains(x + j, z + j, t, kp, vectors, 2, moving, change, sums + (chains - 4) * vectors)
        t += 2 * kp
        j += 2
    if d & 1:
        dense_chains(x + j, z + j, t, kp, vectors, 1, moving, change, sums + (chains - 2) * vectors)
    for q in range(vectors):
        if chains == 2:
            store(f, v + q, sums[q] + sums[vectors + q])
        elif chains == 4:
            store(f, v + q, (sums[q] + sums[vectors + q]) + (sums[2 * vectors + q] + sums[3 * vectors + q]))
        else:
            store(f, v + q, ((sums[q] + sums[vectors + q]) + (sums[2 * vectors + q] + sums[3 * vectors + q]))
                  + ((sums[4 * vectors + q] + sums[5 * vectors + q]) + (sums[6 * vectors + q] + sums[7 * vectors + q])))


cdef inline void dense_product(const double *x, const double *z, int d, double *theta, int kp, bint moving, const double *dr, double scale,
                               double *f) noexcept nogil:
    """f = Theta' z; where ``moving``, Theta += scale x dr' before, and is read once, while it waits for its stores.

    The constants in the calls give each number of vectors a loop of its own, with eight accumulators in flight, whatever kp is.
    """
    cdef int v = 0, nv = kp // LANES
    cdef vec step = splat(scale)
    while v + 4 <= nv:
        dense_columns(x, z, d, theta, kp, v, 4, 2, moving, dr, step, f)
        v += 4
    if nv - v == 3:
        dense_columns(x, z, d, theta, kp, v, 3, 2, moving, dr, step, f)
        v += 3
    while v + 2 <= nv:
        dense_columns(x, z, d, theta, kp, v, 2, 4, moving, dr, step, f)
        v += 2
    if v < nv:
        dense_columns(x, z, d, theta, kp, v, 1, 8, moving, dr, step, f)


cdef inline void dense_scores(const double *x, int d, const double *theta, int kp, double *f) noexcept nogil:
    """f = Theta' x."""
    dense_product(x, x, d, <double *>theta, kp, False, NULL, 0.0, f)


cdef inline void dense_update_scores(const double *x, int d, double *theta, int kp, const double *dr, double scale, const double *z, double *f) noexcept nogil:
    """Theta += scale x dr', then f = Theta' z, to the bits of `dense_update` and `dense_scores`."""
    dense_product(x, z, d, theta, kp, True, dr, scale, f)


cdef inline inlined dense_moved(const double *x, int d, double *theta, int kp, int v, int vectors, const double *dr, vec step) noexcept nogil:
    """Do `dense_update` for ``vectors`` vectors of columns."""
    cdef int j, q
    cdef double *t = theta
    cdef vec xj
    cdef vec change[4]
    for q in range(vectors):
        change[q] = load(dr, v + q) * step
    for j in range(d):
        xj = splat(x[j])
        for q in range(vectors):
            store(t, v + q, load(t, v + q) + xj * change[q])
        t += kp


cdef inline void dense_update(const double *x, int d, double *theta, int kp, const double *dr, double scale) noexcept nogil:
    """Theta += scale x dr'."""
    cdef int v = 0, nv = kp // LANES
    cdef vec step = splat(scale)
    while v + 4 <= nv:
        dense_moved(x, d, theta, kp, v, 4, dr, step)
        v += 4
    if nv - v == 3:
        dense_moved(x, d, theta, kp, v, 3, dr, step)
    elif nv - v == 2:
        dense_moved(x, d, theta, kp, v, 2, dr, step)
    elif nv - v == 1:
        dense_moved(x, d, theta, kp, v, 1, dr, step)


cdef inline inlined dense_moves_columns(const double **x, int moves, int d, double *theta, int kp, int v, int vectors, const double *dr,
                                        const double **z, double *F) noexcept nogil:
    """Do `dense_moves_scores` for ``vectors`` vectors of columns."""
    cdef int j, m, q
    cdef double *t = theta
    cdef const double *left[GROUP]  # copies of x and z: a store to Theta cannot change them, so they stay in registers
    cdef const double *right[GROUP]
    cdef vec sums[2 * GROUP]
    cdef vec change[2 * GROUP]
    cdef vec value[2]
    cdef vec number
    for m in range(GROUP):
        left[m], right[m] = x[m], z[m]
        for q in range(vectors):
            sums[m * vectors + q] = splat(0.0)
            change[m * vectors + q] = load(dr + m * kp, v + q)
    for j in range(d):
        for q in range(vectors):
            value[q] = load(t, v + q)
        for m in range(moves):
            number = splat(left[m][j])
            for q in range(vectors):
                value[q] = value[q] + number * change[m * vectors + q]
        if moves > 0:
            for q in range(vectors):
                store(t, v + q, value[q])
        for m in range(GROUP):
            number = splat(right[m][j])
            for q in range(vectors):
                sums[m * vectors + q] = sums[m * vectors + q] + number * value[q]
        t += kp
    for m in range(GROUP):
        for q in range(vectors):
            store(F + m * kp, v + q, sums[m * vectors + q])


cdef inline void dense_moves_scores(const double **x, int moves, int d, double *theta, int kp, const double *dr, const double **z, double *F) noexcept nogil:
    """Theta += sum_q x_q dr_q', q = 0 .. ``moves`` - 1, then F = Z Theta for GROUP rows z; dr, F (GROUP, kp). Theta is read and stored once."""
    cdef int v = 0, nv = kp // LANES
    while v + 2 <= nv:
        dense_moves_columns(x, moves, d, theta, kp, v, 2, dr, z, F)
        v += 2
    if v < nv:
        dense_moves_columns(x, moves, d, theta, kp, v, 1, dr, z, F)


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
        if last > 0:  # rows without columns have no numbers
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


cdef inline double row_dot(const Rows *x, Py_ssize_t i, const double *v) noexcept nogil:
    """Return x_i.v."""
    cdef Py_ssize_t e
    cdef double total = 0.0
    if x.start == NULL:
        return dense_dot(x.values + i * x.d, v, x.d)
    for e in range(x.start[i], x.start[i + 1]):
        total += x.values[e] * v[x.columns[e]]
    return total


cdef inline inlined sparse_products_of(const Rows *x, Py_ssize_t i, const double **v, int count, double *out) noexcept nogil:
    """Do `row_products` for a sparse row."""
    cdef Py_ssize_t e
    cdef double value, s0 = 0.0, s1 = 0.0, s2 = 0.0
    cdef const double *v0 = v[0]
    cdef const double *v1 = v[1] if count > 1 else v0
    cdef const double *v2 = v[2] if count > 2 else v0
    for e in range(x.start[i], x.start[i + 1]):
        value = x.values[e]
        s0 += value * v0[x.columns[e]]
        if count > 1:
            s1 += value * v1[x.columns[e]]
        if count > 2:
            s2 += value * v2[x.columns[e]]
    out[0] = s0
    if count > 1:
        out[1] = s1
    if count > 2:
        out[2] = s2


cdef inline void row_products(const Rows *x, Py_ssize_t i, const double **v, int count, double *out) noexcept nogil:
    """out_q = x_i.v_q for 1 to GROUP - 1 columns of parameters v; the row is read once."""
    if x.start == NULL:
        dense_products(x.values + i * x.d, v, count, x.d, out)
    elif count == 3:
        sparse_products_of(x, i, v, 3, out)
    elif count == 2:
        sparse_products_of(x, i, v, 2, out)
    else:
        sparse_products_of(x, i, v, 1, out)


cdef inline void row_add(const Rows *x, Py_ssize_t i, double scale, double *v) noexcept nogil:
    """v += scale x_i."""
    cdef Py_ssize_t e
    if x.start == NULL:
        dense_add(x.values + i * x.d, v, x.d, scale)
    else:
        for e in range(x.start[i], x.start[i + 1]):
            v[x.columns[e]] += scale * x.values[e]


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
