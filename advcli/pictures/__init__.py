"""Pictures of losses and of single fits, beside the figures of reports, which show rows: one file each, registered on import.

Every picture is written as PNG and SVG, with a CSV file of the numbers that are drawn.
"""

import importlib
import pkgutil

from .base import Picture, Request, pictures, register, write_picture

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Picture", "Request", "pictures", "register", "write_picture"]
