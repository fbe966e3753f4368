"""The tables of data sets in the pages are those of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.module_files import module_of

from advcli.data.catalogue import CATALOGUE

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = module_of(DOCS / "data_sets.py", "docs_data_sets").pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_what_the_script_writes(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "run python docs/data_sets.py"


def test_every_set_has_a_row() -> None:
    text = PAGES[DOCS / "reference" / "data-sets.md"]
    assert all(f"\n| {name} " in text for sets in CATALOGUE.values() for name in sets)
