"""Everything that learns: one file a family; every module here registers itself on import.

Learners stand in the group ``loss`` beside the surrogates, and the same recipe fits, scores and records them all.
"""

import importlib
import pkgutil
from typing import Any

from .base import Learner, LinearLearner, RowLearner, register
from .docstrings import completed
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

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

_learners: dict[str, Any] = {}
_left: list[Any] = [Learner]
while _left:
    _cls = _left.pop()
    _learners[_cls.__name__] = _cls
    _left += _cls.__subclasses__()
for _cls, _doc in [(_cls, completed(_cls, _learners)) for _cls in _learners.values()]:
    _cls.__doc__ = _doc

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
