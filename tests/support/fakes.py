"""A data set and an estimator that need neither files nor compiled code, put behind `advcli.evaluation.recipe`.

Loaded by path from the tests and from the processes that they start.
"""

import hashlib
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from advcli.core.errors import DataError
from advcli.evaluation import recipe
from advcli.learners import Method
from advcli.learners.base import View

N_FITS = {"count": 0}
LOG = []


@dataclass
class FakeDataset:
    name: str
    X: object
    y: np.ndarray
    classes: tuple
    ordered: bool = False
    sizes: tuple | None = None
    splits: tuple | None = None
    example_weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    group: np.ndarray | None = None
    time: np.ndarray | None = None
    soft: np.ndarray | None = None
    sha256: str = ""
    notes: tuple = ()
    hierarchy: tuple | None = None
    multilabel: bool = False
    has_trees: bool = False
    costs: np.ndarray | None = None
    cells: None = None
    relations: None = None


def make_dataset(name="blobs", n=60, d=3, k=3, seed=0, **more):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    X = rng.normal(size=(n, d)) + 1.2 * np.eye(k, d)[y]
    sha = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
    return FakeDataset(name=name, X=X, y=y.astype(np.intp), classes=tuple(range(k)), sha256=sha, **more)


class FakeLearner:
    """Ridge regression on one-hot labels; options of the loss make it slow, failing or unconverged."""

    certified, remarks_, solver_choice_, cost_matrix_, abstention_cost_ = True, (), "", None, None
    has_costs = has_groups = False
    predicts_classes_ = takes_weights = True
    n_features_in_ = 1

    def __init__(self, loss, features, solver, hyper, n_classes, seed, tol):
        self.loss, self.hyper, self.n_classes, self.seed, self.tol = loss, dict(hyper), n_classes, seed, tol
        self.metric_, self.counts_, self.stages_ = loss.get("metric", "error"), {}, {}

    def bind(self, rows, y):
        return rows.X, y, rows.weight

    calibrates = False

    def fit_bound(self, bound, start=None):
        return self.fit(*bound, start)

    def look(self, rows):
        return View(rows.X, rows.groups)

    def fit(self, X, y, sample_weight=None, start=None):
        N_FITS["count"] += 1
        LOG.append(SimpleNamespace(hyper=self.hyper, tol=self.tol, n=len(y), start=start, estimator=self, X=X, y=y, weight=sample_weight))
        if self.loss.get("sleep"):
            time.sleep(self.loss["sleep"])
        if self.loss.get("fail_at_n") == len(y):
            raise ValueError("two\nlines")
        if self.loss.get("bad_input"):
            raise DataError("bad input in the fit")
        X = np.asarray(X.todense() if hasattr(X, "todense") else X)
        lam = self.hyper["lambda"] if "lambda" in self.hyper else 1.0 / (len(y) * self.hyper.get("C", 1.0))
        A = np.hstack([X * self.hyper.get("gamma", 1.0), np.ones((len(y), 1))])
        self.theta = np.linalg.solve(A.T @ A / len(y) + lam * np.eye(A.shape[1]), A.T @ np.eye(self.n_classes)[y] / len(y))
        stopped = self.loss.get("unconverged")
        self.certificate_ = SimpleNamespace(
            primal=1.0 + lam,
            dual=float("-inf") if stopped == "infeasible_dual" else 1.0,
            gap=lam,
            relative_gap={None: self.tol / 2, "infeasible_dual": float("inf"), "negative_gap": -0.5}.get(stopped, 0.5),
            scale=1.0,
            passes=7,
            converged=stopped is None,
            status=stopped or "converged",
            solver="fake",
            game_value=float("nan"),
            seconds=0.01,
        )
        return self

    def predict_codes(self, X):
        X = X.at if isinstance(X, View) else X
        X = np.asarray(X.todense() if hasattr(X, "todense") else X)
        A = np.hstack([X * self.hyper.get("gamma", 1.0), np.ones((X.shape[0], 1))])
        return (A @ self.theta).argmax(axis=1).astype(np.intp)


def load(options, data_dir, author_splits=False):
    if options.get("missing"):
        raise DataError(f"data set {options['name']} is not here")
    return make_dataset(**{key: value for key, value in options.items() if key not in ("source", "missing")})


def searched(method):
    return ("regularisation", "gamma") if method.features["name"] == "rbf" else ("regularisation",)


def make(method, n_classes, seed, tol=None):
    tol = method.solver["tol"] if tol is None else tol
    return FakeLearner(method.loss, method.features, method.solver, method.hyper, n_classes, seed, tol)


def install(put=setattr):
    """Replace the parts of evaluation; ``put`` is setattr or monkeypatch.setattr."""
    put(recipe, "load_data", load)
    put(recipe, "check_trainable", lambda dataset, folds: None)
    put(recipe, "lonely_classes", lambda dataset: "")
    put(Method, "check", lambda *arguments: None)
    put(Method, "searched", property(searched))
    put(Method, "make", make)


PROTOCOL = {
    "name": "tiny",
    "n_splits": 3,
    "folds": 3,
    "stage1": {"regularisation": [0.1, 1, 10], "gamma": [0.5, 1]},
    "stage2": {"regularisation": [0.5, 1, 2], "gamma": [1]},
    "metrics": ["accuracy"],
    "test": "ttest",
    "alpha": 0.05,
}


def cell(dataset="blobs", loss="zero_one", **more):
    from advcli.evaluation import Cell

    parts_of = {
        "dataset": {"name": dataset, "seed": len(dataset)},
        "loss": {"name": loss},
        "features": {"name": "linear"},
        "solver": {"name": "auto", "tol": 1e-3, "search_tol": 1e-2},
        "protocol": PROTOCOL,
    }
    for key, value in more.items():
        parts_of[key] = parts_of[key] | value if isinstance(value, dict) and key in parts_of else value
    return Cell(**parts_of)
