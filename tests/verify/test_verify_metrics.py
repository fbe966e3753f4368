"""The checker's metrics are those of the house, and of several possible predictions they hold all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
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
    found = range_of(name, [z[None].astype(float) for z in Z], sparse.csr_array(Y))
    assert found == (pytest.approx(value), pytest.approx(value))


@pytest.mark.parametrize("name", SETS)
def test_several_sets_of_a_row_span_a_range(name: str) -> None:
    Y, every = np.array([[1, 0], [0, 0], [1, 1]]), np.array(list(itertools.product((0.0, 1.0), repeat=2)))
    found = range_of(name, [every[[1, 2]], every[:1], every], sparse.csr_array(Y))
    if name in ("micro_f1", "macro_f1"):
        assert found is None
        return
    assert found is not None
    values = [
        metrics.compute(name, sparse.csr_array(Y), sparse.csr_array(np.array([a, every[0], b]).astype(np.int8)), 2, {})
        for a, b in itertools.product(every[[1, 2]], every)
    ]
    assert found == (pytest.approx(min(values)), pytest.approx(max(values)))


def test_metrics_that_are_not_judged_are_none() -> None:
    assert range_of("cross_entropy", np.ones((2, 3), dtype=bool), np.zeros(2, dtype=int)) is None
    assert range_of("cross_entropy", [np.zeros((1, 2))], sparse.csr_array(np.zeros((1, 2)))) is None
