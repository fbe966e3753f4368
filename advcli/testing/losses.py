"""Checks of losses: what a loss owes at any number of classes, one function for each obligation and one for all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.typing import Array, Labels
from ..losses import AdversarialLoss, Loss, examples_of
from ..losses.base import ROUNDING

SIZES = (1, 2, 3, 6)  # numbers of classes that a class of losses is checked at


def require(true: Any, broken: str) -> None:
    """Raise AssertionError with a sentence unless something holds."""
    if not true:
        raise AssertionError(broken)


@contextlib.contextmanager
def named(subject: str) -> Iterator[None]:
    """Begin the message of a failed check with the name of the item."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{subject}: {error}") from error


def check_loss(loss_class: type[Loss], **options: Any) -> None:
    """Check a class of losses at 1, 2, 3 and 6 classes, with these options or its ``examples``.

    Its answers attain their values and are subgradients, and without a game the largest of its pieces; a common shift of the scores changes
    nothing, and rows do not influence each other. Answers and their mixtures are feasible dual points; other points are found and brought
    back. Compiled functions agree with the readable ones in any layout of memory, and block steps are optimal. In a game neither player
    gains by another response. AssertionError says the class, the number of classes, the options, and what is broken.

    Examples
    --------
    >>> from advcli.losses import loss_class
    >>> from advcli.testing import check_loss
    >>> check_loss(loss_class("cs"))
    """
    for k in SIZES:
        for chosen in [options] if options else examples_of(loss_class, k):
            with named(f"{loss_class.__name__} with {k} classes and options {chosen}"):
                _check(loss_class(k, **chosen), np.random.default_rng(k))


def _check(loss: Loss, random: np.random.Generator) -> None:
    k = loss.n_classes
    F = some_scores(k, random)
    y = random.integers(0, k, len(F))
    check_answers(loss, F, y)
    if not isinstance(loss, AdversarialLoss) and not loss.smooth:
        check_pieces(loss, F, y)
    check_subgradient(loss, F, np.roll(F, 1, axis=0), y)
    check_shift(loss, F, y, 1.0)
    check_rows(loss, np.round(F[:9], 1), y[:9])
    R, labels = dual_points(loss, random)
    check_feasible(loss, R, labels)
    if k > 1:
        for size in (1e-4, 0.01):
            check_moved(loss, R, labels, size)
        check_no_number(loss)
    check_own_offset(loss, F, y)
    check_compiled(loss, F, y)
    check_offset(loss, R, labels)
    if loss.smooth:
        check_slopes(loss, F[:14])
    for curvature in () if loss.smooth else (0.3, 20.0):
        check_block(loss, F[:8], R[:8], labels[:8], np.full(8, curvature))
    check_memory(loss)
    if isinstance(loss, AdversarialLoss):
        check_players(loss, F)
        near = kinks(loss, random)
        check_players(loss, near)
        check_compiled(loss, near, random.integers(0, k, len(near)))


# ---- what the checks are made on ----------------------------------------------------------------------------------------
def some_scores(k: int, random: np.random.Generator) -> Array:
    """Return rows of scores (24, k): several sizes, ties, one level, shifts by 1e8."""
    F = random.normal(size=(24, k))
    F[:4] *= 0.1
    F[4:8] *= 10.0
    F[8:14] = np.round(F[8:14])
    F[14] = 0.0
    F[15] = 3.25
    F[16:18] += np.array([[1e8], [-1e8]])
    return F


def kinks(loss: AdversarialLoss, random: np.random.Generator, n: int = 60) -> Array:
    """Return scores (n, k) at which several labels are equally good for the adversary against one prediction, up to the last digits."""
    matrix = loss.matrix if not hasattr(loss, "base") else loss.base.matrix
    F = random.normal(size=(n, 1)) - matrix[random.integers(0, len(matrix), n)]
    F -= np.where(random.uniform(size=F.shape) < 0.4, random.uniform(0.0, 2.0, size=F.shape), 0.0)
    return np.asarray(F * (1.0 + np.finfo(float).eps * random.integers(-2, 3, size=F.shape)))


def dual_points(loss: Loss, random: np.random.Generator, n: int = 12) -> tuple[Array, Labels]:
    """Return answers of the readable oracle at three sizes of scores and mixtures of them, (4 n, k), with their labels."""
    y = random.integers(0, loss.n_classes, n)
    answers = [loss.oracle_reference(random.normal(size=(n, loss.n_classes)) * scale, y).R for scale in (0.1, 1.0, 10.0)]
    weights = random.dirichlet(np.ones(3), size=n)
    mixed = sum(weights[:, [place]] * R for place, R in enumerate(answers))
    return np.vstack([*answers, mixed]), np.tile(y, 4)


def largest_cost(loss: Loss) -> float:
    """Return the largest entry of the loss matrix, weights by class included; k for a loss without a game, which may sum over labels."""
    if not isinstance(loss, AdversarialLoss):
        return float(loss.n_classes)
    return float(np.abs(loss.matrix).max() * np.max(getattr(loss, "weight", 1.0)))


def tolerance(loss: Loss, *scores: Array) -> Array:
    """Return for each row 1e-10 in units of the numbers that enter a value: scores (some losses sum them over labels) and costs."""
    largest = np.max([np.abs(F).max(axis=1) for F in scores], axis=0)
    return np.asarray(1e-10 * (1.0 + largest_cost(loss) + loss.n_classes * largest))


# ---- the readable oracle ------------------------------------------------------------------------------------------------
def check_answers(loss: Loss, F: Array, y: Labels) -> None:
    """Check that answers have their shapes, attain their values and repeat their bits."""
    answer, again = loss.oracle_reference(F, y), loss.oracle_reference(F, y)
    require(answer.R.shape == F.shape and answer.value.shape == y.shape, "oracle_reference answers in other shapes than (n,), (n, k)")
    require(np.isfinite(answer.value).all(), "a value is no finite number")
    attained = np.einsum("ij,ij->i", answer.R, F) + answer.offset
    room = tolerance(loss, F)
    require((np.abs(attained - answer.value) <= room).all(), "r.f + c is not the value of the oracle's answer (r, c)")
    require(np.array_equal(again.R, answer.R), "oracle_reference does not repeat its bits")


def check_subgradient(loss: Loss, F: Array, other: Array, y: Labels) -> None:
    """Check that the value at ``other`` scores lies above the plane of the answer at ``F``."""
    here, there = loss.oracle_reference(F, y), loss.oracle_reference(other, y)
    with np.errstate(over="ignore"):
        plane = here.value + np.einsum("ij,ij->i", here.R, other - F)
    require((there.value >= plane - tolerance(loss, F, other)).all(), "r is no subgradient: the value elsewhere lies below its plane")


def check_shift(loss: Loss, F: Array, y: Labels, shift: float) -> None:
    """Check that a number added to every score does not change the value."""
    here, moved = loss.oracle_reference(F, y), loss.oracle_reference(F + shift, y)
    same = (np.abs(moved.value - here.value) <= 10 * tolerance(loss, F, F + shift)).all()
    require(same, f"adding {shift:g} to every score changes the value")


def check_own_offset(loss: Loss, F: Array, y: Labels) -> None:
    """Check that the largest c for the r of an answer is not below the answer's own."""
    answer = loss.oracle_reference(F, y)
    enough = (loss.offset_reference(answer.R, y) >= answer.offset - tolerance(loss, F)).all()
    require(enough, "offset_reference lies below the c of the oracle's own answer")


def check_pieces(loss: Loss, F: Array, y: Labels) -> None:
    """Check that the value is the largest of the pieces, and that each piece is feasible with no larger c than the set allows."""
    require(type(loss).pieces is not Loss.pieces, "it is no game and lists no pieces")
    value, room = loss.oracle_reference(F, y).value, tolerance(loss, F)
    listed = {int(label): loss.pieces(int(label)) for label in np.unique(y)}
    largest = np.array([max(float(f @ r) + c for r, c in listed[int(label)]) for f, label in zip(F, y, strict=True)])
    require((np.abs(value - largest) <= room).all(), "the oracle's value is not the largest of the loss's pieces")
    for label, pieces in listed.items():
        R, labels = np.array([r for r, _ in pieces]), np.full(len(pieces), label)
        require((loss.infeasibility(R, labels) <= ROUNDING * loss.n_classes).all(), "infeasibility calls a piece outside")
        c = loss.offset_reference(R, labels)
        least = np.array([offset for _, offset in pieces])
        require((c >= least - 1e-10 * (1.0 + largest_cost(loss))).all(), "offset_reference lies below the c of a piece")


def check_slopes(loss: Loss, F: Array) -> None:
    """Check that the Jacobian of a smooth surrogate's probabilities, from its slopes, is what small moves of the scores show."""
    random, step = np.random.default_rng(3), 1e-6
    Q, D = loss.slopes(F)
    require(np.allclose(Q, loss.probabilities(F), rtol=1e-12, atol=1e-300), "slopes and probabilities have other distributions")
    V = random.normal(size=F.shape)
    V -= np.einsum("ij,ij->i", Q, V)[:, None]
    W = D * V
    W -= Q * W.sum(axis=1)[:, None]
    moved = (loss.probabilities(F + step * V) - loss.probabilities(F - step * V)) / (2.0 * step)
    # where a probability begins at 0 the second derivative has no bound, and a difference shows less
    near = np.median(np.abs(moved - W), axis=1) <= 1e-6 * (1.0 + np.abs(W).max(axis=1))
    require(near.mean() > 0.8, "slopes are not the derivatives of the probabilities")


def check_rows(loss: Loss, F: Array, y: Labels) -> None:
    """Check that each row has the answer that it has alone, and that zero rows are accepted."""
    together = loss.oracle_reference(F, y)
    for i in range(len(F)):
        alone = loss.oracle_reference(F[i : i + 1], y[i : i + 1])
        require(np.isclose(alone.value[0], together.value[i], rtol=1e-12, atol=1e-12), "a row's value depends on other rows")
        # matrix products of other shapes may round otherwise; HiGHS starts from the row before, so its ties may differ
        if getattr(loss, "backend", "") != "highs":
            require(np.allclose(alone.R[0], together.R[i], rtol=1e-7, atol=1e-13), "a row's answer depends on other rows")
    require(len(loss.oracle_reference(F[:0], y[:0]).value) == 0, "no rows have an answer")


def check_players(loss: AdversarialLoss, F: Array) -> None:
    """Check that both players' answers are distributions and that neither gains by another response, which proves the value."""
    Q, P = loss.adversary(F), loss.predictor(F)
    require(P.shape == (len(F), loss.n_predictions), f"predictor returns shape {P.shape}, not (n, {loss.n_predictions})")
    for name, mass in (("adversary", Q), ("predictor", P)):
        require(mass.min() >= 0 and np.abs(mass.sum(axis=1) - 1.0).max() <= 1e-9, f"{name} returns rows that are no distributions")
    weight = float(np.max(getattr(loss, "common", 1.0)))
    matrix = loss.matrix if weight != 1.0 or not hasattr(loss, "base") else loss.base.matrix
    level = F.max(axis=1, keepdims=True)
    gap = (P @ matrix + F - level).max(axis=1) - (Q @ matrix.T).min(axis=1) - np.einsum("ij,ij->i", F - level, Q)
    room = 1e-10 * (1.0 + largest_cost(loss) + np.abs(F).max(axis=1))
    require((np.abs(gap) <= room).all(), "a player gains by another response than the one returned")


# ---- the set of dual points ---------------------------------------------------------------------------------------------
def check_feasible(loss: Loss, R: Array, y: Labels) -> None:
    """Check that points of conv R(y) are called feasible and stay as they are, and that c is concave between two of one label."""
    outside = loss.infeasibility(R, y)
    require(outside.shape == y.shape and (outside >= 0).all(), "infeasibility returns no (n,) numbers >= 0")
    require((outside <= ROUNDING * loss.n_classes).all(), "infeasibility calls an answer, or a mixture of two, outside")
    require(loss.project(R, y) is R, "project moves a feasible point")
    order = np.argsort(y, kind="stable")
    pairs = [(a, b) for a, b in pairwise(order) if y[a] == y[b]]
    if pairs:
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        c = loss.offset_reference(R, y)
        middle = loss.offset_reference(0.5 * (R[first] + R[second]), y[first])
        concave = (middle >= 0.5 * (c[first] + c[second]) - 1e-10 * (1.0 + largest_cost(loss))).all()
        require(concave, "offset_reference is not concave between two answers")


def check_moved(loss: Loss, R: Array, y: Labels, size: float, far: Array | None = None) -> None:
    """Check that feasible points, and the corners ``far`` (n, k), moved out by ``size`` are found, and brought back near."""
    n, k = R.shape
    random = np.random.default_rng(k)
    one = R.copy()
    one[np.arange(n), random.integers(0, k, n)] += size
    if far is None:  # the answers where the label's own score is least
        F = 100.0 * random.normal(size=(n, k))
        F[np.arange(n), y] -= 1e4
        far = loss.oracle_reference(F, y).R
    uneven = R + size * random.choice([-1.0, 1.0], size=n)[:, None] * (1 + np.arange(k))
    for moved in (R - size, R + size, one, uneven, (1.0 + size) * far, -size * far):
        before = moved.copy()
        outside = loss.infeasibility(moved, y)
        require((outside >= 0.3 * size).all(), f"infeasibility does not see points that lie {size:g} outside")
        back = loss.project(moved, y)
        require(np.array_equal(moved, before), "project writes to the points that it is given")
        require((loss.infeasibility(back, y) <= ROUNDING * k).all(), "project leaves a point outside")
        require(np.array_equal(loss.project(back, y), back), "project moves what it has brought back")
        require((np.abs(back - moved).max(axis=1) <= 4 * k * outside).all(), "project moves points further than they lie outside")


def check_no_number(loss: Loss) -> None:
    """Check that a point with nan or an infinite number is never feasible, and that it does not spoil other rows."""
    k = loss.n_classes
    for bad in (np.nan, np.inf, -np.inf):
        R = np.zeros((3, k))
        R[1, k - 1] = bad
        with np.errstate(invalid="ignore"):
            outside = loss.infeasibility(R, np.array([0, k // 2, k - 1]))
        require((outside[[0, 2]] == 0).all() and not outside[1] <= 1e300, f"infeasibility takes {bad} for a number")


# ---- the compiled answers -------------------------------------------------------------------------------------------------
def check_compiled(loss: Loss, F: Array, y: Labels) -> None:
    """Check that `value` and `oracle` are the readable oracle, whose ties they may break otherwise."""
    expected, answer, value, room = loss.oracle_reference(F, y), loss.oracle(F, y), loss.value(F, y), tolerance(loss, F)
    require((np.abs(answer.value - expected.value) <= room).all(), "oracle and oracle_reference have other values")
    require((np.abs(value - answer.value) <= room).all(), "value and oracle differ")
    require((loss.infeasibility(answer.R, y) <= 1e-11).all(), "an answer of oracle lies outside")
    attained = np.einsum("ij,ij->i", answer.R, F) + answer.offset
    require((np.abs(attained - expected.value) <= room).all(), "r.f + c is not the value of the compiled oracle's answer (r, c)")
    right = np.abs(answer.offset - loss.offset_reference(answer.R, y)) <= 1e-10 * (1 + largest_cost(loss)) + 1e-7 * np.abs(answer.offset)
    require(right.all(), "the compiled oracle's c is not that of its r")


def check_offset(loss: Loss, R: Array, y: Labels) -> None:
    """Check that `offset` is the readable one."""
    require(np.allclose(loss.offset(R, y), loss.offset_reference(R, y), rtol=1e-10, atol=1e-11), "offset and offset_reference differ")


def check_block(loss: Loss, F: Array, R0: Array, y: Labels, curvature: Array) -> None:
    """Check that block steps are feasible and optimal.

    The r of a step maximises c(r) + f.r - w/2 |r - r0|^2 exactly where it maximises c(r) + s.r at the scores s = f - w (r - r0), whose
    largest value is S(s): the difference bounds what is missing.
    """
    R = loss.block(F, R0, y, curvature)
    require((loss.infeasibility(R, y) <= 1e-11).all(), "block steps outside")
    moved = F - curvature[:, None] * (R - R0)
    missing = loss.oracle_reference(moved, y).value - loss.offset_reference(R, y) - np.einsum("ij,ij->i", moved, R)
    room = 1e-9 * (1.0 + largest_cost(loss) + loss.n_classes * np.abs(moved).max(axis=1))
    require((np.abs(missing) <= room).all(), f"a block step is not optimal, {missing.max():.1e} is missing")


def check_memory(loss: Loss) -> None:
    """Check that compiled ones take scores of any layout, read-only ones too, and labels of any integers, write to none and take none."""
    random = np.random.default_rng(5)
    k = loss.n_classes
    wide = random.normal(size=(14, 2 * k))
    y = random.integers(0, k, 7)
    F = np.ascontiguousarray(wide[::2, ::2])
    expected = loss.oracle(F, y)
    frozen = F.copy()
    frozen.flags.writeable = False
    for layout in (wide[::2, ::2], np.asfortranarray(F), frozen):
        answer = loss.oracle(layout, y.astype(np.int32))
        same = np.array_equal(answer.value, expected.value) and np.array_equal(answer.R, expected.R)
        require(same, "oracle answers otherwise for another layout of memory")
    require(np.array_equal(F, wide[::2, ::2]), "oracle writes to the scores")
    require(loss.value(F[:0], y[:0]).shape == (0,), "value of no rows is no empty array")
