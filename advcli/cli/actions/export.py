"""The action ``export``: results in the formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    usage = (
        ("export csv results=results/NAME out=FILE", "its rows; also parquet, latex (its tables), and mlflow, where out is a folder"),
        ("export items results=results/NAME out=FILE", "the metric on every test example, a CSV file for advcli import"),
    )
    example = "advcli export parquet results=results/first out=first.parquet"
    keys = ("results", "out", "report", "data_dir")
    choices = ("csv", "items", "latex", "mlflow", "parquet")

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
            choice = Choice.of(settings.report)
            if self.choice == "items":
                summary, remarks = _write_items(folders, settings.out, settings, choice)
            else:
                summary, remarks = export(folders, self.choice, settings.out, choice)
        finally:
            for folder in folders:
                warn(folder.remarks)
        for remark in remarks:
            say(remark)
        print(f"{short(settings.out)}: {summary}")


def _write_items(folders: Any, out: Path, settings: Settings, choice: Any) -> tuple[str, list[str]]:
    """Write what every test example of every chosen cell is worth, with the names that reports give to methods."""
    import pandas as pd

    from ...core.files import write_text
    from ...evaluation.items import item_scores
    from ...reports.sources import Sources

    sources = Sources(folders, merge=False)
    runs = choice.rows(sources.runs)[0]
    places = {key: folder for folder in folders for key in folder.finished_keys()}
    rows = []
    for cell, of_cell in runs.groupby("cell", sort=False):
        metric, scores = item_scores(places[str(cell)], str(cell), settings.data_dir, settings.report["metric"])
        about = str(of_cell["dataset"].iloc[0]), str(of_cell["method"].iloc[0])
        rows += [(*about, score.item, metric, score.value) for score in scores]
    table = pd.DataFrame(rows, columns=["dataset", "method", "item", "metric", "value"])
    write_text(out, table.to_csv(index=False, lineterminator="\n"))
    return f"{len(table)} scores of {table[['dataset', 'item']].drop_duplicates().shape[0]} examples", sources.remarks
