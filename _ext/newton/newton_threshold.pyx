"""Passes over the hinges of threshold models, one hinge a row i and threshold j, for the proximal Newton method of advcli/solvers/newton/threshold.py.

Arrays of hinges are (m, n), threshold by threshold. With s = +1 where y_i > j, else -1, and z = 1 - s (g_i - eta_j), a proximal step from the
centre A has the dual variables alpha = A + z / sigma, held in [0, U]; those strictly between are free. Thresholds in order have multipliers
mu_j = max(0, centre_j + (eta_j - eta_{j+1}) / ease), one for each pair of neighbours; none where ``centre`` is empty.
"""

from libc.math cimport INFINITY, fabs

from adv_check cimport check_labels, demand

cdef enum:
    ROUNDS = 100      # of the search for one threshold


cdef inline double held(double a, double most) noexcept nogil:
    a = a if a > 0.0 else 0.0
    return a if a < most else most


cdef int check(const Py_ssize_t[::1] y, const double[:, ::1] U, const double[::1] g, const double[::1] eta, const double[:, ::1] A) except -1:
    cdef Py_ssize_t m = U.shape[0], n = U.shape[1]
    demand(m > 0 and n > 0, "there must be a row and a threshold")
    check_labels(y, n, m + 1)
    demand(g.shape[0] == n and eta.shape[0] == m and A.shape[0] == m and A.shape[1] == n, "scores must be (n,), thresholds (m,), centres (m, n)")
    return 0


cdef int check_centre(const double[::1] centre, Py_ssize_t m) except -1:
    demand(centre.shape[0] == 0 or centre.shape[0] == m - 1, "multipliers of the order must be m - 1 numbers or none")
    return 0


def step(const Py_ssize_t[::1] y, const double[:, ::1] U, const double[::1] g, const double[::1] eta, const double[:, ::1] A, double sigma,
         double[:, ::1] alpha, double[::1] beta, double[::1] total, int[::1] free_of):
    """Write alpha (m, n), beta_i = sum_j s alpha (n,), total_j = sum_i s alpha (m,) and how many hinges of each row are free (n,).

    Return the sum of U max(z, 0) - alpha z: what the dual variables fall short of the hinges.
    """
    cdef Py_ssize_t i, j, m = U.shape[0], n = U.shape[1]
    cdef double inverse = 1.0 / sigma, z, a, s, short_of = 0.0, sums, level
    check(y, U, g, eta, A)
    demand(alpha.shape[0] == m and alpha.shape[1] == n and beta.shape[0] == n and total.shape[0] == m and free_of.shape[0] == n,
           "alpha must be (m, n), beta and the counts (n,), totals (m,)")
    with nogil:
        for i in range(n):
            beta[i] = 0.0
            free_of[i] = 0
        for j in range(m):
            sums = 0.0
            level = eta[j]
            for i in range(n):
                s = 1.0 if y[i] > j else -1.0
                z = 1.0 - s * (g[i] - level)
                a = A[j, i] + z * inverse
                free_of[i] += 1 if 0.0 < a < U[j, i] else 0
                a = held(a, U[j, i])
                alpha[j, i] = a
                beta[i] += s * a
                sums += s * a
                short_of += (U[j, i] * z if z > 0.0 else 0.0) - a * z
            total[j] = sums
    return short_of


def slope(const Py_ssize_t[::1] y, const double[:, ::1] U, const double[::1] g, const double[::1] eta, const double[:, ::1] A, double sigma,
          const double[::1] dg, const double[::1] deta, const double[::1] centre, double ease, double t):
    """Return the derivative of the smoothed hinges, and of the order's penalty, along (g + t dg, eta + t deta)."""
    cdef Py_ssize_t i, j, m = U.shape[0], n = U.shape[1]
    cdef double inverse = 1.0 / sigma, z, dz, a, s, sums = 0.0, level, moved
    check(y, U, g, eta, A)
    check_centre(centre, m)
    demand(dg.shape[0] == n and deta.shape[0] == m, "directions must be (n,) and (m,)")
    with nogil:
        for j in range(m):
            level = eta[j] + t * deta[j]
            moved = deta[j]
            for i in range(n):
                s = 1.0 if y[i] > j else -1.0
                z = 1.0 - s * (g[i] + t * dg[i] - level)
                dz = -s * (dg[i] - moved)
                sums += held(A[j, i] + z * inverse, U[j, i]) * dz
        for j in range(centre.shape[0]):
            a = centre[j] + (eta[j] + t * deta[j] - eta[j + 1] - t * deta[j + 1]) / ease
            if a > 0.0:
                sums += a * (deta[j] - deta[j + 1])
    return sums


def settle(const Py_ssize_t[::1] y, const double[:, ::1] U, const double[::1] g, double[::1] eta, const double[:, ::1] A, double sigma,
           const double[:, ::1] M, const double[::1] centre, double ease):
    """Move each threshold in turn, in place, to the least value of 1/2 eta'M eta + the smoothed hinges + the order's penalty at the others."""
    cdef Py_ssize_t i, j, l, m = U.shape[0], n = U.shape[1]
    cdef double inverse = 1.0 / sigma, a, s, f, rise, level, constant, low, high, size, reach
    cdef int turn
    cdef bint bracketed
    check(y, U, g, eta, A)
    check_centre(centre, m)
    demand(M.shape[0] == m and M.shape[1] == m, "the penalty of the thresholds must be (m, m)")
    with nogil:
        for j in range(m):
            constant = 0.0
            for l in range(m):
                if l != j:
                    constant += M[j, l] * eta[l]
            low, high, reach, level = -INFINITY, INFINITY, 1.0, eta[j]
            for turn in range(ROUNDS):
                f = constant + M[j, j] * level
                rise = M[j, j]
                size = fabs(f)
                for i in range(n):
                    s = 1.0 if y[i] > j else -1.0
                    a = A[j, i] + (1.0 - s * (g[i] - level)) * inverse
                    rise += inverse if 0.0 < a < U[j, i] else 0.0
                    a = held(a, U[j, i])
                    f += s * a
                    size += a
                if centre.shape[0]:
                    if j + 1 < m:
                        a = centre[j] + (level - eta[j + 1]) / ease
                        if a > 0.0:
                            f += a
                            size += a
                            rise += 1.0 / ease
                    if j > 0:
                        a = centre[j - 1] + (eta[j - 1] - level) / ease
                        if a > 0.0:
                            f -= a
                            size += a
                            rise += 1.0 / ease
                if not fabs(f) > 1e-12 * size:
                    break
                if f > 0.0:
                    high = level
                else:
                    low = level
                bracketed = low > -INFINITY and high < INFINITY
                if rise > 0.0 and not (bracketed and turn % 3 == 2):
                    level -= f / rise
                elif bracketed:
                    level = 0.5 * (low + high)
                else:
                    level += reach if f < 0.0 else -reach
                    reach *= 2.0
                if bracketed and not low < level < high:
                    level = 0.5 * (low + high)
                    if not low < level < high:
                        break
            eta[j] = level


def hinges(const Py_ssize_t[::1] y, const double[:, ::1] U, const double[::1] g, const double[::1] eta):
    """Return the sum of U max(z, 0)."""
    cdef Py_ssize_t i, j, m = U.shape[0], n = U.shape[1]
    cdef double z, s, sums = 0.0
    check(y, U, g, eta, U)
    with nogil:
        for j in range(m):
            for i in range(n):
                s = 1.0 if y[i] > j else -1.0
                z = 1.0 - s * (g[i] - eta[j])
                sums += U[j, i] * z if z > 0.0 else 0.0
    return sums
