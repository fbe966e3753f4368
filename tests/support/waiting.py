"""Waiting for an event in the place of a pause: seconds only end a test that would hang."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

HANG = 600.0
"""Seconds after which an event that does not come is a failure; no working machine is that slow."""


def until(happened: Callable[[], object], pause: float = 0.05) -> None:
    """Wait until something holds; it is asked every ``pause`` seconds."""
    ends = time.monotonic() + HANG
    while not happened():
        assert time.monotonic() < ends, "what the test waits for did not happen"
        time.sleep(pause)  # by default long: looking at all processes takes some milliseconds


def processes_of_session(session: int) -> list[psutil.Process]:
    """Return the living processes of a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def listens_to_interrupts() -> None:
    """Take signals as a terminal's child does: what runs in the background of a shell or under nohup inherits that they are ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


HOLDING = """
import time
from pathlib import Path
from advcli.losses import register
from advcli.losses.zero_one import ZeroOneLoss

@register("holding")
class Holding(ZeroOneLoss):
    def __init__(self, n_classes, **options):
        super().__init__(n_classes, **options)
        if {n_classes} in (0, n_classes):
            Path("holds").touch()
            while not Path("go").exists():
                time.sleep(0.01)
"""


def hold(folder: Path, n_classes: int = 0) -> None:
    """Bring the loss ``holding`` in the folder ``my``; its fits, or those of so many classes, wait for the file ``go``."""
    (folder / "my/loss").mkdir(parents=True)
    (folder / "my/loss/holding.py").write_text(HOLDING.format(n_classes=n_classes))
    (folder / "my/loss/holding.yaml").write_text("# Waits.\nname: holding\n")
