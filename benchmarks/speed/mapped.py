"""A fit to rows that lie in a file: resident memory at its peak beside the mapped share of it, seconds, and what two threads gain."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import Row, interleaved

from advcli.solvers.coordinate.threaded import usable_cores

D, K, LAMBDAS = 50, 10, (1e-2, 1e-4)

# A process of its own: its memory is the fit's alone. /proc says what is resident, by kinds, sampled while the compiled solver runs.
PROGRAM = """
import json, re, sys, threading, time
import numpy as np
from advcli import AdversarialClassifier
from advcli.core.row_blocks import BlockRows
from advcli.evaluation.standardise import Standardiser
from threadpoolctl import threadpool_limits
peak, ended = {"VmRSS": 0, "RssFile": 0}, threading.Event()
def watch():
    while not ended.wait(0.02):
        now = {name: int(size) for name, size in re.findall("^(VmRSS|RssFile):\\s+(\\d+)", open("/proc/self/status").read(), re.M)}
        if now["VmRSS"] > peak["VmRSS"]:
            peak.update(now)
threading.Thread(target=watch, daemon=True).start()
began = time.process_time()
rows = BlockRows(np.load(sys.argv[1], mmap_mode="r"))
X = Standardiser().fit(rows).transform(rows)
start = time.perf_counter()
with threadpool_limits(1):  # as the command line has it
    learner = AdversarialClassifier(lam=float(sys.argv[3]), tol=1e-3, solver_options={"threads": int(sys.argv[4])})
    fitted = learner.fit(X, np.load(sys.argv[2]))
wall = time.perf_counter() - start
ended.set()
found = fitted.certificate_
print(json.dumps({**peak, "seconds": time.process_time() - began, "wall": wall, "gap": found.relative_gap, "passes": found.passes}))
"""


def write(folder, n):
    """Write n rows of overlapping classes in float32, block by block, and their labels."""
    random = np.random.default_rng(0)
    theta = random.normal(size=(D, K))
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, D))
    y = np.empty(n, dtype=np.intp)
    for at in range(0, n, 100_000):
        block = random.normal(size=(min(n - at, 100_000), D))
        y[at : at + len(block)] = np.argmax(block @ theta + 2.0 * random.normal(size=(len(block), K)), axis=1)
        X[at : at + len(block)] = block
    X.flush()
    np.save(folder / "y.npy", y)


def mapped(options):
    """Rows: n = 1e7 at two lambdas."""
    if not Path("/proc/self/status").exists():
        print("mapped: skipped, this system has no /proc to read resident memory from")
        return []
    n, rows = options.size(10_000_000, 4000), []
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        write(folder, n)
        for lam in LAMBDAS:
            command = [sys.executable, "-c", PROGRAM, str(folder / "X.npy"), str(folder / "y.npy"), str(lam)]
            seen = {}

            def fit(threads, command=command, seen=seen):
                seen[threads] = json.loads(subprocess.run([*command, str(threads)], capture_output=True, text=True, check=True).stdout)
                return seen[threads]["wall"]

            counts = (1, 2)[: usable_cores()]
            walls = interleaved({count: lambda count=count, fit=fit: fit(count) for count in counts}, options.repeats)
            found = seen[1]
            what = f"n = {n:.0e}, d = {D}, k = {K}, lambda {lam:g}"
            share = found["VmRSS"] / max(found["RssFile"], 1)
            detail = f"{found['VmRSS'] / 1024:.0f} MB, {found['RssFile'] / 1024:.0f} of them mapped"
            rows.append(Row(f"resident / mapped share, {what}", share, 1.3, larger=False, detail=detail))
            detail = f"gap {found['gap']:.1e}, {found['passes']:.1f} passes"
            rows.append(Row(f"processor seconds, statistics of columns among them, {what}", found["seconds"], detail=detail))
            if len(walls) == 2:
                detail = f"{walls[1]:.3g} s with one, {walls[2]:.3g} s with two, certificates among them"
                rows.append(Row(f"one thread / two threads, {what}", walls[1] / walls[2], 1.5, 1.8, detail=detail))
    return rows
