"""Estimates of noise matrices beside the true one: python benchmarks/confusion_estimates.py [SPLITS].

Labels of digits, and of sets in the folder ADVCLI_DATA, are corrupted by a random matrix: each class keeps 70 % of its labels. Printed are
the mean distance |C_hat - C| of an entry, and the error on clean test rows of loss=forward with the true matrix, with each estimate, and
without.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import scale

from advcli.data import default_options, load
from advcli.learners.confusion_estimates import ESTIMATES, estimated
from advcli.learners.correction import ForwardCorrectedClassifier

SETS = ("optdigits", "letter", "vehicle", "segment")


def tables():
    """Yield names, rows and codes."""
    yield "digits", *load_digits(return_X_y=True)
    for name in SETS if "ADVCLI_DATA" in os.environ else ():
        table = load(default_options(name), Path(os.environ["ADVCLI_DATA"]))
        yield name, np.asarray(table.X), table.y


def main(splits=5):
    """Print a row for each set."""
    warnings.simplefilter("ignore")
    print("set        " + "  ".join(f"|{name}|" for name in ESTIMATES) + "   true   " + "  ".join(ESTIMATES) + "  none")
    for name, X, y in tables():
        X, k = scale(X), int(y.max()) + 1
        apart, errors = [], []
        for seed in range(splits):
            random = np.random.default_rng(seed)
            order = random.permutation(len(y))[:6000]
            learn, test = np.split(order, [int(0.7 * len(order))])
            C = 0.7 * np.eye(k) + 0.3 * random.dirichlet(np.ones(k), size=k).T
            seen = np.array([random.choice(k, p=C[:, q]) for q in y[learn]])
            found = {each: estimated(each, X[learn], seen, k) for each in ESTIMATES}
            apart.append([np.abs(found[each] - C).mean() for each in ESTIMATES])
            matrices = [C, *found.values(), np.eye(k)]
            fits = (ForwardCorrectedClassifier(confusion=M, C=0.1, tol=1e-2).fit(X[learn], seen) for M in matrices)
            errors.append([1.0 - fit.score(X[test], y[test]) for fit in fits])
        rows = [*np.mean(apart, axis=0), *np.mean(errors, axis=0)]
        print(f"{name:10} " + "  ".join(f"{value:.3f}" for value in rows), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
