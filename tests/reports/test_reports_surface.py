"""Loss surfaces against what Fathony et al. 2018 say of Figures 4, 7, 8 and 10, and against direct evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advcli.core.errors import ConfigError
from advcli.losses import make_loss
from advcli.reports.pictures.losses import loss_surface


@pytest.mark.parametrize(
    ("name", "options", "pieces"),
    [
        ("zero_one", {}, 7),  # 2^k - 1 planes, section 3.2.1
        ("absolute", {}, 6),  # k (k + 1) / 2 planes, section 3.2.2
        ("abstain", {"alpha": 1.0 / 3.0}, 9),  # k^2 planes, section 3.5
        ("cs", {}, 3),
        ("ww", {}, 4),
    ],
)
@pytest.mark.parametrize("truth", [0, 1, 2])
def test_number_of_linear_pieces(name: str, options: dict[str, Any], pieces: int, truth: int) -> None:
    assert loss_surface(make_loss(name, 3, **options), truth, extent=4.0).pieces == pieces


def test_abstaining_at_one_half_merges_the_two_orders_of_a_pair() -> None:
    assert loss_surface(make_loss("abstain", 3, alpha=0.5)).pieces == 6


def test_surface_holds_the_loss_itself() -> None:
    loss = make_loss("squared", 3)
    surface = loss_surface(loss, truth=1, extent=5.0, points=11)
    scores = np.array([[surface.axis[2], 0.0, surface.axis[7]]])
    assert surface.labels == (0, 2)
    assert surface.value[7, 2] == pytest.approx(loss.value(scores, np.array([1]))[0], abs=1e-6)


def test_every_piece_is_linear() -> None:
    surface = loss_surface(make_loss("squared", 3), truth=2, extent=6.0, points=61)
    inside = (surface.piece[:-2, 1:-1] == surface.piece[1:-1, 1:-1]) & (surface.piece[2:, 1:-1] == surface.piece[1:-1, 1:-1])
    second = surface.value[:-2, 1:-1] - 2.0 * surface.value[1:-1, 1:-1] + surface.value[2:, 1:-1]
    assert inside.sum() > 1000
    assert np.abs(second[inside]).max() < 1e-9
    assert second.min() > -1e-9  # convex everywhere


@pytest.mark.parametrize(("classes", "truth"), [(4, 0), (3, 3)])
def test_only_three_classes(classes: int, truth: int) -> None:
    with pytest.raises(ConfigError):
        loss_surface(make_loss("zero_one", classes), truth)
