"""The data sets that are known by name, whether or not they are here: the facts of ``catalogue.csv``.

One line is one data set of one source; an empty cell is a fact that it does not have. The data folder's manifest has the
same counts, citations and addresses of the papers' sets; the sizes among ``options`` are printed in Fathony et al. 2018, Tables 1 and 3.

``ordinal_edges.csv`` has the classes of the nine small sets of Table 3. They come from the class files (``NAME.ord``) of the ordinal
benchmark of Chu and Ghahramani (2005, JMLR 6), in the repository bb515/probit at commit 900d069c82df98fb8d8074774b2d9dd8c14b8ad8, folder
``data``. The benchmark cuts by equal width, an inner edge belonging to the class below it, after it pulled in outliers of machinecpu and
pyrimidines. An edge in the file lies strictly between two targets that occur, so it gives the same classes whichever side an edge belongs
to. The three large sets are cut into equal frequencies, which were chosen because they give the published errors.

The source ``unavailable`` has the sets of the papers that nobody can fetch; ``note`` has the reason and the set to use instead.

The columns beside ``name`` and ``source``:

- rows, features, classes: size of the stored table; no classes for continuous targets. ``printed_classes`` where the papers print another
  number than occurs
- task: multiclass, ordinal, regression_to_ordinal, hierarchical, multi-label, hierarchical multi-label, sequence or dependency trees
- options: what its YAML file sets, as on the command line; ``cut=edges`` alone: the edges are those of `ordinal_edges`
- protocol that it is made for; tables of the papers that use it; citation: where the data come from; note: a remark for the user
- sha256: of the plain CSV of each file (`Known.files`), because the bytes of a packed file depend on the version of zlib
- size: bytes to download, packed where ``shipped``; licence: of the data, as their owner names it, or "not stated"
- shipped: yes where the repository of advcli has the files in its folder ``data``; the others come from public files
- repository, commit, paths, format, heading, columns: public files and how to read them (`Upstream`)
- authors, author_sha256, author_table: the authors' splits (`Authors`)
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
    """Public files of a data set at a pinned commit of a GitHub repository, and how to read them.

    ``paths`` are the official parts in the order train, validation, test, and what their format adds; ``format`` is a module of
    `advcli.data.recipes`. ``columns`` are the names of the features, where the files have none or others, ``heading`` the number of lines
    before the first row.
    """

    repository: str
    commit: str
    paths: tuple[str, ...]
    format: str
    columns: Sequence[str]
    heading: int = 0

    def urls(self) -> list[str]:
        """Return the addresses of the files."""
        return [f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{path}" for path in self.paths]


@dataclass(frozen=True)
class Authors:
    """The random splits that the authors published with their code, and their own file of the data, at the address ``folder``.

    ``files`` maps ``NAME.csv``, ``NAME.train`` and ``NAME.test``, in this order, to their SHA-256. ``own_table`` is a remark for
    the user where rows, classes and splits come from ``NAME.csv``, whose rows have another order than the data folder's; empty where they
    come from the data folder.
    """

    folder: str
    files: Mapping[str, str]
    own_table: str


@dataclass(frozen=True)
class Known:
    """The facts of one data set; see the columns of ``catalogue.csv``.

    ``files`` are the files of the data folder that it is read from, the table first, with the SHA-256 of their plain content.
    """

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
    files: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    licence: str = ""
    shipped: bool = False
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


def _known(row: Mapping[str, str]) -> Known:
    upstream = authors = None
    if row["repository"]:
        paths, columns = tuple(row["paths"].split()), row["columns"].split()
        upstream = Upstream(row["repository"], row["commit"], paths, row["format"], columns, int(row["heading"] or 0))
    if row["authors"]:
        theirs = [f"{row['name']}.{suffix}" for suffix in ("csv", "train", "test")]
        authors = Authors(row["authors"], dict(zip(theirs, row["author_sha256"].split(), strict=True)), row["author_table"])
    options = parse_options(row["options"])
    if options.get("cut") == "edges":
        options["edges"] = list(ordinal_edges()[row["name"]])
    files = [f"{row['name']}.csv.gz", *filter(None, [options.get("hierarchy")])] if row["sha256"] else []
    texts: dict[str, Any] = {key: row[key] for key in ("name", "source", "task", "protocol", "tables", "licence", "citation", "note")}
    counts: dict[str, Any] = {key: int(row[key]) if row[key] else None for key in ("features", "classes", "printed_classes")}
    return Known(
        **texts,
        **counts,
        rows=int(row["rows"] or 0),
        size=int(row["size"] or 0),
        options=options,
        files=dict(zip(files, row["sha256"].split(), strict=True)),
        shipped=row["shipped"] == "yes",
        upstream=upstream,
        authors=authors,
    )


CATALOGUE: dict[str, dict[str, Known]] = {}
"""The known data sets by source and name."""
with FILE.open(encoding="utf-8", newline="") as _stream:
    for _row in csv.DictReader(_stream, strict=True):
        CATALOGUE.setdefault(_row["source"], {})[_row["name"]] = _known(_row)


def known_set(name: str, source: str) -> Known | None:
    """Return what is known about a data set of a source."""
    return CATALOGUE.get(source, {}).get(name)


def is_stored(name: str) -> bool:
    """Return whether a data set of the catalogue has files in the data folder, which can be fetched."""
    return stored_set(name) is not None


def stored_set(name: str) -> Known | None:
    """Return what is known about a data set whose files lie in the data folder, whatever source reads them."""
    return next((sets[name] for sets in CATALOGUE.values() if name in sets and sets[name].files), None)
