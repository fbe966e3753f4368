"""The tally of each attack, and the closing table: how many of its hostile cases ended well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

TABLE: list[tuple[str, int, int]] = []


@dataclass
class Tally:
    """Cases of one kind of attack, and what went wrong in those that did not end well."""

    name: str
    total: int = 0
    broken: list[str] = field(default_factory=list)

    def count(self, case: object, trouble: str = "") -> None:
        """Count a case; ``trouble`` says in one line what went wrong and is empty if it ended well."""
        self.total += 1
        if trouble:
            self.broken.append(f"{case}: {trouble}")


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Cases of this test, which fails if one of them did not end well, or if there was none."""
    tally = Tally(request.function.__doc__.splitlines()[0].rstrip("."))
    yield tally
    request.node.user_properties.append(("tally", [tally.name, tally.total - len(tally.broken), tally.total]))
    assert tally.total, "no case was tried"
    assert not tally.broken, f"{len(tally.broken)} of {tally.total} cases did not end well\n" + "\n".join(tally.broken[:40])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the tally of a finished test, whichever process counted it."""
    if report.when == "teardown":
        TABLE.extend(tuple(value) for name, value in report.user_properties if name == "tally")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print good / total of every attack."""
    if TABLE:
        terminalreporter.section("assault: cases that ended well / all")
        for name, good, total in sorted(TABLE):
            terminalreporter.write_line(f"{good:6d} / {total:<6d} {name}")
        terminalreporter.write_line(f"{sum(good for _, good, _ in TABLE):6d} / {sum(total for *_, total in TABLE):<6d} in all")
