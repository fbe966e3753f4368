"""Loss matrices: games of any matrix against HiGHS, and ordinal fits beside zero_one on the same rows."""

import os
from pathlib import Path

import numpy as np
from measure import Row, fits_of, interleaved, repeated, standardised

from advcli import AdversarialClassifier
from advcli.data import default_options, load
from advcli.losses.general import Highs, solve_games

ORDINAL = ("computer", "bank", "calhousing")


def general(options):
    """Rows: random matrices, k = 3, 10, 26, 100; HiGHS keeps its model and starts from the last basis."""
    rows = []
    for k, goals in ((3, (None, None)), (10, (20.0, 120.0)), (26, (None, None)), (100, (10.0, 20.0))):
        random = np.random.default_rng(k)
        n = options.size(max(40, 2000 // k), 5)
        matrix = random.uniform(0.2, 2.0, (k, k)) * (1.0 - np.eye(k))
        F = random.normal(size=(n, k))
        highs = Highs(matrix)
        ours, theirs = solve_games(matrix, F), highs.solve(F)
        values = [(Q @ matrix.T).min(axis=1) + np.einsum("ij,ij->i", F, Q) for Q in (ours[0], theirs[0])]
        assert np.abs(values[0] - values[1]).max() <= 1e-8
        calls = {
            "ours": lambda matrix=matrix, F=F: repeated(lambda: solve_games(matrix, F)),
            "HiGHS": lambda highs=highs, F=F: repeated(lambda: highs.solve(F)),
        }
        found = interleaved(calls, options.repeats)
        detail = ", ".join(f"{name} {1e6 * seconds / n:.3g} us/game" for name, seconds in found.items())
        rows.append(Row(f"HiGHS warm / small simplex, k={k}", found["HiGHS"] / found["ours"], *goals, detail=detail))
    return rows


def ordinal(options):
    """Rows: seconds of absolute and squared over those of zero_one to a certified 1e-3, ten classes of equal width."""
    rows = []
    for name in ORDINAL:
        folder = os.environ.get("ADVCLI_DATA")
        if not folder:
            print(f"ordinal {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        group = default_options(name)
        data = load(group, Path(folder))
        X, y = standardised(data.X), data.y
        if options.tiny:
            X, y = X[:200], y[:200]
        for C in (1.0, 64.0):
            models = {
                loss: AdversarialClassifier(loss, C=C, tol=1e-3, fit_intercept=False, n_classes=len(data.classes))
                for loss in ("zero_one", "absolute", "squared")
            }
            seconds = interleaved(fits_of(models, X, y), options.repeats)
            assert all(model.certificate_.converged for model in models.values())
            detail = ", ".join(f"{each} {value:.3g} s" for each, value in seconds.items()) + f"; n = {len(y)}, k = {len(data.classes)}"
            for loss in ("absolute", "squared"):
                rows.append(Row(f"{loss} / zero_one, {name} C={C:g}", seconds[loss] / seconds["zero_one"], larger=False, detail=detail))
                detail = ""
    return rows
