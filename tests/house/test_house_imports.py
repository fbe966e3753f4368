"""The directions of imports are law: a table says what may import what, and no chain of imports comes back to its start.

An import counts wherever it stands: in a function, where it waits, and under TYPE_CHECKING, where it never runs. docs/extending.md tells
the law and why.
"""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "advcli"

EVERYONE = {"errors", "paths", "plugins", "programs", "registry", "rules"}
"""What every module may import; these import each other alone."""

# A room, or one of its modules: what it may import, beside those of everyone. The name of a room stands for all its modules.
# A module's line adds to those of the packages around it. Modules of one room may import each other, but for the packages in `APART`.
LAW = """
costs confusion        -
hyper limits progress streams  -
groups                 -
metrics compiled teams  -
abstention stored      -
protocol               hyper metrics
blocks                 -
supports               blocks compiled
config                 hyper protocol
config.explaining      files

losses                 costs compiled hierarchy.graph
features               compiled hyper stored teams
hierarchy              compiled
outputs                compiled
outputs.hierarchical   hierarchy.multilabel
problem                losses.base features.base teams
binary                 features.base
certificate            problem
block_problem          supports problem losses.base teams
solvers                problem binary compiled losses.base features.base features.kernel features.linear features.threshold
solvers                blocks block_problem supports teams
learners               certificate problem binary solvers losses features hierarchy confusion compiled costs hyper outputs groups stored
learners               blocks block_problem
learners.abstention    abstention
__init__               learners

files provenance steps spreadsheets  -
rows                   files
identity cell_files    files rows
records                cell_files files identity rows provenance
arrays                 files
proofs predictions     arrays records
proofs                 rows
data                   blocks files confusion groups hierarchy.graph
evaluation             blocks learners groups certificate features.shared compiled data hierarchy confusion metrics protocol hyper
evaluation             files limits records rows proofs predictions provenance streams
evaluation.jobs        config identity progress
evaluation.sweep       config progress
evaluation.estimates   config
evaluation.rough       config
models                 learners evaluation data features certificate files rows provenance stored steps spreadsheets
comparing              learners.labels evaluation reports files
distributed            learners solvers certificate problem losses features
foreign                arrays learners evaluation features problem certificate blocks block_problem

coverage               models abstention data files reports spreadsheets

statistics             -
reports                statistics hyper metrics files records rows spreadsheets
reports.sources        identity provenance
reports.makers         provenance
surfaces               losses
pictures               surfaces losses features learners evaluation models metrics hyper files outputs reports.drawing
pictures               reports.published_numbers spreadsheets
verify                 proofs files records rows data costs spreadsheets
testing                blocks learners losses features solvers problem certificate data metrics
testing.figures        records reports

__main__ cli           cli.main
cli.main               __init__ config files progress streams cli.actions cli.completion cli.console cli.hydra_app cli.task
cli.completion         cli.actions
cli.hydra_app          config cli.actions cli.launching cli.task
cli.launching          config limits cli.task
cli.task               config
cli.folders            config files records cli.console
cli.console            reports progress
cli.actions            config cli.console cli.folders cli.task
cli.actions.run        evaluation metrics progress records reports rows statistics
cli.actions.bench      data learners evaluation reports
cli.actions.fit        certificate evaluation learners models rows
cli.actions.model      models
cli.actions.runs       records
cli.actions.predict    models
cli.actions.certify    evaluation foreign
cli.actions.coverage   coverage models
cli.actions.verify     records verify
cli.actions.experiment  config.composing evaluation
cli.actions.export     records reports
cli.actions.report     config.composing evaluation pictures records reports statistics
cli.actions.check      files records reports
cli.actions.drop       records reports
cli.actions.data       data
"""
APART = {"cli", "cli.actions"}
"""Packages whose modules may import of each other only what a line says; in a line their name is that of their own ``__init__``."""

# Packages that import by name whatever stands in a folder.
DYNAMIC = {
    "losses": "losses",
    "features": "features",
    "solvers": "solvers",
    "learners": "learners",
    "pictures": "pictures",
    "data.registry": "data/sources",
    "cli.actions": "cli/actions",
}
HYDRA = {"hydra", "omegaconf", "hydra_plugins"}
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
    """Return the packages around a module, the room first."""
    names = module.split(".")
    return [".".join(names[:end]) for end in range(1, len(names))]


def imports(tree: ast.AST, path: Path) -> list[tuple[int, str]]:
    """Return (line, absolute dotted name) of every import in a file, wherever it stands."""
    package = ["advcli", *path.relative_to(PACKAGE).parts[:-1]]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found += [(node.lineno, f"{stem}.{alias.name}") for alias in node.names]
    return found


@cache
def targets(path: Path, source: str) -> list[tuple[int, str]]:
    """Return (line, module of ours) of every import: the module itself, or the one that has the imported name."""
    found = []
    for line, name in imports(ast.parse(source), path):
        top, _, rest = name.partition(".")
        if top == "advcli":
            module = rest if rest in modules() or rest == "_ext" else rest.rpartition(".")[0] or "__init__"
            found.append((line, module if module in modules() else module.split(".")[0]))
    return [(line, module) for line, module in found if module != module_name(path)]


# ---- the law ----------------------------------------------------------------------------------------------------------
@cache
def law() -> dict[str, set[str]]:
    """Return what every line allows."""
    lines: dict[str, set[str]] = {}
    for line in filter(None, LAW.splitlines()):
        left, right = line.split("  ", 1)
        for name in left.split():
            lines[name] = lines.get(name, set()) | set(right.split()) - {"-"}
    return lines | {name: set() for name in EVERYONE}


def violations(module: str, source: str) -> list[str]:
    """Return what is wrong with the imports of a module that has this source, line by line."""
    room = module.split(".")[0]
    lines = [name for name in (*around(module), module) if name in law()]
    allowed = set().union(EVERYONE, *(law()[name] for name in lines))
    path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    complaints = [
        f"advcli.{module}, line {line}: only cli and config may import {name}"
        for line, name in imports(ast.parse(source), path)
        if name.split(".")[0] in HYDRA and room not in {"cli", "config"}
    ]
    for line, target in targets(modules().get(module, path), source):
        named = {target, *(package for package in around(target) if package not in APART)}
        if not named & (allowed if room in APART else allowed | {room}):
            complaints.append(f"advcli.{module}, line {line}: imports advcli.{target}; the law allows {sorted(allowed)}")
    return complaints


def test_every_room_has_a_line() -> None:
    rooms = {module.split(".")[0] for module in modules()}
    assert rooms <= set(law()), f"add {sorted(rooms - set(law()))} to the law"


@pytest.mark.parametrize("module", modules())
def test_imports_follow_the_law(module: str) -> None:
    assert violations(module, modules()[module].read_text(encoding="utf-8")) == []


def test_the_law_allows_nothing_that_nobody_uses() -> None:
    used: dict[str, set[str]] = {}
    for module, path in modules().items():
        for _, target in targets(path, path.read_text(encoding="utf-8")):
            for name in (*around(module), module):
                used.setdefault(name, set()).update((target, *around(target)))
    idle = {name: sorted(allowed - used.get(name, set())) for name, allowed in law().items()}
    assert {name: rest for name, rest in idle.items() if rest} == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("losses.new", "import hydra"),
        ("losses.new", "from advcli.solvers import dual"),
        ("losses.new", "from ..solvers import dual"),
        ("evaluation.new", "def f():\n    from omegaconf import OmegaConf"),
        ("evaluation.new", "from .. import config"),
        ("solvers.new", "from ..certificate import certify"),
        ("solvers.new", "from ..features.kernel_pca import KernelPCAFeatures"),
        ("certificate", "from .solvers.dual import solve"),
        ("registry", "from .losses import make_loss"),
        ("reports.new", "from ..evaluation import runner"),
        ("data.new", "from ..records import ResultsFolder"),
        ("cli.console", "from ..learners import make_learner"),
        ("cli.launching", "from .actions import run"),
        ("cli.actions.new", "from .. import launching"),
        ("cli.actions.new", "from .run import Run"),
        ("cli.actions.new", "def f():\n    from ... import models"),
        ("verify.new", "from ..solvers import dual"),
        ("verify.new", "from ..losses import make_loss"),
        ("verify.new", "from ..features.linear import LinearFeatures"),
        ("verify.new", "from ..learners import make_learner"),
        ("verify.new", "from ..compiled import kernels"),
        ("verify.new", "from .._ext import oracle_scalar"),
        ("verify.new", "from ..evaluation.splits import random_splits"),
    ],
)
def test_the_law_catches_a_forbidden_import(module: str, source: str) -> None:
    assert violations(module, source)


# ---- circles ----------------------------------------------------------------------------------------------------------
def graph(changed: dict[str, str] | None = None) -> dict[str, set[str]]:
    """Return which modules every module imports, with the packages around them; ``changed`` holds other sources of some."""
    found: dict[str, set[str]] = {}
    for module, path in modules().items():
        own = {module, *around(module)}
        direct = {target for _, target in targets(path, (changed or {}).get(module) or path.read_text(encoding="utf-8"))}
        # Python runs the packages around a module before it; those around the importer are running already
        found[module] = direct | {package for target in direct for package in around(target) if package not in own}
    for module, folder in DYNAMIC.items():
        own = {module, *around(module)}
        inside = [folder.replace("/", ".") + "." + path.stem for path in (PACKAGE / folder).glob("*.py") if path.stem != "__init__"]
        inside += [module_name(path) for path in (PACKAGE / folder).glob("*/__init__.py")]
        found[module] |= set(inside) - own
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


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("data.table", "from .encoding import Column"),
        ("data.table", "def f():\n    from .label_sets import read_label_sets"),
        ("data.table", "def f():\n    from advcli.data import tabular"),
        ("data.source", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .listing import list_datasets"),
        ("data.sources.synthetic", "from ..registry import load"),
        ("data.sources.synthetic", "from .. import list_datasets"),
        ("learners.base", "from . import make_learner"),
        ("learners.hierarchical.attributes", "from . import FlatSVM"),
        ("solvers.base", "from .auto import plan"),
        ("losses.base", "def f():\n    from ..features import kernel\n    from ..problem import Problem"),
        ("cli.task", "def f():\n    from .actions.run import Run"),
        ("errors", "def f():\n    from . import learners"),
    ],
)
def test_a_new_circle_is_caught(module: str, source: str) -> None:
    assert module in circle(graph({module: source})).split(" <- ")


# ---- start-up time ----------------------------------------------------------------------------------------------------
def test_cli_imports_nothing_heavy_at_the_top() -> None:
    """Completion starts the program on every <TAB>."""
    names = (
        "config/__init__.py",
        "config/schema.py",
        "config/words.py",
        "errors.py",
        "paths.py",
        "plugins.py",
        "progress.py",
        "limits.py",
        "__init__.py",
        "__main__.py",
    )
    for path in [*(PACKAGE / name for name in names), *sorted((PACKAGE / "cli").rglob("*.py"))]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        top = ast.Module(body=[node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], type_ignores=[])
        heavy = {imported.split(".")[0] for _, imported in imports(top, path)} & HEAVY
        assert not heavy, f"{path} imports {sorted(heavy)} at the top; import them inside the functions that need them"
