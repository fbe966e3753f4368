"""Compare loss=label_sets with split conformal sets (LAC) of the same mean size, from logistic regression and from zero_one.

    python benchmarks/sets_at_a_price.py

Five splits, half of the rows to learn from. LAC (Sadinle, Lei & Wasserman 2019) takes the classes whose score is above a level; here the
level is set on the test rows so that the mean size is that of label_sets, which flatters LAC: it needs no rows for calibration. Scores are
probabilities of logistic regression, or the distribution of zero_one's game; C of each method by its own three-fold search.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler

from advcli import AdversarialClassifier

FOLDER = Path(__file__).resolve().parents[1] / "data"
STRENGTHS = [2.0**e for e in range(-8, 5, 4)]
PRICES = (0.1, 0.2, 0.3)
SPLITS = 5


def at_mean_size(scores: np.ndarray, mean: float) -> np.ndarray:
    """Return the sets (n, k) of the scores above one level, at least one class each, whose mean size is closest to ``mean``."""
    n = len(scores)
    best = np.eye(scores.shape[1], dtype=bool)[scores.argmax(axis=1)]
    others = np.sort(np.where(best, -np.inf, scores).ravel())[::-1]
    extra = round((mean - 1.0) * n)
    return best | (scores > (others[extra] if extra < len(others) else -np.inf)) if extra else best


def main() -> None:
    """Print a line for each data set, price and method."""
    warnings.simplefilter("ignore")
    print("set price method mean_size coverage set_loss std")
    for name in ("vehicle", "glass", "breasttissue"):
        table = pd.read_csv(FOLDER / f"{name}.csv.gz")
        X, y = table.iloc[:, :-1].to_numpy(float), np.unique(table.iloc[:, -1], return_inverse=True)[1]
        found: dict[tuple[float, str], list[tuple[float, float, float]]] = {}
        for split in range(SPLITS):
            train, test, y_train, y_test = train_test_split(X, y, train_size=0.5, random_state=split, stratify=y)
            scaler = StandardScaler().fit(train)
            train, test = scaler.transform(train), scaler.transform(test)
            logistic = GridSearchCV(LogisticRegression(max_iter=2000), {"C": STRENGTHS}, scoring="neg_log_loss", cv=3).fit(train, y_train)
            zero_one = GridSearchCV(AdversarialClassifier("zero_one"), {"C": STRENGTHS}, cv=3).fit(train, y_train)
            scores = {"logistic + LAC": logistic.predict_proba(test), "zero_one + LAC": zero_one.decision_function(test)}
            for price in PRICES:
                ours = AdversarialClassifier("label_sets", loss_options={"price": price})
                sets = GridSearchCV(ours, {"C": STRENGTHS}, cv=3).fit(train, y_train).predict(test).toarray().astype(bool)
                predicted = {"label_sets": sets} | {kind: at_mean_size(each, sets.sum(axis=1).mean()) for kind, each in scores.items()}
                for kind, each in predicted.items():
                    size, covered = each.sum(axis=1).mean(), each[np.arange(len(y_test)), y_test].mean()
                    found.setdefault((price, kind), []).append((size, covered, 1.0 - covered + price * (size - 1.0)))
        for (price, kind), rows in found.items():
            size, covered, loss = np.mean(rows, axis=0)
            print(f"{name} {price} {kind!r} {size:.2f} {covered:.3f} {loss:.4f} {np.std(rows, axis=0, ddof=1)[2]:.4f}", flush=True)


if __name__ == "__main__":
    main()
