"""Sets of labels with pair potentials: the best set at every distance from a given one, for many rows at once, without the GIL.

A set is a number y of m bits. Its score is what the row gives to its labels, doubled up bit by bit, and an entry of a table of 2^m numbers that
all rows share. Eight sets that differ in their three lowest bits lie side by side; what the row gives to these bits is the same for all sets of a
place, and is added when the best of each place is known.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free
from cpython.exc cimport PyErr_CheckSignals

from adv_check cimport check_positions, demand
from adv_simd cimport vec, load, store, splat, if_greater, zeros, LANES

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
      #include <intrin.h>
      #define adv_popcount(bits) ((int)__popcnt(bits))
    #else
      #define adv_popcount(bits) __builtin_popcount(bits)
    #endif
    """
    int popcount "adv_popcount"(unsigned int bits) noexcept nogil

cdef enum:
    PLACES = 8        # sets side by side
    LOW = 3           # bits that tell them apart
    MOST = 20         # labels


cdef void row_levels(const double *u, int m, const double *table, unsigned int centre, double *high, double *best, double *at, double *out,
                     Py_ssize_t *label) noexcept nogil:
    """Fill out and label (m + 1,): the largest score at every distance from ``centre`` and its set, the least of those that tie.

    Scratch: high (2^m / PLACES,), best and at (m + 1, PLACES).
    """
    cdef int low = LOW if m > LOW else m, places = 1 << low, j, h, q, lane
    cdef Py_ssize_t count = 1, s, found
    cdef double score
    cdef double low_score[PLACES]
    cdef unsigned int rest = centre >> LOW
    cdef vec here, known, number
    high[0] = 0.0
    for j in range(LOW, m):
        for s in range(count):
            high[count + s] = high[s] + u[j]
        count *= 2
    low_score[0] = 0.0
    for j in range(low):
        for s in range(1 << j):
            low_score[(1 << j) + s] = low_score[s] + u[j]
    for s in range((m + 1) * PLACES):
        best[s] = -INFINITY
        at[s] = 0.0
    if m >= LOW:
        for s in range(count):
            q = popcount(<unsigned int>s ^ rest) * PLACES
            number = splat(<double>s)
            for h in range(PLACES // LANES):
                here = load(table + s * PLACES, h) + splat(high[s])
                known = load(best + q, h)
                store(at + q, h, if_greater(here, known, number, load(at + q, h)))
                store(best + q, h, if_greater(here, known, here, known))
    else:
        for lane in range(places):
            best[lane] = table[lane]
    for q in range(m + 1):
        out[q] = -INFINITY
        label[q] = 0
    for q in range((m - low) + 1):
        for lane in range(places):
            if best[q * PLACES + lane] == -INFINITY:
                continue
            score = best[q * PLACES + lane] + low_score[lane]
            found = (<Py_ssize_t>at[q * PLACES + lane]) * places + lane
            j = q + popcount(<unsigned int>lane ^ (centre & <unsigned int>(places - 1)))
            if score > out[j] or (score == out[j] and found < label[j]):
                out[j] = score
                label[j] = found


def levels(const double[:, ::1] U, const double[::1] table, const Py_ssize_t[::1] centre, double[:, ::1] best, Py_ssize_t[:, ::1] label):
    """Fill best and label (n, m + 1): for every distance from centre (n,) the largest sum of u_j over a set plus table[set], and that set.

    U is (n, m) with m at most 20, table (2^m,). Numbers that are no finite ones leave levels without a set: -infinity and 0.
    """
    cdef Py_ssize_t n = U.shape[0], i, size
    cdef int m
    demand(1 <= U.shape[1] <= MOST, f"sets have 1 to {MOST} labels, not {U.shape[1]}")
    m = <int>U.shape[1]
    size = <Py_ssize_t>1 << m
    demand(table.shape[0] == size, f"the table of {m} labels has {size} numbers, not {table.shape[0]}")
    demand(centre.shape[0] == n and best.shape[0] == n and label.shape[0] == n, f"arrays must have {n} rows")
    demand(best.shape[1] == m + 1 and label.shape[1] == m + 1, f"levels of {m} labels are {m + 1}")
    check_positions(centre, size, "sets")
    scratch = zeros(size // PLACES + 1 + 2 * (m + 1) * PLACES + 2 * PLACES)
    if scratch == NULL:
        raise MemoryError("no memory for the scores of sets")
    # vectors begin at cache lines
    cdef double *first = scratch
    cdef double *second = first + (m + 1) * PLACES
    cdef double *high = second + (m + 1) * PLACES
    try:
        with nogil:
            for i in range(n):
                row_levels(&U[i, 0], m, &table[0], <unsigned int>centre[i], high, first, second, &best[i, 0], &label[i, 0])
                if i % 1024 == 1023:
                    with gil:
                        PyErr_CheckSignals()
    finally:
        free(scratch)
