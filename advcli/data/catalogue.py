"""The data sets that are known by name, whether or not they are here: the facts of ``catalogue.csv``.

One line is one data set of one source; an empty cell is a fact that it does not have. Counts, citations and addresses of the papers' sets
are those of the data folder's manifest, sizes those printed in fathony2018, Tables 1 and 3.

``ordinal_edges.csv`` has the classes of the nine small sets of Table 3: those of the class files (``NAME.ord``) of the ordinal benchmark of
Chu and Ghahramani (2005, JMLR 6), found in the repository bb515/probit at commit 900d069c82df98fb8d8074774b2d9dd8c14b8ad8, folder ``data``.
The benchmark cuts by equal width, an inner edge belonging to the class below it, after it pulled in outliers of machinecpu and pyrimidines.
An edge in the file lies strictly between two targets that occur, so it gives the same classes whichever side an edge belongs to. The three
large sets are cut into equal frequencies, which were chosen because they give the published errors.

The columns
-----------
name, source
    Values of ``dataset.name`` and ``dataset.source``.
rows, features, classes
    Size of the stored table; no classes for continuous targets.
task
    ``multiclass``, ``ordinal``, ``regression_to_ordinal``, ``hierarchical``, ``multi-label``, ``hierarchical multi-label`` or ``sequence``.
options
    What its YAML file sets beside name and source, as on the command line; ``cut=edges`` alone: the edges are those of `ordinal_edges`.
protocol
    The protocol that it is made for.
printed_classes
    Printed number of classes where it differs from the classes that occur.
tables
    Where the papers use it.
content
    `advcli.data.tables.table.table_sha256` of the set: recognises the data however they were written or packed.
citation
    Where the data come from.
repository, commit, paths, format, columns
    Public files, where their address and format are certain: `Upstream`.
authors, author_sha256, author_table
    The authors' splits: `Authors`.
note
    What the user is told after loading.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("catalogue.csv")


@dataclass(frozen=True)
class Upstream:
    """Public files of a data set at a pinned commit, and how to read them.

    Attributes
    ----------
    repository, commit : str
        GitHub repository and commit.
    paths : tuple of str
        Files: one, or the official train and test part in this order.
    format : str
        ``csv`` (a first line with text among the features is a heading), ``whitespace`` or ``arff``; the target comes last.
    columns : sequence of str
        Names of the features.
    """

    repository: str
    commit: str
    paths: tuple[str, ...]
    format: str
    columns: Sequence[str]

    def urls(self) -> list[str]:
        """Return the addresses of the files."""
        return [f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{path}" for path in self.paths]


@dataclass(frozen=True)
class Authors:
    """The random splits that the authors published with their code, and their own file of the data.

    Attributes
    ----------
    folder : str
        Address of the files.
    files : mapping of str to str
        SHA-256 of ``NAME.csv``, ``NAME.train`` and ``NAME.test``, in this order.
    own_table : str
        Rows and classes come from ``NAME.csv``, whose rows have another order than those of the data folder, and with them the splits:
        what the user is told of it. Empty: they come from the data folder, whose rows have the same order.
    """

    folder: str
    files: Mapping[str, str]
    own_table: str


@dataclass(frozen=True)
class Known:
    """The facts of one data set; see the columns of ``catalogue.csv``."""

    name: str
    source: str
    rows: int
    features: int | None
    classes: int | None
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    protocol: str = ""
    printed_classes: int | None = None
    tables: str = ""
    content: str = ""
    citation: str = ""
    upstream: Upstream | None = None
    authors: Authors | None = None
    note: str = ""

    @property
    def override(self) -> str:
        """What the command line says to use it."""
        return f"dataset={self.name}" + (f" protocol={self.protocol}" if self.protocol else "")

    @property
    def cut_classes(self) -> int | None:
        """Number of classes that its options cut a continuous target into; None: they do not cut."""
        edges = self.options.get("edges")
        return self.options.get("n_classes") if edges is None else len(edges) + 1


@cache
def ordinal_edges() -> dict[str, tuple[float, ...]]:
    """Return the inner edges between the classes of continuous targets, rising, by data set (``ordinal_edges.csv``)."""
    with FILE.with_name("ordinal_edges.csv").open(encoding="utf-8", newline="") as stream:
        return {row["dataset"]: tuple(map(float, row["edges"].split(";"))) for row in csv.DictReader(stream, strict=True)}


def parse_options(text: str) -> dict[str, Any]:
    """Return options written as on the command line: ``ordered=true sizes=[30,13] cut=equal_width``."""
    return {key: _value(value) for key, _, value in (word.partition("=") for word in text.split())}


def _value(text: str) -> Any:
    if text.startswith("["):
        return [_value(item) for item in text[1:-1].split(",")]
    if text in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _read(path: Path) -> dict[str, dict[str, Known]]:
    found: dict[str, dict[str, Known]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, strict=True):
            found.setdefault(row["source"], {})[row["name"]] = _known(row)
    return found


def _known(row: Mapping[str, str]) -> Known:
    upstream = authors = None
    if row["repository"]:
        upstream = Upstream(row["repository"], row["commit"], tuple(row["paths"].split()), row["format"], row["columns"].split())
    if row["authors"]:
        files = [f"{row['name']}.{suffix}" for suffix in ("csv", "train", "test")]
        authors = Authors(row["authors"], dict(zip(files, row["author_sha256"].split(), strict=True)), row["author_table"])
    options = parse_options(row["options"])
    if options.get("cut") == "edges":
        options["edges"] = list(ordinal_edges()[row["name"]])
    return Known(
        name=row["name"],
        source=row["source"],
        rows=int(row["rows"]),
        features=_count(row["features"]),
        classes=_count(row["classes"]),
        task=row["task"],
        options=options,
        protocol=row["protocol"],
        printed_classes=_count(row["printed_classes"]),
        tables=row["tables"],
        content=row["content"],
        citation=row["citation"],
        upstream=upstream,
        authors=authors,
        note=row["note"],
    )


def _count(text: str) -> int | None:
    return int(text) if text else None


CATALOGUE: dict[str, dict[str, Known]] = _read(FILE)
"""The known data sets by source and name."""


def known_set(name: str, source: str) -> Known | None:
    """Return what is known about a data set of a source."""
    return CATALOGUE.get(source, {}).get(name)
