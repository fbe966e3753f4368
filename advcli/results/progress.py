"""Progress of a sweep: the processes that compute write a journal, the parent alone reads it and shows it.

The journal lies in the results folder, so it reaches the parent from any launcher: one file per process, one line per event, so no
two processes write into one file. Losing it costs nothing but the display; results travel by the cell files.
"""

from __future__ import annotations

import contextlib
import json
import os
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
    """What one process tells the parent about its cells, in the folder of the session (`ResultsFolder.session`)."""

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

    A terminal has a live bar (of the library rich): done, running, failed, time left; failures and warnings appear above it. Elsewhere
    every finished cell is one plain line, and where the variable ``CI`` is set only failures and warnings are printed: a log of thousands
    of lines hides them. The thread writes each piece of text in one go, and nothing else writes.

    ``say`` writes whole lines; ``quiet`` shows failures only; without ``results``, for a caller that shows the result itself, a finished
    cell's line is printed only where there is a bar, which is drawn on ``stream``, stderr by default.
    """

    def __init__(
        self,
        folder: Path,
        cells: int,
        say: Callable[[str], None],
        quiet: bool = False,
        results: bool = True,
        stream: TextIO | None = None,
    ) -> None:
        self.folder, self.cells, self.say, self.quiet = folder, cells, say, quiet
        self.stream = sys.stderr if stream is None else stream
        self.drawn = not quiet and self.stream.isatty() and os.environ.get("TERM", "") != "dumb"
        self.results = results and not self.drawn and not os.environ.get("CI")
        self.running: set[int] = set()
        self.done: set[int] = set()
        self.failed = self.skipped = 0
        self._began: float | None = None
        self._read: dict[Path, int] = {}
        self._bar: Any = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        if self.drawn:
            self._bar = self._drawing()
            self._bar.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._bar is not None:
            self._bar.stop()

    def finished(self, number: int, status: str, skipped: bool, lines: Sequence[str]) -> None:
        """Count a finished cell and say its lines; a cell that was counted before is left out."""
        self.running.discard(number)
        if number in self.done:
            return
        self.done.add(number)
        self.failed += status == "failed"
        if not lines:  # it did not start in time: the end of the sweep counts such cells
            return
        self.skipped += skipped
        if status != "failed" and self.quiet:
            return
        head, *rest = lines
        shown = [f"[{len(self.done)}/{self.cells}] {head}", *rest] if self.results or status == "failed" else rest
        if shown:
            self._say("\n".join(shown))

    def numbers(self, now: float) -> str:
        """Return the text next to the bar at a moment of `time.monotonic`."""
        done, total = len(self.done), self.cells
        parts = [f"{done}/{total} done"]
        parts += [f"{len(self.running)} running"] if self.running else []
        parts += [f"{self.failed} failed"] if self.failed else []
        computed = done - self.skipped
        if self._began is not None and computed and done < total:
            parts.append(f"about {_clock((now - self._began) / computed * (total - done))} left")
        elif self._began is not None:
            parts.append(_clock(now - self._began))
        return ", ".join(parts)

    def _drawing(self) -> Any:
        """Return the bar, which vanishes at its end. stdout and stderr stay as they are."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        console = Console(file=self.stream, force_terminal=True)
        columns = (BarColumn(BAR), TextColumn("{task.fields[numbers]}", markup=False, table_column=Column(no_wrap=True)))
        bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False, refresh_per_second=8)
        bar.add_task("cells", total=self.cells, numbers=self.numbers(0.0))
        return bar

    def _say(self, text: str) -> None:
        if self._bar is None:
            self.say(text)
        else:
            # as it is: no wrapping, no marks read in it
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _follow(self) -> None:
        while True:
            last = self._stop.wait(POLL_SECONDS)
            for event in self._events():
                if "started" in event:
                    self.running.add(event["started"])
                    self._began = time.monotonic() if self._began is None else self._began
                elif "finished" in event:
                    self.finished(event["finished"], event["status"], event["skipped"], event["lines"])
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], completed=len(self.done), numbers=self.numbers(time.monotonic()))
            if last:
                return

    def _events(self) -> list[dict[str, Any]]:
        """Return the events since the last look, whole lines only."""
        events = []
        for file in sorted(self.folder.glob("*.jsonl")):
            with contextlib.suppress(OSError), file.open("rb") as stream:
                stream.seek(self._read.get(file, 0))
                text = stream.read()
                whole = text[: text.rfind(b"\n") + 1]
                self._read[file] = self._read.get(file, 0) + len(whole)
                for line in whole.splitlines():
                    with contextlib.suppress(ValueError):
                        events.append(json.loads(line))
        return events


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
