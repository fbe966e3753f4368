"""From the entries of a model file to the model: every value is checked before it is used, because a file may hold anything."""

from __future__ import annotations

import dataclasses
import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import LARGEST, is_real
from ..core.errors import ConfigError, ModelError
from ..core.stored_arrays import MOST_COLUMNS, Entries
from ..data.tables.cells import Notation
from ..data.tables.encoding import Column, Encoding
from ..data.tables.opening import check_encoding
from ..data.tables.options import MISSING_WAYS
from ..evaluation.standardise import Standardiser
from ..learners import Learner
from ..learners.abstention import AbstainingClassifier
from ..learners.base import registry
from ..learners.hierarchical import HierarchicalClassifier
from ..learners.ordinal import OrdinalClassifier
from ..learners.reductions.learners import CostSensitiveClassifier
from ..learners.surrogate import AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
from ..problems.certificate import Certificate
from ..results.tables import plain
from .model import Model, zeros
from .pipeline_steps import STEPS
from .pipeline_steps import unpacked as unpacked_steps

ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in (SurrogateClassifier, AdversarialClassifier, OrdinalAdversarialClassifier)}
# learners that no configuration names
ESTIMATORS |= {cls.name: cls for cls in (AbstainingClassifier, CostSensitiveClassifier, HierarchicalClassifier, OrdinalClassifier)}

# classes of a type that is wider than they are: bytes that are always allowed, and for every character of theirs in model.json
_ROOM, _ROOM_EACH = 2**26, 64
LABELS = "biufUOM"  # kinds of classes
FITTED = "features_"  # arrays that the feature map computed
# arrays that are not attributes of the estimator
ROWS = ("rows", "rows_data", "rows_indices", "rows_indptr", "rows_shape")
_ALWAYS = ("loss", "loss_options", "features", "features_options", "fit_intercept", "n_classes")  # parameters of every file that has them
_STANDARDISER = ("mean", "scale", "set_to_one")
# what a column and an encoding may have beside the rest, where it is not the default, and its types
LEARNED: dict[str, Any] = {
    "attributes": (list,),
    "hashed": (bool,),
    "own": (list,),
    "other": (bool,),
    "fill": (int, float),
    "indicator": (bool,),
}
ENCODED: dict[str, Any] = {"sequence": (str,), "missing": (str,), "max_categories": (int, type(None)), "charset": (str,)}
_RESERVED = (*ROWS, *_STANDARDISER, STEPS)


def rebuild(document: Mapping[str, Any], members: Mapping[str, bytes]) -> Model:
    """Return the model of a file's model.json and its entries; `ModelError`, or what a part raises, for a file without a model."""
    arrays = {name.removeprefix("arrays/").removesuffix(".npy"): text for name, text in members.items() if name.startswith("arrays/")}
    listed = document["arrays"]
    for name in sorted({"model.json", "sha256", *(f"arrays/{name}.npy" for name in listed)} ^ members.keys()):
        raise ModelError(f"{name} {'is not listed in model.json' if name in members else 'is missing'}")

    def taken(names: Callable[[str], bool], plain: Mapping[str, Any] | None = None) -> Entries:
        return Entries({name: arrays[name] for name in listed if names(name)}, plain)

    estimator = _restored_estimator(
        document,
        taken(lambda name: name in ROWS),
        Entries({name.removeprefix(FITTED): arrays[name] for name in listed if name.startswith(FITTED)}, prefix=FITTED),
        taken(lambda name: name not in _RESERVED and not name.startswith(FITTED), document["attributes"]),
    )
    d = estimator.n_features_in_
    form = document["label_form"]
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
    # an overflow, or data that a user's learner cannot take, is found here and not in the middle of a table
    model.table(zeros(model))
    if STEPS in listed:
        steps = unpacked_steps(taken(lambda name: name == STEPS).array(STEPS, (None,), "i", least=0, most=255).astype(np.uint8))
        first = getattr(steps.named[0][1], "n_features_in_", None)
        if not isinstance(first, int) or not 1 <= first <= MOST_COLUMNS:
            raise ModelError("its steps do not say how many columns they take")
        model = dataclasses.replace(model, standardiser=steps)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            model.table(np.zeros((1, first)))
    if "feature_names" in document:
        names = _field(document, "feature_names", list)
        if len(names) != d or not all(isinstance(name, str) for name in names):
            raise ModelError(f"feature_names in model.json are not {d} names")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return model


def _restored_estimator(document: Mapping[str, Any], rows: Entries, fitted: Entries, attributes: Entries) -> Learner:
    name, parameters = _field(document, "estimator", str), _field(document, "parameters", dict)
    kind = ESTIMATORS[name] if name in ESTIMATORS else registry.get(name)
    _check_parameters(kind, parameters)
    weights = parameters.get("class_weight")
    estimator = kind(**{**parameters, "class_weight": dict(weights)} if isinstance(weights, list) else parameters)
    estimator.check_parameters()
    for parameter in _ALWAYS:
        if parameter in estimator.get_params(deep=False) and parameter not in parameters:
            raise ModelError(f"its parameter {parameter} is missing")
    codes = _field(document, "codes", dict)
    estimator.name_classes(_restored_classes(_field(codes, "values", list), _field(codes, "type", str)))
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
    support: Any = None
    if "rows_data" in rows:
        support = rows.csr("rows_{}", None, estimator.n_columns_)
    elif "rows" in rows:
        support = rows.array("rows", (None, estimator.n_columns_))
    rows.check_taken()
    mapped = estimator.map_class
    if mapped.keeps_rows != (support is not None):
        raise ModelError(f"features={mapped.name} {'need the rows that they keep' if mapped.keeps_rows else 'keep no rows'}")
    estimator.features_ = None if support is None else mapped.restored(support, estimator.n_mapped_, fitted, **estimator.map_options)
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


def _check_parameters(learner: type[Learner], parameters: Mapping[str, Any]) -> None:
    """Refuse parameters of another type than the estimator's ``__init__`` says; where it says nothing anything goes."""
    right = {
        "None": lambda value: value is None,
        "bool": lambda value: value in (0, 1),
        "int": is_real,
        "float": is_real,
        "str": lambda value: isinstance(value, str),
        "Mapping[str, Any]": lambda value: isinstance(value, dict),
    }
    for name, parameter in inspect.signature(learner).parameters.items():
        kinds = str(parameter.annotation).split(" | ")
        if name in parameters and set(kinds) <= right.keys() and not any(right[kind](parameters[name]) for kind in kinds):
            raise ModelError(f"its parameter {name} is {json.dumps(parameters[name])[:40]}, not of the type {parameter.annotation}")


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, bool)) or is_real(value)


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
    if dtype.kind not in LABELS or dtype.itemsize * len(values) > _ROOM + _ROOM_EACH * len(str(values)):
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
    columns = [_restored_column(stored) for stored in _field(document, "columns", list)]
    others, separator = _field(document, "others", list), _field(document, "separator", str)
    if not all(isinstance(name, str) for name in others) or len({column.name for column in columns}) < len(columns):
        raise ModelError("encoding in model.json does not name different columns")
    if len(separator) != 1 or separator in '"\r\n\0':
        raise ModelError("encoding in model.json separates fields by more or less than one character, or by one that cannot")
    options = {name: _field(document, name, *kinds) for name, kinds in ENCODED.items() if name in document}
    if options.get("missing", Encoding.missing) not in MISSING_WAYS:
        raise ModelError(f"encoding in model.json fills cells by {options['missing'][:40]!r}")
    try:
        notation = Notation.of(document)
    except ConfigError as error:
        raise ModelError(f"encoding in model.json has another notation of numbers: {error}") from None
    try:
        check_encoding(options.get("charset"))
    except ConfigError:
        raise ModelError("encoding in model.json reads files by an encoding that there is not") from None
    encoding = Encoding(tuple(columns), tuple(others), separator=separator, notation=notation, **options)
    if len(encoding.feature_names) != d:
        raise ModelError(f"encoding in model.json makes {len(encoding.feature_names)} features, and n_features is {d}")
    return encoding


def _restored_column(stored: Mapping[str, Any]) -> Column:
    """Return a column and what the fit learned of it; every entry is checked."""
    name, categories = _field(stored, "name", str), _field(stored, "categories", list, type(None))
    learned = {key: _field(stored, key, *kinds) for key, kinds in LEARNED.items() if key in stored}
    if categories is not None and not (categories and all(map(_is_label, categories)) and len(set(categories)) == len(categories)):
        raise ModelError("encoding in model.json has categories that are not different values")
    attributes, hot, fill = (learned.get(key) for key in ("attributes", "own", "fill"))
    if attributes is not None and not (all(isinstance(word, str) for word in attributes) and len(set(attributes)) == len(attributes)):
        raise ModelError("encoding in model.json has attributes that are not different names")
    places = range(len(categories or ()) + 1)
    if hot is not None and (categories is None or not all(type(code) is int and code in places for code in hot) or sorted(set(hot)) != hot):
        raise ModelError(f"encoding in model.json has features of {name!r:.60} that are not categories")
    if (learned.get("other") and categories is None) or (learned.get("indicator") and (categories is not None or fill is None)):
        raise ModelError(f"encoding in model.json has features of {name!r:.60} that it cannot have")
    if fill is not None and not (is_real(fill) and abs(fill) <= LARGEST and (categories is None or fill in (-1, *places))):
        raise ModelError(f"encoding in model.json fills cells of {name!r:.60} by {json.dumps(fill)[:40]}")
    if (attributes is not None or learned.get("hashed")) and (categories is not None or hot is not None or fill is not None):
        raise ModelError(f"encoding in model.json has attributes and more for {name!r:.60}")
    learned = {key: tuple(value) if isinstance(value, list) else value for key, value in learned.items()}
    exact = {} if fill is None else {"fill": float(fill)}
    return Column(name, None if categories is None else tuple(categories), **learned | exact)
