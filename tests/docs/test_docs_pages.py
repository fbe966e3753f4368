"""The pages of docs/: their files are written, their commands run, and what they say is printed is printed.

A fenced block whose first line names a path (```yaml my/loss/x.yaml) is that file. ```sh blocks are commands, run in order in one folder
for the page; ```sh slow only has to compose. A ```text block after a command holds lines of its output, ```python blocks without a path
are run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from advcli.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w*) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (language, rest of the first line, content) of every fenced block."""
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield match[1], match[2], match[3]


def run(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """Run advcli in this process, which saves its start, and return what it printed."""
    capfd.readouterr()
    code = main(words)
    out, err = capfd.readouterr()
    assert code == 0, f"{shlex.join(words)}\n{out}{err}"
    assert "Traceback" not in err
    return out + err


def needs_data(command: str) -> bool:
    return any(f"dataset={name}" in command for name in ("glass", "diabetes"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_everything_on_the_page_works(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    said, skipped = "", ""
    for language, name, content in blocks(page):
        if name and language != "sh":
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        elif language == "sh":
            said = ""
            for line in content.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                assert words[0] == "advcli", f"only advcli is run here: {line}"
                if name == "slow":
                    run([*words[1:], "--cfg", "job"], capfd)
                elif needs_data(line) and not os.environ.get("ADVCLI_DATA"):
                    said, skipped = "skip", line
                else:
                    said += run(words[1:], capfd)
        elif language == "python":
            done = subprocess.run([sys.executable, "-c", content], capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            said = done.stdout
        elif language == "text" and said != "skip":
            missing = [line for line in content.splitlines() if line.strip() and line.strip() not in said]
            assert not missing, f"{page.name} says {missing}, but the output is\n{said}"
    if skipped:
        pytest.skip(f"all but the commands on the papers' data, which need ADVCLI_DATA: {skipped}")


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []


def test_the_readme_names_every_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"docs/{page.name}" not in text] == []
