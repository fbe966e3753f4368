"""Methods with a dual of their own: what lies outside its set is moved back where rounding can have taken it out, and else refused."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from advcli.core.errors import NotConvergedWarning
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.best_sets import LabelSets
from advcli.learners import correction, learner_class
from advcli.learners.hierarchical import set_problem
from advcli.learners.hierarchical.leaf_problem import LeafProblem, into_shares
from advcli.learners.hierarchical.set_problem import SetProblem
from advcli.losses.base import ROUNDING

TREE = [("r", "a"), ("r", "b"), ("a", "u"), ("a", "v"), ("b", "w"), ("b", "x"), ("b", "y")]
DAG = [*TREE, ("a", "w")]
ALL = ["flat", "hsvm", "nhsvm", "ssvm"]
NOISE = np.array([[0.8, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.2, 0.9]])


def rows(n: int = 60) -> tuple[Any, Any]:
    random = np.random.default_rng(4)
    y = np.arange(n) % 5
    return random.normal(size=(n, 4)) + np.eye(5)[y][:, :4], np.array(list("uvwxy"))[y]


def fitted(name: str, X: Any, y: Any, edges: Any = TREE, **options: Any) -> Any:
    given = {} if name == "flat" else {"hierarchy": edges}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return learner_class(name)(**given, **{"C": 1.0, "tol": 1e-4, "max_passes": 2000, **options}).fit(X, y)


def refused(model: Any) -> bool:
    certificate = model.certificate_
    assert certificate.status == "infeasible_dual"
    assert not certificate.converged
    assert certificate.dual == -np.inf
    return True


# ---- one label a row ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_shares_that_sum_to_more_than_one_are_moved_back_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    exact = fitted(name, X, y, C=0.1, tol=1e-6)
    assert exact.certificate_.converged
    assert exact.dual_.sum(axis=1).max() > 1.0 - 1e-12  # a longer beta leaves its set
    ascend = LeafProblem.ascend

    def doctored(change: Any) -> Any:
        def ascended(self: LeafProblem, *given: Any) -> Any:
            beta, passes, done = ascend(self, *given)
            return change(sparse.csr_array(beta)), passes, done

        monkeypatch.setattr(LeafProblem, "ascend", ascended)
        return fitted(name, X, y, C=0.1, tol=1e-4, max_passes=200)

    for excess in (1e-12, 1e-10):
        model = doctored(lambda beta, factor=1.0 + excess: sparse.csr_array(beta * factor))
        assert model.certificate_.converged
        assert model.certificate_.dual <= exact.certificate_.primal
        assert model.dual_.sum(axis=1).max() <= 1.0 + 1e-15
    for excess in (1e-9, 1e-3, 0.3):
        assert refused(doctored(lambda beta, factor=1.0 + excess: sparse.csr_array(beta * factor)))

    def below(beta: Any) -> Any:
        beta.data[:: max(1, len(beta.data) // 5)] = -1e-6
        return beta

    assert refused(doctored(below))

    def broken(beta: Any) -> Any:
        beta.data[3] = np.nan
        return beta

    with np.errstate(invalid="ignore"):
        assert refused(doctored(broken))


def test_shares_are_left_alone_within_rounding() -> None:
    random = np.random.default_rng(0)
    beta = sparse.csr_array(random.dirichlet(np.ones(4), size=20) * random.integers(0, 2, (20, 1)))
    point, outside = into_shares(beta)
    assert point is beta
    assert 0.0 <= outside <= 4 * ROUNDING
    for bad, far in ((beta * 1.25, 0.25), (beta - sparse.csr_array(np.eye(20, 4) * 2.0), 2.0 - beta[[0]].max())):
        moved = sparse.csr_array(bad)
        point, outside = into_shares(moved)
        assert outside == pytest.approx(far, rel=0.5)
        assert point.data.min() >= 0.0
        assert point.sum(axis=1).max() <= 1.0 + 4 * ROUNDING
        assert into_shares(point)[0] is point
    assert into_shares(sparse.csr_array((3, 4)))[1] == 0.0


# ---- sets of labels -----------------------------------------------------------------------------------------------------
def several(edges: Any, n: int = 40) -> tuple[Any, Any]:
    random = np.random.default_rng(2)
    leaves = len(LabelGraph.from_edges(edges).leaves)
    Y = random.random((n, leaves)) < 0.4
    Y[np.arange(n), random.integers(0, leaves, n)] = True
    return random.normal(size=(n, 4)) + Y @ random.normal(size=(leaves, 4)), sparse.csr_array(Y.astype(np.int8))


@pytest.mark.parametrize(("name", "edges"), [*((name, TREE) for name in ALL), ("flat", DAG), ("hsvm", DAG)])
def test_marginals_outside_their_polytope_are_moved_back_or_refused(name: str, edges: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = several(edges)
    exact = fitted(name, X, Y, edges, C=0.05, tol=1e-3)
    assert exact.certificate_.converged
    ascend = set_problem._ascend

    def doctored(change: Any) -> Any:
        def ascended(problem: SetProblem, alpha: Any, mu: Any, *given: Any) -> Any:
            passes, *_ = ascend(problem, alpha, mu, *given)
            mu[:] = change(mu)
            Z, weights = problem.weighted(mu), problem.inner(alpha)
            return passes, Z, problem.primal(Z, weights, given[0]), problem.dual(mu, Z, weights)

        monkeypatch.setattr(set_problem, "_ascend", ascended)
        return fitted(name, X, Y, edges, C=0.05, tol=2e-3)

    for size in (1e-12, 1e-11):
        model = doctored(lambda mu, factor=1.0 + size: mu * factor)
        assert model.certificate_.converged
        assert model.certificate_.dual <= exact.certificate_.primal
        assert model.sets_.infeasibility(model.dual_.mu).max() <= 8 * ROUNDING
    for size in (1e-8, 1e-3):
        for change in (lambda mu, by=size: mu + by, lambda mu, by=size: mu - by, lambda mu, by=size: mu * (1.0 + by)):
            assert refused(doctored(change))


@pytest.mark.parametrize("edges", [TREE, DAG], ids=["tree", "dag"])
@pytest.mark.parametrize("size", [1e-12, 1e-6, 1e-2])
def test_marginals_are_moved_into_the_polytope(edges: Any, size: float) -> None:
    random = np.random.default_rng(1)
    sets = LabelSets(LabelGraph.from_edges(edges))
    _, Y = several(edges, 60)
    closed = sets.closed(Y).toarray().astype(np.float64)
    mixed = random.dirichlet(np.ones(60), size=30) @ closed
    C = sets.rows.toarray()
    for inner in (closed, mixed):
        assert sets.infeasibility(inner).max() <= 8 * ROUNDING
        moved = inner + size * random.normal(size=inner.shape)
        outside = sets.infeasibility(moved)
        expected = np.maximum((C @ moved.T).max(axis=0), np.maximum(-moved.min(axis=1), np.abs(moved[:, 0] - 1.0)))
        np.testing.assert_allclose(outside, expected, rtol=1e-12, atol=1e-15)
        back = sets.inside(moved)
        assert sets.infeasibility(back).max() <= 8 * ROUNDING
        assert np.abs(back - moved).max() <= 50 * size
        np.testing.assert_allclose(sets.inside(back), back, rtol=0, atol=1e-15)


def test_marginals_that_cannot_be_moved_become_the_true_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = several(DAG)
    problem = SetProblem(X, Y, np.ones(len(X)), LabelSets(LabelGraph.from_edges(DAG)), 0.5)
    truth = problem.true.toarray().astype(np.float64)
    lost = truth.copy()
    lost[5, 1:] = 0.0  # a root without children
    point, outside = problem.feasible(lost)
    assert outside == 1.0
    np.testing.assert_array_equal(point, truth)
    monkeypatch.setattr(set_problem, "_CHUNK", 1)
    lost[7, 2] += 1e-3
    point, outside = problem.feasible(lost)
    assert outside == 1.0
    assert problem.sets.infeasibility(point).max() <= 8 * ROUNDING
    np.testing.assert_array_equal(np.delete(point, 7, 0), np.delete(truth, 7, 0))
    lost[9, 3] = np.nan
    assert np.isnan(problem.feasible(lost)[1])


# ---- corrected losses ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["forward", "backward"])
def test_a_doctored_dual_point_of_a_corrected_loss_is_moved_back_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 80)
    X = random.normal(size=(80, 2)) + 2.0 * np.eye(3)[y][:, :2]
    options = {"confusion": NOISE, "lam": 0.05, "max_passes": 300}

    def fit(tol: float) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            return learner_class(name)(tol=tol, **options).fit(X, y)

    exact = fit(1e-6)
    real = correction.kernels

    def doctored(shift: float, tol: float = 1e-3) -> Any:
        def sweep(*given: Any) -> Any:
            gap = real.corrected.sweep(*given)
            given[11][:, :3] -= shift  # R
            return gap

        fake = SimpleNamespace(
            ascent_dense=real.ascent_dense, arguments=real.arguments, corrected=SimpleNamespace(sweep=sweep, width=real.corrected.width)
        )
        monkeypatch.setattr(correction, "kernels", fake)
        return fit(tol)

    for shift in (1e-12, 5e-12):
        certificate = doctored(shift).certificate_
        assert certificate.converged
        assert certificate.dual <= exact.certificate_.primal
    for shift in (1e-9, 1e-4, 0.0021):
        for signed in (shift, -shift):
            assert refused(doctored(signed))


@pytest.mark.parametrize("name", ["forward", "backward"])
def test_the_scale_of_a_corrected_losss_gap_is_said(name: str) -> None:
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    model = learner_class(name)(C=1e4, tol=1e-2).fit(10.0 * np.eye(3)[y] + 0.1 * random.normal(size=(60, 3)), y)
    certificate = model.certificate_
    assert certificate.primal < 0.1
    assert certificate.scale == pytest.approx(2 / 3)  # the loss at scores 0
    assert certificate.relative_gap == certificate.gap / certificate.scale
    plain = fitted("flat", *rows()).certificate_
    assert plain.scale == plain.primal
