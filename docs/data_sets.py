"""The tables of data sets: docs/reference/data-sets.md has all of the catalogue, and data/README.md those that are shipped there.

python docs/data_sets.py            write both anew, between their marks
python docs/data_sets.py --check    write nothing; exit code 1 where one would change
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from advcli.core.files import write_text
from advcli.data.catalogue import CATALOGUE, Known
from advcli.data.manifest import read_manifest
from advcli.data.registry import size_text

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data"
MARKED = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end table -->)", re.DOTALL)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in [columns, ["---"] * len(columns), *rows]]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def source(known: Known) -> str:
    """Return where the files of a set come from, as a link where they are public."""
    if known.upstream is not None:
        at = f"https://github.com/{known.upstream.repository}/tree/{known.upstream.commit}"
        return f"[{known.upstream.repository}]({at})"
    return read_manifest(DATA)[known.name]["source_repo"].partition("@")[0] if known.files else ""


def how(known: Known) -> str:
    """Return how a set is got."""
    if known.source == "unavailable":
        return f"not available: {known.note}"
    if known.files and not known.shipped:
        return f"`advcli data fetch {known.name}`, {size_text(known.size)}"
    return "in `data/`" if known.shipped else "scikit-learn" if known.source == "sklearn" else "made up"


def every_set() -> str:
    """Return the table of all sets of the catalogue."""
    order = {"folder": 0, "sklearn": 1, "unavailable": 9}
    sets = sorted(CATALOGUE.items(), key=lambda item: (order.get(item[0], 5), item[0]))
    columns = ["name", "rows", "features", "classes", "task", "tables of the papers", "licence", "public files", "how to get it"]
    rows = []
    for known in (known for _, of_source in sets for known in of_source.values()):
        name = known.name if known.source != "sklearn" or known.name not in CATALOGUE["folder"] else f"{known.name} (scikit-learn)"
        counts = [known.rows or None, known.features, known.classes or known.cut_classes]
        rows.append([name, *counts, known.task.replace("_", " "), known.tables, known.licence, source(known), how(known)])
    return table(columns, rows)


def shipped() -> str:
    """Return the table of what the folder ``data`` has: source, licence, citation, and what was changed."""
    manifest = read_manifest(DATA)
    sets = [known for of_source in CATALOGUE.values() for known in of_source.values() if known.shipped]
    rows = []
    for known in sets:
        row = manifest[known.name]
        repository, commit = row["source_repo"].split("@")
        link = f"[{repository}](https://github.com/{repository}/tree/{commit}): {row['source_path'].replace(';', ', ')}"
        licence = f"{known.licence}: [page]({row['owner_page']}), {row['licence_found']}"
        rows.append([f"`{row['file']}`", row["upstream_citation"], link, licence, row["changes"]])
    return table(["file", "citation", "copied from", "licence, and where it was found", "what was changed"], rows)


def pages() -> dict[Path, str]:
    """Return both pages as they should be."""
    made = {ROOT / "docs" / "reference" / "data-sets.md": every_set(), DATA / "README.md": shipped()}
    return {page: MARKED.sub(lambda _, text=text: text, page.read_text(encoding="utf-8")) for page, text in made.items()}


def main(words: Sequence[str]) -> int:
    """Write the pages, or say which would change."""
    changed = {page: text for page, text in pages().items() if text != page.read_text(encoding="utf-8")}
    for page, text in changed.items():
        print(f"{page.relative_to(ROOT)} {'would change' if '--check' in words else 'written'}")
        if "--check" not in words:
            write_text(page, text)
    return int(bool(changed) and "--check" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
