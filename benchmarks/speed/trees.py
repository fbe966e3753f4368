"""Dependency trees: Eisner's algorithm in sums a second, and certified fits to the first sentences of ewt_trees. CPU time.

A sum is one of the two charts' numbers that a span's best is the largest of: about n^3 / 2 for n words.
"""

import os
import time
from pathlib import Path

import numpy as np
from measure import Row, repeated

from advcli import DependencyParser
from advcli.core.compiled import kernels

LAMBDA, GAP, SENTENCES = 1e-2, 1e-2, 2000


def eisner(options):
    """Return sums a second on sentences of 10, 20, 40 and 80 words."""
    rows, total = [], options.size(40_000, 400)
    for n in (10, 20, 40, 80):
        count = max(1, total // n)
        scores, start = np.random.default_rng(n).normal(size=count * (n + 1) ** 2), np.arange(0, count * n + 1, n)
        value, heads = np.empty(count), np.empty(count * n, np.int32)
        call = (scores, start, value, heads)
        seconds = repeated(lambda call=call: kernels.trees.best(*call))
        sums = 3 * sum((n - width) * width for width in range(1, n)) * count
        rows.append(Row(f"eisner, {n} words", sums / seconds / 1e9, *((0.2, 1.0) if n == 20 else (None, None)), detail="1e9 sums a second"))
    return rows


def fits(options):
    """Return processor seconds of certified fits, and the share of right heads beside them."""
    folder = os.environ.get("ADVCLI_DATA")
    if not folder or not (Path(folder) / "ewt_trees.csv.gz").exists():
        print("ewt_trees is not here: set ADVCLI_DATA")
        return []
    from advcli.data import load

    roles = {"sequence": "sentence", "tokens": "form", "features": ["form", "upos"], "head": "head", "relation": "deprel"}
    data = load({"name": "ewt_trees", "source": "sequences", **roles}, Path(folder))
    train, test = data.official
    train = train[data.groups[train] < options.size(SENTENCES, 50)]
    rows = []
    for surrogate in ("margin", "prob"):
        parser = DependencyParser(surrogate=surrogate, lam=LAMBDA, tol=GAP)
        began = time.process_time()
        parser.fit(data.X[train], data.y[train], groups=data.groups[train])
        seconds = time.process_time() - began
        right = np.mean(parser.predict_codes(data.X[test], data.groups[test]) == data.y[test])
        said = f"seconds; {right:.4f} of heads right, gap {parser.certificate_.relative_gap:.1e}, {parser.n_iter_} passes"
        rows.append(Row(f"{surrogate}, {len(np.unique(data.groups[train]))} sentences", seconds, None, None, detail=said))
    return rows
