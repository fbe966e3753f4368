# From a kind (a small number that adv_families.pxd gives a name) to a bound Family with its scratch memory.

from libc.stdlib cimport free
from libc.math cimport INFINITY

from adv_simd cimport LANES, zeros
from adv_family cimport Family, WORK
from adv_families cimport bind_family

cdef enum:
    MOST_CLASSES = 1 << 24   # so that no count of scratch numbers leaves an int


cdef inline int padded(int k) noexcept nogil:
    """k rounded up to whole vectors, at least four numbers."""
    cdef int width = LANES if LANES > 4 else 4
    return (k + width - 1) // width * width


cdef inline int family_new(Family *s, int kind, int k, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """Fill ``s`` for ``kind``; return 0, -1 when memory is short, -2 for an unknown kind, -3 for wrong parameters, -4 for too few or too many classes. Release with `family_free`."""
    cdef int j
    s.work = NULL
    s.extra = NULL
    if not 1 <= k <= MOST_CLASSES:
        return -4
    s.k = k
    s.kp = padded(k)
    s.l = k
    s.alpha = 0.0
    s.unit = 1.0
    s.matrix = NULL
    s.hint = NULL
    s.tight = NULL
    s.gaps = NULL
    s.value = NULL
    block = zeros((WORK + 3) * s.kp)
    s.work = block
    if block == NULL:
        return -1
    for j in range(k, s.kp):
        block[WORK * s.kp + j] = -INFINITY
    s.mask = block + WORK * s.kp
    block[(WORK + 2) * s.kp] = 1.0
    s.corner = block + (WORK + 2) * s.kp
    return bind_family(s, kind, parameters, n_parameters)


cdef inline void family_free(Family *s) noexcept nogil:
    free(s.work)
    free(s.extra)
    s.work = NULL
    s.extra = NULL
