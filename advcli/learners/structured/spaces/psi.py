"""Surrogates of structured labels, S = max over y of psi(h(y), g(y)): each psi with its value, its slopes and what is known of it.

With h the margin f(y) - f(y_i) and g the task loss L(y, y_i) (Choi 2018, chapter 3, table 3.2). All functions take arrays. Every psi rises
in h, so a label that is best at its value of g is enough, and psi(0, 0) = 0: the true label makes S at least 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ....core.compiled import kernels
from ....core.errors import ConfigError, UnknownNameError, nearest
from ....core.typing import Array


class Psi(ABC):
    """A surrogate of margin and loss."""

    name: ClassVar[str]
    convex: bool = True  # in h, and so S in the parameters
    affine: bool = True  # in h: finitely many planes then make S
    quasi_linear: bool = False  # whether its level sets are half planes: the best vertex of the convex hull is then the maximum
    bounds: bool = True  # whether S bounds the task loss of argmax f
    axes: ClassVar[str] = "margin"  # what h and g are: or "f1", h = Hamming + margin and g = -(|y| + |y_i|)

    @abstractmethod
    def value(self, h: Any, g: Any) -> Array:
        """Return psi(h, g)."""

    @abstractmethod
    def slopes(self, h: Any, g: Any) -> tuple[Array, Array]:
        """Return d psi / d h and d psi / d g."""

    def tangents(self, h: Array, g: Array, wrong: Any) -> tuple[Array, Array, Array]:
        """Return psi at points (h, g), at least 0, and the plane that touches it there: its slope in the margin, and its constant.

        ``wrong`` are the task losses, by which the axes of ``f1`` differ from margins.
        """
        value, slope = self.value(h, g), self.slopes(h, g)[0]
        margin = h - wrong if self.axes == "f1" else h
        return np.maximum(value, 0.0), slope, np.asarray(value - slope * margin, dtype=np.float64)

    def at_slope(self, slope: Array, g: Array) -> Array:
        """Return h where d psi / d h is a slope above 0, at g above 0; 0 where psi is affine and every h will do."""
        return np.zeros(np.broadcast_shapes(np.shape(slope), np.shape(g)))


@dataclass(frozen=True)
class Margin(Psi):
    """Margin rescaling, h + g (Tsochantaridis et al. 2005)."""

    name: ClassVar[str] = "margin"
    quasi_linear = True

    def value(self, h: Any, g: Any) -> Array:
        """Return h + g."""
        return np.asarray(h + g, dtype=np.float64)

    def slopes(self, h: Any, g: Any) -> tuple[Array, Array]:
        """Return ones."""
        return np.ones(np.shape(h)), np.ones(np.shape(h))


@dataclass(frozen=True)
class Scaling(Psi):
    """Generalised scaling h g^beta + g^alpha with g^0 = 1 (Choi 2018, eq. 3.12): beta >= 0 and 0 <= alpha - beta <= 1.

    beta = 0 is margin rescaling and beta = 1 slack rescaling, both with alpha = 1.
    """

    beta: float = 0.5
    alpha: float = 1.0
    name: ClassVar[str] = "scaling"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.beta) and self.beta >= 0.0 and 0.0 <= self.alpha - self.beta <= 1.0):
            raise ConfigError(f"loss.beta={self.beta} and alpha={self.alpha} must have beta >= 0 and beta <= alpha <= beta + 1")

    @property
    def bounds(self) -> bool:  # type: ignore[override]
        """Whether S bounds the loss: at alpha = 1."""
        return self.alpha == 1.0

    def value(self, h: Any, g: Any) -> Array:
        """Return h g^beta + g^alpha."""
        return np.asarray(h * np.power(g, self.beta) + np.power(g, self.alpha), dtype=np.float64)

    def slopes(self, h: Any, g: Any) -> tuple[Array, Array]:
        """Return g^beta and beta h g^(beta - 1) + alpha g^(alpha - 1)."""
        h, g = np.asarray(h, dtype=np.float64), np.asarray(g, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = 0.0 if self.beta == 0.0 else np.where(h == 0.0, 0.0, self.beta * h * np.power(g, self.beta - 1.0))
            second = 0.0 if self.alpha == 0.0 else self.alpha * np.power(g, self.alpha - 1.0)
        return np.power(g, self.beta), np.asarray(first + second, dtype=np.float64)


@dataclass(frozen=True)
class Slack(Scaling):
    """Slack rescaling, (h + 1) g (Tsochantaridis et al. 2005)."""

    beta: float = 1.0
    name: ClassVar[str] = "slack"


@dataclass(frozen=True)
class Log(Psi):
    """g log(1 + e^h), below the loss by the factor log 2 at h = 0."""

    name: ClassVar[str] = "log"
    affine = False
    bounds = False

    def value(self, h: Any, g: Any) -> Array:
        """Return g log(1 + e^h)."""
        return np.asarray(g * np.logaddexp(0.0, h), dtype=np.float64)

    def slopes(self, h: Any, g: Any) -> tuple[Array, Array]:
        """Return g / (1 + e^-h) and log(1 + e^h)."""
        soft = np.logaddexp(0.0, h)
        return np.asarray(g * np.exp(h - soft), dtype=np.float64), np.asarray(soft, dtype=np.float64)

    def at_slope(self, slope: Array, g: Array) -> Array:
        """Return log p - log(1 - p), p = slope / g in (0, 1)."""
        share = np.clip(slope / g, np.finfo(np.float64).tiny, 1.0 - 2.0**-53)
        return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float64)


@dataclass(frozen=True)
class RawProb(Psi):
    """2 g N(h sqrt(pi / (2 g))) with N the normal distribution function (Choi 2018, section 3.5): convex for h <= 0 alone."""

    name: ClassVar[str] = "prob_raw"
    convex = False
    affine = False

    def value(self, h: Any, g: Any) -> Array:
        """Return 2 g N(z), z = h sqrt(pi / (2 g)); 0 at g = 0."""
        g = np.asarray(g, dtype=np.float64)
        return np.where(g > 0.0, 2.0 * g * _normal(self._z(h, g)), 0.0)

    def slopes(self, h: Any, g: Any) -> tuple[Array, Array]:
        """Return sqrt(g) e^(-z^2 / 2) and 2 N(z) - z N'(z)."""
        g = np.asarray(g, dtype=np.float64)
        z = self._z(h, g)
        bell = np.exp(-0.5 * z * z)
        return np.sqrt(g) * bell, 2.0 * _normal(z) - z * bell / np.sqrt(2.0 * np.pi)

    @staticmethod
    def _z(h: Any, g: Array) -> Array:
        return np.asarray(h * np.sqrt(np.pi / (2.0 * np.where(g > 0.0, g, 1.0))), dtype=np.float64)


@dataclass(frozen=True)
class Prob(RawProb):
    """The probability surrogate for h <= 0, continued by its tangent g + sqrt(g) h for h > 0: convex and once differentiable."""

    name: ClassVar[str] = "prob"
    convex = True

    def value(self, h: Any, g: Any) -> Array:
        """Return `RawProb.value` for h <= 0, g + sqrt(g) h above."""
        g = np.asarray(g, dtype=np.float64)
        return np.where(np.asarray(h) <= 0.0, super().value(h, g), g + np.sqrt(g) * h)

    def slopes(self, h: Any, g: Any) -> tuple[Array, Array]:
        """Return `RawProb.slopes` for h <= 0, sqrt(g) and 1 + h / (2 sqrt(g)) above."""
        g = np.asarray(g, dtype=np.float64)
        below, root, raw = np.asarray(h) <= 0.0, np.sqrt(g), super().slopes(h, g)
        with np.errstate(divide="ignore", invalid="ignore"):
            above = 1.0 + h / (2.0 * root)
        return np.where(below, raw[0], root), np.where(below, raw[1], above)

    def at_slope(self, slope: Array, g: Array) -> Array:
        """Return h <= 0 of slope = sqrt(g) e^(-z^2 / 2)."""
        share = np.clip(slope / np.sqrt(g), np.finfo(np.float64).tiny, 1.0)
        return np.asarray(-np.sqrt(-2.0 * np.log(share)) * np.sqrt(2.0 * g / np.pi), dtype=np.float64)


@dataclass(frozen=True)
class F1(Psi):
    """h / (-g) in the axes of the F-measure: (Hamming + margin) / (|y| + |y_i|), a bound of 1 - F1; 0 at empty sets."""

    name: ClassVar[str] = "f1"
    quasi_linear = True
    axes: ClassVar[str] = "f1"

    def value(self, h: Any, g: Any) -> Array:
        """Return -h / g; 0 at g = 0."""
        g = np.asarray(g, dtype=np.float64)
        return np.asarray(np.where(g < 0.0, -h / np.where(g < 0.0, g, 1.0), 0.0), dtype=np.float64)

    def slopes(self, h: Any, g: Any) -> tuple[Array, Array]:
        """Return -1 / g and h / g^2; 0 at g = 0."""
        g = np.asarray(g, dtype=np.float64)
        safe = np.where(g < 0.0, g, -1.0)
        return np.where(g < 0.0, -1.0 / safe, 0.0), np.where(g < 0.0, h / safe**2, 0.0)


def _normal(z: Array) -> Array:
    found = np.empty(z.shape)
    kernels.arithmetic.normal(np.ascontiguousarray(z).reshape(-1), found.reshape(-1))
    return found


SURROGATES: dict[str, type[Psi]] = {psi.name: psi for psi in (Margin, Slack, Scaling, Log, Prob, RawProb, F1)}


def make_psi(name: str, beta: float | None = None) -> Psi:
    """Return a surrogate by its name; ``beta`` is for ``scaling``. `ConfigError` for an unknown name or an invalid beta.

    Examples
    --------
    >>> from advcli.learners.structured.spaces.psi import make_psi
    >>> from advcli.learners.structured.spaces.searches import search_of
    >>> from advcli.learners.structured.spaces.space import PointSpace
    >>> space = PointSpace(h=[0.0, -0.999, 1.0, 0.0], g=[0.0, 4.0, 0.001, 2.0])
    >>> found = search_of("exact", space)(space, make_psi("slack"))
    >>> found.label, round(float(found.value), 3)
    (3, 2.0)
    """
    if name not in SURROGATES:
        raise UnknownNameError(f"loss.surrogate={name} is unknown; {nearest(str(name), SURROGATES)}")
    if beta is not None and name != "scaling":
        raise ConfigError(f"loss.beta={beta} is an option of loss.surrogate=scaling; {name} has none")
    return Scaling(float(beta)) if beta is not None else SURROGATES[name]()
