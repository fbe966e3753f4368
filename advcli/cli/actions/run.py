"""The action ``run``: select, fit and evaluate one cell or every cell of a sweep."""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from ... import config as configuration
from ...config import Settings, meanings, validate
from ...config.composing import compose_all
from ...config.words import refuse_added_keys, scalar_override, without_hydra, words_of
from ...core.errors import AdvcliError, ConfigError
from ...core.files import read_json
from ...core.garbage import uncollected
from ...core.notes import noted
from ...results.progress import Journal, Progress
from ...results.provenance import counted
from ..console import asks, confirmed, hyper_words, print_table, say, short, warn
from ..folders import unmake
from ..task import METHOD, Task

if TYPE_CHECKING:
    from ...evaluation.outcome import CellOutcome
    from ...results.folder import ResultsFolder


_ABOUT_THE_RUN = {"name", "results_dir", "data_dir", "workers", "cells_per_job", "quiet", "quiet_notes", "verbose", "plugins"}
"""Keys that say where and how cells are computed."""


class Run(Task):
    """Select, fit and evaluate one cell, or every cell of a sweep.

    The object lives in the parent; a sweep sends a copy of it to each worker, where only `__call__` is used.
    """

    section = "Run and compare"
    place = 11
    summary = "select, fit, evaluate one method, or with -m every combination"
    usage = (
        ("[run] [KEY=VALUE ...]", "select, fit and evaluate one method on one data set"),
        ("-m KEY=VALUE1,VALUE2 ...", "a sweep over every combination; ends with the comparison table"),
        ("+experiment=PRESET", "a sweep from conf/experiment"),
    )
    example = "advcli -m dataset=iris,wine loss=zero_one,cs name=first"
    groups = (*METHOD, "protocol", "noise", "report")
    keys = (
        "hyper",
        "name",
        "seed",
        "arithmetic",
        "results_dir",
        "data_dir",
        "workers",
        "quiet",
        "quiet_notes",
        "verbose",
        "dry_run",
        "confirm",
        "calibrate",
        "published",
        "limits",
        "record",
        "cells_per_job",
        "spreadsheets",
        "plugins",
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
        self.reported: set[int] = set()
        self.notes: set[str] = set()
        self.shown = False
        self.declined = False
        self.late = 0
        self.sweep: list[Settings] = []
        self.numbered: dict[int, CellOutcome] = {}

    def __call__(self, config: DictConfig) -> Any:
        """Run one cell: in this process if it is the only one, in a worker for a sweep."""
        node = HydraConfig.get()
        if node.mode == RunMode.MULTIRUN:
            return self.run_job(int(node.job.num))
        with uncollected():
            from ...evaluation.sweeps.jobs import run_one
        gc.freeze()  # what libraries made stays: later collections need not look at it
        try:
            refuse_added_keys(node)
            settings = validate(config)
            self.begin(settings)
            self.config = configuration.plain(config)
            self._with_data([words_of(node)], [settings])
            if settings.dry_run:
                self._show([settings], [words_of(node)])
                return None
            made = [path for path in (settings.folder, *settings.folder.parents) if not path.exists()]
            folder = self._prepare([settings], [words_of(node)])
            self.cells = 1
            if not self._confirmed([settings], folder):
                unmake(folder, made)
                return None
            try:
                with folder.session() as session, Progress(session, 1, say, settings.quiet, results=False):
                    journal = Journal(session)
                    journal.started(0)
                    outcome, lines = run_one(settings, folder, strict=True)
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
        """Run the cells of one job, in a worker."""
        if self.session is None:
            return []  # another sweeper than ours: nothing was checked and no folder is there, which `finish` reports
        from ...evaluation.sweeps.jobs import run_job

        return run_job(self.session, job)

    @contextlib.contextmanager
    def plan(self, master: DictConfig, cells: list[list[str]], compose: Callable[[Sequence[str]], DictConfig]) -> Iterator[list[list[str]]]:
        """Check all cells of a sweep, prepare their folder and share them out among the jobs of the launcher.

        The cells of a job are given to it in a file: the launcher composes a config for each job, which takes longer than a small cell.
        """
        from ...evaluation.sweeps.jobs import share_out

        first = compose(cells[0])
        refuse_added_keys(first.hydra)
        plans = compose_all(cells, lambda words: configuration.plain(without_hydra(compose(words))), scalar_override)
        settings = [configuration.check(values) for values in plans]
        self.begin(settings[0])
        cells, settings = self._with_data(cells, settings)
        if settings[0].dry_run:
            self._show(settings, cells)
            yield []
            return
        made = [path for path in (settings[0].folder, *settings[0].folder.parents) if not path.exists()]
        folder = self._prepare(settings, cells)
        self.cells, self.sweep = len(cells), settings
        if not self._confirmed(settings, folder):
            unmake(folder, made)
            yield []
            return
        self.config = configuration.plain(without_hydra(master))
        workers = min(settings[0].workers or os.cpu_count() or 1, len(cells))
        here = str(OmegaConf.select(first, "hydra.launcher._target_")).endswith("JoblibLauncher")
        with folder.session() as self.session:
            if not settings[0].quiet:
                say(f"{counted(len(cells))}{f', {workers} at a time' if here else ''}; results in {short(folder.path)}")
            batches = share_out(settings, folder, self.session, self.started)
            progress = Progress(self.session, len(cells), say, settings[0].quiet)
            try:
                with progress:
                    yield [cells[batch[0]] for batch in batches]
            finally:
                self.reported = progress.done

    def _with_data(self, cells: list[list[str]], settings: list[Settings]) -> tuple[list[list[str]], list[Settings]]:
        """Return the cells whose data are here, and say once which data sets of a preset are left out."""
        from ...evaluation.sweeps.missing import sort_out

        kept, line = sort_out(settings, cells, self.words)
        if line:
            say(noted("ADV118", f"note: {line}"))
            self.notes.add(noted("ADV118", f"note: {line}"))
        return [cells[number] for number in kept], [settings[number] for number in kept]

    def _show(self, cells: list[Settings], words: list[list[str]]) -> None:
        """Print what cells would compute and about how long."""
        from ...evaluation.sweeps import effort
        from ...evaluation.sweeps.jobs import check_cells

        _check_reports(cells)
        check_cells(cells, words, say)
        workers = min(cells[0].workers or os.cpu_count() or 1, len(cells))
        print("\n".join([f"{counted(len(cells))}; nothing is computed", *effort.lines(effort.estimate(cells), workers)]))
        self.shown = True

    def _confirmed(self, cells: list[Settings], folder: ResultsFolder) -> bool:
        """Return whether to begin: people in a terminal are asked where the fits are many."""
        from ...evaluation import Cell
        from ...evaluation.sweeps import effort

        most = cells[0].confirm
        if most is None or not asks():
            return True
        there = folder.requests()
        left = [cell for cell in cells if Cell.of(cell).in_sweep.request_key() not in there]
        fits = sum(effort.fits_of(Cell.of(cell).in_sweep) for cell in left)
        if fits < most:
            return True
        lines = effort.trial_lines(effort.estimate_by_trials(left, effort.made_up()))
        self.declined = not confirmed([f"fits: {lines['fits']}", f"how long: {lines['how long']}"])
        return not self.declined

    def _prepare(self, cells: list[Settings], words: list[list[str]]) -> ResultsFolder:
        """Check every cell, and what is reported of it, then create the results folder."""
        from ...evaluation.sweeps.jobs import prepare
        from ...results.folder import ResultsFolder

        _check_reports(cells)
        self.settings = cells[0]

        def note(line: str) -> None:
            self.notes.add(line)
            say(line)

        folder = ResultsFolder(cells[0].folder, **cells[0].record)
        prepare(folder, cells, words, note)
        warn(folder.remarks)
        return folder

    def collect(self, results: list[Any] | None) -> None:
        """Keep what became of the cells."""
        if results is None:
            self.died = f"a worker process died (killed, or out of memory); finished cells are kept; {self._resume()} workers=1"
        for number, outcome, lines in sorted((cell for job in results or [] for cell in job), key=lambda cell: cell[0]):
            self.outcomes.append(outcome)
            self.numbered[number] = outcome
            if number not in self.reported and outcome.status == "failed":  # the journal could not take it
                say("\n".join(lines))

    def interrupted(self) -> str:
        """Say what is kept and how to resume."""
        if self.settings is None:
            return "interrupted; nothing was started"
        from ...results.folder import ResultsFolder

        finished = len(ResultsFolder(self.settings.folder).finished_keys())
        return f"interrupted; finished cells are kept ({finished} in {short(self.settings.folder)}); {self._resume()}"

    def _resume(self) -> str:
        assert self.settings is not None
        words = ["advcli", *self.words]
        if self.settings.name == os.environ.get(configuration.STARTED):  # nobody named the folder: the next start would make another one
            words.append(f"name={self.settings.name}")
        return f"resume with: {shlex.join(words)}"

    def finish(self) -> int:
        """Merge the rows, write the reports and print them."""
        super().finish()
        if self.shown:
            return 0
        if self.declined:
            say("nothing was computed; confirm=false begins without a question")
            return 1
        if self.settings is None:
            raise ConfigError("a sweep of advcli needs its own sweeper; leave out hydra/sweeper=...")
        from ...evaluation.sweeps.jobs import refuse_removed
        from ...reports import Choice, published_table, write_reports
        from ...results.folder import ResultsFolder
        from ...statistics.marks import Significance

        settings, folder = self.settings, ResultsFolder(self.settings.folder)
        refuse_removed(folder, short(folder.path))
        significance = Significance.chosen(vars(settings.protocol))
        late = self._late(folder)
        for line in filter(None, (self.died, late)):
            say(line)
        if (self.died or late) and not folder.merge():
            return 1
        swept = self.cells > 1
        page = swept and settings.report["page"]
        # of this session's provenance, too, which the page shows
        about = {"command": ["advcli", *self.words], "cells": self.cells, **_order(folder, self.outcomes)}
        about["changed"] = {key: value for key, value in meanings.changed(self.config).items() if key not in _ABOUT_THE_RUN}
        folder.write_provenance(self.config, self.started, time.time(), about)
        choice = Choice.of(settings.report)
        how: dict[str, Any] = {"published": settings.published, "choice": choice, "spreadsheets": settings.spreadsheets}
        summary = write_reports(folder, significance, settings.report["metric"], page=page, **how)
        alone = len(self.outcomes) == 1 and not swept and len(summary.drop_duplicates(["dataset", "method"])) == 1
        if not alone:
            print_table(summary)
        elif self.outcomes[0].status != "failed":  # a failure was reported when it happened
            print(f"{self.outcomes[0].dataset}, {self.outcomes[0].method}: {self.outcomes[0].result}")
            for line in summary.attrs["missed"]:
                print(line)
        warn(folder.remarks)
        failed = [outcome for outcome in self.outcomes if outcome.status == "failed"]
        if not settings.quiet:
            if not swept and not failed and not self.died:
                _print_choice(self.outcomes[0], settings)
            if settings.published is not None:
                print(published_table(folder, settings.published, choice, [outcome.key for outcome in self.outcomes]), end="")
            self._print_end(short(folder.path), len(failed), summary.attrs)
        return 1 if failed or self.died or late else 0

    def _late(self, folder: ResultsFolder) -> str:
        """Return the line about cells that did not start in time and how to go on with them; empty without any. The others stay."""
        from ...evaluation.sweeps.jobs import NOT_RUN, late_line, not_run

        if not any(outcome.status == NOT_RUN for outcome in self.outcomes):
            return ""
        late = not_run(folder, self.sweep, self.numbered)
        self.outcomes = [outcome for outcome in self.outcomes if outcome.status != NOT_RUN]
        self.late = len(late)
        return f"{late_line(self.sweep[0], self.late, self.cells)}; {self._resume()}" if late else ""

    def _print_end(self, folder: str, failed: int, about: Mapping[Any, Any]) -> None:
        """Print the notes about the data and the tables, and where the tables are."""
        for line in dict.fromkeys(f"note: {outcome.dataset}: {text}" for outcome in self.outcomes for text in outcome.notes):
            if line not in self.notes:
                say(line)
        skipped = sum(outcome.skipped for outcome in self.outcomes)
        parts = [counted(self.cells) + (", not all done" if self.died else "")]
        parts += [f"{skipped} already there"] if skipped else []
        parts += [f"{self.late} not run"] if self.late else []
        parts += [f"{failed} failed (see the column error of runs.csv)"] if failed else []
        parts += [f"{time.time() - self.started:.1f} s"]
        print(f"{folder}: {', '.join(parts)}; runs.csv, search.csv, summary.csv, table.md, provenance.json")
        for remark in about["remarks"]:
            say(remark)
        if "report.html" in about["files"]:
            print(f"report: {os.path.join(folder, 'report.html')}")


def _order(folder: ResultsFolder, outcomes: Sequence[CellOutcome]) -> dict[str, list[str]]:
    """Return the names of data sets and methods as the page shows them: names of earlier commands first, then the order of this command."""
    before = read_json(folder.path / "provenance.json")
    before = before if isinstance(before, dict) else {}
    names = {"datasets": [outcome.dataset for outcome in outcomes], "methods": [outcome.method for outcome in outcomes]}
    return {key: list(dict.fromkeys([*before.get(key, ()), *added])) for key, added in names.items()}


def _check_reports(cells: Sequence[Settings]) -> None:
    """Refuse what the reports at the end could not show, before the work."""
    import pandas as pd

    from ...evaluation import Cell
    from ...reports import Choice
    from ...reports.published_numbers import check_published
    from ...reports.sources import Sources
    from ...reports.summary import TOLD, check_primary, told_apart
    from ...results.folder import ResultsFolder
    from ...results.tables import canonical_json, lasting

    for cell in cells:
        if cell.report["metric"] is not None:
            check_primary(cell.report["metric"], vars(cell.protocol))
        if cell.published is not None:
            check_published(cell.published)
    choice = Choice.of(cells[0].report)
    if choice == Choice():
        return
    asked = {made.request_key(): made for made in map(Cell.of, cells)}
    about: dict[str, Mapping[str, Any]] = {key: {"cell": made.as_mapping()} for key, made in asked.items()}
    rows = []
    for key, made in asked.items():
        named = {"dataset": made.dataset["name"], "method": made.method, "loss": made.loss["name"]}
        rows.append(named | {"options": made.options, "seed": made.seed, "cell": key})
    frame = pd.DataFrame(rows)
    folder = ResultsFolder(cells[0].folder)
    if (folder.path / "runs.csv").is_file():
        sources, asked_for = Sources([folder], merge=False), {canonical_json(lasting(facts["cell"])) for facts in about.values()}
        there = sources.runs.drop_duplicates("cell")[list(frame)]
        about |= {key: sources.about(key) for key in there["cell"]}
        # a cell that is there already and is asked for is one
        new = [canonical_json(lasting(about[key].get("cell", {}))) not in asked_for for key in there["cell"]]
        frame = pd.concat([frame, there[new]], ignore_index=True)
    labels = told_apart(frame, about.__getitem__)
    frame[TOLD] = [labels.get(key, "") for key in frame["cell"]]
    choice.rows(frame)


def _print_choice(outcome: CellOutcome, settings: Settings) -> None:
    """Print the hyper-parameters and the solver of a single run, and how far it is from the optimum."""
    if chosen := hyper_words(outcome.hyper, settings.hyper):
        print(f"hyper-parameters: {', '.join(chosen)}")
    if outcome.worst_gap == outcome.worst_gap:
        passes = f", at most {outcome.passes} passes" if settings.verbose else ""
        late = ", not reached" if outcome.status == "not_converged" else ""
        print(f"largest certified relative gap: {outcome.worst_gap:.1e} (asked for: {settings.solver['tol']:g}{late}){passes}")
    if outcome.choice:
        print(outcome.choice)
