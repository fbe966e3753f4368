"""One method fitted to a whole data set: the recipe of a run, with every row as the training part."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import ConfigError
from ..core.notes import noted
from ..data.registry import complete_options
from ..data.tables.encoding import Column, Encoding
from ..evaluation.learning import missed_rows
from ..evaluation.recipe import ALL, Recipe
from ..evaluation.selection import pooled_score
from ..learners import Learner
from ..learners.surrogate import SurrogateClassifier
from ..results.provenance import versions
from .model import ABSTAIN, Model

if TYPE_CHECKING:
    from ..data.dataset import Dataset
    from ..evaluation import Cell
    from ..evaluation.recipe import Fitted


def fit(cell: Cell, data_dir: Path) -> Model:
    """Fit one method to a whole data set, with the protocol's search and standardisation.

    The hyper-parameters are chosen as for the training part of a first split, which here is every row; then all rows are standardised
    and fitted to ``solver.tol``. ``about["notes"]`` and ``about["edges"]`` of the model are meant for the user. A fit that stopped
    above its tolerance warns (`NotConvergedWarning`), and its certificate has the status.
    """
    from threadpoolctl import threadpool_limits

    if cell.noise:
        raise ConfigError(f"advcli fit learns from the labels of the data; leave out noise={cell.noise['name']}")
    recipe = Recipe(cell, data_dir)
    if recipe.protocol.rough_per_class is not None:
        remedy = "advcli fit learns from the labels of the data: set it to null"
        raise ConfigError(f"protocol.rough_per_class makes labels for an experiment; {remedy}")
    dataset, everything = recipe.dataset, recipe.part()
    with threadpool_limits(limits=1):
        selection = recipe.search(everything, ALL)
        fitted = recipe.fit(everything, selection.hyper, ALL)
        learner = fitted.learner
        truth = everything.costs if everything.costs is not None and learner.has_costs else fitted.codes
        worst = learner.worst_case(fitted.examples(everything.X), truth, fitted.weight)
    about = {
        "cell": cell.as_mapping(),
        "dataset": dataset.name,
        "dataset_sha256": dataset.sha256,
        "rows": dataset.X.shape[0],
        "hyper": dict(selection.hyper),
        "searched": pooled_score(selection),
        "metric": recipe.metric(learner),
        "guarantee": None if worst is None else str(worst),
        "notes": [*recipe.notes, *(noted("ADV117", remark) for remark in learner.remarks_), *missed_rows(recipe, fitted, everything)],
        "edges": list(selection.edges),
        "versions": versions(),
        "fitted": _now(),
    }
    return _model(cell, dataset, fitted, about)


def _model(cell: Cell, dataset: Dataset, fitted: Fitted, about: dict[str, Any]) -> Model:
    """Return a fit as a model, whose labels are written as in the file that it was fitted to."""
    options = complete_options(cell.dataset)
    target = str(options.get("target"))
    stubs = {child: parent for parent, child in dataset.hierarchy or () if child in dataset.stubs}
    return Model(
        estimator=fitted.learner,
        classes=dataset.classes,
        labels=tuple(stubs.get(label, label) for label in _labels(fitted.learner, dataset.classes)),
        standardiser=fitted.standardiser,
        encoding=fitted.encoding or dataset.encoding or Encoding(tuple(Column(name) for name in dataset.feature_names)),
        about=about,
        label_separator=None if target.endswith("*") else options.get("label_separator"),
        label_prefix=target[:-1] if target.endswith("*") else Model.label_prefix,
    )


def _now() -> str:
    """Return the time in UTC, or the variable SOURCE_DATE_EPOCH where it is set: a fit that is repeated then gives the same file."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = int(epoch) if epoch.isascii() and epoch.isdigit() else int(time.time())
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _labels(estimator: Learner, classes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the label of every prediction code: row names of a matrix with further predictions, else classes and what is beyond them."""
    if not isinstance(estimator, SurrogateClassifier):
        return classes
    first = len(classes) if estimator.predicts_classes_ else 0
    extra, named = len(estimator.predictions_) - first, estimator.loss_.row_names
    if extra and named is not None:
        return (*classes[:first], *named[first:])
    beyond = [ABSTAIN] if extra == 1 and first else [f"prediction {row + 1}" for row in range(first, first + extra)]
    if not first:
        return tuple(beyond)
    taken = set(map(str, classes))
    while taken & set(beyond):
        beyond = [f"_{label}" for label in beyond]
    return (*classes, *beyond)
