"""README and the pages of docs/: their files are written, their commands run, and what they say is printed is printed.

A fenced block whose first line names a path (```yaml my/loss/x.yaml) is that file. ```sh blocks are commands, run in order in one folder
for the page; ```sh slow only has to compose. A ```text block after a command holds lines of its output, where ``...`` at an end of a line
stands for the rest of it; ```python blocks without a path are run. Figures are drawn by the command above a ```text block that names some.
A backslash at the end of a line continues a command.
The pages `LONG` are among the long tests.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from support.nursery import nursery
from support.quick_pages import DRAWN

from advcli.cli import main
from advcli.data.catalogue import stored_set

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "notes")
NOTES = sorted((ROOT / "docs" / "notes").glob("*.md"))
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


def part_of(line: str) -> str:
    """Return what a page shows of a line of output."""
    return line.strip().removeprefix("... ").removesuffix(" ...")


FIGURE = re.compile(r"\d+\.\d+ \(\d+\.\d+\)")

MOST_ENTRIES = 8  # of a list of pages, which a menu shows at once
# Pages whose commands take more than some seconds together.
LONG = (
    "abstention",
    "answers",
    "calibration",
    "choosing-a-loss",
    "costs",
    "data-set",
    "features",
    "figure",
    "hierarchical",
    "learner",
    "loss",
    "metric",
    "noise",
    "notebook",
    "ordinal",
    "outside",
    "own-data",
    "preset",
    "reproducing",
    "results",
    "solver",
    "splits",
    "sweeps",
)


@pytest.mark.slow
def test_the_main_job_gives_the_table_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(["+experiment=quickstart", "dataset=iris,wine", "workers=1"], capfd)  # the others take longer
    marked = re.compile(FIGURE.pattern + "(?: [*=])?")
    for name in ("iris", "wine"):
        shown = next(line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {name} |"))
        fresh = next(line for line in said.splitlines() if line.startswith(f"{name} "))
        assert len(marked.findall(shown)) == 4
        assert marked.findall(fresh) == marked.findall(shown)


def test_answers_are_five_lines_at_most() -> None:
    """Beside imports and the rows of the page, which one file makes; every answer cites its thread."""
    page = ROOT / "docs" / "howto" / "answers.md"
    answers = [(language, text) for language, name, text in blocks(page) if language in ("python", "sh") and not name]
    lines = [[line for line in text.splitlines() if line.strip() and not line.startswith(("import ", "from "))] for _, text in answers]
    assert [own for own in lines if len(own) > 5] == []
    asked = page.read_text(encoding="utf-8").split("\n### ")[1:]
    assert len(asked) == len(answers) == 20
    assert [
        text.splitlines()[0] for text in asked if not re.search(r"\]\(https://github.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+\)", text)
    ] == []


def lacks_data(command: str) -> bool:
    """Return whether a command names a data set that is not in the folder of data sets; `fetch` gets it there."""
    named = [stored_set(name) for names in re.findall(r"dataset=([\w,]+)", command) for name in names.split(",")]
    folder = Path(os.environ["ADVCLI_DATA"])
    return any(not (folder / file).is_file() for known in named if known is not None for file in known.files)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=[pytest.mark.slow] if page.stem in LONG else [])
        for page in (README, *PAGES)
    ],
)
def test_everything_on_the_page_works(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVCLI_PLUGINS", "")
    said, skipped = "", ""
    for (language, name, content), following in pairwise([*blocks(page), ("", "", "")]):
        if name and language != "sh":
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        elif language == "sh":
            said, lines = "", content.replace("\\\n", " ").splitlines()
            for number, line in enumerate(lines, start=1):
                words = shlex.split(line, comments=True)
                if number == len(lines) and following[0] == "text" and "plots/" in following[2]:
                    monkeypatch.setenv(DRAWN, "1")
                else:
                    monkeypatch.delenv(DRAWN, raising=False)
                assert words[0] == "advcli", f"only advcli is run here: {line}"
                if name == "slow":
                    run([*words[1:], "--cfg", "job"], capfd)
                elif lacks_data(line):
                    said, skipped = "skip", line
                else:
                    said += run([*words[1:], *(["workers=1"] if "-m" in words else [])], capfd)
        elif language == "python":
            done = nursery().run(content)
            assert done.returncode == 0, done.stderr
            said = done.stdout
        elif language == "text" and said != "skip":
            missing = [line for line in content.splitlines() if part_of(line) not in ("", "...") and part_of(line) not in said]
            assert not missing, f"{page.name} says {missing}, but the output is\n{said}"
    if skipped:
        pytest.skip(f"all but the commands on the papers' data, which are not here: {skipped}")


@pytest.mark.parametrize("page", [README, *PAGES, *NOTES], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    files = [target for target in targets if "://" not in target]
    assert [target for target in files if not (page.parent / target).exists()] == []
    # Sphinx copies other files into the site, but knows no page outside it
    outside = [target for target in files if target.endswith(".md") and not (page.parent / target).resolve().is_relative_to(ROOT / "docs")]
    assert page == README or outside == []


def test_every_page_is_in_a_list_of_its_section() -> None:
    """A page that no toctree names is in no menu of the site."""
    named = set()
    for page in (ROOT / "docs").rglob("*.md"):
        for listed in re.findall(r"^```{toctree}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            entries = [line for line in listed.splitlines() if line and not line.startswith(":")]
            assert len(entries) <= MOST_ENTRIES, f"{page} lists {len(entries)} pages"
            for entry in entries:
                at = page.parent / re.sub(r".*<(.*)>", r"\1", entry)
                named |= {path.resolve() for path in at.parent.glob(f"{at.name}.md")}
    unlisted = [page for page in (ROOT / "docs").rglob("*.md") if page.resolve() not in named and page != ROOT / "docs" / "index.md"]
    assert unlisted == []


def test_no_column_is_without_a_name() -> None:
    tables = {page: re.findall(r"^(\|.*\|)\n\|---", page.read_text(encoding="utf-8"), re.MULTILINE) for page in (README, *PAGES)}
    assert [(page.name, head) for page, heads in tables.items() for head in heads if re.search(r"\| +\|", head)] == []
