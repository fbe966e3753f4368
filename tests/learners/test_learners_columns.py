"""Columns of classes as scikit-learn reads them: sorted, whatever the order is; and ensembles that replace labels by codes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict

from advcli import AbstainingClassifier, AdversarialClassifier, CostSensitiveClassifier, OrdinalAdversarialClassifier, OrdinalClassifier
from advcli.core.errors import ConfigError
from advcli.models import load, save

NAMES = np.array(["low", "mid", "high"])
LEARNERS = [
    AdversarialClassifier(calibrate="sigmoid"),
    AdversarialClassifier(features="rbf", calibrate="sigmoid"),
    OrdinalAdversarialClassifier(calibrate="sigmoid"),
    OrdinalAdversarialClassifier(features="threshold", calibrate="sigmoid"),
    AdversarialClassifier(),
    AdversarialClassifier("cs"),
    AbstainingClassifier("cs", alpha=0.4),
    CostSensitiveClassifier(cost="absolute"),
    CostSensitiveClassifier(method="red_mc"),
    OrdinalClassifier(),
]
# predict may abstain, or counts votes
SCORERS = ("accuracy", "neg_log_loss", "roc_auc_ovr", "roc_auc_ovo", "neg_brier_score", "d2_log_loss_score")


@pytest.fixture(scope="module")
def drawn():
    random = np.random.default_rng(7)
    X = random.normal(size=(90, 2))
    return X, np.digitize(X[:, 0] + 0.3 * random.normal(size=90), [-0.5, 0.5])


def numbered(codes):
    """Return labels whose sorted order is that of the codes, for the same fit."""
    return np.array(["1 low", "2 mid", "3 high"])[codes]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.filterwarnings("ignore::advcli.core.errors.StrategyWarning")
def test_every_scorer_reads_the_columns_of_its_classes(learner, drawn):
    X, codes = drawn
    fitted = clone(learner).set_params(order=NAMES).fit(X, NAMES[codes])
    plain = clone(learner).set_params(order=np.unique(numbered(codes))).fit(X, numbered(codes))
    assert list(fitted.classes_) == sorted(NAMES)
    assert list(fitted.order_) == list(NAMES)
    for name in SCORERS:
        scorer = get_scorer(name)
        if name == "accuracy" or hasattr(plain, "predict_proba"):
            assert scorer(fitted, X, NAMES[codes]) == pytest.approx(scorer(plain, X, numbered(codes)), rel=1e-12), name


@pytest.mark.parametrize("learner", [AdversarialClassifier(), AdversarialClassifier("squared")], ids=repr)
@pytest.mark.parametrize("k", [2, 3])
def test_weights_of_columns_have_rows_in_the_order_of_the_scores(learner, k, drawn):
    X, codes = drawn
    y = NAMES[np.minimum(codes, k - 1)]
    fitted = clone(learner).set_params(order=NAMES[:k]).fit(X, y)
    scores = X @ fitted.coef_.T + fitted.intercept_
    np.testing.assert_allclose(scores.ravel(), fitted.decision_function(X).ravel(), rtol=0, atol=1e-12)
    if k == 2:
        np.testing.assert_array_equal(fitted.classes_[(scores.ravel() > 0).astype(int)], fitted.predict(X))


def test_a_saved_fit_keeps_both_orders(drawn, tmp_path):
    X, codes = drawn
    fitted = AdversarialClassifier(calibrate="sigmoid", order=NAMES.tolist()).fit(X, NAMES[codes])
    save(fitted, tmp_path / "ordered.model")
    again = load(tmp_path / "ordered.model")
    assert (again.order_.tolist(), again.classes_.tolist()) == (NAMES.tolist(), sorted(NAMES))
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert np.array_equal(again.decision_function(X), fitted.decision_function(X))


def test_a_search_by_a_scorer_of_probabilities_finds_what_it_finds_without_an_order(drawn):
    X, codes = drawn
    search = GridSearchCV(AdversarialClassifier(calibrate="sigmoid"), {"C": [1e-4, 1.0]}, scoring="neg_log_loss", cv=3)
    plain = clone(search).fit(X, numbered(codes))
    search.set_params(estimator__order=NAMES)
    np.testing.assert_allclose(search.fit(X, NAMES[codes]).cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-9)


ENSEMBLES = [
    lambda learner: VotingClassifier([("a", learner), ("b", clone(learner))], voting="soft"),
    lambda learner: StackingClassifier([("a", learner)], stack_method="predict_proba", cv=3),
    lambda learner: BaggingClassifier(learner, n_estimators=2, bootstrap=False, random_state=0),
    lambda learner: CalibratedClassifierCV(learner, cv=3, ensemble=False),
]


@pytest.mark.parametrize("made", ENSEMBLES, ids=["voting", "stacking", "bagging", "calibrated"])
def test_an_ensemble_that_gives_codes_gets_them_in_the_order(made, drawn):
    X, codes = drawn
    learner = OrdinalAdversarialClassifier(calibrate="sigmoid")
    ordered = made(clone(learner).set_params(order=NAMES)).fit(X, NAMES[codes])
    plain = made(learner).fit(X, codes)
    assert list(ordered.classes_) == sorted(NAMES)
    np.testing.assert_allclose(ordered.predict_proba(X), plain.predict_proba(X)[:, np.argsort(NAMES)], atol=1e-6)
    assert (ordered.predict(X) == NAMES[plain.predict(X)]).mean() > 0.95


def test_cross_validated_probabilities_have_the_columns_of_sorted_labels(drawn):
    X, codes = drawn
    found, plain = (
        cross_val_predict(OrdinalAdversarialClassifier(calibrate="sigmoid", order=order), X, y, cv=3, method="predict_proba")
        for order, y in ((NAMES, NAMES[codes]), (None, codes))
    )
    np.testing.assert_allclose(found, plain[:, np.argsort(NAMES)], atol=1e-9)


@pytest.mark.parametrize("made", ENSEMBLES[:3], ids=["voting", "stacking", "bagging"])
def test_an_ensemble_that_hides_the_order_is_refused(made, drawn):
    X, codes = drawn
    y = pd.Series(pd.Categorical(NAMES[codes], NAMES, ordered=True))
    for learner in (OrdinalAdversarialClassifier(calibrate="sigmoid"), OrdinalClassifier(method="at")):
        model = made(learner)
        if isinstance(learner, OrdinalClassifier):  # has no probabilities
            known = model.get_params()
            model.set_params(**{name: value for name, value in {"voting": "hard", "stack_method": "predict"}.items() if name in known})
        with pytest.raises(ConfigError, match=r"'high', 'low', 'mid' by codes in alphabetical order: give order="):
            model.fit(X, y)
    with pytest.raises(ConfigError, match="alphabetical order"):
        made(OrdinalClassifier()).set_params(n_jobs=2).fit(X, y)
    with pytest.raises(ConfigError, match="alphabetical order"):
        cross_val_predict(OrdinalAdversarialClassifier(calibrate="sigmoid"), X, y, cv=3, method="predict_proba")


def test_codes_of_fewer_labels_than_the_order_lists_are_refused(drawn):
    X, codes = drawn
    learner = OrdinalAdversarialClassifier(order=[*NAMES, "never"], calibrate="sigmoid")
    assert learner.fit(X, NAMES[codes]).predict_proba(X)[:, 3].max() == 0.0
    with pytest.raises(ConfigError, match="y must have all 4 labels"):
        VotingClassifier([("a", learner)]).fit(X, NAMES[codes])
