"""Draw the pictures of docs/explanation/game.md for light and dark ground: game_curves and game_strategies, which a test compares.

python docs/draw_game.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from themes import written

PICTURES = Path(__file__).resolve().parent / "pictures"
INK, GREY, BLUE, ORANGE, GREEN = "#000000", "#7a8699", "#3b82c4", "#d9822b", "#2a9d6f"
POTENTIALS = (0.6, 0.3, -0.9)
STYLE = f"text {{ font: 14px sans-serif; fill: {INK}; }} .axis {{ stroke: {INK}; fill: none; }} .curve {{ fill: none; stroke-width: 3; }}"


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """Return a picture."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    return "\n".join([head, f"<title>{title}</title>", f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


def adversarial(lead: float) -> float:
    """Return the adversarial zero-one loss of two classes where the true one leads by ``lead``."""
    return max(0.0, (1.0 - lead) / 2.0, -lead)


def hinge(lead: float) -> float:
    """Return the hinge of Crammer and Singer of two classes."""
    return max(0.0, 1.0 - lead)


def error(lead: float) -> float:
    """Return the zero-one cost of predicting the larger potential."""
    return float(lead <= 0.0)


def curves() -> str:
    """Return both surrogates and the cost that they bound, over the lead of the true class."""

    def place(lead: float, loss: float) -> str:
        return f"{60 + 110 * (lead + 2.0):.1f},{300 - 85 * loss:.1f}"

    shown: list[tuple[str, str, Callable[[float], float], float]] = [
        ("zero_one, adversarial", BLUE, adversarial, 40),
        ("cs, hinge", ORANGE, hinge, 62),
        ("error", GREEN, error, 84),
    ]
    parts = [f'<path class="axis" d="M{place(-2, 0)} L{place(2, 0)} M{place(-2, 0)} L{place(-2, 3)}"/>']
    for at in (-2, -1, 0, 1, 2):
        x, y = place(at, 0).split(",")
        parts.append(f'<text x="{x}" y="{float(y) + 20:.1f}" text-anchor="middle">{at}</text>')
    for at in (0, 1, 2, 3):
        x, y = place(-2, at).split(",")
        parts.append(f'<text x="{float(x) - 10:.1f}" y="{float(y) + 5:.1f}" text-anchor="end">{at}</text>')
    parts.append('<text x="280" y="345" text-anchor="middle">lead of the true class, f_y - f_j</text>')
    for name, colour, function, y in shown:
        leads = [-2.0 + step / 100 for step in range(401)]
        line = " L".join(place(lead, function(lead)) for lead in leads)
        parts.append(f'<path class="curve" stroke="{colour}" d="M{line}"/>')
        parts.append(f'<path class="curve" stroke="{colour}" d="M330,{y - 5} l30,0"/><text x="370" y="{y}">{name}</text>')
    return svg(560, 360, "The adversarial zero-one loss, a hinge and the error over the lead of the true class", parts)


def strategies(potentials: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the distributions of the predictor and of the adversary in the zero-one game at these potentials, the largest first.

    The adversary is even over the classes that make sum_j f_j + |A| - 1 over |A| largest (Fathony et al. 2016); the predictor makes the
    adversary indifferent between these.
    """
    values = [(sum(potentials[:size]) + size - 1) / size for size in range(1, len(potentials) + 1)]
    value = max(values)
    size = values.index(value) + 1
    predictor = [max(0.0, 1.0 + potential - value) if at < size else 0.0 for at, potential in enumerate(potentials)]
    return predictor, [1.0 / size if at < size else 0.0 for at in range(len(potentials))]


def plays() -> str:
    """Return potentials and both players' distributions as bars, one panel each."""
    predictor, adversary = strategies(POTENTIALS)
    panels = (("potentials", POTENTIALS, GREY), ("predictor draws", predictor, BLUE), ("adversary draws", adversary, ORANGE))
    parts = []
    for number, (title, heights, colour) in enumerate(panels):
        left = 20 + 210 * number
        parts.append(f'<text x="{left + 85}" y="22" text-anchor="middle">{title}</text>')
        parts.append(f'<path class="axis" d="M{left},140 l180,0"/>')
        for at, height in enumerate(heights):
            x, high = left + 15 + 55 * at, abs(height) * 90
            top = 140 - high if height >= 0 else 140
            parts.append(f'<rect x="{x}" y="{top:.1f}" width="40" height="{high:.1f}" fill="{colour}"/>')
            words = top - 6 if height >= 0 else top + high + 16
            parts.append(f'<text x="{x + 20}" y="{words:.1f}" text-anchor="middle">{height:.2f}</text>')
    return svg(640, 250, "Potentials of three classes and what both players draw", parts)


DRAWN = {"game_curves": curves, "game_strategies": plays}


if __name__ == "__main__":
    for name, draw in DRAWN.items():
        for file, text in written(name, draw()).items():
            (PICTURES / file).write_text(text, encoding="utf-8")
            print(f"docs/pictures/{file}")
