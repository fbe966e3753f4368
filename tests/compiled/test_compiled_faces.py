"""Faces of the block step for semismooth Newton: bases, projectors, and dr/df = M/w against finite differences."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from support import surrogates as cases

from advcli.core.compiled import Face, compiled_rows

FIXED, TIED, FREE = 0, 1, 2


def tangent_projector(state, normal):
    """The projector on {d: d fixed = 0, d equal on the tied, sum d = 0, d.normal = 0}, by singular values."""
    k = len(state)
    constraints = [np.ones(k), normal]
    constraints += [np.eye(k)[j] for j in range(k) if state[j] == FIXED]
    tied = np.flatnonzero(state == TIED)
    constraints += [np.eye(k)[a] - np.eye(k)[b] for a, b in pairwise(tied)]
    _, sizes, rows = np.linalg.svd(np.array(constraints))
    rank = int((sizes > 1e-9).sum())
    return rows[rank:].T @ rows[rank:]


def bases(kernels, state, normal):
    skip = np.zeros(len(state), dtype=np.int8)
    B, owner = kernels.newton_faces.tangents(state, normal, skip)
    skip[1::2] = 1
    some, its = kernels.newton_faces.tangents(state, normal, skip)
    assert np.array_equal(its, owner[owner % 2 == 0])
    assert np.array_equal(some, B[owner % 2 == 0])
    return B, owner


def projectors(kernels, loss, face):
    n, k = face.state.shape
    B, owner = kernels.tangents(loss.family, face, np.zeros(n, dtype=bool))
    M = np.zeros((n, k, k))
    kernels.newton_faces.projectors(B, owner, M)
    return M


@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("bent", [False, True])
def test_bases_span_the_tangent_space(kernels, k, bent):
    random = np.random.default_rng([k, bent])
    n = 60
    state = random.integers(0, 3, size=(n, k)).astype(np.int8)
    state[0], state[1], state[2] = FIXED, TIED, FREE
    normal = np.zeros((n, k))
    if bent:
        normal = random.normal(size=(n, k))
        # a normal that some rows have and others do not, and one that is a bare difference of two labels
        normal[::3] = 0.0
        if k > 2:
            normal[2] = 0.0
            normal[2, 0], normal[2, 2] = 1.0, -1.0
        # normals that the face does not see: only on fixed labels, within the tied group, along the sum
        normal[6:12] *= state[6:12] == FIXED
        normal[12:18] *= state[12:18] == TIED
        for row in normal[12:18]:
            row[row != 0.0] -= row[row != 0.0].mean() if row.any() else 0.0
        normal[18] = 1.0
    B, owner = bases(kernels, state, normal)
    assert (np.diff(owner) >= 0).all()
    assert np.isfinite(B).all()
    for i in range(n):
        mine = B[owner == i]
        expected = tangent_projector(state[i], normal[i])
        assert len(mine) == round(np.trace(expected))
        assert np.abs(mine @ mine.T - np.eye(len(mine))).max(initial=0.0) <= 1e-13 * k
        assert np.abs(mine[:, state[i] == FIXED]).max(initial=0.0) == 0.0
        if (state[i] == TIED).any():
            assert np.ptp(mine[:, state[i] == TIED], axis=1).max(initial=0.0) <= 1e-15
        assert np.abs(mine.sum(axis=1)).max(initial=0.0) <= 1e-13 * k
        assert np.abs(mine @ normal[i]).max(initial=0.0) <= 1e-12 * k
        assert np.abs(mine.T @ mine - expected).max() <= 1e-11 * k


@pytest.mark.parametrize(("l", "k"), [(1, 4), (3, 2), (5, 5), (12, 4), (4, 12), (30, 30)])
def test_bases_of_a_general_matrix_span_the_tangent_space(kernels, l, k):
    """Among the labels in use: no change of the sum, and of no difference between tight rows."""
    random = np.random.default_rng([l, k])
    n = 40
    matrix = random.normal(size=(l, k))
    if l > 3:
        matrix[3] = matrix[0] + 2.0 * (matrix[1] - matrix[0])  # a row whose difference depends on another's
    state = (random.random((n, k)) < 0.7).astype(np.int8) * FREE
    tight = (random.random((n, l)) < 0.3).astype(np.int8)
    skip = random.random(n) < 0.1
    family = "general", k, np.concatenate([[float(l)], matrix.ravel()])
    B, owner = kernels.tangents(family, Face(state, np.zeros((n, k)), tight), skip)
    assert (np.diff(owner) >= 0).all()
    for i in range(n):
        mine = B[owner == i]
        if skip[i]:
            assert len(mine) == 0
            continue
        chosen = matrix[tight[i] == 1]
        constraints = [np.ones(k), *(np.eye(k)[state[i] == FIXED]), *(chosen[1:] - chosen[:1])]
        _, sizes, rows = np.linalg.svd(np.array(constraints))
        free = rows[int((sizes > 1e-9).sum()) :]
        assert len(mine) == len(free)
        assert np.abs(mine @ mine.T - np.eye(len(mine))).max(initial=0.0) <= 1e-12
        assert np.abs(mine.T @ mine - free.T @ free).max() <= 1e-9


def test_pairs_hold_the_projectors(kernels):
    random = np.random.default_rng(1)
    for k in (1, 2, 5):
        B = random.normal(size=(40, k)) * random.integers(0, 2, size=(40, k))
        slot, weight = np.sort(random.integers(0, 15, size=40)).astype(np.intp), random.random(15)
        start, examples, products = kernels.newton_faces.pairs(B, slot, weight)
        M, found = np.zeros((15, k, k)), np.zeros((15, k, k))
        kernels.newton_faces.projectors(B, slot, M)
        for number, (a, b) in enumerate(zip(*np.tril_indices(k), strict=True)):
            place = slice(start[number], start[number + 1])
            assert (np.diff(examples[place]) > 0).all()
            found[examples[place], a, b] = found[examples[place], b, a] = products[place]
        assert start[-1] == len(examples) == len(products)
        assert np.abs(found - M * weight[:, None, None]).max() <= 1e-14


def test_projectors_add_up_by_slot(kernels):
    random = np.random.default_rng(0)
    B = random.normal(size=(7, 4))
    B[2] = 0.0
    slot = np.array([0, 0, 1, 3, 3, 3, 0], dtype=np.intp)
    M = np.ones((4, 4, 4))
    kernels.newton_faces.projectors(B, slot, M)
    expected = np.ones((4, 4, 4))
    for row, i in zip(B, slot, strict=True):
        expected[i] += np.outer(row, row)
    assert np.abs(M - expected).max() <= 1e-14


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 3, 5, 9])
def test_the_face_is_the_derivative_of_the_block_step(kernels, name, k):
    """dr/df = M/w by central differences, wherever f - h g and f + h g lie on the same face; that must be most of the time."""
    random = np.random.default_rng(k)
    n, h, checked, moving = 60, 1e-5, 0, 0
    losses = cases.surrogates(name, k)
    for loss in losses:
        R, y = cases.dual_points(loss, n)
        F = random.normal(size=(n, k)) * random.choice(
            [0.3, 1.0, 1.0 + 0.3 * (0.0 if loss.matrix is None else np.ptp(loss.matrix))], size=(n, 1)
        )
        w = random.choice([0.3, 1.0, 5.0, 20.0], size=n)
        D = random.normal(size=(n, k))
        _, face = kernels.face(loss.family, F, R, y, w)
        ahead = kernels.face(loss.family, F + h * D, R, y, w)
        behind = kernels.face(loss.family, F - h * D, R, y, w)
        same = np.ones(n, dtype=bool)
        for other in (ahead[1], behind[1]):
            for mine, its in zip(face, other, strict=True):
                if len(mine):
                    same &= (mine == its).all(axis=1)
        slope = (ahead[0] - behind[0]) / (2 * h)
        M = projectors(kernels, loss, face)
        expected = np.einsum("iab,ib->ia", M, D) / w[:, None]
        error = np.abs(slope - expected).max(axis=1)
        assert (error[same] <= 1e-6).all(), error[same].max()
        checked += int(same.sum())
        moving += int((np.abs(expected[same]).max(axis=1) > 1e-3).sum())
    assert checked >= 0.8 * n * len(losses)
    assert moving >= 5


@pytest.mark.parametrize("name", cases.compiled_names())
def test_the_states_describe_the_step(kernels, name):
    """Labels at a bound are FIXED, TIED labels of zero-one share their value, and a projector is idempotent."""
    k = 6
    for loss in cases.surrogates(name, k):
        F, _ = cases.score_rows(k, 48)
        R, y = cases.dual_points(loss, 48)
        new, face = kernels.face(loss.family, F, R, y, 0.8)
        state = face.state
        assert set(np.unique(state)) <= {FIXED, TIED, FREE}
        if loss.simplex or loss.name == "cs":
            q = new.copy()
            q[np.arange(len(y)), y] += 1.0
            held = q[state == FIXED]
            if loss.kernel == "abstain":  # the other bound of its blocks
                held = np.minimum(held, np.abs(held - (1.0 - loss.alpha)))
            if loss.kernel == "label_sets":  # where one more class is worth its price
                held = np.abs(held[:, None] - np.r_[0.0, loss.steps]).min(axis=1)
            assert np.abs(held).max(initial=0.0) <= 1e-12
            tied = [q[i, state[i] == TIED] for i in range(len(y))]
            assert max((np.ptp(each) for each in tied if len(each)), default=0.0) <= 1e-12
        M = projectors(kernels, loss, face)
        assert np.abs(M @ M - M).max() <= 1e-12 * k
        assert np.abs(M - M.transpose(0, 2, 1)).max() <= 1e-15


@pytest.mark.parametrize("classes", [1, 3, 4])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("m", [1, 12, 400])
def test_a_sum_follows_the_bases_that_changed(kernels, classes, sparse, m):
    """Rows whose examples have the same bases in both lists are not touched: a sum that has errors keeps theirs."""
    random = np.random.default_rng([classes, sparse, m])
    n, d, k = 1 + m // 3, 3, 4
    X = random.normal(size=(n, d)) * (random.random((n, d)) < 0.6)
    rows, weight = compiled_rows(sp.csr_array(X) if sparse else X), random.random(n)

    def squares(owner, B, chosen):
        Z = (np.sqrt(weight)[owner, None, None] * X[owner][:, :, None] * B[:, None, :classes])[chosen].reshape(-1, d * classes)
        return np.triu(Z.T @ Z)

    seen = set()
    for share in (0.0, 0.1, 0.9):
        owner, other_owner = (np.sort(random.integers(n, size=m)) for _ in range(2))
        B, other = random.normal(size=(m, k)), random.normal(size=(m, k))
        kept = random.random(n) >= share  # of these examples the bases are the same
        stay = kept[owner]
        other_owner, other = other_owner[~kept[other_owner]], other[~kept[other_owner]]
        order = np.argsort(np.concatenate([owner[stay], other_owner]), kind="stable")
        new_owner = np.concatenate([owner[stay], other_owner])[order]
        new = np.concatenate([B[stay], other])[order]
        total = random.normal(size=(d * classes, d * classes))
        changed = int((~stay).sum()) + len(other)
        expected = total - squares(owner, B, ~stay) + squares(new_owner, new, ~kept[new_owner])
        before = total.copy()
        assert not kernels.newton_faces.follow(*rows, weight, owner, B, new_owner, new, total, changed - 1)
        assert np.array_equal(total, before)
        assert kernels.newton_faces.follow(*rows, weight, owner, B, new_owner, new, total, changed)
        assert np.abs(total - expected).max() <= 1e-13 * (m + 1)
        seen.add(changed > 0)
    assert seen == {False, True}


@pytest.mark.parametrize("p", [1, 7, 130])
def test_a_factor_is_the_one_of_lapack(kernels, p):
    """The upper triangle alone is read and written. An indefinite matrix has none; one that rounding has made so has one with a ridge."""
    random = np.random.default_rng(p)
    A = random.normal(size=(p, p + 2))
    H, factor = A @ A.T + np.tril(random.normal(size=(p, p)), -1), np.full((p, p), 7.0)
    assert kernels.newton_faces.cholesky(H, factor)
    whole = np.triu(H) + np.triu(H, 1).T
    np.testing.assert_allclose(np.triu(factor), np.linalg.cholesky(whole).T, rtol=0, atol=1e-12 * np.abs(whole).max())
    assert (factor[np.tril_indices(p, -1)] == 7.0).all()
    H[-1, -1] = -1.0
    assert not kernels.newton_faces.cholesky(H, factor)
    ones = np.ones((p + 1, p + 1))
    ones[-1, -1] -= 1e-15
    factor = np.empty_like(ones)
    assert kernels.newton_faces.cholesky(ones, factor)
    np.testing.assert_allclose(np.triu(factor).T @ np.triu(factor), ones, rtol=0, atol=2e-13)


@pytest.mark.parametrize(("d", "k"), [(1, 2), (4, 2), (1, 5), (6, 4)])
def test_a_direction_solves_the_whole_system(kernels, d, k):
    """From the moments without the last class, of rows that sum to zero over the classes; gradients need not."""
    random = np.random.default_rng([d, k])
    for factor in (0.0, 1e-3, 1e3):
        Z = random.normal(size=(3 * d * k, d, k))
        Z -= Z.mean(axis=2, keepdims=True)
        moments = np.triu(np.tensordot(Z[:, :, :-1], Z[:, :, :-1], (0, 0)).reshape(d * (k - 1), -1))
        gradient, D = random.normal(size=(d, k)), np.full((d, k), np.nan)
        assert kernels.newton_faces.direction(moments, factor, gradient, D)
        flat = Z.reshape(len(Z), -1)
        whole = np.eye(d * k) + factor * flat.T @ flat
        left = whole @ D.ravel() + gradient.ravel()
        assert np.abs(left).max() <= 1e-14 * d * k * np.abs(whole).max() * np.abs(D).max()
    assert not kernels.newton_faces.direction(-moments, 1e3, gradient, D)
