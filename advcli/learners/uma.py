"""UMA and the perceptrons: ultraconservative additive updates, from noisy labels and their confusion matrix (Louche & Ralaivola 2015).

UMA builds points z_pq. On average over the noise they are sums of the rows of true class q that the present W predicts as p. An
ultraconservative algorithm (Crammer & Singer 2003) learns from these points. With C = I, UMA is a batch perceptron.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.extmath import row_norms

from ..core.arithmetic import refuse_portable
from ..core.checks import NOT_NEGATIVE, at_least, refuse_parameter
from ..core.compiled import compiled_rows, kernels
from ..core.errors import ConfigError, ModelError
from ..core.linalg import inv
from ..core.paths import expanded
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels
from ..data.labels.confusion import ILL_CONDITIONED, check_confusion, read_confusion
from ..losses import matrices
from .base import State, register
from .confusion_estimates import ESTIMATES, estimated
from .linear import LinearLearner
from .method import register_method
from .options import one_of, seed_of

RULES = {"error": 0, "confusion": 1, "random": 2}
STEPS = {"perceptron": 0, "uniform": 1, "worst": 2, "passive_aggressive": 3}
_STOPPED = (
    ("tol", "no update vector longer than the threshold was left"),
    ("max_updates", "max_updates was reached"),
    ("no_mistake", "no update vector was a mistake any more"),
)


@dataclass(kw_only=True, eq=False, repr=False)
class LearnsFromConfusion(LinearLearner):
    """A learner that knows the confusion matrix behind its labels: the option ``confusion``."""

    takes: ClassVar[tuple[str, ...]] = ("confusion",)
    paths: ClassVar[tuple[str, ...]] = ("confusion",)

    confusion: Any = field(default=None, kw_only=False)

    def check_parameters(self) -> None:
        """Refuse an estimate of the matrix where arithmetic is portable."""
        super().check_parameters()
        if isinstance(self.confusion, str) and self.confusion in ESTIMATES:
            refuse_portable(f"confusion={self.confusion}", "give the matrix, or rows with known labels")

    def saved(self) -> State:
        """Return what a saved model holds, the matrix as numbers."""
        parameters, attributes, rows = super().saved()
        return parameters | ({} if self.confusion is None else {"confusion": self.confusion_.tolist()}), attributes, rows

    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `ModelError` for a confusion that is not a matrix of the classes."""
        k, matrix = len(self.classes_), self.confusion
        numbers = not isinstance(matrix, str) and np.shape(matrix) == (k, k) and np.isfinite(np.array(matrix, dtype=np.float64)).all()
        if matrix not in (None, "identity") and not numbers:
            raise ModelError(f"its confusion is no matrix of {k} x {k} numbers")
        super().restore(attributes)


@register("uma")
@dataclass(kw_only=True, eq=False, repr=False)
class UMAClassifier(LearnsFromConfusion):
    """UMA, the unconfused ultraconservative multiclass algorithm (Louche & Ralaivola 2015, Algorithm 2).

    Parameters
    ----------
    confusion : array-like (k, k), str, Path or None
        C[p, q] = P(label p is seen | the true class is q), classes in sorted order: columns are distributions. Rows and columns of a frame
        are found by their names. A text names a CSV file without heading, or an estimate from the noisy labels alone: "anchors", "joint" or
        "hoc" (`advcli.learners.confusion_estimates`). None: the identity, labels as they are.
    rule : {"error", "confusion", "random"}
        Which pair (p, q) is updated: largest |z_pq|; largest |z_pq| / pi_q with pi the class shares estimated through C^-1 (eq. 19 and
        20); any. Only pairs with |z_pq| > ``tol`` whose z is a mistake of the present W.
    step : {"perceptron", "uniform", "worst", "passive_aggressive"}
        tau_q = 1 and tau_p = -1; -1 shared by the error set; -1 for its class of largest score (all three satisfy eq. 6); the
        passive-aggressive step on z/|z| against that class, which does not: its tau_q is not 1.
    unit_step : bool
        Update by z/|z| instead of z. The mistake bound 2/theta^2 (Theorem 3.1) needs it.
    alpha : float
        Margin of the sets A_p and of the error set, at least 0. Above 0 nothing moves from W = 0.
    tol : float
        Length up to which an update vector counts as zero. With C other than I sums leave residues of 1e-17.
    max_updates : int
        Limit of updates. Under noise |z| does not become small, so that only the limit ends a fit.
    class_weight : dict, "balanced" or None
        What a row of each class seen weighs, beside its ``sample_weight``, also in ``prior_``; ``"balanced"``: all weigh the same.
    features, features_options, n_classes, random_state
        Feature map with linear scores and its options; number of classes of labels that are codes; seed of ``rule="random"``.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weight vectors; their sum is 0.
    confusion_, condition_ : ndarray (k, k), float
        The matrix used and its condition number.
    prior_ : ndarray (k,)
        Estimated shares of the true classes, pi = C^-1 (counts / n); an entry can be 0 or negative, and is not a candidate of
        ``rule="confusion"`` then.
    n_updates_ : int
        Updates made.
    stopped_ : {"tol", "max_updates", "no_mistake"}
        What ended the fit.
    largest_update_ : float
        Length of the longest update vector off the diagonal at the end.

    Notes
    -----
    Memory: 2 k^2 d numbers for the sums. A tie for the largest score puts an example into the A_p of every tied class (at W = 0: all).

    References
    ----------
    Louche and Ralaivola (2015), "Unconfused ultraconservative multiclass algorithms", Machine Learning 99: Algorithm 2; eq. 6 is the step,
    eq. 19 and 20 the rule confusion, Theorem 3.1 the bound of the mistakes.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import UMAClassifier
    >>> random = np.random.default_rng(0)
    >>> truth = random.integers(3, size=600)
    >>> X = np.eye(3)[truth] + 0.1 * random.normal(size=(600, 3))
    >>> confusion = np.array([[0.8, 0.0, 0.0], [0.2, 0.7, 0.0], [0.0, 0.3, 1.0]])  # label seen, true class
    >>> seen = np.array([random.choice(3, p=confusion[:, label]) for label in truth])
    >>> bool(UMAClassifier(confusion=confusion, max_updates=50).fit(X, seen).score(X, truth) > 0.9)
    True
    """

    rule: str = "error"
    step: str = "perceptron"
    unit_step: bool = False
    alpha: float = 0.0
    tol: float = 1e-12
    max_updates: int = 1000
    class_weight: Any = None

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Run Algorithm 2 from W = 0."""
        return self.learn_from(np.zeros((len(self.classes_), X.shape[1])), X, y, weights)

    def learn_from(self, W: Array, X: Any, y: Labels, weights: Array | None = None) -> Array:
        """Run Algorithm 2 from the weight vectors W (k, d) on codes y; W is not changed."""
        rule, step = RULES[one_of("rule", self.rule, RULES)], STEPS[one_of("step", self.step, STEPS)]
        for name, rule_of in {"alpha": NOT_NEGATIVE, "tol": NOT_NEGATIVE, "max_updates": at_least(1)}.items():
            refuse_parameter(name, getattr(self, name), rule_of)
        if not isinstance(self.unit_step, (bool, np.bool_)):
            raise ConfigError(f"unit_step={self.unit_step} must be true or false")
        k = len(self.classes_)
        self.confusion_, self.condition_ = confusion_matrix(self.confusion, k, list(self.order_), X, y)
        inverse = np.ascontiguousarray(inv(self.confusion_))
        share = np.full(len(y), 1.0 / len(y)) if weights is None else weights / weights.sum()
        self.prior_ = inverse @ np.bincount(y, weights=share, minlength=k)
        W = np.ascontiguousarray(W, dtype=np.float64).copy()
        F = np.ascontiguousarray(X @ W.T)
        self.n_updates_, code, self.largest_update_ = kernels.uma.learn(
            *compiled_rows(X),
            np.ascontiguousarray(y, dtype=np.intp),
            np.ascontiguousarray(share, dtype=np.float64),
            inverse,
            self.prior_,
            W,
            F,
            float(self.alpha),
            float(self.tol),
            rule,
            step,
            bool(self.unit_step),
            int(self.max_updates),
            seed_of(self.random_state) & 0xFFFFFFFFFFFFFFFF,
        )
        self.stopped_, remark = _STOPPED[code]
        self.n_iter_ = max(1, self.n_updates_)
        ill = (f"condition number of C above {ILL_CONDITIONED:g}",) if self.condition_ > ILL_CONDITIONED else ()
        self.remarks_ = (remark, *ill)
        return W


@register("perceptron")
@dataclass(kw_only=True, eq=False, repr=False)
class PerceptronClassifier(LinearLearner):
    """The online ultraconservative algorithms (Crammer & Singer 2003), several passes, last iterate.

    Parameters
    ----------
    step : {"perceptron", "uniform", "worst", "passive_aggressive"}
        Of an example's error set: -1 for the predicted class (the class of largest score, so ``worst`` is the same online); -1 shared by
        all; the passive-aggressive step against the predicted class.
    epochs : int
        Passes over the examples, in a fresh order each; an epoch without a mistake is the last.
    features, features_options, n_classes, random_state
        Feature map with linear scores and its options; number of classes of labels that are codes; seed of the orders.

    Attributes
    ----------
    coef_ : ndarray (k, d)
        Weight vectors; their sum is 0.
    n_updates_, n_iter_ : int
        Updates made and epochs run.

    References
    ----------
    Louche and Ralaivola (2015), "Unconfused ultraconservative multiclass algorithms", Machine Learning 99: Algorithm 1.

    Crammer and Singer (2003), "Ultraconservative online algorithms for multiclass problems", JMLR 3.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import PerceptronClassifier
    >>> y = np.arange(30) % 3
    >>> PerceptronClassifier().fit(np.eye(3)[y], y).score(np.eye(3)[y], y)
    1.0
    """

    step: str = "perceptron"
    epochs: int = 20

    def fit(self, X: Any, y: Any, **given: Any) -> PerceptronClassifier:  # type: ignore[override]
        """Fit to rows X (n, d) and labels y (n,). A ``sample_weight`` must be 0 or one number for all others."""
        super().fit(X, y, given.get("sample_weight"))
        return self

    def learn(self, X: Any, y: Labels, weights: Array | None) -> Array:
        """Run Algorithm 1 from W = 0."""
        if weights is not None and np.ptp(weights) > 0:
            raise ConfigError(
                f"loss={self.name} updates example by example and cannot weigh them: give no sample_weight (dataset.weight), or take uma"
            )
        step = STEPS[one_of("step", self.step, STEPS)]
        refuse_parameter("epochs", self.epochs, at_least(1))
        W = np.zeros((len(self.classes_), X.shape[1]))
        square = row_norms(X, squared=True)
        self.n_iter_, self.n_updates_, last = kernels.uma.online(
            *compiled_rows(X),
            np.ascontiguousarray(y, dtype=np.intp),
            np.ascontiguousarray(square, dtype=np.float64),
            W,
            step,
            int(self.epochs),
            seed_of(self.random_state) & 0xFFFFFFFFFFFFFFFF,
        )
        self.remarks_ = ("an epoch without a mistake was the last" if last == 0 else "all epochs were used",)
        return W


def confusion_matrix(confusion: Any, k: int, names: Sequence[Any], X: Any, y: Labels) -> tuple[Array, float]:
    """Return the matrix of the option ``confusion``, checked, and its condition number; rows and codes seen are for the estimates."""
    if isinstance(confusion, str) and confusion in ESTIMATES:
        return check_confusion(estimated(confusion, X, y, k), k, names, f"confusion={confusion}")
    if confusion is None or (isinstance(confusion, str) and confusion == "identity"):
        return np.eye(k), 1.0
    if isinstance(confusion, (str, Path)):
        return check_confusion(read_confusion(expanded(confusion)), k, names, f"confusion={confusion}")
    if matrices.is_frame(confusion):
        named = matrices.from_frame(confusion, names, "confusion")
        if named.rows is not None and not (named.of_classes and len(named.rows) == k):
            raise ConfigError("confusion must name its rows by the classes, which are the labels seen, and its columns by the true classes")
        confusion = named.values
    return check_confusion(confusion, k, names)


# Louche & Ralaivola 2015, section 4.2: batch perceptrons, UMA with C = I, on the labels as they are seen, on the small clean sample alone,
# on the true labels of all rows
for _name, _view in {"f_y": "noisy", "f_conf": "sample", "f_full": "true"}.items():
    _method: Any = register_method(_name, UMAClassifier, ("confusion", "alpha"))
    _method.takes, _method.view = (), _view
