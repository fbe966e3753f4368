"""Classifiers of other packages: the same fits as without this package, in the same table, with their own grid."""

from __future__ import annotations

import functools
import json
import pickle
import sys
import types
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from advcli.cli import main
from advcli.core.errors import ConfigError, IncompatibleError, ModelError, NotConvergedWarning
from advcli.core.paths import conf_dir
from advcli.evaluation import Cell
from advcli.evaluation.sweeps.sweep import sweep
from advcli.learners import Method
from advcli.learners.options import candidates, reach
from advcli.learners.sklearn import OutsideClassifier
from advcli.models import read, save
from advcli.models.restored import rebuild
from advcli.testing import check_learner

pytestmark = pytest.mark.usefixtures("elsewhere")

RNG = np.random.default_rng(3)
Y = np.repeat([0, 1, 2], 15)
X = RNG.normal(size=(45, 4)) + Y[:, None]
NEW = RNG.normal(size=(30, 4)) + 1.0
LINEAR, AUTO = {"name": "linear"}, {"name": "auto"}
READY = ("logistic", "linear_svc", "svc", "random_forest", "hist_gradient_boosting", "nearest_neighbours", "dummy")
QUICK = ["dataset=iris", "protocol.n_splits=2", "protocol.folds=2"]


def group(name: str) -> dict[str, Any]:
    """Return a group ``loss`` of the package."""
    return yaml.safe_load((conf_dir() / "loss" / f"{name}.yaml").read_text(encoding="utf-8"))


def fitted(estimator: Any, y: Any = Y, rows: Any = X, **parameters: Any) -> OutsideClassifier:
    return OutsideClassifier(estimator, n_classes=3, **parameters).fit(rows, y)


# ---- one fit ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", READY)
def test_a_ready_name_is_the_estimator_itself(name: str) -> None:
    """Built from its YAML file at the first values of its grid, it predicts what the estimator alone does with the same seed."""
    loss = group(name)
    kind = Method(loss, LINEAR, AUTO).learner
    kind.check(loss, LINEAR, AUTO, 3)
    chosen = {key: values[0] for key, values in candidates(loss, "loss.options").items()}
    learner = Method(loss, LINEAR, AUTO, chosen).make(3, 7, 1e-3).fit(X, Y)
    alone = clone(learner.estimator_).set_params(**{key.rpartition(".")[2]: value for key, value in chosen.items()})
    alone = alone.set_params(random_state=7) if "random_state" in alone.get_params() else alone
    alone.fit(X, Y)
    np.testing.assert_array_equal(learner.predict(NEW), alone.predict(NEW))
    assert learner.certificate_ is None
    assert kind.has_probabilities(loss) == hasattr(alone, "predict_proba")
    if hasattr(alone, "predict_proba"):
        np.testing.assert_array_equal(learner.predict_proba(NEW), alone.predict_proba(NEW))
    if hasattr(alone, "decision_function"):
        np.testing.assert_array_equal(learner.decision_function(NEW), alone.decision_function(NEW))


@pytest.mark.parametrize("estimator", [LogisticRegression(), LogisticRegression, "sklearn.linear_model.LogisticRegression"])
def test_contract(estimator: Any) -> None:
    check_learner(OutsideClassifier(estimator))


@pytest.mark.parametrize("estimator", [SVC, "sklearn.neighbors.KNeighborsClassifier", DummyClassifier(strategy="stratified")])
def test_a_fit_repeats_its_bits_and_is_pickled(estimator: Any) -> None:
    learner = fitted(estimator)
    again, loaded = clone(learner).fit(X, Y), pickle.loads(pickle.dumps(learner))
    for other in (again, loaded):
        np.testing.assert_array_equal(other.potentials(NEW), learner.potentials(NEW))
        np.testing.assert_array_equal(other.predict(NEW), learner.predict(NEW))


def test_every_random_state_comes_from_the_seed() -> None:
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=5))
    assert fitted(forest, random_state=3).estimator_[-1].random_state == 3
    assert fitted(forest, random_state=3, options={"randomforestclassifier__random_state": 8}).estimator_[-1].random_state == 8
    scores = [fitted(forest, random_state=seed).potentials(NEW) for seed in (3, 3, 4)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert forest[-1].random_state is None, "the caller's estimator stays as it is"


@pytest.mark.parametrize("estimator", [LogisticRegression(), SVC(), RandomForestClassifier(n_estimators=5), KNeighborsClassifier(3)])
def test_a_class_without_rows_has_the_least_potential_and_no_probability(estimator: Any) -> None:
    learner = fitted(estimator, y=np.where(Y == 1, 2, Y))
    F = learner.potentials(NEW)
    assert F.shape == (30, 3)
    assert (F[:, 1] == F.min(axis=1)).all()
    assert set(learner.predict_codes(NEW)) <= {0, 2}
    if hasattr(learner, "predict_proba"):
        P = learner.predict_proba(NEW)
        assert (P[:, 1] == 0).all()
        np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)


def test_two_classes_have_two_potentials() -> None:
    learner = OutsideClassifier(LogisticRegression()).fit(X, Y > 0)
    F = learner.potentials(NEW)
    alone = LogisticRegression().fit(X, Y > 0).decision_function(NEW)
    np.testing.assert_array_equal(F[:, 1] - F[:, 0], alone)


def test_scores_of_pairs_are_no_potentials() -> None:
    """A one-against-one decision function has a column for each pair, as many as classes for three of them, and more for four."""
    y = np.repeat([0, 1, 2, 3], 10)
    rows = RNG.normal(size=(40, 3)) + y[:, None]
    learner = OutsideClassifier(SVC(decision_function_shape="ovo")).fit(rows, y)
    np.testing.assert_array_equal(learner.potentials(rows), np.eye(4)[learner.predict(rows)])


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(), SVC(), RandomForestClassifier(5), KNeighborsClassifier()])
def test_sparse_rows(estimator: Any) -> None:
    rows, new = sparse.csr_array(np.where(X > 1, X, 0.0)), sparse.csr_array(np.where(NEW > 1, NEW, 0.0))
    np.testing.assert_array_equal(fitted(estimator, rows=rows).predict(new), fitted(estimator, rows=rows.toarray()).predict(new.toarray()))


@pytest.mark.parametrize("estimator", [LogisticRegression(), SVC(), RandomForestClassifier(5), KNeighborsClassifier()])
def test_new_rows_are_stored_as_those_that_were_learned_from(estimator: Any) -> None:
    for rows, stored in ((X, sparse.csr_array(NEW)), (sparse.csr_array(X), NEW)):
        learner = fitted(estimator, rows=rows)
        np.testing.assert_array_equal(
            learner.potentials(stored), learner.potentials(NEW if hasattr(stored, "indptr") else sparse.csr_array(NEW))
        )


def test_sparse_rows_that_it_does_not_take() -> None:
    with pytest.raises(IncompatibleError, match="HistGradientBoostingClassifier needs dense rows"):
        fitted(HistGradientBoostingClassifier(), rows=sparse.csr_array(X))


def test_weights_reach_the_estimator() -> None:
    weights = RNG.integers(0, 4, size=45).astype(float)
    learner = OutsideClassifier(LogisticRegression(tol=1e-10, max_iter=10_000), n_classes=3).fit(X, Y, sample_weight=weights)
    repeated = LogisticRegression(tol=1e-10, max_iter=10_000).fit(
        np.repeat(X, weights.astype(int), axis=0), np.repeat(Y, weights.astype(int))
    )
    np.testing.assert_allclose(learner.decision_function(NEW), repeated.decision_function(NEW), atol=1e-5)


def test_weights_that_it_does_not_take() -> None:
    nearest = OutsideClassifier(KNeighborsClassifier(1), n_classes=3)
    with pytest.raises(IncompatibleError, match="KNeighborsClassifier needs rows that count the same"):
        nearest.fit(X, Y, sample_weight=np.arange(45.0))
    # rows of weight 0 are left out, and those that count the same need no weights
    some = (np.arange(45) % 2).astype(float)
    np.testing.assert_array_equal(nearest.fit(X, Y, sample_weight=some).predict(NEW), nearest.fit(X[1::2], Y[1::2]).predict(NEW))


def test_a_fit_that_did_not_converge_says_so() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner = fitted(LogisticRegression(max_iter=1))
    assert NotConvergedWarning in {each.category for each in caught}
    assert [remark.partition(":")[0] for remark in learner.remarks_] == ["LogisticRegression"]
    assert all("\n" not in remark for remark in learner.remarks_)


@pytest.mark.parametrize(
    ("estimator", "options", "said"),
    [
        ("sklearn.svm.LinearSCV", {}, "no 'LinearSCV' in sklearn.svm; did you mean LinearSV"),
        ("sklearn.nosuch.X", {}, "cannot import sklearn.nosuch: ModuleNotFoundError"),
        ("SVC", {}, "is no name to import"),
        (None, {}, "give loss.estimator=MODULE.CLASS"),
        (Ridge(), {}, "makes a Ridge, which is no classifier"),
        ("sklearn.linear_model.Ridge", {}, "makes a Ridge, which is no classifier"),
        ("os.system", {}, "os.system is a builtin_function_or_method, no classifier"),
        ("os.path.sep", {}, "is a str, no classifier"),
        (7, {}, "is a int, no classifier"),
        (SVC, {"kernl": 1}, "loss.options.kernl: SVC has no parameter 'kernl'; did you mean kernel"),
        (SVC(), {"kernl": 1}, "loss.options.kernl: SVC() has no parameter 'kernl'; did you mean kernel"),
        (SVC, {"C": -1}, "The 'C' parameter of SVC must be"),
        (make_pipeline(SVC()), {"svc__c": 1}, "has no parameter 'svc__c'; did you mean svc__C"),
    ],
)
def test_what_is_no_classifier_or_no_option_is_one_line(estimator: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OutsideClassifier(estimator, options=options).fit(X, Y)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["function", "plain", "made", "method", "instance", "estimator"])
def test_what_is_no_class_with_fit_is_refused_before_it_is_called(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    class Plain:
        def __init__(self, *given: Any, **options: Any) -> None:
            called.append("plain")

        def __call__(self, *given: Any) -> None:
            called.append("instance")

        def method(self, *given: Any) -> None:
            called.append("method")

    spied = types.ModuleType("spied")
    spied.function = lambda *given, **options: called.append("function")  # type: ignore[attr-defined]
    spied.plain, spied.made = Plain, functools.partial(Plain)  # type: ignore[attr-defined]
    spied.estimator = SVC()  # type: ignore[attr-defined]
    instance = Plain()
    spied.instance, spied.method = instance, instance.method  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spied", spied)
    called.clear()
    words = {"name": "sklearn", "estimator": f"spied.{name}", "options": {"command": 1}, "grid": None, "extend": None}
    for use in (
        lambda: OutsideClassifier(f"spied.{name}").fit(X, Y),
        lambda: OutsideClassifier.check(words, {"name": "linear"}, {"name": "auto"}, 3),
        lambda: OutsideClassifier.has_probabilities(words),
        lambda: Method(words, LINEAR, AUTO).sample.takes_weights,
    ):
        with pytest.raises(ConfigError, match=rf"loss.estimator=spied.{name} is a .*, no classifier"):
            use()
    assert called == []


# ---- files ------------------------------------------------------------------------------------------------------------
def test_a_fit_is_kept_by_pickle_at_the_users_word_alone(tmp_path: Path) -> None:
    learner = fitted(SVC())
    with pytest.raises(ConfigError, match=r"end in \.joblib"):
        save(learner, tmp_path / "m.model")
    assert not list(tmp_path.iterdir())
    save(learner, tmp_path / "m.joblib")
    with pytest.raises(ModelError, match="is a pickle, which executes what it holds: give trust=true"):
        read(tmp_path / "m.joblib")
    np.testing.assert_array_equal(read(tmp_path / "m.joblib", trust=True).predict(NEW), learner.predict(NEW))


class Bomb:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("boom"),)


def test_an_untrusted_pickle_is_not_executed(tmp_path: Path) -> None:
    (tmp_path / "m.joblib").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelError, match="trust=true"):
        read("m.joblib")
    (tmp_path / "m.model").write_bytes((tmp_path / "m.joblib").read_bytes())
    with pytest.raises(ModelError, match="it is not a model of advcli"):
        read("m.model", trust=True)
    assert not Path("boom").exists()
    with pytest.raises(ModelError, match="holds a NoneType, not a model of advcli"):
        read("m.joblib", trust=True)
    assert Path("boom").exists(), "trusted, it is"


def test_a_model_file_that_names_an_estimator_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    save(fitted(LogisticRegression()), tmp_path / "m.model")
    with zipfile.ZipFile(tmp_path / "m.model") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["model.json"])
    document["parameters"]["estimator"] = "evil.Thing"
    with pytest.raises(ModelError, match=r"a model file holds no estimator 'evil\.Thing'"):
        rebuild(document, members)
    assert "evil" not in sys.modules


KEPT = [
    LogisticRegression(C=0.3),
    LogisticRegression(solver="liblinear"),
    LinearSVC(class_weight={0: 2.0}, multi_class="crammer_singer"),
    LinearSVC(fit_intercept=False),
    Perceptron(),
    SGDClassifier(loss="log_loss"),
    SGDClassifier(loss="modified_huber"),
]


@pytest.mark.parametrize("features", ["linear", "kernel_pca", "nystroem"])
@pytest.mark.parametrize("estimator", KEPT, ids=repr)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_linear_classifiers_are_kept_as_numbers(estimator: Any, features: str, k: int, tmp_path: Path) -> None:
    if k == 3 and getattr(estimator, "solver", "") == "liblinear":
        estimator = LogisticRegression(solver="newton-cg")
    names = np.array(["low", "mid", "high"])
    learner = OutsideClassifier(estimator, features=features, n_classes=None).fit(X, names[np.minimum(Y, k - 1)])
    save(learner, tmp_path / "m.model")
    again = read(tmp_path / "m.model").estimator
    assert type(again.estimator_) is type(estimator)
    for method in ("predict", "decision_function", "predict_proba"):
        assert hasattr(again, method) == hasattr(learner, method)
        if hasattr(learner, method):
            np.testing.assert_array_equal(getattr(again, method)(NEW), getattr(learner, method)(NEW))
    assert again.remarks_ == learner.remarks_


def test_a_class_without_rows_is_kept(tmp_path: Path) -> None:
    learner = OutsideClassifier(LogisticRegression(), n_classes=5).fit(X, np.where(Y == 1, 4, Y))
    save(learner, tmp_path / "m.model")
    np.testing.assert_array_equal(read(tmp_path / "m.model").estimator.predict_proba(NEW), learner.predict_proba(NEW))


@pytest.mark.parametrize(
    "estimator", [make_pipeline(LogisticRegression()), type("LogisticRegression", (LogisticRegression,), {})()], ids=repr
)
def test_what_is_not_listed_is_no_model_file(estimator: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kept by pickle alone"):
        save(OutsideClassifier(estimator).fit(X, Y), tmp_path / "m.model")


def test_a_linear_model_goes_through_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("logistic", "linear_svc"):
        assert main(["fit", *QUICK, f"loss={name}", "loss.grid.C=[1,10]", f"out={name}.model"]) == 0
        assert "hyper-parameters: loss.options.C = 1" in capfd.readouterr().out
        Path("new.csv").write_text("sepal length (cm),sepal width (cm),petal length (cm),petal width (cm)\n5,3.5,1.4,0.2\n6.6,3,5.6,2.1\n")
        assert main(["predict", f"model={name}.model", "input=new.csv", f"out={name}.csv"]) == 0
        table = pd.read_csv(f"{name}.csv")
        assert table["label"].tolist() == ["setosa", "virginica"]
        assert len(table.filter(like="probability_").columns) == (3 if name == "logistic" else 0)


def test_fit_and_predict(capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("random_forest", "svc", "nearest_neighbours", "hist_gradient_boosting"):
        assert main(["fit", *QUICK, f"loss={name}", "out=m.model"]) == 2
        err = capfd.readouterr().err
        assert len(err.splitlines()) == 1
        assert "end in .joblib" in err
    assert main(["fit", *QUICK, "loss=random_forest", "loss.grid=null", "out=m.joblib"]) == 0
    Path("new.csv").write_text("sepal length (cm),sepal width (cm),petal length (cm),petal width (cm)\n5,3.5,1.4,0.2\n6.6,3,5.6,2.1\n")
    assert main(["predict", "model=m.joblib", "input=new.csv", "out=p.csv"]) == 2
    assert main(["predict", "model=m.joblib", "input=new.csv", "out=p.csv", "trust=true"]) == 0
    table = pd.read_csv("p.csv")
    assert table["label"].tolist() == ["setosa", "virginica"]
    np.testing.assert_allclose(table.filter(like="probability_").sum(axis=1), 1.0, rtol=1e-12)


# ---- sweeps -----------------------------------------------------------------------------------------------------------
def test_the_search_is_the_protocols_own(capfd: pytest.CaptureFixture[str]) -> None:
    """Same folds, errors pooled over them, the first of the best: all of it again by scikit-learn alone."""
    from advcli.data import load as load_data
    from advcli.evaluation.splits import make_folds, random_splits

    grid = [0.01, 1, 100, 10]
    words = ["loss=sklearn", "loss.estimator=sklearn.linear_model.LogisticRegression", "loss.options={max_iter:3000}"]
    assert main([*QUICK, "protocol.search=first_split", *words, f"loss.grid={{C:{grid}}}".replace(" ", ""), "name=x"]) == 0
    data = load_data({"name": "iris", "source": "sklearn"}, Path())
    train, _ = random_splits(150, 2, 0.7, 0, "iris", None)[0]
    rows, labels = data.X[train], data.y[train]
    wrong = []
    for C in grid:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=3000))
        wrong.append(
            sum(
                int((model.fit(rows[a], labels[a]).predict(rows[b]) != labels[b]).sum()) for a, b in make_folds(len(train), 2, 0, "iris", 1)
            )
        )
    runs, search = pd.read_csv("results/x/runs.csv"), pd.read_csv("results/x/search.csv")
    assert set(runs["loss.options.C"]) == {grid[int(np.argmin(wrong))]}
    assert search["loss.options.C"].tolist() == grid * 2
    found = (search["value"] * search["n_test"]).groupby(search["loss.options.C"]).sum()
    assert [round(found[C]) for C in grid] == wrong
    assert runs["C"].isna().all()
    assert runs["relative_gap"].isna().all()


@pytest.mark.slow
def test_values_of_any_kind_and_workers(capfd: pytest.CaptureFixture[str]) -> None:
    """Text, null, numbers and lists are searched, stand in the rows as text, and the rows do not depend on the number of workers."""
    words = ["-m", *QUICK, "protocol.search=first_split", "loss=random_forest,svc,zero_one", "hyper.C=1"]
    for workers in (1, 2):
        assert main([*words, f"workers={workers}", f"name=w{workers}"]) == 0
    tables = [pd.read_csv(f"results/w{workers}/runs.csv").drop(columns=["fit_seconds", "predict_seconds"]) for workers in (1, 2)]
    pd.testing.assert_frame_equal(*tables)
    forests = tables[0][tables[0]["loss"] == "random_forest"]
    assert set(forests["loss.options.max_features"]) <= {"sqrt", "0.5"}
    assert (tables[0].loc[tables[0]["loss"] == "zero_one", "relative_gap"] <= 1e-3).all()
    capfd.readouterr()
    words = [
        "loss=sklearn",
        "loss.estimator=sklearn.tree.DecisionTreeClassifier",
        "loss.grid={max_depth:[1,null],criterion:[gini,entropy]}",
    ]
    assert main([*QUICK, "protocol.search=first_split", *words, "name=tree"]) == 0
    assert set(pd.read_csv("results/tree/search.csv", keep_default_na=False)["loss.options.max_depth"].astype(str)) == {"1", "null"}
    assert main(["report", "results=results/tree"]) == 0
    assert "loss.options.criterion = " in Path("results/tree/report.md").read_text()
    assert "no certificate" in Path("results/tree/report.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["loss=logistic", "loss.options.Q=1"], "has no parameter 'Q'"),
        (["loss=logistic", "loss.grid.Q=[1]"], "has no parameter 'Q'"),
        (["loss=logistic", "loss.grid.C=[1,-1]"], "The 'C' parameter of LogisticRegression must be"),
        (["loss=logistic", "loss.grid.C=[]"], "loss.grid.C=[] is empty"),
        (["loss=logistic", "loss.grid=1"], "is no group of lists"),
        (["loss=logistic", "loss.options=1"], "is no group of options"),
        (
            ["loss=logistic", "loss.estimator=sklearn.linear_model.Ridge"],
            "loss.estimator=sklearn.linear_model.Ridge makes a Ridge, which is no classifier",
        ),
        (["loss=logistic", "solver=dual"], "loss=logistic is an algorithm of its own"),
        (["loss=logistic", "features=rbf"], "loss=logistic needs linear scores"),
        (["loss=zero_one", "loss.options={a:1}"], "unknown key 'loss.options'"),
        (["loss=uma", "loss.grid={rule:[error]}"], "unknown key 'loss.grid'"),
    ],
)
def test_what_is_refused_before_work(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "protocol.search=first_split", *words, "name=x"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1, err
    assert said in err
    assert not Path("results").exists()


def test_weights_of_the_data_are_refused_where_it_takes_none(capfd: pytest.CaptureFixture[str]) -> None:
    lines = [f"{at % 7},{at % 5},{1 + at % 3},{'ab'[at % 2]}" for at in range(40)]
    Path("t.csv").write_text("\n".join(["one,two,often,kind", *lines]) + "\n")
    data = ["dataset=csv", "dataset.path=t.csv", "dataset.target=kind", "dataset.weight=often", *QUICK[1:]]
    assert main([*data, "loss=nearest_neighbours", "name=x"]) == 2
    err = capfd.readouterr().err
    assert "loss=nearest_neighbours needs rows that count the same; csv has example weights, which it does not take" in err
    assert len(err.splitlines()) == 1
    assert main([*data, "loss=logistic", "name=y"]) == 0


def test_estimators_are_cells_of_a_sweep(tmp_path: Path) -> None:
    cell = {"dataset": "iris", "protocol.n_splits": 2, "hyper.C": 1}
    given = [{**cell, "loss": "zero_one"}, {**cell, "loss": SVC(C=3.0, kernel="linear")}, {**cell, "loss": LogisticRegression()}]
    rows = sweep(given, tmp_path / "x", workers=1, quiet=True)
    assert list(dict.fromkeys(rows["method"])) == ["LogisticRegression linear", "SVC", "zero_one linear"]
    words = "dataset=iris protocol.n_splits=2 loss=sklearn loss.estimator=sklearn.svm.SVC loss.options={C:3,kernel:linear}"
    alone = sweep(words, tmp_path / "y", workers=1, quiet=True)
    assert alone["value"].tolist() == rows.loc[rows["loss"] == "SVC", "value"].tolist()
    for estimator, said in (
        (SVC, "give an estimator, SVC()"),
        (make_pipeline(SVC()), "no plain data"),
        (SVC(class_weight={0: 1}), "no plain"),
    ):
        with pytest.raises(ConfigError, match=said.replace("(", r"\(").replace(")", r"\)")):
            sweep([{**cell, "loss": estimator}], tmp_path / "z", workers=1, quiet=True)


PLUGIN = """
from dataclasses import dataclass, field
from typing import Any

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from advcli.learners import register
from advcli.learners.sklearn import OutsideClassifier


def pairs():
    return make_pipeline(PolynomialFeatures(2), LinearSVC())


@register("pairs")
@dataclass(kw_only=True, eq=False, repr=False)
class PairsClassifier(OutsideClassifier):
    estimator: Any = field(default=pairs, kw_only=False)
"""


def test_a_plug_in_and_a_column_without_python(capfd: pytest.CaptureFixture[str]) -> None:
    folder = Path("my/loss")
    folder.mkdir(parents=True)
    (folder / "pairs.py").write_text(PLUGIN)
    (folder / "pairs.yaml").write_text("# Pairs.\nname: pairs\noptions: {}\ngrid:\n  linearsvc__C: [0.1, 1]\n")
    (folder / "tree.yaml").write_text(
        "# Tree.\nname: tree\nlearner: sklearn\nestimator: sklearn.tree.DecisionTreeClassifier\noptions: {}\ngrid: {}\n"
    )
    words = ["--config-dir", "my", "-m", *QUICK, "loss=pairs,tree", "workers=1", "name=x"]
    assert main(words) == 0
    rows = pd.read_csv("results/x/runs.csv")
    assert set(rows["method"]) == {"pairs", "tree"}
    assert set(rows.loc[rows["loss"] == "pairs", "loss.options.linearsvc__C"]) <= {0.1, 1.0}


def test_an_estimator_that_raises_is_a_failed_cell(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    Path("broken_classifier.py").write_text(
        "from sklearn.dummy import DummyClassifier\n\n\nclass Broken(DummyClassifier):\n"
        "    def fit(self, X, y, sample_weight=None):\n        raise RuntimeError('no such\\nluck')\n"
    )
    monkeypatch.syspath_prepend(".")
    assert main([*QUICK, "loss=sklearn", "loss.estimator=broken_classifier.Broken", "name=x"]) == 1
    assert "RuntimeError: no such luck" in capfd.readouterr().err
    assert set(pd.read_csv("results/x/runs.csv")["status"]) == {"failed"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"grid": {"C": [0.1, 1]}, "extend": {"C": [1, 0.1]}}, r"loss.extend.C=\[1, 0.1\] is not valid; give \[SMALLEST,LARGEST\]"),
        ({"grid": {"C": [0.1, 1]}, "extend": {"C": 3}}, r"loss.extend.C=3 is not valid"),
        ({"grid": {"C": [0.1, 1]}, "extend": [1, 2]}, r"loss.extend=\[1, 2\] is no group of limits"),
        ({"grid": {"l1_ratio": [0.1, 0.5]}, "extend": {"l1_ratio": [0.01, 3]}}, "'l1_ratio' parameter .* Got 3"),
    ],
)
def test_limits_that_mean_nothing_are_refused_before_any_work(words, says):
    loss = {"name": "sklearn", "learner": "sklearn", "estimator": "sklearn.linear_model.LogisticRegression", "options": {}, **words}
    with pytest.raises(ConfigError, match=says):
        OutsideClassifier.check(loss, {"name": "linear"}, {"name": "auto"}, None)


def test_limits_of_what_is_fixed_or_has_no_ends_are_none():
    extend = {"C": [1, 64], "gamma": None, "degree": [1, 9], "kernel": [1, 2]}
    grid = {"C": [1, 8], "gamma": [0.1, 1], "degree": [3], "kernel": ["rbf", "poly"]}
    loss = {"name": "sklearn", "estimator": "sklearn.svm.SVC", "grid": grid, "extend": extend}
    assert reach(loss, "loss.options") == {"loss.options.C": (1, 64)}
    assert reach({**loss, "options": {"C": 2}}, "loss.options") == {}
    assert reach({**loss, "grid": {"gamma": [0.1, 1]}}, "loss.options") == {}


@pytest.mark.parametrize(("name", "named"), [(name, name in ("logistic", "linear_svc")) for name in READY])
def test_a_method_is_not_named_by_features_that_say_nothing_of_it(name: str, named: bool) -> None:
    cell = Cell({"name": "iris"}, group(name), LINEAR, AUTO, {})
    assert cell.method == (f"{name} linear" if named else name)
    assert replace(cell, features={"name": "nystroem"}).method == f"{name} nystroem"
    assert replace(cell, loss={**group(name), "calibrate": "sigmoid"}).method == cell.method, "refused elsewhere, under its name"
    assert replace(cell, loss={"name": "nowhere"}).method == "nowhere linear"
