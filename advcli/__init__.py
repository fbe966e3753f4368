"""Adversarial surrogate losses for multiclass prediction: train, select, compare and certify."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .learners.abstention import AbstainingClassifier
    from .learners.adversarial_costs import AdversarialCostClassifier
    from .learners.hierarchical import HierarchicalClassifier
    from .learners.ordinal import OrdinalClassifier
    from .learners.reductions import CostSensitiveClassifier, OneVersusAllClassifier, OneVersusOneClassifier
    from .learners.structured import ChainClassifier, MultilabelClassifier
    from .learners.surrogate import AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
    from .learners.ultraconservative import PerceptronClassifier, UMAClassifier

__version__ = "0.1.0"
__all__ = [
    "AbstainingClassifier",
    "AdversarialClassifier",
    "AdversarialCostClassifier",
    "ChainClassifier",
    "CostSensitiveClassifier",
    "HierarchicalClassifier",
    "MultilabelClassifier",
    "OneVersusAllClassifier",
    "OneVersusOneClassifier",
    "OrdinalAdversarialClassifier",
    "OrdinalClassifier",
    "PerceptronClassifier",
    "SurrogateClassifier",
    "UMAClassifier",
    "__version__",
]
_HOMES = ("surrogate", "ultraconservative", "hierarchical", "ordinal", "reductions", "abstention", "adversarial_costs", "structured")


def __getattr__(name: str) -> Any:
    # the command line imports this package on every <TAB>: load the estimators only when they are asked for
    if name in __all__:
        return next(getattr(home, name) for home in map(_home, _HOMES) if hasattr(home, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _home(name: str) -> Any:
    return import_module(f".learners.{name}", __name__)
