"""The max-min margin of the F-measure: the general game over all sets, its program over sized labels, consistency, and its fits."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from advcli.core.errors import IncompatibleError
from advcli.learners.structured import MultilabelClassifier
from advcli.learners.structured.spaces.enumerated_sets import pair_table
from advcli.learners.structured.spaces.f_measure_game import by_size_of_table, f_measures, free_by_size, solve_f_games
from advcli.losses import make_loss


def sets_of(m):
    return np.array(list(itertools.product((0, 1), repeat=m)), dtype=np.int8)


def played(U, pairs, truth, tolerance=1e-10):
    """Return the games that begin at the true sets, with pairs where there are weights of pairs."""
    m = U.shape[1]
    best = by_size_of_table(pair_table(pairs, m)) if len(pairs) else free_by_size
    columns, answers = ([y[None] for y in truth] for _ in range(2))
    return solve_f_games(U, pairs, best, columns, answers, tolerance), columns


@given(seed=st.integers(0, 10**6), m=st.integers(2, 4), scale=st.sampled_from([0.1, 0.5, 2.0]), with_pairs=st.booleans())
@settings(max_examples=30, deadline=None)
def test_it_is_the_general_game_over_all_sets(seed, m, scale, with_pairs):
    random, every = np.random.default_rng(seed), sets_of(m)
    U, pairs = scale * random.normal(size=(3, m)), scale * random.normal(size=m * (m - 1) // 2 if with_pairs else 0)
    j, k = np.triu_indices(m, 1)
    f = U @ every.T + ((every[:, j] * every[:, k]) @ pairs if with_pairs else 0.0)
    truth = random.integers(len(every), size=3)
    loss = 1.0 - f_measures(every, every)
    own = f[np.arange(3), truth]
    general = make_loss("general", len(every), matrix=loss).value(f, truth)
    game, columns = played(U, pairs, every[truth])
    np.testing.assert_allclose(game.upper - own, general, atol=1e-8)
    # the mixture attains it
    for i, (q, Y) in enumerate(zip(game.shares, columns, strict=True)):
        law = np.zeros(len(every))
        law[Y[: len(q)] @ (1 << np.arange(m)[::-1])] = q
        assert (loss @ law).min() + law @ f[i] == pytest.approx(game.upper[i], abs=1e-8)
        np.testing.assert_allclose(law @ every, game.labels[i], atol=1e-12)
    assert (f.max(axis=1) - own <= general + 1e-9).all()
    assert (general <= (f + loss[:, truth].T).max(axis=1) - own + 1e-9).all()


@given(seed=st.integers(0, 10**6), m=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_without_pairs_it_is_a_program_over_labels_and_sizes(seed, m):
    random = np.random.default_rng(seed)
    u, size = random.normal(size=m), np.arange(1, m + 1)
    # P_js, then pi_0..pi_m, then the least loss
    count = m * m + m + 2
    upper, right = [], []
    for z in sets_of(m):
        row = np.zeros(count)
        if z.any():
            row[: m * m] = (z[:, None] * 2.0 / (z.sum() + size)).ravel()
        else:
            row[m * m] = 1.0
        row[-1] = 1.0
        upper.append(row)
        right.append(1.0)
    for j, s in itertools.product(range(m), range(m)):
        row = np.zeros(count)
        row[j * m + s], row[m * m + s + 1] = 1.0, -1.0
        upper.append(row)
        right.append(0.0)
    equal = np.zeros((m + 1, count))
    for s in range(m):
        equal[s, s : m * m : m], equal[s, m * m + s + 1] = 1.0, -(s + 1.0)
    equal[m, m * m : -1] = 1.0
    objective = -np.r_[np.repeat(u, m), np.zeros(m + 1), 1.0]
    bounds = [(0.0, None)] * (count - 1) + [(None, None)]
    found = linprog(objective, A_ub=np.array(upper), b_ub=right, A_eq=equal, b_eq=np.r_[np.zeros(m), 1.0], bounds=bounds)
    game, _ = played(u[None], np.zeros(0), np.zeros((1, m), dtype=np.int8))
    assert game.upper[0] == pytest.approx(-found.fun, abs=1e-8)


def test_the_best_mean_over_a_law_is_the_bayes_risk_and_the_predictor_is_a_bayes_set():
    every = sets_of(2)
    features, loss = np.column_stack([every, every.prod(axis=1)]).astype(float), 1.0 - f_measures(every, every)
    for seed in range(25):
        law = np.random.default_rng(seed).dirichlet(np.full(4, 0.5))
        risk = loss @ law
        # v, p, s: least s - E f with s >= sum_z p_z (1 - F(z, y)) + f(y)
        found = linprog(
            np.r_[-(law @ features), np.zeros(4), 1.0],
            A_ub=np.hstack([features, loss.T, -np.ones((4, 1))]),
            b_ub=np.zeros(4),
            A_eq=np.r_[np.zeros(3), np.ones(4), 0.0][None],
            b_eq=[1.0],
            bounds=[(-9.0, 9.0)] * 3 + [(0.0, None)] * 4 + [(None, None)],
        )
        v = found.x[:3]
        game, _ = played(v[None, :2], v[2:], every[:1])
        assert game.upper[0] - law @ (features @ v) == pytest.approx(risk.min(), abs=1e-8)
        assert risk[int(game.targets[0] @ [2, 1])] == pytest.approx(risk.min(), abs=1e-7)


@pytest.mark.parametrize("pairs", ["one", "none"])
def test_fits_are_certified_and_their_planes_lie_below(pairs):
    random = np.random.default_rng(1)
    X = random.normal(size=(20, 2))
    Y = (X @ random.normal(size=(2, 3)) + 0.5 * random.normal(size=(20, 3)) > 0.4).astype(int)
    model = MultilabelClassifier(surrogate="maxmin_f1", pairs=pairs, tol=1e-3).fit(X, Y)
    assert model.certificate_.converged
    assert 0.0 <= model.oracle_gap_ <= 1e-3
    assert model.metric_ == "instance_f1"
    every = sets_of(3)
    j, k = np.triu_indices(3, 1)
    f = model.potentials(X) @ every.T + ((every[:, j] * every[:, k]) @ model.shared_ if pairs == "one" else 0.0)
    truth = Y @ [4, 2, 1]
    general = make_loss("general", 8, matrix=1.0 - f_measures(every, every)).value(f, truth)
    ridge = 0.5 * model.lam_ * (np.vdot(model.coef_, model.coef_) + model.shared_ @ model.shared_)
    assert model.certificate_.dual - 1e-9 <= ridge + general.mean() <= model.certificate_.primal + 1e-9
    structure = model.dual_.problem
    W, shared = random.normal(size=model.coef_.shape), random.normal(size=model.shared_.shape)
    assert model.dual_.values(W, shared).max() <= structure.all_cuts(W, shared).upper.max() + 1e-6
    for rule in ("predictor", "potentials"):
        chosen = model.set_params(rule=rule).predict(X).toarray()
        assert np.diag(f_measures(chosen.astype(np.int8), Y.astype(np.int8))).mean() > (~Y.any(axis=1)).mean() + 0.2


def test_more_rows_than_are_played_together_are_joined(monkeypatch):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(15, 2)), random.integers(0, 2, size=(15, 3))
    whole = MultilabelClassifier(surrogate="maxmin_f1", tol=1e-2).fit(X, Y)
    monkeypatch.setattr("advcli.learners.structured.label_sets.F1_ROWS", 4)
    parts = MultilabelClassifier(surrogate="maxmin_f1", tol=1e-2).fit(X, Y)
    assert parts.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-12)
    assert (parts.predict(X) != whole.predict(X)).nnz == 0


def test_what_it_has_not_is_said():
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(3, 2)), random.integers(0, 2, size=(3, 17))
    with pytest.raises(IncompatibleError, match="maxmin_f1 with pairs needs at most 16 labels"):
        MultilabelClassifier(surrogate="maxmin_f1").fit(X, Y)
    with pytest.raises(IncompatibleError, match="is a game"):
        MultilabelClassifier(surrogate="maxmin_f1", search="hull").fit(X, Y)
    assert MultilabelClassifier(surrogate="maxmin_f1", pairs="none", C=0.1, tol=0.1).fit(X, Y).certificate_.converged
