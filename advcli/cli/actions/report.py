"""The action ``report``: tables and figures from rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import Settings
from ..console import print_table, say, short
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

        path = existing_folder(settings)
        folder = ResultsFolder(path)
        test, alpha = _test_of(folder, settings)
        summary = write_reports(folder, test=test, alpha=alpha, metric=settings.report["metric"], full=True, published=settings.published)
        print_table(summary, test, alpha)
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


def _test_of(folder: ResultsFolder, settings: Settings) -> tuple[str, float]:
    """Return test and level: as asked, else as the cells were made with."""
    stored = (folder.read_cell(file.stem) for file in sorted(folder.cells_path.glob("*.json")))
    protocol = next((cell["about"]["cell"]["protocol"] for cell in stored if cell is not None), settings.protocol)
    return settings.report["test"] or protocol["test"], settings.report["alpha"] or protocol["alpha"]
