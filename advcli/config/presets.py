"""The presets, read off their files in conf/experiment and in users' folders."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from .meanings import choices, described, first_sentence
from .schema import leaves


@dataclass(frozen=True)
class Preset:
    """What the file of a preset says: the comment at its top, without how to run it, as ``description``.

    ``published`` is the published table that its report sets beside the results, ``sweep`` the keys that it varies with the values of each
    as they are written, ``fixed`` further keys that it sets, with dots.
    """

    name: str
    description: str
    published: str | None
    sweep: dict[str, list[str]]
    fixed: dict[str, Any]

    @property
    def title(self) -> str:
        """The first sentence of the description."""
        return first_sentence(self.description)

    @property
    def n_cells(self) -> int:
        """How many cells it has."""
        return math.prod(len(values) for values in self.sweep.values())

    def lines(self, fits: Mapping[str, str]) -> dict[str, str]:
        """Return what there is to say about it, as labelled lines of text; ``fits`` are those about its fits."""
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
    config: Any = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    params = ((config.pop("hydra", None) or {}).get("sweeper") or {}).get("params") or {}
    config.pop("defaults", None)
    config.pop("name", None)
    published = config.pop("published", None)
    parser = OverridesParser.create()
    sweep = {}
    for key, value in params.items():
        override = parser.parse_override(f"{key}={value}")
        sweep[key] = list(override.sweep_string_iterator()) if override.is_sweep_override() else [str(value)]
    return Preset(
        name,
        described(file).partition("Usage: ")[0].strip(),
        published,
        sweep,
        {".".join(path): value for path, value in leaves(config).items()},
    )
