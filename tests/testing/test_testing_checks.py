"""`advcli.testing`: every class of the package's registries passes, and classes that are broken in one way are told so in one sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.registered import canonical_losses, in_package

from advcli import AdversarialClassifier, metrics, testing
from advcli.core.errors import ConfigError
from advcli.learners import LinearLearner
from advcli.losses import Answer, examples_of, loss_class, make_loss
from advcli.losses.convex_columns import ConvexColumnsLoss
from advcli.losses.zero_one import ZeroOneLoss
from advcli.problems.risk import Solution
from advcli.reports.drawing import draw
from advcli.reports.figures import Material, ReportFigure
from advcli.reports.figures import registry as figures
from advcli.reports.formats.document import Figure
from advcli.solvers.base import registry as solvers
from advcli.solvers.coordinate.dense import DualSolver
from advcli.solvers.stochastic.subgradient import PegasosSolver
from advcli.testing.losses import SIZES


@pytest.mark.parametrize("name", canonical_losses())
def test_every_loss_passes(name: str) -> None:
    testing.check_loss(loss_class(name))


@pytest.mark.parametrize("name", [name for name in solvers if in_package(solvers.get(name))])
def test_every_solver_passes(name: str) -> None:
    testing.check_solver(solvers.get(name))


def test_surrogates_pass_as_learners() -> None:
    for loss in ("cs", ZeroOneLoss, [[0, 1, 4], [1, 0, 2], [3, 1, 0]]):
        testing.check_learner(AdversarialClassifier(loss), scikit_learn=False)


@pytest.mark.parametrize("name", [name for name in metrics.names() if not metrics.meaning(name).needs])
def test_every_metric_without_facts_passes(name: str) -> None:
    testing.check_metric(name)


def test_metrics_with_facts_pass() -> None:
    testing.check_metric("cost", cost_matrix=1.0 - np.eye(3))
    testing.check_metric("abstention_loss", alpha=0.5)


FIGURES = [name for name in figures if in_package(figures.get(name).draw)]


ELSEWHERE = {"confusion", "coverage", "curves", "effort", "gaps", "selection", "learning", "means", "published", "ranks", "splits"}
"""Drawn by the tests of reports, too."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in ELSEWHERE else []) for name in FIGURES])
def test_every_figure_passes(name: str) -> None:
    testing.check_figure(name)


class Wider(ConvexColumnsLoss):
    """Has other options than the class whose examples it inherits."""

    def __init__(self, n_classes: int, width: float = 1.0) -> None:
        labels = np.arange(float(n_classes))
        super().__init__(n_classes, matrix=np.maximum(np.abs(labels[:, None] - labels) - width, 0.0))


def test_inherited_examples_are_those_that_the_class_takes() -> None:
    assert examples_of(Wider, 3) == [{}]
    testing.check_loss(Wider)
    for name in canonical_losses():
        for k in SIZES:
            for options in examples_of(loss_class(name), k):
                make_loss(name, k, **options)


# ---- what is broken is found ----------------------------------------------------------------------------------------------
class Shifted(ZeroOneLoss):
    def oracle_reference(self, F: Any, y: Any) -> Answer:
        answer = super().oracle_reference(F, y)
        return Answer(answer.value + 1e-6, answer.R, answer.offset)


class Steep(ZeroOneLoss):
    def oracle_reference(self, F: Any, y: Any) -> Answer:
        answer = super().oracle_reference(F, y)
        return Answer(answer.value, -answer.R, answer.value + np.einsum("ij,ij->i", answer.R, F))


class Blind(ZeroOneLoss):
    def infeasibility(self, R: Any, y: Any) -> Any:
        return np.zeros(len(y))


class Generous(ZeroOneLoss):
    def offset(self, R: Any, y: Any) -> Any:
        return super().offset(R, y) + 1e-3


class Timid(ZeroOneLoss):
    def predictor(self, F: Any) -> Any:
        return np.full(F.shape, 1.0 / F.shape[1])


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Shifted, r"Shifted with 1 classes and options {}: r.f \+ c is not the value"),
        (Steep, "r is no subgradient"),
        (Blind, "infeasibility does not see"),
        (Generous, "offset and offset_reference differ"),
        (Timid, "a player gains by another response"),
    ],
)
def test_a_broken_loss_is_told(broken: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        testing.check_loss(broken)


class Careless(DualSolver):
    """Writes to the start, or gives other bits, or boasts, by its option."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault, self.calls = fault, 0

    def solve(self, problem: Any, limits: Any, start: Solution | None = None, seed: int = 0) -> Solution:
        if self.fault == "writes" and start is not None:
            start.theta += 1.0
        found = super().solve(problem, limits, None if self.fault == "writes" else start, seed)
        if self.fault == "random":
            return dataclasses.replace(found, theta=found.theta * (1.0 + 1e-6 * np.random.default_rng().normal()))
        if self.fault == "boasts":
            return dataclasses.replace(found, status="converged")
        if self.fault == "untrue":
            return dataclasses.replace(found, theta=found.theta + 1.0)
        return found


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("writes", "writes to the solution that it starts from"),
        ("random", "the same seed gives other bits"),
        ("boasts", "without any time it says 'converged'"),
        ("untrue", "stopped at a relative gap of"),
    ],
)
def test_a_broken_solver_is_told(fault: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        testing.check_solver(Careless, fault=fault)
    testing.check_solver(PegasosSolver)


class Forgetful(LinearLearner):
    """Broken by its option."""

    name = "forgetful"

    def __init__(
        self, fault: str = "", features: str = "linear", features_options: Any = None, n_classes: Any = None, random_state: int = 0
    ) -> None:
        self.fault = fault
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state if fault != "changes" else 1.0 * random_state

    def _mapped(self, X: Any) -> Any:
        if self.fault == "rows":
            X = X - X.mean(axis=0)
        return super()._mapped(2.0 * X if self.fault == "sparse" and hasattr(X, "tocsr") else X)

    def learn(self, X: Any, y: Any, weights: Any) -> Any:
        self.certified = self.fault == "boasts"
        rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        coef = np.eye(len(self.classes_), X.shape[1]) @ np.atleast_2d(np.cov(rows.T))
        if self.fault == "random":
            coef += np.random.default_rng().normal(size=coef.shape)
        return coef[:2] if self.fault == "short" else coef * (1.0 if self.n_classes is None or self.fault != "coded" else 2.0)


def test_a_broken_learner_is_told() -> None:
    testing.check_learner(Forgetful(), scikit_learn=False)
    faults = [
        ("random", "other bits"),
        ("short", "Forgetful returned an array of shape .2, 3."),
        ("coded", "codes with n_classes=3"),
    ]
    faults += [("sparse", "sparse rows have other potentials"), ("boasts", "there is no certificate")]
    for fault, said in faults:
        with pytest.raises((AssertionError, ConfigError), match=said):
            testing.check_learner(Forgetful(fault), scikit_learn=False)
    with pytest.raises(AssertionError, match="scikit-learn's check_"):  # what a row is predicted depends on the others
        testing.check_learner(Forgetful("rows"))


def test_a_broken_metric_is_told() -> None:
    def first(y: Any, predicted: Any, n_classes: int, facts: Any) -> float:
        return float(y[0] != predicted[0])

    def wrong(y: Any, predicted: Any, n_classes: int, facts: Any) -> float:
        return float(np.mean(y != predicted))

    with pytest.raises(AssertionError, match="metric first: the order of the rows changes it"):
        testing.check_metric(first)
    testing.check_metric(wrong)
    with pytest.raises(AssertionError, match="a prediction with errors is better"):
        testing.check_metric(metrics.Metric("wrong", wrong, higher_is_better=True))
    with pytest.raises(AssertionError, match="is no whole number"):
        testing.check_metric(metrics.Metric("half", lambda *given: wrong(*given) / 7, is_count=True))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("", ""),
        ("named", "the file other must be named mine or mine-WORDS"),
        ("twice", "two drawings have one name"),
        ("nothing", "nothing is drawn"),
        ("random", "the same rows give other bytes"),
        ("writes", "changes the rows"),
        ("words", "its caption is no sentence"),
        ("few", "rows with one data set, method and split end in IndexError"),
        ("column", "it needs the column depth, which no rows have"),
    ],
)
def test_a_broken_figure_is_told(fault: str, said: str) -> None:
    def mine(material: Material) -> Iterator[Figure]:
        if fault == "writes":
            material.runs["value"] = 0.0
        if fault == "few":
            material.summary.iloc[4]
        width = 3.0 + np.random.default_rng().uniform() if fault == "random" else 3.0
        for _ in range(0 if fault == "nothing" else 2 if fault == "twice" else 1):
            name, caption = "other" if fault == "named" else "mine-error", "words" if fault == "words" else "A sentence."
            yield draw(name, caption, (width, 2.0), lambda axes: axes.set_xlabel("x"))

    item = ReportFigure("mine", "results", ("depth",) if fault == "column" else ("value",), mine)
    if not fault:
        testing.check_figure(item)
        return
    with pytest.raises(AssertionError, match=said):
        testing.check_figure(item)
