import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.errors import ConfigError, ResultsError
from advcli.reports import SUMMARY_COLUMNS, comparison_table, primary_metric, summarise, write_reports
from advcli.reports.comparison import comparison
from advcli.reports.formats.latex import latex_table
from advcli.reports.summary import _by_method, _samples, wins_ties_losses
from advcli.results.folder import ResultsFolder
from advcli.statistics.marks import Significance
from advcli.statistics.tests import TESTS, corrected_t, wilcoxon

N_TRAIN, N_TEST = 70, 30
_keys = itertools.count()


def rows(dataset, method, errors, metric="error", n_test=N_TEST, key=None, **more):
    key = key or f"{next(_keys):06d}abc"
    return [
        {
            "dataset": dataset,
            "method": method,
            "split": split,
            "metric": metric,
            "value": None if error is None else error / n_test,
            "n_train": N_TRAIN,
            "n_test": n_test,
            "status": "failed" if error is None else "ok",
            "relative_gap": 1e-4 * split,
            "seed": 0,
            "options": "protocol.name=tiny",
            "cell": key,
            "error": "",
            **more,
        }
        for split, error in enumerate(errors, start=1)
    ]


def folder_of(tmp_path, *cells):
    folder = ResultsFolder(tmp_path / "results")
    folder.prepare({})
    for at, cell in enumerate(cells):
        failed = any(row["status"] == "failed" for row in cell)
        folder.write_cell(f"k{at}", cell, traceback="Traceback" if failed else None)
    folder.merge()
    return folder


def line(summary, dataset, method, metric="error"):
    part = summary[(summary["dataset"] == dataset) & (summary["method"] == method) & (summary["metric"] == metric)]
    assert len(part) == 1
    return part.iloc[0]


A = [3, 5, 2, 4, 6, 3, 5, 4]
B = [4, 5, 3, 4, 6, 2, 5, 5]
C = [13, 14, 12, 15, 13, 12, 16, 13]


def test_summary_numbers(tmp_path):
    runs = folder_of(tmp_path, rows("iris", "a", A), rows("iris", "b", B), rows("iris", "c", C)).runs()
    summary = summarise(runs, Significance("wilcoxon"))
    assert tuple(summary.columns) == SUMMARY_COLUMNS
    a, b, c = (line(summary, "iris", method) for method in "abc")
    assert a["mean"] == pytest.approx(np.mean(A) / 30)
    assert a["std"] == pytest.approx(np.std(A, ddof=1) / 30)
    assert a["n_splits"] == 8
    assert (a["best"], a["bold"]) == (True, True)
    assert math.isnan(a["p_value"])
    assert (b["best"], b["bold"]) == (False, True)
    assert b["p_value"] == wilcoxon(B, A).p_value
    assert (c["best"], c["bold"]) == (False, False)
    assert a["worst_gap"] == 8e-4
    corrected = line(summarise(runs), "iris", "b")
    assert corrected["p_value"] == pytest.approx(corrected_t(B, A, N_TRAIN, N_TEST).p_value)


def test_accuracy_prefers_the_other_end(tmp_path):
    runs = folder_of(tmp_path, rows("iris", "a", A, "accuracy"), rows("iris", "c", C, "accuracy")).runs()
    summary = summarise(runs, Significance("ttest"))
    assert line(summary, "iris", "c", "accuracy")["best"]
    assert not line(summary, "iris", "a", "accuracy")["bold"]


def test_order_of_rows_does_not_matter(tmp_path):
    runs = folder_of(tmp_path, rows("x", "a", A), rows("x", "b", B), rows("y", "a", C), rows("y", "b", B)).runs()
    shuffled = runs.sample(frac=1, random_state=0, ignore_index=True)
    pd.testing.assert_frame_equal(summarise(runs), summarise(shuffled))


def test_table_in_markdown(tmp_path):
    cells = [rows("iris", "a", A), rows("iris", "b", B), rows("iris", "c", C), rows("wine", "a", A), rows("wine", "b", A)]
    runs = folder_of(tmp_path, *cells).runs()
    text = comparison_table(summarise(runs, Significance("wilcoxon")), style="markdown")
    lines = {part.split("|")[1].strip(): [cell.strip() for cell in part.split("|")[2:-1]] for part in text.splitlines() if "|" in part}
    mean, std = 100 * (1 - np.mean(A) / 30), 100 * np.std(A, ddof=1) / 30
    assert lines["iris"][0] == rf"**{mean:.2f} ({std:.2f})** \*"
    assert lines["iris"][1].endswith("** =")
    assert not lines["iris"][2].startswith("**")
    assert lines["wine"] == [lines["iris"][0], lines["iris"][0], "-"]  # several bests; c is missing
    assert lines["count"] == ["2", "2", "0"]
    assert lines["average"][0] == f"{mean:.2f}"
    assert lines["average"][2] == "-"  # no average over other data sets than the others'
    assert "accuracy in percent" in text
    assert "Wilcoxon" in text
    assert "on these splits" in text
    assert "relative duality gap of these fits: 8.0e-04" in text


def test_a_failed_split_leaves_no_average(tmp_path):
    cells = [rows("x", "a", A), rows("x", "b", [None, *A[1:]]), rows("y", "a", A), rows("y", "b", A)]
    table = comparison(summarise(folder_of(tmp_path, *cells).runs()))
    assert [entry.text for entry in table.footer[0]] == ["average", f"{100 * (1 - np.mean(A) / 30):.2f}", "-"]


def test_latex_ends_in_averages_and_counts(tmp_path):
    cells = [rows("iris", "a", A), rows("iris", "c", C), rows("wine", "a", A), rows("wine", "c", C)]
    text = latex_table(comparison(summarise(folder_of(tmp_path, *cells).runs())))
    footer = text[text.rindex(r"\midrule") : text.index(r"\bottomrule")]
    means = [f"{100 * (1 - np.mean(errors) / 30):.2f}" for errors in (A, C)]
    assert [part.split() for part in footer.splitlines()[1:]] == [
        ["average", "&", means[0], "&", means[1], r"\\"],
        ["count", "&", "2", "&", "0", r"\\"],
    ]


@settings(max_examples=60, deadline=None)
@given(
    metric=st.sampled_from(["error", "accuracy", "mae", "abstention_loss"]),
    sizes=st.lists(st.tuples(*[st.integers(10, 500)] * 2), min_size=3, max_size=8),
    same=st.booleans(),
    test=st.sampled_from(sorted(TESTS)),
    seed=st.integers(0, 2**32 - 1),
)
def test_only_shares_of_the_same_rows_are_compared(metric, sizes, same, test, seed):
    """Whatever the sizes of test parts: `*` stands at the best mean or nowhere, and a test is made only where the sizes agree."""
    rng = np.random.default_rng(seed)
    cells = []
    for at, method in enumerate("ab"):
        own = [pair[0 if same else at] for pair in sizes]
        counts = [int(rng.integers(0, size + 1)) for size in own]
        cells += with_sizes(rows("x", method, counts, metric, n_test=1), own)
    runs = pd.DataFrame(cells)
    summary = summarise(runs, Significance(test))
    means = summary["mean"] if metric == "accuracy" else -summary["mean"]
    paired = same or all(one == other for one, other in sizes)
    assert summary["bold"].any() == paired
    assert summary.attrs["unpaired"] == ([] if paired else ["x"])
    if paired:
        assert means[summary["best"]].tolist() == pytest.approx([means.max()] * int(summary["best"].sum()))
    else:
        assert summary["p_value"].isna().all()
        assert not wins_ties_losses(runs, metric, Significance(test))[["wins", "losses"]].any(axis=None)


def test_other_seeds_are_other_rows():
    """The rows alone tell no more of their splits than the seed and the sizes."""
    runs = pd.DataFrame([*rows("x", "m", A, seed=0), *rows("x", "m", C, seed=1), *rows("y", "m", A), *rows("y", "b", C)])
    summary = summarise(runs)
    assert summary.attrs["unpaired"] == ["x"]
    assert summary.loc[summary["best"], ["dataset", "method"]].to_numpy().tolist() == [["y", "m [seed=0]"]]


def test_terminal_style_and_colour(tmp_path):
    summary = summarise(folder_of(tmp_path, rows("iris", "a", A), rows("iris", "c", C)).runs())
    plain, coloured = comparison_table(summary), comparison_table(summary, colour=True)
    assert "\x1b[" not in plain
    assert coloured.count("\x1b[1m") == 1
    assert coloured.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain
    assert "\x1b[" not in comparison_table(summary, style="markdown", colour=True)
    assert "Nadeau" in plain
    assert "on these splits" not in plain
    assert "average" not in plain.split("\n\n")[0]  # a single data set has no average


def test_plain_metrics_are_not_percent(tmp_path):
    summary = summarise(folder_of(tmp_path, rows("x", "a", [12, 15, 18], "mae")).runs())
    assert "0.500 (0.100)" in comparison_table(summary)
    assert "mae: mean" in comparison_table(summary)


def test_failures_and_unconverged_fits_are_visible(tmp_path):
    lost = rows("x", "c", [None], metric="", split=None)
    late = rows("x", "d", A)
    late[0]["status"] = "not_converged"
    runs = folder_of(tmp_path, rows("x", "a", B), rows("x", "b", [1, None, 1, 1, 1, 1, 1, 1]), lost, late).runs()
    summary = summarise(runs)
    assert line(summary, "x", "b")["failed"] == 1
    assert not line(summary, "x", "b")["bold"]  # a method with a failed split is not compared, however good the others
    assert line(summary, "x", "c")["n_splits"] == 0
    assert line(summary, "x", "d")["not_converged"] == 1
    row = next(part for part in comparison_table(summary).splitlines() if part.startswith("x"))
    assert "failed 1/8" in row
    assert row.count("failed") == 2
    assert "*!" in row
    text = comparison_table(summary)
    assert "! at least one fit stopped" in text
    assert "failed: at least one split has no value" in text


def test_everything_failed(tmp_path):
    runs = folder_of(tmp_path, rows("x", "c", [None], metric="", split=None)).runs()
    assert "failed" in comparison_table(summarise(runs))
    with pytest.raises(ResultsError):
        primary_metric(runs)


def test_few_splits_are_said(tmp_path):
    runs = folder_of(tmp_path, rows("x", "a", A[:5]), rows("x", "c", C[:5])).runs()
    summary = summarise(runs, Significance("wilcoxon"))
    assert summary["bold"].all()
    assert "fewer than 6 splits" in comparison_table(summary)
    assert "fewer than 6 splits" not in comparison_table(summarise(runs, Significance("ttest")))
    one = summarise(folder_of(tmp_path / "1", rows("x", "a", A[:1]), rows("x", "c", C[:1])).runs())
    assert "a single split allows no test: nobody is marked there" in comparison_table(one)
    assert "*" not in comparison_table(one)


def test_cells_of_one_method_are_told_apart(tmp_path):
    cells = [
        rows("x", "m", A, options="hyper.C=1; loss.alpha=0.3"),
        rows("x", "m", B, options="hyper.C=1; loss.alpha=0.5"),
        rows("x", "other", B),
        rows("y", "other", B, seed=1),
    ]
    summary = summarise(folder_of(tmp_path, *cells).runs())
    assert set(summary["method"]) == {"m [loss.alpha=0.3]", "m [loss.alpha=0.5]", "other"}
    seeds = [rows("x", "m", A, seed=0), rows("x", "m", B, seed=1)]
    assert set(summarise(folder_of(tmp_path / "s", *seeds).runs())["method"]) == {"m [seed=0]", "m [seed=1]"}
    same = [rows("x", "m", A, key="aaaaaaaa"), rows("x", "m", B, key="bbbbbbbb")]
    assert set(summarise(folder_of(tmp_path / "k", *same).runs())["method"]) == {"m #aaaaaa", "m #bbbbbb"}


def test_primary_metric_is_the_first_that_all_have(tmp_path):
    def two(method, first, second, key):
        both = zip(rows("x", method, A, first, key=key), rows("x", method, A, second, key=key), strict=True)
        return [row for pair in both for row in pair]

    same = folder_of(tmp_path / "1", two("a", "mae", "error", "1"), two("b", "mae", "error", "2")).runs()
    assert primary_metric(same) == "mae"
    mixed = folder_of(tmp_path / "2", two("a", "abstention_loss", "error", "1"), rows("x", "b", A)).runs()
    assert primary_metric(mixed) == "error"

    def three(method, *metrics, key):
        return [row for each in zip(*(rows("x", method, A, metric, key=key) for metric in metrics), strict=True) for row in each]

    # both have the last two: the protocol's list decides, not the alphabet
    of_losses = three("a", "abstention_loss", "accuracy", "abstain_rate", key="1"), three("b", "error", "accuracy", "abstain_rate", key="2")
    assert primary_metric(folder_of(tmp_path / "3", *of_losses).runs()) == "accuracy"


def test_write_reports(tmp_path):
    folder = folder_of(tmp_path, rows("iris", "a", A), rows("iris", "c", C))
    summary = write_reports(folder, Significance("ttest"), notes=["cut: equal_width"])
    written = pd.read_csv(folder.path / "summary.csv")
    assert tuple(written.columns) == SUMMARY_COLUMNS
    assert written["mean"].tolist() == summary["mean"].tolist()
    assert written["best"].tolist() == [True, False]
    assert (folder.path / "summary.csv").read_text().splitlines()[1].split(",")[7] == ""  # no p-value for the best itself
    table = (folder.path / "table.md").read_text()
    assert "- cut: equal_width" in table
    assert "paired t-test" in table
    before = [(folder.path / name).read_bytes() for name in ("summary.csv", "table.md")]
    write_reports(folder, Significance("ttest"), notes=["cut: equal_width"])
    assert [(folder.path / name).read_bytes() for name in ("summary.csv", "table.md")] == before


def test_reports_need_rows_alone(tmp_path):
    folder = folder_of(tmp_path, rows("iris", "a", A))
    bare = ResultsFolder(tmp_path / "bare")
    bare.path.mkdir()
    (bare.path / "runs.csv").write_bytes((folder.path / "runs.csv").read_bytes())
    assert len(write_reports(bare)) == 1


def test_unknown_names(tmp_path):
    folder = folder_of(tmp_path, rows("iris", "a", A))
    with pytest.raises(ConfigError, match="did you mean wilcoxon"):
        write_reports(folder, Significance("wilcoxn"))
    with pytest.raises(ConfigError, match="did you mean error"):
        write_reports(folder, metric="eror")
    assert not (folder.path / "summary.csv").exists()
    with pytest.raises(ResultsError, match=r"no runs.csv"):
        write_reports(ResultsFolder(tmp_path / "nowhere"))


def with_sizes(cell, sizes):
    """Give every split of a cell a test part of its own size; the errors stay whole numbers."""
    return [row | {"value": row["value"] * row["n_test"] / size, "n_test": size} for row, size in zip(cell, sizes, strict=True)]


def test_shares_are_those_of_each_split_s_own_size():
    """Parts of 20 to 90 rows: the splits tie where the methods make as many errors, and only there; a row counts more in a small part."""
    sizes = [20, 90, 30, 80, 40, 70, 50, 60]
    runs = pd.DataFrame([*with_sizes(rows("d", "a", A), sizes), *with_sizes(rows("d", "b", B), sizes)])
    samples = _samples(_by_method(runs))
    a, b = np.array(A) / sizes, np.array(B) / sizes
    assert samples.values["a"] == pytest.approx(a)
    assert samples.values["b"] == pytest.approx(b)
    assert (samples.n_train, samples.n_test) == (N_TRAIN, 55)
    for test, expected in (("corrected_ttest", corrected_t(a, b, N_TRAIN, 55)), ("wilcoxon", wilcoxon(a, b))):
        summary = summarise(runs, Significance(test))
        worse = summary[~summary["best"]]
        assert worse["p_value"].tolist() == pytest.approx([expected.p_value])
    # the mean of a method stays the mean of its shares
    assert line(summarise(runs), "d", "a")["mean"] == pytest.approx(np.mean(np.array(A) / sizes))
