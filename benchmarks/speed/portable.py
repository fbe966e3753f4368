"""Processor time of fits by arithmetic=portable over that of fast, in turn: at most 2.5 each, at most 1.5 in the median."""

import time
import warnings

import numpy as np
from measure import Row, interleaved, standardised, training_part
from scipy import sparse
from sklearn.datasets import load_wine

import advcli
from advcli.core.arithmetic import using
from advcli.features.kernels import pca

LOSSES = ("zero_one", "absolute", "squared", "ww", "cs", "llw", "entropy", "top_k")
METHODS = ("at", "it", "red_th", "svorim", "svorex")
TREE = [("top", "a"), ("top", "b"), *(("a", str(c)) for c in range(5)), *(("b", str(c)) for c in range(5, 10))]


def drawn(n, d, k):
    """Return rows of overlapping classes and their labels."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d))
    return X, np.argmax(X @ random.normal(size=(d, k)) + 2.0 * random.normal(size=(n, k)), axis=1).astype(np.intp)


def fit(model, *data, **more):
    """Return a call that fits the model."""
    return lambda: model.fit(*data, **more)


def fits(options):
    """Yield (what, call) of every family that portable takes."""
    X, y = training_part("digits", options.size(None, 200))
    wine, kinds = standardised(load_wine().data), load_wine().target
    few, grades = drawn(options.size(2000, 100), 10, 5)
    wide, many = drawn(options.size(2000, 100), options.size(200, 20), 8)
    wide = sparse.csr_array(np.where(np.random.default_rng(1).random(wide.shape) < 0.05, wide, 0.0))
    confused = np.full((10, 10), 0.03) + 0.7 * np.eye(10)
    labels = np.eye(10, dtype=int)[y] | (X[:, 1:11] > 1.0)
    for loss in LOSSES:
        yield f"{loss}, digits, C = 1", fit(advcli.AdversarialClassifier(loss=loss), X, y)
    yield "zero_one, digits, C = 1000", fit(advcli.AdversarialClassifier(C=1000.0), X, y)
    yield "zero_one by newton, digits, C = 1000", fit(advcli.AdversarialClassifier(C=1000.0, solver="newton"), X, y)
    for solver in ("interior_point", "constraint_generation"):
        yield f"zero_one by {solver}, wine", fit(advcli.AdversarialClassifier(C=10.0, solver=solver), wine, kinds)
    for kernel in ("rbf", "poly"):
        yield f"zero_one, kernel {kernel}, digits", fit(advcli.AdversarialClassifier(C=10.0, kernel=kernel), X, y)
    for features in ("kernel_pca", "nystroem"):
        yield f"zero_one, features {features}, digits", fit(advcli.AdversarialClassifier(C=10.0, features=features), X, y)
    for C in (10.0, 1000.0):
        yield f"zero_one, sparse rows, C = {C:g}", fit(advcli.AdversarialClassifier(C=C), wide, many)
    yield "zero_one, calibrated, digits", fit(advcli.AdversarialClassifier(calibrate="vector"), X, y)
    yield "abstain, digits", fit(advcli.AbstainingClassifier(), X, y)
    yield "one-versus-one, digits", fit(advcli.OneVersusOneClassifier(), X, y)
    yield "one-versus-all, digits", fit(advcli.OneVersusAllClassifier(), X, y)
    yield "cost-sensitive, digits", fit(advcli.CostSensitiveClassifier(), X, y)
    for method in METHODS:
        yield f"{method}, drawn rows", fit(advcli.OrdinalClassifier(C=10.0, method=method), few, grades)
    yield "svorim, kernel rbf, drawn rows", fit(advcli.OrdinalClassifier(C=10.0, method="svorim", kernel="rbf"), few, grades)
    yield "ordinal game, drawn rows", fit(advcli.OrdinalAdversarialClassifier(C=10.0), few, grades)
    yield "uma, digits", fit(advcli.UMAClassifier(confusion=confused), X, y)
    yield "perceptron, digits", fit(advcli.PerceptronClassifier(), X, y)
    for surrogate in ("slack", "margin", "log", "prob"):
        yield f"label sets by {surrogate}, digits", fit(advcli.MultilabelClassifier(surrogate=surrogate), X, labels)
    for model in ("nhsvm", "hsvm", "ssvm"):
        yield f"{model}, digits", fit(advcli.HierarchicalClassifier(TREE, model=model), X, y.astype(str))
    for surrogate in ("slack", "prob"):
        yield f"chains by {surrogate}, digits", fit(advcli.ChainClassifier(surrogate=surrogate), X, y, groups=np.arange(len(y)) // 5)
    if options.all_peers:
        letter, _ = drawn(options.size(15_000, 200), 16, 26)
        sizes = {"dimensions": 1600, "landmarks": 2500, "exact_rows": 1}
        yield "kernel PCA of letter's shape", lambda: pca.KernelPCAFeatures(letter, 26, **sizes)


def seconds(call, arithmetic):
    """Return the processor seconds of one call; components that an earlier one left are forgotten."""
    pca._recent.clear()
    with using(arithmetic), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        call()
        return time.process_time() - began


def cost(options):
    """Rows: every fit, and their median."""
    rows = []
    for what, call in fits(options):
        found = interleaved({name: lambda name=name, call=call: seconds(call, name) for name in ("fast", "portable")}, options.repeats)
        ratio = found["portable"] / max(found["fast"], 1e-9)
        rows.append(Row(what, ratio, 2.5, 1.5, larger=False, detail=f"fast {1e3 * found['fast']:.3g} ms"))
    rows.append(Row("median", float(np.median([row.measured for row in rows])), 1.5, larger=False))
    return rows
