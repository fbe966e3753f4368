"""zero_one fits with the Gaussian kernel to a certified gap against scikit-learn's SVC, on the same kernel matrix K or each with its own.

gamma = 1/d, C = 1/(lambda n), repeats interleaved. SVC solves k (k - 1) / 2 problems of two classes each, with a bias.
"""

import numpy as np
from measure import Row, cpu, fits_of, interleaved, training_part
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from advcli import AdversarialClassifier

NAMES = ("digits", "optdigits", "sat")
LAMBDAS, MUST, AIM = (1e-3, 1e-4), 0.9, 1.3


def rbf(options):
    """Rows: each data set and lambda."""
    rows = []
    for name in NAMES:
        found = training_part(name, options.size(None, 150))
        if found is None:
            print(f"rbf {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y = found
        K = rbf_kernel(X[:, :-1])  # without the constant column
        K = np.ascontiguousarray(0.5 * (K + K.T))
        for lam in LAMBDAS:
            C = 1.0 / (lam * len(y))
            models = {
                "zero_one 1e-3": AdversarialClassifier(lam=lam, tol=1e-3, features="precomputed"),
                "SVC": SVC(C=C, kernel="precomputed", cache_size=1000),
            }
            seconds = interleaved(fits_of(models, K, y), options.repeats)
            certificate = models["zero_one 1e-3"].certificate_
            assert certificate.converged
            seconds["solver"] = certificate.seconds
            detail = ", ".join(f"{each} {1e3 * value:.3g} ms" for each, value in seconds.items())
            detail += f"; passes {certificate.passes:.0f}, {certificate.solver}"
            rows.append(
                Row(f"SVC / zero_one 1e-3, {name} lambda {lam:g}", seconds["SVC"] / seconds["zero_one 1e-3"], MUST, AIM, detail=detail)
            )
    return rows


def whole(options):
    """Rows: the first 3,000 rows of two sets at two lambda, K included; SVC computes the rows of K that it asks for."""
    rows = []
    for name in ("optdigits", "sat"):
        found = training_part(name, options.size(None, 150))
        if found is None:
            print(f"rbf_whole {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y = np.ascontiguousarray(found[0][:3000, :-1]), found[1][:3000]  # without the constant column
        gamma = 1.0 / X.shape[1]
        for lam in LAMBDAS:
            models = {
                "zero_one 1e-3": AdversarialClassifier(lam=lam, tol=1e-3, features="rbf", gamma=gamma),
                "SVC": SVC(C=1.0 / (lam * len(y)), gamma=gamma, cache_size=1000),
            }
            seconds = interleaved({what: cpu(fit) for what, fit in fits_of(models, X, y).items()}, options.repeats)
            assert models["zero_one 1e-3"].certificate_.converged
            detail = ", ".join(f"{each} {1e3 * value:.3g} ms" for each, value in seconds.items())
            ratio = seconds["SVC"] / seconds["zero_one 1e-3"]
            rows.append(Row(f"SVC / zero_one 1e-3, K included, {name} lambda {lam:g}", ratio, 1.0, 1.3, detail=detail))
    return rows
