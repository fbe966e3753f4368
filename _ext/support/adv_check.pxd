# What every function that Python calls checks before it takes a pointer: lengths fit each other, and whole numbers that are used as positions lie
# in range. The checks are one pass over these whole numbers a call. Real numbers may be anything, NaN as well: no loop takes a position or its
# end from real numbers alone.

cdef extern from "limits.h":
    int INT_MAX


cdef inline int demand(bint holds, str what) except -1:
    """Raise ValueError(what) unless it ``holds``."""
    if not holds:
        raise ValueError(what)
    return 0


cdef inline int check_positions(const Py_ssize_t[::1] at, Py_ssize_t limit, str what) except -1:
    """Every number lies in [0, limit)."""
    cdef Py_ssize_t i
    cdef bint outside = False
    for i in range(at.shape[0]):
        outside |= <size_t>at[i] >= <size_t>limit  # as unsigned numbers, negative ones are huge
    if outside:
        raise ValueError(f"{what} must lie in [0, {limit})")
    return 0


cdef inline int check_labels(const Py_ssize_t[::1] y, Py_ssize_t n, Py_ssize_t k) except -1:
    """y holds n codes of k classes."""
    if y.shape[0] != n:
        raise ValueError(f"labels must be {n} codes, got {y.shape[0]}")
    return check_positions(y, k, "labels")


cdef inline int check_list(const int[::1] at, Py_ssize_t limit, str what) except -1:
    """Every number lies in [0, limit)."""
    cdef Py_ssize_t i
    cdef int low = 0, high = -1
    for i in range(at.shape[0]):
        low = at[i] if at[i] < low else low
        high = at[i] if at[i] > high else high
    if low < 0 or high >= limit:
        raise ValueError(f"{what} must lie in [0, {limit})")
    return 0


cdef inline int check_starts(const long long[::1] start, Py_ssize_t n, Py_ssize_t filled, str what) except -1:
    """n + 1 numbers from 0 to ``filled``, none below the one before."""
    cdef Py_ssize_t i
    cdef bint falls = False
    if n < 0 or start.shape[0] != n + 1 or start[0] != 0 or start[n] != filled:
        raise ValueError(f"{what} must be {n + 1} numbers from 0 to {filled}")
    for i in range(n):
        falls |= start[i + 1] < start[i]
    if falls:
        raise ValueError(f"{what} must not fall")
    return 0


cdef inline Py_ssize_t check_groups(const long long[::1] start, Py_ssize_t n, str what) except -1:
    """n rows stand in groups one behind the other, none of them empty; return the length of the longest. ``what`` is one group."""
    cdef Py_ssize_t s, least = n, most = 0
    check_starts(start, start.shape[0] - 1, n, f"starts of {what}s")
    demand(start.shape[0] > 1, f"no {what}s")
    for s in range(start.shape[0] - 1):
        least, most = min(least, start[s + 1] - start[s]), max(most, start[s + 1] - start[s])
    demand(least > 0, f"a {what} is empty")
    return most


cdef inline int check_rows(const double[::1] values, const int[::1] columns, const long long[::1] start, Py_ssize_t n, Py_ssize_t d) except -1:
    """Rows of X as `Rows` of advcli/core/compiled.py has them: dense where ``start`` is empty, else CSR."""
    if n < 1:
        raise ValueError("no rows")
    if not 0 <= d <= INT_MAX:
        raise ValueError(f"rows must have 0 to {INT_MAX} columns, not {d}")
    if start.shape[0] == 0:
        if columns.shape[0] or (values.shape[0] if d == 0 else values.shape[0] // d != n or values.shape[0] % d):
            raise ValueError(f"dense rows must be {n} x {d} numbers, got {values.shape[0]}")
        return 0
    if values.shape[0] != columns.shape[0]:
        raise ValueError(f"sparse rows have {values.shape[0]} values and {columns.shape[0]} columns")
    check_starts(start, n, columns.shape[0], "starts of sparse rows")
    return check_list(columns, d, "columns of sparse rows")


cdef inline int check_weights(const double[::1] weights, Py_ssize_t n) except -1:
    """One weight a row, or none."""
    if weights.shape[0] != 0 and weights.shape[0] != n:
        raise ValueError(f"weights must be {n} numbers or none, got {weights.shape[0]}")
    return 0


cdef inline int check_graph(const long long[::1] start, const int[::1] child, Py_ssize_t M) except -1:
    """Children of M nodes, each after its parents, so that one pass in the order of the nodes comes to parents first."""
    cdef Py_ssize_t p
    cdef long long e
    demand(0 < M < INT_MAX, "a graph needs a node")
    check_starts(start, M, child.shape[0], "starts of children")
    check_list(child, M, "children")
    for p in range(M):
        for e in range(start[p], start[p + 1]):
            if child[e] <= p:
                raise ValueError(f"node {p} stands after its child {child[e]}")
    return 0


cdef inline int check_examples(const Py_ssize_t[::1] y, Py_ssize_t n, Py_ssize_t k, const double[::1] sample_weight,
                               const double[::1] cost_weight) except -1:
    """Labels and weights of n rows."""
    check_labels(y, n, k)
    check_weights(sample_weight, n)
    return check_weights(cost_weight, n)
