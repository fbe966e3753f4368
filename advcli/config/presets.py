"""The presets, read off their files in conf/experiment and in users' folders."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser

from .meanings import choices, defaults, described, first_sentence, read_yaml
from .schema import leaves


@dataclass(frozen=True)
class Preset:
    """What the file of a preset says: the comment at its top, without how to run it, as ``description``.

    ``published`` is the published table that its report compares the results with. ``sweep`` has the keys that it varies and the values of
    each as they are written, ``fixed`` the other keys that it sets, with dots. ``datasets`` are the names of its data sets.
    """

    name: str
    description: str
    published: str | None
    sweep: dict[str, list[str]]
    fixed: dict[str, Any]
    datasets: tuple[str, ...]

    @property
    def title(self) -> str:
        """The first sentence of the description."""
        return first_sentence(self.description)

    @property
    def takes(self) -> str:
        """The time of one core that the description states, ``4 min``; empty where it states none."""
        stated = re.search(r"Takes about (\S+ \S+) of one core\.", self.description)
        return stated[1] if stated else ""

    @property
    def n_cells(self) -> int:
        """How many cells it has."""
        return math.prod(len(values) for values in self.sweep.values())

    def lines(self, fits: Mapping[str, str]) -> dict[str, str]:
        """Return a description, as labelled lines of text; ``fits`` are those about its fits."""
        return {
            "name": self.name,
            "what": self.description,
            **{key.lstrip("+"): f"{', '.join(values)} ({len(values)})" for key, values in self.sweep.items()},
            "cells": str(self.n_cells),
            **fits,
            # true, false and null as one types them
            **{key: json.dumps(value) if isinstance(value, bool | None) else str(value) for key, value in self.fixed.items()},
            "beside": self.published or "no published table",
            "run": f"advcli +experiment={self.name}",
            "table": f"advcli report results=results/{self.name}",
        }


def names() -> list[str]:
    """Return the names of all presets: first the one for a first look, which needs no data folder, then by the alphabet."""
    return sorted(choices("experiment"), key=lambda name: (name != "quickstart", name))


def about(name: str) -> Preset:
    """Return what the file of a preset says; `KeyError` if there is none."""
    file = choices("experiment")[name]
    config = read_yaml(file)
    params = ((config.pop("hydra", None) or {}).get("sweeper") or {}).get("params") or {}
    parser = OverridesParser.create()
    sweep = {}
    for key, value in params.items():
        override = parser.parse_override(f"{key}={value}")
        sweep[key] = list(override.sweep_string_iterator()) if override.is_sweep_override() else [str(value)]
    files = [file, *(choices(key.lstrip("+"))[choice] for key, added in sweep.items() if key.startswith("+") for choice in added)]
    datasets = sweep.get("dataset") or [dataset for other in files for dataset in _datasets(other)] or [defaults()["dataset"]]
    config.pop("defaults", None)
    config.pop("name", None)
    published = config.pop("published", None)
    fixed = {".".join(path): value for path, value in leaves(config).items()}
    return Preset(name, described(file).partition("Usage: ")[0].strip(), published, sweep, fixed, tuple(dict.fromkeys(datasets)))


def _datasets(file: Path) -> list[str]:
    """Return the data set that a file chooses in its list of defaults, or for itself; none where it leaves the choice to others."""
    config = read_yaml(file)
    named = (config.get("dataset") or {}).get("name")
    chosen = [entry.get("override /dataset") for entry in config.get("defaults", ()) if isinstance(entry, dict)]
    return [named] if named else [name for name in chosen if name is not None]
