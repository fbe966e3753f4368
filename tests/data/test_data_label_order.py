"""Labels as people give them: their order, costs that are named by them, weights of classes; the same fit as of codes in that order."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from advcli import (
    AdversarialClassifier,
    AdversarialCostClassifier,
    CostSensitiveClassifier,
    OneVersusAllClassifier,
    OrdinalAdversarialClassifier,
    OrdinalClassifier,
)
from advcli.core.errors import ConfigError
from advcli.models import read, save

NAMES = np.array(["low", "medium", "high", "extreme"])
STEPS = [
    OrdinalAdversarialClassifier(),
    OrdinalAdversarialClassifier("pinball", loss_options={"quantile": 0.3}, features="threshold"),
    AdversarialClassifier("squared"),
    AdversarialClassifier(features="threshold"),
    AdversarialCostClassifier(cost="absolute"),
    OrdinalClassifier(),
    OrdinalClassifier(method="svorex", ordered=False),
    CostSensitiveClassifier(cost="squared"),
    CostSensitiveClassifier(method="red_mc"),
]


@pytest.fixture(scope="module")
def drawn():
    random = np.random.default_rng(5)
    X = random.normal(size=(90, 2))
    return X, np.digitize(X[:, 0] + 0.4 * random.normal(size=90), [-0.7, 0.0, 0.7])


def orders():
    """Return the names of codes 0..3, in an order that is not the alphabetical one, as every kind of column that has an order."""
    yield "order", lambda codes: ({"order": NAMES.tolist()}, NAMES[codes])
    yield "array", lambda codes: ({"order": NAMES}, NAMES[codes].astype(object))
    yield "series", lambda codes: ({}, pd.Series(pd.Categorical(NAMES[codes], NAMES, ordered=True), index=codes + 7))
    yield "frame", lambda codes: ({}, pd.DataFrame({"y": pd.Categorical(NAMES[codes], NAMES, ordered=True)}))
    yield "categorical", lambda codes: ({}, pd.Categorical.from_codes(codes, NAMES, ordered=True))


@pytest.mark.parametrize("learner", STEPS, ids=repr)
@pytest.mark.parametrize(("labelling"), [labelling for _, labelling in orders()], ids=[kind for kind, _ in orders()])
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_an_order_is_that_of_codes(learner, labelling, drawn):
    X, codes = drawn
    parameters, y = labelling(codes)
    fitted, plain = clone(learner).set_params(**parameters).fit(X, y), clone(learner).fit(X, codes)
    assert (list(fitted.order_), list(fitted.classes_)) == (list(NAMES), sorted(NAMES))
    assert np.array_equal(fitted.potentials(X), plain.potentials(X))
    assert np.array_equal(fitted.decision_function(X), plain.decision_function(X)[:, np.argsort(NAMES)])
    assert np.array_equal(fitted.predict(X), NAMES[plain.predict(X)])


def test_an_enum_of_polars_has_an_order(drawn):
    polars = pytest.importorskip("polars")
    X, codes = drawn
    y = polars.Series(NAMES[codes].tolist(), dtype=polars.Enum(NAMES.tolist()))
    assert list(OrdinalAdversarialClassifier().fit(X, y).order_) == list(NAMES)
    with pytest.raises(ConfigError, match="without an order"):
        OrdinalAdversarialClassifier().fit(X, y.cast(polars.String))


@pytest.mark.parametrize("learner", STEPS, ids=repr)
def test_text_is_not_sorted_in_silence(learner, drawn):
    X, codes = drawn
    for y in (NAMES[codes], NAMES[codes].astype(object), pd.Series(NAMES[codes]), pd.Series(pd.Categorical(NAMES[codes]))):
        with pytest.raises(ConfigError, match="'extreme', 'high', 'low', 'medium' are text without an order"):
            clone(learner).fit(X, y)


@pytest.mark.parametrize("learner", STEPS, ids=repr)
def test_a_class_that_does_not_occur_keeps_its_step(learner, drawn):
    X, codes = drawn
    rows = codes != 1
    fitted = clone(learner).set_params(order=NAMES).fit(X[rows], NAMES[codes[rows]])
    plain = clone(learner).set_params(n_classes=4).fit(X[rows], codes[rows])
    assert np.array_equal(fitted.potentials(X), plain.potentials(X))


def test_an_order_must_list_every_label_once(drawn):
    X, codes = drawn
    for order, said in ((NAMES[:3], "lacks the labels extreme"), ([*NAMES, "low"], "each label once"), ("low", "each label once")):
        with pytest.raises(ConfigError, match=said):
            OrdinalAdversarialClassifier(order=order).fit(X, NAMES[codes])


def test_labels_without_steps_need_no_order(drawn):
    X, codes = drawn
    y = pd.Series(pd.Categorical(NAMES[codes], NAMES, ordered=True))
    for learner in (AdversarialClassifier(), OneVersusAllClassifier(), CostSensitiveClassifier()):
        assert list(clone(learner).fit(X, NAMES[codes]).classes_) == sorted(NAMES)
        assert list(clone(learner).fit(X, y).classes_) == sorted(NAMES)


@pytest.mark.parametrize("learner", STEPS[::2], ids=repr)
def test_an_order_is_cloned_pickled_and_saved(learner, drawn, tmp_path):
    X, codes = drawn
    fitted = clone(learner).set_params(order=NAMES.tolist()).fit(X, NAMES[codes])
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    save(fitted, tmp_path / "ordered.model")
    assert np.array_equal(read(tmp_path / "ordered.model").predict(X), fitted.predict(X))


# ---- matrices with names --------------------------------------------------------------------------------------------
COSTS = pd.DataFrame(np.array([[0, 1, 5, 2], [2, 0, 1, 1], [9, 3, 0, 4], [1.5, 2, 2, 0]]), index=NAMES, columns=NAMES)
MATRICES = [
    (AdversarialClassifier, "loss"),
    (OrdinalAdversarialClassifier, "loss"),
    (CostSensitiveClassifier, "cost"),
    (AdversarialCostClassifier, "cost"),
]


@pytest.mark.parametrize(("kind", "name"), MATRICES)
@pytest.mark.parametrize("order", [NAMES, sorted(NAMES)], ids=["ordered", "sorted"])
def test_a_frame_is_put_into_the_order_of_the_classes(kind, name, order, drawn, tmp_path):
    X, codes = drawn
    by_name = kind(**{name: COSTS.sample(frac=1, random_state=3).T.sample(frac=1, random_state=4).T}, order=order)
    by_place = kind(**{name: COSTS.loc[list(order), list(order)].to_numpy()}, order=order)
    fitted, plain = clone(by_name).fit(X, NAMES[codes]), by_place.fit(X, NAMES[codes])
    assert np.array_equal(fitted.potentials(X), plain.potentials(X))
    save(fitted, tmp_path / "named.model")
    assert np.array_equal(read(tmp_path / "named.model").predict(X), plain.predict(X))


def test_a_frame_weighs_thresholds(drawn):
    X, codes = drawn
    shuffled = COSTS.sample(frac=1, random_state=3).T.sample(frac=1, random_state=4).T
    fitted = OrdinalClassifier(method="red_th", cost=shuffled, order=NAMES).fit(X, NAMES[codes])
    plain = OrdinalClassifier(method="red_th", cost=COSTS.to_numpy(), order=NAMES).fit(X, NAMES[codes])
    assert np.array_equal(fitted.potentials(X), plain.potentials(X))
    assert np.array_equal(fitted.cost_matrix_, COSTS.to_numpy())


def test_a_frame_of_numbers_is_named_by_them(drawn):
    X, codes = drawn
    plain = AdversarialClassifier(COSTS.to_numpy()).fit(X, codes)
    flipped = pd.DataFrame(COSTS.to_numpy())[[3, 1, 0, 2]].loc[[1, 0, 3, 2]]
    assert np.array_equal(AdversarialClassifier(flipped).fit(X, codes).potentials(X), plain.potentials(X))
    assert np.array_equal(AdversarialClassifier(flipped).fit(X, codes.astype(float)).potentials(X), plain.potentials(X))
    # the frame has 0, 1, 2, 3 instead of the names of these classes: its rows are in their order
    unnamed = AdversarialClassifier(pd.DataFrame(COSTS.to_numpy()), order=NAMES).fit(X, NAMES[codes])
    assert np.array_equal(unnamed.potentials(X), plain.potentials(X))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (COSTS.drop(index="low"), "no row for class 'low'"),
        (COSTS.drop(columns="low"), "no column for class 'low'"),
        (COSTS.rename(columns={"low": "lwo"}), "did you mean lwo"),
        (COSTS.assign(other=1.0), "a column 'other'"),
        (COSTS.reset_index(drop=True), "names its columns and not its rows"),
        (pd.concat([COSTS, COSTS[:1]]), "two rows named 'low'"),
        (COSTS.astype(object).replace(9.0, "x"), "finite number, got 'x'"),
        (COSTS.replace(9.0, np.nan), "finite number, got nan"),
    ],
)
@pytest.mark.parametrize(("kind", "name"), MATRICES)
def test_a_frame_that_does_not_fit_is_refused(frame, said, kind, name, drawn):
    X, codes = drawn
    with pytest.raises(ConfigError, match=said):
        kind(**{name: frame}, order=NAMES).fit(X, NAMES[codes])


def test_a_frame_of_polars_has_its_rows_in_the_first_column(drawn):
    polars = pytest.importorskip("polars")
    X, codes = drawn
    frame = polars.DataFrame({"prediction": list(NAMES[::-1]), **{name: COSTS.loc[NAMES[::-1], name].tolist() for name in sorted(NAMES)}})
    fitted, plain = (AdversarialClassifier(loss, order=NAMES).fit(X, NAMES[codes]) for loss in (frame, COSTS.to_numpy()))
    assert np.array_equal(fitted.potentials(X), plain.potentials(X))


# ---- weights of classes -----------------------------------------------------------------------------------------------
WEIGHED = [AdversarialClassifier(), AdversarialClassifier("ww", features="rbf"), OrdinalClassifier(), OneVersusAllClassifier()]
WEIGHED += [OrdinalAdversarialClassifier(features="threshold"), AdversarialCostClassifier(), CostSensitiveClassifier()]


@pytest.mark.parametrize("learner", WEIGHED, ids=repr)
def test_a_weight_of_a_class_is_that_of_its_rows(learner, drawn):
    X, codes = drawn
    sample = np.random.default_rng(0).uniform(0.5, 2.0, len(codes))
    weighed = clone(learner).set_params(class_weight={0: 3.0, 2: 0.5}).fit(X, codes, sample_weight=sample)
    plain = clone(learner).fit(X, codes, sample_weight=sample * np.array([3.0, 1.0, 0.5, 1.0])[codes])
    assert np.array_equal(weighed.potentials(X), plain.potentials(X))


@pytest.mark.parametrize("learner", WEIGHED, ids=repr)
def test_balanced_classes_weigh_the_same(learner, drawn):
    from sklearn.utils.class_weight import compute_sample_weight

    learner = clone(learner).set_params(tol=1e-10)  # weights differ by rounding, which may end a fit elsewhere within its tolerance
    X, codes = drawn
    balanced = clone(learner).set_params(class_weight="balanced").fit(X, codes)
    plain = clone(learner).fit(X, codes, sample_weight=compute_sample_weight("balanced", codes))
    assert np.allclose(balanced.potentials(X), plain.potentials(X), rtol=1e-6, atol=1e-9)
    # a weight of 2 is a row twice
    twice = np.r_[np.arange(len(codes)), np.flatnonzero(codes == 1)]
    counted = clone(learner).set_params(class_weight="balanced")
    if learner.features == "rbf":
        return  # the default width of the kernel depends on the rows
    repeated = clone(counted).fit(X[twice], codes[twice])
    weights = np.where(codes == 1, 2.0, 1.0)
    assert np.allclose(counted.fit(X, codes, sample_weight=weights).potentials(X), repeated.potentials(X), rtol=1e-6, atol=1e-9)


def test_weights_of_classes_are_saved_by_label(drawn, tmp_path):
    X, codes = drawn
    for weight in ({0: 3.0, 2: 0.5}, "balanced"):
        save(AdversarialClassifier(class_weight=weight).fit(X, codes), tmp_path / "weighed.model")
        assert read(tmp_path / "weighed.model").estimator.class_weight == weight


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        ("balance", "class_weight='balance' is not valid"),
        ({7: 1.0}, "class_weight names 7"),
        ({0: -1.0}, "at least 0, got -1"),
        ({0: "2"}, "at least 0, got '2'"),
        ({0: np.nan}, "at least 0, got nan"),
        (dict.fromkeys(range(4), 0.0), "zero for every row"),
    ],
)
@pytest.mark.parametrize("learner", WEIGHED, ids=repr)
def test_weights_that_are_none_are_refused(learner, weight, said, drawn):
    X, codes = drawn
    with pytest.raises(ConfigError, match=said):
        clone(learner).set_params(class_weight=weight).fit(X, codes)
