"""zero_one fits to a certified gap against scikit-learn's LinearSVC (Crammer-Singer) and LogisticRegression and MRCpy at their defaults.

All on the same standardised rows with a constant column and no intercept, C = 1/(lambda n), repeats interleaved.
"""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
from measure import Row, fits_of, interleaved, standardised, training_part
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from advcli import AdversarialClassifier, SurrogateClassifier
from advcli.config import check
from advcli.config.composing import compose_cells
from advcli.evaluation import Cell, run_cell
from advcli.results.folder import ResultsFolder

NAMES = ("digits", "optdigits", "sat", "letter")
LAMBDAS = (1e-2, 1e-3, 1e-4)
SMALL_LAMBDA = {("digits", 1e-4): (0.45, 0.8), ("optdigits", 1e-4): (0.65, 0.8)}  # goals of two rows; the other ten share theirs


def fits(options):
    """Rows: each data set and lambda, then the median over all."""
    svc, logistic, rows = [], [], []
    for name in NAMES:
        found = training_part(name, options.size(None, 200))
        if found is None:
            print(f"fits {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y = found
        for lam in LAMBDAS:
            C = 1.0 / (lam * len(y))
            models = {
                "zero_one 1e-3": AdversarialClassifier(lam=lam, tol=1e-3, fit_intercept=False),
                "zero_one 1e-2": AdversarialClassifier(lam=lam, tol=1e-2, fit_intercept=False),
                "LinearSVC": LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False),
                "LogisticRegression": LogisticRegression(C=C, fit_intercept=False),
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                seconds = interleaved(fits_of(models, X, y), options.repeats)
            assert models["zero_one 1e-3"].certificate_.converged
            svc.append(seconds["LinearSVC"] / seconds["zero_one 1e-3"])
            logistic.append(seconds["LogisticRegression"] / seconds["zero_one 1e-2"])
            detail = ", ".join(f"{each} {1e3 * value:.3g} ms" for each, value in seconds.items())
            detail += f"; passes {models['zero_one 1e-3'].certificate_.passes:.0f}, {models['zero_one 1e-3'].certificate_.solver}"
            rows.append(Row(f"LinearSVC / zero_one 1e-3, {name} lambda {lam:g}", svc[-1], 3.0, 5.0, detail=detail))
            goals = SMALL_LAMBDA.get((name, lam), (0.8, 1.2))
            rows.append(Row(f"LogisticRegression / zero_one 1e-2, {name} lambda {lam:g}", logistic[-1], *goals))
    if svc:
        rows.append(Row("LinearSVC / zero_one 1e-3, median", float(np.median(svc)), 10.0, 15.0))
        rows.append(Row("LinearSVC / zero_one 1e-3, best", max(svc), None, 40.0))
        rows.append(Row("LogisticRegression / zero_one 1e-2, median", float(np.median(logistic)), 1.0, 2.0))
    return rows


def crammer_singer(options):
    """Rows: the worst and the median of fits of five sets at three lambda, the same surrogate; processor time without the first fit."""
    ratios, detail = [], []
    for name in (*NAMES, "segment"):
        found = training_part(name, options.size(None, 200))
        if found is None:
            print(f"cs {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y = found
        for lam in LAMBDAS:
            peer = LinearSVC(C=1.0 / (lam * len(y)), multi_class="crammer_singer", fit_intercept=False)
            models = {"cs": SurrogateClassifier("cs", lam=lam, tol=1e-3, fit_intercept=False), "LinearSVC": peer}
            calls = {each: processor(model, X, y) for each, model in models.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                calls["cs"]()  # which loads code
                seconds = interleaved(calls, options.repeats)
            assert models["cs"].certificate_.converged
            ratios.append(seconds["LinearSVC"] / seconds["cs"])
            detail.append(f"{name} {lam:g}: {1e3 * seconds['cs']:.3g} ms, {ratios[-1]:.3g}")
    if not ratios:
        return []
    return [
        Row("LinearSVC / cs, worst", min(ratios), 8.0, 10.0, detail="; ".join(detail)),
        Row("LinearSVC / cs, median", float(np.median(ratios)), 15.0, 20.0),
    ]


def newcomer(options):
    """Rows: both at their defaults, C = 1 and a constant, on drawn classes of which a tenth of the labels is flipped; processor time."""
    rows = []
    for n, d, k in ((20_000, 50, 5), (50_000, 20, 10), (10_000, 100, 3)):
        shape = {"n_features": d, "n_informative": 10, "n_classes": k}
        X, y = make_classification(options.size(n, 200), **shape, flip_y=0.1, random_state=0)
        models = {"zero_one": AdversarialClassifier(), "LogisticRegression": LogisticRegression()}
        seconds = interleaved({name: processor(model, X, y) for name, model in models.items()}, options.repeats)
        found = models["zero_one"].certificate_
        assert found.converged
        detail = ", ".join(f"{each} {1e3 * value:.3g} ms" for each, value in seconds.items())
        detail += f"; {found.solver}, {found.passes:.0f} passes"
        ratio = seconds["LogisticRegression"] / seconds["zero_one"]
        rows.append(Row(f"LogisticRegression / zero_one, {n} x {d}, {k} classes", ratio, 0.5, 1.0, detail=detail))
    return rows


def processor(model, X, y):
    """Return a call that fits a model and returns its processor seconds."""

    def fit():
        began = time.process_time()
        model.fit(X, y)
        return time.process_time() - began

    return fit


def small(options):
    """Rows: a fit of iris by the estimator, and by a cell with its search, splits, standardisation and rows, against LogisticRegression."""
    X, y = load_iris(return_X_y=True)
    X = standardised(X)
    _, (config,) = compose_cells([f"dataset=iris loss=zero_one protocol.n_splits={options.size(20, 2)}"], {"name": "small"})
    settings = check(config)

    def cell():
        with tempfile.TemporaryDirectory() as path:
            folder = ResultsFolder(Path(path) / "small")
            folder.prepare({})
            began = time.perf_counter()
            run_cell(Cell.of(settings), folder, settings.data_dir)
            passed = time.perf_counter() - began
            folder.merge()
            return passed / (len(folder.search()) + folder.runs()["split"].nunique())

    models = {"estimator": AdversarialClassifier(fit_intercept=False), "LogisticRegression": LogisticRegression(fit_intercept=False)}
    for model in models.values():
        model.fit(X, y)
    cell()
    repeats = 5 * options.repeats
    # a cell writes files, after which nothing of a small fit is in cache any more: each is compared in a run of its own
    alone = interleaved(fits_of(models, X, y), repeats)
    beside = interleaved({"cell": cell, **fits_of({"LogisticRegression": models["LogisticRegression"]}, X, y)}, repeats)
    detail = ", ".join(f"{each} {1e3 * value:.3g} ms" for each, value in alone.items())
    told = ", ".join(f"{each} {1e3 * value:.3g} ms" for each, value in beside.items())
    return [
        Row("LogisticRegression / estimator, iris", alone["LogisticRegression"] / alone["estimator"], 3.0, 5.0, detail=detail),
        Row("LogisticRegression / fit of a cell, iris", beside["LogisticRegression"] / beside["cell"], 1.0, 2.0, detail=told),
    ]


def minimax(options):
    """Rows: MRCpy's minimax risk classifiers at their defaults on digits; MRC, which takes a minute or more, with --all-peers."""
    try:
        import MRCpy
    except ImportError:
        print("mrcpy: skipped, MRCpy is not installed")
        return []
    if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 7):
        print("mrcpy: skipped, MRCpy 3.0 cannot fit with scikit-learn 1.7 or newer")
        return []
    X, y = training_part("digits", options.size(None, 200))
    theirs = {"CMRC": (50.0, 200.0), "MRC": (1000.0, 8000.0)} if options.all_peers else {"CMRC": (50.0, 200.0)}
    rows = []
    for name, (must, aim) in theirs.items():
        models = {"zero_one 1e-3": AdversarialClassifier(lam=1e-3, tol=1e-3, fit_intercept=False), name: getattr(MRCpy, name)(loss="0-1")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = interleaved(fits_of(models, X, y), 1 if name == "MRC" else options.repeats)
        assert models["zero_one 1e-3"].certificate_.converged
        shares = {each: float((model.predict(X) == y).mean()) for each, model in models.items()}
        detail = ", ".join(f"{each} {1e3 * value:.3g} ms, {shares[each]:.3f} of its rows right" for each, value in seconds.items())
        rows.append(
            Row(f"{name} of MRCpy / zero_one 1e-3, digits lambda 0.001", seconds[name] / seconds["zero_one 1e-3"], must, aim, detail=detail)
        )
    return rows
