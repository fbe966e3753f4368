"""Pictures in two inks, for pages of light and of dark ground."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DARK = "-dark"
"""Ends the name of the picture for dark ground."""
INK = "#dfe5ec"
"""What is black on light ground is of this colour on dark ground."""
GROUND = '<rect width="100%" height="100%" fill="#ffffff"/>\n'
"""Keeps a picture in black ink legible on a dark page that shows it all the same."""
_WHITE = r'style="fill: #ffffff(; stroke: none)?"'


def written(name: str, svg: str) -> dict[str, str]:
    """Return an SVG drawn in black as two files: on white ground, and in light ink without a ground."""
    svg = re.sub(r" *<metadata>.*?</metadata>\n", "", svg, flags=re.DOTALL)
    head = re.search(r"<svg [^>]*>\n?", svg)
    assert head is not None, f"{name} is no SVG"
    light = svg[: head.end()] + GROUND + svg[head.end() :]
    return {f"{name}.svg": light, f"{name}{DARK}.svg": in_light_ink(svg)}


def in_light_ink(svg: str) -> str:
    """Return an SVG with light ink for black, and without white ground."""
    svg = re.sub(_WHITE, 'style="fill: none"', svg).replace("#000000", INK)
    return svg.replace("<svg ", f'<svg fill="{INK}" ', 1)


def look_of_reports(gallery_conf: Mapping[str, Any], name: str) -> None:
    """Draw the figures of examples in the colours of reports."""
    import matplotlib as mpl

    from advcli.reports.drawing import COLOURS

    mpl.rcParams["axes.prop_cycle"] = mpl.cycler(color=COLOURS)
    mpl.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}


def both_inks(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Save the figures of a block of an example in both inks, as sphinx-gallery asks its scrapers, and return the lines that show them."""
    import matplotlib.pyplot as plt

    lines = []
    for number, named in zip(plt.get_fignums(), block_vars["image_path_iterator"], strict=False):
        content, path, figure = io.StringIO(), Path(named), plt.figure(number)
        figure.savefig(content, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
        for file, svg in written(path.stem, content.getvalue()).items():
            path.with_name(file).write_text(svg, encoding="utf-8")
        shown = path.with_suffix(".svg").relative_to(gallery_conf["src_dir"]).as_posix()
        titles = ", ".join(axes.get_title() for axes in figure.axes if axes.get_title())
        lines += ["", f".. image:: /{shown}", f"   :alt: {titles or path.stem}", ""]
    plt.close("all")
    return "\n".join(lines)
