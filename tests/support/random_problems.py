"""Small problems that have broken solvers before, over every registered loss, feature map and solver."""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from support import reference
from support.pairwise import pairwise
from support.registered import canonical_losses, examples, in_package, with_kinks

from advcli.core.compiled import kernels
from advcli.features import feature_class, feature_names
from advcli.features.base import KernelMap
from advcli.features.linear import LinearFeatures
from advcli.losses import loss_class, make_loss
from advcli.problems.risk import Problem
from advcli.solvers import make_solver, solver_names

LINEAR = LinearFeatures.name
KINDS_OF_DATA = ("separable", "noisy", "duplicates", "conflicting", "small", "large", "constant")


@dataclass(frozen=True)
class Data:
    X: np.ndarray
    y: np.ndarray
    n_classes: int


def make_data(kind, seed=0, n=24, d=3, k=3):
    """Return rows and labels; every class occurs unless n < k."""
    random = np.random.default_rng([seed, n, d, k])
    X = random.normal(size=(n, d))
    scores = X @ random.normal(size=(d, k))
    if kind == "separable":
        X = X + 0.3 * (random.normal(size=(k, d))[np.argmax(scores, axis=1)])
        y = np.argmax(scores, axis=1)
    else:
        y = np.argmax(scores + np.std(scores) * random.normal(size=(n, k)), axis=1)
    if kind == "duplicates":
        X[n // 2 :], y[n // 2 :] = X[: n - n // 2], y[: n - n // 2]
    if kind == "conflicting":  # the same row under other labels
        X = np.round(X)
        X[n // 2 :] = X[: n - n // 2]
        y[n // 2 :] = (y[: n - n // 2] + 1) % k
    if kind == "small":
        X = X * 1e-3
    if kind == "large":
        X = X * 1e3
        X[0] *= 10.0
    if kind == "constant":  # a constant column, a column of zeros, a repeated column and a row of zeros
        X = np.column_stack([X, np.ones(n), np.zeros(n), X[:, 0]])
        X[1] = 0.0
    y[: min(n, k)] = np.arange(min(n, k))
    return Data(np.ascontiguousarray(X), y.astype(np.intp), k)


def canonical_names():
    return [name for name in with_kinks(canonical_losses()) if loss_class(name).kernel in kernels.families]


def options(name, k=3):
    return [each for each in examples(name, k) if each.get("backend") != "highs"]


def make_problem(data, name, which=0, features=LINEAR, C=1.0, sample_weight=None, cost_weight=None, X=None):
    """The problem of one option set of a loss; a given kernel matrix is X X', so that its optimum is that of linear features."""
    loss = make_loss(name, data.n_classes, **options(name, data.n_classes)[which])
    total = len(data.y) if sample_weight is None else float(np.sum(sample_weight))
    rows = data.X if X is None else X
    if is_kernel(features):
        rows = np.ascontiguousarray(rows @ rows.T)
    bound = feature_class(features)(rows, data.n_classes)
    return Problem(bound, loss, data.y, 1.0 / (C * total), sample_weight, cost_weight)


def is_kernel(features):
    return issubclass(feature_class(features), KernelMap)


def feature_maps():
    """Registered feature maps without aliases whose optimum the reference knows: explicit ones, and a given kernel, which here is X X'."""
    classes = {feature_class(name) for name in feature_names() if in_package(feature_class(name))}
    return sorted(each.name for each in classes if not each.hyper and (each.pairwise or not each.keeps_rows))


def package_solvers():
    return [name for name in solver_names() if in_package(type(make_solver(name)))]


def combinations(*factors, all_losses=False):
    """(loss, features, solver, then one value of each further factor) that fit together, judged by the solver's own word: pairwise.

    Unless all losses are wanted, only the solvers that `auto` is made of get them all; the others see a loss through the same oracle and
    get one of each shape: simplex with blocks by thresholds, by search and by an active set, and box. Features enter a solver through
    one interface as well; so two values that meet are tried, but not all three of loss, features and solver, times the further factors.
    """
    found = fitting()
    if not all_losses:
        every = {"auto", "dual", "newton", "kernel_dual", "kernel_newton"}
        found = [each for each in found if each[2] in every or each[0] in ("zero_one", "absolute", "llw", "general")]
    return pairwise([(*each, *more) for each in found for more in product(*factors)])


@cache
def fitting():
    """Return every (loss, features, solver) that fit together."""
    data = make_data("noisy")
    found = []
    for name in canonical_names():
        for features in feature_maps():
            problem = make_problem(data, name, features=features)
            for solver in package_solvers():
                if make_solver(solver).lacks(problem) is None:
                    found.append((name, features, solver))
    return found


def crawls(name, features, solver):
    """Whether this pair has only the block method, whose time grows like C; Newton takes explicit features."""
    return solver in ("dual", "dual_blocks", "kernel_dual") or precision(solver) > 0 or is_kernel(features)


def precision(solver):
    """The least relative gap that tests may ask of a solver, by its own word."""
    return make_solver(solver).precision


@cache
def optimum(kind, name, which=0, features=LINEAR, C=1.0, weights=False, n=24, d=3, k=3, seed=0):
    """The independent optimum: (primal, dual) of the quadratic program."""
    data = make_data(kind, seed, n, d, k)
    sample, cost = weights_of(data) if weights else (None, None)
    total = len(data.y) if sample is None else float(sample.sum())
    given = options(name, k)[which]
    shape = "threshold" if feature_class(features).needs_order else "linear"  # the reference's names
    found = reference.solve_problem(name, data.X, data.y, 1.0 / (C * total), k, sample, cost, shape, **given)
    return found["primal"], found["dual"]


def weights_of(data):
    random = np.random.default_rng(len(data.y))
    sample = random.integers(0, 4, size=len(data.y)).astype(float)
    sample[0] = 2.5
    return sample, random.uniform(0.2, 4.0, size=len(data.y))


def outside(problem, R):
    """How far R lies outside the sets conv R(y), in the largest coordinate."""
    rows, y = np.arange(len(problem.y)), problem.y
    worst = np.abs(R.sum(axis=1)).max(initial=0.0)
    if problem.loss.kernel in ("ww", "llw"):
        a = R - R[rows, y][:, None] if problem.loss.kernel == "llw" else R.copy()
        a[rows, y] = 0.0
        return max(worst, (-a).max(initial=0.0), (a - 1.0).max(initial=0.0))
    q = R.copy()
    q[rows, y] += 1.0
    return max(worst, (-q).max(initial=0.0))
