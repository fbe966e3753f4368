"""The cells of a sweep as jobs of worker processes: checked before the first one starts, shared out, run, told.

The command line's launchers and `advcli.evaluation.sweeps.sweep` start the processes.
"""

from __future__ import annotations

import os
import pickle
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config.protocol import Protocol
from ...core import plugins
from ...core.arithmetic import using
from ...core.errors import AdvcliError, ConfigError, NotConvergedWarning, ResultsError
from ...core.hyper import SCALES
from ...core.notes import noted
from ...data import foresee, is_ordered
from ...data.labels.noise import check_noise
from ...learners import Method
from ...metrics import meaning
from ...results.folder import ResultsFolder
from ...results.identity import A_FILE
from ...results.progress import Journal, warning
from ...results.tables import GROWING, canonical_json
from ..additions import Review, content_of, distinct
from ..cell import Cell
from ..inputs import path_keys
from ..outcome import CellOutcome
from ..recipe import Recipe, load_once, shared_data
from ..runner import run_cell
from ..selection import PROBABILITIES, find_axes
from ..splitters import splitter_of

if TYPE_CHECKING:
    from ...config import Settings

JOBS_PER_WORKER = 32
"""Jobs for each worker at most: enough to share out evenly, few enough that starting them does not count."""

NOT_RUN = "not_run"
"""Status of the outcome of a cell that did not start within ``limits.total_seconds``."""

Done = list[tuple[int, CellOutcome, list[str]]]


def prepare(folder: ResultsFolder, cells: Sequence[Settings], words: Sequence[Sequence[str]], say: Callable[[str], None]) -> None:
    """Check what needs no data, each different combination once, then create the results folder.

    ``words`` are the words of the command line that each cell was composed from; ``say`` takes whole lines.
    """
    identity, (asked, contents) = _identity(cells, words), check_cells(cells, words, say)
    review = Review(folder, asked, contents)
    folder.prepare(identity, review.look)
    review.finish()


def check_cells(
    cells: Sequence[Settings], words: Sequence[Sequence[str]], say: Callable[[str], None]
) -> tuple[dict[str, Cell], dict[str, str]]:
    """Check the cells of a sweep as `prepare` does; return them as `additions.distinct` does, and checksums by `additions.content_of`."""

    def note(line: str) -> None:
        if not cells[0].quiet:
            say(f"note: {line}")

    _refuse_differing(cells)
    asked = [Cell.of(settings) for settings in cells]
    _check_methods(asked, note)
    for noise in {repr(settings.noise): settings.noise for settings in cells}.values():
        check_noise(noise)
    fitted = [cell.in_sweep for cell in asked]
    unlike = distinct(fitted)
    return unlike, _check_with_data(fitted, cells[0].data_dir, note)


def _refuse_differing(cells: Sequence[Settings]) -> None:
    """Refuse cells that differ in what a sweep has once, and data sets that differ under one name."""
    for key in ("name", "results_dir", "data_dir", "workers", "cells_per_job", "quiet", "quiet_notes", "results", "dry_run", "confirm"):
        if len({str(getattr(cell, key)) for cell in cells}) > 1:
            raise ConfigError(f"{key} must be the same for all cells of a sweep; give one value")
    if len({cell.limits["total_seconds"] for cell in cells}) > 1:
        raise ConfigError("limits.total_seconds must be the same for all cells of a sweep; give one value")
    if cells[0].results:
        raise ConfigError("the key results is for advcli report; name= and results_dir= say where a run writes")
    if cells[0].record["splits"] and len({(cell.seed, repr(cell.protocol)) for cell in cells}) > 1:
        raise ConfigError("record.splits=true keeps one table of splits, and protocol or seed vary in this sweep; give one of each")
    datasets: dict[str, Mapping[str, Any]] = {}
    for cell in cells:
        first = datasets.setdefault(cell.dataset["name"], cell.dataset)
        if first != cell.dataset:
            key = next(key for key, value in cell.dataset.items() if first.get(key) != value)
            raise ConfigError(f"dataset.{key} varies under one name: give each data set its own dataset.name, or its own sweep")


def _check_methods(cells: Sequence[Cell], note: Callable[[str], None]) -> None:
    """Check each different method and protocol once, and note which options do not apply to which cells."""
    plain = [cell for cell in cells if cell.in_sweep.loss != cell.loss]
    if plain and len(plain) == len(cells):
        _ = Method.of(cells[0]).learner  # no method of the sweep: the error of one of them
    if plain:
        names = ", ".join(dict.fromkeys(cell.loss["name"] for cell in plain))
        note(noted("ADV115", f"calibrate is for potentials: no part of the cells of {names}"))
    games: dict[str, Method] = {}
    checked: set[str] = set()
    used: set[str] = set()
    unused: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        splitter_of(cell.protocol, cell.seed)
        ordered, name = is_ordered(cell.dataset, cell.protocol.splits == "author") is not False, cell.loss["name"]
        method = Method.of(cell).calibratable
        combination = repr((method, cell.protocol, ordered, cell.arithmetic))
        if combination in checked:
            continue
        checked.add(combination)
        fitted = method.in_sweep
        with using(cell.arithmetic):
            method.check(ordered, None)
        find_axes(cell.protocol, fitted)
        used |= fitted.hyper.keys()
        for key in method.unusable:
            unused.setdefault(key, {})[f"{name} {cell.features['name']}"] = cell
        if _scores_strategy(cell.protocol, method):
            games[name] = method
    if games:
        text = f"probabilities of {', '.join(games)} are the strategy of a game, no estimate of chances; calibrate=vector estimates them"
        note(noted("ADV116", text))
    for key, methods in unused.items():
        # some methods have no regularisation, so C may apply to none; for any other key a word is missing, such as features=rbf
        if key not in used and key not in SCALES:
            Method.of(next(iter(methods.values()))).calibratable.fixed()
        note(noted("ADV115", f"hyper.{key} is no hyper-parameter of {', '.join(methods)}: no part of these cells"))


def _scores_strategy(protocol: Protocol, method: Method) -> bool:
    """Tell whether a metric of probabilities judges a method that could estimate them and does not."""
    if method.loss.get("calibrate") is not None or not any(PROBABILITIES in meaning(name).needs for name in protocol.scores):
        return False
    calibrated = replace(method, loss={**method.loss, "calibrate": "sigmoid"})
    return calibrated.calibratable is calibrated and not method.learner.estimates(method.loss)


def _check_with_data(cells: Sequence[Cell], data_dir: Path, note: Callable[[str], None]) -> dict[str, str]:
    """Check what can be known only from the data, once for each combination. Notes about the data are printed before any work.

    Data sets that describe themselves are not read, others once; returned are the checksums of these. Words that do not fit the data raise,
    and so does an error of every data set of the sweep; where some can be used, the rest become failed rows.
    """
    of_set: dict[str, list[Cell]] = {}
    for cell in cells:
        of_set.setdefault(str(cell.dataset["name"]), []).append(cell)
    contents: dict[str, str] = {}
    failures: list[list[AdvcliError | None]] = []
    with shared_data():
        for name in sorted(of_set):
            first = of_set[name][0]
            if (tell := foresee(first.dataset)) is not None:
                dataset = load_once(first.dataset, data_dir, first.protocol.splits == "author")
                contents[content_of(first.dataset, first.protocol.splits)] = dataset.sha256
                for line in tell(dataset):
                    note(f"{name}: {line}")
            failures.append([_failure(cell, data_dir, contents) for cell in _in_need_of_data(of_set[name])])
    if all(errors and all(errors) for errors in failures):
        raise failures[0][0]  # type: ignore[misc]
    return contents


def _in_need_of_data(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of one data set that only reading it can check, each different combination once."""
    different: dict[str, Cell] = {}
    for cell in cells:
        scores, splits = cell.protocol.scores, cell.protocol.splits
        facts = splits != "random" or any(meaning(name).needs for name in scores)
        if facts or cell.dataset.get("path") is not None or is_ordered(cell.dataset, splits == "author") is None:
            ways = scores if splits == "random" else cell.protocol
            different.setdefault(repr((cell.loss, cell.features, cell.solver, ways, splits, cell.noise)), cell)
    return list(different.values())


def _failure(cell: Cell, data_dir: Path, contents: dict[str, str]) -> AdvcliError | None:
    """Return why the data of a cell cannot be used, None if they can, and then add their checksum; words that do not fit them raise."""
    try:
        recipe = Recipe(cell, data_dir)
        contents[content_of(cell.dataset, cell.protocol.splits)] = recipe.dataset.sha256
        recipe.check_facts()
        recipe.check_splits()
    except ConfigError:
        raise
    except AdvcliError as error:
        return error
    return None


def _identity(cells: Sequence[Settings], words: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return what all cells of a results folder share, so that one table can hold its rows.

    Data sets, losses, features and solvers are columns of the rows: a folder may get more of them. Their options count as far as
    words set them, because rows do not tell two values of most options apart. The place of a file does not
    count: `additions.Review` compares its content.
    """
    from ...config.words import options_set

    def one(values: list[Any]) -> Any:
        distinct = list({canonical_json(value): value for value in reversed(values)}.values())[::-1]
        return distinct[0] if len(distinct) == 1 else {"each of": distinct}

    paths = {key for cell in cells for key in path_keys(vars(cell))}
    return {
        "seed": one([cell.seed for cell in cells]),
        "hyper": one([cell.hyper for cell in cells]),
        "solver": one([{key: value for key, value in cell.solver.items() if key != "name"} for cell in cells]),
        # how reports test changes no row; splits and metrics may be added
        "protocol": one([_shared(cell.protocol) for cell in cells]),
        "options": {key: A_FILE if key in paths else one(values) for key, values in sorted(options_set(words).items())},
    }


def _shared(protocol: Protocol) -> dict[str, Any]:
    """Return what all cells of a folder share of their protocol."""
    # the number of splits counts where splits depend on it
    grown = GROWING if splitter_of(protocol, 0).grows else [key for key in GROWING if key != "n_splits"]
    shared = {key: value for key, value in vars(protocol).items() if key not in (*Protocol.SILENT, *grown)}
    return shared if protocol.splits_file is None else shared | {"splits": A_FILE}


def share_out(cells: Sequence[Settings], folder: ResultsFolder, session: Path, began: float) -> list[list[int]]:
    """Give every job its cells, in a file of the session, and return their numbers, job by job.

    Starting a job may take longer than a small cell, so a long sweep has fewer jobs than cells. A job gets every so many-th cell, because
    neighbours take about equal time, and runs the cells of one data set one after the other. ``began``, in seconds since the epoch, is when
    the time of ``limits.total_seconds`` began.
    """
    first = cells[0]
    total = first.limits["total_seconds"]
    deadline = None if total is None else began + total
    at_most = JOBS_PER_WORKER * (first.workers or os.cpu_count() or 1)
    jobs = min(len(cells), -(-len(cells) // first.cells_per_job) if first.cells_per_job else at_most)
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(cell.dataset["name"] for cell in cells))}
    batches = [sorted(range(job, len(cells), jobs), key=lambda number: ranks[cells[number].dataset["name"]]) for job in range(jobs)]
    try:
        for job, batch in enumerate(batches):
            parts = plugins.folders(), folder, deadline, [(number, cells[number]) for number in batch]
            (session / f"job{job}.pickle").write_bytes(b"".join(map(pickle.dumps, parts)))
    except OSError as error:
        raise ResultsError(f"cannot write into {first.folder}: {error.strerror}; free space or choose another results_dir") from error
    return batches


def run_job(session: Path, job: int) -> Done:
    """Run the cells of one job, in a worker, and never raise: an exception here would reach whoever runs the workers.

    The lines are also in the journal; they are returned in case the journal could not be written.
    """
    journal = Journal(session)
    try:
        with open(session / f"job{job}.pickle", "rb") as file:
            plugins.use_folders(pickle.load(file))  # a worker that is used again has the folders of an earlier sweep
            folder: ResultsFolder = pickle.load(file)
            deadline: float | None = pickle.load(file)
            planned: list[tuple[int, Settings]] = pickle.load(file)
    except FileNotFoundError:
        return []  # somebody has removed the results folder; whoever waits for the job sees it
    done: Done = []
    lost: ResultsError | None = None
    with shared_data(session):
        for number, settings in planned:
            if deadline is not None and time.time() >= deadline:
                done.append((number, CellOutcome("", settings.label, "", NOT_RUN), []))
                journal.finished(number, NOT_RUN, False, [])
                continue
            journal.started(number)
            try:
                if lost is not None:
                    raise lost  # what cannot be kept is not computed
                outcome, lines = run_one(settings, folder, strict=False)
            except Exception as error:
                lost = error if isinstance(error, ResultsError) else lost
                text = plugins.one_line(error)
                outcome, lines = CellOutcome("", settings.label, "", "failed", error=text), [f"{settings.label}: failed: {text}"]
            journal.finished(number, outcome.status, outcome.skipped, lines)
            # the rows are on the disk; sending them to the parent again would cost memory
            done.append((number, replace(outcome, rows=[]), lines))
    return done


def not_run(folder: ResultsFolder, cells: Sequence[Settings], outcomes: Mapping[int, CellOutcome]) -> list[int]:
    """Return the numbers of the cells that did not start in time and that the folder does not have from an earlier start."""
    late = [number for number, outcome in sorted(outcomes.items()) if outcome.status == NOT_RUN]
    there = folder.requests() if late else set()
    return [number for number in late if Cell.of(cells[number]).in_sweep.request_key() not in there]


def late_line(settings: Settings, late: int, cells: int) -> str:
    """Return in one line how many cells did not start in time."""
    return f"limits.total_seconds={settings.limits['total_seconds']:g} is over: {late} of {cells} cells were not run"


def refuse_removed(folder: ResultsFolder, shown: str) -> None:
    """Raise `ResultsError` if somebody has removed the folder, here by the name that people see, while its cells ran."""
    if not folder.cells_path.is_dir():
        raise ResultsError(f"the results folder {shown} was removed while its cells ran; start the command again")


def run_one(settings: Settings, folder: ResultsFolder, strict: bool) -> tuple[CellOutcome, list[str]]:
    """Run one cell; return its outcome and what to say about it, the first line without a number."""
    cell = Cell.of(settings).in_sweep
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        limits = {key: settings.limits[key] for key in ("seconds", "memory_mb")}
        outcome = run_cell(cell, folder, settings.data_dir, strict, **limits)
    head = f"{outcome.dataset}, {outcome.method}"
    if outcome.status == "failed":
        return outcome, [f"{head}: failed: {outcome.error}"]
    parts = [outcome.result, *outcome.chosen]
    if settings.verbose and outcome.worst_gap == outcome.worst_gap:  # no certificate, no gap
        parts.append(f"gap {outcome.worst_gap:.1e}")
    parts += [outcome.added] if outcome.added else []
    parts.append("already there" if outcome.skipped else f"{outcome.seconds:.1f} s")
    first = f"{head}: {', '.join(parts)}"
    if settings.verbose and outcome.choice and not outcome.skipped:
        first += f"; {outcome.choice}"
    remarks = [line for line in (outcome.remark, outcome.warning) if line]
    remarks += [noted("ADV151", f"{head}: {edge}") for edge in outcome.edges]
    remarks += [str(message.message) for message in caught if not issubclass(message.category, NotConvergedWarning)]
    return outcome, [first, *map(warning, dict.fromkeys(remarks))]
