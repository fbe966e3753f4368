"""The solver of threshold models: its points belong to their values, and the start that it is given stays as it was."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from advcli.problems.threshold import COUPLINGS, ThresholdProblem
from advcli.solvers.newton.scored_rows import ExplicitRows, KernelRows
from advcli.solvers.newton.threshold import minimise, moved


def random_problem(seed, coupling, kernel):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(20, 60)), int(random.integers(1, 4))
    X = random.normal(size=(n, 3))
    y = np.digitize(X[:, 0] + 0.7 * random.normal(size=n), np.linspace(-0.7, 0.7, m)).astype(np.intp)
    problem = ThresholdProblem(y, np.ones((m + 1, m)), np.ones(n), float(10.0 ** random.uniform(-1.0, 3.0)), coupling)
    return problem, KernelRows(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))) if kernel else ExplicitRows(X)


def values(problem, rows, point):
    """Return the values of a point, from its parameters, thresholds and dual point alone."""
    v = rows.spanned(problem.spanned(point.alpha))
    primal = problem.primal(rows.inner(point.v, point.v, rows.scores(point.v)), rows.scores(point.v), point.eta)
    return primal, problem.dual(point.alpha, rows.inner(v, v, rows.scores(v)))


@pytest.mark.parametrize("kernel", [False, True], ids=["linear", "kernel"])
@pytest.mark.parametrize("coupling", COUPLINGS)
@given(seed=st.integers(0, 10**6), steps=st.sampled_from([1, 2, 5, 41, 42, 1000]))
@example(seed=18, steps=41)  # Newton steps begin from the point of the pairs, whose primal value stays the best
@example(seed=0, steps=1)
@settings(max_examples=10, deadline=None)
def test_a_point_has_the_values_that_it_says_and_a_start_stays_as_it_was(coupling, kernel, seed, steps):
    problem, rows = random_problem(seed, coupling, kernel)
    start = minimise(problem, rows, 1e-9, steps)
    kept = {name: getattr(start, name).copy() for name in ("v", "g", "eta", "alpha")}
    point = minimise(problem, rows, 1e-12, 3, moved(problem, rows, start))
    for name, before in kept.items():
        np.testing.assert_array_equal(getattr(start, name), before)
    for each in (start, point):
        np.testing.assert_allclose(values(problem, rows, each), (each.primal, each.dual), rtol=0, atol=1e-9 * each.primal)
