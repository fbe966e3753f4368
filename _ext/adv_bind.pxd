# From a kind (a small number that advcli/compiled.py gives a name) to a bound Family with its scratch memory.

from libc.stdlib cimport free
from libc.math cimport INFINITY

from adv_simd cimport LANES, zeros
from adv_family cimport Family, WORK
from adv_zero_one cimport zero_one_oracle, zero_one_offset, zero_one_step, zero_one_step_4, zero_one_step_8, zero_one_step_12, zero_one_step_16
from adv_zero_one cimport cs_oracle, cs_offset, cs_step
from adv_convex cimport convex_oracle, convex_offset, convex_step, absolute_oracle, absolute_offset, squared_oracle, squared_offset
from adv_abstain cimport abstain_oracle, abstain_offset, abstain_step
from adv_general cimport general_oracle, general_offset, general_step, general_extra
from adv_hinge cimport ww_oracle, ww_offset, ww_step, llw_oracle, llw_offset, llw_step
from adv_rejecting cimport rejecting_cs_oracle, rejecting_cs_offset, rejecting_cs_step, rejecting_bep_oracle, rejecting_bep_offset, rejecting_bep_step
from adv_rejecting cimport rejecting_ova_oracle, rejecting_ova_offset, rejecting_ova_step

cdef enum:
    ZERO_ONE = 0
    CS = 1
    WW = 2
    LLW = 3
    CONVEX = 4      # parameters: l, then the matrix row by row
    ABSOLUTE = 5
    SQUARED = 6
    ABSTAIN = 7     # parameters: alpha
    GENERAL = 8     # parameters: l, then the matrix row by row
    REJECTING_CS = 9     # parameters: alpha
    REJECTING_BEP = 10   # parameters: alpha, the number m of pairs of columns, then their signs, m for each label
    REJECTING_OVA = 11   # parameters: as for bep, with the largest t_a times its sign in the place of a sign


cdef enum:
    MOST_CLASSES = 1 << 24   # so that no count of scratch numbers leaves an int


cdef inline int padded(int k) noexcept nogil:
    """k rounded up to whole vectors, at least four numbers."""
    cdef int width = LANES if LANES > 4 else 4
    return (k + width - 1) // width * width


cdef inline int family_matrix(Family *s, int kind, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """Store the loss matrix, padded to (l, kp), and room for the simplex dictionary."""
    cdef Py_ssize_t i, j
    cdef double least = INFINITY, largest = -INFINITY, value
    cdef double *matrix
    if kind == CONVEX or kind == GENERAL:
        if n_parameters < 1:
            return -3
        if not 1.0 <= parameters[0] < <double>n_parameters:
            return -3
        s.l = <int>parameters[0]
        if n_parameters != 1 + <Py_ssize_t>s.l * s.k:
            return -3
    s.extra = zeros(<Py_ssize_t>s.l * s.kp + (general_extra(s.l, s.k) if kind == GENERAL else 0))
    if s.extra == NULL:
        return -1
    matrix = s.extra
    for i in range(s.l):
        for j in range(s.k):
            if kind == ABSOLUTE:
                value = i - j if i > j else j - i
            elif kind == SQUARED:
                value = <double>(i - j) * (i - j)
            else:
                value = parameters[1 + i * s.k + j]
            matrix[i * s.kp + j] = value
            least = min(least, value)
            largest = max(largest, value)
    s.matrix = matrix
    s.unit = largest - least if largest > least else 1.0
    return 0


cdef inline int family_pairs(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """Store the signs of the pairs of columns, (k, l)."""
    cdef Py_ssize_t i
    cdef double *signs
    if n_parameters < 2 or not (1.0 <= parameters[1] and 2.0 * parameters[1] <= s.k):
        return -3
    s.l = <int>parameters[1]
    if s.l != parameters[1] or n_parameters != 2 + <Py_ssize_t>s.l * s.k:
        return -3
    s.extra = zeros(<Py_ssize_t>s.l * s.k)
    if s.extra == NULL:
        return -1
    signs = s.extra
    for i in range(<Py_ssize_t>s.l * s.k):
        signs[i] = parameters[2 + i]
    s.matrix = signs
    return 0


cdef inline int family_new(Family *s, int kind, int k, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:
    """Fill ``s`` for ``kind``; return 0, -1 when memory is short, -2 for an unknown kind, -3 for wrong parameters, -4 for too few or too many classes. Release with `family_free`."""
    cdef int j, code
    cdef double *block
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
    block = zeros((WORK + 1) * s.kp)
    s.work = block
    if block == NULL:
        return -1
    for j in range(k, s.kp):
        block[WORK * s.kp + j] = -INFINITY
    s.mask = block + WORK * s.kp
    if kind == ZERO_ONE:
        s.oracle, s.offset, s.step = zero_one_oracle, zero_one_offset, zero_one_step
        if s.kp == 4:
            s.step = zero_one_step_4
        elif s.kp == 8:
            s.step = zero_one_step_8
        elif s.kp == 12:
            s.step = zero_one_step_12
        elif s.kp == 16:
            s.step = zero_one_step_16
    elif kind == CS:
        s.oracle, s.offset, s.step = cs_oracle, cs_offset, cs_step
    elif kind == WW:
        s.oracle, s.offset, s.step = ww_oracle, ww_offset, ww_step
    elif kind == LLW:
        s.oracle, s.offset, s.step = llw_oracle, llw_offset, llw_step
    elif kind == ABSTAIN:
        if n_parameters != 1:
            return -3
        s.alpha = parameters[0]
        s.oracle, s.offset, s.step = abstain_oracle, abstain_offset, abstain_step
    elif REJECTING_CS <= kind <= REJECTING_OVA:
        if n_parameters < 1 or not 0.0 < parameters[0] <= 0.5 or (kind == REJECTING_CS and n_parameters != 1):
            return -3
        s.alpha = parameters[0]
        if kind == REJECTING_CS:
            s.oracle, s.offset, s.step = rejecting_cs_oracle, rejecting_cs_offset, rejecting_cs_step
            return 0
        code = family_pairs(s, parameters, n_parameters)
        if code != 0:
            return code
        if kind == REJECTING_BEP:
            s.oracle, s.offset, s.step = rejecting_bep_oracle, rejecting_bep_offset, rejecting_bep_step
        else:
            s.oracle, s.offset, s.step = rejecting_ova_oracle, rejecting_ova_offset, rejecting_ova_step
    elif CONVEX <= kind <= SQUARED or kind == GENERAL:
        code = family_matrix(s, kind, parameters, n_parameters)
        if code != 0:
            return code
        if kind == CONVEX:
            s.oracle, s.offset, s.step = convex_oracle, convex_offset, convex_step
        elif kind == ABSOLUTE:
            s.oracle, s.offset, s.step = absolute_oracle, absolute_offset, convex_step
        elif kind == SQUARED:
            s.oracle, s.offset, s.step = squared_oracle, squared_offset, convex_step
        else:
            s.oracle, s.offset, s.step = general_oracle, general_offset, general_step
    else:
        return -2
    return 0


cdef inline void family_free(Family *s) noexcept nogil:
    free(s.work)
    free(s.extra)
    s.work = NULL
    s.extra = NULL
