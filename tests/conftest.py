"""What tests of all rooms share: a folder of their own, the papers' data, the tally of the assault, command lines that are faster."""

from __future__ import annotations

import contextlib
import gc
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings
from support import quick_hydra, quick_pages
from support.browsing import browser  # noqa: F401  (a fixture of all tests)

# What a run says depends on these by design (a sweep in CI says failures alone), so no test may inherit them from where it is run.
for _variable in ("CI", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_variable, None)

# No clock decides whether a drawn case passes; the rest is as Hypothesis has it where the tests run.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")

# Tests on the papers' data take what the repository ships where nothing names a folder with more.
os.environ.setdefault("ADVCLI_DATA", str(Path(__file__).resolve().parents[1] / "data"))

GOOD: Counter[str] = Counter()
ALL: Counter[str] = Counter()


@dataclass
class Tally:
    """Cases of one kind of attack, and what went wrong in those that did not end well."""

    total: int = 0
    broken: list[str] = field(default_factory=list)

    def count(self, case: object, trouble: str = "", cases: int = 1) -> None:
        """Count cases; ``trouble`` says in one line what went wrong and is empty if they ended well."""
        self.total += cases
        if trouble:
            self.broken.append(f"{case}: {trouble}")

    @contextlib.contextmanager
    def case(self, name: object) -> Iterator[None]:
        """Count a case that ends well unless something inside fails."""
        trouble = ""
        try:
            yield
        except Exception as error:
            trouble = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
        self.count(name, trouble)


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Cases of a test with the mark ``assault(KIND)``, which fails if one of them did not end well, or if there was none."""
    tally = Tally()
    yield tally
    mark = request.node.get_closest_marker("assault")
    if mark is not None:
        request.node.user_properties.append(("assault", [mark.args[0], tally.total - len(tally.broken), tally.total]))
    assert tally.total, "no case was tried"
    assert not tally.broken, f"{len(tally.broken)} of {tally.total} cases did not end well\n" + "\n".join(tally.broken[:40])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a finished test to the table, whichever process ran it."""
    if report.when == "teardown":
        for kind, good, total in (value for name, value in report.user_properties if name == "assault"):
            GOOD[kind] += good
            ALL[kind] += total


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print good / total of every kind of attack."""
    if ALL:
        terminalreporter.section("assault: cases that ended well / all")
        for kind in sorted(ALL):
            terminalreporter.write_line(f"{GOOD[kind]:6d} / {ALL[kind]:<6d} {kind}")
        terminalreporter.write_line(f"{GOOD.total():6d} / {ALL.total():<6d} in all")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder of the test's own, and no folders of plug-ins but those that the test names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADVCLI_PLUGINS", "")


@pytest.fixture
def damaged(tmp_path: Path) -> None:
    """A data folder ``nothing`` in the test's own, whose one set, glass, is damaged: its cells fail when they are computed."""
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "glass.csv.gz").write_bytes(b"no table")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A data set and a learner that need neither files nor compiled code, put behind the recipe of a run."""
    from support import fakes as module

    module.install(monkeypatch.setattr)
    module.N_FITS["count"] = 0
    module.LOG.clear()
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    """An empty results folder."""
    from advcli.results.folder import ResultsFolder

    results = ResultsFolder(tmp_path / "results")
    results.prepare({"seed": 0})
    return results


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder of the papers' data sets: that of the repository, where ADVCLI_DATA names no other.

    A test on a set that the repository may not ship has it as its parameter ``name``, or in its mark ``data``, and is skipped without it.
    """
    from advcli.data.catalogue import stored_set

    folder = Path(os.environ["ADVCLI_DATA"])
    names = [name for mark in request.node.iter_markers("data") for name in mark.args]
    if hasattr(request.node, "callspec"):
        names.append(request.node.callspec.params.get("name"))
    for known in filter(None, map(stored_set, filter(None, names))):
        if not all((folder / file).is_file() for file in known.files):
            pytest.skip(f"{known.name} is not in {folder}; advcli data fetch {known.name}")
    return folder


# The search for garbage took a tenth of the suite: it waits until all tests are collected, and passes over them and their modules.
gc.disable()


def pytest_collection_finish() -> None:
    """Search for garbage from here on, and more seldom."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _command_lines_are_faster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        quick_hydra.patch(patched)
        quick_pages.patch(patched)
        yield


@pytest.fixture
def drawn_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with their figures."""
    monkeypatch.setenv(quick_pages.DRAWN, "1")
