# Any l x k loss matrix: the inner linear program by a stateless small simplex method (docs/notes/oracles.md, section 7).
#
#   maximise f.q + v   subject to   v <= (Lq)_i for every prediction i,  q a distribution       (Fathony et al. 2018, eq. 11)
#
# Its feasible set does not depend on f and every (e_j, min_i L_ij) is a vertex, so a dense dictionary written down at the best single
# label needs few pivots, no first phase and no memory: thread-safe and reproducible. Largest gain enters; Bland's rule after
# l + k steps without progress. Scores more than twice the spread of L below the best cannot matter and are cut there. The readable
# version is advcli/losses/general.py.

from libc.math cimport fabs, sqrt

from adv_family cimport Family, FIXED, FREE
from adv_convex cimport distribution, ends_at_vertex
from adv_matrix cimport given_matrix
from adv_simd cimport dot

cdef enum:
    STALLED = -1


cdef inline Py_ssize_t general_extra(int l, int k) noexcept nogil:
    """Doubles of scratch: the dictionary (l + 1) x (k + 1) and the two lists of variables; then the block step's."""
    return simplex_extra(l, k) + block_extra(l, k)


cdef inline Py_ssize_t simplex_extra(int l, int k) noexcept nogil:
    return <Py_ssize_t>(l + 1) * (k + 1) + 2 * (l + k + 2)


cdef inline Py_ssize_t block_extra(int l, int k) noexcept nogil:
    cdef Py_ssize_t width = k + 8, most = (l if l < k else k) + 1  # tight rows are independent: no more than labels
    return most * width + most * most + 2 * most + 3 * l + 3 * width


cdef inline int solve_game(Family *s, const double *f, double *q, double *p) noexcept nogil:
    """Write the adversary's q (kp) and, unless NULL, the predictor's p (l); return the pivots, or STALLED."""
    cdef int k = s.k, l = s.l, start = 0, tight = 0, i, j, row, enter, leave, stalled = 0, pivots = 0, width = k + 1, limit = 50 * (l + k) + 100
    cdef double *table = s.extra + <Py_ssize_t>l * s.kp
    cdef double *outside = table + <Py_ssize_t>(l + 1) * width
    inside, L = outside + k + 1, s.matrix
    cdef double unit = s.unit, step, gain, ratio, head, factor, mass
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


cdef inline int cholesky_solve(double *G, double *x, int m) noexcept nogil:
    """Solve G x = x in place, G (m, m) positive definite, lower triangle overwritten; 0, or j + 1 where row j depends on those before."""
    cdef int i, j, c
    cdef double t, first
    for j in range(m):
        first = G[j * m + j]
        t = first
        for c in range(j):
            t -= G[j * m + c] * G[j * m + c]
        if not t > 1e-13 * first:
            return j + 1
        t = sqrt(t)
        G[j * m + j] = t
        for i in range(j + 1, m):
            first = G[i * m + j]
            for c in range(j):
                first -= G[i * m + c] * G[j * m + c]
            G[i * m + j] = first / t
    for i in range(m):
        for c in range(i):
            x[i] -= G[i * m + c] * x[c]
        x[i] /= G[i * m + i]
    for i in range(m - 1, -1, -1):
        for c in range(i + 1, m):
            x[i] -= G[c * m + i] * x[c]
        x[i] /= G[i * m + i]
    return 0


cdef inline int solve_block(Family *s, const double *f, const double *q0, double w, double *q) noexcept nogil:
    """Write argmax over distributions q of min_i (Lq)_i + f.q - w/2 |q - q0|^2, and flag the tight rows in s.tight; return the iterations.

    A primal active-set method on (q, v), v <= (Lq)_i: the working set holds the labels at 0 and the tight rows; on it the optimum is a
    small positive definite system. From q0 every iterate is feasible and no worse than the one before, so that also an early end, after
    a limit that only degenerate cycles reach (-1), is a step upwards. The readable version is `matrix_block` of tests/support/python_dual.py.
    """
    cdef int k = s.k, kp = s.kp, l = s.l, width = k + 8, most = (l if l < k else k) + 1
    cdef int i, j, a, c, m = 1, size = 0, base, worst, kind, iterations = 0, limit = 20 * (l + k) + 50, stalled = 0
    cdef double *D = s.extra + <Py_ssize_t>l * kp + simplex_extra(l, k)   # (most, width) rows L_t - L_base over the labels in use, centred
    cdef double *G = D + <Py_ssize_t>most * width
    cdef double *x = G + <Py_ssize_t>most * most
    cdef double *rows = x + most           # the tight rows, rows[0] the base
    cdef double *slack = rows + most       # (l) (L_i - L_base).q
    cdef double *slope = slack + l         # (l) the same for the direction
    cdef double *held = slope + l          # (l) 1 for tight rows, 2 for those that depend on them
    cdef double *used = held + l           # (width) 1 for labels off 0
    cdef double *move = used + width
    cdef double *pull = move + width       # f + w q0 + L'p, what q follows
    cdef const double *L = s.matrix
    cdef double mean = 0.0, t, step, largest, largest_move, scale, value, mu, ratio, share, rounding, noise
    scale = s.unit + w
    largest = f[0]
    for j in range(1, k):
        largest = max(largest, f[j])
    for j in range(k):
        q[j] = q0[j] if q0[j] > 0.0 else 0.0
        used[j] = 1.0 if q[j] > 0.0 else 0.0
        size += <int>used[j]
    for j in range(k, kp):
        q[j] = 0.0
    base = 0
    for i in range(l):
        slack[i] = dot(L + <Py_ssize_t>i * kp, q, kp)
        held[i] = 0.0
        if slack[i] < slack[base]:
            base = i
    rows[0] = base
    held[base] = 1.0
    value = slack[base]
    for i in range(l):
        slack[i] = max(slack[i] - value, 0.0)
    while iterations < limit:
        iterations += 1
        base = <int>rows[0]
        # the optimum on the working set: q = 1/size + (b + L_base + sum_s x_s D_s, centred) / w on the labels in use, D_s.q = 0
        mean = 0.0
        for j in range(k):
            if used[j] != 0.0:
                # scores relative to the best: a common level would cost digits
                pull[j] = (f[j] - largest) + w * q0[j] + L[<Py_ssize_t>base * kp + j]
                mean += pull[j]
        mean /= size
        for a in range(1, m):
            i = <int>rows[a]
            t = 0.0
            for j in range(k):
                if used[j] != 0.0:
                    t += L[<Py_ssize_t>i * kp + j] - L[<Py_ssize_t>base * kp + j]
            t /= size
            x[a] = -w * t
            for j in range(k):
                if used[j] != 0.0:
                    D[a * width + j] = L[<Py_ssize_t>i * kp + j] - L[<Py_ssize_t>base * kp + j] - t
                    x[a] -= D[a * width + j] * (pull[j] - mean)
                else:
                    D[a * width + j] = 0.0
            for c in range(1, a + 1):
                t = 0.0
                for j in range(k):
                    t += D[a * width + j] * D[c * width + j]
                G[(a - 1) * (m - 1) + c - 1] = t
        a = cholesky_solve(G, x + 1, m - 1) if m > 1 else 0
        if a != 0:
            # where labels have left, tight rows may depend on each other: such a row follows from the others, and must not end a step
            m -= 1
            held[<int>rows[a]] = 2.0
            rows[a] = rows[m]
            continue
        largest_move = 0.0
        rounding = 0.0  # of the sums that cancel in a move
        for j in range(k):
            if used[j] != 0.0:
                t = pull[j] - mean
                noise = fabs(t)
                for a in range(1, m):
                    t += x[a] * D[a * width + j]
                    noise += fabs(x[a] * D[a * width + j])
                move[j] = 1.0 / size + t / w - q[j]
                largest_move = max(largest_move, fabs(move[j]))
                rounding = max(rounding, noise)
            else:
                move[j] = 0.0
        noise = 1e-14 + 1e-15 * rounding / w
        if m < size and largest_move > noise:
            step = 1.0
            worst = -1
            kind = 0
            for j in range(k):
                # a label that rounding alone moves below 0 depends on the tight rows: its place in the working set would be one too many
                if move[j] < -noise and q[j] < -step * move[j]:
                    step = q[j] / -move[j]
                    worst = j
                    kind = 1
            for i in range(l):
                if held[i] == 0.0:
                    t = 0.0
                    for j in range(k):
                        t += (L[<Py_ssize_t>i * kp + j] - L[<Py_ssize_t>base * kp + j]) * move[j]
                    slope[i] = t
                    if t < -1e-14 * s.unit and slack[i] < -step * t:
                        step = slack[i] / -t
                        worst = i
                        kind = 2
                else:
                    slope[i] = 0.0
            for j in range(k):
                q[j] = max(q[j] + step * move[j], 0.0)
            for i in range(l):
                slack[i] = 0.0 if held[i] != 0.0 else max(slack[i] + step * slope[i], 0.0)
            stalled = 0 if step > 1e-14 else stalled + 1
            if kind == 1:
                q[worst] = 0.0
                used[worst] = 0.0
                size -= 1
            elif kind == 2:
                held[worst] = 1.0
                slack[worst] = 0.0
                if m == most:  # only rounding can ask for more rows than labels
                    break
                rows[m] = worst
                m += 1
            if kind != 0:
                continue
        # at the optimum of the working set: does a constraint have a multiplier of the wrong sign?
        t = 1.0
        for a in range(1, m):
            t -= x[a]
        x[0] = t
        worst = -1
        kind = 0
        share = -1e-12
        # in the same scale as the rows' multipliers: the part of the mass that wants to move
        mu = 0.0
        for j in range(k):
            if used[j] != 0.0:
                t = pull[j]
                for a in range(1, m):
                    t += x[a] * (L[<Py_ssize_t><int>rows[a] * kp + j] - L[<Py_ssize_t>base * kp + j])
                mu += t
        mu = (mu - w) / size
        for j in range(k):
            if used[j] == 0.0:
                t = (f[j] - largest) + w * q0[j] + L[<Py_ssize_t>base * kp + j] - mu
                for a in range(1, m):
                    t += x[a] * (L[<Py_ssize_t><int>rows[a] * kp + j] - L[<Py_ssize_t>base * kp + j])
                ratio = -t / scale
                if ratio < share:
                    share = ratio
                    worst = j
                    kind = 1
                    if stalled > l + k:
                        break
        # Bland's rule after a stall, labels before rows as where steps end: the lowest constraint goes, whatever its place among the tight rows
        for a in range(m):
            if m > 1 and kind != 1 and stalled > l + k:
                if x[a] < -1e-12 and (kind == 0 or rows[a] < rows[worst]):
                    worst = a
                    kind = 2
            elif m > 1 and stalled <= l + k and x[a] < share:
                share = x[a]
                worst = a
                kind = 2
        if kind == 0:
            break
        for i in range(l):
            if held[i] == 2.0:
                held[i] = 0.0
        if kind == 1:
            used[worst] = 1.0
            size += 1
        else:
            held[<int>rows[worst]] = 0.0
            m -= 1
            rows[worst] = rows[m]
    mean = 0.0
    for j in range(k):
        mean += q[j]
    for j in range(k):
        q[j] /= mean
    if s.tight != NULL:
        for i in range(l):
            s.tight[i] = 1 if held[i] == 1.0 else 0
    return iterations if iterations < limit else -1


cdef inline double general_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    cdef double *q0 = s.work + 4 * s.kp
    cdef double gap
    cdef int j
    if ends_at_vertex(s, f, r, y, w, 1e-10 * s.unit, skip, out, state, &gap):
        return gap
    distribution(s, r, y, q0)
    solve_block(s, f, q0, w, out)
    if state != NULL:
        for j in range(s.k):
            state[j] = FREE if out[j] > 0.0 else FIXED
    out[y] -= 1.0
    return gap


cdef inline int bind_general(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    cdef int l = <int>parameters[0] if n_parameters >= 1 and 1.0 <= parameters[0] < <double>n_parameters else 1
    s.oracle, s.offset, s.step = general_oracle, general_offset, general_step
    return given_matrix(s, parameters, n_parameters, general_extra(l, s.k))
