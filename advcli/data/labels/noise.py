"""Label noise: labels corrupted class by class through a confusion matrix, the same for every row of a class.

C[p, q] = P(label p is seen | the true class is q), columns are distributions (Louche & Ralaivola 2015, eq. 4). A new kind of noise is one
function here, a line of ``_KINDS`` and one YAML file in ``conf/noise``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.checks import at_least, between, choice, is_number, or_null, refuse, rule
from ...core.errors import ConfigError, UnknownNameError, nearest
from ...core.paths import expanded
from ...core.typing import Array, Labels
from ..source import check_options
from .confusion import check_confusion, conditioning, read_confusion

_MOST_DRAWS = 10_000  # of a random matrix that must be well conditioned


@dataclass(frozen=True)
class Confusion:
    """The matrix that corrupts labels, and the matrix that methods receive, each (k, k) with columns that are distributions."""

    true: Array
    assumed: Array


PATHS = frozenset({"path"})
"""The options of noise that are paths of files."""


def check_noise(options: Mapping[str, Any]) -> None:
    """Refuse a kind of noise that does not exist and options that it does not have."""
    name = str(options.get("name"))
    refuse("noise.name", name, choice(*_KINDS, "none"))
    keys = _KINDS[name][1] if name != "none" else ()
    for key in options:
        if key not in (*keys, "name"):
            raise UnknownNameError(f"noise.{key} is not an option of noise={name}; {nearest(key, keys) if keys else 'it has none'}")
    for key in keys:
        if key not in options:
            raise ConfigError(f"noise={name} needs noise.{key}")


def make_confusion(options: Mapping[str, Any], n_classes: int, seed: int) -> Confusion:
    """Return the confusion matrix of the group ``noise`` (``name`` and the options of that kind); ``seed`` is for matrices at random."""
    check_noise(options)
    return _KINDS[options["name"]][0](options, n_classes, seed)


def corrupt(y: Labels, C: Array, seed: int) -> Labels:
    """Return labels drawn from the columns of C (k, k) for the true codes y (n,).

    One uniform number per row decides, whatever C: along a family of matrices the draws are the same.
    """
    draws = np.random.default_rng(seed).random(len(y))
    reached = np.cumsum(C, axis=0)[:, y]
    return np.minimum((draws >= reached).sum(axis=0), len(C) - 1).astype(np.intp)


def _rate(options: Mapping[str, Any]) -> float:
    check_options(options, {"rate": between(0, 1)}, "noise")
    return float(options["rate"])


def _uniform(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """A share ``rate`` of every class moves to the other classes alike."""
    rate = _rate(options)
    C = np.full((k, k), rate / (k - 1))
    np.fill_diagonal(C, 1.0 - rate)
    return Confusion(C, C)


def _pairwise(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """A share ``rate`` of every class moves to the next class, of the last to the first."""
    rate = _rate(options)
    C = (1.0 - rate) * np.eye(k) + rate * np.roll(np.eye(k), 1, axis=0)
    return Confusion(C, C)


def _csv(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """A file without heading: row = label seen, column = true class, classes in the data set's order."""
    if options["path"] is None:
        raise ConfigError("noise=csv needs noise.path, a CSV file with the confusion matrix")
    path = expanded(str(options["path"]))
    C, _ = check_confusion(read_confusion(path), k, where=f"noise.path={path}")
    C = C / C.sum(axis=0)
    return Confusion(C, C)


def _louche2015(options: Mapping[str, Any], k: int, seed: int) -> Confusion:
    """C_i = Omega(I + i N), N = (M - I)/10, M a random matrix with rows of sum 1; Omega clips at 0 and makes rows sum to 1 (section 4.1).

    Row q of C_i is the law of the labels of class q; the matrix here is the transpose. M is drawn anew until its condition number is at
    most ``max_condition``. Methods receive C of step ``told_step``.
    """
    steps = {"step": options["step"], "told_step": options["step"] if options["told_step"] is None else options["told_step"]}
    most = options["max_condition"]
    step, above_1 = at_least(0, 20), or_null(rule("a number above 1", lambda value: is_number(value) and value > 1))
    check_options({**steps, "max_condition": most}, {"step": step, "told_step": step, "max_condition": above_1}, "noise")
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


_KINDS: dict[str, tuple[Callable[[Mapping[str, Any], int, int], Confusion], tuple[str, ...]]] = {
    "uniform": (_uniform, ("rate",)),
    "pairwise": (_pairwise, ("rate",)),
    "csv": (_csv, ("path",)),
    "louche2015": (_louche2015, ("step", "told_step", "max_condition")),
}
