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


def test_certificates_have_one_maker() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): makers(path.read_text(encoding="utf-8")) for path in sources()}
    assert found.pop("problems/certificate.py")
    assert [each.split(" ", 2)[2] for each in found.pop("models/restored.py")] == ["calls its restored"]
    assert {where: made for where, made in found.items() if made} == {}


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
