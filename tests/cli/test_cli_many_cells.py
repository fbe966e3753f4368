"""Sweeps of many cells: composed from few compositions, at a cost per cell and a memory that do not grow."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
import pytest
from omegaconf import OmegaConf

from advcli.cli import _scalar_override
from advcli.config import compose_all, plain
from advcli.paths import conf_dir


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
    "values": product([f"seed={at}" for at in range(6)], ["hyper.C=1", "hyper.C=2.5"]),
    "lists": product(["protocol.metrics=[error]", "protocol.metrics=[]"], ["solver.tol=1e-3", "solver.tol=1e-4"], LOSSES),
    # the same keys from two sides: the last one wins, which no combination of changes knows
    "overlap": product(["protocol=standard", "protocol=ordinal"], [f"protocol.n_splits={at}" for at in (3, 4, 5)], LOSSES),
    # a key that follows another one
    "follows": product([f"seed={at}" for at in range(6)], ["hyper.C=${seed}", "hyper.C=7"]),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_configs_are_those_of_full_compositions(name: str) -> None:
    jobs, compose = SWEEPS[name], Composer()
    assert compose_all(jobs, compose, _scalar_override) == [compose(job) for job in jobs]


def test_ten_thousand_cells_need_few_compositions() -> None:
    datasets = [f"dataset={name}" for name in ("iris", "wine", "digits", "glass", "sat")]
    jobs = product(datasets, LOSSES, [f"seed={at}" for at in range(1000)])
    compose = Composer()
    found = compose_all(jobs, compose, _scalar_override)
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
    assert _scalar_override(text) == read
    if read is not None:
        assert OmegaConf.select(OmegaConf.create(Composer()([text])), read[0]) == read[1]


def test_cost_per_cell_and_memory_do_not_grow() -> None:
    file = Path(__file__).parents[1] / "benchmarks" / "cells.py"
    spec = importlib.util.spec_from_file_location("benchmarks_cells", file)
    assert spec is not None
    assert spec.loader is not None
    cells = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cells)
    # ratios of one machine within a minute; a cost in proportion to the cells before would make the ratio about eight, whenever it is
    # measured, while other work on the machine comes and goes
    for _attempt in range(3):
        few, many = cells.measure(49, 1), cells.measure(400, 1)
        assert (few["cells"], many["cells"]) == (49, 400)
        if all(many[each] < 3 * few[each] for each in ("ms_per_cell", "start_seconds")):
            break
    assert many["ms_per_cell"] < 3 * few["ms_per_cell"]
    assert many["start_seconds"] < 3 * few["start_seconds"]
    assert many["parent_mb"] < few["parent_mb"] + 20
