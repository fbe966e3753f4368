# Losses whose columns are convex in the prediction: one one-dimensional oracle and one exact block for all of them.
#
# The predictor needs only two adjacent labels (Jensen), so with Ltilde(r, j) the linear interpolation of L in its row
#   V(f) = min over r in [0, l-1] of max_j f_j + Ltilde(r, j)                                                             (1)
# is the minimum of a convex piecewise linear function; the adversary has at most two atoms. The block
#   phi(r) = max over q of (f + Ltilde(r, .)).q - w/2 |q - q0|^2,  phi'(r) = q(r).(L_{a+1} - L_a) on [a, a+1]             (2)
# is convex in r, one projection on the simplex an evaluation (docs/notes/oracles.md, section 5). Absolute and squared loss have
# closed forms of (1): Fathony et al. 2018, Theorem 6, and for squared loss the upper hull of the points (j, f_j + j^2).

from libc.math cimport INFINITY, floor, fabs
from libc.string cimport memset

from adv_simd cimport vec, load, store, splat, vmax, LANES, maximum, dot, threshold
from adv_family cimport Family, FIXED, FREE
from adv_matrix cimport given_matrix, matrix_of
from adv_zero_one cimport normalise, shift


cdef inline double column_offset(Family *s, const double *q) noexcept nogil:
    """G(q) = min over rows of (Lq)_row; the rows' values are convex in the row, so bisection on their differences finds it."""
    cdef int low = 0, high = s.l - 1, middle
    cdef double here, there
    while low < high:
        middle = (low + high) // 2
        here = dot(s.matrix + <Py_ssize_t>middle * s.kp, q, s.kp)
        there = dot(s.matrix + <Py_ssize_t>(middle + 1) * s.kp, q, s.kp)
        if here <= there:
            high = middle
        else:
            low = middle + 1
    return dot(s.matrix + <Py_ssize_t>low * s.kp, q, s.kp)


cdef inline void distribution(Family *s, const double *r, Py_ssize_t y, double *q) noexcept nogil:
    """q = r + e_y."""
    cdef int j
    for j in range(s.kp):
        q[j] = r[j]
    q[y] += 1.0


cdef inline double convex_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    distribution(s, r, y, s.work)
    return column_offset(s, s.work)


cdef inline double column_answer(Family *s, const double *b, double *q) noexcept nogil:
    """Solve (1) for scores b: return V and write the adversary's q (length kp)."""
    cdef int k = s.k, low = 0, high = s.l - 1, middle, j, up, down, at, pass_, found
    cdef double top, slope, best, t, value, left_value, left_slope, right_value, right_slope, scale
    for j in range(s.kp):
        q[j] = 0.0
    # the smallest prediction at which (1) no longer falls to the right
    while low < high:
        middle = (low + high) // 2
        here = s.matrix + <Py_ssize_t>middle * s.kp
        there = here + s.kp
        top = -1.7976931348623157e308
        slope = 0.0
        for j in range(k):
            value = b[j] + here[j]
            if value > top or (value == top and there[j] - here[j] > slope):
                top = value
                slope = there[j] - here[j]
        if slope < 0.0:
            low = middle + 1
        else:
            high = middle
    at = low
    here = s.matrix + <Py_ssize_t>at * s.kp
    top = -1.7976931348623157e308
    up = 0
    down = 0
    for j in range(k):
        top = max(top, b[j] + here[j])
    # among the labels that attain it at `at`: the one that falls most to the left, and the one that rises most to the right
    found = 0
    left_slope = 0.0
    right_slope = 0.0
    for j in range(k):
        if b[j] + here[j] == top:
            slope = here[j] - (here - s.kp)[j] if at > 0 else -1.0
            if not found or slope < left_slope:
                left_slope = slope
                down = j
            slope = (here + s.kp)[j] - here[j] if at < s.l - 1 else 1.0
            if not found or slope > right_slope:
                right_slope = slope
                up = j
            found = 1
    if left_slope <= 0.0:
        # the minimum is at the prediction `at` itself: q must make the rows' values fall before it and rise after it
        slope = (here + s.kp)[down] - here[down] if at < s.l - 1 else 1.0
        if slope >= 0.0 or up == down:
            q[down] = 1.0
            return top
        left_value = here[up] - (here - s.kp)[up] if at > 0 else -1.0
        if left_value <= 0.0:
            q[up] = 1.0
            return top
        # right slopes: slope < 0 for `down`, right_slope >= 0 for `up`; mix them to 0
        t = right_slope / (right_slope - slope)
        q[down] = t
        q[up] += 1.0 - t
        return top
    # the minimum lies inside (at - 1, at): the maximum of k lines, met by a falling and a rising one
    there = here
    here = there - s.kp
    best = -1.7976931348623157e308
    for j in range(k):  # the line that is on top at the left end
        value = b[j] + here[j]
        if value > best or (value == best and there[j] - here[j] > there[up] - here[up]):
            best = value
            up = j
    left_value = best
    left_slope = there[up] - here[up]
    right_value = b[down] + here[down]  # the rising line, continued to the left end
    right_slope = there[down] - here[down]
    for pass_ in range(2 * k + 4):
        t = (left_value - right_value) / (right_slope - left_slope)
        t = min(max(t, 0.0), 1.0)
        best = left_value + t * left_slope
        scale = 1e-15 * (1.0 + fabs(left_value) + fabs(left_slope))
        top = best
        found = -1
        for j in range(k):
            value = b[j] + here[j] + t * (there[j] - here[j])
            if value > top + scale:
                top = value
                found = j
        if found < 0:
            break
        slope = there[found] - here[found]
        if slope < 0.0:
            up = found
            left_value = b[found] + here[found]
            left_slope = slope
        else:
            down = found
            right_value = b[found] + here[found]
            right_slope = slope
            if slope == 0.0:
                break
    t = right_slope / (right_slope - left_slope)
    q[up] = t
    q[down] += 1.0 - t
    return best


cdef inline double convex_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef double *b = s.work
    cdef double value
    cdef int j
    shift(s, f, b, s.kp)
    column_answer(s, b, r)
    value = column_offset(s, r)
    c[0] = value
    for j in range(s.k):
        if r[j] != 0.0:
            value += r[j] * b[j]
    r[y] -= 1.0
    return value - b[y]


cdef inline double project(const double *z, int kp, double w, double *q) noexcept nogil:
    """q = projection of z/w on the simplex (z padded with -inf); return the sum before normalising, 1 up to rounding."""
    cdef int j
    cdef double top = maximum(z, kp)
    cdef double t = threshold(z, kp, top - w, w)
    cdef vec level = splat(t), scale = splat(1.0 / w), zero = splat(0.0)
    for j in range(kp // LANES):
        store(q, j, vmax(load(z, j) - level, zero) * scale)
    return normalise(q, kp)


cdef inline double column_slope(Family *s, const double *q, int a) noexcept nogil:
    """q.(L_{a+1} - L_a)."""
    cdef const double *row = s.matrix + <Py_ssize_t>a * s.kp
    return dot(row + s.kp, q, s.kp) - dot(row, q, s.kp)


cdef inline bint ends_at_vertex(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double least, double skip, double *out, signed char *state, double *gap) noexcept nogil:
    """Write the block gap, and the oracle's answer to out; return whether that is the step: no gap above ``skip``, or hardly any curvature, w <= ``least``.

    A step of curvature whose gap no caller reads, ``skip`` = -infinity, takes neither.
    """
    cdef double c, rest
    cdef int j
    if w > least and skip == -INFINITY:
        gap[0] = INFINITY
        return False
    rest = s.oracle(s, f, y, out, &c) - s.offset(s, r, y)  # both use the first four scratch vectors
    for j in range(s.k):
        rest -= (f[j] - f[y]) * r[j]
    gap[0] = rest
    if rest <= skip:
        return True
    if not w > least and state != NULL:
        memset(state, FIXED, s.k)
    return not w > least


cdef inline double convex_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    cdef int j, k = s.k, kp = s.kp, a, walk, iteration, inside = 0, heading = 0
    cdef double *b = s.work
    cdef double *z = s.work + kp       # f + w q0 + Ltilde(r, .)
    base, q0 = s.work + 2 * kp, s.work + 3 * kp
    cdef double c, gap, total = 1.0, slope, t, low, high, sum_, square, active, d, now
    if ends_at_vertex(s, f, r, y, w, 1e-280, skip, out, state, &gap):
        return gap
    shift(s, f, b, s.kp)
    distribution(s, r, y, q0)
    for j in range(kp // LANES):
        store(base, j, load(b, j) + splat(w) * load(q0, j))
    # start from the mean position of the old distribution and walk to the interval that holds the minimum of (2)
    now = 0.0
    for j in range(k):
        now += q0[j] * j
    now = now * (s.l - 1) / max(k - 1, 1)
    a = <int>min(now, <double>(s.l - 1)) if now > 0.0 else 0  # a NaN is no position
    for walk in range(2 * s.l + 2):
        row = s.matrix + <Py_ssize_t>a * kp
        for j in range(kp // LANES):
            store(z, j, load(base, j) + load(row, j))
        total = project(z, kp, w, out)
        if a < s.l - 1 and column_slope(s, out, a) < 0.0:
            if heading < 0:          # it falls to the right of a, and rose to the left of a + 1
                inside = 1
                break
            heading = 1
            a += 1
        elif a > 0 and column_slope(s, out, a - 1) > 0.0:
            a -= 1
            if heading > 0:          # it rises to the left of here, and fell to the right of a
                inside = 1
                break
            heading = -1
        else:
            break
    if inside:
        # phi'(a + t) = q(t).d with d = L_{a+1} - L_a is piecewise linear and rising in t: Newton inside a bracket
        row = s.matrix + <Py_ssize_t>a * kp
        low = 0.0
        high = 1.0
        t = 0.5
        for iteration in range(100):
            for j in range(k):
                z[j] = base[j] + row[j] + t * (row[kp + j] - row[j])
            total = project(z, kp, w, out)
            sum_ = square = active = slope = 0.0
            for j in range(k):
                if out[j] > 0.0:
                    d = row[kp + j] - row[j]
                    slope += out[j] * d
                    sum_ += d
                    square += d * d
                    active += 1.0
            if slope > 0.0:
                high = t
            else:
                low = t
            square = (square - sum_ * sum_ / active) / w
            now = t - slope / square if square > 0.0 else 0.5 * (low + high)
            if not (low < now < high):
                if now == t:
                    break
                now = 0.5 * (low + high)
                if now == low or now == high:
                    break
            if fabs(now - t) <= 4e-16:
                break
            t = now
        if normal != NULL:
            for j in range(k):
                normal[j] = row[kp + j] - row[j]
    if not (0.999 < total < 1.001):
        s.oracle(s, f, y, out, &c)
        return gap
    if state != NULL:
        for j in range(k):
            state[j] = FREE if out[j] > 0.0 else FIXED
    out[y] -= 1.0
    return gap


cdef inline double absolute_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    """E |m - J| at the median m of q."""
    cdef int j, k = s.k, m = k - 1
    cdef double mass = 0.0, value = 0.0, other = 0.0, q
    for j in range(k):
        mass += r[j] + (1.0 if j == y else 0.0)
        if mass >= 0.5:
            m = j
            break
    for j in range(k):
        q = r[j] + (1.0 if j == y else 0.0)
        value += q * (m - j if m > j else j - m)
        other += q * (m + 1 - j if m + 1 > j else j - m - 1)
    return min(value, other) if m + 1 < k else value


cdef inline double absolute_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    cdef int j, k = s.k, i = 0, e = 0
    cdef double top = -1.7976931348623157e308, other = -1.7976931348623157e308, value
    for j in range(s.kp):
        r[j] = 0.0
    for j in range(k):
        value = (f[j] - f[y]) - j
        if value > top:
            top = value
            i = j
        value = (f[j] - f[y]) + j
        if value > other:
            other = value
            e = j
    r[i] += 0.5
    r[e] += 0.5
    r[y] -= 1.0
    c[0] = 0.5 * (e - i if e > i else i - e)
    return 0.5 * (top + other)


cdef inline double squared_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    """E (m - J)^2 at the whole number m nearest to the mean of q."""
    cdef int j, k = s.k
    cdef double mean = 0.0, value = 0.0, m, q
    for j in range(k):
        mean += (r[j] + (1.0 if j == y else 0.0)) * j
    m = min(max(floor(mean + 0.5), 0.0), <double>(k - 1))
    for j in range(k):
        q = r[j] + (1.0 if j == y else 0.0)
        value += q * (m - j) * (m - j)
    return value


cdef inline double squared_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    """Walk along the upper hull of (j, f_j + j^2) to the mean that maximises hull - h, h(mu) = max over whole r of 2 r mu - r^2."""
    cdef int j, k = s.k, size = 0, i, e, left = -1, right = -1
    cdef double *g = s.work
    cdef double *hull = s.work + s.kp     # label numbers of the hull
    cdef double slope, mean = 0.0, share, low, value
    for j in range(s.kp):
        r[j] = 0.0
    for j in range(k):
        g[j] = (f[j] - f[y]) + <double>j * j
        while size >= 2:
            i = <int>hull[size - 2]
            e = <int>hull[size - 1]
            # e lies under the chord from i to j
            if (g[e] - g[i]) * (j - i) <= (g[j] - g[i]) * (e - i):
                size -= 1
            else:
                break
        hull[size] = j
        size += 1
    left = <int>hull[0]
    for i in range(size - 1):
        j = <int>hull[i]
        e = <int>hull[i + 1]
        slope = (g[e] - g[j]) / (e - j)
        mean = floor(0.5 * slope) + 0.5       # where 2 round(mu) passes the slope of this edge
        left = j
        if mean <= j:
            break
        if mean < e:
            right = e
            break
        left = e
    if right < 0:
        r[left] = 1.0
        c[0] = 0.0
        value = f[left] - f[y]
    else:
        share = (mean - left) / (right - left)
        r[left] = 1.0 - share
        r[right] = share
        low = mean - 0.5
        c[0] = (1.0 - share) * (low - left) * (low - left) + share * (low - right) * (low - right)
        value = c[0] + (1.0 - share) * (f[left] - f[y]) + share * (f[right] - f[y])
    r[y] -= 1.0
    return value


cdef inline double absolute_cost(Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    return i - j if i > j else j - i


cdef inline double squared_cost(Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    return <double>(i - j) * (i - j)


cdef inline int bind_convex(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.offset, s.step = convex_oracle, convex_offset, convex_step
    return given_matrix(s, parameters, n_parameters, 0)


cdef inline int bind_absolute(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.offset, s.step = absolute_oracle, absolute_offset, convex_step
    return matrix_of(s, absolute_cost)


cdef inline int bind_squared(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    s.oracle, s.offset, s.step = squared_oracle, squared_offset, convex_step
    return matrix_of(s, squared_cost)
