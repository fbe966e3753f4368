"""Hierarchical machines on documents of SWIKI's shape: seconds a pass, memory, gap and accuracy.

`make bench` takes a part of its size; python benchmarks/speed/scale.py [PASSES ...] takes all of it, in stages of so many passes at most.
"""

import resource
import sys
import time
import warnings

import measure

from advcli.core.errors import NotConvergedWarning
from advcli.data import load
from advcli.learners.hierarchical import NormalisedHierarchicalSVM
from advcli.learners.hierarchical.attributes import LISTS

STAGES = (2.0, 6.0, 20.0)  # passes at most, each stage from where the one before ended
WHOLE = (456_886, 346_299, 50_312, 36_504)  # rows, features, nodes and leaves of SWIKI-2011


def documents(n, d, nodes, leaves, fresh, nonzeros=80):
    """Return n rows of made-up documents and ``fresh`` more."""
    shape = {"rows": n + fresh, "features": d, "nonzeros": nonzeros, "depth": 8, "nodes": nodes, "leaves": leaves}
    return load({"name": "documents", "source": "synthetic_hierarchy", **shape}, measure.Path("."))


def accuracy(model, X, y):
    parts = [slice(at, at + 500) for at in range(0, len(y), 500)]
    return sum(int((model.predict_codes(X[part]) == y[part]).sum()) for part in parts) / len(y)


def staged(data, n, precision, stages):
    """Yield after each stage of a fit to the first n rows: the model, all passes, seconds, and the accuracy on the rows that are left."""
    named, previous, passes, seconds = {"edges": data.hierarchy, "classes": data.classes}, None, 0.0, 0.0
    for stage in stages:
        model = NormalisedHierarchicalSVM(named, C=1.0, max_passes=stage, precision=precision, n_classes=len(data.classes))
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            model.fit(data.X[:n], data.y[:n], start=previous)
        seconds += time.perf_counter() - began
        passes += model.certificate_.passes
        previous = model
        correct = accuracy(model, data.X[n:], data.y[n:])
        gap = model.certificate_.relative_gap
        print(f"{precision}: gap {gap:.1e} and accuracy {correct:.3f} after {passes:.0f} passes, {seconds:.0f} s", flush=True)
        yield model, passes, seconds, correct


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def scale(options):
    """Rows: seconds a pass, the gap in the end and the memory; --all-peers asks for the full size of the benchmark."""
    n, d, nodes = (100_000, 100_000, 20_000) if options.all_peers else (20_000, 20_000, 6_000)
    n, d, nodes = options.size(n, 300), options.size(d, 200), options.size(nodes, 100)
    data = documents(n, d, nodes, round(0.7256 * nodes), n // 10, options.size(80, 10))
    size = f"{n} x {d}, {len(data.classes)} labels"
    rows = []
    for precision in ("double", "single"):
        *_, (model, passes, seconds, correct) = staged(data, n, precision, STAGES)
        gap = model.certificate_.relative_gap
        detail = f"gap {gap:.1e} and accuracy {correct:.3f} after {passes:.0f} passes, {seconds:.0f} s"
        detail += f"; {model.dual_.nnz / n:.1f} labels carry a row, sums kept as {'lists' if len(data.classes) >= LISTS else 'a table'}"
        rows.append(measure.Row(f"{size}, {precision}: seconds a pass, certificates included", seconds / passes, detail=detail))
        rows.append(measure.Row(f"{size}, {precision}: relative gap", gap, must=1e-2, larger=False))
    rows.append(measure.Row(f"{size}: GB of memory at most, data included", peak()))
    return rows


if __name__ == "__main__":
    rows, features, nodes, leaves = WHOLE
    for model, _, _, _ in staged(
        documents(rows, features, nodes, leaves, 2000), rows, "single", [float(each) for each in sys.argv[1:]] or STAGES
    ):
        print(
            f"{model.dual_.nnz / rows:.1f} labels carry a row, {peak():.1f} GB, {time.process_time():.0f} s of processor time", flush=True
        )
