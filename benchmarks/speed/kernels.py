"""zero_one fits with the Gaussian kernel to a certified gap against scikit-learn's SVC, both on the same precomputed kernel matrix.

gamma = 1/d, C = 1/(lambda n), repeats interleaved. SVC solves k (k - 1) / 2 problems of two classes each, with a bias.
"""

import numpy as np
from measure import Row, fits_of, interleaved, training_part
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
