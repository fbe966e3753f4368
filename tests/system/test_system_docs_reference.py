"""The reference of the site: every name that it lists exists, every name that a page imports is listed, and examples run."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import advcli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "site" / "api.rst").read_text(encoding="utf-8")
DOCUMENTED = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs" / "gallery").glob("*.py"))]
MODULES = {"advcli", "advcli.metrics", "advcli.objectives", "advcli.plugins", "advcli.statistics", "advcli.statistics.tests"}
"""Modules that pages import whole: the reference lists what is in them."""
WITHOUT = (
    "Annotations",
    "Certificate",
    "ConfigError",
    "Consistency",
    "DataError",
    "Judgement",
    "Mark",
    "NotConvergedWarning",
    "Posterior",
    "Significance",
    "Solution",
)
WITHOUT += ("Annotations", "StrategyWarning", "TestResult", "WorstCase")
"""Classes that functions with an example return, take or raise."""
RUN = """
import doctest, importlib, sys
runner, finder = doctest.DocTestRunner(verbose=False), doctest.DocTestFinder(recurse=False)
for name in sys.argv[1:]:
    module, _, attribute = name.partition(":")
    item = importlib.import_module(module)
    for part in attribute.split("."):
        item = getattr(item, part)
    for test in finder.find(item, name, module=False, globs={}):
        runner.run(test)
print(runner.tries)
sys.exit(runner.failures > 0)
"""


def names() -> list[str]:
    """Return the dotted names that the page lists, each behind its current module."""
    found, module = [], ""
    for line in PAGE.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
            found.append(f"{module}.{line.strip()}")
    return found


def found(name: str) -> tuple[str, str, Any]:
    """Return the module of a name, the name in it, and what it is."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        rest = parts[end:]
        while len(rest) > 1 and inspect.ismodule(inner := getattr(module, rest[0])):  # under another name, such as advcli.errors
            module, rest = inner, rest[1:]
        there: Any = module
        for attribute in rest:
            there = getattr(there, attribute)
        return module.__name__, ".".join(rest), there
    raise AssertionError(f"no module {parts[0]}")


def imported(source: str) -> set[str]:
    """Return the dotted names that a source takes from the package."""
    taken = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "advcli":
            taken |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            taken |= {alias.name for alias in node.names if alias.name.split(".")[0] == "advcli"}
    return taken


@pytest.mark.parametrize("name", names())
def test_a_name_of_the_reference_is_there(name: str) -> None:
    found(name)


def test_every_public_name_is_listed() -> None:
    assert {f"advcli.{name}" for name in advcli.__all__ if name != "__version__"} <= set(names())


@pytest.mark.parametrize("page", DOCUMENTED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_name_that_a_page_imports_is_listed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    sources = [text] if page.suffix == ".py" else re.findall(r"^```python\b[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    listed = [found(name)[2] for name in names()]
    for name in sorted(set().union(*map(imported, sources)) - MODULES):
        there = found(name)[2]
        assert any(there is each for each in listed) or name in names(), f"{name} is not in docs/site/api.rst"


def test_every_name_has_an_example() -> None:
    listed = [(name, found(name)[2]) for name in names() if name.split(".")[-1] not in WITHOUT]
    assert [name for name, there in listed if callable(there) and ">>>" not in (there.__doc__ or "")] == []


def test_examples_run(tmp_path: Path) -> None:
    """In one process of their own: some register items, which no other test may see."""
    chosen = [f"{module}:{attribute}" for module, attribute, there in map(found, names()) if callable(there)]
    done = subprocess.run([sys.executable, "-c", RUN, *chosen], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.splitlines()[-1]) > 200
