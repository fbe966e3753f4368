"""Choices of configuration groups as the command line composes them, for tests and benchmarks that call the library."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import hydra
from omegaconf import OmegaConf

from advcli.core.paths import conf_dir


@cache
def _compose(group: str, name: str) -> Any:
    with hydra.initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return OmegaConf.to_container(hydra.compose(f"{group}/{name}")[group], resolve=True)


def choice(group: str, name: str) -> dict[str, Any]:
    """Return a choice of a group with all that it inherits, as plain values."""
    return copy.deepcopy(_compose(group, name))
