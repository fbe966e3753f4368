"""Feature maps: from parameters and rows of X to scores, and from dual variables back to a gradient.

A map is linear in its parameters: F = J theta with J built from X. Solvers see it only through the four operations below, so a new map
is one file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..core import plugins
from ..core.arrays import checked_csr, dense, is_sparse
from ..core.checks import POSITIVE
from ..core.errors import ConfigError, UnknownNameError, nearest
from ..core.hyper import STRENGTH
from ..core.linalg import inner
from ..core.registry import Registry, refuse_unknown_options
from ..core.stored_arrays import Entries
from ..core.typing import Array, Labels, Layout

MOMENTS = ("ball", "box")


class Directions(ABC):
    """Rows z_m = b_m' J_i of the Jacobian along directions b_m in the scores of example i = owner_m; what a Newton step is made of.

    B is (m, k), and ``owner`` (m,) ascends.
    """

    threads = 1  # how many may share a sum over rows; no bit depends on it

    def __init__(self, B: Array, owner: Labels) -> None:
        self.B, self.owner = B, owner

    @abstractmethod
    def columns(self, chosen: Labels) -> Array:
        """Return the columns of Z that belong to the chosen entries of the flattened parameters, shape (m, len(chosen))."""

    @abstractmethod
    def hessian(self, weight: Array, factor: float = 1.0) -> Array:
        """Return the lower triangle at least of I + factor Z' diag(weight[owner]) Z over the flattened parameters, (p, p).

        Free parameters carry a trace of ridge instead of I. ``weight`` (n,) has one for every example.
        """

    @property
    def low_rank(self) -> bool:
        """Whether `forward`, `backward` and `gram` exist and m is small enough for them to pay."""
        return False

    def forward(self, theta: Array) -> Array:
        """Return Z theta, shape (m,)."""
        raise NotImplementedError  # pragma: no cover - only called when low_rank

    def backward(self, v: Array) -> Array:
        """Return Z' v in the shape of the parameters."""
        raise NotImplementedError  # pragma: no cover - only called when low_rank

    def gram(self) -> Array:
        """Return Z Z', shape (m, m)."""
        raise NotImplementedError  # pragma: no cover - only called when low_rank


class FeatureMap(ABC):
    """A linear map from parameters to scores, bound to rows of X.

    Parameters
    ----------
    X : ndarray (n, d), C-contiguous float64, or scipy.sparse.csr_array
        The rows; `DataError` for a sparse matrix whose parts do not fit each other.
    n_classes : int
        Number k of scores per row.
    """

    name: ClassVar[str]
    hyper: ClassVar[tuple[str, ...]] = ()  # hyper-parameters of the map that selection searches, beside the regularisation
    multiclass_linear: ClassVar[bool] = False  # F = X Theta, Theta (d, k): what block solvers that store Theta need
    takes_constant: ClassVar[bool] = True  # whether a constant column means an intercept
    needs_order: ClassVar[bool] = False  # labels must have a meaningful order
    euclidean: ClassVar[bool] = True  # whether |theta|^2 is the sum of the squared parameters
    keeps_rows: ClassVar[bool] = False  # whether scores at new rows need the training rows
    checks_rows: ClassVar[bool] = False  # whether `check_rows` refuses numbers that are not finite
    pairwise: ClassVar[bool] = False  # whether X holds values between rows, a square matrix at `fit`

    def __init__(self, X: Any, n_classes: int) -> None:
        self.X = checked_csr(X) if is_sparse(X) else X
        self.n_classes = n_classes

    @property
    def n_rows(self) -> int:
        """Number n of rows."""
        return int(self.X.shape[0])

    @property
    def squares(self) -> Array:
        """Squared row norms |x_i|^2, shape (n,)."""
        if is_sparse(self.X):
            return np.asarray(self.X.multiply(self.X).sum(axis=1), dtype=np.float64).ravel()
        return np.einsum("ij,ij->i", self.X, self.X)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters."""

    @property
    def regularised(self) -> Array | None:
        """1 where a parameter carries the ridge penalty, 0 where it is free, in the shape of the parameters; None when all carry it."""
        return None

    def at(self, X: Any) -> FeatureMap:
        """Return the same map at other rows."""
        return type(self)(X, self.n_classes)

    def check_rows(self) -> None:
        """Raise for training rows that the map does not take, where their numbers tell."""
        return

    def adopt(self, other: FeatureMap | None) -> None:
        """Take over what a map over the same rows has computed already, where that saves work."""
        return

    def square_norm(self, theta: Array) -> float:
        """Return |theta|^2 over the regularised parameters."""
        mask = self.regularised
        return inner(theta, theta if mask is None else theta * mask)

    @abstractmethod
    def scores(self, theta: Array) -> Array:
        """Return F = J theta, shape (n, k)."""

    def shared_scores(self, theta: Array, threads: int, order: Layout = "C") -> Array:
        """Return `scores` by several threads, if this map can share them, the same bits, row by row or class by class in memory."""
        return np.asarray(self.scores(theta), order=order)

    def shared_adjoint(self, R: Any, threads: int) -> Array:
        """Return `adjoint` by several threads, if this map can share it; the same bits."""
        return self.adjoint(R)

    @abstractmethod
    def adjoint(self, R: Array) -> Array:
        """Return J'R = sum_i J_i' r_i in the shape of the parameters; with r a subgradient this is the loss's gradient."""

    @abstractmethod
    def directions(self, B: Array, owner: Labels) -> Directions:
        """Return the rows b_m' J_i for i = owner_m."""

    def lacks_columns(self) -> str | None:
        """Return what is missing for one function of a row for each score, all penalised, with inner products at hand; None: nothing."""
        return None if self.multiclass_linear and self.regularised is None else "multiclass linear or kernel features"

    def feasible(self, R: Array, y: Labels, sample_weight: Array | None) -> Array:
        """Return a dual point near R that meets the constraints of the free parameters; R itself when there are none."""
        return R

    def broken(self, gradient: Array) -> float:
        """Return by how much 1/n J'(s r), given as ``gradient``, misses 0 at the free parameters, in mass per row; 0 when there are none.

        A free parameter moves scores by |J| a unit of itself: a map whose free parameters have entries of J other than 0 and 1 divides by
        the largest of each, so that the answer does not depend on their units.
        """
        mask = self.regularised
        return 0.0 if mask is None else float(np.abs(gradient[mask == 0]).max(initial=0.0))

    def support(self, theta: Array) -> tuple[Any, Array]:
        """Return the kept rows that scores at new rows need, and the parameters over these rows; a saved model holds both."""
        raise NotImplementedError(f"features={self.name} keep rows and do not say which")

    def fitted(self) -> dict[str, Array]:
        """Return the arrays by name that a map computed from its rows and needs at new ones, beside `support`; a saved model holds them."""
        return {}

    @classmethod
    def restored(cls, rows: Any, n_classes: int, arrays: Entries, **options: Any) -> FeatureMap:
        """Return the map of a saved model from the rows of `support`, the arrays of `fitted` and the options, `settled` among them.

        A map takes its arrays by the shape and the range that they must have (`advcli.core.stored_arrays.Entries.array`).
        """
        return make_features(cls.name, rows, n_classes, **options)

    @property
    def settled(self) -> dict[str, Any]:
        """Options that the training rows settled, such as a width by the median distance; a saved model holds these options."""
        return {}

    @classmethod
    def searched(cls, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the hyper-parameters of a method on this map with these options, the regularisation among them."""
        return (STRENGTH, *cls.hyper)

    def score_rounding(self, theta: Array) -> float:
        """Return how far rounding may move a score at parameters theta; 0 where no bound is known."""
        return 0.0

    def tolerance(self, y: Labels, sample_weight: Array | None) -> Array | None:
        """Return how far the adversary's moments may lie from the sample's, in the shape of the parameters; None: as the ridge says."""
        return None


class ExplicitMap(FeatureMap):
    """A map whose moments can be listed: the adversary may have to match them in a ball or in a box.

    ``ball``: |moments - sample's| <= lambda |theta| together, the ridge penalty. ``box``: each moment within ``tolerance`` of its standard
    errors, an L1 penalty without a ridge (Mazuelas, Romero & Grunwald 2023, "Minimax risk classifiers with 0-1 loss", JMLR 24). The game
    value then bounds the loss on new data, if the true moments lie in the box and rows are distributed as in the sample.

    Parameters
    ----------
    moments : {"ball", "box"}
    tolerance : float
        Half-width of the box in standard errors, above 0; only for ``box``.
    """

    def __init__(self, X: Any, n_classes: int, moments: str = "ball", tolerance: float = 1.0) -> None:
        super().__init__(X, n_classes)
        if moments not in MOMENTS:
            raise UnknownNameError(f"features={self.name} has no moments={moments!r}: {nearest(moments, MOMENTS)}")
        if not POSITIVE["valid"](tolerance):
            raise ConfigError(f"features={self.name} needs a tolerance above 0, in standard errors, got {tolerance!r}")
        self.box, self.width = moments == "box", float(tolerance)

    @classmethod
    def searched(cls, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the tolerance instead of the regularisation when moments are held in a box."""
        return ("tolerance", *cls.hyper) if options.get("moments") == "box" else super().searched(options)

    def at(self, X: Any) -> FeatureMap:
        """Return the same map at other rows."""
        return type(self)(X, self.n_classes, "box" if self.box else "ball", self.width)

    @property
    def squared_rows(self) -> Any:
        """X o X."""
        return self.X.multiply(self.X) if is_sparse(self.X) else self.X**2

    @property
    def largest_values(self) -> Array:
        """The largest |x_i| of every column, shape (d,)."""
        return np.asarray(dense(abs(self.X).max(axis=0)), dtype=np.float64).ravel()

    @abstractmethod
    def squared_adjoint(self, R: Array) -> Array:
        """Return sum_i (J_i o J_i)' r_i in the shape of the parameters, squares taken entry by entry."""

    @abstractmethod
    def largest(self) -> Array:
        """Return the largest |J| of every parameter over rows and labels, in the shape of the parameters."""

    def standard_errors(self, y: Labels, sample_weight: Array | None = None) -> Array:
        """Return the standard errors of the sample's moments 1/n sum_i s_i J_i' e_{y_i}, n = sum_i s_i, in the shape of the parameters.

        A moment that never varied in the sample gets the standard error of a moment that varied once.
        """
        s = np.ones(len(y)) if sample_weight is None else sample_weight
        n = float(s.sum())
        chosen = np.zeros((len(y), self.n_classes))
        chosen[np.arange(len(y)), y] = s
        mean, square = self.adjoint(chosen) / n, self.squared_adjoint(chosen) / n
        variance = square - mean**2
        never = variance <= 1e-12 * square
        errors: Array = np.sqrt(np.maximum(variance, 0.0) / n)
        return np.where(never, self.largest() / n, errors)

    def tolerance(self, y: Labels, sample_weight: Array | None) -> Array | None:
        """Return the half-widths of the box, None for a ball."""
        return self.width * self.standard_errors(y, sample_weight) if self.box else None


class KernelMap(FeatureMap):
    """A map whose parameters are coefficients A (n, c) of functions sum_i a_i K(x_i, .), and perhaps free ones behind them.

    Solvers ask it for the kernel matrix K of the n training rows, whole or by blocks; what of it they copy or factorise is their plan.
    ``explicit`` makes, of L (n, p) and the number of scores, features with the same functions and Euclidean parameters where K = L L'.
    """

    euclidean = False
    keeps_rows = True
    explicit: ClassVar[Any]

    @property
    @abstractmethod
    def memory(self) -> float:
        """Bytes that values of K may take, all copies together; infinite where K was given."""

    @property
    @abstractmethod
    def whole(self) -> bool:
        """Whether all n^2 values fit in ``memory``, beside a copy of the largest block that solvers gather."""

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """K(x_i, x_i) of the training rows, shape (n,)."""

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """The matrix K (n, n), when it is whole."""

    def lacks_columns(self) -> str | None:
        """Return what is missing for one function of a row for each score, all penalised, with all of K in memory; None: nothing."""
        if self.regularised is not None:
            return super().lacks_columns()
        return None if self.whole else "a kernel matrix that fits in features.memory_mb"

    @abstractmethod
    def handed_over(self) -> Array:
        """Return the whole matrix for the caller to change."""

    @property
    @abstractmethod
    def pivots(self) -> Any:
        """The Cholesky factor of K with pivoting, as much of it as was asked for (`kernels.pivots.Pivots`), when K is whole."""

    @abstractmethod
    def block(self, rows: Labels) -> Array:
        """Return K among the given training rows, (m, m), C-contiguous."""

    @abstractmethod
    def accumulate(self, F: Array, rows: Labels, A: Array) -> None:
        """Add K[:, rows] A to the scores F of all training rows, which are held class by class, (k, n)."""

    @abstractmethod
    def sketched(self, rows: Array, gram: Array) -> KernelMap:
        """Return the map with the kernel L L' instead of K, of L' (p, n) and L'L (p, p)."""

    @abstractmethod
    def proximal(self, G: Array, sigma: float) -> tuple[Array, Array]:
        """Return argmin over X (n, k) of 1/2 |J'X|^2 + sigma/2 |X - G|^2 and the parameters of that point; when K is whole.

        The norm is over the penalised parameters, and X meets the equality constraints that free ones put on dual points. Rows of G sum
        to zero. The scores of the parameters are sigma (X - G), up to a constant a row. A factor of the system is kept for the next call.
        """

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return the coefficients A (n, c), or coefficients of ``explicit`` (p, c), and the free parameters of theta."""
        return theta, theta[:0]

    def joined(self, A: Array, free: Array) -> Array:
        """Return the parameters with these coefficients and free ones."""
        return A


registry: Registry[type[FeatureMap]] = Registry("features", "features", __package__)
register = registry.register
feature_class = registry.get


def make_features(name: str, X: Any, n_classes: int, **options: Any) -> FeatureMap:
    """Bind the map registered under ``name`` to rows of X; `ConfigError` for an unknown option."""
    cls = feature_class(name)
    try:
        made = cls(X, n_classes, **options)
    except TypeError as error:
        refuse_unknown_options(f"features={name}", cls, options, 2)
        raise ConfigError(f"features={name}: {error}{plugins.defined_at(cls)}") from error
    if np.ndim(made.X) not in (0, 2):  # NumPy gives other things no dimension
        raise ConfigError(f"features={name}: its map has rows of shape {np.shape(made.X)}, not (n, d){plugins.defined_at(cls)}")
    if made.n_rows != X.shape[0]:
        raise ConfigError(f"features={name}: its map has {made.n_rows} rows of {X.shape[0]}{plugins.defined_at(cls)}")
    return made


def feature_names() -> list[str]:
    """Return every registered name, sorted."""
    return list(registry)
