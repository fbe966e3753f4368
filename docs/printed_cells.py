"""Write docs/results/printed-cells.md from printed_cells.csv beside it: which printed numbers were computed, and why others were not.

    python docs/printed_cells.py

A line of the file covers the printed numbers of a table whose data set, method and metric match its patterns, and those of no line before.
"""

from __future__ import annotations

import csv
from pathlib import Path

HERE = Path(__file__).parent
RULES = HERE / "results/printed_cells.csv"
PAGE = HERE / "results/printed-cells.md"
STANDINGS = {"same": "same data", "other": "other data", "cannot": "cannot be computed", "missing": "missing"}
ABOUT = """# Which printed numbers did we compute?

This page covers every number that the papers print for a method on a data set. Each table's numbers fall into four groups: we computed the
number on the same data; on other data, because the paper's data are not public; it cannot be computed; we have not computed it. Sizes of
data sets, averages and counts that follow from other numbers are left out. The last column names a file in `results/published` or a page.

"""


def rules() -> list[dict[str, str]]:
    """Return the lines of printed_cells.csv."""
    with RULES.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _link(name: str) -> str:
    return f"[{Path(name).stem}]({name})" if name.endswith(".md") else f"`{name}`"


def page() -> str:
    """Return the text of the page."""
    lines = rules()
    tables = list(dict.fromkeys(line["table"] for line in lines))
    counts = {(line["table"], line["standing"]): 0 for line in lines}
    for line in lines:
        counts[line["table"], line["standing"]] += int(line["cells"])
    total = {standing: sum(count for (_, of), count in counts.items() if of == standing) for standing in STANDINGS}
    text = ABOUT + (
        f"Of {sum(total.values())} numbers we computed {total['same']} on the same data and {total['other']} on other data; "
        f"{total['cannot']} cannot be computed, and {total['missing']} are missing.\n\n"
    )
    text += f"| table | numbers | {' | '.join(STANDINGS.values())} | where |\n|---|---|{'---|' * (len(STANDINGS) + 1)}\n"
    for table in tables:
        of = [counts.get((table, standing), 0) for standing in STANDINGS]
        where = list(dict.fromkeys(name for line in lines if line["table"] == table for name in line["ours"].split()))
        text += f"| `{table}` | {sum(of)} | " + " | ".join(str(count or "") for count in of) + f" | {', '.join(map(_link, where))} |\n"
    text += "\n## Numbers on other data, or without one of ours\n\n"
    text += "| table | data | method, metric | numbers | group | reason |\n|---|---|---|---|---|---|\n"
    for line in lines:
        if line["reason"]:
            what = ", ".join(part for part in (line["method"], line["metric"]) if part != "*")
            data = "" if line["dataset"] == "*" else line["dataset"]
            text += f"| `{line['table']}` | {data} | {what} | {line['cells']} | {STANDINGS[line['standing']]} | {line['reason']} |\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(HERE.parent)} written")
