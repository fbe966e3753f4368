# Vectors of doubles: 8 with AVX-512, else 4, which the compiler makes of what the processor has, so that sums have one order everywhere; 1 where
# the compiler (MSVC) has no vectors. Cython sees `vec` as a double, so `a + b`, `a * b` become vector operations;
# everything that is not arithmetic goes through the functions below. All arrays of length `kp` are padded to whole vectors.

cdef extern from *:
    """
    #ifndef ADV_SIMD_H
    #define ADV_SIMD_H
    #if defined(__GNUC__)
      #define ADV_INLINED __attribute__((always_inline)) /* constants of a call make a loop of its own, whatever the compiler thinks of its size */
    #else
      #define ADV_INLINED
    #endif
    #include <math.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #if defined(__linux__)
      #include <sys/mman.h>
    #endif
    /* Zeros at the beginning of a cache line: a vector that lies across two lines takes two reads. Release with free. */
    static inline double *adv_zeros(size_t count) {
      size_t page = (size_t)1 << 21, bytes = count * sizeof(double), line = bytes < 2 * page ? 64 : page;
      bytes = (bytes + line) / line * line;
      #if defined(_WIN32) /* its library has no block that is aligned and released by free; loads take any address */
      double *block = (double *)malloc(bytes);
      #else
      double *block = (double *)aligned_alloc(line, bytes);
      #endif
      #if defined(MADV_HUGEPAGE)
      if (block != NULL && line == page) madvise(block, bytes, MADV_HUGEPAGE); /* else rows in random order miss the tables of pages, too */
      #endif
      if (block != NULL) memset(block, 0, bytes);
      return block;
    }
    #if !defined(__GNUC__)
      #define ADV_LANES 1
      typedef double adv_vec;
      static inline adv_vec adv_load(const double *p, int j) { return p[j]; }
      static inline void adv_store(double *p, int j, adv_vec a) { p[j] = a; }
      static inline adv_vec adv_load_first(const double *p, int count) { return count > 0 ? p[0] : 0.0; }
      static inline adv_vec adv_set(double a) { return a; }
      static inline adv_vec adv_max(adv_vec a, adv_vec b) { return a > b ? a : b; }
      static inline adv_vec adv_min(adv_vec a, adv_vec b) { return a < b ? a : b; }
      static inline adv_vec adv_if_gt(adv_vec a, adv_vec b, adv_vec x, adv_vec z) { return a > b ? x : z; }
      static inline adv_vec adv_unfused(adv_vec a, adv_vec b) { return a * b; }
      static inline double adv_sum(adv_vec a) { return a; }
      static inline double adv_hmax(adv_vec a) { return a; }
      static inline int adv_count_gt(adv_vec a, adv_vec b) { return a > b; }
      static inline int adv_keep_gt(double *p, adv_vec a, adv_vec b) { p[0] = a; return a > b; }
    #else
      #if defined(__AVX512F__)
        #include <immintrin.h>
        #define ADV_LANES 8
      #else
        #if defined(__AVX2__)
          #include <immintrin.h>
        #endif
        #define ADV_LANES 4
      #endif
      typedef double adv_vec __attribute__((vector_size(8 * ADV_LANES)));
      typedef double adv_vec_u __attribute__((vector_size(8 * ADV_LANES), aligned(8), may_alias));
      typedef int64_t adv_mask __attribute__((vector_size(8 * ADV_LANES)));
      static inline adv_vec adv_load(const double *p, int j) { return *(const adv_vec_u *)(p + j * ADV_LANES); }
      static inline void adv_store(double *p, int j, adv_vec a) { *(adv_vec_u *)(p + j * ADV_LANES) = a; }
      #if defined(__AVX512F__)
        static inline adv_vec adv_load_first(const double *p, int count) {
          return (adv_vec)_mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1u), p);
        }
      #elif defined(__AVX2__)
        static inline adv_vec adv_load_first(const double *p, int count) {
          const __m256i lanes = _mm256_set_epi64x(3, 2, 1, 0);
          return (adv_vec)_mm256_maskload_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), lanes));
        }
      #else
        static inline adv_vec adv_load_first(const double *p, int count) {
          adv_vec v = {0.0};
          for (int i = 0; i < count; i++) v[i] = p[i];
          return v;
        }
      #endif
      static inline adv_vec adv_if_gt(adv_vec a, adv_vec b, adv_vec x, adv_vec z) {
        adv_mask m = a > b;
        return (adv_vec)((m & (adv_mask)x) | (~m & (adv_mask)z));
      }
      static inline adv_vec adv_unfused(adv_vec a, adv_vec b) {
        a *= b;
        #if defined(__AVX512F__)
        __asm__("" : "+v"(a)); /* the compiler does not look through it */
        #endif
        return a;
      }
      #if defined(__AVX512F__)
        /* a loop over the lanes becomes eight masked moves */
        static inline adv_vec adv_set(double a) { return (adv_vec)_mm512_set1_pd(a); }
        static inline adv_vec adv_max(adv_vec a, adv_vec b) { return (adv_vec)_mm512_max_pd((__m512d)a, (__m512d)b); }
        static inline adv_vec adv_min(adv_vec a, adv_vec b) { return (adv_vec)_mm512_min_pd((__m512d)a, (__m512d)b); }
      #elif defined(__AVX2__)
        static inline adv_vec adv_set(double a) { return (adv_vec)_mm256_set1_pd(a); }
        static inline adv_vec adv_max(adv_vec a, adv_vec b) { return (adv_vec)_mm256_max_pd((__m256d)a, (__m256d)b); }
        static inline adv_vec adv_min(adv_vec a, adv_vec b) { return (adv_vec)_mm256_min_pd((__m256d)a, (__m256d)b); }
      #else
        static inline adv_vec adv_set(double a) { adv_vec v = {a, a, a, a}; return v; }
        static inline adv_vec adv_max(adv_vec a, adv_vec b) { return adv_if_gt(a, b, a, b); }
        static inline adv_vec adv_min(adv_vec a, adv_vec b) { return adv_if_gt(b, a, a, b); }
      #endif
      /* Reductions halve the vector: the compiler's own way takes the lanes out one by one. */
      #if defined(__AVX512F__)
        static inline __m256d adv_half_sum(adv_vec a) {
          return _mm256_add_pd(_mm512_castpd512_pd256((__m512d)a), _mm512_extractf64x4_pd((__m512d)a, 1));
        }
        static inline __m256d adv_half_max(adv_vec a) {
          return _mm256_max_pd(_mm512_castpd512_pd256((__m512d)a), _mm512_extractf64x4_pd((__m512d)a, 1));
        }
        static inline int adv_count_gt(adv_vec a, adv_vec b) {
          return __builtin_popcount(_mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ));
        }
      #elif defined(__AVX2__)
        static inline __m256d adv_half_sum(adv_vec a) { return (__m256d)a; }
        static inline __m256d adv_half_max(adv_vec a) { return (__m256d)a; }
        static inline int adv_count_gt(adv_vec a, adv_vec b) { return __builtin_popcount(_mm256_movemask_pd((__m256d)(a > b))); }
      #endif
      #if defined(__AVX2__)
        static inline double adv_sum(adv_vec a) {
          __m256d h = adv_half_sum(a);
          __m128d r = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
          return _mm_cvtsd_f64(_mm_add_sd(r, _mm_unpackhi_pd(r, r)));
        }
        static inline double adv_hmax(adv_vec a) {
          __m256d h = adv_half_max(a);
          __m128d r = _mm_max_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
          return _mm_cvtsd_f64(_mm_max_sd(r, _mm_unpackhi_pd(r, r)));
        }
      #else
        static inline double adv_sum(adv_vec a) { return (a[0] + a[2]) + (a[1] + a[3]); }
        static inline double adv_hmax(adv_vec a) { /* in the order of AVX2's, which zeros of both signs tell apart */
          double even = a[0] > a[2] ? a[0] : a[2], odd = a[1] > a[3] ? a[1] : a[3];
          return even > odd ? even : odd;
        }
        static inline int adv_count_gt(adv_vec a, adv_vec b) {
          int count = 0;
          for (int i = 0; i < 4; i++) count += a[i] > b[i];
          return count;
        }
      #endif
      static inline int adv_keep_gt(double *p, adv_vec a, adv_vec b) {
      #if defined(__AVX512F__)
        __mmask8 m = _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ);
        adv_store(p, 0, (adv_vec)_mm512_maskz_compress_pd(m, (__m512d)a));
        return __builtin_popcount(m);
      #else
        int kept = 0;
        for (int i = 0; i < ADV_LANES; i++) { p[kept] = a[i]; kept += a[i] > b[i]; }
        return kept;
      #endif
      }
    #endif
    #define ADV_FEW 8
    static const double adv_inverses[17] = {NAN, 1., 1. / 2, 1. / 3, 1. / 4, 1. / 5, 1. / 6, 1. / 7, 1. / 8, 1. / 9, 1. / 10, 1. / 11, 1. / 12, 1. / 13,
      1. / 14, 1. / 15, 1. / 16};
    static inline double adv_inverse(int count) { return count <= 16 ? adv_inverses[count] : 1.0 / count; }
    static inline void adv_prefetch(const void *p) {
    #if defined(__GNUC__)
      __builtin_prefetch(p);
      __asm__ volatile("");   /* else GCC sees a caller that has no effect, and drops the call to it */
    #endif
    }
    #endif
    """
    double *zeros "adv_zeros"(size_t count) noexcept nogil
    ctypedef double vec "adv_vec"
    ctypedef void inlined "ADV_INLINED void"   # of a function that is inlined wherever it is called
    int LANES "ADV_LANES"
    enum:
        FEW "ADV_FEW"                          # numbers up to which `counted_threshold` takes less time than `threshold`
        FEW_VECTORS "(ADV_FEW / ADV_LANES)"    # and their vectors
    vec load "adv_load"(const double *p, int j) noexcept nogil
    vec load_first "adv_load_first"(const double *p, int count) noexcept nogil   # the first ``count`` numbers, no more are read, and zeros
    void store "adv_store"(double *p, int j, vec a) noexcept nogil
    vec splat "adv_set"(double a) noexcept nogil
    vec unfused "adv_unfused"(vec a, vec b) noexcept nogil   # a * b, rounded: avx512 else fuses it with a sum that follows
    vec vmax "adv_max"(vec a, vec b) noexcept nogil
    vec vmin "adv_min"(vec a, vec b) noexcept nogil
    vec if_greater "adv_if_gt"(vec a, vec b, vec then, vec otherwise) noexcept nogil
    double vsum "adv_sum"(vec a) noexcept nogil
    double hmax "adv_hmax"(vec a) noexcept nogil
    int count_greater "adv_count_gt"(vec a, vec b) noexcept nogil
    int keep_greater "adv_keep_gt"(double *p, vec a, vec b) noexcept nogil   # writes these lanes of a, and any numbers behind them; how many
    double inverse "adv_inverse"(int count) noexcept nogil
    const double[17] INVERSES "adv_inverses"   # what `inverse` returns, without its branch, and NaN for 0
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
    cdef double t = start
    cdef int j, iteration, active, previous = -1
    cdef vec s, d, level, zero = splat(0.0)
    for iteration in range(kp + 8):
        s = zero
        active = 0
        level = splat(t)
        for j in range(kp // LANES):
            d = load(g, j) - level
            s = s + vmax(d, zero)
            active += count_greater(d, zero)
        if active == previous:
            break
        previous = active
        if active == 0:  # the guess lay at or above the maximum
            t = maximum(g, kp) - radius
        else:
            t = t + (vsum(s) - radius) * inverse(active)
    return t


cdef inline void two_thresholds(const double *g, int kp, double radius, double *first, double wider, double *second) noexcept nogil:
    """Do what `threshold` does, from ``first`` for one radius and from ``second`` for another; neither waits for the other's sums."""
    cdef double t = first[0], u = second[0]
    cdef int j, iteration, active, others, previous = -1, before = -1
    cdef vec s, o, d, level, lower, value, zero = splat(0.0)
    for iteration in range(kp + 8):
        s = o = zero
        active = others = 0
        level, lower = splat(t), splat(u)
        for j in range(kp // LANES):
            value = load(g, j)
            d = value - level
            s = s + vmax(d, zero)
            active += count_greater(d, zero)
            d = value - lower
            o = o + vmax(d, zero)
            others += count_greater(d, zero)
        if active == previous and others == before:
            break
        if active != previous:
            previous = active
            t = t + (vsum(s) - radius) * inverse(active) if active else maximum(g, kp) - radius
        if others != before:
            before = others
            u = u + (vsum(o) - wider) * inverse(others) if others else maximum(g, kp) - wider
    first[0], second[0] = t, u


cdef inline double counted_threshold(const double *g, const vec *sums, int k, int kp, double radius) noexcept nogil:
    """Return the t of `threshold` for k <= FEW numbers whose largest is at least 0. No branch depends on the data.

    Lane i of ``sums`` holds sum_j max(g_j, g_i). The sum of max(g_j - g_i, 0) decreases in g_i, and g_i > t where it is less than the
    radius; what lies above t is counted and added up. The bound exceeds the rounding of the sums, so that the largest number is always
    counted; another number that is counted by rounding alone lies at t, and changes t by rounding. An infinite number makes t NaN.
    """
    cdef int i, above = 0
    cdef double more = k * (1.0 + 2e-15)
    cdef vec x, bound, total = splat(0.0)
    for i in range(kp // LANES):
        x = load(g, i)
        bound = splat(radius) + splat(more) * x
        above += count_greater(bound, sums[i])
        total = total + if_greater(bound, sums[i], x, splat(0.0))
    return (vsum(total) - radius) * INVERSES[above]
