"""`make release` says in one line what is missing, before it builds anything; a whole release needs PyPI and is run by hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
FILES = {
    "meson.build": "project('advcli',\n  version: '1.2.3',\n)\n",
    "CHANGELOG.md": "# Changes\n\n## 1.2.3 (2030-01-01)\n",
    "tests/house/numbers.txt": "1.2.3 1\n",
    ".gitignore": ".venv\n",
}


FAILS = '#!/bin/sh\necho "python $*" >&2\nexit 9\n'
SHOWS_WHAT_IT_BUILDS = """#!/bin/sh
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  "-m build --outdir "*) git -C "$5" rev-parse --show-toplevel HEAD >&2; exit 9 ;;
esac
"""


def made(folder: Path, interpreter: str = FAILS, **changed: str) -> None:
    """Write a small repository with one commit and an interpreter that lets no release go on to its end."""
    for name, text in (FILES | changed).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / ".ci").mkdir()
    shutil.copy2(ROOT / ".ci" / "release", folder / ".ci" / "release")
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(interpreter, encoding="utf-8")
    python.chmod(0o755)
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Begin"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)


def release(folder: Path) -> tuple[int, str]:
    done = subprocess.run([folder / ".ci" / "release"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"CHANGELOG.md": "# Changes\n\n## 1.2.2 (2029-01-01)\n"}, "has no section 1.2.3"),
        ({"CHANGELOG.md": "# Changes\n\n## 1.2.3 (not released)\n"}, "says that 1.2.3 is not released"),
        ({"tests/house/numbers.txt": "1.2.2 1\n"}, "numbers.txt is not of 1.2.3"),
    ],
)
def test_an_unprepared_commit_is_refused(changed: dict[str, str], said: str, tmp_path: Path) -> None:
    made(tmp_path, **changed)
    code, line = release(tmp_path)
    assert (code, len(line.splitlines())) == (2, 1)
    assert said in line


def test_changes_and_an_existing_tag_are_refused(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "more.txt").write_text("", encoding="utf-8")
    assert release(tmp_path) == (2, "make release: the work tree has changes; commit them, so that the tag names what was built")
    (tmp_path / "more.txt").unlink()
    subprocess.run([*GIT, "tag", "v1.2.3"], cwd=tmp_path, check=True)
    assert release(tmp_path) == (2, "make release: the tag v1.2.3 exists; raise the version in meson.build")


def test_a_prepared_commit_goes_on_and_no_tag_is_made_where_a_step_fails(tmp_path: Path) -> None:
    made(tmp_path)
    code, line = release(tmp_path)
    assert (code, line) == (9, "python -m pytest -q tests/house/test_house_numbers.py")
    assert subprocess.run([*GIT, "tag"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout == ""


def test_what_is_built_is_a_repository_of_its_own_at_the_commit(tmp_path: Path) -> None:
    """The sdist takes the files that git knows, and none that lie beside them."""
    made(tmp_path, SHOWS_WHAT_IT_BUILDS)
    code, line = release(tmp_path)
    head = subprocess.run([*GIT, "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
    place, commit = line.splitlines()
    assert (code, commit) == (9, head)
    assert Path(place).name == "advcli-1.2.3"
    assert Path(place) != tmp_path
