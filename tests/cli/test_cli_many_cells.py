"""Sweeps of many cells: composed from few compositions, at a cost per cell and a memory that do not grow."""

from __future__ import annotations

import copy
import gc
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
import pytest
from omegaconf import OmegaConf
from support.counting import Calls

from advcli.cli import main
from advcli.config import plain
from advcli.config.composing import compose_all
from advcli.config.words import scalar_override
from advcli.core.paths import conf_dir
from advcli.evaluation.sweeps.jobs import run_job, run_one
from advcli.results.folder import ResultsFolder


class Composer:
    """Composes like a sweep does, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, words: Sequence[str]) -> dict[str, Any]:
        self.count += 1
        with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return plain(hydra.compose("config", list(words)))


def product(*values: Sequence[str]) -> list[list[str]]:
    return [list(job) for job in itertools.product(*values)]


LOSSES = ["loss=ww", "loss=cs"]
SWEEPS = {
    "groups": product(["dataset=iris", "dataset=glass", "dataset=digits"], ["loss=zero_one", "loss=abstain", "loss=cs"]),
    "values": product([f"seed={at}" for at in range(3)], ["hyper.C=1", "hyper.C=2.5"]),
    "lists": product(["protocol.metrics=[error]", "protocol.metrics=[]"], ["solver.tol=1e-3", "solver.tol=1e-4"], LOSSES),
    # the same keys from two sides: the last one wins, which no combination of changes knows
    "overlap": product(["protocol=standard", "protocol=ordinal"], [f"protocol.n_splits={at}" for at in (3, 4, 5)], LOSSES),
    # a key that follows another one
    "follows": product([f"seed={at}" for at in range(3)], ["hyper.C=${seed}", "hyper.C=7"]),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_configs_are_those_of_full_compositions(name: str) -> None:
    jobs, compose = SWEEPS[name], Composer()
    assert compose_all(jobs, compose, scalar_override) == [compose(job) for job in jobs]


def test_ten_thousand_cells_need_few_compositions() -> None:
    datasets = [f"dataset={name}" for name in ("iris", "wine", "digits", "glass", "sat")]
    jobs = product(datasets, LOSSES, [f"seed={at}" for at in range(1000)])
    compose = Composer()
    found = compose_all(jobs, compose, scalar_override)
    assert compose.count <= 12
    assert len(found) == 10_000
    assert (found[-1]["dataset"]["name"], found[-1]["loss"]["name"], found[-1]["seed"]) == ("sat", "cs", 999)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("seed=3", ("seed", 3)),
        ("hyper.C=1e-3", ("hyper.C", 1e-3)),
        ("name='a b'", ("name", "a b")),
        ("workers=null", ("workers", None)),
        ("quiet=true", ("quiet", True)),
        ("protocol.metrics=[a]", None),
        ("hyper.C=${seed}", None),
        ("name=???", None),
        ("+a=1", None),
        ("~a", None),
    ],
)
def test_scalars_are_read_as_hydra_does(text: str, read: tuple[str, Any] | None) -> None:
    assert scalar_override(text) == read
    if read is not None:
        assert OmegaConf.select(OmegaConf.create(Composer()([text])), read[0]) == read[1]


def test_planning_costs_as_much_for_the_last_cell_as_for_the_first() -> None:
    """Calls are counted in the place of seconds: they do not depend on what else the machine does."""
    spent, made, compose = [], {}, Composer()

    def composed(words: Sequence[str]) -> dict[str, Any]:
        if tuple(words) not in made:
            made[tuple(words)] = compose(words)
        return copy.deepcopy(made[tuple(words)])

    for seeds in (50, 50, 100, 200):
        jobs = product(["dataset=iris", "dataset=wine"], LOSSES, [f"seed={at}" for at in range(seeds)])
        with Calls() as calls:
            compose_all(jobs, composed, scalar_override)
        spent.append(calls.count)
    _, *spent = spent  # the first one composes
    first, second = spent[1] - spent[0], spent[2] - spent[1]
    assert second < 1.2 * 2 * first


def test_cost_per_cell_and_memory_do_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a cell to the next one: the same number of calls, and few blocks of memory that stay."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ResultsFolder, "merge_seconds", 1e9)  # merging is spread over time (`test_merges_are_rare_during_a_sweep`)
    counter, calls, blocks, run = Calls(), [], [], run_one

    def counted(*arguments: Any, **options: Any) -> Any:
        outcome = run(*arguments, **options)
        calls.append(counter.count)
        if len(calls) in (2, 64):
            gc.collect()
            blocks.append(sys.getallocatedblocks())
        if len(calls) == 1:
            counter.start()
        return outcome

    monkeypatch.setattr("advcli.evaluation.sweeps.jobs.run_one", counted)
    axes = ["seed=range(0,8)", "hyper.C=1,1.1,1.2,1.3,1.4,1.5,1.6,1.7"]
    try:
        code = main(["-m", *axes, "protocol.n_splits=1", "protocol.metrics=[]", "cells_per_job=64", "workers=1", "name=x", "quiet=true"])
    finally:
        counter.stop()
    assert code == 0
    assert len(calls) == 64
    assert calls[63] - calls[39] < 1.25 * (calls[39] - calls[15])  # some 7,300 a cell
    assert (blocks[1] - blocks[0]) / 62 < 100  # some 27


def test_jobs_are_few_however_many_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job costs a composition, and what Hydra keeps of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("advcli.evaluation.sweeps.jobs.JOBS_PER_WORKER", 3)
    jobs: list[int] = []
    monkeypatch.setattr("advcli.evaluation.sweeps.jobs.run_job", lambda session, job: jobs.append(job) or run_job(session, job))
    assert main(["-m", "seed=range(0,8)", "hyper.C=1", "protocol.n_splits=1", "workers=1", "name=x", "quiet=true"]) == 0
    assert len(jobs) == 3
