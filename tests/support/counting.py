"""Counting calls in the place of seconds: the count does not depend on what else the machine does."""

import cProfile
import gc
from pathlib import Path
from typing import Any

import advcli

PACKAGE = Path(advcli.__file__).parent


class Calls:
    """Calls of the package's functions and those that they make, between start and stop.

    Collections of garbage call what earlier tests of the process have left behind (finalizers, callbacks of weak references),
    whenever they come: none comes while it is counted.
    """

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def start(self) -> None:
        gc.disable()
        self._profile.enable()

    def stop(self) -> None:
        self._profile.disable()
        gc.enable()

    def __enter__(self) -> "Calls":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def count(self) -> int:
        return sum(map(_own, self._profile.getstats()))


def _own(entry: Any) -> int:
    if PACKAGE not in Path(getattr(entry.code, "co_filename", "")).parents:
        return 0
    return entry.callcount + sum(called.callcount for called in entry.calls or ())
