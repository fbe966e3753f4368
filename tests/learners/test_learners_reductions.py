"""Reductions: each problem is the one of its definition, its optimum that of another solver, its predictions those of its rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris, load_wine
from sklearn.svm import SVC, LinearSVC

from advcli import CostSensitiveClassifier, OneVersusAllClassifier, OneVersusOneClassifier, data, models
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.learners import Method, learner_class, learner_names
from advcli.learners.base import Rows
from advcli.learners.reductions.learners import METHODS, ReductionLearner
from advcli.learners.reductions.schemes import SCHEMES
from advcli.losses import matrices

NAMES = [name for name in learner_names() if issubclass(learner_class(name), ReductionLearner)]
MATRIX = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 5.0, 0.5]])


def standardised(X: Any) -> Any:
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def some(n: int = 30, k: int = 3, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.argmax(X @ random.normal(size=(3, k)) + 0.5 * random.normal(size=(n, k)), axis=1)


# ---- definitions, written row by row -----------------------------------------------------------------------------------
def hinge(z: float) -> float:
    return max(z, 0.0)


def losses(method: str, c: Any, y: int, u: Any, pairs: str = "own") -> float:
    """Return the losses of one row of label y and costs c at the scores u of all problems, from the table of definitions."""
    k = len(c)
    every = [(i, j) for i in range(k) for j in range(i + 1, k)]
    if method == "ova":
        return sum(hinge(1 - (1 if y == j else -1) * u[j]) for j in range(k))
    if method == "ovo":
        return sum(hinge(1 - (1 if y == i else -1) * u[at]) for at, (i, j) in enumerate(every) if y in (i, j))
    if method == "red_mc":
        return sum(abs(c[j] - c[j + 1]) * hinge(1 - (1 if y > j else -1) * u[j]) for j in range(k - 1))
    if method == "csosr":
        return sum(hinge((1 if c[j] == min(c) else -1) * (u[j] - c[j])) for j in range(k))
    if method == "csova":
        return sum(max(c) * hinge(1 - u[j]) if j == y else c[j] * hinge(1 + u[j]) for j in range(k))
    if pairs == "own":
        return sum(abs(c[i] - c[j]) * hinge(1 - (1 if y == i else -1) * u[at]) for at, (i, j) in enumerate(every) if y in (i, j))
    return sum(abs(c[i] - c[j]) * hinge(1 - (1 if c[i] < c[j] else -1) * u[at]) for at, (i, j) in enumerate(every))


def rule(method: str, u: Any, k: int) -> int:
    """Return the prediction at scores u, by the rule of the table."""
    if method in ("ova", "csova"):
        return int(np.argmax(u))
    if method == "csosr":
        return int(np.argmin(u))
    if method == "red_mc":
        return int(sum(each > 0 for each in u))
    votes = np.zeros(k)
    for at, (i, j) in enumerate([(first, second) for first in range(k) for second in range(first + 1, k)]):
        votes[i if u[at] > 0 else j] += 1
    return int(np.argmax(votes))


def made(name: str, **options: Any) -> Any:
    own = {"cost": MATRIX} if name in METHODS else {}
    return learner_class(name)(**own, **options)


VARIANTS = [*((name, {}) for name in NAMES), ("csovo", {"pairs": "all"})]


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize("features", ["linear", "rbf"])
def test_the_objective_is_that_of_the_definition(name: str, options: Any, features: str) -> None:
    X, y = some()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    model = made(name, lam=0.05, tol=1e-9, features=features, **options).fit(X, y, weight)
    U = model.binary_scores(X)
    c = (1 - np.eye(3) if name in ("ova", "ovo") else MATRIX)[:, y].T
    mean = sum(w * losses(name, c[i], y[i], U[i], options.get("pairs", "own")) for i, w in enumerate(weight)) / weight.sum()
    if features == "linear":
        square = (model.theta_**2).sum()
        np.testing.assert_allclose(U, np.column_stack([X, np.ones(len(X))]) @ model.theta_, atol=1e-12)
    else:
        rows = model.features_.anchors
        K = np.exp(-((rows[:, None] - rows) ** 2).sum(axis=2) / 3.0) + 1.0
        square = np.trace(model.theta_.T @ K @ model.theta_)
    assert model.certificate_.primal == pytest.approx(0.025 * square + mean, rel=1e-9)
    assert model.certificate_.converged
    assert [rule(name, u, 3) for u in U] == model.predict(X).tolist()


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_a_quasi_newton_method_on_the_dual_ends_at_the_same_optimum(name: str, options: Any) -> None:
    """max over a in the boxes of the sum of margins less |v(a)|^2/2, by SciPy's L-BFGS-B: no code in common."""
    X, y = some(n=18)
    lam, n = 0.2, len(y)
    Z = np.column_stack([X, np.ones(n)])
    model = made(name, lam=lam, tol=1e-9, **options).fit(X, y)
    c = (1 - np.eye(3) if name in ("ova", "ovo") else MATRIX)[:, y].T
    total = 0.0
    for q in range(model.theta_.shape[1]):

        def part(at: Any, q: int = q) -> Any:
            """Losses of the rows when problem q alone has scores ``at``, others 0."""
            scores = np.zeros((n, model.theta_.shape[1]))
            scores[:, q] = at
            return np.array([losses(name, c[i], y[i], scores[i], options.get("pairs", "own")) for i in range(n)])

        # weight [margin - label u]_+ read off its values far out on both sides
        label = np.where(part(1e3) > part(-1e3), -1.0, 1.0)
        weight = (part(-2e3 * label) - part(-1e3 * label)) / 1e3
        margin = np.divide(part(-1e3 * label) - part(1e3 * label), weight, out=np.full(n, 1e3), where=weight > 1e-9) - 1e3
        G = (Z * label[:, None]) @ (Z * label[:, None]).T / (lam * n)

        def dual(a: Any, G: Any = G, margin: Any = margin) -> Any:
            return 0.5 * a @ G @ a - margin @ a, G @ a - margin

        boxes = [(0.0, each) for each in weight]
        precise = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 20_000, "maxfun": 50_000}
        total -= minimize(dual, np.zeros(n), jac=True, method="L-BFGS-B", bounds=boxes, options=precise).fun / n
    assert model.certificate_.primal == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("C", [0.05, 4.0])
def test_one_versus_all_is_liblinears(C: float) -> None:
    X, y = load_wine(return_X_y=True)
    X = standardised(X)
    model = OneVersusAllClassifier(C=C, tol=1e-9).fit(X, y)
    peer = LinearSVC(loss="hinge", C=C, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.theta_, np.column_stack([peer.coef_, peer.intercept_]).T, atol=2e-4)
    assert np.array_equal(model.predict(X), peer.predict(X))


# ---- a free bias ---------------------------------------------------------------------------------------------------------
def problems_of(name: str, c: Any, y: Any, options: Any) -> Any:
    """Return labels, weights and margins (n, m) of the problems, read off the losses far out on both sides."""
    n, k = len(y), c.shape[1]
    m = len(list(range(k))) if name in ("ova", "csosr", "csova") else k - 1 if name == "red_mc" else k * (k - 1) // 2
    found = np.empty((3, n, m))
    for q in range(m):

        def at(u: float, q: int = q) -> Any:
            scores = np.zeros(m)
            rest = [losses(name, c[i], y[i], scores, options.get("pairs", "own")) for i in range(n)]
            scores[q] = u
            return np.array([losses(name, c[i], y[i], scores, options.get("pairs", "own")) for i in range(n)]) - rest

        label = np.where(at(1e3) > at(-1e3), -1.0, 1.0)
        far, further = (np.where(label > 0, at(-each), at(each)) for each in (1e3, 2e3))
        near = np.where(label > 0, at(1e3), at(-1e3))
        weight = (further - far) / 1e3
        found[:, :, q] = label, weight, np.divide(far - near, weight, out=np.full(n, 1e3), where=weight > 1e-9) - 1e3
    return found


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize("features", ["linear", "rbf"])
def test_a_free_bias_is_that_of_the_dual_with_its_constraint(name: str, options: Any, features: str) -> None:
    """max over a in the boxes, sum of a label = 0, of the sum of a margins less |v(a)|^2/2, by SciPy's SLSQP: no code in common."""
    X, y = some(n=16)
    lam, n = 0.2, len(y)
    weight = np.random.default_rng(1).integers(1, 4, size=n).astype(float)
    model = made(name, lam=lam, tol=1e-9, features=features, bias="free", **options).fit(X, y, weight)
    c = (1 - np.eye(3) if name in ("ova", "ovo") else MATRIX)[:, y].T
    U = model.binary_scores(X)
    K = X @ X.T if features == "linear" else np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 3.0)
    if features == "linear":
        square = (model.theta_[:-1] ** 2).sum()
        np.testing.assert_allclose(U, X @ model.theta_[:-1] + model.theta_[-1], atol=1e-12)
    else:
        rows = model.features_.anchors
        among = np.exp(-((rows[:, None] - rows) ** 2).sum(axis=2) / 3.0)
        square = np.trace(model.theta_[:-1].T @ among @ model.theta_[:-1])
    mean = sum(w * losses(name, c[i], y[i], U[i], options.get("pairs", "own")) for i, w in enumerate(weight)) / weight.sum()
    assert model.certificate_.primal == pytest.approx(0.5 * lam * square + mean, rel=1e-8)
    total = 0.0
    for label, most, margin in zip(*(each.T for each in problems_of(name, c, y, options)), strict=True):
        C = weight / (lam * weight.sum())
        G = K * np.outer(label, label)

        def negative(a: Any, G: Any = G, margin: Any = margin) -> Any:
            return 0.5 * a @ G @ a - margin @ a, G @ a - margin

        balance = {"type": "eq", "fun": lambda a, label=label: a @ label, "jac": lambda a, label=label: label}
        bounds = [(0.0, each) for each in most * C]
        precise = {"ftol": 1e-13, "maxiter": 1000}
        found = minimize(negative, np.zeros(n), jac=True, method="SLSQP", bounds=bounds, constraints=[balance], options=precise)
        total -= lam * found.fun
    assert model.certificate_.primal == pytest.approx(total, rel=1e-6)
    assert model.certificate_.converged


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.05, 4.0, 300.0])
def test_a_free_bias_is_libsvms(kernel: str, C: float) -> None:
    X, y = load_wine(return_X_y=True)
    X = standardised(X)
    options = {} if kernel == "linear" else {"features_options": {"gamma": 0.1}}
    model = OneVersusAllClassifier(C=C, tol=1e-8, features=kernel, bias="free", **options).fit(X, y)
    U = model.binary_scores(X)
    total = 0.0
    for j in range(3):
        label = np.where(y == j, 1, -1)
        peer = SVC(C=C, kernel=kernel, gamma=0.1, tol=1e-8).fit(X, label)
        u = peer.decision_function(X)
        support = X[peer.support_]
        K = support @ support.T if kernel == "linear" else np.exp(-0.1 * ((support[:, None] - support) ** 2).sum(axis=2))
        square = float(peer.dual_coef_[0] @ K @ peer.dual_coef_[0])
        total += 0.5 * square + C * np.maximum(1 - label * u, 0.0).sum()
        # an optimal bias may be an interval, the function is one
        np.testing.assert_allclose(U[:, j] - U[:, j].mean(), u - u.mean(), atol=2e-3)
    # theirs is a value above the optimum, by what their margins miss; ours is within 1e-8 of it
    ours = C * len(y) * model.certificate_.primal
    assert -2e-8 * ours <= total - ours <= 1e-5 * C


def test_with_a_free_bias_zero_one_costs_make_csosr_one_versus_all() -> None:
    X, y = some(n=40)
    rival = made("ova", lam=0.1, tol=1e-10, bias="free").fit(X, y)
    own = CostSensitiveClassifier(method="csosr", lam=0.2, tol=1e-10, bias="free").fit(X, y)
    assert 2.0 * own.certificate_.primal == pytest.approx(rival.certificate_.primal, rel=1e-8)


def test_a_free_bias_makes_a_shift_of_the_features_nothing_and_starts_from_another_strength() -> None:
    X, y = some(n=60)
    for features in ("linear", "rbf"):
        bound = learner_class("csovo")(features=features, bias="free").bind(Rows(X), y)
        start = None
        for C in (0.1, 1.0, 30.0):
            model = learner_class("csovo")(C=C, tol=1e-7, features=features, bias="free")
            start = model.fit_bound(bound, start)
            alone = learner_class("csovo")(C=C, tol=1e-7, features=features, bias="free").fit(X + 5.0, y)
            assert start.certificate_.converged
            assert start.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-6)


def test_a_problem_of_one_label_costs_nothing_with_a_free_bias() -> None:
    X, _ = some(n=12)
    y = np.arange(12) % 2
    model = learner_class("ova")(n_classes=3, tol=1e-9, bias="free").fit(X, y)
    assert model.theta_[:-1, 2].tolist() == [0.0] * 3
    assert model.theta_[-1, 2] == -1.0
    assert set(model.predict(X)) <= {0, 1}
    pairs = learner_class("ovo")(n_classes=4, tol=1e-9, bias="free").fit(X, y)
    assert pairs.certificate_.converged
    assert set(pairs.predict(X)) <= {0, 1}
    with pytest.raises(ConfigError, match="bias=loose is unknown"):
        learner_class("ova")(bias="loose").fit(X, y)


# ---- known answers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("red_mc", {}, 1.46546826),
        ("csosr", {}, 2.77026793),
        ("csovo", {"pairs": "own"}, 2.98267945),
        ("csovo", {"pairs": "all"}, 4.24800522),
        ("csova", {}, 4.54931127),
    ],
)
def test_optima_on_machinecpu(shared: Path, name: str, options: Any, expected: float) -> None:
    given = data.load({"name": "machinecpu", "source": "folder", "cut": "equal_frequency", "n_classes": 5, "ordered": True}, shared)
    model = learner_class(name)(lam=0.1, tol=1e-9, cost="absolute", **options).fit(standardised(given.X), given.y)
    assert model.certificate_.primal == pytest.approx(expected, abs=2e-8)


def test_the_optimum_of_one_versus_all_on_glass(shared: Path) -> None:
    given = data.load({"name": "glass", "source": "folder"}, shared)
    model = OneVersusAllClassifier(C=1.0, tol=1e-9).fit(standardised(given.X), given.y)
    assert model.certificate_.primal == pytest.approx(1.64371146, abs=2e-8)


# ---- what holds by theory -----------------------------------------------------------------------------------------------
def test_scaled_costs_of_one_sided_regression_are_a_scaled_lambda() -> None:
    X, y = some()
    plain = CostSensitiveClassifier(cost=MATRIX, lam=0.3, tol=1e-10).fit(X, y)
    scaled = CostSensitiveClassifier(cost=3.0 * MATRIX, lam=0.1, tol=1e-10).fit(X, y)
    assert scaled.certificate_.primal == pytest.approx(3.0 * plain.certificate_.primal, rel=1e-8)
    assert np.array_equal(scaled.predict(X), plain.predict(X))


def test_two_classes_are_one_binary_problem_or_it_twice() -> None:
    X, y = some(k=2)
    value = {name: learner_class(name)(lam=0.1, tol=1e-10).fit(X, y).certificate_.primal for name in NAMES}
    assert value["red_mc"] == pytest.approx(value["csovo"], rel=1e-8)
    assert value["ovo"] == pytest.approx(value["csovo"], rel=1e-8)
    assert value["csova"] == pytest.approx(2.0 * value["ovo"], rel=1e-8)
    assert value["ova"] == pytest.approx(2.0 * value["ovo"], rel=1e-8)


def test_zero_one_costs_make_one_versus_one_and_all_of_the_weighted_ones() -> None:
    X, y = some(k=4)
    for plain, weighted in (("ovo", "csovo"), ("ova", "csova")):
        pair = [learner_class(name)(lam=0.1, tol=1e-8).fit(X, y) for name in (plain, weighted)]
        np.testing.assert_allclose(pair[0].theta_, pair[1].theta_, atol=1e-3)
        assert pair[0].certificate_.primal == pytest.approx(pair[1].certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_a_class_without_rows_keeps_its_problems_and_is_defined(name: str) -> None:
    X, y = some()
    y = np.where(y == 2, 3, y)  # of four classes the third never occurs
    model = learner_class(name)(n_classes=4, lam=0.05, tol=1e-8).fit(X, y)
    assert model.certificate_.converged
    assert model.potentials(X).shape == (30, 4)
    if name in ("ova", "csova"):  # all negative
        assert (model.binary_scores(X)[:, 2] < 0).all()
    if name in ("ovo", "csovo", "ova", "csova"):
        assert 2 not in model.predict(X)
    two = learner_class(name)(n_classes=5, lam=0.05, tol=1e-8).fit(X, y)  # the third and the fifth
    if name in ("ovo", "csovo"):
        assert not two.theta_[:, 8].any()  # their pair has no row, and no vote
        assert (two.potentials(X).sum(axis=1) == 9).all()
    assert two.certificate_.converged


def test_ties_go_to_the_first_class_and_a_score_of_zero_is_a_no() -> None:
    X = np.zeros((3, 2))
    assert OneVersusAllClassifier().fit(np.zeros((2, 2)), [0, 1]).predict(X).tolist() == [0, 0, 0]
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    symmetric = CostSensitiveClassifier(method="red_mc", tol=1e-10).fit(rows, [0, 1])
    np.testing.assert_allclose(symmetric.binary_scores(X), 0.0, atol=1e-12)
    symmetric.theta_[-1] = 0.0
    assert symmetric.predict(X).tolist() == [0, 0, 0]


def test_a_vote_at_a_score_of_zero_is_for_the_second_class_of_the_pair() -> None:
    votes = SCHEMES["ovo"].join(np.array([[0.0, 0.0, 1e-9]]), 3, np.array([True, True, True]))
    assert votes.tolist() == [[0.0, 2.0, 1.0]]


def test_a_cycle_of_votes_goes_to_the_first_class() -> None:
    X, y = some()
    model = OneVersusOneClassifier().fit(X, y)
    model.theta_[:] = 0.0
    model.theta_[-1] = [1.0, -1.0, 1.0]  # 0 beats 1, 2 beats 0, 1 beats 2
    assert (model.potentials(X) == 1.0).all()
    assert (model.predict(X) == 0).all()


def test_a_path_along_C_ends_where_single_fits_do() -> None:
    X, y = load_iris(return_X_y=True)
    for features in ("linear", "rbf"):
        before = None
        bound = CostSensitiveClassifier(method="csovo", cost="absolute", features=features).bind(Rows(X), y)
        for C in (0.1, 1.0, 100.0, 0.01):
            model = CostSensitiveClassifier(method="csovo", cost="absolute", C=C, tol=1e-7, features=features)
            before = model.fit_bound(bound, before)
            alone = CostSensitiveClassifier(method="csovo", cost="absolute", C=C, tol=1e-7, features=features).fit(X, y)
            assert before.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=3e-7)


def test_the_order_of_the_rows_does_not_matter() -> None:
    X, y = some()
    shuffled = np.random.default_rng(0).permutation(len(y))
    for name in NAMES:
        first, second = made(name).fit(X, y), made(name).fit(X[shuffled], y[shuffled])
        assert np.array_equal(first.theta_, second.theta_)


@pytest.mark.parametrize("name", ["ova", "ovo"])
def test_a_proof_belongs_to_the_rows_that_were_given(name: str) -> None:
    """A fit merges equal rows, leaves out those of weight 0 and reorders the others; its proof has all rows in the order given."""
    X, y = some(n=40)
    X[30:35], y[30:35] = X[:5], y[:5]
    weight = np.random.default_rng(1).integers(0, 4, size=40).astype(float)
    model = made(name, C=1.0, features="rbf").fit(X, y, weight)
    proof = model.proof(X, y, weight)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 3.0) + 1.0
    np.testing.assert_allclose(K @ proof["theta"], model.binary_scores(X), atol=1e-12)
    equal = (X[:, None] == X).all(axis=2)
    np.testing.assert_allclose(np.abs(equal @ proof["theta"]), equal @ (weight[:, None] * proof["r"]), atol=1e-12)


# ---- costs of rows ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", METHODS)
def test_rows_with_the_costs_of_their_labels_are_the_fit_by_the_matrix(method: str) -> None:
    X, y = some()
    own = {"method": method, "lam": 0.1, "tol": 1e-9, "order": list("abc")}
    by_label = CostSensitiveClassifier(cost=MATRIX, **own).fit(X, np.array(list("abc"))[y])
    by_row = CostSensitiveClassifier(**own).fit(X, np.array(list("abc"))[y], costs=MATRIX[:, y].T)
    assert by_row.certificate_.primal == pytest.approx(by_label.certificate_.primal, rel=1e-12)
    assert np.array_equal(by_row.predict(X), by_label.predict(X))
    codes = CostSensitiveClassifier(method=method, lam=0.1, tol=1e-9).fit(X, costs=MATRIX[:, y].T)
    assert codes.classes_.tolist() == [0, 1, 2]
    assert np.array_equal(codes.theta_, by_row.theta_)


@pytest.mark.parametrize("method", METHODS)
def test_costs_of_rows_go_into_the_objective_row_by_row(method: str) -> None:
    X, _ = some()
    random = np.random.default_rng(3)
    c = random.integers(0, 5, size=(len(X), 4)).astype(float)
    weight = random.integers(1, 3, size=len(X)).astype(float)
    model = CostSensitiveClassifier(method=method, lam=0.1, tol=1e-9, pairs="all").fit(X, costs=c, sample_weight=weight)
    U = model.binary_scores(X)
    mean = sum(w * losses(method, c[i], int(c[i].argmin()), U[i], "all") for i, w in enumerate(weight)) / weight.sum()
    assert model.certificate_.primal == pytest.approx(0.05 * (model.theta_**2).sum() + mean, rel=1e-9)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((29, 3)), "costs have the shape 29 x 3; give one row for each of the 30 rows"),
        (np.zeros((30, 2)), "one column for each of the 3 classes"),
        (np.zeros(30), "costs must be a table"),
        (np.full((30, 3), np.nan), "row 1, column 1, is nan"),
        (np.where(np.arange(90).reshape(30, 3) == 7, -2.0, 1.0), "row 3, column 2, is -2; costs must be finite numbers of at least 0"),
        ([["much"] * 3] * 30, "costs must be numbers"),
    ],
)
def test_costs_that_are_none_are_told_by_one_line(table: Any, message: str) -> None:
    X, y = some()
    with pytest.raises(DataError, match=message) as told:
        CostSensitiveClassifier().fit(X, y, costs=table)
    assert "\n" not in str(told.value)


# ---- options ------------------------------------------------------------------------------------------------------------
LINEAR, AUTO = {"name": "linear"}, {"name": "auto"}


@pytest.mark.parametrize(
    ("loss", "features", "solver", "ordered", "message"),
    [
        ({"name": "ova", "cost": "absolute"}, LINEAR, AUTO, True, "loss=ova has no option 'cost'"),
        ({"name": "csosr", "pairs": "own"}, LINEAR, AUTO, True, "loss=csosr has no option 'pairs'"),
        ({"name": "csosr", "cost": "absolut"}, LINEAR, AUTO, False, "cost=absolut is unknown; did you mean absolute"),
        ({"name": "csosr", "cost": "absolute"}, LINEAR, AUTO, False, "labels with an order"),
        ({"name": "red_mc", "cost": "zero_one"}, LINEAR, AUTO, False, "labels with an order"),
        ({"name": "csovo", "pairs": "some"}, LINEAR, AUTO, True, "pairs=some is unknown"),
        ({"name": "csova", "cost": [[0, 1], [1, 0]]}, LINEAR, AUTO, True, "cost has 2 columns but there are 3 classes"),
        ({"name": "csova", "cost": [[0, 1, 1], [1, 0, 1]]}, LINEAR, AUTO, True, "give a square matrix"),
        ({"name": "csova", "cost": [[0, 1, 1], [1, 0, -1], [1, 1, 0]]}, LINEAR, AUTO, True, "row 1, column 2, is -1"),
        ({"name": "ovo"}, {"name": "threshold"}, AUTO, True, "one column of parameters"),
        ({"name": "ovo"}, {"name": "rbf_threshold"}, AUTO, True, "one column of parameters"),
        ({"name": "ovo"}, {"name": "linear", "moments": "box"}, AUTO, True, "an adversary"),
        ({"name": "ovo"}, LINEAR, {"name": "newton"}, True, "choose solver=auto"),
    ],
)
def test_options_without_meaning_are_refused_before_any_work(loss: Any, features: Any, solver: Any, ordered: bool, message: str) -> None:
    with pytest.raises((ConfigError, IncompatibleError), match=message):
        Method(loss, features, solver).check(ordered, 3)


def test_costs_default_to_what_the_labels_are(tmp_path: Path) -> None:
    facts = {"classes": ["low", "high"], "ordered": True}
    assert Method({"name": "csosr", "cost": None}, LINEAR, AUTO).filled(facts).loss["cost"] == "absolute"
    assert Method({"name": "csosr", "cost": None}, LINEAR, AUTO).filled({**facts, "ordered": False}).loss["cost"] == "zero_one"
    assert Method({"name": "csosr", "cost": "squared"}, LINEAR, AUTO).filled(facts).loss["cost"] == "squared"
    assert Method({"name": "ova"}, LINEAR, AUTO).filled(facts).loss == {"name": "ova"}
    file = tmp_path / "costs.csv"
    file.write_text("says,high,low\nhigh,0,7\nlow,3,0\n")
    given = Method({"name": "csova", "cost": None, "file": str(file)}, LINEAR, AUTO).filled(facts).loss
    assert given["cost"] == [[0.0, 3.0], [7.0, 0.0]]  # in the order of the labels
    model = Method(given, LINEAR, AUTO, {"C": 2.0}).make(2, 0, 1e-3)
    assert (model.cost, model.C) == ([[0.0, 3.0], [7.0, 0.0]], 2.0)
    with pytest.raises(ConfigError, match=r"give loss\.cost or loss\.file"):
        Method({"name": "csova", "cost": "absolute", "file": str(file)}, LINEAR, AUTO).filled(facts)


@pytest.mark.parametrize(("cost", "metric"), [(None, "error"), ("absolute", "mae"), ("squared", "mse"), (MATRIX, "cost")])
def test_the_metric_counts_the_costs(cost: Any, metric: str) -> None:
    X, y = some()
    model = CostSensitiveClassifier(cost=cost).fit(X, y)
    assert model.metric_ == metric
    expected = {"error": matrices.zero_one(3), "mae": matrices.absolute(3), "mse": matrices.squared(3), "cost": MATRIX}[metric]
    np.testing.assert_array_equal(model.cost_matrix_, expected)


@pytest.mark.parametrize(
    "options", [{"method": "ova"}, {"pairs": "every"}, {"cost": "absolut"}, {"C": 0.0}, {"tol": np.nan}, {"lam": -1.0}]
)
def test_parameters_without_meaning_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError):
        CostSensitiveClassifier(**options).fit(*some())


def test_more_problems_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advcli.learners.reductions.learners._MOST_NUMBERS", 100)
    X, y = some(n=30, k=5)
    with pytest.raises(IncompatibleError, match="OneVersusOneClassifier on 30 rows of 5 classes needs some 0 GB of memory for its 10 prob"):
        OneVersusOneClassifier().fit(X, y)


def test_a_fit_that_stops_early_says_so_and_is_no_worse_than_nothing() -> None:
    X, y = some(n=200, k=5)
    with pytest.warns(NotConvergedWarning, match="loss=ovo, lambda="):
        model = OneVersusOneClassifier(C=1e6, tol=1e-9, max_passes=1).fit(X, y)
    assert not model.certificate_.converged
    assert model.certificate_.primal <= 4.0 + 1e-9  # of scores 0: every row is in four pairs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bias", ["regularised", "free"])
def test_a_saved_kernel_has_as_many_scores_as_the_scheme_has_problems(name: str, bias: str, tmp_path: Path) -> None:
    X, y = some(k=4)
    fit = learner_class(name)(features="rbf", bias=bias).fit(X, y)
    models.save(fit, tmp_path / "m")
    np.testing.assert_array_equal(models.load(tmp_path / "m").binary_scores(X), fit.binary_scores(X))
