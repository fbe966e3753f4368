"""ChainClassifier: optima against every sequence, certificates, relations between surrogates, groups, weights, saved models."""

import itertools
import warnings

import clarabel
import numpy as np
import pytest
from scipy import sparse

from advcli import AdversarialClassifier
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.learners import Method
from advcli.learners.base import Rows
from advcli.learners.structured import ChainClassifier
from advcli.learners.structured.chain_training import KINDS, ChainProblem, ChainTrainer
from advcli.learners.structured.frank_wolfe import FrankWolfe, Gradients
from advcli.learners.structured.spaces.chain_game import chain_game
from advcli.learners.structured.spaces.psi import make_psi
from advcli.models import read, save
from advcli.solvers.base import Limits
from advcli.solvers.cutting_planes import fit_cutting_planes

PSIS = [name for name in KINDS if name != "maxmin"]


def chains(seed=0, sizes=(3, 1, 4, 2, 3), K=3, d=4):
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = random.normal(size=(len(groups), d))
    y = np.r_[np.arange(K), random.integers(K, size=len(groups) - K)]
    return X, y, groups


def planes(X, y, groups, K):
    """Yield (chain, sequence, its features less those of the truth) over W (K, d) and A (K, K) for every sequence of every chain."""

    def features(rows, labels):
        W, A = np.zeros((K, X.shape[1])), np.zeros((K, K))
        np.add.at(W, labels, X[rows])
        np.add.at(A, (labels[:-1], labels[1:]), 1.0)
        return np.concatenate([W.ravel(), A.ravel()])

    for chain in np.unique(groups):
        rows = np.flatnonzero(groups == chain)
        for labels in itertools.product(range(K), repeat=len(rows)):
            labels = np.array(labels)
            yield chain, rows, labels, features(rows, labels) - features(rows, y[rows])


def optimum(X, y, groups, K, lam, surrogate):
    """Return the minimum over all sequences by Clarabel: w, targets p for maxmin, and S of every chain as epigraph variables."""
    S, n = groups.max() + 1, len(y)
    size, targets = K * (X.shape[1] + K), n * K if surrogate == "maxmin" else 0
    rows, right = [], []
    for chain, at, labels, a in planes(X, y, groups, K):
        g = float((labels != y[at]).sum())
        scale, constant = {"margin": (1.0, g), "slack": (g, g), "maxmin": (1.0, float(len(at)))}[surrogate]
        row = np.zeros(size + targets + S)
        row[:size] = scale * a
        row[size + targets + chain] = -1.0
        if targets:
            row[size + at * K + labels] = -1.0
        rows.append(row)
        right.append(-constant)
    below = len(rows)
    for at in range(targets):  # p >= 0
        rows.append(np.eye(1, size + targets + S, size + at)[0] * -1.0)
        right.append(0.0)
    equal = [np.repeat(np.eye(n)[t], K) for t in range(n)] if targets else []
    rows = [np.concatenate([np.zeros(size), each, np.zeros(S)]) for each in equal] + rows
    right = [1.0] * len(equal) + right
    H = np.zeros(size + targets + S)
    H[:size] = lam
    cost = np.concatenate([np.zeros(size + targets), np.full(S, 1.0 / S)])
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(below + targets)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.diag(H)), cost, sparse.csc_matrix(np.array(rows)), np.array(right), cones[not equal :], settings
    )
    return solver.solve().obj_val


def fit(X, y, groups, surrogate, **more):
    return ChainClassifier(**{"surrogate": surrogate, "tol": 1e-7, "fit_intercept": False, "max_passes": 1e5, **more}).fit(
        X, y, groups=groups
    )


@pytest.mark.parametrize("surrogate", ["margin", "slack", "maxmin"])
@pytest.mark.parametrize("lam", [0.02, 0.5])
def test_the_optimum_is_that_of_a_conic_solver_over_all_sequences(surrogate, lam):
    X, y, groups = chains()
    fitted = fit(X, y, groups, surrogate, lam=lam, tol=1e-5)
    expected = optimum(X, y, groups, 3, lam, surrogate)
    found = fitted.certificate_
    assert found.converged
    assert found.dual - 1e-7 <= expected <= found.primal + 1e-7
    assert found.primal == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("surrogate", PSIS)
def test_the_primal_is_the_objective_over_all_sequences(surrogate):
    X, y, groups = chains(1)
    psi = make_psi(surrogate)
    fitted = fit(X, y, groups, surrogate, lam=0.1, tol=1e-3)
    w = np.concatenate([fitted.coef_.ravel(), fitted.shared_])
    best = np.zeros(groups.max() + 1)
    for chain, at, labels, a in planes(X, y, groups, 3):
        best[chain] = max(best[chain], float(psi.value(a @ w, float((labels != y[at]).sum()))))
    assert fitted.certificate_.primal == pytest.approx(0.05 * w @ w + best.mean(), abs=1e-12)
    assert fitted.certificate_.converged


@pytest.mark.parametrize("surrogate", PSIS)
def test_compiled_visits_and_cutting_planes_in_numpy_find_the_same_optimum(surrogate):
    X, y, groups = chains(2)
    fitted = fit(X, y, groups, surrogate, lam=0.1, tol=1e-3)
    start = np.append(np.flatnonzero(np.diff(groups, prepend=-1)), len(groups)).astype(np.int64)
    share = np.full(len(start) - 1, 1.0 / (len(start) - 1))
    structure = ChainProblem(X, y.astype(np.intp), start, share, make_psi(surrogate), 3)
    other = fit_cutting_planes(structure, 0.1, Limits(1e-3, 200))
    assert other.dual <= fitted.certificate_.primal + 1e-9
    assert fitted.certificate_.dual <= other.primal + 1e-9


def test_the_max_min_primal_bounds_the_mean_of_games_and_meets_it_at_the_optimum():
    X, y, groups = chains(3)
    fitted = fit(X, y, groups, "maxmin", lam=0.1, tol=1e-6)
    U = fitted.potentials(X)
    games = []
    for chain in range(groups.max() + 1):
        at = np.flatnonzero(groups == chain)
        own = U[at, y[at]].sum() + fitted.transitions_[y[at][:-1], y[at][1:]].sum()
        games.append(chain_game(U[at], fitted.transitions_, own).value)
    value = 0.05 * (np.vdot(fitted.coef_, fitted.coef_) + fitted.shared_ @ fitted.shared_) + np.mean(games)
    assert fitted.certificate_.dual - 1e-9 <= value <= fitted.certificate_.primal + 1e-9
    p = fitted.targets(X, groups)
    assert fitted.set_params(rule="predictor").predict_codes(X, groups).tolist() == p.argmax(axis=1).tolist()


def test_optima_are_ordered_as_the_surrogates_are():
    """max_y m(y) <= S of the max-min margin <= margin rescaling, so are the optima at one lambda."""
    X, y, groups = chains(4)
    maxmin, margin = (fit(X, y, groups, name, lam=0.05, tol=1e-5).certificate_ for name in ("maxmin", "margin"))
    assert 0.0 <= maxmin.dual <= margin.primal


def test_rows_that_stand_alone_are_learned_by_the_zero_one_losses():
    """Chains of one row: margin rescaling is Crammer and Singer's, the max-min margin the adversarial zero-one loss."""
    X, y, _ = chains(5, sizes=(1,) * 20)
    alone = fit(X, y, None, "maxmin", C=1.0, tol=1e-6)
    zero_one = AdversarialClassifier(C=1.0, fit_intercept=False, tol=1e-8).fit(X, y)
    assert alone.certificate_.primal == pytest.approx(zero_one.certificate_.primal, rel=1e-5)
    assert not alone.shared_.any()


def test_a_weight_of_two_is_a_sequence_that_occurs_twice():
    X, y, groups = chains(6)
    twice = groups == 2
    weighted = ChainClassifier(lam=0.1, tol=1e-7, fit_intercept=False).fit(X, y, groups=groups, sample_weight=1.0 + twice).certificate_
    more = np.flatnonzero(twice)
    doubled = fit(np.vstack([X, X[more]]), np.r_[y, y[more]], np.r_[groups, groups[more] + 9], "margin", lam=0.1).certificate_
    assert weighted.primal == pytest.approx(doubled.primal, rel=1e-6)
    with pytest.raises(DataError, match="another weight than the first of its sequence"):
        ChainClassifier().fit(X, y, groups=groups, sample_weight=np.arange(len(y)))


def test_a_fit_from_another_begins_at_its_sequences_and_ends_at_the_same_optimum():
    X, y, groups = chains(7, sizes=(4,) * 12)
    bound = ChainClassifier().bind(Rows(X, groups=groups), y)
    first = ChainClassifier(lam=0.2, tol=1e-6).fit_bound(bound)
    warm, cold = ChainClassifier(lam=0.1, tol=1e-6).fit_bound(bound, first), ChainClassifier(lam=0.1, tol=1e-6).fit_bound(bound)
    assert warm.certificate_.converged
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-5)


def test_sparse_rows_and_shuffled_names_of_groups_change_nothing():
    X, y, groups = chains(8)
    X[np.abs(X) < 0.5] = 0.0
    names = np.array([f"s{(chain * 7) % 5}" for chain in groups])
    dense = fit(X, y, groups, "margin", lam=0.1)
    for other in (fit(sparse.csr_array(X), y, groups, "margin", lam=0.1), fit(X, y, names, "margin", lam=0.1)):
        assert other.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-6)
    assert dense.predict(X, groups).tolist() == dense.predict(sparse.csr_array(X), groups=names).tolist()


def test_transitions_are_learned_where_rows_say_nothing():
    groups, y = np.repeat(np.arange(30), 6), np.tile([0, 1, 2], 60)
    X = np.zeros((180, 2))
    X[::6, 0] = 1.0  # the first row of a sequence
    fitted = ChainClassifier(C=10.0, tol=1e-4).fit(X, y, groups=groups)
    assert (fitted.predict(X, groups) == y).all()
    assert (fitted.predict(X) != y).any()


def test_bad_groups_are_refused_by_one_line():
    X, y, groups = chains()
    back = groups.copy()
    back[-1] = 0
    with pytest.raises(DataError, match="group 0 goes on in row 13 after another has begun"):
        ChainClassifier().fit(X, y, groups=back)
    with pytest.raises(DataError, match="name the group of each of 13 rows"):
        ChainClassifier().fit(X, y, groups=groups[:-1])
    fitted = ChainClassifier().fit(X, y, groups=groups)
    with pytest.raises(DataError, match="goes on in row 13"):
        fitted.predict(X, back)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"surrogate": "f1"}, IncompatibleError, "sets of labels"),
        ({"surrogate": "prob_raw"}, IncompatibleError, "not convex"),
        ({"surrogate": "hinge"}, ConfigError, "surrogate=hinge"),
        ({"surrogate": "maxmin", "beta": 0.5}, ConfigError, "maxmin has none"),
        ({"surrogate": "slack", "beta": 0.5}, ConfigError, "slack has none"),
        ({"rule": "predictor"}, ConfigError, "potentials alone"),
        ({"rule": "best"}, ConfigError, "rule=best"),
        ({"search": "angular"}, ConfigError, "search=angular"),
        ({"lam": -1.0}, ConfigError, "lam must be a positive number"),
    ],
    ids=str,
)
def test_options_without_meaning_are_refused(options, error, said):
    X, y, groups = chains()
    with pytest.raises(error, match=said):
        ChainClassifier(**options).fit(X, y, groups=groups)
    if "lam" not in options:  # before any data are read, too
        with pytest.raises(error, match=said):
            Method({"name": "chain", **options}, {"name": "linear"}, {"name": "auto", "tol": 1e-3}).check(False, None)


def test_a_fit_that_is_cut_short_says_so_and_its_bounds_hold():
    X, y, groups = chains(9, sizes=(5,) * 20)
    with pytest.warns(NotConvergedWarning, match="max_passes"):
        short = ChainClassifier(lam=0.01, max_passes=2, tol=1e-9).fit(X, y, groups=groups).certificate_
    best = ChainClassifier(lam=0.01, tol=1e-5).fit(X, y, groups=groups).certificate_
    assert short.dual <= best.primal
    assert best.dual <= short.primal


def test_many_sequences_of_one_chain_find_room():
    X, y, groups = chains(10, sizes=(14, 14), d=2)
    fitted = fit(X, y, groups, "margin", lam=5e-3, tol=3e-3)
    assert fitted.certificate_.converged
    assert fitted.trainer_.used.max() > 16


@pytest.mark.parametrize("surrogate", ["margin", "maxmin"])
def test_a_saved_model_predicts_the_same_and_its_bytes_repeat(tmp_path, surrogate):
    X, y, groups = chains(11)
    fitted = ChainClassifier(surrogate=surrogate).fit(X, np.array(list("abc"))[y], groups=groups)
    save(fitted, tmp_path / "one")
    save(ChainClassifier(surrogate=surrogate).fit(X, np.array(list("abc"))[y], groups=groups), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    model = read(tmp_path / "one")
    assert model.predict(X, groups).tolist() == fitted.predict(X, groups).tolist()
    assert model.certificate.dual == fitted.certificate_.dual


def test_what_is_kept_of_the_training_rows_is_in_no_pickle():
    import pickle

    X, y, groups = chains(12)
    fitted = ChainClassifier().fit(X, y, groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(fitted))
    assert not hasattr(again, "trainer_")
    assert again.predict(X, groups).tolist() == fitted.predict(X, groups).tolist()


@pytest.mark.parametrize("surrogate", ["margin", "slack", "maxmin"])
def test_the_dual_point_that_is_stated_is_the_one_that_is_judged(surrogate, monkeypatch):
    X, y, groups = chains()
    take = ChainTrainer.take

    def beyond(self, lam):
        found = take(self, lam)
        if len(self.alpha) and (self.used > 1).any():  # not the truth alone, where every fit begins
            self.alpha *= 1.01
        return found

    monkeypatch.setattr(ChainTrainer, "take", beyond)
    with pytest.warns(NotConvergedWarning, match="infeasible_dual"):
        found = ChainClassifier(surrogate=surrogate).fit(X, y, groups=groups).certificate_
    assert found.status == "infeasible_dual"


@pytest.mark.parametrize("training", ["bcfw", "sgd"])
@pytest.mark.parametrize("surrogate", PSIS)
def test_training_by_chains_is_certified_at_the_optimum_of_the_planes(training, surrogate):
    X, y, groups = chains(3)
    X[np.abs(X) < 0.4] = 0.0
    best, tol = fit(X, y, groups, surrogate, lam=0.5, tol=1e-4).certificate_, 5e-2
    for rows in (X, sparse.csr_array(X)) if surrogate == "margin" else (X,):
        other = ChainClassifier(surrogate=surrogate, training=training, lam=0.5, tol=tol, max_passes=4000, fit_intercept=False)
        found = other.fit(rows, y, groups=groups).certificate_
        assert (found.converged, found.solver) == (True, training)
        assert found.dual <= best.primal * (1 + 1e-9)
        assert best.dual <= found.primal * (1 + 1e-9)
        assert found.primal - best.primal <= tol * found.primal
        assert other.proof(rows, y, None) == {}


def test_running_weights_of_chains_are_those_of_their_mean_planes():
    X, y, groups = chains(4)
    start = np.append(np.flatnonzero(np.diff(groups, prepend=-1)), len(groups)).astype(np.int64)
    share = np.array([0.1, 0.3, 0.2, 0.15, 0.25])
    for rows, kind in itertools.product((X, sparse.csr_array(X)), (FrankWolfe, Gradients)):
        steps = kind(ChainProblem(rows, y.astype(np.intp), start, share, make_psi("log"), 3), 0.3)
        for order in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3]):
            steps.sweep(np.array(order))
        W, shared = steps.planes().weights(0.3)
        scale = -1.0 / (0.3 * steps.t) if kind is Gradients else 1.0
        np.testing.assert_allclose(scale * steps.W, W, atol=1e-12)
        np.testing.assert_allclose(scale * steps.shared, shared, atol=1e-12)


def test_a_step_of_frank_wolfe_at_a_chain_raises_the_dual_the_most():
    X, y, groups = chains(5)
    start = np.append(np.flatnonzero(np.diff(groups, prepend=-1)), len(groups)).astype(np.int64)
    structure = ChainProblem(X, y.astype(np.intp), start, np.full(5, 0.2), make_psi("margin"), 3)

    def dual(parts, constant):
        planes = steps.mean_planes(parts, constant)
        return planes.dual(0.1, *planes.weights(0.1))

    steps = FrankWolfe(structure, 0.1)
    steps.sweep(np.arange(5))
    for i in range(5):
        before, level = steps.parts.copy(), steps.constant.copy()
        _, cuts = steps.cut(i, steps.W, steps.shared, 1.0)
        steps.sweep(np.array([i]))
        reached = dual(steps.parts, steps.constant)
        for gamma in np.linspace(0.0, 1.0, 11):
            parts, constant = before.copy(), level.copy()
            parts[i] += gamma * (cuts.parts.toarray()[0] - parts[i])
            constant[i] += gamma * (cuts.constant[0] - constant[i])
            assert dual(parts, constant) <= reached + 1e-12


def test_the_max_min_margin_has_no_training_by_rows():
    with pytest.raises(IncompatibleError, match=r"loss\.training=sgd has none: choose planes"):
        ChainClassifier(surrogate="maxmin", training="sgd").fit(*chains()[:2])


@pytest.mark.parametrize(("surrogate", "seed"), [("margin", 7), ("slack", 7), ("slack", 8), ("maxmin", 7)])
def test_a_weak_lambda_is_come_down_to_from_larger_ones(surrogate, seed):
    X, y, groups = chains(seed, sizes=(3, 4, 2, 4, 3, 2), d=8)
    start = np.concatenate([[0], np.flatnonzero(np.diff(groups)) + 1, [len(y)]]).astype(np.int64)
    psi = None if surrogate == "maxmin" else make_psi(surrogate)
    trainer = ChainTrainer(ChainProblem(X, y, start, np.full(6, 1 / 6), psi, 3))
    assert trainer.way(0.1) == []
    way = trainer.way(1e-7)
    least = 2e-3 * trainer.unit / 6
    assert way == sorted(way, reverse=True)
    assert way[-1] == pytest.approx(1e-6)
    assert least <= way[0] < 10.0 * least
    limits = Limits(1e-2, 3000)
    fit = trainer.learn(1e-7, limits, 0)
    assert fit.stopped == "converged"
    assert fit.primal - fit.dual <= 1e-2 * fit.primal
    assert trainer.way(1e-7) == []  # stored sequences are a start already
    assert trainer.learn(1e-7, limits, 0).passes < fit.passes
