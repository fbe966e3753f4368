"""The table of hyper-parameters, which grids, the search, rows and reports read; feature maps and learners add to it by `register`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import plugins
from .errors import ConfigError, UnknownNameError, nearest

STRENGTH = "regularisation"  # the axis of the search that C and lambda = 1/(n C) are two views of
SCALES = ("C", "lambda")  # the two views; a configuration fixes one of them and the protocol's grid holds values of one of them


@dataclass(frozen=True)
class Hyper:
    """A hyper-parameter: a positive number that a search chooses or a configuration fixes, by its name in ``hyper``, grids and rows.

    Examples
    --------
    >>> from advcli.core.hyper import Hyper
    >>> Hyper("bend", "power of the columns").meaning
    'power of the columns'
    """

    name: str
    meaning: str
    strong: str = "small"  # or large: the end of its range that regularises more; that value is tried first and wins ties
    choice: bool = False  # whether its values are separate models: an end of their list then is not an edge to be widened


_TABLE: dict[str, Hyper] = {}


def register(hyper: Hyper) -> Hyper:
    """Add a hyper-parameter to the table. Adding it again does nothing; `ConfigError` for another under its name.

    Examples
    --------
    >>> from advcli.core.hyper import Hyper, hyper, register
    >>> register(Hyper("bend", "power of the columns"))
    Hyper(name='bend', meaning='power of the columns', strong='small', choice=False)
    >>> hyper("bend").name
    'bend'
    """
    if hyper.strong not in ("small", "large"):
        raise ConfigError(f"the hyper-parameter {hyper.name} regularises at strong=small or strong=large, not {hyper.strong!r}")
    if _TABLE.setdefault(hyper.name, hyper) != hyper or hyper.name == STRENGTH:
        raise ConfigError(f"there is a hyper-parameter {hyper.name} already: {_TABLE[hyper.name].meaning}")
    return hyper


register(Hyper("C", "weight of the summed loss against 1/2 |theta|^2"))
register(Hyper("lambda", "ridge coefficient, 1/(n C) with n the rows of the fit", strong="large"))
register(Hyper("gamma", "width of the Gaussian kernel exp(-gamma |x - x'|^2), scale of the polynomial one"))
register(Hyper("tolerance", "half-width of the box of moments, in standard errors", strong="large"))
register(Hyper("rho", "how a hierarchy weighs its nodes", choice=True))
register(Hyper("margin_power", "power of the margins between labels of a hierarchy", choice=True))


OURS = (STRENGTH, *_TABLE)  # the names that the package's YAML files declare


def known() -> dict[str, Hyper]:
    """Return all hyper-parameters by name, also of users' feature maps and learners."""
    for group in ("features", "loss"):
        plugins.load(group)
    return dict(_TABLE)


def hyper(name: str) -> Hyper:
    """Return the hyper-parameter of that name; `ConfigError` names the nearest if there is none."""
    if name not in _TABLE:
        known()
    if name not in _TABLE:
        raise UnknownNameError(f"no hyper-parameter {name!r} in the table of advcli.core.hyper: {nearest(name, _TABLE)}")
    return _TABLE[name]


def refuse_two_scales(fixed: Iterable[str]) -> None:
    """Raise `ConfigError` where both views of the regularisation are fixed."""
    if {*SCALES} <= {*fixed}:
        raise ConfigError("hyper.C and hyper.lambda are two scales of one regularisation (lambda = 1/(n C)); fix only one")


def axes() -> tuple[str, ...]:
    """Return the names that a grid of the search can have: the regularisation in one of its views, and every other hyper-parameter."""
    return (STRENGTH, *(name for name in known() if name not in SCALES))
