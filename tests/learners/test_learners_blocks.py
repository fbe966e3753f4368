"""Rows that are read in blocks: the optimum of rows in memory whatever the sizes, certificates from the stored numbers, no copy."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import advcli.core.row_blocks
from advcli import AbstainingClassifier, AdversarialClassifier, OrdinalAdversarialClassifier
from advcli.core.errors import ConfigError, DataError, IncompatibleError, NotConvergedWarning
from advcli.core.row_blocks import BlockRows, in_blocks
from advcli.evaluation.standardise import Standardiser
from advcli.features.linear import LinearFeatures
from advcli.problems.certificate import certify
from advcli.problems.row_blocks import BlockProblem

BLOCK = 16  # rows of a block in these tests


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks, parts and the size from which rows are read in blocks as small as the data here."""
    monkeypatch.setattr(advcli.core.row_blocks, "_FEWEST_ROWS", BLOCK)
    monkeypatch.setattr(advcli.core.row_blocks, "_MOST_ROWS", BLOCK)
    monkeypatch.setattr(advcli.core.row_blocks, "READ", 3 * BLOCK * 4 * 8)
    monkeypatch.setattr(advcli.core.row_blocks, "LARGEST_COPY", 0)


def data(n, k=3, seed=0, dtype=np.float32, last_class_in_one_block=False):
    """Return rows with columns of other means and widths, one of them constant, and labels."""
    random = np.random.default_rng(seed)
    Z = random.normal(size=(n, 4))
    y = np.argmax(Z @ random.normal(size=(4, k)) + 0.5 * random.normal(size=(n, k)), axis=1)
    if last_class_in_one_block:
        y = np.minimum(y, k - 2)
        y[-min(n, 3) :] = k - 1
    y[: min(n, 2)] = np.arange(min(n, 2))
    X = Z * [1.0, 0.1, 30.0, 0.0] + [0.0, 5.0, -40.0, 7.0]
    return X.astype(dtype), np.array(["one", "three", "two"])[y] if k == 3 else y


def overlap(one, other):
    """Return whether the intervals that two certificates prove the optimum to lie in have a point in common."""
    slack = 1e-10 * abs(one.primal)
    return max(one.dual, other.dual) <= min(one.primal, other.primal) + slack


@settings(max_examples=60, deadline=None)
@example(BLOCK - 1, 0, np.float32, True, False, "zero_one", True)
@example(BLOCK, 1, np.float64, False, True, "ww", False)
@example(BLOCK + 1, 2, np.float32, True, True, "absolute", True)
@example(3 * BLOCK, 3, np.float32, True, False, "cs", True)
@given(
    st.integers(2, 4 * BLOCK + 1),
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["zero_one", "absolute", "abstain", "ww", "cs", "llw"]),
    st.booleans(),
)
def test_the_optimum_is_that_of_rows_in_memory(n, seed, dtype, standardise, weighted, loss, one_block):
    X, y = data(n, seed=seed, dtype=dtype, last_class_in_one_block=one_block)
    random = np.random.default_rng(seed)
    weights = random.integers(0, 3, size=n) + (np.arange(n) < 2) if weighted else None
    rows, memory = BlockRows(X), X.astype(np.float64)
    if standardise:
        learned = Standardiser().fit(rows)
        usual = Standardiser().fit(memory)
        for name in ("mean_", "scale_", "set_to_one_"):
            assert np.allclose(getattr(learned, name), getattr(usual, name), rtol=1e-9, atol=1e-12)
        rows, memory = learned.transform(rows), learned.transform(memory)
    kind = AdversarialClassifier if loss != "absolute" else OrdinalAdversarialClassifier
    lam = 0.01 * float((memory**2).sum(axis=1).mean())  # the block method crawls at rows that are long beside it
    learner = kind(loss, lam=lam, tol=1e-4, order=["one", "two", "three"])
    blocks, whole = clone(learner).fit(rows, y, sample_weight=weights), learner.fit(memory, y, sample_weight=weights)
    assert blocks.certificate_.converged
    assert overlap(blocks.certificate_, whole.certificate_)
    assert list(blocks.classes_) == list(whole.classes_)
    # the certificate is about the stored numbers: the usual problem in memory agrees with it
    assert blocks.objective(memory, y, sample_weight=weights) == pytest.approx(blocks.certificate_.primal, rel=1e-12)
    assert np.array_equal(blocks.predict(rows), blocks.predict(memory))
    assert np.allclose(blocks.decision_function(rows), blocks.decision_function(memory), rtol=1e-12, atol=1e-12)
    assert blocks.objective(rows, y, sample_weight=weights) == pytest.approx(blocks.certificate_.primal, rel=1e-13)


def test_one_row_is_a_fit():
    fitted = AdversarialClassifier(n_classes=2).fit(BlockRows(np.ones((1, 3), np.float32)), np.array([1]))
    assert fitted.certificate_.converged
    assert fitted.predict(np.ones((1, 3))) == [1]


def test_maps_and_float32_arrays_are_read_in_blocks_and_other_rows_are_not(tmp_path, monkeypatch):
    X, y = data(100)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "X64.npy", X.astype(np.float64))
    given = [np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "X64.npy")]
    fits = [AdversarialClassifier(C=0.1).fit(rows, y) for rows in (X, *given, BlockRows(X))]
    assert {fit.certificate_.solver for fit in fits} == {"dual_blocks"}
    assert all(fit.rows_ is None and np.array_equal(fit.theta_, fits[0].theta_) for fit in fits)
    assert "read in blocks" in fits[0].solver_choice_
    for rows in (X.astype(np.float64), X.astype(np.float64).astype(np.float16), np.asfortranarray(X), X[::2], X.tolist()):
        assert in_blocks(rows) is rows
    assert AdversarialClassifier(C=0.1, solver="newton").fit(X, y).certificate_.solver == "newton"
    assert AdversarialClassifier(C=0.1, features="rbf").fit(X, y).rows_ is not None
    monkeypatch.setattr(advcli.core.row_blocks, "LARGEST_COPY", 8 * X.size)
    assert in_blocks(X) is X


def test_rows_by_their_numbers_are_these_rows():
    X, y = data(70)
    rows = BlockRows(X)
    kept = np.random.default_rng(0).permutation(70)[:41]
    for chosen in (kept, np.isin(np.arange(70), kept), slice(5, 50)):
        part = rows[chosen]
        assert np.array_equal(part.dense(0, len(part)), X[chosen].astype(np.float64))
        assert np.array_equal(part[::-1].raw(0, len(part)), X[chosen][::-1])
    listed = AdversarialClassifier(C=0.1).fit(rows[kept], y[kept])
    copied = AdversarialClassifier(C=0.1).fit(BlockRows(X[kept]), y[kept])
    assert np.array_equal(listed.theta_, copied.theta_)


def test_a_path_of_strengths_begins_at_the_solution_before():
    X, y = data(200, seed=4)
    weak = AdversarialClassifier(C=0.01, tol=1e-6).fit(BlockRows(X), y)
    cold, warm = (AdversarialClassifier(C=0.011, tol=1e-4).fit(BlockRows(X), y, start=start) for start in (None, weak))
    assert warm.certificate_.converged
    assert overlap(cold.certificate_, warm.certificate_)
    assert warm.certificate_.passes < cold.certificate_.passes


@pytest.mark.parametrize("solver", ["auto", "dual_blocks"])
def test_threads_find_the_optimum_of_one_and_the_same_certificate(solver):
    X, y = data(300, seed=2)
    sample = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    one, two, again = (
        AdversarialClassifier(C=0.01, tol=1e-5, solver=solver, solver_options={"threads": threads}, random_state=3).fit(
            BlockRows(X), y, sample
        )
        for threads in (1, 2, 2)
    )
    assert two.certificate_.converged
    assert (two.solution_.memory["threads"], "threads" in one.solution_.memory) == (2, False)
    assert overlap(one.certificate_, two.certificate_)
    assert np.array_equal(two.theta_, again.theta_)
    assert not np.array_equal(two.theta_, one.theta_)
    given = (LinearFeatures(BlockRows(X).with_constant(), 3), two.loss_, np.unique(y, return_inverse=True)[1], two.lam_, sample)
    alone, shared = (certify(BlockProblem(*given, threads=threads), two.solution_, 1e-5) for threads in (1, 3))
    assert (shared.primal, shared.dual, shared.status) == (alone.primal, alone.dual, alone.status)
    assert alone.primal == pytest.approx(two.certificate_.primal, rel=1e-12)


def test_threads_are_no_more_than_blocks():
    X, y = data(2 * BLOCK + 3)
    # two passes: a thread that waits for a core takes milliseconds a round where others want the cores
    for threads, most in ((64, 3), ("auto", 1)):
        learner = AdversarialClassifier(C=0.1, max_passes=2, solver="dual_blocks", solver_options={"threads": threads})
        with pytest.warns(NotConvergedWarning):
            fitted = learner.fit(BlockRows(X), y)
        assert fitted.solution_.memory.get("threads", 1) == most


@pytest.mark.parametrize("threads", [1, 2])
def test_a_limit_of_seconds_ends_a_pass(threads):
    X, y = data(30_000, seed=1)
    with pytest.warns(NotConvergedWarning):
        fitted = AdversarialClassifier(C=1e3, tol=1e-9, max_seconds=0.2, solver="dual_blocks", solver_options={"threads": threads}).fit(
            BlockRows(X), y
        )
    assert fitted.certificate_.status == "max_seconds"
    assert fitted.certificate_.dual <= fitted.certificate_.primal


def test_a_fit_that_is_stopped_says_so():
    X, y = data(300, seed=1)
    with pytest.warns(NotConvergedWarning):
        fitted = AdversarialClassifier(C=100.0, tol=1e-9, max_passes=5).fit(BlockRows(X), y)
    assert fitted.certificate_.status == "max_passes"
    assert fitted.certificate_.passes <= 5
    with pytest.warns(NotConvergedWarning):
        fitted = AdversarialClassifier(C=100.0, tol=1e-9, max_seconds=1e-9).fit(BlockRows(X), y)
    assert fitted.certificate_.status == "max_seconds"
    assert fitted.certificate_.dual <= fitted.certificate_.primal


def test_dual_points_outside_their_set_are_moved_by_rounding_and_refused_beyond_it():
    X, y = data(100)
    fitted = AdversarialClassifier(C=0.1).fit(BlockRows(X), y)
    codes = np.unique(y, return_inverse=True)[1]
    problem = BlockProblem(LinearFeatures(BlockRows(X).with_constant(), 3), fitted.loss_, codes, fitted.lam_)
    assert certify(problem, fitted.solution_, 1e-3) == fitted.certificate_
    part = slice(2 * BLOCK, 3 * BLOCK)
    for step, status in ((1e-13, "converged"), (1e-3, "infeasible_dual")):
        R = fitted.solution_.R.scaled(1.0)
        own = R.read(part)
        own[0] = -np.eye(3)[codes[part.start]] * (1.0 + step)
        own[0, (codes[part.start] + 1) % 3] = 1.0 + step
        R.write(part, own)
        moved, outside = problem.feasible(R)
        assert outside == pytest.approx(step, rel=1e-2)
        assert moved is not R
        assert problem.feasible(moved)[1] <= 1e-15
        assert certify(problem, replace(fitted.solution_, R=R), 1e3).status == status


def bad(value, at=(30, 2)):
    X, y = data(40)
    X[at] = value
    return X, y


@pytest.mark.parametrize(("value", "said"), [(np.nan, "NaN"), (np.inf, "infinity"), (1e300, "infinity"), (-1e38, None)])
def test_numbers_that_are_none_are_refused_as_in_arrays(value, said):
    with np.errstate(over="ignore"):
        X, y = bad(value)
    if said is None:
        AdversarialClassifier(C=1e-80).fit(BlockRows(X), y)
        return
    for rows in (BlockRows(X), X.astype(np.float64)):
        with pytest.raises(ValueError, match=said):
            AdversarialClassifier().fit(rows, y)


def test_what_cannot_be_is_refused_in_one_line():
    X, y = data(40)
    rows = BlockRows(X)
    huge = X.astype(np.float64)
    huge[35, 1] = 1e60
    for kept, call in (
        ("column 2 holds 1e\\+60", lambda: AdversarialClassifier().fit(BlockRows(huge), y)),
        ("inconsistent numbers of samples", lambda: AdversarialClassifier().fit(rows, y[:-1])),
        ("one class only", lambda: AdversarialClassifier().fit(rows, np.zeros(40))),
        ("features=rbf needs rows in memory", lambda: AdversarialClassifier(features="rbf").fit(rows, y)),
        ("moments=box needs rows in memory", lambda: AdversarialClassifier(features_options={"moments": "box"}).fit(rows, y)),
        ("calibrate=sigmoid needs rows in memory", lambda: AdversarialClassifier(calibrate="sigmoid").fit(rows, y)),
        ("loss=abstaining needs rows in memory", lambda: AbstainingClassifier("cs").fit(rows, y)),
        ("solver=newton needs rows in memory; choose solver=auto", lambda: AdversarialClassifier(solver="newton").fit(rows, y)),
        ("4 features", lambda: AdversarialClassifier().fit(rows, y).predict(BlockRows(np.ones((2, 3), np.float32)))),
        ("0 sample", lambda: AdversarialClassifier().fit(rows[:0], y[:0])),
        ("a column of ones already", lambda: AdversarialClassifier().fit(rows.with_constant(), y)),
        ("row after row", lambda: BlockRows(np.asfortranarray(X))),
    ):
        with pytest.raises((ConfigError, DataError, IncompatibleError, ValueError), match=kept) as caught:
            call()
        assert "\n" not in str(caught.value)


CHILD = """
import resource, sys
import numpy as np
from advcli import AdversarialClassifier
from advcli.core.row_blocks import BlockRows
from advcli.evaluation.standardise import Standardiser
X, y = (np.load(f"{sys.argv[1]}/{name}.npy", mmap_mode="r") for name in "Xy")
warm = BlockRows(np.array(X[:5000]))
AdversarialClassifier(C=1e-4).fit(Standardiser().fit(warm).transform(warm), np.array(y[:5000]))
with open("/proc/self/status") as lines:
    used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + int(sys.argv[2]) * 2**20, -1))
if sys.argv[3] == "copied":
    X = np.array(X)
rows = BlockRows(X)
fitted = AdversarialClassifier(lam=1e-2, tol=1e-2).fit(Standardiser().fit(rows).transform(rows), y)
print(fitted.certificate_.converged, fitted.score(np.array(X[:1000]), y[:1000]) >= 0, len(fitted.predict(rows)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux counts private memory apart from maps")
def test_a_fit_takes_little_memory_beside_the_map(tmp_path):
    """Private memory is limited to a third of the map; one copy of it, even in single precision, breaks the limit."""
    n, d, each = 200_000, 150, 20_000
    random = np.random.default_rng(0)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (n, d))
    y = np.lib.format.open_memmap(tmp_path / "y.npy", "w+", np.int64, (n,))
    block = random.normal(size=(each, d)).astype(np.float32)
    codes = np.argmax(block[:, :3] + random.normal(size=(each, 3)), axis=1)
    for first in range(0, n, each):
        X[first : first + each], y[first : first + each] = block + np.float32(first / n), codes
    X.flush()
    allowed = X.nbytes // 3 // 2**20
    del X, y
    for what in ("mapped", "copied"):
        found = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path), str(allowed), what], capture_output=True, text=True)
        if what == "mapped":
            assert found.stdout.split() == ["True", "True", str(n)], found.stderr
        else:
            assert "MemoryError" in found.stderr
    assert {path.name for path in Path(tmp_path).iterdir()} == {"X.npy", "y.npy"}
