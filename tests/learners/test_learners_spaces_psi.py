"""Surrogates of margin and loss: known values, slopes, and what each declares of itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.errors import ConfigError
from advcli.learners.structured.spaces.psi import SURROGATES, Margin, Scaling, Slack, make_psi

ALL = [make_psi(name) for name in SURROGATES] + [Scaling(0.25), Scaling(0.0, 0.5), Scaling(2.0, 2.5)]
named = pytest.mark.parametrize("psi", ALL, ids=repr)
h_values, g_values = st.floats(-6.0, 6.0), st.floats(0.1, 9.0)


def loss_axis(psi, g):
    """Return g as the surrogate's axes have it."""
    return -g if psi.axes == "f1" else g


def test_known_values():
    raw, convex = make_psi("prob_raw"), make_psi("prob")
    assert float(raw.value(-1.5, 3.0)) == pytest.approx(0.833231, abs=5e-7)
    assert np.array(raw.slopes(-1.5, 3.0)) == pytest.approx([0.961037, 0.518003], abs=5e-7)
    assert float(raw.value(0.7, 4.0)) == pytest.approx(5.356368, abs=5e-7)
    assert float(convex.value(0.7, 4.0)) == pytest.approx(5.4)
    assert float(make_psi("log").value(0.7, 4.0)) == pytest.approx(4.412744, abs=5e-7)


@pytest.mark.parametrize("name", ["log", "prob"])
@given(h=st.floats(-30.0, 30.0), g=g_values)
@settings(max_examples=40, deadline=None)
def test_the_tangent_of_a_slope_is_the_one_that_it_was_taken_of(name, h, g):
    psi = make_psi(name)
    slope = psi.slopes(h, g)[0]
    found = psi.at_slope(slope, np.float64(g))
    assert psi.slopes(found, g)[0] == pytest.approx(slope, rel=1e-12)
    assert psi.value(found, g) - slope * found == pytest.approx(psi.value(h, g) - slope * h, rel=1e-9, abs=1e-12)


@named
@given(h=h_values, g=g_values)
@settings(max_examples=40, deadline=None)
def test_slopes_are_derivatives_and_rise_with_the_margin(psi, h, g):
    g, step = loss_axis(psi, g), 1e-6
    by_h = (psi.value(h + step, g) - psi.value(h - step, g)) / (2.0 * step)
    by_g = (psi.value(h, g + step) - psi.value(h, g - step)) / (2.0 * step)
    assert np.array(psi.slopes(h, g)) == pytest.approx([float(by_h), float(by_g)], rel=1e-5, abs=1e-5)
    assert psi.slopes(h, g)[0] >= 0.0


@named
@given(h=h_values, other=h_values, g=g_values)
@settings(max_examples=40, deadline=None)
def test_what_is_declared_convex_or_affine_is(psi, h, other, g):
    g = loss_axis(psi, g)
    middle, mean = float(psi.value(0.5 * (h + other), g)), 0.5 * float(psi.value(h, g) + psi.value(other, g))
    if psi.convex:
        assert middle <= mean + 1e-9
    if psi.affine:
        assert middle == pytest.approx(mean, abs=1e-9)


def test_the_raw_probability_surrogate_is_not_convex():
    psi = make_psi("prob_raw")
    assert psi.value(1.0, 4.0) > 0.5 * (psi.value(0.0, 4.0) + psi.value(2.0, 4.0)) + 0.01


@named
def test_the_true_label_is_at_0_and_has_finite_slopes(psi):
    assert psi.value(0.0, 0.0) == 0.0
    assert np.isfinite(psi.slopes(0.0, 0.0)[0])


@named
@given(h=st.floats(0.0, 6.0), g=g_values)
@settings(max_examples=40, deadline=None)
def test_bounds_of_the_loss_hold_where_the_margin_is_not_negative(psi, h, g):
    if psi.axes == "margin" and psi.bounds:
        assert psi.value(h, g) >= g * (1 - 1e-12)
    if psi.name == "log":
        assert psi.value(h, g) >= g * np.log(2.0) * (1 - 1e-12)


@pytest.mark.parametrize("surrogate", ["margin", "f1"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_level_sets_of_the_quasi_linear_are_half_planes(surrogate, seed):
    psi, random = make_psi(surrogate), np.random.default_rng(seed)
    h, g, share = random.normal(size=2), loss_axis(psi, random.uniform(0.1, 5.0, size=2)), random.random()
    ends = psi.value(h, g)
    between = float(psi.value(share * h[0] + (1 - share) * h[1], share * g[0] + (1 - share) * g[1]))
    assert ends.min() - 1e-12 <= between <= ends.max() + 1e-12


def test_scaling_holds_margin_and_slack():
    h, g = np.linspace(-2.0, 2.0, 5), np.arange(1.0, 6.0)
    np.testing.assert_allclose(Scaling(0.0).value(h, g), Margin().value(h, g))
    np.testing.assert_allclose(Scaling(1.0).value(h, g), Slack().value(h, g))


@pytest.mark.parametrize(
    ("name", "beta", "said"),
    [
        ("margn", None, "did you mean margin"),
        ("slack", 0.5, "loss.surrogate=scaling"),
        ("scaling", -0.1, "beta >= 0"),
        ("scaling", 1.5, "beta <= alpha"),
    ],
)
def test_what_is_no_surrogate_is_refused_in_one_line(name, beta, said):
    with pytest.raises(ConfigError, match=said) as caught:
        make_psi(name, beta)
    assert "\n" not in str(caught.value)
