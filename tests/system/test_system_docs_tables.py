"""docs/rebuild.py: the tables of the pages are what the kept summaries and the papers' numbers give."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from support.module_files import module_of

from advcli.cli import main
from advcli.core.errors import ResultsError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def rebuild() -> ModuleType:
    return module_of(ROOT / "docs" / "rebuild.py", "docs_rebuild")


def test_the_pages_are_what_the_summaries_give(rebuild: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert rebuild.main(["--check"]) == 0, capsys.readouterr()
    text = "".join(page.read_text(encoding="utf-8") for page in rebuild.PAGES)
    assert sorted(match[1] for match in rebuild.MARKED.finditer(text)) == sorted(rebuild.TABLES)


def test_no_table_of_means_stands_outside_the_marks(rebuild: ModuleType) -> None:
    for page in rebuild.PAGES:
        rest = rebuild.MARKED.sub("", page.read_text(encoding="utf-8"))
        assert re.findall(r"^\|.*\d \(\d.*$", rest, re.MULTILINE) == [], page.name


def test_a_stale_number_is_found_and_mended(
    rebuild: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Before.\n\n<!-- table fathony2018_table6 -->\n| stale |\n<!-- end fathony2018_table6 -->\n\nAfter.\n", encoding="utf-8"
    )
    monkeypatch.setattr(rebuild, "PAGES", [page])
    monkeypatch.setattr(rebuild, "DOCS", tmp_path / "docs")
    assert rebuild.main(["--check"]) == 1
    assert capsys.readouterr().out == "page.md is not what the summaries give\n"
    assert "stale" in page.read_text(encoding="utf-8")
    assert rebuild.main([]) == 0
    assert rebuild.main(["--check"]) == 0
    good = page.read_text(encoding="utf-8")
    assert good.startswith("Before.\n\n<!-- table fathony2018_table6 -->\n| data set | AL | printed | z | OVA |")
    assert good.endswith("<!-- end fathony2018_table6 -->\n\nAfter.\n")
    page.write_text(good.replace("0.037 (0.022)", "0.038 (0.022)"), encoding="utf-8")
    assert rebuild.main(["--check"]) == 1


@pytest.mark.parametrize(
    "text", ["<!-- table nothing -->\n<!-- end nothing -->\n", "<!-- table fathony2018_table6 -->\n<!-- end fathony2018_table4 -->\n"]
)
def test_marks_of_no_table_are_refused(rebuild: ModuleType, text: str) -> None:
    with pytest.raises(ResultsError, match="names no table"):
        rebuild.rebuilt(text)


def test_kept_summaries_are_whole(rebuild: ModuleType) -> None:
    files = sorted(rebuild.KEPT.glob("*.csv"))
    assert files
    for file in files:
        frame = pd.read_csv(file, dtype={"commit": str}, keep_default_na=False)
        assert list(frame.columns) == rebuild.COLUMNS
        assert not frame.duplicated(rebuild.KEY).any()
        assert frame["commit"].str.fullmatch("[0-9a-f]{7}").all()


def test_a_run_is_kept_with_its_commit(
    rebuild: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dataset=iris", "hyper.C=1", "protocol.n_splits=3", "name=toy"]) == 0
    said = re.search(r"accuracy (\d+\.\d+ \(\d+\.\d+\))", capfd.readouterr().out)
    folder, kept = tmp_path / "results" / "toy", tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(rebuild, "KEPT", kept)
    provenance = json.loads((folder / "provenance.json").read_text())

    def set_git(state: dict[str, object] | None) -> None:
        (folder / "provenance.json").write_text(json.dumps(provenance | {"git": state}))

    for state, words in ((None, "names no commit"), ({"commit": "0123456789", "dirty": True}, "uncommitted changes")):
        set_git(state)
        with pytest.raises(ResultsError, match=words):
            rebuild.keep(folder)
    assert not list(kept.iterdir())
    set_git({"commit": "0123456789", "dirty": False})
    first = rebuild.keep(folder).read_text()
    summary = rebuild.Summary("toy")
    assert said is not None
    assert summary.text("iris", "zero_one linear", "accuracy", 2, 100.0) == said[1]
    row = summary.row("iris", "zero_one linear", "error")
    assert (row["commit"], row["hyper"], row["mark"], row["n_splits"]) == ("0123456", "C=1", "*", 3)
    assert summary.made("advcli dataset=iris").startswith("`advcli dataset=iris`. Relative gaps up to ")
    assert summary.commits() == "0123456"
    # rows of other cells stay, those of the same cell are replaced
    other = first.splitlines()[1].replace("iris", "another")
    (kept / "toy.csv").write_text(first.replace("0123456", "fedcba9") + other + "\n")
    assert sorted(rebuild.keep(folder).read_text().splitlines()) == sorted([*first.splitlines(), other])
    with pytest.raises(ResultsError, match="has no row iris, cs linear, error"):
        summary.row("iris", "cs linear", "error")
    with pytest.raises(ResultsError, match="no kept summary"):
        rebuild.Summary("absent")


def test_a_table_of_searches_is_kept_with_its_commit(rebuild: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ROOT / "results/published/searches/searches_yeast_80.csv"
    table = pd.read_csv(made, dtype=str, keep_default_na=False).drop(columns="commit")
    fresh = tmp_path / made.name
    table.to_csv(fresh, index=False)
    monkeypatch.setattr(rebuild, "SEARCHES", tmp_path / "searches")
    for state in (None, {"commit": None, "dirty": False}, {"commit": "0123456789", "dirty": True}):
        monkeypatch.setattr(rebuild, "git_state", lambda state=state: state)
        with pytest.raises(ResultsError, match="no commit stands for its numbers"):
            rebuild.keep_searches(fresh)
    monkeypatch.setattr(rebuild, "git_state", lambda: {"commit": "0123456789", "dirty": False})
    kept = pd.read_csv(rebuild.keep_searches(fresh), dtype=str, keep_default_na=False)
    assert set(kept["commit"]) == {"0123456"}
    pd.testing.assert_frame_equal(kept.drop(columns="commit"), table)
    table.drop(columns="calls").to_csv(fresh, index=False)
    with pytest.raises(ResultsError, match="is no table of searches"):
        rebuild.keep_searches(fresh)
