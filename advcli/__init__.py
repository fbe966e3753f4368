"""Adversarial surrogate losses for multiclass prediction: train, select, compare and certify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .learners.abstention import AbstainingClassifier
    from .learners.hierarchical import HierarchicalClassifier
    from .learners.surrogate import AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
    from .learners.ultraconservative import PerceptronClassifier, UMAClassifier

__version__ = "0.1.0"
__all__ = [
    "AbstainingClassifier",
    "AdversarialClassifier",
    "HierarchicalClassifier",
    "OrdinalAdversarialClassifier",
    "PerceptronClassifier",
    "SurrogateClassifier",
    "UMAClassifier",
    "__version__",
]


def __getattr__(name: str) -> Any:
    # the command line imports this package on every <TAB>: load the estimators only when they are asked for
    if name in __all__:
        from .learners import abstention, hierarchical, surrogate, ultraconservative

        home = next(module for module in (surrogate, ultraconservative, hierarchical, abstention) if hasattr(module, name))
        return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
