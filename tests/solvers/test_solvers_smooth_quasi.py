"""Quasi-Newton steps for smooth surrogates: their direction, their matrix, the lengths of steps."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solvers.test_solvers_smooth_interior import drawn

from advcli import SurrogateClassifier
from advcli.core.typing import Array
from advcli.solvers import Limits
from advcli.solvers.newton import smooth_quasi
from advcli.solvers.newton.smooth_descent import Place
from advcli.solvers.newton.smooth_quasi import QuasiNewtonDescent, _direction, class_solver, suits


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 6), st.integers(0, 2**20))
def test_a_direction_is_that_of_the_matrix_written_out(d: int, k: int, count: int, seed: int) -> None:
    """BFGS updates of a scaled first matrix (Nocedal & Wright 2006, 6.17 and 7.20)."""
    random, size = np.random.default_rng(seed), d * k
    first, curve = (A @ A.T + np.eye(len(A)) for A in (random.normal(size=(d, d)), random.normal(size=(size, size))))
    changes = deque()
    for _ in range(count):
        moved = random.normal(size=(d, k))
        change = (curve @ moved.ravel()).reshape(d, k)
        changes.append((moved, change, float(moved.ravel() @ change.ravel())))
    H = np.kron(first, np.eye(k))
    if changes:
        _, change, curvature = changes[-1]
        H *= curvature / (change.ravel() @ H @ change.ravel())
    for moved, change, curvature in changes:
        s, y = moved.ravel(), change.ravel()
        V = np.eye(size) - np.outer(y, s) / curvature
        H = V.T @ H @ V + np.outer(s, s) / curvature
    gradient = random.normal(size=(d, k))
    found = _direction(gradient, changes, lambda v: first @ v)
    np.testing.assert_allclose(found.ravel(), -H @ gradient.ravel(), rtol=1e-9, atol=1e-9 * np.abs(H).max())


@given(st.sampled_from([1.0, 1.5, 2.0, 8.0]), st.integers(2, 5), st.booleans(), st.integers(0, 2**20))
def test_the_class_matrix_is_the_mean_of_the_hessian_over_directions_that_sum_to_zero(
    alpha: float, k: int, weighted: bool, seed: int
) -> None:
    problem = drawn(alpha, seed, n=9, d=2, k=k, weighted=weighted)
    d, F = problem.features.shape[0], np.random.default_rng(seed).normal(size=(9, k)) * 0.3
    Q, D = problem.loss.slopes(F)
    G = problem.lam * np.eye(d)
    for x, q, own, count, cost in zip(problem.features.X, Q, D, problem.counts, problem.costs, strict=True):
        P = np.eye(k) - np.outer(q, np.ones(k))
        J = P @ np.diag(own) @ P.T
        G += count / cost * np.trace(J) / (k - 1) * np.outer(x, x) / problem.n
    V = np.random.default_rng(seed).normal(size=(d, k))
    np.testing.assert_allclose(G @ class_solver(problem, Q, D)(V), V, atol=1e-13 * np.linalg.cond(G))


@pytest.mark.parametrize("weighted", [False, True])
def test_steps_lower_the_objective_to_where_newton_takes_over(weighted: bool) -> None:
    problem = drawn(1.0, 5, n=300, d=30, k=6, exponent=0, weighted=weighted)
    assert suits(problem)
    fit = QuasiNewtonDescent(problem, Limits(1e-6), 0.0)
    assert fit.run(None) == ""
    assert fit.place is not None
    gradient = problem.dual_gradient(fit.R) + problem.lam * fit.place.theta
    assert float((gradient**2).sum()) / (2.0 * problem.lam) <= 0.05 * fit.place.primal
    assert fit.place.primal == pytest.approx(problem.primal(fit.place.theta), rel=1e-10)
    np.testing.assert_allclose(fit.place.scores, problem.features.scores(fit.place.theta), atol=1e-9)


@pytest.mark.parametrize("rising", [2, 4])  # the last is the fourth
def test_a_step_that_rises_is_not_taken(monkeypatch: pytest.MonkeyPatch, rising: int) -> None:
    """A gap of the point before, beside the primal value of a step that rose by far, once ended a fit of 25 rows as converged."""
    for limit in ("_MOST", "_FEW"):
        monkeypatch.setattr(smooth_quasi, limit, 4)
    ends, settle = [], QuasiNewtonDescent._end

    def end(fit: QuasiNewtonDescent, place: Place, direction: Array, along: Array, slope: float) -> Place:
        up = len(ends) + 1 == rising
        ends.append(fit._at(place.theta - 1e6 * direction) if up else settle(fit, place, direction, along, slope))
        return ends[-1]

    monkeypatch.setattr(QuasiNewtonDescent, "_end", end)
    fit = QuasiNewtonDescent(drawn(1.0, 5, n=300, d=30, k=6, exponent=12), Limits(1e-3), 0.0)
    assert fit.run(None) == ""
    assert len(ends) == rising
    assert fit.place is ends[-2]
    assert fit.best.dual <= fit.best.primal


def test_wide_rows_are_left_to_newton() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 80)), random.integers(0, 3, 50)
    assert not suits(drawn(1.0, 0, n=50, d=80, k=3))
    assert SurrogateClassifier("entropy", C=0.1).fit(X, y).certificate_.converged
