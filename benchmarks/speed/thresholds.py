"""Threshold models against skordinal (Chu's C program and a reduction over LIBSVM) with a Gaussian kernel; linear ones on calhousing.

SVOR adds 0.001 to the kernel's diagonal, and so do ours then: the problems are the same, ours to a certified gap of 1e-3, theirs to the
tolerance 1e-3 of their stopping rule. gamma = 1/d. Ours compute K and bind the rows inside the measured time, as theirs do.
"""

import importlib.util
import os
from pathlib import Path

import numpy as np
from measure import Row, fits_of, interleaved

from advcli import OrdinalAdversarialClassifier, OrdinalClassifier
from advcli.data import default_options, load

SIZES = {"stocks": 665, "abalone": 1000}  # training rows; --all-peers takes all 2,923 of abalone, minutes a fit
STRENGTHS = (1.0, 64.0, 4096.0)


def part(name, rows):
    """Return standardised training rows and codes of a random split, or None when the data are missing."""
    folder = os.environ.get("ADVCLI_DATA")
    if not folder:
        print(f"thresholds {name}: skipped, set ADVCLI_DATA to the folder of data sets")
        return None
    found = load(default_options(name), Path(folder))
    keep = np.random.default_rng(0).permutation(len(found.y))[: rows or found.sizes[0]]
    X = found.X[keep]
    return np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0, ddof=1)), found.y[keep]


def thresholds(options):
    """Rows: skordinal / ours for each method, data set and C."""
    if importlib.util.find_spec("skordinal") is None:
        print("skordinal is not installed: skipped; pip install skordinal")
        return []
    from skordinal.classifiers import REDSVM, SVOR

    rows = []
    for name, size in SIZES.items():
        found = part(name, options.size(None if options.all_peers else size, 120))
        if found is None:
            continue
        X, y = found
        gamma = 1.0 / X.shape[1]
        for C in STRENGTHS:
            given = {"C": C, "tol": 1e-3, "features": "rbf", "features_options": {"gamma": gamma}}
            peer = {"C": C, "gamma": gamma, "kernel": "rbf"}
            pairs = {
                "svorim": (OrdinalClassifier(method="svorim", ridge=1e-3, **given), SVOR(constraints="implicit", **peer)),
                "svorex": (OrdinalClassifier(method="svorex", ridge=1e-3, **given), SVOR(constraints="explicit", **peer)),
                "red_th": (OrdinalClassifier(method="red_th", **given), REDSVM(**peer)),
            }
            for method, (ours, theirs) in pairs.items():
                seconds = interleaved(fits_of({"ours": ours, "skordinal": theirs}, X, y), options.repeats)
                assert ours.certificate_.converged
                detail = f"ours {1e3 * seconds['ours']:.3g} ms, skordinal {1e3 * seconds['skordinal']:.3g} ms, {ours.n_iter_} Newton steps"
                rows.append(Row(f"skordinal / {method}, {name} C={C:g}", seconds["skordinal"] / seconds["ours"], 5.0, detail=detail))
                rows.append(Row(f"seconds of {method}, {name} C={C:g}", seconds["ours"], 10.0, larger=False))
    return rows


def linear(options):
    """Rows: seconds of linear fits to a certified 1e-3 on the training part of calhousing."""
    found = part("calhousing", options.size(None, 300))
    if found is None:
        return []
    X, y = found
    models = {method: OrdinalClassifier(method=method, C=1.0, tol=1e-3) for method in ("at", "it", "red_th")}
    models["absolute threshold"] = OrdinalAdversarialClassifier("absolute", features="threshold", C=1.0, tol=1e-3)
    seconds = interleaved(fits_of(models, X, y), options.repeats)
    assert all(model.certificate_.converged for model in models.values())
    return [
        Row(f"seconds of {name}, calhousing linear", value, 1.0, larger=False, detail=f"n = {len(y)}") for name, value in seconds.items()
    ]
