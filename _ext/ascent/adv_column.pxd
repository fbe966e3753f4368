# One column of parameters: products and updates with rows of any length, dense or CSR.
# The numbers that are left after whole vectors are read and written under a mask, so that rows need no padding and no loop over the last few
# numbers.

from adv_simd cimport vec
from adv_linear cimport Rows

cdef extern from *:
    """
    #ifndef ADV_COLUMN_H
    #define ADV_COLUMN_H
    #if ADV_LANES == 8
      static inline adv_vec adv_load_part(const double *p, int count) {
        return (adv_vec)_mm512_maskz_loadu_pd((__mmask8)((1u << count) - 1u), p);
      }
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        _mm512_mask_storeu_pd(p, (__mmask8)((1u << count) - 1u), (__m512d)a);
      }
    #elif ADV_LANES == 4 && defined(__AVX2__)
      static inline __m256i adv_part(int count) {
        return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
      }
      static inline adv_vec adv_load_part(const double *p, int count) { return (adv_vec)_mm256_maskload_pd(p, adv_part(count)); }
      static inline void adv_store_part(double *p, int count, adv_vec a) { _mm256_maskstore_pd(p, adv_part(count), (__m256d)a); }
    #else
      static inline adv_vec adv_load_part(const double *p, int count) {
        double whole[ADV_LANES] = {0.0};
        for (int j = 0; j < count; j++) whole[j] = p[j];
        return adv_load(whole, 0);
      }
      static inline void adv_store_part(double *p, int count, adv_vec a) {
        double whole[ADV_LANES];
        adv_store(whole, 0, a);
        for (int j = 0; j < count; j++) p[j] = whole[j];
      }
    #endif
    static inline double adv_column_dot(const double *x, const double *v, int d) {
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
      if (j < d) e += adv_load_part(x + j, d - j) * adv_load_part(v + j, d - j);
      return adv_sum((a + b) + (c + e));
    }
    static inline void adv_column_add(const double *x, double *v, int d, double step) {
      adv_vec s = adv_set(step);
      int j, whole = d / ADV_LANES;
      for (j = 0; j < whole; j++) adv_store(v, j, adv_load(v, j) + s * adv_load(x, j));
      j *= ADV_LANES;
      if (j < d) adv_store_part(v + j, d - j, adv_load_part(v + j, d - j) + s * adv_load_part(x + j, d - j));
    }
    #endif
    """
    double dense_dot "adv_column_dot"(const double *x, const double *v, int d) noexcept nogil
    void dense_add "adv_column_add"(const double *x, double *v, int d, double step) noexcept nogil


cdef inline double column_score(const Rows *x, Py_ssize_t i, const double *v) noexcept nogil:
    """Return x_i.v."""
    cdef Py_ssize_t e
    cdef double total = 0.0
    if x.start == NULL:
        return dense_dot(x.values + i * x.d, v, x.d)
    for e in range(x.start[i], x.start[i + 1]):
        total += x.values[e] * v[x.columns[e]]
    return total


cdef inline void column_update(const Rows *x, Py_ssize_t i, double *v, double step) noexcept nogil:
    """v += step x_i."""
    cdef Py_ssize_t e
    if x.start == NULL:
        dense_add(x.values + i * x.d, v, x.d, step)
    else:
        for e in range(x.start[i], x.start[i + 1]):
            v[x.columns[e]] += step * x.values[e]
