# The loss matrix of a `Family`: padded to (l, kp), with its spread as the unit, and room for larger scratch behind it.

from libc.math cimport INFINITY

from adv_simd cimport zeros
from adv_family cimport Family


cdef inline int room_for_matrix(Family *s, int l, Py_ssize_t more) noexcept nogil:
    """Let ``s`` own zeros for a matrix of l rows and ``more`` numbers; return -1 when memory is short."""
    s.l = l
    s.extra = zeros(<Py_ssize_t>l * s.kp + more)
    s.matrix = s.extra
    return -1 if s.extra == NULL else 0


cdef inline void measure_matrix(Family *s) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double least = INFINITY, largest = -INFINITY
    for i in range(s.l):
        for j in range(s.k):
            least = min(least, s.matrix[i * s.kp + j])
            largest = max(largest, s.matrix[i * s.kp + j])
    s.unit = largest - least if largest > least else 1.0


cdef inline int given_matrix(Family *s, const double *parameters, Py_ssize_t n_parameters, Py_ssize_t more) noexcept nogil:
    """Store the matrix that is given as l, then row by row; return -3 where the numbers are not as many, -1 when memory is short."""
    cdef Py_ssize_t i, j
    cdef int l
    if n_parameters < 1 or not 1.0 <= parameters[0] < <double>n_parameters:
        return -3
    l = <int>parameters[0]
    if n_parameters != 1 + <Py_ssize_t>l * s.k:
        return -3
    if room_for_matrix(s, l, more) != 0:
        return -1
    for i in range(l):
        for j in range(s.k):
            s.extra[i * s.kp + j] = parameters[1 + i * s.k + j]
    measure_matrix(s)
    return 0


cdef inline int matrix_of(Family *s, double (*cost)(Py_ssize_t prediction, Py_ssize_t truth) noexcept nogil) noexcept nogil:
    """Store the matrix (k, k) of a cost; return -1 when memory is short."""
    cdef Py_ssize_t i, j
    if room_for_matrix(s, s.k, 0) != 0:
        return -1
    for i in range(s.k):
        for j in range(s.k):
            s.extra[i * s.kp + j] = cost(i, j)
    measure_matrix(s)
    return 0
