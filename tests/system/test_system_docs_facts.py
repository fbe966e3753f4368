"""Facts that pages repeat in their own words are those of the code, of the configuration and of the kept summaries."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pandas as pd
import yaml

from advcli import AdversarialClassifier
from advcli.problems import certificate

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    """Return a page with its lines joined."""
    return re.sub(r"\s+", " ", (DOCS / name).read_text(encoding="utf-8"))


def test_the_benchmark_names_the_programs_that_have_numbers() -> None:
    rows = (ROOT / "benchmarks/journal/benchopt.md").read_text(encoding="utf-8").splitlines()
    solvers = {
        cells[2].strip().split()[0] for cells in (row.split("|") for row in rows) if len(cells) == 8 and re.match(r" \d+ of", cells[3])
    }
    named = re.search(r"with nine other programs: (.*?)\. advcli", page("results/benchmark.md"))
    assert named is not None
    assert set(re.split(", | and ", named[1])) == solvers - {"advcli"}
    assert len(solvers) == 10


def test_the_accuracy_of_llw_is_that_of_the_quickstart() -> None:
    frame = pd.read_csv(ROOT / "results/published/quickstart.csv").set_index(["dataset", "method", "metric"])
    said = re.search(r"in the quickstart ([\d.]+) % on digits, where `zero_one` has ([\d.]+) %", page("explanation/choosing-a-loss.md"))
    assert said is not None
    means = [100 * frame.loc[("digits", f"{loss} linear", "accuracy"), "mean"] for loss in ("llw", "zero_one")]
    assert [f"{mean:.2f}" for mean in means] == list(said.groups())


def test_the_default_limits_of_passes_are_those_of_both_ways() -> None:
    said = re.search(r"by default ([\d,]+) in Python and ([\d,]+) on the command line", page("howto/use/python.md"))
    assert said is not None
    there = inspect.signature(AdversarialClassifier).parameters["max_passes"].default
    configured = yaml.safe_load((ROOT / "conf/base/solver.yaml").read_text(encoding="utf-8"))["max_passes"]
    assert [int(number.replace(",", "")) for number in said.groups()] == [there, configured]


def test_the_page_explains_every_status_of_a_certificate() -> None:
    tree = ast.parse(inspect.getsource(certificate))
    known = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "_ADVICE")
    assert isinstance(known, ast.Dict)
    table = (DOCS / "explanation/certificate.md").read_text(encoding="utf-8").split("| status of a certificate |")[1].split("\n\n")[0]
    assert {ast.literal_eval(key) for key in known.keys} | {"converged"} == set(
        re.findall(r"`(\w+)`", re.sub(r"\|[^|]*\|\n", "|\n", table))
    )


def test_the_page_names_the_lowest_scikit_learn() -> None:
    lowest = re.search(r'"scikit-learn>=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert lowest is not None
    assert f"scikit-learn ({lowest[1]} or newer)" in page("start/installing.md")


def test_a_command_under_a_table_makes_the_number_of_runs_that_stands_there() -> None:
    before, table, *_ = (DOCS / "results/reproducing.md").read_text(encoding="utf-8").split("<!-- table louche2015_fig4 -->")
    runs = pd.read_csv(ROOT / "results/published/louche2015_fig4.csv")["n_splits"].unique()
    assert "`advcli +experiment=louche2015_fig4`." in table.split("<!-- end")[0]
    preset = (ROOT / "conf/experiment/louche2015_fig4.yaml").read_text(encoding="utf-8")
    assert [f"n_splits: {n}\n" in preset and f"{n} runs, as printed" in before for n in runs] == [True]
