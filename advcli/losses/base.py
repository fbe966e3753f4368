"""The waist of the house: every convex surrogate is a support function behind one oracle.

For one example with scores ``f`` in R^k and label ``y`` each surrogate of this project is

    S(f, y) = max over (r, c) in R(y) of  r.f + c                                             (1)

so the maximising pair yields the value, a subgradient in ``f`` (it is ``r``), a cutting plane and the vertex towards
which a dual solver moves. Adversarial losses have r = q - e_y and c = G(q) = min over rows of (Lq)_row
(Fathony et al. 2018, eq. 10). A loss knows scores and labels, never features and never parameters.

All sets here satisfy sum_j r_j = 0, that is S(f + t, y) = S(f, y) for every constant t.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..compiled import kernels
from ..errors import ConfigError, nearest

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Answer:
    """The oracle's answer for n examples: ``value[i] = R[i] . F[i] + offset[i]``."""

    value: Array  # (n,) surrogate S(f_i, y_i)
    R: Array  # (n, k) maximising r_i, a subgradient of S(., y_i) at f_i
    offset: Array  # (n,) its c_i


class Loss(ABC):
    """A convex surrogate loss for k classes.

    Parameters
    ----------
    n_classes : int
        Number k >= 1 of true classes.

    Attributes
    ----------
    kernel : str
        Name of the compiled family that evaluates this loss (`advcli.compiled`).
    parameters : ndarray
        The numbers that the compiled family needs (a loss matrix, alpha, ...); empty for most.
    """

    name: ClassVar[str]
    kernel: ClassVar[str]
    needs_order: ClassVar[bool] = False  # labels must have a meaningful order
    metric: ClassVar[str] = "error"  # what selection minimises by default
    simplex: ClassVar[bool] = False  # whether r + e_y runs over all distributions

    def __init__(self, n_classes: int) -> None:
        if n_classes < 1:
            raise ConfigError(f"loss={self.name} needs at least one class, got {n_classes}")
        self.n_classes = int(n_classes)

    @property
    def parameters(self) -> Array:
        """The compiled family's parameters, shape (any,)."""
        return np.empty(0)

    @property
    def family(self) -> tuple[str, int, Array]:
        """What the compiled kernels take: (kernel name, k, parameters)."""
        return self.kernel, self.n_classes, self.parameters

    # ---- compiled faces -------------------------------------------------------------------------------------------
    def value(self, F: Array, y: Labels) -> Array:
        """Return S(f_i, y_i), shape (n,), for scores ``F`` (n, k) and 0-based labels ``y`` (n,)."""
        return kernels.value(self.family, *_rows(F, y))

    def oracle(self, F: Array, y: Labels) -> Answer:
        """Return the maximising (r_i, c_i) of (1) and the value for every row."""
        return Answer(*kernels.oracle(self.family, *_rows(F, y)))

    def offset(self, R: Array, y: Labels) -> Array:
        """Return, shape (n,), the largest c for which (r_i, c) lies in the convex hull of R(y_i)."""
        return kernels.offset(self.family, *_rows(R, y))

    def block(self, F: Array, R: Array, y: Labels, curvature: Array) -> Array:
        """Return the exact block step: argmax over r of c(r) + f.r - curvature/2 |r - R_i|^2, shape (n, k)."""
        return kernels.block(self.family, *_rows(F, y), np.ascontiguousarray(R, dtype=np.float64), np.asarray(curvature))

    # ---- the readable reference that tests hold the compiled faces to ---------------------------------------------
    @abstractmethod
    def oracle_reference(self, F: Array, y: Labels) -> Answer:
        """Answer like `oracle`, in plain NumPy."""

    @abstractmethod
    def offset_reference(self, R: Array, y: Labels) -> Array:
        """Answer like `offset`, in plain NumPy."""

    # ---- prediction -----------------------------------------------------------------------------------------------
    def predict(self, F: Array) -> Labels:
        """Return the predicted label of each row: argmax of the potentials, ties to the lowest index."""
        return np.argmax(F, axis=1)


class AdversarialLoss(Loss):
    """A surrogate from the adversarial game over a loss matrix L of shape (l, k), row = prediction, column = truth."""

    matrix: Array
    simplex = True

    @abstractmethod
    def adversary(self, F: Array) -> Array:
        """Return the adversary's distributions q, shape (n, k), maximising min_row (Lq)_row + f.q."""

    @abstractmethod
    def predictor(self, F: Array) -> Array:
        """Return the predictor's distributions p, shape (n, l), minimising max_j (p'L)_j + f_j (eq. 131)."""

    @property
    def n_predictions(self) -> int:
        """Number l of possible predictions (rows of the loss matrix)."""
        return int(self.matrix.shape[0])

    def oracle_reference(self, F: Array, y: Labels) -> Answer:  # noqa: D102
        Q = self.adversary(F)
        G = (Q @ self.matrix.T).min(axis=1)
        R = Q.copy()
        R[np.arange(len(y)), y] -= 1.0
        return Answer(G + np.einsum("ij,ij->i", F, Q) - F[np.arange(len(y)), y], R, G)

    def offset_reference(self, R: Array, y: Labels) -> Array:  # noqa: D102
        Q = R.copy()
        Q[np.arange(len(y)), y] += 1.0
        return (Q @ self.matrix.T).min(axis=1)


def _rows(A: Array, y: Labels) -> tuple[Array, Labels]:
    A = np.ascontiguousarray(A, dtype=np.float64)
    return A, np.ascontiguousarray(y, dtype=np.intp)


# ---- registry: a loss registers itself in its own file --------------------------------------------------------------
LossType = TypeVar("LossType", bound=type[Loss])
_REGISTRY: dict[str, type[Loss]] = {}


def register(*names: str) -> Callable[[LossType], LossType]:
    """Class decorator: make a loss available under its name and aliases."""

    def add(cls: LossType) -> LossType:
        cls.name = names[0]
        for name in names:
            _REGISTRY[name] = cls
        return cls

    return add


def loss_names() -> list[str]:
    """Return every registered name, aliases included, sorted."""
    return sorted(_REGISTRY)


def loss_class(name: str) -> type[Loss]:
    """Return the class registered under ``name``; `ConfigError` names the nearest if there is none."""
    if name not in _REGISTRY:
        raise ConfigError(f"unknown loss {name!r}: {nearest(name, _REGISTRY)}")
    return _REGISTRY[name]


def make_loss(name: str, n_classes: int, **options: Any) -> Loss:
    """Build the loss registered under ``name`` for ``n_classes`` classes; `ConfigError` for an unknown option."""
    cls = loss_class(name)
    try:
        return cls(n_classes, **options)
    except TypeError as error:
        raise ConfigError(f"loss={name}: {error}") from error
