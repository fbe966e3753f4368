"""A user's own Python files: found in every process, answered by one line when broken, and part of what a cell's key says."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.nursery import nursery

from advcli.cli import main
from advcli.core import plugins
from advcli.core.errors import ConfigError
from advcli.evaluation import Cell
from advcli.losses import make_loss
from advcli.models import read

LOSS = """
from advcli.losses import register
from advcli.losses.zero_one import ZeroOneLoss


@register("{name}")
class Mine(ZeroOneLoss):
    pass
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(plugins.FOLDERS, "")
    Path("my/loss").mkdir(parents=True)


def test_a_name_that_the_package_lacks_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my/loss/first.py").write_text(LOSS.format(name="first"))
    with pytest.raises(ConfigError, match="unknown loss 'first'"):
        make_loss("first", 3)
    plugins.add_folder("my")
    plugins.add_folder("my")
    assert os.environ[plugins.FOLDERS] == str(Path("my").absolute())
    assert type(make_loss("first", 3)).__name__ == "Mine"
    assert type(pickle.loads(pickle.dumps(make_loss("first", 3)))) is type(make_loss("first", 3))
    # imported once: the class stays the same
    assert type(make_loss("first", 3)) is type(make_loss("first", 4))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\ny = undefined\n", "broken.py, line 2: NameError: name 'undefined' is not defined"),
        ("x = 1\ndef f(:\n", "broken.py, line 2: SyntaxError"),
        ("import no_such_module\n", "broken.py, line 1: ModuleNotFoundError"),
    ],
)
def test_a_broken_file_is_one_line(source: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("my/loss/broken.py").write_text(source)
    Path("my/loss/broken.yaml").write_text("# Broken.\nname: broken\n")
    assert main(["--config-dir", "my", "loss=broken", "dataset=iris", "hyper.C=1"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err


def test_workers_find_the_files() -> None:
    Path("my/loss/third.py").write_text(LOSS.format(name="third"))
    Path("my/loss/third.yaml").write_text("# Mine.\nname: third\n")
    words = ["--config-dir=my", "-m", "dataset=iris", "loss=third,zero_one", "hyper.C=1", "protocol.n_splits=2", "workers=2", "name=x"]
    done = nursery().run(words)
    assert done.returncode == 0, done.stderr
    assert "iris, third linear: accuracy" in done.stderr


def test_a_change_of_a_file_makes_new_cells() -> None:
    groups = {group: {"name": "x"} for group in ("dataset", "loss", "features", "solver", "protocol")}
    keys = [Cell(**groups).request_key()]
    plugins.add_folder("my")
    assert Cell(**groups).request_key() == keys[0], "without own files keys are what they were"
    for source in ("x = 1\n", "x = 2\n"):
        Path("my/loss/one.py").write_text(source)
        keys.append(Cell(**groups).request_key())
    assert len(set(keys)) == 3


CENTROIDS = """
import numpy as np

from advcli.learners import LinearLearner, register


@register("centroids")
class CentroidLearner(LinearLearner):
    constant = True

    def __init__(self, shrink=1.0, features="linear", features_options=None, n_classes=None, random_state=0):
        self.shrink = shrink
        self.features = features
        self.features_options = features_options
        self.n_classes = n_classes
        self.random_state = random_state

    def learn(self, X, y, weights):
        X = X.toarray() if hasattr(X, "toarray") else X
        share = np.eye(len(self.classes_))[y] * (1.0 if weights is None else weights[:, None])
        means = share.T @ X / share.sum(axis=0)[:, None]
        coef = 2.0 * means
        coef[:, -1] -= self.shrink * (means**2).sum(axis=1)
        return coef
"""

WORST = """
import numpy as np

from advcli.metrics import register


@register("worst_recall", higher_is_better=True, percent=True)
def worst_recall(y_true, y_predicted, n_classes, facts):
    right = np.bincount(y_true[y_true == y_predicted], minlength=n_classes)
    rows = np.bincount(y_true, minlength=n_classes)
    return float((right[rows > 0] / rows[rows > 0]).min())
"""

POWERS = """
import numpy as np

from advcli.features import register
from advcli.features.linear import LinearFeatures
from advcli.core.hyper import Hyper
from advcli.core.hyper import register as register_hyper

register_hyper(Hyper("bend", "power of the entries"))


@register("powers")
class PowerFeatures(LinearFeatures):
    hyper = ("bend",)

    def __init__(self, X, n_classes, bend=1.0):
        super().__init__(np.sign(X) * np.abs(X) ** bend, n_classes)
        self.bend = bend

    def at(self, X):
        return type(self)(X, self.n_classes, self.bend)
"""

INFORMED = """
import json
import os

import numpy as np

from advcli.losses import register
from advcli.losses.general import GeneralLoss


@register("informed")
class InformedLoss(GeneralLoss):
    def __init__(self, n_classes, classes=None, hierarchy=None):
        with open(os.environ["SEEN"], "w") as file:
            json.dump([classes, hierarchy], file)
        super().__init__(n_classes, matrix=1.0 - np.eye(n_classes))

    @classmethod
    def needs(cls, options):
        return frozenset({"classes", "hierarchy"})
"""

TABLE = "size,ears,kind\n" + "".join(f"{at % 7},{at * 3 % 5},{('cat', 'dog', 'owl')[at % 3]}\n" for at in range(30))


def own(group: str, name: str, source: str, options: str = "") -> None:
    folder = Path("my") / group
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    (folder / f"{name}.yaml").write_text(f"# Mine.\nname: {name}\n{options}")


def advcli(*words: str) -> None:
    """Run in a process of its own, which has imported none of the files."""
    done = nursery().run([*words, "--config-dir=my"])
    assert done.returncode == 0, done.stderr


def test_a_learner_is_swept_saved_and_loaded(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    own("loss", "centroids", CENTROIDS, "shrink: 1.0\n")
    advcli("-m", "dataset=iris", "loss=centroids,zero_one", "hyper.C=1", "protocol.n_splits=2", "workers=1", "name=x")
    rows = pd.read_csv("results/x/runs.csv")
    assert set(rows["method"]) == {"centroids linear", "zero_one linear"}
    assert rows.loc[(rows["loss"] == "centroids") & (rows["metric"] == "error"), "value"].max() <= 0.2
    advcli("fit", "dataset=iris", "loss=centroids", "loss.shrink=0.5", "out=m.advcli")
    Path("new.csv").write_text("sepal length (cm),sepal width (cm),petal length (cm),petal width (cm)\n5,3.5,1.4,0.2\n6.6,3,5.6,2.1\n")
    advcli("predict", "model=m.advcli", "input=new.csv", "out=p.csv")
    assert pd.read_csv("p.csv")["label"].tolist() == ["setosa", "virginica"]
    assert main(["dataset=iris", "loss=centroids", "loss.typo=1", "--config-dir=my"]) == 2
    assert "loss.typo" in capfd.readouterr().err
    # another process of this test has the class already: the file is found by the variable, too
    monkeypatch.setenv(plugins.FOLDERS, str(Path("my").absolute()))
    assert read("m.advcli").estimator.get_params()["shrink"] == 0.5


def test_a_metric_selects_and_is_reported() -> None:
    own("metric", "worst", WORST)
    advcli("dataset=iris", "protocol.metric=worst_recall", "protocol.metrics=[error]", "protocol.n_splits=2", "hyper.C=1", "name=x")
    rows = pd.read_csv("results/x/runs.csv").pivot_table(index="split", columns="metric", values="value")
    assert list(rows) == ["error", "worst_recall"]
    assert (rows["worst_recall"] <= 1.0 - rows["error"]).all()
    assert "worst recall in percent" in Path("results/x/table.md").read_text()


def test_a_feature_map_has_its_own_hyper_parameter() -> None:
    own("features", "powers", POWERS)
    cell = ["dataset=iris", "features=powers", "hyper.C=1", "protocol.n_splits=2"]
    advcli(*cell, "protocol.stage1.bend=[0.5,2]", "name=searched")
    searched = pd.read_csv("results/searched/search.csv")
    assert set(searched["bend"]) == {0.5, 2.0}
    for split, bend in pd.read_csv("results/searched/runs.csv").groupby("split")["bend"].first().items():
        errors = searched[searched["split"] == split].groupby("bend")["value"].mean()
        assert errors[bend] == errors.min()
    for name, word in (("plus", "+hyper.bend=0.5"), ("plain", "hyper.bend=0.5")):
        advcli(*cell, word, f"name={name}")
    kept = [pd.read_csv(f"results/{name}/runs.csv")[["bend", "value", "objective"]] for name in ("plus", "plain")]
    assert set(kept[0]["bend"]) == {0.5}
    assert kept[0].equals(kept[1])
    advcli("-m", *cell, "hyper.bend=0.5,2", "workers=1", "name=swept")
    assert set(pd.read_csv("results/swept/runs.csv")["bend"]) == {0.5, 2.0}


def test_a_hyper_parameter_that_nobody_has_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for word in ("hyper.bnd=1", "+hyper.bnd=1", "protocol.stage1.bnd=[1]"):
        assert main(["--config-dir=my", "dataset=iris", word]) == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert line.startswith(f"advcli: unknown key '{word.lstrip('+').partition('=')[0]}'")


def test_a_loss_learns_the_classes_and_the_hierarchy(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    own("loss", "informed", INFORMED, "hierarchy: null\n")
    Path("data.csv").write_text(TABLE)
    Path("tree.csv").write_text("parent,child\nanimal,cat\nanimal,dog\nanimal,owl\n")
    monkeypatch.setenv("SEEN", str(Path("seen.json").absolute()))
    cell = ["dataset=csv", "dataset.path=data.csv", "dataset.target=kind", "loss=informed", "protocol.n_splits=2", "hyper.C=1"]
    advcli(*cell, "dataset.hierarchy=tree.csv", "name=x")
    classes, hierarchy = json.loads(Path("seen.json").read_text())
    assert classes == hierarchy["classes"] == ["cat", "dog", "owl"]
    assert hierarchy["edges"] == [["animal", "cat"], ["animal", "dog"], ["animal", "owl"]]
    assert main([*cell, "name=y", "--config-dir=my"]) == 2
    assert "give dataset.hierarchy=EDGES.csv" in capfd.readouterr().err


def test_the_loss_of_distances_takes_the_hierarchy_of_the_data(capfd: pytest.CaptureFixture[str]) -> None:
    Path("data.csv").write_text(TABLE)
    Path("tree.csv").write_text("parent,child\nanimal,mammal\nmammal,cat\nmammal,dog\nanimal,owl\n")
    data = ["dataset=csv", "dataset.path=data.csv", "dataset.target=kind", "dataset.hierarchy=tree.csv"]
    words = [*data, "loss=tree_distance", "hyper.C=1", "protocol.n_splits=2", "protocol.metrics=[tree_loss]", "name=x"]
    assert main(words) == 0
    rows = pd.read_csv("results/x/runs.csv").pivot_table(index="split", columns="metric", values="value")
    assert list(rows) == ["cost", "tree_loss"]
    assert (rows["cost"] == rows["tree_loss"]).all()
    assert rows["cost"].min() > 0
    assert main(["fit", *data, "loss=tree_distance", "hyper.C=1", "out=m.advcli"]) == 0
    model = read("m.advcli")
    order = [model.classes.index(name) for name in ("cat", "dog", "owl")]
    assert model.estimator.cost_matrix_[np.ix_(order, order)].tolist() == [[0, 2, 3], [2, 0, 3], [3, 3, 0]]
    weighted = ["loss=weighted", "loss.base=tree_distance", "loss.weight=2", "hyper.C=1", "protocol.n_splits=2", "name=weighted"]
    assert main([*data, *weighted]) == 0
    capfd.readouterr()
    assert main(["dataset=iris", "loss=tree_distance"]) == 2
    assert "give dataset.hierarchy=EDGES.csv" in capfd.readouterr().err


@pytest.mark.parametrize("group", plugins.GROUPS)
def test_every_group_that_makes_rows_is_part_of_the_fingerprint(group: str) -> None:
    plugins.add_folder("my")
    before = plugins.fingerprint()
    Path("my", group).mkdir(exist_ok=True)
    Path("my", group, "one.py").write_text("x = 1\n")
    assert (plugins.fingerprint() == before) == (group == "figure")
