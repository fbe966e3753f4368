"""Chosen methods and data sets, their order and their names: every writer honours them, numbers keep the names of rows."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from advcli.core import plugins
from advcli.core.errors import ConfigError
from advcli.reports import Choice, comparison_table, summarise, write_reports
from advcli.reports.drawing import svg_only
from advcli.reports.export import FORMATS, export
from advcli.reports.figures import registry
from advcli.reports.sections.content import contents
from advcli.reports.sections.facts import Facts
from advcli.testing.figures import _material

CHOICE = Choice(["ww", "zero_one linear"], ["set_5", "set_0", "set_1", "set_3", "set_2"], {"ww": "Weston-Watkins", "set_0": "Set & nought"})
GONE = re.compile(r"llw|set_[467]|ww linear|set_0")


@pytest.fixture(scope="module")
def folder(planted, tmp_path_factory):
    return planted.folder(tmp_path_factory.mktemp("choice") / "results", *planted.sweep(8), provenance={"seed": 0})


@pytest.fixture(scope="module")
def summary(folder, tmp_path_factory):
    with svg_only():
        return write_reports(folder, full=True, choice=CHOICE, out=tmp_path_factory.mktemp("out") / "tables")


@pytest.fixture(scope="module")
def written(folder, summary):
    return next(folder.path.parent.parent.glob("out*/tables"))


def test_every_page_table_and_figure_honours_it(written, summary):
    shown = [name for name in summary.attrs["files"] if name.endswith((".md", ".tex", ".html", ".svg"))]
    assert {"table.md", "report.md", "report.tex", "report.html"} < set(shown)
    for name in shown:
        text = (written / name).read_text(encoding="utf-8")
        lines = [line for line in text.splitlines() if "sha256" not in line]  # of the data in the folder, not of the report
        assert not GONE.search("\n".join(lines)), name
        assert "Weston-Watkins" in text or name.startswith("plots/published"), name


def test_numbers_keep_the_names_of_rows(written, summary):
    for name in ("summary.csv", "wins.csv", "pairs.csv"):
        frame = pd.read_csv(written / name)
        assert set(frame["method"]) <= {"ww linear", "zero_one linear"}, name
        assert "dataset" not in frame or list(dict.fromkeys(frame["dataset"])) == list(CHOICE.datasets), name
    assert list(pd.read_csv(written / "table.csv").columns)[2:4] == ["ww linear mean", "ww linear std"]
    assert list(pd.read_csv(written / "table.csv")["dataset"]) == list(CHOICE.datasets)


def test_the_order_is_the_chosen_one(summary):
    lines = comparison_table(summary).splitlines()
    assert re.split(r"\s{2,}", lines[0].strip()) == ["dataset", "Weston-Watkins", "zero_one linear"]
    assert [line.split("  ")[0] for line in lines[2:7]] == ["set_5", "Set & nought", "set_1", "set_3", "set_2"]


def test_the_folder_itself_is_left(folder, summary):
    assert not (folder.path / "summary.csv").exists()
    assert pd.read_csv(folder.path / "runs.csv")["method"].nunique() == 3


def test_every_figure_honours_it():
    made = _material(datasets=5, methods=3, splits=4)
    names = {"loss_2": "Third", made.runs["dataset"].iloc[0]: "First"}
    choice = Choice(["loss_2", "loss_0"], sorted(set(made.runs["dataset"]))[::-1], names)
    runs, shown = choice.rows(made.runs)
    facts = Facts(search=made.search, confusion=made.confusion, learning=made.learning, tolerances=(1e-3,))
    with svg_only():
        document = contents("x", runs, summarise(runs), facts=facts, names=shown).document
    drawn = {figure.name: figure for figure in document.figures}
    # files that other tests of the process load register figures, too
    own_figures = {name for name in registry if not plugins.is_plugin(registry.get(name).draw.__module__)}
    for name in own_figures - {"published"}:
        own = [figure for word, figure in drawn.items() if word == name or word.startswith(f"{name}-")]
        assert own, name
        for figure in own:
            assert not re.search(r"loss_1|loss_2|set_0", figure.svg), name
    assert any("Third" in figure.svg for figure in drawn.values())


@pytest.mark.parametrize("to", sorted(FORMATS))
def test_every_export_honours_it(folder, tmp_path, to):
    for library in {"parquet": ["pyarrow"], "mlflow": ["mlflow"]}.get(to, []):
        pytest.importorskip(library)
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    said, _ = export([folder], to, tmp_path / "out", CHOICE)
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before
    if to == "latex":
        text = (tmp_path / "out").read_text(encoding="utf-8")
        assert "Weston-Watkins" in text
        assert not GONE.search(text.replace(r"\_", "_"))
    elif to == "mlflow":
        assert said.startswith("10 runs")
    else:
        rows = pd.read_csv(tmp_path / "out") if to == "csv" else pd.read_parquet(tmp_path / "out")
        assert list(dict.fromkeys(rows["method"])) == ["ww linear", "zero_one linear"]
        assert list(dict.fromkeys(rows["dataset"])) == list(CHOICE.datasets)


def test_the_marks_are_among_what_is_shown(folder):
    runs, _ = Choice(["ww", "llw"]).rows(folder.runs())
    alone, _ = Choice().rows(folder.runs()[folder.runs()["loss"] != "zero_one"])
    columns = ["mean", "best", "p_value", "bold", "rank"]
    first, second = (summarise(each).sort_values(["dataset", "mean"])[columns].reset_index(drop=True) for each in (runs, alone))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(["ww liner"]), "report.methods: there is no 'ww liner' in these results; did you mean ww linear"),
        (Choice(None, ["set_9"]), "report.datasets: there is no 'set_9'"),
        (Choice(None, None, {"zero_on": "AL"}), "report.names: there is no 'zero_on' in these results; did you mean zero_one"),
        (Choice(None, None, {"ww": "llw linear"}), "two of them would be one method 'llw linear': llw linear and ww linear"),
        (Choice(None, None, {"set_1": "set_2"}), "two of them would be one data set 'set_2': set_1 and set_2"),
    ],
)
def test_a_name_that_is_none_is_refused(folder, tmp_path, choice, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        write_reports(folder, full=True, choice=choice, out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_loss_names_its_methods_and_their_options(planted, tmp_path):
    cells = [planted.rows("d", "abstain linear", [4, 5], options=f"loss.alpha={alpha}", cell=f"{alpha}") for alpha in (0.1, 0.2)]
    cells += [planted.rows("d", method, [3, 5]) for method in ("cs linear", "cs rbf")]
    runs = planted.folder(tmp_path / "results", *cells).runs()
    _, names = Choice(None, None, {"abstain": "Abstaining", "cs": "Crammer-Singer"}).rows(runs)
    assert names.methods == {
        "abstain linear [loss.alpha=0.1]": "Abstaining [loss.alpha=0.1]",
        "abstain linear [loss.alpha=0.2]": "Abstaining [loss.alpha=0.2]",
        "cs linear": "Crammer-Singer linear",
        "cs rbf": "Crammer-Singer rbf",
    }
