"""Overhead of a cell in a sweep of many tiny cells: python tests/benchmarks/cells.py [CELLS ...] [--workers N].

A cell is one fit of iris at a fixed C, some milliseconds of work. Shown per sweep: seconds until the first cell was done, milliseconds per
cell after it, seconds from the last cell to the end (merging and the report), and the largest memory of the parent and of a worker.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import json, resource, sys
from advcli.cli import main
code = main(sys.argv[1:])
peak = [resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"code": code, "parent_mb": peak[0], "worker_mb": peak[1]}))
"""


def measure(cells, workers):
    """Run a sweep of so many cells and return its times in seconds and its memory in MB."""
    # C and the seed vary: two long axes, as a sweep over data sets and methods has
    side = max(1, round(cells**0.5))
    strengths = ",".join(str(1 + at / 1000) for at in range(side))
    words = ["-m", f"seed=range(0,{-(-cells // side)})", f"hyper.C={strengths}", "protocol.n_splits=1", "protocol.metrics=[]"]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder, "output"), "w+") as output:
        began = time.perf_counter()
        command = [sys.executable, "-c", PROGRAM, *words, f"workers={workers}", "name=tiny"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "CI": ""}  # in which a sweep has no lines of cells
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, bufsize=1)
        moments = []
        for line in process.stderr:
            if line.startswith("["):
                moments.append(time.perf_counter() - began)
        process.wait()
        ended = time.perf_counter() - began
        output.seek(0)
        facts = json.loads(output.read().splitlines()[-1])
        done = len([*Path(folder, "results", "tiny", "cells").glob("*.json")])
    if facts["code"] != 0 or done != len(moments):
        raise RuntimeError(f"the sweep left with exit code {facts['code']} and {done} cells")
    per_cell = 1000 * (moments[-1] - moments[0]) / max(len(moments) - 1, 1)
    return {
        "cells": done,
        "workers": workers,
        "start_seconds": moments[0],
        "ms_per_cell": per_cell,
        "end_seconds": ended - moments[-1],
        "parent_mb": facts["parent_mb"],
        "worker_mb": facts["worker_mb"],
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="*", type=int, default=[1000, 10_000], help="sizes of the sweeps; default 1000 and 10000")
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2], help="numbers of workers; default 1 and 2")
    given = parser.parse_args(arguments)
    for cells in given.cells:
        for workers in given.workers:
            facts = measure(cells, workers)
            print(
                "  ".join(f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in facts.items()),
                flush=True,
            )


if __name__ == "__main__":
    main()
