"""The runner of one cell: one data set x one method, from the data to rows on the disk."""

from __future__ import annotations

import functools
import math
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.compiled import kernels
from ..core.errors import AdvcliError, DataError, KilledError, NotConvergedWarning, ResultsError
from ..core.plugins import one_line
from ..core.processes import call_limited
from ..core.streams import standard_streams
from ..data.labels.confusion import IllConditionedWarning
from ..problems.certificate import advice
from ..results.folder import ResultsFolder
from ..results.predictions import Predictions, entry
from ..results.proofs import Recorder
from ..results.provenance import maker
from ..results.tables import STAGE_COLUMNS, canonical_json, hyper_value, plain
from .additions import asked_of, beyond, content_of, union
from .cell import Cell
from .fits import Fits, Searches
from .inputs import with_paths_of
from .learning import learning_curve
from .outcome import CellOutcome, outcome_of
from .recipe import Recipe
from .splits import Split


def run_cell(
    cell: Cell,
    folder: ResultsFolder,
    data_dir: Path,
    strict: bool = False,
    seconds: float | None = None,
    memory_mb: float | None = None,
) -> CellOutcome:
    """Compute one cell and store the rows, unless the folder has them; of a cell with fewer splits or metrics, what is missing alone.

    One thread for linear algebra: parallelism is over cells, and this is the one place that says so. The merged tables are
    refreshed now and then; the parent merges at the end.

    Parameters
    ----------
    cell : Cell
    folder : ResultsFolder
        Prepared folder.
    data_dir : Path
        Where data sets lie.
    strict : bool
        Raise an error about the user's input (AdvcliError) and write nothing, instead of a failed row.
    seconds, memory_mb : float, optional
        Limits of wall time and resident memory (2**20 bytes). With one of them the cell runs in a process of its own; over a limit, or
        after a crash of that process, it is a failed row.

    Returns
    -------
    CellOutcome
        Also for a failed cell: status ``failed``, one row per failed split (one row if no split was reached), traceback in
        ``failures/``.

    Raises
    ------
    ResultsError
        If the folder cannot be written: nothing could be kept, so going on makes no sense.
    AdvcliError
        Only if ``strict``.
    """
    began = time.perf_counter()
    if seconds is None and memory_mb is None:
        outcome = _compute(cell, folder, data_dir, strict)
    else:
        try:
            arguments = (_compute_and_listen, (cell, folder, data_dir, strict))
            outcome, heard = call_limited(*arguments, seconds=seconds, memory_mb=memory_mb, preload=("advcli.evaluation.warm",))
        except KilledError as error:
            folder.remove_leftovers()
            outcome, heard = _store_failure(cell, folder, error, began), []
        for message in heard:
            warnings.warn(message, stacklevel=2)
    if not outcome.skipped:
        folder.merge_if_due()
        if outcome.warning:
            warnings.warn(outcome.warning, NotConvergedWarning, stacklevel=2)
    return outcome


def _compute_and_listen(*arguments: Any) -> tuple[CellOutcome, list[Warning | str]]:
    """Return what `_compute` does and the warnings on the way, for the process that waits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        outcome = _compute(*arguments)
    return outcome, [warning.message for warning in caught]


@functools.lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """Return what limits the threads of the loaded libraries; found again (some milliseconds) when modules were imported since."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _compute(cell: Cell, folder: ResultsFolder, data_dir: Path, strict: bool) -> CellOutcome:
    began = time.perf_counter()
    # a method that prints its progress is not to fail because nobody reads it
    with standard_streams(output=""), _thread_pools(len(sys.modules)).limit(limits=1):
        try:
            return _evaluate(cell, folder, data_dir, strict, began)
        except ResultsError:
            raise
        except Exception as error:
            if strict and isinstance(error, AdvcliError):
                raise
            return _store_failure(cell, folder, error, began)


def _head(cell: Cell, dataset: str, key: str) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "loss": str(cell.loss["name"]),
        "features": str(cell.features["name"]),
        "solver": str(cell.solver.get("name", "auto")),
        "method": cell.method,
        "seed": int(cell.seed),
        "options": cell.options,
        "cell": key,
    }


def _store_failure(cell: Cell, folder: ResultsFolder, error: Exception, began: float) -> CellOutcome:
    """Store a cell that failed before its first split: one row without split and value."""
    request = cell.request_key()
    name = str(cell.dataset.get("name", ""))
    rows = [_head(cell, name, request) | {"metric": "", "status": "failed", "error": one_line(error)}]
    about = {"dataset": name, "method": cell.method, "cell": cell.as_mapping()}
    folder.write_cell(request, rows, about=about, request=request, traceback=_trace(cell, error))
    return outcome_of(rows, about, key=request, seconds=time.perf_counter() - began)


def _trace(cell: Cell, error: Exception) -> str:
    return f"{canonical_json(cell.as_mapping())}\n\n{''.join(traceback.format_exception(error))}"


def _evaluate(cell: Cell, folder: ResultsFolder, data_dir: Path, strict: bool, began: float) -> CellOutcome:
    recipe = Recipe(cell, data_dir)
    with _thread_pools(len(sys.modules)).limit(limits=1):  # libraries that the method has brought, too
        return _run(recipe, folder, strict, began)


def _run(recipe: Recipe, folder: ResultsFolder, strict: bool, began: float) -> CellOutcome:
    cell, key = recipe.given, recipe.key
    _refuse_other_data(recipe, folder)
    stored, before = folder.read_cell(key), None
    remark = folder.set_aside(key) if stored is None else ""
    kept: list[str] = []
    if stored is not None:
        there = asked_of(stored["about"]["cell"]["protocol"])
        kept = beyond(cell, there)
        recipe = recipe.asking(*union((recipe.protocol.n_splits, recipe.protocol.metrics), there))
        proven = not folder.keep_proofs or Recorder(folder, key, cell.as_mapping()).has(stored)
        if proven and there == (recipe.protocol.n_splits, recipe.protocol.metrics):
            folder.forget_failure(cell.request_key())
            return outcome_of(stored["rows"], stored["about"], kept, key=key, skipped=True, seconds=time.perf_counter() - began)
        before = stored if proven else None
    cell = recipe.given
    if before is not None:  # proofs are of a configuration, with the paths that it was given by
        cell = replace(cell, **with_paths_of(cell.as_mapping(), before["about"]["cell"]))
    # a proof for every split, or for none
    keep_proofs = folder.keep_proofs or (before is not None and before["about"].get("proofs", False))
    recorder = Recorder(folder, key, cell.as_mapping()) if keep_proofs else None
    if recorder is not None and before is not None:
        recorder.resume()

    splits, split_notes = recipe.splits()
    dataset = recipe.dataset
    with warnings.catch_warnings():
        # One warning for the whole cell instead of one per fit.
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", IllConditionedWarning)  # the column `condition` tells this
        predictions = Predictions(folder, key, before and before["about"]["predictions"])
        fits = Fits(recipe, len(splits), predictions, before)
        added = fits.judge(splits)
        searches = Searches(recipe, splits, before)
        head = _head(cell, dataset.name, key)
        head |= {"n_features": int(dataset.X.shape[1]), "n_classes": recipe.n_classes}
        _fit_splits(recipe, splits, searches, head, strict, recorder, folder.keep_distributions, fits)
    rows = fits.rows

    search_rows = [{"cell": key, "dataset": dataset.name, "method": cell.method, **row} for row in searches.rows()]
    about = {
        "dataset": dataset.name,
        "method": cell.method,
        "cell": cell.as_mapping(),
        "dataset_sha256": dataset.sha256,
        **cell.made_from,
        "made_by": _makers(cell, before),
        "notes": [*recipe.notes, *split_notes, *fits.notes()],
        "choice": _choice(fits.counted["choices"]),
        "edges": searches.edges(),
        "hyper": searches.hyper(rows),
        **fits.about(),
        "counted": {**fits.counted, "edges": searches.counted},
        "warning": _unconverged(cell, dataset.name, fits, search_rows),
    }
    request = cell.request_key()
    seen: dict[str, Any] = {"remark": remark, "added": added}
    if fits.failure:
        rows = [row | {"cell": request, "proof": None} for row in rows]
        search_rows = [row | {"cell": request} for row in search_rows]
        folder.write_cell(request, rows, search_rows, about=about, request=request, traceback=fits.failure)
        return outcome_of(rows, about, kept, key=request, **seen, seconds=time.perf_counter() - began)
    ours, meanwhile = asked_of(about["cell"]["protocol"]), folder.read_cell(key)
    if meanwhile is not None and (recorder is None or recorder.has(meanwhile)):
        theirs = asked_of(meanwhile["about"]["cell"]["protocol"])
        if theirs != ours and union(ours, theirs) == theirs:  # another process was asked for more, and was faster
            return outcome_of(meanwhile["rows"], meanwhile["about"], kept, key=key, **seen, seconds=time.perf_counter() - began)
    predictions.write()
    about |= predictions.about()
    if recorder is not None:
        about |= recorder.write()
    folder.write_cell(key, rows, search_rows, about=about, request=request)
    return outcome_of(rows, about, kept, key=key, **seen, seconds=time.perf_counter() - began)


def _makers(cell: Cell, before: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return who made a cell: who made the stored one that gets more, and this process."""
    ours = plain(maker(kernels.level, cell.loss.get("estimator")))
    theirs = [] if before is None else before["about"]["made_by"]
    return [*(each for each in theirs if each != ours), ours]


def _refuse_other_data(recipe: Recipe, folder: ResultsFolder) -> None:
    """Refuse a data set of other content than the finished cells of the folder; only reading it tells."""
    content = content_of(recipe.given.dataset, recipe.given.protocol.splits)
    sha256 = recipe.dataset.sha256
    if folder.stands_on.get(content, sha256) != sha256:
        raise DataError(
            f"the data of {content} have changed since other cells of the folder were made; advcli drop results={folder.path} "
            f"dataset={recipe.dataset.name} takes those out, another name= keeps them"
        )


def _fit_splits(
    recipe: Recipe,
    splits: list[Split],
    searches: Searches,
    head: Mapping[str, Any],
    strict: bool,
    recorder: Recorder | None,
    distributions: bool,
    fits: Fits,
) -> None:
    """Fit and score every split that is not there."""
    cell, protocol, predictions = recipe.cell, recipe.protocol, fits.predictions
    primary = fits.rows[0]["metric"] if fits.rows else protocol.metric or ""
    there = {row["split"] for row in fits.rows}
    for number, (train_rows, test_rows) in enumerate(splits, start=1):
        if number in there:
            continue
        base = dict(head) | {"split": number, "n_train": len(train_rows), "n_test": len(test_rows)}
        try:
            train, test = recipe.part(train_rows), recipe.part(test_rows)
            hyper = searches.of(number, train)
            base |= {name: hyper_value(value) for name, value in hyper.items()}
            fitted = recipe.fit(train, hyper, number)
            learner = fitted.learner
            fits.counted["notes"].update(fitted.notes)
            base |= fitted.facts
            base["n_train"] = fitted.n_train
            base["n_features"] = int(learner.n_features_in_)
            if learner.certificate_ is not None:
                base["solver"] = str(learner.certificate_.solver)
                for certificate in (learner.certificate_, *learner.stages_.values()):
                    if not certificate.converged:
                        fits.stopped[str(certificate.status)] += 1
            if learner.solver_choice_:
                fits.counted["choices"][learner.solver_choice_] += 1
            columns, values, predicted = recipe.score(fitted, train, test, distributions)
            predictions.add(entry(number), predicted)
            if fits.confusion is not None:
                fits.confusion.add(test.y, predicted.codes)
            fits.learned += learning_curve(recipe, number, train, test, hyper, predictions, distributions)
            if recorder is not None:
                columns |= recorder.keep(number, learner, fitted.rows(train.X), fitted.codes, fitted.weight)
            fits.counted["remarks"].update(learner.remarks_)
            primary = recipe.metric(learner)
            base |= columns | {"fit_seconds": fitted.seconds}
            reached = all(value for name, value in columns.items() if name.endswith("converged"))
            base |= {"status": "ok" if reached else "not_converged", "error": ""}
            fits.rows += [base | {"metric": metric, "value": value} for metric, value in values.items()]
        except Exception as error:
            if strict and isinstance(error, AdvcliError):
                raise
            fits.failure = fits.failure or _trace(cell, error)
            base |= {"status": "failed", "error": one_line(error)}
            fits.rows += [base | {"metric": metric, "value": None} for metric in dict.fromkeys([primary, *protocol.metrics])]


def _choice(choices: Counter[str]) -> str:
    """Return one line on what solver=auto took: how often each solver, and the reason of the most frequent; empty without auto."""
    if not choices:
        return ""
    solvers: Counter[str] = Counter()
    for choice, count in choices.items():
        solvers[choice.partition(":")[0]] += count
    counted = ", ".join(f"{solver} ({count} of {solvers.total()} fits)" for solver, count in solvers.most_common())
    reason = next(choice.partition(": ")[2] for choice in choices if choice.partition(":")[0] == solvers.most_common()[0][0])
    return f"solver=auto took {counted}: {reason}"


def _unconverged(cell: Cell, dataset: str, found: Fits, search_rows: list[dict[str, Any]]) -> str:
    """Return one line about fits that stopped above their tolerance, and what to do; empty if there are none."""
    fits = {row["split"]: row for row in found.rows}
    late = [row for row in fits.values() if row["status"] == "not_converged"]
    searched = [row for row in search_rows if row.get("converged") is False]
    if not late and not searched:
        return ""
    said = []
    if late:
        gap = max(float(row[name]) for row in late for name in ("relative_gap", *STAGE_GAPS) if row.get(name) is not None)
        said.append(f"{len(late)} of {len(fits)} fits (largest relative gap {gap:.1e}, tol {float(cell.solver['tol']):.0e})")
    if searched:
        said.append(f"{len(searched)} of {len(search_rows)} fits of the search")
    hints = dict.fromkeys([*map(advice, found.stopped), *(_search_advice(cell, row) for row in searched)])
    return f"{dataset}, {cell.method}: not converged: {' and '.join(said)}; {'; '.join(hints)}"


def _search_advice(cell: Cell, row: Mapping[str, Any]) -> str:
    """Return what to do about a fit of the search, of which only the numbers are kept."""
    if row["dual_objective"] == -math.inf:
        return advice("infeasible_dual")
    if math.isnan(row["dual_objective"]):
        return advice("not_convex")
    if row["relative_gap"] < 0:
        return advice("negative_gap")
    passes, tol = (key if cell.solver.get(key) is not None else other for key, other in _SEARCH_LIMITS)
    return f"raise solver.{passes} or solver.{tol}"


STAGE_GAPS = tuple(name for name in STAGE_COLUMNS if name.endswith("relative_gap"))
_SEARCH_LIMITS = (("search_passes", "max_passes"), ("search_tol", "tol"))
