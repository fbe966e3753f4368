"""What can be known to be a mistake is refused before any work, once, in single runs and sweeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from advcli.cli import main

OWN = ["dataset=csv", "dataset.path=own.csv", "dataset.target=t"]
QUICK = ["protocol.n_splits=1", "quiet=true", "workers=1", "hydra/launcher=basic", "name=x"]


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    labels = np.array(["low", "medium", "high"])[y]
    pd.DataFrame({"a": random.normal(size=60) + y, "b": random.normal(size=60), "t": labels}).to_csv("own.csv", index=False)


MISTAKES = {
    "a metric of abstaining": ([*OWN, "protocol.metrics=[abstention_loss]"], "the metric abstention_loss needs the cost of an abstention"),
    "of bundled data": (["protocol.metrics=[abstention_loss]"], "loss=zero_one on iris has none"),
    "a metric of costs": (["loss=ww", "protocol.metrics=[cost]"], "the metric cost needs a loss with a matrix"),
    "a metric of hierarchies": (["protocol.metric=tree_loss"], "needs a hierarchy over the labels"),
    "a metric of sequences": (["protocol.metrics=[entity_f1]"], "needs rows that form sequences"),
    "a misspelt metric": (["protocol.metric=acuracy"], "unknown metric 'acuracy': did you mean accuracy"),
    "no order": ([*OWN, "loss=absolute"], "loss=absolute needs labels with an order"),
    "a label beside the order": ([*OWN, "dataset.order=[low,high]"], "has the label 'medium', which dataset.order=['low', 'high'] misses"),
    "no file": (["dataset=csv", "dataset.path=owm.csv", "dataset.target=t"], "there is no file owm.csv; did you mean own.csv?"),
    "no column": (["dataset=csv", "dataset.path=own.csv", "dataset.target=s"], "'s'"),
    "several values": (["hyper.C=[1,2]"], "for a search among several give protocol.stage1.regularisation=[1, 2]"),
    "several widths": (["hyper.gamma=[1,2]", "features=rbf"], "for a search among several give protocol.stage1.gamma=[1, 2]"),
}


@pytest.mark.parametrize("sweep", [[], ["-m", "seed=0,1", "solver=auto,dual"]], ids=["run", "sweep"])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_before_any_work(name: str, sweep: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    words, said = MISTAKES[name]
    assert main([*sweep, *words, *QUICK]) == 2
    out, err = capfd.readouterr()
    assert said in err
    assert (out, len(err.splitlines())) == ("", 1)
    assert not Path("results").exists()


def test_what_a_method_brings_is_no_mistake() -> None:
    words = ["-m", "loss=abstain,abstain_cs,two_stage", "protocol.metrics=[abstention_loss,cost]", "hyper.C=1"]
    assert main([*words, "loss.alpha=0.4", *QUICK]) == 0
    assert main(["loss=weighted", "loss.base=abstain", "protocol.metrics=[abstention_loss]", "hyper.C=1", *QUICK[:-1], "name=y"]) == 0


def test_null_empties_a_stage(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol.stage2=null", "protocol.extend=null", "protocol.folds=2", *QUICK]) == 0
    assert set(pd.read_csv("results/x/search.csv")["stage"]) == {1}
