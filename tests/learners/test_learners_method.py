"""What stands between a configuration and a learner: facts of the data, hyper-parameters, tolerances."""

from __future__ import annotations

import numpy as np
import pytest

from advcli.core.errors import ConfigError
from advcli.learners import Method

LINEAR, AUTO = {"name": "linear"}, {"name": "auto"}
GRAPH = {"edges": [["all", "a"], ["all", "b"]], "classes": ["a", "b"]}
FACTS = {"classes": ["a", "b"], "hierarchy": GRAPH}


def test_facts_of_the_data_stand_where_the_configuration_says_nothing() -> None:
    """In a learner's options and in those of a loss behind an oracle; others do not get them."""
    for options in ({"file": "costs.csv"}, {"matrix": [[0, 1], [2, 0]]}):
        loss = {"name": "general", **options}
        expected = ["a", "b"] if "file" in options else None  # names of columns stand in files alone
        assert Method({**loss, "classes": None}, LINEAR, AUTO).filled(FACTS).loss["classes"] == expected
        assert Method({**loss, "classes": ["b", "a"]}, LINEAR, AUTO).filled(FACTS).loss["classes"] == ["b", "a"]
    assert Method({"name": "zero_one"}, LINEAR, AUTO).filled(FACTS).loss == {"name": "zero_one"}
    own = {"edges": [["all", "b"], ["all", "a"]], "classes": ["a", "b"]}
    for name, hierarchical in (("flat", False), ("hsvm", True), ("nhsvm", True)):
        assert Method({"name": name}, LINEAR, AUTO).filled(FACTS).loss.get("hierarchy") == (GRAPH if hierarchical else None)
        assert Method({"name": name, "hierarchy": own}, LINEAR, AUTO).filled(FACTS).loss["hierarchy"] == own


def test_a_learner_gets_the_hyper_parameters_tolerance_and_seed_of_its_fit() -> None:
    for name in ("zero_one", "flat", "hsvm", "backward"):
        loss = {"name": name, **({"hierarchy": GRAPH} if name == "hsvm" else {})}
        learner = Method(loss, LINEAR, AUTO, {"C": 0.25}).make(2, 7, 1e-7)
        assert (learner.C, learner.lam, learner.tol, learner.random_state, learner.n_classes) == (0.25, None, 1e-7, 7, 2)
        assert Method(loss, LINEAR, AUTO, {"lambda": 0.5}).make(2, 7, 1e-7).lam == 0.5
        with pytest.raises(ConfigError, match=r"hyper\.gamma is no hyper-parameter of features=linear"):
            Method(loss, LINEAR, AUTO, {"C": 1.0, "gamma": 2.0}).make(2, 0, 1e-3)
        for codes in ([0, 1, 2], [0, 1, -1], [0.0, 1.0, 1.5]):
            with pytest.raises(ValueError, match=r"n_classes=2 needs labels that are whole numbers 0\.\.1|Unknown label type"):
                learner.fit(np.eye(3), codes)
    kernel = Method({"name": "ww"}, {"name": "rbf"}, AUTO, {"C": 1.0, "gamma": 2.0}).make(2, 0, 1e-3)
    assert kernel.features_options == {"gamma": 2.0}
    assert np.isfinite(kernel.fit(np.eye(4), [0, 1, 0, 1]).certificate_.primal)
