"""One UMA update against one read of the data, and the whole fit on letter with 1,600 kernel components."""

import time

import measure
import numpy as np
import scipy.sparse as sp

from advcli.features import make_features
from advcli.learners.uma import UMAClassifier


def confusion(k, random):
    C = random.random((k, k)) + 3.0 * k * np.eye(k) / 4
    return C / C.sum(axis=0)


def seconds_per_update(X, y, C, first, last):
    """Return the seconds of an update after the first ones: the set-up and the start, when all classes tie, are left out."""
    spent, made = [], []
    for limit in (first, last):
        started = time.perf_counter()
        made.append(UMAClassifier(C, max_updates=limit, n_classes=len(C)).fit(X, y).n_updates_)
        spent.append(time.perf_counter() - started)
    return float((spent[1] - spent[0]) / max(1, made[1] - made[0]))


def read(X, k):
    """Return the seconds of one product X z, which reads X once."""
    z = np.random.default_rng(0).standard_normal(X.shape[1])
    return measure.repeated(lambda: X @ z)


def updates(options):
    random = np.random.default_rng(0)
    rows = []
    shapes = {
        "digits, dense": (options.size(3823, 200), 640, 10, None),
        "letter, dense": (options.size(15_000, 300), 1600, 26, None),
        "text, sparse": (options.size(5485, 200), options.size(17_000, 500), 8, 65),
    }
    for name, (n, d, k, filled) in shapes.items():
        y = random.integers(0, k, n)
        centres = random.standard_normal((k, d))
        if filled is None:
            X = 0.5 * centres[y] / np.sqrt(d) + random.standard_normal((n, d)) / np.sqrt(d)
        else:
            # words by Zipf's law, shifted by class, as in texts
            columns = np.minimum((random.pareto(0.6, (n, filled)) * 3).astype(int) + 40 * y[:, None], d - 1)
            at = (np.repeat(np.arange(n, dtype=np.int32), filled), columns.ravel().astype(np.int32))
            X = sp.csr_array((random.random(n * filled), at), shape=(n, d))
            X.sum_duplicates()
        C = confusion(k, random)
        noisy = np.array([random.choice(k, p=C[:, label]) for label in y])
        found = measure.interleaved(
            {"update": lambda X=X, y=noisy, C=C: seconds_per_update(X, y, C, 20, 60), "read": lambda X=X, k=k: read(X, k)}, options.repeats
        )
        touched = found["read"]
        if filled is not None:
            # the sums of the touched classes are data too: a sparse X is smaller than they are
            sums = random.standard_normal((k * k, d))
            touched += measure.repeated(lambda sums=sums: sums.sum())
        detail = f"{1e3 * found['update']:.2f} ms against {1e3 * touched:.2f} ms"
        rows.append(measure.Row(f"{name} {n} x {d}, {k} classes", found["update"] / touched, must=3.0, larger=False, detail=detail))
    return rows


def letter(options):
    found = measure.read("letter")
    if found is None:
        print("letter is not in ADVCLI_DATA: skipped")
        return []
    X, y, _ = found
    random = np.random.default_rng(0)
    keep = random.permutation(len(y))[: options.size(15_000, 400)]
    X, y = measure.standardised(X[keep])[:, :-1], y[keep]
    C = confusion(26, random)
    noisy = np.array([random.choice(26, p=C[:, label]) for label in y])
    started = time.perf_counter()
    P = make_features("kernel_pca", X, 26, dimensions=options.size(1600, 50), width=4.0, landmarks=options.size(2500, 100)).X
    projected = time.perf_counter() - started
    started = time.perf_counter()
    model = UMAClassifier(C, max_updates=120, n_classes=26).fit(P, noisy)
    learned = time.perf_counter() - started
    detail = f"{model.n_updates_} updates; kernel PCA {projected:.1f} s beside it"
    return [measure.Row(f"letter {P.shape[0]} x {P.shape[1]}, seconds of learning", learned, must=10.0, larger=False, detail=detail)]
