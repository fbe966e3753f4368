"""Who made the entries of a baseline and of a check, by which configuration: what differs is said before any number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..results import provenance
from ..results.folder import ResultsFolder
from ..results.tables import canonical_json, lasting
from .formats.document import counted

MADE_COLUMNS = ("made_by", "config")
"""Columns of a baseline: versions and processor, and the options of the cell, each ``name=value; ...``. They may be empty."""

NUMERIC = ("advcli", "numpy", "scipy", "scikit-learn")
"""Versions that a check is of: an entry that others made says nothing about the installed ones."""


def made_texts(folder: ResultsFolder, cells: Iterable[str]) -> dict[str, tuple[str, str, str]]:
    """Return for every cell key the two `MADE_COLUMNS`, and which of `NUMERIC` are installed in other versions; empty texts where a cell
    does not say it.
    """
    found = {}
    for key in dict.fromkeys(cells):
        about = (folder.read_cell(key) or {}).get("about", {})
        makers = about.get("made_by", [])
        sets = {name: sorted({facts[name] for facts in map(provenance.facts, makers) if name in facts}) for name in _names(makers)}
        made_by = _text({name: " and ".join(values) for name, values in sets.items()})
        found[key] = made_by, _text(_options(about)), _not_installed(makers)
    return found


def _names(makers: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for made in makers for name in provenance.facts(made)))


def _not_installed(makers: Sequence[Mapping[str, Any]]) -> str:
    """Return in words how the versions of every maker of a cell differ from the installed ones; empty if one of them has those."""
    here = provenance.versions()
    said = []
    for made in makers:
        there = made.get("versions", {})
        others = [f"{name} {there[name]}, installed {here[name]}" for name in NUMERIC if name in there and there[name] != here.get(name)]
        if not others:
            return ""
        said.append("; ".join(others))
    return said[-1] if said else ""


def _options(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what determines a cell by dotted keys, with the checksum of a file in the place of its path."""
    found: dict[str, str] = {}

    def add(value: Any, key: str) -> None:
        if isinstance(value, Mapping):
            for name, each in value.items():
                add(each, f"{key}.{name}" if key else name)
        elif value is not None:
            found[key] = canonical_json(value).strip('"')

    add(lasting(about.get("cell", {})), "")
    files = {key: file["sha256"][:8] for key, file in about.get("files", {}).items()}
    return {key: value for key, value in found.items() if key not in about.get("paths", ())} | files


def _text(facts: Mapping[str, str]) -> str:
    text = "; ".join(f"{name}={value}" for name, value in sorted(facts.items()))
    return text.replace(",", " ").replace('"', "")  # people edit baselines, and fields without quotes are easier to


def differences(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return in words what differs between two entries' `MADE_COLUMNS`: ``numpy 2.3 -> 2.4``; an empty column is not compared."""
    said = []
    for before, now in zip(reversed(old), reversed(new), strict=True):  # the configuration first
        if before and now:
            was, became = (dict(part.partition("=")[::2] for part in text.split("; ")) for text in (before, now))
            names = [name for name in dict.fromkeys([*was, *became]) if was.get(name) != became.get(name)]
            said += [f"{name} {was.get(name, 'null')} -> {became.get(name, 'null')}" for name in names]
    return said


def said_first(differing: Sequence[Sequence[str]], stale: Sequence[str]) -> list[str]:
    """Return what stands above the changes: what differs from the baseline, and which entries the installed versions did not make.

    Parameters
    ----------
    differing : sequence of sequences of str
        `differences` of every entry.
    stale : sequence of str
        Of every entry, how the versions that made it differ from the installed ones; empty where they do not.
    """
    lines = []
    counts = Counter(each for said in differing for each in said)
    if counts:
        listed = [each if count == len(differing) else f"{each} ({count} of {len(differing)} entries)" for each, count in counts.items()]
        lines.append(f"differs from the baseline: {'; '.join(listed)}")
    for said, count in Counter(filter(None, stale)).items():
        number = counted(count, "entry was", "entries were")
        lines.append(f"{number} made by {said}: nothing is known of the installed versions; run the experiment again in a new folder")
    return lines
