"""Checks of losses, solvers, learners and metrics."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..certificate import certify
from ..features import make_features
from ..learners import Learner
from ..losses import AdversarialLoss, Loss, make_loss
from ..losses.base import ROUNDING
from ..metrics import Metric, compute
from ..metrics import check_metric as metric_of
from ..problem import Problem, Solution
from ..solvers import Limits, Solver

Array = NDArray[np.float64]


def _holds(true: Any, broken: str) -> None:
    if not true:
        raise AssertionError(broken)


# ---- losses -----------------------------------------------------------------------------------------------------------


def _scores(k: int, random: np.random.Generator) -> Array:
    """Return rows of scores (24, k): several sizes, ties, one level, shifts by 1e8."""
    F = random.normal(size=(24, k))
    F[:4] *= 0.1
    F[4:8] *= 10.0
    F[8:14] = np.round(F[8:14])
    F[14] = 0.0
    F[15] = 3.25
    F[16:18] += np.array([[1e8], [-1e8]])
    return F


def check_loss(loss_class: type[Loss], **options: Any) -> None:
    """Check a class of losses at 1, 2, 3 and 6 classes.

    Its answers attain their values and are subgradients, no common shift of the scores matters, answers and their mixtures are feasible
    dual points, points outside are found and brought back, compiled answers agree with the readable ones, and in a game neither player
    gains by another response.

    Parameters
    ----------
    loss_class : class
    **options
        Options of the loss; without them its ``examples`` are tried.

    Raises
    ------
    AssertionError
    """
    for k in (1, 2, 3, 6):
        for given in [options] if options else loss_class.examples(k):
            _check_loss(loss_class(k, **given), f"{loss_class.__name__} with {k} classes and options {given}")


def _check_loss(loss: Loss, what: str) -> None:
    k = loss.n_classes
    random = np.random.default_rng(k)
    F = _scores(k, random)
    y = random.integers(0, k, len(F))
    # one of each size enters a value: scores, summed over labels by some losses, and costs
    costs = float(np.abs(loss.matrix).max() * np.max(getattr(loss, "weight", 1.0))) if isinstance(loss, AdversarialLoss) else float(k)
    room = 1e-10 * (1.0 + costs + k * np.abs(F).max(axis=1))
    answer = loss.oracle_reference(F, y)
    _holds(
        answer.R.shape == F.shape and answer.value.shape == y.shape, f"{what}: oracle_reference answers in other shapes than (n,), (n, k)"
    )
    _holds(np.isfinite(answer.value).all(), f"{what}: a value is no finite number")
    attained = np.einsum("ij,ij->i", answer.R, F) + answer.offset
    _holds((np.abs(attained - answer.value) <= room).all(), f"{what}: r.f + c is not the value of the oracle's answer (r, c)")
    other = np.roll(F, 1, axis=0)
    there = loss.oracle_reference(other, y)
    below = answer.value + np.einsum("ij,ij->i", answer.R, other - F)
    slack = room + np.roll(room, 1)
    _holds((there.value >= below - slack).all(), f"{what}: r is no subgradient: the value elsewhere lies below its plane")
    moved = loss.oracle_reference(F + 1.0, y)
    _holds((np.abs(moved.value - answer.value) <= 10 * room).all(), f"{what}: adding 1 to every score changes the value")
    again = loss.oracle_reference(F, y)
    _holds(np.array_equal(again.R, answer.R), f"{what}: oracle_reference does not repeat its bits")
    mixed = 0.5 * (answer.R + there.R)
    for R in (answer.R, mixed):
        _holds((loss.infeasibility(R, y) <= ROUNDING * k).all(), f"{what}: infeasibility calls an answer, or a mixture of two, outside")
        _holds(loss.project(R, y) is R, f"{what}: project moves a feasible point")
    mean = 0.5 * (answer.offset + there.offset)
    _holds((loss.offset_reference(mixed, y) >= mean - slack).all(), f"{what}: offset_reference is not concave between two answers")
    outside = mixed + 0.01
    _holds((loss.infeasibility(outside, y) >= 0.003).all(), f"{what}: infeasibility does not see that every number of r is 0.01 too large")
    back = loss.project(outside, y)
    _holds((loss.infeasibility(back, y) <= ROUNDING * k).all(), f"{what}: project leaves a point outside")
    offsets = loss.offset_reference(answer.R, y)
    _holds((offsets >= answer.offset - room).all(), f"{what}: offset_reference lies below the c of the oracle's own answer")
    compiled = loss.oracle(F, y)
    _holds((np.abs(compiled.value - answer.value) <= room).all(), f"{what}: oracle and oracle_reference have other values")
    _holds((np.abs(loss.value(F, y) - answer.value) <= room).all(), f"{what}: value and oracle_reference differ")
    _holds((loss.infeasibility(compiled.R, y) <= 1e-11).all(), f"{what}: an answer of oracle lies outside")
    near = np.allclose(loss.offset(mixed, y), loss.offset_reference(mixed, y), rtol=1e-10, atol=1e-10 * (1.0 + costs))
    _holds(near, f"{what}: offset and offset_reference differ")
    if isinstance(loss, AdversarialLoss):
        _check_players(loss, F, what, 1e-10 * (1.0 + costs + np.abs(F).max(axis=1)))


def _check_players(loss: AdversarialLoss, F: Array, what: str, room: Array) -> None:
    Q, P = loss.adversary(F), loss.predictor(F)
    _holds(P.shape == (len(F), loss.n_predictions), f"{what}: predictor returns shape {P.shape}, not (n, {loss.n_predictions})")
    for name, mass in (("adversary", Q), ("predictor", P)):
        right = mass.min() >= 0 and np.abs(mass.sum(axis=1) - 1.0).max() <= 1e-9
        _holds(right, f"{what}: {name} returns rows that are no distributions")
    weight = float(np.max(getattr(loss, "common", 1.0)))
    matrix = loss.matrix if weight != 1.0 or not hasattr(loss, "base") else loss.base.matrix
    level = F.max(axis=1, keepdims=True)
    gap = (P @ matrix + F - level).max(axis=1) - (Q @ matrix.T).min(axis=1) - np.einsum("ij,ij->i", F - level, Q)
    _holds((np.abs(gap) <= room).all(), f"{what}: a player gains by another response than the one returned")


# ---- solvers ----------------------------------------------------------------------------------------------------------


def _problem(C: float, n: int = 24, features: str = "linear") -> Problem:
    random = np.random.default_rng(n)
    X = np.ascontiguousarray(random.normal(size=(n, 3)))
    y = np.argmax(X @ random.normal(size=(3, 3)) + random.normal(size=(n, 3)), axis=1).astype(np.intp)
    y[:3] = np.arange(3)
    if features == "precomputed":
        X = np.ascontiguousarray(X @ X.T)
    for array in (X, y):
        array.setflags(write=False)
    loss = make_loss("zero_one", 3)
    if features == "box":
        bound = make_features("linear", X, 3, moments="box", tolerance=0.5)
        return Problem(bound, loss, y, 0.0, tolerance=bound.tolerance(y, None))
    return Problem(make_features(features, X, 3), loss, y, 1.0 / (C * n))


def check_solver(solver_class: type[Solver], **options: Any) -> None:
    """Check a class of solvers on small zero-one problems: with linear features, a kernel matrix, or moments in a box.

    Weak duality holds wherever it is stopped, and what stopped it is said; it reads no more than ``max_passes`` by a round of work; the
    same seed gives the same bits; its tolerance is reached; a warm start is not written to and leads to the tolerance, one of another shape
    is ignored or refused by a `ValueError` such as `ConfigError`; and inputs are read-only.

    Parameters
    ----------
    solver_class : class
    **options
        Options of the solver.

    Raises
    ------
    AssertionError
    """
    what = solver_class.__name__
    features = next(
        (each for each in ("linear", "precomputed", "box") if solver_class(**options).lacks(_problem(1.0, features=each)) is None), None
    )
    if features is None:
        raise AssertionError(
            f"{what} lacks {solver_class(**options).lacks(_problem(1.0))} for linear features, and takes neither a kernel matrix nor a box"
        )

    def solve(problem: Problem, limits: Limits, start: Solution | None = None, seed: int = 0) -> Solution:
        return solver_class(**options).solve(problem, limits, start, seed=seed)

    tol = max(1e-2, solver_class.precision)
    problem = _problem(0.5, features=features)
    solved = solve(problem, Limits(tol, max_passes=1e5, max_seconds=600.0))
    best = certify(problem, solved, tol)
    _holds(best.converged, f"{what} stopped at a relative gap of {best.relative_gap:.1e} ({best.status}), asked for {tol:g}")
    for passes in (1, 2, 5, 13):
        part = solve(problem, Limits(1e-9, max_passes=passes))
        judged = certify(problem, part, 1e-9)
        above = judged.primal >= best.dual - 1e-12 and not judged.dual > best.primal + 1e-12
        _holds(above, f"{what}: stopped after {passes} passes, its bounds contradict those of the solution")
        _holds(part.passes <= passes + 60, f"{what} made {part.passes:g} passes, allowed were {passes}")
        said = judged.converged or judged.status in ("max_passes", "gap_above_tolerance", "stalled")
        _holds(said, f"{what}: stopped by max_passes={passes}, the certificate says {judged.status!r}")
    timed = solve(_problem(64.0, 60, features), Limits(1e-12, max_passes=1e9, max_seconds=0.0))
    _holds(timed.status == "max_seconds", f"{what}: without any time it says {timed.status!r}, not 'max_seconds'")
    one, two = (solve(problem, Limits(tol, max_passes=50), seed=5) for _ in range(2))
    same = np.array_equal(one.theta, two.theta) and one.passes == two.passes and one.status == two.status
    _holds(same, f"{what}: the same seed gives other bits, passes or another status")
    kept = pickle.dumps((solved.theta, solved.R))
    warm = solve(_problem(1.0, features=features), Limits(tol, max_passes=1e5, max_seconds=600.0), solved)
    _holds(pickle.dumps((solved.theta, solved.R)) == kept, f"{what} writes to the solution that it starts from")
    _holds(certify(_problem(1.0, features=features), warm, tol).converged, f"{what} does not converge from a start at another lambda")
    try:
        other = solve(_problem(0.5, 13, features), Limits(tol, max_passes=1e5, max_seconds=600.0), solved)
    except ValueError:  # refusing is as good as ignoring
        return
    _holds(certify(_problem(0.5, 13, features), other, tol).converged, f"{what} does not converge from a start for other rows")


# ---- learners ---------------------------------------------------------------------------------------------------------


def check_learner(learner: Learner) -> None:
    """Check an unfitted learner on rows of three classes.

    It is cloned with its parameters, fits labels of any kind and codes with ``n_classes`` alike, repeats its bits, writes to no input, has
    scores of shape (n, k) whose largest entry is the prediction of its code, and predicts the same after pickling.

    Raises
    ------
    AssertionError
    """
    what = type(learner).__name__
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 12)
    X = random.normal(size=(36, 3)) + 2.0 * y[:, None]
    names = np.array(["ant", "bee", "cat"])
    for array in (X, y):
        array.setflags(write=False)
    own = learner.get_params(deep=False)
    written = [name for name in inspect.signature(type(learner).__init__).parameters if name != "self"]
    _holds(set(own) == set(written), f"{what}: its parameters are not the arguments of __init__")
    copied = clone(learner).get_params(deep=False)
    _holds(repr(copied) == repr(own), f"{what}: a clone has other parameters")
    fitted = clone(learner).fit(X, names[y])
    again = clone(learner).fit(X, names[y])
    F = fitted.potentials(X)
    _holds(F.shape == (36, 3), f"{what}: potentials have shape {F.shape}, not (n, k) = (36, 3)")
    _holds(np.isfinite(F).all(), f"{what}: a potential is no finite number")
    _holds(np.array_equal(F, again.potentials(X)), f"{what}: two fits to the same rows have other bits")
    codes = fitted.predict_codes(X)
    _holds(np.array_equal(fitted.predictions_[codes], fitted.predict(X)), f"{what}: predict is not the label of predict_codes")
    _holds(list(fitted.classes_) == list(names), f"{what}: classes_ are not the sorted labels")
    if "n_classes" in own:
        coded = clone(learner).set_params(n_classes=3).fit(X, y)
        _holds(np.array_equal(coded.potentials(X), F), f"{what}: codes with n_classes=3 are fitted otherwise than labels")
    loaded = pickle.loads(pickle.dumps(fitted))
    _holds(np.array_equal(loaded.potentials(X), F), f"{what}: it predicts otherwise after pickling")


# ---- metrics ----------------------------------------------------------------------------------------------------------


def check_metric(metric: str | Callable[..., float] | Metric, **facts: Any) -> None:
    """Check a metric, by its name or as a function ``(y_true, y_predicted, n_classes, facts)``, on codes of three classes.

    The value is one number, does not depend on the order of the rows, and is nowhere better than for the truth itself; with ``is_count``
    the value times the rows is a whole number.

    Parameters
    ----------
    metric : str, callable or Metric
    **facts
        What the metric needs (`advcli.metrics.FACTS`).

    Raises
    ------
    AssertionError
    """
    about = metric if isinstance(metric, Metric) else metric_of(metric) if isinstance(metric, str) else None
    what = f"metric {about.name}" if about is not None else f"metric {getattr(metric, '__name__', metric)}"

    def value(y: Any, predicted: Any) -> float:
        given: Mapping[str, Any] = facts
        if isinstance(metric, str):
            return compute(metric, y, predicted, 3, given)
        function = metric.function if isinstance(metric, Metric) else metric
        assert function is not None
        return float(function(y, predicted, 3, given))

    random = np.random.default_rng(0)
    y = np.r_[[0, 1, 2], random.integers(3, size=27)].astype(np.intp)
    best = value(y, y)
    _holds(np.isfinite(best), f"{what}: the value of the truth itself is {best}")
    for at in range(20):
        predicted = np.where(random.uniform(size=30) < at / 20, random.integers(3, size=30), y).astype(np.intp)
        found, order = value(y, predicted), random.permutation(30)
        _holds(np.isclose(value(y[order], predicted[order]), found, rtol=1e-12, atol=1e-15), f"{what}: the order of the rows changes it")
        if about is not None:
            better = found > best + 1e-12 if about.higher_is_better else found < best - 1e-12
            _holds(not better, f"{what}: a prediction with errors is better ({found:g}) than the truth itself ({best:g})")
            if about.is_count:
                _holds(abs(30 * found - round(30 * found)) <= 1e-9, f"{what}: is_count, but {found:g} times 30 rows is no whole number")
