"""What every action is to Hydra and to `main`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from ..config import Settings, validate
from ..config.words import refuse_added_keys
from ..core.arithmetic import using
from ..core.errors import ConfigError, UnknownNameError, nearest
from .console import silence

T = TypeVar("T")


NAMELESS = ("list", "check")
"""Choices that no name follows."""

PARTICULAR = {
    "results": ("check", "drop", "export", "report", "verify"),
    "figure": ("report",),
    **dict.fromkeys(("baseline", "update", "junit", "summary", "tolerance", "relative_tolerance", "floor"), ("check",)),
    "out": ("coverage", "diff", "export", "fit", "import", "predict", "report"),
    "model": ("certify", "coverage", "predict"),
    "input": ("coverage", "predict"),
    "trust": ("coverage", "model", "predict"),
}
"""Keys whose values are empty unless somebody has set them, and the actions that have them among their `Task.keys`."""

METHOD = ("dataset", "loss", "features", "solver")
"""Groups of every action that fits a method to data."""


class Task:
    """What Hydra calls with a composed config, and what happens before and after; its subclasses are the actions."""

    section: ClassVar[str]
    """Heading of ``advcli --help`` under which the action is listed."""
    place: ClassVar[int]
    """Position of the action in ``advcli --help``."""
    summary: ClassVar[str]
    """Line about the action in ``advcli --help``."""
    usage: ClassVar[Sequence[tuple[str, str]]]
    """Forms of the command for ``advcli help ACTION``: the words after ``advcli``, and what they do."""
    example: ClassVar[str] = ""
    """A command that can be pasted into a shell."""
    groups: ClassVar[Sequence[str]] = ()
    """Groups of the configuration that the action reads, for ``advcli help ACTION``."""
    keys: ClassVar[Sequence[str]] = ()
    """Further keys that the action reads, most used first; the name of a node stands for all of its keys."""
    single = True
    """Whether the action makes no sense in a sweep."""
    code = 0
    """Exit code of an action that ended without an error: 1 where what it looked at failed."""

    choices: ClassVar[Sequence[str]] = ()
    """Words of which one stands first after the action, where there are some."""
    named: ClassVar[str] = ""
    """The name after such a word, for people; empty where none follows."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.overrides = words
        self.error: Exception | None = None
        if self.choices:
            self.choice, self.name, self.overrides = self._chosen(words)

    @property
    def action(self) -> str:
        """The first word of the command."""
        return type(self).__module__.rpartition(".")[2]

    def _chosen(self, words: list[str]) -> tuple[str, str, list[str]]:
        """Return the choice, the name after it and the words that remain; another first word, or no name, is a `ConfigError`."""
        first, *rest = words or [""]
        if first not in self.choices:
            if first:
                raise UnknownNameError(f"unknown action '{self.action} {first}'; {nearest(first, self.choices)}")
            raise ConfigError(f"{self.action} needs {' or '.join(filter(None, (', '.join(self.choices[:-1]), self.choices[-1])))}")
        if first == "list" and rest and rest[0][:1] not in ("-", "+", "~") and "=" not in rest[0]:
            shown = f"; did you mean advcli {self.action} show {rest[0]}?" if "show" in self.choices else ""
            raise ConfigError(f"advcli {self.action} list takes no name{shown}")
        if not self.named or first in NAMELESS:
            return first, "", rest
        if not rest or "=" in rest[0] or rest[0].startswith("-"):
            raise ConfigError(f"{self.action} {first} needs {self.named}")
        return first, rest[0], rest[1:]

    def __call__(self, config: DictConfig) -> Any:
        """Do the action; an error waits for `finish`, because Hydra would print further lines."""
        try:
            refuse_added_keys(HydraConfig.get())
            settings = validate(config)
            self.begin(settings)
            with using(settings.arithmetic):
                self.act(settings)
        except Exception as error:
            self.error = error

    def begin(self, settings: Settings) -> None:
        """Silence the notes that nobody wants, and refuse a key that this action ignores, such as ``advcli model=my.model``."""
        silence(settings.quiet_notes)
        for key, readers in PARTICULAR.items():
            if getattr(settings, key) and self.action not in readers:
                raise ConfigError(
                    f"advcli {self.action} does not read the key {key}, which is for advcli {', '.join(readers)}; leave it out"
                )

    def needed(self, value: T | None, what: str) -> T:
        """Return the value of a key that the action cannot do without; ``what`` says how it is given."""
        if value is None:
            raise ConfigError(f"advcli {self.action} needs {what}")
        return value

    @classmethod
    def complete(cls, words: list[str]) -> tuple[Iterable[str] | None, int]:
        """Return the completions of the last word, None where it is a setting, and how many words stand before the settings."""
        if len(words) == 1 and cls.choices:
            return cls.choices, 0
        taken = min(len(words), bool(cls.choices) + (bool(cls.named) and words[0] not in NAMELESS))
        return (cls.names(), 0) if len(words) == taken == 2 else (None, taken)

    @classmethod
    def names(cls) -> Iterable[str] | None:
        """Return the names that may follow a choice; None where they are not known."""
        return None

    def act(self, settings: Settings) -> None:
        """Do the action with a composed and checked config."""
        raise NotImplementedError

    def plan(
        self, master: DictConfig, cells: list[list[str]], compose: Callable[[Sequence[str]], DictConfig]
    ) -> contextlib.AbstractContextManager[list[list[str]]]:
        """Check all cells of a sweep before the first one starts; the context gives the jobs to launch."""
        raise ConfigError("this action does one thing at a time; leave out hydra.mode=MULTIRUN")

    def run_job(self, job: int) -> Any:
        """Run the cells of one job of a sweep, in a worker."""
        raise NotImplementedError

    def collect(self, results: list[Any] | None) -> None:
        """Take what the jobs of a sweep returned; None if a worker process died."""

    def interrupted(self) -> str:
        """Return what to say after Ctrl-C."""
        return "interrupted"

    def abandoned(self, error: BaseException) -> None:
        """Do what remains when the action ends in an error, whether it had begun or not."""

    def finish(self) -> int:
        """Do what remains when Hydra is done and return the exit code."""
        if self.error is not None:
            raise self.error
        return self.code
