"""Which problem the estimator solves: held against an independent quadratic program on real data, and what must not change it."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from support import reference
from support.registered import plain_losses, with_kinks

from advcli import AdversarialClassifier
from advcli.losses import loss_class, make_loss

TOL = 1e-7


LOSSES = [name for name in with_kinks(plain_losses()) if name != "weighted"]


@pytest.fixture(scope="module")
def some_iris():
    X, y = load_iris(return_X_y=True)
    rows = np.random.default_rng(0).permutation(150)[:45]
    return X[rows], y[rows]


@pytest.mark.parametrize("loss", LOSSES)
def test_without_intercept_it_solves_exactly_the_stated_problem(loss, some_iris):
    X, y = some_iris
    for C in (0.1, 10.0):
        model = AdversarialClassifier(loss, C=C, tol=TOL, fit_intercept=False).fit(X, y)
        expected = reference.solve_problem(loss, X, y, 1.0 / (C * len(y)), 3)
        assert model.theta_.shape == (4, 3)
        assert model.certificate_.primal == pytest.approx(expected["primal"], rel=1e-6)
        assert model.certificate_.dual == pytest.approx(expected["primal"], rel=1e-6)
        # the certificate is in the stated scaling: mean loss + lambda/2 |theta|^2
        value = make_loss(loss, 3).oracle_reference(X @ model.theta_, y).value.mean()
        by_hand = value + 0.5 / (C * len(y)) * (model.theta_**2).sum()
        assert model.certificate_.primal == pytest.approx(by_hand, rel=1e-12)
        # the objective is strongly convex in theta: the parameters agree too, for llw and the games up to nothing at all
        scale = np.abs(expected["parameters"]).max()
        room = np.sqrt(2 * 2e-6 * expected["primal"] * C * len(y))
        assert np.abs(model.theta_ - expected["parameters"]).max() <= room + 1e-6 * scale


@pytest.mark.parametrize("loss", ["zero_one", "cs"])
def test_the_intercept_is_a_constant_feature_regularised_like_any_other(loss, some_iris):
    X, y = some_iris
    model = AdversarialClassifier(loss, tol=TOL).fit(X, y)
    expected = reference.solve_problem(loss, np.column_stack([X, np.ones(len(y))]), y, 1.0 / len(y), 3)
    assert model.theta_.shape == (5, 3)
    assert model.certificate_.primal == pytest.approx(expected["primal"], rel=1e-6)


def test_lambda_and_C_are_one_thing(some_iris):
    X, y = some_iris
    one = AdversarialClassifier(C=4.0, tol=TOL).fit(X, y)
    other = AdversarialClassifier(C=123.0, lam=1.0 / (4.0 * len(y)), tol=TOL).fit(X, y)
    assert np.array_equal(one.theta_, other.theta_)
    assert one.certificate_.primal == other.certificate_.primal


@pytest.mark.parametrize("loss", ["zero_one", "ww", "llw"])
def test_sample_weight_counts_rows(loss, some_iris):
    X, y = some_iris
    weights = np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)
    weights[:3] = 1.0
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted = AdversarialClassifier(loss, tol=TOL).fit(X, y, sample_weight=weights)
    repeated = AdversarialClassifier(loss, tol=TOL).fit(X[rows], y[rows])
    assert np.array_equal(weighted.theta_, repeated.theta_)
    assert weighted.certificate_.primal == repeated.certificate_.primal


def test_fractional_sample_weight_against_the_reference(some_iris):
    X, y = some_iris
    weights = np.random.default_rng(1).uniform(0.0, 3.0, size=len(y))
    model = AdversarialClassifier(C=2.0, tol=TOL, fit_intercept=False).fit(X, y, sample_weight=weights)
    expected = reference.solve_problem("zero_one", X, y, 1.0 / (2.0 * weights.sum()), 3, sample_weight=weights)
    assert model.certificate_.primal == pytest.approx(expected["primal"], rel=1e-6)


def test_sample_weight_scale_is_that_of_C(some_iris):
    """All weights times 5 is C times 5 in the summed form; lambda = 1/(n C) and n is their sum, so nothing moves at one C."""
    X, y = some_iris
    one = AdversarialClassifier(tol=TOL).fit(X, y)
    other = AdversarialClassifier(C=0.2, tol=TOL).fit(X, y, sample_weight=np.full(len(y), 5.0))
    assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-6)


def test_weights_by_class_and_by_row_multiply_the_loss_matrix(some_iris):
    """S_wL(f) = w S_L(f / w): not the same as counting the row w times."""
    X, y = some_iris
    by_class = [0.5, 1.0, 2.5]
    lam = 1.0 / len(y)
    for base in ("zero_one", "absolute"):
        options = {"base": base, "weight": by_class}
        model = AdversarialClassifier("weighted", loss_options=options, tol=TOL, fit_intercept=False).fit(X, y)
        expected = reference.solve_problem(base, X, y, lam, 3, cost_weight=np.array(by_class)[y])
        assert model.certificate_.primal == pytest.approx(expected["primal"], rel=1e-6)
    rows = np.random.default_rng(3).uniform(0.3, 3.0, size=len(y))
    model = AdversarialClassifier("weighted", loss_options={"weight": "column"}, tol=TOL, fit_intercept=False)
    model.fit(X, y, sample_weight=rows)
    expected = reference.solve_problem("zero_one", X, y, lam, 3, cost_weight=rows)
    assert model.certificate_.primal == pytest.approx(expected["primal"], rel=1e-6)


def test_gaps_of_a_negative_objective_are_relative_to_the_dual(some_iris):
    """A matrix that rewards: the objective lies below 0, so the gap is relative to |dual|, which is the larger of the two."""
    X, y = some_iris
    matrix = [[-5.0, 1.0, 1.0], [1.0, -5.0, 1.0], [1.0, 1.0, -5.0]]
    for solver, tol in (("dual", 1e-2), ("dual", 1e-6), ("lbfgs", 1e-3)):
        certificate = AdversarialClassifier(matrix, tol=tol, solver=solver).fit(X, y).certificate_
        assert certificate.converged
        assert certificate.dual < certificate.primal < 0
        assert 0 < certificate.relative_gap == certificate.gap / -certificate.dual <= tol


@pytest.mark.parametrize("bad", ["negative", "zero", "short"])
def test_bad_sample_weight(bad, some_iris):
    X, y = some_iris
    weights = {"negative": np.full(len(y), -1.0), "zero": np.zeros(len(y)), "short": np.ones(3)}[bad]
    with pytest.raises(ValueError, match="weight"):
        AdversarialClassifier().fit(X, y, sample_weight=weights)


# ---- what must not change the answer --------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", LOSSES)
def test_row_order_does_not_matter(loss, some_iris):
    X, y = some_iris
    order = np.random.default_rng(2).permutation(len(y))
    one, other = AdversarialClassifier(loss).fit(X, y), AdversarialClassifier(loss).fit(X[order], y[order])
    assert np.array_equal(one.theta_, other.theta_)


@pytest.mark.parametrize("loss", [name for name in LOSSES if not loss_class(name).needs_order])
def test_relabelling_classes_permutes_the_answer(loss, some_iris):
    X, y = some_iris
    new = np.array([2, 0, 1])
    one, other = AdversarialClassifier(loss, tol=TOL).fit(X, y), AdversarialClassifier(loss, tol=TOL).fit(X, new[y])
    assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-6)
    room = np.sqrt(4 * 2 * TOL * one.certificate_.primal * len(y))  # strong convexity
    assert np.abs(other.theta_[:, new] - one.theta_).max() <= room


@pytest.mark.parametrize("loss", [name for name in LOSSES if loss_class(name).needs_order and name != "pinball"])
def test_reversing_the_order_of_classes_reverses_the_answer(loss, some_iris):
    X, y = some_iris
    one, other = AdversarialClassifier(loss, tol=TOL).fit(X, y), AdversarialClassifier(loss, tol=TOL).fit(X, 2 - y)
    assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-6)
    room = np.sqrt(4 * 2 * TOL * one.certificate_.primal * len(y))
    assert np.abs(other.theta_[:, ::-1] - one.theta_).max() <= room


@pytest.mark.parametrize("loss", ["zero_one", "absolute", "ww"])
def test_feature_scaling_is_a_scaling_of_C(loss, some_iris):
    """X times a with C over a^2 is the same problem in theta times a."""
    X, y = some_iris
    one = AdversarialClassifier(loss, C=2.0, tol=TOL, fit_intercept=False).fit(X, y)
    other = AdversarialClassifier(loss, C=2.0 / 25.0, tol=TOL, fit_intercept=False).fit(5.0 * X, y)
    assert other.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-6)
    room = np.sqrt(4 * 2 * TOL * one.certificate_.primal * 2.0 * len(y))
    assert np.abs(5.0 * other.theta_ - one.theta_).max() <= room


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_on_all_potentials_costs_ridge_only(loss, some_iris):
    """Every surrogate here ignores a common level of the scores, so the weights of the classes sum to zero at the optimum."""
    X, y = some_iris
    model = AdversarialClassifier(loss, tol=TOL, solver="dual" if loss != "abstain" else "auto").fit(X, y)
    assert np.abs(model.theta_.sum(axis=1)).max() <= 1e-6 * max(1.0, np.abs(model.theta_).max())


# ---- warm starts ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("solver", ["auto", "dual", "newton"])
def test_start_continues_from_another_C(solver, some_iris):
    X, y = some_iris
    previous = None
    for C in (0.1, 1.0, 10.0, 1.0):
        model = AdversarialClassifier(C=C, tol=1e-6, solver=solver)
        warm = model.fit(X, y, start=previous)
        cold = AdversarialClassifier(C=C, tol=1e-6, solver=solver).fit(X, y)
        assert warm.certificate_.converged
        assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)
        previous = warm
    same = AdversarialClassifier(C=1.0, tol=1e-5, solver=solver).fit(X, y, start=previous)
    assert same.certificate_.passes <= 2


# ---- real data ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("load", "accuracy"), [(load_iris, 0.9), (load_wine, 0.95), (load_breast_cancer, 0.95)])
def test_real_data(loss, load, accuracy):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for C in (2.0**-4, 2.0**6, 2.0**14):
        options = {"K": min(2, len(set(y)) - 1)} if loss == "top_k" else None
        model = AdversarialClassifier(loss, C=C, loss_options=options).fit(X, y)
        assert model.certificate_.converged, model.certificate_
        assert 0 <= model.certificate_.relative_gap <= 1e-3
    if loss == "top_k" and options["K"] > 1:  # the label is one of K; which of them has the largest score is no matter of this loss
        F = model.decision_function(X)
        assert ((F[np.arange(len(y)), y][:, None] < F).sum(axis=1) < options["K"]).mean() >= accuracy
    elif not loss_class(loss).needs_order and loss not in ("llw", "abstain"):
        assert model.score(X, y) >= accuracy
