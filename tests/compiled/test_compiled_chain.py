"""The compiled dynamic programmes of chains against plain Python and against every label sequence."""

import itertools

import numpy as np
import pytest
from support.instruction_sets import levels
from support.python_chain import score, scores, sequences, viterbi

from advcli.core.compiled import Kernels
from advcli.learners.structured.spaces.psi import make_psi

SHAPES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 5), (7, 4), (5, 9), (4, 17), (16, 2)]
KINDS = {"margin": 0, "scaling": 1, "log": 2, "prob": 3}


@pytest.fixture(params=levels(), scope="module")
def chain(request):
    return Kernels(request.param).chain


def instances(shape, repeats=6):
    """Yield potentials and true labels; whole numbers, which tie, every other time."""
    T, K = shape
    for seed in range(repeats):
        random = np.random.default_rng([seed, T, K])
        U, A = random.normal(size=(T, K)), random.normal(size=(K, K))
        if seed % 2:
            U, A = np.round(U), np.round(A)
        yield U, A, random.integers(K, size=T).astype(np.intp)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_viterbi_is_the_best_of_all_sequences_and_its_ties_are_those_of_plain_python(chain, shape):
    T, K = shape
    for U, A, _ in instances(shape):
        labels, value = np.empty(T, np.int16), np.empty(1)
        chain.viterbi(U, A, np.array([0, T]), labels, value)
        y, best = viterbi(U, A)
        assert labels.tolist() == y
        assert value[0] == best
        if K**T <= 1e5:
            assert value[0] == pytest.approx(scores(U, A, sequences(T, K)).max(), abs=1e-12)


def test_chains_of_any_lengths_are_answered_as_each_alone(chain):
    random = np.random.default_rng(3)
    start = np.array([0, 1, 4, 5, 12, 40])
    U, A = random.normal(size=(40, 6)), random.normal(size=(6, 6))
    labels, value = np.empty(40, np.int16), np.empty(5)
    chain.viterbi(U, A, start, labels, value)
    for s, (a, b) in enumerate(itertools.pairwise(start)):
        assert (labels[a:b].tolist(), value[s]) == viterbi(U[a:b], A)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("shape", [(1, 3), (3, 5), (7, 4)], ids=str)
def test_a_survey_is_the_largest_psi_over_all_sequences_and_its_plane_touches_there(chain, name, shape):
    T, K = shape
    psi = make_psi(name)
    for U, A, truth in instances(shape, 4):
        cost = np.ones((T, K))
        cost[np.arange(T), truth] = 0.0
        value, labels, slope, constant = np.empty(1), np.empty(T, np.int16), np.empty(1), np.empty(1)
        chain.survey(KINDS[name], 0.5, U, A, truth, np.array([0, T]), cost, value, labels, slope, constant)
        Y = sequences(T, K)
        h, g = scores(U, A, Y) - score(U, A, truth), (truth != Y).sum(axis=1).astype(float)
        assert value[0] == pytest.approx(psi.value(h, g).max(), abs=1e-12)
        own, distance = score(U, A, labels) - score(U, A, truth), float((labels != truth).sum())
        assert value[0] == pytest.approx(slope[0] * own + constant[0], abs=1e-12)
        if distance or name == "margin":
            assert slope[0] == pytest.approx(float(psi.slopes(np.array(own), np.array(distance))[0]))
        else:  # the truth: nothing rises
            assert slope[0] == 0.0


@pytest.mark.parametrize("sparse", [False, True])
def test_gram_matrices_are_those_of_each_chain(chain, sparse):
    from scipy.sparse import csr_array

    from advcli.core.compiled import compiled_rows

    random = np.random.default_rng(0)
    X = random.normal(size=(9, 5)) * (random.random((9, 5)) < 0.5)
    start = np.array([0, 2, 3, 9])
    out = np.empty(4 + 1 + 36)
    chain.gram(*compiled_rows(csr_array(X) if sparse else X), start, out)
    expected = [(X[a:b] @ X[a:b].T).ravel() for a, b in itertools.pairwise(start)]
    np.testing.assert_allclose(out, np.concatenate(expected), atol=1e-13)
