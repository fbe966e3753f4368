"""Learners of structured labels: surrogates S = max over labels of psi(margin, loss), trained through searches, with certificates.

P(w) = lambda/2 |w|^2 + mean S_i with lambda = 1/(n C), n examples (choi2018, chapters 3-5); `planes` says how it is minimised and bounded.
"""

from ...solvers.cutting_planes import Cuts, Planes, Structure, learn_planes
from .chain import ChainClassifier
from .label_sets import MultilabelClassifier
from .leaf_sets import HierarchicalSetClassifier
from .learner import StructuredLearner

__all__ = [
    "ChainClassifier",
    "Cuts",
    "HierarchicalSetClassifier",
    "MultilabelClassifier",
    "Planes",
    "Structure",
    "StructuredLearner",
    "learn_planes",
]
