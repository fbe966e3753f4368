"""Standard output holds what commands print, and nothing that libraries write below Python."""

from __future__ import annotations

import ctypes
import io
import sys
from pathlib import Path

import numpy as np
import pytest

from advcli.cli import actions, main

pytestmark = pytest.mark.usefixtures("elsewhere")

ROWS = ["dataset=csv", "dataset.path=rows.csv", "dataset.target=y", "hyper.C=1", "solver.tol=0.3"]
GAME = [*ROWS, "loss=general", "loss.matrix=[[0,1,3],[2,0,1],[1.5,2,0]]", "loss.backend=highs"]  # every game goes to HiGHS
WORDS = {
    "run": [*GAME, "protocol.n_splits=1", "record.proofs=true", "name=x"],
    "bench": ["bench", *GAME, "solver=lbfgs", "name=b"],
    "fit": ["fit", *ROWS, "loss=abstain", "out=m.advcli"],
    "predict": ["predict", "model=m.advcli", "input=rows.csv", "out=p.csv"],
    "model": ["model", "show", "m.advcli"],
    "coverage": ["coverage", "model=m.advcli", "input=rows.csv", "out=c"],
    "certify": ["certify", "model=w.npz", *GAME],
    "verify": ["verify", "results=results/x"],
    "report": ["report", "results=results/x"],
    "diff": ["diff", "results/x", "results/x"],
    "import": ["import", "scores.csv", "out=results/theirs"],
    "check": ["check", "results=results/x", "baseline=baseline.csv", "--update"],
    "export": ["export", "csv", "results=results/x", "out=x.csv"],
    "runs": ["runs", "list"],
    "data": ["data", "list"],
    "experiment": ["experiment", "list"],
    "loss": ["loss", "check", "zero_one"],
    "drop": ["drop", "results=results/x", "method='general linear'"],
}


def test_every_action_prints_what_it_has_to_say_and_libraries_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)).round(2), np.repeat([0, 1, 2], 20)
    Path("rows.csv").write_text("a,b,y\n" + "".join(f"{a + code},{b},{code}\n" for (a, b), code in zip(X, y, strict=True)))
    np.savez("w.npz", coef=random.normal(size=(3, 2)))
    Path("scores.csv").write_text("dataset,method,accuracy\niris,a,0.9\niris,b,0.8\n")
    assert set(WORDS) == set(actions.names())
    for action, words in WORDS.items():
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", printed)
            code = main([*words, "quiet=true"])
        ctypes.CDLL(None).fflush(None)  # what C holds back
        out, err = capfd.readouterr()
        assert code == 0, (action, err)
        assert out == "", action
        assert "HiGHS" not in printed.getvalue() + err, action
