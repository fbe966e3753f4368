"""Everything that learns: scikit-learn's methods in front of a problem and a solver.

One file a family, and every module registers itself on import. Learners stand in the group ``loss`` beside the surrogates, and the same
recipe fits, scores and records them all.
"""

import importlib
import pkgutil

from .base import Learner, register
from .factory import (
    as_in_sweeps,
    candidates,
    check_compatible,
    filled,
    learner_class,
    learner_names,
    learner_of,
    make_learner,
    path_names,
    reach,
    searched,
)
from .linear import LinearLearner, RowLearner

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

__all__ = [
    "Learner",
    "LinearLearner",
    "RowLearner",
    "as_in_sweeps",
    "candidates",
    "check_compatible",
    "filled",
    "learner_class",
    "learner_names",
    "learner_of",
    "make_learner",
    "path_names",
    "reach",
    "register",
    "searched",
]
