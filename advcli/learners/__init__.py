"""Everything that learns: scikit-learn's methods in front of a problem and a solver.

One file a family, and every module registers itself on import. Learners stand in the group ``loss`` beside the surrogates, and the same
recipe fits, scores and records them all.
"""

import importlib
import pkgutil

from .base import Learner, register
from .linear import LinearLearner, RowLearner
from .method import Method, learner_class, learner_names, path_names

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

__all__ = ["Learner", "LinearLearner", "Method", "RowLearner", "learner_class", "learner_names", "path_names", "register"]
