"""Adversarial surrogate losses for multiclass prediction: train, select, compare and certify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .learners.hierarchical import HierarchicalClassifier
    from .learners.ordinal import OrdinalClassifier
    from .learners.reductions import CostSensitiveClassifier, OneVersusAllClassifier, OneVersusOneClassifier
    from .learners.surrogate import AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
    from .learners.ultraconservative import PerceptronClassifier, UMAClassifier

__version__ = "0.1.0"
__all__ = [
    "AdversarialClassifier",
    "CostSensitiveClassifier",
    "HierarchicalClassifier",
    "OneVersusAllClassifier",
    "OneVersusOneClassifier",
    "OrdinalAdversarialClassifier",
    "OrdinalClassifier",
    "PerceptronClassifier",
    "SurrogateClassifier",
    "UMAClassifier",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # the command line imports this package on every <TAB>: load the estimators only when they are asked for
    if name in __all__:
        from .learners import hierarchical, ordinal, reductions, surrogate, ultraconservative

        homes = (surrogate, ultraconservative, hierarchical, ordinal, reductions)
        home = next(module for module in homes if hasattr(module, name))
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
