"""Sets of leaves over a hierarchy: optima against a conic solver over all sets, other searches and trainings, and bad input."""

import itertools
import warnings

import clarabel
import numpy as np
import pytest
import support.thesis_searches  # noqa: F401 - registers them
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.learners.base import Rows
from advcli.learners.hierarchical import HierarchicalSVM
from advcli.learners.hierarchical.label_graph import side_by_side
from advcli.learners.structured import HierarchicalSetClassifier, leaf_sets
from advcli.learners.structured.leaf_sets import LevelledLeafSets
from advcli.learners.structured.spaces.psi import make_psi
from advcli.testing import check_learner

TREE = [("r", "a"), ("r", "b"), ("a", "c"), ("a", "d"), ("d", "e"), ("d", "f")]  # leaves b, c, e, f
DAG = [("r", "a"), ("r", "b"), ("a", "c"), ("b", "c"), ("a", "d"), ("b", "e"), ("c", "f"), ("c", "g")]  # leaves d, e, f, g
FOREST = [("p", "a"), ("p", "b"), ("q", "c"), ("q", "d")]
NODES = {  # above each leaf, by hand
    "tree": {"b": "br", "c": "car", "e": "edar", "f": "fdar"},
    "dag": {"d": "dar", "e": "ebr", "f": "fcabr", "g": "gcabr"},
    "forest": {"a": "ap", "b": "bp", "c": "cq", "d": "dq"},
}
GRAPHS = {"tree": TREE, "dag": DAG, "forest": {"edges": FOREST}}
AFFINE = [("margin", None), ("slack", None), ("scaling", 0.5), ("f1", None)]


def problem(seed, n=7, d=2):
    """Return rows with sets of four leaves, none of them empty and one full."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Y = (random.random(size=(n, 4)) < 0.4).astype(int)
    Y[np.arange(n), random.integers(0, 4, n)] = 1
    Y[0] = 1
    return X, Y


def listed(graph, X, Y):
    """Return for every row phi(x, z) - phi(x, y_i) of all sets (15, D), the numbers of leaves that differ and the sizes of both."""
    leaves = NODES[graph]
    names = sorted(set("".join(leaves.values())))
    every = [np.array(z) for z in itertools.product((0, 1), repeat=4) if any(z)]

    def phi(x, z):
        inside = set("".join(above for above, has in zip(leaves.values(), z, strict=True) if has))
        return np.concatenate([x * (name in inside) for name in names])

    found = []
    for x, y in zip(X, Y, strict=True):
        A = np.array([phi(x, z) - phi(x, y) for z in every])
        found.append((A, np.array([float((z != y).sum()) for z in every]), np.array([float(z.sum() + y.sum()) for z in every])))
    return found


def axes(psi, margin, wrong, sizes):
    return (margin + wrong, -sizes) if psi.axes == "f1" else (margin, wrong)


def weights(model):
    """Return w of a fit in the order of the nodes' names."""
    return np.concatenate([row for _, row in sorted(zip(model.sets_.graph.names, model.coef_, strict=True), key=lambda each: each[0])])


def objective(psi, lam, points, w, mass=None):
    """Return P(w)."""
    worst = [max(0.0, float(psi.value(*axes(psi, A @ w, wrong, sizes)).max())) for A, wrong, sizes in points]
    return 0.5 * lam * w @ w + float(np.average(worst, weights=mass))


def conic_optimum(psi, lam, points):
    """Return min P of an affine psi by Clarabel, a row for every set."""
    n, D = len(points), points[0][0].shape[1]
    P = sparse.diags_array(np.concatenate([np.full(D, lam), np.zeros(n)])).tocsc()
    rows, bounds = [], []
    for i, (A, wrong, sizes) in enumerate(points):
        h, g = axes(psi, np.zeros(len(A)), wrong, sizes)
        slopes, constants = psi.slopes(h, g)[0], psi.value(h, g)
        rows += [np.concatenate([slope * a, -np.eye(n)[i]]) for slope, a in zip(slopes, A, strict=True)]
        bounds += list(-constants)
    options = clarabel.DefaultSettings()
    options.verbose = False
    q = np.concatenate([np.zeros(D), np.full(n, 1.0 / n)])
    cones = [clarabel.NonnegativeConeT(len(rows))]
    return clarabel.DefaultSolver(P, q, sparse.csc_array(np.array(rows)), np.array(bounds), cones, options).solve().obj_val


def fitted(graph, X, Y, **options):
    given = {"C": 1.0, "tol": 1e-7, "max_passes": 2000, "fit_intercept": False}
    return HierarchicalSetClassifier(GRAPHS[graph], **given | options).fit(X, Y)


@pytest.mark.parametrize("graph", ["tree", "forest"])
@pytest.mark.parametrize(("surrogate", "beta"), AFFINE)
def test_the_optimum_is_that_of_a_conic_solver_over_all_sets(surrogate, beta, graph):
    X, Y = problem(3)
    model, psi, points = fitted(graph, X, Y, surrogate=surrogate, beta=beta), make_psi(surrogate, beta), listed(graph, X, Y)
    assert model.certificate_.primal == pytest.approx(conic_optimum(psi, model.lam_, points), rel=1e-6)
    assert objective(psi, model.lam_, points, weights(model)) == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert model.oracle_gap_ == 0.0


@pytest.mark.parametrize(("surrogate", "beta"), AFFINE)
def test_a_graph_with_several_parents_has_the_integral_optimum(surrogate, beta):
    X, Y = problem(4, n=6)
    model = fitted("dag", X, Y, surrogate=surrogate, beta=beta, tol=1e-6)
    psi, points = make_psi(surrogate, beta), listed("dag", X, Y)
    assert model.certificate_.converged
    assert model.oracle_gap_ == 0.0
    assert model.certificate_.primal == pytest.approx(conic_optimum(psi, model.lam_, points), rel=1e-5)
    assert objective(psi, model.lam_, points, weights(model)) == pytest.approx(model.certificate_.primal, rel=1e-12)


@pytest.mark.parametrize(("surrogate", "beta"), [("margin", None), ("slack", None)])
def test_a_graph_of_many_leaves_is_searched_exactly(surrogate, beta, monkeypatch):
    """As if four leaves were too many to list their sets: integer programs, by angles for slack rescaling."""
    monkeypatch.setattr(leaf_sets, "MOST_LABELS", 1)
    X, Y = problem(4, n=4)
    model = fitted("dag", X, Y, surrogate=surrogate, beta=beta, tol=1e-3)
    best = conic_optimum(make_psi(surrogate, beta), model.lam_, listed("dag", X, Y))
    assert best * (1.0 - 1e-9) <= model.certificate_.primal <= best * (1.0 + 2e-3)


@pytest.mark.parametrize(("surrogate", "beta"), [*AFFINE, ("log", None), ("prob", None)])
def test_listed_sets_are_the_levels_of_a_tree(surrogate, beta, monkeypatch):
    X, Y = problem(5)
    levels = fitted("tree", X, Y, surrogate=surrogate, beta=beta, tol=1e-4)
    monkeypatch.setattr(leaf_sets, "LevelledLeafSets", leaf_sets.ListedLeafSets)
    every = fitted("tree", X, Y, surrogate=surrogate, beta=beta, tol=1e-4)
    assert every.certificate_.primal == pytest.approx(levels.certificate_.primal, rel=2e-4)
    assert every.oracle_gap_ == levels.oracle_gap_ == 0.0


@pytest.mark.parametrize("surrogate", ["log", "prob"])
def test_curved_surrogates_are_certified(surrogate):
    X, Y = problem(5)
    model, points = fitted("tree", X, Y, surrogate=surrogate, tol=1e-5), listed("tree", X, Y)
    psi, w, random = make_psi(surrogate), weights(model), np.random.default_rng(0)
    assert model.certificate_.converged
    assert objective(psi, model.lam_, points, w) == pytest.approx(model.certificate_.primal, rel=1e-12)
    for scale in (1e-3, 1e-2, 0.1):  # no point around is below the certified bound
        others = [objective(psi, model.lam_, points, w + scale * random.normal(size=w.shape)) for _ in range(40)]
        assert min(others) >= model.certificate_.dual


def test_margin_rescaling_is_the_hierarchical_svm():
    X, Y = problem(6, n=40, d=3)
    ours = HierarchicalSetClassifier(TREE, C=0.8, tol=1e-6).fit(X, Y)
    theirs = HierarchicalSVM(TREE, margin_power=1.0, C=0.8, tol=1e-6).fit(X, Y)
    assert ours.certificate_.dual <= theirs.certificate_.primal
    assert theirs.certificate_.dual <= ours.certificate_.primal
    np.testing.assert_array_equal(ours.sets_.leaves, theirs.sets_.leaves)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)


@given(
    seed=st.integers(0, 10**6), which=st.sampled_from([*AFFINE, ("log", None), ("prob", None)]), graph=st.sampled_from(["tree", "forest"])
)
@settings(max_examples=40, deadline=None)
def test_the_worst_set_is_that_of_all_and_its_plane_is_below_everywhere(seed, which, graph):
    X, Y = problem(seed)
    model = HierarchicalSetClassifier(GRAPHS[graph], surrogate=which[0], beta=which[1], fit_intercept=False)
    model.name_classes(np.arange(4))
    model.of_sets_ = True
    structure = model.problem(X, sparse.csr_array(Y), np.full(len(X), 1 / len(X)), model.psi())
    assert isinstance(structure, LevelledLeafSets)
    random = np.random.default_rng(seed)
    W = random.normal(size=(structure.K, X.shape[1]))
    cuts, psi, points = structure.all_cuts(W, np.zeros(0)), make_psi(*which), listed(graph, X, Y)

    def by_name(at):
        model.coef_ = at
        return weights(model)

    def surrogates(at):
        return np.array([max(0.0, float(psi.value(*axes(psi, A @ by_name(at), wrong, sizes)).max())) for A, wrong, sizes in points])

    np.testing.assert_allclose(cuts.value, surrogates(W), atol=1e-12)
    np.testing.assert_array_equal(cuts.value, cuts.upper)
    for step in (0.0, 0.3, 2.0):
        at = W + step * random.normal(size=W.shape)
        plane = cuts.constant + (cuts.parts.toarray() * (X @ at.T)).sum(axis=1)
        if step == 0.0:
            np.testing.assert_allclose(plane, cuts.value, atol=1e-12)
        assert (plane <= surrogates(at) + 1e-9).all()


@pytest.mark.parametrize(("search", "exact"), [("levels", True), ("exact", True), ("angular", True), ("hull", False), ("bisecting", False)])
def test_searches_bound_one_optimum(search, exact):
    X, Y = problem(7, n=6)
    best = conic_optimum(make_psi("slack"), 1.0 / 6.0, listed("tree", X, Y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = fitted("tree", X, Y, surrogate="slack", search=search, tol=1e-3)
    assert model.certificate_.dual <= best * (1.0 + 1e-9)
    assert model.certificate_.primal >= best * (1.0 - 1e-9)
    if exact:
        assert model.certificate_.converged
        assert model.oracle_gap_ < 1e-9
    else:
        assert model.certificate_.gap <= model.oracle_gap_ + 1e-3 * model.certificate_.primal


@pytest.mark.parametrize(("training", "tol"), [("bcfw", 1e-2), ("sgd", 5e-2)])
def test_training_row_by_row_has_the_same_optimum(training, tol):
    X, Y = problem(8, n=12)
    model = fitted("tree", X, Y, surrogate="slack", training=training, tol=tol)
    assert model.certificate_.converged
    best = conic_optimum(make_psi("slack"), model.lam_, listed("tree", X, Y))
    assert model.certificate_.dual <= best * (1.0 + 1e-9) <= model.certificate_.primal * (1.0 + 2e-9)


def test_any_stored_planes_bound_from_below():
    X, Y = problem(9)
    model = fitted("tree", X, Y, surrogate="slack", tol=1e-2)
    planes, random, best = model.dual_, np.random.default_rng(1), conic_optimum(make_psi("slack"), model.lam_, listed("tree", X, Y))
    for _ in range(20):
        planes.alpha = random.uniform(-0.2, 1.0, size=len(planes.alpha))
        planes.feasible()
        W, shared = planes.weights(model.lam_)
        assert planes.dual(model.lam_, W, shared) <= best * (1.0 + 1e-9)


def test_weights_count_rows_and_a_path_begins_at_the_planes_before():
    X, Y = problem(10)
    often = np.random.default_rng(2).integers(1, 4, len(X))
    counted = HierarchicalSetClassifier(TREE, surrogate="slack", lam=0.1, tol=1e-6).fit(X, Y, sample_weight=often)
    repeated = HierarchicalSetClassifier(TREE, surrogate="slack", lam=0.1, tol=1e-6).fit(
        np.repeat(X, often, axis=0), np.repeat(Y, often, axis=0)
    )
    assert counted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-6)
    first = HierarchicalSetClassifier(TREE, surrogate="slack", lam=0.1, tol=1e-4)
    bound = first.bind(Rows(X), sparse.csr_array(Y))
    first.fit_bound(bound)
    again = HierarchicalSetClassifier(TREE, surrogate="slack", lam=0.1, tol=1e-4).fit_bound(bound, first)
    assert again.n_iter_ == 1


def test_one_label_a_row_is_a_set_of_one_leaf():
    X, Y = problem(11, n=40)
    names = np.array(["b", "c", "e", "f"])[np.argmax(Y, axis=1)]
    model = HierarchicalSetClassifier(TREE, surrogate="slack", C=5.0).fit(X, names)
    assert set(model.predict(X)) <= set(names)
    assert model.decision_function(X).shape == (40, 4)
    np.testing.assert_array_equal(model.classes_[np.argmax(model.decision_function(X), axis=1)], model.predict(X))
    alone = HierarchicalSetClassifier(TREE, surrogate="slack", C=5.0).fit(X, np.eye(4, dtype=int)[np.argmax(Y, axis=1)])
    assert alone.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_it_is_a_learner(monkeypatch):
    # scikit-learn's checks make labels of their own: leaves side by side
    monkeypatch.setattr(HierarchicalSetClassifier, "labels", lambda self: side_by_side(len(self.classes_)))
    check_learner(HierarchicalSetClassifier(surrogate="slack", max_passes=100))  # rows without a pattern take all passes, and show no more


def test_what_cannot_be_is_refused():
    X, Y = problem(0)
    with pytest.raises(ConfigError, match="needs a label graph"):
        HierarchicalSetClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="have no label"):
        HierarchicalSetClassifier(TREE).fit(X, np.where(np.arange(len(Y))[:, None] == 2, 0, Y))
    with pytest.raises(ConfigError, match="names 4 classes, the data have 3"):
        HierarchicalSetClassifier(TREE).fit(X, np.maximum(Y[:, :3], np.eye(3, dtype=int)[0]))
    with pytest.raises(IncompatibleError, match=r"loss.search=levels needs a tree"):
        HierarchicalSetClassifier(DAG, search="levels").fit(X, Y)
    with pytest.raises(IncompatibleError, match=r"sets of labels without a hierarchy"):
        HierarchicalSetClassifier(TREE, surrogate="maxmin").fit(X, Y)
    with pytest.raises(IncompatibleError, match=r"loss.surrogate=slack"):
        HierarchicalSetClassifier(TREE, search="angular").fit(X, Y)
    with pytest.raises(IncompatibleError, match=r"loss.training=sgd"):
        HierarchicalSetClassifier(TREE, surrogate="prob_raw").fit(X, Y)
    with pytest.raises(ConfigError, match=r"loss.training=newton is unknown"):
        HierarchicalSetClassifier(TREE, training="newton").fit(X, Y)
    with pytest.raises(DataError, match="is no node of it"):
        HierarchicalSetClassifier(TREE).fit(X, np.array(list("bcefbcx")))
