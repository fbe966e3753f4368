"""What a sweep does about data sets of the catalogue that are not in the data folder, before any cell runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import MissingDataError
from ...data import is_stored, missing_files, missing_line

if TYPE_CHECKING:
    from ...config import Settings

PRESET = "+experiment="


def sort_out(cells: Sequence[Settings], words: Sequence[Sequence[str]], typed: Sequence[str]) -> tuple[list[int], str]:
    """Return the numbers of the cells whose data are here, and in one line which sets are left out; empty where none is.

    A set is left out where a preset chose it and other sets of the preset are here. A set that the words ``typed`` chose is refused, and so
    is a sweep without any data. Each cell was composed from its ``words``.

    Raises
    ------
    DataError
        A set is refused: the line names all that are not here and how to get them.
    """
    missing = _missing(cells)
    if not missing:
        return list(range(len(cells))), ""
    kept = [number for number, cell in enumerate(cells) if cell.dataset["name"] not in missing]
    keys = {_key(word) for word in typed}
    of_kept = {word for number in kept for word in words[number]}
    chosen = {
        str(cell.dataset["name"])
        for cell, texts in zip(cells, words, strict=True)
        if not any(word not in of_kept and _key(word) not in keys for word in texts)
    }
    presets = [word.removeprefix(PRESET) for word in typed if word.startswith(PRESET)]
    if not kept or not presets or chosen & missing.keys():
        rest = list(dict.fromkeys(word for number in kept for word in words[number] if word.startswith("dataset=")))
        go_on = f"; to go on with the rest add dataset={','.join(word.partition('=')[2] for word in rest)}" if rest else ""
        raise MissingDataError(_how_to_get(missing, len({str(cell.dataset["name"]) for cell in cells}), presets) + go_on)
    sets = len({str(cell.dataset["name"]) for cell in cells})
    return kept, (
        f"{len(missing)} of {sets} data sets are not here and are left out: {', '.join(missing)}; {_command(missing, presets)} gets them"
    )


def _key(word: str) -> str:
    return word.partition("=")[0].lstrip("+")


def _missing(cells: Sequence[Settings]) -> dict[str, Path]:
    """Return the first file that is not here of each data set that lacks one."""
    lacking: dict[str, list[Path]] = {}
    for cell in cells:
        name = str(cell.dataset["name"])
        if name not in lacking:
            lacking[name] = missing_files(cell.dataset, cell.data_dir, cell.protocol.splits == "author")
    return {name: files[0] for name, files in lacking.items() if files}


def _command(missing: Mapping[str, Any], presets: Sequence[str]) -> str:
    return f"`advcli data fetch {f'experiment={presets[0]}' if presets else ','.join(missing)}`"


def _how_to_get(missing: Mapping[str, Path], n: int, presets: Sequence[str]) -> str:
    """Return which of ``n`` data sets are missing, by their first missing files, and what to do."""
    if len(missing) == 1:
        return missing_line(*next(iter(missing.items())))
    fetch = f"{_command(missing, presets)} gets them, or " if all(map(is_stored, missing)) else ""
    file = next(iter(missing.values())).name
    return (
        f"{len(missing)} of {n} data sets are not here: {', '.join(missing)}; {fetch}"
        f"point data_dir= or ADVCLI_DATA to the folder that has their files, such as {file}"
    )
