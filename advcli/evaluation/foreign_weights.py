"""Weights that others fitted, from LIBLINEAR, scikit-learn or anybody, judged by the certificate: how far they are from the optimum.

The problem is ours (`advcli.problems.risk`): lambda/2 |Theta|^2 + 1/n sum_i S(f_i, y_i), lambda = 1/(n C), f = coef x + intercept. With an
intercept every row of X has a constant feature 1, whose weights, the intercept, are regularised like all others: LIBLINEAR's ``-B 1`` and
LinearSVC's ``intercept_scaling=1``. Without one the problem has no constant feature. Weights with an
unregularised intercept are a point of this problem too, but their solver minimised another objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from ..core.arrays import dense, is_sparse
from ..core.errors import ConfigError, ModelError, nearest
from ..core.row_blocks import BlockRows, in_blocks
from ..core.typing import Array
from ..features import make_features
from ..learners import Method
from ..learners.surrogate import SurrogateClassifier
from ..problems.certificate import Certificate
from ..problems.risk import Problem, gap_scale
from ..problems.row_blocks import BlockProblem
from ..results.arrays import read_archive
from .recipe import Recipe
from .standardise import Standardiser

if TYPE_CHECKING:
    from . import Cell


_STEPS = 40  # of the search between two dual points


@dataclass(frozen=True)
class Judgement:
    """How far weights are from the optimum of a problem.

    Attributes
    ----------
    primal : float
        P of the weights.
    dual : float
        The best lower bound of the optimum: no weights have a smaller P.
    best : float
        The least P known, of the weights or of our own fit: the optimum lies between ``dual`` and this.
    gap, relative_gap : float
        primal - dual, and that over primal (over |dual| where the primal is negative): how far from the optimum the weights are at most.
    excess : float
        primal - best: how far they are at least.
    certificate : Certificate
        Of our own fit.
    """

    primal: float
    dual: float
    best: float
    gap: float
    relative_gap: float
    excess: float
    certificate: Certificate


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Return ``coef`` and, where they are there, ``intercept`` and ``classes`` of a file in NumPy's npz format, else a `ModelError`."""
    if path.exists() and not path.is_file():  # a pipe would wait for a writer
        raise ModelError(f"cannot read {path}: it is a folder, a pipe or a device, not a file")
    try:
        arrays = read_archive(path)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror or type(error).__name__}") from None
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen kinds
        raise ModelError(
            f"{path} is not an npz file without pickle ({' '.join(str(error).split()) or type(error).__name__}); "
            "write it with numpy.savez(FILE, coef=...)"
        ) from None
    if "coef" not in arrays:
        raise ModelError(f"{path} holds no array coef; write it with numpy.savez(FILE, coef=model.coef_, intercept=model.intercept_)")
    for name in arrays:
        if name not in ("coef", "intercept", "classes"):
            raise ModelError(f"{path} holds an array {name}; {nearest(name, ('coef', 'intercept', 'classes'))}")
    return arrays


class Judge:
    """What judges linear weights of one problem, on rows X (n, d) with labels y (n,): our own fit, made once for any number of weights.

    The lower bound is the dual of that fit, raised on the segment towards the subgradients r_i at the given weights; of rows that are read
    in blocks (`advcli.core.row_blocks`) the better of the two ends. The loss, C or lam and solver of ``estimator`` say what problem, and
    ``tol`` how well it is solved for the bound; features are linear, with the moments in a ball. Its ``fit_intercept`` does not count:
    ``intercept`` says whether the problem has a constant feature, whose weights are regularised.
    """

    def __init__(self, estimator: SurrogateClassifier, X: Any, y: Any, sample_weight: Any = None, intercept: bool = False) -> None:
        estimator = clone(estimator).set_params(fit_intercept=intercept)
        if estimator.mapped_by not in ("linear", "multiclass") or estimator.map_options.get("moments", "ball") != "ball":
            raise ConfigError("foreign weights are judged with features=linear and features.moments=ball")
        self._estimator, self._rows, self._intercept = estimator, (X, np.asarray(y), sample_weight), intercept
        self._labels = np.unique(y) if estimator.n_classes is None else np.arange(estimator.n_classes)

    @cached_property
    def fitted(self) -> Any:
        """Our own fit, which the first weights of the right shape wait for."""
        return self._estimator.fit(*self._rows)

    @cached_property
    def _problem(self) -> Problem:
        return _problem(self.fitted, *self._rows)

    def __call__(self, coef: Any, intercept: Any = None, classes: Sequence[Any] | None = None) -> Judgement:
        """Return how far weights are from the optimum.

        ``coef`` (k, d) has one row of weights for each class, in the order of ``classes``, by default sorted. A single row w of two
        classes, f_1 - f_0 = w.x + b, is read as the rows -w/2 and w/2, the least norm that gives these scores: its regulariser is |w|^2/4,
        so weights fitted with |w|^2/2 + C sum have half of that C here. ``intercept`` (k,), or one number with a single row, are weights of
        the constant feature.
        """
        if (intercept is not None) != self._intercept:
            advice = "a constant feature: give intercept" if self._intercept else "no constant feature: leave intercept out"
            raise ConfigError(f"the problem has {advice}")
        theta = _parameters(coef, intercept, self._rows[0].shape[1], len(self._labels))
        if classes is not None:
            theta = theta[:, _order(self._labels, classes)]
        fitted, problem = self.fitted, self._problem
        primal = problem.primal(theta)
        if isinstance(problem, BlockProblem):
            dual = max(problem.dual(problem.subgradients(theta)), fitted.certificate_.dual)
            return _judgement(primal, dual, fitted.certificate_)
        R = fitted.solution_.R
        if R is not None:
            R = np.where(fitted.rows_[:, None] >= 0, dense(R)[fitted.rows_], 0.0)
        at_weights = problem.loss.oracle(problem.scaled(problem.features.scores(theta)), problem.y).R
        dual = problem.dual(at_weights)
        if R is not None:
            dual = max(dual, fitted.certificate_.dual, _highest(problem, R, at_weights))
        return _judgement(primal, dual, fitted.certificate_)


def _judgement(primal: float, dual: float, certificate: Certificate) -> Judgement:
    best = min(primal, certificate.primal)
    gap = primal - dual
    scale = gap_scale(primal, dual)
    relative = gap / scale if scale > 0 else (0.0 if gap <= 0 else float("inf"))
    return Judgement(primal, dual, best, gap, relative, primal - best, certificate)


def judge_weights(
    estimator: SurrogateClassifier,
    X: Any,
    y: Any,
    coef: Any,
    intercept: Any = None,
    classes: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> Judgement:
    """Return how far linear weights are from the optimum of an estimator's problem: `Judge` for one question.

    Parameters
    ----------
    estimator, X, y, sample_weight
        As in `Judge`.
    coef, intercept, classes
        As in its call; without an intercept the problem has no constant feature.

    Raises
    ------
    ConfigError
        Weights of another shape or not finite, unknown labels, other features than linear.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import LinearSVC
    >>> from advcli import AdversarialClassifier
    >>> from advcli.evaluation.foreign_weights import judge_weights
    >>> X, y = load_iris(return_X_y=True)
    >>> theirs = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=1.0, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
    >>> found = judge_weights(AdversarialClassifier("cs", C=1.0, fit_intercept=False), X, y, theirs.coef_)
    >>> bool(found.relative_gap < 1e-2)
    True
    """
    return Judge(estimator, X, y, sample_weight, intercept is not None)(coef, intercept, classes)


def _parameters(coef: Any, intercept: Any, d: int, k: int) -> Array:
    """Return Theta (d, k), with the intercept as its last row where there is one."""
    weights = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    bias = None if intercept is None else np.atleast_1d(np.asarray(intercept, dtype=np.float64)).ravel()
    if len(weights) == 1 and k == 2:
        weights = np.vstack([-0.5 * weights, 0.5 * weights])
        bias = None if bias is None or bias.shape != (1,) else np.array([-0.5 * bias[0], 0.5 * bias[0]])
        if intercept is not None and bias is None:
            raise ConfigError("intercept must be one number beside a single row of weights")
    if weights.shape != (k, d):
        raise ConfigError(f"coef has the shape {np.shape(coef)}; {k} classes and {d} features need {(k, d)}, one row for each class")
    if bias is not None and bias.shape != (k,):
        raise ConfigError(f"intercept has the shape {np.shape(intercept)}; {k} classes need {(k,)}")
    theta = np.ascontiguousarray(weights.T if bias is None else np.vstack([weights.T, bias]))
    if not np.isfinite(theta).all():
        raise ConfigError("the weights hold numbers that are not finite")
    return theta


def _order(labels: Any, classes: Sequence[Any]) -> list[int]:
    """Return which row of the weights belongs to each label of the data; labels compare by their text, as files hold them."""
    names = [str(label) for label in classes]
    missing = [str(label) for label in labels if str(label) not in names]
    if missing or len(set(names)) != len(labels):
        raise ConfigError(f"classes of the weights are {', '.join(names)}; the classes of the data are {', '.join(map(str, labels))}")
    return [names.index(str(label)) for label in labels]


def _problem(fitted: SurrogateClassifier, X: Any, y: Any, sample_weight: Any) -> Problem:
    """Return the problem that was fitted, on all rows as they are."""
    codes = np.searchsorted(fitted.classes_, y).astype(np.intp)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    cost = fitted.loss_.cost_weights(codes, weights if fitted.loss_.example_weights else None)
    weights = None if fitted.loss_.example_weights else weights
    features = _features(fitted, X)
    kind = BlockProblem if isinstance(features.X, BlockRows) else Problem
    return kind(features, fitted.loss_.core, codes, fitted.solution_.lam, weights, cost)


def _features(fitted: SurrogateClassifier, X: Any) -> Any:
    X = in_blocks(X)
    if isinstance(X, BlockRows):
        return make_features("linear", X.with_constant() if fitted.fit_intercept else X, len(fitted.classes_))
    X = X.astype(np.float64) if is_sparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    if fitted.fit_intercept:
        ones = np.ones((X.shape[0], 1))
        stack: Any = sparse.hstack  # its stubs do not know X of any format
        X = stack([X, ones], format="csr") if is_sparse(X) else np.hstack([X, ones])
    return make_features("linear", X, len(fitted.classes_))


def _highest(problem: Problem, one: Array, other: Array) -> float:
    """Return the largest D on the segment between two dual points: D is concave, so thirds of it are cut off until it is short."""
    low, high = 0.0, 1.0

    def dual(share: float) -> float:
        return problem.dual((1.0 - share) * one + share * other)

    for _ in range(_STEPS):
        lower, upper = low + (high - low) / 3.0, high - (high - low) / 3.0
        if dual(lower) < dual(upper):
            low = lower
        else:
            high = upper
    return dual(0.5 * (low + high))


def judge_file(path: Path, cell: Cell, data_dir: Path) -> tuple[Judgement, str]:
    """Judge the weights of a file on all rows of a data set; return what was found and a line on what they were judged on.

    The features are standardised with the statistics of all rows, as for `advcli fit`, and the weights are taken to be weights of these;
    with ``protocol.standardise=none`` both are of the features as they are.
    """
    weights = read_weights(path)
    method = Method.of(cell).uncalibrated
    if method.learner is not SurrogateClassifier:
        raise ConfigError(f"loss={cell.loss['name']} is not a surrogate with a dual; advcli certify takes zero_one, ww, cs, llw and others")
    recipe = Recipe(replace(cell, loss=method.loss), data_dir, search=False)
    dataset, k = recipe.dataset, recipe.n_classes
    hyper = dict(recipe.axes.fixed) or {"C": 1.0}
    estimator = recipe.method.at(hyper).make(k, int(cell.seed))
    assert isinstance(estimator, SurrogateClassifier)
    raw = cell.protocol.standardise == "none"
    X = dataset.X if raw else Standardiser().fit(dataset.X).transform(dataset.X)
    classes = None
    if "classes" in weights:
        order = _order(dataset.classes, weights["classes"].tolist())
        classes = np.argsort(order).tolist()  # codes of the rows' labels
    judgement = judge_weights(estimator, X, dataset.y, weights["coef"], weights.get("intercept"), classes, dataset.example_weight)
    constant = "with a regularised intercept" if "intercept" in weights else "without an intercept"
    strength = ", ".join(f"{name} = {value:g}" for name, value in hyper.items())
    rows, d = dataset.X.shape
    return judgement, f"{rows} rows, {d} features {'as they are' if raw else 'standardised'}, {k} classes; {strength}, {constant}"
