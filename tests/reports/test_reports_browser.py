"""The HTML report in a real browser: a click on a header sorts, nothing is asked from the network, both colour schemes work."""

import pytest

from advcli.reports import write_reports
from advcli.reports.drawing import svg_only


@pytest.fixture(scope="module")
def report(planted, tmp_path_factory):
    cells = planted.sweep(6)
    cells[0] = planted.rows("set_0", "zero_one linear", [None] * 20)
    folder = planted.folder(tmp_path_factory.mktemp("browser") / "results", *cells, provenance={"seed": 0})
    with svg_only():  # the page shows no others
        write_reports(folder, full=True)
    return (folder.path / "report.html").as_uri()


@pytest.fixture
def page(browser, report):
    """The page as it opens, in a window without the settings and the messages of an earlier test."""
    browser.get("about:blank")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.get_log("browser")
    browser.get(report)
    return browser


def column(page, table, number):
    return page.execute_script(
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].map(row => row.cells[arguments[1]].textContent)", table, number
    )


def click(page, table, number):
    page.find_element("css selector", f"#{table} thead th:nth-child({number + 1}) button").click()


def test_a_click_sorts(page):
    before = column(page, "comparison-accuracy", 0)
    assert before == [f"set_{at}" for at in range(6)]
    click(page, "comparison-accuracy", 3)
    shown = column(page, "comparison-accuracy", 3)
    numbers = [float(text.split()[0]) for text in shown if text != "failed"]
    assert numbers == sorted(numbers)
    assert shown[-1] == "failed"
    assert column(page, "comparison-accuracy", 0) != before
    click(page, "comparison-accuracy", 3)
    shown = column(page, "comparison-accuracy", 3)
    numbers = [float(text.split()[0]) for text in shown if text != "failed"]
    assert numbers == sorted(numbers, reverse=True)
    assert shown[-1] == "failed"  # what has no number goes last both ways
    click(page, "comparison-accuracy", 0)
    assert column(page, "comparison-accuracy", 0) == before
    states = page.execute_script(
        "return [...document.querySelectorAll('#comparison-accuracy th')].map(head => head.getAttribute('aria-sort'))"
    )
    assert states == ["ascending", None, None, None]
    footer = page.execute_script(
        "return [...document.querySelectorAll('#comparison-accuracy tfoot tr')].map(row => row.cells[0].textContent)"
    )
    assert footer == ["average", "count"]


def test_small_p_values_sort_as_numbers(page):
    page.execute_script("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    click(page, "details-accuracy", 5)
    shown = [text for text in column(page, "details-accuracy", 5) if text != "-"]
    assert shown
    assert [text == "< 0.001" for text in shown] == sorted((text == "< 0.001" for text in shown), reverse=True)


def test_the_page_is_quiet_and_complete(page):
    assert [entry for entry in page.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert page.title == "Results: results"
    # no part of the page is wider than the window
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_dark_and_light_differ_and_are_readable(page):
    def colours():
        return page.execute_script(
            "const style = getComputedStyle(document.body);"
            "const text = document.querySelector('figure svg text');"
            "return [style.backgroundColor, style.color, text ? getComputedStyle(text).fill : style.color]"
        )

    def brightness(colour):
        return sum(float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]) / 3

    seen = {}
    for scheme in ("light", "dark"):
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        ground, text, plot = map(brightness, colours())
        seen[scheme] = ground
        assert abs(ground - text) > 150
        assert abs(ground - plot) > 150
    assert seen["light"] > 200 > 60 > seen["dark"]


def test_a_narrow_page_scrolls_its_tables_and_shrinks_its_figures(page):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    page.execute_script("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    # every figure is as wide as the page, and its texts stay large enough to read
    widths, heights = page.execute_script(
        "const plots = [...document.querySelectorAll('figure svg')];"
        "return [plots.map(plot => plot.getBoundingClientRect().width),"
        "        plots.flatMap(plot => [...plot.querySelectorAll('text')].map(text => text.getBBox().height * plot.getScreenCTM().a))]"
    )
    assert widths
    assert all(300 < width <= 400 for width in widths)
    assert min(heights) > 7.5


def test_a_wide_page_is_filled_by_its_figures(page):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    rows = page.execute_script(
        "return [...document.querySelectorAll('.figures')].map(group => [group.getBoundingClientRect().width, group.children.length,"
        " group.querySelector('svg').getBoundingClientRect().width])"
    )
    for room, count, width in rows:
        assert width > (0.45 if count > 1 else 0.7) * room
