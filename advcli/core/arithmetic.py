"""Portable arithmetic: the same bits at every instruction set, whatever BLAS is installed.

While `using` is in force with ``portable``, the compiled loops run at a level whose sums have four lanes and no fused multiply-adds
(`avx2` and `portable` of `advcli.core.compiled` agree bit for bit), NumPy's products of matrices, exp, log and powers have the loops of
`_ext/support/arithmetic.pyx`, and `advcli.core.linalg` has the factors there; `advcli.core.products` has what NumPy's einsum and SciPy's
sparse matrices do. It holds for the whole process, other threads included.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

from .errors import ConfigError, IncompatibleError

ARITHMETICS = ("fast", "portable")
"""Values of the key ``arithmetic``."""


def is_portable() -> bool:
    """Return whether portable arithmetic is in force."""
    return _State.portable


def refuse_portable(what: str, remedy: str) -> None:
    """Refuse a computation by a library whose sums follow the processor; ``remedy`` is another way."""
    if _State.portable:
        raise IncompatibleError(what, "arithmetic=fast", f"its library computes otherwise on other processors: {remedy}")


def log(x: float) -> float:
    """Return the natural logarithm: the C library's, or under portable arithmetic its own."""
    import numpy as np

    return float(np.log(x)) if _State.portable else math.log(x)


class _State:
    portable = False


@contextlib.contextmanager
def using(arithmetic: str) -> Iterator[None]:
    """Compute by this arithmetic, ``fast`` or ``portable``, until the block ends; an inner block of another one comes first.

    Raises
    ------
    ConfigError
        If the compiled part has no vectors, as one made by MSVC, or vectors of eight numbers, as one built with ``-march=native`` may have.

    Examples
    --------
    >>> import numpy as np
    >>> from advcli.core.arithmetic import using
    >>> with using("portable"):
    ...     float(np.exp(1.0))
    2.718281828459045
    """
    before = _State.portable
    wanted = arithmetic == "portable"
    if wanted == before:
        yield
        return
    from .compiled import kernels, usable_levels  # NumPy, which the command line does without for long

    level = kernels.level
    narrower = (each for each in usable_levels() if each != "avx512")
    try:
        kernels.use(kernels.chosen if not wanted or kernels.chosen == "portable" else next(narrower))
        if wanted and kernels.arithmetic.lanes() != 4:
            raise ConfigError(
                "arithmetic=portable needs compiled loops with vectors of four numbers: build advcli with gcc or clang and without"
                " -march=native, or take arithmetic=fast"
            )
        _exchange(wanted)
        yield
    finally:
        _exchange(before)
        kernels.use(level)


def _exchange(portable: bool) -> None:
    from . import products
    from .compiled import kernels

    _State.portable = portable
    kernels.arithmetic.exchange(portable)
    products.exchange(portable)
    kernels.newton_faces._take(kernels.arithmetic._blas() if portable else None)
