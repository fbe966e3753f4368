"""The tree of errors that the module's docstring draws is the one of its classes."""

import inspect

from advcli.core import errors


def branches(kind: type, depth: int) -> list[str]:
    """Return the lines that draw a class and those that derive from it first."""
    kinds = [each for each in vars(errors).values() if inspect.isclass(each) and each.__bases__[0] is kind]
    return ["    " * depth + kind.__name__, *(line for each in kinds for line in branches(each, depth + 1))]


def test_the_tree_is_drawn_as_it_stands() -> None:
    warnings = [each for each in vars(errors).values() if inspect.isclass(each) and each.__bases__[0] is UserWarning]
    tree = [*branches(errors.AdvcliError, 1), *(line for each in warnings for line in branches(each, 1))]
    drawn = [line for line in (errors.__doc__ or "").splitlines() if line.startswith("    ")]
    assert drawn == tree
