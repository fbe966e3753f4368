"""The axes of a search: hyper-parameters that are searched and those that are fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..config.protocol import Protocol
from ..core.checks import POSITIVE, refuse
from ..core.errors import ConfigError
from ..core.hyper import SCALES, STRENGTH
from ..learners.options import fixable


@dataclass(frozen=True)
class Axes:
    """What is searched and what is fixed.

    Parameters
    ----------
    strength : str or None
        ``"C"`` or ``"lambda"`` if the regularisation is searched.
    others : tuple of str
        Further searched hyper-parameters, such as ``gamma``.
    fixed : mapping
        Hyper-parameters given by the user.
    own : mapping
        Those that are the method's alone, and the values that are tried of each (`Learner.candidates`); the protocol has no part in them.
    reach : mapping
        How far the lists of ``own`` may grow (`Learner.reach`); none where the protocol's grids do not.
    """

    strength: str | None
    others: tuple[str, ...]
    fixed: Mapping[str, float]
    own: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    reach: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All that is searched, the regularisation by its place in the grids."""
        return (*([STRENGTH] if self.strength else []), *self.others, *self.own)


def split_hyper(names: Sequence[str], fixed: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Return the given hyper-parameters that a method has which searches ``names``, and the names of those that it has not.

    In a sweep some methods may lack what others have; ``null`` gives nothing.
    """
    given, valid = {key: value for key, value in fixed.items() if value is not None}, fixable(tuple(names))
    return {key: value for key, value in given.items() if key in valid}, [key for key in given if key not in valid]


def check_fixed(names: Sequence[str], fixed: Mapping[str, float], own: Sequence[str] = ()) -> dict[str, float]:
    """Return the fixed hyper-parameters without nulls; ``own`` are the keys that fix those which are the method's alone.

    Raises
    ------
    ConfigError
        For one that a method which searches ``names`` does not have, that is not positive, and for both C and lambda.
    """
    given, valid = {key: value for key, value in fixed.items() if value is not None}, fixable(tuple(names))
    for key, value in given.items():
        if key not in valid:
            has = f"it has {', '.join(sorted(valid))}" if valid else "it has none"
            has += f" but {', '.join(own)}" if own else ""
            raise ConfigError(f"hyper.{key} is no hyper-parameter of this method; {has}")
        refuse(f"hyper.{key}", value, POSITIVE)
    if given.keys() >= {*SCALES}:
        raise ConfigError("hyper.C and hyper.lambda are two views of one number (lambda = 1/(n C)); give one of them")
    return {key: float(value) for key, value in given.items()}


def find_axes(
    protocol: Protocol,
    names: Sequence[str],
    fixed: Mapping[str, float],
    own: Mapping[str, tuple[Any, ...]] | None = None,
    reach: Mapping[str, tuple[float, float]] | None = None,
) -> Axes:
    """Separate searched from fixed hyper-parameters.

    Parameters
    ----------
    protocol : Protocol
    names : sequence of str
        What the method has (`advcli.learners.searched`).
    fixed : mapping
        ``hyper`` of the configuration; null values are ignored.
    own : mapping, optional
        What the method has beside them (`advcli.learners.candidates`).
    reach : mapping, optional
        How far these may grow (`advcli.learners.reach`).

    Raises
    ------
    ConfigError
        As `check_fixed`, and for a searched hyper-parameter without a grid.
    """
    given = check_fixed(names, fixed, tuple(own or ()))
    searched = [name for name in names if name not in given and not (name == STRENGTH and given.keys() & {*SCALES})]
    for name in searched:
        if name not in protocol.stage1:
            view = protocol.regularisation if name == STRENGTH else name
            raise ConfigError(f"the search over {name} has no grid; set protocol.stage1.{name} or fix hyper.{view}")
    return Axes(
        strength=protocol.regularisation if STRENGTH in searched else None,
        others=tuple(name for name in searched if name != STRENGTH),
        fixed=given,
        own=dict(own or {}),
        reach=dict(reach or {}) if protocol.extend else {},
    )
