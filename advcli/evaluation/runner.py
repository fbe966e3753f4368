"""The runner of one cell: one data set x one method, from the data to rows on the disk."""

from __future__ import annotations

import functools
import hashlib
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import plugins
from ..confusion import IllConditionedWarning
from ..errors import AdvcliError, ConfigError, DataError, KilledError, NotConvergedWarning, ResultsError
from ..limits import call_limited
from ..records import SCHEMA_VERSION, ResultsFolder, canonical_json, complete_rows, package_version, plain
from . import metrics, parts
from .seeds import derive_seed
from .selection import Protocol, Selection, certificate_columns, find_axes, select
from .splits import Split, random_splits
from .standardise import SPARSE_NOTE, Standardiser
from .training_labels import TrainingLabels, training_labels


@dataclass(frozen=True)
class Cell:
    """One data set x one method: plain data, picklable, fit for JSON.

    Parameters
    ----------
    dataset, loss, features, solver, protocol : mapping
        Options of the configuration groups of these names. ``solver`` has ``tol`` (relative gap of the reported fits) and
        ``search_tol`` (of the fits of the search).
    hyper : mapping
        Fixed hyper-parameters (``C``, ``lambda``, ``gamma``); their search is skipped.
    seed : int
        Seed of the experiment.
    noise : mapping or None
        What corrupts the training labels (group ``noise``); None leaves them as they are.
    """

    dataset: Mapping[str, Any]
    loss: Mapping[str, Any]
    features: Mapping[str, Any]
    solver: Mapping[str, Any]
    protocol: Mapping[str, Any]
    hyper: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    noise: Mapping[str, Any] | None = None

    @property
    def method(self) -> str:
        """Name of the method in tables: loss and features, and the solver unless it is ``auto``."""
        named = [str(self.loss["name"]), str(self.features["name"])]
        if self.solver.get("name", "auto") != "auto":
            named.append(str(self.solver["name"]))
        return " ".join(named)

    @property
    def options(self) -> str:
        """Options of loss, features, noise, protocol and hyper-parameters in one text: what tells cells of one method apart."""
        found = {"protocol.name": self.protocol.get("name")}
        if self.protocol.get("rough_per_class") is not None:
            found |= {f"protocol.{key}": self.protocol.get(key) for key in ("rough_per_class", "labelled_share", "rough_updates")}
        groups = {"loss": self.loss, "features": self.features, "noise": self.noise or {}, "hyper": self.hyper}
        for group, values in groups.items():
            found |= {f"{group}.{key}": value for key, value in values.items() if key not in ("name", "description")}
        texts = {key: canonical_json(value).strip('"') for key, value in found.items() if value is not None}
        # A matrix would fill every row: its hash tells two of them apart as well.
        short = {key: text if len(text) <= 40 else hashlib.sha256(text.encode()).hexdigest()[:8] for key, text in texts.items()}
        return "; ".join(f"{key}={text}" for key, text in sorted(short.items()))

    def as_mapping(self) -> dict[str, Any]:
        """Return the cell as plain nested data."""
        return {key: plain(getattr(self, key)) for key in self.__dataclass_fields__}

    def request_key(self) -> str:
        """Return the hash of the configuration alone, which exists even when the data cannot be read."""
        return _key({"dataset": plain(self.dataset), **self._determining()})

    def key(self, dataset: Any) -> str:
        """Return the hash of all that determines the rows.

        The content of the data set counts, not where it was found; the name of the run, the number of workers and the way
        reports test do not.

        Parameters
        ----------
        dataset : advcli.data.Dataset
        """
        content: dict[str, Any] = {
            "name": dataset.name,
            "sha256": dataset.sha256,
            "ordered": bool(dataset.ordered),
            "sizes": plain(dataset.sizes),
            "weights": None if dataset.example_weight is None else _digest(dataset.example_weight),
            "splits": None if dataset.splits is None else [[_digest(train), _digest(test)] for train, test in dataset.splits],
        }
        return _key({"data": content, **self._determining()})

    def _determining(self) -> dict[str, Any]:
        def spoken(options: Mapping[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in plain(options).items() if key != "description"}

        own, files = plugins.fingerprint(), _named_files(self.loss)
        return {
            "schema": SCHEMA_VERSION,
            "version": package_version(),
            "loss": spoken(self.loss),
            "features": spoken(self.features),
            "solver": spoken(self.solver),
            # The protocol's name stands in the rows (column `options`); its test and level matter to reports only.
            "protocol": {key: value for key, value in spoken(self.protocol).items() if key not in ("test", "alpha")},
            "hyper": {key: value for key, value in plain(self.hyper).items() if value is not None},
            "seed": int(self.seed),
            "noise": plain(self.noise),
            **({} if own is None else {"plugins": own}),
            **({} if not files else {"files": files}),
        }


def _named_files(options: Mapping[str, Any]) -> list[str]:
    """Return the digests of the files that a loss reads its matrix from: another content is another cell."""
    found = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            found += _named_files(value)
        elif name == "file" and value is not None and Path(str(value)).is_file():
            found.append(hashlib.sha256(Path(str(value)).read_bytes()).hexdigest())
    return found


def _key(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:32]


def _digest(array: Any) -> str:
    contiguous = np.ascontiguousarray(array)
    return hashlib.sha256(str(contiguous.dtype).encode() + contiguous.tobytes()).hexdigest()


@dataclass(frozen=True)
class CellOutcome:
    """What became of a cell.

    Parameters
    ----------
    key, dataset, method : str
        The cell's key (of the configuration alone if it failed), its data set and its method.
    status : {"ok", "not_converged", "failed"}
        ``not_converged``: at least one reported fit stopped above its tolerance; ``failed``: at least one did not happen.
    skipped : bool
        The rows were there already; nothing was computed.
    error : str
        One line; empty unless failed.
    notes : tuple of str
        What was done to the data, to be said to the user.
    choice : str
        What ``solver=auto`` took and why; empty for other solvers.
    edges : tuple of str
        Chosen hyper-parameters that lie at the end of all values tried.
    warning : str
        One line about fits that did not converge; also given to `warnings`.
    hyper : mapping
        Chosen and fixed hyper-parameters.
    metric : str
        The protocol's metric.
    mean, std : float
        Mean and sample standard deviation (n - 1) of it over the splits; nan if there is none.
    worst_gap : float
        Largest certified relative gap of the reported fits; nan if there is none.
    passes : int
        Largest number of passes of the reported fits.
    rows : list of dict
        Rows as in runs.csv.
    seconds : float
        Wall time of the call.
    """

    key: str
    dataset: str
    method: str
    status: str
    skipped: bool = False
    error: str = ""
    notes: tuple[str, ...] = ()
    choice: str = ""
    edges: tuple[str, ...] = ()
    warning: str = ""
    hyper: Mapping[str, float] = field(default_factory=dict)
    metric: str = ""
    mean: float = float("nan")
    std: float = float("nan")
    worst_gap: float = float("nan")
    passes: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def _outcome(rows: list[dict[str, Any]], about: Mapping[str, Any], **more: Any) -> CellOutcome:
    """Summarise rows and the stored facts of a cell."""
    rows = complete_rows(rows)
    metric = next((row["metric"] for row in rows if row.get("metric")), "")
    values = [row["value"] for row in rows if row.get("metric") == metric and row.get("value") is not None]
    gaps = [row["relative_gap"] for row in rows if row.get("relative_gap") is not None]
    passes = [row["passes"] for row in rows if row.get("passes") is not None]
    statuses = {row["status"] for row in rows}
    return CellOutcome(
        dataset=about["dataset"],
        method=about["method"],
        status=next((status for status in ("failed", "not_converged") if status in statuses), "ok"),
        error=next((row["error"] for row in rows if row.get("error")), ""),
        notes=tuple(about.get("notes", ())),
        choice=str(about.get("choice", "")),
        edges=tuple(about.get("edges", ())),
        warning=about.get("warning", ""),
        hyper=dict(about.get("hyper", {})),
        metric=metric,
        mean=float(np.mean(values)) if values else float("nan"),
        std=float(np.std(values, ddof=1)) if len(values) > 1 else float("nan"),
        worst_gap=max(gaps, default=float("nan")),
        passes=max(passes, default=0),
        rows=rows,
        **more,
    )


def one_line(error: BaseException) -> str:
    """Return an error as one line; the type is named unless the error was written for people."""
    text = " ".join(str(error).split())
    if isinstance(error, AdvcliError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def run_cell(
    cell: Cell,
    folder: ResultsFolder,
    data_dir: Path,
    strict: bool = False,
    seconds: float | None = None,
    memory_mb: float | None = None,
) -> CellOutcome:
    """Compute one cell and store its rows, unless they are there already.

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
    with _thread_pools(len(sys.modules)).limit(limits=1):
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
    return _outcome(rows, about, key=request, seconds=time.perf_counter() - began)


def _trace(cell: Cell, error: Exception) -> str:
    return f"{canonical_json(cell.as_mapping())}\n\n{''.join(traceback.format_exception(error))}"


def _splits_of(dataset: Any, protocol: Protocol, seed: int) -> tuple[list[Split], list[str]]:
    """Return the splits and what is to be said about them."""
    n = dataset.X.shape[0]
    if protocol.splits == "author":
        if not dataset.splits:
            raise DataError(f"{dataset.name} has no published splits; use protocol.splits=random")
        splits = list(dataset.splits)[: protocol.n_splits]
        few = len(splits) < protocol.n_splits
        return splits, [f"{len(splits)} published splits exist, {protocol.n_splits} were asked for"] if few else []
    if protocol.splits == "official":
        if dataset.official is None:
            raise DataError(f"{dataset.name} has no official training and test rows; use protocol.splits=random")
        return [dataset.official] * protocol.n_splits, ["all runs have the official training and test rows"]
    notes = []
    if dataset.sizes is not None and protocol.train_size != Protocol.train_size:
        notes.append(
            f"the published sizes {dataset.sizes[0]}/{dataset.sizes[1]} win over protocol.train_size={protocol.train_size:g}; "
            "dataset.sizes=null frees them"
        )
    if dataset.groups is not None:
        notes.append("random splits do not keep groups together")
    return random_splits(n, protocol.n_splits, protocol.train_size, seed, dataset.name, dataset.sizes), notes


def _evaluate(cell: Cell, folder: ResultsFolder, data_dir: Path, strict: bool, began: float) -> CellOutcome:
    protocol = Protocol.from_mapping(cell.protocol)
    for group in ("tol", "search_tol"):
        value = cell.solver.get(group)
        if not (isinstance(value, (int, float)) and value > 0) and not (group == "search_tol" and value is None):
            raise ConfigError(f"solver.{group} must be a positive relative gap, got {value!r}")
    passes = cell.solver.get("search_passes")
    if passes is not None and (not isinstance(passes, int) or isinstance(passes, bool) or passes < 1):
        raise ConfigError(f"solver.search_passes must be a whole number of at least 1, got {passes!r}")
    axes = find_axes(protocol, parts.hyper_names(cell.features, cell.loss), cell.hyper)
    dataset = parts.load(cell.dataset, data_dir, protocol.splits == "author")
    n_classes = len(dataset.classes)
    # Without folds classes of any size will do.
    parts.check_trainable(dataset, protocol.folds if (axes.strength or axes.others) and protocol.holdout is None else 1)
    if dataset.multilabel and (cell.noise or protocol.rough_per_class is not None):
        raise ConfigError(f"noisy labels are for rows with one label, {dataset.name} has several; use noise=none and another protocol")
    named = replace(cell, loss=parts.fill_labels(parts.name_classes(cell.loss, dataset.classes), dataset))
    graph = parts.label_graph(dataset)
    parts.check_compatible(named.loss, cell.features, cell.solver, bool(dataset.ordered), n_classes)
    key = cell.key(dataset)
    stored = folder.read_cell(key)
    if stored is not None:
        return _outcome(stored["rows"], stored["about"], key=key, skipped=True, seconds=time.perf_counter() - began)

    splits, split_notes = _splits_of(dataset, protocol, cell.seed)
    notes = [*dataset.notes, *split_notes]
    if hasattr(dataset.X, "indptr") and protocol.standardise != "none":
        notes.append(SPARSE_NOTE)
    with warnings.catch_warnings():
        # One warning for the whole cell instead of one per fit.
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", IllConditionedWarning)  # the column `condition` has it
        first_rows = splits[0][0]
        loss, codes = named.loss, dataset.y[first_rows]
        if axes.strength or axes.others:
            # the search knows no labels but those that the method learns from
            loss, codes, known = _labels(named, dataset, protocol, dataset.X[first_rows], first_rows, 1).view(named.loss)
            if known is not None:
                first_rows, codes = first_rows[known], codes[known]
        selection = select(
            dataset.X[first_rows],
            codes,
            loss=loss,
            features=cell.features,
            solver=_search_solver(cell.solver),
            protocol=protocol,
            axes=axes,
            n_classes=n_classes,
            seed=cell.seed,
            dataset=dataset.name,
            sample_weight=None if dataset.example_weight is None else dataset.example_weight[first_rows],
            graph=graph,
        )
        head = _head(cell, dataset.name, key) | dict(selection.hyper)
        head |= {"n_features": int(dataset.X.shape[1]), "n_classes": n_classes}
        rows, failure, label_notes, choices = _fit_splits(named, dataset, protocol, splits, selection, head, strict, graph)
        notes += label_notes

    search_rows = [{"cell": key, "dataset": dataset.name, "method": cell.method, **row} for row in selection.rows]
    about = {
        "dataset": dataset.name,
        "method": cell.method,
        "cell": cell.as_mapping(),
        "dataset_sha256": dataset.sha256,
        "notes": notes,
        "choice": _choice(choices),
        "edges": list(selection.edges),
        "hyper": dict(selection.hyper),
        "warning": _unconverged(cell, dataset.name, rows, search_rows),
    }
    request = cell.request_key()
    if failure:
        rows = [row | {"cell": request} for row in rows]
        search_rows = [row | {"cell": request} for row in search_rows]
        folder.write_cell(request, rows, search_rows, about=about, request=request, traceback=failure)
        return _outcome(rows, about, key=request, seconds=time.perf_counter() - began)
    folder.write_cell(key, rows, search_rows, about=about, request=request)
    return _outcome(rows, about, key=key, seconds=time.perf_counter() - began)


def _fit_splits(
    cell: Cell,
    dataset: Any,
    protocol: Protocol,
    splits: list[Split],
    selection: Selection,
    head: Mapping[str, Any],
    strict: bool,
    graph: Any,
) -> tuple[list[dict[str, Any]], str, list[str], Counter[str]]:
    """Fit and score every split.

    Returns the rows, the first traceback (empty if none), what is to be said about the fits, and what solver=auto took how often.
    """
    rows: list[dict[str, Any]] = []
    choices: Counter[str] = Counter()
    failure = ""
    notes: dict[str, None] = {}
    remarks: Counter[str] = Counter()
    n_classes = len(dataset.classes)
    primary = protocol.metric or ""
    for number, (train, test) in enumerate(splits, start=1):
        base = dict(head) | {"split": number, "n_train": len(train), "n_test": len(test)}
        try:
            X_train, X_test = dataset.X[train], dataset.X[test]
            if protocol.standardise != "none":
                standardiser = Standardiser().fit(X_train)
                X_train, X_test = standardiser.transform(X_train), standardiser.transform(X_test)
            labels = _labels(cell, dataset, protocol, X_train, train, number)
            notes |= dict.fromkeys(labels.notes)
            loss, codes, known = labels.view(cell.loss)
            base |= labels.facts
            estimator = parts.make_estimator(
                loss,
                cell.features,
                cell.solver,
                dict(selection.hyper),
                n_classes,
                derive_seed(cell.seed, "fit", dataset.name, number),
                float(cell.solver["tol"]),
            )
            weight = None if dataset.example_weight is None else dataset.example_weight[train]
            if known is not None:
                # rows of weight 0 still shape features that are fitted to rows, as the published kernel PCA does
                weight = known if weight is None else weight * known
                base["n_train"] = int(known.sum())
            clock = time.perf_counter()
            estimator.fit(X_train, codes, sample_weight=weight, start=None)
            fit_seconds = time.perf_counter() - clock
            certificate = getattr(estimator, "certificate_", None)
            if certificate is not None:
                # The solver's own clock leaves out what only reports need, such as the evaluation of certificates.
                fit_seconds = float(certificate.seconds)
                base["solver"] = str(certificate.solver)
            if choice := parts.solver_choice(estimator):
                choices[choice] += 1
            clock = time.perf_counter()
            predicted = estimator.predict_codes(X_test)
            predict_seconds = time.perf_counter() - clock
            remarks.update(getattr(estimator, "remarks_", ()))
            primary = protocol.metric or parts.metric_of(estimator)
            facts = certificate_columns(estimator)
            facts |= parts.guarantee(estimator, X_train, codes, X_test, dataset.y[test])
            options = parts.metric_options(cell.loss, estimator, graph)
            base |= facts | {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}
            base |= {"status": "ok" if facts.get("converged", True) else "not_converged", "error": ""}
            rows += [
                base | {"metric": metric, "value": metrics.compute(metric, dataset.y[test], predicted, n_classes, options)}
                for metric in dict.fromkeys([primary, *protocol.metrics])
            ]
            rows += [base | {"metric": name, "value": value} for name, value in parts.fit_counts(estimator).items()]
        except Exception as error:
            if strict and isinstance(error, AdvcliError):
                raise
            failure = failure or _trace(cell, error)
            base |= {"status": "failed", "error": one_line(error)}
            rows += [base | {"metric": metric, "value": None} for metric in dict.fromkeys([primary, *protocol.metrics])]
    said = [f"{cell.method}: {remark} ({count} of {len(splits)} fits)" for remark, count in remarks.items()]
    return rows, failure, [*notes, *said], choices


def _labels(cell: Cell, dataset: Any, protocol: Protocol, X_train: Any, train: Any, number: int) -> TrainingLabels:
    """Return the labels of the training part of a split (`training_labels`)."""
    return training_labels(
        cell.noise,
        protocol,
        cell.features,
        X_train,
        dataset.y[train],
        classes=dataset.classes,
        seed=cell.seed,
        dataset=dataset.name,
        split=number,
    )


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


def _search_solver(solver: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the solver of the search's fits: another one where ``solver.search_solver`` names it, fewer passes with ``search_passes``."""
    name, passes = solver.get("search_solver"), solver.get("search_passes")
    if name is not None:
        solver = {"name": name, **{key: solver.get(key) for key in ("tol", "search_tol", "max_passes", "max_seconds")}}
    return solver if passes is None else {**solver, "max_passes": min(passes, solver.get("max_passes") or passes)}


def _unconverged(cell: Cell, dataset: str, rows: list[dict[str, Any]], search_rows: list[dict[str, Any]]) -> str:
    """Return one line about fits that stopped above their tolerance; empty if there are none."""
    fits = {row["split"]: row for row in rows}
    late = [row for row in fits.values() if row["status"] == "not_converged"]
    searched = [row for row in search_rows if row.get("converged") is False]
    if not late and not searched:
        return ""
    said = []
    if late:
        gap = max(float(row["relative_gap"]) for row in late)
        said.append(f"{len(late)} of {len(fits)} fits (largest relative gap {gap:.1e}, tol {float(cell.solver['tol']):.0e})")
    if searched:
        said.append(f"{len(searched)} of {len(search_rows)} fits of the search")
    return f"{dataset}, {cell.method}: not converged: {' and '.join(said)}; raise solver.max_passes or solver.tol"
