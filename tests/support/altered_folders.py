"""Results folders with proofs that somebody altered: rows, arrays or settings, carelessly or with every hash made to fit again."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.sealing import sealed

from advcli.results import proofs
from advcli.results.folder import ResultsFolder
from advcli.results.tables import format_value, lasting
from advcli.verify import Verdict, verify_folder


def judged(path: Path) -> list[Verdict]:
    """Return the verdicts on a results folder that lies two folders below its data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parents[1])
        return verify_folder(ResultsFolder(path), Path("data").absolute())


def copied(made: Path, tmp_path: Path) -> Path:
    """Return a copy of a results folder that is made of rows.csv, which lies where its data is looked for."""
    copy = tmp_path / "results" / "copy"
    shutil.copytree(made, copy)
    shutil.copy(made.parents[1] / "rows.csv", tmp_path / "rows.csv")
    return copy


def cell_of(path: Path, **wanted: str) -> int:
    """Return the place of the first cell with these options of its loss."""
    folder = ResultsFolder(path)
    losses = [folder.read_cell(file.stem)["about"]["cell"]["loss"] for file in sorted(folder.cells_path.glob("*.json"))]
    return next(at for at, loss in enumerate(losses) if all(loss[name] == value for name, value in wanted.items()))


def refuted_when_altered(copy: Path, at: int, change: Callable[[dict[str, np.ndarray]], None], forge: bool, said: str) -> None:
    """Change the arrays of a fit; that fit alone is refuted, by its hash or, where that fits again, by what the arrays say."""
    edit_proof(copy, at, change, forge)
    reasons = [each.reason for each in judged(copy) if each.verdict == "refuted"]
    assert len(reasons) == 1
    assert said in reasons[0] if forge else "the hash of the proof differs from the row's" in reasons[0]


def refuted_at_another_strength_or_surrogate(made: Path, tmp_path: Path) -> None:
    """Change the strength of a fit, and then the surrogate ``margin`` of a cell of two fits."""
    copy = copied(made, tmp_path / "strength")
    edit_rows(copy, 0, "C", lambda text: repr(1.001 * float(text)), both=True)
    assert sum(each.verdict == "refuted" for each in judged(copy)) == 1

    copy = copied(made, tmp_path / "option")
    edit_config(copy, cell_of(copy, surrogate="margin"), "loss", lambda options: {**options, "surrogate": "slack"})
    assert sum(each.verdict == "refuted" for each in judged(copy)) == 2


def edit_cell(path: Path, change: Callable[[dict[str, Any]], None], at: int = 0) -> str:
    """Change the file of a cell; return its key."""
    file = sorted((path / "cells").glob("*.json"))[at]
    shard = json.loads(file.read_text())
    change(shard)
    file.write_text(sealed(shard))
    return file.stem


def edit_rows(path: Path, at: int, column: str, change: Callable[[str], str], both: bool) -> None:
    """Change a column of runs.csv in the rows of one fit, the at-th; with ``both`` in the cell's file, too."""
    with (path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    fits = list(dict.fromkeys((row["cell"], row["split"]) for row in rows))
    key, split = fits[at % len(fits)]
    for row in rows:
        if (row["cell"], row["split"]) == (key, split):
            row[column] = change(row[column])
    write_table(path, rows)
    if both:
        file = path / "cells" / f"{key}.json"
        shard = json.loads(file.read_text())
        columns = shard["runs"]["columns"]
        for values in shard["runs"]["values"]:
            if str(values[columns.index("split")]) == split:
                before = values[columns.index(column)]
                text = change(format_value(before))
                values[columns.index(column)] = text == "True" if isinstance(before, bool) else type(before)(text)
        file.write_text(sealed(shard))


def write_table(path: Path, rows: list[dict[str, str]]) -> None:
    with (path / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def edit_proof(path: Path, at: int, change: Callable[[dict[str, np.ndarray]], None], forge: bool) -> None:
    """Change the stored arrays of a fit; with ``forge`` the hash in cell and table fits them again."""
    file = sorted((path / "proofs").iterdir())[at % len(list((path / "proofs").iterdir()))]
    folder, split = ResultsFolder(path), 1 + at % 2
    arrays = proofs.read(folder, file.stem)
    change(arrays[split])
    np.savez_compressed(file, **{f"{part}_{number}": array for number, parts in arrays.items() for part, array in parts.items()})
    if forge:
        forge_hashes(path, file.stem)


def forge_hashes(path: Path, key: str) -> None:
    """Make the hashes of a cell fit its arrays and its configuration."""
    folder = ResultsFolder(path)
    arrays = proofs.read(folder, key)
    config = folder.read_cell(key)["about"]["cell"]
    hashes = {str(split): proofs.digest(lasting(config), split, parts) for split, parts in arrays.items()}

    def change(shard: dict[str, Any]) -> None:
        columns = shard["runs"]["columns"]
        for values in shard["runs"]["values"]:
            values[columns.index("proof")] = hashes[str(values[columns.index("split")])]

    edit_cell(path, change, sorted(file.stem for file in (path / "cells").glob("*.json")).index(key))
    with (path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["cell"] == key:
            row["proof"] = hashes[row["split"]]
    write_table(path, rows)


def edit_config(path: Path, at: int, group: str, change: Callable[[Any], Any]) -> None:
    """Change the configuration of a cell, and every hash with it."""
    key = edit_cell(path, lambda shard: shard["about"]["cell"].update({group: change(shard["about"]["cell"][group])}), at)
    forge_hashes(path, key)
