"""Sets of labels over a hierarchy: inference by enumeration, fits against an independent convex solver."""

from __future__ import annotations

from itertools import product
from typing import Any

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from support.instruction_sets import levels

from advcli.core.compiled import Kernels, kernels
from advcli.core.errors import ConfigError, IncompatibleError, NotConvergedWarning
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.best_sets import LabelSets, restricted
from advcli.learners import learner_class
from advcli.learners.hierarchical.set_problem import SetProblem, _ascend

TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("d", "f"), ("d", "g")]
DAG = [("r", "a"), ("r", "b"), ("r", "c"), ("a", "d"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f"), ("a", "f"), ("a", "g")]


@st.composite
def graphs(draw: st.DrawFn, most_parents: int) -> LabelGraph:
    M = draw(st.integers(2, 9))
    first = draw(st.integers(1, min(2, M - 1)))  # several tops, too
    edges = []
    for child in range(first, M):
        for parent in draw(st.sets(st.integers(0, child - 1), min_size=1, max_size=most_parents)):
            edges.append((f"n{parent}", f"n{child}"))
    return LabelGraph.from_edges(edges, several_tops=True)


def all_sets(sets: LabelSets) -> NDArray[np.float64]:
    """Return every set of leaves with its ancestors, shape (2**L - 1, M)."""
    chosen = np.array(list(product((0, 1), repeat=len(sets.leaves))), dtype=np.int8)[1:]
    return sets.closed(sparse.csr_array(chosen)).toarray().astype(np.float64)


def scores(sets: LabelSets, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(-0.2, 1.0, size=(4, sets.size))


def best_by_enumeration(sets: LabelSets, seed: int, slack: float) -> tuple[NDArray[np.float64], ...]:
    """Return scores, best sets and their values, which are those among all sets, and all sets."""
    R, every = scores(sets, seed), all_sets(sets)
    value, Z = sets.best(R)
    assert value == pytest.approx((R @ every.T).max(axis=1), abs=slack)
    assert {tuple(row) for row in Z} <= {tuple(row) for row in every}
    return R, Z, value, every


@settings(max_examples=60, deadline=None)
@given(graphs(1), st.integers(0, 10**6))
def test_the_best_set_of_a_tree_by_enumeration(graph: LabelGraph, seed: int) -> None:
    sets = LabelSets(graph)
    R, Z, value, _ = best_by_enumeration(sets, seed, 1e-12)
    assert np.einsum("ij,ij->i", R, Z) == pytest.approx(value, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(graphs(3), st.integers(0, 10**6))
def test_programs_on_a_dag_by_enumeration(graph: LabelGraph, seed: int) -> None:
    """The integer program finds the best set; the linear one bounds it; every set satisfies the rows and leaves' sets are all there are."""
    sets = LabelSets(graph)
    R, _, value, every = best_by_enumeration(sets, seed, 1e-6)
    relaxed, _ = sets.relaxed(R)
    assert (relaxed >= value - 1e-6).all()
    assert (sets.rows @ every.T <= 0).all()
    assert (sets.covers @ every.T <= 0).all()


def test_the_linear_program_is_exact_on_trees() -> None:
    """Its rows cut no corner and add none, although trees never need it."""
    sets = LabelSets(LabelGraph.from_edges(TREE))
    R = scores(sets, 0)
    programs = np.array(list(sets._programs(R, False)))
    assert np.einsum("ij,ij->i", R, programs) == pytest.approx(sets.best(R)[0], abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(graphs(3), st.integers(0, 10**6))
def test_multipliers_bound_the_linear_program(graph: LabelGraph, seed: int) -> None:
    sets = LabelSets(graph)
    R = scores(sets, seed)
    nu = np.random.default_rng(seed).exponential(0.3, size=(4, len(sets.child) + sets.size)).astype(np.float32)
    nu[:, len(sets.child) + sets.leaves] = 0.0  # leaves have no row
    bound = np.empty(4)
    kernels.label_sets.bounds(sets.start, sets.child, R, nu, bound)
    assert (bound >= sets.relaxed(R)[0] - 1e-6).all()


def test_restricted_keeps_the_ancestors_of_what_is_kept() -> None:
    graph = LabelGraph.from_edges(TREE)
    part, positions = restricted(graph, graph.leaf_positions(["e", "c"]))
    assert set(part.names) == {"r", "a", "b", "c", "e"}
    assert [part.names[part.leaves[i]] for i in positions] == ["e", "c"]


@settings(max_examples=60, deadline=None)
@given(graphs(3), st.integers(0, 10**6), st.floats(-2.0, 0.5))
def test_a_set_that_needs_no_program_is_the_best_by_enumeration(graph: LabelGraph, seed: int, shift: float) -> None:
    sets = LabelSets(graph)
    every = all_sets(sets)
    for r in np.random.default_rng(seed).normal(shift, 1.0, size=(4, sets.size)):
        solution = sets._certain(r)
        if (r <= 0.0).all():
            assert solution is not None
        if solution is not None:
            assert tuple(solution) in {tuple(row) for row in every}
            assert r @ solution == pytest.approx((every @ r).max(), abs=1e-6)


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_the_best_sets_do_not_depend_on_the_size_of_the_scores(size: float) -> None:
    sets = LabelSets(LabelGraph.from_edges(DAG))
    R = scores(sets, 5)
    value, Z = sets.best(R)
    small, solution = sets.best(size * R)
    assert (solution == Z).all()
    np.testing.assert_allclose(small, size * value, rtol=1e-12)


# ---- fits ---------------------------------------------------------------------------------------------------------------------


def rows(graph: LabelGraph, n: int = 40, d: int = 4, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    S = X @ rng.normal(size=(d, graph.size)) @ graph.membership.toarray().T + 0.5 * rng.normal(size=(n, len(graph.leaves)))
    Y = (S > 0.8).astype(np.int8)
    Y[np.arange(n), S.argmax(axis=1)] = 1
    return X, Y


def optimum(X: NDArray[Any], Y: NDArray[Any], sets: LabelSets, alpha: NDArray[Any] | None, lam: float) -> float:
    """Minimise lambda |W|^2 + sum of hinges by a cone solver: W, and per row a bound of the relaxed maximum by its dual program.

    max of r.z over C z <= 0, 0 <= z <= 1, z_root = 1: min over nu, eta >= 0, theta of theta + sum eta with C'nu + eta + theta e_root >= r.
    Without alpha, of one top, over weights with path sums of at most 1 too: lambda sum t_n, t_n alpha_n >= |U_n|^2, U = sqrt(alpha) W.
    """
    n, d = X.shape
    M, C = sets.size, sets.rows
    m = C.shape[0]
    true = sets.closed(sparse.csr_array(Y)).toarray()
    leaf = sets.leaf.astype(float)
    per_row = m + M + 1
    P = sparse.diags_array(np.concatenate([np.full(M * d, 2.0 * lam if alpha is not None else 0.0), np.zeros(n * per_row)])).tocsc()
    q = np.concatenate([np.zeros(M * d), np.tile(np.concatenate([np.zeros(m), np.ones(M), [1.0]]), n)])
    root = sparse.csr_array(np.eye(1, M).T)
    attribute = sparse.diags_array(np.ones(M) if alpha is None else np.sqrt(alpha))
    A, b, constant = [], [], 0.0
    for i in range(n):
        f = sparse.kron(attribute, X[i : i + 1])  # (M, M d): scores of the nodes
        q[: M * d] -= np.asarray(true[i] @ f).ravel()
        constant += Y[i].sum()
        before, after = sparse.csr_array((M, i * per_row)), sparse.csr_array((M, (n - 1 - i) * per_row))
        A.append(sparse.hstack([f, before, -C.T, -sparse.eye_array(M), -root, after]))
        b.append(-(leaf * (1.0 - 2.0 * true[i])))
    signs = sparse.hstack([sparse.csr_array((n * per_row, M * d)), -sparse.eye_array(n * per_row)]).tocsr()
    bounded = np.flatnonzero(np.arange(n * per_row) % per_row != per_row - 1)
    A.append(signs[bounded])
    b.append(np.zeros(len(bounded)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    matrix, side = sparse.vstack(A).tocsc(), np.concatenate(b)
    cones: list[Any] = [clarabel.NonnegativeConeT(len(side))]
    if alpha is None:  # variables t and alpha; |(2 U_n, t_n - alpha_n)| <= t_n + alpha_n
        paths = sparse.hstack([sparse.csr_array((len(sets.leaves), matrix.shape[1] + M)), sets.graph.membership])
        one, unit = np.eye(M), sparse.eye_array(d)
        cone = []
        for node in range(M):
            T, rest = sparse.csr_array(one[[node]]), sparse.csr_array((1, matrix.shape[1]))
            U = sparse.hstack([sparse.kron(T, -2.0 * unit), sparse.csr_array((d, matrix.shape[1] - M * d + 2 * M))])
            cone += [sparse.hstack([rest, -T, -T]), sparse.hstack([rest, -T, T]), U]
        matrix = sparse.vstack([sparse.hstack([matrix, sparse.csc_array((len(side), 2 * M))]), paths, *cone]).tocsc()
        side = np.concatenate([side, np.ones(len(sets.leaves)), np.zeros(M * (d + 2))])
        cones += [clarabel.NonnegativeConeT(len(sets.leaves)), *(clarabel.SecondOrderConeT(d + 2) for _ in range(M))]
        P = sparse.block_diag([P, sparse.csc_array((2 * M, 2 * M))])
        q = np.concatenate([q, np.full(M, lam), np.zeros(M)])
    solution = clarabel.DefaultSolver(sparse.csc_matrix(P), q, sparse.csc_matrix(matrix), side, cones, options).solve()
    assert str(solution.status) == "Solved"
    return float(solution.obj_val) + constant


def fitted(name: str, edges: list[tuple[str, str]] | None, X: Any, Y: Any, **options: Any) -> Any:
    graph_options = {} if edges is None else {"hierarchy": edges}
    return learner_class(name)(**graph_options, **options).fit(X, Y)


@pytest.mark.parametrize("edges", [TREE, DAG], ids=["tree", "dag"])
@pytest.mark.parametrize("name", ["flat", "hsvm", "nhsvm"])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_fits_reach_the_optimum_of_a_cone_solver(name: str, edges: list[tuple[str, str]], C: float) -> None:
    graph = LabelGraph.from_edges(edges)
    X, Y = rows(graph)
    model = fitted(name, None if name == "flat" else edges, X, sparse.csr_array(Y), C=C, tol=1e-3, max_passes=4000)
    certificate = model.certificate_
    assert certificate.converged
    sets = model.sets_
    alpha = np.concatenate([np.zeros(sets.first), model.alpha_])
    best = optimum(np.hstack([X, np.ones((len(X), 1))]), Y, sets, alpha, 0.5 / C) / len(X)
    assert certificate.dual <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= certificate.primal <= best * (1 + 1.1e-3)
    every = all_sets(sets)
    best_sets = every[np.argmax(sets.scores(model.potentials(X)) @ every.T, axis=1)][:, sets.leaves]
    assert (model.predict(X).toarray() == best_sets).all()
    # the certificate is about the weights that predict
    problem = SetProblem(np.hstack([X, np.ones((len(X), 1))]), sparse.csr_array(Y), np.ones(len(X)), sets, 0.5 / C)
    Z = np.vstack([np.zeros((sets.first, X.shape[1] + 1)), model.coef_]).T / np.where(alpha > 0, C * alpha, 1.0)
    exact = problem.primal(Z, alpha) / len(X)
    assert exact <= certificate.primal * (1 + 1e-9)
    assert exact >= best * (1 - 1e-6)


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("n", [3, 21])
def test_every_pass_raises_the_dual_value_of_feasible_marginals(n: int, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever rows share their vectors: fewer than lanes, equal ones, some without weight, some that are zero, dense or sparse."""
    monkeypatch.setattr("advcli.learners.hierarchical.set_problem.kernels", Kernels(level))
    sets = LabelSets(LabelGraph.from_edges(DAG))
    X, Y = rows(sets.graph, n)
    X[1], Y[1], X[2] = X[0], Y[0], 0.0
    sample = np.where(np.arange(n) % 7 == 6, 0.0, 1.0 + np.arange(n) % 2)
    reached = []
    for matrix in (X, sparse.csr_array(X)):
        problem = SetProblem(matrix, sparse.csr_array(Y), sample, sets, 0.5)
        alpha = np.linspace(0.0, 2.0, sets.size)
        mu, nu = problem.true.toarray().astype(np.float64), np.zeros((n, len(sets.child) + sets.size), dtype=np.float32)
        dual = -np.inf
        for _ in range(40):
            _, Z, _, after = _ascend(problem, alpha, mu, nu, 1e-12, 1, 0)
            assert after >= dual - 1e-9
            assert (sets.rows @ mu.T <= 1e-9).all()
            assert mu.min() >= 0
            assert mu.max() <= 1 + 1e-12
            assert (mu[:, 0] == 1).all()
            np.testing.assert_allclose(Z, X.T @ (sample[:, None] * (problem.true.toarray() - mu)), atol=1e-9)
            dual = after
        reached.append(dual)
    assert reached[0] == pytest.approx(reached[1], rel=1e-6)


def quadratic(P: NDArray[Any], q: NDArray[Any], A: Any, b: NDArray[Any], equal: int) -> NDArray[np.float64]:
    """Minimise x'Px/2 + q.x where A x = b in the first ``equal`` rows and A x <= b in the others."""
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    cones = [clarabel.ZeroConeT(equal), clarabel.NonnegativeConeT(len(b) - equal)]
    solution = clarabel.DefaultSolver(sparse.csc_matrix(P), q, sparse.csc_matrix(A), b, cones, options).solve()
    assert "Solved" in str(solution.status)
    return np.array(solution.x)


def visited(problem: SetProblem, alpha: NDArray[Any], mu: NDArray[Any], lanes: int = 8) -> NDArray[np.float64]:
    """Return mu after one visit of at most ``lanes`` rows together: each one's target by itself, then how far all go, by a cone solver."""
    X, sets, sample = problem.X, problem.sets, problem.sample
    n, M = mu.shape
    factor, true = alpha / (2.0 * problem.lam), problem.true.toarray()
    R = X @ problem.weighted(mu) * factor + sets.leaf * (1.0 - 2.0 * true)
    G = X @ X.T
    length = np.sqrt(np.diag(G))
    # rows of an idle lane would correlate with no other
    correlations = np.concatenate([np.linalg.eigvalsh(G / np.outer(length, length)), np.ones(lanes - n)])
    bound = (correlations**8).sum() ** (1.0 / 8.0)
    curvature = np.where(factor >= 1e-2 * factor.max(), factor, factor.max())
    A = np.vstack([np.eye(1, M), sets.rows.toarray(), -np.eye(M)])
    b = np.zeros(A.shape[0])
    b[0] = 1.0
    away = np.empty((n, M))
    for i in range(n):
        size = bound * G[i, i] * sample[i]
        P = size * curvature
        P[0] = 1.0  # the root is 1
        away[i] = quadratic(np.diag(P), -(P * mu[i] + np.where(np.arange(M) > 0, R[i], 0.0)), A, b, 1) - mu[i]
    H = G * np.outer(sample, sample) * ((away * factor) @ away.T)
    box = np.vstack([np.eye(n), -np.eye(n)])
    step = quadratic(H, -sample * np.einsum("ij,ij->i", R, away), box, np.repeat([1.0, 0.0], n), 0)
    return mu + step[:, None] * away


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("n", [1, 5, 8])
@pytest.mark.parametrize("edges", [TREE, DAG], ids=["tree", "dag"])
def test_a_visit_of_rows_together_is_that_of_a_cone_solver(
    edges: list[tuple[str, str]], n: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advcli.learners.hierarchical.set_problem.kernels", Kernels(level))
    monkeypatch.setattr("advcli.learners.hierarchical.set_problem._SWEEPS", 20_000)
    monkeypatch.setattr("advcli.learners.hierarchical.set_problem._PRECISION", 1e-13)
    sets = LabelSets(LabelGraph.from_edges(edges))
    X, Y = rows(sets.graph, n, seed=3)
    problem = SetProblem(X, sparse.csr_array(Y), 1.0 + np.arange(n) % 2, sets, 0.1)
    alpha = np.linspace(0.2, 2.0, sets.size)
    alpha[2:4] = 0.0, 1e-3
    every = all_sets(sets)
    mu = np.random.default_rng(n).dirichlet(np.ones(len(every)), size=n) @ every
    expected = visited(problem, alpha, mu)
    assert np.abs(expected - mu).max() > 0.01
    _ascend(problem, alpha, mu, np.zeros((n, len(sets.child) + sets.size), dtype=np.float32), 1e-12, 1, 0)
    np.testing.assert_allclose(mu, expected, atol=1e-6)


def test_the_shared_model_bounds_its_joint_problem() -> None:
    graph = LabelGraph.from_edges(TREE)
    X, Y = rows(graph)
    model = fitted("ssvm", TREE, X, Y, C=0.3, tol=1e-2)
    assert model.certificate_.converged
    paths = graph.membership @ model.alpha_
    assert (paths <= 1 + 1e-9).all()
    sets, ones = model.sets_, np.hstack([X, np.ones((len(X), 1))])
    # no weights alpha give a lower optimum than the dual value says
    for alpha in (model.alpha_ + 1e-6, np.random.default_rng(0).dirichlet(np.ones(graph.size)), fitted("nhsvm", TREE, X, Y).alpha_):
        alpha = alpha / (graph.membership @ alpha).max()
        assert optimum(ones, Y, sets, alpha, 0.5 / 0.3) / len(X) >= model.certificate_.dual * (1 - 1e-6)
    assert optimum(ones, Y, sets, model.alpha_ + 1e-9, 0.5 / 0.3) / len(X) <= model.certificate_.primal * (1 + 1e-3)


@pytest.mark.parametrize("above", [[], [("thing", "r")], [("being", "thing"), ("thing", "r")]], ids=len)
@pytest.mark.parametrize(("name", "C"), [("nhsvm", 1.0), ("nhsvm", 10.0), ("ssvm", 0.3), ("ssvm", 3.0)])
def test_nodes_without_weight_hold_nothing_up(name: str, C: float, above: list[tuple[str, str]]) -> None:
    """Nodes above all leaves, whose weight is 0, and those whose learned weight is: against a cone solver, in as many passes as without."""
    edges = [*above, *TREE]
    X, Y = rows(LabelGraph.from_edges(TREE), n=24, d=2)
    model = fitted(name, edges, X, Y, C=C, tol=1e-3, max_passes=4000)
    certificate = model.certificate_
    assert certificate.converged, certificate
    alpha = model.alpha_ if name == "nhsvm" else None
    best = optimum(np.hstack([X, np.ones((24, 1))]), Y, model.sets_, alpha, 0.5 / C) / 24
    assert certificate.dual <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= certificate.primal <= best * (1 + 1.1e-3)


def test_the_shared_model_needs_a_tree() -> None:
    X, Y = rows(LabelGraph.from_edges(DAG))
    with pytest.raises(IncompatibleError, match="needs a tree"):
        fitted("ssvm", DAG, X, Y)


@pytest.mark.parametrize("name", ["hsvm", "nhsvm"])
def test_the_order_of_the_labels_does_not_matter(name: str) -> None:
    graph = LabelGraph.from_edges(TREE)
    X, Y = rows(graph)
    names = [graph.names[leaf] for leaf in graph.leaves]
    order = np.random.default_rng(1).permutation(len(names))
    options = {"C": 0.2, "tol": 1e-4, "max_passes": 4000, "n_classes": len(names)}
    first = fitted(name, {"edges": TREE, "classes": names}, X, Y, **options)
    other = fitted(name, {"edges": TREE[::-1], "classes": [names[i] for i in order]}, X, Y[:, order], **options)
    assert other.certificate_.dual == pytest.approx(first.certificate_.dual, rel=2e-4)
    agree = (first.predict(X)[:, order] != other.predict(X)).nnz
    assert agree <= 0.02 * Y.size


def test_sparse_rows_weights_and_warm_starts() -> None:
    graph = LabelGraph.from_edges(TREE)
    X, Y = rows(graph)
    X[np.abs(X) < 0.5] = 0.0
    options = {"C": 0.2, "tol": 1e-4, "max_passes": 4000}
    dense = fitted("nhsvm", TREE, X, Y, **options)
    thin = fitted("nhsvm", TREE, sparse.csr_array(X), Y, **options)
    assert thin.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=2e-4)
    weight = np.arange(len(X)) % 3
    repeated = learner_class("nhsvm")(hierarchy=TREE, lam=0.3, tol=1e-4).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    weighted = learner_class("nhsvm")(hierarchy=TREE, lam=0.3, tol=1e-4).fit(X, Y, sample_weight=weight.astype(float))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-4)
    cold = learner_class("nhsvm")(hierarchy=TREE, C=0.3, tol=1e-3).fit(X, Y)
    warm = learner_class("nhsvm")(hierarchy=TREE, C=0.3, tol=1e-3).fit(X, Y, start=dense)
    assert warm.certificate_.converged
    assert warm.certificate_.passes < cold.certificate_.passes


def test_what_cannot_be_learned_is_said() -> None:
    X, Y = rows(LabelGraph.from_edges(TREE))
    with pytest.raises(ValueError, match="1 rows of y have no label, the first is row 3"):
        fitted("hsvm", TREE, X, np.where(np.arange(len(Y))[:, None] == 2, 0, Y))
    with pytest.raises(ConfigError, match="but y has"):
        fitted("hsvm", TREE, X, Y, n_classes=3)
    with pytest.raises(IncompatibleError, match="one label a row"):
        fitted("nhsvm", TREE, X, Y, objective="normalised")
    with pytest.warns(NotConvergedWarning, match="after 1 passes"):
        fitted("hsvm", TREE, X, Y, tol=1e-9, max_passes=1)
