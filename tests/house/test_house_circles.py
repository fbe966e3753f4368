"""No circle of imports among the modules of a room: an import inside a function hides a circle, it does not end it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "advcli"
ROOMS = ("data",)

# Imports by name that no import statement shows: the registry of data sources imports every module of its folder.
DYNAMIC = {"data.registry": "data/sources/*.py"}

Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    """Return the dotted name below the package; a package is named by its folder."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str, path: Path, modules: Iterable[str]) -> set[str]:
    """Return the modules of ours that a file imports, wherever the import stands, in type checks too."""
    package = ["advcli", *path.relative_to(PACKAGE).parts[:-1]]
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names += [f"{stem}.{alias.name}" for alias in node.names]
    known = {f"advcli.{module}": module for module in modules}
    return {
        known[name] if name in known else known[name.rpartition(".")[0]] for name in names if {name, name.rpartition(".")[0]} & set(known)
    }


def graph(room: str, changed: dict[str, str] | None = None) -> Graph:
    """Return which modules of a room import which of them; ``changed`` holds other sources of some files."""
    paths = {module_name(path): path for path in sorted((PACKAGE / room).rglob("*.py"))}
    texts = {module: path.read_text(encoding="utf-8") for module, path in paths.items()} | (changed or {})
    found = {module: imported(texts[module], path, paths) for module, path in paths.items()}
    for module, pattern in DYNAMIC.items():
        if module in found:
            found[module] |= {module_name(path) for path in PACKAGE.glob(pattern)}
    return found


def circle(edges: Graph) -> str:
    """Return a circle in words, empty if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


@pytest.mark.parametrize("room", ROOMS)
def test_no_circle_in_the_room(room: str) -> None:
    assert circle(graph(room)) == ""


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("data.table", "from .encoding import Column"),
        ("data.table", "def f():\n    from .label_sets import read_label_sets"),
        ("data.table", "def f():\n    from advcli.data import tabular"),
        ("data.source", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .listing import list_datasets"),
        ("data.sources.synthetic", "from ..registry import load"),
        ("data.sources.synthetic", "from .. import list_datasets"),
    ],
)
def test_a_new_circle_is_caught(module: str, source: str) -> None:
    assert module in circle(graph("data", {module: source})).split(" <- ")
