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

from ..core.arithmetic import using
from ..core.compiled import kernels
from ..core.errors import AdvcliError, DataError, KilledError, NotConvergedWarning, ResultsError
from ..core.notes import noted
from ..core.plugins import one_line
from ..core.processes import call_limited
from ..core.streams import standard_streams
from ..data.labels.confusion import IllConditionedWarning
from ..problems.certificate import advice
from ..results.folder import ResultsFolder
from ..results.predictions import Predictions
from ..results.proofs import Recorder
from ..results.provenance import maker
from ..results.tables import PARTS, STAGE_COLUMNS, canonical_json, hyper_value, plain
from .additions import asked_of, beyond, content_of, union
from .cell import Cell
from .fits import Fits, Searches
from .inputs import with_paths_of
from .learning import learning_curve
from .outcome import CellOutcome, outcome_of
from .recipe import Recipe
from .splits import Split
from .splitters.base import relation


def run_cell(
    cell: Cell,
    folder: ResultsFolder,
    data_dir: Path,
    strict: bool = False,
    seconds: float | None = None,
    memory_mb: float | None = None,
) -> CellOutcome:
    """Compute one cell and store the rows, unless the folder has them; of a cell with fewer splits or metrics, what is missing alone.

    One thread for linear algebra: parallelism is over cells, and this function alone sets it. The merged tables are
    refreshed now and then; the parent merges at the end. ``folder`` is prepared, ``data_dir`` is where data sets lie.

    With ``strict`` an error about the user's input (AdvcliError) is raised and nothing is written. Else a failed cell has an outcome, too:
    status ``failed``, one row per failed split (one row if no split was reached), traceback in ``failures/``. With a limit of wall
    ``seconds`` or of resident memory (2**20 bytes) the cell runs in a separate process; over a limit, or after a crash of that process,
    it is a failed row.

    Raises
    ------
    ResultsError
        If the folder cannot be written: nothing could be kept, so going on makes no sense.
    """
    began = time.perf_counter()
    if seconds is None and memory_mb is None:
        outcome = _compute(cell, folder, data_dir, strict)
    else:
        try:
            arguments = (_compute_and_listen, (cell, folder, data_dir, strict))
            outcome, heard = call_limited(*arguments, seconds=seconds, memory_mb=memory_mb, preload=("advcli.evaluation.preload",))
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
    with standard_streams(output=""), _thread_pools(len(sys.modules)).limit(limits=1), using(cell.arithmetic):
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
        "arithmetic": cell.arithmetic,
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
    _refuse_other_data(recipe, folder)
    with _thread_pools(len(sys.modules)).limit(limits=1):  # libraries that the method has brought, too
        return _CellRun(recipe, folder, strict, began).outcome()


def _refuse_other_data(recipe: Recipe, folder: ResultsFolder) -> None:
    """Refuse a data set of other content than the finished cells of the folder; only reading it tells."""
    content = content_of(recipe.request.dataset, recipe.request.protocol.splits)
    sha256 = recipe.dataset.sha256
    if folder.stands_on.get(content, sha256) != sha256:
        remedy = f"advcli drop results={folder.path} dataset={recipe.dataset.name} takes those out, another name= keeps them"
        raise DataError(f"the data of {content} have changed since other cells of the folder were made; {remedy}")


class _CellRun:
    """One run of a cell: what the folder has of it, the fits that are missing, and the file that keeps both.

    ``before`` is the stored cell that gets more splits or metrics, None where all is computed; ``surplus`` says what a stored cell has
    beyond what was asked for.
    """

    def __init__(self, recipe: Recipe, folder: ResultsFolder, strict: bool, began: float) -> None:
        self.folder, self.strict, self.began, self.key = folder, strict, began, recipe.key
        self.stored = folder.read_cell(self.key)
        self.remark = folder.set_aside(self.key) if self.stored is None else ""
        self.before: Mapping[str, Any] | None = None
        self.surplus: list[str] = []
        cell = recipe.request
        if self.stored is not None:
            there = asked_of(self.stored["about"]["cell"]["protocol"])
            self.surplus = beyond(cell, there)
            recipe = recipe.asking(*union((recipe.protocol.n_splits, recipe.protocol.metrics), there))
            cell = recipe.request
            if not folder.keep_proofs or Recorder(folder, self.key, cell.as_mapping()).has(self.stored):
                self.before = self.stored
                # proofs are of a configuration, with the paths that it was given by
                cell = replace(cell, **with_paths_of(cell.as_mapping(), self.stored["about"]["cell"]))
        self.recipe, self.cell = recipe, cell

    def outcome(self) -> CellOutcome:
        """Compute and store what is missing."""
        cell, recipe, before = self.cell, self.recipe, self.before
        asked = recipe.protocol.n_splits, recipe.protocol.metrics
        if before is not None and asked_of(before["about"]["cell"]["protocol"]) == asked:
            self.folder.forget_failure(recipe.request.request_key())
            if self.folder.keep_splits:
                self._tell_splits(recipe.splits()[0])
            return self._summary(before["rows"], before["about"], self.key, skipped=True)
        # a proof for every split, or for none
        keep_proofs = self.folder.keep_proofs or (before is not None and before["about"].get("proofs", False))
        recorder = Recorder(self.folder, self.key, cell.as_mapping()) if keep_proofs else None
        if recorder is not None and before is not None:
            recorder.resume()
        splits, split_notes = recipe.splits()
        self._tell_splits(splits)
        with warnings.catch_warnings():
            # One warning for the whole cell instead of one per fit.
            warnings.simplefilter("ignore", NotConvergedWarning)
            warnings.simplefilter("ignore", IllConditionedWarning)  # the column `condition` tells this
            predictions = Predictions(self.folder, self.key, before and before["about"]["predictions"])
            fits = Fits(recipe, len(splits), predictions, before)
            added = fits.judge(splits)
            searches = Searches(recipe, splits, before)
            there = {row["split"] for row in fits.rows}
            self.metric = fits.rows[0]["metric"] if fits.rows else recipe.protocol.metric or ""
            for number, split in enumerate(splits, start=1):
                if number not in there:
                    self._fit_split(number, split, searches, fits, recorder)
        return self._store(fits, searches, split_notes, recorder, added)

    def _tell_splits(self, splits: list[Split]) -> None:
        """Find what rows and the cell's file say of the splits, and write them where the folder keeps them."""
        recipe, rule = self.recipe, self.recipe.splitter
        self.parts = relation(splits) if rule.told else ""
        self.about_splits: dict[str, Any] = {}
        if rule.told:
            told = {"drawn": rule.drawn_from(recipe.dataset), "grows": rule.grows, PARTS: self.parts}
            self.about_splits = {"splits": told}
        if self.folder.keep_splits:
            self.folder.write_splits(recipe.dataset.name, recipe.dataset.sha256, recipe.given(splits))

    def _fit_split(self, number: int, split: Split, searches: Searches, fits: Fits, recorder: Recorder | None) -> None:
        """Fit and score one split, or keep its error."""
        recipe = self.recipe
        row = _head(self.cell, recipe.dataset.name, self.key)
        row |= {"n_features": int(recipe.dataset.X.shape[1]), "n_classes": recipe.n_classes}
        row |= {"split": number, "n_train": len(split[0]), "n_test": len(split[1])}
        try:
            train, test = recipe.part(split[0]), recipe.part(split[1])
            hyper = searches.of(number, train)
            row |= {name: hyper_value(value) for name, value in hyper.items()}
            fitted = recipe.fit(train, hyper, number)
            learner = fitted.learner
            row |= fits.count(fitted)
            distributions = self.folder.keep_distributions
            columns, values, predicted = recipe.score(fitted, train, test, distributions)
            fits.add(number, test, predicted)
            fits.learned += learning_curve(recipe, number, train, test, hyper, fits.predictions, distributions)
            if recorder is not None:
                columns |= recorder.keep(number, learner, fitted.examples(train.X), fitted.codes, fitted.weight)
            fits.counted["remarks"].update(learner.remarks_)
            self.metric = recipe.metric(learner)
            row |= columns | {"fit_seconds": fitted.seconds}
            reached = all(value for name, value in columns.items() if name.endswith("converged"))
            row |= {"status": "ok" if reached else "not_converged", "error": ""}
            fits.rows += [row | {"metric": name, "value": value} for name, value in values.items()]
        except Exception as error:
            if self.strict and isinstance(error, AdvcliError):
                raise
            fits.failure = fits.failure or _trace(recipe.cell, error)
            row |= {"status": "failed", "error": one_line(error)}
            fits.rows += [row | {"metric": name, "value": None} for name in dict.fromkeys([self.metric, *recipe.protocol.metrics])]

    def _store(self, fits: Fits, searches: Searches, split_notes: list[str], recorder: Recorder | None, added: str) -> CellOutcome:
        """Write the cell's file, unless another process has written one with more."""
        cell, dataset, folder = self.cell, self.recipe.dataset, self.folder
        rows = [row | {PARTS: self.parts} for row in fits.rows] if self.parts else fits.rows
        search_rows = [{"cell": self.key, "dataset": dataset.name, "method": cell.method, **row} for row in searches.rows]
        about = {
            "dataset": dataset.name,
            "method": cell.method,
            "cell": cell.as_mapping(),
            "dataset_sha256": dataset.sha256,
            **cell.made_from,
            **self.about_splits,
            "made_by": _makers(cell, self.before),
            "notes": [*self.recipe.notes, *split_notes, *fits.notes()],
            "choice": _choice(fits.counted["choices"]),
            "edges": searches.edges(),
            "hyper": searches.hyper(rows),
            **fits.about(),
            "counted": {**fits.counted, "edges": searches.counted},
            "warning": _unconverged(cell, dataset.name, fits, search_rows),
        }
        request = cell.request_key()
        if fits.failure:
            rows = [row | {"cell": request, "proof": None} for row in rows]
            search_rows = [row | {"cell": request} for row in search_rows]
            folder.write_cell(request, rows, search_rows, about=about, request=request, traceback=fits.failure)
            return self._summary(rows, about, request, added=added)
        ours, meanwhile = asked_of(vars(cell.protocol)), folder.read_cell(self.key)
        if meanwhile is not None and (recorder is None or recorder.has(meanwhile)):
            theirs = asked_of(meanwhile["about"]["cell"]["protocol"])
            if theirs != ours and union(ours, theirs) == theirs:  # another process was asked for more, and was faster
                return self._summary(meanwhile["rows"], meanwhile["about"], self.key, added=added)
        fits.predictions.write()
        about |= fits.predictions.about()
        if recorder is not None:
            about |= recorder.write()
        folder.write_cell(self.key, rows, search_rows, about=about, request=request)
        return self._summary(rows, about, self.key, added=added)

    def _summary(self, rows: list[dict[str, Any]], about: Mapping[str, Any], key: str, **more: Any) -> CellOutcome:
        seconds = time.perf_counter() - self.began
        return outcome_of(rows, about, self.surplus, key=key, remark=self.remark, seconds=seconds, **more)


def _makers(cell: Cell, before: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return who made a cell: the makers of the stored cell that gets additions, and this process."""
    ours = plain(maker(kernels.level if cell.arithmetic == "fast" else "portable", cell.loss.get("estimator")))
    theirs = [] if before is None else before["about"]["made_by"]
    return [*(made for made in theirs if made != ours), ours]


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


def _unconverged(cell: Cell, dataset: str, cell_fits: Fits, search_rows: list[dict[str, Any]]) -> str:
    """Return one line about fits that stopped above their tolerance, and what to do; empty if there are none."""
    fits = {row["split"]: row for row in cell_fits.rows}
    late = [row for row in fits.values() if row["status"] == "not_converged"]
    searched = [row for row in search_rows if row.get("converged") is False]
    if not late and not searched:
        return ""
    parts = []
    if late:
        gap = max(float(row[name]) for row in late for name in ("relative_gap", *STAGE_GAPS) if row.get(name) is not None)
        parts.append(f"{len(late)} of {len(fits)} fits (largest relative gap {gap:.1e}, tol {float(cell.solver['tol']):.0e})")
    if searched:
        parts.append(f"{len(searched)} of {len(search_rows)} fits of the search")
    hints = dict.fromkeys([*map(advice, cell_fits.counted["stopped"]), *(_search_advice(cell, row) for row in searched)])
    return noted("ADV150", f"{dataset}, {cell.method}: not converged: {' and '.join(parts)}; {'; '.join(hints)}")


def _search_advice(cell: Cell, row: Mapping[str, Any]) -> str:
    """Return the advice about a fit of the search; only its numbers are kept."""
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
