"""What scikit-learn's users expect of estimators that minimise: weights, the objective, warm starts, routing, callbacks, what they show."""

import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import advcli
from advcli import (
    AbstainingClassifier,
    AdversarialClassifier,
    AdversarialCostClassifier,
    CostSensitiveClassifier,
    HierarchicalClassifier,
    OneVersusAllClassifier,
    OneVersusOneClassifier,
    OrdinalAdversarialClassifier,
    OrdinalClassifier,
    UMAClassifier,
)
from advcli.core.errors import ConfigError, ModelError
from advcli.learners.base import USUAL
from advcli.models import read, save

MINIMISERS = [
    AdversarialClassifier(),
    AdversarialClassifier("weighted", loss_options={"weight": "column"}),
    AdversarialClassifier([[0, 2, 2], [2, 0, 2], [2, 2, 0]], C=10.0, fit_intercept=False),
    AdversarialClassifier(features="rbf"),
    AdversarialClassifier(features="kernel_pca"),
    AdversarialClassifier(features_options={"moments": "box"}),
    OrdinalAdversarialClassifier(),
    OrdinalAdversarialClassifier("squared", features="threshold"),
    AdversarialCostClassifier(cost="squared"),
    AbstainingClassifier("bep"),
    AbstainingClassifier("two_stage"),
    OneVersusAllClassifier(),
    OneVersusAllClassifier(bias="free", features="rbf"),
    OneVersusOneClassifier(features="rbf"),
    CostSensitiveClassifier(cost="absolute"),
    OrdinalClassifier(),
    OrdinalClassifier(method="svorex"),
    OrdinalClassifier(method="red_th", bias="regularised"),
]


@pytest.fixture(scope="module")
def drawn():
    random = np.random.default_rng(3)
    X = np.round(random.normal(size=(90, 2)), 1)
    return X, np.digitize(X[:, 0] + 0.4 * random.normal(size=90), [-0.5, 0.5]), random.uniform(0.5, 2.0, 90)


# ---- the objective ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", MINIMISERS, ids=repr)
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.5}], ids=str)
def test_the_objective_on_the_rows_of_the_fit_is_the_certificates(learner, class_weight, drawn):
    X, y, sample = drawn
    fitted = clone(learner).set_params(class_weight=class_weight).fit(X, y, sample_weight=sample)
    before = pickle.dumps(fitted.__dict__["classes_"])
    terms = fitted.objective(X, y, sample, parts=True)
    assert fitted.objective(X, y, sample) == pytest.approx(fitted.certificate_.primal, rel=1e-12)
    assert sum(terms.values()) == pytest.approx(fitted.certificate_.primal, rel=1e-12)
    assert min(terms.values()) >= 0
    assert pickle.dumps(fitted.__dict__["classes_"]) == before


@pytest.mark.parametrize("learner", MINIMISERS, ids=repr)
def test_the_mean_loss_of_other_rows_is_that_of_each(learner, drawn):
    X, y, _ = drawn
    fitted = clone(learner).fit(X, y, sample_weight=np.ones(len(y)))
    if (learner.features_options if hasattr(learner, "features_options") else None) or {}:
        return  # the penalty of a box is of the rows
    whole = fitted.objective(X[:6], y[:6], np.ones(6), parts=True)
    each = [fitted.objective(X[[i]], y[[i]], np.ones(1), parts=True) for i in range(6)]
    assert np.mean([terms["loss"] for terms in each]) == pytest.approx(whole["loss"], rel=1e-9)
    assert [terms["penalty"] for terms in each] == pytest.approx([whole["penalty"]] * 6)


def test_the_objective_speaks_of_labels(drawn):
    X, y, _ = drawn
    names = np.array(["b", "c", "a"])[y]
    fitted = AdversarialClassifier(class_weight={"a": 2.0}).fit(X, names)
    assert fitted.objective(X, names) == pytest.approx(fitted.certificate_.primal, rel=1e-12)
    with pytest.raises(ConfigError, match="y holds 'd' in row 1, which is not a class"):
        fitted.objective(X[:1], ["d"])
    with pytest.raises(ValueError, match="2 features"):
        fitted.objective(X[:, :1], names)


def test_a_model_file_keeps_no_objective(drawn, tmp_path):
    X, y, _ = drawn
    save(AdversarialClassifier().fit(X, y), tmp_path / "fitted.model")
    with pytest.raises(ModelError, match="fit it again"):
        read(tmp_path / "fitted.model").estimator.objective(X, y)


# ---- weights ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", [each for each in MINIMISERS if each.features in ("linear", "multiclass")], ids=repr)
def test_scores_are_weights_times_columns(learner, drawn):
    X, y, _ = drawn
    fitted = clone(learner).fit(X, y, sample_weight=np.ones(len(y)))
    if isinstance(learner, OrdinalClassifier):
        return  # its scores follow from thresholds
    if getattr(learner, "method", "") == "bep":
        assert not hasattr(fitted, "coef_")
        return
    scores = fitted.binary_scores(X) if hasattr(fitted, "binary_scores") else fitted.potentials(X)
    assert fitted.n_features_in_ == 2
    assert np.allclose(X @ fitted.coef_.T + fitted.intercept_, scores, atol=1e-12)
    fitted.coef_[:] = 7.0  # a copy
    assert np.array_equal(scores, fitted.binary_scores(X) if hasattr(fitted, "binary_scores") else fitted.potentials(X))


def test_two_classes_have_one_row_of_weights(drawn):
    X, y, _ = drawn
    fitted = AdversarialClassifier().fit(X, y > 0)
    assert fitted.coef_.shape == (1, 2)
    assert np.allclose((X @ fitted.coef_.T + fitted.intercept_).ravel(), fitted.decision_function(X), atol=1e-12)


def test_thresholds_have_a_direction(drawn):
    X, y, _ = drawn
    fitted = OrdinalAdversarialClassifier(features="threshold").fit(X, y)
    g = X @ fitted.coef_[0]
    assert np.array_equal((g[:, None] > fitted.thresholds_).sum(axis=1), fitted.predict(X))
    assert not hasattr(fitted, "intercept_")


def test_features_without_columns_have_no_weights(drawn):
    X, y, _ = drawn
    for learner in (AdversarialClassifier(features="rbf"), OneVersusAllClassifier(features="kernel_pca")):
        assert not hasattr(clone(learner), "coef_")
        assert not hasattr(clone(learner).fit(X, y), "coef_")


# ---- warm starts, and what is printed -----------------------------------------------------------------------------------
WARM = [AdversarialClassifier(), AdversarialClassifier("ww", features="rbf"), OneVersusAllClassifier(), OrdinalClassifier()]


@pytest.mark.parametrize("learner", WARM, ids=repr)
def test_a_warm_start_is_the_fit_from_the_last_one(learner, drawn):
    X, y, _ = drawn
    first = clone(learner).set_params(warm_start=True, tol=1e-6).fit(X, y)
    last = pickle.loads(pickle.dumps(first))
    warm = first.set_params(C=2.0).fit(X, y)
    started = clone(learner).set_params(tol=1e-6, C=2.0).fit(X, y, start=last)
    cold = clone(learner).set_params(tol=1e-6, C=2.0).fit(X, y)
    assert np.array_equal(warm.potentials(X), started.potentials(X))
    assert warm.certificate_.converged
    assert warm.certificate_.passes <= cold.certificate_.passes


@pytest.mark.parametrize("learner", WARM, ids=repr)
def test_a_warm_start_never_joins_two_problems(learner, drawn):
    X, y, sample = drawn
    others = [{"X": X[:60], "y": y[:60]}, {"X": X, "y": 2 - y}, {"X": X, "y": y, "sample_weight": sample}, {"X": X + 1.0, "y": y}]
    for other in others:
        warm = clone(learner).set_params(warm_start=True).fit(X, y).fit(**other)
        assert np.array_equal(warm.potentials(X), clone(learner).fit(**other).potentials(X))


def test_another_loss_is_another_problem(drawn):
    X, y, _ = drawn
    warm = AdversarialClassifier("ww", warm_start=True).fit(X, y).set_params(loss="cs").fit(X, y)
    assert np.array_equal(warm.potentials(X), AdversarialClassifier("cs").fit(X, y).potentials(X))


def test_verbose_is_a_line_a_fit(drawn, capsys):
    X, y, _ = drawn
    AdversarialClassifier(verbose=1).fit(X, y)
    assert capsys.readouterr().out.startswith("AdversarialClassifier: converged, certified relative gap")
    AdversarialClassifier().fit(X, y)
    assert capsys.readouterr().out == ""
    for name in ("verbose", "warm_start"):
        with pytest.raises(ConfigError, match=f"{name}='yes' must be"):
            AdversarialClassifier(**{name: "yes"}).fit(X, y)


@pytest.mark.parametrize("kind", [found for name in advcli.__all__ if hasattr(found := getattr(advcli, name), "get_params")])
def test_a_misspelt_parameter_names_the_right_one(kind):
    for name in inspect.signature(kind).parameters:
        for at in range(1, len(name)):
            with pytest.raises(TypeError, match=rf"^{kind.__name__} has no option .*; did you mean .*\b{name}\b.*\?$"):
                kind(**{name[:at] + name[at + 1 :]: 1})


def test_the_names_of_other_packages_name_the_parameter():
    for usual, name in USUAL.items():
        with pytest.raises(TypeError, match=rf"'{usual}'; did you mean {name}\?$"):
            AdversarialClassifier(**{usual: 1})


# ---- what a class says ------------------------------------------------------------------------------------------------
PUBLIC = [name for name in advcli.__all__ if inspect.isclass(getattr(advcli, name))]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_class_describes_its_own_parameters(name):
    found = getattr(advcli, name)
    parameters = inspect.getdoc(found).split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = [line.partition(" : ")[0].split(", ") for line in parameters.splitlines() if not line.startswith(" ")]
    described = [each for head in heads for each in head]
    assert sorted(described) == sorted(inspect.signature(found).parameters)
    assert "As in `" not in parameters


def test_kernels_take_no_name_outside_of_the_package():
    code = """
import sys
from pathlib import Path
from advcli.core.compiled import kernels
files = Path(kernels.ascent_dense.__file__).parent.glob("*_*.*")
names = {path.name.split(".")[0].rpartition("_")[0] for path in files}
print(len(names), sorted(names & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    count, _, taken = done.stdout.strip().partition(" ")
    assert int(count) >= 20
    assert taken == "[]"


def test_the_package_lists_what_it_has():
    assert set(advcli.__all__) <= set(dir(advcli))
    for name in dir(advcli):
        assert getattr(advcli, name) is not None
    code = "import advcli, sys; assert 'sklearn' not in sys.modules; advcli.models.load"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'model'"):
        _ = advcli.model


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        (AdversarialClassifier(C="1"), "AdversarialClassifier: C must be a positive number, got '1'"),
        (AdversarialClassifier(tol=None), "AdversarialClassifier: tol must be a positive number, got None"),
        (AdversarialClassifier(max_passes="9"), "max_passes must be at least 1, got '9'"),
        (AdversarialClassifier(loss_options=[1]), "loss_options must be a dict"),
        (AdversarialClassifier(loss_options={"alpha": 1}), "loss=zero_one has no option 'alpha'; it has none"),
        (AdversarialClassifier("abstain", loss_options={"alhpa": 1}), "loss=abstain has no option 'alhpa'; did you mean alpha?"),
        (AdversarialClassifier(features="rbf", features_options={"gama": 1}), "features=rbf has no option 'gama'; did you mean gamma?"),
        (AdversarialClassifier(kernel="rbf", features="poly"), "kernel=rbf and features=poly are two feature maps: give one of them"),
        (AdversarialClassifier(features="rbf", gamma=1, features_options={"gamma": 1}), "gamma is given twice, by gamma= and in features"),
        (OrdinalClassifier(kernel="sigmoid"), "OrdinalClassifier: kernel=sigmoid is unknown; choose one of linear, poly, pre"),
        (AdversarialClassifier(None), "loss=None is no loss: choose one of absolute, "),
        (AdversarialClassifier("zero"), "AdversarialClassifier: unknown loss 'zero': did you mean zero_one?"),
        (AdversarialClassifier("uma"), "no surrogate loss but a learner of its own: use UMAClassifier"),
        (AdversarialClassifier("svorex"), r'use OrdinalClassifier\(method="svorex"\)'),
        (AdversarialClassifier("csova"), r'use CostSensitiveClassifier\(method="csova"\)'),
        (AdversarialClassifier("abstain_cs"), r'use AbstainingClassifier\("cs"\)'),
        (AdversarialClassifier("ssvm"), r'use HierarchicalClassifier\(model="ssvm"\)'),
        (OrdinalAdversarialClassifier(rule="mode"), "OrdinalAdversarialClassifier: rule=mode is unknown; "),
        (OneVersusAllClassifier(C="1"), "OneVersusAllClassifier: C must be"),
        (CostSensitiveClassifier(method="csosvr"), "CostSensitiveClassifier: method=csosvr is unknown; did you mean csosr"),
        (OrdinalClassifier(features="threshold"), "OrdinalClassifier: .* choose features=linear, rbf"),
        (UMAClassifier(step="none"), "UMAClassifier: step=none is unknown; choose one of passive_aggressive"),
        (HierarchicalClassifier(C="1"), "HierarchicalClassifier: C must be"),
    ],
    ids=repr,
)
def test_errors_name_the_class_that_was_called(learner, said, drawn):
    X, y, _ = drawn
    with pytest.raises(ConfigError, match=said) as error:
        learner.fit(X, y)
    assert str(error.value).startswith(type(learner).__name__)
    assert "\n" not in str(error.value)


def test_two_names_of_linear_features_are_one(drawn):
    X, y, _ = drawn
    for kind in (AdversarialClassifier, OrdinalAdversarialClassifier, OneVersusAllClassifier, OrdinalClassifier):
        linear, multiclass = (kind(features=name).fit(X, y) for name in ("linear", "multiclass"))
        assert np.array_equal(linear.potentials(X), multiclass.potentials(X))
        assert np.array_equal(linear.coef_, multiclass.coef_)


# ---- scikit-learn's ways ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("learner", [AdversarialClassifier(), OneVersusAllClassifier(), OrdinalClassifier()], ids=repr)
def test_weights_are_routed(learner, drawn):
    X, y, sample = drawn
    with sklearn.config_context(enable_metadata_routing=True):
        asks = clone(learner).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), asks).fit(X, y, sample_weight=sample)
        grid = GridSearchCV(asks, {"C": [0.1, 1.0]}, cv=2).fit(X, y, sample_weight=sample)
        scores = cross_validate(asks, X, y, cv=2, params={"sample_weight": sample})["test_score"]
    scaled = StandardScaler().fit(X, sample_weight=sample).transform(X)
    assert np.array_equal(piped[-1].potentials(scaled), clone(learner).fit(scaled, y, sample_weight=sample).potentials(scaled))
    best = clone(learner).set_params(**grid.best_params_).fit(X, y, sample_weight=sample)
    assert np.array_equal(grid.best_estimator_.potentials(X), best.potentials(X))
    assert len(scores) == 2


def test_callbacks_are_told_of_a_fit(drawn):
    callbacks = pytest.importorskip("sklearn.callback")
    X, y, _ = drawn
    told = []

    class Told:
        def setup(self, estimator, context):
            told.append("setup")

        def on_fit_task_begin(self, estimator, context, **given):
            told.append("begin")

        def on_fit_task_end(self, estimator, context, **given):
            told.append(estimator.certificate_.converged)

        def teardown(self, estimator, context):
            told.append("teardown")

    assert isinstance(Told(), callbacks.FitCallback)
    fitted = AdversarialClassifier().set_callbacks(Told()).fit(X, y)
    assert told == ["setup", "begin", True, "teardown"]
    assert np.array_equal(fitted.potentials(X), AdversarialClassifier().fit(X, y).potentials(X))
    with pytest.raises(ConfigError):
        AdversarialClassifier(C=-1.0).set_callbacks(Told()).fit(X, y)
    assert told[4:] == ["setup", "begin", "teardown"]


def test_a_notebook_shows_the_certificate(drawn):
    X, y, _ = drawn
    names = np.array(["<low>", "mid", "high"])
    learner = OrdinalAdversarialClassifier(order=names)
    assert "certified" not in learner._repr_html_()
    learner.fit(X, names[y])
    for shown in (learner._repr_html_(), learner._repr_mimebundle_()["text/html"]):
        assert f"certified relative gap {learner.certificate_.relative_gap:.1e}" in shown
        assert "classes in order: &#x27;&lt;low&gt;&#x27;, &#x27;mid&#x27;, &#x27;high&#x27;" in shown


def test_a_matrix_without_names_says_its_order(drawn):
    X, y, _ = drawn
    matrix = np.array([[0, 1, 5], [2, 0, 1], [9, 3, 0]])
    names = np.array(["low", "mid", "high"])
    for learner in (AdversarialClassifier(matrix), CostSensitiveClassifier(cost=matrix)):
        assert repr(learner).endswith("# the matrix is in the order of order_: sorted labels")
        assert repr(clone(learner).fit(X, names[y])).endswith("# the matrix is in the order of order_: 'high', 'low', 'mid'")
        assert repr(clone(learner).set_params(order=names)).endswith("'low', 'mid', 'high'")
    named = pd.DataFrame(matrix, names, names)
    assert "# the matrix" not in repr(AdversarialClassifier(named).fit(X, names[y]))


# ---- abstaining -------------------------------------------------------------------------------------------------------
ABSTAINING = [AbstainingClassifier(method, alpha=0.3) for method in ("ova", "cs", "bep", "two_stage", "adversarial")]
ABSTAINING += [AdversarialClassifier("abstain", loss_options={"alpha": 0.2}), AbstainingClassifier("adversarial", alpha=[0.1, 0.3, 0.4])]
LABELS = [np.array([-1, 0, 7]), np.array([1.0, 2.0, 4.0]), np.array(["x", "yy", "z"]), np.array(["a", "b", "c"], dtype=object)]


@pytest.mark.parametrize("learner", ABSTAINING, ids=repr)
@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_one_mark_says_that_no_class_is_predicted(learner, labels, drawn):
    X, y, sample = drawn
    fitted = clone(learner).fit(X, labels[y])
    codes, predicted = fitted.predict_codes(X), fitted.predict(X)
    assert np.array_equal(predicted == advcli.ABSTAIN, codes == 3)
    assert (codes == 3).any() or learner.method == "two_stage"  # which may find nothing to reject
    assert list(predicted[codes < 3]) == list(labels[codes[codes < 3]])
    # 1 - the mean abstention loss
    alpha = np.broadcast_to(learner.alpha if hasattr(learner, "alpha") else 0.2, 3)
    loss = np.where(codes == 3, alpha[y], codes != y)
    assert fitted.score(X, labels[y]) == pytest.approx(1.0 - loss.mean())
    assert fitted.score(X, labels[y], sample) == pytest.approx(1.0 - np.average(loss, weights=sample))


def test_a_class_cannot_be_called_like_the_mark(drawn):
    X, y, _ = drawn
    names = np.array(["abstain", "b", "c"])[y]
    for learner in (ABSTAINING[0], ABSTAINING[-2]):
        with pytest.raises(ConfigError, match="'abstain' is a class and cannot say"):
            clone(learner).fit(X, names)
        assert clone(learner).set_params(extra_labels=["none"]).fit(X, names).predictions_[-1] == "none"


def test_rows_of_a_frame_name_what_is_no_class(drawn):
    X, y, _ = drawn
    costs = pd.DataFrame([[0.1, 0.1, 0.4], [0, 1, 1], [1, 1, 0], [1, 0, 1]], index=["ask", "a", "c", "b"], columns=list("abc"))
    fitted = AdversarialClassifier(costs).fit(X, np.array(list("abc"))[y])
    assert list(fitted.predictions_) == ["a", "b", "c", "ask"]
    assert list(AdversarialClassifier(costs.to_numpy()[[1, 3, 2, 0]]).fit(X, y).predictions_) == [0, 1, 2, "abstain"]


def test_an_alpha_beyond_its_theorems_is_said(drawn):
    X, y, _ = drawn
    for learner in (AbstainingClassifier("adversarial", alpha=0.7), AdversarialClassifier("abstain", loss_options={"alpha": 0.7})):
        with pytest.warns(UserWarning, match=r"alpha=0.7 is above 1/2.* from 1 - 1/3 on the best rule never abstains"):
            learner.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AbstainingClassifier("adversarial", alpha=0.5).fit(X, y)
