"""The compiled oracle and offset against the NumPy tier of each loss, at every instruction set that this processor has."""

from pathlib import Path

import numpy as np
import pytest
from support import surrogates as cases
from support.module_files import module_of

from advcli.core import compiled
from advcli.core.compiled import Kernels, usable_levels
from advcli.core.errors import ConfigError
from advcli.losses import AdversarialLoss

CASES = [(name, k) for name in cases.compiled_names() for k in cases.sizes(name)]


def test_every_registered_loss_has_a_compiled_kernel():
    """A loss that only weights another one runs on its core's kernel."""
    for name in cases.canonical_names():
        for loss in cases.surrogates(name, 3):
            assert loss.core.family[0] in compiled.kernels.families


def test_the_scalar_level_is_always_there():
    assert "portable" in usable_levels()
    assert Kernels("portable").level == "portable"


def test_an_unknown_level_is_refused_by_name():
    with pytest.raises(ConfigError, match="portable"):
        Kernels("scaler")


def tolerance(F):
    return 1e-10 * (1.0 + np.ptp(F, axis=1))


@pytest.mark.parametrize(("name", "k"), CASES)
def test_oracle_matches_numpy(kernels, name, k):
    F, y = cases.score_rows(k, cases.rows(name, k))
    for loss in cases.surrogates(name, k):
        value, R, c = kernels.oracle(loss.family, F, y)
        expected = loss.oracle_reference(F, y).value
        slack = tolerance(F) * (1.0 + (0.0 if loss.matrix is None else np.ptp(loss.matrix)))
        assert (np.abs(value - expected) <= slack).all(), np.abs(value - expected).max()
        assert (np.abs(kernels.value(loss.family, F, y) - expected) <= slack).all()
        # the maximiser need not be the same one, but it must be in the set, attain the value, and own its offset
        assert cases.distance_outside(loss, R, y) <= 1e-12 * k
        inner = np.einsum("ij,ij->i", F - F.max(axis=1, keepdims=True), R)
        assert (np.abs(inner + c - expected) <= slack).all()
        assert (np.abs(loss.offset_reference(R, y) - c) <= slack).all()


@pytest.mark.parametrize(("name", "k"), CASES)
def test_offset_matches_numpy(kernels, name, k):
    for loss in cases.surrogates(name, k):
        R, y = cases.dual_points(loss, cases.rows(name, k))
        scale = 1.0 + (0.0 if loss.matrix is None else np.ptp(loss.matrix))
        assert np.abs(kernels.offset(loss.family, R, y) - loss.offset_reference(R, y)).max() <= 1e-12 * scale * k


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [2, 3, 9])
def test_r_is_a_subgradient(kernels, name, k):
    F, y = cases.score_rows(k, 32)
    G, _ = cases.score_rows(k, 32, seed=1)
    for loss in cases.surrogates(name, k):
        value, R, _ = kernels.oracle(loss.family, F, y)
        other = kernels.value(loss.family, G, y)
        assert (other >= value + np.einsum("ij,ij->i", R, G - F) - 1e-9 * (1 + np.abs(G - F).max())).all()


@pytest.mark.parametrize("name", ["cs", "ww", "llw"])
@pytest.mark.parametrize("level", [1e8, -1e8])
def test_hinges_keep_their_digits_at_any_common_level(kernels, name, level):
    F, y = cases.score_rows(7, 40)
    F = np.round(F * 8) / 8  # such scores are exact numbers at this level too
    for loss in cases.surrogates(name, 7):
        value, R, c = kernels.oracle(loss.family, F, y)
        moved_value, moved_R, moved_c = kernels.oracle(loss.family, F + level, y)
        assert np.abs(moved_value - value).max() <= 1e-13 * (1 + np.abs(F).max())
        assert np.array_equal(moved_R, R)
        assert np.array_equal(moved_c, c)
        assert np.abs(loss.oracle_reference(F + level, y).value - value).max() <= 1e-13 * (1 + np.abs(F).max())


@pytest.mark.parametrize(("name", "k"), [(name, k) for name, k in CASES if k in (2, 3, 9, 1000)])
@pytest.mark.parametrize("size", [1e8, 1e-8])
def test_extreme_scores(kernels, name, k, size):
    F, y = cases.score_rows(k, 12)
    F = np.round(F * 8) / 8 * size  # ties stay ties
    for loss in cases.surrogates(name, k):
        value, R, c = kernels.oracle(loss.family, F, y)
        expected = loss.oracle_reference(F - F.max(axis=1, keepdims=True), y).value
        scale = 1.0 + np.abs(F).max(axis=1) + np.ptp(F, axis=1) + (0.0 if loss.matrix is None else np.ptp(loss.matrix))
        assert (np.abs(value - expected) <= 1e-12 * k * scale).all()
        assert np.isfinite(c).all()
        assert cases.distance_outside(loss, R, y) <= 1e-12 * k


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("k", [1, 3, 9])
def test_a_common_level_of_the_scores_changes_nothing(kernels, name, k):
    F, y = cases.score_rows(k, 24)
    for loss in cases.surrogates(name, k):
        plain = kernels.value(loss.family, F, y)
        for level in (1e6, -3e5):
            shifted = kernels.value(loss.family, F + level, y)
            assert np.abs(shifted - plain).max() <= 1e-9 * (1 + np.abs(plain).max())


@pytest.mark.parametrize(("name", "k"), CASES)
def test_rows_do_not_see_each_other(kernels, name, k):
    """Scratch memory is shared by all rows of a call: an answer must be the same bits alone and in any company."""
    n = 9
    F, y = cases.score_rows(k, n)
    for loss in cases.surrogates(name, k)[:2]:
        together = kernels.oracle(loss.family, F, y)
        backwards = kernels.oracle(loss.family, F[::-1], y[::-1])
        for one, other in zip(together, backwards, strict=True):
            assert np.array_equal(one, other[::-1])
        for i in (0, n - 1):
            for one, other in zip(together, kernels.oracle(loss.family, F[i : i + 1], y[i : i + 1]), strict=True):
                assert np.array_equal(one[i : i + 1], other)


@pytest.mark.parametrize("name", ["zero_one", "cs", "ww", "abstain"])
@pytest.mark.parametrize(("k", "wider"), [(3, 4), (7, 8), (8, 9), (13, 33)])
def test_padding_is_like_labels_that_never_win(kernels, name, k, wider):
    """k labels, and k labels plus some far behind, are the same problem for the losses that know no distance between labels."""
    F, y = cases.score_rows(k, 24)
    behind = np.hstack([F, np.full((len(F), wider - k), F.min() - 1e4)])
    narrow, wide = cases.surrogates(name, k)[0], cases.surrogates(name, wider)[0]
    value, R, c = kernels.oracle(narrow.family, F, y)
    value_wide, R_wide, c_wide = kernels.oracle(wide.family, behind, y)
    assert np.abs(value - value_wide).max() <= 1e-9
    assert np.abs(R - R_wide[:, :k]).max() <= 1e-12
    assert np.abs(R_wide[:, k:]).max() == 0
    assert np.abs(c - c_wide).max() <= 1e-12


def layouts(F):
    """The same numbers as memory that kernels like least: read-only, Fortran-ordered, strided, single precision, a list."""
    frozen = F.copy()
    frozen.setflags(write=False)
    wide = np.zeros((2 * len(F), 3 * F.shape[1]))
    wide[::2, ::3] = F
    return {
        "read-only": frozen,
        "fortran": np.asfortranarray(F),
        "strided": wide[::2, ::3],
        "reversed twice": F[::-1, ::-1].copy()[::-1, ::-1],
        "single precision": F.astype(np.float32),
        "list": F.tolist(),
    }


@pytest.mark.parametrize("name", cases.compiled_names())
@pytest.mark.parametrize("layout", ["read-only", "fortran", "strided", "reversed twice", "single precision", "list"])
def test_any_memory_layout(kernels, name, layout):
    k = 5
    F, y = cases.score_rows(k, 16)
    F = F.astype(np.float32).astype(float)  # so that single precision holds the same numbers
    loss = cases.surrogates(name, k)[0]
    R, labels = cases.dual_points(loss, 16)
    R = R if layout != "single precision" else R.astype(np.float32).astype(float)
    given, given_R = layouts(F)[layout], layouts(R)[layout]
    short = y.astype(np.int32) if layout == "strided" else y
    before = np.array(given, copy=True)
    for one, other in zip(kernels.oracle(loss.family, given, short), kernels.oracle(loss.family, F, y), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(kernels.offset(loss.family, given_R, labels), kernels.offset(loss.family, R, labels))
    assert np.array_equal(kernels.block(loss.family, given, given_R, labels, 0.7), kernels.block(loss.family, F, R, labels, 0.7))
    # a loss answers at the level in use, which ADVCLI_SIMD may set
    assert np.array_equal(loss.value(np.asarray(given), short), compiled.kernels.value(loss.family, F, y))
    assert np.array_equal(np.array(given), before)


def test_no_rows(kernels):
    for name in cases.compiled_names():
        loss = cases.surrogates(name, 4)[0]
        none, labels = np.empty((0, 4)), np.empty(0, dtype=np.intp)
        value, R, c = kernels.oracle(loss.family, none, labels)
        assert value.shape == (0,)
        assert R.shape == (0, 4)
        assert c.shape == (0,)
        assert kernels.block(loss.family, none, none, labels, 1.0).shape == (0, 4)


@pytest.mark.parametrize("y", [[0, 3], [-1, 0], [0], [0, 1, 2]])
def test_labels_outside_the_classes_are_refused(kernels, y):
    with pytest.raises(ValueError, match="labels must"):
        kernels.value(("zero_one", 3, np.empty(0)), np.zeros((2, 3)), np.array(y))


@pytest.mark.parametrize("shape", [(2, 4), (2, 2), (3,)])
def test_scores_of_the_wrong_shape_are_refused(kernels, shape):
    with pytest.raises(ValueError, match="shape"):
        kernels.value(("zero_one", 3, np.empty(0)), np.zeros(shape), np.zeros(2, dtype=np.intp))


def test_an_unknown_kind_is_refused(kernels):
    out = np.empty(1)
    with pytest.raises(ValueError, match="unknown surrogate"):
        kernels._oracle.evaluate(999, 2, np.empty(0), np.zeros((1, 2)), np.zeros(1, dtype=np.intp), out, np.empty((0, 2)), out)


@pytest.mark.parametrize("name", cases.compiled_names())
def test_levels_agree(name):
    """The widest instruction set and the portable level answer alike to rounding."""
    levels = [Kernels(level) for level in usable_levels()]
    for k in (3, 10, 26):
        F, y = cases.score_rows(k, 24)
        for loss in cases.surrogates(name, k):
            answers = [each.value(loss.family, F, y) for each in levels]
            steps = [each.block(loss.family, F, np.zeros_like(F), y, 0.5) for each in levels]
            for answer, step in zip(answers, steps, strict=True):
                assert np.abs(answer - answers[-1]).max() <= 1e-11 * (1 + np.abs(answers[-1]).max())
                assert np.abs(step - steps[-1]).max() <= 1e-9


def test_simd_variable_chooses_the_level(monkeypatch):
    for level in usable_levels():
        monkeypatch.setenv("ADVCLI_SIMD", level)
        monkeypatch.delitem(compiled.__dict__, "kernels", raising=False)  # made on first use
        assert compiled.kernels.level == level


def test_a_module_without_the_level_takes_the_next_lower_one(monkeypatch):
    module = compiled._module

    def built(kernel, level):
        if kernel == "uma" and level != "portable":
            raise ImportError(level)
        return module(kernel, level)

    monkeypatch.setattr(compiled, "_module", built)
    made = Kernels(usable_levels()[0])
    assert made.uma.__name__.endswith("uma_portable")
    assert made.ascent_dense.__name__.endswith(f"ascent_dense_{made.level}")


def test_prediction_game_of_k_1_costs_nothing(kernels):
    """One class: nothing to confuse it with, so every surrogate with a zero diagonal is 0 and so is its r."""
    for name in cases.compiled_names():
        for loss in cases.surrogates(name, 1):
            value, R, _ = kernels.oracle(loss.family, np.array([[2.5]]), np.zeros(1, dtype=np.intp))
            expected = float(loss.matrix.min()) if isinstance(loss, AdversarialLoss) else 0.0
            assert value[0] == pytest.approx(expected, abs=1e-12)
            assert R[0, 0] == pytest.approx(0.0, abs=1e-15)


def test_the_families_are_read_off_the_headers(kernels, tmp_path: Path) -> None:
    """A binder of its own is all that a new family needs; each level knows the same names at the same numbers."""
    folder = Path(__file__).resolve().parents[2] / "_ext" / "families"
    assert kernels.families == compiled.kernels.families
    module = module_of(folder / "families.py", "families")
    bound = [name for header in folder.glob("adv_*.pxd") for name in module.BINDER.findall(header.read_text(encoding="utf-8"))]
    assert list(kernels.families) == sorted(bound)
    assert {loss.core.kernel for name in cases.canonical_names() for loss in cases.surrogates(name, 3)} <= set(bound)
    own = tmp_path / "adv_own.pxd"
    own.write_text("cdef inline int bind_own(Family *s, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:\n    return 0\n")
    written = module.written([*folder.glob("adv_*.pxd"), own])
    names = sorted([*kernels.families, "own"])
    for kind, name in enumerate(names):
        assert f"    {name.upper()} = {kind}\n" in written
    assert "from adv_own cimport bind_own\n" in written


def test_a_family_that_no_header_binds_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no compiled surrogate is named zero_on: .*zero_one"):
        compiled.kernels.value(("zero_on", 3, np.empty(0)), np.zeros((2, 3)), np.zeros(2, dtype=np.intp))
