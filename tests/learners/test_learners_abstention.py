"""Learners that may abstain: known optima, an independent convex solver, decisions, two stages, saved models, bad options."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from advcli import ABSTAIN, AbstainingClassifier, SurrogateClassifier
from advcli.core.errors import ConfigError, IncompatibleError
from advcli.data import load
from advcli.learners import Method
from advcli.learners.base import Rows
from advcli.losses import make_loss
from advcli.losses.rejecting import code_words
from advcli.models import read as read_model
from advcli.models import save

METHODS = ("ova", "cs", "bep", "two_stage", "adversarial")
REJECTING = ("ova", "cs", "bep")


def blobs(n: int, d: int, k: int, seed: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = np.r_[np.arange(k), random.integers(k, size=n - k)]
    return random.normal(size=(n, d)) + spread * random.normal(size=(k, d))[y], y


def optimum(method: str, X: np.ndarray, y: np.ndarray, k: int, alpha: float, lam: float, sample: np.ndarray | None = None) -> float:
    """Return min lam/2 |Theta|^2 + weighted mean of the surrogate over linear scores of (x, 1), by a general cone solver.

    Every hinge is a slack above its linear pieces; variables are Theta by rows, then the slacks.
    """
    x = np.c_[X, np.ones(len(X))]
    n, d = x.shape
    words = code_words("binary", k)
    rows = words.shape[1] if method == "bep" else k
    pieces, sides, owner = [], [], []  # piece . theta + side <= slack
    slack = 0
    for i in range(n):
        unit = [np.kron(np.eye(rows)[j], x[i]) for j in range(rows)]
        if method == "ova":
            for j in range(k):
                sign, weight = (-1.0, 2 * alpha) if j == y[i] else (1.0, 2 * (1 - alpha))
                pieces.append(weight * sign * unit[j])
                sides.append(weight)
                owner.append((slack, i))
                slack += 1
            continue
        if method == "cs":
            margins = [unit[j] - unit[y[i]] for j in range(k) if j != y[i]]
        else:
            margins = [words[y[i], a] * unit[a] for a in range(rows)]
        for g in margins:
            pieces += [2 * alpha * g, 2 * (1 - alpha) * g]
            sides += [2 * alpha, 2 * alpha]
            owner += [(slack, i)] * 2
        slack += 1
    p = rows * d
    s = np.ones(n) if sample is None else sample
    cost = np.zeros(p + slack)
    for at, i in set(owner):
        cost[p + at] = s[i] / s.sum()
    m = len(pieces)
    above = sp.csc_matrix((np.ones(m), (np.arange(m), [at for at, _ in owner])), shape=(m, slack))
    A = sp.vstack(
        [sp.hstack([sp.csc_matrix(np.array(pieces)), -above]), sp.hstack([sp.csc_matrix((slack, p)), -sp.eye(slack)])], format="csc"
    )
    b = np.r_[-np.array(sides), np.zeros(slack)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = sp.diags(np.r_[np.full(p, lam), np.zeros(slack)], format="csc")
    return float(clarabel.DefaultSolver(P, cost, A, b, [clarabel.NonnegativeConeT(m + slack)], settings).solve().obj_val)


@pytest.mark.parametrize(("method", "expected"), [("ova", 1.64371146), ("cs", 0.70647786), ("bep", 0.80514253)])
def test_known_optima_of_glass(method: str, expected: float) -> None:
    root = os.environ.get("ADVCLI_DATA")
    if root is None or not any((Path(root) / name).exists() for name in ("glass.csv", "glass.csv.gz")):
        pytest.skip("needs the data set glass in ADVCLI_DATA")
    data = load({"name": "glass", "source": "folder", "target": "target"}, Path(root))
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0, ddof=1)
    fitted = AbstainingClassifier(method, C=1.0, tol=1e-9).fit(X, data.y)
    assert fitted.certificate_.converged
    assert fitted.certificate_.primal == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("method", REJECTING)
@pytest.mark.parametrize(("k", "alpha", "C"), [(2, 0.3, 1.0), (3, 0.5, 10.0), (5, 0.2, 0.3), (5, 0.45, 100.0), (4, 0.05, 3.0)])
def test_optima_are_those_of_an_independent_solver(method: str, k: int, alpha: float, C: float) -> None:
    X, y = blobs(40, 3, k, seed=k)
    weights = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    weights[:k] = 1.0
    for sample in (None, weights):
        fitted = AbstainingClassifier(method, alpha=alpha, C=C, tol=1e-8).fit(X, y, sample_weight=sample)
        best = optimum(method, X, y, k, alpha, fitted.lam_, sample)
        assert fitted.certificate_.primal == pytest.approx(best, rel=2e-7)
        assert fitted.certificate_.dual <= best * (1 + 1e-8)
    repeated = AbstainingClassifier(method, alpha=alpha, C=C, tol=1e-8).fit(
        np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int))
    )
    assert repeated.certificate_.primal == pytest.approx(best, rel=2e-7)


@pytest.mark.parametrize("method", REJECTING)
def test_every_solver_that_takes_the_problem_reaches_the_same_optimum(method: str) -> None:
    X, y = blobs(50, 3, 3, seed=2)
    best = AbstainingClassifier(method, alpha=0.3, tol=1e-7).fit(X, y).certificate_
    for solver in ("dual", "newton", "lbfgs"):
        found = AbstainingClassifier(method, alpha=0.3, tol=1e-4, solver=solver).fit(X, y).certificate_
        assert found.converged
        assert best.dual <= found.primal <= best.primal * (1 + 1e-4)
    sparse = AbstainingClassifier(method, alpha=0.3, tol=1e-7).fit(sp.csr_array(X), y).certificate_
    assert sparse.primal == pytest.approx(best.primal, rel=1e-6)


@pytest.mark.parametrize("method", [*REJECTING, "two_stage"])
def test_a_gaussian_kernel_is_a_given_one_plus_the_constant(method: str) -> None:
    X, y = blobs(40, 3, 3, seed=4)
    new = X[:9] + 0.1
    constant = float(method in REJECTING)

    def kernel(A: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * ((A[:, None] - X[None]) ** 2).sum(axis=2)) + constant

    options = {"alpha": 0.3, "C": 20.0, "tol": 1e-8}
    rbf = AbstainingClassifier(method, features="rbf", features_options={"gamma": 0.5}, **options).fit(X, y)
    given = AbstainingClassifier(method, features="precomputed", **options).fit(kernel(X), y)
    assert rbf.certificate_.primal == pytest.approx(given.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(rbf.potentials(new), given.potentials(kernel(new)), atol=2e-3)
    np.testing.assert_allclose(rbf.margins(new), given.margins(kernel(new)), atol=2e-3)
    without = AbstainingClassifier(method, features="rbf", features_options={"gamma": 0.5}, fit_intercept=False, **options).fit(X, y)
    assert (without.certificate_.primal != pytest.approx(rbf.certificate_.primal, rel=1e-6)) == bool(constant)


@pytest.mark.parametrize("features", ["linear", "rbf"])
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_that_starts_from_another_reaches_the_same_optimum(method: str, features: str) -> None:
    X, y = blobs(40, 3, 3, seed=6)
    options = {"alpha": 0.3, "tol": 1e-7, "features": features}
    first = AbstainingClassifier(method, C=1.0, **options)
    bound = first.bind(Rows(X), y)
    first.fit_bound(bound)
    warm = AbstainingClassifier(method, C=4.0, **options).fit_bound(bound, first)
    cold = AbstainingClassifier(method, C=4.0, **options).fit(X, y)
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=3e-7)
    assert warm.certificate_.converged


def test_half_is_the_surrogate_that_is_there_already() -> None:
    X, y = blobs(60, 3, 4, seed=8)
    plain, cs = SurrogateClassifier("cs").fit(X, y), AbstainingClassifier("cs").fit(X, y)
    assert np.array_equal(plain.theta_, cs.theta_)
    abstain = SurrogateClassifier("abstain", loss_options={"alpha": 0.3}).fit(X, y)
    own = AbstainingClassifier("adversarial", alpha=0.3).fit(X, y)
    assert np.array_equal(abstain.theta_, own.theta_)
    assert np.array_equal(abstain.predict(X), own.predict(X))
    assert own.certificate_.game_value == abstain.certificate_.game_value


@pytest.mark.parametrize("method", METHODS)
def test_predictions_are_those_whose_margin_exceeds_the_threshold(method: str) -> None:
    X, y = blobs(120, 2, 3, seed=3)
    names = np.array(["ant", "bee", "cat"])[y]
    fitted = AbstainingClassifier(method, alpha=0.4).fit(X, names)
    assert list(fitted.predictions_) == ["ant", "bee", "cat", "abstain"]
    P = fitted.potentials(X)
    assert P.shape == (120, 3)
    best = np.array(["ant", "bee", "cat"])[P.argmax(axis=1)]
    own = {"ova": 0.0, "cs": 0.5, "bep": 0.5, "two_stage": 0.0, "adversarial": None}[method]
    assert fitted.threshold_ == own
    if own is not None:
        np.testing.assert_array_equal(fitted.predict(X), np.where(fitted.margins(X) > own, best, "abstain"))
    shares = []
    for tau in (-np.inf, 0.0, 0.3, 0.8, np.inf):  # a larger threshold never accepts more
        given = AbstainingClassifier(method, alpha=0.4, tau=tau).fit(X, names)
        assert np.array_equal(given.margins(X), fitted.margins(X))
        predicted = given.predict(X)
        np.testing.assert_array_equal(predicted, np.where(given.margins(X) > tau, best, "abstain"))
        shares.append((predicted == "abstain").mean())
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    np.testing.assert_array_equal(fitted.predict(X, rule="potentials"), best)


def test_potentials_of_bep_are_the_least_agreement_with_the_codes() -> None:
    X, y = blobs(80, 3, 5, seed=5)
    fitted = AbstainingClassifier("bep", C=10.0).fit(X, y)
    words = code_words("binary", 5)
    mapped = np.c_[X, np.ones(len(X))] @ fitted.theta_
    U = (mapped[:, 0::2] - mapped[:, 1::2]) * np.sqrt(0.5)
    np.testing.assert_allclose(fitted.potentials(X), (-words[None] * U[:, None]).min(axis=2), atol=1e-12)
    # three of the eight patterns of signs are no code: they abstain whatever their size
    spelled = (words[None] == -np.sign(U)[:, None]).all(axis=2)
    assert not spelled.any(axis=1).all()
    expected = np.where(spelled.any(axis=1) & (np.abs(U).min(axis=1) > 0.5), spelled.argmax(axis=1), 5)
    np.testing.assert_array_equal(fitted.predict_codes(X), expected)
    assert "0 000, 1 001, 2 010, 3 011, 4 100" in fitted.remarks_[0]
    gray = AbstainingClassifier("bep", C=10.0, code="gray").fit(X, y)
    assert gray.certificate_.primal != pytest.approx(fitted.certificate_.primal, rel=1e-6)


def rejector(X: np.ndarray, wrong: np.ndarray, alpha: float, lam: float) -> float:
    """Return min lam/2 |v|^2 + mean of alpha [1 - r]_+ + wrong [1 + r]_+, r = v.(x, 1), by a general cone solver."""
    x = np.c_[X, np.ones(len(X))]
    n, d = x.shape
    A = sp.csc_matrix(
        np.block([[-x, -np.eye(n), np.zeros((n, n))], [x, np.zeros((n, n)), -np.eye(n)], [np.zeros((2 * n, d)), -np.eye(2 * n)]])
    )
    b = np.r_[-np.ones(2 * n), np.zeros(2 * n)]
    P = sp.diags(np.r_[np.full(d, lam), np.zeros(2 * n)], format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cost = np.r_[np.zeros(d), np.full(n, alpha / n), wrong / n]
    return float(clarabel.DefaultSolver(P, cost, A, b, [clarabel.NonnegativeConeT(4 * n)], settings).solve().obj_val)


@pytest.mark.parametrize("alpha", [0.2, 0.5])
def test_the_rejector_is_the_optimum_of_the_second_stage(alpha: float) -> None:
    X, y = blobs(60, 2, 3, seed=1)
    fitted = AbstainingClassifier("two_stage", alpha=alpha, C=2.0, tol=1e-9).fit(X, y)
    first = SurrogateClassifier("zero_one", C=2.0, tol=1e-9).fit(X, y)
    assert np.array_equal(first.theta_, fitted.theta_)
    wrong = (first.predict(X) != y).astype(float)
    assert 0 < wrong.sum() < len(y)
    r = fitted.margins(X)
    v = (fitted.rejector_theta_[:, 0] - fitted.rejector_theta_[:, 1]) * np.sqrt(0.5)
    np.testing.assert_allclose(r, np.c_[X, np.ones(len(X))] @ v, atol=1e-12)
    value = 0.5 * fitted.lam_ * v @ v + (alpha * np.maximum(1 - r, 0) + wrong * np.maximum(1 + r, 0)).mean()
    assert value == pytest.approx(rejector(X, wrong, alpha, fitted.lam_), rel=1e-6)
    scale = alpha + wrong.mean()  # the rejector's certificate is per unit of weight
    assert fitted.rejector_certificate_.converged
    assert fitted.rejector_certificate_.primal * scale == pytest.approx(value, rel=1e-6)
    heavier = AbstainingClassifier("two_stage", alpha=alpha, C=2.0, tol=1e-9).fit(X, y, sample_weight=np.full(len(y), 2.0))
    doubled = AbstainingClassifier("two_stage", alpha=alpha, C=2.0, tol=1e-9).fit(np.r_[X, X], np.r_[y, y])
    np.testing.assert_allclose(heavier.margins(X), doubled.margins(X), atol=1e-4)


def test_the_adversarial_loss_never_costs_more_than_to_abstain_always() -> None:
    """In expectation on the training rows; at alpha = 0 it always abstains. Theta = 0 costs alpha, and P bounds the game."""
    X, y = blobs(80, 3, 4, seed=9, spread=0.5)
    for alpha in (0.0, 0.1, 0.3, 0.5, 0.7):
        fitted = AbstainingClassifier("adversarial", alpha=alpha, C=10.0, tol=1e-6).fit(X, y)
        cost = fitted.mean_cost(X, y, None)
        assert cost is not None
        assert cost <= fitted.certificate_.primal + 1e-12
        assert fitted.certificate_.primal <= min(alpha, 0.75) * (1 + 1e-6) + 1e-12
        if alpha == 0.0:
            assert (fitted.predict(X) == ABSTAIN).all()


def test_at_the_same_potentials_a_larger_alpha_never_abstains_more() -> None:
    """The rule of the adversarial loss; up to 1/2 it is the same for every alpha. Refits have other potentials."""
    random = np.random.default_rng(0)
    for k in (2, 3, 6):
        F = random.normal(size=(300, k)) * random.choice([0.2, 1.0], size=(300, 1))
        abstained = np.array([make_loss("abstain", k, alpha=alpha).predict(F) == k for alpha in np.linspace(0, 1, 41)])
        assert (abstained[1:] <= abstained[:-1]).all()
        assert (abstained[:21] == abstained[0]).all()
        assert abstained[0].any()
        assert not abstained[-1].any()


@pytest.mark.parametrize("features", ["linear", "rbf"])
@pytest.mark.parametrize("method", METHODS)
def test_a_saved_model_predicts_the_same(method: str, features: str, tmp_path: Path) -> None:
    X, y = blobs(200, 3, 5, seed=7, spread=2.0)
    fitted = AbstainingClassifier(method, features=features, C=5.0).fit(X[:100], y[:100])
    found = fitted.calibrate(X[100:], y[100:], epsilon=0.3, delta=0.2)
    for at, epsilon in enumerate((0.3, 1e-6)):  # of the second no threshold passes: nothing is accepted
        fitted.calibrate(X[100:], y[100:], epsilon=epsilon, delta=0.2)
        save(fitted, tmp_path / f"{at}.advcli")
        loaded: Any = read_model(tmp_path / f"{at}.advcli").estimator
        assert type(loaded) is AbstainingClassifier
        assert np.array_equal(loaded.predict(X), fitted.predict(X))
        np.testing.assert_allclose(loaded.margins(X), fitted.margins(X), atol=1e-9)
    assert (fitted.predict(X) == ABSTAIN).all()
    assert found.tau < np.inf
    if method == "bep":
        words = [[-1, -1, 1], [1, 1, 1], [-1, 1, -1], [1, -1, -1], [1, 1, -1]]
        own = AbstainingClassifier("bep", code=words).fit(X, y)
        save(own, tmp_path / "own.advcli")
        assert np.array_equal(read_model(tmp_path / "own.advcli").estimator.predict(X), own.predict(X))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "svm"}, "method=svm is unknown; "),
        ({"alpha": 0.7}, r"loss\.alpha=0\.7 is not valid"),
        ({"method": "adversarial", "alpha": 1.2}, "must be a number from 0 to 1 "),
        ({"method": "two_stage", "alpha": 0.0}, "between 0 and 1"),
        ({"tau": "high"}, r"loss\.tau=high is not valid"),
        ({"tau": float("nan")}, r"loss\.tau=nan is not valid"),
        ({"method": "two_stage", "base": "absolute"}, "for ordered classes"),
        ({"method": "two_stage", "base": "abstain"}, "abstains by itself"),
        ({"method": "bep", "code": "hex"}, "loss.code=hex is unknown"),
        ({"C": -1.0}, "C must be a positive number"),
    ],
)
def test_bad_options_are_refused_in_one_line(options: dict[str, Any], said: str) -> None:
    X, y = blobs(20, 2, 3, seed=0)
    with pytest.raises(ConfigError, match=said) as found:
        AbstainingClassifier(**options).fit(X, y)
    assert "\n" not in str(found.value)


def test_configurations_are_checked_and_built() -> None:
    linear, auto = {"name": "linear"}, {"name": "auto"}
    for name in ("abstain_ova", "abstain_cs", "abstain_bep", "two_stage"):
        Method({"name": name, "alpha": 0.2}, linear, auto).check(False, 4)
        learner = Method({"name": name, "alpha": 0.2, "tau": 0.1}, {"name": "rbf"}, auto, {"C": 2.0, "gamma": 0.5}).make(3, 0, 1e-4)
        assert (learner.alpha, learner.tau, learner.C, learner.tol) == (0.2, 0.1, 2.0, 1e-4)
        with pytest.raises(ConfigError, match=f"loss={name} has no option 'beta'"):
            Method({"name": name, "beta": 1}, linear, auto).check(False, 4)
        with pytest.raises(IncompatibleError, match="one direction"):
            Method({"name": name}, {"name": "threshold"}, auto).check(True, 4)
        with pytest.raises(IncompatibleError, match="moments in a ball"):
            Method({"name": name}, {"name": "linear", "moments": "box"}, auto).check(False, 4)
    with pytest.raises(ConfigError, match=r"loss\.code must be a row"):
        Method({"name": "abstain_bep", "code": [[1], [-1]]}, linear, auto).check(False, 3)


def test_a_class_that_is_missing_and_one_class() -> None:
    X, y = blobs(30, 2, 3, seed=0)
    y = np.where(y == 1, 2, y)
    for method in METHODS:
        fitted = AbstainingClassifier(method, n_classes=3).fit(X, y)
        assert fitted.potentials(X).shape == (30, 3)
        assert set(fitted.predict_codes(X)) <= {0, 1, 2, 3}
        with pytest.raises(ValueError, match="one class only"):
            AbstainingClassifier(method).fit(X, np.zeros(30))


def test_a_fixed_threshold_is_not_calibrated() -> None:
    X, y = blobs(60, 2, 3, seed=0)
    with pytest.raises(ConfigError, match=r"tau=0\.1 fixes the threshold"):
        AbstainingClassifier(tau=0.1).fit(X, y).calibrate(X, y)


def test_a_rejector_that_stops_early_says_so() -> None:
    X, y = blobs(60, 2, 3, seed=1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = AbstainingClassifier("two_stage", max_passes=2, tol=1e-9).fit(X, y)
    assert not fitted.rejector_certificate_.converged
    assert any("the rejector: relative gap" in str(each.message) for each in said)
    assert any(remark.startswith("rejector: relative gap") for remark in fitted.remarks_)


def test_a_cost_of_abstaining_for_each_class_is_a_row_of_the_matrix(tmp_path: Path) -> None:
    X, y = blobs(90, 3, 3, seed=2)
    alpha = [0.1, 0.3, 0.45]
    matrix = np.vstack([1.0 - np.eye(3), alpha])
    own = AbstainingClassifier("adversarial", alpha=alpha, tol=1e-7).fit(X, y)
    given = SurrogateClassifier(matrix, tol=1e-7).fit(X, y)
    assert own.certificate_.primal == pytest.approx(given.certificate_.primal, rel=3e-7)
    np.testing.assert_allclose(own.predictor_distribution(X), given.predictor_distribution(X), atol=2e-3)
    assert own.predictor_distribution(X).shape == (90, 4)
    np.testing.assert_array_equal(own.cost_matrix_, matrix)
    assert (own.metric_, own.abstention_cost_) == ("cost", None)
    save(own, tmp_path / "m")
    assert np.array_equal(read_model(tmp_path / "m").estimator.predict(X), own.predict(X))
    same = AbstainingClassifier("adversarial", alpha=[0.3] * 3).fit(X, y)  # one number is the closed form
    assert np.array_equal(same.theta_, AbstainingClassifier("adversarial", alpha=0.3).fit(X, y).theta_)
    dear = AbstainingClassifier("adversarial", alpha=[0.05, 0.9, 0.9]).fit(X, y)
    cheap = AbstainingClassifier("adversarial", alpha=[0.05, 0.05, 0.05]).fit(X, y)
    assert (dear.predict(X) == ABSTAIN).sum() < (cheap.predict(X) == ABSTAIN).sum()
    for bad, said in (
        ([0.1, 0.2], "2 numbers for 3 classes"),
        ([0.1, 0.2, 1.5], "must be a number from 0 to 1 "),
        (["a", 0.1, 0.2], r"must be a number from 0 to 1 .*'a'"),
    ):
        with pytest.raises(ConfigError, match=said):
            AbstainingClassifier("adversarial", alpha=bad).fit(X, y)


def test_several_predictions_that_are_no_class() -> None:
    X, y = blobs(150, 2, 3, seed=4)
    # beside to abstain, a prediction that is cheap unless the class is 2
    matrix = np.vstack([1.0 - np.eye(3), [0.1, 0.1, 1.0], [0.3, 0.3, 0.3]])
    fitted = SurrogateClassifier(matrix, extra_labels=[10, 11], C=10.0).fit(X, y)
    assert fitted.predictions_.tolist() == [0, 1, 2, 10, 11]
    predicted = fitted.predict(X)
    assert {10, 11} <= set(predicted)
    codes = fitted.predict_codes(X)
    assert np.array_equal(fitted.predictions_[codes], predicted)
    assert matrix[codes, y].mean() < 0.3  # than to abstain always


@pytest.mark.parametrize("method", METHODS)
def test_labels_that_the_fit_does_not_know_are_refused(method: str) -> None:
    """Compared with the classes they would all be wrong: a threshold that accepts nothing, and a score that says nothing."""
    X, y = blobs(200, 2, 3, seed=0)
    fitted = AbstainingClassifier(method, alpha=0.3).fit(X, y + 5)
    known = fitted.calibrate(X, y + 5.0, epsilon=0.3)
    for strange in ((y + 5).astype(str), np.where(y == 0, np.nan, y + 5), y):
        for ask in (fitted.calibrate, fitted.risk_coverage, fitted.score):
            with pytest.raises(ConfigError, match="not a class of the fit; it has 5, 6, 7"):
                ask(X, strange)
    assert fitted.tau_ == known.tau
    assert fitted.score(X, y + 5.0) == fitted.score(X, (y + 5).astype(object))
