"""DependencyParser: optima against every tree, certificates, relations between trainings, bad input, weights, saved models."""

import warnings

import clarabel
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from support.projective_trees import trees
from support.python_parser import arc_scores, relation_features, tree_features, worst_tree
from support.sentences import corpus, related, texts

from advcli import DependencyParser
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.learners.base import Rows
from advcli.learners.structured.spaces.psi import make_psi
from advcli.learners.structured.stored_planes import PSI_KINDS
from advcli.learners.structured.tree_training import nearest_projective
from advcli.models import read, save

BITS = 9


def fit(X, y, groups, surrogate="margin", **more):
    options = {"surrogate": surrogate, "tol": 1e-7, "max_passes": 1e5, "hash_bits": BITS, **more}
    return DependencyParser(**options).fit(X, y, groups=groups)


def planes(X, y, groups):
    """Yield (sentence, wrong heads, features of a tree less those of the truth) for every projective tree of every sentence."""
    for s in np.unique(groups):
        rows = np.flatnonzero(groups == s)
        words, tags, truth = X[rows, 0].astype(int), X[rows, 1].astype(int), tuple(y[rows].tolist())
        own = tree_features(words, tags, truth, BITS)
        for heads in trees(len(rows)):
            yield s, sum(a != b for a, b in zip(heads, truth, strict=True)), tree_features(words, tags, heads, BITS) - own


def optimum(X, y, groups, lam, surrogate):
    """Return the minimum over all trees by Clarabel: w, and S of every sentence as epigraph variables."""
    S, D = groups.max() + 1, 2**BITS
    rows, right = [], []
    for s, g, a in planes(X, y, groups):
        scale = 1.0 if surrogate == "margin" else float(g)
        rows.append(np.concatenate([scale * a, -np.eye(S)[s]]))
        right.append(-float(g))
    H = np.concatenate([np.full(D, lam), np.zeros(S)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cost = np.concatenate([np.zeros(D), np.full(S, 1.0 / S)])
    cones = [clarabel.NonnegativeConeT(len(rows))]
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.diag(H)), cost, sparse.csc_matrix(np.array(rows)), np.array(right), cones, settings
    )
    return solver.solve().obj_val


@pytest.mark.parametrize("surrogate", ["margin", "slack"])
@pytest.mark.parametrize("lam", [0.5, 5.0])
def test_the_optimum_is_that_of_a_conic_solver_over_all_trees(surrogate, lam):
    X, y, groups = corpus(0, sentences=6, longest=4)
    found = fit(X, y, groups, surrogate, lam=lam, tol=1e-5).certificate_
    expected = optimum(X, y, groups, lam, surrogate)
    assert found.converged
    assert found.dual - 1e-7 <= expected <= found.primal + 1e-7
    assert found.primal == pytest.approx(expected, rel=2e-5)


def game_optimum(X, y, groups, lam):
    """Return the optimum of the max-min margin by Clarabel: w, S of every sentence, and targets p of the heads of every word."""
    S, D, words = groups.max() + 1, 2**BITS, len(y)
    heads = max(np.bincount(groups)) + 1
    first = np.searchsorted(groups, np.arange(S))
    rows, right = [], []
    for s in range(S):
        own = np.flatnonzero(groups == s)
        w, t, truth = X[own, 0].astype(int), X[own, 1].astype(int), tuple(y[own].tolist())
        true = tree_features(w, t, truth, BITS)
        for tree in trees(len(own)):  # w.a + sum_m (1 - p_m(head of m)) <= S
            p = np.zeros((words, heads))
            p[first[s] + np.arange(len(own)), list(tree)] = 1.0
            rows.append(np.concatenate([tree_features(w, t, tree, BITS) - true, -np.eye(S)[s], -p.ravel()]))
            right.append(-float(len(own)))
    positive = np.hstack([np.zeros((words * heads, D + S)), -np.eye(words * heads)])
    sums = np.hstack([np.zeros((words, D + S)), np.kron(np.eye(words), np.ones(heads))])
    matrix = sparse.csc_matrix(np.vstack([np.array(rows), positive, sums]))
    bounds = np.concatenate([right, np.zeros(words * heads), np.ones(words)])
    H = np.concatenate([np.full(D, lam), np.zeros(S + words * heads)])
    cost = np.concatenate([np.zeros(D), np.full(S, 1.0 / S), np.zeros(words * heads)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(rows) + words * heads), clarabel.ZeroConeT(words)]
    return clarabel.DefaultSolver(sparse.csc_matrix(np.diag(H)), cost, matrix, bounds, cones, settings).solve().obj_val


@pytest.mark.parametrize("lam", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_max_min_margin_is_the_game_over_all_trees(lam, seed):
    X, y, groups = corpus(seed, sentences=5, longest=4)
    found = fit(X, y, groups, "maxmin", lam=lam, tol=1e-5).certificate_
    expected = game_optimum(X, y, groups, lam)
    assert found.converged
    assert found.dual - 1e-7 <= expected <= found.primal + 1e-7
    margin = fit(X, y, groups, "margin", lam=lam, tol=1e-5).certificate_
    assert found.dual <= margin.primal  # margin rescaling has the truth for its targets


@pytest.mark.parametrize("surrogate", PSI_KINDS)
def test_the_primal_is_the_objective_over_all_trees(surrogate):
    X, y, groups = corpus(1)
    fitted, psi = fit(X, y, groups, surrogate, lam=1.0, tol=1e-3), make_psi(surrogate)
    theta, values = fitted.coef_[0], []
    for s in range(groups.max() + 1):
        rows = np.flatnonzero(groups == s)
        scores = arc_scores(X[rows, 0].astype(int), X[rows, 1].astype(int), theta)
        values.append(worst_tree(scores, tuple(y[rows].tolist()), psi)[0])
    assert fitted.certificate_.primal == pytest.approx(0.5 * theta @ theta + np.mean(values), rel=1e-10)
    assert fitted.certificate_.converged


@pytest.mark.parametrize("training", ["bcfw", "sgd"])
@pytest.mark.parametrize("surrogate", PSI_KINDS)
def test_training_by_sentences_is_certified_at_the_optimum_of_the_planes(training, surrogate):
    X, y, groups = corpus(2)
    best, tol = fit(X, y, groups, surrogate, lam=5.0, tol=1e-4).certificate_, 5e-2
    found = fit(X, y, groups, surrogate, lam=5.0, tol=tol, training=training).certificate_
    assert found.converged
    assert found.relative_gap <= tol
    assert found.primal >= best.dual - 1e-12
    assert found.dual <= best.primal + 1e-12


@pytest.mark.parametrize("training", ["planes", "bcfw", "sgd"])
def test_a_path_begins_where_the_last_fit_ended(training):
    X, y, groups = corpus(3)
    parser = DependencyParser(training=training, hash_bits=BITS, lam=5.0, tol=1e-2, max_passes=1e4)
    bound = parser.bind(Rows(X, groups=groups), y)
    first = parser.fit_bound(bound)
    near = DependencyParser(training=training, hash_bits=BITS, lam=4.9, tol=1e-2, max_passes=1e4).fit_bound(bound, first)
    cold = DependencyParser(training=training, hash_bits=BITS, lam=4.9, tol=1e-2, max_passes=1e4).fit_bound(bound)
    assert near.certificate_.converged
    assert near.certificate_.dual <= cold.certificate_.primal + 1e-12
    assert cold.certificate_.dual <= near.certificate_.primal + 1e-12
    if training != "sgd":  # subgradients begin anew
        assert near.n_iter_ <= cold.n_iter_


def test_the_max_min_margin_goes_on_from_another_lambda_and_is_not_saved_with_its_targets(tmp_path):
    X, y, groups = corpus(3)
    bound = DependencyParser(surrogate="maxmin", hash_bits=BITS).bind(Rows(X, groups=groups), y)
    options = {"surrogate": "maxmin", "hash_bits": BITS, "tol": 1e-3, "max_passes": 1e4}
    near = DependencyParser(lam=4.0, **options).fit_bound(bound, DependencyParser(lam=5.0, **options).fit_bound(bound))
    cold = DependencyParser(lam=4.0, **options).fit_bound(bound)
    assert near.certificate_.converged
    assert near.certificate_.dual <= cold.certificate_.primal + 1e-12
    assert cold.certificate_.dual <= near.certificate_.primal + 1e-12
    assert near.oracle_gap_ == 0.0
    save(near, tmp_path / "model")
    assert np.array_equal(read(tmp_path / "model").estimator.coef_, near.coef_)


def test_a_warm_start_ends_at_the_same_optimum_in_fewer_passes(capsys):
    X, y, groups = corpus(3)
    parser = DependencyParser(hash_bits=BITS, C=0.02, tol=1e-4, max_passes=1e4, warm_start=True, verbose=1)
    first = parser.fit(X, y, groups=groups).certificate_
    again = parser.set_params(C=0.021).fit(X, y, groups=groups).certificate_
    cold = DependencyParser(hash_bits=BITS, C=0.021, tol=1e-4, max_passes=1e4).fit(X, y, groups=groups).certificate_
    assert again.converged
    assert again.passes < cold.passes
    assert again.dual <= cold.primal + 1e-12
    assert cold.dual <= again.primal + 1e-12
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"DependencyParser: converged, certified relative gap {first.relative_gap:.1e}")


def test_trees_that_were_planted_are_recovered():
    X, y, groups = texts(4, sentences=60)
    fitted = DependencyParser(C=100.0, hash_bits=14).fit(X, y, groups=groups)
    assert (fitted.predict(X, groups=groups) == y).mean() > 0.95
    assert fitted.score(X, y) < 1.0  # without groups all rows are one sentence


def test_text_frames_and_codes_are_the_same_words():
    X, y, groups = texts(5)
    codes = corpus(5)[0]
    fits = [fit(each, y, groups, lam=1.0, tol=1e-2) for each in (X, X.tolist(), pd.DataFrame(X, columns=["word", "tag"]), codes)]
    for each in fits[1:]:
        assert np.array_equal(each.coef_, fits[0].coef_)


def test_the_scores_of_heads_are_those_of_arcs():
    X, y, groups = corpus(6)
    fitted = fit(X, y, groups, lam=1.0, tol=1e-2)
    F = fitted.potentials(X, groups=groups)
    for s in range(groups.max() + 1):
        rows = np.flatnonzero(groups == s)
        scores = arc_scores(X[rows, 0].astype(int), X[rows, 1].astype(int), fitted.coef_[0])
        for word, row in enumerate(rows, start=1):
            others = [head for head in range(len(rows) + 1) if head != word]
            np.testing.assert_allclose(F[row, others], scores[others, word], atol=1e-12)
            assert np.isneginf(np.delete(F[row], others)).all()


def test_weights_count_sentences():
    X, y, groups = corpus(7, sentences=5)
    weight = np.array([2.0, 1.0, 0.0, 3.0, 1.0])
    weighed = DependencyParser(hash_bits=BITS, lam=2.0, tol=1e-6, max_passes=1e4).fit(X, y, sample_weight=weight[groups], groups=groups)
    order = [s for s in range(5) for _ in range(int(weight[s]))]
    rows = np.concatenate([np.flatnonzero(groups == s) for s in order])
    again = np.repeat(np.arange(len(order)), [(groups == s).sum() for s in order])
    repeated = fit(X[rows], y[rows], again, lam=2.0, tol=1e-6)
    assert weighed.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-5)
    with pytest.raises(DataError, match="row 2 has another weight than the first of its sequence"):
        DependencyParser(hash_bits=BITS).fit(X, y, sample_weight=np.arange(1.0, len(y) + 1.0), groups=groups)
    with pytest.raises(ValueError, match="zero"):
        DependencyParser(hash_bits=BITS).fit(X, y, sample_weight=np.zeros(len(y)), groups=groups)


def test_a_tree_with_crossing_arcs_is_learned_as_its_nearest_projective_one():
    X, y, groups = corpus(8, crossing=True)
    fitted = fit(X, y, groups, lam=1.0, tol=1e-2)
    assert fitted.crossing_ == 1
    assert fitted.remarks_ == ("1 of 12 sentences have crossing arcs and are trained on the nearest projective tree",)
    heads, shared = nearest_projective(np.array([3, 4, 4, 0], dtype=np.int32), np.array([0, 4]))
    assert tuple(heads.tolist()) in trees(4)
    assert shared[0] == 3 == max(sum(a == b for a, b in zip(tree, (3, 4, 4, 0), strict=True)) for tree in trees(4))


def test_a_saved_parser_predicts_the_same(tmp_path):
    X, y, groups = corpus(9)
    fitted = fit(X, y, groups, lam=1.0, tol=1e-2)
    save(fitted, tmp_path / "model")
    again = read(tmp_path / "model").estimator
    assert again.predict(X, groups=groups).tolist() == fitted.predict(X, groups=groups).tolist()
    assert again.crossing_ == fitted.crossing_


# ---- relations --------------------------------------------------------------------------------------------------------


def arcs(X, heads, groups, bits):
    """Return the features of the arcs to words and a constant, (n, 2^bits + 1), by plain Python."""
    rows, first = np.zeros((len(X), 2**bits + 1)), np.searchsorted(groups, groups)
    for row, head in enumerate(heads):
        own = groups == groups[row]
        place = relation_features(X[own, 0].astype(int), X[own, 1].astype(int), int(head), int(row - first[row] + 1), bits)
        np.add.at(rows[row], place, 1.0)
    rows[:, -1] = 1.0
    return rows


def zero_one_surrogate(F, y):
    """Return the adversarial zero-one loss, by its definition over the numbers of largest scores: (n,)."""
    top = np.cumsum(-np.sort(-F, axis=1), axis=1)
    sizes = np.arange(1, F.shape[1] + 1)
    return ((top + sizes - 1) / sizes).max(axis=1) - F[np.arange(len(y)), y]


def test_relations_minimise_the_adversarial_zero_one_loss_of_the_true_arcs():
    X, y, groups = corpus(11, crossing=True)
    names = related(texts(11, crossing=True)[0], y, groups)
    weight = np.random.default_rng(11).integers(0, 3, size=groups.max() + 1).astype(float)
    fitted = DependencyParser(hash_bits=14, lam=0.02, tol=1e-6, max_passes=1e4)
    fitted.fit(X, y, sample_weight=weight[groups], groups=groups, relations=names)
    assert fitted.relations_.tolist() == sorted(set(names))
    stage, codes = fitted.stages_["relations"], np.searchsorted(fitted.relations_, names)
    lam = 0.02 * weight.sum() / weight[groups].sum()
    theta, rows = fitted.relation_theta_, arcs(X, y, groups, 8)

    def objective(theta):
        losses = zero_one_surrogate(rows @ theta, codes)
        return 0.5 * lam * (theta**2).sum() + np.average(losses, weights=weight[groups])

    assert stage.converged
    assert stage.primal == pytest.approx(objective(theta), rel=1e-9)
    random = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0):
        assert objective(theta + size * random.normal(size=theta.shape)) > stage.dual
    heads = fitted.predict(X, groups=groups)
    expected = fitted.relations_[np.argmax(arcs(X, heads, groups, 8) @ theta, axis=1)]
    assert fitted.predict_relations(X, groups=groups).tolist() == expected.tolist()
    given = fitted.relations_[np.argmax(rows @ theta, axis=1)]
    assert fitted.predict_relations(X, groups=groups, heads=y).tolist() == given.tolist()


def test_relations_that_follow_from_tags_are_recovered():
    X, y, groups = texts(12, sentences=60)
    names = related(X, y, groups)
    fitted = DependencyParser(C=10.0, hash_bits=18).fit(X, y, groups=groups, relations=names)
    assert (fitted.predict_relations(X, groups=groups, heads=y) == names).mean() > 0.98


def test_relations_leave_the_trees_alone_and_go_on_from_another_lambda():
    X, y, groups = texts(13)
    names = related(X, y, groups)
    parser = DependencyParser(hash_bits=10, lam=0.5, tol=1e-3, max_passes=1e4)
    plain = parser.fit(X, y, groups=groups).coef_.copy()
    bound = parser.bind(Rows(X, groups=groups, relations=names), y)
    first = DependencyParser(hash_bits=10, lam=0.5, tol=1e-3, max_passes=1e4).fit_bound(bound)
    assert np.array_equal(first.coef_, plain)
    near = DependencyParser(hash_bits=10, lam=0.4, tol=1e-3, max_passes=1e4).fit_bound(bound, first).stages_["relations"]
    cold = DependencyParser(hash_bits=10, lam=0.4, tol=1e-3, max_passes=1e4).fit_bound(bound).stages_["relations"]
    assert near.converged
    assert near.dual <= cold.primal + 1e-12
    assert cold.dual <= near.primal + 1e-12


def test_a_warm_start_learns_the_relations_that_it_is_given():
    X, y, groups = texts(13)
    names = related(X, y, groups)
    parser = DependencyParser(hash_bits=10, lam=0.5, warm_start=True)
    parser.fit(X, y, groups=groups, relations=names).fit(X, y, groups=groups, relations=np.char.add(names, "!"))
    assert all(name.endswith("!") for name in parser.relations_)
    assert parser.fit(X, y, groups=groups).relations_.tolist() == []


def test_a_saved_parser_has_its_relations(tmp_path):
    X, y, groups = texts(14)
    for names in (related(X, y, groups), np.full(len(y), "dep")):
        fitted = DependencyParser(hash_bits=10).fit(X, y, groups=groups, relations=names)
        save(fitted, tmp_path / "model")
        again = read(tmp_path / "model").estimator
        assert again.predict_relations(X, groups=groups).tolist() == fitted.predict_relations(X, groups=groups).tolist()
    assert fitted.stages_ == {}  # one relation leaves nothing to learn
    assert set(fitted.predict_relations(X, groups=groups)) == {"dep"}


def test_relations_that_are_missing_are_refused():
    X, y, groups = texts(15)
    names = related(X, y, groups).astype(object)
    parser = DependencyParser(hash_bits=10)
    with pytest.raises(DataError, match=r"relations have the shape \(2,\): give one for each of the"):
        parser.fit(X, y, groups=groups, relations=names[:2])
    for gap in ("", None, float("nan")):
        names[3] = gap
        with pytest.raises(DataError, match="row 4 has no relation to its head"):
            parser.fit(X, y, groups=groups, relations=names)
    with pytest.raises(ConfigError, match="fitted without relations"):
        parser.fit(X, y, groups=groups).predict_relations(X, groups=groups)
    with pytest.raises(DataError, match="row 1: the head 9 of word 1 is not in its sentence"):
        parser.predict_relations(X[:3], heads=[9, 1, 2])


# ---- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([2, 0, 9], "row 3: the head 9 of word 3 is not in its sentence of 3 words"),
        ([-1, 0, 2], "row 1: the head -1 of word 1 is not in its sentence"),
        ([2, 0, 3], "row 3: word 3 is its own head"),
        ([2, 3, 2], "row 1: the sentence has no word with the head 0"),
        ([0, 0, 2], "row 1: the sentence has 2 words with the head 0"),
        ([2, 1, 0], "row 1: the heads from word 1 on go round in a cycle"),
        ([2.5, 0, 2], r"row 1 has the head 2\.5: heads are whole numbers"),
        (["a", "0", "2"], "row 1 has the head a: heads are whole numbers"),
    ],
)
def test_heads_that_make_no_tree_are_refused(heads, said):
    with pytest.raises(DataError, match=said):
        DependencyParser(hash_bits=BITS).fit([["a", "X"], ["b", "Y"], ["c", "Z"]], heads)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ([["a"], ["b"]], r"two columns, the word and its tag; X has the shape \(2, 1\)"),
        ([[1.5, 2.0], [1.0, 2.0]], "row 1 has 1.5 for its word"),
        ([[1.0, -2.0], [1.0, 2.0]], "row 1 has -2 for its tag"),
        (sparse.csr_array(np.eye(2)), "X has a sparse matrix"),
        (pd.DataFrame({"word": ["a", None], "tag": ["X", "Y"]}), "row 2 has no word"),
        (np.array([["a", ""], ["b", "Y"]]), "row 1 has no tag"),
    ],
)
def test_rows_that_are_no_words_are_refused(X, said):
    with pytest.raises(DataError, match=said):
        DependencyParser(hash_bits=BITS).fit(X, [2, 0])


def test_a_sentence_of_more_than_a_thousand_words_is_refused():
    X = [["a", "X"]] * 1001
    with pytest.raises(DataError, match="the sentence has 1001 words, more than the 1000 that a tree may have"):
        DependencyParser(hash_bits=BITS).fit(X, [0, *range(1, 1001)])
    fitted = DependencyParser(hash_bits=BITS).fit(X[:3], [0, 1, 2])
    with pytest.raises(DataError, match="1001 words"):
        fitted.predict(X)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"hash_bits": 40}, ConfigError, "loss.hash_bits=40 must be a whole number from 8 to 28"),
        ({"hash_bits": True}, ConfigError, "loss.hash_bits=True"),
        ({"surrogate": "f1"}, IncompatibleError, "sets of labels"),
        ({"surrogate": "maxmin", "training": "sgd"}, IncompatibleError, "loss.training=sgd has none: choose planes"),
        ({"surrogate": "maxmin", "beta": 0.5}, ConfigError, "loss.beta=0.5 is an option of loss.surrogate=scaling"),
        ({"surrogate": "hinge"}, ConfigError, "loss.surrogate=hinge"),
        ({"training": "lbfgs"}, ConfigError, "loss.training=lbfgs"),
        ({"search": "hull"}, ConfigError, "loss.search=hull"),
        ({"features": "rbf"}, IncompatibleError, "arcs have features of their own"),
        ({"fit_intercept": True}, ConfigError, "words have no constant"),
    ],
)
def test_parameters_that_no_data_can_mend_are_refused(options, error, said):
    with pytest.raises(error, match=said):
        DependencyParser(**options).fit([["a", "X"], ["b", "Y"]], [2, 0])


def test_a_fit_that_is_cut_short_warns_and_keeps_an_honest_certificate():
    X, y, groups = corpus(10)
    with pytest.warns(NotConvergedWarning):
        found = fit(X, y, groups, "prob", lam=1e-3, tol=1e-6, max_passes=4).certificate_
    assert found.primal >= found.dual
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(X, y, groups, "prob", lam=5.0, tol=1e-2)
