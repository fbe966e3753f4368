"""The action ``export``: results in the formats of other programs."""

from __future__ import annotations

from ...config import Settings
from ...core.errors import ConfigError
from ..console import say, short, warn
from ..folders import existing_folders, list_of_folders, refuse_file, refuse_unwritable
from ..task import Task


class Export(Task):
    """Write the rows of a results folder, or its tables, for other programs; the folder is only read."""

    section = "Check, keep and share"
    place = 45
    summary = "write rows or tables as CSV, parquet, LaTeX or MLflow runs"
    usage = (("export csv results=results/NAME out=FILE", "its rows; also parquet, latex (its tables), and mlflow, where out is a folder"),)
    example = "advcli export parquet results=results/first out=first.parquet"
    keys = ("results", "out", "report")
    choices = ("csv", "latex", "mlflow", "parquet")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.overrides = list_of_folders(self.overrides)

    def act(self, settings: Settings) -> None:
        """Read the cells and write them."""
        paths = existing_folders(settings)
        if settings.out is None:
            raise ConfigError(f"advcli export {self.choice} needs out={'FOLDER' if self.choice == 'mlflow' else 'FILE'}, where to write")
        if self.choice == "mlflow":
            refuse_file(settings.out, "mlflow needs a folder")
        else:
            refuse_unwritable(settings.out)
        from ...reports import Choice
        from ...reports.export import export
        from ...results.folder import ResultsFolder

        folders = [ResultsFolder(path) for path in paths]
        try:
            summary, remarks = export(folders, self.choice, settings.out, Choice.of(settings.report))
        finally:
            for folder in folders:
                warn(folder.remarks)
        for remark in remarks:
            say(remark)
        print(f"{short(settings.out)}: {summary}")
