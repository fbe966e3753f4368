"""Large C: seconds to a certified 1e-3 at C = 2^14 over those at C = 2^0, a grid of 50 warm-started fits, and LIBLINEAR there.

One random 70 % split (seed 0) of the eight sets of linear features in Fathony et al. 2018, standardised, a constant column appended.
"""

import time
import warnings

import numpy as np
from measure import Row, fits_of, interleaved, random_split
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from advcli import AdversarialClassifier

NAMES = ("redwine", "vehicle", "glass", "segment", "pageblocks", "sat", "libras", "optdigits")
FIRST_STAGE, SECOND_STAGE = (0, 3, 6, 9, 12), (10, 11, 12, 13, 14)
FOLDS = 5


def model(exponent, tol=1e-3):
    return AdversarialClassifier(C=2.0**exponent, tol=tol, fit_intercept=False)


def splits(options):
    names = NAMES if not options.tiny else ("vehicle", "glass")
    for name in names:
        found = random_split(name, options.size(None, 120))
        if found is None:
            print(f"large C {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        yield name, *found


def large_c(options):
    """Rows: the ratio for each data set."""
    rows = []
    for name, X, y in splits(options):
        fits = {f"2^{exponent}": model(exponent) for exponent in (0, 14)}
        seconds = interleaved(fits_of(fits, X, y), options.repeats)
        detail = ", ".join(f"C={each} {1e3 * value:.3g} ms ({fits[each].certificate_.solver})" for each, value in seconds.items())
        if not all(fit.certificate_.converged for fit in fits.values()):
            detail += "; NOT CONVERGED"
        rows.append(Row(f"seconds at C=2^14 / C=2^0, {name}", seconds["2^14"] / seconds["2^0"], 5.0, 3.0, larger=False, detail=detail))
    return rows


def grid(options):
    """Rows: 50 fits (two stages of five values of C, five folds, warm starts along C) for each data set, and their sum."""
    rows, total, failed = [], 0.0, 0
    for name, X, y in splits(options):
        fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
        slowest, started = 0.0, time.perf_counter()
        for out in range(FOLDS):
            rest, solved = fold != out, {}
            for exponent in (*FIRST_STAGE, *SECOND_STAGE):
                before = [each for each in solved if each <= exponent]
                fit_started = time.perf_counter()
                fit = model(exponent).fit(X[rest], y[rest], start=solved[max(before)] if before else None)
                slowest = max(slowest, time.perf_counter() - fit_started)
                solved[exponent] = fit
                failed += not fit.certificate_.converged
        seconds = time.perf_counter() - started
        total += seconds
        rows.append(Row(f"seconds of a 50-fit grid, {name}", seconds, larger=False, detail=f"slowest fit {slowest:.3g} s"))
    if rows:
        rows.append(Row("seconds of a 50-fit grid, all together", total, 60.0, 10.0, larger=False, detail=f"{failed} fits not converged"))
    return rows


def large_c_peer(options):
    """Rows: LinearSVC (Crammer-Singer) at C = 2^12 and 2^14 on vehicle; redwine and sat too with --all-peers (minutes)."""
    rows = []
    wanted = ("vehicle", "redwine", "sat") if options.all_peers else ("vehicle",)
    for name, X, y in splits(options):
        if name not in wanted:
            continue
        for exponent in (12, 14):
            peer = LinearSVC(C=2.0**exponent, multi_class="crammer_singer", fit_intercept=False, max_iter=options.size(1_000_000, 100))
            ours = model(exponent)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                calls = fits_of({"zero_one 1e-3": ours, "LinearSVC": peer}, X, y)
                seconds = interleaved(calls, 1 if name != "vehicle" else min(options.repeats, 3))
            ratio = seconds["LinearSVC"] / seconds["zero_one 1e-3"]
            detail = ", ".join(f"{each} {value:.3g} s" for each, value in seconds.items())
            detail += f"; LinearSVC stopped after {peer.n_iter_} passes"
            rows.append(Row(f"LinearSVC / zero_one 1e-3, {name} C=2^{exponent}", ratio, 50.0, 500.0, detail=detail))
    return rows
