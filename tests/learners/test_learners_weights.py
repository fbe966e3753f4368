"""Weights and warm starts mean one thing in every learner that has them: repeated rows, weights of classes, the same certified optimum."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from support.registered import of_rows

import advcli
from advcli.core.errors import ConfigError, NotConvergedWarning
from advcli.learners.base import registry

K, EACH = 4, 10
TREE = [["root", "a"], ["root", "b"], ["a", "0"], ["a", "1"], ["b", "2"], ["b", "3"]]
SEQUENCE = 5  # rows
CLASS_WEIGHT = {0: 0.5, 1: 3.0, 3: 2.0}
# these weigh nothing, or rows that are not theirs to weigh
WITHOUT_WEIGHTS = {"PerceptronClassifier", "OutsideClassifier", "SemiSupervisedSVM"}


def every():
    """Return the package's classes of learners by name."""
    classes = [registry.get(name) for name in registry] + [getattr(advcli, name) for name in advcli.__all__]
    in_package = (each for each in classes if inspect.isclass(each) and each.__module__.startswith("advcli."))
    return {each.__name__: each for each in in_package if of_rows(each)}


def having(*names):
    """Return the names of the classes whose parameters have all of these."""
    return [name for name, cls in sorted(every().items()) if set(names) <= set(inspect.signature(cls.__init__).parameters)]


def made(name, **options):
    cls = every()[name]
    has = inspect.signature(cls.__init__).parameters
    needed = {"hierarchy": TREE, "confusion": 0.6 * np.eye(K) + 0.1, "tol": 1e-3}
    if cls.has_costs:
        needed["cost"] = np.abs(np.arange(K)[:, None] - np.arange(K))
    if issubclass(cls, advcli.AbstainingClassifier):
        needed["alpha"] = 0.3
    if name == "UMAClassifier":
        needed |= {"tol": 1e-6, "max_updates": 50}
    return cls(**{option: value for option, value in needed.items() if option in has}, **options)


@pytest.fixture(scope="module")
def rows():
    """Rows, labels, sets of labels, and whole numbers how often each row counts, the same for all rows of a sequence."""
    random = np.random.default_rng(11)
    y = random.permutation(np.repeat(np.arange(K), EACH))
    X = random.normal(size=(len(y), 3)) + 0.6 * y[:, None]
    Y = np.eye(K, dtype=int)[y] | (random.random((len(y), K)) < 0.3)
    return X, y, Y, random.integers(0, 4, len(y)), np.repeat(random.integers(1, 4, len(y) // SEQUENCE), SEQUENCE)


def fit(learner, X, y, Y, weight=None, sequence=None):
    """Fit to sequences, to sets of labels, or to rows with one label."""
    if learner.has_groups:
        return learner.fit(X, y, sample_weight=weight, groups=np.arange(len(y)) // SEQUENCE if sequence is None else sequence)
    return learner.fit(X, Y if isinstance(learner, advcli.MultilabelClassifier) else y, sample_weight=weight)


def same_optimum(one, other):
    """Each lower bound lies below the other's upper one: both certify one and the same minimum."""
    assert one.converged
    assert other.converged
    room = 1e-12 * abs(one.primal)
    assert one.dual <= other.primal + room
    assert other.dual <= one.primal + room


@pytest.mark.parametrize("name", sorted(set(every()) - WITHOUT_WEIGHTS))
def test_a_whole_weight_is_so_many_rows(name, rows):
    X, y, Y, single, by_sequence = rows
    learner = made(name)
    if learner.has_groups:
        at = np.concatenate([np.tile(part, by_sequence[part[0]]) for part in np.arange(len(y)).reshape(-1, SEQUENCE)])
        weighted = fit(clone(learner), X, y, Y, by_sequence)
        repeated = fit(clone(learner), X[at], y[at], Y[at], sequence=np.arange(len(at)) // SEQUENCE)
    else:
        at = np.repeat(np.arange(len(y)), single)
        weighted, repeated = fit(clone(learner), X, y, Y, single), fit(clone(learner), X[at], y[at], Y[at])
    if weighted.certificate_ is None:
        np.testing.assert_allclose(weighted.potentials(X), repeated.potentials(X), rtol=1e-7, atol=1e-9)
    else:
        assert weighted.lam_ == pytest.approx(repeated.lam_, rel=1e-12)
        same_optimum(weighted.certificate_, repeated.certificate_)


@pytest.mark.parametrize("name", having("class_weight"))
def test_a_weight_of_a_class_is_one_of_its_rows(name, rows):
    X, y, Y, single, _ = rows
    own = np.array([CLASS_WEIGHT.get(label, 1.0) for label in y.tolist()])
    for weight in (None, single):
        by_class = fit(made(name, class_weight=CLASS_WEIGHT), X, y, Y, weight)
        by_row = fit(made(name), X, y, Y, own if weight is None else own * weight)
        np.testing.assert_array_equal(by_class.potentials(X), by_row.potentials(X))
        # and so whatever the labels are called
        named = made(name, class_weight={str(label): value for label, value in CLASS_WEIGHT.items()})
        fit(named, X, _named(by_class, y), Y, weight)
        np.testing.assert_array_equal(named.potentials(X), by_row.potentials(X))


def _named(learner, y):
    """Return the labels as text; of learners that count steps as an ordered column."""
    import pandas as pd

    text = y.astype(str)
    return pd.Series(pd.Categorical(text, [str(k) for k in range(K)], ordered=True)) if learner.counts_steps else text


@pytest.mark.parametrize("name", having("class_weight"))
def test_balanced_classes_weigh_the_same(name, rows):
    X, y, Y, *_ = rows
    kept = np.flatnonzero((y != 2) | (np.arange(len(y)) % 3 == 0))
    counts = np.bincount(y[kept])
    balanced = fit(made(name, class_weight="balanced"), X[kept], y[kept], Y[kept])
    by_row = fit(made(name), X[kept], y[kept], Y[kept], (len(kept) / (K * counts))[y[kept]])
    np.testing.assert_allclose(balanced.potentials(X), by_row.potentials(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", having("warm_start"))
def test_a_warm_start_ends_at_the_same_optimum_in_fewer_passes(name, rows):
    X, y, Y, single, by_sequence = rows
    weight = by_sequence if every()[name].has_groups else single
    learner = fit(made(name, C=3.0, warm_start=True), X, y, Y, weight)
    cold = learner.certificate_
    again = fit(learner, X, y, Y, weight).certificate_
    same_optimum(again, cold)
    assert again.passes < cold.passes
    stronger = fit(learner.set_params(C=2.5), X, y, Y, weight).certificate_
    same_optimum(stronger, fit(made(name, C=2.5), X, y, Y, weight).certificate_)
    # another problem begins anew
    other = fit(learner, X[::-1].copy(), y, Y, weight).certificate_
    begun_anew = fit(made(name, C=2.5), X[::-1].copy(), y, Y, weight).certificate_
    assert (other.primal, other.dual, other.passes) == (begun_anew.primal, begun_anew.dual, begun_anew.passes)


@pytest.mark.parametrize("name", having("verbose"))
def test_verbose_is_a_line_about_the_fit(name, rows, capsys):
    X, y, Y, *_ = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        fit(made(name, verbose=1), X, y, Y)
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert said.startswith(f"{name}: converged, certified relative gap")
    with pytest.raises(ConfigError, match=f"{name}: verbose='yes' must be true or false"):
        fit(made(name, verbose="yes"), X, y, Y)


def test_sets_of_labels_have_no_class_to_weigh(rows):
    X, _, Y, *_ = rows
    with pytest.raises(ConfigError, match="class_weight weighs rows by their one label, and these rows have several: give fit a sample"):
        registry.get("nhsvm")(hierarchy=TREE, n_classes=None, class_weight="balanced").fit(X, Y)
    assert not {"MultilabelClassifier", "ChainClassifier", "PerceptronClassifier"} & set(having("class_weight"))


def test_a_pickle_of_a_structured_learner_begins_anew(rows):
    X, _, Y, *_ = rows
    learner = advcli.MultilabelClassifier(warm_start=True).fit(X, Y)
    loaded = pickle.loads(pickle.dumps(learner))
    assert loaded.fit(X, Y).certificate_.passes == advcli.MultilabelClassifier().fit(X, Y).certificate_.passes
