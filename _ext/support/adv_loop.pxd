# What the solver loops share: the clock, a stream of random bits, permutations, and binding a surrogate from Python's arguments.

from libc.stdint cimport uint64_t
from posix.time cimport clock_gettime, timespec, CLOCK_MONOTONIC

from adv_family cimport Family
from adv_bind cimport family_new, family_free, padded, MOST_CLASSES


cdef inline double seconds() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + 1e-9 * now.tv_nsec


cdef inline uint64_t random_bits(uint64_t *state) noexcept nogil:
    # splitmix64 (Steele, Lea & Flood 2014)
    cdef uint64_t z
    state[0] += <uint64_t>0x9E3779B97F4A7C15
    z = state[0]
    z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
    return z ^ (z >> 31)


cdef inline void shuffle(Py_ssize_t *items, Py_ssize_t count, uint64_t *state) noexcept nogil:
    cdef Py_ssize_t i, j, t
    for i in range(count - 1, 0, -1):
        j = <Py_ssize_t>(random_bits(state) % <uint64_t>(i + 1))
        t = items[i]
        items[i] = items[j]
        items[j] = t


cdef inline double gap_scale(double primal, double dual) noexcept nogil:
    """What a gap is relative to (`gap_scale` of advcli/problems/risk.py)."""
    return primal if primal > 0.0 else -dual


cdef inline int bind(Family *family, int kind, int k, const double[::1] parameters) except -1:
    """Fill ``family`` for ``kind``, or raise; release with `family_free`."""
    cdef int code = family_new(family, kind, k, &parameters[0] if parameters.shape[0] else NULL, parameters.shape[0])
    if code != 0:
        family_free(family)
    if code == -1:
        raise MemoryError("no memory for the surrogate's scratch vectors")
    if code == -2:
        raise ValueError(f"unknown surrogate kind {kind}")
    if code == -3:
        raise ValueError(f"parameters do not fit surrogate kind {kind} with {k} classes")
    if code == -4:
        raise ValueError(f"a surrogate has 1 to {MOST_CLASSES} classes, not {k}")
    return 0


cdef inline int checked_width(int k) except -1:
    """Return kp, the number of columns that arrays over k classes have at this instruction set."""
    if not 1 <= k <= MOST_CLASSES:
        raise ValueError(f"a surrogate has 1 to {MOST_CLASSES} classes, not {k}")
    return padded(k)
