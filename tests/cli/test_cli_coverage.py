"""advcli coverage: risk over coverage of a saved model on labelled rows, its confusions, thresholds with a guarantee."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import image

from advcli.cli import main
from advcli.core.errors import ConfigError
from advcli.models import load, read, save
from advcli.statistics.risk_coverage import guarantee, risk_coverage

NAMES = np.array(["red", "rose", "white"])


def rows(path: Path, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.integers(3, size=n)
    X = np.round(random.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [0, 2], [2, 0]])[y], 3)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["kind", "hue", "sugar"], *([NAMES[label], *row] for label, row in zip(y, X.tolist(), strict=True))])
    return X, y


@pytest.mark.parametrize("loss", ["abstain_ova", "abstain", "cs"])
def test_the_files_say_what_the_model_does(
    loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows(Path("train.csv"), 90, 0)
    X, y = rows(Path("held.csv"), 300, 1)
    assert main(["fit", "dataset=csv", "dataset.path=train.csv", "dataset.target=kind", f"loss={loss}", "hyper.C=1", "out=m.model"]) == 0
    capsys.readouterr()
    assert main(["coverage", "model=m.model", "input=held.csv", "out=found"]) == 0
    said = capsys.readouterr().out
    model = read("m.model")
    P = model.estimator.potentials(model.features(X))
    wrong = P.argmax(axis=1) != y
    margin = P.max(axis=1) if loss == "abstain_ova" else np.sort(P, axis=1)[:, -1] - np.sort(P, axis=1)[:, -2]
    curve = pd.read_csv("found/curve.csv")
    expected = risk_coverage(margin, wrong)
    np.testing.assert_allclose(curve["coverage"], expected.coverage)
    np.testing.assert_allclose(curve["risk"], expected.risk)
    np.testing.assert_allclose(curve["threshold"], expected.threshold, atol=1e-9)
    assert f"AURC {expected.aurc:.4g}, E-AURC {expected.excess:.4g}" in said
    confusion = pd.read_csv("found/confusion.csv", index_col="class")
    assert list(confusion.columns) == [*NAMES, *(["abstain"] if loss != "cs" else [])]
    predicted = model.predict(X)
    for label in NAMES:
        for column in confusion.columns:
            assert confusion.loc[label, column] == ((NAMES[y] == label) & (predicted == column)).sum()
    table = pd.read_csv("found/guarantees.csv")
    assert table["epsilon"].tolist() == [0.01, 0.02, 0.05, 0.1, 0.2]
    for each in table.itertuples():
        found = guarantee(margin, wrong, each.epsilon, 0.1)
        assert (found.accepted, found.wrong, found.rows) == (each.accepted, each.wrong, each.rows)
        assert str(found) in said
    assert Path("found/curve.svg").read_text().startswith("<?xml")
    assert Path("found/curve.pdf").read_bytes().startswith(b"%PDF")
    picture = image.imread("found/curve.png")
    assert 1000 <= picture.shape[1] <= 1400
    np.testing.assert_array_equal(picture[0, 0, :3], 1.0)  # white ground
    assert (picture[:, :, :3].min(axis=2) < 0.5).mean() > 0.002  # and something on it


def test_bad_input_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rows(Path("train.csv"), 60, 0)
    assert main(["fit", "dataset=csv", "dataset.path=train.csv", "dataset.target=kind", "loss=abstain_cs", "hyper.C=1", "out=m.model"]) == 0
    Path("other.csv").write_text(Path("train.csv").read_text().replace("rose", "rosé", 1))
    Path("unlabelled.csv").write_text(Path("train.csv").read_text().replace("kind", "sort", 1))
    few = Path("train.csv").read_text().splitlines()[:12]
    Path("few.csv").write_text("\n".join(few) + "\n")
    cases = [
        (["input=train.csv", "out=found"], "needs model=FILE"),
        (["model=m.model", "out=found"], "needs input=FILE"),
        (["model=m.model", "input=train.csv"], "needs out=FOLDER"),
        (["model=m.model", "input=other.csv", "out=found"], "'rosé' of row "),
        (["model=m.model", "input=unlabelled.csv", "out=found"], "has no column kind of labels"),
        (["model=m.model", "input=train.csv", "out=train.csv"], "out=train.csv is a file"),
        (["model=m.model", "input=none.csv", "out=found"], "none.csv"),
    ]
    for words, said in cases:
        capsys.readouterr()
        assert main(["coverage", *words]) == 2
        err = capsys.readouterr().err.strip()
        assert said in err
        assert len(err.splitlines()) == 1
        assert not Path("found").exists()
    assert main(["coverage", "model=m.model", "input=few.csv", "out=found"]) == 0
    assert "11 rows are too few for a threshold with a guarantee" in capsys.readouterr().out


def made(loss: str, *words: str) -> None:
    rows(Path("train.csv"), 90, 0)
    rows(Path("held.csv"), 600, 1)
    rows(Path("new.csv"), 3000, 2)
    given = ["dataset=csv", "dataset.path=train.csv", "dataset.target=kind", f"loss={loss}", *words]
    assert main(["fit", *given, *([] if loss == "logistic" else ["hyper.C=1"]), "out=m.model"]) == 0


@pytest.mark.parametrize("loss", ["abstain_ova", "two_stage", "abstain", "cs", "at"])
def test_a_threshold_that_was_found_is_applied(
    loss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that coverage prints accepts the rows whose margin exceeds the threshold, and predicts what was judged."""
    monkeypatch.chdir(tmp_path)
    made(loss, *(["dataset.order=[white,red,rose]"] if loss == "at" else []))
    capsys.readouterr()
    words = ["coverage.epsilons=[0.5,0.08]", "coverage.confidence=0.8"]
    assert main(["coverage", "model=m.model", "input=held.csv", "out=found", *words]) == 0
    table = pd.read_csv("found/guarantees.csv")
    assert (table["epsilon"].tolist(), set(table["delta"])) == ([0.08, 0.5], {0.2})
    printed = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("to apply"))
    words = shlex.split(printed.partition(": advcli ")[2].replace("NEW.csv", "new.csv").replace("PREDICTIONS.csv", "p.csv"))
    safe = table[table["accepted"] > 0].iloc[0]
    tau = float(safe["tau"])
    assert words[-1] == f"predict.tau={tau!r}"
    assert main([*words, "chunk_rows=700"]) == 0
    found, new, model = pd.read_csv("p.csv"), pd.read_csv("new.csv"), read("m.model")
    X = new[["hue", "sugar"]].to_numpy()
    margin, chosen, _ = model.judged(X)
    answered = found["abstain"].to_numpy() == 0
    assert (answered == (margin > tau)).all()
    assert (found["label"].to_numpy()[answered] == np.array(model.classes)[chosen][answered]).all()
    assert (found["label"][~answered] == "abstain").all()
    assert 0.0 < (found["label"] != new["kind"])[answered].mean() < safe["epsilon"]
    assert 0.1 < answered.mean() < 1.0
    again = model.at_threshold(tau)
    assert (again.predict(X) == found["label"].to_numpy()).all()
    if loss in ("abstain", "cs", "at", "logistic"):
        with pytest.raises(ConfigError, match="give tau where it predicts"):
            save(again, "t.model")
    else:
        save(again, "t.model")
        assert (read("t.model").predict(X) == found["label"].to_numpy()).all()


@pytest.mark.parametrize(("words", "said"), [
    (["coverage", "model=m.model", "input=held.csv", "out=f", "coverage.epsilons=[0.1,1]"], "coverage.epsilons"),
    (["coverage", "model=m.model", "input=held.csv", "out=f", "coverage.confidence=90"], "coverage.confidence=90"),
    (["coverage", "model=m.model", "input=held.csv", "out=f", "coverage.epsilons=[]"], "at least one"),
    (["predict", "model=m.model", "input=new.csv", "out=p.csv", "predict.tau=high"], "predict.tau=high is not valid"),
    (["predict", "model=m.model", "input=new.csv", "out=p.csv", "predict.tau=nan"], "predict.tau=nan is not valid"),
])  # fmt: skip
def test_keys_that_are_no_shares_are_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_loaded_model_calibrates_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made("abstain_ova")
    held, new = pd.read_csv("held.csv"), pd.read_csv("new.csv")
    model = load("m.model")
    found = model.calibrate(held.drop(columns="kind"), held["kind"], epsilon=0.25)
    assert np.array_equal(model.predict(new.drop(columns="kind")) != "abstain", model.margins(new.drop(columns="kind")) > found.tau)
    assert model.risk_coverage(held.drop(columns="kind"), held["kind"]).coverage[-1] == 1.0
    save(model, "again.model")
    assert np.array_equal(load("again.model").predict(new.drop(columns="kind")), model.predict(new.drop(columns="kind")))
    made("cs")
    assert not hasattr(load("m.model"), "calibrate")
    assert load("m.model").margins(new.drop(columns="kind")).shape == (3000,)
