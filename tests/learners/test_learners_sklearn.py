"""scikit-learn's checks of every learner in the registry; of the hierarchical ones through the public classifier,
which merges equal rows.
"""

import warnings

from registered import in_package
from sklearn.utils.estimator_checks import parametrize_with_checks

from advcli import AbstainingClassifier
from advcli.learners import learner_class
from advcli.learners.base import registry
from advcli.learners.hierarchical import MODELS, HierarchicalClassifier
from advcli.learners.hierarchical.base import HierarchicalLearner

# the perceptrons of a clean sample and of the true labels differ from f_y in the rows that evaluation gives them
OTHER_ROWS = {"f_conf", "f_full"}
CLASSES = sorted({learner_class(name) for name in registry}, key=lambda cls: cls.name)
LEARNERS = [cls() for cls in CLASSES if in_package(cls) and not issubclass(cls, HierarchicalLearner) and cls.name not in OTHER_ROWS]
UMA = learner_class("uma")
VARIANTS = [UMA(rule="confusion", step="uniform"), UMA(unit_step=True)]


ABSTAINING = [AbstainingClassifier("cs", alpha=0.3), AbstainingClassifier("adversarial"), AbstainingClassifier("ova", features="rbf")]


def expected_failures(estimator):
    """Abstaining is a prediction that no column of decision_function stands for."""
    if not isinstance(estimator, AbstainingClassifier):
        return {}
    return {"check_classifiers_train": "predict may abstain, which is no argmax of decision_function"}


@parametrize_with_checks(
    [*LEARNERS, *VARIANTS, *ABSTAINING, *(HierarchicalClassifier(model=model) for model in MODELS)],
    expected_failed_checks=expected_failures,
)
def test_sklearn_check(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)
