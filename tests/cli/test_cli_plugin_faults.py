"""Faults in somebody's own files are one line with the item's name and the file's line, whatever kind of item it is."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from advcli.cli import main
from advcli.core import plugins


@pytest.fixture(autouse=True)
def _no_other_files(elsewhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.FOLDERS, "")


LOSS = """
import numpy as np
from advcli.losses import register
from advcli.losses.general import GeneralLoss
@register("NAME")
class Mine(GeneralLoss):
    def __init__(self, n_classes, width=1.0):
        BODY
"""
METHOD = """
import numpy as np
from dataclasses import dataclass
from advcli.learners import LinearLearner, register
@register("NAME")
@dataclass(kw_only=True, eq=False, repr=False)
class Mine(LinearLearner):
    shrink: float = 1.0
    def learn(self, X, y, weights):
        BODY
"""
METRIC = """
from advcli.metrics import register
@register("NAME", higher_is_better=True, percent=True)
def mine(y_true, y_predicted, n_classes, facts):
    BODY
"""
SOLVER = """
import numpy as np
from advcli.problems.risk import Solution
from advcli.solvers import Solver, register
@register("NAME")
class Mine(Solver):
    def lacks(self, problem):
        return None
    def solve(self, problem, limits, start=None, seed=0):
        R = np.zeros((len(problem.y), problem.loss.n_classes))
        BODY
"""
SOURCE = """
import numpy as np
from advcli.data import Source, make_dataset
def load(options, data_dir):
    BODY
SOURCE = Source("NAME", {"rows": 60}, load)
"""
FEATURES = """
from advcli.features import register
from advcli.features.linear import LinearFeatures
@register("NAME")
class Mine(LinearFeatures):
    def __init__(self, X, n_classes, power=1.0):
        super().__init__(BODY, n_classes)
"""
FIGURE = """
from advcli.reports.drawing import draw
from advcli.reports.figures import register
@register("NAME", section="certificates", needs=("fit_seconds",))
def mine(material):
    BODY
"""
DATASET = "return make_dataset(name='mine', X=np.ones((60, 2)), y=np.arange({rows}) % {k}, classes='ab', feature_names={names})"

# group, source, options, body, what is said
FAULTS = [
    ("loss", LOSS, "width: 1.0", "super().__init__(n_classes, matrix=mat)", "NameError: name 'mat'"),
    ("loss", LOSS, "width: null", "super().__init__(n_classes, matrix=np.eye(n_classes) * width)", "loss=NAME: unsupported operand"),
    ("loss", LOSS, "width: 1.0", "super().__init__(n_classes, matrix=np.ones((3, 7)))", "the loss matrix has 7 columns"),
    ("loss", LOSS, "width: 1.0", "self.matrix = np.eye(n_classes)", "loss=NAME: its __init__ does not call super().__init__(n_classes"),
    ("loss", METHOD, "shrink: 1.0", "return nothing", "NAME linear: failed: NameError: name 'nothing'"),
    ("loss", METHOD, "shrink: null", "return np.ones((3, X.shape[1])) * self.shrink", "NAME linear: failed: TypeError: unsupported"),
    ("loss", METHOD, "shrink: 1.0", "return np.ones((2, 7))", "learn of Mine returned an array of shape (2, 7), not"),
    ("loss", METHOD, "shrink: 1.0", "pass", "learn of Mine returned a NoneType, not"),
    ("loss", METHOD, "shrink: 1.0", "return np.full((3, X.shape[1]), np.nan)", "returned weights that are no finite numbers"),
    ("metric", METRIC, "", "return rights", "NameError: name 'rights'"),
    ("metric", METRIC, "", "return y_true == y_predicted", "metric NAME returned a ndarray, not a number"),
    ("metric", METRIC, "", "pass", "metric NAME returned a NoneType, not a number"),
    ("solver", SOLVER, "", "return nothing", "NameError: name 'nothing'"),
    ("solver", SOLVER, "", "pass", "solver=NAME returned a NoneType, not an advcli.problems.risk.Solution"),
    ("solver", SOLVER, "", "return Solution(np.zeros(2), R, 1.0, 'x', 1, 0.1)", "solver=NAME returned theta of shape (2,), not (5, 3)"),
    ("solver", SOLVER, "", "return Solution(problem.parameters(R), R[:4], 1.0, 'x', 1, 0.1)", "solver=NAME returned R of shape (4, 3)"),
    ("dataset", SOURCE, "source: NAME", "return X", "NameError: name 'X'"),
    (
        "dataset",
        SOURCE,
        "source: NAME",
        "return np.ones((60, 2)), np.ones(60)",
        "dataset.source=NAME: its load returned a tuple",
    ),
    ("dataset", SOURCE, "source: NAME", DATASET.format(rows=50, k=2, names="'uv'"), "has 60 rows and 50 labels"),
    ("dataset", SOURCE, "source: NAME", DATASET.format(rows=60, k=3, names="'uv'"), "codes of labels from 0 to 2, beyond its 2 classes"),
    ("dataset", SOURCE, "source: NAME", DATASET.format(rows=60, k=2, names="'u'"), "has 2 features and 1 names"),
    ("features", FEATURES, "power: 1.0", "Xs", "NameError: name 'Xs'"),
    ("features", FEATURES, "power: null", "X ** power", "features=NAME: unsupported operand"),
    ("features", FEATURES, "power: 1.0", "X[:5]", "features=NAME: its map has 5 rows of"),
    ("features", FEATURES, "power: 1.0", "X[:, 0]", "features=NAME: its map has rows of shape"),
    ("figure", FIGURE, "", "yield nothing", "figure NAME: NameError: name 'nothing'"),
    ("figure", FIGURE, "", "return None", "figure NAME: TypeError: 'NoneType' object is not iterable"),
    ("figure", FIGURE, "", "yield 'picture'", "it yields a str, not what advcli.reports.drawing.draw returns"),
]
WORDS = {"loss": "loss", "metric": "protocol.metric", "solver": "solver", "dataset": "dataset", "features": "features"}


def put(group: str, name: str, source: str, options: str | None) -> Path:
    folder = Path("my") / group
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text(source)
    if options is not None:
        base = "defaults:\n  - /base/solver\n  - _self_\n" if group == "solver" else ""
        (folder / f"{name}.yaml").write_text(f"{base}name: {name}\n{options}\n")
    return folder.absolute() / f"{name}.py"


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[f"{group}-{said}" for group, *_, said in FAULTS])
def test_a_fault_is_one_line_with_the_place(number: int, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> None:
    group, source, options, body, said = FAULTS[number]
    name = f"faulty{number}"
    file = put(group, name, source.replace("NAME", name).replace("BODY", body), options.replace("NAME", name))
    words = ["dataset=iris", *([] if source == METHOD else ["hyper.C=1"]), "loss=zero_one", "protocol.n_splits=2", "name=x", "quiet=true"]
    words += [f"{WORDS[group]}={name}"] if group in WORDS else []
    code = main(["-m", "--config-dir", "my", *words, "hydra/launcher=basic"])
    if group == "figure":
        capfd.readouterr()
        request.getfixturevalue("drawn_figures")
        code = main(["report", "--config-dir", "my", "results=results/x"])
    assert code in (1, 2)
    line = capfd.readouterr().err.splitlines()[-1]
    assert said.replace("NAME", name) in line
    place = re.search(re.escape(str(file)) + (r"" if "it yields" in said else r", line (\d+)"), line)
    assert place is not None
    if Path("results/x/runs.csv").is_file() and group != "figure":  # the row says what the line says
        assert pd.read_csv("results/x/runs.csv")["error"][0] in line


@pytest.mark.parametrize(("group", "source"), [("loss", LOSS), ("solver", SOLVER), ("features", FEATURES)])
def test_a_file_without_its_options_is_named(group: str, source: str, capfd: pytest.CaptureFixture[str]) -> None:
    file = put(group, "bare", source.replace("NAME", "bare").replace("BODY", "X"), None)
    assert main(["--config-dir", "my", "dataset=iris", "loss=zero_one", f"{group}=bare"]) == 2
    assert (
        capfd.readouterr().err == f"advcli: {file} has no YAML file beside it; write bare.yaml with name: bare and its options [ADV001]\n"
    )


def test_a_file_without_a_source_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    file = put("dataset", "bare", "X = 1\n", "source: bare")
    assert main(["--config-dir", "my", "dataset=bare", "loss=zero_one"]) == 2
    line = capfd.readouterr().err
    assert f"{file} defines no SOURCE with the name 'bare'" in line, line


def test_places_are_those_of_users_files_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.FOLDERS, str(Path("my").absolute()))
    assert plugins.defined_at(main) == plugins.defined_at(3) == ""
    assert plugins.one_line(ValueError("no\nnumber")) == "ValueError: no number"
