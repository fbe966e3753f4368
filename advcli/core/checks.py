"""Rules for single values of a configuration, each a test and its words; and how large features may be.

A dataclass that is a schema carries the rules as the metadata of its fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import ConfigError, DataError, nearest

LARGEST = 1e50
"""The largest feature that is taken: fits add up fourth powers, such as squared scores at weights that are sums of rows."""


def rule(wanted: str, valid: Callable[[Any], bool], choices: Sequence[str] = ()) -> dict[str, Any]:
    """Return the metadata of a field whose value, or every element of it, must satisfy ``valid``."""
    return {"wanted": wanted, "valid": valid, "choices": tuple(choices)}


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def choice(*choices: str) -> dict[str, Any]:
    """Return the rule of one of these texts."""
    return rule(f"one of {', '.join(choices)}", lambda value: value in choices, choices)


def at_least(minimum: int) -> dict[str, Any]:
    """Return the rule of a whole number from ``minimum`` on."""
    return rule(f"a whole number of at least {minimum}", lambda value: is_whole(value) and value >= minimum)


POSITIVE = rule("a finite number above 0", lambda value: is_number(value) and value > 0)
NOT_NEGATIVE = rule("a finite number of at least 0", lambda value: is_number(value) and value >= 0)
FRACTION = rule("a number between 0 and 1, both excluded", lambda value: is_number(value) and 0 < value < 1)
ANY = rule("true or false", lambda value: isinstance(value, bool))
NAME = rule("a name", lambda value: isinstance(value, str) and bool(value.strip()))
SEED = rule("a whole number from 0 to 2**32 - 1", lambda value: is_whole(value) and 0 <= value < 2**32)


def between(low: float, high: float) -> dict[str, Any]:
    """Return the rule of a number from ``low`` to ``high``, both included."""
    return rule(f"a number from {low:g} to {high:g}", lambda value: is_number(value) and low <= value <= high)


def collected(frame: Any) -> Any:
    """Return a frame with its rows: a polars LazyFrame, which has none, is collected; anything else stays as it is."""
    return frame.collect() if callable(getattr(frame, "collect", None)) and not hasattr(frame, "__array__") else frame


def refuse(name: str, value: Any, about: Mapping[str, Any], wanted: str = "") -> None:
    """Raise `ConfigError` for a value that breaks its rule.

    Parameters
    ----------
    name : str
        The dotted key.
    value : object
        A value, or one element of a list.
    about : mapping
        Its rule.
    wanted : str
        What to say is wanted, in place of the rule's words.
    """
    if about["valid"](value):
        return
    shown = "null" if value is None else str(value)
    hint = nearest(shown, about["choices"]) if about["choices"] else f"give {wanted or about['wanted']}"
    raise ConfigError(f"{name}={shown} is not valid; {hint}")


def refuse_huge(X: Any, names: Sequence[Any] | None, what: str) -> None:
    """Raise `DataError`, naming a column, when features X (n, d), dense or CSR, hold a finite number beyond `LARGEST`."""
    import numpy as np

    values = X.data if hasattr(X, "tocsr") else X
    # nan and inf are refused where rows are validated
    with np.errstate(invalid="ignore"):
        if values.size == 0 or not max(values.max(), -values.min()) > LARGEST:
            return
    at = int(np.argmax(np.abs(values)))
    column = int(X.indices[at]) if hasattr(X, "tocsr") else at % X.shape[1]
    said = f" ({str(names[column])!r})" if names is not None else ""
    raise DataError(f"{what}: column {column + 1}{said} holds {np.ravel(values)[at]:.3g}, beyond {LARGEST:g}; change its unit")
