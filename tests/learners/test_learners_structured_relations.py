"""Exact relations of the max-min margin and of relaxed surrogates: consistency on random laws, the scale of the loss, larger polytopes."""

import itertools

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from support.every_set import points, small_problem

from advcli.learners.structured import ChainClassifier, MultilabelClassifier
from advcli.learners.structured.label_sets import PairWeights, SearchedSets, best_of
from advcli.learners.structured.spaces.chain_game import chain_game
from advcli.learners.structured.spaces.enumerated_sets import pair_table
from advcli.learners.structured.spaces.f_measure_game import f_measures
from advcli.learners.structured.spaces.max_min import solve_games
from advcli.learners.structured.spaces.psi import make_psi
from advcli.losses import make_loss


def sequences(T, K):
    return np.array(list(itertools.product(range(K), repeat=T)))


def wrong(A, B):
    """Return the numbers of positions in which labels differ, (len(A), len(B))."""
    return (A[:, None] != B[None]).sum(axis=2).astype(float)


def chain_features(every, K):
    """Return what U (T, K) and A (K, K) count in sequences, (len(every), T K + K K)."""
    found = []
    for y in every:
        U, A = np.zeros((len(y), K)), np.zeros((K, K))
        U[np.arange(len(y)), y] = 1.0
        np.add.at(A, (y[:-1], y[1:]), 1.0)
        found.append(np.r_[U.ravel(), A.ravel()])
    return np.array(found)


def best_scores(features, cost, law):
    """Return the weights v of the least max over labels of [cost p + v.phi] - E v.phi, p a distribution of the columns of each row.

    ``cost`` (labels, t, k) is 1 where p_t(k) takes 1 off the loss: with p free it is the max-min margin.
    """
    n, t, k = cost.shape
    D = features.shape[1]
    # variables v, p, and the maximum s
    objective = np.r_[-(law @ features), np.zeros(t * k), 1.0]
    A = np.hstack([features, -cost.reshape(n, -1), -np.ones((n, 1))])
    simplex = np.hstack([np.zeros((t, D)), np.kron(np.eye(t), np.ones(k)), np.zeros((t, 1))])
    bounds = [(-9.0, 9.0)] * D + [(0.0, None)] * (t * k) + [(None, None)]
    found = linprog(objective, A_ub=A, b_ub=np.full(n, -float(t)), A_eq=simplex, b_eq=np.ones(t), bounds=bounds)
    return found.x[:D], found.fun


def test_chains_have_the_bayes_risk_and_only_bayes_sequences_are_best():
    T, K = 2, 3
    every = sequences(T, K)
    features, loss = chain_features(every, K), wrong(every, every)
    cost = np.eye(K)[every]
    by_margin, laws = 0, 60
    for seed in range(laws):
        law = np.random.default_rng(seed).dirichlet(np.full(len(every), 0.5))
        risk = loss @ law
        v, least = best_scores(features, cost, law)
        U, A, f = v[: T * K].reshape(T, K), v[T * K :].reshape(K, K), features @ v
        # the mean over the law, and so at any other weights no less
        assert chain_game(U, A).value - law @ f == pytest.approx(risk.min(), abs=1e-8)
        assert least == pytest.approx(risk.min(), abs=1e-8)
        assert risk[f >= f.max() - 1e-7] == pytest.approx(risk.min(), abs=1e-8)
        other = v + 0.1 * np.random.default_rng(seed).normal(size=len(v))
        other_mean = chain_game(other[: T * K].reshape(T, K), other[T * K :].reshape(K, K)).value - law @ (features @ other)
        assert other_mean >= risk.min() - 1e-9
        # margin rescaling has a target for each true sequence
        rescaled = linprog(
            np.r_[-(law @ features), law],
            A_ub=np.hstack([np.tile(features, (len(every), 1)), -np.repeat(np.eye(len(every)), len(every), axis=0)]),
            b_ub=-loss.ravel(),
            bounds=[(-9.0, 9.0)] * features.shape[1] + [(None, None)] * len(every),
        )
        g = features @ rescaled.x[: features.shape[1]]
        by_margin += bool(risk[g >= g.max() - 1e-7].max() <= risk.min() + 1e-8)
    assert by_margin < laws


def test_fits_of_chains_predict_bayes_sequences_of_random_laws():
    every, n = sequences(2, 3), 0
    X, groups = np.tile(np.eye(2), (9, 1)), np.repeat(np.arange(9), 2)
    for seed in range(12):
        law = np.random.default_rng(seed).dirichlet(np.full(9, 0.5))
        risk = wrong(every, every) @ law
        if np.partition(risk, 1)[1] - risk.min() < 0.05:  # nearly another one
            continue
        n += 1
        fit = ChainClassifier(surrogate="maxmin", lam=1e-3, tol=5e-3, fit_intercept=False)
        fit.fit(X, every.ravel(), groups=groups, sample_weight=np.repeat(law, 2))
        assert risk.min() - 1e-9 <= fit.certificate_.primal <= 1.01 * risk.min()
        assert (fit.predict(X[:2], groups[:2]) == every[risk.argmin()]).all()
    assert n >= 6


@pytest.mark.parametrize("m", [2, 3])
def test_sets_have_only_bayes_sets_that_are_best(m):
    every = np.array(list(itertools.product((0, 1), repeat=m)))
    j, k = np.triu_indices(m, 1)
    features = np.hstack([every, every[:, j] * every[:, k]]).astype(float)
    for seed in range(60):
        law = np.random.default_rng(seed).dirichlet(np.full(2**m, 0.5))
        risk = wrong(every, every) @ law
        v, least = best_scores(features, np.eye(2)[every], law)
        table = pair_table(v[m:], m)
        game = solve_games(v[None, :m], v[m:], lambda U, table=table: best_of(U, table), [every[:1].astype(np.int8)], 1e-12)
        f = features @ v
        assert game.upper[0] - law @ f == pytest.approx(risk.min(), abs=1e-8)
        assert least == pytest.approx(risk.min(), abs=1e-8)
        assert risk[f >= f.max() - 1e-7] == pytest.approx(risk.min(), abs=1e-8)


def drawn_chains(seed):
    """Return rows, labels and groups of a few short chains, and a lambda."""
    random = np.random.default_rng(seed)
    K, lengths, lam = (
        int(random.integers(2, 4)),
        random.integers(1, 5, int(random.integers(3, 8))),
        float(10.0 ** random.uniform(-2.0, 0.0)),
    )
    X, noise = random.normal(size=(lengths.sum(), 3)), float(random.choice([0.1, 1.0, 3.0]))
    y = np.argmax(X @ random.normal(size=(3, K)) + noise * random.normal(size=(len(X), K)), axis=1)
    y[:K] = np.arange(K)  # every label is there
    return X, y, np.repeat(np.arange(len(lengths)), lengths), lam


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_of_chains_is_reached_to_the_eighth_digit(seed):
    X, y, groups, lam = drawn_chains(seed)
    model = ChainClassifier(surrogate="maxmin", lam=lam, tol=1e-8, max_passes=100_000, fit_intercept=False).fit(X, y, groups=groups)
    assert model.certificate_.converged
    # w, targets p of every row, and S_s >= sum_t (1 - p_t(y_t)) + f(y) - f(y_s) for every sequence y
    K, n, D = int(y.max()) + 1, int(groups.max()) + 1, 3 * (int(y.max()) + 1) + (int(y.max()) + 1) ** 2
    rows, right, width = [], [], D + len(X) * K + n
    for s in range(n):
        at = np.flatnonzero(groups == s)

        def counted(labels, at=at):
            own, pair = np.zeros((K, 3)), np.zeros((K, K))
            np.add.at(own, labels, X[at])
            np.add.at(pair, (labels[:-1], labels[1:]), 1.0)
            return np.r_[own.ravel(), pair.ravel()]

        for labels in sequences(len(at), K):
            p = np.zeros((len(X), K))
            p[at, labels] = -1.0
            rows.append(np.r_[counted(labels) - counted(y[at]), p.ravel(), -np.eye(n)[s]])
            right.append(-float(len(at)))
    bounds = -np.eye(width)[D : D + len(X) * K]
    total = np.hstack([np.zeros((len(X), D)), np.kron(np.eye(len(X)), np.ones(K)), np.zeros((len(X), n))])
    ridge = sparse.diags_array(np.r_[np.full(D, lam), np.zeros(width - D)]).tocsc()
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    linear = np.r_[np.zeros(width - n), np.full(n, 1.0 / n)]
    cones = [clarabel.ZeroConeT(len(X)), clarabel.NonnegativeConeT(len(rows) + len(bounds))]
    matrix = sparse.csc_array(np.vstack([total, np.array(rows), bounds]))
    ends = np.r_[np.ones(len(X)), np.array(right), np.zeros(len(bounds))]
    best = clarabel.DefaultSolver(ridge, linear, matrix, ends, cones, options).solve().obj_val
    assert model.certificate_.primal == pytest.approx(best, rel=3e-8)
    assert model.certificate_.dual == pytest.approx(best, rel=3e-8)


@given(seed=st.integers(0, 10**6), size=st.floats(0.1, 20.0))
@settings(max_examples=15, deadline=None)
def test_a_loss_times_w_has_the_surrogate_w_times_that_of_scores_over_w(seed, size):
    random = np.random.default_rng(seed)
    T, K = 3, 2
    every = sequences(T, K)
    U, A = random.normal(size=(T, K)), random.normal(size=(K, K))
    f = chain_features(every, K) @ np.r_[U.ravel(), A.ravel()]
    truth = random.integers(len(every))
    scaled = make_loss("general", len(every), matrix=size * wrong(every, every))
    found = size * chain_game(U / size, A / size, f[truth] / size).value
    assert float(scaled.value(f[None], np.array([truth]))[0]) == pytest.approx(found, rel=1e-9, abs=1e-9)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_without_transitions_the_program_is_the_sum_to_the_last_digits(seed):
    random = np.random.default_rng(seed)
    U, truth = 1.5 * random.normal(size=(5, 4)), random.integers(4, size=5)
    alone = make_loss("zero_one", 4).value(U, truth).sum()
    game = chain_game(U, np.zeros((4, 4)), U[np.arange(5), truth].sum())
    assert game.value == pytest.approx(alone, abs=1e-13)
    assert game.upper == pytest.approx(alone, abs=1e-13)


@given(seed=st.integers(0, 10**6), m=st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_the_game_over_the_relaxed_polytope_bounds_that_over_mixtures(seed, m):
    random = np.random.default_rng(seed)
    u, pairs = random.normal(size=m), 1.5 * random.normal(size=m * (m - 1) // 2)
    j, k = np.triu_indices(m, 1)
    p, eye = len(j), np.eye(m)
    # maximise u.mu + pairs.mu_jk + sum s_j, s_j <= mu_j, s_j <= 1 - mu_j
    upper = np.vstack([
        np.hstack([-eye[j], np.eye(p), np.zeros((p, m))]),
        np.hstack([-eye[k], np.eye(p), np.zeros((p, m))]),
        np.hstack([eye[j] + eye[k], -np.eye(p), np.zeros((p, m))]),
        np.hstack([-eye, np.zeros((m, p)), eye]),
        np.hstack([eye, np.zeros((m, p)), eye]),
    ])  # fmt: skip
    right = np.r_[np.zeros(2 * p), np.ones(p), np.zeros(m), np.ones(m)]
    relaxed = -linprog(-np.r_[u, pairs, np.ones(m)], A_ub=upper, b_ub=right, bounds=(0.0, 1.0)).fun
    table = pair_table(pairs, m)
    game = solve_games(u[None], pairs, lambda U: best_of(U, table), [np.zeros((1, m), dtype=np.int8)], 1e-12)
    assert relaxed >= game.upper[0] - 1e-8
    if m == 2:  # all distributions of two labels
        assert relaxed == pytest.approx(game.upper[0], abs=1e-8)


@pytest.mark.parametrize("surrogate", ["margin", "slack", "log", "prob", "f1"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_relaxed_surrogates_are_convex_in_the_weights_and_planes_of_mixtures_are_gradients(surrogate, seed):
    random = np.random.default_rng(seed)
    m = 4
    Y = random.integers(0, 2, size=(3, m)).astype(np.int8)
    structure = SearchedSets(np.eye(3), Y, np.full(3, 1 / 3), make_psi(surrogate), PairWeights(m, "one"), search="hull", relaxed=True)
    every = np.arange(3)
    points = [(random.normal(size=(3, m)), random.normal(size=m * (m - 1) // 2)) for _ in range(2)]
    (U, shared), (V, other) = points
    cuts, there, middle = (structure.search(*each, every) for each in [*points, ((U + V) / 2.0, (shared + other) / 2.0)])
    assert (middle.value <= (cuts.upper + there.upper) / 2.0 + 1e-7).all()
    parts = cuts.parts.toarray()
    at = [cuts.constant + parts[:, : structure.G] @ P + (parts[:, structure.G :] * W).sum(axis=1) for W, P in points]
    np.testing.assert_allclose(np.maximum(at[0], 0.0), cuts.value, atol=1e-9)
    assert (at[1] <= there.upper + 1e-7).all()


@pytest.mark.parametrize("surrogate", ["maxmin", "maxmin_f1"])
@pytest.mark.parametrize("pairs", ["one", "none"])
def test_the_optimum_of_the_games_is_that_of_one_program_over_all_sets_and_all_predictions(surrogate, pairs):
    X, Y = small_problem(4)
    model = MultilabelClassifier(surrogate=surrogate, pairs=pairs, lam=0.05, tol=1e-4, fit_intercept=False).fit(X, Y)
    every = np.array(list(itertools.product((0, 1), repeat=3)))
    cost = wrong(every, every) if surrogate == "maxmin" else 1.0 - f_measures(every.astype(np.int8), every.astype(np.int8))
    listed, n = points(X, Y, pairs), len(X)
    D = listed[0][0].shape[1]
    # w, the distribution p of predicted sets of every row, and S_i >= sum_z p_z L(z, y) + f(y) - f(y_i) for every y
    rows = np.vstack([np.hstack([A, np.kron(np.eye(n)[i], cost.T), np.tile(-np.eye(n)[i], (8, 1))]) for i, (A, _, _) in enumerate(listed)])
    least = np.hstack([np.zeros((8 * n, D)), -np.eye(8 * n), np.zeros((8 * n, n))])
    total = np.hstack([np.zeros((n, D)), np.kron(np.eye(n), np.ones(8)), np.zeros((n, n))])
    ridge = sparse.diags_array(np.r_[np.full(D, 0.05), np.zeros(9 * n)]).tocsc()
    quiet = clarabel.DefaultSettings()
    quiet.verbose = False
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(16 * n)]
    linear, right = np.r_[np.zeros(D + 8 * n), np.full(n, 1.0 / n)], np.r_[np.ones(n), np.zeros(16 * n)]
    program = clarabel.DefaultSolver(ridge, linear, sparse.csc_array(np.vstack([total, rows, least])), right, cones, quiet)
    best, found = program.solve().obj_val, model.certificate_
    assert found.converged
    assert found.dual - 1e-7 <= best <= found.primal + 1e-7
