"""Is a data set ordered? One answer before it is loaded, the same as after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.composed import choice

from advcli.cli import main
from advcli.core.paths import conf_dir
from advcli.data import is_ordered, load
from advcli.data import registry as module
from advcli.data.catalogue import CATALOGUE
from advcli.data.source import Source

TABLE = "a,label_x,label_y,label\n" + "".join(f"{i % 7},{i % 2},1,{'xyz'[i % 3]}\n" for i in range(30))
SVMLIGHT = "".join(f"{i % 3} 1:{i % 7 + 1}\n" for i in range(30))
KNOWN = sorted({name for sets in CATALOGUE.values() for name in sets if (conf_dir() / "dataset" / f"{name}.yaml").is_file()})


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "t.svm").write_text(SVMLIGHT)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"cut": "none"}, False),
        ({"cut": None}, False),
        ({"ordered": True}, True),
        ({"order": ["y", "x", "z"]}, True),
        ({"target": "a", "cut": "equal_width", "n_classes": 2}, True),
        ({"target": "label_*", "features": ["a"]}, False),
        ({"label_separator": ";", "ordered": True}, False),
        ({"format": "svmlight", "target": "label_*", "ordered": True}, True),
        ({"format": "svmlight", "cut": "edges", "edges": [1]}, True),
    ],
)
def test_before_and_after_loading(csv_file: Path, changes: dict[str, Any], expected: bool) -> None:
    path = csv_file.with_suffix(".svm") if changes.get("format") == "svmlight" else csv_file
    features = {} if changes.get("format") == "svmlight" else {"features": ["a"] if changes.get("target") != "a" else ["label_x"]}
    options = {"name": "t", "source": "csv", "path": str(path), "target": "label", **features, **changes}
    assert is_ordered(options) is expected
    assert load(options, csv_file.parent).ordered is expected


def test_the_heading_tells_what_a_star_means(csv_file: Path) -> None:
    """``label_*`` may be columns of labels, which have no order, or the name of one column."""
    starred = csv_file.with_name("starred.csv")
    starred.write_text(TABLE.replace("label\n", "label_*\n", 1))
    for path, after in ((csv_file, False), (starred, True)):
        options = {"name": "t", "source": "csv", "path": str(path), "target": "label_*", "features": ["a"], "ordered": True}
        assert is_ordered(options) is None
        assert load(options, csv_file.parent).ordered is after


@pytest.mark.parametrize("name", KNOWN)
def test_known_sets(name: str, tmp_path: Path) -> None:
    options = choice("dataset", name)
    facts = CATALOGUE[options["source"]][name]
    assert is_ordered(options) is (facts.task in ("ordinal", "regression_to_ordinal"))
    if facts.rows < 50_000 and options["source"] not in ("folder", "text", "hierarchical"):  # those are loaded by other tests
        assert load(options, tmp_path).ordered is is_ordered(options)


def test_the_authors_levels_have_an_order() -> None:
    assert is_ordered({**choice("dataset", "diabetes"), "cut": "none", "n_classes": None, "ordered": False}, author_splits=True)
    assert is_ordered(choice("dataset", "glass"), author_splits=True) is False


def test_a_source_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("mine", {}, lambda options, data_dir: pytest.fail("nothing is loaded"))
    monkeypatch.setattr(module, "sources", lambda: {"mine": source})
    assert is_ordered({"name": "m", "source": "mine"}) is None
    assert is_ordered({"name": "m", "source": "mine", "ordered": True}) is True


@pytest.mark.parametrize("verb", [["-m"], ["bench"]])
@pytest.mark.parametrize("dataset", ["glass", "reuters_r8", "wine"])
def test_a_sweep_without_an_order_is_refused_before_it_starts(
    verb: list[str], dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / f"{dataset}.csv.gz").touch()  # is not read: the options show whether the classes have an order
    monkeypatch.setenv("ADVCLI_DATA", "data")
    assert main([*verb, f"dataset=synthetic_ordinal,{dataset}", "loss=absolute", "hyper.C=1"]) == 2
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "loss=absolute needs labels with an order" in err
    assert list(tmp_path.iterdir()) == [folder]
