"""What a model file holds of a learner, and how it is put back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..core.errors import ModelError
from ..core.stored_arrays import Entries
from ..core.typing import Options
from ..features import FeatureMap, feature_class

State = tuple[dict[str, Any], dict[str, Any], Any]
"""What a saved model holds: parameters that need no other file, fitted attributes by name, rows that the features keep."""


class Saved:
    """Methods by which a fit becomes a file that executes nothing when it is read (`advcli.models`)."""

    features: Any
    features_options: Any
    features_: FeatureMap | None
    n_features_in_: int
    classes_: Any

    @classmethod
    def needs_pickle(cls, loss: Options) -> bool:
        """Tell whether fits with these options of a configuration fit no model file."""
        return False

    @property
    def kept_by_pickle(self) -> bool:
        """Whether this fit fits no model file."""
        return False

    @abstractmethod
    def saved(self) -> State:
        """Return what a saved model holds."""

    @abstractmethod
    def restore(self, attributes: Entries) -> None:
        """Take over the fitted attributes of a saved model; `classes_`, `features_` and a certificate are there already.

        A learner takes its saved arrays by the shape and the range that they must have (`advcli.core.stored_arrays.Entries.array`), because
        a file may hold anything; entries that the learner does not take are refused.
        """

    @property
    def appends_constant(self) -> bool:
        """Whether a constant 1 is appended to the rows of feature maps that take one."""
        raise NotImplementedError

    @property
    def n_columns_(self) -> int:
        """Columns of the rows that the feature map is bound to: the features, and the constant where it is appended."""
        return self.n_features_in_ + bool(self.appends_constant and feature_class(self.features).takes_constant)

    @property
    def n_mapped_(self) -> int:
        """Columns of scores that the feature map gives: one for each class, unless the scores of classes are made of others."""
        return len(self.classes_)

    @property
    def map_options(self) -> dict[str, Any]:
        """Options of the feature map."""
        return dict(self.features_options or {})

    def _saved_parameters(self, more: Options) -> dict[str, Any]:
        """Return the parameters as a saved model holds them: with options that the rows settled, a plain seed, and ``more``."""
        parameters: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        if not isinstance(parameters["random_state"], (int, np.integer)):
            parameters["random_state"] = 0
        if self.features_ is not None and self.features_.settled:
            parameters["features_options"] = {**(parameters["features_options"] or {}), **self.features_.settled}
        if isinstance(parameters.get("class_weight"), Mapping):  # keys of a mapping in JSON are text
            parameters["class_weight"] = [[label, weight] for label, weight in parameters["class_weight"].items()]
        return {**parameters, **more}

    @classmethod
    def from_saved(cls, parameters: Options) -> Self:
        """Return an unfitted learner with the parameters that a saved model holds."""
        weights = parameters.get("class_weight")
        return cls(**{**parameters, "class_weight": dict(weights)} if isinstance(weights, list) else parameters)


def saved_remarks(attributes: Entries) -> tuple[str, ...]:
    """Return `remarks_` of a saved model."""
    remarks = attributes["remarks_"]
    if not isinstance(remarks, list) or not all(isinstance(remark, str) for remark in remarks):
        raise ModelError("'remarks_' are no list of text")
    return tuple(remarks)
