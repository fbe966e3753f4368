"""What lists and shows: presets, results folders, saved models."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from advcli import models
from advcli.cli import main
from advcli.config.composing import compose_cells
from advcli.config.presets import about, names
from advcli.core.paths import conf_dir

BUNDLED = {"iris", "wine", "breast_cancer", "digits", "choi2018_balanced", "choi2018_unbalanced", "louche_toy"}
"""Data sets that scikit-learn has or that are made up."""


def said(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Return what a command prints: stdout, or stderr where it is to fail."""
    assert main(list(words)) == code
    out, err = capfd.readouterr()
    return err if code else out


def test_every_preset_is_listed_with_its_cells(capfd: pytest.CaptureFixture[str]) -> None:
    text = said(capfd, "experiment", "list")
    for name in names():
        assert name in text
        assert about(name).description
        assert re.fullmatch(r"[\d.]+ (s|min)", about(name).takes), name
        assert about(name).title in about(name).description
    for name in ("quickstart", "fathony2018_table6"):
        assert about(name).n_cells == len(compose_cells([f"+experiment={name}"], {})[0])


@pytest.mark.parametrize("width", [80, 120])
def test_presets_are_listed_under_headings_in_the_width_of_the_terminal(
    width: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = said(capfd, "experiment", "list", f"data_dir={tmp_path}")
    lines = text.splitlines()
    assert max(map(len, lines[:-2])) <= width
    assert text.startswith("Start here\n")
    assert "\nOthers" not in text  # every preset of ours has a heading
    for name in names():
        (line,) = (line for line in lines if line.split()[:1] == [name])
        preset = about(name)
        takes = preset.takes or "-"
        absent = sum((conf_dir() / "dataset" / f"{dataset}.yaml").is_file() and dataset not in BUNDLED for dataset in preset.datasets)
        data = "here" if not absent else "absent" if absent == len(preset.datasets) else f"{absent} absent"
        assert line.split()[1:4] == [str(preset.n_cells), *takes.split(), *data.split()][:3]
        assert " ".join(preset.title.split()) in " ".join(text.split())


def test_a_preset_on_splits_of_authors_needs_their_files_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).resolve().parents[2] / "data" / "author_splits", tmp_path / "author_splits")
    (line,) = (line for line in said(capfd, "experiment", "list", f"data_dir={tmp_path}").splitlines() if "table4_diabetes" in line)
    assert line.split()[4] == "here"


def test_a_preset_shows_what_it_computes(capfd: pytest.CaptureFixture[str]) -> None:
    text = said(capfd, "experiment", "show", "fathony2018_table2_linear")
    assert "zero_one, ww, cs, llw (4)" in text
    assert "advcli +experiment=fathony2018_table2_linear" in text
    switched_off = [line.split() for line in said(capfd, "experiment", "show", "choi2018_table4_3").splitlines()]
    assert ["loss.fit_intercept:", "false"] in switched_off
    assert "did you mean quickstart" in said(capfd, "experiment", "show", "quickstat", code=2)
    assert "needs the name of a preset" in said(capfd, "experiment", "show", code=2)


def test_results_folders_are_listed_the_latest_last(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = f"results_dir={tmp_path}"
    assert "no results yet" in said(capfd, "runs", "list", place)
    few = ("protocol.n_splits=2", "hyper.C=1", "quiet=true", place)
    said(capfd, "-m", "dataset=iris", "loss=zero_one,cs", "name=later", "workers=1", *few)
    said(capfd, "dataset=iris", "name=earlier", *few)
    file = tmp_path / "earlier" / "provenance.json"
    made = json.loads(file.read_text())
    file.write_text(json.dumps(made | {"end": "2001-01-01T00:00:00+00:00"}))
    (tmp_path / "no_results").mkdir()
    lines = said(capfd, "runs", "list", place).splitlines()[1:3]
    assert [line.split()[0] for line in lines] == ["earlier", "later"]
    assert lines[1].split()[-5:] == ["2", "0", "1", "2", "error"]
    assert "runs needs list" in said(capfd, "runs", code=2)


def test_a_model_shows_what_it_is(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "my.model")
    said(capfd, "fit", "dataset=iris", "loss=abstain", "loss.alpha=0.3", "hyper.C=1", f"out={file}")
    printed = said(capfd, "model", "show", file)
    text = " ".join(printed.split())
    certificate = models.read(file).certificate
    assert certificate is not None
    assert f"relative gap {certificate.relative_gap:.1e}" in text
    for part in ("abstain linear (alpha=0.3)", "C=1", "iris, 150 rows", "setosa, versicolor, virginica", "petal width (cm)", "numpy"):
        assert part in text
    assert any(line.split() == ["may", "also", "predict:", "abstain"] for line in printed.splitlines())
    assert "there is no model" in said(capfd, "model", "show", str(tmp_path / "other"), code=2)
    assert "needs the file" in said(capfd, "model", "show", code=2)
