"""Progress of a sweep: the processes that compute write a journal, the parent alone reads it and shows it.

The journal lies in the results folder, so it reaches the parent from any launcher: one file per process, one line per event, so no
two processes write into one file. Losing it costs nothing but the display; results travel by the cell files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

POLL_SECONDS = 0.1
BAR = 20
"""Characters of the bar."""


def warning(text: str) -> str:
    """Return the line that warns of something."""
    return f"advcli: warning: {' '.join(text.split())}"


class Journal:
    """What one process tells the parent about its cells.

    Parameters
    ----------
    folder : Path
        The folder of the session (`ResultsFolder.session`).
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{socket.gethostname()}.{os.getpid()}.jsonl"

    def started(self, number: int) -> None:
        """Tell that cell ``number`` is being computed."""
        self._write({"started": number})

    def finished(self, number: int, status: str, skipped: bool, lines: Sequence[str]) -> None:
        """Tell how cell ``number`` ended and what to say about it."""
        self._write({"finished": number, "status": status, "skipped": skipped, "lines": list(lines)})

    def _write(self, event: dict[str, Any]) -> None:
        # A full disk or a folder that is gone is not the journal's to report: the cell's own file meets it as well.
        with contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


class Progress:
    """Shows what the journals of a session say; a context manager whose thread reads while the cells run.

    On a terminal one line is drawn again and again: done, running, failed, time left; failures and warnings stand above it.
    Elsewhere every finished cell is one plain line. The thread writes each piece of text in one go, and nobody else writes.

    Parameters
    ----------
    folder : Path
        The folder of the session.
    cells : int
        Number of cells.
    say : callable
        Writes whole lines.
    quiet : bool
        Show failures only.
    stream : text stream, optional
        Where the line is drawn; default stderr.
    """

    def __init__(self, folder: Path, cells: int, say: Callable[[str], None], quiet: bool = False, stream: TextIO | None = None) -> None:
        self.folder, self.cells, self.say, self.quiet = folder, cells, say, quiet
        self.stream = sys.stderr if stream is None else stream
        self.drawn = not quiet and self.stream.isatty() and os.environ.get("TERM", "") != "dumb"
        self.running: set[int] = set()
        self.done: set[int] = set()
        self.failed = self.skipped = 0
        self._began: float | None = None
        self._read: dict[Path, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def finished(self, number: int, status: str, skipped: bool, lines: Sequence[str]) -> None:
        """Count a finished cell and say its lines; a cell that was counted before is left out."""
        self.running.discard(number)
        if number in self.done:
            return
        self.done.add(number)
        self.failed += status == "failed"
        self.skipped += skipped
        head, *rest = lines
        shown = [f"[{len(self.done)}/{self.cells}] {head}", *rest]
        if status != "failed" and self.quiet:
            return
        if status != "failed" and self.drawn:
            shown = rest
        if shown:
            self._clear()
            self.say("\n".join(shown))

    def line(self, now: float) -> str:
        """Return the line for a terminal at a moment of `time.monotonic`."""
        done, total = len(self.done), self.cells
        full = BAR * done // max(total, 1)
        parts = [f"[{'#' * full}{'-' * (BAR - full)}] {done}/{total} done"]
        parts += [f"{len(self.running)} running"] if self.running else []
        parts += [f"{self.failed} failed"] if self.failed else []
        computed = done - self.skipped
        if self._began is not None and computed and done < total:
            parts.append(f"about {_clock((now - self._began) / computed * (total - done))} left")
        elif self._began is not None:
            parts.append(_clock(now - self._began))
        return ", ".join(parts)

    def _follow(self) -> None:
        while True:
            last = self._stop.wait(POLL_SECONDS)
            for event in self._events():
                if "started" in event:
                    self.running.add(event["started"])
                    self._began = time.monotonic() if self._began is None else self._began
                elif "finished" in event:
                    self.finished(event["finished"], event["status"], event["skipped"], event["lines"])
            if last:
                self._clear()
                return
            if self.drawn:
                width = shutil.get_terminal_size().columns - 1
                self.stream.write(f"\r{self.line(time.monotonic())[:width]}\x1b[K")
                self.stream.flush()

    def _clear(self) -> None:
        if self.drawn:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def _events(self) -> list[dict[str, Any]]:
        """Return the events since the last look, whole lines only."""
        found = []
        for file in sorted(self.folder.glob("*.jsonl")):
            with contextlib.suppress(OSError), file.open("rb") as stream:
                stream.seek(self._read.get(file, 0))
                text = stream.read()
                whole = text[: text.rfind(b"\n") + 1]
                self._read[file] = self._read.get(file, 0) + len(whole)
                for line in whole.splitlines():
                    with contextlib.suppress(ValueError):
                        found.append(json.loads(line))
        return found


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
