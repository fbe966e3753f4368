"""The directions of imports are law: read the source, compare every import with the table of what each part may use."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "advcli"
EVERYONE = {"errors", "paths", "plugins", "registry", "rules"}
# cli.actions names the package's own __init__, the registry
ACTION = {"config", "cli.actions", "cli.console", "cli.folders", "cli.task"}

# Part of the package -> the parts it may import, beside those of EVERYONE and itself. A dotted name allows that module only.
# A module of a part may have its own line (the longest name counts); it then says which modules of its own part it may import, too.
ALLOWED: dict[str, set[str]] = {
    "__init__": {"learners"},
    "__main__": {"cli"},
    "cli": {"cli.main"},
    "cli.main": {"__init__", "config", "cli.actions", "cli.completion", "cli.console", "cli.hydra_app", "cli.task"},
    "cli.completion": {"cli.actions"},
    "cli.hydra_app": {"config", "cli.actions", "cli.launching", "cli.task"},
    "cli.launching": {"config", "limits", "cli.task"},
    "cli.task": {"config"},
    "cli.folders": {"config", "cli.console"},
    "cli.console": {"reports"},
    # what every action may use; an action that needs more of the package has its own line
    "cli.actions": ACTION,
    "cli.actions.run": ACTION | {"metrics", "evaluation", "progress", "records", "reports"},
    "cli.actions.report": ACTION | {"losses", "records", "reports", "surfaces"},
    "cli.actions.check": ACTION | {"records", "reports"},
    "cli.actions.fit": ACTION | {"evaluation", "models"},
    "cli.actions.predict": ACTION | {"models"},
    "cli.actions.bench": ACTION | {"data", "learners", "evaluation", "reports"},
    "cli.actions.verify": ACTION | {"records", "verify"},
    "cli.actions.certify": ACTION | {"evaluation", "foreign"},
    "cli.actions.data": ACTION | {"data"},
    "config": {"hyper", "protocol"},
    "learners": {"problem", "certificate", "solvers", "features", "losses", "compiled", "confusion", "hierarchy", "hyper"},
    "metrics": set(),
    "protocol": {"hyper", "metrics"},
    "confusion": set(),
    "hierarchy": {"compiled"},
    "evaluation": {
        "evaluation",
        "learners",
        "features.shared",
        "data",
        "metrics",
        "protocol",
        "records",
        "proofs",
        "confusion",
        "limits",
        "hierarchy",
        "hyper",
    },
    # the two that know a configuration: cells as jobs, and the sweep of notebooks, which composes words
    "evaluation.jobs": {"evaluation", "config", "learners", "data", "limits", "metrics", "progress", "protocol", "records"},
    "evaluation.sweep": {"evaluation", "config", "limits", "progress"},
    "models": {"learners", "evaluation", "data", "records", "features", "losses", "certificate"},
    "foreign": {"learners", "evaluation", "features", "problem", "certificate"},
    "records": set(),
    "proofs": {"records"},
    # the second referee: nothing of what it judges, formulas written anew on purpose
    "verify": {"proofs", "records", "data", "costs"},
    "reports": {"records", "metrics", "statistics"},
    "statistics": {"records"},
    "problem": {"losses.base", "features.base", "compiled"},
    "certificate": {"problem"},
    "surfaces": {"losses"},
    "testing": {"data", "records", "reports", "learners", "losses", "solvers", "features", "metrics", "problem", "certificate"},
    # a kernel solver is bound to kernel features, and its Newton step to their explicit linear form
    "solvers": {"problem", "losses.base", "features.base", "features.kernel", "features.linear", "features.threshold", "compiled"},
    "features": {"compiled", "hyper"},
    "losses": {"costs", "compiled"},
    "costs": set(),
    "hyper": set(),
    "data": {"confusion", "hierarchy"},  # label noise is drawn from a confusion matrix; a hierarchy is checked where it is read
    "limits": set(),
    "progress": set(),
    "errors": set(),
    "registry": set(),
    "rules": set(),
    "paths": set(),
    "plugins": set(),
    "compiled": {"_ext"},
}
HYDRA = {"hydra", "omegaconf", "hydra_plugins"}
HEAVY = {"pandas", "sklearn", "scipy", "numpy", "joblib", "matplotlib"}


def module_name(path: Path) -> str:
    """Return the dotted name below the package: ``losses.base``; a package is named by its folder."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts[-1] == "__init__" and len(parts) > 1:
        parts = parts[:-1]
    return ".".join(parts)


def imports(tree: ast.AST, path: Path) -> list[tuple[int, str]]:
    """Return (line, absolute dotted name) of every import in a file, wherever it stands."""
    package = ["advcli", *path.relative_to(PACKAGE).parts[:-1]]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1] + ([node.module] if node.module else [])
            else:
                base = [node.module or ""]
            # `from . import x` may name a module or a function: keep the longest name, the check looks at prefixes
            found += [(node.lineno, ".".join([*base, alias.name])) for alias in node.names]
    return found


def is_module(dotted: str) -> bool:
    path = PACKAGE / Path(*dotted.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def law(module: str) -> str:
    """Return the line of `ALLOWED` that counts for a module: its own, else that of the nearest package around it."""
    names = module.split(".")
    return next((name for at in range(len(names), 0, -1) if (name := ".".join(names[:at])) in ALLOWED), names[0])


def violations(path: Path, source: str) -> list[str]:
    module = module_name(path)
    part = module.split(".")[0]
    place = law(module)
    complaints = []
    for line, name in imports(ast.parse(source), path):
        top, _, rest = name.partition(".")
        if top in HYDRA and part not in {"cli", "config"}:
            complaints.append(f"advcli/{module}:{line} imports {top}, which only cli and config may")
        if top != "advcli":
            continue
        target = rest if is_module(rest) else rest.rpartition(".")[0]
        # a name that is no module belongs to the package's own __init__
        target = target or "__init__"
        first = target.split(".")[0]
        allowed = ALLOWED[place]
        if first in EVERYONE or target in allowed:
            continue
        if first == part:
            # where modules of this part have lines of their own, a line says whether it counts on the others
            refused = part not in allowed and any(entry.startswith(f"{part}.") for entry in ALLOWED)
        else:
            refused = first not in allowed and not any(target.startswith(f"{entry}.") for entry in allowed)
        if refused:
            complaints.append(f"advcli/{module}:{line} imports advcli.{target}; {place} may import {sorted(allowed | EVERYONE)}")
    return complaints


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "conf" not in path.relative_to(PACKAGE).parts)


def test_every_part_of_the_package_has_a_place_in_the_law() -> None:
    parts = {module_name(path).split(".")[0] for path in sources()}
    assert parts <= set(ALLOWED), f"add {sorted(parts - set(ALLOWED))} to the table of allowed imports"


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_imports_follow_the_law(path: Path) -> None:
    assert violations(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("losses/new.py", "import hydra"),
        ("losses/new.py", "from advcli.solvers import dual"),
        ("losses/new.py", "from ..solvers import dual"),
        ("evaluation/new.py", "def f():\n    from omegaconf import OmegaConf"),
        ("evaluation/new.py", "from .. import config"),
        ("solvers/new.py", "from ..certificate import certify"),
        ("certificate.py", "from .solvers.dual import solve"),
        ("reports/new.py", "from ..evaluation import runner"),
        ("data/new.py", "from ..records import ResultsFolder"),
        ("cli/console.py", "from ..learners import make_learner"),
        ("cli/launching.py", "from .actions import run"),
        ("cli/actions/new.py", "from .. import launching"),
        ("cli/actions/new.py", "from .run import Run"),
        ("cli/actions/new.py", "def f():\n    from ... import models"),
        ("verify/new.py", "from ..solvers import dual"),
        ("verify/new.py", "from ..losses import make_loss"),
        ("verify/new.py", "from ..features.linear import LinearFeatures"),
        ("verify/new.py", "from ..learners import make_learner"),
        ("verify/new.py", "from ..compiled import kernels"),
        ("verify/new.py", "from .._ext import oracle_scalar"),
        ("verify/new.py", "from ..evaluation.splits import random_splits"),
    ],
)
def test_the_law_catches_a_forbidden_import(module: str, source: str) -> None:
    assert violations(PACKAGE / module, source)


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
