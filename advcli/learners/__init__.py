"""Everything that learns: scikit-learn's methods in front of a problem and a solver.

One file a family, whose learners register themselves; the first name asked for imports them all (`advcli.core.registry`). Learners stand
in the group ``loss`` beside the surrogates, and the same recipe fits, scores and records them all.
"""

from .base import Learner, register
from .linear import LinearLearner, RowLearner
from .method import Method, learner_class, learner_names, path_names

__all__ = ["Learner", "LinearLearner", "Method", "RowLearner", "learner_class", "learner_names", "path_names", "register"]
