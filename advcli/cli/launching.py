"""The sweep as Hydra sees it, and the launchers that run its jobs in worker processes."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, cast

from hydra.core.config_loader import ConfigLoader
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict, read_write

from ..config import first_line
from ..config.words import expand
from ..core.errors import ConfigError
from ..core.processes import bound_to_this_process, interrupts_reach_this_process_only
from .task import Task


class CellSweeper(Sweeper):
    """The sweep over cells: every combination is a cell, and all are composed and checked before the first one starts.

    Parameters
    ----------
    params : mapping or None
        Values of the sweep that a preset brings: key to ``value1,value2``.
    """

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        self.params = dict(params or {})

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra gives, and make the launcher."""
        self.loader = hydra_context.config_loader
        self.config: DictConfig = config
        self.task = cast(Task, task_function)
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(config_loader=cast(ConfigLoader, JobLoader()), callbacks=hydra_context.callbacks),
            task_function=task_function,
            config=config,
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Expand the sweep, let the task check every cell, then launch them all."""
        cells = expand(self.loader, self.params, arguments)
        try:
            with (
                self.task.plan(self.config, cells, lambda words: self.loader.load_sweep_config(self.config, list(words))) as jobs,
                interrupts_reach_this_process_only(),
            ):
                if not jobs:  # nothing is to be computed
                    return []
                _no_more_workers_than_jobs(self.launcher, len(jobs))
                _workers_end_with_this_process(self.launcher)
                returns = self.launcher.launch(jobs, initial_job_idx=0)
        except Exception as error:
            # joblib and Ray, submitit: a job ended without an answer
            if not isinstance(error, BrokenExecutor) and type(error).__module__.partition(".")[0] != "submitit":
                raise
            self.task.collect(None)
            return []
        self.task.collect([job.return_value for job in returns])
        return [returns]


class JobLoader:
    """What launchers ask for the config of a job: the sweep's own, because the plan brings the cells, composed and checked.

    Composing again in the worker would take longer than a small cell.
    """

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Return a copy of the sweep's config that names the overrides of the job's first cell."""
        config = copy.deepcopy(master_config)
        with read_write(config), open_dict(config):
            config.hydra.overrides.task = list(sweep_overrides)
        return config


class RayLauncher(Launcher):
    """Runs the jobs of a sweep as tasks of Ray; conf/hydra/launcher/ray.yaml describes the parameters.

    The published launcher of this kind asks for a cloudpickle that joblib refuses.
    """

    def __init__(self, address: str | None, num_cpus: int | None, cpus_per_job: float, object_store_memory: int) -> None:
        here = {"num_cpus": num_cpus, "object_store_memory": object_store_memory, "include_dashboard": False}
        self.options: dict[str, Any] = {"address": address} if address else {"address": "local", **here}
        self.cpus_per_job = cpus_per_job

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep the task."""
        self.task = cast(Task, task_function)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs and wait for them."""
        try:
            import ray
        except ImportError as error:
            raise ConfigError('hydra/launcher=ray needs Ray; install it with: pip install "advcli[scale]"') from error
        started = not ray.is_initialized()
        if started:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray reports its use to its makers
            ray.init(**self.options, log_to_driver=False, logging_level=logging.ERROR)
        try:
            task = ray.put(self.task)
            work = ray.remote(num_cpus=self.cpus_per_job)(_run_job)
            jobs = [work.remote(task, initial_job_idx + at) for at in range(len(job_overrides))]
            return [JobReturn(_return_value=done, status=JobStatus.COMPLETED) for done in ray.get(jobs)]
        except ray.exceptions.RayError as error:
            raise BrokenExecutor(first_line(error)) from error
        finally:
            if started:
                ray.shutdown()


def _run_job(task: Task, job: int) -> Any:
    return task.run_job(job)


def _no_more_workers_than_jobs(launcher: Launcher, jobs: int) -> None:
    """Lower the number of processes that joblib or Ray starts: both start as many as their option says, whether there is work or not."""
    for options, key in ((getattr(launcher, "joblib", {}), "n_jobs"), (getattr(launcher, "options", {}), "num_cpus")):
        asked = options.get(key)
        if isinstance(asked, int):
            options[key] = min(asked if asked > 0 else os.cpu_count() or 1, jobs)


def _workers_end_with_this_process(launcher: Launcher) -> None:
    """Bind joblib's workers to this process; Ray ends its own, and jobs of submitit and of a cluster go on."""
    options = getattr(launcher, "joblib", None)
    if isinstance(options, dict):
        options |= bound_to_this_process()
