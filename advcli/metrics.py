"""Metrics of predicted codes against true codes: what each computes, and what a reader of rows must know about it.

A metric is a function ``(y_true, y_predicted, n_classes, facts) -> float`` registered here, or in a file of a user's folder ``metric``,
under its name. Codes from ``n_classes`` on are abstentions. Where rows have several labels, truth and
predictions are CSR matrices (n, k) of ones, which metrics registered with ``sets=True`` take; those take codes as sets of one label, too.

One file: a metric is a function of a few lines, and users import them all from this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .core import plugins
from .core.arrays import is_sparse
from .core.errors import ConfigError, ResultsError
from .core.groups import accepted_errors
from .core.linalg import norm
from .core.registry import Registry

Codes = NDArray[np.intp]
Function = Callable[[Any, Any, int, Mapping[str, Any]], float]

FACTS = {
    "price": "the price of a set of classes; use loss=label_sets",
    "alpha": "the cost of an abstention; use a loss with the option alpha",
    "cost_matrix": "a loss with a matrix; choose loss=general or metric error",
    "probabilities": "a distribution over the classes; choose loss=logistic or zero_one, or estimate it by calibrate=vector",
    "scores": "a score of every class",
    "labels": "the names of the classes",
    "sequences": "rows that form sequences; give dataset.sequence=COLUMN or choose metric accuracy",
    "relations": "relations of words to their heads; give dataset.relation=COLUMN or choose metric unlabelled_attachment",
    "label_graph": "a hierarchy over the labels; give dataset.hierarchy=EDGES.csv or choose another metric",
}
"""What a metric may need beside codes: options of the loss, its matrix, probabilities, ancestors of the labels; what to do without."""


@dataclass(frozen=True)
class Metric:
    """A metric: a function (y_true, y_predicted, n_classes, facts) -> float, and what a reader of its values must know."""

    name: str
    function: Function | None = None
    higher_is_better: bool = False
    is_count: bool = False  # value x number of rows is an integer: searches then pool whole numbers, in which ties are exact
    percent: bool = False  # tables print it in percent
    sets: bool = False  # rows may have several labels
    ordered: bool = False  # codes have an order, in which abstentions have no place: nan where there are any
    needs: tuple[str, ...] = ()  # the `FACTS` that the function reads
    guesses: int = 0  # how many classes a row is given; there must be more
    complement: str | None = None  # the metric that is 1 minus this one: tables and plots show that, as the papers print it


@cache
def _top(K: int) -> Metric:
    """Return the metric top_K_accuracy."""

    def top_k_accuracy(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
        """Share of rows whose true class has one of the K largest scores; of equal scores the first classes'."""
        F = np.asarray(facts["scores"])
        own = F[np.arange(len(F)), y_true][:, None]
        ahead = (own < F) | ((own == F) & (np.arange(n_classes) < y_true[:, None]))
        return int(np.count_nonzero(ahead.sum(axis=1) < K)) / len(F)

    return Metric(f"top_{K}_accuracy", top_k_accuracy, True, is_count=True, percent=True, needs=("scores",), guesses=K)


class _Metrics(Registry[Metric]):
    """The metrics by name, top_K_accuracy with every whole number from 1 on for K."""

    _TOP = re.compile(r"top_([1-9]\d{0,8})_accuracy")

    def __contains__(self, name: object) -> bool:
        return self._TOP.fullmatch(str(name)) is not None or super().__contains__(name)

    def get(self, name: str, others: Iterable[str] = ()) -> Metric:
        """Return the metric of that name."""
        found = self._TOP.fullmatch(str(name))
        return _top(int(found[1])) if found else super().get(name, others)


_registry = _Metrics("metric", "metric")
_registry.put("top_5_accuracy", _top(5))


def register(name: str, **about: Any) -> Callable[[Function], Function]:
    """Register a function as a metric; ``about`` are the other attributes of `Metric`.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import metrics
    >>> @metrics.register("share_of_first", higher_is_better=False)
    ... def share_of_first(y_true, y_predicted, n_classes, facts):
    ...     return float(np.mean(y_predicted == 0))
    >>> metrics.compute("share_of_first", np.array([0, 1]), np.array([0, 0]), 2, {})
    1.0
    """

    def keep(function: Function) -> Function:
        _registry.put(name, Metric(name, function, **about))
        return function

    return keep


def names() -> tuple[str, ...]:
    """Return the names of all metrics."""
    return tuple(_registry)


def check_metric(name: str) -> Metric:
    """Return the metric of that name; `ConfigError` names the nearest if there is none."""
    return _registry.get(name)


def meaning(name: str) -> Metric:
    """Return what a reader of rows must know about a metric; a name that is known neither here nor by `declare` counts as a plain loss."""
    return _registry.get(name) if name in _registry else _declared.get(name) or Metric(name)


# ---- metrics of other people's tables -----------------------------------------------------------------------------------
_BETTER = {
    True: "accuracy acc correct f1 auc auroc roc precision recall specificity r2 map mrr ndcg mcc kappa bleu rouge meteor reward elo",
    False: "error err loss logloss rmse mae mse mape nll perplexity brier ece wer cer regret cost time seconds duration latency",
}
_BETTER_WORDS = {better: frozenset(words.split()) for better, words in _BETTER.items()}
_AT_MOST_ONE = _BETTER_WORDS[True] - {"bleu", "rouge", "meteor", "reward", "elo"}
_declared: dict[str, Metric] = {}


def _words(name: str) -> set[str]:
    return set(name.lower().replace("-", "_").split("_"))


def direction(name: str) -> bool | None:
    """Tell whether higher values of a metric are better: of ours as registered, of others by the words of the name, else None.

    Examples
    --------
    >>> from advcli import metrics
    >>> [metrics.direction(name) for name in ("accuracy", "roc_auc", "metric_error", "score")]
    [True, True, False, None]
    """
    if name in _registry:
        return _registry.get(name).higher_is_better
    found = [better for better, known in _BETTER_WORDS.items() if _words(name) & known]
    return found[0] if len(found) == 1 else None


def declare(rows: Any) -> None:
    """Take the direction of metrics that are not ours from rows that state it (column ``higher_is_better``), so that `meaning` has it."""
    if "higher_is_better" not in rows:
        return
    stated = rows.loc[rows["higher_is_better"].notna(), ["metric", "higher_is_better"]].drop_duplicates()
    for name, higher in zip(stated["metric"].astype(str), stated["higher_is_better"].astype(bool), strict=True):
        if (stated["metric"] == name).sum() > 1 or (name in _registry and _registry.get(name).higher_is_better != higher):
            raise ResultsError(
                f"the rows of the metric {name} differ in whether higher values are better; rename one of them and import again"
            )
        _declared[name] = Metric(name, higher_is_better=bool(higher))


def is_share(name: str) -> bool:
    """Tell whether the values of a metric are shares, at most 1: of ours as registered, of others by the words of the name."""
    return meaning(name).percent or bool(_AT_MOST_ONE & _words(name))


def as_errors(name: str, values: Any) -> NDArray[np.float64] | None:
    """Return values of a metric as errors of at least 0, of which 0 is perfect: 1 minus a share; None where the best value is not known."""
    about, table = meaning(name), np.asarray(values, dtype=np.float64)
    errors = table if not about.higher_is_better else 1.0 - table if is_share(name) else np.full_like(table, -1.0)
    return errors if table.size and errors.min() >= 0 else None


def shown_as(name: str) -> Metric:
    """Return the metric that tables and plots show for rows of ``name``: its complement where it has one."""
    about = meaning(name)
    return about if about.complement is None else meaning(about.complement)


def shown_value(name: str, value: Any) -> Any:
    """Return values of ``name``, a number or an array, as values of the metric that is shown for it."""
    return value if meaning(name).complement is None else 1.0 - value


def shown(metric: str, mean: float, std: float) -> str:
    """Return ``mean (std)`` as the papers print it: the error as accuracy in percent, other shares in percent, the rest plain."""
    mean = shown_value(metric, mean)
    digits, factor = (2, 100.0) if shown_as(metric).percent else (3, 1.0)
    spread = "-" if math.isnan(std) else f"{factor * std:.{digits}f}"
    return f"{factor * mean:.{digits}f} ({spread})"


def shown_mean(metric: str, mean: float) -> str:
    """Return a mean without a spread (see `shown`)."""
    return shown(metric, mean, math.nan).removesuffix(" (-)")


def title(metric: str) -> str:
    """Return what a table of the metric shows."""
    about = shown_as(metric)
    return f"{about.name.replace('_', ' ')} in percent" if about.percent else about.name.replace("_", " ")


def compute(name: str, y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Return the value of a metric, by its name.

    Truth and prediction are 0-based codes (n,), predicted codes >= ``n_classes`` being abstentions; or csr_array (n, n_classes) of ones
    where a row has a label. ``facts`` are what the metric may ask for (`FACTS`); ``probabilities`` are an array (n, n_classes) of rows that
    sum to 1. `ConfigError` for an unknown name, a missing fact that the metric needs, or a metric for one label a row where rows have
    several.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import metrics
    >>> metrics.compute("mae", np.array([0, 1, 2, 2]), np.array([0, 2, 2, 0]), 3, {})
    0.75
    """
    metric = check_metric(name)
    assert metric.function is not None
    for fact in metric.needs:
        if facts.get(fact) is None:
            raise ConfigError(f"the metric {name} needs {FACTS[fact]}")
    if is_sparse(y_true) or is_sparse(y_predicted):
        y_true, y_predicted = _sets(y_true, n_classes), _sets(y_predicted, n_classes)
        if not metric.sets:
            of_sets = [other for other in names() if meaning(other).sets]
            raise ConfigError(f"metric {name} is for one label a row and prediction; for several there are {', '.join(of_sets)}")
        value = metric.function(y_true, y_predicted, n_classes, facts)
    elif metric.ordered and (np.asarray(y_predicted) >= n_classes).any():
        return math.nan
    else:
        value = metric.function(np.asarray(y_true), np.asarray(y_predicted), n_classes, facts)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"metric {name} returned a {type(value).__name__}, not a number{plugins.defined_at(metric.function)}") from None


MOST_MISSED = 6  # classes that a line names


class Missed(NamedTuple):
    """A class none of whose rows is found."""

    label: str
    share: float  # of all rows, in the class
    predicted: bool  # whether some rows of other classes are taken for it


def missed_classes(counts: Any, labels: Sequence[str]) -> list[Missed]:
    """Return the classes with rows of which none is predicted right, largest first, by counts (k, k or k + 1), truth in rows."""
    table = np.asarray(counts)
    rows = table.sum(axis=1)
    codes = np.flatnonzero((rows > 0) & (np.diagonal(table) == 0)).tolist()
    missed = [Missed(labels[code], float(rows[code] / rows.sum()), bool(table[:, code].any())) for code in codes]
    return sorted(missed, key=lambda label: -label.share)


def missed_words(missed: Sequence[Missed], rows: str = "rows") -> str:
    """Return in words what a method misses of these classes; ``rows`` says which rows the shares are of."""
    parts = []
    for words, predicted in (("never predicts", False), ("finds no row of", True)):
        some = [label for label in missed if label.predicted is predicted]
        more = f" and {len(some) - MOST_MISSED} more" if len(some) > MOST_MISSED else ""
        shares = [f"{label} ({100 * share:.3g} % of the {rows})" for label, share, _ in some[:MOST_MISSED]]
        parts += [f"{words} {', '.join(shares)}{more}"] if some else []
    return ", ".join(parts)


@register("error", is_count=True, percent=True, sets=True, complement="accuracy")
def error(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of predictions that are not the true class, or not the very set of true labels; an abstention counts as an error."""
    return _wrong(y_true, y_predicted) / y_true.shape[0]


@register("accuracy", higher_is_better=True, is_count=True, percent=True, sets=True)
def accuracy(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of predictions that are the true class, or the very set of true labels."""
    rows = int(y_true.shape[0])
    return (rows - _wrong(y_true, y_predicted)) / rows


def _wrong(y_true: Any, y_predicted: Any) -> int:
    different = y_true != y_predicted
    return int(np.count_nonzero(_counts(different) if is_sparse(y_true) else different))


@register("mae", is_count=True, ordered=True)
def mae(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean absolute difference of codes."""
    return int(np.abs(y_true - y_predicted).sum()) / len(y_true)


@register("mse", is_count=True, ordered=True)
def mse(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean squared difference of codes."""
    return int(((y_true - y_predicted) ** 2).sum()) / len(y_true)


@register("accuracy_within_one", higher_is_better=True, is_count=True, percent=True, ordered=True)
def accuracy_within_one(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of predictions that are the true class or one next to it in the order."""
    return int(np.count_nonzero(np.abs(y_true - y_predicted) <= 1)) / len(y_true)


def _class_errors(y_true: Codes, y_predicted: Codes, n_classes: int, power: int = 1) -> NDArray[np.float64]:
    """Return the mean of the power of the absolute difference of codes within each class that has rows."""
    rows = np.bincount(y_true, minlength=n_classes)
    totals = np.bincount(y_true, weights=np.abs(y_true - y_predicted) ** power, minlength=n_classes)
    return np.asarray(totals[rows > 0] / rows[rows > 0], dtype=np.float64)


@register("amae", ordered=True)
def amae(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean over the classes of the mean absolute difference within each (Baccianella et al. 2009); those without rows are left out."""
    return float(np.mean(_class_errors(y_true, y_predicted, n_classes)))


@register("mmae", ordered=True)
def mmae(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Largest mean absolute difference within a class (Cruz-Ramirez et al. 2014); those without rows are left out."""
    return float(np.max(_class_errors(y_true, y_predicted, n_classes)))


@register("amse", ordered=True)
def amse(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean over the classes of the mean squared difference within each (Baccianella et al. 2009); those without rows are left out."""
    return float(np.mean(_class_errors(y_true, y_predicted, n_classes, power=2)))


@register("kendall_tau", higher_is_better=True, ordered=True)
def kendall_tau(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Kendall's tau-b (1945), pairs concordant less discordant over the geometric mean of those untied; 0 where all are of one class."""
    from scipy.stats import kendalltau  # takes half a second, and few ask for it

    if (y_true == y_true[0]).all() or (y_predicted == y_predicted[0]).all():
        return 0.0
    return float(kendalltau(y_true, y_predicted, variant="b").statistic)


@register("quadratic_kappa", higher_is_better=True, ordered=True)
def quadratic_kappa(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Cohen's kappa (1968): 1 - mean squared difference over the mean of independent codes; 0 where all are of one class."""
    n = len(y_true)
    totals = [int(codes.sum()) for codes in (y_true, y_predicted)]
    squares = [int((codes**2).sum()) for codes in (y_true, y_predicted)]
    # n times the sum of squared differences over all pairs of a truth and a prediction, whole numbers
    by_chance = n * sum(squares) - 2 * totals[0] * totals[1]
    return 1.0 - n * int(((y_true - y_predicted) ** 2).sum()) / by_chance if by_chance else 0.0


@register("balanced_accuracy", higher_is_better=True, percent=True)
def balanced_accuracy(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean over the classes of the share of their rows that is predicted right; those without rows are left out, abstentions are wrong."""
    return float(np.mean(_recalls(y_true, y_predicted, n_classes)))


def _recalls(y_true: Codes, y_predicted: Codes, n_classes: int) -> NDArray[np.float64]:
    """Return the share of the rows of each class that is predicted right, of classes that have rows; abstentions are wrong."""
    rows = np.bincount(y_true, minlength=n_classes)
    right = np.bincount(y_true[y_true == y_predicted], minlength=n_classes)
    return np.asarray(right[rows > 0] / rows[rows > 0], dtype=np.float64)


@register("g_mean", higher_is_better=True, percent=True)
def g_mean(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Geometric mean of the classes' shares of rows predicted right (Sun et al. 2006); classes without rows are left out."""
    recalls = _recalls(y_true, y_predicted, n_classes)
    return float(np.prod(recalls ** (1.0 / len(recalls))))


@register("h_mean", higher_is_better=True, percent=True)
def h_mean(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Harmonic mean of the classes' shares of rows predicted right (Kennedy et al. 2009); classes without rows are left out."""
    recalls = _recalls(y_true, y_predicted, n_classes)
    return float(len(recalls) / np.sum(1.0 / recalls)) if recalls.all() else 0.0


@register("q_mean", higher_is_better=True, percent=True)
def q_mean(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """1 less the quadratic mean of the classes' errors (Narasimhan et al. 2015, table 1); classes without rows are left out."""
    return 1.0 - float(np.sqrt(np.mean((1.0 - _recalls(y_true, y_predicted, n_classes)) ** 2)))


@register("worst_class", percent=True)
def worst_class(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Largest share of the rows of a class that is predicted wrong; classes without rows are left out, abstentions are wrong."""
    return 1.0 - float(_recalls(y_true, y_predicted, n_classes).min())


@register("rps", needs=("probabilities",))
def rps(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Ranked probability score (Epstein 1969): mean of sum_j (P(class <= j) - [y <= j])^2, not divided by the k - 1 terms."""
    reached = np.cumsum(facts["probabilities"], axis=1)[:, :-1]
    return float(np.mean(((reached - (y_true[:, None] <= np.arange(n_classes - 1))) ** 2).sum(axis=1)))


@register("log_loss", needs=("probabilities",))
def log_loss(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean of -log P(true class), a probability below 2.2e-16 (the spacing of numbers at 1) counting as that."""
    of_truth = np.asarray(facts["probabilities"])[np.arange(len(y_true)), y_true]
    return float(-np.mean(np.log(np.clip(of_truth, np.finfo(np.float64).eps, 1.0))))


@register("brier", needs=("probabilities",))
def brier(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Brier score (1950) of all classes: mean of sum_j (P(class j) - [y = j])^2, between 0 and 2."""
    return float(np.mean(((np.asarray(facts["probabilities"]) - np.eye(n_classes)[y_true]) ** 2).sum(axis=1)))


ECE_BINS = 15  # bins of equal width of the largest probability, as Guo et al. (2017) have them


def reliability(
    y_true: Codes, probabilities: Any, bins: int = ECE_BINS
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return the numbers of a reliability diagram, each (b,): rows, mean confidence and accuracy of every bin that has rows.

    Bin b holds the rows whose confidence, the probability of the likeliest class, lies in ((b - 1)/bins, b/bins]; a row is right where its
    likeliest class, of equally likely ones the first, is the true one. ``probabilities`` (n, k) have rows that sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import metrics
    >>> probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> rows, confidence, accuracy = metrics.reliability(np.array([0, 0, 1, 1]), probabilities, bins=4)
    >>> rows, confidence.round(2), accuracy
    (array([2, 2]), array([0.65, 0.85]), array([0.5, 1. ]))
    """
    P = np.asarray(probabilities, dtype=np.float64)
    largest, right = P.max(axis=1), P.argmax(axis=1) == y_true
    place = np.searchsorted(np.arange(1, bins) / bins, largest)
    rows = np.bincount(place, minlength=bins)
    filled = np.flatnonzero(rows)
    confidence, accuracy = (np.bincount(place, weights=values, minlength=bins)[filled] / rows[filled] for values in (largest, right))
    return rows[filled], confidence, accuracy


@register("ece", needs=("probabilities",))
def ece(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Expected calibration error (Guo et al. 2017, eq. 3): mean over the rows of |accuracy - confidence| of the row's bin."""
    rows, confidence, accuracy = reliability(y_true, facts["probabilities"])
    return float(np.sum(rows * np.abs(accuracy - confidence)) / rows.sum())


@register("abstention_loss", needs=("alpha",))
def abstention_loss(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean of alpha for an abstention, 1 for a wrong class, 0 else (Fathony et al. 2018, section 5; their table 6 has alpha = 1/2)."""
    abstained = int(np.count_nonzero(y_predicted >= n_classes))
    wrong = int(np.count_nonzero(y_true != y_predicted)) - abstained
    return (float(facts["alpha"]) * abstained + wrong) / len(y_true)


@register("cost", needs=("cost_matrix",))
def cost(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean entry of the loss matrix, row = prediction, column = truth; the fact ``cost_matrix`` holds it."""
    return float(np.mean(np.asarray(facts["cost_matrix"])[y_predicted, y_true]))


@register("savings", higher_is_better=True, percent=True, needs=("cost_matrix",))
def savings(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of the cost of the best constant prediction, on the same rows, that the predictions save: 1 - cost / that cost.

    1 is a cost of 0, 0 the constant prediction, below 0 is worse than it (Bahnsen et al. 2015, "Example-dependent cost-sensitive decision
    trees", eq. 9, for two classes); nan where the constant prediction costs nothing.
    """
    of_rows = np.asarray(facts["cost_matrix"])[:, y_true]
    constant = float(np.nanmin(of_rows.mean(axis=1)))
    return 1.0 - float(of_rows[y_predicted, np.arange(len(y_true))].mean()) / constant if constant > 0.0 else math.nan


@register("abstain_rate", is_count=True, percent=True)
def abstain_rate(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of abstentions."""
    return int(np.count_nonzero(y_predicted >= n_classes)) / len(y_true)


@register("confusion_rate")
def confusion_rate(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Frobenius norm of the confusion matrix with zero diagonal, each column (true class) a distribution over predictions.

    Louche & Ralaivola 2015, section 4, on the scale of their figures, which do not divide by sqrt(Q). Classes without rows have a zero
    column.
    """
    counts = np.zeros((max(n_classes, int(y_predicted.max(initial=0)) + 1), n_classes))
    np.add.at(counts, (y_predicted, y_true), 1.0)
    confusion = counts / np.maximum(counts.sum(axis=0), 1.0)
    np.fill_diagonal(confusion, 0.0)
    return norm(confusion)


@register("confusion_rate_scaled")
def confusion_rate_scaled(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Return the confusion rate divided by sqrt(Q), as Louche & Ralaivola 2015, section 4 defines it: within [0, 1] without abstentions."""
    return confusion_rate(y_true, y_predicted, n_classes, facts) / n_classes**0.5


# ---- sequences of labels ----------------------------------------------------------------------------------------------
@register("entity_f1", higher_is_better=True, percent=True, needs=("labels", "sequences"))
def entity_f1(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """F-measure of entities: 2 |found and true| / (|found| + |true|), an entity being a span of rows and a kind, right as a whole.

    Labels are BIO tags (Ramshaw & Marcus 1995): O, B-KIND and I-KIND. An entity begins with B, or with an I that continues none of its
    kind, as in the CoNLL shared tasks, and ends with its sequence at the latest. 1 where neither has an entity.
    """
    tags = _bio(facts["labels"])
    true, predicted = (_entities(codes, tags, facts["sequences"]) for codes in (y_true, y_predicted))
    total = len(true) + len(predicted)
    return 2.0 * len(true & predicted) / total if total else 1.0


@register("unlabelled_attachment", higher_is_better=True, is_count=True, percent=True, needs=("sequences",))
def unlabelled_attachment(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of words with the right head (Kübler, McDonald & Nivre 2009, section 6.1), punctuation among them."""
    return int(np.count_nonzero(y_true == y_predicted)) / len(y_true)


@register("labelled_attachment", higher_is_better=True, is_count=True, percent=True, needs=("sequences", "relations"))
def labelled_attachment(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of words with the right head and the right relation to it (Kübler, McDonald & Nivre 2009, section 6.1)."""
    return int(np.count_nonzero((y_true == y_predicted) & facts["relations"])) / len(y_true)


@register("whole_trees", higher_is_better=True, percent=True, needs=("sequences",))
def whole_trees(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of sentences all of whose words have the right label, such as their head."""
    groups = np.asarray(facts["sequences"])
    return 1.0 - len(np.unique(groups[y_true != y_predicted])) / len(np.unique(groups))


def _bio(labels: Any) -> list[tuple[str, str]]:
    """Return (letter, kind) of every label; `ConfigError` for a label that is not a BIO tag."""
    tags = [(str(label)[:1], str(label)[2:]) for label in labels]
    for label, (letter, kind) in zip(labels, tags, strict=True):
        if str(label) != "O" and not (letter in ("B", "I") and str(label)[1:2] == "-" and kind):
            raise ConfigError(f"the metric entity_f1 reads BIO tags (O, B-KIND, I-KIND), and the class {str(label)!r} is none")
    return tags


def _entities(codes: Codes, tags: list[tuple[str, str]], groups: Any) -> set[tuple[int, int, str]]:
    """Return the entities of a column of tags as (first row, row after the last, kind); an abstention is O."""
    entities: set[tuple[int, int, str]] = set()
    first, kind = -1, ""
    for row, code in enumerate([*codes.tolist(), len(tags)]):  # an abstention ends the last entity
        letter, here = tags[code] if code < len(tags) else ("O", "")
        goes_on = first >= 0 and letter == "I" and here == kind and groups[row] == groups[row - 1]
        if first >= 0 and not goes_on:
            entities.add((first, row, kind))
            first = -1
        if letter != "O" and not goes_on:
            first, kind = row, here
    return entities


# ---- sets of labels, and labels with a hierarchy ----------------------------------------------------------------------
def _sets(y: Any, n_classes: int) -> sparse.csr_array:
    """Return labels as ones, shape (n, n_classes); an abstention is the empty set."""
    if is_sparse(y):
        return sparse.csr_array(y.astype(np.int64))
    rows = np.flatnonzero(y < n_classes)
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), (rows, y[rows])), shape=(len(y), n_classes))


def _counts(matrix: Any) -> NDArray[np.int64]:
    """Return the number of ones of every row."""
    return np.asarray(matrix.sum(axis=1), dtype=np.int64).ravel()


def _closed(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return the nodes of true and of predicted labels, ancestors included."""
    graph = facts["label_graph"]
    return graph.nodes(_sets(y_true, n_classes)), graph.nodes(_sets(y_predicted, n_classes))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@register("hamming", percent=True, sets=True)
def hamming(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of (row, label) pairs that are wrong: mean of |y ^ y'| / k."""
    true, predicted = _sets(y_true, n_classes), _sets(y_predicted, n_classes)
    return int(_counts(true != predicted).sum()) / (true.shape[0] * n_classes)


@register("micro_f1", higher_is_better=True, percent=True, sets=True)
def micro_f1(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """F1 of all (row, label) pairs pooled: 2 sum |y & y'| / sum (|y| + |y'|)."""
    true, predicted = _sets(y_true, n_classes), _sets(y_predicted, n_classes)
    return _ratio(2 * int(true.multiply(predicted).sum()), int(true.sum() + predicted.sum()))


@register("instance_f1", higher_is_better=True, percent=True, sets=True)
def instance_f1(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean over rows of 2 |y & y'| / (|y| + |y'|), which Choi 2018 calls Micro-F1; a row with neither counts 1."""
    true, predicted = _sets(y_true, n_classes), _sets(y_predicted, n_classes)
    both, total = _counts(true.multiply(predicted)), _counts(true) + _counts(predicted)
    return float(np.mean(np.where(total > 0, 2 * both / np.maximum(total, 1), 1.0)))


@register("jaccard", higher_is_better=True, percent=True, sets=True)
def jaccard(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean over rows of |y & y'| / |y or y'|, which Choi 2018 calls accuracy; a row with neither counts 1."""
    true, predicted = _sets(y_true, n_classes), _sets(y_predicted, n_classes)
    both, either = _counts(true.multiply(predicted)), _counts((true + predicted) > 0)
    return float(np.mean(np.where(either > 0, both / np.maximum(either, 1), 1.0)))


@register("macro_f1", higher_is_better=True, percent=True, sets=True)
def macro_f1(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean of the labels' own F1 over the labels that are true or predicted somewhere."""
    true, predicted = _sets(y_true, n_classes), _sets(y_predicted, n_classes)
    total = _counts((true + predicted).T)
    some = total > 0
    return float(np.mean(2 * _counts(true.multiply(predicted).T)[some] / total[some])) if some.any() else 0.0


@register("mean_set_size", sets=True, is_count=True)
def mean_set_size(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean number of predicted labels."""
    return int(_counts(_sets(y_predicted, n_classes)).sum()) / y_true.shape[0]


@register("coverage", higher_is_better=True, percent=True, sets=True, is_count=True)
def coverage(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of rows all of whose true labels are predicted."""
    true, predicted = _sets(y_true, n_classes), _sets(y_predicted, n_classes)
    return int(np.count_nonzero(_counts(true.multiply(predicted)) == _counts(true))) / true.shape[0]


@register("set_loss", sets=True, needs=("price",))
def set_loss(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean of 1 where a set misses a true label, plus the price of its size; the fact ``price`` is c for c (s - 1), or k prices."""
    sizes = _counts(_sets(y_predicted, n_classes))
    prices = np.asarray(facts["price"], dtype=np.float64)
    of_rows = prices * (sizes - 1) if prices.ndim == 0 else np.r_[0.0, prices][sizes]
    return 1.0 - coverage(y_true, y_predicted, n_classes, facts) + float(of_rows.mean())


@register("hierarchical_precision", higher_is_better=True, percent=True, sets=True, needs=("label_graph",))
def hierarchical_precision(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of the predicted labels' nodes, ancestors included and the root left out, that are nodes of true labels; pooled over rows."""
    true, predicted = _closed(y_true, y_predicted, n_classes, facts)
    return _ratio(int(true.multiply(predicted).sum()), int(predicted.sum()))


@register("hierarchical_recall", higher_is_better=True, percent=True, sets=True, needs=("label_graph",))
def hierarchical_recall(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of the true labels' nodes, ancestors included and the root left out, that are nodes of predicted labels; pooled over rows."""
    return hierarchical_precision(y_predicted, y_true, n_classes, facts)


@register("hierarchical_f1", higher_is_better=True, percent=True, sets=True, needs=("label_graph",))
def hierarchical_f1(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Harmonic mean of hierarchical precision and recall (Kiritchenko et al. 2006)."""
    return micro_f1(*_closed(y_true, y_predicted, n_classes, facts), n_classes, facts)


@register("tree_loss", sets=True, needs=("label_graph",))
def tree_loss(y_true: Any, y_predicted: Any, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Mean number of nodes that only one of truth and prediction has, ancestors included: on a tree the length of the path between them."""
    true, predicted = _closed(y_true, y_predicted, n_classes, facts)
    return int(_counts(true != predicted).sum()) / true.shape[0]


# ---- classifiers that may abstain -------------------------------------------------------------------------------------
@register("accuracy_accepted", higher_is_better=True, percent=True)
def accuracy_accepted(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Share of right predictions among the predictions of a class; nan where all are abstentions."""
    accepted = y_predicted < n_classes
    if not accepted.any():
        return float("nan")
    return int(np.count_nonzero(y_true[accepted] == y_predicted[accepted])) / int(np.count_nonzero(accepted))


def _accepted(y_true: Codes, y_predicted: Codes, facts: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the expected number of wrong predictions among the i rows whose largest score leads the second most, i = 1..n."""
    F = np.sort(np.asarray(facts["scores"], dtype=np.float64), axis=1)
    return accepted_errors(F[:, -1] - F[:, -2], y_true != y_predicted)[3]


@register("aurc", needs=("scores",))
def aurc(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Area under risk over coverage (Geifman & El-Yaniv 2017), rows accepted in the order in which the largest score leads the second."""
    expected = _accepted(y_true, y_predicted, facts)
    return float((expected / np.arange(1.0, len(expected) + 1.0)).mean())


@register("augrc", needs=("scores",))
def augrc(y_true: Codes, y_predicted: Codes, n_classes: int, facts: Mapping[str, Any]) -> float:
    """Area under the share of all rows that are accepted and wrong over coverage, in that order (Traub et al. 2024); 1/2 at most."""
    expected = _accepted(y_true, y_predicted, facts)
    return float(expected.mean()) / len(expected)
