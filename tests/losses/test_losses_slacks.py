"""The slacks of a loss: c stays linear, and r in its set, as long as none of them ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import random_problems
from support.registered import examples

from advcli.core.compiled import kernels
from advcli.losses import make_loss
from advcli.losses.base import AdversarialLoss

K = 4


def moves(loss, seed):
    """Return block steps of random rows, their labels, a random direction of each row's face, and its slacks and rates along them."""
    random = np.random.default_rng(seed)
    y = random.integers(0, K, size=12).astype(np.intp)
    k = loss.n_classes
    R = loss.block(4.0 * random.normal(size=(12, k)), np.zeros((12, k)), y, 1.0)
    scores, curvature = 3.0 * random.normal(size=(12, k)), float(random.choice([0.1, 1.0, 10.0]))
    R, face = kernels.face(loss.family, scores, R, y, curvature)
    B, owner = kernels.tangents(loss.family, face, np.zeros(12, dtype=bool))
    slack, rate = loss.slacks(R, R, y, B, owner)
    a = random.normal(size=len(owner))
    D, rates = np.zeros_like(R), np.zeros_like(slack)
    np.add.at(D, owner, a[:, None] * B)
    np.add.at(rates, owner, a[:, None] * rate)
    return R, y, D, slack, rates


def lengths(slack, rates):
    """Return how far each row can go until a slack ends, at most 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(rates < -1e-12, np.maximum(slack, 0.0) / -rates, np.inf)
    return np.minimum(ends.min(axis=1, initial=1.0), 1.0)


@pytest.mark.parametrize("name", random_problems.canonical_names())
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_c_is_linear_until_a_slack_ends(name, seed):
    loss = make_loss(name, K, **examples(name, K)[0])
    R, y, D, slack, rates = moves(loss, seed)
    assert slack.min() >= -1e-12
    length = lengths(slack, rates)
    end = R + length[:, None] * D
    assert loss.infeasibility(end, y).max() <= 1e-12
    if isinstance(loss, AdversarialLoss) or name in ("cs", "ww", "llw"):
        middle = loss.offset(R + 0.5 * length[:, None] * D, y)
        np.testing.assert_allclose(middle, 0.5 * (loss.offset(R, y) + loss.offset(end, y)), atol=1e-12)


@pytest.mark.parametrize("name", ["zero_one", "absolute", "abstain", "ww", "cs"])
def test_slacks_end_where_the_set_or_the_piece_does(name):
    loss = make_loss(name, K, **examples(name, K)[0])
    ended = 0
    for seed in range(40):
        R, y, D, slack, rates = moves(loss, seed)
        length = lengths(slack, rates)
        beyond = R + (2.0 * length + 1e-6)[:, None] * D
        left = loss.infeasibility(beyond, y) > 1e-9
        middle = loss.offset(loss.inside(R + (length + 5e-7)[:, None] * D, y), y)
        bent = middle > 0.5 * (loss.offset(R, y) + loss.offset(loss.inside(beyond, y), y)) + 1e-9
        short = (length < 1.0) & (np.abs(D).max(axis=1) > 1e-6)
        assert (left | bent)[short].all()
        ended += short.sum()
    assert ended > 10
