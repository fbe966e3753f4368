"""A release knows the code that makes its numbers: no other code may carry its version.

`make release-check` compares that code with the last ``numbers.txt``: a change of it is either harmless or raises NUMBERS_VERSION.
It then writes the checksum of every such file beside the version of the release. Between releases nothing is compared.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

from advcli.results.tables import NUMBERS_VERSION

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_name("numbers.txt")
"""Written by the first release."""

# Rooms, or modules of one, that change no value of a row; whatever is not named here may.
NO_NUMBERS = {"__init__", "__main__", "cli", "models", "reports", "results"}
NO_NUMBERS |= {f"core.{name}" for name in ("errors", "files", "paths", "plugins", "processes", "stored_arrays")}
NO_NUMBERS |= {f"config.{name}" for name in ("schema", "words", "composing", "products", "presets", "explaining")}
NO_NUMBERS |= {f"statistics.{name}" for name in ("tests", "marks", "across", "items")}


def makes_numbers(path: Path) -> bool:
    """Tell whether a file of the package may change a value of a row."""
    parts = path.relative_to(ROOT / "advcli").with_suffix("").parts
    return not NO_NUMBERS & {".".join(parts[:end]) for end in range(1, len(parts) + 1)} and parts[0] != "conf" and parts[-1] != "__init__"


def sources() -> list[Path]:
    """Return the files that make numbers: Python of the package, kernels and their headers, and how they are compiled."""
    package = ROOT / "advcli"
    python = [path for path in package.rglob("*.py") if makes_numbers(path)]
    return sorted([*python, *(ROOT / "_ext").rglob("*.pyx"), *(ROOT / "_ext").rglob("*.px[di]"), ROOT / "meson.build"])


def code(text: str, python: bool) -> str:
    """Return a source without comments, docstrings and empty lines; the same text under every version of Python.

    Of other files only whole lines of comments are left out: Python's tokenizer does not read Cython.
    """
    lines = text.splitlines()
    if not python:
        return "\n".join(line.rstrip() for line in lines if line.strip() and not line.strip().startswith("#"))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line - 1] = lines[line - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            said = node.body[0]
            assert said.end_lineno is not None
            lines[said.lineno - 1 : said.end_lineno] = [""] * (said.end_lineno - said.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def checksum(path: Path) -> str:
    return hashlib.sha256(code(path.read_text(encoding="utf-8"), path.suffix == ".py").encode()).hexdigest()[:16]


@functools.cache
def found() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): checksum(path) for path in sources()}


def version() -> str:
    """Return the version that meson.build gives to the package."""
    stated = re.search(r"^\s*version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8"), re.MULTILINE)
    assert stated is not None
    return stated[1]


def released(text: str) -> tuple[str, int, dict[str, str]]:
    """Return the version, the NUMBERS_VERSION and the checksums of a numbers.txt."""
    (release, numbers), *lines = (line.split() for line in text.splitlines())
    return release, int(numbers), dict(lines)


def complaint(text: str, release: str, numbers: int, now: dict[str, str]) -> str:
    """Return what is wrong with a version that has these checksums, after the release of a numbers.txt; empty if nothing is."""
    last, last_numbers, before = released(text)
    changed = ", ".join(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
    if last == release and (changed or numbers != last_numbers):
        return (
            f"{release} is released, with other code that makes numbers: {changed or 'NUMBERS_VERSION'}; raise the version in meson.build"
        )
    if changed and numbers == last_numbers:
        return (
            f"code that makes numbers has changed since {last}: {changed}. If a row of any cell may differ, raise NUMBERS_VERSION in "
            "advcli/results/tables.py: resumed sweeps then compute their cells again"
        )
    return ""


def test_a_released_version_keeps_the_code_that_makes_its_numbers() -> None:
    if KEPT.is_file() and released(text := KEPT.read_text(encoding="utf-8"))[0] == version():
        assert complaint(text, version(), NUMBERS_VERSION, found()) == ""


def test_changed_code_raises_one_of_the_versions() -> None:
    text = "1.0 1\na.py aaaa\nb.py bbbb\n"
    same, other = {"a.py": "aaaa", "b.py": "bbbb"}, {"a.py": "aaaa", "c.py": "bbbb"}
    assert complaint(text, "1.0", 1, same) == complaint(text, "1.1", 1, same) == complaint(text, "1.1", 2, other) == ""
    assert "b.py, c.py; raise the version" in complaint(text, "1.0", 2, other)
    assert "since 1.0: b.py, c.py. If a row" in complaint(text, "1.1", 1, other)


def test_what_makes_numbers_is_watched() -> None:
    names = found()
    parts = (
        "losses/zero_one.py",
        "solvers/newton/linear.py",
        "features/kernels/kernel_map.py",
        "evaluation/selection.py",
        "learners/base.py",
        "data/tables/table.py",
    )
    for name in (
        *(f"advcli/{part}" for part in parts),
        "advcli/learners/surrogate.py",
        "advcli/problems/certificate.py",
        "_ext/families/adv_zero_one.pxd",
        "meson.build",
    ):
        assert name in names
    assert any(name.endswith(".pyx") for name in names)
    assert not any(name.startswith(("advcli/reports", "advcli/cli")) for name in names)


PYTHON = '''
"""A module."""


def step(x):  # of the ascent
    """Return the step."""
    # half of it
    return x / 2, "# no comment"


class Part:
    """A part."""

    size = 1
'''
KERNEL = "# a header\ncdef inline double step(double x) noexcept nogil:\n    # half\n    return x / 2\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A module.", "Another\nmodule."),
        ("of the ascent", "up"),
        ("    # half of it\n", ""),
        ("Return the step.", "The step."),
        ("\n\n", "\n\n\n"),
    ],
)
def test_words_are_no_code(old: str, new: str) -> None:
    assert old in PYTHON
    assert code(PYTHON.replace(old, new), python=True) == code(PYTHON, python=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [("x / 2", "x / 3"), ("# no comment", "# another"), ("    size", "size"), ("    return x", "    if x:\n        return x")],
)
def test_code_is_code(old: str, new: str) -> None:
    assert old in PYTHON
    assert code(PYTHON.replace(old, new), python=True) != code(PYTHON, python=True)


def test_kernels_are_read_by_lines() -> None:
    assert code(KERNEL.replace("half", "one half").replace("# a header\n", "\n"), python=False) == code(KERNEL, python=False)
    assert code(KERNEL.replace("/ 2", "/ 3"), python=False) != code(KERNEL, python=False)


if __name__ == "__main__":
    wrong = complaint(KEPT.read_text(encoding="utf-8"), version(), NUMBERS_VERSION, found()) if KEPT.is_file() else ""
    if wrong and "--same-rows" not in sys.argv:
        sys.exit(f"{wrong}; if none does: make release-check SAME_ROWS=1")
    KEPT.write_text("\n".join([f"{version()} {NUMBERS_VERSION}", *(f"{name} {text}" for name, text in found().items())]) + "\n")
    print(f"{KEPT.relative_to(ROOT)}: {len(found())} files of version {version()}")
