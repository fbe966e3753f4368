"""Pipelines of scikit-learn in model files: the same predictions, scores and parameters, and nothing that is executed."""

import json

import joblib
import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from advcli import AdversarialClassifier, OneVersusAllClassifier
from advcli.errors import ConfigError, ModelError
from advcli.models import fit, load, save
from advcli.steps import TRANSFORMERS, Steps, packed, unpacked

KEPT = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler((-1, 2)),
    MaxAbsScaler(),
    RobustScaler(),
    Normalizer("l1"),
    PCA(2, random_state=0),
    TruncatedSVD(2, random_state=0),
    PolynomialFeatures(2),
    QuantileTransformer(n_quantiles=20, random_state=0),
    VarianceThreshold(),
    SimpleImputer(),
    SimpleImputer(strategy="constant", fill_value=3.5),
]


@pytest.fixture(scope="module")
def drawn():
    random = np.random.default_rng(1)
    X = random.normal(3.0, 2.0, size=(60, 4))
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + X[:, 1], [4.0, 7.0])]


def test_every_transformer_is_tried():
    assert {type(step).__name__ for step in KEPT} == set(TRANSFORMERS)


@pytest.mark.parametrize("step", KEPT, ids=repr)
def test_a_pipeline_keeps_its_steps(step, drawn, tmp_path):
    X, y = drawn
    if isinstance(step, SimpleImputer):
        X = np.where(np.arange(60)[:, None] % 7 == np.arange(4), np.nan, X)
    pipeline = Pipeline([("first", step), ("second", StandardScaler()), ("ours", AdversarialClassifier(C=2.0))]).fit(X, y)
    save(pipeline, tmp_path / "piped.model")
    model = load(tmp_path / "piped.model")
    assert np.array_equal(model.predict(X), pipeline.predict(X))
    assert np.array_equal(model.predict_proba(X), pipeline.predict_proba(X))
    assert np.array_equal(model.decision_function(X), pipeline.decision_function(X))
    assert model.score(X, y) == pipeline.score(X, y)
    assert model.get_params()["ours__C"] == 2.0
    restored = model.as_estimator()
    assert [name for name, _ in restored.steps] == ["first", "second", "ours"]
    assert repr(restored[0].get_params()) == repr(pipeline[0].get_params())
    save(restored, tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "piped.model").read_bytes()
    assert restored.fit(X, y).score(X, y) == pipeline.score(X, y)


def test_weights_of_a_score_are_those_of_the_pipeline(drawn, tmp_path):
    X, y = drawn
    weights = np.random.default_rng(0).uniform(size=60)
    pipeline = make_pipeline(StandardScaler(), OneVersusAllClassifier(C=0.01)).fit(X, y)
    save(pipeline, tmp_path / "piped.model")
    model = load(tmp_path / "piped.model")
    assert model.score(X, y, weights) == pipeline.score(X, y, sample_weight=weights)
    assert not hasattr(pipeline, "predict_proba")
    with pytest.raises(AttributeError):
        model.predict_proba(X)


@pytest.mark.parametrize("step", [FunctionTransformer(np.log1p), SelectKBest(k=2), type("StandardScaler", (StandardScaler,), {})()])
def test_other_steps_are_refused_by_one_line(step, drawn, tmp_path):
    X, y = drawn
    pipeline = make_pipeline(step, AdversarialClassifier()).fit(abs(X), y)
    with pytest.raises(ConfigError, match=r"a model file does not hold the step .* it holds MaxAbsScaler") as error:
        save(pipeline, tmp_path / "piped.model")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "piped.model").exists()


def test_a_pipeline_must_end_in_an_estimator_of_ours(drawn, tmp_path):
    X, y = drawn
    with pytest.raises(ConfigError, match="pipeline that ends in one"):
        save(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), tmp_path / "piped.model")


def altered(steps, change):
    document = json.loads(packed(steps).tobytes())
    change(document[0])
    return np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)


@pytest.mark.parametrize(
    "change",
    [
        lambda step: step.update(type="FunctionTransformer"),
        lambda step: step["state"].update(transform=1),
        lambda step: step["state"].update(__class__=1),
        lambda step: step["state"].update(other=1),
        lambda step: step["parameters"].update(func="os.system"),
        lambda step: step["state"].update(mean_={"pickle": "x"}),
        lambda step: step["state"].update(mean_={"array": [1], "type": "V8", "value": [1]}),
    ],
)
def test_altered_steps_are_refused(change, drawn):
    steps = Steps((("first", StandardScaler().fit(drawn[0])),))
    assert isinstance(unpacked(packed(steps)), Steps)
    with pytest.raises((ModelError, TypeError, ValueError, LookupError)):
        unpacked(altered(steps, change))


def test_a_model_of_the_command_line_is_an_estimator_of_labels(tmp_path):
    from pathlib import Path

    from advcli.config import check
    from advcli.config.composing import compose_cells
    from advcli.evaluation.jobs import cell_of

    _, configs = compose_cells(["dataset=iris loss=zero_one hyper.C=1"], {})
    settled = check(configs[0])
    save(fit(cell_of(settled), Path(settled.data_dir)), tmp_path / "iris.model")
    model = load(tmp_path / "iris.model")
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    names = np.array(model.classes)[y]
    assert set(model.as_estimator().predict(X)) <= set(names)
    assert np.array_equal(model.as_estimator().predict(X), model.predict(X))
    assert model.score(X, names) == pytest.approx((model.predict(X) == names).mean())
    assert model.predict_proba(X).shape == (150, 3)
    assert joblib.hash(model.get_params()["standardise"].func.__self__.mean_) == joblib.hash(model.standardiser.mean_)
