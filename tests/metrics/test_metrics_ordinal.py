"""Metrics of ordered classes and of probabilities, by scikit-learn and by loops over the definitions."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, cohen_kappa_score
from sklearn.metrics import log_loss as sklearn_log_loss

from advcli import metrics
from advcli.cli import main
from advcli.core.errors import ConfigError
from advcli.testing import check_metric

ORDERED = ("accuracy_within_one", "amae", "amse", "mmae", "kendall_tau", "quadratic_kappa", "mae", "mse")
OF_PROBABILITIES = ("rps", "log_loss", "brier", "ece")


def value(name: str, y: Any, p: Any, k: int, **facts: Any) -> float:
    return metrics.compute(name, np.asarray(y), np.asarray(p), k, facts)


def draws() -> Any:
    """Yield codes, predictions that follow them more or less, and the number of classes, some of which have no rows."""
    random = np.random.default_rng(4)
    for n, k in ((1, 2), (2, 2), (7, 3), (40, 5), (300, 10), (40, 30)):
        for noise in (0, 1, k):
            y = random.integers(k, size=n)
            yield y, np.clip(y + random.integers(-noise, noise + 1, size=n), 0, k - 1), k


@pytest.mark.parametrize(("y", "p", "k"), list(draws()))
def test_by_their_definitions(y: np.ndarray, p: np.ndarray, k: int) -> None:
    n = len(y)
    assert value("accuracy_within_one", y, p, k) == sum(abs(a - b) <= 1 for a, b in zip(y, p, strict=True)) / n
    within = [np.mean([abs(a - b) for a, b in zip(y, p, strict=True) if a == one]) for one in range(k) if one in y]
    assert value("amae", y, p, k) == pytest.approx(sum(within) / len(within), rel=1e-13, abs=0)
    assert value("mmae", y, p, k) == pytest.approx(max(within), rel=1e-13, abs=0)
    squared = [np.mean([(a - b) ** 2 for a, b in zip(y, p, strict=True) if a == one]) for one in range(k) if one in y]
    assert value("amse", y, p, k) == pytest.approx(sum(squared) / len(squared), rel=1e-13, abs=0)
    signs = [(np.sign(y[i] - y[j]), np.sign(p[i] - p[j])) for i, j in combinations(range(n), 2)]
    scale = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
    tau = sum(a * b for a, b in signs) / scale**0.5 if scale else 0.0
    assert value("kendall_tau", y, p, k) == pytest.approx(tau, rel=1e-12, abs=1e-14)
    apart = np.mean([(a - b) ** 2 for a in y for b in p])
    kappa = 1 - np.mean((y - p) ** 2) / apart if apart else 0.0
    assert value("quadratic_kappa", y, p, k) == pytest.approx(kappa, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("y", "p", "k"), [each for each in draws() if len(set(each[0])) > 1 and len(set(each[1])) > 1])
def test_against_scikit_learn(y: np.ndarray, p: np.ndarray, k: int) -> None:
    assert value("quadratic_kappa", y, p, k) == pytest.approx(cohen_kappa_score(y, p, weights="quadratic", labels=range(k)), abs=1e-12)
    assert value("balanced_accuracy", y, np.where(np.isin(p, y), p, y[0]), k) == pytest.approx(
        balanced_accuracy_score(y, np.where(np.isin(p, y), p, y[0])), rel=1e-13
    )


@pytest.mark.parametrize("name", ORDERED)
def test_what_abstains_has_no_place_in_an_order(name: str) -> None:
    assert np.isnan(value(name, [0, 1, 2], [0, 3, 2], 3))
    assert not np.isnan(value(name, [0, 1, 2], [0, 2, 2], 3))


def test_one_class_orders_nothing() -> None:
    """Neither is 0 / 0: a table's means stay numbers."""
    for y, p in (([1, 1, 1], [0, 1, 2]), ([0, 1, 2], [1, 1, 1]), ([1, 1], [1, 1])):
        assert value("kendall_tau", y, p, 3) == 0.0
        assert value("quadratic_kappa", y, p, 3) == pytest.approx(0.0, abs=1e-15)


def test_an_absent_class_is_left_out() -> None:
    """A class that is only predicted has no rows whose mean could be taken."""
    y, p = [0, 0, 0, 3], [0, 0, 1, 1]
    assert value("amae", y, p, 4) == pytest.approx((1 / 3 + 2) / 2)
    assert value("mmae", y, p, 4) == 2.0
    assert value("balanced_accuracy", y, p, 4) == pytest.approx((2 / 3 + 0) / 2)
    assert value("balanced_accuracy", y, [0, 0, 4, 4], 4) == pytest.approx((2 / 3 + 0) / 2), "an abstention is not the class"


@pytest.mark.parametrize("k", [2, 3, 6])
def test_probabilities(k: int) -> None:
    random = np.random.default_rng(k)
    y = np.r_[np.arange(k), random.integers(k, size=30)]
    P = random.dirichlet(np.full(k, 0.5), size=len(y))
    P[0] = np.eye(k)[k - 1]  # certain, and wrong
    P[1] = np.eye(k)[1]
    total = 0.0
    for row, truth in zip(P, y, strict=True):
        for j in range(k):
            total += (row[: j + 1].sum() - (truth <= j)) ** 2
    given = {"probabilities": P}
    assert value("rps", y, y, k, **given) == pytest.approx(total / len(y), rel=1e-12)
    assert value("log_loss", y, y, k, **given) == pytest.approx(sklearn_log_loss(y, P, labels=range(k)), rel=1e-12)
    assert value("brier", y, y, k, **given) == pytest.approx(
        brier_score_loss(y, P if k > 2 else P[:, 1], labels=range(k), scale_by_half=False), rel=1e-12
    )


@pytest.mark.parametrize("k", [2, 3, 6])
def test_calibration_error_by_its_definition(k: int) -> None:
    random = np.random.default_rng(k)
    y = random.integers(k, size=200)
    P = random.dirichlet(np.full(k, 0.5), size=200)
    P[0], P[1] = np.eye(k)[0], np.full(k, 1 / k)  # the last bin; all classes alike, and for k = 3 the end of a bin
    total, seen = 0.0, 0
    for b in range(15):
        of_bin = [i for i in range(200) if b / 15 < P[i].max() <= (b + 1) / 15]
        seen += len(of_bin)
        total += abs(sum(P[i].max() for i in of_bin) - sum(int(P[i].argmax()) == y[i] for i in of_bin))
    assert seen == 200
    assert value("ece", y, y, k, probabilities=P) == pytest.approx(total / 200, rel=1e-12)
    assert metrics.reliability(y, P)[0].sum() == 200


def test_calibration_error_of_sure_and_of_honest_guesses() -> None:
    y = np.array([0, 1, 0, 1])
    assert value("ece", y, y, 2, probabilities=np.eye(2)[y]) == 0.0
    assert value("ece", y, y, 2, probabilities=np.eye(2)[1 - y]) == 1.0
    assert value("ece", y, y, 2, probabilities=np.tile([1.0, 0.0], (4, 1))) == 0.5
    assert value("ece", y, y, 2, probabilities=np.full((4, 2), 0.5)) == 0.0, "half of the rows are of the class that half is given to"


def test_a_sure_guess_one_class_off_has_half_the_score_of_one_two_off() -> None:
    near, far = ([[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]])
    assert value("rps", [0], [1], 3, probabilities=np.array(near)) == 1.0
    assert value("rps", [0], [2], 3, probabilities=np.array(far)) == 2.0


@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_contract(name: str) -> None:
    check_metric(name)


@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_without_probabilities(name: str) -> None:
    with pytest.raises(ConfigError, match="a distribution over the classes"):
        value(name, [0, 1], [0, 1], 2)


def test_the_page_names_every_metric() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/metrics.md").read_text(encoding="utf-8")
    of_package = [name for name in metrics.names() if metrics.meaning(name).function.__module__ == metrics.__name__]
    assert [name for name in of_package if f"`{name}`" not in page] == []


@pytest.mark.parametrize("loss", ["ww", "uma", "linear_svc", "abstain"])
@pytest.mark.parametrize("words", [["protocol.metric=rps"], ["protocol.metrics=[error,log_loss]"]])
def test_methods_without_probabilities_are_refused_before_work(
    loss: str, words: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dataset=iris", f"loss={loss}", *words, "name=x"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "needs a distribution over the classes; choose loss=logistic or zero_one, or estimate it by calibrate=vector" in err
    assert f"loss={loss} has none" in err
    assert not list(tmp_path.rglob("runs.csv"))
