# Surrogates psi(h, g) of a margin h and a task loss g, for compiled loops over structured labels; the reference is
# advcli/learners/structured/spaces/psi.py.

from adv_elementary cimport exp, log1p, normal, pow
from libc.math cimport fabs, sqrt, M_PI

cdef enum:
    MARGIN = 0
    SCALING = 1      # h g^beta + g
    LOG = 2
    PROB = 3
    MAXMIN = 4       # the max-min margin, which is a game and no psi


cdef inline double surrogate(int kind, double beta, double h, double g, double *slope) noexcept nogil:
    """Return psi(h, g) and set its slope in h."""
    cdef double z, root, soft
    if kind == SCALING:
        slope[0] = pow(g, beta)
        return h * slope[0] + g
    if g <= 0.0:
        slope[0] = 0.0 if kind != MARGIN else 1.0
        return h if kind == MARGIN else 0.0
    if kind == LOG:
        soft = (h if h > 0.0 else 0.0) + log1p(exp(-fabs(h)))
        slope[0] = g * exp(h - soft)
        return g * soft
    if kind == PROB:
        root = sqrt(g)
        if h > 0.0:
            slope[0] = root
            return g + root * h
        z = h * sqrt(M_PI / (2.0 * g))
        slope[0] = root * exp(-0.5 * z * z)
        return 2.0 * g * normal(z)
    slope[0] = 1.0
    return h + g
