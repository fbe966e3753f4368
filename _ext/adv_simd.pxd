# Vectors of doubles whose width the compiler's target decides: 8 (AVX-512), 4 (AVX), 2 (SSE2, NEON) or 1 (plain scalar source, the
# reference level, built with -DADV_SCALAR). Cython sees `vec` as a double, so `a + b`, `a * b` become vector operations;
# everything that is not arithmetic goes through the functions below. All arrays of length `kp` are padded to whole vectors.

cdef extern from *:
    """
    #ifndef ADV_SIMD_H
    #define ADV_SIMD_H
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    #if defined(ADV_SCALAR) || !defined(__GNUC__)
      #define ADV_LANES 1
      typedef double adv_vec;
      static inline adv_vec adv_load(const double *p, int j) { return p[j]; }
      static inline void adv_store(double *p, int j, adv_vec a) { p[j] = a; }
      static inline adv_vec adv_set(double a) { return a; }
      static inline adv_vec adv_max(adv_vec a, adv_vec b) { return a > b ? a : b; }
      static inline adv_vec adv_min(adv_vec a, adv_vec b) { return a < b ? a : b; }
      static inline adv_vec adv_if_gt(adv_vec a, adv_vec b, adv_vec x, adv_vec z) { return a > b ? x : z; }
      static inline double adv_sum(adv_vec a) { return a; }
      static inline void adv_sums(adv_vec a, adv_vec b, double *s, double *t) { *s = a; *t = b; }
      static inline double adv_hmax(adv_vec a) { return a; }
    #else
      #if defined(__AVX512F__)
        #include <immintrin.h>
        #define ADV_LANES 8
      #elif defined(__AVX__)
        #include <immintrin.h>
        #define ADV_LANES 4
      #else
        #if defined(__SSE2__)
          #include <emmintrin.h>
        #endif
        #define ADV_LANES 2
      #endif
      typedef double adv_vec __attribute__((vector_size(8 * ADV_LANES)));
      typedef double adv_vec_u __attribute__((vector_size(8 * ADV_LANES), aligned(8), may_alias));
      typedef int64_t adv_mask __attribute__((vector_size(8 * ADV_LANES)));
      static inline adv_vec adv_load(const double *p, int j) { return *(const adv_vec_u *)(p + j * ADV_LANES); }
      static inline void adv_store(double *p, int j, adv_vec a) { *(adv_vec_u *)(p + j * ADV_LANES) = a; }
      static inline adv_vec adv_if_gt(adv_vec a, adv_vec b, adv_vec x, adv_vec z) {
        adv_mask m = a > b;
        return (adv_vec)((m & (adv_mask)x) | (~m & (adv_mask)z));
      }
      #if ADV_LANES == 8
        /* a loop over the lanes becomes eight masked moves */
        static inline adv_vec adv_set(double a) { return (adv_vec)_mm512_set1_pd(a); }
        static inline adv_vec adv_max(adv_vec a, adv_vec b) { return (adv_vec)_mm512_max_pd((__m512d)a, (__m512d)b); }
        static inline adv_vec adv_min(adv_vec a, adv_vec b) { return (adv_vec)_mm512_min_pd((__m512d)a, (__m512d)b); }
      #elif ADV_LANES == 4
        static inline adv_vec adv_set(double a) { return (adv_vec)_mm256_set1_pd(a); }
        static inline adv_vec adv_max(adv_vec a, adv_vec b) { return (adv_vec)_mm256_max_pd((__m256d)a, (__m256d)b); }
        static inline adv_vec adv_min(adv_vec a, adv_vec b) { return (adv_vec)_mm256_min_pd((__m256d)a, (__m256d)b); }
      #elif defined(__SSE2__)
        static inline adv_vec adv_set(double a) { return (adv_vec)_mm_set1_pd(a); }
        static inline adv_vec adv_max(adv_vec a, adv_vec b) { return (adv_vec)_mm_max_pd((__m128d)a, (__m128d)b); }
        static inline adv_vec adv_min(adv_vec a, adv_vec b) { return (adv_vec)_mm_min_pd((__m128d)a, (__m128d)b); }
      #else
        static inline adv_vec adv_set(double a) { adv_vec v = {a, a}; return v; }
        static inline adv_vec adv_max(adv_vec a, adv_vec b) { return adv_if_gt(a, b, a, b); }
        static inline adv_vec adv_min(adv_vec a, adv_vec b) { return adv_if_gt(b, a, a, b); }
      #endif
      static inline double adv_sum(adv_vec a) {
      #if ADV_LANES == 8
        return (((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])));
      #elif ADV_LANES == 4
        return (a[0] + a[2]) + (a[1] + a[3]);
      #else
        return a[0] + a[1];
      #endif
      }
      static inline void adv_sums(adv_vec a, adv_vec b, double *s, double *t) {
      #if ADV_LANES == 4
        __m256d h = _mm256_hadd_pd((__m256d)a, (__m256d)b);
        __m128d r = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
        *s = _mm_cvtsd_f64(r);
        *t = _mm_cvtsd_f64(_mm_unpackhi_pd(r, r));
      #else
        *s = adv_sum(a);
        *t = adv_sum(b);
      #endif
      }
      static inline double adv_hmax(adv_vec a) {
      #if ADV_LANES == 4
        __m128d r = _mm_max_pd(_mm256_castpd256_pd128((__m256d)a), _mm256_extractf128_pd((__m256d)a, 1));
        return _mm_cvtsd_f64(_mm_max_sd(r, _mm_unpackhi_pd(r, r)));
      #endif
        double m = a[0];
        for (int i = 1; i < ADV_LANES; i++) m = a[i] > m ? a[i] : m;
        return m;
      }
    #endif
    #if defined(__GNUC__)
      #define adv_prefetch(p) __builtin_prefetch(p)
    #else
      #define adv_prefetch(p) ((void)0)
    #endif
    #endif
    """
    ctypedef double vec "adv_vec"
    int LANES "ADV_LANES"
    vec load "adv_load"(const double *p, int j) noexcept nogil
    void store "adv_store"(double *p, int j, vec a) noexcept nogil
    vec splat "adv_set"(double a) noexcept nogil
    vec vmax "adv_max"(vec a, vec b) noexcept nogil
    vec vmin "adv_min"(vec a, vec b) noexcept nogil
    vec if_greater "adv_if_gt"(vec a, vec b, vec then, vec otherwise) noexcept nogil
    double vsum "adv_sum"(vec a) noexcept nogil
    void vsums "adv_sums"(vec a, vec b, double *first, double *second) noexcept nogil
    double hmax "adv_hmax"(vec a) noexcept nogil
    void prefetch "adv_prefetch"(const void *p) noexcept nogil


cdef inline double maximum(const double *a, int kp) noexcept nogil:
    """Return the largest of ``kp`` numbers."""
    cdef int j
    cdef vec m = load(a, 0)
    for j in range(1, kp // LANES):
        m = vmax(m, load(a, j))
    return hmax(m)


cdef inline double dot(const double *a, const double *b, int kp) noexcept nogil:
    cdef int j
    cdef vec s = splat(0.0)
    for j in range(kp // LANES):
        s = s + load(a, j) * load(b, j)
    return vsum(s)


cdef inline double threshold(const double *g, int kp, double start, double radius) noexcept nogil:
    """Return t with sum_j max(g_j - t, 0) = radius > 0, by Newton from ``start`` < max g.

    The function is convex and decreasing in t, so the first step from any start lands at or left of the root and the
    rest climb; the active sets are nested, hence the same count twice is the same set and t is exact
    (Michelot 1986 with a warm start). Padding lanes hold -inf.
    """
    cdef double t = start, total, active, previous = -1.0
    cdef int j, iteration
    cdef vec s, c, d, level, zero = splat(0.0), one = splat(1.0)
    for iteration in range(kp + 8):
        s = zero
        c = zero
        level = splat(t)
        for j in range(kp // LANES):
            d = load(g, j) - level
            s = s + vmax(d, zero)
            c = c + if_greater(d, zero, one, zero)
        vsums(s, c, &total, &active)
        if active == 0.0:  # the guess lay at or above the maximum
            t = maximum(g, kp) - radius
            previous = -1.0
            continue
        t = t + (total - radius) / active
        if active == previous:
            break
        previous = active
    return t
