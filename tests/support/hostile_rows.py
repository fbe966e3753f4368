"""Hostile rows at every door of the package that leads to compiled code: python hostile_rows.py few|all.

Estimators, saved weights and problems of one's own get sparse matrices whose parts do not fit each other, matrices without a stored value,
NaN, huge numbers, other types and layouts, at fit and at predict. Each must raise ValueError or TypeError, or leave finite scores; what is
valid must be taken. The case under way is the last line of output, so that a crash, which ends the process, is told by the parent
(`test_compiled_hostile.py`).
"""

import faulthandler
import os
import sys
import warnings

import numpy as np
import scipy.sparse as sp

N, D, K = 12, 4, 3
EDGES = [("animal", "0"), ("animal", "1"), ("any", "animal"), ("any", "2")]


def say(line):
    os.write(1, f"{line}\n".encode())


def plain():
    """Return rows, half of them zeros, and labels of three classes."""
    random = np.random.default_rng(0)
    y = np.arange(N) % K
    X = random.normal(size=(N, D)) + y[:, None]
    X[random.random((N, D)) < 0.4] = 0.0
    return X, y


# ---- rows -------------------------------------------------------------------------------------------------------------


def broken(kind, **parts):
    """Return a sparse matrix with parts put in behind its back."""
    X = kind(plain()[0])
    for name, value in parts.items():
        setattr(X, name, value)
    return X


def falling(X):
    start = X.indptr.copy()
    start[3] = start[-1] + 5
    return start


def invalid_sparse():
    """Return matrices that are none, by name."""
    csr = sp.csr_array(plain()[0])
    far, below = csr.indices.copy(), csr.indices.copy()
    far[1], below[1] = 1_000_000, -1
    empty_rises = np.zeros(N + 1, np.int32)
    empty_rises[1] = 5
    found = {}
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.bsr_array):
        name = kind.__name__
        own = kind(plain()[0])
        if name != "bsr_array":
            beyond = own.indices.copy()
            beyond[0] = 2**20
            found[f"{name}, column out of range"] = broken(kind, indices=beyond)
            found[f"{name}, too few values"] = broken(kind, data=own.data[:-3])
        found[f"{name}, falling starts"] = broken(kind, indptr=falling(own))
        found[f"{name}, starts beyond the values"] = broken(kind, indptr=own.indptr * 3)
        found[f"{name}, late first start"] = broken(kind, indptr=np.maximum(own.indptr, 2))
        found[f"{name}, few starts"] = broken(kind, indptr=own.indptr[:-1])
        found[f"{name}, negative last start"] = broken(kind, indptr=np.append(own.indptr[:-1], -3).astype(np.int32))
    found["negative column"] = broken(sp.csr_array, indices=below)
    found["column beyond 32 bits"] = broken(sp.csr_array, indices=np.where(far > 99, 2**32 + 1, far.astype(np.int64)))
    found["no stored value, starts that rise"] = sp.csr_array((N, D))
    found["no stored value, starts that rise"].indptr = empty_rises
    coo = sp.coo_array(plain()[0])
    coo.coords[1][0] = 10**6
    found["coo, column out of range"] = coo
    return found


def valid():
    """Return rows that a fit must take, by name."""
    X, _ = plain()
    csr = sp.csr_array(X)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    doubled = sp.csr_array((np.append(csr.data, 1.0), np.append(csr.indices, 0), np.append(csr.indptr[:-1], csr.nnz + 1)), shape=X.shape)
    trailing = sp.csr_array(X)
    trailing.data, trailing.indices = np.append(trailing.data, 7.0), np.append(trailing.indices, 99)
    frozen = X.copy()
    frozen.setflags(write=False)
    fixed = sp.csr_array(X)
    for part in (fixed.data, fixed.indices, fixed.indptr):
        part.setflags(write=False)
    return {
        "no stored value": sp.csr_array(X.shape),
        "no stored value, matrix": sp.csr_matrix(X.shape),
        "zeros": np.zeros_like(X),
        "64-bit indices": wide,
        "a column twice": doubled,
        "values after the last start": trailing,
        "last row alone": sp.csr_array((np.ones(2), ([N - 1, N - 1], [0, 1])), shape=X.shape),
        "read-only": frozen,
        "read-only sparse": fixed,
        "Fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "single": X.astype(np.float32),
        "whole numbers": X.astype(np.int8),
        "truth values": X > 0,
        "objects": X.astype(object),
        "tiny": X * 1e-300,
        **{kind: getattr(sp, f"{kind}_array")(X) for kind in ("csc", "coo", "lil", "dok", "dia", "bsr")},
    }


def doubtful():
    """Return rows that may be refused, by name."""
    X, _ = plain()
    found = {}
    for number in (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e155, 1e60, 1e49):
        one = X.copy()
        one[1, 2] = number
        found[f"one {number}"], found[f"one {number}, sparse"] = one, sp.csr_array(one)
        found[f"all {number}"] = np.full_like(X, number)
    return {
        **found,
        "one row": X[:1],
        "one sparse row": sp.csr_array(X[:1]),
        "no rows": X[:0],
        "no sparse rows": sp.csr_array((0, D)),
        "no columns": X[:, :0],
        "no sparse columns": sp.csr_array((N, 0)),
        "one column": X[:, :1],
        "more columns": np.hstack([X, X]),
        "one dimension": X[:, 0],
        "one sparse dimension": sp.coo_array(X[:, 0]),
        "three dimensions": X[None],
        "words": np.full(X.shape, "seven"),
        "complex": X + 1j,
        "nothing": None,
        "a list": X.tolist(),
    }


# ---- doors ------------------------------------------------------------------------------------------------------------


def learners(every):
    """Return unfitted estimators by name: of every kind of compiled code, or every learner, loss, solver and feature map."""
    from support.registered import canonical_losses, examples, of_rows

    from advcli import AdversarialClassifier
    from advcli.learners.base import registry
    from advcli.losses import make_loss

    found = {}
    few = {"uma", "forward", "flat", "nhsvm"}
    for name in registry:
        if not every and name not in few:
            continue
        cls = registry.get(name)
        if not of_rows(cls):
            continue
        needs = cls.needs({"name": name})
        options = {"confusion": 0.7 * np.eye(K) + 0.1} if "confusion" in needs else {}
        options |= {"hierarchy": EDGES} if "hierarchy" in needs else {}
        has = cls(**options).get_params(deep=False)
        options |= {key: value for key, value in {"max_passes": 50, "tol": 1e-2}.items() if key in has}
        found[name] = (cls(**options), "codes")
        if cls.sets and name != "flat":
            found[f"{name} of sets"] = (cls(**{**options, "max_passes": 8}), "sets")
    limits = {"max_passes": 30, "tol": 1e-2, "fit_intercept": False}
    explicit = ["dual", "sgd", "newton", "adagrad", "sag", "adam", "pegasos", "lbfgs", "constraint_generation", "interior_point"]
    for solver in explicit if every else explicit[:2]:
        found[f"zero_one {solver}"] = (AdversarialClassifier(solver=solver, **limits), "codes")
    for solver in ("kernel_dual", "kernel_newton", "kernel_splitting", "pegasos") if every else ("kernel_dual",):
        found[f"rbf {solver}"] = (AdversarialClassifier(features="rbf", solver=solver, **limits), "codes")
    found["threshold"] = (AdversarialClassifier(loss="absolute", features="threshold", **limits), "codes")
    if not every:
        return found
    box = {"features_options": {"moments": "box", "tolerance": 0.5}}
    found["box"] = (AdversarialClassifier(**box, **limits), "codes")
    for features in ("poly", "nystroem", "kernel_pca", "rbf_threshold", "poly_threshold"):
        loss = "absolute" if "threshold" in features else "zero_one"
        found[features] = (AdversarialClassifier(loss=loss, features=features, **limits), "codes")
    for loss in canonical_losses():
        options = examples(loss, K)[0]
        make_loss(loss, K, **options)
        found[loss] = (AdversarialClassifier(loss=loss, loss_options=options, **limits), "codes")
    return found


def scores(estimator, X):
    """Assert that scores and predictions at rows X are finite numbers."""
    F = estimator.potentials(X)
    assert np.isfinite(F).all(), "scores are not finite"
    estimator.predict(X)


def attempt(line, must, call):
    """Run a call that must be taken (``must`` True), refused (False), or either (None)."""
    say(line)
    fault = None
    try:
        call()
        fault = "taken" if must is False else None
    except (ValueError, TypeError) as error:
        fault = f"refused with {error}" if must or not str(error).strip() else None
    except AssertionError as error:
        fault = str(error)
    assert fault is None, f"{line}: {fault}"


def cases():
    """Return every set of rows with whether it must be taken, and its name."""
    for must, found in ((False, invalid_sparse), (True, valid), (None, doubtful)):
        for name in found():
            # made anew for every call: SciPy trims and sorts in place
            yield must, name, lambda found=found, name=name: found()[name]


def at_estimators(every):
    from sklearn.base import clone

    _, codes = plain()
    sets = np.eye(K)[codes]
    sets[0] = 1.0
    count = 0
    for name, (estimator, kind) in learners(every).items():
        y = codes if kind == "codes" else sets
        fitted = clone(estimator).fit(plain()[0], y)
        for must, what, rows in cases():

            def fit(estimator=estimator, rows=rows, y=y):
                X = rows()
                n = 0 if X is None else np.shape(X)[0] if hasattr(X, "shape") else len(X)
                scores(clone(estimator).fit(X, y[:n] if n else y), X)

            attempt(f"{name}: fit to {what}", must, fit)
            count += 1
            # prediction takes the same way in for all of them
            if every or count < 100:
                attempt(f"{name}: predict at {what}", must, lambda fitted=fitted, rows=rows: scores(fitted, rows()))
                count += 1
    return count


def at_labels():
    """Labels of sets in a sparse matrix come from outside too."""
    from advcli.learners.base import registry

    X = plain()[0]
    for name, Y in invalid_sparse().items():
        attempt(f"labels: {name}", False, lambda Y=Y: registry.get("hsvm")([("any", str(at)) for at in range(D)]).fit(X, Y))
    return len(invalid_sparse())


def at_problems():
    """A problem of one's own: features over rows, codes, weights."""
    from advcli.features import make_features
    from advcli.losses import make_loss
    from advcli.problems.risk import Problem
    from advcli.solvers import Limits, make_solver

    X, y = plain()
    loss, count = make_loss("zero_one", K), 0

    def solve(X=X, y=y, sample=None, cost=None, solver="dual"):
        problem = Problem(make_features("linear", X, K), loss, y, 0.1, sample, cost)
        solution = make_solver(solver).solve(problem, Limits(1e-2, 30, 10.0))
        assert np.isfinite(solution.theta).all(), "parameters are not finite"

    for name, rows in invalid_sparse().items():
        attempt(f"problem: {name}", False, lambda rows=rows: solve(X=rows))
        count += 1
    for name, codes in {
        "a code too high": np.where(y == 2, 3, y),
        "a code below 0": y - 1,
        "few codes": y[:-1],
        "real codes": y + 0.5,
        "no codes": y[:0],
    }.items():
        for solver in ("dual", "sgd", "newton"):
            attempt(f"problem: {name}, {solver}", False, lambda codes=codes, solver=solver: solve(y=codes, solver=solver))
            count += 1
    for name, weights in {
        "few weights": np.ones(N - 1),
        "negative weights": -np.ones(N),
        "NaN weights": np.full(N, np.nan),
        "infinite weights": np.full(N, np.inf),
    }.items():
        attempt(f"problem: {name} of rows", False, lambda weights=weights: solve(sample=weights))
        attempt(f"problem: {name} of costs", False, lambda weights=weights: solve(cost=weights))
        count += 2
    return count


if __name__ == "__main__":
    from pathlib import Path

    sys.path.append(str(Path(__file__).parents[1]))
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    done = at_labels() + at_problems() + at_estimators(sys.argv[1] == "all")
    say(f"{done} calls were refused or finite")
