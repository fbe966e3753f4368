"""The checker's metrics equal the package's metrics, and their range holds the values of all possible predictions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from advcli import metrics
from advcli.verify.metrics import range_of

SETS = ("error", "accuracy", "hamming", "jaccard", "instance_f1", "micro_f1", "macro_f1")


@pytest.mark.parametrize("name", SETS)
@given(seed=st.integers(0, 10**6))
def test_metrics_of_sets_are_those_of_the_house(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    Y, Z = (random.random(size=(2, 5, 3)) < random.random()).astype(np.int8)
    value = metrics.compute(name, sparse.csr_array(Y), sparse.csr_array(Z), 3, {})
    limits = range_of(name, [z[None].astype(float) for z in Z], sparse.csr_array(Y))
    assert limits == (pytest.approx(value), pytest.approx(value))


@pytest.mark.parametrize("name", SETS)
def test_several_sets_of_a_row_span_a_range(name: str) -> None:
    Y, every = np.array([[1, 0], [0, 0], [1, 1]]), np.array(list(itertools.product((0.0, 1.0), repeat=2)))
    limits = range_of(name, [every[[1, 2]], every[:1], every], sparse.csr_array(Y))
    if name in ("micro_f1", "macro_f1"):
        assert limits is None
        return
    assert limits is not None
    values = [
        metrics.compute(name, sparse.csr_array(Y), sparse.csr_array(np.array([a, every[0], b]).astype(np.int8)), 2, {})
        for a, b in itertools.product(every[[1, 2]], every)
    ]
    assert limits == (pytest.approx(min(values)), pytest.approx(max(values)))


CODES = ("error", "accuracy", "mae", "mse", "accuracy_within_one", "amae", "mmae", "amse", "kendall_tau", "quadratic_kappa")
ABSTAINING = ("abstention_loss", "cost", "abstain_rate", "accuracy_accepted", "confusion_rate", "confusion_rate_scaled")


@pytest.mark.parametrize("name", [*CODES, *ABSTAINING])
@given(seed=st.integers(0, 10**6), k=st.integers(1, 4), abstains=st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=25, deadline=None)
def test_metrics_of_codes_are_those_of_the_house(name: str, seed: int, k: int, abstains: float) -> None:
    random = np.random.default_rng(seed)
    y, z = random.integers(0, k, 12), np.where(random.random(12) < abstains, k, random.integers(0, k, 12))
    facts = {"alpha": 0.3, "cost_matrix": random.random((k + 1, k)), "n_classes": k}
    value = metrics.compute(name, y, z, k, facts)
    possible = np.arange(k + 1) == z[:, None]
    assert range_of(name, possible, y, facts) == (pytest.approx(value, abs=1e-12, nan_ok=True),) * 2
    # a further row with two possible predictions: both values are in the range, or there is none
    other = z.copy()
    other[0] = (z[0] + 1) % (k + 1)
    possible[0, other[0]] = True
    limits, values = range_of(name, possible, y, facts), [value, metrics.compute(name, y, other, k, facts)]
    if limits is not None and not np.isnan(values).all():
        assert limits == (pytest.approx(min(values), abs=1e-12, nan_ok=True), pytest.approx(max(values), abs=1e-12, nan_ok=True))


@given(seed=st.integers(0, 10**6))
def test_costs_of_rows_are_their_own(seed: int) -> None:
    random = np.random.default_rng(seed)
    costs, z = random.random((9, 4)), random.integers(0, 4, 9)
    limits = range_of("cost", np.arange(4) == z[:, None], costs, {"n_classes": 4, "cost_matrix": np.ones((4, 4))})
    assert limits == (pytest.approx(costs[np.arange(9), z].mean()),) * 2
    wrong = float((costs.argmin(axis=1) != z).mean())
    assert range_of("error", np.arange(4) == z[:, None], costs, {"n_classes": 4}) == (pytest.approx(wrong),) * 2


def test_metrics_that_are_not_judged_are_none() -> None:
    assert range_of("cross_entropy", np.ones((2, 3), dtype=bool), np.zeros(2, dtype=int)) is None
    assert range_of("cross_entropy", [np.zeros((1, 2))], sparse.csr_array(np.zeros((1, 2)))) is None
