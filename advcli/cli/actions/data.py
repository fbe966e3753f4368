"""The action ``data``: list, show or fetch data sets, or check a user's file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ...config import Settings, presets
from ...config.words import typed
from ...core.errors import ConfigError, UnknownNameError, nearest
from ...core.paths import conf_dir, expanded
from ..console import columns, filled, print_lines, say, terminal_width
from ..task import Task

if TYPE_CHECKING:
    from ...data import Entry, Known

WIDTH = 100
"""Columns of a terminal that lines of remarks keep to."""

NARROWEST = 72
"""Columns that a list of data sets needs."""

OF_PRESET = "experiment="
"""What stands before the name of a preset whose data sets are to be fetched."""

MOST_ROWS = 40
"""Columns and classes that are listed."""


class Data(Task):
    """List, show or fetch data sets, or check your own file."""

    section = "Data"
    place = 21
    summary = "list, show and fetch data sets; check a file of your own"
    usage = (
        ("data list", "every data set: source, size, is it here"),
        ("data show NAME", "one data set in detail"),
        ("data fetch NAME", "download one data set, or several: NAME,NAME"),
        ("data fetch experiment=PRESET", "download what a preset needs"),
        ("data check path=FILE target=COLUMN", "a file of your own: columns, gaps, classes, the command line that fits"),
    )
    example = "advcli data check path=my.csv target=label"
    choices = ("list", "show", "fetch", "check")
    keys = ("data_dir",)
    file_keys = ("path", "target", "separator", "encoding")
    """Keys of ``data check``, which no configuration has."""

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
            if self.name.startswith(OF_PRESET) and self.name.removeprefix(OF_PRESET) not in presets.names():
                named = self.name.removeprefix(OF_PRESET)
                raise UnknownNameError(f"there is no preset {named}; {nearest(named, presets.names())} (see advcli experiment list)")
        # what has no file in conf/dataset (data that cannot be loaded yet) can still be shown
        self.composed = self.choice == "show" and ((conf_dir() / "dataset" / f"{self.name}.yaml").is_file() or "--config-dir" in rest)
        if self.composed:
            self.overrides = [f"dataset={self.name}", *rest]

    def _chosen(self, words: list[str]) -> tuple[str, str, list[str]]:
        """Take ``experiment=PRESET``, with ``+`` or ``--`` before it or not, for a name after ``fetch``."""
        if words[:1] == ["fetch"] and len(words) > 1:
            word = " ".join(words[1:3]) if words[1] == "--experiment" else words[1]
            key, _, preset = word.lstrip("+-").replace(" ", "=").partition("=")
            if key == "experiment" and preset:
                return "fetch", OF_PRESET + preset, words[3 if words[1] == "--experiment" else 2 :]
            if key == "experiment":
                raise ConfigError("data fetch experiment= needs the name of a preset; advcli experiment list has them")
        return super()._chosen(words)

    def _take(self, words: list[str]) -> None:
        """Take the keys of ``check``, with or without ``dataset.`` before them."""
        keys = ", ".join(f"{name}=..." for name in self.file_keys)
        for word in words:
            key, equals, value = word.partition("=")
            key = key.removeprefix("dataset.")
            if word.startswith("-"):
                raise ConfigError(f"advcli data check takes {keys}; leave out {word}")
            if not equals and "path" not in self.about_file:
                key, value = "path", word
            if key not in self.file_keys:
                raise UnknownNameError(f"advcli data check takes {keys}; {nearest(key, self.file_keys)}")
            self.about_file[key] = value
        if "path" not in self.about_file:
            raise ConfigError("advcli data check needs path=FILE, as in advcli data check path=my.csv target=label")

    @classmethod
    def names(cls) -> Iterable[str]:
        """Return the names of the data sets."""
        return [file.stem for file in (conf_dir() / "dataset").glob("*.yaml")]

    def act(self, settings: Settings) -> None:
        """Print what the data package says."""
        from ... import data

        if self.choice == "check":
            self._check()
        elif self.choice == "fetch":
            self._fetch(settings)
        elif self.choice == "show":
            print_lines(data.show(settings.dataset if self.composed else self.name, settings.data_dir))
        else:
            _print_list(data.list_datasets(settings.data_dir))
            print(f"\ndata folder: {settings.data_dir} (data_dir=... or ADVCLI_DATA)")

    def _fetch(self, settings: Settings) -> None:
        """Download what is named, one set after the other."""
        from ... import data

        if self.name.startswith(OF_PRESET):
            names = _needed(self.name.removeprefix(OF_PRESET), settings.data_dir)
            if not names:
                print(f"all data sets of {self.name.removeprefix(OF_PRESET)} are here")
        else:
            names = self.name.split(",")
        for name in names:
            print(data.fetch(name, settings.data_dir, url=self.url, began=_began).message)

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


def _needed(preset: str, data_dir: Path) -> list[str]:
    """Return the data sets of a preset that have files which are not here."""
    from ... import data
    from ...config import check
    from ...config.composing import compose_cells

    _, configs = compose_cells([f"+experiment={preset}"], {})
    cells = list(map(check, configs))
    missing = [cell.dataset["name"] for cell in cells if data.missing_files(cell.dataset, data_dir, cell.protocol.splits == "author")]
    return list(dict.fromkeys(map(str, missing)))


def _began(facts: Known) -> Callable[[int], None] | None:
    """Announce a download; return the function that shows its progress, on a terminal only."""
    from ... import data

    say(f"{facts.name}: {data.size_text(facts.size)} to download; licence: {facts.licence}")
    if not sys.stderr.isatty():
        return None
    arrived = 0

    def show(count: int) -> None:
        nonlocal arrived
        arrived += count
        text = f"{data.size_text(arrived)} of {data.size_text(facts.size)}"
        sys.stderr.write(f"\r{text}" if arrived < facts.size else f"\r{' ' * len(text)}\r")
        sys.stderr.flush()

    return show


def _print_list(entries: list[Entry]) -> None:
    """Print the data sets that are here, that can be fetched, and that are not available, as wide as the terminal."""
    from ... import data

    here = [entry for entry in entries if entry.here]
    fetched = [entry for entry in entries if not entry.here and entry.command.startswith("advcli")]
    gone = [entry for entry in entries if not entry.here and not entry.command.startswith("advcli")]
    facts = ("name", "rows", "features", "classes", "task")
    print("Here, used as dataset=NAME:\n")
    _print_rows([[getattr(entry, fact) for fact in facts] for entry in here], facts)
    others = [entry.command for entry in here if entry.command != f"dataset={entry.name}"]
    if others:
        print("\n".join(["", *filled(f"Used by other words: {'; '.join(others)}.")]))
    if fetched:
        print("\nNot here; advcli data fetch NAME downloads one:\n")
        rows = [[one.name, one.rows, one.task, data.size_text(one.size) if one.size else None, one.licence or None] for one in fetched]
        _print_rows(rows, ("name", "rows", "task", "size", "licence"))
    if gone:
        print("\n".join(["", "Not available:", "", *columns([(entry.name, entry.note or entry.command) for entry in gone])]))


def _print_rows(rows: list[list[Any]], facts: Sequence[str]) -> None:
    """Print a table whose names are broken where it would be wider than the terminal."""
    from tabulate import tabulate

    headings = [f"{fact}  " for fact in facts]  # tabulate leaves as much beside the heading of numbers
    widths = [max(len(str(cell)) for cell in column) for column in zip(headings, *rows, strict=True)]
    most = max(8, max(terminal_width(), NARROWEST) - sum(widths[1:]) - 2 * (len(widths) - 1))
    print(tabulate(rows, facts, tablefmt="simple", missingval="-", maxcolwidths=[most if widths[0] > most else None]))


def _print_some(rows: list[dict[str, Any]], what: str, align: tuple[str, ...]) -> None:
    """Print the first rows of a table and how many more there are."""
    from tabulate import tabulate

    print(tabulate(rows[:MOST_ROWS], "keys", tablefmt="simple", disable_numparse=True, colalign=align or None))
    print(f"... and {len(rows) - MOST_ROWS} more {what}\n" if len(rows) > MOST_ROWS else "")
