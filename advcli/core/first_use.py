"""Libraries that others import for all cases, and most commands never use, are loaded when something of them is first used."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, ClassVar

_LOCK = threading.Lock()


class _Later(ModuleType):
    """What stands for a module until an attribute or a submodule of it is asked for; the import system imports it then, once."""

    def __getattr__(self, attribute: str) -> Any:
        # A package is found by its __path__, which this has not: an import of a submodule comes here as well.
        name = self.__name__
        with _LOCK:
            _Finder.names.discard(name)
            if sys.modules.get(name) is self:
                del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)  # functions that hold the module may go to another process


class _Finder(MetaPathFinder, Loader):
    names: ClassVar[set[str]] = set()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in self.names or PathFinder.find_spec(fullname, path) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> None:
        return None  # an empty module

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Later


def load_at_first_use(*names: str) -> None:
    """Let imports of these modules, from now on and by anyone in this process, load nothing before something of them is used.

    A program calls this for itself; a library must not, as it changes what others import. ``import name`` and ``import name as other`` load
    nothing; ``from name import x`` and ``import name.x`` use the module. Modules that are loaded already stay as they are.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _Finder.names.update(name for name in names if name not in sys.modules)
