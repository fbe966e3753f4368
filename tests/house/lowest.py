"""Print a constraint for every package of pyproject.toml that has a lowest version: the lowest. For `make lowest`."""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def constraints() -> list[str]:
    """Return ``package==version`` for every requirement with ``>=``, of several ones of a package the highest."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = {group: names for group, names in project["optional-dependencies"].items() if group != "docs"}
    named = [*project["dependencies"], *(name for names in extras.values() for name in names)]
    lowest: dict[str, tuple[int, ...]] = {}
    for requirement in named:
        found = re.match(r"([\w.-]+)>=([\d.]+)", requirement)
        if found:
            version = tuple(map(int, found[2].split(".")))
            lowest[found[1]] = max(lowest.get(found[1], version), version)
    return [f"{name}=={'.'.join(map(str, version))}" for name, version in sorted(lowest.items())]


if __name__ == "__main__":
    print("\n".join(constraints()))
