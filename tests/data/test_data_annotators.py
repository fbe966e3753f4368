"""Dawid and Skene's algorithm, by its own paper's data, a plain loop, and simulated annotators."""

import math

import numpy as np
import pandas as pd
import pytest

from advcli import dawid_skene
from advcli.core.errors import ConfigError, DataError
from advcli.data.labels.soft import by_label, shares

# Table 1 of Dawid and Skene (1979): 45 patients by an anaesthetist who judged three times and four who judged once
PATIENTS = (
    "1111111 3334343 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343 1111111 2223212 1211111 "
    "1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 1111111 1111111 1121121 "
    "1111111 3333233 1111111 2222222 2223232 4334343 2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222"
)


def drawn(random, n, prior, matrices, missing=0.0):
    """Return true classes (n,) and labels (n, m) by annotators with these matrices, -1 where one gave none."""
    truth = random.choice(len(prior), p=prior, size=n)
    labels = np.column_stack([[random.choice(len(prior), p=matrix[c]) for c in truth] for matrix in matrices])
    gaps = random.random(labels.shape) < missing
    gaps[np.arange(n), random.integers(0, len(matrices), n)] = False
    return truth, np.where(gaps, -1, labels)


def by_loops(labels, k, steps):
    """Return the distributions after so many steps, and the log-likelihood before the last, by the paper's sums written out."""
    n, m = labels.shape
    P = [[sum(label == c for label in row) / sum(label >= 0 for label in row) for c in range(k)] for row in labels]
    for _ in range(steps):
        prior = [sum(P[i][c] for i in range(n)) / n for c in range(k)]
        pi = np.zeros((m, k, k))
        for j in range(m):
            for c in range(k):
                seen = sum(P[i][c] for i in range(n) if labels[i, j] >= 0)
                pi[j, c] = [sum(P[i][c] for i in range(n) if labels[i, j] == l) / seen for l in range(k)]
        joint = [[prior[c] * math.prod(pi[j, c, labels[i, j]] for j in range(m) if labels[i, j] >= 0) for c in range(k)] for i in range(n)]
        value = sum(math.log(sum(row)) for row in joint)
        P = [[each / sum(row) for each in row] for row in joint]
    return np.array(P), value


def test_the_data_of_the_paper_give_its_shares_of_the_classes():
    votes = pd.DataFrame([list(map(int, patient)) for patient in PATIENTS.split()])
    crowd = dawid_skene(votes, annotators=[1, 1, 1, 2, 3, 4, 5])
    assert crowd.converged
    assert crowd.prior.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]
    assert list(crowd.confusion) == [1, 2, 3, 4, 5]
    assert np.diag(crowd.confusion[1]).round(2).tolist() == [0.89, 0.88, 0.66, 0.44]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_steps_are_the_papers_and_raise_the_likelihood(missing):
    random = np.random.default_rng(4)
    matrices = [random.dirichlet(np.ones(3) + 4 * np.eye(3)[c], size=1)[0] for _ in range(4) for c in range(3)]
    _, labels = drawn(random, 40, [0.5, 0.3, 0.2], np.array(matrices).reshape(4, 3, 3), missing)
    told = pd.DataFrame(labels).replace(-1, np.nan)
    before = -math.inf
    for steps in (1, 2, 5, 20):
        crowd = dawid_skene(told, max_iter=steps, tol=1e-300)
        P, value = by_loops(labels, 3, steps)
        assert crowd.probabilities.to_numpy() == pytest.approx(P, abs=1e-9)
        assert crowd.log_likelihood == pytest.approx(value, rel=1e-12)
        assert crowd.log_likelihood >= before - 1e-9
        before = crowd.log_likelihood


def test_it_finds_the_annotators_and_beats_the_majority():
    good, bad = 0.9 * np.eye(3) + 0.1 / 3, np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    matrices = [good, good, bad, bad, bad]  # the majority is wrong together
    for seed in range(5):
        truth, labels = drawn(np.random.default_rng(seed), 1000, [0.5, 0.3, 0.2], [*matrices[:2], *[0.5 * bad + 0.5 / 3] * 3])
        crowd = dawid_skene(labels)
        majority = np.array([np.bincount(row, minlength=3).argmax() for row in labels])
        estimated = crowd.probabilities.to_numpy().argmax(axis=1)
        assert (estimated != truth).mean() < 0.7 * (majority != truth).mean()
        assert np.abs(crowd.confusion[0].to_numpy() - good).max() < 0.1


def test_labels_of_any_table_and_gaps_of_any_kind_mean_the_same():
    cells = [["a", "a", None], ["b", "b", "a"], ["a", None, "a"], ["b", "a", "b"], ["b", "b", "b"]]
    expected = dawid_skene(cells).probabilities.to_numpy()
    frame = pd.DataFrame(cells, columns=["x", "y", "z"])
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for table in (frame, frame.fillna(""), frame.astype("string"), polars.from_pandas(frame), pyarrow.Table.from_pandas(frame)):
        crowd = dawid_skene(table)
        assert np.array_equal(crowd.probabilities.to_numpy(), expected)
        assert list(crowd.confusion) == ["x", "y", "z"]
    numbers = frame.replace({"a": 1.0, "b": 2.0}).astype(float)
    assert dawid_skene(numbers).probabilities.columns.tolist() == [1, 2]
    wider = dawid_skene(frame, classes=["b", "a", "c"])
    assert wider.probabilities.columns.tolist() == ["b", "a", "c"]
    assert wider.probabilities["c"].tolist() == [0.0] * 5
    assert wider.confusion["x"].loc["c"].tolist() == [1 / 3] * 3


@pytest.mark.parametrize(
    ("labels", "options", "error", "said"),
    [
        ([["a", "b"], [None, None]], {}, DataError, "labels, row 2, has no label of any annotator; remove the row"),
        ([["a", "a"], ["a", "a"]], {}, DataError, "labels holds 1 class; at least 2 are needed"),
        ([["a", 1], ["a", "b"]], {}, DataError, "labels holds text beside numbers"),
        ([["a", "b"]], {"classes": ["a", "c"]}, DataError, "labels holds 'b', which is not among the classes 'a', 'c'"),
        ([["a", "b"]], {"annotators": ["one"]}, ConfigError, "annotators names 1 columns, and labels has 2"),
        (np.zeros(3), {}, DataError, "labels must be a table"),
        ([["a", "b"]], {"max_iter": 0}, ConfigError, "max_iter"),
        ([["a", "b"]], {"tol": -1.0}, ConfigError, "tol"),
    ],
)
def test_bad_input_is_refused_by_one_line(labels, options, error, said):
    with pytest.raises(error, match=said):
        dawid_skene(labels, **options)


def test_votes_are_shares_and_probabilities_stay_what_they_are():
    random = np.random.default_rng(1)
    P = random.dirichlet(np.ones(4), size=30)
    same, votes = shares(P)
    assert np.abs(same - P).max() < 1e-15
    assert not votes
    counted, votes = shares(random.integers(1, 9, (30, 4)))
    assert votes
    assert counted.sum(axis=1) == pytest.approx(np.ones(30), abs=1e-15)
    assert shares(P.round(4))[0].sum(axis=1) == pytest.approx(np.ones(30), abs=1e-15)  # rounded tables are divided out
    places, codes, weights = by_label(P, np.full(30, 2.0))
    sums = np.zeros((30, 4))
    np.add.at(sums, (places, codes), weights)
    assert np.array_equal(sums, 2.0 * P)
    with pytest.raises(DataError, match="a column for each of at least 2 classes"):
        shares([[1.0], [1.0]])
