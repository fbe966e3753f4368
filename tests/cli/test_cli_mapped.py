"""Rows beyond memory on the command line: a model, a run, what verify says of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main
from advcli.core.row_blocks import BlockRows
from advcli.models import read

ROWS = ["dataset=mapped", "dataset.features=X.npy", "dataset.labels=y.npy"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    Z = random.normal(size=(400, 3))
    np.save("X.npy", (Z * [1, 30, 0.1] + [0, 100, 2]).astype(np.float32))
    np.save("y.npy", np.array(["low", "high"])[(Z[:, 0] + Z[:, 1] + random.normal(size=400) > 0).astype(int)])


def test_a_model_of_mapped_rows_is_that_of_the_same_rows_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", *ROWS, "hyper.C=0.1", "solver.tol=1e-6", "out=mapped.model"]) == 0
    told = capsys.readouterr()
    assert "400 rows, 3 features, 2 classes" in told.out + told.err
    table = pd.DataFrame(np.load("X.npy").astype(np.float64), columns=["1", "2", "3"])
    table.assign(label=np.load("y.npy")).to_csv("rows.csv", index=False)
    other = ["dataset=csv", "dataset.path=rows.csv", "dataset.target=label"]
    assert main(["fit", *other, "hyper.C=0.1", "solver.tol=1e-6", "out=table.model"]) == 0
    mapped, usual = read(Path("mapped.model")), read(Path("table.model"))
    assert mapped.certificate is not None
    assert usual.certificate is not None
    assert mapped.certificate.solver == "dual_blocks"
    assert max(mapped.certificate.dual, usual.certificate.dual) <= min(mapped.certificate.primal, usual.certificate.primal) + 1e-12
    assert np.allclose(mapped.standardiser.mean_, usual.standardiser.mean_, rtol=1e-12)
    assert main(["predict", "model=mapped.model", "input=rows.csv", "predict.extra=ignore", "out=said.csv"]) == 0
    assert len(pd.read_csv("said.csv")) == 400
    capsys.readouterr()
    fitted = mapped.estimator
    np.savez("weights.npz", coef=fitted.coef_, intercept=fitted.intercept_, classes=np.array(mapped.classes))
    assert main(["certify", "model=weights.npz", *ROWS, "hyper.C=0.1"]) == 0
    assert "our own fit: dual_blocks" in capsys.readouterr().out


def test_a_run_searches_and_verify_says_that_it_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["protocol.n_splits=2", "protocol.search=first_split", "protocol.folds=2", "record.proofs=true"]
    assert main([*ROWS, "loss=zero_one", *quick, "results_dir=results"]) == 0
    folder = next(Path("results").iterdir())
    rows = pd.read_csv(folder / "runs.csv")
    assert rows["converged"].all()
    capsys.readouterr()
    main(["verify", f"results={folder}"])
    said = capsys.readouterr()
    assert "0 proved, 0 refuted, 2 cannot" in said.out + said.err


@pytest.mark.parametrize("words", [["loss=uma"], ["features=rbf", "hyper.C=1"], ["calibrate=sigmoid"], ["solver=newton", "hyper.C=1"]])
def test_what_needs_rows_in_memory_says_so(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", *ROWS, *words, "out=never.model"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "needs rows in memory" in said[0]
    assert not Path("never.model").exists()
    assert repr(BlockRows(np.load("X.npy", mmap_mode="r"))) == "BlockRows(400 x 3, a map of float32)"
