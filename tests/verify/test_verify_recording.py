"""What a sweep keeps of its fits: the same bytes whatever the workers, computed anew where missing, nothing where nobody asked for it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from advcli import SurrogateClassifier
from advcli.cli import main
from advcli.results import proofs
from advcli.results.folder import ResultsFolder
from advcli.results.tables import TIMING_COLUMNS, lasting

pytestmark = pytest.mark.usefixtures("elsewhere")

SWEEP = ["-m", "dataset=iris", "loss=zero_one,cs", "hyper.C=1", "protocol.n_splits=2", "quiet=true"]


def run(name: str, *words: str) -> ResultsFolder:
    assert main([*SWEEP, f"name={name}", *words]) == 0
    return ResultsFolder(Path("results") / name)


def files(folder: ResultsFolder) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.proofs_path.iterdir())}


def test_workers_and_resumption_leave_the_same_bytes_and_rows() -> None:
    one = run("one", "record.proofs=true", "workers=1")
    two = run("two", "record.proofs=true", "workers=2")
    plain = run("plain", "workers=1")
    assert files(one) == files(two)
    assert len(files(one)) == 2
    assert not plain.proofs_path.exists()
    rows, bare = (folder.runs().drop(columns=[*TIMING_COLUMNS[:2], "proof"]) for folder in (one, plain))
    assert rows.equals(bare)
    assert one.runs()["proof"].str.fullmatch("[0-9a-f]{64}").all()
    assert (plain.runs()["proof"] == "").all()

    # a folder whose cells are there without proofs gets them; those with proofs are not computed again
    assert files(run("plain", "record.proofs=true", "workers=1")) == files(one)
    cells = sorted(one.cells_path.glob("*.json"))
    before = [path.stat().st_mtime_ns for path in cells]
    run("one", "record.proofs=true", "workers=1")
    run("one", "workers=1")
    assert [path.stat().st_mtime_ns for path in cells] == before
    lost = sorted(one.proofs_path.iterdir())[0]
    lost.unlink()
    run("one", "record.proofs=true", "workers=1")
    assert files(one) == files(two)
    assert sum(path.stat().st_mtime_ns != time for path, time in zip(cells, before, strict=True)) == 1


def test_the_arrays_are_those_of_the_fit_row_by_row(tmp_path: Path) -> None:
    """Equal rows are merged in the fit; the proof has one line for each row of the split all the same."""
    random = np.random.default_rng(3)
    X = random.integers(0, 3, (60, 2))
    y = (X.sum(axis=1) + random.integers(0, 2, 60)) % 3
    Path("small.csv").write_text("a,b,y\n" + "".join(f"{a},{b},c{label}\n" for (a, b), label in zip(X, y, strict=True)))
    words = ["dataset=csv", "dataset.path=small.csv", "dataset.target=y", "hyper.C=1", "protocol.n_splits=1", "protocol.standardise=none"]
    assert main([*words, "record.proofs=true", "name=small", "quiet=true", "solver.tol=1e-8"]) == 0
    folder = ResultsFolder(tmp_path / "results" / "small")
    row = folder.runs().iloc[0]
    arrays = proofs.read(folder, row["cell"])[1]
    about = folder.read_cell(row["cell"])["about"]
    assert row["proof"] == proofs.digest(lasting(about["cell"]), 1, arrays)
    assert proofs.digest(about["cell"], 2, arrays) != row["proof"]
    assert arrays["r"].shape == (42, 3)
    # at the optimum theta is spanned by r
    from advcli.data import load
    from advcli.evaluation.splits import random_splits

    dataset = load(about["cell"]["dataset"], tmp_path)
    train, _ = random_splits(60, 1, 0.7, 0, dataset.name)[0]
    Z = np.column_stack([dataset.X[train], np.ones(42)])
    np.testing.assert_allclose(-Z.T @ arrays["r"], arrays["theta"], atol=1e-3)


def test_the_hash_is_of_the_configuration_the_split_and_every_array() -> None:
    arrays = {part: np.full((3, 2), number + 1.0) for number, part in enumerate(proofs.PARTS)}
    assert proofs.PARTS == ("theta", "r", "predictor", "rejector_theta", "rejector_r", "relations_theta", "relations_r")
    hashes = {proofs.digest({"seed": 0}, 1, arrays), proofs.digest({"seed": 1}, 1, arrays), proofs.digest({"seed": 0}, 2, arrays)}
    for part in arrays:
        hashes.add(proofs.digest({"seed": 0}, 1, {**arrays, part: 2.0 * arrays[part]}))
        hashes.add(proofs.digest({"seed": 0}, 1, {**arrays, part: arrays[part].reshape(2, 3)}))
        hashes.add(proofs.digest({"seed": 0}, 1, {name: array for name, array in arrays.items() if name != part}))
    assert len(hashes) == 24
    assert proofs.digest({"seed": 0}, 1, {part: np.asfortranarray(array) for part, array in arrays.items()}) in hashes


def test_a_row_of_weight_zero_keeps_its_own_label(tmp_path: Path) -> None:
    """The solved problem does not have the row: its r is 0, from its own label and not from the label of another row."""
    random = np.random.default_rng(0)
    X, y, weight = random.normal(size=(30, 2)), np.arange(30) % 3, np.ones(30)
    weight[[4, 17]] = 0.0
    model = SurrogateClassifier("zero_one", n_classes=3).fit(X, y, sample_weight=weight)
    recorder = proofs.Recorder(ResultsFolder(tmp_path), "key", {})
    recorder.keep(1, model, X, y, weight)
    r = recorder.arrays["r_1"]
    assert (r[weight == 0.0] == 0.0).all()
    assert (r[weight > 0.0] != 0.0).any(axis=1).all()


def test_methods_that_are_no_surrogates_keep_nothing_and_are_not_computed_again() -> None:
    words = ["dataset=iris", "loss=perceptron", "protocol.n_splits=1", "record.proofs=true", "name=none", "quiet=true"]
    assert main(words) == 0
    folder = ResultsFolder("results/none")
    (cell,) = folder.cells_path.glob("*.json")
    before = cell.stat().st_mtime_ns
    assert main(words) == 0
    assert cell.stat().st_mtime_ns == before
    assert not folder.proofs_path.exists()
    assert main(["verify", "results=results/none"]) == 1, "nothing was proved"


def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    folder = ResultsFolder(tmp_path)
    with pytest.raises(proofs.ResultsError, match=r"proofs/x\.npz is missing"):
        proofs.read(folder, "x")
    folder.proofs_path.mkdir()
    (folder.proofs_path / "x.npz").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(proofs.ResultsError, match=r"proofs/x\.npz is damaged"):
        proofs.read(folder, "x")
    # an array of objects is a pickle, which could do anything
    np.savez_compressed(folder.proofs_path / "x.npz", theta_1=np.array([{}], dtype=object))
    with pytest.raises(proofs.ResultsError, match=r"proofs/x\.npz is damaged \(ValueError\)"):
        proofs.read(folder, "x")
