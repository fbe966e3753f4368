"""The action ``bench``: how fast solvers close the gap."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from ...config import Settings, validate
from ...config.words import refuse_added_keys, without_hydra
from ...core.errors import ConfigError
from ..console import say, short
from ..task import METHOD, Task


class Bench(Task):
    """Trace the convergence of the listed solvers (and data sets, losses, features), one after the other in this process."""

    section = "Check, keep and share"
    place = 41
    summary = "trace how fast solvers close the duality gap"
    usage = (("bench KEY=VALUE solver=A,B,...", "how fast solvers close the gap: convergence.csv and a figure"),)
    example = "advcli bench dataset=wine hyper.C=1 solver=dual,newton,lbfgs"
    groups = METHOD
    keys = ("hyper", "bench", "name", "seed", "arithmetic", "results_dir", "data_dir")
    single = False

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        # a sweep in one process: solvers that are timed must not share the machine
        self.overrides = [*(word for word in words if word not in ("-m", "--multirun")), "-m", "hydra/launcher=basic"]
        self.rows: list[dict[str, Any]] = []
        self.cells: list[Settings] = []

    @contextlib.contextmanager
    def plan(self, master: DictConfig, cells: list[list[str]], compose: Callable[[Sequence[str]], DictConfig]) -> Iterator[list[list[str]]]:
        """Check all problems before the first one starts."""
        from ...data import is_ordered
        from ...evaluation import Cell
        from ...evaluation.traces import check_traceable
        from ...learners import Method

        refuse_added_keys(compose(cells[0]).hydra)
        self.cells = [validate(without_hydra(compose(words))) for words in cells]
        for cell in self.cells:
            check_traceable(Cell.of(cell))
            ordered = is_ordered(cell.dataset) is not False
            Method.of(cell).check(ordered, None)
        say(f"{len(self.cells)} traces, one at a time; results in {short(self.cells[0].folder)}")
        yield cells

    def __call__(self, config: DictConfig) -> None:
        """Trace one solver on one problem; an error waits for `finish` and ends the rest."""
        if self.error is None and self.cells:
            try:
                self.act(self.cells[HydraConfig.get().job.num])
            except Exception as error:
                self.error = error

    def act(self, settings: Settings) -> None:
        """Trace one solver and say where it ended."""
        from ...evaluation import Cell
        from ...evaluation.traces import trace

        rows = trace(Cell.of(settings), settings.data_dir, tol=settings.bench["tol"], seconds=settings.bench["seconds"])
        self.rows += rows
        last = rows[-1]
        number = HydraConfig.get().job.num + 1
        result = f"gap {last['relative_gap']:.1e} after {last['passes']:.0f} passes, {last['time']:.2f} s ({last['status']})"
        say(f"[{number}/{len(self.cells)}] {settings.label} {settings.solver['name']}: {result}")

    def finish(self) -> int:
        """Write the table and the figures of what was traced."""
        super().finish()
        if not self.cells:
            raise ConfigError("advcli bench needs its own sweeper; leave out hydra/sweeper=...")
        from ...evaluation.traces import COLUMNS
        from ...reports.convergence import write_convergence

        files = write_convergence(self.rows, COLUMNS, self.cells[0].folder)
        print(f"{short(self.cells[0].folder)}: {', '.join(file.name for file in files)}")
        return 0
