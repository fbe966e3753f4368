"""Fits to many classes on sparse rows: processor seconds to 1e-3 beside LinearSVC one-versus-rest, memory, and what carries a row.

Made-up documents, and two real sets of tags whose classes are the sets of tags that occur. LinearSVC fits one binary problem for each
class; its seconds for more than `MOST` classes are those of `SHARE` of them, drawn at random, times k / `SHARE`.
"""

import contextlib
import os
import time
from pathlib import Path

import measure
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from advcli.data import load
from advcli.features.linear import LinearFeatures
from advcli.losses import make_loss
from advcli.problems.certificate import certify
from advcli.problems.risk import Problem
from advcli.solvers import Limits, make_solver

MOST, SHARE = 5_000, 300


def many(options):
    """Rows: LinearSVC's seconds over those of zero_one and cs, at C = 1 on rows of length 1."""
    sets = {"documents": documents(options.size(20_000, 200), options.size(20_000, 100), options.size(1_000, 20))}
    if options.all_peers:
        sets["documents, many"] = documents(options.size(20_000, 200), options.size(10_000, 100), options.size(10_000, 50))
    for name in ("rcv1subset1", "bibtex"):
        folder = os.environ.get("ADVCLI_DATA")
        if folder is None or options.tiny:
            print(f"many {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        sets[name] = tagged(name, Path(folder))
    rows = []
    for name, (X, y) in sets.items():
        n, k = len(y), int(y.max()) + 1
        peer, share = one_versus_rest(X, y, k)
        for loss in ("zero_one", "cs"):
            problem = Problem(LinearFeatures(X, k), make_loss(loss, k), y, 1.0 / n)
            forget_peak()
            began = time.process_time()
            found = make_solver("auto").solve(problem, Limits(1e-3))
            ours = time.process_time() - began
            fitting = peak()
            began = time.process_time()
            certificate = certify(problem, found, 1e-3)
            judging = time.process_time() - began
            right = sum((np.argmax(X[at : at + 1000] @ found.theta, axis=1) == y[at : at + 1000]).sum() for at in range(0, n, 1000)) / n
            detail = (
                f"{n} x {X.shape[1]}, {X.nnz / n:.0f} values a row, {k} classes: {found.solver} {ours:.3g} s, {found.passes:.0f} passes, "
                f"{1e6 * ours / (found.passes * n):.2g} us a visit; gap {certificate.relative_gap:.1e} "
                f"({certificate.status}, judged in {judging:.3g} s); {(found.R != 0.0).sum() / n:.1f} labels carry a row; "
                f"theta {found.theta.nbytes / 1e6:.0f} MB, r {size_of(found.R) / 1e6:.0f} MB, "
                f"peak {fitting:.2f} GB in the fit and {peak():.2f} GB in all; LinearSVC {peer:.3g} s{share}; right on the rows {right:.3f}"
            )
            rows.append(measure.Row(f"LinearSVC one-versus-rest / {loss} 1e-3, {name}", peer / ours, detail=detail))
    return rows


def one_versus_rest(X, y, k):
    """Return LinearSVC's processor seconds for all classes, and how they were found."""
    if k <= MOST:
        began = time.process_time()
        LinearSVC(fit_intercept=False).fit(X, y)
        return time.process_time() - began, ""
    chosen = np.random.default_rng(0).choice(k, SHARE, replace=False)
    began = time.process_time()
    for label in chosen:
        LinearSVC(fit_intercept=False).fit(X, y == label)
    return (time.process_time() - began) * k / SHARE, f" (by {SHARE} classes)"


def size_of(R):
    """Return the bytes of a dual point."""
    return R.nbytes if isinstance(R, np.ndarray) else R.data.nbytes + R.indices.nbytes + R.indptr.nbytes


def forget_peak():
    """Let the process's peak of memory begin at what it has now, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak():
    """Return the process's peak of memory in GB, nan where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e6
    return float("nan")


def documents(n, d, k):
    """Return made-up documents, each about words of its label, and their labels, of which each occurs."""
    shape = {"rows": n, "features": d, "nonzeros": min(60, d // 2), "depth": 4}
    data = load({"name": "documents", "source": "synthetic_hierarchy", **shape, "nodes": round(1.4 * k), "leaves": k}, Path("."))
    return unit(data.X), np.unique(data.y, return_inverse=True)[1].astype(np.intp)


def tagged(name, folder):
    """Return the rows of a set of tags, and for each the number of its set of tags."""
    table = pd.read_csv(folder / f"{name}.csv.gz")
    named = [column for column in table.columns if column.startswith("label_")]
    tags = np.unique(table[named].to_numpy(), axis=0, return_inverse=True)[1]
    return unit(table.drop(columns=named).select_dtypes("number").to_numpy(np.float64)), tags.ravel().astype(np.intp)


def unit(X):
    """Return sparse rows of length 1, with indices of 32 bits, which LinearSVC wants."""
    X = sp.csr_array(X)
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    scaled = sp.csr_array(sp.diags_array(1.0 / np.sqrt(np.maximum(squares, 1e-300))) @ X)
    return sp.csr_array((scaled.data, scaled.indices.astype(np.int32), scaled.indptr.astype(np.int32)), shape=X.shape)
