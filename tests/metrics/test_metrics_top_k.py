"""The accuracy of K guesses, against scikit-learn and by hand, in rows of a sweep, and its errors before work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import top_k_accuracy_score

from advcli import metrics
from advcli.core.errors import ConfigError, UnknownNameError
from advcli.evaluation.sweeps.sweep import sweep


@pytest.mark.parametrize("k", [3, 7, 30])
def test_against_scikit_learn(k: int) -> None:
    random = np.random.default_rng(k)
    F, y = random.normal(size=(200, k)), random.integers(0, k, 200)
    for K in range(1, k):
        mine = metrics.compute(f"top_{K}_accuracy", y, F.argmax(axis=1), k, {"scores": F})
        assert mine == pytest.approx(top_k_accuracy_score(y, F, k=K, labels=np.arange(k)), abs=1e-15)
    assert metrics.compute("top_1_accuracy", y, None, k, {"scores": F}) == metrics.compute("accuracy", y, F.argmax(axis=1), k, {})


def test_of_equal_scores_the_first_classes_are_guessed() -> None:
    F = np.array([[1.0, 1.0, 1.0, 0.0]])
    found = [metrics.compute("top_2_accuracy", np.array([label]), None, 4, {"scores": F}) for label in range(4)]
    assert found == [1.0, 1.0, 0.0, 0.0]


def test_any_number_of_guesses_is_a_name() -> None:
    for name in ("top_2_accuracy", "top_17_accuracy"):
        about = metrics.check_metric(name)
        assert (about.name, about.higher_is_better, about.percent) == (name, True, True)
        assert metrics.meaning(name) is about
    for name in ("top_k_accuracy", "top_0_accuracy", "top_05_accuracy", "top_-1_accuracy", "top_1.5_accuracy"):
        with pytest.raises(UnknownNameError, match="top_5_accuracy"):
            metrics.check_metric(name)
    with pytest.raises(ConfigError, match="the metric top_5_accuracy needs a score of every class"):
        metrics.compute("top_5_accuracy", np.zeros(2, dtype=int), np.zeros(2, dtype=int), 6, {})


def test_rows_of_every_method_have_it(tmp_path: Path) -> None:
    """More guesses are right more often, one guess as often as the prediction, and a loss of K guesses selects by its own K."""
    words = "dataset=iris loss=top_k,zero_one,cs,logistic protocol.n_splits=2 protocol.metrics=[accuracy,top_1_accuracy,top_2_accuracy]"
    fast = "protocol.stage1.regularisation=[0.1,1] protocol.stage2={}"
    rows = sweep(f"{words} {fast}", tmp_path, workers=1, quiet=True)
    table = rows.pivot_table(index=["method", "split"], columns="metric", values="value")
    assert len(table) == 8
    assert (table["top_1_accuracy"] == table["accuracy"]).all()
    assert (table["top_2_accuracy"] >= table["top_1_accuracy"]).all()
    assert (table["top_2_accuracy"] > 0.9).all()
    primary = rows.groupby("method")["metric"].first()
    assert primary["top_k linear"] == "top_2_accuracy"


def test_too_many_guesses_are_refused_before_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the metric top_3_accuracy needs more than 3 classes; iris has 3"):
        sweep("dataset=iris loss=cs hyper.C=1 protocol.n_splits=2 protocol.metrics=[top_3_accuracy]", tmp_path, workers=1, quiet=True)
