"""Model files: archives that are written and read without executing anything (`advcli.models` has the format)."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.arrays import is_sparse
from ..core.errors import AdvcliError, ConfigError, ModelError
from ..core.files import UNDELAYED, write_bytes
from ..core.stored_arrays import MOST_COLUMNS
from ..data.tables.encoding import Column, Encoding
from ..evaluation.standardise import Standardiser
from ..learners import Learner
from ..results.provenance import package_version, versions
from ..results.tables import plain
from .model import Model
from .pipeline_steps import EncodedColumns, Steps
from .restored import ENCODED, ESTIMATORS, FITTED, LABELS, LEARNED, rebuild

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FORMAT = "advcli model"
FORMAT_VERSION = 1
"""Raised when an older version could not read the file, or would read it wrongly."""

PICKLED = ".joblib"
"""How the name of a file ends that is written by pickle."""

# what zipfile and json raise on a damaged archive or a file of another format
_UNREADABLE = (
    *(OSError, zipfile.BadZipFile, struct.error, ValueError, LookupError, EOFError, RuntimeError, AttributeError, OverflowError),
    *(TypeError, MemoryError),
)
# what parts raise on parameters and arrays that are not theirs
_UNFIT = (ValueError, LookupError, TypeError, AttributeError, MemoryError, ArithmeticError, RuntimeError, AssertionError)
_LOCAL = 30  # bytes before the name of an entry in a zip archive
_LONGEST = 500  # characters of what is wrong with a file
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every member: the same fit gives the same bytes


def check_storable(pickled: bool, path: str | Path, what: str) -> None:
    """Refuse to write a fit that a model file cannot hold to a file whose name does not say that it is a pickle."""
    if pickled and Path(path).suffix != PICKLED:
        remedy = f"if you want that, let the name of the file end in {PICKLED} (advcli predict then needs trust=true)"
        raise ConfigError(f"{what} is learned by another package and kept by pickle alone, which executes what it reads: {remedy}")


def save(model: Model | Learner | Pipeline, path: str | Path) -> None:
    """Write a model, or a fitted estimator alone, atomically.

    Parameters
    ----------
    model : Model, Learner, Pipeline
        A fitted estimator of this package; of kernels the support vectors alone are kept. Or a fitted scikit-learn pipeline that ends in
        one, after transformers that can be kept as plain data (`advcli.models.pipeline_steps.TRANSFORMERS`).
    path : path-like
        Any name; what another package learned, but for linear classifiers of scikit-learn (`advcli.learners.sklearn.LINEAR`), needs
        a name that ends in ``.joblib``, and is written by pickle.

    Raises
    ------
    ConfigError
        An estimator of another package that is not a learner here, or whose options or fitted attributes are not plain data.
    ResultsError
        If the file cannot be written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import AdversarialClassifier, models
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdversarialClassifier("cs").fit(X, y)
    >>> models.save(model, "iris.model")
    >>> models.load("iris.model").predict(X[:3])
    array([0, 0, 0])
    """
    if not isinstance(model, Model):
        learner, steps, encoding, about = _taken_apart(model)
        check_is_fitted(learner)
        classes, labels = tuple(plain(learner.order_)), tuple(plain(learner.predictions_))
        model = Model(learner, classes, labels, steps, encoding, {**about, "versions": versions()})
    model.refuse_own_threshold()
    estimator = model.estimator
    check_storable(estimator.kept_by_pickle, path, type(getattr(estimator, "estimator_", estimator)).__name__)
    write_bytes(Path(path), (_pickled if estimator.kept_by_pickle else _archive)(model), "free space or choose another file", streams=True)


def _pickled(model: Model) -> memoryview:
    buffer = io.BytesIO()
    try:
        joblib.dump(model, buffer)
    except Exception as error:
        raise ConfigError(f"cannot save this model: {type(error).__name__}: {_shortened(error)}") from error
    return buffer.getbuffer()


def _archive(model: Model) -> memoryview:
    """Return the archive of a model whose estimator is kept as plain data and arrays."""
    estimator = model.estimator
    if estimator.n_features_in_ > MOST_COLUMNS:
        raise ConfigError(f"cannot save this model: it has {estimator.n_features_in_} features, a model file has {MOST_COLUMNS} at most")
    if estimator.order_.dtype.kind not in LABELS:
        raise ConfigError(f"cannot save this model: its classes are of the type {estimator.order_.dtype}; give them as text or numbers")
    try:
        changed, attributes, rows = estimator.saved()
    except NotImplementedError as error:
        raise ConfigError(f"cannot save the model: {error}; give the feature map a method support") from None
    arrays = {name: value for name, value in attributes.items() if isinstance(value, np.ndarray)}
    facts = {name: value for name, value in attributes.items() if name not in arrays}
    for name, value in facts.items():
        if not _is_plain(value):
            raise ConfigError(f"cannot save this model: {name} of {type(estimator).__name__} is neither an array nor plain data")
    arrays |= _arrays_of_map(estimator, rows) | ({} if model.standardiser is None else model.standardiser.arrays())
    try:
        text = json.dumps(_document(model, _parameters(estimator, changed), facts, arrays), indent=1)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"cannot save this model: {error}") from error
    members = {"model.json": text.encode(), **{f"arrays/{name}.npy": _npy(array) for name, array in sorted(arrays.items())}}
    members["sha256"] = f"{_checksum(members)}\n".encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return buffer.getbuffer()


def _parameters(estimator: Learner, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a file: with options that the rows settled, a plain seed, and what the estimator has ``changed``."""
    parameters = estimator.plain_params()
    if not isinstance(parameters["random_state"], (int, np.integer)):
        parameters["random_state"] = 0
    if estimator.features_ is not None and estimator.features_.settled:
        parameters["features_options"] = {**(parameters["features_options"] or {}), **estimator.features_.settled}
    if isinstance(parameters.get("class_weight"), Mapping):  # keys of a mapping in JSON are text
        parameters["class_weight"] = [[label, weight] for label, weight in parameters["class_weight"].items()]
    return {**parameters, **changed}


def _arrays_of_map(estimator: Learner, rows: Any) -> dict[str, NDArray[Any]]:
    """Return the rows that a feature map needs for predictions and what it learned; nothing without a map."""
    if estimator.features_ is None:
        return {}
    arrays = {f"{FITTED}{name}": array for name, array in estimator.features_.fitted().items()}
    if not is_sparse(rows):
        return arrays | {"rows": rows}
    rows = rows.tocsr()
    return arrays | {f"rows_{part}": getattr(rows, part) for part in ("data", "indices", "indptr")} | {"rows_shape": np.array(rows.shape)}


def _document(model: Model, parameters: Any, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return what model.json says."""
    estimator = model.estimator
    name = getattr(estimator, "name", None) or next(cls.__name__ for cls in type(estimator).__mro__ if cls.__name__ in ESTIMATORS)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "advcli": package_version(),
        "estimator": name,
        "parameters": plain(parameters),
        "attributes": {name: plain(value) for name, value in sorted(facts.items())},
        "codes": {"type": estimator.order_.dtype.str, "values": plain(estimator.order_)},
        "arrays": sorted(arrays),
        "n_features": int(estimator.n_features_in_),
        # of a fit to a frame, whose columns a prediction must have in this order
        **({"feature_names": plain(estimator.feature_names_in_)} if hasattr(estimator, "feature_names_in_") else {}),
        "classes": plain(model.classes),
        "labels": plain(model.labels),
        "label_form": {"separator": model.label_separator, "prefix": model.label_prefix},
        # without the time, so that the same fit gives the same file
        "certificate": None if model.certificate is None else dataclasses.asdict(model.certificate) | {"seconds": 0.0},
        "encoding": None if model.encoding is None else _encoding_document(model.encoding),
        "about": plain(model.about),
    }


def _encoding_document(encoding: Encoding) -> dict[str, Any]:
    """Return what model.json says of the columns of a table; an option with its default is left out."""

    def learned(column: Column) -> dict[str, Any]:
        return {key: plain(value) for key in LEARNED if (value := getattr(column, key)) != getattr(Column, key)}

    return {
        "columns": [{"name": column.name, "categories": plain(column.categories)} | learned(column) for column in encoding.columns],
        "others": list(encoding.others),
        "separator": encoding.separator,
        **encoding.notation.options,
        **{key: value for key in ENCODED if (value := getattr(encoding, key)) != getattr(Encoding, key)},
    }


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
    if len(before) == 1:
        standardiser = getattr(getattr(before[0][1], "func", None), "__self__", None)
        if isinstance(standardiser, Standardiser):
            return learner, standardiser, encoding, about
    if before and learner.kept_by_pickle:
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
    """Return the fitted estimator or pipeline of a model file. It predicts as when it was saved.

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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import AdversarialClassifier, models
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdversarialClassifier("cs").fit(X, y)
    >>> models.save(model, "iris.model")
    >>> bool((models.load("iris.model").predict(X) == model.predict(X)).all())
    True
    """
    return read(path, trust).as_estimator()


def read(path: str | Path, trust: bool = False) -> Model:
    """Read a model file with all that it says.

    Nothing in the file is executed, no other file is opened, and no more memory is asked for than its length calls for.

    Only with ``trust`` may a file be a pickle, which executes what it holds.

    Raises
    ------
    ModelError
        A file that is missing, damaged, of a newer format or not a model; a model made with a part that is not installed here, or with a
        wrong entry.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from advcli import AdversarialClassifier, models
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdversarialClassifier("cs").fit(X, y)
    >>> models.save(model, "iris.model")
    >>> models.read("iris.model").classes
    (0, 1, 2)
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
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a model of advcli, or damaged"
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
        # an overflow in a foreign file shows in the scores, not in warnings
        with np.errstate(all="ignore"):
            return rebuild(document, members)
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
        model = joblib.load(path)
    except Exception as error:
        raise ModelError(f"cannot read the model {path}: {type(error).__name__}: {_shortened(error)}; fit it again") from error
    if not isinstance(model, Model):
        raise ModelError(f"{path} holds a {type(model).__name__}, not a model of advcli")
    return model


def _shortened(error: Exception) -> str:
    """Return the text of an error as one line that a foreign file cannot make long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("model.json has a key twice")
    return document


def _members(path: Path) -> dict[str, bytes]:
    """Return the entries of an archive by name: as `save` writes them, one after the other, whole and each name once."""
    # a named pipe would wait for a writer; what a device holds has no end
    with open(os.open(path, UNDELAYED), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a directory" if stat.S_ISDIR(mode) else "it is a pipe or a device, not a file")
        with zipfile.ZipFile(file) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            # a small file could unpack to more than there is memory, by compression or by entries that share their bytes
            for entry, end in zip(entries, [*(later.header_offset for later in entries[1:]), archive.start_dir], strict=True):
                long = _LOCAL + len(entry.orig_filename.encode()) + entry.file_size
                stored = entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size
                if not stored or entry.header_offset + long > end:
                    raise zipfile.BadZipFile(entry.filename)
            if len({entry.filename for entry in entries}) < len(entries):
                raise zipfile.BadZipFile("two entries of one name")
            return {entry.filename: archive.read(entry) for entry in entries}
