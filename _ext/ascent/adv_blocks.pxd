# Dual points of rows that are read in blocks, by their supports.

from libc.stdlib cimport free, malloc
from libc.string cimport memset

ctypedef unsigned short Label

cdef enum:
    MOST_LABELS = 65535   # so that a label takes two bytes

# A dual point, block by block: of every row the entries beside that of its label, which is minus their sum.
cdef struct Supports:
    Py_ssize_t n
    Py_ssize_t rows           # of a block; the last may have fewer
    int k
    Label *counts             # (n) entries of each row
    double **entries          # of each block: the numbers, then their labels; NULL where there are none
    Py_ssize_t *sizes         # how many


cdef inline Py_ssize_t first_row(const Supports *s, Py_ssize_t block) noexcept nogil:
    return block * s.rows


cdef inline Py_ssize_t rows_in(const Supports *s, Py_ssize_t block) noexcept nogil:
    return min(s.rows, s.n - block * s.rows)


cdef inline void inflate(const Supports *s, Py_ssize_t block, const int *y, double *r, int kp) noexcept nogil:
    """Write the dual numbers of a block to r (rows, kp); y (n) are the labels of all rows."""
    cdef Py_ssize_t i, first = first_row(s, block), size = s.sizes[block], at = 0
    cdef int e
    cdef double total
    cdef const double *numbers = s.entries[block]
    cdef const Label *labels = <const Label *>(numbers + size)
    memset(r, 0, rows_in(s, block) * kp * sizeof(double))
    if size == 0:
        return
    for i in range(rows_in(s, block)):
        if s.counts[first + i]:
            total = 0.0
            for e in range(s.counts[first + i]):
                r[i * kp + labels[at]] = numbers[at]
                total += numbers[at]
                at += 1
            r[i * kp + y[first + i]] = -total


cdef inline int deflate(Supports *s, Py_ssize_t block, const int *y, const double *r, int kp) noexcept nogil:
    """Keep the dual numbers r (rows, kp) of a block; return -1 when memory is short."""
    cdef Py_ssize_t i, j, first = first_row(s, block), size = 0, at = 0
    cdef Label count
    cdef double *numbers
    cdef Label *labels
    for i in range(rows_in(s, block)):
        count = 0
        for j in range(s.k):
            count += r[i * kp + j] != 0.0 and j != y[first + i]
        s.counts[first + i] = count
        size += count
    if size != s.sizes[block]:
        free(s.entries[block])
        s.entries[block] = NULL
        s.sizes[block] = 0
        if size:
            s.entries[block] = <double *>malloc(size * (sizeof(double) + sizeof(Label)))
            if s.entries[block] == NULL:
                for i in range(rows_in(s, block)):
                    s.counts[first + i] = 0
                return -1
        s.sizes[block] = size
    numbers = s.entries[block]
    labels = <Label *>(numbers + size)
    for i in range(rows_in(s, block)):
        for j in range(s.k):
            if r[i * kp + j] != 0.0 and j != y[first + i]:
                numbers[at] = r[i * kp + j]
                labels[at] = <Label>j
                at += 1
    return 0
