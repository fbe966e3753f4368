"""Sizes that cannot be used are refused in one line before the work, and what rounding hides of an objective is not claimed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from support.registered import of_rows

import advcli
from advcli import AdversarialClassifier, HierarchicalSetClassifier
from advcli.core.errors import ConfigError, DataError
from advcli.data.labels.codes import MOST_EMPTY
from advcli.learners import Learner

KINDS = [kind for name in advcli.__all__ if isinstance(kind := getattr(advcli, name), type) and issubclass(kind, Learner) and of_rows(kind)]
X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.random.default_rng(1).integers(0, 3, 40)


def made(kind: Any, **options: Any) -> Any:
    return kind(**options, **({"hierarchy": [["r", "0"], ["r", "1"], ["r", "2"]]} if kind is HierarchicalSetClassifier else {}))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_classes_that_cannot_occur_are_refused(kind) -> None:
    with pytest.raises(ConfigError, match=r"n_classes=1000000 is too many for 40 rows.*at most 40 classes occur"):
        made(kind, n_classes=10**6).fit(X, Y)


def test_many_classes_are_a_fit_where_they_may_occur() -> None:
    fitted = AdversarialClassifier("cs", n_classes=MOST_EMPTY // 20).fit(X, Y)
    assert fitted.predict(X).max() < 3


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("columns", [2**27 + 1, 2**31, 2**45])
def test_columns_beyond_any_memory_are_refused(kind, columns) -> None:
    wide = sparse.csr_array((np.ones(40), (np.arange(40), np.arange(40))), shape=(40, columns))
    with pytest.raises((DataError, ValueError, ConfigError)) as caught:
        made(kind).fit(wide, Y)
    assert str(columns) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_memory_that_is_not_there_is_one_line(monkeypatch) -> None:
    def greedy(*arguments: Any, **options: Any) -> Any:
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr(AdversarialClassifier, "_fit_checked", greedy)
    with pytest.raises(ConfigError, match=r"a fit to 3 columns and 3 classes needs more memory than there is .*7.28 TiB"):
        AdversarialClassifier().fit(X, Y)


def exact_objective(fitted: Any, rows: Any, loss: str) -> float:
    """The objective at the stored parameters in rational numbers."""
    theta = [[Fraction(float(each)) for each in row] for row in fitted.theta_]
    summed = Fraction(0)
    for row, label in zip(np.c_[rows, np.ones(len(rows))], Y, strict=True):
        f = [sum(Fraction(float(x)) * weights[j] for x, weights in zip(row, theta, strict=True)) for j in range(3)]
        if loss == "zero_one":
            largest = sorted(f, reverse=True)
            summed += max((sum(largest[:m]) + m - 1) / m for m in (1, 2, 3)) - f[label]
        else:
            margins = [max(Fraction(0), 1 + f[j] - f[label]) for j in range(3) if j != label]
            summed += sum(margins) if loss == "ww" else max(margins)
    square = sum(each * each for row in theta for each in row)
    return float(Fraction(fitted.lam_) / 2 * square + summed / len(rows))


@pytest.mark.parametrize("loss", ["ww", "cs", "zero_one"])
@pytest.mark.parametrize("power", [0, 8, 12, 14, 15, 16, 18, 20, 25, 30])
@pytest.mark.filterwarnings("ignore")  # of fits that do not converge
def test_an_objective_is_not_below_the_exact_one(loss, power) -> None:
    """Where rounding of scores shows in it, theta = 0, whose objective is exact, or a bound takes its place."""
    rows = np.random.default_rng(power % 3).normal(size=(40, 3)) * 10.0**power
    fitted = AdversarialClassifier(loss).fit(rows, Y)
    at_zero = {"ww": 2.0, "cs": 1.0, "zero_one": 2.0 / 3.0}[loss]
    exact, stated = exact_objective(fitted, rows, loss), fitted.certificate_.primal
    assert stated >= exact - 2e-3 * at_zero
    assert stated <= at_zero * (1 + (1e-3 if fitted.certificate_.converged else 1e-12))
    if power <= 12:
        assert stated == pytest.approx(exact, rel=1e-4)
