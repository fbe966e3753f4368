"""Boosted trees with the objectives of `advcli.objectives` beside LightGBM's own: python benchmarks/boosters.py [SPLITS].

Same trees, learning rate and patience for both; objective, decision and the metric that ends the fit differ. Ordinal sets are judged by
the mean absolute error, others by the mean cost of a matrix in which taking a class for an earlier one costs 1 and the other way round 5.
Needs lightgbm, and the folder of data sets in ADVCLI_DATA.
"""

import os
import sys
from pathlib import Path

import lightgbm
import numpy as np

from advcli import objectives
from advcli.data import default_options, load

ORDINAL = ("autompg", "boston", "stocks", "machinecpu", "abalone")
NOMINAL = ("vehicle", "segment", "redwine", "glass")
TREES = {"n_estimators": 300, "learning_rate": 0.1, "num_leaves": 15, "min_child_samples": 10, "verbose": -1, "n_jobs": 1}
MUS = (0.5, 1.0, 2.0)
STOP = lightgbm.early_stopping(20, first_metric_only=True, verbose=False)


def costs(k, ordinal):
    """Return the cost matrix (k, k)."""
    steps = np.arange(k)
    apart = steps[:, None] - steps
    return np.abs(apart).astype(float) if ordinal else np.where(apart > 0, 5.0, np.where(apart < 0, 1.0, 0.0))


def split(n, seed):
    """Return rows to learn from, to stop by and to test on."""
    order = np.random.default_rng(seed).permutation(n)
    return np.split(order, [int(0.5 * n), int(0.7 * n)])


def scores_of(name, ordinal, splits):
    """Return the mean costs (splits, 2 + len(MUS)): the plain objective with its likeliest class, with the cheapest class, and ours."""
    table = load(default_options(name), Path(os.environ["ADVCLI_DATA"]))
    X, y = np.asarray(table.X), np.unique(table.y, return_inverse=True)[1]
    k, found = y.max() + 1, []
    matrix = costs(k, ordinal)
    for seed in range(splits):
        learn, stop, test = split(len(y), seed)
        if len(np.unique(y[learn])) < k:
            continue
        plain = lightgbm.LGBMClassifier(**TREES).fit(X[learn], y[learn], eval_set=[(X[stop], y[stop])], callbacks=[STOP])
        P = plain.predict_proba(X[test])
        codes = [P.argmax(axis=1), (P @ matrix.T).argmin(axis=1)]
        for mu in MUS:
            made = objectives.lightgbm("absolute" if ordinal else matrix, int(k), mu)
            start = made.start(y[learn])
            model = lightgbm.LGBMClassifier(objective=made.objective, metric="None", **TREES).fit(
                X[learn],
                y[learn],
                init_score=np.tile(start, (len(learn), 1)),
                eval_set=[(X[stop], y[stop])],
                eval_init_score=[np.tile(start, (len(stop), 1))],
                eval_metric=made.metric,
                callbacks=[STOP],
            )
            codes.append(made.predict(model.predict(X[test], raw_score=True) + start))
        found.append([matrix[each, y[test]].mean() for each in codes])
    return np.array(found)


def main(splits=10):
    """Print a row for each set."""
    print("set        plain  cheapest by its probabilities  objective at mu =", *MUS)
    for names, ordinal in ((ORDINAL, True), (NOMINAL, False)):
        for name in names:
            found = scores_of(name, ordinal, splits)
            print(f"{name:10} " + "  ".join(f"{value:.3f}" for value in found.mean(axis=0)), f" ({len(found)} splits)", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
