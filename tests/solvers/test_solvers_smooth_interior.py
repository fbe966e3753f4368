"""The interior point method of entropies beyond alpha = 2: its system, its curve, and fits where Newton's method stalls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.preprocessing import scale
from solvers.test_solvers_fuzz import random_problem
from support.waiting import HANG

from advcli import SurrogateClassifier
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver
from advcli.solvers.newton.smooth_interior import InteriorDescent, on_curve

TOL = 1e-6
ORDERS = st.sampled_from([2.1, 3.0, 8.0, 16.0, 64.0])


def drawn(
    alpha: float, key: int, *, n: int = 40, d: int = 3, k: int = 4, exponent: int = 8, weighted: bool = False, **more: Any
) -> Problem:
    settled = {"noise": 1.0, "scale": 1.0, "spoiled": set()} | more
    found = random_problem("zero_one", key, n, d, k, exponent, settled["noise"], settled["scale"], settled["spoiled"])
    random, weights = np.random.default_rng(key), {}
    if weighted:
        weights = {"sample_weight": random.integers(0, 3, n) + 0.5, "cost_weight": random.uniform(0.2, 4.0, n)}
    return replace(found, loss=make_loss("entropy", k, alpha=alpha), **weights)


@given(ORDERS, st.integers(1, 6), st.integers(0, 2**20))
def test_a_point_of_the_curve_comes_back(alpha: float, k: int, seed: int) -> None:
    x = np.random.default_rng(seed).uniform(1e-3, 1.0, (5, k)) ** np.random.default_rng(seed + 1).uniform(0.0, 4.0, (5, 1))
    x /= x.max(axis=1)[:, None]
    x /= ((x**alpha).sum(axis=1) ** (1.0 / alpha))[:, None]
    np.testing.assert_allclose(on_curve(x + x ** (alpha - 1.0), alpha), x, rtol=1e-9)


@given(ORDERS, st.integers(2, 5), st.integers(0, 2**20))
def test_a_step_solves_the_linear_equations_of_its_point(alpha: float, k: int, seed: int) -> None:
    """Against all equations at once, written out and solved as they stand."""
    problem, random = drawn(alpha, seed, n=6, d=2, k=k, exponent=2, weighted=True), np.random.default_rng(seed)
    fit, (n, d) = InteriorDescent(problem, Limits(TOL), 0.0), (6, problem.features.shape[0])
    fit.alpha, fit.theta, fit.tau = alpha, random.normal(size=(d, k)), random.normal(size=n)
    fit.F = problem.features.scores(fit.theta) / problem.costs[:, None]
    fit.x = on_curve(random.uniform(0.1, 2.0, (n, k)), alpha)
    fit.p = random.uniform(0.1, 2.0, (n, k))
    residual, target = random.normal(size=(d, k)), random.uniform(0.0, 1.0, (n, k))
    fit._weigh()
    step = fit._direction(fit._factor(), residual, target)
    b = alpha / (alpha - 1.0)
    np.testing.assert_allclose(step.q.sum(axis=1), 0.0, atol=1e-9)
    np.testing.assert_allclose(fit.p * step.q + fit.q * step.p, target - fit.p * fit.q, atol=1e-8)
    np.testing.assert_allclose(step.F, problem.features.scores(step.theta) / problem.costs[:, None], atol=1e-9)
    np.testing.assert_allclose(problem.lam * step.theta + problem.dual_gradient(step.q), -residual, atol=1e-8)
    size = 1e-6 / max(1.0, float(np.abs(step.q / fit.q).max()))

    def shares(q: np.ndarray) -> np.ndarray:
        """Return q / |q|_alpha."""
        largest = q.max(axis=1, keepdims=True)
        return q / (largest * ((q / largest) ** alpha).sum(axis=1, keepdims=True) ** (1.0 / alpha))

    after, before = shares(fit.q + size * step.q), shares(fit.q - size * step.q)
    dx, dw = (after - before) / (2.0 * size), (after ** (alpha - 1.0) - before ** (alpha - 1.0)) / (2.0 * size)
    left = b * (fit.w + dw) - (fit.F + step.F) + (fit.tau + step.tau)[:, None] - (fit.p + step.p)
    scale = 1.0 + np.abs(dx).max() + np.abs(dw).max() + np.abs(step.p).max()
    np.testing.assert_allclose(left / scale, 0.0, atol=1e-5)
    np.testing.assert_allclose((dx + dw - step.sum) / scale, 0.0, atol=1e-5)


def test_every_strength_of_every_order_is_certified() -> None:
    """Newton's method alone stalls in 183 of 600 such problems."""

    @settings(max_examples=120, deadline=None, database=None, derandomize=True)
    @given(
        st.sampled_from([2.1, 3.0, 8.0, 16.0]),
        st.integers(0, 2**32 - 1),
        st.integers(5, 80),
        st.integers(-6, 20),
        st.booleans(),
        st.sampled_from([0.0, 0.1, 1.0, 5.0]),
        st.sampled_from([0.1, 1.0, 10.0]),
        st.sets(st.sampled_from(["rounded", "duplicates", "repeated columns"]), max_size=3),
    )
    def certified(alpha: float, key: int, n: int, exponent: int, weighted: bool, noise: float, scale: float, spoiled: set[str]) -> None:
        problem = drawn(alpha, key, n=n, exponent=exponent, weighted=weighted, noise=noise, scale=scale, spoiled=spoiled)
        solution = make_solver("smooth_newton").solve(problem, Limits(TOL, max_passes=20_000, max_seconds=HANG))
        certificate = certify(problem, solution, TOL)
        assert certificate.gap >= -1e-9 * certificate.primal - 1e-15
        assert certificate.converged

    certified()


def test_no_more_passes_than_allowed() -> None:
    """Wherever one method follows another."""
    problem = drawn(16.0, 1, exponent=18)
    for most in range(1, 120):
        solution = make_solver("smooth_newton").solve(problem, Limits(1e-12, max_passes=most))
        assert solution.status == "max_passes"
        assert solution.passes <= most


def test_the_method_goes_on_from_what_newton_found() -> None:
    problem = drawn(64.0, 3, n=200, exponent=14)
    tried = make_solver("smooth_newton").solve(problem, Limits(TOL, max_passes=60.0))
    assert tried.status == "max_passes"
    solution = make_solver("smooth_newton").solve(problem, Limits(TOL, max_passes=20_000))
    assert solution.status == "converged"
    assert problem.primal(solution.theta) <= problem.primal(tried.theta)


def test_its_first_steps_may_be_behind_what_newton_found() -> None:
    X, y = load_digits(return_X_y=True)
    model = SurrogateClassifier("entropy", C=10.0, loss_options={"alpha": 32.0}, tol=1e-5).fit(scale(X[:1700]), y[:1700])
    assert model.certificate_.converged
