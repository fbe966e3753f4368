"""The one shape that every source of data ends in, and the checks that hold for all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.arrays import is_sparse
from ..core.checks import refuse_huge
from ..core.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from .tables.encoding import Encoding

Splits = tuple[tuple["NDArray[Any]", "NDArray[Any]"], ...]
Edges = tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples and labels, ready for fitting.

    Attributes
    ----------
    name : str
        Name of the data set, as rows of results show it.
    X : ndarray of float64, shape (n, d), C-contiguous, scipy.sparse.csr_array of float64, or BlockRows
        Features: finite numbers, not standardised.
    y : ndarray of intp, shape (n,), or scipy.sparse.csr_array of int8, shape (n, L)
        Codes of the labels, 0-based; every code in ``range(len(classes))`` occurs. Where rows have several labels: ones where row i has
        label l, every row and every label with at least one.
    classes : tuple of str, int or float
        The original labels; the position is the code.
    feature_names : tuple of str, length d
        Names of the columns of X.
    ordered : bool
        Whether the order of the classes has a meaning (ordinal targets).
    sizes : (int, int) or None
        Rows of the train and test part of every random split, where a paper prints them; sequences where rows form such.
    splits : tuple of (train, test) or None
        The authors' own splits, 0-based row numbers, when asked for and present.
    example_weight : ndarray of float64, shape (n,), or None
        Positive weights of the examples, from a column of the data.
    groups : ndarray of intp, shape (n,), or None
        The sequence that a row is of, numbered in the order of the rows, which stand together; None where rows stand alone.
    group, time : ndarray, shape (n,), or None
        Codes of groups that splits keep whole, 0-based; times, numbers or microseconds since 1970. Where the data name such columns.
    sha256 : str
        Checksum of the content (X, y, classes, weights, hierarchy and groups).
    notes : tuple of str
        What was dropped, cut or encoded; to be told to the user.
    allow_small_classes : bool
        Classes with fewer rows than folds are accepted by `check_trainable`.
    encoding : Encoding or None
        How columns of a table became features of X, learned from all rows; None where the data were no table of columns.
    cells : ndarray of float64 (n, p), or csr_array, or None
        The cells that X was made of, where features depend on rows (`advcli.data.tables.encoding.Encoding.fit`): what is evaluated on other
        rows than it was learned from starts from these (`encoded`). None: X is what it is.
    official : (train, test) or None
        The official training and test rows, 0-based, where the data state them.
    hierarchy : tuple of (parent, child) or None
        Edges of the graph over labels by name, whose leaves are the classes; None without one.
    costs : ndarray of float64, shape (n, k), or None
        What predicting each class costs on each row, at least 0, where rows have their own costs, or labels or distributions with a cost
        matrix; without either y is the first cheapest class, and a class may never be.
    soft : ndarray of float64, shape (n, k), or None
        Distributions over the classes, where rows have such instead of one label; y is then the first likeliest class, and a class may
        never be. ``costs`` are what each prediction costs in expectation.
    relations : ndarray of str, shape (n,), or None
        The relation of every word to its head, where labels are heads and the data name a column of relations.
    stubs : tuple of str
        Leaves of the hierarchy that represent the inner node above them (`advcli.core.label_graph.stub`).
    """

    name: str
    X: NDArray[Any] | csr_array
    y: NDArray[Any] | csr_array
    classes: tuple[Any, ...]
    feature_names: tuple[str, ...]
    ordered: bool = False
    sizes: tuple[int, int] | None = None
    splits: Splits | None = None
    example_weight: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    time: NDArray[Any] | None = None
    sha256: str = ""
    notes: tuple[str, ...] = ()
    allow_small_classes: bool = False
    encoding: Encoding | None = None
    official: tuple[NDArray[Any], NDArray[Any]] | None = None
    hierarchy: Edges | None = None
    stubs: tuple[str, ...] = ()
    costs: NDArray[Any] | None = None
    soft: NDArray[Any] | None = None
    cells: Any = None
    relations: NDArray[Any] | None = None

    def encoded(self, train: Any, *others: Any) -> list[Any]:
        """Return the features of training rows and of other rows, all as the training rows make them."""
        if self.cells is None or self.encoding is None:
            return [self.X[rows] for rows in (train, *others)]
        encoding = self.encoding.fit(self.cells[train])
        return [encoding.features(self.cells[rows]) for rows in (train, *others)]

    @property
    def has_trees(self) -> bool:
        """Whether rows are words with tags, as codes of their text, and labels the heads of words."""
        return self.encoding is not None and any(column.hashed for column in self.encoding.columns)

    @property
    def multilabel(self) -> bool:
        """Whether rows have sets of labels."""
        return is_sparse(self.y)

    def class_sizes(self) -> dict[Any, int]:
        """Return the number of rows of every class, by its original label."""
        import numpy as np

        codes: Any = getattr(self.y, "indices", self.y)
        counts = np.bincount(codes, minlength=len(self.classes))
        return dict(zip(self.classes, counts.tolist(), strict=True))


def content_sha256(data: Dataset) -> str:
    """Return the SHA-256 of a learner's data: X (dense or CSR), codes, labels, weights, hierarchy, costs, groups, cells and relations."""
    import numpy as np

    from ..core.row_blocks import BlockRows

    X: Any = data.X
    y: Any = data.y
    cells: Any = data.cells
    digest = hashlib.sha256()
    digest.update(repr(X.shape).encode())
    if isinstance(X, BlockRows):  # the checksum of the same rows in memory
        digest.update(repr(X.shape).encode())
        for part in X.parts():
            digest.update(X.dense(part.start, part.stop).astype("<f8", copy=False).tobytes())
        parts = []
    elif is_sparse(X):
        parts = [X.indptr.astype("<i8"), X.indices.astype("<i8"), X.data.astype("<f8")]
    else:
        parts = [np.ascontiguousarray(X, "<f8")]
    parts += [y.indptr.astype("<i8"), y.indices.astype("<i8")] if is_sparse(y) else [np.asarray(y, "<i8")]
    more = ((data.example_weight, "<f8"), (data.costs, "<f8"), (data.soft, "<f8"), (data.groups, "<i8"))
    parts += [np.asarray(array, kind) for array, kind in more if array is not None]
    if cells is not None:
        parts += [cells.indptr.astype("<i8"), cells.indices.astype("<i8")] if is_sparse(cells) else []
        values = np.asarray(cells.data if is_sparse(cells) else cells, "<f8")
        parts.append(np.where(np.isnan(values), np.nan, values))  # one pattern of bits for no value
    for array in parts:
        digest.update(repr(array.shape).encode())
        digest.update(array.tobytes())
    digest.update(json.dumps(list(data.classes)).encode())
    if data.hierarchy is not None:
        digest.update(json.dumps(sorted(data.hierarchy)).encode())
    if data.relations is not None:
        digest.update(json.dumps(data.relations.tolist()).encode())
    return digest.hexdigest()


LONGEST_LABEL = 1000
"""Characters of a label at most: tables, model files and messages hold it."""


def make_dataset(*, name: str, X: Any, y: Any, classes: Sequence[Any], feature_names: Sequence[str], **more: Any) -> Dataset:
    """Check the parts once, for all sources, and build a `Dataset`.

    Parameters
    ----------
    name, X, y, classes, feature_names
        Fields of a `Dataset`, of any types that become theirs.
    **more
        Its other fields but ``sha256``, where they are not at their defaults.

    Raises
    ------
    DataError
        Only one class, no rows, a feature beyond `advcli.core.checks.LARGEST`, or labels, names or sizes that do not fit the rows.

    Examples
    --------
    >>> from advcli.data import make_dataset
    >>> dataset = make_dataset(name="mine", X=[[0.0], [1.0]], y=[0, 1], classes=["a", "b"], feature_names=["size"])
    >>> dataset.X.shape, dataset.classes
    ((2, 1), ('a', 'b'))
    """
    import numpy as np

    from ..core.row_blocks import BlockRows

    if is_sparse(X):
        X = X.astype(np.float64)
        X.sum_duplicates()  # also sorts: equal content has one checksum
        if X.nnz < 2**31:  # scikit-learn takes no wider ones
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    elif not isinstance(X, BlockRows):
        X = np.ascontiguousarray(X, dtype=np.float64)
    if is_sparse(y):
        y.sort_indices()
    else:
        y = np.ascontiguousarray(y, dtype=np.intp)
    for key, kind in (("example_weight", np.float64), ("costs", np.float64), ("soft", np.float64), ("groups", np.intp)):
        if more.get(key) is not None:
            more[key] = np.ascontiguousarray(more[key], dtype=kind)
    more |= {key: tuple(more[key]) for key in ("sizes", "notes", "stubs") if more.get(key) is not None}
    data = Dataset(name, X, y, tuple(classes), tuple(feature_names), **more)
    _check(data)
    return replace(data, sha256=content_sha256(data))


def _check(data: Dataset) -> None:
    """Refuse parts of a data set that do not fit each other."""
    from ..core.row_blocks import BlockRows

    X: Any = data.X
    y: Any = data.y
    (n, d), classes, what = X.shape, data.classes, f"data set {data.name!r}"
    if n == 0:
        raise DataError(f"{what} has no rows")
    for rows in (X.raw(part.start, part.stop) for part in X.parts()) if isinstance(X, BlockRows) else [X]:
        refuse_huge(rows, data.feature_names, what)
    if len(classes) < 2:
        raise DataError(_one_class(data.name, classes))
    longest = max((str(label) for label in classes), key=len)
    if len(longest) > LONGEST_LABEL:
        fault = f"a label of {len(longest)} characters ({longest[:20]!r} and so on), more than {LONGEST_LABEL}"
        raise DataError(f"{what} has {fault}; is dataset.target the right column?")
    if len(data.feature_names) != d:
        raise DataError(f"{what} has {d} features and {len(data.feature_names)} names of features")
    if y.shape[0] != n:
        raise DataError(f"{what} has {n} rows and {y.shape[0]} labels")
    if y.ndim == 1 and not (y.min() >= 0 and y.max() < len(classes)):
        raise DataError(f"{what} has codes of labels from {y.min()} to {y.max()}, beyond its {len(classes)} classes")
    if data.sizes is not None and sum(data.sizes) > n:
        train, test = data.sizes
        raise DataError(f"{what} has {n} rows, too few for dataset.sizes=[{train},{test}]; use dataset.sizes=null")


def check_trainable(dataset: Dataset, folds: int) -> None:
    """Refuse a data set that cannot be searched with `folds`-fold cross-validation.

    Some published sets have classes of one or two rows (ecoli, the ordinal sets); they say ``allow_small_classes: true``
    in their YAML file, because plain shuffled folds stay defined. For all others such a class is taken for a mistake.
    """
    counts = dataset.class_sizes()
    present = [label for label, count in counts.items() if count]
    if len(present) < 2:
        raise DataError(_one_class(dataset.name, present))
    rows = dataset.X.shape[0]
    if rows < folds:
        raise DataError(f"data set {dataset.name!r} has {rows} rows, fewer than protocol.folds={folds}; use fewer folds")
    small = {label: count for label, count in counts.items() if count < folds}
    if small and not dataset.allow_small_classes:
        listed = ", ".join(f"{label} ({count})" for label, count in list(small.items())[:5]) + (", ..." if len(small) > 5 else "")
        remedy = "merge or remove them, use fewer folds, or accept them with dataset.allow_small_classes=true"
        raise DataError(f"data set {dataset.name!r} has classes with fewer rows than protocol.folds={folds}: {listed}; {remedy}")


def lonely_classes(dataset: Dataset) -> str:
    """Return what to say of classes that occur once, which no split has in both of its parts; empty without any, or if they are accepted.

    A `DataError` where most rows are alone in their class: numbers or names, no classes.
    """
    if dataset.allow_small_classes or dataset.multilabel or dataset.costs is not None:
        return ""
    alone = [label for label, count in dataset.class_sizes().items() if count == 1]
    if not alone:
        return ""
    n = dataset.X.shape[0]
    if 2 * len(alone) > n:
        share = f"{len(alone)} of its {n} rows are the only ones of their class"
        raise DataError(f"data set {dataset.name!r}: {share}; is dataset.target the right column? dataset.cut makes classes of numbers")
    listed = ", ".join(map(str, alone[:5])) + (f" and {len(alone) - 5} more" if len(alone) > 5 else "")
    return f"classes that occur once are in one part of a split alone: {listed}; merge or remove them"


def _one_class(name: str, classes: Sequence[Any]) -> str:
    content = f"the single class {classes[0]!r}" if classes else "no class"
    return f"data set {name!r} has {content} in its target; at least two are needed (is dataset.target the right column?)"
