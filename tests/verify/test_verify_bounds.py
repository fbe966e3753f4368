"""The checker's arithmetic encloses exact results, its surrogates bound and touch every surrogate of a loss, and it imports no solver."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from advcli.losses import loss_class, make_loss
from advcli.losses.rejecting import BinaryEncodedLoss, RejectingCrammerSingerLoss, RejectingOneVersusAllLoss
from advcli.verify import bounds
from advcli.verify.bounds import Ball, ball, dot, exp, inverse
from advcli.verify.surrogates import CannotError, Surrogate

LOSSES = [
    {"name": "zero_one"},
    {"name": "ww"},
    {"name": "cs"},
    {"name": "llw"},
    *({"name": "top_k", "K": K} for K in (1, 2, 3)),
    *({"name": "abstain", "alpha": alpha} for alpha in (0.0, 0.3, 0.5, 0.72, 1.0)),
    {"name": "absolute"},
    {"name": "squared"},
    {"name": "power", "p": 1.5},
    {"name": "huber", "delta": 0.7},
    {"name": "pinball", "quantile": 0.8},
    {"name": "convex", "matrix": [[0, 1, 4, 9], [1, 0, 1, 4], [4, 1, 0, 1], [9, 4, 1, 0.5], [16, 9, 4, 1]]},
    {"name": "general", "matrix": [[0, 2, 1, 1], [1, 0, 3, 1], [0.5, 1, 0, -1]]},
    {
        "name": "tree_distance",
        "hierarchy": {"edges": [["r", "s"], ["s", "a"], ["s", "b"], ["r", "c"], ["t", "d"]], "classes": list("abcd")},
    },
    {"name": "weighted", "base": "zero_one", "weight": [1, 2.5, 0.5, 1]},
    {"name": "weighted", "base": "abstain", "options": {"alpha": 0.3}, "weight": 2.0},
]


def name_of(options: dict) -> str:
    return "-".join(str(value) for value in options.values() if not isinstance(value, list))


@pytest.mark.parametrize("seed", range(8))
def test_products_sums_and_differences_are_enclosed(seed: int) -> None:
    random = np.random.default_rng(seed)
    m = int(random.integers(1, 300))
    A = random.normal(size=(2, m)) * 10.0 ** random.integers(-8, 9, (2, m))
    B = random.normal(size=(m, 2)) * 10.0 ** random.integers(-8, 9, (m, 2))
    exact = [[sum(Fraction(a) * Fraction(b) for a, b in zip(row, column, strict=True)) for column in B.T.tolist()] for row in A.tolist()]
    total = [[one * Fraction(1, 3) - other for one, other in zip(row, row[::-1], strict=True)] for row in exact]
    for matrix in (A, sparse.csr_array(A)):
        result = dot(matrix, B)
        rough = dot(Ball(A, np.abs(A) * 1e-9), Ball(B, np.abs(B) * 1e-9))
        third = result / 3.0 - Ball(result.mid[:, ::-1], result.rad[:, ::-1])
        for i in range(2):
            for j in range(2):
                assert Fraction(float(result.low[i, j])) <= exact[i][j] <= Fraction(float(result.high[i, j]))
                assert Fraction(float(third.low[i, j])) <= total[i][j] <= Fraction(float(third.high[i, j]))
                wide = sum(abs(Fraction(a) * Fraction(b)) for a, b in zip(A[i].tolist(), B[:, j].tolist(), strict=True))
                assert Fraction(float(rough.high[i, j])) >= exact[i][j] + wide * Fraction(19, 10**10)
        # a bound that says something
        assert (result.rad <= 1e-12 * (np.abs(A) @ np.abs(B)) + 1e-280).all()
    rows = Ball(A, 0.0).sum(axis=1)
    exact_rows = [sum(Fraction(a) for a in row) for row in A.tolist()]
    assert all(Fraction(float(rows.low[i])) <= exact_rows[i] <= Fraction(float(rows.high[i])) for i in range(2))
    # many operations one after the other: their errors add up
    power, level, part = Ball(A, 0.0)[0], Ball(A[0], 0.0), Ball(A[0], 0.0)
    for _ in range(11):
        power, level, part = power * A[0], level + 0.1, part / 3.0
    for j in range(m):
        assert Fraction(float(power.low[j])) <= Fraction(A[0, j]) ** 12 <= Fraction(float(power.high[j]))
        assert Fraction(float(level.low[j])) <= Fraction(A[0, j]) + 11 * Fraction(0.1) <= Fraction(float(level.high[j]))
        assert Fraction(float(part.low[j])) <= Fraction(A[0, j]) / 3**11 <= Fraction(float(part.high[j]))


def test_radii_grow_by_their_own_rounding_and_by_underflow() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        radii = random.uniform(size=(1000, 2))  # NumPy adds down a column one after the other
        high = Ball(np.zeros((1000, 2)), radii).sum(axis=0).high
        for column in range(2):
            exact = sum(map(Fraction, radii[:, column].tolist()))
            assert exact <= Fraction(float(high[column])) <= exact * Fraction(1001, 1000)
    # products below the smallest double, one and many
    result = ball(1e-200) * 1e-200 * 1e300
    assert result.low <= 1e-100 <= result.high
    result = dot(np.full((1, 64), 1e-162), np.full((64, 1), 1e-162))
    assert Fraction(float(result.high[0, 0])) >= 64 * Fraction(1e-162) ** 2


def test_functions_of_one_number_are_enclosed(monkeypatch: pytest.MonkeyPatch) -> None:
    """exp against its series in exact arithmetic, also where numpy.exp errs by the 4 ulp that NumPy allows it; 1/x against the fraction."""
    exact_exp = np.exp
    for ulp in (0, -4, 4):
        with monkeypatch.context() as patch:
            patch.setattr(np, "exp", lambda x, ulp=ulp: exact_exp(x) * (1.0 + ulp * 2.0**-52))
            for x in (-30.0, -1.0, -1e-9, 0.0, 0.5):
                series, term = Fraction(0), Fraction(1)
                for power in range(1, 160):
                    series, term = series + term, term * Fraction(x) / power
                result = exp(ball(np.array([x])))
                assert Fraction(float(result.low[0])) <= series <= Fraction(float(result.high[0]))
    wide = exp(Ball(np.array([1.0]), np.array([0.01])))
    assert wide.low[0] < np.exp(0.99) < np.exp(1.01) < wide.high[0]
    result = inverse(Ball(3.0, 0.5))
    assert Fraction(float(result.low)) <= Fraction(2, 7) < Fraction(2, 5) <= Fraction(float(result.high))


@pytest.mark.parametrize("options", LOSSES, ids=name_of)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_surrogates_are_bounded_from_both_sides(options: dict, scale: float) -> None:
    random = np.random.default_rng(11)
    k, n = 4, 60
    truth = {key: value for key, value in options.items() if key != "name"}
    loss, mine = make_loss(options["name"], k, **truth), Surrogate(options, k, list("abcd"))
    F, y = scale * random.normal(size=(n, k)), random.integers(0, k, n)
    F[:5] = np.round(F[:5])  # ties
    w = mine.cost_weights(y, None)
    predictor = loss.predictor(F) if options["name"] in ("general", "tree_distance") else None
    exact = loss.oracle(F, y)
    if predictor is not None:  # whatever it is
        mixed = random.dirichlet(np.ones(predictor.shape[1]), n)
        for other in (0.5 * predictor, np.zeros_like(predictor), -predictor, mixed, 9.0 * predictor - 8.0 * mixed):
            assert (mine.above(ball(F), y, w, other).high >= exact.value).all()
    above = mine.above(ball(F), y, w, predictor)
    assert (above.high >= exact.value - 1e-13 * scale).all()
    assert (above.high <= exact.value + 1e-8 * (1 + np.abs(exact.value))).all()
    # a wider ball is bounded at each of its points
    near = F + random.uniform(-0.1, 0.1, F.shape)
    assert (mine.above(Ball(F, np.full(F.shape, 0.1)), y, w, predictor).high >= loss.oracle(near, y).value).all()
    # the stored point: vertices and mixtures of them stay where they are, with the largest c
    mixed = 0.5 * (exact.R + loss.oracle(random.normal(size=(n, k)), y).R)
    for R in (exact.R, mixed):
        point = mine.below(R, y, w)
        np.testing.assert_allclose(point.R, R, atol=1e-14)
        assert (point.moved <= 1e-13).all()
        offset = loss.offset(R, y)
        np.testing.assert_allclose(point.offset.mid, offset, atol=1e-12)
        assert (point.offset.low <= offset + 1e-15).all()
    # a point outside is taken back into the set: never above what the oracle gives there
    far = mine.below(exact.R - 0.3, y, w)
    reach = np.abs(point.R).max() + 1
    assert (far.offset.low + (far.R * F).sum(axis=1) - far.moved * np.abs(F).max(axis=1) <= exact.value + 1e-9 * reach).all()
    if mine.simplex:
        assert (far.moved > 0.05).all()
        # too much mass: the point is as near to a distribution as it says, and its c is not above that one's
        truth = np.eye(k)[y]
        for factor in (0.6, 1.5):
            Q = factor * (mixed + truth)
            point, within = mine.below(Q - truth, y, w), Q / Q.sum(axis=1, keepdims=True) - truth
            assert (np.abs(point.R - within).sum(axis=1) <= point.moved + 1e-15).all()
            assert (point.offset.low <= loss.offset(within, y) + 1e-14).all()


@pytest.mark.parametrize("alpha", [0.5, 0.3, 0.05])
@pytest.mark.parametrize("kind", [RejectingOneVersusAllLoss, RejectingCrammerSingerLoss, BinaryEncodedLoss], ids=lambda kind: kind.__name__)
def test_hinges_with_abstention_are_bounded_from_both_sides(kind: Any, alpha: float) -> None:
    random, n = np.random.default_rng(3), 60
    name = {RejectingOneVersusAllLoss: "abstain_ova", RejectingCrammerSingerLoss: "abstain_cs"}.get(kind, "abstain_bep")
    for k in (2, 3, 5):
        loss, mine = kind(k, alpha), Surrogate({"name": name, "alpha": alpha}, k, list("abcde")[:k])
        assert (mine.k, mine.simplex, mine.game) == (loss.n_classes, False, False)
        y, w = random.integers(0, k, n), np.ones(n)
        for scale in (1e-3, 1.0, 30.0):
            F = scale * random.normal(size=(n, mine.k))
            F[:5] = np.round(F[:5])
            exact = loss.oracle(F, y)
            above = mine.above(ball(F), y, w, None)
            assert (above.high >= exact.value - 1e-13 * scale).all()
            assert (above.high <= exact.value + 1e-9 * (1 + np.abs(exact.value))).all()
            near = F + random.uniform(-0.1, 0.1, F.shape)
            assert (mine.above(Ball(F, np.full(F.shape, 0.1)), y, w, None).high >= loss.value(near, y)).all()
            for R in (exact.R, 0.5 * (exact.R + loss.oracle(-F, y).R)):
                point = mine.below(R, y, w)
                np.testing.assert_allclose(point.R, R, atol=1e-14)
                assert (point.moved <= 1e-13).all()
                np.testing.assert_allclose(point.offset.mid, loss.offset(R, y), atol=1e-12)
                assert (point.offset.low <= loss.offset(R, y) + 1e-15).all()
            for far in (exact.R - 0.3, 3.0 * exact.R + 0.1, random.normal(size=F.shape)):  # taken back into the set
                point = mine.below(far, y, w)
                assert loss.infeasibility(point.R, y).max() <= 1e-13
                assert (point.offset.low <= loss.offset(point.R, y) + 1e-14).all()


def test_the_predictor_of_a_general_matrix_is_asked_for_and_others_are_unknown() -> None:
    general = Surrogate({"name": "general", "matrix": [[0, 1], [1, 0]]}, 2, ["a", "b"])
    with pytest.raises(CannotError, match="stored predictor"):
        general.above(ball(np.zeros((3, 2))), np.zeros(3, dtype=int), np.ones(3), None)
    with pytest.raises(CannotError, match="loss=uma"):
        Surrogate({"name": "uma"}, 2, ["a", "b"])
    every = {cls.name for cls in map(loss_class, ("zero_one", "abstain", "power", "ww", "cs", "llw", "weighted", "general", "convex"))}
    assert every <= {options["name"] for options in LOSSES}


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_distances_in_a_hierarchy_are_those_of_the_loss(k: int) -> None:
    for options in loss_class("tree_distance").examples(k):
        edges, classes = options["hierarchy"]["edges"], options["hierarchy"]["classes"]
        expected = make_loss("tree_distance", k, **options).matrix
        surrogate = Surrogate({"name": "tree_distance", **options}, k, ["not", "asked"])
        data = Surrogate({"name": "tree_distance", "hierarchy": None}, k, classes, [tuple(edge) for edge in edges])
        np.testing.assert_array_equal(surrogate.matrix, expected)
        np.testing.assert_array_equal(data.matrix, expected)
    with pytest.raises(CannotError, match="hierarchy of loss=tree_distance is not there"):
        Surrogate({"name": "tree_distance", "hierarchy": None}, k, ["a"] * k)
    with pytest.raises(CannotError, match="no path"):
        Surrogate({"name": "tree_distance", "hierarchy": [["a", "b"]]}, 2, ["a", "c"])


def test_it_runs_without_solvers_learners_and_compiled_kernels() -> None:
    """Imports of imports count as well, so a separate process looks at all modules that are loaded in the end."""
    script = (
        "import sys, tempfile, pathlib\n"
        "from advcli.results.folder import ResultsFolder\nfrom advcli.verify import verify_folder\nfrom advcli import data\n"
        "data.load({'name': 'iris', 'source': 'sklearn'}, pathlib.Path('.'))\n"
        "rooms = ['solvers', 'learners', 'losses', 'features', '_ext', 'evaluation', 'problems']\n"
        "found = {name for name in sys.modules if name.startswith('advcli.') and name.split('.')[1] in rooms}\n"
        "found |= {'advcli.core.compiled'} & {*sys.modules}\n"
        "print(sorted(found - {'advcli.losses', 'advcli.losses.matrices'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
    assert np.finfo(float).eps / 2 == bounds.UNIT


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_splits_and_standardisation_are_those_of_a_run(form) -> None:
    from types import SimpleNamespace

    from advcli.evaluation.splits import random_splits
    from advcli.evaluation.standardise import Standardiser
    from advcli.verify.folder import _standardised
    from advcli.verify.splits import splits_of

    X = np.random.default_rng(2).normal(size=(23, 6)).round(1)
    X[X < 0] = 0.0
    X[:, 3], X[:, 4], X[:, 5] = 0.0, 0.5, -7.0  # constants
    for sizes in (None, (10, 5)):
        dataset = SimpleNamespace(X=form(X), name="some set", sizes=sizes, splits=None, official=None, groups=None)
        result = splits_of(dataset, {"splits": "random", "n_splits": 3, "train_size": 0.7}, 4)
        for mine, theirs in zip(result, random_splits(23, 3, 0.7, 4, "some set", sizes), strict=True):
            assert all(np.array_equal(one, other) for one, other in zip(mine, theirs, strict=True))
    train, test = form(X[:15]), form(X[15:])
    standardiser = Standardiser().fit(train)
    for mine, part in zip(_standardised(train, test), (train, test), strict=True):
        theirs = standardiser.transform(part)
        mine, theirs = (each.toarray() if hasattr(each, "toarray") else each for each in (mine, theirs))
        np.testing.assert_allclose(mine, theirs, rtol=1e-14, atol=1e-15)
