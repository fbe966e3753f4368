"""The checker of a results folder: every reported fit is proved again, refuted, or named with the reason why it cannot be proved.

For every row of runs.csv with a proof: the row is compared with its cell's file; the data are loaded and their checksum compared; the
split is drawn again from the seed; the training rows are standardised again; the stored arrays are compared with the hash of the row; and
`gap.bound` gives the fit's objective and a lower bound of the optimum. The columns of the certificate must agree with both within

    `SLACK` x the scale of the gap + `FLOOR`,

and the proved gap must not exceed the stated one by more. Counts of errors on the test rows follow from theta, up to rows whose best
labels tie within rounding, as do other metrics of predictions; a metric that depends on rows that tie, or on more than predictions, is
named as not followed. Other columns, such as seconds, passes and expected losses, are not judged. What is proved is the problem on the
numbers that standardisation gives in double precision, and on lambda as 1 / (n C) rounds: these are data here, not rounding errors.
"""

from __future__ import annotations

import copy
import csv
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .. import data
from ..core.arrays import dense, is_sparse
from ..core.errors import AdvcliError, ResultsError
from ..core.files import csv_text, file_sha256, write_text
from ..core.paths import expanded
from ..core.spreadsheets import as_text
from ..core.typing import Array
from ..data.labels.noise import corrupt, make_confusion
from ..data.labels.soft import by_label
from ..results import proofs
from ..results.folder import ResultsFolder
from ..results.tables import canonical_json, format_value, lasting
from .gap import Bounds, LearnedRows
from .methods import Refereed, method_of
from .metrics import OF_COSTS, range_of
from .splits import seed_of, splits_of
from .surrogates import CannotError

SLACK, FLOOR = 1e-9, 1e-12

# errors from a cell's file or an array in another form than the program writes
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
_T = TypeVar("_T")


class RefutedError(Exception):
    """A statement of a row or a proof is false; the text says which."""


@dataclass(frozen=True)
class Verdict:
    """What the checker found of one fit: proved with a bound of its gap, refuted, or beyond it for a reason."""

    dataset: str
    method: str
    cell: str
    split: int | None
    verdict: str
    reason: str = ""
    objective: float = math.nan
    dual_objective: float = math.nan
    relative_gap: float = math.nan
    stated_gap: float = math.nan
    metrics: str = ""
    unfollowed: str = ""
    seconds: float = 0.0


VERDICT_MEANINGS = {
    "dataset": "name of the data set",
    "method": "name of the method",
    "cell": "key of the cell, as in runs.csv",
    "split": "number of the split",
    "verdict": "proved; refuted: a statement of the row or the proof is false; cannot: the checker has no proof for this",
    "reason": "why it is refuted or cannot be proved",
    "objective": "proved upper bound of the objective of the fit; nan where nothing is proved",
    "dual_objective": "proved lower bound of the optimum",
    "relative_gap": "proved upper bound of the relative gap",
    "stated_gap": "relative gap of the row in runs.csv",
    "metrics": "metrics of the row whose values follow from the stored parameters",
    "unfollowed": "its other metrics, each with the reason, separated by `; `",
    "seconds": "wall time of the check",
}
"""Columns of verify.csv with their meanings, the fields of `Verdict`: one row per reported fit."""


def verify_folder(
    folder: ResultsFolder, data_dir: Path, tell: Callable[[str], None] = lambda line: None, spreadsheets: bool = False
) -> list[Verdict]:
    """Return a verdict for every reported fit of a results folder, and write them to verify.csv in it.

    Files that were moved are looked for by their names in ``data_dir``. ``tell`` gets one line for each cell; with
    ``spreadsheets`` texts of verify.csv that look like formulas get an apostrophe. Raises `ResultsError` for a folder without runs.csv, or
    without proofs.
    """
    rows = _rows(folder.path / "runs.csv")
    stored = set(folder.finished_keys())
    abouts = [(folder.read_cell(key) or {"about": {}})["about"] for key in stored]
    if abouts and all("imported" in about for about in abouts):
        raise ResultsError(f"{folder.path} holds imported numbers, which have no fits here; there is nothing to verify")
    if not any(about.get("proofs") for about in abouts):
        raise ResultsError(f"{folder.path} was made without proofs; run it again with record.proofs=true")
    cells: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        cells.setdefault(row["cell"], []).append(row)
    verdicts: list[Verdict] = []
    loaded: dict[str, Any] = {}
    for number, (key, rows_of_cell) in enumerate(cells.items(), start=1):
        fits = list(_cell(folder, key, rows_of_cell, data_dir, loaded))
        verdicts += fits
        reason = next((f": split {fit.split}: {fit.reason}" for fit in fits if fit.verdict == "refuted"), "")
        reason = reason or next((f": {fit.reason}" for fit in fits if fit.verdict == "cannot"), "")
        tell(f"[{number}/{len(cells)}] {rows_of_cell[0]['dataset']}, {rows_of_cell[0]['method']}: {_counted(fits)}{reason}")
    for key in sorted(stored - set(cells)):
        verdicts.append(Verdict("", "", key, None, "cannot", "the cell is not in runs.csv; advcli report merges it"))
    shown = as_text if spreadsheets else str
    lines = ([shown(format_value(value)) for value in astuple(verdict)] for verdict in verdicts)
    write_text(folder.path / "verify.csv", csv_text([VERDICT_MEANINGS, *lines]))
    return verdicts


def summary(verdicts: list[Verdict]) -> list[str]:
    """Return what was found: counts of fits, and one line for every metric that is not followed in fits that are proved."""
    proved = [verdict for verdict in verdicts if verdict.verdict == "proved"]
    whole = sum(not verdict.unfollowed for verdict in proved)
    lines = [f"{_counted(verdicts)}; of the proved {whole} with all their metrics, {len(proved) - whole} the fit alone"]
    unfollowed: dict[str, list[tuple[str, str]]] = {}
    for verdict in verdicts:
        for text in filter(None, verdict.unfollowed.split("; ")):
            metric, reason = text.removesuffix(")").split(" (", 1)
            unfollowed.setdefault(metric, []).append((verdict.method, reason))
    for metric, fits in unfollowed.items():
        methods = ", ".join(dict.fromkeys(method for method, _ in fits))
        lines.append(f"not followed: {metric} (fits: {len(fits)}; {methods}): {fits[0][1]}")
    return lines


def _counted(verdicts: list[Verdict]) -> str:
    return ", ".join(f"{sum(verdict.verdict == word for verdict in verdicts)} {word}" for word in ("proved", "refuted", "cannot"))


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ResultsError(f"cannot read {path} ({type(error).__name__}); advcli report makes it from the cells") from None
    if not rows or not {"cell", "dataset", "method", "split"} <= rows[0].keys():
        raise ResultsError(f"{path} holds no rows of advcli; run an experiment with this results folder first")
    return rows


@dataclass(frozen=True, eq=False)
class _ProvenCell:
    """A cell whose configuration and data are there."""

    config: Mapping[str, Any]
    noise: Any
    dataset: Any
    splits: list[tuple[Any, Any]]
    method: Refereed
    arrays: Mapping[int, Mapping[str, Array]]


def _cell(folder: ResultsFolder, key: str, rows: list[dict[str, str]], data_dir: Path, loaded: dict[str, Any]) -> Iterator[Verdict]:
    """Yield the verdict of every fit of a cell; where the cell itself cannot be judged they are all the same."""
    head = (rows[0]["dataset"], rows[0]["method"], key)
    splits: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        splits.setdefault(row["split"], []).append(row)
    cell, refusal = _judged(lambda: _open(folder, key, rows, data_dir, loaded), CannotError)
    for number, rows_of_fit in splits.items():
        began = time.perf_counter()
        split = int(number) if number else None
        if cell is None:
            yield Verdict(*head, split, *refusal)
            continue
        proof, reason = _judged(partial(_fit, cell, split, rows_of_fit), CannotError, AdvcliError)
        if proof is None:
            yield Verdict(*head, split, *reason, seconds=time.perf_counter() - began)
            continue
        bounds, stated, metrics, unfollowed = proof
        high, low = float(bounds.primal.high), float(bounds.dual.low)
        gap = (high - low) / _scale(high, low)
        names, reasons = " ".join(metrics), "; ".join(unfollowed)
        yield Verdict(*head, split, "proved", "", high, low, gap, stated, names, reasons, time.perf_counter() - began)


def _judged(work: Callable[[], _T], *beyond: type[Exception]) -> tuple[_T | None, tuple[str, str]]:
    """Return what a step of the check returns; where it raises None, the verdict and the reason: an error ``beyond`` refutes nothing."""
    try:
        return work(), ("", "")
    except beyond as error:
        return None, ("cannot", str(error))
    except (RefutedError, *_DAMAGED) as error:
        return None, ("refuted", _said(error))


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, RefutedError) else f"{type(error).__name__}: {text}"


def _scale(primal: float, dual: float) -> float:
    """Return what a gap is relative to: the primal value, or |dual| where negative entries of a matrix make that negative."""
    return primal if primal > 0 else max(-dual, 1e-300)


def _open(folder: ResultsFolder, key: str, rows: list[dict[str, str]], data_dir: Path, loaded: dict[str, Any]) -> _ProvenCell:
    """Compare the rows with the cell's file, load data and proofs, draw the splits again."""
    stored = folder.read_cell(key)
    if stored is None:
        if all(row.get("status") == "failed" for row in rows):
            raise CannotError("the cell failed")
        raise RefutedError("runs.csv has rows of a cell that is not in the folder")
    texts = [{column: format_value(value) for column, value in row.items()} for row in stored["rows"]]
    if len(texts) != len(rows):
        raise RefutedError(f"runs.csv has {len(rows)} rows of the cell, its file {len(texts)}")
    for mine, row in zip(texts, rows, strict=True):
        for column in {**mine, **row}:
            if (mine.get(column) or "") != (row.get(column) or ""):
                raise RefutedError(f"runs.csv and cells/{key}.json differ in the column {column}")
    config = stored["about"]["cell"]
    protocol, seed = config["protocol"], int(config["seed"])
    for group in ("loss", "features"):
        if any(row[group] != str(config[group]["name"]) for row in rows):
            raise RefutedError(f"the rows' {group} differs from their cell's")
    if not any(row["proof"] for row in rows):
        if not stored["about"].get("proofs"):
            raise CannotError("kept without proofs")
        kind = f" with loss.surrogate={config['loss']['surrogate']}" if "surrogate" in config["loss"] else ""
        raise CannotError(f"nothing was kept of loss={config['loss']['name']}{kind}")
    if protocol.get("rough_per_class") is not None:
        raise CannotError("a rough classifier made the training labels")
    current = _with_moved_files(config, stored["about"], data_dir)
    request = canonical_json([current["dataset"], protocol["splits"] == "author"])
    try:
        if request not in loaded:
            loaded.clear()
            loaded[request] = data.load(current["dataset"], data_dir, author_splits=protocol["splits"] == "author")
        dataset = loaded[request]
        method = method_of(current["loss"], [str(label) for label in dataset.classes], bool(dataset.ordered), dataset.hierarchy)
    except AdvcliError as error:
        raise CannotError(" ".join(str(error).split())) from None
    if dataset.sha256 != stored["about"]["dataset_sha256"]:
        raise RefutedError("the data are not the data of the rows: their checksum differs")
    try:
        arrays = proofs.read(folder, key)
    except ResultsError as error:
        raise RefutedError(str(error)) from None
    return _ProvenCell(config, current.get("noise"), dataset, splits_of(dataset, current["protocol"], seed), method, arrays)


def _with_moved_files(config: Mapping[str, Any], about: Mapping[str, Any], data_dir: Path) -> dict[str, Any]:
    """Return the configuration of a cell, in which the file of the same name in ``data_dir`` replaces a missing one.

    Raises `CannotError` where a file that counts by its bytes holds something else than when the cell was made, or is nowhere.
    """
    current: dict[str, Any] = copy.deepcopy(dict(config))
    files = about.get("files", {})
    for key in about.get("paths", ()):
        *above, last = (int(part) if part.isdecimal() else part for part in key.split("."))
        place: Any = current
        for part in above:
            place = place[part]
        text = place.get(last) if isinstance(place, dict) else place[last]
        if text is None:
            continue
        path = expanded(str(files.get(key, {}).get("path", text)))
        moved = data_dir / path.name
        if not path.exists() and moved.exists():
            path = moved
            place[last] = str(moved)
        if key in files and file_sha256(path) != files[key]["sha256"]:
            what = "holds something else than when the cell was made" if path.exists() else "is gone; data_dir=FOLDER says where it is"
            raise CannotError(f"{key}={text} {what}")
    return current


# ------------------------------------------------------------------------------------------------------- splits and standardisation


def _standardised(X: Any, test: Any) -> tuple[Any, Any]:
    """Return both parts in units of the training rows' deviations (n - 1), centred unless sparse; constants become 1, or stay in [0, 1)."""
    sparse, n = is_sparse(X), X.shape[0]
    if sparse:
        mean = np.asarray(X.mean(axis=0)).ravel()
        low, high = (np.asarray(dense(part)).ravel() for part in (X.min(axis=0), X.max(axis=0)))
        # around the mean, and the zeros beside the stored values
        stored = np.bincount(X.indices, minlength=X.shape[1])
        around = np.bincount(X.indices, weights=(X.data - mean[X.indices]) ** 2, minlength=X.shape[1])
        deviation = np.sqrt((around + (n - stored) * mean**2) / max(n - 1, 1))
    else:
        mean, low, high = X.mean(axis=0), X.min(axis=0), X.max(axis=0)
        deviation = X.std(axis=0, ddof=1) if n > 1 else np.zeros(X.shape[1])
    constant = (low == high) | (deviation == 0.0)
    one = constant & ~((low >= 0.0) & (low < 1.0))
    scale = np.where(constant, 1.0, deviation)
    if sparse:
        scale = np.where(one, low, scale)
        parts = [part.copy() for part in (X, test)]
        for part in parts:
            part.data = part.data / scale[part.indices]
        return parts[0], parts[1]
    parts = [np.ascontiguousarray((part - np.where(constant, 0.0, mean)) / scale) for part in (X, test)]
    for part in parts:
        part[:, one] = 1.0
    return parts[0], parts[1]


# -------------------------------------------------------------------------------------------------------------------------- one fit


@np.errstate(all="ignore")  # a number that is not finite proves nothing
def _fit(cell: _ProvenCell, split: int | None, rows: list[dict[str, str]]) -> tuple[Bounds, float, list[str], list[str]]:
    """Prove one fit; return its bounds, the stated gap, the metrics that follow from theta, and the others with the reasons."""
    row, config, dataset = rows[0], cell.config, cell.dataset
    if row["status"] == "failed" or split is None:
        raise CannotError("the fit failed")
    if not 1 <= split <= len(cell.splits):
        raise RefutedError(f"there are {len(cell.splits)} splits")
    arrays = cell.arrays.get(split, {})
    if "theta" not in arrays:
        raise RefutedError("the proof is missing")
    if any(not np.isfinite(array).all() for array in arrays.values()):
        raise RefutedError("the proof holds numbers that are not finite")
    expected = proofs.digest(lasting(config), split, arrays)
    if any(entry["proof"] != expected for entry in rows):
        raise RefutedError("the hash of the proof differs from the row's")
    if "r" not in arrays:
        raise CannotError("the solver has no dual point")
    train, test = cell.splits[split - 1]
    X, X_test = dataset.encoded(train, test)
    d = X.shape[1]
    if config["protocol"]["standardise"] != "none":
        X, X_test = _standardised(X, X_test)
    y, k = dataset.y[train], len(dataset.classes)
    if cell.noise:
        confusion = make_confusion(cell.noise, k, seed_of(config["seed"], "noise", dataset.name, split))
        y = corrupt(y, confusion.true, seed_of(config["seed"], "noisy labels", dataset.name, split))
    for column, value in {"n_train": len(train), "n_test": len(test), "n_features": d, "n_classes": k}.items():
        if row[column] != str(value):
            raise RefutedError(f"{column} is {value}, not {row[column]}")
    weight = None if dataset.example_weight is None else dataset.example_weight[train]
    costs = None if dataset.costs is None else dataset.costs[train]
    if dataset.soft is not None and not cell.method.has_costs:  # a row for every class with mass
        places, y, weight = by_label(dataset.soft[train], weight)
        X, costs = X[places], None
    s = None if cell.method.example_costs else weight
    hyper = {name: float(row[name]) for name in ("C", "lambda", "gamma", "tolerance") if row.get(name)}
    features = cell.method.score_map({**config["features"], **hyper}, hyper.get("gamma"), X)
    groups = dataset.groups if cell.method.sequences else None
    groups, groups_of_test = (None if groups is None else groups[part] for part in (train, test))
    lam = 0.0 if features.box else hyper["lambda"] if "lambda" in hyper else 1.0 / (hyper["C"] * _mass(s, groups, X.shape[0]))
    if not (features.box or 0 < lam < math.inf):
        raise RefutedError("lambda is not a number above 0")
    relations, right = dataset.relations, None
    learned = LearnedRows(y, s, weight, costs, groups, None if relations is None else relations[train])
    bounds = cell.method.bounds(features, learned, lam, arrays)
    stated = _claims(row, bounds, cell.method, float(config["solver"]["tol"]))
    possible = cell.method.possible(features, X_test, groups_of_test, learned, arrays)
    if relations is not None:  # words with heads, which one method alone learns from
        trees: Any = cell.method
        right = trees.right_relations(X_test, groups_of_test, dataset.y[test], relations[test], learned, arrays)
    facts = {**cell.method.facts(), "n_classes": k, "groups": groups_of_test, "right": right}
    truths = dict.fromkeys(OF_COSTS, dataset.y[test] if dataset.costs is None else dataset.costs[test])
    reasons = {entry["metric"]: _unfollowed(entry, possible, truths.get(entry["metric"], dataset.y[test]), facts) for entry in rows}
    unfollowed = [f"{metric} ({reason})" for metric, reason in reasons.items() if reason]
    return bounds, stated, [metric for metric, reason in reasons.items() if not reason], unfollowed


def _mass(s: Array | None, groups: Any, n: int) -> float:
    """Return the weight of all examples, which are rows or sequences of them."""
    first = slice(None) if groups is None else np.append(True, groups[1:] != groups[:-1])
    weights = np.ones(n)[first] if s is None else s[first]
    return float(weights.sum())


def _claims(row: Mapping[str, str], bounds: Bounds, method: Refereed, tol: float) -> float:
    """Compare the columns of the certificate with the proved bounds; return the stated gap."""
    gap = _claim(row, "", bounds, method.game)
    gaps = [(gap, row["converged"])]
    for stage, further in bounds.stages.items():
        gaps.append((_claim(row, f"{stage}_", further, False), row.get(f"{stage}_converged", "")))
    reached = all(value <= tol for value, _ in gaps)
    if any(converged != str(value <= tol) for value, converged in gaps) or row["status"] != ("ok" if reached else "not_converged"):
        raise RefutedError(f"converged={row['converged']}, status={row['status']} do not follow from the gap and solver.tol")
    return gap


def _claim(row: Mapping[str, str], stage: str, bounds: Bounds, game: bool) -> float:
    """Compare the columns of one problem, which begin with the stage's name, with its proved bounds; return the stated gap."""
    columns = [f"{stage}{column}" for column in ("objective", "dual_objective", "relative_gap")]
    objective, dual, gap = (float(row.get(column) or "nan") for column in columns)
    scale = _scale(objective, dual)
    slack = SLACK * scale + FLOOR
    claims = [(columns[0], objective, bounds.primal, 1.0), (columns[1], dual, bounds.dual, -1.0)]
    if game:
        claims.append(("game_value", float(row["game_value"] or "nan"), bounds.primal + bounds.ridge, 1.0))
    for column, claim, proved, _ in claims:
        if not abs(claim - proved.mid) <= slack + proved.rad:
            raise RefutedError(f"{column} is {float(proved.mid):.10g}, not {claim:.10g}")
    if not abs((objective - dual) / scale - gap) <= SLACK + FLOOR / scale:
        raise RefutedError(f"{columns[2]} is {(objective - dual) / scale:.3e} by the row's own objective, not {gap:.3e}")
    for column, claim, proved, side in claims:
        # rounding alone may go beyond the slack
        if not side * (float(proved.high if side > 0 else proved.low) - claim) <= slack:
            raise CannotError(f"{column} cannot be told apart: rounding alone may move it by {float(np.max(proved.rad)):.1e}")
    return gap


def _unfollowed(row: Mapping[str, str], possible: Any, truth: Any, facts: Mapping[str, Any]) -> str:
    """Return why a metric's value does not follow from theta, empty where it does; refute a value that no possible predictions have."""
    if possible is None:
        return "the predictions are not followed"
    ends = range_of(row["metric"], possible, truth, facts)
    if ends is None:
        return "not judged" if not _ties(possible) else f"rows that tie: {_ties(possible)}"
    value, (least, most) = float(row["value"] or "nan"), ends
    slack = FLOOR * max(1.0, abs(least), abs(most))
    if not (least - slack <= value <= most + slack or (math.isnan(value) and math.isnan(least))):
        proved = f"{least:.6g}" if math.isnan(least) or most - least <= slack else f"between {least:.6g} and {most:.6g}"
        raise RefutedError(f"{row['metric']} is {proved}, not {value:.6g}")
    return "" if math.isnan(least) or most - least <= slack else f"rows that tie: {_ties(possible)}, between {least:.6g} and {most:.6g}"


def _ties(possible: Any) -> int:
    """Return how many rows have several possible predictions."""
    return sum(len(sets) > 1 for sets in possible) if not isinstance(possible, np.ndarray) else int((possible.sum(axis=1) > 1).sum())
