"""Learners of structured labels: surrogates S = max over labels of psi(margin, loss), trained through searches, with certificates.

P(w) = lambda/2 |w|^2 + mean S_i with lambda = 1/(n C), n examples (Choi 2018, chapters 3-5); `advcli.solvers.cutting_planes` says how it is
minimised and bounded. psi is the thesis' letter for a surrogate of the margin h and the task loss g of one label (`spaces.psi`).
"""

from .chain_classifier import ChainClassifier
from .dependency_parser import DependencyParser
from .label_sets import MultilabelClassifier
from .leaf_sets import HierarchicalSetClassifier
from .learner import StructuredLearner

__all__ = ["ChainClassifier", "DependencyParser", "HierarchicalSetClassifier", "MultilabelClassifier", "StructuredLearner"]
