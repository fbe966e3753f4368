# exp, log and powers from sums and products alone, which round the same on every processor: libraries take the instructions that they find.
# Within two units in the last place. Sources: Tang 1989 (ACM TOMS 15:144-157) for exp by reduction with log 2 in two parts; Tang 1990 (TOMS
# 16:378-400) for log by the odd series in f/(2 + f); Dekker 1971 (Numerische Mathematik 18:224-242) for the doubled precision of powers;
# Cody 1969 (Mathematics of Computation 23:631-637) for erfc by quotients of polynomials, whose coefficients are those of its netlib program.

from adv_simd cimport vec

cdef extern from *:
    """
    #ifndef ADV_ELEMENTARY_H
    #define ADV_ELEMENTARY_H
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    #define ADV_LN2_HIGH 6.93147180369123816490e-01 /* 32 bits: products with exponents are exact */
    #define ADV_LN2_LOW 1.90821492927058770002e-10
    static inline double adv_two_to(int n) { /* 2^n, -1022 <= n <= 1023 */
      int64_t bits = (int64_t)(n + 1023) << 52;
      double power;
      memcpy(&power, &bits, 8);
      return power;
    }
    /* p = 1/2! + r/3! + ... + r^12/14!, the part of exp r behind 1 + r; ``of`` makes a number, or a vector, of a constant */
    #define ADV_EXP_TAIL(of) \
      p = of(1.0 / 87178291200.0); \
      p = p * r + of(1.0 / 6227020800.0); p = p * r + of(1.0 / 479001600.0); p = p * r + of(1.0 / 39916800.0); p = p * r + of(1.0 / 3628800.0); \
      p = p * r + of(1.0 / 362880.0); p = p * r + of(1.0 / 40320.0); p = p * r + of(1.0 / 5040.0); p = p * r + of(1.0 / 720.0); \
      p = p * r + of(1.0 / 120.0); p = p * r + of(1.0 / 24.0); p = p * r + of(1.0 / 6.0); p = p * r + of(0.5);
    static inline double adv_exp_tail(double r) {
      double p;
      ADV_EXP_TAIL((double))
      return p;
    }
    static inline double adv_elementary_exp(double x) {
      if (x != x) return x;
      if (x > 709.79) return INFINITY;
      if (x < -745.14) return 0.0;
      double n = floor(x * 1.4426950408889634074 + 0.5), r = (x - n * ADV_LN2_HIGH) - n * ADV_LN2_LOW;
      int whole = (int)n, half = whole / 2;
      return (1.0 + (r + r * r * adv_exp_tail(r))) * adv_two_to(half) * adv_two_to(whole - half);
    }
    #if !defined(__AVX2__) /* gcc takes comparisons of other vectors apart, which is slower than this */
      static inline adv_vec adv_elementary_exps(adv_vec x) {
        double each[ADV_LANES];
        adv_store(each, 0, x);
        for (int i = 0; i < ADV_LANES; i++) each[i] = adv_elementary_exp(each[i]);
        return adv_load(each, 0);
      }
    #else
      /* exp of each number, with the same bits: the same sums, and powers of two whose exponents are halved in another way. Adding 1.5 2^52
         rounds a number to a whole one, whose last bits are those of the sum. NaN is taken out first: comparing it would set a flag. */
      static inline adv_vec adv_elementary_exps(adv_vec x) {
        const adv_vec shift = adv_set(6755399441055744.0), most = adv_set(709.79), least = adv_set(-745.14), one = adv_set(1.0);
        const adv_mask number = x == x;
        const adv_vec given = (adv_vec)(number & (adv_mask)x);
        adv_vec held = adv_if_gt(given, most, one, adv_if_gt(least, given, one, given)), scaled, n, half, r, p;
        scaled = held * adv_set(1.4426950408889634074) + adv_set(0.5);
        n = (scaled + shift) - shift;
        n = n - adv_if_gt(n, scaled, one, adv_set(0.0)); /* rounded down */
        r = (held - n * adv_set(ADV_LN2_HIGH)) - n * adv_set(ADV_LN2_LOW);
        ADV_EXP_TAIL(adv_set)
        p = one + (r + r * r * p);
        half = adv_set(0.5) * n + shift;
        n = (n - (half - shift)) + shift;
        p = p * (adv_vec)(((adv_mask)half + 1023) << 52) * (adv_vec)(((adv_mask)n + 1023) << 52);
        p = adv_if_gt(given, most, adv_set(INFINITY), adv_if_gt(least, given, adv_set(0.0), p));
        return (adv_vec)((number & (adv_mask)p) | (~number & (adv_mask)x));
      }
    #endif
    static inline double adv_elementary_expm1(double x) {
      if (fabs(x) < 0.35) return x + x * x * adv_exp_tail(x);
      return adv_elementary_exp(x) - 1.0;
    }
    /* x = 2^e (1 + f) > 0 with 1 + f between the roots of 1/2 and 2: e, and f */
    static inline double adv_split(double x, double *e) {
      int64_t bits;
      double m, moved = 0.0;
      if (x < 2.2250738585072014e-308) { x *= 18014398509481984.0; moved = -54.0; } /* subnormal: times 2^54 */
      memcpy(&bits, &x, 8);
      *e = moved + (double)((bits >> 52) - 1023);
      bits = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
      memcpy(&m, &bits, 8);
      if (m > 1.4142135623730951) { m *= 0.5; *e += 1.0; }
      return m - 1.0;
    }
    /* 2/3 z + 2/5 z^2 + ... of z = s^2: log((1 + s)/(1 - s)) = 2 s + s times this */
    static inline double adv_log_tail(double z) {
      double p = 2.0 / 25.0;
      p = p * z + 2.0 / 23.0; p = p * z + 2.0 / 21.0; p = p * z + 2.0 / 19.0; p = p * z + 2.0 / 17.0; p = p * z + 2.0 / 15.0; p = p * z + 2.0 / 13.0;
      p = p * z + 2.0 / 11.0; p = p * z + 2.0 / 9.0; p = p * z + 2.0 / 7.0; p = p * z + 2.0 / 5.0; p = p * z + 2.0 / 3.0;
      return p * z;
    }
    static inline double adv_elementary_log(double x) {
      double e, f, s, square;
      if (x != x || x == INFINITY) return x;
      if (x <= 0.0) return x == 0.0 ? -INFINITY : NAN;
      f = adv_split(x, &e);
      s = f / (2.0 + f);
      square = 0.5 * f * f;
      return e * ADV_LN2_HIGH - ((square - (s * (square + adv_log_tail(s * s)) + e * ADV_LN2_LOW)) - f);
    }
    static inline double adv_elementary_log1p(double x) {
      double u = 1.0 + x;
      if (u == 1.0 || u != u || u == INFINITY) return x == -INFINITY ? NAN : x;
      return u <= 0.0 ? adv_elementary_log(u) : adv_elementary_log(u) * (x / (u - 1.0)); /* the factor mends the rounding of u */
    }
    /* the product a b as a sum of two numbers, without a fused instruction */
    static inline double adv_product(double a, double b, double *rest) {
      double p = a * b, c = 134217729.0 * a, d = 134217729.0 * b, ah = c - (c - a), bh = d - (d - b), al = a - ah, bl = b - bh;
      *rest = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
      return p;
    }
    static inline double adv_elementary_pow(double x, double y) {
      double e, f, s, rest, low, high, t, product, result, size = fabs(y);
      if (y == 0.0 || x == 1.0) return 1.0;
      if (!(x > 0.0) || x == INFINITY || !(size < 1e300)) { /* signs, zeros, infinities and NaN have exact answers, but for negative x */
        if (x < 0.0 && x > -INFINITY && size < 1e300)
          return y != floor(y) ? NAN : 0.5 * y != floor(0.5 * y) ? -adv_elementary_pow(-x, y) : adv_elementary_pow(-x, y);
        return pow(x, y);
      }
      if (size <= 16.0 && size == floor(size)) { /* exact where the power of a whole number is */
        result = 1.0;
        for (int n = (int)size; n > 0; n >>= 1) { if (n & 1) result *= x; x *= x; }
        return y > 0.0 ? result : 1.0 / result;
      }
      f = adv_split(x, &e);
      s = f / (2.0 + f);
      /* the quotient's rest: f - s (2 + f), where 2 + f itself is rounded */
      t = 2.0 + f;
      product = adv_product(s, t, &rest);
      low = (((f - product) - rest) - s * (f - (t - 2.0))) / t;
      high = e * ADV_LN2_HIGH;
      t = high + 2.0 * s;
      low = (e == 0.0 ? 0.0 : (high - t) + 2.0 * s) + (2.0 * low + s * adv_log_tail(s * s) + e * ADV_LN2_LOW);
      product = t + low;
      low = (t - product) + low;
      high = adv_product(product, y, &rest);
      low = rest + low * y;
      if (high > 745.2 || high < -745.2) return adv_elementary_exp(high);
      result = adv_elementary_exp(high);
      return result == 0.0 || result == INFINITY ? result : result + result * low;
    }
    static inline double adv_polynomial(const double *c, int n, double x) { /* c[0] x^n + ... + c[n] */
      double p = c[0];
      for (int i = 1; i <= n; i++) p = p * x + c[i];
      return p;
    }
    static inline double adv_elementary_erfc(double x) {
      static const double
        a[5] = {1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3},
        b[5] = {1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3},
        c[9] = {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
                8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3},
        d[9] = {1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3, 3.29079923573345963e3,
                4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3},
        p[6] = {1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1, 1.60837851487422766e-2,
                6.58749161529837803e-4},
        q[6] = {1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3};
      double y = fabs(x), square = x * x, cut, tail;
      if (x != x) return x;
      if (y <= 0.46875) return 1.0 - x * (adv_polynomial(a, 4, square) / adv_polynomial(b, 4, square));
      if (y > 27.3) return x < 0.0 ? 2.0 : 0.0;
      if (y <= 4.0) {
        tail = adv_polynomial(c, 8, y) / adv_polynomial(d, 8, y);
      } else {
        square = 1.0 / square;
        tail = (5.6418958354775628695e-1 - square * (adv_polynomial(p, 5, square) / adv_polynomial(q, 5, square))) / y; /* 1/sqrt(pi) */
      }
      cut = floor(16.0 * y) / 16.0; /* its square is exact */
      tail *= adv_elementary_exp(-cut * cut) * adv_elementary_exp(-(y - cut) * (y + cut));
      return x < 0.0 ? 2.0 - tail : tail;
    }
    static inline double adv_elementary_normal(double z) { return 0.5 * adv_elementary_erfc(-z * 0.70710678118654752440); }
    #endif
    """
    double exp "adv_elementary_exp"(double x) noexcept nogil
    vec exps "adv_elementary_exps"(vec x) noexcept nogil
    double expm1 "adv_elementary_expm1"(double x) noexcept nogil
    double log "adv_elementary_log"(double x) noexcept nogil
    double log1p "adv_elementary_log1p"(double x) noexcept nogil
    double pow "adv_elementary_pow"(double x, double y) noexcept nogil
    double normal "adv_elementary_normal"(double z) noexcept nogil  # the distribution function
