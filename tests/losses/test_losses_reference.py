"""The reference itself: linear programs, enumeration, rational arithmetic and conic programs must agree with one another."""

from __future__ import annotations

import numpy as np
import pytest
from support import reference

ADVERSARIAL = [
    ("zero_one", {}),
    ("absolute", {}),
    ("squared", {}),
    ("power", {"p": 2.5}),
    ("huber", {"delta": 1.5}),
    ("pinball", {"quantile": 0.7}),
    ("abstain", {"alpha": 0.3}),
    ("abstain", {"alpha": 0.8}),
]
LOSSES = [*ADVERSARIAL, ("cs", {}), ("ww", {}), ("llw", {})]


def random_point(name: str, k: int, y: int, random: np.random.Generator) -> np.ndarray:
    """Return a random r in the hull of R(y)."""
    if name in ("ww", "llw"):
        a = random.uniform(size=k) * (np.arange(k) != y)
        return a - (np.eye(k)[y] * a.sum() if name == "ww" else a.mean())
    return random.dirichlet(np.ones(k)) - np.eye(k)[y]


def test_enumerations_rationals_and_linear_programs_give_the_same_game_value() -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        k, l = random.integers(1, 5), random.integers(1, 5)
        f, L = 2 * random.normal(size=k), random.normal(size=(l, k))
        assert float(reference.game_exact(L, f)) == pytest.approx(reference.game_lp(L, f)[0], abs=1e-11)
        zero_one, squared = (reference.loss_matrix(name, k) for name in ("zero_one", "squared"))
        assert reference.zero_one_brute(f) == pytest.approx(reference.game_lp(zero_one, f)[0], abs=1e-11)
        assert reference.squared_brute(f) == pytest.approx(reference.game_lp(squared, f)[0], abs=1e-11)


def test_saddle_gap_is_zero_for_the_linear_program_and_positive_elsewhere() -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        L, f = random.uniform(size=(4, 3)), random.normal(size=3)
        _, q, p = reference.game_lp(L, f)
        assert abs(reference.saddle_gap(L, f, q, p)) < 1e-11
        assert reference.saddle_gap(L, f, np.roll(q, 1), np.full(4, 0.25)) > 1e-4


@pytest.mark.parametrize(("name", "options"), LOSSES)
def test_block_program_is_not_beaten_by_any_other_point(name: str, options: dict) -> None:
    random = np.random.default_rng(2)
    for _ in range(10):
        k = int(random.integers(1, 6))
        y, w, f = int(random.integers(k)), 10 ** random.uniform(-2, 2), 2 * random.normal(size=k)
        r0 = random_point(name, k, y, random)

        def objective(r: np.ndarray, f: np.ndarray = f, r0: np.ndarray = r0, y: int = y, w: float = w) -> float:
            return reference.offset_brute(name, r, y, **options) + float(f @ r) - 0.5 * w * float(((r - r0) ** 2).sum())

        best = reference.block_qp(name, f, r0, y, w, **options)
        for _ in range(30):
            other = random_point(name, k, y, random)
            for r in (other, best + 1e-4 * (other - best)):
                assert objective(r) <= objective(best) + 1e-11 * (1 + abs(objective(best)))


@pytest.mark.parametrize("features", ["linear", "threshold"])
@pytest.mark.parametrize(("name", "options"), LOSSES)
def test_problem_program_has_no_gap_and_its_objective_is_the_definition(name: str, options: dict, features: str) -> None:
    random = np.random.default_rng(3)
    n, d, k, lam = 18, 3, 4, 0.02
    X, y = random.normal(size=(n, d)), random.integers(0, k, n)
    s, w = random.uniform(0.5, 2.0, n), random.uniform(0.5, 2.0, n)
    solved = reference.solve_problem(name, X, y, lam, k, s, w, features, **options)
    theta = solved["parameters"]
    F = (reference.score_matrix(X, k, features) @ theta.ravel()).reshape(n, k)
    penalised = theta if features == "linear" else theta[:d]
    surrogates = [w[i] * reference.oracle_brute(name, F[i] / w[i], y[i], **options) for i in range(n)]
    by_definition = 0.5 * lam * (penalised**2).sum() + s @ surrogates / s.sum()
    assert solved["primal"] == pytest.approx(solved["dual"], rel=1e-9)
    assert by_definition == pytest.approx(solved["primal"], rel=1e-9)
