"""Hierarchical support vector machines: against a cone solver over node weights, enumeration, invariances, scikit-learn's checks."""

import warnings
from dataclasses import replace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from support.instruction_sets import levels

from advcli.core.compiled import Kernels, kernels
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.core.label_graph import LabelGraph
from advcli.data.labels.node_weights import node_weights
from advcli.features.merging import equal_rows
from advcli.learners import Method, hierarchical
from advcli.learners.hierarchical import (
    Attributes,
    FlatSVM,
    HierarchicalClassifier,
    HierarchicalSVM,
    NormalisedHierarchicalSVM,
    SharedSVM,
)
from advcli.learners.hierarchical.label_graph import side_by_side
from advcli.learners.hierarchical.leaf_problem import LeafProblem, node_squares

TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d"), ("d", "e"), ("d", "f")]  # leaves b, c, e, f
DAG = [("r", "a"), ("r", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "e"), ("c", "f"), ("c", "g")]  # leaves d, e, f, g
GRAPHS = {"tree": TREE, "dag": DAG}


def problem(edges, seed=0, n=24, d=3):
    random = np.random.default_rng(seed)
    graph = LabelGraph.from_edges(edges)
    names = np.array([graph.names[leaf] for leaf in graph.leaves])
    return random.standard_normal((n, d)), names[np.r_[np.arange(len(names)), random.integers(0, len(names), n - len(names))]]


def models(edges, **common):
    found = {
        "flat": FlatSVM(**common),
        "hsvm": HierarchicalSVM(edges, **common),
        "hsvm root": HierarchicalSVM(edges, margin_power=0.5, **common),
        "nhsvm": NormalisedHierarchicalSVM(edges, **common),
        "nhsvm program": NormalisedHierarchicalSVM(edges, rho=1.0, **common),
        "nhsvm normalised": NormalisedHierarchicalSVM(edges, objective="normalised", **common),
    }
    if LabelGraph.from_edges(edges).is_tree:
        found |= {"ssvm": SharedSVM(edges, **common), "ssvm normalised": SharedSVM(edges, margin="normalised", **common)}
    return found


def definition(name, edges, classes):
    """Return attributes (k, M) and margins and divisors (k, k; row = true label) from the definitions, node by node."""
    graph = LabelGraph.from_edges(edges)
    sets = {name: {name} for name in graph.names}
    for up, down in sorted(graph.edges(), key=lambda edge: graph.number[edge[1]]):
        sets[down] = sets[down] | sets[up]
    A = np.array([[float(node in sets[label]) for node in graph.names] for label in classes])
    k = len(classes)
    apart = 1.0 - np.eye(k)
    if name == "flat":
        return np.eye(k), apart, np.ones((k, k))
    if name.startswith("hsvm"):
        hamming = np.abs(A[:, None] - A[None]).sum(axis=2)
        return A, np.sqrt(hamming) if name == "hsvm root" else hamming, np.ones((k, k))
    alpha = node_weights(graph, 1.0 if name == "nhsvm program" else 2.0)
    distance = np.sqrt((alpha * np.abs(A[:, None] - A[None])).sum(axis=2))
    if name == "nhsvm normalised":
        return A * np.sqrt(alpha), apart, distance + np.eye(k)
    if name == "ssvm":
        return A, apart, np.ones((k, k))
    return A if name.startswith("ssvm") else A * np.sqrt(alpha), distance, np.ones((k, k))


def optimum(name, X, codes, attributes, margins, divisors, lam):
    """Return the least lambda |W|^2 + sum of hinges over node weights, by Clarabel; the shared model's joint least as a cone program."""
    (n, d), (k, M) = X.shape, attributes.shape
    shared = name.startswith("ssvm")
    size = M * d + n + (2 * M if shared else 0)  # W, hinges, and t, alpha
    rows, sides = [], []
    for i in range(n):
        for label in range(k):
            row = np.zeros(size)
            if label != codes[i]:
                row[: M * d] = np.outer((attributes[label] - attributes[codes[i]]) / divisors[codes[i], label], X[i]).ravel()
            row[M * d + i] = -1.0
            rows.append(row)
            sides.append(-margins[codes[i], label])
    cost = np.zeros(size)
    cost[M * d : M * d + n] = 1.0
    P, cones = sp.csc_matrix((size, size)), [clarabel.NonnegativeConeT(n * k)]
    if shared:
        t, alpha = M * d + n, M * d + n + M
        cost[t:alpha] = lam
        budget = np.zeros((k, size))
        budget[:, alpha:] = attributes
        rows += list(budget)
        sides += [1.0] * k
        cones = [clarabel.NonnegativeConeT(n * k + k)]
        for node in range(M):  # t alpha >= |U_n|^2
            cone = np.zeros((d + 2, size))
            cone[0, [t + node, alpha + node]] = -1.0
            cone[1, t + node], cone[1, alpha + node] = -1.0, 1.0
            cone[2:, node * d : (node + 1) * d] = -2.0 * np.eye(d)
            rows += list(cone)
            sides += [0.0] * (d + 2)
            cones.append(clarabel.SecondOrderConeT(d + 2))
    else:
        P = sp.diags_array(np.r_[np.full(M * d, 2.0 * lam), np.zeros(n)]).tocsc()
    quiet = clarabel.DefaultSettings()
    quiet.verbose = False
    solution = clarabel.DefaultSolver(sp.csc_matrix(P), cost, sp.csc_matrix(np.array(rows)), np.array(sides), cones, quiet).solve()
    assert str(solution.status) == "Solved"
    z = np.asarray(solution.x)
    return float(0.5 * z @ (P @ z) + cost @ z), z[: M * d].reshape(M, d)


@pytest.mark.parametrize("C", [0.05, 2.0, 50.0])
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_model_reaches_the_optimum_of_its_definition(graph, C):
    X, y = problem(GRAPHS[graph])
    for name, model in models(GRAPHS[graph], C=C, tol=1e-6, max_passes=1e6).items():
        model.fit(X, y)
        codes = np.searchsorted(model.classes_, y)
        attributes, margins, divisors = definition(name, GRAPHS[graph], list(model.classes_))
        value, W = optimum(name, X, codes, attributes, margins, divisors, 1.0 / (2.0 * C))
        certificate = model.certificate_
        assert certificate.converged, name
        assert certificate.primal == pytest.approx(value / len(X), rel=3e-6), name
        assert certificate.dual == pytest.approx(value / len(X), rel=3e-6), name
        np.testing.assert_allclose(
            model.potentials(X), X @ (attributes @ W).T, atol=2e-2 * (1 + np.abs(X @ (attributes @ W).T).max()), err_msg=name
        )


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_certificate_is_the_definition_at_the_returned_point(graph):
    """P of the returned leaf scores, D of the returned dual point, both from node weights; weak duality after any number of passes."""
    X, y = problem(GRAPHS[graph], 1)
    lam = 0.5
    for passes in (1, 3, 9):
        for name, model in models(GRAPHS[graph], C=1.0 / (2 * lam), tol=1e-12, max_passes=passes).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConvergedWarning)
                model.fit(X, y)
            codes, n = np.searchsorted(model.classes_, y), len(X)
            attributes, margins, divisors = definition(name, GRAPHS[graph], list(model.classes_))
            F = model.potentials(X)
            hinges = ((F - F[np.arange(n), codes][:, None]) / divisors[codes] + margins[codes]).max(axis=1).sum()
            beta = model.dual_.toarray()
            assert beta.min(initial=0.0) >= 0.0
            assert beta.sum(axis=1).max() <= 1.0 + 1e-12
            gain = (beta * margins[codes]).sum()
            certificate = model.certificate_
            assert certificate.dual <= optimum(name, X, codes, attributes, margins, divisors, lam)[0] / n * (1 + 1e-6), name
            if name.startswith("ssvm"):
                continue
            R = -beta / divisors[codes]
            R[np.arange(n), codes] = -R.sum(axis=1)
            W = attributes.T @ R.T @ X / (2 * lam)
            np.testing.assert_allclose(F, X @ (attributes @ W).T, atol=1e-9)
            norm = lam * (W**2).sum()
            assert certificate.primal == pytest.approx((norm + hinges) / n, rel=1e-9), name
            assert certificate.dual == pytest.approx((gain - norm) / n, rel=1e-9), name


# ---- the kernel ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("entries", [1, 40, 10**6])
def test_squares_of_nodes_are_those_of_the_whole_product(monkeypatch, entries):
    monkeypatch.setattr("advcli.learners.hierarchical.leaf_problem._ENTRIES", entries)
    random = np.random.default_rng(0)
    membership, Z = (sp.random_array(shape, density=0.3, rng=random, format="csr") for shape in ((30, 17), (30, 12)))
    expected = ((membership.toarray().T @ Z.toarray()) ** 2).sum(axis=1)
    for each in (Z, Z.toarray()):
        assert node_squares(membership, each) == pytest.approx(expected, rel=1e-12)


def ask(monkeypatch, X, codes, attributes, beta, C, passes, tables, lists, tol=1e-12, single=False):
    """Return what the kernel says and returns, with tables or passes over the graph, dense sums or lists."""
    monkeypatch.setattr("advcli.learners.hierarchical.attributes.TABLES", 10_000 if tables else 0)
    monkeypatch.setattr("advcli.learners.hierarchical.attributes.LISTS", 0 if lists else 10_000)
    leaves = LeafProblem(X, codes, np.ones(X.shape[0]), C, False)
    fresh = Attributes(attributes.graph, attributes.positions, attributes.alpha, attributes.mu, attributes.power, attributes.normalised)
    found = kernels.hierarchical.solve(
        *leaves.rows,
        codes,
        leaves.squares,
        np.empty(0),
        *fresh.arguments,
        beta.indptr.astype(np.int64),
        beta.indices.astype(np.int32),
        beta.data,
        C,
        leaves.mass,
        tol,
        passes,
        float("inf"),
        7,
        lists,
        single,
    )
    return found[2], found[3], sp.csr_array((found[6], found[5], found[4]), shape=beta.shape)


def random_graph(seed, tree, nodes):
    random = np.random.default_rng(seed)
    edges = []
    for child in range(1, nodes):
        for parent in random.choice(child, size=1 if tree else min(child, int(random.integers(1, 4))), replace=False):
            edges.append((str(parent), str(child)))
    return LabelGraph.from_edges(edges)


@pytest.mark.parametrize("tree", [True, False], ids=["tree", "dag"])
def test_inference_is_enumeration_in_every_form_of_the_kernel(monkeypatch, tree):
    """One pass that moves nothing: the best label and the dual value at a given dual point, by tables, passes over the graph and lists."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        graph = random_graph(seed, tree, 40 if seed % 2 else 9)
        k, n, d = len(graph.leaves), 15, 6
        X = random.standard_normal((n, d)) * (random.random((n, d)) < 0.6)
        codes = random.integers(0, k, n)
        beta = random.random((n, k)) * (random.random((n, k)) < 0.3) / k
        beta[np.arange(n), codes] = 0.0
        weights = random.random((2, graph.size))
        A, C = graph.membership.toarray(), 1.5
        for power, normalised in ((0.0, False), (1.0, False), (0.5, False), (0.7, False), (0.5, True)):
            mu = weights[0] if normalised else weights[1]
            attributes = Attributes(graph, np.arange(k), weights[0], mu, power, normalised)
            apart = (mu * np.abs(A[:, None] - A[None])).sum(axis=2)
            margins = np.where(np.eye(k) > 0, 0.0, np.ones((k, k)) if normalised else apart**power)
            divisors = np.sqrt(apart) + np.eye(k) if normalised else np.ones((k, k))
            R = -beta / divisors[codes]
            R[np.arange(n), codes] = -R.sum(axis=1)
            W = C * (A * np.sqrt(weights[0])).T @ R.T @ X
            F = X @ ((A * np.sqrt(weights[0])) @ W).T
            best = np.array([max(margins[y, m] + (F[i, m] - F[i, y]) / divisors[y, m] for m in range(k)) for i, y in enumerate(codes)])
            norm = (W**2).sum() / (2 * C)
            expected = ((norm + best.sum()) / n, ((beta * margins[codes]).sum() - norm) / n)
            for tables, lists in ((True, False), (False, False), (False, True), (True, True)):
                rows = sp.csr_array(X) if lists else X
                got = ask(monkeypatch, rows, codes.astype(np.intp), attributes, sp.csr_array(beta), C, 1, tables, lists)
                np.testing.assert_allclose(got[:2], expected, rtol=1e-10)
                np.testing.assert_allclose(got[2].toarray(), beta, atol=0)


@pytest.mark.parametrize("tree", [True, False], ids=["tree", "dag"])
def test_every_form_of_the_kernel_reaches_the_same_optimum(monkeypatch, tree):
    """Few labels are optimised together, many by those that carry the row: both must arrive."""
    for seed, nodes in ((0, 12), (1, 90)):
        random = np.random.default_rng(seed)
        graph = random_graph(seed, tree, nodes)
        k, n, d = len(graph.leaves), 60, 12
        X = random.standard_normal((n, d)) * (random.random((n, d)) < 0.5)
        codes = random.integers(0, k, n).astype(np.intp)
        attributes = Attributes(graph, np.arange(k), *np.tile(random.random(graph.size) + 0.1, (2, 1)), 0.5)
        values = []
        for tables, lists in ((True, False), (False, False), (False, True)):
            rows = sp.csr_array(X) if lists else X
            primal, dual, beta = ask(monkeypatch, rows, codes, attributes, sp.csr_array((n, k)), 0.5, 1e5, tables, lists, 1e-6)
            again = LeafProblem(X, codes, np.ones(n), 0.5, False).evaluate(attributes, beta, 1e-6)
            assert (again.primal, again.dual) == pytest.approx((primal, dual), rel=1e-9)
            values.append(primal)
            assert primal - dual <= 1e-6 * primal
        np.testing.assert_allclose(values, values[0], rtol=2e-6)
        # sums of floats: the certificate, of double precision, is that of the dual point all the same
        *_, beta = ask(monkeypatch, sp.csr_array(X), codes, attributes, sp.csr_array((n, k)), 0.5, 1e5, False, True, 1e-5, single=True)
        again = LeafProblem(X, codes, np.ones(n), 0.5, False).evaluate(attributes, beta, 1e-5)
        assert 0.0 <= again.primal - again.dual <= 2e-5 * again.primal
        assert again.primal == pytest.approx(values[0], rel=2e-5)


def test_factored_weights_score_as_leaf_weights_do(monkeypatch):
    """Many labels over sparse rows: the same fit, certificate and predictions without the matrix of leaf weights."""
    X, y = problem(TREE, 3)
    rows = sp.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.7))
    for name in ("flat", "hsvm", "nhsvm", "ssvm"):
        whole = HierarchicalClassifier(TREE, model=name, C=2.0, tol=1e-6, max_passes=1e6).fit(rows, y)
        monkeypatch.setattr("advcli.learners.hierarchical.attributes.LISTS", 0)
        for precision, tol in (("double", 1e-6), ("single", 1e-5)):
            factored = HierarchicalClassifier(TREE, model=name, C=2.0, tol=tol, max_passes=1e6, precision=precision).fit(rows, y)
            assert isinstance(factored.coef_, hierarchical.FactoredWeights)
            assert factored.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2 * tol)
            np.testing.assert_allclose(factored.potentials(rows), whole.potentials(rows), atol=3e-2)
        monkeypatch.undo()


@pytest.mark.parametrize("level", levels())
def test_every_instruction_set_arrives(level, monkeypatch):
    monkeypatch.setattr("advcli.learners.hierarchical.leaf_problem.kernels", Kernels(level))
    X, y = problem(TREE, 3)
    model = NormalisedHierarchicalSVM(TREE, C=3.0, tol=1e-6).fit(X, y)
    codes = np.searchsorted(model.classes_, y)
    value, _ = optimum("nhsvm", X, codes, *definition("nhsvm", TREE, list(model.classes_)), 1 / 6.0)
    assert model.certificate_.dual == pytest.approx(value / len(X), rel=2e-6)


def test_lists_become_dense_rows_where_a_feature_meets_many_labels(monkeypatch):
    (graph, _), n = side_by_side(50), 300
    random = np.random.default_rng(0)
    X = sp.csr_array((random.random(n), (np.arange(n), random.integers(0, 3, n))), shape=(n, 3))
    codes = random.integers(0, 50, n).astype(np.intp)
    attributes = Attributes(graph, np.arange(50), np.ones(50), np.ones(50), 0.0)
    lists = ask(monkeypatch, X, codes, attributes, sp.csr_array((n, 50)), 1.0, 1e4, False, True, 1e-7)
    dense = ask(monkeypatch, X, codes, attributes, sp.csr_array((n, 50)), 1.0, 1e4, False, False, 1e-7)
    assert lists[:2] == pytest.approx(dense[:2], rel=2e-7)


# ---- invariances --------------------------------------------------------------------------------------------------------
@given(st.integers(0, 10_000), st.sampled_from([1.0, 1.5, 2.0]), st.floats(0.05, 0.95))
@settings(max_examples=15, deadline=None)
def test_splitting_a_node_s_weight_over_copies_changes_nothing(seed, rho, share):
    """Theorem 1: nodes d and b of the tree become chains whose weights add up to theirs; the Hamming margin sees the copies."""
    X, y = problem(TREE, seed)
    copied = LabelGraph.from_edges(
        [("r", "a"), ("r", "b1"), ("b1", "b"), ("a", "c"), ("a", "d1"), ("d1", "d2"), ("d2", "d"), ("d", "e"), ("d", "f")]
    )
    minimal = LabelGraph.from_edges(TREE)
    alpha = dict(zip(minimal.names, node_weights(minimal, rho), strict=True))
    parts = {"b1": share * alpha["b"], "b": (1 - share) * alpha["b"]}
    parts |= {"d1": share * alpha["d"], "d2": share * (1 - share) * alpha["d"], "d": (1 - share) ** 2 * alpha["d"]}
    split = np.array([parts.get(name, alpha.get(name, 0.0)) for name in copied.names])
    classes, codes = np.unique(y, return_inverse=True)
    leaves = LeafProblem(X, codes.astype(np.intp), np.ones(len(X)), 2.0, False)
    found = []
    for graph, weights in ((minimal, node_weights(minimal, rho)), (copied, split)):
        attributes = Attributes(graph, graph.leaf_positions(classes), weights, weights, 0.5)
        beta, _, done = leaves.ascend(attributes, sp.csr_array((len(X), len(classes))), 1e-9, 1e6, 0)
        assert done
        found.append(leaves.evaluate(attributes, beta, 1e-9))
    assert found[1].primal == pytest.approx(found[0].primal, rel=2e-9)
    np.testing.assert_allclose(found[1].coef, found[0].coef, atol=1e-3)
    hsvm = [HierarchicalSVM(edges, C=2.0, tol=1e-6, max_passes=1e6).fit(X, y).certificate_.primal for edges in (TREE, copied)]
    assert abs(hsvm[1] / hsvm[0] - 1.0) > 1e-2


def test_uniform_weights_are_the_square_root_of_hamming():
    """On a tree whose paths have h weighed nodes each, nhsvm at C is hsvm with margin_power 1/2 at C / sqrt(h)."""
    edges = [(str(node // 2), str(node)) for node in range(2, 16)]
    random = np.random.default_rng(0)
    X, y = random.standard_normal((60, 4)), np.array([str(leaf) for leaf in random.integers(8, 16, 60)])
    ours = NormalisedHierarchicalSVM(edges, rho=1.0, C=2.0, tol=1e-6, max_passes=1e6).fit(X, y)
    theirs = HierarchicalSVM(edges, margin_power=0.5, C=2.0 / np.sqrt(3.0), tol=1e-6, max_passes=1e6).fit(X, y)
    assert ours.certificate_.primal * np.sqrt(3.0) == pytest.approx(theirs.certificate_.primal, rel=2e-6)
    np.testing.assert_allclose(ours.coef_ * np.sqrt(3.0), theirs.coef_, atol=1e-2)


def test_on_one_level_the_models_are_the_flat_one():
    """The shared model's margins are 1; those of the others the root of 2 or 2, which rescales C."""
    X, y = problem(TREE, 5)
    star = [("r", name) for name in np.unique(y)]
    flat = FlatSVM(C=1.0, tol=1e-6, max_passes=1e6).fit(X, y).certificate_.primal
    for model, C, unit in (
        (SharedSVM(star), 1.0, 1.0),
        (NormalisedHierarchicalSVM(star), np.sqrt(2.0), np.sqrt(2.0)),
        (HierarchicalSVM(star), 2.0, 2.0),
        (NormalisedHierarchicalSVM(star, objective="normalised"), 2.0, 1.0),
    ):
        found = model.set_params(C=C, tol=1e-6, max_passes=1e6).fit(X, y).certificate_.primal
        assert found == pytest.approx(unit * flat, rel=3e-6)


def test_weights_count_rows():
    X, y = problem(TREE, 2)
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    weight[:4] += 1.0
    for name, model in models(TREE, C=0.7, tol=1e-7, max_passes=1e6).items():
        weighted = model.fit(X, y, sample_weight=weight).certificate_.primal
        repeated = model.fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))).certificate_.primal
        assert weighted == pytest.approx(repeated, rel=1e-6), name


@pytest.mark.parametrize("sparse", [False, True])
def test_a_start_saves_passes_and_changes_nothing_else(sparse):
    X, y = problem(TREE, 4, n=200, d=10)
    X = sp.csr_array(X) if sparse else X
    for name, model in models(TREE, C=10.0, tol=1e-5, max_passes=1e6).items():
        before = type(model)(**{**model.get_params(), "C": 2.0}).fit(X, y)
        cold = model.fit(X, y).certificate_
        warm = model.fit(X, y, start=before).certificate_
        assert warm.primal == pytest.approx(cold.primal, rel=3e-5), name
        if not name.startswith("ssvm"):
            assert warm.passes <= cold.passes, name


def test_where_labels_separate_weaker_regularisation_costs_no_passes():
    X = np.vstack([np.eye(4) + 0.1, 2 * np.eye(4)])
    y = np.array(["b", "c", "e", "f"] * 2)
    previous = NormalisedHierarchicalSVM(TREE, C=1e3, tol=1e-3).fit(X, y)
    model = NormalisedHierarchicalSVM(TREE, C=1e7, tol=1e-3).fit(X, y, start=previous)
    assert model.certificate_.converged
    assert model.certificate_.passes <= 5


# ---- the public classes ------------------------------------------------------------------------------------------------
def test_the_public_class_is_the_models():
    X, y = problem(TREE, 6)
    for model, direct in (
        (HierarchicalClassifier(TREE, model="hsvm", margin=0.5, C=2.0), HierarchicalSVM(TREE, margin_power=0.5, C=2.0)),
        (HierarchicalClassifier(TREE, rho=1.0, objective="normalised"), NormalisedHierarchicalSVM(TREE, rho=1.0, objective="normalised")),
        (HierarchicalClassifier(TREE, model="ssvm", margin="normalised"), SharedSVM(TREE, margin="normalised")),
        (HierarchicalClassifier(TREE, model="flat"), FlatSVM()),
    ):
        order, _ = equal_rows(X, np.unique(y, return_inverse=True)[1][:, None].astype(float))
        np.testing.assert_array_equal(model.fit(X, y).coef_, direct.fit(X[order], y[order]).coef_)
        assert set(model.predict(X)) <= set(y)


@pytest.mark.parametrize("model", hierarchical.MODELS)
def test_equal_rows_share_their_dual_point(model):
    """The dual point is that of the rows as they were given: it gives the weights and the dual value."""
    X, y = problem(TREE, 6)
    often = np.arange(len(X)) % 3 + 1
    X, y = np.repeat(X, often, axis=0), np.repeat(y, often)
    shuffled = np.random.default_rng(0).permutation(len(X))
    X, y = X[shuffled], y[shuffled]
    fitted = HierarchicalClassifier(TREE, model=model, C=2.0, tol=1e-4).fit(X, y)
    assert fitted.dual_.shape == (len(X), 4)
    attributes = fitted.attributes(*fitted.labels())
    if model == "ssvm":
        attributes = replace(attributes, alpha=fitted.alpha_)
    leaves = LeafProblem(X, np.searchsorted(fitted.classes_, y), np.ones(len(X)), 2.0, False)
    found = leaves.evaluate(attributes, fitted.dual_, 1e-4)
    if model != "ssvm":  # its dual value bounds the joint problem
        assert found.dual == pytest.approx(fitted.certificate_.dual, rel=1e-12)
        assert found.primal == pytest.approx(fitted.certificate_.primal, rel=1e-12)
        np.testing.assert_allclose(found.coef, fitted.coef_, atol=1e-12)
    assert found.primal >= fitted.certificate_.dual


def test_codes_find_their_leaves_by_the_names_of_the_classes():
    X, y = problem(TREE, 7)
    names = ["f", "b", "e", "c"]
    codes = np.array([names.index(label) for label in y])
    given = NormalisedHierarchicalSVM(
        {"edges": [list(edge) for edge in TREE], "classes": names}, n_classes=4, tol=1e-9, max_passes=1e6
    ).fit(X, codes)
    named = NormalisedHierarchicalSVM(TREE, tol=1e-9, max_passes=1e6).fit(X, y)
    assert given.certificate_.primal == pytest.approx(named.certificate_.primal, rel=2e-9)
    scores = named.decision_function(X)[:, np.searchsorted(named.classes_, names)]
    np.testing.assert_allclose(given.decision_function(X), scores, rtol=0, atol=1e-5)
    ahead = np.sort(scores, axis=1)  # e and f tie on some rows: no weight goes below their parent
    clear = ahead[:, -1] > ahead[:, -2] + 1e-4
    assert clear.mean() >= 0.8
    assert [names[code] for code in given.predict(X)[clear]] == list(named.predict(X)[clear])


def test_leaves_without_a_class_only_matter_to_the_weights():
    X, y = problem(TREE, 8)
    kept = y != "f"
    model = NormalisedHierarchicalSVM(TREE).fit(X[kept], y[kept])
    assert set(model.predict(X)) <= {"b", "c", "e"}


def test_build_takes_searched_hyper_parameters():
    features, solver = {"name": "linear"}, {"name": "auto"}
    nhsvm = {"name": "nhsvm", "rho": None, "hierarchy": TREE}
    model = Method(nhsvm, features, solver, {"C": 5.0, "rho": 1.0}).make(4, 0, 1e-2)
    assert (model.C, model.rho, model.tol) == (5.0, 1.0, 1e-2)
    assert Method(nhsvm, features, {}).searched == ("regularisation", "rho")
    assert Method(nhsvm | {"rho": 2.0}, features, {}).searched == ("regularisation",)
    assert Method({"name": "hsvm", "margin_power": 0.5}, features, solver, {"lambda": 0.1}).make(4, 0, 1e-2).lam == 0.1


def ascents_of(monkeypatch, model, X, y):
    """Fit; return the fitted model and how many ascents of the dual it made."""
    made, ascend = [], LeafProblem.ascend
    with monkeypatch.context() as patched, warnings.catch_warnings():
        patched.setattr(LeafProblem, "ascend", lambda *arguments: made.append(None) or ascend(*arguments))
        warnings.simplefilter("ignore", NotConvergedWarning)
        model.fit(X, y)
    return model, len(made)


def test_the_shared_model_says_how_often_it_updated_its_weights(monkeypatch):
    X, y = problem(TREE, 9, n=60)
    # rows moved by a step of their label's own: the weights of the start are far from the best, and one update is not enough
    steps = np.random.default_rng(109).standard_normal((4, 3))
    X = X + 2.0 * steps[np.unique(y, return_inverse=True)[1]]
    full, ascents = ascents_of(monkeypatch, SharedSVM(TREE, C=5.0, tol=1e-4), X, y)
    assert full.certificate_.converged
    assert full.n_updates_ == ascents - 1 > 1
    assert full.remarks_ == (f"alpha was updated {full.n_updates_} times",)
    np.testing.assert_array_less(LabelGraph.from_edges(TREE).membership @ full.alpha_, 1.0 + 1e-9)
    with pytest.warns(NotConvergedWarning):
        once = SharedSVM(TREE, C=5.0, tol=1e-4, updates=1).fit(X, y)
    assert once.n_updates_ == 1
    assert once.certificate_.relative_gap > 1e-3  # ten times the tolerance at least
    assert full.certificate_.primal * (1.0 - 1e-4) <= once.certificate_.primal


def test_the_shared_model_where_no_weights_are_best(monkeypatch):
    """Labels without a pattern: W = 0 is optimal at any alpha, of value 1; how many updates reach the gap then depends on rounding."""
    X, y = problem(TREE, 9, n=60)
    fits = [ascents_of(monkeypatch, SharedSVM(TREE, C=5.0, tol=1e-4, updates=updates), X, y) for updates in (None, 1)]
    for model, ascents in fits:
        certificate = model.certificate_
        assert model.n_updates_ == ascents - 1
        assert certificate.dual <= 1.0 + 1e-9
        assert certificate.primal >= 1.0 - 1e-9
        assert certificate.converged == (certificate.relative_gap <= 1e-4)
    assert fits[0][0].certificate_.converged
    assert fits[1][0].n_updates_ <= 1


@pytest.mark.parametrize(
    ("model", "error", "said"),
    [
        (HierarchicalSVM(), ConfigError, "needs a label graph"),
        (SharedSVM(DAG), IncompatibleError, "a tree"),
        (NormalisedHierarchicalSVM(TREE, rho=0.5), ConfigError, "rho"),
        (NormalisedHierarchicalSVM(TREE, objective="mean"), ConfigError, "objective"),
        (SharedSVM(TREE, margin="two"), ConfigError, "margin"),
        (SharedSVM(TREE, updates=-1), ConfigError, "updates"),
        (HierarchicalSVM(TREE, margin_power=0.0), ConfigError, "margin_power"),
        (HierarchicalSVM([("r", "b")]), DataError, "no node"),
        (HierarchicalSVM([("r", "b", "c")]), ConfigError, "pairs"),
        (HierarchicalSVM({"tree": TREE}), ConfigError, "edges"),
        (HierarchicalSVM(TREE, C=-1.0), ConfigError, "C"),
        (HierarchicalClassifier(TREE, model="deep"), ConfigError, "model"),
    ],
)
def test_refusals(model, error, said):
    X, y = problem(DAG if getattr(model, "hierarchy", None) is DAG else TREE)
    with pytest.raises(error, match=said):
        model.fit(X, y)
