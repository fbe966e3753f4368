"""A fit to rows that no machine holds: every worker reads its own part of them, and only sums travel.

    model = fit(AdversarialClassifier(solver="distributed", solver_options={"workers": 4}), "rows/*.parquet", label="y")

``solver="distributed"`` (`advcli.solvers.shards.solver`) is the algorithm; the problem is what `AdversarialClassifier.fit` solves on all
rows together, and the certificate is one more round over all of them. The rows are taken as they stand: scale them before.
"""

from __future__ import annotations

import copy
import glob
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core.arrays import is_sparse
from ..core.checks import refuse_huge
from ..core.errors import ConfigError, DataError, IncompatibleError
from ..core.typing import Array
from ..losses import AdversarialLoss
from ..problems.certificate import certify, warn_unless_converged
from ..problems.risk import Problem
from ..solvers import Limits, make_solver
from ..solvers.shards.rows import RemoteDualPoint, Rounds, Shard, ShardJudgement, Whole
from ..solvers.shards.solver import DistributedSolver
from .base import Bound, named_in_errors
from .surrogate import SurrogateClassifier

Fitted = TypeVar("Fitted", bound=SurrogateClassifier)
Read = Callable[[], Sequence[Any]]


def fit(estimator: Fitted, rows: str | Path | Sequence[Read], label: str | None = None, weight: str | None = None) -> Fitted:
    """Fit an estimator to rows in shards, which its workers read where they are; return it.

    Parameters
    ----------
    estimator : AdversarialClassifier or OrdinalAdversarialClassifier
        With ``solver="distributed"``, whose ``solver_options`` say the workers, and linear features.
    rows : path, pattern, or sequence of callables
        A folder of parquet files, one file or a pattern such as ``"rows/*.parquet"``, on a disk that all machines see: of N rows in the
        order of the file names, each of W workers reads N/W consecutive ones. Or, for rows in another form, functions without arguments,
        one for each worker, that return X (n, d), dense or sparse, y (n,) and optionally sample weights (n,).
    label, weight : str
        The columns of parquet files with the labels and, if any, the sample weights; all others are features and must be numbers.

    Returns
    -------
    estimator
        Fitted, with a certificate of all rows together; ``solution_.memory`` counts rounds, bytes moved and workers replaced, and its dual
        point stays with the workers.

    Raises
    ------
    ConfigError
        An estimator that does not fit in this way, or parameters that cannot be used.
    DataError
        Rows that cannot be read or used.
    KilledError
        A worker died more often than ``solver_options["restarts"]`` allows.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import AdversarialClassifier
    >>> from advcli.learners.distributed import fit
    >>> def read():
    ...     X = np.linspace(0.0, 1.0, 60).reshape(20, 3)
    ...     return X, (X[:, 0] > 0.5).astype(int)
    >>> model = fit(AdversarialClassifier(solver="distributed", solver_options={"workers": 1}), [read])
    >>> model.certificate_.converged
    True
    """
    with named_in_errors(estimator):
        estimator.check_parameters()
        solver = _solver(estimator)
        reads, columns = _reads(rows, label, weight, solver.workers)
        started = time.perf_counter()
        workers = solver.held([(_ShardRows, (read, columns)) for read in reads])
        try:
            _fit(estimator, solver, Rounds(workers, solver.restarts), started)
        finally:
            workers.close()
    if estimator.verbose:
        print(f"{type(estimator).__name__}: {estimator.said_of_the_fit()}", flush=True)
    return estimator


def _solver(estimator: SurrogateClassifier) -> DistributedSolver:
    if estimator.solver != DistributedSolver.name:
        raise IncompatibleError("a fit to shards", "solver=distributed", f"this estimator has solver={estimator.solver}")
    if estimator.map_class.name != "linear" or estimator.map_options:
        raise IncompatibleError("a fit to shards", "linear features without options", f"this estimator has features={estimator.mapped_by}")
    for name in ("calibrate", "warm_start"):
        if getattr(estimator, name, None):
            raise ConfigError(f"{name}={getattr(estimator, name)} needs all rows in one place: fit to shards without it")
    solver = make_solver(estimator.solver, **(estimator.solver_options or {}))
    assert isinstance(solver, DistributedSolver)
    return solver


def _fit(estimator: SurrogateClassifier, solver: DistributedSolver, rounds: Rounds, started: float) -> None:
    codes_of, total = _agree(estimator, rounds.prepare("look"))
    lam = estimator._lam_of(total)
    rounds.prepare("bind", copy.copy(estimator), codes_of, lam)
    theta = np.zeros((estimator.n_columns_, estimator.n_mapped_))
    whole = Whole(total, lam, 0.0)
    if estimator.loss_.core.negative_costs:  # as `Problem.least_scale`
        empty = _JudgedShards(rounds, whole, estimator, theta, RemoteDualPoint(0, None, 0.0))
        unit = empty.primal(theta) - empty.dual(None)
        whole = Whole(total, lam, 1e-6 * (unit if unit > 0.0 else 1.0))
    limits = Limits(estimator.tol, estimator.max_passes, estimator.max_seconds)
    solution = solver.minimise(rounds, whole, theta, max(1.0, 10.0 / (lam * total)), limits, started)
    estimator.certificate_ = certify(_JudgedShards(rounds, whole, estimator, solution.theta, solution.R), solution, estimator.tol)
    solution.R = None
    estimator.solution_, estimator.theta_, estimator.lam_, estimator.rows_ = solution, solution.theta, lam, None
    estimator.n_iter_ = max(1, int(np.ceil(solution.passes)))
    warn_unless_converged(f"lambda={lam:.3g}", estimator.certificate_, estimator.tol)


class _ShardFacts(NamedTuple):
    """What a worker saw in its rows."""

    columns: list[str] | int  # their names, or how many there are
    labels: Any
    mass: Array  # of each label


def _agree(estimator: SurrogateClassifier, seen: list[_ShardFacts]) -> tuple[dict[Any, tuple[int, float]], float]:
    """Set what a fit knows of its rows; return the code of each label with its class weight, and the mass of all rows."""
    for at, one in enumerate(seen):
        if one.columns != seen[0].columns:
            raise DataError(f"part {at + 1} of the rows has other columns than part 1")
        if (one.labels.dtype.kind in "OSU") != (seen[0].labels.dtype.kind in "OSU"):
            raise DataError(f"part {at + 1} of the rows has labels of another type than part 1")
    labels, place = np.unique(np.concatenate([one.labels for one in seen]), return_inverse=True)
    mass = np.bincount(place, weights=np.concatenate([one.mass for one in seen]))
    columns = seen[0].columns
    # one row represents all rows of a label: classes, their order and their weights are found as in a fit to rows
    stub: Any = np.zeros((len(labels), columns if isinstance(columns, int) else len(columns)))
    _, codes, weights = estimator._checked(stub, labels, mass)
    weighed = np.asarray(weights)
    if not isinstance(columns, int):
        estimator.feature_names_in_ = np.array(columns, dtype=object)
    estimator.loss_ = loss = estimator._make_loss(len(estimator.classes_))
    if loss.example_weights:
        raise IncompatibleError("a fit to shards", "weights that count rows", "this loss takes them for costs")
    Bound.of(estimator, estimator._bind(stub[:1]), codes, None).set_facts(estimator)
    _ = estimator.predictions_  # refuses a class with the name of another prediction
    factor = np.divide(weighed, mass, out=np.zeros(len(mass)), where=mass > 0.0)
    each = zip(codes.tolist(), factor.tolist(), strict=True)
    return dict(zip(labels.tolist(), each, strict=True)), float(weighed.sum())


class _JudgedShards:
    """The problem of all rows as the referee asks it, at one theta and one dual point: one round."""

    def __init__(self, rounds: Rounds, whole: Whole, estimator: SurrogateClassifier, theta: Array, R: Any) -> None:
        self.whole, self.loss, self.theta, self.least_scale = whole, estimator.loss_.core, theta, whole.least
        self.judgement: ShardJudgement = rounds.total("judge", theta, R)

    def primal(self, theta: Array) -> float:
        """Return P at the theta that was judged."""
        assert theta is self.theta
        return self.whole.ridge(theta) + self.judgement.value / self.whole.n

    def feasible(self, R: Any) -> tuple[Any, float]:
        """Return the dual point, which the workers moved into its set, and how far outside it lay."""
        return R, self.judgement.outside

    def dual(self, R: Any) -> float:
        """Return D at the dual point that was judged."""
        return self.whole.dual(self.judgement.offset, self.judgement.gradient)

    def game_value(self, theta: Array, primal: float | None = None) -> float:
        """Return the worst case that theta guarantees (`Problem.game_value`)."""
        if not isinstance(self.loss, AdversarialLoss):
            return float("nan")
        return (self.primal(theta) if primal is None else primal) + self.whole.ridge(theta)


# ---- at a worker ----------------------------------------------------------------------------------------------------
class _ShardRows:
    """The rows that a worker read, and their `Shard` once the problem is known."""

    def __init__(self, read: Read, columns: list[str] | None = None) -> None:
        X, labels, *more = read()
        self.columns: list[str] | int = int(X.shape[1]) if columns is None else columns
        self.X: Any = X.tocsr() if is_sparse(X) else np.ascontiguousarray(X, dtype=np.float64)
        self.labels, self.weights = np.asarray(labels), None if not more or more[0] is None else np.asarray(more[0], dtype=np.float64)
        n = self.X.shape[0]
        if self.labels.shape != (n,) or (self.weights is not None and self.weights.shape != (n,)):
            raise DataError(f"a part of the rows has {n} rows, and labels or weights of another number")
        if n == 0:
            raise DataError("a part of the rows is empty: ask for fewer workers")
        if self.labels.dtype == object:
            self.labels = np.array(self.labels.tolist())
        values = self.X.data if is_sparse(self.X) else self.X
        if not np.isfinite(values).all():
            raise DataError(f"{_where(self.X, self.columns)} holds values that are missing or infinite")
        if self.weights is not None and not (np.isfinite(self.weights).all() and (self.weights >= 0.0).all()):
            raise DataError("the weights of the rows must be finite numbers of at least 0")
        refuse_huge(self.X, None, "X")

    def look(self) -> _ShardFacts:
        """Return what these rows hold."""
        labels, place = np.unique(self.labels, return_inverse=True)
        return _ShardFacts(self.columns, labels, np.bincount(place, weights=self.weights).astype(np.float64))

    def bind(self, estimator: SurrogateClassifier, codes_of: dict[Any, tuple[int, float]], lam: float) -> None:
        """Make the shard of these rows."""
        labels, place = np.unique(self.labels, return_inverse=True)
        codes, factor = (np.array(each)[place] for each in zip(*(codes_of[label] for label in labels.tolist()), strict=True))
        weights = self.weights
        if estimator.class_weight is not None:
            weights = factor if weights is None else weights * factor
        loss = estimator.loss_
        features = estimator._bind(self.X)
        del self.X  # the rows with their constant remain
        shard = Shard(Problem(features, loss.core, codes.astype(np.intp), lam, weights, loss.cost_weights(codes, None)))
        self.sums, self.judge = shard.sums, shard.judge


def _where(X: Any, columns: list[str] | int) -> str:
    """Return the first column with a value that is not a finite number, in words."""
    if is_sparse(X):
        column = int(X.indices[np.flatnonzero(~np.isfinite(X.data))[0]])
    else:
        column = int(np.flatnonzero(~np.isfinite(X).all(axis=0))[0])
    return f"column {column + 1}" if isinstance(columns, int) else f"column {columns[column]!r}"


# ---- parquet --------------------------------------------------------------------------------------------------------
def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError('parquet files need pyarrow; install it with: pip install "advcli[scale]"') from error
    return pyarrow.parquet


def _reads(rows: str | Path | Sequence[Read], label: str | None, weight: str | None, workers: int) -> tuple[list[Read], list[str] | None]:
    """Return what each worker reads its rows with, and the columns of parquet files."""
    if not isinstance(rows, (str, Path)):
        reads = list(rows)
        if not reads or not all(map(callable, reads)):
            raise ConfigError("rows must be a path of parquet files, or functions that return X and y")
        if len(reads) != workers:
            raise ConfigError(f"{len(reads)} functions read the rows: set solver_options={{'workers': {len(reads)}}} (it is {workers})")
        if label is not None or weight is not None:
            raise ConfigError("label and weight name columns of parquet files; functions return labels and weights")
        return reads, None
    parquet = _parquet()
    paths = sorted(map(str, Path(rows).glob("*.parquet"))) if Path(rows).is_dir() else sorted(glob.glob(str(rows)))
    if not paths:
        raise DataError(f"{rows}: no parquet files there; give a folder, a file or a pattern such as rows/*.parquet")
    if label is None:
        raise ConfigError("label=None: name the column of the labels")
    sizes, names = [], None
    for path in paths:
        try:
            head = parquet.ParquetFile(path)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is no parquet file: {str(error).splitlines()[0]}") from None
        here = head.schema_arrow.names
        for name in (label, weight):
            if name is not None and name not in here:
                raise DataError(f"{path} has no column {name!r}; it has {', '.join(here[:10])}{', ...' if len(here) > 10 else ''}")
        names = here if names is None else names
        if set(here) != set(names):
            raise DataError(f"{path} has other columns than {paths[0]}")
        sizes.append(head.metadata.num_rows)
    assert names is not None
    total = int(sum(sizes))
    if total < workers:
        raise DataError(f"{rows} holds {total} rows, fewer than the {workers} workers")
    columns = [name for name in names if name not in (label, weight)]
    ends = np.linspace(0, total, workers + 1).astype(int).tolist()
    files = [(str(Path(path).absolute()), size) for path, size in zip(paths, sizes, strict=True)]
    return [partial(_read_parquet, files, *part, columns, label, weight) for part in pairwise(ends)], columns


def _read_parquet(files: list[tuple[str, int]], begin: int, end: int, columns: list[str], label: str, weight: str | None) -> Sequence[Any]:
    """Return X, labels and weights of the rows from ``begin`` to ``end`` of all files together."""
    X = np.empty((end - begin, len(columns)))
    labels: list[Any] = []
    weights = None if weight is None else np.empty(end - begin)
    for path, first, table in _groups(files, begin, end, [*columns, label, *([] if weight is None else [weight])]):
        here = slice(first, first + table.num_rows)
        for j, name in enumerate(columns):
            X[here, j] = _numbers(table, name, path)
        if weights is not None:
            weights[here] = _numbers(table, weight, path)
        if table.column(label).null_count:
            raise DataError(f"{path}: column {label!r} lacks {table.column(label).null_count} labels")
        labels.append(np.array(table.column(label).to_pylist()))
    return X, np.concatenate(labels), weights


def _groups(files: list[tuple[str, int]], begin: int, end: int, names: list[str]) -> Iterator[tuple[str, int, Any]]:
    """Yield the path, the place among the rows from ``begin`` on, and the table of every group of rows, one in memory at a time."""
    at = 0
    for path, size in files:
        first, at = at, at + size
        if first >= end or at <= begin:
            continue
        head = _parquet().ParquetFile(path)
        for group in range(head.metadata.num_row_groups):
            last = first + head.metadata.row_group(group).num_rows
            low, high = max(begin, first), min(end, last)
            if low < high:
                yield path, low - begin, head.read_row_group(group, columns=names).slice(low - first, high - low)
            first = last


def _numbers(table: Any, name: Any, path: str) -> Array:
    """Return a column as numbers."""
    try:
        return np.asarray(table.column(name).to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{path}: column {name!r} holds values that are no numbers") from None
