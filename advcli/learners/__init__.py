"""Everything that learns: one file a family; every module here registers itself on import.

Learners stand in the group ``loss`` beside the surrogates, and the same recipe fits, scores and records them all.
"""

import importlib
import pkgutil

from .base import Learner, LinearLearner, RowLearner, register
from .factory import candidates, check_compatible, filled, learner_class, learner_names, learner_of, make_learner, searched

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Learner",
    "LinearLearner",
    "RowLearner",
    "candidates",
    "check_compatible",
    "filled",
    "learner_class",
    "learner_names",
    "learner_of",
    "make_learner",
    "register",
    "searched",
]
