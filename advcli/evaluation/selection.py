"""Two-stage cross-validated selection of hyper-parameters.

fathony2018 section 7.1 (and 7.2 for lambda): five folds of the training part of one split; stage 1 over a coarse grid, stage 2
over multipliers of its winner; ties go to the strongest regularisation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, NotConvergedWarning, nearest
from ..hyper import STRENGTH
from ..records import meaning
from . import metrics, parts
from .seeds import derive_seed
from .splits import make_folds, make_holdout
from .standardise import Standardiser

DESCENDING = ("tolerance",)  # hyper-parameters whose large values are the strong ones, which win ties
ALTERNATIVES = ("rho", "margin_power")  # hyper-parameters whose candidates are models of their own, not points of a range

__all__ = ["Axes", "NotConvergedWarning", "Protocol", "Selection", "certificate_columns", "find_axes", "select"]


@dataclass(frozen=True)
class Protocol:
    """The evaluation protocol, checked.

    Parameters
    ----------
    n_splits : int
        Number of train/test splits.
    train_size : float
        Share of training rows where the papers print no sizes.
    folds : int
        Folds of the search.
    holdout : float or None
        Share of the training rows that one fit of each candidate leaves out and is judged by, in the place of folds.
    standardise : {"fold", "train", "none"}
        Statistics from the rows of each fit; from the whole training part, once, before the folds; no standardisation.
    splits : {"random", "author", "official"}
        Random splits; the authors' own; the official training and test rows in all runs, which then differ in labels and seeds.
    regularisation : {"C", "lambda"}
        Which view the grid uses. C stays fixed between folds and refit, so lambda = 1/(n C) follows the rows of each fit.
    stage1 : mapping of axis to values
        Coarse grids: ``regularisation`` and, where the features have one, ``gamma``.
    stage2 : mapping of axis to multipliers
        Applied to the winner of stage 1; empty for a one-stage search.
    metric : str or None
        What the search minimises (or maximises) and tables show; None is the loss's own.
    metrics : tuple of str
        Further metrics that are recorded.
    rough_per_class : int or None
        Rows per class that train a rough classifier, whose predictions then are the training labels (louche2015, section 4.2); None:
        training labels are those of the data.
    labelled_share : float
        Share of the training rows whose true labels are known beside them: the sample that estimates the confusion.
    rough_updates : int
        Limit of the rough classifier's updates.
    """

    n_splits: int = 20
    train_size: float = 0.7
    folds: int = 5
    holdout: float | None = None
    standardise: str = "fold"
    splits: str = "random"
    regularisation: str = "C"
    stage1: Mapping[str, Sequence[float]] = field(default_factory=dict)
    stage2: Mapping[str, Sequence[float]] = field(default_factory=dict)
    metric: str | None = None
    metrics: tuple[str, ...] = ()
    rough_per_class: int | None = None
    labelled_share: float = 0.05
    rough_updates: int = 1000

    #: Keys of the configuration that do not determine rows: its name, and how reports test.
    SILENT = ("name", "description", "test", "alpha")

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> Protocol:
        """Check the options of the configuration group ``protocol``.

        Raises
        ------
        ConfigError
            For an unknown key, a value outside its range, an unknown metric.
        """
        known = tuple(cls.__dataclass_fields__)
        for key in options:
            if key not in known and key not in cls.SILENT:
                raise ConfigError(f"no key protocol.{key}; {nearest(key, known)}")
        given = {key: value for key, value in options.items() if key in known}
        for stage in ("stage1", "stage2"):
            axes = {}
            for axis, values in (given.get(stage) or {}).items():
                numbers = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values]
                if not numbers or not all(_is_positive(value) for value in numbers):
                    raise ConfigError(f"protocol.{stage}.{axis} must be a list of positive numbers, got {values!r}")
                axes[str(axis)] = tuple(float(value) for value in numbers)
            given[stage] = axes
        given["metrics"] = tuple(given.get("metrics") or ())
        protocol = cls(**given)
        for key, smallest in (("n_splits", 1), ("folds", 2)):
            value = getattr(protocol, key)
            if not isinstance(value, int) or isinstance(value, bool) or value < smallest:
                raise ConfigError(f"protocol.{key} must be a whole number of at least {smallest}, got {value!r}")
        for key in ("rough_per_class", "rough_updates"):
            value = getattr(protocol, key)
            if not (value is None and key == "rough_per_class") and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ConfigError(f"protocol.{key} must be a whole number of at least 1, got {value!r}")
        if not _is_positive(protocol.labelled_share) or not protocol.labelled_share < 1:
            raise ConfigError(f"protocol.labelled_share must lie between 0 and 1, got {protocol.labelled_share!r}")
        if protocol.holdout is not None and not (_is_positive(protocol.holdout) and protocol.holdout < 1):
            raise ConfigError(f"protocol.holdout must lie between 0 and 1 or be null, got {protocol.holdout!r}")
        if not _is_positive(protocol.train_size) or not protocol.train_size < 1:
            raise ConfigError(f"protocol.train_size must lie between 0 and 1, got {protocol.train_size!r}")
        for key, choices in (
            ("standardise", ("fold", "train", "none")),
            ("splits", ("random", "author", "official")),
            ("regularisation", ("C", "lambda")),
        ):
            if getattr(protocol, key) not in choices:
                raise ConfigError(f"protocol.{key}={getattr(protocol, key)} is unknown; {nearest(getattr(protocol, key), choices)}")
        for metric in (*([protocol.metric] if protocol.metric else []), *protocol.metrics):
            metrics.check_metric(metric)
        return protocol


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value > 0


@dataclass(frozen=True)
class Axes:
    """What is searched and what is fixed.

    Parameters
    ----------
    strength : str or None
        ``"C"`` or ``"lambda"`` if the regularisation is searched.
    others : tuple of str
        Further searched hyper-parameters, such as ``gamma``.
    fixed : mapping
        Hyper-parameters given by the user.
    """

    strength: str | None
    others: tuple[str, ...]
    fixed: Mapping[str, float]


def _fixable(names: Sequence[str]) -> set[str]:
    return {*(name for name in names if name != STRENGTH), *(("C", "lambda") if STRENGTH in names else ())}


def split_hyper(names: Sequence[str], fixed: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Return the given hyper-parameters that a method has, whose `hyper_names` these are, and the names of those that it has not.

    In a sweep some methods may lack what others have; ``null`` gives nothing.
    """
    given, valid = {key: value for key, value in fixed.items() if value is not None}, _fixable(names)
    return {key: value for key, value in given.items() if key in valid}, [key for key in given if key not in valid]


def find_axes(protocol: Protocol, names: Sequence[str], fixed: Mapping[str, float]) -> Axes:
    """Separate searched from fixed hyper-parameters.

    Parameters
    ----------
    protocol : Protocol
    names : sequence of str
        What the method has (`advcli.estimators.hyper_names`).
    fixed : mapping
        ``hyper`` of the configuration; null values are ignored.

    Raises
    ------
    ConfigError
        For a fixed value that the method does not have, that is not positive, for both C and lambda, and for a searched
        hyper-parameter without a grid.
    """
    given = {key: value for key, value in fixed.items() if value is not None}
    valid = _fixable(names)
    for key, value in given.items():
        if key not in valid:
            has = f"it has {', '.join(sorted(valid))}" if valid else "it has none"
            raise ConfigError(f"hyper.{key} is no hyper-parameter of this method; {has}")
        if not _is_positive(value):
            raise ConfigError(f"hyper.{key} must be a positive number, got {value!r}")
    if "C" in given and "lambda" in given:
        raise ConfigError("hyper.C and hyper.lambda are two views of one number (lambda = 1/(n C)); give one of them")
    searched = [name for name in names if name not in given and not (name == STRENGTH and given.keys() & {"C", "lambda"})]
    for name in searched:
        if name not in protocol.stage1:
            view = protocol.regularisation if name == STRENGTH else name
            raise ConfigError(f"the search over {name} has no grid; set protocol.stage1.{name} or fix hyper.{view}")
    return Axes(
        strength=protocol.regularisation if STRENGTH in searched else None,
        others=tuple(name for name in searched if name != STRENGTH),
        fixed={key: float(value) for key, value in given.items()},
    )


@dataclass(frozen=True)
class Selection:
    """Outcome of a search.

    Parameters
    ----------
    hyper : mapping
        The chosen hyper-parameters together with the fixed ones.
    rows : list of dict
        One row per fit, columns of `advcli.records.SEARCH_COLUMNS`.
    edges : tuple of str
        One sentence per chosen value that lies at the end of all values tried.
    """

    hyper: Mapping[str, float]
    rows: list[dict[str, Any]]
    edges: tuple[str, ...]


def certificate_columns(estimator: Any) -> dict[str, Any]:
    """Return objective, dual, gap, passes and convergence of a fit; empty for a method without a certificate."""
    certificate = getattr(estimator, "certificate_", None)
    if certificate is None:
        return {}
    return {
        "objective": _number(certificate.primal),
        "dual_objective": _number(certificate.dual),
        "relative_gap": _number(certificate.relative_gap),
        "passes": int(certificate.passes),
        "converged": bool(certificate.converged),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _score(values: Sequence[float], counts: Sequence[int], metric: str) -> float:
    """Return the metric pooled over folds, lower is better, in a form in which ties are exact; nan counts as worst."""
    about = meaning(metric)
    total = math.fsum(value * count for value, count in zip(values, counts, strict=True))
    if math.isnan(total):
        return math.inf
    pooled = float(round(total)) if about.is_count else round(total / sum(counts), 12)
    return -pooled if about.higher_is_better else pooled


def select(
    X: Any,
    y: NDArray[np.intp],
    *,
    loss: Mapping[str, Any],
    features: Mapping[str, Any],
    solver: Mapping[str, Any],
    protocol: Protocol,
    axes: Axes,
    n_classes: int,
    seed: int,
    dataset: str,
    sample_weight: NDArray[np.float64] | None = None,
    graph: Any = None,
) -> Selection:
    """Choose hyper-parameters by two-stage cross-validation on one training part.

    Within a fold and for each value of the other hyper-parameters, the path runs from strong to weak regularisation and every
    fit starts from the one before. Fits stop at ``solver.search_tol``.

    Parameters
    ----------
    X : ndarray or csr_array, shape (n, d)
        Training rows, not standardised.
    y : ndarray of intp, shape (n,), or csr_array, shape (n, L)
        0-based codes, or ones where a row has a label; a fold may miss a class.
    loss, features, solver : mapping
        Configuration groups.
    protocol, axes
        The checked protocol and what is searched.
    n_classes : int
        Classes of the whole data set.
    seed : int
        The experiment's seed; with ``dataset`` and the stage it determines the folds.
    dataset : str
        Name of the data set.
    sample_weight : ndarray, shape (n,), optional
        Example weights.
    graph : optional
        What metrics know of a hierarchy over the labels (`parts.label_graph`).
    """
    if axes.strength is None and not axes.others:
        return Selection(dict(axes.fixed), [], ())
    if protocol.standardise == "train":
        X = Standardiser().fit(X).transform(X)
    rows: list[dict[str, Any]] = []
    tried: dict[str, set[float]] = {}
    best: dict[str, float] = {}
    names = [*([STRENGTH] if axes.strength else []), *axes.others]
    for stage, grids in ((1, protocol.stage1), (2, protocol.stage2)):
        values: dict[str, tuple[float, ...]] = {}
        for name in names:
            if stage == 1:
                values[name] = tuple(dict.fromkeys(grids[name]))
            else:
                values[name] = tuple(dict.fromkeys(factor * best[name] for factor in grids.get(name, (1.0,))))
        if stage == 2 and not any(name in grids for name in names):
            break
        for name in names:
            tried.setdefault(name, set()).update(values[name])
        # Strong to weak: ascending C, descending lambda. The same order breaks ties.
        path = sorted(values[STRENGTH], reverse=axes.strength == "lambda") if axes.strength else [None]
        others = list(product(*(sorted(values[name], reverse=name in DESCENDING) for name in axes.others)))
        scores: dict[tuple[int, int], list[float]] = {}
        counts: list[int] = []
        metric = ""
        if protocol.holdout is None:
            folds = make_folds(X.shape[0], protocol.folds, seed, dataset, stage)
        else:
            folds = [make_holdout(X.shape[0], protocol.holdout, seed, dataset)]
        for fold, (fit_rows, held_rows) in enumerate(folds, start=1):
            X_fit, X_held = X[fit_rows], X[held_rows]
            if protocol.standardise == "fold":
                standardiser = Standardiser().fit(X_fit)
                X_fit, X_held = standardiser.transform(X_fit), standardiser.transform(X_held)
            weight = None if sample_weight is None else sample_weight[fit_rows]
            counts.append(len(held_rows))
            for other_at, combination in enumerate(others):
                previous = None
                for strength_at, strength in enumerate(path):
                    hyper = dict(axes.fixed) | dict(zip(axes.others, combination, strict=True))
                    if axes.strength and strength is not None:
                        hyper[axes.strength] = strength
                    estimator = parts.make_estimator(
                        loss,
                        features,
                        solver,
                        hyper,
                        n_classes,
                        derive_seed(seed, "search", dataset, stage, fold),
                        float(solver.get("search_tol") or solver["tol"]),
                    )
                    estimator.fit(X_fit, y[fit_rows], sample_weight=weight, start=previous)
                    previous = estimator
                    metric = protocol.metric or parts.metric_of(estimator)
                    options = parts.metric_options(loss, estimator, graph)
                    value = metrics.compute(metric, y[held_rows], estimator.predict_codes(X_held), n_classes, options)
                    scores.setdefault((strength_at, other_at), []).append(value)
                    certificate = getattr(estimator, "certificate_", None)
                    rows.append(
                        {
                            "stage": stage,
                            "fold": fold,
                            **hyper,
                            "metric": metric,
                            "value": value,
                            "n_train": len(fit_rows),
                            "n_test": len(held_rows),
                            **certificate_columns(estimator),
                            "seconds": None if certificate is None else _number(certificate.seconds),
                        }
                    )
        order = sorted(scores, key=lambda point: (_score(scores[point], counts, metric), *point))
        strength_at, other_at = order[0]
        if axes.strength:
            best[STRENGTH] = path[strength_at]  # type: ignore[assignment]
        best |= dict(zip(axes.others, others[other_at], strict=True))
    edges = []
    for name in names:
        low, high = min(tried[name]), max(tried[name])
        label = axes.strength if name == STRENGTH else name
        if low < high and best[name] in (low, high) and name not in ALTERNATIVES:
            side = "smallest" if best[name] == low else "largest"
            edges.append(f"{label}={best[name]:g} is the {side} value tried ({low:g} to {high:g}); widen protocol.stage1.{name}")
    chosen = {(axes.strength or name) if name == STRENGTH else name: value for name, value in best.items()}
    return Selection(dict(axes.fixed) | chosen, rows, tuple(edges))


def pooled_score(selection: Selection) -> float | None:
    """Return the cross-validated metric of the chosen values, pooled over the folds of the last stage; None if nothing was searched."""
    if not selection.rows:
        return None
    last = selection.rows[-1]["stage"]
    rows = [row for row in selection.rows if row["stage"] == last and all(row[name] == value for name, value in selection.hyper.items())]
    return math.fsum(row["value"] * row["n_test"] for row in rows) / sum(row["n_test"] for row in rows)
