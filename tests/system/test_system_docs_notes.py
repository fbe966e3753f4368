"""docs/notes: what docstrings, comments and pages cite there exists, and nothing cites notes that the repository does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTES = ROOT / "docs" / "notes"
PAGES = sorted(path for path in NOTES.glob("*.md") if path.name != "README.md")
FOLDERS = {"advcli": ("*.py", "*.yaml"), "_ext": ("*.pyx", "*.pxd"), "tests": ("*.py",), "docs": ("*.md", "*.py")}

CITED = re.compile(r"\bdocs/notes/([\w-]+)\.md(?:, sections? (\d+)(?: and (\d+))?)?")
BETWEEN_PAGES = re.compile(r"(?<![\w/-])([\w-]+)\.md, sections? (\d+)(?: and (\d+))?")
# A note without a file: "the large-C note, section 3.5", "performance note, item 2", "kernels.md, §3", 'spec "Surrogates"'.
ELSEWHERE = re.compile(
    r"\bnotes?,? (?:section|item)|\berrata [A-Z]\d|\bspec \"|§"
    r"|\b(?:performance|large-C|kernels?|hierarchical|surrogates?|structured) note\b",
    re.IGNORECASE,
)


def joined(text: str) -> str:
    """Return a text with every line break, and the comment sign after it, as one space."""
    return re.sub(r"\s*\n\s*(?:# ?)?", " ", text)


def sources() -> Iterator[tuple[Path, str]]:
    """Yield every file that may cite a note, but this one, and its text without line breaks."""
    paths = [path for folder, kinds in FOLDERS.items() for kind in kinds for path in (ROOT / folder).rglob(kind)]
    for path in sorted([*paths, ROOT / "README.md"]):
        if path != Path(__file__).resolve():
            yield path.relative_to(ROOT), joined(path.read_text(encoding="utf-8"))


def sections(page: Path) -> list[int]:
    """Return the numbers of a page's sections, in their order."""
    return [int(number) for number in re.findall(r"^## (\d+)\. \S", page.read_text(encoding="utf-8"), re.MULTILINE)]


def missing(text: str, citation: re.Pattern[str]) -> list[str]:
    """Return the citations of a text whose page or section does not exist."""
    lost = []
    for found in citation.finditer(text):
        page = NOTES / f"{found[1]}.md"
        wanted = [int(number) for number in found.groups()[1:] if number]
        if not page.is_file() or not set(wanted) <= set(sections(page) if wanted else ()):
            lost.append(found[0])
    return lost


def test_every_cited_section_exists() -> None:
    lost = {str(path): found for path, text in sources() if (found := missing(text, CITED))}
    assert not lost
    assert sum(len(CITED.findall(text)) for path, text in sources() if path.suffix in (".py", ".pyx", ".pxd")) >= 15


def test_nothing_cites_a_note_that_the_repository_lacks() -> None:
    assert not {str(path): found[0] for path, text in sources() if (found := ELSEWHERE.search(text))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_numbered_sections_and_cites_other_pages_rightly(page: Path) -> None:
    numbers = sections(page)
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 1
    assert not missing(joined(page.read_text(encoding="utf-8")), BETWEEN_PAGES)
    assert f"[{page.name}]({page.name})" in (NOTES / "README.md").read_text(encoding="utf-8")


def test_the_index_cites_its_pages_rightly() -> None:
    index = joined((NOTES / "README.md").read_text(encoding="utf-8"))
    assert BETWEEN_PAGES.search(index)
    assert not missing(index, BETWEEN_PAGES)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("see docs/notes/large-c.md, section 3.", 0),
        ("see docs/notes/large-c.md.", 0),
        ("see docs/notes/large-c.md, section 99", 1),
        ("see docs/notes/nothing.md", 1),
        ("# (docs/notes/large-c.md,\n# section 99)", 1),
        ("docs/notes/large-c.md, sections 2 and 99", 1),
    ],
)
def test_a_citation_without_its_section_is_found(text: str, lost: int) -> None:
    assert len(missing(joined(text), CITED)) == lost


@pytest.mark.parametrize(
    "text",
    ["(large-C note, section 3.5)", "as in the performance\n# note, item 2", "(kernels.md, §3)", "the large-C\nnote", "(errata F17)"],
)
def test_an_old_citation_is_found(text: str) -> None:
    assert ELSEWHERE.search(joined(text))
