"""The action ``report``: tables and figures from rows alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...config import Settings, check
from ...config.composing import compose_cells
from ...core.errors import ConfigError
from ..console import print_table, say, short, warn
from ..folders import existing_folders, list_of_folders, refuse_file
from ..task import Task

if TYPE_CHECKING:
    from ...results.folder import ResultsFolder


class Report(Task):
    """Make the tables of a finished or partial sweep again, from its rows alone; or draw a picture of losses or fits."""

    section = "Run and compare"
    place = 13
    summary = "tables, figures and a page of a sweep; pictures of losses"
    usage = (
        ("report results=results/NAME", "tables of a finished or partial sweep, from its rows"),
        ("report results=results/A,results/B out=FOLDER", "one table of several sweeps"),
        ("report figure=boundaries dataset=NAME", "where methods change their prediction; also loss_curves, loss_matrix, ..."),
    )
    example = "advcli report results=results/quickstart"
    keys = ("results", "out", "report", "published", "figure", "draw", "spreadsheets", "results_dir", "plugins")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.overrides = list_of_folders(words)

    def act(self, settings: Settings) -> None:
        """Merge, summarise, write and print; or draw the figure that was asked for."""
        if settings.figure is not None:
            if settings.out is not None:
                raise ConfigError("out= is for tables; a figure goes to results_dir")
            self._draw(settings)
            return
        from ...reports import Choice, write_reports
        from ...results.folder import ResultsFolder
        from ...statistics.marks import Significance

        folders = [ResultsFolder(path) for path in existing_folders(settings)]
        path = _place(settings, folders)
        significance = Significance.chosen(settings.report, _protocol_of(folders[0]) or vars(settings.protocol))
        metric, choice = settings.report["metric"], Choice.of(settings.report)
        try:
            how: dict[str, Any] = {"published": settings.published, "choice": choice, "spreadsheets": settings.spreadsheets}
            summary = write_reports(folders, significance, metric, full=True, out=settings.out, **how)
        finally:
            for folder in folders:
                warn(folder.remarks)
        print_table(summary)
        plots = [name for name in summary.attrs["files"] if name.startswith("plots/")]
        tables = [] if settings.out else [name for name in ("runs.csv", "search.csv") if (path / name).exists()]
        print(f"{short(path)}: {', '.join([*tables, *(name for name in summary.attrs['files'] if name not in plots)])}")
        for stem in dict.fromkeys(name.rpartition(".")[0] for name in plots):
            print(f"{stem}: {', '.join(name.rpartition('.')[2] for name in plots if name.rpartition('.')[0] == stem)}")
        for remark in summary.attrs["remarks"]:
            say(remark)
        print(f"report: {short(path / 'report.html')}")

    def _draw(self, settings: Settings) -> None:
        """Draw a picture of losses or of fits, and write the numbers drawn as CSV."""
        from ...evaluation import Cell
        from ...reports.pictures import Request, pictures, write_picture

        assert settings.figure is not None
        drawing, draw = pictures.get(settings.figure), settings.draw
        beside = draw["losses"] or [settings.loss["name"], *drawing.beside]
        losses = [settings.loss if name == settings.loss["name"] else self._composed(name) for name in dict.fromkeys(beside)]
        columns = None if draw["columns"] is None else tuple(draw["columns"])
        others = {name: draw[name] for name in ("classes", "rows", "epsilon")}
        request = Request(Cell.of(settings), settings.data_dir, tuple(losses), tuple(draw["C"]), columns, **others)
        for picture in drawing.make(request):
            files = write_picture(picture, settings.results_dir, settings.spreadsheets)
            print(f"{short(files[-1])}: {picture.said}; also {', '.join(path.suffix for path in files[:-1])}")

    def _composed(self, name: str) -> dict[str, Any]:
        """Return the group ``loss`` of that name, as its file has it."""
        others = [text for text in self.overrides if not text.lstrip("+~").startswith("loss") and not text.startswith("hydra")]
        _, (config,) = compose_cells([[*others, f"loss={name}"]], {})
        return check(config).loss


def _place(settings: Settings, folders: list[ResultsFolder]) -> Path:
    """Return the folder for the tables; refuse, before the work, a folder that cannot be written or belongs to another sweep."""
    out = settings.out
    if out is None:
        if len(folders) > 1:
            raise ConfigError("one table of several results folders needs out=FOLDER, where to write it")
        return folders[0].path
    refuse_file(out)
    if (out / "cells").exists():
        raise ConfigError(f"out={short(out)} is a results folder with tables of its own; choose another one")
    if not out.parent.is_dir():
        raise ConfigError(f"out={short(out)}: there is no folder {short(out.parent)}; make it first")
    return out


def _protocol_of(folder: ResultsFolder) -> dict[str, Any] | None:
    """Return the protocol that the cells were made with; None without a readable cell."""
    stored = map(folder.read_cell, folder.finished_keys())
    return next((cell["about"]["cell"]["protocol"] for cell in stored if cell is not None and "cell" in cell["about"]), None)
