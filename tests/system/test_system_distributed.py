"""A fit to rows that workers read: the problem and the optimum of a fit to all rows in one place, and one line for what cannot be read."""

import importlib.util
import os
import signal
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from advcli import AdversarialClassifier, OrdinalAdversarialClassifier
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.learners.distributed import _read_parquet, fit
from advcli.models import load, save
from advcli.solvers.shards.rows import Workers
from advcli.solvers.shards.solver import DistributedSolver

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason='ray is not installed; pip install "advcli[scale]" has it')
NAMES = np.array(["ash", "beech", "cedar", "fir"])
COLUMNS = ["height", "girth", "shade"]


@pytest.fixture
def in_process(monkeypatch):
    """All workers in this process."""
    monkeypatch.setattr(DistributedSolver, "held", lambda self, makers: Workers(makers))


def table(n=300, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = NAMES[np.argmax(np.column_stack([X, X.sum(axis=1)]) + random.normal(size=(n, 4)), axis=1)]
    order = np.argsort(y, kind="stable")  # so that parts of the rows lack classes
    return X[order], y[order], random.uniform(0.0, 2.0, n)


def parts(*arrays, count=3):
    ends = np.linspace(0, arrays[0].shape[0], count + 1).astype(int)
    return [partial(tuple, [each[a:b] for each in arrays]) for a, b in pairwise(ends)]


def sharded(kind=AdversarialClassifier, workers=3, **parameters):
    return kind(solver="distributed", solver_options={"workers": workers}, tol=1e-7, **parameters)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (AdversarialClassifier, {}),
        (AdversarialClassifier, {"class_weight": "balanced", "C": 10.0}),
        (AdversarialClassifier, {"class_weight": {"ash": 3.0, "fir": 0.5}, "fit_intercept": False, "lam": 0.01}),
        (AdversarialClassifier, {"loss": "cs"}),
        (AdversarialClassifier, {"loss": "abstain", "extra_labels": ["?"]}),
        (AdversarialClassifier, {"loss": [[-1, 1, 1, 0], [0, -2, 1, 1], [1, 1, -1, 1], [0, 1, 1, 0]]}),
        (OrdinalAdversarialClassifier, {"order": NAMES[::-1]}),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_same_optimum_as_a_fit_to_all_rows(kind, parameters, sparse, in_process):
    X, y, weight = table()
    X = sp.csr_array(X) if sparse else X
    there = fit(sharded(kind, **parameters), parts(X, y, weight))
    here = kind(**parameters, tol=1e-7).fit(X, y, sample_weight=weight)
    assert there.certificate_.converged
    assert there.certificate_.solver == "distributed"
    assert there.certificate_.scale == pytest.approx(here.certificate_.scale, rel=1e-5)
    assert there.certificate_.game_value == pytest.approx(here.certificate_.game_value, rel=1e-3, nan_ok=True)
    for name in ("primal", "dual"):
        assert abs(getattr(there.certificate_, name) - getattr(here.certificate_, name)) <= 1e-6 * there.certificate_.scale
    assert there.objective(X, y, sample_weight=weight) == pytest.approx(there.certificate_.primal, rel=1e-12)
    assert there.classes_.tolist() == here.classes_.tolist()
    assert there.lam_ == pytest.approx(here.lam_, rel=1e-12)
    assert (there.predict(X) == here.predict(X)).mean() > 0.99
    assert there.n_features_in_ == 3


def test_certificate_is_of_all_rows_and_of_this_theta(in_process):
    """A fit that was stopped early: P is that of its theta on all rows, and the bound lies below the optimum."""
    X, y, weight = table()
    optimum = AdversarialClassifier(C=100.0, tol=1e-8).fit(X, y, sample_weight=weight).certificate_.primal
    with pytest.warns(NotConvergedWarning, match="max_passes"):
        found = fit(sharded(C=100.0, max_passes=7), parts(X, y, weight))
    assert found.certificate_.primal == pytest.approx(found.objective(X, y, sample_weight=weight), rel=1e-12)
    assert found.certificate_.dual < optimum < found.certificate_.primal
    assert not found.certificate_.converged


def test_model_is_saved_as_any_other(in_process, tmp_path):
    X, y, _ = table()
    found = fit(sharded(), parts(X, y))
    save(found, tmp_path / "trees.model")
    model = load(tmp_path / "trees.model")
    assert (model.predict(X) == found.predict(X)).all()
    assert model.certificate_.relative_gap == found.certificate_.relative_gap


def test_one_row_a_worker(in_process):
    X, y, _ = table(n=12)
    y[:4] = NAMES
    found = fit(sharded(workers=12), parts(X, y, count=12))
    assert found.certificate_.primal == pytest.approx(AdversarialClassifier(tol=1e-7).fit(X, y).certificate_.primal, rel=1e-6)


def test_line_about_the_fit(in_process, capsys):
    X, y, _ = table()
    fit(sharded(verbose=1), parts(X, y))
    assert "AdversarialClassifier: converged, certified relative gap" in capsys.readouterr().out


def spoilt(what):
    X, y, weight = table()
    if what == "nan":
        X[250, 1] = np.nan
    if what == "huge":
        X[250, 1] = 1e200
    if what == "weight":
        weight[7] = -1.0
    if what == "one class":
        y[:] = "ash"
    read = parts(X, y, weight)
    if what == "columns":
        read[1] = partial(tuple, [X[:9, :2], y[:9], weight[:9]])
    if what == "labels":
        read[1] = partial(tuple, [X[:9], y[:8], weight[:9]])
    if what == "type":
        read[1] = partial(tuple, [X[:9], np.arange(9), weight[:9]])
    if what == "empty":
        read[1] = partial(tuple, [X[:0], y[:0], weight[:0]])
    return read


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("nan", "column 2 holds values that are missing or infinite"),
        ("huge", "X"),
        ("weight", "weights of the rows must be finite numbers of at least 0"),
        ("one class", "one class only"),
        ("columns", "part 2 of the rows has other columns than part 1"),
        ("type", "part 2 of the rows has labels of another type than part 1"),
        ("labels", "has 9 rows, and labels or weights of another number"),
        ("empty", "part of the rows is empty: ask for fewer workers"),
    ],
)
def test_rows_that_cannot_be_used(what, text, in_process):
    with pytest.raises(ValueError, match=text):
        fit(sharded(), spoilt(what))


@pytest.mark.parametrize(
    ("estimator", "error", "text"),
    [
        (AdversarialClassifier(), IncompatibleError, "needs solver=distributed; this estimator has solver=auto"),
        (sharded(features="rbf"), IncompatibleError, "needs linear features without options; this estimator has features=rbf"),
        (sharded(features_options={"moments": "box"}), IncompatibleError, "needs linear features without options"),
        (sharded(calibrate="sigmoid"), ConfigError, "calibrate=sigmoid needs all rows in one place"),
        (sharded(warm_start=True), ConfigError, "warm_start=True needs all rows in one place"),
        (sharded(C=-1.0), ConfigError, "C"),
        (sharded(workers=4), ConfigError, "3 functions read the rows"),
        (sharded(loss="zero"), ConfigError, "zero"),
    ],
)
def test_estimators_that_cannot_be_fitted_so(estimator, error, text, in_process):
    X, y, _ = table()
    with pytest.raises(error, match=text):
        fit(estimator, parts(X, y))


def test_labels_of_functions_have_no_column():
    X, y, _ = table()
    with pytest.raises(ConfigError, match="label and weight name columns of parquet files"):
        fit(sharded(), parts(X, y), label="y")
    with pytest.raises(ConfigError, match="rows must be a path of parquet files, or functions"):
        fit(sharded(), [X, X, X])


# ---- parquet --------------------------------------------------------------------------------------------------------
def write(folder, n=300, sizes=(70, 1, 200, 29), group=30):
    """Write the table to files of several groups of rows each."""
    pytest.importorskip("pyarrow", reason='pip install "advcli[scale]" has it')
    X, y, weight = table(n)
    frame = pd.DataFrame(X, columns=COLUMNS).assign(tree=y, often=weight)
    frame["girth"] = frame["girth"].astype(np.float32)
    ends = np.cumsum([0, *sizes])
    for at, (a, b) in enumerate(pairwise(ends)):
        frame[a:b].to_parquet(folder / f"part{at}.parquet", row_group_size=group, index=False)
    return frame


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_parquet_folder(workers, in_process, tmp_path):
    frame = write(tmp_path)
    found = fit(sharded(workers=workers), tmp_path, label="tree", weight="often")
    here = AdversarialClassifier(tol=1e-7).fit(frame[COLUMNS], frame["tree"], sample_weight=frame["often"])
    assert found.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-6)
    assert found.feature_names_in_.tolist() == COLUMNS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (found.predict(frame[COLUMNS]) == here.predict(frame[COLUMNS])).mean() > 0.99
    again = fit(sharded(workers=workers), str(tmp_path / "part*.parquet"), label="tree", weight="often")
    assert np.array_equal(again.theta_, found.theta_)


@pytest.mark.parametrize("begin", [0, 29, 30, 69, 70, 71, 270, 299])
def test_every_part_of_parquet_files_has_its_rows(begin, tmp_path):
    frame = write(tmp_path)
    files = [(str(tmp_path / f"part{at}.parquet"), size) for at, size in enumerate((70, 1, 200, 29))]
    for end in sorted({begin + 1, min(begin + 41, 300), 300}):
        X, labels, weights = _read_parquet(files, begin, end, COLUMNS, "tree", "often")
        part = frame[begin:end]
        np.testing.assert_array_equal(X, part[COLUMNS])
        np.testing.assert_array_equal(labels, part["tree"])
        np.testing.assert_array_equal(weights, part["often"])


def test_parquet_that_cannot_be_read(in_process, tmp_path):
    frame = write(tmp_path)
    with pytest.raises(DataError, match="has no column 'leaf'; it has height, girth, shade, tree, often"):
        fit(sharded(), tmp_path, label="leaf")
    with pytest.raises(ConfigError, match="name the column of the labels"):
        fit(sharded(), tmp_path)
    with pytest.raises(DataError, match="no parquet files there"):
        fit(sharded(), tmp_path / "nowhere", label="tree")
    with pytest.raises(DataError, match="300 rows, fewer than the 301 workers"):
        fit(sharded(workers=301), tmp_path, label="tree")
    frame.assign(tree=None).to_parquet(tmp_path / "part9.parquet")
    with pytest.raises(DataError, match=r"part9.parquet: column 'tree' lacks \d+ labels"):
        fit(sharded(), tmp_path, label="tree", weight="often")
    frame.assign(girth="wide").to_parquet(tmp_path / "part9.parquet")
    with pytest.raises(DataError, match=r"part9.parquet: column 'girth' holds values that are no numbers"):
        fit(sharded(), tmp_path, label="tree", weight="often")
    frame.assign(girth=[None, *frame["girth"][1:]]).to_parquet(tmp_path / "part9.parquet")
    with pytest.raises(DataError, match="column 'girth' holds values that are missing or infinite"):
        fit(sharded(), tmp_path, label="tree", weight="often")
    frame.rename(columns={"girth": "size"}).to_parquet(tmp_path / "part9.parquet")
    with pytest.raises(DataError, match=r"part9.parquet has other columns than .*part0.parquet"):
        fit(sharded(), tmp_path, label="tree", weight="often")
    (tmp_path / "part9.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"part9.parquet is no parquet file"):
        fit(sharded(), tmp_path, label="tree", weight="often")


class Deadly:
    """Reads the rows of a file, and the first time dies of them."""

    def __init__(self, folder, at):
        self.folder, self.at = folder, at

    def __call__(self):
        mark = self.folder / f"died{self.at}"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        X, y, weight = table()
        return X[self.at :: 2], y[self.at :: 2], weight[self.at :: 2]


@pytest.mark.slow
@needs_ray
def test_worker_that_dies_while_it_reads_reads_again(tmp_path):
    X, y, weight = table()
    found = fit(sharded(workers=2), [Deadly(tmp_path, 0), Deadly(tmp_path, 1)])
    assert found.solution_.memory["restarted"] == 2
    here = AdversarialClassifier(tol=1e-7).fit(X, y, sample_weight=weight)
    assert found.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-6)


@pytest.mark.slow
@needs_ray
def test_error_at_a_worker_is_its_own_line():
    with pytest.raises(DataError, match=r"^column 2 holds values that are missing or infinite$"):
        fit(sharded(), spoilt("nan"))
