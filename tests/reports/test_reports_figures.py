"""Figures of one's own stand in the report beside the package's."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from advcli.core import plugins
from advcli.core.errors import ConfigError, ResultsError
from advcli.reports.figures import Material, drawn, is_of, register

FIGURE = """
from advcli.reports.formats.document import Figure
from advcli.reports.figures import register


@register("{name}", section="results", needs=("value",))
def figure(material):
    yield {made}
"""
GOOD = 'Figure("{name}-a", "A sentence.", "<svg/>", b"%PDF")'


@pytest.fixture
def material() -> Material:
    empty = pd.DataFrame({"metric": [], "n_splits": []})
    return Material(pd.DataFrame({"value": [0.5]}), empty, ("error",), "error")


def plug_in(folder: Path, name: str, made: str) -> None:
    (folder / "figure").mkdir(parents=True)
    (folder / f"figure/{name}.py").write_text(FIGURE.format(name=name, made=made.format(name=name)))
    plugins.use_folders([str(folder)])


@pytest.fixture(autouse=True)
def _no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.FOLDERS, "")


def test_a_figure_stands_in_its_section_while_its_folder_is_used(tmp_path: Path, material: Material) -> None:
    plug_in(tmp_path, "mine", GOOD)
    assert [figure.name for figure in drawn("results", material)] == ["mine-a"]
    assert drawn("certificates", material) == ()
    assert is_of("mine-a")
    assert not is_of("minerals")
    plugins.use_folders([])
    assert drawn("results", material) == ()
    assert not is_of("mine-a")


def test_a_figure_without_its_columns_is_left_out(tmp_path: Path, material: Material) -> None:
    plug_in(tmp_path, "lacks", GOOD)
    assert drawn("results", Material(material.runs[[]], material.summary, ("error",), "error")) == ()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("material.runs['depth']", r"figure broken: KeyError: 'depth' \(.*broken.py, line \d+\)"),
        ('Figure("other", "A sentence.", "<svg/>", b"")', "the file other must be named broken or broken-WORDS"),
    ],
)
def test_a_broken_figure_is_one_line(made: str, said: str, tmp_path: Path, material: Material) -> None:
    plug_in(tmp_path, "broken", made)
    with pytest.raises(ResultsError, match=said) as caught:
        drawn("results", material)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "section", "said"), [("mine", "nowhere", "section=nowhere"), ("a/b", "results", "letters, digits and hyphens")]
)
def test_a_registration_that_cannot_be_is_refused(name: str, section: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        register(name, section=section, needs=())


def test_a_figure_changes_no_cell(tmp_path: Path) -> None:
    plug_in(tmp_path, "free", GOOD)
    assert plugins.fingerprint() is None
