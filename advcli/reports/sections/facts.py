"""What results folders say beside their rows, and the section of a report on how these were made."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ..figures import LEARNING_COLUMNS
from ..formats.document import Section, counted
from ..sources import Sources


@dataclass(frozen=True)
class Facts:
    """What a folder knows beside its rows."""

    provenance: dict[str, dict[str, Any]] = field(default_factory=dict)  # contents of each folder's provenance.json; empty without
    notes: dict[str, list[str]] = field(default_factory=dict)  # of a data set: what was done to it
    cuts: dict[str, str] = field(default_factory=dict)  # of a data set: how its target was cut into classes, or whose splits were used
    edges: dict[str, list[str]] = field(default_factory=dict)  # of a cell: chosen hyper-parameters at the end of what was tried
    tolerances: tuple[float, ...] = ()  # the relative gaps asked for
    confusion: dict[str, Any] = field(default_factory=dict)  # of a cell: as in `advcli.reports.figures.Material`
    learning: pd.DataFrame | None = None  # fits to shares of the training rows
    search: pd.DataFrame | None = None  # rows of search.csv


def read_facts(sources: Sources, cells: Iterable[str]) -> Facts:
    """Read what results folders say beside their rows; a folder with rows alone says nothing."""
    facts = Facts(provenance=sources.provenance, search=sources.search)
    tolerances = set()
    learned: list[dict[str, Any]] = []
    for key in dict.fromkeys(cells):
        about = sources.about(key)
        dataset = str(about.get("dataset", ""))
        for note in about.get("notes", ()):
            notes = facts.notes.setdefault(dataset, [])
            notes += [note] if note not in notes else []
        if about.get("edges"):
            facts.edges[key] = list(about["edges"])
        cell = about.get("cell", {})
        if cell.get("protocol", {}).get("splits") == "author":
            facts.cuts[dataset] = "the authors' splits"
        elif cell.get("dataset", {}).get("cut") not in (None, "none"):
            facts.cuts[dataset] = f"cut: {str(cell['dataset']['cut']).replace('_', ' ')}"
        if isinstance(cell.get("solver", {}).get("tol"), (int, float)):
            tolerances.add(float(cell["solver"]["tol"]))
        if about.get("confusion"):
            facts.confusion[key] = about["confusion"]
        for point in about.get("learning", ()):
            fit = {name: point[name] for name in ("split", "share", "n_train", "relative_gap")} | {"cell": key, "dataset": dataset}
            learned += [fit | {"metric": metric, "value": value} for metric, value in point["values"].items()]
    learning = pd.DataFrame(learned, columns=list(LEARNING_COLUMNS)) if learned else None
    return replace(facts, tolerances=tuple(sorted(tolerances)), learning=learning)


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        return [pair for key, item in value.items() for pair in _flat(item, f"{prefix}.{key}" if prefix else str(key))]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [pair for number, item in enumerate(value, start=1) for pair in _flat(item, f"{prefix}.{number}")]
    return [(prefix, value if isinstance(value, str) else json.dumps(value))]


def provenance_section(facts: Facts) -> Section:
    """Return the section on versions, processors and configurations."""
    lines: list[str] = []
    details: list[tuple[str, str]] = []
    for label, document in facts.provenance.items():
        where = f"{label}: " if len(facts.provenance) > 1 else ""
        lines += [f"{where}{line}" for line in _made(document) or ["no provenance.json in this folder"]]
        details += [(f"{where}{key}", value) for key, value in _flat(document.get("config") or {}, "")]
    return Section("provenance", "Provenance", tuple(lines), details=tuple(details))


def _made(document: Mapping[str, Any]) -> list[str]:
    """Return in lines how the rows of a folder were made, by its provenance.json."""
    lines = []
    sets = document.get("made_by") or [document]
    for maker in sets:
        cells = f"{counted(len(maker['cells']), 'cell')}: " if len(sets) > 1 else ""
        lines += [f"{cells}{line}" for line in _made_by(maker)]
    if "wall_seconds" in document:
        memory = document.get("peak_memory_bytes", 0) / 2**20
        lines.append(
            f"from {document.get('start')} to {document.get('end')}: {document['wall_seconds']:.0f} s of work in "
            f"{counted(len(document.get('sessions', [1])), 'session')}, peak memory {memory:.0f} MiB"
        )
    if document.get("command"):
        lines.append(f"command: {shlex.join(map(str, document['command']))}")
    for name, contents in (document.get("data") or {}).items():
        lines += [f"data {name}: sha256 {digest}" for digest in ([contents] if isinstance(contents, str) else contents)]
    return lines


def _made_by(maker: Mapping[str, Any]) -> list[str]:
    """Return in lines what made some cells of a folder."""
    lines = []
    if maker.get("versions"):
        lines.append("versions: " + ", ".join(f"{name} {version}" for name, version in maker["versions"].items()))
    git = maker.get("git") or {}
    if git.get("commit"):
        changed = " with uncommitted changes" if git.get("dirty") else ""
        lines.append(f"commit {git['commit']}{changed}")
    if cpu := maker.get("cpu") or {}:
        level = f", {maker['instruction_set']} kernels" if maker.get("instruction_set") else ""
        lines.append(f"processor: {cpu.get('model')}, {cpu.get('logical_cores')} logical cores, {cpu.get('machine')}{level}")
    return lines
