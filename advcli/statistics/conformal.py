"""Sets of classes with a guarantee, from anybody's probabilities: split conformal prediction and control of a cost.

A number s(x, y) says how badly class y fits row x. With the n numbers of held-out rows, the set of all y whose number is at most their
ceil((n + 1)(1 - level))-th smallest has the class of a further row with probability at least 1 - level, where held-out and further rows
are exchangeable (Vovk, Gammerman & Shafer 2005); at most 1 - level + 1/(n + 1) where no two numbers are equal. The numbers are

    lac      1 - P_y                                                              Sadinle, Lei & Wasserman 2019
    aps      mass of the classes that are likelier than y, and P_y or a random share of it    Romano, Sesia & Candes 2020
    ordinal  mass of the least run of neighbouring classes around the median that has y; sets are runs
    tree     mass of the least ancestor of the likeliest class that has y; sets are nodes of a tree   as Mortier et al. 2026 (PMLR 300)

A run grows by its likelier neighbour. For costs the sets are those of lac at a level lambda, and lambda is the least at which the mean
over held-out rows of min over a in the set of L[a, y], with a further row at the largest cost, is at most the wanted one (conformal risk
control, Angelopoulos, Bates, Fisch, Lei & Schuster 2024, ICLR).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import class_codes, finite_table
from ..core.checks import FRACTION, POSITIVE, refuse
from ..core.errors import ConfigError, DataError, UnknownNameError, nearest
from ..core.typing import Array

METHODS = ("lac", "aps", "ordinal", "tree")
_SUM = 1e-6  # how far the sum of a row's probabilities may lie from 1
_TIE = 1e-12  # numbers this near count as equal, so that rounding of sums cannot take a class out of a set


@dataclass(frozen=True, eq=False)
class ConformalSets:
    """Sets of classes from probabilities, found by `conformal_sets` or `conformal_costs`.

    Attributes
    ----------
    method : str
        "lac", "aps", "ordinal" or "tree".
    level : float
        Share of further rows whose class may lie outside its set; of costs the wanted mean cost.
    threshold : float
        Largest number of a class in a set; infinite where the held-out rows are too few to prove anything, so that sets have all classes.
    rows : int
        Held-out rows.
    """

    method: str
    level: float
    threshold: float
    rows: int
    ancestors: Any = None  # (k, k, depth + 1) of trees: the classes below each ancestor of a class, from itself up
    randomised: bool = False

    def predict(self, P: Any, seed: int | None = None) -> NDArray[np.bool_]:
        """Return which classes are in the set of each row, shape (n, k), for probabilities P (n, k); ``seed`` for randomised sets."""
        P = _probabilities(P)
        if np.isinf(self.threshold):
            return np.ones(P.shape, dtype=bool)
        random = np.random.default_rng(seed) if self.randomised else None
        return _numbers(P, self.method, self.ancestors, random) <= self.threshold + _TIE


def conformal_sets(
    P: Any, y: Any, level: float = 0.1, method: str = "lac", parents: Mapping[Any, Any] | None = None, seed: int | None = None
) -> ConformalSets:
    """Return sets that have the class of a further row with probability at least 1 - level, from held-out rows.

    Assumed: held-out rows and further rows are exchangeable, such as independent draws of one law, and what made the probabilities has not
    seen the held-out rows. Nothing is assumed of the probabilities. The probability is over both, not for each class or region.

    Parameters
    ----------
    P : array (n, k)
        Probabilities of the classes of held-out rows, by any method.
    y : array (n,)
        Their classes, 0 to k - 1.
    level : float
        In (0, 1).
    method : {"lac", "aps", "ordinal", "tree"}
        How classes are ordered, as above.
    parents : mapping, optional
        For "tree": the parent of every class 0 to k - 1 and of every inner node but the root, nodes by any names.
    seed : int, optional
        For "aps": randomises the class at the edge, which makes sets smaller and the probability exact; then `predict` wants a seed too.

    Returns
    -------
    ConformalSets
        Its `predict` gives the sets of new rows.

    Raises
    ------
    ConfigError
        An unknown method, a level outside (0, 1), a tree without a parent for a class.
    DataError
        Probabilities that are no numbers or do not sum to 1, labels out of range.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> from advcli import conformal_sets
    >>> X, rest, y, truth = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    >>> P = LogisticRegression(C=0.01, max_iter=1000).fit(X, y).predict_proba(rest)
    >>> sets = conformal_sets(P[:500], truth[:500], level=0.02).predict(P[500:])
    >>> bool(sets[range(399), truth[500:]].mean() > 0.95), bool(sets.sum(axis=1).mean() < 2.0)
    (True, True)
    """
    P = _probabilities(P)
    y = class_codes(y, *P.shape)
    refuse("level", level, FRACTION)
    if method not in METHODS:
        raise UnknownNameError(f"there is no method {method!r}; {nearest(method, METHODS)}")
    if (method == "tree") != (parents is not None):
        raise ConfigError("parents belong to method='tree', which needs them: the parent of every class and inner node")
    ancestors = None if parents is None else _ancestors(parents, P.shape[1])
    random = np.random.default_rng(seed) if method == "aps" and seed is not None else None
    numbers = _numbers(P, method, ancestors, random)[np.arange(len(y)), y]
    return ConformalSets(method, float(level), smallest(numbers, level), len(y), ancestors, random is not None)


def smallest(numbers: Array, level: float) -> float:
    """Return the ceil((n + 1)(1 - level))-th smallest of n numbers; infinite where there are not so many."""
    n = len(numbers)
    rank = int(np.ceil((n + 1) * (1.0 - level) - 1e-9))
    return float(np.sort(numbers)[rank - 1]) if rank <= n else float("inf")


def conformal_costs(P: Any, y: Any, matrix: Any, cost: float) -> ConformalSets:
    """Return sets whose best member costs at most ``cost`` in expectation on a further row, from held-out rows.

    ``matrix`` (k, k) has what class a, taken for y, costs, at least 0; of zero-one costs ``cost`` is the level of `conformal_sets`. P and
    y are held-out rows as there; the expectation is over held-out rows and the further one, as there.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli import conformal_costs
    >>> P = np.random.default_rng(0).dirichlet(np.ones(3), size=200)
    >>> y = np.array([np.random.default_rng(i).choice(3, p=p) for i, p in enumerate(P)])
    >>> sets = conformal_costs(P, y, [[0, 1, 2], [1, 0, 1], [2, 1, 0]], cost=0.2)
    >>> sets.predict([[0.8, 0.15, 0.05]]).shape
    (1, 3)
    """
    P = _probabilities(P)
    y = class_codes(y, *P.shape)
    L, k = finite_table(matrix, "the cost matrix"), P.shape[1]
    if L.shape != (k, k) or L.min() < 0.0:
        raise ConfigError(f"the cost matrix must have {k} rows and columns of numbers of at least 0, got shape {L.shape}")
    refuse("cost", cost, POSITIVE)
    n, numbers = len(y), 1.0 - P
    # the set of a row grows with the level: by its order of classes, and the best cost in it so far
    order = np.argsort(numbers, axis=1, kind="stable")
    reached = np.take_along_axis(numbers, order, axis=1)
    best = np.minimum.accumulate(L[order, y[:, None]], axis=1)
    largest = float(L.max())
    falls = np.c_[np.full(n, largest), best]
    # the sum of the rows' costs at a level: the largest cost of each before its first class, less its falls up to there
    levels, drops = reached.ravel(), (falls[:, :-1] - falls[:, 1:]).ravel()
    by_level = np.argsort(levels, kind="stable")
    total = n * largest - np.cumsum(drops[by_level])
    ends = np.flatnonzero(np.r_[np.diff(levels[by_level]) > 0.0, True])
    good = ends[(total[ends] + largest) / (n + 1) <= cost * (1.0 + 1e-12)]
    threshold = float(levels[by_level][good[0]]) if len(good) else float("inf")
    return ConformalSets("lac", float(cost), threshold, n)


# ---- how badly a class fits -----------------------------------------------------------------------------------------------
def _numbers(P: Array, method: str, ancestors: Any, random: np.random.Generator | None) -> Array:
    """Return s(x, y) of every class (n, k)."""
    if method == "lac":
        return 1.0 - P
    if method == "tree":
        below = ancestors[P.argmax(axis=1)]  # (n, depth + 1, k)
        mass = np.einsum("nak,nk->na", below, P)
        return np.where(below, mass[:, :, None], np.inf).min(axis=1)
    if method == "aps":
        order = np.argsort(-P, axis=1, kind="stable")
        ordered = np.take_along_axis(P, order, axis=1)
        share = 1.0 if random is None else random.uniform(size=(len(P), 1))
        found = np.empty(P.shape)
        np.put_along_axis(found, order, np.cumsum(ordered, axis=1) - (1.0 - share) * ordered, axis=1)
        return found
    n, k = P.shape
    low = high = np.argmax(np.cumsum(P, axis=1) >= 0.5 - 1e-12, axis=1)
    rows, found = np.arange(n), np.empty(P.shape)
    mass = P[rows, low]
    found[rows, low] = mass
    beside = np.c_[np.full(n, -1.0), P, np.full(n, -1.0)]  # classes from 1 on; beyond the ends nothing is taken
    for _ in range(k - 1):
        down = beside[rows, low] >= beside[rows, high + 2]
        taken = np.where(down, low - 1, high + 1)
        low, high = np.where(down, taken, low), np.where(down, high, taken)
        mass = mass + P[rows, taken]
        found[rows, taken] = mass
    return found


def _ancestors(parents: Mapping[Any, Any], k: int) -> NDArray[np.bool_]:
    """Return which classes lie below each ancestor of each class, (k, depth + 1, k), from the class itself up to the root."""
    paths: list[list[Any]] = []
    for code in range(k):
        path = [code]
        while path[-1] in parents:
            path.append(parents[path[-1]])
            if len(path) > len(parents) + 1:
                raise ConfigError(f"parents have a cycle above class {code}")
        paths.append(path)
    if len({path[-1] for path in paths}) > 1 or min(map(len, paths)) < 2:
        raise ConfigError(f"parents must lead every class 0 to {k - 1} up to one root")
    depth = max(map(len, paths))
    below: dict[Any, Sequence[bool]] = {node: [node in other for other in paths] for path in paths for node in path}
    return np.array([[below[node] for node in path + [path[-1]] * (depth - len(path))] for path in paths])


# ---- checks -----------------------------------------------------------------------------------------------------------
def _probabilities(P: Any) -> Array:
    """Return probabilities (n, k) as float64; `DataError` for others."""
    found = finite_table(P, "probabilities")
    if found.shape[1] < 2 or found.min() < 0.0:
        raise DataError(f"probabilities must be numbers of at least 0 with shape (n, k), k at least 2, got shape {found.shape}")
    off = np.abs(found.sum(axis=1) - 1.0)
    if off.max() > _SUM:
        raise DataError(f"the probabilities of row {int(off.argmax())} sum to {found[off.argmax()].sum():.6g}, not to 1")
    return found
