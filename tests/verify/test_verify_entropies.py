"""The checker's bounds of entropies and their surrogates, against the losses of the package and general solvers."""

from __future__ import annotations

import numpy as np
import pytest

from advcli.losses import make_loss
from advcli.verify.entropies import entropy, largest

ORDERS = [1.0, 1.0005, 1.3, 2.0, 8.0, 64.0]


def scores(k: int) -> np.ndarray:
    random = np.random.default_rng(k)
    return random.normal(size=(300, k)) * random.choice([0.1, 1.0, 30.0], size=(300, 1))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("k", [2, 5])
def test_the_largest_lies_just_above_the_surrogate(order: float, k: int) -> None:
    Z, y = scores(k), np.zeros(300, dtype=int)
    value = make_loss("entropy", k, alpha=order).value(Z, y) + Z[:, 0]
    above = largest(Z, order) - value
    assert above.min() >= 0.0
    assert above.max() < 1e-8


@pytest.mark.parametrize("order", ORDERS)
def test_any_level_gives_an_upper_bound(order: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few steps of bisection the level is off, and the bound is larger but still one."""
    from advcli.verify import entropies

    Z, y = scores(4), np.zeros(300, dtype=int)
    value = make_loss("entropy", 4, alpha=order).value(Z, y) + Z[:, 0]
    monkeypatch.setattr(entropies, "HALVINGS", 3)
    assert (entropies.largest(Z, order) >= value).all()


@pytest.mark.parametrize("order", ORDERS)
def test_entropies_of_numbers_near_a_distribution_enclose_those_of_the_distribution(order: float) -> None:
    random = np.random.default_rng(1)
    Q = random.dirichlet(np.full(4, 0.5), size=200)
    Q[:20, 0] = 0.0
    Q[:20] /= Q[:20].sum(axis=1, keepdims=True)
    loss = make_loss("entropy", 4, alpha=order)
    R = Q.copy()
    R[:, 0] -= 1.0
    found = entropy(Q * (1.0 + 1e-15), order)
    exact = loss.offset(R, np.zeros(200, dtype=int))
    assert (found.low <= exact + 1e-12).all()
    assert np.abs(found.mid - exact).max() < 1e-9
