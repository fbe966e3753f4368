"""Rules for single values, each a test and its words, which a schema's fields carry as metadata; and how large features may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from .arrays import is_sparse
from .errors import DataError, InvalidValueError, nearest

LARGEST = 1e50  # the largest feature that is taken: fits add up fourth powers, such as squared scores at weights that are sums of rows


def rule(wanted: str, valid: Callable[[Any], bool], choices: Sequence[str] = ()) -> dict[str, Any]:
    """Return the metadata of a field whose value, or every element of it, must satisfy ``valid``."""
    return {"wanted": wanted, "valid": valid, "choices": tuple(choices)}


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, of NumPy too, and no truth value."""
    # the abstract classes are asked last: a small fit has some twenty of these checks
    if type(value) is not float and (not isinstance(value, Real) or isinstance(value, bool)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def is_real(value: Any) -> bool:
    """Return whether a value is a number, of NumPy and infinite ones too, and neither nan nor a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, of NumPy too, and no truth value."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def choice(*choices: str) -> dict[str, Any]:
    """Return the rule of one of these texts."""
    return rule(f"one of {', '.join(choices)}", lambda value: value in choices, choices)


def at_least(minimum: int, most: int | None = None) -> dict[str, Any]:
    """Return the rule of a whole number from ``minimum`` on, or to ``most``."""
    words = f"a whole number of at least {minimum}" if most is None else f"a whole number from {minimum} to {most}"
    return rule(words, lambda value: is_whole(value) and minimum <= value and (most is None or value <= most))


def between(low: float, high: float) -> dict[str, Any]:
    """Return the rule of a number from ``low`` to ``high``, both included."""
    return rule(f"a number from {low:g} to {high:g}", lambda value: is_number(value) and low <= value <= high)


def or_null(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule that takes None, too."""
    return rule(f"{about['wanted']}, or null", lambda value: value is None or about["valid"](value), about["choices"])


NUMBER = rule("a finite number", is_number)
REAL = rule("a number", is_real)
POSITIVE = rule("a finite number above 0", lambda value: is_number(value) and value > 0)
NOT_NEGATIVE = rule("a finite number of at least 0", lambda value: is_number(value) and value >= 0)
FRACTION = rule("a number between 0 and 1, both excluded", lambda value: is_number(value) and 0 < value < 1)
ANY = rule("true or false", lambda value: isinstance(value, bool))
NAME = rule("a name", lambda value: isinstance(value, str) and bool(value.strip()))
SEED = at_least(0, 2**32 - 1) | {"wanted": "a whole number from 0 to 2**32 - 1"}


def collected(frame: Any) -> Any:
    """Return a frame with its rows: a polars LazyFrame, which has none, is collected; anything else stays as it is."""
    return frame.collect() if callable(getattr(frame, "collect", None)) and not hasattr(frame, "__array__") else frame


def refuse(name: str, value: Any, about: Mapping[str, Any], wanted: str = "") -> None:
    """Raise `InvalidValueError` for the value of a dotted key that breaks its rule; ``wanted`` replaces the words of the rule."""
    if not about["valid"](value):
        shown = "null" if value is None else str(value)
        hint = nearest(shown, about["choices"]) if about["choices"] else f"give {wanted or about['wanted']}"
        raise InvalidValueError(f"{name}={shown} is not valid; {hint}")


def refuse_parameter(name: str, value: Any, about: Mapping[str, Any], wanted: str = "") -> None:
    """Raise `InvalidValueError` for a parameter of an estimator or a function that breaks its rule; ``wanted`` as in `refuse`."""
    if not about["valid"](value):
        raise InvalidValueError(f"{name} must be {wanted or about['wanted']}, got {value!r}")


def refuse_huge(X: Any, names: Sequence[Any] | None, what: str) -> None:
    """Raise `DataError`, naming a column, when features X (n, d), dense or CSR, hold a finite number beyond `LARGEST`."""
    import numpy as np

    values = X.data if is_sparse(X) else X
    # nan and inf are refused where rows are validated
    with np.errstate(invalid="ignore"):
        if values.size == 0 or not max(values.max(), -values.min()) > LARGEST:
            return
    position = int(np.argmax(np.abs(values)))
    column = int(X.indices[position]) if is_sparse(X) else position % X.shape[1]
    name = f" ({str(names[column])!r})" if names is not None else ""
    raise DataError(f"{what}: column {column + 1}{name} holds {np.ravel(values)[position]:.3g}, beyond {LARGEST:g}; change its unit")
