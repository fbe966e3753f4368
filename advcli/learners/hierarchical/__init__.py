"""Hierarchical support vector machines for one label per example: flat, HSVM, NHSVM and shared SVM (Choi 2018, chapter 6).

The label graph has M nodes; a label l is a leaf with all its ancestors, scored by the sum of its nodes' scores,
f_l = sum over n in l of a_n W_n.x. All four minimise

    Lambda/2 |W|^2 + mean of max_l [ (f_l - f_y) / c_ly + margin_ly ],   Lambda = 1/(n C),                                           (1)

which is the source's lambda |W|^2 + sum of hinges at lambda = 1/(2 C), divided by n. They differ in attributes a, margins and divisors c:

    flat    a = 1 on the leaf alone                         margin 1                                             c = 1
    hsvm    a = 1                                           |y ^ l| ** margin_power           (6.2)              c = 1
    nhsvm   a = sqrt(alpha), alpha from the hierarchy       sqrt(sum of alpha over y ^ l)     (6.10)             c = 1, or
            (`advcli.data.labels.node_weights`)                    1                                 (6.13)             sqrt(that sum)
    ssvm    a = sqrt(alpha), alpha minimises (1), too       1, or nhsvm's                     (6.17)             c = 1

The true label's term is 0. Every fit has a duality gap (`_ext/structured/hierarchical.pyx`); the gap of the shared SVM bounds its joint
problem.
"""

from .attributes import Attributes, FactoredWeights
from .classifier import MODELS, FlatSVM, HierarchicalClassifier, HierarchicalSVM, NormalisedHierarchicalSVM, SharedSVM

__all__ = [
    "MODELS",
    "Attributes",
    "FactoredWeights",
    "FlatSVM",
    "HierarchicalClassifier",
    "HierarchicalSVM",
    "NormalisedHierarchicalSVM",
    "SharedSVM",
]
