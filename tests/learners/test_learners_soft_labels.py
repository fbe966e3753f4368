"""Distributions over the classes instead of labels: the objective is the expected surrogate, the certificate bounds it."""

from itertools import combinations

import clarabel
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from support.reference import oracle_brute

from advcli import (
    AbstainingClassifier,
    AdversarialClassifier,
    AdversarialCostClassifier,
    ChainClassifier,
    CostSensitiveClassifier,
    HierarchicalClassifier,
    OneVersusOneClassifier,
    OrdinalAdversarialClassifier,
    OrdinalClassifier,
    PerceptronClassifier,
    dawid_skene,
)
from advcli.core.errors import ConfigError, DataError, IncompatibleError
from advcli.core.row_blocks import BlockRows

N, D, K = 60, 3, 3
COST = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])


@pytest.fixture(scope="module")
def rows():
    """Rows, distributions of which a third have all mass on one class, and how often rows occur."""
    random = np.random.default_rng(5)
    P = random.dirichlet(np.full(K, 0.6), size=N)
    P[::3] = np.eye(K)[P[::3].argmax(axis=1)]
    return random.normal(size=(N, D)) + P @ random.normal(size=(K, D)), P, random.integers(1, 4, N).astype(float)


@pytest.mark.parametrize("name", ["zero_one", "absolute", "squared", "cs", "ww", "llw", "general"])
def test_the_objective_is_the_expected_surrogate(rows, name):
    X, P, weight = rows
    options = {"matrix": COST.tolist()} if name == "general" else {}
    model = AdversarialClassifier(name, loss_options=options or None, C=0.3, tol=1e-6).fit(X, P, sample_weight=weight)
    F = model.potentials(X)
    losses = [sum(P[i, y] * oracle_brute(name, F[i], y, **options) for y in range(K) if P[i, y]) for i in range(N)]
    lam = 1.0 / (0.3 * weight.sum())
    stated = 0.5 * lam * (model.theta_**2).sum() + np.average(losses, weights=weight)
    assert model.certificate_.primal == pytest.approx(stated, rel=1e-9)
    assert model.certificate_.dual <= stated
    assert model.objective(X, P, weight) == pytest.approx(stated, rel=1e-9)


def test_the_optimum_is_that_of_a_quadratic_program_over_the_rows_themselves(rows):
    # zero_one: t_i >= mean of f over S + 1 - 1/|S| - f.P_i for every set S of classes, one t a row
    X, P, _ = rows
    Z, lam = np.hstack([X, np.ones((N, 1))]), 1.0 / (2.0 * N)
    sets = [list(s) for size in range(1, K + 1) for s in combinations(range(K), size)]
    coefficients, bounds = [], []
    for i in range(N):
        for s in sets:
            r = np.isin(np.arange(K), s) / len(s) - P[i]
            t = np.zeros(N)
            t[i] = -1.0
            coefficients.append(np.r_[np.outer(Z[i], r).ravel(), t])
            bounds.append(1.0 / len(s) - 1.0)
    quadratic = sparse.diags(np.r_[np.full(Z.shape[1] * K, lam), np.zeros(N)], format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-12
    linear = np.r_[np.zeros(Z.shape[1] * K), np.full(N, 1.0 / N)]
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    best = clarabel.DefaultSolver(quadratic, linear, sparse.csc_matrix(np.array(coefficients)), np.array(bounds), cones, settings).solve()
    fit = AdversarialClassifier("zero_one", C=2.0, tol=1e-9).fit(X, P).certificate_
    assert fit.primal == pytest.approx(best.obj_val, rel=1e-8)
    assert fit.dual <= best.obj_val * (1 + 1e-9)


ESTIMATORS = [
    AdversarialClassifier("zero_one", kernel="rbf"),
    AdversarialClassifier("weighted", loss_options={"weight": [1.0, 2.0, 0.5]}),
    AdversarialClassifier("abstain", calibrate="vector"),
    OrdinalAdversarialClassifier("absolute", features="threshold"),
    OrdinalClassifier(),
    CostSensitiveClassifier(method="csosr", cost=COST),
    OneVersusOneClassifier(),
    AbstainingClassifier(),
    AdversarialCostClassifier(cost=COST),
    HierarchicalClassifier(hierarchy=[["root", "0"], ["root", "a"], ["a", "1"], ["a", "2"]]),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_all_mass_on_one_class_is_the_label_bit_for_bit(rows, estimator):
    X, P, weight = rows
    y = P.argmax(axis=1)
    by_label = estimator.fit(X, y, sample_weight=weight)
    scores, primal = by_label.potentials(X), by_label.certificate_.primal
    for ones in (np.eye(K)[y], 5 * np.eye(K, dtype=int)[y], np.eye(K)[y].tolist()):
        by_ones = estimator.fit(X, ones, sample_weight=weight)
        assert np.array_equal(by_ones.potentials(X), scores)
        assert by_ones.certificate_.primal == primal


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_votes_are_rows_that_each_voter_labels(rows, estimator):
    X, _, _ = rows
    votes = np.random.default_rng(2).multinomial(4, [0.5, 0.3, 0.2], size=N)
    estimator.set_params(tol=1e-9, C=0.2)
    by_votes = estimator.fit(X, votes).certificate_
    voters = estimator.fit(np.repeat(X, 4, axis=0), np.concatenate([np.repeat(np.arange(K), v) for v in votes]))
    estimator.set_params(C=0.2 / 4)  # four times as many rows
    voters = estimator.fit(np.repeat(X, 4, axis=0), np.concatenate([np.repeat(np.arange(K), v) for v in votes])).certificate_
    estimator.set_params(tol=1e-3)
    assert by_votes.primal == pytest.approx(voters.primal, rel=1e-7)


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_columns_of_a_frame_name_the_classes(rows, frame):
    X, P, _ = rows
    names = ["low", "high", "middle"]
    Y = pd.DataFrame(P, columns=names)
    if frame == "polars":
        Y = pytest.importorskip("polars").DataFrame(dict(Y))
    elif frame == "pyarrow":
        Y = pytest.importorskip("pyarrow").Table.from_pandas(Y)
    model = AdversarialClassifier("absolute", order=["low", "middle", "high"]).fit(X, Y)
    plain = AdversarialClassifier("absolute").fit(X, P[:, [0, 2, 1]])
    assert model.order_.tolist() == ["low", "middle", "high"]
    assert model.potentials(X) == pytest.approx(plain.potentials(X), abs=1e-2)
    assert model.score(X, Y) == pytest.approx(P[np.arange(N), [names.index(label) for label in model.predict(X)]].mean())


def test_a_class_without_mass_is_a_class(rows):
    X, P, _ = rows
    wide = AdversarialClassifier("cs").fit(X, np.insert(P, 1, 0.0, axis=1))
    assert wide.classes_.tolist() == [0, 1, 2, 3]
    assert wide.certificate_.converged


def test_calibration_learns_from_the_expected_log_loss(rows):
    random = np.random.default_rng(8)
    X = random.normal(size=(3000, 1))
    truth = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    model = AdversarialClassifier("zero_one", calibrate="vector", C=10.0).fit(X, np.column_stack([1.0 - truth, truth]))
    assert np.abs(model.predict_proba(X)[:, 1] - truth).max() < 0.05


def test_estimated_distributions_of_annotators_are_labels(rows):
    X, P, _ = rows
    random, truth = np.random.default_rng(3), P.argmax(axis=1)
    said = np.where(random.random((N, 5)) < 0.7, truth[:, None], random.integers(0, K, (N, 5)))
    crowd = dawid_skene(pd.DataFrame(said).map("abc".__getitem__))
    model = AdversarialClassifier("zero_one").fit(X, crowd.probabilities)
    assert model.classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([[0.5, 0.6, 0.1]], "y, row 2, sums to 1.2, and probabilities sum to 1: divide each row by its sum"),
        ([[1.5, -0.5, 0.0]], r"y, row 2, column 2, is -0.5; probabilities and votes are finite numbers of at least 0"),
        ([[np.nan, 0.5, 0.5]], "y, row 2, column 1, is nan"),
        ([[np.inf, 0.5, 0.5]], "y, row 2, column 1, is inf"),
        ([[0.0, 0.0, 0.0]], "y, row 2, holds no vote and no probability"),
        ([["a", "b", "c"]], "y of several columns must hold numbers"),
    ],
)
def test_numbers_that_are_no_distribution_are_refused_by_one_line(rows, y, said):
    P = [[0.5, 0.25, 0.25], *y, *rows[1][2:].tolist()]
    for model in (AdversarialClassifier(), CostSensitiveClassifier(), AbstainingClassifier()):
        with pytest.raises(DataError, match=said):
            model.fit(rows[0], P)


def test_what_cannot_count_a_row_for_several_classes_says_so(rows, tmp_path):
    X, P, _ = rows
    np.save(tmp_path / "rows.npy", X)
    blocks = BlockRows(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    for model, X_given, error, said in (
        (AdversarialClassifier("weighted", loss_options={"weight": "column"}), X, IncompatibleError, "loss.weight=column needs one label"),
        (AdversarialClassifier(kernel="precomputed"), X @ X.T, IncompatibleError, "features=precomputed needs one label a row"),
        (ChainClassifier(), X, IncompatibleError, "loss=chain needs one label a row"),
        (AdversarialClassifier(), blocks, IncompatibleError, "rows in blocks needs one label a row"),
        (PerceptronClassifier(), X, ConfigError, "cannot weigh them"),
    ):
        with pytest.raises(error, match=said):
            model.fit(X_given, P)
    with pytest.raises(IncompatibleError, match="both say what predictions cost"):
        CostSensitiveClassifier().fit(rows[0], P, costs=P)
