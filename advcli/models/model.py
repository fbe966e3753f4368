"""A fitted estimator with what stands between it and raw rows, and what there is to say about it."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.checks import REAL, refuse
from ..core.errors import ConfigError
from ..data.tables.cells import PLAIN
from ..data.tables.encoding import Encoding
from ..evaluation.standardise import Standardiser
from ..learners import Learner
from ..learners.base import Rows
from ..learners.options import NOT_OPTIONS
from ..problems.certificate import Certificate
from ..results.tables import plain
from .pipeline_steps import EncodedColumns, ModelPipeline, Steps

if TYPE_CHECKING:
    import pandas as pd

ABSTAIN = "abstain"
"""Label of the one prediction beyond the classes."""

_DENSE = 2**20  # features up to which a row of zeros is written out


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted estimator with what stands between it and raw rows."""

    estimator: Learner  # of a file it predicts, but cannot be a warm start
    classes: tuple[Any, ...]  # labels of the k classes, in the order of the decision values
    labels: tuple[Any, ...]  # of every prediction code: the classes, a stub leaf as its node, then what may be predicted beyond them
    standardiser: Standardiser | Steps | None = None  # applied to the features first; `Steps` of a pipeline
    encoding: Encoding | None = None  # how columns of a table become features; None if there never was a table
    about: Mapping[str, Any] = field(default_factory=dict)  # configuration, data set and its checksum, rows, hyper-parameters, versions
    label_separator: str | None = None  # joins the labels of a row in one cell; None: they have a column of 0 and 1 each
    label_prefix: str = "label_"  # begins the names of these columns
    tau: float | None = None  # the margin of a prediction must exceed it, of an estimator without such a parameter (`at_threshold`)

    @property
    def step(self) -> str:
        """Name of the estimator among the steps of a pipeline."""
        return str(self.about.get("step", type(self.estimator).__name__.lower()))

    @property
    def of_sets(self) -> bool:
        """Whether predictions are sets of labels."""
        return self.estimator.of_sets_ or bool(getattr(getattr(self.estimator, "loss_", None), "sets", False))

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the fit; None for a learner that has none."""
        return self.estimator.certificate_

    def as_estimator(self) -> Any:
        """Return what `load` returns: the learner alone, or a `ModelPipeline` (scikit-learn's) with what stands before it.

        Its ``classes_`` and ``order_`` are the labels, also where the learner was fitted to codes. What ``advcli fit`` made begins with the
        step ``columns``, which takes frames with the columns of the training file.
        """
        from sklearn.preprocessing import FunctionTransformer

        self.refuse_own_threshold()
        learner: Any = self.estimator
        if plain(learner.order_) != plain(self.classes):
            learner = copy.copy(learner)
            learner.name_classes(label_array(self.classes))
            learner.n_classes = None
            if learner.counts_steps:  # to be fitted again, to labels that may be text
                learner.order = list(self.classes)
        before: list[tuple[str, Any]] = [] if self.encoding is None else [("columns", EncodedColumns(self.encoding))]
        if isinstance(self.standardiser, Steps):
            before += self.standardiser.named
        elif self.standardiser is not None:
            before += [("standardise", FunctionTransformer(self.standardiser.transform, accept_sparse=True))]
        if not before:
            return learner
        return ModelPipeline([*before, (self.step, learner)])

    def features(self, X: Any, groups: Any = None) -> Any:
        """Return rows X (n, d) as the estimator takes them; with the sequence of each (n,) where it learned from sequences."""
        X = X if self.standardiser is None else self.standardiser.transform(X)
        return X if groups is None or not self.estimator.has_groups else self.estimator.look(Rows(X, groups=groups))

    def check_threshold(self) -> None:
        """Refuse with `ConfigError` a model to which no threshold applies: of sets, of sequences, or of predictions other than classes."""
        if self.of_sets or self.estimator.has_groups:
            raise ConfigError("a threshold is for rows that stand alone and have one label, and this model learned from others")
        k = len(self.classes)
        if len(self.labels) < k or (len(self.labels) > k and self.labels[:k] != self.classes):
            raise ConfigError("a threshold is for models that predict classes, and this one predicts the rows of a cost matrix")

    def refuse_own_threshold(self) -> None:
        """Refuse with `ConfigError` a threshold that the estimator itself does not have: nothing but this object knows it."""
        if self.tau is not None:
            remedy = "read the model and give tau where it predicts (at_threshold, predict.tau)"
            raise ConfigError(f"{type(self.estimator).__name__} has no threshold that a file or a pipeline could keep: {remedy}")

    def at_threshold(self, tau: float) -> Model:
        """Return the model that decides where the margin of its prediction exceeds ``tau`` and abstains elsewhere.

        ``tau`` is a number, such as the threshold of a `Guarantee` that ``advcli coverage`` found on held-out rows. An abstaining
        classifier has its own margin (`AbstainingClassifier.margin`), of any other the lead of the largest decision value on the second.
        `ConfigError` for no number, or for a model to which none applies (`check_threshold`).
        """
        self.check_threshold()
        refuse("tau", tau, REAL)
        estimator: Any = self.estimator
        if hasattr(estimator, "threshold_"):
            estimator = copy.copy(estimator)
            estimator.tau = float(tau)
            return replace(self, estimator=estimator)
        undecided = ABSTAIN
        while undecided in self.labels:
            undecided = f"_{undecided}"
        more = (undecided,) if len(self.labels) == len(self.classes) else ()
        return replace(self, tau=float(tau), labels=(*self.labels, *more))

    def judged(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
        """Return margins of rows X (n, d), codes of the classes that are predicted where any is, and codes of the predictions; all (n,)."""
        return self._judged(self.features(X))

    def _judged(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
        margin, codes = self.estimator.margins(X), np.asarray(self.estimator.predict_codes(X))
        chosen = np.where(codes < len(self.classes), codes, np.argmax(self.estimator.potentials(X), axis=1))
        return margin, chosen, codes if self.tau is None else np.where(margin > self.tau, chosen, len(self.classes))

    def _codes(self, X: Any) -> Any:
        return self.estimator.predict_codes(X) if self.tau is None else self._judged(X)[2]

    def _named(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Return the labels of codes (n,); heads of words are their own, as a sentence may be longer than all that were learned from."""
        return codes if self.estimator.of_trees else label_array(self.labels)[codes]

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """Return the predicted labels of rows X (n, d), shape (n,); where rows have several the lists of theirs.

        ``groups`` (n,) are the sequences of the rows, for a model of sequences.
        """
        codes: Any = self._codes(self.features(X, groups))
        if not self.of_sets:
            return self._named(codes)
        labels = label_array(self.labels)
        sets = np.empty(codes.shape[0], dtype=object)
        sets[:] = [labels[places].tolist() for places in np.split(codes.indices, codes.indptr[1:-1])]
        return sets

    def table(self, X: Any, groups: Any = None) -> pd.DataFrame:
        """Return all there is to say about rows X (n, d), one line each; ``groups`` as in `predict`.

        Columns are ``label``; ``abstain`` (0 or 1), where something else beside the classes may be predicted; ``potential_CLASS`` for every
        class; for adversarial losses ``probability_PREDICTION``, the predictor's distribution; where ``calibrate`` is set its estimates,
        and for classifiers of other packages that have them their probabilities, as ``probability_CLASS``. Where rows have several
        labels they stand as in the table that was learned from, joined in ``label`` or in columns of 0 and 1, and nothing else; beside
        heads of words there is ``relation`` alone, where relations were learned.
        """
        import pandas as pd

        if self.of_sets:
            return self._table_of_sets(X)
        X = self.features(X, groups)
        estimator = self.estimator
        codes = self._codes(X)
        columns: dict[str, Any] = {"label": self._named(codes)}
        if estimator.of_trees:
            relations = estimator.relations_at(X, codes)
            return pd.DataFrame(columns if relations is None else columns | {"relation": relations})
        if len(self.labels) > len(self.classes) and estimator.predicts_classes_:
            columns[ABSTAIN] = (codes >= len(self.classes)).astype(int)
        columns |= {f"potential_{label}": values for label, values in zip(self.classes, estimator.potentials(X).T, strict=True)}
        if hasattr(estimator, "predictor_distribution") and not estimator.calibrates:
            P = estimator.predictor_distribution(X)
            columns |= {f"probability_{label}": values for label, values in zip(self.labels[: P.shape[1]], P.T, strict=True)}
        elif (P := estimator.probabilities(X)) is not None:
            columns |= {f"probability_{label}": values for label, values in zip(self.classes, P.T, strict=True)}
        return pd.DataFrame(columns)

    def _table_of_sets(self, X: Any) -> pd.DataFrame:
        import pandas as pd

        if self.label_separator is not None:
            return pd.DataFrame({"label": [self.label_separator.join(map(str, labels)) for labels in self.predict(X)]})
        chosen: Any = self.estimator.predict_codes(self.features(X))
        return pd.DataFrame(chosen.toarray(), columns=[f"{self.label_prefix}{label}" for label in self.labels])


def label_array(labels: tuple[Any, ...]) -> NDArray[Any]:
    """Return the labels with one type where they have one; text beside numbers keeps both as they are."""
    if len({isinstance(label, str) for label in labels}) == 1:
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def zeros(model: Model) -> Any:
    """Return one row of zeros as features."""
    d = model.estimator.n_features_in_
    return np.zeros((1, d)) if d <= _DENSE else sparse.csr_array((1, d))


def describe(model: Model) -> dict[str, str]:
    """Return a description of a model, as labelled lines of text."""
    estimator, about = model.estimator, model.about
    cell, certificate = about.get("cell") or {}, model.certificate
    lines = {"kind": type(estimator).__name__}
    if cell:
        options = {key: value for key, value in cell["loss"].items() if key not in NOT_OPTIONS and value is not None}
        text = ", ".join(f"{key}={_at_most(json.dumps(value), 60)}" for key, value in options.items())
        lines["method"] = f"{cell['loss']['name']} {cell['features']['name']}" + (f" ({text})" if text else "")
    if isinstance(estimator, Learner) and estimator.calibrates:
        lines["probabilities"] = f"estimated, by calibrate={estimator.calibrate}"
    hyper = about.get("hyper") or {}
    if hyper:
        lines["chosen"] = ", ".join(f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}" for key, value in hyper.items())
    if certificate is not None:
        lines["certificate"] = (
            f"{certificate.status}: relative gap {certificate.relative_gap:.1e} (objective {certificate.primal:.6g}, "
            f"no less than {certificate.dual:.6g})"
        )
    if about.get("guarantee"):
        lines["guarantee"] = str(about["guarantee"])
    if about.get("dataset"):
        lines["learned from"] = f"{about['dataset']}, {about['rows']} rows (SHA-256 {about['dataset_sha256'][:12]})"
    lines["classes"] = _at_most(", ".join(map(str, model.classes)), 300)
    beyond = [str(label) for label in model.labels if label not in model.classes]
    if beyond:
        lines["may also predict" if estimator.predicts_classes_ else "predicts"] = _at_most(", ".join(beyond), 300)
    encoding = model.encoding
    if encoding is not None:
        columns = [f"{column.name} (one of {len(column.categories)})" if column.categories else column.name for column in encoding.columns]
        lines["columns"] = _at_most(", ".join(columns), 600)
        lines |= _handled(encoding)
    elif (named := getattr(estimator, "feature_names_in_", None)) is not None:
        lines["columns"] = _at_most(", ".join(map(str, named)), 600)
    lines["features"] = str(estimator.n_features_in_)
    lines["standardised"] = "no" if model.standardiser is None else "yes, by the mean and the deviation of the training rows"
    if about.get("fitted"):
        lines["trained"] = str(about["fitted"])
    if about.get("versions"):
        lines["versions"] = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    return lines


def _handled(encoding: Encoding) -> dict[str, str]:
    """Return what an encoding does with cells without a value and with categories, as labelled lines."""
    numbers = [f"{column.name} {column.fill:.6g}" for column in encoding.columns if column.categories is None and column.fill is not None]
    texts = [column for column in encoding.columns if column.categories is not None]
    marked = [column.name for column in encoding.columns if f"{column.name} is missing" in column.feature_names]
    if encoding.missing == "refuse":
        lines = {"no value": "refused (predict.gaps=ignore, predict.rejected=FILE)"}
    else:
        ways = [f"numbers filled by {', '.join(numbers)}"] if numbers else []
        if encoding.missing != "indicator":
            for column in texts:
                code, names = int(-1 if column.fill is None else column.fill), column.categories or ()
                # beyond the categories: nothing is a value of a box that is ticked or empty
                ways += [f"{column.name} by {names[code] if code < len(names) else 'nothing'}"] if names and code >= 0 else []
        ways += [f"marked in {', '.join(marked)}"] if marked else []
        lines = {"no value": _at_most(f"{encoding.missing}: {'; '.join(ways) or 'none was there'}", 600)}
    if encoding.notation != PLAIN:
        lines["numbers"] = f"read by {encoding.notation}"
    if texts:
        others = [f"{column.name} ({len(column.categories or ()) - len(column.own or ())} share one)" for column in texts if column.other]
        rare = f"; rare ones share a feature: {', '.join(others)}" if others else ""
        lines["categories"] = _at_most(f"unseen ones refused (predict.unseen=ignore, predict.rejected=FILE){rare}", 600)
    return lines


def _at_most(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."
