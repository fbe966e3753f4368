# The block step of a family that has only an oracle: a few Frank-Wolfe steps with exact line search on
#   c(r') + f.r' - w/2 |r' - r|^2,
# where the scores move to f - w (r' - r) and the offset of the running point is raised to its best value after every step
# (Lacoste-Julien et al. 2013, block-coordinate Frank-Wolfe; several inner steps per visit touch the data once).

from adv_family cimport Family, FIXED

cdef enum:
    INNER_STEPS = 5


cdef inline double frank_wolfe_step(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil:
    # the oracle and the offset may use the first four scratch vectors
    cdef double *moved = s.work + 4 * s.kp
    cdef double *vertex = s.work + 5 * s.kp
    cdef double value, c, first = 0.0, gap, square, step, change
    cdef int j, inner, k = s.k
    for j in range(s.kp):
        out[j] = r[j]
        moved[j] = f[j]
    for inner in range(INNER_STEPS):
        value = s.oracle(s, moved, y, vertex, &c)
        gap = value - s.offset(s, out, y)
        square = 0.0
        for j in range(k):
            gap -= moved[j] * out[j]
            square += (vertex[j] - out[j]) * (vertex[j] - out[j])
        if inner == 0:
            first = gap
        if gap <= skip or gap <= 1e-3 * first:
            break
        step = 1.0 if gap >= w * square else gap / (w * square)
        for j in range(k):
            change = step * (vertex[j] - out[j])
            out[j] += change
            moved[j] -= w * change
        if step == 1.0 and square == 0.0:
            break
    if state != NULL:
        for j in range(k):
            state[j] = FIXED
    return first
