"""The section of provenance."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from ..formats.document import Section, counted
from .facts import Facts


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        return [pair for key, item in value.items() for pair in _flat(item, f"{prefix}.{key}" if prefix else str(key))]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [pair for at, item in enumerate(value, start=1) for pair in _flat(item, f"{prefix}.{at}")]
    return [(prefix, value if isinstance(value, str) else json.dumps(value))]


def provenance_section(facts: Facts) -> Section:
    """Return the section on versions, processors and configurations."""
    lines: list[str] = []
    details: list[tuple[str, str]] = []
    for label, known in facts.provenance.items():
        where = f"{label}: " if len(facts.provenance) > 1 else ""
        lines += [f"{where}{line}" for line in _made(known) or ["no provenance.json in this folder"]]
        details += [(f"{where}{key}", value) for key, value in _flat(known.get("config") or {}, "")]
    return Section("provenance", "Provenance", tuple(lines), details=tuple(details))


def _made(known: Mapping[str, Any]) -> list[str]:
    """Return in lines how the rows of a folder were made, by its provenance.json."""
    lines = []
    sets = known.get("made_by") or [known]
    for made in sets:
        cells = f"{counted(len(made['cells']), 'cell')}: " if len(sets) > 1 else ""
        lines += [f"{cells}{line}" for line in _made_by(made)]
    if "wall_seconds" in known:
        memory = known.get("peak_memory_bytes", 0) / 2**20
        lines.append(
            f"from {known.get('start')} to {known.get('end')}: {known['wall_seconds']:.0f} s of work in "
            f"{counted(len(known.get('sessions', [1])), 'session')}, peak memory {memory:.0f} MiB"
        )
    if known.get("command"):
        lines.append(f"command: {shlex.join(map(str, known['command']))}")
    data = known.get("data") or {}
    for name, contents in data.items():
        lines += [f"data {name}: sha256 {digest}" for digest in ([contents] if isinstance(contents, str) else contents)]
    return lines


def _made_by(made: Mapping[str, Any]) -> list[str]:
    """Return in lines what made some cells of a folder."""
    lines = []
    if made.get("versions"):
        lines.append("versions: " + ", ".join(f"{name} {version}" for name, version in made["versions"].items()))
    git = made.get("git") or {}
    if git.get("commit"):
        changed = " with uncommitted changes" if git.get("dirty") else ""
        lines.append(f"commit {git['commit']}{changed}")
    cpu = made.get("cpu") or {}
    if cpu:
        level = f", {made['instruction_set']} kernels" if made.get("instruction_set") else ""
        lines.append(f"processor: {cpu.get('model')}, {cpu.get('logical_cores')} logical cores, {cpu.get('machine')}{level}")
    return lines
