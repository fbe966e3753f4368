"""The action ``experiment``: which presets there are and what each computes."""

from __future__ import annotations

from collections.abc import Iterable

from ...config import Settings
from ...config.presets import about, names
from ...core.errors import ConfigError, nearest
from ..console import print_lines
from ..task import Task


class Experiment(Task):
    """List the presets, or show one."""

    section = "Run and compare"
    place = 12
    summary = "list and show presets: sweeps that are ready, such as tables"
    usage = (
        ("experiment list", "every preset: what it is, its cells, the published table beside it"),
        ("experiment show NAME", "one preset in detail; advcli +experiment=NAME runs it"),
    )
    example = "advcli experiment show quickstart"
    keys = ("data_dir",)
    choices = ("list", "show")
    named = "the name of a preset; advcli experiment list has them"

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        if self.name and self.name not in names():
            raise ConfigError(f"there is no preset {self.name}; {nearest(self.name, names())} (see advcli experiment list)")

    @classmethod
    def names(cls) -> Iterable[str]:
        """Return the names of the presets."""
        return names()

    def act(self, settings: Settings) -> None:
        """Print what the files of the presets say."""
        from tabulate import tabulate

        if self.choice == "show":
            print_lines(about(self.name).lines(_fits(self.name)))
        else:
            rows = [[preset.name, str(preset.n_cells), preset.published or "-", preset.title] for preset in map(about, names())]
            print(tabulate(rows, ["name", "cells", "beside", "what it is"], tablefmt="simple", maxcolwidths=[None, None, None, 90]))
            print("\nadvcli +experiment=NAME runs one")


def _fits(name: str) -> dict[str, str]:
    """Return how many fits a preset has and roughly how long they take here, as labelled lines."""
    from ...config import check
    from ...config.composing import compose_cells
    from ...evaluation.sweeps import effort

    rows, features, classes = effort.TRIAL_SIZE
    made = [f"dataset.rows={rows * 10 // 7}", f"dataset.features={features}", f"dataset.classes={classes}"]
    _, (trial,) = compose_cells([["dataset=synthetic_ordinal", *made]], {})
    _, cells = compose_cells([f"+experiment={name}"], {})
    return effort.trial_lines(effort.estimate_by_trials([check(cell) for cell in cells], check(trial).dataset))
