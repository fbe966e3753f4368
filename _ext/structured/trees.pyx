"""Projective dependency trees: the best tree of every sentence, by Eisner's algorithm (1996; adv_eisner.pxd)."""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

from adv_check cimport check_groups, check_list, demand
from adv_eisner cimport CHARTS, fill, fill_levels, level_numbers, numbers_of, trace, trace_levels

cdef enum:
    MOST_WORDS = 160    # of a sentence whose trees are sought by number of wrong heads, which takes 130 MB


def best(const double[::1] scores, const long long[::1] start, double[::1] value, int[::1] heads):
    """Fill the largest score of a tree of every sentence, value (S,), and the heads of its words (N,).

    Sentence s has the words start[s] to start[s + 1], and its n words (n + 1)^2 scores, row by row, behind those of the sentences before it.
    The value is -infinity where every tree has an arc of that score; its heads then mean nothing.
    """
    cdef Py_ssize_t s, n, S = start.shape[0] - 1, longest = check_groups(start, heads.shape[0], "sentence"), at = 0
    cdef double *charts
    cdef int *spans
    demand(value.shape[0] == S, f"value must be {S} numbers")
    demand(scores.shape[0] == numbers_of(start, 1, NULL), f"these sentences have {numbers_of(start, 1, NULL)} scores")
    charts = <double *>malloc(CHARTS * longest * longest * sizeof(double) + 1)
    spans = <int *>malloc(12 * (longest + 1) * sizeof(int))
    try:
        if charts == NULL or spans == NULL:
            raise MemoryError
        with nogil:
            for s in range(S):
                n = start[s + 1] - start[s]
                fill(&scores[at], n, charts)
                value[s] = trace(&scores[at], n, charts, spans, &heads[start[s]])
                at += (n + 1) * (n + 1)
    finally:
        free(charts)
        free(spans)


def levels(const double[::1] scores, const int[::1] truth, double[::1] level, int[:, ::1] heads):
    """Fill the largest score of a tree of one sentence at every number of wrong heads, level (n + 1,), and its heads (n + 1, n).

    A level without trees is -infinity, and its heads are left alone.
    """
    cdef Py_ssize_t n = truth.shape[0], g
    cdef double *charts = NULL
    cdef int *spans = NULL
    demand(0 < n <= MOST_WORDS, f"a sentence has 1 to {MOST_WORDS} words here")
    check_list(truth, n + 1, "heads")
    demand(scores.shape[0] == (n + 1) * (n + 1), f"a sentence of {n} words has {(n + 1) * (n + 1)} scores")
    demand(level.shape[0] == n + 1, f"levels must be {n + 1} numbers")
    demand(heads.shape[0] == n + 1 and heads.shape[1] == n, f"heads must have shape ({n + 1}, {n})")
    try:
        charts = <double *>malloc(level_numbers(n) * sizeof(double))
        spans = <int *>malloc(4 * (3 * n + 3) * sizeof(int))
        if charts == NULL or spans == NULL:
            raise MemoryError("no memory for the trees of a sentence by number of wrong heads")
        with nogil:
            fill_levels(&scores[0], &truth[0], n, n, charts, &level[0])
            for g in range(n + 1):
                if level[g] > -INFINITY:
                    trace_levels(&scores[0], &truth[0], n, charts, level[g], g, spans, &heads[g, 0])
    finally:
        free(charts)
        free(spans)
