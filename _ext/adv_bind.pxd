# From a kind (a small number that advcli/compiled.py gives a name) to a bound Family with its scratch memory.

from libc.stdlib cimport calloc, free
from libc.math cimport INFINITY

from adv_family cimport Family, WORK
from adv_zero_one cimport zero_one_oracle, zero_one_offset, zero_one_step, cs_oracle, cs_offset, cs_step
from adv_hinge cimport ww_oracle, ww_offset, ww_step, llw_oracle, llw_offset, llw_step

cdef enum:
    ZERO_ONE = 0
    CS = 1
    WW = 2
    LLW = 3


cdef inline int padded(int k) noexcept nogil:
    return (k + 7) // 8 * 8


cdef inline int family_new(Family *s, int kind, int k, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """Fill ``s`` for ``kind``; return 0, or -1 when memory is short, -2 for an unknown kind. Release with `family_free`."""
    cdef int j
    cdef double *block
    s.k = k
    s.kp = padded(k)
    s.l = k
    s.alpha = 0.0
    s.matrix = NULL
    s.extra = NULL
    s.extra_size = 0
    s.exact = 1
    block = <double *>calloc((WORK + 1) * s.kp, sizeof(double))
    s.work = block
    if block == NULL:
        return -1
    for j in range(k, s.kp):
        block[WORK * s.kp + j] = -INFINITY
    s.mask = block + WORK * s.kp
    if kind == ZERO_ONE:
        s.oracle, s.offset, s.step = zero_one_oracle, zero_one_offset, zero_one_step
    elif kind == CS:
        s.oracle, s.offset, s.step = cs_oracle, cs_offset, cs_step
    elif kind == WW:
        s.oracle, s.offset, s.step = ww_oracle, ww_offset, ww_step
    elif kind == LLW:
        s.oracle, s.offset, s.step = llw_oracle, llw_offset, llw_step
    else:
        return -2
    return 0


cdef inline void family_free(Family *s) noexcept nogil:
    free(s.work)
    free(s.extra)
    s.work = NULL
    s.extra = NULL
