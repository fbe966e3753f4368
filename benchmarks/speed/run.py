"""Measure and print every ratio beside its target: python benchmarks/speed/run.py [NAMES] [--repeats N] [--tiny] [--all-peers].

Data sets other than digits come from the folder in the variable ADVCLI_DATA; without it their rows are skipped, and said so.
"""

import argparse
import os
import sys
from pathlib import Path

# before numpy loads its BLAS
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).parent))

BENCHMARKS = {
    "epoch": ("epochs", "dense", "epoch / two BLAS passes on digits, optdigits, sat, letter"),
    "million": ("epochs", "large", "epoch / two BLAS passes, n = 1e6, d = 50, k = 10"),
    "threads": ("threads", "threads", "fits by several threads against one, wall time on idle cores"),
    "distributed": (
        "distributed",
        "distributed",
        "fits to rows in shards: rounds, bytes and processor seconds; --all-peers also starts Ray",
    ),
    "sparse": ("epochs", "sparse", "sparse epoch / scipy products, n = 1e5, d = 5e4, k = 100"),
    "oracle": ("oracle", "oracle", "zero_one oracle against numpy sort and the memory floor"),
    "products": ("products", "products", "products with few columns and weighted Gram matrices against NumPy"),
    "general": ("matrices", "general", "games of any matrix against HiGHS, warm"),
    "ordinal": ("matrices", "ordinal", "absolute and squared fits beside zero_one on computer, bank, calhousing"),
    "fits": ("peers", "fits", "zero_one fits against LinearSVC and LogisticRegression"),
    "cs": ("peers", "crammer_singer", "cs fits against LinearSVC's of the same surrogate, processor time"),
    "newcomer": ("peers", "newcomer", "a table at the defaults, C = 1, against LogisticRegression, processor time"),
    "entropy": ("entropy", "logistic", "entropy at alpha = 1 against scikit-learn's solvers of the same objective, to 1e-3 of it"),
    "small": ("peers", "small", "a fit of iris, by the estimator and in a cell, against LogisticRegression"),
    "sweeps": ("cells", "sweeps", "a cell of a sweep of 10,000 and the quickstart; --all-peers for Table 2's Gaussian half (half an hour)"),
    "portable": ("portable", "cost", "fits by arithmetic=portable over fast, processor time; --all-peers for kernel PCA of letter's shape"),
    "mapped": ("mapped", "mapped", "rows in a file of 2 GB: peak of resident memory over its mapped share, seconds, two threads"),
    "many": ("many", "many", "fits to a thousand classes and more against LinearSVC one-versus-rest; --all-peers for 10,000"),
    "mrcpy": ("peers", "minimax", "zero_one fits against MRCpy, in an environment with scikit-learn 1.6"),
    "rbf": ("kernels", "rbf", "zero_one fits with a Gaussian kernel against SVC on the same kernel matrix"),
    "rbf_whole": ("kernels", "whole", "the same with the kernel matrix included, processor time"),
    "large_c": ("large_c", "large_c", "seconds at C = 2^14 over C = 2^0, eight data sets"),
    "masters": ("masters", "masters", "the last master of constraint generation against PIQP, Clarabel and HiGHS"),
    "grid": ("large_c", "grid", "50 warm-started fits, eight data sets"),
    "uma": ("uma", "updates", "one UMA update against one read of the data that it touches"),
    "uma_letter": ("uma", "letter", "UMA on letter with 1,600 kernel components"),
    "binary": ("binary", "linear", "binary hinge fits against LinearSVC and ReHLine to equal objective, CPU time"),
    "pairs_rbf": ("binary", "pairs", "one-versus-one with a Gaussian kernel against SVC, the kernel matrix included, CPU time"),
    "binary_rbf": ("binary", "gaussian", "binary hinge fits with a Gaussian kernel against SVC to equal objective, CPU time"),
    "hierarchies": ("hierarchies", "hierarchies", "hierarchical fits against hiclass on two real trees"),
    "scale": ("scale", "scale", "hierarchical machines on documents of SWIKI's shape; --all-peers for 100,000 rows and 20,000 nodes"),
    "thresholds": ("thresholds", "thresholds", "threshold models with a Gaussian kernel against skordinal on stocks and abalone"),
    "thresholds_linear": ("thresholds", "linear", "linear threshold models on calhousing"),
    "viterbi": ("chains", "viterbi", "Viterbi's algorithm, transitions a second"),
    "chains": ("chains", "fits", "certified chains on wnut17_ner against CRFsuite, CPU time"),
    "eisner": ("trees", "eisner", "Eisner's algorithm, sums a second"),
    "trees": ("trees", "fits", "certified dependency parsers on ewt_trees, CPU time"),
    "large_c_peer": ("large_c", "large_c_peer", "LinearSVC at C >= 2^12"),
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAMES", help=f"which to run, all by default: {', '.join(BENCHMARKS)}")
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each competitor, interleaved; medians are shown")
    parser.add_argument("--tiny", action="store_true", help="sizes that end in seconds and whose numbers mean nothing")
    parser.add_argument("--all-peers", action="store_true", help="also the peers that need minutes")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}; choose from {', '.join(BENCHMARKS)}")

    import importlib

    import measure
    from threadpoolctl import threadpool_limits

    from advcli.core.compiled import kernels

    options = measure.Options(tiny=given.tiny, repeats=1 if given.tiny else given.repeats, all_peers=given.all_peers)
    print(f"instruction set {kernels.level}, one thread, medians of {options.repeats} interleaved repeats")
    missed = 0
    for name in given.names or BENCHMARKS:
        module, function, title = BENCHMARKS[name]
        with threadpool_limits(1):
            rows = getattr(importlib.import_module(module), function)(options)
        print(f"\n{name}: {title}")
        if rows:
            print(measure.table(rows), flush=True)
        missed += sum(row.verdict == "MISSED" for row in rows)
    print(f"\n{missed} ratios missed what they must reach")
    return missed


if __name__ == "__main__":
    main()
