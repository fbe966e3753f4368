"""What stands between a configuration and a learner: facts of the data, hyper-parameters, tolerances."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from support.registered import in_package

from advcli.core.errors import ConfigError
from advcli.learners import Method
from advcli.learners.base import registry

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


def test_a_pickled_learner_finds_its_class_in_a_new_process() -> None:
    """Its module alone is imported there: a method of a family must be made beside the family."""
    classes = sorted(
        {registry.get(name) for name in registry if in_package(registry.get(name))}, key=lambda kind: (kind.__module__, kind.__name__)
    )
    code = "import pickle, sys; [pickle.loads(line) for line in map(bytes.fromhex, sys.stdin)]"
    lines = "\n".join(pickle.dumps(kind).hex() for kind in reversed(classes))
    subprocess.run([sys.executable, "-c", code], input=lines, text=True, check=True)


def test_a_surrogate_needs_no_other_learner() -> None:
    code = "import sys; from advcli.learners import Method; Method({'name': 'zero_one'}, {'name': 'rbf'}, {}).name; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "advcli.learners.surrogate" in done.stdout.split()
    assert "advcli.learners.uma" not in done.stdout.split()
