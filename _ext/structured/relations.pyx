"""Features of the arcs of given trees, from which the relations of words to their heads are learned.

An arc from head h to word m has KEYS + 1 features: the keys of adv_arcs.pxd, and the tags of both ends with the distance. The arc's direction
and the highest bits of a key choose one of 2^bits positions, whose value is 1.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc

from adv_arcs cimport KEYS, LEAST_BITS, MOST_BITS, ROLES, bucket, check_heads, keys_of, part, parts_of
from adv_check cimport check_groups, demand

cdef enum:
    DISTANCE = ROLES    # the role after those of adv_arcs.pxd


def positions(
    const long long[::1] words, const long long[::1] tags, const long long[::1] start, const int[::1] heads, int bits, int[:, ::1] out
):
    """Fill the positions of the features of the arc to each word, out (n, KEYS + 1), below 2^bits.

    Sentence s has the words start[s] to start[s + 1]; ``heads`` (n,) are 0, the root, or a word of the sentence from 1.
    """
    cdef Py_ssize_t n = words.shape[0], S = start.shape[0] - 1, s, i, m, e, first, length, longest = check_groups(start, n, "sentence"), distance
    cdef int shift, side, count
    cdef uint64_t keys[KEYS + 1]
    cdef uint64_t *parts = NULL
    cdef int *kind = NULL
    demand(tags.shape[0] == n and heads.shape[0] == n, f"there are {n} words")
    demand(LEAST_BITS <= bits <= MOST_BITS, f"bits must be {LEAST_BITS} to {MOST_BITS}")
    demand(out.shape[0] == n and out.shape[1] == KEYS + 1, f"positions must be {n} x {KEYS + 1}")
    check_heads(heads, start)
    shift = 64 - bits + 1
    parts = <uint64_t *>malloc((longest + 1) * (ROLES + 1) * sizeof(uint64_t))
    kind = <int *>malloc((longest + 1) * sizeof(int))
    try:
        if parts == NULL or kind == NULL:
            raise MemoryError("no memory for a sentence")
        with nogil:
            for s in range(S):
                first, length = start[s], start[s + 1] - start[s]
                parts_of(&words[first], &tags[first], length, parts, kind, parts + (longest + 1) * ROLES, &count)
                for m in range(1, length + 1):
                    i = first + m - 1
                    distance = heads[i] - m if heads[i] > m else m - heads[i]
                    side = heads[i] > m
                    keys_of(parts + heads[i] * ROLES, parts + m * ROLES, keys)
                    keys[KEYS] = keys[12] + part(DISTANCE, <uint64_t>bucket(distance))
                    for e in range(KEYS + 1):
                        out[i, e] = <int>(keys[e] >> shift) * 2 + side
    finally:
        free(parts)
        free(kind)
