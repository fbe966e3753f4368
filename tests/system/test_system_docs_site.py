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
  menu: Math.max(0, ...[...document.querySelectorAll('.bd-sidebar-primary nav ul')].filter(e => e.checkVisibility())
    .map(e => e.children.length)),
}
"""

MOST_ENTRIES = 8  # of a level of the menu
NARROW = 400  # pixels of a narrow screen
WIDE = """
const wide = [], width = document.documentElement.clientWidth;
for (const e of document.querySelectorAll('.bd-article *')) {
  let box = e;
  while (box && getComputedStyle(box).overflowX == 'visible') box = box.parentElement;
  if (!(box && box.closest('.bd-article')) && e.getBoundingClientRect().right > width + 1) wide.push(e.outerHTML.slice(0, 80));
}
return {page: document.documentElement.scrollWidth - width, wide: wide};
"""

# The least ratio of luminances of WCAG 2.1 for text (AA), of every colour of text on its ground.
CONTRAST = 4.5
PALE = """
document.head.append(Object.assign(document.createElement('style'), {textContent: '* { transition: none !important }'}));
const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
const over = (top, below) => [0, 1, 2].map(at => top[at] * (top[3] ?? 1) + below[at] * (1 - (top[3] ?? 1)));
const ground = e => e ? over(numbers(getComputedStyle(e).backgroundColor), ground(e.parentElement)) : [255, 255, 255];
const pale = {};
for (const e of document.querySelectorAll('body *')) {
  if (!e.checkVisibility({opacityProperty: true, visibilityProperty: true}) || e.closest('svg')) continue;
  if (![...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim())) continue;
  const below = ground(e), [a, b] = [light(over(numbers(getComputedStyle(e).color), below)), light(below)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < arguments[0]) pale[e.tagName + '.' + e.className] = ratio.toFixed(2) + ' ' + e.textContent.trim().slice(0, 30);
}
return pale;
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
        assert seen[path]["menu"] <= MOST_ENTRIES, f"{path} has a menu of {seen[path]['menu']} entries"
        for mode in ("light", "dark"):
            browser.execute_script("document.documentElement.dataset.theme = arguments[0]", mode)
            assert browser.execute_script(PALE, CONTRAST) == {}, f"{path}, {mode}: text that does not stand out"
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
def test_no_page_is_wider_than_a_narrow_screen(browser: Any) -> None:
    """Tables and code may scroll in their boxes, the page may not."""
    screen = {"width": NARROW, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    try:
        wide = {}
        for path in pages():
            browser.get(path.as_uri())
            found = browser.execute_script(WIDE)
            if found["page"] > 0 or found["wide"]:
                wide[path.relative_to(SITE).as_posix()] = found
        assert wide == {}
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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


def test_the_gallery_has_eighteen_examples() -> None:
    assert len(GALLERY) == 19


@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built; make docs builds it")
@pytest.mark.slow
def test_every_example_has_its_picture() -> None:
    without = [path.stem for path in GALLERY if not list((SITE / "_images").glob(f"sphx_glr_{path.stem}_*-dark.svg"))]
    assert without == []
