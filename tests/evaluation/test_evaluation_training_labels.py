"""Which labels methods see: noise, the semi-supervised protocol, the views, and cells that run with them."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from advcli.config.protocol import Protocol
from advcli.core.errors import ConfigError
from advcli.data.labels.confusion import estimate_confusion
from advcli.evaluation.recipe import Recipe
from advcli.evaluation.runner import Cell, run_cell
from advcli.evaluation.selection import Axes
from advcli.evaluation.splits import SplitSeeds
from advcli.evaluation.training_labels import training_labels
from advcli.learners import Method
from advcli.results.folder import ResultsFolder

LINEAR = {"name": "linear"}
BLOBS = {
    "name": "blobs",
    "source": "synthetic",
    "kind": "blobs",
    "rows": 400,
    "features": 4,
    "classes": 4,
    "noise": 0.5,
    "flip": 0.0,
    "seed": 0,
}
PAIRWISE = {"name": "pairwise", "rate": 0.4}


def rows(n=300, k=3, seed=0):
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    return 4.0 * np.eye(k)[y] + random.standard_normal((n, k)), y.astype(np.intp)


def labels(noise=None, split=1, X=None, truth=None, **protocol):
    if X is None:
        X, truth = rows()
    k = int(truth.max()) + 1
    cell = SimpleNamespace(noise=noise, protocol=Protocol(**protocol), features=LINEAR)
    return training_labels(cell, X, truth, tuple("abcdefgh"[:k]), SplitSeeds(0, "d", split))


def view(labels, loss):
    method, codes, fitted_rows = labels.view(Method(loss, LINEAR, {"name": "auto"}))
    return method.loss, codes, fitted_rows


def test_without_noise_labels_are_as_they_are():
    noisy = labels()
    assert noisy.seen is noisy.truth
    assert noisy.confusion is None
    loss, codes, fitted_rows = view(noisy, {"name": "uma", "confusion": None})
    assert (loss["confusion"], fitted_rows) == (None, None)
    np.testing.assert_array_equal(codes, noisy.truth)


def test_noise_moves_labels_alike_for_all_methods_and_differently_for_splits():
    first, again, other = labels(PAIRWISE), labels(PAIRWISE), labels(PAIRWISE, split=2)
    np.testing.assert_array_equal(first.seen, again.seen)
    assert (first.seen != other.seen).any()
    assert first.facts["label_error"] == pytest.approx(0.4, abs=0.1)
    assert first.facts["confusion_norm"] == pytest.approx(np.sqrt(3) * 0.4)
    loss, codes, _ = view(first, {"name": "uma", "confusion": None})
    np.testing.assert_allclose(loss["confusion"], [[0.6, 0, 0.4], [0.4, 0.6, 0], [0, 0.4, 0.6]])
    np.testing.assert_array_equal(codes, first.seen)
    assert view(first, {"name": "uma", "confusion": "identity"})[0]["confusion"] == "identity"
    assert "confusion" not in view(first, {"name": "zero_one"})[0]
    np.testing.assert_array_equal(view(first, {"name": "f_full"})[1], first.truth)


def test_rough_labels_come_with_a_clean_sample_and_its_confusion():
    noisy = labels(rough_per_class=2, labelled_share=0.2)
    assert noisy.sample is not None
    assert len(noisy.sample) == 60
    whole = estimate_confusion(noisy.seen[noisy.sample], noisy.truth[noisy.sample], 3)[0]
    np.testing.assert_allclose(noisy.confusion, whole, atol=0.05)  # six rows at most do not count
    assert 0 < noisy.facts["label_error"] < 0.4
    _, codes, fitted_rows = view(noisy, {"name": "f_conf"})
    assert np.flatnonzero(fitted_rows).tolist() == sorted(noisy.sample.tolist())
    np.testing.assert_array_equal(codes[fitted_rows], noisy.truth[fitted_rows])
    _, codes, fitted_rows = view(noisy, {"name": "s3vm"})
    assert fitted_rows is None
    np.testing.assert_array_equal(np.flatnonzero(codes >= 0), noisy.sample)
    larger = labels(rough_per_class=2, labelled_share=0.4)
    np.testing.assert_array_equal(larger.seen, noisy.seen)  # the share changes the estimate, not the labels
    assert set(noisy.sample) <= set(larger.sample)


def test_small_classes_give_all_they_have_and_absent_ones_count_as_right():
    X, truth = rows(60)
    kept = np.flatnonzero((truth < 2) | (np.arange(60) < 6))
    noisy = labels(X=X[kept], truth=truth[kept], rough_per_class=2, labelled_share=0.05)
    assert any("takes all rows of class c" in note for note in labels(X=X[kept], truth=truth[kept], rough_per_class=5).notes)
    assert any("counts as labelled right" in note for note in noisy.notes)
    np.testing.assert_array_equal(noisy.confusion[:, 2], [0, 0, 1])


def test_rows_that_made_the_rough_labels_do_not_count_for_their_confusion():
    X, truth = rows(90)
    X = X + 3.0 * np.random.default_rng(1).standard_normal(X.shape)  # hard: seen rows are labelled far better than others
    kept = np.flatnonzero((truth < 2) | (np.arange(90) < 9))
    noisy = labels(X=X[kept], truth=truth[kept], rough_per_class=10, labelled_share=0.99)
    right = noisy.seen == noisy.truth
    # all three rows of class 2 were learned from and count all the same; the other classes count their 20 other rows
    third = noisy.sample[noisy.truth[noisy.sample] == 2]
    assert noisy.confusion[2, 2] == pytest.approx((right[third].sum() + 1) / (len(third) + 1))
    assert noisy.confusion[0, 0] < (right[noisy.truth == 0].sum() + 1) / (30 + 1) - 0.02


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="leave out the group noise"):
        labels(PAIRWISE, rough_per_class=2)
    with pytest.raises(ConfigError, match="protocol=louche2015"):
        view(labels(), {"name": "f_conf"})


def cell(loss, noise=None, **protocol):
    options = {"n_splits": 2, "stage1": {"regularisation": [1.0]}, **protocol}
    loss = {"name": loss} if isinstance(loss, str) else loss
    return Cell(BLOBS, loss, LINEAR, {"name": "auto", "tol": 1e-2}, options, noise=noise)


@pytest.mark.parametrize("loss", ["zero_one", "ww", "abstain", "uma", "perceptron", "forward", "backward", "f_y", "f_full"])
def test_noise_works_with_every_loss_and_test_labels_stay_clean(loss, tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.prepare({})
    options = {"name": "abstain", "alpha": 0.5} if loss == "abstain" else loss
    outcome = run_cell(cell(options, {"name": "uniform", "rate": 0.3}, metric="error"), folder, tmp_path, strict=True)
    assert outcome.mean < 0.25  # 30 % of the labels seen are wrong
    assert all(row["label_error"] == pytest.approx(0.3, abs=0.08) for row in outcome.rows)
    assert all(row["condition"] == pytest.approx(1 / 0.6) for row in outcome.rows)


def test_methods_without_a_certificate_leave_its_columns_empty_and_say_what_stopped_them(tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.prepare({})
    outcome = run_cell(cell("uma", PAIRWISE), folder, tmp_path, strict=True)
    assert outcome.status == "ok"
    assert np.isnan(outcome.worst_gap)
    assert {row["relative_gap"] for row in outcome.rows} == {None}
    assert any("of 2 fits" in note for note in outcome.notes)
    assert outcome.hyper == {}


@pytest.mark.parametrize("loss", ["f_y", "f_conf", "f_full", "s3vm", "uma", "forward", "zero_one"])
def test_the_semi_supervised_protocol_runs_every_method(loss, tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.prepare({})
    outcome = run_cell(cell(loss, rough_per_class=2, labelled_share=0.1), folder, tmp_path, strict=True)
    assert outcome.status == "ok"
    assert outcome.mean < 0.3
    assert {row["n_train"] for row in outcome.rows} == {28 if loss == "f_conf" else 280}


def test_noise_is_part_of_the_cell(tmp_path):
    plain, noisy = cell("uma"), cell("uma", PAIRWISE)
    assert plain.request_key() != noisy.request_key()
    assert "noise.rate=0.4" in noisy.options
    assert "protocol.labelled_share=0.1" in cell("uma", rough_per_class=2, labelled_share=0.1).options
    assert dataclasses.replace(noisy, noise=None).request_key() == plain.request_key()


def test_searches_see_noisy_labels_only(tmp_path):
    folder = ResultsFolder(tmp_path)
    folder.prepare({})
    noise = {"name": "uniform", "rate": 0.5}
    run_cell(cell("zero_one", noise, stage1={"regularisation": [0.1, 1.0]}), folder, tmp_path, strict=True)
    folder.merge()
    assert folder.search()["value"].min() > 0.3  # of clean labels nearly none would be wrong
    assert folder.runs()["value"].max() < 0.3 or (folder.runs()["metric"] == "accuracy").any()


@pytest.mark.parametrize(
    ("loss", "features", "solver", "said"),
    [
        ({"name": "uma", "rull": "error"}, LINEAR, "auto", "did you mean rule"),
        ({"name": "uma"}, {"name": "rbf"}, "auto", "linear scores"),
        ({"name": "perceptron"}, LINEAR, "newton", "solver=auto"),
        ({"name": "forward"}, {"name": "linear", "moments": "box"}, "auto", "no moments to hold"),
    ],
)
def test_combinations_without_meaning_are_refused_before_any_work(loss, features, solver, said):
    with pytest.raises(ConfigError, match=said):
        Method(loss, features, {"name": solver}).check(False, 3)


def test_the_search_of_a_method_on_the_clean_sample_sees_no_other_rows(monkeypatch):
    seen = []
    monkeypatch.setattr("advcli.evaluation.recipe.HyperSearch.select", lambda _, part: seen.append(part))
    protocol = {"rough_per_class": 3, "labelled_share": 0.2, "standardise": "none"}
    solver = {"name": "auto", "tol": 1e-3}
    recipe = Recipe(Cell({"name": "iris", "source": "sklearn"}, {"name": "f_conf"}, LINEAR, solver, protocol), Path("data"))
    recipe.axes = Axes(None, ("gamma",), {})
    whole = recipe.part()
    recipe.search(whole)
    sample = recipe.labels(whole, 1).sample
    np.testing.assert_array_equal(seen[0].X, whole.X[sample])
    np.testing.assert_array_equal(seen[0].y, whole.y[sample])
