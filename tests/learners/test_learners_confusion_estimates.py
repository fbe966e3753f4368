"""Confusion matrices from noisy labels alone: exact counts, drawn labels, learners that take them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from advcli import UMAClassifier
from advcli.cli import main
from advcli.core.errors import DataError
from advcli.learners.confusion_estimates import ESTIMATES, estimated, solve_counts
from advcli.learners.correction import BackwardCorrectedClassifier, ForwardCorrectedClassifier

TRUE = np.array([[0.8, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.2, 0.9]])  # label seen, true class


def drawn(n: int, spread: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels seen and true classes."""
    random = np.random.default_rng(seed)
    truth = random.choice(3, p=[0.5, 0.3, 0.2], size=n)
    X = 4.0 * np.eye(3)[truth] + spread * random.normal(size=(n, 3))
    return X, np.array([random.choice(3, p=TRUE[:, q]) for q in truth]), truth


@pytest.mark.parametrize("seed", range(6))
def test_exact_counts_give_the_matrix_back(seed: int) -> None:
    random = np.random.default_rng(seed)
    k = 2 + seed % 3
    C = 0.55 * np.eye(k) + 0.45 * random.dirichlet(np.ones(k), size=k).T
    p = random.dirichlet(np.full(k, 5.0))
    counts = C @ p, np.einsum("aq,bq,q->ab", C, C, p), np.einsum("aq,bq,cq,q->abc", C, C, C, p)
    found, shares, left = solve_counts(*counts)
    np.testing.assert_allclose(found, C, atol=1e-6)
    np.testing.assert_allclose(shares, p, atol=1e-6)
    assert left < 1e-12


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimates_are_near_the_matrix_that_made_the_labels(name: str) -> None:
    X, y, _ = drawn(4000)
    found = estimated(name, X, y, 3)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, atol=1e-9)
    assert found.min() >= 0.0
    # the standard error of an entry is about .02; anchors pays for the model too
    assert np.abs(found - TRUE).max() < (0.12 if name == "anchors" else 0.08)


def test_estimates_learn_from_what_is_seen_alone_and_repeat_their_bits() -> None:
    X, y, _ = drawn(500)
    for name in ESTIMATES:
        np.testing.assert_array_equal(estimated(name, X, y, 3), estimated(name, X, y, 3))


@pytest.mark.parametrize("kind", [UMAClassifier, ForwardCorrectedClassifier, BackwardCorrectedClassifier])
@pytest.mark.parametrize("name", ESTIMATES)
def test_learners_take_them(kind: Any, name: str) -> None:
    X, y, truth = drawn(600)
    model = kind(confusion=name).fit(X, y)
    assert np.abs(model.confusion_ - TRUE).max() < 0.3
    assert model.score(X, truth) > 0.85  # the largest class has half of the rows


def test_the_command_line_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["dataset=iris", "noise=uniform", "protocol.n_splits=2", "results_dir=.", "workers=1", "hyper.C=1"]
    assert main([*words, "loss=forward", "loss.confusion=joint", "name=joint"]) == 0
    assert pd.read_csv(Path("joint") / "runs.csv")["value"].notna().all()


def test_what_identifies_no_matrix_is_refused() -> None:
    random = np.random.default_rng(1)
    X, y = random.normal(size=(2000, 3)), random.integers(0, 3, 2000)
    with pytest.raises(DataError, match="no more than by chance"):
        estimated("hoc", X, y, 3)
    for name in ESTIMATES:
        with pytest.raises(DataError, match="two rows of each label"):
            estimated(name, X[:12], np.array([0] * 6 + [1] * 6), 3)
