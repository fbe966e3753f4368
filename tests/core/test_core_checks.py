"""Rules for single values, and the one wording of what breaks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advcli.core.checks import (
    FRACTION,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    SEED,
    at_least,
    between,
    choice,
    is_number,
    is_whole,
    or_null,
    refuse,
    refuse_parameter,
)
from advcli.core.errors import ConfigError


@pytest.mark.parametrize("value", [0, -1.5, np.float32(2.0), np.float64(2.0), np.int64(3)])
def test_numbers_are_those_of_numpy_too(value: Any) -> None:
    assert is_number(value)
    assert is_whole(value) == isinstance(value, int | np.integer)


@pytest.mark.parametrize("value", [True, np.True_, "1", None, float("nan"), float("inf"), -np.inf, 10**400, 1j, [1], np.ones(1)])
def test_what_is_no_number(value: Any) -> None:
    assert not is_number(value)
    with pytest.raises(ConfigError, match="C must be a finite number, got"):
        refuse_parameter("C", value, NUMBER)


@pytest.mark.parametrize(
    ("about", "valid", "invalid"),
    [
        (POSITIVE, [1e-9, 3], [0, -1, None]),
        (NOT_NEGATIVE, [0, 0.5], [-1e-9, "0"]),
        (FRACTION, [0.5], [0, 1]),
        (SEED, [0, 2**32 - 1], [-1, 2**32, 1.0]),
        (at_least(2), [2, np.int32(9)], [1, 2.0, True]),
        (at_least(1, 3), [1, 3], [0, 4]),
        (between(0, 0.5), [0, 0.5], [-0.1, 0.6, None]),
        (choice("a", "b"), ["a"], ["c", None]),
        (or_null(at_least(1)), [None, 1], [0]),
    ],
)
def test_a_rule_is_kept_or_broken(about: dict[str, Any], valid: list[Any], invalid: list[Any]) -> None:
    for value in valid:
        refuse("key", value, about)
        refuse_parameter("name", value, about)
    for value in invalid:
        with pytest.raises(ConfigError, match=r"^key=.* is not valid; "):
            refuse("key", value, about)
        with pytest.raises(ConfigError, match=r"^name must be .*, got "):
            refuse_parameter("name", value, about)


def test_words_of_a_refusal() -> None:
    with pytest.raises(ConfigError, match=r"^solver\.batch=0 is not valid; give a whole number of at least 1, or null$"):
        refuse("solver.batch", 0, or_null(at_least(1)))
    with pytest.raises(ConfigError, match=r"^protocol\.split=null is not valid; choose one of random, standard$"):
        refuse("protocol.split", None, choice("random", "standard"))
    with pytest.raises(ConfigError, match=r"^tol must be a positive number, got 'x'$"):
        refuse_parameter("tol", "x", POSITIVE, "a positive number")
