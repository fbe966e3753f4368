"""The adversarial losses against the papers' formulas, their prediction rules, and games of general matrices."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support import reference
from support.python_game import solve_game

from advcli.core.compiled import kernels
from advcli.core.errors import ConfigError
from advcli.losses import AdversarialLoss, make_loss, matrices
from advcli.losses.abstain import AbstainLoss
from advcli.losses.convex_columns import AbsoluteLoss, ConvexColumnsLoss, SquaredLoss
from advcli.losses.general import GeneralLoss, Highs, closed_form, game_gap, solve_games
from advcli.losses.zero_one import ZeroOneLoss

QUICK = settings(max_examples=80, deadline=None, derandomize=True)
score_rows = st.integers(1, 7).flatmap(lambda k: arrays(float, (1, k), elements=st.floats(-5, 5, width=16)))
LABEL = np.zeros(1, dtype=int)


def value(loss: AdversarialLoss, f: np.ndarray) -> float:
    """Return the game value V(f) = S(f, 0) + f_0 by the readable oracle."""
    return float(loss.oracle_reference(f, LABEL).value[0] + f[0, 0])


def make(name: str, k: int, **options: Any) -> AdversarialLoss:
    loss = make_loss(name, k, **options)
    assert isinstance(loss, AdversarialLoss)
    return loss


# ---- published formulas ---------------------------------------------------------------------------------------------
@QUICK
@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.integers(0, 1))
def test_binary_zero_one_is_the_three_piece_hinge(first: float, second: float, y: int) -> None:
    psi = (second - first) if y == 0 else (first - second)
    expected = max(0.0, 0.5 * (1.0 + psi), psi)
    for name in ("zero_one", "absolute", "squared"):  # one matrix when k = 2
        answer = make(name, 2).oracle_reference(np.array([[first, second]]), np.array([y]))
        assert answer.value[0] == pytest.approx(expected, abs=1e-12)


@QUICK
@given(score_rows)
def test_absolute_is_theorem_6(f: np.ndarray) -> None:
    k = f.shape[1]
    pairs = product(range(k), repeat=2)
    expected = max((f[0, i] + f[0, j] + j - i) / 2 for i, j in pairs)
    assert value(make("absolute", k), f) == pytest.approx(expected, abs=1e-12)


@QUICK
@given(score_rows)
def test_squared_is_theorem_7(f: np.ndarray) -> None:
    assert value(make("squared", f.shape[1]), f) == pytest.approx(reference.squared_brute(f[0]), abs=1e-12)


@QUICK
@given(score_rows, st.floats(0, 0.5))
def test_abstain_is_theorem_12_theorem_13_and_corollary_14_up_to_a_half(f: np.ndarray, alpha: float) -> None:
    k = f.shape[1]
    loss = make("abstain", k, alpha=alpha)
    scores = f[0]
    pairs = [(1 - alpha) * scores[i] + alpha * scores[j] + alpha for i in range(k) for j in range(k) if i != j]
    assert value(loss, f) == pytest.approx(max([scores.max(), *pairs]), abs=1e-12)
    best = int(np.argmax(scores))
    lead = scores[best] - np.delete(scores, best).max() if k > 1 else np.inf
    expected = np.zeros(k + 1)
    expected[best], expected[k] = min(lead, 1.0), max(1.0 - lead, 0.0)
    np.testing.assert_allclose(loss.predictor(f)[0], expected, atol=1e-12)
    assert loss.predict(f)[0] == (best if lead >= 0.5 else k)


def test_theorem_12_is_wrong_above_a_half_and_the_loss_is_not() -> None:
    f = np.zeros((1, 3))
    for alpha, excess in ((0.6, 0.0), (0.8, 0.8 - 2 / 3)):
        theorem = (1 - alpha) * 0.0 + alpha * 0.0 + alpha
        exact = float(reference.game_exact(reference.loss_matrix("abstain", 3, alpha=alpha), f[0]))
        assert theorem - exact == pytest.approx(excess, abs=1e-12)
        assert value(make("abstain", 3, alpha=alpha), f) == pytest.approx(exact, abs=1e-12)
    # scores apart: the theorem misses a third label there
    f = np.array([[0.5, 0.4, 0.4, 0.3]])
    theorem = max(0.5, (1 - 0.6) * 0.5 + 0.6 * 0.4 + 0.6, (1 - 0.6) * 0.4 + 0.6 * 0.5 + 0.6)
    exact = value(make("abstain", 4, alpha=0.6), f)
    assert exact == pytest.approx(float(reference.game_exact(reference.loss_matrix("abstain", 4, alpha=0.6), f[0])), abs=1e-12)
    assert abs(theorem - exact) > 0.01


def test_abstaining_is_never_used_when_it_costs_as_much_as_an_error() -> None:
    F = np.random.default_rng(0).normal(size=(20, 4))
    loss, zero_one = make("abstain", 4, alpha=1.0), make("zero_one", 4)
    np.testing.assert_allclose(loss.predictor(F)[:, :4], zero_one.predictor(F), atol=1e-14)
    assert (loss.predict(F) < 4).all()


def test_a_weighted_matrix_keeps_the_set_of_extreme_points_not_the_maximiser() -> None:
    # docs/notes/misprints.md, section 1
    f, y = np.array([[0.9, 0.5, 0.1, -0.3]]), np.array([0])
    plain, tripled = make("zero_one", 4), make("general", 4, matrix=3 * matrices.zero_one(4))
    np.testing.assert_allclose(plain.adversary(f), [[0.5, 0.5, 0, 0]])
    np.testing.assert_allclose(tripled.adversary(f), [[0.25, 0.25, 0.25, 0.25]])
    assert tripled.oracle_reference(f, y).value[0] == pytest.approx(3 * plain.oracle_reference(f / 3, y).value[0])


# ---- shapes of the answers ------------------------------------------------------------------------------------------
@QUICK
@given(st.integers(0, 2**32 - 1))
def test_convex_columns_need_two_labels_and_two_adjacent_predictions(seed: int) -> None:
    random = np.random.default_rng(seed)
    k, l = random.integers(1, 8, size=2)
    slopes = np.sort(np.round(random.normal(size=(max(l - 1, 0), k)), 1), axis=0)  # rising differences: convex columns
    matrix = np.vstack([np.zeros((1, k)), np.cumsum(slopes, axis=0)]) + np.round(random.normal(size=(1, k)), 1)
    F = np.round(random.normal(size=(6, k)), 1)
    loss = ConvexColumnsLoss(int(k), matrix=matrix)
    Q, P = loss.adversary(F), loss.predictor(F)
    assert ((Q > 0).sum(axis=1) <= 2).all()
    for i, row in enumerate(P > 0):
        (used,) = np.nonzero(row)
        assert len(used) <= 2
        assert used[-1] - used[0] <= 1
        assert reference.saddle_gap(matrix, F[i], Q[i], P[i]) <= 1e-12 * (1 + np.abs(matrix).max())


@QUICK
@given(score_rows)
def test_power_has_absolute_and_squared_as_special_cases(f: np.ndarray) -> None:
    k = f.shape[1]
    for power, name in ((1, "absolute"), (2, "squared")):
        assert value(make("power", k, p=power), f) == pytest.approx(value(make(name, k), f), abs=1e-12)
    assert value(make("pinball", k), f) == pytest.approx(value(make("general", k, matrix=0.5 * matrices.absolute(k)), f), abs=1e-12)


# ---- prediction -----------------------------------------------------------------------------------------------------
def test_prediction_rules() -> None:
    f = np.array([[0.0, 0.1, 0.0, 0.0, 3.4]])
    loss = make("absolute", 5)
    np.testing.assert_allclose(loss.predictor(f), [[0, 0, 0, 0.3, 0.7]], atol=1e-12)
    assert [int(loss.predict(f, rule)[0]) for rule in ("default", "potentials", "predictor", "median", "mean")] == [4, 4, 4, 4, 4]
    f = np.array([[0.3, 0.0, 0.0, 0.0, 0.0]])  # a = 0.3, b = 4: mean 1.85
    np.testing.assert_allclose(loss.predictor(f), [[0, 0.15, 0.85, 0, 0]], atol=1e-12)
    assert [int(loss.predict(f, rule)[0]) for rule in ("default", "predictor", "median", "mean")] == [0, 2, 2, 2]
    np.testing.assert_allclose(loss.expected_loss(f), [[1.85, 0.85, 0.15, 1.15, 2.15]], atol=1e-12)
    tied = np.zeros((1, 4))  # p = (0, 1/2, 1/2, 0): the lower median, the mean 1.5 rounds up
    loss = make("absolute", 4)
    assert [int(loss.predict(tied, rule)[0]) for rule in ("predictor", "median", "mean")] == [1, 1, 2]
    np.testing.assert_array_equal(loss.cost(np.array([0, 3]), np.array([2, 3])), [2, 0])


def test_prediction_rules_that_have_no_meaning_say_so() -> None:
    F = np.zeros((1, 3))
    with pytest.raises(ConfigError, match="unknown prediction rule 'medain': did you mean median"):
        make("absolute", 3).predict(F, "medain")
    with pytest.raises(ConfigError, match="rule=median needs a loss over ordered labels, loss=abstain has no order"):
        make("abstain", 3).predict(F, "median")
    narrow = make("general", 3, matrix=[[0.0, 1.0, 2.0], [2.0, 0.0, 0.5]])
    with pytest.raises(ConfigError, match="rule=potentials needs a prediction for each of the 3 classes"):
        narrow.predict(F, "potentials")
    assert narrow.default_rule == "predictor"
    assert make("abstain", 3).default_rule == "predictor"
    assert make("squared", 3).default_rule == "potentials"
    assert make("abstain", 3).predict(F)[0] == 3
    assert make("abstain", 3).predict(F, "potentials")[0] == 0


def test_what_a_loss_says_about_itself() -> None:
    assert [make(name, 3).metric for name in ("absolute", "ordinal", "squared", "abstain", "zero_one")] == [
        "mae",
        "mae",
        "mse",
        "abstention_loss",
        "error",
    ]
    assert [make(name, 3).needs_order for name in ("absolute", "squared", "huber", "abstain", "zero_one")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert make("absolute", 3).parameters.shape == (0,)
    np.testing.assert_array_equal(make("abstain", 3, alpha=0.2).parameters, [0.2])
    np.testing.assert_array_equal(make("huber", 2).parameters, [2, 0, 0.5, 0.5, 0])
    np.testing.assert_array_equal(make("general", 2, matrix=[[0, 1], [3, 0], [1, 1]]).parameters, [3, 0, 1, 3, 0, 1, 1])


# ---- general matrices -----------------------------------------------------------------------------------------------
MATRICES = st.tuples(st.integers(1, 7), st.integers(1, 7)).flatmap(
    lambda shape: st.tuples(
        arrays(float, shape, elements=st.one_of(st.integers(-2, 3).map(float), st.floats(-3, 3, width=16))),
        arrays(float, (2, shape[1]), elements=st.one_of(st.integers(-2, 2).map(float), st.floats(-3, 3, width=16))),
    )
)


@settings(QUICK, max_examples=200)
@given(MATRICES, st.sampled_from([1.0, 1e-12, 1e12]))
def test_small_simplex_certifies_itself_on_any_matrix(case: tuple[np.ndarray, np.ndarray], unit: float) -> None:
    matrix, F = unit * case[0], unit * case[1]
    for f, *compiled in zip(F, *kernels.games(matrix, F), strict=True):
        for q, p, pivots in (solve_game(matrix, f), compiled):
            assert 0 <= pivots <= 3 * sum(matrix.shape)
            assert reference.saddle_gap(matrix, f, q, p) <= 1e-11 * unit


@QUICK
@given(MATRICES)
def test_highs_backend_is_the_same_game(case: tuple[np.ndarray, np.ndarray]) -> None:
    matrix, F = case
    for i, (q, p) in enumerate(zip(*Highs(matrix).solve(F), strict=True)):
        assert reference.saddle_gap(matrix, F[i], q, p) <= 1e-8
    small, large = solve_games(matrix, F), solve_games(matrix, F, backend="highs")
    np.testing.assert_allclose(*(np.einsum("ij,ij->i", F, Q) + (Q @ matrix.T).min(axis=1) for Q, _ in (small, large)), atol=1e-8)


def test_game_gap_is_the_rational_one() -> None:
    random = np.random.default_rng(4)
    matrix, F = random.normal(size=(4, 3)), random.normal(size=(5, 3))
    Q, P = random.dirichlet(np.ones(3), 5), random.dirichlet(np.ones(4), 5)
    expected = [reference.saddle_gap(matrix, F[i], Q[i], P[i]) for i in range(5)]
    np.testing.assert_allclose(game_gap(matrix, F, Q, P), expected, rtol=1e-12)


def test_a_failed_certificate_sends_the_row_to_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    from advcli.losses import general

    random = np.random.default_rng(5)
    matrix, F = random.uniform(size=(4, 3)), random.normal(size=(5, 3))
    Q, P, pivots = kernels.games(matrix, F)
    Q[1], P[1], pivots[1] = 1 / 3, 1 / 4, -1
    assert (game_gap(matrix, F, Q, P) > 1e-8).tolist() == [False, True, False, False, False]
    monkeypatch.setattr(general, "kernels", SimpleNamespace(games=lambda matrix, F: (Q, P, pivots)))
    assert game_gap(matrix, F, *solve_games(matrix, F)).max() < 1e-8


def test_highs_answers_repeat_and_survive_pickling() -> None:
    random = np.random.default_rng(6)
    loss = GeneralLoss(3, matrix=random.uniform(size=(5, 3)), backend="highs")
    F, y = np.round(random.normal(size=(10, 3)), 1), random.integers(0, 3, 10)
    first = loss.oracle(F, y)
    loss.oracle(F[::-1], y)
    np.testing.assert_array_equal(loss.oracle(F, y).R, first.R)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(loss)).oracle(F, y).R, first.R)
    np.testing.assert_array_equal(loss.value(F, y), first.value)


@pytest.mark.parametrize(
    ("matrix", "kind", "scale"),
    [
        (matrices.zero_one(4), ZeroOneLoss, 1.0),
        (2.5 * matrices.zero_one(4), ZeroOneLoss, 2.5),
        (matrices.absolute(4), AbsoluteLoss, 1.0),
        (0.1 * matrices.absolute(4), ConvexColumnsLoss, 1.0),
        (matrices.squared(4), SquaredLoss, 1.0),
        (matrices.huber(4), ConvexColumnsLoss, 1.0),
        (matrices.abstain(4, 0.7), AbstainLoss, 1.0),
        (4 * matrices.abstain(4, 0.7), AbstainLoss, 4.0),
    ],
)
def test_known_matrices_go_to_their_closed_form(matrix: np.ndarray, kind: type, scale: float) -> None:
    found = closed_form(matrix)
    assert found is not None
    assert type(found[0]) is kind
    assert found[1] == pytest.approx(scale)
    loss, general = make("general", 4, matrix=matrix), make("general", 4, matrix=matrix, structure=False)
    assert "closed form is used" in loss.note
    assert "closed form" not in general.note
    random = np.random.default_rng(7)
    F, y = random.normal(size=(20, 4)) * 2, random.integers(0, 4, 20)
    np.testing.assert_allclose(loss.oracle_reference(F, y).value, general.oracle_reference(F, y).value, atol=1e-12)
    for i, p in enumerate(loss.predictor(F)):
        assert reference.saddle_gap(matrix, F[i], loss.adversary(F)[i], p) < 1e-12
    # what a fit runs: the closed form, with the scale as a weight of every example
    assert type(loss.core) is kind
    assert general.core is general
    weights = loss.cost_weights(y, None)
    if scale == 1.0:
        assert weights is None
        assert loss.family[0] == found[0].kernel
    else:
        np.testing.assert_allclose(weights, np.full(20, scale))
        np.testing.assert_allclose(loss.cost_weights(y, np.arange(20.0)), scale * np.arange(20.0))
        np.testing.assert_allclose(scale * loss.core.value(F / scale, y), general.oracle_reference(F, y).value, atol=1e-12)
        assert loss.family[0] == "general"


def test_unknown_structure_stays_general_and_keeps_names(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(",a,b,c\na,0,1,4\nb,2,0,1\nc,1,3,0\nask,1,.5,.5\n")
    loss = GeneralLoss(3, file=path)
    assert loss.row_names == ("a", "b", "c", "ask")
    assert loss.column_names == ("a", "b", "c")
    assert loss.n_predictions == 4
    assert loss.family[0] == "general"
    assert "4 predictions for 3 classes" in loss.note
    assert closed_form(loss.matrix) is None
    assert "row condition" in GeneralLoss(2, matrix=[[0.5, 0.4], [1.0, 0.0]]).note


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("general", {}, "loss=general needs either matrix .* or file"),
        ("general", {"matrix": [[0, 1], [1, 0]]}, "has 2 columns but there are 3 classes"),
        ("general", {"matrix": [[0, 1, 2], [1, "a", 2]]}, "row 1, column 1, must be a finite number, got 'a'"),
        ("general", {"matrix": matrices.zero_one(3), "backend": "hihgs"}, "no backend 'hihgs': did you mean highs"),
        ("general", {"file": "no/such/file.csv"}, "no/such/file.csv cannot be read"),
        ("convex", {"matrix": matrices.zero_one(3)}, "row 1 of column 0 lies above the line.*choose loss=general"),
        ("power", {"p": 0.5}, "loss=power needs p >= 1"),
        ("abstain", {"alpha": 1.5}, "alpha of loss=abstain must be a number from 0 to 1 "),
        ("abstain", {"alhpa": 0.5}, "loss=abstain has no option .*alhpa"),
        ("pinball", {"quantile": 0}, "quantile of the pinball loss"),
    ],
)
def test_bad_options_are_one_clear_line(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_loss(name, 3, **options)
    assert "\n" not in str(caught.value)
