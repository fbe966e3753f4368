"""Hierarchical fits against hiclass (one logistic regression per parent node) on the real trees: seconds, and accuracy beside them."""

import importlib.util
import warnings

import measure
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from advcli.learners import learner_class

NAMES = ("imclef07a", "imclef07d")
C = 0.01  # what the preset chooses on imclef07a; on imclef07d it takes 0.1 for flat and hsvm


def parts(name, rows):
    """Return the standardised official parts and the labels as paths, or None when the data are missing."""
    found = measure.read(name)
    if found is None:
        return None
    import os
    from pathlib import Path

    import pandas as pd

    X, y, train = found
    labels = np.unique(pd.read_csv(Path(os.environ["ADVCLI_DATA"]) / f"{name}.csv.gz")["target"])
    tree = pd.read_csv(Path(os.environ["ADVCLI_DATA"]) / f"{name}.tree.csv.gz")
    keep = np.flatnonzero(train)[:rows]
    mean, scale = X[keep].mean(axis=0), np.maximum(X[keep].std(axis=0), 1e-12)
    X = (X - mean) / scale
    edges = list(zip(tree["parent"].astype(str), tree["node"].astype(str), strict=True))
    return X[keep], y[keep], X[~train], y[~train], [str(label) for label in labels], edges


def levels(labels):
    """Return every label as its nodes from the top down, as hiclass takes them; shorter paths end in empty names."""
    paths = [["/".join(label.split("/")[: depth + 1]) for depth in range(label.count("/") + 1)] for label in labels]
    longest = max(map(len, paths))
    return np.array([path + [""] * (longest - len(path)) for path in paths], dtype=object)


def hierarchies(options):
    """Rows: hiclass / nhsvm and hiclass / flat, seconds of a fit on each tree."""
    if importlib.util.find_spec("hiclass") is None:
        print('hiclass is not installed: skipped; pip install "advcli[bench]"')
        return []
    from hiclass import LocalClassifierPerParentNode

    rows = []
    for name in NAMES:
        found = parts(name, options.size(None, 300))
        if found is None:
            print(f"hierarchies {name}: skipped, set ADVCLI_DATA to the folder of data sets")
            continue
        X, y, X_test, y_test, classes, edges = found
        paths = levels(classes)
        peer = LocalClassifierPerParentNode(LogisticRegression(max_iter=200))
        given = {"C": C, "tol": 1e-3, "n_classes": len(classes)}
        ours = {
            "flat": learner_class("flat")(**given),
            "nhsvm": learner_class("nhsvm")(hierarchy={"edges": edges, "classes": classes}, rho=1.0, **given),
        }
        calls = {"hiclass": lambda X=X, y=y, peer=peer, paths=paths: peer.fit(X, paths[y]), **measure.fits_of(ours, X, y)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            seconds = measure.interleaved(calls, options.repeats)
        said = {each: float(np.mean(model.predict_codes(X_test) == y_test)) for each, model in ours.items()}
        leaf = np.array([[node for node in path if node][-1] for path in peer.predict(X_test)])
        said["hiclass"] = float(np.mean(leaf == np.array(classes)[y_test]))
        detail = ", ".join(f"{each} {1e3 * seconds[each]:.0f} ms, accuracy {100 * said[each]:.1f} %" for each in said)
        for each in ours:
            rows.append(measure.Row(f"hiclass / {each}, {name}", seconds["hiclass"] / seconds[each], detail=detail))
    return rows
