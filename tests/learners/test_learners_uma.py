"""UMA and the perceptrons: the compiled kernels against plain Python, the propositions, invariants, scikit-learn's checks, refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support import methods_reference as reference
from support.instruction_sets import levels

from advcli.core.compiled import Kernels
from advcli.core.errors import ConfigError
from advcli.learners.uma import RULES, STEPS, PerceptronClassifier, UMAClassifier


def noisy_problem(seed, n=120, d=6, k=4):
    """Random rows, labels that depend on them, a random well-conditioned C, and labels drawn from it."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    truth = np.argmax(X @ random.standard_normal((d, k)), axis=1)
    C = random.random((k, k)) + 2.0 * np.eye(k)
    C /= C.sum(axis=0)
    noisy = np.array([random.choice(k, p=C[:, label]) for label in truth])
    return X, truth, noisy, C


# ---- the kernels --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("step", list(STEPS))
@pytest.mark.parametrize("rule", list(RULES))
def test_compiled_learning_is_the_reference(rule, step, sparse):
    for seed in range(3):
        X, _, y, C = noisy_problem(seed)
        # not from W = 0: there a uniform step keeps classes tied for ever, and rounding would decide
        W = 0.1 * np.random.default_rng(seed + 100).standard_normal((4, 6))
        for unit in (False, True):
            model = UMAClassifier(C, rule=rule, step=step, unit_step=unit, max_updates=40, n_classes=4, random_state=seed)
            model.name_classes(np.arange(4))
            got = model.learn_from(W, sp.csr_array(X) if sparse else X, y)
            expected, updates, stopped = reference.uma(X, y, C, rule=rule, step=step, unit=unit, limit=40, seed=seed, W=W)
            np.testing.assert_allclose(got, expected, atol=1e-10)
            assert (model.n_updates_, model.stopped_) == (updates, stopped)


@pytest.mark.parametrize("level", levels())
def test_every_instruction_set_learns_the_same(level, monkeypatch):
    monkeypatch.setattr("advcli.learners.uma.kernels", Kernels(level))
    for d in (3, 67):  # below and above a whole block of vectors
        X, _, y, C = noisy_problem(5, d=d)
        model = UMAClassifier(C, max_updates=60).fit(X, y)
        np.testing.assert_allclose(model.coef_, reference.uma(X, y, C, limit=60)[0], atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_wide_sparse_rows_follow_the_reference(seed):
    """Few numbers a row in many columns: sums are corrected by the rows that moved instead of formed anew."""
    random = np.random.default_rng(seed)
    X = np.where(random.random((150, 300)) < 0.01, random.random((150, 300)), 0.0)
    X[:, :4] += np.eye(4)[np.arange(150) % 4] * (1 + random.random((150, 4)))
    C = noisy_problem(seed)[3]
    y = np.array([random.choice(4, p=C[:, label]) for label in np.arange(150) % 4])
    for limit in (30, 200):
        model = UMAClassifier(C, max_updates=limit).fit(sp.csr_array(X), y)
        expected, updates, stopped = reference.uma(X, y, C, limit=limit)
        np.testing.assert_allclose(model.coef_, expected, atol=1e-10)
        assert (model.n_updates_, model.stopped_) == (updates, stopped)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("step", list(STEPS))
def test_online_learning_is_the_reference(step, sparse):
    X, truth, _, _ = noisy_problem(1)
    model = PerceptronClassifier(step=step, epochs=7, random_state=3).fit(sp.csr_array(X) if sparse else X, truth)
    expected, epochs, updates = reference.online(X, truth, 4, step=step, epochs=7, seed=3)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-9)
    assert (model.n_iter_, model.n_updates_) == (epochs, updates)


def test_a_margin_above_zero_follows_the_reference_and_does_not_start_from_zero():
    X, _, y, C = noisy_problem(2)
    W = np.random.default_rng(0).standard_normal((4, 6))
    model = UMAClassifier(C, alpha=0.05, max_updates=15, n_classes=4)
    model.name_classes(np.arange(4))
    np.testing.assert_allclose(model.learn_from(W, X, y), reference.uma(X, y, C, alpha=0.05, limit=15, W=W)[0], atol=1e-10)
    stuck = UMAClassifier(C, alpha=0.05).fit(X, y)
    assert stuck.n_updates_ == 0
    assert not stuck.coef_.any()


# ---- what the paper proves ----------------------------------------------------------------------------------------------
def exact_proportions(seed, k=4):
    """Every point ten times, its labels in the exact proportions of a C in tenths: the mean over the noise, without draws."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((30, 5))
    truth = np.argmax(X @ random.standard_normal((5, k)), axis=1)
    C = np.array([[7, 1, 0, 2], [1, 8, 3, 0], [2, 0, 6, 1], [0, 1, 1, 7]]) / 10.0
    labels = np.concatenate([np.repeat(np.arange(k), np.round(10 * C[:, label]).astype(int)) for label in truth])
    return X, truth, C, np.repeat(X, 10, axis=0), labels


def true_sums(X, truth, member, k):
    """mu_q^p = mean of x 1[t(x) = q] 1[x in A_p] in [p, q] (eq. 10)."""
    return np.array([[X[(truth == q) & member[:, p]].sum(axis=0) / len(X) for q in range(k)] for p in range(k)])


@pytest.mark.parametrize("seed", range(5))
def test_propositions_1_and_2_update_vectors_are_unbiased(seed):
    X, truth, C, X_noisy, labels = exact_proportions(seed)
    W = np.random.default_rng(seed + 50).standard_normal((4, 5))
    mu = true_sums(X, truth, reference.members(X @ W.T, 0.0), 4)
    np.testing.assert_allclose(reference.update_vectors(X_noisy, labels, C, X_noisy @ W.T), mu, atol=1e-14)
    # eq. 13: such a point is predicted as p
    for p in range(4):
        for q in range(4):
            assert ((W[p] - W) @ mu[p, q] >= -1e-12).all()


def test_the_printed_orientation_is_biased():
    X, truth, C, X_noisy, labels = exact_proportions(0)
    W = np.random.default_rng(50).standard_normal((4, 5))
    mu = true_sums(X, truth, reference.members(X @ W.T, 0.0), 4)
    transposed = reference.update_vectors(X_noisy, labels, np.ascontiguousarray(C.T / C.T.sum(axis=0)), X_noisy @ W.T)
    assert np.abs(transposed - mu).max() > 0.1 * np.abs(mu).max()


def test_update_vectors_tend_to_the_true_sums_over_draws():
    X, truth, _, C = noisy_problem(3, n=60, d=3)
    W = np.random.default_rng(9).standard_normal((4, 3))
    mu = true_sums(X, truth, reference.members(X @ W.T, 0.0), 4)
    random = np.random.default_rng(4)
    cumulative = np.cumsum(C, axis=0)
    labels = (np.minimum((random.random(60) > cumulative[:, truth]).sum(axis=0), 3) for _ in range(2000))
    draws = np.array([reference.update_vectors(X, y, C, X @ W.T) for y in labels])
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    z = (draws.mean(axis=0) - mu)[error > 1e-12] / error[error > 1e-12]
    assert abs(z.mean()) < 0.5
    assert 0.5 < z.std() < 1.5
    assert np.abs(z).max() < 5


def separable(seed, margin=0.1, k=4, n=300):
    """Rows of norm 1 and weight vectors W with |W|_F = 1 whose scores separate them by ``margin``."""
    random = np.random.default_rng(seed)
    W = random.standard_normal((k, 3))
    W /= np.linalg.norm(W)
    X = random.standard_normal((20 * n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    ranked = np.sort(X @ W.T, axis=1)
    X = X[ranked[:, -1] - ranked[:, -2] > margin][:n]
    return X, np.argmax(X @ W.T, axis=1)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("step", ["perceptron", "uniform", "worst"])
def test_mistake_bound_of_theorem_3_1(step, seed):
    X, y = separable(seed)
    for classifier in (
        UMAClassifier(step=step, unit_step=True, n_classes=4, max_updates=10_000),
        PerceptronClassifier(step=step, n_classes=4),
    ):
        model = classifier.fit(X, y)
        assert model.n_updates_ <= 2 / 0.1**2
        assert model.predict(X).tolist() == y.tolist()


def test_raw_update_vectors_miss_the_bound_and_unit_ones_do_not():
    # 999 points of one class beside one of the other: the mean of the latter is a thousandth long
    X = np.vstack([np.tile([1.0, 0.0], (999, 1)), [[0.6, 0.8]]])
    y = np.array([0] * 999 + [1])
    # W* = (v, -v)/sqrt(2) with v between x_0 and -x_1 has margin sqrt(2 (1 - 0.6) / 2), so the bound 2/theta^2 is 5
    assert UMAClassifier(unit_step=True).fit(X, y).n_updates_ <= 5
    raw = UMAClassifier().fit(X, y)
    assert raw.n_updates_ > 20 * 5
    assert raw.stopped_ == "tol"


# ---- invariants ---------------------------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), rule=st.sampled_from(list(RULES)), step=st.sampled_from(list(STEPS)), k=st.integers(2, 6))
def test_weight_vectors_sum_to_zero(seed, rule, step, k):
    X, _, y, C = noisy_problem(seed, n=40, k=k)
    model = UMAClassifier(C, rule=rule, step=step, max_updates=50, n_classes=k, random_state=seed).fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-10 * max(1.0, np.abs(model.coef_).max()))
    online = PerceptronClassifier(step=step, epochs=3, n_classes=k).fit(X, y)
    np.testing.assert_allclose(online.coef_.sum(axis=0), 0.0, atol=1e-10 * max(1.0, np.abs(online.coef_).max()))


def batch_perceptron(X, y, k, updates):
    """Average the misclassified rows of the pair of classes with the longest average, and take one perceptron step on it."""
    W = np.zeros((k, X.shape[1]))
    for _ in range(updates):
        F = X @ W.T
        best, chosen = -1.0, None
        for p in range(k):
            wrong = F[:, p] == F.max(axis=1)
            for q in range(k):
                mean = X[wrong & (y == q)].sum(axis=0) / len(y)
                if p != q and np.linalg.norm(mean) > max(best, 1e-12):
                    best, chosen = np.linalg.norm(mean), (p, q, mean)
        if chosen is None:
            break
        p, q, mean = chosen
        W[q] += mean
        W[p] -= mean
    return W


@pytest.mark.parametrize("confusion", [None, "identity", np.eye(4)])
def test_without_confusion_it_is_the_batch_perceptron(confusion):
    X, truth, _, _ = noisy_problem(8)
    np.testing.assert_allclose(UMAClassifier(confusion, max_updates=80).fit(X, truth).coef_, batch_perceptron(X, truth, 4, 80), atol=1e-13)


@pytest.mark.parametrize("rule", ["error", "confusion"])
@pytest.mark.parametrize("seed", range(4))
def test_permuted_classes_permute_the_answer(rule, seed):
    X, _, y, C = noisy_problem(seed)
    permutation = np.random.default_rng(seed).permutation(4)
    C_permuted = np.empty_like(C)
    C_permuted[np.ix_(permutation, permutation)] = C
    # from W = 0 all classes tie, and the first pair in order is taken
    W = np.random.default_rng(seed).standard_normal((4, 6))
    W_permuted = np.empty_like(W)
    W_permuted[permutation] = W
    coefs = []
    for matrix, start, labels in ((C, W, y), (C_permuted, W_permuted, permutation[y])):
        model = UMAClassifier(matrix, rule=rule, max_updates=60)
        model.name_classes(np.arange(4))
        coefs.append(model.learn_from(start, X, labels))
    np.testing.assert_allclose(coefs[1][permutation], coefs[0], atol=1e-10)


def test_weights_are_repetitions():
    X, _, y, C = noisy_problem(6)
    weights = np.random.default_rng(0).integers(0, 4, size=len(y))
    weighted = UMAClassifier(C, max_updates=50).fit(X, y, sample_weight=weights)
    repeated = UMAClassifier(C, max_updates=50).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-10)


def test_known_confusion_undoes_the_noise_and_the_printed_orientation_does_not():
    errors = []
    for seed in range(4):
        X, truth = separable(seed, n=4000)
        C = np.full((4, 4), 0.1) + 0.6 * np.eye(4)
        C[0, 1], C[1, 1] = 0.5, 0.3  # half of class 1 carries the label of class 0
        random = np.random.default_rng(seed)
        noisy = np.array([random.choice(4, p=C[:, label]) for label in truth])
        matrices = (C, None, C.T / C.T.sum(axis=0))
        errors.append([np.mean(UMAClassifier(matrix, n_classes=4).fit(X, noisy).predict(X) != truth) for matrix in matrices])
    told, untold, transposed = np.mean(errors, axis=0)
    assert told < 0.08
    assert min(untold, transposed) > 0.2


def test_largest_update_and_prior_are_what_they_say():
    X, _, y, C = noisy_problem(7)
    model = UMAClassifier(C, max_updates=30).fit(X, y)
    Z = reference.update_vectors(X, y, C, X @ model.coef_.T)
    norms = np.linalg.norm(Z, axis=2)
    np.fill_diagonal(norms, 0.0)
    assert model.largest_update_ == pytest.approx(norms.max(), rel=1e-9)
    np.testing.assert_allclose(model.prior_, np.linalg.solve(C, np.bincount(y) / len(y)), atol=1e-12)


# ---- refusals -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rule": "eror"}, "error"),
        ({"step": "unform"}, "uniform"),
        ({"alpha": -1.0}, "alpha"),
        ({"tol": -1.0}, "tol"),
        ({"max_updates": 0}, "max_updates"),
        ({"max_updates": 1.5}, "whole"),
        ({"unit_step": "yes"}, "true or false"),
        ({"features": "rbf"}, "linear scores"),
        ({"confusion": np.eye(3)}, "shape"),
        ({"confusion": np.full((4, 4), 0.25)}, "condition number"),
        ({"confusion": 2 * np.eye(4)}, "sums to 2"),
    ],
)
def test_refusals(options, said):
    X, _, y, _ = noisy_problem(0)
    with pytest.raises(ConfigError, match=said):
        UMAClassifier(**options).fit(X, y)


def test_the_online_perceptron_refuses_weights():
    X, _, y, _ = noisy_problem(0)
    with pytest.raises(ConfigError, match="cannot weigh"):
        PerceptronClassifier().fit(X, y, sample_weight=np.arange(len(y)))
