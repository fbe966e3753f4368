"""Command lines in one process without what Hydra does twice for each of them, or did for an earlier one that chose the same files.

Of the words, only the choices of groups have a part in what is kept from one to the next.
"""

import copy
import pickle
from dataclasses import replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import omegaconf
import pytest
import yaml
from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository, ConfigRepository
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf, grammar_parser
from omegaconf._utils import get_yaml_loader

from advcli.core.paths import conf_dir

OURS = {"hydra", "main", "schema"}


@cache
def parsed(text: str) -> bytes:
    found = yaml.load(text, Loader=get_yaml_loader())
    return pickle.dumps(OmegaConf.create() if found is None else OmegaConf.create(found))


def share_compositions(patched: pytest.MonkeyPatch) -> None:
    """Put every choice of groups together once, if all its files are the package's, and Hydra's own, which come first, once for all.

    The other words are applied to a copy of it, as they are to the original.
    """
    compose, load, listing = (
        ConfigLoaderImpl._compose_config_from_defaults_list,
        ConfigLoaderImpl._load_single_config,
        config_loader_impl.create_defaults_list,
    )
    made: dict[Any, bytes] = {}
    lists: dict[Any, DefaultsList] = {}

    def sources(repo: Any) -> tuple[tuple[str, str], ...]:
        """Return where the files are looked for; nothing if a folder of the user's is among them, whose files may change."""
        found = tuple((source.provider, source.path) for source in repo.get_sources())
        return found if {provider for provider, _ in found} <= OURS else ()

    def listed(repo: Any, config_name: str | None, overrides_list: list[Override], **asked: bool) -> DefaultsList:
        if not sources(repo):
            return listing(repo=repo, config_name=config_name, overrides_list=overrides_list, **asked)
        choosing = [each.input_line for each in overrides_list if each.is_sweep_override() or repo.group_exists(each.key_or_group)]
        key = (sources(repo), config_name, *choosing, *asked.items())
        if key not in lists:
            lists[key] = listing(repo=repo, config_name=config_name, overrides_list=overrides_list, **asked)
        return replace(lists[key], config_overrides=Overrides(repo, overrides_list).config_overrides)

    def composed(loader: Any, defaults: list[Any], repo: Any) -> DictConfig:
        if not sources(repo):
            return compose(loader, defaults, repo)
        key = (sources(repo), *((each.config_path, each.package) for each in defaults))
        if key not in made:
            head = sum(1 for _ in takewhile(lambda each: str(each.config_path).startswith("hydra/"), defaults))
            begun = composed(loader, defaults[:head], repo) if 0 < head < len(defaults) else None
            rest = defaults if begun is None else [begun, *defaults[head:]]
            made[key] = pickle.dumps(compose(loader, rest, repo))
        return pickle.loads(made[key])  # in a fifth of the time of a deep copy

    def loaded(loader: Any, default: Any, repo: Any) -> Any:
        return SimpleNamespace(config=default) if isinstance(default, DictConfig) else load(loader, default, repo)

    patched.setattr(config_loader_impl, "create_defaults_list", listed)
    patched.setattr(ConfigLoaderImpl, "_compose_config_from_defaults_list", composed)
    patched.setattr(ConfigLoaderImpl, "_load_single_config", loaded)


def patch(patched: pytest.MonkeyPatch) -> None:
    """Read the package's options once."""
    load, own = OmegaConf.load, str(conf_dir())

    def cached(file: Any) -> Any:
        """Only the package's own files, by their content."""
        path = file if isinstance(file, str | Path) else getattr(file, "name", "")
        if not str(path).startswith(own):
            return load(file)
        return pickle.loads(parsed(Path(path).read_text(encoding="utf-8")))

    def keeping(repository: CachingConfigRepository, delegate: ConfigRepository) -> None:
        """Hydra copies the sources, too, with every structured config of the process, to give the copy other sources."""
        repository.delegate, repository.cache = copy.copy(delegate), {}

    understood = cache(grammar_parser.parse)  # a text is the same tree each time, and visitors only read it
    for module in (omegaconf.base, omegaconf._utils):
        patched.setattr(module, "parse", understood)
    patched.setattr(OmegaConf, "load", staticmethod(cached))
    patched.setattr(CachingConfigRepository, "__init__", keeping)
    share_compositions(patched)
