# Features of the arcs of a sentence (McDonald, Crammer & Pereira 2005), hashed to positions of one vector of weights.
#
# An arc from head h to word m has the keys below, made of words, tags, the tags beside its two ends and the tags between them. A key chooses
# a slot of 16 weights (one cache line a direction): the arc's direction chooses the half, in which entry 0 is the key's own weight and entry
# 1 + b its weight at distance bucket b. A key of a tag between the ends has the former alone. An arc's features are positions whose values
# are 1. A key is a sum of one random number for each of its parts (Zobrist 1970), its slot the highest bits.

from libc.stdint cimport uint64_t

from adv_check cimport demand

cdef enum:
    HEAD_WORD = 0
    HEAD_TAG = 1
    HEAD_BOTH = 2
    WORD = 3
    TAG = 4
    BOTH = 5
    HEAD_NEXT = 6     # the tag after the head
    HEAD_BEFORE = 7
    NEXT = 8
    BEFORE = 9
    BETWEEN = 10
    ROLES = 11
    KEYS = 17         # of an arc, without the tags between its ends
    SLOT = 16
    LEAST_BITS = 8
    MOST_BITS = 28
    ROOT = 1          # codes of tags that no text has: negative ones
    BEGIN = 2
    END = 3


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    """A random number for x (splitmix64, Steele, Lea & Flood 2014)."""
    x += <uint64_t>0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t part(int role, uint64_t code) noexcept nogil:
    return mixed(code ^ mixed(<uint64_t>role))


cdef inline void parts_of(const long long *words, const long long *tags, Py_ssize_t n, uint64_t *parts, int *kind, uint64_t *kinds, int *count) noexcept nogil:
    """Fill the parts (n + 1, ROLES) of the root and the n words, and which of the ``count`` different tags each has, kind (n + 1,)."""
    cdef Py_ssize_t i, e
    cdef uint64_t word, tag, before, after
    cdef uint64_t *own
    count[0] = 0
    for i in range(n + 1):
        own = parts + i * ROLES
        word = <uint64_t>words[i - 1] if i > 0 else <uint64_t>(-ROOT)
        tag = <uint64_t>tags[i - 1] if i > 0 else <uint64_t>(-ROOT)
        before = <uint64_t>(-BEGIN) if i == 0 else <uint64_t>(-ROOT) if i == 1 else <uint64_t>tags[i - 2]
        after = <uint64_t>tags[i] if i < n else <uint64_t>(-END)
        own[HEAD_WORD], own[HEAD_TAG] = part(HEAD_WORD, word), part(HEAD_TAG, tag)
        own[HEAD_BOTH] = part(HEAD_BOTH, word + mixed(tag))
        own[WORD], own[TAG] = part(WORD, word), part(TAG, tag)
        own[BOTH] = part(BOTH, word + mixed(tag))
        own[HEAD_NEXT], own[HEAD_BEFORE] = part(HEAD_NEXT, after), part(HEAD_BEFORE, before)
        own[NEXT], own[BEFORE] = part(NEXT, after), part(BEFORE, before)
        own[BETWEEN] = part(BETWEEN, tag)
        kind[i] = -1
        for e in range(count[0]):
            if kinds[e] == tag:
                kind[i] = <int>e
        if kind[i] < 0:
            kinds[count[0]] = tag
            kind[i] = count[0]
            count[0] += 1


cdef inline int bucket(Py_ssize_t distance) noexcept nogil:
    """Distances 1, 2, 3, 4, 5, 6 to 10, and more."""
    return <int>(distance if distance <= 5 else 6 if distance <= 10 else 7)


cdef inline void keys_of(const uint64_t *h, const uint64_t *m, uint64_t *keys) noexcept nogil:
    """Fill the KEYS keys of an arc, of which the last but four is that of its two tags."""
    cdef uint64_t tags = h[HEAD_TAG] + m[TAG]
    keys[0], keys[1], keys[2] = h[HEAD_WORD], h[HEAD_TAG], h[HEAD_BOTH]
    keys[3], keys[4], keys[5] = m[WORD], m[TAG], m[BOTH]
    keys[6], keys[7], keys[8] = h[HEAD_BOTH] + m[BOTH], h[HEAD_TAG] + m[BOTH], h[HEAD_WORD] + m[BOTH]
    keys[9], keys[10] = h[HEAD_BOTH] + m[TAG], h[HEAD_BOTH] + m[WORD]
    keys[11], keys[12] = h[HEAD_WORD] + m[WORD], tags
    keys[13], keys[14] = tags + h[HEAD_NEXT] + m[BEFORE], tags + h[HEAD_BEFORE] + m[BEFORE]
    keys[15], keys[16] = tags + h[HEAD_NEXT] + m[NEXT], tags + h[HEAD_BEFORE] + m[NEXT]


cdef inline double arc_score(
    const double *theta, int shift, const uint64_t *h, const uint64_t *m, int side, int far, const uint64_t *between, Py_ssize_t count
) noexcept nogil:
    """Return the sum of the weights of an arc; ``between`` are the parts of the different tags between its ends."""
    cdef uint64_t keys[KEYS]
    cdef const double *slot
    cdef double near = 0.0, at = 0.0
    cdef Py_ssize_t e
    keys_of(h, m, keys)
    for e in range(KEYS):
        slot = theta + (keys[e] >> shift) * SLOT + 8 * side
        near += slot[0]
        at += slot[far]
    for e in range(count):
        near += theta[((keys[12] + between[e]) >> shift) * SLOT + 8 * side]
    return near + at


cdef inline void score_arcs(
    const double *theta, int shift, const uint64_t *parts, const int *kind, int kinds, Py_ssize_t n, char *seen, uint64_t *between, double *scores
) noexcept nogil:
    """Fill the scores (n + 1, n + 1) of all arcs. Scratch seen (n + 1,) and between (n + 1,)."""
    cdef Py_ssize_t i, j, e, count
    cdef int far
    for i in range(n + 1):
        scores[i * (n + 1) + i] = scores[i * (n + 1)] = 0.0
    for i in range(n):
        for e in range(kinds):
            seen[e] = 0
        count = 0
        for j in range(i + 1, n + 1):
            far = bucket(j - i)
            scores[i * (n + 1) + j] = arc_score(theta, shift, parts + i * ROLES, parts + j * ROLES, 0, far, between, count)
            if i > 0:
                scores[j * (n + 1) + i] = arc_score(theta, shift, parts + j * ROLES, parts + i * ROLES, 1, far, between, count)
            if not seen[kind[j]]:
                seen[kind[j]] = 1
                between[count] = parts[j * ROLES + BETWEEN]
                count += 1


cdef inline Py_ssize_t positions_of(
    int shift, const uint64_t *parts, const int *kind, int kinds, Py_ssize_t head, Py_ssize_t word, char *seen, int *at
) noexcept nogil:
    """Fill the positions of the features of one arc, at most 2 KEYS + n; return how many."""
    cdef uint64_t keys[KEYS]
    cdef Py_ssize_t e, count = 0, low = head if head < word else word, high = word if head < word else head
    cdef int side = 8 * (head > word), far = bucket(high - low), slot
    keys_of(parts + head * ROLES, parts + word * ROLES, keys)
    for e in range(KEYS):
        slot = <int>(keys[e] >> shift) * SLOT + side
        at[count], at[count + 1] = slot, slot + far
        count += 2
    for e in range(kinds):
        seen[e] = 0
    for e in range(low + 1, high):
        if not seen[kind[e]]:
            seen[kind[e]] = 1
            at[count] = <int>((keys[12] + parts[e * ROLES + BETWEEN]) >> shift) * SLOT + side
            count += 1
    return count


cdef inline int check_heads(const int[::1] heads, const long long[::1] start) except -1:
    """Heads lie in their sentence, and no word is its own."""
    cdef Py_ssize_t s, m
    cdef bint outside = heads.shape[0] != start[start.shape[0] - 1]
    demand(not outside, "heads must be a number for each word")
    for s in range(start.shape[0] - 1):
        for m in range(start[s], start[s + 1]):
            outside |= heads[m] < 0 or heads[m] > start[s + 1] - start[s] or heads[m] == m - start[s] + 1
    demand(not outside, "heads must lie in [0, words of the sentence], and no word is its own")
    return 0
