"""Sets of equal rows, in the order in which the rows' bytes lie, without the GIL.

Bytes are compared as memcmp does: of a row, column by column, the eight bytes of a number as one number whose first byte weighs most. Many rows are
dealt out by the first byte that tells them apart, fewer are parted by a key into smaller, equal and greater ones (multikey quicksort, Bentley &
Sedgewick 1997, "Fast algorithms for sorting and searching strings"). Rows that a column tells apart are not read further.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport malloc, free
from libc.string cimport memcpy

from adv_check cimport demand

cdef extern from *:
    """
    static inline uint64_t adv_first_byte_first(double value) {
    #if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
      uint64_t bits;
      memcpy(&bits, &value, 8);
      return __builtin_bswap64(bits);
    #else
      unsigned char p[8];
      uint64_t key = 0;
      int b;
      memcpy(p, &value, 8);
      for (b = 0; b < 8; b++) key = key << 8 | p[b];
      return key;
    #endif
    }
    """
    uint64_t first_byte_first "adv_first_byte_first"(double value) noexcept nogil

cdef enum:
    FEW = 8         # rows that are sorted by insertion
    MANY = 100      # rows that are dealt out by a byte

cdef struct Entry:
    uint64_t key    # of the column that is being sorted
    Py_ssize_t row

cdef struct Table:
    const double *X       # (n, d)
    Py_ssize_t d
    const double *tail    # (n, m), columns d to d + m - 1
    Py_ssize_t m

cdef struct Stretch:
    Py_ssize_t begin
    Py_ssize_t end
    Py_ssize_t column


cdef inline uint64_t key_of(const Table *t, Py_ssize_t row, Py_ssize_t column) noexcept nogil:
    """Return a number's bytes as a number; 0 for -0.0, which is the same number."""
    return first_byte_first((t.X[row * t.d + column] if column < t.d else t.tail[row * t.m + column - t.d]) + 0.0)


cdef inline bint precedes(const Table *t, const Entry *a, const Entry *b, Py_ssize_t column) noexcept nogil:
    """Whether row a comes before row b, which is as great up to this column, exclusive; of equal rows the first does."""
    cdef uint64_t one, other
    if a.key != b.key:
        return a.key < b.key
    for column in range(column + 1, t.d + t.m):
        one, other = key_of(t, a.row, column), key_of(t, b.row, column)
        if one != other:
            return one < other
    return a.row < b.row


cdef inline uint64_t middle(uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    if a < b:
        return b if b < c else (c if a < c else a)
    return a if a < c else (c if b < c else b)


cdef void insert(const Table *t, Entry *entry, Py_ssize_t n, Py_ssize_t column) noexcept nogil:
    """Sort a few entries that are equal before this column."""
    cdef Entry held
    cdef Py_ssize_t i, j
    for i in range(1, n):
        held = entry[i]
        j = i
        while j > 0 and precedes(t, &held, &entry[j - 1], column):
            entry[j] = entry[j - 1]
            j -= 1
        entry[j] = held


cdef void part(Entry *entry, Py_ssize_t n, Py_ssize_t *low, Py_ssize_t *high) noexcept nogil:
    """Put entries with keys below, at and above a middle one into [0, low), [low, high) and [high, n)."""
    cdef uint64_t pivot = middle(entry[n // 4].key, entry[n // 2].key, entry[n * 3 // 4].key)
    cdef Py_ssize_t i = 0
    cdef Entry held
    low[0], high[0] = 0, n
    while i < high[0]:
        held = entry[i]
        if held.key < pivot:
            entry[i] = entry[low[0]]
            entry[low[0]] = held
            low[0] += 1
            i += 1
        elif held.key > pivot:
            high[0] -= 1
            entry[i] = entry[high[0]]
            entry[high[0]] = held
        else:
            i += 1


cdef int deal(Entry *entry, Entry *spare, Py_ssize_t n, Py_ssize_t *begin) noexcept nogil:
    """Sort entries by the first byte in which their keys differ, each value's from begin (257,) on; 0 where all keys are equal."""
    cdef uint64_t differ = 0
    cdef Py_ssize_t i
    cdef Py_ssize_t place[256]
    cdef int shift = 56, b
    for i in range(1, n):
        differ |= entry[i].key ^ entry[0].key
    if differ == 0:
        return 0
    while not differ >> shift:
        shift -= 8
    for b in range(257):
        begin[b] = 0
    for i in range(n):
        begin[(entry[i].key >> shift & 255) + 1] += 1
    for b in range(256):
        begin[b + 1] += begin[b]
        place[b] = begin[b]
    for i in range(n):
        b = <int>(entry[i].key >> shift & 255)
        spare[place[b]] = entry[i]
        place[b] += 1
    memcpy(entry, spare, n * sizeof(Entry))
    return 1


cdef inline void put_off(Stretch *waiting, Py_ssize_t *count, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t column) noexcept nogil:
    if end - begin > 1:
        waiting[count[0]].begin, waiting[count[0]].end, waiting[count[0]].column = begin, end, column
        count[0] += 1


cdef void sort(const Table *t, Entry *entry, Entry *spare, Stretch *waiting, Py_ssize_t n) noexcept nogil:
    """Sort entries whose keys are those of column 0.

    Scratch: spare (n,), waiting (n/2 + 1,): stretches that wait have two entries and more, and none in common.
    """
    cdef Stretch now
    cdef Py_ssize_t i, low, high, size, count = 0, last = t.d + t.m - 1
    cdef Py_ssize_t begin[257]
    cdef int b
    put_off(waiting, &count, 0, n, 0)
    while count:
        count -= 1
        now = waiting[count]
        size = now.end - now.begin
        if size <= FEW:
            insert(t, entry + now.begin, size, now.column)
            continue
        if size >= MANY:
            if deal(entry + now.begin, spare, size, begin):
                for b in range(256):
                    put_off(waiting, &count, now.begin + begin[b], now.begin + begin[b + 1], now.column)
                continue
            low, high = 0, size
        else:
            part(entry + now.begin, size, &low, &high)
            put_off(waiting, &count, now.begin, now.begin + low, now.column)
            put_off(waiting, &count, now.begin + high, now.end, now.column)
        if now.column < last:
            for i in range(now.begin + low, now.begin + high):
                entry[i].key = key_of(t, entry[i].row, now.column + 1)
            put_off(waiting, &count, now.begin + low, now.begin + high, now.column + 1)


cdef bint equal(const Table *t, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef Py_ssize_t column
    for column in range(t.d + t.m):
        if key_of(t, a, column) != key_of(t, b, column):
            return False
    return True


def sets(const double[:, ::1] X, const double[:, ::1] tail, Py_ssize_t[::1] leader, Py_ssize_t[::1] inverse):
    """Write the first row of every set of equal rows of X (n, d) and ``tail`` (n, m), the sets in the order of bytes, and every row's set.

    leader and inverse are (n,); returns the number of sets, which is how much of ``leader`` is written.
    """
    cdef Py_ssize_t n = X.shape[0], i, found = -1, before = 0
    cdef Table t
    cdef Entry *entry
    cdef Stretch *waiting
    demand(tail.shape[0] == n and leader.shape[0] == n and inverse.shape[0] == n, f"arrays must have {n} rows")
    demand(X.shape[1] + tail.shape[1] > 0, "rows have no columns")
    if n == 0:
        return 0
    t.X, t.d = (&X[0, 0] if X.shape[1] else NULL), X.shape[1]
    t.tail, t.m = (&tail[0, 0] if tail.shape[1] else NULL), tail.shape[1]
    entry = <Entry *>malloc(2 * n * sizeof(Entry))
    waiting = <Stretch *>malloc((n // 2 + 1) * sizeof(Stretch))
    if entry == NULL or waiting == NULL:
        free(entry)
        free(waiting)
        raise MemoryError("no memory for the order of rows")
    with nogil:
        for i in range(n):
            entry[i].key, entry[i].row = key_of(&t, i, 0), i
        sort(&t, entry, entry + n, waiting, n)
        for i in range(n):
            if i == 0 or not equal(&t, entry[i].row, before):
                found += 1
                leader[found] = entry[i].row
            before = entry[i].row
            inverse[before] = found
            # many equal rows are in no order among themselves
            if before < leader[found]:
                leader[found] = before
        free(entry)
        free(waiting)
    return found + 1
