"""`advcli fit` and `advcli predict`: from a person's table to a file of predictions, and everything that can be wrong on the way."""

from __future__ import annotations

import csv
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advcli import data
from advcli.cli import main
from advcli.core.errors import DataError
from advcli.data.tables.options import TableOptions
from advcli.data.tables.table import read_parts, read_table
from advcli.evaluation import Cell
from advcli.evaluation.standardise import Standardiser
from advcli.models import fit, predict_file, read

FIT = ["dataset=csv", "dataset.path=train.csv", "dataset.target=label", "hyper.C=1"]


pytestmark = pytest.mark.usefixtures("elsewhere")


def frame(n: int = 90, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return pd.DataFrame(
        {
            "size": rng.normal(size=n) + y,
            "colour": np.array(["red", "green", "blue"])[(y + (rng.random(n) < 0.2)) % 3],
            "note": "x",
            "zip": np.array(["01", "1", "20"])[rng.integers(0, 3, n)],
            "constant": 3.0,
            "label": np.array(["small", "medium", "large"])[y],
        }
    )


def options(**changes: Any) -> dict[str, Any]:
    return {"name": "csv", "source": "csv", "path": "train.csv", "target": "label", "drop": ["note"], **changes}


def train(*words: str, table: pd.DataFrame | None = None) -> None:
    (frame() if table is None else table).to_csv("train.csv", index=False)
    assert main(["fit", *FIT, "dataset.drop=[note]", "dataset.categorical=[colour,zip]", "out=m.model", *words]) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table and the model of it, made once; tests get a copy."""
    path = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(path)
        train()
    return path


@pytest.fixture
def trained(made: Path, elsewhere: Path) -> None:
    shutil.copytree(made, Path.cwd(), dirs_exist_ok=True)


def refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    before = sorted(Path.cwd().rglob("*"))
    capfd.readouterr()
    code = main(words)
    out, err = capfd.readouterr()
    assert (code, out) == (2, ""), (out, err)
    assert len(err.splitlines()) == 1, err
    assert sorted(Path.cwd().rglob("*")) == before, "something was written"
    return err


def test_the_whole_way(capfd: pytest.CaptureFixture[str]) -> None:
    train("loss=abstain", "loss.alpha=0.4")
    out, err = capfd.readouterr()
    assert "csv abstain linear: 90 rows, 8 features, 3 classes" in out
    assert "hyper-parameters: C = 1 (fixed)\n" in out
    assert "certificate: objective 0." in out
    assert "guarantee: predictions by rule=predictor cost at most 0." in out
    assert "one-hot encoded" in err
    frame(30, seed=1).drop(columns=["note", "label"])[["zip", "constant", "size", "colour"]].to_csv("new.csv", index=False)
    assert main(["predict", "model=m.model", "input=new.csv", "out=pred.csv"]) == 0
    said = capfd.readouterr().out
    found = pd.read_csv("pred.csv")
    assert said.startswith(f"pred.csv: 30 predictions, {found['abstain'].sum()} of them abstaining")
    assert 0 < found["abstain"].sum() < 30
    assert ((found["label"] == "abstain") == (found["abstain"] == 1)).all()
    classes = ["large", "medium", "small"]
    assert list(found) == [
        "label",
        "abstain",
        *(f"potential_{label}" for label in classes),
        *(f"probability_{label}" for label in [*classes, "abstain"]),
    ]
    best = found[[f"potential_{label}" for label in classes]].to_numpy().argmax(axis=1)
    certain = found["abstain"] == 0
    assert (found.loc[certain, "label"] == np.array(classes)[best[certain]]).all()
    assert sorted(entry.name for entry in Path.cwd().iterdir()) == ["m.model", "new.csv", "pred.csv", "train.csv"]


@pytest.mark.parametrize(
    ("words", "columns"),
    [
        (["loss=zero_one", "features=rbf", "hyper.gamma=0.1"], 1 + 3 + 3),
        (["loss=zero_one", "features.moments=box", "hyper.C=null", "hyper.tolerance=0.2"], 1 + 3 + 3),
        (["loss=ww"], 1 + 3),
        (["loss=absolute", "features=threshold", "dataset.order=[small,medium,large]"], 1 + 3 + 3),
        (["loss=general", "loss.matrix=[[0,1,2],[1,0,1],[2,1,0],[0.5,0.6,0.5],[0.6,0.5,0.6]]"], 2 + 3 + 5),
    ],
)
def test_every_kind_of_method(words: list[str], columns: int) -> None:
    train(*words)
    assert main(["predict", "model=m.model", "input=train.csv", "out=pred.csv", "chunk_rows=17"]) == 0
    found = pd.read_csv("pred.csv", dtype={"label": str})
    assert found.shape == (90, columns)
    if words[0] != "loss=general":
        assert (found["label"] == frame()["label"]).mean() > 0.6


@pytest.mark.parametrize(
    ("words", "certified"),
    [
        (["loss=uma", "features=kernel_pca", "features.dimensions=20", "loss.confusion=confusion.csv"], False),
        (["loss=perceptron"], False),
        (["loss=forward", "hyper.C=1", "loss.confusion=confusion.csv"], True),
        (["loss=s3vm", "features=nystroem"], False),
    ],
)
def test_methods_that_are_no_surrogates(words: list[str], certified: bool, capfd: pytest.CaptureFixture[str]) -> None:
    Path("confusion.csv").write_text("0.8,0,0\n0.2,1,0.1\n0,0,0.9\n")
    train("hyper.C=null", *words)
    out, err = capfd.readouterr()
    assert ("certificate:" in out) == certified == ("hyper-parameters: C = 1 (fixed)" in out)
    assert words[0] != "loss=uma" or "advcli: note: csv: no update vector was a mistake any more" in err
    Path("confusion.csv").unlink()
    assert main(["predict", "model=m.model", "input=train.csv", "out=pred.csv", "chunk_rows=40"]) == 0
    found = pd.read_csv("pred.csv")
    assert list(found) == ["label", "potential_large", "potential_medium", "potential_small"]
    assert (found["label"] == frame()["label"]).mean() > 0.6


def test_a_fit_is_the_protocols_search_and_standardisation() -> None:
    """By hand: the csv source's features, the runner's selection on all rows, the standardiser of all rows, one estimator."""
    from advcli import SurrogateClassifier, metrics
    from advcli.config.protocol import Protocol
    from advcli.evaluation.part import Part
    from advcli.evaluation.selection import HyperSearch, find_axes
    from advcli.learners import Method

    frame().to_csv("train.csv", index=False)
    given = options(categorical=["colour"], drop=["note", "zip"])
    groups: dict[str, Any] = {"loss": {"name": "zero_one"}, "features": {"name": "linear"}, "solver": {"name": "auto", "tol": 1e-6}}
    protocol = {"folds": 3, "stage1": {"regularisation": [0.01, 1.0]}, "stage2": {"regularisation": [0.5, 2.0]}}
    model = fit(Cell(dataset=given, protocol=protocol, seed=3, **groups), Path("data"))

    loaded = data.load(given, Path("data"))
    checked = Protocol.from_mapping(protocol)

    def make(hyper: Any, seed: int) -> Any:
        return Method(groups["loss"], groups["features"], groups["solver"], hyper).make(3, seed, 1e-6)

    def judge(learner: Any, view: Any, held: Any) -> tuple[str, float]:
        return "error", metrics.compute("error", held.y, learner.predict_codes(view), 3, {})

    chosen = HyperSearch(make, judge, checked, find_axes(checked, Method(**groups)), 3, "csv").select(Part(loaded.X, loaded.y))
    assert model.about["hyper"] == chosen.hyper
    standardised = Standardiser().fit(loaded.X).transform(loaded.X)
    assert (standardised[:, -1] == 1.0).all()  # the constant column
    estimator = SurrogateClassifier("zero_one", C=chosen.hyper["C"], tol=1e-6).fit(standardised, loaded.y)
    np.testing.assert_allclose(model.estimator.potentials(standardised), estimator.potentials(standardised), atol=1e-3)
    assert model.predict(loaded.X).tolist() == [loaded.classes[code] for code in estimator.predict(standardised)]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 70),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    packed=st.booleans(),
    quoted=st.booleans(),
)
def test_parts_of_a_file_are_the_file(seed: int, rows: int, end: str, packed: bool, quoted: bool) -> None:
    """Whatever the number of rows at a time, line ends, quotes with line breaks in them, blank lines and compression."""
    table = frame(60, seed)
    if quoted:
        table["colour"] = table["colour"].map({"red": "dark\nred", "green": 'a "green"', "blue": "blue, mostly"})
    text = table.to_csv(index=False, lineterminator=end, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)
    if not quoted:
        lines = text.split(end)
        lines[7:7] = ["", "  "]
        text = end.join(lines)
    Path("train.csv").write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    whole = read_table(Path("train.csv"), TableOptions(target="label", categorical=("colour", "zip")))
    parts = list(read_parts(Path("train.csv"), rows, text=("label", "colour", "zip")))
    joined = pd.concat([part.frame for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(joined, whole.frame)
    places = [part.place(row) for part in parts for row in range(len(part.frame))]
    assert places == [whole.place(row) for row in range(len(whole.frame))]

    given = options(categorical=["colour", "zip"])
    loaded = data.load(given, Path("data"))
    assert loaded.encoding is not None
    assert loaded.feature_names == loaded.encoding.feature_names
    np.testing.assert_array_equal(np.vstack([loaded.encoding.encode(part) for part in parts]), loaded.X)


def test_the_number_of_rows_at_a_time_changes_nothing() -> None:
    train("loss=zero_one")
    files = []
    for rows in (1, 13, 1000):
        predict_file(read("m.model"), Path("train.csv"), Path(f"{rows}.csv"), rows)
        files.append(pd.read_csv(f"{rows}.csv"))
    assert (files[0]["label"] == files[2]["label"]).all()
    for other in files[:2]:
        # a product of other shape may round the last bit otherwise
        pd.testing.assert_frame_equal(other, files[2], rtol=0, atol=1e-12)


# --------------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="size"), "other columns than the model was fitted on; missing: size"),
        (lambda t: t.assign(extra=1, more=2), "unexpected: extra, more"),
        (lambda t: t.rename(columns={"size": "Size"}), "missing: size; unexpected: Size"),
        (
            lambda t: t.assign(colour=["red"] * 40 + ["pink"] + ["blue"] * 49),
            "column 'colour' holds 'pink' in row 41 (line 42), a category that",
        ),
        (
            lambda t: t.assign(size=["1"] * 50 + [""] + ["1"] * 39),
            "'size' has no value in row 51 (line 52); correct it or remove the row",
        ),
        (lambda t: t.assign(size=["1"] * 50 + ["big"] + ["1"] * 39), "column 'size' holds text ('big' in row 51 (line 52))"),
        (lambda t: t.assign(size=["1"] * 50 + ["inf"] + ["1"] * 39), "an infinite value in row 51"),
        (lambda t: t.assign(colour=["red"] * 50 + [None] + ["red"] * 39), "column 'colour' has no value in row 51 (line 52)"),
        (lambda t: t.assign(zip="001"), "column 'zip' holds '001' in row 1 (line 2)"),
        (lambda t: t.head(0), "has a heading but no rows"),
    ],
)
def test_tables_that_do_not_fit_are_refused_whole(change: Any, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    change(frame()).to_csv("new.csv", index=False)
    err = refused(["predict", "model=m.model", "input=new.csv", "out=pred.csv", "chunk_rows=9"], capfd)
    assert said in err
    assert "dataset." not in err, "the reader of new rows has no dataset options"


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"size,colour,zip,constant\n" + b"1,red,01,3\n" * 20 + b"1,red\n", "row 21 (line 22) has 2 fields, the heading has 4"),
        (b"size,colour,zip,constant\n" + b"1,red,01,3\n" * 20 + b'1,"red,01,3\n', "is a quotation mark not closed?"),
        (b"size,colour,zip,constant\n" + b"1,red,01,3\n" * 20 + b"1,r\xffd,01,3\n", "is not UTF-8 text"),
        (b"size,colour,zip,constant\n" + b"1,red,01,3\n" * 20 + b"1,r\0d,01,3\n", "it has zero bytes"),
        (gzip.compress(b"size,colour,zip,constant\n" + b"1,red,01,3\n" * 900, mtime=0)[:-9], "is a damaged gzip file"),
        (b"size;colour;zip;constant\n1;red;01;3\n", "seems to be separated by semicolons"),
    ],
)
def test_damaged_tables_are_refused_whole(content: bytes, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("new.csv").write_bytes(content)
    Path("pred.csv").write_text("old\n")
    assert said in refused(["predict", "model=m.model", "input=new.csv", "out=pred.csv", "chunk_rows=10"], capfd)
    assert Path("pred.csv").read_text() == "old\n"


@pytest.mark.usefixtures("trained")
def test_words_that_make_no_sense_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    Path("folder").mkdir()
    for words, said in (
        (["fit", *FIT], "advcli fit needs out=FILE"),
        (["fit", *FIT, "out=folder"], "out=folder is a folder"),
        (["fit", *FIT, "out=none/m"], "there is no folder none"),
        (["fit", *FIT, "out=n.model", "loss=absolute", "dataset.categorical=auto"], "labels with an order"),
        (["fit", "dataset=csv", "out=n.model"], "dataset=csv needs dataset.path"),
        (["fit", *FIT, "out=n.model", "noise=pairwise"], "leave out noise=pairwise"),
        (["fit", *FIT, "out=n.model", "protocol=louche2015", "dataset.categorical=auto"], "protocol.rough_per_class makes labels"),
        (["fit", *FIT, "out=n.model", "-m"], "advcli fit does one thing at a time"),
        (["predict"], "advcli predict needs model=FILE"),
        (["predict", "model=m.model"], "advcli predict needs input=FILE"),
        (["predict", "model=m.model", "input=train.csv"], "advcli predict needs out=FILE"),
        (["predict", "model=m.model", "input=train.csv", "out=p.csv", "loss=ww"], "leave out loss=ww"),
        (["predict", "model=m.model", "input=train.csv", "out=p.csv", "chunk_rows=0"], "chunk_rows=0 is not valid"),
        (["predict", "model=m.model", "input=train.csv", "out=train.csv"], "out=train.csv is also an input"),
        (["predict", "model=m.model", "input=train.csv", "out=m.model"], "out=m.model is also an input"),
        (["fit", *FIT, "out=train.csv"], "out=train.csv is also an input"),
        (["predict", "model=n.model", "input=train.csv", "out=p.csv"], "there is no model"),
        (["predict", "model=train.csv", "input=train.csv", "out=p.csv"], "it is not a model of advcli, or damaged"),
        (["predict", "model=m.model", "input=trian.csv", "out=p.csv"], "did you mean train.csv?"),
    ):
        assert said in refused(words, capfd), words


def test_a_stream_of_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder, not a file"):
        next(read_parts(tmp_path, 10))


def test_a_fit_that_does_not_converge_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    train("solver=dual", "solver.max_passes=1", "solver.tol=1e-9")
    assert "advcli: warning: not converged (max_passes); raise solver.max_passes or solver.tol [ADV150]\n" in capfd.readouterr().err


def test_bundled_data_can_be_fitted_and_their_columns_have_names(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "dataset=iris", "hyper.C=1", "out=iris.model"]) == 0
    loaded = data.load({"name": "iris", "source": "sklearn"}, Path("data"))
    pd.DataFrame(loaded.X, columns=list(loaded.feature_names)).to_csv("new.csv", index=False)
    assert main(["predict", "model=iris.model", "input=new.csv", "out=pred.csv"]) == 0
    assert set(pd.read_csv("pred.csv")["label"]) == set(map(str, loaded.classes))


def test_sparse_data_can_be_fitted_and_used_in_python() -> None:
    Path("train.svm").write_text("\n".join(f"{i % 3} {1 + i % 3}:{1 + i % 5} 5:{i * i % 7}" for i in range(60)))
    assert main(["fit", "dataset=csv", "dataset.path=train.svm", "dataset.format=svmlight", "hyper.C=1", "out=sparse.model"]) == 0
    loaded = data.load({"name": "csv", "source": "csv", "path": "train.svm", "format": "svmlight"}, Path("data"))
    assert (read("sparse.model").predict(loaded.X) == np.array(loaded.classes)[loaded.y]).mean() > 0.9


def test_weights_of_the_examples_reach_the_fit() -> None:
    table = frame().assign(weight=np.where(np.arange(90) % 3 == 0, 9.0, 1.0))
    train("dataset.weight=weight", "loss=weighted", "loss.weight=column", table=table)
    weighted = read("m.model")
    train("dataset.drop=[note,weight]", table=table)
    plain = read("m.model")
    features = data.load(options(categorical=["colour", "zip"], drop=["note", "weight"]), Path("data")).X
    heavy = "small"  # every third row
    assert (weighted.predict(features) == heavy).sum() > (plain.predict(features) == heavy).sum()
    assert main(["predict", "model=m.model", "input=train.csv", "out=pred.csv"]) == 0


PEAK = """
import resource, sys
from pathlib import Path
from advcli.models import read, predict_file
done = predict_file(read("m.model"), Path(sys.argv[1]), Path("pred.csv"), 2000)
print(done.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.usefixtures("trained")
def test_memory_stays_flat() -> None:
    """Twelve times the rows, the same memory: what is held is one part of the file."""
    rows = frame(5000).to_csv(index=False).split("\n", 1)
    peaks = []
    for name, times in (("small.csv", 1), ("large.csv", 12)):
        with Path(name).open("w") as file:
            file.write(rows[0] + "\n")
            for _ in range(times):
                file.write(rows[1])
        done = subprocess.run([sys.executable, "-c", PEAK, name], capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        count, peak = map(int, done.stdout.split())
        assert count == 5000 * times
        peaks.append(peak / (2**20 if sys.platform == "darwin" else 2**10))
    assert peaks[1] - peaks[0] < 6.0, peaks  # MiB; read whole, the large file takes many times that


def test_a_class_that_is_never_predicted_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing tells one row in five apart, so that it costs least never to name its class: a note of the fit and of a run."""
    table = pd.DataFrame({"x": np.tile(np.arange(20.0), 5), "label": np.repeat(["few", *["many"] * 4], 20)})
    train("dataset.drop=null", "dataset.categorical=null", "loss=zero_one", table=table)
    line = "never predicts few (20 % of the training rows)"
    assert line in capfd.readouterr().err
    assert any(line in note for note in read(Path("m.model")).about["notes"])
    assert main([*FIT, "loss=zero_one", "protocol.n_splits=2", "name=once", "results_dir=r"]) == 0
    said = "zero_one linear: on csv it never predicts few ("
    assert said in capfd.readouterr().out
    assert said in Path("r/once/table.md").read_text()
