"""The max-min margin of chains against its published algorithm, written from the paper's description.

Nowak-Vila, Bach and Rudi (2020), "Consistent structured prediction with max-min margin Markov networks": generalised block-coordinate
Frank-Wolfe, whose oracle solves the game of one example by saddle-point mirror-prox with entropies. Laws are over all K^T sequences here.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from advcli.learners.structured import ChainClassifier

K, D = 3, 4
LAM, EPOCHS, STEPS, RATE = 1.0, 80, 60, 1.0


class Sequence:
    """One sequence: what all K^T label sequences have of every weight, and which state each has where."""

    def __init__(self, X, y):
        every = np.array(list(itertools.product(range(K), repeat=len(y))))
        self.states = np.eye(K)[every]  # (L, T, K)
        follows = (self.states[:, :-1, :, None] * self.states[:, 1:, None, :]).sum(axis=1).reshape(len(every), -1)
        phi = np.hstack([np.einsum("ltk,td->lkd", self.states, X).reshape(len(every), -1), follows])
        self.gained = phi - phi[(every == y).all(axis=1)]
        self.log_law, self.log_p = np.zeros(len(every)), np.zeros((len(y), K))

    def saddle_point(self, w):
        """Return a mixture near the worst one, by mirror-prox from where the last call ended."""
        margins, mean = self.gained @ w, np.zeros(len(self.log_law))

        def slopes(log_law, log_p):
            law, p = softmax(log_law), softmax(log_p)
            # of the payoff sum_t (1 - p_t.mu_t) + margin: in the law, and against it in p
            return law, margins - np.einsum("ltk,tk->l", self.states, p), np.einsum("ltk,l->tk", self.states, law)

        for _ in range(STEPS):
            _, up, down = slopes(self.log_law, self.log_p)
            law, up, down = slopes(self.log_law + RATE * up, self.log_p + RATE * down)
            self.log_law, self.log_p = self.log_law + RATE * up, self.log_p + RATE * down
            mean += law / STEPS
        return mean

    def loss(self, law):
        """Return the least expected number of wrong labels of any prediction."""
        shares = np.einsum("ltk,l->tk", self.states, law)
        return float((1.0 - shares.max(axis=1)).sum())

    def surrogate(self, w):
        """Return the game's value, by a linear program over all laws."""
        L, T = self.states.shape[:2]
        cost = np.r_[-self.gained @ w, np.ones(T)]  # minimise sum_t s_t - margin, s_t >= mu_t(a)
        rows = np.hstack([self.states.reshape(L, -1).T, -np.kron(np.eye(T), np.ones((K, 1)))])
        return T - linprog(cost, rows, np.zeros(T * K), np.r_[np.ones(L), np.zeros(T)][None], [1.0]).fun


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def published_algorithm(sequences, random):
    """Return w of generalised block-coordinate Frank-Wolfe with line search, and the dual value of its mixtures."""
    n, width = len(sequences), sequences[0].gained.shape[1]
    parts, losses, w = np.zeros((n, width)), np.zeros(n), np.zeros(width)
    for _ in range(EPOCHS):
        for i in random.permutation(n):
            law = sequences[i].saddle_point(w)
            move, rise = law @ sequences[i].gained - parts[i], sequences[i].loss(law) - losses[i]
            square = float(move @ move)
            step = np.clip((rise + w @ move) * LAM * n / square, 0.0, 1.0) if square > 0.0 else 0.0
            parts[i] += step * move
            losses[i] += step * rise
            w -= step * move / (LAM * n)
    return w, losses.mean() - 0.5 * LAM * float(w @ w)


def test_the_published_algorithm_comes_to_the_certified_optimum():
    random = np.random.default_rng(3)
    lengths = (2, 3, 1, 3, 2, 3)
    weights = random.normal(size=(D, K))
    rows = [random.normal(size=(T, D)) for T in lengths]
    labels = [np.argmax(X @ weights + random.normal(size=(len(X), K)), axis=1) for X in rows]
    sequences = [Sequence(X, y) for X, y in zip(rows, labels, strict=True)]
    w, dual = published_algorithm(sequences, random)
    primal = 0.5 * LAM * float(w @ w) + np.mean([each.surrogate(w) for each in sequences])
    groups = np.repeat(np.arange(len(lengths)), lengths)
    model = ChainClassifier(surrogate="maxmin", lam=LAM, tol=1e-4, fit_intercept=False)
    model.fit(np.vstack(rows), np.concatenate(labels), groups=groups)
    ours = model.certificate_
    assert ours.converged
    # its point is no better than the optimum, its mixtures prove no more, and both come near
    assert primal >= ours.dual - 1e-9
    assert dual <= ours.primal + 1e-9
    assert primal == pytest.approx(ours.primal, rel=1e-2)
    assert dual == pytest.approx(ours.dual, rel=1e-2)
    # the certified weights have the value that the learner states: the targets' bound is above it, and near
    found = np.r_[model.coef_.ravel(), model.shared_]
    value = 0.5 * LAM * float(found @ found) + np.mean([each.surrogate(found) for each in sequences])
    assert ours.dual - 1e-9 <= value <= ours.primal + 1e-9
