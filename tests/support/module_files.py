"""Modules by their files, which lie in no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def module_of(file: Path, name: str) -> ModuleType:
    """Return the module of a file, run anew; it stands in `sys.modules` by its name, where dataclasses and pickle look for it."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
