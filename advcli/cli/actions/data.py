"""The action ``data``: list, show or fetch data sets."""

from __future__ import annotations

from collections.abc import Iterable

from ...config import Settings
from ...paths import conf_dir
from ..task import Task, subject


class Data(Task):
    """List, show or fetch data sets."""

    place = 10
    usage = (
        ("data list", "every data set: source, size, is it here"),
        ("data show NAME", "one data set in detail"),
        ("data fetch NAME", "download one data set"),
    )
    choices = ("list", "show", "fetch")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.what, self.name, rest = subject("data", words, self.choices, "the name of a data set; advcli data list has them")
        self.url, what = None, self.what
        self.overrides = []
        for word in rest:
            if what == "fetch" and word.startswith("url="):
                self.url = word.removeprefix("url=")
            else:
                self.overrides.append(word)
        # what has no file in conf/dataset (data that cannot be loaded yet) can still be shown
        self.composed = what == "show" and ((conf_dir() / "dataset" / f"{self.name}.yaml").is_file() or "--config-dir" in rest)
        if self.composed:
            self.overrides.insert(0, f"dataset={self.name}")

    @classmethod
    def complete(cls, words: list[str]) -> tuple[Iterable[str] | None, int]:
        """Complete list, show or fetch, and the name of a data set."""
        if len(words) < 3 and not (len(words) == 2 and words[0] == "list"):
            return cls.choices if len(words) == 1 else [file.stem for file in (conf_dir() / "dataset").glob("*.yaml")], 0
        return None, {"list": 1, "show": 2, "fetch": 2}.get(words[0], 0)

    def act(self, settings: Settings) -> None:
        """Print what the data package says."""
        from tabulate import tabulate

        from ... import data

        if self.what == "fetch":
            print(data.fetch(self.name, settings.data_dir, url=self.url).message)
        elif self.what == "show":
            lines = data.show(settings.dataset if self.composed else self.name, settings.data_dir)
            print(tabulate([[f"{key}:", value] for key, value in lines.items()], tablefmt="plain", disable_numparse=True))
        else:
            entries = data.list_datasets(settings.data_dir)
            columns = ("name", "source", "rows", "features", "classes", "task")
            rows = [[*(getattr(entry, column) for column in columns), "yes" if entry.here else "no", entry.command] for entry in entries]
            print(tabulate(rows, [*columns, "here", "command"], tablefmt="simple", missingval="-"))
            print(f"\ndata folder: {settings.data_dir} (data_dir=... or ADVCLI_DATA)")
