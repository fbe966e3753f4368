"""Command lines as processes of their own, without the two seconds of processor time that starting Python and its libraries takes.

One process, the nursery, imports everything once and forks a child for each command line. It has no threads, so that forking it is safe.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

NURSERY = """
import atexit, json, os, resource, signal, sys, threading
import advcli.cli, advcli.learners.surrogate, advcli.data.registry, advcli.evaluation.runner, advcli.reports, pandas, psutil, tabulate
import sklearn.datasets
sys.path.append(sys.argv[2])
import pytest
from support import quick_hydra, quick_pages
quick_hydra.patch(pytest.MonkeyPatch())
quick_pages.patch(pytest.MonkeyPatch())
sys.path.pop()
advcli.data.registry.sources()
# Hydra looks for its plugins once a process
assert advcli.cli.main(["--cfg", "job", "--package", "name"]) == 0
sys.stdout.flush()
answers = os.fdopen(int(sys.argv[1]), "w")
for line in sys.stdin:
    order = json.loads(line)
    if "wait" in order:
        print(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]), file=answers, flush=True)
        continue
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY
    files = [os.open(os.devnull, os.O_RDONLY), *(os.open(order[name], append, 0o644) for name in ("out", "err"))]
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(order["folder"])
            os.environ.clear()
            os.environ.update(order["environment"])
            if order["limit"]:
                resource.setrlimit(resource.RLIMIT_FSIZE, (order["limit"], order["limit"]))
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            if isinstance(order["words"], str):
                sys.path.insert(0, "")
                code = 1
                exec(compile(order["words"], "<string>", "exec"), {"__name__": "__main__"})
                code = 0
            else:
                code = advcli.cli.main(order["words"])
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            import traceback
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            # as at the end of any process, so that pools of joblib put away what they shared; without, their tracker tells of it in stderr
            threading._shutdown()
            atexit._run_exitfuncs()
            os._exit(code)
    for file in files:
        os.close(file)
    print(child, file=answers, flush=True)
"""


class Child:
    """A command line that runs in a session of its own."""

    def __init__(self, nursery: Nursery, pid: int, out: Path, err: Path) -> None:
        self.nursery, self.pid, self.out, self.err = nursery, pid, out, err

    def wait(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end; the exit code is negative for a signal, as that of `subprocess`."""
        code = int(self.nursery.ask({"wait": self.pid}))
        texts = [path.read_text(encoding="utf-8") if path.is_file() else "" for path in (self.out, self.err)]
        return subprocess.CompletedProcess([], code, *texts)


class Nursery:
    """The process that has imported everything."""

    def __init__(self) -> None:
        self.files = tempfile.TemporaryDirectory(prefix="nursery")
        self.count = 0
        reads, writes = os.pipe()
        command = [sys.executable, "-c", NURSERY, str(writes), str(Path(__file__).parents[1])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, pass_fds=[writes])
        os.close(writes)
        self.answers = os.fdopen(reads)

    def ask(self, order: dict[str, object]) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.answers.readline()
        assert answer, "the nursery has died"
        return answer

    def start(
        self, words: Sequence[str] | str, folder: Path | None = None, *, err: str | None = None, limit: int = 0, **more: str
    ) -> Child:
        """Start a command line.

        Parameters
        ----------
        words : sequence of str, or str
            As for ``python -m advcli``; or code as for ``python -c``.
        folder : Path, optional
            Where; default the current one.
        err : str, optional
            A device that stderr goes to, such as a terminal.
        limit : int
            Size in bytes of the largest file that it may write.
        more : str
            Environment variables beside the current ones.
        """
        self.count += 1
        out, said = (Path(self.files.name, f"{self.count}.{kind}") for kind in ("out", "err"))
        order = {
            "words": words if isinstance(words, str) else list(words),
            "folder": str(folder or Path.cwd()),
            "environment": {**os.environ, **more},
            "limit": limit,
        }
        return Child(self, int(self.ask({**order, "out": str(out), "err": err or str(said)})), out, said)

    def run(self, words: Sequence[str] | str, folder: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end."""
        return self.start(words, folder, **more).wait()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        self.answers.close()
        self.files.cleanup()


@cache
def nursery() -> Nursery:
    """Return the one nursery of this process of tests."""
    started = Nursery()
    atexit.register(started.close)
    return started
