"""Every learner of the registry passes `advcli.testing.check_learner`, scikit-learn's checks among its own; the hierarchical ones through
the public classifier, which merges equal rows, because a label graph of the checks' classes is not theirs.
"""

import pytest
from support.registered import in_package, of_rows

from advcli import AbstainingClassifier, CostSensitiveClassifier
from advcli.learners.base import registry
from advcli.learners.hierarchical import MODELS, HierarchicalClassifier
from advcli.learners.hierarchical.label_graph import OverLabelGraph
from advcli.learners.linear import LinearLearner
from advcli.testing import check_learner

TREE = {"edges": [["r", "s"], ["s", "ant"], ["s", "bee"], ["r", "cat"]], "classes": ["ant", "bee", "cat"]}
UMA = registry.get("uma")
VARIANTS = [UMA(rule="confusion", step="uniform"), UMA(unit_step=True), CostSensitiveClassifier()]
VARIANTS += [CostSensitiveClassifier(method="csovo", pairs="all", features="rbf")]


def without_level(learner):
    """Name the check that a learner without a constant cannot pass: a class of little weight goes away by a constant alone."""
    return {"check_class_weight_classifiers"} if isinstance(learner, LinearLearner) and not learner.appends_constant else set()


@pytest.mark.parametrize("name", [name for name in registry if in_package(kind := registry.get(name)) and of_rows(kind)])
def test_every_learner_passes(name):
    chosen = registry.get(name)
    graph = {"hierarchy": TREE} if "hierarchy" in chosen.needs({"name": name}) else {}
    # abstaining is no argmax of decision_function
    skip = {"check_classifiers_train"} if issubclass(chosen, AbstainingClassifier) else without_level(chosen(**graph))
    limit = {"max_passes": 100} if name == "sets" else {}  # rows without a pattern take all passes, and show no more
    check_learner(chosen(**graph, **limit), skip, scikit_learn=not issubclass(chosen, OverLabelGraph))


ABSTAINING = [AbstainingClassifier("cs", alpha=0.3), AbstainingClassifier("adversarial"), AbstainingClassifier("ova", features="rbf")]


@pytest.mark.parametrize("learner", ABSTAINING, ids=repr)
def test_learners_that_abstain_pass(learner):
    check_learner(learner, skip={"check_classifiers_train"})  # abstaining is no argmax of decision_function


@pytest.mark.parametrize("learner", [*VARIANTS, *(HierarchicalClassifier(model=model) for model in MODELS)], ids=repr)
def test_variants_pass(learner):
    check_learner(learner, without_level(learner))
