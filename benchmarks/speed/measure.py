"""How every benchmark here measures: one thread, repeats of the competitors interleaved, medians, ratios inside one run."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Row:
    """One measured ratio beside its targets; ``larger`` says which direction is good."""

    what: str
    measured: float
    must: float | None = None
    aim: float | None = None
    larger: bool = True
    detail: str = ""

    @property
    def verdict(self):
        if self.must is None and self.aim is None:
            return ""
        reached = (lambda goal: self.measured >= goal) if self.larger else (lambda goal: self.measured <= goal)
        if self.aim is not None and reached(self.aim):
            return "aim"
        if self.must is None:
            return ""
        return "must" if reached(self.must) else "MISSED"


@dataclass(frozen=True)
class Options:
    """``tiny`` shrinks every size so that the scripts can be tried in seconds; its numbers mean nothing."""

    tiny: bool = False
    repeats: int = 5
    all_peers: bool = False

    def size(self, full, tiny):
        return tiny if self.tiny else full


def interleaved(calls, repeats):
    """Return the median seconds of each call, the calls taking turns; one that measured itself returns its seconds as a Python float."""
    seconds = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            started = time.perf_counter()
            answer = call()
            passed = time.perf_counter() - started
            seconds[name].append(answer if type(answer) is float else passed)
    return {name: float(np.median(each)) for name, each in seconds.items()}


def cpu(call):
    """Return a call that returns its CPU seconds."""

    def timed():
        began = time.process_time()
        call()
        return time.process_time() - began

    return timed


def repeated(call, at_least=0.05):
    """Return the mean seconds of one call over as many as ``at_least`` seconds hold, after one to warm up."""
    started = time.perf_counter()
    call()
    count = 1 + int(at_least / max(time.perf_counter() - started, 1e-6))
    started = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - started) / count


def fits_of(models, X, y):
    """Return one call for each model that fits it to X and y."""

    def call(model):
        def fit():
            model.fit(X, y)

        return fit

    return {name: call(model) for name, model in models.items()}


def standardised(X):
    """Return X with mean 0 and deviation 1 by column, constant columns dropped, a constant 1 appended."""
    X = np.asarray(X, dtype=float)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]))


def read(name):
    """Return (X, y, is_train) of a data set of the folder ADVCLI_DATA, or None when it is not there."""
    folder = os.environ.get("ADVCLI_DATA")
    if not folder or not (Path(folder) / f"{name}.csv.gz").exists():
        return None
    import pandas as pd

    table = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    train = (table.pop("split") == "train").to_numpy() if "split" in table else np.ones(len(table), dtype=bool)
    _, y = np.unique(table.pop("target"), return_inverse=True)
    return np.ascontiguousarray(table.to_numpy(dtype=float)), y.astype(np.intp), train


def training_part(name, rows=None):
    """Return standardised X and y of the published training part, digits from scikit-learn; None when the data are missing."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        y = y.astype(np.intp)
    else:
        found = read(name)
        if found is None:
            return None
        X, y, train = found
        X, y = X[train], y[train]
    if rows is not None:
        keep = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = X[keep], y[keep]
    return standardised(X), y


def random_split(name, rows=None):
    """Return the standardised 70 % of one random split, seed 0; None when the data are missing."""
    found = read(name)
    if found is None:
        return None
    X, y, _ = found
    keep = np.random.default_rng(0).permutation(len(y))[: int(0.7 * len(y))][:rows]
    _, codes = np.unique(y[keep], return_inverse=True)
    return standardised(X[keep]), codes.astype(np.intp)


def table(rows):
    """Return the rows as aligned text."""
    header = ("what", "measured", "must", "aim", "reached", "detail")
    lines = [header]
    for row in rows:
        sign = ">=" if row.larger else "<="
        goals = ["" if goal is None else f"{sign} {goal:g}" for goal in (row.must, row.aim)]
        lines.append((row.what, f"{row.measured:.3g}", *goals, row.verdict, row.detail))
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([text[0], "-" * len(text[0]), *text[1:]])
