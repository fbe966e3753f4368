"""Fitted methods as files: everything between a raw row and its prediction, in a format that executes nothing when it is read.

A model file is a zip archive without compression:

    model.json       format and its version, parameters of the estimator, labels, encoding of columns, how it was made, its certificate
    arrays/NAME.npy  parameters, standardisation, support vectors; NumPy's format, read without pickle
    sha256           checksum of all the others, one line

The same fit gives the same bytes. A file of a newer format, a damaged or a truncated one is refused by one line (`ModelError`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .certificate import Certificate
from .data.encoding import Column, Encoding
from .data.registry import complete_options
from .data.stream import stream_tables
from .errors import AdvcliError, ConfigError, ModelError
from .evaluation.recipe import ALL, Recipe
from .evaluation.selection import pooled_score
from .evaluation.standardise import Standardiser
from .features import feature_class
from .files import atomic_file, write_bytes
from .learners import Learner
from .learners.base import registry
from .learners.hierarchical import HierarchicalClassifier
from .learners.surrogate import AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
from .provenance import package_version, versions
from .rows import plain

if TYPE_CHECKING:
    import pandas as pd

    from .evaluation import Cell

FORMAT = "advcli model"
FORMAT_VERSION = 1
"""Raised when an older version could not read the file, or would read it wrongly."""

ABSTAIN = "abstain"
"""Label of the one prediction beyond the classes."""

_ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in (SurrogateClassifier, AdversarialClassifier, OrdinalAdversarialClassifier)}
_ESTIMATORS[HierarchicalClassifier.name] = HierarchicalClassifier  # a learner that no configuration names
# what zipfile and json raise on what is no archive, or a damaged one
_UNREADABLE = (OSError, zipfile.BadZipFile, struct.error, ValueError, LookupError, EOFError, RuntimeError, AttributeError, OverflowError)
_FITTED = "features_"  # arrays that the feature map computed
# arrays that are no attributes of the estimator
_RESERVED = ("rows", "rows_data", "rows_indices", "rows_indptr", "rows_shape", "mean", "scale", "set_to_one")
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
    standardiser : Standardiser or None
        Applied to the features first; None if the estimator takes them as they are.
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
    standardiser: Standardiser | None = None
    encoding: Encoding | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    label_separator: str | None = None
    label_prefix: str = "label_"

    @property
    def of_sets(self) -> bool:
        """Whether rows have several labels."""
        return self.estimator.of_sets_

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the fit; None for a learner that has none."""
        return self.estimator.certificate_

    def features(self, X: Any) -> Any:
        """Return rows X (n, d) as the estimator takes them."""
        return X if self.standardiser is None else self.standardiser.transform(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels of rows X (n, d), shape (n,); where rows have several the lists of theirs."""
        codes: Any = self.estimator.predict_codes(self.features(X))
        labels = _label_array(self.labels)
        if not self.of_sets:
            return labels[codes]
        found = np.empty(codes.shape[0], dtype=object)
        found[:] = [labels[at].tolist() for at in np.split(codes.indices, codes.indptr[1:-1])]
        return found

    def table(self, X: Any) -> pd.DataFrame:
        """Return all there is to say about rows X (n, d), one line each.

        Returns
        -------
        DataFrame
            ``label``; ``abstain`` (0 or 1), where the loss may predict something else than a class; ``potential_CLASS`` for every class;
            for adversarial losses ``probability_PREDICTION``, the predictor's distribution. Where rows have several labels they stand as in
            the table that was learned from, joined in ``label`` or in columns of 0 and 1, and nothing else.
        """
        import pandas as pd

        if self.of_sets:
            return self._table_of_sets(X)
        X = self.features(X)
        estimator = self.estimator
        codes = estimator.predict_codes(X)
        columns: dict[str, Any] = {"label": _label_array(self.labels)[codes]}
        if len(self.labels) > len(self.classes):
            columns[ABSTAIN] = (codes >= len(self.classes)).astype(int)
        columns |= {f"potential_{label}": values for label, values in zip(self.classes, estimator.potentials(X).T, strict=True)}
        if hasattr(estimator, "predictor_distribution"):
            P = estimator.predictor_distribution(X)
            columns |= {f"probability_{label}": values for label, values in zip(self.labels, P.T, strict=True)}
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
        encoding=dataset.encoding or Encoding(tuple(Column(name) for name in dataset.feature_names)),
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
        },
        label_separator=None if target.endswith("*") else options.get("label_separator"),
        label_prefix=target[:-1] if target.endswith("*") else Model.label_prefix,
    )


def _labels(estimator: Learner, classes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the label of every prediction code: row names of a matrix with predictions of its own, else the classes and what is beyond."""
    if not isinstance(estimator, SurrogateClassifier):
        return classes
    loss, k = estimator.loss_, len(classes)
    extra = loss.n_predictions - k
    named = getattr(loss, "row_names", None)
    if extra and named is not None:
        return tuple(named)
    if extra < 0:
        return tuple(f"prediction {row + 1}" for row in range(loss.n_predictions))
    beyond = [ABSTAIN] if extra == 1 else [f"prediction {row + 1}" for row in range(k, k + extra)]
    taken = set(map(str, classes))
    while taken & set(beyond):
        beyond = [f"_{label}" for label in beyond]
    return (*classes, *beyond)


# ----------------------------------------------------------------------------------------------------------------- saving, loading


def save(model: Model | Learner, path: str | Path) -> None:
    """Write a model, or a fitted estimator alone, atomically.

    Parameters
    ----------
    model : Model, Learner
        A fitted estimator of this package; of kernels the support vectors alone are kept.
    path : path-like
        Any name.

    Raises
    ------
    ConfigError
        An estimator of another package, or one whose options or fitted attributes are no plain data.
    ResultsError
        If the file cannot be written.
    """
    if not isinstance(model, Model):
        if not isinstance(model, Learner):
            raise ConfigError(f"cannot save {type(model).__name__}: give a fitted estimator of advcli (of a pipeline, its last step)")
        check_is_fitted(model)
        model = Model(model, tuple(plain(model.classes_)), tuple(plain(model.predictions_)), about={"versions": versions()})
    estimator = model.estimator
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
    if model.standardiser is not None:
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
        "estimator": estimator.name
        if not isinstance(estimator, SurrogateClassifier)
        else next(cls.__name__ for cls in type(estimator).__mro__ if cls.__name__ in _ESTIMATORS),
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
            "columns": [{"name": column.name, "categories": plain(column.categories)} for column in encoding.columns],
            "others": list(encoding.others),
            "separator": encoding.separator,
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


def load(path: str | Path) -> Model:
    """Read a model; nothing in the file is executed.

    Raises
    ------
    ModelError
        No such file, no model, damaged, of a newer format, or made with a part that is not installed here.
    """
    path = Path(path)
    try:
        members = _members(path)
        document = json.loads(members["model.json"])
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
        return _rebuild(document, members)
    except AdvcliError as error:
        hint = " (parts of your own need --config-dir FOLDER, or the variable ADVCLI_PLUGINS)" if str(error).startswith("unknown") else ""
        raise ModelError(f"{path} cannot be used here: {error}{hint}") from error
    except (ValueError, LookupError, TypeError, AttributeError, MemoryError, OverflowError) as error:
        text = " ".join(str(error).split())
        raise ModelError(f"cannot read the model {path}: {type(error).__name__}: {text}; fit it again") from error


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED:  # a small file could unpack to more than there is memory
                raise zipfile.BadZipFile(entry.filename)
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def _rebuild(document: Mapping[str, Any], members: Mapping[str, bytes]) -> Model:
    def array(name: str) -> NDArray[Any]:
        return np.lib.format.read_array(io.BytesIO(members[f"arrays/{name}.npy"]), allow_pickle=False)

    name = document["estimator"]
    estimator = (_ESTIMATORS[name] if name in _ESTIMATORS else registry.get(name))(**document["parameters"])
    estimator.classes_ = np.array(document["codes"]["values"], dtype=np.dtype(document["codes"]["type"]))
    estimator.n_features_in_ = document["n_features"]
    if document["certificate"] is not None:
        estimator.certificate_ = Certificate.restored(document["certificate"])
    members_there = [member.removeprefix("arrays/").removesuffix(".npy") for member in members if member.startswith("arrays/")]
    stored = document.get("arrays", members_there)
    rows: Any = None
    if "rows_data" in stored:
        rows = sparse.csr_array((array("rows_data"), array("rows_indices"), array("rows_indptr")), shape=tuple(array("rows_shape")))
    elif "rows" in stored:
        rows = array("rows")
    estimator.features_ = None
    if rows is not None:
        fitted = {each.removeprefix(_FITTED): array(each) for each in stored if each.startswith(_FITTED)}
        mapped = feature_class(estimator.features)
        estimator.features_ = mapped.restored(rows, len(estimator.classes_), fitted, **(estimator.features_options or {}))
    own = {each: array(each) for each in stored if each not in _RESERVED and not each.startswith(_FITTED)}
    estimator.restore({**document.get("attributes", {}), **own})
    standardiser = None
    if "arrays/mean.npy" in members:
        standardiser = Standardiser()
        standardiser.mean_, standardiser.scale_, standardiser.set_to_one_ = array("mean"), array("scale"), array("set_to_one")
    encoding = None
    if document["encoding"] is not None:
        stored = document["encoding"]
        columns = [
            Column(column["name"], None if column["categories"] is None else tuple(column["categories"])) for column in stored["columns"]
        ]
        encoding = Encoding(tuple(columns), tuple(stored["others"]), stored["separator"])
    form = document.get("label_form", {"separator": None, "prefix": Model.label_prefix})
    return Model(
        estimator,
        tuple(document["classes"]),
        tuple(document["labels"]),
        standardiser,
        encoding,
        document["about"],
        form["separator"],
        form["prefix"],
    )


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


def predict_file(model: Model, source: Path, out: Path, rows: int = 10_000) -> Predicted:
    """Predict every row of a CSV file, a part of it in memory at a time, and write the predictions in the same order.

    Parameters
    ----------
    model : Model
        With an encoding.
    source : Path
        CSV or CSV.gz with the columns that the model was fitted on, in any order; the target and columns that were left out may be there.
    out : Path
        The columns of `Model.table`; appears whole or not at all.
    rows : int
        Rows in memory at a time.

    Raises
    ------
    DataError
        Other columns, a cell without a value or with text, a category that the model has not seen.
    """
    if model.encoding is None:
        raise ModelError("this model was saved without a table's columns; load it in Python with advcli.models.load")
    count = abstained = 0
    ignored: list[str] = []
    with atomic_file(out, "free space or choose another out=FILE.csv", streams=True) as file:
        for table in stream_tables(source, rows, separator=model.encoding.separator, text=model.encoding.text):
            if not count:
                ignored = model.encoding.check_columns(source, list(map(str, table.frame.columns)))
            predictions = model.table(model.encoding.encode(table))
            predictions.to_csv(file, header=not count, index=False, lineterminator="\n")
            count += len(predictions)
            if ABSTAIN in predictions:
                abstained += int(predictions[ABSTAIN].sum())
    return Predicted(count, abstained, tuple(ignored))
