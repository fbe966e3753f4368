"""Linear programs that stay in HiGHS, beside scipy's of the same numbers."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from advcli.core.highs import pass_program, quiet_solver


def test_a_solver_says_nothing_when_it_is_made_and_when_it_solves(capfd: pytest.CaptureFixture[str]) -> None:
    solver = quiet_solver()
    pass_program(solver, np.ones(2), (0.0, 1.0), (1.0, np.inf), np.ones((1, 2)))
    solver.run()
    assert solver.getObjectiveValue() == 1.0
    del solver
    ctypes.CDLL(None).fflush(None)  # what C holds back
    assert capfd.readouterr() == ("", "")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 6), st.booleans(), st.booleans())
def test_programs_are_those_of_scipy(seed: int, m: int, n: int, maximise: bool, as_csr: bool) -> None:
    """Rows between two ends, one of them infinite here and there; the box makes every program one with an optimum."""
    random = np.random.default_rng(seed)
    A = random.normal(size=(m, n)) * (random.random((m, n)) < 0.7)
    cost, inside = random.normal(size=n), random.uniform(-1.0, 1.0, size=n)
    low = np.where(random.random(m) < 0.3, -np.inf, A @ inside - random.random(m))
    high = np.where(random.random(m) < 0.3, np.inf, A @ inside + random.random(m))
    solver = quiet_solver(1e-10, presolve=bool(seed % 2))
    pass_program(solver, cost, (-1.0, np.ones(n)), (low, high), sparse.csr_array(A) if as_csr else A, maximise)
    sign = -1.0 if maximise else 1.0
    kept_low, kept_high = np.isfinite(low), np.isfinite(high)
    rows, ends = np.vstack([A[kept_high], -A[kept_low]]), np.r_[high[kept_high], -low[kept_low]]
    for factor in (1.0, -2.0):  # the second begins at the basis of the first
        solver.changeColsCost(n, np.arange(n, dtype=np.int32), factor * cost)
        solver.run()
        x = np.array(solver.getSolution().col_value)
        best = linprog(sign * factor * cost, A_ub=rows, b_ub=ends, bounds=(-1.0, 1.0))
        assert sign * factor * float(cost @ x) == pytest.approx(best.fun, abs=1e-8)
        assert (A @ x >= low - 1e-8).all()
        assert (A @ x <= high + 1e-8).all()
        assert np.abs(x).max() <= 1.0 + 1e-8
