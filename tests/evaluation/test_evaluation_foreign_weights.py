"""`advcli certify`: weights of other programs, whose distance from the optimum is known from elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from advcli import SurrogateClassifier
from advcli.cli import main
from advcli.core.errors import ConfigError
from advcli.core.row_blocks import BlockRows
from advcli.evaluation.foreign_weights import judge_weights


def rows(load=load_wine) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(return_X_y=True)
    # as the program standardises: n - 1 in the denominator
    return StandardScaler().fit_transform(X) * np.sqrt((len(X) - 1) / len(X)), y


def crammer_singer(C: float = 1.0, intercept: bool = True) -> LinearSVC:
    return LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=intercept, intercept_scaling=1, tol=1e-9, max_iter=1_000_000)


def objective(X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: np.ndarray | float, C: float) -> float:
    """Return 1/2 (|coef|^2 + |intercept|^2) + C sum of the largest margin violations, over n C."""
    F = X @ coef.T + intercept
    margins = 1.0 + F - F[np.arange(len(y)), y][:, None]
    margins[np.arange(len(y)), y] = 0.0
    return float(0.5 * ((coef**2).sum() + (np.asarray(intercept) ** 2).sum()) / (len(y) * C) + margins.max(axis=1).mean())


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_liblinears_weights_are_optimal_and_moved_ones_are_not(C: float, intercept: bool) -> None:
    X, y = rows()
    svc = crammer_singer(C, intercept).fit(X, y)
    bias = svc.intercept_ if intercept else None
    estimator = SurrogateClassifier("cs", C=C, tol=1e-8)
    judgement = judge_weights(estimator, X, y, svc.coef_, bias)
    assert judgement.primal == pytest.approx(objective(X, y, svc.coef_, 0.0 if bias is None else bias, C), rel=1e-12)
    assert 0 <= judgement.relative_gap < 1e-4
    assert judgement.dual <= judgement.best <= judgement.primal

    moved = svc.coef_ + 0.03 * np.random.default_rng(0).normal(size=svc.coef_.shape)
    worse = judge_weights(estimator, X, y, moved, bias)
    true = objective(X, y, moved, 0.0 if bias is None else bias, C)
    # the optimum is known to one part in 1e8 from our own fit
    assert worse.gap == pytest.approx(true - judgement.best, abs=2e-8 * judgement.best)
    assert worse.excess == pytest.approx(true - judgement.best, abs=2e-8 * judgement.best)
    assert worse.gap > 100 * judgement.gap
    assert not hasattr(estimator, "theta_")


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_grows_from_good_weights_where_our_own_fit_is_loose(seed: int) -> None:
    X, y = rows()
    exact = SurrogateClassifier("zero_one", tol=1e-10).fit(X, y)
    # the dual value is near the optimum long before the primal one: at a gap of 0.3 nothing may be left to grow
    loose = SurrogateClassifier("zero_one", tol=0.9, solver="dual", random_state=seed)
    judgement = judge_weights(loose, X, y, exact.theta_[:-1].T, exact.theta_[-1])
    assert judgement.certificate.dual < judgement.dual <= exact.certificate_.primal
    assert judgement.best == judgement.primal == pytest.approx(exact.certificate_.primal, rel=1e-12)


def test_two_classes_may_have_one_row() -> None:
    """LinearSVC minimises |w|^2/2 + C sum; the rows -w/2 and w/2 have half of that norm, so its C is twice ours."""
    X, y = rows(load_breast_cancer)
    svc = LinearSVC(loss="hinge", C=0.2, intercept_scaling=1, tol=1e-9, max_iter=1_000_000).fit(X, y)
    estimator = SurrogateClassifier("cs", C=0.1, tol=1e-7)
    judgement = judge_weights(estimator, X, y, svc.coef_, svc.intercept_)
    assert judgement.relative_gap < 1e-3
    two = judge_weights(
        estimator, sparse.csr_array(X), y, np.vstack([-svc.coef_, svc.coef_]) / 2, np.array([-0.5, 0.5]) * svc.intercept_[0]
    )
    assert two.primal == pytest.approx(judgement.primal, rel=1e-12)


def test_labels_order_weights_and_costs() -> None:
    X, y = rows()
    names = np.array(["b", "c", "a"])[y]
    random = np.random.default_rng(1)
    coef, bias, s = random.normal(size=(3, X.shape[1])), random.normal(size=3), random.integers(0, 3, len(y))
    estimator = SurrogateClassifier("cs", C=1.0)
    straight = judge_weights(estimator, X, y, coef, bias, sample_weight=s)
    renamed = judge_weights(estimator, X, names, coef, bias, classes=["b", "c", "a"], sample_weight=s)
    repeated = judge_weights(estimator, np.repeat(X, s, axis=0), np.repeat(y, s), coef, bias)
    assert straight.primal == pytest.approx(renamed.primal, rel=1e-12)
    assert straight.primal == pytest.approx(repeated.primal, rel=1e-12)
    assert straight.dual == pytest.approx(repeated.dual, rel=1e-9)
    doubled = SurrogateClassifier("weighted", loss_options={"base": "zero_one", "weight": [1.0, 2.0, 3.0]}, C=1.0)
    judgement = judge_weights(doubled, X, y, coef, bias)
    assert judgement.gap > 0
    # w S(f / w) with the zero-one game by its formula
    w = np.array([1.0, 2.0, 3.0])[y]
    F = (X @ coef.T + bias) / w[:, None]
    prefixes = (np.cumsum(-np.sort(-F, axis=1), axis=1) - 1.0) / np.arange(1, 4)
    losses = w * (1.0 + prefixes.max(axis=1) - F[np.arange(len(y)), y])
    ridge = 0.5 * ((coef**2).sum() + (bias**2).sum()) / len(y)
    assert judgement.primal == pytest.approx(ridge + losses.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("coef", "intercept", "classes", "message"),
    [
        (np.zeros((3, 4)), None, None, r"coef has the shape \(3, 4\); 3 classes and 13 features need \(3, 13\)"),
        (np.zeros((1, 13)), None, None, r"coef has the shape \(1, 13\)"),
        (np.zeros((3, 13)), np.zeros(2), None, r"intercept has the shape \(2,\)"),
        (np.full((3, 13), np.nan), None, None, "not finite"),
        (np.zeros((3, 13)), None, [0, 1, 5], "classes of the weights are 0, 1, 5; the classes of the data are 0, 1, 2"),
    ],
)
def test_weights_that_do_not_fit_are_refused(coef, intercept, classes, message) -> None:
    with pytest.raises(ConfigError, match=message):
        judge_weights(SurrogateClassifier("cs"), *rows(), coef, intercept, classes)


def test_other_features_are_refused() -> None:
    with pytest.raises(ConfigError, match="features=linear"):
        judge_weights(SurrogateClassifier("cs", features="rbf"), *rows(), np.zeros((3, 13)))


def test_a_column_of_weights_counts_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = rows()
    random = np.random.default_rng(2)
    coef, bias, s = random.normal(size=(3, X.shape[1])), random.normal(size=3), random.integers(1, 4, len(y))
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(times=s, label=y)
    table.to_csv("wine.csv", index=False)
    np.savez("weights.npz", coef=coef, intercept=bias)
    words = ["dataset=csv", "dataset.path=wine.csv", "dataset.target=label", "dataset.weight=times", "protocol.standardise=none"]
    assert main(["certify", "model=weights.npz", "loss=cs", "hyper.C=1", *words]) == 0
    printed = capfd.readouterr().out.splitlines()[1]
    wanted = objective(np.repeat(X, s, axis=0), np.repeat(y, s), coef, bias, 1.0)
    assert float(printed.rpartition(" ")[2]) == pytest.approx(wanted, rel=1e-7)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = rows()
    svc = crammer_singer().fit(X, y)
    turned = [2, 0, 1]
    np.savez("weights.npz", coef=svc.coef_[turned], intercept=svc.intercept_[turned], classes=np.array(["class_2", "class_0", "class_1"]))
    words = ["certify", "model=weights.npz", "dataset=wine", "loss=cs", "hyper.C=1", "solver.tol=1e-6"]
    assert main(words) == 0
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0] == "wine cs linear: 178 rows, 13 features standardised, 3 classes; C = 1, with a regularised intercept"
    assert lines[1] == f"objective of the weights: {objective(X, y, svc.coef_, svc.intercept_, 1.0):.8g}"
    assert float(lines[3].rpartition(" ")[2]) < 1e-4

    raw, _ = load_wine(return_X_y=True)
    plain = crammer_singer(1e-6, intercept=False).fit(raw, y)
    np.savez("raw.npz", coef=plain.coef_)
    assert (
        main(["certify", "model=raw.npz", "dataset=wine", "loss=cs", "hyper.C=1e-6", "protocol.standardise=none", "solver.tol=1e-6"]) == 0
    )
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].endswith("13 features as they are, 3 classes; C = 1e-06, without an intercept")
    assert float(lines[3].rpartition(" ")[2]) < 1e-3

    np.savez("bare.npz", weights=svc.coef_)
    np.savez("more.npz", coef=svc.coef_, intercepts=svc.intercept_)
    Path("text.npz").write_text("nothing")
    os.mkfifo("pipe.npz")
    np.savez("objects.npz", coef=np.array([[{}]], dtype=object))  # a pickle, which could do anything
    for model, message in (
        ("", "advcli certify needs model=FILE.npz"),
        ("model=none.npz", "cannot read"),
        ("model=bare.npz", "holds no array coef"),
        ("model=more.npz", "holds an array intercepts; did you mean intercept"),
        ("model=text.npz", "is not an npz file"),
        ("model=pipe.npz", "it is a folder, a pipe or a device, not a file"),
        ("model=objects.npz", "is not an npz file without pickle (coef.npy holds neither numbers nor text)"),
    ):
        assert main(["certify", *([model] if model else []), "dataset=wine", "loss=cs"]) == 2
        assert message in capfd.readouterr().err
    assert main(["certify", "model=weights.npz", "dataset=wine", "loss=perceptron"]) == 2
    assert "no surrogate with a dual" in capfd.readouterr().err


def test_rows_in_blocks_are_judged_as_rows_in_memory_are() -> None:
    X, y = rows()
    X = X.astype(np.float32).astype(np.float64)  # what is stored
    fitted = SurrogateClassifier("cs", C=0.01, tol=1e-6).fit(X, y)
    coef = fitted.theta_[:-1].T + 0.01
    estimator = SurrogateClassifier("cs", C=0.01, tol=1e-5)
    for bias in (fitted.theta_[-1], None):
        judgement, usual = (judge_weights(estimator, each, y, coef, bias) for each in (BlockRows(X.astype(np.float32)), X))
        assert judgement.primal == pytest.approx(usual.primal, rel=1e-12)
        assert judgement.certificate.solver == "dual_blocks"
        assert judgement.dual <= usual.best
        assert judgement.dual == pytest.approx(usual.dual, rel=2e-5)


@pytest.mark.filterwarnings("ignore::advcli.core.errors.NotConvergedWarning")
def test_weights_that_are_the_optimum_have_its_dual_point() -> None:
    """Where our own fit was stopped, the subgradients at the given weights give the bound; at tiny C they are the dual optimum."""
    X, y = rows()
    X = X.astype(np.float32)
    estimator = SurrogateClassifier("zero_one", C=1e-5, max_passes=1)
    best = SurrogateClassifier("zero_one", C=1e-5, tol=1e-9).fit(X.astype(np.float64), y)
    judgement = judge_weights(estimator, BlockRows(X), y, best.theta_[:-1].T, best.theta_[-1])
    assert judgement.relative_gap < 1e-2 < judgement.certificate.relative_gap
