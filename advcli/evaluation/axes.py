"""The axes of a search: hyper-parameters that are searched and those that are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import metrics
from ..config.protocol import Protocol
from ..core.errors import ConfigError
from ..core.hyper import SCALES, STRENGTH
from ..learners import Method

PROBABILITIES = "probabilities"
"""The fact of metrics that depends on the rows: a learner's `Learner.probabilities`."""


@dataclass(frozen=True)
class Axes:
    """What is searched and what is fixed.

    ``strength`` is C or lambda if the regularisation is searched, ``others`` are further hyper-parameters. ``own`` are those of the method
    alone, with the values that are tried (`Learner.candidates`): the protocol has no part in them. ``reach`` is how far these lists may
    grow.
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

    def hyper(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return hyper-parameters, the fixed ones among them, from the values of axes."""
        return dict(self.fixed) | {(self.strength or name) if name == STRENGTH else name: value for name, value in values.items()}


def find_axes(protocol: Protocol, method: Method, search: bool = True) -> Axes:
    """Separate the searched from the fixed hyper-parameters of a method; without ``search`` the fixed ones are all.

    Raises
    ------
    ConfigError
        As `Method.fixed`, for a searched hyper-parameter without a grid, and for a metric that does not exist or that needs probabilities
        of a method without.
    """
    for name in protocol.scores:
        if PROBABILITIES in metrics.check_metric(name).needs and not method.has_probabilities:
            raise ConfigError(f"the metric {name} needs {metrics.FACTS[PROBABILITIES]}; loss={method.loss['name']} has none")
    fixed = method.fixed()
    if not search:
        return Axes(None, (), fixed)
    searched = [name for name in method.searched if name not in fixed and not (name == STRENGTH and fixed.keys() & {*SCALES})]
    for name in searched:
        if name not in protocol.stage1:
            view = protocol.regularisation if name == STRENGTH else name
            raise ConfigError(f"the search over {name} has no grid; set protocol.stage1.{name} or fix hyper.{view}")
    return Axes(
        strength=protocol.regularisation if STRENGTH in searched else None,
        others=tuple(name for name in searched if name != STRENGTH),
        fixed=fixed,
        own=method.candidates,
        reach=method.reach if protocol.extend else {},
    )
