"""Fitted methods as files: everything between a raw row and its prediction, in a format that executes nothing when it is read.

A model file is a zip archive without compression:

    model.json       format and its version, parameters of the estimator, labels, encoding of columns, how it was made, its certificate
    arrays/NAME.npy  parameters, standardisation, support vectors; NumPy's format, read without pickle
    sha256           checksum of all the others, one line

The same fit gives the same bytes. A file of a newer format, a damaged or a truncated one is refused by one line (`ModelError`).

What another package learned (`Learner.storable`) fits no such format. It is kept by pickle, which executes what it reads, where the name of
the file says so (``.joblib``), and read where the caller trusts it.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import errno
import hashlib
import inspect
import io
import json
import os
import stat
import struct
import time
import zipfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .certificate import Certificate
from .data.encoding import MISSING_WAYS, Column, Encoding, refuse_faults
from .data.reading import read_parts
from .data.registry import complete_options
from .data.transformer import EncodedColumns
from .errors import AdvcliError, ConfigError, ModelError, refuse_all
from .evaluation.recipe import ALL, Recipe
from .evaluation.selection import pooled_score
from .evaluation.standardise import Standardiser
from .features import feature_class
from .files import UNDELAYED, atomic_file, write_bytes
from .learners import Learner
from .learners.abstention import AbstainingClassifier
from .learners.base import NOT_OPTIONS, registry
from .learners.hierarchical import HierarchicalClassifier
from .learners.ordinal import OrdinalClassifier
from .learners.reductions import CostSensitiveClassifier
from .learners.surrogate import AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
from .provenance import package_version, versions
from .rows import plain
from .rules import LARGEST
from .steps import Steps
from .steps import packed as packed_steps
from .steps import unpacked as unpacked_steps
from .stored import MOST_COLUMNS, Entries

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from .evaluation import Cell

FORMAT = "advcli model"
FORMAT_VERSION = 1
"""Raised when an older version could not read the file, or would read it wrongly."""

PICKLED = ".joblib"
"""How the name of a file ends that is written by pickle."""

ABSTAIN = "abstain"
"""Label of the one prediction beyond the classes."""

_ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in (SurrogateClassifier, AdversarialClassifier, OrdinalAdversarialClassifier)}
# learners that no configuration names
_ESTIMATORS |= {cls.name: cls for cls in (AbstainingClassifier, CostSensitiveClassifier, HierarchicalClassifier, OrdinalClassifier)}
# what zipfile and json raise on what is no archive, or a damaged one
_UNREADABLE = (
    *(OSError, zipfile.BadZipFile, struct.error, ValueError, LookupError, EOFError, RuntimeError, AttributeError, OverflowError),
    *(TypeError, MemoryError),
)
# what parts raise on parameters and arrays that are not theirs
_UNFIT = (ValueError, LookupError, TypeError, AttributeError, MemoryError, ArithmeticError, RuntimeError, AssertionError)
_WHOLE = 2**31  # rows that no file has
_LOCAL = 30  # bytes before the name of an entry in a zip archive
_LONGEST = 500  # characters of what is wrong with a file
# classes of a type that is wider than they are: bytes that are always allowed, and for every character of theirs in model.json
_ROOM, _ROOM_EACH = 2**26, 64
_LABELS = "biufUOM"  # kinds of classes
_DENSE = 2**20  # features up to which a row of zeros is written out
_FITTED = "features_"  # arrays that the feature map computed
# arrays that are no attributes of the estimator
_ROWS = ("rows", "rows_data", "rows_indices", "rows_indptr", "rows_shape")
_STANDARDISER = ("mean", "scale", "set_to_one")
_STEPS = "steps"  # transformers of scikit-learn in front of the estimator; older versions refuse a file that has them
_RESERVED = (*_ROWS, *_STANDARDISER, _STEPS)
# what a column and an encoding may have beside the rest, where it is not the default
_LEARNED, _ENCODED = ("attributes", "own", "other", "fill", "indicator"), ("sequence", "missing", "max_categories")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every member: the same fit gives the same bytes


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted estimator with what stands between it and raw rows.

    Attributes
    ----------
    estimator : Learner
        Fitted. When it was loaded it predicts, but cannot be a warm start.
    classes : tuple
        Labels of the k classes, in the order of the potentials.
    labels : tuple
        Label of every prediction code: the classes, then what a loss may predict beyond them (``"abstain"``). A stub leaf has the label of
        the node that it stands for.
    standardiser : Standardiser, Steps or None
        Applied to the features first, `Steps` those of a pipeline; None if the estimator takes them as they are.
    encoding : Encoding or None
        How columns of a table become features; None if there never was a table.
    about : mapping
        How the model was made: configuration (``cell``), data set and its checksum, rows, hyper-parameters, versions.
    label_separator : str or None
        What joins the labels of a row that has several, in one cell; None: they have a column of 0 and 1 each.
    label_prefix : str
        What the names of these columns begin with.
    """

    estimator: Learner
    classes: tuple[Any, ...]
    labels: tuple[Any, ...]
    standardiser: Standardiser | Steps | None = None
    encoding: Encoding | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    label_separator: str | None = None
    label_prefix: str = "label_"

    @property
    def step(self) -> str:
        """Name of the estimator among the steps of a pipeline."""
        return str(self.about.get("step", type(self.estimator).__name__.lower()))

    @property
    def of_sets(self) -> bool:
        """Whether rows have several labels."""
        return self.estimator.of_sets_

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the fit; None for a learner that has none."""
        return self.estimator.certificate_

    def as_estimator(self) -> Any:
        """Return what `load` returns: the learner alone, or a `sklearn.pipeline.Pipeline` with what stands before it.

        Its ``classes_`` are the labels, also where the learner was fitted to codes (``advcli fit``). What ``advcli fit`` made begins with
        the step ``columns``, which takes frames with the columns of the training file.
        """
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import FunctionTransformer

        learner: Any = self.estimator
        if plain(learner.classes_) != plain(self.classes):
            learner = copy.copy(learner)
            learner.classes_, learner.n_classes = _label_array(self.classes), None
            if learner.counts_steps:  # to be fitted again, to labels that may be text
                learner.order = list(self.classes)
        before: list[tuple[str, Any]] = [] if self.encoding is None else [("columns", EncodedColumns(self.encoding))]
        if isinstance(self.standardiser, Steps):
            before += self.standardiser.named
        elif self.standardiser is not None:
            before += [("standardise", FunctionTransformer(self.standardiser.transform, accept_sparse=True))]
        if not before:
            return learner
        return Pipeline([*before, (self.step, learner)])

    def features(self, X: Any, groups: Any = None) -> Any:
        """Return rows X (n, d) as the estimator takes them; with the sequence of each (n,) where it learned from sequences."""
        X = X if self.standardiser is None else self.standardiser.transform(X)
        return X if groups is None or not self.estimator.has_groups else self.estimator.look_groups(X, groups)

    def predict(self, X: Any, groups: Any = None) -> NDArray[Any]:
        """Return the predicted labels of rows X (n, d), shape (n,); where rows have several the lists of theirs.

        ``groups`` (n,) are the sequences of the rows, for a model of sequences.
        """
        codes: Any = self.estimator.predict_codes(self.features(X, groups))
        labels = _label_array(self.labels)
        if not self.of_sets:
            return labels[codes]
        found = np.empty(codes.shape[0], dtype=object)
        found[:] = [labels[at].tolist() for at in np.split(codes.indices, codes.indptr[1:-1])]
        return found

    def table(self, X: Any, groups: Any = None) -> pd.DataFrame:
        """Return all there is to say about rows X (n, d), one line each; ``groups`` as in `predict`.

        Returns
        -------
        DataFrame
            ``label``; ``abstain`` (0 or 1), where the loss may predict something else than a class; ``potential_CLASS`` for every class;
            for adversarial losses ``probability_PREDICTION``, the predictor's distribution; where ``calibrate`` is set its estimates,
            and for classifiers of other packages that have them their probabilities, as ``probability_CLASS``. Where rows have several
            labels they stand as in the table that was learned from, joined in ``label`` or in columns of 0 and 1, and nothing else.
        """
        import pandas as pd

        if self.of_sets:
            return self._table_of_sets(X)
        X = self.features(X, groups)
        estimator = self.estimator
        codes = estimator.predict_codes(X)
        columns: dict[str, Any] = {"label": _label_array(self.labels)[codes]}
        if len(self.labels) > len(self.classes):
            columns[ABSTAIN] = (codes >= len(self.classes)).astype(int)
        columns |= {f"potential_{label}": values for label, values in zip(self.classes, estimator.potentials(X).T, strict=True)}
        if hasattr(estimator, "predictor_distribution") and not estimator.calibrates:
            P = estimator.predictor_distribution(X)
            columns |= {f"probability_{label}": values for label, values in zip(self.labels, P.T, strict=True)}
        elif (P := estimator.probabilities(X)) is not None:
            columns |= {f"probability_{label}": values for label, values in zip(self.classes, P.T, strict=True)}
        return pd.DataFrame(columns)

    def _table_of_sets(self, X: Any) -> pd.DataFrame:
        import pandas as pd

        if self.label_separator is not None:
            return pd.DataFrame({"label": [self.label_separator.join(map(str, labels)) for labels in self.predict(X)]})
        chosen: Any = self.estimator.predict_codes(self.features(X))
        return pd.DataFrame(chosen.toarray(), columns=[f"{self.label_prefix}{label}" for label in self.labels])


def _label_array(labels: tuple[Any, ...]) -> NDArray[Any]:
    """Return the labels with one type where they have one; text beside numbers keeps both as they are."""
    if len({isinstance(label, str) for label in labels}) == 1:
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


# ------------------------------------------------------------------------------------------------------------------------ fitting


def fit(cell: Cell, data_dir: Path) -> Model:
    """Fit one method to a whole data set, with the protocol's search and standardisation.

    The hyper-parameters are chosen as for the training part of a first split, which here is every row; then all rows are standardised
    and fitted to ``solver.tol``.

    Parameters
    ----------
    cell : Cell
        Data set and method, as a run takes them.
    data_dir : Path
        Where data sets lie.

    Returns
    -------
    Model
        ``about["notes"]`` and ``about["edges"]`` are to be told to the user. A fit that stopped above its tolerance warns
        (`NotConvergedWarning`) and says so in its certificate.
    """
    from threadpoolctl import threadpool_limits

    if cell.noise:
        raise ConfigError(f"advcli fit learns from the labels of the data; leave out noise={cell.noise['name']}")
    recipe = Recipe(cell, data_dir)
    if recipe.protocol.rough_per_class is not None:
        raise ConfigError(
            "protocol.rough_per_class makes labels for an experiment; advcli fit learns from those of the data: set it to null"
        )
    dataset, everything = recipe.dataset, recipe.part()
    with threadpool_limits(limits=1):
        selection = recipe.search(everything, ALL)
        fitted = recipe.fit(everything, selection.hyper, ALL)
    learner = fitted.learner
    options = complete_options(cell.dataset)
    target = str(options.get("target"))
    own = {child: parent for parent, child in dataset.hierarchy or () if child in dataset.stubs}
    return Model(
        estimator=learner,
        classes=dataset.classes,
        labels=tuple(own.get(label, label) for label in _labels(learner, dataset.classes)),
        standardiser=fitted.standardiser,
        encoding=fitted.encoding or dataset.encoding or Encoding(tuple(Column(name) for name in dataset.feature_names)),
        about={
            "cell": cell.as_mapping(),
            "dataset": dataset.name,
            "dataset_sha256": dataset.sha256,
            "rows": dataset.X.shape[0],
            "hyper": dict(selection.hyper),
            "searched": pooled_score(selection),
            "metric": recipe.metric(learner),
            "notes": [*recipe.notes, *learner.remarks_],
            "edges": list(selection.edges),
            "versions": versions(),
            "fitted": _now(),
        },
        label_separator=None if target.endswith("*") else options.get("label_separator"),
        label_prefix=target[:-1] if target.endswith("*") else Model.label_prefix,
    )


def _now() -> str:
    """Return the time in UTC, that of the variable SOURCE_DATE_EPOCH where it is set: a fit that is repeated then gives the same file."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = int(given) if given.isascii() and given.isdigit() else int(time.time())
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _labels(estimator: Learner, classes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the label of every prediction code: row names of a matrix with predictions of its own, else the classes and what is beyond."""
    if not isinstance(estimator, SurrogateClassifier):
        return classes
    k, n_predictions = len(classes), len(estimator.predictions_)
    extra = n_predictions - k
    named = estimator.loss_.row_names
    if extra and named is not None:
        return tuple(named)
    if extra < 0:
        return tuple(f"prediction {row + 1}" for row in range(n_predictions))
    beyond = [ABSTAIN] if extra == 1 else [f"prediction {row + 1}" for row in range(k, k + extra)]
    taken = set(map(str, classes))
    while taken & set(beyond):
        beyond = [f"_{label}" for label in beyond]
    return (*classes, *beyond)


def describe(model: Model) -> dict[str, str]:
    """Return what there is to say about a model, as labelled lines of text."""
    estimator, about = model.estimator, model.about
    cell, certificate = about.get("cell") or {}, model.certificate
    lines = {"kind": type(estimator).__name__}
    if cell:
        own = {key: value for key, value in cell["loss"].items() if key not in NOT_OPTIONS and value is not None}
        said = ", ".join(f"{key}={_at_most(json.dumps(value), 60)}" for key, value in own.items())
        lines["method"] = f"{cell['loss']['name']} {cell['features']['name']}" + (f" ({said})" if said else "")
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
    if about.get("dataset"):
        lines["learned from"] = f"{about['dataset']}, {about['rows']} rows (SHA-256 {about['dataset_sha256'][:12]})"
    lines["classes"] = _at_most(", ".join(map(str, model.classes)), 300)
    beyond = [str(label) for label in model.labels if label not in model.classes]
    if beyond:
        lines["may also predict"] = _at_most(", ".join(beyond), 300)
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
        said = [f"numbers filled by {', '.join(numbers)}"] if numbers else []
        if encoding.missing != "indicator":
            for column in texts:
                at = int(column.fill if column.fill is not None else -1)
                said += [f"{column.name} by {column.categories[at]}"] if column.categories and at >= 0 else []
        said += [f"marked in {', '.join(marked)}"] if marked else []
        lines = {"no value": _at_most(f"{encoding.missing}: {'; '.join(said) or 'none was there'}", 600)}
    if texts:
        others = [f"{column.name} ({len(column.categories or ()) - len(column.own or ())} share one)" for column in texts if column.other]
        rare = f"; rare ones share a feature: {', '.join(others)}" if others else ""
        lines["categories"] = _at_most(f"unseen ones refused (predict.unseen=ignore, predict.rejected=FILE){rare}", 600)
    return lines


def _at_most(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


# ----------------------------------------------------------------------------------------------------------------- saving, loading


def check_storable(kind: type[Learner], path: str | Path, what: str) -> None:
    """Refuse to write a fit that a model file cannot hold to a file whose name does not say that it is a pickle."""
    if not kind.storable and Path(path).suffix != PICKLED:
        raise ConfigError(
            f"{what} is learned by another package and kept by pickle alone, which executes what it reads: if you want that, let the name "
            f"of the file end in {PICKLED} (advcli predict then needs trust=true)"
        )


def save(model: Model | Learner | Pipeline, path: str | Path) -> None:
    """Write a model, or a fitted estimator alone, atomically.

    Parameters
    ----------
    model : Model, Learner, Pipeline
        A fitted estimator of this package; of kernels the support vectors alone are kept. Or a fitted scikit-learn pipeline that ends in
        one, after transformers that can be kept as plain data (`advcli.steps.TRANSFORMERS`).
    path : path-like
        Any name; what another package learned needs one that ends in ``.joblib``, and is written by pickle.

    Raises
    ------
    ConfigError
        An estimator of another package that is no learner here, or one whose options or fitted attributes are no plain data.
    ResultsError
        If the file cannot be written.
    """
    if not isinstance(model, Model):
        learner, steps, encoding, about = _taken_apart(model)
        check_is_fitted(learner)
        classes, labels = tuple(plain(learner.classes_)), tuple(plain(learner.predictions_))
        model = Model(learner, classes, labels, steps, encoding, {**about, "versions": versions()})
    estimator = model.estimator
    check_storable(type(estimator), path, type(estimator).__name__)
    if not estimator.storable:
        pickled = io.BytesIO()
        try:
            joblib.dump(model, pickled)
        except Exception as error:
            raise ConfigError(f"cannot save this model: {type(error).__name__}: {_shortened(error)}") from error
        write_bytes(Path(path), pickled.getbuffer(), "free space or choose another file", streams=True)
        return
    if estimator.n_features_in_ > MOST_COLUMNS:
        raise ConfigError(f"cannot save this model: it has {estimator.n_features_in_} features, a model file has {MOST_COLUMNS} at most")
    if estimator.classes_.dtype.kind not in _LABELS:
        raise ConfigError(f"cannot save this model: its classes are of the type {estimator.classes_.dtype}; give them as text or numbers")
    try:
        parameters, attributes, rows = estimator.saved()
    except NotImplementedError as error:
        raise ConfigError(f"cannot save the model: {error}; give the feature map a method support") from None
    arrays = {name: value for name, value in attributes.items() if isinstance(value, np.ndarray)}
    for name, value in attributes.items():
        if name not in arrays and not _is_plain(value):
            raise ConfigError(f"cannot save this model: {name} of {type(estimator).__name__} is neither an array nor plain data")
    if estimator.features_ is not None:
        if hasattr(rows, "tocsr"):
            rows = rows.tocsr()
            arrays |= {f"rows_{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}
            arrays["rows_shape"] = np.array(rows.shape)
        else:
            arrays["rows"] = rows
        arrays |= {f"{_FITTED}{name}": array for name, array in estimator.features_.fitted().items()}
    if isinstance(model.standardiser, Steps):
        arrays[_STEPS] = packed_steps(model.standardiser)
    elif model.standardiser is not None:
        arrays |= {
            "mean": model.standardiser.mean_,
            "scale": model.standardiser.scale_,
            "set_to_one": model.standardiser.set_to_one_,
        }
    encoding = model.encoding
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "advcli": package_version(),
        "estimator": getattr(estimator, "name", None)
        or next(cls.__name__ for cls in type(estimator).__mro__ if cls.__name__ in _ESTIMATORS),
        "parameters": plain(parameters),
        "attributes": {name: plain(value) for name, value in sorted(attributes.items()) if not isinstance(value, np.ndarray)},
        "codes": {"type": estimator.classes_.dtype.str, "values": plain(estimator.classes_)},
        "arrays": sorted(arrays),
        "n_features": int(estimator.n_features_in_),
        "classes": plain(model.classes),
        "labels": plain(model.labels),
        "label_form": {"separator": model.label_separator, "prefix": model.label_prefix},
        # without the time, so that the same fit gives the same file
        "certificate": None if model.certificate is None else dataclasses.asdict(model.certificate) | {"seconds": 0.0},
        "encoding": None
        if encoding is None
        else {
            "columns": [
                {"name": column.name, "categories": plain(column.categories)}
                | {key: plain(value) for key in _LEARNED if (value := getattr(column, key)) != getattr(Column, key)}
                for column in encoding.columns
            ],
            "others": list(encoding.others),
            "separator": encoding.separator,
            **{key: value for key in _ENCODED if (value := getattr(encoding, key)) != getattr(Encoding, key)},
        },
        "about": plain(model.about),
    }
    try:
        text = json.dumps(document, indent=1)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"cannot save this model: {error}") from error
    members = {"model.json": text.encode(), **{f"arrays/{name}.npy": _npy(array) for name, array in sorted(arrays.items())}}
    members["sha256"] = f"{_checksum(members)}\n".encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    write_bytes(Path(path), packed.getbuffer(), "free space or choose another file", streams=True)


def _taken_apart(model: Any) -> tuple[Learner, Standardiser | Steps | None, Encoding | None, dict[str, str]]:
    """Return the estimator of this package, what stands before it in a pipeline, the encoding of columns, and its name there."""
    steps: list[tuple[str, Any]] = list(getattr(model, "steps", [])) if hasattr(model, "named_steps") else []
    learner = steps[-1][1] if steps else model
    if not isinstance(learner, Learner):
        raise ConfigError(f"cannot save {type(learner).__name__}: give a fitted estimator of advcli, or a pipeline that ends in one")
    about = {"step": steps[-1][0]} if steps else {}
    before = tuple((name, step) for name, step in steps[:-1] if step is not None and step != "passthrough")
    encoding = None
    if before and isinstance(before[0][1], EncodedColumns):  # of a pipeline that `load` returned
        encoding, before = before[0][1].encoding, before[1:]
    if len(before) == 1 and isinstance(of := getattr(getattr(before[0][1], "func", None), "__self__", None), Standardiser):
        return learner, of, encoding, about
    if before and not learner.storable:
        raise ConfigError(f"cannot save this pipeline: {type(learner).__name__} is kept by pickle alone; save it without the steps")
    return learner, Steps(before) if before else None, encoding, about


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, (*value, *value.values())))
    return value is None or isinstance(value, (bool, int, float, str, np.bool_, np.integer, np.floating))


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _checksum(members: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(members):
        if name != "sha256":
            digest.update(f"{name} {len(members[name])}\n".encode())
            digest.update(members[name])
    return digest.hexdigest()


def load(path: str | Path, trust: bool = False) -> Any:
    """Return the fitted estimator of a model file, or the fitted pipeline, as it predicted when it was saved.

    A model of ``advcli fit`` is a `sklearn.pipeline.Pipeline` that takes frames with the columns of its training file, or arrays of
    features, and predicts labels; `read` returns what else such a file says.

    Parameters
    ----------
    path : path-like
        A file that `save` or ``advcli fit`` wrote.
    trust : bool
        Whether the file may be a pickle, which executes what it holds.

    Returns
    -------
    estimator
        With scikit-learn's methods; the last step of a pipeline has the ``certificate_``. It cannot be a warm start.

    Raises
    ------
    ModelError
        As `read`.
    """
    return read(path, trust).as_estimator()


def read(path: str | Path, trust: bool = False) -> Model:
    """Read a model file with all that it says.

    Nothing in the file is executed, no other file is opened, and no more memory is asked for than its length calls for.

    Only with ``trust`` may a file be a pickle, which executes what it holds.

    Raises
    ------
    ModelError
        No such file, no model, damaged, of a newer format, made with a part that is not installed here, or with an entry that is not what
        it must be.
    """
    path = Path(path)
    if path.suffix == PICKLED and path.is_file() and not zipfile.is_zipfile(path):
        return _unpickled(path, trust)
    try:
        members = _members(path)
        document = json.loads(members["model.json"], object_pairs_hook=_without_repeats)
        if document["format"] != FORMAT:
            raise LookupError(document["format"])
        version = document["format_version"]
    except FileNotFoundError:
        raise ModelError(f"there is no model {path}; advcli fit ... out={path.name} makes one") from None
    except _UNREADABLE as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no model of advcli, or damaged"
        raise ModelError(f"cannot read the model {path}: {reason}; copy or fit it again") from None
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and version > FORMAT_VERSION
        advice = f"update advcli (this is {package_version()})" if newer else "fit it again"
        made = document.get("advcli", "another version")
        raise ModelError(
            f"{path} has the model format {version}, made by advcli {made}; this version reads format {FORMAT_VERSION}: {advice}"
        )
    if members.get("sha256", b"").decode("ascii", "replace").strip() != _checksum(members):
        raise ModelError(f"cannot read the model {path}: its checksum does not fit, it is damaged; copy or fit it again")
    try:
        # what a foreign file overflows is told by the scores, not by warnings
        with np.errstate(all="ignore"):
            return _rebuild(document, members)
    except ModelError as error:
        raise ModelError(f"cannot read the model {path}: {_shortened(error)}; fit it again") from error
    except AdvcliError as error:
        hint = " (parts of your own need --config-dir FOLDER, or the variable ADVCLI_PLUGINS)" if str(error).startswith("unknown") else ""
        raise ModelError(f"{path} cannot be used here: {_shortened(error)}{hint}") from error
    except _UNFIT as error:
        raise ModelError(f"cannot read the model {path}: {type(error).__name__}: {_shortened(error)}; fit it again") from error


def _unpickled(path: Path, trust: bool) -> Model:
    if not trust:
        raise ModelError(f"{path} is a pickle, which executes what it holds: give trust=true if you know where it comes from")
    try:
        found = joblib.load(path)
    except Exception as error:
        raise ModelError(f"cannot read the model {path}: {type(error).__name__}: {_shortened(error)}; fit it again") from error
    if not isinstance(found, Model):
        raise ModelError(f"{path} holds a {type(found).__name__}, no model of advcli")
    return found


def _shortened(error: Exception) -> str:
    """Return the text of an error as one line that a foreign file cannot make long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key of model.json stands there twice")
    return found


def _members(path: Path) -> dict[str, bytes]:
    """Return the entries of an archive by name: as `save` writes them, one after the other, whole and each name once."""
    # a named pipe would wait for a writer; what a device holds has no end
    with open(os.open(path, UNDELAYED), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a directory" if stat.S_ISDIR(mode) else "it is a pipe or a device, no file")
        with zipfile.ZipFile(file) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            # a small file could unpack to more than there is memory, by compression or by entries that share their bytes
            for entry, end in zip(entries, [*(each.header_offset for each in entries[1:]), archive.start_dir], strict=True):
                long = _LOCAL + len(entry.orig_filename.encode()) + entry.file_size
                stored = entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size
                if not stored or entry.header_offset + long > end:
                    raise zipfile.BadZipFile(entry.filename)
            if len({entry.filename for entry in entries}) < len(entries):
                raise zipfile.BadZipFile("two entries of one name")
            return {entry.filename: archive.read(entry) for entry in entries}


def _rebuild(document: Mapping[str, Any], members: Mapping[str, bytes]) -> Model:
    arrays = {name.removeprefix("arrays/").removesuffix(".npy"): each for name, each in members.items() if name.startswith("arrays/")}
    listed = document.get("arrays", sorted(arrays))
    for name in sorted({"model.json", "sha256", *(f"arrays/{name}.npy" for name in listed)} ^ members.keys()):
        raise ModelError(f"{name} {'is not listed in model.json' if name in members else 'is missing'}")

    def taken(names: Callable[[str], bool], plain: Mapping[str, Any] | None = None) -> Entries:
        return Entries({name: arrays[name] for name in listed if names(name)}, plain)

    estimator = _restored_estimator(
        document,
        taken(lambda name: name in _ROWS),
        Entries({name.removeprefix(_FITTED): arrays[name] for name in listed if name.startswith(_FITTED)}, prefix=_FITTED),
        taken(lambda name: name not in _RESERVED and not name.startswith(_FITTED), document.get("attributes", {})),
    )
    d = estimator.n_features_in_
    form = document.get("label_form", {"separator": None, "prefix": Model.label_prefix})
    model = Model(
        estimator,
        _labels_of(document, "classes", len(estimator.classes_)),
        _labels_of(document, "labels", len(estimator.predictions_)),
        _restored_standardiser(taken(lambda name: name in _STANDARDISER), d),
        _restored_encoding(document["encoding"], d),
        _field(document, "about", dict),
        _field(form, "separator", str, type(None)),
        _field(form, "prefix", str),
    )
    # what overflows, or is not what some learner of one's own needs, is found here and not in the middle of a table
    model.table(_zeros(model))
    if _STEPS in listed:
        steps = unpacked_steps(taken(lambda name: name == _STEPS).array(_STEPS, (None,), "i", least=0, most=255).astype(np.uint8))
        first = getattr(steps.named[0][1], "n_features_in_", None)
        if not isinstance(first, int) or not 1 <= first <= MOST_COLUMNS:
            raise ModelError("its steps do not say how many columns they take")
        model = dataclasses.replace(model, standardiser=steps)
        model.table(np.zeros((1, first)))
    return model


def _without_gaps(X: Any, model: Model) -> Any:
    """Return features X (n, d) with the training rows' mean for nan, 0 where they are not standardised; for a pipeline as they are."""
    if isinstance(model.standardiser, Steps):  # of a pipeline, which fills gaps or refuses them
        return X
    sparse_rows = hasattr(X, "indptr")
    values, columns = (X.data, X.indices) if sparse_rows else (X, slice(None))
    mean = np.zeros(X.shape[1]) if model.standardiser is None else model.standardiser.mean_
    filled = np.where(np.isnan(values), mean[columns], values)
    return sparse.csr_array((filled, X.indices, X.indptr), shape=X.shape) if sparse_rows else filled


def _zeros(model: Model) -> Any:
    """Return one row of zeros as features."""
    d = model.estimator.n_features_in_
    return np.zeros((1, d)) if d <= _DENSE else sparse.csr_array((1, d))


def _restored_estimator(document: Mapping[str, Any], rows: Entries, fitted: Entries, attributes: Entries) -> Learner:
    name, parameters = _field(document, "estimator", str), _field(document, "parameters", dict)
    kind = _ESTIMATORS[name] if name in _ESTIMATORS else registry.get(name)
    if not kind.storable:
        raise ModelError(f"a model file holds no {name}")
    _check_parameters(kind, parameters)
    estimator = kind.from_saved(parameters)
    estimator.check_parameters()
    codes = _field(document, "codes", dict)
    estimator.classes_ = _restored_classes(_field(codes, "values", list), _field(codes, "type", str))
    if estimator.n_classes not in (None, len(estimator.classes_)):
        raise ModelError(f"it has {len(estimator.classes_)} classes, and n_classes is {estimator.n_classes}")
    estimator.n_features_in_ = _field(document, "n_features", int)
    if not 1 <= estimator.n_features_in_ <= MOST_COLUMNS:
        raise ModelError(f"n_features must be a whole number from 1 to {MOST_COLUMNS}")
    if document["certificate"] is not None:
        estimator.certificate_ = Certificate.restored(_field(document, "certificate", dict))
    estimator.of_sets_ = attributes.flag("of_sets_")
    if estimator.of_sets_ and not estimator.sets:
        raise ModelError(f"a {name} has no sets of labels")
    kept: Any = None
    if "rows_data" in rows:
        kept = rows.csr("rows_{}", None, estimator.n_columns_)
    elif "rows" in rows:
        kept = rows.array("rows", (None, estimator.n_columns_))
    rows.check_taken()
    mapped = feature_class(estimator.features)
    if mapped.keeps_rows != (kept is not None):
        raise ModelError(f"features={mapped.name} {'need the rows that they keep' if mapped.keeps_rows else 'keep no rows'}")
    estimator.features_ = None if kept is None else mapped.restored(kept, estimator.n_mapped_, fitted, **estimator.map_options)
    fitted.check_taken()
    estimator.restore(attributes)
    attributes.check_taken()
    return estimator


def _field(document: Mapping[str, Any], name: str, *kinds: type) -> Any:
    """Return a value of model.json of one of these types."""
    value = document[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ModelError(f"{name} in model.json is {json.dumps(value)[:40]}")
    return value


def _check_parameters(kind: type[Learner], parameters: Mapping[str, Any]) -> None:
    """Refuse parameters of another type than the estimator's ``__init__`` says; where it says nothing anything goes."""
    right = {
        "None": lambda value: value is None,
        "bool": lambda value: value in (0, 1),
        "int": _is_number,
        "float": _is_number,
        "str": lambda value: isinstance(value, str),
        "Mapping[str, Any]": lambda value: isinstance(value, dict),
    }
    for name, parameter in inspect.signature(kind).parameters.items():
        kinds = str(parameter.annotation).split(" | ")
        if name in parameters and set(kinds) <= right.keys() and not any(right[each](parameters[name]) for each in kinds):
            raise ModelError(f"its parameter {name} is {json.dumps(parameters[name])[:40]}, not of the type {parameter.annotation}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, bool)) or _is_number(value)


def _labels_of(document: Mapping[str, Any], name: str, count: int) -> tuple[Any, ...]:
    labels = _field(document, name, list)
    if len(labels) != count or not all(map(_is_label, labels)):
        raise ModelError(f"{name} in model.json are not {count} labels")
    return tuple(labels)


def _restored_classes(values: list[Any], text: str) -> NDArray[Any]:
    """Return the classes with the type that they were learned with."""
    try:
        dtype = np.dtype(text)
    except (TypeError, SyntaxError):
        raise ModelError(f"codes in model.json have the type {text[:40]}") from None
    if dtype.kind not in _LABELS or dtype.itemsize * len(values) > _ROOM + _ROOM_EACH * len(str(values)):
        raise ModelError(f"codes in model.json have the type {text[:40]}")
    if len(values) < 2 or not all(map(_is_label, values)) or len(set(values)) < len(values):
        raise ModelError("codes in model.json are not two different labels, or more")
    classes = np.array(values, dtype=dtype)
    if plain(classes) != values:
        raise ModelError(f"codes in model.json are not of the type {text}")
    return classes


def _restored_standardiser(arrays: Entries, d: int) -> Standardiser | None:
    if not len(arrays):
        return None
    standardiser = Standardiser()
    standardiser.mean_, standardiser.scale_ = arrays.array("mean", (d,)), arrays.array("scale", (d,))
    standardiser.set_to_one_ = arrays.array("set_to_one", (d,), "b")
    if not standardiser.scale_.all():
        raise ModelError("arrays/scale.npy holds a 0, by which columns would be divided")
    return standardiser


def _restored_encoding(document: Any, d: int) -> Encoding | None:
    if document is None:
        return None
    columns = []
    for stored in _field(document, "columns", list):
        categories = _field(stored, "categories", list, type(None))
        if categories is not None and not (categories and all(map(_is_label, categories)) and len(set(categories)) == len(categories)):
            raise ModelError("encoding in model.json has categories that are not different values")
        attributes = _field(stored, "attributes", list) if "attributes" in stored else None
        if attributes is not None and not (all(isinstance(each, str) for each in attributes) and len(set(attributes)) == len(attributes)):
            raise ModelError("encoding in model.json has attributes that are not different names")
        columns.append(_restored_column(stored, categories, attributes))
    others, separator = _field(document, "others", list), _field(document, "separator", str)
    if not all(isinstance(name, str) for name in others) or len({column.name for column in columns}) < len(columns):
        raise ModelError("encoding in model.json does not name different columns")
    if len(separator) != 1 or separator in '"\r\n\0':
        raise ModelError("encoding in model.json separates fields by more or less than one character, or by one that cannot")
    sequence = _field(document, "sequence", str) if "sequence" in document else None
    missing = _field(document, "missing", str) if "missing" in document else Encoding.missing
    most = _field(document, "max_categories", int, type(None)) if "max_categories" in document else None
    if missing not in MISSING_WAYS:
        raise ModelError(f"encoding in model.json fills cells by {missing[:40]!r}")
    encoding = Encoding(tuple(columns), tuple(others), separator, sequence, missing, most)
    if len(encoding.feature_names) != d:
        raise ModelError(f"encoding in model.json makes {len(encoding.feature_names)} features, and n_features is {d}")
    return encoding


def _restored_column(stored: Mapping[str, Any], categories: list[Any] | None, attributes: list[str] | None) -> Column:
    """Return a column with what was learned of it, each by what it must be."""
    name, own = _field(stored, "name", str), stored.get("own")
    fill, places = stored.get("fill"), range(len(categories or ()) + 1)
    other, indicator = (_field(stored, key, bool) if key in stored else False for key in ("other", "indicator"))
    if own is not None:
        own = _field(stored, "own", list)
        if categories is None or not all(type(code) is int and code in places for code in own) or sorted(set(own)) != own:
            raise ModelError(f"encoding in model.json has features of {name!r:.60} that are no categories")
    if (other and categories is None) or (indicator and (categories is not None or fill is None)):
        raise ModelError(f"encoding in model.json has features of {name!r:.60} that it cannot have")
    if fill is not None and not (_is_number(fill) and abs(fill) <= LARGEST and (categories is None or fill in (-1, *places))):
        raise ModelError(f"encoding in model.json fills cells of {name!r:.60} by {json.dumps(fill)[:40]}")
    if attributes is not None and (categories is not None or own is not None or fill is not None):
        raise ModelError(f"encoding in model.json has attributes and more for {name!r:.60}")
    known, named, kept = (None if each is None else tuple(each) for each in (categories, attributes, own))
    return Column(name, known, named, kept, other, None if fill is None else float(fill), indicator)


# --------------------------------------------------------------------------------------------------------------------- prediction


@dataclass(frozen=True)
class Predicted:
    """What a file of predictions holds, in words.

    Attributes
    ----------
    rows : int
        Number of predictions.
    abstained : int
        Predictions that are no class.
    ignored : tuple of str
        Columns of the input that the model does not use, such as the target.
    """

    rows: int
    abstained: int
    ignored: tuple[str, ...]
    rejected: int = 0


_IGNORED = {"unseen": "unseen", "gaps": "gap"}
"""Kinds of faults by what `predict_file` may ignore."""


def predict_file(
    model: Model, source: Path, out: Path, rows: int = 10_000, *, ignore: Collection[str] = (), rejected: Path | None = None
) -> Predicted:
    """Predict every row of a file, a part of it in memory at a time, and write the predictions in the same order.

    Parameters
    ----------
    model : Model
        With an encoding.
    source : Path
        CSV, CSV.gz, parquet, feather or Excel with the columns that the model was fitted on, in any order; the target and columns that
        were left out may be there.
    out : Path
        The columns of `Model.table`; appears whole or not at all.
    rows : int
        Rows in memory at a time; a model of sequences takes all, as no sequence may be cut.
    ignore : collection of str
        ``unseen``: categories that the model has not seen count as none of its categories, or as a rare one. ``gaps``: a cell without a
        value, which the model does not fill, counts as the mean of the training rows (0 where features are not standardised). ``extra``:
        columns that the training file did not have are left out.
    rejected : Path, optional
        CSV file for the rows that are refused: ``row``, counted from 1 without the heading, ``reasons``, and their cells. The predictions
        then have a first column ``row``.

    Raises
    ------
    DataError
        Other columns; and, without ``rejected``, a cell without a value or with text, a category that the model has not seen.
    """
    if model.encoding is None:
        raise ModelError("this model was saved without a table's columns; load it in Python by advcli.models.load")
    count = abstained = refused = 0
    ignored: list[str] = []
    encoding = model.encoding
    if encoding.sequence is not None:
        if rejected is not None:
            raise ConfigError("predict.rejected leaves rows out, and this model predicts whole sequences; correct the rows")
        rows = _WHOLE
    skipped = {_IGNORED[kind] for kind in ignore if kind in _IGNORED}
    remedy = "free space or choose another FILE.csv"
    with contextlib.ExitStack() as files:
        file = files.enter_context(atomic_file(out, remedy, streams=True))
        aside = None if rejected is None else files.enter_context(atomic_file(rejected, remedy, streams=True))
        first = True
        for table in read_parts(source, rows, separator=encoding.separator, text=encoding.text):
            if first:
                ignored = encoding.check_columns(source, list(map(str, table.frame.columns)), "extra" in ignore)
            cells, faults = encoding.cells(table)
            faults = [fault for fault in faults if fault.kind not in skipped]
            numbers = table.before + 1 + np.arange(len(table.frame))
            good = np.ones(len(numbers), dtype=bool)
            if aside is None:
                hints = {kind: f"predict.{key}=ignore, or " for key, kind in _IGNORED.items()}
                hinted = [replace(each, text=f"{each.text} ({hints.get(each.kind, '')}predict.rejected=FILE goes on)") for each in faults]
                refuse_all(refuse_faults(hinted), str(source))
            else:
                reasons: dict[int, list[str]] = {}
                for fault in faults:
                    for row in fault.rows.tolist():
                        reasons.setdefault(row, []).append(fault.reason)
                bad = sorted(reasons)
                good[bad] = False
                told = table.frame.iloc[bad]
                told.insert(0, "reasons", ["; ".join(reasons[row]) for row in bad], allow_duplicates=True)
                told.insert(0, "row", numbers[bad], allow_duplicates=True)
                told.to_csv(aside, header=first, index=False, lineterminator="\n")
                refused += len(bad)
            if good.any() or first:
                X = encoding.features(cells[good]) if good.any() else _zeros(model)
                predictions = model.table(_without_gaps(X, model) if "gaps" in ignore else X, encoding.groups(table))
                predictions = predictions if good.any() else predictions.iloc[:0]
                if aside is not None:
                    predictions.insert(0, "row", numbers[good], allow_duplicates=True)
                predictions.to_csv(file, header=first, index=False, lineterminator="\n")
                count += len(predictions)
                if ABSTAIN in predictions:
                    abstained += int(predictions[ABSTAIN].sum())
            first = False
    return Predicted(count, abstained, tuple(ignored), refused)
