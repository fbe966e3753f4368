"""The files that a cell was made from: where they lie now, and whether they hold what they held."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.files import file_sha256
from ..core.paths import expanded
from .surrogates import CannotError


def with_moved_files(config: Mapping[str, Any], about: Mapping[str, Any], data_dir: Path) -> dict[str, Any]:
    """Return the configuration of a cell, in which a file that is gone stands by the one of its name in ``data_dir``.

    Raises `CannotError` where a file that counts by its bytes holds something else than when the cell was made, or is nowhere.
    """
    found: dict[str, Any] = copy.deepcopy(dict(config))
    files = about.get("files", {})
    for key in about.get("paths", ()):
        *above, last = (int(part) if part.isdecimal() else part for part in key.split("."))
        place: Any = found
        for part in above:
            place = place[part]
        text = place.get(last) if isinstance(place, dict) else place[last]
        if text is None:
            continue
        path = expanded(str(files.get(key, {}).get("path", text)))
        moved = data_dir / path.name
        if not path.exists() and moved.exists():
            path = moved
            place[last] = str(moved)
        if key in files and file_sha256(path) != files[key]["sha256"]:
            what = "holds something else than when the cell was made" if path.exists() else "is gone; data_dir=FOLDER says where it is"
            raise CannotError(f"{key}={text} {what}")
    return found
