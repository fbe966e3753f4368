"""Reports of imported rows: tests by what the rows allow, tables over data sets and items, folders side by side."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from advcli.reports import summarise, write_reports
from advcli.reports.sources import Sources
from advcli.results import ResultsFolder, from_frame
from advcli.statistics import bootstrap_means, corrected_t, improvability, mcnemar, row_ranks, wilcoxon


def table(n_datasets: int = 8, methods: str = "abc", n_splits: int = 8, seed: int = 0) -> pd.DataFrame:
    """Return accuracies of methods, each worse than the one before."""
    rng = np.random.default_rng(seed)
    places = itertools.product(range(n_datasets), enumerate(methods), range(n_splits))
    rows = [(f"set_{d}", m, s, 0.9 - 0.02 * at - 0.01 * d + rng.normal(0, 0.01)) for d, (at, m), s in places]
    return pd.DataFrame(rows, columns=["dataset", "method", "fold", "accuracy"])


def report(folder: ResultsFolder, **options: Any) -> str:
    write_reports(folder, full=True, **options)
    return (folder.path / "report.md").read_text()


def test_the_test_depends_on_what_is_known_of_the_splits(tmp_path: Path) -> None:
    frame = table(n_datasets=2, methods="ab")
    values = {key: part.to_numpy() for key, part in frame.groupby(["dataset", "method"])["accuracy"]}
    known = summarise(from_frame(frame, tmp_path / "known", n_train=90, n_test=10).runs())
    unknown = summarise(from_frame(frame, tmp_path / "unknown").runs())
    half = summarise(from_frame(frame, tmp_path / "half", n_train=90).runs())
    for dataset in ("set_0", "set_1"):
        a, b = values[dataset, "a"], values[dataset, "b"]
        for summary, test in ((known, corrected_t(a, b, 90, 10)), (unknown, wilcoxon(a, b)), (half, wilcoxon(a, b))):
            p = summary.loc[(summary["dataset"] == dataset) & ~summary["best"], "p_value"].item()
            assert p == pytest.approx(test.p_value)
    assert unknown.attrs["significance"].test == "wilcoxon"
    assert known.attrs["significance"].test == "corrected_ttest"


def test_a_mixture_of_tests_is_said(tmp_path: Path) -> None:
    from advcli.reports import comparison_table

    frame = table(n_datasets=2, methods="ab")
    sized = from_frame(frame[frame["dataset"] == "set_0"], tmp_path / "sized", n_train=90, n_test=10).runs()
    bare = from_frame(frame[frame["dataset"] == "set_1"], tmp_path / "bare").runs()
    text = comparison_table(summarise(pd.concat([sized, bare], ignore_index=True)))
    assert "worse than the best: corrected resampled t-test" in text
    assert "not known on set_1, which the corrected resampled t-test needs: Wilcoxon signed-rank test there" in text


def test_methods_stand_where_ranks_and_gaps_put_them(tmp_path: Path) -> None:
    frame = table()
    text = report(from_frame(frame, tmp_path / "theirs"))
    scores = frame.groupby(["dataset", "method"])["accuracy"].mean().unstack().to_numpy()
    ranks, gaps = bootstrap_means(row_ranks(scores, higher_is_better=True)), bootstrap_means(improvability(1 - scores))
    for name, rank, gap in zip("abc", ranks, gaps, strict=True):
        shown = (
            f"{rank.estimate:.2f} [{rank.low:.2f}, {rank.high:.2f}]",
            f"{100 * gap.estimate:.2f} [{100 * gap.low:.2f}, {100 * gap.high:.2f}]",
        )
        line = next(line for line in text.splitlines() if re.match(rf"\| {name} ", line) and shown[0] in line)
        assert shown[1] in line
    assert "best mean rank, separable from all others over the data sets: a" in text
    assert (tmp_path / "theirs" / "plots" / "standing-accuracy.svg").is_file()


def test_single_data_sets_are_corrected_over_one_comparison(tmp_path: Path) -> None:
    frame = table(seed=3)
    from advcli.reports.figures import Material
    from advcli.reports.sections.standing import single_tables

    rows = from_frame(frame, tmp_path / "theirs").runs()
    (found,) = single_tables(Material(rows, summarise(rows), ("accuracy",), "accuracy"))
    values = {key: part.to_numpy() for key, part in frame.groupby(["dataset", "method"])["accuracy"]}
    for other in "bc":
        raw = [wilcoxon(values[f"set_{d}", "a"], values[f"set_{d}", other]).p_value for d in range(8)]
        fields = [row for row in found.rows if row[1].text == other]
        for at, method in ((5, "holm"), (6, "fdr_bh")):
            assert [row[at].value for row in fields] == pytest.approx(multipletests(raw, method=method)[1])
        assert [row[4].value for row in fields] == pytest.approx(raw)


def test_improvability_needs_a_known_best_value(tmp_path: Path) -> None:
    frame = table(n_splits=1).rename(columns={"accuracy": "points"})
    text = report(from_frame(frame, tmp_path / "theirs", value="points", direction="higher"))
    assert "Where methods stand over data sets: points" in text
    assert "improvability" not in text


@pytest.fixture
def quiz(tmp_path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = [("quiz", m, f"q{i}", float(rng.random() < share)) for m, share in (("a", 0.95), ("b", 0.8), ("c", 0.4)) for i in range(120)]
    return pd.DataFrame(rows, columns=["dataset", "system", "question", "correct"])


def test_items_are_compared_by_mcnemar(tmp_path: Path, quiz: pd.DataFrame) -> None:
    folder = from_frame(quiz, tmp_path / "quiz")
    values = {name: part.to_numpy() for name, part in quiz.groupby("system")["correct"]}
    raw = [mcnemar(values[x], values[y]).p_value for x, y in itertools.combinations("abc", 2)]
    summary = summarise(folder.runs()).set_index("method")
    assert summary.loc[["b", "c"], "p_value"].tolist() == pytest.approx(raw[:2])
    assert summary.loc[["b", "c"], "p_adjusted"].tolist() == pytest.approx(multipletests(raw, method="holm")[1][:2])
    text = report(folder)
    only = int(((values["a"] == 1) & (values["b"] == 0)).sum()), int(((values["a"] == 0) & (values["b"] == 1)).sum())
    line = next(line for line in text.splitlines() if re.match(r"\| quiz +\| a +\| b ", line))
    assert [int(field) for field in re.findall(r"\| +(\d+) (?=\|)", line)] == list(only)


def test_scores_of_items_have_no_shares(tmp_path: Path, quiz: pd.DataFrame) -> None:
    frame = quiz.rename(columns={"correct": "f1"})
    frame["f1"] = frame["f1"] * 0.5 + 0.25
    text = report(from_frame(frame, tmp_path / "f1"))
    assert "Wilcoxon signed-rank test, two-sided, on these items" in text
    assert "Pairs of methods on the same items" in text
    assert "Wilson" not in text
    assert "McNemar" not in text.replace("exact McNemar test of values 0 and 1", "")


def test_folders_with_other_splits_are_not_paired(tmp_path: Path) -> None:
    frame = table(n_datasets=1, methods="ab")
    one = from_frame(frame[frame["method"] == "a"], tmp_path / "one")
    same = from_frame(frame[frame["method"] == "b"], tmp_path / "same")
    other = from_frame(frame[frame["method"] == "b"].assign(fold=range(10, 18)), tmp_path / "other")
    assert summarise(Sources([one, same], merge=False).runs).attrs["unpaired"] == []
    assert summarise(Sources([one, other], merge=False).runs).attrs["unpaired"] == ["set_0"]


def test_imported_rows_stand_beside_our_own(tmp_path: Path, planted: Any) -> None:
    ours = planted.folder(tmp_path / "ours", *planted.sweep(n_datasets=2, methods=("zero_one linear",)))
    frame = pd.DataFrame({"dataset": ["set_0", "set_1"], "forest": [0.05, 0.06]})
    theirs = from_frame(frame, tmp_path / "theirs", metric="error")
    write_reports([ours, theirs], full=True, out=tmp_path / "both")
    text = (tmp_path / "both" / "report.md").read_text()
    assert "2 cells imported: numbers of another program, without certificates" in text
    assert "largest certified relative duality gap" in text
    assert "splits differ on set_0, set_1, so that nothing is tested there" in text
