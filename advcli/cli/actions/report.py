"""The action ``report``: tables and figures from rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...config import Settings
from ..console import print_table, say, short, warn
from ..folders import existing_folder
from ..task import Task

if TYPE_CHECKING:
    from ...records import ResultsFolder


class Report(Task):
    """Make the tables of a finished or partial sweep again, from its rows alone."""

    place = 2
    usage = (("report results=results/NAME", "tables of a finished or partial sweep, from its rows"),)

    def act(self, settings: Settings) -> None:
        """Merge, summarise, write and print; or draw the figure that was asked for."""
        if settings.figure is not None:
            self._draw(settings)
            return
        from ...records import ResultsFolder
        from ...reports import write_reports
        from ...statistics import Significance

        path = existing_folder(settings)
        folder = ResultsFolder(path)
        significance = Significance.chosen(settings.report, _protocol_of(folder) or settings.protocol)
        try:
            summary = write_reports(folder, significance, settings.report["metric"], full=True, published=settings.published)
        finally:
            warn(folder.remarks)
        print_table(summary)
        print(f"{short(path)}: {', '.join(['runs.csv', 'search.csv', *summary.attrs['files']])}")
        for remark in summary.attrs["remarks"]:
            say(remark)

    @staticmethod
    def _draw(settings: Settings) -> None:
        """Draw the loss's surface for each true label."""
        from ...losses import make_loss
        from ...surfaces import draw_surface, loss_surface

        loss = make_loss(settings.loss["name"], 3, **{key: value for key, value in settings.loss.items() if key != "name"})
        for truth in range(3):
            surface = loss_surface(loss, truth)
            path = draw_surface(loss, surface, settings.results_dir / f"loss_surface_{loss.name}_{truth + 1}.png")
            print(f"{short(path)}: y = {truth + 1}, {surface.pieces} linear pieces")


def _protocol_of(folder: ResultsFolder) -> dict[str, Any] | None:
    """Return the protocol that the cells were made with; None without a readable cell."""
    stored = map(folder.read_cell, folder.finished_keys())
    return next((cell["about"]["cell"]["protocol"] for cell in stored if cell is not None), None)
