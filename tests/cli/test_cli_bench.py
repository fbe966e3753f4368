"""`advcli bench`: one table and one figure for all solvers of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.exact_tables import exact

from advcli.cli import main
from advcli.reports.convergence import with_suboptimality

pytest.importorskip("matplotlib", reason="the figures need matplotlib")


pytestmark = pytest.mark.usefixtures("elsewhere")


def test_all_solvers_in_one_run(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "dataset=iris", "loss=zero_one", "solver=dual,newton,lbfgs,sgd", "bench.seconds=1", "bench.tol=1e-4", "name=b"]
    assert main([*words, "solver.max_passes=300"]) == 0
    out, err = capfd.readouterr()
    assert {path.name for path in Path("results/b").iterdir()} == {
        "convergence.csv",
        "convergence_iris_zero_one_linear.png",
        "convergence_iris_zero_one_linear.svg",
    }
    assert "convergence.csv" in out
    assert "[4/4] iris zero_one linear sgd: gap" in err
    frame = exact("results/b/convergence.csv")
    assert list(dict.fromkeys(frame["solver"])) == ["dual", "newton", "lbfgs", "sgd"]
    assert frame["lambda"].nunique() == 1  # one problem
    assert frame["lambda"].iloc[0] == pytest.approx(1 / frame["n"].iloc[0])  # at C = 1
    assert frame["dual"].max() <= frame["primal"].min() * (1 + 1e-12)  # every bound is below every objective
    for solver, part in frame.groupby("solver"):
        assert (np.diff(part["passes"]) >= 0).all(), solver
        assert (part["gap"] == part["primal"] - part["dual"]).all()
        assert part["primal"].iloc[-1] <= part["primal"].iloc[0]
    last = frame.groupby("solver").last()
    assert (last.loc[["dual", "newton", "lbfgs"], "relative_gap"] <= 1e-4).all()
    assert (last.loc[["dual", "newton", "lbfgs"], "suboptimality"] <= 1e-4).all()
    assert (frame["suboptimality"] >= 0).all()
    svg = Path("results/b/convergence_iris_zero_one_linear.svg").read_text(encoding="utf-8")
    for text in ("seconds", "passes over the rows", "dual", "newton", "lbfgs", "sgd"):
        assert text in svg


def test_the_trace_is_the_same_twice() -> None:
    for name in ("one", "two"):
        assert main(["bench", "dataset=iris", "solver=sag", "bench.tol=5e-2", f"name={name}"]) == 0
    one, two = (exact(f"results/{name}/convergence.csv").drop(columns="time") for name in ("one", "two"))
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["solver=dual,newtn"], "newton"),
        (["hyper.gamma=1"], "hyper.gamma is no hyper-parameter of this method; it has C, lambda"),
        (["bench.tol=0"], "bench.tol=0 is not valid"),
        (["dataset=synthetic_hierarchy", "loss=nhsvm"], "give hyper.rho=VALUE"),
        (["features=rbf", "solver=lbfgs"], "solver=lbfgs"),
    ],
)
def test_bad_input_is_one_line(words: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dataset=iris", *words]) == 2
    _, err = capfd.readouterr()
    assert message in err
    assert "Traceback" not in err


def test_suboptimality_is_measured_from_the_best_bound_of_each_problem() -> None:
    rows = [("a", "l", "f", 2.0, 0.5), ("a", "l", "f", 1.0, 0.75), ("b", "l", "f", 3.0, np.nan), ("b", "l", "f", 4.0, 3.0)]
    frame = with_suboptimality(pd.DataFrame(rows, columns=["dataset", "loss", "features", "primal", "dual"]))
    assert frame["suboptimality"].tolist() == [1.25, 0.25, 0.0, pytest.approx(1 / 3)]


@pytest.mark.parametrize("own", [["loss=nhsvm", "hyper.rho=2"], ["loss=forward"]])
def test_learners_with_an_algorithm_of_their_own_are_traced(own: list[str], tmp_path: Path) -> None:
    small = ["dataset.rows=200", "dataset.features=100", "dataset.nodes=12", "dataset.leaves=8"]
    words = ["bench", "dataset=synthetic_hierarchy", *small, *own, "bench.tol=1e-3", f"results_dir={tmp_path}", "name=trace"]
    assert main(words) == 0
    rows = exact(tmp_path / "trace" / "convergence.csv")
    assert (rows["passes"].diff().dropna() > 0).all()
    assert rows["relative_gap"].iloc[-1] <= 1e-3 < rows["relative_gap"].iloc[0]
    assert rows["lambda"].nunique() == 1


@pytest.mark.parametrize("loss", ["uma", "s3vm"])
def test_learners_without_a_certificate_are_refused_before_any_work(loss: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "dataset=iris", f"loss={loss}", f"results_dir={tmp_path}"]) == 2
    assert f"advcli bench needs fits with a certificate; loss={loss} has none" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())
