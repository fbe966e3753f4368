"""Structured surrogates of sets by listing every set, with nothing shared with the package but the surrogates' own formulas."""

import itertools

import numpy as np


def small_problem(seed, n=6, m=3, d=2):
    """Return rows with sets of labels, one of them empty and one full."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Y = (random.random(size=(n, m)) < 0.4).astype(int)
    Y[0], Y[1] = 0, 1
    return X, Y


def weights(model):
    """Return w of a fit in the order of `features`."""
    return np.concatenate([model.coef_.ravel(), model.shared_])


def features(x, y, pairs):
    """Return phi(x, y): y_j x for every label, then what the pairs of the set count."""
    own = [y[j] * x for j in range(len(y))]
    for j, k in itertools.combinations(range(len(y)), 2):
        state = np.zeros(4)
        state[2 * y[j] + y[k]] = 1.0
        # neither, first, second, both
        own.append({"one": state[3:], "four": state[[0, 2, 1, 3]], "none": state[:0]}[pairs])
    return np.concatenate(own)


def points(X, Y, pairs):
    """Return for every row phi(x, y) - phi(x, y_i) (2^m, D), the numbers of labels that differ and the sizes of both sets."""
    every = [np.array(y) for y in itertools.product((0, 1), repeat=Y.shape[1])]
    found = []
    for x, truth in zip(X, Y, strict=True):
        A = np.array([features(x, y, pairs) - features(x, truth, pairs) for y in every])
        found.append((A, np.array([(y != truth).sum() for y in every]), np.array([y.sum() + truth.sum() for y in every])))
    return found


def axes(psi, margin, wrong, sizes):
    """Return h and g of a surrogate."""
    return (margin + wrong, -sizes) if psi.axes == "f1" else (margin, wrong)


def objective(psi, lam, listed, w):
    """Return P(w)."""
    worst = [float(psi.value(*axes(psi, A @ w, wrong.astype(float), sizes.astype(float))).max()) for A, wrong, sizes in listed]
    return 0.5 * lam * w @ w + float(np.mean(worst))
