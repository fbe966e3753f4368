"""Label noise: labels corrupted class by class through a confusion matrix, the same for every row of a class.

C[p, q] = P(label p is seen | the true class is q), columns are distributions (louche2015, eq. 4). A new kind of noise is one function here
and one YAML file in ``conf/noise``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import ConfigError, nearest
from ...core.paths import expanded
from ...core.typing import Array, Labels
from .confusion import check_confusion, conditioning, read_confusion

_MOST_DRAWS = 10_000  # of a random matrix that must be well conditioned


@dataclass(frozen=True)
class Confusion:
    """The matrix that corrupts labels, and the one that methods are told, each (k, k) with columns that are distributions."""

    true: Array
    told: Array


Kind = Callable[[Mapping[str, Any], int, int], Confusion]
_KINDS: dict[str, tuple[Kind, tuple[str, ...]]] = {}
PATHS = frozenset({"path"})
"""The options of noise that are paths of files."""


def _kind(name: str, *options: str) -> Callable[[Kind], Kind]:
    def add(function: Kind) -> Kind:
        _KINDS[name] = (function, options)
        return function

    return add


def check_noise(options: Mapping[str, Any]) -> None:
    """Refuse a kind of noise that does not exist and options that it does not have."""
    name = str(options.get("name"))
    if name != "none" and name not in _KINDS:
        raise ConfigError(f"noise.name={name} does not exist; {nearest(name, [*_KINDS, 'none'])}")
    known = _KINDS[name][1] if name != "none" else ()
    for key in options:
        if key not in (*known, "name"):
            raise ConfigError(f"noise.{key} is not an option of noise={name}; {nearest(key, known) if known else 'it has none'}")
    for key in known:
        if key not in options:
            raise ConfigError(f"noise={name} needs noise.{key}")


def make_confusion(options: Mapping[str, Any], n_classes: int, seed: int) -> Confusion:
    """Return the confusion matrix of the group ``noise``.

    Parameters
    ----------
    options : mapping
        The group: ``name`` and the options of that kind.
    n_classes : int
        Number k of classes.
    seed : int
        Seed of matrices that are drawn.

    Raises
    ------
    ConfigError
        An unknown kind, an option out of its range, a file that holds no confusion matrix.
    """
    check_noise(options)
    return _KINDS[options["name"]][0](options, n_classes, seed)


def corrupt(y: Labels, C: Array, seed: int) -> Labels:
    """Return labels drawn from the columns of C (k, k) for the true codes y (n,).

    One uniform number per row decides, whatever C: along a family of matrices the draws are the same.
    """
    draws = np.random.default_rng(seed).random(len(y))
    reached = np.cumsum(C, axis=0)[:, y]
    return np.minimum((draws >= reached).sum(axis=0), len(C) - 1).astype(np.intp)


def _share(options: Mapping[str, Any], key: str) -> float:
    value = options[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ConfigError(f"noise.{key}={value} must be a number from 0 to 1")
    return float(value)


@_kind("uniform", "rate")
def _uniform(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """A share ``rate`` of every class moves to the other classes alike."""
    rate = _share(options, "rate")
    C = np.full((k, k), rate / (k - 1))
    np.fill_diagonal(C, 1.0 - rate)
    return Confusion(C, C)


@_kind("pairwise", "rate")
def _pairwise(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """A share ``rate`` of every class moves to the next class, of the last to the first."""
    rate = _share(options, "rate")
    C = (1.0 - rate) * np.eye(k) + rate * np.roll(np.eye(k), 1, axis=0)
    return Confusion(C, C)


@_kind("csv", "path")
def _csv(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """A file without heading: row = label seen, column = true class, classes in the data set's order."""
    if options["path"] is None:
        raise ConfigError("noise=csv needs noise.path, a CSV file with the confusion matrix")
    path = expanded(str(options["path"]))
    C, _ = check_confusion(read_confusion(path), k, where=f"noise.path={path}")
    C = C / C.sum(axis=0)
    return Confusion(C, C)


@_kind("louche2015", "step", "told_step", "max_condition")
def _louche2015(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """C_i = Omega(I + i N), N = (M - I)/10, M a random matrix with rows of sum 1; Omega clips at 0 and makes rows sum to 1 (section 4.1).

    Row q of C_i is the law of the labels of class q; the matrix here is the transpose. M is drawn anew until its condition number is at
    most ``max_condition``. Methods are told C of step ``told_step``.
    """
    steps = {}
    for key in ("step", "told_step"):
        value = options["step"] if key == "told_step" and options[key] is None else options[key]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 20:
            raise ConfigError(f"noise.{key}={value} must be a whole number from 0 to 20")
        steps[key] = value
    most = options["max_condition"]
    if most is not None and (isinstance(most, bool) or not isinstance(most, (int, float)) or not most > 1):
        raise ConfigError(f"noise.max_condition={most} must be a number above 1, or null")
    random = np.random.default_rng(seed)
    for _ in range(_MOST_DRAWS):
        M = random.random((k, k))
        M /= M.sum(axis=1, keepdims=True)
        if conditioning(M)[0] < (1e12 if most is None else most):
            break
    else:
        raise ConfigError(f"no random matrix of {k} classes has a condition number below noise.max_condition={most}; raise it")

    def member(i: int) -> Array:
        C = np.maximum(np.eye(k) + i * (M - np.eye(k)) / 10.0, 0.0)
        return np.ascontiguousarray((C / C.sum(axis=1, keepdims=True)).T)

    return Confusion(member(steps["step"]), member(steps["told_step"]))
