"""Hierarchical machines on documents of SWIKI's shape, cut to one machine: seconds a pass, memory, gap and accuracy."""

import resource
import time
import warnings

import measure

from advcli.data import load
from advcli.errors import NotConvergedWarning
from advcli.learners.hierarchical import NormalisedHierarchicalSVM
from advcli.learners.hierarchical.factors import LISTS

STAGES = (2.0, 6.0, 20.0)  # passes at most, each stage from where the one before ended


def documents(options):
    """Return the set and its number of training rows; --all-peers asks for the full size of the benchmark."""
    n, d, nodes = (100_000, 100_000, 20_000) if options.all_peers else (20_000, 20_000, 6_000)
    n, d, nodes = options.size(n, 300), options.size(d, 200), options.size(nodes, 100)
    shape = {"rows": n + n // 10, "features": d, "nonzeros": options.size(80, 10), "depth": 8}
    tree = {"nodes": nodes, "leaves": round(0.7256 * nodes)}
    return load({"name": "documents", "source": "synthetic_hierarchy", **shape, **tree}, measure.Path(".")), n


def accuracy(model, X, y):
    parts = [slice(at, at + 500) for at in range(0, len(y), 500)]
    return sum(int((model.predict_codes(X[part]) == y[part]).sum()) for part in parts) / len(y)


def scale(options):
    data, n = documents(options)
    named = {"edges": data.hierarchy, "classes": data.classes}
    X, y, fresh = data.X[:n], data.y[:n], slice(n, None)
    size = f"{n} x {X.shape[1]}, {len(data.classes)} labels"
    rows = []
    for precision in ("double", "single"):
        previous, passes, seconds = None, 0.0, 0.0
        for stage in STAGES:
            model = NormalisedHierarchicalSVM(named, C=1.0, max_passes=stage, precision=precision, n_classes=len(data.classes))
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConvergedWarning)
                model.fit(X, y, start=previous)
            seconds += time.perf_counter() - began
            passes += model.certificate_.passes
            previous = model
            found = model.certificate_
            correct = accuracy(model, data.X[fresh], data.y[fresh])
            detail = f"gap {found.relative_gap:.1e} and accuracy {correct:.3f} after {passes:.0f} passes, {seconds:.0f} s"
            print(f"{precision}: {detail}", flush=True)
        detail += f"; {model.dual_.nnz / n:.1f} labels carry a row, sums kept as {'lists' if len(data.classes) >= LISTS else 'a table'}"
        rows.append(measure.Row(f"{size}, {precision}: seconds a pass, certificates included", seconds / passes, detail=detail))
        rows.append(measure.Row(f"{size}, {precision}: relative gap", found.relative_gap, must=1e-2, larger=False))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows.append(measure.Row(f"{size}: GB of memory at most, data included", peak))
    return rows
