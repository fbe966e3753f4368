"""Rooms import down the storeys; the base file of a room knows none of its siblings.

An import counts wherever it stands: in a function, where it waits, and under TYPE_CHECKING, where it never runs.
docs/project/architecture.md shows the rooms and says why they stand so.
"""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "advcli"

# Rooms, or modules of one: what they may import beside their own room. A line of a module adds to the line of its room.
LAW = """
core                                                    -
losses features data results statistics metrics         core
data.tables                                             losses.matrices
problems                                                core losses features
solvers                                                 core features problems
config results.importing results.foreign_columns        core metrics
verify                                                  core data losses.matrices results
learners                                                core losses features problems solvers data.labels statistics
evaluation                                              core features data problems learners config.protocol metrics results
evaluation.sweeps                                       config
models                                                  core data problems learners evaluation results statistics
reports                                                 core metrics results statistics
reports.pictures                                        losses learners evaluation
reports.compare                                         data.labels evaluation
testing                                                 core losses features problems solvers learners data metrics results reports
cli                                                     core config data learners evaluation results statistics models
cli                                                     reports verify losses
__init__ __main__                                       core learners cli
"""
WINGS = {"learners.structured": {"learners.structured", "__init__"}, "solvers.stochastic": {"solvers.stochastic"}}
"""Packages that nobody may import but those named; registries find what they hold by its name."""
LIBRARIES = {
    "hydra": {"cli", "config"},
    "omegaconf": {"cli", "config"},
    "hydra_plugins": {"cli", "config"},
    "matplotlib": {"reports", "models.coverage"},
    "ray": {"solvers.shards", "cli.launching"},
}
"""Where a library may be imported."""
EAGER = {"cli.actions": "cli.actions", "data.registry": "data.sources"}
"""Modules that import, by name, all that stands in a package."""
HEAVY = {"pandas", "sklearn", "scipy", "numpy", "joblib", "matplotlib"}


# ---- reading the package ----------------------------------------------------------------------------------------------
def module_name(path: Path) -> str:
    """Return the dotted name below the package: ``losses.base``; a package is named by its folder."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@cache
def modules() -> dict[str, Path]:
    """Return the file of every module."""
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py")) if "conf" not in path.relative_to(PACKAGE).parts}


def around(module: str) -> list[str]:
    """Return a module and the packages around it, the room first."""
    names = module.split(".")
    return [".".join(names[:end]) for end in range(1, len(names) + 1)]


parsed = cache(ast.parse)


def imports(tree: ast.AST, path: Path) -> list[tuple[int, str]]:
    """Return (line, absolute dotted name) of every import in a file, wherever it stands."""
    package = ["advcli", *path.relative_to(PACKAGE).parts[:-1]]
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names += [(node.lineno, f"{stem}.{alias.name}") for alias in node.names]
    return names


@cache
def targets(path: Path, source: str) -> list[tuple[int, str, str]]:
    """Return (line, module of ours, name taken of it) of every import; the name is empty where the module itself is imported."""
    edges = []
    for line, dotted in imports(parsed(source), path):
        top, _, rest = dotted.partition(".")
        if top == "advcli":
            module, _, name = (rest, "", "") if rest in modules() or rest == "_ext" else rest.rpartition(".")
            if name == "" and rest not in modules():
                module, name = "__init__", rest
            edges.append((line, module if module in modules() else module.split(".")[0], name))
    return [(line, module, name) for line, module, name in edges if module != module_name(path)]


# ---- the law ----------------------------------------------------------------------------------------------------------
@cache
def law() -> dict[str, set[str]]:
    """Return what every line allows."""
    lines: dict[str, set[str]] = {}
    for line in filter(None, LAW.splitlines()):
        left, right = line.split("  ", 1)
        for name in left.split():
            lines[name] = lines.get(name, set()) | set(right.split()) - {"-"}
    return lines


def violations(module: str, source: str) -> list[str]:
    """Return what is wrong with the imports of a module that has this source, line by line."""
    room = module.split(".")[0]
    allowed = {room}.union(*(law().get(name, set()) for name in around(module)))
    path = modules().get(module) or PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    complaints = []
    for line, dotted in imports(parsed(source), path):
        homes = LIBRARIES.get(dotted.split(".")[0])
        if homes is not None and not homes & set(around(module)):
            complaints.append(f"advcli.{module}, line {line}: only {', '.join(sorted(homes))} may import {dotted.split('.')[0]}")
    for line, target, name in targets(path, source):
        where = f"advcli.{module}, line {line}:"
        if not allowed & set(around(target)):
            complaints.append(f"{where} imports advcli.{target}; the law allows {sorted(allowed)}")
        if module.endswith(".base") and target.startswith(module.removesuffix("base")):
            complaints.append(f"{where} a base file imports its sibling advcli.{target}")
        if name.startswith("_") and not name.startswith("__"):
            complaints.append(f"{where} takes the private name {name} of advcli.{target}")
        for wing, visitors in WINGS.items():
            if wing in around(target) and not visitors & set(around(module)):
                complaints.append(f"{where} imports advcli.{target}, which only {', '.join(sorted(visitors))} may")
    return complaints


def test_every_room_has_a_line() -> None:
    rooms = {module.split(".")[0] for module in modules()}
    assert rooms <= set(law()), f"add {sorted(rooms - set(law()))} to the law"


def test_the_law_is_short() -> None:
    assert len(LAW.split("\n")) <= 20


def test_imports_follow_the_law() -> None:
    found = {module: violations(module, path.read_text(encoding="utf-8")) for module, path in modules().items()}
    assert {module: against for module, against in found.items() if against} == {}


def test_the_law_allows_nothing_that_nobody_uses() -> None:
    used: dict[str, set[str]] = {}
    for module, path in modules().items():
        for _, target, _ in targets(path, path.read_text(encoding="utf-8")):
            for name in around(module):
                used.setdefault(name, set()).update(around(target))
    idle = {name: sorted(allowed - used.get(name, set())) for name, allowed in law().items()}
    shared = {name for line in LAW.splitlines() for name in line.split("  ")[0].split() if len(line.split("  ")[0].split()) > 1}
    assert {name: rest for name, rest in idle.items() if rest and name not in shared} == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("losses.new", "import hydra"),
        ("losses.new", "from advcli.solvers.coordinate import dense"),
        ("losses.new", "from ..solvers import best"),
        ("losses.base", "from .zero_one import ZeroOneLoss"),
        ("evaluation.new", "def f():\n    from omegaconf import OmegaConf"),
        ("evaluation.new", "from .. import config"),
        ("solvers.new", "from ..learners.base import Learner"),
        ("solvers.new", "from .auto import _words"),
        ("problems.certificate", "from ..solvers.coordinate.dense import solve"),
        ("core.registry", "from ..losses import make_loss"),
        ("reports.new", "from ..evaluation import runner"),
        ("data.new", "from ..results.folder import ResultsFolder"),
        ("data.new", "import matplotlib.pyplot"),
        ("learners.new", "from .structured.label_sets import MultilabelClassifier"),
        ("solvers.auto", "from .stochastic.sag import SagSolver"),
        ("models.new", "from ..reports import drawing"),
        ("verify.new", "from ..solvers import best"),
        ("verify.new", "from ..losses import make_loss"),
        ("verify.new", "from ..features.linear import LinearFeatures"),
        ("verify.new", "from ..learners import Method"),
        ("verify.new", "from .._ext import oracle_portable"),
        ("verify.new", "from ..evaluation.splits import random_splits"),
    ],
)
def test_the_law_catches_a_forbidden_import(module: str, source: str) -> None:
    assert violations(module, source)


# ---- circles ----------------------------------------------------------------------------------------------------------
def graph(changed: dict[str, str] | None = None) -> dict[str, set[str]]:
    """Return which modules every module imports, with the packages around them; ``changed`` holds other sources of some."""
    edges: dict[str, set[str]] = {}
    for module, path in modules().items():
        own = set(around(module))
        direct = {target for _, target, _ in targets(path, (changed or {}).get(module) or path.read_text(encoding="utf-8"))}
        # Python runs the packages around a module before it; those around the importer are running already
        edges[module] = direct | {package for target in direct for package in around(target) if package not in own}
    for importer, package in EAGER.items():
        edges[importer] |= {module for module in modules() if package in around(module)[:-1]}
    return edges


def rooms(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return which rooms every room imports."""
    found: dict[str, set[str]] = {}
    for module, others in edges.items():
        room = module.split(".")[0]
        found.setdefault(room, set()).update({other.split(".")[0] for other in others} - {room})
    return found


def circle(edges: dict[str, set[str]]) -> str:
    """Return a circle in words, empty if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


def test_no_chain_of_imports_comes_back() -> None:
    assert circle(graph()) == ""


def test_no_chain_of_rooms_comes_back() -> None:
    edges = rooms(graph())
    assert circle({room: others - {"__init__"} for room, others in edges.items()}) == ""


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("data.tables.table", "from .encoding import Column"),
        ("data.tables.table", "def f():\n    from advcli.data.tables import tabular"),
        ("data.source", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .registry import list_datasets"),
        ("data.sources.synthetic", "from .. import list_datasets"),
        ("learners.base", "from . import Method"),
        ("learners.hierarchical.attributes", "from . import FlatSVM"),
        ("solvers.base", "from .auto import plan"),
        ("losses.base", "def f():\n    from ..features.kernels import kernel_map\n    from ..problems.risk import Problem"),
        ("cli.task", "def f():\n    from .actions.run import Run"),
        ("core.errors", "def f():\n    from .. import learners"),
    ],
)
def test_a_new_circle_is_caught(module: str, source: str) -> None:
    assert module in circle(graph({module: source})).split(" <- ")


# ---- start-up time ----------------------------------------------------------------------------------------------------
def test_cli_imports_nothing_heavy_at_the_top() -> None:
    """Completion starts the program on every <TAB>."""
    names = [f"core/{name}.py" for name in ("errors", "paths", "plugins", "processes")]
    names += ["config/__init__.py", "config/schema.py", "config/words.py", "results/progress.py", "__init__.py", "__main__.py"]
    for path in [*(PACKAGE / name for name in names), *sorted((PACKAGE / "cli").rglob("*.py"))]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = ast.Module(body=[node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], type_ignores=[])
        heavy = {imported.split(".")[0] for _, imported in imports(top, path)} & HEAVY
        assert not heavy, f"{path} imports {sorted(heavy)} at the top; import them inside the functions that need them"
