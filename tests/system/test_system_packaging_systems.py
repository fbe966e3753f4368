"""Other systems: what Python has on POSIX only is hidden, and the package still imports, fits, and makes a table.

It stands for Windows as far as names go; a run on Windows or macOS itself is not part of these tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = """
import os, sys, signal, multiprocessing
# other packages ask for the system themselves
import numpy, scipy.optimize, scipy.stats, sklearn.calibration, pandas, joblib, psutil, hydra, requests, matplotlib.figure
import multiprocessing.forkserver, multiprocessing.synchronize, subprocess, tempfile, shutil
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("O_NONBLOCK", "O_CLOEXEC", "fork", "killpg", "getuid", "geteuid", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPIPE", "SIGCHLD", "SIGSTOP", "SIGTSTP", "SIGCONT",
             "pthread_sigmask", "setitimer", "sigwait"):
    delattr(signal, name)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has imported nothing of the package."""
    return subprocess.run([sys.executable, "-c", HIDDEN + code], capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_every_module_imports() -> None:
    done = run(
        """
import importlib, pkgutil
import advcli
for module in pkgutil.walk_packages(advcli.__path__, "advcli."):
    if "._ext" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("all")
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "all"


@pytest.mark.slow
def test_a_sweep_and_a_model(tmp_path: Path) -> None:
    done = run(
        f"""
os.chdir({str(tmp_path)!r})
from advcli.cli import main
words = ["hyper.C=1", "protocol.n_splits=2", "workers=1", "name=own"]
assert main(["dataset=iris", *words]) == 0
assert main(["fit", "dataset=iris", "hyper.C=1", "out=own.model"]) == 0
assert main(["model", "show", "own.model"]) == 0
assert main(["report", "results=results/own"]) == 0
"""
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "results/own/table.md").exists()


def test_flags_of_the_compiler_are_asked_for() -> None:
    """No flag of gcc stands in meson.build where another compiler would meet it without being asked."""
    build = (ROOT / "meson.build").read_text(encoding="utf-8")
    given = set(re.findall(r"'(-[fW][a-z-]+)'", build))
    asked = set(re.findall(r"'(-[fW][a-z-]+)'", " ".join(re.findall(r"get_supported_arguments\(.*?\)", build, re.DOTALL))))
    assert given <= asked
