"""The action ``run``: select, fit and evaluate one cell or every cell of a sweep."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from ... import config as configuration
from ... import plugins
from ...config import Settings, validate
from ...errors import AdvcliError, ConfigError, NotConvergedWarning, ResultsError
from ...progress import Journal, Progress
from ..cells import cell_of
from ..console import counted, print_table, say, short, warn, warning
from ..folders import unmake
from ..launching import JOBS_PER_WORKER
from ..overrides import own, refuse_added_keys, scalar_override, words_of
from ..sweeps import compose_all
from ..task import Task

if TYPE_CHECKING:
    from ...evaluation.runner import CellOutcome
    from ...records import ResultsFolder


class Run(Task):
    """Select, fit and evaluate one cell, or every cell of a sweep.

    The object lives in the parent; a sweep sends a copy of it to each worker, where only `__call__` is used.
    """

    place = 1
    usage = (
        ("[run] [KEY=VALUE ...]", "select, fit and evaluate one method on one data set"),
        ("-m KEY=VALUE1,VALUE2 ...", "a sweep over every combination; ends with the comparison table"),
        ("+experiment=PRESET", "a sweep from conf/experiment"),
    )
    single = False

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.started = time.time()
        self.cells = 0
        self.settings: Settings | None = None
        self.config: dict[str, Any] = {}
        self.outcomes: list[CellOutcome] = []
        self.died = ""
        self.session: Path | None = None
        self.told: set[int] = set()

    def __call__(self, config: DictConfig) -> Any:
        """Run one cell: in this process if it is the only one, in a worker for a sweep."""
        node = HydraConfig.get()
        if node.mode == RunMode.MULTIRUN:
            return self.run_job(int(node.job.num))
        try:
            refuse_added_keys(node)
            settings = validate(config)
            self.config = configuration.plain(config)
            made = [path for path in (settings.folder, *settings.folder.parents) if not path.exists()]
            folder = self._prepare([settings], [words_of(node)])
            self.cells = 1
            try:
                with folder.session() as session, Progress(session, 1, say, settings.quiet):
                    journal = Journal(session)
                    journal.started(0)
                    outcome, lines = _run_cell(settings, folder, strict=True)
                    journal.finished(0, outcome.status, outcome.skipped, lines)
            except AdvcliError:
                unmake(folder, made)
                raise
        except Exception as error:
            self.error = error
            return None
        self.outcomes = [outcome]
        return None

    def run_job(self, job: int) -> list[tuple[int, CellOutcome, list[str]]]:
        """Run the cells of one job and never raise: an exception here would end up as lines of Hydra.

        Returns
        -------
        list of (number, outcome, lines)
            The lines are what the journal was told, for the case that it could not take them.
        """
        if self.session is None:
            return []  # another sweeper than ours: nothing was checked and no folder is there; `finish` says so
        from ...evaluation.recipe import shared_data
        from ...evaluation.runner import CellOutcome

        journal = Journal(self.session)
        try:
            with open(self.session / f"job{job}.pickle", "rb") as file:
                plugins.use_folders(pickle.load(file))  # a worker that is used again began with those of another sweep
                folder: ResultsFolder = pickle.load(file)
                planned: list[tuple[int, Settings]] = pickle.load(file)
        except FileNotFoundError:
            return []  # somebody has removed the results folder; `finish` says so
        done = []
        lost: ResultsError | None = None
        with shared_data(self.session):
            for number, settings in planned:
                journal.started(number)
                try:
                    if lost is not None:
                        raise lost  # what cannot be kept is not computed
                    outcome, lines = _run_cell(settings, folder, strict=False)
                except Exception as error:
                    lost = error if isinstance(error, ResultsError) else lost
                    text = " ".join(f"{'' if isinstance(error, AdvcliError) else type(error).__name__ + ': '}{error}".split())
                    outcome, lines = CellOutcome("", settings.label, "", "failed", error=text), [f"{settings.label}: failed: {text}"]
                journal.finished(number, outcome.status, outcome.skipped, lines)
                # the rows are on the disk; sending them to the parent again would cost memory
                done.append((number, dataclasses.replace(outcome, rows=[]), lines))
        return done

    @contextlib.contextmanager
    def plan(self, master: DictConfig, cells: list[list[str]], compose: Callable[[Sequence[str]], DictConfig]) -> Iterator[list[list[str]]]:
        """Check all cells of a sweep, prepare their folder and share them out among the jobs of the launcher.

        The cells of a job are given to it in a file: the launcher composes a config for each job, which takes longer than a small
        cell, so a long sweep has fewer jobs than cells. A job gets every so many-th cell, because neighbours are alike long.
        """
        first = compose(cells[0])
        refuse_added_keys(first.hydra)
        plans = compose_all(cells, lambda words: configuration.plain(own(compose(words))), scalar_override)
        settled = [configuration.check(values) for values in plans]
        for key in ("name", "results_dir", "data_dir", "workers", "cells_per_job", "quiet", "results"):
            if len({str(getattr(cell, key)) for cell in settled}) > 1:
                raise ConfigError(f"{key} must be the same for all cells of a sweep; give one value")
        options: dict[str, dict[str, Any]] = {}
        for cell in settled:
            name = cell.dataset["name"]
            if options.setdefault(name, cell.dataset) != cell.dataset:
                differing = [key for key, value in cell.dataset.items() if options[name].get(key) != value]
                raise ConfigError(
                    f"dataset.{differing[0]} varies under one name: give each data set its own dataset.name, or its own sweep"
                )
        folder = self._prepare(settled, cells)
        self.cells = len(cells)
        self.config = configuration.plain(own(master))
        workers = settled[0].workers or os.cpu_count() or 1
        jobs = min(len(cells), -(-len(cells) // settled[0].cells_per_job) if settled[0].cells_per_job else JOBS_PER_WORKER * workers)
        ranks = {name: rank for rank, name in enumerate(options)}
        batches = [sorted(range(job, len(cells), jobs), key=lambda at: ranks[settled[at].dataset["name"]]) for job in range(jobs)]
        here = str(OmegaConf.select(first, "hydra.launcher._target_")).endswith("JoblibLauncher")
        with folder.session() as self.session:
            if not settled[0].quiet:
                many = f", {min(workers, len(cells))} at a time" if here else ""
                say(f"{counted(len(cells))}{many}; results in {short(folder.path)}")
            try:
                for job, batch in enumerate(batches):
                    (self.session / f"job{job}.pickle").write_bytes(
                        pickle.dumps(plugins.folders()) + pickle.dumps(folder) + pickle.dumps([(at, settled[at]) for at in batch])
                    )
            except OSError as error:
                raise ResultsError(
                    f"cannot write into {folder.path}: {error.strerror}; free space or choose another results_dir"
                ) from error
            progress = Progress(self.session, len(cells), say, settled[0].quiet)
            try:
                with progress:
                    yield [cells[batch[0]] for batch in batches]
            finally:
                self.told = progress.done

    def _prepare(self, cells: list[Settings], words: list[list[str]]) -> ResultsFolder:
        """Check what needs no data, each different combination once, then create the results folder."""
        from ... import learners
        from ...data import is_ordered
        from ...data.label_noise import check_noise
        from ...evaluation.selection import find_axes, split_hyper
        from ...protocol import Protocol
        from ...records import ResultsFolder

        checked: set[str] = set()
        used: set[str] = set()
        unused: dict[str, dict[str, Settings]] = {}
        for cell in cells:
            if cell.results is not None:
                raise ConfigError("the key results is for advcli report; name= and results_dir= say where a run writes")
            ordered = is_ordered(cell.dataset, cell.protocol["splits"] == "author") is not False
            combination = repr((cell.loss, cell.features, cell.solver, ordered, cell.protocol, cell.hyper, cell.noise))
            if combination in checked:
                continue
            checked.add(combination)
            learners.check_compatible(cell.loss, cell.features, cell.solver, ordered, None)
            check_noise(cell.noise)
            names = learners.searched(cell.loss, cell.features)
            own, others = split_hyper(names, cell.hyper)
            find_axes(Protocol.from_mapping(cell.protocol), names, own)
            used |= set(own)
            for key in others:
                unused.setdefault(key, {})[f"{cell.loss['name']} {cell.features['name']}"] = cell
        for key, methods in unused.items():
            if key not in used:  # by no method of the sweep: the error of one of them
                cell = next(iter(methods.values()))
                find_axes(Protocol.from_mapping(cell.protocol), learners.searched(cell.loss, cell.features), cell.hyper)
            elif not cells[0].quiet:
                say(f"note: hyper.{key} is no hyper-parameter of {', '.join(methods)}: no part of these cells")
        for cell in cells:
            _check_report(cell)
        self.settings = cells[0]
        folder = ResultsFolder(cells[0].folder, cells[0].record["proofs"])
        folder.prepare(_identity(cells, words))
        warn(folder.remarks)
        return folder

    def collect(self, results: list[Any] | None) -> None:
        """Keep what became of the cells."""
        if results is None:
            self.died = f"a worker process died (killed, or out of memory); finished cells are kept; {self._resume()} workers=1"
        for number, outcome, lines in (cell for job in results or [] for cell in job):
            self.outcomes.append(outcome)
            if number not in self.told and outcome.status == "failed":  # the journal could not take it
                say("\n".join(lines))

    def interrupted(self) -> str:
        """Say what is kept and how to resume."""
        if self.settings is None:
            return "interrupted; nothing was started"
        from ...records import ResultsFolder

        kept = len(ResultsFolder(self.settings.folder).finished_keys())
        return f"interrupted; finished cells are kept ({kept} in {short(self.settings.folder)}); {self._resume()}"

    def _resume(self) -> str:
        assert self.settings is not None
        words = ["advcli", *self.words]
        if self.settings.name == os.environ.get(configuration.STARTED):  # nobody named the folder: the next start would make another one
            words.append(f"name={self.settings.name}")
        return f"resume with: {shlex.join(words)}"

    def finish(self) -> int:
        """Merge the rows, write the reports and print them."""
        super().finish()
        if self.settings is None:
            raise ConfigError("a sweep of advcli needs its own sweeper; leave out hydra/sweeper=...")
        from ...records import ResultsFolder
        from ...reports import write_reports
        from ...statistics import Significance

        settings, folder = self.settings, ResultsFolder(self.settings.folder)
        if not folder.cells_path.is_dir():
            raise ResultsError(f"the results folder {short(folder.path)} was removed while its cells ran; start the command again")
        significance = Significance.chosen(settings.protocol)
        if self.died:
            say(self.died)
            if not folder.merge():
                return 1
        summary = write_reports(folder, significance, settings.report["metric"])
        ended = time.time()
        folder.write_provenance(self.config, self.started, ended, {"command": ["advcli", *self.words], "cells": self.cells})
        print_table(summary)
        warn(folder.remarks)
        failed = [outcome for outcome in self.outcomes if outcome.status == "failed"]
        if settings.quiet:
            return 1 if failed or self.died else 0
        if len(self.outcomes) == 1 and self.cells == 1:
            _print_block(self.outcomes[0], settings)
        for note in dict.fromkeys(f"note: {outcome.dataset}: {note}" for outcome in self.outcomes for note in outcome.notes):
            say(note)
        known = sum(outcome.skipped for outcome in self.outcomes)
        parts = [counted(self.cells) + (", not all done" if self.died else "")]
        parts += [f"{known} already there"] if known else []
        parts += [f"{len(failed)} failed (see the column error of runs.csv)"] if failed else []
        parts += [f"{ended - self.started:.1f} s"]
        print(f"{short(folder.path)}: {', '.join(parts)}; runs.csv, search.csv, summary.csv, table.md, provenance.json")
        return 1 if failed or self.died else 0


def _check_report(cell: Settings) -> None:
    """Refuse what the reports at the end could not show, before the work."""
    from ...metrics import check_metric
    from ...reports.published_numbers import check_published

    metric, protocol = cell.report["metric"], cell.protocol
    if metric is not None:
        check_metric(metric)
        # without protocol.metric the loss and the labels choose the first one
        if protocol["metric"] is not None and metric not in (recorded := [protocol["metric"], *protocol["metrics"]]):
            raise ConfigError(f"report.metric={metric} is not recorded; add it to protocol.metrics or choose one of {', '.join(recorded)}")
    if cell.published is not None:
        check_published(cell.published)


def _run_cell(settings: Settings, folder: ResultsFolder, strict: bool) -> tuple[CellOutcome, list[str]]:
    """Run one cell; return its outcome and what to say about it, the first line without a number."""
    from ...evaluation.runner import run_cell
    from ...evaluation.selection import split_hyper
    from ...learners import searched
    from ...reports.comparison import shown, title

    cell = cell_of(settings, split_hyper(searched(settings.loss, settings.features), settings.hyper)[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        outcome = run_cell(cell, folder, settings.data_dir, strict, **settings.limits)
    head = f"{outcome.dataset}, {outcome.method}"
    if outcome.status == "failed":
        return outcome, [f"{head}: failed: {outcome.error}"]
    chosen = ", ".join(f"{name}={value:g}" for name, value in outcome.hyper.items())
    result = f"{title(outcome.metric)} {shown(outcome.metric, outcome.mean, outcome.std)}"
    gap = f"gap {outcome.worst_gap:.1e}" if outcome.worst_gap == outcome.worst_gap else ""  # no certificate, no gap
    first = f"{head}: {', '.join(part for part in (result, chosen, gap) if part)}"
    first += ", already there" if outcome.skipped else f", {outcome.seconds:.1f} s"
    said = [line for line in (outcome.remark, outcome.warning) if line]
    said += [f"{head}: {edge}" for edge in outcome.edges]
    said += [str(warning.message) for warning in caught if not issubclass(warning.category, NotConvergedWarning)]
    if outcome.choice and not outcome.skipped:
        first += f"; {outcome.choice}"
    return outcome, [first, *map(warning, dict.fromkeys(said))]


def _identity(cells: list[Settings], words: list[list[str]]) -> dict[str, Any]:
    """Return what all cells of a results folder share, so that its rows can stand in one table.

    Data sets, losses, features and solvers are columns of the rows: a folder may get more of them. Their options count as far as
    the command line sets them, because rows do not tell two files behind ``dataset=csv`` apart.
    """
    from ...protocol import Protocol
    from ...rows import canonical_json

    def one(values: list[Any]) -> Any:
        distinct = list({canonical_json(value): value for value in reversed(values)}.values())[::-1]
        return distinct[0] if len(distinct) == 1 else {"each of": distinct}

    identity: dict[str, Any] = {
        "seed": one([cell.seed for cell in cells]),
        "hyper": one([cell.hyper for cell in cells]),
        "solver": one([{key: value for key, value in cell.solver.items() if key != "name"} for cell in cells]),
        # how reports test changes no row
        "protocol": one([{key: value for key, value in cell.protocol.items() if key not in Protocol.SILENT} for cell in cells]),
    }
    options: dict[str, list[Any]] = {}
    groups = ("dataset.", "loss.", "features.", "noise.")
    for text in dict.fromkeys(text for cell in words for text in cell if text.lstrip("+~").startswith(groups)):
        (override,) = OverridesParser.create().parse_overrides([text])
        options.setdefault(override.key_or_group, []).append(override.value())
    return identity | {"options": {key: one(values) for key, values in sorted(options.items())}}


def _print_block(outcome: CellOutcome, settings: Settings) -> None:
    """Print what a single run chose and reached."""
    from ...reports.comparison import shown, title

    chosen = [f"{name} = {value:g}{' (fixed)' if name in settings.hyper else ''}" for name, value in outcome.hyper.items()]
    print(f"{title(outcome.metric)}: {shown(outcome.metric, outcome.mean, outcome.std)}")
    if chosen:
        print(f"hyper-parameters: {', '.join(chosen)}")
    if outcome.worst_gap == outcome.worst_gap:
        print(f"worst relative gap: {outcome.worst_gap:.1e} (tol {settings.solver['tol']:.0e}), at most {outcome.passes} passes")
    if outcome.choice:
        print(outcome.choice)
