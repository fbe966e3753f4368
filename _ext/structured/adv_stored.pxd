# Stored labels of one example with weights alpha and values: where a new one goes, and between which two mass moves. Chains and trees share it.

from libc.math cimport fabs

cdef enum:
    SPARE = 8        # stored labels of an example from which on one without mass makes room for a new one


cdef inline bint is_new(const double *value, int used, double best) noexcept nogil:
    """Whether a label of the value ``best`` lies above all stored ones, by more than rounding."""
    cdef int u, top = 0
    for u in range(used):
        if value[u] > value[top]:
            top = u
    return best > value[top] + 1e-12 * (1.0 + fabs(best))


cdef inline int room_for(const double *alpha, const double *value, int *used, Py_ssize_t P) noexcept nogil:
    """Return the place of a new label: the worst one without mass, or one more, which ``used`` counts; -1 where all P are taken."""
    cdef int u, place = -1
    if used[0] >= SPARE or used[0] >= P:
        for u in range(1, used[0]):
            if alpha[u] == 0.0 and (place < 0 or value[u] < value[place]):
                place = u
    if place < 0 and used[0] < P:
        place = used[0]
        used[0] += 1
    return place


cdef inline double violated_pair(const double *alpha, const double *value, int used, int *high, int *low) noexcept nogil:
    """Set the label of the largest value, and that of the least among those with mass; return the difference of their values."""
    cdef int u
    high[0], low[0] = 0, -1
    for u in range(used):
        if value[u] > value[high[0]]:
            high[0] = u
        if alpha[u] > 0.0 and (low[0] < 0 or value[u] < value[low[0]]):
            low[0] = u
    return value[high[0]] - value[low[0]] if low[0] >= 0 and low[0] != high[0] else -1.0
