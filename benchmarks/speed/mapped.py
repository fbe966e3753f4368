"""A fit to rows that lie in a file: resident memory at its peak beside the mapped share of it, and processor seconds."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import Row

D, K, LAMBDAS = 50, 10, (1e-2, 1e-4)

# A process of its own: its memory is the fit's alone. /proc says what is resident, by kinds, sampled while the compiled solver runs.
PROGRAM = """
import json, re, sys, threading, time
import numpy as np
from advcli import AdversarialClassifier
from advcli.core.row_blocks import BlockRows
from advcli.evaluation.standardise import Standardiser
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
fitted = AdversarialClassifier(lam=float(sys.argv[3]), tol=1e-3).fit(X, np.load(sys.argv[2]))
ended.set()
found = fitted.certificate_
print(json.dumps({**peak, "seconds": time.process_time() - began, "gap": found.relative_gap, "passes": found.passes}))
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
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            what = f"n = {n:.0e}, d = {D}, k = {K}, lambda {lam:g}"
            share = found["VmRSS"] / max(found["RssFile"], 1)
            detail = f"{found['VmRSS'] / 1024:.0f} MB, {found['RssFile'] / 1024:.0f} of them mapped"
            rows.append(Row(f"resident / mapped share, {what}", share, 1.3, larger=False, detail=detail))
            detail = f"gap {found['gap']:.1e}, {found['passes']:.1f} passes"
            rows.append(Row(f"processor seconds, statistics of columns among them, {what}", found["seconds"], detail=detail))
    return rows
