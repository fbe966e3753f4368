"""The hinges with abstention: against their definitions, vertex by vertex, compiled against readable, and against the Bayes rule."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from advcli.core.compiled import kernels
from advcli.core.errors import ConfigError
from advcli.losses import make_loss
from advcli.losses.rejecting import (
    BinaryEncodedLoss,
    PairedHingesLoss,
    RejectingCrammerSingerLoss,
    RejectingLoss,
    RejectingOneVersusAllLoss,
    code_words,
)

KINDS = (RejectingCrammerSingerLoss, RejectingOneVersusAllLoss, BinaryEncodedLoss)
CASES = [(kind, k, alpha) for kind in KINDS for k in (2, 3, 4, 5, 8, 9) for alpha in (0.5, 0.3, 0.05)]
ids = [f"{kind.__name__}-{k}-{alpha}" for kind, k, alpha in CASES]


def written(kind: Any, k: int, alpha: float) -> tuple[np.ndarray, Any]:
    """Return what takes columns of scores to the numbers of the definition, and all (s, c) with S = max s.numbers + c, by label."""
    if kind is RejectingCrammerSingerLoss:
        numbers = np.eye(k)

        def pieces(y: int) -> list[tuple[np.ndarray, float]]:
            found = [(np.zeros(k), 0.0)]
            for j in range(k):
                if j != y:
                    step = np.eye(k)[j] - np.eye(k)[y]
                    found += [(2 * alpha * step, 2 * alpha), (2 * (1 - alpha) * step, 2 * alpha)]
            return found

        return numbers, pieces
    m = k if kind is RejectingOneVersusAllLoss else int(np.ceil(np.log2(k)))
    numbers = np.zeros((m, max(k, 2 * m)))
    for a in range(m):
        numbers[a, 2 * a], numbers[a, 2 * a + 1] = np.sqrt(0.5), -np.sqrt(0.5)

    def hinges(y: int) -> list[tuple[np.ndarray, float]]:
        weights = [2 * alpha if j == y else 2 * (1 - alpha) for j in range(k)]
        signs = np.array([-1.0 if j == y else 1.0 for j in range(k)])
        chosen = product(*[(0.0, weight) for weight in weights])
        return [(np.array(t) * signs, float(sum(t))) for t in chosen]

    def digits(y: int) -> list[tuple[np.ndarray, float]]:
        found = [(np.zeros(m), 0.0)]
        for a, digit in enumerate(f"{y:0{m}b}"):
            step = np.eye(m)[a] * (1.0 if digit == "1" else -1.0)
            found += [(2 * alpha * step, 2 * alpha), (2 * (1 - alpha) * step, 2 * alpha)]
        return found

    return numbers, hinges if kind is RejectingOneVersusAllLoss else digits


def vertices(kind: Any, k: int, alpha: float, y: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all (r, c) of R(y) by the definition, (v, columns) and (v,)."""
    numbers, pieces = written(kind, k, alpha)
    found = pieces(y)
    return np.array([s for s, _ in found]) @ numbers, np.array([c for _, c in found])


def rows(loss: RejectingLoss, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    F = random.normal(size=(n, loss.n_classes)) * random.choice([0.3, 1.0, 3.0, 1e6], size=(n, 1))
    F[: n // 4] = np.round(F[: n // 4])  # ties
    return F, random.integers(loss.n_labels, size=n)


@pytest.mark.parametrize(("kind", "k", "alpha"), CASES, ids=ids)
def test_value_oracle_and_offset_are_those_of_the_definition(kind: Any, k: int, alpha: float) -> None:
    loss = kind(k, alpha)
    F, y = rows(loss, 80, 1)
    answer, readable = loss.oracle(F, y), loss.oracle_reference(F, y)
    for i in range(len(y)):
        R, c = vertices(kind, k, alpha, y[i])
        expected = (R @ F[i] + c).max()
        size = 1e-14 * (1 + np.abs(F[i]).max()) * loss.n_classes
        for each in (answer, readable):
            assert abs(each.value[i] - expected) <= size
            assert abs(each.R[i] @ F[i] + each.offset[i] - expected) <= size
    np.testing.assert_allclose(loss.value(F, y), answer.value, rtol=1e-15)
    for R in (answer.R, 0.5 * answer.R + 0.5 * loss.oracle(-F, y).R):
        assert loss.infeasibility(R, y).max() <= 1e-14
        np.testing.assert_allclose(loss.offset(R, y), loss.offset_reference(R, y), atol=1e-14)
        assert (loss.offset(R, y) >= 0.5 * answer.offset - 1e-14).all()


@pytest.mark.parametrize(("kind", "k", "alpha"), CASES, ids=ids)
def test_the_largest_offset_of_a_point_is_that_of_a_linear_program(kind: Any, k: int, alpha: float) -> None:
    if kind is RejectingOneVersusAllLoss and k > 4:
        k = 4
    loss, random = kind(k, alpha), np.random.default_rng(k)
    for y in range(min(k, 3)):
        R, c = vertices(kind, k, alpha, y)
        inner = random.dirichlet(np.full(len(c), 0.4)) @ R
        found = linprog(-c, A_eq=np.r_[R.T, np.ones((1, len(c)))], b_eq=np.r_[inner, 1.0], bounds=(0, None))
        assert loss.offset(inner[None], np.array([y]))[0] == pytest.approx(-found.fun, abs=1e-9)
        assert loss.infeasibility(inner[None], np.array([y]))[0] <= 1e-14


@pytest.mark.parametrize(("kind", "k", "alpha"), CASES, ids=ids)
def test_a_block_step_cannot_be_improved_towards_any_vertex(kind: Any, k: int, alpha: float) -> None:
    """The block is concave over the hull of all (r, c): a point is best there if and only if no direction to a vertex rises."""
    loss, random = kind(k, alpha), np.random.default_rng(7)
    F, y = rows(loss, 60, 2)
    F = np.clip(F, -50, 50)
    R0 = loss.inside(random.normal(size=F.shape), y)
    w = random.choice([0.01, 0.3, 2.0, 50.0], size=len(y))
    R = loss.block(F, R0, y, w)
    assert loss.infeasibility(R, y).max() <= 1e-12
    slope = F - w[:, None] * (R - R0)
    for i in range(len(y)):
        vertex, c = vertices(kind, k, alpha, y[i])
        rise = (c - loss.offset(R[i][None], y[i : i + 1])[0]) + (vertex - R[i]) @ slope[i]
        assert rise.max() <= 1e-11 * (1 + np.abs(F[i]).max() + w[i])
    steep = loss.block(F, R0, y, np.zeros(len(y)))  # without a quadratic term the best vertex
    value = loss.offset(steep, y) + np.einsum("ij,ij->i", F, steep)
    np.testing.assert_allclose(value, loss.value(F, y), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_points_outside_are_seen_and_moved_inside_by_no_more_than_a_multiple(kind: Any) -> None:
    random = np.random.default_rng(5)
    for k, alpha in ((2, 0.5), (3, 0.2), (5, 0.4)):
        loss = kind(k, alpha)
        y = random.integers(k, size=50)
        R = loss.inside(random.normal(size=(50, loss.n_classes)), y)
        assert loss.infeasibility(R, y).max() <= 1e-14
        np.testing.assert_allclose(loss.inside(R, y), R, atol=1e-14)
        for size in (1e-6, 0.1, 3.0):
            far = R + size * random.normal(size=R.shape)
            outside = loss.infeasibility(far, y)
            assert (outside[np.abs(far.sum(axis=1)) > 1e-9] > 0).all()
            moved = np.abs(loss.inside(far, y) - far).max(axis=1)
            assert (moved <= 4 * loss.n_classes * outside + 1e-14).all()
        far[0, 0] = np.nan
        assert np.isnan(loss.infeasibility(far, y)[0])


def test_with_two_classes_bep_and_cs_are_the_published_hinges() -> None:
    """Bartlett & Wegkamp (2008), eq. 3, and Grandvalet et al. (2009), eq. 6 with symmetric costs, as functions of y z."""
    z = np.linspace(-3, 3, 241)
    for alpha in (0.5, 0.3, 0.1):
        slope = (1 - alpha) / alpha
        bartlett = np.where(z < 0, 1 - slope * z, np.where(z < 1, 1 - z, 0.0))
        entropy = -alpha * np.log(alpha) - (1 - alpha) * np.log(1 - alpha)
        scale = entropy / alpha  # of Grandvalet's scores
        grandvalet = np.maximum(np.maximum(-(1 - alpha) * scale * z + entropy, -alpha * scale * z + entropy), 0.0)
        np.testing.assert_allclose(grandvalet, entropy * bartlett, atol=1e-12)
        for y, sign in ((0, 1.0), (1, -1.0)):
            labels = np.full(len(z), y)
            # B(0) = -1: positive numbers say class 0
            bep = BinaryEncodedLoss(2, alpha).value(np.column_stack([sign * z, -sign * z]) * np.sqrt(0.5), labels)
            cs = RejectingCrammerSingerLoss(2, alpha).value(np.column_stack([sign * z, np.zeros(len(z))]), labels)
            np.testing.assert_allclose(bep, 2 * alpha * bartlett, atol=1e-12)
            np.testing.assert_allclose(cs, 2 * alpha * bartlett, atol=1e-12)


def test_half_is_the_crammer_singer_hinge() -> None:
    loss, plain = RejectingCrammerSingerLoss(4, 0.5), make_loss("cs", 4)
    F, y = rows(loss, 40, 3)
    assert loss.family[0] == plain.family[0]
    assert np.array_equal(loss.oracle(F, y).R, plain.oracle(F, y).R)
    near = RejectingCrammerSingerLoss(4, np.nextafter(0.5, 0))
    np.testing.assert_allclose(near.value(F, y), plain.value(F, y), rtol=1e-12)


def minimiser(kind: Any, k: int, alpha: float, P: np.ndarray) -> np.ndarray:
    """Return columns of scores that minimise the expected surrogate under P, by a linear program."""
    numbers, pieces = written(kind, k, alpha)
    free = numbers.shape[0]
    A, b = [], []
    for y in range(k):
        for s, c in pieces(y):
            A.append(np.r_[s, -np.eye(k)[y]])
            b.append(-c)
    found = linprog(np.r_[np.zeros(free), P], A_ub=np.array(A), b_ub=np.array(b), bounds=[(-50, 50)] * free + [(0, None)] * k)
    assert found.status == 0
    return numbers.T @ found.x[:free]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_minimiser_under_a_law_decides_as_bayes_and_that_of_another_alpha_does_not(kind: Any) -> None:
    random, k, alpha = np.random.default_rng(12), 4, 0.3
    wrong = {0.3: 0, 0.5: 0}
    laws = 0
    while laws < 30:
        P = random.dirichlet(np.full(k, 0.35))
        if abs(P.max() - (1 - alpha)) < 0.02 or P.min() < 1e-3:
            continue
        laws += 1
        best = int(np.argmax(P)) if P.max() > 1 - alpha else k
        for used in wrong:
            F = minimiser(kind, k, used, P)
            wrong[used] += int(kind(k, used).predict(F[None])[0] != best)
    assert wrong[0.3] == 0
    assert wrong[0.5] > 0


def test_codes() -> None:
    assert code_words("binary", 5).tolist() == [[-1, -1, -1], [-1, -1, 1], [-1, 1, -1], [-1, 1, 1], [1, -1, -1]]
    gray = code_words("gray", 8)
    assert (np.abs(np.diff(gray, axis=0)).sum(axis=1) == 2).all()  # neighbours differ in one digit
    assert code_words("binary", 2).tolist() == [[-1], [1]]
    loss = BinaryEncodedLoss(3, 0.5)
    U = np.array([[1.0, 1.0], [1.0, -0.7], [-1.0, 0.6], [-1.0, -1.0], [0.4, 2.0], [2.0, -0.4]])
    F = np.zeros((6, 4))
    F[:, 0::2], F[:, 1::2] = U * np.sqrt(0.5), -U * np.sqrt(0.5)
    # codes 00, 01, 10 are spelled by signs ++, +-, -+; -- is no code word; some |u| <= 1/2 abstains
    assert loss.predict(F).tolist() == [0, 1, 2, 3, 3, 3]
    np.testing.assert_allclose(loss.class_scores(F)[0], [1, -1, -1])
    # a lead of exactly tau abstains
    assert RejectingCrammerSingerLoss(2).predict(np.array([[0.5, 0.0], [0.75, 0.0], [0.0, 0.0]])).tolist() == [2, 0, 2]
    for code, said in (("grey", "binary or gray"), ([[1, 0], [1, 1]], "a row of -1 and 1"), ([[1], [1]], "the same row"), (3, "a row of")):
        with pytest.raises(ConfigError, match=said):
            code_words(code, 2)


@pytest.mark.parametrize("alpha", [0.0, 0.51, -1, np.nan, "half", True])
def test_a_cost_outside_its_range_is_refused(alpha: Any) -> None:
    with pytest.raises(ConfigError, match=r"loss\.alpha=.* is not valid; give a number above 0, at most 0\.5"):
        RejectingCrammerSingerLoss(3, alpha)


def test_the_compiled_families_refuse_parameters_that_do_not_fit() -> None:
    loss = PairedHingesLoss([[-1.0], [1.0]])
    F, y = np.zeros((1, 2)), np.zeros(1, dtype=np.intp)
    assert loss.value(F, y)[0] == 1.0
    for parameters in ([], [0.5], [0.5, 2.0, 1, 1, 1, 1], [0.5, 1.0, 1.0], [0.0, 1.0, 1, 1], [0.5, 1.5, 1, 1], [np.nan, 1.0, 1, 1]):
        for kind in ("rejecting_ova", "rejecting_bep"):
            with pytest.raises(ValueError, match="parameters"):
                kernels.value((kind, 2, np.array(parameters)), F, y)
    for parameters in ([], [0.6], [0.5, 1.0]):
        with pytest.raises(ValueError, match="parameters"):
            kernels.value(("rejecting_cs", 2, np.array(parameters)), F, y)


@pytest.mark.parametrize(("kind", "k", "alpha"), CASES, ids=ids)
def test_the_face_is_the_derivative_of_the_block_step(kind: Any, k: int, alpha: float) -> None:
    """As far as scores can differ: those of a pair of columns move against each other, since parameters do."""
    loss, random = kind(k, alpha), np.random.default_rng(9)
    n, columns = 60, loss.n_classes
    y = random.integers(k, size=n)
    R0 = loss.inside(random.normal(size=(n, columns)), y)
    F, D = random.normal(size=(2, n, columns))
    if kind is not RejectingCrammerSingerLoss:
        m = loss.signed.shape[1]
        D[:, 1 : 2 * m : 2] = -D[:, 0 : 2 * m : 2]
        D[:, 2 * m :] = 0.0
    w, step = 2.0, 1e-7
    R, face = kernels.face(loss.family, F, R0, y, w)
    B, owner = kernels.tangents(loss.family, face, np.zeros(n, dtype=bool))
    predicted = np.zeros((n, columns))
    np.add.at(predicted, owner, B * np.einsum("ij,ij->i", B, D[owner])[:, None])
    found = (loss.block(F + step * D, R0, y, w) - R) / step
    far = np.abs(found - predicted / w).max(axis=1) > 1e-5
    assert far.mean() <= 0.05  # rows within a step of a kink
    assert (np.abs(predicted).max(axis=1) > 1e-9).mean() > 0.2  # and many rows do move


@pytest.mark.parametrize("size", [1e8, 1e300])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_scores_of_any_size_leave_points_of_the_set(kind: Any, size: float) -> None:
    loss, random = kind(5, 0.3), np.random.default_rng(4)
    F, y = size * random.choice([-1.0, 0.0, 1.0], size=(40, loss.n_classes)), random.integers(5, size=40)
    R0 = loss.inside(random.normal(size=F.shape), y)
    for w in (1e-3, 1.0, 1e3):
        R = loss.block(F, R0, y, np.full(40, w))
        assert np.isfinite(R).all()
        assert loss.infeasibility(R, y).max() <= 1e-12
        gain = loss.offset(R, y) - loss.offset(R0, y) + np.einsum("ij,ij->i", F, R - R0) - 0.5 * w * ((R - R0) ** 2).sum(axis=1)
        assert (gain >= -1e-9 * size).all()
