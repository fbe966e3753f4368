"""Provenance: which versions, which commit, which processor made the numbers."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
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


_SET = ("versions", "git", "cpu", "instruction_set")


def maker(instruction_set: str, estimator: str | None = None) -> dict[str, Any]:
    """Return what makes cells here: versions, commit, processor and the instruction set of the compiled modules.

    ``estimator`` is the dotted name of a class; the version of its package, which is loaded by now, is added.
    """
    used = versions()
    package = (estimator or "").partition(".")[0]
    version = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(version, str) and package not in ("sklearn", "advcli"):
        used[package] = version
    return {"versions": used, "git": git_state(), "cpu": cpu(), "instruction_set": instruction_set}


class Makers:
    """Who made which cells: sets of versions and processors (`maker`), and by data set the checksums of its contents with their cells."""

    def __init__(self) -> None:
        self._cells: dict[str, list[str]] = {}
        self.data: dict[str, dict[str, int]] = {}

    def add(self, key: str, about: Mapping[str, Any]) -> None:
        """Take what a cell's file says."""
        for made in about.get("made_by") or ():
            self._cells.setdefault(json.dumps(made, sort_keys=True), []).append(key)
        if about.get("dataset_sha256"):
            counts = self.data.setdefault(str(about.get("dataset", key)), {})
            counts[about["dataset_sha256"]] = counts.get(about["dataset_sha256"], 0) + 1

    def update(self, other: Makers) -> None:
        """Take what another one has."""
        for made, cells in other._cells.items():
            self._cells.setdefault(made, []).extend(cells)
        for name, counts in other.data.items():
            ours = self.data.setdefault(name, {})
            ours |= {sha256: ours.get(sha256, 0) + count for sha256, count in counts.items()}

    def listed(self) -> list[dict[str, Any]]:
        """Return every set with its ``cells``, the one with the most first."""
        sets = [json.loads(made) | {"cells": sorted(cells)} for made, cells in self._cells.items()]
        return sorted(sets, key=lambda made: (-len(made["cells"]), made["cells"]))

    def mixture(self) -> str:
        """Return in one line which sets made how many cells, by what differs between them; empty for one set."""
        sets = [(facts(made), len(made["cells"])) for made in self.listed()]
        names = dict.fromkeys(name for words, _ in sets for name in words)
        differing = [name for name in names if len({words[name] for words, _ in sets if name in words}) > 1]
        groups: dict[str, int] = {}
        for words, count in sets:
            if text := ", ".join(f"{name} {words[name]}" for name in differing if name in words):
                groups[text] = groups.get(text, 0) + count
        listed = "; ".join(f"{text} ({counted(count)})" for text, count in groups.items())
        return f"the cells were not made by one set of versions and processors: {listed}" if differing else ""

    def mixtures(self) -> list[str]:
        """Return one line for every mixture: of versions and processors, and of contents of a data set."""
        of_data = []
        for name, counts in sorted(self.data.items()):
            if len(counts) > 1:
                listed = ", ".join(f"{sha256[:8]} ({counted(count)})" for sha256, count in counts.items())
                of_data.append(f"the cells of {name} were not made from one content: {listed}")
        return [*filter(None, [self.mixture()]), *of_data]


def counted(count: int) -> str:
    """Return a number of cells in words."""
    return f"{count} cell{'' if count == 1 else 's'}"


def facts(made: Mapping[str, Any]) -> dict[str, str]:
    """Return what tells one set from another in words, name and value."""
    git, cpu = made.get("git") or {}, made.get("cpu") or {}
    words = {
        **made.get("versions", {}),
        "commit": (git["commit"][:12] + ("+" if git.get("dirty") else "")) if git.get("commit") else None,
        "processor": cpu.get("model"),
        "instruction set": made.get("instruction_set"),
    }
    return {name: str(value) for name, value in words.items() if value}


def document(config: Mapping[str, Any], makers: Makers, sessions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how numbers came about, as plain data: configuration of the last run, makers of all cells, sessions (`session`) in order."""
    listed = makers.listed()
    data = {name: list(contents) for name, contents in sorted(makers.data.items())}
    return {
        "config": dict(config),
        **{name: listed[0].get(name) for name in _SET if listed and all(made.get(name) == listed[0].get(name) for made in listed)},
        "made_by": listed,
        "data": {name: contents[0] if len(contents) == 1 else contents for name, contents in data.items()},
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
    return {"python": platform.python_version(), "advcli": package_version(), **_libraries()}


@functools.cache
def _libraries() -> dict[str, str]:
    installed = {}
    for name in ("numpy", "scipy", "scikit-learn", "pandas", "hydra-core", "omegaconf", "joblib", "threadpoolctl"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


@functools.cache
def git_state() -> dict[str, Any] | None:
    """Return commit and dirtiness of the checkout that this package runs from; None if it runs from an installed copy."""
    root = Path(__file__).resolve().parents[2]
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


@functools.cache
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
