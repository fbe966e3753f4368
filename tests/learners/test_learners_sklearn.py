"""scikit-learn's checks of every learner in the registry; of the hierarchical ones through the public classifier,
which merges equal rows.
"""

import warnings

from registered import in_package
from sklearn.utils.estimator_checks import parametrize_with_checks

from advcli import CostSensitiveClassifier
from advcli.learners import learner_class
from advcli.learners.base import registry
from advcli.learners.hierarchical import MODELS, HierarchicalClassifier
from advcli.learners.hierarchical.base import HierarchicalLearner

# the perceptrons of a clean sample and of the true labels differ from f_y in the rows that evaluation gives them
OTHER_ROWS = {"f_conf", "f_full"}
CLASSES = sorted({learner_class(name) for name in registry}, key=lambda cls: cls.name)
LEARNERS = [cls() for cls in CLASSES if in_package(cls) and not issubclass(cls, HierarchicalLearner) and cls.name not in OTHER_ROWS]
UMA = learner_class("uma")
VARIANTS = [UMA(rule="confusion", step="uniform"), UMA(unit_step=True), CostSensitiveClassifier()]
VARIANTS += [CostSensitiveClassifier(method="csovo", pairs="all", features="rbf")]


@parametrize_with_checks([*LEARNERS, *VARIANTS, *(HierarchicalClassifier(model=model) for model in MODELS)])
def test_sklearn_check(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
