"""docs/write_reference.py: the pages that are made from the code are what the code gives, and leave nothing out."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest
from support.module_files import module_of

from advcli.cli.main import INTERRUPTED, UNREAD
from advcli.core import errors
from advcli.core.environment import VARIABLES
from advcli.core.paths import conf_dir
from advcli.verify.folder import VERDICT_MEANINGS, Verdict

ROOT = Path(__file__).resolve().parents[2]
READERS = ("os.getenv", "os.environ.get", "os.environ.setdefault", "os.environ.pop")


@pytest.fixture(scope="module")
def written() -> ModuleType:
    return module_of(ROOT / "docs" / "write_reference.py", "docs_write_reference")


# ---- the pages ----------------------------------------------------------------------------------------------------------
def test_the_pages_are_what_the_code_gives(written: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert written.main(["--check"]) == 0, capsys.readouterr().out


def test_a_stale_page_is_found_and_written(
    written: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(written, "HERE", tmp_path)
    monkeypatch.setattr(written, "PAGES", {"environment": written.PAGES["environment"]})
    assert written.main(["--check"]) == 1
    assert capsys.readouterr().out == "docs/reference/environment.md is not what the code gives\n"
    assert written.main([]) == 0
    assert "| `ADVCLI_DATA` |" in (tmp_path / "environment.md").read_text(encoding="utf-8")
    assert written.main(["--check"]) == 0


def test_every_key_and_column_has_a_meaning(written: ModuleType) -> None:
    for name in written.PAGES:
        for line in (written.HERE / f"{name}.md").read_text(encoding="utf-8").splitlines():
            assert not line.startswith("| `") or not line.endswith("|  |"), f"{name}.md: {line}"


def test_every_name_that_a_word_chooses_has_a_section(written: ModuleType) -> None:
    for group, name in written.PAGES_OF_GROUPS.items():
        sections = set(re.findall(r"^## (\w+)$", (written.HERE / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE))
        assert {file.stem for file in (conf_dir() / group).glob("*.yaml")} <= sections


# ---- the facts in the code ----------------------------------------------------------------------------------------------
def variables(source: str) -> Iterator[str]:
    """Yield the environment variables that a source reads or sets; a name of an upper-case constant stands for its text."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        named: ast.expr | None = None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            named = node.slice
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "os.getenv",
            "os.environ.get",
            "os.environ.setdefault",
            "os.environ.pop",
        ):
            named = node.args[0]
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == "os.environ":
            named = node.left
        if isinstance(named, ast.Constant):
            yield str(named.value)
        elif named is not None:  # a constant, perhaps of another module
            name = ast.unparse(named).rpartition(".")[2]
            yield str(constants.get(name, name))


def test_every_environment_variable_is_documented() -> None:
    found = {name for path in (ROOT / "advcli").rglob("*.py") for name in variables(path.read_text(encoding="utf-8"))}
    found |= {name for path in conf_dir().rglob("*.yaml") for name in re.findall(r"\$\{oc\.env:(\w+)", path.read_text(encoding="utf-8"))}
    found -= {"STARTED"}  # the constant of advcli.config behind ADVCLI_STARTED, where other modules read it
    assert found == set(VARIABLES)


@pytest.mark.parametrize(
    "source",
    ['os.environ["NEW"]', 'os.environ.get("NEW", "")', 'os.getenv("NEW")', '"NEW" in os.environ', 'HERE = "NEW"\nos.environ.get(HERE)'],
)
def test_a_new_environment_variable_is_seen(source: str) -> None:
    assert list(variables(source)) == ["NEW"]


def test_every_exit_code_is_documented() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AdvcliError)]
    signals = {128 + getattr(signal, name) for name in ("SIGTERM", "SIGHUP")}
    assert {0, INTERRUPTED, UNREAD, *signals, *(kind.exit_code for kind in kinds)} == set(errors.EXIT_CODES)


def test_the_columns_of_verify_csv_are_the_fields_of_a_verdict() -> None:
    assert list(VERDICT_MEANINGS) == [entry.name for entry in fields(Verdict)]
