"""Methods that are no surrogate behind an oracle: one file each; every module here registers itself on import.

They stand in the group ``loss`` beside the surrogates and are fitted, scored and recorded by the same runner; a method whose fit has no
certificate has no ``certificate_``, and its rows leave those columns empty.
"""

import importlib
import pkgutil

from .base import Method, is_method, method_class, method_names, register

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Method", "is_method", "method_class", "method_names", "register"]
