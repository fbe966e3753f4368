"""Reductions: a multiclass problem as independent binary problems over the same rows, certified by the gap of their sum.

    minimise over v_1, .., v_m   sum over the problems of  lambda/2 |v|^2 + 1/n sum_i w_i [margin_i - label_i v.x_i]_+,  n = all rows

Rows x end in a constant 1, whose weight is penalised like any other; a kernel K becomes K + 1. With ``bias="free"`` the scores are v.x + b,
and b has no penalty, as in LIBSVM. `advcli.learners.reductions.schemes` defines the problems; `advcli.solvers.newton.binary` solves them,
and `free_bias` solves those with a free bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.errors import IncompatibleError
from ...core.stored_arrays import Entries
from ...core.typing import Array, Labels, Options
from ...features import FeatureMap
from ...features.merging import merge_rows
from ...losses import matrices
from ...problems.binary import BinaryProblems, scores_of
from ...solvers import Limits
from ...solvers.newton.binary import solve_binary
from ...solvers.newton.free_bias import solve_free
from ..base import Bound, Rows, State, register
from ..costs.given_costs import LearnsFromCosts
from ..method import register_method
from ..options import check_options, describes, limits_of, mass_of, one_column, one_of, own_options, refuse_solver, seed_of
from ..refitting import Minimiser
from .schemes import PAIRS, SCHEMES, Scheme

BIASES = ("regularised", "free")

_MOST_NUMBERS, _ARRAYS = 2 * 10**8, 6
"""Rows times binary problems at most, and how many arrays there are of that size: about 10 GB."""

_FEATURES = "choose features=linear, kernel_pca, nystroem, rbf, poly or precomputed"


@describes(Minimiser)
@dataclass(kw_only=True, eq=False, repr=False)
class ReductionLearner(Minimiser):
    """Base of the multiclass classifiers made of binary problems, by the equation of the module; a scheme says which problems.

    Parameters
    ----------
    features, features_options, bias
        Linear feature map or kernel, and its options; whether the constants are ``"regularised"`` or ``"free"``.

    Attributes
    ----------
    coef_, intercept_ : ndarray (m, d), (m,)
        Weights and constant of every binary problem; of linear features alone.
    theta_ : ndarray (d + 1, m) or (n, m)
        One column for each problem. Of linear features the weights, and in the last row the constants, penalised or free; of a kernel the
        coefficients of the training rows, and with a free bias one row more for the biases.
    certificate_ : Certificate
        Primal and dual value of the sum of all problems.
    """

    endless = True
    method: ClassVar[str]

    max_passes: float = 100_000
    max_seconds: float = float("inf")
    bias: str = "regularised"

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the options that a configuration may set beside the strength and the limits."""
        return ("bias",)

    @classmethod
    def check(cls, loss: Options, features: Options, solver: Options, n_classes: int | None) -> None:
        """Refuse unknown options, a solver, and parameters that no data can mend."""
        check_options(loss, cls.option_names())
        refuse_solver(loss, solver)
        mapped = {"features": features["name"], "features_options": own_options(features)}
        cls(**cls.options_of(loss, solver, {}), **mapped, n_classes=n_classes).check_parameters()

    @classmethod
    def options_of(cls, loss: Options, solver: Options, hyper: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that are set, and the solver's limits."""
        return {key: value for key, value in own_options(loss).items() if value is not None and key != "file"} | limits_of(solver)

    # ---- fitting --------------------------------------------------------------------------------------------------
    @property
    def scheme(self) -> Scheme:
        """The reduction."""
        return SCHEMES[self.method]

    @property
    def n_mapped_(self) -> int:
        """Number m of binary problems, each of which has a column of scores."""
        return self.scheme.problems(len(self.classes_))

    def check_parameters(self) -> None:
        """Refuse a strength, tolerance, limit, bias, map or moments that no data can mend."""
        super().check_parameters()
        one_of("bias", self.bias, BIASES)
        if not one_column(self.mapped_by):
            raise IncompatibleError(f"loss={self.method}", "one column of parameters for every score", _FEATURES)
        if (moments := self.map_options.get("moments", "ball")) != "ball":
            raise IncompatibleError(f"features.moments={moments}", "an adversary", f"loss={self.method} has none: choose moments=ball")

    def cost_matrix(self) -> Array:
        """Return the cost matrix (k, k) that rows take their costs from by their labels."""
        return matrices.zero_one(len(self.classes_))

    def bind(self, rows: Rows, y: Any) -> Bound:
        """Return rows and labels as fits take them: equal rows of equal label merged, in one canonical order."""
        X, codes, weights = self._checked(rows.X, y, rows.weight)
        return self._bound(X, codes, np.ascontiguousarray(self.cost_matrix()[:, codes].T), weights)

    def _bound(self, X: Any, codes: Labels, costs: Array, weights: Array | None) -> Bound:
        """Merge rows that agree in X, label and costs (n, k)."""
        total = mass_of(len(codes), weights)
        count = self.n_mapped_
        if count * len(codes) > _MOST_NUMBERS:
            raise IncompatibleError(
                f"{type(self).__name__} on {len(codes)} rows of {len(self.classes_)} classes",
                f"some {_ARRAYS * 8e-9 * count * len(codes):.0f} GB of memory for its {count} problems",
                "choose a method with fewer problems (ova, csosr, csova), a surrogate (zero_one, cs), or fewer rows",
            )
        rows = np.arange(len(codes))
        if not self.map_class.pairwise:
            X, codes, weights, costs, rows = merge_rows(X, codes, weights, costs)  # type: ignore[assignment]
            if not self.map_class.euclidean:  # a problem of two classes then reads neighbours in a row of K
                order = np.argsort(codes, kind="stable")
                X, codes, costs, weights = X[order], codes[order], costs[order], None if weights is None else weights[order]
                rows = np.where(rows < 0, rows, np.argsort(order)[rows])
        return Bound.of(self, self._bind(X), codes, weights, costs=costs, rows=rows, total=total)

    def _fit_checked(self, bound: Bound, start: ReductionLearner | None) -> None:
        bound.set_facts(self)
        self.rows_, total = bound.own["rows"], bound.own["total"]
        self.lam_ = self._lam_of(total)
        if start is not None and start.features_ is not bound.features:
            bound.features.adopt(start.features_)
        labels, weights, margins = self.scheme.split(bound.codes, bound.own["costs"], getattr(self, "pairs", PAIRS[0]))
        problems = BinaryProblems(bound.features, labels, weights, self.lam_, bound.weights, margins, self._constant, self._free)
        limits, before = Limits(self.tol, self.max_passes, self.max_seconds), None if start is None else start.solution_
        seed = seed_of(self.random_state)
        solution = solve_free(problems, limits, before) if self._free else solve_binary(problems, limits, before, seed)
        self._settle(problems, solution, f"loss={self.method}")

    @property
    def appends_constant(self) -> bool:
        """Whether a constant 1 is appended to the rows: a free bias needs none."""
        return not self._free

    @property
    def _free(self) -> bool:
        return self.bias == "free"

    @property
    def _constant(self) -> float:
        """The constant that is added to a kernel: 1, or 0 with a free bias."""
        return 0.0 if self._free or self.map_class.euclidean else 1.0

    # ---- the parameters in scikit-learn's shapes --------------------------------------------------------------------
    @property
    def coef_(self) -> Array:
        """Weights of the columns of X, shape (m, d), in the order of `binary_scores`."""
        return np.array(self._linear_theta()[:-1].T)

    @property
    def intercept_(self) -> Array:
        """Constants or free biases of the binary problems, shape (m,)."""
        return np.array(self._linear_theta()[-1])

    def _objective(self, X: Any, codes: Labels, weights: Array | None) -> tuple[float, float]:
        costs = np.ascontiguousarray(self.cost_matrix()[:, codes].T)
        labels, problem_weights, margins = self.scheme.split(codes, costs, getattr(self, "pairs", PAIRS[0]))
        problems = BinaryProblems(self._mapped(X), labels, problem_weights, self.lam_, weights, margins, self._constant, self._free)
        if problems.features.euclidean or self.features_ is None:
            penalty = problems.ridge(self.theta_)
        else:  # |v|^2 is measured by the kernel of the training rows
            theta = self.theta_[:-1] if self._free else self.theta_
            square = self.features_.square_norm(theta) + self._constant * float((theta.sum(axis=0) ** 2).sum())
            penalty = 0.5 * self.lam_ * square
        return penalty, problems.empirical(self.theta_)

    # ---- prediction -----------------------------------------------------------------------------------------------
    def _scores(self, mapped: FeatureMap) -> Array:
        S = scores_of(mapped, self.theta_, self._constant, self._free)
        if not np.isfinite(S).all():
            return np.full((len(S), len(self.classes_)), np.nan)  # `potentials` names the row
        return np.ascontiguousarray(self.scheme.join(S, len(self.classes_), np.asarray(self.theta_.any(axis=0))))

    def binary_scores(self, X: Any) -> Array:
        """Return the scores of the binary problems at rows X (n, d), shape (n, m), in the order of `advcli.learners.reductions.schemes`."""
        return scores_of(self.look(X).at, self.theta_, self._constant, self._free)

    # ---- saving ---------------------------------------------------------------------------------------------------
    def saved(self) -> State:
        """Return what a saved model holds: parameters, the fitted ``theta``, and the rows that the features keep."""
        rows, theta = None, self.theta_
        if self.features_ is not None:
            size = self.features_.shape[0]  # beyond are the biases
            rows, held = self.features_.support(np.ascontiguousarray(theta[:size]))
            theta = np.ascontiguousarray(np.vstack([held, theta[size:]]))
        return {}, {"theta": theta}, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and `certificate_` are there already."""
        self._restore_theta(attributes, self._free)


@register("ova")
@describes(ReductionLearner)
class OneVersusAllClassifier(ReductionLearner):
    """One-versus-all: a support vector machine for each class against the others; the largest score wins.

    References
    ----------
    Rifkin and Klautau (2004), "In defense of one-vs-all classification", JMLR 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import OneVersusAllClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVersusAllClassifier(C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.95
    >>> model.certificate_.converged
    True
    """

    method = "ova"


@register("ovo")
@describes(ReductionLearner)
class OneVersusOneClassifier(ReductionLearner):
    """One-versus-one: a support vector machine for every pair of classes; each machine votes, and the first of tied classes wins.

    References
    ----------
    Hsu and Lin (2002), "A comparison of methods for multiclass support vector machines", IEEE Transactions on Neural Networks 13.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import OneVersusOneClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVersusOneClassifier(C=10.0).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    >>> model.certificate_.converged
    True
    """

    method = "ovo"


METHODS = tuple(name for name in SCHEMES if name not in ("ova", "ovo"))
"""Schemes that learn from costs."""


@describes(Minimiser)
@dataclass(kw_only=True, eq=False, repr=False)
class CostSensitiveClassifier(LearnsFromCosts, ReductionLearner):
    """Cost-sensitive classification by binary problems: from a cost matrix, or from the costs of every row (`fit`).

    Parameters
    ----------
    method : {"csosr", "csovo", "csova", "red_mc"}
        One-sided regression (Tu & Lin 2010), weighted one-versus-one (Lin 2014), weighted one-versus-all (Lin 2008), or one problem "is y
        above j?" for each step of ordered classes (Lin & Li 2012). `advcli.learners.reductions.schemes` defines them.
    pairs : {"own", "all"}
        Of csovo: rows of a pair of classes, the rows of these two, or all rows whose costs of the two differ.
    cost : {"zero_one", "absolute", "squared"}, array (k, k), frame or None
        The cost matrix, rows = predictions, columns = classes, both in the order of `order_`, or a frame whose rows and columns are named
        by the classes; ``"absolute"`` and ``"squared"`` count steps between classes. None: ``"zero_one"``.
    features, features_options : str, dict or None
        ``"linear"``, ``"kernel_pca"``, ``"nystroem"`` or a kernel (``"rbf"``, ``"poly"``, ``"precomputed"``), and the map's options.
    bias : {"regularised", "free"}
        Whether the constant of every problem, appended to linear rows or added to a kernel, is penalised.

    References
    ----------
    Tu and Lin (2010), "One-sided support vector regression for multiclass cost-sensitive classification", ICML: csosr.

    Lin (2008), "From ordinal ranking to binary classification", doctoral thesis, California Institute of Technology: csova.

    Lin (2014), "Reduction from cost-sensitive multiclass classification to one-versus-one binary classification", ACML: csovo.

    Lin and Li (2012), "Reduction from cost-sensitive ordinal ranking to weighted binary classification", Neural Computation 24:
    red_mc.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import CostSensitiveClassifier
    >>> X = np.repeat([[0.0], [1.0], [2.0]], 10, axis=0)
    >>> y = X[:, 0].astype(int)
    >>> CostSensitiveClassifier(method="csosr", cost="absolute", C=100.0).fit(X, y).predict([[0.0], [2.0]])
    array([0, 2])
    >>> costs = np.abs(np.arange(3) - X)  # of every row its own
    >>> CostSensitiveClassifier(method="csovo", C=100.0).fit(X, costs=costs).predict([[0.0], [2.0]])
    array([0, 2])
    """

    name = "cost_sensitive"

    method: str = "csosr"  # type: ignore[misc]
    pairs: str = "own"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self.method == "red_mc"  # scikit-learn's checks have classes without an order
        return tags

    # ---- from a configuration -------------------------------------------------------------------------------------
    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the costs, the bias, and of csovo the rows of a pair."""
        return (*super().option_names(), "bias", *(("pairs",) if cls.method == "csovo" else ()))

    @classmethod
    def needs(cls, loss: Options) -> frozenset[str]:
        """Return the order of the labels for red_mc and for costs that count steps between them."""
        return frozenset({"order"}) if cls.method == "red_mc" else super().needs(loss)

    # ---- fitting --------------------------------------------------------------------------------------------------
    @property
    def counts_steps(self) -> bool:
        """Whether the costs or the reduction count steps between classes."""
        return super().counts_steps or self.method == "red_mc"

    def check_parameters(self) -> None:
        """Refuse what a reduction refuses, and unknown methods and pairs."""
        one_of("method", self.method, METHODS)
        one_of("pairs", self.pairs, PAIRS)
        super().check_parameters()


for _name in METHODS:
    _method: Any = register_method(_name, CostSensitiveClassifier, () if _name == "csovo" else ("pairs",), method=_name)
    if _name == "red_mc":
        _method.default_cost = "absolute"
        _method.without_order = "give it with dataset.order=[lowest,...,highest] or choose loss=csosr"
