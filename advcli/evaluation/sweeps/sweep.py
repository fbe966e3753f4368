"""A sweep over cells for notebooks and scripts."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, Any

from ...core.errors import ConfigError, KilledError, ResultsError
from ...core.paths import expanded
from ...core.processes import bound_to_this_process, interrupts_reach_this_process_only
from ...results.folder import ResultsFolder
from ...results.progress import Progress, warning
from .jobs import late_line, not_run, prepare, refuse_removed, run_job, share_out
from .missing import sort_out
from .own_splits import written

if TYPE_CHECKING:
    import pandas as pd

    from ...config import Settings


def sweep(
    cells: str | Sequence[str | Sequence[str] | Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    n_jobs: int | None = None,
    quiet: bool = False,
    cv: Any = None,
    groups: str | None = None,
) -> pd.DataFrame:
    """Compute cells and return the rows of their results folder.

    ``advcli -m`` with the same words gives the same rows, bit for bit, whatever the number of workers. The same call resumes a sweep that
    was interrupted or killed: only what is missing is computed. A terminal shows a bar, anything else one line per finished cell.

    Parameters
    ----------
    cells : str or sequence
        Each cell in the words of the command line, ``"dataset=iris loss=zero_one hyper.C=1"`` or a sequence of such words, or as a mapping
        with the same keys, ``{"dataset": "iris", "hyper.C": 1}``, whose ``loss`` may be an unfitted scikit-learn classifier. A value
        ``A,B`` and a preset ``+experiment=NAME`` mean several cells. Own YAML files lie in the folders of `advcli.core.plugins`.
    folder : path
        Folder of the results, made if it is not there.
    workers : int, optional
        Number of processes; default one for each core.
    n_jobs : int, optional
        The same in scikit-learn's words: -1 for one for each core. No number depends on it.
    quiet : bool
        Print failures only.
    cv : splitter, int, iterable or str, optional
        How rows are split: a splitter of scikit-learn, a number of folds, pairs of (training, test) row numbers, or a value of
        ``protocol.splits``. The folds of searches are by the same splitter. It sees the rows in the order of ``dataset.time``, if that is
        given, else of the data; its splits are written to FOLDER.splits.csv.
    groups : str, optional
        The column of groups that splits keep whole: ``dataset.group``.

    Returns
    -------
    DataFrame
        Rows as in runs.csv (`advcli.results.folder`), including rows of earlier calls with this folder. A cell that failed is a row with
        ``status`` "failed" and its ``error``. `advcli.reports.summarise` and `advcli.reports.comparison_table` make the table from them.

    Raises
    ------
    ConfigError
        Before any work: a word that cannot be read, an unknown or invalid key, parts that do not fit each other.
    ResultsError
        The folder cannot be written or belongs to another configuration.
    KilledError
        A worker process died; finished cells are kept.

    Examples
    --------
    >>> from advcli.evaluation import sweep
    >>> rows = sweep("dataset=iris loss=zero_one,cs hyper.C=1 protocol.n_splits=2", "results/two", workers=1, quiet=True)
    >>> sorted(rows["method"].unique())
    ['cs linear', 'zero_one linear']
    >>> bool((rows["relative_gap"] <= 1e-3).all())
    True
    """
    from ...config import check
    from ...config.composing import compose_cells

    began, place, workers = time.time(), expanded(folder).absolute(), processes(workers, n_jobs)
    common = {"results_dir": str(place.parent), "name": place.name, "workers": workers, "quiet": quiet}
    common |= {"dataset.group": groups} if groups is not None else {}
    common |= {"protocol.splits": cv} if isinstance(cv, str) else {}
    asked = [cells] if isinstance(cells, str) else list(cells)

    def composed() -> tuple[list[list[str]], list[dict[str, Any]], list[Settings]]:
        words, configs = compose_cells(asked, common)
        settings = [check(config) for config in configs]
        if not settings:
            raise ConfigError("a sweep needs at least one cell")
        sort_out(settings, words, ())
        return words, configs, settings

    words, configs, settings = composed()
    with contextlib.ExitStack() as stack:
        if cv is not None and not isinstance(cv, str):
            common |= stack.enter_context(written(cv, settings, place.parent / f"{place.name}.splits.csv"))
            words, configs, settings = composed()
        results = ResultsFolder(settings[0].folder, **settings[0].record)
        prepare(results, settings, words, _print)
    late = _run_jobs(settings, results, workers, quiet, began)
    refuse_removed(results, str(results.path))
    results.merge()
    results.write_provenance(configs[0], began, time.time(), {"command": ["advcli.evaluation.sweeps.sweep"], "cells": len(settings)})
    if late:
        line = late_line(settings[0], len(late), len(settings))
        if not results.finished_keys():
            raise ResultsError(f"{line}; the same call goes on with a higher limit")
        _print(warning(f"{line}; the same call goes on with them"))
    return results.runs()


def processes(workers: int | None, n_jobs: int | None) -> int | None:
    """Return the number of processes by either name; None for one for each core."""
    if n_jobs is None:
        return workers
    if workers is not None:
        raise ConfigError("workers and n_jobs are the same number: give one of them")
    from joblib import effective_n_jobs

    return int(effective_n_jobs(n_jobs))


def _run_jobs(cells: list[Settings], results: ResultsFolder, workers: int | None, quiet: bool, began: float) -> list[int]:
    """Run cells in processes, print remarks, progress and notes, and return the numbers of those that did not start in time."""
    from joblib import Parallel, delayed

    for remark in results.remarks:
        _print(warning(remark))
    processes = min(workers or os.cpu_count() or 1, len(cells))
    with results.session() as session:
        work = (delayed(run_job)(session, job) for job in range(len(share_out(cells, results, session, began))))
        with Progress(session, len(cells), _print, quiet) as progress, interrupts_reach_this_process_only():
            try:
                pool = Parallel(processes, batch_size=1, pre_dispatch="all", **bound_to_this_process())
                done = [cell for job in pool(work) for cell in job]
            except BrokenExecutor as error:
                remedy = "finished cells are kept and the same call resumes, with workers=1"
                raise KilledError(f"a worker process died (killed, or out of memory); {remedy}") from error
    for number, outcome, lines in done:
        if number not in progress.done and outcome.status == "failed":  # the journal could not take it
            _print("\n".join(lines))
    for note in dict.fromkeys(f"note: {outcome.dataset}: {note}" for _, outcome, _ in done if not quiet for note in outcome.notes):
        _print(note)
    return not_run(results, cells, {number: outcome for number, outcome, _ in done})


def _print(text: str) -> None:
    with contextlib.suppress(OSError):  # whoever reads the progress may leave: the results are kept
        print(text, flush=True)
