"""Learners by the name in the group ``loss``: those of this room, and one for every surrogate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import losses
from ..core.errors import ConfigError, IncompatibleError, nearest
from ..core.typing import Options
from .base import Learner, registry
from .options import fixable
from .surrogate import SurrogateClassifier


def learner_class(name: str) -> type[Learner]:
    """Return the class of learners behind a name; `ConfigError` names the nearest if there is none."""
    if name in losses.registry:
        return SurrogateClassifier
    return registry.get(name, others=losses.registry)


def learner_of(loss: Options) -> type[Learner]:
    """Return the class of learners of a group ``loss``: that of its key ``learner``, else that of its name; calibrated, where it says so.

    Raises
    ------
    IncompatibleError
        ``loss.calibrate`` is set and its learners have no potentials.
    """
    found = learner_class(str(loss.get("learner") or loss["name"]))
    return found if loss.get("calibrate") is None else found.calibrated(loss)


def as_in_sweeps(loss: Options) -> Options:
    """Return a group ``loss``, without ``calibrate`` where its learners have no potentials: methods of a sweep do without."""
    try:
        learner_of(loss)
    except IncompatibleError:
        return {key: value for key, value in loss.items() if key != "calibrate"}
    return loss


def learner_names() -> list[str]:
    """Return every name that the group ``loss`` can have, sorted."""
    return sorted({*registry, *losses.registry})


def searched(loss: Options, features: Options) -> tuple[str, ...]:
    """Return the hyper-parameters that selection searches for a method, the regularisation in place of its views C and lambda."""
    return learner_of(loss).searched(loss, features)


def candidates(loss: Options) -> dict[str, tuple[Any, ...]]:
    """Return the values that a search tries of the hyper-parameters that are a method's alone (`Learner.candidates`)."""
    return learner_of(loss).candidates(loss)


def reach(loss: Options) -> dict[str, tuple[float, float]]:
    """Return how far those values may go on past an end that wins (`Learner.reach`)."""
    return learner_of(loss).reach(loss)


def check_compatible(loss: Options, features: Options, solver: Options, ordered: bool, n_classes: int | None) -> None:
    """Refuse a combination without meaning before any work, by one line that names combinations that have one."""
    learner_of(loss).check(loss, features, solver, ordered, n_classes)


def filled(loss: Options, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the group ``loss`` with what its learner needs to know of the data in the place of null.

    ``facts`` are the labels of the ``classes``, the ``hierarchy`` over them and whether they are ``ordered``.

    Raises
    ------
    IncompatibleError
        The learner needs a label graph, which neither the configuration nor the data have.
    """
    return learner_of(loss).filled(loss, {name: fact for name, fact in facts.items() if fact is not None})


def path_names(loss: Options) -> frozenset[str]:
    """Return the names of a method's options that are paths of files, its own and those of a base loss, as their classes declare them.

    A method that there is not has none.
    """
    names = [str(loss[key]) for key in ("learner", "name", "base") if loss.get(key) is not None]
    declared = [*(registry.get(name).paths for name in names if name in registry)]
    declared += [losses.loss_class(name).paths for name in names if name in losses.registry]
    return frozenset(name for paths in declared for name in paths)


def make_learner(
    loss: Options, features: Options, solver: Options, hyper: Mapping[str, float], n_classes: int, seed: int, tol: float
) -> Learner:
    """Return the unfitted learner of one method at given hyper-parameters, for labels that are codes in [0, n_classes)."""
    chosen = learner_of(loss)
    known = fixable(chosen.searched(loss, features)) | {*chosen.candidates(loss)}
    for name in sorted(set(hyper) - known):
        raise ConfigError(f"hyper.{name} is no hyper-parameter of features={features['name']}: {nearest(name, known)}")
    return chosen.build(loss, features, solver, hyper, n_classes, seed, tol)
