"""The contract of every registered loss: readable oracle against brute force, compiled faces against the readable ones.

A new loss is picked up from the registry; a class may offer `examples(n_classes)`, option sets to try.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from support import reference
from support.pairwise import pairwise
from support.registered import canonical_losses, examples

from advcli.core import compiled
from advcli.losses import AdversarialLoss, Loss, loss_class, make_loss
from advcli.testing.losses import (
    check_answers,
    check_block,
    check_compiled,
    check_feasible,
    check_memory,
    check_moved,
    check_no_number,
    check_offset,
    check_own_offset,
    check_players,
    check_rows,
    check_shift,
    check_subgradient,
    kinks,
    largest_cost,
)

NAMES = canonical_losses()  # aliases have their own test


@pytest.fixture(params=[25, pytest.param(200, marks=pytest.mark.slow)], ids=["", "many"])
def drawn(request: pytest.FixtureRequest) -> settings:
    """How many cases Hypothesis draws for each loss."""
    return settings(max_examples=request.param, deadline=None, derandomize=True)


SIZE = pytest.mark.parametrize("more", [1, pytest.param(4, marks=pytest.mark.slow)], ids=["", "many"])
"""How many times the fewest random rows a test compares with a solver."""


def in_reference(loss: Loss, options: dict[str, Any], y: int) -> tuple[str, dict[str, Any]]:
    """Return the name and the options under which the reference knows the loss of an example with label y."""
    k = loss.n_classes
    if loss.name in reference.HINGES:
        return loss.name, {}
    if loss.name == "weighted":  # the base's matrix times one weight, or times that of the example's own label
        weight = np.broadcast_to(options.get("weight", 1.0), (k,))[y]
        return "general", {"matrix": weight * reference.loss_matrix(options.get("base", "zero_one"), k)}
    return loss.name, options


@st.composite
def scores(draw: st.DrawFn, k: int) -> np.ndarray:
    """One row of scores: ordinary, tied, all equal, shifted by +-1e8, of size 1e8, 1e300 or 1e-300."""
    kind = draw(st.sampled_from(["ordinary", "ordinary", "ties", "equal", "shifted", "large", "huge", "tiny", "mixed"]))
    fine = st.floats(-4, 4, allow_nan=False, width=32)
    coarse = st.integers(-3, 3).map(float)
    if kind == "equal":
        return np.full(k, draw(fine))
    element = coarse if kind in ("ties", "huge") else fine
    row = np.array(draw(st.lists(element, min_size=k, max_size=k)))
    if kind == "shifted":
        return row + draw(st.sampled_from([1e8, -1e8]))
    if kind == "mixed":  # every size at once
        sizes = st.sampled_from([1.0, 1e8, 1e300, 1e-300])
        return row * np.array(draw(st.lists(sizes, min_size=k, max_size=k)))
    return row * {"large": 1e8, "huge": 1e300, "tiny": 1e-300}.get(kind, 1.0)


def draw_case(data: st.DataObject, name: str, largest: int = 5) -> tuple[Loss, dict[str, Any], np.ndarray, int]:
    k = data.draw(st.integers(1, largest), label="k")
    options = data.draw(st.sampled_from(examples(name, k)), label="options")
    f = data.draw(scores(k), label="f")
    return make_loss(name, k, **options), options, f, data.draw(st.integers(0, k - 1), label="y")


def tolerance(loss: Loss, *rows: np.ndarray) -> float:
    """Return 1e-10 in units of the numbers that enter a value: scores (summed over labels by ww and llw) and costs."""
    costs = largest_cost(loss)
    return 1e-10 * float(1.0 + costs + loss.n_classes * max(np.abs(row).max() for row in rows))


def random_point(loss: Loss, y: int, random: np.random.Generator) -> np.ndarray:
    """Return r in the hull of R(y), often on its boundary."""
    k = loss.n_classes
    if loss.name in ("ww", "llw"):
        a = np.clip(random.uniform(-0.5, 1.5, k), 0, 1) * (np.arange(k) != y)
        return a - (np.eye(k)[y] * a.sum() if loss.name == "ww" else a.mean())
    if not loss.simplex and loss.name not in reference.HINGES:
        R = corners(loss, y)
        return random.dirichlet(np.full(len(R), 0.4)) @ R
    return random.dirichlet(np.full(k, 0.4)) - np.eye(k)[y]


def assert_in_hull(loss: Loss, r: np.ndarray, y: int, slack: float = 1e-12) -> None:
    assert abs(r.sum()) <= slack * len(r)
    others = np.arange(len(r)) != y
    if loss.name == "ww":
        a = r[others]
    elif loss.name == "llw":
        a = r[others] - r[y]
    elif not loss.simplex:
        assert distance(corners(loss, y), r) <= slack + 1e-10
        return
    else:
        q = r + np.eye(len(r))[y]
        assert q.min() >= -slack
        return
    assert (a >= -slack).all()
    assert (a <= 1 + slack).all()


# ---- the readable oracle --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_oracle_value_is_that_of_brute_force(name: str, drawn: settings) -> None:
    @drawn
    @given(st.data())
    def check(data: st.DataObject) -> None:
        loss, options, f, y = draw_case(data, name)
        answer = loss.oracle_reference(f[None], np.array([y]))
        known, own = in_reference(loss, options, y)
        if not isinstance(loss, AdversarialLoss) or np.abs(f).max() <= 1e3:
            expected = reference.oracle_brute(known, f, y, **own)
        elif max(np.shape(loss.matrix)) <= 5:
            expected = float(reference.game_exact(reference.loss_matrix(known, len(f), **own), f)) - f[y]
        else:
            return  # the saddle point test covers large games at any size of the scores
        assert abs(answer.value[0] - expected) <= tolerance(loss, f)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_answer_is_a_point_of_the_hull_that_attains_the_value(name: str, drawn: settings) -> None:
    @drawn
    @given(st.data())
    def check(data: st.DataObject) -> None:
        loss, options, f, y = draw_case(data, name)
        answer = loss.oracle_reference(f[None], np.array([y]))
        known, own = in_reference(loss, options, y)
        assert answer.R.shape == (1, len(f))
        assert_in_hull(loss, answer.R[0], y)
        assert abs(answer.R[0] @ f + answer.offset[0] - answer.value[0]) <= tolerance(loss, f)
        assert answer.offset[0] == pytest.approx(reference.offset_brute(known, answer.R[0], y, **own), abs=1e-10)
        inner = random_point(loss, y, np.random.default_rng(len(f)))
        expected = reference.offset_brute(known, inner, y, **own)
        assert loss.offset_reference(inner[None], np.array([y]))[0] == pytest.approx(expected, abs=1e-12)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_r_is_a_subgradient_and_the_value_ignores_a_common_shift(name: str, drawn: settings) -> None:
    @drawn
    @given(st.data())
    def check(data: st.DataObject) -> None:
        loss, _, f, y = draw_case(data, name, largest=7)
        other = data.draw(scores(len(f)), label="other")
        label = np.array([y])
        check_subgradient(loss, f[None], other[None], label)
        for shift in (1.0, -1e8):
            check_shift(loss, f[None], label, shift)
        check_own_offset(loss, f[None], label)

    check()


@pytest.mark.parametrize("name", [name for name in NAMES if issubclass(loss_class(name), AdversarialLoss)])
def test_neither_player_gains_by_any_pure_response(name: str, drawn: settings) -> None:
    @drawn
    @given(st.data())
    def check(data: st.DataObject) -> None:
        loss, _, f, _ = draw_case(data, name, largest=9)
        assert isinstance(loss, AdversarialLoss)
        Q, P = loss.adversary(f[None]), loss.predictor(f[None])
        assert P.shape == (1, loss.n_predictions)
        gap = reference.saddle_gap(loss.matrix, f, Q[0], P[0])
        assert 0 <= gap <= 1e-11 * (1 + largest_cost(loss))

    check()


@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_classes(name: str) -> None:
    random = np.random.default_rng(11)
    F = np.concatenate([random.normal(size=(2, 1000)) * scale for scale in (1e-3, 1.0, 1e3)] + [np.zeros((1, 1000))])
    y = random.integers(0, 1000, len(F))
    for options in examples(name, 1000)[:1]:
        loss = make_loss(name, 1000, **options)
        answer = loss.oracle_reference(F, y)
        if isinstance(loss, AdversarialLoss):
            L, Q, P = loss.matrix, loss.adversary(F), loss.predictor(F)
            upper = (P @ L + F).max(axis=1) - F[np.arange(len(F)), y]
            for distribution in (Q, P):
                assert distribution.min() >= 0
                np.testing.assert_allclose(distribution.sum(axis=1), 1.0, rtol=1e-12)
        elif name not in reference.HINGES:
            check_answers(loss, F, y)
            continue
        else:
            margins = 1.0 + F - {"llw": F.mean(axis=1)}.get(name, F[np.arange(len(F)), y])[:, None]
            margins[np.arange(len(F)), y] = 0.0
            upper = margins.max(axis=1) if name == "cs" else np.maximum(margins, 0.0).sum(axis=1)
        assert np.isfinite(answer.value).all()
        np.testing.assert_allclose(answer.value, upper, atol=1e-10 * (1 + np.abs(upper).max()))


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_see_each_other_and_repeat_bit_for_bit(name: str) -> None:
    random = np.random.default_rng(12)
    F, y = np.round(random.normal(size=(9, 4)), 1), random.integers(0, 4, 9)
    for options in examples(name, 4):
        loss = make_loss(name, 4, **options)
        check_answers(loss, F, y)
        check_rows(loss, F, y)


def test_aliases_are_the_same_class() -> None:
    assert loss_class("ordinal") is loss_class("absolute")


# ---- the set of dual points -----------------------------------------------------------------------------------------
def dual_points(loss: Loss, random: np.random.Generator, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Return oracle answers, mixtures of them and points from all over the hull, with their labels."""
    k = loss.n_classes
    y = random.integers(0, k, n)
    answers = [loss.oracle_reference(random.normal(size=(n, k)) * scale, y).R for scale in (0.1, 1.0, 10.0)]
    weights = random.dirichlet(np.ones(3), size=n)
    mixed = sum(weights[:, [at]] * R for at, R in enumerate(answers))
    return np.vstack([*answers, mixed, [random_point(loss, int(label), random) for label in y]]), np.tile(y, 5)


def corners(loss: Loss, y: int) -> np.ndarray:
    """Return the extreme points r of R(y), shape (any, k), by enumeration."""
    if loss.name in reference.HINGES:
        return np.array([r for r, _ in reference.extreme_points(loss.name, loss.n_classes, y)])
    if not loss.simplex:
        return np.array([r for r, _ in loss.pieces(y)])
    return np.eye(loss.n_classes) - np.eye(loss.n_classes)[y]


def distance(points: np.ndarray, r: np.ndarray) -> float:
    """Return the largest coordinate's distance between r and the convex hull of points (m, k), by a linear program."""
    m, k = points.shape
    found = linprog(
        np.r_[np.zeros(m), 1.0],
        A_ub=np.block([[points.T, -np.ones((k, 1))], [-points.T, -np.ones((k, 1))]]),
        b_ub=np.r_[r, -r],
        A_eq=np.r_[np.ones(m), 0.0][None],
        b_eq=[1.0],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10, "presolve": False},
    )
    assert found.status == 0
    return float(found.fun)


def set_cases() -> list[Any]:
    return [
        pytest.param(name, k, number, id=f"{name}-{k}-{number}")
        for name in NAMES
        for k in (2, 3, 5)
        for number in range(len(examples(name, k)))
    ]


@pytest.mark.parametrize(("name", "k", "number"), [*set_cases(), *(pytest.param(name, 1, 0, id=f"{name}-1-0") for name in NAMES)])
def test_answers_and_their_mixtures_are_feasible_and_stay_as_they_are(name: str, k: int, number: int) -> None:
    loss = make_loss(name, k, **examples(name, k)[number])
    check_feasible(loss, *dual_points(loss, np.random.default_rng(k)))


@pytest.mark.parametrize(
    ("name", "k", "number", "size"), pairwise((*case.values, size) for case in set_cases() for size in (1e-9, 1e-4, 0.0021, 0.3))
)
def test_points_that_were_moved_out_are_found_and_brought_back(name: str, k: int, number: int, size: float) -> None:
    """Shifted alike or by label, one number changed, a corner lengthened or turned round: at least about as far out as they were moved."""
    loss = make_loss(name, k, **examples(name, k)[number])
    R, y = dual_points(loss, np.random.default_rng(k))
    far = np.array([max(corners(loss, int(label)), key=np.linalg.norm) for label in y])
    check_moved(loss, R, y, size, far=far)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 4])
@SIZE
def test_the_set_is_the_hull_of_its_corners(more: int, name: str, k: int) -> None:
    """Membership by a linear program over all corners: 0 where the loss says so, and else as far as it says, up to a factor of k + 1."""
    loss = make_loss(name, k, **examples(name, k)[0])
    random = np.random.default_rng(k)
    R, y = dual_points(loss, random, more)
    for r, label in zip(R, y, strict=True):
        points = corners(loss, int(label))
        for moved in (r, r + 0.1 * random.normal(size=k), r - 0.01, r + 1e-3 * np.eye(k)[random.integers(k)]):
            outside = float(loss.infeasibility(moved[None], np.array([label]))[0])
            apart = distance(points, moved)
            assert apart <= 4 * k * outside + 1e-9
            assert outside <= (k + 1) * apart + 1e-9
            assert distance(points, loss.project(moved[None], np.array([label]))[0]) <= 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_number_is_never_feasible(name: str) -> None:
    check_no_number(make_loss(name, 3, **examples(name, 3)[0]))


# ---- the compiled faces ---------------------------------------------------------------------------------------------
def compiled_or_skip(loss: Loss) -> None:
    if loss.family[0] not in compiled.kernels.families:
        pytest.skip("kernel not built yet")


def compiled_cases() -> list[Any]:
    return [
        pytest.param(name, k, number, id=f"{name}-{k}-{number}")
        for name in NAMES
        for k in (1, 2, 3, 6, 33)
        for number in range(len(examples(name, k)))
    ]


def some_scores(k: int, random: np.random.Generator) -> np.ndarray:
    """Ordinary rows of several sizes, ties, equal rows, and the extremes 1e8, 1e300 and 1e-300; 29 rows (no multiple of a lane)."""
    F = random.normal(size=(29, k))
    F[:4] *= 0.1
    F[4:8] *= 10
    F[8:12] = np.round(F[8:12])
    F[12] = 0.0
    F[13] = 3.25
    F[14:16] *= 1e8
    F[16:18] += np.array([[1e8], [-1e8]])
    F[18:20] = np.round(F[18:20]) * 1e300
    F[20:22] *= 1e-300
    return F


@pytest.mark.parametrize(("name", "k", "number"), compiled_cases())
def test_compiled_oracle_is_the_readable_one(name: str, k: int, number: int) -> None:
    loss = make_loss(name, k, **examples(name, k)[number])
    compiled_or_skip(loss)
    random = np.random.default_rng(k)
    F = some_scores(k, random)
    y = random.integers(0, k, len(F))
    check_compiled(loss, F, y)
    for r, label in zip(loss.oracle(F, y).R, y, strict=True):
        assert_in_hull(loss, r, label, 1e-11)
    if isinstance(loss, AdversarialLoss) and k > 1:
        near = kinks(loss, random)
        check_players(loss, near)
        check_compiled(loss, near, random.integers(0, k, len(near)))


@pytest.mark.parametrize(("name", "k", "number"), compiled_cases())
def test_compiled_offset_is_the_readable_one(name: str, k: int, number: int) -> None:
    loss = make_loss(name, k, **examples(name, k)[number])
    compiled_or_skip(loss)
    random = np.random.default_rng(k)
    y = random.integers(0, k, 20)
    check_offset(loss, np.stack([random_point(loss, int(label), random) for label in y]), y)


@pytest.mark.parametrize(
    ("name", "k", "number", "curvature"),
    pairwise((*case.values, curvature) for case in compiled_cases() if case.values[1] <= 6 for curvature in (1e-3, 0.3, 20.0)),
)
@SIZE
def test_compiled_block_step_is_the_conic_program(more: int, name: str, k: int, number: int, curvature: float) -> None:
    options = examples(name, k)[number]
    loss = make_loss(name, k, **options)
    compiled_or_skip(loss)
    random = np.random.default_rng(k)
    n = 3 * more
    F, y = 2 * random.normal(size=(n, k)), random.integers(0, k, n)
    F[-1] = np.round(F[-1])
    R0 = np.stack([random_point(loss, int(label), random) for label in y])
    check_block(loss, F, R0, y, np.full(n, curvature))
    R = loss.block(F, R0, y, np.full(n, curvature))

    def objective(r: np.ndarray, i: int) -> float:
        known, own = in_reference(loss, options, int(y[i]))
        quadratic = 0.5 * curvature * float(((r - R0[i]) ** 2).sum())
        return reference.offset_brute(known, r, int(y[i]), **own) + float(F[i] @ r) - quadratic

    for i in range(n):
        assert_in_hull(loss, R[i], int(y[i]), 1e-11)
        known, own = in_reference(loss, options, int(y[i]))
        best = reference.block_qp(known, F[i], R0[i], int(y[i]), curvature, **own)
        assert objective(R[i], i) >= objective(best, i) - 1e-9 * (1 + abs(objective(best, i)))
        if curvature >= 0.1:
            np.testing.assert_allclose(R[i], best, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_faces_take_any_memory_layout(name: str) -> None:
    loss = make_loss(name, 5, **examples(name, 5)[0])
    compiled_or_skip(loss)
    check_memory(loss)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_oracle_with_a_thousand_classes(name: str) -> None:
    loss = make_loss(name, 1000, **examples(name, 1000)[0])
    compiled_or_skip(loss)
    random = np.random.default_rng(13)
    F = np.concatenate([random.normal(size=(3, 1000)) * scale for scale in (1e-3, 1.0, 1e3)])
    y = random.integers(0, 1000, len(F))
    np.testing.assert_allclose(loss.value(F, y), loss.oracle_reference(F, y).value, rtol=1e-10, atol=1e-9)
