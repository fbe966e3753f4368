"""A family of proximal Newton steps in one file, as docs/project/architecture.md describes: dual variables in second-order cones."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.solvers.best import BestSeen
from advcli.solvers.newton.proximal import CLOSE, MAX_FAILURES, ProximalMethod, fall, line_search, minimise


class ConeStep(ProximalMethod):
    """1/2 |v|^2 + C sum_i |b_i - A_i v|, A (n, m, d) and b (n, m); its dual variables a_i lie in balls of radius C.

    A proximal step from a* has a_i(v) = the projection of u_i = a*_i + (b_i - A_i v) / rho on the ball, the gradient v - sum A_i' a_i,
    and the Hessian I + 1/rho sum A_i' J_i A_i, J_i the Jacobian of the projection at u_i.
    """

    def __init__(self, A, b, C, tol, most=500):
        self.A, self.b, self.C, self.tol, self.most = A, b, C, tol, most
        self.centre, self.rho = np.zeros_like(b), float(np.square(A).sum() / len(A))
        self.steps = self.failures = 0
        self.best = BestSeen()

    def dual_point(self, v):
        """Return slacks b - A v, the points u before their projection, and a, all (n, m)."""
        slack = self.b - self.A @ v
        u = self.centre + slack / self.rho
        return slack, u, u * np.minimum(1.0, self.C / np.maximum(np.linalg.norm(u, axis=1), 1e-300))[:, None]

    def spanned(self, a):
        return np.einsum("imd,im->d", self.A, a)

    def judge(self, point, steps):
        slack, self.u, self.a = self.dual_point(point)
        self.residual = point - self.spanned(self.a)
        norms, w = self.C * np.linalg.norm(slack, axis=1).sum(), point - self.residual
        self.best.take(point, 0.5 * point @ point + norms, self.a, float((self.a * self.b).sum()) - 0.5 * w @ w)
        # P - D = half of the squared residual, left to Newton steps, + the gaps of the rows, which only a new centre closes
        return self.best.reached(self.tol) or 0.5 * self.residual @ self.residual <= CLOSE * (norms - float((self.a * slack).sum()))

    def advance(self, point):
        size = np.linalg.norm(self.u, axis=1)
        outside, shrink = size > self.C, np.minimum(1.0, self.C / np.maximum(size, 1e-300))
        along = self.u / np.maximum(size, 1e-300)[:, None] * outside[:, None]
        J = shrink[:, None, None] * (np.eye(self.b.shape[1]) - along[:, :, None] * along[:, None, :])
        H = np.eye(len(point)) + np.einsum("imd,imk,ike->de", self.A, J, self.A) / self.rho
        D = -np.linalg.solve(H, self.residual)
        self.steps += 1

        def line(t):
            slope = float(D @ (point + t * D - self.spanned(self.dual_point(point + t * D)[2])))
            return slope, slope, None

        return point + line_search(line, float(D @ self.residual), 40)[0] * D

    def limit(self):
        return "max_passes" if self.steps >= self.most else ""

    def recentre(self, descent):
        self.centre, self.rho = self.a, self.rho * fall(descent.steps)
        return descent.point

    def recover(self, descent):
        self.failures, self.rho = self.failures + 1, 5.0 * self.rho
        return descent.first if self.failures < MAX_FAILURES else None


@given(seed=st.integers(0, 10**6), C=st.sampled_from([1e-2, 1.0, 1e2]))
@settings(max_examples=25, deadline=None)
def test_a_cone_reaches_a_proved_optimum_by_the_one_loop(seed, C):
    random = np.random.default_rng(seed)
    n, m, d = int(random.integers(5, 40)), int(random.integers(2, 4)), int(random.integers(1, 6))
    A, b = random.normal(size=(n, m, d)), random.normal(size=(n, m))
    method = ConeStep(A, b, C, 1e-8)
    assert minimise(method, np.zeros(d)) == "converged"
    v, a = method.best.theta, method.best.R
    primal = 0.5 * v @ v + C * np.linalg.norm(b - A @ v, axis=1).sum()
    w = np.einsum("imd,im->d", A, a)
    assert np.linalg.norm(a, axis=1).max() <= C * (1 + 1e-12)
    assert -1e-12 <= (primal - (float((a * b).sum()) - 0.5 * w @ w)) / primal <= 1e-8 * (1 + 1e-6)


def test_a_limit_ends_it_and_a_step_that_has_no_answer_is_tried_at_a_larger_weight():
    random = np.random.default_rng(0)
    A, b = random.normal(size=(20, 2, 3)), random.normal(size=(20, 2))
    short = ConeStep(A, b, 100.0, 1e-12, most=2)
    assert minimise(short, np.zeros(3)) == "max_passes"
    assert short.steps == 2

    class Lost(ConeStep):
        def advance(self, point):
            return None

    lost = Lost(A, b, 100.0, 1e-8)
    assert minimise(lost, np.zeros(3)) == "stalled"
    assert lost.failures == MAX_FAILURES
