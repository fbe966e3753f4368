"""One referee: `certify` and `judge` of advcli/problems/certificate.py make certificates, a model file restores them, nobody else does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "advcli"


def makers(source: str) -> list[str]:
    """Return what a file does to make a certificate by itself: a call of the class, a copy with other values, a subclass."""
    tree, found = ast.parse(source), []
    names = {"Certificate"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.name == "Certificate" and alias.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _name(node.value) in names:
            found.append(f"line {node.lineno} gives the class another name")
        if isinstance(node, ast.ClassDef) and names & {_name(base) for base in node.bases}:
            found.append(f"line {node.lineno} derives from it")
        if not isinstance(node, ast.Call):
            continue
        if _name(node.func) in names:
            found.append(f"line {node.lineno} calls it")
        elif isinstance(node.func, ast.Attribute) and _name(node.func.value) in names:
            found.append(f"line {node.lineno} calls its {node.func.attr}")
        elif _name(node.func) == "replace" and node.args and "certificate" in ast.unparse(node.args[0]).lower():
            found.append(f"line {node.lineno} replaces values of one")
    return found


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def sources() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "conf" not in path.relative_to(PACKAGE).parts)


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_certificates_have_one_maker(path: Path) -> None:
    found = makers(path.read_text(encoding="utf-8"))
    where = path.relative_to(PACKAGE).as_posix()
    if where == "problems/certificate.py":
        assert found
    elif where == "models/restored.py":
        assert [each.split(" ", 2)[2] for each in found] == ["calls its restored"]
    else:
        assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "Certificate(1.0, 0.9)",
        "from ..certificate import Certificate as Own\nOwn(1.0, 0.9)",
        "import advcli.problems.certificate as room\nroom.Certificate(primal=1.0)",
        "Certificate.restored({})",
        "made = Certificate\nmade()",
        "class Mine(Certificate): ...",
        "replace(self.certificate_, dual=1.0)",
        "dataclasses.replace(certificate, converged=True)",
    ],
)
def test_another_maker_is_seen(source: str) -> None:
    assert makers(source)
