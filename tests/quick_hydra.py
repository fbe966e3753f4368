"""Command lines in one process without what Hydra does twice for each of them, which is half of the time of a refusal.

Nothing that depends on the words is kept from one to the next.
"""

from functools import cache
from typing import Any

import pytest
import yaml
from hydra._internal.hydra import Hydra
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader

from advcli.paths import conf_dir


@cache
def parsed(text: str) -> Any:
    return yaml.load(text, Loader=get_yaml_loader())


def patch(patched: pytest.MonkeyPatch) -> None:
    """Read the package's options once; compose once where nothing could ask for a sweep."""
    load, own, mode_of = OmegaConf.load, str(conf_dir()), Hydra.get_mode

    def cached(file: Any) -> Any:
        """Only the package's own files, by their content; OmegaConf copies what it is given."""
        if not str(getattr(file, "name", "")).startswith(own):
            return load(file)
        found = parsed(file.read())
        return OmegaConf.create() if found is None else OmegaConf.create(found)

    def mode(application: Hydra, config_name: str | None, overrides: list[str]) -> Any:
        """Hydra composes a first time to read hydra.mode, which presets set, words, and files that are not the package's."""
        folders = application.config_loader.get_search_path().get_path()
        asks = any(word.startswith(("+", "hydra")) for word in overrides) or any(
            folder.provider not in ("hydra", "main", "schema") for folder in folders
        )
        return mode_of(application, config_name, overrides) if asks else None

    patched.setattr(OmegaConf, "load", staticmethod(cached))
    patched.setattr(Hydra, "get_mode", mode)
