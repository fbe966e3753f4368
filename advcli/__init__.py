"""Adversarial surrogate losses for multiclass prediction: train, select, compare and certify."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .learners.abstention import AbstainingClassifier
    from .learners.costs.adversarial import AdversarialCostClassifier
    from .learners.costs.metric import MetricClassifier
    from .learners.hierarchical import HierarchicalClassifier
    from .learners.ordinal import OrdinalClassifier
    from .learners.reductions.learners import CostSensitiveClassifier, OneVersusAllClassifier, OneVersusOneClassifier
    from .learners.structured import ChainClassifier, DependencyParser, HierarchicalSetClassifier, MultilabelClassifier
    from .learners.surrogate import ABSTAIN, AdversarialClassifier, OrdinalAdversarialClassifier, SurrogateClassifier
    from .learners.uma import PerceptronClassifier, UMAClassifier

_PUBLIC = {
    "ABSTAIN": "losses.matrices",
    "AbstainingClassifier": "learners.abstention",
    "AdversarialClassifier": "learners.surrogate",
    "AdversarialCostClassifier": "learners.costs.adversarial",
    "ChainClassifier": "learners.structured",
    "DependencyParser": "learners.structured",
    "CostSensitiveClassifier": "learners.reductions.learners",
    "HierarchicalClassifier": "learners.hierarchical",
    "HierarchicalSetClassifier": "learners.structured",
    "MetricClassifier": "learners.costs.metric",
    "MultilabelClassifier": "learners.structured",
    "OneVersusAllClassifier": "learners.reductions.learners",
    "OneVersusOneClassifier": "learners.reductions.learners",
    "OrdinalAdversarialClassifier": "learners.surrogate",
    "OrdinalClassifier": "learners.ordinal",
    "PerceptronClassifier": "learners.uma",
    "SurrogateClassifier": "learners.surrogate",
    "UMAClassifier": "learners.uma",
    "compare": "reports.compare",
    "conformal_costs": "statistics.conformal",
    "conformal_sets": "statistics.conformal",
    "dawid_skene": "data.labels.annotators",
    "decide": "learners.costs.decide",
    "guarantee": "statistics.risk_coverage",
    "moment_bounds": "statistics.moment_bounds",
}
"""Public names and the modules that define them: an import of this package, as on every <TAB>, loads none of them."""
_ROOMS = {"costs": "losses.matrices", "errors": "core.errors", "objectives": "learners.objectives", "plugins": "core.plugins"} | {
    name: name
    for name in ("data", "evaluation", "features", "learners", "losses", "metrics", "models", "reports", "results", "statistics", "testing")
}
"""Public modules and where they stand."""
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module(".results.provenance", __name__).package_version()
    if name in _PUBLIC:
        return getattr(import_module(f".{_PUBLIC[name]}", __name__), name)
    if name in _ROOMS:
        return import_module(f".{_ROOMS[name]}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
