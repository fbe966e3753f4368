"""Everything that learns: scikit-learn's methods in front of a problem and a solver.

One file a family, and every module registers itself on import. Learners stand in the group ``loss`` beside the surrogates, and the same
recipe fits, scores and records them all.
"""

import importlib
import pkgutil
from typing import Any

from .base import Learner, register
from .docstrings import completed
from .linear import LinearLearner, RowLearner
from .method import Method, learner_class, learner_names, path_names

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

_learners: dict[str, Any] = {}
_left: list[Any] = [Learner]
while _left:
    _cls = _left.pop()
    _learners[_cls.__name__] = _cls
    _left += _cls.__subclasses__()
for _cls, _doc in [(_cls, completed(_cls, _learners)) for _cls in _learners.values()]:
    _cls.__doc__ = _doc

__all__ = ["Learner", "LinearLearner", "Method", "RowLearner", "learner_class", "learner_names", "path_names", "register"]
