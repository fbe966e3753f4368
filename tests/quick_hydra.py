"""Command lines in one process without what Hydra does twice for each of them, which is half of the time of a refusal.

Nothing that depends on the words is kept from one to the next.
"""

import copy
from functools import cache
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import omegaconf
import pytest
import yaml
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.hydra import Hydra
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, grammar_parser
from omegaconf._utils import get_yaml_loader

from advcli.paths import conf_dir


@cache
def parsed(text: str) -> Any:
    return yaml.load(text, Loader=get_yaml_loader())


def only_ours(loader: Any) -> bool:
    """Tell whether no folder of the user's takes part in a composition."""
    return all(folder.provider in ("hydra", "main", "schema") for folder in loader.get_search_path().get_path())


def share_hydra_s_own(patched: pytest.MonkeyPatch) -> None:
    """Put Hydra's own node together once for every choice of its groups, which come first; compositions begin with a copy of it."""
    compose, load = ConfigLoaderImpl._compose_config_from_defaults_list, ConfigLoaderImpl._load_single_config
    made: dict[tuple[tuple[str, str], ...], Any] = {}

    def composed(loader: Any, defaults: list[Any], repo: Any) -> Any:
        head = list(takewhile(lambda each: str(each.config_path).startswith("hydra/"), defaults))
        sources = [source.provider for source in repo.get_sources()]
        if not head or not set(sources) <= {"hydra", "main", "schema"}:
            return compose(loader, defaults, repo)
        key = tuple((each.config_path, each.package) for each in head)
        if key not in made:
            made[key] = compose(loader, head, repo)
            return compose(loader, defaults, CachingConfigRepository(loader.repository))
        return compose(loader, [made[key], *defaults[len(head) :]], repo)

    def loaded(loader: Any, default: Any, repo: Any) -> Any:
        return SimpleNamespace(config=copy.deepcopy(default)) if isinstance(default, DictConfig) else load(loader, default, repo)

    patched.setattr(ConfigLoaderImpl, "_compose_config_from_defaults_list", composed)
    patched.setattr(ConfigLoaderImpl, "_load_single_config", loaded)


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
        if [word for word in overrides if word.startswith("hydra.")] == ["hydra.mode=RUN"]:
            return RunMode.RUN
        asks = any(word.startswith(("+", "hydra")) for word in overrides) or not only_ours(application.config_loader)
        return mode_of(application, config_name, overrides) if asks else None

    understood = cache(grammar_parser.parse)  # a text is the same tree each time, and visitors only read it
    for module in (omegaconf.base, omegaconf._utils):
        patched.setattr(module, "parse", understood)
    patched.setattr(OmegaConf, "load", staticmethod(cached))
    patched.setattr(Hydra, "get_mode", mode)
    share_hydra_s_own(patched)
