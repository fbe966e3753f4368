"""Forward and backward correction: against a quadratic program from the definitions, unbiasedness, the identity."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from support import reference
from support.instruction_sets import levels

from advcli import AdversarialClassifier
from advcli.core.compiled import Kernels
from advcli.core.errors import ConfigError, NotConvergedWarning
from advcli.learners.correction import BackwardCorrectedClassifier, ForwardCorrectedClassifier
from advcli.losses import make_loss

BOTH = [ForwardCorrectedClassifier, BackwardCorrectedClassifier]
NOISE = np.array([[0.7, 0.1, 0.2], [0.2, 0.8, 0.1], [0.1, 0.1, 0.7]])


def problem(seed=0, n=30, d=2):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    return X, random.integers(0, 3, n)


def quadratic_program(X, y, C, lam, forward):
    """Least lambda/2 |Theta|^2 + mean corrected loss: A as the largest of its 2^k - 1 planes, Theta the weights that are regularised."""
    X = np.column_stack([X, np.ones(len(X))])
    (n, d), k = X.shape, len(C)
    inverse = np.linalg.inv(C)
    P = sp.block_diag([lam * sp.eye(d * k), sp.csc_array((n, n))], format="csc")
    linear = np.concatenate([np.zeros(d * k), np.full(n, 1.0 / n)])
    sides, rows = [], []
    for i in range(n):
        # forward: f = Theta'x, g = C'f, - f_y; backward: g = Theta'x, - (C^-1 e_y).g
        gain = np.eye(k)[y[i]] if forward else inverse[:, y[i]]
        linear[: d * k] -= np.outer(X[i], gain).ravel() / n
        for size in range(1, k + 1):
            for chosen in itertools.combinations(range(k), size):
                indicator = np.zeros(k)
                indicator[list(chosen)] = 1.0 / size
                weights = C @ indicator if forward else indicator
                row = np.zeros(d * k + n)
                row[: d * k] = np.outer(X[i], weights).ravel()
                row[d * k + i] = -1.0
                rows.append(row)
                sides.append(-(size - 1.0) / size)
    solution = reference._clarabel(P, linear, None, (sp.csc_array(np.array(rows)), np.array(sides)))
    z = np.asarray(solution.x)
    return z[: d * k].reshape(d, k), float(0.5 * z @ (P @ z) + linear @ z)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("cls", BOTH)
def test_fits_are_the_solutions_of_the_quadratic_program(cls, sparse):
    X, y = problem()
    model = cls(NOISE, lam=0.05, tol=1e-7, max_passes=100_000).fit(sp.csr_array(X) if sparse else X, y)
    theta, value = quadratic_program(X, y, NOISE, 0.05, cls.forward)
    assert model.certificate_.primal == pytest.approx(value, abs=1e-6)
    assert model.certificate_.dual == pytest.approx(value, abs=1e-6)
    weights_of_g = theta @ NOISE if cls.forward else theta
    np.testing.assert_allclose(model.coef_.T, weights_of_g, atol=5e-3)


@pytest.mark.parametrize("cls", BOTH)
def test_the_certificate_bounds_what_the_definition_says(cls):
    X, y = problem(3)
    model = cls(NOISE, lam=0.1, max_passes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model.fit(X, y)
    G = model.potentials(X)
    A = np.array([reference.zero_one_brute(g) for g in G])
    theta = model.coef_.T @ (np.linalg.inv(NOISE) if cls.forward else np.eye(3))
    primal = 0.05 * np.vdot(theta, theta) + np.mean(A - np.einsum("ij,ji->i", G, np.linalg.inv(NOISE)[:, y]))
    assert model.certificate_.primal == pytest.approx(primal, abs=1e-10)
    assert model.certificate_.dual <= quadratic_program(X, y, NOISE, 0.1, cls.forward)[1] + 1e-7


@pytest.mark.parametrize("cls", BOTH)
def test_without_noise_it_is_the_surrogate_itself(cls):
    X, y = problem(1)
    corrected = cls(lam=0.02, tol=1e-7, max_passes=100_000).fit(X, y)
    plain = AdversarialClassifier(lam=0.02, tol=1e-8).fit(X, y)
    assert corrected.certificate_.primal == pytest.approx(plain.certificate_.primal, abs=1e-6)
    np.testing.assert_allclose(corrected.coef_.T, plain.theta_, atol=5e-3)


def test_backward_loss_is_unbiased_at_any_scores():
    loss, inverse = make_loss("zero_one", 3), np.linalg.inv(NOISE)
    F = np.random.default_rng(0).standard_normal((20, 3))
    clean = np.array([loss.value(F, np.full(20, q)) for q in range(3)])  # [q, row]
    corrected = np.array([inverse[:, seen] @ clean for seen in range(3)])
    np.testing.assert_allclose(NOISE.T @ corrected, clean, atol=1e-12)


@pytest.mark.parametrize("cls", BOTH)
def test_correction_helps_against_class_conditional_noise(cls):
    random = np.random.default_rng(0)
    centres = np.array([[2.0, 0.0], [-1.0, 1.8], [-1.0, -1.8]])
    truth = random.integers(0, 3, 1500)
    X = centres[truth] + random.standard_normal((1500, 2))
    C = np.array([[0.45, 0.0, 0.3], [0.55, 1.0, 0.0], [0.0, 0.0, 0.7]])
    seen = np.array([random.choice(3, p=C[:, label]) for label in truth])
    plain = AdversarialClassifier(C=1.0).fit(X, seen)
    corrected = cls(C, C=1.0).fit(X, seen)
    assert np.mean(corrected.predict(X) == truth) > np.mean(plain.predict(X) == truth) + 0.05
    assert np.mean(corrected.predict(X) == truth) > 0.9


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_a_weight_and_a_row_given_as_often_are_one_fit_in_any_order(cls, stored):
    X, y = problem(2)
    count = np.random.default_rng(1).integers(0, 4, len(y))
    order = np.random.default_rng(2).permutation(count.sum())
    weighted = cls(NOISE).fit(stored(X), y, sample_weight=count)
    repeated = cls(NOISE).fit(stored(np.repeat(X, count, axis=0)[order]), np.repeat(y, count)[order])
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)


@pytest.mark.parametrize("level", levels())
def test_every_instruction_set_reaches_the_same_optimum(level, monkeypatch):
    monkeypatch.setattr("advcli.learners.correction.kernels", Kernels(level))
    X, y = problem(4)
    model = ForwardCorrectedClassifier(NOISE, lam=0.05, tol=1e-7, max_passes=100_000).fit(X, y)
    assert model.certificate_.primal == pytest.approx(quadratic_program(X, y, NOISE, 0.05, True)[1], abs=1e-6)


def test_a_limit_of_passes_is_said():
    X, y = problem(5)
    with pytest.warns(NotConvergedWarning, match="3 passes"):
        model = BackwardCorrectedClassifier(NOISE, C=1e4, tol=1e-9, max_passes=3).fit(X, y)
    assert not model.certificate_.converged


@pytest.mark.parametrize("options", [{"C": 0.0}, {"lam": -1.0}, {"tol": 0.0}, {"max_passes": 0}])
def test_refusals(options):
    X, y = problem()
    with pytest.raises(ConfigError, match=next(iter(options))):
        ForwardCorrectedClassifier(**options).fit(X, y)
