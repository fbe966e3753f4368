"""``dry_run=true``: what would be computed, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from advcli.cli import main
from advcli.evaluation.sweeps.effort import Estimate, duration, lines

SMALL = ["protocol.n_splits=2", "protocol.folds=3", "protocol.extend=null", "workers=1", "hydra/launcher=basic", "name=x", "quiet=true"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["dataset=iris"],
        ["dataset=iris", "protocol.search=first_split", "protocol.stage2=null"],
        ["dataset=iris", "protocol.holdout=0.3", "protocol.stage1.regularisation=[1,2]"],
        ["-m", "dataset=iris,wine", "loss=zero_one,logistic", "protocol.stage1.regularisation=[1,2]", "protocol.stage2=null"],
        ["-m", "dataset=iris,wine", "loss=cs", "hyper.C=1"],
    ],
)
def test_the_fits_are_those_of_the_run(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "dry_run=true", *SMALL]) == 0
    out, _ = capfd.readouterr()
    assert not Path("results").exists()
    said = int(re.search(r"in all (\d+) fits", out)[1])  # type: ignore[index]
    assert main([*words, *SMALL]) == 0
    runs = pd.read_csv("results/x/runs.csv").drop_duplicates(["cell", "split"])
    assert said == len(runs) + len(pd.read_csv("results/x/search.csv"))


def test_a_mistake_is_found(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol.metrics=[abstention_loss]", "dry_run=true"]) == 2
    assert "needs the cost of an abstention" in capfd.readouterr().err


def test_the_sum_says_how_long() -> None:
    one, other = Estimate("a", "cs linear", 2, 50, 2, 1.0, 20.0), Estimate("b", "cs linear", 0, 0, 20, 0.0, 1.0)
    assert (one.all_fits, one.total, other.total) == (102, 140.0, 20.0)
    assert lines([one, other], 2)[-1].startswith("in all 122 fits, about 2.7 minutes of computing, 2.3 minutes by 2 at a time")
    assert [duration(each) for each in (0.1, 119.0, 7200.0, 200_000.0)] == ["1 s", "119 s", "2.0 hours", "2.3 days"]
