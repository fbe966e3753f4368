"""One name means one thing: no two classes of the package share one, a reader who meets it alone knows what it is."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "advcli"

TWICE: dict[str, str] = {}
"""Names of several classes, and why they may be: nothing at present."""


def shared(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names of classes that several definitions have, a leading underscore aside, and where these are."""
    places = defaultdict(list)
    for where, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(where)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_name_of_a_class_is_used_twice() -> None:
    sources = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = shared(sources)
    assert {name: where for name, where in found.items() if name not in TWICE} == {}
    assert set(TWICE) <= set(found), "a name that is used once needs no permission"


def test_a_shared_name_is_seen() -> None:
    sources = {"a.py": "class Table: ...", "b.py": "def f():\n    class _Table: ...", "c.py": "class Other: ..."}
    assert shared(sources) == {"Table": ["a.py", "b.py"]}
