"""Command lines in one process: each would read the same thirty YAML files twice, which is a fourth of the time of a refusal."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader

from advcli.paths import conf_dir


@cache
def parsed(text: str) -> Any:
    return yaml.load(text, Loader=get_yaml_loader())


@pytest.fixture(scope="session", autouse=True)
def _parses_the_package_s_options_once() -> Iterator[None]:
    """Only the package's own files, by their content; OmegaConf copies what it is given."""
    load, own = OmegaConf.load, str(conf_dir())

    def cached(file: Any) -> Any:
        if not str(getattr(file, "name", "")).startswith(own):
            return load(file)
        found = parsed(file.read())
        return OmegaConf.create() if found is None else OmegaConf.create(found)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OmegaConf, "load", staticmethod(cached))
        yield


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to run in, without the papers' data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADVCLI_DATA", raising=False)
