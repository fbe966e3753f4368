"""Multinomial logistic regression: seconds to a certified 1e-3 against scikit-learn's solvers of the same objective.

A rival runs at tolerances 0.1, 0.01, ...; the first run whose objective is within 1e-3 of the optimum counts, though nothing of it says so:
the certificate is ours. One random 70 % split (seed 0), standardised, a constant column appended.
"""

import warnings

import numpy as np
from measure import Row, fits_of, interleaved, random_split
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from advcli import SurrogateClassifier

NAMES = ("redwine", "vehicle", "segment", "sat", "optdigits", "letter")
STRENGTHS = (0.01, 1.0)
RIVALS = ("lbfgs", "newton-cholesky", "newton-cg", "saga")


def logistic(options):
    """Rows: seconds of the fastest rival over ours, for each data set and C."""
    rows, names = [], NAMES if not options.tiny else ("vehicle",)
    for name in names:
        found = random_split(name, options.size(None, 120))
        if found is None:
            print(f"entropy {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y = found
        y = np.unique(y, return_inverse=True)[1]
        for C in STRENGTHS:
            exact = SurrogateClassifier("entropy", C=C, tol=1e-7, fit_intercept=False).fit(X, y)
            fits = {"ours": SurrogateClassifier("entropy", C=C, fit_intercept=False)}
            for solver in RIVALS:
                if (rival := loosest(solver, C, X, y, exact)) is not None:
                    fits[solver] = rival
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                seconds = interleaved(fits_of(fits, X, y), options.repeats)
            detail = ", ".join(f"{each} {1e3 * value:.3g} ms" for each, value in seconds.items())
            ratio = min((value for each, value in seconds.items() if each != "ours"), default=np.nan) / seconds["ours"]
            rows.append(Row(f"fastest of scikit-learn / entropy, {name}, C = {C:g}", ratio, 1.0, 1.0, detail=detail))
    return rows


def loosest(solver, C, X, y, exact):
    """Return the rival at its loosest tolerance within 1e-3 of the optimum, None where it has none."""
    for tol in 10.0 ** -np.arange(1, 8):
        model = LogisticRegression(C=C, solver=solver, tol=tol, fit_intercept=False, max_iter=2000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            W = model.fit(X, y).coef_
        scores = X @ W.T
        top = scores.max(axis=1)
        losses = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - scores[np.arange(len(y)), y]
        value = (W**2).sum() / (2.0 * C * len(y)) + losses.mean()
        if value - exact.certificate_.dual <= 1e-3 * value:
            return model
    return None
