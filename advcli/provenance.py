"""Provenance: which versions, which commit, which processor made the numbers."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def session(started: float, ended: float) -> dict[str, Any]:
    """Return what a session of work took; both times in seconds since the epoch."""
    start, end = (datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds") for seconds in (started, ended))
    return {"start": start, "end": end, "wall_seconds": ended - started, "peak_memory_bytes": peak_memory_bytes()}


def document(
    config: Mapping[str, Any], data: Mapping[str, str], levels: Sequence[str], sessions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return how numbers came about, as plain data.

    Parameters
    ----------
    config : mapping
        The composed configuration.
    data : mapping
        Data set to the checksum of its content.
    levels : sequence of str
        Instruction sets of the compiled modules that made the rows.
    sessions : sequence of mapping
        From `session`, the first one first.
    """
    return {
        "config": dict(config),
        "versions": versions(),
        "git": git_state(),
        "cpu": cpu(),
        "instruction_sets": [*levels],
        "data": dict(sorted(data.items())),
        "start": sessions[0]["start"],
        "end": sessions[-1]["end"],
        "wall_seconds": sum(part["wall_seconds"] for part in sessions),
        "peak_memory_bytes": max(part["peak_memory_bytes"] for part in sessions),
        "sessions": [*sessions],
    }


@functools.cache
def package_version() -> str:
    """Return the version of the installed package, ``unknown`` when it runs from a folder that was never installed."""
    try:
        return importlib.metadata.version("advcli")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that can change numbers."""
    found = {"python": platform.python_version(), "advcli": package_version()}
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "hydra-core", "omegaconf", "joblib", "threadpoolctl"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def git_state() -> dict[str, Any] | None:
    """Return commit and dirtiness of the checkout that this package runs from; None if it runs from an installed copy."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None

    def ask(*arguments: str) -> str | None:
        try:
            answer = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=20, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return answer.stdout.strip()

    status = ask("status", "--porcelain")
    return {"commit": ask("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def cpu() -> dict[str, Any]:
    """Return the processor's model name, the architecture and the number of logical cores."""
    model = platform.processor()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"model": model, "machine": platform.machine(), "logical_cores": os.cpu_count()}


def peak_memory_bytes() -> int:
    """Return the largest resident memory of this process and of any one of its finished children, in bytes."""
    try:
        import resource
    except ImportError:  # Windows has none, and counts children apart
        import psutil

        return int(getattr(psutil.Process().memory_info(), "peak_wset", 0))
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
