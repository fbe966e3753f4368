"""A user's own items: Python files beside the YAML files of a ``--config-dir``.

    FOLDER/loss/mine.py       registers itself with advcli.losses.register, a learner with advcli.learners.register
    FOLDER/loss/mine.yaml     its options, for the command line
    FOLDER/metric/mine.py     registers itself with advcli.metrics.register; likewise features, solver, splits, dataset, figure,
                              picture and search

An environment variable holds the folders, so that the worker processes of a sweep, and a notebook, find them too. A registry looks here for
a name that the package does not have.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import AdvcliError, ConfigError, readable
from .paths import conf_dir, expanded

FOLDERS = "ADVCLI_PLUGINS"  # environment variable: the folders, separated as in PATH. `advcli --config-dir FOLDER` adds its folder
_PREFIX = "advcli_plugins_"

GROUPS = ("dataset", "features", "figure", "loss", "metric", "search", "solver", "splits")
"""The folders within such a folder that Python files are looked for in."""


def folders() -> list[str]:
    """Return the folders of this process."""
    return [entry for entry in os.environ.get(FOLDERS, "").split(os.pathsep) if entry]


def add_folder(folder: str | os.PathLike[str]) -> None:
    """Add a folder for this process and for processes that it starts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from advcli import plugins
    >>> before = plugins.folders()
    >>> plugins.add_folder("my")
    >>> Path(plugins.folders()[-1]).name
    'my'
    >>> plugins.use_folders(before)
    """
    path = str(expanded(folder).absolute())
    if path not in folders():
        use_folders([*folders(), path])


def add_named(folder: str) -> Path:
    """Add a folder that a configuration names, from here or of the checkout whose options are used, and return it; else `ConfigError`."""
    here = expanded(folder).absolute()
    path_found = next((path for path in (here, conf_dir().parent / folder) if path.is_dir()), None)
    if path_found is None:
        raise ConfigError(
            f"plugins={folder}: there is no such folder; those of presets are part of the source code (git clone), not of an installed "
            f"package: give plugins=FOLDER, your copy of {folder}"
        )
    add_folder(path_found)
    return path_found


def use_folders(paths: Iterable[str]) -> None:
    """Use these folders and no others; items that others have registered stay.

    Examples
    --------
    >>> from advcli import plugins
    >>> before = plugins.folders()
    >>> plugins.use_folders([])
    >>> plugins.folders()
    []
    >>> plugins.use_folders(before)
    """
    # absolute: a worker may have started elsewhere
    os.environ[FOLDERS] = os.pathsep.join(str(expanded(path).absolute()) for path in paths)


def files(group: str) -> Iterator[Path]:
    """Yield the Python files of a group, folder by folder, in alphabetical order."""
    for folder in folders():
        yield from sorted((Path(folder) / group).glob("*.py"))


def load(group: str) -> list[ModuleType]:
    """Import the Python files of a group, each once, and return their modules; `ConfigError` names file, line and reason of a failure."""
    modules = []
    for path in files(group):
        # without dots: pickle would import a package above the module
        name = f"{_PREFIX}{hashlib.sha256(str(path).encode()).hexdigest()[:12]}_{group}_{path.stem}"
        module = sys.modules.get(name)
        if module is None:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            try:
                spec.loader.exec_module(module)
            except Exception as error:
                del sys.modules[name]
                if isinstance(error, AdvcliError):
                    raise
                raise ConfigError(f"cannot load {at_fault(error) or path}: {type(error).__name__}: {readable(str(error))}") from error
        modules.append(module)
    return modules


def is_plugin(module: str) -> bool:
    """Tell whether a module of that name is a user's file."""
    return module.startswith(_PREFIX)


def at_fault(error: BaseException) -> str:
    """Return ``FILE, line N``, the last line of a user's own file that an error passed through, or what caused it; empty if none."""
    if isinstance(error, SyntaxError) and error.filename and _is_own(error.filename):
        return f"{error.filename}, line {error.lineno}"
    place, trace = "", error.__traceback__
    while trace is not None:
        if _is_own(trace.tb_frame.f_code.co_filename):
            place = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place or (at_fault(error.__cause__) if error.__cause__ is not None else "")


def _is_own(file: str) -> bool:
    return any(Path(folder) in Path(file).parents for folder in folders())


def defined_at(item: Any) -> str:
    """Return `` (FILE, line N)`` of a class or function in a user's own file, for the end of a message; empty for any other."""
    try:
        file, line = inspect.getfile(item), inspect.getsourcelines(item)[1]
    except (OSError, TypeError):  # made in an interpreter
        return ""
    return f" ({file}, line {line})" if _is_own(file) else ""


def one_line(error: BaseException) -> str:
    """Return an error as one line, with the line of a user's own file that made it, and its type unless it was written for people."""
    text = readable(str(error))
    if not isinstance(error, AdvcliError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    where = at_fault(error)
    return text if not where or where.partition(",")[0] in text else f"{text} ({where})"


def fingerprint() -> str | None:
    """Return a checksum of all files but figures, None if there are none: their results are not taken for those of other files."""
    paths = [(group, path) for group in GROUPS if group != "figure" for path in files(group)]
    digest = hashlib.sha256()
    for group, path in paths:
        digest.update(f"{group}/{path.name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest() if paths else None
