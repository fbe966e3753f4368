"""The Gaussian kernel matrix K_ij = exp(-gamma |x_i - x_j|^2) + constant of dense rows with few columns.

The rows are centred and scaled to z with log2 exp(-gamma |x_i - x_j|^2) = z_i'z_j - |z_i|^2/2 - |z_j|^2/2. Each sum z_i'z_j and |z_i|^2 adds
the columns in order, so that equal rows have K_ij = 1 + constant. Rounding changes the exponent like a sum as large as
gamma (|x_i|^2 + |x_j|^2). With many columns BLAS is faster (advcli/features/kernels/gaussian.py).
"""

from libc.math cimport sqrt
from libc.stdlib cimport free

from adv_check cimport demand
from adv_simd cimport vec, load, store, splat, vmin, zeros, LANES

cdef extern from *:
    """
    #define ADV_TILE 64
    #define ADV_STRIDE (ADV_TILE + 8)
    #if ADV_LANES == 1
      #define ADV_POWERS 1
      static inline void adv_powers(adv_vec *x) { x[0] = x[0] < -1021.0 ? 0.0 : exp2(x[0]); }
    #else
      /* 2^x of eight vectors of numbers up to 0, side by side: each term of a polynomial waits for the one before. x = n + r, |r| <= 1/2. Least
         squares at 200 Chebyshev points fit the polynomial of degree 11 to 2^r, its value at 0 held at 1: its relative error is 4e-18, and 4e-17
         with rounded coefficients. Adding 1.5 2^52 rounds x to n in the last bits of the sum, from where n is shifted into the exponent. 2^x is 0
         below -1021. */
      #define ADV_POWERS 8
      #define ADV_EACH for (int i = 0; i < ADV_POWERS; i++)
      #define ADV_TERM(a) ADV_EACH p[i] = p[i] * r[i] + adv_set(a);
      static inline void adv_powers(adv_vec *x) {
        const adv_vec least = adv_set(-1021.0), shift = adv_set(6755399441055744.0);
        adv_vec n[ADV_POWERS], r[ADV_POWERS], p[ADV_POWERS];
        ADV_EACH r[i] = adv_max(x[i], least);
        ADV_EACH n[i] = r[i] + shift;
        ADV_EACH r[i] = r[i] - (n[i] - shift);
        ADV_EACH p[i] = adv_set(4.4307278984014654e-10);
        ADV_TERM(7.073810155099862e-09) ADV_TERM(1.0178229258049394e-07) ADV_TERM(1.3215435106247474e-06) ADV_TERM(1.5252733412140717e-05)
        ADV_TERM(0.00015403530457518835) ADV_TERM(0.0013333558146874727) ADV_TERM(0.009618129107593736) ADV_TERM(0.05550410866481954)
        ADV_TERM(0.24022650695910133) ADV_TERM(0.6931471805599453) ADV_TERM(1.0)
        ADV_EACH p[i] = (adv_vec)((adv_mask)p[i] + ((adv_mask)n[i] << 52));
        ADV_EACH x[i] = adv_if_gt(least, x[i], adv_set(0.0), p[i]);
      }
    #endif
    /* Write a row of a tile to K; past the caches, a whole line need not be read before it is written. */
    static inline void adv_row(const double *tile, int count, int past, double *to) {
      int j = 0;
      #if defined(__AVX2__)
        if (past) {
          while (j < count && ((uintptr_t)(to + j) & 63)) { to[j] = tile[j]; j++; }
          for (; j + 8 <= count; j += 8) {
            _mm256_stream_pd(to + j, _mm256_loadu_pd(tile + j));
            _mm256_stream_pd(to + j + 4, _mm256_loadu_pd(tile + j + 4));
          }
        }
      #endif
      for (; j < count; j++) to[j] = tile[j];
    }
    static inline void adv_drain(void) { /* what was written past the caches comes before all later writes for other threads, too */
      #if defined(__AVX2__)
        _mm_sfence();
      #endif
    }
    /* turned_ji = tile_ij, both of whole tiles */
    static inline void adv_turn(const double *tile, double *turned) {
      #if defined(__AVX2__)
        for (int j = 0; j < ADV_TILE; j += 4)
          for (int i = 0; i < ADV_TILE; i += 4) {
            const double *t = tile + i * ADV_STRIDE + j;
            double *u = turned + j * ADV_STRIDE + i;
            __m256d a = _mm256_loadu_pd(t), b = _mm256_loadu_pd(t + ADV_STRIDE);
            __m256d c = _mm256_loadu_pd(t + 2 * ADV_STRIDE), d = _mm256_loadu_pd(t + 3 * ADV_STRIDE);
            __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
            __m256d others = _mm256_unpacklo_pd(c, d), last = _mm256_unpackhi_pd(c, d);
            _mm256_storeu_pd(u, _mm256_permute2f128_pd(even, others, 0x20));
            _mm256_storeu_pd(u + ADV_STRIDE, _mm256_permute2f128_pd(odd, last, 0x20));
            _mm256_storeu_pd(u + 2 * ADV_STRIDE, _mm256_permute2f128_pd(even, others, 0x31));
            _mm256_storeu_pd(u + 3 * ADV_STRIDE, _mm256_permute2f128_pd(odd, last, 0x31));
          }
      #else
        for (int j = 0; j < ADV_TILE; j++)
          for (int i = 0; i < ADV_TILE; i++) turned[j * ADV_STRIDE + i] = tile[i * ADV_STRIDE + j];
      #endif
    }
    """
    enum: TILE "ADV_TILE"        # rows and columns of K that are computed together, in the cache
    enum: STRIDE "ADV_STRIDE"    # of a tile's rows: numbers that are read together must not fall on the same part of the cache
    enum: POWERS "ADV_POWERS"
    void powers "adv_powers"(vec *x) noexcept nogil
    void write_row "adv_row"(const double *tile, int count, int past, double *to) noexcept nogil
    void drain "adv_drain"() noexcept nogil
    void turn "adv_turn"(const double *tile, double *turned) noexcept nogil

cdef enum:
    GROUP = 4         # rows whose products are summed together, two vectors each: sums that do not wait for each other
    CACHED = 1 << 24  # bytes of K beyond which it is written past the caches, which would not hold it

cdef double LOG_2 = 0.6931471805599453


cdef inline void products(const double *left, const double *right, Py_ssize_t d, double *tile) noexcept nogil:
    """Write the products of the rows of two transposed tiles, each summed column by column."""
    cdef Py_ssize_t i, j, c
    cdef int r
    cdef vec[GROUP] s, t
    cdef vec a, b, u
    cdef const double *x
    cdef const double *z
    for i from 0 <= i < TILE by GROUP:
        for j from 0 <= j < TILE // LANES by 2:
            for r in range(GROUP):
                s[r] = t[r] = splat(0.0)
            x, z = left + i, right
            for c in range(d):
                a, b = load(z, <int>j), load(z, <int>j + 1)
                for r in range(GROUP):
                    u = splat(x[r])
                    s[r], t[r] = s[r] + u * a, t[r] + u * b
                x += TILE
                z += TILE
            for r in range(GROUP):
                store(tile + (i + r) * STRIDE, <int>j, s[r])
                store(tile + (i + r) * STRIDE, <int>j + 1, t[r])


cdef inline void exponentials(const double *half, const double *other, double constant, double *tile) noexcept nogil:
    """Turn products of rows into values of the kernel; ``half`` and ``other`` are half the squares of the tile's rows and columns."""
    cdef Py_ssize_t i, j
    cdef int v
    cdef vec[POWERS] x
    cdef vec zero = splat(0.0), added = splat(constant), row
    for i in range(TILE):
        row = splat(half[i])
        for j from 0 <= j < TILE // LANES by POWERS:
            for v in range(POWERS):
                x[v] = vmin(load(tile + i * STRIDE, <int>j + v) - (row + load(other, <int>j + v)), zero)
            powers(x)
            for v in range(POWERS):
                store(tile + i * STRIDE, <int>j + v, x[v] + added)


cdef void fill(const double *Z, const double *half, Py_ssize_t n, Py_ssize_t d, double constant, double *tile, double *K) noexcept nogil:
    """Write K (n, n) for the transposed tiles Z of the rows, tile by tile at and above the diagonal, each with its mirror image."""
    cdef Py_ssize_t p, q, first, begin, i, j, tiles = (n + TILE - 1) // TILE
    cdef int rows, columns, past = 8 * n * n > CACHED
    cdef double *turned = tile + STRIDE * TILE
    for p in range(tiles):
        first = p * TILE
        rows = <int>min(n - first, <Py_ssize_t>TILE)
        for q in range(p, tiles):
            begin = q * TILE
            columns = <int>min(n - begin, <Py_ssize_t>TILE)
            products(Z + first * d, Z + begin * d, d, tile)
            exponentials(half + first, half + begin, constant, tile)
            for i in range(rows):
                write_row(tile + i * STRIDE, columns, past, K + (first + i) * n + begin)
            if begin > first:
                turn(tile, turned)
                for j in range(columns):
                    write_row(turned + j * STRIDE, rows, past, K + (begin + j) * n + first)
    drain()


def matrix(const double[:, ::1] X, double gamma, double constant, double[:, ::1] K):
    """Write the kernel between all rows of X (n, d) into K (n, n), which becomes exactly symmetric with 1 + constant on its diagonal.

    The squares of the centred rows times gamma must be finite numbers, else ValueError.
    """
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], padded = (X.shape[0] + TILE - 1) // TILE * TILE, i, c
    cdef double mean, scale = sqrt(2.0 * gamma / LOG_2), most = 0.0
    cdef double *tile
    cdef double *half
    cdef double *Z
    demand(K.shape[0] == n and K.shape[1] == n, "the kernel matrix must be (n, n)")
    demand(gamma >= 0.0, "gamma must be at least 0")
    if n == 0:
        return
    tile = zeros(2 * STRIDE * TILE + padded + padded * d)
    if tile == NULL:
        raise MemoryError("no memory for the columns of the kernel matrix")
    half = tile + 2 * STRIDE * TILE
    Z = half + padded
    with nogil:
        for c in range(d):
            mean = 0.0
            for i in range(n):
                mean += X[i, c]
            mean /= n
            for i in range(n):
                Z[(i // TILE * d + c) * TILE + i % TILE] = (X[i, c] - mean) * scale
        for i from 0 <= i < n by TILE:
            products(Z + i * d, Z + i * d, d, tile)
            for c in range(TILE):
                half[i + c] = 0.5 * tile[c * STRIDE + c]
                most = max(most, half[i + c]) if half[i + c] == half[i + c] else half[i + c]
        if most - most == 0.0:
            fill(Z, half, n, d, constant, tile, &K[0, 0])
    free(tile)
    demand(most - most == 0.0, "rows are too large for the Gaussian kernel: their squares times gamma are not finite numbers")
