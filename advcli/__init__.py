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
    from .learners.structured import ChainClassifier, HierarchicalSetClassifier, MultilabelClassifier
    from .learners.surrogate import ABSTAIN, AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
    from .learners.ultraconservative import PerceptronClassifier, UMAClassifier

__version__ = "0.1.0"
__all__ = [
    "ABSTAIN",
    "AbstainingClassifier",
    "AdversarialClassifier",
    "AdversarialCostClassifier",
    "ChainClassifier",
    "CostSensitiveClassifier",
    "HierarchicalClassifier",
    "HierarchicalSetClassifier",
    "MultilabelClassifier",
    "OneVersusAllClassifier",
    "OneVersusOneClassifier",
    "OrdinalAdversarialClassifier",
    "OrdinalClassifier",
    "PerceptronClassifier",
    "SurrogateClassifier",
    "UMAClassifier",
    "__version__",
    "compare",
]
_MODULES: tuple[str, ...] = (
    "costs",
    "data",
    "errors",
    "evaluation",
    "features",
    "learners",
    "losses",
    "metrics",
    "models",
    "plugins",
    "reports",
    "statistics",
)
_MODULES += ("testing",)
_HOMES = ("surrogate", "ultraconservative", "hierarchical", "ordinal", "reductions", "abstention", "adversarial_costs", "structured")


def __getattr__(name: str) -> Any:
    # the command line imports this package on every <TAB>: load the estimators only when they are asked for
    if name == "compare":
        return import_module(".comparing", __name__).compare
    if name in __all__:
        return next(getattr(home, name) for home in map(_home, _HOMES) if hasattr(home, name))
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})


def _home(name: str) -> Any:
    return import_module(f".learners.{name}", __name__)
