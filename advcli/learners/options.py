"""What a configuration says to a learner: options, grids, and numbers that are checked."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from ..core.checks import POSITIVE
from ..core.errors import ConfigError, IncompatibleError, UnknownNameError, nearest
from ..core.typing import Array, Options
from ..features import feature_class

Kind = TypeVar("Kind", bound=type[Any])

_PARAMETERS = "Parameters\n----------\n"
_ENTRY = re.compile(r"^\S.*(?:\n +.*)*", re.MULTILINE)
_SECTION = re.compile(r"^\w[\w ]*\n---+$", re.MULTILINE)

NOT_OPTIONS = ("name", "description", "learner", "grid", "extend", "calibrate")
"""Keys of the group ``loss`` that say how it is used."""

OF_THE_FIT = (*NOT_OPTIONS, "rule")
"""Keys of the group ``loss`` that are no options of a loss."""


def own_options(group: Options, skip: tuple[str, ...] = NOT_OPTIONS) -> dict[str, Any]:
    """Return the options of a configuration group without the name and the other keys that say how the group is used."""
    return {key: value for key, value in group.items() if key not in skip}


def read_grid(loss: Options) -> dict[str, tuple[Any, ...]]:
    """Return the values of ``loss.grid`` by option, lists in them as tuples; a null means that the option is not searched."""
    grid = loss.get("grid") or {}
    if not isinstance(grid, Mapping):
        raise ConfigError(f"loss.grid={grid} is no group of lists; give loss.grid={{OPTION:[VALUE,...]}}")
    values_by_option = {
        str(name): _as_tuples(values if isinstance(values, list | tuple) else [values])
        for name, values in grid.items()
        if values is not None
    }
    for name, values in values_by_option.items():
        if not values:
            raise ConfigError(f"loss.grid.{name}=[] is empty; give at least one value, or null for no search")
    return values_by_option


def candidates(loss: Options, group: str) -> dict[str, tuple[Any, ...]]:
    """Return the values of ``loss.grid``, but for options that are set, by the keys of the configuration that fix them.

    ``group`` is the group of these options, ``loss`` or ``loss.options``; empty for a learner that searches no options.
    """
    options = loss.get("options") or {} if group == "loss.options" else loss
    return {f"{group}.{name}": values for name, values in read_grid(loss).items() if options.get(name) is None} if group else {}


def reach(loss: Options, group: str) -> dict[str, tuple[float, float]]:
    """Return the limits of ``loss.extend`` by the keys of `candidates`: how far a list grows while an end of it wins.

    A list with anything but different numbers above 0, or of one value, has no ends and does not grow.
    """
    if not group:
        return {}
    extend, grid, searched = loss.get("extend") or {}, read_grid(loss), candidates(loss, group)
    if not isinstance(extend, Mapping):
        raise ConfigError(f"loss.extend={extend} is no group of limits; give loss.extend={{OPTION:[SMALLEST,LARGEST]}}")
    limits_by_option: dict[str, tuple[float, float]] = {}
    for name, limits in extend.items():
        if limits is None or name not in grid:
            continue
        if not (isinstance(limits, list | tuple) and len(limits) == 2 and all(map(POSITIVE["valid"], limits)) and limits[0] <= limits[1]):
            raise ConfigError(f"loss.extend.{name}={limits} is not valid; give [SMALLEST,LARGEST], numbers above 0, or null")
        if all(map(POSITIVE["valid"], grid[name])) and len(set(grid[name])) > 1:
            limits_by_option[f"{group}.{name}"] = (limits[0], limits[1])
    return {key: limits for key, limits in limits_by_option.items() if key in searched}


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


def _names_in(entry: str) -> list[str]:
    """Return the parameters that an entry of a docstring describes."""
    return entry.partition("\n")[0].partition(" : ")[0].split(", ")


def describes(base: type[Any]) -> Callable[[Kind], Kind]:
    """Return a class decorator. It appends the parameters in the docstring of a base to the parameters of the class.

    An entry of the base is left out where the class has an entry of that name.
    """

    def described(cls: Kind) -> Kind:
        doc, shared = inspect.getdoc(cls) or "", (inspect.getdoc(base) or "").partition(_PARAMETERS)[2].partition("\n\n")[0]
        first = _SECTION.search(doc)
        head, rest = (doc, "") if first is None else (doc[: first.start()], doc[first.start() :])
        own, _, after = rest.removeprefix(_PARAMETERS).partition("\n\n") if rest.startswith(_PARAMETERS) else ("", "", rest)
        named = {name for entry in _ENTRY.findall(own) for name in _names_in(entry)}
        inherited = [entry for entry in _ENTRY.findall(shared) if named.isdisjoint(_names_in(entry))]
        section = _PARAMETERS + "\n".join(filter(None, (own, *inherited)))
        cls.__doc__ = "\n\n".join(filter(None, (head.rstrip(), section, after)))
        return cls

    return described


def limits_of(solver: Options) -> dict[str, Any]:
    """Return the limits of a fit that the group ``solver`` sets."""
    return {key: solver[key] for key in ("max_passes", "max_seconds") if solver.get(key) is not None}


def check_options(loss: Options, names: Iterable[str]) -> None:
    """Refuse the first option of the group ``loss`` that is none of these."""
    for key in (*own_options(loss), *read_grid(loss)):
        if key not in names:
            raise UnknownNameError(f"loss={loss['name']} has no option {key!r}; {nearest(key, names)}")


def refuse_solver(loss: Options, solver: Options) -> None:
    """Refuse a solver that was asked for by name, of a learner that is itself an algorithm."""
    if solver["name"] != "auto":
        raise IncompatibleError(
            f"solver={solver['name']}", "a surrogate loss", f"loss={loss['name']} is an algorithm of its own: choose solver=auto"
        )


def one_column(features: str) -> bool:
    """Return whether a map has one column of parameters for every score: linear ones, and kernels without thresholds."""
    mapped = feature_class(features)
    return mapped.multiclass_linear or not (mapped.euclidean or mapped.needs_order)


def refuse_box(name: str, features: Options) -> None:
    """Refuse features whose moments are held in a box, of a learner without moments."""
    if features.get("moments", "ball") != "ball":
        raise IncompatibleError(f"features.moments={features['moments']}", "a surrogate loss", f"loss={name} has no moments to hold")


def mass_of(n: int, weights: Array | None) -> float:
    """Return the sum of example weights (n,), or n without any; `ConfigError` if it is 0."""
    with np.errstate(over="ignore"):
        mass = float(n) if weights is None else float(weights.sum())
    if not mass > 0:
        raise ConfigError("sample_weight is zero for every row")
    return mass


def one_of(what: str, value: Any, known: Iterable[str]) -> str:
    """Return an option's value; `ConfigError` if it is none of the known."""
    if value not in known:
        raise UnknownNameError(f"{what}={value} is unknown; {nearest(str(value), known)}")
    return str(value)


def seed_of(random_state: Any) -> int:
    """Return a seed from what scikit-learn takes as random_state."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None:
        return 0
    raise ConfigError(f"random_state must be a whole number, got {random_state!r}")
