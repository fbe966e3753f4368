"""The action ``export``: results in the formats of other programs."""

from __future__ import annotations

from ...config import Settings
from ...core.errors import ConfigError, nearest
from ..console import say, short, warn
from ..folders import existing_folders, list_of_folders, refuse_unwritable
from ..task import Task


class Export(Task):
    """Write the rows of a results folder, or its tables, for other programs; the folder is only read."""

    place = 5
    usage = (("export csv results=results/NAME out=FILE", "its rows; also parquet, latex (its tables), and mlflow, where out is a folder"),)
    choices = ("csv", "latex", "mlflow", "parquet")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.to, self.overrides = (words or [""])[0], list_of_folders(words[1:])
        if self.to not in self.choices:
            message = f"unknown action 'export {self.to}'; {nearest(self.to, self.choices)}" if self.to else "export needs"
            raise ConfigError(message if self.to else f"{message} {', '.join(self.choices[:-1])} or {self.choices[-1]}")

    def act(self, settings: Settings) -> None:
        """Read the cells and write them."""
        paths = existing_folders(settings)
        if settings.out is None:
            raise ConfigError(f"advcli export {self.to} needs out={'FOLDER' if self.to == 'mlflow' else 'FILE'}, where to write")
        if self.to != "mlflow":
            refuse_unwritable(settings.out)
        elif settings.out.exists() and not settings.out.is_dir():
            raise ConfigError(f"out={short(settings.out)} is a file; mlflow needs a folder")
        from ...reports import Choice
        from ...reports.export import export
        from ...results.folder import ResultsFolder

        folders = [ResultsFolder(path) for path in paths]
        try:
            summary, remarks = export(folders, self.to, settings.out, Choice.of(settings.report))
        finally:
            for folder in folders:
                warn(folder.remarks)
        for remark in remarks:
            say(remark)
        print(f"{short(settings.out)}: {summary}")
