"""The scikit-learn face: check_estimator, labels, weights, arguments, sparse input, copies."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from support.registered import plain_losses

from advcli import ABSTAIN, AdversarialClassifier
from advcli.core.errors import ConfigError, IncompatibleError, NotConvergedWarning
from advcli.losses import AdversarialLoss, loss_class
from advcli.testing import check_learner
from advcli.testing.learners import TEXT

LOSSES = [name for name in plain_losses() if not loss_class(name).sets]  # predicted sets are no labels: tests/losses has their own tests


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def expected_failures(estimator):
    """Abstaining is a prediction that no column of decision_function stands for; text has no order."""
    if loss_class(estimator.loss).needs_order:
        return dict.fromkeys(TEXT, "steps between classes need an order")
    if estimator.loss != "abstain":
        return {}
    return {"check_classifiers_train": "predict may abstain, which is no argmax of decision_function"}


# All of scikit-learn's checks for estimators that differ in what the checks ask about: validation, features, intercept, solver, order.
# Of the other losses the checks whose outcome goes through the loss: fits, predictions, weights, states; what is refused is refused before.
FULL = [
    AdversarialClassifier(),
    AdversarialClassifier(solver="newton"),
    AdversarialClassifier(solver="dual", fit_intercept=False, lam=0.01),
    AdversarialClassifier(loss="absolute", features="threshold"),
    AdversarialClassifier(features="rbf"),
]
OF_THE_LOSS = {
    "check_classifiers_train",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_regression_target",
    "check_class_weight_classifiers",
    "check_decision_proba_consistency",
    "check_dict_unchanged",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_supervised_y_2d",
}


@pytest.mark.parametrize("estimator", FULL, ids=repr)
def test_estimators_pass(estimator):
    # without an intercept no weight of a class makes it be predicted everywhere
    level = estimator.fit_intercept and estimator.features != "rbf"
    check_learner(estimator, skip=set() if level else {"check_class_weight_classifiers"})


@pytest.mark.parametrize("name", [each for each in LOSSES if each != "zero_one"])
def test_sklearn_checks_of_a_loss(name):
    options = {"K": 1} if name == "top_k" else None  # some checks have two classes
    extra = [-99] if name == "abstain" else None  # the checks compare numbers
    estimator = AdversarialClassifier(loss=name, loss_options=options, extra_labels=extra)
    expected = expected_failures(estimator)
    made = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        for each, check in estimator_checks_generator(estimator):
            title = check.func.__name__
            if title in OF_THE_LOSS and title not in expected:
                made.add(title)
                check(each)
    assert len(made) >= 12


# ---- labels ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", LOSSES)
def test_string_labels(loss, iris):
    X, y = iris
    names = np.array(["b-setosa", "a-versicolor", "c-virginica"])
    plain = AdversarialClassifier(loss).fit(X, y)
    ordered = AdversarialClassifier(loss, order=names).fit(X, names[y])
    assert (list(ordered.order_), list(ordered.classes_)) == (list(names), sorted(names))
    assert np.array_equal(ordered.potentials(X), plain.potentials(X))
    if loss_class(loss).needs_order:
        with pytest.raises(ConfigError, match="text without an order"):
            AdversarialClassifier(loss).fit(X, names[y])
        return
    named = AdversarialClassifier(loss).fit(X, names[y])
    assert list(named.classes_) == sorted(names)
    assert named.predict(X).dtype.kind == "U"
    given = {str(name): plain.classes_[code] for code, name in enumerate(names)}
    both = zip(named.predict(X).tolist(), plain.predict(X).tolist(), strict=True)
    same = [given.get(one, ABSTAIN) == other for one, other in both]
    assert np.mean(same) >= 0.98  # both solve to a gap of 1e-3 only


def test_labels_need_not_be_codes(iris):
    X, y = iris
    for labels in (np.array([-5, 0, 7]), np.array([1.0, 2.0, 100.0]), np.array([True, False, True])):
        model = AdversarialClassifier().fit(X, labels[y])
        assert set(model.predict(X)) <= set(labels)
        assert model.score(X, labels[y]) > 0.7  # one class against both its neighbours is no linear problem


def test_one_class_is_refused(iris):
    X, _ = iris
    with pytest.raises(ValueError, match=r"1 class|one class"):
        AdversarialClassifier().fit(X, np.zeros(len(X)))


def test_regression_targets_are_refused(iris):
    X, _ = iris
    with pytest.raises(ValueError, match="continuous"):
        AdversarialClassifier().fit(X, np.linspace(0, 1, len(X)))


def test_n_classes_keeps_room_for_classes_that_do_not_occur(iris):
    X, y = iris
    rows = y != 1
    model = AdversarialClassifier(n_classes=4).fit(X[rows], y[rows])
    assert list(model.classes_) == [0, 1, 2, 3]
    assert model.potentials(X).shape == (150, 4)
    assert set(model.predict(X[rows])) == {0, 2}
    # classes that never occur share one weight vector: nothing tells them apart
    assert np.abs(model.theta_[:, 1] - model.theta_[:, 3]).max() <= 1e-12
    with pytest.raises(ConfigError, match="n_classes"):
        AdversarialClassifier(n_classes=2).fit(X, y)
    with pytest.raises(ConfigError, match="n_classes"):
        AdversarialClassifier(n_classes=3).fit(X, y.astype(str))


# ---- what is predicted ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("loss", LOSSES)
def test_potentials_decision_function_and_predictions(loss, iris):
    X, y = iris
    model = AdversarialClassifier(loss).fit(X, y)
    F = model.potentials(X)
    assert F.shape == (150, 3)
    assert np.array_equal(model.decision_function(X), F)
    codes = model.predict_codes(X)
    assert codes.min() >= 0
    assert codes.max() < len(model.predictions_)
    assert np.array_equal(model.predictions_[codes], model.predict(X))
    two = AdversarialClassifier(loss, loss_options={"K": 1} if loss == "top_k" else None).fit(X[y < 2], y[y < 2])
    assert two.potentials(X).shape == (150, 2)
    assert np.array_equal(two.decision_function(X), two.potentials(X)[:, 1] - two.potentials(X)[:, 0])


@pytest.mark.parametrize("loss", LOSSES)
def test_distributions(loss, iris):
    X, y = iris
    model = AdversarialClassifier(loss).fit(X, y)
    if not issubclass(loss_class(loss), AdversarialLoss):
        assert hasattr(model, "predict_proba") is loss_class(loss).estimates({})
        assert not hasattr(model, "predictor_distribution")
        return
    P = model.predictor_distribution(X)
    Q = model.adversary_distribution(X)
    for distribution in (P, Q):
        assert distribution.min() >= 0
        assert np.abs(distribution.sum(axis=1) - 1.0).max() <= 1e-12
    assert P.shape == (150, len(model.predictions_))
    assert Q.shape == (150, 3)
    # eq. 131: whatever the truth, expected loss plus potential is at most the value of the game
    value = model.loss_.value(model.potentials(X), y) + model.potentials(X)[np.arange(150), y]
    assert ((model.expected_loss(X) + model.potentials(X)).max(axis=1) <= value + 1e-9).all()
    if hasattr(model, "predict_proba"):
        assert np.array_equal(model.predict_proba(X), P)
        assert np.array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))


def test_zero_one_has_probabilities_and_the_hinges_have_not():
    assert hasattr(AdversarialClassifier("zero_one"), "predict_proba")
    for name in ("ww", "cs", "llw"):
        assert not hasattr(AdversarialClassifier(name), "predict_proba")
        with pytest.raises(AttributeError) as caught:
            AdversarialClassifier(name).predict_proba  # noqa: B018
        assert "distribution" in str(caught.value.__cause__)


def test_abstaining_predicts_a_label_of_its_own(iris):
    X, y = iris
    names = np.array(["x", "y", "z"])[y]
    model = AdversarialClassifier("abstain", loss_options={"alpha": 0.1}).fit(X, names)
    predicted = model.predict(X)
    assert set(predicted) <= {"x", "y", "z", "abstain"}
    assert 0 < (predicted == "abstain").sum() < 150
    numbers = AdversarialClassifier("abstain", loss_options={"alpha": 0.1}).fit(X, y).predict(X)
    assert np.array_equal(numbers == ABSTAIN, predicted == "abstain")


def test_a_cost_matrix_is_a_loss(iris):
    X, y = iris
    zero_one = AdversarialClassifier("zero_one", tol=1e-6).fit(X, y)
    matrix = AdversarialClassifier(1.0 - np.eye(3), tol=1e-6).fit(X, y)
    assert matrix.certificate_.primal == pytest.approx(zero_one.certificate_.primal, rel=2e-6)


# ---- arguments ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"C": 0.0}, "C must be"),
        ({"C": -1.0}, "C must be"),
        ({"C": np.nan}, "C must be"),
        ({"C": np.inf}, "C must be"),
        ({"tol": 0.0}, "tol must be"),
        ({"tol": -1e-3}, "tol must be"),
        ({"lam": 0.0}, "lam must be"),
        ({"loss": "zero_on"}, "zero_one"),
        ({"solver": "newtn"}, "newton"),
        ({"features": "thresold"}, "threshold"),
        ({"loss": "abstain", "loss_options": {"alpha": 2.0}}, "alpha"),
        ({"loss": "abstain", "loss_options": {"alfa": 0.2}}, "alfa|alpha"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_arguments_are_one_clear_line(arguments, says, iris):
    with pytest.raises(ConfigError, match=says) as caught:
        AdversarialClassifier(**arguments).fit(*iris)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_solver_that_cannot_is_refused_before_any_work(iris):
    with pytest.raises(IncompatibleError, match="solver=dual needs"):
        AdversarialClassifier("absolute", features="threshold", solver="dual").fit(*iris)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_broken_numbers_are_refused(bad, iris):
    X, y = iris
    X = X.copy()
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        AdversarialClassifier().fit(X, y)


def test_a_fit_that_did_not_arrive_warns_and_says_so(iris):
    model = AdversarialClassifier(C=1e6, tol=1e-9, max_passes=2, solver="dual")
    with pytest.warns(NotConvergedWarning, match="relative gap"):
        model.fit(*iris)
    assert not model.certificate_.converged
    assert model.certificate_.status == "max_passes"
    assert model.certificate_.relative_gap > 1e-9
    assert model.predict(iris[0]).shape == (150,)  # and the model still answers


def test_a_fit_that_arrived_is_silent(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AdversarialClassifier().fit(*iris)
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.status == "converged"
    assert 0 <= certificate.relative_gap <= 1e-3
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual)
    assert certificate.passes > 0
    assert certificate.seconds > 0
    assert model.n_iter_ >= 1


# ---- inputs and copies ----------------------------------------------------------------------------------------------
def test_inputs_are_left_alone(iris):
    X, y = iris
    for rows in (X.copy(), np.asfortranarray(X), X[::-1][::-1].astype(np.float32)):
        labels, weights = y.copy(), np.ones(len(y))
        before = rows.copy()
        for array in (rows, labels, weights):
            array.setflags(write=False)
        AdversarialClassifier().fit(rows, labels, sample_weight=weights).predict(rows)
        assert np.array_equal(rows, before)


def sparse_iris(iris):
    X = np.where(np.abs(iris[0]) > 0.8, iris[0], 0.0)
    return X, iris[1]


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
@pytest.mark.parametrize("solver", ["auto", "dual"])
def test_sparse_input_is_the_same_problem(form, solver, iris):
    X, y = sparse_iris(iris)
    dense = AdversarialClassifier(solver=solver, tol=1e-6).fit(X, y)
    sparse = AdversarialClassifier(solver=solver, tol=1e-6).fit(form(X), y)
    assert sparse.certificate_.converged
    assert sparse.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=3e-6)
    assert np.abs(sparse.potentials(form(X)) - sparse.potentials(X)).max() <= 1e-12


def test_unsorted_sparse_input_with_repeated_entries(iris):
    """CSR rows may come in any order and may hold one entry in parts; the caller's arrays stay as they are."""
    X, y = sparse_iris(iris)
    clean = sp.csr_array(X)
    data = np.concatenate([[0.25 * v, 0.75 * v] for v in clean.data])
    columns = np.repeat(clean.indices, 2)
    for a, b in zip(2 * clean.indptr[:-1], 2 * clean.indptr[1:], strict=True):
        data[a:b], columns[a:b] = data[a:b][::-1].copy(), columns[a:b][::-1].copy()
    messy = sp.csr_array((data, columns, 2 * clean.indptr), shape=clean.shape)
    before = messy.data.copy(), messy.indices.copy()
    one = AdversarialClassifier(tol=1e-6, solver="dual").fit(messy, y)
    other = AdversarialClassifier(tol=1e-6, solver="dual").fit(clean, y)
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=3e-6)
    assert np.array_equal(messy.data, before[0])
    assert np.array_equal(messy.indices, before[1])


def test_clone_pickle_and_params(iris):
    X, y = iris
    model = AdversarialClassifier("abstain", C=3.0, loss_options={"alpha": 0.3}, random_state=4).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "theta_")
    again = copy.fit(X, y)
    assert np.array_equal(again.theta_, model.theta_)
    revived = pickle.loads(pickle.dumps(model))
    assert np.array_equal(revived.predict(X), model.predict(X))
    assert revived.certificate_ == model.certificate_
    assert AdversarialClassifier().set_params(C=7.0, loss="cs").get_params()["C"] == 7.0


def test_works_in_searches_and_pipelines():
    X, y = load_wine(return_X_y=True)
    search = GridSearchCV(make_pipeline(StandardScaler(), AdversarialClassifier()), {"adversarialclassifier__C": [0.01, 1.0, 100.0]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.95
    assert cross_val_score(make_pipeline(StandardScaler(), AdversarialClassifier("ww")), X, y, cv=3).mean() > 0.9


def test_random_state_is_a_seed(iris):
    X, y = iris
    one, other, third = (AdversarialClassifier(solver="dual", random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert np.array_equal(one.theta_, other.theta_)
    assert not np.array_equal(one.theta_, third.theta_)
    assert third.certificate_.primal == pytest.approx(one.certificate_.primal, rel=2e-3)
    AdversarialClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    AdversarialClassifier(random_state=None).fit(X, y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_classes": 3.5}, "n_classes=3.5 is not valid"),
        ({"n_classes": 10**9}, "n_classes=1000000000 is not valid"),
        ({"max_passes": 0}, "max_passes must be at least 1, got 0"),
        ({"max_passes": -1}, "max_passes must be at least 1, got -1"),
        ({"max_passes": float("nan")}, "max_passes must be at least 1, got nan"),
    ],
    ids=str,
)
def test_numbers_that_nobody_means(options: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        AdversarialClassifier(**options).fit([[0.0], [1.0], [2.0]], [0, 1, 2])


def test_weights_that_add_up_to_no_number() -> None:
    with pytest.raises(ConfigError, match="sample_weight adds up to more than a number can hold"):
        AdversarialClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 2], sample_weight=[1e308] * 3)
