"""The action ``diff``: in what do two results folders differ?"""

from __future__ import annotations

from collections.abc import Iterable

from ...config import Settings
from ...core.errors import ConfigError, ResultsError, nearest
from ...core.paths import expanded
from ..console import short, warn
from ..folders import beside, refuse_unwritable
from ..task import Task


class Diff(Task):
    """Print which settings of two results folders differ, then which numbers."""

    section = "Check, keep and share"
    place = 43
    summary = "settings and numbers of two results folders that differ"
    usage = (
        ("diff results/A results/B [out=FILE.csv|FILE.json]", "settings first, then numbers, then cells that one has alone; exit code 0"),
    )
    example = "advcli diff results/first results/second out=differences.csv"
    keys = ("out",)

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.folders = [word for word in words if "=" not in word and not word.startswith("-")]
        self.overrides = [word for word in words if word not in self.folders]

    @classmethod
    def complete(cls, words: list[str]) -> tuple[Iterable[str] | None, int]:
        """Return no completions: the shell completes folders."""
        return None, len([word for word in words if "=" not in word])

    def act(self, settings: Settings) -> None:
        """Read both folders, print the differences and write the file."""
        from ...reports.regression.difference import folder_difference
        from ...results.folder import ResultsFolder

        if len(self.folders) != 2:
            raise ConfigError(f"advcli diff needs two results folders, not {len(self.folders)}: advcli diff results/A results/B")
        paths = [expanded(text).absolute() for text in self.folders]
        for path in paths:
            if not path.is_dir():
                others = [entry.name for entry in path.parent.iterdir() if entry.is_dir()] if path.parent.is_dir() else []
                raise ResultsError(f"no results folder {short(path)}" + (f"; {nearest(path.name, others)}" if others else ""))
        out = settings.out
        if out is not None:
            if out.suffix not in (".csv", ".json"):
                raise ConfigError(f"out={short(out)}: the end of the name says the format; give FILE.csv or FILE.json")
            refuse_unwritable(out)
        first, second = (ResultsFolder(path) for path in paths)
        found = folder_difference(first, second, (short(paths[0]), short(paths[1])))
        warn([*first.remarks, *second.remarks])
        if out is None:
            print(found.text(), end="")
            return
        from ...core.files import write_text

        write_text(out, found.json() if out.suffix == ".json" else found.csv(), "choose another file", streams=True)
        beside(out)(f"{short(out)}: {len(found.settings)} settings and {len(found.numbers)} numbers")
