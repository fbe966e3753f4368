"""loss.rule=f1: predictions maximise the expected F-measure under the distribution that the rule names."""

import itertools

import numpy as np
import pytest

from advcli.core.errors import IncompatibleError
from advcli.learners.structured import MultilabelClassifier


def data(n=25, m=4):
    random = np.random.default_rng(2)
    X = random.normal(size=(n, 3))
    Y = (X @ random.normal(size=(3, m)) + 0.8 * random.normal(size=(n, m)) > 0.7).astype(int)
    return X, Y


def f_measures(every):
    both = every @ every.T
    sizes = every.sum(axis=1)[:, None] + every.sum(axis=1)
    return np.where(sizes > 0, 2.0 * both / np.maximum(sizes, 1), 1.0)


def scores(model, X, every):
    """Return f(y) of sets at rows, of pairs with one weight or none."""
    j, k = np.triu_indices(every.shape[1], 1)
    found = model.potentials(X) @ every.T
    return found + (every[:, j] * every[:, k] @ model.shared_ if len(model.shared_) else 0.0)


@pytest.mark.parametrize("pairs", ["one", "four", "none"])
@pytest.mark.parametrize("surrogate", ["margin", "f1"])
def test_no_set_is_expected_to_do_better_under_exp_scores(surrogate, pairs):
    X, Y = data()
    model = MultilabelClassifier(surrogate=surrogate, pairs=pairs, rule="f1", tol=1e-2).fit(X, Y)
    every = np.array(list(itertools.product((0, 1), repeat=4)))
    if pairs == "four":  # states of each pair, one by one
        f = model.potentials(X) @ every.T
        for at, (j, k) in enumerate(itertools.combinations(range(4), 2)):
            f += model.shared_[4 * at + np.array([0, 2, 1, 3])][2 * every[:, j] + every[:, k]]
    else:
        f = scores(model, X, every)
    law = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    expected = law @ f_measures(every).T
    chosen = model.predict(X).toarray() @ (1 << np.arange(4)[::-1])
    np.testing.assert_allclose(expected[np.arange(len(X)), chosen], expected.max(axis=1), rtol=1e-12)
    assert model.metric_ == "instance_f1"
    assert (model.predict(X).toarray() != model.set_params(rule="potentials").predict(X).toarray()).any()


@pytest.mark.parametrize("pairs", ["one", "none"])
def test_the_mixture_of_the_max_min_margin_is_worst_and_its_best_set_is_predicted(pairs):
    X, Y = data(n=15, m=3)
    model = MultilabelClassifier(surrogate="maxmin", pairs=pairs, rule="f1", tol=1e-2).fit(X, Y)
    every = np.array(list(itertools.product((0, 1), repeat=3)))
    wrong = (every[:, None] != every[None]).sum(axis=2)
    U = model.potentials(X)
    P = model.shared_ if pairs == "one" else np.zeros(3)
    game, columns = model._played(U, P)
    f, chosen = scores(model, X, every), model.predict(X).toarray()
    for i in range(len(X)):
        if pairs == "one":
            law = np.zeros(8)
            law[columns[i][: len(game.shares[i])] @ [4, 2, 1]] = game.shares[i]
        else:
            law = np.where(every == 1, game.labels[i], 1.0 - game.labels[i]).prod(axis=1)
        assert law.sum() == pytest.approx(1.0, abs=1e-9)
        # its value is that of the game: least expected loss and expected score
        assert (wrong @ law).min() + law @ f[i] == pytest.approx(game.upper[i], abs=1e-7)
        expected = f_measures(every) @ law
        assert expected[chosen[i] @ [4, 2, 1]] == pytest.approx(expected.max(), abs=1e-9)


def test_many_labels_and_single_ones_are_refused_in_a_line():
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(8, 2)), random.integers(0, 2, size=(8, 17))
    with pytest.raises(IncompatibleError, match="rule=f1 needs at most 16 labels where they have pairs; the data have 17"):
        MultilabelClassifier(rule="f1").fit(X, Y)
    with pytest.raises(IncompatibleError, match="rule=f1 needs sets of labels"):
        MultilabelClassifier(rule="f1").fit(X, Y[:, 0])
    free = MultilabelClassifier(rule="f1", pairs="none", tol=0.1).fit(X, Y)
    assert free.predict(X).shape == (8, 17)
    late = MultilabelClassifier(tol=0.5, C=0.01).fit(X, Y).set_params(rule="f1")
    with pytest.raises(IncompatibleError, match="at most 16 labels"):
        late.predict(X)
