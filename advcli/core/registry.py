"""Names of everything that a configuration or a caller chooses by name; a registry looks into users' folders for what it does not have."""

from __future__ import annotations

import inspect
import pkgutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from . import plugins
from .errors import ConfigError, UnknownNameError, nearest

Item = TypeVar("Item")
Registered = TypeVar("Registered")


class Registry(Generic[Item]):
    """Items of one kind by name, aliases included; modules of ``package``, and of ``folder`` in users' folders, register themselves."""

    def __init__(self, noun: str, folder: str, package: str | None = None) -> None:
        self.noun, self.folder, self.package = noun, folder, package
        self._items: dict[str, Item] = {}
        self._imported = package is None
        self._lock = threading.RLock()

    def register(self, *names: str) -> Callable[[Registered], Registered]:
        """Class decorator: make a class available under its name, which becomes its attribute ``name``, and its aliases.

        Examples
        --------
        >>> import numpy as np
        >>> from advcli.losses import loss_names, register
        >>> from advcli.losses.convex_columns import ConvexColumnsLoss
        >>> @register("insensitive")
        ... class InsensitiveLoss(ConvexColumnsLoss):
        ...     def __init__(self, n_classes, width=1.0):
        ...         steps = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes)))
        ...         super().__init__(n_classes, matrix=np.maximum(steps - width, 0.0))
        >>> "insensitive" in loss_names()
        True
        """

        def add(item: Any) -> Any:
            item.name = names[0]
            for name in names:
                self._items[name] = item
            return item

        return add

    def put(self, name: str, item: Item) -> None:
        """Make an item available under a name."""
        self._items[name] = item

    def _import_package(self) -> None:
        """Import the modules of the package, once."""
        if self._imported:
            return
        with self._lock:  # a second thread waits for all names
            if not self._imported and self.package is not None:
                package = import_module(self.package)
                for module in pkgutil.walk_packages(package.__path__, f"{self.package}."):
                    import_module(module.name)
                self._imported = True

    def __contains__(self, name: object) -> bool:
        """Tell whether there is an item of that name, in users' folders too."""
        if not self._imported:
            self._import_package()
        if name in self._items:
            return True
        if isinstance(name, str):
            plugins.load(self.folder)
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        """Yield every name, sorted."""
        self._import_package()
        return iter(sorted(self._items))

    def get(self, name: str, others: Iterable[str] = ()) -> Item:
        """Return the item of that name; `ConfigError` names the nearest, ``others`` among them, if there is none.

        Examples
        --------
        >>> from advcli.losses import loss_class
        >>> loss_class("zero_one").__name__
        'ZeroOneLoss'
        """
        if self._imported and name in self._items:  # a small fit asks some ten times
            return self._items[name]
        if name not in self:
            raise UnknownNameError(f"unknown {self.noun} {name!r}: {nearest(name, [*self._items, *others])}")
        return self._items[name]


def refuse_unknown_options(what: str, chosen: Any, options: Iterable[str], n_own: int, usual: Mapping[str, str] | None = None) -> None:
    """Raise `ConfigError` for the first option that a class, beside its first ``n_own`` arguments, does not take; it names those taken.

    ``usual`` has the names of options by the names that other packages give them.
    """
    taken = list(inspect.signature(chosen).parameters.values())
    known = [parameter.name for parameter in taken[n_own:]]
    for name in options:
        if name not in known and all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in taken):
            meant = (usual or {}).get(name)
            advice = f"did you mean {meant}?" if meant in known else nearest(name, known) if known else "it has none"
            raise ConfigError(f"{what} has no option {name!r}; {advice}")
