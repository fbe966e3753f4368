"""The base of the structured learners: options, training by planes, the certificate with the oracle's share of it."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ...core.errors import ConfigError, DataError, IncompatibleError
from ...core.groups import Starts
from ...core.typing import Array, Labels, Options
from ...problems.certificate import judge, warn_unless_converged
from ...solvers.base import Limits
from ...solvers.cutting_planes import CuttingPlaneFit, CuttingPlaneProblem, CuttingPlanes, fit_cutting_planes
from ..base import Bound
from ..linear import LinearLearner
from ..options import one_of, seed_of
from ..refitting import Refitting, check_positive
from .frank_wolfe import ExampleSteps, fit_by_examples
from .spaces.psi import SURROGATES, Psi, make_psi

MAXMIN = "maxmin"  # the max-min margin, a game and no psi, by its name among the surrogates
GAMES = (MAXMIN, "maxmin_f1")  # the max-min margins of the number of wrong labels and, of sets alone, of the F-measure
_OF_TRAINING = ("_problem", "relation_fit_", "stages_", "dual_", "trainer_", "trained_on_", "became_", "trained_targets_")


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredLearner(Refitting, LinearLearner):
    """Base of learners of structured labels, which differ in `problem` and in how they predict.

    A subclass registers itself by its name in the group ``loss``, adds options as fields and names all of them, as `ChainClassifier` does.

    Parameters
    ----------
    beta : float or None
        Of ``surrogate="scaling"``; None: 0.5.
    C, lam, tol : float
        Weight of the summed surrogate against |w|^2 / 2, lambda = 1/(n C), or lambda itself; relative duality gap that is accepted.
    max_passes, max_seconds : float
        Limits of searches of all rows and of seconds; beyond, a fit warns (`NotConvergedWarning`) and keeps its certificate.
    fit_intercept : bool
        Whether a constant 1 is appended to the rows, penalised like the rest.
    warm_start, verbose, random_state
        Whether a fit begins at the dual point of the last one, a line about each fit, and the seed of the visits.
    features, features_options, n_classes
        Feature map with linear scores and its options; the number of classes of labels that are codes 0..n_classes-1.

    Notes
    -----
    ``coef_`` (K, d) is W, the weights of the scores of a row, and ``shared_`` (G,) are the weights of pairs or of transitions.
    ``certificate_`` compares an upper bound of P there with the dual value of the stored planes in ``dual_``, which is not part of a saved
    model. ``oracle_gap_`` is the part of the gap that the ``oracle_calls_`` searches leave open: the mean upper bound less the value of the
    label that was found; 0 for exact ones.
    """

    certified: ClassVar[bool] = True
    hyper: ClassVar[tuple[str, ...]] = ("regularisation",)

    surrogate: str = "margin"
    beta: float | None = None
    search: str = "auto"
    max_seconds: float = float("inf")
    fit_intercept: bool = True

    @abstractmethod
    def problem(self, X: Any, y: Any, share: Array, psi: Psi) -> CuttingPlaneProblem:
        """Return the examples of rows X (N, d) of the feature map and their labels, as the surrogate sees them.

        ``share`` (N,) are the rows' shares, of sum 1.
        """

    @property
    def appends_constant(self) -> bool:
        """Whether a constant 1 is appended to the rows: ``fit_intercept``."""
        return self.fit_intercept

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the options that a configuration may set; the limit of seconds is the solver's."""
        return tuple(name for name in super().option_names() if name != "max_seconds")

    @classmethod
    def options_of(cls, loss: Options, solver: Options, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the group ``loss``, and the solver's limit of seconds."""
        limits = {"max_seconds": float(solver["max_seconds"])} if solver.get("max_seconds") is not None else {}
        return {**super().options_of(loss, solver, hyper), **limits}

    def check_parameters(self) -> None:
        """Refuse parameters that no data can mend."""
        self.check_common()
        self.psi()

    def check_common(self) -> None:
        """Refuse parameters beside the surrogate's that no data can mend."""
        Refitting.check_parameters(self)
        if self.max_seconds != float("inf"):
            check_positive(max_seconds=self.max_seconds)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise ConfigError(f"fit_intercept={self.fit_intercept} must be true or false")

    def check_surrogate(self, kinds: Iterable[str], training: str, by_examples: Iterable[str]) -> None:
        """Refuse a surrogate that examples of several rows do not have, a training, and parameters beside them that no data can mend.

        ``kinds`` are the surrogates, ``by_examples`` the trainings beside ``planes``.
        """
        if self.surrogate in SURROGATES and self.surrogate not in kinds:
            needs = "sets of labels" if self.surrogate == "f1" else "SGD, as it is not convex"
            raise IncompatibleError(f"loss.surrogate={self.surrogate}", needs, f"loss={self.name} has {', '.join(kinds)}")
        one_of("loss.surrogate", self.surrogate, tuple(kinds))
        if one_of("loss.training", training, ("planes", *by_examples)) != "planes" and self.surrogate == MAXMIN:
            needs = "targets that are learned beside the weights"
            raise IncompatibleError(f"loss.surrogate={MAXMIN}", needs, f"loss.training={training} has none: choose planes")
        if self.surrogate != MAXMIN:
            StructuredLearner.check_parameters(self)
            return
        if self.beta is not None:
            raise ConfigError(f"loss.beta={self.beta} is an option of loss.surrogate=scaling; {MAXMIN} has none")
        self.check_common()

    def check_rule(self, rule: str, rules: tuple[str, ...]) -> None:
        """Refuse a rule of prediction that is unknown, or that this surrogate has no predictor for."""
        one_of("loss.rule", rule, rules)
        if rule == "predictor" and self.surrogate not in GAMES:
            instead = f"{self.surrogate} has potentials alone"
            raise ConfigError(f"loss.rule=predictor is for loss.surrogate={MAXMIN}, whose game has one; {instead}")

    def psi(self) -> Psi:
        """Return the surrogate."""
        return make_psi(self.surrogate, self.beta)

    # ---- fitting --------------------------------------------------------------------------------------------------
    @property
    def limits(self) -> Limits:
        """When `train` ends."""
        return Limits(float(self.tol), float(self.max_passes), float(self.max_seconds))

    def train(self, problem: CuttingPlaneProblem, psi: Psi, start: CuttingPlanes | None) -> CuttingPlaneFit:
        """Minimise P at `lam_`, from planes of another lambda where there are some."""
        return fit_cutting_planes(problem, self.lam_, self.limits, seed_of(self.random_state), start)

    def _bound_again(self, before: Any, bound: Bound) -> Bound:
        return getattr(before, "trained_on_", bound)

    def _fit_checked(self, bound: Bound, start: Any) -> None:
        # from the stored planes of a start that was fitted to the same rows with the same options
        self._start = start.dual_ if self._continues(start, bound, set(self.option_names()) - {"max_passes"}) else None
        try:
            LinearLearner.fit_bound(self, bound)
        finally:
            del self._start
        self.trained_on_ = bound

    def _continues(self, start: Any, bound: Bound, options: Iterable[str]) -> bool:
        """Return whether ``start`` was fitted to these bound rows with the same values of these options."""
        same = type(start) is type(self) and getattr(start, "trained_on_", None) is bound
        return same and all(getattr(start, name) == getattr(self, name) for name in options)

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Train until the gap is small."""
        began = time.perf_counter()
        sample = np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
        psi = self.psi()
        problem = self.problem(X, y, sample / sample.sum(), psi)
        self.lam_ = float(self.lam or 1.0 / (self.C * float(sample.sum())))
        return self.take(self.train(problem, psi, self._start), began)

    def take(self, fit: CuttingPlaneFit, began: float) -> Array:
        """Take over a training begun at a `time.perf_counter`, judge it, warn where it missed the tolerance, and return its W."""
        self.dual_: Any = fit.planes
        self.trained_targets_: Array | None = fit.targets
        self.shared_, self.oracle_gap_, self.oracle_calls_ = fit.shared, fit.oracle_gap, fit.calls
        self.n_iter_ = max(1, math.ceil(fit.passes))
        spent: dict[str, Any] = {"passes": float(fit.passes), "solver": fit.solver, "seconds": time.perf_counter() - began}
        self.certificate_ = judge(fit.primal, fit.dual, float(self.tol), outside=fit.planes.outside(), status=fit.stopped, **spent)
        if self.certificate_.status != "not_convex":
            warn_unless_converged(f"loss={self.name}, lambda={self.lam_:.3g}", self.certificate_, self.tol)
        return fit.W

    @property
    def counts_(self) -> dict[str, float]:
        """The oracle's share of the gap, and its calls."""
        return {"oracle_gap": float(self.oracle_gap_), "oracle_calls": float(self.oracle_calls_)}

    def proof(self, X: Any, codes: Any, weight: Array | None) -> dict[str, Array]:
        """Return the weights, W' row by row and the shared ones behind them, and the stored planes (`stored_planes`); or none."""
        planes = self.stored_planes()
        return {} if planes is None else {"theta": np.concatenate([np.ravel(self.coef_.T), self.shared_]), "r": planes}

    def stored_planes(self) -> Array | None:
        """Return the dual point as `advcli.results.proofs` keeps it; None where labels alone do not determine it."""
        return None

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Return what a saved model holds: all but the dual point."""
        parameters, attributes, rows = super().saved()
        return parameters, {name: value for name, value in attributes.items() if name not in _OF_TRAINING}, rows

    def __getstate__(self) -> dict[str, Any]:
        """Leave the training rows out of a pickle."""
        return {name: value for name, value in super().__getstate__().items() if name not in _OF_TRAINING}


class SequenceLearner(StructuredLearner):
    """Base of learners whose examples are several rows: by stored labels of every example, or with one mean plane of each.

    `bind` adds ``weights``, those of the examples, to the entries of its own.
    """

    has_groups: ClassVar[bool] = True
    alike: ClassVar[tuple[str, ...]] = ("surrogate", "beta", "training")  # options that fits share which begin at each other
    trainer: ClassVar[type[Any]]  # by stored labels of a problem
    by_examples: ClassVar[Mapping[str, type[ExampleSteps]]]  # by the name of the training

    training: str

    @abstractmethod
    def examples(self, bound: Bound, share: Array) -> CuttingPlaneProblem:
        """Return the problem of bound examples with these shares, of sum 1."""

    def sharpened(self, problem: Any, fit: CuttingPlaneFit) -> CuttingPlaneFit:
        """Return a training with the best bound of P at its weights."""
        return fit

    def _fit_checked(self, bound: Bound, start: Any) -> None:
        # from the stored labels or the mean planes of a start that was fitted to the same examples with the same surrogate
        bound.set_facts(self)
        began, weights = time.perf_counter(), bound.own["weights"]
        self.remarks_, self.lam_ = (), float(self.lam or 1.0 / (self.C * weights.sum()))
        problem, alike = self.examples(bound, weights / weights.sum()), self._continues(start, bound, self.alike)
        trainer, seed = None, seed_of(self.random_state)
        if self.training == "planes":
            trainer = start.trainer_ if alike else self.trainer(problem)
            trainer.problem = problem  # of this tolerance
            fit = trainer.learn(self.lam_, self.limits, seed)
        else:
            steps = self.by_examples[self.training](problem, self.lam_)
            fit = fit_by_examples(steps, self.limits, seed, start=start.dual_ if alike else None)
        self.trainer_, self.trained_on_ = trainer, bound
        self.coef_ = self.take(self.sharpened(problem, fit), began)


def weights_of_sequences(weight: Any, X: Any, start: Starts) -> Array:
    """Return the weight of every sequence of rows X, (s,), from those of its rows (n,) or None; `DataError` where they differ."""
    n = X.shape[0]
    weights = np.ones(n) if weight is None else _check_sample_weight(weight, X, ensure_non_negative=True)
    first = np.repeat(weights[start[:-1]], np.diff(start))
    if not np.array_equal(first, weights):
        row = int(np.flatnonzero(first != weights)[0])
        raise DataError(f"row {row + 1} has another weight than the first of its sequence; sequences have weights, not rows")
    if not weights.any():
        raise ConfigError("sample_weight is zero for every row")
    return np.asarray(weights[start[:-1]], dtype=np.float64)
