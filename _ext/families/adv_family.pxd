# A compiled surrogate: a handful of functions on one example's scores, bound to a `Family` by the surrogate's kind.
# Scores `f` and dual variables `r` have length kp (k padded to whole vectors, padding 0); `mask` is 0 on the k lanes, -inf on the padding.
# Reference for every formula: docs/notes/oracles.md; Fathony et al. 2018, section 3; the NumPy tier in advcli/losses.

cdef enum:
    FIXED = 0    # label state of a coordinate of r at an exact block step: does not move with f
    TIED = 1     # moves together with all other tied coordinates
    FREE = 2     # moves on its own
    WORK = 20    # scratch vectors of length kp in Family.work: 0-3 oracle, offset and step; 4-7 the general block; 8-19 the caller

ctypedef struct Family:
    int k
    int kp
    int l                    # rows of the loss matrix, where there is one
    double alpha             # abstention cost, or the number of guesses, where there is one
    double unit              # spread of the loss matrix, 1 when it is constant
    const double *matrix     # (l, kp), row = prediction, padded with 0
    const double *mask
    const double *corner     # a 1 between kp zeros and kp - 1: from `corner - j` on stands e_j
    double *work             # WORK * kp doubles, plus whatever the family asks for in `extra`
    double *extra            # owned: the padded loss matrix and the family's larger scratch
    signed char *tight       # (l) where `step` may flag the rows of the loss matrix whose value is the least at its answer, or NULL
    double *hint             # one number that an example keeps between visits (a threshold to start from), or NULL
    # value S(f, y) and the maximising r; c of the answer goes to *c
    double (*oracle)(Family *s, const double *f, Py_ssize_t y, double *r, double *c) noexcept nogil
    # the value alone, which may start from `hint`; NULL where no way to it is shorter than the oracle's
    double (*value)(Family *s, const double *f, Py_ssize_t y) noexcept nogil
    # the largest c with (r, c) in the convex hull of R(y)
    double (*offset)(Family *s, const double *r, Py_ssize_t y) noexcept nogil
    # block gap S(f, y) - c(r) - f.r; where it exceeds `skip`, out = argmax c(r') + f.r' - w/2 |r' - r|^2 and the label states
    # of the face it lies on go to `state` unless that is NULL; `normal` (kp), zeros or NULL, receives one more direction that the face excludes.
    # A `skip` of -infinity asks for no gap: the number returned may be any
    double (*step)(Family *s, const double *f, const double *r, Py_ssize_t y, double w, double skip, double *out, signed char *state, double *normal) noexcept nogil
    # block gaps of two vectors of rows side by side, or NULL: scores f and dual variables r (k, 2 LANES), class by class, both for scratch
    void (*gaps)(const Family *s, double *f, double *r, const Py_ssize_t *y, double *gap) noexcept nogil
