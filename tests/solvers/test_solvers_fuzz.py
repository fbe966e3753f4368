"""Semismooth Newton over random problems (docs/notes/large-c.md, section 12): relative gap 1e-6, or an honest status."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from support.registered import plain_losses, with_kinks
from support.waiting import HANG

from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver

TOL = 1e-6


LOSSES = with_kinks(plain_losses())


def random_problem(name, key, n, d, k, exponent, noise, scale, spoiled):
    """n rows, d features, k classes; ``spoiled`` names what makes the data degenerate."""
    random, k = np.random.default_rng(key), max(k, 3) if name == "top_k" else k  # two guesses need three classes
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, k))
    y = np.argmax(scores + noise * random.normal(size=(n, k)), axis=1).astype(np.intp)
    if "rounded" in spoiled:
        X = np.round(X)
    if "duplicates" in spoiled:
        X[n // 2 :] = X[: n - n // 2]
    if "repeated columns" in spoiled:
        X = np.column_stack([X, X[:, 0], np.zeros(n)])
    if "one long row" in spoiled:  # either all rows are long or one is: together they leave double precision behind
        X[0] *= 1000.0
        scale = min(scale, 1.0)
    X = X * scale
    X = np.ascontiguousarray(np.column_stack([X, np.ones(n)]))
    return Problem(LinearFeatures(X, k), make_loss(name, k), y, 1.0 / (2.0**exponent * n))


problems = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["zero_one", "zero_one", *LOSSES]),
        "key": st.integers(0, 2**32 - 1),
        "n": st.integers(5, 120),
        "d": st.integers(1, 8),
        "k": st.integers(2, 6),
        "exponent": st.integers(-6, 20),
        "noise": st.sampled_from([0.0, 0.1, 1.0, 5.0]),
        "scale": st.sampled_from([1e-3, 0.1, 1.0, 1.0, 10.0, 1e3]),
        "spoiled": st.sets(st.sampled_from(["rounded", "duplicates", "repeated columns", "one long row"]), max_size=3),
    }
)


def outcome(problem):
    """Solve, hold the certificate to what it claims, and return whether 1e-6 was reached."""
    solution = make_solver("newton").solve(problem, Limits(TOL, max_passes=20_000, max_seconds=HANG))
    certificate = certify(problem, solution, TOL)
    assert np.isfinite(solution.theta).all()
    # the mean of n surrogates near 1 is known to the last digit of 1, however small it is
    assert certificate.gap >= -1e-9 * certificate.primal - 1e-15
    if not certificate.converged:
        assert certificate.status in ("max_passes", "stalled", "gap_above_tolerance")
        assert certificate.relative_gap > TOL or abs(certificate.gap) <= 1e-15
    return certificate.converged or abs(certificate.gap) <= 1e-15


@seed(20240607)
@settings(max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems)
def test_newton_reaches_the_gap_or_says_that_it_did_not(options):
    outcome(random_problem(**options))


def draw(random):
    choose = random.choice
    spoils = ["rounded", "duplicates", "repeated columns", "one long row"]
    return {
        "name": str(choose(["zero_one", "zero_one", *LOSSES])),
        "key": int(random.integers(2**32)),
        "n": int(random.integers(5, 400)),
        "d": int(random.integers(1, 21)),
        "k": int(random.integers(2, 12)),
        "exponent": int(random.integers(-6, 21)),
        "noise": float(choose([0.0, 0.1, 1.0, 5.0])),
        "scale": float(choose([1e-3, 0.1, 1.0, 1.0, 10.0, 1e3])),
        "spoiled": {str(each) for each in choose(spoils, size=random.integers(0, 4))},
    }


def shares(count, key):
    random = np.random.default_rng(key)
    missed = []
    for _ in range(count):
        options = draw(random)
        if not outcome(random_problem(**options)):
            missed.append(options)
    return missed


def test_a_sample_of_the_fuzz_reaches_the_gap():
    """The fast form of the count below: what honest failures are allowed must stay rare."""
    missed = shares(100, 1)
    assert len(missed) <= 2, missed


@pytest.mark.slow
def test_newton_reaches_the_gap_on_99_percent():
    count = 400
    missed = shares(count, 2)
    print(f"\nnewton reached {TOL:g} on {count - len(missed)} of {count} random problems; missed: {missed}")
    assert len(missed) <= 0.01 * count, missed
