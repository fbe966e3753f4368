"""The action ``data``: list, show or fetch data sets, or check a file of one's own."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from textwrap import fill
from typing import Any

from ...config import Settings
from ...config.words import typed
from ...core.errors import ConfigError, nearest
from ...core.paths import conf_dir, expanded
from ..console import print_lines
from ..task import Task

WIDTH = 100
"""Columns of a terminal that lines of remarks keep to."""

MOST_ROWS = 40
"""Columns and classes that are listed."""


class Data(Task):
    """List, show or fetch data sets, or check a file of one's own."""

    section = "Data"
    place = 21
    summary = "list, show and fetch data sets; check a file of your own"
    usage = (
        ("data list", "every data set: source, size, is it here"),
        ("data show NAME", "one data set in detail"),
        ("data fetch NAME", "download one data set"),
        ("data check path=FILE target=COLUMN", "a file of your own: columns, gaps, classes, the command line that fits"),
    )
    example = "advcli data check path=my.csv target=label"
    choices = ("list", "show", "fetch", "check")
    keys = ("path", "target", "separator", "encoding")

    named = "the name of a data set; advcli data list has them"

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.about_file: dict[str, str] = {}
        self.url: str | None = None
        rest = self.overrides
        if self.choice == "check":
            self._take(rest)
            self.overrides = []
        if self.choice == "fetch":
            self.url = next((word.removeprefix("url=") for word in reversed(rest) if word.startswith("url=")), None)
            self.overrides = [word for word in rest if not word.startswith("url=")]
        # what has no file in conf/dataset (data that cannot be loaded yet) can still be shown
        self.composed = self.choice == "show" and ((conf_dir() / "dataset" / f"{self.name}.yaml").is_file() or "--config-dir" in rest)
        if self.composed:
            self.overrides = [f"dataset={self.name}", *rest]

    def _take(self, words: list[str]) -> None:
        """Take the keys of ``check``, with or without ``dataset.`` before them."""
        for word in words:
            key, equals, value = word.partition("=")
            key = key.removeprefix("dataset.")
            if word.startswith("-"):
                raise ConfigError(f"advcli data check takes {', '.join(f'{name}=...' for name in self.keys)}; leave out {word}")
            if not equals and "path" not in self.about_file:
                key, value = "path", word
            if key not in self.keys:
                raise ConfigError(f"advcli data check takes {', '.join(f'{name}=...' for name in self.keys)}; {nearest(key, self.keys)}")
            self.about_file[key] = value
        if "path" not in self.about_file:
            raise ConfigError("advcli data check needs path=FILE, as in advcli data check path=my.csv target=label")

    @classmethod
    def names(cls) -> Iterable[str]:
        """Return the names of the data sets."""
        return [file.stem for file in (conf_dir() / "dataset").glob("*.yaml")]

    def act(self, settings: Settings) -> None:
        """Print what the data package says."""
        from tabulate import tabulate

        from ... import data

        if self.choice == "check":
            self._check()
        elif self.choice == "fetch":
            print(data.fetch(self.name, settings.data_dir, url=self.url).message)
        elif self.choice == "show":
            print_lines(data.show(settings.dataset if self.composed else self.name, settings.data_dir))
        else:
            entries = data.list_datasets(settings.data_dir)
            columns = ("name", "source", "rows", "features", "classes", "task")
            rows = [[*(getattr(entry, column) for column in columns), "yes" if entry.here else "no", entry.command] for entry in entries]
            print(tabulate(rows, [*columns, "here", "command"], tablefmt="simple", missingval="-"))
            print(f"\ndata folder: {settings.data_dir} (data_dir=... or ADVCLI_DATA)")

    def _check(self) -> None:
        from ...data.tables.checking import check_file

        path, target = expanded(self.about_file["path"]), self.about_file.get("target")
        table = check_file(path, target, self.about_file.get("separator"), self.about_file.get("encoding"))
        print(f"{table.head}\n")
        _print_some(table.columns, "columns", ())
        if table.classes:
            _print_some(table.classes, "classes", ("left", "right"))
        for remark in table.remarks:
            print(fill(remark, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
        if table.options:
            print("\nThe command line that fits it:\n")
            line = " "
            options = (shlex.quote(typed(f"dataset.{key}", value)) for key, value in table.options.items())
            for word in ["advcli", "dataset=csv", *options]:
                if len(line) + len(word) > WIDTH - 3:
                    print(f"{line} \\")
                    line = "   "
                line += f" {word}"
            print(line)


def _print_some(rows: list[dict[str, Any]], what: str, align: tuple[str, ...]) -> None:
    """Print the first rows of a table and how many more there are."""
    from tabulate import tabulate

    print(tabulate(rows[:MOST_ROWS], "keys", tablefmt="simple", disable_numparse=True, colalign=align or None))
    print(f"... and {len(rows) - MOST_ROWS} more {what}\n" if len(rows) > MOST_ROWS else "")
