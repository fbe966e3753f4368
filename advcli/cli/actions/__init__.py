"""The actions, one file each: the first word of a command line is the name of its file.

The class of an action is the only `Task` that its file defines. The file is imported when somebody asks for its action:
every <TAB> of completion imports this package.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..task import Task


def names() -> list[str]:
    """Return the names of all actions."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def get(name: str) -> type[Task]:
    """Return the class of an action."""
    from ..task import Task

    module = import_module(f"{__name__}.{name}")
    (kind,) = (kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Task) and kind is not Task)
    return kind
