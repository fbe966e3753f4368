"""A real browser for tests, where one is installed: the fixture `browser` of all tests."""

import contextlib
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1600",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """The tests of a module share it: starting it takes 3 seconds."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    driver = shutil.which("chromedriver")
    # never let selenium look for a browser by itself: it would ask the network
    if program is None or driver is None:
        pytest.skip("no Chromium with its chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield opened
    with contextlib.suppress(Exception):
        opened.quit()
