"""Whole sweeps: a tiny cell, the quickstart, Table 2's Gaussian half; by itself: python benchmarks/speed/cells.py [CELLS] [--workers N].

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

from measure import Row

PROGRAM = """
import json, resource, sys
from advcli.cli import main
code = main(sys.argv[1:])
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
peak, processor = [each.ru_maxrss // 1024 for each in used], sum(each.ru_utime + each.ru_stime for each in used)
print(json.dumps({"code": code, "parent_mb": peak[0], "worker_mb": peak[1], "processor": processor}))
"""


def run(words):
    """Run advcli with ``words`` in a folder of its own; return the seconds until each line of a cell, until the end, and its last facts."""
    with tempfile.TemporaryDirectory() as folder, open(Path(folder, "output"), "w+") as output:
        began = time.perf_counter()
        command = [sys.executable, "-c", PROGRAM, *words, "name=tiny"]
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
    return moments, ended, facts


def measure(cells, workers):
    """Run a sweep of so many cells and return its times in seconds and its memory in MB."""
    # C and the seed vary: two long axes, as a sweep over data sets and methods has
    side = max(1, round(cells**0.5))
    strengths = ",".join(str(1 + at / 1000) for at in range(side))
    words = ["-m", f"seed=range(0,{-(-cells // side)})", f"hyper.C={strengths}", "protocol.n_splits=1", "protocol.metrics=[]"]
    moments, ended, facts = run([*words, f"workers={workers}"])
    per_cell = 1000 * (moments[-1] - moments[0]) / max(len(moments) - 1, 1)
    return {
        "cells": len(moments),
        "workers": workers,
        "start_seconds": moments[0],
        "ms_per_cell": per_cell,
        "end_seconds": ended - moments[-1],
        "processor_seconds": facts["processor"],
        "parent_mb": facts["parent_mb"],
        "worker_mb": facts["worker_mb"],
    }


def sweeps(options):
    """Rows: a cell among 10,000, the quickstart with a search inside every split, and with --all-peers Table 2's Gaussian half."""
    few, many = (measure(options.size(cells, 4 * at), 1) for at, cells in enumerate((1000, 10_000), 1))
    each = 1000 * (many["processor_seconds"] - few["processor_seconds"]) / (many["cells"] - few["cells"])
    detail = f"{each:.2g} ms of processor time; " + ", ".join(f"{it['parent_mb']} MB after {it['cells']} cells" for it in (few, many))
    rows = [Row(f"ms a cell of {many['cells']}, one worker", many["ms_per_cell"], 5.0, 2.0, larger=False, detail=detail)]
    presets = {"quickstart": (60.0, 30.0)}
    if options.all_peers:
        presets["fathony2018_table2_gaussian"] = (1800.0, 1200.0)
    for preset, (must, aim) in presets.items():
        words = ["dataset=iris", "loss=zero_one", "protocol.n_splits=2"] if options.tiny else []
        moments, ended, facts = run([f"+experiment={preset}", *words, "workers=2"])
        detail = f"{len(moments)} cells, {facts['processor']:.3g} s of processor time"
        rows.append(Row(f"seconds of {preset}, two workers", ended, must, aim, larger=False, detail=detail))
    return rows


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
