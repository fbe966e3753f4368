"""The action ``drop``: take methods or data sets out of a results folder."""

from __future__ import annotations

from ...config import Settings
from ...config.words import command
from ...core.errors import ConfigError, UnknownNameError, nearest
from ...results.provenance import counted
from ..console import short, warn
from ..folders import existing_folder
from ..task import Task


class Drop(Task):
    """Remove the cells of some methods or data sets from a results folder; the same command as before computes them again."""

    section = "Check, keep and share"
    place = 46
    summary = "remove cells, such as failed ones, from a results folder"
    usage = (
        ("drop results=results/NAME method=NAME[,NAME] [dataset=NAME]", "remove cells, such as failed ones, by the names of the table"),
    )
    example = "advcli drop results=results/first dataset=iris method=cs"
    keys = ("results",)

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.wanted: dict[str, list[str]] = {}
        self.overrides = []
        for word in words:
            key, _, value = word.partition("=")
            if key in ("method", "dataset") and value:  # names in rows, not choices of a group
                self.wanted.setdefault(key, []).append(value.strip("'\""))
            else:
                self.overrides.append(word)

    def act(self, settings: Settings) -> None:
        """Find the cells by the names that tables show, remove them and merge the others."""
        from ...reports.sources import Sources
        from ...reports.summary import with_unique_methods
        from ...results.folder import ResultsFolder

        if not self.wanted:
            raise ConfigError("advcli drop needs method=NAME or dataset=NAME, as the table has them")
        folder = ResultsFolder(existing_folder(settings))
        runs = Sources([folder], merge=False).runs
        named = with_unique_methods(runs).assign(plain=runs["method"], loss=runs["loss"])
        cells = named.drop_duplicates("cell")
        for key, texts in self.wanted.items():
            columns = ("dataset",) if key == "dataset" else ("method", "plain", "loss")
            names_there = {str(name) for column in columns for name in cells[column]}
            # a name may have commas itself
            names = [name for text in texts for name in ([text] if text in names_there else map(str.strip, text.split(",")))]
            for name in names:
                if name not in names_there:
                    raise UnknownNameError(f"no {key} {name!r} in {short(folder.path)}; {nearest(name, cells[columns[0]])}")
            cells = cells[cells[list(columns)].isin(names).any(axis=1)]
        if cells.empty:
            raise ConfigError(f"no cell of {short(folder.path)} has all of these names")
        lines = [f"dropped: {row['dataset']}, {row['method']}" for row in cells.to_dict("records")]
        remaining = folder.drop(cells["cell"])
        warn(folder.remarks)
        print("\n".join(lines))
        print(f"{short(folder.path)}: {counted(remaining)} left; {command('report', results=short(folder.path))} makes its tables anew")
