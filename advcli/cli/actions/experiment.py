"""The action ``experiment``: which presets there are and what each computes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...config import Settings
from ...config.presets import Preset, about, names
from ...core.errors import UnknownNameError, nearest
from ...data import list_datasets, missing_files
from ..console import columns, print_lines, short
from ..task import Task

HEADS = ("name", "cells", "time", "data", "what it is")
SECTIONS = {
    "Start here": ("quickstart", "ci_check"),
    "Fathony et al. 2016 and 2018: adversarial losses": ("fathony", "ordinal_rules"),
    "Louche and Ralaivola 2015: label noise": ("louche",),
    "Choi 2018: hierarchies, sets of labels, sequences": ("choi",),
    "Others": ("",),
}
"""Headings of the list and how the names of their presets begin."""


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
            raise UnknownNameError(f"there is no preset {self.name}; {nearest(self.name, names())} (see advcli experiment list)")

    @classmethod
    def names(cls) -> Iterable[str]:
        """Return the names of the presets."""
        return names()

    def act(self, settings: Settings) -> None:
        """Print what the files of the presets say."""
        if self.choice == "show":
            print_lines(about(self.name).lines(_fits(self.name)))
            return
        entries = list_datasets(settings.data_dir)
        absent = {entry.name for entry in entries} - {entry.name for entry in entries if entry.here}
        presets = [about(name) for name in names()]
        for heading, starts in SECTIONS.items():
            members = [preset for preset in presets if preset.name.startswith(starts)]
            presets = [preset for preset in presets if preset not in members]
            rows = [(one.name, str(one.n_cells), one.takes or "-", _data(one, absent, settings.data_dir), one.title) for one in members]
            if rows:
                print("\n".join([heading, *columns([HEADS, *rows], indent=2)]), end="\n\n")
        print(f"data folder: {short(settings.data_dir)} (data_dir=... or ADVCLI_DATA); time: of one core, or how many fits")
        print("advcli +experiment=NAME runs one, advcli experiment show NAME has its details")


def _data(preset: Preset, absent: set[str], data_dir: Path) -> str:
    """Return whether the data sets of a preset are here, or how many of them are not; splits of authors can have a table of their own."""
    if preset.fixed.get("protocol.splits") == "author":
        absent = {name for name in absent if missing_files({"name": name, "source": "folder"}, data_dir, author_splits=True)}
    lacks = sum(name in absent for name in preset.datasets)
    return "here" if not lacks else "absent" if lacks == len(preset.datasets) else f"{lacks} absent"


def _fits(name: str) -> dict[str, str]:
    """Return how many fits a preset has and roughly how long they take here, as labelled lines."""
    from ...config import check
    from ...config.composing import compose_cells
    from ...evaluation.sweeps import effort

    _, cells = compose_cells([f"+experiment={name}"], {})
    return effort.trial_lines(effort.estimate_by_trials([check(cell) for cell in cells], effort.made_up()))
