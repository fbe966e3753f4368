"""One saved model of every kind, and rows that each can predict: what the tests of damaged files start from."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy import sparse

from advcli import CostSensitiveClassifier, SurrogateClassifier
from advcli.cli import main
from advcli.evaluation.standardise import Standardiser
from advcli.learners import hierarchical, learner_class, ordinal
from advcli.learners.hierarchical import attributes
from advcli.models import Model, save

RNG = np.random.default_rng(11)
CODES = np.repeat([0, 1, 2], 12)
NAMES = np.array(["a", "bb", "ccc"])
X = RNG.normal(size=(36, 4)) + CODES[:, None]
NEW = np.round(RNG.normal(size=(7, 4)) + 1.0, 3)
TREE = [["r", "a"], ["r", "s"], ["s", "bb"], ["s", "ccc"]]
DAG = [["r", "a"], ["r", "s"], ["r", "t"], ["s", "bb"], ["s", "ccc"], ["t", "ccc"], ["t", "a"]]
CONFUSION = [[0.8, 0.0, 0.0], [0.2, 1.0, 0.1], [0.0, 0.0, 0.9]]
COSTS = "right,a,bb,ccc\na,0,1,4\nbb,1,0,2\nccc,3,1,0\nunsure,0.7,0.7,0.7\n"
TABLE = "width,height,colour,kind\n" + "".join(
    f"{1 + code + at / 10:.1f},{2 + code - at / 7:.2f},{'red' if at % 3 else 'blue'},{name}\n"
    for code, name in enumerate(("small", "medium", "large"))
    for at in range(6)
)
SETS = "width,height,label_red,label_blue\n" + "".join(f"{at},{at % 4},{int(at > 4)},{int(at < 7)}\n" for at in range(12))


ORDERED = pd.Series(pd.Categorical(NAMES[CODES], ordered=True))  # of which some learn the order


def surrogate(loss: Any = "zero_one", rows: Any = X, **parameters: Any) -> SurrogateClassifier:
    return SurrogateClassifier(loss, C=0.5, tol=0.01, **parameters).fit(rows, ORDERED)


def learner(name: str, rows: Any = X, labels: Any = ORDERED, **parameters: Any) -> Any:
    return learner_class(name)(**parameters).fit(rows, labels)


def estimators(folder: Path) -> Iterator[tuple[str, Any, Any]]:
    """Yield names, fitted estimators or models, and new rows."""
    costs, confusion = folder / "costs.csv", folder / "confusion.csv"
    costs.write_text(COSTS)
    confusion.write_text("\n".join(",".join(map(str, row)) for row in CONFUSION))
    text, new_text = sparse.csr_array(np.where(X > 1.0, X, 0.0)), sparse.csr_array(np.where(NEW > 1.0, NEW, 0.0))
    wide, new_wide = (sparse.hstack([each, sparse.csr_array((each.shape[0], 9000))], format="csr") for each in (text, new_text))
    sets = np.eye(3, dtype=int)[CODES]
    sets[::7, 2] = 1
    whole = {"classes": ["a", "bb", "ccc"]}
    yield "linear", surrogate(), NEW
    yield "standardised", Model(surrogate(rows=Standardiser().fit(X).transform(X)), tuple("xyz"), tuple("xyz"), Standardiser().fit(X)), NEW
    yield "threshold", surrogate("absolute", features="threshold"), NEW
    yield "box", surrogate(features_options={"moments": "box", "tolerance": 0.5}), NEW
    yield "rbf", surrogate(features="rbf"), NEW
    yield "rbf-sparse", surrogate("cs", rows=wide, features="rbf"), new_wide
    yield "rbf-threshold", surrogate("squared", features="rbf_threshold"), NEW
    yield "poly", surrogate("ww", features="poly", features_options={"degree": 2}), NEW
    yield "precomputed", surrogate(rows=X @ X.T, features="precomputed"), NEW @ X.T
    yield "kernel-pca", surrogate(features="kernel_pca", features_options={"dimensions": 5}), NEW
    yield "nystroem", surrogate(features="nystroem", features_options={"dimensions": 5, "landmarks": 9}), NEW
    yield "text", surrogate("llw", rows=text), new_text
    yield "cost-file", surrogate("general", loss_options={"file": str(costs)}), NEW
    weighted = {"base": "general", "weight": [1.0, 2.0, 0.5], "options": {"file": str(costs)}}
    yield "weighted-cost-file", surrogate("weighted", loss_options=weighted), NEW
    yield "abstain", surrogate("abstain", loss_options={"alpha": 0.3}), NEW
    yield "power", surrogate("power", loss_options={"p": 1.7}), NEW
    yield "tree-distance", surrogate("tree_distance", loss_options={"hierarchy": {"edges": TREE, **whole}}), NEW
    yield "uma", learner("uma", confusion=str(confusion)), NEW
    yield "uma-kernel-pca", learner("uma", confusion=CONFUSION, features="kernel_pca"), NEW
    for name in ("perceptron", "f_y", "flat", "ova", "ovo", "csovo", "csova"):
        yield name, learner(name), NEW
    for name in ("forward", "backward"):
        yield name, learner(name, confusion=CONFUSION, tol=0.01), NEW
    yield "s3vm", learner("s3vm", labels=np.where(np.arange(36) % 3, CODES, -1), n_classes=3), NEW
    for name in ("at", "it", "red_th"):
        yield name, learner(name), NEW
    yield "at-smooth", learner("at", alpha=1.5), NEW
    yield "red-th-costs", learner("red_th", cost=[[0, 1, 4], [1, 0, 2], [3, 1, 0]]), NEW
    yield "svorim", learner("svorim", ridge=0.1), NEW
    yield "svorex-precomputed", learner("svorex", rows=X @ X.T, features="precomputed"), NEW @ X.T
    yield "ordinal-thresholds", ordinal.OrdinalClassifier(method="svorex", order=["c", "a", "b"]).fit(X, np.array(list("cab"))[CODES]), NEW
    for name in ("hsvm", "nhsvm", "ssvm"):
        yield name, learner(name, hierarchy=TREE, tol=0.01), NEW
    for name, edges in (("hsvm", TREE), ("nhsvm", DAG), ("ssvm", TREE)):
        yield f"sets-{name}", learner(name, labels=sets, hierarchy={"edges": edges, **whole}, n_classes=3, tol=0.1, max_passes=100), NEW
    yield "abstain-bep", learner("abstain_bep", code="gray", tol=0.01), NEW
    yield "abstain-ova-rbf", learner("abstain_ova", features="rbf", tau=0.2, tol=0.01), NEW
    yield "two-stage-rbf", learner("two_stage", features="rbf", tol=0.01), NEW
    for pairs in ("one", "four", "none"):
        yield f"sets-{pairs}", learner("sets", labels=sets, pairs=pairs, n_classes=3, tol=0.1), NEW
    for name, edges in (("slack", TREE), ("margin", DAG)):
        options = {"surrogate": name, "hierarchy": {"edges": edges, **whole}, "n_classes": 3, "tol": 0.1}
        yield f"hierarchical-sets-{name}", learner("hierarchical_sets", labels=sets, **options), NEW
    yield "hierarchical", hierarchical.HierarchicalClassifier(TREE, model="nhsvm", tol=0.01).fit(X, NAMES[CODES]), NEW
    yield "cost-sensitive", learner("csosr", cost=[[0, 1, 4], [1, 0, 2], [3, 1, 0]]), NEW
    yield "ovo-free", learner("ovo", bias="free"), NEW
    yield "csosr-free-rbf", learner("csosr", bias="free", features="rbf"), NEW
    yield "metric", learner("metric", metric="worst_class", tol=0.01), NEW
    yield "metric-general-rbf", learner("metric", metric="g_mean", inner="general", features="rbf", tol=0.01), NEW
    yield "adversarial-costs", learner("adversarial_costs", cost=[[0, 1, 4], [1, 0, 2], [3, 1, 0]]), NEW
    yield "adversarial-costs-nystroem", learner("adversarial_costs", features="nystroem", features_options={"dimensions": 5}), NEW
    yield "cost-sensitive-rbf", CostSensitiveClassifier(method="red_mc", features="rbf").fit(X, ORDERED), NEW
    with mock.patch.object(attributes, "LISTS", 0):
        yield "factored", learner("nhsvm", rows=text, hierarchy=TREE, tol=0.01), new_text


COMMANDS = {
    "csv": (TABLE, ["dataset.target=kind", "dataset.categorical=auto", "loss=abstain", "hyper.C=1"]),
    "csv-uma": (TABLE, ["dataset.target=kind", "dataset.drop=[colour]", "loss=uma", "features=kernel_pca", "features.dimensions=3"]),
    "csv-sets": (SETS, ["dataset.target=label_*", "dataset.hierarchy=tree.csv", "loss=hsvm", "hyper.C=1"]),
}


def save_all(folder: Path) -> dict[str, Any]:
    """Save a model of every kind into a folder as KIND.model; return rows that each can predict (None: of a table)."""
    rows: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fitted, new in estimators(folder):
            save(fitted, folder / f"{name}.model")
            rows[name] = new
        before = Path.cwd()
        os.chdir(folder)
        try:
            Path("tree.csv").write_text("parent,child\nall,red\nall,blue\n")
            for name, (table, words) in COMMANDS.items():
                Path(f"{name}.csv").write_text(table)
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
                    code = main(["fit", "dataset=csv", f"dataset.path={name}.csv", f"out={name}.model", *words])
                assert code == 0, said.getvalue()
                rows[name] = None
        finally:
            os.chdir(before)
    return rows


if __name__ == "__main__":
    found = save_all(Path(sys.argv[1]))
    print(len(found), "models")
