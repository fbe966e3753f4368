"""Every name that the reference of the site lists is there; building the site takes minutes, this does not."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "site" / "api.rst").read_text(encoding="utf-8")


def names() -> list[str]:
    """Return the dotted names that the page lists, each behind its current module."""
    found, module = [], ""
    for line in PAGE.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split(":: ")[1]
        elif re.fullmatch(r"   [A-Za-z_][\w.]*", line):
            found.append(f"{module}.{line.strip()}")
    return found


@pytest.mark.parametrize("name", names())
def test_a_name_of_the_reference_is_there(name: str) -> None:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            there = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            there = getattr(there, attribute)
        return
    pytest.fail(f"no module {parts[0]}")
