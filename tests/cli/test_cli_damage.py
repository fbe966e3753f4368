"""A damaged cell file on the command line: check and report say it in one line and touch no cell, the next run computes it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from advcli.cli import main
from advcli.results.tables import TIMING_COLUMNS, read_table

pytestmark = pytest.mark.usefixtures("elsewhere")

RUN = ["-m", "dataset=iris", "loss=zero_one,cs", "hyper.C=1", "protocol.n_splits=2", "name=x", "workers=1"]


def cells() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path("results/x/cells").glob("*.json")}


def rows() -> str:
    frame = read_table(Path("results/x/runs.csv"))
    return str(frame.drop(columns=[column for column in TIMING_COLUMNS if column in frame]).to_csv())


def warnings(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capfd.readouterr().err.splitlines() if "damaged" in line]


def test_a_damaged_cell_is_left_out_and_computed_again(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(RUN) == 0
    whole = rows()
    assert main(["check", "results=results/x", "baseline=line.csv", "--update"]) == 0
    path = min(Path("results/x/cells").glob("*.json"))
    path.write_bytes(path.read_bytes().replace(b"iris", b"Iris", 1))
    before = cells()
    capfd.readouterr()

    assert main(["check", "results=results/x", "baseline=line.csv"]) == 1
    (line,) = warnings(capfd)
    assert line == f"advcli: warning: {path.absolute()} is damaged (its checksum does not fit its content) and left out; " + (
        "the next run computes its cell again"
    )
    assert rows() == whole
    assert cells() == before

    assert main(["report", "results=results/x"]) == 0
    assert warnings(capfd) == [line]
    assert len(set(read_table(Path("results/x/runs.csv"))["loss"])) == 1
    assert cells() == before

    assert main(RUN) == 0
    (line,) = warnings(capfd)
    assert f"kept as {path.stem}.damaged-1.json" in line
    assert rows() == whole
    assert cells().pop(f"{path.stem}.damaged-1.json") == before[path.name]


def test_a_cell_of_another_configuration_is_refused_by_everything(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(RUN) == 0
    assert main([*RUN[:2], "loss=zero_one", "hyper.C=2", *RUN[4:5], "name=y", "workers=1"]) == 0
    (other,) = Path("results/y/cells").glob("*.json")
    Path("results/x/cells", other.name).write_bytes(other.read_bytes())
    before = {path: path.read_bytes() for path in Path("results/x").rglob("*") if path.is_file()}
    for words in (RUN, ["report", "results=results/x"], ["check", "results=results/x", "baseline=line.csv", "--update"]):
        capfd.readouterr()
        assert main(words) == 2
        out, err = capfd.readouterr()
        (line,) = err.splitlines()
        assert "was made by another config than identity.json in the same folder (hyper.C: 1.0 -> 2.0)" in line
        assert out == ""
    assert {path: path.read_bytes() for path in Path("results/x").rglob("*") if path.is_file()} == before
