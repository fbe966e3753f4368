"""Pipelines of scikit-learn in model files: the same predictions, scores and parameters, and nothing that is executed."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
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
from advcli.core.errors import ConfigError, DataError, ModelError
from advcli.models import fit, load, predict_file, read, save
from advcli.models.pipeline_steps import TRANSFORMERS, Steps, packed, unpacked

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
    assert [name for name, _ in model.steps] == ["first", "second", "ours"]
    assert repr(model[0].get_params()) == repr(pipeline[0].get_params())
    save(model, tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "piped.model").read_bytes()
    assert model.fit(X, y).score(X, y) == pipeline.score(X, y)


def test_weights_of_a_score_are_those_of_the_pipeline(drawn, tmp_path):
    X, y = drawn
    weights = np.random.default_rng(0).uniform(size=60)
    pipeline = make_pipeline(StandardScaler(), OneVersusAllClassifier(C=0.01)).fit(X, y)
    save(pipeline, tmp_path / "piped.model")
    model = load(tmp_path / "piped.model")
    assert model.score(X, y, sample_weight=weights) == pipeline.score(X, y, sample_weight=weights)
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


def fitted_by_the_command_line(words, folder):
    from pathlib import Path

    from advcli.config import check
    from advcli.config.composing import compose_cells
    from advcli.evaluation import Cell

    _, configs = compose_cells([words], {})
    settled = check(configs[0])
    save(fit(Cell.of(settled), Path(settled.data_dir)), folder / "own.model")
    return folder / "own.model"


def test_a_model_of_the_command_line_is_a_pipeline_of_labels(tmp_path):
    path = fitted_by_the_command_line("dataset=iris loss=zero_one hyper.C=1", tmp_path)
    model, record = load(path), read(path)
    X, y = load_iris(return_X_y=True)
    names = np.array(record.classes)[y]
    assert [name for name, _ in model.steps] == ["columns", "standardise", "surrogateclassifier"]
    assert model.classes_.tolist() == list(record.classes)
    assert np.array_equal(model.predict(X), record.predict(X))
    assert model.score(X, names) == pytest.approx((record.predict(X) == names).mean())
    assert model.predict_proba(X).shape == (150, 3)
    assert model[-1].certificate_ == record.certificate
    assert model.get_params()["surrogateclassifier__C"] == 1.0


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_pipeline_takes_the_columns_of_the_file(package, tmp_path):
    frame = pytest.importorskip(package).DataFrame
    random = np.random.default_rng(0)
    columns = {
        "size": random.normal(size=40).round(3).tolist(),
        "colour": random.choice(["red", "green", "blue"], 40).tolist(),
        "label": random.choice(["low", "high"], 40).tolist(),
    }
    pd.DataFrame(columns).to_csv(tmp_path / "mine.csv", index=False)
    words = f"dataset=csv dataset.path={tmp_path / 'mine.csv'} dataset.target=label dataset.categorical=auto dataset.missing=mean hyper.C=1"
    path = fitted_by_the_command_line(words, tmp_path)
    model = load(path)
    predict_file(read(path), tmp_path / "mine.csv", tmp_path / "out.csv")
    expected = pd.read_csv(tmp_path / "out.csv")["label"].tolist()
    mine = frame(columns)
    assert model.predict(mine).tolist() == expected
    assert model.predict(mine[["colour", "size"]]).tolist() == expected  # in any order, without the target
    save(model, tmp_path / "again.model")
    assert load(tmp_path / "again.model").predict(mine).tolist() == expected
    with pytest.raises(DataError, match=r"X has other columns than the model was fitted on; missing: size"):
        model.predict(mine[["colour"]])
    with pytest.raises(DataError, match=r"unexpected: more \(leave them out of X\)"):
        model.predict(frame({**columns, "more": [0.0] * 40}))
    assert "EncodedColumns(encoding=Encoding(size, colour))" in repr(model)
    assert clone(model).fit(mine, columns["label"]).predict(mine).tolist() == expected
    with pytest.raises(DataError, match="purple"):
        model.predict(frame({**columns, "colour": ["purple"] * 40}))


def test_a_model_of_ordered_labels_can_be_fitted_again(tmp_path):
    path = fitted_by_the_command_line("dataset=synthetic_ordinal loss=absolute hyper.C=1", tmp_path)
    model = load(path)
    X = np.random.default_rng(0).normal(size=(60, model[-1].n_features_in_))
    again = clone(model).fit(X, model.predict(X))
    assert again.classes_.tolist() == model.classes_.tolist() == list(read(path).classes)
