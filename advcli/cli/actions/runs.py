"""The action ``runs``: which results there are."""

from __future__ import annotations

from ...config import Settings
from ..console import columns, short
from ..task import Task


class Runs(Task):
    """List the results folders."""

    section = "Run and compare"
    place = 14
    summary = "list the results folders"
    usage = (("runs list", "every folder in results/: when it ran, its cells, data sets and methods"),)
    example = "advcli runs list"
    keys = ("results_dir",)
    choices = ("list",)

    def act(self, settings: Settings) -> None:
        """Print a line for each folder, the latest last."""
        from ...results.folder import overview

        folders = overview(settings.results_dir)
        if folders:
            rows = [("-" if value is None else str(value) for value in run.values()) for run in folders]
            print("\n".join(columns([tuple(folders[0]), *map(tuple, rows)])))
        else:
            print("no results yet: advcli -m dataset=iris,wine name=first makes some")
        print(f"\nfolder: {short(settings.results_dir)} (results_dir=...)")
