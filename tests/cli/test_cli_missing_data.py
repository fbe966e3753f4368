"""A sweep over data sets that are not in the data folder ends before any work, in one line with the way on."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from advcli import data
from advcli.cli import main
from advcli.core.errors import DataError
from advcli.data.catalogue import CATALOGUE

LOADABLE = [(name, source) for source, sets in CATALOGUE.items() for name in sets if source != "unavailable" and name != "ewt_trees"]


@pytest.fixture(autouse=True)
def _no_other_files(elsewhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVCLI_PLUGINS", "")


SMALL = ["loss=zero_one,cs", "hyper.C=1", "protocol.n_splits=2", "hydra/launcher=basic", "name=x"]
PRESET = """# @package _global_
name: mine
hydra:
  mode: MULTIRUN
  sweeper:
    params:
      dataset: vehicle,iris,letter,wine
"""


def said(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    capfd.readouterr()
    assert main(list(words)) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert not Path("results").exists()
    return line


@pytest.fixture
def preset() -> list[str]:
    Path("my/experiment").mkdir(parents=True)
    Path("my/experiment/mine.yaml").write_text(PRESET)
    return ["--config-dir", "my", "+experiment=mine", *SMALL]


@pytest.mark.parametrize("dry", [[], ["dry_run=true"]])
def test_missing_sets_of_a_preset_are_left_out_and_named_once_before_anything_else(
    dry: list[str], preset: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    assert main([*preset, *dry]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == (
        "advcli: note: 2 of 4 data sets are not here and are left out: vehicle, letter; "
        "`advcli data fetch experiment=mine` gets them [ADV118]"
    )
    assert not any("vehicle" in line for line in lines[1:])
    if not dry:
        assert set(pd.read_csv("results/x/runs.csv")["dataset"]) == {"iris", "wine"}


def test_missing_sets_that_somebody_has_typed_are_refused_and_the_words_that_leave_them_out_work(
    preset: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    line = said(capfd, *preset, "dataset=vehicle,iris,letter,wine")
    assert "2 of 4 data sets are not here: vehicle, letter; `advcli data fetch experiment=mine` gets them, or point data_dir=" in line
    add = re.search(r"go on with the rest add (\S+) \[ADV011\]$", line)
    assert add is not None
    assert main([*preset, add[1]]) == 0
    assert set(pd.read_csv("results/x/runs.csv")["dataset"]) == {"iris", "wine"}


def test_a_preset_without_any_data_is_refused(preset: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("my/experiment/mine.yaml").write_text(PRESET.replace("vehicle,iris,letter,wine", "vehicle,letter"))
    assert "2 of 2 data sets are not here: vehicle, letter; `advcli data fetch experiment=mine` gets them, or" in said(capfd, *preset)


def test_one_missing_set_is_refused_whatever_the_sweep(capfd: pytest.CaptureFixture[str]) -> None:
    line = said(capfd, "-m", "dataset=vehicle", *SMALL)
    assert re.search(
        r"data set 'vehicle' is not here: no file \S*vehicle.csv.gz; run `advcli data fetch vehicle`, or point data_dir=", line
    )
    assert "go on" not in line
    assert said(capfd, "dataset=vehicle", "loss=zero_one", "name=x") == line


@pytest.mark.parametrize(("name", "source"), LOADABLE)
def test_what_is_missing_is_what_loading_misses(name: str, source: str, tmp_path: Path) -> None:
    """Of every set of the catalogue, in an empty data folder."""
    options = {**data.default_options(name, tmp_path), "name": name, "source": source}
    missing = data.missing_files(options, tmp_path)
    if missing:
        with pytest.raises(DataError, match=re.escape(f"no file {missing[0]}")):
            data.load(options, tmp_path)
        for file in missing:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        assert data.missing_files(options, tmp_path) == []
    elif source in ("folder", "text", "hierarchical", "sequences"):
        pytest.fail("a set of the data folder needs a file of it")
