"""Names are matched or refused: columns of frames, at predict and after a model is saved and loaded, and of costs, confusions and sets."""

from __future__ import annotations

import json
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.registered import of_rows

import advcli
from advcli import (
    AdversarialClassifier,
    AdversarialCostClassifier,
    CostSensitiveClassifier,
    OneVersusAllClassifier,
    UMAClassifier,
)
from advcli.core.errors import ConfigError, ModelError
from advcli.learners import Learner, learner_class
from advcli.models import load, read, save
from advcli.models.files import _checksum

RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(RANDOM.normal(size=(90, 4)), columns=list("abcd"))
CODES = np.digitize(FRAME["a"] + 0.3 * FRAME["b"], [-0.5, 0.5])
NAMES = np.array(["lo", "mid", "top"])
KINDS = [kind for name in advcli.__all__ if isinstance(kind := getattr(advcli, name), type) and issubclass(kind, Learner) and of_rows(kind)]
TREE = [["r", "s"], ["s", "a"], ["s", "b"], ["r", "c"]]


def fitted(kind: Any, rows: Any = FRAME) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits of few passes
        extra = {"hierarchy": [["r", "0"], ["r", "1"], ["r", "2"]]} if kind.__name__ == "HierarchicalSetClassifier" else {}
        return kind(**extra).fit(rows, CODES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_columns_in_another_order_are_refused_before_and_after_saving(kind, tmp_path: Path) -> None:
    first = fitted(kind)
    save(first, tmp_path / "m.model")
    expected = np.asarray(first.predict_codes(FRAME))
    for model in (first, pickle.loads(pickle.dumps(first)), load(tmp_path / "m.model"), read(tmp_path / "m.model").estimator):
        assert list(model.feature_names_in_) == list("abcd")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.array_equal(np.asarray(model.predict_codes(FRAME)), expected)
        for other in (FRAME[list("dcba")], FRAME.rename(columns={"a": "e"})):
            for act in (model.predict, model.decision_function, model.potentials):
                with pytest.raises(ValueError, match="feature names should match"):
                    act(other)


def test_a_fit_to_an_array_has_no_names_after_loading(tmp_path: Path) -> None:
    save(fitted(AdversarialClassifier, FRAME.to_numpy()), tmp_path / "m.model")
    assert not hasattr(load(tmp_path / "m.model"), "feature_names_in_")


@pytest.mark.parametrize("step", [StandardScaler(), PCA(3)], ids=repr)
def test_a_loaded_pipeline_refuses_columns_in_another_order(step, tmp_path: Path) -> None:
    save(make_pipeline(step, AdversarialClassifier()).fit(FRAME, CODES), tmp_path / "m.model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # neither the right columns nor the reading of the file warn
        back = load(tmp_path / "m.model")
        back.predict(FRAME)
    for act in (back.predict, back[:-1].transform):
        with pytest.raises(ValueError, match="feature names should match"):
            act(FRAME[list("dcba")])


@pytest.mark.parametrize("names", [["a"], [1, 2, 3, 4], "abcd", None])
def test_names_in_a_file_that_are_none_are_refused(names, tmp_path: Path) -> None:
    save(fitted(AdversarialClassifier), tmp_path / "m.model")
    with zipfile.ZipFile(tmp_path / "m.model") as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name != "sha256"}
    members["model.json"] = json.dumps(json.loads(members["model.json"]) | {"feature_names": names}).encode()
    members["sha256"] = _checksum(members).encode()
    with zipfile.ZipFile(tmp_path / "n.model", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ModelError, match=r"feature_names in model\.json"):
        load(tmp_path / "n.model")


# ---- costs of rows, confusions, sets --------------------------------------------------------------------------------------
FROM_COSTS = [CostSensitiveClassifier(method="csosr"), CostSensitiveClassifier(method="csovo"), AdversarialCostClassifier()]


@pytest.mark.parametrize("learner", FROM_COSTS, ids=repr)
def test_columns_of_costs_are_found_by_name(learner) -> None:
    costs = 1.0 - np.eye(3)[CODES]
    for labels in (NAMES[CODES], CODES, CODES.astype(float)):
        plain = learner.fit(FRAME, labels, costs=costs).potentials(FRAME)
        named = pd.DataFrame(costs, columns=np.unique(labels))
        for frame in (named, named[named.columns[::-1]], named[named.columns[[1, 2, 0]]]):
            assert np.array_equal(learner.fit(FRAME, labels, costs=frame).potentials(FRAME), plain)
    unnamed = pd.DataFrame(costs)
    assert np.array_equal(learner.fit(FRAME, NAMES[CODES], costs=unnamed).potentials(FRAME), plain)
    assert np.array_equal(learner.fit(FRAME, costs=unnamed).potentials(FRAME), plain)


@pytest.mark.parametrize(
    ("labels", "columns", "said"),
    [
        (NAMES[CODES], ["lo", "mid", "tpo"], "costs have no column for class 'top': did you mean tpo"),
        (NAMES[CODES], ["lo", "mid", "top", "x"], "costs have a column 'x'"),
        (None, ["lo", "mid", "top"], "costs have no column for class '0'"),
    ],
)
@pytest.mark.parametrize("learner", FROM_COSTS, ids=repr)
def test_costs_with_other_names_are_refused(learner, labels, columns, said) -> None:
    costs = pd.DataFrame(np.resize(1.0 - np.eye(3)[CODES], (90, len(columns))), columns=columns)
    with pytest.raises(ConfigError, match=said):
        learner.fit(FRAME, labels, costs=costs)


@pytest.mark.parametrize("name", ["uma", "forward", "backward"])
def test_rows_and_columns_of_a_confusion_are_found_by_name(name) -> None:
    C = np.array([[0.9, 0, 0], [0.1, 1, 0.3], [0, 0, 0.7]])
    kind = learner_class(name)
    frame = pd.DataFrame(C, index=NAMES, columns=NAMES)
    plain = kind(confusion=C).fit(FRAME, NAMES[CODES]).potentials(FRAME)
    for matrix in (frame, frame.loc[NAMES[::-1], NAMES[[1, 2, 0]]], pd.DataFrame(C)):
        assert np.array_equal(kind(confusion=matrix).fit(FRAME, NAMES[CODES]).potentials(FRAME), plain)
    for wrong in (frame.rename(columns={"lo": "x"}), frame.rename(index={"lo": "x"}), frame.set_axis(["x", "y", "z"])):
        with pytest.raises(ConfigError, match=r"no column for class 'lo'|no row for class 'lo'|must name its rows by the classes"):
            kind(confusion=wrong).fit(FRAME, NAMES[CODES])


def test_a_confusion_frame_travels_with_the_model(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.eye(3), index=NAMES, columns=NAMES).loc[NAMES[::-1]]
    model = UMAClassifier(confusion=frame).fit(FRAME, NAMES[CODES])
    save(model, tmp_path / "m.model")
    assert np.array_equal(load(tmp_path / "m.model").predict(FRAME), model.predict(FRAME))


def test_columns_of_sets_are_the_leaves_in_their_order() -> None:
    Y = (RANDOM.random((90, 3)) < 0.5).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    for name in ("nhsvm", "hsvm"):
        kind = learner_class(name)
        plain = kind(hierarchy=TREE).fit(FRAME, Y)
        leaves = [plain.sets_.graph.names[leaf] for leaf in plain.sets_.leaves]
        assert np.array_equal(kind(hierarchy=TREE).fit(FRAME, pd.DataFrame(Y, columns=leaves)).coef_, plain.coef_)
        with pytest.raises(ConfigError, match="column 1 of y is"):
            kind(hierarchy=TREE).fit(FRAME, pd.DataFrame(Y, columns=leaves[::-1]))


def test_weights_of_a_loss_with_names_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"loss.weight has names.*class_weight="):
        AdversarialClassifier("weighted", loss_options={"weight": pd.Series({"top": 1.0, "mid": 2.0, "lo": 3.0})}).fit(FRAME, NAMES[CODES])


def test_a_weight_of_a_class_by_name_survives_saving(tmp_path: Path) -> None:
    model = OneVersusAllClassifier(class_weight={"top": 3.0}).fit(FRAME, NAMES[CODES])
    save(model, tmp_path / "m.model")
    assert load(tmp_path / "m.model").class_weight == {"top": 3.0}
