# Targets of the max-min margin: a distribution p at every position, which moves by proximal steps towards the shares of the mixture.


cdef inline void project(double *p, int K, double *sorted_) noexcept nogil:
    """p (K,) becomes its projection on the simplex (Held, Wolfe & Crowder 1974)."""
    cdef int i, j
    cdef double x, total = 0.0, level = 0.0
    for i in range(K):
        x = p[i]
        j = i
        while j > 0 and x > sorted_[j - 1]:
            sorted_[j] = sorted_[j - 1]
            j -= 1
        sorted_[j] = x
    for i in range(K):
        total += sorted_[i]
        if sorted_[i] - (total - 1.0) / (i + 1) > 0.0:
            level = (total - 1.0) / (i + 1)
    for i in range(K):
        p[i] = p[i] - level if p[i] > level else 0.0


cdef inline void target(const double *share, const double *centre, double delta, int K, double *cost, double *sorted_) noexcept nogil:
    """cost = 1 - the projection of centre + share / delta on the simplex, which stays where it is if centre and share are the same vertex."""
    cdef int j
    for j in range(K):
        if share[j] == 1.0 and centre[j] == 1.0:
            return
    for j in range(K):
        cost[j] = centre[j] + share[j] / delta
    project(cost, K, sorted_)
    for j in range(K):
        cost[j] = 1.0 - cost[j]
