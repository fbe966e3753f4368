"""What results folders say beside their rows, and the section of a report on how these were made."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from ..choice import Names
from ..figures import LEARNING_COLUMNS
from ..formats.document import Section, counted, listed
from ..sources import Sources
from ..summary import flat_options


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
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # of a cell: its options by their names with dots

    @property
    def order(self) -> dict[str, list[str]]:
        """The names of data sets and methods in the order of the sweep, where one folder says it."""
        (document,) = self.provenance.values() if len(self.provenance) == 1 else ({},)
        return {column: [str(name) for name in document.get(f"{column}s") or ()] for column in ("dataset", "method")}


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
        if cell:
            facts.settings[key] = flat_options(cell)
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


def made_lines(facts: Facts) -> list[str]:
    """Return when each folder was made, and by which command."""
    lines = []
    for label, document in facts.provenance.items():
        where = f"{label}: " if len(facts.provenance) > 1 else ""
        if document.get("start") and document.get("end"):
            lines.append(f"{where}made {_period(document['start'], document['end'])}")
        if document.get("command"):
            lines.append(f"{where}command: {shlex.join(map(str, document['command']))}")
    return lines


def _period(start: str, end: str) -> str:
    """Return two times of provenance.json in minutes of universal time, the date of the second only where it is another."""
    first, last = (datetime.fromisoformat(time).astimezone(UTC) for time in (start, end))
    return f"{first:%Y-%m-%d %H:%M} to {last:{'%H:%M' if first.date() == last.date() else '%Y-%m-%d %H:%M'}} UTC"


def settings_section(facts: Facts, names: Names | None = None) -> list[Section]:
    """Return the section of settings: what varies between the cells, what is common and no default, and, folded, all that is common."""
    if not facts.settings:
        return []
    names = names or Names()
    shown = {"dataset.name": names.datasets, "loss.name": names.losses}
    cells = [{key: shown.get(key, {}).get(str(value), value) for key, value in cell.items()} for cell in facts.settings.values()]
    values: dict[str, dict[str, None]] = {}
    for options in cells:
        for key, value in options.items():
            values.setdefault(key, {})[value if isinstance(value, str) else json.dumps(value)] = None
    everywhere = {key for key in values if all(key in options for options in cells)}
    varied = {key: [*texts] for key, texts in values.items() if key not in everywhere or len(texts) > 1}
    varied = {key: texts for key, texts in varied.items() if not _follows(key, cells)}
    lines = [f"varied: {key} = {listed(texts)}{'' if key in everywhere else ' (some cells only)'}" for key, texts in varied.items()]
    for label, document in facts.provenance.items():
        where = f"{label}: " if len(facts.provenance) > 1 else ""
        changed = [
            f"{key} = {value if isinstance(value, str) else json.dumps(value)}"
            for key, value in (document.get("changed") or {}).items()
            if key not in varied
        ]
        lines += [f"{where}common, not the default: {', '.join(changed)}"] if changed else []
    common = tuple((key, next(iter(texts))) for key, texts in values.items() if key in everywhere and len(texts) == 1)
    return [Section("settings", "Settings", tuple(lines), details=common)]


def _follows(key: str, cells: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a key follows from the name of the choice of its group, as the sizes of a data set do."""
    name = f"{key.partition('.')[0]}.name"
    by_name: dict[str, set[str]] = {}
    for options in cells:
        by_name.setdefault(str(options.get(name)), set()).add(json.dumps(options.get(key)))
    return key != name and len(by_name) > 1 and all(len(values) == 1 for values in by_name.values())


def provenance_section(facts: Facts) -> Section:
    """Return the section on versions, processors and data."""
    lines: list[str] = []
    for label, document in facts.provenance.items():
        where = f"{label}: " if len(facts.provenance) > 1 else ""
        lines += [f"{where}{line}" for line in _made(document) or ["no provenance.json in this folder"]]
    return Section("provenance", "Provenance", tuple(lines))


def _made(document: Mapping[str, Any]) -> list[str]:
    """Return in lines how the rows of a folder were made, by its provenance.json."""
    lines = []
    if theirs := document.get("imported"):
        file = f" from {theirs['file']} (sha256 {theirs['sha256']})" if theirs.get("file") else " from a table in memory"
        return [f"imported{file}: {'; '.join(theirs.get('columns', ()))}", "certificates: none; no fit of these numbers was seen here"]
    sets = document.get("made_by") or [document]
    for maker in sets:
        cells = f"{counted(len(maker['cells']), 'cell')}: " if len(sets) > 1 else ""
        lines += [f"{cells}{line}" for line in _made_by(maker)]
    if "wall_seconds" in document:
        memory = document.get("peak_memory_bytes", 0) / 2**20
        lines.append(
            f"{document['wall_seconds']:.0f} s of work in "
            f"{counted(len(document.get('sessions', [1])), 'session')}, peak memory {memory:.0f} MiB"
        )
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
