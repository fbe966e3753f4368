"""Lists of data sets: three cases apart, as wide as the terminal; fetching by the name of a preset."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from advcli.cli import main
from advcli.data.catalogue import CATALOGUE


@pytest.fixture(autouse=True)
def _no_other_files(elsewhere: None) -> None:
    pass


@pytest.mark.parametrize("width", [80, 120])
def test_the_list_fits_the_terminal_and_has_every_set_once(
    width: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    Path("data").mkdir()
    name = "a_name_that_is_much_longer_than_all_others_and_needs_a_second_line"
    Path(f"data/{name}.csv").write_text("a,target\n1,x\n2,y\n")
    Path("data/glass.csv.gz").write_bytes(gzip.compress(b"a,target\n1,x\n"))
    assert main(["data", "list"]) == 0
    out = capfd.readouterr().out
    text, _, folder = out.rpartition("\ndata folder: ")
    assert folder.startswith(str(Path("data").absolute()))
    assert max(map(len, text.splitlines())) <= width
    here, rest = text.split("Not here; advcli data fetch NAME downloads one:")
    fetched, gone = rest.split("Not available:")
    for source, sets in CATALOGUE.items():
        for known in sets.values():
            place = gone if source == "unavailable" else fetched if known.files and known.name != "glass" else here
            assert f"\n{known.name}" in place, known.name
    assert "\nglass " not in fetched


@pytest.mark.parametrize("words", [["experiment=fathony2018_table4_diabetes"], ["+experiment=quickstart"], ["--experiment", "quickstart"]])
def test_fetching_what_a_preset_needs(words: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fetch(name: str, *args: object, **more: object) -> object:
        asked.append(name)
        return type("Fetched", (), {"message": name})()

    monkeypatch.setattr("advcli.data.fetch", fetch)
    assert main(["data", "fetch", *words]) == 0
    assert asked == (["diabetes"] if "diabetes" in words[0] else [])
    assert asked or "all data sets of quickstart are here" in capfd.readouterr().out


def test_fetching_for_an_unknown_preset_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "experiment=quikstart"]) == 2
    assert "there is no preset quikstart; did you mean quickstart" in capfd.readouterr().err


def test_showing_a_set_that_nobody_can_get(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "show", "mediamill"]) == 0
    assert "no, and not available: no public copy at a fixed commit is known; use scene" in " ".join(capfd.readouterr().out.split())


@pytest.mark.parametrize("words", [["--experiment"], ["experiment="], ["+experiment="]])
def test_fetching_for_no_preset_is_refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", *words]) == 2
    assert capfd.readouterr().err == "advcli: data fetch experiment= needs the name of a preset; advcli experiment list has them [ADV001]\n"
