"""Draw the rooms of the package and their imports: docs/pictures/architecture.svg and architecture-dark.svg, compared by tests/house.

    python docs/draw_architecture.py

A room stands one floor above the highest room that it imports. Arrows that follow from others are left out: where A imports B and B
imports C, the arrow from A to C is not drawn.
"""

from __future__ import annotations

import ast
import textwrap
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "advcli"
WIDE, HIGH, GAP, RISE, MARGIN = 236, 104, 24, 54, 20
STYLE = """
.room {{ fill: {0}; stroke: {1}; }}
.name {{ font: bold 15px sans-serif; fill: {2}; }}
.says {{ font: 12px sans-serif; fill: {3}; }}
.arrow {{ stroke: {4}; fill: none; }}
.head {{ fill: {4}; }}
"""
COLOURS = {
    "architecture.svg": ("#f4f6fa", "#44546a", "#1b2a41", "#33415c", "#8d99ae"),
    "architecture-dark.svg": ("#1f2937", "#94a3b8", "#f1f5f9", "#cbd5e1", "#7c8aa0"),
}
"""By file: ground and edge of a room, its name, its sentence, arrows."""


def room_of(path: Path) -> str:
    """Return the room of a file: its folder, or its own name at the top of the package."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    """Return the rooms that a file imports, wherever the import stands."""
    package, rooms = ["advcli", *path.relative_to(PACKAGE).parts[:-1]], set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            dotted = [".".join([*base, *([node.module] if node.module else []), alias.name]) for alias in node.names]
        else:
            continue
        rooms |= {name.split(".")[1] for name in dotted if name.startswith("advcli.")}
    return rooms


def plan() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return the sentence of every room, and the rooms that it imports."""
    says, arrows = {}, {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = room_of(path)
        if room.startswith("__") or room == "conf":
            continue
        if path.parent == PACKAGE or (path.name == "__init__.py" and path.parent.parent == PACKAGE):
            says[room] = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
        arrows.setdefault(room, set()).update(imported_rooms(path))
    return says, {room: (others & set(says)) - {room} for room, others in arrows.items()}


def floors(arrows: dict[str, set[str]]) -> dict[str, int]:
    """Return the floor of every room, 0 for the ground."""
    levels: dict[str, int] = {}
    while len(levels) < len(arrows):
        ready = [room for room, others in arrows.items() if room not in levels and others <= set(levels)]
        if not ready:
            raise SystemExit(f"rooms import each other in a circle: {', '.join(sorted(set(arrows) - set(levels)))}")
        for room in ready:
            levels[room] = 1 + max((levels[other] for other in arrows[room]), default=-1)
    return levels


def direct(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows that do not follow from others."""
    below: dict[str, set[str]] = {}

    def reach(room: str) -> set[str]:
        if room not in below:
            below[room] = set(arrows[room]).union(*(reach(other) for other in arrows[room]))
        return below[room]

    return {
        room: {other for other in others if not any(other in reach(third) for third in others - {other})} for room, others in arrows.items()
    }


def drawing(file: str) -> str:
    """Return the picture as SVG, in the colours of that file."""
    says, arrows = plan()
    levels = floors(arrows)
    rows = [sorted(room for room in levels if levels[room] == level) for level in range(max(levels.values()) + 1)]
    width = 2 * MARGIN + max(len(row) for row in rows) * (WIDE + GAP) - GAP
    height = 2 * MARGIN + len(rows) * (HIGH + RISE) - RISE
    place = {}
    for level, row in enumerate(rows):
        left = (width - len(row) * (WIDE + GAP) + GAP) / 2
        for number, room in enumerate(row):
            place[room] = (left + number * (WIDE + GAP), height - MARGIN - HIGH - level * (HIGH + RISE))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>The rooms of advcli and what they import</title>",
        f"<style>{STYLE.format(*COLOURS[file])}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    for room, others in sorted(direct(arrows).items()):
        for other in sorted(others):
            (x, y), (u, v) = place[room], place[other]
            lines.append(
                f'<path class="arrow" marker-end="url(#head)" d="M{x + WIDE / 2:.0f} {y + HIGH:.0f} '
                f'C{x + WIDE / 2:.0f} {y + HIGH + RISE:.0f} {u + WIDE / 2:.0f} {v - RISE:.0f} {u + WIDE / 2:.0f} {v:.0f}"/>'
            )
    for room, (x, y) in sorted(place.items()):
        lines.append(f'<rect class="room" x="{x:.0f}" y="{y:.0f}" width="{WIDE}" height="{HIGH}" rx="6"/>')
        lines.append(f'<text class="name" x="{x + 12:.0f}" y="{y + 24:.0f}">{escape(room)}</text>')
        for number, text in enumerate(textwrap.wrap(says[room], 34)[:4]):
            lines.append(f'<text class="says" x="{x + 12:.0f}" y="{y + 44 + 15 * number:.0f}">{escape(text)}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    for name in COLOURS:
        (DOCS / "pictures" / name).write_text(drawing(name), encoding="utf-8")
        print(f"docs/pictures/{name}")
