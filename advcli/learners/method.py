"""A method: the configuration groups that say how to learn, as one object; and learners by the name in the group ``loss``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from .. import losses
from ..core.checks import POSITIVE, refuse
from ..core.errors import ConfigError, IncompatibleError, UnknownNameError, nearest
from ..core.hyper import SCALES, STRENGTH, refuse_two_scales
from ..core.typing import Options
from ..features import FeatureMap, feature_class, make_features
from .base import Learner, register, registry
from .calibrated import Calibrated
from .options import candidates, own_options, reach
from .surrogate import AdversarialClassifier, SurrogateClassifier


def learner_class(name: str) -> type[Learner]:
    """Return the class of learners behind a name; `ConfigError` names the nearest if there is none.

    Examples
    --------
    >>> from advcli.learners import learner_class
    >>> learner_class("zero_one").__name__, learner_class("uma").__name__
    ('SurrogateClassifier', 'UMAClassifier')
    """
    if name in losses.registry:
        return SurrogateClassifier
    return registry.get(name, others=losses.registry)


def learner_names() -> list[str]:
    """Return every name that the group ``loss`` can have, sorted."""
    return sorted({*registry, *losses.registry})


def path_names(loss: Options) -> frozenset[str]:
    """Return which options of a method and of its base loss are paths of files; their classes declare them.

    An unknown method has none.
    """
    names = [str(loss[key]) for key in ("learner", "name", "base") if loss.get(key) is not None]
    declared = [losses.loss_class(name).paths if name in losses.registry else registry.get(name).paths for name in names if _is_known(name)]
    return frozenset(name for paths in declared for name in paths)


def _is_known(name: str) -> bool:
    return name in losses.registry or name in registry  # the surrogates first: their names import no other learner


@dataclass(frozen=True)
class Method:
    """A way to learn: how its learners are checked, searched and made.

    Parameters
    ----------
    loss, features, solver : mapping
        Options of the configuration groups of these names.
    hyper : mapping
        Hyper-parameters that are fixed; null fixes nothing.
    """

    loss: Options
    features: Options
    solver: Options
    hyper: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Any) -> Method:
        """Return the method of a cell or of checked settings, which have its groups as attributes."""
        return cls(groups.loss, groups.features, groups.solver, groups.hyper)

    @cached_property
    def learner(self) -> type[Learner]:
        """The class of its learners, by the key ``loss.learner``, else by ``loss.name``; calibrated where ``loss.calibrate`` is set.

        `IncompatibleError` where ``loss.calibrate`` is set and the learners have no scores to calibrate.
        """
        chosen = learner_class(str(self.loss.get("learner") or self.loss["name"]))
        if self.loss.get("calibrate") is None or issubclass(chosen, Calibrated):
            return chosen
        if chosen is SurrogateClassifier:
            return AdversarialClassifier
        advice = "leave it out: it has probabilities of its own" if chosen.has_probabilities(self.loss) else "choose loss=zero_one"
        wanted = "the potentials of a surrogate loss or a threshold model"
        raise IncompatibleError(f"calibrate={self.loss['calibrate']}", wanted, f"loss={self.loss['name']} is none: {advice}")

    @property
    def name(self) -> str:
        """Its name in tables: loss, features where they say something of it, and the solver unless it is ``auto``."""
        words = [str(self.loss["name"])]
        learner = str(self.loss.get("learner") or words[0])
        # an unknown one fails later, under its name
        if not _is_known(learner) or learner_class(learner).names_features(self.loss, self.features):
            words.append(str(self.features["name"]))
        if self.solver.get("name", "auto") != "auto":
            words.append(str(self.solver["name"]))
        return " ".join(words)

    @property
    def map_class(self) -> type[FeatureMap]:
        """Class of the feature map."""
        return feature_class(self.features["name"])

    @property
    def searched(self) -> tuple[str, ...]:
        """The hyper-parameters that selection searches, the regularisation in place of its views C and lambda.

        These are all of `Learner.hyper` but what an option of that name fixes, and the hyper-parameters of the feature map.
        """
        mapped = self.map_class.searched(own_options(self.features))
        own = (name for name in self.learner.hyper if (name in mapped if name == STRENGTH else self.loss.get(name) is None))
        return (*own, *(name for name in mapped if name != STRENGTH))

    @property
    def candidates(self) -> dict[str, tuple[Any, ...]]:
        """The values that a search tries of hyper-parameters which are the method's alone, and no protocol has a grid of.

        Each is named by the key of the configuration that fixes it. Values are any plain data; of equally good ones the first is taken.
        """
        return candidates(self.loss, self.learner.searched_in)

    @property
    def reach(self) -> dict[str, tuple[float, float]]:
        """How far candidates that are ordered numbers may go on past an end that wins: smallest and largest."""
        return reach(self.loss, self.learner.searched_in)

    @property
    def fixable(self) -> set[str]:
        """The hyper-parameters that a configuration may fix: all that a search chooses, the regularisation in both views."""
        names = self.searched
        return {*(name for name in names if name != STRENGTH), *(SCALES if STRENGTH in names else ())}

    @property
    def predicts_sets(self) -> bool:
        """Whether fits to one label a row predict sets of classes."""
        return self.learner.predicts_sets(self.loss)

    @property
    def has_probabilities(self) -> bool:
        """Whether its fits have probabilities."""
        return self.learner.has_probabilities(self.loss)

    def fixed(self) -> dict[str, float]:
        """Return the fixed hyper-parameters without nulls; refuse unknown ones, values of 0 or less, and both C and lambda."""
        values, valid = {key: value for key, value in self.hyper.items() if value is not None}, self.fixable
        for key, value in values.items():
            if key not in valid:
                has = f"it has {', '.join(sorted(valid))}" if valid else "it has none"
                has += f" but {', '.join(self.candidates)}" if self.candidates else ""
                raise ConfigError(f"hyper.{key} is no hyper-parameter of this method; {has}")
            refuse(f"hyper.{key}", value, POSITIVE)
        refuse_two_scales(values)
        return {key: float(value) for key, value in values.items()}

    @property
    def unusable(self) -> list[str]:
        """Fixed hyper-parameters that other methods of a sweep have and this one has not."""
        valid = self.fixable
        return [key for key, value in self.hyper.items() if value is not None and key not in valid]

    @property
    def uncalibrated(self) -> Method:
        """The method whose fits estimate no probabilities."""
        return replace(self, loss={key: value for key, value in self.loss.items() if key != "calibrate"})

    @property
    def calibratable(self) -> Method:
        """The method, without ``calibrate`` where its learners have no scores to calibrate: other methods of a sweep have."""
        try:
            _ = self.learner
        except IncompatibleError:
            return self.uncalibrated
        return self

    @property
    def in_sweep(self) -> Method:
        """The method without what it does not have and other methods of a sweep do."""
        method = self.calibratable
        left_out = method.unusable
        return replace(method, hyper={key: value for key, value in self.hyper.items() if value is not None and key not in left_out})

    @property
    def in_search(self) -> Method:
        """The method of the search's fits: with ``search_solver``, ``search_tol`` and ``search_passes`` of the group ``solver``."""
        solver, passes = dict(self.solver), self.solver.get("search_passes")
        if solver.get("search_solver") is not None:
            limits = {key: solver.get(key) for key in ("tol", "search_tol", "max_passes", "max_seconds")}
            solver = {"name": solver["search_solver"], **limits}
        if passes is not None:
            solver["max_passes"] = min(passes, solver.get("max_passes") or passes)
        return replace(self, solver={**solver, "tol": solver.get("search_tol") or solver["tol"]})

    def at(self, hyper: Mapping[str, Any]) -> Method:
        """Return the method at other fixed hyper-parameters."""
        return replace(self, hyper=hyper)

    def check(self, ordered: bool, n_classes: int | None) -> None:
        """Refuse a combination without meaning before any work, by one line that names combinations that have one."""
        learner, name = self.learner, str(self.features["name"])
        learner.check(self.loss, self.features, self.solver, n_classes)
        counts = "order" in learner.needs(self.loss)
        if (counts or feature_class(name).needs_order) and not ordered:
            what = f"loss={self.loss['name']}" if counts else f"features={name}"
            raise IncompatibleError(what, "labels with an order", learner.without_order)
        make_features(name, np.zeros((1, 1)), 2, **own_options(self.features))

    def filled(self, facts: Mapping[str, Any]) -> Method:
        """Return the method with what its learner needs to know of the data in place of null.

        ``facts`` are the labels of the ``classes``, the ``hierarchy`` over them and whether they are ``ordered``.
        """
        return replace(self, loss=self.learner.filled(self.loss, {name: fact for name, fact in facts.items() if fact is not None}))

    @property
    def sample(self) -> Learner:
        """An unfitted learner, to be asked what its fits take and keep; options that are searched have the first of their values."""
        return self.at({name: values[0] for name, values in self.candidates.items()}).make(None, 0, 1.0)

    def make(self, n_classes: int | None, seed: int, tol: float | None = None) -> Learner:
        """Return an unfitted learner at the fixed hyper-parameters, for labels that are codes in [0, n_classes).

        ``tol`` is the relative gap that its fits stop at; None: the ``tol`` of ``solver``.
        """
        valid = self.fixable | {*self.candidates}
        for name in sorted(set(self.hyper) - valid):
            raise UnknownNameError(f"hyper.{name} is no hyper-parameter of features={self.features['name']}: {nearest(name, valid)}")
        features, learner = own_options(self.features), cast(Any, self.learner)
        mapped = self.map_class.searched(features)
        options = learner.options_of(self.loss, self.solver, self.hyper)
        if STRENGTH in learner.hyper:
            lam = float(self.hyper["lambda"]) if "lambda" in self.hyper else None
            tol = float(self.solver["tol"]) if tol is None else tol
            options = {**options, "C": float(self.hyper.get("C", 1.0)), "lam": lam, "tol": tol}
        made: Learner = learner(
            **options,
            features=self.features["name"],
            features_options={**features, **{name: value for name, value in self.hyper.items() if name in mapped}} or None,
            n_classes=n_classes,
            random_state=seed,
        )
        return made


def register_method(name: str, family: type[Learner], hidden: Collection[str] = (), **fixed: Any) -> type[Learner]:
    """Register one method of a family, a dataclass, under the name that configurations give it; return the class.

    The method has the family's parameters without the ``fixed`` ones and the ``hidden`` ones, which keep their defaults.
    """
    parameters = {parameter.name: parameter for parameter in fields(cast(Any, family))}
    constants = {name: fixed.get(name, parameters[name].default) for name in parameters if name in {*hidden, *fixed}}
    made: Any = make_dataclass(
        f"{family.__name__}_{name}",
        [(parameter, Any, field(default=value, init=False)) for parameter, value in constants.items()],
        bases=(family,),
        namespace={"__doc__": f"`{family.__name__}` as loss={name}.", "__module__": family.__module__},
        kw_only=True,
        eq=False,
        repr=False,
    )
    arguments = [(f"{name}=" if parameters[name].kw_only else "") + f'"{fixed[name]}"' for name in parameters if name in fixed]
    made.in_python = f"{family.__name__}({', '.join(arguments)})" if arguments else ""
    setattr(sys.modules[family.__module__], made.__name__, made)  # where pickle looks for it
    return register(name)(made)
