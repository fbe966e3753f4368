"""The built site in a real browser: every page opens, no link leads nowhere, no picture is missing, nothing is asked from the network.

`make docs` builds it and runs this; without a built site there is nothing to open.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(os.environ.get("ADVCLI_SITE", Path(__file__).resolve().parents[2] / "build" / "site"))
MADE_BY_SCRIPTS = {"#"}
GALLERY = sorted((Path(__file__).resolve().parents[2] / "docs" / "gallery").glob("plot_*.py"))

SEEN = """
return {
  links: [...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href')),
  ids: [...document.querySelectorAll('[id]')].map(e => e.id),
  blank: [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.getAttribute('src')),
  asked: performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('file:') && !n.startsWith('data:')),
  text: document.body.innerText.length,
}
"""

FOUND = "return [...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href'))"


def pages() -> list[Path]:
    """Return the pages; templates of the theme lie among its static files."""
    return [path for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts]


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built; make docs builds it")
def test_every_page_opens_and_every_link_leads_somewhere(browser: Any) -> None:
    seen = {}
    for path in pages():
        browser.get(path.as_uri())
        seen[path] = browser.execute_script(SEEN)
        errors = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert errors == [], f"{path}: {errors}"
        assert seen[path]["blank"] == [], f"{path}: pictures that do not show"
        assert seen[path]["asked"] == [], f"{path} asks the network"
    assert len(seen) > 60
    broken = []
    for path, found in seen.items():
        for link in set(found["links"]) - MADE_BY_SCRIPTS:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            at = unquote(parts.fragment)
            if not target.exists() or (at and target in seen and at not in seen[target]["ids"]):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert broken == []


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built; make docs builds it")
def test_light_and_dark_and_search(browser: Any) -> None:
    start = (SITE / "index.html").as_uri()
    browser.get(start)
    grounds = set()
    for mode in ("light", "dark"):
        browser.execute_script("document.documentElement.dataset.theme = arguments[0]", mode)
        grounds.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    for words, wanted in (("wilcoxon", "statistics"), ("protocol.n_splits", "reference/protocols"), ("duality gap", "certificate")):
        browser.get((SITE / "search.html").as_uri() + "?q=" + words.replace(" ", "+"))
        wait(browser, 60).until(lambda page, wanted=wanted: any(wanted in link for link in page.execute_script(FOUND)))


@pytest.mark.slow
@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built; make docs builds it")
def test_formulas_are_typeset_and_pages_are_linked(browser: Any) -> None:
    browser.get((SITE / "explanation" / "certificate.html").as_uri())
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
    wait(browser, 60).until(lambda page: page.execute_script("return document.querySelectorAll('mjx-container svg').length") > 2)
    for what in (".prev-next-area a", ".bd-sidebar-primary nav a", "button.copybtn", ".bd-footer"):
        assert browser.execute_script("return document.querySelectorAll(arguments[0]).length", what), what


def test_the_gallery_has_fifteen_examples() -> None:
    assert len(GALLERY) == 15


@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built; make docs builds it")
@pytest.mark.slow
def test_every_example_has_its_picture() -> None:
    without = [path.stem for path in GALLERY if not list((SITE / "_images").glob(f"sphx_glr_{path.stem}_*.png"))]
    assert without == []
