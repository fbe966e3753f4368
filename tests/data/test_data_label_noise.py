"""Confusion matrices and the label noise drawn from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.errors import ConfigError
from advcli.data.labels.confusion import check_confusion, conditioning, estimate_confusion, read_confusion
from advcli.data.labels.noise import check_noise, corrupt, make_confusion

FAMILY = {"name": "louche2015", "step": 10, "told_step": None, "max_condition": 30}


@settings(deadline=None, max_examples=50)
@given(
    k=st.integers(2, 12),
    seed=st.integers(0, 1000),
    options=st.one_of(
        st.builds(lambda rate: {"name": "uniform", "rate": rate}, st.floats(0, 1)),
        st.builds(lambda rate: {"name": "pairwise", "rate": rate}, st.floats(0, 1)),
        st.builds(lambda step: {**FAMILY, "step": step, "max_condition": None}, st.integers(0, 20)),
    ),
)
def test_columns_are_distributions(k, seed, options):
    confusion = make_confusion(options, k, seed)
    for C in (confusion.true, confusion.assumed):
        assert C.shape == (k, k)
        assert C.min() >= 0
        np.testing.assert_allclose(C.sum(axis=0), 1.0, atol=1e-12)


def test_uniform_and_pairwise_are_what_they_say():
    np.testing.assert_allclose(make_confusion({"name": "uniform", "rate": 0.3}, 4, 0).true, np.full((4, 4), 0.1) + 0.6 * np.eye(4))
    C = make_confusion({"name": "pairwise", "rate": 0.25}, 3, 0).true
    np.testing.assert_allclose(C, [[0.75, 0, 0.25], [0.25, 0.75, 0], [0, 0.25, 0.75]])  # class 0 moves to 1, 2 to 0


def test_the_family_of_louche2015():
    matrices = {step: make_confusion({**FAMILY, "step": step}, 10, 5).true for step in (0, 1, 4, 10, 20)}
    np.testing.assert_array_equal(matrices[0], np.eye(10))
    M = matrices[10].T
    assert np.linalg.cond(M) < 30
    for step in (1, 4):  # U8: up to 10 a mean of I and M, exactly
        np.testing.assert_allclose(matrices[step].T, (1 - step / 10) * np.eye(10) + step / 10 * M, atol=1e-12)
    clipped = np.maximum(np.eye(10) + 20 * (M - np.eye(10)) / 10, 0)
    np.testing.assert_allclose(matrices[20].T, clipped / clipped.sum(axis=1, keepdims=True), atol=1e-12)
    # U1: rows of C_i are normalised, so the columns of what is used here; the family's own orientation does not sum to 1 by columns
    assert np.abs(matrices[10].sum(axis=1) - 1).max() > 0.05


def test_methods_can_be_told_another_member():
    confusion = make_confusion({**FAMILY, "told_step": 3}, 5, 1)
    np.testing.assert_array_equal(confusion.true, make_confusion(FAMILY, 5, 1).true)
    np.testing.assert_array_equal(confusion.assumed, make_confusion({**FAMILY, "step": 3}, 5, 1).true)


def test_labels_follow_the_matrix_and_the_seed():
    C = np.array([[0.6, 0.0, 0.3], [0.4, 1.0, 0.2], [0.0, 0.0, 0.5]])
    y = np.repeat(np.arange(3), 20_000)
    seen = corrupt(y, C, 0)
    N = np.zeros((3, 3))
    np.add.at(N, (seen, y), 1)
    np.testing.assert_allclose(N / 20_000, C, atol=0.015)
    assert N[C == 0].sum() == 0
    np.testing.assert_array_equal(seen, corrupt(y, C, 0))
    assert (seen != corrupt(y, C, 1)).any()
    np.testing.assert_array_equal(corrupt(y, np.eye(3), 7), y)


def test_a_matrix_from_a_file(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("0.9,0.2\n0.1,0.8\n")
    np.testing.assert_allclose(make_confusion({"name": "csv", "path": str(path)}, 2, 0).true, [[0.9, 0.2], [0.1, 0.8]])
    for text, said in (("0.9,0.1\n0.2,0.8\n", "transpose"), ("a,b\n", "numbers"), ("", "empty"), ("1,0,0\n0,1,0\n0,0,1\n", "shape")):
        path.write_text(text)
        with pytest.raises(ConfigError, match=said):
            make_confusion({"name": "csv", "path": str(path)}, 2, 0)
    with pytest.raises(ConfigError, match="cannot read"):
        read_confusion(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "unifrm", "rate": 0.1}, "did you mean uniform"),
        ({"name": "uniform"}, "needs noise.rate"),
        ({"name": "uniform", "rate": 0.1, "rtae": 1}, "did you mean rate"),
        ({"name": "none", "rate": 0.1}, "it has none"),
    ],
)
def test_unknown_noise_is_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        check_noise(options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "uniform", "rate": 1.5}, "from 0 to 1"),
        ({"name": "pairwise", "rate": True}, "from 0 to 1"),
        ({"name": "csv", "path": None}, "noise.path"),
        ({**FAMILY, "step": 21}, "from 0 to 20"),
        ({**FAMILY, "told_step": 1.5}, "told_step"),
        ({**FAMILY, "max_condition": 0.5}, "above 1"),
        ({**FAMILY, "max_condition": 1.001}, "raise it"),
    ],
)
def test_values_out_of_range_are_refused(options, said):
    with pytest.raises(ConfigError, match=said):
        make_confusion(options, 5, 0)


# ---- checking and estimating --------------------------------------------------------------------------------------------
def test_a_singular_matrix_names_its_condition_and_the_classes_at_fault():
    C = np.eye(4)
    C[:, 3] = C[:, 1]
    with pytest.raises(ConfigError, match=r"condition number .*classes\s+b, d apart"):
        check_confusion(C, 4, ["a", "b", "c", "d"])
    C[:, 3] = 0.99999 * C[:, 1] + 0.00001 * np.eye(4)[:, 3]
    with pytest.warns(UserWarning, match="classes 1, 3"):
        assert check_confusion(C, 4)[1] > 1e4


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[1, 0]], "shape"),
        ("text", "numbers"),
        ([[2, 0], [-1, 1]], "probabilities"),
        ([[np.nan, 0], [0, 1]], "probabilities"),
        ([[0.5, 0], [0.4, 1]], "sums to 0.9"),
    ],
)
def test_what_is_no_confusion_matrix_is_refused(matrix, said):
    with pytest.raises(ConfigError, match=said):
        check_confusion(matrix, 2)


@settings(deadline=None, max_examples=50)
@given(k=st.integers(2, 8), size=st.integers(0, 40), seed=st.integers(0, 1000))
def test_estimates_have_distributions_as_columns_and_count_right(k, size, seed):
    random = np.random.default_rng(seed)
    truth, seen = random.integers(0, k, size), random.integers(0, k, size)
    C, missing = estimate_confusion(seen, truth, k)
    np.testing.assert_allclose(C.sum(axis=0), 1.0)
    counts = np.bincount(truth, minlength=k)
    for q in range(k):
        for p in range(k):
            assert C[p, q] == pytest.approx((np.sum((seen == p) & (truth == q)) + (p == q)) / (counts[q] + 1))
    assert missing == np.flatnonzero(counts == 0).tolist()
    for q in missing:
        np.testing.assert_array_equal(C[:, q], np.eye(k)[:, q])


def test_estimates_stay_invertible_where_adding_to_all_entries_does_not():
    truth = np.repeat(np.arange(8), 4)  # classes 8 and 9 are missing
    C, missing = estimate_confusion(truth, truth, 10)
    assert missing == [8, 9]
    assert conditioning(C)[0] < 10
    laplace = np.zeros((10, 10))
    np.add.at(laplace, (truth, truth), 1.0)
    assert conditioning((laplace + 0.1) / (laplace + 0.1).sum(axis=0))[0] > 1e12


def test_estimates_tend_to_the_truth():
    C = make_confusion(FAMILY, 4, 2).true
    truth = np.repeat(np.arange(4), 50_000)
    np.testing.assert_allclose(estimate_confusion(corrupt(truth, C, 3), truth, 4)[0], C, atol=0.01)
