import csv
import json
import re
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from html.parser import HTMLParser

import pandas as pd
import pytest

from advcli.core.errors import ConfigError
from advcli.reports import write, write_reports
from advcli.reports.across import MIN_DATASETS, MOST_PAIRED
from advcli.reports.comparison import comparison
from advcli.reports.drawing import svg_only
from advcli.reports.formats.document import ReportTable, TableField
from advcli.reports.formats.html_page import html_table
from advcli.reports.formats.latex import escape, latex_table
from advcli.reports.formats.markdown import markdown_table
from advcli.reports.sections.content import contents
from advcli.reports.summary import summarise

TABLES = ["summary.csv", "table.md", "table.csv", "wins.csv", "pairs.csv", "report.md", "report.tex", "report.html"]


class Page(HTMLParser):
    """Collects tables (head, body and foot rows), ids, and addresses that a browser would ask for."""

    VOID = frozenset({"meta", "link", "br", "hr", "img"})

    def __init__(self, text):
        super().__init__()
        self.tables, self.ids, self.addresses, self.open = {}, [], [], []
        self.table = self.row = self.part = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.addresses += [values[name] for name in ("src", "href", "xlink:href", "action", "data") if name in values]
        self.ids += [values["id"]] if "id" in values else []
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.table = self.tables[values["id"]] = {"thead": [], "tbody": [], "tfoot": []}
        elif tag in ("thead", "tbody", "tfoot"):
            self.part = tag
        elif tag == "tr":
            self.table[self.part].append([])
        elif tag in ("td", "th"):
            self.table[self.part][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and {"td", "th"} & set(self.open):
            self.table[self.part][-1][-1] += data


def full(planted, tmp_path, cells, formats=svg_only, **more):
    """Return a results folder and the summary of its report, without PDF and PNG: SVG shows the same drawings, and `report` has all."""
    config = {"provenance": {"seed": 0, "published": "fathony2018_table2_linear"}} | more.pop("made", {})
    folder = planted.folder(tmp_path / "results", *cells, **config)
    with formats():
        return folder, write_reports(folder, full=True, **more)


@pytest.fixture(scope="module")
def report(planted, tmp_path_factory):
    """A report on eight data sets, three of them published, with a failed cell, a late fit and a far one."""
    cells = planted.sweep(5, metrics=("error", "accuracy"))
    for dataset in ("iris", "glass", "ecoli"):
        for method, errors in (("zero_one linear", [2, 1] * 10), ("ww linear", [2, 3] * 10), ("llw linear", [10, 11] * 10)):
            cells.append(planted.rows(dataset, method, errors, metrics=("error", "accuracy")))
    cells[0] = planted.rows("set_0", "zero_one linear", [None, *[3] * 19], metrics=("error", "accuracy"))
    for row in cells[4][:2]:
        row |= {"status": "not_converged", "relative_gap": 0.5}
    return full(planted, tmp_path_factory.mktemp("full"), cells, nullcontext)


def test_all_files_are_there_and_named(report):
    folder, summary = report
    assert {*TABLES, "published.csv"} <= set(summary.attrs["files"])
    for name in summary.attrs["files"]:
        assert (folder.path / name).stat().st_size > 0
    assert not list(folder.path.rglob("*.tmp"))


def test_a_run_writes_the_short_report_only(planted, tmp_path):
    folder = planted.folder(tmp_path / "results", *planted.sweep(2))
    summary = write_reports(folder)
    assert summary.attrs["files"] == ["summary.csv", "table.md"]
    assert not (folder.path / "report.html").exists()


def test_the_same_rows_give_the_same_bytes(report):
    folder, summary = report
    before = {name: (folder.path / name).read_bytes() for name in summary.attrs["files"]}
    again = write_reports(folder, full=True)
    assert {name: (folder.path / name).read_bytes() for name in again.attrs["files"]} == before


def test_wide_table(report):
    folder, summary = report
    wide = pd.read_csv(folder.path / "table.csv").set_index("dataset")
    assert set(wide["metric"]) == {"error"}  # accuracy is the same table
    lines = summary[summary["metric"] == "error"].set_index(["dataset", "method"])
    assert wide.loc["iris", "ww linear mean"] == lines.loc[("iris", "ww linear"), "mean"]
    assert wide.loc["iris", "zero_one linear mark"] == "best"
    assert wide.loc["set_0", "zero_one linear mark"] == "failed"


def test_wins_and_pairs(report):
    folder, _ = report
    wins = pd.read_csv(folder.path / "wins.csv").set_index(["metric", "method", "other"])
    assert wins.loc[("error", "zero_one linear", "llw linear"), "wins"] == 7
    assert wins.loc[("error", "llw linear", "zero_one linear"), "losses"] == 7
    pairs = pd.read_csv(folder.path / "pairs.csv").set_index(["method", "other"])
    assert pairs.loc[("llw linear", "zero_one linear"), "effect_size"] == -1.0
    assert (pairs["n_datasets"] == 7).all()  # not set_0


def test_page_shows_everything(report):
    folder, _ = report
    text = (folder.path / "report.html").read_text()
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    comparison = page.tables["comparison-accuracy"]
    assert [name.strip() for name in comparison["thead"][0]] == ["dataset", "llw linear", "ww linear", "zero_one linear"]
    assert len(comparison["tbody"]) == 8
    fields = {row[0]: row[1:] for row in comparison["tbody"]}
    assert fields["iris"][2].endswith(" *")
    assert "failed 1/20" in fields["set_0"][2]
    assert "!" in fields["set_1"][1]
    assert [row[0] for row in comparison["tfoot"]] == ["average", "count"]
    assert {"overview-accuracy", "wins-accuracy", "details-accuracy", "pairs-accuracy", "published", "certificates", "failures"} <= set(
        page.tables
    )
    assert len(page.tables["details-accuracy"]["tbody"]) == 24
    at = [name.strip() for name in page.tables["details-accuracy"]["thead"][0]].index("p adjusted")
    judged = [(row[2], row[at]) for row in page.tables["details-accuracy"]["tbody"] if re.fullmatch(r"[01]\.\d+", row[at])]
    assert judged
    assert all(("=" in mean) == (float(p) >= 0.05) for mean, p in judged), "the marks go by this p-value"
    assert any("solver broke" in field for row in page.tables["failures"]["tbody"] for field in row)
    certificate = {(row[0], row[1]): row for row in page.tables["certificates"]["tbody"]}
    assert certificate["set_1", "ww linear"][2:5] == ["5.0e-01", "20", "1"]
    for words in ("Friedman test over 7 data sets", "1 cell with a failed fit", "1 cell with a fit that did not converge", "sha256"):
        assert words in text
    assert "left out, as a method has no complete result there: set_0" in text


def test_published_numbers_stand_beside_ours(report):
    folder, summary = report
    lines = pd.read_csv(folder.path / "published.csv").set_index(["dataset", "method"])
    assert lines.loc[("iris", "zero_one linear"), "printed"] == "96.3 (3.1)"
    far = lines[lines["far"]].index.tolist()
    assert ("glass", "zero_one linear") in far
    assert ("iris", "zero_one linear") not in far
    said = [remark for remark in summary.attrs["remarks"] if "disagrees" in remark]
    assert len(said) == len(far)
    for file in ("report.md", "report.html"):
        text = (folder.path / file).read_text()
        assert "disagrees: glass, zero_one linear, accuracy: ours 96.7 (1.1), published 62.5 (6.0), z = +" in text
    row = next(row for row in Page(text).tables["published"]["tbody"] if row[:2] == ["glass", "zero_one linear"])
    assert row[3:5] == ["AL0-1 linear", "62.5 (6.0)"]


def test_page_asks_for_nothing(report):
    folder, _ = report
    text = (folder.path / "report.html").read_text()
    outside = [address for address in Page(text).addresses if not address.startswith(("#", "data:"))]
    assert outside == []
    assert "url(http" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    # every address of a plot's part exists on the page
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(Page(text).ids)


def test_plots_are_there_and_take_the_colour_of_the_page(report):
    folder, summary = report
    drawn = {name for name in summary.attrs["files"] if name.startswith("plots/")}
    assert {
        f"plots/{name}.{kind}"
        for name in ("means-accuracy", "ranks-accuracy", "splits-accuracy", "standing-accuracy", "gaps", "effort", "published")
        for kind in ("svg", "pdf", "png")
    } == drawn
    text = (folder.path / "report.html").read_text()
    assert text.count("<svg ") == 7
    assert "#000000" not in text
    assert "currentColor" in text
    for name in drawn:
        data = (folder.path / name).read_bytes()
        if name.endswith("svg"):
            ET.fromstring(data)
        else:
            assert data.startswith(b"%PDF" if name.endswith("pdf") else b"\x89PNG")
    svg = (folder.path / "plots" / "ranks-accuracy.svg").read_text()
    for words in ("zero_one linear (1.00)", "critical difference"):
        assert words in svg


def test_too_little_data_draws_no_ranks(planted, tmp_path):
    folder, summary = full(planted, tmp_path, planted.sweep(4), made={"provenance": None})
    assert "plots/means-accuracy.svg" in summary.attrs["files"]
    assert "plots/ranks-accuracy.svg" not in summary.attrs["files"]
    for name in ("report.md", "report.html"):
        assert "across data sets" not in (folder.path / name).read_text().lower()  # a section without a test is left out
    assert (folder.path / "pairs.csv").read_text().count("\n") == 1


def test_what_an_earlier_report_left_is_removed(planted, tmp_path):
    folder, _ = full(planted, tmp_path, planted.sweep(6))
    assert (folder.path / "published.csv").exists()
    (folder.path / "plots" / "means-mae.svg").write_text("old")
    (folder.path / "plots" / "mine.svg").write_text("of the user")
    (folder.path / "provenance.json").unlink()
    with svg_only():
        write_reports(folder, full=True)
    assert not (folder.path / "published.csv").exists()
    assert not (folder.path / "plots" / "means-mae.svg").exists()
    assert (folder.path / "plots" / "mine.svg").exists()


def test_a_sweep_ends_with_its_page_alone(planted, tmp_path):
    folder = planted.folder(tmp_path / "results", *planted.sweep(6))
    summary = write_reports(folder, page=True)
    assert summary.attrs["files"] == ["summary.csv", "table.md", "report.html"]
    assert not (folder.path / "plots").exists()
    page = (folder.path / "report.html").read_bytes()
    with svg_only():
        write_reports(folder, full=True)
    assert (folder.path / "report.html").read_bytes() == page, "the page is that of the full report"


def test_a_page_that_cannot_be_made_is_a_remark(planted, tmp_path, monkeypatch):
    folder = planted.folder(tmp_path / "results", *planted.sweep(2))
    summary = write_reports(folder, page=True, published="nonsense")
    (remark,) = summary.attrs["remarks"]
    assert remark.startswith("no report.html: no published numbers 'nonsense'")
    monkeypatch.setattr(write, "PAGE_CELLS", 5)
    summary = write_reports(folder, page=True)
    assert summary.attrs["remarks"] == ["no report.html: more than 5 cells; advcli report results=... writes it"]
    assert summary.attrs["files"] == ["summary.csv", "table.md"]


def test_one_method_is_compared_with_nothing(planted, tmp_path):
    cells = [planted.rows(dataset, "zero_one linear", [2, 1] * 10) for dataset in ("iris", "other")]
    folder, _ = full(planted, tmp_path, cells)
    text = (folder.path / "report.html").read_text()
    page = Page(text)
    table = page.tables["comparison-accuracy"]
    assert [name.strip() for name in table["thead"][0]] == ["dataset", "zero_one linear", "published: AL0-1 linear", "z"]
    rows = {row[0]: row[1:] for row in table["tbody"]}
    assert rows["iris"][:2] == ["96.67 (1.14)", "96.3 (3.1)"]
    assert rows["other"][1:] == ["-", "-"]
    assert [row[0] for row in table["tfoot"]] == ["average"]
    assert not {"overview-accuracy", "wins-accuracy", "pairs-accuracy"} & set(page.tables)
    assert [name.strip() for name in page.tables["details-accuracy"]["thead"][0]][3:] == ["median", "splits", "failed splits"]
    assert "across-accuracy" not in page.ids
    for words in ("<b>", "best", "not significantly", "marks:"):
        assert words not in text[text.index("<body>") : text.index("<script>")]
    assert re.search(r"[*=]", (folder.path / "table.md").read_text()) is None
    marks = [line.split(",")[-1] for line in (folder.path / "table.csv").read_text().splitlines()[1:]]
    assert marks == ["", ""]


@pytest.mark.parametrize(("count", "words"), [(1, "1 data set, 2 methods, 2 cells"), (2, "2 data sets, 2 methods, 4 cells")])
def test_one_is_not_several(count, words, planted, tmp_path):
    folder, _ = full(planted, tmp_path, planted.sweep(count, ("a", "b")))
    text = (folder.path / "report.md").read_text()
    assert words in text
    assert re.search(r"\b1 (\w+ )?(data sets|methods|cells|splits|fits|numbers|pairs)\b", text) is None


def test_a_single_split_has_no_deviation(planted, tmp_path):
    folder, _ = full(planted, tmp_path, [planted.rows("iris", "a", [3])])
    assert "accuracy in percent of 1 split" in (folder.path / "report.md").read_text()


def test_no_result_is_no_number(planted, tmp_path):
    folder, _ = full(planted, tmp_path, [planted.rows("iris", "a", [None, None])])
    text = (folder.path / "report.md").read_text()
    assert "accuracy in percent: no fit has a value" in text
    assert re.search(r"\bnan\b|over no splits", text) is None


def test_a_metric_without_a_value_is_undefined_and_no_failure(planted, tmp_path):
    rows = [
        row | {"value": None if row["metric"] == "mae" else row["value"]}
        for row in planted.rows("iris", "a", [1, 2], metrics=("error", "mae"))
    ]
    folder, summary = full(planted, tmp_path, [rows])
    lines = summary.set_index("metric")
    assert (lines.loc["mae", "failed"], lines.loc["mae", "undefined"], lines.loc["error", "undefined"]) == (2, 2, 0)
    fields = Page((folder.path / "report.html").read_text()).tables["comparison-mae"]["tbody"][0]
    assert fields == ["iris", "undefined"]
    assert "did not happen" not in (folder.path / "report.md").read_text()


def test_hostile_names_are_only_names(planted, tmp_path):
    name = '<script>alert("1")</script> $x_1$ & 50% | *a*'
    cells = [planted.rows(name, method, [1, 2, 3, 4], error="<b>&", cell=f"key{at}") for at, method in enumerate(("a_b", "c|d"))]
    folder, _ = full(planted, tmp_path, cells, nullcontext)
    page = Page((folder.path / "report.html").read_text())
    assert page.tables["comparison-accuracy"]["tbody"][0][0] == name
    assert "script" not in page.open
    tex = (folder.path / "report.tex").read_text()
    assert r"\$x\_1\$ \& 50\% \textbar{} *a*" in tex
    row = next(line for line in (folder.path / "report.md").read_text().splitlines() if line.startswith("| &lt;script"))
    assert len(re.split(r"(?<!\\)\|", row)) == 5


def test_every_cell_failed(planted, tmp_path):
    lost = planted.rows("iris", "a", [None])
    lost[0] |= {"metric": "", "split": None}
    folder, _ = full(planted, tmp_path, [lost])
    page = Page((folder.path / "report.html").read_text())
    assert page.tables["failures"]["tbody"][0][2:4] == ["before the first", "solver broke"]
    assert "failed" in (folder.path / "report.tex").read_text()


def test_an_unknown_published_key_writes_nothing(planted, tmp_path):
    folder = planted.folder(tmp_path / "results", *planted.sweep(2))
    with pytest.raises(ConfigError, match="no published numbers 'nonsense'"):
        write_reports(folder, full=True, published="nonsense")
    assert not (folder.path / "summary.csv").exists()
    assert not (folder.path / "report.html").exists()


def test_a_fit_without_a_finite_gap_is_shown(planted, tmp_path):
    rows = planted.rows("iris", "a", [1, 2, 3])
    rows[0] |= {"relative_gap": float("inf"), "status": "not_converged"}
    folder, summary = full(planted, tmp_path, [rows, planted.rows("iris", "b", [1, 2, 3])], made={"provenance": None})
    assert summary.set_index("method").loc["a", "worst_gap"] == float("inf")
    text = (folder.path / "report.html").read_text()
    row = next(row for row in Page(text).tables["certificates"]["tbody"] if row[1] == "a")
    assert (row[2], row[4]) == ("inf", "1")
    assert 'data-value="Infinity"' in text
    assert "Not drawn: 1 without a finite gap." in text


def test_facts_of_the_cells_are_said(planted, tmp_path):
    about = {
        "notes": ["3 rows dropped"],
        "edges": ["C=4 is the largest value tried"],
        "cell": {"dataset": {"cut": "equal_width"}, "solver": {"tol": 0.001}, "protocol": {"splits": "random"}},
    }
    folder, _ = full(planted, tmp_path, [planted.rows("iris", "zero_one linear", [2, 1] * 10)], made={"about": about})
    text = (folder.path / "report.md").read_text()
    for words in ("iris: 3 rows dropped", "C=4 is the largest value tried", "cut: equal width", "asked for: 1.0e-03"):
        assert words in text


def test_a_target_that_is_not_cut_is_not_called_cut(planted, tmp_path):
    about = {"cell": {"dataset": {"cut": "none"}, "protocol": {"splits": "random"}}}
    folder, _ = full(planted, tmp_path, [planted.rows("iris", "zero_one linear", [2, 1] * 10)], made={"about": about})
    assert re.search(r"(?<!\.)cut:", (folder.path / "report.md").read_text()) is None


def test_damaged_provenance_is_no_obstacle(planted, tmp_path):
    folder = planted.folder(tmp_path / "results", *planted.sweep(2))
    (folder.path / "provenance.json").write_text("{")
    write_reports(folder, full=True)
    assert "no provenance.json" in (folder.path / "report.md").read_text()


def test_settings_are_listed(report):
    folder, _ = report
    seed = json.loads((folder.path / "provenance.json").read_text())["config"]["seed"]
    assert f"<dt>seed</dt><dd>{seed}</dd>" in (folder.path / "report.html").read_text()
    assert f"- seed: `{seed}`" in (folder.path / "report.md").read_text()


def test_latex_is_balanced(report):
    folder, _ = report
    text = (folder.path / "report.tex").read_text()
    for first, last in ((r"\begin{table}", r"\end{table}"), (r"\begin{tabular}", r"\end{tabular}"), (r"\toprule", r"\bottomrule")):
        assert text.count(first) == text.count(last) > 0
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    comparison = text[text.index(r"\label{tab:comparison-accuracy}") :]
    width = comparison[comparison.index(r"\toprule") : comparison.index(r"\midrule")].count(" & ")
    assert width == 3
    assert r"\textbf{96.67 (1.14)}$^{\ast }$" in text
    assert "details" not in text  # too long for print


def test_markup_of_one_table():
    row = (TableField("x_1"), TableField("97.0 (1.0)", 0.97, strong=True, marks="*!"), TableField("failed", float("nan"), state="failed"))
    table = ReportTable("t", "A caption.", ("dataset", "a", "b"), (row,), notes=("* best",))
    assert r"x\_1 & \textbf{97.0 (1.0)}$^{\ast !}$ & \emph{failed} \\" in latex_table(table)
    assert r"| **97.0 (1.0)** \*! |" in markdown_table(table)
    html = html_table(table)
    assert '<td class="best" data-value="0.97" title="best mean; a fit did not converge"><b>97.0 (1.0)</b> *!</td>' in html
    assert '<td class="failed" data-value="nan">failed</td>' in html


def latex_rows(text, name):
    """Return body and foot of a table as lists of fields: what stands between the rules of booktabs."""
    table = text[text.index(rf"\label{{tab:{name}}}") :]
    table = table[table.index(r"\toprule") : table.index(r"\bottomrule")]
    head, *parts = [[line.strip() for line in part.splitlines()[1:]] for part in table.split(r"\midrule")]
    return [[line.removesuffix(r" \\").split(" & ") for line in part] for part in (head, *parts)]


def test_latex_has_the_rows_of_the_page(report):
    """Every table of the comparison: the same methods, data sets, averages and counts as in Markdown and HTML."""
    folder, _ = report
    head, body, foot = latex_rows((folder.path / "report.tex").read_text(), "comparison-accuracy")
    page = Page((folder.path / "report.html").read_text()).tables["comparison-accuracy"]
    assert [[text.replace(r"\_", "_") for text in row] for row in head] == page["thead"]
    assert [row[0].replace(r"\_", "_") for row in body] == [row[0] for row in page["tbody"]]
    assert foot == page["tfoot"]
    assert [row[0] for row in foot] == ["average", "count"]
    # the method with a failed cell has no average
    assert [text == "-" for text in foot[0]] == [False, False, False, True]


def test_latex_of_a_table_without_a_foot():
    table = ReportTable("x", "Rows.", ("dataset", "a"), ((TableField("iris"), TableField("1")),))
    assert latex_table(table).count(r"\midrule") == 1
    assert latex_rows(latex_table(table), "x") == [[["dataset", "a"]], [["iris", "1"]]]


def test_latex_escapes():
    assert escape("a_b & 5% $ # {x} ~ ^ \\ <") == (
        r"a\_b \& 5\% \$ \# \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \textless{}"
    )


def test_csv_files_have_one_width(report):
    folder, summary = report
    for name in summary.attrs["files"]:
        if name.endswith(".csv"):
            with (folder.path / name).open(newline="") as file:
                assert len({len(row) for row in csv.reader(file)}) == 1


def test_hundreds_of_methods_stand_in_rows_and_are_not_compared_pair_by_pair(planted):
    methods = [f"method_{at:02d} linear" for at in range(MOST_PAIRED + 1)]
    runs = pd.DataFrame(
        [row for at in range(MIN_DATASETS) for method in methods for row in planted.rows(f"set_{at}", method, [at, at + 1])]
    )
    report = contents("many", runs, summarise(runs))
    assert report.wins.empty
    assert report.pairs.empty
    tables = {table.name: table for section in report.document.sections for table in section.tables}
    assert tables["comparison-accuracy"].columns == ("method", *(f"set_{at}" for at in range(MIN_DATASETS)), "average", "count")
    assert [row[0].text for row in tables["comparison-accuracy"].rows] == methods
    assert "wins" not in tables["overview-accuracy"].columns
    assert any("are not compared pair by pair; report.methods=[...]" in note for note in tables["overview-accuracy"].notes)
    few = runs[runs["method"].isin(methods[:3])]
    turned, table = comparison(summarise(runs)), comparison(summarise(few))
    assert [row[:4] for row in table.rows] == [
        (TableField(f"set_{at}"), *(row[1 + at] for row in turned.rows[:3])) for at in range(MIN_DATASETS)
    ]


@pytest.mark.parametrize("count", [0, 1, 8, 9, 30])
def test_a_page_folds_the_last_of_many_notes(count: int) -> None:
    notes = [f"note {at}" for at in range(count)]
    html = html_table(ReportTable("some", "Some.", ("a",), (), notes=tuple(notes)))
    assert re.findall(r"<li>(.*?)</li>", html) == notes
    head, _, folded = html.partition("<details>")
    assert head.count("<li>") == (count if count <= 8 else 7)
    assert folded.startswith(f"<summary>{count - 7} more notes</summary>") == (count > 8)
