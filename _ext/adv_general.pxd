# Any l x k loss matrix: the inner linear program by a stateless small simplex method (performance note, item 4).
#
#   maximise f.q + v   subject to   v <= (Lq)_i for every prediction i,  q a distribution       (Fathony et al. 2018, eq. 11)
#
# Its feasible set does not depend on f and every (e_j, min_i L_ij) is a vertex, so a dense dictionary written down at the best single
# label needs few pivots, no first phase and no memory: thread-safe and reproducible. Largest gain enters; Bland's rule after
# l + k steps without progress. Scores more than twice the spread of L below the best cannot matter and are cut there. The readable
# version is advcli/losses/general.py.

from libc.math cimport fabs

from adv_simd cimport LANES, load, store, splat, vec
from adv_family cimport Family
from adv_convex cimport distribution
from adv_simd cimport dot

cdef enum:
    STALLED = -1


cdef inline Py_ssize_t general_extra(int l, int k) noexcept nogil:
    """Doubles of scratch: the dictionary (l + 1) x (k + 1) and the two lists of variables."""
    return <Py_ssize_t>(l + 1) * (k + 1) + 2 * (l + k + 2)


cdef inline int solve_game(Family *s, const double *f, double *q, double *p) noexcept nogil:
    """Write the adversary's q (kp) and, unless NULL, the predictor's p (l); return the pivots, or STALLED."""
    cdef int k = s.k, l = s.l, start = 0, tight = 0, i, j, row, enter, leave, stalled = 0, pivots = 0, width = k + 1, limit = 50 * (l + k) + 100
    cdef double *table = s.extra + <Py_ssize_t>l * s.kp
    cdef double *outside = table + <Py_ssize_t>(l + 1) * width
    cdef double *inside = outside + k + 1
    cdef const double *L = s.matrix
    cdef double unit = s.unit, least, step, gain, ratio, head, factor, mass
    cdef double *current
    cdef double *other
    for j in range(1, k):
        if f[j] > f[start]:
            start = j
    for i in range(1, l):
        if L[<Py_ssize_t>i * s.kp + start] < L[<Py_ssize_t>tight * s.kp + start]:
            tight = i
    # Variables: q_j is number j, the slack s_i = (Lq)_i - v is number k + i. A row of the dictionary says: basic = constant - coefficients . non-basic.
    row = 0
    for j in range(k):
        if j != start:
            outside[row] = j
            row += 1
    outside[k - 1] = k + tight
    inside[0] = start
    row = 1
    for i in range(l):
        if i != tight:
            inside[row] = k + i
            row += 1
    for j in range(k - 1):
        table[j] = 1.0
    table[k - 1] = 0.0
    table[k] = 1.0
    for row in range(1, l):
        i = <int>inside[row] - k
        current = table + <Py_ssize_t>row * width
        head = (L[<Py_ssize_t>i * s.kp + start] - L[<Py_ssize_t>tight * s.kp + start]) / unit
        for j in range(k - 1):
            enter = <int>outside[j]
            current[j] = head - (L[<Py_ssize_t>i * s.kp + enter] - L[<Py_ssize_t>tight * s.kp + enter]) / unit
        current[k - 1] = -1.0
        current[k] = head
    current = table + <Py_ssize_t>l * width
    for j in range(k - 1):
        enter = <int>outside[j]
        current[j] = max((f[enter] - f[start]) / unit, -2.0) + (L[<Py_ssize_t>tight * s.kp + enter] - L[<Py_ssize_t>tight * s.kp + start]) / unit
    current[k - 1] = -1.0
    current[k] = 0.0
    while True:
        current = table + <Py_ssize_t>l * width
        enter = -1
        gain = 1e-12
        for j in range(k):
            if stalled > l + k:
                if current[j] > 1e-12 and (enter < 0 or outside[j] < outside[enter]):
                    enter = j
            elif current[j] > gain:
                gain = current[j]
                enter = j
        if enter < 0:
            break
        if pivots == limit:
            pivots = STALLED
            break
        gain = current[enter]
        leave = -1
        step = 0.0
        for row in range(l):
            head = table[<Py_ssize_t>row * width + enter]
            if head > 1e-12:
                ratio = max(table[<Py_ssize_t>row * width + k], 0.0) / head
                if leave < 0 or ratio < step * (1.0 - 1e-14):
                    step = ratio
                    leave = row
                elif ratio <= step * (1.0 + 1e-14):
                    if (inside[row] < inside[leave]) if stalled > l + k else (head > table[<Py_ssize_t>leave * width + enter]):
                        step = min(step, ratio)
                        leave = row
        if leave < 0:
            pivots = STALLED
            break
        stalled = stalled + 1 if step * gain <= 1e-12 else 0
        # exchange the basic variable of `leave` and the non-basic variable of `enter`
        other = table + <Py_ssize_t>leave * width
        head = 1.0 / other[enter]
        for j in range(width):
            other[j] *= head
        other[enter] = head
        for row in range(l + 1):
            if row != leave:
                current = table + <Py_ssize_t>row * width
                factor = current[enter]
                if factor != 0.0:
                    current[enter] = 0.0
                    for j in range(width):
                        current[j] -= factor * other[j]
        head = inside[leave]
        inside[leave] = outside[enter]
        outside[enter] = head
        pivots += 1
    for j in range(s.kp):
        q[j] = 0.0
    mass = 0.0
    for row in range(l):
        if inside[row] < k:
            head = max(table[<Py_ssize_t>row * width + k], 0.0)
            q[<int>inside[row]] = head
            mass += head
    for j in range(k):
        q[j] /= mass
    if p != NULL:
        mass = 0.0
        for i in range(l):
            p[i] = 0.0
        current = table + <Py_ssize_t>l * width
        for j in range(k):
            if outside[j] >= k:
                head = max(-current[j], 0.0)
                p[<int>outside[j] - k] = head
                mass += head
        for i in range(l):
            p[i] /= mass
    return pivots


cdef inline double general_offset(Family *s, const double *r, Py_ssize_t y) noexcept nogil:
    cdef double *q = s.work
    cdef double least, value
    cdef int i
    distribution(s, r, y, q)
    least = dot(s.matrix, q, s.kp)
    for i in range(1, s.l):
        value = dot(s.matrix + <Py_ssize_t>i * s.kp, q, s.kp)
        least = min(least, value)
    return least


cdef inline double general_oracle(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil:
    """The value is c + f.r at the simplex's q: a lower bound of S that is exact when the dictionary is optimal."""
    cdef double value, least
    cdef int i, j
    solve_game(s, f, r, NULL)
    value = dot(s.matrix, r, s.kp)
    for i in range(1, s.l):
        least = dot(s.matrix + <Py_ssize_t>i * s.kp, r, s.kp)
        value = min(value, least)
    c[0] = value
    for j in range(s.k):
        if r[j] != 0.0:
            value += r[j] * (f[j] - f[y])
    r[y] -= 1.0
    return value
