"""The tables of the pages, made from kept summaries of runs and from the papers' numbers.

A page has a table between ``<!-- table NAME -->`` and ``<!-- end NAME -->``; `TABLES` says how it is made. Its numbers come from
``results/published/SUMMARY.csv``, which has one row per data set, method and metric with the commit whose code computed it, and from
``advcli/reports/published``. Under it stands the command; the commits stand in ``benchmarks/journal/commits.md``.

    python docs/rebuild.py                              make all tables of all pages anew from the summaries
    python docs/rebuild.py --check                      write nothing; exit code 1 and a line for every page that would change
    python docs/rebuild.py results/fathony2018_table4   keep the summaries of these finished runs first
    python docs/rebuild.py results/searches_yeast_80.csv   keep a table of searches (`advcli report +experiment=choi2018_table5_1`)

A run is refused if its commit is unknown or the working tree was changed: its numbers would have no commit.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from advcli.core.errors import AdvcliError, ResultsError
from advcli.core.files import write_text
from advcli.reports.published_numbers import FAR, load_published, z_score
from advcli.reports.summary import summarise, with_unique_methods
from advcli.results.folder import ResultsFolder
from advcli.results.provenance import git_state
from advcli.statistics.marks import Significance

DOCS = Path(__file__).resolve().parent
KEPT = DOCS.parent / "results" / "published"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")), DOCS.parent / "benchmarks" / "journal" / "commits.md"]
KEY = ["dataset", "method", "metric"]
COLUMNS = [*KEY, "loss", "features", "mean", "std", "n_splits", "worst_gap", "mark", "hyper", "commit", "note"]
"""Columns of a kept summary.

``std`` has n - 1 in the denominator and is empty for a single split. ``worst_gap`` is the largest certified relative gap. ``mark`` is * for
the best mean and = for means not significantly worse. ``hyper`` has the hyper-parameters that are the same in all splits, ``note`` stands
behind the number in the table.
"""

MARKED = re.compile(r"^<!-- table (\w+) -->\n(?:.*\n)*?<!-- end \1 -->$", re.MULTILINE)
CHOSEN_CUTS = ("bank", "computer", "calhousing")
"""Data sets of Table 4 whose cut was chosen because it gives the printed errors."""


class Summary:
    """A kept summary.

    Attributes
    ----------
    name : str
        The file without its ending.
    frame : DataFrame
        Its rows, by data set, method and metric.
    """

    def __init__(self, name: str) -> None:
        path = KEPT / f"{name}.csv"
        if not path.is_file():
            raise ResultsError(f"no kept summary {path}; keep it with `python docs/rebuild.py results/{name}`")
        frame = pd.read_csv(path, dtype={"commit": str, "note": str}, keep_default_na=False, na_values={"std": "", "worst_gap": ""})
        self.name, self.frame = name, frame.set_index(KEY)

    def row(self, dataset: str, method: str, metric: str) -> pd.Series:
        """Return a row; accuracy is made from the error where a run counted errors."""
        if (dataset, method, metric) in self.frame.index:
            return self.frame.loc[(dataset, method, metric)]
        if metric == "accuracy" and (dataset, method, "error") in self.frame.index:
            row = self.frame.loc[(dataset, method, "error")].copy()
            row["mean"] = 1.0 - row["mean"]
            return row
        raise ResultsError(f"{self.name}.csv has no row {dataset}, {method}, {metric}")

    def text(self, dataset: str, method: str, metric: str, digits: int, scale: float = 1.0, error: bool = False) -> str:
        """Return mean (deviation), or with ``error`` mean (standard error), and the row's note."""
        row = self.row(dataset, method, metric)
        spread = scale * row["std"] / (math.sqrt(row["n_splits"]) if error else 1.0)
        text = f"{scale * row['mean']:.{digits}f}" + ("" if math.isnan(spread) or spread == 0 else f" ({spread:.{digits}f})")
        return f"{text}, {row['note']}" if row["note"] else text

    def method(self, dataset: str, begins: str, option: str) -> str:
        """Return the method of a data set that begins so and has an option, such as ``loss.max_updates=5``, among those in brackets."""
        for name in self.frame.index.get_level_values("method")[self.frame.index.get_level_values("dataset") == dataset]:
            start, _, options = name.partition(" [")
            if start == begins and option in options.removesuffix("]").split(", "):
                return str(name)
        raise ResultsError(f"{self.name}.csv has no row {dataset}, {begins}, {option}")

    def made(self, command: str) -> str:
        """Return the line under a table: command, largest relative gap."""
        gap = self.frame["worst_gap"].max()
        certified = "" if math.isnan(gap) else f" Relative gaps up to {gap:.1e}."
        return f"`{command}`.{certified}"

    def commits(self) -> str:
        """Return the commits that computed the rows."""
        return ", ".join(sorted(set(self.frame["commit"])))


def pipe(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = ["|" + "|".join(f" {part} " if part else " " for part in row) + "|" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


def facts_of(key: str) -> pd.DataFrame:
    """Return the papers' numbers of a table by data set, loss, features and metric."""
    return load_published(key).set_index(["dataset", "loss", "features", "metric"]).sort_index()


def datasets_of(key: str) -> list[str]:
    """Return the data sets of a table in the paper's order."""
    return list(dict.fromkeys(load_published(key)["dataset"]))


def agreement(scores: dict[str, float], what: str) -> str:
    """Say how many cells disagree with the printed ones and which comes next to it."""
    name = max(scores, key=lambda cell: abs(scores[cell]))
    far = [cell for cell, z in scores.items() if abs(z) > FAR]
    said = f"{len(scores) - len(far)} of {len(scores)} {what} agree with the printed numbers (|z| at most {FAR:g})"
    return f"{said}; the largest |z| is {abs(scores[name]):.1f} ({name})."


def accuracies(key: str, features: str) -> list[str]:
    """Return one half of Table 2 of Fathony et al. 2018: four losses, accuracy in percent beside the printed one."""
    summary, facts, losses = Summary(key), facts_of(key), ("zero_one", "ww", "cs", "llw")
    rows, scores = [], {}
    for dataset in datasets_of(key):
        row = [dataset]
        for loss in losses:
            method, fact = f"{loss} {features}", facts.loc[(dataset, loss, features, "accuracy")]
            ours = summary.row(dataset, method, "accuracy")
            row += [summary.text(dataset, method, "accuracy", 1, 100.0), fact["printed"]]
            scores[f"{dataset}, {loss}"] = z_score(
                100 * ours["mean"], 100 * ours["std"], int(ours["n_splits"]), fact["mean"], fact["std"], fact["n_splits"]
            )
        rows.append(row)
    table = pipe(["data set", *(part for loss in losses for part in (loss, "printed"))], rows)
    return [*table, "", agreement(scores, "cells") + " " + summary.made(f"advcli +experiment={key}")]


def with_scores(key: str, metric: str, columns: dict[str, tuple[str, str]], chosen: Sequence[str] = ()) -> list[str]:
    """Return a table of means, printed numbers and z; ``columns`` names (loss, features), ``chosen`` the data sets whose z is no test."""
    summary, facts = Summary(key), facts_of(key)
    rows, scores = [], {}
    for dataset in datasets_of(key):
        row = [dataset]
        for column, (loss, features) in columns.items():
            fact, ours = facts.loc[(dataset, loss, features, metric)], summary.row(dataset, f"{loss} {features}", metric)
            z = z_score(ours["mean"], ours["std"], int(ours["n_splits"]), fact["mean"], fact["std"], fact["n_splits"])
            row += [
                summary.text(dataset, f"{loss} {features}", metric, 3),
                fact["printed"],
                f"{round(z, 1) + 0.0:+.1f}{' †' if dataset in chosen else ''}",
            ]
            if dataset not in chosen:
                scores[f"{dataset}, {column}" if len(columns) > 1 else dataset] = z
        rows.append(row)
    table = pipe(["data set", *(part for column in columns for part in (column, "printed", "z"))], rows)
    said = agreement(scores, "cells" if not chosen else "cells without a mark")
    if chosen:
        said = "† The cut of this data set was chosen because it gives the printed errors, so this z tests nothing. " + said
    return [*table, "", said + " " + summary.made(f"advcli +experiment={key}")]


ABSTAINING = {"AL": "abstain", "OVA": "abstain_ova", "CS": "abstain_cs"}
"""Columns of Table 6 of Fathony et al. 2018."""


def abstaining(features: str) -> list[str]:
    """Return the half of Table 6 with these features: abstention losses, printed numbers and z."""
    return with_scores("fathony2018_table6", "abstention_loss", {title: (loss, features) for title, loss in ABSTAINING.items()})


def abstentions() -> list[str]:
    """Return the shares of abstentions in Table 6 in per cent, ours / printed."""
    key = "fathony2018_table6"
    summary, facts = Summary(key), facts_of(key)
    columns = [(title, loss, features) for features in ("linear", "rbf") for title, loss in ABSTAINING.items()]
    rows = []
    for dataset in datasets_of(key):
        shares = []
        for _, loss, features in columns:
            ours = summary.row(dataset, f"{loss} {features}", "abstain_rate")["mean"]
            shares.append(f"{100 * ours:.0f} / {facts.loc[(dataset, loss, features, 'abstain_rate')]['printed']}")
        rows.append([dataset, *shares])
    titles = [f"{title} {'Gaussian' if features == 'rbf' else features}" for title, _, features in columns]
    return [*pipe(["data set", *titles], rows), "", summary.made(f"advcli +experiment={key}")]


def prediction_rules() -> list[str]:
    """Return the mean absolute error of predictions by the largest potential and by the predictor's distribution, and the averages."""
    key, metric = "ordinal_rules", "mae"
    summary = Summary(key)
    columns = {"`absolute`, largest potential": ("absolute", ""), "median": ("absolute", "median")}
    columns |= {"`squared`, largest potential": ("squared", ""), "mean": ("squared", "mean")}
    methods = [f"{loss} threshold" + (f" [loss.rule={rule}]" if rule else "") for loss, rule in columns.values()]
    datasets = list(dict.fromkeys(summary.frame.index.get_level_values("dataset")))
    rows = [[dataset, *(summary.text(dataset, method, metric, 3) for method in methods)] for dataset in datasets]
    averages = [sum(summary.row(dataset, method, metric)["mean"] for dataset in datasets) / len(datasets) for method in methods]
    rows.append(["average", *(f"{average:.3f}" for average in averages)])
    return [*pipe(["data set", *columns], rows), "", summary.made(f"advcli +experiment={key}")]


def smooth_margins() -> list[str]:
    """Return absolute error and log-loss of at and it with smooth margins, beside those of the hinge with calibrated probabilities."""
    columns = {"`alpha=1`": Summary("smooth_margins"), "hinge": Summary("calibrated_hinges")}
    rows = [
        [
            f"{dataset}, `{loss}`",
            *(columns[title].text(dataset, f"{loss} linear", metric, 3) for metric in ("mae", "log_loss") for title in columns),
        ]
        for dataset in dict.fromkeys(columns["hinge"].frame.index.get_level_values("dataset"))
        for loss in ("at", "it")
    ]
    words = "features=linear protocol=ordinal protocol.metrics=[mae,log_loss]"
    sweep = f"advcli -m dataset=boston,stocks,triazines,wisconsin loss=at,it {words}"
    made = [
        summary.made(f"{sweep} {own} name={name}")
        for (name, own), summary in zip(
            {"smooth_margins": "loss.alpha=1", "calibrated_hinges": "calibrate=vector"}.items(), columns.values(), strict=True
        )
    ]
    return [*pipe(["data set", *(f"{title}: {what}" for what in ("absolute error", "log-loss") for title in columns)], rows), "", *made]


def constraints() -> list[str]:
    """Return Table 1 of Fathony et al. 2016: constraints added and active."""
    key = "fathony2016_table1"
    summary, facts, rows = Summary(key), facts_of(key), []
    for dataset in datasets_of(key):
        row = [dataset]
        for features in ("linear", "rbf"):
            for metric in ("n_constraints_added", "n_constraints_active"):
                row += [
                    summary.text(dataset, f"zero_one {features} constraint_generation", metric, 0),
                    facts.loc[(dataset, "zero_one", features, metric), "printed"],
                ]
        rows.append(row)
    head = ["data set", "linear: added", "printed", "active", "printed", "Gaussian: added", "printed", "active", "printed"]
    return [*pipe(head, rows), "", summary.made(f"advcli +experiment={key}")]


def quickstart() -> list[str]:
    """Return the table of the main job: accuracy in percent with the marks of the corrected resampled t-test."""
    summary, losses, rows = Summary("quickstart"), ("cs", "llw", "ww", "zero_one"), []
    accuracies = summary.frame.xs("accuracy", level="metric")
    datasets = sorted(set(accuracies.index.get_level_values("dataset")))
    for dataset in datasets:
        cells = [(summary.text(dataset, f"{loss} linear", "accuracy", 2, 100.0), f"{loss} linear") for loss in losses]
        rows.append([dataset, *(f"{text} {accuracies.loc[(dataset, method), 'mark']}".rstrip() for text, method in cells)])
    by_loss = [accuracies.xs(f"{loss} linear", level="method") for loss in losses]
    rows.append(["average", *(f"{100 * part['mean'].mean():.2f}" for part in by_loss)])
    rows.append(["count", *(str((part["mark"] != "").sum()) for part in by_loss)])
    return [*pipe(["dataset", *losses], rows), "", summary.made("advcli +experiment=quickstart")]


def author_splits() -> list[str]:
    """Return the means on the authors' own splits beside theirs."""
    glass, diabetes = Summary("author_splits_glass"), Summary("author_splits_diabetes")
    accuracy, mae = facts_of("fathony2018_table2"), facts_of("fathony2018_table4")
    rows = [
        [
            "glass",
            "`zero_one`, linear, C = 1024, accuracy in percent",
            glass.text("glass", "zero_one linear [hyper.C=1024]", "accuracy", 2, 100.0),
            accuracy.loc[("glass", "zero_one", "linear", "accuracy"), "printed"],
        ]
    ]
    for features in ("threshold", "linear"):
        rows.append(
            [
                "diabetes",
                f"`absolute`, {features}, lambda = 0.5, mean absolute error",
                diabetes.text("diabetes", f"absolute {features}", "mae", 3),
                mae.loc[("diabetes", "absolute", features, "mae"), "printed"],
            ]
        )
    made = (
        f"{glass.made('advcli -m dataset=glass protocol=author_splits hyper.C=16,64,128,1024 name=author_splits_glass')} "
        f"{diabetes.made(COMMAND_DIABETES)}"
    )
    return [*pipe(["data", "method", "here", "published"], rows), "", made]


COMMAND_DIABETES = (
    "advcli -m dataset=diabetes loss=absolute features=threshold,linear protocol=author_splits protocol.regularisation=lambda "
    "hyper.lambda=0.5 name=author_splits_diabetes"
)


def glass_by_c() -> list[str]:
    """Return the accuracy on glass for several fixed C."""
    summary = Summary("author_splits_glass")
    rows = [[C, summary.text("glass", f"zero_one linear [hyper.C={C}]", "accuracy", 2, 100.0)] for C in ("16", "64", "128", "1024")]
    searched = Summary("author_splits_glass_search")
    chosen = searched.row("glass", "zero_one linear", "accuracy")["hyper"].partition("=")[2]
    rows.append([f"{chosen}, chosen by the search with `seed=0`", searched.text("glass", "zero_one linear", "accuracy", 2, 100.0)])
    made = searched.made("advcli dataset=glass protocol=author_splits name=author_splits_glass_search")
    return [*pipe(["C", "accuracy in percent"], rows), "", f"The first four rows are of the runs above. {made}"]


def confusion_by_noise() -> list[str]:
    """Return Fig. 1(a) of Louche and Ralaivola 2015: confusion rates along the family of matrices."""
    summary, steps = Summary("louche2015_fig1a"), (1, 3, 5, 7, 8, 9, 10, 12, 20)
    rows = [
        [name, *(summary.text("louche_toy", f"{loss} linear [noise.step={i}]", "confusion_rate", 2, error=True) for i in steps), printed]
        for name, loss, printed in (("UMA", "uma", "0.5 to 2.25"), ("perceptron", "perceptron", "1.7 to 2.75"))
    ]
    head = ["i", *map(str, steps), "read from the text"]
    return [*pipe(head, rows), "", summary.made("advcli +experiment=louche2015_fig1a")]


def confusion_by_belief() -> list[str]:
    """Return Fig. 1(b): the confusion rate of UMA that is told C_i, with and without the bound on the condition of M."""
    steps, rows, made = (2, 5, 8, 9, 10, 11, 12, 15, 20), [], []
    for name, key, more in (
        ("condition of M below 30, as above", "louche2015_fig1b", ""),
        ("any M that can be inverted", "louche2015_fig1b_any_condition", " noise.max_condition=null name=louche2015_fig1b_any_condition"),
    ):
        summary = Summary(key)
        told = [summary.text("louche_toy", f"uma linear [noise.told_step={i}]", "confusion_rate", 2, error=True) for i in steps]
        rows.append([name, *told])
        made.append(summary.made(f"advcli +experiment=louche2015_fig1b{more}"))
    rows.append(["printed, from the text", "2.6", "2.6", "", "", "1.8", "", "", "2.15", "2.15"])
    return [*pipe(["rho", *(f"{1 - i / 10:.1f}" for i in steps)], rows), "", " ".join(made)]


WITHOUT_PCA = {
    "digits": ("optdigits", "features.dimensions=3822"),
    "letter": ("letter", "features.dimensions=5000 features.landmarks=5000"),
}
"""Data sets of the semi-supervised machine without kernel PCA, and what gives it all dimensions of the kernel, or of many landmarks."""
LEARNERS = ("f_y", "f_conf", "f_full", "s3vm", "uma")


def errors_of(summary: Summary, dataset: str, features: str, losses: Sequence[str] = LEARNERS) -> list[str]:
    """Return the errors of the methods of Louche and Ralaivola's Table 1."""
    return [summary.text(dataset, f"{loss} {features}", "error", 3, error=True) for loss in losses]


def confused_labels() -> list[str]:
    """Return Table 1 of Louche and Ralaivola 2015 with its column without kernel PCA."""
    key = "louche2015_table1"
    summary, letter, facts = Summary(key), Summary(f"{key}_letter"), facts_of(key)
    whole = [
        Summary(f"{key}_all_{name}").text(dataset, "s3vm kernel_pca", "error", 3, error=True) for name, (dataset, _) in WITHOUT_PCA.items()
    ]

    def printed(dataset: str, features: str, without: str) -> list[str]:
        values = [facts.loc[(dataset, loss, features, "error"), "printed"] for loss in LEARNERS]
        return [*values, facts.loc[(dataset, "s3vm", without, "error"), "printed"]]

    short = errors_of(letter, "letter", "kernel_pca", [loss for loss in LEARNERS if loss != "s3vm"])
    rows = [
        ["digits", "1,000 updates", *errors_of(summary, "optdigits", "kernel_pca"), whole[0]],
        ["", "printed", *printed("optdigits", "kernel_pca", "rbf")],
        ["letter", "120 updates", *short[:3], summary.text("letter", "s3vm kernel_pca", "error", 3, error=True), short[3], ""],
        ["", "printed", *printed("letter", "kernel_pca", "rbf")],
        ["", "1,000 updates", *errors_of(summary, "letter", "kernel_pca"), whole[1]],
        ["text (reuters_r8)", "1,000 updates", *errors_of(summary, "reuters_r8", "linear"), ""],
        ["", "printed, another subset of Reuters", *printed("reuters_r8", "linear", "raw")],
    ]
    made = f"{summary.made(f'advcli +experiment={key}')} {letter.made(f'advcli +experiment={key}_letter')}"
    for name, (_, options) in WITHOUT_PCA.items():
        made += f" `advcli +experiment={key} +louche2015={name} loss=s3vm {options} name={key}_all_{name}`."
    return [*pipe(["data", "stop", *LEARNERS[:-1], "UMA", "s3vm without kernel PCA"], rows), "", made]


def kernel_widths() -> list[str]:
    """Return the digits of Table 1 at the width of the kernel that was chosen and at 1."""
    rows, summaries = [], {"12": Summary("louche2015_table1"), "1": Summary("louche2015_table1_width1")}
    for width, summary in summaries.items():
        f_y, uma = (summary.row("optdigits", f"{loss} kernel_pca", "error")["mean"] for loss in ("f_y", "uma"))
        rows.append([width, *errors_of(summary, "optdigits", "kernel_pca"), f"{f_y - uma:+.3f}"])
    facts = facts_of("louche2015_table1")
    printed = {loss: facts.loc[("optdigits", loss, "kernel_pca", "error")] for loss in LEARNERS}
    difference = printed["f_y"]["mean"] - printed["uma"]["mean"]
    rows.append(["printed", *(printed[loss]["printed"] for loss in LEARNERS), f"{difference:+.2f}"])
    made = summaries["1"].made("advcli +experiment=louche2015_table1 +louche2015=digits features.width=1 name=louche2015_table1_width1")
    return [*pipe(["width", *LEARNERS[:-1], "UMA", "f_y less UMA"], rows), "", made]


SHARES = {"1 %": "0.01", "2 %": "0.02", "5 %": "0.05", "10 %": "0.1", "20 %": "0.2"}


def clean_sample() -> list[str]:
    """Return Fig. 3: error on text along the size of the clean sample."""
    summary, rows = Summary("louche2015_fig3"), []
    for name, loss, m in (("f_conf", "f_conf", 20), ("UMA, m = 20", "uma", 20), ("UMA, m = 70", "uma", 70)):
        options = [f"[protocol.labelled_share={share}, protocol.rough_per_class={m}]" for share in SHARES.values()]
        rows.append([name, *(summary.text("reuters_r8", f"{loss} linear {option}", "error", 3, error=True) for option in options)])
    return [*pipe(["method", *SHARES], rows), "", summary.made("advcli +experiment=louche2015_fig3")]


def clean_sample_by_data() -> list[str]:
    """Return Fig. 4: error of UMA and of the semi-supervised machine along the size of the clean sample."""
    key, rows = "louche2015_fig4", []
    whole, stopped = Summary(key), Summary(f"{key}_stopped")
    for data, dataset, name, summary, method in (
        ("digits", "optdigits", "UMA", whole, "uma kernel_pca"),
        ("", "optdigits", "s3vm", whole, "s3vm kernel_pca"),
        ("letter", "letter", "UMA, 120 updates", stopped, "uma kernel_pca"),
        ("", "letter", "UMA, 1,000 updates", whole, "uma kernel_pca"),
        ("", "letter", "s3vm", whole, "s3vm kernel_pca"),
        ("text", "reuters_r8", "UMA", whole, "uma linear"),
        ("", "reuters_r8", "s3vm", whole, "s3vm linear"),
    ):
        names = [summary.method(dataset, method, f"protocol.labelled_share={share}") for share in SHARES.values()]
        rows.append([data, name, *(summary.text(dataset, each, "error", 3, error=True) for each in names)])
    command = f"advcli +experiment={key}"
    less = f"{command} +louche2015=letter loss=uma loss.max_updates=120 protocol.rough_updates=120 name={key}_stopped"
    return [*pipe(["data", "method", *SHARES], rows), "", f"{whole.made(command)} {stopped.made(less)}"]


def updates() -> list[str]:
    """Return Fig. 5: error and confusion rate on text along the updates."""
    summary, steps, rows = Summary("louche2015_fig5"), (5, 10, 20, 30, 100, 200), []
    for name, metric, digits in (("error", "error", 3), ("confusion rate", "confusion_rate", 2)):
        for rule in ("error", "confusion", "random"):
            options = [f"[loss.max_updates={step}, loss.rule={rule}]" for step in steps]
            values = [summary.text("reuters_r8", f"uma linear {option}", metric, digits, error=True) for option in options]
            rows.append([f"{name}, rule `{rule}`", *values])
    return [*pipe(["measure", *map(str, steps)], rows), "", summary.made("advcli +experiment=louche2015_fig5")]


def synthetic_hierarchies() -> list[str]:
    """Return the table of Figure 6.3 of Choi 2018."""
    key, losses, rows = "choi2018_synthetic", ("flat", "hsvm", "nhsvm", "ssvm"), []
    summary, facts = Summary(key), facts_of("choi2018_fig6_3")
    for name in ("balanced", "unbalanced"):
        dataset = f"choi2018_{name}"
        rows.append([f"{name}, ours", *(summary.text(dataset, f"{loss} linear", "accuracy", 1, 100.0, error=True) for loss in losses)])
        rows.append([f"{name}, printed", *(facts.loc[(dataset, loss, "linear", "accuracy"), "printed"] for loss in losses)])
    return [*pipe(["set", *losses], rows), "", summary.made(f"advcli +experiment={key}")]


def xray_labels() -> list[str]:
    """Return accuracy and hierarchical F1 on the two trees of X-ray labels."""
    key, losses = "choi2018_imclef07", ("flat", "hsvm", "nhsvm", "ssvm")
    summary, rows = Summary(key), []
    for dataset in ("imclef07a", "imclef07d"):
        values = []
        for loss in losses:
            parts = (summary.text(dataset, f"{loss} linear", metric, 1, 100.0) for metric in ("accuracy", "hierarchical_f1"))
            values.append(", ".join(parts))
        rows.append([dataset, *values])
    return [*pipe(["data set", *losses], rows), "", summary.made(f"advcli +experiment={key}")]


def many_labels() -> list[str]:
    """Return Table 5.3 of Choi 2018: bibtex and RCV1's stand-in at what the hold-out chose, the latter at other lambdas too."""
    key, rows = "choi2018_table5_3", []
    chosen, fixed, facts = Summary(key), Summary(f"{key}_fixed"), facts_of(key)
    surrogates = (("margin", "sets"), ("beta-scaling", "sets_scaling"), ("slack", "sets_slack"))
    for dataset, (name, loss) in itertools.product(("rcv1subset1", "bibtex"), surrogates):
        others = [(fixed, f"{loss} linear [hyper.lambda={lam}]") for lam in ("0.001", "0.01")]
        for summary, method in [
            (chosen, f"{loss} linear"),
            *(each for each in others if (dataset, each[1], "micro_f1") in fixed.frame.index),
        ]:
            cell = (dataset, method)
            hyper = dict(each.split("=") for each in summary.row(*cell, "micro_f1")["hyper"].split("; "))
            said = (
                hyper["lambda"]
                + (f", beta {hyper['loss.beta']}" if "loss.beta" in hyper else "")
                + (", chosen" if summary is chosen else "")
            )
            values = [summary.text(*cell, metric, 3) for metric in ("micro_f1", "instance_f1", "jaccard", "hamming")]
            rows.append([dataset, name, said, *values, summary.text(*cell, "oracle_calls", 0), summary.text(*cell, "oracle_gap", 0)])
        printed = [
            facts.loc[(dataset, loss, "linear", metric), "printed"] if (dataset, loss, "linear", metric) in facts.index else ""
            for metric in ("micro_f1", "jaccard")
        ]
        rows.append([dataset, f"{name}, printed", "chosen", printed[0], "", printed[1], "", "", ""])
    head = ["data set", "surrogate", "lambda", "micro F1", "F1 of the rows", "jaccard", "hamming", "calls", "the searches' gap"]
    command = f"advcli +experiment={key}"
    cut = f"{command} +choi2018=rcv1 loss=sets,sets_slack hyper.lambda=0.01,0.001 name={key}_fixed"
    return [*pipe(head, rows), "", chosen.made(command), fixed.made(cut)]


def leaves_of_messages() -> list[str]:
    """Return Table 4.3 of Choi 2018 on the stand-in."""
    key, rows = "choi2018_table4_3", []
    summary, facts = Summary(key), facts_of(key)
    metrics = ("jaccard", "hamming", "micro_f1", "instance_f1")
    for name, loss in (("margin", "hierarchical_sets"), ("slack", "hierarchical_sets_slack")):
        cell = ("enron", f"{loss} linear")
        own = [summary.text(*cell, metric, 3) for metric in (*metrics, "macro_f1", "accuracy")]
        lam = dict(each.split("=") for each in summary.row(*cell, "jaccard")["hyper"].split("; "))["lambda"]
        rows.append([name, lam, *own, summary.text(*cell, "oracle_calls", 0), summary.text(*cell, "oracle_gap", 0)])
        printed = [facts.loc[("enron", loss, "linear", metric), "printed"] for metric in metrics]
        rows.append([f"{name}, printed of SWIKI", "", *printed, *[""] * 4])
    head = [
        "surrogate",
        "lambda",
        "jaccard",
        "hamming",
        "micro F1",
        "F1 of the rows",
        "macro F1",
        "accuracy",
        "searches",
        "the searches' gap",
    ]
    return [*pipe(head, rows), "", summary.made(f"advcli +experiment={key}")]


def _lambda(summary: Summary, dataset: str, method: str, metric: str) -> str:
    return dict(each.split("=") for each in summary.row(dataset, method, metric)["hyper"].split("; "))["lambda"]


def by_surrogate(
    key: str, dataset: str, loss: str, surrogates: Sequence[str], metrics: dict[str, str], printed: dict[str, Sequence[str]], of: str
) -> list[str]:
    """Return shares in percent, lambda and gap of structured learners that differ in their surrogate.

    ``metrics`` have their headings; ``printed`` has the numbers of the first metrics in the thesis by surrogate, ``of`` another data set.
    """
    summary, rows, many = Summary(key), [], len(next(iter(printed.values())))
    for surrogate in surrogates:
        cell, first = (dataset, f"{loss} linear [loss.surrogate={surrogate}]"), next(iter(metrics))
        values = [summary.text(*cell, metric, 2, 100.0) for metric in metrics]
        told = [*itertools.chain(*itertools.zip_longest(values[:many], printed.get(surrogate, [""] * many))), *values[many:]]
        rows.append([f"`{surrogate}`", *told, _lambda(summary, *cell, first), f"{summary.row(*cell, first)['worst_gap']:.1e}"])
    named = [f"{heading}, percent" for heading in metrics.values()]
    told = [*itertools.chain(*((name, f"printed, {of}") for name in named[:many])), *named[many:]]
    head = ["`loss.surrogate`", *told, "lambda", "gap"]
    return [*pipe(head, rows), "", f"`advcli +experiment={key}`."]


def weighted_pairs(key: str, dataset: str, printed: str, digits: int, command: str) -> list[str]:
    """Return Table 4.2 of Choi 2018 on a data set beside the printed numbers of the data set ``printed``."""
    summary, facts, rows = Summary(key), facts_of("choi2018_table4_2"), []
    metrics = {"jaccard": "printed", "hamming": "printed", "micro_f1": "printed", "instance_f1": "printed as MaF1"}
    for surrogate, loss in (("margin", "sets"), ("slack", "sets_slack")):
        cell = (dataset, f"{loss} linear")
        pairs = [(summary.text(*cell, metric, digits), facts.loc[(printed, loss, "linear", metric), "printed"]) for metric in metrics]
        rows.append([surrogate, _lambda(summary, *cell, "jaccard"), *itertools.chain(*pairs), summary.text(*cell, "oracle_calls", 0)])
    names = {"jaccard": "jaccard", "hamming": "hamming", "micro_f1": "micro F1", "instance_f1": "F1 of the rows"}
    head = ["surrogate", "lambda", *itertools.chain(*((names[metric], said) for metric, said in metrics.items())), "searches of rows"]
    return [*pipe(head, rows), "", summary.made(command)]


ENTITIES: Any = {"margin": ["85.28"], "prob": ["85.62"]}, "CoNLL 2003"
HEADS: Any = {"margin": ["94.0", "92.6"], "prob": ["94.2", "92.7"]}, "Penn Treebank"
"""Numbers of Tables 5.4 and 5.5 of Choi (2018), and the data sets that they are of."""

SEARCHES = KEPT / "searches"
SPACES = {"all sets, here": "all sets", "relaxation, here": "the relaxation"}


def searches(dataset: str, n_rows: int, table: str) -> list[str]:
    """Return calls, violations, misses and times of the searches of one training, beside the printed ones of a table of Choi 2018."""
    path = SEARCHES / f"searches_{dataset}_{n_rows}.csv"
    if not path.is_file():
        raise ResultsError(f"no kept table {path}; keep it with `python docs/rebuild.py results/{path.name}`")
    frame = pd.read_csv(path, keep_default_na=True).set_index(["source", "search"])
    spaces = [source for source in SPACES if source in frame.index.get_level_values(0)]
    rows = []
    for search in ("angular", "bisecting", "sarawagi", "hull"):
        cells = [search]
        for column, form in (("calls", ".1f"), ("success", ".0f"), ("not_best", ".0f"), ("ms", ".1f")):
            own = [_number(frame, (source, search), column, form) for source in spaces]
            cells.append(", ".join([*own, _number(frame, (f"table {table}", search), column, "g")]))
        rows.append(cells)
    told = f": {', '.join(SPACES[space].split()[-1] for space in spaces)}, printed"
    head = ["search", *(f"{what}{told}" for what in ("calls", "% that find a violation", "% not the best of all", "ms"))]
    made = "" if dataset == "yeast" else f" dataset={dataset} dataset.top_labels=30 protocol.splits=random"
    counts = " and ".join(
        f"{int(frame.loc[(space, 'hull'), 'searches']):,} over {words}" for space, words in SPACES.items() if space in spaces
    )
    return [*pipe(head, rows), "", f"`advcli report +experiment=choi2018_table{table.replace('.', '_')}{made}`: {counts}."]


def _number(frame: pd.DataFrame, place: tuple[str, str], column: str, form: str) -> str:
    if place not in frame.index or pd.isna(frame.loc[place, column]):
        return "-"
    return f"{float(frame.loc[place, column]):{form}}"


def keep_searches(path: Path) -> Path:
    """Copy a table of searches to ``results/published/searches`` with the commit that made it, and return its place."""
    state = git_state()
    if state is None or not state["commit"] or state["dirty"]:
        raise ResultsError(f"{path}: no commit stands for its numbers; commit the changes and make it again")
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    if not {"source", "search", "calls", "success", "not_best", "ms"} <= set(frame.columns):
        raise ResultsError(f"{path} is no table of searches (advcli report +experiment=choi2018_table5_1)")
    SEARCHES.mkdir(exist_ok=True)
    write_text(SEARCHES / path.name, frame.assign(commit=state["commit"][:7]).to_csv(index=False, lineterminator="\n"))
    return SEARCHES / path.name


def commits() -> list[str]:
    """Return the commits behind every kept summary."""
    summaries = [Summary(path.stem) for path in sorted(KEPT.glob("*.csv"))]
    rows = [[f"`{summary.name}`", summary.commits()] for summary in summaries]
    for path in sorted(SEARCHES.glob("*.csv")):
        rows.append([f"`searches/{path.stem}`", ", ".join(sorted(set(pd.read_csv(path, dtype=str)["commit"])))])
    return pipe(["summary", "computed at"], rows)


TABLES: dict[str, Callable[[], list[str]]] = {
    "quickstart": quickstart,
    "author_splits": author_splits,
    "glass_by_c": glass_by_c,
    "fathony2018_table2_linear": lambda: accuracies("fathony2018_table2_linear", "linear"),
    "fathony2018_table2_gaussian": lambda: accuracies("fathony2018_table2_gaussian", "rbf"),
    "fathony2018_table4": lambda: with_scores(
        "fathony2018_table4", "mae", {"threshold": ("absolute", "threshold"), "multiclass": ("absolute", "linear")}, CHOSEN_CUTS
    ),
    "fathony2018_table4_thresholds": lambda: with_scores(
        "fathony2018_table4", "mae", {"RED-th": ("red_th", "linear"), "AT": ("at", "linear"), "IT": ("it", "linear")}
    ),
    "fathony2018_table4_reductions": lambda: with_scores(
        "fathony2018_table4", "mae", {name: (name.lower().replace("-", "_"), "linear") for name in ("RED-mc", "CSOSR", "CSOVO", "CSOVA")}
    ),
    "fathony2018_table5": lambda: with_scores(
        "fathony2018_table5", "mae", {"AL-th": ("absolute", "rbf_threshold"), "SVORIM": ("svorim", "rbf"), "SVOREX": ("svorex", "rbf")}
    ),
    "fathony2018_table6": lambda: abstaining("linear"),
    "fathony2018_table6_gaussian": lambda: abstaining("rbf"),
    "fathony2018_table6_rates": lambda: abstentions(),
    "ordinal_rules": prediction_rules,
    "smooth_margins": smooth_margins,
    "fathony2016_table1": constraints,
    "louche2015_fig1a": confusion_by_noise,
    "louche2015_fig1b": confusion_by_belief,
    "louche2015_table1": confused_labels,
    "louche2015_widths": kernel_widths,
    "louche2015_fig3": clean_sample,
    "louche2015_fig4": clean_sample_by_data,
    "louche2015_fig5": updates,
    "choi2018_synthetic": synthetic_hierarchies,
    "choi2018_imclef07": xray_labels,
    "choi2018_table4_3": leaves_of_messages,
    "choi2018_table5_3": many_labels,
    "choi2018_table4_2": lambda: weighted_pairs("choi2018_table4_2", "yeast", "yeast", 3, "advcli +experiment=choi2018_table4_2"),
    "choi2018_table4_2_rcv1": lambda: weighted_pairs(
        "choi2018_table4_2_rcv1",
        "rcv1subset1",
        "rcv1_50",
        3,
        "advcli +experiment=choi2018_table4_2 dataset=rcv1subset1 dataset.top_labels=50 protocol.splits=random name=choi2018_table4_2_rcv1",
    ),
    "choi2018_table5_4": lambda: by_surrogate(
        "choi2018_table5_4", "wnut17_ner", "chain", ("margin", "slack", "prob", "maxmin"), {"entity_f1": "entity F1"}, *ENTITIES
    ),
    "choi2018_table5_5": lambda: by_surrogate(
        "choi2018_table5_5",
        "ewt_trees",
        "dependency_trees",
        ("margin", "prob"),
        {"unlabelled_attachment": "right heads", "labelled_attachment": "with the right relation", "whole_trees": "whole trees"},
        *HEADS,
    ),
    "choi2018_table5_1": lambda: searches("yeast", 80, "5.1"),
    "choi2018_table4_1": lambda: searches("yeast", 160, "4.1"),
    "choi2018_table5_1_rcv1": lambda: searches("rcv1subset1", 80, "5.1"),
    "choi2018_table4_1_rcv1": lambda: searches("rcv1subset1", 160, "4.1"),
    "commits": commits,
}
"""Tables by the name of their marks."""


def rebuilt(text: str) -> str:
    """Return a page with its marked tables made anew.

    Raises
    ------
    ResultsError
        For a mark that names no table or has no end, and where a summary lacks a number.
    """
    found = [match[1] for match in MARKED.finditer(text)]
    begun = re.findall(r"^<!-- table (.*?) -->$", text, re.MULTILINE)
    for name in begun:
        if name not in TABLES or name not in found:
            raise ResultsError(f"the mark <!-- table {name} --> names no table of docs/rebuild.py or has no <!-- end {name} -->")
    return MARKED.sub(
        lambda match: "\n".join([f"<!-- table {match[1]} -->", *_wrapped(TABLES[match[1]]()), f"<!-- end {match[1]} -->"]), text
    )


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("|") or not line:
            yield line
        else:  # commands stay in one piece
            glued = re.sub("`.*?`", lambda match: match[0].replace(" ", "\0"), line)
            yield from (part.replace("\0", " ") for part in textwrap.wrap(glued, 150, break_long_words=False, break_on_hyphens=False))


def keep(path: Path) -> Path:
    """Write the summary of a finished run to ``results/published`` and return its path; other rows of that file stay.

    Raises
    ------
    ResultsError
        If the folder has no rows, failed ones, or no commit for its numbers.
    """
    folder = ResultsFolder(path)
    folder.merge()
    runs = folder.runs()
    if runs.empty:
        raise ResultsError(f"{path} has no rows; finish its run first")
    try:
        provenance = json.loads((path / "provenance.json").read_text(encoding="utf-8"))
        git, protocol = provenance["git"], provenance["config"]["protocol"]
        commit, dirty = git["commit"][:7], git["dirty"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path}/provenance.json names no commit; run it in a git checkout") from error
    if dirty:
        raise ResultsError(f"{path} was computed with uncommitted changes; commit them and run it again")
    summary = summarise(runs, Significance.chosen(protocol))
    if summary["failed"].any():
        raise ResultsError(f"{path} has failed rows; the same command computes them again")
    runs = with_unique_methods(runs)
    names = runs[["dataset", "method", "loss", "features"]].drop_duplicates(["dataset", "method"])
    names["hyper"] = [_hyper(runs[(runs["dataset"] == row["dataset"]) & (runs["method"] == row["method"])]) for _, row in names.iterrows()]
    summary["mark"] = ["*" if row["best"] is True else "=" if row["bold"] is True else "" for row in summary.to_dict("records")]
    fresh = summary.merge(names, on=["dataset", "method"]).assign(commit=commit, note="")[COLUMNS]
    for column in ("mean", "std", "worst_gap"):
        fresh[column] = ["" if math.isnan(value) else f"{value:.9g}" for value in fresh[column]]
    kept = KEPT / f"{path.name}.csv"
    if kept.is_file():
        old = pd.read_csv(kept, dtype=str, keep_default_na=False)
        known = set(fresh[KEY].itertuples(index=False, name=None))
        old = old[[key not in known for key in old[KEY].itertuples(index=False, name=None)]]
        fresh = pd.concat([old, fresh.astype(str)])
    fresh = fresh.sort_values(["metric", "dataset", "method"], kind="stable")
    write_text(kept, fresh.to_csv(index=False, lineterminator="\n"))
    return kept


def _hyper(rows: pd.DataFrame) -> str:
    columns = [str(column) for column in rows.columns]
    hyper = columns[columns.index("value") + 1 : columns.index("n_train")]
    return "; ".join(
        f"{name}={rows[name].iloc[0]:g}" for name in hyper if rows[name].nunique(dropna=False) == 1 and rows[name].notna().all()
    )


def main(words: Sequence[str]) -> int:
    """Run the command and return its exit code: 0 done, 1 pages differ, 2 bad input."""
    check, paths = "--check" in words, [Path(word) for word in words if word != "--check"]
    try:
        for path in paths:
            print(f"kept {(keep_searches if path.suffix == '.csv' else keep)(path).relative_to(DOCS.parent)}")
        stale = 0
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            new = rebuilt(text)
            if new == text:
                continue
            stale += 1
            print(f"{page.relative_to(DOCS.parent)} {'is not what' if check else 'rebuilt from what'} the summaries give")
            if not check:
                write_text(page, new)
    except AdvcliError as error:
        print(f"docs/rebuild.py: {error}", file=sys.stderr)
        return 2
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
